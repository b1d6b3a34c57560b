// SPDX-License-Identifier: Apache-2.0

// Package zip reads ZIP archives that every program reads in the same way, within a budget. Signature
// formats whose documents are archives use it: Office documents, and containers such as ASiC
// (ETSI EN 319 162-1).
//
// Begin with Open, which reads the whole structure of an archive and no content. Archive.Copy and
// Archive.Content read the content of one entry. Archive.Rewrite lays out the archive with entries
// replaced or added, and Layout a new archive of stored entries. The package does not decrypt, or interpret names: letter
// case, percent-encoding and the meaning of an entry belong to the format.
//
// The references are clauses of APPNOTE.TXT, version 6.3.3 and later ("ZIP File Format
// Specification", which ISO/IEC 21320-1 and the formats refer to).
//
// # What is refused
//
// A signature is of use only if all programs see the same content, so Open refuses archives that two
// programs could read differently:
//
//   - two entries with the same name, except directories;
//   - names that lead out of the archive, or that programs change: empty, not UTF-8, with a leading
//     slash, a backslash, a control character, an empty segment, "." or "..";
//   - entries that overlap each other or the central directory;
//   - a local header that differs from the central directory in name, method, flags, sizes or checksum, and a name
//     in an extra field that differs from the name of the entry;
//   - end records that contradict each other, and archives in several volumes;
//   - encryption, and compression methods other than Deflate and none.
//
// Content is read later, so Copy and Reader refuse what Open cannot see: content of another length or checksum, and
// bytes behind the end of compressed content.
//
// Bytes that belong to no entry are not refused but listed (Archive.Gaps), because they are common.
// The format decides what they mean for a signature.
//
// archive/zip is not enough for this: it does not report where an entry ends, does not compare local
// headers with the directory, and does not detect entries that overlap.
//
// # What it costs
//
// Open charges its budget before it allocates: the bytes of the central directory, and for each entry
// 512 bytes of memory, which are enough for the entry and for a slot in a table of the caller.
// Copy charges no memory, a step for each byte that Deflate adds and a step for eight bytes of
// content. Open refuses an archive whose entries together announce more than MaxRatio times its size,
// before anything is decompressed.
//
// # Order of entries
//
// Entries are in the order of the central directory; their content may be in another order.
// A format that requires a first entry, such as "mimetype" of ASiC (EN 319 162-1, A.1), checks
// Offset, Method and Data of Archive.Entries[0]: an entry that is at the beginning, is stored and has
// no extra field has the Offset 0, the Method Store and its content at 30 bytes more than the length of its name.
package zip

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"

	"tamga/sig/budget"
)

// Limits of an archive. They bound the cost of a hostile one. Real archives are far below them.
const (
	// MaxEntries is the largest number of entries, directories included.
	MaxEntries = 1 << 16
	// MaxDirectory is the largest central directory, in bytes.
	MaxDirectory = 16 << 20
	// MaxRatio limits the size of all entries together, as a multiple of the size of the
	// archive. Deflate reaches a ratio of 1032, Office documents 20, sparse sheets 50.
	MaxRatio = 100
	// RatioFree is the size of all entries together, in bytes, up to which MaxRatio does not
	// count.
	RatioFree = 128 << 20
)

// Cost of an entry: bytes of memory in addition to its record, and steps to read it.
const (
	entrySize    = 512
	stepsOfEntry = 200
)

// Source is the bytes of an archive. *bytes.Reader and the documents of package sig are Sources.
type Source interface {
	io.ReaderAt
	// Size is the length in bytes and does not change.
	Size() int64
}

// Archive is an archive whose structure has been checked. Its fields must not be changed. Its methods
// may be called from several goroutines at once if ReadAt of the Source may.
type Archive struct {
	// Entries are in the order of the central directory (4.3.12), directories included.
	Entries []Entry
	// Directory is the central directory as read. It has the names, sizes and checksums of all
	// entries, so its hash distinguishes archives without reading their content.
	Directory []byte
	// Gaps are the byte ranges that belong to no entry: those after the end of the archive, then those
	// before the central directory, in their order.
	Gaps []Gap

	budget    *budget.Budget
	source    Source
	size      int64  // of source
	directory int64  // offset of the central directory. All entries end before it
	comment   []byte // of the archive
}

// Entry is one file in an archive.
type Entry struct {
	// Name is the name as the archive has it, byte for byte (4.4.17). It is UTF-8, whether or
	// not the entry says so (4.4.4, bit 11). That of a directory ends in a slash.
	Name string
	// Method is the compression method (4.4.5): Store or Deflate.
	Method uint16
	// CRC32 is the checksum of the content that the directory announces (4.4.7). Archive.Copy
	// compares it with the content.
	CRC32 uint32
	// Compressed and Size are the lengths of the content in the archive and of the content
	// itself, in bytes (4.4.8 and 4.4.9, or 4.5.3 with Zip64).
	Compressed, Size int64
	// Offset is where the local header begins (4.4.16), Data where the content begins, and End
	// where the next entry may begin, after content and data descriptor. They are bytes from
	// the beginning of the archive.
	Offset, Data, End int64

	flags uint16
	// header is the record of the central directory without name, extra fields and comment.
	// extra is the extra fields without that of Zip64, tail is the comment.
	header, extra, tail []byte
}

// Compression methods (4.4.5).
const (
	Store   = 0
	Deflate = 8
)

// IsDirectory reports whether the entry is a directory: its name ends in a slash (4.3.8). A
// directory has no content.
func (e *Entry) IsDirectory() bool { return e.Name[len(e.Name)-1] == '/' }

// Gap is a range of bytes of an archive that belongs to no entry.
type Gap struct {
	Offset, Length int64 // in bytes
	// Entry reports that the range has the mark of a local header in it: programs that read an archive
	// from its beginning, or search for entries, see one that the directory does not have.
	Entry bool
}

// Open reads the central directory of an archive and compares every local header with it. It reads
// no content. Its cost is charged to b, which may be nil.
//
// Errors: *Error for an archive that is refused, those of b, and those of src, wrapped.
func Open(b *budget.Budget, src Source) (*Archive, error) {
	a := &Archive{budget: b, source: src, size: src.Size()}
	count, size, err := a.findDirectory()
	if err != nil {
		return nil, err
	}
	// The directory, and the entries with their slots in tables.
	if err := errors.Join(b.Hold(size+entrySize*count), b.Spend(size+stepsOfEntry*count)); err != nil {
		return nil, err
	}
	a.Directory = make([]byte, size)
	if err := a.readAt(a.Directory, a.directory); err != nil {
		return nil, err
	}
	if err := a.readDirectory(count); err != nil {
		return nil, err
	}
	scratch := make([]byte, 256)
	for i := range a.Entries {
		if err := a.readLocal(&a.Entries[i], &scratch); err != nil {
			return nil, err
		}
	}
	return a, a.layout()
}

// Find returns the entry with exactly that name, or nil.
func (a *Archive) Find(name string) *Entry {
	for i := range a.Entries {
		if e := &a.Entries[i]; e.Name == name {
			return e
		}
	}
	return nil
}

// readAt fills p from the source. The caller must check the range.
func (a *Archive) readAt(p []byte, offset int64) error {
	n, err := a.source.ReadAt(p, offset)
	if n == len(p) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return readError(err)
}

// layout checks that entries do not overlap and have different names, and finds the gaps between
// them.
func (a *Archive) layout() error {
	sorted := a.byOffset()
	at := int64(0)
	place := func(name string, offset, end int64) error {
		if offset < at {
			return damaged(name, "the entry %s overlaps the one before it", quote(name))
		}
		if offset > at {
			a.Gaps = append(a.Gaps, Gap{Offset: at, Length: offset - at})
		}
		at = end
		return nil
	}
	for _, e := range sorted {
		if err := place(e.Name, e.Offset, e.End); err != nil {
			return err
		}
	}
	if err := place("the directory", a.directory, a.directory); err != nil {
		return err
	}
	for i := range a.Gaps {
		g := &a.Gaps[i]
		var err error
		if g.Entry, err = a.hasLocal(g); err != nil {
			return err
		}
	}
	slices.SortFunc(sorted, func(x, y *Entry) int { return cmp.Compare(x.Name, y.Name) })
	for i, e := range sorted {
		if i > 0 && e.Name == sorted[i-1].Name && !e.IsDirectory() {
			return damaged(e.Name, "the entries %s and %s have equivalent names", quote(e.Name), quote(e.Name))
		}
	}
	return nil
}

// hasLocal reports whether a gap has the mark of a local header.
func (a *Archive) hasLocal(g *Gap) (bool, error) {
	if err := a.budget.Spend(g.Length / 8); err != nil {
		return false, err
	}
	mark := le.AppendUint32(nil, sigLocal)
	b := make([]byte, min(g.Length, 64<<10))
	for at := int64(0); at < g.Length; at += int64(len(b) - len(mark) + 1) {
		b = b[:min(int64(len(b)), g.Length-at)]
		if err := a.readAt(b, g.Offset+at); err != nil {
			return false, err
		}
		if bytes.Contains(b, mark) {
			return true, nil
		}
		if at+int64(len(b)) == g.Length {
			break
		}
	}
	return false, nil
}

// byOffset returns the entries in the order of their content.
func (a *Archive) byOffset() []*Entry {
	sorted := make([]*Entry, len(a.Entries))
	for i := range sorted {
		sorted[i] = &a.Entries[i]
	}
	slices.SortFunc(sorted, func(x, y *Entry) int { return cmp.Compare(x.Offset, y.Offset) })
	return sorted
}
