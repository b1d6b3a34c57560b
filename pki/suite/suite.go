// SPDX-License-Identifier: Apache-2.0

// Package suite describes signature algorithms as data: a kind of key together with the
// digest it signs, the object identifiers and XML identifiers of both, and the forms of a
// signature value in CMS and X.509, in XML and alone. Packages for formats use a suite and
// never name an algorithm, so RSA and ECDSA take the same path as GOST.
//
// Begin with ByName or For, then use Sign and Verify of the Suite. To verify signatures of
// other programs use a Scheme (SchemeByOID, SchemeBySigner, SchemeByXML), which knows more
// algorithms. The package does not read certificates or keys; package x509gost does.
//
// A key alone does not always determine its suite: a 256-bit GOST key looks the same
// under GOST R 34.10-2001 and 34.10-2012. The algorithm of SubjectPublicKeyInfo or of
// PKCS #8 does determine it. Package x509gost therefore returns a suite beside every
// key. That suite is authoritative.
package suite

import (
	"crypto"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ErrSignature reports that a signature value does not match the digest and the key.
// Verify wraps it, so use errors.Is.
var ErrSignature = errors.New("suite: signature does not match")

// Suite is a kind of key with the digest it signs. The five variables of this package
// are the only values, so compare pointers.
type Suite struct {
	// Name is the name in configuration and on the command line.
	Name string
	// Title is the name in the words of the standard, for display.
	Title string
	// Hash is the only digest that keys of the suite sign: 34.11-94 for 34.10-2001,
	// 34.11-2012 of 256 bits for 256-bit keys, of 512 bits for 512-bit keys.
	Hash *Hash
	// KeyOID is the algorithm of the key in SubjectPublicKeyInfo and PKCS #8.
	KeyOID OID
	// SignatureOID names key and digest together. It is the signatureAlgorithm of
	// certificates, requests and CRLs.
	SignatureOID OID
	// SignatureNull reports whether an AlgorithmIdentifier with SignatureOID has
	// parameters NULL (RFC 4055, 5) or none (RFC 4491, 2.2; RFC 5758, 3.2).
	SignatureNull bool
	// CMSSignatureOID is written in SignerInfo.signatureAlgorithm: the key's own
	// identifier for GOST (RFC 4490, 2.3, and the TC26 examples) and RSA (RFC 3370,
	// 3.2), key with digest for ECDSA (RFC 5753, 2.1.1).
	CMSSignatureOID OID
	// CMSSignatureNull reports whether CMSSignatureOID has parameters NULL.
	CMSSignatureNull bool
	// XML holds the identifiers of SignatureMethod. The first is written, all are
	// understood.
	XML []string

	family family
}

// The suites. RSASHA256 accepts RSA keys of 2048 to 8192 bits. Its Name, rsa-2048, tells
// the size of a generated key.
var (
	GOST2001 = &Suite{
		Name: "gost2001", Title: "GOST R 34.10-2001", Hash: GOST94,
		KeyOID:          OID{1, 2, 643, 2, 2, 19},
		SignatureOID:    OID{1, 2, 643, 2, 2, 3},
		CMSSignatureOID: OID{1, 2, 643, 2, 2, 19},
		XML: []string{
			"urn:ietf:params:xml:ns:cpxmlsec:algorithms:gostr34102001-gostr3411",
			"http://www.w3.org/2001/04/xmldsig-more#gostr34102001-gostr3411",
		},
		family: gostFamily{size: 32, initial: gost2001Default},
	}
	GOST2012x256 = &Suite{
		Name: "gost2012-256", Title: "GOST R 34.10-2012 256 bit", Hash: Streebog256,
		KeyOID:          OID{1, 2, 643, 7, 1, 1, 1, 1},
		SignatureOID:    OID{1, 2, 643, 7, 1, 1, 3, 2},
		CMSSignatureOID: OID{1, 2, 643, 7, 1, 1, 1, 1},
		XML:             []string{"urn:ietf:params:xml:ns:cpxmlsec:algorithms:gostr34102012-gostr34112012-256"},
		family:          gostFamily{size: 32, initial: gost256Default},
	}
	GOST2012x512 = &Suite{
		Name: "gost2012-512", Title: "GOST R 34.10-2012 512 bit", Hash: Streebog512,
		KeyOID:          OID{1, 2, 643, 7, 1, 1, 1, 2},
		SignatureOID:    OID{1, 2, 643, 7, 1, 1, 3, 3},
		CMSSignatureOID: OID{1, 2, 643, 7, 1, 1, 1, 2},
		XML:             []string{"urn:ietf:params:xml:ns:cpxmlsec:algorithms:gostr34102012-gostr34112012-512"},
		family:          gostFamily{size: 64, initial: gost512Default},
	}
	RSASHA256 = &Suite{
		Name: "rsa-2048", Title: "RSA", Hash: SHA256,
		KeyOID:          OID{1, 2, 840, 113549, 1, 1, 1},
		SignatureOID:    OID{1, 2, 840, 113549, 1, 1, 11},
		SignatureNull:   true,
		CMSSignatureOID: OID{1, 2, 840, 113549, 1, 1, 1}, CMSSignatureNull: true,
		XML:    []string{"http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"},
		family: rsaFamily{},
	}
	ECDSAP256 = &Suite{
		Name: "ecdsa-p256", Title: "ECDSA P-256", Hash: SHA256,
		KeyOID:          OID{1, 2, 840, 10045, 2, 1},
		SignatureOID:    OID{1, 2, 840, 10045, 4, 3, 2},
		CMSSignatureOID: OID{1, 2, 840, 10045, 4, 3, 2},
		XML:             []string{"http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256"},
		family:          ecdsaFamily{},
	}
)

var suites = []*Suite{GOST2001, GOST2012x256, GOST2012x512, RSASHA256, ECDSAP256}

// All returns every suite, GOST first. The caller may change the slice.
func All() []*Suite { return append([]*Suite(nil), suites...) }

// ByName returns the suite with a name. Case does not matter.
func ByName(name string) (*Suite, bool) {
	for _, s := range suites {
		if strings.EqualFold(s.Name, name) {
			return s, true
		}
	}
	return nil, false
}

// ByKeyOID returns the suite of a key algorithm in SubjectPublicKeyInfo or PKCS #8.
func ByKeyOID(oid OID) (*Suite, bool) {
	for _, s := range suites {
		if s.KeyOID.Equal(oid) {
			return s, true
		}
	}
	return nil, false
}

// For returns the suite of a public key without its encoding: *gost3410.PublicKey,
// *rsa.PublicKey or *ecdsa.PublicKey. A 256-bit GOST key gets GOST2012x256, because
// nothing in it names the older standard. If the key came in a certificate or in PKCS #8,
// use the suite that was found there.
func For(pub crypto.PublicKey) (*Suite, error) {
	for _, s := range []*Suite{GOST2012x256, GOST2012x512, RSASHA256, ECDSAP256} {
		if s.family.owns(pub) {
			return s, s.Accepts(pub)
		}
	}
	return nil, fmt.Errorf("suite: no suite uses a public key of type %T", pub)
}

// Accepts returns an error when a public key cannot be used with the suite: another kind
// of key, another size, or too weak.
func (s *Suite) Accepts(pub crypto.PublicKey) error {
	if err := s.family.accepts(pub); err != nil {
		return fmt.Errorf("suite: %s: %w", s.Name, err)
	}
	return nil
}

// Generate makes a new key: on CryptoPro-A for the 256-bit GOST suites, on TC26 set A for
// 512 bits, RSA of 2048 bits, ECDSA on P-256. A nil rand means crypto/rand.Reader. The
// standard library ignores rand for RSA and ECDSA keys.
func (s *Suite) Generate(rand io.Reader) (crypto.Signer, error) {
	key, err := s.family.generate(rand)
	if err != nil {
		return nil, fmt.Errorf("suite: %s: generating a key: %w", s.Name, err)
	}
	return key, nil
}

// Sign signs a digest and returns the value in the form of CMS and X.509: s||r big-endian
// for GOST (RFC 4491, 2.2.2), PKCS #1 v1.5 for RSA, DER of r and s for ECDSA. It refuses
// a digest of another algorithm and a key that the suite does not accept. A nil rand means
// crypto/rand.Reader.
func (s *Suite) Sign(rand io.Reader, key crypto.Signer, d Digest) ([]byte, error) {
	if err := s.fits(d); err != nil {
		return nil, err
	}
	if err := s.Accepts(key.Public()); err != nil {
		return nil, err
	}
	value, err := s.family.sign(rand, key, d.Sum)
	if err != nil {
		return nil, fmt.Errorf("suite: %s: signing: %w", s.Name, err)
	}
	return value, nil
}

// Verify checks a signature value in the form that Sign returns. It returns nil when the
// value matches, and an error that wraps ErrSignature when it does not. Other errors mean
// that the key or the digest does not fit the suite.
func (s *Suite) Verify(pub crypto.PublicKey, d Digest, value []byte) error {
	if err := s.fits(d); err != nil {
		return err
	}
	if err := s.Accepts(pub); err != nil {
		return err
	}
	if !s.family.verify(pub, d.Sum, value) {
		return fmt.Errorf("%w (%s, %d bytes of signature)", ErrSignature, s.Name, len(value))
	}
	return nil
}

// VerifyMany checks the value of each digest and returns nil when all of them are right, or
// else the error of the first one that is not. With a GOST key it is faster than a Verify of
// each.
func (s *Suite) VerifyMany(pub crypto.PublicKey, d []Digest, values [][]byte) error {
	if len(d) != len(values) {
		return fmt.Errorf("suite: %s: %d values of %d digests", s.Name, len(values), len(d))
	}
	if f, ok := s.family.(gostFamily); ok && s.Accepts(pub) == nil && !slices.ContainsFunc(d, func(d Digest) bool { return s.fits(d) != nil }) &&
		f.verifyMany(pub, d, values) {
		return nil
	}
	for i := range d { // finds the one that is wrong
		if err := s.Verify(pub, d[i], values[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Suite) fits(d Digest) error {
	if d.Hash == nil {
		return fmt.Errorf("suite: %s signs a digest of %s, but the digest names no algorithm", s.Name, s.Hash.Name)
	}
	if d.Hash != s.Hash {
		return fmt.Errorf("suite: %s signs a digest of %s, not of %s", s.Name, s.Hash.Name, d.Hash.Name)
	}
	if len(d.Sum) != d.Hash.Size {
		return fmt.Errorf("suite: a digest of %s has %d bytes, not %d", d.Hash.Name, d.Hash.Size, len(d.Sum))
	}
	return nil
}

// XMLValue converts a value that Sign returned to the bytes of SignatureValue in XMLDSig.
// They are the same for GOST and RSA, and r||s of 32 bytes each for ECDSA (XMLDSig 1.1,
// 6.4.3).
func (s *Suite) XMLValue(value []byte) ([]byte, error) {
	v, err := s.family.toXML(value)
	if err != nil {
		return nil, fmt.Errorf("suite: %s: signature value: %w", s.Name, err)
	}
	return v, nil
}

// FromXMLValue reverses XMLValue.
func (s *Suite) FromXMLValue(value []byte) ([]byte, error) {
	v, err := s.family.fromXML(value)
	if err != nil {
		return nil, fmt.Errorf("suite: %s: signature value of XML: %w", s.Name, err)
	}
	return v, nil
}

// RawValue converts a value that Sign returned to the raw signature of the service. The
// bytes are the same (s||r big-endian for GOST), but their length or form is checked.
func (s *Suite) RawValue(value []byte) ([]byte, error) {
	if err := s.family.shape(value); err != nil {
		return nil, fmt.Errorf("suite: %s: signature value: %w", s.Name, err)
	}
	return value, nil
}

// FromRawValue reverses RawValue.
func (s *Suite) FromRawValue(value []byte) ([]byte, error) { return s.RawValue(value) }
