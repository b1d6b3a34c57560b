// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"bytes"
	"sync"
	"sync/atomic"

	"tamga/pki/x509gost"
)

// cacheSize limits the parsed certificates in memory, a few KiB each.
const cacheSize = 4096

// cache keeps parsed certificates and the last result on each. Other processes cannot
// make an entry wrong: the stored bytes of a certificate are compared with the entry each
// time, and a result has the evidence that it depends on. The zero cache is ready.
type cache struct {
	mu      sync.Mutex
	entries map[int64]*entry
}

// entry is one certificate.
type entry struct {
	id     int64
	x509   *x509gost.Certificate
	judged atomic.Pointer[cachedResult] // nil: not checked yet
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
		delete(c.entries, other)
	}
	c.entries[id] = e
	return e, nil
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
