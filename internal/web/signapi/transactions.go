// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"context"
	"strconv"
	"strings"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/signing"
	"tamga/internal/web/rest"
)

// transactionRequest is a transaction of v1: an operation that the user confirms before
// it is carried out.
type transactionRequest struct {
	Body struct {
		OperationCode rest.Text `api:"integer"`
		Parameters    []struct {
			Name  rest.Text
			Value rest.Blob `api:"parameter"`
		}
		Document  rest.Blob
		Documents []struct {
			Name    rest.Text
			Content rest.Document
		}
	}
}

// operationCodes are the actions by OperationCode.
var operationCodes = map[int64]policy.Action{
	1: policy.Issue, 2: policy.SignDocument, 4: policy.SignDocuments, 8: policy.DecryptDocument, 16: policy.CreateRequest,
	32: policy.ChangePin, 64: policy.RenewCertificate, 128: policy.RevokeCertificate, 256: policy.HoldCertificate,
	512: policy.UnholdCertificate, 1024: policy.DeleteCertificate, 2048: policy.PrivateKeyAccess,
}

// transact creates a transaction and answers its identifier.
func (a *API) transact(ctx context.Context, docs *documents, r transactionRequest) (string, error) {
	code, err := strconv.ParseInt(strings.TrimSpace(string(r.Body.OperationCode)), 10, 64)
	action, known := operationCodes[code]
	if err != nil || !known {
		return "", fault.New(fault.InvalidOperation, "OperationCode: want the number of an action, such as 2 (SignDocument) or 4 (SignDocuments)")
	}
	if action == policy.SignDocument || action == policy.SignDocuments {
		return a.operations.transact(ctx, docs, action, &r)
	}
	if _, changing := changes[action]; !changing || a.management == nil {
		return "", fault.Newf(fault.InvalidOperation, "OperationCode %d (%s) cannot be a transaction", code, action)
	}
	return a.management.transactChange(ctx, action, &r)
}

// transact creates a transaction that signs.
func (o *Operating) transact(ctx context.Context, docs *documents, action policy.Action, r *transactionRequest) (string, error) {
	order, err := o.transactionOrder(docs, r)
	if err != nil {
		return "", err
	}
	order.Snapshot = snapshotOf(ctx)
	if order.Package = action == policy.SignDocuments; !order.Package && len(order.Inputs) > 1 {
		return "", fault.New(fault.InvalidParameters, "OperationCode 2 (SignDocument) has one document: want 4 (SignDocuments) for several")
	}
	rest.Concerning(ctx, certificateObject(order.Certificate))
	op, err := o.Operations.Propose(ctx, rest.Caller(ctx), order)
	if err != nil {
		return "", err
	}
	rest.Concerning(ctx, operationObject(op, order.Certificate))
	return op.ID, nil
}

// transactionOrder reads the parameters and the documents of a transaction.
func (o *Operating) transactionOrder(docs *documents, r *transactionRequest) (*signing.OperationOrder, error) {
	b := &r.Body
	order := &signing.OperationOrder{Form: operation.FormTransaction, Arguments: map[string]string{}}
	names := map[string]string{} // parameters that are not of the signature, by their names in lower case
	own := map[string]*string{"signaturetype": &order.Type, "certificateid": &order.Certificate, "pincode": &order.PIN}
	signature := map[string]rest.Blob{}
	for _, p := range b.Parameters {
		name := strings.TrimSpace(string(p.Name))
		if _, twice := signature[name]; twice {
			return nil, fault.Newf(fault.InvalidParameters, "Parameters: %.64q is given twice", name)
		}
		folded := strings.ToLower(name)
		to, mine := own[folded]
		if !mine && folded != "documentinfo" && folded != "documenttype" {
			signature[name] = p.Value
			continue
		}
		text, err := p.Value.Text()
		if err != nil {
			return nil, recoded(err, fault.InvalidParameters)
		}
		if _, twice := names[folded]; twice {
			return nil, fault.Newf(fault.InvalidParameters, "Parameters: %.64q is given twice", name)
		}
		if names[folded] = text; mine {
			*to = text
		} else if text != "" {
			order.Arguments[folded] = text
		}
	}
	var err error
	if order.Params, order.Original, err = readParameters(docs, o.Operations, "Parameters", signature); err != nil {
		return nil, err
	}
	if order.Type == "" {
		return nil, fault.New(fault.InvalidSignatureParams, "Parameters: SignatureType is missing")
	}
	switch {
	case !b.Document.Empty() && len(b.Documents) > 0:
		return nil, fault.New(fault.InvalidParameters, "Document and Documents are both given: send one of them")
	case !b.Document.Empty():
		in := signing.Input{Name: names["documentinfo"]}
		if in.Content, err = docs.Open(b.Document); err != nil {
			return nil, err
		}
		order.Inputs = []signing.Input{in}
	}
	for i := range b.Documents {
		d := &b.Documents[i]
		in := signing.Input{Name: string(d.Name)}
		if !d.Content.Empty() {
			if in.Content, err = docs.Open(d.Content); err != nil {
				return nil, err
			}
		}
		order.Inputs = append(order.Inputs, in)
	}
	if len(order.Inputs) == 0 {
		return nil, fault.New(fault.ContentRequired, "Document is missing or empty: send the document as Base64, or several as Documents")
	}
	return order, nil
}

// onlyPIN is the fault of a request with a confirmed token that says what to sign.
func onlyPIN() error {
	return fault.New(fault.InvalidOperation, "the access token is that of a confirmed operation: send {} or {\"Signature\":{\"PinCode\":...}}, the documents and parameters are those that were confirmed")
}

// carryOut carries out the operation that the token of the caller was issued for.
func (o *Operating) carryOut(ctx context.Context, form operation.Form, pin string, keep func(context.Context, *operation.Operation) (func(context.Context) error, error)) (*operation.Operation, error) {
	who := rest.Caller(ctx)
	rest.Concerning(ctx, "operation "+who.Confirmation)
	op, err := o.Operations.Confirmed(ctx, who, &signing.ConfirmedOrder{
		ID: who.Confirmation, Form: form, PIN: pin, Snapshot: snapshotOf(ctx), Keep: keep,
	})
	if err != nil {
		return nil, err
	}
	rest.Afterwards(ctx, op)
	return op, nil
}

// signConfirmed answers the result of a transaction in the form of v1.
func (a *API) signConfirmed(ctx context.Context, s *signature) (any, error) {
	pin := ""
	if s != nil {
		if s.Type != "" || s.CertificateID != "" || len(s.Parameters) > 0 {
			return nil, onlyPIN()
		}
		pin = string(s.PinCode)
	}
	if a.operations == nil {
		return nil, fault.New(fault.InvalidOperation, "this installation makes no transactions")
	}
	op, err := a.operations.carryOut(ctx, operation.FormTransaction, pin, nil)
	if err != nil {
		return nil, err
	}
	if op.Action != policy.SignDocuments.String() {
		return rest.Stream{Content: op.Documents[0].Content}, nil
	}
	outcomes := make([]signing.Outcome, len(op.Documents))
	for i := range op.Documents {
		outcomes[i] = signing.Outcome{Result: op.Documents[i].Content, Err: op.Documents[i].Fault}
	}
	answer, err := newBatchAnswer(outcomes)
	if err != nil {
		return nil, err
	}
	return rest.JSON{Content: answer}, nil
}
