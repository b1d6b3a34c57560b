package cms

import (
	"bytes"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// NewAttribute makes an attribute of values that are whole DER elements each.
func NewAttribute(oid asn1.ObjectIdentifier, values ...[]byte) Attribute {
	raw := wrap(tagSequence, marshalOID(oid), wrap(tagSet, values...))
	return Attribute{OID: oid, Raw: raw, Encoded: raw, Values: values}
}

// Contents are the type and the set of values as they stand in the message: the
// octets of Encoded without the header (and end mark) around them, which is what
// time stamps over attributes cover.
func (a Attribute) Contents() []byte {
	parts, err := split(a.Encoded)
	if err != nil {
		return nil // not from Parse or NewAttribute
	}
	return bytes.Join(parts, nil)
}

// ContentType is the content-type attribute (RFC 5652, 11.1).
func ContentType(contentType asn1.ObjectIdentifier) Attribute {
	return NewAttribute(OIDContentType, marshalOID(contentType))
}

// MessageDigest is the message-digest attribute (RFC 5652, 11.2).
func MessageDigest(d suite.Digest) Attribute {
	return NewAttribute(OIDMessageDigest, wrap(tagOctets, d.Sum))
}

// SigningTime is the signing-time attribute (RFC 5652, 11.3) to the second:
// UTCTime from 1950 to 2049, GeneralizedTime elsewhere. The year must have four
// digits.
func SigningTime(t time.Time) (Attribute, error) {
	t = t.UTC()
	if t.Year() < 1 || t.Year() > 9999 {
		return Attribute{}, fmt.Errorf("cms: signing time %v: a year from 1 to 9999 expected", t)
	}
	value := wrap(byte(cbasn1.GeneralizedTime), []byte(t.Format("20060102150405Z")))
	if t.Year() >= 1950 && t.Year() < 2050 {
		value = wrap(byte(cbasn1.UTCTime), []byte(t.Format("060102150405Z")))
	}
	return NewAttribute(OIDSigningTime, value), nil
}

// SigningCertificateV2 is the signing-certificate-v2 attribute (RFC 5035, 3) with
// one certificate, its digest by h and its issuer and serial number.
func SigningCertificateV2(c *x509gost.Certificate, h *suite.Hash) Attribute {
	var algorithm []byte
	if h != suite.SHA256 { // the DEFAULT, which DER leaves out
		algorithm = wrap(tagSequence, marshalOID(h.OID))
	}
	issuer := wrap(tagSequence, wrap(0xa4, c.RawIssuer)) // GeneralNames with one directoryName [4] EXPLICIT
	issuerSerial := wrap(tagSequence, issuer, wrap(tagInteger, c.SerialNumber))
	id := wrap(tagSequence, algorithm, wrap(tagOctets, c.Digest(h)), issuerSerial)
	return NewAttribute(OIDSigningCertificateV2, wrap(tagSequence, wrap(tagSequence, id)))
}

// BuildSignedAttributes returns the attributes as what is signed: a DER SET OF
// with tag 0x31, in the order of the whole encodings (X.690, 11.6).
func BuildSignedAttributes(attrs ...Attribute) []byte {
	raws := make([][]byte, len(attrs))
	for i, a := range attrs {
		raws[i] = a.Raw
	}
	slices.SortFunc(raws, compareDER)
	return wrap(tagSet, raws...)
}

// compareDER orders encodings as octet strings, the shorter padded with zero
// octets (X.690, 11.6). Of two whole elements neither is a prefix of the other,
// so a plain comparison is the same.
func compareDER(a, b []byte) int { return bytes.Compare(a, b) }

// sortedDER tells whether attributes stand in the order DER wants.
func sortedDER(attrs []Attribute) bool {
	return slices.IsSortedFunc(attrs, func(a, b Attribute) int { return compareDER(a.Raw, b.Raw) })
}

// certificateID is the first certificate of a signing-certificate attribute.
type certificateID struct {
	hash           *suite.Hash
	sum            []byte
	issuer, serial []byte // a Name as DER and the contents of an INTEGER; nil when absent
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
		return id, errors.New("is without a certificate digest")
	}
	id.sum = sum
	if first.Empty() {
		return id, nil
	}
	var issuerSerial, names, name, serial cryptobyte.String
	if !first.ReadASN1(&issuerSerial, cbasn1.SEQUENCE) || !first.Empty() ||
		!issuerSerial.ReadASN1(&names, cbasn1.SEQUENCE) ||
		!names.ReadASN1(&name, cbasn1.Tag(4).ContextSpecific().Constructed()) || !names.Empty() ||
		!issuerSerial.ReadASN1(&serial, cbasn1.INTEGER) || !issuerSerial.Empty() {
		return id, errors.New("has an issuerSerial that is not one directoryName and a serial number")
	}
	id.issuer, id.serial = name, serial
	return id, nil
}

// marshalOID encodes an identifier of this program or of a parsed structure;
// those are always encodable.
func marshalOID(oid asn1.ObjectIdentifier) []byte {
	if len(oid) < 2 || oid[0] < 0 || oid[0] > 2 || oid[1] < 0 || oid[0] < 2 && oid[1] > 39 {
		panic(fmt.Sprintf("cms: %v is no object identifier", oid))
	}
	// Arcs in groups of seven bits, the highest first, all but the last with the top
	// bit; the first two arcs are one number.
	out := make([]byte, 2, 2+5*len(oid))
	for i, arc := range oid[1:] {
		if arc < 0 {
			panic(fmt.Sprintf("cms: %v is no object identifier", oid))
		}
		n := uint64(arc)
		if i == 0 {
			n += 40 * uint64(oid[0])
		}
		for shift := (max(bits.Len64(n), 1) - 1) / 7 * 7; shift > 0; shift -= 7 {
			out = append(out, 0x80|byte(n>>shift))
		}
		out = append(out, byte(n)&0x7f)
	}
	if len(out)-2 > 127 { // longer than any that is known
		return append(appendHeader(nil, byte(cbasn1.OBJECT_IDENTIFIER), int64(len(out)-2)), out[2:]...)
	}
	out[0], out[1] = byte(cbasn1.OBJECT_IDENTIFIER), byte(len(out)-2)
	return out
}
