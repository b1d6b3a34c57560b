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
