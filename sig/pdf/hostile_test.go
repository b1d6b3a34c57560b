// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"tamga/internal/sigtest"
	"tamga/sig"
)

// crossStreamDocument returns a document whose only section is a stream with the given
// entries (W [1 4 2]) and more entries of its dictionary.
func crossStreamDocument(objects []string, index, more string, rows ...[3]int) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.5\n")
	offsets := make([]int, len(objects)+1)
	for i, o := range objects {
		offsets[i+1] = b.Len()
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	at := b.Len()
	var data []byte
	row := func(k, v, g int) {
		data = append(data, byte(k), byte(v>>24), byte(v>>16), byte(v>>8), byte(v), byte(g>>8), byte(g))
	}
	row(0, 0, 65535)
	for _, o := range offsets[1:] {
		row(1, o, 0)
	}
	for _, r := range rows {
		row(r[0], r[1], r[2])
	}
	fmt.Fprintf(&b, "%d 0 obj\n<</Type /XRef /W [1 4 2] %s /Root 1 0 R %s /Length %d>>\nstream\n", len(objects)+1+len(rows), index, more, len(data))
	b.Write(data)
	fmt.Fprintf(&b, "\nendstream\nendobj\nstartxref\n%d\n%%%%EOF\n", at)
	return b.Bytes()
}

func deflated(n int, b byte) []byte {
	var out bytes.Buffer
	w, _ := zlib.NewWriterLevel(&out, zlib.BestCompression)
	chunk := bytes.Repeat([]byte{b}, 1<<20)
	for ; n > 0; n -= len(chunk) {
		w.Write(chunk)
	}
	w.Close()
	return out.Bytes()
}

// TestHostile gives documents that are made to break readers. The result must be a
// refusal or a signature, within a second and 256 MB.
func TestHostile(t *testing.T) {
	_, signer := party(t)
	plain := formDocument()
	catalog := []string{"<</Type /Catalog /Pages 2 0 R>>", "<</Type /Pages /Kids [] /Count 0>>"}
	at := bytes.LastIndex(plain, []byte("xref\n0"))
	prev := func(offset int) []byte {
		return bytes.Replace(plain, []byte("/Root 1 0 R"), fmt.Appendf(nil, "/Root 1 0 R /Prev %d", offset), 1)
	}
	bomb := deflated(512<<20, ' ')
	with := func(stream string, data []byte, rows ...[3]int) []byte {
		return crossStreamDocument(append(catalog, fmt.Sprintf("<<%s /Length %d>>\nstream\n%s\nendstream", stream, len(data), data)), "/Size 99", "", rows...)
	}
	for _, c := range []struct {
		name      string
		data      []byte
		otherKind bool
		fine      bool // signed all the same
	}{
		{"text", []byte("Dear Sir,\nthis is no PDF at all.\n"), true, false},
		{"nothing", nil, true, false},
		{"a ZIP", []byte("PK\x03\x04 and so on"), true, false},
		{"a header alone", []byte("%PDF-1.7\n"), false, false},
		{"a header and text", []byte("%PDF-1.7\n" + strings.Repeat("lorem ipsum ", 1000)), false, false},
		{"cut in the middle", plain[:60], false, false},
		{"cut behind the root of the pages", plain[:len(plain)/2], false, false},
		{"cut at the end", plain[:len(plain)-30], false, true},
		{"Prev leads to itself", prev(at + 1), false, true},
		{"Prev leads nowhere", prev(1 << 40), false, true},
		{"a huge Size", bytes.Replace(plain, []byte("/Size 12"), []byte("/Size 2147483647"), 1), false, true},
		{"a huge subsection", bytes.Replace(plain, []byte("xref\n0 12\n"), []byte("xref\n0 999999999\n"), 1), false, true},
		{"a huge Index", crossStreamDocument(catalog, "/Size 9 /Index [0 2147483646]", ""), false, true},
		{"an Index beyond", crossStreamDocument(catalog, "/Size 9 /Index [2147483600 100]", ""), false, true},
		{"wide fields", bytes.Replace(crossStreamDocument(catalog, "/Size 9", ""), []byte("[1 4 2]"), []byte("[9 9 9]"), 1), false, true},
		{"fields of nothing", bytes.Replace(crossStreamDocument(catalog, "/Size 9", ""), []byte("[1 4 2]"), []byte("[0 0 0]"), 1), false, true},
		{"an object stream in itself", crossStreamDocument([]string{"<</Type /Catalog /Pages 3 0 R>>"}, "/Size 9", "", [3]int{2, 2, 0}, [3]int{2, 2, 1}), false, false},
		{"object streams in a circle", crossStreamDocument([]string{"<</Type /Catalog /Pages 2 0 R>>"}, "/Size 9", "", [3]int{2, 3, 0}, [3]int{2, 2, 0}), false, false},
		{"a bomb of objects", with("/Type /ObjStm /N 9 /First 99 /Filter /FlateDecode", bomb, [3]int{2, 3, 0}), false, true},
		{"a bomb of filters", with("/Type /ObjStm /N 1 /First 9 /Filter [/FlateDecode /FlateDecode /FlateDecode]", deflated(1<<20, 0), [3]int{2, 3, 0}), false, true},
		{"references in a circle", crossStreamDocument([]string{"2 0 R", "1 0 R"}, "/Size 9", ""), false, false},
		{"a length in a circle", crossStreamDocument([]string{catalog[0], catalog[1], "<</Length 3 0 R>>\nstream\nx\nendstream"}, "/Size 9", ""), false, true},
		{"pages in a circle", crossStreamDocument([]string{"<</Type /Catalog /Pages 2 0 R>>", "<</Type /Pages /Kids [2 0 R 2 0 R] /Count 9>>"}, "/Size 9", ""), false, true},
		{"fields in a circle", crossStreamDocument([]string{"<</Type /Catalog /Pages 2 0 R /AcroForm <</Fields [3 0 R]>>>>", catalog[1], "<</T (a) /FT /Sig /Kids [3 0 R]>>"}, "/Size 9", ""), false, true},
		{"deep arrays", crossStreamDocument([]string{"<</Type /Catalog /Pages 2 0 R /X " + strings.Repeat("[", 1<<20) + ">>", catalog[1]}, "/Size 9", ""), false, false},
		{"deep dictionaries", crossStreamDocument([]string{catalog[0], "<</Type /Pages /Kids " + strings.Repeat("<</A ", 1<<19) + ">>"}, "/Size 9", ""), false, false},
		{"a string without end", append([]byte("%PDF-1.4\n1 0 obj\n("), bytes.Repeat([]byte("("), 8<<20)...), false, false},
		{"many strings without end", bytes.Repeat([]byte("%PDF-1.4\n1 0 obj\n(\n"), 1<<18), false, false},
		{"many empty objects", append([]byte("%PDF-1.4\n"), bytes.Repeat([]byte("1 0 obj<<\n"), 1<<20)...), false, false},
		{"many trailers", append([]byte("%PDF-1.4\n1 0 obj<<>>endobj "), bytes.Repeat([]byte("trailer<</Root 2 0 R>>\n"), 1<<18)...), false, false},
		{"many sections", manySections(maxSections + 10), false, true},
		{"zeros", append([]byte("%PDF-1.4\n"), make([]byte, 16<<20)...), false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			_, err := sigtest.Try(t, New(), signer, &sig.Job{Document: bytes.NewReader(c.data), Params: sig.Params{"PDFFormat": "CMS"}})
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			var document *sig.ErrDocument
			switch {
			case err == nil:
				if !c.fine {
					t.Error("was signed")
				}
			case !errors.As(err, &document):
				t.Errorf("is no fault of the document: %v", err)
			case c.fine:
				t.Errorf("was refused: %v", err)
			case document.OtherKind != c.otherKind:
				t.Errorf("of another kind is %v: %v", document.OtherKind, err)
			}
			// The limit is a second. A busy machine and the race detector get twenty
			// times that, and quadratic work would take longer than all of it.
			if took > 20*time.Second {
				t.Errorf("took %v", took)
			}
			if all := after.TotalAlloc - before.TotalAlloc; all > 256<<20 {
				t.Errorf("allocated %d MiB", all>>20)
			}
			if _, err := New().Verify(context.Background(), &sig.Check{Document: bytes.NewReader(c.data), At: sigtest.Time}); err != nil && !errors.As(err, &document) {
				t.Errorf("verify: %v", err)
			}
		})
	}
}

// manySections returns a document with so many revisions.
func manySections(n int) []byte {
	data := formDocument()
	var b bytes.Buffer
	b.Write(data)
	prev := bytes.LastIndex(data, []byte("xref\n0"))
	for range n {
		at := b.Len()
		fmt.Fprintf(&b, "xref\n0 0\ntrailer\n<</Size 12 /Root 1 0 R /Prev %d>>\nstartxref\n%d\n%%%%EOF\n", prev, at)
		prev = at
	}
	return b.Bytes()
}

// TestCancelled returns when the caller cancels.
func TestCancelled(t *testing.T) {
	_, signer := party(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	job := &sig.Job{Document: bytes.NewReader(formDocument()), Params: sig.Params{"PDFFormat": "CMS"}, Certificate: signer.Certificate, Time: sigtest.Time}
	if _, err := New().Prepare(ctx, job); !errors.Is(err, context.Canceled) {
		t.Errorf("Prepare: %v", err)
	}
	if _, err := New().Verify(ctx, &sig.Check{Document: job.Document}); !errors.Is(err, context.Canceled) {
		t.Errorf("Verify: %v", err)
	}
}
