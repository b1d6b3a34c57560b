// SPDX-License-Identifier: Apache-2.0

package cades

import (
	"bytes"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"tamga/pki/cms"
	"tamga/sig"
)

// Limits for AuthenticatedAttributes.
const (
	maxAttributesText  = 128 << 10 // bytes of the parameter
	maxAttributeValue  = 32 << 10  // bytes of one value
	maxOwnAttributes   = 32
	maxIdentifierArcs  = 32
	authenticatedParam = "AuthenticatedAttributes"
)

// reserved are the attributes that a caller cannot give: those that this package makes,
// and those that RFC 5652, RFC 5126 and EN 319 122-1 allow only unsigned.
var reserved = []struct {
	oid asn1.ObjectIdentifier
	why string
}{
	{cms.OIDContentType, "content-type is added by the service"},
	{cms.OIDMessageDigest, "message-digest is added by the service"},
	{cms.OIDSigningTime, "signing-time is added by the service"},
	{cms.OIDSigningCertificate, "signing-certificate is added by the service"},
	{cms.OIDSigningCertificateV2, "signing-certificate-v2 is added by the service"},
	{cms.OIDCountersignature, "a countersignature is never a signed attribute"},
	{cms.OIDSignatureTimeStamp, "a time stamp of the signature is never a signed attribute"},
	{cms.OIDCertificateRefs, "complete-certificate-references is never a signed attribute"},
	{cms.OIDRevocationRefs, "complete-revocation-references is never a signed attribute"},
	{cms.OIDCertificateValues, "certificate-values is never a signed attribute"},
	{cms.OIDRevocationValues, "revocation-values is never a signed attribute"},
	{cms.OIDEscTimeStamp, "a CAdES-C time stamp is never a signed attribute"},
	{cms.OIDRefsTimeStamp, "a time stamp of references is never a signed attribute"},
	{cms.OIDArchiveTimeStamp, "an archive time stamp is never a signed attribute"},
	{cms.OIDArchiveTimeStampV2, "an archive time stamp is never a signed attribute"},
	{cms.OIDArchiveTimeStampV3, "an archive time stamp is never a signed attribute"},
}

// ownAttributes reads the parameter AuthenticatedAttributes: a JSON object, plain or in
// Base64. It maps object identifiers to Base64 of one DER element each. The result has
// the order of the object; DER sorts the attributes later.
func ownAttributes(r *sig.ParamReader) []cms.Attribute {
	text := r.String(authenticatedParam)
	if text == "" {
		return nil
	}
	attrs, err := readAttributes(text)
	if err != nil {
		r.Fault(authenticatedParam, err.Error())
	}
	return attrs
}

func readAttributes(text string) ([]cms.Attribute, error) {
	if len(text) > maxAttributesText {
		return nil, fmt.Errorf("has %d bytes; at most %d expected", len(text), maxAttributesText)
	}
	object := []byte(text)
	if text[0] != '{' {
		var err error
		if object, err = decodeBase64(text); err != nil {
			return nil, errors.New("is neither a JSON object nor Base64 of one")
		}
	}
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("is not a JSON object from object identifiers to Base64")
	}
	var attrs []cms.Attribute
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, errors.New("is not well-formed JSON")
		}
		name := key.(string) // the decoder allows nothing else here
		token, err := d.Token()
		if err != nil {
			return nil, errors.New("is not well-formed JSON")
		}
		value, ok := token.(string)
		if !ok {
			return nil, fmt.Errorf("%s: the value is not a text with Base64", quote(name))
		}
		if len(attrs) == maxOwnAttributes {
			return nil, fmt.Errorf("has more than %d attributes", maxOwnAttributes)
		}
		a, err := readAttribute(name, value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", quote(name), err)
		}
		for _, b := range attrs {
			if a.OID.Equal(b.OID) {
				return nil, fmt.Errorf("%s: is given twice; once expected", quote(name))
			}
		}
		attrs = append(attrs, a)
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return nil, errors.New("is not well-formed JSON")
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("has data after the JSON object")
	}
	return attrs, nil
}

func readAttribute(name, value string) (a cms.Attribute, err error) {
	oid, err := readIdentifier(name)
	if err != nil {
		return a, err
	}
	for _, x := range reserved {
		if x.oid.Equal(oid) {
			return a, fmt.Errorf("%s; leave it out", x.why)
		}
	}
	der, err := decodeBase64(value)
	if err != nil {
		return a, errors.New("the value is not Base64")
	}
	if len(der) > maxAttributeValue {
		return a, fmt.Errorf("the value has %d bytes; at most %d expected", len(der), maxAttributeValue)
	}
	if !cms.IsDER(der) {
		return a, errors.New("the value is not one well-formed DER element")
	}
	return cms.NewAttribute(oid, der), nil
}

// readIdentifier parses an object identifier in dotted form.
func readIdentifier(s string) (asn1.ObjectIdentifier, error) {
	wrong := errors.New("is not an object identifier such as 1.2.643.7.1")
	parts := strings.Split(s, ".")
	if len(parts) < 2 || len(parts) > maxIdentifierArcs {
		return nil, wrong
	}
	oid := make(asn1.ObjectIdentifier, len(parts))
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 31)
		if err != nil || strconv.FormatUint(n, 10) != p { // a sign or a leading zero
			return nil, wrong
		}
		oid[i] = int(n)
	}
	if oid[0] > 2 || oid[0] < 2 && oid[1] > 39 {
		return nil, wrong
	}
	return oid, nil
}

// decodeBase64 decodes Base64 with or without line breaks.
func decodeBase64(s string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.Join(strings.Fields(s), ""))
}

// quote quotes a text from outside and truncates it, so that an error stays on one line.
func quote(s string) string {
	const most = 60
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return strconv.Quote(s)
}
