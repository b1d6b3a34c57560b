// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"context"
	"sync"
	"time"

	"tamga/internal/domain/fault"
)

// Directory has the passwords of users who follow its entries (package directory).
type Directory interface {
	Name() string
	// Check reports whether the directory accepts a password of the entry with an identifier, which was last seen at dn. An
	// empty password is never accepted. The error is about the directory, such as a *fault.Outage.
	Check(ctx context.Context, dn, entry, password string) (bool, error)
	// Decoy does the work of Check for an entry that does not exist. It is for names of other users, so that neither the time of an
	// answer nor an outage says who has a password in a directory.
	Decoy(ctx context.Context) error
}

// ErrOfDirectory is the fault of a password that is to be stored for a user whose password is in a directory.
var ErrOfDirectory error = fault.New(fault.WrongOperation, "the password of this user is in a directory of the organization: it is changed there")

// mostAsked bounds the attempts that wait for directories. A directory that answers in 50 ms takes 2,000 a second.
const mostAsked = 100

// errAsked is the answer to attempts beyond mostAsked.
var errAsked error = fault.New(fault.Unavailable, "too many sign-ins wait for the directory of the organization: try again later").Until(5 * time.Second)

// beginAsking takes a place among the attempts that wait for directories. askDirectories gives it back.
func (s *Service) beginAsking() bool {
	if len(s.directories) == 0 {
		return true
	}
	select {
	case s.asked <- struct{}{}:
		return true
	default:
		return false
	}
}

// endAsking gives a place back that was not used.
func (s *Service) endAsking() {
	if len(s.directories) > 0 {
		<-s.asked
	}
}

// askDirectories begins to ask the directory of a user about a password, beside the derivation of the local one. The other
// directories do the work of a question, and all of them for other users. may is false for users who may not sign in now: their
// passwords are not sent. answer waits: for the directory of the user if it accepts the password, otherwise for all, so an outage
// of one of them does not show whose users it has. placed is the result of beginAsking.
func (s *Service) askDirectories(ctx context.Context, c *Credential, placed, may bool, text string) (answer func() (matches bool, err error)) {
	switch {
	case !placed:
		return func() (bool, error) { return false, errAsked }
	case len(s.directories) == 0:
		return func() (bool, error) { return false, nil }
	}
	type result struct {
		matches bool
		err     error
	}
	results := make([]result, len(s.directories))
	accepted, ended := make(chan struct{}), make(chan struct{})
	name, dn, entry := c.Directory, c.DN, c.Entry
	var all sync.WaitGroup
	for i, d := range s.directories {
		all.Go(func() {
			r := &results[i]
			if !may || name == "" || d.Name() != name {
				r.err = d.Decoy(ctx)
				return
			}
			if r.matches, r.err = d.Check(ctx, dn, entry, text); r.matches && r.err == nil {
				close(accepted)
			}
		})
	}
	go func() {
		all.Wait()
		<-s.asked
		close(ended)
	}()
	return func() (bool, error) {
		select {
		case <-accepted:
			return true, nil
		case <-ended:
		}
		for _, r := range results {
			if r.matches && r.err == nil {
				return true, nil
			}
		}
		for _, r := range results {
			if r.err != nil {
				return false, r.err
			}
		}
		return false, nil
	}
}
