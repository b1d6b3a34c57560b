// SPDX-License-Identifier: Apache-2.0

package asic_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/asic"
)

// transformed returns a XAdES container of one file whose reference has a transform and the digest of another content.
func transformed(t testing.TB, signer *sigtest.Party, file, algorithm, digested string) []sigtest.ZipEntry {
	t.Helper()
	job := &sig.Job{Name: "a.xml", Document: strings.NewReader(file), Params: mode{"E", "XAdES"}.params()}
	all := asZip(t, sigtest.Make(t, asic.New(), signer, job))
	last := &all[len(all)-1]
	before, rest, _ := strings.Cut(last.Content, "<ds:SignedInfo>")
	info, rest, _ := strings.Cut(rest, "</ds:SignedInfo>")
	_, rest, cut := strings.Cut(rest, "</ds:SignatureValue>")
	sum := func(content string) string {
		return "<ds:DigestValue>" + base64.StdEncoding.EncodeToString(signer.Suite.Hash.Digest([]byte(content)).Sum)
	}
	changed := strings.Replace(info, sum(file), sum(digested), 1)
	changed = strings.Replace(changed, ` URI="a.xml">`, ` URI="a.xml"><ds:Transforms><ds:Transform Algorithm="`+algorithm+`"></ds:Transform></ds:Transforms>`, 1)
	if !cut || file != digested && strings.Contains(changed, sum(file)) || !strings.Contains(changed, "Transforms") {
		t.Fatalf("the signature has another form: %s", last.Content)
	}
	const open = `<ds:SignedInfo xmlns:ds="http://www.w3.org/2000/09/xmldsig#">`
	value := signer.Sign(t, signer.Suite.Hash.Digest([]byte(open+changed+"</ds:SignedInfo>")))
	last.Content = before + "<ds:SignedInfo>" + changed + "</ds:SignedInfo><ds:SignatureValue>" + base64.StdEncoding.EncodeToString(value) + "</ds:SignatureValue>" + rest
	return all
}

// A signature of a canonical form does not cover the bytes of a file, unless they are that form.
func TestCanonicalFile(t *testing.T) {
	const form = "http://www.w3.org/TR/2001/REC-xml-c14n-20010315"
	root, signer := parties(t, suite.RSASHA256)
	const canonical = `<a b="1"><c></c></a>`
	for _, c := range []struct{ name, file, want, covers string }{
		{"the form itself", canonical, "passed : a.xml[0]", "the file a.xml"},
		{"a comment", `<a b="1"><c></c><!-- pay twice --></a>`, "passed covers-part file-not-covered: a.xml[]", "the XML content of the file a.xml, not its bytes"},
		{"space in a tag", `<a  b='1'><c/></a>`, "passed covers-part file-not-covered: a.xml[]", "the XML content of the file a.xml, not its bytes"},
		{"something behind", canonical + "<!-- -->", "passed covers-part file-not-covered: a.xml[]", "the XML content of the file a.xml, not its bytes"},
		{"other content", `<a b="2"><c></c></a>`, "failed covers-part digest-mismatch file-not-covered: a.xml[]", "the file a.xml, which is not as it was signed"},
	} {
		made := sigtest.Zip(transformed(t, signer, c.file, form, canonical), "")
		r := verified(t, root, made)
		if got := describe(r); got != c.want || !strings.Contains(r.Signatures[0].Covers, c.covers) {
			t.Errorf("%s:\n got %s, covers %s\nwant %s, covers %s", c.name, got, r.Signatures[0].Covers, c.want, c.covers)
		}
		if strict, err := strictly(root, made, ""); err != nil || (strict.Verdict() == sig.Passed) != (c.file == canonical) {
			t.Errorf("%s: strict check: %v, %v", c.name, strict, err)
		}
	}
}
