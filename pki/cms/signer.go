// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"bytes"
	"encoding/asn1"
	"errors"
	"fmt"
	"time"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// SignerInfo is one signature of a message, or one countersignature.
type SignerInfo struct {
	// Raw is the element exactly as it is in the message.
	Raw     []byte
	Version int
	// Issuer (a Name as DER) and Serial (the contents of an INTEGER) name the signer's
	// certificate. If they are nil, KeyID (its subjectKeyIdentifier) does.
	Issuer, Serial, KeyID               []byte
	DigestAlgorithm, SignatureAlgorithm Algorithm
	SignedAttrs                         []Attribute
	// RawSignedAttrs is what the signature covers if there are signed attributes: the
	// SET with tag 0x31, in the signer's order. It is nil if there are none.
	RawSignedAttrs []byte
	// Signature is the signature value, without tag and length.
	Signature     []byte
	UnsignedAttrs []Attribute

	definite bool // toDER changed nothing in Raw: every length is definite and no string is in pieces
}

var (
	tagAttrs0 = cbasn1.Tag(0).ContextSpecific().Constructed()
	tagAttrs1 = cbasn1.Tag(1).ContextSpecific().Constructed()
	tagKeyID  = cbasn1.Tag(0).ContextSpecific()
)

// parseSignerInfo reads a SignerInfo in DER or BER. hold, if not nil, is called with a number of
// bytes before they are allocated for attributes.
func parseSignerInfo(raw []byte, hold func(bytes int64) error) (*SignerInfo, error) {
	der, err := toDER(raw)
	if err != nil {
		return nil, err
	}
	s := &SignerInfo{Raw: raw, definite: bytes.Equal(der, raw)}
	in := cryptobyte.String(der)
	var seq cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !in.Empty() || !seq.ReadASN1Integer(&s.Version) {
		return nil, errors.New("SignerInfo is malformed")
	}
	var ok bool
	if s.Issuer, s.Serial, s.KeyID, ok = readIdentifier(&seq); !ok {
		return nil, errors.New("the signer is identified neither by issuer and serial number nor by key identifier")
	}
	if s.DigestAlgorithm, ok = readAlgorithm(&seq); !ok {
		return nil, errors.New("digestAlgorithm is malformed")
	}
	if seq.PeekASN1Tag(tagAttrs0) {
		var attrs cryptobyte.String
		if !seq.ReadASN1(&attrs, tagAttrs0) {
			return nil, errors.New("signedAttrs is malformed")
		}
		if hold != nil {
			if err := hold(int64(len(attrs))); err != nil {
				return nil, err
			}
		}
		s.RawSignedAttrs = wrap(tagSet, attrs)
		if s.SignedAttrs, err = readAttributes(attrs, hold); err != nil {
			return nil, fmt.Errorf("signedAttrs: %w", err)
		}
	}
	if s.SignatureAlgorithm, ok = readAlgorithm(&seq); !ok {
		return nil, errors.New("signatureAlgorithm is malformed")
	}
	var value cryptobyte.String
	if !seq.ReadASN1(&value, cbasn1.OCTET_STRING) {
		return nil, errors.New("the signature value is malformed")
	}
	s.Signature = value
	if seq.PeekASN1Tag(tagAttrs1) {
		var attrs cryptobyte.String
		if !seq.ReadASN1(&attrs, tagAttrs1) {
			return nil, errors.New("unsignedAttrs is malformed")
		}
		if s.UnsignedAttrs, err = readAttributes(attrs, hold); err != nil {
			return nil, fmt.Errorf("unsignedAttrs: %w", err)
		}
	}
	if !seq.Empty() {
		return nil, errors.New("bytes follow the signer's fields")
	}
	if len(s.UnsignedAttrs) > 0 && !s.definite {
		if err := s.asTheyStand(); err != nil {
			return nil, fmt.Errorf("unsignedAttrs: %w", err)
		}
	}
	return s, nil
}

// readIdentifier reads the name of a certificate, by issuer and serial number or by key identifier
// (SignerIdentifier and RecipientIdentifier of RFC 5652).
func readIdentifier(in *cryptobyte.String) (issuer, serial, keyID []byte, ok bool) {
	var id, name, number cryptobyte.String
	if in.PeekASN1Tag(cbasn1.SEQUENCE) {
		ok = in.ReadASN1(&id, cbasn1.SEQUENCE) && id.ReadASN1Element(&name, cbasn1.SEQUENCE) &&
			id.ReadASN1(&number, cbasn1.INTEGER) && len(number) > 0 && id.Empty()
		return name, number, nil, ok
	}
	ok = in.ReadASN1(&id, tagKeyID) && len(id) > 0
	return nil, nil, id, ok
}

// names reports whether readIdentifier has read the name of the certificate.
func names(c *x509gost.Certificate, issuer, serial, keyID []byte) bool {
	if keyID != nil {
		return bytes.Equal(keyID, c.SubjectKeyID)
	}
	// Programs that encode the name again may choose another string type.
	return x509gost.SameInteger(serial, c.SerialNumber) && x509gost.SameName(issuer, c.RawIssuer)
}

// asTheyStand sets the field Encoded of the unsigned attributes of a SignerInfo that is not DER.
func (s *SignerInfo) asTheyStand() error {
	fields, err := split(s.Raw)
	if err != nil {
		return err
	}
	attrs, err := split(fields[len(fields)-1])
	if err != nil {
		return err
	}
	if len(attrs) != len(s.UnsignedAttrs) {
		return errors.New("malformed")
	}
	for i, a := range attrs {
		s.UnsignedAttrs[i].Encoded = a
	}
	return nil
}

func readAttributes(in cryptobyte.String, hold func(bytes int64) error) ([]Attribute, error) {
	room := min(countElements(in), maxAttrs)
	if hold != nil {
		if err := hold((sizeOfAttribute + sizeOfValue) * int64(room)); err != nil {
			return nil, err
		}
	}
	out := make([]Attribute, 0, room)
	all := make([][]byte, 0, cap(out)) // the values of all attributes: most have one
	values := 0
	for !in.Empty() {
		if len(out) == maxAttrs {
			return nil, fmt.Errorf("more than %d attributes", maxAttrs)
		}
		var raw, seq, set cryptobyte.String
		if !in.ReadASN1Element(&raw, cbasn1.SEQUENCE) {
			return nil, errors.New("an attribute is malformed")
		}
		a := Attribute{Raw: raw, Encoded: raw}
		var ok bool
		copy := raw
		if !copy.ReadASN1(&seq, cbasn1.SEQUENCE) {
			return nil, errors.New("an attribute is malformed")
		}
		if a.OID, ok = readOID(&seq); !ok || !seq.ReadASN1(&set, cbasn1.SET) || !seq.Empty() {
			return nil, errors.New("an attribute is malformed")
		}
		mark := len(all)
		for !set.Empty() {
			var value cryptobyte.String
			var tag cbasn1.Tag
			if !set.ReadAnyASN1Element(&value, &tag) {
				return nil, fmt.Errorf("the values of attribute %v are malformed", a.OID)
			}
			if values++; values > maxValues {
				return nil, fmt.Errorf("more than %d values of attributes", maxValues)
			}
			var err error
			if all, err = withRoom(all, sizeOfValue, hold); err != nil {
				return nil, err
			}
			all = append(all, value)
		}
		if len(all) > mark {
			a.Values = all[mark:len(all):len(all)]
		}
		out = append(out, a)
	}
	return out, nil
}

// countElements returns the number of elements of DER up to the first malformed one.
func countElements(in cryptobyte.String) (n int) {
	var element cryptobyte.String
	var tag cbasn1.Tag
	for in.ReadAnyASN1Element(&element, &tag) {
		n++
	}
	return n
}

// SignedAttribute returns the value of a signed attribute that may occur once with one
// value. ok is false when the attribute is absent. err reports an attribute that occurs
// several times or does not have exactly one value.
func (s *SignerInfo) SignedAttribute(oid asn1.ObjectIdentifier) (value []byte, ok bool, err error) {
	for _, a := range s.SignedAttrs {
		if !a.OID.Equal(oid) {
			continue
		}
		if ok {
			return nil, true, fmt.Errorf("attribute %v is there more than once", oid)
		}
		if len(a.Values) != 1 {
			return nil, true, fmt.Errorf("attribute %v has %d values; it must have one", oid, len(a.Values))
		}
		value, ok = a.Values[0], true
	}
	return value, ok, nil
}

// SigningTime returns the time that the signer claims. ok is false when there is none or it
// is malformed.
func (s *SignerInfo) SigningTime() (t time.Time, ok bool) {
	value, ok, err := s.SignedAttribute(OIDSigningTime)
	if !ok || err != nil {
		return time.Time{}, false
	}
	if t, ok := usualTime(value); ok {
		return t, true
	}
	in := cryptobyte.String(value)
	if in.PeekASN1Tag(cbasn1.UTCTime) {
		ok = in.ReadASN1UTCTime(&t)
	} else {
		ok = in.ReadASN1GeneralizedTime(&t)
	}
	if !ok || !in.Empty() {
		return time.Time{}, false
	}
	return t.UTC(), true
}

// usualTime reads a UTCTime with seconds in UTC, such as 261123235959Z, the form that nearly every
// message has, without the two passes over a layout of package time. It reports false for all other
// forms and for malformed times.
func usualTime(der []byte) (time.Time, bool) {
	const form = "\x17\x0dYYMMDDhhmmssZ"
	if len(der) != len(form) || der[0] != form[0] || der[1] != form[1] || der[len(der)-1] != 'Z' {
		return time.Time{}, false
	}
	var pairs [6]int
	for i := range pairs {
		tens, ones := der[2+2*i]-'0', der[3+2*i]-'0'
		if tens > 9 || ones > 9 {
			return time.Time{}, false
		}
		pairs[i] = int(tens)*10 + int(ones)
	}
	year, month, day := 1900+pairs[0], time.Month(pairs[1]), pairs[2]
	if pairs[0] < 50 { // RFC 5280, 4.1.2.5.1
		year += 100
	}
	if pairs[3] > 23 || pairs[4] > 59 || pairs[5] > 59 {
		return time.Time{}, false
	}
	t := time.Date(year, month, day, pairs[3], pairs[4], pairs[5], 0, time.UTC)
	// Date moves a day that the month lacks into another month.
	return t, t.Month() == month && t.Day() == day
}

// Hash returns the digest algorithm. The error names an unknown one.
func (s *SignerInfo) Hash() (*suite.Hash, error) {
	h, ok := suite.HashByOID(s.DigestAlgorithm.OID)
	if !ok {
		return nil, suite.Unsupported("digest algorithm", s.DigestAlgorithm.OID)
	}
	return h, nil
}

// Names reports whether the signer info names the certificate as its signer's.
func (s *SignerInfo) Names(c *x509gost.Certificate) bool {
	return names(c, s.Issuer, s.Serial, s.KeyID)
}

// FindCertificate returns the signer's certificate, or nil when it is not in certs.
func (s *SignerInfo) FindCertificate(certs []*x509gost.Certificate) *x509gost.Certificate {
	for _, c := range certs {
		if s.Names(c) {
			return c
		}
	}
	return nil
}

// Countersignatures returns the signatures over the value of this one, from all attributes
// and all their values. Each may have countersignatures of its own. For malformed values it
// returns an error together with the others.
func (s *SignerInfo) Countersignatures() ([]*SignerInfo, error) {
	return countersignatures(s.UnsignedAttrs)
}

func countersignatures(attrs []Attribute) (out []*SignerInfo, err error) {
	for _, a := range attrs {
		if !a.OID.Equal(OIDCountersignature) {
			continue
		}
		for _, v := range a.Values {
			c, e := parseSignerInfo(v, nil)
			if e != nil {
				err = errors.Join(err, fmt.Errorf("cms: countersignature: %w", e))
				continue
			}
			out = append(out, c)
		}
	}
	return out, err
}

// X509 parses the certificates of the message. It returns those that parse, and an error
// that says what is wrong with the others. Other messages may share the results.
func (m *Message) X509() (certs []*x509gost.Certificate, err error) {
	for i, raw := range m.Certificates {
		if raw[0] != tagSequence {
			continue // attribute certificates and other formats
		}
		c, e := x509gost.ParseShared(raw)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("cms: certificate %d: %w", i, e))
			continue
		}
		certs = append(certs, c)
	}
	return certs, err
}

// RevocationLists parses the CRLs of the message. It treats errors as X509 does.
func (m *Message) RevocationLists() (lists []*x509gost.RevocationList, err error) {
	for i, raw := range m.CRLs {
		if raw[0] != tagSequence {
			continue // other revocation formats
		}
		l, e := x509gost.ParseRevocationList(raw)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("cms: crl %d: %w", i, e))
			continue
		}
		lists = append(lists, l)
	}
	return lists, err
}
