// SPDX-License-Identifier: Apache-2.0

package xmldsig_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig/xmldsig"
)

// ids are the elements of the tests that are identified by their attribute Id.
var ids = []string{"счёт", "Object", "SignedProperties"}

// xmlsec accepts signatures by RSA and ECDSA of every kind and level. It refuses them
// with one byte changed in the signed data, in SignedInfo, or in the value.
func TestXMLSecJudges(t *testing.T) {
	x := judge.XMLSec(t)
	for n, s := range []*suite.Suite{suite.RSASHA256, suite.ECDSAP256} {
		root := sigtest.Root(t, s)
		authority := root.Authority(t, "Authority")
		signer := authority.Signer(t, s, "Иван Петров")
		for i, kind := range kinds {
			for j, level := range []string{"None", "BES"} {
				if kind == "XMLTemplate" && level != "None" || kind != "XMLTemplate" && leftOut(n+i, j, 2) {
					continue
				}
				t.Run(s.Name+"/"+kind+"/"+level, func(t *testing.T) {
					signed := sigtest.Make(t, xmldsig.New(), signer, jobOf(kind, s, "XAdESType", level, "IncludeCertChain", "True"))
					if err := x.Verify(signed, root.PEM(), sigtest.Time, ids...); err != nil {
						t.Errorf("refused by xmlsec: %v\n%s", err, signed)
					}
					mustHold(t, signed, root)
					for name, bad := range broken(t, signed) {
						if x.Verify(bad, root.PEM(), sigtest.Time, ids...) == nil {
							t.Errorf("%s changed, accepted by xmlsec", name)
						}
						if verify(t, bad, root).Passed() {
							t.Errorf("%s changed, accepted by us", name)
						}
					}
				})
			}
		}
		t.Run(s.Name+"/Base64", func(t *testing.T) {
			signed := sigtest.Make(t, xmldsig.New(), signer, job("XMLEnveloping", "a text\x00\xff, not XML", "IncludeCertChain", "1", "XAdESType", "BES"))
			if err := x.Verify(signed, root.PEM(), sigtest.Time, ids...); err != nil {
				t.Errorf("refused by xmlsec: %v\n%s", err, signed)
			}
			mustHold(t, signed, root)
		})
	}
}

// broken returns copies of a signed document, each with one change.
func broken(t testing.TB, signed []byte) map[string][]byte {
	t.Helper()
	out := map[string][]byte{
		"an attribute":       bytes.Replace(signed, []byte(`сумма='100'`), []byte(`сумма='101'`), 1),
		"text":               bytes.Replace(signed, []byte("привет"), []byte("привот"), 1),
		"an element":         bytes.Replace(signed, []byte("<other"), []byte("<mother/><other"), 1),
		"the method":         bytes.Replace(signed, []byte("2001/10/xml-exc-c14n#\""), []byte("2001/10/xml-exc-c14n#WithComments\""), 1),
		"the digest":         flip(t, signed, "DigestValue>"),
		"the value":          flip(t, signed, "SignatureValue>"),
		"an instruction":     bytes.Replace(signed, []byte("<?app x?>"), []byte("<?app y?>"), 1),
		"the default prefix": bytes.Replace(signed, []byte("urn:test:doc"), []byte("urn:test:dog"), 1),
	}
	for name, b := range out {
		if bytes.Equal(b, signed) {
			t.Fatalf("%s is not in\n%s", name, signed)
		}
	}
	return out
}

// flip changes the third character after a tag, which is Base64.
func flip(t testing.TB, signed []byte, tag string) []byte {
	t.Helper()
	out := bytes.Clone(signed)
	i := bytes.Index(out, []byte(tag))
	if i < 0 {
		t.Fatalf("%s is not in\n%s", tag, signed)
	}
	c := &out[i+len(tag)+2]
	if *c == 'A' {
		*c = 'B'
	} else {
		*c = 'A'
	}
	return out
}

// gostJury checks signatures without any code of ours: xmllint makes the canonical forms
// of parts that are cut out of the document by text search, OpenSSL makes the digests and
// verifies the value.
type gostJury struct {
	xml     *judge.XMLTools
	openssl *judge.Tool
}

func (j *gostJury) digest(t *testing.T, s *suite.Suite, document []byte) string {
	t.Helper()
	canonical, err := j.xml.Canonical("--exc-c14n", document)
	if err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	j.openssl.Write("bytes", canonical)
	if _, err := j.openssl.Run("dgst", digestFlags[s], "-binary", "-out", "digest", "bytes"); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(j.openssl.Read("digest"))
}

var digestFlags = map[*suite.Suite]string{
	suite.GOST2001:     "-md_gost94",
	suite.GOST2012x256: "-md_gost12_256",
	suite.GOST2012x512: "-md_gost12_512",
}

// value verifies SignatureValue over SignedInfo.
func (j *gostJury) value(t *testing.T, s *suite.Suite, signed []byte) error {
	t.Helper()
	info := between(t, signed, "<ds:SignedInfo>", "</ds:SignedInfo>")
	info = bytes.Replace(info, []byte("<ds:SignedInfo"), []byte(`<ds:SignedInfo xmlns:ds="http://www.w3.org/2000/09/xmldsig#"`), 1)
	canonical, err := j.xml.Canonical("--exc-c14n", info)
	if err != nil {
		t.Fatal(err)
	}
	j.openssl.Write("bytes", canonical)
	j.openssl.Write("value", inside(t, signed, "SignatureValue"))
	j.openssl.Write("cert.der", inside(t, signed, "X509Certificate"))
	if out, err := j.openssl.Run("x509", "-inform", "DER", "-in", "cert.der", "-noout", "-pubkey"); err != nil {
		t.Fatal(err)
	} else {
		j.openssl.Write("pub.pem", []byte(out))
	}
	_, err = j.openssl.Run("dgst", digestFlags[s], "-verify", "pub.pem", "-signature", "value", "bytes")
	return err
}

// inside decodes the Base64 of the first element with a name.
func inside(t testing.TB, b []byte, name string) []byte {
	t.Helper()
	text := between(t, b, "<ds:"+name+">", "</ds:"+name+">")
	text = text[len("<ds:"+name+">") : len(text)-len("</ds:"+name+">")]
	out, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// digestValues are all of a document, in order.
func digestValues(signed []byte) (out []string) {
	for _, part := range bytes.Split(signed, []byte("<ds:DigestValue>"))[1:] {
		value, _, _ := bytes.Cut(part, []byte("<"))
		out = append(out, string(value))
	}
	return out
}

// xmllint and OpenSSL together accept GOST signatures of every kind and profile, and
// refuse them with the value or SignedInfo changed.
func TestGOSTJury(t *testing.T) {
	j := &gostJury{judge.XMLSec(t), judge.OpenSSL(t)}
	// xmllint keeps comments; these documents have none that matter.
	plain := strings.NewReplacer("<!-- счёт -->", "", "<!-- end -->", "").Replace(document)
	for s := range digestFlags {
		root := sigtest.Root(t, s)
		signer := root.Signer(t, s, "Signer")
		for _, kind := range kinds {
			t.Run(s.Name+"/"+kind, func(t *testing.T) {
				text := plain
				if kind == "XMLTemplate" {
					text = strings.Replace(plain, "<empty/>", templateFor(s, s.Hash.XML[0]), 1)
				}
				signed := sigtest.Make(t, xmldsig.New(), signer, job(kind, text))
				if err := j.value(t, s, signed); err != nil {
					t.Errorf("the value is refused: %v\n%s", err, signed)
				}
				for _, tag := range []string{"<ds:SignatureValue>", "<ds:DigestValue>"} {
					if j.value(t, s, flip(t, signed, tag)) == nil {
						t.Errorf("accepted with %s changed", tag)
					}
				}
				signature := between(t, signed, "<ds:Signature ", "</ds:Signature>")
				without := bytes.Replace(signed, signature, nil, 1)
				var want []string
				switch kind {
				case "XMLEnveloped":
					want = append(want, j.digest(t, s, without))
				case "XMLEnveloping":
					object := between(t, signed, "<ds:Object", "</ds:Object>")
					object = bytes.Replace(object, []byte("<ds:Object"), []byte(`<ds:Object xmlns:ds="http://www.w3.org/2000/09/xmldsig#"`), 1)
					want = append(want, j.digest(t, s, object))
				case "XMLTemplate":
					part := between(t, signed, "<a:счёт", "</a:счёт>")
					part = bytes.Replace(part, []byte("<a:счёт"), []byte("<a:счёт xmlns:a='urn:test:a'"), 1)
					want = append(want, j.digest(t, s, part), j.digest(t, s, without))
				}
				if got := digestValues(signed); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("digests %v, OpenSSL has %v\n%s", got, want, signed)
				}
				mustHold(t, signed, root)
			})
		}
	}
}

// Templates that xmlsec fills are verified here, with every transform that both programs
// have.
func TestMadeByXMLSec(t *testing.T) {
	x, o := judge.XMLSec(t), judge.OpenSSL(t)
	transforms := map[string]string{
		"none":             ``,
		"enveloped alone":  `<Transforms><Transform Algorithm="http://www.w3.org/2000/09/xmldsig#enveloped-signature"/></Transforms>`,
		"C14N 1.0":         enveloped(`<Transform Algorithm="http://www.w3.org/TR/2001/REC-xml-c14n-20010315"/>`),
		"C14N 1.0 comment": enveloped(`<Transform Algorithm="http://www.w3.org/TR/2001/REC-xml-c14n-20010315#WithComments"/>`),
		"C14N 1.1":         enveloped(`<Transform Algorithm="http://www.w3.org/2006/12/xml-c14n11"/>`),
		"exclusive":        enveloped(`<Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/>`),
		"prefix list":      enveloped(`<Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"><InclusiveNamespaces xmlns="http://www.w3.org/2001/10/xml-exc-c14n#" PrefixList="a #default"/></Transform>`),
		"XPath":            transformsOf(`<Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"><XPath xmlns:dsig="http://www.w3.org/2000/09/xmldsig#">not(ancestor-or-self::dsig:Signature)</XPath></Transform>`),
		"filter 2.0":       transformsOf(`<Transform Algorithm="http://www.w3.org/2002/06/xmldsig-filter2"><XPath xmlns="http://www.w3.org/2002/06/xmldsig-filter2" Filter="subtract" xmlns:dsig="http://www.w3.org/2000/09/xmldsig#">//dsig:Signature</XPath></Transform>`),
	}
	for _, s := range []*suite.Suite{suite.RSASHA256, suite.ECDSAP256} {
		root := sigtest.Root(t, s)
		signer := root.Signer(t, s, "Signer")
		der, err := x509gost.MarshalPrivateKey(signer.Key, s)
		if err != nil {
			t.Fatal(err)
		}
		o.Write("key.der", der)
		if _, err := o.Run("pkey", "-inform", "DER", "-in", "key.der", "-out", "key.pem"); err != nil {
			t.Fatal(err)
		}
		key := o.Read("key.pem")
		for i, name := range slices.Sorted(maps.Keys(transforms)) {
			for j, uri := range everyURI {
				if name == "none" && !strings.Contains(uri, "part") || leftOut(i, j, len(everyURI)) {
					continue // without transforms, the value would be among what it signs
				}
				t.Run(s.Name+"/"+name+"/"+uri, func(t *testing.T) {
					template := withTemplate(bare(s, uri, transforms[name]))
					signed, err := x.Sign([]byte(template), key, signer.PEM(), ids...)
					if err != nil {
						t.Fatal(err)
					}
					r := mustHold(t, signed, root)
					if got := r.Signatures[0].Signer; !got.Equal(signer.Certificate) {
						t.Errorf("the signer is %v", got.Subject)
					}
					bad := bytes.Replace(signed, []byte("привет"), []byte("привот"), 1)
					if verify(t, bad, root).Passed() {
						t.Error("accepted with the text changed")
					}
					// And the same template filled here is accepted there.
					ours := sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", template))
					if err := x.Verify(ours, root.PEM(), sigtest.Time, ids...); err != nil {
						t.Errorf("refused by xmlsec: %v\n%s", err, ours)
					}
					mustHold(t, ours, root)
				})
			}
		}
	}
}

func transformsOf(inner string) string { return "<Transforms>" + inner + "</Transforms>" }

func enveloped(inner string) string {
	return transformsOf(`<Transform Algorithm="http://www.w3.org/2000/09/xmldsig#enveloped-signature"/>` + inner)
}

// bare is a template with one reference.
func bare(s *suite.Suite, uri, transforms string) string {
	return `<Signature xmlns="http://www.w3.org/2000/09/xmldsig#"><SignedInfo>` +
		`<CanonicalizationMethod Algorithm="http://www.w3.org/TR/2001/REC-xml-c14n-20010315"/>` +
		`<SignatureMethod Algorithm="` + s.XML[0] + `"/>` +
		`<Reference URI="` + uri + `">` + transforms +
		`<DigestMethod Algorithm="` + s.Hash.XML[0] + `"/><DigestValue/></Reference>` +
		`</SignedInfo><SignatureValue/><KeyInfo><X509Data/></KeyInfo></Signature>`
}
