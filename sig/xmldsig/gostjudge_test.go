// SPDX-License-Identifier: Apache-2.0

package xmldsig_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/xmldsig"
)

// gostSuites are the profiles of the specification.
var gostSuites = []*suite.Suite{suite.GOST2001, suite.GOST2012x256, suite.GOST2012x512}

// everyTransform are templates with each transform that other programs have, too.
var everyTransform = map[string]string{
	"enveloped alone": enveloped(""),
	"C14N 1.0":        enveloped(`<Transform Algorithm="http://www.w3.org/TR/2001/REC-xml-c14n-20010315#WithComments"/>`),
	"C14N 1.1":        enveloped(`<Transform Algorithm="http://www.w3.org/2006/12/xml-c14n11"/>`),
	"prefix list":     enveloped(`<Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"><InclusiveNamespaces xmlns="http://www.w3.org/2001/10/xml-exc-c14n#" PrefixList="a #default"/></Transform>`),
	"XPath":           transformsOf(`<Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"><XPath xmlns:dsig="http://www.w3.org/2000/09/xmldsig#">not(ancestor-or-self::dsig:Signature)</XPath></Transform>`),
	"here()":          transformsOf(`<Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"><XPath xmlns:dsig="http://www.w3.org/2000/09/xmldsig#">count(ancestor-or-self::dsig:Signature | here()/ancestor::dsig:Signature[1]) &gt; count(ancestor-or-self::dsig:Signature)</XPath></Transform>`),
	"filter 2.0":      transformsOf(`<Transform Algorithm="http://www.w3.org/2002/06/xmldsig-filter2"><XPath xmlns="http://www.w3.org/2002/06/xmldsig-filter2" Filter="subtract" xmlns:dsig="http://www.w3.org/2000/09/xmldsig#">//dsig:Signature</XPath></Transform>`),
}

// everyURI are the ways a Reference names the whole document or the part.
var everyURI = []string{"", "#part", "#xpointer(/)", "#xpointer(id('part'))"}

// withOlderNames is a template with the older name of the signature algorithm, where
// there is one. That of the digest is the older one anyway.
func withOlderNames(s *suite.Suite, template string) string {
	return strings.ReplaceAll(template, s.XML[0]+`"`, s.XML[len(s.XML)-1]+`"`)
}

// exhibit is a signed document and whether its signature is valid.
type exhibit struct {
	name string
	xml  []byte
	good bool
}

// gostExhibits are the documents that a profile signs, of every kind, level and
// transform, and each one with a change. older limits them to templates, with older
// names.
func gostExhibits(t *testing.T, signer *sigtest.Party, s *suite.Suite, older bool) (all []exhibit) {
	t.Helper()
	add := func(name string, j *sig.Job) {
		t.Helper()
		name = s.Name + "/" + name
		signed := sigtest.Make(t, xmldsig.New(), signer, j)
		all = append(all, exhibit{name, signed, true})
		for what, bad := range broken(t, signed) {
			all = append(all, exhibit{name + ", " + what + " changed", bad, false})
		}
	}
	template := func(text string) *sig.Job {
		if older {
			text = withOlderNames(s, text)
		}
		return job("XMLTemplate", text, "IncludeCertChain", "True")
	}
	if !older {
		for i, kind := range []string{"XMLEnveloped", "XMLEnveloping"} {
			for j, level := range []string{"None", "BES"} {
				if leftOut(slices.Index(gostSuites, s)+i, j, 2) {
					continue
				}
				add(kind+"/"+level, jobOf(kind, s, "XAdESType", level, "IncludeCertChain", "True"))
			}
		}
	}
	text := withTemplate(templateFor(s, s.Hash.XML[0]))
	add("XMLTemplate", template(text))
	text = strings.Replace(text, "</ds:Signature>", `<ds:Object Id="object">данные</ds:Object></ds:Signature>`, 1)
	add("XMLTemplate with an Object", template(strings.Replace(text, `URI="#part"`, `URI="#object"`, 1)))
	for i, transform := range slices.Sorted(maps.Keys(everyTransform)) {
		for j, uri := range everyURI {
			if leftOut(i, j, len(everyURI)) {
				continue
			}
			name := s.Name + "/" + transform + "/" + uri
			signed := sigtest.Make(t, xmldsig.New(), signer, template(withTemplate(bare(s, uri, everyTransform[transform]))))
			all = append(all, exhibit{name, signed, true},
				exhibit{name + ", a letter changed", bytes.Replace(signed, []byte("привет"), []byte("привот"), 1), false})
		}
	}
	return all
}

// hear compares the verdict of another program with the right one and with ours.
func hear(t *testing.T, who string, e exhibit, root *sigtest.Party, err error) {
	t.Helper()
	switch {
	case e.good && err != nil:
		t.Errorf("%s is refused by %s: %v\n%s", e.name, who, err, e.xml)
	case !e.good && err == nil:
		t.Errorf("%s is accepted by %s", e.name, who)
	}
	if verify(t, e.xml, root).Passed() != e.good {
		t.Errorf("%s: we say %v", e.name, !e.good)
	}
}

// An xmlsec that was built with GOST accepts what each profile signs, with its
// certificates, and refuses it changed. Of the profile of 2001 it knows only the older
// names, which a template keeps.
func TestXMLSecGOSTJudges(t *testing.T) {
	x := judge.XMLSecGOST(t)
	for _, s := range gostSuites {
		root := sigtest.Root(t, s)
		signer := root.Authority(t, "Authority").Signer(t, s, "Иван Петров")
		for _, e := range gostExhibits(t, signer, s, s == suite.GOST2001) {
			hear(t, "xmlsec", e, root, x.Verify(e.xml, root.PEM(), sigtest.Time, ids...))
		}
	}
}

// Apache Santuario with Bouncy Castle gives the same verdicts.
func TestSantuarioGOSTJudges(t *testing.T) {
	if testsize.Of() == testsize.Quick {
		t.Skip("xmlsec and OpenSSL judge in the quick form")
	}
	j := judge.NewSantuarioGOST(t)
	var all []exhibit
	var roots []*sigtest.Party
	for _, s := range gostSuites {
		root := sigtest.Root(t, s)
		signer := root.Authority(t, "Authority").Signer(t, s, "Иван Петров")
		all = append(all, gostExhibits(t, signer, s, false)...)
		if s == suite.GOST2001 {
			all = append(all, gostExhibits(t, signer, s, true)...)
		}
		for len(roots) < len(all) {
			roots = append(roots, root)
		}
	}
	documents := make([][]byte, len(all))
	for i, e := range all {
		documents[i] = e.xml
	}
	for i, err := range j.Verify(documents...) {
		hear(t, "Santuario", all[i], roots[i], err)
	}
}
