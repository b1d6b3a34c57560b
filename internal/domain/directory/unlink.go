// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
)

// Sessions ends what a user has signed in to. [session.Service] satisfies it.
type Sessions interface {
	EndAll(ctx context.Context, userID string) error
}

// Unlink makes a user of a directory a local one for good. The user has no password then, not even the one from before the
// link. With forget a synchronization may join the user with an entry again, also a user who was unlinked before. A lock
// stays. The fault is wrong_operation for other users.
func Unlink(ctx context.Context, store Store, sessions Sessions, userID string, forget bool) error {
	return store.Atomic(ctx, lock.User(userID), func(ctx context.Context) error {
		had, err := store.Unlink(ctx, userID, forget)
		if err == nil && !had {
			err = fault.Rollback(fault.New(fault.WrongOperation, "the user follows no directory"))
		}
		if err == nil {
			err = sessions.EndAll(ctx, userID)
		}
		return err
	})
}
