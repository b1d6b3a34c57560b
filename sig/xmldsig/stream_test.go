// SPDX-License-Identifier: Apache-2.0

package xmldsig_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig/xmldsig"
	"tamga/sig/xmltree"
)

// register is a list with a signature, and with whatever differs between a document and its canonical form.
func register(s *suite.Suite, transforms string) string {
	return "\xEF\xBB\xBF<?xml version='1.0' encoding=\"UTF-8\"?>\n<!-- список -->\n" +
		"<л:список xmlns:л=\"urn:test:list\" xmlns='urn:test:list' xmlns:b=\"urn:b\" b:ж = 'a>b' z=\"&lt;&quot;\"\n\t>\n" +
		"  <item n='1'>один <![CDATA[<два>]]> &amp; &#xD;</item>\r\n<!-- > --><?go on?><empty/>текст<b:x xmlns:b='urn:other'><b:y xmlns=''/></b:x>" +
		"<item xmlns:л=\"urn:test:list\" n='/>'/>" + bare(s, "", transforms) + "\n  <item n='last'><item/></item ></л:список >\n<!-- end -->\n"
}

// seen verifies a register and returns the names and attributes n of the elements that it shows.
func seen(t *testing.T, text string, certs ...*x509gost.Certificate) (string, error) {
	t.Helper()
	var names []string
	err := xmldsig.VerifyRegister(t.Context(), strings.NewReader(text), certs, 1<<20, func(tree *xmltree.Tree, n xmltree.Node) error {
		value, _ := tree.Get(n, "n")
		names = append(names, tree.Name(n).Local+value)
		return nil
	})
	return strings.Join(names, " "), err
}

// TestVerifyRegister verifies lists as a whole and in pieces of each size, with each canonical form, and refuses each change.
func TestVerifyRegister(t *testing.T) {
	for _, s := range []*suite.Suite{suite.GOST2012x256, suite.GOST2012x512, suite.RSASHA256} {
		root := sigtest.Root(t, s)
		by, other := root.Signer(t, s, "Signer"), root.Signer(t, s, "Other")
		for _, name := range []string{"enveloped alone", "C14N 1.1", "prefix list", "exclusive", "C14N 1.0"} {
			transforms := everyTransform[name]
			if name == "exclusive" {
				transforms = enveloped(exclusive)
			}
			signed := string(sigtest.Make(t, xmldsig.New(), by, job("XMLTemplate", register(s, transforms))))
			t.Run(s.Name+"/"+name, func(t *testing.T) {
				if name == "C14N 1.0" { // with comments
					if _, err := seen(t, signed, by.Certificate); err == nil || !strings.Contains(err.Error(), "no canonical form without comments") {
						t.Error(err)
					}
					return
				}
				for _, size := range []int{1, 7, 100, 64 << 10} {
					xmldsig.SetPieces(t, size)
					got, err := seen(t, signed, other.Certificate, by.Certificate)
					if want := "item1 empty x item/> itemlast"; err != nil || got != want {
						t.Fatalf("pieces of %d: %q, %v; want %q", size, got, err, want)
					}
					for _, c := range []struct{ name, old, new, why string }{
						{"text", "один", "один!", "has changed"},
						{"a word", "текст", "текс", "has changed"},
						{"an attribute", "n='1'", "n='2'", "has changed"},
						{"of the root", "a>b", "a>c", "has changed"},
						{"a namespace of the root", "urn:b\"", "urn:c\"", "has changed"},
						{"an instruction", "<?go on?>", "<?go off?>", "has changed"},
						{"one more", "<empty/>", "<empty/><empty/>", "has changed"},
						{"white space", "<empty/>", "<empty/> ", "has changed"},
						{"a second signature", "<empty/>", bare(s, "", transforms), "several Signature"},
						{"another end", "</л:список >", "</список>", "XML document"},
						{"cut", "</л:список >\n<!-- end -->\n", "", "ends in the middle"},
						{"two roots", "<!-- end -->", "<more/>", "after its root"},
						{"text after it", "<!-- end -->", "more", "after its root"},
						{"a document type", "<!-- список -->", "<!DOCTYPE x [<!ENTITY a 'b'>]>", "document type"},
						{"an instruction before it", "<!-- список -->", "<?x?>", "before its root"},
						{"white space before the declaration", "<?xml version", " <?xml version", "before its root"},
						{"another declaration", "<?xml version='1.0' encoding=\"UTF-8\"?>", "<?xml-stylesheet href='x'?>", "before its root"},
						{"a comment that is none", "<!-- список -->", "<!-- a -- b -->", "XML document expected"},
						{"no comment", "<!-- > -->", "<!-->", "XML document"},
						{"a tag that does not end", "<item n='1'>", "<item n='1>", "XML document"},
					} {
						if strings.Count(signed, c.old) == 0 {
							t.Fatalf("%q is not in the document", c.old)
						}
						if _, err := seen(t, strings.Replace(signed, c.old, c.new, 1), by.Certificate); err == nil || !strings.Contains(err.Error(), c.why) && !strings.Contains(err.Error(), "ends in the middle") {
							t.Errorf("pieces of %d, %s: %v, want %q", size, c.name, err, c.why)
						}
					}
					if got, err := seen(t, strings.NewReplacer("<!-- > -->", "<!-- >> -->", "a>b", "a&gt;b", "n='1'", "n = \"1\"", "\r\n", "\n", "<empty/>", "<empty />").Replace(signed), by.Certificate); err != nil {
						t.Errorf("pieces of %d: the same written otherwise: %q %v", size, got, err)
					}
				}
				if _, err := seen(t, signed, other.Certificate); err == nil || !strings.Contains(err.Error(), "another key") {
					t.Errorf("another key: %v", err)
				}
				if err := xmldsig.VerifyRegister(t.Context(), strings.NewReader(signed), []*x509gost.Certificate{by.Certificate}, 10, nil); err == nil || !strings.Contains(err.Error(), "more than") {
					t.Errorf("a bound of 10 bytes: %v", err)
				}
			})
		}
	}
}

// TestRegisterInLittleMemory verifies a list of 32 MiB. What is allocated at a time is a small part of it.
func TestRegisterInLittleMemory(t *testing.T) {
	s := suite.GOST2012x256
	by := sigtest.Root(t, s).Signer(t, s, "Signer")
	item := fmt.Sprintf("<item>%s</item>\n", strings.Repeat("A", 4<<10))
	text := "<list>" + strings.Repeat(item, 8<<10) + bare(s, "", enveloped(exclusive)) + "</list>"
	signed := sigtest.Make(t, xmldsig.New(), by, job("XMLTemplate", text))
	live := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, most, items := live(), uint64(0), 0
	if err := xmldsig.VerifyRegister(t.Context(), bytes.NewReader(signed), []*x509gost.Certificate{by.Certificate}, 1<<20, func(*xmltree.Tree, xmltree.Node) error {
		if items++; items%1000 == 0 {
			most = max(most, live())
		}
		return nil
	}); err != nil || items != 8<<10 {
		t.Errorf("%d items, %v", items, err)
	}
	if most > before+4<<20 {
		t.Errorf("%d bytes in use at most, %d before", most, before)
	}
	runtime.KeepAlive(signed)
}

// FuzzVerifyRegister signs lists with any content. Pieces of any size lead to the same digest as the whole document.
func FuzzVerifyRegister(f *testing.F) {
	s := suite.ECDSAP256
	by := sigtest.Root(f, s).Signer(f, s, "Signer")
	f.Add("<a b='c'/>text", 1)
	f.Add("<a xmlns='x' xmlns:y='z'><y:b/></a><![CDATA[]]]]><![CDATA[>]]>", 3)
	f.Add("<?x ?><!-- - --><a x='>' y=\"/>\"></a\n>\r\n&#13;", 10)
	f.Fuzz(func(t *testing.T, content string, size int) {
		text := "<l xmlns='urn:l' x='&#9;'>" + content + bare(s, "", enveloped("")) + content + "</l>"
		if strings.Count(text, "Signature xmlns") != 1 {
			return
		}
		signed, err := sigtest.Try(t, xmldsig.New(), by, job("XMLTemplate", text))
		if err != nil {
			return
		}
		xmldsig.SetPieces(t, max(1, size))
		if _, err := seen(t, string(signed), by.Certificate); err != nil {
			t.Errorf("%v\n%s", err, signed)
		}
	})
}
