package signing

import (
	"hash"
	"sync"
)

// pieceSize is how much of a document is hashed at a time beside its reader. Two
// pieces are under way at most, so a large document costs 256 KiB more.
const pieceSize = 128 << 10

// besideLimit is from which size on a document is worth a goroutine of its own. The
// many documents of a batch are mostly below it.
const besideLimit = 1 << 20

var pieces = sync.Pool{New: func() any { b := make([]byte, 0, pieceSize); return &b }}

// digester hashes a document beside whoever writes it: while one piece is hashed
// the next comes in from the client. Hashing is the slowest part of taking a
// document in, so this is what the speed of a large request hangs on. One
// goroutine writes; finish or abandon ends it.
type digester struct {
	hash   hash.Hash
	piece  *[]byte
	filled chan *[]byte
	done   chan struct{}
}

func newDigester(h hash.Hash) *digester {
	d := &digester{hash: h, piece: pieces.Get().(*[]byte), filled: make(chan *[]byte), done: make(chan struct{})}
	go d.work()
	return d
}

func (d *digester) work() {
	defer close(d.done)
	for p := range d.filled {
		d.hash.Write(*p)
		*p = (*p)[:0]
		pieces.Put(p)
	}
}

func (d *digester) write(p []byte) {
	for len(p) > 0 {
		n := min(len(p), pieceSize-len(*d.piece))
		*d.piece = append(*d.piece, p[:n]...)
		p = p[n:]
		if len(*d.piece) == pieceSize {
			d.filled <- d.piece
			d.piece = pieces.Get().(*[]byte)
		}
	}
}

// finish returns the hash of all that was written.
func (d *digester) finish() []byte {
	d.filled <- d.piece
	close(d.filled)
	<-d.done
	return d.hash.Sum(nil)
}

// abandon ends the digester without a result.
func (d *digester) abandon() {
	close(d.filled)
	*d.piece = (*d.piece)[:0]
	pieces.Put(d.piece)
}
