// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
	"tamga/internal/web/rest"
)

// answerOf is the answer of every call of v2 that changes something. R is the type of the
// result: any in answers that are written, a struct in those that are described.
type answerOf[R any] struct {
	Operation operationOf[R]
}

type operationAnswer = answerOf[any]

// operationOf is an operation in the form of the signing service. Clients check its
// statuses against closed sets, and treat any Error that is not empty as a failure.
type operationOf[R any] struct {
	ID               string `json:"Id"`
	Status           string // one of the constants below
	Error            *string
	ErrorDescription *string
	ExpirationDate   int64 // Unix time in seconds
	UserLogin        string
	UserRealm        string
	UserID           string `json:"UserId"`
	Result           R      // last, because contents are written after the rest; null while Created
}

type operation = operationOf[any]

// processed is the result of an operation that signs.
type processed struct{ ProcessedDocuments []processedDocument }

// The closed set of operation.Status.
const (
	operationCreated    = "Created" // waits for a confirmation
	operationProcessing = "Processing"
	operationCompleted  = "Completed"
	operationError      = "Error"
)

// The closed set of processedDocument.Status, without Posponed (the spelling of the
// interface), which is not used here.
const (
	documentCompleted  = "Completed"
	documentInProgress = "InProgress"
	documentError      = "Error"
	documentDeclined   = "Declined"
)

// newOperation returns a finished operation of a caller, with a result or with a fault. id
// is a GUID.
func newOperation(id string, who audit.Principal, realm string, expires time.Time, result any, failed *fault.Error) operation {
	o := operation{
		ID: id, Status: operationCompleted, ExpirationDate: expires.Unix(),
		UserLogin: who.Login, UserRealm: realm, UserID: who.UserID, Result: result,
	}
	if failed != nil {
		o.Status, o.Error, o.ErrorDescription = operationError, &failed.Code, &failed.Message
	}
	return o
}

// processedDocument is the state of one document. Content, its last field, is written after
// the others while the answer is sent.
type processedDocument struct {
	RefID               *string `json:"RefId"`
	ContentInfo         *string
	OriginalRefID       *string `json:"OriginalRefId"`
	OriginalContentInfo *string
	Status              string
	Error               *string
	ErrorDescription    *string
	Content             *string // always null in this type
}

// pieces is JSON text with contents in between. They are encoded as Base64 while they are
// written, so the results are never in memory as text.
type pieces struct {
	list []piece
	size int64
}

type piece struct {
	text    []byte
	content signing.Result // after the text, without quotes; nil: none
}

func (p *pieces) text(b string) {
	if n := len(p.list); n > 0 && p.list[n-1].content == nil {
		p.list[n-1].text = append(p.list[n-1].text, b...)
	} else {
		p.list = append(p.list, piece{text: []byte(b)})
	}
	p.size += int64(len(b))
}

func (p *pieces) content(r signing.Result) {
	p.list = append(p.list, piece{content: r})
	p.size += (r.Size() + 2) / 3 * 4
}

// Size implements [rest.Content].
func (p *pieces) Size() int64 { return p.size }

// WriteTo implements [io.WriterTo].
func (p *pieces) WriteTo(w io.Writer) (int64, error) {
	out := bufio.NewWriterSize(w, 64<<10)
	for _, piece := range p.list {
		out.Write(piece.text)
		if piece.content == nil {
			continue
		}
		if err := rest.WriteBase64(out, piece.content); err != nil {
			return 0, err
		}
	}
	if err := out.Flush(); err != nil {
		return 0, err
	}
	return p.size, nil
}

// withContents returns the JSON of an operation whose documents may have contents. contents
// has one entry for each document, nil if there is none.
func withContents(o operation, documents []processedDocument, contents []signing.Result) (*pieces, error) {
	open := []byte("null")
	cut := func(v any, end string) ([]byte, error) {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		head, ok := bytes.CutSuffix(text, append(open, end...))
		if !ok {
			return nil, fmt.Errorf("signapi: an operation does not end in what is written last")
		}
		return head, nil
	}
	o.Result = nil
	head, err := cut(operationAnswer{o}, "}}")
	if err != nil {
		return nil, err
	}
	p := &pieces{}
	p.text(string(head))
	if documents == nil {
		p.text("null}}")
		return p, nil
	}
	p.text(`{"ProcessedDocuments":[`)
	for i, d := range documents {
		if i > 0 {
			p.text(",")
		}
		head, err := cut(d, "}")
		if err != nil {
			return nil, err
		}
		p.text(string(head))
		if contents[i] == nil {
			p.text("null}")
			continue
		}
		p.text(`"`)
		p.content(contents[i])
		p.text(`"}`)
	}
	p.text("]}}}")
	return p, nil
}
