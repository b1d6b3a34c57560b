// SPDX-License-Identifier: Apache-2.0

package tsp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Reasons for refusing a token, for errors.Is.
var (
	// ErrAnswer reports that the token does not belong to the request.
	ErrAnswer = errors.New("tsp: the token does not answer the request")
	// ErrSignature reports that no time-stamping authority made the token's signature.
	ErrSignature = errors.New("tsp: the token's signature is invalid")
)

// ParseToken reads a token of at most MaxResponse bytes, a ContentInfo with SignedData in
// DER or BER. It checks the form only.
func ParseToken(der []byte) (*Token, error) { return ParseTokenWithin(der, nil) }

// ParseTokenWithin is ParseToken for a caller that limits memory, as cms.ParseWithin does.
func ParseTokenWithin(der []byte, hold func(bytes int64) error) (*Token, error) {
	t, err := parseToken(der, hold)
	if err != nil {
		return nil, fmt.Errorf("tsp: token: %w", err)
	}
	return t, nil
}

// Unwrap returns the token in an OCTET STRING. Some programs store it so in the attribute of a
// signature, where the token itself belongs (RFC 3161, appendix A). All other values are returned
// as they are.
func Unwrap(value []byte) []byte {
	in := cryptobyte.String(value)
	var token cryptobyte.String
	if in.ReadASN1(&token, cbasn1.OCTET_STRING) && in.Empty() {
		return token
	}
	return value
}

func parseToken(der []byte, hold func(bytes int64) error) (*Token, error) {
	if len(der) > MaxResponse {
		return nil, fmt.Errorf("%d bytes are more than the %d allowed", len(der), MaxResponse)
	}
	m, err := cms.ParseWithin(bytes.NewReader(der), int64(len(der)), hold)
	if err != nil {
		return nil, err
	}
	if m.Padding != 0 {
		return nil, fmt.Errorf("%d bytes follow the token", m.Padding)
	}
	if !m.ContentType.Equal(OIDInfo) {
		return nil, fmt.Errorf("its content is of type %v, not TSTInfo (%v)", m.ContentType, OIDInfo)
	}
	if m.Detached {
		return nil, errors.New("it has no TSTInfo")
	}
	if m.ContentSize() > MaxInfo {
		return nil, fmt.Errorf("TSTInfo has more than %d bytes", MaxInfo)
	}
	t := &Token{Raw: der, Message: m}
	if t.rawInfo, err = io.ReadAll(m.ContentReader()); err != nil {
		return nil, err
	}
	if err := t.Info.read(t.rawInfo); err != nil {
		return nil, fmt.Errorf("TSTInfo: %w", err)
	}
	t.certificates, t.unreadable = m.X509()
	return t, nil
}

// read reads TSTInfo.
func (i *Info) read(der []byte) (err error) {
	in := cryptobyte.String(der)
	var seq cryptobyte.String
	var version int
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !in.Empty() {
		return errors.New("not a SEQUENCE")
	}
	if !seq.ReadASN1Integer(&version) || version != 1 {
		return errors.New("the version is not 1")
	}
	if i.Policy, err = x509gost.ReadOID(&seq); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	var algorithm x509gost.OID
	if i.Digest, algorithm, err = readImprint(&seq); err != nil {
		return err
	}
	if i.Digest.Hash == nil {
		return suite.Unsupported("digest algorithm of the imprint", algorithm)
	}
	if !x509gost.ReadInteger(&seq, &i.Serial) || len(i.Serial) > 64 {
		return errors.New("serialNumber is not an INTEGER of at most 64 bytes")
	}
	if i.Time, err = x509gost.ReadGeneralizedTime(&seq); err != nil {
		return fmt.Errorf("genTime: %w", err)
	}
	if seq.PeekASN1Tag(cbasn1.SEQUENCE) {
		if i.Accuracy, err = readAccuracy(&seq); err != nil {
			return fmt.Errorf("accuracy: %w", err)
		}
	}
	if seq.PeekASN1Tag(cbasn1.BOOLEAN) && !seq.ReadASN1Boolean(&i.Ordering) {
		return errors.New("ordering is not a BOOLEAN")
	}
	if i.Nonce, err = readNonce(&seq); err != nil {
		return err
	}
	var name, directory cryptobyte.String
	if !seq.ReadOptionalASN1(&name, nil, tag0) {
		return errors.New("tsa is malformed")
	}
	if name.PeekASN1Tag(tag4) && name.ReadASN1(&directory, tag4) {
		i.Authority = directory
	}
	extensions, err := readExtensions(&seq, tag1)
	if err != nil {
		return err
	}
	for _, e := range extensions {
		if e.Critical {
			return fmt.Errorf("the critical extension %s is not supported", e.OID)
		}
	}
	if !seq.Empty() {
		return errors.New("unknown data follows the extensions")
	}
	return nil
}

// tag4 is the tag of directoryName in GeneralName.
var tag4 = cbasn1.Tag(4).Constructed().ContextSpecific()

// readAccuracy reads seconds, milliseconds and microseconds.
func readAccuracy(in *cryptobyte.String) (time.Duration, error) {
	var seq cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) {
		return 0, errors.New("not a SEQUENCE")
	}
	const most = 1 << 30 // seconds; a Duration can hold them
	var seconds int64
	if seq.PeekASN1Tag(cbasn1.INTEGER) && (!seq.ReadASN1Integer(&seconds) || seconds < 0 || seconds > most) {
		return 0, errors.New("the seconds are not a number from 0 to 2^30")
	}
	total := time.Duration(seconds) * time.Second
	for n, unit := range []time.Duration{time.Millisecond, time.Microsecond} {
		tag := cbasn1.Tag(n).ContextSpecific()
		if !seq.PeekASN1Tag(tag) {
			continue
		}
		var part int64
		if !seq.ReadASN1Int64WithTag(&part, tag) || part < 0 || part > 999 {
			return 0, errors.New("a fraction is not a number from 0 to 999")
		}
		total += time.Duration(part) * unit
	}
	if !seq.Empty() {
		return 0, errors.New("unknown data follows")
	}
	return total, nil
}

// Answers checks that the token belongs to the request: the same imprint, the same nonce and
// the requested policy. The error wraps ErrAnswer.
func (t *Token) Answers(r *Request) error {
	if t.Info.Digest.Hash != r.Digest.Hash || !bytes.Equal(t.Info.Digest.Sum, r.Digest.Sum) {
		return fmt.Errorf("%w: it is for another digest", ErrAnswer)
	}
	nonce, err := positive(r.Nonce)
	if err != nil {
		return fmt.Errorf("%w: nonce of the request: %w", ErrAnswer, err)
	}
	switch {
	case nonce != nil && t.Info.Nonce == nil:
		return fmt.Errorf("%w: the nonce is missing", ErrAnswer)
	case nonce != nil && !bytes.Equal(nonce, x509gost.TrimInteger(t.Info.Nonce)):
		return fmt.Errorf("%w: the nonce differs", ErrAnswer)
	case r.Policy != nil && !r.Policy.Equal(t.Info.Policy):
		return fmt.Errorf("%w: its policy is %s, not %s as requested", ErrAnswer, t.Info.Policy, r.Policy)
	}
	return nil
}

// Verify checks that the token belongs to the request and has a valid signature (see Answers and
// CheckSignature). It is for new tokens: one that names another issuer or serial number than that
// of its certificate is refused, because programs judge it differently.
func (t *Token) Verify(r *Request, extra []*x509gost.Certificate) (*Verified, error) {
	if err := t.Answers(r); err != nil {
		return nil, err
	}
	authority, err := t.CheckSignature(extra)
	if err != nil {
		return nil, err
	}
	if other := t.Message.Signers[0].OtherIssuer(authority); len(other) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrSignature, other[0])
	}
	return &Verified{t, authority}, nil
}

// Verify reads a token and checks it. digest returns the digest that the token must be for, by
// the algorithm of the token.
func Verify(der []byte, digest func(*suite.Hash) suite.Digest, extra []*x509gost.Certificate) (*Verified, error) {
	t, err := ParseToken(der)
	if err != nil {
		return nil, err
	}
	return t.Verify(&Request{Digest: digest(t.Info.Digest.Hash)}, extra)
}

// CheckSignature checks the rules of RFC 3161, 2.4.2 and RFC 5816 for a token by itself and
// returns the certificate that signed it. The token must have exactly one signer. The
// attribute signing-certificate or signing-certificate-v2 must name its certificate, which
// must be for time stamping only (2.3) and valid at the token's time. CheckSignature looks
// for the certificate in the token, then in extra. Package chain checks its path. The error
// wraps ErrSignature.
func (t *Token) CheckSignature(extra []*x509gost.Certificate) (*x509gost.Certificate, error) {
	c, err := t.checkSignature(extra)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSignature, err)
	}
	return c, nil
}

func (t *Token) checkSignature(extra []*x509gost.Certificate) (*x509gost.Certificate, error) {
	if n := len(t.Message.Signers); n != 1 {
		return nil, fmt.Errorf("it has %d signers; it must have one", n)
	}
	s := t.Message.Signers[0]
	reason := error(nil)
	// Several certificates may have the same name and number. Only one matches the
	// digest in signing-certificate.
	tried := 0
	for _, c := range slices.Concat(t.certificates, extra) {
		if !s.Names(c) {
			continue
		}
		if tried++; tried > maxTried {
			break
		}
		err := t.checkSigner(s, c)
		if err == nil {
			return c, nil
		}
		if reason == nil {
			reason = err
		}
	}
	if reason == nil {
		reason = errors.New("the certificate of its signer is neither in the token nor otherwise known")
		if t.unreadable != nil {
			reason = fmt.Errorf("%w (%w)", reason, t.unreadable)
		}
	}
	return nil, reason
}

// Weakness returns the reason why a token does not prove its time: its imprint could
// already be forged at that time, or its signature can be forged at time at, also because the key of its signer has
// become too short. The zero value means that there is no weakness. It does not check the certificate of the signer.
func (t *Token) Weakness(signer *x509gost.Certificate, at time.Time, ends suite.Ends) suite.Weakness {
	if w := ends.Hash(t.Info.Digest.Hash); w.At(t.Info.Time) {
		return w
	}
	for _, s := range t.Message.Signers {
		if scheme, err := s.Scheme(); err == nil && ends.Scheme(scheme).At(at) {
			return ends.Scheme(scheme)
		}
	}
	if signer != nil {
		if w := ends.Key(signer.Key()); w.At(at) {
			return w
		}
	}
	return suite.Weakness{}
}

// maxTried limits the certificates that are tried as the signer's.
const maxTried = 4

func (t *Token) checkSigner(s *cms.SignerInfo, c *x509gost.Certificate) error {
	h, err := s.Hash()
	if err != nil {
		return err
	}
	findings := s.Check(c, t.Message.ContentType, h.Digest(t.rawInfo))
	if err := findings.Err(); err != nil {
		return err
	}
	_, v1, _ := s.SignedAttribute(cms.OIDSigningCertificate)
	_, v2, _ := s.SignedAttribute(cms.OIDSigningCertificateV2)
	if !v1 && !v2 {
		return errors.New("it does not name the certificate that signed it (signing-certificate is missing)")
	}
	if err := forTimeStamping(c); err != nil {
		return err
	}
	at := t.Info.Time
	if at.Before(c.NotBefore) || !at.Before(c.NotAfter.Add(time.Second)) {
		return fmt.Errorf("its time is %s, but the certificate of its signer is valid from %s to %s",
			at.Format(time.RFC3339), c.NotBefore.Format(time.RFC3339), c.NotAfter.Format(time.RFC3339))
	}
	return nil
}

// forTimeStamping checks RFC 3161, 2.3: extended key usage is critical and has timeStamping
// only.
func forTimeStamping(c *x509gost.Certificate) error {
	e, ok := c.Extension(x509gost.OIDExtKeyUsage)
	switch {
	case !ok || len(c.ExtKeyUsage) != 1 || !c.ExtKeyUsage[0].Equal(x509gost.UsageTimeStamping):
		return errors.New("the certificate of its signer is not for time stamping only (extKeyUsage)")
	case !e.Critical:
		return errors.New("the certificate of its signer does not mark its extKeyUsage as critical")
	}
	return nil
}

// CreateToken signs a token. info must have Policy, Digest, Serial and Time, which is
// written in whole seconds. The authority signer signs with s through sign. embed are the
// certificates for the token: the signer's and its path if the request has CertReq, else
// none. CreateToken verifies the signature before it returns the token.
func CreateToken(info *Info, signer *x509gost.Certificate, embed []*x509gost.Certificate, s *suite.Suite, sign x509gost.SignFunc) ([]byte, error) {
	der, err := createToken(info, signer, embed, s, sign)
	if err != nil {
		return nil, fmt.Errorf("tsp: creating a token: %w", err)
	}
	return der, nil
}

func createToken(info *Info, signer *x509gost.Certificate, embed []*x509gost.Certificate, s *suite.Suite, sign x509gost.SignFunc) ([]byte, error) {
	if signer.Suite == nil || signer.Suite != s {
		return nil, errors.New("the authority's key does not belong to the suite that signs")
	}
	content, err := info.marshal()
	if err != nil {
		return nil, err
	}
	signed := cms.Signed{ContentType: OIDInfo, Digest: s.Hash.Digest(content), Certificate: signer}
	attrs, err := signed.Attributes()
	if err != nil {
		return nil, err
	}
	attrsDigest := s.Hash.Digest(attrs)
	value, err := sign(attrsDigest)
	if err != nil {
		return nil, err
	}
	if err := signer.Verify(attrsDigest, value); err != nil {
		return nil, fmt.Errorf("the signature just made does not verify: %w", err)
	}
	certs := make([][]byte, len(embed))
	for i, c := range embed {
		certs[i] = c.Raw
	}
	head, tail, err := cms.Encode(OIDInfo, int64(len(content)), certs, nil, []cms.Signer{{
		Certificate: signer, Suite: s, SignedAttrs: attrs, Signature: value,
	}})
	if err != nil {
		return nil, err
	}
	return slices.Concat(head, content, tail), nil
}

// infoRoom is more than the other fields of most tokens need.
const infoRoom = 128

func (i *Info) marshal() ([]byte, error) {
	if err := checkDigest(i.Digest); err != nil {
		return nil, err
	}
	switch y := i.Time.UTC().Year(); {
	case len(i.Policy) == 0:
		return nil, errors.New("a token must have a policy")
	case len(i.Serial) == 0 || len(i.Serial) > 20 || i.Serial[0]&0x80 != 0:
		return nil, errors.New("a token must have a positive serial number of at most 20 bytes")
	case y < 1950 || y > 9999:
		return nil, fmt.Errorf("year %d is outside 1950 to 9999", y)
	case i.Accuracy < 0 || i.Accuracy%time.Microsecond != 0:
		return nil, fmt.Errorf("accuracy %s: it must be in whole microseconds", i.Accuracy)
	}
	b := cryptobyte.NewBuilder(make([]byte, 0, infoRoom+len(i.Digest.Sum)+len(i.Nonce)+len(i.Authority)))
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1Int64(1)
		b.AddASN1ObjectIdentifier(i.Policy)
		addImprint(b, i.Digest)
		addInteger(b, i.Serial)
		x509gost.AddGeneralizedTime(b, i.Time)
		if i.Accuracy > 0 {
			b.AddASN1(cbasn1.SEQUENCE, i.addAccuracy)
		}
		if i.Ordering {
			b.AddASN1Boolean(true)
		}
		if i.Nonce != nil {
			addInteger(b, i.Nonce)
		}
		if i.Authority != nil {
			b.AddASN1(tag0, func(b *cryptobyte.Builder) {
				b.AddASN1(tag4, func(b *cryptobyte.Builder) { b.AddBytes(i.Authority) })
			})
		}
	})
	return b.Bytes()
}

func (i *Info) addAccuracy(b *cryptobyte.Builder) {
	if seconds := i.Accuracy / time.Second; seconds > 0 {
		b.AddASN1Int64(int64(seconds))
	}
	for n, part := range []time.Duration{
		i.Accuracy % time.Second / time.Millisecond,
		i.Accuracy % time.Millisecond / time.Microsecond,
	} {
		if part > 0 {
			b.AddASN1Int64WithTag(int64(part), cbasn1.Tag(n).ContextSpecific())
		}
	}
}
