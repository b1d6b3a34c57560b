package gost3410

import (
	"crypto"
	"fmt"
	"slices"

	"tamga/gost/gost3410/internal/field"
	"tamga/gost/gost3410/internal/point"
)

// A PublicKey is a point of the set's curve, in the group of the base point and
// not infinity: NewPublicKey lets nothing else in. It does not change and may be
// used by many goroutines.
type PublicKey struct {
	set    *Set
	octets []byte
	point  point.Point
}

// NewPublicKey reads a public key from x followed by y, each little-endian in
// s.Size() octets (RFC 4491, section 2.3.2). It refuses any other length, coordinates
// not below the prime, points off the curve and, where the curve has cofactor 4,
// points outside the group of the base point. Infinity has no such form.
func NewPublicKey(s *Set, xy []byte) (*PublicKey, error) {
	if len(xy) != 2*s.Size() {
		return nil, fmt.Errorf("gost3410: a public key of %s has %d octets, not %d", s.name, 2*s.Size(), len(xy))
	}
	p, err := s.curve.Parse(xy)
	if err != nil {
		return nil, fmt.Errorf("gost3410: public key of %s: %w", s.name, err)
	}
	return &PublicKey{set: s, octets: slices.Clone(xy), point: p}, nil
}

// Precompute returns the same key with a table of its own, under which Verify takes
// less than a third of the time, where one scalar is spread over lanes a sixth; for the
// sets TC26256A and TC26512C, whose verification is fast without one where the processor
// has AVX-512 IFMA, two thirds. The table is worth its making, as long as twenty to forty
// verifications, fifty to eighty for these two, for keys that come again and again: the
// caller decides which and how many to keep. It has 86 KiB for 256 bits, 344 KiB for 512,
// a quarter more where it is for lanes, and half as much again for the sets TC26256A and
// TC26512C, and goes with the key that is returned; k itself stays small. A key that has
// its table returns itself.
func (k *PublicKey) Precompute() *PublicKey {
	p := k.point.Precompute()
	if p == k.point {
		return k
	}
	return &PublicKey{set: k.set, octets: k.octets, point: p}
}

// Set returns the parameter set of the key.
func (k *PublicKey) Set() *Set { return k.set }

// Bytes returns x followed by y, each little-endian in Size octets.
func (k *PublicKey) Bytes() []byte { return slices.Clone(k.octets) }

// Equal reports whether x is a *PublicKey of the same set and point.
func (k *PublicKey) Equal(x crypto.PublicKey) bool {
	other, ok := x.(*PublicKey)
	return ok && other != nil && k.set == other.set && slices.Equal(k.octets, other.octets)
}

// Verify reports whether the signature, s followed by r, both big-endian in Size
// octets, is one of the digest under this key (RFC 7091, section 6.2). The digest is
// the hash function's output of Size octets. Wrong lengths are a false, too. It takes
// variable time: everything here is public.
func (k *PublicKey) Verify(digest, signature []byte) bool {
	r, s, ok := k.readSignature(digest, signature)
	if !ok {
		return false
	}
	// x of (s/e)*G - (r/e)*P is r.
	order := k.set.curve.Order()
	v := digestScalar(order, digest)
	order.Invert(&v, &v)
	order.Mul(&s, &s, &v)
	order.Mul(&v, &r, &v)
	order.Negate(&v, &v)
	return k.point.SumHasX(&r, &s, &v)
}

// readSignature returns the numbers r and s of a signature and reports whether all
// lengths are right and both are between 0 and q.
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
// little-endian number modulo q, with one in place of zero.
func digestScalar(order *field.Modulus, digest []byte) (e field.Scalar) {
	e.SetBytes(digest)
	order.Reduce(&e, &e)
	e[0] |= e.IsZero()
	return e
}

// setBigEndian sets z to big-endian octets.
func setBigEndian(z *field.Scalar, b []byte) {
	b = slices.Clone(b)
	slices.Reverse(b)
	z.SetBytes(b)
}

// putBigEndian writes z as big-endian octets.
func putBigEndian(b []byte, z *field.Scalar) {
	z.PutBytes(b)
	slices.Reverse(b)
}
