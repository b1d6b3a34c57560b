// SPDX-License-Identifier: Apache-2.0

package cades_test

import (
	"bytes"
	"context"
	"flag"
	"math/rand/v2"
	"sync"
	"testing"

	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/cades"
)

// mutate changes a message at random: bits, bytes, ranges inserted, removed or copied
// elsewhere.
func mutate(r *rand.Rand, message []byte) []byte {
	b := bytes.Clone(message)
	for range 1 + r.IntN(3) {
		i := r.IntN(len(b))
		switch r.IntN(8) {
		case 0, 1, 2:
			b[i] ^= 1 << r.IntN(8)
		case 3, 4:
			b[i] = byte(r.Uint32())
		case 5:
			n := min(1+r.IntN(8), len(b)-i)
			b = append(b[:i], b[i+n:]...)
		case 6:
			n := min(1+r.IntN(64), len(b)-i)
			copy(b[r.IntN(len(b)-n+1):], bytes.Clone(b[i:i+n]))
		case 7:
			b = append(b[:i:i], append([]byte{byte(r.Uint32())}, b[i:]...)...)
		}
		if len(b) == 0 {
			return b
		}
	}
	return b
}

// sealed is the data that must not change in a report that is still valid.
type sealed struct {
	content, attrs, value string
	covered               map[string]string // attributes the CAdES-C time stamp covers
}

func seal(message []byte) (list []sealed, err error) {
	m, err := cms.Parse(bytes.NewReader(message), int64(len(message)))
	if err != nil {
		return nil, err
	}
	var content []byte
	for _, r := range m.Content {
		content = append(content, section(message, r)...)
	}
	for _, s := range m.Signers {
		x := sealed{content: string(content), attrs: string(s.RawSignedAttrs), value: string(s.Signature), covered: map[string]string{}}
		for _, a := range s.UnsignedAttrs {
			x.covered[a.OID.String()] += string(a.Contents())
		}
		list = append(list, x)
	}
	return list, nil
}

// judgeMutation verifies a changed message and returns what was accepted wrongly.
func judgeMutation(original []sealed, best []string, message []byte, roots []*x509gost.Certificate) string {
	r, err := cades.New().Verify(context.Background(), &sig.Check{Document: sigtest.Document(message), Original: sigtest.Document(text), Roots: roots, At: sigtest.Time})
	if err != nil || len(r.Findings) > 0 && !r.Passed() {
		return ""
	}
	now, err := seal(message)
	if err != nil {
		return "judged, but not parsed again"
	}
	for i, s := range r.Signatures {
		if !s.Passed() {
			continue
		}
		k := -1
		for j, o := range original {
			if now[i].content == o.content && now[i].attrs == o.attrs && now[i].value == o.value {
				k = j
			}
		}
		if k < 0 {
			return "valid over changed bytes"
		}
		for _, ts := range s.TimeStamps {
			if ts.Kind == "signature" && ts.Passed() && ts.Time.String() != best[k] {
				return "a time stamp of another time"
			}
		}
		if s.Level == "XLT1" {
			for _, oid := range []x509gost.OID{cms.OIDSignatureTimeStamp, cms.OIDCertificateRefs, cms.OIDRevocationRefs} {
				if now[i].covered[oid.String()] != original[k].covered[oid.String()] {
					return "XLT1 with a changed " + oid.String()
				}
			}
		}
	}
	return ""
}

// mutants is how many changed messages a run checks; a tenth in the short form.
var mutants = flag.Int("mutants", 2_000, "changed messages that TestMutations verifies")

// No changed message is accepted with a signature that it did not have, and none crashes
// the verifier.
func TestMutations(t *testing.T) {
	count := *mutants
	if testsize.Of() < testsize.Whole {
		count /= 10
	}
	w := newWorld(t, suite.ECDSAP256) // the fastest to verify
	message := w.make(t, w.signer, "XLT1", &sig.Job{Document: sigtest.Document(text)})
	message = sigtest.Make(t, cades.New(), w.sub.Signer(t, suite.ECDSAP256, "Second"), add("Cosign", message, nil, nil))
	message = sigtest.Make(t, cades.New(), w.signer, add("Countersign", message, nil, sig.Params{"SignatureIndex": "1"}))
	original, err := seal(message)
	if err != nil {
		t.Fatal(err)
	}
	var best []string
	for _, s := range verify(t, message, nil, w.root).Signatures {
		best = append(best, s.BestTime.String())
	}
	roots := []*x509gost.Certificate{w.root.Certificate}
	if wrong := judgeMutation(original, best, message, roots); wrong != "" {
		t.Fatalf("the message itself: %s", wrong)
	}
	const workers = 2
	var wait sync.WaitGroup
	for worker := range workers {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(2025, uint64(worker)))
			for n := range count / workers {
				b := mutate(r, message)
				if wrong := judgeMutation(original, best, b, roots); wrong != "" {
					t.Errorf("worker %d, message %d: %s", worker, n, wrong)
					return
				}
			}
		})
	}
	wait.Wait()
}

// FuzzVerifyLevels does the same with changes by the fuzzer.
func FuzzVerifyLevels(f *testing.F) {
	w := newWorld(f, suite.ECDSAP256)
	message := w.make(f, w.signer, "XLT1", &sig.Job{Document: sigtest.Document(text)})
	message = sigtest.Make(f, cades.New(), w.sub.Signer(f, suite.ECDSAP256, "Second"), add("Cosign", message, nil, nil))
	message = sigtest.Make(f, cades.New(), w.signer, add("Countersign", message, nil, sig.Params{"SignatureIndex": "1"}))
	original, err := seal(message)
	if err != nil {
		f.Fatal(err)
	}
	best := []string{sigtest.Time.String(), sigtest.Time.String()}
	roots := []*x509gost.Certificate{w.root.Certificate}
	f.Add(message)
	f.Add(berIndefinite(f, message))
	f.Fuzz(func(t *testing.T, b []byte) {
		if wrong := judgeMutation(original, best, b, roots); wrong != "" {
			t.Error(wrong)
		}
	})
}

// FuzzExtend: any input as a message to extend or to enhance is refused, or the result
// can be read.
func FuzzExtend(f *testing.F) {
	w := newWorld(f, suite.ECDSAP256)
	message := w.make(f, w.signer, "T", &sig.Job{Document: sigtest.Document(text)})
	// The services make their responders on first use.
	if _, err := w.enhance(f, message, "XLT1", nil, nil); err != nil {
		f.Fatal(err)
	}
	f.Add(message, "0")
	f.Add(berIndefinite(f, message), "")
	f.Add(sigtest.Make(f, cades.New(), w.signer, add("Countersign", message, nil, nil)), "0.0")
	f.Fuzz(func(t *testing.T, b []byte, index string) {
		read := func(out []byte, err error) {
			if err == nil {
				mustParse(t, out)
			}
		}
		read(sigtest.Try(t, cades.New(), w.signer, add("Cosign", b, text, nil)))
		read(sigtest.Try(t, cades.New(), w.signer, add("Countersign", b, nil, sig.Params{"SignatureIndex": index})))
		read(w.enhance(t, b, "XLT1", text, nil))
	})
}

// FuzzAttributes reads AuthenticatedAttributes.
func FuzzAttributes(f *testing.F) {
	s := suite.ECDSAP256
	root := sigtest.Root(f, s)
	p := root.Signer(f, s, "Signer")
	f.Add(`{"1.2.643.100.1":"BAMBAgM="}`)
	f.Add("eyIxLjIuMyI6IkJRQT0ifQ==")
	f.Fuzz(func(t *testing.T, value string) {
		out, err := sigtest.Try(t, cades.New(), p, &sig.Job{Document: sigtest.Document(text), Params: sig.Params{"AuthenticatedAttributes": value}})
		if err == nil {
			if r := verify(t, out, nil, root); !r.Passed() {
				t.Errorf("%q: %v", value, sigtest.Codes(r))
			}
		}
	})
}
