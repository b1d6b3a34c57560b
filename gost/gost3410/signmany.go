// SPDX-License-Identifier: Apache-2.0

package gost3410

import (
	crand "crypto/rand"
	"fmt"
	"io"

	"tamga/gost/gost3410/internal/field"
	"tamga/gost/gost3410/internal/point"
)

// A SignItem is one digest and the key to sign it with.
type SignItem struct {
	Key    *PrivateKey
	Digest []byte
}

// together is how many items of one curve are signed at a time: the number of lanes
// of the widest vectors.
const together = 8

// SignMany signs every item as its Key.Sign does and returns the signatures in the
// order of the items. On an error it returns no signatures.
//
// It takes items of one curve in groups of up to eight. Where the processor supports
// it, a group is computed in vector lanes. A group shares one nonce generator, seeded
// with Size bytes of rand and with the key, the digest and the name of the set of
// every item. So each nonce has the properties that Sign describes.
func SignMany(rand io.Reader, items []SignItem) ([][]byte, error) {
	for i, it := range items {
		if err := it.Key.ready(it.Digest); err != nil {
			return nil, fmt.Errorf("gost3410: item %d: %w", i, err)
		}
	}
	if rand == nil {
		rand = crand.Reader
	}
	signatures := make([][]byte, len(items))
	waiting := map[point.Curve][]int{} // indices of items that are in no group yet
	for i, it := range items {
		group := append(waiting[it.Key.set.curve], i)
		if len(group) == together {
			if err := signGroup(rand, items, group, signatures); err != nil {
				return nil, err
			}
			group = group[:0]
		}
		waiting[it.Key.set.curve] = group
	}
	for _, s := range sets { // not over the map: its order would change what is read from rand
		group := waiting[s.curve]
		delete(waiting, s.curve)
		if len(group) == 0 {
			continue
		}
		if err := signGroup(rand, items, group, signatures); err != nil {
			return nil, err
		}
	}
	return signatures, nil
}

// signGroup signs the items with the given indices, at most eight and all of one
// curve.
func signGroup(rand io.Reader, items []SignItem, group []int, signatures [][]byte) error {
	curve := items[group[0]].Key.set.curve
	size, order := curve.Size(), curve.Order()
	if len(group) == 1 {
		i := group[0]
		var err error
		if signatures[i], err = items[i].Key.Sign(rand, items[i].Digest, nil); err != nil {
			return fmt.Errorf("gost3410: item %d: %w", i, err)
		}
		return nil
	}

	// The randomness, then the key, the digest and the set's name of each item. A name
	// ends with a zero byte, which no name contains, so the seed is unambiguous.
	seed := make([]byte, 0, size+together*(2*size+64))
	seed = seed[:size]
	defer func() { clear(seed[:cap(seed)]) }()
	if _, err := io.ReadFull(rand, seed); err != nil {
		return fmt.Errorf("gost3410: random source: %w", err)
	}
	for _, i := range group {
		it := items[i]
		n := len(seed)
		seed = seed[:n+size]
		it.Key.hidden.d.PutBytes(seed[n:])
		seed = append(append(append(seed, it.Digest...), it.Key.set.name...), 0)
	}
	generator := newDRBG(seed)
	defer generator.wipe()

	var nonces [together]field.Scalar
	defer clear(nonces[:])
	var xy [together][]byte
	var ok [together]bool
	points := make([]byte, 2*size*len(group))
	tries := 0
	for j := range group {
		xy[j] = points[2*size*j : 2*size*(j+1)]
		for good := false; !good; tries++ {
			if tries == draws {
				return errNonce
			}
			nonces[j], good = candidate(order, generator.read(size))
		}
	}
	curve.MulBaseMany(xy[:len(group)], nonces[:len(group)], ok[:])
	for j, i := range group {
		it := items[i]
		if !ok[j] {
			return fmt.Errorf("gost3410: item %d: %w", i, errFault)
		}
		e := digestScalar(order, it.Digest)
		var err error
		if signatures[i] = it.Key.signAt(xy[j], &nonces[j], &e); signatures[i] == nil {
			// r or s would be 0: sign this item again with a new nonce.
			if signatures[i], err = it.Key.Sign(rand, it.Digest, nil); err != nil {
				return fmt.Errorf("gost3410: item %d: %w", i, err)
			}
		}
	}
	return nil
}
