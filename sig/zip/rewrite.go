// SPDX-License-Identifier: Apache-2.0

package zip

import (
	"bytes"
	"compress/flate"
	"hash/crc32"
	"math"
	"slices"
	"sync"
)

// Change is new content of the entry with that name. A new name is added after the
// last one.
type Change struct {
	Name string
	// Content must be shorter than 4 GiB. Up to 8 KiB are stored, longer content is compressed if
	// that makes it shorter.
	Content []byte
}

// Piece is a part of a rewritten archive: new bytes, or a section of the archive that it was made from.
type Piece struct {
	// Bytes are new bytes. If they are nil, the piece is Length bytes of the Source, beginning at
	// Offset.
	Bytes          []byte
	Offset, Length int64
}

// Rewrite lays out the archive with changes, whose names must differ from each other. Unchanged entries
// keep their bytes (header, content and descriptor), their order and their extra fields. Gaps are left
// out, and so are bytes before the first entry. New entries have the date 1 January 1980 and no
// extra fields. The result of an archive with gaps is shorter, and Open does not read a result of more
// than MaxEntries entries.
//
// Errors: *Error for a name that Open refuses or that has more than 65,535 bytes, and for content
// of 4 GiB or more.
func (a *Archive) Rewrite(changes []Change) ([]Piece, error) {
	fresh := make(map[*Entry]*packed, len(changes))
	var added []*packed
	for _, c := range changes {
		p, err := pack(c)
		if err != nil {
			return nil, err
		}
		if e := a.Find(c.Name); e != nil {
			fresh[e] = p
		} else {
			added = append(added, p)
		}
	}
	// Each change takes two pieces, and may be followed by a section. The directory and the end
	// are one.
	pieces := make([]Piece, 0, 3*len(changes)+2)
	var at int64                   // how much of the result is laid out
	from, to := int64(0), int64(0) // a section not yet in pieces
	offsets := make(map[*Entry]int64, len(a.Entries))
	flush := func() {
		if to > from {
			pieces = append(pieces, Piece{Offset: from, Length: to - from})
		}
	}
	put := func(p *packed) {
		flush()
		from, to = 0, 0
		p.offset = at
		header := p.local()
		pieces = append(pieces, Piece{Bytes: header, Length: int64(len(header))})
		if len(p.content) > 0 {
			pieces = append(pieces, Piece{Bytes: p.content, Length: int64(len(p.content))})
		}
		at += int64(len(header) + len(p.content))
	}
	for _, e := range a.byOffset() {
		if p := fresh[e]; p != nil {
			put(p)
			continue
		}
		if e.Offset != to {
			flush()
			from, to = e.Offset, e.Offset
		}
		offsets[e] = at
		at += e.End - e.Offset
		to = e.End
	}
	for _, p := range added {
		put(p)
	}
	flush()
	directory := make([]byte, 0, len(a.Directory)+128*len(added)+lenEnd64+lenLocator64+lenEnd+len(a.comment))
	for i := range a.Entries {
		e := &a.Entries[i]
		if p := fresh[e]; p != nil {
			directory = append(directory, p.central()...)
		} else {
			directory = append(directory, e.central(offsets[e])...)
		}
	}
	for _, p := range added {
		directory = append(directory, p.central()...)
	}
	tail := append(directory, endOf(len(a.Entries)+len(added), at, int64(len(directory)), a.comment)...)
	return append(pieces, Piece{Bytes: tail, Length: int64(len(tail))}), nil
}

// central returns the record of an unchanged entry that has moved to offset.
func (e *Entry) central(offset int64) []byte {
	b := slices.Clone(e.header)
	var zip64 []byte
	// The fields of Zip64 are in this order, and only those that the small record leaves
	// to them are present (APPNOTE 4.5.3).
	for _, f := range []struct {
		at    int
		value int64
	}{{24, e.Size}, {20, e.Compressed}, {42, offset}} {
		if f.value >= math.MaxUint32 {
			zip64 = le.AppendUint64(zip64, uint64(f.value))
		}
		le.PutUint32(b[f.at:], uint32(min(f.value, math.MaxUint32)))
	}
	extra := e.extra
	if zip64 != nil {
		field := le.AppendUint16(le.AppendUint16(nil, extraZip64), uint16(len(zip64)))
		extra = slices.Concat(field, zip64, e.extra)
		le.PutUint16(b[6:], max(le.Uint16(b[6:]), 45))
	}
	le.PutUint16(b[30:], uint16(len(extra)))
	le.PutUint16(b[34:], 0)
	return slices.Concat(b, []byte(e.Name), extra, e.tail)
}

// packed is a new entry.
type packed struct {
	name    string
	method  uint16
	crc     uint32
	size    int64
	length  int64  // of content
	content []byte // compressed; nil if the caller has it
	offset  int64
}

var deflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil { // impossible: the level exists
		panic("zip: " + err.Error())
	}
	return w
}}

// storedSize is the largest content in bytes that is not compressed. The tables that Deflate
// makes for a small part take more time than its signature, and compression saves a few
// kilobytes at most.
const storedSize = 8 << 10

// pack compresses new content, unless it is small or that makes it longer.
func pack(c Change) (*packed, error) {
	if err := checkName(c.Name); err != nil {
		return nil, err
	}
	if len(c.Name) > math.MaxUint16 {
		return nil, refused(TooLarge, c.Name, "the entry name %s has %d bytes; at most %d are possible", quote(c.Name), len(c.Name), math.MaxUint16)
	}
	if len(c.Content) >= math.MaxUint32 {
		return nil, refused(TooLarge, c.Name, "the entry %s has %d bytes; less than 4 GiB expected", quote(c.Name), len(c.Content))
	}
	p := &packed{name: c.Name, crc: crc32.ChecksumIEEE(c.Content), size: int64(len(c.Content)), length: int64(len(c.Content)), content: c.Content}
	if len(c.Content) <= storedSize {
		return p, nil
	}
	w := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(w)
	var b bytes.Buffer
	w.Reset(&b)
	if _, err := w.Write(c.Content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if b.Len() < len(c.Content) {
		p.method, p.content, p.length = Deflate, b.Bytes(), int64(b.Len())
	}
	return p, nil
}

// date is 1 January 1980, the earliest possible date, which Office writes for all
// entries.
const date = 1<<5 | 1

// fields returns the fields that the local header and the directory share, from the
// version needed to the length of the extra field.
func (p *packed) fields(extra int) []byte {
	version, flags := uint16(20), uint16(0)
	if extra > 0 {
		version = 45
	}
	for i := range len(p.name) {
		if p.name[i] >= 0x80 {
			flags = flagUTF8
		}
	}
	b := le.AppendUint16(nil, version)
	for _, v := range []uint16{flags, p.method, 0, date} {
		b = le.AppendUint16(b, v)
	}
	b = le.AppendUint32(b, p.crc)
	length, size := p.length, p.size
	if p.isLarge() {
		length, size = math.MaxUint32, math.MaxUint32
	}
	b = le.AppendUint32(le.AppendUint32(b, uint32(length)), uint32(size))
	b = le.AppendUint16(b, uint16(len(p.name)))
	return le.AppendUint16(b, uint16(extra))
}

// isLarge reports whether the lengths are in a Zip64 field. Both are there then (4.5.3).
func (p *packed) isLarge() bool { return p.length >= math.MaxUint32 || p.size >= math.MaxUint32 }

// zip64 returns the Zip64 field with the lengths and, in the directory, the offset; nil if none is needed.
func (p *packed) zip64(directory bool) []byte {
	var values []byte
	if p.isLarge() {
		values = le.AppendUint64(le.AppendUint64(nil, uint64(p.size)), uint64(p.length))
	}
	if directory && p.offset >= math.MaxUint32 {
		values = le.AppendUint64(values, uint64(p.offset))
	}
	if values == nil {
		return nil
	}
	return append(le.AppendUint16(le.AppendUint16(nil, extraZip64), uint16(len(values))), values...)
}

// local returns the header before the content.
func (p *packed) local() []byte {
	extra := p.zip64(false)
	return slices.Concat(le.AppendUint32(nil, sigLocal), p.fields(len(extra)), []byte(p.name), extra)
}

func (p *packed) central() []byte {
	extra := p.zip64(true)
	b := le.AppendUint32(nil, sigCentral)
	b = le.AppendUint16(b, 45) // made by: FAT attributes, version 4.5
	b = append(b, p.fields(len(extra))...)
	b = append(b, make([]byte, 10)...) // comment, volume, attributes
	b = le.AppendUint32(b, uint32(min(p.offset, math.MaxUint32)))
	return slices.Concat(b, []byte(p.name), extra)
}

// endOf returns the records after the directory.
func endOf(count int, offset, length int64, comment []byte) []byte {
	var b []byte
	if count >= math.MaxUint16 || offset >= math.MaxUint32 || length >= math.MaxUint32 {
		b = le.AppendUint32(b, sigEnd64)
		b = le.AppendUint64(b, lenEnd64-12)
		b = le.AppendUint16(le.AppendUint16(b, 45), 45)
		b = append(b, make([]byte, 8)...)
		for _, v := range []int64{int64(count), int64(count), length, offset} {
			b = le.AppendUint64(b, uint64(v))
		}
		b = le.AppendUint32(b, sigLocator64)
		b = le.AppendUint32(b, 0)
		b = le.AppendUint64(b, uint64(offset+length))
		b = le.AppendUint32(b, 1)
	}
	b = le.AppendUint32(b, sigEnd)
	b = append(b, make([]byte, 4)...)
	small := uint16(min(count, math.MaxUint16))
	b = le.AppendUint16(le.AppendUint16(b, small), small)
	b = le.AppendUint32(b, uint32(min(length, math.MaxUint32)))
	b = le.AppendUint32(b, uint32(min(offset, math.MaxUint32)))
	b = le.AppendUint16(b, uint16(len(comment)))
	return append(b, comment...)
}
