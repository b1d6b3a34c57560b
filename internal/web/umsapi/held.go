// SPDX-License-Identifier: Apache-2.0

package umsapi

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/held"
	"tamga/internal/domain/policy"
	"tamga/internal/web/rest"
)

// weakens are the operations that add, replace or remove a factor of a user or may ask the
// user for less. A delay holds them. A new route that does so is named here.
var weakens = strings.Fields(`ResetPassword ResetPasswordAndSend ResetPasswordAndSendSms ResetPasswordAndSendEmail ResetPasswordAndPrint
	SetUserMainPhone SetUserMainEmail SetUserPrimaryPhone SetUserPrimaryEmail SetUserSecondaryAuthPhone SetUserSecondaryAuthEmail DeleteUserPhone DeleteUserEmail SetUserLogin DeleteUserLogin SetUserGroup SetUserOperationPolicy
	SetUserOtpToken CreateUserOathAppData RemoveUserOtpToken RemoveUserPasskey
	AssignMyDssKey CreateMyDssKInit GetMyDssVerificationData LockoutMyDssDevice DeleteMyDssKey DeleteAllMyDssKeys`)

// Holding are the rules of requests that wait.
type Holding struct {
	Requests *held.Service
	Approve  []string      // operations that a second operator must approve
	Delay    time.Duration // of operations that weaken what a user signs in and confirms with; 0: none
	Factors  Factors
	Policies Policies
}

// Factors knows what users sign in and confirm with; *signin.Service satisfies it.
type Factors interface {
	// HasFactor reports whether the user could sign in or confirm.
	HasFactor(ctx context.Context, userID string) (bool, error)
}

// Policies knows the policies of users; *policy.Service satisfies it.
type Policies interface {
	Effective(ctx context.Context, userID string, k policy.Kind) (policy.Setting, error)
}

// Holds implements [rest.Holder].
func (h *Holding) Holds(operation string) bool {
	return slices.Contains(h.Approve, operation) || h.Delay > 0 && weakening(operation)
}

func weakening(operation string) bool {
	return slices.Contains(weakens, operation) ||
		strings.HasPrefix(operation, "SetUserAuthenticationMethod") || strings.HasPrefix(operation, "DeleteUserAuthenticationMethod")
}

// Hold implements [rest.Holder].
func (h *Holding) Hold(ctx context.Context, who audit.Principal, c rest.HeldCall) (func(context.Context, error) error, error) {
	needs := held.Needs{Approval: slices.Contains(h.Approve, c.Operation)}
	if h.Delay > 0 && weakening(c.Operation) {
		waits, err := h.delayed(ctx, c)
		if err != nil {
			return nil, err
		}
		if waits {
			needs.Delay = h.Delay
		}
	}
	if needs == (held.Needs{}) {
		return nil, nil
	}
	turn, err := h.Requests.Hold(ctx, who, held.Call{Operation: c.Operation, Method: c.Method, Target: c.Target, Object: c.Object, Body: c.Body}, needs)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, err error) error {
		if _, refused := fault.As(err); err != nil && !refused {
			return nil // it may have been carried out, so it must not be repeated: it ends as Interrupted
		}
		return turn.End(ctx, err != nil)
	}, nil
}

// delayed reports whether a delay holds a request: the user has a factor already. A new
// operation policy is held only if it asks for less, and a block of a device never is, since
// the device may be stolen.
func (h *Holding) delayed(ctx context.Context, c rest.HeldCall) (bool, error) {
	has, err := h.Factors.HasFactor(ctx, c.Object)
	if err != nil || !has || c.Operation != "SetUserOperationPolicy" && c.Operation != "LockoutMyDssDevice" {
		return has, err
	}
	var body any
	d := json.NewDecoder(bytes.NewReader(c.Body))
	d.UseNumber()
	if d.Decode(&body) != nil {
		return false, nil // refused without a delay
	}
	if c.Operation == "LockoutMyDssDevice" {
		block, err := flagOf("Lock", body, flag{})
		return !block, err
	}
	wanted, err := readActions(body)
	if err != nil {
		return false, err
	}
	have, err := h.Policies.Effective(ctx, c.Object, policy.Operation)
	return have.Actions&^wanted != 0, err
}

// heldAPI serves the requests that wait.
type heldAPI struct {
	requests *held.Service
	confirms *held.Confirming
}

// HeldRoutes returns the operations by which operators decide about requests that wait.
// Mount them beside [API.Routes] at the same gate.
func HeldRoutes(requests *held.Service) []rest.Route {
	a := heldAPI{requests: requests}
	return []rest.Route{
		rest.Handle("GET /ums/approvals", "GetApprovals", Operator, a.list),
		rest.Handle("GET /ums/approvals/{request}", "GetApproval", Operator, a.read),
		rest.Handle("POST /ums/approvals/{request}/approve", "GiveApproval", Operator, a.decide(true)),
		rest.Handle("POST /ums/approvals/{request}/refuse", "RefuseApproval", Operator, a.decide(false)),
	}
}

// ChangeRoutes returns the operations by which users see, confirm and cancel changes of
// their accounts that a delay holds.
func ChangeRoutes(confirms *held.Confirming) []rest.Route {
	a := heldAPI{confirms.Requests, confirms}
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

// heldDetail is a request with what it asks for.
type heldDetail struct {
	heldRequest
	Method string
	Target string
	Body   *string // JSON text
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
	return heldDetail{describeHeld(have), call.Method, call.Target, rest.OrNull(string(call.Body))}, err
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
		have, err := a.confirms.EndDelay(ctx, who, r.Request, who.Confirmation)
		return confirmedChange{heldRequest: describeHeld(have)}, err
	}
	have, record, err := a.confirms.Propose(ctx, who, r.Request)
	return confirmedChange{describeHeld(have), rest.OrNull(record.ID)}, err
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
