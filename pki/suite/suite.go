// Package suite owns algorithm suites as data: a key family together with the
// digest it signs, the object identifiers and XML identifiers of both, and the
// forms a signature value takes in CMS and X.509, in XML and bare. Formats
// above speak of a suite and never of an algorithm, so RSA and ECDSA take the
// same path as GOST.
//
// A key does not always tell its suite: a 256-bit GOST key is the same point on
// the same curve whether it belongs to GOST R 34.10-2001 or to 34.10-2012. What
// carries the key does (the algorithm of SubjectPublicKeyInfo or of PKCS #8),
// so x509gost hands out a suite beside every key, and that one is authoritative.
package suite

import (
	"crypto"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrSignature says that a signature value does not belong to the digest and
// the key. Verify wraps it; errors.Is finds it.
var ErrSignature = errors.New("suite: signature does not match")

// Suite is a key family with the digest it signs. The five of this package are
// the only ones there are: compare pointers.
type Suite struct {
	// Name is the name in configuration and on the command line.
	Name string
	// Title is the name in the words of the standard, for people.
	Title string
	// Hash is the only digest the keys of the suite sign (34.10-2001 with
	// 34.11-94, 256 bits with 256, 512 with 512).
	Hash *Hash
	// KeyOID is the algorithm of the key in SubjectPublicKeyInfo and PKCS #8.
	KeyOID OID
	// SignatureOID is key and digest together: signatureAlgorithm of
	// certificates, requests and CRLs.
	SignatureOID OID
	// SignatureNull tells that an AlgorithmIdentifier with SignatureOID carries
	// parameters NULL (RFC 4055, 5) instead of none (RFC 4491, 2.2; RFC 5758, 3.2).
	SignatureNull bool
	// CMSSignatureOID is what SignerInfo.signatureAlgorithm is written with: the
	// key's own identifier for GOST (RFC 4490, 2.3, and the TC26 examples) and
	// RSA (RFC 3370, 3.2), key with digest for ECDSA (RFC 5753, 2.1.1).
	CMSSignatureOID OID
	// CMSSignatureNull tells that CMSSignatureOID carries parameters NULL.
	CMSSignatureNull bool
	// XML holds the identifiers of SignatureMethod: the first is written, all
	// are understood.
	XML []string

	family family
}

// The suites. RSASHA256 covers RSA keys of 2048 to 8192 bits; its name is that
// of the key Generate makes.
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

// All returns every suite, GOST first. The slice is the caller's.
func All() []*Suite { return append([]*Suite(nil), suites...) }

// ByName finds a suite by its name, without regard to case.
func ByName(name string) (*Suite, bool) {
	for _, s := range suites {
		if strings.EqualFold(s.Name, name) {
			return s, true
		}
	}
	return nil, false
}

// ByKeyOID finds the suite of a key algorithm of SubjectPublicKeyInfo or PKCS #8.
func ByKeyOID(oid OID) (*Suite, bool) {
	for _, s := range suites {
		if s.KeyOID.Equal(oid) {
			return s, true
		}
	}
	return nil, false
}

// For finds the suite of a bare public key: *gost3410.PublicKey,
// *rsa.PublicKey or *ecdsa.PublicKey. A 256-bit GOST key counts as
// GOST2012x256, since nothing in it says that it is used by the older standard;
// where the key came in a certificate or a PKCS #8, use the suite found there.
func For(pub crypto.PublicKey) (*Suite, error) {
	for _, s := range []*Suite{GOST2012x256, GOST2012x512, RSASHA256, ECDSAP256} {
		if s.family.owns(pub) {
			return s, s.Accepts(pub)
		}
	}
	return nil, fmt.Errorf("suite: a public key of type %T belongs to no suite", pub)
}

// Accepts says whether a public key may be used with the suite, and if not why:
// another family, another size, too weak.
func (s *Suite) Accepts(pub crypto.PublicKey) error {
	if err := s.family.accepts(pub); err != nil {
		return fmt.Errorf("suite: %s: %w", s.Name, err)
	}
	return nil
}

// Generate makes a new key: CryptoPro-A for the 256-bit GOST suites, TC26 set A
// for 512 bits, RSA of 2048 bits, P-256. A nil rand means crypto/rand.Reader.
// The standard library draws RSA and ECDSA keys from its own generator whatever
// rand says.
func (s *Suite) Generate(rand io.Reader) (crypto.Signer, error) {
	key, err := s.family.generate(rand)
	if err != nil {
		return nil, fmt.Errorf("suite: %s: generating a key: %w", s.Name, err)
	}
	return key, nil
}

// Sign signs a digest and returns the value as CMS and X.509 carry it: s||r
// big-endian for GOST (RFC 4491, 2.2.2), PKCS #1 v1.5 for RSA, DER of r and s
// for ECDSA. It refuses a digest of another algorithm and a key of another
// family. A nil rand means crypto/rand.Reader.
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

// Verify checks a value in the form Sign returns. It answers nil, an error that
// wraps ErrSignature, or another error when key or digest are not of the suite.
func (s *Suite) Verify(pub crypto.PublicKey, d Digest, value []byte) error {
	if err := s.fits(d); err != nil {
		return err
	}
	if err := s.Accepts(pub); err != nil {
		return err
	}
	if !s.family.verify(pub, d.Sum, value) {
		return fmt.Errorf("%w (%s, %d octets of signature)", ErrSignature, s.Name, len(value))
	}
	return nil
}

func (s *Suite) fits(d Digest) error {
	if d.Hash == nil {
		return fmt.Errorf("suite: %s signs a digest of %s, the digest names no algorithm", s.Name, s.Hash.Name)
	}
	if d.Hash != s.Hash {
		return fmt.Errorf("suite: %s signs a digest of %s, not of %s", s.Name, s.Hash.Name, d.Hash.Name)
	}
	if len(d.Sum) != d.Hash.Size {
		return fmt.Errorf("suite: a digest of %s has %d octets, not %d", d.Hash.Name, d.Hash.Size, len(d.Sum))
	}
	return nil
}

// XMLValue turns a value as Sign returns it into the octets of SignatureValue
// of XMLDSig: the same for GOST and RSA, r||s of 32 octets each for ECDSA
// (XMLDSig 1.1, 6.4.3).
func (s *Suite) XMLValue(value []byte) ([]byte, error) {
	v, err := s.family.toXML(value)
	if err != nil {
		return nil, fmt.Errorf("suite: %s: signature value: %w", s.Name, err)
	}
	return v, nil
}

// FromXMLValue is the inverse of XMLValue.
func (s *Suite) FromXMLValue(value []byte) ([]byte, error) {
	v, err := s.family.fromXML(value)
	if err != nil {
		return nil, fmt.Errorf("suite: %s: signature value of XML: %w", s.Name, err)
	}
	return v, nil
}

// RawValue turns a value as Sign returns it into the bare signature of the
// service, which is the same octets (s||r big-endian for GOST); it checks their
// shape.
func (s *Suite) RawValue(value []byte) ([]byte, error) {
	if err := s.family.shape(value); err != nil {
		return nil, fmt.Errorf("suite: %s: signature value: %w", s.Name, err)
	}
	return value, nil
}

// FromRawValue is the inverse of RawValue.
func (s *Suite) FromRawValue(value []byte) ([]byte, error) { return s.RawValue(value) }
