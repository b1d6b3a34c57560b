// SPDX-License-Identifier: Apache-2.0

package xmldsig_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/xmldsig"
)

// document is what most tests sign: prefixes, both kinds of quotes, entities,
// CDATA, a comment, an instruction, and white space everywhere.
const document = "<?xml version='1.0' encoding=\"UTF-8\"?>\n<!-- счёт -->\n" +
	"<?app x?>\n<doc xmlns=\"urn:test:doc\" xmlns:a='urn:test:a' a:b = 'c' z=\"&lt;&quot;\"\n\t>\n" +
	"  <a:счёт Id=\"part\"  сумма='100'>привет &amp; до <![CDATA[<свидания>]]></a:счёт>\r\n" +
	"  <empty/><other xmlns='' x=\"\ty\"></other>\n</doc>\n<!-- end -->\n"

var kinds = []string{"XMLEnveloped", "XMLEnveloping", "XMLTemplate"}

// templateFor is a Signature to fill: two references, one of a part by its
// identifier, one of the whole document.
func templateFor(s *suite.Suite, digest string) string {
	return `<ds:Signature xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:SignedInfo>` +
		`<ds:CanonicalizationMethod Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/>` +
		`<ds:SignatureMethod Algorithm="` + s.XML[0] + `"/>` +
		`<ds:Reference URI="#part"><ds:Transforms><ds:Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/></ds:Transforms>` +
		`<ds:DigestMethod Algorithm="` + digest + `"/><ds:DigestValue/></ds:Reference>` +
		"\n" + `<ds:Reference URI=""><ds:Transforms><ds:Transform Algorithm="http://www.w3.org/2000/09/xmldsig#enveloped-signature"/>` +
		`<ds:Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/></ds:Transforms>` +
		`<ds:DigestMethod Algorithm="` + digest + `"/><ds:DigestValue> </ds:DigestValue></ds:Reference>` +
		`</ds:SignedInfo><ds:SignatureValue></ds:SignatureValue><ds:KeyInfo/></ds:Signature>`
}

// leftOut reports whether the short form leaves out the combination of the i-th choice of one kind
// with the j-th of n choices of another kind. Each choice is still tried.
func leftOut(i, j, n int) bool { return testsize.Of() < testsize.Whole && (i+j)%n != 0 }

// withTemplate puts a template into the document.
func withTemplate(template string) string {
	return strings.Replace(document, "<empty/>", template, 1)
}

// jobOf is a job of one kind over the document.
func jobOf(kind string, s *suite.Suite, more ...string) *sig.Job {
	text := document
	if kind == "XMLTemplate" {
		text = withTemplate(templateFor(s, s.Hash.XML[0]))
	}
	return job(kind, text, more...)
}

// job is a job of one kind; more are further parameters, name and value.
func job(kind, text string, more ...string) *sig.Job {
	j := &sig.Job{Document: sigtest.Document([]byte(text)), Params: sig.Params{"XMLDsigType": kind}}
	for i := 0; i < len(more); i += 2 {
		j.Params[more[i]] = more[i+1]
	}
	return j
}

func checkOf(signed string, root *sigtest.Party) *sig.Check {
	return &sig.Check{Document: sigtest.Document([]byte(signed)), Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time}
}

func verify(t testing.TB, signed []byte, root *sigtest.Party) *sig.Report {
	t.Helper()
	r, err := xmldsig.New().Verify(context.Background(), checkOf(string(signed), root))
	if err != nil {
		t.Fatalf("%v\n%s", err, signed)
	}
	return r
}

// mustHold fails the test if the document has no signature or an invalid one.
func mustHold(t testing.TB, signed []byte, root *sigtest.Party) *sig.Report {
	t.Helper()
	r := verify(t, signed, root)
	if !r.Passed() {
		t.Fatalf("%s\n%s", texts(r), signed)
	}
	return r
}

// texts are all findings of a report.
func texts(r *sig.Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s: %s\n", f.Code, f.Text)
	}
	for _, s := range r.Signatures {
		for _, f := range s.Findings {
			fmt.Fprintf(&b, "%d: %s: %s (%s)\n", s.Index, f.Code, f.Text, f.Indication)
		}
	}
	return b.String()
}

// between returns the bytes from the first occurrence of from to the end of the next
// occurrence of to.
func between(t testing.TB, b []byte, from, to string) []byte {
	t.Helper()
	i := bytes.Index(b, []byte(from))
	if i < 0 {
		t.Fatalf("%q is not in\n%s", from, b)
	}
	j := bytes.Index(b[i:], []byte(to))
	if j < 0 {
		t.Fatalf("%q is not after %q in\n%s", to, from, b)
	}
	return b[i : i+j+len(to)]
}
