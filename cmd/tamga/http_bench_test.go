package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// BenchmarkHTTP times a running server as its clients see it: the journal is on,
// SQLite is fully durable, the key has no PIN, 32 clients ask at once from a
// process of their own on the same machine. Run it with
//
//	go test -run '^$' -bench HTTP ./cmd/tamga
func BenchmarkHTTP(b *testing.B) {
	server := startProgram(b, plainProgram(b), b.TempDir(), "--set", "tokens.access_life=1h")
	token := server.token()
	document := bytes.Repeat([]byte("0123456789abcdef"), 64)
	cert := server.cert("gost2012-256", false).ID
	for _, level := range []string{"BES", "T", "XLT1"} {
		body, err := json.Marshal(request(document, "CAdES", cert, parameters{"CADESType": level, "IsDetached": "True", "TSPAddress": ""}))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(level+"-1KiB", func(b *testing.B) {
			ask(b, 32, server.dev.BaseURL+"/api/documents", token, body)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "signatures/s")
		})
	}
	b.Run("cosign-10000", func(b *testing.B) {
		first := server.signed("POST", "/api/documents", token, request(document, "CAdES", cert, parameters{"IsDetached": "True"}))
		documents := make([]map[string]any, 10_000)
		for i := range documents {
			documents[i] = map[string]any{"Name": "n", "Content": first, "OriginalContent": document}
		}
		body, err := json.Marshal(map[string]any{
			"Documents": documents,
			"Signature": map[string]any{"Type": "CAdES", "Parameters": parameters{"CmsSignatureType": "Cosign"}, "CertificateId": server.cert("gost2012-512", false).ID, "PinCode": ""},
		})
		if err != nil {
			b.Fatal(err)
		}
		b.ResetTimer()
		ask(b, 1, server.dev.BaseURL+"/api/documents/packagesignature", token, body)
		b.ReportMetric(float64(b.N)*float64(len(documents))/b.Elapsed().Seconds(), "signatures/s")
	})
}

// ask sends a request b.N times from some clients at once.
func ask(b *testing.B, clients int, address, token string, body []byte) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	var left atomic.Int64
	left.Store(int64(b.N))
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
