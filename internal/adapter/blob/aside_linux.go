// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// queueMost is the largest number of queues of a spool. More files cannot have two large pieces
// each.
const queueMost = widePieces / 2

// queues keeps the queues of a spool for files that write large pieces. They are reused, because the
// kernel needs milliseconds to destroy a queue.
type queues struct {
	mu   sync.Mutex
	free []*queue
	made int
}

// queue lets the kernel write, with Linux asynchronous I/O (io_submit). While one goroutine hashes,
// another one that waits for the disk would cost the process twice the time of the write itself,
// because the runtime starts looking for another thread each time.
type queue struct {
	of      *queues
	context uintptr
	request iocb
	event   ioEvent
	pin     runtime.Pinner
	file    *os.File
	room    int64 // length of the file in bytes
}

// iocb and ioEvent are those of linux/aio_abi.h. The blank fields are 0.
type iocb struct {
	_      uint64 // data
	_      uint64 // key and flags
	opcode uint16
	_      int16 // priority
	file   uint32
	buffer uint64
	length uint64
	offset int64
	_      [2]uint64 // reserved, flags, eventfd
}

type ioEvent struct {
	_, _   uint64 // data and request
	result int64
	_      int64
}

const (
	iocbWrite = 1 // IOCB_CMD_PWRITE
	// roomStep is how many bytes are added to a file before they are written. Without it
	// io_submit would block for each write at the end of the file.
	roomStep = 64 << 20
)

// open returns an aside for a file of size bytes. The file must be open for writes past the page
// cache and have no other writer. open returns nil if the system or the file system does not support
// this, or if all queues are in use.
func (s *queues) open(f *os.File, size int64) aside {
	q := s.take()
	if q == nil {
		return nil
	}
	q.file, q.room = f, size
	if err := q.reserve(size + 1); err != nil {
		q.close()
		return nil
	}
	return q
}

func (s *queues) take() *queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		q := s.free[n-1]
		s.free = s.free[:n-1]
		return q
	}
	if s.made == queueMost {
		return nil
	}
	s.made++ // count failures too, so that they are not repeated forever
	q := &queue{of: s}
	if _, _, failed := unix.Syscall(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&q.context)), 0); failed != 0 {
		return nil
	}
	return q
}

func (q *queue) close() {
	q.file = nil
	q.of.mu.Lock()
	defer q.of.mu.Unlock()
	q.of.free = append(q.of.free, q)
}

// reserve extends the file to at least end bytes.
func (q *queue) reserve(end int64) error {
	if end <= q.room {
		return nil
	}
	for step := max(roomStep, end-q.room); ; {
		switch err := unix.Fallocate(int(q.file.Fd()), 0, q.room, step); err {
		case nil:
			q.room += step
			return nil
		case unix.EINTR:
		case unix.ENOSPC:
			if step == end-q.room {
				return os.NewSyscallError("fallocate", err)
			}
			step = end - q.room // the disk may still have enough space for this
		default:
			return os.NewSyscallError("fallocate", err)
		}
	}
}

func (q *queue) cut(size int64) error {
	if size >= q.room {
		return nil
	}
	q.room = size
	return q.file.Truncate(size)
}

func (q *queue) begin(piece []byte, at int64) error {
	if err := q.reserve(at + int64(len(piece))); err != nil {
		return err
	}
	buffer := unsafe.SliceData(piece)
	q.request = iocb{
		opcode: iocbWrite, file: uint32(q.file.Fd()),
		buffer: uint64(uintptr(unsafe.Pointer(buffer))), length: uint64(len(piece)), offset: at,
	}
	q.pin.Pin(buffer) // the kernel reads the buffer until end returns
	request := &q.request
	_, _, failed := unix.Syscall(unix.SYS_IO_SUBMIT, q.context, 1, uintptr(unsafe.Pointer(&request)))
	if failed != 0 {
		q.pin.Unpin()
		return os.NewSyscallError("io_submit", failed)
	}
	return nil
}

func (q *queue) end() error {
	defer q.pin.Unpin()
	for {
		n, _, failed := unix.Syscall6(unix.SYS_IO_GETEVENTS, q.context, 1, 1, uintptr(unsafe.Pointer(&q.event)), 0, 0)
		switch {
		case failed == unix.EINTR || failed == 0 && n == 0:
		case failed != 0:
			return os.NewSyscallError("io_getevents", failed)
		case q.event.result < 0:
			return os.NewSyscallError("io_submit", syscall.Errno(-q.event.result))
		case uint64(q.event.result) != q.request.length:
			return fmt.Errorf("%w: %d of %d bytes", io.ErrShortWrite, q.event.result, q.request.length)
		default:
			return nil
		}
	}
}
