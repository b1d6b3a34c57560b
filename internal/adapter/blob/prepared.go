// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/signing"
	"tamga/sig"
)

// Prepared keeps documents between the two steps of signing. It implements [signing.Blobs].
//
// The name of an object begins with the time until which it is needed. A sweep therefore needs no
// other data, and removes what a killed process left behind, finished or not, like everything that
// has expired.
type Prepared struct{ vessel }

var _ signing.Blobs = (*Prepared)(nil)

// finished is the end of the names of documents.
const finished = ".blob"

// NewPrepared returns the documents of two-step signing, which have no folder.
func NewPrepared(o Options) *Prepared { return &Prepared{o.vessel()} }

// KeepBlob implements [signing.Blobs].
func (b *Prepared) KeepBlob(ctx context.Context, d sig.Document, expires time.Time) (string, error) {
	name := b.named(fmt.Sprintf("%d-%s%s", expires.Unix(), rand.Text(), finished))
	w, err := b.create(ctx, name)
	if err != nil {
		return "", err
	}
	defer w.Abort()
	if err := copyTo(ctx, w, d); err != nil {
		return "", fmt.Errorf("blob: keeping a document: %w", err)
	}
	return name, w.Commit()
}

// copyTo writes a document and checks ctx between pieces.
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

// OpenBlob implements [signing.Blobs].
func (b *Prepared) OpenBlob(ctx context.Context, name string) (signing.Blob, error) {
	if err := checkPrepared(name); err != nil {
		return nil, err
	}
	return b.open(ctx, name)
}

// RemoveBlob implements [signing.Blobs].
func (b *Prepared) RemoveBlob(ctx context.Context, name string) error {
	if err := checkPrepared(name); err != nil {
		return err
	}
	return b.storage.remove(ctx, name)
}

// SweepBlobs implements [signing.Blobs]. It does not touch objects of other programs.
func (b *Prepared) SweepBlobs(ctx context.Context, now time.Time) error {
	return b.storage.sweep(ctx, "", func(name string) bool {
		needed, ours := expiry(name)
		return ours && !now.Before(needed)
	})
}

// checkPrepared refuses names that KeepBlob cannot return.
func checkPrepared(name string) error {
	if _, ours := expiry(name); !ours {
		return fmt.Errorf("blob: %q is not a valid name of a document", name)
	}
	return nil
}

// expiry reads the time in the name of an object. It returns false for names of other programs.
func expiry(name string) (time.Time, bool) {
	name, named := strings.CutSuffix(strings.TrimSuffix(name, sealedEnd), finished)
	seconds, random, ok := strings.Cut(name, "-")
	n, err := strconv.ParseInt(seconds, 10, 64)
	if !named || !ok || err != nil || random == "" || strings.Trim(random, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return time.Time{}, false
	}
	return time.Unix(n, 0), true
}
