// SPDX-License-Identifier: Apache-2.0

package cades_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/cades"
)

func newFormat() sig.Format { return cades.New() }

// signed is an attached message of any size that is never in memory.
type signed struct {
	head, tail []byte
	middle     sigtest.Zeros
}

func (s *signed) Size() int64 { return int64(len(s.head)) + int64(s.middle) + int64(len(s.tail)) }

func (s *signed) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) && off < s.Size() {
		var k int
		switch start := int64(len(s.head)); {
		case off < start:
			k = copy(p[n:], s.head[off:])
		case off < start+int64(s.middle):
			k, _ = s.middle.ReadAt(p[n:], off-start)
		default:
			k = copy(p[n:], s.tail[off-start-int64(s.middle):])
		}
		n += k
		off += int64(k)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// ends keeps the first and the last bytes written to it.
type ends struct {
	first, last []byte
	n           int64
}

func (e *ends) Write(p []byte) (int, error) {
	const most = 4096
	e.n += int64(len(p))
	if len(e.first) < most {
		e.first = append(e.first, p[:min(len(p), most-len(e.first))]...)
	}
	e.last = append(e.last, p...)
	if len(e.last) > most {
		e.last = append(e.last[:0], e.last[len(e.last)-most:]...)
	}
	return len(p), nil
}

// Signing and verifying an attached document takes memory that does not depend on its
// size.
func TestMemory(t *testing.T) {
	s := suite.RSASHA256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	used := func(size sigtest.Zeros) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		job := &sig.Job{Document: size, Certificate: signer.Certificate, Time: sigtest.Time}
		prepared, err := cades.New().Prepare(context.Background(), job)
		if err != nil {
			t.Fatal(err)
		}
		result, err := cades.New().Finish(context.Background(), job, prepared.State, signer.Sign(t, prepared.Digest))
		if err != nil {
			t.Fatal(err)
		}
		var out ends
		if n, err := result.WriteTo(&out); err != nil || n != result.Size() {
			t.Fatal(n, err)
		}
		added := int(out.n - int64(size)) // head and tail
		for i := range added {
			if out.first[i] == 0 && bytes.Equal(out.first[i:i+64], make([]byte, 64)) {
				message := &signed{out.first[:i], out.last[len(out.last)-(added-i):], size}
				r, err := cades.New().Verify(context.Background(), &sig.Check{
					Document: message, Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time,
				})
				if err != nil || !r.Passed() {
					t.Fatalf("%v %v", err, sigtest.Codes(r))
				}
				break
			}
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	used(1 << 20) // fills the pool of buffers
	if small, large := used(1<<20), used(1<<28); large > small+1<<20 {
		t.Errorf("%d bytes allocated for 1 MiB, %d for 256 MiB", small, large)
	}
}

// A document that shrinks while it is read causes an error, not a broken message.
func TestShrinkingDocument(t *testing.T) {
	s := suite.ECDSAP256
	signer := sigtest.Root(t, s).Signer(t, s, "Signer")
	if _, err := sigtest.Try(t, cades.New(), signer, &sig.Job{Document: lying{sigtest.Zeros(10)}}); err == nil {
		t.Error("a document shorter than its size is signed")
	}
}

type lying struct{ sigtest.Zeros }

func (l lying) Size() int64 { return l.Zeros.Size() + 1 }

func TestCancelled(t *testing.T) {
	s := suite.ECDSAP256
	signer := sigtest.Root(t, s).Signer(t, s, "Signer")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := cades.New().Prepare(ctx, &sig.Job{Document: sigtest.Zeros(1), Certificate: signer.Certificate, Time: sigtest.Time}); err != context.Canceled {
		t.Error(err)
	}
}

func BenchmarkDetached(b *testing.B) {
	for _, s := range []*suite.Suite{suite.GOST2012x256, suite.RSASHA256} {
		signer := sigtest.Root(b, s).Signer(b, s, "Signer")
		for _, size := range []sigtest.Zeros{1 << 10, 1 << 20, 100 << 20} {
			b.Run(fmt.Sprintf("%s/%dKiB", s.Name, size>>10), func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					job := &sig.Job{
						Document: size, Certificate: signer.Certificate, Time: sigtest.Time,
						Params: sig.Params{"IsDetached": "True"},
					}
					prepared, err := cades.New().Prepare(context.Background(), job)
					if err != nil {
						b.Fatal(err)
					}
					result, err := cades.New().Finish(context.Background(), job, prepared.State, signer.Sign(b, prepared.Digest))
					if err != nil {
						b.Fatal(err)
					}
					if _, err := result.WriteTo(io.Discard); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func FuzzVerify(f *testing.F) {
	s := suite.GOST2012x256 // its keys are the same in every worker
	root := sigtest.Root(f, s)
	signer := root.Signer(f, s, "Signer")
	for i := range modes {
		f.Add(sign(f, signer, i), text)
	}
	f.Fuzz(func(t *testing.T, message, original []byte) {
		r, err := cades.New().Verify(context.Background(), &sig.Check{
			Document: sigtest.Document(message), Original: sigtest.Document(original),
			Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time,
		})
		if err == nil && r.Passed() && !bytes.Equal(original, text) {
			t.Fatalf("valid over another text: %q", original)
		}
	})
}
