// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/policy"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/budget"
)

// Names of the kinds of operation that sign documents.
const (
	KindSign    = "sign"         // in one way
	KindSeveral = "sign several" // in several ways
)

// planVersion is the version of the form of plan.
const planVersion = 1

// plan says what an operation signs with. It has no secrets.
type plan struct {
	Action      string            `json:"action"`
	Type        string            `json:"type,omitempty"`
	Params      map[string]string `json:"params,omitempty"`
	Ways        []way             `json:"ways,omitempty"` // of KindSeveral, instead of Type and Params
	Certificate string            `json:"certificate,omitempty"`
	Template    string            `json:"template,omitempty"`  // identifier; not with a confirmation, whose parameters are known
	Arguments   map[string]string `json:"arguments,omitempty"` // that the user confirms, without effect
}

func (p *plan) kind() string {
	if len(p.Ways) > 0 {
		return KindSeveral
	}
	return KindSign
}

// parameters returns operation.Order.Parameters.
func (p *plan) parameters() string {
	if len(p.Ways) == 0 {
		return operation.Parameters(p.Params)
	}
	type shown struct {
		Type       string
		Parameters json.RawMessage
	}
	var all struct{ Ways []shown }
	for _, w := range p.Ways {
		all.Ways = append(all.Ways, shown{w.Type, json.RawMessage(operation.Parameters(w.Params))})
	}
	text, err := json.Marshal(all)
	if err != nil {
		return ""
	}
	return string(text)
}

// secret is the secret part of a plan.
type secret struct {
	PIN    string                    `json:"pin,omitempty"`
	Params map[string]string         `json:"params,omitempty"`
	Ways   map[int]map[string]string `json:"ways,omitempty"` // of KindSeveral, instead of Params
}

// newSecret returns a PIN and the secret parameters of each way, nil without both.
func newSecret(pin string, ways []map[string]string) *secret {
	x := &secret{PIN: pin}
	if len(ways) == 1 {
		x.Params = ways[0]
	}
	for i, params := range ways {
		if len(ways) > 1 && len(params) > 0 {
			if x.Ways == nil {
				x.Ways = map[int]map[string]string{}
			}
			x.Ways[i] = params
		}
	}
	if pin == "" && len(x.Params) == 0 && len(x.Ways) == 0 {
		return nil
	}
	return x
}

// Format implements fmt.Formatter: every verb prints the same word.
func (secret) Format(f fmt.State, _ rune) { f.Write([]byte("secret")) }

// added returns the parameters of a way with the secret ones.
func (x *secret) added(way int, params map[string]string) map[string]string {
	if x == nil {
		return params
	}
	secrets := x.Params
	if len(x.Ways) > 0 {
		secrets = x.Ways[way]
	}
	if len(secrets) == 0 {
		return params
	}
	all := make(map[string]string, len(params)+len(secrets))
	maps.Copy(all, params)
	maps.Copy(all, secrets)
	return all
}

// planOf returns the plan of an order. That of a new order needs no conversion: most are carried out at once.
func planOf(o *operation.Order) (p plan, err error) {
	if fresh, ok := o.Plan.(*plan); ok {
		return *fresh, nil
	}
	return p, o.ReadPlan(&p)
}

// Kinds returns the rows of the table for package operation.
func (s *Operations) Kinds() (list []operation.Kind) {
	for _, name := range []string{KindSign, KindSeveral} {
		list = append(list, operation.Kind{
			Name: name, Version: planVersion, Purpose: confirm.ForOperation, Recorded: true,
			Check: s.permitted, Describe: s.describe, Propose: s.propose, Do: s.sign,
		})
	}
	return list
}

// permitted implements operation.Kind.Check.
func (s *Operations) permitted(ctx context.Context, o *operation.Order) (confirm bool, err error) {
	p, err := planOf(o)
	if err != nil {
		return false, err
	}
	if o.Action, err = policy.ParseAction(p.Action); err != nil {
		return false, fmt.Errorf("signing: the plan of an operation: %w", err)
	}
	snap, err := s.snapshot(ctx, o)
	if err != nil {
		return false, err
	}
	if err := s.Signer.Policy.PermitBy(snap.Access, o.Action); err != nil {
		return false, err
	}
	return s.Signer.needsConfirmation(snap, o.Action), nil
}

// snapshot returns a snapshot of the owner of an order, which later steps use too.
func (s *Operations) snapshot(ctx context.Context, o *operation.Order) (*Snapshot, error) {
	snap, _ := o.Fresh.(*Snapshot)
	snap, err := s.Signer.Current(ctx, o.Owner, snap)
	if err == nil {
		o.Fresh = snap
	}
	return snap, err
}

// subject is what a plan means now.
type subject struct {
	plan     plan
	requests []*request // of each way
	by       *signer
	digests  []digests // of the documents, which are read once for what the user confirms and for the signature
}

// digests are those of a document and of its original.
type digests struct{ content, original []suite.Digest }

// describe implements operation.Kind.Describe. It completes the plan of a new order.
func (s *Operations) describe(ctx context.Context, o *operation.Order) (f what.Fields, err error) {
	sub := &subject{}
	if sub.plan, err = planOf(o); err != nil {
		return f, err
	}
	if err := o.Names(ctx); err != nil {
		return f, err
	}
	if err := s.oneRule(&sub.plan, o.Documents()); err != nil {
		return f, err
	}
	more, _ := o.Secret.(*secret) // of a new order
	ways := slices.Clone(sub.plan.ways())
	if sub.requests, err = s.requestsOf(ctx, ways, more, o.Documents()); err != nil {
		return f, err
	}
	snap, err := s.snapshot(ctx, o)
	if err != nil {
		return f, err
	}
	if sub.by, err = s.Signer.confirmable(ctx, o.Owner, snap, o.Action, sub.plan.Certificate); err != nil {
		return f, err
	}
	for i, t := range sub.requests {
		if err := s.Signer.Powers.mandated(ctx, o.Owner.UserID, t.params, sub.by.certificate.X509); err != nil {
			return f, ofWay(len(ways), firstOf(o.Documents(), i), err)
		}
		ways[i].Type = t.name
		ways[i].Params, _ = s.Signer.separate(t.decided())
	}
	if !o.Stored() {
		sub.plan.setWays(ways)
		sub.plan.Certificate, sub.plan.Template = fmt.Sprint(sub.by.certificate.ID), ""
		o.Plan, o.Parameters = &sub.plan, sub.plan.parameters()
	}
	cert := sub.by.certificate.X509
	f.Action = o.Action.String()
	f.Certificate, f.PublicKey = streebog(cert.Raw), streebog(cert.RawSPKI)
	for i, w := range ways {
		shown, err := what.NewValues(w.Params, func(name string) bool { return s.Signer.Formats.Param(name).Secret })
		if err != nil {
			err = fault.New(fault.InvalidSignatureParams, "Signature.Parameters cannot be confirmed: a name is given twice or names a secret, or too many are given").With(err)
			return f, ofWay(len(ways), firstOf(o.Documents(), i), err)
		}
		f.Ways = append(f.Ways, what.Way{SignatureType: w.Type, Parameters: shown})
	}
	if len(ways) == 1 {
		f.SignatureType, f.Parameters, f.Ways = f.Ways[0].SignatureType, f.Ways[0].Parameters, nil
	}
	if f.Arguments, err = what.Arguments(sub.plan.Arguments); err != nil {
		return f, fault.New(fault.InvalidParameters, "the parameters of the operation cannot be confirmed").With(err)
	}
	err = s.items(ctx, o, func(from int, items []Item) error {
		found := make([]digests, len(items))
		documents := make([]what.Document, len(items))
		for _, g := range byWay(o.Documents()[from:], items) {
			t := sub.requests[g.way]
			overHash := t.read.OverHash
			for n := range g.items {
				if err := checkItem(&g.items[n], overHash); err != nil {
					return operation.OfDocumentAt(from+g.at[n], err)
				}
			}
			of := make([]digests, len(g.items))
			if !overHash {
				hashes := []*suite.Hash{suite.Streebog256}
				if _, parts := t.format.(sig.PartSigner); !parts && cert.Suite.Hash != suite.Streebog256 {
					hashes = append(hashes, cert.Suite.Hash)
				}
				if err := digestItems(ctx, g.items, of, hashes); err != nil {
					return err
				}
			}
			for n := range g.items {
				i := g.at[n]
				found[i] = of[n]
				d, err := describeItem(&g.items[n], &of[n], overHash, cert.Suite.Hash)
				if err != nil {
					return operation.OfDocumentAt(from+i, err)
				}
				d.Name, d.Way = o.Documents()[from+i].OriginalName, g.way
				documents[i] = d
			}
		}
		f.Documents = append(f.Documents, documents...)
		sub.digests = append(sub.digests, found...)
		return nil
	})
	o.Found = sub
	return f, err
}

// oneRule applies the template of a plan to it.
func (s *Operations) oneRule(p *plan, documents []operation.Document) error {
	if p.Template == "" {
		return nil
	}
	var rule *TemplateRule
	for i := range documents {
		how, err := s.ruleOf(p, &documents[i])
		if err != nil {
			return err
		}
		if i > 0 && how.template != rule {
			return fault.New(fault.InvalidSignatureParams, "ProcessingTemplateId: the template signs these documents in different ways, and an operation that is confirmed signs all in one way: send them separately")
		}
		if rule = how.template; i == len(documents)-1 {
			p.Type, p.Params = how.signatureType, how.params
		}
	}
	return nil
}

// items opens the documents of an order as items of a batch. The fault of a document is the Err of its item.
func (s *Operations) items(ctx context.Context, o *operation.Order, do func(from int, items []Item) error) error {
	return o.Each(ctx, func(from int, in []operation.Opened) error {
		items := make([]Item, len(in))
		for i := range in {
			d, it := &in[i], &items[i]
			if it.Err = d.Err; d.Err != nil {
				continue
			}
			it.Name = o.Documents()[from+i].OriginalName
			it.Content, it.stored = itemOf(d.Document, d.Digests)
			it.Original, it.storedOriginal = itemOf(d.Original, d.OriginalDigests)
			if sub, ok := o.Found.(*subject); ok && sub.digests != nil {
				known := &sub.digests[from+i]
				it.stored, it.Content = withDigests(it.content(), known.content), nil
				it.storedOriginal, it.Original = withDigests(it.original(), known.original), nil
			}
		}
		return do(from, items)
	})
}

// itemOf returns a document as the two fields of an Item.
func itemOf(d sig.Document, digests []suite.Digest) (*Intake, source) {
	switch d := d.(type) {
	case nil:
		return nil, nil
	case *Intake:
		return d, nil
	}
	if d.Size() == 0 {
		return nil, nil
	}
	return nil, kept{d, digests}
}

// withDigests returns a document with digests that are known.
func withDigests(d source, known []suite.Digest) source {
	if d == nil {
		return nil
	}
	return kept{d, known}
}

func streebog(b []byte) what.Hex {
	h := suite.Streebog256.New()
	h.Write(b)
	return h.Sum(nil)
}

// checkItem refuses a document that cannot be described.
func checkItem(it *Item, overHash bool) error {
	const longest = 64 // bytes of a hash value
	content := it.content()
	switch {
	case it.Err != nil:
		return it.Err
	case content == nil:
		return fault.New(fault.ContentRequired, "the stored document is empty")
	case overHash && (it.original() != nil || content.Size() > longest):
		return fault.New(fault.InvalidSignatureParams, "Hash is True: only a hash value without an original can be confirmed")
	}
	return nil
}

// describeItem returns what a user confirms about a document.
func describeItem(it *Item, found *digests, overHash bool, h *suite.Hash) (what.Document, error) {
	content := it.content()
	d := what.Document{Size: content.Size()}
	if overHash {
		d.Hash, d.Digest = h.Name, make([]byte, content.Size())
		return d, operation.ReadFull(content, d.Digest, 0)
	}
	d.Digest = found.content[0].Sum
	if original := it.original(); original != nil {
		d.Original = &what.Original{Size: original.Size(), Digest: found.original[0].Sum}
	}
	return d, nil
}

// digestItems computes the digests of documents and their originals by some hashes, in this order. Each is read
// once, unless the request has computed its digest while it received it.
func digestItems(ctx context.Context, items []Item, found []digests, hashes []*suite.Hash) error {
	var read []source
	var to []*[]suite.Digest
	var received []*Intake
	for i := range items {
		for _, one := range []struct {
			in  *Intake
			of  source
			set *[]suite.Digest
		}{{items[i].Content, items[i].content(), &found[i].content}, {items[i].Original, items[i].original(), &found[i].original}} {
			if one.of == nil {
				continue
			}
			read, to = append(read, one.of), append(to, one.set)
			if !one.in.isEmpty() {
				received = append(received, one.in)
			}
		}
	}
	digestTogether(received)
	return each(ctx, (len(read)+sideBySide-1)/sideBySide, func(ctx context.Context, group int) error {
		var small []int
		var texts [][]byte
		for i := group * sideBySide; i < min(len(read), (group+1)*sideBySide); i++ {
			d := read[i]
			if *to[i] = pick(d.digests(), hashes); *to[i] != nil {
				continue
			}
			if d.Size() <= smallDocument {
				text := make([]byte, d.Size())
				if err := operation.ReadFull(d, text, 0); err != nil {
					return err
				}
				small, texts = append(small, i), append(texts, text)
				continue
			}
			var err error
			if *to[i], err = sig.DigestAll(ctx, operation.NewSection(d, 0, d.Size()), d.Size(), hashes...); err != nil {
				return err
			}
		}
		for _, h := range hashes {
			if len(texts) == 0 {
				break
			}
			for i, digest := range h.SumMany(texts) {
				*to[small[i]] = append(*to[small[i]], digest)
			}
		}
		return nil
	})
}

// smallDocument is the size in bytes up to which documents are hashed together. At most [sideBySide] for each of
// [parallel] goroutines are in memory.
const smallDocument = 16 << 10

// pick returns the digests by some hashes, in their order; nil if one is missing.
func pick(known []suite.Digest, hashes []*suite.Hash) []suite.Digest {
	list := make([]suite.Digest, 0, len(hashes))
	for _, h := range hashes {
		i := slices.IndexFunc(known, func(d suite.Digest) bool { return d.Hash == h })
		if i < 0 {
			return nil
		}
		list = append(list, known[i])
	}
	return list
}

// propose implements operation.Kind.Propose: it prepares all signatures, so that the user is not asked about
// documents that cannot be signed, and checks the PIN.
func (s *Operations) propose(ctx context.Context, o *operation.Order) error {
	sub := o.Found.(*subject)
	err := s.items(ctx, o, func(from int, items []Item) error {
		for _, g := range byWay(o.Documents()[from:], items) {
			if t := sub.requests[g.way]; t.one {
				if err := oneContainer(o.Documents(), len(sub.requests)); err != nil {
					return err
				}
				job, err := s.Signer.containerJob(t, sub.by, o.Documents(), g.items)
				if err != nil {
					return err
				}
				if _, err := t.format.Prepare(ctx, job); err != nil {
					return translate(err)
				}
				continue
			}
			outcomes := make([]Outcome, len(g.items))
			if _, err := s.Signer.prepareMany(ctx, sub.requests[g.way], sub.by, g.items, outcomes); err != nil {
				return err
			}
			i := slices.IndexFunc(outcomes, func(o Outcome) bool { return o.Err != nil })
			switch {
			case i < 0:
			case outcomes[i].Err.Code == fault.InvalidSignatureParams:
				return ofWay(len(sub.requests), from+g.at[i], outcomes[i].Err)
			default:
				return operation.OfDocumentAt(from+g.at[i], outcomes[i].Err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	with, _ := o.Secret.(*secret)
	pin := ""
	if with != nil {
		pin = with.PIN
	}
	if pin == "" && o.Form != operation.FormPage { // a client may give it when it carries the operation out
		return nil
	}
	valid, reason, err := s.PINs.CheckPIN(ctx, o.Owner, sub.plan.Certificate, pin, false)
	if err == nil && !valid {
		err = fault.New(fault.InvalidPIN, reason)
	}
	return err
}

// oneContainer refuses an order whose documents cannot be the files of one container.
func oneContainer(documents []operation.Document, ways int) error {
	switch {
	case ways > 1:
		return fault.New(fault.InvalidSignatureParams, "Container is one, but the documents are signed in several ways: order the container alone")
	case len(documents) > operation.Together:
		return fault.Newf(fault.InvalidParameters, "Container is one, but there are %d documents: at most %d become files of one container", len(documents), operation.Together)
	}
	return nil
}

// containerJob returns the job of one container of documents. It refuses a document that is gone or empty, and an
// original, which a container has no place for.
func (s *Service) containerJob(t *request, by *signer, documents []operation.Document, items []Item) (*sig.Job, error) {
	for i := range items {
		err := checkItem(&items[i], false)
		if err == nil && items[i].original() != nil {
			err = fault.New(fault.InvalidSignatureParams, "Container is one, but a document names its original: a container holds its documents, leave RelatedRefId out")
		}
		if err != nil {
			return nil, operation.OfDocumentAt(i, translate(err))
		}
	}
	job := s.job(t, by, items[0].content(), nil)
	for i := range items {
		name := documents[i].OriginalName
		if name == "" {
			name = fmt.Sprintf("document%d", i+1)
		}
		if i == 0 {
			job.Name = name
			continue
		}
		content := items[i].content()
		job.Files = append(job.Files, sig.File{Name: name, Document: content, Digests: content.digests()})
	}
	return job, nil
}

// contain makes one container of all documents of the operation. The result belongs to the first document that is
// stored, or to the first one, and the others name it.
func (r *signRun) contain(ctx context.Context, t *request, by *signer, indexes []int, items []Item) error {
	documents := r.run.Documents
	if err := oneContainer(documents, len(r.plan.ways())); err != nil {
		return err
	}
	if len(indexes) != len(documents) {
		for i := range documents {
			if f := documents[i].Fault; f != nil {
				return operation.OfDocumentAt(i, f) // a container without it would be another one
			}
		}
		return fault.New(fault.InvalidOperation, "the container lacks a document")
	}
	job, err := r.Signer.containerJob(t, by, documents, items)
	if err != nil {
		return err
	}
	result, v, err := r.Signer.make(ctx, t.format, job, by, r.secret.PIN)
	if err != nil {
		return translate(err)
	}
	r.Signer.made(t.name, by.certificate.X509.Suite)
	at := max(0, slices.IndexFunc(documents, func(d operation.Document) bool { return d.OriginalRef != "" }))
	if err := r.settle(ctx, at, Outcome{Result: result, value: v}, t); err != nil {
		return err
	}
	if f := documents[at].Fault; f != nil {
		return operation.OfDocumentAt(at, f)
	}
	for i := range documents {
		if i != at {
			documents[i].RefID, documents[i].Name = documents[at].RefID, documents[at].Name
			if r.signed != nil {
				same := *r.signed[at]
				same.Index = i
				r.signed[i] = &same
			}
		}
		r.enter(i, by, t, &items[i])
	}
	return nil
}

// signRun is one attempt to sign the documents of an operation.
type signRun struct {
	*Operations
	run    *operation.Run
	plan   plan
	secret secret
	sub    *subject         // of a confirmed operation
	signed []*ProofDocument // of a confirmed operation; nil for documents that the user declined

	entries []signedEntry // of the register
}

// sign implements operation.Kind.Do. Without a confirmation documents have results of their own. With one,
// the fault of one document is the fault of all.
func (s *Operations) sign(ctx context.Context, run *operation.Run) error {
	r := &signRun{Operations: s, run: run}
	var err error
	if r.plan, err = planOf(run.Order()); err != nil {
		return err
	}
	if err := run.Secret(&r.secret); err != nil {
		return err
	}
	if run.PIN != "" {
		r.secret.PIN = run.PIN
	}
	if run.Confirmed() {
		r.sub = run.Order().Found.(*subject)
		r.sub.by.confirmed = true // the fields were compared and the operation is leased
		r.signed = make([]*ProofDocument, len(run.Documents))
	}
	if !run.Confirmed() && len(r.plan.Ways) > 0 { // a way that cannot be used refuses all before the key is used
		if _, err := s.requestsOf(ctx, r.plan.Ways, &r.secret, run.Documents); err != nil {
			return err
		}
	}
	if err := s.items(ctx, run.Order(), func(from int, items []Item) error { return r.portion(ctx, from, items) }); err != nil {
		return err
	}
	if err := r.ended(); err != nil {
		return err
	}
	r.register()
	return run.Spend(ctx, nil)
}

// ended refuses a request as a whole, or proves what was confirmed.
func (r *signRun) ended() error {
	if r.run.Confirmed() {
		m := made{Version: madeVersion, Certificate: r.sub.by.certificate.X509.Raw, Signed: r.signed}
		if len(r.sub.requests) == 1 {
			m.Type = r.sub.requests[0].name
		}
		proof, err := json.Marshal(m)
		r.run.Prove(proof)
		return err
	}
	for i := range r.plan.Ways {
		if err := r.wrongWay(i); err != nil {
			return err
		}
	}
	if !r.run.AtOnce() {
		return nil
	}
	faults := make([]*fault.Error, len(r.run.Documents))
	for i := range faults {
		faults[i] = r.run.Documents[i].Fault
	}
	if f := operation.Refusal(faults); f != nil {
		return operation.OfDocumentAt(0, f) // the only one, unless the fault is about all of them
	}
	return nil
}

// portion signs some of the documents.
func (r *signRun) portion(ctx context.Context, from int, items []Item) error {
	type group struct {
		rule
		indexes []int
		items   []Item
	}
	var groups []*group
	for i := range items {
		d := &r.run.Documents[from+i]
		switch {
		case d.Declined && r.run.Confirmed():
			d.Fault = fault.New(fault.AuthenticationDeclined, "the user declined the document")
			continue
		case items[i].Err != nil:
			if err := r.refuse(from+i, items[i].Err); err != nil {
				return err
			}
			continue
		}
		how, err := r.ruleOf(&r.plan, d)
		if err != nil {
			if err := r.refuse(from+i, err); err != nil {
				return err
			}
			continue
		}
		var g *group
		for _, other := range groups {
			if other.template == how.template && other.way == how.way {
				g = other
			}
		}
		if g == nil {
			g = &group{rule: how}
			groups = append(groups, g)
		}
		g.indexes, g.items = append(g.indexes, from+i), append(g.items, items[i])
	}
	for _, g := range groups {
		if err := r.together(ctx, &g.rule, g.indexes, g.items); err != nil {
			return err
		}
	}
	return nil
}

// together signs documents that are signed in the same way.
func (r *signRun) together(ctx context.Context, how *rule, indexes []int, items []Item) error {
	t, by, err := r.with(ctx, how)
	if err != nil {
		return err
	}
	if t.one {
		return r.contain(ctx, t, by, indexes, items)
	}
	outcomes, err := r.Signer.signItems(ctx, t, by, r.secret.PIN, items)
	if err != nil {
		return err
	}
	for n, o := range outcomes {
		if err := r.settle(ctx, indexes[n], o, t); err != nil {
			return err
		}
		if r.run.Documents[indexes[n]].Fault == nil {
			r.enter(indexes[n], by, t, &items[n])
		}
	}
	return nil
}

// with returns the request and the key: what was confirmed, or what they are now.
func (r *signRun) with(ctx context.Context, how *rule) (*request, *signer, error) {
	if r.sub != nil {
		t := r.sub.requests[how.way]
		return t.with(r.secret.added(how.way, t.params)), r.sub.by, nil
	}
	t, err := r.Signer.request(ctx, how.signatureType, r.secret.added(how.way, how.params))
	if err != nil {
		return nil, nil, err
	}
	snap, _ := r.run.Order().Fresh.(*Snapshot)
	by, err := r.Signer.signer(ctx, r.run.Owner, snap, r.run.Asked(), r.plan.Certificate)
	return t, by, err
}

// refuse gives a document a fault. The error ends the attempt.
func (r *signRun) refuse(i int, err error) error {
	f, ok := fault.As(err)
	if !ok || r.run.Confirmed() {
		return err
	}
	r.run.Refuse(i, f)
	return nil
}

// settle records the outcome of a document. The error ends the attempt.
func (r *signRun) settle(ctx context.Context, i int, o Outcome, t *request) error {
	if o.Err != nil {
		if r.run.Again && errors.Is(o.Err, budget.ErrBusy) {
			return o.Err // no client waits for the answer, and other documents will have ended
		}
		return r.refuse(i, o.Err)
	}
	d := &r.run.Documents[i]
	err := r.run.Save(ctx, i, r.Signer.resultName(d.OriginalName, t.name, t.params), o.Result)
	if err != nil { // most likely a quota is used up
		return r.refuse(i, err)
	}
	if r.signed != nil {
		r.signed[i] = &ProofDocument{Index: i, Algorithm: o.value.digest.Hash.OID.String(), Digest: o.value.digest.Sum, Value: o.value.bytes, Result: d.RefID}
	}
	return nil
}
