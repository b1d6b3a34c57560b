// SPDX-License-Identifier: Apache-2.0

package ooxml

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"tamga/sig"
	"tamga/sig/budget"
)

// archive is a ZIP file as its central directory describes it (APPNOTE 6.3.3, which OPC
// refers to). archive/zip is not enough: it does not report where an entry ends, does not
// compare local headers with the directory, and does not detect overlapping entries.
type archive struct {
	budget *budget.Budget // of the document

	doc  sig.Document
	size int64
	// entries are in the order of the central directory, directory entries included.
	entries []*entry
	// directory is the offset of the central directory. All entries end before it.
	directory int64
	comment   []byte
	// raw is the central directory as read.
	raw []byte
	// gaps are the byte ranges before the directory that belong to no entry.
	gaps []gap
}

// entry is one file in an archive.
type entry struct {
	name string
	key  string // key of the part, see func key
	// header is the record of the central directory without name, extra fields and
	// comment. extra is the extra fields without that of Zip64, tail is the comment.
	header      []byte
	extra, tail []byte

	flags, method    uint16
	crc              uint32
	compressed, size int64
	offset           int64 // of the local header
	data             int64 // of the first byte of content
	end              int64 // after content and data descriptor
}

// Cost of an entry: bytes of memory in addition to its record, and steps to read it.
const (
	entrySize    = 512
	stepsOfEntry = 200
)

type gap struct {
	offset, length int64
	entry          bool // whether it begins like an entry
}

func (e *entry) isDirectory() bool { return e.name[len(e.name)-1] == '/' }

// Signatures, sizes and flags of ZIP.
const (
	sigLocal      = 0x04034b50
	sigCentral    = 0x02014b50
	sigEnd        = 0x06054b50
	sigEnd64      = 0x06064b50
	sigLocator64  = 0x07064b50
	sigDescriptor = 0x08074b50

	lenLocal     = 30
	lenCentral   = 46
	lenEnd       = 22
	lenEnd64     = 56
	lenLocator64 = 20

	flagEncrypted  = 1 << 0
	flagDescriptor = 1 << 3
	flagStrong     = 1 << 6
	flagUTF8       = 1 << 11
	flagMasked     = 1 << 13

	methodStore   = 0
	methodDeflate = 8

	extraZip64   = 1
	lenZip64Most = 4 + 3*8
)

var le = binary.LittleEndian

// damaged returns the error of an archive that is broken or ambiguous.
func damaged(format string, args ...any) error {
	return unfit(nil, "the archive is damaged or ambiguous: %s", fmt.Sprintf(format, args...))
}

// readAt fills p from the document. The caller must check the range.
func (a *archive) readAt(p []byte, offset int64) error {
	n, err := a.doc.ReadAt(p, offset)
	if n == len(p) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return readError(err)
}

// openArchive reads the central directory of a document and checks every local header
// against it.
func openArchive(b *budget.Budget, doc sig.Document) (*archive, error) {
	a := &archive{budget: b, doc: doc, size: doc.Size()}
	count, size, err := a.findDirectory()
	if err != nil {
		return nil, err
	}
	// The directory, and the entries with their slots in tables.
	if err := errors.Join(b.Hold(size+entrySize*count), b.Spend(size+stepsOfEntry*count)); err != nil {
		return nil, err
	}
	a.raw = make([]byte, size)
	if err := a.readAt(a.raw, a.directory); err != nil {
		return nil, err
	}
	if err := a.readDirectory(count); err != nil {
		return nil, err
	}
	for _, e := range a.entries {
		if err := a.readLocal(e); err != nil {
			return nil, err
		}
	}
	return a, a.layout()
}

// findDirectory reads the records at the end of the archive. It returns the number of
// entries of the central directory and its size in bytes.
func (a *archive) findDirectory() (count, size int64, err error) {
	// Most archives have no comment, so their end is in the last few bytes.
	const mark, few, most = "PK\x05\x06", 1 << 10, lenLocator64 + lenEnd + math.MaxUint16
	var tail []byte
	at := -1
	for _, n := range []int64{few, most} {
		tail = make([]byte, min(a.size, n))
		if err := a.readAt(tail, a.size-int64(len(tail))); err != nil {
			return 0, 0, err
		}
		if at = bytes.LastIndex(tail, []byte(mark)); at >= lenLocator64 {
			break
		}
	}
	if at < 0 || len(tail)-at < lenEnd {
		return 0, 0, damaged("its end is missing; the document may have been cut off")
	}
	end := tail[at:]
	endAt := a.size - int64(len(end))
	// This is the last end record, so no program finds another one in the comment. A
	// stray byte after it is common and belongs to nothing.
	n := lenEnd + int(le.Uint16(end[20:]))
	if n > len(end) {
		return 0, 0, damaged("its comment is cut off")
	}
	a.comment = end[lenEnd:n]
	if n < len(end) {
		a.gaps = append(a.gaps, gap{offset: endAt + int64(n), length: int64(len(end) - n)})
	}
	disks := le.Uint16(end[4:]) != 0 || le.Uint16(end[6:]) != 0
	counts := [2]uint64{uint64(le.Uint16(end[8:])), uint64(le.Uint16(end[10:]))}
	length, offset := uint64(le.Uint32(end[12:])), uint64(le.Uint32(end[16:]))
	large := counts[0] == math.MaxUint16 || counts[1] == math.MaxUint16 || length == math.MaxUint32 || offset == math.MaxUint32
	directoryEnd := endAt
	if at >= lenLocator64 && le.Uint32(tail[at-lenLocator64:]) == sigLocator64 {
		locator := tail[at-lenLocator64 : at]
		end64At := int64(le.Uint64(locator[8:]))
		if le.Uint32(locator[4:]) != 0 || le.Uint32(locator[16:]) > 1 {
			disks = true
		}
		if end64At < 0 || end64At > endAt-lenLocator64-lenEnd64 {
			return 0, 0, damaged("its Zip64 locator points outside")
		}
		end64 := make([]byte, lenEnd64)
		if err := a.readAt(end64, end64At); err != nil {
			return 0, 0, err
		}
		if le.Uint32(end64) != sigEnd64 || end64At+12+int64(min(le.Uint64(end64[4:]), 1<<40)) != endAt-lenLocator64 {
			return 0, 0, damaged("its Zip64 locator points at something else")
		}
		if le.Uint32(end64[16:]) != 0 || le.Uint32(end64[20:]) != 0 {
			disks = true
		}
		counts64 := [2]uint64{le.Uint64(end64[24:]), le.Uint64(end64[32:])}
		length64, offset64 := le.Uint64(end64[40:]), le.Uint64(end64[48:])
		// A value that fits into the small record must be the same there, or be left to
		// the large record.
		for _, pair := range [][3]uint64{
			{counts[0], counts64[0], math.MaxUint16}, {counts[1], counts64[1], math.MaxUint16},
			{length, length64, math.MaxUint32}, {offset, offset64, math.MaxUint32},
		} {
			if pair[0] != pair[1] && pair[0] != pair[2] {
				return 0, 0, damaged("its end records contradict each other")
			}
		}
		counts, length, offset, directoryEnd = counts64, length64, offset64, end64At
	} else if large {
		// Exactly 65535 entries without Zip64 are possible, but exceed the limit.
		return 0, 0, damaged("its end record refers to a Zip64 record, which is missing")
	}
	if disks {
		return 0, 0, damaged("it is one of several volumes")
	}
	if counts[0] != counts[1] {
		return 0, 0, damaged("its end record has two different numbers of entries")
	}
	if counts[0] > maxEntries {
		return 0, 0, unfit(nil, "has %d entries; at most %d are accepted", counts[0], maxEntries)
	}
	if length > maxDirectory {
		return 0, 0, unfit(nil, "has a directory of %d bytes; at most %d are accepted", length, maxDirectory)
	}
	if offset > math.MaxInt64/2 || int64(offset+length) != directoryEnd {
		return 0, 0, damaged("its directory of %d bytes at %d does not end where the archive's end begins, at %d", length, offset, directoryEnd)
	}
	a.directory = int64(offset)
	return int64(counts[0]), int64(length), nil
}

// readDirectory reads the records of the central directory.
func (a *archive) readDirectory(count int64) error {
	rest := a.raw
	var total int64
	for range count {
		if len(rest) < lenCentral || le.Uint32(rest) != sigCentral {
			return damaged("its directory has fewer entries than the %d announced", count)
		}
		nameLen, extraLen, commentLen := int(le.Uint16(rest[28:])), int(le.Uint16(rest[30:])), int(le.Uint16(rest[32:]))
		length := lenCentral + nameLen + extraLen + commentLen
		if len(rest) < length {
			return damaged("its directory is cut off")
		}
		e := &entry{
			name:       string(rest[lenCentral : lenCentral+nameLen]),
			key:        key(string(rest[lenCentral : lenCentral+nameLen])),
			header:     rest[:lenCentral],
			tail:       rest[length-commentLen : length],
			flags:      le.Uint16(rest[8:]),
			method:     le.Uint16(rest[10:]),
			crc:        le.Uint32(rest[16:]),
			compressed: int64(le.Uint32(rest[20:])),
			size:       int64(le.Uint32(rest[24:])),
			offset:     int64(le.Uint32(rest[42:])),
		}
		if le.Uint16(rest[34:]) != 0 && le.Uint16(rest[34:]) != math.MaxUint16 {
			return damaged("the entry %s is on another volume", quote(e.name))
		}
		var err error
		if e.extra, err = e.readExtra(rest[lenCentral+nameLen : length-commentLen]); err != nil {
			return err
		}
		rest = rest[length:]
		if err := e.check(); err != nil {
			return err
		}
		if total += e.size; total > max(ratioFloor, maxRatio*a.size) {
			return unfit(nil, "would decompress to more than %d bytes, from %d: this is a decompression bomb", total-1, a.size)
		}
		a.entries = append(a.entries, e)
	}
	if len(rest) != 0 {
		return damaged("its directory has more entries than the %d announced", count)
	}
	return nil
}

// readExtra takes the sizes and the offset from the extra field of Zip64 and returns the
// other fields.
func (e *entry) readExtra(fields []byte) (others []byte, err error) {
	seen := false
	for at := fields; len(at) > 0; {
		if len(at) < 4 {
			// Some programs align with a few zero bytes.
			return append(others, at...), e.needsZip64(seen)
		}
		id, n := le.Uint16(at), int(le.Uint16(at[2:]))
		if len(at) < 4+n {
			return nil, damaged("the extra fields of the entry %s are cut off", quote(e.name))
		}
		field := at[4 : 4+n]
		if id != extraZip64 {
			others = append(others, at[:4+n]...)
			at = at[4+n:]
			continue
		}
		if seen {
			return nil, damaged("the entry %s has its sizes twice", quote(e.name))
		}
		seen = true
		at = at[4+n:]
		for _, v := range []*int64{&e.size, &e.compressed, &e.offset} {
			if *v != math.MaxUint32 {
				continue
			}
			if len(field) < 8 {
				return nil, damaged("the Zip64 field of the entry %s is too short", quote(e.name))
			}
			u := le.Uint64(field)
			if u > math.MaxInt64/4 {
				return nil, damaged("the entry %s has an impossible size or offset", quote(e.name))
			}
			*v, field = int64(u), field[8:]
		}
	}
	return others, e.needsZip64(seen)
}

// needsZip64 returns an error if sizes are left to a Zip64 field that was not seen.
func (e *entry) needsZip64(seen bool) error {
	if !seen && (e.size == math.MaxUint32 || e.compressed == math.MaxUint32 || e.offset == math.MaxUint32) {
		return damaged("the entry %s leaves its sizes to a Zip64 field that it does not have", quote(e.name))
	}
	return nil
}

// check checks the directory record of one entry.
func (e *entry) check() error {
	if err := checkEntryName(e.name); err != nil {
		return err
	}
	if e.flags&(flagEncrypted|flagStrong|flagMasked) != 0 {
		return unfit(nil, "the entry %s is encrypted; an Office document without a password expected", quote(e.name))
	}
	if e.method != methodStore && e.method != methodDeflate {
		return unfit(nil, "the entry %s is compressed by method %d; Deflate (8) or none (0) expected", quote(e.name), e.method)
	}
	if e.method == methodStore && e.compressed != e.size {
		return damaged("the entry %s is not compressed but has two different sizes", quote(e.name))
	}
	if len(e.extra) > math.MaxUint16-lenZip64Most {
		return damaged("the extra fields of the entry %s are longer than any program writes", quote(e.name))
	}
	if e.isDirectory() && e.size != 0 {
		return damaged("the entry %s is a directory but has content", quote(e.name))
	}
	return nil
}

// readLocal reads the local header of an entry, checks it against the directory, and
// finds the end of the entry.
func (a *archive) readLocal(e *entry) error {
	if e.offset > a.directory-lenLocal {
		return damaged("the entry %s begins outside the archive", quote(e.name))
	}
	// In most archives the extra field is short, and one read is enough.
	const guess = 64
	b := make([]byte, min(lenLocal+int64(len(e.name))+guess, a.directory-e.offset))
	if err := a.readAt(b, e.offset); err != nil {
		return err
	}
	contradicts := func(what string) error {
		return damaged("the entry %s has a different %s in the directory than in its local header", quote(e.name), what)
	}
	if le.Uint32(b) != sigLocal {
		return damaged("there is no local header where the entry %s should begin", quote(e.name))
	}
	nameLen, extraLen := int(le.Uint16(b[26:])), int(le.Uint16(b[28:]))
	if nameLen != len(e.name) || len(b) < lenLocal+nameLen || string(b[lenLocal:lenLocal+nameLen]) != e.name {
		return contradicts("name")
	}
	flags := le.Uint16(b[6:])
	switch {
	case le.Uint16(b[8:]) != e.method:
		return contradicts("compression method")
	case (flags^e.flags)&(flagEncrypted|flagDescriptor) != 0:
		return contradicts("set of flags")
	}
	e.data = e.offset + lenLocal + int64(nameLen) + int64(extraLen)
	if e.data > a.directory || e.compressed > a.directory-e.data {
		return damaged("the content of the entry %s ends outside the archive", quote(e.name))
	}
	if need := lenLocal + nameLen + extraLen; need > len(b) {
		b = make([]byte, need)
		if err := a.readAt(b, e.offset); err != nil {
			return err
		}
	}
	local := entry{
		name: e.name, crc: le.Uint32(b[14:]),
		compressed: int64(le.Uint32(b[18:])), size: int64(le.Uint32(b[22:])),
	}
	later := flags&flagDescriptor != 0
	if _, err := local.readExtra(b[lenLocal+nameLen : lenLocal+nameLen+extraLen]); err != nil && !later {
		return err
	}
	same := local.crc == e.crc && local.compressed == e.compressed && local.size == e.size
	if !same && !(later && local.crc == 0 || later && local.size == 0) {
		return contradicts("size or checksum")
	}
	e.end = e.data + e.compressed
	if later {
		return a.readDescriptor(e)
	}
	return nil
}

// readDescriptor finds the data descriptor after the content of an entry. It has four
// forms: with or without a signature, with sizes of four or eight bytes. Some programs
// set the flag and write no descriptor.
func (a *archive) readDescriptor(e *entry) error {
	b := make([]byte, min(24, a.directory-e.end))
	if err := a.readAt(b, e.end); err != nil {
		return err
	}
	crc := le.AppendUint32(nil, e.crc)
	small := le.AppendUint32(le.AppendUint32(slices.Clone(crc), uint32(e.compressed)), uint32(e.size))
	large := le.AppendUint64(le.AppendUint64(slices.Clone(crc), uint64(e.compressed)), uint64(e.size))
	mark := le.AppendUint32(nil, sigDescriptor)
	for _, form := range [][]byte{slices.Concat(mark, large), slices.Concat(mark, small), large, small} {
		if bytes.HasPrefix(b, form) {
			e.end += int64(len(form))
			return nil
		}
	}
	return nil
}

// layout checks that entries do not overlap and finds the gaps between them.
func (a *archive) layout() error {
	sorted := slices.Clone(a.entries)
	slices.SortFunc(sorted, func(x, y *entry) int { return cmp.Compare(x.offset, y.offset) })
	at := int64(0)
	for _, e := range append(sorted, &entry{name: "the directory", offset: a.directory, end: a.directory}) {
		if e.offset < at {
			return damaged("the entry %s overlaps the one before it", quote(e.name))
		}
		if e.offset > at {
			a.gaps = append(a.gaps, gap{offset: at, length: e.offset - at})
		}
		at = e.end
	}
	for i := range a.gaps {
		g := &a.gaps[i]
		b := make([]byte, min(4, g.length))
		if err := a.readAt(b, g.offset); err != nil {
			return err
		}
		g.entry = string(b) == magicZIP
	}
	return nil
}
