// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"errors"
	"fmt"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/ocsp"
)

// Archive time stamps cover fields of a message as they are in it. The functions of this file return
// such fields.

// Fields returns the fields of the SignerInfo up to the signature, each as a whole element as it is in
// the message. The signed attributes have their tag [0].
func (s *SignerInfo) Fields() ([][]byte, error) {
	fields, err := split(s.Raw)
	if err != nil {
		return nil, err
	}
	if last := len(fields) - 1; last >= 0 && fields[last][0] == tagContext1 {
		fields = fields[:last]
	}
	return fields, nil
}

// Parts returns the type and each value of the attribute, as whole elements as they are in the message.
func (a Attribute) Parts() (oid []byte, values [][]byte, err error) {
	fields, err := split(a.Encoded)
	if err != nil {
		return nil, nil, err
	}
	if len(fields) != 2 {
		return nil, nil, errors.New("cms: an attribute is malformed")
	}
	values, err = split(fields[1])
	return fields[0], values, err
}

// FieldsInDER reports whether the headers of the fields certificates and crls are DER, as Rewrite writes
// them.
func (m *Message) FieldsInDER() bool {
	for _, f := range []struct {
		Range
		elements [][]byte
	}{{m.CertificateSet, m.Certificates}, {m.RevocationInfo, m.CRLs}} {
		n := int64(size(f.elements))
		if f.Length > 0 && (n == 0 || f.Length != 1+int64(lengthLen(n))+n) {
			return false
		}
	}
	return true
}

// UnsignedField returns the field unsignedAttrs with other attributes, whose whole encodings are given.
func UnsignedField(attrs [][]byte) []byte { return wrap(tagContext1, attrs...) }

// OCSPAnswers parses the OCSP answers among the CRLs of the message (RFC 5940). It treats errors as
// X509 does, and skips other revocation formats.
func (m *Message) OCSPAnswers() (answers []*ocsp.Basic, err error) {
	for i, raw := range m.CRLs {
		if raw[0] != tagContext1 {
			continue
		}
		b, e := readAnswer(raw)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("cms: crl %d: %w", i, e))
		} else if b != nil {
			answers = append(answers, b)
		}
	}
	return answers, err
}

// readAnswer reads an OtherRevocationInfoFormat. It returns nil for one of another kind.
func readAnswer(raw []byte) (*ocsp.Basic, error) {
	der, err := toDER(raw)
	if err != nil {
		return nil, err
	}
	in := cryptobyte.String(der)
	var body, info cryptobyte.String
	var tag cbasn1.Tag
	if !in.ReadASN1(&body, tagAttrs1) {
		return nil, errors.New("malformed")
	}
	oid, ok := readOID(&body)
	if !ok || !body.ReadAnyASN1Element(&info, &tag) || !body.Empty() {
		return nil, errors.New("malformed")
	}
	switch {
	case oid.Equal(ocsp.OIDBasic): // as older programs write it
		return ocsp.ParseBasic(info)
	case oid.Equal(oidOCSPResponse):
		r, err := ocsp.Parse(info)
		if err != nil {
			return nil, err
		}
		if r.Basic == nil {
			return nil, errors.New("the OCSP response has no answer")
		}
		return r.Basic, nil
	}
	return nil, nil
}

// OCSPAnswer returns a BasicOCSPResponse as an element of the field crls (id-ri-ocsp-response of RFC
// 5940).
func OCSPAnswer(basic []byte) []byte {
	return wrap(tagContext1, marshalOID(oidOCSPResponse), ocsp.CreateResponse(basic))
}
