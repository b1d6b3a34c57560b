// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"tamga/internal/domain/document"
	"tamga/internal/domain/vault"
)

// Sealer seals the keys of objects. See [vault.Ring].
type Sealer interface {
	Seal(p vault.Place, plaintext []byte) ([]byte, error)
	Open(p vault.Place, sealed []byte) ([]byte, error)
}

// ErrDamaged reports that a sealed object was changed, truncated, or put in place of another.
var ErrDamaged = fmt.Errorf("blob: the sealed object was damaged or does not belong here: %w", document.ErrDamaged)

// The form of a sealed object. Each object has a new random key, so the numbers of its chunks can be
// the nonces. The vault's ring seals the key for the object's name. The sealed key is in the head. The
// head is associated data of every chunk.
//
//	head   HeadSize bytes: version 1, length of the sealed key (2 bytes), the sealed
//	       key, zeros
//	chunk  chunkSize bytes of the object, fewer in the last one, as AES-256-GCM with
//	       its tag. Nonce: number of the chunk from 0 (8 bytes), 3 zeros, 1 for the
//	       last chunk and 0 for the others
//
// An empty object has one empty chunk. An object truncated at the end of a chunk has a last chunk that
// is not marked as the last, which open checks. Chunks in another order have wrong numbers.
const (
	HeadSize    = 256 // bytes, with the sealed key of the object
	chunkSize   = 64 << 10
	tagSize     = 16
	sealedChunk = chunkSize + tagSize
	sealVersion = 1
	keySize     = 32
)

func isSealed(name string) bool { return strings.HasSuffix(name, sealedEnd) }

type sealer struct {
	ring Sealer
	keys Keys // may be nil
}

// Keys has keys of objects that were sealed anew, since the head of an object cannot change: every
// chunk authenticates it.
type Keys interface {
	// ObjectKey returns the sealed key of an object, nil if only its head has it.
	ObjectKey(ctx context.Context, name string) ([]byte, error)
}

// unseal opens the key of an object. If the master key of the head is gone, the key was sealed anew.
func (s sealer) unseal(ctx context.Context, name string, sealed []byte) ([]byte, error) {
	key, err := s.ring.Open(keyPlace(name), sealed)
	if !errors.Is(err, vault.ErrNoKey) || s.keys == nil {
		return key, err
	}
	anew, stored := s.keys.ObjectKey(ctx, name)
	switch {
	case stored != nil:
		return nil, stored
	case anew == nil:
		return nil, err
	}
	return s.ring.Open(keyPlace(name), anew)
}

// readHead reads the head of an object and returns it and the sealed key in it.
func readHead(o document.Object) (head, sealed []byte, err error) {
	head = make([]byte, HeadSize)
	if n, err := o.ReadAt(head, 0); n < HeadSize {
		if err == nil || errors.Is(err, io.EOF) {
			err = ErrDamaged
		}
		return nil, nil, err
	}
	n := int(binary.BigEndian.Uint16(head[1:]))
	if head[0] != sealVersion {
		return nil, nil, fmt.Errorf("blob: an object is sealed in form %d, but this program supports only form %d", head[0], sealVersion)
	}
	if n > HeadSize-3 {
		return nil, nil, ErrDamaged
	}
	return head, head[3 : 3+n], nil
}

// keyPlace returns the place for which the key of an object is sealed.
func keyPlace(name string) vault.Place {
	return vault.Place{Purpose: "object key", Table: "objects", Row: name, Column: "head"}
}

func (s sealer) writer(to document.Writer, name string) (document.Writer, error) {
	key := make([]byte, keySize)
	defer clear(key)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	sealed, err := s.ring.Seal(keyPlace(name), key)
	if err != nil {
		return nil, fmt.Errorf("blob: sealing the key of an object: %w", err)
	}
	if len(sealed) > HeadSize-3 {
		return nil, fmt.Errorf("blob: the sealed key of an object has %d bytes, but the head has space for %d", len(sealed), HeadSize-3)
	}
	w := &sealedWriter{to: to, head: make([]byte, HeadSize), plain: (*chunks.Get().(*[]byte))[:0]}
	w.head[0] = sealVersion
	binary.BigEndian.PutUint16(w.head[1:], uint16(len(sealed)))
	copy(w.head[3:], sealed)
	if w.aead, err = newGCM(key); err != nil {
		return nil, err
	}
	if _, err := to.Write(w.head); err != nil {
		return nil, err
	}
	return w, nil
}

func newGCM(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// nonce returns the nonce of a chunk.
func nonce(n int64, last bool) []byte {
	b := make([]byte, 12)
	binary.BigEndian.PutUint64(b, uint64(n))
	if last {
		b[11] = 1
	}
	return b
}

// chunks has buffers for one sealed chunk each.
var chunks = sync.Pool{New: func() any { b := make([]byte, sealedChunk); return &b }}

// sealedWriter seals the data that is written to it.
type sealedWriter struct {
	to    document.Writer
	aead  cipher.AEAD
	head  []byte
	plain []byte // not sealed yet; at most a chunk
	n     int64  // number of chunks written
	err   error
}

var errClosed = errors.New("blob: the object is closed")

// Write implements io.Writer.
func (w *sealedWriter) Write(p []byte) (total int, err error) {
	for len(p) > 0 {
		if w.err != nil {
			return total, w.err
		}
		// Keep a full chunk until the next byte comes, because it may be the last one.
		if len(w.plain) == chunkSize {
			if w.err = w.seal(false); w.err != nil {
				return total, w.err
			}
		}
		n := min(len(p), chunkSize-len(w.plain))
		w.plain = append(w.plain, p[:n]...)
		p, total = p[n:], total+n
	}
	return total, w.err
}

func (w *sealedWriter) seal(last bool) error {
	sealed := w.aead.Seal(w.plain[:0], nonce(w.n, last), w.plain, w.head)
	w.n++
	w.plain = w.plain[:0]
	_, err := w.to.Write(sealed)
	return err
}

// Commit implements [document.Writer].
func (w *sealedWriter) Commit() error {
	if w.err == nil {
		w.err = w.seal(true)
	}
	if w.err != nil {
		return w.err
	}
	w.done()
	return w.to.Commit()
}

// Abort implements [document.Writer].
func (w *sealedWriter) Abort() {
	w.done()
	w.to.Abort()
}

// done returns the buffer to the pool.
func (w *sealedWriter) done() {
	if w.plain == nil {
		return
	}
	b := w.plain[:sealedChunk]
	clear(b)
	chunks.Put(&b)
	w.plain, w.err = nil, errClosed
}

func (s sealer) open(ctx context.Context, o document.Object, name string) (document.Object, error) {
	head, sealed, err := readHead(o)
	if err != nil {
		return nil, err
	}
	key, err := s.unseal(ctx, name, sealed)
	if errors.Is(err, vault.ErrSealed) {
		return nil, ErrDamaged
	}
	if err != nil {
		return nil, fmt.Errorf("blob: opening the key of an object: %w", err)
	}
	defer clear(key)
	if len(key) != keySize {
		return nil, ErrDamaged
	}
	r := &sealedObject{from: o, head: head, cached: -1}
	if r.aead, err = newGCM(key); err != nil {
		return nil, err
	}
	body := o.Size() - HeadSize
	r.chunks = (body + sealedChunk - 1) / sealedChunk
	r.size = body - r.chunks*tagSize
	if rest := body - (r.chunks-1)*sealedChunk; body <= 0 || rest < tagSize || rest == tagSize && r.chunks > 1 {
		return nil, ErrDamaged
	}
	// The last chunk must be marked as the last.
	if err := r.load(r.chunks - 1); err != nil {
		return nil, err
	}
	return r, nil
}

// sealedObject opens chunks on demand and caches the last one, because formats read many small pieces
// close to each other.
type sealedObject struct {
	from   document.Object
	aead   cipher.AEAD
	head   []byte
	chunks int64
	size   int64

	mu     sync.Mutex
	cached int64 // number of the chunk in plain; -1: no chunk
	plain  []byte
}

// Size implements [document.Object].
func (r *sealedObject) Size() int64 { return r.size }

// Close implements io.Closer.
func (r *sealedObject) Close() error {
	r.mu.Lock()
	clear(r.plain)
	r.cached, r.plain = -1, nil
	r.mu.Unlock()
	return r.from.Close()
}

// ReadAt implements io.ReaderAt.
func (r *sealedObject) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, errors.New("blob: negative offset in an object")
	}
	total := 0
	for total < len(p) {
		if off >= r.size {
			return total, io.EOF
		}
		n, err := r.readChunk(p[total:], off/chunkSize, int(off%chunkSize))
		total, off = total+n, off+int64(n)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// readChunk copies the bytes of chunk n, beginning at from. A whole chunk is opened directly in p, without
// the cache.
func (r *sealedObject) readChunk(p []byte, n int64, from int) (int, error) {
	if size := r.length(n); from == 0 && len(p) >= size {
		b := chunks.Get().(*[]byte)
		defer chunks.Put(b)
		sealed := (*b)[:size+tagSize]
		if err := r.read(sealed, n); err != nil {
			return 0, err
		}
		if _, err := r.aead.Open(p[:0:size], nonce(n, n == r.chunks-1), sealed, r.head); err != nil {
			clear(p[:size])
			return 0, ErrDamaged
		}
		return size, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cached != n {
		if err := r.load(n); err != nil {
			return 0, err
		}
	}
	return copy(p, r.plain[from:]), nil
}

// length returns the number of bytes of the object in chunk n.
func (r *sealedObject) length(n int64) int { return int(min(chunkSize, r.size-n*chunkSize)) }

// load opens chunk n and caches it.
func (r *sealedObject) load(n int64) error {
	sealed := make([]byte, r.length(n)+tagSize)
	if err := r.read(sealed, n); err != nil {
		return err
	}
	plain, err := r.aead.Open(sealed[:0], nonce(n, n == r.chunks-1), sealed, r.head)
	if err != nil {
		r.cached = -1
		return ErrDamaged
	}
	r.cached, r.plain = n, plain
	return nil
}

// read reads the sealed chunk n.
func (r *sealedObject) read(sealed []byte, n int64) error {
	got, err := r.from.ReadAt(sealed, HeadSize+n*sealedChunk)
	if got < len(sealed) {
		if err == nil || errors.Is(err, io.EOF) {
			err = ErrDamaged
		}
		return err
	}
	return nil
}
