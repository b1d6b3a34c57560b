// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
)

const (
	alertRules = "../../packaging/prometheus/tamga.rules.yaml"
	dashboard  = "../../packaging/grafana/tamga.json"
)

// TestMetrics uses a server, scrapes it, and looks for every metric that the alert rules and the
// dashboard name.
func TestMetrics(t *testing.T) {
	t.Parallel()
	p := tamgatest.Start(t)
	if status, _ := p.Grant("unknown", "wrong"); status == 200 {
		t.Fatal("a wrong password was accepted")
	}
	token := p.Token()
	for _, suite := range []string{"gost2012-256", "rsa-sha256"} {
		for _, c := range p.Dev.Certificates {
			if c.Suite == suite && c.PIN == "" {
				p.Signed("POST", "/rest/api/documents", token, tamgatest.Request([]byte("a document"), "CAdES", c.ID, tamgatest.Parameters{"CADESType": "BES"}))
				break // another one may be for encryption, too
			}
		}
	}
	p.Command("message", "list")
	status, scrape := get(t, p.URL+"/metrics")
	if status != 200 {
		t.Fatalf("%d %s", status, scrape)
	}
	for _, line := range []string{
		`tamga_signatures_total{suite="gost2012-256",type="CAdES"} 1`,
		`tamga_sign_ins_total{outcome="ok",route="Token"} 1`,
		`tamga_sign_ins_total{outcome="invalid_grant",route="Token"} 1`,
		`tamga_waiting{kind="messages"} 0`,
		`tamga_closed 0`,
		`tamga_document_memory_bytes{state="most"} 4.02653184e+08`,
		`tamga_document_memory_waiting 0`,
		`tamga_document_memory_refused_total 0`,
		`tamga_http_reset_connections_total 0`,
		`tamga_user_certificates_ending{within="1d"} 0`,
		`tamga_user_certificates_ending{within="7d"} 0`,
		`tamga_user_certificates_ending{within="30d"} 0`,
		`tamga_token_key_created_seconds 1`,
		`tamga_database_connections{state="most"} 9`,
		`tamga_build_info{`,
		`tamga_certificate_not_after_seconds{name="gost-root"}`,
	} {
		if !strings.Contains(string(scrape), line) {
			t.Errorf("the scrape has no line %s", line)
		}
	}
	// Metrics with labels appear when the first event is counted.
	later := []string{"tamga_messages_total", "tamga_evidence_requests_total", "tamga_evidence_request_seconds"}
	manuals := []string{"../../docs/operations.md", "../../docs/ru/operations.md"}
	for _, file := range append([]string{alertRules, dashboard}, manuals...) {
		names := regexp.MustCompile(`\b(tamga|process|go)_[a-z_]+`).FindAllString(string(tamgatest.ReadFile(t, file)), -1)
		if len(names) < 5 {
			t.Errorf("%s names only %q", file, names)
		}
		for _, name := range names {
			family := regexp.MustCompile(`(?m)^# TYPE ` + strings.TrimSuffix(name, "_bucket") + ` `)
			if !family.Match(scrape) && !slices.Contains(later, name) {
				t.Errorf("%s names %s, which the server does not have", file, name)
			}
		}
	}
	// Each metric of ours is in the manuals.
	for _, manual := range manuals {
		text := string(tamgatest.ReadFile(t, manual))
		for _, found := range regexp.MustCompile(`(?m)^# TYPE (tamga_[a-z_]+) `).FindAllSubmatch(scrape, -1) {
			if !strings.Contains(text, "`"+string(found[1])+"`") {
				t.Errorf("%s does not name %s", manual, found[1])
			}
		}
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(tamgatest.ReadFile(t, dashboard), &board); err != nil || len(board.Panels) < 10 {
		t.Fatalf("%d panels, %v", len(board.Panels), err)
	}
	promtool := func(in []byte, args ...string) {
		t.Helper()
		cmd := exec.Command("promtool", args...)
		cmd.Stdin = bytes.NewReader(in)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, out)
		}
	}
	promtool(nil, "check", "rules", alertRules)
	promtool(nil, "test", "rules", "testdata/alerts.yaml")
	promtool(scrape, "check", "metrics")
	// The expressions of the dashboard, as rules.
	rules := "groups:\n- name: dashboard\n  rules:\n"
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			expr, err := json.Marshal(strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"))
			if err != nil {
				t.Fatal(err)
			}
			rules += "  - {record: a_panel, expr: " + string(expr) + "}\n"
		}
	}
	promtool(nil, "check", "rules", "--lint=none", tamgatest.WriteFile(t, t.TempDir()+"/dashboard.yaml", rules))
}
