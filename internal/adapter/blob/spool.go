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
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"tamga/internal/domain/signing"
)

// Spool keeps the documents of requests in progress as files of one directory. Each file is unlinked as soon
// as it is open (on Windows the system removes it when it is closed), so nothing stays when the process is
// killed.
type Spool struct {
	dir    string
	direct bool         // the file system supports writes past the page cache
	wide   atomic.Int32 // large pieces in use
	queues queues       // let the system write large pieces
}

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
	s := &Spool{dir: dir}
	s.direct, err = s.takesDirect()
	return s, err
}

// takesDirect reports whether the file system supports writes past the page cache. It writes a block, because
// some file systems refuse only at the first write.
func (s *Spool) takesDirect() (bool, error) {
	f, err := os.CreateTemp(s.dir, pattern)
	if err != nil {
		return false, fmt.Errorf("blob: creating a spool file: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	direct := openDirect(f.Name())
	if direct == nil {
		return false, nil
	}
	defer direct.Close()
	_, err = direct.WriteAt(*aligned(blockSize, blockSize), 0)
	return err == nil, nil
}

const pattern = "document-*.spool"

// Create returns an empty file. The file disappears when it is closed or when the process ends.
func (s *Spool) Create() (signing.SpoolFile, error) {
	f, direct, err := createUnlinked(s.dir, s.direct)
	if err != nil {
		return nil, fmt.Errorf("blob: creating a spool file: %w", err)
	}
	return &spoolFile{spool: s, direct: direct, plain: f}, nil
}
