// SPDX-License-Identifier: Apache-2.0

package xmldsig_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"

	"golang.org/x/text/encoding/charmap"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig/xmldsig"
)

// encodings write the same document in different ways.
var encodings = []struct {
	name  string
	write func(t testing.TB, text string) []byte
}{
	{"UTF-8", func(t testing.TB, s string) []byte { return []byte(s) }},
	{"UTF-8 with a mark", func(t testing.TB, s string) []byte { return []byte("\uFEFF" + s) }},
	{"no declaration", func(t testing.TB, s string) []byte {
		_, s, _ = strings.Cut(s, "?>")
		return []byte(strings.TrimLeft(s, "\r\n"))
	}},
	{"CRLF", func(t testing.TB, s string) []byte {
		return []byte(strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n"))
	}},
	{"windows-1251", func(t testing.TB, s string) []byte { return single(t, charmap.Windows1251, "windows-1251", s) }},
	{"koi8-r", func(t testing.TB, s string) []byte { return single(t, charmap.KOI8R, "koi8-r", s) }},
	{"UTF-16LE", func(t testing.TB, s string) []byte { return wide(binary.LittleEndian, s) }},
	{"UTF-16BE", func(t testing.TB, s string) []byte { return wide(binary.BigEndian, s) }},
}

func single(t testing.TB, m *charmap.Charmap, name, s string) []byte {
	t.Helper()
	out, err := m.NewEncoder().String(strings.Replace(s, "UTF-8", name, 1))
	if err != nil {
		t.Fatal(err)
	}
	return []byte(out)
}

func wide(order binary.AppendByteOrder, s string) []byte {
	var out []byte
	for _, u := range utf16.Encode([]rune("\uFEFF" + strings.Replace(s, "UTF-8", "UTF-16", 1))) {
		out = order.AppendUint16(out, u)
	}
	return out
}

// No byte outside the signature changes, in any encoding: without the added text, which
// has a known beginning and end, the document is the same again.
func TestFidelity(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	for _, e := range encodings {
		for _, kind := range kinds {
			t.Run(e.name+"/"+kind, func(t *testing.T) {
				text := document
				if kind == "XMLTemplate" {
					text = withTemplate(templateFor(s, s.Hash.XML[0]))
				}
				source := e.write(t, text)
				signed := sigtest.Make(t, xmldsig.New(), signer, job(kind, string(source)))
				mustHold(t, signed, root)
				encode := func(text string) []byte { return bytes.TrimPrefix(e.write(t, "?>"+text), e.write(t, "?>")) }
				switch kind {
				case "XMLEnveloped":
					at := bytes.Index(signed, encode("<ds:Signature "))
					end := bytes.Index(signed, encode("</ds:Signature>")) + len(encode("</ds:Signature>"))
					if at < 0 || !bytes.Equal(append(bytes.Clone(signed[:at]), signed[end:]...), source) {
						t.Errorf("not the document around the signature:\n%s", signed)
					}
					if !bytes.HasPrefix(signed[end:], encode("</doc>")) {
						t.Error("the signature is not the last child of the root")
					}
				case "XMLEnveloping":
					at := bytes.Index(signed, encode("<ds:Signature "))
					object := bytes.Index(signed, encode("<ds:Object"))
					from := object + bytes.Index(signed[object:], encode(">")) + len(encode(">"))
					to := bytes.Index(signed, encode("</ds:Object>"))
					if got := append(bytes.Clone(signed[:at]), signed[from:to]...); !bytes.Equal(got, source) {
						t.Errorf("not the document inside the signature:\n%s", signed)
					}
				case "XMLTemplate":
					if got := unfill(t, signed, encode); !bytes.Equal(got, source) {
						t.Errorf("got\n%s\nwant\n%s", got, source)
					}
				}
			})
		}
	}
}

// unfill removes from a filled template what was filled in.
func unfill(t *testing.T, signed []byte, encode func(string) []byte) []byte {
	t.Helper()
	for _, hole := range []struct{ name, was string }{
		{"DigestValue", "<ds:DigestValue/>"},
		{"DigestValue", "<ds:DigestValue> </ds:DigestValue>"},
		{"SignatureValue", "<ds:SignatureValue></ds:SignatureValue>"},
		{"KeyInfo", "<ds:KeyInfo/>"},
	} {
		filled := between(t, signed, string(encode("<ds:"+hole.name+">")), string(encode("</ds:"+hole.name+">")))
		// Another name keeps the same hole from being found again.
		signed = bytes.Replace(signed, filled, encode(strings.ReplaceAll(hole.was, "ds:", "done:")), 1)
	}
	return bytes.ReplaceAll(signed, encode("done:"), encode("ds:"))
}

// An empty root element is opened, and nothing else changes.
func TestEmptyRoot(t *testing.T) {
	s := suite.GOST2012x512
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	signed := sigtest.Make(t, xmldsig.New(), signer, job("XMLEnveloped", "<a:b xmlns:a='urn:a' />\n"))
	mustHold(t, signed, root)
	if !bytes.HasPrefix(signed, []byte("<a:b xmlns:a='urn:a' ><ds:Signature ")) || !bytes.HasSuffix(signed, []byte("</ds:Signature></a:b>\n")) {
		t.Errorf("%s", signed)
	}
}

// A template changes only in the places that must be filled.
func TestTemplateInPlace(t *testing.T) {
	s := suite.GOST2001
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	// The specification of the interface misprints the identifier with one digit too
	// many. It is signed as it is written.
	const misprint = "http://www.w3.org/2001/04/xmldsig-more#gostr34116"
	template := withTemplate(templateFor(s, misprint))
	signed := sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", template))
	mustHold(t, signed, root)
	if n := bytes.Count(signed, []byte(misprint+`"`)); n != 2 {
		t.Errorf("the identifier is %d times in the result", n)
	}
	digests := digestValues(signed)
	value := string(between(t, signed, "<ds:SignatureValue>", "</ds:SignatureValue>"))
	key := string(between(t, signed, "<ds:KeyInfo>", "</ds:KeyInfo>"))
	want := strings.NewReplacer(
		"<ds:DigestValue/>", "<ds:DigestValue>"+digests[0]+"</ds:DigestValue>",
		"<ds:DigestValue> </ds:DigestValue>", "<ds:DigestValue>"+digests[1]+"</ds:DigestValue>",
		"<ds:SignatureValue></ds:SignatureValue>", value,
		"<ds:KeyInfo/>", key,
	).Replace(template)
	if string(signed) != want {
		t.Errorf("got\n%s\nwant\n%s", signed, want)
	}
	// The older names of the algorithms too.
	old := strings.ReplaceAll(withTemplate(templateFor(s, s.Hash.XML[1])), s.XML[0], s.XML[1])
	signed = sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", old))
	mustHold(t, signed, root)
	if !bytes.Contains(signed, []byte(`"`+s.XML[1]+`"`)) {
		t.Error("an older name was replaced")
	}
}
