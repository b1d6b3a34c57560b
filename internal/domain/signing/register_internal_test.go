// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"tamga/internal/domain/audit"
)

// TestSignedEntry: an audit entry has the whole JSON of a document, however long its name is.
func TestSignedEntry(t *testing.T) {
	for _, name := range []string{"", "a.txt", strings.Repeat("ф", 255), strings.Repeat(`"<`, 512), strings.Repeat("\u2028", 300)} {
		e := signedEntry{
			Document: strings.Repeat("d", 36), Name: name, Size: 1 << 40, Hash: "GOST R 34.11-2012 512", Digest: strings.Repeat("f", 128), Certificate: 1 << 40, Type: "CAdES",
			Original: strings.Repeat("o", 36), Result: strings.Repeat("r", 36), Method: "otpviasms", Label: strings.Repeat("л", 100),
		}
		text := detailsOf([]signedEntry{e})[0]
		var list []signedEntry
		if err := json.Unmarshal([]byte(text), &list); err != nil || len(text) > maxDetail || len(list) != 1 {
			t.Fatalf("%d bytes of a name become %d bytes, %v", len(name), len(text), err)
		}
		got := list[0]
		if !strings.HasPrefix(name, got.Name) || !utf8.ValidString(got.Name) || len(name) < 200 && got.Name != name || got.Digest != e.Digest || got.Result != e.Result {
			t.Errorf("%.40q becomes %+v", name, got)
		}
	}
}

// TestDetails has many documents in few entries: each is in one as a whole, and they keep their order.
func TestDetails(t *testing.T) {
	var made []signedEntry
	for i := range 200 {
		made = append(made, signedEntry{Document: strconv.Itoa(i), Name: strings.Repeat("n", i*7%300), Size: int64(i), Certificate: 1, Type: "CAdES"})
	}
	var got []Signature
	details := detailsOf(made)
	for _, detail := range details {
		if len(detail) > maxDetail {
			t.Errorf("a detail of %d bytes", len(detail))
		}
		got = append(got, signaturesOf(&audit.Entry{Operation: AuditSignature, Detail: detail})...)
	}
	if len(got) != len(made) || len(details) > len(made)/3 || len(detailsOf(nil)) != 0 {
		t.Fatalf("%d documents become %d in %d entries", len(made), len(got), len(details))
	}
	for i, s := range got {
		if s.Document != made[i].Document || s.Name != made[i].Name || s.Size != made[i].Size {
			t.Errorf("document %d becomes %+v", i, s)
		}
	}
}

// TestDirectly reads the entries of requests that signed without an operation: they name their certificate.
func TestDirectly(t *testing.T) {
	for object, want := range map[string]int64{"certificate 7": 7, "certificate 7, 3 documents, 1 of them refused": 7, "default certificate": 0, "": 0, "certificate x": 0, "certificate 99999999999999999999": 0} {
		list := signaturesOf(&audit.Entry{Operation: "SignDocument", Outcome: audit.OK, Object: object})
		if len(list) != 1 || list[0].Certificate != want {
			t.Errorf("%q: %+v, want the certificate %d", object, list, want)
		}
		q := RegisterQuery{Certificate: 7}
		fits, err := q.fits()
		if err != nil || fits(&list[0]) != (want == 7) {
			t.Errorf("%q is found by the certificate 7: %t, %v", object, want != 7, err)
		}
	}
	if list := signaturesOf(&audit.Entry{Operation: "SignDocument", Outcome: audit.OK, Object: "operation 1"}); len(list) != 0 {
		t.Errorf("the entry of an operation is a signature, too: %+v", list)
	}
}
