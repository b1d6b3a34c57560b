// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/tamgatest"
)

// BenchmarkPostgreSQL reports what a signature over PostgreSQL costs: one process, 32
// callers, a Unix socket without TLS, every commit on the disk. "postgres-us/op" is the
// processor time of all processes of the database server, "server-us/op" that of Tamga.
// The benchmark Statements prints the share of each statement, as the extension
// pg_stat_statements counts it.
//
//	go test -run '^$' -bench PostgreSQL -benchtime 20000x ./cmd/tamga
func BenchmarkPostgreSQL(b *testing.B) {
	program := plainProgram(b)
	durable := []string{"fsync=on", "max_wal_size=4GB", "shared_buffers=256MB"}
	b.Run("Signature", func(b *testing.B) {
		signaturesOver(b, program, storetest.OwnPostgreSQL(b, durable...), func(string) func() { return func() {} })
	})
	b.Run("Statements", func(b *testing.B) {
		cluster := storetest.OwnPostgreSQL(b, append(durable, "shared_preload_libraries=pg_stat_statements", "pg_stat_statements.track_planning=on")...)
		signaturesOver(b, program, cluster, func(address string) func() {
			admin, err := sql.Open("pgx", address)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { admin.Close() })
			for _, statement := range []string{"CREATE EXTENSION IF NOT EXISTS pg_stat_statements", "SELECT pg_stat_statements_reset()"} {
				if _, err := admin.ExecContext(b.Context(), statement); err != nil {
					b.Fatal(err)
				}
			}
			return func() {
				if b.N > 1 {
					logStatements(b, admin)
				}
			}
		})
	})
}

// signaturesOver measures b.N signatures. started is called before them with the address
// of the database, and the function it returned after them.
func signaturesOver(b *testing.B, program string, cluster *storetest.Cluster, started func(address string) func()) {
	address := cluster.Database(b)
	server := tamgatest.StartProgram(b, program, b.TempDir(), "--set", "tokens.access_life=1h", "--set", "database="+address)
	token := server.Token()
	document := bytes.Repeat([]byte("0123456789abcdef"), 64)
	c := server.Cert("gost2012-256", false)
	body, err := json.Marshal(tamgatest.Request(document, "CAdES", c.ID, tamgatest.Parameters{"CADESType": "BES", "IsDetached": "True"}))
	if err != nil {
		b.Fatal(err)
	}
	sign := func(n int) { askTimes(b, n, 32, server.Dev.BaseURL+"/api/documents", token, body) }
	sign(1000) // the sessions open, and their statements are prepared
	ended := started(address)
	own, other := server.ProcessorTime(), cluster.ProcessorTime(b)
	b.ResetTimer()
	sign(b.N)
	b.StopTimer()
	perSignature := func(name string, d time.Duration) {
		b.ReportMetric(float64(d.Nanoseconds())/1000/float64(b.N), name)
	}
	perSignature("postgres-us/op", cluster.ProcessorTime(b)-other)
	perSignature("server-us/op", server.ProcessorTime()-own)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "signatures/s")
	ended()
}

// logStatements logs the statements by the time they took. It is wall-clock time, so it
// includes waiting for the disk and for a processor.
func logStatements(b *testing.B, admin *sql.DB) {
	rows, err := admin.QueryContext(b.Context(), `SELECT calls, rows, total_plan_time * 1000, total_exec_time * 1000, wal_bytes, query
		FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%' ORDER BY total_plan_time + total_exec_time DESC LIMIT 12`)
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	each := 1 / float64(b.N)
	table := strings.Builder{}
	fmt.Fprintf(&table, "a signature:\n%8s %8s %10s %10s %8s  statement\n", "calls", "rows", "plan, us", "run, us", "WAL")
	for rows.Next() {
		var calls, n, plan, run, wal float64
		var query string
		if err := rows.Scan(&calls, &n, &plan, &run, &wal, &query); err != nil {
			b.Fatal(err)
		}
		query = strings.Join(strings.Fields(query), " ")
		fmt.Fprintf(&table, "%8.3f %8.3f %10.1f %10.1f %8.0f  %.60s\n", calls*each, n*each, plan*each, run*each, wal*each, query)
	}
	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}
	fmt.Print(table.String()) // a benchmark's log is cut after a few lines
}
