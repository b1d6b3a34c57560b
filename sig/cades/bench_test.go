// SPDX-License-Identifier: Apache-2.0

package cades_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/cades"
)

// BenchmarkLevels signs 1 KiB at a level with services in the same process, whose own
// signatures count: T makes two in all, XLT1 three, and XLT1 fetches revocation data that
// the services sign each time.
func BenchmarkLevels(b *testing.B) {
	for _, s := range []*suite.Suite{suite.GOST2012x256, suite.GOST2012x512} {
		w := newWorld(b, s)
		doc := sigtest.Document(make([]byte, 1<<10))
		for _, level := range []string{"BES", "T", "XLT1"} {
			b.Run(s.Name+"/"+level, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					w.make(b, w.signer, level, &sig.Job{Document: doc, Params: sig.Params{"IsDetached": "True"}})
				}
			})
		}
	}
}

// BenchmarkMessage makes a detached message of a document of 1 KiB as a server with the
// key does, and the same with a given signature value: the cost of the message besides
// its signature, in time and memory.
func BenchmarkMessage(b *testing.B) {
	for _, s := range []*suite.Suite{suite.GOST2012x256, suite.GOST2012x512} {
		p := sigtest.Root(b, s)
		job := &sig.Job{Document: sigtest.Document(make([]byte, 1<<10)), Certificate: p.Certificate,
			Params: sig.Params{"IsDetached": "True"}, Time: sigtest.Time}
		given, err := s.Sign(nil, p.Key, s.Hash.Digest(nil))
		if err != nil {
			b.Fatal(err)
		}
		for _, bench := range []struct {
			name string
			sign func(d suite.Digest) ([]byte, error)
		}{
			{"whole", func(d suite.Digest) ([]byte, error) { return s.Sign(nil, p.Key, d) }},
			{"without signature", func(suite.Digest) ([]byte, error) { return given, nil }},
		} {
			b.Run(s.Name+"/"+bench.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					prepared, err := cades.New().Prepare(context.Background(), job)
					if err != nil {
						b.Fatal(err)
					}
					value, err := bench.sign(prepared.Digest)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := cades.New().Finish(context.Background(), job, prepared.State, value); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// manySigners returns a message with many signatures. Each new one is added to the
// message without the others, and all are put together at the end.
func manySigners(t testing.TB, w *world, n int) []byte {
	t.Helper()
	message := sign(t, w.signer, 0)
	m := mustParse(t, message)
	next := sigtest.Make(t, cades.New(), w.signer, add("Cosign", message, nil, nil))
	one := mustParse(t, next).Signers[1].Raw
	changes := cms.Changes{}
	for range n - 1 {
		changes.Added = append(changes.Added, one)
	}
	head, tail, err := m.Rewrite(changes)
	if err != nil {
		t.Fatal(err)
	}
	return append(append(head, section(message, m.EncapContentInfo)...), tail...)
}

// Enhancing all signatures of a message takes time proportional to their number.
func TestEnhanceManyIsLinear(t *testing.T) {
	w := newWorld(t, suite.ECDSAP256)
	n := 1000
	if testsize.Of() < testsize.Whole {
		n = 150
	}
	message := manySigners(t, w, n)
	for level, want := range map[string]int{"T": n, "XLT1": 2 * n} {
		before := w.services.Calls("stamp")
		out, err := w.enhance(t, message, level, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.services.Calls("stamp") - before; got != want {
			t.Errorf("%s: %d stamps, want %d", level, got, want)
		}
		got := levels(t, verify(t, out, nil, w.root))
		if len(got) != n || slices.ContainsFunc(got, func(l string) bool { return l != level }) {
			t.Errorf("%d signers, not all at %s", len(got), level)
		}
	}
	if n := w.services.Calls("revocation"); n != 4 {
		t.Errorf("revocation data was asked for %d times", n)
	}
}

func BenchmarkEnhance(b *testing.B) {
	w := newWorld(b, suite.GOST2012x256)
	for _, level := range []string{"T", "XLT1"} {
		for _, n := range []int{10, 100, 1000} {
			message := manySigners(b, w, n)
			b.Run(fmt.Sprintf("%s/signers=%d", level, n), func(b *testing.B) {
				start := time.Now()
				for b.Loop() {
					if _, err := w.enhance(b, message, level, nil, nil); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(time.Since(start).Microseconds())/float64(b.N*n), "µs/signer")
			})
		}
	}
}

// BenchmarkVerifyLevels checks a message with one signature.
func BenchmarkVerifyLevels(b *testing.B) {
	w := newWorld(b, suite.GOST2012x256)
	for _, level := range []string{"BES", "T", "XLT1"} {
		message := w.make(b, w.signer, level, &sig.Job{Document: sigtest.Document(text)})
		b.Run(level, func(b *testing.B) {
			for b.Loop() {
				r, err := cades.New().Verify(context.Background(), &sig.Check{
					Document: sigtest.Document(message), Roots: []*x509gost.Certificate{w.root.Certificate}, At: sigtest.Time,
				})
				if err != nil || !r.Passed() {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkVerifyArchive checks CAdES-A with three archive time stamps. The signer and the service are below
// one authority each, below the root: chains of three.
func BenchmarkVerifyArchive(b *testing.B) {
	for _, s := range []*suite.Suite{suite.GOST2012x256, suite.GOST2012x512} {
		w := newWorld(b, s)
		message := w.make(b, w.signer, "A", &sig.Job{Document: sigtest.Document(text)})
		for range 2 {
			var err error
			if message, err = w.enhance(b, message, "A", nil, nil); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(s.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := cades.New().Verify(context.Background(), &sig.Check{
					Document: sigtest.Document(message), Roots: []*x509gost.Certificate{w.root.Certificate}, At: w.services.Now,
				})
				if err != nil || !r.Passed() || r.Signatures[0].Level != "A" {
					b.Fatal(err)
				}
			}
		})
	}
}
