// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"crypto/sha256"
	"sync"
)

// Room reserved in Contents, in bytes of the message. A message that needs more causes an
// ErrRoom.
const (
	// roomMessage is for headers, attributes and the value of the longest key.
	// Certificates are not included.
	roomMessage = 2 << 10
	maxRoom     = 64 << 20
	// roomStamp is for a time stamp of the document by an unknown service.
	roomStamp = 12 << 10
)

// roomEvidence is for time stamps and revocation data if no size is known from an earlier
// signature: an estimate for callers that can prepare again, a bound for others.
var roomEvidence = map[string]struct{ estimate, bound int }{
	formatCAdEST: {8 << 10, 16 << 10},
	formatCAdES:  {40 << 10, 128 << 10},
	formatCAdESA: {40 << 10, 128 << 10},
}

// sizes remembers the size of the evidence of earlier signatures. The zero value is
// ready. It is safe for concurrent use.
type sizes struct {
	mu   sync.Mutex
	seen map[string]int
}

// maxSizes bounds the memory of sizes. There are few time-stamp services and authorities.
const maxSizes = 1 << 10

// find returns the size for a key and reports whether it is known.
func (s *sizes) find(key string) (n int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok = s.seen[key]
	return n, ok
}

// note remembers a size. A smaller one lowers the remembered size by an eighth, so that
// one large list does not make all later documents larger.
func (s *sizes) note(key string, n int) {
	if key == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil || len(s.seen) >= maxSizes {
		s.seen = map[string]int{}
	}
	s.seen[key] = max(n, s.seen[key]-s.seen[key]/8)
}

// room returns how many bytes to reserve for the message. fixed is the part of it that
// does not depend on evidence. key names the size of the evidence in sizes; if it is
// empty, the size is not remembered.
func (m *maker) room() (n, fixed int, key string) {
	if m.stamping {
		n = roomStamp
		if seen, known := m.format.sizes.find(m.stampKey()); known {
			n = seen + seen/8 + 1<<10
		}
		return min(max(n, m.job.Room), maxRoom), 0, ""
	}
	fixed = roomMessage + len(m.job.Certificate.Raw) + 2*len(m.job.Certificate.RawIssuer)
	if m.params.chain {
		for _, c := range m.job.Chain {
			fixed += len(c.Raw)
		}
	}
	n = fixed
	if evidence, ok := roomEvidence[m.params.format]; ok {
		key = sizeKey(m)
		seen, known := m.format.sizes.find(key)
		switch {
		case known && m.job.Again:
			n += seen + seen/8 + 1<<10
		case known:
			n += seen + seen/4 + 4<<10
		case m.job.Again:
			n += evidence.estimate
		default:
			n += evidence.bound
		}
	}
	return min(max(n, m.job.Room), maxRoom), fixed, key
}

// stampKey is sizeKey for time stamps of the document.
func (m *maker) stampKey() string { return "stamp\x00" + m.params.address }

// sizeKey names what the size of the evidence depends on: the format, the time-stamp
// service and the authority, by its certificate. The authority's name is not enough,
// because anyone can issue a certificate with that name.
func sizeKey(m *maker) string {
	if len(m.job.Chain) == 0 {
		return ""
	}
	h := sha256.New()
	h.Write([]byte(m.params.format + "\x00" + m.params.address + "\x00"))
	h.Write(m.job.Chain[0].Raw)
	return string(h.Sum(nil))
}
