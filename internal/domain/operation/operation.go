// SPDX-License-Identifier: Apache-2.0

// Package operation carries out what users order: once, after their confirmation where one is needed,
// by any process, and after any crash. A package that has something to order registers a [Kind]; begin
// with [Service.Start] and [Service.CarryOut].
//
//	            needs a confirmation                 confirmed (package confirm)
//	Start ──┬─────────────────────────> Created ──────────────────────────────> Confirmed
//	        │ at once                      │                                     │   ^  │
//	        v                              v                             claim   v   │  │
//	     nothing is stored      Declined, Cancelled, Expired, Error       attempt ───┘  │ (release: a failure that may pass)
//	                                                                         │          v
//	                                                                   Spend v     Cancelled, Expired
//	                                                                     Completed
//
// Clients see Created as Challenged while a challenge is under way: that is a state of the confirmation.
// Package confirm owns the record of a confirmation, which has the identifier of its operation, and
// [Follower] moves the operation with it. Only Completed is this package's own: [Run.Spend] ends both. A
// lease is no state. Only its holder can spend, and what is not spent has never happened.
package operation

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/policy"
)

// State is the state of an operation, by its name in the database and on the wire. The set is closed.
type State string

// The states.
const (
	Created   State = "Created"   // waits for its confirmation
	Confirmed State = "Confirmed" // may be carried out
	Completed State = "Completed" // carried out
	Declined  State = "Declined"  // by its user
	Cancelled State = "Cancelled" // by its client, or because the account changed
	Expired   State = "Expired"   // neither confirmed nor carried out in time
	Error     State = "Error"     // too many wrong answers, or it can never be carried out
)

// Kind is what a user can order. The table of kinds has one row for each.
type Kind struct {
	// Name is stored with each operation and never changes.
	Name string
	// Version is the version of the form of Order.Plan. Run.Plan refuses another one.
	Version int
	// Purpose of the confirmation.
	Purpose confirm.Purpose
	// Handed means that the result goes to the request that carries the operation out and is never
	// stored, so a repetition does not get it: the export of a key.
	Handed bool
	// Check refuses an order that its owner may not give, sets its Action, and reports whether the
	// policies want a confirmation. It is called when the order comes in and again before Do.
	Check func(ctx context.Context, o *Order) (confirm bool, err error)
	// Describe returns what the user confirms, made from what is stored now. Its digest is compared
	// before Do.
	Describe func(ctx context.Context, o *Order) (what.Fields, error)
	// Propose checks what only the order itself has, such as a PIN, before the user is asked. nil: nothing.
	Propose func(ctx context.Context, o *Order) error
	// Fits refuses a request that may not carry an operation out although it has its token: one about
	// another object. plan is nil after the end. nil: every request fits.
	Fits func(o *Operation, plan *Plan, c *Claim) error
	// Do carries the order out and ends with r.Spend. After any other return nothing has happened.
	Do func(ctx context.Context, r *Run) error
}

// Form is the interface that an operation was ordered by. It is carried out by the same one, because the
// forms of the answers differ.
type Form string

// The forms.
const (
	FormOperation   Form = "operation"   // v2
	FormTransaction Form = "transaction" // v1
	FormPage        Form = "page"        // the pages of the service
	FormChange      Form = "change"      // changes of the account
)

// Renderer makes the answer to store of an operation of a form and a kind. It runs inside the transaction
// of Run.Spend, maybe several times, and depends on its arguments alone.
type Renderer func(o *Operation, result any) ([]byte, error)

// Confirming says what an order does where a confirmation is needed.
type Confirming int

// The ways.
const (
	// Waits creates an operation that waits for its confirmation if one is needed.
	Waits Confirming = iota
	// Refuses refuses the order if a confirmation is needed: its client cannot be told of one.
	Refuses
	// Always creates an operation that waits, needed or not.
	Always
)

// Order is a request to do something.
type Order struct {
	Kind       string
	Form       Form
	Owner      audit.Principal
	Confirming Confirming
	// Forced means that the client asks for a confirmation.
	Forced bool
	// Plan says what is done, as JSON without secrets. Secret has what no plan may hold, such as a PIN;
	// nil: nothing.
	Plan, Secret any
	Bytes        int64 // of the plan, which count in the quota of its user
	// Action is what the policies are asked about. Kind.Check sets it; 0: no policy is asked.
	Action policy.Action

	plan *Plan // of an operation that is stored already
}

// ReadPlan reads the plan of an order into a value of the same type.
func (o *Order) ReadPlan(into any) error {
	if o.plan != nil {
		return o.plan.Read(into)
	}
	text, err := json.Marshal(o.Plan)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// Plan is Order.Plan as it is stored.
type Plan struct {
	Version int             `json:"v"`
	Of      json.RawMessage `json:"plan"`

	kind *Kind
}

// Read reads the plan. A plan of another version than the kind's is an error.
func (p *Plan) Read(into any) error {
	if p.Version != p.kind.Version {
		return fmt.Errorf("operation: the plan of an operation %q has version %d, this release knows %d", p.kind.Name, p.Version, p.kind.Version)
	}
	if err := json.Unmarshal(p.Of, into); err != nil {
		return fmt.Errorf("operation: the plan of an operation %q: %w", p.kind.Name, err)
	}
	return nil
}

// Operation is a durable act of a user. It has no secrets.
type Operation struct {
	ID    string // GUID; that of its confirmation
	Kind  string
	Form  Form
	Owner audit.Principal
	// Action is the name of a policy.Action, or what.ChangeAccount.
	Action string
	State  State
	// Parameters is a JSON object of texts that the user has confirmed, without the long ones.
	Parameters string
	// Answer is the result as the Renderer wrote it; empty before Completed, and without a Renderer.
	Answer []byte

	CreatedAt, UpdatedAt, ConfirmBefore, ConfirmedAt, CompleteBefore, CompletedAt time.Time
	KeepUntil                                                                     time.Time // zero until its end
}

// Argument returns a text of Parameters by its name, "" if it is missing.
func (o *Operation) Argument(name string) string {
	var of map[string]string
	if json.Unmarshal([]byte(o.Parameters), &of) != nil {
		return ""
	}
	return of[name]
}

// arguments returns Parameters of what the user confirms: values that are digested are left out.
func arguments(v what.Values) (string, error) {
	shown := map[string]string{}
	for _, one := range v.List() {
		if one.Digest == nil {
			shown[one.Name] = one.Value
		}
	}
	text, err := json.Marshal(shown)
	return string(text), err
}
