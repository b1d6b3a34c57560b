// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"container/list"
	"sync"
	"time"
)

// Known remembers addresses for a while. It is safe for concurrent use, belongs to one
// process, and is empty after a restart.
type Known struct {
	most int
	life time.Duration
	now  func() time.Time

	mu     sync.Mutex
	recent *list.List // of *acquaintance, the latest first
	known  map[string]*list.Element
}

type acquaintance struct {
	key  string
	last time.Time
}

// NewKnown returns a Known that remembers the most addresses that were added last, each for
// the duration life.
func NewKnown(most int, life time.Duration, now func() time.Time) *Known {
	return &Known{most: most, life: life, now: now, recent: list.New(), known: map[string]*list.Element{}}
}

// Add remembers an IPv4 address, or the network of an IPv6 address.
func (k *Known) Add(remote string) {
	key := Network(remote)
	k.mu.Lock()
	defer k.mu.Unlock()
	if e, ok := k.known[key]; ok {
		e.Value.(*acquaintance).last = k.now()
		k.recent.MoveToFront(e)
		return
	}
	k.known[key] = k.recent.PushFront(&acquaintance{key, k.now()})
	for k.recent.Len() > k.most {
		delete(k.known, k.recent.Remove(k.recent.Back()).(*acquaintance).key)
	}
}

// Has reports whether the address was added and is still remembered.
func (k *Known) Has(remote string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	e, ok := k.known[Network(remote)]
	return ok && k.now().Sub(e.Value.(*acquaintance).last) < k.life
}
