// SPDX-License-Identifier: Apache-2.0

package ooxml_test

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/suite"
)

// LibreOffice makes a document of each kind. It calls the document valid when signed once
// and twice, by RSA and by ECDSA, and broken with one byte changed.
func TestLibreOffice(t *testing.T) {
	rsa, ecdsa := sigtest.Root(t, suite.RSASHA256), sigtest.Root(t, suite.ECDSAP256)
	foreign := sigtest.Root(t, suite.RSASHA256).Signer(t, suite.RSASHA256, "Foreign")
	office := judge.LibreOffice(t, rsa.PEM(), ecdsa.PEM())
	first, second := rsa.Authority(t, "Authority").Signer(t, suite.RSASHA256, "Иван Петров"), ecdsa.Signer(t, suite.ECDSAP256, "Second")
	// The foreign issuer has the name of a trusted root but another key.
	const good, broken, untrusted = "valid, trusted", "broken, trusted", "broken, not trusted"
	var names []string
	var documents [][]byte
	var want [][]string
	add := func(name string, document []byte, verdicts ...string) {
		names, documents, want = append(names, name), append(documents, document), append(want, verdicts)
	}
	kinds, mains := []string{"docx", "xlsx", "pptx"}, []string{"word/document.xml", "xl/sharedStrings.xml", "ppt/slides/slide1.xml"}
	if testsize.Of() == testsize.Quick {
		kinds = kinds[:1]
	}
	for i, plain := range office.Make("Договор № 1", kinds...) {
		kind, main := kinds[i], mains[i]
		once := sign(t, first, plain)
		twice := sign(t, second, once)
		add("plain."+kind, plain)
		add("once."+kind, once, good)
		add("twice."+kind, twice, good, good)
		add("foreign."+kind, sign(t, foreign, plain), untrusted)
		add("changed."+kind, sigtest.Zip(replaced(t, filesOf(t, twice), main, "Договор № 1", "Договор № 2"), ""), broken, broken)
	}
	// xmlsec, which LibreOffice uses, does not escape an ampersand in a relationship.
	add("built.docx", sign(t, first, sigtest.Zip(replaced(t, word(), docRels, "&amp;", ";"), "")), good)
	// The relationship transform ignores prefixes: with prefixes added after signing,
	// LibreOffice computes the same digest as we do.
	tidy := replaced(t, word(), docRels, "&amp;", ";")
	prefixes := strings.NewReplacer("<Relationship", "<ns0:Relationship", "</Relationship", "</ns0:Relationship", "xmlns=", "xmlns:ns0=")
	signedTidy := filesOf(t, sign(t, first, sigtest.Zip(tidy, "")))
	add("prefixed.docx", sigtest.Zip(with(signedTidy, docRels, prefixes.Replace(contentOf(t, signedTidy, docRels))), ""), good)
	for i, signatures := range office.Verify(names, documents...) {
		got := []string{}
		for _, s := range signatures {
			verdict := "broken"
			if s.Valid {
				verdict = "valid"
			}
			if s.Certificate == 0 {
				verdict += ", trusted"
			} else {
				verdict += ", not trusted"
			}
			got = append(got, verdict)
		}
		if fmt.Sprint(got) != fmt.Sprint(want[i]) {
			t.Errorf("%s: LibreOffice says %v, want %v", names[i], got, want[i])
		}
	}
}

var (
	digestFlags = map[*suite.Suite]string{
		suite.GOST2001: "-md_gost94", suite.GOST2012x256: "-md_gost12_256", suite.GOST2012x512: "-md_gost12_512",
	}
	wholePart = regexp.MustCompile(`<Reference URI="/([^"?]*)\?ContentType=[^"]*"><DigestMethod [^>]*><DigestValue>([^<]*)<`)
)

// The GOST signatures differ from those that LibreOffice checks only in the suite. The
// Java platform with Bouncy Castle checks the Signature, OpenSSL the digests of the
// parts.
func TestGOSTJudges(t *testing.T) {
	java, openssl := judge.NewSantuarioGOST(t), judge.OpenSSL(t)
	var signatures [][]byte
	var names []string
	for s, flag := range digestFlags {
		signer := sigtest.Root(t, s).Signer(t, s, "Иван Петров")
		document := sign(t, signer, sign(t, signer, sigtest.Zip(word(), "")))
		for _, name := range []string{sig1, "_xmlsignatures/sig2.xml"} {
			text := part(t, document, name)
			signatures, names = append(signatures, []byte(text)), append(names, s.Name)
			found := wholePart.FindAllStringSubmatch(text, -1)
			if len(found) != 4 {
				t.Errorf("%s: %d parts in the manifest", s.Name, len(found))
			}
			for _, m := range found {
				openssl.Write("part", []byte(part(t, document, m[1])))
				if _, err := openssl.Run("dgst", flag, "-binary", "-out", "digest", "part"); err != nil {
					t.Fatal(err)
				}
				if got := base64.StdEncoding.EncodeToString(openssl.Read("digest")); got != m[2] {
					t.Errorf("%s: %s has the digest %s, OpenSSL says %s", s.Name, m[1], m[2], got)
				}
			}
		}
		changed := strings.Replace(string(signatures[len(signatures)-1]), "<OfficeVersion>16.0<", "<OfficeVersion>17.0<", 1)
		signatures, names = append(signatures, []byte(changed)), append(names, "changed")
	}
	for i, err := range java.Verify(signatures...) {
		if (err == nil) != (names[i] != "changed") {
			t.Errorf("%s: %v", names[i], err)
		}
	}
}
