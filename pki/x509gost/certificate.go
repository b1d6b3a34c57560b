// SPDX-License-Identifier: Apache-2.0

package x509gost

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/suite"
)

// OID is the type of every object identifier here, an alias of the type in encoding/asn1.
type OID = suite.OID

// Certificate is a parsed X.509 certificate (RFC 5280, 4.1). The byte slices
// share memory with Raw and must not be changed.
type Certificate struct {
	Raw        []byte // the whole certificate as received
	RawTBS     []byte // what is signed
	RawSPKI    []byte // SubjectPublicKeyInfo
	RawIssuer  []byte // the issuer's Name
	RawSubject []byte // the subject's Name

	// SerialNumber is the content of the DER INTEGER exactly as received: big-endian
	// two's complement, possibly negative or with needless zeros.
	SerialNumber []byte

	Issuer, Subject     Name
	NotBefore, NotAfter time.Time // UTC

	// PublicKey is *gost3410.PublicKey, *rsa.PublicKey, *ecdsa.PublicKey or
	// ed25519.PublicKey. It is nil when the key is not supported for verification. Suite
	// is the suite that signs with the key, and is authoritative for the family of a GOST
	// key. It is nil when no suite has such keys. KeyError is set when Suite or PublicKey
	// is nil and gives the reason. A malformed GOST key is an error of ParseCertificate.
	PublicKey crypto.PublicKey
	Suite     *suite.Suite
	KeyError  error

	// SignatureOID is the algorithm of the issuer's signature, Signature its value.
	SignatureOID OID
	Signature    []byte
	parameters   []byte // of SignatureOID

	HasKeyUsage bool          // the extension is present
	KeyUsage    x509.KeyUsage // zero when absent
	ExtKeyUsage []OID         // empty when absent

	HasBasicConstraints bool
	IsCA                bool
	MaxPathLen          int // -1 when there is no limit

	SubjectKeyID   []byte
	AuthorityKeyID []byte // keyIdentifier of authorityKeyIdentifier

	CRLDistributionPoints []string // full-name URIs
	OCSPServers           []string
	IssuingURLs           []string // caIssuers
	Policies              []OID

	// privateKeyUsagePeriod, zero when absent.
	PrivateKeyNotBefore, PrivateKeyNotAfter time.Time

	// Extensions holds all extensions in order, including those read into fields above.
	Extensions []Extension

	// Deviations describes the faults that were tolerated.
	Deviations []string

	pssOnly bool       // the key is for RSA-PSS only
	limit   *suite.PSS // with these parameters

	digests atomic.Pointer[[]suite.Digest] // see Digest
	signer  atomic.Pointer[Certificate]    // see CheckSignatureFrom
	texts   atomic.Pointer[Texts]          // see Texts
}

// Texts are the fields of a certificate as interfaces show them. The numbers are hexadecimal
// in upper case, two digits for each byte.
type Texts struct {
	Subject, Issuer string // see Name.String
	Serial          string // the DER content
	Thumbprint      string // see Certificate.Thumbprint
	KeyID           string // subjectKeyIdentifier; empty if there is none
}

// ParseCertificate reads one DER certificate of at most MaxCertificate bytes. Nothing may
// follow it.
func ParseCertificate(der []byte) (*Certificate, error) {
	c, err := parseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("x509gost: certificate: %w", err)
	}
	return c, nil
}

func parseCertificate(der []byte) (*Certificate, error) {
	var faults deviations
	s, err := readSigned(der, MaxCertificate, &faults)
	if err != nil {
		return nil, err
	}
	c := &Certificate{Raw: s.raw, RawTBS: s.rawTBS, SignatureOID: s.oid, parameters: s.parameters, Signature: s.signature, MaxPathLen: -1}
	if err := c.readTBS(s.body, s.rawAlgorithm, &faults); err != nil {
		return nil, err
	}
	c.Deviations = faults
	return c, nil
}

// readTBS reads TBSCertificate (RFC 5280, 4.1).
func (c *Certificate) readTBS(in cryptobyte.String, outerAlgorithm []byte, faults *deviations) error {
	version, err := readVersion(&in, faults)
	if err != nil {
		return err
	}
	if !readInteger(&in, &c.SerialNumber) {
		return errors.New("the serial number is not an INTEGER")
	}
	checkSerial(c.SerialNumber, faults)
	var algorithm cryptobyte.String
	if !in.ReadASN1Element(&algorithm, cbasn1.SEQUENCE) || !bytes.Equal(algorithm, outerAlgorithm) {
		return errors.New("the signature algorithm inside TBSCertificate differs from the one outside")
	}
	if c.Issuer, err = readName(&in, faults); err != nil {
		return fmt.Errorf("issuer: %w", err)
	}
	c.RawIssuer = c.Issuer.Raw
	if err := c.readValidity(&in, faults); err != nil {
		return err
	}
	if c.Subject, err = readName(&in, faults); err != nil {
		return fmt.Errorf("subject: %w", err)
	}
	c.RawSubject = c.Subject.Raw
	raw, key, err := readKey(&in, faults)
	if err != nil {
		return fmt.Errorf("public key: %w", err)
	}
	c.RawSPKI, c.PublicKey, c.Suite, c.KeyError = raw, key.Public, key.Suite, key.problem
	c.pssOnly, c.limit = key.PSSOnly, key.Limit
	// issuerUniqueID [1] and subjectUniqueID [2]
	for n := uint8(1); n <= 2; n++ {
		if !in.SkipOptionalASN1(cbasn1.Tag(n).ContextSpecific()) {
			return errors.New("a unique identifier is malformed")
		}
	}
	if c.Extensions, err = readExtensionField(&in, cbasn1.Tag(3).Constructed().ContextSpecific(), faults); err != nil {
		return err
	}
	if !in.Empty() {
		return errors.New("unknown data follows the extensions")
	}
	if len(c.Extensions) > 0 && version != 2 {
		faults.add("extensions in a certificate of version %d", version+1)
	}
	return c.readExtensions(faults)
}

// readVersion reads [0] EXPLICIT INTEGER DEFAULT v1 and returns the number as
// written: 0 for version 1, 2 for version 3.
func readVersion(in *cryptobyte.String, faults *deviations) (int, error) {
	var field cryptobyte.String
	var present bool
	version := 0
	if !in.ReadOptionalASN1(&field, &present, cbasn1.Tag(0).Constructed().ContextSpecific()) {
		return 0, errors.New("the version is malformed")
	}
	if !present {
		return 0, nil
	}
	if !field.ReadASN1Integer(&version) || !field.Empty() || version < 0 || version > 2 {
		return 0, errors.New("the version is not 1, 2 or 3")
	}
	if version == 0 {
		faults.add("version 1 is written, DER omits it")
	}
	return version, nil
}

// checkSerial reports serial numbers that RFC 5280, 4.1.2.2 forbids but that are in use.
func checkSerial(serial []byte, faults *deviations) {
	if len(trimInteger(serial)) != len(serial) {
		faults.add("the serial number has needless leading bytes")
	}
	switch {
	case serial[0]&0x80 != 0:
		faults.add("the serial number is negative")
	case len(bytes.TrimLeft(serial, "\x00")) == 0:
		faults.add("the serial number is zero")
	case len(serial) > 20:
		faults.add("the serial number has more than 20 bytes")
	}
}

func (c *Certificate) readValidity(in *cryptobyte.String, faults *deviations) (err error) {
	var seq cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) {
		return errors.New("the validity is not a SEQUENCE")
	}
	if c.NotBefore, err = readTime(&seq, faults); err != nil {
		return fmt.Errorf("start of validity: %w", err)
	}
	if c.NotAfter, err = readTime(&seq, faults); err != nil {
		return fmt.Errorf("end of validity: %w", err)
	}
	if !seq.Empty() {
		return errors.New("the validity must have two times, it has more")
	}
	if c.NotAfter.Before(c.NotBefore) {
		faults.add("the validity ends before it starts")
	}
	return nil
}

// Key returns the public key with the limits that the certificate sets. Its Public is nil
// when PublicKey is nil.
func (c *Certificate) Key() suite.Key {
	return suite.Key{Public: c.PublicKey, Suite: c.Suite, PSSOnly: c.pssOnly, Limit: c.limit}
}

func (c *Certificate) key() *keyInfo { return &keyInfo{Key: c.Key(), problem: c.KeyError} }

// Scheme returns the algorithm of the issuer's signature. The error names an algorithm
// that is not supported.
func (c *Certificate) Scheme() (*suite.Scheme, error) {
	return schemeOf(c.SignatureOID, c.parameters)
}

// VerifyBy checks a signature value over s.Input() of a message with the certificate's
// key, by a scheme that must fit the key. The value has the form of CMS. The error wraps
// suite.ErrSignature when the value does not match.
func (c *Certificate) VerifyBy(s *suite.Scheme, d suite.Digest, value []byte) error {
	if c.PublicKey == nil {
		return fmt.Errorf("x509gost: certificate: %w", c.KeyError)
	}
	return s.Verify(c.Key(), d, value)
}

// Verify checks a signature value over a digest by the suite of the certificate's key.
// The value has the form that suite.Sign returns. The error wraps suite.ErrSignature when
// the value does not match.
func (c *Certificate) Verify(d suite.Digest, value []byte) error {
	if c.Suite == nil {
		return fmt.Errorf("x509gost: certificate: %w", c.KeyError)
	}
	return c.Suite.Verify(c.PublicKey, d, value)
}

// CheckSignatureFrom checks that issuer's key signed the certificate, over the exact bytes
// received. It checks nothing else: package chain checks names, dates and usage. The error
// wraps suite.ErrSignature when the value does not match.
func (c *Certificate) CheckSignatureFrom(issuer *Certificate) error {
	if issuer != nil && c.signer.Load() == issuer { // it was right before, and neither of them changes
		return nil
	}
	if err := checkSignedOnce(c.SignatureOID, c.parameters, c.RawTBS, c.Signature, issuer); err != nil {
		return fmt.Errorf("x509gost: signature of certificate %s: %w", c.SerialHex(), err)
	}
	c.signer.Store(issuer)
	return nil
}

// IsSelfIssued reports whether subject and issuer are the same name.
func (c *Certificate) IsSelfIssued() bool { return c.Subject.Equal(c.Issuer) }

// Equal reports whether the whole encodings are equal.
func (c *Certificate) Equal(o *Certificate) bool {
	return c == o || c != nil && o != nil && bytes.Equal(c.Raw, o.Raw)
}

// Digest returns the digest of the whole certificate as received. It computes the digest
// once for each algorithm, because every signature needs that of its signer. The caller
// must not change the result.
func (c *Certificate) Digest(h *suite.Hash) []byte {
	for {
		known := c.digests.Load()
		var list []suite.Digest
		if known != nil {
			list = *known
		}
		for _, d := range list {
			if d.Hash == h {
				return d.Sum
			}
		}
		longer := append(slices.Clip(list), h.Digest(c.Raw))
		if c.digests.CompareAndSwap(known, &longer) { // else another goroutine added a digest; try again
			return longer[len(list)].Sum
		}
	}
}

// Thumbprint returns the SHA-1 of the certificate in upper-case hex, the form that Windows
// and related services use to name certificates.
func (c *Certificate) Thumbprint() string {
	return strings.ToUpper(hex.EncodeToString(c.Digest(suite.SHA1)))
}

// SerialHex returns the serial number in lower-case hex, two digits for each byte of the
// DER content.
func (c *Certificate) SerialHex() string { return hex.EncodeToString(c.SerialNumber) }

// Texts returns the texts of the certificate. It makes them once, because every verification
// needs those of the signer. The caller must not change the result.
func (c *Certificate) Texts() *Texts {
	if t := c.texts.Load(); t != nil {
		return t
	}
	upper := func(b []byte) string { return strings.ToUpper(hex.EncodeToString(b)) }
	t := &Texts{
		Subject: c.Subject.String(), Issuer: c.Issuer.String(),
		Serial: upper(c.SerialNumber), Thumbprint: c.Thumbprint(), KeyID: upper(c.SubjectKeyID),
	}
	c.texts.Store(t)
	return t
}

// Extension returns the extension with an identifier.
func (c *Certificate) Extension(oid OID) (Extension, bool) { return findExtension(c.Extensions, oid) }
