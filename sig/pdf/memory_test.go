// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
)

// packed compresses data.
func packed(data []byte) []byte {
	var out bytes.Buffer
	w, _ := zlib.NewWriterLevel(&out, zlib.BestCompression)
	w.Write(data)
	w.Close()
	return out.Bytes()
}

// nested returns a document of 1.6 KB whose only section is a cross-reference stream of 800 MB,
// compressed twice.
func nested(size int) []byte {
	var b bytes.Buffer
	w, _ := zlib.NewWriterLevel(&b, zlib.BestCompression)
	w.Write(nil)
	w.Flush()
	head := bytes.Clone(b.Bytes())
	w.Write(make([]byte, 1<<20))
	w.Flush() // ends at a whole byte
	data := packed(append(head, bytes.Repeat(b.Bytes()[len(head):], 800)...))
	b.Reset()
	fmt.Fprintf(&b, "%%PDF-1.7\n1 0 obj\n<</Type/XRef/Size %d/W[1 4 2]/Root 2 0 R/Filter[/FlateDecode/FlateDecode]/Length %d>>\nstream\n", size, len(data))
	b.Write(data)
	b.WriteString("endstream\nendobj\nstartxref\n9\n%%EOF\n")
	return b.Bytes()
}

// allocated returns the bytes that do allocates, freed or not.
func allocated(do func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// Memory whose size the document decides is charged before it is allocated: a small document that
// asks for much is refused within a small multiple of its limit.
func TestChargedBeforeAllocated(t *testing.T) {
	const limit = 4 << 20
	catalog := []string{"<</Type /Catalog /Pages 2 0 R>>", "<</Type /Pages /Kids [] /Count 0>>"}
	// in returns a document whose page tree is in an object stream.
	in := func(content string, n int, more string) []byte {
		raw := packed([]byte(content))
		return crossStreamDocument([]string{
			"<</Type /Catalog /Pages 5 0 R>>", "null",
			fmt.Sprintf("<</Type /ObjStm /N %d /Filter /FlateDecode /Length %d %s>>\nstream\n%s\nendstream", n, len(raw), more, raw),
		}, "/Size 9", "", [3]int{0, 0, 0}, [3]int{2, 3, 0})
	}
	one := func(content string) []byte { return in("5 0 "+content, 1, "/First 4") }
	field := "<</FT /Sig /T (" + strings.Repeat("x", 4<<10) + ") /Kids [%d 0 R]>>"
	fields := []string{"<</Type /Catalog /Pages 2 0 R /AcroForm <</Fields [3 0 R]>>>>", catalog[1]}
	for i := range 60 {
		fields = append(fields, fmt.Sprintf(field, 4+i))
	}
	empty := packed(bytes.Repeat([]byte{0, 0, 0, 0xff, 0xff}, 64<<20/5)) // blocks of Deflate without a byte
	for name, test := range map[string]struct {
		data   []byte
		memory bool // the budget refuses it
	}{
		"Flate in Flate as cross-references":        {nested(3), false},
		"Flate in Flate as a million references":    {nested(1 << 20), false},
		"Flate in Flate as an object stream":        {crossStreamDocument(append(catalog, fmt.Sprintf("<</Type /ObjStm /N 1 /First 9 /Filter [/Fl /Fl] /Length 99>>\nstream\n%s\nendstream", deflated(64<<20, 0))), "/Size 9", "", [3]int{2, 3, 0}), false},
		"Flate that returns nothing":                {crossStreamDocument([]string{catalog[0], catalog[1], fmt.Sprintf("<</Type /ObjStm /N 1 /First 9 /Filter [/Fl /Fl] /Length %d>>\nstream\n%s\nendstream", len(empty), empty)}, "/Size 9", "", [3]int{2, 3, 0}), false},
		"a row of 64 MiB":                           {in("5 0 <</Kids []>>", 1, "/First 4 /DecodeParms <</Predictor 12 /Columns 1048576 /Colors 32 /BitsPerComponent 16>>"), false},
		"an object stream of spaces":                {one(strings.Repeat(" ", 16<<20)), true},
		"a list of a million objects":               {in(strings.Repeat("1 0 ", 1<<18), 1<<18, "/First 1048576"), true},
		"an array of half a million numbers":        {one("[" + strings.Repeat("1000 ", 1<<19) + "]"), true},
		"arrays in an array":                        {one("[" + strings.Repeat("[]", 1<<18) + "]"), true},
		"a dictionary of many keys":                 {one("<<" + strings.Repeat("/A 1 ", 1<<17) + ">>"), true},
		"a string":                                  {one("(" + strings.Repeat("x", 3<<20) + ")"), true},
		"a hexadecimal string":                      {one("<" + strings.Repeat("11", 3<<19) + ">"), true},
		"a trailer":                                 {bytes.Replace(formDocument(), []byte("/Root 1 0 R"), []byte("/Root 1 0 R /X ["+strings.Repeat("<<>>", 1<<16)+"]"), 1), true},
		"names of fields that grow with each level": {crossStreamDocument(fields, "/Size 99", ""), true},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			var report *sig.Report
			took := allocated(func() {
				report, _, err = judged(test.data, budget.Limits{Steps: 1 << 30, Memory: limit})
			})
			if test.memory != errors.Is(err, budget.ErrMemory) {
				t.Errorf("%v", err)
			}
			if err == nil && report.Passed() {
				t.Error("passed")
			}
			// The document itself is copied into blocks, at most once for each pass.
			if most := int64(3*limit + 2*len(test.data)); took > most {
				t.Errorf("%d KiB were allocated with a limit of %d KiB", took>>10, limit>>10)
			}
			if _, err := New().Verify(context.Background(), &sig.Check{Document: bytes.NewReader(test.data), At: sigtest.Time}); err != nil && !errors.As(err, new(*sig.ErrDocument)) {
				t.Errorf("with the ordinary limits: %v", err)
			}
		})
	}
}

// A filter chain decodes as one filter after another does, and of what is cut off it returns the
// beginning.
func TestFilters(t *testing.T) {
	plain := []byte(strings.Repeat("some text to be packed ", 2000))
	hexed := []byte(fmt.Sprintf("%x>", packed(plain)))
	rows := func(width int, data []byte) (out []byte) {
		above := make([]byte, width)
		for len(data) > 0 {
			line := data[:min(width, len(data))]
			data = data[len(line):]
			out = append(out, 2) // up
			for i, c := range line {
				out = append(out, c-above[i])
			}
			above = append(line[:len(line):len(line)], above[len(line):]...)
		}
		return out
	}
	tiff := bytes.Clone(plain)
	for i := len(tiff) - 1; i > 0; i-- {
		if i%10 != 0 {
			tiff[i] -= tiff[i-1]
		}
	}
	flate := name("FlateDecode")
	whole := packed(plain)
	for _, test := range []struct {
		title          string
		raw            []byte
		filters, parms object
		want           []byte
	}{
		{"none", plain, nil, nil, plain},
		{"one", whole, flate, nil, plain},
		{"a wrong checksum", append(whole[:len(whole)-1:len(whole)-1], 0), flate, nil, plain},
		{"two", packed(whole), array{flate, name("Fl")}, nil, plain},
		{"hexadecimal", hexed, array{name("AHx"), flate}, nil, plain},
		{"an odd digit", []byte("4 1\n4>9"), name("ASCIIHexDecode"), nil, []byte("A@")},
		{"base 85", []byte("87cURD]i,\"Ebo80~>garbage"), name("A85"), nil, []byte("Hello World!")},
		{"rows", packed(rows(9, plain)), flate, dict{{"Predictor", number("12")}, {"Columns", number("9")}}, plain},
		{"a row that is longer than the data", packed(rows(1<<20, plain)), flate, dict{{"Predictor", number("15")}, {"Columns", number("1048576")}}, plain},
		{"TIFF", packed(tiff), array{flate}, array{dict{{"Predictor", number("2")}, {"Columns", number("10")}}}, plain},
	} {
		f := newFile(context.Background(), bytes.NewReader(nil), 0)
		got, err := f.decode(test.raw, test.filters, test.parms, 1<<30)
		if err != nil || !bytes.Equal(got, test.want) {
			t.Errorf("%s: %d bytes, want %d, %v", test.title, len(got), len(test.want), err)
		}
		if held := f.spending.Held(); held != int64(len(got)) {
			t.Errorf("%s: %d bytes are held for %d", test.title, held, len(got))
		}
		if got, err := f.decode(test.raw, test.filters, test.parms, 5); err != nil || !bytes.Equal(got, test.want[:min(5, len(test.want))]) {
			t.Errorf("%s: the beginning is %q, %v", test.title, got, err)
		}
	}
	f := newFile(context.Background(), bytes.NewReader(nil), 0)
	if got, err := f.decode(whole[:len(whole)/2], flate, nil, 1<<30); err != nil || len(got) == 0 || !bytes.HasPrefix(plain, got) {
		t.Errorf("cut off: %d bytes, %v", len(got), err)
	}
	for title, raw := range map[string][]byte{"empty": {}, "a byte": {0x78}, "no Deflate": []byte("\x78\x9cwords")} {
		if got, err := f.decode(raw, flate, nil, 1<<30); err == nil {
			t.Errorf("%s: %q", title, got)
		}
	}
	if got, err := f.decode([]byte("\x01\x02"), array{name("A85"), flate}, nil, 1<<30); err == nil {
		t.Errorf("no base 85: %q", got)
	}
}

// crowded returns a document of about size bytes whose objects are in so many object streams, and
// that was changed revisions times.
func crowded(size, streams, revisions int) []byte {
	const each = 50 // objects of a stream
	var b bytes.Buffer
	b.WriteString("%PDF-1.7\n")
	random := rand.NewChaCha8([32]byte{})
	// An image for each page, so that most bytes are not in object streams.
	image := make([]byte, max(0, size/streams-4<<10))
	next := 3
	type row struct{ kind, at, index int }
	rows := map[int]row{}
	var kids strings.Builder
	add := func(num int, text string) {
		rows[num] = row{1, b.Len(), 0}
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", num, text)
	}
	list := func(first int, objects []string) {
		var head, body strings.Builder
		for i, o := range objects {
			fmt.Fprintf(&head, "%d %d ", first+i, body.Len())
			body.WriteString(o + "\n")
		}
		data := packed([]byte(head.String() + body.String()))
		num := first + len(objects)
		add(num, fmt.Sprintf("<</Type/ObjStm/N %d/First %d/Filter/FlateDecode/Length %d>>\nstream\n%s\nendstream", len(objects), head.Len(), len(data), data))
		for i := range objects {
			rows[first+i] = row{2, num, i}
		}
	}
	start := 0
	section := func() {
		num := next
		next++
		prev := ""
		if start > 0 {
			prev = fmt.Sprintf("/Prev %d", start)
		}
		start = b.Len()
		rows[num] = row{1, start, 0}
		var data []byte
		var index strings.Builder
		for _, n := range slices.Sorted(maps.Keys(rows)) {
			r := rows[n]
			fmt.Fprintf(&index, "%d 1 ", n)
			data = append(data, byte(r.kind), byte(r.at>>24), byte(r.at>>16), byte(r.at>>8), byte(r.at), byte(r.index>>8), byte(r.index))
		}
		if prev == "" {
			index.Reset()
			fmt.Fprintf(&index, "1 %d", next-1)
		}
		data = packed(data)
		fmt.Fprintf(&b, "%d 0 obj\n<</Type/XRef/Size %d/W[1 4 2]/Index[%s]/Root 1 0 R%s/Filter/FlateDecode/Length %d>>\nstream\n%s\nendstream\nendobj\nstartxref\n%d\n%%%%EOF\n", num, next, index.String(), prev, len(data), data, start)
		clear(rows)
	}
	for range streams {
		random.Read(image)
		picture := next
		next++
		add(picture, fmt.Sprintf("<</Type/XObject/Subtype/Image/Width 1/Height 1/Length %d>>\nstream\n%s\nendstream", len(image), image))
		objects := []string{fmt.Sprintf("<</Type/Page/Parent 2 0 R/MediaBox[0 0 10 10]/Resources<</XObject<</I %d 0 R>>>>>>", picture)}
		for i := range each - 1 {
			objects = append(objects, fmt.Sprintf("<</Number %d/Of %d 0 R/Text(%x)>>", i, next, random.Uint64()))
		}
		fmt.Fprintf(&kids, "%d 0 R ", next)
		list(next, objects)
		next += each + 1
	}
	add(1, "<</Type/Catalog/Pages 2 0 R>>")
	add(2, fmt.Sprintf("<</Type/Pages/Count %d/Kids[%s]>>", streams, kids.String()))
	section()
	for i := range revisions - 1 {
		list(next, []string{fmt.Sprintf("<</Revision %d>>", i)})
		next += 2
		section()
	}
	return b.Bytes()
}

// signedCrowd returns a signed document of crowded and the check of its signature.
func signedCrowd(t testing.TB, size, streams, revisions int) *sig.Check {
	root, signer := party(t)
	signed := sigtest.Make(t, New(), signer, &sig.Job{Document: sigtest.Document(crowded(size, streams, revisions)), Params: sig.Params{"PDFFormat": "CMS"}})
	return &sig.Check{Document: bytes.NewReader(signed), Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time}
}

// A large honest document with many object streams and revisions takes memory by what its verdict
// needs, not by its size.
func TestCrowded(t *testing.T) {
	c := signedCrowd(t, 16<<20, 300, 50)
	var report *sig.Report
	var err error
	took := allocated(func() { report, err = New().Verify(context.Background(), c) })
	if err != nil || !report.Passed() || len(report.Signatures) != 1 {
		t.Fatalf("%v %+v", err, report)
	}
	if took > 16<<20 {
		t.Errorf("%d MiB were allocated", took>>20)
	}
}

// BenchmarkCrowded verifies a document of 100 MB with 2,000 object streams and 50 revisions. The
// bounds are 3 s and 256 MiB.
func BenchmarkCrowded(b *testing.B) {
	c := signedCrowd(b, 100e6, 2000, 50)
	b.SetBytes(c.Document.Size())
	b.ReportAllocs()
	for b.Loop() {
		if r, err := New().Verify(context.Background(), c); err != nil || !r.Passed() {
			b.Fatalf("%v %+v", err, r)
		}
	}
}
