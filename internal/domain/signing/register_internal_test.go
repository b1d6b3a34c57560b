// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestSignedEntry: an audit entry has the whole JSON of a document, however long its name is.
func TestSignedEntry(t *testing.T) {
	for _, name := range []string{"", "a.txt", strings.Repeat("ф", 255), strings.Repeat(`"<`, 512), strings.Repeat("\u2028", 300)} {
		e := signedEntry{
			Document: strings.Repeat("d", 36), Name: name, Size: 1 << 40, Hash: "GOST R 34.11-2012 512", Digest: strings.Repeat("f", 128), Certificate: 1 << 40, Type: "CAdES",
			Original: strings.Repeat("o", 36), Result: strings.Repeat("r", 36), Method: "otpviasms", Label: strings.Repeat("л", 100),
		}
		text := e.text()
		var got signedEntry
		if err := json.Unmarshal([]byte(text), &got); err != nil || len(text) > maxDetail || text == "" {
			t.Fatalf("%d bytes of a name become %d bytes, %v", len(name), len(text), err)
		}
		if !strings.HasPrefix(name, got.Name) || !utf8.ValidString(got.Name) || len(name) < 200 && got.Name != name || got.Digest != e.Digest || got.Result != e.Result {
			t.Errorf("%.40q becomes %+v", name, got)
		}
	}
}
