// SPDX-License-Identifier: Apache-2.0

// Package retention keeps signed documents of the document store for a time, and their signatures valid: each gets the next
// archive time stamp before the last one ends, in the background, without a key of a signer. Begin with [Service.Set] and
// [Service.RenewDue].
//
// A renewal is an operation of the kind [Kind]. It replaces the content of the document in place, in the transaction that
// ends the operation and writes when the next renewal is due. One process at a time renews a document, by a lease, and only
// its holder can write the result. So a document has its old content until the new one is durable and committed, whatever
// dies meanwhile.
//
// A failure that may pass is tried again with growing pauses for as long as it takes, each time with all time-stamp services
// in their order. Any other failure is shown, told to the owner once, and tried again once a day.
package retention

import (
	"context"
	"io"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lease"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
	"tamga/sig"
)

// Origin says who gave a document its retention, and so who may end it.
type Origin string

// The origins.
const (
	ByOwner  Origin = "owner"  // the owner, who may end it
	ByPolicy Origin = "policy" // the policy of the owner's group: only an operator may end it
)

// Retained is a document with a retention.
type Retained struct {
	Document      string // identifier
	UserID, Login string // of the owner
	Name          string // of the document
	Origin        Origin
	KeepUntil     time.Time
	GoodUntil     time.Time // end of the last archive time stamp; zero before the first renewal
	RenewedAt     time.Time // zero: never
	RenewAt       time.Time // when the next renewal is due
	DueAt         time.Time // when it is tried: later than RenewAt after a failure, and not later than KeepUntil but for an attempt that did not end
	Attempts      int       // since the last success
	Refused       bool      // the last failure cannot pass by itself
	Failure       string    // of the last attempt; "": it was a success
}

// Due reports whether a renewal was due at a time.
func (r *Retained) Due(now time.Time) bool { return !now.Before(r.RenewAt) }

// Overdue reports whether a renewal has been due for longer than it should take.
func (r *Retained) Overdue(now time.Time) bool { return r.Due(now.Add(-Patience)) }

// Patience is how long a renewal may be due before it is overdue.
const Patience = 24 * time.Hour

// Filter selects retained documents: those of an owner, or of all users.
type Filter struct {
	UserID string    // "": of all
	Until  time.Time // due by then; zero: all
	// After is the place after which a list goes on: RenewAt and Document count.
	After Retained
	Limit int
}

// Figures are what metrics show. Counts are at most of MostCounted documents.
type Figures struct {
	Retained, Due, Overdue, Refused int64
	Oldest                          time.Time // RenewAt of the one that has been due for the longest time; zero without one
}

// Store stores retentions, in the database of the documents and of the operations.
type Store interface {
	Atomic(ctx context.Context, fn func(ctx context.Context) error) error
	// PutRetention adds a retention, or replaces Origin, RenewAt and DueAt of one.
	PutRetention(ctx context.Context, r *Retained) error
	// Retention returns the retention of a document, and false without one.
	Retention(ctx context.Context, document string) (Retained, bool, error)
	// EndRetention deletes a retention, and so its lease.
	EndRetention(ctx context.Context, document string) error
	// Retentions returns retained documents in the order in which their renewals are due.
	Retentions(ctx context.Context, f Filter) ([]Retained, error)
	// RetentionFigures counts what is due at now and was due at overdue.
	RetentionFigures(ctx context.Context, now, overdue time.Time) (Figures, error)

	// ClaimRenewal leases the document that has been due for the longest time, and counts the attempt. If it is not finished, it is
	// due again after the end of the lease and a pause for each attempt, up to the longest one: a document that ends its process
	// does not come first forever.
	ClaimRenewal(ctx context.Context, l lease.Lease, now time.Time, pause, longest time.Duration) (Retained, bool, error)
	// ExtendRenewal extends a lease. It reports false if the lease is lost.
	ExtendRenewal(ctx context.Context, document string, l lease.Lease) (bool, error)
	// FinishRenewal writes all but the owner, Origin and KeepUntil, and ends the lease. It reports false if the lease is
	// lost.
	FinishRenewal(ctx context.Context, r *Retained, token string) (bool, error)
}

// Documents is the document store; *document.Service satisfies it.
type Documents interface {
	Open(ctx context.Context, who audit.Principal, id string) (*document.Stored, error)
	Info(ctx context.Context, who audit.Principal, id string) (document.Info, error)
	Retain(ctx context.Context, who audit.Principal, id string, until time.Time) error
	Patch(ctx context.Context, who audit.Principal, id string, c document.Change) error
	Replace(ctx context.Context, who audit.Principal, id string, src io.WriterTo, needed bool) (*document.Replacement, error)
}

// Signer adds archive time stamps; *signing.Service satisfies it.
type Signer interface {
	Renewable(ctx context.Context, d sig.Document) error
	Renew(ctx context.Context, o *signing.RenewOrder) (*signing.Renewed, error)
}

// Events tell of renewals; *notify.Service satisfies it.
type Events interface {
	Emit(ctx context.Context, e notify.Event) error
}

// Settings are the rules of renewals. A zero field means its default.
type Settings struct {
	// Margin is how long before its end an archive time stamp is renewed; default 180 days. It is at most a third of the
	// time that the new one has left.
	Margin time.Duration
	// Longest is the longest retention; default 100 years.
	Longest time.Duration
	Lease   time.Duration // after which the work of a process that died is taken over; default 1 min
	Pause   time.Duration // after a first failure, doubled from then on; default 1 min
}

const (
	day          = 24 * time.Hour
	longestPause = time.Hour
	// refusedPause is the pause after a failure that cannot pass by itself.
	refusedPause = day
	// sameEnd is the pause after a renewal that ends when the one before did.
	sameEnd = 30 * day
	// inRow is how many failures that may pass end a round, since a service that does not answer delays each of them.
	inRow = 3
)

// Service keeps documents and renews their signatures. Its fields are set before first use.
type Service struct {
	Store      Store
	Documents  Documents
	Operations *operation.Service // with the row of Kind
	Signer     Signer
	// Services returns the addresses of the time-stamp services in the order in which they are tried.
	Services func(ctx context.Context) ([]string, error)
	Events   Events
	Now      func() time.Time
	Rand     io.Reader
	Settings Settings
	Failed   func(error)          // for errors in the background; may be nil
	Counted  func(outcome string) // is called for each attempt with one of Outcomes; may be nil
}

// Outcomes of attempts.
const (
	Renewed = "renewed"
	Delayed = "delayed" // a failure that may pass
	Refused = "refused" // one that cannot
)

// Outcomes lists them.
var Outcomes = []string{Renewed, Delayed, Refused}

func (s *Service) settings() Settings {
	out := s.Settings
	for _, d := range []struct {
		setting *time.Duration
		value   time.Duration
	}{{&out.Margin, 180 * day}, {&out.Longest, 36525 * day}, {&out.Lease, time.Minute}, {&out.Pause, time.Minute}} {
		if *d.setting == 0 {
			*d.setting = d.value
		}
	}
	return out
}

// Set keeps a document of who until a time, and renews its signatures until then. Who set the time may change it; a time that
// the policy of the group gave can only become later. Faults: object_not_found; invalid_parameters for a time that is over or
// too far; invalid_content for a document whose signatures cannot be renewed; access_denied.
func (s *Service) Set(ctx context.Context, who audit.Principal, id string, until time.Time) (Retained, error) {
	now := s.now()
	most := now.Add(s.settings().Longest)
	if !until.After(now) || until.After(most) {
		return Retained{}, fault.Newf(fault.InvalidParameters, "the retention ends at %s: choose a time after now, at most until %s", until.UTC().Format(time.DateOnly), most.UTC().Format(time.DateOnly))
	}
	d, err := s.Documents.Open(ctx, who, id)
	if err != nil {
		return Retained{}, err
	}
	err = s.Signer.Renewable(ctx, d)
	if e := d.Close(); err == nil {
		err = e
	}
	if err != nil {
		return Retained{}, err
	}
	var r Retained
	return r, s.Store.Atomic(ctx, func(ctx context.Context) error {
		var found bool
		var err error
		if d.Info.Temporary() { // it becomes permanent, and the policy of the group may keep it longer
			permanent := false
			if err := s.Documents.Patch(ctx, who, id, document.Change{Temporary: &permanent}); err != nil {
				return fault.Rollback(err)
			}
		}
		if r, found, err = s.Store.Retention(ctx, d.Info.ID); err != nil {
			return err
		}
		switch {
		case !found:
			r = Retained{Document: d.Info.ID, UserID: who.UserID, Login: who.Login, Name: d.Info.Name, Origin: ByOwner, RenewAt: now}
		case r.Origin != ByOwner && until.Before(r.KeepUntil):
			return fault.Rollback(byPolicy())
		}
		r.KeepUntil = until.UTC().Truncate(time.Millisecond)
		r.DueAt = earlier(r.RenewAt, r.KeepUntil)
		put := func() error { return s.Store.PutRetention(ctx, &r) }
		if found { // the row before the document, as a renewal locks them
			if err := put(); err != nil {
				return err
			}
			put = func() error { return nil }
		}
		if err := s.Documents.Retain(ctx, who, id, r.KeepUntil); err != nil {
			return fault.Rollback(err)
		}
		return put()
	})
}

// Kept gives documents that were stored a moment ago the retention that the policy of their owners' group wants, in the
// transaction of ctx. One that is no signed document loses it again when its renewal is tried.
func (s *Service) Kept(ctx context.Context, documents []document.Info) error {
	now := s.now()
	for i := range documents {
		d := &documents[i]
		if err := s.Store.PutRetention(ctx, &Retained{Document: d.ID, UserID: d.UserID, Origin: ByPolicy, RenewAt: now, DueAt: earlier(now, d.KeepUntil)}); err != nil {
			return err
		}
	}
	return nil
}

func byPolicy() error {
	return fault.New(fault.AccessDenied, "the policy of your group gave the document its retention: only an operator can end it earlier")
}

// End ends the retention of a document of who. What the policy of the group gave, only an operator can end: EndFor. Faults:
// object_not_found, access_denied.
func (s *Service) End(ctx context.Context, who audit.Principal, id string) error {
	d, err := s.Documents.Info(ctx, who, id)
	if err != nil {
		return err
	}
	return s.end(ctx, d.ID, false)
}

// EndFor ends the retention of a document of any user. The caller has checked that an operator may. The fault is
// object_not_found.
func (s *Service) EndFor(ctx context.Context, id string) error { return s.end(ctx, id, true) }

func (s *Service) end(ctx context.Context, id string, operator bool) error {
	return s.Store.Atomic(ctx, func(ctx context.Context) error {
		r, found, err := s.Store.Retention(ctx, id)
		switch {
		case err != nil:
			return err
		case !found:
			return notRetained()
		case !operator && r.Origin != ByOwner:
			return fault.Rollback(byPolicy())
		}
		if err := s.Store.EndRetention(ctx, id); err != nil {
			return err
		}
		err = s.Documents.Retain(ctx, audit.Principal{UserID: r.UserID}, id, time.Time{})
		if fault.Is(err, fault.NotFound) { // it is being removed
			return nil
		}
		return err
	})
}

// Of returns the retention of a document of who. The fault is object_not_found.
func (s *Service) Of(ctx context.Context, who audit.Principal, id string) (Retained, error) {
	d, err := s.Documents.Info(ctx, who, id)
	if err != nil {
		return Retained{}, err
	}
	return s.Find(ctx, d.ID)
}

// Find returns the retention of a document of any user. The caller has checked that it may be seen. The fault is object_not_found.
func (s *Service) Find(ctx context.Context, id string) (Retained, error) {
	r, found, err := s.Store.Retention(ctx, id)
	if err == nil && !found {
		err = notRetained()
	}
	return r, err
}

func notRetained() error { return fault.New(fault.NotFound, "the document has no retention") }

// maxPage is the most documents of one call of List.
const maxPage = 200

// List returns retained documents in the order in which their renewals are due. The caller has checked whose.
func (s *Service) List(ctx context.Context, f Filter) ([]Retained, error) {
	f.Limit = min(max(f.Limit, 1), maxPage)
	return s.Store.Retentions(ctx, f)
}

// Figures returns what metrics show.
func (s *Service) Figures(ctx context.Context) (Figures, error) {
	now := s.now()
	return s.Store.RetentionFigures(ctx, now, now.Add(-Patience))
}

func (s *Service) now() time.Time { return s.Now().UTC().Truncate(time.Millisecond) }

// earlier returns the earlier one of two times.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// later returns the later one of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
