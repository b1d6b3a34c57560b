// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"bytes"
	"context"
	"crypto"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/asn1"
	"errors"
	"fmt"
	"hash"
	"slices"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/gost/gost28147"
	"tamga/gost/gost3410"
	"tamga/gost/kuznyechik"
	"tamga/gost/magma"
	"tamga/gost/mode"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Algorithms that encrypt keys.
var (
	oidRSA  = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}
	oidOAEP = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 7}
	oidMGF1 = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 8}

	oidPSpecified   = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 9}
	oidECKey        = asn1.ObjectIdentifier{1, 2, 840, 10045, 2, 1}
	oidP256         = asn1.ObjectIdentifier{1, 2, 840, 10045, 3, 1, 7}
	oidECDHSHA256   = asn1.ObjectIdentifier{1, 3, 132, 1, 11, 1} // dhSinglePass-stdDH-sha256kdf-scheme
	oidWrapAES256   = aesOID(45)
	oidWrap28147    = asn1.ObjectIdentifier{1, 2, 643, 2, 2, 13, 0} // id-Gost28147-89-None-KeyWrap
	oidWrapPro28147 = asn1.ObjectIdentifier{1, 2, 643, 2, 2, 13, 1} // id-Gost28147-89-CryptoPro-KeyWrap
)

// agreements has the identifiers of key agreement by the suites of the keys: R 1323565.1.023 and, for
// 2001, RFC 4490, section 4.1.1. The first one of a suite is written.
var agreements = []struct {
	oid asn1.ObjectIdentifier
	key *suite.Suite
}{
	{asn1.ObjectIdentifier{1, 2, 643, 2, 2, 96}, suite.GOST2001},
	{asn1.ObjectIdentifier{1, 2, 643, 2, 2, 98}, suite.GOST2001},
	{asn1.ObjectIdentifier{1, 2, 643, 7, 1, 1, 6, 1}, suite.GOST2012x256},
	{asn1.ObjectIdentifier{1, 2, 643, 7, 1, 1, 6, 2}, suite.GOST2012x512},
}

// isAgreement reports whether an identifier is that of key agreement with keys of the suite.
func isAgreement(oid asn1.ObjectIdentifier, s *suite.Suite) bool {
	for _, row := range agreements {
		if row.key == s && row.oid.Equal(oid) {
			return true
		}
	}
	return false
}

// agreementOID returns the identifier of key agreement with keys of a GOST suite.
func agreementOID(s *suite.Suite) asn1.ObjectIdentifier {
	for _, row := range agreements {
		if row.key == s {
			return row.oid
		}
	}
	return nil
}

// exports has the ciphers of KExp15 (R 1323565.1.025-2019).
var exports = []*export{
	{asn1.ObjectIdentifier{1, 2, 643, 7, 1, 1, 7, 1, 1}, magma.NewCipher, magma.BlockSize},
	{asn1.ObjectIdentifier{1, 2, 643, 7, 1, 1, 7, 2, 1}, kuznyechik.NewCipher, kuznyechik.BlockSize},
}

type export struct {
	oid   asn1.ObjectIdentifier
	new   func(key []byte) (cipher.Block, error)
	block int
}

// iv returns the vector of KExp15 from the end of the UKM of KEG.
func (x *export) iv(ukm []byte) []byte { return ukm[24 : 24+x.block/2] }

// ecdhHashes has the hashes of ECDH with the derivation of X9.63, by the identifiers of the scheme
// without and with the cofactor, which is 1 for the curves in use (RFC 5753, section 7.1.4).
var ecdhHashes = []struct {
	oid  asn1.ObjectIdentifier
	hash *suite.Hash
}{
	{asn1.ObjectIdentifier{1, 3, 133, 16, 840, 63, 0, 2}, suite.SHA1},
	{asn1.ObjectIdentifier{1, 3, 133, 16, 840, 63, 0, 3}, suite.SHA1},
	{asn1.ObjectIdentifier{1, 3, 132, 1, 11, 0}, suite.SHA224},
	{asn1.ObjectIdentifier{1, 3, 132, 1, 14, 0}, suite.SHA224},
	{oidECDHSHA256, suite.SHA256},
	{asn1.ObjectIdentifier{1, 3, 132, 1, 14, 1}, suite.SHA256},
	{asn1.ObjectIdentifier{1, 3, 132, 1, 11, 2}, suite.SHA384},
	{asn1.ObjectIdentifier{1, 3, 132, 1, 14, 2}, suite.SHA384},
	{asn1.ObjectIdentifier{1, 3, 132, 1, 11, 3}, suite.SHA512},
	{asn1.ObjectIdentifier{1, 3, 132, 1, 14, 3}, suite.SHA512},
}

// unwrapper returns the key of the content. Its error is ErrDecrypt for everything that a wrong key
// causes, and also for a key of the sender that does not fit: the sender chooses it.
type unwrapper func(ctx context.Context, o Opening, e *Enveloped) ([]byte, error)

var errEncryptedKey = errors.New("cms: the encrypted key is malformed")

// unwrapper reads an encrypted key for a certificate. It returns an error if the key is malformed, not
// supported or not for such a certificate. size is the length of the key of the content.
func (r *Recipient) unwrapper(c *x509gost.Certificate, size int) (unwrapper, error) {
	if c.PublicKey == nil {
		return nil, fmt.Errorf("cms: the key of the certificate: %w", c.KeyError)
	}
	unsupported := fmt.Errorf("cms: %w", suite.Unsupported("key encryption algorithm", r.Algorithm.OID))
	switch public := c.PublicKey.(type) {
	case *gost3410.PublicKey:
		if size != 32 {
			return nil, errors.New("cms: GOST algorithms encrypt keys of 32 bytes only")
		}
		for _, x := range exports {
			if x.oid.Equal(r.Algorithm.OID) {
				return r.imports(x, public, c.Suite)
			}
		}
		// Programs name the key, or its agreement, in both forms.
		if !c.Suite.KeyOID.Equal(r.Algorithm.OID) && !isAgreement(r.Algorithm.OID, c.Suite) {
			return nil, unsupported
		}
		if r.Kind == Agreement {
			return r.agrees28147(public, c.Suite)
		}
		if c.Suite.KeyOID.Equal(r.Algorithm.OID) && r.Algorithm.Params != nil { // those of the key once more
			if err := x509gost.CheckParameters(r.Algorithm.Params, c.Suite, public.Set()); err != nil {
				return nil, fmt.Errorf("cms: keyEncryptionAlgorithm: %w", err)
			}
		}
		der, err := toDER(r.EncryptedKey)
		if err != nil {
			return nil, err
		}
		key, err := ParseTransportedKey(der, c)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, o Opening, _ *Enveloped) ([]byte, error) { return key.Open(ctx, o.Key) }, nil
	case *rsa.PublicKey:
		if r.Kind == Transport {
			return r.transportsRSA(public, size)
		}
	case *ecdsa.PublicKey:
		for _, row := range ecdhHashes {
			if row.oid.Equal(r.Algorithm.OID) && r.Kind == Agreement {
				return r.agreesEC(public, row.hash, size)
			}
		}
	}
	return nil, unsupported
}

// agrees28147 reads a key of a KeyAgreeRecipientInfo (RFC 4490, section 4.1).
func (r *Recipient) agrees28147(public *gost3410.PublicKey, s *suite.Suite) (unwrapper, error) {
	in := cryptobyte.String(r.Algorithm.Params)
	algorithm, ok := readAlgorithm(&in)
	if !ok || !in.Empty() {
		return nil, errors.New("cms: the parameters of the key agreement are malformed")
	}
	diversified := algorithm.OID.Equal(oidWrapPro28147)
	if !diversified && !algorithm.OID.Equal(oidWrap28147) {
		return nil, fmt.Errorf("cms: %w", suite.Unsupported("key wrap", algorithm.OID))
	}
	ukm := r.sender.ukm
	box, wrapUKM := wrapSet(s), ukm
	if algorithm.Params != nil { // Bouncy Castle leaves them out with keys of 2001
		params := cryptobyte.String(algorithm.Params)
		var seq, own cryptobyte.String
		if !params.ReadASN1(&seq, cbasn1.SEQUENCE) || !params.Empty() {
			return nil, errors.New("cms: the parameters of the key wrap are malformed")
		}
		set, ok := readOID(&seq)
		if ok && !seq.Empty() {
			ok = seq.ReadASN1(&own, cbasn1.OCTET_STRING)
			wrapUKM = own
		}
		if !ok || !seq.Empty() {
			return nil, errors.New("cms: the parameters of the key wrap are malformed")
		}
		var known bool
		if box, known = suite.SBoxByOID(set); !known {
			return nil, fmt.Errorf("cms: %w", suite.Unsupported("parameter set of GOST 28147-89", set))
		}
	}
	if len(ukm) != gost28147.UKMSize || len(wrapUKM) != gost28147.UKMSize {
		return nil, fmt.Errorf("cms: the user keying material of a key agreement must have %d bytes", gost28147.UKMSize)
	}
	der, err := toDER(r.EncryptedKey)
	if err != nil {
		return nil, err
	}
	encrypted := cryptobyte.String(der)
	key, err := readKey28147(&encrypted)
	if err != nil || !encrypted.Empty() {
		return nil, errEncryptedKey
	}
	return func(ctx context.Context, o Opening, e *Enveloped) ([]byte, error) {
		peer, err := r.sender.public(o, e, public, s)
		if err != nil {
			return nil, err
		}
		return unwrap28147(ctx, o.Key, peer, s, ukm, key.join(wrapUKM), box, diversified)
	}, nil
}

// key28147 is Gost28147-89-EncryptedKey (RFC 4490, section 4).
type key28147 struct{ encrypted, mac []byte }

func readKey28147(in *cryptobyte.String) (key28147, error) {
	var seq, encrypted, mac cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !seq.ReadASN1(&encrypted, cbasn1.OCTET_STRING) || len(encrypted) != 32 {
		return key28147{}, errEncryptedKey
	}
	if seq.PeekASN1Tag(tagKeyID) {
		return key28147{}, errors.New("cms: an encrypted key with a mask is not supported")
	}
	if !seq.ReadASN1(&mac, cbasn1.OCTET_STRING) || len(mac) != 4 || !seq.Empty() {
		return key28147{}, errEncryptedKey
	}
	return key28147{encrypted, mac}, nil
}

// join returns the form of package gost28147.
func (k key28147) join(ukm []byte) []byte { return slices.Concat(ukm, k.encrypted, k.mac) }

// hash28147 returns the hash of VKO for the wraps of GOST 28147-89. Keys of 2012 have Streebog-256,
// also with 512 bits.
func hash28147(s *suite.Suite) *suite.Hash {
	if s == suite.GOST2001 {
		return suite.GOST94
	}
	return suite.Streebog256
}

// wrapSet returns the parameter set of the wrap for keys of a suite (RFC 4490, section 4; R 1323565.1.025).
func wrapSet(s *suite.Suite) *gost28147.SBox {
	if s == suite.GOST2001 {
		return gost28147.SBoxA
	}
	return gost28147.SBoxZ
}

func unwrap28147(ctx context.Context, own RecipientKey, peer *gost3410.PublicKey, s *suite.Suite, ukm, wrapped []byte, box *gost28147.SBox, diversified bool) ([]byte, error) {
	if peer == nil || isZero(ukm) {
		return nil, ErrDecrypt
	}
	kek, err := own.Agree(ctx, KeyAgreement{Peer: peer, UKM: ukm, Hash: hash28147(s)})
	if err != nil {
		return nil, err
	}
	defer clear(kek)
	unwrap := gost28147.Unwrap
	if diversified {
		unwrap = gost28147.UnwrapCryptoPro
	}
	key, err := unwrap(kek, wrapped, box)
	if errors.Is(err, gost28147.ErrUnwrap) {
		err = ErrDecrypt
	}
	return key, err
}

// isZero reports whether all bytes are zero: VKO does not take such a number.
func isZero(ukm []byte) bool {
	return !slices.ContainsFunc(ukm, func(b byte) bool { return b != 0 })
}

// peerOf returns the key of a SubjectPublicKeyInfo on the curve of the recipient's key and of its suite, nil if it is
// another key or none. The digest that it names is that of the suite, too.
func peerOf(spki []byte, public *gost3410.PublicKey, s *suite.Suite) *gost3410.PublicKey {
	key, of, err := x509gost.ParsePublicKey(spki)
	if err != nil || of != s {
		return nil
	}
	in := cryptobyte.String(spki)
	var seq cryptobyte.String
	in.ReadASN1(&seq, cbasn1.SEQUENCE)
	a, ok := readAlgorithm(&seq)
	if !ok || x509gost.CheckParameters(a.Params, s, public.Set()) != nil {
		return nil
	}
	return fitting(key, public)
}

func fitting(key crypto.PublicKey, public *gost3410.PublicKey) *gost3410.PublicKey {
	if peer, ok := key.(*gost3410.PublicKey); ok && peer.Set().SameCurve(public.Set()) {
		return peer
	}
	return nil
}

// public returns the key of the sender, nil if it is not on the curve of the recipient's key. The
// error is ErrOriginator.
func (s *sender) public(o Opening, e *Enveloped, public *gost3410.PublicKey, of *suite.Suite) (*gost3410.PublicKey, error) {
	if s.key != nil {
		return peerOf(s.key, public, of), nil
	}
	c, err := s.certificate(o, e)
	if err != nil {
		return nil, err
	}
	return fitting(c.PublicKey, public), nil
}

// certificate returns the certificate that the sender is named by.
func (s *sender) certificate(o Opening, e *Enveloped) (*x509gost.Certificate, error) {
	if o.Originator != nil && names(o.Originator, s.issuer, s.serial, s.keyID) {
		return o.Originator, nil
	}
	for _, raw := range e.Originators {
		if raw[0] != tagSequence {
			continue // attribute certificates and other formats
		}
		c, err := x509gost.ParseShared(raw)
		if err == nil && names(c, s.issuer, s.serial, s.keyID) {
			return c, nil
		}
	}
	// A sender can encrypt for itself.
	if names(o.Certificate, s.issuer, s.serial, s.keyID) {
		return o.Certificate, nil
	}
	return nil, ErrOriginator
}

// imports reads a key of KExp15 in either form (R 1323565.1.025-2019).
func (r *Recipient) imports(x *export, public *gost3410.PublicKey, s *suite.Suite) (unwrapper, error) {
	if r.Algorithm.Params != nil { // the agreement, or only the key
		in := cryptobyte.String(r.Algorithm.Params)
		a, ok := readAlgorithm(&in)
		if !ok || !in.Empty() || !isAgreement(a.OID, s) && !s.KeyOID.Equal(a.OID) {
			return nil, fmt.Errorf("cms: the parameters of keyEncryptionAlgorithm name another agreement than that of %s", s.Title)
		}
	}
	der, err := toDER(r.EncryptedKey)
	if err != nil {
		der = r.EncryptedKey // of an agreement: not an element
	}
	exported, ukm := r.EncryptedKey, []byte(nil)
	peer := func(o Opening, e *Enveloped) (*gost3410.PublicKey, error) { return r.sender.public(o, e, public, s) }
	if r.Kind == Transport {
		in := cryptobyte.String(der)
		var seq, key, spki, number cryptobyte.String
		if err != nil || !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !in.Empty() || !seq.ReadASN1(&key, cbasn1.OCTET_STRING) ||
			!seq.ReadASN1Element(&spki, cbasn1.SEQUENCE) || !seq.ReadASN1(&number, cbasn1.OCTET_STRING) || !seq.Empty() {
			return nil, errEncryptedKey
		}
		exported, ukm = key, number
		peer = func(Opening, *Enveloped) (*gost3410.PublicKey, error) { return peerOf(spki, public, s), nil }
	} else {
		ukm = r.sender.ukm
	}
	if len(ukm) != gost3410.KEGUKMSize || len(exported) != 32+x.block {
		return nil, errEncryptedKey
	}
	return func(ctx context.Context, o Opening, e *Enveloped) ([]byte, error) {
		peer, err := peer(o, e)
		if err != nil {
			return nil, err
		}
		if peer == nil {
			return nil, ErrDecrypt
		}
		keys, err := gost3410.KEG(public.Set(), ukm, func(number []byte, _ func() hash.Hash) ([]byte, error) {
			return o.Key.Agree(ctx, KeyAgreement{Peer: peer, UKM: number, Hash: hashKEG(public.Set())})
		})
		if err != nil {
			return nil, err
		}
		defer clear(keys)
		key, err := mode.KImp15(x.new, keys[:32], keys[32:], x.iv(ukm), exported)
		if errors.Is(err, mode.ErrImport) {
			err = ErrDecrypt
		}
		return key, err
	}, nil
}

// hashKEG returns the hash of KEG for keys of a set.
func hashKEG(set *gost3410.Set) *suite.Hash {
	if set.Size() == 64 {
		return suite.Streebog512
	}
	return suite.Streebog256
}

// transportsRSA reads a key for RSA (RFC 3370, section 4.2.1; RFC 4056 for OAEP).
func (r *Recipient) transportsRSA(public *rsa.PublicKey, size int) (unwrapper, error) {
	t := KeyTransport{Ciphertext: r.EncryptedKey, Size: size}
	switch {
	case r.Algorithm.OID.Equal(oidOAEP):
		var err error
		if t.OAEP, err = readOAEP(r.Algorithm.Params); err != nil {
			return nil, err
		}
	case !r.Algorithm.OID.Equal(oidRSA):
		return nil, fmt.Errorf("cms: %w", suite.Unsupported("key encryption algorithm", r.Algorithm.OID))
	}
	if len(t.Ciphertext) != public.Size() {
		return nil, fmt.Errorf("cms: the encrypted key has %d bytes; the RSA key of the recipient has %d", len(t.Ciphertext), public.Size())
	}
	return func(ctx context.Context, o Opening, _ *Enveloped) ([]byte, error) {
		key, err := o.Key.Decrypt(ctx, t)
		if err == nil && len(key) != size {
			clear(key)
			err = ErrDecrypt
		}
		return key, err
	}, nil
}

// readOAEP reads RSAES-OAEP-params (RFC 4055, section 4.1).
func readOAEP(params []byte) (*rsa.OAEPOptions, error) {
	malformed := errors.New("cms: the parameters of RSAES-OAEP are malformed")
	o := &rsa.OAEPOptions{Hash: crypto.SHA1, MGFHash: crypto.SHA1}
	in := cryptobyte.String(params)
	var seq cryptobyte.String
	if len(params) > 0 && (!in.ReadASN1(&seq, cbasn1.SEQUENCE) || !in.Empty()) {
		return nil, malformed
	}
	for n := range 3 {
		var field cryptobyte.String
		var has bool
		if !seq.ReadOptionalASN1(&field, &has, cbasn1.Tag(n).ContextSpecific().Constructed()) {
			return nil, malformed
		}
		if !has {
			continue
		}
		a, ok := readAlgorithm(&field)
		if !ok || !field.Empty() {
			return nil, malformed
		}
		value := cryptobyte.String(a.Params)
		switch n {
		case 0:
			ok = readHash(&a, &o.Hash)
		case 1:
			mgf1 := a.OID.Equal(oidMGF1)
			if a, ok = readAlgorithm(&value); !ok || !value.Empty() || !mgf1 {
				return nil, malformed
			}
			ok = readHash(&a, &o.MGFHash)
		case 2:
			var label cryptobyte.String
			if !a.OID.Equal(oidPSpecified) || !value.ReadASN1(&label, cbasn1.OCTET_STRING) || !value.Empty() {
				return nil, malformed
			}
			o.Label = label
		}
		if !ok {
			return nil, fmt.Errorf("cms: %w", suite.Unsupported("digest of RSAES-OAEP", a.OID))
		}
	}
	if !seq.Empty() {
		return nil, malformed
	}
	return o, nil
}

// readHash sets the hash of the standard library for a digest algorithm.
func readHash(a *Algorithm, into *crypto.Hash) bool {
	for _, row := range []struct {
		hash *suite.Hash
		std  crypto.Hash
	}{{suite.SHA1, crypto.SHA1}, {suite.SHA224, crypto.SHA224}, {suite.SHA256, crypto.SHA256}, {suite.SHA384, crypto.SHA384}, {suite.SHA512, crypto.SHA512}} {
		if row.hash.OID.Equal(a.OID) {
			*into = row.std
			return true
		}
	}
	return false
}

// agreesEC reads a key for ECDH (RFC 5753, section 3.1).
func (r *Recipient) agreesEC(public *ecdsa.PublicKey, h *suite.Hash, size int) (unwrapper, error) {
	in := cryptobyte.String(r.Algorithm.Params)
	algorithm, ok := readAlgorithm(&in)
	if !ok || !in.Empty() {
		return nil, errors.New("cms: the parameters of the key agreement are malformed")
	}
	kekSize := 0
	for _, row := range []struct {
		oid  asn1.ObjectIdentifier
		size int
	}{{aesOID(5), 16}, {aesOID(25), 24}, {oidWrapAES256, 32}} {
		if row.oid.Equal(algorithm.OID) {
			kekSize = row.size
		}
	}
	if kekSize == 0 {
		return nil, fmt.Errorf("cms: %w", suite.Unsupported("key wrap", algorithm.OID))
	}
	if len(r.EncryptedKey) != size+8 {
		return nil, errEncryptedKey
	}
	return func(ctx context.Context, o Opening, e *Enveloped) ([]byte, error) {
		peer, err := r.sender.publicEC(o, e, public)
		if err != nil {
			return nil, err
		}
		if peer == nil {
			return nil, ErrDecrypt
		}
		secret, err := o.Key.Agree(ctx, KeyAgreement{Peer: peer})
		if err != nil {
			return nil, err
		}
		defer clear(secret)
		kek := deriveX963(h.New, secret, sharedInfo(algorithm.Raw, r.sender.ukm, kekSize), kekSize)
		defer clear(kek)
		return unwrapAES(kek, r.EncryptedKey, size)
	}, nil
}

// sharedInfo is ECC-CMS-SharedInfo (RFC 5753, section 7.2). algorithm is the AlgorithmIdentifier of
// the key wrap, and size the length of its key in bytes.
func sharedInfo(algorithm, ukm []byte, size int) []byte {
	w := newWriter(len(algorithm) + len(ukm) + 32)
	w.wrap(tagOctetString, []byte{0, 0, byte(size * 8 >> 8), byte(size * 8)})
	w.close(tagContext2, 0)
	if ukm != nil {
		mark := w.len()
		w.wrap(tagOctetString, ukm)
		w.close(tagContext0, mark)
	}
	w.add(algorithm)
	w.close(tagSequence, 0)
	return w.der()
}

// publicEC is public for an EC key.
func (s *sender) publicEC(o Opening, e *Enveloped, public *ecdsa.PublicKey) (*ecdsa.PublicKey, error) {
	if s.key == nil {
		c, err := s.certificate(o, e)
		if err != nil {
			return nil, err
		}
		if peer, ok := c.PublicKey.(*ecdsa.PublicKey); ok && peer.Curve == public.Curve {
			return peer, nil
		}
		return nil, nil
	}
	in := cryptobyte.String(s.key)
	var seq, bits cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) {
		return nil, nil
	}
	a, ok := readAlgorithm(&seq)
	// The parameters may be absent or NULL: the curve is the recipient's.
	named := a.Params != nil && !bytes.Equal(a.Params, []byte{tagNull, 0})
	if named && (public.Curve != elliptic.P256() || !bytes.Equal(a.Params, marshalOID(oidP256))) {
		return nil, nil
	}
	if !ok || !a.OID.Equal(oidECKey) || !seq.ReadASN1(&bits, cbasn1.BIT_STRING) || len(bits) < 2 || bits[0] != 0 {
		return nil, nil
	}
	peer, err := ecdsa.ParseUncompressedPublicKey(public.Curve, bits[1:])
	if err != nil {
		return nil, nil
	}
	return peer, nil
}
