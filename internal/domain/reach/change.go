// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
)

// Changes runs changes that operators make to the account of a user.
type Changes struct {
	Store  Transactions
	Reach  Checker
	Events Events
}

// Transactions locks a set, then runs fn in one transaction, which is rolled back for an
// error of [fault.Rollback].
type Transactions interface {
	Atomic(ctx context.Context, locked lock.Set, fn func(ctx context.Context) error) error
}

// Checker decides whether an operator may act on a user; [Service] satisfies it.
type Checker interface {
	Reach(ctx context.Context, who audit.Principal, userID string) error
}

// Events sends an event; [notify.Service] satisfies it.
type Events interface {
	Emit(ctx context.Context, e notify.Event) error
}

// Run runs fn on a user within reach and emits UserAccountChanged, all in one transaction.
// If fn fails, the transaction is rolled back.
func (c Changes) Run(ctx context.Context, who audit.Principal, userID string, fn func(ctx context.Context) error) error {
	return c.Store.Atomic(ctx, lock.User(userID), func(ctx context.Context) error {
		if err := c.Reach.Reach(ctx, who, userID); err != nil {
			return err
		}
		if err := fn(ctx); err != nil {
			return fault.Rollback(err)
		}
		return fault.Rollback(c.Events.Emit(ctx, notify.Event{Type: notify.UserAccountChanged, UserID: userID, Actor: who.UserID}))
	})
}
