// SPDX-License-Identifier: Apache-2.0

// Package sig has the types that all signature formats share: their input (Document, Job,
// Params), their output (Prepared, Result) and the result of a check (Check, Report).
//
// Begin with Sign to make a signature with a key in memory, and with Verifier to check one. The
// formats themselves are in the packages below this one. A format makes a signed document in two
// steps and never sees the private key:
//
//	Prepare  ->  digest to sign, state to keep   (no key needed)
//	the key  ->  signature value
//	Finish   ->  signed document                 (no key needed)
//
// The steps may run in different processes, hours and releases apart. Therefore the state keeps
// everything that was digested, and nothing is rendered a second time.
//
// Documents are streamed: memory does not grow with their size.
//
// # Several documents in one container
//
// A container such as ASiC has several documents, and one signature covers all of them. The Job of
// such a signature has the first document in Document, with its name in Name, and the others in
// Files. The format says that it takes them in what its Read returns (Request.Several), because that
// may depend on the parameters, and in its StateForm. Every other format refuses such a job with an
// *ErrParams: Request.ForJob does so in Prepare and Enhance, and OpenState in Finish. So each format
// must call them.
//
// In Prepare the format takes all documents from Job.Documents, in the order of the container, and
// the digest of each from DigestOf. It signs a list of names and digests, and keeps the list in its
// state. In Finish it compares the list with the documents that it gets then, before it puts them into
// the container. It works Within the Job, so that the budget grows with all documents.
//
// A container that exists already is itself the Document of a job, as a message to extend is, and
// needs no Files.
package sig

import (
	"context"
	"io"
	"time"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Document is the bytes to sign or a signed document, in memory (*bytes.Reader is a Document), in
// a spooled file or in a bucket. ReadAt may be called from several goroutines at once, as
// io.ReaderAt requires.
type Document interface {
	io.ReaderAt
	// Size is the length in bytes and does not change.
	Size() int64
}

// Job is the input for making one signature.
type Job struct {
	// Document is what is signed: the document itself, its hash value if the parameter
	// Hash is True, or the signed message to extend.
	Document Document
	// Name is the name of Document in the container that the signature makes. Formats that sign one
	// document ignore it.
	Name string
	// Files are the other documents that the signature covers together with Document, in their
	// order, for formats that sign several in one container (Request.Several). Other formats refuse
	// a job that has any.
	Files []File
	// Original is the document that a message to extend covers, nil if the caller gave
	// none.
	Original Document
	// Digests were computed over the whole Document while it was received. A format uses
	// the one with its algorithm and reads Document only if there is none.
	Digests []suite.Digest
	// OriginalDigests are the digests of Original.
	OriginalDigests []suite.Digest
	// Certificate is the signer's.
	Certificate *x509gost.Certificate
	// Chain holds the issuers of Certificate, nearest first. It may omit the root and
	// others before it.
	Chain []*x509gost.Certificate
	// Roots are the trust anchors, for Enhance: time stamps that a signature has count only if they lead to one
	// of them. Empty: none are known, and all time stamps count whose own signature holds.
	Roots []*x509gost.Certificate
	// Params are the parameters of the request as received.
	Params Params
	// Request is what Read of the format returned for Params; nil: the format reads them itself.
	// A caller with many documents reads them once.
	Request *Request
	// TSPAddress is the address of the time-stamp service to use in place of the one in
	// Params; empty: that one.
	TSPAddress string
	// Time is the claimed signing time.
	Time time.Time
	// Zone is the time zone of texts for people, such as a visible stamp. nil: that of Time.
	Zone *time.Location
	// Room is the number of bytes to reserve, for formats that reserve space before the
	// signature is known. 0 means the format's own estimate. Formats whose result simply
	// grows (raw, CMS) reserve nothing.
	Room int
	// Again reports that the caller prepares again if Finish returns ErrRoom. The format's
	// own estimate may then be tight. Without Again, for instance between two steps, the
	// estimate must be an upper bound.
	Again bool
	// Judged is called with the report by which an enhancement has reached its level (see Reached); nil: it is not.
	Judged func(*Report)
	// Evidence fetches time stamps and revocation data for levels that need them. If it is
	// nil, such a level is refused.
	Evidence Evidence
}

// Prepared is the result of Prepare.
type Prepared struct {
	// Digest is what the key must sign.
	Digest suite.Digest
	// State has the exact bytes that were digested and what else Finish needs, with a
	// version at the beginning. It holds no secret and does not grow with the document.
	State []byte
	// Detached reports that Finish needs no Job.Document: the signature is made of State alone.
	Detached bool
}

// Format makes signatures of one kind and checks them.
type Format interface {
	// Read reads the parameters of a request as far as they do not depend on a job. Wrong ones
	// are reported by Prepare.
	Read(p Params) *Request
	// Prepare returns the digest to sign and the exact bytes it was computed from.
	// Errors: *ErrParams, *ErrDocument, those of the Document, ctx.Err().
	Prepare(ctx context.Context, job *Job) (*Prepared, error)
	// Finish inserts a signature value that the caller has verified. After it returns, only
	// I/O can fail. The job is the one given to Prepare. If the state does not fit the job,
	// the error is an *ErrState. If the signature does not fit into the reserved space, the
	// error is an *ErrRoom.
	Finish(ctx context.Context, job *Job, state, signature []byte) (Result, error)
	Verifier
}

// PartSigner is implemented by formats that sign digests of parts of a document. They use no
// Digests of a Job, so callers need not compute them.
type PartSigner interface{ SignsParts() }

// Result is a signed document that can be written any number of times.
type Result interface {
	// Size is the exact number of bytes that WriteTo writes.
	Size() int64
	io.WriterTo
}

// Verifier checks signatures of one kind.
type Verifier interface {
	// Verify reports what it found. It returns an error only if the check is impossible:
	// bytes that are not a signature of this kind (*ErrDocument), a missing input
	// (*ErrParams), failing I/O. An invalid signature is a finding in the report.
	Verify(ctx context.Context, c *Check) (*Report, error)
}
