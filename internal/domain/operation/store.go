// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lease"
	"tamga/internal/domain/lock"
)

// Stored is an operation as it is stored. Answer of its Operation is sealed.
type Stored struct {
	Operation
	Purpose   confirm.Purpose
	Principal []byte // JSON of Owner
	List      []byte // JSON of Documents
	Plan      []byte // JSON of a Plan; empty after the end
	Secret    []byte // sealed; empty after the end, and if there is none
	Contents  string // name in Blobs of the documents of the request; "": none, and after the end
	Bytes     int64  // of Contents that no confirmation counts, or of Results that clients may ask for
	Results   string // name in Blobs of results that are not in the document store; "": none
	Code      string // of Fault
	Message   string
	Attempts  int
	// StartAfter is how long after its confirmation an operation is carried out without a request; below 0:
	// never. DueAt is when one without a confirmation is; zero: never. Both are written and not read back.
	StartAfter  time.Duration
	DueAt       time.Time
	LeasedUntil time.Time // zero: no process works on it

	// Asked and Refused are the state of the confirmation and the documents that its user declined. Only
	// FindOperation and OpenOperations read them.
	Asked   State
	Refused []int
}

// Quota bounds the operations of one user that are carried out later, and the bytes that are stored with
// all operations of the user.
type Quota struct {
	Objects int64
	Bytes   int64
}

// Store stores operations, in the database of the confirmations. Each method is one atomic step, whatever
// other processes do at the same time.
type Store interface {
	// Atomic runs fn in one transaction that locks a set.
	Atomic(ctx context.Context, locked lock.Set, fn func(ctx context.Context) error) error
	// Outside returns an error inside of a transaction of ctx.
	Outside(ctx context.Context) error

	// AddOperation stores a new operation if it fits into the quota of its user, and otherwise reports
	// false. Operations count until their end unless they have a confirmation, which counts itself; bytes
	// count as long as they are stored.
	AddOperation(ctx context.Context, r *Stored, waiting Quota) (added bool, err error)
	// FindOperation returns an operation. It reports false if there is none with this identifier.
	FindOperation(ctx context.Context, id string) (r *Stored, found bool, err error)
	// ClaimOperation leases a Confirmed operation that has no lease and has not expired, and counts the
	// attempt. It reports false if there is none.
	ClaimOperation(ctx context.Context, id string, l lease.Lease, now time.Time) (r *Stored, found bool, err error)
	// ClaimNext is ClaimOperation for the operation that has been due for the longest time. With asked, it is one that
	// a user has confirmed.
	ClaimNext(ctx context.Context, asked bool, l lease.Lease, now time.Time) (r *Stored, found bool, err error)
	// ExtendOperation extends a lease. It reports false if the lease is lost.
	ExtendOperation(ctx context.Context, id string, l lease.Lease) (held bool, err error)
	// ReleaseOperation ends a lease. The operation stays Confirmed.
	ReleaseOperation(ctx context.Context, id, token string) error
	// PostponeOperation ends a lease and makes the operation due at a time, if it starts alone. given means
	// that the attempt does not count. why is stored as the fault of the operation; nil: none.
	PostponeOperation(ctx context.Context, id, token string, due time.Time, given bool, why *fault.Error) error
	// SpendOperation records the end of the operation that is leased, and deletes its plan and its
	// secret. It reports false if the lease is lost.
	SpendOperation(ctx context.Context, r *Stored, token string) (held bool, err error)
	// SetAnswer stores the sealed answer of an operation, in the transaction of SpendOperation.
	SetAnswer(ctx context.Context, id string, sealed []byte) error
}

// ListStore is the part of the store for what is done with several operations, or without carrying one out. It uses the
// same database as Store.
type ListStore interface {
	// OpenOperations returns the operations of a user that have neither ended nor expired, the oldest first,
	// without their Contents. With a
	// clientID, those that need a confirmation are only those of this client.
	OpenOperations(ctx context.Context, userID, clientID string, now time.Time, limit int) ([]*Stored, error)
	// CancelOperation ends an operation of a user that needs no confirmation and has neither ended nor
	// expired, and its lease if there is one. It reports false if there is no such operation.
	CancelOperation(ctx context.Context, id, userID string, now, keepUntil time.Time) (cancelled bool, err error)
	// ExpireOperations ends at most limit operations that need no confirmation, have expired by now and are
	// not leased. It returns their ID, Owner.UserID, Callback, State and KeepUntil.
	ExpireOperations(ctx context.Context, now, keepUntil time.Time, limit int) ([]*Stored, error)
	// SweepOperations deletes operations whose time of storage is over.
	SweepOperations(ctx context.Context, now time.Time) error
	// UnderWay returns at most limit operations of the users whom an operator reaches, the
	// oldest first, after one of an earlier call: its CreatedAt and ID count.
	UnderWay(ctx context.Context, operatorID string, after UnderWay, limit int, now time.Time) ([]UnderWay, error)
	// UnderWayOf returns at most limit operations of some users whom an operator reaches, and the one
	// with an identifier, the oldest first.
	UnderWayOf(ctx context.Context, operatorID string, users []string, id string, limit int, now time.Time) ([]UnderWay, error)
	// UnderWayDocuments returns at most limit operations with documents of the users whom an operator
	// reaches, the newest first.
	UnderWayDocuments(ctx context.Context, operatorID string, limit int, now time.Time) ([]UnderWay, error)
}

// MoveStore moves operations with their confirmations.
type MoveStore interface {
	// MoveOperation moves an operation that has not ended to another state. An end deletes its plan and
	// its secret and ends its lease. Nothing happens if there is no such operation.
	MoveOperation(ctx context.Context, id string, m Move) error
}

// Move is a change of the state that a confirmation causes.
type Move struct {
	To             State
	At             time.Time
	CompleteBefore time.Time // of To Confirmed
	KeepUntil      time.Time // of an end
	Code, Message  string    // of an end
}

// Follower moves operations with their confirmations: a record of package confirm that moves takes its
// operation along, in the same transaction.
type Follower struct {
	Store MoveStore
	Keep  time.Duration // how long an ended operation is stored
}

var _ confirm.Follower = Follower{}

// Follow implements confirm.Follower.
func (f Follower) Follow(ctx context.Context, r *confirm.Record) error {
	m := Move{At: r.UpdatedAt}
	switch {
	case r.Purpose.SignIn(), r.Purpose == confirm.ForText:
		return nil // no operation
	case r.State == confirm.Confirmed:
		m.To, m.CompleteBefore = Confirmed, r.CompleteBefore
	case !r.State.Final(), r.State == confirm.Completed: // Spend ends the operation itself
		return nil
	default:
		m.To, m.KeepUntil, m.Code, m.Message = State(r.State), r.UpdatedAt.Add(f.Keep), r.Code, r.Message
	}
	return f.Store.MoveOperation(ctx, r.ID, m)
}

// stored returns an operation as it is stored, without plan, secret, contents and results.
func (o *Operation) stored() (*Stored, error) {
	r := &Stored{Operation: *o, StartAfter: -1}
	r.open = nil
	if o.Fault != nil {
		r.Code, r.Message = o.Fault.Code, o.Fault.Message
	}
	var err error
	if r.Principal, err = json.Marshal(o.Owner); err != nil {
		return nil, err
	}
	r.List, err = writeDocuments(o.Documents)
	return r, err
}

// read reads what the columns of the store do not hold.
func (r *Stored) read() error {
	if err := json.Unmarshal(r.Principal, &r.Owner); err != nil {
		return fmt.Errorf("operation: the owner of operation %s: %w", r.ID, err)
	}
	var err error
	if r.Documents, err = readDocuments(r.List); err != nil {
		return fmt.Errorf("operation: the documents of operation %s: %w", r.ID, err)
	}
	if r.Asked != "" && r.State == Created {
		r.State = r.Asked
	}
	switch {
	case r.Code == "":
	case !r.State.Active():
		r.Fault = fault.New(r.Code, r.Message)
	case r.State == Confirmed:
		r.AwaitsPIN = fault.New(r.Code, r.Message)
	}
	return r.decline(r.Refused)
}

// decline marks the documents that the user declined.
func (r *Stored) decline(indexes []int) error {
	if len(r.Documents) == 0 {
		return nil
	}
	for i := range r.Documents {
		r.Documents[i].Declined = r.Documents[i].Declined || r.State == Declined
	}
	for _, i := range indexes {
		if i < 0 || i >= len(r.Documents) {
			return fmt.Errorf("operation: operation %s has %d documents, and number %d is declined", r.ID, len(r.Documents), i)
		}
		r.Documents[i].Declined = true
	}
	return nil
}

// returnsResults reports whether inline results are returned after the answer to the request, except by a
// repeated call of what was confirmed.
func (r *Stored) returnsResults() bool { return r.StartsAlone() || r.Callback != "" }

// UnderWay is an operation that has not ended, as an operator sees it in a list.
type UnderWay struct {
	ID                         string
	UserID, Login, DisplayName string
	Action                     string
	State                      State
	CreatedAt                  time.Time
	Documents                  []byte // as stored, of UnderWayDocuments alone
}

// OwnerCheck checks whether the user who ordered an operation may still act when it is carried out without
// a request. The fault is access_denied.
type OwnerCheck interface {
	MayAct(ctx context.Context, who audit.Principal) error
}
