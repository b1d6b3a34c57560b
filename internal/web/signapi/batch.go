// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"context"
	"fmt"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
	"tamga/internal/web/rest"
)

// signMany signs the documents of a batch. A document that cannot be read has an error of
// its own.
func (a *API) signMany(ctx context.Context, docs *documents, list []document, s *signature) (any, error) {
	order := &signing.BatchOrder{
		Type:        string(s.Type),
		Certificate: string(s.CertificateID),
		PIN:         string(s.PinCode),
		Snapshot:    snapshotOf(ctx),
		Items:       make([]signing.Item, len(list)),
	}
	var one *signing.Intake
	var err error
	if order.Params, one, err = readParameters(docs, a.deps.Signer, "Signature.Parameters", s.Parameters); err != nil {
		return nil, err
	}
	if one != nil {
		return nil, fault.New(fault.InvalidSignatureParams, "Signature.Parameters.OriginalDocument has no place in a batch: send each original as OriginalContent of its document")
	}
	for i := range list {
		if order.Items[i], err = item(docs, &list[i]); err != nil {
			return nil, err
		}
	}
	outcomes, err := a.deps.Signer.SignMany(ctx, rest.Caller(ctx), order)
	if err != nil {
		return nil, err
	}
	refused := 0
	for _, o := range outcomes {
		if o.Err != nil {
			refused++
		}
	}
	rest.Concerning(ctx, fmt.Sprintf("%s, %d documents, %d of them refused", certificateObject(order.Certificate), len(outcomes), refused))
	return newBatchAnswer(outcomes)
}

func item(docs *documents, d *document) (signing.Item, error) {
	it := signing.Item{Name: string(d.Name)}
	for _, part := range []struct {
		from rest.Document
		to   **signing.Intake
	}{{d.Content, &it.Content}, {d.OriginalContent, &it.Original}} {
		if part.from.Empty() {
			continue
		}
		in, err := docs.Open(part.from)
		if _, ok := fault.As(err); ok {
			it.Err = err
			return it, nil
		}
		if err != nil {
			return it, err
		}
		*part.to = in
	}
	return it, nil
}

// batchResults is the form of the answer to a batch, for its description.
type batchResults struct {
	Results []*[]byte // signatures or signed documents; null if there is an error
	Errors  []*struct {
		Message string // "code: sentence"
	}
}

var null = []byte("null")

// newBatchAnswer returns {"Results":[...],"Errors":[...]}: the results as Base64, and the errors as objects
// with a Message, or null.
func newBatchAnswer(outcomes []signing.Outcome) (rest.JSON, error) {
	p := &pieces{}
	p.add(`{"Results":[`)
	for i, o := range outcomes {
		if i > 0 {
			p.add(",")
		}
		switch {
		case o.Err != nil:
			p.add("null")
		case o.Result != nil:
			p.content(o.Result)
		default:
			return rest.JSON{}, fmt.Errorf("signapi: item %d of a batch has neither a result nor an error", i)
		}
	}
	p.add(`],"Errors":[`)
	for i, o := range outcomes {
		if i > 0 {
			p.add(",")
		}
		if o.Err == nil {
			p.add("null")
			continue
		}
		p.add(`{"Message":`)
		p.text = appendJSON(p.text, o.Err.Code+": "+o.Err.Message)
		p.add("}")
	}
	p.add("]}")
	return rest.JSON{Content: p}, nil
}
