// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// sparse is a document with a stream of zeros in its middle, which take no memory.
type sparse struct {
	head, tail []byte
	zeros      int64
}

func (s sparse) Size() int64 { return int64(len(s.head)+len(s.tail)) + s.zeros }

func (s sparse) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		at := off + int64(n)
		switch {
		case at < int64(len(s.head)):
			n += copy(p[n:], s.head[at:])
		case at < int64(len(s.head))+s.zeros:
			k := int(min(int64(len(p)-n), int64(len(s.head))+s.zeros-at))
			clear(p[n : n+k])
			n += k
		case at < s.Size():
			n += copy(p[n:], s.tail[at-int64(len(s.head))-s.zeros:])
		default:
			return n, io.EOF
		}
	}
	return n, nil
}

// sparseDocument returns a document larger by so many bytes than a small one.
func sparseDocument(zeros int64) sparse {
	data := document{objects: map[int]string{100: fmt.Sprintf("<</Length %d>>\nstream\nHERE\nendstream", zeros)}}.build()
	at := bytes.Index(data, []byte("HERE"))
	xref := bytes.LastIndex(data, []byte("xref\n0"))
	tail := string(data[at+4:])
	tail = strings.Replace(tail, fmt.Sprintf("startxref\n%d", xref), fmt.Sprintf("startxref\n%d", int64(xref)+zeros-4), 1)
	return sparse{head: data[:at], tail: []byte(tail), zeros: zeros}
}

// TestLargeOffsets signs documents beyond the limits of 31 bits, 32 bits and ten digits.
// It makes only the new section, because the digest would take minutes.
func TestLargeOffsets(t *testing.T) {
	tools := judge.PDF(t)
	_, signer := party(t)
	for _, size := range []int64{1 << 20, 1<<31 + 5, 1<<32 + 5, 9_999_000_000, 10_000_000_000, 123_456_789_012} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			d := sparseDocument(size)
			m := &maker{ctx: context.Background(), suite: suite.ECDSAP256, params: params{format: formatCMS}, job: &sig.Job{
				Document: d, Certificate: signer.Certificate, Time: sigtest.Time,
			}}
			out, err := m.section()
			if err != nil {
				t.Fatal(err)
			}
			if m.update.stream || bytes.Contains(out.tail, []byte("/XRef")) != (size >= 10_000_000_000) {
				t.Errorf("the section: %s", out.tail)
			}
			whole := sparse{head: d.head, zeros: d.zeros, tail: bytes.Join([][]byte{d.tail, out.head, appendHex(nil, make([]byte, out.room)), out.tail}, nil)}
			f, err := open(context.Background(), whole, whole.Size(), nil)
			if err != nil || f.rebuilt {
				t.Fatalf("is not read again: %v", err)
			}
			s := f.signature(f.form().signatures[0])
			if s.from != d.Size()+int64(len(out.head)) || s.to != s.from+holeOf(out.room) || s.end != whole.Size() || len(f.sections) != 2 {
				t.Errorf("ByteRange leads from %d to %d of %d: %v", s.from, s.to, s.end, s.findings)
			}
			path := filepath.Join(t.TempDir(), "large.pdf")
			file, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			_, err1 := file.WriteAt(whole.head, 0)
			_, err2 := file.WriteAt(whole.tail, whole.Size()-int64(len(whole.tail)))
			if err := errors.Join(err1, err2); err != nil {
				t.Skipf("qpdf judges nothing: no file with a hole of this size can be made here: %v", err)
			}
			said, err := tools.QPDFShow(path, "--show-object=trailer")
			if err != nil || !strings.Contains(said, "/Root 1 0 R") {
				t.Errorf("qpdf: %s %v", said, err)
			}
			object := fmt.Sprintf("--show-object=%d", s.id.num)
			if said, err := tools.QPDFShow(path, object); err != nil || !strings.Contains(said, fmt.Sprint(s.to)) {
				t.Errorf("qpdf: %.300s %v", said, err)
			}
		})
	}
}

// TestMemory prepares and checks a document of 1 GiB, or 128 MiB in the short form: the total of all allocations, freed
// or not, stays far below its size.
func TestMemory(t *testing.T) {
	root, signer := party(t)
	d := sparseDocument(1 << 30)
	if testsize.Of() < testsize.Whole {
		d = sparseDocument(1 << 27)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	job := &sig.Job{Document: d, Certificate: signer.Certificate, Chain: signer.Chain, Time: sigtest.Time, Params: sig.Params{"PDFFormat": "CMS"}}
	prepared, err := New().Prepare(context.Background(), job)
	if err != nil {
		t.Fatal(err)
	}
	result, err := New().Finish(context.Background(), job, prepared.State, signer.Sign(t, prepared.Digest))
	if err != nil {
		t.Fatal(err)
	}
	st := mustState(t, prepared.State)
	var out bytes.Buffer
	if _, err := result.WriteTo(&tailWriter{skip: d.Size(), to: &out}); err != nil {
		t.Fatal(err)
	}
	whole := sparse{head: d.head, zeros: d.zeros, tail: append(bytes.Clone(d.tail), out.Bytes()...)}
	r, err := New().Verify(context.Background(), &sig.Check{Document: whole, Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time})
	if err != nil || !r.Passed() {
		t.Errorf("%v %v", err, r)
	}
	runtime.ReadMemStats(&after)
	if all := after.TotalAlloc - before.TotalAlloc; all > 16<<20 {
		t.Errorf("%d MiB were allocated for a room of %d bytes", all>>20, st.Room)
	}
}

// tailWriter discards the first bytes and passes on the rest.
type tailWriter struct {
	skip int64
	to   io.Writer
}

func (w *tailWriter) Write(p []byte) (int, error) {
	n := min(w.skip, int64(len(p)))
	w.skip -= n
	if _, err := w.to.Write(p[n:]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// BenchmarkLarge prepares 1 GiB; BenchmarkHash is the digest alone.
func BenchmarkLarge(b *testing.B) {
	root := sigtest.Root(b, suite.GOST2012x256)
	signer := root.Signer(b, suite.GOST2012x256, "Signer")
	d := sparseDocument(1 << 30)
	job := &sig.Job{Document: d, Certificate: signer.Certificate, Time: sigtest.Time, Params: sig.Params{"PDFFormat": "CMS"}}
	b.SetBytes(d.Size())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New().Prepare(context.Background(), job); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHash(b *testing.B) {
	d := sparseDocument(1 << 30)
	b.SetBytes(d.Size())
	for b.Loop() {
		if _, err := sig.DigestOf(context.Background(), sig.File{Document: d}, suite.Streebog256); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSmall signs a document of 100 KB.
func BenchmarkSmall(b *testing.B) {
	for _, s := range []*suite.Suite{suite.GOST2012x256, suite.ECDSAP256} {
		b.Run(s.Name, func(b *testing.B) {
			root := sigtest.Root(b, s)
			signer := root.Signer(b, s, "Signer")
			data := document{pages: 20, objects: map[int]string{100: fmt.Sprintf("<</Length %d>>\nstream\n%s\nendstream", 96<<10, strings.Repeat("x", 96<<10))}}.build()
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := sigtest.Try(b, New(), signer, &sig.Job{Document: bytes.NewReader(data), Params: sig.Params{"PDFFormat": "CMS"}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
