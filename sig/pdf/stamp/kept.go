package stamp

import (
	"crypto/sha256"
	"sync"
)

// kept holds the images drawn last, converted.
var kept = &keeper{most: 8 << 20, images: map[imageKey]*graphic{}}

// imageKey names an image and all else that its objects depend on.
type imageKey struct {
	text   [sha256.Size]byte // of its Base64
	ground ground
}

func keyOf(text string, g ground) imageKey { return imageKey{sha256.Sum256([]byte(text)), g} }

// keeper is a store of a bounded number of bytes. Its images are not changed.
type keeper struct {
	most int

	mu     sync.Mutex
	images map[imageKey]*graphic
	order  []imageKey // the oldest first
	bytes  int
}

func (k *keeper) get(key imageKey) *graphic {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.images[key]
}

// put keeps an image, and drops the oldest ones for it. One that would take more
// than a quarter of the room is not kept.
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

// weight is about how many bytes an image takes.
func (m *graphic) weight() int {
	n := 500
	for _, o := range m.objects {
		n += len(o.Dict) + len(o.Stream)
	}
	return n
}
