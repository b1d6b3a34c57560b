// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lease"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/policy"
	"tamga/sig"
)

// Run is one attempt at an operation.
type Run struct {
	Operation
	// PIN was given with the request that carries the operation out; "": none.
	PIN string
	// Again means that there is another attempt without a request if this one fails.
	Again bool

	service *Service
	kind    *Kind
	order   *Order
	who     audit.Principal // who carries it out
	record  *confirm.Record // nil: it needs no confirmation
	row     *Stored         // nil: at once
	token   string          // of the lease
	alone   bool            // no request waits for the result

	batch  Batch // results of stored documents; nil: none
	noted  []audit.Entry
	proof  []byte
	result any
	spent  bool
}

// Confirmed reports whether the user has confirmed exactly this.
func (r *Run) Confirmed() bool { return r.record != nil }

// AtOnce reports whether the request that ordered this carries it out.
func (r *Run) AtOnce() bool { return r.row == nil }

// Asked returns the action that the policies were asked about.
func (r *Run) Asked() policy.Action { return r.order.Action }

// recorded reports whether the operation is stored.
func (r *Run) recorded() bool { return r.ID != "" }

// Note takes what audit entries say of the attempt, such as the digest of a message: once before a key is used,
// so that the entry of a failure has it, and again with what was done.
func (r *Run) Note(text string) {
	if r.Operation.Note = text; r.order.Noted != nil {
		r.order.Noted(text)
	}
}

// Record takes audit entries of what was made. They are written with the end of the operation, if it is stored: the
// caller sets the operation of each, the object and the detail.
func (r *Run) Record(list ...audit.Entry) { r.noted = append(r.noted, list...) }

// ConfirmedBy returns the method by which the user has confirmed, and the address as the user sees it; "" without a
// confirmation.
func (r *Run) ConfirmedBy() (method, label string) {
	if r.record == nil {
		return "", ""
	}
	return r.record.Method, r.record.Label
}

// Hold closes c when the operation is closed, or when the attempt fails: what results are read from.
func (r *Run) Hold(c io.Closer) { r.open = append(r.open, c.Close) }

// Stores reports whether the result of the document with an index is a stored document.
func (r *Run) Stores(i int) bool {
	return r.Documents[i].OriginalRef != "" || r.kind.Temporary && r.Form != FormTransaction
}

// Order returns what is carried out.
func (r *Run) Order() *Order { return r.order }

// Plan reads Order.Plan into a value of the same type.
func (r *Run) Plan(into any) error { return r.order.ReadPlan(into) }

// Secret reads Order.Secret into a value of the same type. Without a secret it changes nothing.
func (r *Run) Secret(into any) error {
	if r.row == nil {
		if r.order.Secret == nil {
			return nil
		}
		text, err := json.Marshal(r.order.Secret)
		if err != nil {
			return err
		}
		defer clear(text)
		return json.Unmarshal(text, into)
	}
	if len(r.row.Secret) == 0 {
		return nil
	}
	text, err := r.service.deps.Vault.Open(secretPlace(r.ID), r.row.Secret)
	if err != nil {
		return err
	}
	defer clear(text)
	if json.Unmarshal(text, into) != nil { // its error may quote the secret
		return fmt.Errorf("operation: the secret of operation %s cannot be read", r.ID)
	}
	return nil
}

// Save takes the result of the document with an index, and its name. The result of a stored document is stored,
// and with Kind.Temporary every result.
func (r *Run) Save(ctx context.Context, i int, name string, made sig.Result) error {
	d := &r.Documents[i]
	if r.Stores(i) {
		if r.batch == nil {
			r.batch = r.service.docs.Documents.NewBatch(r.Owner)
		}
		ref, err := r.batch.Save(ctx, document.Description{
			Name: name, Parent: d.OriginalRef, Temporary: r.kind.Temporary || r.order.opener.temporary[i], Private: r.kind.Private,
		}, made)
		if err != nil {
			return err
		}
		d.RefID = ref
	}
	if d.Name = name; d.OriginalRef == "" {
		d.Content = made
	}
	return nil
}

// Refuse gives the document with an index a fault in place of a result.
func (r *Run) Refuse(i int, f *fault.Error) {
	r.Documents[i].Fault = f
	r.service.report(f)
}

// Prove takes the evidence of what was done, which is kept with the confirmation.
func (r *Run) Prove(proof []byte) { r.proof = proof }

// report reports a document that is lost, which only a person can bring back. Other faults are for the
// client.
func (s *Service) report(f *fault.Error) {
	if f.Code == fault.Lost {
		s.deps.Failed(f)
	}
}

// Spend ends the operation. change makes the changes of the kind in the transaction that ends it, maybe
// several times, and returns the result; nil: there are none. The error of a lost lease is the fault of
// what has become of the operation meanwhile.
//
// Spend commits, so it must not be called inside of a transaction.
func (r *Run) Spend(ctx context.Context, change func(ctx context.Context) (result any, err error)) (err error) {
	s := r.service
	if err := s.deps.Store.Outside(ctx); err != nil {
		return err
	}
	defer func() { r.spent = err == nil }()
	r.end()
	if !r.recorded() {
		return r.change(ctx, change)
	}
	row, err := s.withEnd(ctx, &r.Operation, r.kind)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.unnamed(ctx, row.Results, err))
		}
	}()
	kept, err := r.order.keep(ctx, &r.Operation)
	if err != nil {
		return err
	}
	var locked lock.Set
	if change != nil {
		locked = lock.User(r.Owner.UserID)
	}
	ctx = context.WithoutCancel(ctx) // the result exists, so it is stored even if the client is gone
	err = s.deps.Store.Atomic(ctx, locked, func(ctx context.Context) error {
		if r.record == nil {
			return fault.Rollback(r.spend(ctx, row, change, kept))
		}
		return s.deps.Confirmations.Complete(ctx, r.who, r.record, r.proof, func(ctx context.Context) error { return r.spend(ctx, row, change, kept) })
	})
	if err == nil && r.row != nil {
		if e := s.forget(ctx, r.row.Contents); e != nil {
			s.deps.Failed(fmt.Errorf("operation: the documents of operation %s, which has ended: %w", r.ID, e))
		}
	}
	return err
}

// change is Spend for an operation that is not recorded.
func (r *Run) change(ctx context.Context, change func(ctx context.Context) (result any, err error)) error {
	if change == nil && r.batch == nil && r.order.Keep == nil {
		return nil
	}
	kept, err := r.order.keep(ctx, &r.Operation)
	if err != nil {
		return err
	}
	var locked lock.Set
	if change != nil {
		locked = lock.User(r.Owner.UserID)
	}
	return r.service.deps.Store.Atomic(ctx, locked, func(ctx context.Context) (err error) {
		if change != nil {
			if r.result, err = change(ctx); err != nil {
				return err
			}
		}
		if r.batch != nil {
			if err := r.batch.Record(ctx); err != nil {
				return fault.Rollback(err)
			}
		}
		return fault.Rollback(kept(ctx))
	})
}

// end gives the operation its final state.
func (r *Run) end() {
	s, op := r.service, &r.Operation
	now := s.now()
	op.State, op.UpdatedAt, op.CompletedAt, op.KeepUntil, op.Fault = Completed, now, now, now.Add(s.settings.Keep), nil
	if r.record != nil && op.KeepUntil.Before(r.record.CompleteBefore) { // a repeated call finds the answer until then
		op.KeepUntil = r.record.CompleteBefore
	}
	failed := 0
	for i := range op.Documents {
		d := &op.Documents[i]
		if d.in = nil; d.Fault != nil {
			failed++
		}
	}
	if failed > 0 && failed == len(op.Documents) && r.record == nil {
		op.State, op.Fault = Error, op.Documents[0].Fault
	}
}

// spend is the part of Spend between the move of the confirmation and its events. It locks in the order of
// locks: the operation first, which also finds out early that the lease is lost.
func (r *Run) spend(ctx context.Context, row *Stored, change func(ctx context.Context) (any, error), kept func(ctx context.Context) error) error {
	s := r.service
	if err := r.store(ctx, row); err != nil {
		return err
	}
	if change != nil {
		var err error
		if r.result, err = change(ctx); err != nil {
			return err
		}
	}
	if render := s.renderers[r.Form][r.Operation.Kind]; render != nil && !r.kind.Handed {
		var err error
		if r.Answer, err = render(&r.Operation, r.result); err != nil {
			return err
		}
		if len(r.Answer) > 0 {
			sealed, err := s.deps.Vault.Seal(answerPlace(r.ID), r.Answer)
			if err == nil {
				err = s.deps.Store.SetAnswer(ctx, r.ID, sealed)
			}
			if err != nil {
				return err
			}
		}
	}
	if err := s.tell(ctx, &r.Operation, r.Owner.UserID, r.alone); err != nil {
		return err
	}
	if len(r.noted) > 0 {
		for i := range r.noted {
			e := &r.noted[i]
			e.At, e.RequestID, e.Phase, e.Outcome, e.Principal = r.CompletedAt, r.ID, audit.Done, audit.OK, r.Owner
		}
		if err := s.deps.Audit.RecordAll(ctx, r.noted); err != nil {
			return err
		}
	}
	if r.batch != nil {
		if err := r.batch.Record(ctx); err != nil {
			return err
		}
	}
	return kept(ctx)
}

// store stores the end of the operation.
func (r *Run) store(ctx context.Context, row *Stored) error {
	if r.row == nil {
		added, err := r.service.deps.Store.AddOperation(ctx, row, r.service.settings.Waiting)
		if err == nil && !added {
			err = full()
		}
		return err
	}
	held, err := r.service.deps.Store.SpendOperation(ctx, row, r.token)
	if err == nil && !held {
		err = lease.ErrLost
	}
	return err
}

// CallbackForm is the form of the bodies that [Service.OpenBody] opens.
const CallbackForm = "operation"

// tell stores what follows the end of an operation, in the transaction of ctx: its callback, and with
// alone the audit entry of the outcome.
func (s *Service) tell(ctx context.Context, op *Operation, actor string, alone bool) error {
	if alone {
		outcome := audit.OK
		if op.Fault != nil {
			outcome = op.Fault.Code
		}
		if err := s.writeEntry(ctx, op, audit.Done, outcome); err != nil {
			return err
		}
	}
	if op.Callback == "" {
		return nil
	}
	return s.docs.Callbacks.Messages.Call(ctx, notify.Call{
		ID: op.ID, To: op.Callback, About: "Operation" + string(op.State), UserID: op.Owner.UserID, Actor: actor, Form: CallbackForm, Expires: op.KeepUntil,
	})
}

// writeEntry writes the audit entry of an operation that is carried out without a request.
func (s *Service) writeEntry(ctx context.Context, op *Operation, phase, outcome string) error {
	e := audit.Entry{
		At: s.deps.Now(), RequestID: op.ID, Operation: "Execute" + op.Action, Phase: phase, Outcome: outcome,
		Object: "operation " + op.ID, Principal: op.Owner,
	}
	if phase == audit.Done {
		e.Detail = audit.WithHoldersOf(ctx, fmt.Sprintf("%d documents", len(op.Documents)))
		if op.Note != "" {
			e.Object += ", " + op.Note
		}
	}
	return s.deps.Audit.Record(ctx, e)
}

const (
	// smallAnswer is the size of results in bytes up to which they are stored in the row.
	smallAnswer = 32 << 10
	// slowest is how long stored results outlive the time at which the last request that needs them may
	// begin.
	slowest = 3 * time.Minute
)

// withEnd returns the row of an ended operation, with its inline results if a client may ask for them
// later: with an asynchronous operation and one with a callback as long as the record is stored, with one
// that its user confirmed until CompleteBefore, for a repeated call. The documents of op read what is
// stored from then on.
func (s *Service) withEnd(ctx context.Context, op *Operation, k *Kind) (row *Stored, err error) {
	asked := !op.ConfirmBefore.IsZero()
	size := int64(0)
	for i := range op.Documents {
		d := &op.Documents[i]
		if d.out = nil; d.Content != nil && (asked || op.Async || op.Callback != "") {
			d.out = &part{size, d.Content.Size()}
			size += d.Content.Size()
		}
	}
	if row, err = op.stored(); err != nil {
		return nil, err
	}
	if row.Purpose = k.Purpose; size == 0 {
		op.readResults(bytes.NewReader(nil)) // they are empty
		return row, nil
	}
	if !row.returnsResults() && size <= smallAnswer {
		var text bytes.Buffer
		if err := op.writeResults(&text); err != nil {
			return nil, err
		}
		op.readResults(bytes.NewReader(text.Bytes()))
		row.Answer, err = s.deps.Vault.Seal(answerPlace(op.ID), text.Bytes())
		return row, err
	}
	results := s.docs.Scratch()
	op.open = append(op.open, results.Close)
	all := bufio.NewWriterSize(results, 64<<10) // a result is written in many pieces
	if err := errors.Join(op.writeResults(all), all.Flush(), results.Finish()); err != nil {
		return nil, err
	}
	op.readResults(results)
	until := op.CompleteBefore
	if row.returnsResults() {
		row.Bytes, until = size, op.KeepUntil
	}
	// Reading may begin at the last moment.
	blobs := s.docs.Blobs
	if k.Private && s.docs.Sealed != nil {
		blobs = s.docs.Sealed
	}
	row.Results, err = blobs.KeepBlob(ctx, results, until.Add(slowest))
	return row, err
}

// writeResults writes the inline results one after the other.
func (op *Operation) writeResults(w io.Writer) error {
	for i := range op.Documents {
		if c := op.Documents[i].Content; c != nil {
			if _, err := c.WriteTo(w); err != nil {
				return fmt.Errorf("operation: keeping a result: %w", err)
			}
		}
	}
	return nil
}

// check reports a kind that did not end with Spend.
func (r *Run) check() error {
	if r.spent {
		return nil
	}
	return fmt.Errorf("operation: %q was carried out and is not spent", r.Operation.Kind)
}
