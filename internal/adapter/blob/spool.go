// SPDX-License-Identifier: Apache-2.0

// Package blob keeps the bytes of documents outside memory. It has the spool, with the files of requests in
// progress, and the places that keep documents: a directory or a bucket, sealed or plain. Documents keeps
// stored documents there, Prepared those between the two steps of signing. The package implements
// [signing.Spool], [signing.Blobs] and [document.Bytes].
//
// Begin with NewSpool, or with NewDir or NewBucket and then NewDocuments or NewPrepared. The package does not
// know who may read a document.
package blob

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tamga/internal/domain/signing"
)

// Spool keeps the documents of requests in progress as files of one directory. Each file is unlinked as soon
// as it is open (on Windows the system removes it when it is closed), so nothing stays when the process is
// killed.
type Spool struct{ dir string }

var _ signing.Spool = (*Spool)(nil)

// NewSpool returns a spool in dir. It creates dir with access for its owner only. It also removes files of
// processes that were killed between creating and unlinking.
func NewSpool(dir string) (*Spool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("blob: creating the spool directory: %w", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return nil, fmt.Errorf("blob: reading the spool directory: %w", err)
	}
	for _, name := range left {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) && !inUse(err) {
			return nil, fmt.Errorf("blob: clearing the spool directory: %w", err)
		}
	}
	return &Spool{dir}, nil
}

const pattern = "document-*.spool"

// Create returns an empty file. The file disappears when it is closed or when the process ends.
func (s *Spool) Create() (signing.SpoolFile, error) {
	f, err := createUnlinked(s.dir)
	if err != nil {
		return nil, fmt.Errorf("blob: creating a spool file: %w", err)
	}
	return f, nil
}

// Sealed returns a spool in the same directory whose files are encrypted. It is for plaintext of messages and
// for answers. The key of a file is random and only in memory, so the file is of no use to another process. It
// has no authentication code: only this process can open a file without a name.
func (s *Spool) Sealed() signing.Spool { return sealedSpool{s} }

type sealedSpool struct{ *Spool }

// Create implements [signing.Spool].
func (s sealedSpool) Create() (signing.SpoolFile, error) {
	f, err := s.Spool.Create()
	if err != nil {
		return nil, err
	}
	key := make([]byte, keySize)
	defer clear(key)
	rand.Read(key)
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &encryptedFile{SpoolFile: f, block: block}, nil
}

// encryptedFile encrypts what is written and decrypts what is read.
type encryptedFile struct {
	signing.SpoolFile
	block cipher.Block
	end   int64 // number of bytes in the file
}

// keystream returns the gamma of a file from a position. The key is of one file, so the counter begins at 0.
func keystream(block cipher.Block, at int64) cipher.Stream {
	var counter, skipped [aes.BlockSize]byte
	binary.BigEndian.PutUint64(counter[8:], uint64(at/aes.BlockSize))
	stream := cipher.NewCTR(block, counter[:])
	rest := skipped[:at%aes.BlockSize]
	stream.XORKeyStream(rest, rest)
	return stream
}

// Write implements [io.Writer].
func (f *encryptedFile) Write(p []byte) (n int, err error) {
	piece := chunks.Get().(*[]byte)
	defer chunks.Put(piece)
	for n < len(p) {
		text := p[n:min(len(p), n+chunkSize)]
		sealed := (*piece)[:len(text)]
		keystream(f.block, f.end).XORKeyStream(sealed, text)
		m, err := f.SpoolFile.Write(sealed)
		n, f.end = n+m, f.end+int64(m)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// ReadAt implements [io.ReaderAt].
func (f *encryptedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.SpoolFile.ReadAt(p, off)
	if n > 0 {
		keystream(f.block, off).XORKeyStream(p[:n], p[:n])
	}
	return n, err
}
