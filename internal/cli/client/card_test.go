// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/tamgatest"
)

// TestCardOfServer has a server make cards: by the command, and by the interface. A report is stored when it is asked for.
func TestCardOfServer(t *testing.T) {
	s := tamgatest.Start(t)
	dir := t.TempDir()
	letter := tamgatest.WriteFile(t, filepath.Join(dir, "письмо.txt"), "Hello")
	s.MustRun("sign", letter, "--data", s.Dir)
	card := filepath.Join(dir, "card.pdf")
	s.MustRun("card", "make", letter, "--report", "-o", card, "--data", s.Dir)
	var opened struct {
		Report, Address string
		Changes         []any
		Files           []struct{ Name, File string }
		Verified        []struct{ Verdict string }
	}
	if err := json.Unmarshal([]byte(s.MustRun("card", "open", card, "--json", "--data", s.Dir)), &opened); err != nil {
		t.Fatal(err)
	}
	if len(opened.Files) != 2 || opened.Files[0].Name != "письмо.txt" || len(opened.Changes) != 0 || len(opened.Verified) != 1 || opened.Verified[0].Verdict != "passed" || opened.Report == "" {
		t.Fatalf("%+v", opened)
	}
	for i, want := range []string{letter, letter + ".sig"} {
		if !bytes.Equal(tamgatest.ReadFile(t, opened.Files[i].File), tamgatest.ReadFile(t, want)) {
			t.Errorf("%s is not what was attached", opened.Files[i].File)
		}
	}
	// The code leads everybody to the report.
	if status, page := s.Do(t.Context(), http.MethodGet, opened.Address, "", nil); status != http.StatusOK || !strings.Contains(string(page), "письмо.txt") {
		t.Errorf("%s: %d %s", opened.Address, status, page)
	}
	// An encrypted PDF with its signature inside needs its password, on the server and without one.
	plain, err := judge.PDF(t).QPDF(tamgatest.PDFOf(2000), "--encrypt", "тайна", "owner", "256", "--")
	if err != nil {
		t.Fatal(err)
	}
	locked := tamgatest.WriteFile(t, filepath.Join(dir, "locked.pdf"), string(plain))
	password := tamgatest.WriteFile(t, filepath.Join(dir, "password"), "тайна\n")
	inside := filepath.Join(dir, "inside.pdf")
	s.MustRun("sign", locked, "--type", "PDF", "--param", "PDFFormat=CMS", "--param", "PDFPassword=тайна", "-o", inside, "--data", s.Dir)
	for _, way := range []string{"--json", "--offline"} {
		if r := tamgatest.Run(t.Context(), "", "card", "make", inside, way, "-o", card, "--force", "--data", s.Dir); r.Code == 0 || !strings.Contains(fmt.Sprint(r.Failure), "PDFPassword") {
			t.Errorf("%s without the password: %d %v", way, r.Code, r.Failure)
		}
		s.MustRun("card", "make", inside, way, "-o", card, "--force", "--pdf-password-file", password, "--data", s.Dir)
		opened.Verified = nil
		out := s.MustRun("card", "open", card, "--json", "-o", filepath.Join(dir, way[2:]), "--password-file", password, "--data", s.Dir)
		if err := json.Unmarshal([]byte(out), &opened); err != nil || len(opened.Verified) != 1 || opened.Verified[0].Verdict != "passed" {
			t.Errorf("%s: %v %s", way, err, out)
		}
	}
	coded := base64.StdEncoding.EncodeToString(tamgatest.ReadFile(t, letter+".sig"))
	file := func(name, content string) map[string]any { return map[string]any{"Name": name, "Content": content} }
	signature := []any{file("", coded)}
	token := s.Token()
	if status, body := s.Call(http.MethodPost, "/api/tamga/card", token, map[string]any{"Document": file("a.txt", "SGVsbG8="), "Signatures": signature}); status != http.StatusOK || !bytes.HasPrefix(body, []byte("%PDF-")) || bytes.Contains(body, []byte("/Address")) {
		t.Errorf("%d %.200s", status, body)
	}
	for name, test := range map[string]struct {
		body   map[string]any
		status int
		says   string
	}{
		"no document":         {map[string]any{"Signatures": signature}, 400, "Document.Content is missing"},
		"an empty signature":  {map[string]any{"Document": file("a.txt", "SGVsbG8="), "Signatures": []any{file("a", "")}}, 400, "Signatures[0].Content is missing"},
		"no signature":        {map[string]any{"Document": file("a.txt", "SGVsbG8=")}, 400, "has no signature"},
		"another document":    {map[string]any{"Document": file("a.txt", "SGVsbG9v"), "Signatures": signature}, 400, "does not hold"},
		"no signature at all": {map[string]any{"Document": file("a.txt", "SGVsbG8="), "Signatures": []any{file("b.txt", "SGVsbG8=")}}, 400, "is no signature with"},
		"a signature alone":   {map[string]any{"Document": file("a.sig", coded)}, 400, "without its document"},
		"another language":    {map[string]any{"Document": file("a.txt", "SGVsbG8="), "Signatures": signature, "Language": "de"}, 400, "Language"},
		"half a report":       {map[string]any{"Document": file("a.txt", "SGVsbG8="), "Signatures": signature, "Report": "perhaps"}, 400, "Report"},
	} {
		if status, body := s.Call(http.MethodPost, "/api/tamga/card", token, test.body); status != test.status || !strings.Contains(string(body), test.says) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if status, _ := s.Call(http.MethodPost, "/api/tamga/card", "", map[string]any{"Document": file("a.txt", "SGVsbG8="), "Signatures": signature}); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d", status)
	}
}
