package signing

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/policy"
)

// OperationRecord is an operation as it is stored.
type OperationRecord struct {
	ID          string // GUID
	UserID      string
	Owner       []byte // JSON of the principal it was accepted from
	Action      string // name of a policy.Action
	State       State
	Async       bool
	Parameters  string
	Description string
	Documents   []byte // JSON, the domain's own form
	Plan        []byte // what is to be done; empty once it is over
	PIN         []byte // sealed; empty once it is over, and where there is none
	Contents    string // name in Blobs of what came along; "" is none
	Octets      int64  // of Contents or, once it is over, of Results
	Results     string // name in Blobs of results that are not in the document store; "" is none
	Callback    string
	Called      bool   // the callback was taken
	Code        string // of the fault of the whole; "" is none
	Message     string
	Attempts    int

	CreatedAt, UpdatedAt, ConfirmedAt, CompletedAt, CompleteBefore time.Time
	KeepUntil                                                      time.Time // zero until it is over
	LeasedUntil                                                    time.Time // zero: nobody is at work
}

// CallbackRecord is a callback that is owed.
type CallbackRecord struct {
	OperationID string
	URL         string
	Attempts    int // begun
	ExpiresAt   time.Time
}

// OperationStore keeps operations. Each method is one atomic step, whatever other
// processes do at the same time. Whatever ends an operation with a callback owes it in
// the same step.
type OperationStore interface {
	// Atomic runs fn in one transaction. Its units decide by the conditions of single
	// statements.
	Atomic(ctx context.Context, fn func(ctx context.Context) error) error

	// AddOperation keeps r when it fits into the quota of its user, and otherwise reports
	// false. Operations count while they are active, octets as long as they are kept.
	AddOperation(ctx context.Context, r *OperationRecord, waiting Quota) (added bool, err error)
	// FindOperation reads one. It reports false when there is none of this name.
	FindOperation(ctx context.Context, id string) (r *OperationRecord, found bool, err error)
	// ActiveOperations reads those of a user that are active and not expired, the
	// oldest first.
	ActiveOperations(ctx context.Context, userID string, now time.Time, limit int) ([]*OperationRecord, error)

	// ClaimOperation leases the asynchronous operation that has been due the longest,
	// and counts an attempt. It reports false when there is none.
	ClaimOperation(ctx context.Context, lease string, now, until time.Time) (r *OperationRecord, found bool, err error)
	// ExtendOperation makes a lease longer. It reports false when it is lost.
	ExtendOperation(ctx context.Context, id, lease string, until time.Time) (held bool, err error)
	// ReleaseOperation ends a lease; the operation is due again at a time. given says
	// that the attempt does not count.
	ReleaseOperation(ctx context.Context, id, lease string, due time.Time, given bool) error
	// FinishOperation writes down how the operation ended that the lease is for, and
	// forgets its plan and PIN. It reports false when the lease is lost.
	FinishOperation(ctx context.Context, r *OperationRecord, lease string) (held bool, err error)
	// CancelOperation ends an active operation of a user that has not expired, and any
	// lease of it. It reports false when there is none.
	CancelOperation(ctx context.Context, id, userID string, now, keepUntil time.Time) (cancelled bool, err error)
	// SweepOperations ends what has expired at now and is not under way, and deletes
	// what is not kept any longer.
	SweepOperations(ctx context.Context, now, keepUntil time.Time) error
}

// CallbackStore leases the callbacks of operations that OperationStore keeps.
type CallbackStore interface {
	// ClaimCallback leases the callback that has been due the longest, and counts an
	// attempt.
	ClaimCallback(ctx context.Context, lease string, now, until time.Time) (c *CallbackRecord, found bool, err error)
	// ExtendCallback makes a lease longer. It reports false when it is lost.
	ExtendCallback(ctx context.Context, operationID, lease string, until time.Time) (held bool, err error)
	// FinishCallback ends an attempt: the callback was taken, or is given up, or is due
	// again.
	FinishCallback(ctx context.Context, operationID, lease string, e CallbackEnd) error
}

// CallbackEnd is how an attempt at a callback ended.
type CallbackEnd struct {
	Taken bool
	Again time.Time // when it is due again; zero: it was taken, or is given up
	Error string
}

// documentRecord is Processed as it is stored.
type documentRecord struct {
	ID           string  `json:"id"`
	OriginalRef  string  `json:"original_ref,omitempty"`
	OriginalName string  `json:"original_name,omitempty"`
	Related      string  `json:"related,omitempty"`
	RefID        string  `json:"ref,omitempty"`
	Name         string  `json:"name,omitempty"`
	Content      *extent `json:"content,omitempty"` // in OperationRecord.Results
	Code         string  `json:"code,omitempty"`
	Message      string  `json:"message,omitempty"`
}

// storeDocuments writes documents down; contents says where those at hand lie in what
// is kept, and may be nil.
func storeDocuments(documents []Processed, contents []*extent) ([]byte, error) {
	list := make([]documentRecord, len(documents))
	for i := range documents {
		d := &documents[i]
		list[i] = documentRecord{ID: d.ID, OriginalRef: d.OriginalRef, OriginalName: d.OriginalName, Related: d.Related, RefID: d.RefID, Name: d.Name}
		if d.Fault != nil {
			list[i].Code, list[i].Message = d.Fault.Code, d.Fault.Message
		}
		if contents != nil {
			list[i].Content = contents[i]
		}
	}
	return json.Marshal(list)
}

// newRecord writes an operation down, without what waits with it and without
// contents.
func newRecord(op *Operation) (*OperationRecord, error) {
	r := &OperationRecord{
		ID: op.ID, UserID: op.Owner.UserID, Action: op.Action.String(), State: op.State, Async: op.Async,
		Parameters: op.Parameters, Description: op.Description, Callback: op.Callback,
		CreatedAt: op.CreatedAt, UpdatedAt: op.UpdatedAt, ConfirmedAt: op.ConfirmedAt,
		CompletedAt: op.CompletedAt, CompleteBefore: op.CompleteBefore,
	}
	if op.Fault != nil {
		r.Code, r.Message = op.Fault.Code, op.Fault.Message
	}
	var err error
	if r.Owner, err = json.Marshal(op.Owner); err != nil {
		return nil, err
	}
	r.Documents, err = storeDocuments(op.Documents, nil)
	return r, err
}

// readRecord is the inverse. Contents are opened with open, which may be nil.
func readRecord(r *OperationRecord) (*Operation, []documentRecord, error) {
	op := &Operation{
		ID: r.ID, State: r.State, Async: r.Async, Parameters: r.Parameters, Description: r.Description,
		Callback: r.Callback, Called: r.Called,
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, ConfirmedAt: r.ConfirmedAt,
		CompletedAt: r.CompletedAt, CompleteBefore: r.CompleteBefore,
	}
	var err error
	if op.Action, err = policy.ParseAction(r.Action); err != nil {
		return nil, nil, fmt.Errorf("signing: operation %s: %w", r.ID, err)
	}
	if err := json.Unmarshal(r.Owner, &op.Owner); err != nil {
		return nil, nil, fmt.Errorf("signing: operation %s: %w", r.ID, err)
	}
	var list []documentRecord
	if err := json.Unmarshal(r.Documents, &list); err != nil {
		return nil, nil, fmt.Errorf("signing: operation %s: %w", r.ID, err)
	}
	for _, d := range list {
		p := Processed{ID: d.ID, OriginalRef: d.OriginalRef, OriginalName: d.OriginalName, Related: d.Related, RefID: d.RefID, Name: d.Name}
		if d.Code != "" {
			p.Fault = fault.New(d.Code, d.Message)
		}
		op.Documents = append(op.Documents, p)
	}
	if r.Code != "" {
		op.Fault = fault.New(r.Code, r.Message)
	}
	return op, list, nil
}

// Codes of operations that ended without having been carried out.
const (
	codeCancelled = "operation_cancelled" // our own
	codeExpired   = "transaction_expired"
	codeDeclined  = "authentication_declined"
)

// withEnd gives an operation that was not carried out the fault that says why, and one
// whose time is over its state: to the second, whenever it will be swept.
func (op *Operation) withEnd(now, leasedUntil time.Time) {
	if op.State.Active() && !now.Before(op.CompleteBefore) && !now.Before(leasedUntil) {
		op.State, op.CompletedAt = StateExpired, op.CompleteBefore
	}
	why := map[State]*fault.Error{
		StateCancelled: fault.New(codeCancelled, "the operation was cancelled"),
		StateExpired:   fault.New(codeExpired, "the operation was not carried out in its time"),
		StateDeclined:  fault.New(codeDeclined, "the operation was declined"),
	}[op.State]
	if op.Fault == nil {
		op.Fault = why
	}
}

// Find reads an operation of who, with its results. The fault is object_not_found,
// also for those of others.
func (s *Operations) Find(ctx context.Context, who audit.Principal, id string) (*Operation, error) {
	r, err := s.own(ctx, who, id)
	if err != nil {
		return nil, err
	}
	return s.withResults(ctx, r)
}

// own finds the record of an operation of who.
func (s *Operations) own(ctx context.Context, who audit.Principal, id string) (*OperationRecord, error) {
	r, found, err := s.Store.FindOperation(ctx, strings.ToLower(strings.TrimSpace(id)))
	if err != nil {
		return nil, err
	}
	if !found || who.UserID == "" || r.UserID != who.UserID {
		return nil, fault.New(fault.NotFound, "you have no operation of this name")
	}
	return r, nil
}

// withResults reads an operation with the contents that are kept of it.
func (s *Operations) withResults(ctx context.Context, r *OperationRecord) (*Operation, error) {
	op, list, err := readRecord(r)
	if err != nil {
		return nil, err
	}
	op.withEnd(s.Signer.Now(), r.LeasedUntil)
	if r.Results == "" {
		return op, nil
	}
	blob, err := s.Signer.Blobs.OpenBlob(ctx, r.Results)
	if err != nil {
		return nil, err
	}
	op.open = append(op.open, blob.Close)
	for i, d := range list {
		if d.Content != nil {
			op.Documents[i].Content = newSection(blob, d.Content.At, d.Content.Size)
		}
	}
	return op, nil
}

// maxActive is the most operations a list has.
const maxActive = 1000

// Active lists the operations of who that are not over, the oldest first, without
// contents.
func (s *Operations) Active(ctx context.Context, who audit.Principal) ([]*Operation, error) {
	list := []*Operation{}
	if who.UserID == "" {
		return list, nil
	}
	now := s.Signer.Now()
	records, err := s.Store.ActiveOperations(ctx, who.UserID, now, maxActive)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		op, _, err := readRecord(r)
		if err != nil {
			return nil, err
		}
		list = append(list, op)
	}
	return list, nil
}

// Cancel ends an operation of who that is not over. What is being made of it in this
// moment is dropped: no signature of it leaves. Cancelling again changes nothing.
// Faults: object_not_found, wrong_operation for one that is over otherwise.
func (s *Operations) Cancel(ctx context.Context, who audit.Principal, id string) error {
	r, err := s.own(ctx, who, id)
	if err != nil {
		return err
	}
	now := s.Signer.Now()
	cancelled, err := s.Store.CancelOperation(ctx, r.ID, r.UserID, now, now.Add(s.Settings.Keep))
	if err != nil {
		return err
	}
	if cancelled {
		poke(s.owed)
		return s.forget(ctx, r.Contents)
	}
	if r, err = s.own(ctx, who, id); err != nil {
		return err
	}
	op, _, err := readRecord(r)
	if err != nil {
		return err
	}
	if op.withEnd(now, r.LeasedUntil); op.State == StateCancelled {
		return nil
	}
	return fault.Newf(fault.WrongOperation, "the operation is over: its state is %s", op.State)
}

// Sweep ends operations whose time is over and deletes what is not kept any longer.
func (s *Operations) Sweep(ctx context.Context) error {
	now := s.Signer.Now()
	return s.Store.SweepOperations(ctx, now, now.Add(s.Settings.Keep))
}
