// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"encoding/asn1"
	"errors"
	"fmt"
	"io"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/x509gost"
)

// Content types of encrypted messages, and the attribute of R 1323565.1.025 with the
// authentication code of the content.
var (
	OIDEnvelopedData     = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 3}
	OIDAuthEnvelopedData = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 1, 23}
	OIDContentMAC        = asn1.ObjectIdentifier{1, 2, 643, 7, 1, 0, 6, 1, 1}
)

// MaxRecipients is the largest number of recipients of a message that is read or written.
const MaxRecipients = 1 << 14

// Errors of Recipient and Decrypt that a caller may want to tell from the others, with errors.Is.
// The others name a part of the message that is malformed or not supported, or come from the key,
// the source or the sink.
var (
	// ErrDecrypt is the one error for a wrong key, a changed encrypted key, wrong padding and a
	// wrong authentication code.
	ErrDecrypt = errors.New("cms: the message does not decrypt: it was encrypted for another key, or it was changed")
	// ErrNotRecipient means that the message names other certificates only.
	ErrNotRecipient = errors.New("cms: the certificate is not among the recipients of the message")
	// ErrOriginator means that the message names the certificate of its sender, which neither the
	// message nor the caller has.
	ErrOriginator = errors.New("cms: the certificate of the sender is missing: the message only names it")
)

// Enveloped is a parsed EnvelopedData (RFC 5652, section 6) or AuthEnvelopedData (RFC 5083). It
// refers to the reader it was parsed from.
type Enveloped struct {
	Version int
	// Authenticated reports whether the message is an AuthEnvelopedData.
	Authenticated bool
	// Originators has the certificates of originatorInfo, each exactly as it is in the message.
	Originators [][]byte
	// Recipients has one element for each encrypted key, in the order of the message.
	Recipients []*Recipient
	// ContentType is the type of the content. It is nil when its arcs do not fit an int. No
	// authentication code of GOST covers it.
	ContentType asn1.ObjectIdentifier
	// Cipher is contentEncryptionAlgorithm.
	Cipher Algorithm
	// Detached reports whether the message does not include its content.
	Detached bool
	// Content has the ranges of the encrypted bytes, without any headers.
	Content []Range
	// Attributes are the attributes that nothing protects: unprotectedAttrs or unauthAttrs.
	Attributes []Attribute
	// Padding is the number of zero bytes after the message.
	Padding int64

	authAttrs []byte // as a DER SET, nil if absent
	mac       []byte // of AuthEnvelopedData
	source    io.ReaderAt
}

// Recipient is one encrypted key of a message.
type Recipient struct {
	// Kind is the form of the RecipientInfo.
	Kind RecipientKind
	// Issuer and Serial (a Name as DER and the contents of an INTEGER) or KeyID name the
	// certificate. All are nil if Kind is OtherRecipient.
	Issuer, Serial, KeyID []byte
	// Algorithm is keyEncryptionAlgorithm.
	Algorithm Algorithm
	// EncryptedKey is the contents of encryptedKey.
	EncryptedKey []byte

	sender *sender // of an agreement
}

// RecipientKind is a form of RecipientInfo (RFC 5652, section 6.2).
type RecipientKind int

const (
	// OtherRecipient is every form without a certificate, such as passwords and shared keys.
	OtherRecipient RecipientKind = iota
	// Transport is KeyTransRecipientInfo.
	Transport
	// Agreement is KeyAgreeRecipientInfo.
	Agreement
)

// sender has the fields of a KeyAgreeRecipientInfo that its encrypted keys share.
type sender struct {
	issuer, serial, keyID []byte // of its certificate
	key                   []byte // SubjectPublicKeyInfo, nil if the certificate is named
	ukm                   []byte
}

// Names reports whether the encrypted key is for the certificate.
func (r *Recipient) Names(c *x509gost.Certificate) bool {
	return r.Kind != OtherRecipient && names(c, r.Issuer, r.Serial, r.KeyID)
}

// ContentSize returns the number of encrypted bytes.
func (e *Enveloped) ContentSize() int64 { return (&Message{Content: e.Content}).ContentSize() }

// ParseEnveloped reads a ContentInfo with EnvelopedData or AuthEnvelopedData of size bytes, in DER
// or BER, with the limits of Parse and at most MaxRecipients recipients. It decrypts nothing. The
// result keeps r for Decrypt.
func ParseEnveloped(r io.ReaderAt, size int64) (*Enveloped, error) {
	return ParseEnvelopedWithin(r, size, nil)
}

// ParseEnvelopedWithin is ParseEnveloped for a caller that limits memory; see ParseWithin.
func ParseEnvelopedWithin(r io.ReaderAt, size int64, hold func(bytes int64) error) (*Enveloped, error) {
	e := &Enveloped{source: r}
	padding, err := parseMessage(r, size, hold, "EnvelopedData", []asn1.ObjectIdentifier{OIDEnvelopedData, OIDAuthEnvelopedData},
		func(p *parser, oid asn1.ObjectIdentifier, f *fields) error {
			e.Authenticated = oid.Equal(OIDAuthEnvelopedData)
			return p.enveloped(e, f)
		})
	if err != nil {
		return nil, err
	}
	e.Padding = padding
	return e, nil
}

func (p *parser) enveloped(e *Enveloped, f *fields) error {
	der, err := f.takeDER(tagInteger, "version of EnvelopedData")
	if err != nil {
		return err
	}
	if !der.ReadASN1Integer(&e.Version) || e.Version < 0 || e.Version > 4 {
		return errors.New("cms: version of EnvelopedData must be 0 to 4")
	}
	if f.is(tagContext0) {
		if err := p.originatorInfo(e, f); err != nil {
			return err
		}
	}
	if !f.is(tagSet) {
		return fmt.Errorf("cms: at offset %d: recipientInfos expected", f.off)
	}
	raws, err := p.elements(f, "recipientInfos", MaxRecipients)
	if err != nil {
		return err
	}
	for i, raw := range raws {
		if err := e.readRecipient(raw, p.charge); err != nil {
			return fmt.Errorf("cms: recipient %d: %w", i, err)
		}
	}
	if len(e.Recipients) == 0 {
		return errors.New("cms: the message has no recipients")
	}
	if !f.is(tagSequence) {
		return fmt.Errorf("cms: at offset %d: encryptedContentInfo expected", f.off)
	}
	if f.off, err = p.encryptedContentInfo(e, f.next); err != nil {
		return err
	}
	if err := f.load(); err != nil {
		return err
	}
	return p.afterContent(e, f)
}

// afterContent reads the fields after encryptedContentInfo.
func (p *parser) afterContent(e *Enveloped, f *fields) error {
	last := byte(tagContext1)
	if e.Authenticated {
		last = tagContext2
		if f.is(tagContext1) {
			der, err := f.takeDER(tagContext1, "authAttrs")
			if err != nil {
				return err
			}
			e.authAttrs = append([]byte{tagSet}, der[1:]...) // the implicit tag replaces SET
		}
		tag := byte(tagOctetString)
		if f.is(tagOctetString | bitConstructed) { // in pieces
			tag |= bitConstructed
		}
		der, err := f.takeDER(tag, "mac of AuthEnvelopedData")
		if err != nil {
			return err
		}
		var mac cryptobyte.String
		if !der.ReadASN1(&mac, cbasn1.OCTET_STRING) {
			return errors.New("cms: mac of AuthEnvelopedData is malformed")
		}
		e.mac = mac
	}
	if f.is(last) {
		der, err := f.takeDER(last, "unprotectedAttrs")
		if err != nil {
			return err
		}
		var attrs cryptobyte.String
		var tag cbasn1.Tag
		if !der.ReadAnyASN1(&attrs, &tag) {
			return errors.New("cms: unprotectedAttrs is malformed")
		}
		if e.Attributes, err = readAttributes(attrs, p.charge); err != nil {
			return fmt.Errorf("cms: unprotectedAttrs: %w", err)
		}
	}
	if !f.done {
		return fmt.Errorf("cms: at offset %d: bytes follow the fields of EnvelopedData", f.off)
	}
	return nil
}

func (p *parser) originatorInfo(e *Enveloped, f *fields) error {
	g, err := p.fields(f.next, f.depth+1)
	if err != nil {
		return err
	}
	if g.is(tagContext0) {
		if e.Originators, err = p.elements(&g, "certificates of originatorInfo", maxElements); err != nil {
			return err
		}
	}
	if g.is(tagContext1) {
		if _, err := g.take(tagContext1, "crls of originatorInfo"); err != nil {
			return err
		}
	}
	if !g.done {
		return fmt.Errorf("cms: at offset %d: bytes follow the fields of originatorInfo", g.off)
	}
	f.off = g.after
	return f.load()
}

// encryptedContentInfo describes the content without reading it. It returns the offset after the
// element.
func (p *parser) encryptedContentInfo(e *Enveloped, outer element) (int64, error) {
	f, err := p.fields(outer, 3)
	if err != nil {
		return 0, err
	}
	der, err := f.takeDER(tagOID, "contentType of encryptedContentInfo")
	if err != nil {
		return 0, err
	}
	var ok bool
	if e.ContentType, ok = readOID(&der); !ok {
		return 0, errors.New("cms: contentType of encryptedContentInfo is malformed")
	}
	if der, err = f.takeDER(tagSequence, "contentEncryptionAlgorithm"); err != nil {
		return 0, err
	}
	if e.Cipher, ok = readAlgorithm(&der); !ok {
		return 0, errors.New("cms: contentEncryptionAlgorithm is malformed")
	}
	if f.done {
		e.Detached = true
		return f.after, nil
	}
	if f.next.tag&^bitConstructed != tagContext0&^bitConstructed {
		return 0, fmt.Errorf("cms: at offset %d: encryptedContent expected", f.off)
	}
	// The implicit tag replaces OCTET STRING.
	content := f.next
	content.tag = tagOctetString | content.tag&bitConstructed
	if f.off, err = p.octetString(&e.Content, content, 4, "encryptedContent"); err != nil {
		return 0, err
	}
	if err := f.load(); err != nil {
		return 0, err
	}
	if !f.done {
		return 0, fmt.Errorf("cms: at offset %d: bytes follow encryptedContent", f.off)
	}
	return f.after, nil
}

// sizeOfRecipient is the number of bytes of memory for a Recipient.
const sizeOfRecipient = 256

// add adds a recipient. hold, if not nil, is called before memory is allocated.
func (e *Enveloped) add(r *Recipient, hold func(bytes int64) error) (err error) {
	if len(e.Recipients) == MaxRecipients {
		return fmt.Errorf("more than %d recipients", MaxRecipients)
	}
	if e.Recipients, err = withRoom(e.Recipients, sizeOfRecipient, hold); err == nil {
		e.Recipients = append(e.Recipients, r)
	}
	return err
}

// readRecipient reads a RecipientInfo in DER or BER.
func (e *Enveloped) readRecipient(raw []byte, hold func(bytes int64) error) error {
	der, err := toDER(raw)
	if err != nil {
		return err
	}
	in := cryptobyte.String(der)
	var seq cryptobyte.String
	var tag cbasn1.Tag
	if !in.ReadAnyASN1(&seq, &tag) || !in.Empty() {
		return errors.New("RecipientInfo is malformed")
	}
	switch tag {
	case cbasn1.SEQUENCE:
		return e.readTransport(seq, hold)
	case tagAttrs1: // [1]
		return e.readAgreement(seq, hold)
	}
	return e.add(&Recipient{}, hold)
}

// readTransport reads the fields of a KeyTransRecipientInfo.
func (e *Enveloped) readTransport(in cryptobyte.String, hold func(bytes int64) error) error {
	r := &Recipient{Kind: Transport}
	var version int
	if !in.ReadASN1Integer(&version) || version < 0 || version > 2 {
		return errors.New("version of KeyTransRecipientInfo is malformed")
	}
	var ok bool
	if r.Issuer, r.Serial, r.KeyID, ok = readIdentifier(&in); !ok {
		return errors.New("the recipient is identified neither by issuer and serial number nor by key identifier")
	}
	if r.Algorithm, ok = readAlgorithm(&in); !ok {
		return errors.New("keyEncryptionAlgorithm is malformed")
	}
	var key cryptobyte.String
	if !in.ReadASN1(&key, cbasn1.OCTET_STRING) || !in.Empty() {
		return errors.New("encryptedKey is malformed")
	}
	r.EncryptedKey = key
	return e.add(r, hold)
}

// readAgreement reads the fields of a KeyAgreeRecipientInfo.
func (e *Enveloped) readAgreement(in cryptobyte.String, hold func(bytes int64) error) error {
	s := new(sender)
	var version int
	var originator, ukm, keys cryptobyte.String
	var has bool
	if !in.ReadASN1Integer(&version) || version < 0 || version > 3 {
		return errors.New("version of KeyAgreeRecipientInfo is malformed")
	}
	if !in.ReadASN1(&originator, tagAttrs0) { // [0] EXPLICIT
		return errors.New("originator is malformed")
	}
	if err := s.read(originator); err != nil {
		return err
	}
	if !in.ReadOptionalASN1(&ukm, &has, tagAttrs1) { // [1] EXPLICIT
		return errors.New("ukm is malformed")
	}
	if has {
		var value cryptobyte.String
		if !ukm.ReadASN1(&value, cbasn1.OCTET_STRING) || !ukm.Empty() {
			return errors.New("ukm is malformed")
		}
		s.ukm = value
	}
	algorithm, ok := readAlgorithm(&in)
	if !ok {
		return errors.New("keyEncryptionAlgorithm is malformed")
	}
	if !in.ReadASN1(&keys, cbasn1.SEQUENCE) || !in.Empty() || keys.Empty() {
		return errors.New("recipientEncryptedKeys is malformed")
	}
	for !keys.Empty() {
		r := &Recipient{Kind: Agreement, Algorithm: algorithm, sender: s}
		var one, id, key cryptobyte.String
		if !keys.ReadASN1(&one, cbasn1.SEQUENCE) {
			return errors.New("recipientEncryptedKeys is malformed")
		}
		if one.PeekASN1Tag(tagAttrs0) { // [0] IMPLICIT RecipientKeyIdentifier
			ok = one.ReadASN1(&id, tagAttrs0) && id.ReadASN1(&key, cbasn1.OCTET_STRING) && len(key) > 0
			r.KeyID = key
		} else {
			r.Issuer, r.Serial, r.KeyID, ok = readIdentifier(&one)
			ok = ok && r.KeyID == nil
		}
		if !ok {
			return errors.New("the recipient is identified neither by issuer and serial number nor by key identifier")
		}
		if !one.ReadASN1(&key, cbasn1.OCTET_STRING) || !one.Empty() {
			return errors.New("encryptedKey is malformed")
		}
		r.EncryptedKey = key
		if err := e.add(r, hold); err != nil {
			return err
		}
	}
	return nil
}

// read reads OriginatorIdentifierOrKey.
func (s *sender) read(in cryptobyte.String) error {
	if in.PeekASN1Tag(tagAttrs1) { // [1] IMPLICIT OriginatorPublicKey
		var key cryptobyte.String
		if in.ReadASN1(&key, tagAttrs1) && in.Empty() {
			s.key = wrap(tagSequence, key)
			return nil
		}
		return errors.New("originatorKey is malformed")
	}
	var ok bool
	if s.issuer, s.serial, s.keyID, ok = readIdentifier(&in); !ok || !in.Empty() {
		return errors.New("originator is malformed")
	}
	return nil
}
