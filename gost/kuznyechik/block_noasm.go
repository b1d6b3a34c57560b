// SPDX-License-Identifier: Apache-2.0

//go:build !amd64 || purego

package kuznyechik

// block is the cipher.Block: the ten round keys, each in all four lanes.
type block struct {
	keys [10]planes
}

func (b *block) expand(key *[KeySize]byte) { b.expandGeneric(key) }

// encrypt enciphers four blocks.
func (b *block) encrypt(group *[groupSize]byte) { b.encryptGeneric(group) }

// encryptMany enciphers nothing, because this build has no assembly, and returns 0.
func (b *block) encryptMany(dst, src []byte) (done int) { return 0 }
