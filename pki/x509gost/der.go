// SPDX-License-Identifier: Apache-2.0

package x509gost

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/suite"
)

// deviations collects tolerated faults. It drops repetitions and limits their number.
type deviations []string

const maxDeviations = 32

func (d *deviations) add(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for _, known := range *d {
		if known == text {
			return
		}
	}
	if len(*d) < maxDeviations {
		*d = append(*d, text)
	}
}

// signed is the common shape of certificates, requests and revocation lists:
// SEQUENCE { what is signed, AlgorithmIdentifier, BIT STRING }.
type signed struct {
	raw, rawTBS  []byte
	body         cryptobyte.String // content of what is signed
	rawAlgorithm []byte            // the outer AlgorithmIdentifier
	oid          OID
	parameters   []byte // of the algorithm, a whole element or empty
	signature    []byte
}

func readSigned(der []byte, limit int, faults *deviations) (signed, error) {
	s := signed{raw: der}
	if len(der) > limit {
		return s, fmt.Errorf("%d bytes are more than the %d allowed", len(der), limit)
	}
	in := cryptobyte.String(der)
	var outer, tbs, algorithm cryptobyte.String
	if !in.ReadASN1(&outer, cbasn1.SEQUENCE) {
		return s, errors.New("not a DER SEQUENCE")
	}
	if !in.Empty() {
		return s, fmt.Errorf("%d bytes follow the end", len(in))
	}
	if !outer.ReadASN1Element(&tbs, cbasn1.SEQUENCE) {
		return s, errors.New("the signed part is not a SEQUENCE")
	}
	s.rawTBS = tbs
	tbs.ReadASN1(&s.body, cbasn1.SEQUENCE)
	if !outer.ReadASN1Element(&algorithm, cbasn1.SEQUENCE) {
		return s, errors.New("the signature algorithm is not an AlgorithmIdentifier")
	}
	s.rawAlgorithm = algorithm
	if !readBits(&outer, &s.signature) || !outer.Empty() {
		return s, errors.New("the signature is not a final BIT STRING of whole bytes")
	}
	oid, parameters, err := readAlgorithm(&algorithm)
	if err != nil {
		return s, fmt.Errorf("signature algorithm: %w", err)
	}
	s.oid, s.parameters = oid, parameters
	return s, checkSignatureParameters(oid, parameters, faults)
}

// checkSignatureParameters refuses parameters where the algorithm has none. NULL is
// tolerated, because some programs write it. It does not check algorithms that are not
// supported, and leaves the parameters of RSA-PSS to the check of the signature.
func checkSignatureParameters(oid OID, parameters []byte, faults *deviations) error {
	_, deviation, err := suite.SchemeByOID(oid, parameters)
	if err != nil && (errors.Is(err, suite.ErrUnsupported) || oid.Equal(suite.OIDPSS)) {
		return nil
	}
	if deviation != "" {
		faults.add("%s", deviation)
	}
	return err
}

// schemeOf returns the scheme of a signatureAlgorithm.
func schemeOf(oid OID, parameters []byte) (*suite.Scheme, error) {
	s, _, err := suite.SchemeByOID(oid, parameters)
	return s, err
}

// checkSigned verifies a signature over the exact bytes received.
func checkSigned(s *suite.Scheme, tbs, value []byte, key *keyInfo) error {
	if key.Public == nil {
		return fmt.Errorf("the signer's key cannot be used: %w", key.problem)
	}
	return s.Verify(key.Key, s.Input().Digest(tbs), value)
}

// readAlgorithm reads an AlgorithmIdentifier. parameters is the whole element,
// empty when absent.
func readAlgorithm(in *cryptobyte.String) (oid OID, parameters []byte, err error) {
	var seq, params cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) {
		return nil, nil, errors.New("not an AlgorithmIdentifier")
	}
	if oid, err = readOID(&seq); err != nil {
		return nil, nil, err
	}
	if seq.Empty() {
		return oid, nil, nil
	}
	if !seq.ReadAnyASN1Element(&params, new(cbasn1.Tag)) || !seq.Empty() {
		return nil, nil, errors.New("an AlgorithmIdentifier must have at most one element of parameters")
	}
	return oid, params, nil
}

func addAlgorithm(b *cryptobyte.Builder, oid OID, null bool) {
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1ObjectIdentifier(oid)
		if null {
			b.AddASN1NULL()
		}
	})
}

const maxOIDBytes = 64

// readOID reads an OBJECT IDENTIFIER. The reader of cryptobyte supports arcs of 31 bits
// only, and issuing programs have template identifiers with larger ones.
func readOID(in *cryptobyte.String) (OID, error) {
	var content cryptobyte.String
	if !in.ReadASN1(&content, cbasn1.OBJECT_IDENTIFIER) {
		return nil, errors.New("not an OBJECT IDENTIFIER")
	}
	if len(content) == 0 || len(content) > maxOIDBytes || content[len(content)-1]&0x80 != 0 {
		return nil, fmt.Errorf("an OBJECT IDENTIFIER must have 1 to %d bytes and a complete last arc", maxOIDBytes)
	}
	oid := make(OID, 0, 12)
	arc, start := 0, true
	for _, c := range content {
		if start && c == 0x80 || arc > math.MaxInt>>7 {
			return nil, errors.New("an arc of an OBJECT IDENTIFIER is padded or too large")
		}
		arc = arc<<7 | int(c&0x7f)
		if start = c&0x80 == 0; !start {
			continue
		}
		if len(oid) == 0 {
			first := min(arc/40, 2)
			oid = append(oid, first)
			arc -= 40 * first
		}
		oid = append(oid, arc)
		arc = 0
	}
	return oid, nil
}

// readBits reads a BIT STRING of whole bytes.
func readBits(in *cryptobyte.String, out *[]byte) bool {
	var s cryptobyte.String
	if !in.ReadASN1(&s, cbasn1.BIT_STRING) || len(s) == 0 || s[0] != 0 {
		return false
	}
	*out = s[1:]
	return true
}

// readInteger reads the content bytes of an INTEGER.
func readInteger(in *cryptobyte.String, out *[]byte) bool {
	var s cryptobyte.String
	if !in.ReadASN1(&s, cbasn1.INTEGER) || len(s) == 0 {
		return false
	}
	*out = s
	return true
}

// trimInteger removes bytes that a DER INTEGER does not need, so that two encodings of one
// number compare equal.
func trimInteger(content []byte) []byte {
	for len(content) > 1 && (content[0] == 0 && content[1]&0x80 == 0 || content[0] == 0xff && content[1]&0x80 != 0) {
		content = content[1:]
	}
	return content
}

// magnitudeToInteger converts a positive big-endian number, leading zeros allowed, to the
// content of a DER INTEGER.
func magnitudeToInteger(number []byte) ([]byte, error) {
	m := bytes.TrimLeft(number, "\x00")
	if len(m) == 0 {
		return nil, errors.New("the number must be positive")
	}
	if m[0]&0x80 != 0 {
		m = append([]byte{0}, m...)
	}
	if len(m) > 20 {
		return nil, fmt.Errorf("the number has %d bytes, RFC 5280 allows 20", len(m))
	}
	return m, nil
}

func addInteger(b *cryptobyte.Builder, content []byte) {
	b.AddASN1(cbasn1.INTEGER, func(b *cryptobyte.Builder) { b.AddBytes(content) })
}

// isTime reports whether a UTCTime or GeneralizedTime comes next.
func isTime(in cryptobyte.String) bool {
	return in.PeekASN1Tag(cbasn1.UTCTime) || in.PeekASN1Tag(cbasn1.GeneralizedTime)
}

// readTime reads a Time. DER requires seconds, no fraction and the letter Z. Other BER
// forms are accepted and reported if they name an instant.
func readTime(in *cryptobyte.String, faults *deviations) (time.Time, error) {
	var content cryptobyte.String
	var tag cbasn1.Tag
	if !in.ReadAnyASN1(&content, &tag) || tag != cbasn1.UTCTime && tag != cbasn1.GeneralizedTime {
		return time.Time{}, errors.New("neither UTCTime nor GeneralizedTime")
	}
	t, strict, err := parseTime(string(content), tag == cbasn1.GeneralizedTime)
	if err != nil {
		return time.Time{}, err
	}
	if !strict {
		faults.add("time %q is not in the form that RFC 5280 requires", string(content))
	}
	return t, nil
}

// utcTimeForms and generalizedTimeForms are tried in order. The first form is that of
// RFC 5280.
var utcTimeForms = []string{"060102150405Z", "0601021504Z", "060102150405-0700", "0601021504-0700"}

// generalizedTimeForms need no fraction: time.Parse accepts one after the seconds.
var generalizedTimeForms = []string{
	"20060102150405Z", "200601021504Z", "2006010215Z",
	"20060102150405-0700", "200601021504-0700",
}

func parseTime(text string, generalized bool) (t time.Time, strict bool, err error) {
	forms := utcTimeForms
	if generalized {
		forms = generalizedTimeForms
	}
	if len(text) > 32 {
		return time.Time{}, false, errors.New("a time must have at most 32 characters")
	}
	for i, form := range forms {
		t, err := time.Parse(form, text)
		if err != nil {
			continue
		}
		// For two-digit years time.Parse begins the last century with 69,
		// RFC 5280, 4.1.2.5.1 with 50.
		if !generalized && t.Year() >= 2050 {
			t = t.AddDate(-100, 0, 0)
		}
		t = t.UTC()
		strict := i == 0 && len(text) == len(form)
		if generalized && t.Year() < 2050 {
			strict = false // RFC 5280 requires UTCTime for these years
		}
		return t, strict, nil
	}
	return time.Time{}, false, fmt.Errorf("time %q has an unknown form", text)
}

// addTime writes UTCTime through 2049 and GeneralizedTime from 2050 on, in UTC and without
// fractions (RFC 5280, 4.1.2.5).
func addTime(b *cryptobyte.Builder, t time.Time) {
	t = t.UTC()
	if y := t.Year(); y >= 1950 && y < 2050 {
		b.AddASN1(cbasn1.UTCTime, func(b *cryptobyte.Builder) { b.AddBytes([]byte(t.Format(utcTimeForms[0]))) })
		return
	}
	b.AddASN1(cbasn1.GeneralizedTime, func(b *cryptobyte.Builder) { b.AddBytes([]byte(t.Format(generalizedTimeForms[0]))) })
}

// checkTime refuses times that a certificate cannot hold.
func checkTime(t time.Time) error {
	if y := t.UTC().Year(); t.IsZero() || y < 1950 || y > 9999 {
		return fmt.Errorf("time %s is outside the years 1950 to 9999", t.UTC().Format(time.RFC3339))
	}
	return nil
}

// sign builds SIGNED { body } and signs it.
func sign(su *suite.Suite, fn SignFunc, key *keyInfo, body func(*cryptobyte.Builder)) ([]byte, error) {
	var tbs cryptobyte.Builder
	tbs.AddASN1(cbasn1.SEQUENCE, body)
	rawTBS, err := tbs.Bytes()
	if err != nil {
		return nil, err
	}
	value, err := fn(su.Hash.Digest(rawTBS))
	if err != nil {
		return nil, err
	}
	// Never return a signature that does not verify: the key may belong to another
	// issuer, or a computation may have failed.
	if err := checkSigned(su.Scheme(), rawTBS, value, key); err != nil {
		return nil, fmt.Errorf("the signature just made does not verify: %w", err)
	}
	var out cryptobyte.Builder
	out.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddBytes(rawTBS)
		addAlgorithm(b, su.SignatureOID, su.SignatureNull)
		b.AddASN1BitString(value)
	})
	return out.Bytes()
}
