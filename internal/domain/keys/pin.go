// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/vault"
	"tamga/pki/suite"
)

// settleTime limits the write that settles an attempt after its client has disconnected.
const settleTime = 10 * time.Second

// Sign signs digests with the key of a certificate: as many values, in the form of
// suite.Sign and in the same order. The caller must first check the certificate with
// Judge, and must verify the values.
//
// Faults are invalid_pin only. For a key with a PIN:
//   - An attempt is taken, durably, before the PIN is tried. A right PIN returns all
//     attempts. So a process that dies in between and many concurrent tries never gain an
//     attempt.
//   - After PINAttempts wrong ones in a row the key is blocked, for the right
//     PIN as well.
//   - An empty PIN and one that is too long are wrong and cost no attempt: no key has
//     such a PIN, so nothing is learned by trying.
//
// A key without a PIN ignores the PIN, since many clients always send one.
//
// A PIN that the holder knows for this key and mark takes no attempt while none is missing: it
// was tried a moment ago, and nothing changed since. After a wrong PIN the next one is tried in
// full.
//
// Within a process the tries on one key take turns, so that many concurrent requests with
// the right PIN do not use up the attempts. Sign must not be called in a transaction.
func (s *Service) Sign(ctx context.Context, c *Certificate, pin string, digests []suite.Digest) ([][]byte, error) {
	return s.SignIn(ctx, nil, c, pin, digests)
}

// SignIn is Sign with a snapshot, the one that c was resolved with; nil means to read the
// key.
func (s *Service) SignIn(ctx context.Context, snap *Snapshot, c *Certificate, pin string, digests []suite.Digest) ([][]byte, error) {
	var values [][]byte
	err := s.openIn(ctx, snap, c, pin, func(ctx context.Context, key vault.Key, secret []byte) (err error) {
		values, err = s.Holders.Sign(ctx, key, secret, digests)
		return err
	})
	return values, err
}

// open calls use with the key of a certificate and the bytes of its PIN, nil for a key
// without one, under the rules of Sign. It returns the error of use, but vault.ErrPIN
// becomes the fault invalid_pin. When use changes the PIN, the change stays even if
// returning the attempts fails.
func (s *Service) open(ctx context.Context, c *Certificate, pin string, use func(context.Context, vault.Key, []byte) error) error {
	return s.openIn(ctx, nil, c, pin, use)
}

// openIn is open with a snapshot. A key with a PIN is read again after the attempt was
// taken.
func (s *Service) openIn(ctx context.Context, snap *Snapshot, c *Certificate, pin string, use func(context.Context, vault.Key, []byte) error) error {
	key, failures, err := s.key(ctx, snap, c)
	if err != nil {
		return err
	}
	if !key.HasPIN {
		return use(ctx, key, nil)
	}
	switch {
	case pin == "":
		return fault.New(fault.InvalidPIN, "the key of this certificate has a PIN: give it")
	case len(pin) > vault.MaxPIN:
		return wrongPIN()
	}
	secret := []byte(pin)
	defer clear(secret)
	if failures == 0 && s.Holders.Knows(key, secret) {
		return use(ctx, key, secret)
	}
	leave, err := s.gates.enter(ctx, c.KeyID)
	if err != nil {
		return err
	}
	defer leave()
	reserved, err := s.PINStore.ReservePIN(ctx, c.KeyID, s.PINAttempts)
	if err != nil {
		return err
	}
	if !reserved {
		return blockedPIN()
	}
	err = s.tryPIN(ctx, c, key.Mark, secret, use)
	if errors.Is(err, vault.ErrPIN) {
		return wrongPIN().With(err)
	}
	// The client may have disconnected. The attempt must be settled anyway.
	settle, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	if err != nil {
		// Nothing was learned about the PIN. An attempt that cannot be returned stays
		// taken.
		return errors.Join(err, s.PINStore.ReturnPIN(settle, c.KeyID))
	}
	return s.PINStore.ResetPIN(settle, c.KeyID)
}

// tryPIN reads the key after the attempt was taken and never takes it from a snapshot: the PIN
// may have changed while this try waited for its turn.
func (s *Service) tryPIN(ctx context.Context, c *Certificate, mark string, secret []byte, use func(context.Context, vault.Key, []byte) error) error {
	key, _, err := s.key(ctx, nil, c)
	if err != nil {
		return err
	}
	key.Mark = mark
	return use(ctx, key, secret)
}

func blockedPIN() *fault.Error {
	return fault.New(fault.InvalidPIN, "the PIN is blocked after too many wrong attempts")
}

func wrongPIN() *fault.Error { return fault.New(fault.InvalidPIN, "the PIN is wrong") }

// key returns the key of a certificate, with the mark of the snapshot, and the number of PIN
// attempts that are taken.
func (s *Service) key(ctx context.Context, snap *Snapshot, c *Certificate) (k vault.Key, failures int, err error) {
	r, found, err := s.keyRecord(ctx, snap, c.KeyID)
	if err != nil {
		return k, 0, err
	}
	if !found || r.UserID != c.UserID {
		return k, 0, fmt.Errorf("keys: certificate %d: its key is not stored", c.ID)
	}
	su, ok := suite.ByName(r.Suite)
	if !ok {
		return k, 0, fmt.Errorf("keys: certificate %d: its key is of suite %q, which this program does not know", c.ID, r.Suite)
	}
	k = vault.Key{ID: vaultID(r.ID), Holder: r.Holder, Suite: su, Sealed: r.Sealed, HasPIN: r.HasPIN}
	if snap != nil {
		k.Mark = snap.PINMark
	}
	if r.Holder != vault.SoftwareName { // of every entry without one
		audit.UsedHolder(ctx, r.Holder)
	}
	return k, r.PINFailures, nil
}

// gates is a set of locks by name. The zero value is ready. A name uses memory only while
// it is locked or waited for.
type gates struct {
	mu    sync.Mutex
	named map[string]*gate
}

type gate struct {
	turn  chan struct{} // holds one token
	users int           // inside or waiting
}

// enter locks a name, or returns an error when ctx ends first. leave unlocks it.
func (g *gates) enter(ctx context.Context, name string) (leave func(), err error) {
	g.mu.Lock()
	if g.named == nil {
		g.named = map[string]*gate{}
	}
	at := g.named[name]
	if at == nil {
		at = &gate{turn: make(chan struct{}, 1)}
		at.turn <- struct{}{}
		g.named[name] = at
	}
	at.users++
	g.mu.Unlock()

	drop := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if at.users--; at.users == 0 {
			delete(g.named, name)
		}
	}
	select {
	case <-at.turn:
		return func() { at.turn <- struct{}{}; drop() }, nil
	case <-ctx.Done():
		drop()
		return nil, fmt.Errorf("keys: waiting for the key: %w", context.Cause(ctx))
	}
}
