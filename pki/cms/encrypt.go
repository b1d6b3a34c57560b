// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/asn1"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/gost/gost28147"
	"tamga/gost/gost3410"
	"tamga/gost/mode"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Encryption selects the form of a message. The zero value is the form that most programs read.
type Encryption struct {
	// Cipher is the cipher of the content. nil: GOST28147 if a recipient has a GOST key, else
	// AES256CBC. GOST28147 serves GOST and RSA keys, Magma and Kuznyechik serve keys of
	// GOST R 34.10-2012, and AES serves RSA and EC keys.
	Cipher *ContentCipher
	// WithoutIntegrity leaves out the authentication code of Magma and Kuznyechik.
	WithoutIntegrity bool
	// Agreement encrypts the key for GOST recipients by key agreement instead of key transport.
	// EC keys always agree, and RSA keys never do.
	Agreement bool
	// OAEP selects RSAES-OAEP with SHA-256 for RSA recipients instead of PKCS #1 v1.5.
	OAEP bool
	// ContentType is the type of the content, which is encrypted as it is. nil: OIDData.
	ContentType asn1.ObjectIdentifier
	// Rand is the random source. nil: the system's generator. The standard library uses the
	// latter for RSA and EC in any case.
	Rand io.Reader
}

// RecipientError says which recipient a message cannot be encrypted for.
type RecipientError struct {
	Index int // in the list of the caller, from 0
	Err   error
}

func (e *RecipientError) Error() string {
	return fmt.Sprintf("cms: recipient %d: %v", e.Index, e.Err)
}

func (e *RecipientError) Unwrap() error { return e.Err }

// Encrypt encrypts content for the recipients and writes the message to dst in constant memory. It
// names the recipients by issuer and serial number. If size is the number of bytes of content, the message
// is DER. If size is -1, the message is BER with indefinite lengths. Content with another number of
// bytes than size is an error. After an error, dst has no complete message.
//
// Encrypt does not check dates, key usage and trust of the certificates. A recipient that the cipher does
// not serve, or whose key cannot receive, is a *RecipientError, before anything is written.
func Encrypt(ctx context.Context, dst io.Writer, content io.Reader, size int64, recipients []*x509gost.Certificate, o Encryption) error {
	if size < -1 || size > 1<<62 {
		return fmt.Errorf("cms: invalid content size %d; it must be -1 (unknown) to 2^62", size)
	}
	if len(recipients) == 0 || len(recipients) > MaxRecipients {
		return fmt.Errorf("cms: %d recipients; there must be 1 to %d", len(recipients), MaxRecipients)
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.ContentType == nil {
		o.ContentType = OIDData
	}
	if o.Cipher == nil {
		o.Cipher = defaultCipher(recipients)
	}
	for i, c := range recipients {
		if err := o.Cipher.serves(c); err != nil {
			return &RecipientError{i, err}
		}
	}
	if o.Cipher.isGCM() && size > gcmMost {
		return fmt.Errorf("cms: the content has more than the %d bytes that AES-GCM encrypts", int64(gcmMost))
	}
	key, err := draw(o.Rand, o.Cipher.keySize)
	if err != nil {
		return err
	}
	defer clear(key)
	m := &envelope{Encryption: o, mac: o.Cipher.Authenticates && (o.Cipher.isGCM() || !o.WithoutIntegrity)}
	if m.state, err = o.Cipher.parameters(o.Rand, contentSet(recipients)); err != nil {
		return err
	}
	for i, c := range recipients {
		info, err := m.recipient(c, key)
		if err != nil {
			return fmt.Errorf("cms: encrypting the key for recipient %d: %w", i, err)
		}
		if m.recipientBytes += len(info); m.recipientBytes > maxHeld { // ParseEnveloped would refuse it
			return fmt.Errorf("cms: the recipients would have more than %d bytes", maxHeld)
		}
		m.infos = append(m.infos, info)
	}
	slices.SortFunc(m.infos, bytes.Compare) // a SET OF in DER
	e, err := m.state.encrypter(key, nil, m.mac)
	if err != nil {
		return err
	}
	if size >= 0 {
		return m.writeDER(ctx, dst, content, size, e)
	}
	return m.writeBER(ctx, dst, content, e)
}

// defaultCipher returns the cipher that serves the recipients.
func defaultCipher(recipients []*x509gost.Certificate) *ContentCipher {
	for _, c := range recipients {
		if c.Suite != nil && c.Suite.IsGOST() {
			return GOST28147
		}
	}
	return AES256CBC
}

// contentSet returns the parameter set of GOST 28147-89 for a content. Programs of the time of
// 34.10-2001 do not know SBoxZ.
func contentSet(recipients []*x509gost.Certificate) *gost28147.SBox {
	for _, c := range recipients {
		if c.Suite == suite.GOST2001 {
			return gost28147.SBoxA
		}
	}
	return gost28147.SBoxZ
}

// serves returns why the key of a content with the cipher cannot be encrypted for a certificate.
func (c *ContentCipher) serves(r *x509gost.Certificate) error {
	if r.Suite == nil {
		return fmt.Errorf("its key cannot receive messages: %w", r.KeyError)
	}
	var ok bool
	switch c {
	case GOST28147:
		ok = r.Suite.IsGOST() || r.Suite == suite.RSASHA256
	case Magma, Kuznyechik:
		ok = r.Suite == suite.GOST2012x256 || r.Suite == suite.GOST2012x512
	default:
		ok = !r.Suite.IsGOST()
	}
	if !ok {
		return fmt.Errorf("the cipher %s does not serve keys of %s", c.Name, r.Suite.Title)
	}
	return nil
}

// envelope is a message that is written.
type envelope struct {
	Encryption
	mac            bool
	state          contentState
	infos          [][]byte // RecipientInfos
	recipientBytes int
	agreed         bool // one of them is a KeyAgreeRecipientInfo
}

// version follows RFC 5652, 6.1, and RFC 5083, 2.1.
func (m *envelope) version() byte {
	if !m.Cipher.isGCM() && (m.agreed || m.mac) {
		return 2
	}
	return 0
}

func (m *envelope) contentType() asn1.ObjectIdentifier {
	if m.Cipher.isGCM() {
		return OIDAuthEnvelopedData
	}
	return OIDEnvelopedData
}

// end writes the fields after encryptedContentInfo.
func (m *envelope) end(w *writer, code []byte) {
	mark := w.len()
	w.wrap(tagOctetString, code)
	if m.Cipher.isGCM() {
		return
	}
	w.close(tagSet, mark)
	w.oid(OIDContentMAC)
	w.close(tagSequence, mark)
	w.close(tagContext1, mark)
}

// algorithm writes the type of the content and the cipher.
func (m *envelope) algorithm(w *writer) {
	mark := w.len()
	m.state.write(w)
	oid := m.Cipher.oid
	if m.mac && m.Cipher.macOID != nil {
		oid = m.Cipher.macOID
	}
	w.oid(oid)
	w.close(tagSequence, mark)
	w.oid(m.ContentType)
}

// room is more than the headers need besides the recipients.
func (m *envelope) room() int { return m.recipientBytes + 2*headersRoom }

// fields writes the fields before encryptedContentInfo, without the version.
func (m *envelope) fields(w *writer) {
	mark := w.len()
	w.addAll(m.infos)
	w.close(tagSet, mark)
}

func (m *envelope) writeDER(ctx context.Context, dst io.Writer, content io.Reader, size int64, e encrypter) error {
	w := newWriter(m.room())
	if n := m.state.macSize(m.mac); n > 0 {
		m.end(&w, make([]byte, n))
	}
	after := w.len()
	w.skip(m.state.padded(size))
	w.close(tagContext0&^bitConstructed, after) // [0] IMPLICIT OCTET STRING
	m.algorithm(&w)
	w.close(tagSequence, after)
	m.fields(&w)
	w.closeMessage(m.contentType(), m.version())
	head, tail := w.parts(int(after))
	if _, err := dst.Write(head); err != nil {
		return err
	}
	if err := pour(ctx, dst, content, size, e.encrypt); err != nil {
		return err
	}
	if n, err := io.ReadFull(content, make([]byte, 1)); n > 0 || err != io.EOF {
		if err == nil {
			err = fmt.Errorf("cms: the content has more than the %d bytes announced", size)
		}
		return err
	}
	if len(tail) == 0 {
		return nil
	}
	code := e.code()
	copy(tail[len(tail)-len(code):], code) // all that the tail ends with
	_, err := dst.Write(tail)
	return err
}

func (m *envelope) writeBER(ctx context.Context, dst io.Writer, content io.Reader, e encrypter) error {
	const indefinite = 0x80
	var head []byte
	head = append(head, tagSequence, indefinite)
	head = append(head, marshalOID(m.contentType())...)
	head = append(head, tagContext0, indefinite, tagSequence, indefinite)
	w := newWriter(m.room())
	m.fields(&w)
	w.number(m.version())
	head = append(head, w.der()...)
	head = append(head, tagSequence, indefinite)
	w = newWriter(headersRoom)
	m.algorithm(&w)
	head = append(head, w.der()...)
	head = append(head, tagContext0, indefinite)
	if _, err := dst.Write(head); err != nil {
		return err
	}
	buffer := make([]byte, partSize, partSize+16) // room for padding
	defer clear(buffer[:cap(buffer)])
	total := int64(0)
	for last := false; !last; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(content, buffer)
		if last = err == io.EOF || err == io.ErrUnexpectedEOF; err != nil && !last {
			return fmt.Errorf("cms: reading the content: %w", err)
		}
		if total += int64(n); m.Cipher.isGCM() && total > gcmMost {
			return fmt.Errorf("cms: the content has more than the %d bytes that AES-GCM encrypts", int64(gcmMost))
		}
		part := e.encrypt(buffer[:n], last)
		if len(part) == 0 {
			continue
		}
		if _, err := dst.Write(appendHeader(nil, tagOctetString, int64(len(part)))); err != nil {
			return err
		}
		if _, err := dst.Write(part); err != nil {
			return err
		}
	}
	w = newWriter(headersRoom)
	w.add(make([]byte, 6)) // the end marks of the message
	if code := e.code(); code != nil {
		m.end(&w, code)
	}
	w.add(make([]byte, 4)) // the end marks of the content
	_, err := dst.Write(w.der())
	return err
}

// recipient returns the RecipientInfo with a key of the content.
func (m *envelope) recipient(c *x509gost.Certificate, key []byte) ([]byte, error) {
	switch public := c.PublicKey.(type) {
	case *rsa.PublicKey:
		return m.transportRSA(c, public, key)
	case *ecdsa.PublicKey:
		m.agreed = true
		return m.agreeEC(c, public, key)
	case *gost3410.PublicKey:
		m.agreed = m.agreed || m.Agreement
		if m.Cipher == GOST28147 {
			return m.wrap28147(c, public, key)
		}
		return m.export15(c, public, key)
	}
	return nil, fmt.Errorf("its key of type %T cannot receive messages", c.PublicKey)
}

// identifier writes issuerAndSerialNumber.
func (w *writer) identifier(c *x509gost.Certificate) {
	mark := w.len()
	w.wrap(tagInteger, c.SerialNumber)
	w.add(c.RawIssuer)
	w.close(tagSequence, mark)
}

// transport returns a KeyTransRecipientInfo. algorithm writes keyEncryptionAlgorithm.
func transport(c *x509gost.Certificate, key []byte, algorithm func(w *writer)) []byte {
	w := newWriter(headersRoom + len(c.RawIssuer) + len(key))
	w.wrap(tagOctetString, key)
	algorithm(&w)
	w.identifier(c)
	w.number(0) // the version with issuerAndSerialNumber
	w.close(tagSequence, 0)
	return w.der()
}

// agree returns a KeyAgreeRecipientInfo. spki is the key of the sender, nil or not ukm its user keying
// material.
func agree(c *x509gost.Certificate, key, spki, ukm []byte, algorithm func(w *writer)) []byte {
	w := newWriter(2*headersRoom + len(c.RawIssuer) + len(key) + len(spki))
	w.wrap(tagOctetString, key)
	w.identifier(c)
	w.close(tagSequence, 0)
	w.close(tagSequence, 0)
	algorithm(&w)
	if ukm != nil {
		mark := w.len()
		w.wrap(tagOctetString, ukm)
		w.close(tagContext1, mark)
	}
	mark := w.len()
	w.add(spki)
	w.buf[w.at] = tagContext1 // [1] IMPLICIT replaces the tag of a SEQUENCE
	w.close(tagContext0, mark)
	w.number(3)
	w.close(tagContext1, 0)
	return w.der()
}

func (m *envelope) transportRSA(c *x509gost.Certificate, public *rsa.PublicKey, key []byte) ([]byte, error) {
	if !m.OAEP {
		//lint:ignore SA1019 most programs read this form; OAEP is a field of Encryption
		encrypted, err := rsa.EncryptPKCS1v15(m.Rand, public, key)
		if err != nil {
			return nil, err
		}
		return transport(c, encrypted, func(w *writer) { w.algorithm(oidRSA, true) }), nil
	}
	encrypted, err := rsa.EncryptOAEP(sha256.New(), m.Rand, public, key, nil)
	if err != nil {
		return nil, err
	}
	return transport(c, encrypted, func(w *writer) {
		mark := w.len()
		w.algorithm(suite.SHA256.OID, true)
		w.oid(oidMGF1)
		w.close(tagSequence, mark)
		w.close(tagContext1, mark)
		hash := w.len()
		w.algorithm(suite.SHA256.OID, true)
		w.close(tagContext0, hash)
		w.close(tagSequence, mark)
		w.oid(oidOAEP)
		w.close(tagSequence, mark)
	}), nil
}

func (m *envelope) agreeEC(c *x509gost.Certificate, public *ecdsa.PublicKey, key []byte) ([]byte, error) {
	ephemeral, err := ecdsa.GenerateKey(public.Curve, m.Rand)
	if err != nil {
		return nil, err
	}
	spki, err := x509gost.MarshalPublicKey(&ephemeral.PublicKey, suite.ECDSAP256)
	if err != nil {
		return nil, err
	}
	secret, err := agreeEC(ephemeral, public)
	if err != nil {
		return nil, err
	}
	defer clear(secret)
	wrapping := newWriter(16)
	wrapping.algorithm(oidWrapAES256, false)
	kek := deriveX963(suite.SHA256.New, secret, sharedInfo(wrapping.der(), nil, 32), 32)
	defer clear(kek)
	wrapped, err := wrapAES(kek, key)
	if err != nil {
		return nil, err
	}
	return agree(c, wrapped, spki, nil, func(w *writer) {
		mark := w.len()
		w.add(wrapping.der())
		w.oid(oidECDHSHA256)
		w.close(tagSequence, mark)
	}), nil
}

// wrap28147 is for the forms of RFC 4490, section 4.
func (m *envelope) wrap28147(c *x509gost.Certificate, public *gost3410.PublicKey, key []byte) ([]byte, error) {
	box := wrapSet(c.Suite)
	if m.Agreement {
		wrapped, spki, ukm, err := wrapKey28147(m.Rand, c, public, box, key)
		if err != nil {
			return nil, err
		}
		return agree(c, wrapped, spki, ukm, func(w *writer) {
			mark := w.len()
			w.oid(suite.SBoxOID(box))
			w.close(tagSequence, mark)
			w.oid(oidWrapPro28147)
			w.close(tagSequence, mark)
			w.oid(agreementOID(c.Suite))
			w.close(tagSequence, mark)
		}), nil
	}
	der, err := TransportKey(m.Rand, c, box, key)
	if err != nil {
		return nil, err
	}
	algorithm, err := keyAlgorithm(c)
	if err != nil {
		return nil, err
	}
	return transport(c, der, func(w *writer) { w.add(algorithm) }), nil
}

// keyAlgorithm returns the AlgorithmIdentifier of the certificate's key.
func keyAlgorithm(c *x509gost.Certificate) ([]byte, error) {
	in := cryptobyte.String(c.RawSPKI)
	var seq, algorithm cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !seq.ReadASN1Element(&algorithm, cbasn1.SEQUENCE) {
		return nil, errors.New("its key is malformed")
	}
	return algorithm, nil
}

// export15 is for the forms of R 1323565.1.025-2019.
func (m *envelope) export15(c *x509gost.Certificate, public *gost3410.PublicKey, key []byte) ([]byte, error) {
	x := exports[0]
	if m.Cipher == Kuznyechik {
		x = exports[1]
	}
	ephemeral, err := gost3410.GenerateKey(public.Set(), m.Rand)
	if err != nil {
		return nil, err
	}
	defer ephemeral.Wipe()
	spki, err := x509gost.MarshalPublicKey(ephemeral.PublicKey(), c.Suite)
	if err != nil {
		return nil, err
	}
	ukm, err := draw(m.Rand, gost3410.KEGUKMSize)
	if err != nil {
		return nil, err
	}
	keys, err := ephemeral.KEG(public, ukm)
	if err != nil {
		return nil, err
	}
	defer clear(keys)
	exported, err := mode.KExp15(x.new, keys[:32], keys[32:], x.iv(ukm), key)
	if err != nil {
		return nil, err
	}
	algorithm := func(w *writer) {
		mark := w.len()
		w.oid(agreementOID(c.Suite))
		w.close(tagSequence, mark)
		w.oid(x.oid)
		w.close(tagSequence, mark)
	}
	if m.Agreement {
		return agree(c, exported, spki, ukm, algorithm), nil
	}
	w := newWriter(headersRoom + len(spki) + len(exported))
	w.wrap(tagOctetString, ukm)
	w.add(spki)
	w.wrap(tagOctetString, exported)
	w.close(tagSequence, 0)
	return transport(c, w.der(), algorithm), nil
}
