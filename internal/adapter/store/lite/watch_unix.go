// SPDX-License-Identifier: Apache-2.0

//go:build unix

package lite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// Watch sees commits to a file without a statement: it reads the index of the write-ahead log,
// which all processes share in memory. It is safe for concurrent use.
type Watch struct {
	// conn reads nothing more. As long as it is open, SQLite neither removes nor shortens the index.
	conn *Conn
	// file stays open as long as conn: a process that closes a file loses all its locks on it.
	file  *os.File
	index []byte
	head  *[2 * stateBytes / 8]uint64
}

// OpenWatch watches a file that is in write-ahead mode. With an error, the watch knows no state. It
// must be closed, too, and not earlier, because it may have a file open.
func OpenWatch(path string, wait time.Duration) (*Watch, error) {
	conn, err := Open(path, wait, "query_only(1)")
	if err != nil {
		return &Watch{}, err
	}
	w := &Watch{conn: conn}
	if err := w.open(path); err != nil {
		return w, fmt.Errorf("sqlite: watching commits: %w", err)
	}
	return w, nil
}

func (w *Watch) open(path string) error {
	var mode string
	// This reads the file, so conn opens the log and its index.
	err := w.conn.Query(context.Background(), Once, "SELECT m.* FROM pragma_journal_mode m, (SELECT COUNT(*) FROM sqlite_schema)", nil,
		func(r Row) error { return r.Scan(&mode) })
	if err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("its mode is %s, want wal", mode)
	}
	if w.file, err = os.Open(path + "-shm"); err != nil {
		return err
	}
	if info, err := w.file.Stat(); err != nil || info.Size() < indexBytes {
		return errors.Join(err, errors.New("the index of the log is too short"))
	}
	if w.index, err = syscall.Mmap(int(w.file.Fd()), 0, indexBytes, syscall.PROT_READ, syscall.MAP_SHARED); err != nil {
		return os.NewSyscallError("mmap", err)
	}
	w.head = (*[2 * stateBytes / 8]uint64)(unsafe.Pointer(&w.index[0]))
	return nil
}

// State returns the current state. ok is false while a commit is about to change it, for a format
// that is not known, and if the watch could not be opened.
func (w *Watch) State() (s State, ok bool) {
	if w.head == nil {
		return s, false
	}
	for i := range s {
		s[i] = atomic.LoadUint64(&w.head[i])
	}
	// A writer changes the second copy first, so equal copies are whole.
	for i := range s {
		if atomic.LoadUint64(&w.head[len(s)+i]) != s[i] {
			return State{}, false
		}
	}
	return s, s.valid()
}

// Close ends the watch. State must not be called any more. No other connection of this process to
// the file may be open.
func (w *Watch) Close() error {
	var err error
	if w.index != nil {
		w.head = nil
		err = syscall.Munmap(w.index)
	}
	if w.conn != nil {
		err = errors.Join(err, w.conn.Close())
	}
	if w.file != nil {
		err = errors.Join(err, w.file.Close())
	}
	return err
}
