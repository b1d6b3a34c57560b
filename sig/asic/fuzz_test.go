// SPDX-License-Identifier: Apache-2.0

package asic_test

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/asic"
	"tamga/sig/budget"
)

var fuzzParties = sync.OnceValues(func() (*sigtest.Party, *sigtest.Party) {
	t := new(testing.T)
	root := sigtest.Root(t, suite.ECDSAP256)
	return root, root.Signer(t, suite.ECDSAP256, "Signer")
})

// look verifies an archive. A file that a signature covers is there once, and a container that passes has only
// files that the report names.
func look(t *testing.T, data []byte) {
	root, _ := fuzzParties()
	ctx := budget.With(context.Background(), budget.Anonymous())
	r, err := asic.New().Verify(ctx, &sig.Check{Document: bytes.NewReader(data), Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time})
	if err != nil {
		return
	}
	seen := map[string]bool{}
	for _, f := range r.Files {
		if seen[f.Name] {
			t.Errorf("%q is there twice", f.Name)
		}
		seen[f.Name] = true
		for _, i := range f.Signatures {
			if !r.Signatures[i].Holds() {
				t.Errorf("%q is covered by signature %d, which does not hold", f.Name, i)
			}
		}
	}
	if r.Passed() && len(r.Signatures) == 0 {
		t.Error("a container without a signature passed")
	}
}

// FuzzContainer verifies every input.
func FuzzContainer(f *testing.F) {
	_, signer := fuzzParties()
	f.Add(sigtest.Zip(byHand(f, signer), "mimetype="+mimeE))
	f.Add(sigtest.Zip([]sigtest.ZipEntry{{Name: "mimetype", Content: mimeS, Store: true}, {Name: "a", Content: "1"}, {Name: "META-INF/signature.p7s", Content: detached(f, signer, "1")}}, ""))
	f.Fuzz(look)
}

// FuzzList verifies containers with any list of files, any signature in XML and any time stamp.
func FuzzList(f *testing.F) {
	_, signer := fuzzParties()
	list := byHand(f, signer)[4].Content
	f.Add(list, "<a/>", "x")
	f.Add(list, `<asic:XAdESSignatures xmlns:asic="http://uri.etsi.org/02918/v1.2.1#"><Signature xmlns="http://www.w3.org/2000/09/xmldsig#"/></asic:XAdESSignatures>`, "")
	good := byHand(f, signer)
	f.Fuzz(func(t *testing.T, list, xml, stamp string) {
		entries := edited(good, "META-INF/ASiCManifest1.xml", func(e *sigtest.ZipEntry) { e.Content = list })
		look(t, sigtest.Zip(append(entries,
			sigtest.ZipEntry{Name: "META-INF/signatures.xml", Content: xml},
			sigtest.ZipEntry{Name: "META-INF/ASiCArchiveManifest.xml", Content: list},
			sigtest.ZipEntry{Name: "META-INF/timestamp.tst", Content: stamp}), ""))
	})
}
