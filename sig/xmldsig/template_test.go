// SPDX-License-Identifier: Apache-2.0

package xmldsig_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/xmldsig"
)

const (
	excC14N   = "http://www.w3.org/2001/10/xml-exc-c14n#"
	smevURN   = "urn://smev-gov-ru/xmldsig/transform"
	outOfIt   = `<Transform Algorithm="http://www.w3.org/2000/09/xmldsig#enveloped-signature"/>`
	exclusive = `<Transform Algorithm="` + excC14N + `"/>`
)

// Each supported reference and transform of a template is filled, verified, and refused
// with a letter changed in the covered text.
func TestTransforms(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	for _, test := range []struct{ name, uri, transforms, covers string }{
		{"c14n before enveloped", "", transformsOf(exclusive + outOfIt), "without this signature"},
		{"c14n before enveloped, twice", "", transformsOf(exclusive + outOfIt + exclusive), "without this signature"},
		{"c14n before enveloped, elsewhere", "#part", transformsOf(exclusive + outOfIt), "a:счёт"},
		{"SMEV", "#part", transformsOf(exclusive + `<Transform Algorithm="` + smevURN + `"/>`), "in the form of SMEV 3"},
		{"SMEV alone", "#part", transformsOf(`<Transform Algorithm="` + smevURN + `"/>`), "in the form of SMEV 3"},
		{"SMEV in the middle", "#part", transformsOf(exclusive + `<Transform Algorithm="` + smevURN + `"/>` + exclusive), "in the form of SMEV 3"},
		{"xpointer", "#xpointer(id(&quot;part&quot;))", transformsOf(exclusive), "a:счёт"},
		{"XPath", "", transformsOf(`<Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"><XPath xmlns:a="urn:test:a">ancestor-or-self::a:счёт</XPath></Transform>`), "only the nodes that XPath selects"},
		{"filters", "", transformsOf(`<Transform Algorithm="http://www.w3.org/2002/06/xmldsig-filter2"><XPath xmlns="http://www.w3.org/2002/06/xmldsig-filter2" Filter="intersect" xmlns:a="urn:test:a">//a:счёт</XPath>` +
			`<XPath xmlns="http://www.w3.org/2002/06/xmldsig-filter2" xmlns:d="urn:test:doc" Filter="union">//d:b64</XPath></Transform>`), "only the nodes that XPath selects"},
		{"with comments", "#xpointer(/)", enveloped(`<Transform Algorithm="http://www.w3.org/2006/12/xml-c14n11#WithComments"/>`), "the whole document"},
	} {
		t.Run(test.name, func(t *testing.T) {
			template := withTemplate(strings.ReplaceAll(bare(s, test.uri, test.transforms), "<SignatureValue/>", "<SignatureValue>\n</SignatureValue>"))
			signed := sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", template))
			r := mustHold(t, signed, root)
			if !strings.Contains(r.Signatures[0].Covers, test.covers) {
				t.Errorf("covers %s", r.Signatures[0].Covers)
			}
			bad := bytes.Replace(signed, []byte("привет"), []byte("привот"), 1)
			if codes := sigtest.Codes(verify(t, bad, root)); len(codes) != 1 || codes[0] != "digest-mismatch" {
				t.Errorf("a letter changed: %v", codes)
			}
		})
	}
}

// Base64 of an element is its decoded bytes: markup inside the text does not change them.
func TestBase64Transform(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	template := `<d><b64 Id="part">AAEC<x>AwQF</x></b64>` + bare(s, "#part", transformsOf(`<Transform Algorithm="http://www.w3.org/2000/09/xmldsig#base64"/>`)) + `</d>`
	signed := sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", template))
	mustHold(t, signed, root)
	mustHold(t, bytes.Replace(signed, []byte("AAEC<x>AwQF</x>"), []byte("AA EC AwQF"), 1), root)
	if verify(t, bytes.Replace(signed, []byte("AAEC"), []byte("AAED"), 1), root).Passed() {
		t.Error("accepted with other bytes")
	}
}

// The first empty template is filled, or the one with the requested index. Nested
// templates and those of a document that is signed already work too.
func TestWhichTemplate(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	part := func(uri string) string { return bare(s, uri, transformsOf(exclusive)) }
	inner := strings.Replace(part("#two"), "<Signature ", `<Signature Id="inner" `, 1)
	outer := strings.Replace(part("#inner"), "</Signature>", "<Object>"+inner+"</Object></Signature>", 1)
	text := `<d><a Id="one">1</a><b Id="two">2</b>` + part("#one") + outer + `</d>`
	// Inside out: the outer one covers the inner one, filled.
	for _, step := range []string{"0", "2", ""} {
		j := job("XMLTemplate", text)
		if step != "" {
			j.Params["SignatureIndex"] = step
		}
		text = string(sigtest.Make(t, xmldsig.New(), signer, j))
	}
	r := mustHold(t, []byte(text), root)
	if len(r.Signatures) != 3 || !strings.Contains(r.Signatures[1].Covers, `Signature with id "inner"`) {
		t.Errorf("%d signatures, the second covers %s", len(r.Signatures), r.Signatures[1].Covers)
	}
	for index, want := range map[string]string{"1": "filled already", "7": "has 3 Signature elements", "x": "not a number", "-1": "not a number", "": "each of its 3 signatures is filled"} {
		if _, err := sigtest.Try(t, xmldsig.New(), signer, job("XMLTemplate", text, "SignatureIndex", index)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("index %q: %v", index, err)
		}
	}
	if r := verify(t, []byte(strings.Replace(text, "<b Id=\"two\">2", "<b Id=\"two\">3", 1)), root); r.Passed() || !r.Signatures[0].Passed() || r.Signatures[2].Passed() {
		t.Errorf("%s", texts(r))
	}
}

// A reference may cover KeyInfo, or the security token in its place: the certificate is
// filled in before it is digested.
func TestCoveredKey(t *testing.T) {
	s := suite.GOST2001
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	key := strings.Replace(bare(s, "#key", transformsOf(exclusive)), "<KeyInfo>", `<KeyInfo Id="key">`, 1)
	signed := sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", "<d>"+key+"</d>"))
	mustHold(t, signed, root)

	const wsse = `xmlns:wsse="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd" xmlns:wsu="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd"`
	token := strings.Replace(bare(s, "#token", transformsOf(exclusive)), "<X509Data/>", `<wsse:SecurityTokenReference><wsse:Reference URI="#token"/></wsse:SecurityTokenReference>`, 1)
	signed = sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", `<d `+wsse+`><wsse:BinarySecurityToken wsu:Id="token"></wsse:BinarySecurityToken>`+token+"</d>"))
	mustHold(t, signed, root)

	// A KeyInfo with content stays unchanged, and a missing one is not added.
	for _, info := range []string{"<KeyInfo><KeyName>k</KeyName></KeyInfo>", ""} {
		template := "<d>" + strings.Replace(strings.Replace(key, `<KeyInfo Id="key"><X509Data/></KeyInfo>`, info, 1), "#key", "", 1) + "</d>"
		template = strings.Replace(template, exclusive, outOfIt+exclusive, 1)
		signed = sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", template))
		if !bytes.Contains(signed, []byte("</SignatureValue>"+info+"</Signature>")) {
			t.Errorf("%s", signed)
		}
		if codes := sigtest.Codes(verify(t, signed, root)); len(codes) != 1 || codes[0] != "certificate-missing" {
			t.Errorf("%v", codes)
		}
	}
	for _, info := range []string{"<KeyInfo> \n</KeyInfo>", "<KeyInfo><X509Data><X509Certificate/></X509Data></KeyInfo>"} {
		template := strings.Replace(key, `<KeyInfo Id="key"><X509Data/></KeyInfo>`, strings.Replace(info, "<KeyInfo", `<KeyInfo Id="key"`, 1), 1)
		mustHold(t, sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", "<d>"+template+"</d>")), root)
	}
}

// A template that cannot be signed is refused with the reason and its place.
func TestRefusedTemplates(t *testing.T) {
	s := suite.GOST2012x256
	signer := sigtest.Root(t, s).Signer(t, s, "Signer")
	good := bare(s, "", enveloped(exclusive))
	replace := func(old, new string) string {
		out := strings.Replace(good, old, new, 1)
		if out == good {
			t.Fatalf("%s is not in the template", old)
		}
		return out
	}
	for _, test := range []struct{ name, template, want string }{
		{"no template", "<x/>", "has no template"},
		{"another namespace", strings.Replace(good, "2000/09/xmldsig#", "2000/09/xmldsig", 1), "has no template"},
		{"no SignedInfo", `<Signature xmlns="http://www.w3.org/2000/09/xmldsig#"><SignatureValue/></Signature>`, "line 2, column 3: Signature has no SignedInfo"},
		{"no value", replace("<SignatureValue/>", ""), "no SignatureValue"},
		{"two SignedInfo", replace("<SignatureValue/>", "<SignedInfo/><SignatureValue/>"), "no SignatureValue after"},
		{"something else", replace("</KeyInfo>", "</KeyInfo><x xmlns=''/>"), "x is out of place"},
		{"text", replace("<SignedInfo>", "text<SignedInfo>"), "text between"},
		{"no canonical form", replace("http://www.w3.org/TR/2001/REC-xml-c14n-20010315", "urn:x"), "CanonicalizationMethod \"urn:x\""},
		{"no reference", replace(good[strings.Index(good, "<Reference"):strings.Index(good, "</SignedInfo>")], ""), "no Reference"},
		{"another key", replace(s.XML[0], suite.GOST2012x512.XML[0]), "is GOST R 34.10-2012 512 bit, but the certificate's key is of GOST R 34.10-2012 256 bit"},
		{"an unknown algorithm", replace(s.XML[0], "urn:rot13"), `SignatureMethod "urn:rot13" is unknown`},
		{"SHA-1", replace(s.Hash.XML[0]+`"/><Dig`, "http://www.w3.org/2000/09/xmldsig#sha1\"/><Dig"), "is refused"},
		{"an unknown digest", replace(s.Hash.XML[0]+`"/><Dig`, "urn:x\"/><Dig"), `algorithm not supported: DigestMethod "urn:x"`},
		{"a filled digest", replace("<DigestValue/>", "<DigestValue>AAAA</DigestValue>"), "not empty"},
		{"XSLT", replace(exclusive, `<Transform Algorithm="http://www.w3.org/TR/1999/REC-xslt-19991116"/>`), "XSLT is refused"},
		{"an unknown transform", replace(exclusive, `<Transform Algorithm="urn:x"/>`), `the transform "urn:x" is not allowed`},
		{"a transform with a parameter", replace(exclusive, `<Transform Algorithm="`+smevURN+`"><x/></Transform>`), "no parameters"},
		{"XPath outside the grammar", replace(exclusive, `<Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"><XPath>document('x')</XPath></Transform>`), "document"},
		{"XPath of nothing", replace(exclusive, `<Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"/>`), "one element XPath"},
		{"a remote reference", replace(`URI=""`, `URI="http://example.com/"`), "leaves the document"},
		{"a file", replace(`URI=""`, `URI="other.xml"`), "leaves the document"},
		{"xpointer of something", replace(`URI=""`, `URI="#xpointer(//x)"`), "no plain identifier"},
		{"no URI", replace(`URI=""`, ``), "no URI"},
		{"a missing identifier", replace(`URI=""`, `URI="#missing"`), "has no target"},
		{"a doubled identifier", `<x ID="two"/><y id="two"/>` + replace(`URI=""`, `URI="#two"`), "ambiguous: 2 elements"},
		{"its own value", replace(outOfIt, ""), "covers the value or a time stamp of its own signature"},
		{"its own SignedInfo", strings.NewReplacer(`URI=""`, `URI="#info"`, "<SignedInfo>", `<SignedInfo Id="info">`, outOfIt, "").Replace(good), "covers the value or a time stamp of its own signature"},
		{"nothing", replace(exclusive, `<Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"><XPath>self::nothing</XPath></Transform>`), "nothing to sign"},
		{"a form as Base64", replace(exclusive, exclusive+`<Transform Algorithm="http://www.w3.org/2000/09/xmldsig#base64"/>`), "not Base64"},
		{"text as nodes", `<x Id="t">AAEC</x>` + strings.Replace(replace(`URI=""`, `URI="#t"`), outOfIt, `<Transform Algorithm="http://www.w3.org/2000/09/xmldsig#base64"/>`, 1), "a transform needs XML"},
		{"too many references", replace("<Reference", strings.Repeat("<Reference/>", 200)+"<Reference"), "at most 128"},
		{"too many transforms", replace(exclusive, strings.Repeat(exclusive, 9)), "at most 8"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := sigtest.Try(t, xmldsig.New(), signer, job("XMLTemplate", "<d>\n  "+test.template+"</d>"))
			var bad *sig.ErrDocument
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if err != nil && !strings.Contains(err.Error(), "line ") && !strings.Contains(err.Error(), "no template") {
				t.Errorf("no place in %v", err)
			}
		})
	}
}
