// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"errors"
	"fmt"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lease"
	"tamga/internal/domain/operation"
	"tamga/sig/budget"
)

// portion is how many documents of an operation are open at the same time.
const portion = 128

// run is one attempt at an operation.
type run struct {
	*Operations
	op       *Operation
	plan     *plan
	pin      string
	snapshot *Snapshot          // of the request; nil if another process or a later attempt carries it out
	inline   func(i int) source // returns a document of the request
	original source             // OriginalDocument; nil if there is none
	received []document.New     // as in OperationOrder; nil if another process or a later attempt carries it out

	temporary map[int]bool                      // temporary stored documents, whose results are temporary too
	records   []func(ctx context.Context) error // make stored results visible
	failed    error                             // the first fault of a document
	wrong     int                               // number of documents with a fault

	another bool // there will be another attempt if this one finds no memory
}

// do signs the documents of the operation. The error is a fault of the whole operation,
// or an internal error.
func (r *run) do(ctx context.Context) error {
	r.temporary = map[int]bool{}
	for from := 0; from < len(r.op.Documents); from += portion {
		if err := r.portion(ctx, from, min(from+portion, len(r.op.Documents))); err != nil {
			return err
		}
	}
	for i := range r.op.Documents {
		if f := r.op.Documents[i].Fault; f != nil {
			if r.wrong++; r.failed == nil {
				r.failed = f
			}
		}
	}
	return nil
}

// portion signs a range of the documents.
func (r *run) portion(ctx context.Context, from, to int) (err error) {
	var open []func() error
	defer func() { err = errors.Join(err, closeAll(&open)) }()
	type group struct {
		manner
		indexes []int
		items   []Item
	}
	var groups []*group
	for i := from; i < to; i++ {
		d := &r.op.Documents[i]
		if d.Fault != nil {
			continue
		}
		item, how, err := r.item(ctx, i, &open)
		if f, ok := fault.As(err); ok {
			d.Fault = f
			r.report(f)
			continue
		}
		if err != nil {
			return err
		}
		var g *group
		for _, other := range groups {
			if other.rule == how.rule {
				g = other
			}
		}
		if g == nil {
			g = &group{manner: how}
			groups = append(groups, g)
		}
		g.indexes, g.items = append(g.indexes, i), append(g.items, item)
	}
	for _, g := range groups {
		outcomes, err := r.Signer.signMany(ctx, r.op.Owner, &BatchOrder{
			Type: g.signatureType, Params: g.params, Certificate: r.plan.Certificate, PIN: r.pin, Items: g.items, Snapshot: r.snapshot,
		}, r.op.Action)
		if err != nil {
			return err
		}
		for n, o := range outcomes {
			if err := r.settle(ctx, g.indexes[n], o, &g.manner); err != nil {
				return err
			}
		}
	}
	return nil
}

// report reports a document that is lost, which only a person can bring back. Other faults are for the
// client.
func (s *Operations) report(f *fault.Error) {
	if f.Code == fault.Lost {
		s.Failed(f)
	}
}

// item opens a document and its original, and returns how it is signed.
func (r *run) item(ctx context.Context, i int, open *[]func() error) (item Item, how manner, err error) {
	d := &r.op.Documents[i]
	if d.OriginalRef != "" {
		stored, about, err := r.Documents.Open(ctx, r.op.Owner, d.OriginalRef)
		if err != nil {
			return item, how, err
		}
		*open = append(*open, stored.Close)
		if stored.Size() == 0 {
			return item, how, fault.New(fault.ContentRequired, "the stored document is empty")
		}
		item.stored = kept{stored, digestsOf(r.received, &about)}
		if d.OriginalName == "" {
			d.OriginalName = about.Name
		}
		r.temporary[i] = about.Temporary()
	} else {
		item.Content, item.stored = intakeAndRest(r.inline(i))
	}
	item.Original, item.storedOriginal = intakeAndRest(r.original)
	if d.Related != "" {
		related, about, err := r.Documents.Open(ctx, r.op.Owner, d.Related)
		if err != nil {
			return item, how, err
		}
		// The result of an inline document may be read from both until it is written.
		if d.OriginalRef == "" {
			r.op.open = append(r.op.open, related.Close)
		} else {
			*open = append(*open, related.Close)
		}
		item.storedOriginal = kept{related, digestsOf(r.received, &about)}
	}
	how, err = r.manner(r.plan, d.OriginalName)
	return item, how, err
}

// intakeAndRest returns a source as the two fields of an Item.
func intakeAndRest(s source) (*Intake, source) {
	if in, ok := s.(*Intake); ok {
		return in, nil
	}
	return nil, s
}

// settle records the outcome of a document. The result of a stored document is stored. The error ends
// the attempt.
func (r *run) settle(ctx context.Context, i int, o Outcome, how *manner) error {
	d := &r.op.Documents[i]
	if o.Err != nil {
		if r.another && errors.Is(o.Err, budget.ErrBusy) {
			return o.Err // nobody waits for the answer, and other documents will have ended
		}
		d.Fault = o.Err
		return nil
	}
	name := r.Signer.resultName(d.OriginalName, how.signatureType, how.params)
	if d.OriginalRef == "" {
		d.Name, d.Content = name, o.Result
		return nil
	}
	ref, record, err := r.Documents.Save(ctx, r.op.Owner, document.Description{Name: name, Parent: d.OriginalRef, Temporary: r.temporary[i]}, o.Result)
	if f, ok := fault.As(err); ok { // most likely its quota is used up
		d.Fault = f
		return nil
	}
	if err != nil {
		return err
	}
	d.Name, d.RefID = name, ref
	r.records = append(r.records, record)
	return nil
}

// refused returns the fault of the operation as a whole, or nil; see [refusal].
func (r *run) refused() error {
	faults := make([]*fault.Error, len(r.op.Documents))
	for i := range r.op.Documents {
		faults[i] = r.op.Documents[i].Fault
	}
	f := refusal(faults)
	if f == nil {
		return nil
	}
	return ofDocument(0, f) // the only one, unless the fault is about all of them
}

// finish records the outcome of the operation and makes it visible, in one step. token is
// that of the lease of an asynchronous operation.
func (r *run) finish(ctx context.Context, token string, keep func(context.Context, *Operation) (func(context.Context) error, error)) (err error) {
	now := r.Signer.Now()
	op := r.op
	op.State, op.UpdatedAt, op.CompletedAt = StateCompleted, now, now
	if r.wrong == len(op.Documents) {
		first, _ := fault.As(r.failed)
		op.State, op.Fault = StateError, first
	}
	record, err := r.ended(ctx, op, &op.open)
	if err != nil {
		return err
	}
	kept := func(context.Context) error { return nil }
	if keep != nil {
		if kept, err = keep(ctx, op); err != nil {
			return errors.Join(err, r.forget(ctx, record.Results))
		}
	}
	// The result exists, so it is recorded even if the client is gone.
	ctx = context.WithoutCancel(ctx)
	err = r.Store.Atomic(ctx, func(ctx context.Context) error {
		if token == "" {
			if err := r.addEnded(ctx, record); err != nil {
				return err
			}
		} else {
			held, err := r.Store.FinishOperation(ctx, record, token)
			if err != nil {
				return fault.Rollback(err)
			}
			if !held {
				return lease.ErrLost
			}
			if err := r.writeEntry(ctx, op, audit.Done, outcomeOf(op)); err != nil {
				return fault.Rollback(err)
			}
			if err := r.call(ctx, record.UserID, record); err != nil {
				return err
			}
		}
		for _, visible := range r.records {
			if err := visible(ctx); err != nil {
				return fault.Rollback(err)
			}
		}
		return fault.Rollback(kept(ctx))
	})
	if err != nil {
		return errors.Join(err, r.unnamed(ctx, record.Results, err))
	}
	return nil
}

// addEnded stores an operation that has ended, and its callback, in the transaction of ctx. Errors roll
// back.
func (s *Operations) addEnded(ctx context.Context, r *OperationRecord) error {
	added, err := s.Store.AddOperation(ctx, r, s.Settings.Waiting)
	if err == nil && !added {
		err = full()
	}
	if err != nil {
		return fault.Rollback(err)
	}
	return s.call(ctx, r.UserID, r)
}

// ended returns the record of an ended operation, with its inline results if a client may ask for them
// later: with an asynchronous operation and one with a callback as long as the record is stored, with one
// that its user confirmed until CompleteBefore, for a repeated call. The documents of op read what is
// stored from then on. What they need is appended to open.
func (s *Operations) ended(ctx context.Context, op *Operation, open *[]func() error) (*OperationRecord, error) {
	record, err := newRecord(op)
	if err != nil {
		return nil, err
	}
	record.KeepUntil = op.CompletedAt.Add(s.Settings.Keep)
	if op.Form != "" && record.KeepUntil.Before(op.CompleteBefore) {
		record.KeepUntil = op.CompleteBefore
	}
	if op.Form == "" && !record.returnsResults() {
		return record, nil
	}
	contents := newIntake(s.Signer.Spool, nil)
	*open = append(*open, contents.Close)
	list := make([]*extent, len(op.Documents))
	for i := range op.Documents {
		if c := op.Documents[i].Content; c != nil {
			at := contents.Size()
			if _, err := c.WriteTo(contents); err != nil {
				return nil, fmt.Errorf("signing: keeping a result: %w", err)
			}
			list[i] = &extent{at, contents.Size() - at}
		}
	}
	if contents.Size() == 0 {
		return record, nil
	}
	if err := contents.Finish(); err != nil {
		return nil, err
	}
	for i, e := range list {
		if e != nil {
			op.Documents[i].Content = newSection(contents, e.At, e.Size)
		}
	}
	if record.Documents, err = storeDocuments(op.Documents, list); err != nil {
		return nil, err
	}
	until := op.CompleteBefore
	switch {
	case record.returnsResults():
		record.Bytes, until = contents.Size(), record.KeepUntil
	case contents.Size() <= smallAnswer:
		text := make([]byte, contents.Size())
		if err := readFull(contents, text, 0); err != nil {
			return nil, err
		}
		record.Answer, err = s.Vault.Seal(operation.AnswerPlace(op.ID), text)
		return record, err
	}
	// Reading may begin at the last moment.
	record.Results, err = s.Signer.Blobs.KeepBlob(ctx, contents, until.Add(slowest))
	return record, err
}

// forget removes a stored document, even if the client is gone. "" is none.
func (s *Operations) forget(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	return s.Signer.Blobs.RemoveBlob(context.WithoutCancel(ctx), name)
}

// unnamed removes a stored document whose name err kept from being recorded. After an outage
// it may be recorded nevertheless, so the document stays until it expires.
func (s *Operations) unnamed(ctx context.Context, name string, err error) error {
	if _, is := fault.AsOutage(err); is {
		return nil
	}
	return s.forget(ctx, name)
}

// closeAll calls every function of list once.
func closeAll(list *[]func() error) error {
	var errs []error
	for _, c := range *list {
		errs = append(errs, c())
	}
	*list = nil
	return errors.Join(errs...)
}

// poke wakes the goroutine that waits for c.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
