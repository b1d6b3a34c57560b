// SPDX-License-Identifier: Apache-2.0

package ooxml_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/ooxml"
)

func sign(t testing.TB, signer *sigtest.Party, document []byte, params ...string) []byte {
	t.Helper()
	return sigtest.Make(t, ooxml.New(), signer, job(document, params...))
}

func job(document []byte, params ...string) *sig.Job {
	p := sig.Params{}
	for i := 0; i < len(params); i += 2 {
		p[params[i]] = params[i+1]
	}
	return &sig.Job{Document: bytes.NewReader(document), Params: p}
}

// part returns the content of an entry, read by the standard library.
func part(t testing.TB, document []byte, name string) string {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(document), int64(len(document)))
	if err != nil {
		t.Fatal(err)
	}
	f, err := r.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// raw returns header fields and compressed bytes of all entries by name.
func raw(t testing.TB, document []byte) (names []string, entries map[string]string) {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(document), int64(len(document)))
	if err != nil {
		t.Fatal(err)
	}
	entries = map[string]string{}
	for _, f := range r.File {
		in, err := f.OpenRaw()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, f.Name)
		entries[f.Name] = f.Modified.String() + string(f.Extra) + string(data)
	}
	return names, entries
}

// Every suite signs once and twice, and both signatures are valid.
func TestSuites(t *testing.T) {
	plain := sigtest.Zip(word(), "a comment")
	for _, s := range suite.All() {
		t.Run(s.Name, func(t *testing.T) {
			root := sigtest.Root(t, s)
			signer := root.Authority(t, "Authority").Signer(t, s, "Иван Петров, \"ООО\" <&>")
			document := plain
			for n := 1; n <= 3; n++ {
				document = sign(t, signer, document)
				r := verify(t, document, root)
				if !r.Passed() || len(r.Signatures) != n {
					t.Fatalf("%d signatures, want %d: %+v", len(r.Signatures), n, r)
				}
				for _, got := range r.Signatures {
					if got.Scheme != s.Scheme() || got.Level != "BES" || !got.SigningTime.Equal(sigtest.Time) || !got.Signer.Equal(signer.Certificate) || len(got.Chain) != 3 || slices.ContainsFunc(got.Findings, func(f sig.Finding) bool { return f.Code != "certificate-revocation-unknown" }) {
						t.Errorf("%+v", got)
					}
				}
			}
		})
	}
}

// Entries that need no change are copied byte by byte, and added entries are where Office
// puts them.
func TestLayout(t *testing.T) {
	root := sigtest.Root(t, suite.ECDSAP256)
	signer := root.Signer(t, suite.ECDSAP256, "Signer")
	plain := sigtest.Zip(word(), "a comment")
	once := sign(t, signer, plain)
	twice := sign(t, signer, once)
	before, old := raw(t, plain)
	names, entries := raw(t, once)
	if diff := cmp.Diff(append(before, "_xmlsignatures/origin.sigs", "_xmlsignatures/_rels/origin.sigs.rels", "_xmlsignatures/sig1.xml"), names); diff != "" {
		t.Errorf("entries of the first signature:\n%s", diff)
	}
	for name := range old {
		if (old[name] == entries[name]) == slices.Contains([]string{"[Content_Types].xml", "_rels/.rels"}, name) {
			t.Errorf("%s: is the same: %v", name, old[name] == entries[name])
		}
	}
	if !bytes.HasSuffix(once, []byte("a comment")) {
		t.Error("the comment of the archive is lost")
	}
	names, again := raw(t, twice)
	for name := range entries {
		if (again[name] == entries[name]) == slices.Contains([]string{"[Content_Types].xml", "_xmlsignatures/_rels/origin.sigs.rels"}, name) {
			t.Errorf("second signature: %s: is the same: %v", name, again[name] == entries[name])
		}
	}
	if last := names[len(names)-1]; last != "_xmlsignatures/sig2.xml" || len(names) != len(entries)+1 {
		t.Errorf("second signature: entries %v", names)
	}
	for _, c := range []struct{ name, want string }{
		{"_rels/.rels", `<Relationship Id="rId3" Type="` + rootRel + `digital-signature/origin" Target="_xmlsignatures/origin.sigs"/></Relationships>`},
		{"[Content_Types].xml", `<Default Extension="sigs" ContentType="application/vnd.openxmlformats-package.digital-signature-origin"/>`},
		{"[Content_Types].xml", `<Override PartName="/_xmlsignatures/sig1.xml" ContentType="application/vnd.openxmlformats-package.digital-signature-xmlsignature+xml"/>`},
		{"[Content_Types].xml", `<Override PartName="/_xmlsignatures/sig2.xml" ContentType="application/vnd.openxmlformats-package.digital-signature-xmlsignature+xml"/></Types>`},
		{"_xmlsignatures/_rels/origin.sigs.rels", `<Relationship Id="rId1" Type="` + rootRel + `digital-signature/signature" Target="sig1.xml"/>`},
		{"_xmlsignatures/_rels/origin.sigs.rels", `<Relationship Id="rId2" Type="` + rootRel + `digital-signature/signature" Target="sig2.xml"/></Relationships>`},
		{"_xmlsignatures/sig1.xml", `<Signature xmlns="http://www.w3.org/2000/09/xmldsig#" Id="idPackageSignature"><SignedInfo><CanonicalizationMethod Algorithm="http://www.w3.org/TR/2001/REC-xml-c14n-20010315"/>`},
	} {
		if got := part(t, twice, c.name); !strings.Contains(got, c.want) {
			t.Errorf("%s does not hold %s:\n%s", c.name, c.want, got)
		}
	}
	if n := len(part(t, twice, "_xmlsignatures/origin.sigs")); n != 0 {
		t.Errorf("the origin has %d bytes", n)
	}
}

var manifestURI = regexp.MustCompile(`<Reference URI="([^"?]*)\?ContentType=|SourceId="([^"]*)"`)

// signedOf lists the references of a manifest, with the relationships after their part.
func signedOf(t testing.TB, document []byte, signature string) (out []string) {
	t.Helper()
	for _, m := range manifestURI.FindAllStringSubmatch(part(t, document, signature), -1) {
		out = append(out, m[1]+m[2])
	}
	return out
}

// Which parts are signed: properties and custom XML are left out, and the relationship to
// the origin is never signed.
func TestManifest(t *testing.T) {
	root := sigtest.Root(t, suite.ECDSAP256)
	signer := root.Signer(t, suite.ECDSAP256, "Signer")
	want := []string{
		"/word/commentsExtended.xml", "/word/document.xml", "/word/media/image1.png", "/word/styles.xml",
		"/_rels/.rels", "rId1",
		"/word/_rels/document.xml.rels", "rId10", "rId2", "rId1", "rId3", "rId4", "rId5",
	}
	once := sign(t, signer, sigtest.Zip(word(), ""))
	twice := sign(t, signer, once)
	for _, name := range []string{"_xmlsignatures/sig1.xml", "_xmlsignatures/sig2.xml"} {
		if diff := cmp.Diff(want, signedOf(t, twice, name)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	r := verify(t, twice, root)
	const covers = "4 parts: /word/commentsExtended.xml, /word/document.xml, /word/media/image1.png, /word/styles.xml; " +
		"relationships in 2 parts: /_rels/.rels, /word/_rels/document.xml.rels; not covered: /customXml/item1.xml, /docProps/core.xml"
	for _, s := range r.Signatures {
		if s.Covers != covers {
			t.Errorf("covers %s", s.Covers)
		}
	}
}

// Valid packages that differ from those of Word.
func TestPackages(t *testing.T) {
	root := sigtest.Root(t, suite.ECDSAP256)
	signer := root.Signer(t, suite.ECDSAP256, "Signer")
	last := append(word()[1:], word()[0])
	var descriptors []sigtest.ZipEntry
	for i, f := range word() {
		if !f.Store {
			f.Descriptor = []string{"small", "large", "bare", "none"}[i%4]
		}
		f.Extra = "\x22\x00\x03\x00abc"
		descriptors = append(descriptors, f)
	}
	var large []sigtest.ZipEntry
	for _, f := range word() {
		f.Zip64 = true
		large = append(large, f)
	}
	strict := word()
	for i := range strict {
		strict[i].Content = strings.ReplaceAll(strict[i].Content, officeRel, strictRel)
	}
	for name, files := range map[string][]sigtest.ZipEntry{
		"content types last": last,
		"descriptors":        descriptors,
		"zip64 sizes":        large,
		"strict":             strict,
		"letter case":        replaced(t, word(), "word/_rels/document.xml.rels", "/word/styles.xml", "/WORD/Styles.XML"),
		"percent-encoding":   replaced(t, edit(word(), "word/media/image1.png", func(f *sigtest.ZipEntry) { f.Name = "word/media/image%201.png" }), "word/_rels/document.xml.rels", "media/image1.png", "media/image 1.png"),
		"cyrillic name":      replaced(t, edit(word(), "word/media/image1.png", func(f *sigtest.ZipEntry) { f.Name = "word/media/рис 1.png" }), "word/_rels/document.xml.rels", "media/image1.png", "media/%D1%80%D0%B8%D1%81%201.png"),
		"backslash":          replaced(t, word(), "word/_rels/document.xml.rels", "media/image1.png", `media\image1.png`),
		"dots":               replaced(t, word(), "word/_rels/document.xml.rels", "media/image1.png", "./../word/media/image1.png"),
		"prefixes": replaced(t, replaced(t, word(), "_rels/.rels", "<Relationships xmlns=", "<Relationships xmlns:x='urn:x' xmlns="), "[Content_Types].xml",
			contentOf(t, word(), "[Content_Types].xml"), strings.NewReplacer("<Types xmlns=", "<c:Types xmlns:c=", "<Default", "<c:Default", "<Override", "<c:Override", "</Types", "</c:Types").Replace(contentOf(t, word(), "[Content_Types].xml"))),
		"pretty-printed":        with(word(), "word/_rels/document.xml.rels", strings.ReplaceAll(contentOf(t, word(), "word/_rels/document.xml.rels"), "<Relationship ", "\r\n  <!-- x --> <Relationship ")),
		"extension is free":     replaced(t, word(), "[Content_Types].xml", `<Default Extension="png"`, `<Default Extension="sigs" ContentType="x/y"/><Default Extension="png"`),
		"relationships by name": replaced(t, word(), "[Content_Types].xml", `<Default Extension="rels" ContentType="`+relsType+`"/>`, override("/_rels/.rels", relsType)+override("/"+docRels, relsType)),
		"names are taken":       with(with(word(), "_xmlsignatures/origin.sigs", "x"), "_XMLSignatures/Sig1.xml", "<a/>"),
		"a byte behind":         edit(word(), "docProps/core.xml", func(f *sigtest.ZipEntry) { f.Prefix = "\x00" }),
		"part of itself":        replaced(t, word(), "word/_rels/document.xml.rels", "media/image1.png", "#bookmark"),
		"link out":              replaced(t, word(), "word/_rels/document.xml.rels", "media/image1.png", "../../../../word/media/image1.png"),
	} {
		t.Run(name, func(t *testing.T) {
			document := sigtest.Zip(files, "")
			for range 2 {
				document = sign(t, signer, document)
				r := verify(t, document, root)
				if !r.Passed() {
					t.Fatalf("%+v", r)
				}
			}
			if _, entries := raw(t, document); len(entries) != len(files)+5-1 && name != "names are taken" {
				t.Errorf("%d entries of %d", len(entries), len(files))
			}
		})
	}
}

// A document in which another program put the origin of signatures elsewhere.
func TestOtherOrigin(t *testing.T) {
	root := sigtest.Root(t, suite.ECDSAP256)
	const folder = "package/services/digital-signature/"
	files := replaced(t, with(word(), folder+"origin.psdsor", ""), "_rels/.rels", "</Relationships>", rel("R1", rootRel+"digital-signature/origin", "/"+folder+"origin.psdsor", "")+"</Relationships>")
	files = replaced(t, files, "[Content_Types].xml", "</Types>", `<Default Extension="psdsor" ContentType="application/vnd.openxmlformats-package.digital-signature-origin"/></Types>`)
	signed := sign(t, root.Signer(t, suite.ECDSAP256, "Signer"), sigtest.Zip(files, ""))
	if r := verify(t, signed, root); !r.Passed() {
		t.Errorf("%+v", r)
	}
	names, _ := raw(t, signed)
	if diff := cmp.Diff([]string{folder + "_rels/origin.psdsor.rels", folder + "sig1.xml"}, names[len(files):]); diff != "" {
		t.Errorf("added:\n%s", diff)
	}
}

// The digest of relationships does not depend on how they are written.
func TestPrettyPrinted(t *testing.T) {
	signer := sigtest.Root(t, suite.ECDSAP256).Signer(t, suite.ECDSAP256, "Signer")
	digest := func(files []sigtest.ZipEntry) string {
		text := part(t, sign(t, signer, sigtest.Zip(files, "")), "_xmlsignatures/sig1.xml")
		_, behind, _ := strings.Cut(text, `URI="/word/_rels/document.xml.rels`)
		_, behind, _ = strings.Cut(behind, "<DigestValue>")
		value, _, _ := strings.Cut(behind, "<")
		return value
	}
	want := digest(word())
	plain := contentOf(t, word(), "word/_rels/document.xml.rels")
	for name, other := range map[string]string{
		"white space": strings.ReplaceAll(plain, "<Relationship ", "\n\t<Relationship "),
		"a prefix":    strings.NewReplacer("<Relationships xmlns=", "<p:Relationships xmlns:p=", "</R", "</p:R", "<Relationship ", "<p:Relationship ").Replace(plain),
		"attributes":  strings.NewReplacer("<Relationship ", "<Relationship x:y='1' ", "<Relationships ", "<Relationships xmlns:x='urn:x' ").Replace(plain),
		"elements":    strings.NewReplacer("<Relationship ", "<y xmlns='urn:y'><z/></y><Relationship ").Replace(plain),
		"comments":    strings.NewReplacer("<Relationship ", "<!-- x --><Relationship ").Replace(plain),
		"content":     strings.ReplaceAll(plain, `Target="NULL"/>`, `Target="NULL"> </Relationship>`),
		"the default": strings.ReplaceAll(plain, `Target="NULL"`, `TargetMode="Internal" Target="NULL"`),
		"the order":   strings.Replace(strings.Replace(plain, rel("rId5", officeRel+"image", "NULL", ""), "", 1), "<Relationship ", rel("rId5", officeRel+"image", "NULL", "")+"<Relationship ", 1),
		"references":  strings.ReplaceAll(plain, "media", "&#109;edia"),
	} {
		if plain == other {
			t.Fatalf("%s: nothing changed", name)
		}
		files := with(word(), "word/_rels/document.xml.rels", other)
		// The order of the references to relationships is that of the part. It does not
		// change the digest.
		if got := digest(files); got != want {
			t.Errorf("%s: digest %s, want %s", name, got, want)
		}
	}
	if digest(replaced(t, word(), "word/_rels/document.xml.rels", "NULL", "NUL")) == want {
		t.Error("the target does not take part in the digest")
	}
}

// TestStored: small new entries are not compressed, larger ones are.
func TestStored(t *testing.T) {
	signer := sigtest.Root(t, suite.ECDSAP256).Signer(t, suite.ECDSAP256, "Signer")
	var links strings.Builder
	for i := range 100 {
		links.WriteString(rel(fmt.Sprintf("rId%d", 1000+i), officeRel+"hyperlink", "https://example.org/", "External"))
	}
	for _, test := range []struct {
		more string
		want uint16
	}{{"", zip.Store}, {links.String(), zip.Deflate}} {
		signed := sign(t, signer, sigtest.Zip(replaced(t, word(), docRels, "</Relationships>", test.more+"</Relationships>"), ""))
		r, err := zip.NewReader(bytes.NewReader(signed), int64(len(signed)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.File {
			switch f.Name {
			case sig1:
				if f.Method != test.want || (f.UncompressedSize64 > 8<<10) != (test.want == zip.Deflate) {
					t.Errorf("the signature of %d bytes is compressed by method %d, want %d", f.UncompressedSize64, f.Method, test.want)
				}
			case originRels:
				if f.Method != zip.Store {
					t.Errorf("%s is compressed", f.Name)
				}
			}
		}
	}
}

// The same job gives the same state, and Finish refuses a state of another job.
func TestState(t *testing.T) {
	root := sigtest.Root(t, suite.GOST2012x256)
	signer, other := root.Signer(t, suite.GOST2012x256, "Signer"), root.Signer(t, suite.GOST2012x256, "Other")
	document := sigtest.Zip(word(), "")
	prepare := func() *sig.Prepared {
		j := job(document)
		j.Certificate, j.Time = signer.Certificate, sigtest.Time
		p, err := ooxml.New().Prepare(context.Background(), j)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := prepare()
	if q := prepare(); !bytes.Equal(p.State, q.State) || !bytes.Equal(p.Digest.Sum, q.Digest.Sum) {
		t.Error("two runs differ")
	}
	value := signer.Sign(t, p.Digest)
	finish := func(document []byte, by *sigtest.Party, state, value []byte) error {
		j := job(document)
		j.Certificate = by.Certificate
		_, err := ooxml.New().Finish(context.Background(), j, state, value)
		return err
	}
	old, err := ooxml.JSONState(p.State)
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range [][]byte{p.State, old} {
		if err := finish(document, signer, state, value); err != nil {
			t.Error(err)
		}
	}
	changed := sigtest.Zip(replaced(t, word(), "word/document.xml", "Договор", "Договер"), "")
	for name, err := range map[string]error{
		"another certificate": finish(document, other, p.State, value),
		"another document":    finish(changed, signer, p.State, value),
		"another size":        finish(sigtest.Zip(word(), "x"), signer, p.State, value),
		"no archive":          finish(make([]byte, len(document)), signer, p.State, value),
		"cut off":             finish(document, signer, p.State[:len(p.State)/2], value),
		"another version":     finish(document, signer, append([]byte{9}, p.State[1:]...), value),
		"JSON of version 2":   finish(document, signer, bytes.Replace(old, []byte(`"v":1`), []byte(`"v":2`), 1), value),
	} {
		var e *sig.ErrState
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := finish(document, signer, p.State, value[1:]); err == nil {
		t.Error("a value of a wrong length goes in")
	}
}

func TestParams(t *testing.T) {
	root := sigtest.Root(t, suite.ECDSAP256)
	below := root.Authority(t, "Authority").Signer(t, suite.ECDSAP256, "Signer")
	for value, want := range map[string]int{"True": 2, "False": 1, "": 2} {
		text := part(t, sign(t, below, sigtest.Zip(word(), ""), "IncludeCertChain", value), "_xmlsignatures/sig1.xml")
		if got := strings.Count(text, "<X509Certificate>"); got != want {
			t.Errorf("IncludeCertChain=%s: %d certificates, want %d", value, got, want)
		}
	}
	signer := sigtest.Root(t, suite.GOST2012x256).Signer(t, suite.GOST2012x256, "Signer")
	_, err := sigtest.Try(t, ooxml.New(), signer, job(sigtest.Zip(word(), ""), "Hash", "True", "IncludeCertChain", "maybe", "HashAlgorithm", "SHA-256"))
	if diff := cmp.Diff([]string{"IncludeCertChain", "Hash", "HashAlgorithm"}, sigtest.Faults(err)); diff != "" {
		t.Errorf("faults: %v\n%s", err, diff)
	}
	sign(t, signer, sigtest.Zip(word(), ""), "HashAlgorithm", "GR 34.11-2012 256", "Whatever", "x")
}
