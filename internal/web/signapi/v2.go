// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
	"tamga/internal/web/rest"
)

// Signatures makes orders of signatures; *signing.Operations satisfies it.
type Signatures interface {
	parameterForms
	Ordered(who audit.Principal, o *signing.OperationOrder, c operation.Confirming) (*operation.Order, error)
}

// Operating has the services that carry out what users order, and the one that makes orders of signatures.
type Operating struct {
	Operations Operations
	Signatures Signatures
	Encryption Encryption
	// Realm is the name of the identity provider of the users.
	Realm string
}

// routes returns the operations of v2. take opens the intake of a document.
func (o *Operating) routes(take func(context.Context, audit.Principal) (*signing.Intake, error)) []rest.Route {
	return []rest.Route{
		rest.HandleDocuments("POST /v2/signature", "SignatureOperation", rest.SignedIn, take, o.start).Answering(answerOf[*processed]{}).Large().Once().Confirmed(),
		rest.Handle("GET /v2/signature/{id}", "GetSignatureOperation", rest.SignedIn, o.result).Answering(answerOf[*processed]{}).Confirmed(),
	}
}

// binary is one document of an operation.
type binary struct {
	RefID        rest.Text `json:"RefId"`
	Content      rest.Document
	ContentInfo  rest.Text // name of a file
	RelatedRefID rest.Text `json:"RelatedRefId"`
}

// operationSignature is the Signature of v2. Clients send the template in it or beside it.
type operationSignature struct {
	Type                 rest.Text
	Parameters           map[string]rest.Blob
	CertificateID        rest.Text `json:"CertificateId"`
	PinCode              rest.Text
	ProcessingTemplateID rest.Text `json:"ProcessingTemplateId"`
}

type operationRequest struct {
	Body struct {
		BinaryData           []binary
		Signature            *operationSignature
		ProcessingTemplateID rest.Text `json:"ProcessingTemplateId"`
		IsAsync              rest.Text `api:"boolean"`
		Callback             rest.Text
		ForceConfirmation    rest.Text `api:"boolean"`
	}
}

// start signs the documents of a request, or accepts them for later.
func (o *Operating) start(ctx context.Context, docs *documents, r operationRequest) (rest.JSON, error) {
	b := &r.Body
	s := b.Signature
	if rest.Caller(ctx).Confirmation != "" {
		c := claim{more: len(b.BinaryData) > 0 || b.ProcessingTemplateID != "" || b.IsAsync != "" || b.Callback != "" || b.ForceConfirmation != ""}
		if s != nil {
			c.pin = string(s.PinCode)
			c.more = c.more || s.Type != "" || len(s.Parameters) > 0 || s.CertificateID != "" || s.ProcessingTemplateID != ""
		}
		return o.confirmed(ctx, operation.FormOperation, signs, c)
	}
	switch {
	case len(b.BinaryData) == 0 && (s == nil || s.Type == "" && len(s.Parameters) == 0):
		// Only the token of a confirmed operation says which operation to carry out.
		return rest.JSON{}, fault.New(fault.InvalidOperation, "there is no operation to carry out: the access token is not that of a confirmed one, so send BinaryData and Signature")
	case len(b.BinaryData) == 0:
		return rest.JSON{}, fault.New(fault.ContentRequired, "BinaryData is missing or empty: send the documents to sign")
	case s == nil:
		s = &operationSignature{}
	}
	order, err := o.order(docs, b.BinaryData, s)
	if err != nil {
		return rest.JSON{}, err
	}
	switch beside := string(b.ProcessingTemplateID); {
	case order.Template == "":
		order.Template = beside
	case beside != "" && beside != order.Template:
		return rest.JSON{}, fault.New(fault.InvalidParameters, "ProcessingTemplateId is given twice, with different values")
	}
	if order.Type == "" && order.Template == "" {
		return rest.JSON{}, fault.New(fault.InvalidSignatureParams, "Signature is missing or has no Type: give it, or a ProcessingTemplateId")
	}
	return o.orderSignatures(ctx, order, b.IsAsync, b.Callback, b.ForceConfirmation)
}

// orderSignatures begins the order of a request, and keeps and returns the answer.
func (o *Operating) orderSignatures(ctx context.Context, order *signing.OperationOrder, async, callback, force rest.Text) (_ rest.JSON, err error) {
	order.Snapshot = snapshotOf(ctx)
	order.Callback = strings.TrimSpace(string(callback))
	if order.Async, order.ForceConfirmation, err = whenAndHow(async, force); err != nil {
		return rest.JSON{}, err
	}
	object := signatureObject(order)
	keep, answer := o.keeping(object)
	order.Keep = keep
	rest.Concerning(ctx, object)
	op, err := o.sign(ctx, order, operation.Waits)
	if err != nil {
		return rest.JSON{}, err
	}
	return answer(op)
}

// whenAndHow reads IsAsync and ForceConfirmation.
func whenAndHow(async, force rest.Text) (later, confirmed bool, err error) {
	if later, err = truth("IsAsync", async, false); err == nil {
		confirmed, err = truth("ForceConfirmation", force, false)
	}
	return later, confirmed, err
}

// confirmed carries out what the token of the caller was issued for, and keeps and returns the answer.
func (o *Operating) confirmed(ctx context.Context, f operation.Form, kinds []string, c claim) (rest.JSON, error) {
	if c.more {
		return rest.JSON{}, onlyPIN()
	}
	keep, answer := o.keeping("")
	op, err := o.carryOut(ctx, f, kinds, c, keep)
	if err != nil {
		return rest.JSON{}, err
	}
	return answer(op)
}

// sign begins what an order of signatures says.
func (o *Operating) sign(ctx context.Context, order *signing.OperationOrder, c operation.Confirming) (*operation.Operation, error) {
	ordered, err := o.Signatures.Ordered(rest.Caller(ctx), order, c)
	if err != nil {
		return nil, err
	}
	op, _, err := o.begin(ctx, ordered, signatureObject(order))
	return op, err
}

// signatureObject returns what an order of signatures is about, for an audit entry.
func signatureObject(o *signing.OperationOrder) string {
	return fmt.Sprintf("%s, %d documents", certificateObject(o.Certificate), len(o.Inputs))
}

// keeping returns what keeps the answer for an operation about an object, and what answers the operation
// afterwards: the kept answer, so that thousands of documents are not rendered twice, if there is one.
func (o *Operating) keeping(object string) (keep operation.Keep, answer func(*operation.Operation) (rest.JSON, error)) {
	var of *operation.Operation
	var kept rest.JSON
	keep = func(ctx context.Context, op *operation.Operation) (_ func(context.Context) error, err error) {
		if kept, err = o.answer(op); err != nil {
			return nil, err
		}
		of = op
		rest.Concerning(ctx, operationObject(op.ID, object, op.Note))
		return rest.Keep(ctx, kept)
	}
	return keep, func(op *operation.Operation) (rest.JSON, error) {
		if op == of {
			return kept, nil
		}
		return o.answer(op)
	}
}

// order returns the order of the domain for a request.
func (o *Operating) order(docs *documents, data []binary, s *operationSignature) (*signing.OperationOrder, error) {
	order := &signing.OperationOrder{
		Type: string(s.Type), Certificate: string(s.CertificateID), PIN: string(s.PinCode), Template: string(s.ProcessingTemplateID),
		Inputs: make([]signing.Input, len(data)),
	}
	var err error
	if order.Params, order.Original, err = readParameters(docs, o.Signatures, "Signature.Parameters", s.Parameters); err != nil {
		return nil, err
	}
	for i := range data {
		d, in := &data[i], &order.Inputs[i]
		in.RefID, in.Name = strings.TrimSpace(string(d.RefID)), string(d.ContentInfo)
		in.RelatedRefID = strings.TrimSpace(string(d.RelatedRefID))
		if d.Content.Empty() {
			continue
		}
		content, err := docs.Open(d.Content)
		if _, ok := fault.As(err); ok {
			in.Err = err // error of this document alone
		} else if err != nil {
			return nil, err
		}
		in.Content = content
	}
	return order, nil
}

// result is our addition: the state of an operation, for clients that cannot receive
// callbacks.
func (o *Operating) result(ctx context.Context, r onOperation) (rest.JSON, error) {
	op, err := o.find(ctx, r.ID)
	if err != nil {
		return rest.JSON{}, err
	}
	return o.answer(op)
}

func (o *Operating) find(ctx context.Context, id string) (*operation.Operation, error) {
	op, err := o.Operations.Find(ctx, rest.Caller(ctx), id)
	if err != nil {
		return nil, err
	}
	rest.Afterwards(ctx, op)
	rest.Concerning(ctx, operationObject(op.ID))
	return op, nil
}

func (o *Operating) answer(op *operation.Operation) (rest.JSON, error) {
	p, err := o.render(op)
	return rest.JSON{Content: p}, err
}

// Render returns the body of a callback.
func (o *Operating) Render(op *operation.Operation) (signing.Result, error) { return o.render(op) }

// render returns an operation in the form of the signing service.
func (o *Operating) render(op *operation.Operation) (*pieces, error) {
	answer := newOperation(op.ID, op.Owner, o.Realm, op.CompleteBefore, nil, op.Fault)
	status := statuses[op.State]
	answer.Status = status.operation
	p, err := headOf(answer)
	if err != nil {
		return nil, err
	}
	if answer.Status == operationCreated || len(op.Documents) == 0 { // none: a change of keys or certificates
		p.add("null}}")
		return p, nil
	}
	p.text = slices.Grow(p.text, documentRoom*len(op.Documents))
	p.contents = make([]inserted, 0, len(op.Documents))
	p.add(`{"ProcessedDocuments":[`)
	for i := range op.Documents {
		d := &op.Documents[i]
		failed, content, shown := d.Fault, signing.Result(nil), status.document
		switch {
		case d.Declined:
			shown = documentDeclined
		case failed != nil:
			shown = documentError
		case d.Over():
			shown, content = documentCompleted, d.Content
		default:
			failed = op.Fault
		}
		one := processedDocument{
			RefID: rest.OrNull(d.RefID), ContentInfo: rest.OrNull(d.Name),
			OriginalRefID: rest.OrNull(d.OriginalRef), OriginalContentInfo: rest.OrNull(d.OriginalName), Status: shown, Integrity: d.Integrity,
		}
		one.Error, one.ErrorDescription = saying(failed)
		if i > 0 {
			p.add(",")
		}
		// Reflection for each of thousands of documents takes longer than their signatures.
		p.text = one.appendHead(p.text)
		if content == nil {
			p.add("null}")
			continue
		}
		p.content(content)
		p.add("}")
	}
	p.add("]}}}")
	return p, nil
}
