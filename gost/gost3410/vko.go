// SPDX-License-Identifier: Apache-2.0

package gost3410

import (
	"errors"
	"fmt"
	"hash"

	"tamga/gost/gost3410/internal/field"
)

// VKO returns the key that both parties of a key agreement compute: the hash h of x
// followed by y, both little-endian in Size bytes, of the point
// (cofactor * UKM * d mod q) * peer (RFC 7836, section 4.3). With GOST R 34.11-94 and
// a curve of cofactor 1 this is the algorithm of RFC 4357, section 5.2. The result
// has the length of the hash. The caller wipes it.
//
// ukm is a little-endian number of 1 to Size bytes, usually 8. It must not be 0
// modulo q. The sets of both keys must name the same curve. A wiped key returns
// ErrWiped.
func (k *PrivateKey) VKO(peer *PublicKey, ukm []byte, h func() hash.Hash) ([]byte, error) {
	size, order := k.set.Size(), k.set.curve.Order()
	if k.hidden.d.IsZero() == 1 {
		return nil, ErrWiped
	}
	if !k.set.SameCurve(peer.set) {
		return nil, fmt.Errorf("gost3410: VKO: keys of %s and %s are on different curves", k.set.name, peer.set.name)
	}
	if len(ukm) < 1 || len(ukm) > size {
		return nil, fmt.Errorf("gost3410: VKO: the UKM for %s must have 1 to %d bytes, got %d", k.set.name, size, len(ukm))
	}
	var n field.Scalar
	n.SetBytes(ukm)
	order.Reduce(&n, &n)
	if n.IsZero() == 1 {
		return nil, errors.New("gost3410: VKO: the UKM is 0 modulo the order of the group")
	}
	order.Mul(&n, &n, &field.Scalar{k.set.curve.Cofactor()})
	order.Mul(&n, &n, k.hidden.d)
	defer clear(n[:])
	xy := make([]byte, 2*size)
	defer clear(xy)
	if !peer.point.Mul(xy, &n) {
		return nil, errors.New("gost3410: VKO: the computed shared point is not on the curve: hardware fault")
	}
	d := h()
	d.Write(xy)
	return d.Sum(nil), nil
}
