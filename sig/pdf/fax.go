// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"errors"
	"math/bits"
	"strings"
	"sync"
)

// fax reads pictures of ITU-T T.4 (CCITT Group 3, in one or two dimensions) and T.6 (Group 4), row by row. A row is the list
// of its changes of colour: it begins with white.
type fax struct {
	data    []byte
	at      int // bit in data
	columns int
	k       int  // as K of the dictionary: below 0 for T.6, 0 for T.4 in one dimension, above for T.4 in two
	align   bool // rows begin at bytes
	ref     []int32
	row     []int32
}

var errFax = errors.New("the picture is not coded by T.4 or T.6")

// The codes of runs, in the order of their lengths: 0 to 63, then 64 to 1728 by 64. faxLong goes on from 1792 for both
// colours.
const (
	faxWhite = `00110101 000111 0111 1000 1011 1100 1110 1111 10011 10100 00111 01000 001000 000011 110100 110101 101010 101011 0100111 0001100
0001000 0010111 0000011 0000100 0101000 0101011 0010011 0100100 0011000 00000010 00000011 00011010 00011011 00010010 00010011 00010100
00010101 00010110 00010111 00101000 00101001 00101010 00101011 00101100 00101101 00000100 00000101 00001010 00001011 01010010 01010011
01010100 01010101 00100100 00100101 01011000 01011001 01011010 01011011 01001010 01001011 00110010 00110011 00110100
11011 10010 010111 0110111 00110110 00110111 01100100 01100101 01101000 01100111 011001100 011001101 011010010 011010011 011010100
011010101 011010110 011010111 011011000 011011001 011011010 011011011 010011000 010011001 010011010 011000 010011011`
	faxBlack = `0000110111 010 11 10 011 0011 0010 00011 000101 000100 0000100 0000101 0000111 00000100 00000111 000011000 0000010111 0000011000
0000001000 00001100111 00001101000 00001101100 00000110111 00000101000 00000010111 00000011000 000011001010 000011001011 000011001100
000011001101 000001101000 000001101001 000001101010 000001101011 000011010010 000011010011 000011010100 000011010101 000011010110
000011010111 000001101100 000001101101 000011011010 000011011011 000001010100 000001010101 000001010110 000001010111 000001100100
000001100101 000001010010 000001010011 000000100100 000000110111 000000111000 000000100111 000000101000 000001011000 000001011001
000000101011 000000101100 000001011010 000001100110 000001100111
0000001111 000011001000 000011001001 000001011011 000000110011 000000110100 000000110101 0000001101100 0000001101101 0000001001010
0000001001011 0000001001100 0000001001101 0000001110010 0000001110011 0000001110100 0000001110101 0000001110110 0000001110111
0000001010010 0000001010011 0000001010100 0000001010101 0000001011010 0000001011011 0000001100100 0000001100101`
	faxLong = ` 00000001000 00000001100 00000001101 000000010010 000000010011 000000010100 000000010101 000000010110 000000010111 000000011100
000000011101 000000011110 000000011111`

	faxBits = 13 // of the longest code
)

// faxCode is a code: the length of its run, and its bits. 0 bits: there is no such code.
type faxCode struct {
	run  int16
	bits uint8
}

// faxCodes are the codes of both colours by the next bits of the data.
var faxCodes = sync.OnceValue(func() *[2][1 << faxBits]faxCode {
	var tables [2][1 << faxBits]faxCode
	for colour, list := range []string{faxWhite + faxLong, faxBlack + faxLong} {
		for i, code := range strings.Fields(list) {
			run, first := i, 0
			if i > 63 {
				run = (i - 63) * 64
			}
			for _, digit := range code {
				first = first<<1 | int(digit-'0')
			}
			first <<= faxBits - len(code)
			for j := range 1 << (faxBits - len(code)) {
				tables[colour][first+j] = faxCode{int16(run), uint8(len(code))}
			}
		}
	}
	return &tables
})

// newFax returns a reader. Its memory is as faxMemory says.
func newFax(data []byte, columns, k int, align bool) *fax {
	return &fax{data: data, columns: columns, k: k, align: align, ref: make([]int32, 0, columns+2), row: make([]int32, 0, columns+2)}
}

// faxMemory is the memory of a reader, in bytes.
func faxMemory(columns int) int64 { return 8*int64(columns+2) + 1<<16 }

// peek returns the next bits, up to 16, with zeros after the end.
func (d *fax) peek(n int) int {
	v, at := 0, d.at>>3
	for i := range 3 {
		v <<= 8
		if at+i < len(d.data) {
			v |= int(d.data[at+i])
		}
	}
	return v >> (24 - d.at&7 - n) & (1<<n - 1)
}

func (d *fax) skip(n int) error {
	if d.at += n; d.at > 8*len(d.data) {
		return errFax
	}
	return nil
}

// next reads a row. It is valid until the next one but one.
func (d *fax) next() ([]int32, error) {
	d.ref, d.row = d.row, d.ref[:0]
	if d.align {
		d.at = (d.at + 7) &^ 7
	}
	if d.k < 0 {
		err := d.inTwo()
		return d.row, err
	}
	d.endOfLine()
	if d.k > 0 {
		one := d.peek(1) == 1
		if err := d.skip(1); err != nil {
			return nil, err
		}
		if !one {
			err := d.inTwo()
			return d.row, err
		}
	}
	err := d.inOne()
	return d.row, err
}

// endOfLine passes an end of line by, with the zeros that fill the time before it.
func (d *fax) endOfLine() {
	const zeros = 11
	if d.peek(zeros) != 0 {
		return
	}
	at := d.at + zeros
	for i := at >> 3; i < len(d.data); i++ {
		left := d.data[i]
		if i == at>>3 {
			left &= 0xff >> (at & 7)
		}
		if left != 0 {
			d.at = 8*i + bits.LeadingZeros8(left) + 1
			return
		}
	}
}

// run reads a run of a colour: 0 for white, 1 for black.
func (d *fax) run(colour int) (int, error) {
	for length := 0; ; {
		code := faxCodes()[colour][d.peek(faxBits)]
		if code.bits == 0 {
			return 0, errFax
		}
		if err := d.skip(int(code.bits)); err != nil {
			return 0, err
		}
		if length += int(code.run); length > d.columns {
			return 0, errFax
		}
		if code.run < 64 {
			return length, nil
		}
	}
}

// change ends a run at a column.
func (d *fax) change(column int) error {
	if column < 0 || column > d.columns || len(d.row) > 0 && int32(column) < d.row[len(d.row)-1] || len(d.row) > d.columns {
		return errFax
	}
	d.row = append(d.row, int32(column))
	return nil
}

// inOne reads a row in one dimension.
func (d *fax) inOne() error {
	for at, colour := 0, 0; at < d.columns; colour ^= 1 {
		n, err := d.run(colour)
		if err != nil {
			return err
		}
		at += n
		if err := d.change(at); err != nil {
			return err
		}
	}
	return nil
}

// faxVertical are the codes of a change near the one in the row above, by seven bits: how far it is, and the bits of the code.
var faxVertical = [128]struct{ by, bits int8 }{2: {-3, 7}, 3: {3, 7}, 4: {-2, 6}, 5: {-2, 6}, 6: {2, 6}, 7: {2, 6}}

// inTwo reads a row by the one above.
func (d *fax) inTwo() error {
	at, colour, above := 0, 0, 0
	for first := true; at < d.columns; first = false {
		// b1 is the first change above to the other colour that is right of at.
		for above > 0 && int(d.above(above-1)) > at {
			above--
		}
		for above < len(d.ref) && (int(d.ref[above]) < at || int(d.ref[above]) == at && !(first && at == 0) || above&1 != colour) {
			above++
		}
		b1, code := int(d.above(above)), d.peek(7)
		switch {
		case code>>3 == 1: // 0001, pass
			at = int(d.above(above + 1))
			if err := d.skip(4); err != nil {
				return err
			}
			continue
		case code>>4 == 1: // 001, horizontal
			if err := d.skip(3); err != nil {
				return err
			}
			for range 2 {
				n, err := d.run(colour)
				if err != nil {
					return err
				}
				at += n
				if err := d.change(at); err != nil {
					return err
				}
				colour ^= 1
			}
			continue
		}
		by, length := 0, 1
		switch {
		case code>>6 == 1: // 1
		case code>>4 == 3: // 011
			by, length = 1, 3
		case code>>4 == 2: // 010
			by, length = -1, 3
		default:
			v := faxVertical[code]
			if by, length = int(v.by), int(v.bits); length == 0 {
				return errFax
			}
		}
		if err := d.skip(length); err != nil {
			return err
		}
		if b1+by < at {
			return errFax
		}
		at = b1 + by
		if err := d.change(at); err != nil {
			return err
		}
		colour ^= 1
	}
	return nil
}

// above returns a change of the row above; behind its last one is the edge.
func (d *fax) above(i int) int32 {
	if i < len(d.ref) {
		return d.ref[i]
	}
	return int32(d.columns)
}
