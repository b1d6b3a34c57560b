// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
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
	ID               *string `json:"Id"` // null: it is not stored
	Status           string  // one of the constants below
	Error            *string
	ErrorDescription *string
	ExpirationDate   int64 // Unix time in seconds
	UserLogin        string
	UserRealm        string
	UserID           string `json:"UserId"`
	Result           R      // last, because contents are written after the rest; null while Created
}

type answered = operationOf[any]

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

// statuses are the statuses of operations, of their documents without an outcome, and of their actions, by
// state.
var statuses = map[operation.State]struct{ operation, document, action string }{
	operation.Created:    {operationCreated, "", actionConsidering},
	operation.Challenged: {operationCreated, "", actionConsidering},
	operation.Confirmed:  {operationProcessing, documentInProgress, actionApproved},
	operation.Completed:  {operationCompleted, documentInProgress, actionApproved},
	operation.Declined:   {operationError, documentDeclined, actionDeclined},
	operation.Cancelled:  {operationError, documentError, actionApproved},
	operation.Expired:    {operationError, documentError, actionApproved},
	operation.Error:      {operationError, documentError, actionApproved},
}

// saying returns the code and the message of a fault, nil for none.
func saying(f *fault.Error) (code, message *string) {
	if f == nil {
		return nil, nil
	}
	return &f.Code, &f.Message
}

// newOperation returns a finished operation of a caller, with a result or with a fault. id
// is a GUID, or "" for one that is not stored.
func newOperation(id string, who audit.Principal, realm string, expires time.Time, result any, failed *fault.Error) answered {
	o := answered{
		ID: rest.OrNull(id), Status: operationCompleted, ExpirationDate: expires.Unix(),
		UserLogin: who.Login, UserRealm: realm, UserID: who.UserID, Result: result,
	}
	if failed != nil {
		o.Status = operationError
	}
	o.Error, o.ErrorDescription = saying(failed)
	return o
}

// processedDocument is the state of one document. Content, its last field, is written after
// the others while the answer is sent. Only messages that were decrypted have an Integrity.
type processedDocument struct {
	RefID               *string `json:"RefId"`
	ContentInfo         *string
	OriginalRefID       *string `json:"OriginalRefId"`
	OriginalContentInfo *string
	Status              string
	Error               *string
	ErrorDescription    *string
	Integrity           string  `json:",omitempty"`
	Content             *string // always null in this type
}

// pieces is JSON text with contents in between. They are encoded as Base64 while they are
// written, so the results are never in memory as text.
type pieces struct {
	text     []byte
	contents []inserted
	size     int64 // of the contents as Base64
}

// inserted is a content that belongs before text[at].
type inserted struct {
	at      int
	content signing.Result
}

// content adds a content as a JSON string.
func (p *pieces) content(r signing.Result) {
	p.add(`"`)
	p.contents = append(p.contents, inserted{len(p.text), r})
	p.size += (r.Size() + 2) / 3 * 4
	p.add(`"`)
}

// Size implements [rest.Content].
func (p *pieces) Size() int64 { return int64(len(p.text)) + p.size }

// WriteTo implements [io.WriterTo].
func (p *pieces) WriteTo(w io.Writer) (int64, error) {
	out := bufio.NewWriterSize(w, 64<<10)
	from := 0
	for _, c := range p.contents {
		out.Write(p.text[from:c.at])
		if err := rest.WriteBase64(out, c.content); err != nil {
			return 0, err
		}
		from = c.at
	}
	out.Write(p.text[from:])
	if err := out.Flush(); err != nil {
		return 0, err
	}
	return p.Size(), nil
}

// headOf returns the JSON of an operation up to its result, which is written last.
func headOf(o answered) (*pieces, error) {
	o.Result = nil
	text, err := json.Marshal(operationAnswer{o})
	if err != nil {
		return nil, err
	}
	head, ok := bytes.CutSuffix(text, []byte("null}}"))
	if !ok {
		return nil, fmt.Errorf("signapi: an operation does not end in what is written last")
	}
	return &pieces{text: head}, nil
}

// documentRoom is about how many bytes of text a document takes besides its content.
const documentRoom = 192

func (p *pieces) add(text string) { p.text = append(p.text, text...) }

// appendHead appends the document as package json writes it, up to the value of Content.
func (d *processedDocument) appendHead(text []byte) []byte {
	for _, field := range []struct {
		name  string
		value *string
	}{
		{`{"RefId":`, d.RefID},
		{`,"ContentInfo":`, d.ContentInfo},
		{`,"OriginalRefId":`, d.OriginalRefID},
		{`,"OriginalContentInfo":`, d.OriginalContentInfo},
		{`,"Status":`, &d.Status},
		{`,"Error":`, d.Error},
		{`,"ErrorDescription":`, d.ErrorDescription},
	} {
		text = append(text, field.name...)
		if field.value == nil {
			text = append(text, null...)
		} else {
			text = appendJSON(text, *field.value)
		}
	}
	if d.Integrity != "" {
		text = append(text, `,"Integrity":`...)
		text = appendJSON(text, d.Integrity)
	}
	return append(text, `,"Content":`...)
}

// appendJSON appends a text as a JSON string, as package json writes it.
func appendJSON(text []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || strings.IndexByte(`"\<>&`, c) >= 0 {
			quoted, _ := json.Marshal(s) // a string has no error
			return append(text, quoted...)
		}
	}
	text = append(text, '"')
	text = append(text, s...)
	return append(text, '"')
}
