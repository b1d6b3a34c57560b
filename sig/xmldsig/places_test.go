// SPDX-License-Identifier: Apache-2.0

package xmldsig_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/xmldsig"
)

// TestPlaces: every kind of invalid input is refused with an explanation and with the
// line and column of the error, marked by ¦ in these documents.
func TestPlaces(t *testing.T) {
	s := suite.GOST2012x256
	signer := sigtest.Root(t, s).Signer(t, s, "Signer")
	template := func(old, new string) string {
		good := "<d Id='d'>\n\t" + strings.ReplaceAll(bare(s, "", enveloped(exclusive)), "><", ">\n <") + "\n</d>"
		out := strings.Replace(good, old, new, 1)
		if out == good {
			t.Fatalf("%s is not in the template", old)
		}
		return out
	}
	var many strings.Builder
	for i := range 1_000_000 {
		if i == 1024 {
			many.WriteString("¦")
		}
		fmt.Fprintf(&many, "a%d='' ", i)
	}
	for _, test := range []struct{ name, text, want string }{
		{"not XML", "¦a plain text", "before the root element"},
		{"not XML behind XML", "<a>\n</a>\r\n ¦text", "after the root element"},
		{"another encoding than declared", "<?xml version='1.0' encoding='UTF-8'?>\n<имя>¦\xcf\xf0\xe8</имя>", "is not valid UTF-8"},
		{"an encoding that is unknown", "<?xml version='1.0' encoding='¦x-mac'?>\n<a/>", "x-mac is not supported"},
		{"UTF-16 that is not", "<?xml version='1.0' encoding='¦UTF-16'?>\n<a/>", "not written in it"},
		{"a byte that the encoding has not", "<?xml version='1.0' encoding='windows-1251'?>\n<a>¦\x98</a>", "does not exist in the declared encoding"},
		{"an entity bomb", "<?xml version='1.0'?>\n¦<!DOCTYPE a [<!ENTITY b 'bbb'><!ENTITY c '&b;&b;&b;'>]><a>&c;</a>", "document type declarations are refused"},
		{"an entity", "<a>\n <b>¦&c;</b></a>", "unknown entity"},
		{"a million attributes", "<a\n" + many.String() + "/>", "more than 1024 attributes"},
		{"deep nesting", strings.Repeat("<a>\n", 256) + "¦<a>" + strings.Repeat("</a>", 257), "256"},
		{"a template without SignedInfo", `<d>` + "\n  " + `¦<Signature xmlns="http://www.w3.org/2000/09/xmldsig#"><SignatureValue/></Signature></d>`, "no SignedInfo"},
		{"a reference to a missing id", template(`<Reference URI=""`, `¦<Reference URI="#missing"`), "has no target"},
		{"a reference to a doubled id", strings.Replace(template(`<Reference URI=""`, `¦<Reference URI="#d"`), "\n</d>", "\n<e ID='d'/></d>", 1), "ambiguous"},
		{"another key's algorithm", template(`<SignatureMethod Algorithm="`+s.XML[0], `¦<SignatureMethod Algorithm="`+suite.GOST2012x512.XML[0]), "is GOST R 34.10-2012 512 bit, but"},
		{"no algorithm at all", template(`<SignatureMethod Algorithm="`+s.XML[0], `¦<SignatureMethod Algorithm="urn:x`), "is unknown"},
		{"another digest", template(`<DigestMethod Algorithm="`+s.Hash.XML[0], `¦<DigestMethod Algorithm="urn:x`), "algorithm not supported: DigestMethod"},
		{"XSLT", template(strings.ReplaceAll(exclusive, "><", ">\n <"), `¦<Transform Algorithm="http://www.w3.org/TR/1999/REC-xslt-19991116"/>`), "XSLT is refused"},
		{"another transform", template(strings.ReplaceAll(exclusive, "><", ">\n <"), `¦<Transform Algorithm="urn:x"/>`), "is not allowed"},
		{"XPath beyond the grammar", template(strings.ReplaceAll(exclusive, "><", ">\n <"), `<Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116">¦<XPath>document('x')</XPath></Transform>`), "document()"},
		{"a remote reference", template(`<Reference URI=""`, `¦<Reference URI="http://example.org/"`), "leaves the document"},
	} {
		before, _, found := strings.Cut(test.text, "¦")
		if !found {
			t.Fatalf("%s has no mark", test.name)
		}
		text := strings.Replace(test.text, "¦", "", 1)
		lines := strings.Split(strings.ReplaceAll(before, "\r\n", "\n"), "\n")
		place := fmt.Sprintf("line %d, column %d: ", len(lines), utf8.RuneCountInString(lines[len(lines)-1])+1)
		_, err := sigtest.Try(t, xmldsig.New(), signer, job("XMLTemplate", text))
		var bad *sig.ErrDocument
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), place) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %.300v, want %q with %q", test.name, err, place, test.want)
		}
	}
}
