// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tamga/internal/app/dev"
	"tamga/internal/tamgatest"
)

// BenchmarkHTTP times a running server as its clients see it: the audit log is on,
// the database fully durable, 32 clients ask at once from a process of their own
// on the same machine, whose processor time is told apart: "server-us/op" is what
// the server itself takes for one signature, and "half-load-p99-ms" how long the
// slowest of a hundred waits at half the rate just reached. Run it with
//
//	go test -run '^$' -bench HTTP ./cmd/tamga
//
// and with the address of an empty PostgreSQL database in TAMGA_BENCH_DATABASE over
// that one.
func BenchmarkHTTP(b *testing.B) {
	more := []string{"--set", "tokens.access_life=1h"}
	if address := os.Getenv("TAMGA_BENCH_DATABASE"); address != "" {
		more = append(more, "--set", "database="+address)
	}
	server := tamgatest.StartProgram(b, plainProgram(b), b.TempDir(), more...)
	token := server.Token()
	document := bytes.Repeat([]byte("0123456789abcdef"), 64)
	one := func(name string, c dev.Certificate, order map[string]any) {
		order["Signature"].(map[string]any)["PinCode"] = c.PIN
		body, err := json.Marshal(order)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			address := server.Dev.BaseURL + "/api/documents"
			before := processorTime(server)
			ask(b, 32, address, token, body)
			rate := float64(b.N) / b.Elapsed().Seconds()
			b.ReportMetric(rate, "signatures/s")
			b.ReportMetric(float64((processorTime(server)-before).Microseconds())/float64(b.N), "server-us/op")
			b.StopTimer()
			if b.N > 1000 {
				b.ReportMetric(p99(b, server, token, body, rate/2), "half-load-p99-ms")
			}
		})
	}
	plain := server.Cert("gost2012-256", false)
	cms := func(level string, c dev.Certificate) map[string]any {
		return tamgatest.Request(document, "CAdES", c.ID, tamgatest.Parameters{"CADESType": level, "IsDetached": "True", "TSPAddress": ""})
	}
	one("BES-1KiB", plain, cms("BES", plain))
	withPIN := server.Cert("gost2012-256", true)
	one("BES-1KiB-PIN", withPIN, cms("BES", withPIN))
	one("T-1KiB", plain, cms("T", plain))
	one("XLT1-1KiB", plain, cms("XLT1", plain))
	one("XMLEnveloped-4KiB", plain, tamgatest.Request(xmlOf(4<<10), "XMLDSig", plain.ID, tamgatest.Parameters{"XMLDsigType": "XMLEnveloped"}))
	one("PDF-100KB", plain, tamgatest.Request(tamgatest.PDFOf(100_000), "PDF", plain.ID, tamgatest.Parameters{"PDFFormat": "CMS"}))
	one("DOCX-50KB", plain, tamgatest.Request(tamgatest.DOCXOf(b, 50_000), "MSOffice", plain.ID, tamgatest.Parameters{}))
	b.Run("cosign-10000", func(b *testing.B) {
		first := server.Signed("POST", "/api/documents", token, tamgatest.Request(document, "CAdES", plain.ID, tamgatest.Parameters{"IsDetached": "True"}))
		documents := make([]map[string]any, 10_000)
		for i := range documents {
			documents[i] = map[string]any{"Name": "n", "Content": first, "OriginalContent": document}
		}
		body, err := json.Marshal(map[string]any{
			"Documents": documents,
			"Signature": map[string]any{"Type": "CAdES", "Parameters": tamgatest.Parameters{"CmsSignatureType": "Cosign"}, "CertificateId": server.Cert("gost2012-512", false).ID, "PinCode": ""},
		})
		if err != nil {
			b.Fatal(err)
		}
		b.ResetTimer()
		before := processorTime(server)
		ask(b, 1, server.Dev.BaseURL+"/api/documents/packagesignature", token, body)
		b.ReportMetric(float64(b.N)*float64(len(documents))/b.Elapsed().Seconds(), "signatures/s")
		b.ReportMetric(float64((processorTime(server)-before).Microseconds())/float64(b.N*len(documents)), "server-us/signature")
	})
}

// xmlOf makes an XML document of about size bytes.
func xmlOf(size int) []byte {
	var b bytes.Buffer
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><orders xmlns="urn:orders">`)
	for i := 0; b.Len() < size-20; i++ {
		fmt.Fprintf(&b, `<order number="%d"><name>Поставка</name><sum currency="RUB">%d.00</sum></order>`, i, i*17)
	}
	b.WriteString("</orders>")
	return b.Bytes()
}

// p99 asks at a steady rate for three seconds and returns the 99th percentile of
// the time an answer took, in milliseconds.
func p99(b *testing.B, server *tamgatest.Server, token string, body []byte, rate float64) float64 {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
	defer client.CloseIdleConnections()
	var mu sync.Mutex
	var took []time.Duration
	var all sync.WaitGroup
	pace := time.NewTicker(time.Duration(float64(time.Second) / rate))
	defer pace.Stop()
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		<-pace.C
		all.Go(func() {
			start := time.Now()
			if err := askOnce(client, server.Dev.BaseURL+"/api/documents", token, body); err != nil {
				b.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(start))
		})
	}
	all.Wait()
	slices.Sort(took)
	return float64(took[len(took)*99/100].Microseconds()) / 1000
}

// ask sends a request b.N times from some clients at once.
func ask(b *testing.B, clients int, address, token string, body []byte) {
	askTimes(b, b.N, clients, address, token, body)
}

// askTimes is ask with another number of requests.
func askTimes(b *testing.B, n, clients int, address, token string, body []byte) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	var left atomic.Int64
	left.Store(int64(n))
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if err := askOnce(client, address, token, body); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

func askOnce(client *http.Client, address, token string, body []byte) error {
	r, err := http.NewRequest("POST", address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != 200 {
		return fmt.Errorf("answered %s (%v)", response.Status, err)
	}
	return nil
}
