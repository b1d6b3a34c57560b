// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"errors"
	"fmt"
	"slices"

	"tamga/sig/pdf/stamp"
)

// page is one page of the document.
type page struct {
	id    ref  // zero if it is not an indirect object, which is malformed
	dict  dict // unresolved
	stamp stamp.Page
	node  ref // whose Kids lead to it, zero if that is not an indirect object
	kid   int // index in Kids
}

// inherited are the page attributes that a page may inherit (7.7.3.4).
type inherited struct {
	media, crop [4]float64
	rotate      int
}

func (f *file) catalog() (ref, dict) {
	root := f.trailer.get("Root")
	d, _ := f.resolve(root).(dict)
	id, ok := root.(ref)
	if !ok { // malformed, but such files exist
		return ref{}, d
	}
	return f.current(id), d
}

// current returns the reference with the present generation of the object.
func (f *file) current(id ref) ref {
	if p := f.find(id.num); p.kind == inFile {
		return ref{id.num, p.gen}
	}
	return ref{id.num, 0}
}

// pageCount returns the count in the root of the page tree, at least 0.
func (f *file) pageCount() int {
	_, root := f.catalog()
	n, _ := integer(f.resolve(f.resolveDict(root.get("Pages")).get("Count")))
	return int(min(max(n, 0), maxEntries))
}

// page returns the page with an index from 0. If the counts of the tree are wrong, the
// whole tree is walked.
func (f *file) page(n int) (*page, error) {
	_, root := f.catalog()
	for _, trust := range []bool{true, false} {
		w := &pageWalk{file: f, left: n, trust: trust}
		w.node(root.get("Pages"), inherited{})
		if w.found != nil {
			return w.found, nil
		}
		if err := f.failed(); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("there is no page %d; the document has %d", n+1, f.pageCount())
}

// pageIndex returns the index of a page, -1 if it is not in the tree.
func (f *file) pageIndex(id ref) int {
	_, root := f.catalog()
	w := &pageWalk{file: f, left: -1, want: id.num}
	w.node(root.get("Pages"), inherited{})
	if w.found == nil {
		return -1
	}
	return w.passed
}

// pages calls visit for each page, in the order of the tree and as often as the tree leads to
// it.
func (f *file) pages(visit func(index int, p *page)) error {
	_, root := f.catalog()
	w := &pageWalk{file: f, left: -1, visit: visit}
	w.node(root.get("Pages"), inherited{})
	if err := f.failed(); err != nil {
		return err
	}
	if w.visited > maxVisited {
		return errors.New("the page tree is larger than the limit")
	}
	return nil
}

// pageWalk walks over the pages: it searches for the one after left others, for the one with
// the number want, or visits all of them. A page that the tree leads to twice is two pages,
// as viewers show it.
type pageWalk struct {
	file    *file
	left    int
	want    int
	visit   func(index int, p *page)
	trust   bool // use the counts of nodes
	passed  int
	path    []int // numbers of the nodes from the root on
	kid     int   // index of the present object in the Kids of the last node of path
	visited int
	found   *page
}

func (w *pageWalk) node(o object, in inherited) {
	f := w.file
	id, _ := o.(ref)
	d, ok := f.resolve(o).(dict)
	if w.visited++; !ok || len(w.path) > maxTreeDepth || w.visited > maxVisited || id.num != 0 && slices.Contains(w.path, id.num) {
		return
	}
	in = f.inherit(in, d)
	kids, inner := f.resolve(d.get("Kids")).(array)
	if !inner {
		w.leaf(id, d, in)
		return
	}
	w.path = append(w.path, id.num)
	defer func() { w.path = w.path[:len(w.path)-1] }()
	for i, kid := range kids {
		if w.trust && w.left > 0 {
			w.visited++
			k, _ := f.resolve(kid).(dict)
			if n, ok := integer(f.resolve(k.get("Count"))); ok && k.has("Kids") && n >= 0 && n <= int64(w.left) {
				w.left -= int(n)
				continue
			}
		}
		w.kid = i
		if w.node(kid, in); w.found != nil || w.visited > maxVisited || f.failed() != nil {
			return
		}
	}
}

func (w *pageWalk) leaf(id ref, d dict, in inherited) {
	f := w.file
	if hit := w.left == 0 || w.want != 0 && id.num == w.want; hit || w.visit != nil {
		p := &page{id: f.current(id), dict: d, kid: w.kid, stamp: stamp.Page{MediaBox: in.media, CropBox: in.crop, Rotate: in.rotate}}
		if id.num == 0 {
			p.id = ref{}
		}
		if len(w.path) > 0 && w.path[len(w.path)-1] != 0 {
			p.node = f.current(ref{num: w.path[len(w.path)-1]})
		}
		p.stamp.UserUnit, _ = real(f.resolve(d.get("UserUnit")))
		if hit {
			w.found = p
			return
		}
		w.visit(w.passed, p)
	}
	w.left--
	w.passed++
}

func (f *file) inherit(in inherited, d dict) inherited {
	if box, ok := f.rectangle(d.get("MediaBox")); ok {
		in.media = box
	}
	if box, ok := f.rectangle(d.get("CropBox")); ok {
		in.crop = box
	}
	if n, ok := integer(f.resolve(d.get("Rotate"))); ok {
		in.rotate = int(n % 360)
	}
	return in
}

// rectangle reads an array of four numbers.
func (f *file) rectangle(o object) (r [4]float64, ok bool) {
	a := f.resolveArray(o)
	if len(a) < 4 {
		return r, false
	}
	for i := range r {
		if r[i], ok = real(f.resolve(a[i])); !ok {
			return r, false
		}
	}
	return r, true
}
