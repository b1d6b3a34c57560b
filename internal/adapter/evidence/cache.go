package evidence

import (
	"container/list"
	"sync"
)

// cache keeps values by key, the most recently used, up to a number of entries
// and of octets. What a value is worth and until when is for its user to judge.
type cache struct {
	mu       sync.Mutex
	entries  map[string]*list.Element
	order    *list.List // of *cached, the most recently used in front
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

// put keeps a value of size octets; one that is larger than everything there is
// room for is not kept.
func (c *cache) put(key string, value any, size int64) {
	size += int64(len(key)) + 256 // what the books take
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
