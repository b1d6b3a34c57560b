// SPDX-License-Identifier: Apache-2.0

package xmldsig_test

import (
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig/xmldsig"
	"tamga/sig/xmltree"
)

// elements has a part that is signed by its ID, as messages of SAML have it.
func elements(s *suite.Suite, id string) string {
	return `<all xmlns="urn:x"><part ID="a"><name>anna<!-- x --></name>` +
		`<Signature xmlns="http://www.w3.org/2000/09/xmldsig#"><SignedInfo><CanonicalizationMethod Algorithm="` + excC14N + `"/><SignatureMethod Algorithm="` + s.XML[0] + `"/>` +
		`<Reference URI="#` + id + `">` + enveloped(exclusive) + `<DigestMethod Algorithm="` + s.Hash.XML[0] + `"/><DigestValue/></Reference></SignedInfo>` +
		`<SignatureValue/><KeyInfo><X509Data/></KeyInfo></Signature></part><part ID="b"/></all>`
}

func judgeElement(t *testing.T, text string, certs ...*x509gost.Certificate) error {
	t.Helper()
	tree, err := xmltree.Parse([]byte(text), xmltree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range tree.Find(tree.Root(), "http://www.w3.org/2000/09/xmldsig#", "Signature") {
		return xmldsig.VerifyElement(t.Context(), tree, n, certs)
	}
	t.Fatal("there is no signature")
	return nil
}

// TestVerifyElement: the signature of an element is valid only for the element around it
// and only by the given keys.
func TestVerifyElement(t *testing.T) {
	for _, s := range []*suite.Suite{suite.RSASHA256, suite.ECDSAP256, suite.GOST2012x256, suite.GOST2012x512} {
		root := sigtest.Root(t, s)
		by, other := root.Signer(t, s, "Signer"), root.Signer(t, s, "Other")
		signed := string(sigtest.Make(t, xmldsig.New(), by, job("XMLTemplate", elements(s, "a"))))
		for _, c := range []struct {
			name, text, why string
			certs           []*x509gost.Certificate
		}{
			{"good", signed, "", []*x509gost.Certificate{other.Certificate, by.Certificate}},
			{"moved whole", strings.Replace(signed, "<all xmlns=\"urn:x\">", "<all xmlns=\"urn:x\"><w/>", 1), "", []*x509gost.Certificate{by.Certificate}},
			{"without the comment", strings.Replace(signed, "<!-- x -->", "", 1), "", []*x509gost.Certificate{by.Certificate}},
			{"no keys", signed, "no trusted key", nil},
			{"another key", signed, "another key", []*x509gost.Certificate{other.Certificate}},
			{"changed", strings.Replace(signed, "anna", "boris", 1), "has changed", []*x509gost.Certificate{by.Certificate}},
			{"an attribute", strings.Replace(signed, "<name", "<name x=\"y\"", 1), "has changed", []*x509gost.Certificate{by.Certificate}},
			{"an ID twice", strings.Replace(signed, `ID="b"`, `xml:id="a"`, 1), "ambiguous", []*x509gost.Certificate{by.Certificate}},
			{"of a brother", string(sigtest.Make(t, xmldsig.New(), by, job("XMLTemplate", elements(s, "b")))), "not to the element around", []*x509gost.Certificate{by.Certificate}},
			{"an object", strings.Replace(signed, "</Signature>", "<Object/></Signature>", 1), "Object is not allowed", []*x509gost.Certificate{by.Certificate}},
			{"unfilled", elements(s, "a"), "another key", []*x509gost.Certificate{by.Certificate}},
		} {
			t.Run(s.Name+"/"+c.name, func(t *testing.T) {
				err := judgeElement(t, c.text, c.certs...)
				if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
					t.Errorf("%v, want %q\n%s", err, c.why, c.text)
				}
			})
		}
	}
	s := suite.GOST2001
	by := sigtest.Root(t, s).Signer(t, s, "Signer")
	signed := sigtest.Make(t, xmldsig.New(), by, job("XMLTemplate", elements(s, "a")))
	if err := judgeElement(t, string(signed), by.Certificate); err == nil || !strings.Contains(err.Error(), "is not accepted") {
		t.Errorf("GOST of 2001: %v", err)
	}
}
