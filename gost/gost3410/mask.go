// SPDX-License-Identifier: Apache-2.0

package gost3410

import (
	"fmt"

	"tamga/gost/gost3410/internal/field"
)

// MaxMasks is the largest number of masks of a key. Real files have one mask. The
// limit bounds the work on hostile input, since each mask costs a multiplication.
const MaxMasks = 16

// UnmaskPrivateKey reads a masked private key and its masks, as transport containers
// carry them (RFC 9548, section 5.1; R 50.1.112-2016): s.Size() little-endian bytes of
// the masked key, then s.Size() bytes for each of 1 to MaxMasks masks. The key is the
// product of the masked key and all masks modulo q. It returns an error if the length
// is wrong or if the masked key or a mask is 0 or not below q.
func UnmaskPrivateKey(s *Set, sequence []byte) (*PrivateKey, error) {
	size, order := s.Size(), s.curve.Order()
	if n := len(sequence) / size; len(sequence)%size != 0 || n < 2 || n > MaxMasks+1 {
		return nil, fmt.Errorf("gost3410: a masked key of %s must have %d bytes for the key and for each of 1 to %d masks, got %d in all", s.name, size, MaxMasks, len(sequence))
	}
	d, inRange := new(field.Scalar), uint64(1)
	d.SetBytes(sequence[:size])
	inRange &= order.Less(d) & (1 - d.IsZero())
	var mask field.Scalar
	defer clear(mask[:])
	for rest := sequence[size:]; len(rest) > 0; rest = rest[size:] {
		mask.SetBytes(rest[:size])
		inRange &= order.Less(&mask) & (1 - mask.IsZero())
		order.Reduce(&mask, &mask) // Mul needs it; a mask out of range is refused below
		order.Mul(d, d, &mask)
	}
	if inRange == 0 {
		clear(d[:])
		return nil, fmt.Errorf("gost3410: the masked private key or a mask is not between 0 and the order of %s", s.name)
	}
	return newPrivateKey(s, d), nil
}
