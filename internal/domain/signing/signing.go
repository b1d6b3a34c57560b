// SPDX-License-Identifier: Apache-2.0

// Package signing makes signatures: which user may sign what with which key, in which
// order the steps happen, and that no signature value is returned before it verified
// against its certificate. It uses policy, keys and the signature formats, and knows no
// format by name.
//
// Begin with Service.Sign, or SignMany for a batch. Prepare and Complete sign in two
// steps with a client's own key, Operations orders signatures as operations, and Verification
// verifies documents. The package opens no files and sends no requests: stores, spool,
// evidence and callbacks are interfaces.
//
// The order of one signature (docs/architecture.md, "The path of two requests"):
// policy, certificate and its status, what to sign, the key, the check of the value, the
// document. All errors of a client are detected before its PIN costs an attempt. A batch
// takes each step for all its documents before the next one. Two steps (presign,
// postsign) are the same with a client's own key: the object that Prepare makes is stored
// durably in between.
package signing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/policy"
	"tamga/pki/chain"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
)

// Result is a signed document ready to be written.
type Result = sig.Result

// SignOrder is a request for one signature. The service reads Content and Original, and the
// caller closes them.
type SignOrder struct {
	Type        string            // name of a type in Service.Formats, in any letter case, or its number
	Params      map[string]string // Signature.Parameters without OriginalDocument
	Content     *Intake           // document, hash or message; nil or empty: content_required
	Name        string            // of Content in a container
	Files       []File            // other documents that the signature covers, in a container
	Original    *Intake           // OriginalDocument; nil if there is none
	Certificate string            // identifier as text; "" and "0" are the default certificate
	PIN         string
	Snapshot    *Snapshot // read when the request came in; nil: one is read when it is needed
	// Noted gets what the register says of the document, for the audit entry of the request; nil: it is not said.
	Noted func(detail string)
}

// File is a document of a container beside the first. The caller closes its Content.
type File struct {
	Name    string
	Content *Intake
}

// filesOf returns files as a job has them. digested: the format takes digests of whole documents.
func filesOf(files []File, digested bool) (list []sig.File) {
	for _, f := range files {
		one := sig.File{Name: f.Name, Document: f.Content}
		if digested {
			one.Digests = f.Content.digests()
		}
		list = append(list, one)
	}
	return list
}

// checkFiles refuses too many files.
func (s *Service) checkFiles(files []File) error {
	if most := s.batchItems(); len(files) > most {
		return fault.Newf(fault.InvalidParameters, "Files holds %d documents: send at most %d in one request", len(files), most)
	}
	return nil
}

// Keys gives access to the users' keys and certificates.
type Keys interface {
	ResolveIn(ctx context.Context, snap *keys.Snapshot, userID, identifier string) (*keys.Certificate, error)
	JudgeIn(ctx context.Context, snap *keys.Snapshot, c *keys.Certificate, at time.Time) (*chain.Result, error)
	SignIn(ctx context.Context, snap *keys.Snapshot, c *keys.Certificate, pin string, digests []suite.Digest) ([][]byte, error)
}

// Policy decides what users and the installation allow.
type Policy interface {
	PermitBy(access policy.Set, a policy.Action) error
	PermitType(signatureType string, overHash bool) error
	TSPAddress(ctx context.Context, requested string, present bool) (string, error)
}

// Service makes signatures. All fields must be set before first use and must not change
// after that. It is safe for concurrent use.
type Service struct {
	Formats   sig.Formats // the types of signature that are served
	Keys      Keys
	Policy    Policy
	Snapshots Snapshots
	Spool     Spool
	Now       func() time.Time
	Zone      *time.Location // of texts in documents, such as a visible stamp; nil: UTC
	// Results is the spool of results on their way, and of documents to encrypt: its files are sealed, because
	// both may be plaintext.
	// nil: Spool.
	Results Spool

	// Evidence supplies time stamps and revocation data. If it is nil, the formats refuse
	// the levels that need them.
	Evidence sig.Evidence
	// Anchors returns the trusted roots and other known certificates. nil: none are known, and signatures are
	// raised over any time stamp.
	Anchors func(ctx context.Context) (roots, others []*x509gost.Certificate, err error)
	// Confirmation is asked before a key of ours is used. If it is nil, no action needs a
	// confirmation.
	Confirmation Confirmation
	// Powers judges the powers of attorney of signers; nil: the parameter Power is refused.
	Powers *Powers
	// BatchItems bounds the documents of a batch; 0 is 10 000.
	BatchItems int

	// Fields for two steps.
	Prepared  PreparedStore
	Blobs     Blobs
	Container Container
	Rand      io.Reader
	TwoStep   TwoStep

	// Anonymous returns what a document of size bytes from a caller without a token may cost, or all
	// documents of one signature.
	// nil: as much as any other.
	Anonymous func(size int64) budget.Limits

	// Places are where large documents of callers without a token are hashed and stored while
	// they are received. They yield to documents of others. nil: nothing waits for a place.
	Places *budget.Places

	// Made is called for each signature that was made, if it is not nil: with the type as the
	// specification writes it.
	Made func(signatureType string, su *suite.Suite)
}

// bounded returns a context for the documents of a caller's job. anonymous: the caller has no token.
func (s *Service) bounded(ctx context.Context, anonymous bool, job *sig.Job) context.Context {
	if !anonymous || s.Anonymous == nil {
		return ctx
	}
	return budget.With(ctx, s.Anonymous(job.Size()))
}

func (s *Service) made(signatureType string, su *suite.Suite) {
	if s.Made != nil {
		s.Made(signatureType, su)
	}
}

// anonymousHash is the hash of documents of callers without a token while they are
// received. The certificate comes later in the request, and its key most likely uses this
// hash.
var anonymousHash = suite.Streebog256

// NewIntake returns an intake for a document of the caller of snap; nil: a caller without
// a token. It hashes with the algorithm of the caller's default certificate, which most
// requests use. This is only a guess: the document is read again if the order names
// another type of key, so the snapshot may have any age.
func (s *Service) NewIntake(ctx context.Context, snap *Snapshot) (*Intake, error) {
	if snap == nil {
		in := newIntake(s.Spool, anonymousHash)
		if s.Places != nil {
			in.room.enter = func() (func(), error) { return s.Places.Enter(ctx) }
		}
		return in, nil
	}
	if s.Places != nil {
		s.Places.Yield()
	}
	c, err := s.Keys.ResolveIn(ctx, &snap.Keys, snap.UserID, "")
	switch {
	case err == nil:
		return newIntake(s.Spool, c.X509.Suite.Hash), nil
	case fault.Is(err, fault.InvalidCertificate):
		return newIntake(s.Spool, nil), nil // no default: the order must name a certificate
	}
	return nil, err
}

// NewSealed returns an intake for a document of a signed-in caller that is to be encrypted or decrypted. What does not
// fit into memory is in the spool of results, whose files are sealed.
func (s *Service) NewSealed() *Intake {
	if s.Places != nil {
		s.Places.Yield()
	}
	return s.NewScratch()
}

// NewScratch returns a document in memory or in the spool of results, for results of operations.
func (s *Service) NewScratch() *Intake {
	if s.Results != nil {
		return newIntake(s.Results, nil)
	}
	return newIntake(s.Spool, nil)
}

// Sign makes one signature. Faults: content_required, invalid_signature_params,
// invalid_content, invalid_certificate, invalid_pin, access_denied, and Failed if other
// services did not deliver the evidence that a level needs. After it returns a Result,
// only writing it can still fail.
func (s *Service) Sign(ctx context.Context, who audit.Principal, o *SignOrder) (Result, error) {
	if o.Content.isEmpty() {
		return nil, fault.New(fault.ContentRequired, "Content is missing or empty: send the document, hash or message as Base64")
	}
	if err := s.checkFiles(o.Files); err != nil {
		return nil, err
	}
	t, err := s.request(ctx, o.Type, o.Params)
	if err != nil {
		return nil, err
	}
	by, err := s.signer(ctx, who, o.Snapshot, policy.SignDocument, o.Certificate)
	if err != nil {
		return nil, err
	}
	job := s.job(t, by, o.Content, sourceOf(o.Original, nil))
	job.Name, job.Files = o.Name, filesOf(o.Files, job.Digests != nil)
	for again := false; ; again = true {
		result, _, err := s.make(ctx, t.format, job, by, o.PIN)
		var room *sig.ErrRoom
		if !again && errors.As(err, &room) {
			// A token or a chain is larger than expected. The first value was not
			// returned to the client, and its document does not exist.
			job.Room = room.Need
			continue
		}
		if err != nil {
			return nil, translate(err)
		}
		s.made(t.name, by.certificate.X509.Suite)
		if o.Noted != nil {
			o.Noted(direct(t, by, o.Content))
		}
		return result, nil
	}
}

// value is the value of a signature, and the digest that was signed.
type value struct {
	digest suite.Digest
	bytes  []byte
}

// make makes the signed document in one pass.
func (s *Service) make(ctx context.Context, format sig.Format, job *sig.Job, by *signer, pin string) (Result, value, error) {
	if err := s.Powers.mandated(ctx, by.who.UserID, job.Params, job.Certificate); err != nil {
		return nil, value{}, err
	}
	prepared, err := format.Prepare(ctx, job)
	if err != nil {
		return nil, value{}, err
	}
	values, err := s.values(ctx, by, pin, []suite.Digest{prepared.Digest})
	if err != nil {
		return nil, value{}, err
	}
	if err := by.check(prepared.Digest, values[0]); err != nil {
		return nil, value{}, err
	}
	// The state is converted to bytes and back here too, so that one step and two steps
	// finish from the same state.
	result, err := format.Finish(ctx, job, prepared.State, values[0])
	return result, value{prepared.Digest, values[0]}, err
}

// signer is a certificate with a key of ours, found valid at a time, and its caller may
// act.
type signer struct {
	who         audit.Principal
	action      policy.Action
	snapshot    *Snapshot // on which this was decided
	certificate *keys.Certificate
	chain       []*x509gost.Certificate // its issuers
	at          time.Time
	confirmed   bool // the user has confirmed exactly this, and the record is leased
}

// signer checks whether who may do action at once, then finds and verifies the
// certificate with this identifier.
func (s *Service) signer(ctx context.Context, who audit.Principal, snap *Snapshot, action policy.Action, identifier string) (*signer, error) {
	snap, err := s.Current(ctx, who, snap)
	if err != nil {
		return nil, err
	}
	if err := s.permit(snap, action); err != nil {
		return nil, err
	}
	return s.valid(ctx, who, snap, action, identifier)
}

// confirmable is signer for an action that the user confirms first: only the access policy
// is checked.
func (s *Service) confirmable(ctx context.Context, who audit.Principal, snap *Snapshot, action policy.Action, identifier string) (*signer, error) {
	snap, err := s.Current(ctx, who, snap)
	if err != nil {
		return nil, err
	}
	if err := s.Policy.PermitBy(snap.Access, action); err != nil {
		return nil, err
	}
	return s.valid(ctx, who, snap, action, identifier)
}

// valid finds and verifies the certificate with this identifier.
func (s *Service) valid(ctx context.Context, who audit.Principal, snap *Snapshot, action policy.Action, identifier string) (*signer, error) {
	cert, err := s.Keys.ResolveIn(ctx, &snap.Keys, who.UserID, identifier)
	if err != nil {
		return nil, err
	}
	now := s.Now()
	verdict, err := s.Keys.JudgeIn(ctx, &snap.Keys, cert, now)
	if err != nil {
		return nil, err
	}
	return &signer{who: who, action: action, snapshot: snap, certificate: cert, chain: verdict.Chain[1:], at: now}, nil
}

// check is the only full verification of the value. It detects a wrong computation, which
// could reveal the key if the value were published, and a key that does not belong to the
// certificate.
func (by *signer) check(d suite.Digest, value []byte) error {
	return by.checked(by.certificate.Verify(d, value))
}

// checkMany is check for the values of a batch, which are checked in groups.
func (by *signer) checkMany(ctx context.Context, d []suite.Digest, values [][]byte) error {
	return each(ctx, (len(d)+sideBySide-1)/sideBySide, func(_ context.Context, group int) error {
		from, to := group*sideBySide, min(len(d), (group+1)*sideBySide)
		return by.checked(by.certificate.VerifyMany(d[from:to], values[from:to]))
	})
}

func (by *signer) checked(err error) error {
	if err != nil {
		return fmt.Errorf("signing: the value made with the key of certificate %d does not verify against it: %w", by.certificate.ID, err)
	}
	return nil
}

// source is a document with the digests that were computed while it was received.
type source interface {
	sig.Document
	digests() []suite.Digest
}

// kept is a document that was stored before. It is read when its digest is needed, unless this
// request has received it.
type kept struct {
	sig.Document
	received []suite.Digest
}

func (k kept) digests() []suite.Digest { return k.received }

// sourceOf returns the intake or, if there is none, the stored document. It returns nil
// if both are empty.
func sourceOf(in *Intake, stored source) source {
	switch {
	case !in.isEmpty():
		return in
	case stored != nil && stored.Size() > 0:
		return stored
	}
	return nil
}

// job returns the job of one signature of a signer. original is nil if there is none.
func (s *Service) job(t *request, by *signer, content, original source) *sig.Job {
	job := &sig.Job{
		Document:    content,
		Certificate: by.certificate.X509,
		Chain:       by.chain,
		Params:      t.params,
		Request:     t.read,
		Zone:        s.Zone,
		TSPAddress:  t.address,
		Time:        by.at,
		Evidence:    s.Evidence,
		Again:       true, // Sign and SignMany retry
	}
	if original != nil {
		// The signature is over the original. The message with its other signatures is
		// only read.
		job.Original, job.OriginalDigests = original, original.digests()
	} else if _, parts := t.format.(sig.PartSigner); !parts {
		job.Digests = content.digests()
	}
	return job
}

// Confirmation decides which actions of a user need the owner's consent before they are
// done.
type Confirmation interface {
	NeedsConfirmationBy(operation policy.Set, a policy.Action) bool
}
