package gost3410

import (
	"errors"
	"fmt"
	"hash"

	"tamga/gost/gost3410/internal/field"
)

// VKO agrees on a key with the owner of peer: the hash h of x followed by y, both
// little-endian in Size octets, of the point (cofactor * UKM * d mod q) * peer
// (RFC 7836, section 4.3). With GOST R 34.11-94 and a curve of cofactor 1 that is the
// algorithm of RFC 4357, section 5.2. The result has the hash's length.
//
// ukm is a little-endian number of 1 to Size octets, not 0 modulo q; 8 octets are
// usual. The sets of both keys must name the same curve. The caller wipes the
// result.
func (k *PrivateKey) VKO(peer *PublicKey, ukm []byte, h func() hash.Hash) ([]byte, error) {
	size, order := k.set.Size(), k.set.curve.Order()
	if k.hidden.d.IsZero() == 1 {
		return nil, ErrWiped
	}
	if !k.set.SameCurve(peer.set) {
		return nil, fmt.Errorf("gost3410: vko: keys of %s and %s are on different curves", k.set.name, peer.set.name)
	}
	if len(ukm) < 1 || len(ukm) > size {
		return nil, fmt.Errorf("gost3410: vko: a ukm for %s has 1 to %d octets, not %d", k.set.name, size, len(ukm))
	}
	var n field.Scalar
	n.SetBytes(ukm)
	order.Reduce(&n, &n)
	if n.IsZero() == 1 {
		return nil, errors.New("gost3410: vko: the ukm is 0 modulo the order of the group")
	}
	order.Mul(&n, &n, &field.Scalar{k.set.curve.Cofactor()})
	order.Mul(&n, &n, k.hidden.d)
	defer clear(n[:])
	xy := make([]byte, 2*size)
	defer clear(xy)
	if !peer.point.Mul(xy, &n) {
		return nil, errors.New("gost3410: vko: the shared point came out off the curve, the machine is at fault")
	}
	d := h()
	d.Write(xy)
	return d.Sum(nil), nil
}
