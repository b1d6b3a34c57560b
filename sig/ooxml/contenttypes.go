// SPDX-License-Identifier: Apache-2.0

package ooxml

import (
	"strings"

	"tamga/sig/budget"
	"tamga/sig/xmltree"
)

const (
	contentTypesName = "[Content_Types].xml"
	nsContentTypes   = "http://schemas.openxmlformats.org/package/2006/content-types"

	typeRelationships = "application/vnd.openxmlformats-package.relationships+xml"
	typeOrigin        = "application/vnd.openxmlformats-package.digital-signature-origin"
	typeSignature     = "application/vnd.openxmlformats-package.digital-signature-xmlsignature+xml"
)

// contentTypes is the parsed part [Content_Types].xml (ECMA-376 part 2, 10.1.2.2).
type contentTypes struct {
	tree     *xmltree.Tree
	defaults map[string]string // by extension in lower case
	override map[string]string // by key of the part
}

// parseXML parses a part.
func parseXML(b *budget.Budget, name string, data []byte) (*xmltree.Tree, error) {
	t, err := xmltree.Parse(data, xmltree.Options{Size: 2 * maxXML, Nodes: maxXMLNodes, Budget: b})
	if err != nil {
		return nil, unfit(err, "the part %s cannot be read", quote("/"+name))
	}
	return t, nil
}

func parseContentTypes(b *budget.Budget, name string, data []byte) (*contentTypes, error) {
	t, err := parseXML(b, name, data)
	if err != nil {
		return nil, err
	}
	c := &contentTypes{tree: t, defaults: map[string]string{}, override: map[string]string{}}
	if !t.Is(t.Root(), nsContentTypes, "Types") {
		return nil, otherKind("an Office document expected, but %s does not list content types", quote(name))
	}
	for n := range t.Elements(t.Root()) {
		var in map[string]string
		var of string
		switch {
		case t.Is(n, nsContentTypes, "Default"):
			extension, _ := t.Get(n, "Extension")
			in, of = c.defaults, asciiLower(extension)
		case t.Is(n, nsContentTypes, "Override"):
			part, _ := t.Get(n, "PartName")
			in, of = c.override, key(part)
		default:
			continue
		}
		kind, ok := t.Get(n, "ContentType")
		if !ok || of == "" {
			return nil, unfit(nil, "%s has an incomplete %s", quote(name), t.Name(n))
		}
		if old, twice := in[of]; twice && old != kind {
			return nil, unfit(nil, "%s gives two content types for %s", quote(name), quote(of))
		}
		in[of] = kind
	}
	return c, nil
}

// of returns the content type of a part, "" if none is declared. Then the entry is not a
// part of the package.
func (c *contentTypes) of(k string) string {
	if kind, ok := c.override[k]; ok {
		return kind
	}
	last := k[strings.LastIndexByte(k, '/')+1:]
	if i := strings.LastIndexByte(last, '.'); i >= 0 {
		return c.defaults[last[i+1:]]
	}
	return ""
}

// with returns [Content_Types].xml with content types added for signature parts: a
// default for the extension of the origin, if that is free, and an override for each part
// that still has another type.
func (c *contentTypes) with(parts []typedPart) ([]byte, error) {
	t := c.tree
	var defaults, overrides strings.Builder
	prefix := prefixOf(t, t.Root())
	added := map[string]string{}
	for _, p := range parts {
		k := key(p.name)
		if c.of(k) == p.kind {
			continue
		}
		extension := asciiLower(p.name[strings.LastIndexByte(p.name, '.')+1:])
		kind, taken := c.defaults[extension]
		if !taken {
			kind, taken = added[extension]
		}
		_, overridden := c.override[k]
		switch {
		case taken && kind == p.kind && !overridden:
		case !taken && !overridden && p.byExtension:
			added[extension] = p.kind
			defaults.WriteString("<" + prefix + `Default Extension="` + extension + `" ContentType="` + p.kind + `"/>`)
		case overridden:
			return nil, unfit(nil, "%s declares %s with another type than that of a signature part", contentTypesName, quote("/"+p.name))
		default:
			overrides.WriteString("<" + prefix + `Override PartName="` + escape(uriText("/"+p.name)) + `" ContentType="` + p.kind + `"/>`)
		}
	}
	// Office writes defaults before overrides. The schema allows any order.
	edits := []xmltree.Edit{}
	first := t.FirstChild(t.Root())
	switch {
	case defaults.Len() == 0:
	case first == xmltree.None:
		overrides.WriteString(defaults.String())
	default:
		at := t.Span(first).Start
		edits = append(edits, xmltree.Edit{Span: xmltree.Span{Start: at, End: at}, Text: defaults.String()})
	}
	if overrides.Len() > 0 {
		edits = append(edits, t.Append(t.Root(), overrides.String()))
	}
	s, err := t.Splice(edits...)
	if err != nil {
		return nil, err
	}
	return s.Bytes(), nil
}

// typedPart is a part that needs a content type. byExtension declares the type for all
// parts with the same extension, as Office does for the origin.
type typedPart struct {
	name, kind  string
	byExtension bool
}

func prefixOf(t *xmltree.Tree, n xmltree.Node) string {
	if p := t.Name(n).Prefix; p != "" {
		return p + ":"
	}
	return ""
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "\t", "&#x9;", "\n", "&#xA;", "\r", "&#xD;")

// escape returns a text for an attribute between double quotes or for an element. Package
// xmldsig has replacements of its own: quotes and tabs in an element stay as they are there,
// and the bytes of a signature must not change with the package that writes them.
func escape(s string) string { return escaper.Replace(s) }
