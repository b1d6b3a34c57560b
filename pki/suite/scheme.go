// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"
	"hash"
	"math/big"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/gost/gost3410"
)

// ErrUnsupported reports an algorithm or a key that is not supported. Errors that wrap
// it name the algorithm.
var ErrUnsupported = errors.New("not supported")

// ErrTooShort reports a key that is not supported because its signatures can be forged.
var ErrTooShort = errors.New("too short")

// Scheme is an algorithm for verification: a kind of key, the digest it signs and, for
// RSA-PSS, the parameters of the padding. There are more schemes than suites, because
// this program signs with suites only.
type Scheme struct {
	// Name is for people, for instance "RSA-PSS with SHA-384".
	Name string
	// Hash is the digest of the signed message. Ed25519 signs the message itself; there
	// Hash is the digest that CMS uses besides (RFC 8419, 3.1).
	Hash *Hash
	// OID is the identifier in signatureAlgorithm of certificates, CRLs and OCSP answers.
	OID OID
	// XML holds the identifiers of SignatureMethod. It is empty when XML has none.
	XML []string

	null  bool // AlgorithmIdentifier carries parameters NULL
	kind  kind
	suite *Suite // set for GOST schemes, which accept keys of this suite only
	pss   *PSS
}

// kind is a kind of key and its padding.
type kind int

const (
	kindGOST kind = iota
	kindRSA
	kindPSS
	kindECDSA
	kindEd25519
)

// Identifiers of keys that no suite signs with.
var (
	oidRSA     = OID{1, 2, 840, 113549, 1, 1, 1}
	oidECDSA   = OID{1, 2, 840, 10045, 2, 1}
	OIDPSS     = OID{1, 2, 840, 113549, 1, 1, 10} // RSASSA-PSS, a key and a signature (RFC 4055)
	OIDEd25519 = OID{1, 3, 101, 112}              // a key and a signature (RFC 8410)
)

const (
	xmlOld  = "http://www.w3.org/2000/09/xmldsig#"
	xmlMore = "http://www.w3.org/2001/04/xmldsig-more#"
	xml2007 = "http://www.w3.org/2007/05/xmldsig-more#"
	xml2021 = "http://www.w3.org/2021/04/xmldsig-more#"
)

// schemes has all schemes except RSA-PSS, which depends on parameters besides the identifier.
var schemes = []*Scheme{
	gostScheme(GOST2001), gostScheme(GOST2012x256), gostScheme(GOST2012x512),

	// RFC 8017, A.2.4; RFC 9231, 2.3.1 to 2.3.5.
	rsaScheme(SHA256, OID{1, 2, 840, 113549, 1, 1, 11}, xmlMore+"rsa-sha256"),
	rsaScheme(SHA384, OID{1, 2, 840, 113549, 1, 1, 12}, xmlMore+"rsa-sha384"),
	rsaScheme(SHA512, OID{1, 2, 840, 113549, 1, 1, 13}, xmlMore+"rsa-sha512"),
	rsaScheme(SHA224, OID{1, 2, 840, 113549, 1, 1, 14}, xmlMore+"rsa-sha224"),
	rsaScheme(SHA1, OID{1, 2, 840, 113549, 1, 1, 5}, xmlOld+"rsa-sha1"),
	rsaScheme(SHA1, OID{1, 3, 14, 3, 2, 29}), // sha-1WithRSAEncryption of OIW, in old certificates
	rsaScheme(MD5, OID{1, 2, 840, 113549, 1, 1, 4}, xmlMore+"rsa-md5"),
	// RFC 9688 and the NIST arc. XML has no identifiers for them.
	rsaScheme(SHA3x224, OID{2, 16, 840, 1, 101, 3, 4, 3, 13}),
	rsaScheme(SHA3x256, OID{2, 16, 840, 1, 101, 3, 4, 3, 14}),
	rsaScheme(SHA3x384, OID{2, 16, 840, 1, 101, 3, 4, 3, 15}),
	rsaScheme(SHA3x512, OID{2, 16, 840, 1, 101, 3, 4, 3, 16}),

	// RFC 5758, 3.2; RFC 9231, 2.3.6.
	ecdsaScheme(SHA256, OID{1, 2, 840, 10045, 4, 3, 2}, xmlMore+"ecdsa-sha256"),
	ecdsaScheme(SHA384, OID{1, 2, 840, 10045, 4, 3, 3}, xmlMore+"ecdsa-sha384"),
	ecdsaScheme(SHA512, OID{1, 2, 840, 10045, 4, 3, 4}, xmlMore+"ecdsa-sha512"),
	ecdsaScheme(SHA224, OID{1, 2, 840, 10045, 4, 3, 1}, xmlMore+"ecdsa-sha224"),
	ecdsaScheme(SHA1, OID{1, 2, 840, 10045, 4, 1}, xmlMore+"ecdsa-sha1"),
	ecdsaScheme(SHA3x224, OID{2, 16, 840, 1, 101, 3, 4, 3, 9}, xml2021+"ecdsa-sha3-224"),
	ecdsaScheme(SHA3x256, OID{2, 16, 840, 1, 101, 3, 4, 3, 10}, xml2021+"ecdsa-sha3-256"),
	ecdsaScheme(SHA3x384, OID{2, 16, 840, 1, 101, 3, 4, 3, 11}, xml2021+"ecdsa-sha3-384"),
	ecdsaScheme(SHA3x512, OID{2, 16, 840, 1, 101, 3, 4, 3, 12}, xml2021+"ecdsa-sha3-512"),

	// RFC 8410, 3; RFC 9231, 2.3.12.
	{Name: "Ed25519", Hash: SHA512, OID: OIDEd25519, XML: []string{xml2021 + "eddsa-ed25519"}, kind: kindEd25519},
}

// pssNames has the XML identifiers for RSA-PSS without parameters: MGF1 uses the same
// digest, and the salt is as long as the digest (RFC 9231, 2.3.10).
var pssNames = map[string]*Hash{
	xml2007 + "md5-rsa-MGF1": MD5, xml2007 + "sha1-rsa-MGF1": SHA1, xml2007 + "sha224-rsa-MGF1": SHA224,
	xml2007 + "sha256-rsa-MGF1": SHA256, xml2007 + "sha384-rsa-MGF1": SHA384, xml2007 + "sha512-rsa-MGF1": SHA512,
	xml2007 + "sha3-224-rsa-MGF1": SHA3x224, xml2007 + "sha3-256-rsa-MGF1": SHA3x256,
	xml2007 + "sha3-384-rsa-MGF1": SHA3x384, xml2007 + "sha3-512-rsa-MGF1": SHA3x512,
}

func gostScheme(s *Suite) *Scheme {
	return &Scheme{Name: s.Title, Hash: s.Hash, OID: s.SignatureOID, XML: s.XML, kind: kindGOST, suite: s}
}

func rsaScheme(h *Hash, oid OID, xml ...string) *Scheme {
	return &Scheme{Name: "RSA with " + h.Name, Hash: h, OID: oid, XML: xml, null: true, kind: kindRSA}
}

func ecdsaScheme(h *Hash, oid OID, xml ...string) *Scheme {
	return &Scheme{Name: "ECDSA with " + h.Name, Hash: h, OID: oid, XML: xml, kind: kindECDSA}
}

// Scheme returns the scheme that the suite signs by.
func (s *Suite) Scheme() *Scheme {
	for _, c := range schemes {
		if c.OID.Equal(s.SignatureOID) {
			return c
		}
	}
	return nil // never for the suites of this package
}

// SchemeByOID returns the scheme of an AlgorithmIdentifier that names key and digest
// together, as certificates, requests, CRLs and OCSP answers have it. parameters is the
// whole element, empty when absent. Malformed and unsupported identifiers are errors; the
// latter wrap ErrUnsupported. deviation describes a harmless fault: a missing NULL, or a
// NULL that should be absent.
func SchemeByOID(oid OID, parameters []byte) (s *Scheme, deviation string, err error) {
	if oid.Equal(OIDPSS) {
		p, err := ParsePSS(parameters)
		if err != nil {
			return nil, "", err
		}
		return p.Scheme(), "", nil
	}
	for _, s := range schemes {
		if !s.OID.Equal(oid) {
			continue
		}
		isNull := bytes.Equal(parameters, []byte{byte(cbasn1.NULL), 0})
		switch {
		case len(parameters) != 0 && !isNull:
			return nil, "", fmt.Errorf("signature algorithm %s has parameters", oid)
		case isNull && !s.null:
			deviation = fmt.Sprintf("signature algorithm %s has parameters NULL and should have none", oid)
		case !isNull && s.null:
			deviation = fmt.Sprintf("signature algorithm %s has no parameters and should have NULL", oid)
		}
		return s, deviation, nil
	}
	return nil, "", unsupported("signature algorithm", oid)
}

// SchemeBySigner returns the scheme of a CMS SignerInfo. Its signatureAlgorithm may name
// the key alone or key and digest, and must agree with its digestAlgorithm. Parameters
// count for RSA-PSS only, because programs write various ones for other algorithms.
func SchemeBySigner(signature OID, parameters []byte, digest OID) (*Scheme, error) {
	h, known := HashByOID(digest)
	if !known {
		return nil, unsupported("digest algorithm", digest)
	}
	if signature.Equal(OIDPSS) {
		p, err := ParsePSS(parameters)
		if err != nil {
			return nil, err
		}
		if p.Hash != h { // RFC 4056, 3
			return nil, fmt.Errorf("suite: RSA-PSS signs %s, not digest algorithm %s", p.Hash.Name, h.Name)
		}
		return p.Scheme(), nil
	}
	var other *Hash
	for _, s := range schemes {
		byKey := s.keyOID().Equal(signature)
		if !byKey && !s.OID.Equal(signature) {
			continue
		}
		if s.Hash == h {
			return s, nil
		}
		if other = s.Hash; byKey {
			other = nil
		}
	}
	switch {
	case other != nil:
		return nil, fmt.Errorf("suite: signature algorithm %s signs %s, not digest algorithm %s", nameOf(signature), other.Name, h.Name)
	case isKeyOID(signature):
		return nil, fmt.Errorf("suite: %w: signature algorithm %s with digest algorithm %s", ErrUnsupported, nameOf(signature), h.Name)
	}
	return nil, unsupported("signature algorithm", signature)
}

// SchemeByXML returns the scheme with an identifier of SignatureMethod that needs no
// parameters.
func SchemeByXML(uri string) (*Scheme, bool) {
	if h := pssNames[uri]; h != nil {
		return PSS{Hash: h, MGF: h, Salt: h.Size}.Scheme(), true
	}
	for _, s := range schemes {
		for _, x := range s.XML {
			if x == uri {
				return s, true
			}
		}
	}
	return nil, false
}

func isKeyOID(oid OID) bool {
	for _, s := range schemes {
		if s.keyOID().Equal(oid) {
			return true
		}
	}
	return false
}

// keyOID is the algorithm of the scheme's keys in SubjectPublicKeyInfo.
func (s *Scheme) keyOID() OID {
	switch s.kind {
	case kindGOST:
		return s.suite.KeyOID
	case kindECDSA:
		return oidECDSA
	case kindEd25519:
		return OIDEd25519
	}
	return oidRSA
}

// message takes the place of the digest for schemes that sign the message itself. It
// keeps all that is written to it, so the caller must limit the message.
var message = &Hash{
	Name: "the message itself",
	New:  func() hash.Hash { return new(keeper) },
	sum:  func(m []byte) []byte { return m },
}

type keeper struct{ bytes.Buffer }

func (k *keeper) Sum(b []byte) []byte { return append(b, k.Bytes()...) }
func (k *keeper) Size() int           { return k.Len() }
func (k *keeper) BlockSize() int      { return 1 }

// Input returns what the key signs of a message: its digest or, for Ed25519, the message
// itself. For Ed25519 the computation keeps the whole message in memory.
func (s *Scheme) Input() *Hash {
	if s.kind == kindEd25519 {
		return message
	}
	return s.Hash
}

// SignsMessage reports whether the key signs the message itself and not a digest of it.
func (s *Scheme) SignsMessage() bool { return s.Input() == message }

// Key is a public key with the limits that its SubjectPublicKeyInfo sets.
type Key struct {
	// Public is *gost3410.PublicKey, *rsa.PublicKey, *ecdsa.PublicKey or
	// ed25519.PublicKey.
	Public crypto.PublicKey
	// Suite is the suite that signs with such keys, nil when there is none. A GOST key
	// always has one.
	Suite *Suite
	// PSSOnly reports that the key is for RSA-PSS alone (id-RSASSA-PSS, RFC 4055, 1.2).
	// Limit holds the parameters that the key is restricted to, nil for no restriction.
	PSSOnly bool
	Limit   *PSS
}

const (
	// minVerified is the shortest RSA modulus that is verified, in bits. A modulus below
	// minRSABits is weak.
	minVerified = 1024
	maxExponent = 1<<31 - 1
)

var curves = []elliptic.Curve{elliptic.P224(), elliptic.P256(), elliptic.P384(), elliptic.P521()}

// Check returns an error when signatures by the key are not verified: the key is too
// short to prove anything, too long to check in reasonable time, or on another curve.
// The error wraps ErrUnsupported, and ErrTooShort if that is the reason.
func (k *Key) Check() error {
	no := func(format string, args ...any) error {
		return fmt.Errorf("suite: %w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
	}
	switch p := k.Public.(type) {
	case *gost3410.PublicKey:
		if p != nil && k.Suite != nil {
			return k.Suite.Accepts(p)
		}
	case *rsa.PublicKey:
		if p == nil || p.N == nil || p.N.Sign() <= 0 || p.N.Bit(0) == 0 {
			return no("an RSA key without an odd modulus")
		}
		n := p.N.BitLen()
		if n < minVerified {
			return fmt.Errorf("suite: %w: an RSA key of %d bits is %w; %d to %d are verified", ErrUnsupported, n, ErrTooShort, minVerified, maxRSABits)
		}
		if n > maxRSABits {
			return no("an RSA key of %d bits; %d to %d are verified", n, minVerified, maxRSABits)
		}
		if p.E < 3 || p.E > maxExponent || p.E%2 == 0 {
			return no("an RSA key with the exponent %d; it must be odd and from 3 to %d", p.E, maxExponent)
		}
		return nil
	case *ecdsa.PublicKey:
		for _, c := range curves {
			if p != nil && p.Curve == c {
				return nil
			}
		}
	case ed25519.PublicKey:
		if len(p) == ed25519.PublicKeySize {
			return nil
		}
	}
	return no("a key of type %T", k.Public)
}

// Name returns a name of the key for people.
func (k *Key) Name() string {
	switch p := k.Public.(type) {
	case *rsa.PublicKey:
		if k.PSSOnly {
			return fmt.Sprintf("RSA-PSS of %d bits", p.N.BitLen())
		}
		return fmt.Sprintf("RSA of %d bits", p.N.BitLen())
	case *ecdsa.PublicKey:
		return "ECDSA on " + p.Curve.Params().Name
	case ed25519.PublicKey:
		return "Ed25519"
	}
	if k.Suite != nil {
		return k.Suite.Title
	}
	return "a key that is not supported"
}

// Accepts returns an error when a key cannot verify by the scheme: it is another kind of
// key, or its certificate restricts it to something else.
func (s *Scheme) Accepts(k Key) error {
	fits := false
	switch k.Public.(type) {
	case *gost3410.PublicKey:
		fits = s.kind == kindGOST && k.Suite == s.suite
	case *rsa.PublicKey:
		fits = s.kind == kindPSS || s.kind == kindRSA && !k.PSSOnly
	case *ecdsa.PublicKey:
		fits = s.kind == kindECDSA
	case ed25519.PublicKey:
		fits = s.kind == kindEd25519
	}
	if !fits {
		return fmt.Errorf("suite: the signature algorithm is %s, but the key is %s", s.Name, k.Name())
	}
	if l := k.Limit; l != nil && (s.pss.Hash != l.Hash || s.pss.MGF != l.MGF || s.pss.Salt < l.Salt) { // RFC 4055, 3.3
		return fmt.Errorf("suite: the signature algorithm is %s, but the key is limited to %s", s.Name, l.Scheme().Name)
	}
	return k.Check()
}

// Verify checks a signature value over s.Input() of the message, in the form of CMS and
// X.509. It returns nil when the value matches, and an error that wraps ErrSignature when
// it does not. Other errors mean that the key or the digest does not fit the scheme.
func (s *Scheme) Verify(k Key, d Digest, value []byte) error {
	if err := s.Accepts(k); err != nil {
		return err
	}
	if d.Hash != s.Input() || d.Hash.Size != 0 && len(d.Sum) != d.Hash.Size {
		return fmt.Errorf("suite: %s signs a digest by %s", s.Name, s.Input().Name)
	}
	if !s.holds(k, d.Sum, value) {
		return fmt.Errorf("%w (%s, %d bytes of signature)", ErrSignature, s.Name, len(value))
	}
	return nil
}

func (s *Scheme) holds(k Key, sum, value []byte) bool {
	switch p := k.Public.(type) {
	case *gost3410.PublicKey:
		return s.suite.family.verify(p, sum, value)
	case *rsa.PublicKey:
		if s.kind == kindPSS {
			return s.pss.verify(p, sum, value)
		}
		return rsa.VerifyPKCS1v15(p, s.Hash.std, sum, value) == nil
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(p, sum, value)
	case ed25519.PublicKey:
		return ed25519.Verify(p, sum, value)
	}
	return false
}

// FromXML converts the bytes of SignatureValue to the form that Verify takes. For ECDSA
// SignatureValue is r||s, each as long as the order of the key's curve (XMLDSig 1.1,
// 6.4.3).
func (s *Scheme) FromXML(k Key, rs []byte) ([]byte, error) {
	p, ok := k.Public.(*ecdsa.PublicKey)
	if !ok {
		return rs, nil
	}
	size := (p.Curve.Params().N.BitLen() + 7) / 8
	if len(rs) != 2*size {
		return nil, fmt.Errorf("suite: r and s of %s take %d bytes, not %d", p.Curve.Params().Name, 2*size, len(rs))
	}
	var b cryptobyte.Builder
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1BigInt(new(big.Int).SetBytes(rs[:size]))
		b.AddASN1BigInt(new(big.Int).SetBytes(rs[size:]))
	})
	return b.Bytes()
}
