package blob

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/signing"
	"tamga/sig"
)

// Dir keeps documents as files of one directory, readable by their owner alone.
// Processes on one machine, or with a file system in common, may share it.
//
// The name of a file begins with the time until which it is needed, so that a
// sweep needs nobody to tell it: what a killed process left behind, finished or
// not, goes the same way as what has expired.
type Dir struct{ dir string }

var _ signing.Blobs = (*Dir)(nil)

// Endings of file names.
const (
	finished   = ".blob"
	unfinished = ".part"
)

// NewDir returns the documents of dir, which it creates for its owner alone.
func NewDir(dir string) (*Dir, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("blob: creating the directory of documents: %w", err)
	}
	return &Dir{dir: dir}, nil
}

// KeepBlob implements [signing.Blobs]. The file gets its name when all of it is
// on the disk, so that a name never stands for half a document.
func (b *Dir) KeepBlob(ctx context.Context, d sig.Document, expires time.Time) (name string, err error) {
	stem := fmt.Sprintf("%d-%s", expires.Unix(), rand.Text())
	part := filepath.Join(b.dir, stem+unfinished)
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("blob: keeping a document: %w", err)
	}
	if err = copyTo(ctx, f, d); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("blob: keeping a document: %w", errors.Join(err, os.Remove(part)))
	}
	if err := os.Rename(part, filepath.Join(b.dir, stem+finished)); err != nil {
		return "", fmt.Errorf("blob: keeping a document: %w", errors.Join(err, os.Remove(part)))
	}
	if err := syncDir(b.dir); err != nil {
		return "", fmt.Errorf("blob: keeping a document: %w", errors.Join(err, b.RemoveBlob(ctx, stem+finished)))
	}
	return stem + finished, nil
}

// copyTo writes a document and looks at ctx between pieces.
func copyTo(ctx context.Context, w io.Writer, d sig.Document) error {
	buf := make([]byte, min(d.Size(), 128<<10))
	for at, size := int64(0), d.Size(); at < size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := buf[:min(int64(len(buf)), size-at)]
		if n, err := d.ReadAt(p, at); n < len(p) {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		if _, err := w.Write(p); err != nil {
			return err
		}
		at += int64(len(p))
	}
	return nil
}

// syncDir makes the names of a directory durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// file is an open document.
type file struct {
	*os.File
	size int64
}

// Size implements [sig.Document].
func (f *file) Size() int64 { return f.size }

// OpenBlob implements [signing.Blobs].
func (b *Dir) OpenBlob(_ context.Context, name string) (signing.Blob, error) {
	path, err := b.path(name)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("blob: opening a document: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("blob: opening a document: %w", errors.Join(err, f.Close()))
	}
	return &file{f, info.Size()}, nil
}

// RemoveBlob implements [signing.Blobs].
func (b *Dir) RemoveBlob(_ context.Context, name string) error {
	path, err := b.path(name)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("blob: removing a document: %w", err)
	}
	return nil
}

// path refuses names that KeepBlob does not give.
func (b *Dir) path(name string) (string, error) {
	if _, ok := expiry(name); !ok || !strings.HasSuffix(name, finished) {
		return "", fmt.Errorf("blob: %q is not the name of a document", name)
	}
	return filepath.Join(b.dir, name), nil
}

// expiry reads the time in the name of a file of ours.
func expiry(name string) (time.Time, bool) {
	seconds, rest, ok := strings.Cut(name, "-")
	random, known := strings.CutSuffix(rest, finished)
	if !known {
		random, known = strings.CutSuffix(rest, unfinished)
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if !ok || !known || err != nil || random == "" || strings.Trim(random, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return time.Time{}, false
	}
	return time.Unix(n, 0), true
}

// SweepBlobs implements [signing.Blobs]. Files that are not ours are left alone.
func (b *Dir) SweepBlobs(ctx context.Context, now time.Time) error {
	d, err := os.Open(b.dir)
	if err != nil {
		return fmt.Errorf("blob: sweeping documents: %w", err)
	}
	defer d.Close()
	for {
		entries, err := d.ReadDir(1000)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("blob: sweeping documents: %w", err)
		}
		for _, e := range entries {
			if err := ctx.Err(); err != nil {
				return err
			}
			needed, ours := expiry(e.Name())
			if !ours || now.Before(needed) {
				continue
			}
			// Another process may sweep at the same time.
			if err := os.Remove(filepath.Join(b.dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("blob: sweeping documents: %w", err)
			}
		}
	}
}
