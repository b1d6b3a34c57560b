// SPDX-License-Identifier: Apache-2.0

package umsapi

import (
	"context"

	"tamga/internal/domain/approval"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
	"tamga/internal/web/rest"
)

// Approvals have rules decide about requests, for [rest.Gate].
type Approvals struct{ *approval.Rules }

// Hold implements [rest.Approvals].
func (a Approvals) Hold(ctx context.Context, who audit.Principal, c rest.ApprovalCall) (*rest.Admission, error) {
	admission, err := a.Rules.Hold(ctx, who, approval.Call(c))
	return (*rest.Admission)(admission), err
}

// approvalAPI serves the requests that wait.
type approvalAPI struct {
	requests *approval.Service
	delays   *approval.Delays
}

// ApprovalRoutes returns the operations by which operators decide about requests that wait.
// Mount them beside [API.Routes] at the same gate.
func ApprovalRoutes(requests *approval.Service) []rest.Route {
	a := approvalAPI{requests: requests}
	return []rest.Route{
		rest.Handle("GET /ums/approvals", "GetApprovals", Operator, a.list),
		rest.Handle("GET /ums/approvals/{request}", "GetApproval", Operator, a.read),
		rest.Handle("POST /ums/approvals/{request}/approve", "GiveApproval", Operator, a.decide(true)).Effects(effect.None),
		rest.Handle("POST /ums/approvals/{request}/refuse", "RefuseApproval", Operator, a.decide(false)).Effects(effect.None),
	}
}

// ChangeRoutes returns the operations by which users see, confirm and cancel changes of
// their accounts that a delay holds.
func ChangeRoutes(delays *approval.Delays) []rest.Route {
	a := approvalAPI{delays.Requests, delays}
	return []rest.Route{
		rest.Handle("GET /changes", "GetChanges", rest.SignedIn, a.ofUser),
		rest.Handle("POST /changes/{request}/confirm", "ConfirmChange", rest.SignedIn, a.confirm).Confirmed(),
		rest.Handle("POST /changes/{request}/cancel", "CancelChange", rest.SignedIn, a.cancel),
	}
}

// approvalRequest is a request that waits. Times that do not apply are null.
type approvalRequest struct {
	ID            string `json:"Id"`
	Operation     string
	UserID        *string `json:"UserId"`
	Requester     string
	State         approval.State
	NeedsApproval bool
	DecidedBy     *string
	CreatedAt     string
	NotBefore     string
	ExpiresAt     string
}

// approvalDetail is a request with what it asks for, as it was read.
type approvalDetail struct {
	approvalRequest
	Method  string
	Target  string
	Body    *string // JSON text
	Effects []string
}

func describeApproval(r approval.Request) approvalRequest {
	return approvalRequest{
		r.ID, r.Operation, rest.OrNull(r.Object), r.Login, r.State, r.Approval, rest.OrNull(r.DecidedBy),
		isoTime(r.CreatedAt), isoTime(r.NotBefore), isoTime(r.ExpiresAt),
	}
}

func describeAll(list []approval.Request, err error) ([]approvalRequest, error) {
	described := make([]approvalRequest, len(list))
	for i, r := range list {
		described[i] = describeApproval(r)
	}
	return described, err
}

// onRequest names a request that waits.
type onRequest struct {
	Request string `path:"request"`
}

// mostApprovals is the length of a list of requests that wait.
const mostApprovals = 100

func (a approvalAPI) list(ctx context.Context, r struct {
	After string `query:"after"`
}) ([]approvalRequest, error) {
	return describeAll(a.requests.List(ctx, caller(ctx), r.After, mostApprovals))
}

func (a approvalAPI) read(ctx context.Context, r onRequest) (approvalDetail, error) {
	rest.Detail(ctx, "request "+r.Request)
	have, call, err := a.requests.Read(ctx, caller(ctx), r.Request)
	return approvalDetail{describeApproval(have), call.Method, call.Target, rest.OrNull(string(rest.StoredBody(call.Value))), append([]string{}, call.Effects.Names()...)}, err
}

func (a approvalAPI) decide(approve bool) func(context.Context, onRequest) (approvalRequest, error) {
	return func(ctx context.Context, r onRequest) (approvalRequest, error) {
		rest.Detail(ctx, "request "+r.Request)
		have, err := a.requests.Decide(ctx, caller(ctx), r.Request, approve)
		return describeApproval(have), err
	}
}

func (a approvalAPI) ofUser(ctx context.Context, _ struct{}) ([]approvalRequest, error) {
	return describeAll(a.requests.OfUser(ctx, caller(ctx).UserID))
}

// confirmedChange is a change with the operation that its user must confirm to end its
// delay. OperationId is null once the delay has ended.
type confirmedChange struct {
	approvalRequest
	OperationID *string `json:"OperationId"`
}

// confirm creates the confirmation of a change. With the token of the confirmation it ends
// the delay of the change.
func (a approvalAPI) confirm(ctx context.Context, r onRequest) (confirmedChange, error) {
	who := caller(ctx)
	rest.Detail(ctx, "request "+r.Request)
	if who.Confirmation != "" {
		have, err := a.delays.End(ctx, who, r.Request, who.Confirmation)
		return confirmedChange{approvalRequest: describeApproval(have)}, err
	}
	have, waiting, err := a.delays.Propose(ctx, who, r.Request)
	if err != nil {
		return confirmedChange{}, err
	}
	return confirmedChange{describeApproval(have), &waiting.ID}, nil
}

func (a approvalAPI) cancel(ctx context.Context, r onRequest) (approvalRequest, error) {
	who := caller(ctx)
	if who.Actor != "" {
		return approvalRequest{}, fault.New(fault.AccessDenied, "only the user may cancel a change of the account")
	}
	rest.Detail(ctx, "request "+r.Request)
	have, err := a.requests.Cancel(ctx, who, r.Request)
	return describeApproval(have), err
}
