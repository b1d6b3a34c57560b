// SPDX-License-Identifier: Apache-2.0

package zip_test

import (
	stdzip "archive/zip"
	"hash/crc32"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/sig"
	"tamga/sig/zip"
)

// New archives are read by this package and by archive/zip, with entries beyond 4 GiB too.
func TestLayout(t *testing.T) {
	const large = 5 << 30
	stored := []zip.Stored{
		{Name: "mimetype", Size: 1, CRC32: crc32.ChecksumIEEE([]byte("x"))}, {Name: "большой", Size: large},
		{Name: "after", Size: 3, CRC32: crc32.ChecksumIEEE([]byte("abc"))}, {Name: "empty"},
	}
	contents := []sig.Part{sig.Bytes([]byte("x")), sig.Section(sigtest.Zeros(large), 0, large), sig.Bytes([]byte("abc")), {}}
	heads, tail, err := zip.Layout(stored)
	if err != nil {
		t.Fatal(err)
	}
	var parts []sig.Part
	for i, head := range heads {
		parts = append(parts, sig.Bytes(head), contents[i])
	}
	made := sig.Parts(append(parts, sig.Bytes(tail))...)
	a, err := zip.Open(nil, made)
	if err != nil {
		t.Fatal(err)
	}
	r, err := stdzip.NewReader(made, made.Size())
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Gaps) != 0 || len(r.File) != len(stored) {
		t.Errorf("%d gaps, %d entries", len(a.Gaps), len(r.File))
	}
	for i, e := range a.Entries {
		if e.Name != stored[i].Name || e.Size != stored[i].Size || r.File[i].Name != e.Name || int64(r.File[i].UncompressedSize64) != e.Size {
			t.Errorf("%d: %+v, %+v", i, e, r.File[i].FileHeader)
		}
	}
	if e := a.Entries[2]; a.Reader(&e).Size() != 3 {
		t.Error("the entry after the large one has another size")
	}
	for _, name := range []string{"../a", "", strings.Repeat("a", 1<<16)} {
		if _, _, err := zip.Layout([]zip.Stored{{Name: name}}); err == nil {
			t.Errorf("%.20q is laid out", name)
		}
	}
}

// The content of a compressed entry is read at any position.
func TestReader(t *testing.T) {
	text := strings.Repeat("0123456789", 10_000)
	a, err := zip.Open(nil, strings.NewReader(string(sigtest.Zip([]sigtest.ZipEntry{{Name: "a", Content: text}}, ""))))
	if err != nil {
		t.Fatal(err)
	}
	d := a.Reader(&a.Entries[0])
	for _, at := range []int64{50_000, 7, 99_990, 0, 99_999} {
		b := make([]byte, 10)
		n, err := d.ReadAt(b, at)
		if want := text[at:min(at+10, int64(len(text)))]; string(b[:n]) != want || (err == nil) != (len(want) == 10) {
			t.Errorf("at %d: %q, %v", at, b[:n], err)
		}
	}
}
