// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"hash"
	"io"
	"strings"

	"tamga/pki/suite"
	"tamga/sig/budget"
	"tamga/sig/xmltree"
)

// digester applies the transforms of one reference.
type digester struct {
	ctx     context.Context
	sig     *signature
	ref     *reference
	options xmltree.Options
	// final is the canonical form of a node set at the end, by default Canonical XML 1.0 (XMLDSig, 4.4.3.2).
	final xmltree.Method
	// selected is the last node set that digest worked on.
	selected *xmltree.NodeSet
}

// budget returns the budget of the document.
func (d *digester) budget() *budget.Budget { return d.sig.tree.Budget() }

// target is the node that the URI of a reference refers to.
type target struct {
	node     xmltree.Node // Document for the whole document
	comments bool         // whether comments belong to it
}

// uriID returns the identifier in a URI, "" for the whole document. comments reports
// whether comments belong to the target (XMLDSig, 4.4.3.3).
func uriID(uri string) (id string, comments, ok bool) {
	switch {
	case uri == "":
		return "", false, true
	case uri == "#xpointer(/)":
		return "", true, true
	}
	fragment, ok := strings.CutPrefix(uri, "#")
	if !ok {
		return "", false, false
	}
	if inner, ok := strings.CutPrefix(fragment, "xpointer("); ok {
		inner, ok = strings.CutSuffix(inner, ")")
		if !ok || len(inner) < len("id('')") || !strings.HasPrefix(inner, "id(") || !strings.HasSuffix(inner, ")") {
			return "", false, false
		}
		quoted := inner[3 : len(inner)-1]
		q := quoted[0]
		id := quoted[1 : len(quoted)-1]
		if q != '\'' && q != '"' || quoted[len(quoted)-1] != q || id == "" || strings.ContainsAny(id, `'"`) {
			return "", false, false
		}
		return id, true, true
	}
	return fragment, false, fragment != "" && !strings.ContainsAny(fragment, "()'\"")
}

// resolver finds the targets of references. It searches for all identifiers in one pass.
type resolver struct {
	tree   *xmltree.Tree
	ids    map[string][]xmltree.Node
	rivals map[string][]xmltree.Node // as of xmltree.Tree.Rivals
}

// newResolver searches for the identifiers of all references and for those in more.
func newResolver(t *xmltree.Tree, sigs []*signature, more ...string) *resolver {
	ids := more
	for _, s := range sigs {
		for _, r := range s.refs {
			if id, _, ok := uriID(r.uri); ok && id != "" {
				ids = append(ids, id)
			}
		}
	}
	return &resolver{t, t.ByIDs(ids...), t.Rivals(ids...)}
}

func (v *resolver) resolve(r *reference) (target, error) {
	id, comments, ok := uriID(r.uri)
	switch {
	case !ok:
		return target{}, flawAt(v.tree, r.node, codeRemote, `the reference URI=%s leaves the document or is no plain identifier; URI="", "#id", "#xpointer(/)" or "#xpointer(id('id'))" expected`, quote(r.uri))
	case id == "":
		return target{xmltree.Document, comments}, nil
	}
	found, rivals := v.ids[id], v.rivals[id]
	switch {
	case len(found) == 0:
		return target{}, flawAt(v.tree, r.node, codeMissing, "the reference URI=%s has no target: no element has that identifier in an attribute Id, ID, id, xml:id or wsu:Id", quote(r.uri))
	case len(rivals) > 1:
		return target{}, flawAt(v.tree, r.node, codeNotUnique, "the reference URI=%s is ambiguous: %d elements have that identifier, the second is %s", quote(r.uri), len(rivals), v.path(rivals[1]))
	}
	return target{found[0], comments}, nil
}

// digest returns the digest of the target after its transforms, and how many bytes were
// digested. The hash of the reference must be known.
func (d *digester) digest(to target) (suite.Digest, int64, error) {
	if err := d.ctx.Err(); err != nil {
		return suite.Digest{}, 0, err
	}
	sum := &counter{Hash: d.ref.hash.New()}
	err := d.write(to, sum)
	if err != nil {
		return suite.Digest{}, 0, d.explain(err)
	}
	return suite.Digest{Hash: d.ref.hash, Sum: sum.Sum(nil)}, sum.n, nil
}

type counter struct {
	hash.Hash
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return c.Hash.Write(p)
}

// explain turns an error of the tree into a flaw.
func (d *digester) explain(err error) error {
	var f *flaw
	switch {
	case errors.As(err, &f), d.ctx.Err() != nil:
		return err
	case d.budget().Err() != nil:
		return d.budget().Err()
	}
	return flawAt(d.sig.tree, d.ref.node, codeFailed, "the transforms of the reference cannot be applied: %s", err)
}

// write writes the bytes to digest.
func (d *digester) write(to target, w io.Writer) error {
	// Memory for one reference is free again afterwards.
	held := d.budget().Held()
	defer func() { d.budget().Release(d.budget().Held() - held) }()
	m := material{set: d.sig.tree.Subtree(to.node)}
	for _, tr := range d.ref.transforms {
		// Only a transform that keeps comments has a different result if they are
		// present.
		if tr.comments && !to.comments {
			m.set.RemoveComments()
			break
		}
	}
	for _, tr := range d.ref.transforms {
		var err error
		if m, err = tr.apply(d, m); err != nil {
			return err
		}
		if m.set != nil {
			d.selected = m.set
		}
	}
	if m.set != nil {
		if d.final.Comments && !to.comments {
			m.set.RemoveComments()
		}
		m.finish = func(w io.Writer) error { return m.set.Canonicalize(w, d.final) }
	}
	return d.emit(m, w)
}

// emit writes the bytes of a material.
func (d *digester) emit(m material, w io.Writer) error {
	if m.finish == nil {
		_, err := w.Write(m.data)
		return err
	}
	b := bufio.NewWriterSize(w, 16<<10)
	if err := m.finish(b); err != nil {
		return err
	}
	return b.Flush()
}

// holder collects bytes and counts them against the memory budget. A buffer grows to at
// most twice its content.
type holder struct {
	bytes.Buffer
	budget *budget.Budget
}

func (h *holder) Write(p []byte) (int, error) {
	if err := h.budget.Hold(2 * int64(len(p))); err != nil {
		return 0, err
	}
	return h.Buffer.Write(p)
}

// collect returns the bytes of a material that is not a node set.
func (d *digester) collect(m material) ([]byte, error) {
	if m.finish == nil {
		return m.data, nil
	}
	b := holder{budget: d.budget()}
	err := d.emit(m, &b)
	return b.Bytes(), err
}

// nodes returns the node set of a material. Bytes are parsed as a document (XMLDSig,
// 4.4.3.2).
func (d *digester) nodes(m material) (*xmltree.NodeSet, error) {
	if m.set != nil {
		return m.set, nil
	}
	data, err := d.collect(m)
	if err != nil {
		return nil, err
	}
	options := d.options
	options.Budget = d.budget()
	t, err := xmltree.Parse(data, options)
	if err != nil {
		return nil, flawAt(d.sig.tree, d.ref.node, codeFailed, "a transform needs XML, and the one before it left something else: %s", err)
	}
	return t.All(), nil
}
