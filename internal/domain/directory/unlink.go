// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"strings"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/user"
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

// Remembered keeps what operators have decided about users who are deleted now.
type Remembered interface {
	// ForgetDeleted is Unlink with forget for users who do not exist any more: the one with an identifier, and those who had a
	// folded login when they were unlinked.
	ForgetDeleted(ctx context.Context, id, login string) (had bool, err error)
}

// ForgetDeleted lets a synchronization register the person of an unlinked user again who was deleted since. name is the login
// that the user had when unlinked, or the identifier. The fault is user_not_found if no such user was unlinked.
func ForgetDeleted(ctx context.Context, store Remembered, name string) error {
	had, err := store.ForgetDeleted(ctx, strings.ToLower(name), user.FoldLogin(name))
	if err == nil && !had {
		err = fault.New(fault.UserNotFound, "no user of this name follows a directory, or was unlinked from one")
	}
	return err
}
