// Package signing owns the making of a signature as the service means it: who
// may sign what with which key, in which order the steps happen, and that no
// value leaves before it verified against its certificate. It conducts policy,
// keys and the signature formats; it knows no format by name.
//
// The order of one signature (docs/architecture.md, "Two requests on their way
// through"): policy, certificate and its standing, what to sign, the key, the
// check of the value, the document. Everything a client can get wrong is looked
// at before its PIN costs an attempt. A batch takes each step for all its
// documents before the next one. Two steps (presign, postsign) are the same with
// a client's own key: what Prepare left behind is kept durably in between.
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
)

// Result is a signed document ready to be written out.
type Result = sig.Result

// Order is what a client asks for. Content and Original stay the caller's: the
// service reads them and closes neither.
type Order struct {
	Type        string            // name of a type in Service.Formats, in any letter case, or its number
	Params      map[string]string // Signature.Parameters without OriginalDocument
	Content     *Intake           // document, hash or message; nil or empty: content_required
	Original    *Intake           // OriginalDocument; nil when absent
	Certificate string            // identifier as text; "" and "0" are the default certificate
	PIN         string
	Snapshot    *Snapshot // read when the request came in; nil: one is read when it is needed
}

// Keys is what the service needs of the users' keys and certificates.
type Keys interface {
	ResolveIn(ctx context.Context, snap *keys.Snapshot, userID, identifier string) (*keys.Certificate, error)
	JudgeIn(ctx context.Context, snap *keys.Snapshot, c *keys.Certificate, at time.Time) (*chain.Verdict, error)
	SignIn(ctx context.Context, snap *keys.Snapshot, c *keys.Certificate, pin string, digests []suite.Digest) ([][]byte, error)
}

// Policy is what the service asks before it acts.
type Policy interface {
	PermitBy(access policy.Set, a policy.Action) error
	PermitType(signatureType string, overHash bool) error
	TSPAddress(ctx context.Context, requested string, present bool) (string, error)
}

// Service makes signatures. All fields are set before first use and not changed
// afterwards; it is safe for concurrent use.
type Service struct {
	Formats   sig.Formats // the types of signature that are served
	Keys      Keys
	Policy    Policy
	Snapshots Snapshots
	Spool     Spool
	Now       func() time.Time

	// Evidence is what time stamps and revocation data come from; nil: the levels
	// that need them are refused by their format.
	Evidence sig.Evidence
	// Confirmation is asked before a key of ours is used; nil: nothing needs it.
	Confirmation Confirmation
	// BatchItems bounds the documents of a batch; 0 is 10 000.
	BatchItems int

	// What the two steps need besides.
	Prepared  PreparedStore
	Blobs     Blobs
	Container Container
	Rand      io.Reader
	TwoStep   TwoStep
}

// anonymousHash is what a document of a caller without a token is digested with
// on the way in: its certificate comes later in the request and belongs most
// likely to a key of this hash.
var anonymousHash = suite.Streebog256

// NewIntake opens room for a document of the caller that snap is of; nil: a caller without a
// token. It digests on the way in for the default certificate of the caller, the one that most
// requests name. The certificate is no more than a guess here: the document is read again when
// the order turns out to name another kind of key, so the snapshot may have any age.
func (s *Service) NewIntake(ctx context.Context, snap *Snapshot) (*Intake, error) {
	if snap == nil {
		return newIntake(s.Spool, anonymousHash), nil
	}
	c, err := s.Keys.ResolveIn(ctx, &snap.Keys, snap.UserID, "")
	switch {
	case err == nil:
		return newIntake(s.Spool, c.X509.Suite.Hash), nil
	case fault.Is(err, fault.InvalidCertificate):
		return newIntake(s.Spool, nil), nil // no default: the order must name one
	}
	return nil, err
}

// Sign makes one signature. Faults: content_required, invalid_signature_params,
// invalid_content, invalid_certificate, invalid_pin, access_denied, and Failed
// when other people's services did not deliver the evidence a level needs. When
// it returns a Result, all that can still fail is writing it.
func (s *Service) Sign(ctx context.Context, who audit.Principal, o *Order) (Result, error) {
	if o.Content.isEmpty() {
		return nil, fault.New(fault.ContentRequired, "Content is missing or empty: send the document, hash or message as Base64")
	}
	t, err := s.terms(ctx, o.Type, o.Params)
	if err != nil {
		return nil, err
	}
	by, err := s.signer(ctx, who, o.Snapshot, policy.SignDocument, o.Certificate)
	if err != nil {
		return nil, err
	}
	job := s.job(t, by, o.Content, sourceOf(o.Original, nil))
	for again := false; ; again = true {
		result, err := s.make(ctx, t.format, job, by, o.PIN)
		var room *sig.ErrRoom
		if !again && errors.As(err, &room) {
			// A token or a chain larger than foreseen. Nobody has seen the first
			// value, and the document it was for does not exist.
			job.Room = room.Need
			continue
		}
		if err != nil {
			return nil, translate(err)
		}
		return result, nil
	}
}

// make goes once from the document to the signed one.
func (s *Service) make(ctx context.Context, format sig.Format, job *sig.Job, by *signer, pin string) (Result, error) {
	prepared, err := format.Prepare(ctx, job)
	if err != nil {
		return nil, err
	}
	values, err := s.values(ctx, by, pin, []suite.Digest{prepared.Digest})
	if err != nil {
		return nil, err
	}
	if err := by.check(prepared.Digest, values[0]); err != nil {
		return nil, err
	}
	// The state passes through bytes here too, so that one step finishes by what two steps read.
	return format.Finish(ctx, job, prepared.State, values[0])
}

// signer is a certificate whose key we hold, found good at a time for a caller who may act.
type signer struct {
	who         audit.Principal
	action      policy.Action
	snapshot    *Snapshot // that this was decided by
	certificate *keys.Certificate
	chain       []*x509gost.Certificate // its issuers
	at          time.Time
}

// signer asks whether who may do action at once, then finds and judges the certificate that who
// names.
func (s *Service) signer(ctx context.Context, who audit.Principal, snap *Snapshot, action policy.Action, identifier string) (*signer, error) {
	snap, err := s.current(ctx, who, snap)
	if err != nil {
		return nil, err
	}
	if err := s.permit(snap, action); err != nil {
		return nil, err
	}
	cert, err := s.Keys.ResolveIn(ctx, &snap.Keys, who.UserID, identifier)
	if err != nil {
		return nil, err
	}
	now := s.Now()
	verdict, err := s.Keys.JudgeIn(ctx, &snap.Keys, cert, now)
	if err != nil {
		return nil, err
	}
	return &signer{who, action, snap, cert, verdict.Chain[1:], now}, nil
}

// check is the only full verification on the way: it catches a computation gone
// wrong, which would otherwise publish what the key can be computed from, and a
// key that does not belong to the certificate.
func (by *signer) check(d suite.Digest, value []byte) error {
	c := by.certificate
	if err := c.Verify(d, value); err != nil {
		return fmt.Errorf("signing: the value made with the key of certificate %d does not verify against it: %w", c.ID, err)
	}
	return nil
}

// source is a document with the digests that were computed on its way in.
type source interface {
	sig.Document
	digests() []suite.Digest
}

// kept is a document that was kept before: it is read when its digest is needed.
type kept struct{ sig.Document }

func (kept) digests() []suite.Digest { return nil }

// sourceOf is an intake or, where there is none, a kept document; nil when both are
// empty.
func sourceOf(in *Intake, stored sig.Document) source {
	switch {
	case !in.isEmpty():
		return in
	case stored != nil && stored.Size() > 0:
		return kept{stored}
	}
	return nil
}

// job is one signature of a signer of ours. original is nil when there is none.
func (s *Service) job(t *terms, by *signer, content, original source) *sig.Job {
	job := &sig.Job{
		Document:    content,
		Certificate: by.certificate.X509,
		Chain:       by.chain,
		Params:      t.params,
		Time:        by.at,
		Evidence:    s.Evidence,
		Again:       true, // Sign and SignMany do
	}
	if original != nil {
		// What is signed is the original; the message around its other signatures
		// is only read.
		job.Original, job.OriginalDigests = original, original.digests()
	} else {
		job.Digests = content.digests()
	}
	return job
}

// Confirmation says which actions of a user need the owner's consent before they are
// done.
type Confirmation interface {
	NeedsConfirmationBy(operation policy.Set, a policy.Action) bool
}

// Canary makes and checks a signature with a fresh key of every suite and
// checks that a changed one is refused: what a process must be able to do before
// it says it is ready. It touches no stored key.
func Canary(rand io.Reader) error {
	for _, su := range suite.All() {
		key, err := su.Generate(rand)
		if err != nil {
			return fmt.Errorf("signing: canary: generating a %s key: %w", su.Name, err)
		}
		h := su.Hash.New()
		io.WriteString(h, "canary "+su.Name)
		d := suite.Digest{Hash: su.Hash, Sum: h.Sum(nil)}
		value, err := su.Sign(rand, key, d)
		if err != nil {
			return fmt.Errorf("signing: canary: signing with %s: %w", su.Name, err)
		}
		if err := su.Verify(key.Public(), d, value); err != nil {
			return fmt.Errorf("signing: canary: verifying with %s: %w", su.Name, err)
		}
		d.Sum[0] ^= 1
		if su.Verify(key.Public(), d, value) == nil {
			return fmt.Errorf("signing: canary: %s accepts a signature of another digest", su.Name)
		}
	}
	return nil
}
