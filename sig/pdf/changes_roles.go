// SPDX-License-Identifier: Apache-2.0

package pdf

import "slices"

// roles is a set of the purposes that an object has. An object has every role that a path
// from the catalog gives it, in the signed document or with the later revisions.
type roles uint16

const (
	roleCatalog roles = 1 << iota
	rolePages         // a page, or a node or array of the page tree
	roleForm          // the form dictionary
	roleFields        // the array of fields
	roleKind          // a dictionary of the form's resources of one kind
	roleKinds         // the dictionary of all resources of the form
	roleField         // a field or its widget
	roleList          // an array of annotations
	roleAnnot         // an annotation that is not a field
	roleTags          // the structure tree (14.7)
	roleNumbers       // its parent tree
	roleStore         // validation data, and the version of the format
	roleMetadata
	roleFilled // value or appearance of a field that was filled later
	roleDrawn  // contents and resources of pages, and of appearances that were not filled
	roleOther  // anything else: destinations, actions, names
)

// walked are the roles that a walk propagates, in the order in which they are walked: later ones
// stop at the objects of some earlier ones.
var walked = []roles{rolePages, roleField, roleList, roleAnnot, roleTags, roleNumbers, roleStore, roleMetadata, roleFilled, roleDrawn, roleOther}

// label is the kind of key under which an object refers to another one.
type label uint8

const (
	labelOther label = iota
	labelItem        // an element of an array that is an object of its own
	labelKids
	labelParent
	labelAnnots
	labelShown // appearance of a field or annotation
	labelValue
	labelPage
	labelMetadata
	labelAction
	labelContent // objects that elements of the structure tree refer to
	labelTree
)

var labels = map[name]label{
	"Kids": labelKids, "Parent": labelParent, "Annots": labelAnnots, "V": labelValue, "P": labelPage,
	"AP": labelShown, "AS": labelShown, "MK": labelShown, "RV": labelShown, "I": labelShown,
	"Metadata": labelMetadata, "PieceInfo": labelMetadata, "LastModified": labelMetadata,
	"A": labelAction, "AA": labelAction, "B": labelAction,
	"Pg": labelContent, "Obj": labelContent, "Stm": labelContent, "ParentTree": labelTree,
}

// edge is a reference from one object to another: the number and the label.
type edge int64

func (e edge) target() int  { return int(e >> 4) }
func (e edge) label() label { return label(e & 15) }

// node is what the walk needs of an object.
type node struct {
	there bool // an array, a dictionary or a stream
	list  bool // an array
	edges []edge
}

// graph caches the nodes of a document, so that comparisons with many revisions read each
// object once.
type graph struct {
	nodes map[numbered]node
	held  int64 // bytes
}

// numbered is one version of an object: its number and place. Of an object in an object
// stream the place has the offset of that stream.
type numbered struct {
	num int
	at  place
}

func newGraph() *graph { return &graph{nodes: map[numbered]node{}} }

// of returns the node of an object.
func (g *graph) of(f *file, num int) node {
	key := g.key(f, num)
	if n, ok := g.nodes[key]; ok || key.at.kind != inFile && key.at.kind != inStream {
		return n
	}
	if key.at.kind == inFile {
		return g.read(f, key)
	}
	// All objects of the stream are read now: it may be gone from the cache later.
	for _, inner := range f.listOf(int(f.find(num).at)) {
		k := g.key(f, inner)
		if _, known := g.nodes[k]; !known && k.at.kind == inStream && k.at.at == key.at.at && f.failed() == nil {
			g.read(f, k)
		}
	}
	return g.nodes[key]
}

func (g *graph) key(f *file, num int) numbered {
	p := f.find(num)
	if p.kind == inStream {
		p.at = f.find(int(p.at)).at
	}
	return numbered{num, p}
}

// listOf returns the numbers of the objects in an object stream.
func (f *file) listOf(num int) []int {
	list, ok := f.streams[num]
	if !ok {
		if at := f.find(num); at.kind == inFile && f.strictFrom > 0 && at.at+f.bias >= f.strictFrom {
			list, _ = f.strictStream(num, at.at+f.bias)
		} else {
			list, _ = f.objectStream(num)
		}
	}
	if list == nil {
		return nil
	}
	return list.numbers
}

func (g *graph) read(f *file, key numbered) node {
	o := f.load(ref{num: key.num})
	var n node
	add := func(o object, l label) {
		if id, ok := o.(ref); ok {
			n.edges = append(n.edges, edge(id.num)<<4|edge(l))
		}
	}
	var deep func(o object, l label)
	deep = func(o object, l label) {
		switch o := o.(type) {
		case array:
			for _, x := range o {
				add(x, l)
				deep(x, l)
			}
		case dict:
			for _, e := range o {
				add(e.value, l)
				deep(e.value, l)
			}
		}
	}
	top := func(d dict) {
		for _, e := range d {
			l := labels[e.key]
			inner := l
			if l == labelKids || l == labelAnnots {
				inner = labelOther // of a dictionary in the place of a reference
			}
			add(e.value, l)
			if a, ok := e.value.(array); ok {
				for _, x := range a {
					add(x, l)
					deep(x, inner)
				}
			} else {
				deep(e.value, inner)
			}
		}
	}
	switch o := o.(type) {
	case array:
		n.there, n.list = true, true
		for _, x := range o {
			add(x, labelItem)
			deep(x, labelOther)
		}
	case dict:
		n.there = true
		top(o)
	case *stream:
		n.there = true
		top(o.dict)
	}
	f.charge(int64(2 * len(n.edges)))
	size := 96 + 8*int64(cap(n.edges))
	if !f.keep(size) {
		return node{}
	}
	g.held += size
	g.nodes[key] = n
	return n
}

// walk finds the roles of objects.
type walk struct {
	c       *comparison
	seen    map[int]*[rolesAtOnce]roles
	held    int64
	queues  [16][]int // by the position of the role in walked
	visited int
	hidden  int // references to objects that were missing
}

// rolesAtOnce is the number of objects whose roles share one piece of memory.
const rolesAtOnce = 128

// of returns the roles of an object that are known so far.
func (w *walk) of(num int) roles {
	if part := w.seen[num/rolesAtOnce]; part != nil {
		return part[num%rolesAtOnce]
	}
	return 0
}

// give adds a role to an object and reports whether it is new.
func (w *walk) give(num int, r roles) bool {
	part := w.seen[num/rolesAtOnce]
	if part == nil {
		const size = 2*rolesAtOnce + 64
		if !w.c.new.keep(size) {
			return false
		}
		w.held += size
		part = new([rolesAtOnce]roles)
		w.seen[num/rolesAtOnce] = part
	}
	was := part[num%rolesAtOnce]
	part[num%rolesAtOnce] = was | r
	return was&r == 0
}

// push plans to visit an object with a role.
func (w *walk) push(num int, r roles) {
	if w.of(num)&r == 0 && w.c.new.keep(16) {
		w.held += 16
		i := slices.Index(walked, r)
		w.queues[i] = append(w.queues[i], num)
	}
}

// pushAll plans to visit all objects that a value refers to.
func (w *walk) pushAll(o object, r roles) {
	switch o := o.(type) {
	case ref:
		w.push(o.num, r)
	case array:
		for _, x := range o {
			w.pushAll(x, r)
		}
	case dict:
		for _, e := range o {
			w.pushAll(e.value, r)
		}
	}
}

// run determines the roles of all objects. It returns false if there are too many.
func (w *walk) run() bool {
	c := w.c
	for _, f := range []*file{c.old, c.new} {
		w.catalog(f)
	}
	for {
		i := slices.IndexFunc(w.queues[:], func(q []int) bool { return len(q) > 0 })
		if i < 0 {
			return true
		}
		q := w.queues[i]
		num := q[len(q)-1]
		w.queues[i] = q[:len(q)-1]
		// Only now are all objects known at which the role may stop.
		if w.stops(num, walked[i]) || !w.give(num, walked[i]) {
			continue
		}
		if w.visited++; w.visited > maxVisited || c.new.failed() != nil {
			return false
		}
		w.visit(num, walked[i])
	}
}

// catalog begins at the trailer and the catalog of a revision.
func (w *walk) catalog(f *file) {
	id, root := f.catalog()
	w.pushAll(f.trailer.get("Encrypt"), roleOther)
	w.pushAll(f.trailer.get("Info"), roleMetadata)
	if id.num != 0 {
		w.give(id.num, roleCatalog)
		w.missing(id.num)
	}
	for _, e := range root {
		switch e.key {
		case "Pages":
			w.pushAll(e.value, rolePages)
		case "AcroForm":
			w.form(f, e.value)
		case "StructTreeRoot":
			w.pushAll(e.value, roleTags)
		case "DSS", "Extensions", "Version":
			w.pushAll(e.value, roleStore)
		case "Metadata":
			w.pushAll(e.value, roleMetadata)
		default:
			w.pushAll(e.value, roleOther)
		}
	}
}

// form begins at the form of a revision.
func (w *walk) form(f *file, o object) {
	mark := func(o object, r roles) {
		if id, ok := o.(ref); ok {
			w.give(id.num, r)
			w.missing(id.num)
		}
	}
	mark(o, roleForm)
	for _, e := range f.resolveDict(o) {
		switch e.key {
		case "Fields":
			mark(e.value, roleFields)
			for _, x := range f.resolveArray(e.value) {
				w.pushAll(x, roleField)
			}
		case "DR":
			mark(e.value, roleKinds)
			for _, kind := range f.resolveDict(e.value) {
				mark(kind.value, roleKind)
				if d, ok := f.resolve(kind.value).(dict); ok {
					w.pushAll(d, roleDrawn)
				} else {
					w.pushAll(kind.value, roleDrawn)
				}
			}
		default:
			w.pushAll(e.value, roleOther)
		}
	}
}

// visit walks on from one object with one role.
func (w *walk) visit(num int, r roles) {
	c := w.c
	w.missing(num)
	w.edges(c.graph.of(c.old, num), num, r)
	if c.differs[num] {
		w.edges(c.graph.of(c.new, num), num, r)
	}
}

// missing reports references of a signed object that led nowhere and lead to an object now.
// They would change what is shown without a change of any signed object.
func (w *walk) missing(num int) {
	c := w.c
	if len(c.added) == 0 {
		return
	}
	for _, e := range c.graph.of(c.old, num).edges {
		if c.added[e.target()] && w.hidden < 8 {
			w.hidden++
			c.note(kindOther, "object %d, which object %d refers to and which was missing", e.target(), num)
		}
	}
}

func (w *walk) edges(n node, num int, r roles) {
	w.c.new.charge(int64(2 * len(n.edges)))
	if r == roleList && n.there && !n.list { // the page refers to an annotation
		w.push(num, roleAnnot)
		return
	}
	for _, e := range n.edges {
		if next := w.next(num, r, e.label()); next != 0 {
			w.push(e.target(), next)
		}
	}
}

// next returns the role that an object with a role gives to one that it refers to, 0 for
// none.
func (w *walk) next(num int, r roles, l label) roles {
	switch r {
	case rolePages:
		switch l {
		case labelKids, labelParent:
			return rolePages
		case labelItem:
			return rolePages // an array of kids
		case labelAnnots:
			return roleList
		case labelMetadata:
			return roleMetadata
		case labelAction:
			return roleOther
		}
		return roleDrawn
	case roleList:
		if l == labelItem {
			return roleAnnot
		}
		return roleDrawn
	case roleField:
		switch l {
		case labelKids, labelParent:
			return roleField
		case labelItem:
			return roleField // an array of kids
		case labelValue:
			if w.c.signing(num) {
				return roleOther
			}
			return w.shown(num)
		case labelShown:
			return w.shown(num)
		}
		return roleOther
	case roleAnnot:
		if w.of(num)&roleField != 0 {
			return 0 // a widget of the form
		}
		if l == labelShown {
			return roleDrawn
		}
		return roleOther
	case roleTags:
		if l == labelTree {
			return roleNumbers
		}
	}
	return r
}

// shown returns the role of the value and the appearance of a field.
func (w *walk) shown(num int) roles {
	if w.c.isFilled(num) {
		return roleFilled
	}
	return roleDrawn
}

// stops reports whether a role does not reach an object, because the reference is not about
// its content: the page of an annotation, the field of an action.
func (w *walk) stops(num int, r roles) bool {
	has := w.of(num)
	switch r {
	case rolePages, roleField, roleList, roleAnnot:
		return false
	case roleDrawn, roleFilled, roleStore:
		return has&(roleCatalog|rolePages) != 0
	case roleTags, roleMetadata:
		return has&(roleCatalog|rolePages|roleField|roleList|roleAnnot) != 0
	}
	return has&(roleCatalog|rolePages|roleField|roleList|roleAnnot|roleForm|roleTags|roleNumbers) != 0
}
