// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"tamga/internal/domain/confirm"
	"tamga/internal/domain/lease"
	"tamga/internal/domain/lock"
)

// Stored is an operation as it is stored. Answer of its Operation is sealed.
type Stored struct {
	Operation
	Principal []byte // JSON of Owner
	Plan      []byte // JSON of a Plan; empty after the end
	Secret    []byte // sealed; empty after the end, and if there is none
}

// Store stores operations, in the database of the confirmations. Each method is one atomic step, whatever
// other processes do at the same time.
type Store interface {
	// Atomic runs fn in one transaction that locks a set.
	Atomic(ctx context.Context, locked lock.Set, fn func(ctx context.Context) error) error
	// Outside returns an error inside of a transaction of ctx.
	Outside(ctx context.Context) error

	// AddOperation stores a new operation.
	AddOperation(ctx context.Context, r *Stored) error
	// FindOperation returns an operation. It reports false if there is none with this identifier.
	FindOperation(ctx context.Context, id string) (r *Stored, found bool, err error)
	// ClaimOperation leases a Confirmed operation that has no lease and has not expired, and counts the
	// attempt. It reports false if there is none.
	ClaimOperation(ctx context.Context, id string, l lease.Lease, now time.Time) (r *Stored, found bool, err error)
	// ExtendOperation extends a lease. It reports false if the lease is lost.
	ExtendOperation(ctx context.Context, id string, l lease.Lease) (held bool, err error)
	// ReleaseOperation ends a lease. The operation stays Confirmed.
	ReleaseOperation(ctx context.Context, id, token string) error
	// SpendOperation ends the operation that is leased as Completed at a time, and deletes its plan and
	// its secret. It reports false if the lease is lost.
	SpendOperation(ctx context.Context, id, token string, at, keepUntil time.Time) (held bool, err error)
	// SetAnswer stores the sealed answer of an operation, in the transaction of SpendOperation.
	SetAnswer(ctx context.Context, id string, sealed []byte) error
	MoveStore
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

// stored returns an operation as it is stored.
func (o *Operation) stored() (*Stored, error) {
	r := &Stored{Operation: *o}
	var err error
	r.Principal, err = json.Marshal(o.Owner)
	return r, err
}

// read reads what the columns of the store do not hold.
func (r *Stored) read() error {
	if err := json.Unmarshal(r.Principal, &r.Owner); err != nil {
		return fmt.Errorf("operation: the owner of operation %s: %w", r.ID, err)
	}
	return nil
}
