// SPDX-License-Identifier: Apache-2.0

package cades_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/sig"
)

// A reader in Python, written from the standard, computes imprint and index of every archive time stamp,
// and OpenSSL verifies each token by itself for the imprint.
func TestJuryOfArchives(t *testing.T) {
	openssl := judge.OpenSSL(t)
	script, err := filepath.Abs("testdata/archive.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range suite.All() {
		w := newWorld(t, s)
		second := w.sub.Signer(t, s, "Second")
		for _, detached := range []bool{false, true} {
			if detached && s != suite.GOST2012x256 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%v", s.Name, detached), func(t *testing.T) {
				params, original := sig.Params{}, []byte(nil)
				if detached {
					params, original = sig.Params{"IsDetached": "True"}, text
				}
				message := w.make(t, w.signer, "A", &sig.Job{Document: sigtest.Document(text), Params: params})
				message = w.make(t, second, "A", add("Cosign", message, original, nil))
				message, err := w.enhance(t, message, "A", original, nil)
				if err != nil {
					t.Fatal(err)
				}
				if got := levels(t, checked(t, message, original, w.services.Now, w.root)); !slices.Equal(got, []string{"A", "A"}) {
					t.Fatal(got)
				}
				openssl.Write("document", text)
				openssl.Write("roots.pem", slices.Concat(w.root.PEM(), pemOf(w.services.TSA.Chain[0])))
				read := func(message []byte) (string, error) {
					return openssl.RunOther("python3", script, openssl.Write("message", message), "document")
				}
				imprints, err := read(message)
				if err != nil {
					t.Fatal(err)
				}
				list := strings.Fields(imprints)
				if len(list) != 4 {
					t.Fatalf("%d stamps", len(list))
				}
				for n, imprint := range list {
					args := []string{"ts", "-verify", "-token_in", "-in", fmt.Sprintf("token-%d.der", n), "-CAfile", "roots.pem",
						"-attime", fmt.Sprint(w.services.Now.Unix()), "-digest"}
					if out, err := openssl.Run(append(args, imprint)...); err != nil || !strings.Contains(out, "Verification: OK") {
						t.Errorf("OpenSSL: stamp %d: %q %v", n, out, err)
					}
					if _, err := openssl.Run(append(args, list[(n+1)%4])...); err == nil {
						t.Errorf("OpenSSL: stamp %d is accepted for another imprint", n)
					}
				}
				// The reader refuses what the stamps cover with a bit changed, and so do we.
				m := mustParse(t, message)
				first := m.Signers[0]
				stamp, err := tsp.ParseToken(first.UnsignedAttrs[0].Values[0])
				if err != nil {
					t.Fatal(err)
				}
				for what, part := range map[string][]byte{
					"value": first.Signature, "certificate": m.Certificates[len(m.Certificates)-1][20:], "time stamp": stamp.Message.Signers[0].Signature,
				} {
					broken := change(t, message, part)
					if _, err := read(broken); err == nil {
						t.Errorf("the reader accepts another %s", what)
					}
					r := checked(t, broken, original, w.services.Now, w.root)
					all := r.Signatures[0].TimeStamps
					if last := all[len(all)-1]; last.Kind != "archive" || last.Holds() {
						t.Errorf("we accept another %s", what)
					}
				}
				if !slices.ContainsFunc(m.DigestAlgorithms, func(a cms.Algorithm) bool { return a.OID.Equal(s.Hash.OID) }) {
					t.Error("digestAlgorithms lacks the algorithm of the stamps")
				}
			})
		}
	}
}
