// SPDX-License-Identifier: Apache-2.0

package gost3410

import (
	"crypto"
	"fmt"
	"slices"

	"tamga/gost/gost3410/internal/field"
	"tamga/gost/gost3410/internal/point"
)

// A PublicKey is a point of the set's curve, in the group of the base point and
// not infinity. NewPublicKey refuses anything else. It does not change and is safe
// for concurrent use.
type PublicKey struct {
	set   *Set
	xy    []byte
	point point.Point
}

// NewPublicKey reads a public key from x followed by y, each little-endian in
// s.Size() bytes (RFC 4491, section 2.3.2). It returns an error for any other length,
// for coordinates not below the prime, for points not on the curve and, on a curve of
// cofactor 4, for points outside the group of the base point. The point at infinity
// has no coordinates, so it cannot be encoded.
func NewPublicKey(s *Set, xy []byte) (*PublicKey, error) {
	if len(xy) != 2*s.Size() {
		return nil, fmt.Errorf("gost3410: a public key of %s must have %d bytes, got %d", s.name, 2*s.Size(), len(xy))
	}
	p, err := s.curve.Parse(xy)
	if err != nil {
		return nil, fmt.Errorf("gost3410: public key of %s: %w", s.name, err)
	}
	return &PublicKey{set: s, xy: slices.Clone(xy), point: p}, nil
}

// Precompute returns the same key with a table that makes Verify faster. Use it for
// keys that verify many signatures. The caller decides which keys to precompute and
// how many to keep. k itself does not change and stays small. The returned key holds
// the table. A key that already has its table returns itself.
//
//	sets                             Verify takes         building the table costs
//	TC26256A, TC26512C               2/3 of the time (*)  50 to 80 verifications
//	CryptoProA, CryptoProXchA,
//	  TC26256B, TC26512A             1/6 of the time (*)  20 to 40 verifications
//	others                           under 1/3            20 to 40 verifications
//
// (*) on processors with AVX-512 IFMA; under 1/3 on others. TC26256A and TC26512C gain
// less because AVX-512 IFMA makes their verification fast without a table.
//
// A table has 86 KiB for sets of 256 bits and 344 KiB for sets of 512 bits. For
// TC26256A and TC26512C it has half as much again. For the four sets in the second
// row it has a quarter more on processors with AVX-512 IFMA.
func (k *PublicKey) Precompute() *PublicKey {
	p := k.point.Precompute()
	if p == k.point {
		return k
	}
	return &PublicKey{set: k.set, xy: k.xy, point: p}
}

// Set returns the parameter set of the key.
func (k *PublicKey) Set() *Set { return k.set }

// Bytes returns x followed by y, each little-endian in Size bytes.
func (k *PublicKey) Bytes() []byte { return slices.Clone(k.xy) }

// Equal reports whether x is a *PublicKey of the same set and point.
func (k *PublicKey) Equal(x crypto.PublicKey) bool {
	other, ok := x.(*PublicKey)
	return ok && other != nil && k.set == other.set && slices.Equal(k.xy, other.xy)
}

// Verify reports whether the signature is a valid signature of the digest under this
// key (RFC 7091, section 6.2). The signature is s followed by r, both big-endian in
// Size bytes. The digest is the hash function's output of Size bytes. Verify returns
// false if either has another length. It takes variable time, because its inputs are
// public.
func (k *PublicKey) Verify(digest, signature []byte) bool {
	r, s, ok := k.readSignature(digest, signature)
	if !ok {
		return false
	}
	// The signature is valid if x of (s/e)*G - (r/e)*P is r modulo q.
	order := k.set.curve.Order()
	v := digestScalar(order, digest)
	order.Invert(&v, &v)
	order.Mul(&s, &s, &v)
	order.Mul(&v, &r, &v)
	order.Negate(&v, &v)
	return k.point.SumHasX(&r, &s, &v)
}

// readSignature returns the numbers r and s of a signature. It reports whether the
// lengths of digest and signature are right and whether r and s are between 0 and q.
func (k *PublicKey) readSignature(digest, signature []byte) (r, s field.Scalar, ok bool) {
	size, order := k.set.Size(), k.set.curve.Order()
	if len(digest) != size || len(signature) != 2*size {
		return r, s, false
	}
	setBigEndian(&s, signature[:size])
	setBigEndian(&r, signature[size:])
	return r, s, (1-r.IsZero())&(1-s.IsZero())&order.Less(&r)&order.Less(&s) == 1
}

// digestScalar returns the number e of RFC 7091, section 6.1, step 2: the digest as a
// little-endian number modulo q, or 1 if that is 0.
func digestScalar(order *field.Modulus, digest []byte) (e field.Scalar) {
	e.SetBytes(digest)
	order.Reduce(&e, &e)
	e[0] |= e.IsZero()
	return e
}

// setBigEndian sets z to big-endian bytes.
func setBigEndian(z *field.Scalar, b []byte) {
	b = slices.Clone(b)
	slices.Reverse(b)
	z.SetBytes(b)
}

// putBigEndian writes z as big-endian bytes.
func putBigEndian(b []byte, z *field.Scalar) {
	z.PutBytes(b)
	slices.Reverse(b)
}
