// SPDX-License-Identifier: Apache-2.0

package ooxml_test

import (
	"bytes"
	"context"
	"errors"
	"hash/crc32"
	"io"
	"runtime"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/ooxml"
)

// sparse is a document of zeros except for a few ranges, so that it may have any size.
type sparse struct {
	size   int64
	chunks []chunk
}

type chunk struct {
	at   int64
	data []byte
}

func (s *sparse) Size() int64 { return s.size }

func (s *sparse) ReadAt(p []byte, off int64) (int, error) {
	n := int(max(min(int64(len(p)), s.size-off), 0))
	clear(p[:n])
	for _, c := range s.chunks {
		if from, to := max(off, c.at), min(off+int64(n), c.at+int64(len(c.data))); from < to {
			copy(p[from-off:to-off], c.data[from-c.at:to-c.at])
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Write appends, so that a result can be read again. Zeros take no memory.
func (s *sparse) Write(p []byte) (int, error) {
	for from := 0; from < len(p); {
		to := min(from+4096, len(p))
		if !bytes.Equal(p[from:to], zeros[:to-from]) {
			s.chunks = append(s.chunks, chunk{s.size + int64(from), bytes.Clone(p[from:to])})
		}
		from = to
	}
	s.size += int64(len(p))
	return len(p), nil
}

var zeros [4096]byte

// largeDocument returns a Word document that begins with an uncompressed entry of size
// zero bytes with the given name. Its checksum is crc.
func largeDocument(t testing.TB, files []sigtest.ZipEntry, name string, size int64, crc uint32) *sparse {
	t.Helper()
	head := le.AppendUint32(nil, 0x04034b50)
	fields := func(sizes uint32, extra int) []byte {
		b := []byte{45, 0, 0, 0, 0, 0, 0, 0, 0x21, 0}
		b = le.AppendUint32(b, crc)
		b = le.AppendUint32(le.AppendUint32(b, sizes), sizes)
		return le.AppendUint16(le.AppendUint16(b, uint16(len(name))), uint16(extra))
	}
	const all = 1<<32 - 1
	sizes := le.AppendUint64(le.AppendUint64(nil, uint64(size)), uint64(size))
	local := append(append(append(head, fields(all, 20)...), name...), append([]byte{1, 0, 16, 0}, sizes...)...)
	shift := int64(len(local)) + size

	rest := sigtest.Zip(files, "")
	end := rest[len(rest)-22:]
	at, length := int64(le.Uint32(end[16:])), int64(le.Uint32(end[12:]))
	directory := append(le.AppendUint32(nil, 0x02014b50), 45, 0)
	directory = append(append(directory, fields(all, 20)...), make([]byte, 10)...)
	directory = append(append(le.AppendUint32(directory, 0), name...), append([]byte{1, 0, 16, 0}, sizes...)...)
	for old := rest[at : at+length]; len(old) > 0; {
		n := 46 + int(le.Uint16(old[28:])) + int(le.Uint16(old[30:]))
		record := bytes.Clone(old[:n])
		offset := uint64(le.Uint32(record[42:])) + uint64(shift)
		le.PutUint32(record[42:], uint32(min(offset, all)))
		if offset >= all {
			le.PutUint16(record[30:], le.Uint16(record[30:])+12)
			record = le.AppendUint64(append(record, 1, 0, 8, 0), offset)
		}
		directory, old = append(directory, record...), old[n:]
	}
	tail := append(bytes.Clone(rest[:at]), directory...)
	begin := shift + at
	end64 := le.AppendUint64(le.AppendUint32(nil, 0x06064b50), 44)
	end64 = append(end64, 45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	for _, v := range []int64{int64(len(files)) + 1, int64(len(files)) + 1, int64(len(directory)), begin} {
		end64 = le.AppendUint64(end64, uint64(v))
	}
	locator := append(le.AppendUint64(append(le.AppendUint32(nil, 0x07064b50), 0, 0, 0, 0), uint64(begin)+uint64(len(directory))), 1, 0, 0, 0)
	small := append(le.AppendUint32(nil, 0x06054b50), 0, 0, 0, 0)
	small = append(small, bytes.Repeat([]byte{0xFF}, 12)...)
	tail = append(append(append(tail, end64...), locator...), append(small, 0, 0)...)
	return &sparse{size: shift + int64(len(tail)), chunks: []chunk{{0, local}, {shift, tail}}}
}

// Documents larger than 4 GiB: an unsigned part is never read, and the offset of every
// entry after it no longer fits into a small directory record.
func TestZip64(t *testing.T) {
	root := sigtest.Root(t, suite.ECDSAP256)
	signer := root.Signer(t, suite.ECDSAP256, "Signer")
	for _, size := range []int64{1000, 1<<32 - 2100, 1<<32 + 5} {
		var doc sig.Document = largeDocument(t, word(), "docProps/large.bin", size, 1)
		for n := 1; n <= 2; n++ {
			j := &sig.Job{Document: doc, Certificate: signer.Certificate, Time: sigtest.Time}
			p, err := ooxml.New().Prepare(context.Background(), j)
			if err != nil {
				t.Fatal(err)
			}
			r, err := ooxml.New().Finish(context.Background(), j, p.State, signer.Sign(t, p.Digest))
			if err != nil {
				t.Fatal(err)
			}
			out := &sparse{}
			if written, err := r.WriteTo(out); err != nil || written != r.Size() || out.size != written {
				t.Fatalf("wrote %d of %d: %v", written, r.Size(), err)
			}
			report, err := ooxml.New().Verify(context.Background(), &sig.Check{Document: out, Roots: append(signer.Chain, root.Certificate), At: sigtest.Time})
			if err != nil || !report.Passed() || len(report.Signatures) != n {
				t.Fatalf("%d bytes: %v %+v", size, err, report)
			}
			doc = out
		}
	}
}

// A large part takes no memory when it is signed or verified.
func TestMemory(t *testing.T) {
	const size = 64 << 20
	root := sigtest.Root(t, suite.ECDSAP256)
	signer := root.Signer(t, suite.ECDSAP256, "Signer")
	sum := crc32.NewIEEE()
	for range size / len(zeros) {
		sum.Write(zeros[:])
	}
	doc := largeDocument(t, replaced(t, word(), docRels, "media/image1.png", "/x.png"), "x.png", size, sum.Sum32())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	j := &sig.Job{Document: doc, Certificate: signer.Certificate, Time: sigtest.Time}
	p, err := ooxml.New().Prepare(context.Background(), j)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ooxml.New().Finish(context.Background(), j, p.State, signer.Sign(t, p.Digest))
	if err != nil {
		t.Fatal(err)
	}
	out := &sparse{}
	if _, err := r.WriteTo(out); err != nil {
		t.Fatal(err)
	}
	report, err := ooxml.New().Verify(context.Background(), &sig.Check{Document: out, Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time})
	if err != nil || !report.Passed() || !strings.Contains(report.Signatures[0].Covers, "/x.png") {
		t.Fatalf("%v %+v", err, report)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
		t.Errorf("%d bytes were allocated for a document of %d", n, doc.size)
	}
}

// Zip64 records with wrong values.
func TestZip64Lies(t *testing.T) {
	change := func(behind string, at int, b ...byte) sig.Document {
		d := largeDocument(t, word(), "x.bin", 100, 1)
		tail := d.chunks[1].data
		copy(tail[bytes.LastIndex(tail, []byte(behind))+at:], b)
		return d
	}
	for name, doc := range map[string]sig.Document{
		"locator outside":    change("PK\x06\x07", 14, 1),
		"locator elsewhere":  change("PK\x06\x07", 8, 1),
		"no record":          change("PK\x06\x06", 0, 0),
		"record of a length": change("PK\x06\x06", 4, 99),
		"volumes":            change("PK\x06\x06", 16, 1),
		"too many entries":   change("PK\x06\x06", 24, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1),
		"a huge directory":   change("PK\x06\x06", 44, 1),
		"directory outside":  change("PK\x06\x06", 55, 1),
		"directory negative": change("PK\x06\x06", 55, 0xFF),
		"end records":        change("PK\x05\x06", 8, 3, 0, 3, 0),
		"huge size":          change("x.bin\x01\x00\x10", 9, 1, 1, 1, 1, 1, 1, 1, 0x7F),
		"offset outside":     change("PK\x01\x02", 42, 0xFE, 0xFF, 0xFF, 0x7F),
	} {
		_, err := ooxml.New().Verify(context.Background(), &sig.Check{Document: doc})
		var e *sig.ErrDocument
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

const (
	gib      = 1 << 30
	crcOfGiB = 0x5b64c2b0 // the CRC-32 of 1 GiB of zero bytes
)

// A document of 1 GiB takes as much memory to sign and to verify as a small one.
func BenchmarkGiB(b *testing.B) {
	signer := sigtest.Root(b, suite.GOST2012x256).Signer(b, suite.GOST2012x256, "Signer")
	doc := largeDocument(b, replaced(b, word(), docRels, "media/image1.png", "/x.png"), "x.png", gib, crcOfGiB)
	b.SetBytes(gib)
	b.ReportAllocs()
	for b.Loop() {
		j := &sig.Job{Document: doc, Certificate: signer.Certificate, Time: sigtest.Time}
		p, err := ooxml.New().Prepare(context.Background(), j)
		if err != nil {
			b.Fatal(err)
		}
		r, err := ooxml.New().Finish(context.Background(), j, p.State, signer.Sign(b, p.Digest))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := r.WriteTo(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.Sys)/(1<<20), "MiB-of-process")
}
