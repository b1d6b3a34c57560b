// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"io"
	"sync"

	fast "github.com/segmentio/asm/base64"
)

// WriteBase64 writes a content to w as Base64 (standard alphabet, padded). It encodes into a
// buffer of its own and passes large pieces on, so w needs no buffer for a large content.
func WriteBase64(w io.Writer, c Content) error {
	e := newEncoder(w, encodedLen(c.Size()))
	defer e.free()
	if _, err := c.WriteTo(e); err != nil {
		return err
	}
	return e.end()
}

// encoder encodes what is written to it as Base64. encoding/base64 has one too, which encodes
// without vector instructions and in pieces of one KiB.
type encoder struct {
	w     io.Writer
	pool  *sync.Pool // of buf
	buf   *[]byte
	n     int     // bytes of buf that w did not get yet
	spare [3]byte // bytes of a group that is not complete
	have  int
}

// newEncoder returns an encoder for an answer of about size bytes. Call free after use.
func newEncoder(w io.Writer, size int64) *encoder {
	e := &encoder{w: w, pool: &buffers}
	if size > bufferSize {
		e.pool = &wideBuffers
	}
	e.buf = e.pool.Get().(*[]byte)
	return e
}

func (e *encoder) free() { e.pool.Put(e.buf) }

// Write implements io.Writer.
func (e *encoder) Write(p []byte) (int, error) {
	total := len(p)
	if e.have > 0 {
		n := copy(e.spare[e.have:], p)
		e.have += n
		if p = p[n:]; e.have < len(e.spare) {
			return total, nil
		}
		e.have = 0
		if err := e.encode(e.spare[:]); err != nil {
			return 0, err
		}
	}
	whole := len(p) / 3 * 3
	e.have = copy(e.spare[:], p[whole:])
	if err := e.encode(p[:whole]); err != nil {
		return 0, err
	}
	return total, nil
}

// encode encodes whole groups.
func (e *encoder) encode(p []byte) error {
	for len(p) > 0 {
		if err := e.room(); err != nil {
			return err
		}
		to := (*e.buf)[e.n:]
		groups := min(len(p)/3, len(to)/4)
		fast.StdEncoding.Encode(to[:4*groups], p[:3*groups])
		e.n += 4 * groups
		p = p[3*groups:]
	}
	return nil
}

// room makes room for one group.
func (e *encoder) room() error {
	if len(*e.buf)-e.n >= 4 {
		return nil
	}
	return e.flush()
}

func (e *encoder) flush() error {
	_, err := e.w.Write((*e.buf)[:e.n])
	e.n = 0
	return err
}

// plain writes a character as it is. Only before the first Write and after the last one.
func (e *encoder) plain(c byte) error {
	if err := e.room(); err != nil {
		return err
	}
	(*e.buf)[e.n] = c
	e.n++
	return nil
}

// pad encodes the last group if it is not complete.
func (e *encoder) pad() error {
	if e.have == 0 {
		return nil
	}
	if err := e.room(); err != nil {
		return err
	}
	fast.StdEncoding.Encode((*e.buf)[e.n:], e.spare[:e.have])
	e.n, e.have = e.n+4, 0
	return nil
}

// end writes what is left.
func (e *encoder) end() error {
	if err := e.pad(); err != nil {
		return err
	}
	return e.flush()
}
