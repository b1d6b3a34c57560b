// SPDX-License-Identifier: Apache-2.0

package blob

import "os"

// aside writes a piece to a file in the background. Between begin and end the piece belongs to the
// aside. Only one piece can be written at a time.
type aside interface {
	// begin returns an error if this aside cannot write. Another one may still work.
	begin(piece []byte, at int64) error
	// end waits until the piece is in the file and returns the error of the write.
	end() error
	// cut truncates the file to size, if the aside made it longer before writing.
	cut(size int64) error
	close()
}

// worker is an aside with a goroutine that writes.
type worker struct {
	pieces chan placed
	done   chan error
}

type placed struct {
	piece []byte
	at    int64
}

func newWorker(f *os.File) *worker {
	w := &worker{pieces: make(chan placed), done: make(chan error, 1)}
	go func() {
		for p := range w.pieces {
			_, err := f.WriteAt(p.piece, p.at)
			w.done <- err
		}
	}()
	return w
}

func (w *worker) begin(piece []byte, at int64) error {
	w.pieces <- placed{piece, at}
	return nil
}

func (w *worker) end() error { return <-w.done }

func (w *worker) cut(int64) error { return nil }

func (w *worker) close() { close(w.pieces) }
