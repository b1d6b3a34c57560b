// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"container/list"
	"sync"
)

// cache keeps the most recently used values by key, up to a number of entries and of
// bytes. Its users decide how long a value is valid.
type cache struct {
	mu       sync.Mutex
	entries  map[string]*list.Element
	order    *list.List // of *cached, the most recently used first
	count    int
	capacity int64
	used     int64
}

type cached struct {
	key   string
	value any
	size  int64
}

func newCache(count int, capacity int64) *cache {
	return &cache{entries: map[string]*list.Element{}, order: list.New(), count: count, capacity: capacity}
}

// get returns the value of a key, or nil.
func (c *cache) get(key string) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).value
}

// put keeps a value of size bytes. A value larger than the capacity is not kept.
func (c *cache) put(key string, value any, size int64) {
	size += int64(len(key)) + 256 // the cache's own memory for an entry
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[key]; ok {
		c.remove(e)
	}
	if size > c.capacity {
		return
	}
	c.entries[key] = c.order.PushFront(&cached{key, value, size})
	c.used += size
	for len(c.entries) > c.count || c.used > c.capacity {
		c.remove(c.order.Back())
	}
}

func (c *cache) remove(e *list.Element) {
	x := c.order.Remove(e).(*cached)
	delete(c.entries, x.key)
	c.used -= x.size
}
