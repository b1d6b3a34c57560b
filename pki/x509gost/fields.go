// SPDX-License-Identifier: Apache-2.0

package x509gost

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/suite"
)

// The fields below also occur in structures besides certificates: OCSP answers (RFC 6960)
// and time stamps (RFC 3161). Reading is as tolerant as for certificates, but tolerated
// faults are not listed.

// ReadOID reads an OBJECT IDENTIFIER of at most 64 bytes, with arcs up to 63 bits.
func ReadOID(in *cryptobyte.String) (OID, error) { return readOID(in) }

// ReadAlgorithm reads an AlgorithmIdentifier. parameters is the whole element, empty when
// absent.
func ReadAlgorithm(in *cryptobyte.String) (oid OID, parameters []byte, err error) {
	return readAlgorithm(in)
}

// ReadInteger reads the content bytes of an INTEGER of any size: big-endian two's
// complement, at least one byte.
func ReadInteger(in *cryptobyte.String, out *[]byte) bool { return readInteger(in, out) }

// TrimInteger removes leading bytes that a DER INTEGER does not need, so that two
// encodings of one number compare equal.
func TrimInteger(content []byte) []byte { return trimInteger(content) }

// ReadGeneralizedTime reads a GeneralizedTime in the forms of BER, with or without a
// fraction, of at most 32 characters.
func ReadGeneralizedTime(in *cryptobyte.String) (time.Time, error) {
	if !in.PeekASN1Tag(cbasn1.GeneralizedTime) {
		return time.Time{}, fmt.Errorf("not a GeneralizedTime")
	}
	return readTime(in, new(deviations))
}

// AddGeneralizedTime writes a time in UTC and whole seconds. The year must be from 1 to
// 9999.
func AddGeneralizedTime(b *cryptobyte.Builder, t time.Time) {
	b.AddASN1(cbasn1.GeneralizedTime, func(b *cryptobyte.Builder) {
		b.AddBytes([]byte(t.UTC().Format(generalizedTimeForms[0])))
	})
}

// ReadExtensions reads Extensions: a SEQUENCE of at most 128, each at most once.
func ReadExtensions(in *cryptobyte.String) ([]Extension, error) {
	return readExtensionList(in, new(deviations))
}

// AddExtensions writes Extensions.
func AddExtensions(b *cryptobyte.Builder, list []Extension) { addExtensions(b, list) }

// ReadBits reads a BIT STRING of whole bytes.
func ReadBits(in *cryptobyte.String, out *[]byte) bool { return readBits(in, out) }

// ValidReason reports whether a number is a CRLReason (RFC 5280, 5.3.1).
func ValidReason(reason int) bool { return validReason(reason) }

// CheckSigned checks that the certificate's key signed the bytes by the scheme. The error
// wraps suite.ErrSignature when the value does not match.
func (c *Certificate) CheckSigned(s *suite.Scheme, signed, value []byte) error {
	return checkSigned(s, signed, value, c.key())
}

// KeyDigest returns the digest of the key as OCSP defines it (RFC 6960, 4.1.1): over the
// content of the BIT STRING in SubjectPublicKeyInfo, without its count of unused bits. It
// is nil when the certificate's key is not such a BIT STRING.
func (c *Certificate) KeyDigest(h *suite.Hash) []byte {
	in := cryptobyte.String(c.RawSPKI)
	var spki cryptobyte.String
	var bits []byte
	if !in.ReadASN1(&spki, cbasn1.SEQUENCE) || !spki.SkipASN1(cbasn1.SEQUENCE) || !readBits(&spki, &bits) {
		return nil
	}
	return h.Digest(bits).Sum
}

// ParseOID reads an object identifier in dotted form, with at most 32 arcs of at most 31
// bits.
func ParseOID(text string) (OID, error) {
	parts := strings.Split(strings.TrimSpace(text), ".")
	oid := make(OID, 0, min(len(parts), 32))
	for _, p := range parts {
		n, err := strconv.ParseUint(p, 10, 31)
		if err != nil || len(oid) == 32 || len(p) > 1 && p[0] == '0' {
			return nil, errors.New("x509gost: not a dotted object identifier")
		}
		oid = append(oid, int(n))
	}
	if len(oid) < 2 || oid[0] > 2 || oid[0] < 2 && oid[1] > 39 {
		return nil, errors.New("x509gost: not a dotted object identifier")
	}
	return oid, nil
}
