// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"context"

	"tamga/internal/domain/fault"
)

// Directory has the passwords of users who follow its entries (package directory).
type Directory interface {
	Name() string
	// Check reports whether the directory accepts a password of the entry with an identifier, which was last seen at dn. An
	// empty password is never accepted. The error is about the directory, such as a *fault.Outage.
	Check(ctx context.Context, dn, entry, password string) (bool, error)
	// Decoy does the work of Check for an entry that does not exist. It is for names of other users, so that the time of an
	// answer does not say who has a password in a directory.
	Decoy(ctx context.Context) error
}

// ErrOfDirectory is the fault of a password that is to be stored for a user whose password is in a directory.
var ErrOfDirectory error = fault.New(fault.WrongOperation, "the password of this user is in a directory of the organization: it is changed there")

// askDirectory begins to ask the directory of a user about a password, beside the derivation of the local one. may is false for
// users who may not sign in now: their passwords are not sent. The result waits for the answer.
func (s *Service) askDirectory(ctx context.Context, c *Credential, may bool, text string) (answer func() (matches bool, err error)) {
	if len(s.directories) == 0 {
		return func() (bool, error) { return false, nil }
	}
	type result struct {
		matches bool
		err     error
	}
	got := make(chan result, 1)
	name, dn, entry := c.Directory, c.DN, c.Entry
	go func() {
		var r result
		for _, d := range s.directories {
			if may && name != "" && d.Name() == name {
				r.matches, r.err = d.Check(ctx, dn, entry, text)
				got <- r
				return
			}
		}
		r.err = s.directories[0].Decoy(ctx)
		got <- r
	}()
	return func() (bool, error) {
		r := <-got
		return r.matches, r.err
	}
}
