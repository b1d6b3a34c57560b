// SPDX-License-Identifier: Apache-2.0

package svsapi_test

import (
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
)

// A PDF of 1.6 KB whose cross-references are compressed twice, to 800 MB, is refused within 8 MiB.
func TestSmallDocumentStaysSmall(t *testing.T) {
	server := tamgatest.Start(t)
	data, err := os.ReadFile("testdata/nested-flate.json")
	if err != nil {
		t.Fatal(err)
	}
	ask := func() {
		status, body := server.AskSVS("POST", "/api/signatures", json.RawMessage(data))
		if status != 400 || !strings.Contains(string(body), "invalid_content") {
			t.Errorf("%d %s", status, body)
		}
	}
	ask() // what the first call allocates once
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ask()
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
		t.Errorf("%d MiB were allocated", took>>20)
	}
}
