// SPDX-License-Identifier: Apache-2.0

package x509gost

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"
)

var oidSignedData = OID{1, 2, 840, 113549, 1, 7, 2}

// Narrow returns a text in UTF-16, with or without a byte order mark, as one byte for each
// character; characters outside of ASCII become question marks. PEM and Base64 have none but in
// comments. Any other input is returned unchanged.
func Narrow(data []byte) []byte {
	if len(data) < 4 {
		return data
	}
	little := data[0] == 0xff && data[1] == 0xfe || data[0] > ' ' && data[1] == 0 && data[2] > ' ' && data[3] == 0
	big := data[0] == 0xfe && data[1] == 0xff || data[0] == 0 && data[1] > ' ' && data[2] == 0 && data[3] > ' '
	if !little && !big || data[0] == byte(cbasn1.SEQUENCE) && data[1] >= 0x80 {
		return data
	}
	high, low := 1, 0
	if big {
		high, low = 0, 1
	}
	out := make([]byte, 0, len(data)/2)
	for ; len(data) >= 2; data = data[2:] {
		switch c := data[low]; {
		case data[high] == 0 && c < 0x80:
			out = append(out, c)
		case len(out) == 0 && (data[high] == 0xfe || data[high] == 0xff): // the byte order mark
		default:
			out = append(out, '?')
		}
	}
	return out
}

// ParseCertificates reads certificates in the forms that people send: DER, PEM with or without
// text around it, and Base64 of DER with or without line breaks, each also in UTF-16. PEM may have
// any number of blocks. Each DER
// value is a certificate or a PKCS #7 container (.p7b). PEM blocks of other kinds are
// skipped. The input must have at least one certificate, and one malformed certificate is
// an error for the whole input.
func ParseCertificates(data []byte) ([]*Certificate, error) {
	list, err := parseBundle(data)
	if err == nil && len(list) == 0 {
		err = errors.New("no certificate found")
	}
	if err != nil {
		return nil, fmt.Errorf("x509gost: certificates: %w", err)
	}
	return list, nil
}

func parseBundle(data []byte) ([]*Certificate, error) {
	if len(data) > MaxBundle {
		return nil, fmt.Errorf("%d bytes are more than the %d allowed", len(data), MaxBundle)
	}
	data = Narrow(data)
	switch {
	case len(data) > 0 && data[0] == byte(cbasn1.SEQUENCE) && !isPEM(data):
		return parseDERBundle(data, nil)
	case isPEM(data):
		return parsePEM(data)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // the byte order mark that some editors write
	der := make([]byte, base64.StdEncoding.DecodedLen(len(data)))
	n, err := base64.StdEncoding.Decode(der, bytes.Join(bytes.Fields(data), nil))
	if err != nil {
		return nil, errors.New("the input is neither DER, nor PEM, nor Base64")
	}
	if n == 0 {
		return nil, nil
	}
	if isPEM(der[:n]) {
		return parsePEM(der[:n])
	}
	return parseDERBundle(der[:n], nil)
}

// isPEM reports whether a text has a PEM block. DER may contain such a text too, in a
// certificate that quotes it, but a certificate has a length of more than one byte, which no text
// has after its first character.
func isPEM(data []byte) bool {
	return len(data) > 1 && (data[0] != byte(cbasn1.SEQUENCE) || data[1] < 0x80) && bytes.Contains(data, []byte("-----BEGIN "))
}

// pemKinds are the block types that hold certificates.
var pemKinds = map[string]bool{
	"CERTIFICATE": true, "X509 CERTIFICATE": true,
	"PKCS7": true, "PKCS #7 SIGNED DATA": true, "CMS": true,
}

func parsePEM(data []byte) (list []*Certificate, err error) {
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return list, nil
		}
		if !pemKinds[block.Type] {
			continue
		}
		if list, err = parseDERBundle(block.Bytes, list); err != nil {
			return nil, err
		}
	}
}

// parseDERBundle appends one certificate, or those of a PKCS #7 container. A container
// begins with an object identifier, a certificate with a SEQUENCE.
func parseDERBundle(der []byte, list []*Certificate) ([]*Certificate, error) {
	var content cryptobyte.String
	in := cryptobyte.String(der)
	if !in.ReadASN1(&content, cbasn1.SEQUENCE) || !in.Empty() {
		return nil, errors.New("not one DER SEQUENCE")
	}
	if content.PeekASN1Tag(cbasn1.OBJECT_IDENTIFIER) {
		return parsePKCS7(content, list)
	}
	return appendCertificate(list, der)
}

func appendCertificate(list []*Certificate, der []byte) ([]*Certificate, error) {
	if len(list) == MaxBundleCount {
		return nil, fmt.Errorf("more than %d certificates", MaxBundleCount)
	}
	c, err := parseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("certificate %d: %w", len(list)+1, err)
	}
	return append(list, c), nil
}

// parsePKCS7 appends certificates [0] of SignedData (RFC 5652, 5.1) and ignores its other
// fields. Package cms reads whole messages.
func parsePKCS7(content cryptobyte.String, list []*Certificate) ([]*Certificate, error) {
	oid, err := readOID(&content)
	if err != nil {
		return nil, err
	}
	if !oid.Equal(oidSignedData) {
		return nil, fmt.Errorf("a PKCS #7 container of type %s holds no certificates", oid)
	}
	var explicit, data, certs cryptobyte.String
	tag := cbasn1.Tag(0).Constructed().ContextSpecific()
	if !content.ReadASN1(&explicit, tag) || !explicit.ReadASN1(&data, cbasn1.SEQUENCE) ||
		!data.SkipASN1(cbasn1.INTEGER) || !data.SkipASN1(cbasn1.SET) || !data.SkipASN1(cbasn1.SEQUENCE) ||
		!data.ReadOptionalASN1(&certs, nil, tag) {
		return nil, errors.New("the PKCS #7 container is not SignedData in DER")
	}
	for !certs.Empty() {
		var element cryptobyte.String
		var kind cbasn1.Tag
		if !certs.ReadAnyASN1Element(&element, &kind) {
			return nil, errors.New("the certificates of the PKCS #7 container are malformed")
		}
		if kind != cbasn1.SEQUENCE {
			continue // attribute certificates and similar
		}
		if list, err = appendCertificate(list, element); err != nil {
			return nil, err
		}
	}
	return list, nil
}
