// SPDX-License-Identifier: Apache-2.0

package xmldsig_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/xmldsig"
)

// xadesTemplates are the ways in which a template can bring its properties.
func xadesTemplates(s *suite.Suite) map[string]string {
	plain := templateFor(s, s.Hash.XML[0])
	with := func(inside string) string {
		out := strings.Replace(plain, "<ds:Signature ", `<ds:Signature Id="sig" `, 1)
		return strings.Replace(out, "</ds:Signature>", "<ds:Object>"+inside+"</ds:Object></ds:Signature>", 1)
	}
	reference := func(template string) string {
		return strings.Replace(template, "</ds:SignedInfo>", `<ds:Reference URI="#props" Type="http://uri.etsi.org/01903#SignedProperties">`+
			`<ds:DigestMethod Algorithm="`+s.Hash.XML[0]+`"/><ds:DigestValue/></ds:Reference></ds:SignedInfo>`, 1)
	}
	const (
		xmlns = ` xmlns:x="http://uri.etsi.org/01903/v1.3.2#"`
		deflt = ` xmlns="http://uri.etsi.org/01903/v1.3.2#"`
	)
	qualifying := func(inside string) string {
		return `<x:QualifyingProperties` + xmlns + ` Target="#sig">` + inside + `</x:QualifyingProperties>`
	}
	return map[string]string{
		"plain":              plain,
		"plain, with an Id":  strings.Replace(plain, "<ds:Signature ", `<ds:Signature Id="sig" `, 1),
		"empty":              with(`<x:QualifyingProperties` + xmlns + ` Target="#sig"/>`),
		"empty, referred to": reference(with(`<QualifyingProperties` + deflt + ` Target="#sig"> </QualifyingProperties>`)),
		"signed":             with(qualifying(`<x:SignedProperties Id="props"/>`)),
		"signed, referred to": reference(with(qualifying(`<x:SignedProperties Id="props"></x:SignedProperties>` +
			`<x:UnsignedProperties><x:UnsignedSignatureProperties/></x:UnsignedProperties>`))),
		"signature properties": reference(with(qualifying(`<x:SignedProperties Id="props"><x:SignedSignatureProperties/>` +
			`<x:SignedDataObjectProperties/></x:SignedProperties><x:UnsignedProperties/>`))),
		"each": reference(with(`<QualifyingProperties` + deflt + ` Target="#sig"><SignedProperties Id="props"><SignedSignatureProperties>` +
			`<SigningTime/><SigningCertificateV2/><SignaturePolicyIdentifier><SignaturePolicyImplied/></SignaturePolicyIdentifier>` +
			`</SignedSignatureProperties></SignedProperties><UnsignedProperties><UnsignedDataObjectProperties/></UnsignedProperties></QualifyingProperties>`)),
		"of TS 101 903": with(qualifying(`<x:SignedProperties Id="props"><x:SignedSignatureProperties><x:SigningTime/><x:SigningCertificate/>` +
			`</x:SignedSignatureProperties></x:SignedProperties>`)),
	}
}

// A template becomes XAdES of the requested level, wherever its properties are.
func TestXAdESTemplates(t *testing.T) {
	for _, s := range []*suite.Suite{suite.GOST2001, suite.GOST2012x256, suite.RSASHA256} {
		root := sigtest.Root(t, s)
		authority := root.Authority(t, "A <& B>")
		signer := authority.Signer(t, s, "Signer")
		services := sigtest.NewServices(t, root, authority)
		for name, template := range xadesTemplates(s) {
			for _, level := range []string{"", "BES", "T"} {
				t.Run(s.Name+"/"+name+"/"+level, func(t *testing.T) {
					j := job("XMLTemplate", withTemplate(template), "XAdESType", level, "TSPAddress", "http://tsp.test/", "IncludeCertChain", "1")
					j.Evidence = services
					signed := sigtest.Make(t, xmldsig.New(), signer, j)
					got := mustHold(t, signed, root).Signatures[0]
					want := level
					if level == "" && strings.HasPrefix(name, "plain") {
						want = "XMLDSig"
						if bytes.Contains(signed, []byte("01903")) {
							t.Error("properties that were not asked for")
						}
					} else if level == "" {
						want = "BES"
					}
					if got.Level != want || hasCode(got.Findings, "covers-part") {
						t.Errorf("level %s, %v\n%s", got.Level, got.Findings, signed)
					}
					if want != "XMLDSig" && !got.SigningTime.Equal(sigtest.Time) {
						t.Errorf("signed at %s", got.SigningTime)
					}
					if want == "T" && (len(got.TimeStamps) != 1 || !got.TimeStamps[0].Passed()) {
						t.Errorf("time stamps %+v\n%s", got.TimeStamps, signed)
					}
					if n := bytes.Count(signed, []byte(">2025-")); n > 1 {
						t.Errorf("the time is there %d times", n)
					}
				})
			}
		}
	}
}

// xmlsec and Santuario accept such signatures too.
func TestXAdESTemplatesJudged(t *testing.T) {
	x, j, g := judge.XMLSecGOST(t), judge.NewSantuario(t), judge.NewSantuarioGOST(t)
	all := map[*judge.Santuario][][]byte{}
	for i, s := range []*suite.Suite{suite.GOST2001, suite.GOST2012x256, suite.GOST2012x512, suite.RSASHA256, suite.ECDSAP256} {
		root := sigtest.Root(t, s)
		signer := root.Signer(t, s, "Signer")
		services := sigtest.NewServices(t, root)
		santuario := j
		if s.IsGOST() {
			santuario = g
		}
		templates := xadesTemplates(s)
		for k, name := range slices.Sorted(maps.Keys(templates)) {
			if leftOut(i, k, 2) {
				continue
			}
			template := templates[name]
			job := job("XMLTemplate", withTemplate(withOlderNames(s, template)), "XAdESType", "T", "TSPAddress", "http://tsp.test/")
			job.Evidence = services
			signed := sigtest.Make(t, xmldsig.New(), signer, job)
			all[santuario] = append(all[santuario], signed)
			if err := x.Verify(signed, root.PEM(), sigtest.Time, ids...); err != nil {
				t.Errorf("%s, %s: refused by xmlsec: %v\n%s", s.Name, name, err, signed)
			}
		}
	}
	if testsize.Of() == testsize.Quick {
		return // xmlsec has judged
	}
	for santuario, documents := range all {
		for i, err := range santuario.Verify(documents...) {
			if err != nil {
				t.Errorf("refused by Santuario: %v\n%s", err, documents[i])
			}
		}
	}
}

// A template that cannot become XAdES is refused with the place of the error.
func TestRefusedXAdESTemplates(t *testing.T) {
	s := suite.GOST2012x256
	signer := sigtest.Root(t, s).Signer(t, s, "Signer")
	services := sigtest.NewServices(t, sigtest.Root(t, s))
	all := xadesTemplates(s)
	for _, test := range []struct{ name, template, old, new, want string }{
		{"another target", "signed", `Target="#sig"`, `Target="#other"`, "must have the Target of their Signature"},
		{"no target", "empty", ` Target="#sig"`, ``, "must have the Target of their Signature"},
		{"twice", "empty", `<ds:Object>`, `<ds:Object><x:QualifyingProperties xmlns:x="http://uri.etsi.org/01903/v1.3.2#"/></ds:Object><ds:Object>`, "twice"},
		{"no id", "signed", ` Id="props"`, ``, "no Id that a reference could name"},
		{"another id", "signed, referred to", ` Id="props"`, ` Id="properties"`, "has no target"},
		{"a reference to everything", "empty, referred to", `URI="#props"`, `URI=""`, `must have URI="#id"`},
		{"no certificate", "each", `<SigningCertificateV2/>`, ``, "neither SigningCertificateV2 nor SigningCertificate"},
		{"only unsigned ones", "signed, referred to", `<x:SignedProperties Id="props"></x:SignedProperties>`, ``, "no SignedProperties"},
		{"without signature properties", "signature properties", `<x:SignedSignatureProperties/>`, ``, "no SignedSignatureProperties"},
		{"a reference that covers the time stamp", "each", `<ds:Object>`, `<ds:Object Id="part">`, "covers the value or a time stamp"},
	} {
		t.Run(test.name, func(t *testing.T) {
			template := strings.Replace(all[test.template], test.old, test.new, 1)
			if template == all[test.template] {
				t.Fatalf("%s is not in %s", test.old, template)
			}
			text := withTemplate(template)
			if strings.Contains(template, `<ds:Object Id="part">`) {
				text = strings.Replace(text, ` Id="part"  `, ` Id="other"  `, 1)
			}
			j := job("XMLTemplate", text, "XAdESType", "T", "TSPAddress", "http://tsp.test/")
			j.Evidence = services
			_, err := sigtest.Try(t, xmldsig.New(), signer, j)
			var bad *sig.ErrDocument
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "line ") {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
	if services.Calls("stamp") != 0 {
		t.Error("a time stamp was requested for a template that is refused")
	}
}

// The empty digests of a Manifest are filled before that of the reference to it.
func TestManifest(t *testing.T) {
	for _, s := range []*suite.Suite{suite.GOST2012x512, suite.RSASHA256} {
		root := sigtest.Root(t, s)
		signer := root.Signer(t, s, "Signer")
		entry := func(uri, transforms string) string {
			return `<Reference URI="` + uri + `">` + transforms + `<DigestMethod Algorithm="` + s.Hash.XML[0] + `"/><DigestValue/></Reference>`
		}
		manifest := func(entries string) string {
			template := bare(s, "#list", transformsOf(exclusive))
			template = strings.Replace(template, "<Reference ", `<Reference Type="http://www.w3.org/2000/09/xmldsig#Manifest" `, 1)
			return withTemplate(strings.Replace(template, "</Signature>", `<Object><Manifest Id="list">`+entries+`</Manifest></Object></Signature>`, 1))
		}
		text := manifest(entry("#part", transformsOf(exclusive)) + entry("", enveloped(exclusive)))
		signed := sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", text))
		mustHold(t, signed, root)
		// A reference that has a digest already stays unchanged, whatever its target is.
		filled := strings.Replace(entry("http://example.org/", ""), "<DigestValue/>", "<DigestValue>AAAA</DigestValue>", 1)
		mustHold(t, sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", manifest(filled))), root)
		// The same two as references of a signature of their own have the same digests.
		plain := withTemplate(strings.Replace(bare(s, "#part", transformsOf(exclusive)), "</SignedInfo>", entry("", enveloped(exclusive))+"</SignedInfo>", 1))
		want := foreignDigests(sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", plain)))
		got := foreignDigests(signed)
		if len(got) != 3 || got[1] != want[0] || got[2] != want[1] {
			t.Errorf("%v, want %v behind the first", got, want)
		}
		if s == suite.RSASHA256 {
			x := judge.XMLSec(t)
			if err := x.Verify(signed, root.PEM(), sigtest.Time, append(ids, "Manifest")...); err != nil {
				t.Errorf("%v\n%s", err, signed)
			}
		}
		for name, entries := range map[string]string{
			"itself":          entry("#list", transformsOf(exclusive)),
			"a remote one":    entry("http://example.org/", ""),
			"SHA-1":           strings.Replace(entry("#part", ""), s.Hash.XML[0], "http://www.w3.org/2000/09/xmldsig#sha1", 1),
			"one too many":    strings.Repeat(entry("#part", ""), 129),
			"what is nowhere": entry("#nowhere", ""),
		} {
			_, err := sigtest.Try(t, xmldsig.New(), signer, job("XMLTemplate", manifest(entries)))
			var bad *sig.ErrDocument
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), "line ") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// foreignDigests are digestValues of a signature without prefixes.
func foreignDigests(signed []byte) []string {
	return digestValues(bytes.ReplaceAll(signed, []byte("<DigestValue>"), []byte("<ds:DigestValue>")))
}

// Enhance turns BES into T and changes nothing else.
func TestEnhance(t *testing.T) {
	for _, s := range []*suite.Suite{suite.GOST2001, suite.GOST2012x256, suite.ECDSAP256} {
		root := sigtest.Root(t, s)
		signer := root.Signer(t, s, "Signer")
		services := sigtest.NewServices(t, root)
		sources := map[string]*sig.Job{
			"enveloped":    jobOf("XMLEnveloped", s, "XAdESType", "BES"),
			"enveloping":   jobOf("XMLEnveloping", s, "XAdESType", "BES"),
			"windows-1251": job("XMLEnveloped", string(encodings[4].write(t, document)), "XAdESType", "BES"),
			"UTF-16":       job("XMLEnveloped", string(encodings[6].write(t, document)), "XAdESType", "BES"),
		}
		for name, template := range xadesTemplates(s) {
			sources["template "+name] = job("XMLTemplate", withTemplate(template), "XAdESType", "BES")
		}
		for name, source := range sources {
			t.Run(s.Name+"/"+name, func(t *testing.T) {
				bes := sigtest.Make(t, xmldsig.New(), signer, source)
				raised, err := enhance(bes, services, "XAdESType", "T", "TSPAddress", "http://tsp.test/")
				if err != nil {
					t.Fatal(err)
				}
				got := mustHold(t, raised, root).Signatures[0]
				if got.Level != "T" || len(got.TimeStamps) != 1 || !got.TimeStamps[0].Passed() {
					t.Errorf("level %s, %+v", got.Level, got.TimeStamps)
				}
				// All added text is in one place.
				prefix := 0
				for prefix < len(bes) && bes[prefix] == raised[prefix] {
					prefix++
				}
				if tail := bes[prefix:]; !bytes.HasSuffix(raised, tail) && !bytes.HasSuffix(raised, tail[min(2, len(tail)):]) {
					t.Error("something else changed")
				}
				again, err := enhance(raised, services, "XAdESType", "T", "TSPAddress", "http://tsp.test/")
				if err != nil || !bytes.Equal(again, raised) {
					t.Errorf("once more: %v", err)
				}
			})
		}
	}
}

func enhance(signed []byte, services *sigtest.Services, params ...string) ([]byte, error) {
	j := job("XMLEnveloped", string(signed), params...)
	delete(j.Params, "XMLDsigType")
	j.Time, j.Evidence = sigtest.Time, services
	result, err := xmldsig.New().Enhance(context.Background(), j)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	_, err = result.WriteTo(&b)
	return b.Bytes(), err
}

// Signatures that Enhance refuses, with the reason.
func TestNotEnhanced(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	services := sigtest.NewServices(t, root)
	make := func(j *sig.Job) []byte { return sigtest.Make(t, xmldsig.New(), signer, j) }
	plain := make(jobOf("XMLEnveloped", s))
	bes := make(jobOf("XMLEnveloped", s, "XAdESType", "BES"))
	// The second of two covers the first, so a time stamp in the first would break the
	// second.
	twice := make(job("XMLEnveloped", string(make(job("XMLTemplate", withTemplate(strings.Replace(
		bare(s, "#part", transformsOf(exclusive)), "<Signature ", `<Signature Id="s" `, 1)), "XAdESType", "BES"))), "XAdESType", "BES"))
	mustHold(t, twice, root)
	level := []string{"XAdESType", "T", "TSPAddress", "http://tsp.test/"}
	for _, test := range []struct {
		name   string
		signed []byte
		params []string
		want   string
	}{
		{"plain", plain, level, "is not XAdES-BES"},
		{"changed", bytes.Replace(bes, []byte("привет"), []byte("привот"), 1), level, "is not valid"},
		{"no signature", []byte(document), level, "has no signature"},
		{"no XML", []byte("text"), level, "line 1, column 1"},
		{"covered by another", twice, level, "signature 1 covers the place"},
		{"the first of two", twice, append(level, "SignatureIndex", "0"), "signature 1 covers the place"},
		{"an index", bes, append(level, "SignatureIndex", "1"), "has 1 signatures"},
		{"no index", bes, append(level, "SignatureIndex", "x"), "not a number"},
		{"no level", bes, nil, "XAdESType"},
		{"another level", bes, []string{"XAdESType", "BES"}, "never lowers"},
		{"no address", bes, level[:2], "TSPAddress"},
	} {
		before := services.Calls("stamp")
		if _, err := enhance(test.signed, services, test.params...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
		if services.Calls("stamp") != before {
			t.Errorf("%s: a time stamp was requested for a signature that is refused", test.name)
		}
	}
	raised, err := enhance(twice, services, append(level, "SignatureIndex", "1")...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := xmldsig.New().Verify(context.Background(), &sig.Check{Document: sigtest.Document(raised), Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time})
	if err != nil || !r.Passed() || r.Signatures[0].Level != "BES" || r.Signatures[1].Level != "T" {
		t.Errorf("the second of two: %v %s", err, texts(r))
	}
	services.Err["stamp"] = &sig.ErrEvidence{What: "time stamp", Text: "does not answer"}
	var outage *sig.ErrEvidence
	if _, err := enhance(bes, services, level...); !errors.As(err, &outage) {
		t.Errorf("an outage: %v", err)
	}
}

// A signature that is not valid, with a time stamp that is, loses the time stamp if its signed properties hold
// the signature to raise. Then it is not raised.
func TestInsideSignedProperties(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer, services := root.Signer(t, s, "Signer"), sigtest.NewServices(t, root)
	moved := strings.NewReplacer("http://www.w3.org/TR/2001/REC-xml-c14n-20010315", "http://www.w3.org/2001/10/xml-exc-c14n#", "<Signature ", `<Signature Id="inner" `)
	inner := string(sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", withTemplate(moved.Replace(bare(s, "#part", transformsOf(exclusive)))), "XAdESType", "BES")))
	inner = inner[strings.Index(inner, "<Signature "):]
	inner = inner[:strings.LastIndex(inner, "</Signature>")+len("</Signature>")]
	outer := strings.Replace(xadesTemplates(s)["signature properties"], "<x:SignedDataObjectProperties/>",
		"<x:SignedDataObjectProperties>"+inner+"</x:SignedDataObjectProperties>", 1)
	outer = strings.Replace(outer, `<ds:Reference URI="">`, `<ds:Reference URI="#two">`, 1)
	outer = strings.Replace(outer, `<ds:Transform Algorithm="http://www.w3.org/2000/09/xmldsig#enveloped-signature"/>`, "", 1)
	j := job("XMLTemplate", strings.Replace(withTemplate(outer), "<other ", `<a:two Id="two">before</a:two><other `, 1), "XAdESType", "T", "TSPAddress", "http://tsp.test/")
	j.Evidence = services
	signed := sigtest.Make(t, xmldsig.New(), signer, j)
	mustHold(t, signed, root)
	signed = bytes.Replace(signed, []byte(">before<"), []byte(">after<"), 1)
	if r := verify(t, signed, root); len(r.Signatures) != 2 || r.Signatures[0].Holds() || len(r.Signatures[0].TimeStamps) != 1 || !r.Signatures[1].Holds() {
		t.Fatal(texts(r))
	}
	if _, err := enhance(signed, services, "XAdESType", "T", "TSPAddress", "http://tsp.test/", "SignatureIndex", "1"); err == nil || !strings.Contains(err.Error(), "signature 0 covers the place") {
		t.Error(err)
	}
}
