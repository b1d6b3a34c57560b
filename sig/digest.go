// SPDX-License-Identifier: Apache-2.0

package sig

import (
	"context"
	"fmt"
	"hash"
	"io"

	"tamga/pki/suite"
)

// DigestOf returns the digest of a whole document. It takes the one with this algorithm from f.Digests;
// without one it reads the document.
func DigestOf(ctx context.Context, f File, h *suite.Hash) (suite.Digest, error) {
	for _, d := range f.Digests {
		if d.Hash == h && len(d.Sum) == h.Size {
			return d, nil
		}
	}
	if d, ok := f.Document.(Digester); ok {
		ds, err := d.Digests(ctx, h)
		if err != nil {
			return suite.Digest{}, err
		}
		return ds[0], nil
	}
	size := f.Document.Size()
	if size <= chunk {
		return digestSmall(ctx, f.Document, h)
	}
	ds, err := DigestAll(ctx, io.NewSectionReader(f.Document, 0, size), size, h)
	if err != nil {
		return suite.Digest{}, err
	}
	return ds[0], nil
}

// digestSmall returns the digest of a document of at most one chunk, hashed in one call.
func digestSmall(ctx context.Context, d Document, h *suite.Hash) (suite.Digest, error) {
	if err := ctx.Err(); err != nil {
		return suite.Digest{}, err
	}
	buf := chunks.Get().(*[chunk]byte)
	defer chunks.Put(buf)
	b := buf[:d.Size()]
	if n, err := d.ReadAt(b, 0); n < len(b) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return suite.Digest{}, fmt.Errorf("document: read %d of %d bytes: %w", n, len(b), err)
	}
	return digestBeside(h, b), nil
}

// DigestsOf returns the digests of a whole document by each of the algorithms, in the given
// order. It uses those in known, and reads the document once if any other is needed.
func DigestsOf(ctx context.Context, document Document, known []suite.Digest, hs []*suite.Hash) ([]suite.Digest, error) {
	out := make([]suite.Digest, len(hs))
	var missing []*suite.Hash
	for i, h := range hs {
		for _, d := range known {
			if d.Hash == h && len(d.Sum) == h.Size {
				out[i] = d
				break
			}
		}
		if out[i].Hash == nil {
			missing = append(missing, h)
		}
	}
	if len(missing) == 0 {
		return out, nil
	}
	computed, err := digestWhole(ctx, document, missing)
	if err != nil {
		return nil, err
	}
	for i := range out {
		if out[i].Hash == nil {
			out[i], computed = computed[0], computed[1:]
		}
	}
	return out, nil
}

// digestWhole is DigestAll for a document.
func digestWhole(ctx context.Context, d Document, hs []*suite.Hash) ([]suite.Digest, error) {
	size := d.Size()
	if len(hs) > 1 || size > chunk {
		return DigestAll(ctx, io.NewSectionReader(d, 0, size), size, hs...)
	}
	one, err := digestSmall(ctx, d, hs[0])
	if err != nil {
		return nil, err
	}
	return []suite.Digest{one}, nil
}

// DigestAll reads size bytes once and returns their digests by each of the algorithms, in the
// given order. It checks ctx between chunks. If the reader ends early, the error wraps
// io.ErrUnexpectedEOF.
func DigestAll(ctx context.Context, r io.Reader, size int64, hs ...*suite.Hash) ([]suite.Digest, error) {
	states := make([]hash.Hash, len(hs))
	for i, h := range hs {
		states[i] = h.New()
	}
	buf := chunks.Get().(*[chunk]byte)
	defer chunks.Put(buf)
	for left := size; left > 0; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b := buf[:min(int64(chunk), left)]
		n, err := io.ReadFull(r, b)
		if err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, fmt.Errorf("document: read %d of %d bytes: %w", size-left+int64(n), size, err)
		}
		for _, s := range states {
			s.Write(b)
		}
		left -= int64(n)
	}
	out := make([]suite.Digest, len(hs))
	for i, h := range hs {
		out[i] = suite.Digest{Hash: h, Sum: states[i].Sum(nil)}
	}
	return out, nil
}

// Digester is a document that can compute its digests without being read as a whole: one of
// several parts of the same file.
type Digester interface {
	Digests(ctx context.Context, hs ...*suite.Hash) ([]suite.Digest, error)
}

// HashSection writes length bytes of a document, beginning at offset, to h. It checks ctx
// between chunks.
func HashSection(ctx context.Context, h hash.Hash, d Document, offset, length int64) error {
	buf := chunks.Get().(*[chunk]byte)
	defer chunks.Put(buf)
	for length > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := buf[:min(int64(chunk), length)]
		if n, err := d.ReadAt(b, offset); n < len(b) {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("document: reading %d bytes at offset %d: %w", len(b), offset, err)
		}
		h.Write(b)
		offset, length = offset+int64(len(b)), length-int64(len(b))
	}
	return nil
}
