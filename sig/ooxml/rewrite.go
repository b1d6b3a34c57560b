// SPDX-License-Identifier: Apache-2.0

package ooxml

import (
	"bytes"
	"cmp"
	"compress/flate"
	"hash/crc32"
	"math"
	"slices"
	"sync"

	"tamga/sig"
)

// change is new content of the entry with that name. If there is none, the entry is added
// after the last one.
type change struct {
	Name    string `json:"name"`
	Content []byte `json:"content"`
}

// rewrite lays out the archive with changes. Unchanged entries are sections of the
// document (header, content and descriptor). Gaps are left out.
func (a *archive) rewrite(changes []change) (*sig.Assembly, error) {
	fresh := make(map[*entry]*packed, len(changes))
	var added []*packed
	for _, c := range changes {
		p, err := pack(c)
		if err != nil {
			return nil, err
		}
		if e := a.find(c.Name); e != nil {
			fresh[e] = p
		} else {
			added = append(added, p)
		}
	}
	var parts []sig.Part
	var at int64                   // how much of the result is laid out
	from, to := int64(0), int64(0) // a section not yet in parts
	offsets := make(map[*entry]int64, len(a.entries))
	flush := func() {
		if to > from {
			parts = append(parts, sig.Section(a.doc, from, to-from))
		}
	}
	put := func(p *packed) {
		flush()
		from, to = 0, 0
		p.offset = at
		header := p.local()
		parts = append(parts, sig.Bytes(header), sig.Bytes(p.content))
		at += int64(len(header) + len(p.content))
	}
	sorted := slices.Clone(a.entries)
	slices.SortFunc(sorted, func(x, y *entry) int { return cmp.Compare(x.offset, y.offset) })
	for _, e := range sorted {
		if p := fresh[e]; p != nil {
			put(p)
			continue
		}
		if e.offset != to {
			flush()
			from, to = e.offset, e.offset
		}
		offsets[e] = at
		at += e.end - e.offset
		to = e.end
	}
	for _, p := range added {
		put(p)
	}
	flush()
	var directory []byte
	for _, e := range a.entries {
		if p := fresh[e]; p != nil {
			directory = append(directory, p.central()...)
		} else {
			directory = append(directory, e.central(offsets[e])...)
		}
	}
	for _, p := range added {
		directory = append(directory, p.central()...)
	}
	end := endOf(len(a.entries)+len(added), at, int64(len(directory)), a.comment)
	return sig.Parts(append(parts, sig.Bytes(directory), sig.Bytes(end))...), nil
}

// find returns the entry with exactly that name, or nil.
func (a *archive) find(name string) *entry {
	for _, e := range a.entries {
		if e.name == name {
			return e
		}
	}
	return nil
}

// central returns the record of an unchanged entry that has moved to offset.
func (e *entry) central(offset int64) []byte {
	b := slices.Clone(e.header)
	var zip64 []byte
	// The fields of Zip64 are in this order, and only those that the small record leaves
	// to them are present (APPNOTE 4.5.3).
	for _, f := range []struct {
		at    int
		value int64
	}{{24, e.size}, {20, e.compressed}, {42, offset}} {
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
	return slices.Concat(b, []byte(e.name), extra, e.tail)
}

// packed is a new entry.
type packed struct {
	name    string
	method  uint16
	crc     uint32
	size    int
	content []byte // compressed
	offset  int64
}

var deflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil { // impossible: the level exists
		panic("ooxml: " + err.Error())
	}
	return w
}}

// storedSize is the largest content in bytes that is not compressed. The tables that Deflate
// makes for a small part take more time than its signature, and compression saves a few
// kilobytes at most.
const storedSize = 8 << 10

// pack compresses new content, unless it is small or that makes it longer.
func pack(c change) (*packed, error) {
	p := &packed{name: c.Name, crc: crc32.ChecksumIEEE(c.Content), size: len(c.Content), content: c.Content}
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
		p.method, p.content = methodDeflate, b.Bytes()
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
	for _, v := range []uint32{p.crc, uint32(len(p.content)), uint32(p.size)} {
		b = le.AppendUint32(b, v)
	}
	b = le.AppendUint16(b, uint16(len(p.name)))
	return le.AppendUint16(b, uint16(extra))
}

// local returns the header before the content.
func (p *packed) local() []byte {
	return slices.Concat(le.AppendUint32(nil, sigLocal), p.fields(0), []byte(p.name))
}

func (p *packed) central() []byte {
	var extra []byte
	if p.offset >= math.MaxUint32 {
		extra = le.AppendUint16(le.AppendUint16(nil, extraZip64), 8)
		extra = le.AppendUint64(extra, uint64(p.offset))
	}
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
