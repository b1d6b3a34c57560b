// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/vault"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// ConfirmedOrder carries out an operation that its user has confirmed.
type ConfirmedOrder struct {
	ID       string // of the confirmation
	Form     Form   // of the interface that asks
	PIN      string // instead of the one that was given at creation; "": that one
	Snapshot *Snapshot
	Keep     func(ctx context.Context, o *Operation) (record func(ctx context.Context) error, err error) // as in OperationOrder
}

// Confirmed carries out an operation that its user has confirmed, or returns the result of
// an earlier call, byte for byte, without asking any service again. All documents that the
// user approved are signed or none. A failure leaves the operation confirmed, so that the
// caller can repeat the call in time.
//
// Faults: those of confirm.Service.Take and of Sign; invalid_operation for an operation of
// another form.
func (s *Operations) Confirmed(ctx context.Context, who audit.Principal, o *ConfirmedOrder) (*Operation, error) {
	if s.Confirming == nil {
		return nil, unconfirmed("this installation makes no confirmations")
	}
	r, err := s.Confirming.Records.Find(ctx, who, o.ID)
	if err != nil {
		return nil, err
	}
	action, err := policy.ParseAction(r.Action)
	if r.Purpose != confirm.ForOperation || err != nil || action&(policy.SignDocument|policy.SignDocuments) == 0 {
		return nil, otherOperation()
	}
	if r.State == confirm.Completed {
		return s.doneBefore(ctx, who, o, &r)
	}
	c, err := s.Confirming.Records.Content(ctx, who, r.ID)
	if err != nil {
		return nil, err
	}
	if r.State != confirm.Confirmed || len(c.Plan) == 0 {
		_, err := s.Confirming.Records.Take(ctx, who, r.ID, r.What) // has the fault of the state
		if err == nil {
			err = fmt.Errorf("signing: operation %s is confirmed and has no plan", r.ID)
		}
		return nil, err
	}
	p, err := readConfirmPlan(c.Plan)
	if err != nil {
		return nil, err
	}
	if p.Form != o.Form {
		return nil, otherOperation()
	}
	return s.carryOut(ctx, who, o, action, p)
}

func otherOperation() error {
	return fault.New(fault.InvalidOperation, "the access token is that of an operation which is carried out by another request")
}

// carryOut leases the record of a confirmed plan, signs, and spends the record with the
// result.
func (s *Operations) carryOut(ctx context.Context, who audit.Principal, o *ConfirmedOrder, action policy.Action, p *confirmPlan) (_ *Operation, err error) {
	op := &Operation{}
	defer func() {
		if err != nil {
			err = errors.Join(err, op.Close())
		}
	}()
	sub, err := s.subject(ctx, who, o.Snapshot, action, p, nil, &op.open)
	if err != nil {
		return nil, err
	}
	sum, err := sub.fields.Sum()
	if err != nil {
		return nil, err
	}
	e, err := s.Confirming.Records.Take(ctx, who, o.ID, sum)
	if err != nil {
		return nil, err
	}
	if e.Done {
		if err := op.Close(); err != nil {
			return nil, err
		}
		return s.again(ctx, who, o, e)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Release(context.WithoutCancel(ctx)))
		}
	}()
	var secrets confirmSecrets
	if len(e.Content.Secret) > 0 {
		if err := json.Unmarshal(e.Content.Secret, &secrets); err != nil {
			return nil, errors.New("signing: the secrets of a confirmed operation cannot be read")
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
	full, err := proposed(who, &e.Record, e.Content, p)
	if err != nil {
		return nil, err
	}
	full.open, op = op.open, full
	sub.by.confirmed = true // Take has compared the fields and leased the record
	w := &confirmedRun{Operations: s, subject: sub, op: op, pin: secrets.PIN, parts: make([]*madePart, len(p.Documents))}
	if err := s.portions(ctx, sub, &op.open, func(from int, items []Item, temporary []bool) error {
		return w.sign(ctx, from, items, temporary)
	}); err != nil {
		return nil, err
	}
	return op, w.finish(ctx, e, secrets.Params, o.Keep)
}

// confirmedRun is one execution of a confirmed operation.
type confirmedRun struct {
	*Operations
	*subject
	op      *Operation
	pin     string
	records []func(ctx context.Context) error // make stored results visible
	parts   []*madePart                       // of inline results
}

// madePart is what a signed document is assembled from again.
type madePart struct {
	State    []byte            `json:"state"`
	Value    []byte            `json:"value"`
	Room     int               `json:"room,omitempty"`
	Evidence map[string]answer `json:"evidence,omitempty"`
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
	results, parts := make([]Result, len(works)), make([]*madePart, len(works))
	err = each(ctx, len(works), func(ctx context.Context, i int) error {
		if err := w.by.check(digests[i], values[i]); err != nil {
			return err
		}
		var err error
		results[i], parts[i], err = w.assemble(ctx, &approved[i], works[i].state, values[i])
		return err
	})
	if err != nil {
		return err
	}
	for n, i := range indexes {
		if err := w.settle(ctx, from+i, results[n], parts[n], temporary[i]); err != nil {
			return err
		}
	}
	return nil
}

// assemble makes a signed document and remembers what it is made from.
func (w *confirmedRun) assemble(ctx context.Context, it *Item, state, value []byte) (Result, *madePart, error) {
	job := w.Signer.job(w.terms, w.by, it.content(), it.original())
	evidence := &recorder{from: w.Signer.Evidence}
	if w.Signer.Evidence != nil {
		job.Evidence = evidence
	}
	result, err := w.terms.format.Finish(ctx, job, state, value)
	var room *sig.ErrRoom
	if errors.As(err, &room) { // as in Sign
		job.Room = room.Need
		var prepared *sig.Prepared
		if prepared, err = w.terms.format.Prepare(ctx, job); err == nil {
			var values [][]byte
			if values, err = w.Signer.values(ctx, w.by, w.pin, []suite.Digest{prepared.Digest}); err != nil {
				return nil, nil, err
			}
			if err := w.by.check(prepared.Digest, values[0]); err != nil {
				return nil, nil, err
			}
			state, value = prepared.State, values[0]
			evidence.answers = nil
			result, err = w.terms.format.Finish(ctx, job, state, value)
		}
	}
	if err != nil {
		return nil, nil, translate(err)
	}
	return result, &madePart{State: state, Value: value, Room: job.Room, Evidence: evidence.answers}, nil
}

// settle notes the result of a document. The result of a stored document is stored.
func (w *confirmedRun) settle(ctx context.Context, i int, result Result, part *madePart, temporary bool) error {
	d := &w.op.Documents[i]
	name := w.Signer.resultName(d.OriginalName, w.terms.name)
	if d.OriginalRef == "" {
		d.Name, d.Content, w.parts[i] = name, result, part
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

// madeVersion is the version of the format of made.
const madeVersion = 1

// made is the result of a confirmed operation as its record stores it.
type made struct {
	Version     int               `json:"v"`
	Form        Form              `json:"form"`
	Type        string            `json:"type"`
	Params      map[string]string `json:"params"`
	Secrets     []byte            `json:"secrets,omitempty"` // secret parameters as JSON, sealed to madePlace
	Certificate []byte            `json:"certificate"`
	Chain       [][]byte          `json:"chain"`
	Time        time.Time         `json:"time"`
	Plan        *confirmPlan      `json:"plan"`
	Parts       []*madePart       `json:"parts"` // nil for a document without an inline result
	Operation   *OperationRecord  `json:"operation"`
}

func madePlace(id string) vault.Place {
	return vault.Place{Purpose: "operation parameters", Table: "confirmation_contents", Row: id, Column: "result"}
}

// finish spends the record of an operation, in one step with its results.
func (w *confirmedRun) finish(ctx context.Context, e *confirm.Execution, secrets map[string]string, keep func(context.Context, *Operation) (func(context.Context) error, error)) (err error) {
	now := w.Signer.Now()
	op := w.op
	op.State, op.UpdatedAt, op.CompletedAt, op.Fault = StateCompleted, now, now, nil
	record, err := (&run{Operations: w.Operations, op: op}).record(ctx, op, now)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.forget(ctx, record.Results))
		}
	}()
	plain, err := newRecord(op)
	if err != nil {
		return err
	}
	params, _ := w.Signer.apart(w.terms.params)
	m := made{
		Version: madeVersion, Form: w.plan.Form, Type: w.terms.name, Params: params, Certificate: w.by.certificate.X509.Raw,
		Time: w.by.at, Plan: w.plan, Parts: w.parts, Operation: plain,
	}
	for _, c := range w.by.chain {
		m.Chain = append(m.Chain, c.Raw)
	}
	if len(secrets) > 0 {
		text, err := json.Marshal(secrets)
		if err != nil {
			return err
		}
		if m.Secrets, err = w.Vault.Seal(madePlace(op.ID), text); err != nil {
			return err
		}
		clear(text)
	}
	result, err := json.Marshal(m)
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
	err = e.Spend(context.WithoutCancel(ctx), result, func(ctx context.Context) error {
		for _, visible := range w.records {
			if err := visible(ctx); err != nil {
				return err
			}
		}
		added, err := w.Store.AddOperation(ctx, record, w.Settings.Waiting)
		if err == nil && !added {
			err = full()
		}
		if err != nil {
			return err
		}
		return kept(ctx)
	})
	if err == nil && op.Callback != "" {
		poke(w.owed)
	}
	return err
}

// doneBefore returns the result of an operation that was carried out before.
func (s *Operations) doneBefore(ctx context.Context, who audit.Principal, o *ConfirmedOrder, r *confirm.Record) (*Operation, error) {
	e, err := s.Confirming.Records.Take(ctx, who, r.ID, r.What)
	if err != nil {
		return nil, err
	}
	if !e.Done {
		return nil, errors.Join(fmt.Errorf("signing: operation %s is completed and was leased", r.ID), e.Release(ctx))
	}
	return s.again(ctx, who, o, e)
}

// again assembles the result of an operation that was carried out before.
func (s *Operations) again(ctx context.Context, who audit.Principal, o *ConfirmedOrder, e *confirm.Execution) (_ *Operation, err error) {
	var m made
	if err := json.Unmarshal(e.Content.Result, &m); err != nil {
		return nil, fmt.Errorf("signing: the result of operation %s: %w", e.Record.ID, err)
	}
	switch {
	case m.Version != madeVersion:
		return nil, fmt.Errorf("signing: the result of operation %s has version %d, this release knows %d", e.Record.ID, m.Version, madeVersion)
	case m.Form != o.Form:
		return nil, otherOperation()
	}
	op, _, err := readRecord(m.Operation)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, op.Close())
		}
	}()
	_, format, err := s.Signer.format(m.Type)
	if err != nil {
		return nil, err
	}
	t := &terms{name: m.Type, format: format, params: m.Params}
	if t.params == nil {
		t.params = sig.Params{}
	}
	if len(m.Secrets) > 0 {
		text, err := s.Vault.Open(madePlace(op.ID), m.Secrets)
		if err != nil {
			return nil, err
		}
		err = json.Unmarshal(text, (*map[string]string)(&t.params))
		clear(text)
		if err != nil {
			return nil, errors.New("signing: the secret parameters of a confirmed operation cannot be read")
		}
	}
	sub := &subject{who: who, plan: m.Plan}
	if m.Plan.Contents != "" {
		if sub.blob, err = s.Signer.Blobs.OpenBlob(ctx, m.Plan.Contents); err != nil {
			return nil, err
		}
		op.open = append(op.open, sub.blob.Close)
	}
	job := sig.Job{Params: t.params, Time: m.Time, Again: true}
	if job.Certificate, err = x509gost.ParseCertificate(m.Certificate); err != nil {
		return nil, err
	}
	for _, der := range m.Chain {
		c, err := x509gost.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		job.Chain = append(job.Chain, c)
	}
	return op, s.assembleAgain(ctx, op, sub, format, job, m.Parts)
}

// assembleAgain makes the contents of inline results from their parts.
func (s *Operations) assembleAgain(ctx context.Context, op *Operation, sub *subject, format sig.Format, job sig.Job, parts []*madePart) error {
	for i, part := range parts {
		if part == nil {
			continue
		}
		one := *sub
		plan := *sub.plan
		plan.Documents = sub.plan.Documents[i : i+1]
		one.plan = &plan
		err := s.portions(ctx, &one, &op.open, func(_ int, items []Item, _ []bool) error {
			job := job
			job.Document, job.Room, job.Evidence = items[0].content(), part.Room, &recorder{answers: part.Evidence}
			if original := items[0].original(); original != nil {
				job.Original = original
			}
			result, err := format.Finish(ctx, &job, part.State, part.Value)
			if err != nil {
				return fmt.Errorf("signing: assembling document %d of operation %s again: %w", i, op.ID, err)
			}
			op.Documents[i].Content = result
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
