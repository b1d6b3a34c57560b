// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"tamga/internal/domain/document"
)

// openDir returns the documents of two-step signing in a directory, without sealing.
func openDir(t testing.TB, path string) *Prepared {
	t.Helper()
	d, err := NewDir(path)
	if err != nil {
		t.Fatal(err)
	}
	return NewPrepared(Options{Storage: d, Ring: newRing(t), Plain: true})
}

func newDir(t *testing.T) (*Prepared, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "objects")
	return openDir(t, path), path
}

func TestDirIsAPlace(t *testing.T) {
	d, err := NewDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	testStorage(t, d, sizes)
}

// TestDirIsFull checks that a full disk is reported differently from other failures. In cmd/tamga a limit on
// the size of files takes the place of a full disk. Here the error itself does.
func TestDirIsFull(t *testing.T) {
	for _, no := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if err := keeping(&os.PathError{Op: "write", Path: "x", Err: no}); !errors.Is(err, document.ErrNoRoom) || !errors.Is(err, no) {
			t.Errorf("%v: %v", no, err)
		}
	}
	if errors.Is(keeping(syscall.EIO), document.ErrNoRoom) {
		t.Error("a broken disk is reported as full")
	}
}

func TestDirKeeps(t *testing.T) {
	d, path := newDir(t)
	for _, size := range []int{0, 1, 128 << 10, 128<<10 + 1, 1 << 20} {
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(i ^ i>>9)
		}
		name, err := d.KeepBlob(t.Context(), bytes.NewReader(want), noon)
		if err != nil {
			t.Fatal(err)
		}
		// Another process opens the directory and finds the document.
		b, err := openDir(t, path).OpenBlob(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(io.NewSectionReader(b, 0, b.Size()))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: read %d, %v", size, len(got), err)
		}
		// An open document stays readable when it is removed.
		if err := errors.Join(d.RemoveBlob(t.Context(), name), d.RemoveBlob(t.Context(), name)); err != nil {
			t.Error(err)
		}
		if size > 0 {
			if _, err := b.ReadAt(make([]byte, 1), 0); err != nil {
				t.Errorf("reading a removed object: %v", err)
			}
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if _, err := d.OpenBlob(t.Context(), name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("opening a removed object: %v", err)
		}
	}
	if left, _ := os.ReadDir(path); len(left) != 0 {
		t.Errorf("%d files are left", len(left))
	}
}

func TestDirIsPrivate(t *testing.T) {
	d, path := newDir(t)
	name, err := d.KeepBlob(t.Context(), bytes.NewReader([]byte("document")), noon)
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]os.FileMode{path: 0o700, filepath.Join(path, name): 0o600} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", filepath.Base(file), info.Mode().Perm(), want)
		}
	}
}

// short is a document that ends before its size.
type short struct{}

func (short) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }
func (short) Size() int64                       { return 10 }

func TestDirKeepsAllOrNothing(t *testing.T) {
	d, path := newDir(t)
	if _, err := d.KeepBlob(t.Context(), short{}, noon); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("half a document: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.KeepBlob(ctx, bytes.NewReader([]byte("document")), noon); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that is gone: %v", err)
	}
	if left, _ := os.ReadDir(path); len(left) != 0 {
		t.Errorf("%d files are left", len(left))
	}
}

func TestDirRefusesOtherNames(t *testing.T) {
	d, path := newDir(t)
	if err := os.WriteFile(filepath.Join(path, "note.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", ".", "..", "note.txt", "../secret", "1-A.part", "1-A.blob.part", "1-.blob", "1-a/b.blob", "1-../X.blob", "x-ABC.blob", "-ABC.blob", "/etc/passwd"} {
		if b, err := d.OpenBlob(t.Context(), name); err == nil {
			b.Close()
			t.Errorf("%q is opened", name)
		}
		if err := d.RemoveBlob(t.Context(), name); err == nil {
			t.Errorf("%q is removed", name)
		}
	}
}

// TestDirSweep checks that expired objects are removed, finished or not, and that all others and files
// of other programs stay.
func TestDirSweep(t *testing.T) {
	d, path := newDir(t)
	expired, err := d.KeepBlob(t.Context(), bytes.NewReader([]byte("a")), noon)
	if err != nil {
		t.Fatal(err)
	}
	needed, err := d.KeepBlob(t.Context(), bytes.NewReader([]byte("b")), noon.Add(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	killed := expired[:len(expired)-len(finished)-1] + "A" + finished + unfinished
	for _, name := range []string{killed, "note.txt", "1.blob"} {
		if err := os.WriteFile(filepath.Join(path, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		at   time.Time
		gone []string
	}{
		{noon.Add(-time.Second), nil},
		{noon, []string{expired, killed}},
		{noon.Add(time.Second), []string{expired, killed, needed}},
	} {
		if err := d.SweepBlobs(t.Context(), step.at); err != nil {
			t.Fatal(err)
		}
		gone := map[string]bool{}
		for _, name := range step.gone {
			gone[name] = true
		}
		for _, name := range []string{expired, needed, killed, "note.txt", "1.blob"} {
			if _, err := os.Stat(filepath.Join(path, name)); (err != nil) != gone[name] {
				t.Errorf("at %v: %s: %v", step.at, name, err)
			}
		}
	}
}

func BenchmarkKeepBlob(b *testing.B) {
	d := openDir(b, b.TempDir())
	document := bytes.NewReader(make([]byte, 1024))
	for b.Loop() {
		if _, err := d.KeepBlob(b.Context(), document, noon); err != nil {
			b.Fatal(err)
		}
	}
}

// A missing or read-only directory is not ready, and the check leaves no file.
func TestDirReady(t *testing.T) {
	path := filepath.Join(t.TempDir(), "blobs")
	d, err := NewDir(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(path); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := d.Ready(t.Context()); err == nil {
		t.Error("a missing directory is ready")
	}
}
