// SPDX-License-Identifier: Apache-2.0

package xmldsig_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/xmldsig"
	"tamga/sig/xmltree"
)

// wrapped generates wrapping attacks: the signed element is moved before, after and into
// each element of the document, bare or in a wrapper, and another element takes its old
// place, with the same identifier (in each form), another one, or none.
func wrapped(t *testing.T, signed string) (forged []string) {
	t.Helper()
	tree, err := xmltree.Parse([]byte(signed), xmltree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(signed, body)
	evils := []string{
		`<S:Body Id="body">`, `<S:Body ID="body">`, `<S:Body id='body'>`, `<S:Body wsu:Id="body">`, `<S:Body xml:id="body">`,
		`<S:Body Id="&#98;o&#x64;y">`, `<S:Body Id="other" ID="body">`, `<S:Body Id="body ">`, `<S:Body Id="bodY">`, `<S:Body Id="other">`,
		`<S:Body x:Id="body" xmlns:x="urn:x">`, `<S:Body xmlns:S="urn:not-soap" Id="other">`, `<S:Body>`,
	}
	covers := []string{"%s", "<w>%s</w>", `<w Id="w"><!-- body --><S:Body>%s</S:Body></w>`, `<ds:Object xmlns:ds="http://www.w3.org/2000/09/xmldsig#" xmlns="">%s</ds:Object>`}
	for _, evil := range evils {
		evil += `<pay to="Boris">9999</pay></S:Body>`
		// In place of it, without a copy anywhere, and around it.
		forged = append(forged, strings.Replace(signed, body, evil, 1), strings.Replace(signed, body, strings.Replace(evil, "</S:Body>", body+"</S:Body>", 1), 1))
		for n := range tree.Len() {
			node := xmltree.Node(n)
			if tree.Kind(node) != xmltree.KindElement {
				continue
			}
			places := map[int]bool{tree.Span(node).Start: true, tree.Span(node).End: true}
			if !tree.IsEmptyTag(node) {
				places[tree.Content(node).Start] = true
			}
			for place := range places {
				if place > at && place < at+len(body) {
					continue
				}
				for _, cover := range covers {
					moved := fmt.Sprintf(cover, body)
					var out string
					if place <= at {
						out = signed[:place] + moved + strings.Replace(signed[place:], body, evil, 1)
					} else {
						out = strings.Replace(signed[:place], body, evil, 1) + moved + signed[place:]
					}
					// Before and after the root only inside a new root.
					if place == tree.Span(tree.Root()).Start || place == tree.Span(tree.Root()).End {
						out = `<w xmlns:S="http://schemas.xmlsoap.org/soap/envelope/">` + out + "</w>"
					}
					forged = append(forged, out)
				}
			}
		}
	}
	return forged
}

var coveredPath = regexp.MustCompile(` at (/\S+), line`)

// TestGeneratedWrapping tries all generated forgeries for each way of referring to the
// body. A report that a forgery is valid must name the signed element at its present
// place, or say that XPath selected something. All reports must say that only a part is
// covered.
func TestGeneratedWrapping(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	const soap = ` xmlns:S="http://schemas.xmlsoap.org/soap/envelope/"`
	for name, template := range map[string]string{
		"id":          bare(s, "#body", transformsOf(exclusive)),
		"xpointer":    bare(s, "#xpointer(id('body'))", transformsOf(exclusive)),
		"no form":     bare(s, "#body", ""),
		"the whole":   bare(s, "", enveloped(exclusive)),
		"XPath":       bare(s, "", transformsOf(`<Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"><XPath`+soap+`>ancestor-or-self::S:Body</XPath></Transform>`)),
		"XPath by id": bare(s, "", transformsOf(`<Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"><XPath`+soap+`>ancestor-or-self::*[@Id="body"]</XPath></Transform>`)),
		"filter 2.0":  bare(s, "", transformsOf(`<Transform Algorithm="http://www.w3.org/2002/06/xmldsig-filter2"><XPath xmlns="http://www.w3.org/2002/06/xmldsig-filter2"`+soap+` Filter="intersect">//S:Body</XPath></Transform>`)),
	} {
		t.Run(name, func(t *testing.T) {
			signed := string(sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", fmt.Sprintf(envelope, template))))
			mustHold(t, []byte(signed), root)
			all, held := wrapped(t, signed), 0
			for i, forged := range all {
				if testsize.Of() < testsize.Whole && i%5 != 0 {
					continue
				}
				r, err := xmldsig.New().Verify(t.Context(), checkOf(forged, root))
				if err != nil || !r.Passed() {
					continue
				}
				held++
				if why := deceives(t, forged, r.Signatures[0]); why != "" {
					t.Fatalf("%s\n%s\n%s", why, r.Signatures[0].Covers, forged)
				}
				for _, ask := range []sig.Check{{Strict: true}, {Expect: "/Envelope/Body"}} {
					c := checkOf(forged, root)
					c.Strict, c.Expect = ask.Strict, ask.Expect
					if r, err := xmldsig.New().Verify(t.Context(), c); err != nil || r.Verdict() != sig.Failed {
						t.Fatalf("%+v: %v, %v\n%s", ask, err, r.Verdict(), forged)
					}
				}
			}
			t.Logf("%d forgeries: %d refused, %d told to cover what was signed, elsewhere", len(all), len(all)-held, held)
			if name == "the whole" && held > 0 {
				t.Errorf("%d of the whole document hold", held)
			}
		})
	}
}

// deceives returns what is wrong with the report on a forgery whose signature is valid.
func deceives(t *testing.T, forged string, s sig.Signature) string {
	t.Helper()
	if !hasCode(s.Findings, "covers-part") || !slices.ContainsFunc(s.Headlines(), func(h string) bool { return strings.HasPrefix(h, "covers only ") }) {
		return "that a part alone is signed is not told"
	}
	m := coveredPath.FindStringSubmatch(s.Covers)
	if m == nil {
		if !strings.Contains(s.Covers, "only the nodes that XPath selects") {
			return "no element is named"
		}
		return ""
	}
	tree, err := xmltree.Parse([]byte(forged), xmltree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := xmltree.Document
	for step := range strings.SplitSeq(m[1][1:], "/") {
		name, position := step, 1
		if i := strings.IndexByte(step, '['); i >= 0 {
			name = step[:i]
			if position, err = strconv.Atoi(strings.Trim(step[i:], "[]")); err != nil {
				t.Fatal(err)
			}
		}
		for c := range tree.Elements(n) {
			if tree.Name(c).Local == name {
				if position--; position == 0 {
					n = c
					break
				}
			}
		}
	}
	if got := string(tree.Slice(tree.Span(n))); got != body {
		return "the element named is " + got
	}
	return ""
}
