// SPDX-License-Identifier: Apache-2.0

package ooxml_test

import (
	"slices"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/ooxml"
)

// What has no content type is no part of the package, but LibreOffice reads it. A document with
// relationships or parts of that kind is not signed, and none passes to which they were added.
func TestWithoutContentType(t *testing.T) {
	root := sigtest.Root(t, suite.GOST2012x256)
	signer := root.Signer(t, suite.GOST2012x256, "Signer")
	const types = "[Content_Types].xml"
	add := func(files []sigtest.ZipEntry, part, kind string) []sigtest.ZipEntry {
		return replaced(t, files, types, "</Types>", override(part, kind)+"</Types>")
	}
	// Relationships by overrides alone.
	named := add(replaced(t, word(), types, `<Default Extension="rels" ContentType="`+relsType+`"/>`, ""), "/_rels/.rels", relsType)
	declared := add(named, "/"+docRels, relsType)
	stylesRels := func(files []sigtest.ZipEntry) []sigtest.ZipEntry {
		return with(files, "word/_rels/styles.xml.rels", rels(rel("rId1", officeRel+"image", "http://example.org/a.png", "External")))
	}
	png := `<Default Extension="png" ContentType="image/png"/>`
	for name, c := range map[string]struct {
		files []sigtest.ZipEntry
		says  string // "" for a document that is signed
	}{
		"all declared":             {declared, ""},
		"in other letters":         {add(named, "/"+docRels, strings.ToUpper(relsType)), ""},
		"none":                     {named, `the relationships part "/word/_rels/document.xml.rels" has no content type`},
		"another one":              {add(word(), "/"+docRels, "application/xml"), `the relationships part "/word/_rels/document.xml.rels" is declared as "application/xml"`},
		"of a part without others": {stylesRels(declared), `the relationships part "/word/_rels/styles.xml.rels" has no content type`},
		"of no part":               {with(declared, "word/_rels/gone.xml.rels", rels()), ""},
		"a picture":                {replaced(t, word(), types, png, ""), `the part "/word/media/image1.png", to which the relationship "rId2" of "/word/document.xml" leads, has no content type`},
		"custom XML":               {edit(replaced(t, word(), docRels, "item1.xml", "item1.dat"), "customXml/item1.xml", func(f *sigtest.ZipEntry) { f.Name = "customXml/item1.dat" }), ""},
	} {
		signed, err := sigtest.Try(t, ooxml.New(), signer, job(sigtest.Zip(c.files, "")))
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: signed, %v; want %q", name, err, c.says)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if r := verify(t, signed, root); !r.Passed() {
			t.Errorf("%s: %+v", name, r)
		}
	}

	// The content types are not signed.
	signed := filesOf(t, sign(t, signer, sigtest.Zip(declared, "")))
	link := replaced(t, signed, docRels, "example.org", "example.net")
	picture := edit(replaced(t, signed, types, png, ""), "word/media/image1.png", func(f *sigtest.ZipEntry) { f.Content = "another" })
	retyped := func(files []sigtest.ZipEntry) []sigtest.ZipEntry {
		return replaced(t, files, types, override("/"+docRels, relsType), override("/"+docRels, "application/xml"))
	}
	for name, c := range map[string]struct {
		files   []sigtest.ZipEntry
		verdict sig.Verdict
		codes   []string
	}{
		"nothing":                       {signed, sig.Passed, nil},
		"added":                         {add(stylesRels(signed), "/word/_rels/styles.xml.rels", "application/xml"), sig.Indeterminate, []string{"content-type-missing"}},
		"added without any type":        {stylesRels(signed), sig.Indeterminate, []string{"content-type-missing"}},
		"added for no part":             {with(signed, "word/_rels/gone.xml.rels", rels()), sig.Passed, nil},
		"type taken away, link changed": {retyped(link), sig.Failed, []string{"content-type-missing", "content-type-changed"}},
		"type of a picture taken away":  {picture, sig.Failed, []string{"content-type-missing", "content-type-changed"}},
	} {
		r := verify(t, sigtest.Zip(c.files, ""), root)
		if codes := sigtest.Codes(r); r.Verdict() != c.verdict || !slices.Equal(codes, c.codes) {
			t.Errorf("%s: %v, %v, want %v", name, r.Verdict(), codes, c.codes)
		}
	}
}
