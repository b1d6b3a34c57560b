// SPDX-License-Identifier: Apache-2.0

package ooxml

import (
	"context"
	"slices"
	"strings"

	"tamga/pki/suite"
)

// reference is one reference of a manifest that is being made.
type reference struct {
	uri string
	// ids are the signed relationships, in the order of their part. It is nil for a part
	// that is signed as a whole.
	ids    []string
	digest []byte
}

// references returns what a new signature signs: parts ordered by name, then
// relationships parts ordered by name.
func (d *document) references(ctx context.Context, h *suite.Hash) ([]reference, error) {
	var parts []*entry
	var out []reference
	seen := map[*entry]bool{}
	for _, source := range d.sources {
		if source != "" && d.isOfSignatures(source) {
			continue
		}
		rels := d.rels[source]
		keep := map[string]bool{}
		var ids []string
		for i := range rels.list {
			r := &rels.list[i]
			o := d.obligationOf(r)
			if o.duty == neverSigned {
				continue
			}
			keep[r.id] = true
			ids = append(ids, r.id)
			if o.part != nil && !seen[o.part] {
				seen[o.part] = true
				parts = append(parts, o.part)
			}
		}
		if ids == nil {
			continue
		}
		data := rels.transformed(func(r *relationship) bool { return keep[r.id] })
		out = append(out, reference{uri: referenceURI(rels.name, d.types.of(key(rels.name))), ids: ids, digest: h.Digest(data).Sum})
	}
	jobs := make([]*digestJob, len(parts))
	for i, e := range parts {
		jobs[i] = &digestJob{entry: e, hashes: []*suite.Hash{h}}
	}
	if err := d.digestAll(ctx, jobs, workers); err != nil {
		return nil, err
	}
	whole := make([]reference, len(parts))
	for i, j := range jobs {
		if j.err != nil {
			return nil, j.err
		}
		whole[i] = reference{uri: referenceURI(j.entry.Name, d.types.of(j.entry.key)), digest: j.sums[0]}
	}
	byURI := func(x, y reference) int { return strings.Compare(x.uri, y.uri) }
	slices.SortFunc(whole, byURI)
	slices.SortFunc(out, byURI)
	return append(whole, out...), nil
}
