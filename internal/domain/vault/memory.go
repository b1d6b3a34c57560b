// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"strings"
	"sync"
	"time"

	"tamga/gost/kuznyechik"
)

// pinSlots is how many PINs a process remembers. Their keys take 32 KiB of locked memory,
// half of the least limit (RLIMIT_MEMLOCK) that systems are set up with.
const pinSlots = 1000

// pinDigest identifies a PIN, the key that it opens and the mark of that use. It is an HMAC
// under a key of this process.
type pinDigest [sha256.Size]byte

// pinMemory remembers the keys that were derived from right PINs, each for the same time
// after its derivation. The derived keys and the key of the digests are in locked memory, which
// is never swapped out or dumped. No PIN is kept. If all slots are in use, the oldest is given
// up. It is safe for concurrent use. A nil pinMemory remembers nothing.
type pinMemory struct {
	life   time.Duration
	now    func() time.Time
	locked []byte // the key of the digests, then the slots

	mu     sync.Mutex
	found  map[pinDigest]int   // slots in use
	slots  [pinSlots]pinSlot   // a ring: all live equally long, so the oldest ends first
	oldest int                 // of the slots in use
	used   int                 // number of slots in use
	timer  *time.Timer         // wipes the oldest slot at its end
	free   func(memory []byte) // gives the locked memory back; nil after close
}

type pinSlot struct {
	digest pinDigest // zero once drop wiped the slot
	id     string    // of the key that the PIN opens
	until  time.Time
}

// newPINMemory returns a memory that keeps each derived key for life. It fails if the system
// locks no memory.
func newPINMemory(life time.Duration) (*pinMemory, error) {
	locked, free, err := lockedMemory(kuznyechik.KeySize * (1 + pinSlots))
	if err != nil {
		return nil, err
	}
	rand.Read(locked[:kuznyechik.KeySize])
	return &pinMemory{life: life, now: time.Now, locked: locked, free: free, found: map[pinDigest]int{}}, nil
}

// digest returns the digest of a PIN for a key. It covers the sealed record, which changes with
// the PIN. ok is false if nothing may be remembered of the key.
func (m *pinMemory) digest(k Key, pin []byte) (d pinDigest, ok bool) {
	if m == nil || k.Mark == "" || !k.HasPIN || len(pin) == 0 {
		return d, false
	}
	m.mu.Lock()
	if m.free == nil {
		m.mu.Unlock()
		return d, false
	}
	mac := hmac.New(sha256.New, m.locked[:kuznyechik.KeySize])
	m.mu.Unlock()
	mac.Write(lengthPrefixed("tamga PIN", k.ID, k.Suite.Name, string(k.Sealed), k.Mark))
	mac.Write(pin)
	mac.Sum(d[:0])
	return d, true
}

// knows reports whether a digest is remembered.
func (m *pinMemory) knows(d pinDigest) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep()
	_, ok := m.found[d]
	return ok
}

// recall returns a copy of the derived key of a digest, nil if there is none. The caller wipes it.
func (m *pinMemory) recall(d pinDigest) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep()
	i, ok := m.found[d]
	if !ok {
		return nil
	}
	return append(make([]byte, 0, kuznyechik.KeySize), m.key(i)...)
}

// remember keeps the derived key of a digest. A digest that is remembered already keeps its
// end: nothing is remembered for longer than life after a PIN was tried. id names the key for drop.
func (m *pinMemory) remember(d pinDigest, key []byte, id ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.free == nil {
		return
	}
	m.sweep()
	if _, ok := m.found[d]; ok {
		return
	}
	if m.used == pinSlots {
		m.forget()
	}
	i := (m.oldest + m.used) % pinSlots
	copy(m.key(i), key)
	m.slots[i] = pinSlot{d, strings.Join(id, ""), m.now().Add(m.life)}
	m.found[d] = i
	m.used++
	if m.used == 1 {
		m.arm()
	}
}

// key returns the memory of a slot.
func (m *pinMemory) key(i int) []byte {
	return m.locked[(1+i)*kuznyechik.KeySize:][:kuznyechik.KeySize]
}

// sweep wipes what has ended. m.mu is locked.
func (m *pinMemory) sweep() {
	for now := m.now(); m.used > 0 && !now.Before(m.slots[m.oldest].until); {
		m.forget()
	}
}

// drop wipes all that is remembered of a key, whatever its mark: a wrong PIN was tried. The slots
// are used again when they end.
func (m *pinMemory) drop(id string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.free == nil {
		return
	}
	for n := range m.used {
		i := (m.oldest + n) % pinSlots
		if m.slots[i].id != id {
			continue
		}
		clear(m.key(i))
		delete(m.found, m.slots[i].digest)
		m.slots[i].digest, m.slots[i].id = pinDigest{}, ""
	}
}

// forget wipes the oldest slot. m.mu is locked.
func (m *pinMemory) forget() {
	clear(m.key(m.oldest))
	delete(m.found, m.slots[m.oldest].digest)
	m.slots[m.oldest] = pinSlot{}
	m.oldest = (m.oldest + 1) % pinSlots
	m.used--
}

// arm wakes the memory at the end of its oldest slot, so that keys are wiped in a process
// without requests, too. m.mu is locked.
func (m *pinMemory) arm() {
	m.timer = time.AfterFunc(m.slots[m.oldest].until.Sub(m.now()), func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.free == nil {
			return
		}
		if m.sweep(); m.used > 0 {
			m.arm()
		}
	})
}

// close wipes everything and gives the memory back.
func (m *pinMemory) close() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.free == nil {
		return
	}
	if m.timer != nil {
		m.timer.Stop()
	}
	for m.used > 0 {
		m.forget()
	}
	clear(m.locked)
	m.free(m.locked)
	m.locked, m.free = nil, nil
}
