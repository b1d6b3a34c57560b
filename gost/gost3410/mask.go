package gost3410

import (
	"fmt"

	"tamga/gost/gost3410/internal/field"
)

// MaxMasks bounds the masks of a key. Files have one; each costs a multiplication.
const MaxMasks = 16

// UnmaskPrivateKey reads a private key with its masks, as transport containers carry it
// (RFC 9548, section 5.1; R 50.1.112-2016): s.Size() little-endian octets of the masked
// key and as many for each of one to MaxMasks masks. The key is the product of all of
// them modulo q. A part that is 0 or not below q is an error.
func UnmaskPrivateKey(s *Set, sequence []byte) (*PrivateKey, error) {
	size, order := s.Size(), s.curve.Order()
	if n := len(sequence) / size; len(sequence)%size != 0 || n < 2 || n > MaxMasks+1 {
		return nil, fmt.Errorf("gost3410: a masked key of %s has %d octets for itself and for each of 1 to %d masks, not %d in all", s.name, size, MaxMasks, len(sequence))
	}
	d, inRange := new(field.Scalar), uint64(1)
	d.SetBytes(sequence[:size])
	inRange &= order.Less(d) & (1 - d.IsZero())
	var mask field.Scalar
	defer clear(mask[:])
	for rest := sequence[size:]; len(rest) > 0; rest = rest[size:] {
		mask.SetBytes(rest[:size])
		inRange &= order.Less(&mask) & (1 - mask.IsZero())
		order.Reduce(&mask, &mask) // so that a mask out of range breaks nothing until it is refused
		order.Mul(d, d, &mask)
	}
	if inRange == 0 {
		clear(d[:])
		return nil, fmt.Errorf("gost3410: the masked private key or a mask is not between 0 and the order of %s", s.name)
	}
	return newPrivateKey(s, d), nil
}
