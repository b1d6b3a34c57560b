package signing

import (
	"context"
	"fmt"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/vault"
)

// State is a state of an operation, by its name on the wire: a closed set.
type State string

// The states. Created and Challenged wait for a confirmation, Confirmed waits for its
// turn or is under way, the others are final.
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

// Active reports whether something may still come of an operation.
func (s State) Active() bool {
	return s == StateCreated || s == StateChallenged || s == StateConfirmed
}

// Operations are requests of v2: documents by reference or inline, a result for
// each, and a record of it all. A synchronous one is written down when it is over, in
// the transaction that makes its results visible, so one that a crash ends has left
// nothing. An asynchronous one is written down when it is accepted and carried out by
// [Operations.Run] of any process; its results become visible by the one conditional
// statement that ends it, so whoever lost its lease has made nothing.
type Operations struct {
	Signer    *Service // its Blobs keep what outlives a request
	Store     OperationStore
	Documents Documents // nil: RefId is refused
	Vault     Sealer    // for PINs that wait with an operation
	Audit     audit.Log
	Templates map[string]Template // by identifier
	Callbacks Callbacks           // nil: Callback is refused
	// CallbackStore is of the same database as Store; set with Callbacks.
	CallbackStore CallbackStore
	Standing      Standing // nil: whoever was accepted may still act
	Settings      OperationSettings
	// Render makes the body of a callback; set with Callbacks.
	Render func(o *Operation) (Result, error)
	// Failed is told what goes wrong in the background, without secrets; nil: nobody.
	Failed func(err error)

	queued, owed chan struct{} // something was queued, a callback is owed: by this process
}

// OperationSettings are rules of operations. A zero field means its default.
type OperationSettings struct {
	Async    bool          // whether clients may ask for asynchronous operations
	Life     time.Duration // in which an operation is to be done; default 1200 s
	Keep     time.Duration // of what is over; default 24 h
	Lease    time.Duration // after which the work of a process that died is taken up; default 1 min
	Poll     time.Duration // pause between two looks at an empty queue; default 1 s
	Pause    time.Duration // after a first attempt that failed, doubled from then on; default 5 s
	Workers  int           // operations carried out at a time by a process; default 2, below 0 none
	Attempts int           // at an operation or a callback before it is given up; default 10
	Waiting  Quota         // of operations of one user that wait, and of what is kept with all; default 1000, 4 GiB
}

// NewOperations fills in the defaults of its settings.
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
		s.Waiting = Quota{Objects: 1000, Octets: 4 << 30}
	}
	if o.Documents == nil {
		o.Documents = noDocuments{}
	}
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	o.queued, o.owed = make(chan struct{}, 1), make(chan struct{}, 1)
	return &o
}

// Sealer keeps short secrets at rest; see [vault.Ring].
type Sealer interface {
	Seal(p vault.Place, plaintext []byte) ([]byte, error)
	Open(p vault.Place, sealed []byte) ([]byte, error)
}

// Standing says whether whoever an operation was accepted from may still act when it
// gets its turn. The fault is access_denied.
type Standing interface {
	MayAct(ctx context.Context, who audit.Principal) error
}

// OperationOrder is a request of v2. What it holds stays the caller's, until the
// operation is closed.
type OperationOrder struct {
	Type        string            // may be "" with a template
	Params      map[string]string // without OriginalDocument
	Original    *Intake           // OriginalDocument, of a single document; nil when absent
	Certificate string            // as in Order
	PIN         string
	Template    string // identifier; "" is none
	Inputs      []Input

	Async             bool
	Callback          string // address; "" is none
	ForceConfirmation bool
	Snapshot          *Snapshot // as in Order

	// Keep is called with the operation before it is recorded, and what it returns
	// inside the transaction that does so; nil: nothing is.
	Keep func(ctx context.Context, o *Operation) (record func(ctx context.Context) error, err error)
}

// Input is one document of an operation: a stored one, or one that came along.
type Input struct {
	RefID   string  // of a stored document
	Content *Intake // in its place
	Name    string  // of a file, as the client calls it; echoed as it is
	// RelatedRefID is the stored document that the message in Content or RefID is a
	// signature of: OriginalDocument by reference. "" is none.
	RelatedRefID string
	Err          error // a fault in the input itself
}

// Operation is a request of v2 as it stands.
type Operation struct {
	ID          string // GUID
	Owner       audit.Principal
	Action      policy.Action
	State       State
	Async       bool
	Parameters  string // JSON text of the parameters; "" when it is of no public interest
	Description string
	Documents   []Processed
	Fault       *fault.Error // of the whole; nil: none
	Callback    string
	Called      bool // the callback was taken

	CreatedAt, UpdatedAt, ConfirmedAt time.Time
	CompletedAt                       time.Time // zero until it is over
	CompleteBefore                    time.Time

	open []func() error
}

// Close frees what the results are read from.
func (o *Operation) Close() error { return closeAll(&o.open) }

// Processed is a document of an operation and what became of it: a result in the
// document store, a result at hand, a fault, or nothing yet.
type Processed struct {
	ID           string // GUID, of this part of the operation
	OriginalRef  string // RefId of the input
	OriginalName string // as the client calls it, otherwise as the document store does
	Related      string // RelatedRefID of the input
	RefID        string // of a result in the document store
	Name         string // of the result; "" while there is none
	Content      Result // of a result that is not in the document store; nil once it is not kept
	Fault        *fault.Error
}

// Over reports whether the document has a result or a fault.
func (p *Processed) Over() bool { return p.Fault != nil || p.Name != "" }

// Bounds of what comes with an operation.
const (
	maxReferences = 1000 // stored documents of one operation: each is a file or a connection
	maxName       = 1024 // octets of a name
	maxCallback   = 2048 // octets of an address
)

// Start carries an operation out, or accepts it to be carried out later.
//
// Faults: wrong_operation for one that would have to be confirmed, invalid_parameters,
// those of Sign for what is wrong with all of it, and the fault of a single document.
// Several documents that end differently are an answer.
func (s *Operations) Start(ctx context.Context, who audit.Principal, o *OperationOrder) (_ *Operation, err error) {
	action := policy.SignDocuments
	if len(o.Inputs) == 1 {
		action = policy.SignDocument
	}
	if err := s.check(ctx, who, o, action); err != nil {
		return nil, err
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
	r := &run{Operations: s, op: op, plan: p, pin: o.PIN, snapshot: o.Snapshot, original: sourceOf(o.Original, nil)}
	r.inline = func(i int) source { return sourceOf(o.Inputs[i].Content, nil) }
	if err := r.do(ctx); err != nil {
		return nil, err
	}
	if err := r.refused(); err != nil {
		return nil, err
	}
	return op, r.finish(ctx, "", o.Keep)
}

// check refuses what can be refused by its looks, and what may not be done at once.
func (s *Operations) check(ctx context.Context, who audit.Principal, o *OperationOrder, action policy.Action) error {
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
			return fault.Newf(fault.InvalidParameters, "BinaryData[%d]: ContentInfo, RefId and RelatedRefId have at most %d octets", i, maxName)
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
		return fault.New(fault.InvalidSignatureParams, "Signature.Parameters.OriginalDocument has no place beside several documents: name each original by RelatedRefId")
	case !o.Original.isEmpty() && o.Inputs[0].RelatedRefID != "":
		return fault.New(fault.InvalidSignatureParams, "OriginalDocument and RelatedRefId are both given: send one of them")
	case o.Async && !s.Settings.Async:
		return fault.New(fault.InvalidParameters, "IsAsync: asynchronous operations are switched off in this installation")
	case o.ForceConfirmation:
		return unconfirmed("ForceConfirmation asks for a confirmation")
	}
	if o.Callback != "" {
		switch {
		case s.Callbacks == nil:
			return fault.New(fault.InvalidParameters, "Callback: this installation makes no callbacks")
		case len(o.Callback) > maxCallback:
			return fault.Newf(fault.InvalidParameters, "Callback has more than %d octets", maxCallback)
		}
		if err := s.Callbacks.Check(o.Callback); err != nil {
			return err
		}
	}
	if o.Template != "" {
		if _, ok := s.Templates[o.Template]; !ok {
			return fault.Newf(fault.InvalidSignatureParams, "ProcessingTemplateId %q is not known here", abbreviate(o.Template))
		}
	} else if _, _, err := s.Signer.format(o.Type); err != nil {
		return err
	}
	snap, err := s.Signer.current(ctx, who, o.Snapshot)
	if err != nil {
		return err
	}
	return s.Signer.permit(snap, action)
}

// describe says in a line what an operation is about.
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

// oneLine returns a name as one line of text: the first 200 runes, with a space in place of
// control characters and changes of the direction of writing. Clients and receivers of
// callbacks get the result, so its bytes stay as they are: sig.Printable replaces more runes
// and adds "..." to a text that it cuts.
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

// Parameter is that of the service.
func (s *Operations) Parameter(name string) Parameter { return s.Signer.Parameter(name) }
