// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

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
	p := tamgatest.Start(t, "--set", "audit.export.address=127.0.0.1:1", "--set", "audit.export.security=none")
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
	for end := time.Now().Add(tamgatest.Patience); !strings.Contains(p.Logged(), `an outage begins" part=audit_export name=entries`); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the export of the audit log does not begin")
		}
	}
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
		`tamga_trust_list_dated_seconds 0`,
		`tamga_retained_documents{state="due"} 0`,
		`tamga_renewals_delay_seconds 0`,
		`tamga_renewals_total{outcome="renewed"} 0`,
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
			if !family.Match(scrape) && !slices.Contains(later, strings.TrimSuffix(name, "_bucket")) {
				t.Errorf("%s names %s, which the server does not have", file, name)
			}
		}
	}
	// Each metric of ours is in the manuals.
	for _, manual := range manuals {
		text := string(tamgatest.ReadFile(t, manual))
		for _, name := range families(scrape) {
			if !strings.Contains(text, "`"+name+"`") {
				t.Errorf("%s does not name %s", manual, name)
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
	// Each of them has a panel.
	shown := string(tamgatest.ReadFile(t, dashboard))
	for _, name := range slices.Concat(later, families(scrape)) {
		if !regexp.MustCompile(`\b` + name + `(_bucket)?\b`).MatchString(shown) {
			t.Errorf("no panel shows %s", name)
		}
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

// families returns the names of our metrics in a scrape.
func families(scrape []byte) (names []string) {
	for _, found := range regexp.MustCompile(`(?m)^# TYPE (tamga_[a-z_]+) `).FindAllSubmatch(scrape, -1) {
		names = append(names, string(found[1]))
	}
	return names
}

// needed is what an installation needs, by the series that says whether it is there. TestOutagesAreSeen looks for its rule and its
// panel, and TestAlerts lets the outages of tamga_ready happen.
var needed = []struct{ what, metric, rule string }{
	{"database", `tamga_ready{part="database"}`, "TamgaDatabaseDown"},
	{"bucket or directory of documents", `tamga_ready{part="documents"}`, "TamgaDocumentsDown"},
	{"disk that can be written to", `tamga_ready{part="disk"}`, "TamgaDiskFull"},
	{"free space", "tamga_disk_free_bytes", "TamgaDiskLow"},
	{"keys", `tamga_ready{part=~"keys|holder"}`, "TamgaKeysDown"},
	{"mail", `tamga_ready{part="mail"}`, "TamgaMailDown"},
	{"SMS", `tamga_ready{part="sms"}`, "TamgaSMSDown"},
	{"push", `tamga_ready{part="push"}`, "TamgaPushDown"},
	{"OpenID Connect", `tamga_ready{part="sign_in"}`, "TamgaSignInProviderDown"},
	{"time stamps", `tamga_ready{part="stamps"}`, "TamgaStampsDown"},
	{"OCSP and revocation lists", `tamga_ready{part="revocation"}`, "TamgaRevocationDown"},
	{"collector of audit entries", `tamga_ready{part="audit_export"}`, "TamgaAuditExportDown"},
	{"audit entries that wait", "tamga_audit_export_delay_seconds", "TamgaAuditExportLate"},
	{"directory", `tamga_ready{part="directory"}`, "TamgaDirectoryDown"},
	{"traces", `tamga_ready{part="traces"}`, "TamgaTracesDown"},
	{"clock that is usable", `tamga_ready{part="clock"}`, "TamgaClockWrong"},
	{"clock that is right", "tamga_clock_offset_seconds", "TamgaClock"},
	{"TLS certificate", `tamga_ready{part="tls"}`, "TamgaTLSEnded"},
	{"ends of certificates", "tamga_certificate_not_after_seconds", "TamgaCertificateEnds"},
	{"ends of certificates of users", "tamga_user_certificates_ending", "TamgaUserCertificatesEnd"},
	{"background tasks", `tamga_ready{part="task"}`, "TamgaTaskFails"},
	{"backup", "tamga_backup_taken_seconds", "TamgaBackupOld"},
	{"renewal of archive time stamps", "tamga_renewals_delay_seconds", "TamgaRenewalsLate"},
	{"messages", "tamga_outbox_delay_seconds", "TamgaMessagesLate"},
	{"release of a restored service", "tamga_closed", "TamgaClosed"},
}

// TestOutagesAreSeen checks that everything that can be away has a metric with a rule and a panel, and that no part of tamga_ready
// is without a rule.
func TestOutagesAreSeen(t *testing.T) {
	t.Parallel()
	rules, shown := string(tamgatest.ReadFile(t, alertRules)), string(tamgatest.ReadFile(t, dashboard))
	parts := map[string]bool{"release": true} // tamga_closed
	for _, n := range needed {
		i := strings.Index(rules, "alert: "+n.rule+"\n")
		if i < 0 {
			t.Errorf("%s: no rule %s", n.what, n.rule)
			continue
		}
		rule, _, _ := strings.Cut(rules[i+7:], "- alert:")
		if !strings.Contains(rule, n.metric) || !strings.Contains(rule, "severity: ") || !strings.Contains(rule, "summary: ") {
			t.Errorf("%s: the rule is\n%s", n.what, rule)
		}
		name, labels, _ := strings.Cut(n.metric, "{")
		if !strings.Contains(shown, name) {
			t.Errorf("%s: no panel shows %s", n.what, name)
		}
		if name == "tamga_ready" {
			for part := range strings.SplitSeq(strings.Trim(labels[strings.Index(labels, `"`):], `"}`), "|") {
				parts[part] = true
			}
		}
	}
	// The parts that the program notes, by their literals.
	noted := regexp.MustCompile(`(?:part\{Kind: |part\{|Dependency\{|Need\{Name: )"([a-z_]+)"`)
	files, err := filepath.Glob("../../internal/app/*.go")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range noted.FindAllStringSubmatch(string(tamgatest.ReadFile(t, file)), -1) {
			found++
			if !parts[m[1]] {
				t.Errorf("%s notes the part %s, which no row of needed has", file, m[1])
			}
		}
	}
	if found < 12 {
		t.Errorf("only %d parts are noted", found)
	}
}
