// SPDX-License-Identifier: Apache-2.0

package ooxml

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"tamga/sig"
)

// readBack reads a result before it leaves, as another program does: the archive, its
// content types, and the path from the package to the new signature. Unchanged parts are
// compared by size and checksum and are not decompressed.
func (a *archive) readBack(ctx context.Context, result sig.Document, changes []change, part string) error {
	d, err := index(ctx, result)
	if err == nil {
		err = a.compare(ctx, d, changes)
	}
	if err == nil {
		err = d.leadsTo(ctx, part)
	}
	if err == nil || isDocument(err) || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("ooxml: the result cannot be read again: %w", err)
}

// compare checks that the result has the changes and is otherwise unchanged.
func (a *archive) compare(ctx context.Context, d *document, changes []change) error {
	changed := make(map[string]bool, len(changes))
	for _, c := range changes {
		changed[c.Name] = true
		e := d.zip.Find(c.Name)
		if e == nil {
			return fmt.Errorf("the part %s is missing", quote(c.Name))
		}
		content, err := d.content(ctx, e, int64(len(c.Content)))
		if err != nil {
			return err
		}
		if !bytes.Equal(content, c.Content) {
			return fmt.Errorf("the part %s differs from what was written", quote(c.Name))
		}
	}
	names := make(map[string]*entry, len(d.entries))
	for i := range d.entries {
		names[d.entries[i].Name] = &d.entries[i]
	}
	for _, e := range a.entries {
		if is := names[e.Name]; !changed[e.Name] && (is == nil || is.Size != e.Size || is.CRC32 != e.CRC32 || is.Method != e.Method) {
			return fmt.Errorf("the part %s has changed", quote(e.Name))
		}
	}
	return nil
}

// leadsTo follows the relationships of the package to the origin of signatures, and those
// of the origin to a signature part.
func (d *document) leadsTo(ctx context.Context, part string) error {
	follow := func(source string, is func(*relationship) bool) error {
		e := d.byKey[key(relationshipsOf(source))]
		if e == nil || d.types.of(e.key) != typeRelationships {
			return fmt.Errorf("%s has no relationships", quote("/"+source))
		}
		data, err := d.xml(ctx, e)
		if err != nil {
			return err
		}
		rels, err := parseRelationships(d.budget, e.Name, source, data)
		if err != nil {
			return err
		}
		d.rels[key(source)] = rels
		if !slices.ContainsFunc(rels.list, func(r relationship) bool { return is(&r) }) {
			return fmt.Errorf("the relationships of %s do not lead to the signature", quote("/"+source))
		}
		return nil
	}
	if err := follow("", func(r *relationship) bool { return r.kind == relOrigin }); err != nil {
		return err
	}
	if err := d.findOrigin(); err != nil {
		return err
	}
	if d.byKey[d.originKeys[0]] == nil || d.types.of(d.originKeys[0]) != typeOrigin {
		return errors.New("the origin of signatures is missing or of another content type")
	}
	if err := follow(d.origin, func(r *relationship) bool { return r.kind == relSignature && r.part == key(part) }); err != nil {
		return err
	}
	if d.types.of(key(part)) != typeSignature {
		return errors.New("the signature has another content type")
	}
	return nil
}
