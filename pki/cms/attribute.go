// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"bytes"
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// NewAttribute returns an attribute with values, each a whole DER element.
func NewAttribute(oid asn1.ObjectIdentifier, values ...[]byte) Attribute {
	n := attributeRoom
	for _, v := range values {
		n += len(v)
	}
	w := newWriter(n)
	w.addAll(values)
	w.closeAttribute(oid, 0)
	return Attribute{OID: oid, Raw: w.der(), Encoded: w.der(), Values: values}
}

// attributeRoom is more than the headers and the identifier of most attributes need.
const attributeRoom = 64

// closeAttribute writes what precedes the values of an attribute. The values were written
// since mark.
func (w *writer) closeAttribute(oid asn1.ObjectIdentifier, mark int64) {
	w.close(tagSet, mark)
	w.oid(oid)
	w.close(tagSequence, mark)
}

// attribute returns the one attribute that w holds. It must hold nothing else.
func (w *writer) attribute(oid asn1.ObjectIdentifier) Attribute {
	parts, _ := split(w.der()) // what w wrote is never malformed
	_, n, _, _ := parseHeader(parts[1])
	return Attribute{OID: oid, Raw: w.der(), Encoded: w.der(), Values: [][]byte{parts[1][n:]}}
}

// Contents returns the type and the set of values as they are in the message: the bytes of
// Encoded without the header (and end mark) around them. Time stamps over attributes cover
// these bytes.
func (a Attribute) Contents() []byte {
	parts, err := split(a.Encoded)
	if err != nil {
		return nil // the Attribute is not from Parse or NewAttribute
	}
	return bytes.Join(parts, nil)
}

// ContentType returns the content-type attribute (RFC 5652, 11.1).
func ContentType(contentType asn1.ObjectIdentifier) Attribute {
	w := newWriter(attributeRoom)
	w.contentType(contentType)
	return w.attribute(OIDContentType)
}

func (w *writer) contentType(contentType asn1.ObjectIdentifier) {
	mark := w.len()
	w.oid(contentType)
	w.closeAttribute(OIDContentType, mark)
}

// MessageDigest returns the message-digest attribute (RFC 5652, 11.2).
func MessageDigest(d suite.Digest) Attribute {
	w := newWriter(attributeRoom + len(d.Sum))
	w.messageDigest(d)
	return w.attribute(OIDMessageDigest)
}

// ReadMessageDigest returns the digest in the value of a message-digest attribute.
func ReadMessageDigest(value []byte) (sum []byte, ok bool) {
	in := cryptobyte.String(value)
	ok = in.ReadASN1((*cryptobyte.String)(&sum), cbasn1.OCTET_STRING) && in.Empty()
	return sum, ok
}

func (w *writer) messageDigest(d suite.Digest) {
	mark := w.len()
	w.wrap(tagOctetString, d.Sum)
	w.closeAttribute(OIDMessageDigest, mark)
}

// SigningTime returns the signing-time attribute (RFC 5652, 11.3) in whole seconds:
// UTCTime from 1950 to 2049, GeneralizedTime for other years. The year must have four
// digits.
func SigningTime(t time.Time) (Attribute, error) {
	w := newWriter(attributeRoom)
	if err := w.signingTime(t); err != nil {
		return Attribute{}, err
	}
	return w.attribute(OIDSigningTime), nil
}

func (w *writer) signingTime(t time.Time) error {
	t = t.UTC()
	if t.Year() < 1 || t.Year() > 9999 {
		return fmt.Errorf("cms: signing time %v: the year must be from 1 to 9999", t)
	}
	tag, form := byte(cbasn1.GeneralizedTime), "20060102150405Z"
	if t.Year() >= 1950 && t.Year() < 2050 {
		tag, form = byte(cbasn1.UTCTime), "060102150405Z"
	}
	var text [16]byte
	mark := w.len()
	w.wrap(tag, t.AppendFormat(text[:0], form))
	w.closeAttribute(OIDSigningTime, mark)
	return nil
}

// SigningCertificateV2 returns the signing-certificate-v2 attribute (RFC 5035, 3) with one
// certificate: its digest by h, its issuer and its serial number.
func SigningCertificateV2(c *x509gost.Certificate, h *suite.Hash) Attribute {
	w := newWriter(2*attributeRoom + h.Size + len(c.RawIssuer) + len(c.SerialNumber))
	w.signingCertificateV2(c, h)
	return w.attribute(OIDSigningCertificateV2)
}

func (w *writer) signingCertificateV2(c *x509gost.Certificate, h *suite.Hash) {
	mark := w.len()
	w.wrap(tagInteger, c.SerialNumber)
	names := w.len()
	w.wrap(0xa4, c.RawIssuer) // GeneralNames with one directoryName [4] EXPLICIT
	w.close(tagSequence, names)
	w.close(tagSequence, mark) // IssuerSerial
	w.wrap(tagOctetString, c.Digest(h))
	if h != suite.SHA256 { // the DEFAULT, which DER omits
		w.algorithm(h.OID, false)
	}
	w.close(tagSequence, mark) // ESSCertIDv2
	w.close(tagSequence, mark) // SEQUENCE OF ESSCertIDv2
	w.close(tagSequence, mark) // SigningCertificateV2
	w.closeAttribute(OIDSigningCertificateV2, mark)
}

// Signed holds the contents of the signed attributes that this program writes.
type Signed struct {
	// ContentType is the type of what is signed, nil for a countersignature.
	ContentType asn1.ObjectIdentifier
	// Digest is the digest of what is signed. The reference to the signer's certificate
	// uses the same algorithm.
	Digest      suite.Digest
	Certificate *x509gost.Certificate
	// Time is the claimed signing time, nil for none.
	Time *time.Time
	// Others are additional attributes of other types.
	Others []Attribute
}

// scratches holds buffers for attributes until their order is known.
var scratches = sync.Pool{New: func() any {
	w := newWriter(1024)
	return &w
}}

// Attributes returns the same bytes as BuildSignedAttributes for content-type,
// message-digest, signing-time, signing-certificate-v2 and the others. Only the result is
// on the heap, because every signature calls it.
func (s *Signed) Attributes() ([]byte, error) {
	w := scratches.Get().(*writer)
	defer scratches.Put(w)
	w.at = len(w.buf)
	raws := make([][]byte, 0, 8)
	for _, a := range s.Others {
		raws = append(raws, a.Raw)
	}
	w.signingCertificateV2(s.Certificate, s.Digest.Hash)
	raws = append(raws, w.since(0))
	mark := w.len()
	w.messageDigest(s.Digest)
	raws = append(raws, w.since(mark))
	if s.Time != nil {
		mark = w.len()
		if err := w.signingTime(*s.Time); err != nil {
			return nil, err
		}
		raws = append(raws, w.since(mark))
	}
	if s.ContentType != nil {
		mark = w.len()
		w.contentType(s.ContentType)
		raws = append(raws, w.since(mark))
	}
	return setOf(raws), nil
}

// BuildSignedAttributes returns the bytes that are signed: a DER SET OF the attributes with
// tag 0x31, in the order of their whole encodings (X.690, 11.6).
func BuildSignedAttributes(attrs ...Attribute) []byte {
	raws := make([][]byte, len(attrs))
	for i, a := range attrs {
		raws[i] = a.Raw
	}
	return setOf(raws)
}

// setOf sorts elements in place and returns the SET OF them. It uses insertion sort because
// there are few elements and package slices would move all of them to the heap.
func setOf(elements [][]byte) []byte {
	for i := range elements {
		for j := i; j > 0 && compareDER(elements[j], elements[j-1]) < 0; j-- {
			elements[j], elements[j-1] = elements[j-1], elements[j]
		}
	}
	w := newWriter(size(elements) + 10)
	w.addAll(elements)
	w.close(tagSet, 0)
	return w.der()
}

// compareDER orders encodings as byte strings, the shorter one padded with zero bytes
// (X.690, 11.6). One whole element is never a prefix of another, so a plain comparison
// gives the same order.
func compareDER(a, b []byte) int { return bytes.Compare(a, b) }

// sortedDER reports whether attributes are in the order that DER requires.
func sortedDER(attrs []Attribute) bool {
	return slices.IsSortedFunc(attrs, func(a, b Attribute) int { return compareDER(a.Raw, b.Raw) })
}

// certificateID is the first entry of a signing-certificate attribute.
type certificateID struct {
	hash         *suite.Hash
	sum          []byte
	issuerSerial *x509gost.IssuerSerial // nil when absent
}

// readCertificateID reads the value of signing-certificate (v1: SHA-1) or
// signing-certificate-v2.
func readCertificateID(value []byte, v2 bool) (id certificateID, err error) {
	in := cryptobyte.String(value)
	var seq, ids, first, sum cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !in.Empty() {
		return id, errors.New("is not a SEQUENCE")
	}
	if !seq.ReadASN1(&ids, cbasn1.SEQUENCE) || !ids.ReadASN1(&first, cbasn1.SEQUENCE) {
		return id, errors.New("names no certificate")
	}
	id.hash = suite.SHA1
	if v2 {
		id.hash = suite.SHA256
		if first.PeekASN1Tag(cbasn1.SEQUENCE) {
			a, ok := readAlgorithm(&first)
			if !ok {
				return id, errors.New("has a malformed digest algorithm")
			}
			if id.hash, ok = suite.HashByOID(a.OID); !ok {
				return id, fmt.Errorf("uses the unknown digest algorithm %v", a.OID)
			}
		}
	}
	if !first.ReadASN1(&sum, cbasn1.OCTET_STRING) {
		return id, errors.New("has no certificate digest")
	}
	id.sum = sum
	if first.Empty() {
		return id, nil
	}
	if id.issuerSerial, err = x509gost.ParseIssuerSerial(first); err != nil {
		return id, fmt.Errorf("has an issuerSerial that %w", err)
	}
	return id, nil
}
