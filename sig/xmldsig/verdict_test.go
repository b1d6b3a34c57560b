// SPDX-License-Identifier: Apache-2.0

package xmldsig_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/xmldsig"
	"tamga/sig/xmltree"
)

// headlineOf returns what the first line of a report says of the part covered.
func headlineOf(r *sig.Report) string {
	for _, h := range r.Headlines() {
		if strings.HasPrefix(h, "covers only ") {
			return strings.TrimPrefix(h, "covers only ")
		}
	}
	return ""
}

// For a signature over a part the headline names the part. Strict mode and an expected
// path fail a signature that does not cover the expected element.
func TestPart(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	const soap = ` xmlns:S="http://schemas.xmlsoap.org/soap/envelope/"`
	xpath := func(expression string) string {
		return transformsOf(`<Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"><XPath xmlns:ds="http://www.w3.org/2000/09/xmldsig#"` + soap + `>` + expression + `</XPath></Transform>`)
	}
	message := func(template string) string { return fmt.Sprintf(envelope, template) }
	var crowd strings.Builder
	for range 70 {
		crowd.WriteString("<a><b/></a>")
	}
	several := strings.Replace(bare(s, "#one", transformsOf(exclusive)), "</SignedInfo>",
		strings.Repeat(`<Reference URI="#two"><DigestMethod Algorithm="`+s.Hash.XML[0]+`"/><DigestValue/></Reference>`, 5)+"</SignedInfo>", 1)
	long := strings.Repeat("ж", 300)
	for name, test := range map[string]struct {
		text string
		part string
		// asked are paths that a caller may expect, and whether they are covered.
		asked map[string]bool
	}{
		"whole":              {message(bare(s, "", enveloped(exclusive))), "", map[string]bool{"/Envelope/Body": true}},
		"but for signatures": {message(bare(s, "", xpath(`not(ancestor-or-self::ds:Signature)`))), "", map[string]bool{"/Envelope/Body": true}},
		"by id": {message(bare(s, "#body", transformsOf(exclusive))), "/Envelope/Body", map[string]bool{
			"/Envelope/Body": true, "/Envelope/Body/pay": true, "/Envelope/Body[1]": true, "/Envelope": false, "/Envelope/Header": false,
			"/Envelope/Body/nothing": false, "/S:Envelope/S:Body": false, "Envelope/Body": false, "/": false, "/Envelope/Body[0]": false, "/Envelope/Body[": false}},
		"by XPath":          {message(bare(s, "", xpath(`ancestor-or-self::S:Body`))), "/Envelope/Body", map[string]bool{"/Envelope/Body": true, "/Envelope/Header": false}},
		"not all of it":     {message(bare(s, "", xpath(`ancestor-or-self::S:Body and not(self::pay)`))), "a part of /Envelope/Body, a part of /Envelope/Body/pay", map[string]bool{"/Envelope/Body": false, "/Envelope/Body/pay": false}},
		"but an attribute":  {message(bare(s, "", xpath(`ancestor-or-self::S:Body and not(self::node()[name() = "to"])`))), "a part of /Envelope/Body", map[string]bool{"/Envelope/Body": false}},
		"attributes alone":  {message(bare(s, "", xpath(`self::node()[name() = "to"] and parent::pay`))), "a part of /Envelope", map[string]bool{"/Envelope": false, "/Envelope/Body": false}},
		"a crowd":           {"<d>" + crowd.String() + bare(s, "", xpath(`self::b`)) + "</d>", "/d/a[1]/b, /d/a[2]/b, /d/a[3]/b, /d/a[4]/b, 61 more parts", map[string]bool{"/d/a[2]/b": true, "/d/a[2]": false, "/d/a[70]/b": false}},
		"text alone":        {message(bare(s, "", xpath(`self::text() and parent::pay`))), "a part of /Envelope/Body/pay", map[string]bool{"/Envelope/Body/pay": false}},
		"Base64":            {`<d><b Id="b">AAEC</b>` + bare(s, "#b", transformsOf(`<Transform Algorithm="http://www.w3.org/2000/09/xmldsig#base64"/>`)) + `</d>`, "the text of /d/b", map[string]bool{"/d/b": false}},
		"a form first":      {message(bare(s, "#body", transformsOf(exclusive+`<Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"><XPath>not(self::comment())</XPath></Transform>`))), "a part of /Envelope/Body", map[string]bool{"/Envelope/Body": false}},
		"one of several":    {`<d xmlns:y="urn:y"><x/><y:x Id="x"/><x/>` + bare(s, "#x", transformsOf(exclusive)) + `</d>`, "/d/x[2]", map[string]bool{"/d/x[2]": true, "/d/x[1]": false, "/d/x[3]": false, "/d/x[4]": false, "/d/x": false}},
		"many":              {`<d><a Id="one"/><b Id="two"/>` + several + `</d>`, "/d/a, /d/b, /d/b, /d/b, 2 more parts", map[string]bool{"/d/b": true, "/d/c": false}},
		"long names":        {`<d><` + long + ` Id="x"/>` + bare(s, "#x", transformsOf(exclusive)) + `</d>`, "/d/" + long[:80] + "...", map[string]bool{"/d/" + long: true}},
		"its own key alone": {"<d>" + strings.Replace(bare(s, "#key", transformsOf(exclusive)), "<KeyInfo>", `<KeyInfo Id="key">`, 1) + "</d>", "/d/Signature/KeyInfo", map[string]bool{"/d": false}},
	} {
		t.Run(name, func(t *testing.T) {
			signed := string(sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", test.text)))
			r := mustHold(t, []byte(signed), root)
			if got := headlineOf(r); got != test.part {
				t.Errorf("headline %q, want %q", got, test.part)
			}
			ask := func(strict bool, expect string) sig.Verdict {
				c := checkOf(signed, root)
				c.Strict, c.Expect = strict, expect
				r, err := xmldsig.New().Verify(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				return r.Verdict()
			}
			if got := ask(true, ""); (got == sig.Passed) != (test.part == "") {
				t.Errorf("strict: %v", got)
			}
			for path, covered := range test.asked {
				for _, strict := range []bool{false, true} {
					if got := ask(strict, path); (got == sig.Passed) != covered {
						t.Errorf("%s expected, strict %v: %v", path, strict, got)
					}
				}
			}
		})
	}
	for _, kind := range []string{"XMLEnveloped", "XMLEnveloping"} {
		if r := mustHold(t, sigtest.Make(t, xmldsig.New(), signer, jobOf(kind, s)), root); headlineOf(r) != "" {
			t.Errorf("%s: %v", kind, r.Headlines())
		}
	}
}

// Messages of SAML whose signed part was moved (XSW 1 to 8): none passes, or the headline
// names the present place of the signed part, which is not that of the forged one, and
// strict mode fails it.
func TestWrappingOfSAML(t *testing.T) {
	s := suite.RSASHA256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	sign := func(text string) string {
		return string(sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", text)))
	}
	split := func(text string) (without, signature string) {
		signature = string(between(t, []byte(text), "<Signature ", "</Signature>"))
		return strings.Replace(text, signature, "", 1), signature
	}
	const name, evilName = "<n>anna</n>", "<n>eve</n>"
	response := sign(`<r xmlns="urn:p" ID="r">` + strings.Replace(bare(s, "#r", enveloped(exclusive)), "http://www.w3.org/TR/2001/REC-xml-c14n-20010315", excC14N, 1) + `<a ID="a">` + name + `</a></r>`)
	bareResponse, overResponse := split(response)
	assertion := sign(`<r xmlns="urn:p" ID="r"><a ID="a">` + strings.Replace(bare(s, "#a", enveloped(exclusive)), "http://www.w3.org/TR/2001/REC-xml-c14n-20010315", excC14N, 1) + name + `</a></r>`)
	own := string(between(t, []byte(assertion), "<a ", "</a>"))
	bareOwn, overOwn := split(own)
	into := func(signature, what string) string {
		return strings.Replace(signature, "</Signature>", what+"</Signature>", 1)
	}
	object := func(what string) string {
		return `<ds:Object xmlns:ds="http://www.w3.org/2000/09/xmldsig#" xmlns="urn:p">` + what + "</ds:Object>"
	}
	evilResponse := func(signature, more string) string {
		return `<r xmlns="urn:p" ID="evil">` + signature + `<a ID="evil2">` + evilName + "</a>" + more + "</r>"
	}
	evil := func(signature, more string) string { return `<a ID="evil">` + signature + evilName + more + "</a>" }
	whole := func(inside string) string { return `<r xmlns="urn:p" ID="r">` + inside + "</r>" }
	indeterminate, part := "reference-misplaced", "covers-part"
	for _, test := range []struct{ name, forged, want string }{
		{"1", evilResponse(into(overResponse, bareResponse), ""), "signature-malformed"},
		{"2", evilResponse(bareResponse+overResponse, ""), indeterminate},
		{"2, behind", evilResponse(overResponse+bareResponse, ""), indeterminate},
		{"3", whole(evil("", "") + own), part},
		{"4", whole(evil("", own)), part},
		{"5", whole(evil(overOwn, "") + bareOwn), indeterminate},
		{"6", whole(evil(into(overOwn, bareOwn), "")), "signature-malformed"},
		{"6, in KeyInfo", whole(evil(strings.Replace(overOwn, "</KeyInfo>", `<k xmlns="urn:p">`+bareOwn+"</k></KeyInfo>", 1), "")), "reference-empty"},
		{"7", whole(`<x>` + strings.Replace(evil("", ""), `"evil"`, `"a"`, 1) + `</x>` + own), "reference-id-not-unique"},
		{"7, another attribute", whole(`<x>` + strings.Replace(evil("", ""), `ID="evil"`, `z:iD="a" xmlns:z="urn:z"`, 1) + `</x>` + own), "reference-id-not-unique"},
		{"7, SAML 1.1", whole(`<x>` + strings.Replace(evil("", ""), `ID="evil"`, `AssertionID="a"`, 1) + `</x>` + own), "reference-id-not-unique"},
		{"8", whole(evil(into(overOwn, object(bareOwn)), "")), "reference-empty"},
		{"8, of the response", evilResponse(into(overResponse, object(bareResponse)), ""), "reference-empty"},
		{"in a loose Object", whole(evil("", "") + object(own)), indeterminate},
		{"in a loose Manifest", whole(evil("", "") + strings.ReplaceAll(object(own), "ds:Object", "ds:Manifest")), indeterminate},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := verify(t, []byte(test.forged), root)
			c := checkOf(test.forged, root)
			c.Strict = true
			strict, err := xmldsig.New().Verify(t.Context(), c)
			if err != nil || strict.Verdict() != sig.Failed {
				t.Errorf("strict: %v %v", err, strict.Verdict())
			}
			codes := sigtest.Codes(r)
			if test.want == part {
				if !r.Passed() || headlineOf(r) == "" {
					t.Errorf("%v: %s", r.Verdict(), texts(r))
				}
				return
			}
			if want := test.want != "signature-malformed"; !slices.Equal(codes, []string{test.want}) || (r.Verdict() == sig.Indeterminate) != want {
				t.Errorf("%v, %v, want %s\n%s", r.Verdict(), codes, test.want, texts(r))
			}
			for _, f := range r.Signatures[0].Findings {
				if f.Code == test.want && f.Indication == sig.FormatFailure != (test.want == "signature-malformed") {
					t.Errorf("%s is %s", f.Code, f.Indication)
				}
			}
		})
	}
}

// A signed Object or Manifest that was moved into another Object, beside a forged one, is
// not accepted as the signature's own.
func TestForeignObject(t *testing.T) {
	s := suite.ECDSAP256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	const open, closing = `<Object><w xmlns="">`, `</w></Object>`
	for name, test := range map[string]struct{ template, moved, evil string }{
		"object": {strings.Replace(bare(s, "#o", transformsOf(exclusive)), "</Signature>", `<Object Id="o">good</Object></Signature>`, 1),
			`<Object Id="o">good</Object>`, `<Object Id="evil">bad</Object>`},
		"manifest": {strings.Replace(bare(s, "#m", transformsOf(exclusive)), "</Signature>", `<Object><Manifest Id="m"/></Object></Signature>`, 1),
			`<Object><Manifest Id="m"/></Object>`, `<Object><Manifest Id="evil"/></Object>`},
	} {
		signed := string(sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", test.template)))
		signed = strings.Replace(signed, `<Manifest Id="m"></Manifest>`, `<Manifest Id="m"/>`, 1)
		mustHold(t, []byte(signed), root)
		inside := strings.ReplaceAll(test.moved, "<Object", `<Object xmlns="http://www.w3.org/2000/09/xmldsig#"`)
		forged := strings.Replace(signed, test.moved, test.evil+open+inside+closing, 1)
		if r := verify(t, []byte(forged), root); r.Verdict() != sig.Indeterminate || !slices.Equal(sigtest.Codes(r), []string{"reference-misplaced"}) {
			t.Errorf("%s: %s\n%s", name, texts(r), forged)
		}
	}
}

// Forms that real clients make pass, each with the part that it covers.
func TestFormsOfClients(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	const (
		soap = `xmlns:S="http://schemas.xmlsoap.org/soap/envelope/"`
		wsse = `xmlns:wsse="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd" xmlns:wsu="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd"`
	)
	reference := func(uri string) string {
		return `<Reference URI="` + uri + `">` + transformsOf(exclusive) + `<DigestMethod Algorithm="` + s.Hash.XML[0] + `"/><DigestValue/></Reference></SignedInfo>`
	}
	token := `<wsse:BinarySecurityToken wsu:Id="token"></wsse:BinarySecurityToken>`
	header := func(signature string) string {
		signature = strings.Replace(signature, "<X509Data/>", `<wsse:SecurityTokenReference><wsse:Reference URI="#token"/></wsse:SecurityTokenReference>`, 1)
		return `<S:Envelope ` + soap + ` ` + wsse + `><S:Header><wsse:Security>` + token + `<wsu:Timestamp wsu:Id="ts"/>` + signature + `</wsse:Security></S:Header><S:Body wsu:Id="body"><x/></S:Body></S:Envelope>`
	}
	for name, test := range map[string]struct{ text, part string }{
		"WS-Security": {header(strings.Replace(bare(s, "#body", transformsOf(exclusive)), "</SignedInfo>", strings.Replace(reference("#ts"), "</SignedInfo>", reference("#token"), 1), 1)),
			"/Envelope/Body, /Envelope/Header/Security/Timestamp, /Envelope/Header/Security/BinarySecurityToken"},
		// The Signature is not in the Body, so the transform does nothing.
		"SMEV 2": {header(bare(s, "#body", enveloped(exclusive))), "/Envelope/Body"},
		"SMEV 3": {`<m:R xmlns:m="urn:m"><m:Data Id="SIGNED_BY_CONSUMER"><m:x/></m:Data><m:Caller>` +
			bare(s, "#SIGNED_BY_CONSUMER", transformsOf(exclusive+`<Transform Algorithm="`+smevURN+`"/>`)) + `</m:Caller></m:R>`, "/R/Data"},
		"container":                             {`<r><c Id="signed-data-container">` + bare(s, "#signed-data-container", enveloped(exclusive)) + `<x/></c></r>`, "/r/c"},
		"CDA":                                   {`<ClinicalDocument xmlns="urn:hl7-org:v3"><id root="1"/><component ID="c"/>` + bare(s, "", enveloped(exclusive)) + `</ClinicalDocument>`, ""},
		"document in a container of signatures": {`<sigs>` + strings.Replace(bare(s, "#o", transformsOf(exclusive)), "</Signature>", `<Object Id="o"><d xmlns=""/></Object></Signature>`, 1) + `</sigs>`, "/sigs/Signature/Object"},
		"content of an enveloping signature":    {strings.Replace(bare(s, "#d", transformsOf(exclusive)), "</Signature>", `<Object><d xmlns="" Id="d"/></Object></Signature>`, 1), "/Signature/Object/d"},
	} {
		signed := sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", test.text))
		if r := mustHold(t, signed, root); headlineOf(r) != test.part {
			t.Errorf("%s: headline %q, want %q", name, headlineOf(r), test.part)
		}
	}
}

// countersigned adds an unfinished countersignature to the unsigned properties of the
// first signature, by its Id.
func countersigned(t *testing.T, by *sigtest.Party, s *suite.Suite, signed, value, id string) string {
	t.Helper()
	template := strings.Replace(bare(s, "#"+value, transformsOf(exclusive)), "<Reference ", `<Reference Type="http://uri.etsi.org/01903#CountersignedSignature" `, 1)
	template = strings.Replace(template, "<Signature ", `<Signature Id="`+id+`" `, 1)
	template = strings.Replace(template, "<SignatureValue/>", `<SignatureValue Id="value-`+id+`"/>`, 1)
	const xades = ` xmlns:xades="http://uri.etsi.org/01903/v1.3.2#"`
	counter := `<xades:UnsignedProperties` + xades + `><xades:UnsignedSignatureProperties><xades:CounterSignature>` + template + `</xades:CounterSignature></xades:UnsignedSignatureProperties></xades:UnsignedProperties>`
	i := strings.LastIndex(signed, "</xades:QualifyingProperties>")
	if strings.HasPrefix(value, "value-") { // over a countersignature, which has no properties so far
		i = strings.Index(signed, "</Signature></xades:CounterSignature>")
		counter = `<Object><xades:QualifyingProperties` + xades + ` Target="#` + strings.TrimPrefix(value, "value-") + `">` + counter + `</xades:QualifyingProperties></Object>`
	}
	return string(sigtest.Make(t, xmldsig.New(), by, job("XMLTemplate", signed[:i]+counter+signed[i:])))
}

// XAdES countersignatures are reported under the signature that contains them.
func TestCountersignatures(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer, second, third := root.Signer(t, s, "Signer"), root.Signer(t, s, "Second"), root.Signer(t, s, "Third")
	first := string(sigtest.Make(t, xmldsig.New(), signer, jobOf("XMLEnveloped", s, "XAdESType", "BES")))
	first = strings.Replace(first, "<ds:SignatureValue>", `<ds:SignatureValue Id="v">`, 1)
	once := countersigned(t, second, s, first, "v", "c")
	r := mustHold(t, []byte(once), root)
	if len(r.Signatures) != 1 || len(r.Signatures[0].Countersigners) != 1 {
		t.Fatalf("%d signatures: %s", len(r.Signatures), texts(r))
	}
	c := r.Signatures[0].Countersigners[0]
	if !c.Signer.Equal(second.Certificate) || c.Index != 0 || c.Covers != "the value of the signature that contains it" || headlineOf(r) != "" {
		t.Errorf("%+v", c)
	}
	strict := checkOf(once, root)
	strict.Strict = true
	if r, err := xmldsig.New().Verify(t.Context(), strict); err != nil || !r.Passed() {
		t.Errorf("strict: %v %s", err, texts(r))
	}
	twice := countersigned(t, third, s, once, "value-c", "d")
	r = verify(t, []byte(twice), root)
	if len(r.Signatures) != 1 || len(r.Signatures[0].Countersigners) != 1 || len(r.Signatures[0].Countersigners[0].Countersigners) != 1 {
		t.Fatalf("over a countersignature: %s\n%s", texts(r), twice)
	}
	// A broken countersignature counts, and a countersignature must cover the value of
	// the signature around it.
	i := strings.Index(once, `<SignatureValue Id="value-c">`) + len(`<SignatureValue Id="value-c">`)
	broken := once[:i] + "AAAA" + once[i+4:]
	if r := verify(t, []byte(broken), root); r.Verdict() != sig.Failed || len(r.Signatures) != 1 || r.Signatures[0].Own() != sig.Passed {
		t.Errorf("broken: %s", texts(r))
	}
	other := string(sigtest.Make(t, xmldsig.New(), signer, job("XMLEnveloped", strings.Replace(document, "<empty/>", `<empty Id="e"/>`, 1), "XAdESType", "BES")))
	other = countersigned(t, second, s, other, "e", "c")
	if r := verify(t, []byte(other), root); r.Verdict() != sig.Failed || !hasCode(r.Signatures[0].Countersigners[0].Findings, "countersignature") {
		t.Errorf("over something else: %v %+v", r.Verdict(), r.Signatures[0].Countersigners)
	}
	// In another place it is a signature of the document.
	counter := string(between(t, []byte(once), "<xades:CounterSignature>", "</xades:CounterSignature>"))
	moved := strings.Replace(strings.Replace(once, counter, "", 1), "</doc>", "<w xmlns:xades='http://uri.etsi.org/01903/v1.3.2#'>"+counter+"</w></doc>", 1)
	if r := verify(t, []byte(moved), root); len(r.Signatures) != 2 || r.Passed() {
		t.Errorf("moved: %d signatures, %s", len(r.Signatures), texts(r))
	}
	// Enhance counts only the signatures of the document.
	services := sigtest.NewServices(t, root)
	raised, err := enhance([]byte(once), services, "XAdESType", "T", "TSPAddress", "http://tsp.test/")
	if err != nil {
		t.Fatal(err)
	}
	if r := mustHold(t, raised, root); len(r.Signatures) != 1 || r.Signatures[0].Level != "T" || len(r.Signatures[0].Countersigners) != 1 {
		t.Errorf("raised: %s", texts(r))
	}
	// Ten nested ones are too many.
	deep := once
	for i := range 9 {
		deep = strings.Replace(deep, "</Signature></xades:CounterSignature>", fmt.Sprintf(`<Object><xades:QualifyingProperties xmlns:xades="http://uri.etsi.org/01903/v1.3.2#"><xades:UnsignedProperties><xades:UnsignedSignatureProperties><xades:CounterSignature><Signature Id="x%d"></Signature></xades:CounterSignature></xades:UnsignedSignatureProperties></xades:UnsignedProperties></xades:QualifyingProperties></Object></Signature></xades:CounterSignature>`, i), 1)
	}
	r = verify(t, []byte(deep), root)
	refused := 0
	for s := &r.Signatures[0]; len(s.Countersigners) > 0; s = &s.Countersigners[0] {
		if hasCode(s.Countersigners[0].Findings, "too-many-signatures") {
			refused++
		}
	}
	if refused != 1 || len(r.Signatures) != 1 {
		t.Errorf("deep: %d refused", refused)
	}
}

// The signer's certificate is found if only CertificateValues has it.
func TestCertificateValues(t *testing.T) {
	s := suite.GOST2012x512
	root := sigtest.Root(t, s)
	authority := root.Authority(t, "Authority")
	signer := authority.Signer(t, s, "Signer")
	signed := string(sigtest.Make(t, xmldsig.New(), signer, jobOf("XMLEnveloped", s, "XAdESType", "BES")))
	key := string(between(t, []byte(signed), "<ds:X509Data>", "</ds:X509Data>"))
	values := func(certificates ...*sigtest.Party) string {
		var b strings.Builder
		for _, p := range certificates {
			b.WriteString("<xades:EncapsulatedX509Certificate>" + base64.StdEncoding.EncodeToString(p.Certificate.Raw) + "</xades:EncapsulatedX509Certificate>")
		}
		return "<xades:UnsignedProperties><xades:UnsignedSignatureProperties><xades:CertificateValues>" + b.String() + "</xades:CertificateValues></xades:UnsignedSignatureProperties></xades:UnsignedProperties></xades:QualifyingProperties>"
	}
	for name, info := range map[string]string{
		"nothing in KeyInfo": "<ds:KeyName>k</ds:KeyName>",
		"the issuer alone":   "<ds:X509Data><ds:X509Certificate>" + base64.StdEncoding.EncodeToString(authority.Certificate.Raw) + "</ds:X509Certificate></ds:X509Data>",
	} {
		text := strings.Replace(signed, key, info, 1)
		text = strings.Replace(text, "</xades:QualifyingProperties>", values(root, authority, signer), 1)
		r := mustHold(t, []byte(text), root)
		if !r.Signatures[0].Signer.Equal(signer.Certificate) || r.Signatures[0].Level != "BES" {
			t.Errorf("%s: %s", name, texts(r))
		}
		// Another certificate in its place is refused.
		text = strings.Replace(strings.Replace(signed, key, info, 1), "</xades:QualifyingProperties>", values(root, authority, authority.Signer(t, s, "Other")), 1)
		if verify(t, []byte(text), root).Passed() {
			t.Errorf("%s: another certificate passes", name)
		}
	}
	// If the signature has no certificate, a given one that does not match is not the
	// signer's.
	c := checkOf(strings.Replace(signed, key, "<ds:KeyName>k</ds:KeyName>", 1), root)
	c.Intermediates = append(c.Intermediates, authority.Certificate)
	r, err := xmldsig.New().Verify(t.Context(), c)
	if err != nil || r.Verdict() != sig.Indeterminate || !slices.Equal(sigtest.Codes(r), []string{"certificate-missing"}) {
		t.Errorf("%v %s", err, texts(r))
	}
}

// DataObjectFormat must refer to a reference of the signature and must not be empty, or
// the signature is not XAdES-BES. A signature without any is BES of TS 101 903.
func TestDataObjectFormat(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	with := func(formats string) string {
		template := xadesTemplates(s)["signature properties"]
		template = strings.Replace(template, `<ds:Reference URI="#part">`, `<ds:Reference Id="r1" URI="#part">`, 1)
		template = strings.Replace(template, `<ds:Reference URI="">`, `<ds:Reference Id="r2" URI="">`, 1)
		return withTemplate(strings.Replace(template, "<x:SignedDataObjectProperties/>", "<x:SignedDataObjectProperties>"+formats+"</x:SignedDataObjectProperties>", 1))
	}
	format := func(of, what string) string {
		return `<x:DataObjectFormat ObjectReference="` + of + `">` + what + `</x:DataObjectFormat>`
	}
	const mime = "<x:MimeType>text/xml</x:MimeType>"
	for name, test := range map[string]struct {
		text, level string
		note        string
	}{
		"each":            {with(format("#r1", mime) + format("#r2", mime)), "BES", ""},
		"one missing":     {with(format("#r1", mime)), "BES", "no DataObjectFormat gives the MimeType"},
		"none":            {with(""), "BES", ""},
		"a description":   {with(format("#r1", "<x:Description>d</x:Description>") + format("#r2", mime)), "BES", "no DataObjectFormat gives the MimeType"},
		"about nothing":   {with(format("#r1", mime) + format("#r3", mime)), "XMLDSig", "no Reference of this signature"},
		"about a part":    {with(format("#part", mime)), "XMLDSig", "no Reference of this signature"},
		"no reference":    {with("<x:DataObjectFormat>" + mime + "</x:DataObjectFormat>"), "XMLDSig", "no Reference of this signature"},
		"no hash sign":    {with(format("r1", mime)), "XMLDSig", "no Reference of this signature"},
		"empty":           {with(format("#r1", "")), "XMLDSig", "is empty"},
		"an empty format": {with(format("#r1", "<x:MimeType> </x:MimeType>")), "XMLDSig", "is empty"},
	} {
		signed := sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", test.text))
		got := mustHold(t, signed, root).Signatures[0]
		var notes []string
		for _, f := range got.Findings {
			if f.Code == "data-object-format" {
				notes = append(notes, f.Text)
			}
		}
		if got.Level != test.level || len(notes) > 1 || (len(notes) == 1) != (test.note != "") || !strings.Contains(strings.Join(notes, ""), test.note) {
			t.Errorf("%s: level %s, %q", name, got.Level, notes)
		}
	}
	for _, kind := range []string{"XMLEnveloped", "XMLEnveloping"} {
		got := mustHold(t, sigtest.Make(t, xmldsig.New(), signer, jobOf(kind, s, "XAdESType", "BES")), root).Signatures[0]
		if hasCode(got.Findings, "data-object-format") {
			t.Errorf("%s: %+v", kind, got.Findings)
		}
	}
}

// A digest by SHA-1 counts only if the signature is proved to have existed while SHA-1
// was strong.
func TestWeakDigest(t *testing.T) {
	s := suite.RSASHA256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	const data = `<d Id="d">1</d>`
	info := `<SignedInfo xmlns="http://www.w3.org/2000/09/xmldsig#"><CanonicalizationMethod Algorithm="` + excC14N + `"></CanonicalizationMethod><SignatureMethod Algorithm="` + s.XML[0] + `"></SignatureMethod>` +
		`<Reference URI="#d"><DigestMethod Algorithm="http://www.w3.org/2000/09/xmldsig#sha1"></DigestMethod><DigestValue>` +
		base64.StdEncoding.EncodeToString(suite.SHA1.Digest([]byte(data)).Sum) + `</DigestValue></Reference></SignedInfo>`
	value := base64.StdEncoding.EncodeToString(signer.Sign(t, s.Hash.Digest([]byte(info))))
	signed := `<r>` + data + `<Signature xmlns="http://www.w3.org/2000/09/xmldsig#">` + info + `<SignatureValue>` + value + `</SignatureValue><KeyInfo><X509Data><X509Certificate>` +
		base64.StdEncoding.EncodeToString(signer.Certificate.Raw) + `</X509Certificate></X509Data></KeyInfo></Signature></r>`
	r := verify(t, []byte(signed), root)
	if r.Verdict() != sig.Indeterminate || !slices.Equal(sigtest.Codes(r), []string{sig.CodeWeak}) {
		t.Errorf("%v %s", r.Verdict(), texts(r))
	}
	for _, f := range r.Signatures[0].Findings {
		if f.Code == sig.CodeWeak && f.Indication != sig.CryptoConstraintsFailureNoPOE {
			t.Errorf("%+v", f)
		}
	}
	// For that time SHA-1 is not weak, but the certificate of the test is not yet valid.
	c := checkOf(signed, root)
	c.At = time.Date(2013, 6, 1, 0, 0, 0, 0, time.UTC)
	if r, err := xmldsig.New().Verify(t.Context(), c); err != nil || slices.Contains(sigtest.Codes(r), sig.CodeWeak) {
		t.Errorf("in 2013: %v %s", err, texts(r))
	}
	// Changed data fails, with a weak hash too.
	changed := strings.Replace(signed, ">1<", ">2<", 1)
	if r := verify(t, []byte(changed), root); r.Verdict() != sig.Failed || !slices.Contains(sigtest.Codes(r), "digest-mismatch") {
		t.Errorf("changed: %v", sigtest.Codes(r))
	}
}

// A document deeper than elements may nest is refused with the limit in the error.
func TestDepth(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	nest := func(n int) string { return strings.Repeat("<a>", n) + strings.Repeat("</a>", n) }
	if _, err := sigtest.Try(t, xmldsig.New(), signer, job("XMLEnveloped", nest(256))); err != nil {
		t.Error(err)
	}
	_, err := sigtest.Try(t, xmldsig.New(), signer, job("XMLEnveloped", nest(257)))
	if err == nil || !strings.Contains(err.Error(), "256 levels") {
		t.Errorf("%v", err)
	}
	if _, err = xmldsig.New().Verify(t.Context(), checkOf(nest(257), root)); err == nil || !strings.Contains(err.Error(), "256 levels") {
		t.Errorf("%v", err)
	}
	if _, err := xmltree.Parse([]byte(nest(257)), xmltree.Options{}); err == nil {
		t.Error("the limit has moved: docs/compatibility.md names it")
	}
}

// The findings of each failed signature have the right indication.
func TestIndications(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	signed := string(sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", fmt.Sprintf(envelope, bare(s, "#body", transformsOf(exclusive))))))
	for name, test := range map[string]struct {
		old, new   string
		code       string
		indication sig.Indication
	}{
		"changed":             {`to="Ivan"`, `to="Boris"`, "digest-mismatch", sig.HashFailure},
		"gone":                {`Id="body"`, `Id="missing"`, "reference-missing", sig.SignedDataNotFound},
		"twice":               {"</S:Envelope>", `<x id="body"/></S:Envelope>`, "reference-id-not-unique", sig.SignedDataNotFound},
		"remote":              {`URI="#body"`, `URI="http://example.org/"`, "reference-refused", sig.SignedDataNotFound},
		"XSLT":                {exclusive, `<Transform Algorithm="http://www.w3.org/TR/1999/REC-xslt-19991116"/>`, "transform-refused", sig.SignedDataNotFound},
		"a parameter":         {exclusive, `<Transform Algorithm="http://www.w3.org/2000/09/xmldsig#base64"><x/></Transform>`, "transform-malformed", sig.FormatFailure},
		"no algorithm":        {exclusive, `<Transform/>`, "transform-malformed", sig.FormatFailure},
		"not to be applied":   {exclusive, `<Transform Algorithm="http://www.w3.org/2000/09/xmldsig#base64"/>` + exclusive, "reference-failed", sig.SignedDataNotFound},
		"nothing left":        {exclusive, `<Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"><XPath>self::nothing</XPath></Transform>`, "reference-empty", sig.SignedDataNotFound},
		"an unknown digest":   {`<DigestMethod Algorithm="` + s.Hash.XML[0], `<DigestMethod Algorithm="urn:x`, "algorithm-unknown", sig.CryptoConstraintsFailure},
		"an unknown method":   {s.XML[0], "urn:x", "algorithm-unknown", sig.CryptoConstraintsFailure},
		"another method":      {s.XML[0], suite.GOST2012x512.XML[0], "algorithm-mismatch", sig.SigCryptoFailure},
		"a changed method":    {"http://www.w3.org/TR/2001/REC-xml-c14n-20010315", "http://www.w3.org/2006/12/xml-c14n11", "signature-mismatch", sig.SigCryptoFailure},
		"no certificate":      {"<X509Data>", "<X509Data><!-- ", "certificate-missing", sig.NoSigningCertificateFound},
		"two values":          {"<SignatureValue>", "<SignatureValue/><SignatureValue>", "signature-malformed", sig.FormatFailure},
		"not filled":          {string(between(t, []byte(signed), "<SignatureValue>", "</SignatureValue>")), "<SignatureValue/>", "signature-empty", sig.FormatFailure},
		"a strict expression": {exclusive, `<Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"><XPath>document('x')</XPath></Transform>`, "transform-refused", sig.SignedDataNotFound},
	} {
		text := strings.Replace(signed, test.old, test.new, 1)
		if name == "no certificate" {
			text = strings.Replace(text, "</X509Data>", " --></X509Data>", 1)
		}
		r := verify(t, []byte(text), root)
		i := slices.IndexFunc(r.Signatures[0].Findings, func(f sig.Finding) bool { return f.Code == test.code })
		if i < 0 || r.Signatures[0].Findings[i].Indication != test.indication || r.Passed() {
			t.Errorf("%s: %s, want %s with %s", name, texts(r), test.code, test.indication)
		}
	}
}

// For every change to the bytes and elements of a signed document: if its signature still
// passes, the signed data is the same.
func TestMutations(t *testing.T) {
	s := suite.ECDSAP256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	part := fmt.Sprintf(envelope, bare(s, "#body", transformsOf(exclusive)))
	for name, test := range map[string]struct {
		job    *sig.Job
		signed func(*xmltree.Tree) xmltree.Node // what the signature covers
	}{
		"enveloped": {jobOf("XMLEnveloped", s, "XAdESType", "BES"), func(t *xmltree.Tree) xmltree.Node { return xmltree.Document }},
		"template": {job("XMLTemplate", part), func(t *xmltree.Tree) xmltree.Node {
			if found := t.ByID("body"); len(found) == 1 {
				return found[0]
			}
			return xmltree.None
		}},
	} {
		t.Run(name, func(t *testing.T) {
			signed := sigtest.Make(t, xmldsig.New(), signer, test.job)
			content := func(b []byte) string {
				tree, err := xmltree.Parse(b, xmltree.Options{})
				if err != nil {
					return ""
				}
				n := test.signed(tree)
				if n == xmltree.None {
					return ""
				}
				set := tree.Subtree(n)
				for s := range tree.Find(xmltree.Document, "http://www.w3.org/2000/09/xmldsig#", "Signature") {
					set.Remove(s)
				}
				var out strings.Builder
				if err := set.Canonicalize(&out, xmltree.Method{Form: xmltree.Exclusive}); err != nil {
					return ""
				}
				return out.String()
			}
			want, tried, passed := content(signed), 0, 0
			judge := func(changed []byte) {
				tried++
				r, err := xmldsig.New().Verify(t.Context(), checkOf(string(changed), root))
				if err != nil || !r.Passed() {
					return
				}
				passed++
				if got := content(changed); got != want {
					t.Errorf("passes, and is %q\n%s", got, changed)
				}
			}
			for i := range signed {
				if testsize.Of() < testsize.Whole && i%4 != 0 {
					continue
				}
				for _, b := range []byte{signed[i] ^ 1, 'a', ' ', '<'} {
					changed := slices.Clone(signed)
					changed[i] = b
					judge(changed)
				}
				judge(slices.Delete(slices.Clone(signed), i, i+1))
			}
			tree, err := xmltree.Parse(signed, xmltree.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var spans []xmltree.Span
			for n := range tree.Len() {
				if tree.Kind(xmltree.Node(n)) == xmltree.KindElement && xmltree.Node(n) != tree.Root() {
					spans = append(spans, tree.Span(xmltree.Node(n)))
				}
			}
			text := string(tree.Text())
			for _, a := range spans {
				element := text[a.Start:a.End]
				judge([]byte(text[:a.Start] + text[a.End:]))
				for _, b := range spans {
					judge([]byte(text[:b.Start] + element + text[b.Start:])) // a copy before each element
					if b.Start >= a.End {                                    // moved after it, and in place of it
						judge([]byte(text[:a.Start] + text[a.End:b.End] + element + text[b.End:]))
						judge([]byte(text[:a.Start] + text[b.Start:b.End] + text[a.End:b.Start] + element + text[b.End:]))
					}
				}
			}
			t.Logf("%d changes, %d pass with the same content", tried, passed)
		})
	}
}
