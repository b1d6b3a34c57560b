// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/vault"
	"tamga/pki/suite"
	"tamga/sig"
)

// Confirmations keeps the confirmations of operations; *confirm.Service satisfies it.
type Confirmations interface {
	CanConfirm(ctx context.Context, userID string) error
	Create(ctx context.Context, who audit.Principal, o confirm.Order) (confirm.Record, error)
	Find(ctx context.Context, who audit.Principal, id string) (confirm.Record, error)
	Content(ctx context.Context, who audit.Principal, id string) (confirm.Content, error)
	Open(ctx context.Context, userID, after string, limit int) ([]confirm.Record, error)
	CarryOut(ctx context.Context, who audit.Principal, id string, w confirm.Work) error
	Automatic() <-chan struct{}
	NextAutomatic(ctx context.Context, again time.Duration) (r confirm.Record, found bool, err error)
	Postpone(ctx context.Context, id string, at time.Time, why *fault.Error) error
	Fail(ctx context.Context, who audit.Principal, id string, f *fault.Error, beside func(ctx context.Context) error) error
	Cancel(ctx context.Context, who audit.Principal, id string) (confirm.Record, error)
}

// PINs checks the PIN of a key; *keys.Service satisfies it.
type PINs interface {
	CheckPIN(ctx context.Context, who audit.Principal, id, pin string, attempts bool) (valid bool, reason string, err error)
}

// Confirming has what operations need that their user confirms first.
type Confirming struct {
	Records Confirmations // uses the same database as Operations.Store
	Units   Units         // of that database
	PINs    PINs
	Life    time.Duration // of a record until it is confirmed
}

// Units runs a function in one transaction, with a set of users locked. A store of
// package confirm satisfies it.
type Units interface {
	Atomic(ctx context.Context, locked lock.Set, fn func(ctx context.Context) error) error
}

// confirmPlanVersion is the version of the format of confirmPlan.
const confirmPlanVersion = 1

// confirmPlan says what a confirmed operation signs. It has no secrets. The documents of
// the request are in Blobs.
type confirmPlan struct {
	Version     int               `json:"v"`
	Form        confirm.Form      `json:"form"`
	Type        string            `json:"type"`
	Params      map[string]string `json:"params"`
	Certificate string            `json:"certificate"`
	Arguments   map[string]string `json:"arguments,omitempty"`
	Documents   []plannedDocument `json:"documents"`
	Original    *extent           `json:"original,omitempty"`
	Contents    string            `json:"contents,omitempty"` // name in Blobs
	Async       bool              `json:"async,omitempty"`
	Callback    string            `json:"callback,omitempty"`
	Owner       *audit.Principal  `json:"owner,omitempty"` // of an asynchronous operation
}

type plannedDocument struct {
	ID      string  `json:"id"`
	RefID   string  `json:"ref,omitempty"`
	Name    string  `json:"name,omitempty"`
	Related string  `json:"related,omitempty"`
	Content *extent `json:"content,omitempty"` // in Contents; nil for a stored document
}

// confirmSecrets is the secret part of a confirmPlan. It is stored sealed.
type confirmSecrets struct {
	PIN    string            `json:"pin,omitempty"`
	Params map[string]string `json:"params,omitempty"`
}

// outline returns the plan as it is stored after the end of the operation: without the documents of
// the request, which are deleted, and without the rights to carry the operation out.
func (p *confirmPlan) outline() ([]byte, error) {
	o := *p
	o.Contents, o.Original, o.Owner = "", nil, nil
	o.Documents = slices.Clone(p.Documents)
	for i := range o.Documents {
		o.Documents[i].Content = nil
	}
	return json.Marshal(o)
}

func readConfirmPlan(text []byte) (*confirmPlan, error) {
	p := &confirmPlan{}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("signing: the plan of a confirmed operation: %w", err)
	}
	if p.Version != confirmPlanVersion {
		return nil, fmt.Errorf("signing: the plan of a confirmed operation has version %d, this release knows %d", p.Version, confirmPlanVersion)
	}
	return p, nil
}

// Propose creates an operation that its user must confirm, whatever the policy says. It
// checks everything that can be checked before: the PIN costs an attempt if it is wrong.
// Confirmed carries the operation out.
//
// Faults besides those of Start: those of confirm.Service.Create.
func (s *Operations) Propose(ctx context.Context, who audit.Principal, o *OperationOrder) (*Operation, error) {
	if err := s.check(o); err != nil {
		return nil, err
	}
	return s.propose(ctx, who, o, actionOf(o))
}

// actionOf returns the action of an order.
func actionOf(o *OperationOrder) policy.Action {
	if len(o.Inputs) == 1 && !o.Package {
		return policy.SignDocument
	}
	return policy.SignDocuments
}

func (s *Operations) propose(ctx context.Context, who audit.Principal, o *OperationOrder, action policy.Action) (_ *Operation, err error) {
	if s.Confirming == nil {
		return nil, unconfirmed("a confirmation is needed, which this installation does not make")
	}
	if err := s.Confirming.Records.CanConfirm(ctx, who.UserID); err != nil {
		return nil, err
	}
	for i := range o.Inputs {
		if o.Inputs[i].Err != nil {
			return nil, ofDocument(i, o.Inputs[i].Err)
		}
	}
	if len(o.PIN) > vault.MaxPIN {
		return nil, fault.Newf(fault.InvalidPIN, "the PIN is too long: at most %d bytes", vault.MaxPIN)
	}
	p, contents, err := s.confirmPlan(ctx, who, o)
	if err != nil {
		return nil, err
	}
	secrets := confirmSecrets{PIN: o.PIN}
	p.Params, secrets.Params = s.Signer.apart(p.Params)
	if contents.Size() > 0 {
		if p.Contents, err = s.Signer.Blobs.KeepBlob(ctx, contents, s.Signer.Now().Add(s.Confirming.Life+contentsMargin)); err != nil {
			return nil, err
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.unnamed(ctx, p.Contents, err))
		}
	}()
	var open []func() error
	defer func() { err = errors.Join(err, closeAll(&open)) }()
	sub, err := s.subject(ctx, who, o.Snapshot, action, p, secrets.Params, &open)
	if err != nil {
		return nil, err
	}
	if err := s.try(ctx, sub); err != nil {
		return nil, err
	}
	p.Type, p.Certificate = sub.terms.name, fmt.Sprint(sub.by.certificate.ID)
	p.Params, _ = s.Signer.apart(sub.terms.params)
	if o.PIN != "" {
		valid, reason, err := s.Confirming.PINs.CheckPIN(ctx, who, p.Certificate, o.PIN, false)
		if err != nil {
			return nil, err
		}
		if !valid {
			return nil, fault.New(fault.InvalidPIN, reason)
		}
	}
	return s.record(ctx, who, o, p, sub, contents.Size(), &secrets)
}

// contentsMargin is how much longer documents are stored than an operation waits for its
// confirmation: the longest time to carry it out, the lease, and clocks that differ.
const contentsMargin = 2 * time.Hour

// record stores an operation that waits for its confirmation.
func (s *Operations) record(ctx context.Context, who audit.Principal, o *OperationOrder, p *confirmPlan, sub *subject, size int64, secrets *confirmSecrets) (op *Operation, err error) {
	order := confirm.Order{Purpose: confirm.ForOperation, Fields: sub.fields, Bytes: size, Automatic: p.Async, Life: s.Confirming.Life}
	if p.Async {
		p.Owner = &who
	}
	if order.Plan, err = json.Marshal(p); err != nil {
		return nil, err
	}
	if order.Outline, err = p.outline(); err != nil {
		return nil, err
	}
	if secrets.PIN != "" || len(secrets.Params) > 0 {
		if order.Secret, err = json.Marshal(secrets); err != nil {
			return nil, err
		}
		defer clear(order.Secret)
	}
	err = s.Confirming.Units.Atomic(ctx, lock.User(who.UserID), func(ctx context.Context) error {
		r, err := s.Confirming.Records.Create(ctx, who, order)
		if err != nil {
			return err
		}
		if op, err = proposed(who, &r, confirm.Content{Fields: sub.fields}, p); err != nil || o.Keep == nil {
			return err
		}
		kept, err := o.Keep(ctx, op)
		if err != nil {
			return fault.Rollback(err)
		}
		return fault.Rollback(kept(ctx))
	})
	if err != nil {
		return nil, err
	}
	return op, nil
}

// confirmPlan returns the plan of an order and its documents. All documents must be signed
// in the same way, because the user confirms one type with its parameters.
func (s *Operations) confirmPlan(ctx context.Context, who audit.Principal, o *OperationOrder) (*confirmPlan, *bundle, error) {
	p := &confirmPlan{
		Version: confirmPlanVersion, Form: o.Form, Certificate: o.Certificate, Arguments: o.Arguments,
		Async: o.Async, Callback: o.Callback,
	}
	if p.Form == "" {
		p.Form = confirm.FormOperation
	}
	contents := &bundle{}
	by := &plan{Type: s.Signer.typeName(o.Type), Params: o.Params, Template: o.Template}
	var rule *TemplateRule
	for i := range o.Inputs {
		in := &o.Inputs[i]
		id, err := newID(s.Signer.Rand)
		if err != nil {
			return nil, nil, err
		}
		d := plannedDocument{ID: id, RefID: in.RefID, Name: in.Name, Related: in.RelatedRefID}
		if in.RefID == "" {
			d.Content = &extent{contents.add(in.Content), in.Content.Size()}
		} else if d.Name == "" {
			stored, about, err := s.Documents.Open(ctx, who, in.RefID)
			if err != nil {
				return nil, nil, ofDocument(i, err)
			}
			d.Name = about.Name
			if err := stored.Close(); err != nil {
				return nil, nil, err
			}
		}
		how, err := s.manner(by, d.Name)
		if err != nil {
			return nil, nil, err
		}
		if i > 0 && how.rule != rule {
			return nil, nil, fault.New(fault.InvalidSignatureParams, "ProcessingTemplateId: the template signs these documents in different ways, and an operation that is confirmed signs all in one way: send them separately")
		}
		rule, p.Type, p.Params = how.rule, how.signatureType, how.params
		p.Documents = append(p.Documents, d)
	}
	if !o.Original.isEmpty() {
		p.Original = &extent{contents.add(o.Original), o.Original.Size()}
	}
	return p, contents, nil
}

// subject is what a plan means now: the fields that the user confirms, made from the
// stored documents.
type subject struct {
	who    audit.Principal
	plan   *confirmPlan
	terms  *terms
	by     *signer
	fields what.Fields
	blob   Blob // of plan.Contents; nil if there is none
}

// subject reads the documents of a plan and makes the fields. What it leaves open is
// appended to open.
func (s *Operations) subject(ctx context.Context, who audit.Principal, snap *Snapshot, action policy.Action, p *confirmPlan, secrets map[string]string, open *[]func() error) (*subject, error) {
	params := maps.Clone(p.Params)
	if params == nil {
		params = map[string]string{}
	}
	maps.Copy(params, secrets)
	sub := &subject{who: who, plan: p}
	var err error
	if sub.terms, err = s.Signer.terms(ctx, p.Type, params); err != nil {
		return nil, err
	}
	if sub.by, err = s.Signer.confirmable(ctx, who, snap, action, p.Certificate); err != nil {
		return nil, err
	}
	if p.Contents != "" {
		if sub.blob, err = openKept(ctx, s.Signer.Blobs, p.Contents); err != nil {
			return nil, err
		}
		*open = append(*open, sub.blob.Close)
	}
	cert := sub.by.certificate.X509
	f := &sub.fields
	f.Action, f.SignatureType = action.String(), sub.terms.name
	f.Certificate, f.PublicKey = streebog(cert.Raw), streebog(cert.RawSPKI)
	shown, _ := s.Signer.apart(sub.terms.params)
	secret := func(name string) bool { return s.Signer.Formats.Param(name).Secret }
	if f.Parameters, err = what.NewValues(shown, secret); err != nil {
		return nil, fault.New(fault.InvalidSignatureParams, "Signature.Parameters cannot be confirmed: a name is given twice or names a secret, or too many are given").With(err)
	}
	if f.Arguments, err = what.Arguments(p.Arguments); err != nil {
		return nil, fault.New(fault.InvalidParameters, "the parameters of the operation cannot be confirmed").With(err)
	}
	overHash := sub.terms.params.Reader().Bool("Hash", false)
	return sub, s.portions(ctx, sub, open, func(from int, items []Item, _ []bool) error {
		for i := range items {
			d, err := describeDocument(ctx, &items[i], overHash, cert.Suite.Hash)
			if err != nil {
				return ofDocument(from+i, err)
			}
			d.Name = p.Documents[from+i].Name
			f.Documents = append(f.Documents, d)
		}
		return nil
	})
}

func streebog(b []byte) what.Hex {
	h := suite.Streebog256.New()
	h.Write(b)
	return h.Sum(nil)
}

// describeDocument returns what a user confirms about a document.
func describeDocument(ctx context.Context, it *Item, overHash bool, h *suite.Hash) (what.Document, error) {
	content := it.content()
	d := what.Document{Size: content.Size()}
	original := it.original()
	if overHash {
		const longest = 64 // bytes of a hash value
		if original != nil || content.Size() > longest {
			return d, fault.New(fault.InvalidSignatureParams, "Hash is True: only a hash value without an original can be confirmed")
		}
		d.Hash, d.Digest = h.Name, make([]byte, content.Size())
		return d, readFull(content, d.Digest, 0)
	}
	var err error
	if d.Digest, err = digestOf(ctx, content); err != nil || original == nil {
		return d, err
	}
	d.Original = &what.Original{Size: original.Size()}
	d.Original.Digest, err = digestOf(ctx, original)
	return d, err
}

func digestOf(ctx context.Context, d sig.Document) (what.Hex, error) {
	list, err := sig.DigestAll(ctx, newSection(d, 0, d.Size()), d.Size(), suite.Streebog256)
	if err != nil {
		return nil, err
	}
	return list[0].Sum, nil
}

// portions calls do for the documents of a plan, a bounded number at a time. Stored
// documents are closed after their portion. What the results of inline documents read is
// appended to open.
func (s *Operations) portions(ctx context.Context, sub *subject, open *[]func() error, do func(from int, items []Item, temporary []bool) error) error {
	p := sub.plan
	part := func(e *extent) source {
		if e == nil || e.Size == 0 {
			return nil
		}
		return kept{Document: newSection(sub.blob, e.At, e.Size)}
	}
	one := func(from, to int) (err error) {
		var closing []func() error
		defer func() { err = errors.Join(err, closeAll(&closing)) }()
		items, temporary := make([]Item, to-from), make([]bool, to-from)
		for i := range items {
			d, it := &p.Documents[from+i], &items[i]
			it.stored, it.storedOriginal = part(d.Content), part(p.Original)
			if d.RefID != "" {
				stored, about, err := s.Documents.Open(ctx, sub.who, d.RefID)
				if err != nil {
					return ofDocument(from+i, err)
				}
				closing = append(closing, stored.Close)
				it.stored, temporary[i] = kept{Document: stored}, about.Temporary()
			}
			if d.Related != "" {
				related, _, err := s.Documents.Open(ctx, sub.who, d.Related)
				if err != nil {
					return ofDocument(from+i, err)
				}
				if it.storedOriginal = (kept{Document: related}); d.RefID == "" {
					*open = append(*open, related.Close)
				} else {
					closing = append(closing, related.Close)
				}
			}
			if it.content() == nil {
				return ofDocument(from+i, fault.New(fault.ContentRequired, "the stored document is empty"))
			}
		}
		return do(from, items, temporary)
	}
	for from := 0; from < len(p.Documents); from += portion {
		if err := one(from, min(from+portion, len(p.Documents))); err != nil {
			return err
		}
	}
	return nil
}

// try prepares all signatures, so that the user is not asked about documents that cannot
// be signed.
func (s *Operations) try(ctx context.Context, sub *subject) error {
	var open []func() error
	err := s.portions(ctx, sub, &open, func(from int, items []Item, _ []bool) error {
		outcomes := make([]Outcome, len(items))
		if _, err := s.Signer.prepareMany(ctx, sub.terms, sub.by, items, outcomes); err != nil {
			return err
		}
		if i := slices.IndexFunc(outcomes, func(o Outcome) bool { return o.Err != nil }); i >= 0 {
			return ofDocument(from+i, outcomes[i].Err)
		}
		return nil
	})
	return errors.Join(err, closeAll(&open))
}

// proposed returns the operation of a record. p is its plan or outline; nil for an act on keys,
// and for an operation that a release before outlines has created, after its end.
func proposed(who audit.Principal, r *confirm.Record, c confirm.Content, p *confirmPlan) (*Operation, error) {
	op := &Operation{
		ID: r.ID, Owner: who, State: State(r.State), Form: confirm.FormOperation,
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, ConfirmedAt: r.ConfirmedAt, CompletedAt: r.EndedAt,
		ConfirmBefore: r.ConfirmBefore, CompleteBefore: r.CompleteBefore,
	}
	if op.CompleteBefore.IsZero() {
		op.CompleteBefore = r.ConfirmBefore
	}
	var err error
	if op.Action, err = policy.ParseAction(r.Action); err != nil {
		return nil, fmt.Errorf("signing: operation %s: %w", r.ID, err)
	}
	if r.Code != "" && r.State.Final() {
		op.Fault = fault.New(r.Code, r.Message)
	}
	inputs := make([]Input, len(c.Fields.Documents))
	states := r.DocumentStates()
	for i, d := range c.Fields.Documents {
		inputs[i].Name = d.Name
		one := Processed{OriginalName: d.Name, Declined: states[i] == confirm.Refused}
		if p != nil {
			one.ID, one.OriginalRef, one.Related = p.Documents[i].ID, p.Documents[i].RefID, p.Documents[i].Related
		}
		op.Documents = append(op.Documents, one)
	}
	if len(inputs) > 0 {
		op.Description = describe(inputs)
	} else {
		op.Parameters = shownArguments(c.Fields.Arguments)
	}
	if p != nil {
		op.Form, op.Async, op.Callback, op.Parameters = p.Form, p.Async, p.Callback, shownParameters(p.Params)
	}
	return op, nil
}

// shownArguments returns the arguments of an operation without documents.
func shownArguments(v what.Values) string {
	shown := map[string]string{}
	for _, one := range v.List() {
		if one.Digest == nil {
			shown[one.Name] = one.Value
		}
	}
	return shownParameters(shown)
}

// findProposed returns an operation that was not carried out. It reports false if there is
// none of who.
func (s *Operations) findProposed(ctx context.Context, who audit.Principal, id string) (*Operation, bool, error) {
	if s.Confirming == nil || who.UserID == "" {
		return nil, false, nil
	}
	r, err := s.Confirming.Records.Find(ctx, who, id)
	if fault.Is(err, fault.InvalidTransaction) || err == nil && r.Purpose != confirm.ForOperation {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	op, err := s.readProposed(ctx, who, &r)
	return op, err == nil, err
}

func (s *Operations) readProposed(ctx context.Context, who audit.Principal, r *confirm.Record) (*Operation, error) {
	c, err := s.Confirming.Records.Content(ctx, who, r.ID)
	if err != nil {
		return nil, err
	}
	var p *confirmPlan
	text := c.Plan
	if len(text) == 0 {
		text = c.Outline
	}
	if len(text) > 0 && signs(r.Action) {
		if p, err = readConfirmPlan(text); err != nil {
			return nil, err
		}
	}
	op, err := proposed(who, r, c, p)
	if err != nil {
		return nil, err
	}
	op.withEnd(s.Signer.Now(), time.Time{})
	return op, nil
}

// openProposed appends the open operations of who that wait for their confirmation or
// their execution, the oldest first.
func (s *Operations) openProposed(ctx context.Context, who audit.Principal, list []*Operation) ([]*Operation, error) {
	if s.Confirming == nil {
		return list, nil
	}
	for after := ""; len(list) < maxActive; {
		records, err := s.Confirming.Records.Open(ctx, who.UserID, after, confirm.MaxPage)
		if err != nil {
			return nil, err
		}
		for i := range records {
			r := &records[i]
			if after = r.ID; r.Purpose != confirm.ForOperation || who.ClientID != "" && r.ClientID != who.ClientID {
				continue
			}
			op, err := s.readProposed(ctx, who, r)
			if err != nil {
				return nil, err
			}
			list = append(list, op)
		}
		if len(records) < confirm.MaxPage {
			break
		}
	}
	slices.SortStableFunc(list, func(a, b *Operation) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return list, nil
}

// cancelProposed ends an operation that was not carried out. It reports false if there is
// none of who.
func (s *Operations) cancelProposed(ctx context.Context, who audit.Principal, id string) (bool, error) {
	op, found, err := s.findProposed(ctx, who, id)
	if err != nil || !found {
		return false, err
	}
	c, err := s.Confirming.Records.Content(ctx, who, op.ID)
	if err != nil {
		return true, err
	}
	if _, err := s.Confirming.Records.Cancel(ctx, who, op.ID); err != nil {
		if _, refused := fault.As(err); !refused {
			return true, err
		}
		// The state that refused it may be newer than the one that was read above.
		if op, found, err = s.findProposed(ctx, who, id); err != nil || !found {
			return found, err
		}
		if op.State != StateCancelled {
			return true, overWith(op.State)
		}
	}
	if len(c.Plan) == 0 || op.Action&(policy.SignDocument|policy.SignDocuments) == 0 {
		return true, nil
	}
	p, err := readConfirmPlan(c.Plan)
	if err != nil {
		return true, err
	}
	return true, s.forget(ctx, p.Contents)
}
