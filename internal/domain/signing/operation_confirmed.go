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
	"tamga/internal/domain/confirm/what"
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
			op, err = s.again(ctx, who, o, e, &open)
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
	op.open, open = open, nil
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
	w := &confirmedRun{Operations: s, subject: sub, op: op, pin: secrets.PIN, parts: make([]*madePart, len(sub.plan.Documents)), signed: make([]*ProofDocument, len(sub.plan.Documents))}
	if err := s.portions(ctx, sub, open, func(from int, items []Item, temporary []bool) error {
		return w.sign(ctx, from, items, temporary)
	}); err != nil {
		return err
	}
	return w.finish(ctx, e, secrets.Params, o.Keep)
}

// confirmedRun is one execution of a confirmed operation.
type confirmedRun struct {
	*Operations
	*subject
	op      *Operation
	pin     string
	records []func(ctx context.Context) error // make stored results visible
	parts   []*madePart                       // of inline results
	signed  []*ProofDocument                  // what was signed, for Proofs
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
	if err := w.by.checkMany(ctx, digests, values); err != nil {
		return err
	}
	results, parts, signed := make([]Result, len(works)), make([]*madePart, len(works)), make([]suite.Digest, len(works))
	err = each(ctx, len(works), func(ctx context.Context, i int) error {
		var err error
		results[i], parts[i], signed[i], err = w.assemble(ctx, &approved[i], works[i].state, digests[i], values[i])
		return err
	})
	if err != nil {
		return err
	}
	for n, i := range indexes {
		if err := w.settle(ctx, from+i, results[n], parts[n], temporary[i]); err != nil {
			return err
		}
		w.signed[from+i] = &ProofDocument{
			Index: from + i, Algorithm: signed[n].Hash.OID.String(), Digest: signed[n].Sum, Value: parts[n].Value, Result: w.op.Documents[from+i].RefID,
		}
	}
	return nil
}

// assemble makes a signed document and remembers what it is made from. It returns the
// digest that the value signs, which is another one if the document is prepared again.
func (w *confirmedRun) assemble(ctx context.Context, it *Item, state []byte, digest suite.Digest, value []byte) (Result, *madePart, suite.Digest, error) {
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
				return nil, nil, digest, err
			}
			if err := w.by.check(prepared.Digest, values[0]); err != nil {
				return nil, nil, digest, err
			}
			state, digest, value = prepared.State, prepared.Digest, values[0]
			evidence.answers = nil
			result, err = w.terms.format.Finish(ctx, job, state, value)
		}
	}
	if err != nil {
		return nil, nil, digest, translate(err)
	}
	return result, &madePart{State: state, Value: value, Room: job.Room, Evidence: evidence.answers}, digest, nil
}

// settle notes the result of a document. The result of a stored document is stored.
func (w *confirmedRun) settle(ctx context.Context, i int, result Result, part *madePart, temporary bool) error {
	d := &w.op.Documents[i]
	name := w.Signer.resultName(d.OriginalName, w.terms.name, w.terms.params)
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
	Form        confirm.Form      `json:"form"`
	Type        string            `json:"type"`
	Params      map[string]string `json:"params"`
	Secrets     []byte            `json:"secrets,omitempty"` // secret parameters as JSON, sealed to madePlace
	Certificate []byte            `json:"certificate"`
	Chain       [][]byte          `json:"chain"`
	Time        time.Time         `json:"time"`
	Plan        *confirmPlan      `json:"plan"`
	Parts       []*madePart       `json:"parts"` // nil for a document without an inline result
	Operation   *OperationRecord  `json:"operation"`
	Signed      []*ProofDocument  `json:"signed,omitempty"` // nil for a document that the user declined
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
			err = errors.Join(err, w.unnamed(ctx, record.Results, err))
		}
	}()
	plain, err := newRecord(op)
	if err != nil {
		return err
	}
	params, _ := w.Signer.apart(w.terms.params)
	m := made{
		Version: madeVersion, Form: w.plan.Form, Type: w.terms.name, Params: params, Certificate: w.by.certificate.X509.Raw,
		Time: w.by.at, Plan: w.plan, Parts: w.parts, Operation: plain, Signed: w.signed,
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

// again assembles the result of an operation that was carried out before.
func (s *Operations) again(ctx context.Context, who audit.Principal, o *ConfirmedOrder, e *confirm.Execution, open *[]func() error) (*Operation, error) {
	var m made
	if err := json.Unmarshal(e.Content.Result, &m); err != nil {
		return nil, fmt.Errorf("signing: the result of operation %s: %w", e.Record.ID, err)
	}
	switch {
	case m.Version != madeVersion:
		return nil, fmt.Errorf("signing: the result of operation %s has version %d, this release knows %d", e.Record.ID, m.Version, madeVersion)
	case m.Form != o.Form:
		return nil, confirm.OtherOperation()
	}
	op, _, err := readRecord(m.Operation)
	if err != nil {
		return nil, err
	}
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
		if sub.blob, err = openKept(ctx, s.Signer.Blobs, m.Plan.Contents); err != nil {
			return nil, err
		}
		*open = append(*open, sub.blob.Close)
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
	return op, s.assembleAgain(ctx, op, sub, format, job, m.Parts, open)
}

// assembleAgain makes the contents of inline results from their parts.
func (s *Operations) assembleAgain(ctx context.Context, op *Operation, sub *subject, format sig.Format, job sig.Job, parts []*madePart, open *[]func() error) error {
	for i, part := range parts {
		if part == nil {
			continue
		}
		one := *sub
		plan := *sub.plan
		plan.Documents = sub.plan.Documents[i : i+1]
		one.plan = &plan
		err := s.portions(ctx, &one, open, func(_ int, items []Item, _ []bool) error {
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
