// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"

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
	if order.Params, one, err = readParameters(docs, a.signer, "Signature.Parameters", s.Parameters); err != nil {
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
	outcomes, err := a.signer.SignMany(ctx, rest.Caller(ctx), order)
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
	answer, err := newBatchAnswer(outcomes)
	if err != nil {
		return nil, err
	}
	return rest.JSON{Content: answer}, nil
}

func item(docs *documents, d *document) (signing.Item, error) {
	var it signing.Item
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

// batchResults is the form of a batchAnswer, for its description.
type batchResults struct {
	Results []*[]byte // signatures or signed documents; null if there is an error
	Errors  []*struct {
		Message string // "code: sentence"
	}
}

// batchAnswer is {"Results":[...],"Errors":[...]}: the results as Base64, and the errors as
// objects with a Message, or null. It is encoded while it is written, so the results are
// never in memory as text.
type batchAnswer struct {
	outcomes []signing.Outcome
	errors   [][]byte // JSON texts
	size     int64
}

const (
	batchHead   = `{"Results":[`
	batchMiddle = `],"Errors":[`
	batchTail   = `]}`
)

var null = []byte("null")

func newBatchAnswer(outcomes []signing.Outcome) (*batchAnswer, error) {
	b := &batchAnswer{outcomes: outcomes, errors: make([][]byte, len(outcomes))}
	b.size = int64(len(batchHead) + len(batchMiddle) + len(batchTail) + 2*max(0, len(outcomes)-1)) // commas
	for i, o := range outcomes {
		switch {
		case o.Err != nil:
			text, err := json.Marshal(struct{ Message string }{o.Err.Code + ": " + o.Err.Message})
			if err != nil {
				return nil, err
			}
			b.errors[i] = text
			b.size += int64(len(null) + len(text))
		case o.Result != nil:
			b.errors[i] = null
			b.size += 2 + (o.Result.Size()+2)/3*4 + int64(len(null))
		default:
			return nil, fmt.Errorf("signapi: item %d of a batch has neither a result nor an error", i)
		}
	}
	return b, nil
}

// Size implements [rest.Content].
func (b *batchAnswer) Size() int64 { return b.size }

// WriteTo implements [io.WriterTo].
func (b *batchAnswer) WriteTo(w io.Writer) (int64, error) {
	out := bufio.NewWriterSize(w, 64<<10)
	out.WriteString(batchHead)
	for i, o := range b.outcomes {
		if i > 0 {
			out.WriteByte(',')
		}
		if o.Err != nil {
			out.Write(null)
			continue
		}
		out.WriteByte('"')
		if err := rest.WriteBase64(out, o.Result); err != nil {
			return 0, err
		}
		out.WriteByte('"')
	}
	out.WriteString(batchMiddle)
	for i, text := range b.errors {
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(text)
	}
	out.WriteString(batchTail)
	if err := out.Flush(); err != nil {
		return 0, err
	}
	return b.size, nil
}
