// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"fmt"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/vault"
)

// State is the state of an operation, by its name on the wire. The set is closed.
type State string

// The states. Created and Challenged wait for a confirmation, Confirmed is waiting in the
// queue or running, the others are final.
const (
	StateCreated    State = "Created"
	StateChallenged State = "Challenged"
	StateConfirmed  State = "Confirmed"
	StateDeclined   State = "Declined"
	StateCancelled  State = "Cancelled"
	StateCompleted  State = "Completed"
	StateError      State = "Error"
	StateExpired    State = "Expired"
)

// Active reports whether an operation may still have a result.
func (s State) Active() bool {
	return s == StateCreated || s == StateChallenged || s == StateConfirmed
}

// Operations handles requests of v2: documents by reference or inline, a result for each,
// and a record of the operation. A synchronous operation is stored when it has ended, in
// the transaction that makes its results visible, so a crash before that leaves nothing.
// An asynchronous operation is stored when it is accepted and carried out by
// [Operations.Run] of any process. Its results become visible by the one conditional
// statement that ends it, so a process that lost its lease has no results.
type Operations struct {
	Signer *Service // its Blobs store what is needed after a request
	Store  OperationStore
	// UnderWayStore is for operators; it uses the same database as Store.
	UnderWayStore UnderWayStore
	Documents     Documents // nil: RefId is refused
	Vault         Sealer    // for PINs of waiting operations
	Audit         audit.Log
	Templates     map[string]Template // by identifier
	Callbacks     Callbacks
	OwnerCheck    OwnerCheck  // nil: no check of the user when the operation runs
	Confirming    *Confirming // nil: what needs a confirmation is refused
	Settings      OperationSettings
	// Failed is called with errors in the background, without secrets; may be nil.
	Failed func(err error)

	queued chan struct{} // this process has queued an operation
}

// OperationSettings are the rules of operations. A zero field means its default.
type OperationSettings struct {
	Async    bool          // whether clients may request asynchronous operations
	Life     time.Duration // time within which an operation must be completed; default 1200 s
	Keep     time.Duration // how long an ended operation is stored; default 24 h
	Lease    time.Duration // time after which the work of a process that died is taken over; default 1 min
	Poll     time.Duration // interval of polling an empty queue; default 1 s
	Pause    time.Duration // after a first attempt that failed, doubled from then on; default 5 s
	Workers  int           // operations that a process carries out at the same time; default 2, below 0 none
	Attempts int           // at an operation before it is given up; default 10
	Waiting  Quota         // waiting operations of one user, and the bytes stored with all of them; default 1000, 4 GiB
}

// NewOperations returns operations with the defaults of the settings filled in.
func NewOperations(o Operations) *Operations {
	s := &o.Settings
	for _, d := range []struct {
		setting *time.Duration
		value   time.Duration
	}{{&s.Life, 1200 * time.Second}, {&s.Keep, 24 * time.Hour}, {&s.Lease, time.Minute}, {&s.Poll, time.Second}, {&s.Pause, 5 * time.Second}} {
		if *d.setting == 0 {
			*d.setting = d.value
		}
	}
	if s.Workers == 0 {
		s.Workers = 2
	}
	if s.Attempts == 0 {
		s.Attempts = 10
	}
	if s.Waiting == (Quota{}) {
		s.Waiting = Quota{Objects: 1000, Bytes: 4 << 30}
	}
	if o.Documents == nil {
		o.Documents = noDocuments{}
	}
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	o.queued = make(chan struct{}, 1)
	return &o
}

// Sealer seals short secrets for storage; see [vault.Ring].
type Sealer interface {
	Seal(p vault.Place, plaintext []byte) ([]byte, error)
	Open(p vault.Place, sealed []byte) ([]byte, error)
}

// OwnerCheck checks whether the user who ordered an operation may still act when it runs.
// The fault is access_denied.
type OwnerCheck interface {
	MayAct(ctx context.Context, who audit.Principal) error
}

// OperationOrder is a request of v2. The caller closes its documents, but not before the
// operation is closed.
type OperationOrder struct {
	Type        string            // may be empty with a template
	Params      map[string]string // without OriginalDocument
	Original    *Intake           // OriginalDocument, of a single document; nil if there is none
	Certificate string            // as in Order
	PIN         string
	Template    string // identifier; empty: none
	Inputs      []Input
	// Received are documents that the document store has kept from the same request. Those among
	// the inputs are not hashed again if they are signed at once.
	Received []document.New

	Async             bool
	Callback          string // address; empty: none
	ForceConfirmation bool
	Snapshot          *Snapshot // as in Order

	// Form, Package and Arguments are for Propose. Form is confirm.FormOperation if it is empty.
	// Package makes an operation on one document the action SignDocuments. Arguments are
	// shown to the user and have no effect on the signature.
	Form      confirm.Form
	Package   bool
	Arguments map[string]string

	// Keep, if not nil, is called with the operation before it is recorded. The function
	// that it returns is called inside the transaction that records the operation.
	Keep func(ctx context.Context, o *Operation) (record func(ctx context.Context) error, err error)
}

// Input is one document of an operation: a stored document, or one sent with the request.
type Input struct {
	RefID   string  // of a stored document
	Content *Intake // instead of RefID
	Name    string  // file name as the client sent it; returned unchanged
	// RelatedRefID is the stored document that the message in Content or RefID is a
	// signature of: OriginalDocument by reference. Empty: none.
	RelatedRefID string
	Err          error // a fault of this input
}

// Operation is a request of v2 in its current state.
type Operation struct {
	ID          string // GUID
	Owner       audit.Principal
	Action      policy.Action
	State       State
	Async       bool
	Parameters  string // JSON text of the parameters; empty if they are not public
	Description string
	Documents   []Processed
	Fault       *fault.Error // of the whole operation; nil: none
	Callback    string
	Called      bool // the callback was accepted

	CreatedAt, UpdatedAt, ConfirmedAt time.Time
	CompletedAt                       time.Time // zero until it has ended
	CompleteBefore                    time.Time

	Form          confirm.Form // of an operation that its user confirms; "" for others
	ConfirmBefore time.Time    // zero if it needs no confirmation

	open []func() error
}

// Close frees the sources of the results.
func (o *Operation) Close() error { return closeAll(&o.open) }

// Processed is a document of an operation with its outcome: a result in the document
// store, a result in Content, a fault, or nothing yet.
type Processed struct {
	ID           string // GUID, of this part of the operation
	OriginalRef  string // RefId of the input
	OriginalName string // as the client sent it, otherwise as in the document store
	Related      string // RelatedRefID of the input
	RefID        string // of a result in the document store
	Name         string // of the result; empty while there is none
	Content      Result // of a result that is not in the document store; nil when it is not stored any more
	Fault        *fault.Error
	Declined     bool // the user declined it, so it is not signed
}

// Over reports whether the document has a result or a fault.
func (p *Processed) Over() bool { return p.Fault != nil || p.Name != "" }

// Limits of an operation.
const (
	maxReferences = 1000 // stored documents of one operation: each is a file or a connection
	maxName       = 1024 // bytes of a name
	maxCallback   = 2048 // bytes of an address
)

// Start carries an operation out, or accepts it to be carried out later, or creates it as
// Propose does if it needs a confirmation.
//
// Faults: invalid_parameters, those of Sign for errors of the whole operation, those of
// Propose, and the fault of a single document. Several documents with different outcomes
// are not a fault: the answer lists them. A fault of one document is an [OfDocument].
func (s *Operations) Start(ctx context.Context, who audit.Principal, o *OperationOrder) (_ *Operation, err error) {
	if err := s.check(o); err != nil {
		return nil, err
	}
	action := actionOf(o)
	snap, err := s.Signer.current(ctx, who, o.Snapshot)
	if err != nil {
		return nil, err
	}
	if err := s.Signer.Policy.PermitBy(snap.Access, action); err != nil {
		return nil, err
	}
	if o.ForceConfirmation || s.Signer.needsConfirmation(snap, action) {
		return s.propose(ctx, who, o, action)
	}
	now := s.Signer.Now()
	shown, secrets := s.Signer.apart(o.Params)
	op := &Operation{
		Owner: who, Action: action, State: StateConfirmed, Async: o.Async,
		Parameters: shownParameters(shown), Description: describe(o.Inputs), Callback: o.Callback,
		CreatedAt: now, UpdatedAt: now, ConfirmedAt: now, CompleteBefore: now.Add(s.Settings.Life),
	}
	if op.ID, err = newID(s.Signer.Rand); err != nil {
		return nil, err
	}
	p := &plan{
		Version: planVersion, Type: s.Signer.typeName(o.Type), Params: o.Params, Certificate: o.Certificate, Template: o.Template,
	}
	op.Documents = make([]Processed, 0, len(o.Inputs))
	for i := range o.Inputs {
		in := &o.Inputs[i]
		id, err := newID(s.Signer.Rand)
		if err != nil {
			return nil, err
		}
		op.Documents = append(op.Documents, Processed{ID: id, OriginalRef: in.RefID, OriginalName: in.Name, Related: in.RelatedRefID})
		if f, ok := fault.As(in.Err); ok {
			op.Documents[i].Fault = f
		} else if in.Err != nil {
			return nil, in.Err
		}
	}
	if o.Async {
		p.Params = shown
		return op, s.enqueue(ctx, op, p, o, secrets)
	}
	defer func() {
		if err != nil {
			op.Close()
		}
	}()
	r := &run{Operations: s, op: op, plan: p, pin: o.PIN, snapshot: o.Snapshot, original: sourceOf(o.Original, nil), received: o.Received}
	r.inline = func(i int) source { return sourceOf(o.Inputs[i].Content, nil) }
	if err := r.do(ctx); err != nil {
		return nil, err
	}
	if err := r.refused(); err != nil {
		return nil, err
	}
	return op, r.finish(ctx, "", o.Keep)
}

// check refuses errors in the request itself.
func (s *Operations) check(o *OperationOrder) error {
	references := 0
	for i := range o.Inputs {
		in := &o.Inputs[i]
		for _, ref := range []string{in.RefID, in.RelatedRefID} {
			if ref != "" {
				references++
			}
		}
		switch {
		case in.Err != nil:
		case in.RefID != "" && !in.Content.isEmpty():
			return fault.Newf(fault.InvalidParameters, "BinaryData[%d] has both RefId and Content: send one of them", i)
		case in.RefID == "" && in.Content.isEmpty():
			return fault.Newf(fault.ContentRequired, "BinaryData[%d] has neither RefId nor Content", i)
		}
		if max(len(in.Name), len(in.RefID), len(in.RelatedRefID)) > maxName {
			return fault.Newf(fault.InvalidParameters, "BinaryData[%d]: ContentInfo, RefId and RelatedRefId have at most %d bytes", i, maxName)
		}
	}
	most := s.Signer.batchItems()
	switch {
	case len(o.Inputs) == 0:
		return fault.New(fault.ContentRequired, "BinaryData is missing or empty: send the documents to sign")
	case len(o.Inputs) > most:
		return fault.Newf(fault.InvalidParameters, "BinaryData holds %d documents: send at most %d in one request", len(o.Inputs), most)
	case references > maxReferences:
		return fault.Newf(fault.InvalidParameters, "BinaryData names %d stored documents: name at most %d in one request", references, maxReferences)
	case !o.Original.isEmpty() && len(o.Inputs) > 1:
		return fault.New(fault.InvalidSignatureParams, "Signature.Parameters.OriginalDocument is not allowed with several documents: name each original by RelatedRefId")
	case !o.Original.isEmpty() && o.Inputs[0].RelatedRefID != "":
		return fault.New(fault.InvalidSignatureParams, "OriginalDocument and RelatedRefId are both given: send one of them")
	case o.Async && !s.Settings.Async:
		return fault.New(fault.InvalidParameters, "IsAsync: asynchronous operations are switched off in this installation")
	}
	if o.Callback != "" {
		switch {
		case s.Callbacks.Check == nil:
			return fault.New(fault.InvalidParameters, "Callback: this installation makes no callbacks")
		case len(o.Callback) > maxCallback:
			return fault.Newf(fault.InvalidParameters, "Callback has more than %d bytes", maxCallback)
		}
		if err := s.Callbacks.Check(o.Callback); err != nil {
			return err
		}
	}
	if o.Template != "" {
		if _, ok := s.Templates[o.Template]; !ok {
			return fault.Newf(fault.InvalidSignatureParams, "ProcessingTemplateId %q is unknown", abbreviate(o.Template))
		}
	} else if _, _, err := s.Signer.format(o.Type); err != nil {
		return err
	}
	return nil
}

// describe returns a line that says what an operation is about.
func describe(inputs []Input) string {
	name := inputs[0].Name
	if name == "" {
		name = inputs[0].RefID
	}
	name = oneLine(name)
	switch {
	case len(inputs) == 1 && name == "":
		return "1 document"
	case len(inputs) == 1:
		return name
	case name == "":
		return fmt.Sprintf("%d documents", len(inputs))
	}
	return fmt.Sprintf("%s and %d more", name, len(inputs)-1)
}

// oneLine returns a name as one line of text: the first 200 runes, with spaces instead of
// control characters and changes of the writing direction. Clients and receivers of
// callbacks get the result, so its bytes must not change. That is why sig.Printable is
// not used: it replaces more runes and adds "..." to a truncated text.
func oneLine(s string) string {
	const most = 200
	out := make([]rune, 0, len(s))
	for _, r := range s {
		if len(out) == most {
			break
		}
		if r < ' ' || r == 0x7f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			r = ' '
		}
		out = append(out, r)
	}
	return string(out)
}

// Parameter is Service.Parameter of the Signer.
func (s *Operations) Parameter(name string) Parameter { return s.Signer.Parameter(name) }
