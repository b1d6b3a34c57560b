// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"maps"
	"sync"
	"sync/atomic"

	"tamga/gost/gost3410"
	"tamga/pki/suite/gather"
)

// A GOST key in frequent use gets a table that makes its verification two to six times faster;
// see gost3410.PublicKey.Precompute. Signers, time-stamp authorities and issuers of a service
// are such keys.
const (
	tableAfter = 32   // verifications, about as many as a table costs
	tableMost  = 128  // tables kept at a time, of 86 to 516 KiB: at most 65 MiB
	countMost  = 1024 // other keys that are counted at a time

	checksMost  = 8 // verifications of one key at a time: the lanes of the widest vectors
	checksLeast = 3 // from which lanes are faster than one after another
)

// publicID identifies a public key.
type publicID struct {
	set *gost3410.Set
	xy  [128]byte
}

// tables finds the keys in frequent use. The zero value is ready.
type tables struct {
	made atomic.Pointer[map[publicID]*tabled] // replaced as a whole, so reading needs no lock

	mu     sync.Mutex
	counts map[publicID]int // verifications of keys without a table
	turn   atomic.Int64     // grows with each attempt to add a table
}

// tabled is a key with its table.
type tabled struct {
	key    *gost3410.PublicKey
	checks *gather.Calls[check] // of this key, in lanes
	used   atomic.Int64         // the turn of its last use
}

// check is one verification under a key with a table.
type check struct {
	digest, value []byte
	right         bool
}

func newTabled(k *gost3410.PublicKey) *tabled {
	t := &tabled{key: k}
	t.checks = gather.New(checksMost, t.verify)
	return t
}

// verify verifies a few values, each by itself.
func (t *tabled) verify(asked []*check) {
	if len(asked) < checksLeast {
		for _, c := range asked {
			c.right = t.key.Verify(c.digest, c.value)
		}
		return
	}
	items := make([]gost3410.VerifyItem, len(asked))
	for i, c := range asked {
		items[i] = gost3410.VerifyItem{Key: t.key, Digest: c.digest, Signature: c.value}
	}
	for i, right := range gost3410.VerifyMany(items) {
		asked[i].right = right
	}
}

// shared has the tables of this process.
var shared tables

// verify reports whether a value is right. Goroutines that verify under one key in frequent use
// at the same time do it together.
func (t *tables) verify(k *gost3410.PublicKey, digest, value []byte) bool {
	fast := t.find(k, 1)
	if fast == nil {
		return k.Verify(digest, value)
	}
	c := &check{digest: digest, value: value}
	fast.checks.Do(c)
	return c.right
}

// key returns the same key for n verifications, with its table if it has one.
func (t *tables) key(k *gost3410.PublicKey, n int) *gost3410.PublicKey {
	if fast := t.find(k, n); fast != nil {
		return fast.key
	}
	return k
}

// find counts n verifications and returns the key with its table, or nil.
func (t *tables) find(k *gost3410.PublicKey, n int) *tabled {
	id := publicID{set: k.Set()}
	copy(id.xy[:], k.Bytes())
	if made := t.made.Load(); made != nil {
		if e := (*made)[id]; e != nil {
			if turn := t.turn.Load(); e.used.Load() != turn {
				e.used.Store(turn)
			}
			return e
		}
	}
	if !t.due(id, n) {
		return nil
	}
	fast := newTabled(k.Precompute())
	t.add(id, fast)
	return fast
}

// due counts n verifications and reports whether the key is to have a table now.
func (t *tables) due(id publicID, n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.counts) >= countMost || t.counts == nil {
		t.counts = make(map[publicID]int, 16)
	}
	if t.counts[id] += n; t.counts[id] < tableAfter {
		return false
	}
	delete(t.counts, id)
	t.turn.Add(1)
	made := t.made.Load()
	return made == nil || len(*made) < tableMost || t.unused(*made) != nil
}

// unused returns a key that was not used since the turn before the last one, nil if all were.
// So a table in use is never given up for another one.
func (t *tables) unused(made map[publicID]*tabled) *publicID {
	for id, e := range made {
		if e.used.Load() < t.turn.Load()-1 {
			return &id
		}
	}
	return nil
}

// add keeps a key with its table.
func (t *tables) add(id publicID, e *tabled) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := map[publicID]*tabled{}
	if made := t.made.Load(); made != nil {
		maps.Copy(next, *made)
	}
	if len(next) >= tableMost {
		victim := t.unused(next)
		if victim == nil {
			return
		}
		delete(next, *victim)
	}
	e.used.Store(t.turn.Load())
	next[id] = e
	t.made.Store(&next)
}
