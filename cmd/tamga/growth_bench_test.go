// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"tamga/internal/adapter/store/lite"
	"tamga/internal/tamgatest"
)

// BenchmarkGrowth shows what work costs as it grows: the processor time of the server for three
// sizes of documents, of messages with many signers, of batches, of the database, and of the
// number of callers. "server-us/op" is for one request and "server-us/each" for one unit: a MiB
// of the document, a signer, a document of the batch, a request. Where the cost grows with the
// work, the second one is the same in all rows. Run it with
//
//	go test -run '^$' -bench Growth -benchtime 1x ./cmd/tamga
//
// The command cluster of the module bench has ten million users, on PostgreSQL, and BenchmarkEndedOperations of package store up
// to ten million operations.
func BenchmarkGrowth(b *testing.B) {
	server := tamgatest.StartProgram(b, plainProgram(b), b.TempDir(), "--set", "tokens.access_life=1h", "--set", "verification.calls_per_second=1000000", "--set", "verification.calls_at_once=1000000")
	token := server.Token()
	cert := server.Cert("gost2012-256", false)
	document := bytes.Repeat([]byte("0123456789abcdef"), 64)
	row := func(name string, requests int, each float64, work func(b *testing.B)) {
		b.Run(name, func(b *testing.B) {
			var took time.Duration
			for b.Loop() {
				before := server.ProcessorTime()
				work(b)
				took += server.ProcessorTime() - before
			}
			one := took.Seconds() * 1e6 / float64(b.N*requests)
			b.ReportMetric(one, "server-us/op")
			b.ReportMetric(one/each, "server-us/each")
		})
	}
	encode := func(request any) []byte {
		body, err := json.Marshal(request)
		if err != nil {
			b.Fatal(err)
		}
		return body
	}
	sign := func(p tamgatest.Parameters, content []byte) map[string]any {
		return tamgatest.Request(content, "CAdES", cert.ID, p)
	}
	detached := encode(sign(tamgatest.Parameters{"CADESType": "BES", "IsDetached": "True"}, document))
	documents := server.Dev.BaseURL + "/api/documents"
	askTimes(b, 500, 8, documents, token, detached) // warm

	for _, d := range []struct {
		name     string
		size     int64
		requests int
	}{{"1KiB", 1 << 10, 500}, {"1MiB", 1 << 20, 50}, {"1GiB", 1 << 30, 1}} {
		row("document-"+d.name, d.requests, float64(d.size)/(1<<20), func(b *testing.B) {
			for range d.requests {
				if _, err := signMode(server, token, memoryModes[1], d.size, cert.ID); err != nil {
					b.Fatal(err)
				}
			}
		})
	}

	message := server.Signed("POST", "/api/documents", token, sign(tamgatest.Parameters{"CADESType": "BES", "IsDetached": "False"}, document))
	signers := 1
	for _, n := range []int{1, 30, 1000} {
		for ; signers < n; signers++ {
			message = server.Signed("POST", "/api/documents", token, sign(tamgatest.Parameters{"CmsSignatureType": "Cosign", "IsDetached": "False"}, message))
		}
		question := encode(map[string]any{"SignatureType": "CAdES", "Content": message, "VerifyParams": map[string]any{"VerifyAll": "true"}})
		requests := max(1, 1000/n)
		row(fmt.Sprintf("verify-signers-%d", n), requests, float64(n), func(b *testing.B) {
			askTimes(b, requests, 2, server.Dev.SVSURL+"/api/signatures", token, question)
		})
	}

	for _, n := range []int{1, 100, 10_000} {
		items := make([]map[string]any, n)
		for i := range items {
			items[i] = map[string]any{"Name": "n", "Content": document}
		}
		request := sign(tamgatest.Parameters{"CADESType": "BES", "IsDetached": "True"}, nil)
		delete(request, "Content")
		request["Documents"] = items
		body := encode(request)
		requests := max(1, 2000/n)
		row(fmt.Sprintf("batch-%d", n), requests, float64(n), func(b *testing.B) {
			askTimes(b, requests, 1, documents+"/packagesignature", token, body)
		})
	}

	for _, n := range []int{1, 8, 64} {
		row(fmt.Sprintf("callers-%d", n), 3000, 1, func(b *testing.B) { askTimes(b, 3000, n, documents, token, detached) })
	}

	operator := server.TokenOf(server.Dev.Operator.Login, server.Dev.Operator.Password)
	made := 0
	for _, n := range []int{100, 10_000, 1_000_000} {
		made = addUsers(b, server.Path("tamga.db"), made, n)
		row(fmt.Sprintf("signature-users-%d", n), 3000, 1, func(b *testing.B) { askTimes(b, 3000, 8, documents, token, detached) })
		row(fmt.Sprintf("read-user-users-%d", n), 1000, 1, func(b *testing.B) {
			for i := range 1000 {
				readUser(b, fmt.Sprintf("%s/ums/user/%s", server.Dev.IDPURL, madeUser(i*(n/100)%n)), operator)
			}
		})
	}
}

// madeUser is the identifier of a user that addUsers adds.
func madeUser(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

// addUsers adds users to a database of SQLite, as a registration does, and returns to.
func addUsers(b *testing.B, path string, from, to int) int {
	b.Helper()
	c, err := lite.Open(path, time.Minute)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	const numbers = `WITH RECURSIVE n(n) AS (SELECT $1 UNION ALL SELECT n + 1 FROM n WHERE n < $2)`
	for ; from < to; from = min(from+10_000, to) { // the server writes between the pieces
		for _, statement := range []string{
			`INSERT INTO users (id, login, login_folded, display_name, group_name, operator, locked, lock_at, unapproved, created_at) ` + numbers +
				` SELECT printf('00000000-0000-4000-8000-%012d', n), 'Made' || n, 'made' || n, 'Made' || n, 'Default', 0, 0, 0, 0, 1700000000000 + n FROM n`,
			`INSERT INTO contacts (user_id, type, normal, value, confirmed, is_primary, notification, secondary_auth, created_at) ` + numbers +
				` SELECT printf('00000000-0000-4000-8000-%012d', n), 'Email', 'made' || n || '@example.net', 'made' || n || '@example.net', 0, 1, 0, 0, 1700000000000 + n FROM n`,
		} {
			if _, err := c.Exec(b.Context(), statement, []any{int64(from), int64(min(from+10_000, to) - 1)}); err != nil {
				b.Fatal(err)
			}
		}
	}
	return to
}

func readUser(b *testing.B, address, token string) {
	b.Helper()
	r, err := http.NewRequest("GET", address, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != 200 {
		b.Fatalf("answered %s %s (%v)", answer.Status, text, err)
	}
}
