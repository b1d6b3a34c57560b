// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
	"tamga/internal/web/rest"
)

// uploadRoute returns our own route beside v2, for documents that are signed in several ways: one operation
// with one confirmation and one result.
func (o *Operating) uploadRoute(take func(context.Context, audit.Principal) (*signing.Intake, error)) rest.Route {
	return rest.HandleDocuments("POST /tamga/operations", "SignUpload", rest.SignedIn, take, o.upload).Answering(answerOf[*processed]{}).Large().Once().Confirmed()
}

// uploaded is one document of an upload.
type uploaded struct {
	Name         rest.Text // of the file
	RefID        rest.Text `json:"RefId"`
	Content      rest.Document
	RelatedRefID rest.Text        `json:"RelatedRefId"`
	Signature    *uploadSignature // instead of the common one
}

// uploadSignature is how documents are signed.
type uploadSignature struct {
	Type          rest.Text
	Parameters    map[string]rest.Blob
	CertificateID rest.Text `json:"CertificateId"`
	PinCode       rest.Text
}

type uploadRequest struct {
	Body struct {
		Documents         []uploaded
		Signature         *uploadSignature
		IsAsync           rest.Text `api:"boolean"`
		Callback          rest.Text
		ForceConfirmation rest.Text `api:"boolean"`
	}
}

// upload signs the documents of a request, or accepts them for later, as v2 does. Each may be signed in a way
// of its own.
func (o *Operating) upload(ctx context.Context, docs *documents, r uploadRequest) (rest.JSON, error) {
	b := &r.Body
	common := uploadSignature{}
	if b.Signature != nil {
		common = *b.Signature
	}
	if rest.Caller(ctx).Confirmation != "" {
		return o.confirmed(ctx, operation.FormUpload, signs, claim{
			pin: string(common.PinCode),
			more: len(b.Documents) > 0 || b.IsAsync != "" || b.Callback != "" || b.ForceConfirmation != "" ||
				common.Type != "" || len(common.Parameters) > 0 || common.CertificateID != "",
		})
	}
	if len(b.Documents) == 0 {
		return rest.JSON{}, fault.New(fault.ContentRequired, "Documents is missing or empty: send the documents to sign")
	}
	data := make([]binary, len(b.Documents))
	for i := range b.Documents {
		d := &b.Documents[i]
		data[i] = binary{RefID: d.RefID, Content: d.Content, ContentInfo: d.Name, RelatedRefID: d.RelatedRefID}
	}
	order, err := o.order(docs, data, &operationSignature{CertificateID: common.CertificateID, PinCode: common.PinCode})
	if err == nil {
		err = o.setWays(docs, order, b.Documents, common)
	}
	if err != nil {
		return rest.JSON{}, err
	}
	order.Form = operation.FormUpload
	answer, err := o.orderSignatures(ctx, order, b.IsAsync, b.Callback, b.ForceConfirmation)
	return answer, ofUpload(err)
}

// setWays gives each document of an order its way.
func (o *Operating) setWays(docs *documents, order *signing.OperationOrder, list []uploaded, common uploadSignature) error {
	const ofAll = -1
	at := ofAll // way of the documents without a signature of their own
	read := func(where string, s uploadSignature) (int, error) {
		if s.Type == "" {
			return 0, fault.Newf(fault.InvalidSignatureParams, "%s.Type is missing: name the type of the signature", where)
		}
		params, original, err := readParameters(docs, o.Signatures, where+".Parameters", s.Parameters)
		if err != nil {
			return 0, err
		}
		if original != nil {
			return 0, fault.Newf(fault.InvalidSignatureParams, "%s.Parameters.OriginalDocument is not allowed here: name the original of each document by RelatedRefId", where)
		}
		order.Ways = append(order.Ways, signing.Way{Type: string(s.Type), Params: params})
		return len(order.Ways) - 1, nil
	}
	for i := range list {
		var err error
		switch own := list[i].Signature; {
		case own != nil && (own.CertificateID != "" || own.PinCode != ""):
			return fault.Newf(fault.InvalidParameters, "Documents[%d].Signature has a CertificateId or a PinCode: all documents of an operation are signed with one certificate, so give both in Signature beside Documents", i)
		case own != nil:
			order.Inputs[i].Way, err = read(fmt.Sprintf("Documents[%d].Signature", i), *own)
		case at == ofAll:
			at, err = read("Signature", common)
			order.Inputs[i].Way = at
		default:
			order.Inputs[i].Way = at
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ofUpload returns a fault of an order with the names that its fields have in an upload. One of several ways
// names the first document that it is about.
func ofUpload(err error) error {
	f, refused := fault.As(err)
	if !refused {
		return err
	}
	message := strings.NewReplacer("BinaryData", "Documents", "ContentInfo", "Name").Replace(f.Message)
	if way, of := errors.AsType[signing.OfWay](err); of {
		message = fmt.Sprintf("Documents[%d]: %s", way.Document, message)
	}
	if message == f.Message {
		return err
	}
	named := *f
	named.Message = message
	return &named
}
