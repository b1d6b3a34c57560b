// SPDX-License-Identifier: Apache-2.0

package sig

import (
	"errors"
	"fmt"
	"strings"
)

// Fault is one wrong parameter.
type Fault struct {
	// Key is the parameter's documented name, such as "CADESType".
	Key string
	// Text says what is wrong with it and what would be right.
	Text string
	// Opens reports that the parameter is the password of the document, which does not open without it.
	Opens bool
}

// ErrParams reports all wrong parameters of a request, in the order in which the format reads
// them.
type ErrParams struct{ Faults []Fault }

// Error joins the faults as "parameters: KEY: text; KEY: text".
func (e *ErrParams) Error() string {
	var b strings.Builder
	b.WriteString("parameters: ")
	for i, f := range e.Faults {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(f.Key + ": " + f.Text)
	}
	return b.String()
}

// ErrDocument reports that an input document is not what the operation needs.
type ErrDocument struct {
	// What names the input: "Document" or "OriginalDocument".
	What string
	// Text says what is wrong with it and what would be right.
	Text string
	// Err is the cause, if a parser found one.
	Err error
	// OtherKind reports whether the input is of another kind than the type of signature
	// needs, such as text sent to be signed as XML. A document of the right kind that is
	// damaged, encrypted or over a limit is not of another kind.
	OtherKind bool
}

// Error returns "WHAT: text: cause".
func (e *ErrDocument) Error() string {
	s := e.What + ": " + e.Text
	if e.Err != nil && e.Err.Error() != e.Text {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *ErrDocument) Unwrap() error { return e.Err }

// ErrUnsigned is the cause in an ErrDocument of a document without a signature, where one is needed.
var ErrUnsigned = errors.New("has no signature to enhance")

// Unsigned returns the error of a document that has no signature to enhance.
func Unsigned() error {
	return &ErrDocument{What: "Document", Text: ErrUnsigned.Error(), Err: ErrUnsigned}
}

// ErrState reports that a prepared state is damaged, has an unknown version, or was prepared for
// another job.
type ErrState struct{ Text string }

// Error returns "prepared state: text".
func (e *ErrState) Error() string { return "prepared state: " + e.Text }

// ErrRoom reports that a signature does not fit into the space that was reserved before it was
// made.
type ErrRoom struct {
	// Need is the number of bytes that is enough (Job.Room). It includes a reserve, because
	// evidence may be a little longer the next time.
	Need int
}

// Error returns "room: text".
func (e *ErrRoom) Error() string {
	return fmt.Sprintf("room: the space reserved for the signature is too small; reserve %d bytes", e.Need)
}
