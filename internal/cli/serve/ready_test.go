// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tamga/internal/cli"
)

// TestReady asks servers that are ready, not ready, not tamga, and not there.
func TestReady(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		status int
		body   string
		tls    bool
		other  bool // the file has another certificate
		want   string
		fails  string
	}{
		{name: "ready", status: 200, body: `{"status":"ready","parts":{"database":"ready"}}`, want: "ready\n"},
		{name: "tls", status: 200, body: `{"status":"ready"}`, tls: true, want: "ready\n"},
		{name: "another certificate", status: 200, body: `{"status":"ready"}`, tls: true, other: true, fails: "another certificate"},
		{name: "not ready", status: 503, body: `{"status":"unavailable","parts":{"database":"unavailable","documents":"ready"}}`, want: "unavailable (database: unavailable)\n", fails: "exit code 1"},
		{name: "stopping", status: 503, body: `{"status":"stopping"}`, want: "stopping\n", fails: "exit code 1"},
		{name: "another program", status: 200, body: `hello`, fails: "is not an answer of tamga"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/readyz" {
					w.WriteHeader(http.StatusNotFound)
					return
				}
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			}))
			start := server.Start
			if c.tls {
				start = server.StartTLS
			}
			start()
			defer server.Close()
			dir := t.TempDir()
			text := fmt.Sprintf("listen: %s\n", server.Listener.Addr())
			if c.tls {
				block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
				if c.other {
					block.Bytes = append(block.Bytes[:len(block.Bytes):len(block.Bytes)], 0)
				}
				if err := os.WriteFile(filepath.Join(dir, "tls.pem"), pem.EncodeToMemory(block), 0o600); err != nil {
					t.Fatal(err)
				}
				text += "tls: {certificate_file: tls.pem, key_file: tls.key}\n"
			}
			file := filepath.Join(dir, "tamga.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			err := (&Ready{Config: file}).Run(&cli.Console{Context: t.Context(), Stdout: &out, Stderr: t.Output()})
			if out.String() != c.want || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("prints %q, %v", out.String(), err)
			}
		})
	}
	err := (&Ready{Set: []string{"listen=127.0.0.1:0"}}).Run(&cli.Console{Context: t.Context(), Stdout: t.Output(), Stderr: t.Output()})
	if err == nil || !strings.Contains(err.Error(), "has no fixed port") {
		t.Errorf("port 0: %v", err)
	}
}
