// Package streebog owns the hash function GOST R 34.11-2012, "Streebog", with
// results of 256 and 512 bits (RFC 6986).
//
// Octets are in the order of the stream: the first octet hashed is the least
// significant of the first block, and a result is the octet string that
// signatures and CMS carry. The RFC prints numbers the other way round.
//
// On processors of the amd64 family with AVX-512 (F, BW, VL, VBMI) and GFNI the
// implementation runs in constant time, for a given length, in vector registers.
// Elsewhere, and under the build tag purego, it looks octets of the state up in
// tables, so its timing shows through the cache which octets they were. There it is
// for public data: documents, attributes, certificates; passwords, keys and shared
// secrets do not belong here where an attacker shares the processor's cache.
package streebog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
)

const (
	// Size256 is the length of a 256-bit result in octets.
	Size256 = 32
	// Size512 is the length of a 512-bit result in octets.
	Size512 = 64
	// BlockSize is the length of a block in octets, for both results.
	BlockSize = 64
)

// state is what the compression function works on: the chaining value, the
// number of bits hashed and the sum of the blocks, each a 512-bit number with the
// least significant word first.
type state struct {
	h, n, sigma [8]uint64
}

// digest is the hash.Hash. Its buffer holds less than a block: full blocks are
// compressed as soon as they are complete.
type digest struct {
	state
	buf  [BlockSize]byte
	used int // octets in buf, 0 to 63
	size int // Size256 or Size512
}

// New256 returns a hash with a result of Size256 octets. It also implements
// encoding.BinaryMarshaler, BinaryAppender, BinaryUnmarshaler and hash.Cloner.
func New256() hash.Hash { return newDigest(Size256) }

// New512 returns a hash with a result of Size512 octets. It also implements
// encoding.BinaryMarshaler, BinaryAppender, BinaryUnmarshaler and hash.Cloner.
func New512() hash.Hash { return newDigest(Size512) }

func newDigest(size int) *digest {
	d := &digest{size: size}
	d.Reset()
	return d
}

// Sum256 returns the 256-bit hash of data.
func Sum256(data []byte) [Size256]byte {
	d := digest{size: Size256}
	d.Reset()
	d.Write(data)
	sum := d.sum()
	return [Size256]byte(sum[Size512-Size256:])
}

// Sum512 returns the 512-bit hash of data.
func Sum512(data []byte) [Size512]byte {
	d := digest{size: Size512}
	d.Reset()
	d.Write(data)
	return d.sum()
}

// Size returns Size256 or Size512.
func (d *digest) Size() int { return d.size }

// BlockSize returns BlockSize.
func (d *digest) BlockSize() int { return BlockSize }

// Reset makes the hash what New256 or New512 returned.
func (d *digest) Reset() {
	*d = digest{size: d.size, state: state{h: iv(d.size)}}
}

// iv is the initial chaining value: all octets zero for 512 bits and one for 256
// (RFC 6986, section 6.1).
func iv(size int) (h [8]uint64) {
	if size == Size256 {
		for i := range h {
			h[i] = 0x0101010101010101
		}
	}
	return h
}

// Write hashes p. It never fails.
func (d *digest) Write(p []byte) (int, error) {
	n := len(p)
	if d.used > 0 {
		c := copy(d.buf[d.used:], p)
		d.used += c
		p = p[c:]
		if d.used < BlockSize {
			return n, nil
		}
		blocks(&d.state, d.buf[:])
		d.used = 0
	}
	if whole := len(p) &^ (BlockSize - 1); whole > 0 {
		blocks(&d.state, p[:whole])
		p = p[whole:]
	}
	d.used = copy(d.buf[:], p)
	return n, nil
}

// Sum appends the hash of what was written so far to b and leaves the hash as it
// was.
func (d *digest) Sum(b []byte) []byte {
	sum := d.sum()
	return append(b, sum[Size512-d.size:]...)
}

// sum is stage 3 of RFC 6986, section 8, on a copy of the state.
func (d *digest) sum() [Size512]byte {
	var e ending
	e.start(d)
	for range endingBlocks {
		blocks(&e.state, e.block[:])
		e.next()
	}
	return e.sum()
}

// An ending is stage 3 of RFC 6986, section 8: the state takes endingBlocks blocks,
// each when next has laid it ready, which are the rest of the message, its bit count
// and the sum of its blocks. The compressions of the last two count no bits, which a
// state with a fresh counter expresses, so that blocks is the only door to the
// compression function.
type ending struct {
	state
	block         [BlockSize]byte
	length, total [8]uint64
	done          int // blocks taken
}

const endingBlocks = 3

// start begins the ending of the message that d has taken.
func (e *ending) start(d *digest) {
	*e = ending{state: d.state, length: d.n}
	addWord(&e.length, uint64(d.used)*8)
	copy(e.block[:], d.buf[:d.used])
	e.block[d.used] = 1
}

// next is called after each block.
func (e *ending) next() {
	e.done++
	switch e.done {
	case 1:
		e.total = e.sigma
		putWords(&e.block, &e.length)
	case 2:
		putWords(&e.block, &e.total)
	}
	e.n = [8]uint64{}
}

// sum returns the result after the last block.
func (e *ending) sum() (out [Size512]byte) {
	putWords(&out, &e.h)
	return out
}

// Clone returns an independent copy of the hash. Its error is always nil.
func (d *digest) Clone() (hash.Cloner, error) {
	c := *d
	return &c, nil
}

// The marshaled form is: magic, the size of the result, the number of buffered
// octets, the chaining value, the bit count, the sum, and the buffer filled up
// with zeros; numbers are little-endian. The version is the magic's last octet.
const (
	magic         = "gsb\x01"
	marshaledSize = len(magic) + 2 + 3*64 + BlockSize
)

// MarshalBinary returns the running state. It never fails.
func (d *digest) MarshalBinary() ([]byte, error) {
	return d.AppendBinary(make([]byte, 0, marshaledSize))
}

// AppendBinary appends the running state to b. It never fails.
func (d *digest) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, magic...)
	b = append(b, byte(d.size), byte(d.used))
	for _, words := range []*[8]uint64{&d.h, &d.n, &d.sigma} {
		for _, w := range words {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
	}
	b = append(b, d.buf[:d.used]...)
	return append(b, make([]byte, BlockSize-d.used)...), nil
}

// UnmarshalBinary makes the hash continue where MarshalBinary was called. It
// refuses a state of another version or result size and one that no message leads
// to, as far as that can be seen, and leaves the hash untouched then.
func (d *digest) UnmarshalBinary(b []byte) error {
	if len(b) != marshaledSize {
		return fmt.Errorf("streebog: state of %d octets, want %d", len(b), marshaledSize)
	}
	if string(b[:len(magic)]) != magic {
		return errors.New("streebog: state is of another hash or version")
	}
	b = b[len(magic):]
	if int(b[0]) != d.size {
		return fmt.Errorf("streebog: state of the hash with %d octets, want %d", b[0], d.size)
	}
	n := digest{size: d.size, used: int(b[1])}
	b = b[2:]
	if n.used >= BlockSize {
		return fmt.Errorf("streebog: state with %d buffered octets, want less than %d", n.used, BlockSize)
	}
	for _, words := range []*[8]uint64{&n.h, &n.n, &n.sigma} {
		for i := range words {
			words[i] = binary.LittleEndian.Uint64(b)
			b = b[8:]
		}
	}
	copy(n.buf[:n.used], b)
	if !bytes.Equal(n.buf[:], b) {
		return errors.New("streebog: state with octets after the buffered ones, want zeros")
	}
	if n.n[0]%(8*BlockSize) != 0 {
		return errors.New("streebog: state with a bit count that is not one of whole blocks")
	}
	if n.n == ([8]uint64{}) && n.state != (state{h: iv(n.size)}) {
		return errors.New("streebog: state of no block with a chaining value or sum other than the first")
	}
	*d = n
	return nil
}

func putWords(b *[64]byte, words *[8]uint64) {
	for i, w := range words {
		binary.LittleEndian.PutUint64(b[8*i:], w)
	}
}
