// SPDX-License-Identifier: Apache-2.0

package signapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
)

// typedOperation is an operation as a strict client reads it. An unknown status, an unknown
// key or a time that is not a number is an error.
type typedOperation struct {
	ID     uuid.UUID `json:"Id"`
	Result *struct {
		ProcessedDocuments []typedDocument
	}
	Status                  oneOf[operationStatuses]
	Error, ErrorDescription *string
	ExpirationDate          int64
	UserLogin, UserRealm    string
	UserID                  uuid.UUID `json:"UserId"`
}

type typedDocument struct {
	RefID                   *uuid.UUID `json:"RefId"`
	Content                 []byte
	ContentInfo             *string
	OriginalRefID           *uuid.UUID `json:"OriginalRefId"`
	OriginalContentInfo     *string
	Status                  oneOf[documentStatuses]
	Error, ErrorDescription *string
	Integrity               string
}

type typedInfo struct {
	ID                                                                    uuid.UUID `json:"Id"`
	Type, Parameters, Description                                         string
	State                                                                 oneOf[operationStates]
	CreatedAt, CompleteBefore, ConfirmBefore                              int64
	ConfirmedAt, CompletedAt, UpdatedAt                                   *int64
	UserID                                                                uuid.UUID `json:"UserId"`
	AuthenticationType, ExternalID, SsContext, Callback, ErrorDescription *string
	Error                                                                 *string
	Actions                                                               []typedAction
	IsAsync, CallbackReceived                                             bool
	Status                                                                oneOf[operationStatuses]
	ExpirationDate                                                        int64
}

type typedAction struct {
	ID                                   uuid.UUID  `json:"Id"`
	DocumentID                           *uuid.UUID `json:"DocumentId"`
	OriginalDocumentID                   *uuid.UUID `json:"OriginalDocumentId"`
	Status                               oneOf[actionStatuses]
	State                                oneOf[actionStates]
	ResultValue, Error, ErrorDescription *string
}

// oneOf is a text of a closed set.
type oneOf[S set] string

type set interface{ values() []string }

type (
	operationStatuses struct{}
	documentStatuses  struct{}
	operationStates   struct{}
	actionStates      struct{}
	actionStatuses    struct{}
)

func (operationStatuses) values() []string {
	return []string{"Created", "Processing", "Completed", "Error"}
}

func (documentStatuses) values() []string {
	return []string{"Completed", "InProgress", "Error", "Declined", "Posponed"}
}

func (operationStates) values() []string {
	return []string{"Created", "Challenged", "Cancelled", "Declined", "Confirmed", "Completed", "Error", "Expired"}
}

func (actionStates) values() []string { return []string{"Pending", "Executing", "Executed", "Error"} }

func (actionStatuses) values() []string {
	return []string{"Considering", "Approved", "Declined", "Posponed"}
}

func (v *oneOf[S]) UnmarshalText(text []byte) error {
	var s S
	if !slices.Contains(s.values(), string(text)) {
		return fmt.Errorf("%q is not one of %v", text, s.values())
	}
	*v = oneOf[S](text)
	return nil
}

// typed reads a value the way such a client does.
func typed[T any](t testing.TB, text []byte) T {
	t.Helper()
	var v T
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("a typed client cannot read %.600s: %v", text, err)
	}
	return v
}
