//go:build !purego

package gost28147

import "golang.org/x/sys/cpu"

// vectorized says that the processor has what blocks_amd64.s uses.
var vectorized = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VBMI

// wide is a substitution as blocks_amd64.s looks it up: what stands in octet p of a
// word has its values from place 16p on, those for the upper four bits shifted up.
type wide struct{ lower, upper [64]byte }

func (w *wide) set(rows *[8][16]byte) {
	for p := range 4 {
		for x := range 16 {
			w.lower[16*p+x] = rows[2*p][x]
			w.upper[16*p+x] = rows[2*p+1][x] << 4
		}
	}
}

const (
	groupSize = 16 * BlockSize // what a pair of registers holds
	// longest bounds what one call of the assembly enciphers: it cannot be
	// interrupted.
	longest = 1024 * groupSize
	// few blocks are enciphered by Go faster than a group is filled up.
	few = 4
)

// encryptWide enciphers blocks from the beginning of src on, by vectors, and returns
// how many octets it did.
func (b *block) encryptWide(dst, src []byte) (done int) {
	if !vectorized {
		return 0
	}
	var keys [32]uint32
	for i := range keys {
		if keys[i] = b.k[i%8]; i >= 24 {
			keys[i] = b.k[31-i]
		}
	}
	for whole := len(src) / groupSize * groupSize; done < whole; {
		n := min(longest, whole-done)
		encryptGroups(&dst[done], &src[done], n/groupSize, &keys, &b.s.wide)
		done += n
	}
	if rest := len(src) - done; rest >= few*BlockSize {
		var group [groupSize]byte
		copy(group[:], src[done:])
		encryptGroups(&group[0], &group[0], 1, &keys, &b.s.wide)
		done += copy(dst[done:len(src)], group[:])
		clear(group[:])
	}
	clear(keys[:])
	return done
}

// encryptGroups enciphers n groups of sixteen blocks with the keys of all rounds. In
// blocks_amd64.s.
//
//go:noescape
func encryptGroups(dst, src *byte, n int, keys *[32]uint32, s *wide)
