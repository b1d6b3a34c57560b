// SPDX-License-Identifier: Apache-2.0

// Package streebog implements the hash function GOST R 34.11-2012, "Streebog", with
// results of 256 and 512 bits (RFC 6986).
//
// Begin with Sum256 or Sum512 for a message in memory and with New256 or New512 for
// a stream. SumMany256, SumMany512 and WriteMany hash several messages at once. The
// package has neither HMAC nor key derivation.
//
// Bytes are in the order of the stream: the first byte hashed is the least
// significant byte of the first block, and a result is the byte string that
// signatures and CMS carry. The RFC prints numbers in the opposite order.
//
// On amd64 processors with AVX2 the implementation uses vector registers, and its time
// depends on the length of the message only. It is fastest with AVX-512 (F, BW, VL,
// VBMI) and GFNI. On other processors, and under the build tag purego, it reads tables
// at indices that are bytes of the state, so an attacker who shares the processor's
// cache can learn these bytes. Use it there for public data only: documents,
// attributes, certificates. Do not hash passwords, keys or shared secrets there.
package streebog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
)

const (
	// Size256 is the length of a 256-bit result in bytes.
	Size256 = 32
	// Size512 is the length of a 512-bit result in bytes.
	Size512 = 64
	// BlockSize is the length of a block in bytes, for both results.
	BlockSize = 64
)

// state is the state of the compression function: the chaining value h, the number n
// of bits hashed and the sum sigma of the blocks. Each is a 512-bit number with the
// least significant word first.
type state struct {
	h, n, sigma [8]uint64
}

// digest is the hash.Hash. Its buffer holds less than a block, because each block is
// compressed as soon as it is complete.
type digest struct {
	state
	buf  [BlockSize]byte
	used int // bytes in buf, 0 to 63
	size int // Size256 or Size512
}

// New256 returns a hash with a result of Size256 bytes. It also implements
// encoding.BinaryMarshaler, BinaryAppender, BinaryUnmarshaler and hash.Cloner.
func New256() hash.Hash { return newDigest(Size256) }

// New512 returns a hash with a result of Size512 bytes. It also implements
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

// Reset puts the hash into the state that New256 or New512 returned.
func (d *digest) Reset() {
	*d = digest{size: d.size, state: state{h: iv(d.size)}}
}

// iv is the initial chaining value: all bytes zero for 512 bits and one for 256
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

// Sum appends the hash of the data written so far to b. It does not change the hash.
func (d *digest) Sum(b []byte) []byte {
	sum := d.sum()
	return append(b, sum[Size512-d.size:]...)
}

// sum runs stage 3 of RFC 6986, section 8, on a copy of the state.
func (d *digest) sum() [Size512]byte {
	var e ending
	e.start(d)
	for range endingBlocks {
		blocks(&e.state, e.block[:])
		e.next()
	}
	return e.sum()
}

// An ending runs stage 3 of RFC 6986, section 8. The state takes endingBlocks blocks:
// the rest of the message, its bit count and the sum of its blocks. start prepares the
// first block, and next prepares each of the others. The last two compressions must
// not count bits. Instead, next sets the bit count to zero before each of them, so
// that the function blocks can do these compressions too.
type ending struct {
	state
	block         [BlockSize]byte
	length, total [8]uint64
	done          int // number of blocks taken
}

const endingBlocks = 3

// start prepares the first block of the ending of the message that was written to d.
func (e *ending) start(d *digest) {
	*e = ending{state: d.state, length: d.n}
	addWord(&e.length, uint64(d.used)*8)
	copy(e.block[:], d.buf[:d.used])
	e.block[d.used] = 1
}

// next must be called after each block. It prepares the following block.
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
// bytes, the chaining value, the bit count, the sum, and the buffer padded with
// zeros. Numbers are little-endian. The last byte of magic is the version.
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

// UnmarshalBinary puts the hash into a state that MarshalBinary returned. It returns
// an error, and does not change the hash, for a state of another version or result
// size and for a state that no message can have, as far as it can detect that.
func (d *digest) UnmarshalBinary(b []byte) error {
	if len(b) != marshaledSize {
		return fmt.Errorf("streebog: state of %d bytes, want %d", len(b), marshaledSize)
	}
	if string(b[:len(magic)]) != magic {
		return errors.New("streebog: state is of another hash or version")
	}
	b = b[len(magic):]
	if int(b[0]) != d.size {
		return fmt.Errorf("streebog: state of a hash with a result of %d bytes, want %d", b[0], d.size)
	}
	n := digest{size: d.size, used: int(b[1])}
	b = b[2:]
	if n.used >= BlockSize {
		return fmt.Errorf("streebog: state with %d buffered bytes, want fewer than %d", n.used, BlockSize)
	}
	for _, words := range []*[8]uint64{&n.h, &n.n, &n.sigma} {
		for i := range words {
			words[i] = binary.LittleEndian.Uint64(b)
			b = b[8:]
		}
	}
	copy(n.buf[:n.used], b)
	if !bytes.Equal(n.buf[:], b) {
		return errors.New("streebog: state with bytes after the buffered ones, want zeros")
	}
	if n.n[0]%(8*BlockSize) != 0 {
		return errors.New("streebog: state with a bit count that is not a multiple of 512")
	}
	if n.n == ([8]uint64{}) && n.state != (state{h: iv(n.size)}) {
		return errors.New("streebog: state before the first block has a changed chaining value or sum, want the initial ones")
	}
	*d = n
	return nil
}

func putWords(b *[64]byte, words *[8]uint64) {
	for i, w := range words {
		binary.LittleEndian.PutUint64(b[8*i:], w)
	}
}
