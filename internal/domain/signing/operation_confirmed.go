// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/policy"
	"tamga/pki/suite"
	"tamga/sig"
)

// ConfirmedOrder carries out an operation that its user has confirmed.
type ConfirmedOrder struct {
	ID       string       // of the confirmation
	Form     confirm.Form // of the interface that asks
	PIN      string       // instead of the one that was given at creation; "": that one
	Snapshot *Snapshot
	Keep     func(ctx context.Context, o *Operation) (record func(ctx context.Context) error, err error) // as in OperationOrder
}

// Confirmed carries out an operation that its user has confirmed, or returns the result of
// an earlier call, byte for byte, without asking any service again. All documents that the
// user approved are signed or none. A failure leaves the operation confirmed, so that the
// caller can repeat the call in time.
//
// Faults: those of confirm.Service.CarryOut and of Sign; invalid_operation for an operation
// of another form.
func (s *Operations) Confirmed(ctx context.Context, who audit.Principal, o *ConfirmedOrder) (op *Operation, err error) {
	if s.Confirming == nil {
		return nil, unconfirmed("this installation makes no confirmations")
	}
	var open []func() error
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll(&open))
			op = nil
		}
	}()
	var sub *subject
	err = s.Confirming.Records.CarryOut(ctx, who, o.ID, confirm.Work{
		Mine: signs,
		Describe: func(ctx context.Context, r *confirm.Record, text []byte) (what.Fields, error) {
			p, err := readConfirmPlan(text)
			if err != nil {
				return what.Fields{}, err
			}
			if p.Form != o.Form {
				return what.Fields{}, confirm.OtherOperation()
			}
			action, err := policy.ParseAction(r.Action)
			if err != nil {
				return what.Fields{}, err
			}
			if sub, err = s.subject(ctx, who, o.Snapshot, action, p, nil, &open); err != nil {
				return what.Fields{}, err
			}
			return sub.fields, nil
		},
		Do: func(ctx context.Context, e *confirm.Execution) error {
			if op, err = proposed(who, &e.Record, e.Content, sub.plan); err != nil {
				return err
			}
			return s.carryOut(ctx, o, e, sub, op, &open)
		},
		Again: func(ctx context.Context, e *confirm.Execution) error {
			op, err = s.again(ctx, who, o, e)
			return err
		},
	})
	if fault.Is(err, fault.Unavailable) && sub != nil && sub.plan.Async {
		// It is being carried out without this request, or will be.
		waiting, found, e := s.findProposed(ctx, who, o.ID)
		if e == nil && found && waiting.State == StateConfirmed {
			return waiting, closeAll(&open)
		}
	}
	if err != nil {
		return nil, err
	}
	op.open, open = append(op.open, open...), nil
	return op, nil
}

// signs reports whether operations with an action make signatures.
func signs(action string) bool {
	a, err := policy.ParseAction(action)
	return err == nil && a&(policy.SignDocument|policy.SignDocuments) != 0
}

// carryOut signs what is leased, and spends the record with the result.
func (s *Operations) carryOut(ctx context.Context, o *ConfirmedOrder, e *confirm.Execution, sub *subject, op *Operation, open *[]func() error) error {
	var secrets confirmSecrets
	if len(e.Content.Secret) > 0 {
		if err := json.Unmarshal(e.Content.Secret, &secrets); err != nil {
			return errors.New("signing: the secrets of a confirmed operation cannot be read")
		}
		clear(e.Content.Secret)
	}
	if o.PIN != "" {
		secrets.PIN = o.PIN
	}
	if len(secrets.Params) > 0 {
		sub.terms.params = maps.Clone(sub.terms.params)
		maps.Copy(sub.terms.params, secrets.Params)
	}
	sub.by.confirmed = true // the fields were compared and the record is leased
	w := &confirmedRun{Operations: s, subject: sub, op: op, pin: secrets.PIN, signed: make([]*ProofDocument, len(sub.plan.Documents))}
	if err := s.portions(ctx, sub, open, func(from int, items []Item, temporary []bool) error {
		return w.sign(ctx, from, items, temporary)
	}); err != nil {
		return err
	}
	return w.finish(ctx, e, o.Keep, open)
}

// confirmedRun is one execution of a confirmed operation.
type confirmedRun struct {
	*Operations
	*subject
	op      *Operation
	pin     string
	records []func(ctx context.Context) error // make stored results visible
	signed  []*ProofDocument                  // what was signed, for Proofs
}

// sign signs a portion of the documents. A fault of one document is the fault of all.
func (w *confirmedRun) sign(ctx context.Context, from int, items []Item, temporary []bool) error {
	var indexes []int
	var approved []Item
	for i := range items {
		if d := &w.op.Documents[from+i]; d.Declined {
			d.Fault = fault.New(fault.AuthenticationDeclined, "the user declined the document")
			continue
		}
		indexes, approved = append(indexes, i), append(approved, items[i])
	}
	if len(approved) == 0 {
		return nil
	}
	outcomes := make([]Outcome, len(approved))
	works, err := w.Signer.prepareMany(ctx, w.terms, w.by, approved, outcomes)
	if err != nil {
		return err
	}
	digests := make([]suite.Digest, len(works))
	for i := range works {
		if outcomes[i].Err != nil {
			return outcomes[i].Err
		}
		digests[i] = works[i].digest
	}
	values, err := w.Signer.values(ctx, w.by, w.pin, digests)
	if err != nil {
		return err
	}
	if err := w.by.checkMany(ctx, digests, values); err != nil {
		return err
	}
	results, signed := make([]Result, len(works)), make([]value, len(works))
	err = each(ctx, len(works), func(ctx context.Context, i int) (err error) {
		results[i], signed[i], err = w.assemble(ctx, &works[i], values[i])
		return err
	})
	if err != nil {
		return err
	}
	for n, i := range indexes {
		if err := w.settle(ctx, from+i, results[n], temporary[i]); err != nil {
			return err
		}
		v := &signed[n]
		w.signed[from+i] = &ProofDocument{
			Index: from + i, Algorithm: v.digest.Hash.OID.String(), Digest: v.digest.Sum, Value: v.bytes, Result: w.op.Documents[from+i].RefID,
		}
	}
	return nil
}

// assemble makes a signed document. The value is another one if the document is prepared again.
func (w *confirmedRun) assemble(ctx context.Context, prepared *work, by []byte) (Result, value, error) {
	result, err := w.terms.format.Finish(ctx, prepared.job, prepared.state, by)
	v := value{prepared.digest, by}
	var room *sig.ErrRoom
	if errors.As(err, &room) { // as in Sign
		prepared.job.Room = room.Need
		result, v, err = w.Signer.make(ctx, w.terms.format, prepared.job, w.by, w.pin)
	}
	if err != nil {
		return nil, value{}, translate(err)
	}
	return result, v, nil
}

// settle notes the result of a document. The result of a stored document is stored.
func (w *confirmedRun) settle(ctx context.Context, i int, result Result, temporary bool) error {
	d := &w.op.Documents[i]
	name := w.Signer.resultName(d.OriginalName, w.terms.name, w.terms.params)
	if d.OriginalRef == "" {
		d.Name, d.Content = name, result
		return nil
	}
	ref, record, err := w.Documents.Save(ctx, w.who, document.Description{Name: name, Parent: d.OriginalRef, Temporary: temporary}, result)
	if err != nil {
		return err
	}
	d.Name, d.RefID = name, ref
	w.records = append(w.records, record)
	return nil
}

// finish spends the record of an operation, in one step with its results.
func (w *confirmedRun) finish(ctx context.Context, e *confirm.Execution, keep func(context.Context, *Operation) (func(context.Context) error, error), open *[]func() error) (err error) {
	now := w.Signer.Now()
	op := w.op
	op.State, op.UpdatedAt, op.CompletedAt, op.Fault = StateCompleted, now, now, nil
	record, err := w.ended(ctx, op, open)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.unnamed(ctx, record.Results, err))
		}
	}()
	proof, err := json.Marshal(made{Version: madeVersion, Type: w.terms.name, Certificate: w.by.certificate.X509.Raw, Signed: w.signed})
	if err != nil {
		return err
	}
	kept := func(context.Context) error { return nil }
	if keep != nil {
		if kept, err = keep(ctx, op); err != nil {
			return err
		}
	}
	// The result exists, so it is recorded even if the client is gone.
	err = e.Spend(context.WithoutCancel(ctx), proof, func(ctx context.Context) error {
		if err := w.addEnded(ctx, record); err != nil {
			return err
		}
		for _, visible := range w.records {
			if err := visible(ctx); err != nil {
				return err
			}
		}
		return kept(ctx)
	})
	if err != nil {
		return err
	}
	if e := w.forget(ctx, w.plan.Contents); e != nil {
		w.Failed(fmt.Errorf("signing: the documents of operation %s, which has ended: %w", op.ID, e))
	}
	return nil
}

// again returns the operation that a record was carried out as.
func (s *Operations) again(ctx context.Context, who audit.Principal, o *ConfirmedOrder, e *confirm.Execution) (*Operation, error) {
	p, err := readConfirmPlan(e.Content.Outline)
	if err != nil {
		return nil, err
	}
	if p.Form != o.Form {
		return nil, confirm.OtherOperation()
	}
	r, err := s.own(ctx, who, e.Record.ID)
	if err != nil {
		return nil, err
	}
	return s.withResults(ctx, r)
}
