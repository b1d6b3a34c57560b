// SPDX-License-Identifier: Apache-2.0

package pdf

import "slices"

// Programs that sign a tagged document add an element for the signature to its structure tree
// (ISO 32000-1, 14.7), and often write its root and its parent tree again. Such additions
// change nothing that is shown or read aloud of the signed content. Anything else in the tree
// does: it has the order of reading and texts in place of what is shown.

// tags classifies the change of an object of the structure tree.
func (c *comparison) tags(num int, a, b object, has roles) {
	was, ok1 := a.(dict)
	is, ok2 := b.(dict)
	allowed := true
	switch {
	case ok1 && ok2 && (was.get("Type") == name("StructTreeRoot") || was.has("S")):
		for _, key := range c.keys(was, is) {
			switch {
			case key == "K":
				allowed = allowed && c.moreKids(was.get(key), is.get(key))
			case key == "ParentTree", key == "ParentTreeNextKey":
				allowed = allowed && !was.has("S")
			default:
				allowed = false
			}
		}
	case has&roleTags != 0:
		// Kids of an element may be an array of their own.
		_, ok1 := a.(array)
		_, ok2 := b.(array)
		allowed = ok1 && ok2 && c.moreKids(a, b)
	}
	if c.tagged == 0 {
		c.tagged = 1
		if !c.moreNumbers() {
			c.tagged = -1
		}
	}
	if !allowed || c.tagged < 0 {
		c.replaced(num, a, b)
	}
}

// moreKids reports whether the kids of an element are those from before in their order, and
// others of new signatures.
func (c *comparison) moreKids(was, is object) bool {
	old, now := kidsOf(c.old, was), kidsOf(c.new, is)
	for _, o := range now {
		switch {
		case len(old) > 0 && c.same(o, old[0], 0, false):
			old = old[1:]
		case !c.newTag(o):
			return false
		}
	}
	return len(old) == 0
}

// kidsOf returns a value that may be one kid or an array of them.
func kidsOf(f *file, o object) array {
	if a, ok := f.resolve(o).(array); ok {
		return a
	}
	return filterList(o)
}

// newTag reports whether an element of the structure tree is new and has nothing but the widget
// of a new signature field.
func (c *comparison) newTag(o object) bool {
	id, _ := o.(ref)
	d, _ := c.new.resolve(o).(dict)
	if !c.added[id.num] || len(d) == 0 {
		return false
	}
	for _, e := range d {
		if !slices.Contains([]name{"Type", "S", "P", "Pg", "K", "ID", "T", "NS", "A", "C", "R"}, e.key) {
			return false
		}
	}
	kids := kidsOf(c.new, d.get("K"))
	for _, k := range kids {
		content := c.new.resolveDict(k)
		widget, _ := content.get("Obj").(ref)
		if content.get("Type") != name("OBJR") || !c.newSignature(widget) {
			return false
		}
	}
	return len(kids) > 0
}

// newSignature reports whether an object is the widget of a signature field that was added or
// signed later.
func (c *comparison) newSignature(id ref) bool {
	d := c.new.resolveDict(id)
	if d.get("Subtype") != name("Widget") || c.kindOf(d) != name("Sig") {
		return false
	}
	f := c.fields[id.num]
	return f == nil && c.added[id.num] || f != nil && !f.signed && c.names[f.path]
}

// moreNumbers reports whether the parent tree leads to the same elements as before, and
// otherwise only to those of new signatures.
func (c *comparison) moreNumbers() bool {
	was, ok1 := c.numbers(c.old)
	is, ok2 := c.numbers(c.new)
	if !ok1 || !ok2 {
		return false
	}
	for key, o := range was {
		if now, ok := is[key]; !ok || !c.alike(o, now) {
			return false
		}
	}
	for key, o := range is {
		if _, known := was[key]; !known && !c.newTag(o) {
			return false
		}
	}
	return true
}

// alike compares values of the parent tree. An array may be another object now.
func (c *comparison) alike(a, b object) bool {
	if x, ok := c.old.resolve(a).(array); ok {
		y, ok := c.new.resolve(b).(array)
		return ok && c.same(x, y, 0, false)
	}
	return c.same(a, b, 0, false)
}

// numbers reads the parent tree of a revision (7.9.7). It returns false if the tree is
// malformed.
func (c *comparison) numbers(f *file) (map[int64]object, bool) {
	out := map[int64]object{}
	seen := map[int]bool{}
	var node func(o object, depth int) bool
	node = func(o object, depth int) bool {
		id, _ := o.(ref)
		d, ok := f.resolve(o).(dict)
		if !ok || depth > maxTreeDepth || id.num != 0 && seen[id.num] {
			return false
		}
		seen[id.num] = true
		nums := f.resolveArray(d.get("Nums"))
		if len(nums)%2 != 0 || !c.new.charge(int64(4*len(nums))) || !c.new.keep(32*int64(len(nums))) {
			return false
		}
		defer c.new.spending.Release(32 * int64(len(nums)))
		for i := 0; i < len(nums); i += 2 {
			key, ok := integer(nums[i])
			if _, twice := out[key]; !ok || twice || len(out) > maxVisited {
				return false
			}
			out[key] = nums[i+1]
		}
		for _, kid := range f.resolveArray(d.get("Kids")) {
			if !node(kid, depth+1) {
				return false
			}
		}
		return true
	}
	tree := f.resolveDict(f.resolveCatalog("StructTreeRoot")).get("ParentTree")
	return out, tree == nil || node(tree, 0)
}
