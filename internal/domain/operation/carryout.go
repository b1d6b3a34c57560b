// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lease"
	"tamga/sig"
)

// Claim is a request to carry an operation out.
type Claim struct {
	ID    string // of the operation
	Form  Form
	Kinds []string // that the request carries out
	// About names what the request is about, such as the number of a certificate in its address, for
	// Kind.Fits; "": nothing.
	About string
	// PIN was given with the request; "": none.
	PIN string
	// Fresh, Keep and Noted are those of Order.
	Fresh any
	Keep  Keep
	Noted func(text string)
}

// CarryOut carries out an operation that its user has confirmed, or returns what an earlier call has
// done, byte for byte. While another process carries it out, it waits for the end; an asynchronous one it
// returns as Confirmed instead, and any one that starts alone if only a service is out of order. A failure
// leaves the operation Confirmed, so that the call can be repeated in time. result is what Run.Spend got; it
// is nil if the operation was carried out before.
//
// Faults: those of confirm.Service.Ready and of the kind; invalid_operation for an operation of another
// form or kind, or about something else; invalid_transaction for one whose description is another by now.
func (s *Service) CarryOut(ctx context.Context, who audit.Principal, c *Claim) (op *Operation, result any, err error) {
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		op, result, err = s.carryOut(ctx, who, c)
		if fault.Is(err, fault.Unavailable) { // it may be tried again without this request
			if row, e := s.fitting(ctx, normalID(c.ID), c); e == nil && row.StartsAlone() && row.State == Confirmed {
				return &row.Operation, nil, nil
			}
		}
		if !errors.Is(err, errBusy) {
			return op, result, err
		}
		if err := pause(ctx, wait); err != nil {
			return nil, nil, err
		}
	}
}

// The pauses between two looks at an operation that another process carries out.
const (
	firstWait   = 20 * time.Millisecond
	longestWait = 500 * time.Millisecond
)

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errBusy means that another process has the lease.
var errBusy = errors.New("operation: another process carries the operation out")

func (s *Service) carryOut(ctx context.Context, who audit.Principal, c *Claim) (op *Operation, result any, err error) {
	if s.deps.Confirmations == nil {
		return nil, nil, fault.New(fault.InvalidOperation, "this installation makes no confirmations")
	}
	row, found, err := s.deps.Store.FindOperation(ctx, normalID(c.ID))
	if err == nil && found {
		err = row.read()
	}
	if err != nil {
		return nil, nil, err
	}
	if found && row.repeats(who, s.now()) {
		op, err := s.again(ctx, row, c)
		return op, nil, err
	}
	record, done, err := s.deps.Confirmations.Ready(ctx, who, c.ID)
	if err != nil {
		return nil, nil, err
	}
	if done { // meanwhile, unless it is no operation
		if _, err := s.fitting(ctx, record.ID, c); err != nil {
			return nil, nil, err
		}
		return nil, nil, errBusy
	}
	l, err := s.leases(s.settings.Lease).New()
	if err != nil {
		return nil, nil, err
	}
	row, leased, err := s.deps.Store.ClaimOperation(ctx, record.ID, l, s.now())
	if err != nil {
		return nil, nil, err
	}
	if !leased {
		row, err = s.fitting(ctx, record.ID, c)
		if err != nil {
			return nil, nil, err
		}
		if row.Async && row.State == Confirmed {
			return &row.Operation, nil, nil
		}
		return nil, nil, errBusy
	}
	r := &Run{PIN: c.PIN, service: s, who: who, record: &record, row: row, token: l.Token}
	defer func() {
		if err != nil {
			err = errors.Join(s.newer(ctx, who, record.ID, err), s.release(context.WithoutCancel(ctx), row, l, c, err))
		}
	}()
	err = s.leases(s.settings.Lease).Hold(ctx, l, func(ctx context.Context, l lease.Lease) (bool, error) {
		return s.deps.Store.ExtendOperation(ctx, record.ID, l)
	}, func(ctx context.Context) error {
		if err := row.read(); err != nil {
			return err
		}
		if err := row.fits(c); err != nil {
			return err
		}
		if startsAlone[row.Form] && row.AwaitsPIN != nil && c.PIN == "" { // the PIN of the order is wrong, and attempts are counted
			return row.AwaitsPIN
		}
		return r.do(ctx, c)
	})
	if errors.Is(err, lease.ErrLost) {
		err = errBusy
	}
	if err != nil {
		return nil, nil, err
	}
	return &r.Operation, r.result, nil
}

// release ends the lease of a request that has failed. If the PIN of the order is wrong, an operation that starts
// alone waits for another request: an attempt without one would be wrong again. A wrong PIN of the request says
// nothing about the PIN of the order.
func (s *Service) release(ctx context.Context, row *Stored, l lease.Lease, c *Claim, err error) error {
	if f, ok := fault.As(err); ok && f.Code == fault.InvalidPIN && c.PIN == "" && row.StartsAlone() {
		return s.awaitPIN(ctx, row, l, f)
	}
	return s.deps.Store.ReleaseOperation(ctx, row.ID, l.Token)
}

// fits refuses a request of another form or for other kinds.
func (r *Stored) fits(c *Claim) error {
	if r.Form != c.Form || !slices.Contains(c.Kinds, r.Operation.Kind) {
		return confirm.OtherOperation()
	}
	return nil
}

// fitting returns an operation that a request may carry out.
func (s *Service) fitting(ctx context.Context, id string, c *Claim) (*Stored, error) {
	row, found, err := s.deps.Store.FindOperation(ctx, id)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, confirm.OtherOperation()
	}
	if err := row.read(); err != nil {
		return nil, err
	}
	return row, row.fits(c)
}

// repeats reports whether a request of who gets what was done, because the user has confirmed it and an earlier
// request of the same client, or a process without a request, has carried it out.
func (r *Stored) repeats(who audit.Principal, now time.Time) bool {
	return r.State == Completed && !r.ConfirmBefore.IsZero() && now.Before(r.CompleteBefore) && who.UserID != "" &&
		r.Owner.UserID == who.UserID && r.Owner.ClientID == who.ClientID
}

// again returns an operation that was carried out before, with its answer or its results. row has been read.
func (s *Service) again(ctx context.Context, row *Stored, c *Claim) (*Operation, error) {
	if err := row.fits(c); err != nil {
		return nil, err
	}
	k, err := s.kind(row.Operation.Kind)
	if err != nil {
		return nil, err
	}
	if k.Fits != nil {
		if err := k.Fits(&row.Operation, nil, c); err != nil {
			return nil, err
		}
	}
	return s.withResults(ctx, row)
}

// newer returns the fault of an operation that another call has ended meanwhile, otherwise err: the end
// deletes what is read before it is carried out.
func (s *Service) newer(ctx context.Context, who audit.Principal, id string, err error) error {
	if _, outage := fault.AsOutage(err); outage { // that call may have been this one
		return err
	}
	switch _, done, now := s.deps.Confirmations.Ready(ctx, who, id); {
	case now == nil && done:
		return errBusy // its answer is there
	case now != nil:
		if _, refused := fault.As(now); refused {
			return now
		}
	}
	return err
}

// do carries out an operation that is leased: it checks whether the owner may do it now and whether it is what
// the user has confirmed. row has been read.
func (r *Run) do(ctx context.Context, c *Claim) (err error) {
	s, row := r.service, r.row
	r.Operation = row.Operation
	plan, err := s.planOf(row)
	if err != nil {
		return err
	}
	if r.kind = plan.kind; r.kind.Fits != nil && !r.alone {
		if err := r.kind.Fits(&row.Operation, plan, c); err != nil {
			return err
		}
	}
	r.order = &Order{Kind: row.Operation.Kind, Form: row.Form, Owner: row.Owner, Async: row.Async, Fresh: c.Fresh, Keep: c.Keep, Noted: c.Noted, plan: plan, documents: r.Documents}
	if r.record != nil {
		if err := row.decline(r.record.Declined); err != nil {
			return err
		}
	}
	needed, err := r.kind.Check(ctx, r.order)
	if err != nil {
		return err
	}
	if needed && r.record == nil {
		return Unconfirmed(r.order.Action)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.order.opener.close(), r.Operation.Close())
		} else {
			r.open = append(r.open, r.order.opener.open...)
		}
	}()
	if r.order.opener, err = s.openerOf(ctx, row, plan); err != nil {
		return err
	}
	if r.record != nil {
		fields, err := r.kind.Describe(ctx, r.order)
		if err != nil {
			return err
		}
		sum, err := fields.Sum()
		if err != nil {
			return err
		}
		if subtle.ConstantTimeCompare(sum[:], r.record.What[:]) != 1 {
			return fault.New(fault.InvalidTransaction, "the documents, the parameters or the certificate differ from what was confirmed")
		}
	}
	if err := r.kind.Do(ctx, r); err != nil {
		return err
	}
	return r.check()
}

// planOf returns the stored plan of an operation.
func (s *Service) planOf(row *Stored) (*Plan, error) {
	k, err := s.kind(row.Operation.Kind)
	if err != nil {
		return nil, err
	}
	plan := &Plan{kind: k}
	if err := json.Unmarshal(row.Plan, plan); err != nil {
		return nil, fmt.Errorf("operation: the plan of operation %s: %w", row.ID, err)
	}
	return plan, nil
}

// openerOf opens the documents that are stored with an operation.
func (s *Service) openerOf(ctx context.Context, row *Stored, plan *Plan) (opener, error) {
	o := opener{store: s.docs.Documents, owner: row.Owner}
	if row.Contents == "" {
		return o, nil
	}
	blob, err := OpenKept(ctx, s.docs.Blobs, row.Contents)
	if err != nil {
		return o, err
	}
	o.open = append(o.open, blob.Close)
	o.content = func(d *Document, _ int) sig.Document {
		if d.in == nil {
			return nil
		}
		return NewSection(blob, d.in.At, d.in.Size)
	}
	if plan.Original {
		at := row.original()
		o.original = NewSection(blob, at, blob.Size()-at)
	}
	return o, nil
}

// original is where Order.Original begins in the contents of an operation.
func (r *Stored) original() int64 {
	if in := r.Documents[0].in; in != nil {
		return in.At + in.Size
	}
	return 0
}
