// Package document owns stored documents: whose they are, how long they live, what
// is known of them, and that their bytes and their records agree whatever happens.
//
// Bytes lie in [Bytes], records in [Store], and no transaction spans the two. So a
// record comes first: before the first octet of an upload is written anywhere, a
// record of the upload exists, which nobody can find as a document and which is its
// uploader's for a time (a lease). One conditional change turns it into a document
// when all its octets are durable. Whatever has a record and is no document when its
// lease is over goes in the [Service.Sweep], bytes first, record last, so that there
// are never bytes that no record names; and an upload whose lease was lost cannot
// become a document any more, so that there is never a document whose bytes went.
//
// A document of somebody else and one that is not there are the same answer.
package document

import (
	"context"
	"errors"
	"hash"
	"io"
	"time"
)

// Info is what is known of a document.
type Info struct {
	ID       string // GUID, lower case
	UserID   string // whose it is
	Name     string // of its file; at most 255 characters, no control characters
	Type     string // FileType as the client gave it
	Parent   string // document it was made of or belongs to; "" is none
	Linked   string // document it was linked to; "" is none
	Extra    string // AdditionalInfo as the client gave it; "" is none
	Size     int64  // octets
	Hash     []byte
	HashName string // algorithm of Hash as the interface names it

	Uploaded time.Time
	Accessed time.Time // last time its content was read, to about a minute
	Expires  time.Time // zero: permanent
}

// Temporary reports whether the document goes by itself.
func (i *Info) Temporary() bool { return !i.Expires.IsZero() }

// Description is what an uploader says of a document.
type Description struct {
	Name      string
	Type      string
	Parent    string
	Extra     string
	Temporary bool
}

// Change is what to change of a document; nil leaves a thing as it is.
type Change struct {
	Name, Type, Parent, Extra *string
	Temporary                 *bool
}

// Record is a document as it is stored.
type Record struct {
	Info
	Bytes string // its name in Bytes
}

// Upload is a record that is no document yet.
type Upload struct {
	ID, UserID string
	Bytes      string // name in Bytes
	Octets     int64  // counted in the quotas
}

// Quota bounds documents and uploads.
type Quota struct {
	Objects int64
	Octets  int64
}

// Quotas are the two that every upload has to fit into.
type Quotas struct{ All, Own Quota }

// Answers of UploadStore.ExtendUpload.
type Extension int

const (
	Extended Extension = iota
	Full               // a quota has no room
	Lost               // there is no such upload any more
)

// Store keeps records. Each method is one atomic step, whatever other processes do
// at the same time; inside Atomic it is part of that. A document can be found from
// KeepDocuments until its time is over or RemoveDocument.
type Store interface {
	Atomic(ctx context.Context, fn func(ctx context.Context) error) error
	// KeepDocuments turns uploads into documents, which then count with their size.
	// It reports false, and turns none, when one of them is no upload any more.
	// Inside Atomic the caller then has to roll back.
	KeepDocuments(ctx context.Context, records []Record) (bool, error)
	// FindDocuments returns those of the documents that are the user's and whose time
	// is not over at now, in no particular order.
	FindDocuments(ctx context.Context, userID string, ids []string, now time.Time) ([]Record, error)
	// FindByHash returns the youngest document of the user with this hash.
	FindByHash(ctx context.Context, userID string, hash []byte, now time.Time) (Record, bool, error)
	// ListDocuments returns up to n documents of the user in the order of their
	// identifiers, from behind one of these.
	ListDocuments(ctx context.Context, userID, behind string, n int, now time.Time) ([]Record, error)
	// ChangeDocument writes Name, Type, Parent, Linked, Extra and Expires of a document.
	ChangeDocument(ctx context.Context, i Info, now time.Time) (bool, error)
	// TouchDocument notes that the content was read.
	TouchDocument(ctx context.Context, id string, at time.Time) error
	// RemoveDocument ends a document: its record stays, to be swept, until
	// ForgetDocuments.
	RemoveDocument(ctx context.Context, userID, id string, now time.Time) (Gone, bool, error)
	// ClaimGone ends uploads whose lease is over at now and documents whose time was
	// over at expired, and returns up to n records that are to be forgotten.
	ClaimGone(ctx context.Context, now, expired time.Time, n int) ([]Gone, error)
	// ForgetDocuments deletes records that have ended and takes them out of the quotas.
	ForgetDocuments(ctx context.Context, ids []string) error
}

// UploadStore keeps uploads until Store.KeepDocuments turns them into documents. Its
// methods are atomic in the same way.
type UploadStore interface {
	// AddUploads begins uploads, leased until a time, when all of them fit into the
	// quotas, and otherwise reports false and begins none.
	AddUploads(ctx context.Context, uploads []Upload, now, until time.Time, q Quotas) (bool, error)
	// ExtendUpload renews a lease and adds octets to what an upload counts for.
	ExtendUpload(ctx context.Context, u Upload, more int64, until time.Time, q Quotas) (Extension, error)
	// EndUpload ends an upload: its record stays, to be swept, until
	// Store.ForgetDocuments.
	EndUpload(ctx context.Context, id string) (bool, error)
}

// Gone is a record whose bytes are to be removed.
type Gone struct{ ID, Bytes string }

// Bytes keeps the octets of documents under names of ours.
type Bytes interface {
	// Name is the name that a new object of this identifier gets.
	Name(id string) string
	// Create begins an object. Nobody can open it before Commit.
	Create(ctx context.Context, name string) (Writer, error)
	// Open opens an object for reading.
	Open(ctx context.Context, name string) (Object, error)
	// Remove deletes an object, or what a Create that never came to its end left
	// behind; that there is nothing is no error.
	Remove(ctx context.Context, name string) error
}

// ErrNoRoom is what errors of Bytes wrap when there is no room for more.
var ErrNoRoom = errors.New("document: there is no room for the document")

// Writer takes the octets of an object in.
type Writer interface {
	io.Writer
	// Commit ends writing. When it returns nil, the object survives a power cut.
	Commit() error
	// Abort gives up, and removes what was written as far as that succeeds. After
	// Commit it does nothing.
	Abort()
}

// Object is an open object. It may be read from several goroutines.
type Object interface {
	io.ReaderAt
	io.Closer
	Size() int64 // octets
}

// Digest is a way to hash documents.
type Digest struct {
	Name string // as the interface names the algorithm
	New  func() hash.Hash
}

// Rules of the store. A zero field means its default.
type Rules struct {
	TemporaryLife time.Duration // default 24 h
	All           Quota         // default 1 000 000 documents, 1 TiB
	Own           Quota         // of one user; default 10 000 documents, 16 GiB
}

func (r Rules) withDefaults() Rules {
	set := func(v *int64, value int64) {
		if *v == 0 {
			*v = value
		}
	}
	if r.TemporaryLife == 0 {
		r.TemporaryLife = 24 * time.Hour
	}
	set(&r.All.Objects, 1_000_000)
	set(&r.All.Octets, 1<<40)
	set(&r.Own.Objects, 10_000)
	set(&r.Own.Octets, 16<<30)
	return r
}

// Many bounds the documents of one call.
const Many = 1000

const (
	// leaseTime is how long an upload may go without a renewal. A client that sends
	// nothing for a minute is cut off, so only a process that died lets one pass.
	leaseTime = 15 * time.Minute
	// renewAfter is when a lease is renewed.
	renewAfter = time.Minute
	// grace is how much longer than its time a document's bytes are kept for those
	// who are reading them.
	grace = time.Hour
	// accessStep is how much older than now a noted access is before it is noted anew.
	accessStep = time.Minute
)

// Service is the document store. All fields are set before first use and not changed
// afterwards; it is safe for concurrent use.
type Service struct {
	Store   Store
	Uploads UploadStore // in the same database
	Bytes   Bytes
	// Digest says what documents of a user are hashed with on their way in.
	Digest func(ctx context.Context, userID string) (Digest, error)
	Now    func() time.Time
	Rand   io.Reader
	Rules  Rules
}

func (s *Service) quotas() Quotas {
	r := s.Rules.withDefaults()
	return Quotas{r.All, r.Own}
}
