// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/tamgatest"
)

// sampleLine is a line of a scrape: a series and its value.
var sampleLine = regexp.MustCompile(`(?m)^(tamga_(?:ready|disk_free_bytes|audit_export_delay_seconds)\{[^}]*)\} (\S+)$`)

// fires has promtool play a scrape for half an hour, and returns the alerts of the given names that fire.
func fires(t *testing.T, scrape string, names []string) (firing []string) {
	t.Helper()
	rules, err := filepath.Abs(alertRules)
	if err != nil {
		t.Fatal(err)
	}
	series := []map[string]string{{"series": `up{job="tamga",instance="a"}`, "values": "1x30"}}
	for _, m := range sampleLine.FindAllStringSubmatch(scrape, -1) {
		value := m[2]
		if strings.Contains(value, "e+") { // promtool reads plain numbers
			var n float64
			fmt.Sscan(value, &n)
			value = fmt.Sprintf("%.0f", n)
		}
		series = append(series, map[string]string{"series": m[1] + `,job="tamga",instance="a"}`, "values": value + "x30"})
	}
	// An alert fires if promtool does not agree that it does not.
	var silent []any
	for _, name := range names {
		silent = append(silent, map[string]any{"eval_time": "20m", "alertname": name, "exp_alerts": []any{}})
	}
	text, err := json.Marshal(map[string]any{
		"rule_files": []string{rules}, "evaluation_interval": "1m",
		"tests": []any{map[string]any{"interval": "1m", "input_series": series, "alert_rule_test": silent}},
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("promtool", "test", "rules", tamgatest.WriteFile(t, filepath.Join(t.TempDir(), "test.yaml"), string(text))).CombinedOutput()
	for _, m := range regexp.MustCompile(`alertname: (\w+)`).FindAllStringSubmatch(string(out), -1) {
		if !slices.Contains(firing, m[1]) {
			firing = append(firing, m[1])
		}
	}
	if (err != nil) != (firing != nil) {
		t.Fatalf("promtool: %v\n%s", err, out)
	}
	return firing
}

// TestAlerts has servers meet the outages of what they need, and plays what they report to the alert rules: each
// outage has its own alert, and a sound server has none.
func TestAlerts(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("promtool is not installed")
	}
	var names []string
	for _, m := range regexp.MustCompile(`(?m)expr: (?:tamga_(?:ready|disk)|max\(tamga_audit)[^\n]*`).FindAllString(string(tamgatest.ReadFile(t, alertRules)), -1) {
		rules := string(tamgatest.ReadFile(t, alertRules))
		before := rules[:strings.Index(rules, m)]
		names = append(names, strings.TrimSpace(before[strings.LastIndex(before, "alert: ")+7:]))
	}
	if len(names) < 15 {
		t.Fatalf("the rules of parts are only %q", names)
	}
	scrapeOf := func(p *tamgatest.Server, want string) string {
		t.Helper()
		for end := time.Now().Add(tamgatest.Patience); ; time.Sleep(10 * time.Millisecond) {
			_, scrape := get(t, p.URL+"/metrics")
			if strings.Contains(string(scrape), want) {
				return string(scrape)
			}
			if time.Now().After(end) {
				t.Fatalf("no line %s in\n%s", want, scrape)
			}
		}
	}
	dir := t.TempDir()
	short := tamgatest.WriteFile(t, filepath.Join(dir, "short"), "secret\n")
	secret := tamgatest.WriteFile(t, filepath.Join(dir, "secret"), "whsec_"+strings.Repeat("QUJD", 10)+"\n")

	proxy := storetest.NewProxy(t, storetest.PostgreSQL(t).Database(t))
	p := tamgatest.Start(t, "--set", "database="+proxy.URL)
	sound := scrapeOf(p, `tamga_ready{name="",part="tls"} 1`)
	if got := fires(t, sound, names); len(got) != 0 && !slices.Equal(got, []string{"TamgaDiskLow"}) { // of this machine
		t.Errorf("a sound server: %q", got)
	}
	proxy.Pause()
	away := scrapeOf(p, `tamga_ready{name="",part="database"} 0`)
	if got := fires(t, away, names); !slices.Contains(got, "TamgaDatabaseDown") || slices.Contains(got, "TamgaMailDown") || slices.Contains(got, "TamgaDiskFull") {
		t.Errorf("without the database: %q", got)
	}
	if n := strings.Count(p.Logged(), "level=ERROR"); n != 0 {
		t.Errorf("%d errors in the log of an outage:\n%s", n, p.Logged())
	}

	const nothing = "127.0.0.1:1"
	q := tamgatest.Start(t,
		"--set", "messages.capture=false",
		"--set", "messages.mail={address: '"+nothing+"', from: tamga@example.org}",
		"--set", "messages.sms.smpp={address: '"+nothing+"', system_id: tamga, password_file: "+short+", from: tamga}",
		"--set", "messages.push.webhook={url: 'http://"+nothing+"', secret_file: "+secret+"}",
		"--set", "external=[{name: corp, title: Corp, issuer: 'http://"+nothing+"', client_id: tamga, claim: sub}]",
		"--set", "evidence.tsp_services=[{name: main, url: 'http://"+nothing+"/tsp'}]",
		"--set", "audit.export.address="+nothing, "--set", "audit.export.security=none",
		"--set", "tracing.endpoint=http://"+nothing)
	q.Token()                                        // an audit entry to deliver
	scrapeOf(q, `tamga_ready{name="",part="tls"} 1`) // the last of the first round
	for _, c := range []struct{ line, alert string }{
		{`part="mail"`, "TamgaMailDown"}, {`part="sms"`, "TamgaSMSDown"}, {`part="push"`, "TamgaPushDown"}, {`part="sign_in"`, "TamgaSignInProviderDown"},
		{`part="stamps"`, "TamgaStampsDown"}, {`part="traces"`, "TamgaTracesDown"},
		{`name="",part="audit_export"`, "TamgaAuditExportDown"}, {`name="entries",part="audit_export"`, "TamgaAuditExportDown"},
	} {
		var line string
		for _, m := range sampleLine.FindAllStringSubmatch(scrapeOf(q, c.line), -1) {
			if strings.Contains(m[1], c.line) {
				line = m[0] + "\n"
			}
		}
		if !strings.HasSuffix(line, " 0\n") {
			t.Errorf("%s: the scrape has %q", c.alert, line)
		}
		if got := fires(t, line, names); !slices.Equal(got, []string{c.alert}) {
			t.Errorf("%s: %q fire", c.alert, got)
		}
	}
	for _, part := range []string{"mail ", "sms ", "push ", "sign_in ", "stamps ", "traces ", "audit_export error", "audit_export name=entries "} {
		if n := strings.Count(q.Logged(), `an outage begins" part=`+part); n != 1 {
			t.Errorf("%s: %d lines of the beginning", part, n)
		}
	}
	// Those that no test brings about on a server, by the same series.
	for _, c := range []struct{ line, alert string }{
		{`tamga_ready{name="",part="disk"} 0`, "TamgaDiskFull"}, {`tamga_ready{name="",part="documents"} 0`, "TamgaDocumentsDown"},
		{`tamga_ready{name="soft",part="holder"} 0`, "TamgaKeysDown"}, {`tamga_ready{name="",part="clock"} 0`, "TamgaClockWrong"},
		{`tamga_ready{name="CA ocsp.example.org",part="revocation"} 0`, "TamgaRevocationDown"}, {`tamga_ready{name="",part="tls"} 0`, "TamgaTLSEnded"},
		{`tamga_ready{name="sweeping messages",part="task"} 0`, "TamgaTaskFails"}, {`tamga_disk_free_bytes{name="blob_dir"} 1048576`, "TamgaDiskLow"},
		{`tamga_ready{name="corp",part="directory"} 0`, "TamgaDirectoryDown"},
		{`tamga_audit_export_delay_seconds{name=""} 700`, "TamgaAuditExportLate"},
	} {
		if got := fires(t, c.line+"\n", names); !slices.Equal(got, []string{c.alert}) {
			t.Errorf("%s: %q fire", c.alert, got)
		}
	}
}

// TestMetricsListen checks that the metrics have an address of their own, and the public one none.
func TestMetricsListen(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	inside := l.Addr().String()
	l.Close()
	p := tamgatest.Start(t, "--set", "metrics_listen="+inside)
	for url, want := range map[string]int{
		p.URL + "/metrics": 404, p.URL + "/healthz": 200, "http://" + inside + "/metrics": 200, "http://" + inside + "/readyz": 200, "http://" + inside + "/ums/policy": 404,
	} {
		if status, _ := get(t, url); status != want {
			t.Errorf("%s: %d, want %d", url, status, want)
		}
	}
}
