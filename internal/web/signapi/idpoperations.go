// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"context"
	"time"

	"tamga/internal/domain/operation"
	"tamga/internal/web/rest"
)

// OperationRoutes returns the operations of a user in the form of the identity provider,
// below {idp_url}.
func (o *Operating) OperationRoutes() []rest.Route {
	return []rest.Route{
		rest.Handle("GET /operations", "GetOperations", rest.SignedIn, o.list),
		rest.Handle("GET /operations/{id}", "GetOperation", rest.SignedIn, o.one).Confirmed(),
		rest.Handle("POST /operations/{id}/cancel", "CancelOperation", rest.SignedIn, o.cancel),
		rest.Handle("DELETE /operations/{id}", "CancelOperation", rest.SignedIn, o.cancel),
	}
}

// operationInfo is an operation in the form of the identity provider. Times are Unix
// seconds. A time that has not come is null.
type operationInfo struct {
	ID                 string `json:"Id"`
	Type               string
	Parameters         string // JSON text
	Description        string
	State              operation.State
	CreatedAt          *int64
	CompleteBefore     *int64
	ConfirmBefore      *int64
	ConfirmedAt        *int64
	CompletedAt        *int64
	UpdatedAt          *int64
	UserID             string  `json:"UserId"`
	AuthenticationType *string // how the user had signed in
	ExternalID         *string `json:"ExternalId"`
	Actions            []operationAction
	IsAsync            bool
	SsContext          *string
	Callback           *string
	CallbackReceived   bool

	Status           string // as of operation
	Error            *string
	ErrorDescription *string
	ExpirationDate   int64
}

// operationAction is one document of an operation.
type operationAction struct {
	ID                 string  `json:"Id"`
	DocumentID         *string `json:"DocumentId"`
	OriginalDocumentID *string `json:"OriginalDocumentId"`
	Status             string
	State              string
	ResultValue        *string // RefId of the result
	Error              *string
	ErrorDescription   *string
}

// The closed set of operationAction.State.
const (
	actionPending  = "Pending"
	actionExecuted = "Executed"
	actionError    = "Error"
)

// The closed set of operationAction.Status, without the value for postponed documents.
const (
	actionConsidering = "Considering"
	actionApproved    = "Approved"
	actionDeclined    = "Declined"
)

// unix returns a time as a number, null for the zero time.
func unix(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	n := t.Unix()
	return &n
}

// describeOperation returns an operation in the form of the identity provider.
func describeOperation(op *operation.Operation) operationInfo {
	i := operationInfo{
		ID: op.ID, Type: op.Action, Parameters: op.Parameters, Description: op.Description, State: op.State,
		CreatedAt: unix(op.CreatedAt), CompleteBefore: unix(op.CompleteBefore), ConfirmBefore: unix(op.CompleteBefore),
		ConfirmedAt: unix(op.ConfirmedAt), CompletedAt: unix(op.CompletedAt), UpdatedAt: unix(op.UpdatedAt),
		UserID: op.Owner.UserID, AuthenticationType: rest.OrNull(op.Owner.Method),
		Actions: make([]operationAction, len(op.Documents)), IsAsync: op.Async,
		Callback: rest.OrNull(op.Callback), CallbackReceived: op.Called,
		ExpirationDate: op.CompleteBefore.Unix(),
	}
	if !op.ConfirmBefore.IsZero() {
		i.ConfirmBefore = unix(op.ConfirmBefore)
	}
	status := statuses[op.State]
	i.Status = status.operation
	if status.action == actionApproved && op.ConfirmedAt.IsZero() && !op.ConfirmBefore.IsZero() {
		status.action = actionConsidering // it ended before it was confirmed
	}
	i.Error, i.ErrorDescription = saying(op.Fault)
	for n := range op.Documents {
		d := &op.Documents[n]
		a := operationAction{
			ID: d.ID, DocumentID: rest.OrNull(d.OriginalRef), OriginalDocumentID: rest.OrNull(d.Related),
			Status: status.action, State: actionPending, ResultValue: rest.OrNull(d.RefID),
		}
		if d.Declined {
			a.Status = actionDeclined
		}
		failed := d.Fault
		switch {
		case failed == nil && d.Over():
			a.State = actionExecuted
		case failed == nil && !op.State.Active():
			failed = op.Fault
		}
		if failed != nil {
			a.State = actionError
		}
		a.Error, a.ErrorDescription = saying(failed)
		i.Actions[n] = a
	}
	return i
}

func (o *Operating) list(ctx context.Context, _ struct{}) ([]operationInfo, error) {
	active, err := o.Operations.Active(ctx, rest.Caller(ctx))
	if err != nil {
		return nil, err
	}
	list := make([]operationInfo, len(active))
	for i, op := range active {
		list[i] = describeOperation(op)
	}
	return list, nil
}

// onOperation is a request that names an operation and nothing else.
type onOperation struct {
	ID string `path:"id"`
}

func (o *Operating) one(ctx context.Context, r onOperation) (operationInfo, error) {
	op, err := o.find(ctx, r.ID)
	if err != nil {
		return operationInfo{}, err
	}
	return describeOperation(op), nil
}

func (o *Operating) cancel(ctx context.Context, r onOperation) (operationInfo, error) {
	if err := o.Operations.Cancel(ctx, rest.Caller(ctx), r.ID); err != nil {
		return operationInfo{}, err
	}
	return o.one(ctx, r)
}
