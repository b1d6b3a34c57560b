// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/policy"
)

// OperationRecord is an operation as it is stored.
type OperationRecord struct {
	ID          string // GUID
	UserID      string
	Owner       []byte // JSON of the principal that ordered it
	Action      string // name of a policy.Action
	State       State
	Async       bool
	Parameters  string
	Description string
	Documents   []byte // JSON, in the format of this package
	Plan        []byte // what must be done; empty after the end
	PIN         []byte // sealed; empty after the end, and if there is none
	Contents    string // name in Blobs of the documents of the request; empty: none
	Bytes       int64  // size of Contents or, after the end, of Results that clients may ask for
	Results     string // name in Blobs of results that are not in the document store; empty: none
	Answer      []byte // small results in place of Results, sealed; empty: none
	Callback    string
	Called      bool   // the callback was accepted; only FindOperation returns it
	Code        string // of the fault of the whole operation; empty: none
	Message     string
	Attempts    int

	CreatedAt, UpdatedAt, ConfirmedAt, CompletedAt, CompleteBefore time.Time
	KeepUntil                                                      time.Time // zero until the end
	LeasedUntil                                                    time.Time // zero: no process works on it
}

// returnsResults reports whether inline results are returned after the answer to the request, except by a
// repeated call of what was confirmed.
func (r *OperationRecord) returnsResults() bool { return r.Async || r.Callback != "" }

// OperationStore stores operations. Each method is one atomic step, whatever other
// processes do at the same time.
type OperationStore interface {
	// Atomic runs fn in one transaction. Its units decide by the conditions of single
	// statements.
	Atomic(ctx context.Context, fn func(ctx context.Context) error) error

	// AddOperation stores r if it fits into the quota of its user, and otherwise reports
	// false. Operations count while they are active, bytes as long as they are stored.
	AddOperation(ctx context.Context, r *OperationRecord, waiting Quota) (added bool, err error)
	// FindOperation returns an operation. It reports false if there is none with this id.
	FindOperation(ctx context.Context, id string) (r *OperationRecord, found bool, err error)
	// ActiveOperations returns those of a user that are active and not expired, the
	// oldest first.
	ActiveOperations(ctx context.Context, userID string, now time.Time, limit int) ([]*OperationRecord, error)

	// ClaimOperation leases the asynchronous operation that has been due for the longest
	// time, and counts an attempt. It reports false if there is none.
	ClaimOperation(ctx context.Context, lease string, now, until time.Time) (r *OperationRecord, found bool, err error)
	// ExtendOperation extends a lease. It reports false if the lease is lost.
	ExtendOperation(ctx context.Context, id, lease string, until time.Time) (held bool, err error)
	// ReleaseOperation ends a lease. The operation is due again at a time. given means
	// that the attempt does not count.
	ReleaseOperation(ctx context.Context, id, lease string, due time.Time, given bool) error
	// FinishOperation records the end of the operation that is leased, and deletes its
	// plan and PIN. It reports false if the lease is lost.
	FinishOperation(ctx context.Context, r *OperationRecord, lease string) (held bool, err error)
	// CancelOperation ends an active operation of a user that has not expired, and its
	// lease if there is one. It reports false if there is no such operation.
	CancelOperation(ctx context.Context, id, userID string, now, keepUntil time.Time) (cancelled bool, err error)
	// ExpireOperations ends at most limit operations that have expired by now and are not running. It
	// returns their ID, UserID, Callback, State and KeepUntil.
	ExpireOperations(ctx context.Context, now, keepUntil time.Time, limit int) ([]*OperationRecord, error)
	// SweepOperations deletes operations whose time of storage is over.
	SweepOperations(ctx context.Context, now time.Time) error
}

// documentRecord is Processed as it is stored.
type documentRecord struct {
	ID           string  `json:"id"`
	OriginalRef  string  `json:"original_ref,omitempty"`
	OriginalName string  `json:"original_name,omitempty"`
	Related      string  `json:"related,omitempty"`
	RefID        string  `json:"ref,omitempty"`
	Name         string  `json:"name,omitempty"`
	Content      *extent `json:"content,omitempty"` // in OperationRecord.Results or Answer
	Code         string  `json:"code,omitempty"`
	Message      string  `json:"message,omitempty"`
	Declined     bool    `json:"declined,omitempty"`
}

// storeDocuments returns the stored form of documents. contents has the positions of the
// inline results in the stored bundle, and may be nil.
func storeDocuments(documents []Processed, contents []*extent) ([]byte, error) {
	list := make([]documentRecord, len(documents))
	for i := range documents {
		d := &documents[i]
		list[i] = documentRecord{ID: d.ID, OriginalRef: d.OriginalRef, OriginalName: d.OriginalName, Related: d.Related, RefID: d.RefID, Name: d.Name, Declined: d.Declined}
		if d.Fault != nil {
			list[i].Code, list[i].Message = d.Fault.Code, d.Fault.Message
		}
		if contents != nil {
			list[i].Content = contents[i]
		}
	}
	return json.Marshal(list)
}

// newRecord returns the record of an operation, without plan, PIN, contents and results.
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

// readRecord is the inverse of newRecord and storeDocuments.
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
		p := Processed{ID: d.ID, OriginalRef: d.OriginalRef, OriginalName: d.OriginalName, Related: d.Related, RefID: d.RefID, Name: d.Name, Declined: d.Declined}
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

// Codes of operations that ended without being carried out.
const (
	codeCancelled = "operation_cancelled" // not of the specification
	codeExpired   = "transaction_expired"
	codeDeclined  = "authentication_declined"
)

// withEnd sets the fault of an operation that was not carried out. If its time is over,
// it also sets the state, without waiting for the sweep.
func (op *Operation) withEnd(now, leasedUntil time.Time) {
	if op.State.Active() && !now.Before(op.CompleteBefore) && !now.Before(leasedUntil) {
		op.State, op.CompletedAt = StateExpired, op.CompleteBefore
	}
	why := map[State]*fault.Error{
		StateCancelled: fault.New(codeCancelled, "the operation was cancelled"),
		StateExpired:   fault.New(codeExpired, "the operation was not carried out in time"),
		StateDeclined:  fault.New(codeDeclined, "the operation was declined"),
	}[op.State]
	if op.Fault == nil {
		op.Fault = why
	}
}

// Find returns an operation of who, with its results. The fault is object_not_found, also
// for operations of other users.
func (s *Operations) Find(ctx context.Context, who audit.Principal, id string) (*Operation, error) {
	if c := who.Confirmation; c != "" && !strings.EqualFold(strings.TrimSpace(id), c) {
		return nil, fault.New(fault.NotFound, "the access token is that of another operation")
	}
	r, err := s.own(ctx, who, id)
	if fault.Is(err, fault.NotFound) {
		op, found, e := s.findProposed(ctx, who, id)
		switch {
		case e != nil:
			return nil, e
		case !found:
			return nil, err
		case op.State != StateCompleted || !signs(op.Action.String()):
			return op, nil
		}
		r, err = s.own(ctx, who, id) // it was carried out just now
	}
	if err != nil {
		return nil, err
	}
	if !r.returnsResults() {
		r.Results, r.Answer = "", nil
	}
	return s.withResults(ctx, r)
}

// own returns the record of an operation of who.
func (s *Operations) own(ctx context.Context, who audit.Principal, id string) (*OperationRecord, error) {
	r, found, err := s.Store.FindOperation(ctx, strings.ToLower(strings.TrimSpace(id)))
	if err != nil {
		return nil, err
	}
	if !found || who.UserID == "" || r.UserID != who.UserID {
		return nil, fault.New(fault.NotFound, "you have no operation with this identifier")
	}
	return r, nil
}

// withResults returns an operation with its stored results.
func (s *Operations) withResults(ctx context.Context, r *OperationRecord) (*Operation, error) {
	op, list, err := readRecord(r)
	if err != nil {
		return nil, err
	}
	op.withEnd(s.Signer.Now(), r.LeasedUntil)
	var results io.ReaderAt
	switch {
	case len(r.Answer) > 0:
		text, err := s.Vault.Open(operation.AnswerPlace(r.ID), r.Answer)
		if err != nil {
			return nil, err
		}
		results = bytes.NewReader(text)
	case r.Results != "":
		blob, err := openKept(ctx, s.Signer.Blobs, r.Results)
		if err != nil {
			return nil, err
		}
		op.open, results = append(op.open, blob.Close), blob
	default:
		return op, nil
	}
	for i, d := range list {
		if d.Content != nil {
			op.Documents[i].Content = newSection(results, d.Content.At, d.Content.Size)
		}
	}
	return op, nil
}

// UnderWay is an operation that has not ended, as an operator sees it in a list.
type UnderWay struct {
	ID                         string
	UserID, Login, DisplayName string
	Action                     string
	State                      State
	CreatedAt                  time.Time
}

// UnderWayStore lists the operations of all users.
type UnderWayStore interface {
	// UnderWay returns at most limit operations of the users whom an operator reaches, the
	// oldest first, after one of an earlier call: its CreatedAt and ID count.
	UnderWay(ctx context.Context, operatorID string, after UnderWay, limit int, now time.Time) ([]UnderWay, error)
}

// UnderWay returns at most limit operations under way of the users whom who reaches, the
// oldest first, after one of an earlier call. The zero value is before all.
func (s *Operations) UnderWay(ctx context.Context, who audit.Principal, after UnderWay, limit int) ([]UnderWay, error) {
	return s.UnderWayStore.UnderWay(ctx, who.UserID, after, limit, s.Signer.Now())
}

// maxActive is the most operations of a list.
const maxActive = 1000

// Active returns the active operations of who, the oldest first, without contents.
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
	return s.openProposed(ctx, who, list)
}

// Cancel ends an active operation of who. If it is running, its result is dropped: no
// signature of it is returned. Cancelling it again changes nothing. Faults:
// object_not_found, wrong_operation for an operation that ended otherwise.
func (s *Operations) Cancel(ctx context.Context, who audit.Principal, id string) error {
	r, err := s.own(ctx, who, id)
	if fault.Is(err, fault.NotFound) {
		found, e := s.cancelProposed(ctx, who, id)
		if found || e != nil {
			return e
		}
	}
	if err != nil {
		return err
	}
	now := s.Signer.Now()
	keepUntil, cancelled := now.Add(s.Settings.Keep), false
	err = s.Store.Atomic(ctx, func(ctx context.Context) (err error) {
		cancelled, err = s.Store.CancelOperation(ctx, r.ID, r.UserID, now, keepUntil)
		if err != nil || !cancelled {
			return err
		}
		r.State, r.KeepUntil = StateCancelled, keepUntil
		return s.call(ctx, who.UserID, r)
	})
	if err != nil {
		return err
	}
	if cancelled {
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
	return overWith(op.State)
}

// overWith is the fault of cancelling an operation that ended otherwise.
func overWith(s State) error {
	return fault.Newf(fault.WrongOperation, "the operation is over: its state is %s", s)
}

// Sweep ends expired operations and deletes those whose time of storage is over.
func (s *Operations) Sweep(ctx context.Context) error {
	now := s.Signer.Now()
	for n := sweepPortion; n == sweepPortion; {
		err := s.Store.Atomic(ctx, func(ctx context.Context) error {
			list, err := s.Store.ExpireOperations(ctx, now, now.Add(s.Settings.Keep), sweepPortion)
			if err != nil {
				return err
			}
			n = len(list)
			for _, r := range list {
				if err := s.call(ctx, "", r); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return s.Store.SweepOperations(ctx, now)
}

// sweepPortion is how many operations end in one transaction of a sweep.
const sweepPortion = 1000
