// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"context"
	"hash"
	"io"
	"slices"

	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/budget"
)

// Prices in steps, in addition to those of package budget.
const (
	priceObject   = 40     // an object that is looked up
	priceToken    = 8      // a token of an object that is read
	pricePassword = 60_000 // a password that is tried

	// tokenSize is the memory for a token of an object, in bytes.
	tokenSize = 48
	// readingSize is the memory for a token while its object is read: lists grow by doubling.
	readingSize = 96
	// listedSize is the memory for an object in the list of an object stream, in bytes.
	listedSize = 32
	// fieldSize is the memory for a form field, in bytes, besides its dictionary and its name.
	fieldSize = 256
	// textGrowth is how much larger the text of a string is, at most, while it is decoded.
	textGrowth = 5
)

// charge charges steps for reading the document. After it fails, everything reads as
// absent, and the caller sees the error of the budget.
func (f *file) charge(steps int64) bool {
	if f.due += steps; f.due < 1024 {
		return true
	}
	steps, f.due = f.due, 0
	return f.spending.Spend(steps) == nil
}

// keep charges bytes that stay in memory with the file.
func (f *file) keep(bytes int64) bool { return f.spending.Hold(bytes) == nil }

// parsed charges the steps of an object that was read from an offset of the lexer, and gives back
// the memory of reading. The object itself has f.last bytes, which the caller charges if it keeps
// the object.
func (f *file) parsed(l *lexer, begin int64) {
	l.release()
	tokens, length := int64(maxTokens-l.left), max(0, l.offset()-begin)
	f.last = tokenSize*tokens + length
	f.charge(priceToken*tokens + length/8)
}

// forget empties the cache of objects.
func (f *file) forget() {
	clear(f.objects)
	f.spending.Release(f.cached)
	f.cached = 0
}

// forgetStreams empties the cache of object streams.
func (f *file) forgetStreams() {
	clear(f.streams)
	f.spending.Release(f.held)
	f.held = 0
}

// prefixes are the digests of the beginnings of a document up to the holes of its
// signatures. Signatures cover nested beginnings of one file, mostly all but their last
// few kilobytes, so the file is hashed once for all of them.
type prefixes struct {
	document sig.Document
	at       []int64 // ascending, each once
	states   map[*suite.Hash][]hash.Hash
	digests  map[digested]suite.Digest
	spending *budget.Budget
	free     int64 // bytes after holes that are hashed without charge
}

// digested is a digest over the bytes of a signature.
type digested struct {
	hash          *suite.Hash
	from, to, end int64
}

func newPrefixes(document sig.Document, signatures []*signature, b *budget.Budget) *prefixes {
	p := &prefixes{document: document, states: map[*suite.Hash][]hash.Hash{}, digests: map[digested]suite.Digest{}, spending: b, free: document.Size()}
	for _, s := range signatures {
		if !s.broken {
			p.at = append(p.at, s.from)
		}
	}
	slices.Sort(p.at)
	p.at = slices.Compact(p.at)
	return p
}

// upTo returns the state of a hash after the bytes before an offset.
func (p *prefixes) upTo(ctx context.Context, h *suite.Hash, from int64) (hash.Hash, error) {
	states, known := p.states[h]
	if !known {
		// Received bytes are hashed without charge with the first algorithm.
		if last := p.at[len(p.at)-1]; len(p.states) > 0 {
			if err := p.spending.Spend(last); err != nil {
				return nil, err
			}
		}
		running, done := h.New(), int64(0)
		for _, at := range p.at {
			if err := sig.HashSection(ctx, running, p.document, done, at-done); err != nil {
				return nil, err
			}
			state, err := cloned(running)
			if err != nil {
				return nil, err
			}
			states, done = append(states, state), at
		}
		p.states[h] = states
	}
	i, ok := slices.BinarySearch(p.at, from)
	if !ok {
		return nil, io.ErrUnexpectedEOF // no signature has its hole there
	}
	return cloned(states[i])
}

// cloned returns a copy of the state of a hash.
func cloned(h hash.Hash) (hash.Hash, error) { return h.(hash.Cloner).Clone() }

// digest returns the digest of the bytes that a signature covers.
func (p *prefixes) digest(ctx context.Context, h *suite.Hash, c covered) (suite.Digest, error) {
	key := digested{h, c.from, c.to, c.end}
	if d, ok := p.digests[key]; ok {
		return d, nil
	}
	state, err := p.upTo(ctx, h, c.from)
	if err != nil {
		return suite.Digest{}, err
	}
	rest := c.end - c.to
	if p.free -= rest; p.free < 0 {
		if err := p.spending.Spend(rest); err != nil {
			return suite.Digest{}, err
		}
	}
	if err := sig.HashSection(ctx, state, p.document, c.to, rest); err != nil {
		return suite.Digest{}, err
	}
	d := suite.Digest{Hash: h, Sum: state.Sum(nil)}
	p.digests[key] = d
	return d, nil
}

// Digests implements sig.Digester.
func (c covered) Digests(ctx context.Context, hs ...*suite.Hash) ([]suite.Digest, error) {
	out := make([]suite.Digest, len(hs))
	for i, h := range hs {
		var err error
		if out[i], err = c.prefixes.digest(ctx, h, c); err != nil {
			return nil, err
		}
	}
	return out, nil
}
