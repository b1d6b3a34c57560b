// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"bytes"
	"encoding/asn1"
	"errors"
	"fmt"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Codes of findings. Each is a rule of RFC 5652, RFC 5035 or R 1323565.1.025.
const (
	CodeAlgorithm          = "algorithm-unknown"                     // the digest or signature algorithm, or the pair, is not supported
	CodeAlgorithmMismatch  = "algorithm-mismatch"                    // the algorithms do not fit the certificate's key
	CodeAttributesMissing  = "signed-attributes-missing"             // required for a content other than plain data
	CodeContentType        = "content-type-mismatch"                 // the attribute is absent, repeated or another type
	CodeMessageDigest      = "message-digest-mismatch"               // the content is not what was signed
	CodeMessageDigestForm  = "message-digest-malformed"              // the attribute is absent, repeated or not an OCTET STRING
	CodeSignature          = "signature-mismatch"                    // the value does not verify
	CodeSigningCertificate = "signing-certificate-mismatch"          // the attribute names another certificate or cannot be read
	CodeNoSigningCert      = "signing-certificate-missing"           // the certificate is not protected by the signature
	CodeSigningCertV1      = "signing-certificate-v1"                // SHA-1 alone protects the certificate
	CodeOrder              = "signed-attributes-not-in-order"        // the value fits the attributes in their stored order, not in that of DER
	CodeStoredOrder        = "signed-attributes-stored-out-of-order" // the value fits their order in DER, not the stored one
	CodeNotDER             = "signed-attributes-not-der"             // they are stored in BER, or signed so
	CodeProtection         = "algorithm-protection-mismatch"         // cms-algorithm-protection is malformed or names other algorithms
	CodeOtherIssuer        = "signing-certificate-issuer-serial"     // another issuer or serial number is named beside the right digest
	CodeSigningTime        = "signing-time-malformed"
)

// Finding is a rule that a signature breaks. Not every broken rule is fatal.
type Finding struct {
	Code, Text string
	Fatal      bool // the signature is invalid
}

// Error returns "cms: code: text".
func (f Finding) Error() string { return fmt.Sprintf("cms: %s: %s", f.Code, f.Text) }

// Findings are the result of a check.
type Findings []Finding

// Err returns an error that joins the fatal findings, each a Finding, or nil when there are
// none.
func (f Findings) Err() error {
	var errs []error
	for _, x := range f {
		if x.Fatal {
			errs = append(errs, x)
		}
	}
	return errors.Join(errs...)
}

// Scheme returns the scheme of the signature, from its two algorithm identifiers. The error
// names an algorithm that is not supported, or says why the two do not fit together.
func (s *SignerInfo) Scheme() (*suite.Scheme, error) {
	return suite.SchemeBySigner(s.SignatureAlgorithm.OID, s.SignatureAlgorithm.Params, s.DigestAlgorithm.OID)
}

// Check checks the signature of a message against the certificate of its signer. It checks
// the rules on algorithms, signed attributes and the value, and returns one finding for
// each broken rule. contentType is the type of the message's content, content the digest of
// the content by s.Hash(). Check does not check the certificate itself.
func (s *SignerInfo) Check(c *x509gost.Certificate, contentType asn1.ObjectIdentifier, content suite.Digest) Findings {
	ch := &checker{s: s, c: c}
	if ch.algorithms() {
		ch.attributes(contentType, content)
		ch.value(content)
	}
	return ch.found
}

// CheckCountersignature is Check for a signature over the value of target (RFC 5652, 11.4).
// The digest is that of the bytes of the value, and the attribute content-type must be
// absent.
func (s *SignerInfo) CheckCountersignature(c *x509gost.Certificate, target *SignerInfo) Findings {
	ch := &checker{s: s, c: c}
	if ch.algorithms() {
		h, _ := s.Hash() // no error: the scheme includes it
		d := h.Digest(target.Signature)
		ch.attributes(nil, d)
		ch.value(d)
	}
	return ch.found
}

type checker struct {
	s      *SignerInfo
	c      *x509gost.Certificate
	scheme *suite.Scheme
	found  Findings
}

func (k *checker) fatal(code, format string, args ...any) {
	k.found = append(k.found, Finding{code, fmt.Sprintf(format, args...), true})
}

func (k *checker) note(code, format string, args ...any) {
	k.found = append(k.found, Finding{code, fmt.Sprintf(format, args...), false})
}

// algorithms refuses a pair of algorithms that is not supported, and a pair that the key of
// the certificate does not allow. GOST keys of 512 bits go with digests of 512, 256 with
// 256, and keys of 2001 with 34.11-94.
func (k *checker) algorithms() bool {
	var err error
	if k.scheme, err = k.s.Scheme(); err != nil {
		k.fatal(CodeAlgorithm, "%v", err)
		return false
	}
	if k.c.PublicKey == nil {
		k.fatal(CodeAlgorithm, "the key of the signer's certificate %q (serial %s): %v", k.c.Subject, k.c.SerialHex(), k.c.KeyError)
		return false
	}
	if err := k.scheme.Accepts(k.c.Key()); err != nil {
		k.fatal(CodeAlgorithmMismatch, "%v", err)
		return false
	}
	if k.scheme.SignsMessage() && k.s.RawSignedAttrs == nil {
		k.fatal(CodeAlgorithm, "a signature by %s without signed attributes is not supported", k.scheme.Name)
		return false
	}
	return true
}

// attributes checks the signed attributes. contentType is nil for a countersignature.
func (k *checker) attributes(contentType asn1.ObjectIdentifier, content suite.Digest) {
	counter := contentType == nil
	if k.s.RawSignedAttrs == nil {
		if !counter && !contentType.Equal(OIDData) {
			k.fatal(CodeAttributesMissing, "content of type %v must be signed with attributes", contentType)
		}
		k.note(CodeNoSigningCert, "there are no signed attributes")
		return
	}
	value, ok, err := k.s.SignedAttribute(OIDContentType)
	switch {
	case counter && ok:
		// RFC 5652 forbids it, but OpenSSL writes and requires it. So report it, but not as fatal.
		k.note(CodeContentType, "a countersignature must not have a content-type")
	case counter:
	case err != nil:
		k.fatal(CodeContentType, "%v", err)
	case !ok:
		k.fatal(CodeContentType, "the attribute content-type is absent")
	case !bytes.Equal(value, marshalOID(contentType)):
		k.fatal(CodeContentType, "the attribute content-type differs from the type of the content, %v", contentType)
	}

	value, ok, err = k.s.SignedAttribute(OIDMessageDigest)
	sum, readable := ReadMessageDigest(value)
	switch {
	case err != nil:
		k.fatal(CodeMessageDigestForm, "%v", err)
	case !ok:
		k.fatal(CodeMessageDigestForm, "the attribute message-digest is absent")
	case !readable:
		k.fatal(CodeMessageDigestForm, "the attribute message-digest is not an OCTET STRING")
	case !bytes.Equal(sum, content.Sum):
		k.fatal(CodeMessageDigest, "the signed digest is %x, that of the content is %x", sum, content.Sum)
	}

	if value, ok, err = k.s.SignedAttribute(OIDAlgorithmProtection); err != nil {
		k.fatal(CodeProtection, "%v", err)
	} else if ok {
		k.protection(value)
	}

	if _, ok, err := k.s.SignedAttribute(OIDSigningTime); err != nil {
		k.fatal(CodeSigningTime, "%v", err)
	} else if _, readable := k.s.SigningTime(); ok && !readable {
		k.note(CodeSigningTime, "the attribute signing-time is not a time and is ignored")
	}
	k.signingCertificate()
}

// protection checks that the attribute cms-algorithm-protection names the algorithms of the
// signature (RFC 6211, 2 and 3).
func (k *checker) protection(value []byte) {
	in := cryptobyte.String(value)
	var seq, signature cryptobyte.String
	var has bool
	malformed := func() {
		k.fatal(CodeProtection, "the attribute cms-algorithm-protection is not a digest algorithm with a signature algorithm")
	}
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !in.Empty() {
		malformed()
		return
	}
	digest, ok := readAlgorithm(&seq)
	if !ok || !seq.ReadOptionalASN1(&signature, &has, tagAttrs1) || !has || !seq.Empty() {
		malformed()
		return
	}
	signs, ok := readAlgorithm(implicitSequence(signature)) // [1] IMPLICIT AlgorithmIdentifier
	switch {
	case !ok:
		malformed()
	case !digest.same(k.s.DigestAlgorithm):
		k.fatal(CodeProtection, "the signer protected the digest algorithm %v, but the signature names %v, or other parameters", digest.OID, k.s.DigestAlgorithm.OID)
	case !signs.same(k.s.SignatureAlgorithm):
		k.fatal(CodeProtection, "the signer protected the signature algorithm %v, but the signature names %v, or other parameters", signs.OID, k.s.SignatureAlgorithm.OID)
	}
}

// implicitSequence returns content as a SEQUENCE.
func implicitSequence(content []byte) *cryptobyte.String {
	s := cryptobyte.String(wrap(tagSequence, content))
	return &s
}

// same reports whether two algorithms are the same. Absent parameters equal NULL, because both
// are in use for the same algorithms.
func (a Algorithm) same(b Algorithm) bool {
	none := func(params []byte) bool { return len(params) == 0 || bytes.Equal(params, []byte{tagNull, 0}) }
	return a.OID != nil && a.OID.Equal(b.OID) && (bytes.Equal(a.Params, b.Params) || none(a.Params) && none(b.Params))
}

// signingCertificate checks that the certificate is the one that the signature protects.
func (k *checker) signingCertificate() {
	v2, has2, err2 := k.s.SignedAttribute(OIDSigningCertificateV2)
	v1, has1, err1 := k.s.SignedAttribute(OIDSigningCertificate)
	if err := errors.Join(err1, err2); err != nil {
		k.fatal(CodeSigningCertificate, "%v", err)
		return
	}
	// Each attribute is judged by itself (RFC 5035, 3): both must name the certificate, and the
	// stronger of the two protects it.
	if has1 {
		if !has2 {
			k.note(CodeSigningCertV1, "signing-certificate protects the certificate by SHA-1; signing-certificate-v2 expected")
		}
		k.certificateID("signing-certificate", v1, false)
	}
	if has2 {
		k.certificateID("signing-certificate-v2", v2, true)
	}
	if !has1 && !has2 {
		k.note(CodeNoSigningCert, "there is no signing-certificate-v2: the signature does not protect its certificate against replacement")
	}
}

func (k *checker) certificateID(name string, value []byte, v2 bool) {
	id, err := readCertificateID(value, v2)
	switch {
	case err != nil:
		k.fatal(CodeSigningCertificate, "%s %v", name, err)
	case !bytes.Equal(id.sum, k.c.Digest(id.hash)):
		k.fatal(CodeSigningCertificate, "%s holds the %s digest of another certificate", name, id.hash.Name)
	default:
		if f, other := OtherIssuer(name, id.issuerSerial, k.c); other {
			k.found = append(k.found, f)
		}
	}
}

// OtherIssuer returns the finding that a signature names another issuer or serial number than that
// of its certificate, beside the digest of that certificate, or false if it does not. The digest
// decides, and the rest is a warning (EN 319 102-1, 5.2.3.4). CMS, XML and time stamps have this
// rule in common. name is what names the certificate; id is nil if the digest alone does.
func OtherIssuer(name string, id *x509gost.IssuerSerial, c *x509gost.Certificate) (Finding, bool) {
	if id == nil {
		return Finding{}, false
	}
	differs := id.Differs(c)
	if differs == "" {
		return Finding{}, false
	}
	return Finding{CodeOtherIssuer, fmt.Sprintf("%s has the digest of the signer's certificate, but names %s of another one; the digest decides", name, differs), false}, true
}

// OtherIssuer returns the findings of Check with CodeOtherIssuer alone, for the certificate with
// which Check had no fatal finding.
func (s *SignerInfo) OtherIssuer(c *x509gost.Certificate) (found Findings) {
	k := &checker{s: s, c: c}
	k.signingCertificate()
	for _, f := range k.found {
		if f.Code == CodeOtherIssuer {
			found = append(found, f)
		}
	}
	return found
}

// value verifies the signature value over the signed attributes, or over the content itself
// when there are none.
func (k *checker) value(content suite.Digest) {
	holds := func(d suite.Digest) bool { return k.c.VerifyBy(k.scheme, d, k.s.Signature) == nil }
	if k.s.RawSignedAttrs == nil {
		if !holds(content) {
			k.fatal(CodeSignature, "the signature value does not match this content and this certificate")
		}
		return
	}
	found, code := k.s.overAttributes(holds, k.scheme)
	if !found {
		k.fatal(CodeSignature, "the signature value does not match these attributes and this certificate")
		return
	}
	// The value must cover the DER encoding of the attributes (RFC 5652, 5.4). Where that is not
	// what the message has, some programs encode the attributes again and others do not.
	switch {
	case code == CodeStoredOrder:
		k.fatal(code, "the signed attributes were signed in DER order, but are stored in another order; programs differ about such a signature")
	case code == CodeOrder:
		k.fatal(code, "the signed attributes were signed in their stored order, not in DER order (RFC 5652, 5.4); programs differ about such a signature")
	}
	if reason := k.s.notDER(); reason != "" {
		k.fatal(CodeNotDER, "the signed attributes are not in DER (RFC 5652, 5.4): %s; programs differ about such a signature", reason)
	}
}

// overAttributes finds the encoding of the signed attributes that the value covers: in DER
// order, as RFC 5652, 5.4 requires, or in stored order. If the two orders differ, code
// reports the one that was found.
func (s *SignerInfo) overAttributes(holds func(suite.Digest) bool, scheme *suite.Scheme) (found bool, code string) {
	sorted := sortedDER(s.SignedAttrs)
	if !sorted && holds(scheme.Input().Digest(BuildSignedAttributes(s.SignedAttrs...))) {
		return true, CodeStoredOrder
	}
	if found = holds(scheme.Input().Digest(s.RawSignedAttrs)); found && !sorted {
		code = CodeOrder
	}
	return found, code
}

// CheckValue checks only that the value matches the signed attributes and the key of the
// certificate. There must be signed attributes. The error wraps suite.ErrUnsupported when an
// algorithm is not supported, and suite.ErrSignature when the value does not match.
func (s *SignerInfo) CheckValue(c *x509gost.Certificate) error {
	scheme, err := s.Scheme()
	if err != nil {
		return err
	}
	found, _ := s.overAttributes(func(d suite.Digest) bool {
		err = c.VerifyBy(scheme, d, s.Signature)
		return err == nil
	}, scheme)
	if found {
		return nil
	}
	return err
}
