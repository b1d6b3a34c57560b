// SPDX-License-Identifier: Apache-2.0

package ooxml

import (
	"context"

	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/zip"
)

// archive is a package as a ZIP archive: what package zip reads, with the keys of parts.
type archive struct {
	zip    *zip.Archive
	budget *budget.Budget // of the document
	doc    sig.Document
	// entries are in the order of the central directory, directory entries included.
	entries []entry
}

// entry is one file in an archive.
type entry struct {
	*zip.Entry
	key string // key of the part, see func key
}

// openArchive reads the structure of a document and checks the names of its entries.
func openArchive(b *budget.Budget, doc sig.Document) (*archive, error) {
	z, err := zip.Open(b, doc)
	if err != nil {
		return nil, ofArchive(err)
	}
	a := &archive{zip: z, budget: b, doc: doc, entries: make([]entry, len(z.Entries))}
	for i := range z.Entries {
		e := &z.Entries[i]
		if err := checkPartName(e.Name); err != nil {
			return nil, err
		}
		a.entries[i] = entry{Entry: e, key: key(e.Name)}
	}
	return a, nil
}

// content returns the content of an entry of at most most bytes.
func (a *archive) content(ctx context.Context, e *zip.Entry, most int64) ([]byte, error) {
	b, err := a.zip.Content(ctx, e, most)
	return b, ofArchive(err)
}

// rewrite lays out the archive with changes. Unchanged entries are sections of the document.
func (a *archive) rewrite(changes []change) (*sig.Assembly, error) {
	all := make([]zip.Change, len(changes))
	for i, c := range changes {
		all[i] = zip.Change(c)
	}
	pieces, err := a.zip.Rewrite(all)
	if err != nil {
		return nil, ofArchive(err)
	}
	parts := make([]sig.Part, len(pieces))
	for i, p := range pieces {
		if p.Bytes != nil {
			parts[i] = sig.Bytes(p.Bytes)
		} else {
			parts[i] = sig.Section(a.doc, p.Offset, p.Length)
		}
	}
	return sig.Parts(parts...), nil
}

// change is new content of the entry with that name, as the state of a signature keeps it. If
// there is no such entry, it is added after the last one.
type change struct {
	Name    string `json:"name"`
	Content []byte `json:"content"`
}
