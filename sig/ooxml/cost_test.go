// SPDX-License-Identifier: Apache-2.0

package ooxml_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/ooxml"
)

// A package that decompresses to much more than its size is refused to unauthenticated
// callers for its cost, in signing and in verification. A typical package is not.
func TestCosts(t *testing.T) {
	if testsize.Of() == testsize.Quick {
		t.Skip("large documents")
	}
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	for name, test := range map[string]struct {
		size int
		want error
	}{
		"a sheet of 8 MiB": {8 << 20, nil},
		"a bomb":           {80 << 20, budget.ErrSteps},
	} {
		t.Run(name, func(t *testing.T) {
			// The picture pays for the sheet, because the bound grows with the size of
			// the document.
			picture := make([]byte, 3<<20)
			rand.NewChaCha8([32]byte{}).Read(picture)
			files := append(word(), sigtest.ZipEntry{Name: "word/picture.png", Content: string(picture), Store: true})
			files = replaced(t, files, docRels, "</Relationships>", rel("picture", officeRel+"image", "picture.png", "")+"</Relationships>")
			files = replaced(t, files, "word/document.xml", "<w:body>", "<w:body>"+strings.Repeat(" ", test.size))
			document := sigtest.Zip(files, "")
			_, err := ooxml.New().Prepare(budget.With(context.Background(), budget.Anonymous()), &sig.Job{
				Document: sigtest.Document(document), Certificate: signer.Certificate, Time: sigtest.Time,
			})
			if !errors.Is(err, test.want) {
				t.Errorf("signing: %v, want %v", err, test.want)
			}
			signed := sign(t, signer, document) // within the bounds for authenticated callers
			r, err := ooxml.New().Verify(budget.With(context.Background(), budget.Anonymous()), &sig.Check{
				Document: sigtest.Document(signed), Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time,
			})
			if !errors.Is(err, test.want) || err == nil && !r.Passed() {
				t.Errorf("verification: %v, want %v", err, test.want)
			}
		})
	}
}
