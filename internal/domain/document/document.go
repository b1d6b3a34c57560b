// SPDX-License-Identifier: Apache-2.0

// Package document stores documents: their owners, lifetimes and descriptions, and the
// agreement of their bytes with their records. Begin with Service.NewIntake and
// Service.Keep to store a document and Service.Open to read one. The package does not
// interpret the content.
//
// Content is stored in [Bytes], records are stored in [Store], and no transaction spans
// the two. So the record comes first. Before the first byte of an upload is written, the
// store has a record of the upload, with a lease. Such a record cannot be found as a
// document. One conditional change turns it into a document when all its bytes are
// durable. [Service.Sweep] removes uploads whose lease is over: first the bytes, then the
// record, so that there are never bytes without a record. An upload whose lease was lost
// cannot become a document, so there is never a document without bytes.
//
// A document of another user gets the same answer as a missing one.
package document

import (
	"context"
	"errors"
	"hash"
	"io"
	"time"

	"tamga/internal/domain/audit"
)

// Info describes a document.
type Info struct {
	ID       string // GUID, lower case
	UserID   string // owner
	Name     string // of its file; at most 255 characters, no control characters
	Type     string // FileType as the client gave it
	Parent   string // document that it was made from or belongs to; "" for none
	Linked   string // document that it was linked to; "" for none
	Extra    string // AdditionalInfo as the client gave it; "" for none
	Size     int64  // bytes
	Hash     []byte
	HashName string // algorithm of Hash by its name in the specification

	Uploaded time.Time
	Accessed time.Time // last read of the content, accurate to about a minute
	Expires  time.Time // zero: permanent

	KeepUntil time.Time // its owner cannot remove it before; zero: at any time
}

// Position is where a document is in the list of the newest. The zero value is before all.
type Position struct {
	At time.Time // Uploaded of a document
	ID string
}

// Temporary reports whether the document expires.
func (i *Info) Temporary() bool { return !i.Expires.IsZero() }

// Retained reports whether the owner cannot remove the document at a time.
func (i *Info) Retained(now time.Time) bool { return i.KeepUntil.After(now) }

// KeptLast returns the last moment at which the document is retained; zero: it is not.
func (i *Info) KeptLast() time.Time {
	if i.KeepUntil.IsZero() {
		return i.KeepUntil
	}
	return i.KeepUntil.Add(-time.Millisecond)
}

// Description is what a client says about a document.
type Description struct {
	Name      string
	Type      string
	Parent    string
	Extra     string
	Temporary bool
	// Private means that the content is sealed even if the storage has documents as they are, and that it may be empty. The service
	// says so of what it makes itself; for an upload it is too late.
	Private bool
}

// Change is a change of a document; nil fields stay as they are.
type Change struct {
	Name, Type, Parent, Extra *string
	Temporary                 *bool
}

// Record is a document as it is stored.
type Record struct {
	Info
	Bytes string // its name in Bytes
	// Content is the content of a small document in the form that Bytes.Pack returns. It is stored with the record,
	// and Bytes has no object of the name. nil: Bytes has it, or the record is of a method that reads no content.
	Content []byte
}

// Upload is a record that is not yet a document.
type Upload struct {
	ID, UserID string
	Bytes      string // name in Bytes
	Counted    int64  // bytes counted in the quotas
}

// Quota limits documents and uploads together.
type Quota struct {
	Objects int64
	Bytes   int64
}

// Quotas are the two quotas that each upload must fit into.
type Quotas struct{ All, Own Quota }

// Outcome says whether a change of uploads was made.
type Outcome int

const (
	Done Outcome = iota
	Full         // a quota has no room
	Lost         // an upload does not exist any more
)

// Store keeps records. Each method is atomic; inside Atomic it is part of that
// transaction. A document can be found from KeepDocuments until it expires or
// RemoveDocument.
type Store interface {
	Atomic(ctx context.Context, fn func(ctx context.Context) error) error
	// KeepDocuments turns uploads into documents, which then count with their size. Records with
	// Content need no upload and are added, if they fit into the quotas. All records must be of
	// one user. If the outcome is not Done, there are no documents of them, and inside Atomic the
	// caller must roll back.
	KeepDocuments(ctx context.Context, records []Record, q Quotas) (Outcome, error)
	// FindDocuments returns the documents that belong to the user and have not expired at
	// now, in no particular order.
	FindDocuments(ctx context.Context, userID string, ids []string, now time.Time) ([]Record, error)
	// FindContents returns what FindDocuments would return, with the Content of those in whose
	// rows it is.
	FindContents(ctx context.Context, userID string, ids []string, now time.Time) ([]Record, error)
	// FindByHash returns the youngest document of the user with this hash.
	FindByHash(ctx context.Context, userID string, hash []byte, now time.Time) (Record, bool, error)
	// ListDocuments returns up to n documents of the user in the order of their
	// identifiers, after the identifier behind.
	ListDocuments(ctx context.Context, userID, behind string, n int, now time.Time) ([]Record, error)
	// NewestDocuments returns up to n documents of the user, the newest first, that are older
	// than a place.
	NewestDocuments(ctx context.Context, userID string, older Position, n int, now time.Time) ([]Record, error)
	// ChangeDocument writes Name, Type, Parent, Linked, Extra and Expires of a document. It gives none an
	// end that is retained at now.
	ChangeDocument(ctx context.Context, i Info, now time.Time) (bool, error)
	// TouchDocuments records that the content of documents was read.
	TouchDocuments(ctx context.Context, ids []string, at time.Time) error
	// RemoveDocument ends a document, unless it is retained at now. Its record stays until ForgetDocuments, so that
	// Sweep finds it.
	RemoveDocument(ctx context.Context, userID, id string, now time.Time) (Gone, bool, error)
	// ClaimGone ends uploads whose lease is over at now and documents that had expired at
	// expired, and returns up to n ended records.
	ClaimGone(ctx context.Context, now, expired time.Time, n int) ([]Gone, error)
	// ForgetDocuments deletes records that have ended and takes them out of the quotas.
	ForgetDocuments(ctx context.Context, ids []string) error
}

// UploadStore keeps uploads until Store.KeepDocuments turns them into documents. Its
// methods are atomic in the same way.
type UploadStore interface {
	// AddUploads begins uploads, leased until a time, if all of them fit into the quotas.
	// Otherwise it reports false and begins none.
	AddUploads(ctx context.Context, uploads []Upload, now, until time.Time, q Quotas) (bool, error)
	// ExtendUpload extends a lease and adds more bytes to the size that the quotas count.
	ExtendUpload(ctx context.Context, u Upload, more int64, until time.Time, q Quotas) (Outcome, error)
	// Room returns what the quotas have room for. Others may use it meanwhile.
	Room(ctx context.Context, userID string, q Quotas) (Quota, error)
	// EndUpload ends an upload. Its record stays until Store.ForgetDocuments, so that
	// Sweep finds it.
	EndUpload(ctx context.Context, id string) (bool, error)
}

// RetentionStore keeps documents longer than their owners may want to. Its methods are atomic in the same way.
type RetentionStore interface {
	// RetainDocument sets KeepUntil of a document. With a time, the document is permanent from then on.
	RetainDocument(ctx context.Context, userID, id string, until, now time.Time) (bool, error)
	// ReplaceContent exchanges the contents of two documents of a user, with their sizes and hashes. It reports
	// false if one of them is not there.
	ReplaceContent(ctx context.Context, userID, id, by string, now time.Time) (bool, error)
}

// Gone is an ended record whose bytes must be removed. Bytes is "" if the row has them.
type Gone struct{ ID, Bytes string }

// Bytes stores the content of documents under names that Name makes.
type Bytes interface {
	// Name returns the name of a new object for this identifier.
	Name(id string) string
	// SealedName is Name for an object whose content is sealed in any case.
	SealedName(id string) string
	// IsSealed reports whether the content of the object of a name is sealed.
	IsSealed(name string) bool
	// Create begins an object. Open does not find it before Commit.
	Create(ctx context.Context, name string) (Writer, error)
	// Open opens an object for reading. Its error wraps fs.ErrNotExist or ErrDamaged if the
	// content is lost.
	Open(ctx context.Context, name string) (Object, error)
	// Remove deletes an object or the remains of an unfinished Create. A missing object
	// is no error.
	Remove(ctx context.Context, name string) error
	// Pack returns the form in which the content of an object is stored in a row.
	Pack(name string, content []byte) ([]byte, error)
	// Unpack opens what Pack returned. Its error wraps ErrDamaged if the content is lost.
	Unpack(ctx context.Context, name string, stored []byte) (Object, error)
}

// Errors that errors of Bytes wrap, beside fs.ErrNotExist for a missing object.
var (
	ErrNoRoom  = errors.New("document: the storage is full")
	ErrDamaged = errors.New("document: the stored object was changed")
)

// Writer writes the content of an object.
type Writer interface {
	io.Writer
	// Commit ends writing. When it returns nil, the object survives a power failure.
	Commit() error
	// Abort ends writing without an object and tries to remove what was written. After
	// Commit it does nothing.
	Abort()
}

// Object is an open object. It may be read from several goroutines.
type Object interface {
	io.ReaderAt
	io.Closer
	Size() int64 // bytes
}

// Digest is an algorithm that documents are hashed with.
type Digest struct {
	Name string // of the algorithm in the specification
	New  func() hash.Hash
}

// Rules of the store. A zero field means its default.
type Rules struct {
	TemporaryLife time.Duration // default 24 h
	All           Quota         // default 1 000 000 documents, 1 TiB
	Own           Quota         // of one user; default 10 000 documents, 16 GiB
	InRow         int64         // size in bytes up to which the row of a document has its content; at most memoryLimit
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
	set(&r.All.Bytes, 1<<40)
	set(&r.Own.Objects, 10_000)
	set(&r.Own.Bytes, 16<<30)
	return r
}

// Many is the most documents of one call.
const Many = 1000

const (
	// leaseTime is how long the lease of an upload lasts without an extension. A client that
	// sends nothing for a minute is cut off, so only a dead process loses a lease.
	leaseTime = 15 * time.Minute
	// extendAfter is the age at which a lease is extended.
	extendAfter = time.Minute
	// grace is how long the bytes of an expired document are kept for running reads.
	grace = time.Hour
	// accessStep is the age at which the stored time of the last read is updated.
	accessStep = time.Minute
)

// Service is the document store. All fields are set before first use and not changed
// afterwards; it is safe for concurrent use.
type Service struct {
	Store   Store
	Uploads UploadStore // in the same database
	Bytes   Bytes
	// Retention is in the same database; nil: Retain and Replace are not called.
	Retention RetentionStore
	// KeepFor returns how long documents that a user stores as permanent ones or makes permanent are kept, 0: they are not. Kept is called with those
	// that are, in the transaction that stores or changes them. nil: none is kept.
	KeepFor func(who audit.Principal) time.Duration
	Kept    func(ctx context.Context, documents []Info) error
	// Digest returns the algorithm that new documents of a user are hashed with.
	Digest func(ctx context.Context, userID string) (Digest, error)
	// Held reports whether a backup runs, so that no bytes may be removed. nil: never.
	Held  func(ctx context.Context) (bool, error)
	Now   func() time.Time
	Rand  io.Reader
	Rules Rules

	replacing bool // of Replace
	boundless bool // see most
}

func (s *Service) quotas() Quotas {
	if s.boundless {
		return most
	}
	r := s.Rules.withDefaults()
	return Quotas{r.All, r.Own}
}
