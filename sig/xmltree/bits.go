// SPDX-License-Identifier: Apache-2.0

package xmltree

// bits is a set of small numbers, with one bit for each.
type bits []uint64

func newBits(n int) bits { return make(bits, (n+63)/64) }

func (b bits) has(i uint32) bool { return b[i>>6]>>(i&63)&1 != 0 }
func (b bits) set(i uint32)      { b[i>>6] |= 1 << (i & 63) }
func (b bits) clear(i uint32)    { b[i>>6] &^= 1 << (i & 63) }

// fill sets or clears [from, to).
func (b bits) fill(from, to uint32, on bool) {
	for from < to {
		word := from >> 6
		end := min(to, (word+1)<<6)
		mask := ^uint64(0) << (from & 63)
		if end&63 != 0 {
			mask &= 1<<(end&63) - 1
		}
		if on {
			b[word] |= mask
		} else {
			b[word] &^= mask
		}
		from = end
	}
}
