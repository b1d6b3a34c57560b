// SPDX-License-Identifier: Apache-2.0

package umsapi

import (
	"context"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/held"
	"tamga/internal/web/rest"
)

// Holding has rules decide about requests, for [rest.Gate].
type Holding struct{ *held.Rules }

// Hold implements [rest.Holder].
func (h Holding) Hold(ctx context.Context, who audit.Principal, c rest.HeldCall) (*rest.HeldTurn, error) {
	turn, err := h.Rules.Hold(ctx, who, held.Call(c))
	return (*rest.HeldTurn)(turn), err
}

// heldAPI serves the requests that wait.
type heldAPI struct {
	requests *held.Service
	delays   *held.Delays
}

// HeldRoutes returns the operations by which operators decide about requests that wait.
// Mount them beside [API.Routes] at the same gate.
func HeldRoutes(requests *held.Service) []rest.Route {
	a := heldAPI{requests: requests}
	return []rest.Route{
		rest.Handle("GET /ums/approvals", "GetApprovals", Operator, a.list),
		rest.Handle("GET /ums/approvals/{request}", "GetApproval", Operator, a.read),
		rest.Handle("POST /ums/approvals/{request}/approve", "GiveApproval", Operator, a.decide(true)).Effects(effect.None),
		rest.Handle("POST /ums/approvals/{request}/refuse", "RefuseApproval", Operator, a.decide(false)).Effects(effect.None),
	}
}

// ChangeRoutes returns the operations by which users see, confirm and cancel changes of
// their accounts that a delay holds.
func ChangeRoutes(delays *held.Delays) []rest.Route {
	a := heldAPI{delays.Requests, delays}
	return []rest.Route{
		rest.Handle("GET /changes", "GetChanges", rest.SignedIn, a.ofUser),
		rest.Handle("POST /changes/{request}/confirm", "ConfirmChange", rest.SignedIn, a.confirm).Confirmed(),
		rest.Handle("POST /changes/{request}/cancel", "CancelChange", rest.SignedIn, a.cancel),
	}
}

// heldRequest is a request that waits. Times that do not apply are null.
type heldRequest struct {
	ID            string `json:"Id"`
	Operation     string
	UserID        *string `json:"UserId"`
	Requester     string
	State         held.State
	NeedsApproval bool
	DecidedBy     *string
	CreatedAt     string
	NotBefore     string
	ExpiresAt     string
}

// heldDetail is a request with what it asks for, as it was read.
type heldDetail struct {
	heldRequest
	Method  string
	Target  string
	Body    *string // JSON text
	Effects []string
}

func describeHeld(r held.Request) heldRequest {
	return heldRequest{
		r.ID, r.Operation, rest.OrNull(r.Object), r.Login, r.State, r.Approval, rest.OrNull(r.DecidedBy),
		isoTime(r.CreatedAt), isoTime(r.NotBefore), isoTime(r.ExpiresAt),
	}
}

func describeAll(list []held.Request, err error) ([]heldRequest, error) {
	described := make([]heldRequest, len(list))
	for i, r := range list {
		described[i] = describeHeld(r)
	}
	return described, err
}

// onRequest names a request that waits.
type onRequest struct {
	Request string `path:"request"`
}

// mostHeld is the length of a list of requests that wait.
const mostHeld = 100

func (a heldAPI) list(ctx context.Context, r struct {
	After string `query:"after"`
}) ([]heldRequest, error) {
	return describeAll(a.requests.List(ctx, caller(ctx), r.After, mostHeld))
}

func (a heldAPI) read(ctx context.Context, r onRequest) (heldDetail, error) {
	rest.Detail(ctx, "request "+r.Request)
	have, call, err := a.requests.Read(ctx, caller(ctx), r.Request)
	return heldDetail{describeHeld(have), call.Method, call.Target, rest.OrNull(string(rest.HeldBody(call.Value))), append([]string{}, call.Effects.Names()...)}, err
}

func (a heldAPI) decide(approve bool) func(context.Context, onRequest) (heldRequest, error) {
	return func(ctx context.Context, r onRequest) (heldRequest, error) {
		rest.Detail(ctx, "request "+r.Request)
		have, err := a.requests.Decide(ctx, caller(ctx), r.Request, approve)
		return describeHeld(have), err
	}
}

func (a heldAPI) ofUser(ctx context.Context, _ struct{}) ([]heldRequest, error) {
	return describeAll(a.requests.OfUser(ctx, caller(ctx).UserID))
}

// confirmedChange is a change with the operation that its user must confirm to end its
// delay. OperationId is null once the delay has ended.
type confirmedChange struct {
	heldRequest
	OperationID *string `json:"OperationId"`
}

// confirm creates the confirmation of a change. With the token of the confirmation it ends
// the delay of the change.
func (a heldAPI) confirm(ctx context.Context, r onRequest) (confirmedChange, error) {
	who := caller(ctx)
	rest.Detail(ctx, "request "+r.Request)
	if who.Confirmation != "" {
		have, err := a.delays.End(ctx, who, r.Request, who.Confirmation)
		return confirmedChange{heldRequest: describeHeld(have)}, err
	}
	have, waiting, err := a.delays.Propose(ctx, who, r.Request)
	if err != nil {
		return confirmedChange{}, err
	}
	return confirmedChange{describeHeld(have), &waiting.ID}, nil
}

func (a heldAPI) cancel(ctx context.Context, r onRequest) (heldRequest, error) {
	who := caller(ctx)
	if who.Actor != "" {
		return heldRequest{}, fault.New(fault.AccessDenied, "only the user may cancel a change of the account")
	}
	rest.Detail(ctx, "request "+r.Request)
	have, err := a.requests.Cancel(ctx, who, r.Request)
	return describeHeld(have), err
}
