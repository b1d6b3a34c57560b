// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/judge"
	"tamga/internal/tamgatest"
)

// TestAuditExport sends the audit log to rsyslog by TLS. The receiver is away for a while, and the process that delivers
// is killed: each entry arrives, in the order of the numbers, and says what the database says.
func TestAuditExport(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		database func(dir string) string
		together bool // the second process runs beside the first
	}{
		{"SQLite", func(dir string) string { return "sqlite:" + filepath.Join(dir, "tamga.db") }, false},
		{"PostgreSQL", func(string) string { return storetest.PostgreSQL(t).Database(t) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			certificate, key := certificateForLoopback(t)
			r := judge.RunRsyslog(t, &judge.RsyslogTLS{Driver: "gtls", Authorities: certificate, Certificate: certificate, Key: key})
			dir := t.TempDir()
			database := c.database(dir)
			p := tamgatest.StartProcess(t, dir, "--set", "database="+database, "--set", "audit.export.address="+r.Address, "--set", "audit.export.authorities_file="+certificate)
			made := 0
			work := func(by *tamgatest.Server) {
				t.Helper()
				p.Command("group", "add", fmt.Sprintf("group %d \"] [audit@32473 number=\"1\"] | = \\", made))
				made++
				for range 10 {
					if status, answer := by.Grant(p.Dev.User.Login, p.Dev.User.Password); status != 200 {
						t.Fatalf("%d %s", status, answer)
					}
				}
			}
			work(p)
			r.Await(func(list []judge.Received) bool { return len(list) >= 11 })
			r.Stop()
			work(p)
			for end := time.Now().Add(tamgatest.Patience); !strings.Contains(p.Logged(), `an outage begins" part=audit_export name=entries`); time.Sleep(20 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("no outage in the log:\n%s", p.Logged())
				}
			}
			var q *tamgatest.Server
			if c.together {
				q = another(p)
				work(q)
			}
			r.Start()
			r.Await(func(list []judge.Received) bool { return len(list) >= 22 })
			work(p)
			p.Kill()
			if q == nil {
				q = another(p)
			}
			work(q)
			db, err := store.Open(t.Context(), store.Options{URL: database, Limits: store.CommandLimits})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			list, err := store.NewAuditExport(db, false).Following(t.Context(), 0, 100_000)
			if err != nil || len(list) < 40 {
				t.Fatalf("%d entries, %v", len(list), err)
			}
			last := list[len(list)-1].Number
			received := r.Await(func(list []judge.Received) bool { return len(list) > 0 && numberOf(t, list[len(list)-1]) >= last })
			wantDelivered(t, list, received)
			if n := strings.Count(p.Logged(), `an outage begins" part=audit_export name=entries`); n != 1 {
				t.Errorf("%d lines of the beginning of one outage:\n%s", n, p.Logged())
			}
			for end := time.Now().Add(tamgatest.Patience); ; time.Sleep(100 * time.Millisecond) {
				_, scrape := get(t, q.URL+"/metrics")
				if text := string(scrape); strings.Contains(text, "\ntamga_audit_export_lag 0\n") && strings.Contains(text, "\ntamga_audit_export_delay_seconds 0\n") && strings.Contains(text, `tamga_ready{name="entries",part="audit_export"} 1`) {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("the metrics do not have the export:\n%s", scrape)
				}
			}
		})
	}
}

var (
	numberParameter    = regexp.MustCompile(`^\[audit@32473 number="(\d+)" operation="([^"]*)"`)
	requestIDParameter = regexp.MustCompile(` request_id="([^"]*)"`)
)

func numberOf(t *testing.T, m judge.Received) int64 {
	t.Helper()
	found := numberParameter.FindStringSubmatch(m.Data)
	if found == nil {
		t.Fatalf("rsyslog has read %+v", m)
	}
	n, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// wantDelivered wants each entry among the messages. The first message of each entry is after those of the entries
// before it.
func wantDelivered(t *testing.T, list []audit.Numbered, received []judge.Received) {
	t.Helper()
	of := map[int64]audit.Numbered{}
	for _, e := range list {
		of[e.Number] = e
	}
	seen, newest := map[int64]bool{}, int64(0)
	for _, m := range received {
		n := numberOf(t, m)
		e, made := of[n]
		if !made {
			if n <= list[len(list)-1].Number {
				t.Errorf("no entry has the number %d: %+v", n, m)
			}
			continue
		}
		id := requestIDParameter.FindStringSubmatch(m.Data)
		if operation := numberParameter.FindStringSubmatch(m.Data)[2]; operation != e.Operation || (e.RequestID != "") != (id != nil) || id != nil && id[1] != e.RequestID {
			t.Errorf("entry %d is %+v, rsyslog has %s", n, e, m.Data)
		}
		if !seen[n] && n < newest {
			t.Errorf("entry %d came for the first time after %d", n, newest)
		}
		seen[n], newest = true, max(newest, n)
	}
	for _, e := range list {
		if !seen[e.Number] {
			t.Errorf("entry %d (%s) did not arrive", e.Number, e.Operation)
		}
	}
	t.Logf("%d entries, %d messages", len(list), len(received))
}

// certificateForLoopback makes a certificate for 127.0.0.1 and its key, and returns their files.
func certificateForLoopback(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "collector"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	bytes, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	return tamgatest.WriteFile(t, filepath.Join(dir, "collector.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))),
		tamgatest.WriteFile(t, filepath.Join(dir, "collector.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: bytes})))
}

// another is a further server over the installation of p, whose sign-ins reach it at its own address.
func another(p *tamgatest.Server, more ...string) *tamgatest.Server {
	p.T.Helper()
	q := p.Another(more...)
	own := *p.Dev
	own.TokenURL = strings.Replace(own.TokenURL, p.URL, q.URL, 1)
	q.Dev = &own
	return q
}
