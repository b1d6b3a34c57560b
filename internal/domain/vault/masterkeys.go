// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// MasterKey is what the database knows of a master key. It is not the key.
type MasterKey struct {
	ID        string
	Canary    []byte // see Ring.Canary
	CreatedAt time.Time
	SealedAt  time.Time // when a process last had it as the active key; zero: never
}

// Process is a running process of the service.
type Process struct {
	ID, Host, Version string
	Active            string   // the master key that seals
	IDs               []string // all master keys of the process
	SeenAt            time.Time
}

// ProcessLife is how long a process counts as running after it was last seen.
const ProcessLife = time.Minute

// KeyStore keeps master keys, by their canaries, and processes.
type KeyStore interface {
	// MasterKeys returns all of them, the oldest first.
	MasterKeys(ctx context.Context) ([]MasterKey, error)
	// AddMasterKey adds one. It reports false if its ID is taken.
	AddMasterKey(ctx context.Context, k MasterKey) (bool, error)
	// PutProcess adds or replaces a process, and notes that its active key seals.
	PutProcess(ctx context.Context, p Process) error
	// RemoveProcesses removes a process, and those last seen before a time.
	RemoveProcesses(ctx context.Context, id string, before time.Time) error
	// Processes returns all processes, those that ended without a word included.
	Processes(ctx context.Context) ([]Process, error)
}

// Recognize compares the keys of a ring with the canaries of the database, and adds the canary of a
// key that the database has not seen. Before that it opens a record under the key if there is one: the
// database may be older than canaries. The error wraps ErrWrongKey for a key of another installation.
func Recognize(ctx context.Context, r *Ring, keys KeyStore, records Records, now time.Time) error {
	known, err := keys.MasterKeys(ctx)
	if err != nil {
		return err
	}
	for _, id := range r.IDs() {
		if i := slices.IndexFunc(known, func(k MasterKey) bool { return k.ID == id }); i >= 0 {
			if err := r.CheckCanary(id, known[i].Canary); err != nil {
				return err
			}
			continue
		}
		if _, err := Probe(ctx, r, id, records); err != nil {
			return err
		}
		canary, err := r.Canary(id)
		if err != nil {
			return err
		}
		added, err := keys.AddMasterKey(ctx, MasterKey{ID: id, Canary: canary, CreatedAt: now})
		if err != nil {
			return err
		}
		if !added { // another process was faster, maybe with another key
			return Recognize(ctx, r, keys, records, now)
		}
	}
	return nil
}

// Behind returns the running processes that do not have a master key, and those that have it but seal
// with another one.
func Behind(list []Process, id string, now time.Time) (without, sealing []Process) {
	for _, p := range list {
		switch {
		case now.Sub(p.SeenAt) > ProcessLife:
		case !slices.Contains(p.IDs, id):
			without = append(without, p)
		case p.Active != id:
			sealing = append(sealing, p)
		}
	}
	return without, sealing
}

// Settle returns the ring with the active key that may seal now. That is the ring's own, unless a running
// process has not got it: then the ring goes on with the key that this process seals with, so that all
// processes can open what one of them seals. The error is that of a ring without a key that others seal
// with.
func Settle(r *Ring, list []Process, now time.Time) (settled *Ring, waiting []Process, err error) {
	for _, p := range list {
		if now.Sub(p.SeenAt) <= ProcessLife && !slices.Contains(r.IDs(), p.Active) {
			return nil, nil, fmt.Errorf("vault: process %s seals with master key %q, which is not in master_keys.files here: add it", p, p.Active)
		}
	}
	waiting, _ = Behind(list, r.Active(), now)
	if len(waiting) == 0 {
		return r, nil, nil
	}
	settled, err = r.WithActive(waiting[0].Active)
	return settled, waiting, err
}

// String names a process for people.
func (p Process) String() string { return fmt.Sprintf("%s on %s", p.ID, p.Host) }
