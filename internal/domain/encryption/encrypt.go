// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
	"tamga/pki/cms"
	"tamga/pki/x509gost"
)

// EncryptOrder is a request to encrypt documents. The caller closes its documents, but not before the operation is
// closed.
type EncryptOrder struct {
	Type       Type
	Recipients [][]byte // certificates, DER
	Params     map[string]string
	Documents  []Input

	Ending   string // of the names of CMS messages: one of Endings; "": the first one
	Form     operation.Form
	Recorded bool // see operation.Order
	Snapshot *signing.Snapshot
	Keep     operation.Keep
	Noted    func(text string) // see operation.Run.Note; nil: none
}

// MaxKeys is the number of encrypted keys in all messages of one order: recipients times documents. Each costs a
// key agreement.
const MaxKeys = 10_000

// encryptPlan is the plan of an order, which is carried out at once.
type encryptPlan struct {
	recipients   []*x509gost.Certificate
	at           []int // index of each in the order
	kind         Type
	ending       string // of the names of messages
	form         options
	allowInvalid bool
	invalid      int // recipients that AllowInvalid allows
}

// Encrypting checks an order and returns it for package operation. Faults: content_required, invalid_recipients,
// invalid_parameters, temporarily_unavailable.
func (s *Service) Encrypting(ctx context.Context, who audit.Principal, o *EncryptOrder) (*operation.Order, error) {
	if err := checkInputs(o.Documents); err != nil {
		return nil, err
	}
	p, err := s.readParams(o.Type, o.Params)
	if err != nil {
		return nil, err
	}
	if err := s.setRecipients(ctx, p, o.Recipients, len(o.Documents)); err != nil {
		return nil, err
	}
	if p.ending = o.Type.row().ending; p.ending != "" && o.Ending != "" {
		if p.ending = o.Ending; !slices.Contains(Endings, p.ending) {
			return nil, fault.Newf(fault.InvalidParameters, "the ending of encrypted files is one of %s", strings.Join(Endings, ", "))
		}
	}
	order := &operation.Order{
		Recorded: o.Recorded,
		Kind:     KindEncrypt, Form: o.Form, Owner: who, Confirming: operation.Refuses,
		Plan: p, Inputs: inputs(o.Documents), Description: signing.Describe(firstName(o.Documents), len(o.Documents)), Keep: o.Keep, Noted: o.Noted,
	}
	if o.Snapshot != nil {
		order.Fresh = o.Snapshot
	}
	return order, nil
}

// readParams reads the parameters of encryption.
func (s *Service) readParams(t Type, params map[string]string) (*encryptPlan, error) {
	p := &encryptPlan{kind: t}
	others := map[string]string{}
	for name, value := range params {
		if !strings.EqualFold(name, ParamAllowInvalid) {
			others[name] = value
			continue
		}
		allow := parameter{name, value}
		if p.allowInvalid = allow.is("True") || allow.is("1"); !p.allowInvalid && !allow.is("False") && !allow.is("0") {
			return nil, allow.refused("True or False")
		}
	}
	var err error
	p.form, err = t.row().options(s.Rand, others)
	return p, err
}

// setRecipients reads and checks the certificates of the recipients. One that is given twice counts once.
func (s *Service) setRecipients(ctx context.Context, p *encryptPlan, list [][]byte, documents int) error {
	switch {
	case len(list) == 0:
		return fault.New(fault.InvalidRecipients, "Encryption.Certificates is missing or empty: send the certificates of the recipients")
	case len(list) > MaxKeys/documents:
		return fault.Newf(fault.InvalidRecipients, "%d documents for %d recipients: at most %d encrypted keys are made in one request", documents, len(list), MaxKeys)
	}
	check, err := s.Keys.Receiving(ctx, s.Now())
	if err != nil {
		return err
	}
	seen := make(map[string]bool, len(list))
	for i, der := range list {
		if seen[string(der)] {
			continue
		}
		seen[string(der)] = true
		cert, err := x509gost.ParseCertificate(der)
		if err != nil {
			return ofRecipient(i, fault.New(fault.InvalidRecipients, "want a certificate (X.509, DER) as Base64").With(err))
		}
		if cert.Suite == nil {
			return ofRecipient(i, fault.New(fault.InvalidRecipients, "its key cannot receive messages").With(cert.KeyError))
		}
		err = check(cert)
		if p.allowInvalid && !errors.Is(err, keys.ErrNoRecipient) && (fault.Is(err, fault.InvalidRecipients) || fault.Is(err, fault.Unavailable)) {
			p.invalid++
			err = nil
		}
		if err != nil {
			return ofRecipient(i, err)
		}
		p.recipients, p.at = append(p.recipients, cert), append(p.at, i)
	}
	return nil
}

// ofRecipient names the certificate that a fault is about.
func ofRecipient(i int, err error) error {
	f, refused := fault.As(err)
	if !refused {
		return err
	}
	named := *f
	named.Message = fmt.Sprintf("Encryption.Certificates[%d]: %s", i, f.Message)
	return &named
}

// certificateOf reads a certificate in Base64.
func certificateOf(text string) (*x509gost.Certificate, error) {
	der, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return nil, err
	}
	return x509gost.ParseCertificate(der)
}

// encryptKind is encryption for package operation: always at once, and not stored.
func (s *Service) encryptKind() operation.Kind {
	return operation.Kind{Name: KindEncrypt, Version: 1, Purpose: confirm.ForOperation, Temporary: true, Check: free, Do: s.encrypt}
}

// encryptRun encrypts the documents of an order.
type encryptRun struct {
	*Service
	run     *operation.Run
	plan    *encryptPlan
	results results
	total   total
}

// encrypt implements operation.Kind.Do.
func (s *Service) encrypt(ctx context.Context, run *operation.Run) error {
	r := &encryptRun{Service: s, run: run, plan: run.Order().Plan.(*encryptPlan)}
	if err := run.Order().Each(ctx, func(from int, in []operation.Opened) error { return r.portion(ctx, from, in) }); err != nil {
		return err
	}
	r.note()
	if err := ended(run); err != nil {
		return err
	}
	return run.Spend(ctx, nil)
}

// portion encrypts some of the documents.
func (r *encryptRun) portion(ctx context.Context, from int, in []operation.Opened) error {
	for i := range in {
		err := r.one(ctx, from+i, &in[i])
		f, refused := fault.As(err)
		switch {
		case err == nil:
		case !refused || f.Code == fault.InvalidRecipients: // of all documents
			return err
		default:
			r.total.refused++
			r.run.Refuse(from+i, f)
		}
	}
	return nil
}

// one encrypts a document and saves the message.
func (r *encryptRun) one(ctx context.Context, i int, in *operation.Opened) (err error) {
	switch {
	case in.Err != nil:
		return in.Err
	case in.Document == nil || in.Document.Size() == 0:
		return noDocument()
	}
	d := &r.run.Documents[i]
	stays := d.OriginalRef == "" // otherwise the document store has a copy
	made, err := r.results.next(r.Service, stays)
	if err != nil {
		return err
	}
	r.run.Hold(made)
	size := in.Document.Size()
	from := &source{Document: in.Document}
	err = r.plan.form.encrypt(ctx, made, operation.NewSection(from, 0, size), size, r.plan.recipients)
	if refused, is := errors.AsType[*cms.RecipientError](err); is {
		return fault.Newf(fault.InvalidRecipients, "Encryption.Certificates[%d]: %v", r.plan.at[refused.Index], refused.Err).With(err)
	}
	switch {
	case err == nil:
	case from.err != nil || ctx.Err() != nil || r.plan.kind == CMS:
		return err
	default:
		return invalidDocument(r.plan.kind, err)
	}
	if err := made.Finish(); err != nil {
		return err
	}
	digest, err := digestOf(ctx, made)
	if err != nil {
		return err
	}
	r.total.add(digest, made.Size())
	r.total.plain += size
	err = r.run.Save(ctx, i, sealedName(d.OriginalName, r.plan.ending), operation.NewSection(made, 0, made.Size()))
	if err == nil && !stays {
		err = made.Close()
	}
	return err
}

// mostNamed is the number of recipients that an audit entry names.
const mostNamed = 100

// note tells audit entries what was done: for whom, by serial numbers and digests of certificates (Streebog-256).
func (r *encryptRun) note() {
	var b strings.Builder
	fmt.Fprintf(&b, "%d recipients", len(r.plan.recipients))
	for i, c := range r.plan.recipients {
		if i == mostNamed {
			fmt.Fprintf(&b, ", %d more", len(r.plan.recipients)-mostNamed)
			break
		}
		fmt.Fprintf(&b, ", certificate %x (%x)", c.SerialNumber, streebog(c.Raw))
	}
	if r.plan.invalid > 0 {
		fmt.Fprintf(&b, ", %d of them not valid (%s)", r.plan.invalid, ParamAllowInvalid)
	}
	fmt.Fprintf(&b, "; %s, plaintext of %d bytes", &r.total, r.total.plain)
	r.run.Note(b.String())
}
