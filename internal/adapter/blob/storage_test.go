// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"bytes"
	"context"
	cryptorand "crypto/rand"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"tamga/internal/domain/vault"
	"testing"
	"testing/iotest"

	"tamga/internal/domain/document"
)

// testStorage checks the behaviour of every Storage: objects are read as they were written, nothing is
// visible before its commit, and aborted objects leave nothing.
func testStorage(t *testing.T, storage Storage, sizes []int) {
	t.Run("keeps", func(t *testing.T) {
		for _, plain := range []bool{true, false} {
			d := NewDocuments(Options{Storage: storage, Ring: newRing(t), Plain: plain})
			for i, size := range sizes {
				want := sample(size)
				name := d.Name("00000000-0000-4000-8000-00000000000" + string(rune('0'+i%10)))
				keep(t, d, name, want, 48<<10)
				o, err := d.Open(t.Context(), name)
				if err != nil {
					t.Fatalf("%d bytes: %v", size, err)
				}
				readsAs(t, o, want)
				if err := o.Close(); err != nil {
					t.Error(err)
				}
				for range 2 {
					if err := d.Remove(t.Context(), name); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := d.Open(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("opening a removed object: %v", err)
				}
			}
		}
	})
	t.Run("shows nothing unfinished", func(t *testing.T) {
		d := NewDocuments(Options{Storage: storage, Ring: newRing(t)})
		for _, size := range sizes {
			name := d.Name("10000000-0000-4000-8000-000000000001")
			w, err := d.Create(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(sample(size)); err != nil {
				t.Fatal(err)
			}
			if _, err := d.Open(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%d bytes: open before the commit: %v", size, err)
			}
			w.Abort()
			w.Abort()
			if _, err := d.Open(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%d bytes: open after the abort: %v", size, err)
			}
			if err := w.Commit(); err == nil {
				t.Errorf("%d bytes: committed after the abort", size)
			}
		}
	})
	t.Run("a client that is gone", func(t *testing.T) {
		d := NewDocuments(Options{Storage: storage, Ring: newRing(t)})
		ctx, cancel := context.WithCancel(t.Context())
		name := d.Name("10000000-0000-4000-8000-000000000002")
		w, err := d.Create(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(sample(sizes[len(sizes)-1])); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := w.Commit(); err == nil {
			t.Error("committed for a client that has disconnected")
		}
		w.Abort()
		if _, err := d.Open(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it is there: %v", err)
		}
	})
	t.Run("removes what never came to its end", func(t *testing.T) {
		d := NewDocuments(Options{Storage: storage, Ring: newRing(t)})
		name := d.Name("10000000-0000-4000-8000-000000000003")
		w, err := d.Create(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(sample(sizes[len(sizes)-1])); err != nil {
			t.Fatal(err)
		}
		if err := d.Remove(t.Context(), name); err != nil { // as another process may
			t.Fatal(err)
		}
		if err := w.Commit(); err == nil && sizes[len(sizes)-1] > partsFrom {
			t.Error("a swept object can be committed")
		}
		if err := d.Remove(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("refuses names that lead elsewhere", func(t *testing.T) {
		for _, name := range []string{"", ".", "..", "../x", "/etc/passwd", "a/../../x", "a/b/c", "documents/", "documents/.x", "a\x00b", "a b", "ü"} {
			if _, err := storage.create(t.Context(), name); err == nil {
				t.Errorf("%q is created", name)
			}
			if _, err := storage.open(t.Context(), name); err == nil {
				t.Errorf("%q is opened", name)
			}
			if err := storage.remove(t.Context(), name); err == nil {
				t.Errorf("%q is removed", name)
			}
		}
	})
}

// partsFrom is the size from which a bucket uploads an object in parts. A smaller one is sent as a
// whole at the end.
const partsFrom = 5 << 20

func keep(t testing.TB, d document.Bytes, name string, content []byte, piece int) {
	t.Helper()
	w, err := d.Create(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for p := content; len(p) > 0; p = p[min(piece, len(p)):] {
		if _, err := w.Write(p[:min(piece, len(p))]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	w.Abort() // changes nothing
}

// readsAs compares an object with want, from beginning to end and at many places.
func readsAs(t *testing.T, o document.Object, want []byte) {
	t.Helper()
	if o.Size() != int64(len(want)) {
		t.Fatalf("the size is %d, want %d", o.Size(), len(want))
	}
	if len(want) < 1<<10 {
		if err := iotest.TestReader(io.NewSectionReader(o, 0, o.Size()), want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := io.ReadAll(io.NewSectionReader(o, 0, o.Size()))
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("read %d bytes, %v", len(got), err)
	}
	r := rand.New(rand.NewPCG(1, uint64(len(want))))
	for range 50 {
		from := r.Int64N(int64(len(want)) + 10)
		p := make([]byte, r.IntN(3*chunkSize))
		n, err := o.ReadAt(p, from)
		end := min(int64(len(want)), from+int64(len(p)))
		if from > end {
			from = end
		}
		if !bytes.Equal(p[:n], want[from:end]) || n < len(p) != (err == io.EOF) {
			t.Fatalf("%d bytes from %d: read %d, %v", len(p), from, n, err)
		}
	}
}

// keysAnew implements Keys.
type keysAnew map[string][]byte

func (k keysAnew) ObjectKey(_ context.Context, name string) ([]byte, error) { return k[name], nil }

// testResealed opens documents of a Storage after the master key of their heads is gone.
func testResealed(t *testing.T, storage Storage) {
	master := map[string][]byte{"a": bytes.Repeat([]byte{7}, vault.MasterKeySize), "b": bytes.Repeat([]byte{8}, vault.MasterKeySize)}
	ring := func(active string, ids ...string) *vault.Ring {
		keys := map[string][]byte{}
		for _, id := range ids {
			keys[id] = bytes.Clone(master[id])
		}
		r, err := vault.NewRing(active, keys, cryptorand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	content := sample(chunkSize + 10)
	before := NewDocuments(Options{Storage: storage, Ring: ring("a", "a")})
	name, other := before.Name("00000000-0000-4000-8000-0000000000aa"), before.Name("00000000-0000-4000-8000-0000000000ab")
	keep(t, before, name, content, 1<<20)
	keep(t, before, other, content, 1<<20)

	both := ring("b", "a", "b")
	keys := keysAnew{}
	var err error
	if keys[name], err = NewDocuments(Options{Storage: storage, Ring: both}).SealKey(t.Context(), name, nil, both.Reseal); err != nil {
		t.Fatal(err)
	}
	if id, err := vault.KeyID(keys[name]); id != "b" || err != nil {
		t.Errorf("sealed anew under %q, %v", id, err)
	}
	after := NewDocuments(Options{Storage: storage, Ring: ring("b", "b"), Keys: keys})
	o, err := after.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	readsAs(t, o, content)
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	if _, err := after.Open(t.Context(), other); !errors.Is(err, vault.ErrNoKey) {
		t.Errorf("a document that was not resealed: %v", err)
	}
	keys[other] = keys[name] // the key of another document
	if _, err := after.Open(t.Context(), other); !errors.Is(err, ErrDamaged) {
		t.Errorf("with the key of another document: %v", err)
	}
	if _, err := after.SealKey(t.Context(), "documents/missing.sealed", nil, both.Reseal); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such document: %v", err)
	}
	if err := errors.Join(after.Remove(t.Context(), name), after.Remove(t.Context(), other)); err != nil {
		t.Error(err)
	}

	// The content of a small document is in its row.
	stored, err := before.Pack(name, content[:100])
	if err != nil {
		t.Fatal(err)
	}
	if keys[name], err = NewDocuments(Options{Storage: storage, Ring: both}).SealKey(t.Context(), name, stored[:HeadSize], both.Reseal); err != nil {
		t.Fatal(err)
	}
	if o, err = after.Unpack(t.Context(), name, stored); err != nil {
		t.Fatal(err)
	}
	readsAs(t, o, content[:100])
	delete(keys, name)
	if _, err := after.Unpack(t.Context(), name, stored); !errors.Is(err, vault.ErrNoKey) {
		t.Errorf("content in a row that was not resealed: %v", err)
	}
}
