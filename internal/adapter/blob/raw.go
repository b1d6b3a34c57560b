// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// Raw are the objects of a Storage as they are stored, sealed or plain, for backups.
type Raw struct{ storage Storage }

// NewRaw returns the objects of a Storage.
func NewRaw(p Storage) Raw { return Raw{p} }

// Described is a stored object.
type Described struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	Tag  string `json:"tag,omitempty"` // of the server of a bucket; it changes with the content
}

// Describe describes an object without reading it.
func (r Raw) Describe(ctx context.Context, name string) (Described, error) {
	o, err := r.storage.open(ctx, name)
	if err != nil {
		return Described{}, err
	}
	d := Described{Name: name, Size: o.Size()}
	if b, is := o.(*bucketObject); is {
		d.Tag = b.etag
	}
	return d, o.Close()
}

// Copy writes the bytes of an object to the writer that begin returns.
func (r Raw) Copy(ctx context.Context, name string, begin func(size int64) (io.Writer, error)) error {
	o, err := r.storage.open(ctx, name)
	if err != nil {
		return err
	}
	w, err := begin(o.Size())
	if err == nil {
		err = copyTo(ctx, w, o)
	}
	return errors.Join(err, o.Close())
}

// Create stores an object of size bytes. Its name must be new.
func (r Raw) Create(ctx context.Context, name string, size int64, content io.Reader) error {
	w, err := r.storage.create(ctx, name)
	if err != nil {
		return err
	}
	defer w.Abort()
	n, err := io.Copy(w, content)
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("blob: restoring %s: %w", name, err)
	}
	return w.Commit()
}

// Remove removes an object.
func (r Raw) Remove(ctx context.Context, name string) error { return r.storage.remove(ctx, name) }

// Empty reports whether the storage has no objects.
func (r Raw) Empty(ctx context.Context) (bool, error) {
	empty := true
	for _, folder := range []string{"", documentsFolder} {
		err := r.storage.sweep(ctx, folder, func(name string) bool {
			empty = empty && name == ".ready"
			return false
		})
		if err != nil {
			return false, err
		}
	}
	return empty, nil
}

// Outdated reports whether an object may be missing at a time because it is no longer needed.
func Outdated(name string, now time.Time) bool {
	needed, ours := expiry(name)
	return ours && !now.Before(needed)
}

// Missing reports whether an error means that there is no such object.
func Missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
