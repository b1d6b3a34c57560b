// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// TestCut signs the beginnings of a document: incomplete ones are refused, and qpdf and
// MuPDF read the signed ones without repair and with all their pages.
func TestCut(t *testing.T) {
	tools := judge.PDF(t)
	_, signer := party(t)
	plain := document{pages: 3}.build()
	whole := bytes.LastIndex(plain, []byte("endobj")) + len("endobj")
	signed := 0
	for cut := 15; cut < len(plain); cut += 7 {
		out, err := sigtest.Try(t, New(), signer, &sig.Job{Document: bytes.NewReader(plain[:cut]), Params: sig.Params{"PDFFormat": "CMS"}})
		var document *sig.ErrDocument
		switch {
		case errors.As(err, &document) && !document.OtherKind:
			if cut >= whole {
				t.Errorf("cut behind the last object, at %d: %v", cut, err)
			}
			continue
		case err != nil:
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if signed++; signed%8 != 1 && cut >= whole {
			continue // the programs are slow
		}
		if err := tools.CheckQPDF(out, ""); err != nil {
			t.Errorf("cut at %d: %v", cut, err)
		}
		if err := tools.CheckMuPDF(out, ""); err != nil {
			t.Errorf("cut at %d: %v", cut, err)
		}
		if said, err := tools.Text(out, ""); err != nil || !strings.Contains(said, "Page 3") {
			t.Errorf("cut at %d: the pages show %q %v", cut, said, err)
		}
	}
	if signed == 0 {
		t.Error("nothing was signed")
	}
}

// TestCutKinds cuts inside values and streams of the last object.
func TestCutKinds(t *testing.T) {
	_, signer := party(t)
	plain := document{}.build()
	base := string(plain[:bytes.Index(plain, []byte("xref\n0"))])
	for last, fine := range map[string]bool{
		"20 0 obj\n<</A 1>>\nendobj\n":                               true,
		"20 0 obj\n<</A 1>>\nendobj":                                 true,
		"20 0 obj\nnull\nendobj\n":                                   true,
		"20 0 obj\nendobj\n":                                         true,
		"20 0 obj\n12\nendobj\n":                                     true,
		"20 0 obj\n<</Length 4>>\nstream\nabcd\nendstream\nendobj\n": true,
		"20 0 obj\n<</Length 4>>\nstream\nabcd\nendstreamendobj\n":   true,
		"20 0 obj\n<</Length 9>>\nstream\nabcd\nendstream\nendobj\n": true,
		"20 0 obj\n<</A 1>>\ntrailer\n<</Root 1 0 R>>\n":             true,
		"20 0 obj\n<</A 1>>\n":                                       false,
		"20 0 obj\n<</A (text":                                       false,
		"20 0 obj\n<</A <4142":                                       false,
		"20 0 obj\n<</A [1 2 3":                                      false,
		"20 0 obj\n":                                                 false,
		"20 0 obj\n12":                                               false,
		"20 0 obj\n<</Length 400>>\nstream\nabcd":                    false,
		"20 0 obj\n<</Length 4>>\nstream\nabcd\nendstream\n":         false,
		"20 0 obj\n<</Type /Page /Parent 2 0 R>>\nendobj\n2 0 obj\n<</Type /Pages /Kids [10 0 R 98 0 R] /Count 2>>\nendobj\n": false, // a page is lost
	} {
		_, err := sigtest.Try(t, New(), signer, &sig.Job{Document: strings.NewReader(base + last), Params: sig.Params{"PDFFormat": "CMS"}})
		var document *sig.ErrDocument
		if (err == nil) != fine || err != nil && !errors.As(err, &document) {
			t.Errorf("%q: %v", last, err)
		}
	}
}

// TestObjectNumbers signs documents with large object numbers, up to those that some
// programs do not read.
func TestObjectNumbers(t *testing.T) {
	root, signer := party(t)
	tools := judge.PDF(t)
	plain := document{}.build()
	for number, fine := range map[int]bool{100_000: true, 8_000_000: true, maxWritten: false, 1<<31 - 1: false} {
		data := revise(t, plain, func(_ *file, u *update) {
			u.next = min(number, maxWritten) + 1
			u.put(ref{num: number}, dict{{"A", number1}})
		})
		signed, err := sigtest.Try(t, New(), signer, &sig.Job{Document: bytes.NewReader(data), Params: sig.Params{"PDFFormat": "CMS"}})
		var document *sig.ErrDocument
		if !fine {
			if !errors.As(err, &document) || document.OtherKind || !strings.Contains(err.Error(), fmt.Sprint(number)) {
				t.Errorf("%d: %v", number, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%d: %v", number, err)
			continue
		}
		if r := verified(t, signed, root); !r.Passed() || len(r.Signatures) != 1 {
			t.Errorf("%d: %s", number, say(r))
		}
		if err := tools.CheckMuPDF(signed, ""); err != nil {
			t.Errorf("%d: %v", number, err)
		}
	}
}

const number1 = number("1")

// TestReadBack damages the output: it must not be returned.
func TestReadBack(t *testing.T) {
	root, signer := party(t)
	data := document{pages: 3}.build()
	job := &sig.Job{
		Document: bytes.NewReader(data), Certificate: signer.Certificate, Chain: signer.Chain, Time: sigtest.Time,
		Evidence: sigtest.NewServices(t, root), Params: sig.Params{"PDFFormat": "CAdES", "TSPAddress": ""},
	}
	make := func() (*maker, *made) {
		m := &maker{format: New(), ctx: t.Context(), suite: suite.ECDSAP256, params: params{format: formatCMS}, job: job}
		out, err := m.section()
		if err != nil {
			t.Fatal(err)
		}
		return m, out
	}
	digits := func(b []byte, behind string) []byte { // changes a digit
		i := bytes.LastIndex(b, []byte(behind)) + len(behind)
		for b[i] < '0' || b[i] > '8' {
			i++
		}
		b[i]++
		return b
	}
	for what, spoil := range map[string]func(m *maker, out *made){
		"startxref": func(_ *maker, out *made) { out.tail = digits(out.tail, "startxref\n") },
		"Prev":      func(_ *maker, out *made) { out.tail = digits(out.tail, "/Prev ") },
		"ByteRange": func(_ *maker, out *made) { out.head = digits(out.head, "/ByteRange [0 ") },
		"a place":   func(_ *maker, out *made) { out.tail = digits(out.tail, "xref\n1 ") },
		"the field": func(_ *maker, out *made) {
			out.tail = bytes.Replace(out.tail, []byte("/Fields ["), []byte("/FieldX ["), 1)
		},
		"a value": func(_ *maker, out *made) { out.tail = bytes.Replace(out.tail, []byte("/V "), []byte("/X "), 1) },
		"the pages": func(_ *maker, out *made) {
			out.tail = bytes.Replace(out.tail, []byte("/Pages 2 0"), []byte("/Pages 3 0"), 1)
		},
		"the hole":      func(_ *maker, out *made) { out.room++ },
		"a longer tail": func(_ *maker, out *made) { out.tail = append(out.tail, ' ') },
	} {
		m, out := make()
		if err := m.readBack(out); err != nil {
			t.Fatal(err)
		}
		spoil(m, out)
		var document *sig.ErrDocument
		if err := m.readBack(out); !errors.As(err, &document) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// The same for the prepared state that the second step gets.
	f := New()
	prepared, err := f.Prepare(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	value := signer.Sign(t, prepared.Digest)
	for what, spoil := range map[string]func(*state){
		"nothing":                         func(*state) {},
		"startxref":                       func(st *state) { st.Tail = digits(st.Tail, "startxref\n") },
		"ByteRange":                       func(st *state) { st.Head = digits(st.Head, "/ByteRange [0 ") },
		"Prev":                            func(st *state) { st.Revision.Prev++ },
		"nothing, as of an older release": func(st *state) { st.Signature, st.Fixed, st.Key = 0, 0, nil },
		"the number":                      func(st *state) { st.Signature = 1 },
		"Contents":                        func(st *state) { st.Head = bytes.Replace(st.Head, []byte("/Contents"), []byte("/Content5"), 1) },
		"the room":                        func(st *state) { st.Room++ },
	} {
		st := mustState(t, prepared.State)
		spoil(st)
		if _, err := f.Finish(t.Context(), job, sig.MarshalState(st, 0), value); (err == nil) != strings.HasPrefix(what, "nothing") {
			t.Errorf("the state: %s: %v", what, err)
		}
	}
}

// TestHeader: all functions have the same rule for what a PDF is.
func TestHeader(t *testing.T) {
	_, signer := party(t)
	plain := document{}.build()
	without := plain[bytes.IndexByte(plain, '\n')+1:]
	for what, c := range map[string]struct {
		data []byte
		is   bool
	}{
		"at the beginning":  {plain, true},
		"behind some bytes": {append(bytes.Repeat([]byte("x\n"), 500), plain...), true},
		"just within":       {append(bytes.Repeat([]byte("x"), headerReach-5), plain...), true},
		"just outside":      {append(bytes.Repeat([]byte("x"), headerReach-4), plain...), false},
		"of PostScript":     {append([]byte("%!PS-Adobe-3.0 PDF-1.4\n"), without...), true},
		"missing":           {without, false},
		"of another kind":   {append([]byte("%PNG-1.4\n"), without...), false},
	} {
		if LooksLikePDF(c.data) != c.is {
			t.Errorf("%s: recognised is %v", what, !c.is)
		}
		_, err := sigtest.Try(t, New(), signer, &sig.Job{Document: bytes.NewReader(c.data), Params: sig.Params{"PDFFormat": "CMS"}})
		var document *sig.ErrDocument
		if other := errors.As(err, &document) && document.OtherKind; other == c.is || c.is && err != nil {
			t.Errorf("%s: signing: %v", what, err)
		}
		_, err = New().Verify(context.Background(), &sig.Check{Document: bytes.NewReader(c.data), At: sigtest.Time})
		if other := errors.As(err, &document) && document.OtherKind; other == c.is {
			t.Errorf("%s: verifying: %v", what, err)
		}
	}
}

// TestRoom reserves room by the needs of earlier signatures.
func TestRoom(t *testing.T) {
	root, signer := party(t)
	services := sigtest.NewServices(t, root)
	f := New()
	job := func(again bool, address string) *sig.Job {
		return &sig.Job{
			Document: bytes.NewReader(formDocument()), Certificate: signer.Certificate, Chain: signer.Chain, Time: sigtest.Time,
			Evidence: services, Again: again, Params: sig.Params{"PDFFormat": "CAdES", "TSPAddress": address},
		}
	}
	sign := func(j *sig.Job) (room, message int, err error) {
		prepared, err := f.Prepare(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		room = mustState(t, prepared.State).Room
		result, err := f.Finish(t.Context(), j, prepared.State, signer.Sign(t, prepared.Digest))
		if err != nil {
			return room, 0, err
		}
		var out bytes.Buffer
		if _, err := result.WriteTo(&out); err != nil {
			t.Fatal(err)
		}
		d := opened(t, out.Bytes())
		return room, len(d.signature(d.form().signatures[0]).message), nil
	}
	bound, need, err := sign(job(false, "one"))
	if err != nil || bound < 128<<10 || need > 20<<10 {
		t.Fatalf("the first of two steps: %d bytes for %d, %v", bound, need, err)
	}
	estimate, _, err := sign(job(true, "other"))
	if err != nil || estimate > 48<<10 {
		t.Errorf("the first in one step: %d bytes for %d, %v", estimate, need, err)
	}
	for again, most := range map[bool]int{false: need*5/4 + 6<<10, true: need*9/8 + 3<<10} {
		if room, need, err := sign(job(again, "one")); err != nil || room > most {
			t.Errorf("again is %v: %d bytes for %d, %v", again, room, need, err)
		}
	}
	// The authority issues a list of half a megabyte.
	services.By[signer.Certificate] = sigtest.ByList
	for n := range 12_000 {
		other := &x509gost.Certificate{Issuer: root.Certificate.Subject, SerialNumber: []byte{0x4f, byte(n >> 16), byte(n >> 8), byte(n)}}
		services.Revoked[other] = sigtest.Time.AddDate(0, 0, -1)
	}
	var room *sig.ErrRoom
	if _, _, err := sign(job(false, "one")); !errors.As(err, &room) || room.Need < 300<<10 {
		t.Fatalf("a list that does not fit: %v", err)
	}
	if got, need, err := sign(job(false, "one")); err != nil || got < need || got > need*5/4+6<<10 {
		t.Errorf("a list that is known: %d bytes for %d, %v", got, need, err)
	}
	// The size of another authority's evidence is not used for this one.
	foreign := sigtest.Root(t, suite.ECDSAP256)
	m := &maker{format: f, params: params{format: formatCAdES, address: "one", chain: true}, job: job(false, "one")}
	m.job.Chain = append(foreign.Chain, foreign.Certificate)
	if n, _, _ := m.room(); n > 140<<10 {
		t.Errorf("%d bytes for another authority", n)
	}
}

// TestClose: objects of a closed file stay as they were when another file uses its memory, and
// it can be read again.
func TestClose(t *testing.T) {
	read := func(data []byte) (*file, []object) {
		f, err := open(t.Context(), bytes.NewReader(data), int64(len(data)), nil)
		if err != nil {
			t.Fatal(err)
		}
		var all []object
		for n := range f.highest() {
			all = append(all, f.object(ref{num: n + 1}))
		}
		return f, all
	}
	data := formDocument()
	_, want := read(data)
	f, got := read(data)
	f.close()
	other := bytes.ReplaceAll(data, []byte("note"), []byte("Note"))
	g, _ := read(other)
	clear(f.objects)
	for i := range want {
		if again := f.object(ref{num: i + 1}); !reflect.DeepEqual(got[i], want[i]) || !reflect.DeepEqual(again, want[i]) {
			t.Errorf("object %d was %v, is %v, is read again as %v", i+1, want[i], got[i], again)
		}
	}
	g.close()
}

// TestHoles: a placeholder reads like its text, from any offset and beyond its end.
func TestHoles(t *testing.T) {
	for _, size := range []int{2, 3, 10, 2*blockSize + 2} {
		want := "<" + strings.Repeat("0", size-2) + ">"
		for _, off := range []int{0, 1, size - 1, size, size + 1} {
			for _, length := range []int{0, 1, 2, size, size + 1} {
				p := make([]byte, length)
				n, err := holes(size).ReadAt(p, int64(off))
				rest := want[min(off, size):]
				if got := string(p[:n]); got != rest[:min(length, len(rest))] || (err == io.EOF) != (length > len(rest)) {
					t.Errorf("%d bytes at %d of %d: read %d, %v", length, off, size, n, err)
				}
			}
		}
	}
}

func TestIsZero(t *testing.T) {
	for length := range 5 {
		b := make([]byte, length)
		if !isZero(b) {
			t.Errorf("%x is not zero", b)
		}
		for i := range b {
			b[i] = 7
			if isZero(b) {
				t.Errorf("%x is zero", b)
			}
			b[i] = 0
		}
		if length > 0 && isZero(bytes.Repeat([]byte{7}, length)) {
			t.Errorf("%d sevens are zero", length)
		}
	}
}

// TestReadContents checks what is read again of a result whose other bytes were read before.
func TestReadContents(t *testing.T) {
	st := &state{Head: []byte("head"), Tail: []byte("tail"), Room: 4}
	st.Size = 8
	message := []byte{0xab, 0xcd, 0xef}
	for text, right := range map[string]bool{
		"documenthead<abcdef00>tail":  true,
		"documenthead<ABCDEF00>tail":  true,
		"documenthead<abcdef01>tail":  false, // more than the message
		"documenthead<abcdee00>tail":  false,
		"documenthead<abcd0000>tail":  false,
		"documenthead<abcdeg00>tail":  false, // no digit
		"documenthead(abcdef00>tail":  false,
		"documenthead<abcdef00)tail":  false,
		"documenthead<abcdef00>tail ": false, // longer
		"documenthead<abcdef00>tai":   false,
		"documenthea<abcdef00>ltail":  false,
		"":                            false,
	} {
		if err := st.readContents(strings.NewReader(text), message); (err == nil) != right {
			t.Errorf("%q: %v, want right: %t", text, err, right)
		}
	}
}
