// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"bytes"
	"errors"
	"testing"
)

// What is read into memory is charged before, and a refusal ends the reading.
func TestParseWithin(t *testing.T) {
	message := rewrite(t, small(t), Changes{Certificates: [][]byte{wrap(tagSequence, make([]byte, 1<<20))}})
	var held int64
	if _, err := ParseWithin(bytes.NewReader(message), int64(len(message)), func(n int64) error { held += n; return nil }); err != nil || held < 1<<20 || held > 2<<20 {
		t.Errorf("%d bytes were charged, %v", held, err)
	}
	full := errors.New("full")
	if _, err := ParseWithin(bytes.NewReader(message), int64(len(message)), func(n int64) error {
		if n >= 1<<20 {
			return full
		}
		return nil
	}); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
}
