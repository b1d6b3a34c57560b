// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"tamga/internal/domain/vault"
)

// sealedFile keeps a document and returns its store and the path of its file.
func sealedFile(t testing.TB, content []byte) (d *Documents, name, file string) {
	t.Helper()
	dir := t.TempDir()
	storage, err := NewDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	d = NewDocuments(Options{Storage: storage, Ring: newRing(t)})
	name = d.Name("00000000-0000-4000-8000-000000000001")
	keep(t, d, name, content, chunkSize)
	return d, name, filepath.Join(dir, name)
}

// TestSealedHidesTheDocument checks that a sealed object reveals neither the document nor that two
// documents are equal.
func TestSealedHidesTheDocument(t *testing.T) {
	content := bytes.Repeat([]byte("secret of state "), 10_000)
	_, _, one := sealedFile(t, content)
	_, _, two := sealedFile(t, content)
	a, err := os.ReadFile(one)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(two)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(a, []byte("secret")) {
		t.Error("the document can be read in the file")
	}
	if bytes.Equal(a[HeadSize:HeadSize+1000], b[HeadSize:HeadSize+1000]) {
		t.Error("two files of one document are equal")
	}
	if want := int64(HeadSize + len(content) + tagSize*((len(content)+chunkSize-1)/chunkSize)); int64(len(a)) != want {
		t.Errorf("the file has %d bytes, want %d", len(a), want)
	}
}

// TestSealedFindsEveryChange changes, truncates, doubles and swaps sealed data. Reading must then fail or
// give the original bytes.
func TestSealedFindsEveryChange(t *testing.T) {
	content := sample(4*chunkSize + 100)
	d, name, file := sealedFile(t, content)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	chunk := func(n int) []byte {
		return whole[HeadSize+n*sealedChunk : min(len(whole), HeadSize+(n+1)*sealedChunk)]
	}
	head := whole[:HeadSize]
	_, _, otherFile := sealedFile(t, content)
	other, err := os.ReadFile(otherFile)
	if err != nil {
		t.Fatal(err)
	}
	flipped := func(at int) []byte {
		b := bytes.Clone(whole)
		b[at] ^= 1
		return b
	}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	broken := map[string][]byte{
		"empty":                       {},
		"head alone":                  head,
		"half a head":                 head[:100],
		"last chunk missing":          whole[:HeadSize+4*sealedChunk],
		"last two chunks missing":     whole[:HeadSize+3*sealedChunk],
		"last byte missing":           whole[:len(whole)-1],
		"a byte more":                 append(bytes.Clone(whole), 0),
		"last chunk twice":            join(whole, chunk(4)),
		"only the first chunk":        join(head, chunk(0)),
		"only the last chunk":         join(head, chunk(4)),
		"first chunk missing":         join(head, chunk(1), chunk(2), chunk(3), chunk(4)),
		"chunks swapped":              join(head, chunk(1), chunk(0), chunk(2), chunk(3), chunk(4)),
		"a chunk of another document": join(head, other[HeadSize:HeadSize+sealedChunk], chunk(1), chunk(2), chunk(3), chunk(4)),
		"head of another document":    join(other[:HeadSize], whole[HeadSize:]),
		"version":                     flipped(0),
		"length of the key":           flipped(2),
		"key":                         flipped(40),
		"unused part of the head":     flipped(HeadSize - 1),
		"first chunk":                 flipped(HeadSize),
		"middle chunk":                flipped(HeadSize + 2*sealedChunk + 500),
		"tag":                         flipped(HeadSize + sealedChunk - 1),
		"last byte":                   flipped(len(whole) - 1),
	}
	huge := bytes.Clone(whole)
	binary.BigEndian.PutUint16(huge[1:], 60000)
	broken["huge length of the key"] = huge
	for what, data := range broken {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		o, err := d.Open(t.Context(), name)
		if err == nil {
			var got []byte
			got, err = io.ReadAll(io.NewSectionReader(o, 0, o.Size()))
			o.Close()
			if !bytes.HasPrefix(content, got) {
				t.Errorf("%s: other bytes than were written come out", what)
			}
		}
		if err == nil {
			t.Errorf("%s: read without an error", what)
		} else if !errors.Is(err, ErrDamaged) && what != "version" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestSealedBelongsToItsName checks that an object does not open under the name of another, and a plain
// one not under the name of a sealed one.
func TestSealedBelongsToItsName(t *testing.T) {
	d, name, file := sealedFile(t, []byte("document"))
	other := d.Name("00000000-0000-4000-8000-000000000002")
	if err := os.Rename(file, filepath.Join(filepath.Dir(filepath.Dir(file)), other)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Open(t.Context(), other); !errors.Is(err, ErrDamaged) {
		t.Errorf("under another name: %v", err)
	}
	if err := os.WriteFile(file, bytes.Repeat([]byte{1}, 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Open(t.Context(), name); err == nil {
		t.Error("a plain file opens as a sealed one")
	}
}

// TestSealedUnderOlderKeys checks that a new master key seals and old keys open. If the key is missing, the
// error must name it.
func TestSealedUnderOlderKeys(t *testing.T) {
	storage, err := NewDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ring := func(active string, ids ...string) *vault.Ring {
		keys := map[string][]byte{}
		for _, id := range ids {
			keys[id] = bytes.Repeat([]byte(id), vault.MasterKeySize)
		}
		r, err := vault.NewRing(active, keys, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	d := NewDocuments(Options{Storage: storage, Ring: ring("1", "1")})
	name := d.Name("00000000-0000-4000-8000-000000000001")
	keep(t, d, name, []byte("document"), 10)
	both := NewDocuments(Options{Storage: storage, Ring: ring("2", "1", "2"), Plain: true})
	o, err := both.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	readsAs(t, o, []byte("document"))
	late := NewDocuments(Options{Storage: storage, Ring: ring("2", "2")})
	if _, err := late.Open(t.Context(), name); err == nil || errors.Is(err, ErrDamaged) {
		t.Errorf("without its master key: %v", err)
	}
}

// FuzzSealed reads data that is not a sealed object. It must return no bytes and not panic.
func FuzzSealed(f *testing.F) {
	_, name, file := sealedFile(f, []byte("document"))
	whole, err := os.ReadFile(file)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:HeadSize])
	f.Add([]byte{})
	s := sealer{ring: newRing(f)}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := s.open(t.Context(), inMemory{bytes.NewReader(data)}, name)
		if err != nil {
			return
		}
		if got, err := io.ReadAll(io.NewSectionReader(o, 0, o.Size())); err == nil && string(got) != "document" {
			t.Errorf("%q was read from data that was never sealed", got)
		}
	})
}

// inMemory is an object in memory.
type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }

func BenchmarkSealed(b *testing.B) {
	storage, err := NewDir(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	for _, plain := range []bool{true, false} {
		d := NewDocuments(Options{Storage: storage, Ring: newRing(b), Plain: plain})
		name := d.Name("00000000-0000-4000-8000-000000000001")
		content := sample(64 << 20)
		kind := map[bool]string{true: "plain", false: "sealed"}[plain]
		b.Run("write/"+kind, func(b *testing.B) {
			b.SetBytes(int64(len(content)))
			for b.Loop() {
				keep(b, d, name, content, 64<<10)
			}
		})
		o, err := d.Open(b.Context(), name)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("read/"+kind, func(b *testing.B) {
			b.SetBytes(int64(len(content)))
			for b.Loop() {
				if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{io.NewSectionReader(o, 0, o.Size())}, make([]byte, 256<<10)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestResealedDir(t *testing.T) {
	d, err := NewDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	testResealed(t, d)
}
