// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/asn1"
	"errors"
	"fmt"
	"hash"
	"io"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/gost/gost28147"
	"tamga/gost/kdf"
	"tamga/gost/kuznyechik"
	"tamga/gost/magma"
	"tamga/gost/mode"
	"tamga/pki/suite"
)

// ContentCipher is an algorithm for the content of a message. The variables of this package are the
// only values, so compare pointers.
type ContentCipher struct {
	// Name is the name in settings and requests, such as "Kuznyechik".
	Name string
	// Authenticates reports whether a message with this cipher can have an authentication code.
	Authenticates bool

	oid     asn1.ObjectIdentifier
	macOID  asn1.ObjectIdentifier // the same cipher with OMAC, nil if there is none
	keySize int
	// parameters draws parameters from rand. cmsSet is for GOST 28147-89.
	parameters func(rand io.Reader, box *gost28147.SBox) (contentState, error)
	// read reads the parameters of a message.
	read func(params []byte) (contentState, error)
}

// The ciphers for contents.
var (
	// GOST28147 is GOST 28147-89 in CFB with key meshing (RFC 4490, section 5.1).
	GOST28147 = &ContentCipher{
		Name: "28147-89", oid: asn1.ObjectIdentifier{1, 2, 643, 2, 2, 21}, keySize: 32, parameters: newCFB, read: readCFB,
	}
	// Magma and Kuznyechik are the ciphers of GOST R 34.12-2015 in CTR-ACPKM, with or without OMAC
	// (R 1323565.1.025-2019).
	Magma = &ContentCipher{
		Name: "Magma", Authenticates: true, keySize: 32,
		oid: asn1.ObjectIdentifier{1, 2, 643, 7, 1, 1, 5, 1, 1}, macOID: asn1.ObjectIdentifier{1, 2, 643, 7, 1, 1, 5, 1, 2},
		parameters: magmaACPKM.draw, read: magmaACPKM.read,
	}
	Kuznyechik = &ContentCipher{
		Name: "Kuznyechik", Authenticates: true, keySize: 32,
		oid: asn1.ObjectIdentifier{1, 2, 643, 7, 1, 1, 5, 2, 1}, macOID: asn1.ObjectIdentifier{1, 2, 643, 7, 1, 1, 5, 2, 2},
		parameters: kuznyechikACPKM.draw, read: kuznyechikACPKM.read,
	}
	// AES128CBC to AES256CBC have no authentication code (RFC 3565).
	AES128CBC = &ContentCipher{Name: "AES128-CBC", oid: aesOID(2), keySize: 16, parameters: newCBC, read: readCBC}
	AES192CBC = &ContentCipher{Name: "AES192-CBC", oid: aesOID(22), keySize: 24, parameters: newCBC, read: readCBC}
	AES256CBC = &ContentCipher{Name: "AES256-CBC", oid: aesOID(42), keySize: 32, parameters: newCBC, read: readCBC}
	// AES128GCM to AES256GCM make an AuthEnvelopedData (RFC 5084, section 3.2).
	AES128GCM = &ContentCipher{Name: "AES128-GCM", Authenticates: true, oid: aesOID(6), keySize: 16, parameters: newGCM, read: readGCM}
	AES192GCM = &ContentCipher{Name: "AES192-GCM", Authenticates: true, oid: aesOID(26), keySize: 24, parameters: newGCM, read: readGCM}
	AES256GCM = &ContentCipher{Name: "AES256-GCM", Authenticates: true, oid: aesOID(46), keySize: 32, parameters: newGCM, read: readGCM}
)

var contentCiphers = []*ContentCipher{
	GOST28147, Magma, Kuznyechik, AES128CBC, AES192CBC, AES256CBC, AES128GCM, AES192GCM, AES256GCM,
}

// aesOID returns an identifier of AES (NIST, CSOR).
func aesOID(n int) asn1.ObjectIdentifier {
	return asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 1, n}
}

// ContentCiphers returns all ciphers for contents.
func ContentCiphers() []*ContentCipher { return append([]*ContentCipher(nil), contentCiphers...) }

// String returns the name.
func (c *ContentCipher) String() string { return c.Name }

// isGCM reports whether the cipher makes an AuthEnvelopedData.
func (c *ContentCipher) isGCM() bool { return c.Authenticates && c.macOID == nil }

// ContentCipher returns the cipher of the content and whether the message has an authentication code
// over it. The error names a cipher that is not supported.
func (e *Enveloped) ContentCipher() (c *ContentCipher, authenticated bool, err error) {
	for _, c := range contentCiphers {
		mac := c.macOID != nil && c.macOID.Equal(e.Cipher.OID)
		if (mac || c.oid.Equal(e.Cipher.OID)) && c.isGCM() == e.Authenticated {
			return c, mac || c.isGCM(), nil
		}
	}
	return nil, false, suite.Unsupported("content cipher", e.Cipher.OID)
}

// contentState is a cipher with its parameters, for one content.
type contentState interface {
	// write writes the parameters.
	write(w *writer)
	// macSize is the length of the authentication code in bytes. It is 0 without one. mac is set
	// for the ciphers whose code is optional.
	macSize(mac bool) int
	// padded returns the number of encrypted bytes of a content.
	padded(size int64) int64
	// decrypter and encrypter start. aad are the authenticated attributes.
	decrypter(key, aad, code []byte, mac bool) (decrypter, error)
	encrypter(key, aad []byte, mac bool) (encrypter, error)
}

// decrypter decrypts a content in parts. All parts except the last have a length that is a multiple
// of 16. Nothing it returns is checked before right has reported true.
type decrypter interface {
	// decrypt decrypts a part in place and returns the plaintext.
	decrypt(part []byte, last bool) []byte
	// right reports, after the last part, whether the padding and the code are right.
	right() bool
}

// encrypter encrypts a content in parts, like decrypter.
type encrypter interface {
	// encrypt encrypts a part in place and returns the result. A part has 16 spare bytes.
	encrypt(part []byte, last bool) []byte
	// code returns the authentication code after the last part, nil without one.
	code() []byte
}

// stream is a cipher that keeps lengths, with or without a code over the plaintext, which continues
// the gamma.
type stream struct {
	cipher.Stream
	mac  hash.Hash // nil without a code
	want []byte
}

func (s *stream) decrypt(part []byte, _ bool) []byte {
	s.XORKeyStream(part, part)
	if s.mac != nil {
		s.mac.Write(part)
	}
	return part
}

func (s *stream) right() bool {
	return s.mac == nil || subtle.ConstantTimeCompare(s.code(), s.want) == 1
}

func (s *stream) encrypt(part []byte, _ bool) []byte {
	if s.mac != nil {
		s.mac.Write(part)
	}
	s.XORKeyStream(part, part)
	return part
}

func (s *stream) code() []byte {
	if s.mac == nil {
		return nil
	}
	sum := s.mac.Sum(nil)
	s.XORKeyStream(sum, sum)
	return sum
}

// cfb is Gost28147-89-Parameters (RFC 4490, section 5.1).
type cfb struct {
	iv  []byte
	box *gost28147.SBox
}

func newCFB(rand io.Reader, box *gost28147.SBox) (contentState, error) {
	iv, err := draw(rand, gost28147.BlockSize)
	return cfb{iv, box}, err
}

func readCFB(params []byte) (contentState, error) {
	in := cryptobyte.String(params)
	var seq, iv cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !in.Empty() || !seq.ReadASN1(&iv, cbasn1.OCTET_STRING) || len(iv) != gost28147.BlockSize {
		return nil, errors.New("cms: the parameters of GOST 28147-89 are malformed")
	}
	set, ok := readOID(&seq)
	if !ok || !seq.Empty() {
		return nil, errors.New("cms: the parameters of GOST 28147-89 are malformed")
	}
	box, known := suite.SBoxByOID(set)
	if !known {
		return nil, fmt.Errorf("cms: %w", suite.Unsupported("parameter set of GOST 28147-89", set))
	}
	return cfb{iv, box}, nil
}

func (c cfb) write(w *writer) {
	mark := w.len()
	w.oid(suite.SBoxOID(c.box))
	w.wrap(tagOctetString, c.iv)
	w.close(tagSequence, mark)
}

func (c cfb) macSize(bool) int        { return 0 }
func (c cfb) padded(size int64) int64 { return size }

func (c cfb) decrypter(key, _, _ []byte, _ bool) (decrypter, error) {
	s, err := gost28147.NewCFBDecrypter(key, c.iv, c.box, gost28147.CryptoProMeshing)
	return &stream{Stream: s}, err
}

func (c cfb) encrypter(key, _ []byte, _ bool) (encrypter, error) {
	s, err := gost28147.NewCFBEncrypter(key, c.iv, c.box, gost28147.CryptoProMeshing)
	return &stream{Stream: s}, err
}

// acpkmCipher is a cipher of GOST R 34.12-2015 in CTR-ACPKM.
type acpkmCipher struct {
	new     func(key []byte) (cipher.Block, error)
	block   int
	section int // bytes under one key (R 1323565.1.025-2019)
}

var (
	magmaACPKM      = &acpkmCipher{magma.NewCipher, magma.BlockSize, 8 << 10}
	kuznyechikACPKM = &acpkmCipher{kuznyechik.NewCipher, kuznyechik.BlockSize, 256 << 10}
)

// acpkmSeed is the number of bytes of the parameters that derive the keys with OMAC.
const acpkmSeed = 8

// acpkm is Gost3412-15-Encryption-Parameters: half a block for the counter, and the seed.
type acpkm struct {
	*acpkmCipher
	ukm []byte
}

func (c *acpkmCipher) draw(rand io.Reader, _ *gost28147.SBox) (contentState, error) {
	ukm, err := draw(rand, c.block/2+acpkmSeed)
	return acpkm{c, ukm}, err
}

func (c *acpkmCipher) read(params []byte) (contentState, error) {
	in := cryptobyte.String(params)
	var seq, ukm cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !in.Empty() || !seq.ReadASN1(&ukm, cbasn1.OCTET_STRING) || !seq.Empty() ||
		len(ukm) != c.block/2+acpkmSeed {
		return nil, errors.New("cms: the parameters of CTR-ACPKM are malformed")
	}
	return acpkm{c, ukm}, nil
}

func (c acpkm) write(w *writer) {
	mark := w.len()
	w.wrap(tagOctetString, c.ukm)
	w.close(tagSequence, mark)
}

func (c acpkm) padded(size int64) int64 { return size }

func (c acpkm) macSize(mac bool) int {
	if mac {
		return c.block
	}
	return 0
}

func (c acpkm) start(key, code []byte, mac bool) (*stream, error) {
	iv, seed := c.ukm[:c.block/2], c.ukm[c.block/2:]
	s := &stream{want: code}
	if mac {
		keys, err := kdf.Tree(key, []byte("kdf tree"), seed, 1, 2*kdf.BlockSize)
		if err != nil {
			return nil, err
		}
		defer clear(keys)
		key = keys[:kdf.BlockSize]
		b, err := c.new(keys[kdf.BlockSize:])
		if err != nil {
			return nil, err
		}
		s.mac = mode.NewOMAC(b)
	}
	var err error
	s.Stream, err = mode.NewCTRACPKM(c.new, key, iv, c.section)
	return s, err
}

func (c acpkm) decrypter(key, _, code []byte, mac bool) (decrypter, error) {
	return c.start(key, code, mac)
}

func (c acpkm) encrypter(key, _ []byte, mac bool) (encrypter, error) { return c.start(key, nil, mac) }

// cbc is the vector of AES in CBC.
type cbc struct{ iv []byte }

func newCBC(rand io.Reader, _ *gost28147.SBox) (contentState, error) {
	iv, err := draw(rand, aes.BlockSize)
	return cbc{iv}, err
}

func readCBC(params []byte) (contentState, error) {
	in := cryptobyte.String(params)
	var iv cryptobyte.String
	if !in.ReadASN1(&iv, cbasn1.OCTET_STRING) || !in.Empty() || len(iv) != aes.BlockSize {
		return nil, errors.New("cms: the parameters of AES-CBC are malformed")
	}
	return cbc{iv}, nil
}

func (c cbc) write(w *writer)         { w.wrap(tagOctetString, c.iv) }
func (c cbc) macSize(bool) int        { return 0 }
func (c cbc) padded(size int64) int64 { return size - size%aes.BlockSize + aes.BlockSize }

func (c cbc) decrypter(key, _, _ []byte, _ bool) (decrypter, error) {
	b, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return &blocks{BlockMode: cipher.NewCBCDecrypter(b, c.iv)}, nil
}

func (c cbc) encrypter(key, _ []byte, _ bool) (encrypter, error) {
	b, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return &blocks{BlockMode: cipher.NewCBCEncrypter(b, c.iv)}, nil
}

// blocks is a mode with the padding of RFC 5652, section 6.3.
type blocks struct {
	cipher.BlockMode
	good int // 1 if the padding is right
}

func (b *blocks) decrypt(part []byte, last bool) []byte {
	if len(part)%aes.BlockSize != 0 || last && len(part) == 0 {
		return nil // Decrypt has checked the size of the content
	}
	b.CryptBlocks(part, part)
	if !last {
		return part
	}
	n := int(part[len(part)-1])
	good := subtle.ConstantTimeLessOrEq(1, n) & subtle.ConstantTimeLessOrEq(n, aes.BlockSize)
	for i := range aes.BlockSize {
		inside := subtle.ConstantTimeLessOrEq(i+1, n)
		same := subtle.ConstantTimeByteEq(part[len(part)-1-i], byte(n))
		good &= subtle.ConstantTimeSelect(inside, same, 1)
	}
	b.good = good
	return part[:len(part)-subtle.ConstantTimeSelect(good, n, 0)]
}

func (b *blocks) right() bool { return b.good == 1 }

func (b *blocks) encrypt(part []byte, last bool) []byte {
	if last {
		n := aes.BlockSize - len(part)%aes.BlockSize
		for range n {
			part = append(part, byte(n))
		}
	}
	b.CryptBlocks(part, part)
	return part
}

func (b *blocks) code() []byte { return nil }

// draw returns n bytes of rand.
func draw(rand io.Reader, n int) ([]byte, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(rand, b); err != nil {
		return nil, fmt.Errorf("cms: random source: %w", err)
	}
	return b, nil
}
