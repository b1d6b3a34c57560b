// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/authority"
	"tamga/pki/x509gost"
)

// closed watches a service that was restored from a backup until it is released. An open service is
// never closed again: a restore needs an empty database.
type closed struct {
	services *Services
	is       atomic.Bool
	opened   func() // called once, at the release
}

// newClosed reads whether the service is closed.
func (s *Services) newClosed(ctx context.Context) (*closed, error) {
	c := &closed{services: s}
	restored, is, err := store.Restores{DB: s.DB}.Closed(ctx)
	if err != nil {
		return nil, err
	}
	if c.is.Store(is); is {
		s.log.Warn("the service is closed until \"tamga restore release\": it was restored from a backup", "taken_at", restored.At, "restored_at", restored.By)
	}
	return c, nil
}

var errClosed = errors.New("the service was restored from a backup and is not released")

// check is the part "release" of /readyz.
func (c *closed) check(context.Context) error {
	if c.is.Load() {
		return errClosed
	}
	return nil
}

// releaseInterval is how soon a process notices a release.
const releaseInterval = time.Second

// wait returns when the service is open. It reports false if ctx ended before.
func (c *closed) wait(ctx context.Context) bool {
	if !c.is.Load() {
		return true
	}
	tick := time.NewTicker(releaseInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		_, is, err := store.Restores{DB: c.services.DB}.Closed(ctx)
		switch {
		case err != nil:
			c.services.log.Warn("looking whether the service was released", "error", err)
		case !is:
			c.services.log.Info("the service was released and is open")
			c.is.Store(false)
			c.opened()
			return true
		}
	}
}

// Unknown is what an administrator must know before a release.
type Unknown struct {
	store.Restored
	Counts    []store.Count    `json:"counts"`
	Operators []store.Operator `json:"operators"`
	// Lists compares published revocation lists with the database.
	Lists []authority.Published `json:"revocation_lists"`
}

// ErrOpen is returned for a service that is not closed.
var ErrOpen = errors.New("the service is open: it was not restored from a backup, or it was released")

// Unknown returns what is unknown of a closed service. lists are revocation lists that were published.
func (s *Services) Unknown(ctx context.Context, lists []*x509gost.RevocationList) (u Unknown, err error) {
	restores := store.Restores{DB: s.DB}
	restored, is, err := restores.Closed(ctx)
	if err == nil && !is {
		err = ErrOpen
	}
	if err != nil {
		return u, err
	}
	u.Restored, u.Lists = restored, []authority.Published{}
	if u.Counts, err = s.DB.Counts(ctx); err != nil {
		return u, err
	}
	if u.Operators, err = restores.Operators(ctx); err != nil {
		return u, err
	}
	for _, list := range lists {
		p, err := s.Authority.Compare(ctx, list)
		if err != nil {
			return u, err
		}
		u.Lists = append(u.Lists, p)
	}
	return u, nil
}

// Release opens a closed service. Revocations that only the published lists have are recorded first.
func (s *Services) Release(ctx context.Context, u Unknown) error {
	restores := store.Restores{DB: s.DB}
	for _, p := range u.Lists {
		if err := s.Authority.Adopt(ctx, p, restores.RaiseCRLNumber); err != nil {
			return err
		}
	}
	return restores.Open(ctx)
}
