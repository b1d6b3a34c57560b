// SPDX-License-Identifier: Apache-2.0

package xmltree

import (
	"bytes"
	"hash/maphash"
	"sync"
)

// qname is a name as written, with any prefix. A tree has few different names. Looking one up is
// a hash and a comparison, and each name is checked only once.
type qname struct {
	start, length uint32
	prefixLength  uint32
	prefix        uint32 // number among the prefixes
	local         uint32 // number of the local part
	// The last resolution, which is nearly always that of the next use too.
	uri, name uint32
}

// table finds bytes of the text among entries. It uses open addressing and a seeded hash, so that
// no document can make it slow.
type table struct {
	seed  maphash.Seed
	slots []slot
	count int
}

type slot struct {
	hash  uint32
	entry uint32 // number + 1
}

// fewSlots is the size of a new table.
const fewSlots = 256

// find returns the slot of key, which is empty if the table does not have the key. span returns
// the bytes of an entry.
func (t *table) find(key []byte, span func(entry uint32) []byte) (*slot, uint32) {
	h := uint32(maphash.Bytes(t.seed, key))
	mask := uint32(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.entry == 0 || s.hash == h && bytes.Equal(span(s.entry-1), key) {
			return s, h
		}
	}
}

// put fills the empty slot that find returned. It grows the table when it is three quarters full.
func (t *table) put(s *slot, hash, entry uint32) {
	*s = slot{hash, entry + 1}
	t.count++
	if 4*t.count < 3*len(t.slots) {
		return
	}
	old := t.slots
	t.slots = make([]slot, 2*len(old))
	mask := uint32(len(t.slots) - 1)
	for _, s := range old {
		if s.entry == 0 {
			continue
		}
		i := s.hash & mask
		for t.slots[i].entry != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = s
	}
}

// names holds the names of the tree while it is parsed. The tree does not refer to it.
type names struct {
	qnames   table
	entries  []qname
	locals   table
	spans    []Span // spans of the local parts
	resolved map[uint64]uint32
	prefixes map[string]uint32
	uris     map[string]uint32
}

// tables are the names of earlier trees, emptied: for a small document they took more time and
// memory than its nodes.
var tables = sync.Pool{New: func() any {
	n := &names{
		qnames: table{slots: make([]slot, fewSlots)}, locals: table{slots: make([]slot, fewSlots)},
		resolved: map[uint64]uint32{}, prefixes: map[string]uint32{}, uris: map[string]uint32{},
	}
	n.empty()
	return n
}}

// putBack empties names for another tree. Names of a document with many are left to the garbage
// collector.
func (n *names) putBack() {
	if len(n.qnames.slots) > fewSlots || len(n.locals.slots) > fewSlots || len(n.prefixes)+len(n.uris)+len(n.resolved) > fewSlots {
		return
	}
	n.empty()
	tables.Put(n)
}

// empty removes all names except those that every tree has, and draws another seed.
func (n *names) empty() {
	seed := maphash.MakeSeed()
	for _, t := range []*table{&n.qnames, &n.locals} {
		t.seed, t.count = seed, 0
		clear(t.slots)
	}
	n.entries, n.spans = n.entries[:0], n.spans[:0]
	clear(n.resolved)
	clear(n.prefixes)
	clear(n.uris)
	n.prefixes[""], n.prefixes["xml"], n.prefixes["xmlns"] = prefixNone, prefixXML, prefixXMLNS
	n.uris[""], n.uris[NamespaceXML], n.uris[NamespaceXMLNS] = uriNone, uriXML, uriXMLNS
}

// Numbers of the prefixes that every tree has.
const (
	prefixNone  = 0
	prefixXML   = 1
	prefixXMLNS = 2
)

// qname returns the number of the name text[start:end] and adds it if it is new.
func (p *parser) qname(start, end int) (uint32, error) {
	key := p.s[start:end]
	s, h := p.names.qnames.find(key, func(e uint32) []byte {
		q := &p.names.entries[e]
		return p.s[q.start : q.start+q.length]
	})
	if s.entry != 0 {
		return s.entry - 1, nil
	}
	if len(key) == 0 {
		return 0, p.fail(start, "a name is missing here")
	}
	colon := bytes.IndexByte(key, ':')
	local := key[colon+1:]
	if colon == 0 || !isNCName(local) || colon > 0 && !isNCName(key[:colon]) {
		return 0, p.fail(start, "%.40q is not a name: a name has letters, digits, . - _ and at most one colon inside, and does not begin with a digit", key)
	}
	if len(p.names.entries) >= p.o.Names {
		return 0, p.limit(start, "different names", p.o.Names)
	}
	q := qname{start: uint32(start), length: uint32(len(key)), uri: ^uint32(0)}
	if colon > 0 {
		q.prefixLength = uint32(colon)
		var err error
		if q.prefix, err = p.prefix(key[:colon], start); err != nil {
			return 0, err
		}
	}
	switch {
	case q.prefix == prefixXMLNS, string(key) == "xmlns":
		// A declaration: its local part is the number of the declared prefix.
		declares := local
		if q.prefix == prefixNone {
			declares = nil
		}
		var err error
		if q.local, err = p.prefix(declares, start); err != nil {
			return 0, err
		}
	default:
		q.local = p.local(end-len(local), end)
	}
	if err := p.t.budget.Hold(nameSize); err != nil {
		return 0, err
	}
	e := uint32(len(p.names.entries))
	p.names.entries = append(p.names.entries, q)
	p.names.qnames.put(s, h, e)
	return e, nil
}

// local returns the number of a local part and adds it if it is new.
func (p *parser) local(start, end int) uint32 {
	s, h := p.names.locals.find(p.s[start:end], func(e uint32) []byte {
		sp := p.names.spans[e]
		return p.s[sp.Start:sp.End]
	})
	if s.entry == 0 {
		p.names.spans = append(p.names.spans, Span{start, end})
		e := uint32(len(p.names.spans) - 1)
		p.names.locals.put(s, h, e)
		return e
	}
	return s.entry - 1
}

// prefix returns the number of a prefix and adds it if it is new.
func (p *parser) prefix(b []byte, at int) (uint32, error) {
	if n, ok := p.names.prefixes[string(b)]; ok {
		return n, nil
	}
	n := uint32(len(p.t.prefixes))
	if int(n) >= p.o.Namespaces {
		return 0, p.limit(at, "different prefixes", p.o.Namespaces)
	}
	p.names.prefixes[string(b)] = n
	p.t.prefixes = append(p.t.prefixes, string(b))
	p.bound = append(p.bound, unbound)
	return n, nil
}

// uri returns the number of a namespace name and adds it if it is new.
func (p *parser) uri(s string, at int) (uint32, error) {
	if n, ok := p.names.uris[s]; ok {
		return n, nil
	}
	n := uint32(len(p.t.uris))
	if int(n) >= p.o.Namespaces {
		return 0, p.limit(at, "different namespace names", p.o.Namespaces)
	}
	if len(s) > maxSpace {
		return 0, failAt(p.s, at, ErrLimit, "a namespace name has %d bytes; the limit is %d", len(s), maxSpace)
	}
	p.names.uris[s] = n
	p.t.uris = append(p.t.uris, s)
	p.t.relative = append(p.t.relative, isRelative(s))
	return n, nil
}

// resolve returns the number of the name q in the namespace uri.
func (p *parser) resolve(q, uri uint32, at int) (uint32, error) {
	e := &p.names.entries[q]
	if e.uri == uri {
		return e.name, nil
	}
	key := uint64(q)<<32 | uint64(uri)
	n, ok := p.names.resolved[key]
	if !ok {
		if len(p.t.names) >= p.o.Names {
			return 0, p.limit(at, "different names", p.o.Names)
		}
		if err := p.t.budget.Hold(nameSize); err != nil {
			return 0, err
		}
		n = uint32(len(p.t.names))
		p.t.names = append(p.t.names, name{e.start, e.length, e.prefix, e.local, uri, e.prefixLength})
		p.names.resolved[key] = n
	}
	e.uri, e.name = uri, n
	return n, nil
}

// isRelative reports whether a namespace name is a relative reference, which has no scheme (RFC
// 3986, 4.2).
func isRelative(uri string) bool {
	for i, c := range []byte(uri) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		switch {
		case c == ':' && i > 0:
			return false
		case letter, i > 0 && (c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'):
		default:
			return true
		}
	}
	return uri != ""
}
