// SPDX-License-Identifier: Apache-2.0

package signapi_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tamga/internal/tamgatest"
)

// TestBadInput sends what goes wrong in practice and in malice, and looks at
// status, code, and that the server's directory holds no file more than before.
func TestBadInput(t *testing.T) {
	t.Parallel()
	server := tamgatest.StartProcess(t, t.TempDir(), "--set", "limits.signing_request=4MiB")
	token := server.Token()
	good := server.Cert("gost2012-256", false).ID
	withPIN := server.Cert("gost2012-256", true)

	// A second user with a certificate of his own, one of it revoked.
	secret := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(secret, []byte("correct horse battery staple"), 0o600); err != nil {
		t.Fatal(err)
	}
	server.MustRun("user", "add", "other", "--group", "Default", "--password-file", secret, "--data", server.Dir)
	var issued struct {
		ID int64 `json:"id"`
	}
	issue := func(login string) int64 {
		t.Helper()
		out := server.MustRun("cert", "issue", login, "--suite", "gost2012-256", "--json", "--data", server.Dir)
		if err := json.Unmarshal([]byte(out), &issued); err != nil || issued.ID == 0 {
			t.Fatalf("cert issue printed %q: %v", out, err)
		}
		return issued.ID
	}
	foreign, revoked := issue("other"), issue("demo")
	server.MustRun("cert", "revoke", fmt.Sprint(revoked), "--data", server.Dir)

	body := func(content any, signature map[string]any) string {
		m := map[string]any{"Signature": signature}
		if content != nil {
			m["Content"] = content
		}
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	signature := func(kind string, params map[string]any, cert any, pin string) map[string]any {
		return map[string]any{"Type": kind, "Parameters": params, "CertificateId": cert, "PinCode": pin}
	}
	raw := func(content any) string {
		return body(content, signature("GOST3410", map[string]any{"Hash": "False"}, good, ""))
	}
	params := func(kind string, more ...any) string {
		m := map[string]any{}
		for i := 0; i < len(more); i += 2 {
			m[more[i].(string)] = more[i+1]
		}
		return body("ZG9j", signature(kind, m, good, ""))
	}
	large := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("large"), 1<<18))
	hash32 := base64.StdEncoding.EncodeToString(make([]byte, 32))

	cases := []struct {
		name   string
		body   string
		status int
		code   string
		says   string // must occur in the description
	}{
		{"no content", body(nil, signature("GOST3410", map[string]any{}, good, "")), 400, "content_required", ""},
		{"empty content", raw(""), 400, "content_required", ""},
		{"content is null", `{"Content":null,"Signature":{"Type":"GOST3410"}}`, 400, "content_required", ""},
		{"empty body", "", 400, "content_required", ""},
		{"broken Base64", raw("####"), 400, "invalid_content", "Content"},
		{"Base64 of a wrong length", raw("ZG9jd"), 400, "invalid_content", ""},
		{"broken Base64 in the middle of a large document", raw(large[:600000] + "!" + large[600001:]), 400, "invalid_content", ""},
		{"padding in the middle of a large document", raw(large[:600000] + "====" + large[600004:]), 400, "invalid_content", ""},
		{"broken JSON", `{"Content":"ZG9j",}`, 400, "invalid_parameters", ""},
		{"truncated JSON", `{"Content":"ZG9j","Signature":{"Type":"GOST3410"`, 400, "invalid_parameters", ""},
		{"truncated inside a large document", `{"Content":"` + large, 400, "invalid_parameters", ""},
		{"JSON that nests without end", `{"x":` + strings.Repeat("[", 200000), 400, "invalid_parameters", ""},
		{"two documents after each other", raw("ZG9j") + raw("ZG9j"), 400, "invalid_parameters", ""},
		{"an array instead of an object", `[1,2,3]`, 400, "invalid_parameters", ""},
		{"unknown type", body("ZG9j", signature("PGP", map[string]any{}, good, "")), 400, "invalid_signature_params", "Type"},
		{"no type", body("ZG9j", map[string]any{"CertificateId": good}), 400, "invalid_signature_params", "Type"},
		{"Hash is no boolean", params("GOST3410", "Hash", "perhaps"), 400, "invalid_signature_params", "Hash"},
		{"hash of a wrong length", params("GOST3410", "Hash", "True"), 400, "invalid_signature_params", "32"},
		{"unknown CADESType", params("CAdES", "CADESType", "LTV"), 400, "invalid_signature_params", "CADESType"},
		{"several wrong parameters", params("CAdES", "CADESType", "LTV", "IsDetached", "maybe"), 400, "invalid_signature_params", "IsDetached"},
		{"a hash cannot be attached", body(hash32, signature("CAdES", map[string]any{"Hash": "True", "IsDetached": "False"}, good, "")), 400, "invalid_signature_params", "IsDetached"},
		{"T without TSPAddress", params("CAdES", "CADESType", "T"), 400, "invalid_signature_params", "TSPAddress"},
		{"XLT1 without TSPAddress", params("CAdES", "CADESType", "XLT1"), 400, "invalid_signature_params", "TSPAddress"},
		{"cosignature over a hash of another algorithm", params("CAdES", "Hash", "True", "CmsSignatureType", "Cosign", "OriginalDocument", hash32, "HashAlgorithm", "MD2"), 400, "invalid_signature_params", "HashAlgorithm"},
		{"XMLDSig without XMLDsigType", params("XMLDSig"), 400, "invalid_signature_params", "XMLDsigType"},
		{"PDF without PDFFormat", params("PDF"), 400, "invalid_signature_params", "PDFFormat"},
		{"unknown certificate", body("ZG9j", signature("GOST3410", map[string]any{}, 999999, "")), 400, "invalid_certificate", ""},
		{"certificate is no number", body("ZG9j", signature("GOST3410", map[string]any{}, "abc", "")), 400, "invalid_certificate", ""},
		{"another user's certificate", body("ZG9j", signature("GOST3410", map[string]any{}, foreign, "")), 400, "invalid_certificate", ""},
		{"revoked certificate", body("ZG9j", signature("GOST3410", map[string]any{}, revoked, "")), 400, "invalid_certificate", ""},
		{"wrong PIN", body("ZG9j", signature("GOST3410", map[string]any{}, withPIN.ID, withPIN.PIN+"1")), 400, "invalid_pin", ""},
		{"over the limit", raw(strings.Repeat("QUJD", 2<<20)), 413, "max_request_length_exceeded", ""},
	}
	descriptions := map[string]string{}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			status, answer := server.Post(token, strings.NewReader(c.body))
			var e struct {
				Message     string `json:"Message"`
				Error       string `json:"error"`
				Description string `json:"error_description"`
			}
			if err := json.Unmarshal(answer, &e); err != nil {
				t.Fatalf("%d %s: %v", status, answer, err)
			}
			if status != c.status || e.Error != c.code || e.Message != c.code || !strings.Contains(e.Description, c.says) {
				t.Errorf("got %d %s; want %d %s and %q in the description", status, answer, c.status, c.code, c.says)
			}
			descriptions[c.name] = e.Description
		})
	}
	if a, b := descriptions["unknown certificate"], descriptions["another user's certificate"]; a != b {
		t.Errorf("an answer tells that a certificate exists for another user: %q and %q", a, b)
	}

	t.Run("over the limit without Content-Length", func(t *testing.T) {
		body := io.MultiReader(strings.NewReader(`{"Content":"`), strings.NewReader(strings.Repeat("QUJD", 2<<20)))
		status, answer := server.Post(token, body)
		if status != 413 {
			t.Errorf("got %d %s; want 413", status, answer)
		}
	})
	t.Run("tokens", func(t *testing.T) {
		header, rest, _ := strings.Cut(token, ".")
		claims, _, _ := strings.Cut(rest, ".")
		none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`))
		for name, bearer := range map[string]string{
			"none": "", "nonsense": "abc", "no signature": header + "." + claims + ".", "algorithm none": none + "." + claims + ".",
			"changed": token[:len(token)-4] + "AAAA",
		} {
			status, answer := server.Post(bearer, strings.NewReader(raw("ZG9j")))
			if status != 401 {
				t.Errorf("%s: got %d %s; want 401", name, status, answer)
			}
		}
	})
	t.Run("no default certificate", func(t *testing.T) {
		server.MustRun("user", "add", "bare", "--group", "Default", "--password-file", secret, "--data", server.Dir)
		bare := server.TokenOf("bare", "correct horse battery staple")
		status, answer := server.Post(bare, strings.NewReader(body("ZG9j", signature("GOST3410", map[string]any{}, 0, ""))))
		if status != 400 || !strings.Contains(string(answer), "invalid_certificate") {
			t.Errorf("got %d %s; want 400 invalid_certificate", status, answer)
		}
		server.MustRun("user", "logout", "bare", "--data", server.Dir)
		if status, answer := server.Post(bare, strings.NewReader(raw("ZG9j"))); status != 401 {
			t.Errorf("a revoked token is answered %d %s; want 401", status, answer)
		}
	})
	t.Run("policy and lock", func(t *testing.T) {
		other := server.TokenOf("other", "correct horse battery staple")
		own := body("ZG9j", signature("GOST3410", map[string]any{}, foreign, ""))
		server.MustRun("user", "deny", "other", "SignDocument", "--data", server.Dir)
		if status, answer := server.Post(other, strings.NewReader(own)); status != 403 {
			t.Errorf("forbidden by policy: got %d %s; want 403", status, answer)
		}
		server.MustRun("user", "allow", "other", "SignDocument", "--data", server.Dir)
		if status, answer := server.Post(other, strings.NewReader(own)); status != 200 {
			t.Errorf("allowed again: got %d %s; want 200", status, answer)
		}
		server.MustRun("user", "lock", "other", "--data", server.Dir)
		if status, answer := server.Post(other, strings.NewReader(own)); status != 401 {
			t.Errorf("a locked user is answered %d %s; want 401", status, answer)
		}
	})
	t.Run("a client that hangs up", func(t *testing.T) {
		hangUp := errors.New("hung up")
		for range 20 {
			body := io.MultiReader(strings.NewReader(`{"Content":"`+large[:900000]), brokenOff{hangUp})
			request, err := http.NewRequest("POST", server.Dev.BaseURL+"/api/documents", body)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", "Bearer "+token)
			if response, err := http.DefaultClient.Do(request); err == nil {
				response.Body.Close()
			}
		}
		if status, answer := server.Post(token, strings.NewReader(raw("ZG9j"))); status != 200 {
			t.Fatalf("the server answers %d %s after clients hung up", status, answer)
		}
	})
	// The handler of a request that hung up may still be on its way out.
	deadline := time.Now().Add(10 * time.Second)
	for openSpoolFiles(server) > 0 && time.Now().Before(deadline) {
		server.Token()
	}
	if n := openSpoolFiles(server); n > 0 {
		t.Errorf("%d spool files are still held open", n)
	}
	left, err := os.ReadDir(server.Path("spool"))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("the spool directory still holds %v", left)
	}
}

type brokenOff struct{ err error }

func (f brokenOff) Read([]byte) (int, error) { return 0, f.err }

// openSpoolFiles counts the spool files the server holds open, unlinked or not.
func openSpoolFiles(p *tamgatest.Server) int {
	p.T.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", p.Process().Pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		p.T.Skipf("open files cannot be listed here: %v", err)
	}
	n := 0
	for _, e := range entries {
		if target, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && strings.Contains(target, ".spool") {
			n++
		}
	}
	return n
}
