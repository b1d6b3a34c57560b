// SPDX-License-Identifier: Apache-2.0

package gost3410

import (
	"fmt"
	"hash"
	"slices"

	"tamga/gost/kdf"
	"tamga/gost/streebog"
)

const (
	// KEGUKMSize is the length in bytes of the user keying material of KEG.
	KEGUKMSize = 32
	// KEGSize is the length in bytes of the result of KEG.
	KEGSize = 64
)

// KEG returns the keys that both parties of a key agreement compute for KExp15 of package mode
// (R 1323565.1.020-2018; RFC 9189, section 8.3.1): KEGSize bytes, first the 32 of the key of
// the authentication code, then the 32 of the key of the cipher. The caller wipes them.
//
// ukm must have KEGUKMSize bytes. Bytes 0 to 15 are a big-endian number for VKO. If the number
// is 0, VKO gets 1. With a key of 256 bits, bytes 16 to 23 are the seed of the derivation; a key
// of 512 bits does not use them. Bytes 24 to 31 are not part of KEG: formats take the
// initialization vector of KExp15 from there. Errors are the ones of VKO.
func (k *PrivateKey) KEG(peer *PublicKey, ukm []byte) ([]byte, error) {
	return KEG(k.set, ukm, func(number []byte, h func() hash.Hash) ([]byte, error) { return k.VKO(peer, number, h) })
}

// KEG is PrivateKey.KEG for a key that is kept elsewhere. set is the parameter set of the key, and
// vko computes VKO with it, as PrivateKey.VKO does: ukm is little-endian, and the result has the
// length of the hash, which is Streebog-256 for sets of 256 bits and Streebog-512 for the others.
func KEG(set *Set, ukm []byte, vko func(ukm []byte, h func() hash.Hash) ([]byte, error)) ([]byte, error) {
	if len(ukm) != KEGUKMSize {
		return nil, fmt.Errorf("gost3410: KEG: the UKM must have %d bytes, got %d", KEGUKMSize, len(ukm))
	}
	number := slices.Clone(ukm[:16])
	slices.Reverse(number)
	if !slices.ContainsFunc(number, func(b byte) bool { return b != 0 }) { // ukm is public
		number[0] = 1
	}
	h, size := streebog.New256, streebog.Size256
	if set.Size() == 64 {
		h, size = streebog.New512, streebog.Size512
	}
	shared, err := vko(number, h)
	if err != nil {
		return nil, err
	}
	if len(shared) != size {
		return nil, fmt.Errorf("gost3410: KEG: VKO returned %d bytes, want %d", len(shared), size)
	}
	if size == KEGSize {
		return shared, nil
	}
	defer clear(shared)
	return kdf.Tree(shared, []byte("kdf tree"), ukm[16:24], 1, KEGSize)
}
