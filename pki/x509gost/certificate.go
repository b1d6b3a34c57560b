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

// OID names every object identifier here; an alias of encoding/asn1's type.
type OID = suite.OID

// Certificate is a parsed X.509 certificate (RFC 5280, 4.1). The byte slices
// share memory with Raw and must not be changed.
type Certificate struct {
	Raw        []byte // the whole certificate as received
	RawTBS     []byte // what is signed
	RawSPKI    []byte // SubjectPublicKeyInfo
	RawIssuer  []byte // the issuer's Name
	RawSubject []byte // the subject's Name

	// SerialNumber is the content of the DER INTEGER exactly as in the bytes:
	// big-endian two's complement, possibly negative or with needless zeros.
	SerialNumber []byte

	Issuer, Subject     Name
	NotBefore, NotAfter time.Time // UTC

	// PublicKey is *gost3410.PublicKey, *rsa.PublicKey, *ecdsa.PublicKey or
	// ed25519.PublicKey, nil when signatures by such keys are not verified. Suite says
	// how this program signs with the key and is authoritative for the family of a GOST
	// key. It is nil when no suite has such keys: KeyError then says why, and what is
	// wrong with the key where PublicKey is nil as well. A GOST key that is malformed
	// fails the whole parse.
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

	// Extensions are all of them in order, also those read into fields above.
	Extensions []Extension

	// Deviations are the faults that were tolerated, in words.
	Deviations []string

	pssOnly bool       // the key is for RSA-PSS alone
	limit   *suite.PSS // with these parameters

	digests atomic.Pointer[[]suite.Digest] // see Digest
}

// ParseCertificate reads one DER certificate of at most MaxCertificate octets,
// without anything behind it.
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
		return errors.New("the signature algorithm inside is not the one outside")
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
		return errors.New("something unknown follows the extensions")
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
		faults.add("version 1 is written out, DER leaves it out")
	}
	return version, nil
}

// checkSerial reports what RFC 5280, 4.1.2.2 forbids and practice contains.
func checkSerial(serial []byte, faults *deviations) {
	if len(trimInteger(serial)) != len(serial) {
		faults.add("the serial number has needless octets in front")
	}
	switch {
	case serial[0]&0x80 != 0:
		faults.add("the serial number is negative")
	case len(bytes.TrimLeft(serial, "\x00")) == 0:
		faults.add("the serial number is zero")
	case len(serial) > 20:
		faults.add("the serial number has more than 20 octets")
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
		return errors.New("the validity has more than two times")
	}
	if c.NotAfter.Before(c.NotBefore) {
		faults.add("the validity ends before it starts")
	}
	return nil
}

// Key is the public key with what the certificate says of its use. Its Public is nil
// where PublicKey is.
func (c *Certificate) Key() suite.Key {
	return suite.Key{Public: c.PublicKey, Suite: c.Suite, PSSOnly: c.pssOnly, Limit: c.limit}
}

func (c *Certificate) key() *keyInfo { return &keyInfo{Key: c.Key(), problem: c.KeyError} }

// Scheme is the algorithm of the issuer's signature. The error names one that is not
// supported.
func (c *Certificate) Scheme() (*suite.Scheme, error) {
	return schemeOf(c.SignatureOID, c.parameters)
}

// VerifyBy checks a signature value over s.Input() of a message, by the certificate's
// key and a scheme that fits it. The value has the form of CMS. The error wraps
// suite.ErrSignature when the value does not match.
func (c *Certificate) VerifyBy(s *suite.Scheme, d suite.Digest, value []byte) error {
	if c.PublicKey == nil {
		return fmt.Errorf("x509gost: certificate: %w", c.KeyError)
	}
	return s.Verify(c.Key(), d, value)
}

// Verify checks a signature value over a digest by the suite of the certificate's key,
// in the form of suite.Sign. The error wraps suite.ErrSignature when the value does not
// match.
func (c *Certificate) Verify(d suite.Digest, value []byte) error {
	if c.Suite == nil {
		return fmt.Errorf("x509gost: certificate: %w", c.KeyError)
	}
	return c.Suite.Verify(c.PublicKey, d, value)
}

// CheckSignatureFrom checks that issuer's key signed the certificate, over the
// exact bytes received. It looks at nothing else: names, dates and usage are
// for package chain. The error wraps suite.ErrSignature when the value does not
// match.
func (c *Certificate) CheckSignatureFrom(issuer *Certificate) error {
	scheme, err := c.Scheme()
	if err == nil {
		err = checkSigned(scheme, c.RawTBS, c.Signature, issuer.key())
	}
	if err != nil {
		return fmt.Errorf("x509gost: signature of certificate %s: %w", c.SerialHex(), err)
	}
	return nil
}

// IsSelfIssued tells that subject and issuer are the same name.
func (c *Certificate) IsSelfIssued() bool { return c.Subject.Equal(c.Issuer) }

// Equal compares the whole encodings.
func (c *Certificate) Equal(o *Certificate) bool {
	return c == o || c != nil && o != nil && bytes.Equal(c.Raw, o.Raw)
}

// Digest is the digest of the whole certificate as received, computed once by each
// algorithm: with every signature a signer's is asked for. It must not be changed.
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
		if c.digests.CompareAndSwap(known, &longer) { // else somebody added another
			return longer[len(list)].Sum
		}
	}
}

// Thumbprint is the SHA-1 of the certificate in upper-case hex, as Windows and
// the services around it name certificates.
func (c *Certificate) Thumbprint() string {
	return strings.ToUpper(hex.EncodeToString(c.Digest(suite.SHA1)))
}

// SerialHex is the serial number in lower-case hex, two digits per octet of the
// DER content.
func (c *Certificate) SerialHex() string { return hex.EncodeToString(c.SerialNumber) }

// Extension finds an extension by its identifier.
func (c *Certificate) Extension(oid OID) (Extension, bool) { return findExtension(c.Extensions, oid) }
