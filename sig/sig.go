// Package sig owns the words every signature format shares: what comes in
// (Document, Job, Params), what goes out (Prepared, Result) and what a check
// says (Check, Report). A format turns a document into a signed one in two
// steps, with the private key in between and out of its sight:
//
//	Prepare  ->  digest to sign, state to keep   (no key needed)
//	the key  ->  signature value
//	Finish   ->  signed document                 (no key needed)
//
// The steps may run in different processes, hours and releases apart, which is
// why everything that was digested is kept in the state and rendered once.
//
// Documents flow through here: memory does not grow with their size.
package sig

import (
	"context"
	"io"
	"time"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Document is bytes to sign or already signed, wherever they are: in memory
// (*bytes.Reader is a Document), in a spooled file, in a bucket. ReadAt may be
// called from several goroutines at once, as io.ReaderAt says.
type Document interface {
	io.ReaderAt
	// Size is the length in octets and does not change.
	Size() int64
}

// Job is one signature to make.
type Job struct {
	// Document is what is signed: the document itself, or its hash value when
	// the parameter Hash is True, or the signed message to extend.
	Document Document
	// Original is the document that a message to extend was made over, nil when
	// the caller gave none.
	Original Document
	// Digests were computed over the whole Document while it came in. A format
	// takes the one whose algorithm fits and reads Document only without it.
	Digests []suite.Digest
	// OriginalDigests are the same for Original.
	OriginalDigests []suite.Digest
	// Certificate is the signer's.
	Certificate *x509gost.Certificate
	// Chain holds the issuers of Certificate, nearest first; it may end with the
	// root or before.
	Chain []*x509gost.Certificate
	// Params are the parameters of the request, as they came.
	Params Params
	// Time is the moment the signature claims to be made at.
	Time time.Time
	// Room is how many octets to reserve where a format reserves space before
	// the signature is known; 0 asks for the format's own estimate. Formats whose
	// result simply grows (raw, CMS) reserve nothing.
	Room int
	// Again reports that the caller prepares again when Finish returns ErrRoom. The
	// format's own estimate may then be tight. Without it, as between two steps, the
	// estimate is an upper bound.
	Again bool
	// Evidence is asked where a level needs time stamps and revocation data; nil
	// where the caller has none, and then such a level is refused.
	Evidence Evidence
}

// Prepared is what Prepare leaves behind.
type Prepared struct {
	// Digest is what the key signs.
	Digest suite.Digest
	// State holds the exact bytes that were digested and what else Finish needs,
	// with a version in front. It holds no secret and does not grow with the
	// document.
	State []byte
}

// Format makes signatures of one kind and checks them.
type Format interface {
	// Prepare says what to sign and keeps the exact bytes it made for that.
	// Errors: *ErrParams, *ErrDocument, those of the Document, ctx.Err().
	Prepare(ctx context.Context, job *Job) (*Prepared, error)
	// Finish puts a signature value, already verified by the caller, in place.
	// When it returns, all that can fail but I/O has been done. The job is the
	// one given to Prepare; a state that does not fit it is an *ErrState, a signature
	// that does not fit into the room reserved an *ErrRoom.
	Finish(ctx context.Context, job *Job, state, signature []byte) (Result, error)
	Verifier
}

// Result is a signed document ready to be written, any number of times.
type Result interface {
	// Size is the exact number of octets WriteTo writes.
	Size() int64
	io.WriterTo
}

// Verifier checks signatures of one kind.
type Verifier interface {
	// Verify reports what it found. It returns an error only when the question
	// cannot be judged at all: bytes that are no signature of this kind
	// (*ErrDocument), a question that lacks a part (*ErrParams), failing I/O. A
	// signature that does not hold is a finding in the report.
	Verify(ctx context.Context, c *Check) (*Report, error)
}
