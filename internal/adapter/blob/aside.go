package blob

import "os"

// aside writes a piece to a file while its owner goes on with the next one. Between
// begin and end the piece belongs to it, and there is one at a time.
type aside interface {
	// begin is an error where this one cannot write, which says nothing about others.
	begin(piece []byte, at int64) error
	// end waits until the piece is in the file.
	end() error
	// cut makes the file end at size again, if it was made longer ahead of what was
	// written.
	cut(size int64) error
	close()
}

// worker is a goroutine that writes.
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
