// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"bytes"
	"encoding/asn1"
	"math"
	"testing"
)

// Headers of every length and identifiers of every size equal those of the standard
// library, whatever the initial capacity of the writer.
func TestWriter(t *testing.T) {
	for _, size := range []int{0, 1, 127, 128, 255, 256, 65535, 65536, 1 << 20} {
		contents := bytes.Repeat([]byte{7}, size)
		want, err := asn1.Marshal([]asn1.RawValue{{Tag: asn1.TagOctetString, Bytes: contents}, {Tag: asn1.TagNull}})
		if err != nil {
			t.Fatal(err)
		}
		for _, room := range []int{0, 1, size, size + 20} {
			w := newWriter(room)
			w.addAll([][]byte{wrap(tagOctetString, contents), {tagNull, 0}})
			w.close(tagSequence, 0)
			if !bytes.Equal(w.der(), want) {
				t.Errorf("%d bytes in room of %d: another encoding", size, room)
			}
			w = newWriter(room)
			w.wrap(tagNull, nil)
			w.wrap(tagOctetString, contents)
			w.close(tagSequence, 0)
			if !bytes.Equal(w.der(), want) {
				t.Errorf("%d bytes in room of %d, one by one: another encoding", size, room)
			}
		}
	}
	for _, oid := range []asn1.ObjectIdentifier{
		{0, 0}, {0, 39}, {1, 2}, {2, 0}, {2, 47}, {2, 48}, {2, 999, 1}, {1, 2, 643, 7, 1, 1, 3, 2}, {0, 4, 0, 1733, 2, 4},
		{1, 2, 127, 128, 16383, 16384, 1<<21 - 1, 1 << 21, math.MaxInt32}, append(asn1.ObjectIdentifier{1, 2}, make([]int, 200)...),
	} {
		want, err := asn1.Marshal(oid)
		if err != nil {
			t.Fatal(err)
		}
		if got := marshalOID(oid); !bytes.Equal(got, want) {
			t.Errorf("%v: %x, want %x", oid, got, want)
		}
	}
	for _, oid := range []asn1.ObjectIdentifier{nil, {1}, {3, 1}, {0, 40}, {-1, 1}, {1, -1}, {1, 2, -3}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v is encoded", oid)
				}
			}()
			marshalOID(oid)
		}()
	}
}

// Skipped bytes count in the headers around them and are not written.
func TestWriterOutside(t *testing.T) {
	w := newWriter(0)
	w.wrap(tagOctetString, []byte("after"))
	mark := w.len()
	w.skip(1 << 33)
	w.close(tagOctetString, mark)
	w.close(tagSequence, 0)
	if want := append([]byte{tagSequence, 0x85, 2, 0, 0, 0, 14, tagOctetString, 0x85, 2, 0, 0, 0, 0}, "\x04\x05after"...); !bytes.Equal(w.der(), want) {
		t.Errorf("%x, want %x", w.der(), want)
	}
}
