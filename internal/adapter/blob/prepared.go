// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/document"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
	"tamga/sig"
)

// Prepared keeps documents between the two steps of signing. It implements [signing.Blobs].
//
// The name of an object begins with the time until which it is needed. A sweep therefore needs no
// other data, and removes what a killed process left behind, finished or not, like everything that
// has expired.
//
// A small object is not in the storage but in its own name: after a comma the name has the stored form of
// the object in Base64. So it is stored, and ends, with the row that has the name.
type Prepared struct {
	vessel
	inRow int64 // Options.InRow
}

var _ signing.Blobs = (*Prepared)(nil)

// finished is the end of the names of documents.
const finished = ".blob"

// NewPrepared returns the documents of two-step signing, which have no folder.
func NewPrepared(o Options) *Prepared { return &Prepared{o.vessel(), o.InRow} }

// afterName is between the name of a small object and its content.
const afterName = ","

// InRow reports whether a name has the content of its object. Such an object is not in the storage.
func InRow(name string) bool { return strings.Contains(name, afterName) }

// packed returns the name of a small object, with its content.
func (b *Prepared) packed(ctx context.Context, name string, d sig.Document) (string, error) {
	content := make([]byte, d.Size())
	defer clear(content)
	if err := errors.Join(ctx.Err(), operation.ReadFull(d, content, 0)); err != nil {
		return "", fmt.Errorf("blob: keeping a document: %w", err)
	}
	stored, err := b.pack(name, content)
	if err != nil {
		return "", err
	}
	return name + afterName + base64.RawStdEncoding.EncodeToString(stored), nil
}

// KeepBlob implements [signing.Blobs].
func (b *Prepared) KeepBlob(ctx context.Context, d sig.Document, expires time.Time) (string, error) {
	name := b.named(fmt.Sprintf("%d-%s%s", expires.Unix(), rand.Text(), finished))
	if b.inRow > 0 && d.Size() <= b.inRow {
		return b.packed(ctx, name, d)
	}
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
		if err := operation.ReadFull(d, p, at); err != nil {
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
	name, content, inRow := strings.Cut(name, afterName)
	if err := checkPrepared(name); err != nil {
		return nil, err
	}
	o, err := b.openNamed(ctx, name, content, inRow)
	if err != nil {
		return nil, fmt.Errorf("blob: object %s: %w", name, err)
	}
	return o, nil
}

// openNamed opens an object by both parts of its name.
func (b *Prepared) openNamed(ctx context.Context, name, content string, inRow bool) (document.Object, error) {
	if !inRow {
		return b.open(ctx, name)
	}
	stored, err := base64.RawStdEncoding.DecodeString(content)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return b.unpack(ctx, name, stored)
}

// RemoveBlob implements [signing.Blobs].
func (b *Prepared) RemoveBlob(ctx context.Context, name string) error {
	name, _, inRow := strings.Cut(name, afterName)
	if err := checkPrepared(name); err != nil || inRow {
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
