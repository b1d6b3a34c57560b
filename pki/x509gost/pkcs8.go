package x509gost

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/gost/gost3410"
	"tamga/pki/suite"
)

// MarshalPrivateKey encodes a private key of the suite as PKCS #8
// PrivateKeyInfo (RFC 5958). A GOST key is written as OpenSSL's gost-engine
// does it: the privateKey OCTET STRING holds the little-endian scalar of 32 or
// 64 octets itself. The result is secret: the caller wipes it.
func MarshalPrivateKey(key crypto.Signer, s *suite.Suite) ([]byte, error) {
	der, err := marshalPrivate(key, s)
	if err != nil {
		return nil, fmt.Errorf("x509gost: private key: %w", err)
	}
	return der, nil
}

func marshalPrivate(key crypto.Signer, s *suite.Suite) ([]byte, error) {
	if s == nil || key == nil {
		return nil, errors.New("a key and its suite are wanted")
	}
	if err := s.Accepts(key.Public()); err != nil {
		return nil, err
	}
	if !s.IsGOST() {
		return x509.MarshalPKCS8PrivateKey(key)
	}
	private, ok := key.(*gost3410.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("a key of type %T cannot be written out", key)
	}
	p, err := s.ParametersOf(private.Set())
	if err != nil {
		return nil, err
	}
	scalar := private.Bytes()
	defer clear(scalar)
	// Large enough that the builder never moves, and leaves behind, the key.
	b := cryptobyte.NewBuilder(make([]byte, 0, 256))
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1Uint64(0)
		addGOSTAlgorithm(b, s, p)
		b.AddASN1OctetString(scalar)
	})
	return b.Bytes()
}

// ParsePrivateKey reads an unencrypted PKCS #8 PrivateKeyInfo and returns the
// key and the suite its algorithm names. GOST keys are read in each form found
// in the field: the little-endian scalar itself (gost-engine), an OCTET STRING
// around it (RFC 9548, Bouncy Castle) and a big-endian INTEGER (older CSPs).
// The masked form of RFC 9548 is refused.
func ParsePrivateKey(pkcs8 []byte) (crypto.Signer, *suite.Suite, error) {
	key, su, err := parsePrivate(pkcs8)
	if err != nil {
		return nil, nil, fmt.Errorf("x509gost: private key: %w", err)
	}
	return key, su, nil
}

func parsePrivate(der []byte) (crypto.Signer, *suite.Suite, error) {
	if len(der) > MaxPrivateKey {
		return nil, nil, fmt.Errorf("%d octets are more than the %d allowed", len(der), MaxPrivateKey)
	}
	var seq, private cryptobyte.String
	var version uint
	in := cryptobyte.String(der)
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !in.Empty() {
		return nil, nil, errors.New("not one DER SEQUENCE")
	}
	if !seq.ReadASN1Integer(&version) || version > 1 {
		return nil, nil, errors.New("not a PrivateKeyInfo of version 0 or 1")
	}
	oid, parameters, err := readAlgorithm(&seq)
	if err != nil {
		return nil, nil, err
	}
	if !seq.ReadASN1(&private, cbasn1.OCTET_STRING) {
		return nil, nil, errors.New("the key is not an OCTET STRING")
	}
	// Attributes [0] and the public key [1] may follow.
	for _, tag := range []cbasn1.Tag{cbasn1.Tag(0).Constructed().ContextSpecific(), cbasn1.Tag(1).ContextSpecific()} {
		if !seq.SkipOptionalASN1(tag) {
			return nil, nil, errors.New("what follows the key is malformed")
		}
	}
	if !seq.Empty() {
		return nil, nil, errors.New("something unknown follows the key")
	}
	su, known := suite.ByKeyOID(oid)
	if !known {
		return nil, nil, fmt.Errorf("key algorithm %s is not supported", oid)
	}
	if su.IsGOST() {
		key, err := readGOSTPrivate(su, parameters, private)
		if err != nil {
			return nil, nil, err
		}
		return key, su, nil
	}
	return parseStandardPrivate(der, su)
}

func parseStandardPrivate(der []byte, su *suite.Suite) (crypto.Signer, *suite.Suite, error) {
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		// The library's own words may quote numbers of the key.
		return nil, nil, fmt.Errorf("not a well-formed key of %s", su.Name)
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, nil, fmt.Errorf("a key of type %T does not sign", parsed)
	}
	return key, su, su.Accepts(key.Public())
}

func readGOSTPrivate(su *suite.Suite, parameters []byte, private cryptobyte.String) (*gost3410.PrivateKey, error) {
	var faults deviations // of the parameters; nothing depends on them here
	p, err := readGOSTParameters(su, parameters, &faults)
	if err != nil {
		return nil, err
	}
	scalar, err := readScalar(private, p.Set.Size())
	if err != nil {
		return nil, err
	}
	defer clear(scalar)
	return gost3410.NewPrivateKey(p.Set, scalar)
}

// readScalar returns a copy of the little-endian scalar of size octets. The
// forms are told apart by length and tag, which are no secrets.
func readScalar(private cryptobyte.String, size int) ([]byte, error) {
	if len(private) == size {
		return slices.Clone(private), nil
	}
	var content cryptobyte.String
	var tag cbasn1.Tag
	if !private.ReadAnyASN1(&content, &tag) || !private.Empty() {
		return nil, fmt.Errorf("a GOST key is %d octets, or an OCTET STRING or INTEGER of them", size)
	}
	switch {
	case tag == cbasn1.OCTET_STRING && len(content) == size:
		return slices.Clone(content), nil
	case tag == cbasn1.OCTET_STRING && len(content) > 0 && len(content)%size == 0:
		return nil, errors.New("the key is masked, which is not supported")
	case tag == cbasn1.INTEGER && len(content) == size+1 && content[0] == 0:
		content = content[1:]
	case tag == cbasn1.INTEGER && len(content) > 0 && len(content) <= size:
	default:
		return nil, fmt.Errorf("a GOST key is %d octets, or an OCTET STRING or INTEGER of them", size)
	}
	scalar := make([]byte, size)
	copy(scalar[size-len(content):], content)
	slices.Reverse(scalar)
	return scalar, nil
}
