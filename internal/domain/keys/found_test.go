// SPDX-License-Identifier: Apache-2.0

package keys_test

import (
	"bytes"
	"testing"

	"tamga/internal/domain/keys"
)

func TestSeekSerial(t *testing.T) {
	for text, c := range map[string]struct{ in, out []byte }{
		"4a 01:ff-0":   {[]byte{0x4a, 1, 0xff, 0x0f, 9}, []byte{0x4a, 1, 0xff, 0x10}},
		"4A01FF":       {[]byte{0x4a, 1, 0xff}, []byte{0x4a, 2, 0}},
		"ffffff":       {[]byte{0xff, 0xff, 0xff, 0xff}, []byte{0xff, 0xff, 0xfe}},
		"fffffff":      {[]byte{0xff, 0xff, 0xff, 0xf0}, []byte{0xff, 0xff, 0xff, 0xef}},
		"12345":        {},
		"12345g":       {},
		"Петров 12345": {},
	} {
		var s keys.Sought
		s.SeekSerial(text)
		has := func(serial []byte) bool {
			return s.SerialFrom != nil && bytes.Compare(serial, s.SerialFrom) >= 0 && bytes.Compare(serial, s.SerialUntil) < 0
		}
		if c.in == nil && s.SerialFrom != nil || c.in != nil && (!has(c.in) || has(c.out)) {
			t.Errorf("%q: from %x until %x", text, s.SerialFrom, s.SerialUntil)
		}
	}
}
