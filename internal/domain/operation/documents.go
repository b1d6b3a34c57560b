// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sort"
	"sync"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/pki/suite"
	"tamga/sig"
)

// Input is one document of an order: a stored document, or one sent with the request.
type Input struct {
	RefID   string       // of a stored document
	Content sig.Document // instead of RefID; nil: none
	Name    string       // file name as the client sent it; returned unchanged
	// RelatedRefID is the stored document that the message in Content or RefID is a signature of. "": none.
	RelatedRefID string
	Way          int   // index of how it is signed, in the plan
	Err          error // a fault of this input
}

// Document is one document of an operation, from its order to its result: a result in the document
// store, a result in Content, a fault, or nothing yet.
type Document struct {
	ID           string     // GUID, of this part of the operation
	OriginalRef  string     // RefId of the input
	OriginalName string     // as the client sent it, otherwise as in the document store
	Related      string     // RelatedRefID of the input
	RefID        string     // of a result in the document store
	Name         string     // of the result; empty while there is none
	Content      sig.Result // of a result that is not in the document store; nil when it is not stored any more
	Fault        *fault.Error
	Declined     bool // the user declined it, so nothing is done with it
	Way          int  // index of how it is signed, in the plan
	// Integrity says of a message that was decrypted whether an authentication code covered its content:
	// "Verified" or "None". "": the result is of another kind.
	Integrity string

	// Known is the digest that the document store has of a stored document, for people who look at it. It is
	// not stored with the operation.
	Known suite.Digest

	in, out *part
}

// Over reports whether the document has a result or a fault.
func (d *Document) Over() bool { return d.Fault != nil || d.Name != "" }

// part is a range of the documents, or of the results, that an operation has in one blob.
type part struct {
	At   int64 `json:"at"`
	Size int64 `json:"size"`
}

// stored is Document as it is stored.
type stored struct {
	ID           string `json:"id"`
	OriginalRef  string `json:"original_ref,omitempty"`
	OriginalName string `json:"original_name,omitempty"`
	Related      string `json:"related,omitempty"`
	RefID        string `json:"ref,omitempty"`
	Name         string `json:"name,omitempty"`
	In           *part  `json:"in,omitempty"`      // in Stored.Contents
	Out          *part  `json:"content,omitempty"` // in Stored.Results or Operation.Answer
	Code         string `json:"code,omitempty"`
	Message      string `json:"message,omitempty"`
	Declined     bool   `json:"declined,omitempty"`
	Way          int    `json:"way,omitempty"`
	Integrity    string `json:"integrity,omitempty"`
}

func writeDocuments(documents []Document) ([]byte, error) {
	if len(documents) == 0 {
		return []byte{}, nil
	}
	list := make([]stored, len(documents))
	for i := range documents {
		d := &documents[i]
		list[i] = stored{ID: d.ID, OriginalRef: d.OriginalRef, OriginalName: d.OriginalName, Related: d.Related, RefID: d.RefID, Name: d.Name, In: d.in, Out: d.out, Declined: d.Declined, Way: d.Way, Integrity: d.Integrity}
		if d.Fault != nil {
			list[i].Code, list[i].Message = d.Fault.Code, d.Fault.Message
		}
	}
	return json.Marshal(list)
}

func readDocuments(text []byte) ([]Document, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var list []stored
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	documents := make([]Document, len(list))
	for i, d := range list {
		documents[i] = Document{ID: d.ID, OriginalRef: d.OriginalRef, OriginalName: d.OriginalName, Related: d.Related, RefID: d.RefID, Name: d.Name, in: d.In, out: d.Out, Declined: d.Declined, Way: d.Way, Integrity: d.Integrity}
		if d.Code != "" {
			documents[i].Fault = fault.New(d.Code, d.Message)
		}
	}
	return documents, nil
}

// Blob is a stored document, open for reading.
type Blob interface {
	sig.Document
	io.Closer
}

// Blobs stores the documents of requests and the results of operations as long as they are needed.
type Blobs interface {
	// KeepBlob copies a document. When it returns, the copy survives a power failure. It may be deleted
	// after expires.
	KeepBlob(ctx context.Context, d sig.Document, expires time.Time) (name string, err error)
	// OpenBlob opens a stored document for reading. Its error wraps fs.ErrNotExist or document.ErrDamaged
	// if the content is lost, and says which object it is.
	OpenBlob(ctx context.Context, name string) (Blob, error)
	// RemoveBlob deletes a document. A missing document is not an error.
	RemoveBlob(ctx context.Context, name string) error
}

// OpenKept opens a document that is kept in Blobs. Without its content the fault is document_lost.
func OpenKept(ctx context.Context, blobs interface {
	OpenBlob(ctx context.Context, name string) (Blob, error)
}, name string) (Blob, error) {
	b, err := blobs.OpenBlob(ctx, name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, document.ErrDamaged) {
		return nil, fault.New(fault.Lost, "a document that was kept for this is lost or damaged in the storage; begin again, and tell the administrator").
			With(fmt.Errorf("operation: %w", err)) // a name may have the content, so it is not written
	}
	return b, err
}

// Documents is the document store as operations use it. An unknown identifier and one of another user
// are the same fault, object_not_found.
type Documents interface {
	// Find finds stored documents of who, by one statement.
	Find(ctx context.Context, who audit.Principal, refIDs []string) (Found, error)
	// NewBatch begins the results of one operation of who.
	NewBatch(who audit.Principal) Batch
}

// Found are stored documents that were found together: document.Selection.
type Found interface {
	// Open opens one of them for reading.
	Open(ctx context.Context, refID string) (Blob, document.Info, error)
}

// openStored opens one stored document.
func openStored(ctx context.Context, store Documents, who audit.Principal, refID string) (Blob, document.Info, error) {
	found, err := store.Find(ctx, who, []string{refID})
	if err != nil {
		return nil, document.Info{}, err
	}
	return found.Open(ctx, refID)
}

// Batch are the results of one operation that are stored documents: document.Batch.
type Batch interface {
	// Save stores a document and chooses its identifier. It cannot be found before Record.
	Save(ctx context.Context, d document.Description, src io.WriterTo) (refID string, err error)
	// Record makes all documents visible, inside the transaction that records the outcome of the
	// operation. If it is not called, the documents are swept as if they had never existed.
	Record(ctx context.Context) error
}

// DocumentStore is the installation's own document store.
type DocumentStore struct{ *document.Service }

var _ Documents = DocumentStore{}

// Find implements Documents.
func (s DocumentStore) Find(ctx context.Context, who audit.Principal, refIDs []string) (Found, error) {
	found, err := s.Service.Find(ctx, who, refIDs)
	return selection{found}, err
}

type selection struct{ *document.Selection }

// Open implements Found.
func (s selection) Open(ctx context.Context, refID string) (Blob, document.Info, error) {
	stored, err := s.Selection.Open(ctx, refID)
	if err != nil {
		return nil, document.Info{}, err
	}
	return stored, stored.Info, nil
}

// NewBatch implements Documents.
func (s DocumentStore) NewBatch(who audit.Principal) Batch { return s.Service.NewBatch(who) }

// noDocuments replaces a missing document store.
type noDocuments struct{}

func (noDocuments) Find(context.Context, audit.Principal, []string) (Found, error) {
	return noDocuments{}, nil
}

func (noDocuments) Open(context.Context, string) (Blob, document.Info, error) {
	return nil, document.Info{}, fault.New(fault.InvalidParameters, "RefId: this installation stores no documents: send them as Content")
}

func (noDocuments) NewBatch(audit.Principal) Batch { return noDocuments{} }

func (noDocuments) Save(context.Context, document.Description, io.WriterTo) (string, error) {
	return "", fault.New(fault.InvalidParameters, "this installation stores no documents")
}

func (noDocuments) Record(context.Context) error { return nil }

// Together is how many documents of an operation are open at the same time. More than that are never together in
// one result.
const Together = 128

// Opened is an open document of an operation.
type Opened struct {
	Document sig.Document
	Original sig.Document // what Document, a message, is a signature of; nil: none
	// Digests and OriginalDigests are those that this request has computed while it received a stored
	// document.
	Digests, OriginalDigests []suite.Digest
	Name                     string // of the file; "": unknown
	// Err is a fault of this document. The other fields are empty then.
	Err error
}

// opener opens the documents of an order: those of a request, or those that are stored with its operation.
type opener struct {
	store    Documents
	owner    audit.Principal
	received []document.New
	content  func(d *Document, i int) sig.Document // nil: none
	original sig.Document

	temporary map[int]bool // stored documents that are temporary: so are their results
	open      []func() error
}

// close closes what results may have been read from.
func (o *opener) close() error { return closeAll(&o.open) }

// Documents returns the documents of the order. Its names are those that the client sent until Each has
// opened them.
func (o *Order) Documents() []Document { return o.documents }

// Names sets the names of stored documents whose names the client did not send.
func (o *Order) Names(ctx context.Context) error {
	var nameless []int
	for i := range o.documents {
		if d := &o.documents[i]; d.OriginalRef != "" && d.OriginalName == "" && d.Fault == nil {
			nameless = append(nameless, i)
		}
	}
	for part := range slices.Chunk(nameless, Together) {
		refs := make([]string, len(part))
		for n, i := range part {
			refs[n] = o.documents[i].OriginalRef
		}
		found, err := o.opener.store.Find(ctx, o.opener.owner, refs)
		if err != nil {
			return err
		}
		for _, i := range part {
			d := &o.documents[i]
			stored, about, err := found.Open(ctx, d.OriginalRef)
			if err != nil {
				return OfDocumentAt(i, err)
			}
			d.OriginalName = about.Name
			if err := stored.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// find finds the stored documents that documents without a fault name.
func (o *opener) find(ctx context.Context, documents []Document) (Found, error) {
	var refs []string
	for i := range documents {
		d := &documents[i]
		if d.Fault != nil {
			continue
		}
		for _, ref := range []string{d.OriginalRef, d.Related} {
			if ref != "" {
				refs = append(refs, ref)
			}
		}
	}
	if len(refs) == 0 {
		return noDocuments{}, nil
	}
	return o.store.Find(ctx, o.owner, refs)
}

// Each opens the documents of the order, a bounded number at a time. from is the index of the first one.
// Stored documents are closed after their portion. What the results of others read stays open until the
// operation is closed.
func (o *Order) Each(ctx context.Context, do func(from int, in []Opened) error) error {
	one := func(from, to int) (err error) {
		var closing []func() error
		defer func() { err = errors.Join(err, closeAll(&closing)) }()
		in := make([]Opened, to-from)
		found, err := o.opener.find(ctx, o.documents[from:to])
		if err != nil {
			return err
		}
		for i := range in {
			if in[i], err = o.openOne(ctx, found, from+i, &closing); err == nil {
				continue
			}
			if _, refused := fault.As(err); !refused {
				return err
			}
			in[i] = Opened{Err: err}
		}
		return do(from, in)
	}
	for from := 0; from < len(o.documents); from += Together {
		if err := one(from, min(from+Together, len(o.documents))); err != nil {
			return err
		}
	}
	return nil
}

func (o *Order) openOne(ctx context.Context, found Found, i int, closing *[]func() error) (in Opened, err error) {
	d, from := &o.documents[i], &o.opener
	if d.Fault != nil {
		return in, d.Fault
	}
	in.Original = from.original
	if d.OriginalRef != "" {
		stored, about, err := found.Open(ctx, d.OriginalRef)
		if err != nil {
			return in, err
		}
		*closing = append(*closing, stored.Close)
		if stored.Size() == 0 {
			return in, fault.New(fault.ContentRequired, "the stored document is empty")
		}
		in.Document, in.Digests = stored, digestsOf(from.received, &about)
		if h, ok := suite.HashByName(about.HashName); ok {
			d.Known = suite.Digest{Hash: h, Sum: about.Hash}
		}
		if d.OriginalName == "" {
			d.OriginalName = about.Name
		}
		if about.Temporary() {
			if from.temporary == nil {
				from.temporary = map[int]bool{}
			}
			from.temporary[i] = true
		}
	} else if from.content != nil {
		in.Document = from.content(d, i)
	}
	if d.Related != "" {
		related, about, err := found.Open(ctx, d.Related)
		if err != nil {
			return in, err
		}
		// The result of a document of the request may be read from both until it is written.
		if d.OriginalRef == "" {
			from.open = append(from.open, related.Close)
		} else {
			*closing = append(*closing, related.Close)
		}
		in.Original, in.OriginalDigests = related, digestsOf(from.received, &about)
	}
	in.Name = d.OriginalName
	return in, nil
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

// OfDocument is a fault of one document of an order, which refuses the whole order.
type OfDocument struct {
	error
	Index int // of the document in the order
}

// Unwrap returns the fault.
func (o OfDocument) Unwrap() error { return o.error }

// whole lists the codes of faults that are not about one document. If every document of a
// request has the same one, the request itself is wrong.
var whole = map[string]bool{
	fault.ContentRequired: true, fault.InvalidSignatureParams: true,
	fault.InvalidCertificate: true, fault.InvalidPIN: true, fault.AccessDenied: true,
}

// OfDocumentAt adds to a fault which document has it. Other errors, and faults that are about the whole
// order, stay as they are.
func OfDocumentAt(i int, err error) error {
	if f, ok := fault.As(err); ok && !whole[f.Code] {
		return OfDocument{err, i}
	}
	return err
}

// Refusal returns the fault that refuses a request as a whole. faults has the fault of
// each of its documents (nil for one without). The result is the fault of the only
// document, or the first one if all documents have the same code and that code is not about one
// document. For every other request it is nil, and the answer lists the outcome of each
// document. v1 batches and v2 operations share this rule.
func Refusal(faults []*fault.Error) *fault.Error {
	if len(faults) == 0 || faults[0] == nil {
		return nil
	}
	first := faults[0]
	if len(faults) == 1 {
		return first
	}
	for _, f := range faults {
		if f == nil || f.Code != first.Code || !whole[f.Code] {
			return nil
		}
	}
	return first
}

// bundle is a list of documents stored as one blob: the many documents of an operation
// cost one flush to disk and one open file.
type bundle struct {
	parts []sig.Document
	ends  []int64 // end position of each document
}

// add returns where the document is in the bundle.
func (b *bundle) add(d sig.Document) *part {
	at := b.Size()
	b.parts, b.ends = append(b.parts, d), append(b.ends, at+d.Size())
	return &part{at, d.Size()}
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
		return 0, errors.New("operation: negative offset in a document")
	}
	i := sort.Search(len(b.ends), func(i int) bool { return b.ends[i] > off })
	for ; n < len(p) && i < len(b.parts); i++ {
		from := off + int64(n) - (b.ends[i] - b.parts[i].Size())
		want := p[n:min(int64(len(p)), int64(n)+b.parts[i].Size()-from)]
		if err := ReadFull(b.parts[i], want, from); err != nil {
			return n, err
		}
		n += len(want)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// ReadFull reads exactly len(p) bytes at an offset.
func ReadFull(d io.ReaderAt, p []byte, off int64) error {
	n, err := d.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("operation: reading a document: %w", err)
}

// Section is a part of a stored document. It can be read or written any number of times.
type Section struct{ *io.SectionReader }

// NewSection returns size bytes of a document from a position.
func NewSection(d io.ReaderAt, at, size int64) Section {
	return Section{io.NewSectionReader(d, at, size)}
}

// WriteTo implements [io.WriterTo].
func (s Section) WriteTo(w io.Writer) (int64, error) {
	buf := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buf)
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{io.NewSectionReader(s.SectionReader, 0, s.Size())}, buf[:])
}

// buffers are those of sections: an operation may have thousands of small ones.
var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// closeAll calls every function of list once.
func closeAll(list *[]func() error) error {
	var errs []error
	for _, c := range *list {
		errs = append(errs, c())
	}
	*list = nil
	return errors.Join(errs...)
}
