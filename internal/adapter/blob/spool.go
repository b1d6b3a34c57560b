// Package blob owns document bytes outside memory: the spool, with the files of
// requests under way; the places where documents are kept, a directory or a bucket,
// sealed or as they are; and what lies there, stored documents and those between two
// steps of signing. It implements [signing.Spool], [signing.Blobs] and
// [document.Bytes].
package blob

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"tamga/internal/domain/signing"
)

// Spool keeps the documents of requests under way as files of one directory.
// Each file is unlinked as soon as it is open, so that nothing stays behind when
// the process is killed.
type Spool struct {
	dir    string
	direct bool         // the file system takes writes past the page cache
	wide   atomic.Int32 // large pieces in use
	queues queues       // have the system write large pieces
}

var _ signing.Spool = (*Spool)(nil)

// NewSpool returns a spool in dir, which it creates for its owner alone. It also
// removes files that a process killed between creating and unlinking left there.
func NewSpool(dir string) (*Spool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("blob: creating the spool directory: %w", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return nil, fmt.Errorf("blob: looking through the spool directory: %w", err)
	}
	for _, name := range left {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("blob: clearing the spool directory: %w", err)
		}
	}
	s := &Spool{dir: dir}
	s.direct, err = s.takesDirect()
	return s, err
}

// takesDirect finds out by writing a block: some file systems refuse at the opening
// and some at the first write.
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

// Create returns an empty file that vanishes when it is closed or the process ends.
func (s *Spool) Create() (signing.SpoolFile, error) {
	f, err := os.CreateTemp(s.dir, pattern)
	if err != nil {
		return nil, fmt.Errorf("blob: creating a spool file: %w", err)
	}
	var direct *os.File
	if s.direct {
		direct = openDirect(f.Name())
	}
	// Another process that starts on the same directory may have cleared it already.
	if err := os.Remove(f.Name()); err != nil && !errors.Is(err, os.ErrNotExist) {
		f.Close()
		if direct != nil {
			direct.Close()
		}
		return nil, fmt.Errorf("blob: unlinking a spool file: %w", err)
	}
	return &spoolFile{spool: s, direct: direct, plain: f}, nil
}
