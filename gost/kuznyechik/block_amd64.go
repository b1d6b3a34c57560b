//go:build !purego

package kuznyechik

import "golang.org/x/sys/cpu"

// vectorized says whether the processor and the system have the instructions of
// block_amd64.s. Only tests change it.
var vectorized = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL &&
	cpu.X86.HasAVX512VBMI && cpu.X86.HasAVX512GFNI

// constants are what the functions in assembly take as v.
var constants = func() *vectors {
	if !vectorized {
		return nil
	}
	return makeVectors()
}()

// block is the cipher.Block: the ten round keys, each in all four lanes.
type block struct {
	keys [10]planes
	// The same for the assembly, every octet under phi, if vectorized was true when
	// the cipher was made.
	vectorized bool
	vectors    [10]vector
}

// expandKey sets the round keys, under phi and as they are.
//
//go:noescape
func expandKey(key *[KeySize]byte, keys, plain *[10]vector, v *vectors)

// encryptGroups enciphers n groups of four blocks.
//
//go:noescape
func encryptGroups(dst, src *byte, n int, keys *[10]vector, v *vectors)

// longest is the most octets that go into one call: the scheduler and the garbage
// collector cannot interrupt assembly, and must not wait more than microseconds.
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

// encryptMany enciphers whole groups of blocks and returns the number of octets, a
// part of src.
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
