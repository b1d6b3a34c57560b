// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/user"
	"tamga/sig"
)

// Codes of operations that ended without being carried out.
const (
	codeCancelled = "operation_cancelled" // not of the specification
	codeExpired   = "transaction_expired"
	codeDeclined  = "authentication_declined"
)

// overdue sets the fault of an operation that was not carried out. If its time is over,
// it also sets the state, without waiting for the sweep.
func (op *Operation) overdue(now, leasedUntil time.Time) {
	if op.State.Active() && !now.Before(op.CompleteBefore) && !now.Before(leasedUntil) {
		op.State, op.CompletedAt = Expired, op.CompleteBefore
	}
	expired := "the operation was not carried out in time"
	if !op.ConfirmBefore.IsZero() && op.ConfirmedAt.IsZero() {
		expired = "the operation was not confirmed in time: begin it again"
	}
	why := map[State]*fault.Error{
		Cancelled: fault.New(codeCancelled, "the operation was cancelled"),
		Expired:   fault.New(codeExpired, expired),
		Declined:  fault.New(codeDeclined, "the operation was declined"),
	}[op.State]
	if op.Fault == nil {
		op.Fault = why
	}
}

// Find returns an operation of who, with its results. The fault is object_not_found, also
// for operations of other users.
func (s *Service) Find(ctx context.Context, who audit.Principal, id string) (*Operation, error) {
	if c := who.Confirmation; c != "" && !strings.EqualFold(strings.TrimSpace(id), c) {
		return nil, fault.New(fault.NotFound, "the access token is that of another operation")
	}
	row, err := s.own(ctx, who, id)
	if fault.Is(err, fault.NotFound) {
		if op, found, e := s.former(ctx, who, id); e != nil || found {
			return op, e
		}
	}
	if err != nil {
		return nil, err
	}
	if !row.returnsResults() {
		row.Results, row.Answer = "", nil
		for i := range row.Documents {
			row.Documents[i].out = nil
		}
	}
	return s.withResults(ctx, row)
}

// normalID returns an identifier as it is stored.
func normalID(id string) string { return strings.ToLower(strings.TrimSpace(id)) }

// own returns an operation of who.
func (s *Service) own(ctx context.Context, who audit.Principal, id string) (*Stored, error) {
	row, found, err := s.deps.Store.FindOperation(ctx, normalID(id))
	if err == nil && found {
		err = row.read()
	}
	if err != nil {
		return nil, err
	}
	if !found || who.UserID == "" || row.Owner.UserID != who.UserID || row.Purpose != confirm.ForOperation {
		return nil, fault.New(fault.NotFound, "you have no operation with this identifier")
	}
	return row, nil
}

// former returns an operation that is not stored any more, from the record of its confirmation. It
// reports false if there is none of who.
func (s *Service) former(ctx context.Context, who audit.Principal, id string) (*Operation, bool, error) {
	if s.deps.Confirmations == nil || who.UserID == "" {
		return nil, false, nil
	}
	r, err := s.deps.Confirmations.Find(ctx, who, id)
	if fault.Is(err, fault.InvalidTransaction) || err == nil && r.Purpose != confirm.ForOperation {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	c, err := s.deps.Confirmations.Content(ctx, who, r.ID)
	if err != nil {
		return nil, false, err
	}
	row := &Stored{Operation: Operation{
		ID: r.ID, Owner: who, Action: r.Action, State: State(r.State), Form: FormOperation,
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, ConfirmedAt: r.ConfirmedAt, CompletedAt: r.EndedAt,
		ConfirmBefore: r.ConfirmBefore, CompleteBefore: r.CompleteBefore,
	}}
	if row.CompleteBefore.IsZero() {
		row.CompleteBefore = r.ConfirmBefore
	}
	if r.State.Final() && r.Code != "" {
		row.Fault = fault.New(r.Code, r.Message)
	}
	if len(c.Outline) > 0 {
		var of outline
		if err := json.Unmarshal(c.Outline, &of); err != nil {
			return nil, false, fmt.Errorf("operation: the outline of operation %s: %w", r.ID, err)
		}
		row.Form, row.Async, row.Callback, row.Parameters, row.Description = of.Form, of.Async, of.Callback, of.Parameters, of.Description
		if row.Documents, err = readDocuments(of.Documents); err != nil {
			return nil, false, fmt.Errorf("operation: the outline of operation %s: %w", r.ID, err)
		}
	}
	if err := row.decline(r.Declined); err != nil {
		return nil, false, err
	}
	row.overdue(s.deps.Now(), time.Time{})
	return &row.Operation, true, nil
}

// withResults returns an operation with its answer or its results.
func (s *Service) withResults(ctx context.Context, row *Stored) (*Operation, error) {
	op := &row.Operation
	op.overdue(s.deps.Now(), row.LeasedUntil)
	switch {
	case len(row.Answer) > 0:
		text, err := s.deps.Vault.Open(answerPlace(row.ID), row.Answer)
		if err != nil {
			return nil, err
		}
		if op.Answer = text; len(op.Documents) > 0 {
			op.Answer = nil
			op.readResults(bytes.NewReader(text))
		}
	case row.Results != "":
		blob, err := OpenKept(ctx, s.docs.Blobs, row.Results)
		if err != nil {
			return nil, err
		}
		op.open = append(op.open, blob.Close)
		op.readResults(blob)
	default:
		op.readResults(bytes.NewReader(nil)) // those that are there are empty
	}
	return op, nil
}

// readResults lets the documents read their results.
func (op *Operation) readResults(from io.ReaderAt) {
	for i := range op.Documents {
		if d := &op.Documents[i]; d.out != nil {
			d.Content = NewSection(from, d.out.At, d.out.Size)
		}
	}
}

// UnderWay returns at most limit operations under way of the users whom who reaches, the
// oldest first, after one of an earlier call. The zero value is before all.
func (s *Service) UnderWay(ctx context.Context, who audit.Principal, after UnderWay, limit int) ([]UnderWay, error) {
	return s.deps.Lists.UnderWay(ctx, who.UserID, after, limit, s.deps.Now())
}

// UnderWayOf returns at most limit operations under way of some of the users whom who reaches, and the one with
// an identifier, the oldest first.
func (s *Service) UnderWayOf(ctx context.Context, who audit.Principal, users []string, id string, limit int) ([]UnderWay, error) {
	if len(users) == 0 && id == "" {
		return nil, nil
	}
	return s.deps.Lists.UnderWayOf(ctx, who.UserID, users, id, limit, s.deps.Now())
}

// mostNamed is the number of operations whose names of documents a search reads.
const mostNamed = 2000

// UnderWayNamed returns operations of the users whom who reaches that have a document whose name has all terms of
// a text. It reads the newest operations under way. The fault is error_invalid_filter_value.
func (s *Service) UnderWayNamed(ctx context.Context, who audit.Principal, text string) ([]UnderWay, error) {
	terms, err := user.SearchTerms(text)
	if err != nil {
		return nil, err
	}
	list, err := s.deps.Lists.UnderWayDocuments(ctx, who.UserID, mostNamed, s.deps.Now())
	if err != nil {
		return nil, err
	}
	var found []UnderWay
	for _, o := range list {
		documents, err := readDocuments(o.Documents)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(documents, func(d Document) bool {
			return user.HasTerms(user.SearchWords(cmp.Or(d.Name, d.OriginalName)), terms)
		}) {
			o.Documents = nil
			found = append(found, o)
		}
	}
	return found, nil
}

// maxActive is the most operations of a list.
const maxActive = 1000

// Active returns the active operations of who, the oldest first, without contents.
func (s *Service) Active(ctx context.Context, who audit.Principal) ([]*Operation, error) {
	list := []*Operation{}
	if who.UserID == "" {
		return list, nil
	}
	rows, err := s.deps.Lists.OpenOperations(ctx, who.UserID, who.ClientID, s.deps.Now(), maxActive)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if err := row.read(); err != nil {
			return nil, err
		}
		list = append(list, &row.Operation)
	}
	return list, nil
}

// Cancel ends an active operation of who. If it is running, its result is dropped: no
// signature of it is returned. Cancelling it again changes nothing. Faults:
// object_not_found, wrong_operation for an operation that ended otherwise.
func (s *Service) Cancel(ctx context.Context, who audit.Principal, id string) error {
	row, err := s.own(ctx, who, id)
	if fault.Is(err, fault.NotFound) {
		if op, found, e := s.former(ctx, who, id); e != nil || found {
			return errors.Join(e, overWith(op))
		}
	}
	if err != nil {
		return err
	}
	cancelled := false
	if row.ConfirmBefore.IsZero() {
		cancelled, err = s.cancel(ctx, who, row)
	} else if _, err = s.deps.Confirmations.Cancel(ctx, who, row.ID); err == nil {
		cancelled = true
	} else if _, refused := fault.As(err); refused {
		err = nil // its state says why
	}
	if err != nil {
		return err
	}
	if cancelled {
		return s.forget(ctx, row.Contents)
	}
	if row, err = s.own(ctx, who, id); err != nil {
		return err
	}
	row.overdue(s.deps.Now(), row.LeasedUntil)
	return overWith(&row.Operation)
}

// cancel ends an operation that needs no confirmation.
func (s *Service) cancel(ctx context.Context, who audit.Principal, row *Stored) (cancelled bool, err error) {
	now := s.deps.Now()
	ended := row.Operation
	ended.State, ended.KeepUntil = Cancelled, now.Add(s.settings.Keep)
	err = s.deps.Store.Atomic(ctx, lock.Set{}, func(ctx context.Context) (err error) {
		cancelled, err = s.deps.Lists.CancelOperation(ctx, row.ID, row.Owner.UserID, now, ended.KeepUntil)
		if err != nil || !cancelled {
			return err
		}
		return fault.Rollback(s.tell(ctx, &ended, who.UserID, false))
	})
	return cancelled && err == nil, err
}

// overWith is the fault of cancelling an operation that ended otherwise.
func overWith(op *Operation) error {
	if op == nil || op.State == Cancelled {
		return nil
	}
	return fault.Newf(fault.WrongOperation, "the operation is over: its state is %s", op.State)
}

// Sweep ends expired operations and deletes those whose time of storage is over. Package confirm expires those
// that need a confirmation.
func (s *Service) Sweep(ctx context.Context) error {
	now := s.deps.Now()
	for n := sweepPortion; n == sweepPortion; {
		err := s.deps.Store.Atomic(ctx, lock.Set{}, func(ctx context.Context) error {
			list, err := s.deps.Lists.ExpireOperations(ctx, now, now.Add(s.settings.Keep), sweepPortion)
			if err != nil {
				return err
			}
			n = len(list)
			for _, r := range list {
				if err := s.tell(ctx, &r.Operation, "", false); err != nil {
					return fault.Rollback(err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return s.deps.Lists.SweepOperations(ctx, now)
}

// sweepPortion is how many operations end in one transaction of a sweep.
const sweepPortion = 1000

// OpenBody implements [notify.Bodies]: the body is the present state of the operation.
func (s *Service) OpenBody(ctx context.Context, id string) (notify.Body, error) {
	row, found, err := s.deps.Store.FindOperation(ctx, id)
	if err == nil && found {
		err = row.read()
	}
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, notify.Permanent(errors.New("the operation is not stored any more"))
	}
	op, err := s.withResults(ctx, row)
	if err != nil {
		return nil, err
	}
	body, err := s.docs.Callbacks.Render(op)
	if err != nil {
		return nil, errors.Join(err, op.Close())
	}
	return &callbackBody{body, op}, nil
}

// callbackBody reads the results of its operation.
type callbackBody struct {
	sig.Result
	op *Operation
}

func (b *callbackBody) Close() error { return b.op.Close() }
