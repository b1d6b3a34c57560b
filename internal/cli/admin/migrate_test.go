// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"testing"

	"tamga/internal/adapter/store"
	"tamga/internal/cli"
)

func TestPlanText(t *testing.T) {
	users := []store.Lock{{Table: "users", Mode: store.AccessExclusive}, {Table: "groups", Mode: store.ShareRowExclusive}}
	for _, c := range []struct {
		plan store.Plan
		want string
	}{
		{store.Plan{Database: "PostgreSQL"}, "The database has the schema of this release: nothing to do.\n"},
		{store.Plan{Database: "PostgreSQL", Migrations: []store.PlannedMigration{
			{Name: "1.sql", Transaction: true, Statements: []store.PlannedStatement{
				{Statement: "ALTER\n\tTABLE", Known: true, Locks: users, Blocks: store.BlocksAll, Cost: store.Instant},
				{Statement: "DO", Blocks: store.BlocksUnknown},
			}},
			{Name: "2.sql", Statements: []store.PlannedStatement{
				{Statement: "CREATE TABLE", Known: true, Blocks: store.BlocksNothing, Cost: store.Instant},
				{Statement: "UPDATE", Known: true, Locks: []store.Lock{{Table: "users", Mode: store.RowExclusive}}, Blocks: store.BlocksRows, Cost: store.Rows, Portions: true},
			}},
		}}, `1.sql: one transaction, which keeps its locks until its end
  ALTER TABLE
    ACCESS EXCLUSIVE on users, SHARE ROW EXCLUSIVE on groups; blocks reads and writes for an instant
  DO
    locks unknown: read the statement
2.sql: each statement on its own
  CREATE TABLE
    no lock on a table in use; blocks nothing, works for an instant
  UPDATE
    ROW EXCLUSIVE on users; blocks writes of the same rows while it reads or changes its rows, in portions
`},
		{store.Plan{Database: "SQLite", Migrations: []store.PlannedMigration{
			{Name: "1.sql", Transaction: true, Statements: []store.PlannedStatement{{Statement: "X", Known: true, Blocks: store.BlocksWrites, Cost: store.Scan}}},
		}}, `1.sql: one transaction, which keeps its locks until its end
  X
    the write lock of the file, until the end of the transaction; blocks writes while it reads all rows
`},
	} {
		if got := planText(&cli.Console{}, c.plan); got != c.want {
			t.Errorf("got\n%s\nwant\n%s", got, c.want)
		}
	}
}
