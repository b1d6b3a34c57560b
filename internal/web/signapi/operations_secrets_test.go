// SPDX-License-Identifier: Apache-2.0

package signapi_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tamga/internal/judge"
	"tamga/internal/tamgatest"
)

// TestV2SecretParameters: the password of a PDF document is used at once and later, and
// is not found in the operation or in the database.
func TestV2SecretParameters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key, settings := asynchronous(t, dir)
	c := openV2(t, dir, settings...)
	r := newReceiver(t, key)
	const password = "open-sesame-4711"
	encrypted, err := judge.PDF(t).QPDF(tamgatest.PDFOf(10), "--encrypt", password, "owner", "256", "--")
	if err != nil {
		t.Fatal(err)
	}
	order := fields{
		"BinaryData": []fields{inline("a.pdf", encrypted)},
		"Signature":  fields{"Type": "PDF", "Parameters": fields{"PDFFormat": "CMS", "pdfpassword ": password}},
	}
	c.operation(order)
	order["IsAsync"], order["Callback"] = true, r.URL
	waiting := c.operation(order)
	var called typedOperation
	select {
	case called = <-r.calls:
	case <-time.After(tamgatest.Patience):
		t.Fatalf("no callback came\n%s", c.Logged())
	}
	if called.Status != "Completed" || !bytes.HasPrefix(called.Result.ProcessedDocuments[0].Content, []byte("%PDF")) {
		t.Errorf("%+v", called)
	}
	status, text := c.send("GET", c.Dev.IDPURL+"/operations/"+waiting.ID.String(), nil)
	if status != 200 || !strings.Contains(string(text), "PDFFormat") || strings.Contains(string(text), password) {
		t.Errorf("the operation shows %d %s", status, text)
	}
	for _, name := range []string{"tamga.db", "tamga.db-wal"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil && bytes.Contains(data, []byte(password)) {
			t.Errorf("%s holds the password", name)
		}
	}
	if strings.Contains(c.Logged(), password) {
		t.Error("the log holds the password")
	}
}
