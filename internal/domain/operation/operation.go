// SPDX-License-Identifier: Apache-2.0

// Package operation carries out what users order: once, after their confirmation where one is needed,
// by any process, and after any crash. A package that has something to order registers a [Kind]; begin
// with [Service.Start] and [Service.CarryOut].
//
//	              needs a confirmation                  confirmed (package confirm)
//	Start ──┬────────────────────────────> Created ────────────────────────────────> Confirmed <── for later ── Start
//	        │ at once                         │                                       │   ^  │
//	        v                                 v                               claim   v   │  │
//	Completed, Error          Declined, Cancelled, Expired, Error           attempt ──┘   │ (release: a failure that may pass)
//	(stored with its end,                                                      │          v
//	 or not at all)                                                            v     Cancelled, Expired
//	                                                                    Completed, Error
//
// Package confirm owns the record of a confirmation, which has the identifier of its operation, and
// [Follower] moves the operation with it until it is Confirmed. [Run.Spend] ends both. A lease is no state.
// Only its holder can spend, and what is not spent has never happened.
package operation

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/policy"
	"tamga/sig"
)

// State is the state of an operation, by its name in the database and on the wire. The set is closed.
type State string

// The states.
const (
	Created    State = "Created"    // waits for its confirmation
	Challenged State = "Challenged" // Created, and a challenge is under way: a state of the confirmation, never stored here
	Confirmed  State = "Confirmed"  // may be carried out
	Completed  State = "Completed"  // carried out
	Declined   State = "Declined"   // by its user
	Cancelled  State = "Cancelled"  // by its client, or because the account changed
	Expired    State = "Expired"    // neither confirmed nor carried out in time
	Error      State = "Error"      // too many wrong answers, or it can never be carried out
)

// Active reports whether an operation may still have a result.
func (s State) Active() bool { return s == Created || s == Challenged || s == Confirmed }

// Kind is what a user can order. The table of kinds has one row for each.
type Kind struct {
	// Name is stored with each operation and never changes.
	Name string
	// Version is the version of the form of Order.Plan. Run.Plan refuses another one.
	Version int
	// Purpose of the confirmation. Operations that are not confirm.ForOperation are not in lists.
	Purpose confirm.Purpose
	// Handed means that the result goes to the request that carries the operation out and is never
	// stored, so a repetition does not get it: the export of a key.
	Handed bool
	// Recorded means that an operation which is carried out at once is stored with its end, except one of
	// v1, whose answer has no place for its identifier.
	Recorded bool
	// Temporary means that all results are temporary documents in the document store, also those of
	// documents that the request had itself. Results of v1 are not, whose answer has no place for their
	// identifiers.
	Temporary bool
	// Private means that results are sealed wherever they are stored, also in an installation that stores
	// documents as they are.
	Private bool
	// Check refuses an order that its owner may not give, sets its Action, and reports whether the
	// policies want a confirmation. It is called when the order comes in and again before Do.
	Check func(ctx context.Context, o *Order) (confirm bool, err error)
	// Describe returns what the user confirms, made from what is stored now. Its digest is compared
	// before Do. It may complete the plan of a new order.
	Describe func(ctx context.Context, o *Order) (what.Fields, error)
	// Propose checks what only the order itself has, such as a PIN, before the user is asked. It is called
	// after Describe. nil: nothing.
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
	FormUpload      Form = "upload"      // our own interface for files, of the command line
	FormPage        Form = "page"        // the pages of the service
	FormChange      Form = "change"      // changes of the account
	FormService     Form = "service"     // none: the service itself, in the background
)

// startsAlone lists the forms whose operations are carried out as soon as they are confirmed. A client of
// the others comes back with the token of the confirmation, unless its order is asynchronous.
var startsAlone = map[Form]bool{FormUpload: true, FormPage: true, FormChange: true}

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

// Keep is called with an operation before it is recorded. The function that it returns is called inside
// the transaction that records the operation.
type Keep func(ctx context.Context, o *Operation) (record func(ctx context.Context) error, err error)

// Order is a request to do something.
type Order struct {
	Kind       string
	Form       Form
	Owner      audit.Principal
	Confirming Confirming
	// Forced means that the client asks for a confirmation.
	Forced bool
	// Async means that the order is carried out later, without the request. Callback is the address that
	// is told of its end; "": none.
	Async    bool
	Callback string
	// Plan says what is done, as JSON without secrets. Secret has what no plan may hold, such as a PIN;
	// nil: nothing.
	Plan, Secret any
	Bytes        int64 // of the plan, which count in the quota of its user
	// Inputs are the documents of the order, and Original is the content that the only one, a message,
	// is a signature of; nil: none. The caller closes them.
	Inputs   []Input
	Original sig.Document
	// Received are documents that the document store has kept from the same request, with digests.
	Received []document.New
	// Parameters and Description are for lists: a JSON object of texts, and a line. Without Parameters
	// they are the arguments that the user confirms.
	Parameters, Description string
	// Fresh is what only this request has, such as a snapshot. It is nil in later attempts.
	Fresh any
	// Found is what Describe leaves for Propose and Do.
	Found any
	Keep  Keep // nil: nothing is recorded beside the operation
	// Recorded means that the operation is stored with its end although its kind is not Recorded.
	Recorded bool
	// Noted is called with what Run.Note got. nil: it is not called.
	Noted func(text string)
	// Action is what the policies are asked about. Kind.Check sets it; 0: no policy is asked.
	Action policy.Action

	plan      *Plan // of an operation that is stored already
	documents []Document
	opener    opener
}

// keep calls Keep, if there is one.
func (o *Order) keep(ctx context.Context, op *Operation) (record func(ctx context.Context) error, err error) {
	if o.Keep == nil {
		return func(context.Context) error { return nil }, nil
	}
	return o.Keep(ctx, op)
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

// Stored reports whether the order is that of an operation which is stored already: Describe changes nothing
// of it.
func (o *Order) Stored() bool { return o.plan != nil }

// Plan is Order.Plan as it is stored.
type Plan struct {
	Version int             `json:"v"`
	Of      json.RawMessage `json:"plan"`
	// Original means that the contents of the operation end in Order.Original.
	Original bool `json:"original,omitempty"`

	kind *Kind
}

// Read reads the plan. A plan of another version than the kind's is an error.
func (p *Plan) Read(into any) error {
	if err := p.known(); err != nil {
		return err
	}
	if err := json.Unmarshal(p.Of, into); err != nil {
		return fmt.Errorf("operation: the plan of an operation %q: %w", p.kind.Name, err)
	}
	return nil
}

// known returns an error for a plan of another version than the kind's.
func (p *Plan) known() error {
	if p.Version != p.kind.Version {
		return fmt.Errorf("operation: the plan of an operation %q has version %d, this release knows %d", p.kind.Name, p.Version, p.kind.Version)
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
	Async  bool
	// Parameters is a JSON object of texts that clients may see, without the long ones; "": none.
	Parameters  string
	Description string
	Documents   []Document
	Fault       *fault.Error // of the end; nil: none
	// AwaitsPIN is why a Confirmed operation that starts alone waits for a request with the right PIN;
	// nil: it does not.
	AwaitsPIN *fault.Error
	Callback  string
	Called    bool // the callback was accepted; only Find says it
	// Note is what Run.Note got in this attempt. It is not stored.
	Note string
	// Answer is the result as the Renderer wrote it; empty before Completed, and without a Renderer.
	Answer []byte

	CreatedAt, UpdatedAt, ConfirmedAt time.Time
	ConfirmBefore                     time.Time // zero if it needs no confirmation
	CompleteBefore                    time.Time // ConfirmBefore until it is confirmed
	CompletedAt                       time.Time // zero until its end
	KeepUntil                         time.Time // zero until its end

	open []func() error
}

// StartsAlone reports whether the operation is carried out without a request as soon as it may be: at the
// approval of its user, if it needs one.
func (o *Operation) StartsAlone() bool { return o.Async || startsAlone[o.Form] }

// Close frees the sources of the results.
func (o *Operation) Close() error { return closeAll(&o.open) }

// Argument returns a text of Parameters by its name, "" if it is missing.
func (o *Operation) Argument(name string) string {
	var of map[string]string
	if json.Unmarshal([]byte(o.Parameters), &of) != nil {
		return ""
	}
	return of[name]
}

// arguments returns Parameters of what the user confirms: values that are digested are left out.
func arguments(v what.Values) string {
	shown := map[string]string{}
	for _, one := range v.List() {
		if one.Digest == nil {
			shown[one.Name] = one.Value
		}
	}
	return Parameters(shown)
}

// Parameters returns the form of Operation.Parameters. Long texts are left out, because they are pictures
// and attributes.
func Parameters(of map[string]string) string {
	const most = 256
	shown := map[string]string{}
	for key, value := range of {
		if len(key)+len(value) <= most {
			shown[key] = value
		}
	}
	text, err := json.Marshal(shown)
	if err != nil {
		return ""
	}
	return string(text)
}
