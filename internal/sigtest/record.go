// SPDX-License-Identifier: Apache-2.0

package sigtest

import (
	"bytes"
	"context"
	"encoding/asn1"
	"slices"
	"testing"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/suite"
)

// Record makes evidence records (RFC 4998).
type Record struct {
	chains [][]byte // complete ones
	stamps [][]byte // of the last chain
	last   []byte   // token
	hash   *suite.Hash
}

func digestOf(h *suite.Hash, list [][]byte) []byte {
	if len(list) == 1 {
		return list[0]
	}
	list = slices.Clone(list)
	slices.SortFunc(list, bytes.Compare)
	return h.Digest(slices.Concat(list...)).Sum
}

// Add appends a time stamp over digests, which is the first list of its tree, beside others.
func (r *Record) Add(t testing.TB, by *Services, h *suite.Hash, digests [][]byte, others ...[]byte) {
	t.Helper()
	root := digestOf(h, digests)
	if len(others) > 0 {
		root = digestOf(h, append(slices.Clone(others), root))
	}
	v, err := by.TimeStamp(context.Background(), "", suite.Digest{Hash: h, Sum: root})
	if err != nil {
		t.Fatal(err)
	}
	r.last, r.hash = v.Token().Raw, h
	var b cryptobyte.Builder
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1(cbasn1.Tag(0).ContextSpecific().Constructed(), func(b *cryptobyte.Builder) { b.AddASN1ObjectIdentifier(asn1.ObjectIdentifier(h.OID)) })
		b.AddASN1(cbasn1.Tag(2).ContextSpecific().Constructed(), func(b *cryptobyte.Builder) {
			for _, list := range [][][]byte{digests, others} {
				if len(list) > 0 {
					b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
						for _, sum := range list {
							b.AddASN1OctetString(sum)
						}
					})
				}
			}
		})
		b.AddBytes(r.last)
	})
	r.stamps = append(r.stamps, b.BytesOrPanic())
}

// Renew appends a time stamp over the last one.
func (r *Record) Renew(t testing.TB, by *Services) {
	t.Helper()
	r.Add(t, by, r.hash, [][]byte{r.hash.Digest(r.last).Sum})
}

// NewChain begins a chain with another algorithm over digests of the same documents by it.
func (r *Record) NewChain(t testing.TB, by *Services, h *suite.Hash, digests [][]byte) {
	t.Helper()
	r.close()
	earlier := h.Digest(sequenceOf(r.chains)).Sum
	covered := make([][]byte, len(digests))
	for i, d := range digests {
		covered[i] = h.Digest(slices.Concat(d, earlier)).Sum
	}
	r.Add(t, by, h, covered)
}

func sequenceOf(list [][]byte) []byte {
	var b cryptobyte.Builder
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		for _, one := range list {
			b.AddBytes(one)
		}
	})
	return b.BytesOrPanic()
}

func (r *Record) close() {
	if r.stamps != nil {
		r.chains, r.stamps = append(r.chains, sequenceOf(r.stamps)), nil
	}
}

// DER returns the record.
func (r *Record) DER() []byte {
	r.close()
	var b cryptobyte.Builder
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1Int64(1)
		b.AddASN1(cbasn1.SEQUENCE, func(*cryptobyte.Builder) {})
		b.AddBytes(sequenceOf(r.chains))
	})
	return b.BytesOrPanic()
}
