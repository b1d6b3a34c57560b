// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"bytes"
	"crypto"
	"sync"
	"sync/atomic"

	"tamga/gost/gost3410"
	"tamga/pki/x509gost"
)

// cacheSize limits the parsed certificates in memory, a few KiB each.
const cacheSize = 4096

// cache keeps parsed certificates and the last verdict on each. Other processes cannot
// make an entry wrong: the stored bytes of a certificate are compared with the entry each
// time, and a verdict has the evidence that it depends on. The zero cache is ready.
type cache struct {
	mu      sync.Mutex
	entries map[int64]*entry
	tables  int // entries with tabled set
}

// entry is one certificate.
type entry struct {
	id     int64
	x509   *x509gost.Certificate
	judged atomic.Pointer[cachedVerdict] // nil: not checked yet
	checks atomic.Int32                  // number of values verified with it
	table  atomic.Pointer[gost3410.PublicKey]
	tabled bool // table is there or being made; guarded by cache.mu
}

// A key in frequent use gets a table of its own, of 86 to 516 KiB. It is worth it after
// about 30 verifications.
const (
	tableAfter = 32
	tableMost  = 128 // tables kept at a time, at most 65 MiB
)

// key returns the public key to verify with.
func (e *entry) key(c *cache) crypto.PublicKey {
	if t := e.table.Load(); t != nil {
		return t
	}
	public, ok := e.x509.PublicKey.(*gost3410.PublicKey)
	if !ok || e.checks.Add(1) != tableAfter { // exactly one call makes the table
		return e.x509.PublicKey
	}
	if !c.reserve(e) {
		e.checks.Store(0) // a table may be free by then
		return public
	}
	t := public.Precompute()
	e.table.Store(t)
	return t
}

// reserve takes one of the tableMost tables for an entry.
func (c *cache) reserve(e *entry) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tables == tableMost || c.entries[e.id] != e {
		return false
	}
	c.tables++
	e.tabled = true
	return true
}

// entry finds the parsed form of a certificate by its number. If the stored bytes are not
// those of the cached entry, they are parsed again.
func (c *cache) entry(id int64, der []byte) (*entry, error) {
	c.mu.Lock()
	e := c.entries[id]
	c.mu.Unlock()
	if e != nil && bytes.Equal(e.x509.Raw, der) {
		return e, nil
	}
	cert, err := x509gost.ParseCertificate(bytes.Clone(der))
	if err != nil {
		return nil, err
	}
	e = &entry{id: id, x509: cert}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = map[int64]*entry{}
	}
	for other := range c.entries { // removes a random entry: the order of a map is random
		if len(c.entries) < cacheSize {
			break
		}
		c.remove(other)
	}
	c.remove(id)
	c.entries[id] = e
	return e, nil
}

// remove forgets an entry and its table.
func (c *cache) remove(id int64) {
	if e := c.entries[id]; e != nil && e.tabled {
		c.tables--
	}
	delete(c.entries, id)
}

// find returns the cached entry of a certificate.
func (c *cache) find(id int64, cert *x509gost.Certificate) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[id]; e != nil && e.x509 == cert {
		return e
	}
	return nil
}
