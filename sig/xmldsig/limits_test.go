// SPDX-License-Identifier: Apache-2.0

package xmldsig_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/xmldsig"
)

// A small document cannot cause much work: many references to the whole document, many
// XPath transforms, many signatures. Each is refused for that reason.
func TestWork(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	data := "<data>" + strings.Repeat("<a b='c'>text</a>", 60_000) + "</data>" // 1 MB
	one := bare(s, "", enveloped(exclusive))
	reference := string(between(t, []byte(one), "<Reference", "</Reference>"))
	many := func(reference string) string {
		return "<d>" + data + strings.Replace(one, "</SignedInfo>", strings.Repeat(reference, 120)+"</SignedInfo>", 1) + "</d>"
	}
	xpath := strings.Replace(reference, exclusive, `<Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"><XPath>`+
		strings.Repeat("self::b or ", 60)+`not(self::b)</XPath></Transform>`, 1)
	for name, text := range map[string]string{"references": many(reference), "XPath": many(xpath)} {
		_, err := sigtest.Try(t, xmldsig.New(), signer, job("XMLTemplate", text))
		if !errors.Is(err, budget.ErrSteps) {
			t.Errorf("%s: signed: %v", name, err)
		}
		filled := strings.ReplaceAll(strings.ReplaceAll(text, "<DigestValue/>", "<DigestValue>AAAA</DigestValue>"), "<SignatureValue/>", "<SignatureValue>AAAA</SignatureValue>")
		var document *sig.ErrDocument
		if r, err := xmldsig.New().Verify(context.Background(), checkOf(filled, root)); !errors.As(err, &document) || !errors.Is(err, budget.ErrSteps) {
			t.Errorf("%s: checked: %v %v", name, r, err)
		}
	}
	filled := string(sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", "<d>"+one+"</d>")))
	copied := string(between(t, []byte(filled), "<Signature ", "</Signature>"))
	r := verify(t, []byte("<d>"+strings.Repeat(copied, 100)+"</d>"), root)
	if len(r.Signatures) != 64 || !hasCode(r.Findings, "too-many-signatures") || r.Passed() {
		t.Errorf("%d signatures judged: %v", len(r.Signatures), r.Findings)
	}
	// References to files count as others do where there are no files.
	beside := strings.Replace(strings.ReplaceAll(reference, `URI=""`, `URI="file.txt"`), "<DigestValue/>", "<DigestValue>AAAA</DigestValue>", 1)
	r = verify(t, []byte("<d>"+strings.Replace(copied, "</SignedInfo>", strings.Repeat(beside, 200)+"</SignedInfo>", 1)+"</d>"), root)
	if !hasCode(r.Signatures[0].Findings, "too-much-work") || len(r.Signatures[0].Findings) > 10 {
		t.Errorf("200 references to files: %d findings, %.300v", len(r.Signatures[0].Findings), r.Signatures[0].Findings)
	}
	// Of very many certificates only the first ones are read.
	crowded := strings.Replace(filled, "<X509Data>", "<X509Data>"+strings.Repeat("<X509Certificate>AAAA</X509Certificate>", 100), 1)
	if codes := sigtest.Codes(verify(t, []byte(crowded), root)); len(codes) != 1 || codes[0] != "certificate-missing" {
		t.Errorf("%v", codes)
	}
	// The path of a deep signature in a deep document is truncated to one line.
	deep := strings.Repeat("<a>", 200) + `<b Id="part">1</b>` + bare(s, "#part", transformsOf(exclusive)) + strings.Repeat("</a>", 200)
	r = mustHold(t, sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", deep)), root)
	if covers := r.Signatures[0].Covers; len(covers) > 200 || !strings.Contains(covers, "/.../") {
		t.Errorf("covers %s", covers)
	}
}

// Names in the document's own alphabet, which must be written again where an empty tag is
// opened.
func TestForeignNames(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	template := `<?xml version="1.0" encoding="windows-1251"?><д>` + strings.ReplaceAll(templateFor(s, s.Hash.XML[0]), "ds:", "эп:") + `<ч Id="part">1</ч></д>`
	template = strings.ReplaceAll(template, "xmlns:ds", "xmlns:эп")
	source, err := charmap.Windows1251.NewEncoder().String(template)
	if err != nil {
		t.Fatal(err)
	}
	signed := sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", source))
	mustHold(t, signed, root)
	text, err := charmap.Windows1251.NewDecoder().Bytes(signed)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte("<эп:KeyInfo><эп:X509Data><эп:X509Certificate>")) || !bytes.Contains(text, []byte("</эп:DigestValue>")) {
		t.Errorf("%s", text)
	}
}
