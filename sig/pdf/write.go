// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
)

// appendObject writes an object. conceal encrypts strings; nil leaves them plain.
func appendObject(b []byte, o object, conceal func(text) text) []byte {
	switch o := o.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, o)
	case number:
		return append(b, o...)
	case verbatim:
		return append(b, o...)
	case name:
		return appendName(b, o)
	case text:
		if conceal != nil {
			return appendHex(b, conceal(o))
		}
		return appendText(b, o)
	case ref:
		return fmt.Appendf(b, "%d %d R", o.num, o.gen)
	case array:
		b = append(b, '[')
		for i, x := range o {
			if i > 0 {
				b = append(b, ' ')
			}
			b = appendObject(b, x, conceal)
		}
		return append(b, ']')
	case dict:
		b = append(b, "<<"...)
		for _, e := range o {
			b = appendName(b, e.key)
			b = append(b, ' ')
			b = appendObject(b, e.value, conceal)
		}
		return append(b, ">>"...)
	}
	panic(fmt.Sprintf("pdf: a %T cannot be written inside another object", o))
}

func appendName(b []byte, n name) []byte {
	b = append(b, '/')
	for i := range len(n) {
		if c := n[i]; c <= ' ' || c > '~' || c == '#' || classes[c] != 0 {
			b = fmt.Appendf(b, "#%02X", c)
		} else {
			b = append(b, c)
		}
	}
	return b
}

func appendHex(b, data []byte) []byte {
	return append(hex.AppendEncode(append(b, '<'), data), '>')
}

// appendText writes a string in parentheses if it is printable, else in hexadecimal.
func appendText(b []byte, t text) []byte {
	for _, c := range t {
		if c < ' ' || c > '~' {
			return appendHex(b, t)
		}
	}
	b = append(b, '(')
	for _, c := range t {
		if c == '(' || c == ')' || c == '\\' {
			b = append(b, '\\')
		}
		b = append(b, c)
	}
	return append(b, ')')
}

// update is an incremental update that is being written, which follows the bytes of a
// document (ISO 32000-1, 7.5.6).
type update struct {
	base    int64 // offset of the first new byte
	bias    int64 // see file
	stream  bool  // the section is a stream
	trailer dict  // without Size and Prev
	prev    int64 // offset of the previous section; -1 if there is none: this one is complete
	next    int   // the next free object number
	crypt   *crypt

	buf    []byte // without the content of the hole
	holeAt int    // index of the hole in buf, -1 for none
	hole   int64  // bytes of the hole
	placed map[int]place
	start  int64 // offset of the section, once it is written
}

// offset returns the offset of the next byte in the file, counted from the header.
func (u *update) offset() int64 {
	at := u.base + int64(len(u.buf)) - u.bias
	if u.holeAt >= 0 {
		at += u.hole
	}
	return at
}

// reserve takes a new number.
func (u *update) reserve() ref {
	u.next++
	return ref{num: u.next - 1}
}

// add writes a new object.
func (u *update) add(o object) ref {
	id := u.reserve()
	u.put(id, o)
	return id
}

// put writes an object, a new one or a replacement.
func (u *update) put(id ref, o object) {
	u.begin(id)
	if s, ok := o.(*stream); ok {
		data := s.fresh
		if u.crypt != nil {
			data = u.crypt.encrypt(u.crypt.streams, id, data)
		}
		u.buf = appendObject(u.buf, s.dict.with("Length", intObject(int64(len(data)))), u.conceal(id))
		u.buf = append(append(append(u.buf, "\nstream\n"...), data...), "\nendstream"...)
	} else {
		u.buf = appendObject(u.buf, o, u.conceal(id))
	}
	u.end()
}

func (u *update) begin(id ref) {
	u.placed[id.num] = place{inFile, u.offset(), id.gen}
	u.buf = fmt.Appendf(u.buf, "%d %d obj\n", id.num, id.gen)
}

func (u *update) end() { u.buf = append(u.buf, "\nendobj\n"...) }

// conceal returns the function that encrypts the strings of an object, nil if the
// document is not encrypted.
func (u *update) conceal(id ref) func(text) text {
	if u.crypt == nil {
		return nil
	}
	return func(t text) text { return u.crypt.encrypt(u.crypt.strings, id, t) }
}

// maxTable is the largest offset that fits into the ten digits of a table.
const maxTable = 9_999_999_999

// close writes the cross-reference section and the end of the file.
func (u *update) close() {
	u.start = u.offset()
	if u.stream || u.start > maxTable {
		u.crossStream()
	} else {
		u.table()
	}
	u.buf = fmt.Appendf(u.buf, "startxref\n%d\n%%%%EOF\n", u.start)
}

// numbers returns the numbers of the objects written, in order.
func (u *update) numbers() []int {
	list := make([]int, 0, len(u.placed))
	for num := range u.placed {
		list = append(list, num)
	}
	slices.Sort(list)
	return list
}

// runs calls f for each run of consecutive numbers.
func runs(numbers []int, f func(run []int)) {
	for len(numbers) > 0 {
		n := 1
		for n < len(numbers) && numbers[n] == numbers[n-1]+1 {
			n++
		}
		f(numbers[:n])
		numbers = numbers[n:]
	}
}

func (u *update) fullTrailer() dict {
	d := u.trailer.with("Size", intObject(int64(u.next)))
	if u.prev >= 0 {
		d = d.with("Prev", intObject(u.prev))
	}
	return d
}

func (u *update) table() {
	u.buf = append(u.buf, "xref\n"...)
	if u.prev < 0 {
		u.placed[0] = place{free, 0, 65535}
	}
	runs(u.numbers(), func(run []int) {
		u.buf = fmt.Appendf(u.buf, "%d %d\n", run[0], len(run))
		for _, num := range run {
			p, kind := u.placed[num], 'n'
			if p.kind == free {
				kind = 'f'
			}
			u.buf = fmt.Appendf(u.buf, "%010d %05d %c \n", p.at, p.gen, kind)
		}
	})
	u.buf = append(u.buf, "trailer\n"...)
	u.buf = appendObject(u.buf, u.fullTrailer(), nil)
	u.buf = append(u.buf, '\n')
}

func (u *update) crossStream() {
	own := u.reserve()
	u.placed[own.num] = place{inFile, u.start, 0}
	if u.prev < 0 {
		u.placed[0] = place{free, 0, 65535}
	}
	numbers := u.numbers()
	widths := [3]int{1, 1, 2}
	for _, p := range u.placed {
		for widths[1] < 8 && p.at>>(8*widths[1]) != 0 {
			widths[1]++
		}
		if p.gen > 65535 {
			widths[2] = 4
		}
	}
	var data []byte
	var index array
	field := func(v int64, width int) {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], uint64(v))
		data = append(data, b[8-width:]...)
	}
	runs(numbers, func(run []int) {
		index = append(index, intObject(int64(run[0])), intObject(int64(len(run))))
		for _, num := range run {
			p := u.placed[num]
			field(int64(p.kind-free), widths[0]) // free, inFile, inStream are 0, 1, 2
			field(p.at, widths[1])
			field(int64(p.gen), widths[2])
		}
	})
	d := append(dict{{"Type", name("XRef")}, {"Index", index},
		{"W", array{intObject(int64(widths[0])), intObject(int64(widths[1])), intObject(int64(widths[2]))}},
		{"Length", intObject(int64(len(data)))}}, u.fullTrailer()...)
	u.buf = fmt.Appendf(u.buf, "%d 0 obj\n", own.num)
	u.buf = appendObject(u.buf, d, nil)
	u.buf = append(append(append(u.buf, "\nstream\n"...), data...), "\nendstream\nendobj\n"...)
}

// total returns the length of the update in bytes, including the hole.
func (u *update) total() int64 { return u.offset() + u.bias - u.base }

// newLine reports whether the new bytes must begin with an end of line.
func (f *file) newLine() bool {
	var last [1]byte
	return f.readFull(last[:], f.size-1) && !bytes.ContainsAny(last[:], "\r\n")
}
