// SPDX-License-Identifier: Apache-2.0

package xmltree

import (
	"slices"
	"strings"
)

// inherit adds to c.attrs what n inherits from its ancestors. n is in the set and its parent is
// not. In Canonical XML 1.0 (section 2.4) this is every xml: attribute. In 1.1 (section 2.4) it
// is xml:lang and xml:space, never xml:id, and xml:base joined over the omitted ancestors.
func (c *canon) inherit(n Node) error {
	if err := c.spend(len(c.xml)); err != nil {
		return err
	}
	own := len(c.open) - 1
	seen := map[string]bool{}
	for _, x := range slices.Backward(c.xml) {
		local := string(c.localPart(&c.t.names[c.t.attrs[x.a].name]))
		simple := local == "lang" || local == "space"
		if seen[local] || c.m.Form == C14N11 && !simple {
			continue
		}
		seen[local] = true
		if x.depth < own {
			c.attrs = append(c.attrs, rendition{a: x.a})
			if err := c.spend(len("xml:=") + int(c.t.attrs[x.a].end-c.t.attrs[x.a].start)); err != nil {
				return err
			}
		}
	}
	if c.m.Form == C14N11 {
		return c.fixBase(own)
	}
	return nil
}

// fixBase joins the xml:base values of the omitted elements directly above the innermost open
// element with the value of that element.
func (c *canon) fixBase(own int) error {
	omitted := own // the outermost of the consecutive omitted ancestors
	for omitted > 0 && !c.open[omitted-1].in {
		omitted--
	}
	joined, nearest, fix := "", NoAttr, false
	for _, x := range slices.Backward(c.xml) {
		if x.depth < omitted {
			break
		}
		if string(c.localPart(&c.t.names[c.t.attrs[x.a].name])) != "base" {
			continue
		}
		value := c.t.Value(x.a)
		if err := c.spend(len(value) + len(joined)); err != nil {
			return err
		}
		if nearest == NoAttr {
			nearest, joined = x.a, value
		} else {
			joined = joinReferences(value, joined)
		}
		fix = fix || x.depth < own
	}
	if !fix {
		return nil
	}
	c.attrs = slices.DeleteFunc(c.attrs, func(r rendition) bool {
		return c.t.nameIs(c.t.attrs[r.a].name, NamespaceXML, "base")
	})
	if joined != "" {
		c.attrs = append(c.attrs, rendition{a: nearest, value: joined, made: true})
	}
	return nil
}

// reference is a URI reference in its parts (RFC 3986, appendix B). It has no fragment, because
// joining drops it.
type reference struct {
	scheme, authority, path, query       string
	hasScheme, hasAuthority, hasQuestion bool
}

func splitReference(s string) (r reference) {
	s, _, _ = strings.Cut(s, "#")
	s, r.query, r.hasQuestion = strings.Cut(s, "?")
	if i := strings.IndexAny(s, ":/"); i > 0 && s[i] == ':' {
		r.scheme, s, r.hasScheme = s[:i], s[i+1:], true
	}
	if rest, ok := strings.CutPrefix(s, "//"); ok {
		r.hasAuthority = true
		i := strings.IndexByte(rest, '/')
		if i < 0 {
			i = len(rest)
		}
		r.authority, s = rest[:i], rest[i:]
	}
	r.path = s
	return r
}

// joinReferences is join-URI-References of Canonical XML 1.1, section 2.4. This is RFC 3986, 5.2,
// with changes: the base may be relative, leading ".." segments with nothing to remove stay, a
// last ".." is a directory, and several slashes in a row become one.
func joinReferences(base, ref string) string {
	b, r := splitReference(base), splitReference(ref)
	if last := b.path[strings.LastIndexByte(b.path, '/')+1:]; last == ".." || last == "." {
		b.path += "/"
	}
	switch {
	case r.hasScheme:
	case r.hasAuthority:
		r.scheme, r.hasScheme = b.scheme, b.hasScheme
	default:
		switch {
		case r.path == "":
			r.path = b.path
			if !r.hasQuestion {
				r.query, r.hasQuestion = b.query, b.hasQuestion
			}
		case strings.HasPrefix(r.path, "/"):
		case b.hasAuthority && b.path == "":
			r.path = "/" + r.path
		default:
			r.path = b.path[:strings.LastIndexByte(b.path, '/')+1] + r.path
		}
		r.scheme, r.hasScheme = b.scheme, b.hasScheme
		r.authority, r.hasAuthority = b.authority, b.hasAuthority
	}
	var out strings.Builder
	if r.hasScheme {
		out.WriteString(r.scheme + ":")
	}
	if r.hasAuthority {
		out.WriteString("//" + r.authority)
	}
	out.WriteString(removeDots(r.path))
	if r.hasQuestion {
		out.WriteString("?" + r.query)
	}
	return out.String()
}

// removeDots is the changed remove_dot_segments of Canonical XML 1.1.
func removeDots(path string) string {
	rest, absolute := strings.CutPrefix(path, "/")
	var out []string
	directory := false // whether the last segment is a directory
	for segment := range strings.SplitSeq(rest, "/") {
		directory = true
		switch {
		case segment == "." || segment == "":
		case segment == ".." && len(out) > 0 && out[len(out)-1] != "..":
			out = out[:len(out)-1]
		case segment == ".." && absolute:
		case segment == "..":
			out = append(out, segment)
		default:
			out = append(out, segment)
			directory = false
		}
	}
	s := strings.Join(out, "/")
	if directory && len(out) > 0 {
		s += "/"
	}
	if absolute {
		s = "/" + s
	}
	return s
}
