// SPDX-License-Identifier: Apache-2.0

package ooxml_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/ooxml"
)

// filesOf takes the files out of a document, so that it can be written again with a change.
func filesOf(t testing.TB, document []byte) (files []sigtest.ZipEntry) {
	t.Helper()
	names, _ := raw(t, document)
	for _, name := range names {
		if strings.HasSuffix(name, "/") {
			files = append(files, sigtest.ZipEntry{Name: name, Store: true})
		} else {
			files = append(files, sigtest.ZipEntry{Name: name, Content: part(t, document, name)})
		}
	}
	return files
}

func without(files []sigtest.ZipEntry, name string) []sigtest.ZipEntry {
	return slices.DeleteFunc(slices.Clone(files), func(f sigtest.ZipEntry) bool { return f.Name == name })
}

const (
	sig1       = "_xmlsignatures/sig1.xml"
	docRels    = "word/_rels/document.xml.rels"
	originRels = "_xmlsignatures/_rels/origin.sigs.rels"
)

// Every kind of change to a signed document is found and named.
func TestChanges(t *testing.T) {
	root := sigtest.Root(t, suite.GOST2012x256)
	signer := root.Signer(t, suite.GOST2012x256, "Signer")
	files := filesOf(t, sign(t, signer, sigtest.Zip(word(), "")))
	change := func(name, old, new string) []sigtest.ZipEntry { return replaced(t, files, name, old, new) }
	added := func(kind string) []sigtest.ZipEntry {
		return with(change(docRels, "</Relationships>", rel("rId99", officeRel+kind, "new.xml", "")+"</Relationships>"), "word/new.xml", "<a/>")
	}
	resign := func(change func(string) string) []sigtest.ZipEntry {
		return with(files, sig1, change(contentOf(t, files, sig1)))
	}
	copyOf := func(name string) string { return contentOf(t, files, name) }
	two := filesOf(t, sign(t, signer, sigtest.Zip(files, "")))
	value := base64.StdEncoding.EncodeToString(make([]byte, 64))
	for name, c := range map[string]struct {
		files []sigtest.ZipEntry
		codes []string
	}{
		"nothing":                  {files, nil},
		"text":                     {change("word/document.xml", "Договор", "Довогор"), []string{"digest-mismatch"}},
		"picture":                  {change("word/media/image1.png", "PNG", "PNH"), []string{"digest-mismatch"}},
		"newer part":               {change("word/commentsExtended.xml", "<a/>", "<b/>"), []string{"digest-mismatch"}},
		"properties":               {change("docProps/core.xml", "cp:coreProperties", "cq:coreProperties"), nil},
		"part gone":                {without(files, "word/styles.xml"), []string{"reference-missing"}},
		"part renamed":             {edit(files, "word/styles.xml", func(f *sigtest.ZipEntry) { f.Name = "word/Styles.xml" }), nil}, // the same name
		"relationship gone":        {change(docRels, rel("rId1", officeRel+"styles", "/word/styles.xml", ""), ""), []string{"digest-mismatch"}},
		"relationship target":      {change(docRels, "/word/styles.xml", "styles.xml"), []string{"digest-mismatch"}},
		"relationship type":        {change(docRels, officeRel+"styles", officeRel+"numbering"), []string{"digest-mismatch"}},
		"link":                     {change(docRels, "example.org", "example.net"), []string{"digest-mismatch"}},
		"link becomes internal":    {change(docRels, ` TargetMode="External"`, ""), []string{"digest-mismatch"}},
		"relationship added":       {added("image"), []string{"relationship-not-covered"}},
		"properties added":         {added("extended-properties"), nil},
		"unknown kind added":       {added("whatever"), []string{"relationship-unknown"}},
		"unknown link added":       {change(docRels, "</Relationships>", rel("rId99", "urn:whatever", "https://example.net", "External")+"</Relationships>"), []string{"relationship-unknown"}},
		"unknown kind of package":  {with(change("_rels/.rels", "</Relationships>", rel("rId99", "urn:whatever", "new.xml", "")+"</Relationships>"), "new.xml", "<a/>"), []string{"relationship-unknown"}},
		"later kind added":         {added("commentsIds"), nil},
		"preview added":            {with(change("_rels/.rels", "</Relationships>", rel("rId99", rootRel+"metadata/thumbnail", "docProps/t.xml", "")+"</Relationships>"), "docProps/t.xml", "<a/>"), nil},
		"orphan added":             {with(files, "word/orphan.xml", "<a/>"), nil},
		"prefixes":                 {with(files, docRels, strings.NewReplacer("<Relationship", "<ns0:Relationship", "</Relationship", "</ns0:Relationship", "xmlns=", "xmlns:ns0=").Replace(copyOf(docRels))), nil},
		"a signature gone of two":  {without(two, sig1), []string{"signature-missing"}},
		"and named elsewhere":      {replaced(t, two, originRels, `Target="sig1.xml"`, `Target="https://example.org/sig1.xml" TargetMode="External"`), []string{"signature-missing"}},
		"part damaged":             {edit(files, "word/styles.xml", func(f *sigtest.ZipEntry) { f.Content += " " }), []string{"digest-mismatch"}},
		"link added":               {change(docRels, "</Relationships>", rel("rId99", officeRel+"hyperlink", "https://example.net", "External")+"</Relationships>"), []string{"relationship-not-covered"}},
		"main part added":          {change("_rels/.rels", "</Relationships>", rel("rId0", officeRel+"officeDocument", "word/styles.xml", "")+"</Relationships>"), []string{"relationship-not-covered"}},
		"relationships of a part":  {with(with(files, "word/_rels/styles.xml.rels", rels(rel("rId1", officeRel+"image", "new.png", ""))), "word/new.png", "x"), []string{"relationship-not-covered"}},
		"relationships re-ordered": {with(files, docRels, rels(reversed(relationshipsIn(copyOf(docRels)))...)), nil},
		"white space":              {with(files, docRels, strings.ReplaceAll(copyOf(docRels), "<Relationship ", "\n<Relationship ")), nil},
		"content type":             {change("[Content_Types].xml", stylesType, mainType), []string{"content-type-changed"}},
		"content type gone":        {change("[Content_Types].xml", override("/word/styles.xml", stylesType), ""), []string{"content-type-changed"}},
		"origin gone":              {change("_rels/.rels", "digital-signature/origin", "digital-signature/organ"), []string{"no-signature"}},
		"signature gone":           {change(originRels, "digital-signature/signature", "digital-signature/certificate"), []string{"no-signature"}},
		"signature part gone":      {without(files, sig1), []string{"signature-missing", "no-signature"}},
		"signature part":           {with(files, sig1, "<a/>"), []string{"signature-malformed"}},
		"no XML":                   {with(files, sig1, "text"), []string{"signature-malformed"}},
		"document type": {resign(func(s string) string {
			return strings.Replace(s, "<Signature ", "<!DOCTYPE a [<!ENTITY b 'c'>]><Signature ", 1)
		}), []string{"signature-malformed"}},
		"signature wrapped": {resign(func(s string) string { return strings.Replace(s, "<Signature ", "<w><Signature ", 1) + "</w>" }), []string{"signature-malformed"}},
		"signature twice": {with(with(files, "_xmlsignatures/sig2.xml", copyOf(sig1)), originRels, rels(rel("rId1", rootRel+"digital-signature/signature", "sig1.xml", ""),
			rel("rId2", rootRel+"digital-signature/signature", "sig2.xml", ""))), []string{"signature-malformed"}}, // of another content type
		"value":            {resign(func(s string) string { return between(t, s, "<SignatureValue>", "</SignatureValue>", value) }), []string{"signature-mismatch"}},
		"manifest digest":  {resign(func(s string) string { return cutFirst(t, s, "<Manifest>", "<DigestValue>", 4, "AAAA") }), []string{"digest-mismatch", "digest-mismatch"}},
		"manifest part":    {resign(func(s string) string { return strings.Replace(s, "/word/styles.xml?", "/word/document.xml?", 1) }), []string{"digest-mismatch", "content-type-changed", "reference-twice", "part-not-covered"}},
		"manifest emptied": {resign(func(s string) string { return between(t, s, "<Manifest>", "</Manifest>", "") }), []string{"digest-mismatch", "signature-malformed"}},
		"manifest doubled": {resign(func(s string) string { return strings.Replace(s, "</Manifest>", "</Manifest><Manifest></Manifest>", 1) }), []string{"digest-mismatch", "signature-malformed"}},
		"object moved": {resign(func(s string) string {
			return strings.Replace(strings.Replace(s, `<Object Id="idPackageObject">`, `<Object><x><Object Id="idPackageObject">`, 1), "</Object>", "</Object></x></Object>", 1)
		}), []string{"signature-malformed"}},
		"object doubled": {resign(func(s string) string {
			begin, end := strings.Index(s, "<Object "), strings.Index(s, "</Object>")+len("</Object>")
			return strings.Replace(s, "</Signature>", s[begin:end]+"</Signature>", 1)
		}), []string{"reference-id-not-unique", "signature-malformed"}},
		"transform dropped": {resign(func(s string) string {
			return strings.Replace(s, `<Transform Algorithm="http://schemas.openxmlformats.org/package/2006/RelationshipTransform">`, `<Transform Algorithm="http://www.w3.org/TR/1999/REC-xslt-19991116">`, 1)
		}), []string{"digest-mismatch", "transform-unexpected"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := verify(t, sigtest.Zip(c.files, ""), root)
			if got := sigtest.Codes(r); !slices.Equal(got, c.codes) {
				t.Errorf("codes %v, want %v: %+v", got, c.codes, r)
			}
			findings := slices.Clone(r.Findings)
			for _, s := range r.Signatures {
				findings = append(findings, s.Findings...)
			}
			for _, f := range findings {
				if want := means[f.Code]; f.Indication != "" && f.Indication != want {
					t.Errorf("%s is %s, want %s", f.Code, f.Indication, want)
				}
			}
		})
	}
}

// means are the expected indications of the findings of TestChanges.
var means = map[string]sig.Indication{
	"digest-mismatch": sig.HashFailure, "content-type-changed": sig.HashFailure, "signature-mismatch": sig.SigCryptoFailure,
	"reference-missing": sig.SignedDataNotFound, "relationship-unknown": sig.SignedDataNotFound,
	"signature-missing": sig.SignedDataNotFound, "reference-id-not-unique": sig.SignedDataNotFound,
	"relationship-not-covered": sig.FormatFailure, "part-not-covered": sig.FormatFailure, "reference-twice": sig.FormatFailure,
	"transform-unexpected": sig.FormatFailure, "signature-malformed": sig.FormatFailure, "no-signature": sig.FormatFailure,
}

// relationshipsIn lists the elements of a relationships part.
func relationshipsIn(text string) (list []string) {
	for _, s := range strings.SplitAfter(text, "/>") {
		if i := strings.Index(s, "<Relationship "); i >= 0 {
			list = append(list, s[i:])
		}
	}
	return list
}

func reversed(list []string) []string {
	slices.Reverse(list)
	return list
}

// between replaces the text between two texts.
func between(t testing.TB, s, open, closing, with string) string {
	t.Helper()
	before, rest, ok := strings.Cut(s, open)
	_, after, ok2 := strings.Cut(rest, closing)
	if !ok || !ok2 {
		t.Fatalf("%s is not in %s", open, s)
	}
	return before + open + with + closing + after
}

// cutFirst replaces n bytes after mark, the first one after from.
func cutFirst(t testing.TB, s, from, mark string, n int, with string) string {
	t.Helper()
	i := strings.Index(s, from)
	j := strings.Index(s[max(i, 0):], mark)
	if i < 0 || j < 0 {
		t.Fatalf("%s is not in %s", mark, s)
	}
	at := i + j + len(mark)
	return s[:at] + with + s[at+n:]
}

// Findings that are no reason to distrust a signature are not fatal.
func TestFindings(t *testing.T) {
	root := sigtest.Root(t, suite.ECDSAP256)
	signed := sign(t, root.Signer(t, suite.ECDSAP256, "Signer"), sigtest.Zip(word(), ""))
	files := filesOf(t, signed)
	codes := func(c *sig.Check, document []byte) (out []string) {
		c.Document, c.Roots, c.At = bytes.NewReader(document), []*x509gost.Certificate{root.Certificate}, sigtest.Time
		r, err := ooxml.New().Verify(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		if !r.Passed() {
			t.Errorf("not valid: %+v", r)
		}
		for _, f := range append(r.Findings, r.Signatures[0].Findings...) {
			if !strings.HasPrefix(f.Code, "certificate-") {
				out = append(out, f.Code)
			}
		}
		return out
	}
	later := with(replaced(t, files, docRels, "</Relationships>", rel("rId99", officeRel+"commentsIds", "new.xml", "")+"</Relationships>"), "word/new.xml", "<a/>")
	loose := replaced(t, with(files, "_xmlsignatures/sig9.xml", "<a/>"), "[Content_Types].xml", "</Types>", override("/_xmlsignatures/sig9.xml", "application/vnd.openxmlformats-package.digital-signature-xmlsignature+xml")+"</Types>")
	for name, c := range map[string]struct {
		check    sig.Check
		document []byte
		want     []string
	}{
		"nothing":           {sig.Check{}, signed, nil},
		"an original":       {sig.Check{Original: bytes.NewReader(nil)}, signed, []string{"original-not-compared"}},
		"bytes between":     {sig.Check{}, sigtest.Zip(edit(files, sig1, func(f *sigtest.ZipEntry) { f.Prefix = "xyz" }), ""), []string{"hidden-entry"}},
		"bytes behind":      {sig.Check{}, append(bytes.Clone(signed), '\n'), []string{"hidden-entry"}},
		"a later kind":      {sig.Check{}, sigtest.Zip(later, ""), []string{"covers-part"}},
		"an orphan":         {sig.Check{}, sigtest.Zip(with(files, "word/orphan.xml", "<a/>"), ""), []string{"covers-part"}},
		"an expected part":  {sig.Check{Strict: true, Expect: "/word/styles.xml"}, sigtest.Zip(with(files, "word/orphan.xml", "<a/>"), ""), []string{"covers-part"}},
		"strict":            {sig.Check{Strict: true}, signed, nil},
		"a loose signature": {sig.Check{}, sigtest.Zip(loose, ""), []string{"signature-unreachable"}},
	} {
		if got := codes(&c.check, c.document); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	// An entry that only programs see that read the archive from its beginning.
	hidden := sigtest.Zip(edit(files, sig1, func(f *sigtest.ZipEntry) {
		f.Prefix = string(sigtest.Zip([]sigtest.ZipEntry{{Name: "word/document.xml", Content: "<a/>"}}, ""))
	}), "")
	if got := sigtest.Codes(verify(t, hidden, root)); !slices.Equal(got, []string{"hidden-entry"}) {
		t.Errorf("a hidden entry: %v", got)
	}
	_, err := ooxml.New().Verify(context.Background(), &sig.Check{Document: bytes.NewReader([]byte("text"))})
	var e *sig.ErrDocument
	if !errors.As(err, &e) || !e.OtherKind {
		t.Errorf("text: %v", err)
	}
}

// Parts that no signed relationship leads to are named in the headline and fail in strict
// mode. Parts that Office leaves unsigned on purpose do neither.
func TestUncovered(t *testing.T) {
	root := sigtest.Root(t, suite.ECDSAP256)
	signed := sign(t, root.Signer(t, suite.ECDSAP256, "Signer"), sigtest.Zip(word(), ""))
	files := filesOf(t, signed)
	orphan := sigtest.Zip(with(files, "word/orphan\u202e.xml", "<a/>"), "")
	later := sigtest.Zip(with(replaced(t, files, docRels, "</Relationships>", rel("rId99", officeRel+"commentsIds", "new.xml", "")+"</Relationships>"), "word/new.xml", "<a/>"), "")
	unknown := sigtest.Zip(with(replaced(t, files, docRels, "</Relationships>", rel("rId99", "urn:x", "new.xml", "")+"</Relationships>"), "word/new.xml", "<a/>"), "")
	two := sigtest.Zip(without(filesOf(t, sign(t, root.Signer(t, suite.ECDSAP256, "Second"), signed)), sig1), "")
	for name, c := range map[string]struct {
		document []byte
		check    sig.Check
		want     sig.Verdict
		headline string
		covers   string
	}{
		"nothing":              {signed, sig.Check{}, sig.Passed, "", "not covered: /customXml/item1.xml, /docProps/core.xml"},
		"strict":               {signed, sig.Check{Strict: true}, sig.Passed, "", ""},
		"an orphan":            {orphan, sig.Check{}, sig.Passed, "does not cover /word/orphan?.xml", "/word/orphan\u202e.xml"},
		"an orphan, strict":    {orphan, sig.Check{Strict: true}, sig.Failed, "does not cover /word/orphan?.xml", ""},
		"a later kind":         {later, sig.Check{}, sig.Passed, "does not cover /word/new.xml", "/word/new.xml"},
		"a later kind, strict": {later, sig.Check{Strict: true}, sig.Failed, "does not cover /word/new.xml", ""},
		"an unknown kind":      {unknown, sig.Check{}, sig.Indeterminate, "does not cover /word/new.xml", "/word/new.xml"},
		"expected":             {signed, sig.Check{Expect: "/word/document.xml"}, sig.Passed, "", ""},
		"expected in vain":     {signed, sig.Check{Expect: "/docProps/core.xml"}, sig.Failed, "does not cover /docProps/core.xml", ""},
		"a signature gone":     {two, sig.Check{}, sig.Indeterminate, "", ""},
	} {
		c.check.Document, c.check.Roots, c.check.At = bytes.NewReader(c.document), []*x509gost.Certificate{root.Certificate}, sigtest.Time
		r, err := ooxml.New().Verify(t.Context(), &c.check)
		if err != nil {
			t.Fatal(err)
		}
		var headline string
		for _, h := range r.Headlines() {
			if strings.HasPrefix(h, "does not cover") {
				headline = h
			}
		}
		if r.Verdict() != c.want || headline != c.headline || !strings.Contains(r.Signatures[0].Covers, c.covers) {
			t.Errorf("%s: %v, headline %q, covers %s: %+v", name, r.Verdict(), headline, r.Signatures[0].Covers, r.Findings)
		}
	}
}

// Relationships lose their prefixes with the first signature, because programs differ in
// whether they digest them. A document that is signed already keeps them.
func TestPrefixes(t *testing.T) {
	root := sigtest.Root(t, suite.ECDSAP256)
	signer := root.Signer(t, suite.ECDSAP256, "Signer")
	prefixes := strings.NewReplacer("<Relationship", "<ns0:Relationship", "</Relationship", "</ns0:Relationship", "xmlns=", "xmlns:ns0=")
	prefixed := func(files []sigtest.ZipEntry) []sigtest.ZipEntry {
		for _, name := range []string{docRels, "_rels/.rels"} {
			files = with(files, name, prefixes.Replace(contentOf(t, files, name)))
		}
		return files
	}
	signed := sign(t, signer, sigtest.Zip(prefixed(word()), ""))
	for _, name := range []string{docRels, "_rels/.rels"} {
		if text := part(t, signed, name); strings.Contains(text, "ns0") || !strings.Contains(text, `<Relationships xmlns="`) {
			t.Errorf("%s: %s", name, text)
		}
	}
	if r := verify(t, signed, root); !r.Passed() {
		t.Errorf("%+v", r)
	}
	again := sign(t, signer, sigtest.Zip(prefixed(filesOf(t, signed)), ""))
	if text := part(t, again, docRels); !strings.Contains(text, "ns0:Relationship ") {
		t.Errorf("a signed part was rewritten: %s", text)
	}
	if r := verify(t, again, root); !r.Passed() || len(r.Signatures) != 2 {
		t.Errorf("%+v", r)
	}
	// Nothing is removed that would be lost.
	foreign := with(word(), docRels, strings.Replace(prefixes.Replace(contentOf(t, word(), docRels)), "</ns0:Relationships>", `<x xmlns="urn:x"/></ns0:Relationships>`, 1))
	kept := sign(t, signer, sigtest.Zip(foreign, ""))
	if text := part(t, kept, docRels); !strings.Contains(text, "ns0:Relationship ") || !strings.Contains(text, "urn:x") {
		t.Errorf("foreign markup: %s", text)
	}
	if r := verify(t, kept, root); !r.Passed() {
		t.Errorf("%+v", r)
	}
}
