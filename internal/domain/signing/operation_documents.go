// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"errors"
	"io"
	"slices"
	"sort"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/pki/suite"
	"tamga/sig"
)

// Documents is the document store as operations use it. An unknown identifier and one of
// another user are the same fault, object_not_found.
type Documents interface {
	// Open opens a stored document of who for reading.
	Open(ctx context.Context, who audit.Principal, refID string) (Blob, document.Info, error)
	// Save stores a document made of another one durably and chooses its identifier. It
	// cannot be found before record is called, inside the transaction that records the
	// outcome of the operation. If record is not called, the document is swept as if it
	// had never existed.
	Save(ctx context.Context, who audit.Principal, d document.Description, r Result) (refID string, record func(ctx context.Context) error, err error)
}

// DocumentStore is the installation's own document store.
type DocumentStore struct{ *document.Service }

var _ Documents = DocumentStore{}

// Open implements Documents.
func (s DocumentStore) Open(ctx context.Context, who audit.Principal, refID string) (Blob, document.Info, error) {
	stored, err := s.Service.Open(ctx, who, refID)
	if err != nil {
		return nil, document.Info{}, err
	}
	return stored, stored.Info, nil
}

// Save implements Documents.
func (s DocumentStore) Save(ctx context.Context, who audit.Principal, d document.Description, r Result) (string, func(context.Context) error, error) {
	return s.Service.Save(ctx, who, d, r)
}

// noDocuments replaces a missing document store.
type noDocuments struct{}

func (noDocuments) Open(context.Context, audit.Principal, string) (Blob, document.Info, error) {
	return nil, document.Info{}, fault.New(fault.InvalidParameters, "RefId: this installation stores no documents: send them as Content")
}

func (noDocuments) Save(context.Context, audit.Principal, document.Description, Result) (string, func(context.Context) error, error) {
	return "", nil, fault.New(fault.InvalidParameters, "this installation stores no documents")
}

// digestsOf returns the digest of a stored document that the intake of this request computed, nil
// if the request has not received the document. Documents never change. Bytes that were changed in
// the storage itself are not what the caller sent, so the digest of what was received is right for
// them too: other bytes are never signed.
func digestsOf(received []document.New, i *document.Info) []suite.Digest {
	if !slices.ContainsFunc(received, func(d document.New) bool { return d.Content.Became(i) }) {
		return nil
	}
	h, ok := suite.HashByName(i.HashName)
	if !ok {
		return nil
	}
	return []suite.Digest{{Hash: h, Sum: i.Hash}}
}

// bundle is a list of documents stored as one blob: the many documents of an operation
// cost one flush to disk and one open file.
type bundle struct {
	parts []sig.Document
	ends  []int64 // end position of each document
}

// add returns the position of the document in the bundle.
func (b *bundle) add(d sig.Document) (at int64) {
	at = b.Size()
	b.parts, b.ends = append(b.parts, d), append(b.ends, at+d.Size())
	return at
}

// Size implements [sig.Document].
func (b *bundle) Size() int64 {
	if len(b.ends) == 0 {
		return 0
	}
	return b.ends[len(b.ends)-1]
}

// ReadAt implements [io.ReaderAt].
func (b *bundle) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, errors.New("signing: negative offset in a document")
	}
	i := sort.Search(len(b.ends), func(i int) bool { return b.ends[i] > off })
	for ; n < len(p) && i < len(b.parts); i++ {
		from := off + int64(n) - (b.ends[i] - b.parts[i].Size())
		want := p[n:min(int64(len(p)), int64(n)+b.parts[i].Size()-from)]
		if err := readFull(b.parts[i], want, from); err != nil {
			return n, err
		}
		n += len(want)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// section is a part of a stored document. It can be read or written any number of times.
type section struct{ *io.SectionReader }

func newSection(d io.ReaderAt, at, size int64) section {
	return section{io.NewSectionReader(d, at, size)}
}

// WriteTo implements [io.WriterTo].
func (s section) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(struct{ io.Writer }{w}, io.NewSectionReader(s.SectionReader, 0, s.Size()))
}
