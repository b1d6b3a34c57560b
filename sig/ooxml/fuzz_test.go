// SPDX-License-Identifier: Apache-2.0

package ooxml_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/ooxml"
)

var fuzzParties = sync.OnceValues(func() (*sigtest.Party, *sigtest.Party) {
	t := new(testing.T)
	root := sigtest.Root(t, suite.ECDSAP256)
	return root, root.Signer(t, suite.ECDSAP256, "Signer")
})

// FuzzArchive signs every input that is accepted as a document. The signature verifies,
// and it stays valid when another one is added.
func FuzzArchive(f *testing.F) {
	_, signer := fuzzParties()
	plain := sigtest.Zip(word(), "comment")
	f.Add(plain)
	f.Add(sign(f, signer, plain))
	f.Add(sigtest.Zip(edit(word(), "word/styles.xml", func(f *sigtest.ZipEntry) { f.Zip64 = true }), ""))
	f.Add(compound("EncryptedPackage"))
	f.Fuzz(func(t *testing.T, document []byte) {
		root, signer := fuzzParties()
		check := func(document []byte) *sig.Report {
			r, err := ooxml.New().Verify(context.Background(), &sig.Check{Document: bytes.NewReader(document), Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time})
			if err != nil {
				return nil
			}
			return r
		}
		before := check(document)
		signed, err := sigtest.Try(t, ooxml.New(), signer, job(document))
		if err != nil {
			return
		}
		if before == nil {
			t.Fatal("a document that can be signed cannot be verified")
		}
		after := check(signed)
		if after == nil || len(after.Signatures) != min(len(before.Signatures)+1, 64) {
			t.Fatalf("the signature is not found: %+v", after)
		}
		// Hidden data of the archive is left out of the signed document.
		if slices.Contains(sigtest.Codes(after), "hidden-entry") {
			t.Errorf("a hidden entry stays: %+v", after.Findings)
		}
		for i, s := range before.Signatures {
			if s.Passed() && !after.Signatures[i].Passed() {
				t.Errorf("signature %d was valid before: %+v", i, after.Signatures[i])
			}
		}
		if last := after.Signatures[len(after.Signatures)-1]; len(after.Signatures) < 64 && !last.Passed() {
			t.Errorf("the new signature does not hold: %+v", last.Findings)
		}
	})
}

// FuzzParts changes the XML inside a signed document. Verification must return findings,
// never an error.
func FuzzParts(f *testing.F) {
	_, signer := fuzzParties()
	document := sign(f, signer, sigtest.Zip(word(), ""))
	var files []sigtest.ZipEntry
	for _, x := range filesOf(f, document) {
		if strings.HasSuffix(x.Name, ".xml") || strings.HasSuffix(x.Name, ".rels") {
			files = append(files, x)
		}
	}
	for i, x := range files {
		f.Add(i, x.Content)
	}
	f.Fuzz(func(t *testing.T, which int, content string) {
		root, _ := fuzzParties()
		x := files[uint(which)%uint(len(files))]
		changed := sigtest.Zip(with(filesOf(t, document), x.Name, content), "")
		r, err := ooxml.New().Verify(context.Background(), &sig.Check{Document: bytes.NewReader(changed), Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time})
		if err != nil || content == x.Content || !r.Passed() {
			return
		}
		switch x.Name {
		case "word/document.xml", "word/styles.xml", "word/commentsExtended.xml":
			t.Errorf("%s may be anything", x.Name)
		}
	})
}

// FuzzPackage changes the parts of a document before it is signed. The document is
// refused, or the signature is valid.
func FuzzPackage(f *testing.F) {
	files := slices.DeleteFunc(word(), func(x sigtest.ZipEntry) bool { return x.Store })
	for i, x := range files {
		f.Add(i, x.Content)
	}
	f.Add(3, strings.ReplaceAll(contentOf(f, word(), docRels), "<Relationship ", "\n <!-- --><Relationship "))
	f.Fuzz(func(t *testing.T, which int, content string) {
		root, signer := fuzzParties()
		x := files[uint(which)%uint(len(files))]
		signed, err := sigtest.Try(t, ooxml.New(), signer, job(sigtest.Zip(with(word(), x.Name, content), "")))
		if err != nil {
			return
		}
		if r := verify(t, signed, root); !r.Passed() {
			t.Errorf("%+v", r)
		}
	})
}
