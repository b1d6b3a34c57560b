// SPDX-License-Identifier: Apache-2.0

package x509gost

import (
	"bytes"
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

// MarshalPrivateKey encodes a private key of the suite as PKCS #8 PrivateKeyInfo (RFC
// 5958). For GOST keys it writes the form of OpenSSL's gost-engine: the privateKey OCTET
// STRING is the little-endian scalar itself, 32 or 64 bytes. The result is secret. The
// caller must wipe it.
func MarshalPrivateKey(key crypto.Signer, s *suite.Suite) ([]byte, error) {
	der, err := marshalPrivate(key, s)
	if err != nil {
		return nil, fmt.Errorf("x509gost: private key: %w", err)
	}
	return der, nil
}

func marshalPrivate(key crypto.Signer, s *suite.Suite) ([]byte, error) {
	if s == nil || key == nil {
		return nil, errors.New("a key and its suite are required")
	}
	if err := s.Accepts(key.Public()); err != nil {
		return nil, err
	}
	if !s.IsGOST() {
		return x509.MarshalPKCS8PrivateKey(key)
	}
	private, ok := key.(*gost3410.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("a key of type %T cannot be encoded", key)
	}
	p, err := s.ParametersOf(private.Set())
	if err != nil {
		return nil, err
	}
	scalar := private.Bytes()
	defer clear(scalar)
	// The capacity keeps the builder from growing, which would leave copies of the key.
	b := cryptobyte.NewBuilder(make([]byte, 0, 256))
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1Uint64(0)
		addGOSTAlgorithm(b, s, p)
		b.AddASN1OctetString(scalar)
	})
	return b.Bytes()
}

// ParsePrivateKey reads an unencrypted PKCS #8 PrivateKeyInfo and returns the key and the
// suite that its algorithm names. It reads GOST keys in each form in use: the
// little-endian scalar itself (gost-engine), an OCTET STRING around it (Bouncy Castle), and
// a big-endian INTEGER (older CSPs). It also reads scalars with masks (RFC 9548, section
// 5.1): as they are, in an OCTET STRING, and in the SEQUENCE of R 50.1.112-2016 with the
// public key. If a public key of the right length comes along, it must match. An identifier of
// key agreement counts as that of signatures on the same curve.
func ParsePrivateKey(pkcs8 []byte) (crypto.Signer, *suite.Suite, error) {
	key, su, err := parsePrivate(pkcs8)
	if err != nil {
		return nil, nil, fmt.Errorf("x509gost: private key: %w", err)
	}
	return key, su, nil
}

func parsePrivate(der []byte) (crypto.Signer, *suite.Suite, error) {
	if len(der) > MaxPrivateKey {
		return nil, nil, fmt.Errorf("%d bytes are more than the %d allowed", len(der), MaxPrivateKey)
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
	var public cryptobyte.String
	if !seq.SkipOptionalASN1(cbasn1.Tag(0).Constructed().ContextSpecific()) ||
		!seq.ReadOptionalASN1(&public, nil, cbasn1.Tag(1).ContextSpecific()) {
		return nil, nil, errors.New("the fields after the key are malformed")
	}
	if !seq.Empty() {
		return nil, nil, errors.New("unknown data follows the key")
	}
	for _, row := range agreement {
		if row.oid.Equal(oid) {
			oid = row.signs
		}
	}
	su, known := suite.ByKeyOID(oid)
	if !known {
		return nil, nil, fmt.Errorf("key algorithm %s is not supported", oid)
	}
	if su.IsGOST() {
		key, err := readGOSTPrivate(su, parameters, private, public)
		if err != nil {
			return nil, nil, err
		}
		return key, su, nil
	}
	return parseStandardPrivate(der, su)
}

// agreement has the identifiers of keys for key agreement by those of keys for signatures. The
// keys are the same; CSPs give one of the former to a key that may do both (R 1323565.1.023).
var agreement = []struct{ oid, signs OID }{
	{OID{1, 2, 643, 7, 1, 1, 6, 1}, suite.GOST2012x256.KeyOID},
	{OID{1, 2, 643, 7, 1, 1, 6, 2}, suite.GOST2012x512.KeyOID},
	{OID{1, 2, 643, 2, 2, 98}, suite.GOST2001.KeyOID},
}

func parseStandardPrivate(der []byte, su *suite.Suite) (crypto.Signer, *suite.Suite, error) {
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		// Errors of the standard library may quote numbers of the key.
		return nil, nil, fmt.Errorf("not a well-formed key of %s", su.Name)
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, nil, fmt.Errorf("a key of type %T cannot sign", parsed)
	}
	return key, su, su.Accepts(key.Public())
}

// readGOSTPrivate reads a key in any of the forms. Length and tag, which are not secret,
// identify the form: no two forms share a length. public is the content of the public key
// beside it, nil when absent.
func readGOSTPrivate(su *suite.Suite, parameters []byte, private, public cryptobyte.String) (*gost3410.PrivateKey, error) {
	var faults deviations // of the parameters; not reported for private keys
	p, err := readGOSTParameters(su, parameters, &faults)
	if err != nil {
		return nil, err
	}
	key, beside, err := readNumber(p.Set, private)
	if err != nil {
		return nil, err
	}
	for _, claimed := range [][]byte{beside, bitsOfPublic(public)} {
		// Another length means an unknown form, which is ignored.
		if len(claimed) == 2*p.Set.Size() && !bytes.Equal(claimed, key.PublicKey().Bytes()) {
			key.Wipe()
			return nil, errors.New("the public key beside it belongs to another private key")
		}
	}
	return key, nil
}

// bitsOfPublic returns the bytes of a public key from the content of an implicit BIT
// STRING, which holds them directly or in an OCTET STRING (RFC 9215, section 4.3).
func bitsOfPublic(content cryptobyte.String) []byte {
	var unused uint8
	var data cryptobyte.String
	if !content.ReadUint8(&unused) || unused != 0 {
		return nil
	}
	if inner := content; inner.ReadASN1(&data, cbasn1.OCTET_STRING) && inner.Empty() {
		return data
	}
	return content
}

// readNumber reads the number of a key of the set, and the public key that the SEQUENCE of
// R 50.1.112-2016 has beside it.
func readNumber(set *gost3410.Set, private cryptobyte.String) (key *gost3410.PrivateKey, public []byte, err error) {
	size := set.Size()
	if n := len(private); n > 0 && n%size == 0 {
		key, err = plainOrMasked(set, private)
		return key, nil, err
	}
	malformed := fmt.Errorf("a GOST key must be %d bytes, and as many for each mask, directly, in an OCTET STRING or as an INTEGER", size)
	var content cryptobyte.String
	var tag cbasn1.Tag
	if !private.ReadAnyASN1(&content, &tag) || !private.Empty() {
		return nil, nil, malformed
	}
	switch {
	case tag == cbasn1.OCTET_STRING && len(content) > 0 && len(content)%size == 0:
		key, err = plainOrMasked(set, content)
		return key, nil, err
	case tag == cbasn1.SEQUENCE:
		var masked, data cryptobyte.String
		if !content.ReadASN1(&masked, cbasn1.OCTET_STRING) || !content.ReadASN1(&data, cbasn1.OCTET_STRING) || !content.Empty() || len(data) != 2*size {
			return nil, nil, malformed
		}
		key, err = plainOrMasked(set, masked)
		return key, data, err
	case tag == cbasn1.INTEGER && len(content) == size+1 && content[0] == 0:
		content = content[1:]
	case tag == cbasn1.INTEGER && len(content) > 0 && len(content) <= size:
	default:
		return nil, nil, malformed
	}
	scalar := make([]byte, size)
	defer clear(scalar)
	copy(scalar[size-len(content):], content)
	slices.Reverse(scalar)
	key, err = gost3410.NewPrivateKey(set, scalar)
	return key, nil, err
}

func plainOrMasked(set *gost3410.Set, data []byte) (*gost3410.PrivateKey, error) {
	if len(data) == set.Size() {
		return gost3410.NewPrivateKey(set, data)
	}
	return gost3410.UnmaskPrivateKey(set, data)
}
