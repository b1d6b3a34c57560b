// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package kuznyechik

import "golang.org/x/sys/cpu"

// vectorized reports whether the processor and the operating system support the
// instructions of block_amd64.s. Only tests change it.
var vectorized = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL &&
	cpu.X86.HasAVX512VBMI && cpu.X86.HasAVX512GFNI

// constants is the argument v of the functions in assembly.
var constants = func() *vectors {
	if !vectorized {
		return nil
	}
	return makeVectors()
}()

// block is the cipher.Block: the ten round keys, each in all four lanes.
type block struct {
	keys [10]planes
	// The same keys for the assembly, with phi applied to every byte. They are set only
	// if vectorized was true when the cipher was made.
	vectorized bool
	vectors    [10]vector
}

// expandKey sets keys to the round keys with phi applied to every byte, and plain to
// the round keys themselves.
//
//go:noescape
func expandKey(key *[KeySize]byte, keys, plain *[10]vector, v *vectors)

// encryptGroups enciphers n groups of four blocks.
//
//go:noescape
func encryptGroups(dst, src *byte, n int, keys *[10]vector, v *vectors)

// longest is the maximum number of bytes for one call of the assembly. The scheduler
// and the garbage collector cannot interrupt assembly, so a call must take only
// microseconds.
const longest = 64 << 10

func (b *block) expand(key *[KeySize]byte) {
	if !vectorized {
		b.expandGeneric(key)
		return
	}
	var plain [10]vector
	expandKey(key, &b.vectors, &plain, constants)
	b.vectorized = true
	for i := range plain { // for decrypt
		b.keys[i].pack((*[groupSize]byte)(&plain[i]))
	}
}

// encrypt enciphers four blocks.
func (b *block) encrypt(group *[groupSize]byte) {
	if !b.vectorized {
		b.encryptGeneric(group)
		return
	}
	encryptGroups(&group[0], &group[0], 1, &b.vectors, constants)
}

// encryptMany enciphers the whole groups of blocks at the beginning of src, if the
// processor has the vectors, and returns the number of enciphered bytes.
func (b *block) encryptMany(dst, src []byte) (done int) {
	if !b.vectorized {
		return 0
	}
	for whole := len(src) &^ (groupSize - 1); done < whole; {
		n := min(longest, whole-done)
		encryptGroups(&dst[done], &src[done], n/groupSize, &b.vectors, constants)
		done += n
	}
	return done
}
