// SPDX-License-Identifier: Apache-2.0

package zip_test

import (
	stdzip "archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/sigtest"
	"tamga/sig/budget"
	"tamga/sig/zip"
)

const mimetype = "application/vnd.etsi.asic-e+zip"

// container returns the entries of a container of signatures, as programs write them.
func container() []sigtest.ZipEntry {
	return []sigtest.ZipEntry{
		{Name: "mimetype", Content: mimetype, Store: true},
		{Name: "договор.txt", Content: strings.Repeat("Договор ", 1000), Descriptor: "small"},
		{Name: "100%/a+b c.bin", Content: "\x00\x01\x02", Store: true, Extra: "\x22\x00\x03\x00abc"},
		{Name: "META-INF/", Store: true},
		{Name: "META-INF/signatures001.p7s", Content: strings.Repeat("0", 20_000), Zip64: true, Descriptor: "large"},
		{Name: "empty", Descriptor: "bare"},
		{Name: "META-INF/manifest.xml", Content: "<manifest/>", Descriptor: "none"},
	}
}

func open(t testing.TB, data []byte) *zip.Archive {
	t.Helper()
	a, err := zip.Open(nil, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// contentOf returns the content of an entry, which must be readable.
func contentOf(t testing.TB, a *zip.Archive, e *zip.Entry) string {
	t.Helper()
	content, err := a.Content(context.Background(), e, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// The entries come in the order of the directory, with names, sizes and places as the archive has them.
func TestOpen(t *testing.T) {
	files := container()
	data := sigtest.Zip(files, "a comment")
	a := open(t, data)
	if len(a.Entries) != len(files) || len(a.Gaps) != 0 {
		t.Fatalf("%d entries, gaps %v", len(a.Entries), a.Gaps)
	}
	for i := range files {
		e, f := &a.Entries[i], &files[i]
		if e.Name != f.Name || e.Size != int64(len(f.Content)) || (e.Method == zip.Store) != f.Store || e.IsDirectory() != strings.HasSuffix(f.Name, "/") {
			t.Errorf("entry %d: %+v of %q", i, e, f.Name)
		}
		if got := contentOf(t, a, e); got != f.Content {
			t.Errorf("%s: %.40q, want %.40q", e.Name, got, f.Content)
		}
		if e.Offset < 0 || e.Data < e.Offset+30+int64(len(e.Name)) || e.End < e.Data+e.Compressed || i > 0 && e.Offset != a.Entries[i-1].End {
			t.Errorf("%s is at %d, its content at %d, its end at %d", e.Name, e.Offset, e.Data, e.End)
		}
		if a.Find(f.Name) != e {
			t.Errorf("%s is not found", f.Name)
		}
	}
	if a.Find("META-INF") != nil || a.Find("Mimetype") != nil {
		t.Error("another name is found")
	}
	// A format needs these fields to check the first entry of a container.
	first := &a.Entries[0]
	if first.Offset != 0 || first.Data != 38 || first.Method != zip.Store || string(data[first.Data:first.Data+first.Size]) != mimetype {
		t.Errorf("%+v", first)
	}
}

// The local headers are at the places that the directory gives, in whatever order.
func TestOrder(t *testing.T) {
	data := sigtest.Zip([]sigtest.ZipEntry{{Name: "a", Content: "1", Store: true}, {Name: "b", Content: "2", Store: true}}, "")
	at := bytes.Index(data, []byte("PK\x01\x02"))
	record := (len(data) - 22 - at) / 2
	data = slices.Concat(data[:at], data[at+record:at+2*record], data[at:at+record], data[at+2*record:])
	a := open(t, data)
	if a.Entries[0].Name != "b" || a.Entries[0].Offset <= a.Entries[1].Offset || contentOf(t, a, &a.Entries[0]) != "2" || contentOf(t, a, &a.Entries[1]) != "1" {
		t.Errorf("%+v", a.Entries)
	}
}

// Bytes that belong to no entry are listed, and those that look like an entry are marked.
func TestGaps(t *testing.T) {
	hidden := string(sigtest.Zip([]sigtest.ZipEntry{{Name: "a", Content: "x"}}, ""))
	data := append(sigtest.Zip([]sigtest.ZipEntry{
		{Name: "a", Content: "1", Prefix: "MZ"},
		{Name: "b", Content: "2", Prefix: hidden},
	}, ""), 0)
	a := open(t, data)
	size, second := int64(len(data)), a.Entries[1].Offset
	if diff := cmp.Diff([]zip.Gap{
		{Offset: size - 1, Length: 1}, {Offset: 0, Length: 2},
		{Offset: second - int64(len(hidden)), Length: int64(len(hidden)), Entry: true},
	}, a.Gaps); diff != "" {
		t.Error(diff)
	}
	// The mark may be anywhere in a gap.
	for _, before := range []int{1, 64<<10 - 2, 64 << 10, 1 << 20} {
		a := open(t, sigtest.Zip([]sigtest.ZipEntry{{Name: "a", Content: "1", Prefix: strings.Repeat("x", before) + hidden}}, ""))
		if len(a.Gaps) != 1 || !a.Gaps[0].Entry {
			t.Errorf("behind %d bytes: %v", before, a.Gaps)
		}
	}
	// An extra field with the same name in Unicode, and a flag that does not change an ASCII name.
	same := sigtest.Zip([]sigtest.ZipEntry{{Name: "x", Extra: "up\x06\x00\x01\x00\x00\x00\x00x"}}, "")
	same[7] |= 8
	open(t, same)
}

// Two directories of one name mean the same, two files do not.
func TestDirectoryTwice(t *testing.T) {
	a := open(t, sigtest.Zip([]sigtest.ZipEntry{{Name: "d/", Store: true}, {Name: "d/", Store: true}}, ""))
	if len(a.Entries) != 2 || !a.Entries[0].IsDirectory() {
		t.Errorf("%+v", a.Entries)
	}
}

// zip64 returns an archive with the end records of Zip64 in front of its end record. change gets them
// to change a field, and the end record.
func zip64(data []byte, change func(large, locator, end []byte)) []byte {
	end := bytes.Clone(data[len(data)-22:])
	count, length, offset := le.Uint16(end[8:]), le.Uint32(end[12:]), le.Uint32(end[16:])
	large := append(le.AppendUint64([]byte("PK\x06\x06"), 44), 45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	for _, v := range []uint64{uint64(count), uint64(count), uint64(length), uint64(offset)} {
		large = le.AppendUint64(large, v)
	}
	locator := append(le.AppendUint64([]byte("PK\x06\x07\x00\x00\x00\x00"), uint64(len(data)-22)), 1, 0, 0, 0)
	copy(end[8:], bytes.Repeat([]byte{0xFF}, 12))
	change(large, locator, end)
	return slices.Concat(data[:len(data)-22], large, locator, end)
}

func TestZip64(t *testing.T) {
	data := sigtest.Zip(container(), "")
	a := open(t, zip64(data, func(_, _, _ []byte) {}))
	if len(a.Entries) != len(container()) || contentOf(t, a, &a.Entries[0]) != mimetype {
		t.Errorf("%+v", a.Entries)
	}
	small := data[len(data)-22:]
	open(t, zip64(data, func(_, _, end []byte) { copy(end, small) })) // the same values twice
	for name, change := range map[string]func(large, locator, end []byte){
		"the locator points outside":             func(_, locator, _ []byte) { locator[15] = 1 },
		"the locator points at something else":   func(_, locator, _ []byte) { locator[8]++ },
		"the locator is of another volume":       func(_, locator, _ []byte) { locator[4] = 1 },
		"the record has another signature":       func(large, _, _ []byte) { large[0] = 0 },
		"the record has another length":          func(large, _, _ []byte) { large[4]++ },
		"the record is of another volume":        func(large, _, _ []byte) { large[16] = 1 },
		"two numbers of entries":                 func(large, _, _ []byte) { large[24]++ },
		"too many entries":                       func(large, _, _ []byte) { large[27], large[35] = 1, 1 },
		"a longer directory":                     func(large, _, _ []byte) { large[40]++ },
		"a directory that is too large":          func(large, _, _ []byte) { large[44] = 1 },
		"an offset that is negative":             func(large, _, _ []byte) { large[55] = 0xFF },
		"an end record that contradicts another": func(_, _, end []byte) { copy(end[8:], []byte{1, 0, 1, 0}) },
	} {
		var e *zip.Error
		if _, err := zip.Open(nil, bytes.NewReader(zip64(data, change))); !errors.As(err, &e) || e.Entry != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Several goroutines read one archive.
func TestConcurrent(t *testing.T) {
	files := container()
	a := open(t, sigtest.Zip(files, ""))
	var group sync.WaitGroup
	for i := range files {
		for range 2 {
			group.Go(func() {
				var b bytes.Buffer
				if err := a.Copy(context.Background(), &a.Entries[i], &b); err != nil || b.String() != files[i].Content {
					t.Errorf("%s: %v", files[i].Name, err)
				}
			})
		}
	}
	group.Wait()
}

// Errors of the writer and of the context end Copy and are not errors of the archive.
func TestCopyEnds(t *testing.T) {
	a := open(t, sigtest.Zip(container(), ""))
	e := &a.Entries[1]
	full := errors.New("full")
	if err := a.Copy(context.Background(), e, failing{full}); err != full {
		t.Errorf("%v, want %v", err, full)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := a.Copy(ctx, e, io.Discard); err != context.Canceled {
		t.Errorf("%v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// assembled returns the rewritten archive.
func assembled(data []byte, pieces []zip.Piece) (out []byte) {
	for _, p := range pieces {
		if p.Bytes != nil {
			out = append(out, p.Bytes...)
		} else {
			out = append(out, data[p.Offset:p.Offset+p.Length]...)
		}
	}
	return out
}

// A rewritten archive has the changes, and all other entries are unchanged, byte for byte.
func TestRewrite(t *testing.T) {
	files := container()
	data := append(sigtest.Zip(files, "a comment"), 0)
	long := bytes.Repeat([]byte("signature "), 2000)
	changes := []zip.Change{
		{Name: "META-INF/manifest.xml", Content: []byte("<manifest>1</manifest>")},
		{Name: "META-INF/signatures002.p7s", Content: long},
		{Name: "META-INF/подпись", Content: nil},
	}
	a := open(t, data)
	pieces, err := a.Rewrite(changes)
	if err != nil {
		t.Fatal(err)
	}
	out := assembled(data, pieces)
	b := open(t, out)
	if len(b.Gaps) != 0 || len(b.Entries) != len(files)+2 {
		t.Fatalf("%d entries, gaps %v", len(b.Entries), b.Gaps)
	}
	for i := range a.Entries[:len(files)-1] {
		was, is := &a.Entries[i], &b.Entries[i]
		if !bytes.Equal(data[was.Offset:was.End], out[is.Offset:is.End]) || contentOf(t, b, is) != files[i].Content {
			t.Errorf("%s has changed", was.Name)
		}
	}
	for _, c := range changes {
		if e := b.Find(c.Name); e == nil || contentOf(t, b, e) != string(c.Content) || (e.Method == zip.Deflate) != (len(c.Content) > 8<<10) {
			t.Errorf("%s: %+v", c.Name, e)
		}
	}
	// Another program reads the same.
	r, err := stdzip.NewReader(bytes.NewReader(out), int64(len(out)))
	if err != nil || r.Comment != "a comment" {
		t.Fatal(err, r)
	}
	for i, f := range r.File {
		if f.Name != b.Entries[i].Name || f.UncompressedSize64 != uint64(b.Entries[i].Size) || f.CRC32 != b.Entries[i].CRC32 || f.NonUTF8 && f.Name == changes[2].Name {
			t.Errorf("%+v", f.FileHeader)
		}
	}
	for _, name := range []string{"", "../a", "/a", "a\\b", strings.Repeat("a", 1<<16)} {
		var e *zip.Error
		if _, err := a.Rewrite([]zip.Change{{Name: name}}); !errors.As(err, &e) || e.Entry != name {
			t.Errorf("%.20q: %v", name, err)
		}
	}
}

// Open and Content charge all that they allocate, and charge it before.
func TestBudget(t *testing.T) {
	files := container()
	data := sigtest.Zip(files, "")
	b := budget.New(context.Background(), budget.Anonymous())
	a, err := zip.Open(b, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	want := int64(len(a.Directory) + 512*len(files))
	if b.Held() != want || b.Spent() != int64(len(a.Directory)+200*len(files)) {
		t.Errorf("held %d bytes, want %d; %d steps", b.Held(), want, b.Spent())
	}
	e := &a.Entries[1]
	spent := b.Spent()
	if err := a.Copy(context.Background(), e, io.Discard); err != nil || b.Held() != want || b.Spent()-spent != e.Size-e.Compressed+e.Size/8 {
		t.Errorf("%v; held %d bytes, %d steps", err, b.Held()-want, b.Spent()-spent)
	}
	if _, err := a.Content(context.Background(), e, e.Size); err != nil || b.Held() != want+2*e.Size {
		t.Errorf("%v; held %d bytes", err, b.Held()-want)
	}
	var refused *zip.Error
	if _, err := a.Content(context.Background(), e, e.Size-1); !errors.As(err, &refused) || refused.Kind != zip.TooLarge || refused.Entry != e.Name || b.Held() != want+2*e.Size {
		t.Errorf("%v", err)
	}
	// Many entries and large content exceed a small budget before anything is allocated.
	many := bytes.Clone(data)
	copy(many[len(many)-14:], []byte{0xFE, 0xFF, 0xFE, 0xFF})
	few := func() *budget.Budget {
		return budget.New(context.Background(), budget.Limits{Steps: 1 << 20, Memory: want + 100})
	}
	if n := testing.AllocsPerRun(10, func() {
		if _, err := zip.Open(few(), bytes.NewReader(many)); !errors.Is(err, budget.ErrMemory) {
			t.Errorf("%v", err)
		}
	}); n > 12 {
		t.Errorf("%v allocations", n)
	}
	a, err = zip.Open(few(), bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Content(context.Background(), &a.Entries[1], 1<<20); !errors.Is(err, budget.ErrMemory) {
		t.Errorf("%v", err)
	}
	a, err = zip.Open(budget.New(context.Background(), budget.Limits{Steps: spent + 100, Memory: 1 << 20}), bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Copy(context.Background(), &a.Entries[1], io.Discard); !errors.Is(err, budget.ErrSteps) {
		t.Errorf("%v", err)
	}
	if _, err := zip.Open(budget.New(context.Background(), budget.Limits{Steps: 100, Memory: 1 << 20}), bytes.NewReader(data)); !errors.Is(err, budget.ErrSteps) {
		t.Errorf("%v", err)
	}
}

func BenchmarkOpen(b *testing.B) {
	var files []sigtest.ZipEntry
	for i := range 1000 {
		files = append(files, sigtest.ZipEntry{Name: fmt.Sprintf("word/media/image%d.png", i), Content: "x", Store: true})
	}
	data := sigtest.Zip(files, "")
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := zip.Open(nil, bytes.NewReader(data)); err != nil {
			b.Fatal(err)
		}
	}
}
