// SPDX-License-Identifier: Apache-2.0

package xmldsig_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/xmldsig"
)

// envelope is a message whose body is signed by its identifier, as in SOAP. Wrapping
// attacks are made on it.
const envelope = `<S:Envelope xmlns:S="http://schemas.xmlsoap.org/soap/envelope/" xmlns:wsu="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd">` +
	`<S:Header>%s</S:Header><S:Body Id="body"><pay to="Ivan">100</pay></S:Body></S:Envelope>`

const body = `<S:Body Id="body"><pay to="Ivan">100</pay></S:Body>`

// Wrapping: the signed element is moved and another one takes its place. If the other one
// has the identifier too, the verdict is indeterminate. The same is true if the signed
// element is inside the signature. Otherwise the signature is still valid for the element
// it always covered: the report shows the present place of that element, which is not the
// place of the message's body.
func TestWrapping(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	signed := string(sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", fmt.Sprintf(envelope, bare(s, "#body", transformsOf(exclusive))))))
	const home = `element S:Body with id "body" at /Envelope/Body, line 1`
	if r := mustHold(t, []byte(signed), root); r.Signatures[0].Covers != home {
		t.Fatalf("covers %s", r.Signatures[0].Covers)
	}
	identifiers := []string{`Id="body"`, `ID="body"`, `id="body"`, `wsu:Id="body"`, `xml:id="body"`, `Id="another"`, ``}
	places := map[string]func(string) string{
		"header before the signature": func(x string) string { return strings.Replace(x, "<S:Header>", "<S:Header><w>"+body+"</w>", 1) },
		"header behind the signature": func(x string) string { return strings.Replace(x, "</S:Header>", "<w>"+body+"</w></S:Header>", 1) },
		"object of the signature": func(x string) string {
			return strings.Replace(x, "</KeyInfo>", `</KeyInfo><ds:Object xmlns:ds="http://www.w3.org/2000/09/xmldsig#" xmlns="">`+body+"</ds:Object>", 1)
		},
		"inside the new body": func(x string) string { return strings.Replace(x, "</pay></S:Body>", "</pay>"+body+"</S:Body>", 1) },
		"around the new body": func(x string) string { return strings.Replace(x, "</S:Envelope>", "<w>"+body+"</w></S:Envelope>", 1) },
		"before the envelope": func(x string) string {
			return `<w xmlns:S="http://schemas.xmlsoap.org/soap/envelope/">` + body + x + "</w>"
		},
	}
	for place, move := range places {
		for _, id := range identifiers {
			t.Run(place+"/"+id, func(t *testing.T) {
				evil := `<S:Body ` + id + `><pay to="Boris">9999</pay></S:Body>`
				forged := move(strings.Replace(signed, body, evil, 1))
				r := verify(t, []byte(forged), root)
				codes := sigtest.Codes(r)
				if strings.Contains(id, `"body"`) {
					if len(codes) != 1 || codes[0] != "reference-id-not-unique" {
						t.Errorf("%v\n%s", codes, forged)
					}
					return
				}
				// The named element must not be the one in the place of the body.
				if got := r.Signatures[0].Covers; got == home {
					t.Errorf("valid %v, covers %s\n%s", r.Passed(), got, forged)
				}
				if !hasCode(r.Signatures[0].Findings, "covers-part") {
					t.Error("the report does not say that only a part is signed")
				}
				if misplaced := place == "object of the signature"; misplaced != slices.Contains(codes, "reference-misplaced") || misplaced == r.Passed() {
					t.Errorf("%v: %s", r.Verdict(), texts(r))
				}
			})
		}
	}
}

func hasCode(findings []sig.Finding, code string) bool {
	for _, f := range findings {
		if f.Code == code {
			return true
		}
	}
	return false
}

// Additions to a signature and removals from it are refused, each for its own reason.
func TestForgedSignatures(t *testing.T) {
	s := suite.GOST2012x512
	root := sigtest.Root(t, s)
	signer, other := root.Signer(t, s, "Signer"), root.Signer(t, s, "Other")
	enveloped := string(sigtest.Make(t, xmldsig.New(), signer, jobOf("XMLEnveloped", s)))
	enveloping := string(sigtest.Make(t, xmldsig.New(), signer, jobOf("XMLEnveloping", s)))
	bes := string(sigtest.Make(t, xmldsig.New(), signer, jobOf("XMLEnveloped", s, "XAdESType", "BES")))
	besOther := string(sigtest.Make(t, xmldsig.New(), other, jobOf("XMLEnveloped", s, "XAdESType", "BES")))
	in := func(x, from, to string) string { return string(between(t, []byte(x), from, to)) }
	replace := func(x, old, new string) string {
		out := strings.Replace(x, old, new, 1)
		if out == x {
			t.Fatalf("%s is not in\n%s", old, x)
		}
		return out
	}
	key := func(x string) string { return in(x, "<ds:KeyInfo>", "</ds:KeyInfo>") }
	value := in(enveloped, "<ds:SignatureValue>", "</ds:SignatureValue>")
	digest := in(enveloped, "<ds:DigestValue>", "</ds:DigestValue>")
	properties := in(bes, "<xades:SignedProperties", "</xades:SignedProperties>")
	for _, test := range []struct{ name, forged, code string }{
		{"nothing", document, "no-signature"},
		{"another certificate", replace(enveloped, key(enveloped), key(besOther)), "signature-mismatch"},
		{"no certificate", replace(enveloped, key(enveloped), "<ds:KeyInfo/>"), "certificate-missing"},
		{"two SignedInfo", replace(enveloped, "<ds:SignedInfo>", "<ds:SignedInfo/><ds:SignedInfo>"), "signature-malformed"},
		{"two values", replace(enveloped, value, value+value), "signature-malformed"},
		{"a comment in the digest", replace(enveloped, digest, strings.Replace(digest, ">", "><!-- x -->", 1)), "signature-malformed"},
		{"an element in the value", replace(enveloped, value, strings.Replace(value, ">", "><x/>", 1)), "signature-malformed"},
		{"a value that is no Base64", replace(enveloped, value, "<ds:SignatureValue>?</ds:SignatureValue>"), "signature-malformed"},
		{"a short value", replace(enveloped, value, "<ds:SignatureValue>AAAA</ds:SignatureValue>"), "signature-mismatch"},
		{"no value", replace(enveloped, value, "<ds:SignatureValue/>"), "signature-empty"},
		{"an empty template more", replace(enveloped, "<empty/>", bare(s, "", "")), "signature-empty"},
		{"a truncated digest", replace(enveloped, digest, "<ds:DigestValue></ds:DigestValue>"), "digest-mismatch"},
		{"another profile", replace(enveloped, s.XML[0], suite.GOST2012x256.XML[0]), "algorithm-mismatch"},
		{"HMAC", replace(enveloped, s.XML[0], "http://www.w3.org/2000/09/xmldsig#hmac-sha1"), "algorithm-unknown"},
		{"HMAC cut to nothing", replace(enveloped, `<ds:SignatureMethod Algorithm="`+s.XML[0]+`">`, `<ds:SignatureMethod Algorithm="`+s.XML[0]+`"><ds:HMACOutputLength>0</ds:HMACOutputLength>`), "algorithm-unknown"},
		{"a remote reference", replace(enveloped, `URI=""`, `URI="http://example.com/"`), "reference-refused"},
		{"another object", replace(enveloping, "</ds:Signature>", `<ds:Object><doc/></ds:Object></ds:Signature>`), ""},
		{"a second object", replace(enveloping, "<ds:Object ", `<ds:Object Id="`+strings.Split(strings.Split(enveloping, `<ds:Object Id="`)[1], `"`)[0]+`"/><ds:Object `), "reference-id-not-unique"},
		{"other properties", replace(bes, properties, strings.Replace(properties, "2025", "2024", 1)), "digest-mismatch"},
		{"properties twice", replace(bes, properties, properties+properties), "reference-id-not-unique"},
		{"properties moved", replace(replace(bes, properties, ""), "<empty/>", strings.Replace(properties, "<xades:SignedProperties", `<xades:SignedProperties xmlns:xades="http://uri.etsi.org/01903/v1.3.2#" xmlns:ds="http://www.w3.org/2000/09/xmldsig#"`, 1)), "signed-properties"},
		{"false properties in front", replace(bes, "<ds:Object>", `<ds:Object><xades:QualifyingProperties xmlns:xades="http://uri.etsi.org/01903/v1.3.2#" Target="#x"/></ds:Object><ds:Object>`), "signed-properties"},
		{"another target", replace(bes, `Target="#`, `Target="#x`), "signed-properties"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := verify(t, []byte(test.forged), root)
			codes := sigtest.Codes(r)
			if test.code == "" {
				// The signed data has not changed, but it is not the whole document any
				// more.
				if !r.Passed() || !hasCode(r.Signatures[0].Findings, "covers-part") {
					t.Errorf("%s", texts(r))
				}
				return
			}
			if r.Passed() || !strings.Contains(strings.Join(codes, " "), test.code) {
				t.Errorf("%v, want %s", codes, test.code)
			}
		})
	}
	// A signature over a document that is signed already covers the first signature. The
	// first one does not cover the second, which breaks it.
	twice := sigtest.Make(t, xmldsig.New(), other, job("XMLEnveloped", enveloped))
	r := verify(t, twice, root)
	if r.Signatures[0].Passed() || !r.Signatures[1].Passed() {
		t.Errorf("%s", texts(r))
	}
	if foreign := sigtest.Root(t, suite.GOST2001); verify(t, []byte(enveloped), foreign).Passed() {
		t.Error("valid without a trust anchor")
	}
	if !bytes.Contains(twice, []byte(value)) {
		t.Error("the first signature is gone")
	}
}
