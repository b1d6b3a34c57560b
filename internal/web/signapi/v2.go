// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"context"
	"fmt"
	"strings"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
	"tamga/internal/web/rest"
)

// Operations carries out requests of v2; see [signing.Operations].
type Operations interface {
	parameterForms
	Start(ctx context.Context, who audit.Principal, o *signing.OperationOrder) (*operation.Operation, error)
	Propose(ctx context.Context, who audit.Principal, o *signing.OperationOrder) (*operation.Operation, error)
	Confirmed(ctx context.Context, who audit.Principal, o *signing.ConfirmedOrder) (*operation.Operation, error)
	Find(ctx context.Context, who audit.Principal, id string) (*operation.Operation, error)
	Active(ctx context.Context, who audit.Principal) ([]*operation.Operation, error)
	Cancel(ctx context.Context, who audit.Principal, id string) error
}

// Operating has the services that v2 of signing needs.
type Operating struct {
	Operations Operations
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
		if len(b.BinaryData) > 0 || b.ProcessingTemplateID != "" || b.IsAsync != "" || b.Callback != "" || b.ForceConfirmation != "" ||
			s != nil && (s.Type != "" || len(s.Parameters) > 0 || s.CertificateID != "" || s.ProcessingTemplateID != "") {
			return rest.JSON{}, onlyPIN()
		}
		pin := ""
		if s != nil {
			pin = string(s.PinCode)
		}
		op, err := o.carryOut(ctx, operation.FormOperation, pin, func(ctx context.Context, op *operation.Operation) (func(context.Context) error, error) {
			answer, err := o.answer(op)
			if err != nil {
				return nil, err
			}
			return rest.Keep(ctx, answer)
		})
		if err != nil {
			return rest.JSON{}, err
		}
		return o.answer(op)
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
	var kept keptAnswer
	order, err := o.order(docs, b.BinaryData, s, &kept)
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
	return o.begin(ctx, order, &kept, b.IsAsync, b.Callback, b.ForceConfirmation)
}

// keptAnswer is the answer that was kept for an operation. The request returns this one, so that
// thousands of documents are not rendered twice.
type keptAnswer struct {
	op     *operation.Operation
	answer rest.JSON
}

// operationObject returns an operation for an audit entry.
func operationObject(op *operation.Operation, certificate string) string {
	return fmt.Sprintf("operation %s, %s, %d documents", op.ID, certificateObject(certificate), len(op.Documents))
}

// order returns the order of the domain for a request, which sets kept.
func (o *Operating) order(docs *documents, data []binary, s *operationSignature, kept *keptAnswer) (*signing.OperationOrder, error) {
	order := &signing.OperationOrder{
		Type: string(s.Type), Certificate: string(s.CertificateID), PIN: string(s.PinCode), Template: string(s.ProcessingTemplateID),
		Inputs: make([]signing.Input, len(data)),
		Keep: func(ctx context.Context, op *operation.Operation) (func(context.Context) error, error) {
			answer, err := o.answer(op)
			if err != nil {
				return nil, err
			}
			*kept = keptAnswer{op, answer}
			rest.Concerning(ctx, operationObject(op, string(s.CertificateID)))
			return rest.Keep(ctx, answer)
		},
	}
	var err error
	if order.Params, order.Original, err = readParameters(docs, o.Operations, "Signature.Parameters", s.Parameters); err != nil {
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
func (o *Operating) result(ctx context.Context, r struct {
	ID string `path:"id"`
}) (rest.JSON, error) {
	op, err := o.Operations.Find(ctx, rest.Caller(ctx), r.ID)
	if err != nil {
		return rest.JSON{}, err
	}
	rest.Afterwards(ctx, op)
	rest.Concerning(ctx, "operation "+op.ID)
	return o.answer(op)
}

func (o *Operating) answer(op *operation.Operation) (rest.JSON, error) {
	p, err := o.render(op)
	if err != nil {
		return rest.JSON{}, err
	}
	return rest.JSON{Content: p}, nil
}

// Render returns the body of a callback.
func (o *Operating) Render(op *operation.Operation) (signing.Result, error) { return o.render(op) }

// render returns an operation in the form of the signing service.
func (o *Operating) render(op *operation.Operation) (*pieces, error) {
	answer := newOperation(op.ID, op.Owner, o.Realm, op.CompleteBefore, nil, op.Fault)
	waiting := documentInProgress
	switch op.State {
	case operation.Created, operation.Challenged:
		answer.Status = operationCreated
		return withContents(answer, nil, nil)
	case operation.Confirmed:
		answer.Status = operationProcessing
	case operation.Completed:
		answer.Status = operationCompleted
	case operation.Declined:
		answer.Status, waiting = operationError, documentDeclined
	default:
		answer.Status, waiting = operationError, documentError
	}
	if len(op.Documents) == 0 { // a change of keys or certificates
		return withContents(answer, nil, nil)
	}
	documents := make([]processedDocument, len(op.Documents))
	contents := make([]signing.Result, len(op.Documents))
	for i := range op.Documents {
		p := &op.Documents[i]
		d := &documents[i]
		*d = processedDocument{
			RefID: rest.OrNull(p.RefID), ContentInfo: rest.OrNull(p.Name),
			OriginalRefID: rest.OrNull(p.OriginalRef), OriginalContentInfo: rest.OrNull(p.OriginalName),
			Status: waiting,
		}
		switch failed := p.Fault; {
		case p.Declined:
			d.Status = documentDeclined
			if failed != nil {
				d.Error, d.ErrorDescription = &failed.Code, &failed.Message
			}
		case failed != nil:
			d.Status, d.Error, d.ErrorDescription = documentError, &failed.Code, &failed.Message
		case p.Over():
			d.Status, contents[i] = documentCompleted, p.Content
		case op.Fault != nil:
			d.Error, d.ErrorDescription = &op.Fault.Code, &op.Fault.Message
		}
	}
	return withContents(answer, documents, contents)
}
