// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lease"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
	"tamga/sig"
)

// Kind is the name of the kind of operation that renews a document.
const Kind = "renew"

// AuditRenewal is the name of a renewal in the audit log.
const AuditRenewal = "RenewDocument"

// OperationKind returns the row of the table for package operation. The service itself orders renewals, and no key is used: no policy of
// the owner is asked, and nothing is confirmed.
func (s *Service) OperationKind() operation.Kind {
	return operation.Kind{
		Name: Kind, Version: 1, Purpose: confirm.ForOperation, Recorded: true,
		Check: func(_ context.Context, o *operation.Order) (bool, error) {
			if _, ours := o.Fresh.(*attempt); !ours {
				return false, errors.New("retention: a renewal that has no lease")
			}
			return false, nil
		},
		Describe: func(context.Context, *operation.Order) (what.Fields, error) {
			return what.Fields{}, errors.New("retention: a renewal is not confirmed")
		},
		Do: s.do,
	}
}

// attempt is one attempt at a renewal.
type attempt struct {
	row   Retained
	token string // of the lease
}

type plan struct {
	Document string `json:"document"`
}

// RenewDue renews what is due until nothing is, or until several documents in a row have failed by something that may pass.
// Any number of processes may call it at the same time.
func (s *Service) RenewDue(ctx context.Context) error {
	var errs []error
	for failed := 0; failed < inRow && ctx.Err() == nil; {
		worked, passes, err := s.Next(ctx)
		if err != nil {
			errs = append(errs, err)
			failed++
		}
		if !worked {
			break
		}
		if passes {
			failed++
		} else if err == nil {
			failed = 0
		}
	}
	return errors.Join(errs...)
}

// Next makes one attempt at the renewal that has been due for the longest time. It reports false if none is due, and in
// passes whether it has failed by something that may pass.
func (s *Service) Next(ctx context.Context) (worked, passes bool, err error) {
	settings := s.settings()
	rules := lease.Rules{Life: settings.Lease, Now: s.Now, Rand: s.Rand, Failed: s.Failed}
	l, err := rules.New()
	if err != nil {
		return false, false, err
	}
	row, found, err := s.Store.ClaimRenewal(ctx, l, s.now(), settings.Pause, longestPause)
	if err != nil || !found {
		return false, false, err
	}
	err = rules.Hold(ctx, l, func(ctx context.Context, l lease.Lease) (bool, error) {
		return s.Store.ExtendRenewal(ctx, row.Document, l)
	}, func(ctx context.Context) error { return s.attempt(ctx, &attempt{row, l.Token}) })
	switch {
	case errors.Is(err, errUnsigned):
		err := s.over(ctx, &attempt{row, l.Token}, true)
		if errors.Is(err, lease.ErrLost) {
			err = nil
		}
		return true, false, err
	case err == nil, errors.Is(err, lease.ErrLost): // taken over by another process, or the retention was ended
		return true, false, nil
	case ctx.Err() != nil: // this process is stopping: another one continues at once
		ctx = context.WithoutCancel(ctx)
		err := s.Store.Atomic(ctx, func(ctx context.Context) error {
			return s.finish(ctx, &row, l.Token, func(r *Retained) { r.Attempts, r.DueAt = r.Attempts-1, s.now() })
		})
		if errors.Is(err, lease.ErrLost) {
			err = nil
		}
		return true, false, err
	}
	passes, err = s.failed(context.WithoutCancel(ctx), &row, l.Token, err)
	return true, passes, err
}

// attempt renews a document that is leased, or ends its retention if its time is over.
func (s *Service) attempt(ctx context.Context, a *attempt) error {
	if !a.row.KeepUntil.After(s.now()) {
		return s.over(ctx, a, false)
	}
	_, _, err := s.Operations.Start(ctx, &operation.Order{
		Kind: Kind, Form: operation.FormService, Owner: audit.Principal{UserID: a.row.UserID, Login: a.row.Login}, Confirming: operation.Refuses,
		Plan: plan{a.row.Document}, Inputs: []operation.Input{{RefID: a.row.Document, Name: a.row.Name}}, Fresh: a,
	})
	return err
}

// errUnsigned means that the policy of a group has kept a document that has no signature to renew.
var errUnsigned = errors.New("retention: not a signed document")

// over ends a retention whose time is over, or with early before that. The document stays, and its owner may remove it.
func (s *Service) over(ctx context.Context, a *attempt, early bool) error {
	return s.Store.Atomic(ctx, func(ctx context.Context) error {
		longer := false
		if err := s.finish(ctx, &a.row, a.token, func(r *Retained) {
			if longer = !early && r.KeepUntil.After(s.now()); longer { // its time was changed after the claim
				r.DueAt, r.Attempts = r.RenewAt, r.Attempts-1
			}
		}); err != nil || longer {
			return err
		}
		if err := s.Store.EndRetention(ctx, a.row.Document); err != nil || !early {
			return err
		}
		return s.Documents.Retain(ctx, audit.Principal{UserID: a.row.UserID}, a.row.Document, time.Time{})
	})
}

// finish ends the lease of a renewal with what set changes. Its row is that of the claim, with the end and the origin that the retention
// has now. The error is lease.ErrLost without the lease. It is called in a transaction.
func (s *Service) finish(ctx context.Context, r *Retained, token string, set func(r *Retained)) error {
	// The first write locks the row, so that its end does not change until the second one.
	held, err := s.Store.ExtendRenewal(ctx, r.Document, lease.Lease{Token: token, Until: s.now().Add(s.settings().Lease)})
	if err != nil {
		return err
	}
	if !held {
		return lease.ErrLost
	}
	now, found, err := s.Store.Retention(ctx, r.Document)
	if err != nil {
		return err
	}
	if !found {
		return lease.ErrLost
	}
	r.Origin, r.KeepUntil = now.Origin, now.KeepUntil
	set(r)
	r.DueAt = earlier(r.DueAt, r.KeepUntil)
	held, err = s.Store.FinishRenewal(ctx, r, token)
	if err == nil && !held {
		err = lease.ErrLost
	}
	return err
}

// do implements operation.Kind.Do.
func (s *Service) do(ctx context.Context, run *operation.Run) error {
	a := run.Order().Fresh.(*attempt)
	return run.Order().Each(ctx, func(_ int, in []operation.Opened) (err error) {
		if in[0].Err != nil {
			return in[0].Err
		}
		if a.row.Origin == ByPolicy && a.row.RenewedAt.IsZero() {
			// With signatures that have no archive level, it stays kept.
			if err := s.Signer.Renewable(ctx, in[0].Document); errors.Is(err, sig.ErrUnsigned) {
				return errUnsigned
			} else if err != nil {
				return err
			}
		}
		made, by, err := s.renewed(ctx, run.Owner, a.row.Document, in[0].Document)
		if errors.Is(err, sig.ErrUnsigned) && a.row.Origin == ByPolicy && a.row.RenewedAt.IsZero() {
			return errUnsigned
		}
		if err != nil {
			return err
		}
		// The first time stamp of an owner's own retention has a quota, or retentions that begin and end again would fill the disk.
		needed := a.row.Origin == ByPolicy || !a.row.RenewedAt.IsZero()
		content, err := s.Documents.Replace(ctx, run.Owner, a.row.Document, made, needed)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, content.Close()) }()
		after := a.row
		after.RenewedAt = s.now()
		after.GoodUntil = made.GoodUntil.UTC().Truncate(time.Millisecond)
		after.RenewAt = s.next(&a.row, after.RenewedAt, after.GoodUntil)
		after.DueAt = after.RenewAt
		after.Attempts, after.Refused, after.Failure = 0, false, ""
		d := &run.Documents[0]
		d.RefID, d.Name = d.OriginalRef, d.OriginalName
		run.Record(audit.Entry{Operation: AuditRenewal, Object: "document " + a.row.Document, Detail: fmt.Sprintf("good until %s, by %s", after.GoodUntil.Format(time.RFC3339), by)})
		err = run.Spend(ctx, func(ctx context.Context) (any, error) {
			if err := s.finish(ctx, &after, a.token, func(*Retained) {}); err != nil {
				return nil, err
			}
			if err := content.Record(ctx); err != nil {
				return nil, err
			}
			return nil, s.Events.Emit(ctx, notify.Event{Type: notify.DocumentRenewed, UserID: a.row.UserID, Detail: "document " + a.row.Document, When: after.GoodUntil})
		})
		if err == nil {
			s.counted(Renewed)
		}
		return err
	})
}

// next returns when an archive time stamp is renewed that was made now and is good until a time. A service that still has the certificate
// of the time stamp before gives nothing by being asked again soon: it is asked once in sameEnd, and a day before the end. One whose
// certificate has ended is not asked again within a day.
func (s *Service) next(before *Retained, now, until time.Time) time.Time {
	at := until.Add(-max(0, min(s.settings().Margin, until.Sub(now)/3)))
	if !before.RenewedAt.IsZero() && !until.After(before.GoodUntil) {
		at = later(at, earlier(now.Add(sameEnd), until.Add(-day)))
	}
	return later(at, now.Add(day))
}

// renewed returns the document with one more archive time stamp, and the service that gave it. The services are tried in
// their order.
func (s *Service) renewed(ctx context.Context, who audit.Principal, id string, d sig.Document) (made *signing.Renewed, by string, err error) {
	originals, done, err := s.originals(ctx, who, id)
	defer done()
	if err != nil {
		return nil, "", err
	}
	services, err := s.Services(ctx)
	if err != nil {
		return nil, "", err
	}
	err = fault.New(fault.Unavailable, "no time-stamp service is registered")
	for _, address := range services {
		for _, original := range originals {
			made, err = s.Signer.Renew(ctx, &signing.RenewOrder{Content: d, Original: original, Service: address})
			if err == nil {
				return made, address, nil
			}
			if ctx.Err() != nil || signing.Passes(err) {
				break
			}
		}
		if ctx.Err() != nil || !signing.Passes(err) {
			break
		}
	}
	return nil, "", err
}

// originals returns what a detached signature may be of: the documents that the store has it linked to and made from, and nil,
// which has the signature renewed as it was made. A document that is not the one which was signed is refused by the format,
// and then the next one is tried. The result may be read from them until done.
func (s *Service) originals(ctx context.Context, who audit.Principal, id string) (list []sig.Document, done func(), err error) {
	var open []*document.Stored
	done = func() {
		for _, d := range open {
			_ = d.Close()
		}
	}
	about, err := s.Documents.Info(ctx, who, id)
	if err != nil {
		return nil, done, err
	}
	for _, other := range []string{about.Linked, about.Parent} {
		if other == "" || len(open) > 0 && other == open[0].Info.ID {
			continue
		}
		d, err := s.Documents.Open(ctx, who, other)
		if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Lost) {
			continue
		}
		if err != nil {
			return nil, done, err
		}
		open, list = append(open, d), append(list, d)
	}
	return append(list, nil), done, nil
}

// failed records the failure of an attempt, and reports whether it may pass.
func (s *Service) failed(ctx context.Context, row *Retained, token string, failure error) (passes bool, err error) {
	now := s.now()
	passes = signing.Passes(failure)
	before := row.Failure
	told := row.Refused
	row.Failure, row.Refused = "the service could not renew the document", !passes
	if f, is := fault.As(failure); is {
		row.Failure = f.Message
	} else if s.Failed != nil {
		s.Failed(fmt.Errorf("retention: document %s of user %s, attempt %d: %w", row.Document, row.UserID, row.Attempts, failure))
	}
	outcome, pause := Delayed, s.pause(row.Attempts)
	if !passes {
		outcome, pause = Refused, refusedPause
	}
	err = s.Store.Atomic(ctx, func(ctx context.Context) error {
		err := s.finish(ctx, row, token, func(r *Retained) { r.DueAt = now.Add(pause) })
		if errors.Is(err, lease.ErrLost) {
			return nil
		}
		if err != nil || passes || told && row.Failure == before {
			return err
		}
		return s.Events.Emit(ctx, notify.Event{Type: notify.DocumentRenewalFailed, UserID: row.UserID, Detail: "document " + row.Document, Reason: row.Failure, When: row.GoodUntil})
	})
	s.counted(outcome)
	return passes, err
}

// pause returns how long to wait after attempt n.
func (s *Service) pause(n int) time.Duration {
	first := s.settings().Pause
	if shift := n - 1; shift < 20 && first<<max(shift, 0) < longestPause {
		return first << max(shift, 0)
	}
	return longestPause
}

func (s *Service) counted(outcome string) {
	if s.Counted != nil {
		s.Counted(outcome)
	}
}
