// SPDX-License-Identifier: Apache-2.0

package zip_test

import (
	stdzip "archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"tamga/internal/sigtest"
	"tamga/sig/budget"
	"tamga/sig/zip"
)

// FuzzOpen opens every input and reads all entries. The entries do not overlap, archive/zip reads the same
// names and content if it accepts the archive, and a rewritten archive has the same entries.
func FuzzOpen(f *testing.F) {
	f.Add(sigtest.Zip(container(), "a comment"))
	f.Add(sigtest.Zip(nil, ""))
	f.Add(zip64(sigtest.Zip(container(), ""), func(_, _, _ []byte) {}))
	f.Add(append(sigtest.Zip([]sigtest.ZipEntry{{Name: "a", Content: "1", Prefix: "PK\x03\x04"}, {Name: "b/"}}, ""), 0))
	f.Add(inside())
	f.Fuzz(read)
}

// FuzzEntry does the same with an archive around one entry, whose fields agree with each other more often
// than in a changed archive.
func FuzzEntry(f *testing.F) {
	for _, e := range container() {
		f.Add(e.Name, e.Content, e.Extra, e.Store, uint8(len(e.Descriptor)), uint32(0), uint16(0), e.Zip64)
	}
	f.Fuzz(func(t *testing.T, name, content, extra string, store bool, descriptor uint8, size uint32, flags uint16, large bool) {
		read(t, sigtest.Zip([]sigtest.ZipEntry{
			{Name: "first", Content: "1"},
			{
				Name: name, Content: content, Extra: extra[:min(len(extra), 1<<15)], Store: store, Size: size, Flags: flags, Zip64: large,
				Descriptor: []string{"", "small", "large", "bare", "none"}[descriptor%5],
			},
			{Name: "last", Content: "2", Store: true},
		}, ""))
	})
}

// read opens an archive and reads all entries.
func read(t *testing.T, data []byte) {
	ctx := context.Background()
	a, err := zip.Open(budget.New(ctx, budget.Anonymous()), bytes.NewReader(data))
	if err != nil {
		refusal(t, err)
		return
	}
	contents := make([][]byte, len(a.Entries)) // nil: refused
	taken := make([]bool, len(data))
	for i := range a.Entries {
		e := &a.Entries[i]
		if e.Offset < 0 || e.Data < e.Offset || e.Compressed > e.End-e.Data || e.End > int64(len(data)) {
			t.Fatalf("%q: %+v of %d bytes", e.Name, e, len(data))
		}
		for at := e.Offset; at < e.End; at++ {
			if taken[at] {
				t.Fatalf("%q overlaps another entry at %d", e.Name, at)
			}
			taken[at] = true
		}
		content, err := a.Content(ctx, e, 1<<20)
		if err != nil {
			refusal(t, err)
		} else if contents[i] = append([]byte{}, content...); int64(len(content)) != e.Size {
			t.Errorf("%q: %d bytes of %d", e.Name, len(content), e.Size)
		}
	}
	compare(t, data, a, contents)
	again(t, data, a, contents)
}

// refusal checks that an error is one of a hostile archive.
func refusal(t *testing.T, err error) {
	var e *zip.Error
	if !errors.As(err, &e) && !errors.As(err, new(*budget.Exceeded)) {
		t.Errorf("%v", err)
	}
}

// compare checks that archive/zip reads the same, if it accepts the archive and the entry.
func compare(t *testing.T, data []byte, a *zip.Archive, contents [][]byte) {
	r, err := stdzip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return
	}
	if len(r.File) != len(a.Entries) {
		t.Fatalf("%d entries, archive/zip reads %d", len(a.Entries), len(r.File))
	}
	for i, f := range r.File {
		if f.Name != a.Entries[i].Name {
			t.Errorf("%q, archive/zip reads %q", a.Entries[i].Name, f.Name)
		}
		if contents[i] == nil {
			continue
		}
		opened, err := f.Open()
		if err != nil {
			continue
		}
		content, err := io.ReadAll(io.LimitReader(opened, 2<<20))
		if err == nil && !bytes.Equal(content, contents[i]) {
			t.Errorf("%q: %.40q, archive/zip reads %.40q", f.Name, contents[i], content)
		}
	}
}

// again checks that a rewritten archive has the same entries, and the new one.
func again(t *testing.T, data []byte, a *zip.Archive, contents [][]byte) {
	const name, text = "META-INF/added", "new"
	pieces, err := a.Rewrite([]zip.Change{{Name: name, Content: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := zip.Open(nil, bytes.NewReader(assembled(data, pieces)))
	if err != nil {
		t.Fatalf("the rewritten archive: %v", err)
	}
	if len(b.Gaps) != 0 || len(b.Entries) < len(a.Entries) {
		t.Errorf("%d entries of %d, gaps %v", len(b.Entries), len(a.Entries), b.Gaps)
	}
	for i := range a.Entries {
		was, is := &a.Entries[i], &b.Entries[i]
		if was.Name == name {
			continue
		}
		if is.Name != was.Name || is.Size != was.Size || is.CRC32 != was.CRC32 || is.Method != was.Method {
			t.Errorf("%+v is now %+v", was, is)
		}
		if contents[i] != nil && contentOf(t, b, is) != string(contents[i]) {
			t.Errorf("%q has changed", was.Name)
		}
	}
	if e := b.Find(name); e == nil || contentOf(t, b, e) != text {
		t.Errorf("the new entry: %+v", e)
	}
}
