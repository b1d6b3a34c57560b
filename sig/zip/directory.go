// SPDX-License-Identifier: Apache-2.0

package zip

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Signatures of records, their lengths without variable fields, and flags (4.3.7 to 4.3.16, 4.4.4).
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

	extraZip64   = 1
	extraName    = 0x7075 // Info-ZIP Unicode Path (4.6.9)
	lenZip64Most = 4 + 3*8
)

var le = binary.LittleEndian

// findDirectory reads the records at the end of the archive (4.3.14 to 4.3.16). It returns the
// number of entries of the central directory and its size in bytes.
func (a *Archive) findDirectory() (count, size int64, err error) {
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
		return 0, 0, damaged("", "its end is missing; the document may have been cut off")
	}
	end := tail[at:]
	endAt := a.size - int64(len(end))
	// This is the last end record, so no program finds another one in the comment. A
	// stray byte after it is common and belongs to nothing.
	n := lenEnd + int(le.Uint16(end[20:]))
	if n > len(end) {
		return 0, 0, damaged("", "its comment is cut off")
	}
	a.comment = end[lenEnd:n]
	if n < len(end) {
		a.Gaps = append(a.Gaps, Gap{Offset: endAt + int64(n), Length: int64(len(end) - n)})
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
			return 0, 0, damaged("", "its Zip64 locator points outside")
		}
		end64 := make([]byte, lenEnd64)
		if err := a.readAt(end64, end64At); err != nil {
			return 0, 0, err
		}
		if le.Uint32(end64) != sigEnd64 || end64At+12+int64(min(le.Uint64(end64[4:]), 1<<40)) != endAt-lenLocator64 {
			return 0, 0, damaged("", "its Zip64 locator points at something else")
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
				return 0, 0, damaged("", "its end records contradict each other")
			}
		}
		counts, length, offset, directoryEnd = counts64, length64, offset64, end64At
	} else if large {
		// An archive of exactly 65535 entries needs no Zip64 record, but programs look for one.
		return 0, 0, damaged("", "its end record refers to a Zip64 record, which is missing")
	}
	if disks {
		return 0, 0, damaged("", "it is one of several volumes")
	}
	if counts[0] != counts[1] {
		return 0, 0, damaged("", "its end record has two different numbers of entries")
	}
	if counts[0] > MaxEntries {
		return 0, 0, refused(TooLarge, "", "has %d entries; at most %d are accepted", counts[0], MaxEntries)
	}
	if length > MaxDirectory {
		return 0, 0, refused(TooLarge, "", "has a directory of %d bytes; at most %d are accepted", length, MaxDirectory)
	}
	if offset > math.MaxInt64/2 || int64(offset+length) != directoryEnd {
		return 0, 0, damaged("", "its directory of %d bytes at %d does not end where the archive's end begins, at %d", length, offset, directoryEnd)
	}
	a.directory = int64(offset)
	return int64(counts[0]), int64(length), nil
}

// readDirectory reads the records of the central directory (4.3.12).
func (a *Archive) readDirectory(count int64) error {
	rest := a.Directory
	// Each record takes more than lenCentral bytes, so no append moves an entry.
	a.Entries = make([]Entry, 0, min(count, int64(len(rest)/lenCentral)))
	var total int64
	for range count {
		if len(rest) < lenCentral || le.Uint32(rest) != sigCentral {
			return damaged("", "its directory has fewer entries than the %d announced", count)
		}
		nameLen, extraLen, commentLen := int(le.Uint16(rest[28:])), int(le.Uint16(rest[30:])), int(le.Uint16(rest[32:]))
		length := lenCentral + nameLen + extraLen + commentLen
		if len(rest) < length {
			return damaged("", "its directory is cut off")
		}
		a.Entries = append(a.Entries, Entry{
			Name:       string(rest[lenCentral : lenCentral+nameLen]),
			Method:     le.Uint16(rest[10:]),
			CRC32:      le.Uint32(rest[16:]),
			Compressed: int64(le.Uint32(rest[20:])),
			Size:       int64(le.Uint32(rest[24:])),
			Offset:     int64(le.Uint32(rest[42:])),
			flags:      le.Uint16(rest[8:]),
			header:     rest[:lenCentral],
			tail:       rest[length-commentLen : length],
		})
		e := &a.Entries[len(a.Entries)-1]
		if le.Uint16(rest[34:]) != 0 && le.Uint16(rest[34:]) != math.MaxUint16 {
			return damaged(e.Name, "the entry %s is on another volume", quote(e.Name))
		}
		var err error
		if e.extra, err = e.readExtra(rest[lenCentral+nameLen : length-commentLen]); err != nil {
			return err
		}
		rest = rest[length:]
		if err := e.check(); err != nil {
			return err
		}
		if total += e.Size; total > max(RatioFree, MaxRatio*a.size) {
			return refused(TooLarge, "", "would decompress to more than %d bytes, from %d: this is a decompression bomb", total-1, a.size)
		}
	}
	if len(rest) != 0 {
		return damaged("", "its directory has more entries than the %d announced", count)
	}
	return nil
}

// readExtra takes the sizes and the offset from the extra field of Zip64 (4.5.3) and returns the
// other fields.
func (e *Entry) readExtra(fields []byte) (others []byte, err error) {
	seen := false
	others = fields
	for at := fields; len(at) >= 4; { // some programs align with a few zero bytes
		id, n := le.Uint16(at), int(le.Uint16(at[2:]))
		if len(at) < 4+n {
			return nil, damaged(e.Name, "the extra fields of the entry %s are cut off", quote(e.Name))
		}
		field, from := at[4:4+n], len(fields)-len(at)
		at = at[4+n:]
		if id == extraName && !e.hasName(field) {
			return nil, damaged(e.Name, "the entry %s has another name in its extra field of Unicode", quote(e.Name))
		}
		if id != extraZip64 {
			continue
		}
		if seen {
			return nil, damaged(e.Name, "the entry %s has its sizes twice", quote(e.Name))
		}
		seen = true
		others = slices.Concat(fields[:from], at)
		for _, v := range []*int64{&e.Size, &e.Compressed, &e.Offset} {
			if *v != math.MaxUint32 {
				continue
			}
			if len(field) < 8 {
				return nil, damaged(e.Name, "the Zip64 field of the entry %s is too short", quote(e.Name))
			}
			u := le.Uint64(field)
			if u > math.MaxInt64/4 {
				return nil, damaged(e.Name, "the entry %s has an impossible size or offset", quote(e.Name))
			}
			*v, field = int64(u), field[8:]
		}
	}
	return others, e.needsZip64(seen)
}

// hasName reports whether a Unicode Path field has the name of the entry: a version, the checksum of the other name, the
// name. Programs that know the field use its name.
func (e *Entry) hasName(field []byte) bool { return len(field) >= 5 && string(field[5:]) == e.Name }

// needsZip64 returns an error if sizes are left to a Zip64 field that was not seen.
func (e *Entry) needsZip64(seen bool) error {
	if !seen && (e.Size == math.MaxUint32 || e.Compressed == math.MaxUint32 || e.Offset == math.MaxUint32) {
		return damaged(e.Name, "the entry %s leaves its sizes to a Zip64 field that it does not have", quote(e.Name))
	}
	return nil
}

// check checks the directory record of one entry.
func (e *Entry) check() error {
	if err := checkName(e.Name); err != nil {
		return err
	}
	if e.flags&(flagEncrypted|flagStrong|flagMasked) != 0 {
		return refused(Encrypted, e.Name, "the entry %s is encrypted", quote(e.Name))
	}
	if e.Method != Store && e.Method != Deflate {
		return refused(Unsupported, e.Name, "the entry %s is compressed by method %d; Deflate (8) or none (0) expected", quote(e.Name), e.Method)
	}
	if e.Method == Store && e.Compressed != e.Size {
		return damaged(e.Name, "the entry %s is not compressed but has two different sizes", quote(e.Name))
	}
	if len(e.extra) > math.MaxUint16-lenZip64Most {
		return damaged(e.Name, "the extra fields of the entry %s are longer than any program writes", quote(e.Name))
	}
	if e.IsDirectory() && e.Size != 0 {
		return damaged(e.Name, "the entry %s is a directory but has content", quote(e.Name))
	}
	return nil
}

// readLocal reads the local header of an entry (4.3.7), compares it with the directory, and finds the
// end of the entry. It reads into scratch, which may grow.
func (a *Archive) readLocal(e *Entry, scratch *[]byte) error {
	if e.Offset > a.directory-lenLocal {
		return damaged(e.Name, "the entry %s begins outside the archive", quote(e.Name))
	}
	// In most archives the extra field is short, and one read is enough.
	const guess = 64
	b := grown(scratch, min(lenLocal+int64(len(e.Name))+guess, a.directory-e.Offset))
	if err := a.readAt(b, e.Offset); err != nil {
		return err
	}
	contradicts := func(what string) error {
		return damaged(e.Name, "the entry %s has a different %s in the directory than in its local header", quote(e.Name), what)
	}
	if le.Uint32(b) != sigLocal {
		return damaged(e.Name, "there is no local header where the entry %s should begin", quote(e.Name))
	}
	nameLen, extraLen := int(le.Uint16(b[26:])), int(le.Uint16(b[28:]))
	if nameLen != len(e.Name) || len(b) < lenLocal+nameLen || string(b[lenLocal:lenLocal+nameLen]) != e.Name {
		return contradicts("name")
	}
	flags := le.Uint16(b[6:])
	switch {
	case le.Uint16(b[8:]) != e.Method:
		return contradicts("compression method")
	case (flags^e.flags)&(flagEncrypted|flagDescriptor) != 0, (flags^e.flags)&flagUTF8 != 0 && !isASCII(e.Name):
		return contradicts("set of flags")
	}
	e.Data = e.Offset + lenLocal + int64(nameLen) + int64(extraLen)
	if e.Data > a.directory || e.Compressed > a.directory-e.Data {
		return damaged(e.Name, "the content of the entry %s ends outside the archive", quote(e.Name))
	}
	if need := lenLocal + nameLen + extraLen; need > len(b) {
		b = grown(scratch, int64(need))
		if err := a.readAt(b, e.Offset); err != nil {
			return err
		}
	}
	local := Entry{
		Name: e.Name, CRC32: le.Uint32(b[14:]),
		Compressed: int64(le.Uint32(b[18:])), Size: int64(le.Uint32(b[22:])),
	}
	later := flags&flagDescriptor != 0
	if _, err := local.readExtra(b[lenLocal+nameLen : lenLocal+nameLen+extraLen]); err != nil {
		return err
	}
	// Each value is the one of the directory, or 0 if a data descriptor has it (4.4.4, bit 3).
	for _, pair := range [][2]int64{{int64(local.CRC32), int64(e.CRC32)}, {local.Compressed, e.Compressed}, {local.Size, e.Size}} {
		if here, there := pair[0], pair[1]; here != there && !(later && here == 0) {
			return contradicts("size or checksum")
		}
	}
	e.End = e.Data + e.Compressed
	if later {
		return a.readDescriptor(e)
	}
	return nil
}

// isASCII reports whether a name is the same in all encodings that programs assume.
func isASCII(name string) bool {
	return strings.IndexFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// grown returns n bytes of scratch, which grows if it is shorter.
func grown(scratch *[]byte, n int64) []byte {
	if int64(cap(*scratch)) < n {
		*scratch = make([]byte, n)
	}
	return (*scratch)[:n]
}

// readDescriptor finds the data descriptor after the content of an entry (4.3.9). It has four
// forms: with or without a signature, with sizes of four or eight bytes. Some programs
// set the flag and write no descriptor.
func (a *Archive) readDescriptor(e *Entry) error {
	b := make([]byte, min(24, a.directory-e.End))
	if err := a.readAt(b, e.End); err != nil {
		return err
	}
	crc := le.AppendUint32(nil, e.CRC32)
	small := le.AppendUint32(le.AppendUint32(slices.Clone(crc), uint32(e.Compressed)), uint32(e.Size))
	large := le.AppendUint64(le.AppendUint64(slices.Clone(crc), uint64(e.Compressed)), uint64(e.Size))
	mark := le.AppendUint32(nil, sigDescriptor)
	for _, form := range [][]byte{slices.Concat(mark, large), slices.Concat(mark, small), large, small} {
		if bytes.HasPrefix(b, form) {
			e.End += int64(len(form))
			return nil
		}
	}
	return nil
}
