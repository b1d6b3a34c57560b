// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"testing"
)

func TestSumMany(t *testing.T) {
	var messages [][]byte
	for i := range 40 {
		messages = append(messages, bytes.Repeat([]byte{byte(i)}, i*7))
	}
	for _, h := range hashes {
		sums := h.SumMany(messages)
		if len(sums) != len(messages) {
			t.Fatalf("%s: %d digests of %d messages", h.Name, len(sums), len(messages))
		}
		for i, m := range messages {
			one := h.New()
			one.Write(m)
			if sums[i].Hash != h || !bytes.Equal(sums[i].Sum, one.Sum(nil)) {
				t.Errorf("%s: message %d has another digest among others than alone", h.Name, i)
			}
		}
	}
}
