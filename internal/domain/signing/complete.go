// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lease"
	"tamga/internal/domain/operation"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// CompleteOrder is the second of two steps. Repeated values of the first step are
// optional, but they must agree with it.
type CompleteOrder struct {
	ID       string
	Value    []byte            // the signature over Prepared.Hash
	Type     string            // repeated; empty: omitted
	Params   map[string]string // repeated; empty values: omitted
	Hash     []byte            // Prepared.Hash repeated; nil: omitted
	Original *Intake           // OriginalDocument repeated; nil: omitted

	// Keep, if not nil, is called with the document before the object is spent, and returns
	// what is stored in the same step.
	Keep func(ctx context.Context, r Result) (audit.Beside, error)
}

// Completed is a signed document made in two steps. Write it, then close it to free the
// stored documents.
type Completed struct {
	Result
	close func() error
}

// Close must be called only once.
func (c *Completed) Close() error { return c.close() }

// Complete puts a client's signature value into the object that Prepare stored.
//
// Only a value that verifies spends the object, and only together with a document made of
// it. An earlier failure leaves the object as it was, except that the fifth wrong value
// discards it. A spent object stays spent: a client that did not get the answer must
// prepare again.
//
// A completion that asks a time-stamp service or reads stored documents leases the object meanwhile.
// The lease is short, and the process extends it, so soon after the death of a process another
// request can complete the object. Any other completion ends at once and has no lease: of several at
// the same time one spends the object, and the documents of the others are dropped.
//
// What a user prepared is completed by the same user, also if an operator acts as the user in
// either step. What was prepared without a token is completed by every caller who knows its
// identifier.
//
// Faults: object_not_found for an object of another user; invalid_object_state for one that
// is unknown, expired, spent or discarded, and with After for one that is being completed;
// invalid_signature_params for a wrong
// value and for values that do not agree with the first step; those of Sign.
func (s *Service) Complete(ctx context.Context, who audit.Principal, o *CompleteOrder) (*Completed, error) {
	if s.Prepared == nil || s.Blobs == nil || s.Rand == nil {
		return nil, errNoTwoSteps
	}
	record, err := s.usable(ctx, who, o.ID)
	if err != nil {
		return nil, err
	}
	stored, job, err := readJob(record.Job)
	if err != nil {
		return nil, err
	}
	if err := s.agrees(o, record, stored); err != nil {
		return nil, err
	}
	if err := s.Powers.mandated(ctx, who.UserID, job.Params, job.Certificate); err != nil {
		return nil, err
	}
	value, ok := acceptable(job.Certificate, stored.Digest, o.Value)
	if !ok {
		return nil, s.wrongValue(ctx, who, record, stored)
	}
	c := completion{record, stored, job, value, ""}
	if job.TSPAddress == "" && len(record.documents(stored.files())) == 0 {
		return s.complete(ctx, who, o, &c)
	}
	rules := lease.Rules{Life: s.TwoStep.withDefaults().Lease, Now: s.Now, Rand: s.Rand}
	l, err := rules.New()
	if err != nil {
		return nil, err
	}
	claimed, err := s.Prepared.ClaimPrepared(ctx, record.ID, l.Token, s.Now(), l.Until, wrongValues)
	if err != nil {
		return nil, err
	}
	if !claimed {
		return nil, s.taken(ctx, who, o.ID)
	}
	c.lease = l.Token
	// The context of the work goes on when the lease is lost: the object cannot be spent then, and
	// the fault says what became of it.
	_, stop := rules.Keep(ctx, l, func(ctx context.Context, l lease.Lease) (bool, error) {
		return s.Prepared.ExtendPrepared(ctx, record.ID, l.Token, l.Until)
	})
	defer stop()
	completed, err := s.complete(ctx, who, o, &c)
	if err != nil {
		return nil, errors.Join(err, s.Prepared.ReleasePrepared(context.WithoutCancel(ctx), record.ID, l.Token))
	}
	return completed, nil
}

// completion is a prepared object with a value that verifies.
type completion struct {
	record *PreparedRecord
	stored *storedJob
	job    *sig.Job
	value  []byte
	lease  string // empty: without one
}

// complete makes the document and spends the object.
func (s *Service) complete(ctx context.Context, who audit.Principal, o *CompleteOrder, c *completion) (_ *Completed, err error) {
	record, stored, job := c.record, c.stored, c.job
	_, format := s.Formats.Named(record.Type)
	if format == nil {
		return nil, fmt.Errorf("signing: a prepared object of type %q, which this release does not serve", record.Type)
	}
	job.Evidence = s.Evidence
	if _, secret := s.separate(o.Params); len(secret) > 0 {
		job.Params = maps.Clone(job.Params)
		maps.Copy(job.Params, secret)
	}
	var open []io.Closer
	closeAll := func() error {
		var errs []error
		for _, c := range open {
			errs = append(errs, c.Close())
		}
		return errors.Join(errs...)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll())
		}
	}()
	type toOpen struct {
		name string
		to   *sig.Document
	}
	documents := []toOpen{{record.Document, &job.Document}, {record.Original, &job.Original}}
	for i, f := range stored.Files {
		documents = append(documents, toOpen{f.Blob, &job.Files[i].Document})
	}
	for _, d := range documents {
		if d.name == "" {
			continue
		}
		b, err := operation.OpenKept(ctx, s.Blobs, d.name)
		if err != nil {
			return nil, err
		}
		open = append(open, b)
		*d.to = b
	}
	if err := sameOriginal(ctx, o.Original, job.Original); err != nil {
		return nil, err
	}
	result, err := format.Finish(s.bounded(ctx, strings.HasPrefix(record.Caller, OfAddress), job), job, stored.State, c.value)
	if err != nil {
		return nil, translate(err)
	}
	var kept audit.Beside
	if o.Keep != nil {
		if kept, err = o.Keep(ctx, result); err != nil {
			return nil, err
		}
	}
	spent, err := s.Prepared.SpendPrepared(ctx, record.ID, c.lease, s.Now(), wrongValues, kept)
	if err != nil {
		return nil, err
	}
	if !spent {
		return nil, s.taken(ctx, who, o.ID)
	}
	s.made(record.Type, job.Certificate.Suite)
	return &Completed{result, func() error { return errors.Join(closeAll(), s.forget(ctx, record.documents(stored.files()))) }}, nil
}

// usable returns an object that who may complete, unless another request is completing it.
func (s *Service) usable(ctx context.Context, who audit.Principal, id string) (*PreparedRecord, error) {
	record, found, err := s.Prepared.FindPrepared(ctx, strings.TrimSpace(id))
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, objectState("is not known here, or its time is over")
	case strings.HasPrefix(record.Caller, ofUser) && record.Caller != callerOf(who, ""):
		return nil, fault.New(fault.NotFound, "CacheObjectId: the object was prepared by another user: send the access token of the user who prepared it")
	case !record.SpentAt.IsZero():
		return nil, objectState("was used already: it can be used once")
	case !s.Now().Before(record.ExpiresAt):
		return nil, objectState("has expired")
	case record.Failures >= wrongValues:
		return nil, objectState("was discarded after wrong signature values")
	}
	return record, nil
}

// taken returns the fault for an object that another request has leased, or has changed
// since it was read. A lease passes, so the fault says when to repeat the request.
func (s *Service) taken(ctx context.Context, who audit.Principal, id string) error {
	if _, err := s.usable(ctx, who, id); err != nil {
		return err
	}
	return fault.New(fault.InvalidObjectState, "CacheObjectId: the prepared object is being completed by another request; repeat the request a little later").
		Until(s.TwoStep.withDefaults().Lease)
}

func objectState(what string) error {
	return fault.New(fault.InvalidObjectState, "CacheObjectId: the prepared object "+what+"; presign again")
}

// wrongValue counts a value that does not verify.
func (s *Service) wrongValue(ctx context.Context, who audit.Principal, record *PreparedRecord, stored *storedJob) error {
	n, counted, err := s.Prepared.FailPrepared(ctx, record.ID, s.Now(), wrongValues)
	if err != nil {
		return err
	}
	if !counted {
		return s.taken(ctx, who, record.ID)
	}
	const what = "SignatureValue is no signature over HashValue by the key of RawCertificate"
	if n < wrongValues {
		return fault.Newf(fault.InvalidSignatureParams, "%s; after %d more wrong ones the prepared object is discarded", what, wrongValues-n)
	}
	err = fault.New(fault.InvalidSignatureParams, what+"; the prepared object is discarded: presign again")
	return errors.Join(err, s.forget(ctx, record.documents(stored.files())))
}

// acceptable returns the value in the form in which it verifies: as it was sent, or with
// its bytes reversed, because programs based on the CryptoAPI of Windows return values of
// GOST keys in this order.
func acceptable(cert *x509gost.Certificate, digest, value []byte) ([]byte, bool) {
	d := suite.Digest{Hash: cert.Suite.Hash, Sum: digest}
	if cert.Suite.Verify(cert.PublicKey, d, value) == nil {
		return value, true
	}
	reversed := slices.Clone(value)
	slices.Reverse(reversed)
	if cert.Suite.Verify(cert.PublicKey, d, reversed) == nil {
		return reversed, true
	}
	return nil, false
}

// agrees compares the repeated values of the second step with the first one. A difference
// costs no attempt, because the signature value was not checked yet.
func (s *Service) agrees(o *CompleteOrder, record *PreparedRecord, stored *storedJob) error {
	if name := s.typeName(o.Type); name != "" && !strings.EqualFold(name, record.Type) {
		return contradiction("SignatureType", "is %q, but the object was prepared for %s", abbreviate(name), record.Type)
	}
	if o.Hash != nil && !bytes.Equal(o.Hash, stored.Digest) {
		return contradiction("SignedHashValue", "is not the HashValue that was given for this object")
	}
	given := sig.Params(stored.Params).Reader()
	repeated, _ := s.separate(o.Params)
	keys := make([]string, 0, len(repeated))
	for key := range repeated {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		again := strings.TrimSpace(o.Params[key])
		if again == "" || equalParameter(again, given.String(key)) {
			continue
		}
		name := abbreviate(strings.TrimSpace(key))
		if !given.Given(key) {
			return contradiction(name, "was not given when the object was prepared: give it to presign")
		}
		return contradiction(name, "differs from what was given when the object was prepared")
	}
	return nil
}

// equalParameter compares two values of a parameter. Letter case is ignored in the names
// of enumerations and in booleans, and a boolean may be a number. In values that may be a
// text or Base64, letter case matters.
func equalParameter(a, b string) bool {
	if a == b {
		return true
	}
	word := func(s string) string {
		switch s = strings.ToLower(s); s {
		case "true":
			return "1"
		case "false":
			return "0"
		}
		return s
	}
	const longest = 16 // of the names of enumerations
	return len(a) <= longest && len(b) <= longest && word(a) == word(b)
}

func contradiction(key, format string, args ...any) error {
	return fault.Newf(fault.InvalidSignatureParams, key+": "+format, args...)
}

// sameOriginal compares a repeated OriginalDocument with the stored one.
func sameOriginal(ctx context.Context, again *Intake, kept sig.Document) error {
	if again.isEmpty() {
		return nil
	}
	differs := contradiction("OriginalDocument", "differs from what was given when the object was prepared")
	if kept == nil || kept.Size() != again.Size() {
		return differs
	}
	const piece = 64 << 10
	one, other := make([]byte, piece), make([]byte, piece)
	for at := int64(0); at < kept.Size(); at += piece {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(piece, kept.Size()-at)
		if err := errors.Join(operation.ReadFull(again, one[:n], at), operation.ReadFull(kept, other[:n], at)); err != nil {
			return err
		}
		if !bytes.Equal(one[:n], other[:n]) {
			return differs
		}
	}
	return nil
}
