// SPDX-License-Identifier: Apache-2.0

package ooxml_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"tamga/internal/sigtest"
)

var le = binary.LittleEndian

const (
	xmlHead   = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\r\n"
	officeRel = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
	strictRel = "http://purl.oclc.org/ooxml/officeDocument/relationships/"
	rootRel   = "http://schemas.openxmlformats.org/package/2006/relationships/"
	relsType  = "application/vnd.openxmlformats-package.relationships+xml"
)

// rel is a relationship: type, target, and "External" or nothing.
func rel(id, kind, target, mode string) string {
	if mode != "" {
		mode = ` TargetMode="` + mode + `"`
	}
	return `<Relationship Id="` + id + `" Type="` + kind + `" Target="` + target + `"` + mode + `/>`
}

func rels(list ...string) string {
	return xmlHead + `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` + strings.Join(list, "") + `</Relationships>`
}

func contentTypes(list ...string) string {
	return xmlHead + `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="` + relsType + `"/>` +
		`<Default Extension="xml" ContentType="application/xml"/><Default Extension="png" ContentType="image/png"/>` + strings.Join(list, "") + `</Types>`
}

func override(part, kind string) string {
	return `<Override PartName="` + part + `" ContentType="` + kind + `"/>`
}

const (
	mainType   = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
	stylesType = "application/vnd.openxmlformats-officedocument.wordprocessingml.styles+xml"
)

// word returns a Word document with one part of each kind: properties, a picture, a link,
// custom XML, and a part of a kind that is newer than Office's list.
func word() []sigtest.ZipEntry {
	return []sigtest.ZipEntry{
		{Name: "[Content_Types].xml", Content: contentTypes(
			override("/word/document.xml", mainType), override("/word/styles.xml", stylesType),
			override("/docProps/core.xml", "application/vnd.openxmlformats-package.core-properties+xml"),
			override("/word/commentsExtended.xml", "application/vnd.openxmlformats-officedocument.wordprocessingml.commentsExtended+xml"),
		)},
		{Name: "_rels/.rels", Content: rels(
			rel("rId1", officeRel+"officeDocument", "word/document.xml", ""),
			rel("rId2", rootRel+"metadata/core-properties", "docProps/core.xml", ""),
		)},
		{Name: "word/document.xml", Content: xmlHead + `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>Договор</w:t></w:r></w:p></w:body></w:document>`, Descriptor: "small"},
		{Name: "word/_rels/document.xml.rels", Content: rels(
			rel("rId10", officeRel+"hyperlink", "https://example.org/?a=1&amp;b=2", "External"),
			rel("rId2", officeRel+"image", "media/image1.png", ""),
			rel("rId1", officeRel+"styles", "/word/styles.xml", ""),
			rel("rId3", officeRel+"customXml", "../customXml/item1.xml", ""),
			rel("rId4", "http://schemas.microsoft.com/office/2011/relationships/commentsExtended", "commentsExtended.xml", ""),
			rel("rId5", officeRel+"image", "NULL", ""),
		)},
		{Name: "word/media/", Store: true},
		{Name: "word/media/image1.png", Content: strings.Repeat("\x89PNG", 100), Store: true},
		{Name: "word/styles.xml", Content: xmlHead + `<w:styles xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"/>`},
		{Name: "word/commentsExtended.xml", Content: xmlHead + `<a/>`},
		{Name: "customXml/item1.xml", Content: `<data>1</data>`},
		{Name: "docProps/core.xml", Content: xmlHead + `<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"/>`},
	}
}

// with returns the files with the content of one replaced, or with one added.
func with(files []sigtest.ZipEntry, name, content string) []sigtest.ZipEntry {
	return edit(files, name, func(f *sigtest.ZipEntry) { f.Content = content })
}

func edit(files []sigtest.ZipEntry, name string, change func(*sigtest.ZipEntry)) []sigtest.ZipEntry {
	out := append([]sigtest.ZipEntry(nil), files...)
	for i := range out {
		if out[i].Name == name {
			change(&out[i])
			return out
		}
	}
	f := sigtest.ZipEntry{Name: name}
	change(&f)
	return append(out, f)
}

// contentOf returns the content of a file of word().
func contentOf(t testing.TB, files []sigtest.ZipEntry, name string) string {
	t.Helper()
	for _, f := range files {
		if f.Name == name {
			return f.Content
		}
	}
	t.Fatalf("there is no %s", name)
	return ""
}

func replaced(t testing.TB, files []sigtest.ZipEntry, name, old, new string) []sigtest.ZipEntry {
	t.Helper()
	c := contentOf(t, files, name)
	if !strings.Contains(c, old) {
		t.Fatalf("%s does not hold %s", name, old)
	}
	return with(files, name, strings.Replace(c, old, new, 1))
}
