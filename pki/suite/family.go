// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/gost/gost3410"
)

// family holds what differs between kinds of keys. Signature values have the form that
// CMS and X.509 use.
type family interface {
	owns(pub crypto.PublicKey) bool
	accepts(pub crypto.PublicKey) error
	generate(rand io.Reader) (crypto.Signer, error)
	sign(rand io.Reader, key crypto.Signer, digest []byte) ([]byte, error)
	verify(pub crypto.PublicKey, digest, value []byte) bool
	shape(value []byte) error
	toXML(value []byte) ([]byte, error)
	fromXML(value []byte) ([]byte, error)
}

var (
	gost2001Default = gost3410.CryptoProA
	gost256Default  = gost3410.CryptoProA
	gost512Default  = gost3410.TC26512A
)

// gostFamily is GOST R 34.10 with coordinates of size bytes.
type gostFamily struct {
	size    int
	initial *gost3410.Set // parameter set of a generated key
}

func (f gostFamily) owns(pub crypto.PublicKey) bool {
	k, ok := pub.(*gost3410.PublicKey)
	return ok && k != nil && k.Set().Size() == f.size
}

func (f gostFamily) accepts(pub crypto.PublicKey) error {
	k, ok := pub.(*gost3410.PublicKey)
	if !ok || k == nil {
		return fmt.Errorf("a key of type %T is not a GOST R 34.10 key", pub)
	}
	if k.Set().Size() != f.size {
		return fmt.Errorf("the key has %d bits, not %d", k.Set().Size()*8, f.size*8)
	}
	return nil
}

func (f gostFamily) generate(rand io.Reader) (crypto.Signer, error) {
	key, err := gost3410.GenerateKey(f.initial, random(rand))
	if err != nil {
		return nil, err // key is a typed nil here
	}
	return key, nil
}

func (f gostFamily) sign(rand io.Reader, key crypto.Signer, digest []byte) ([]byte, error) {
	return key.Sign(random(rand), digest, crypto.Hash(0))
}

func (f gostFamily) verify(pub crypto.PublicKey, digest, value []byte) bool {
	return f.shape(value) == nil && shared.verify(pub.(*gost3410.PublicKey), digest, value)
}

// verifyMany reports whether all values are right. Lanes compute several at a time.
func (f gostFamily) verifyMany(pub crypto.PublicKey, d []Digest, values [][]byte) bool {
	key := shared.key(pub.(*gost3410.PublicKey), len(values))
	items := make([]gost3410.VerifyItem, len(values))
	for i := range items {
		items[i] = gost3410.VerifyItem{Key: key, Digest: d[i].Sum, Signature: values[i]}
	}
	return !slices.Contains(gost3410.VerifyMany(items), false)
}

func (f gostFamily) shape(value []byte) error {
	if len(value) != 2*f.size {
		return fmt.Errorf("s and r take %d bytes, not %d", 2*f.size, len(value))
	}
	return nil
}

func (f gostFamily) toXML(value []byte) ([]byte, error)   { return value, f.shape(value) }
func (f gostFamily) fromXML(value []byte) ([]byte, error) { return value, f.shape(value) }

const (
	minRSABits = 2048
	maxRSABits = 8192 // larger keys make verification slow and add no security
)

// rsaFamily is RSASSA-PKCS1-v1_5 with SHA-256.
type rsaFamily struct{}

func (rsaFamily) owns(pub crypto.PublicKey) bool { _, ok := pub.(*rsa.PublicKey); return ok }

func (rsaFamily) accepts(pub crypto.PublicKey) error {
	k, ok := pub.(*rsa.PublicKey)
	if !ok || k == nil || k.N == nil {
		return fmt.Errorf("a key of type %T is not an RSA key", pub)
	}
	if n := k.N.BitLen(); n < minRSABits || n > maxRSABits {
		return fmt.Errorf("an RSA key must have %d to %d bits; this one has %d", minRSABits, maxRSABits, n)
	}
	return nil
}

func (rsaFamily) generate(rand io.Reader) (crypto.Signer, error) {
	key, err := rsa.GenerateKey(random(rand), minRSABits)
	if err != nil {
		return nil, err
	}
	return key, nil
}

func (rsaFamily) sign(rand io.Reader, key crypto.Signer, digest []byte) ([]byte, error) {
	return key.Sign(random(rand), digest, crypto.SHA256)
}

func (rsaFamily) verify(pub crypto.PublicKey, digest, value []byte) bool {
	return rsa.VerifyPKCS1v15(pub.(*rsa.PublicKey), crypto.SHA256, digest, value) == nil
}

func (rsaFamily) shape(value []byte) error {
	if len(value) < minRSABits/8 || len(value) > maxRSABits/8 {
		return fmt.Errorf("an RSA signature must have %d to %d bytes; this one has %d", minRSABits/8, maxRSABits/8, len(value))
	}
	return nil
}

func (f rsaFamily) toXML(value []byte) ([]byte, error)   { return value, f.shape(value) }
func (f rsaFamily) fromXML(value []byte) ([]byte, error) { return value, f.shape(value) }

// ecdsaFamily is ECDSA on P-256 with SHA-256.
type ecdsaFamily struct{}

const p256Size = 32

func (ecdsaFamily) owns(pub crypto.PublicKey) bool { _, ok := pub.(*ecdsa.PublicKey); return ok }

func (ecdsaFamily) accepts(pub crypto.PublicKey) error {
	k, ok := pub.(*ecdsa.PublicKey)
	if !ok || k == nil || k.Curve == nil {
		return fmt.Errorf("a key of type %T is not an ECDSA key", pub)
	}
	if k.Curve != elliptic.P256() {
		return fmt.Errorf("an ECDSA key must be on P-256; this one is on %s", k.Curve.Params().Name)
	}
	return nil
}

func (ecdsaFamily) generate(rand io.Reader) (crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), random(rand))
	if err != nil {
		return nil, err
	}
	return key, nil
}

func (ecdsaFamily) sign(rand io.Reader, key crypto.Signer, digest []byte) ([]byte, error) {
	return key.Sign(random(rand), digest, crypto.SHA256)
}

func (ecdsaFamily) verify(pub crypto.PublicKey, digest, value []byte) bool {
	return ecdsa.VerifyASN1(pub.(*ecdsa.PublicKey), digest, value)
}

func (f ecdsaFamily) shape(value []byte) error {
	_, err := f.toXML(value)
	return err
}

// toXML reads SEQUENCE { r INTEGER, s INTEGER }. A signature is public, so math/big,
// which does not run in constant time, is safe here.
func (ecdsaFamily) toXML(value []byte) ([]byte, error) {
	var r, s big.Int
	var seq cryptobyte.String
	in := cryptobyte.String(value)
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !in.Empty() ||
		!seq.ReadASN1Integer(&r) || !seq.ReadASN1Integer(&s) || !seq.Empty() {
		return nil, errors.New("not a DER SEQUENCE of two INTEGER")
	}
	if r.Sign() <= 0 || s.Sign() <= 0 || r.BitLen() > p256Size*8 || s.BitLen() > p256Size*8 {
		return nil, fmt.Errorf("r and s must be positive and have at most %d bytes each", p256Size)
	}
	out := make([]byte, 2*p256Size)
	r.FillBytes(out[:p256Size])
	s.FillBytes(out[p256Size:])
	return out, nil
}

func (ecdsaFamily) fromXML(value []byte) ([]byte, error) {
	if len(value) != 2*p256Size {
		return nil, fmt.Errorf("r and s take %d bytes, not %d", 2*p256Size, len(value))
	}
	var b cryptobyte.Builder
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1BigInt(new(big.Int).SetBytes(value[:p256Size]))
		b.AddASN1BigInt(new(big.Int).SetBytes(value[p256Size:]))
	})
	return b.Bytes()
}

func random(r io.Reader) io.Reader {
	if r == nil {
		return rand.Reader
	}
	return r
}
