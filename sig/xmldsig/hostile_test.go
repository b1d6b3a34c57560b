// SPDX-License-Identifier: Apache-2.0

package xmldsig_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/xmldsig"
)

// filled makes a template look signed.
func filled(text string) string {
	text = strings.ReplaceAll(text, "<DigestValue/>", "<DigestValue>AAAA</DigestValue>")
	return strings.ReplaceAll(text, "<SignatureValue/>", "<SignatureValue>AAAA</SignatureValue>")
}

// withReferences has so many references with these transforms in each of so many signatures.
func withReferences(s *suite.Suite, signatures, references int, uri, transforms string) string {
	one := bare(s, uri, transforms)
	from, to := strings.Index(one, "<Reference"), strings.Index(one, "</SignedInfo>")
	one = one[:from] + strings.Repeat(one[from:to], references) + one[to:]
	return strings.Repeat(one, signatures)
}

func filter2(expressions ...string) string {
	var b strings.Builder
	b.WriteString(`<Transform Algorithm="http://www.w3.org/2002/06/xmldsig-filter2">`)
	for _, e := range expressions {
		b.WriteString(`<XPath xmlns="http://www.w3.org/2002/06/xmldsig-filter2" Filter="intersect">` + e + `</XPath>`)
	}
	return b.String() + `</Transform>`
}

func xpath(expression string) string {
	return `<Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"><XPath>` + expression + `</XPath></Transform>`
}

func repeat(n int, s string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = s
	}
	return out
}

// hostile are small documents that ask for very much work.
func hostile(s *suite.Suite) map[string]string {
	b := func(n int, of string) string { return strings.Repeat(of, n) }
	smev := `<Transform Algorithm="` + smevURN + `"/>`
	eight := strings.Repeat(filter2(repeat(8, "//*[//*]")...), 8)
	var spaces strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&spaces, ` xmlns:p%d="urn:%d"`, i, i)
	}
	return map[string]string{
		"Filter2 inside Filter2":           "<d>" + b(100, "<a/>") + withReferences(s, 1, 4, "", transformsOf(eight)) + "</d>",
		"references with Filter2":          "<d>" + b(100, "<a/>") + withReferences(s, 2, 128, "", transformsOf(filter2("//*[not(//z)]"))) + "</d>",
		"ancestors of each node":           "<d>" + b(400, b(200, "<p>")+b(200, "text<q/>")+b(200, "</p>")) + withReferences(s, 1, 1, "", transformsOf(xpath("count(ancestor-or-self::p)=1"))) + "</d>",
		"expressions without a path":       "<d>" + b(20_000, "<a/>") + withReferences(s, 1, 8, "", transformsOf(xpath(b(1000, "1=2 or ")+"1=1"))) + "</d>",
		"numbers":                          "<d>" + b(20_000, "<a/>") + withReferences(s, 1, 1, "", transformsOf(xpath("count(//*[. &gt; '"+b(7000, "1")+"']) = 1"))) + "</d>",
		"attributes compared":              `<d><e a="` + b(1<<20, "x") + `"/>` + b(2000, "<a/>") + withReferences(s, 1, 1, "", transformsOf(xpath("//@a = 'y'"))) + "</d>",
		"subtrees of attributes":           "<d>" + b(60_000, `<a b=""/>`) + withReferences(s, 1, 1, "", transformsOf(filter2("//@*"))) + "</d>",
		"declarations in scope everywhere": "<d" + spaces.String() + ">" + b(40_000, `<a xmlns:q="urn:q"/>`) + withReferences(s, 1, 1, "", transformsOf(xpath("not(self::z)"))) + "</d>",
		"SMEV declares again and again":    `<d xmlns="urn:d"><x xmlns:p="urn:` + b(8000, "p") + `" Id="x">` + b(40_000, "<p:a/>") + "</x>" + withReferences(s, 1, 1, "", transformsOf(exclusive+smev)) + "</d>",
		"brothers counted":                 "<d>" + b(200_000, "<a/>") + `<a Id="x"/>` + withReferences(s, 64, 128, "#x", transformsOf(exclusive)) + "</d>",
		"references":                       "<d>" + b(100_000, "<a/>") + withReferences(s, 8, 128, "", enveloped(exclusive)) + "</d>",
		"references to little":             "<d>" + b(300_000, "<a/>") + `<a Id="x"/>` + withReferences(s, 64, 64, "#x", transformsOf(exclusive)) + "</d>",
		"elements without number":          "<d>" + b(2_500_000, "<a/>") + withReferences(s, 1, 1, "", enveloped(exclusive)) + "</d>",
	}
}

// Each hostile document is refused for its cost, and the work counted until then is
// hardly more than the bound: no large work is uncounted.
func TestHostile(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	for name, text := range hostile(s) {
		t.Run(name, func(t *testing.T) {
			limits := budget.Anonymous()
			if testsize.Of() < testsize.Whole {
				limits.Steps /= 4
			}
			ctx := budget.With(context.Background(), limits)
			r, err := xmldsig.New().Verify(ctx, checkOf(filled(text), root))
			_, b := budget.Of(ctx, 0)
			var document *sig.ErrDocument
			var exceeded *budget.Exceeded
			if !errors.As(err, &document) || !errors.As(err, &exceeded) {
				t.Errorf("%v, %v", r, err)
			}
			if limit := limits.Steps; b.Spent() > limit+limit/4 {
				t.Errorf("%d steps, at most %d allowed", b.Spent(), limit)
			}
			// With a token: the same bound, which grows with the size of the document. TestWork
			// tries this in the short form too.
			if testsize.Of() < testsize.Whole || strings.Contains(text, "Id=\"x\"") || len(text) > 1<<20 {
				return
			}
			if _, err := sigtest.Try(t, xmldsig.New(), signer, job("XMLTemplate", text)); !errors.Is(err, budget.ErrSteps) {
				t.Errorf("signing: %v", err)
			}
		})
	}
}

// The tree of an unauthenticated caller's document stays within its memory bound, both
// counted and real.
func TestHostileMemory(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	for name, part := range map[string]string{
		"elements": "<b/>", "text between": "x<b/>", "comments": "<!---->", "attributes": "<b a='' b='' c=''/>",
		"equals signs": `<b a="` + strings.Repeat("=", 1000) + `"/>`, "references": "&#60;&#60;<b/>", "names": "",
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			b.WriteString("<d>")
			for i := 0; b.Len() < 24<<20; i++ {
				if name == "names" {
					fmt.Fprintf(&b, "<a%d/>", i%60_000)
				} else {
					b.WriteString(part)
				}
			}
			text := b.String() + "</d>"
			ctx := budget.With(context.Background(), budget.Anonymous())
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := xmldsig.New().Verify(ctx, checkOf(text, root))
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > 96<<20 {
				t.Errorf("%d MiB were allocated", took>>20)
			}
			var exceeded *budget.Exceeded
			if err != nil && !errors.As(err, &exceeded) {
				t.Error(err)
			}
			if name == "elements" && !errors.Is(err, budget.ErrMemory) {
				t.Errorf("24 MiB of <b/>: %v", err)
			}
		})
	}
}

// Documents as users send them stay far below the bounds: a statement of 10,000 lines,
// and a template with common transforms.
func TestLegitimate(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	line := `<line number="17" code="810"><payer inn="7707083893">ООО «Ромашка»</payer><sum currency="RUB">1234.56</sum><purpose>Оплата по договору 12/34 от 01.02.2026</purpose></line>`
	large := `<s:statement xmlns:s="urn:statement" xmlns="urn:lines">` + strings.Repeat(line, 10_000) // 2.5 MB
	for name, text := range map[string]string{
		"enveloped": large + bare(s, "", enveloped(exclusive)) + "</s:statement>",
		"SMEV":      large + `<part xmlns="urn:part" Id="part">` + strings.Repeat(line, 2000) + "</part>" + bare(s, "#part", transformsOf(exclusive+`<Transform Algorithm="`+smevURN+`"/>`)) + "</s:statement>",
		"XPath":     large + bare(s, "", transformsOf(xpath("not(ancestor-or-self::ds:Signature)")+exclusive)) + "</s:statement>",
		"Filter2":   large + bare(s, "", transformsOf(filter2("/*")+strings.Replace(filter2("here()/ancestor::ds:Signature[1]"), "intersect", "subtract", 1))) + "</s:statement>",
	} {
		t.Run(name, func(t *testing.T) {
			text = strings.Replace(text, "<s:statement", `<s:statement xmlns:ds="http://www.w3.org/2000/09/xmldsig#"`, 1)
			signed := sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", text))
			ctx := budget.With(context.Background(), budget.Anonymous())
			r, err := xmldsig.New().Verify(ctx, checkOf(string(signed), root))
			if err != nil || !r.Passed() {
				t.Fatalf("%v %v", r, err)
			}
			_, b := budget.Of(ctx, 0)
			t.Logf("%d KB: %d steps, %d KiB", len(text)>>10, b.Spent(), b.Held()>>10)
			if l := budget.Anonymous(); b.Spent() > 3*l.Steps/4 || b.Held() > 3*l.Memory/4 {
				t.Errorf("%d KB: %d steps, %d KiB, more than three quarters of the limit without authentication", len(text)>>10, b.Spent(), b.Held()>>10)
			}
		})
	}
}
