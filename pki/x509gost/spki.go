// SPDX-License-Identifier: Apache-2.0

package x509gost

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/gost/gost3410"
	"tamga/pki/suite"
)

// keyInfo is a public key read from a structure. Public is nil when the key is not
// supported for verification, Suite is nil when no suite signs with such keys. In both
// cases problem gives the reason.
type keyInfo struct {
	suite.Key
	problem error
	bits    []byte // content of subjectPublicKey, for key identifiers
}

// readKey reads a SubjectPublicKeyInfo. An unsupported algorithm or curve is not an error,
// because messages carry certificates with such keys that nothing depends on. A malformed
// GOST key is an error.
func readKey(in *cryptobyte.String, faults *deviations) (raw []byte, key *keyInfo, err error) {
	var element, seq cryptobyte.String
	if !in.ReadASN1Element(&element, cbasn1.SEQUENCE) {
		return nil, nil, errors.New("not a SEQUENCE")
	}
	raw = element
	element.ReadASN1(&seq, cbasn1.SEQUENCE)
	oid, parameters, err := readAlgorithm(&seq)
	if err != nil {
		return nil, nil, err
	}
	key = new(keyInfo)
	if !readBits(&seq, &key.bits) || !seq.Empty() {
		return nil, nil, errors.New("the key is not a final BIT STRING of whole bytes")
	}
	su, known := suite.ByKeyOID(oid)
	switch {
	case oid.Equal(suite.OIDPSS):
		key.readPSS(parameters)
	case known && su.IsGOST():
		err = key.readGOST(su, parameters, faults)
	case known || oid.Equal(suite.OIDEd25519):
		key.readStandard(su, raw, parameters)
	default:
		key.problem = suite.Unsupported("key algorithm", oid)
	}
	return raw, key, err
}

// readStandard reads RSA, ECDSA and Ed25519 keys with the standard library. su is nil for
// keys that no suite signs with.
func (k *keyInfo) readStandard(su *suite.Suite, raw, parameters []byte) {
	public, err := x509.ParsePKIXPublicKey(raw)
	if err != nil {
		in := cryptobyte.String(parameters)
		if curve, e := readOID(&in); e == nil { // the library's error does not name the curve
			err = suite.Unsupported("curve", curve)
		}
		k.problem = err
		return
	}
	k.use(public)
	switch {
	case k.Public == nil:
	case su == nil:
		k.problem = fmt.Errorf("no suite signs with keys of the kind %s", k.Name())
	default:
		if k.problem = su.Accepts(public); k.problem == nil {
			k.Suite = su
		}
	}
}

// use accepts a key if it is fit for verification, else it records the problem.
func (k *keyInfo) use(public crypto.PublicKey) {
	k.Public = public
	if k.problem = k.Check(); k.problem != nil {
		k.Public = nil
	}
}

// readPSS reads a key for RSA-PSS only (RFC 4055, 1.2 and 3.3).
func (k *keyInfo) readPSS(parameters []byte) {
	public, err := x509.ParsePKCS1PublicKey(k.bits)
	if err == nil && len(parameters) > 0 {
		var limit suite.PSS
		limit, err = suite.ParsePSS(parameters)
		k.Limit = &limit
	}
	if err != nil {
		k.problem = err
		return
	}
	k.PSSOnly = true
	if k.use(public); k.Public != nil {
		k.problem = fmt.Errorf("no suite signs with keys of the kind %s", k.Name())
	}
}

func (k *keyInfo) readGOST(su *suite.Suite, parameters []byte, faults *deviations) error {
	p, err := readGOSTParameters(su, parameters, faults)
	if errors.Is(err, errUnknownSet) {
		k.problem = err
		return nil
	}
	if err != nil {
		return err
	}
	var xy cryptobyte.String
	bits := cryptobyte.String(k.bits)
	if !bits.ReadASN1(&xy, cbasn1.OCTET_STRING) || !bits.Empty() || len(xy) != 2*p.Set.Size() {
		return fmt.Errorf("a GOST public key on %s must be an OCTET STRING of %d bytes", p.Set.Name(), 2*p.Set.Size())
	}
	public, err := gost3410.NewPublicKey(p.Set, xy)
	if err != nil {
		return err
	}
	k.Public, k.Suite = public, su
	return nil
}

var errUnknownSet = errors.New("unknown parameter set")

// readGOSTParameters reads GostR3410-2001-PublicKeyParameters (RFC 4491, 2.3.2) and
// GostR3410-2012-PublicKeyParameters (RFC 9215, 4.2): a SEQUENCE of publicKeyParamSet,
// digestParamSet and encryptionParamSet. The last two are optional.
func readGOSTParameters(su *suite.Suite, element []byte, faults *deviations) (suite.ParameterSet, error) {
	var none suite.ParameterSet
	var seq cryptobyte.String
	in := cryptobyte.String(element)
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !in.Empty() {
		return none, errors.New("the parameters of a GOST key are not a SEQUENCE")
	}
	var oids []OID
	for !seq.Empty() && len(oids) < 3 {
		oid, err := readOID(&seq)
		if err != nil {
			return none, fmt.Errorf("parameters of a GOST key: %w", err)
		}
		oids = append(oids, oid)
	}
	if len(oids) == 0 || !seq.Empty() {
		return none, errors.New("the parameters of a GOST key must be one to three object identifiers")
	}
	p, err := su.ParametersByOID(oids[0])
	if err != nil {
		return none, fmt.Errorf("%w: %w", errUnknownSet, err)
	}
	switch {
	case len(oids) == 1 && p.Digest != nil:
		faults.add("digestParamSet of the key is absent, %s requires it", p.Set.Name())
	case len(oids) > 1 && p.Digest == nil:
		faults.add("digestParamSet of the key is present, RFC 9215 omits it for %s", p.Set.Name())
	case len(oids) > 1 && !p.Digest.Equal(oids[1]):
		faults.add("digestParamSet of the key is %s, not %s", oids[1], p.Digest)
	}
	return p, nil
}

// CheckParameters reports why the parameters of a GOST key, as an AlgorithmIdentifier has them, contradict a suite and
// a curve. Programs leave digestParamSet out where RFC 9215 wants it and the other way around, so it is only compared
// if it is there. encryptionParamSet is about other uses of the key.
func CheckParameters(parameters []byte, su *suite.Suite, set *gost3410.Set) error {
	var faults deviations
	p, err := readGOSTParameters(su, parameters, &faults)
	switch {
	case err != nil:
		return fmt.Errorf("x509gost: %w", err)
	case !p.Set.SameCurve(set):
		return fmt.Errorf("x509gost: publicKeyParamSet is that of %s, and the key is on %s", p.Set.Name(), set.Name())
	}
	in := cryptobyte.String(parameters)
	var seq cryptobyte.String
	var digest OID
	in.ReadASN1(&seq, cbasn1.SEQUENCE)
	if _, err = readOID(&seq); err == nil && !seq.Empty() {
		digest, err = readOID(&seq)
	}
	want := p.Digest
	if want == nil {
		want = su.Hash.OID
	}
	if err == nil && digest != nil && !digest.Equal(want) {
		err = fmt.Errorf("digestParamSet is %s, and %s has %s", digest, su.Title, want)
	}
	if err != nil {
		return fmt.Errorf("x509gost: %w", err)
	}
	return nil
}

// ParsePublicKey reads a SubjectPublicKeyInfo of a suite. It returns *gost3410.PublicKey,
// *rsa.PublicKey or *ecdsa.PublicKey, and the suite that its algorithm names.
func ParsePublicKey(spki []byte) (crypto.PublicKey, *suite.Suite, error) {
	var faults deviations
	in := cryptobyte.String(spki)
	if len(spki) > MaxCertificate {
		return nil, nil, fmt.Errorf("x509gost: public key: %d bytes are more than the %d allowed", len(spki), MaxCertificate)
	}
	_, key, err := readKey(&in, &faults)
	if err == nil && !in.Empty() {
		err = fmt.Errorf("%d bytes follow the end", len(in))
	}
	if err == nil {
		err = key.problem
	}
	if err != nil {
		return nil, nil, fmt.Errorf("x509gost: public key: %w", err)
	}
	return key.Public, key.Suite, nil
}

// MarshalPublicKey encodes a public key of the suite as SubjectPublicKeyInfo.
func MarshalPublicKey(pub crypto.PublicKey, s *suite.Suite) ([]byte, error) {
	spki, err := marshalKey(pub, s)
	if err != nil {
		return nil, fmt.Errorf("x509gost: public key: %w", err)
	}
	return spki, nil
}

func marshalKey(pub crypto.PublicKey, s *suite.Suite) ([]byte, error) {
	if s == nil {
		return nil, errors.New("no suite is given")
	}
	if err := s.Accepts(pub); err != nil {
		return nil, err
	}
	if !s.IsGOST() {
		return x509.MarshalPKIXPublicKey(pub)
	}
	key := pub.(*gost3410.PublicKey)
	p, err := s.ParametersOf(key.Set())
	if err != nil {
		return nil, err
	}
	var bits cryptobyte.Builder
	bits.AddASN1OctetString(key.Bytes())
	content, err := bits.Bytes()
	if err != nil {
		return nil, err
	}
	var b cryptobyte.Builder
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		addGOSTAlgorithm(b, s, p)
		b.AddASN1BitString(content)
	})
	return b.Bytes()
}

// addGOSTAlgorithm writes the AlgorithmIdentifier of a GOST key.
func addGOSTAlgorithm(b *cryptobyte.Builder, s *suite.Suite, p suite.ParameterSet) {
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1ObjectIdentifier(s.KeyOID)
		b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddASN1ObjectIdentifier(p.OID)
			if p.Digest != nil {
				b.AddASN1ObjectIdentifier(p.Digest)
			}
		})
	})
}

// infoOf returns the keyInfo of a key that was not read from bytes.
func infoOf(pub crypto.PublicKey, s *suite.Suite) (spki []byte, key *keyInfo, err error) {
	if spki, err = marshalKey(pub, s); err != nil {
		return nil, nil, err
	}
	var seq, bits cryptobyte.String
	in := cryptobyte.String(spki)
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !seq.SkipASN1(cbasn1.SEQUENCE) || !seq.ReadASN1(&bits, cbasn1.BIT_STRING) || len(bits) == 0 {
		return nil, nil, errors.New("the key has no encoding")
	}
	return spki, &keyInfo{Key: suite.Key{Public: pub, Suite: s}, bits: bits[1:]}, nil
}
