// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/cades"
)

// The beginnings of the two files of https://shattered.io (Stevens, Bursztein, Karpman,
// Albertini, Markov, 2017), 320 bytes each, in hexadecimal: SHA-1 has the same state
// after them. They are a PDF header and the beginning of an image stream.
const (
	shatteredHead = "255044462d312e330a25e2e3cfd30a0a0a312030206f626a0a3c3c2f57696474682032203020522f4865696768742033203020522f547970652034203020522f" +
		"537562747970652035203020522f46696c7465722036203020522f436f6c6f7253706163652037203020522f4c656e6774682038203020522f42697473506572" +
		"436f6d706f6e656e7420383e3e0a73747265616d0affd8fffe00245348412d3120697320646561642121212121852fec092339759c39b1a1c63c4c97e1fffe01"
	shatteredOne = "7f46dc93a6b67e013b029aaa1db2560b45ca67d688c7f84b8c4c791fe02b3df614f86db1690901c56b45c1530afedfb76038e972722fe7ad728f0e4904e046c2" +
		"30570fe9d41398abe12ef5bc942be33542a4802d98b5d70f2a332ec37fac3514e74ddc0f2cc1a874cd0c78305a21566461309789606bd0bf3f98cda8044629a1"
	shatteredTwo = "7346dc9166b67e118f029ab621b2560ff9ca67cca8c7f85ba84c79030c2b3de218f86db3a90901d5df45c14f26fedfb3dc38e96ac22fe7bd728f0e45bce046d2" +
		"3c570feb141398bb552ef5a0a82be331fea48037b8b5d71f0e332edf93ac3500eb4ddc0decc1a864790c782c76215660dd309791d06bd0af3f98cda4bc4629b1"
)

// shattered returns a document that begins with the given bytes: its page shows the
// image.
func shattered(t *testing.T, block string) []byte {
	t.Helper()
	head, err := hex.DecodeString(shatteredHead + block)
	if err != nil || len(head) != 320 {
		t.Fatal(err, len(head))
	}
	b := bytes.NewBuffer(head)
	b.WriteString("\nendstream\nendobj\n")
	offsets := []int{0, bytes.Index(head, []byte("1 0 obj"))}
	length := 320 - bytes.Index(head, []byte("stream\n")) - len("stream\n")
	for i, o := range []string{"64", "64", "/XObject", "/Image", "/DCTDecode", "/DeviceRGB", fmt.Sprint(length),
		"<</Type /Catalog /Pages 10 0 R>>", "<</Type /Pages /Kids [11 0 R] /Count 1>>",
		"<</Type /Page /Parent 10 0 R /MediaBox [0 0 200 200] /Resources <</XObject <</I 1 0 R>>>> /Contents 12 0 R>>",
		"<</Length 24>>\nstream\n200 0 0 200 0 0 cm /I Do\nendstream",
	} {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(b, "%d 0 obj\n%s\nendobj\n", i+2, o)
	}
	at := b.Len()
	fmt.Fprintf(b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets))
	for _, o := range offsets[1:] {
		fmt.Fprintf(b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(b, "trailer\n<</Size %d /Root 9 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(offsets), at)
	return b.Bytes()
}

// TestShattered signs a document by adbe.pkcs7.sha1 and replaces its image by another one
// with the same SHA-1 digest: neither document passes.
func TestShattered(t *testing.T) {
	root, signer := party(t)
	one, two := shattered(t, shatteredOne), shattered(t, shatteredTwo)
	if sha1.Sum(one) != sha1.Sum(two) || bytes.Equal(one, two) {
		t.Fatal("the documents do not collide")
	}
	signed := signedByHand(t, one, "/Type /Sig /SubFilter /adbe.pkcs7.sha1", func(covered sig.Document) []byte {
		digest, err := sig.DigestOf(t.Context(), sig.File{Document: covered}, suite.SHA1)
		if err != nil {
			t.Fatal(err)
		}
		return sigtest.Make(t, cades.New(), signer, &sig.Job{Document: bytes.NewReader(digest.Sum), Params: sig.Params{"IsDetached": "False"}})
	})
	forged := append(bytes.Clone(two[:320]), signed[320:]...)
	for what, data := range map[string][]byte{"the document": signed, "the forgery": forged} {
		r := verified(t, data, root)
		i := slices.IndexFunc(r.Signatures[0].Findings, func(f sig.Finding) bool { return f.Code == sig.CodeWeak })
		if r.Verdict() != sig.Indeterminate || i < 0 || r.Signatures[0].Findings[i].Indication != sig.CryptoConstraintsFailureNoPOE {
			t.Errorf("%s: %v %s", what, r.Verdict(), say(r))
		}
	}
	changed := bytes.Clone(signed)
	changed[bytes.Index(changed, []byte("cm /I"))] ^= 1
	if r := verified(t, changed, root); r.Verdict() != sig.Failed {
		t.Errorf("changed: %s", say(r))
	}
	// A time stamp of today does not help: it does not prove an earlier time.
	stamped := stampedByHand(t, signed, sigtest.NewServices(t, root), suite.SHA256)
	if r := verified(t, stamped, root); r.Signatures[0].Verdict() != sig.Indeterminate || r.Signatures[1].Verdict() != sig.Passed {
		t.Errorf("stamped: %s", say(r))
	}
}

// TestSHA1MessageCharged: adbe.pkcs7.sha1 reads its message a second time, which is charged too.
func TestSHA1MessageCharged(t *testing.T) {
	_, signer := party(t)
	held := func(subFilter string) int64 {
		signed := signedByHand(t, formDocument(), "/Type /Sig /SubFilter /"+subFilter, func(covered sig.Document) []byte {
			digest, err := sig.DigestOf(t.Context(), sig.File{Document: covered}, suite.SHA1)
			if err != nil {
				t.Fatal(err)
			}
			return sigtest.Make(t, cades.New(), signer, &sig.Job{Document: bytes.NewReader(digest.Sum), Params: sig.Params{"IsDetached": "False"}})
		})
		_, b, err := judged(signed, budget.Ordinary(int64(len(signed))))
		if err != nil {
			t.Fatal(err)
		}
		return b.Held()
	}
	if once, twice := held("adbe.pkcs7.detached"), held("adbe.pkcs7.sha1"); twice < once+500 {
		t.Errorf("%d bytes are held for a message that is read twice, %d for one that is read once", twice, once)
	}
}

// TestBareSHA1: the findings for an unsupported format with SHA-1 name both problems.
func TestBareSHA1(t *testing.T) {
	root, signer := party(t)
	signed := signedBy(t, signer, formDocument(), nil)
	r := verified(t, bytes.Replace(signed, []byte("/adbe.pkcs7.detached"), []byte("/adbe.x509.rsa_sha1 "), 1), root)
	if r.Verdict() != sig.Indeterminate || !slices.Contains(sigtest.Codes(r), sig.CodeWeak) {
		t.Errorf("adbe.x509.rsa_sha1: %s", say(r))
	}
}
