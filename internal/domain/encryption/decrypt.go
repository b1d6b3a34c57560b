// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/signing"
	"tamga/internal/domain/vault"
	"tamga/pki/cms"
	"tamga/pki/x509gost"
)

// DecryptOrder is a request to decrypt messages. The caller closes its documents, but not before the operation
// is closed.
type DecryptOrder struct {
	Type        Type
	Certificate string // identifier as text; "" and "0": one that opens the message, see Parsed.Certificates
	PIN         string
	Params      map[string]string // see the names of parameters below
	Messages    []Input

	Form              operation.Form
	Async             bool
	Callback          string
	ForceConfirmation bool
	Snapshot          *signing.Snapshot // read when the request came in; nil: one is read when it is needed
	Arguments         map[string]string // shown to the user who confirms, without effect
	Keep              operation.Keep
	Noted             func(text string) // see operation.Run.Note; nil: none
}

// ParamOriginator is the parameter of decryption: the certificate of the sender as Base64, for a message that
// names it and does not include it.
const ParamOriginator = "OriginatorCertificate"

// planVersion is the version of the form of plan.
const planVersion = 1

// plan says how messages are decrypted. It has no secrets.
type plan struct {
	Type        Type              `json:"type"`
	Certificate string            `json:"certificate,omitempty"` // with a confirmation: its number
	Originator  []byte            `json:"originator,omitempty"`  // DER
	Arguments   map[string]string `json:"arguments,omitempty"`   // that the user confirms, without effect
}

// secret is the secret part of a plan.
type secret struct {
	PIN string `json:"pin"`
}

// Format implements fmt.Formatter: every verb prints the same word.
func (secret) Format(f fmt.State, _ rune) { f.Write([]byte("secret")) }

// planOf returns the plan of an order.
func planOf(o *operation.Order) (p plan, err error) { return p, o.ReadPlan(&p) }

// Decrypting checks an order and returns it for package operation. Faults: content_required,
// invalid_parameters, invalid_pin.
func (s *Service) Decrypting(who audit.Principal, o *DecryptOrder, c operation.Confirming) (*operation.Order, error) {
	if err := checkInputs(o.Messages); err != nil {
		return nil, err
	}
	if len(o.PIN) > vault.MaxPIN {
		return nil, fault.Newf(fault.InvalidPIN, "the PIN is too long: at most %d bytes", vault.MaxPIN)
	}
	p := plan{Type: o.Type, Arguments: o.Arguments}
	if !keys.IsDefault(o.Certificate) {
		p.Certificate = strings.TrimSpace(o.Certificate)
	}
	for name, value := range o.Params {
		switch {
		case strings.EqualFold(name, ParamOriginator):
			if value == "" {
				continue
			}
			cert, err := certificateOf(value)
			if err != nil {
				return nil, fault.Newf(fault.InvalidParameters, "Decryption.Parameters: %s: want a certificate (X.509, DER) as Base64", ParamOriginator).With(err)
			}
			p.Originator = cert.Raw
		default:
			return nil, fault.Newf(fault.InvalidParameters, "Decryption.Parameters: %.64q is unknown: the parameter is %s", name, ParamOriginator)
		}
	}
	order := &operation.Order{
		Kind: KindDecrypt, Form: o.Form, Owner: who, Confirming: c, Forced: o.ForceConfirmation, Async: o.Async, Callback: o.Callback,
		Plan: p, Inputs: inputs(o.Messages), Description: signing.Describe(firstName(o.Messages), len(o.Messages)), Keep: o.Keep, Noted: o.Noted,
		Parameters: operation.Parameters(map[string]string{"EncryptionType": string(o.Type)}),
	}
	if o.PIN != "" {
		order.Secret = secret{o.PIN}
	}
	if o.Snapshot != nil {
		order.Fresh = o.Snapshot
	}
	return order, nil
}

// firstName returns the name of the first document, or its identifier.
func firstName(list []Input) string {
	if list[0].Name == "" {
		return list[0].RefID
	}
	return list[0].Name
}

// decryptKind is decryption for package operation.
func (s *Service) decryptKind() operation.Kind {
	return operation.Kind{
		Name: KindDecrypt, Version: planVersion, Purpose: confirm.ForOperation, Recorded: true, Temporary: true, Private: true,
		Check: s.permitted, Describe: s.describe, Propose: s.propose, Do: s.decrypt,
	}
}

// permitted implements operation.Kind.Check.
func (s *Service) permitted(ctx context.Context, o *operation.Order) (confirm bool, err error) {
	o.Action = policy.DecryptDocument
	snap, err := s.snapshot(ctx, o)
	if err != nil {
		return false, err
	}
	if err := s.Policy.PermitBy(snap.Access, o.Action); err != nil {
		return false, err
	}
	return s.Policy.NeedsConfirmationBy(snap.Operation, o.Action), nil
}

// describe implements operation.Kind.Describe: the encrypted messages, their recipient and the application. It
// completes the plan of a new order.
func (s *Service) describe(ctx context.Context, o *operation.Order) (f what.Fields, err error) {
	p, err := planOf(o)
	if err != nil {
		return f, err
	}
	if err := o.Names(ctx); err != nil {
		return f, err
	}
	snap, err := s.snapshot(ctx, o)
	if err != nil {
		return f, err
	}
	by, err := s.recipient(ctx, snap.KeysOf(o.Owner), o.Owner.UserID, &p)
	if err != nil {
		return f, err
	}
	var one *keys.Certificate
	var formats []string // of the messages
	err = o.Each(ctx, func(from int, in []operation.Opened) error {
		for i := range in {
			document, c, format, err := s.describeMessage(ctx, p.Type, by, &in[i])
			if !slices.Contains(formats, string(format)) {
				formats = append(formats, string(format))
			}
			switch {
			case err != nil:
				return operation.OfDocumentAt(from+i, err)
			case one == nil:
				one = c
			case one.ID != c.ID:
				return fault.New(fault.InvalidCertificate, "the messages are for different certificates of yours, and an operation that is confirmed uses one: send them separately, or give CertificateId")
			}
			document.Name = o.Documents()[from+i].OriginalName
			f.Documents = append(f.Documents, document)
		}
		return nil
	})
	if err != nil {
		return f, err
	}
	if !o.Stored() {
		p.Certificate = strconv.FormatInt(one.ID, 10)
		o.Plan = p
	}
	f.Action = o.Action.String()
	f.Certificate, f.PublicKey = streebog(one.X509.Raw), streebog(one.X509.RawSPKI)
	shown := map[string]string{
		"message": strings.Join(formats, ", "), "application": o.Owner.ClientID, "certificate": strconv.FormatInt(one.ID, 10), "recipient": one.X509.Subject.String(),
	}
	if len(p.Originator) > 0 {
		shown["originator"] = fmt.Sprintf("%x", streebog(p.Originator))
	}
	for name, value := range p.Arguments {
		shown[name] = value
	}
	for name, value := range shown {
		if value == "" {
			delete(shown, name)
		}
	}
	if f.Arguments, err = what.Arguments(shown); err != nil {
		return f, fault.New(fault.InvalidParameters, "the parameters of the operation cannot be confirmed").With(err)
	}
	o.Found = f.Documents // with the digests
	return f, nil
}

// describeMessage returns what a user confirms about a message, the certificate that opens it, and its format.
func (s *Service) describeMessage(ctx context.Context, t Type, by *recipient, in *operation.Opened) (d what.Document, c *keys.Certificate, format Type, err error) {
	switch {
	case in.Err != nil:
		return d, nil, "", in.Err
	case in.Document == nil || in.Document.Size() == 0:
		return d, nil, "", noDocument()
	}
	e, err := t.parse(ctx, &source{Document: in.Document}, s.Scratch)
	if err != nil {
		return d, nil, "", err
	}
	defer e.close()
	if c, err = by.of(ctx, e); err != nil {
		return d, nil, "", err
	}
	d.Size = in.Document.Size()
	d.Digest, err = digestOf(ctx, in.Document)
	return d, c, e.format(), err
}

// propose implements operation.Kind.Propose: a PIN that was given must be right before the user is asked.
func (s *Service) propose(ctx context.Context, o *operation.Order) error {
	with, ok := o.Secret.(secret)
	if !ok { // a client may give it when it carries the operation out
		return nil
	}
	p, err := planOf(o)
	if err != nil {
		return err
	}
	valid, reason, err := s.Keys.CheckPIN(ctx, o.Owner, p.Certificate, with.PIN, false)
	if err == nil && !valid {
		err = fault.New(fault.InvalidPIN, reason)
	}
	return err
}

// recipient chooses the certificates that open messages.
type recipient struct {
	own   *ownCertificates
	named *keys.Certificate // nil: each message decides
}

// recipient returns what chooses the certificates of a plan.
func (s *Service) recipient(ctx context.Context, snap *keys.Snapshot, userID string, p *plan) (*recipient, error) {
	if p.Certificate == "" {
		own, err := s.certificates(ctx, snap, userID)
		return &recipient{own: own}, err
	}
	c, err := s.Keys.ResolveIn(ctx, snap, userID, p.Certificate)
	own := &ownCertificates{keys: s.Keys, snap: snap, userID: userID, asked: map[int64]error{}}
	return &recipient{own, c}, err
}

// of returns the certificate that opens a message.
func (r *recipient) of(ctx context.Context, e message) (*keys.Certificate, error) {
	if r.named != nil {
		return r.named, r.own.opens(ctx, e, r.named)
	}
	found, why, err := r.own.opening(ctx, e)
	switch {
	case err != nil:
		return nil, err
	case len(found) > 0:
		return found[0], nil
	case why != nil:
		return nil, why
	}
	return nil, fault.New(fault.InvalidCertificate, "none of your certificates is among the recipients of the message")
}

// decryptRun is one attempt to decrypt the messages of an operation.
type decryptRun struct {
	*Service
	run        *operation.Run
	plan       plan
	pin        string
	snap       *keys.Snapshot
	by         *recipient
	originator *x509gost.Certificate
	results    results
	total      total
	used       []int64 // numbers of the certificates
	whole      error   // a fault that is not about one message
}

// decrypt implements operation.Kind.Do. Without a confirmation messages have results of their own. With one, the
// fault of one message is the fault of all.
func (s *Service) decrypt(ctx context.Context, run *operation.Run) error {
	r := &decryptRun{Service: s, run: run}
	var err error
	if r.plan, err = planOf(run.Order()); err != nil {
		return err
	}
	var with secret
	if err := run.Secret(&with); err != nil {
		return err
	}
	if r.pin = with.PIN; run.PIN != "" {
		r.pin = run.PIN
	}
	if len(r.plan.Originator) > 0 {
		if r.originator, err = x509gost.ParseCertificate(r.plan.Originator); err != nil {
			return err
		}
	}
	if err := run.Order().Each(ctx, func(from int, in []operation.Opened) error { return r.portion(ctx, from, in) }); err != nil {
		return err
	}
	r.note()
	if err := ended(run); err != nil {
		return err
	}
	return run.Spend(ctx, nil)
}

// current lets the next message be decrypted by what the user may do now.
func (r *decryptRun) current(ctx context.Context) error {
	o := r.run.Order()
	before := o.Fresh
	snap, err := r.snapshot(ctx, o)
	if err != nil {
		return err
	}
	if r.by != nil && before == o.Fresh {
		return nil
	}
	if err := r.Policy.PermitBy(snap.Access, o.Action); err != nil {
		return err
	}
	if !r.run.Confirmed() && r.Policy.NeedsConfirmationBy(snap.Operation, o.Action) {
		return operation.Unconfirmed(o.Action)
	}
	r.snap = snap.KeysOf(o.Owner)
	if r.snap.PINMark == "" && r.run.ID != "" { // a right PIN is tried once for all messages
		r.snap.PINMark = "operation " + r.run.ID
	}
	r.by, err = r.recipient(ctx, r.snap, o.Owner.UserID, &r.plan)
	return err
}

// portion decrypts some of the messages.
func (r *decryptRun) portion(ctx context.Context, from int, in []operation.Opened) error {
	for i := range in {
		d := &r.run.Documents[from+i]
		if d.Declined && r.run.Confirmed() {
			d.Fault = fault.New(fault.AuthenticationDeclined, "the user declined the document")
			continue
		}
		err := r.one(ctx, from+i, &in[i])
		f, refused := fault.As(err)
		switch {
		case err == nil:
		case !refused || r.run.Confirmed() || r.whole != nil:
			return err
		case f.Code == fault.InvalidPIN || f.Code == fault.Unavailable:
			return err // the next message would cost another attempt
		default:
			r.total.refused++
			r.run.Refuse(from+i, f)
		}
	}
	return nil
}

// one decrypts a message and saves its plaintext.
func (r *decryptRun) one(ctx context.Context, i int, in *operation.Opened) (err error) {
	switch {
	case in.Err != nil:
		return in.Err
	case in.Document == nil || in.Document.Size() == 0:
		return noDocument()
	}
	digest, err := r.digest(ctx, i, in)
	if err != nil {
		return err
	}
	r.total.add(digest, in.Document.Size())
	from := &source{Document: in.Document}
	e, err := r.plan.Type.parse(ctx, from, r.Scratch)
	if err != nil {
		r.note()
		return err
	}
	defer e.close()
	if r.whole = r.current(ctx); r.whole != nil {
		return r.whole
	}
	c, err := r.by.of(ctx, e)
	if err != nil {
		r.note()
		return err
	}
	r.uses(c.ID)
	r.note()
	opening, err := r.Keys.DecryptIn(ctx, r.snap, r.run.Owner.UserID, c, r.pin)
	if err != nil {
		return err
	}
	opening.Originator = r.originator
	stays := r.run.Documents[i].OriginalRef == "" // otherwise the document store has a copy
	made, integrity, err := r.open(ctx, stays, e, from, opening)
	if err != nil {
		return err
	}
	if stays {
		r.run.Hold(made)
	} else {
		defer func() { err = errors.Join(err, made.Close()) }()
	}
	r.total.plain += made.Size()
	if integrity == cms.Verified {
		r.total.verified++
	} else {
		r.total.unchecked++
	}
	d := &r.run.Documents[i]
	d.Integrity = integrity.String()
	name, _ := PlainName(d.OriginalName)
	return r.run.Save(ctx, i, name, operation.NewSection(made, 0, made.Size()))
}

// digest returns the digest of a message, which was computed for what the user confirms or is computed now.
func (r *decryptRun) digest(ctx context.Context, i int, in *operation.Opened) ([]byte, error) {
	if found, ok := r.run.Order().Found.([]what.Document); ok && i < len(found) {
		return found[i].Digest, nil
	}
	return digestOf(ctx, in.Document)
}

// open decrypts a message to a scratch document. It has all of the plaintext, or none: the scratch document is
// closed if the message is not right.
func (r *decryptRun) open(ctx context.Context, stays bool, e message, from *source, o cms.Opening) (*signing.Intake, cms.Integrity, error) {
	out := &plaintext{}
	var err error
	if out.Intake, err = r.results.next(r.Service, stays); err != nil {
		return nil, 0, err
	}
	key := &recipientKey{RecipientKey: o.Key}
	o.Key = key
	integrity, err := e.Decrypt(ctx, o, out)
	switch {
	case err == nil:
		return out.Intake, integrity, nil
	case key.err != nil:
		return nil, 0, key.err
	case out.err != nil:
		return nil, 0, out.err
	case from.err != nil:
		return nil, 0, from.err
	case ctx.Err() != nil:
		return nil, 0, ctx.Err()
	}
	return nil, 0, undecrypted(err)
}

// uses notes a certificate whose key is used.
func (r *decryptRun) uses(id int64) {
	if n := len(r.used); n == 0 || r.used[n-1] != id {
		r.used = append(r.used, id)
	}
}

// note tells audit entries what was done so far.
func (r *decryptRun) note() {
	var b strings.Builder
	const most = 16
	for i, id := range r.used {
		if i == most {
			fmt.Fprintf(&b, "%d more, ", len(r.used)-most)
			break
		}
		fmt.Fprintf(&b, "certificate %d, ", id)
	}
	b.WriteString(r.total.String())
	if r.total.verified+r.total.unchecked > 0 {
		fmt.Fprintf(&b, ", plaintext of %d bytes", r.total.plain)
	}
	if r.total.verified > 0 {
		fmt.Fprintf(&b, ", integrity %s of %d", cms.Verified, r.total.verified)
	}
	if r.total.unchecked > 0 {
		fmt.Fprintf(&b, ", integrity %s of %d", cms.NotVerified, r.total.unchecked)
	}
	r.run.Note(b.String())
}

// plaintext is a cms.Sink in a scratch document.
type plaintext struct {
	*signing.Intake
	err error
}

// Write implements cms.Sink.
func (p *plaintext) Write(text []byte) (int, error) {
	n, err := p.Intake.Write(text)
	p.err = err
	return n, err
}

// Commit implements cms.Sink.
func (p *plaintext) Commit() error {
	p.err = p.Finish()
	return p.err
}

// Discard implements cms.Sink. Closing also ends the reading of a document that has no key any more.
func (p *plaintext) Discard() { p.err = errors.Join(p.err, p.Close()) }

// recipientKey keeps the error of a key, which is no fault of the message.
type recipientKey struct {
	cms.RecipientKey
	err error
}

// Agree implements cms.RecipientKey.
func (k *recipientKey) Agree(ctx context.Context, a cms.KeyAgreement) ([]byte, error) {
	made, err := k.RecipientKey.Agree(ctx, a)
	return made, k.keep(err)
}

// Decrypt implements cms.RecipientKey.
func (k *recipientKey) Decrypt(ctx context.Context, t cms.KeyTransport) ([]byte, error) {
	made, err := k.RecipientKey.Decrypt(ctx, t)
	return made, k.keep(err)
}

func (k *recipientKey) keep(err error) error {
	if err != nil && !errors.Is(err, cms.ErrDecrypt) {
		k.err = err
	}
	return err
}

// Endings of files with encrypted messages. The first one is written.
var Endings = []string{".p7m", ".p7e", ".enc"}

const (
	nameless = "document"
	maxName  = 255 // characters of a name in the document store
)

// PlainName returns the name of the document that a file is the message of: without a directory, and never empty or
// of dots alone. ended reports whether the file has an ending of encrypted files, which the name has not.
func PlainName(file string) (name string, ended bool) {
	name = file[strings.LastIndexAny(file, `/\`)+1:]
	for _, ending := range Endings {
		if at := len(name) - len(ending); at >= 0 && strings.EqualFold(name[at:], ending) {
			name, ended = name[:at], true
			break
		}
	}
	if strings.Trim(name, ". ") == "" {
		name = nameless
	}
	return limited(name, maxName), ended
}

// sealedName returns the name of the message that a document is encrypted to.
func sealedName(name, ending string) string {
	if name == "" {
		name = nameless
	}
	return limited(name, maxName-len(ending)) + ending
}

// limited returns the first most characters of a name.
func limited(name string, most int) string {
	if r := []rune(name); len(r) > most {
		return string(r[:most])
	}
	return name
}
