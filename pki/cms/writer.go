// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"encoding/asn1"
	"fmt"

	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/suite"
)

// writer writes DER from the last byte to the first: it writes the header of an element
// after the contents, so it knows lengths without measuring and copies nothing. Each method
// writes in front of what was written before. The zero writer is ready to use.
type writer struct {
	buf     []byte
	at      int   // buf[at:] is written
	outside int64 // bytes that the caller inserts between the parts
}

// newWriter returns a writer with room for n bytes. More may be written.
func newWriter(n int) writer { return writer{buf: make([]byte, n), at: n} }

// len returns the number of bytes written, including those of skip. Call it before writing
// the contents of an element to get the mark for close.
func (w *writer) len() int64 { return int64(len(w.buf)-w.at) + w.outside }

// der returns what was written, without the bytes of skip.
func (w *writer) der() []byte { return w.buf[w.at:] }

// since returns what was written since mark, which must not include bytes of skip. Later
// writes do not change it.
func (w *writer) since(mark int64) []byte { return w.der()[:w.len()-mark] }

// front makes room for n bytes and returns it.
func (w *writer) front(n int) []byte {
	if n > w.at {
		have := len(w.buf) - w.at
		grown := make([]byte, 2*len(w.buf)+n)
		at := len(grown) - have
		copy(grown[at:], w.buf[w.at:])
		w.buf, w.at = grown, at
	}
	w.at -= n
	return w.buf[w.at : w.at+n]
}

// add writes bytes unchanged.
func (w *writer) add(b []byte) { copy(w.front(len(b)), b) }

// addAll writes whole elements in their order.
func (w *writer) addAll(elements [][]byte) {
	for i := len(elements) - 1; i >= 0; i-- {
		w.add(elements[i])
	}
}

// skip counts n bytes that the caller inserts.
func (w *writer) skip(n int64) { w.outside += n }

// put writes one byte.
func (w *writer) put(b byte) { w.front(1)[0] = b }

// close writes the header of an element whose contents were written since mark.
func (w *writer) close(tag byte, mark int64) {
	length := w.len() - mark
	if length < 0x80 {
		w.put(byte(length))
	} else {
		n := byte(0)
		for ; length > 0; length >>= 8 {
			w.put(byte(length))
			n++
		}
		w.put(0x80 | n)
	}
	w.put(tag)
}

// wrap writes an element with the contents.
func (w *writer) wrap(tag byte, contents []byte) {
	mark := w.len()
	w.add(contents)
	w.close(tag, mark)
}

// number writes an INTEGER from 0 to 127.
func (w *writer) number(n byte) { copy(w.front(3), []byte{tagInteger, 1, n}) }

// oid writes an identifier of this program or of a parsed structure. Those can always be
// encoded.
func (w *writer) oid(oid asn1.ObjectIdentifier) {
	if len(oid) < 2 || oid[0] < 0 || oid[0] > 2 || oid[1] < 0 || oid[0] < 2 && oid[1] > 39 {
		panic(fmt.Sprintf("cms: %v is not an object identifier", oid))
	}
	// Arcs in groups of seven bits, the highest first, all but the last with the top
	// bit; the first two arcs are one number.
	mark := w.len()
	for i := len(oid) - 1; i > 0; i-- {
		if oid[i] < 0 {
			panic(fmt.Sprintf("cms: %v is no object identifier", oid))
		}
		n := uint64(oid[i])
		if i == 1 {
			n += 40 * uint64(oid[0])
		}
		w.put(byte(n) & 0x7f)
		for n >>= 7; n > 0; n >>= 7 {
			w.put(byte(n) | 0x80)
		}
	}
	w.close(byte(cbasn1.OBJECT_IDENTIFIER), mark)
}

// algorithm writes an AlgorithmIdentifier with parameters NULL or without any.
func (w *writer) algorithm(oid asn1.ObjectIdentifier, null bool) {
	mark := w.len()
	if null {
		copy(w.front(2), []byte{tagNull, 0})
	}
	w.oid(oid)
	w.close(tagSequence, mark)
}

// digestAlgorithm writes the AlgorithmIdentifier of a digest: with NULL for
// 34.11-94 as RFC 4490 has it, without parameters for the others.
func (w *writer) digestAlgorithm(h *suite.Hash) { w.algorithm(h.OID, h.NullParams) }

// marshalOID is one identifier by itself.
func marshalOID(oid asn1.ObjectIdentifier) []byte {
	w := newWriter(2 + 5*len(oid))
	w.oid(oid)
	return w.der()
}
