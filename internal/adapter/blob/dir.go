// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"tamga/internal/domain/document"
	"tamga/internal/files"
)

// Dir keeps objects as files of a directory that only their owner can read. Processes on one machine,
// or with a shared file system, may share it.
type Dir struct{ dir string }

var _ Storage = (*Dir)(nil)

// unfinished is the end of the name of a file until all of it is on the disk. A name without it always
// belongs to a whole object.
const unfinished = ".part"

// NewDir returns the objects of dir. It creates dir with access for its owner only.
func NewDir(dir string) (*Dir, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("blob: creating the directory of documents: %w", err)
	}
	return &Dir{dir: dir}, nil
}

// path refuses names that lead out of the directory.
func (d *Dir) path(name string) (string, error) {
	folder, file := filepath.Split(name)
	if !plainName(file) || folder != "" && !plainName(strings.TrimSuffix(folder, "/")) {
		return "", fmt.Errorf("blob: %q is not a valid name of an object", name)
	}
	return filepath.Join(d.dir, name), nil
}

// plainName reports whether a name has only letters, digits, dots and dashes, and no dot at its
// beginning.
func plainName(s string) bool {
	for _, c := range []byte(s) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '-') {
			return false
		}
	}
	return s != "" && s[0] != '.'
}

// fileWriter is a file that is being written.
type fileWriter struct {
	*os.File
	path string // of the finished file
	ctx  context.Context
	done bool
}

func (d *Dir) create(ctx context.Context, name string) (document.Writer, error) {
	path, err := d.path(name)
	if err != nil {
		return nil, err
	}
	const flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	f, err := os.OpenFile(path+unfinished, flags, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		// This is the first object of its folder.
		if err = os.Mkdir(filepath.Dir(path), 0o700); err == nil || errors.Is(err, fs.ErrExist) {
			if err = files.SyncDir(d.dir); err == nil {
				f, err = os.OpenFile(path+unfinished, flags, 0o600)
			}
		}
	}
	if err != nil {
		return nil, keeping(err)
	}
	return &fileWriter{File: f, path: path, ctx: ctx}, nil
}

// keeping adds to an error what was being done, and document.ErrNoRoom if the disk is full.
func keeping(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("blob: keeping a document: %w: %w", document.ErrNoRoom, err)
	}
	return fmt.Errorf("blob: keeping a document: %w", err)
}

// Write implements io.Writer.
func (w *fileWriter) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.File.Write(p)
	if err != nil {
		err = keeping(err)
	}
	return n, err
}

// Commit implements [document.Writer].
func (w *fileWriter) Commit() error {
	if w.done {
		return errClosed
	}
	err := w.ctx.Err()
	if err == nil {
		err = w.File.Sync()
	}
	if err != nil {
		w.Abort()
		return keeping(err)
	}
	w.done = true
	if err := w.File.Close(); err != nil {
		return keeping(errors.Join(err, os.Remove(w.path+unfinished)))
	}
	if err := os.Rename(w.path+unfinished, w.path); err != nil {
		return keeping(errors.Join(err, os.Remove(w.path+unfinished)))
	}
	if err := files.SyncDir(filepath.Dir(w.path)); err != nil {
		return keeping(errors.Join(err, os.Remove(w.path)))
	}
	return nil
}

// Abort implements [document.Writer].
func (w *fileWriter) Abort() {
	if !w.done {
		w.done = true
		w.File.Close()
		os.Remove(w.path + unfinished)
	}
}

// file is an open object.
type file struct {
	*os.File
	size int64
}

// Size implements [document.Object].
func (f *file) Size() int64 { return f.size }

func (d *Dir) open(_ context.Context, name string) (document.Object, error) {
	path, err := d.path(name)
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

func (d *Dir) remove(_ context.Context, name string) error {
	path, err := d.path(name)
	if err != nil {
		return err
	}
	for _, p := range []string{path + unfinished, path} {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("blob: removing a document: %w", err)
		}
	}
	return nil
}

// Ready implements [Storage]. It creates a file and removes it, because nothing else shows that a file
// system has become read-only or full.
func (d *Dir) Ready(context.Context) error {
	path := filepath.Join(d.dir, ".ready") // not the name of an object
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("blob: the directory of documents: %w", err)
	}
	err = f.Close()
	// Another process may have removed the file.
	if removing := os.Remove(path); !errors.Is(removing, fs.ErrNotExist) {
		err = errors.Join(err, removing)
	}
	if err != nil {
		return fmt.Errorf("blob: the directory of documents: %w", err)
	}
	return nil
}

func (d *Dir) sweep(ctx context.Context, folder string, gone func(name string) bool) error {
	f, err := os.Open(filepath.Join(d.dir, folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("blob: sweeping documents: %w", err)
	}
	defer f.Close()
	for {
		entries, err := f.ReadDir(1000)
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
			if !e.Type().IsRegular() || !gone(strings.TrimSuffix(e.Name(), unfinished)) {
				continue
			}
			// Another process may sweep at the same time.
			if err := os.Remove(filepath.Join(d.dir, folder, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("blob: sweeping documents: %w", err)
			}
		}
	}
}
