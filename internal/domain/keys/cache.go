package keys

import (
	"bytes"
	"sync"
	"sync/atomic"

	"tamga/pki/x509gost"
)

// cacheSize bounds the certificates kept parsed, a few KiB each.
const cacheSize = 4096

// cache keeps parsed certificates and the last verdict on each. A certificate
// never changes, and a verdict carries the evidence it holds for, so another
// process cannot make an entry wrong. The zero cache is ready.
type cache struct {
	mu      sync.Mutex
	entries map[int64]*entry
}

// entry is one certificate.
type entry struct {
	x509   *x509gost.Certificate
	judged atomic.Pointer[judgement] // nil: not judged yet
}

// entry finds the parsed form of a certificate by its number. The stored bytes
// decide: a number that stands for other bytes than before is parsed anew.
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
	e = &entry{x509: cert}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = map[int64]*entry{}
	}
	for other := range c.entries { // any one makes room: the order of a map is random
		if len(c.entries) < cacheSize {
			break
		}
		delete(c.entries, other)
	}
	c.entries[id] = e
	return e, nil
}

// find returns the entry of a certificate while it is kept.
func (c *cache) find(id int64, cert *x509gost.Certificate) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[id]; e != nil && e.x509 == cert {
		return e
	}
	return nil
}
