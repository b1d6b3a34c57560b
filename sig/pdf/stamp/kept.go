// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"crypto/sha256"
	"sync"
)

// kept is the cache of converted images.
var kept = &keeper{most: 8 << 20, images: map[imageKey]*graphic{}}

// imageKey identifies an image and everything else that its objects depend on.
type imageKey struct {
	text   [sha256.Size]byte // of its Base64
	ground ground
}

func keyOf(text string, g ground) imageKey { return imageKey{sha256.Sum256([]byte(text)), g} }

// keeper is a cache with a limited number of bytes. Its images are never changed.
type keeper struct {
	most int

	mu     sync.Mutex
	images map[imageKey]*graphic
	order  []imageKey // oldest first
	bytes  int
}

func (k *keeper) get(key imageKey) *graphic {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.images[key]
}

// put adds an image and removes the oldest ones to make space. An image that would take
// more than a quarter of the space is not kept.
func (k *keeper) put(key imageKey, m *graphic) {
	size := m.weight()
	if size > k.most/4 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.images[key] != nil {
		return
	}
	k.images[key] = m
	k.order = append(k.order, key)
	for k.bytes += size; k.bytes > k.most; k.order = k.order[1:] {
		oldest := k.order[0]
		k.bytes -= k.images[oldest].weight()
		delete(k.images, oldest)
	}
}

// weight returns the approximate size of an image in bytes.
func (m *graphic) weight() int {
	n := 500 + len(m.source)
	for _, o := range m.objects {
		n += len(o.Dict) + len(o.Stream)
	}
	return n
}
