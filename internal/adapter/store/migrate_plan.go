// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
)

// Plan is what Migrate would do.
type Plan struct {
	Database   string             `json:"database"` // "SQLite" or "PostgreSQL"
	Migrations []PlannedMigration `json:"migrations"`
}

// PlannedMigration is a migration that was not applied yet.
type PlannedMigration struct {
	Name string `json:"name"`
	// Transaction reports whether one transaction holds all statements, and keeps their
	// locks until its end. Otherwise each statement is on its own.
	Transaction bool               `json:"transaction"`
	Statements  []PlannedStatement `json:"statements"`
}

// PlannedStatement is a statement and what it does to other sessions.
type PlannedStatement struct {
	Statement string `json:"statement"`
	// Known reports whether Locks, Blocks and Cost are known.
	Known bool `json:"known"`
	// Locks are on tables that are in use. A table that the same plan creates is not.
	Locks  []Lock `json:"locks"`
	Blocks Blocks `json:"blocks"`
	Cost   Cost   `json:"cost"`
	// Portions reports that the statement runs again until it changes no row.
	Portions bool `json:"portions"`
}

// Blocks says whom a statement stops while it works.
type Blocks string

const (
	BlocksNothing Blocks = "nothing"
	BlocksRows    Blocks = "writes of the same rows"
	BlocksWrites  Blocks = "writes"
	BlocksAll     Blocks = "reads and writes"
	BlocksUnknown Blocks = "unknown"
)

// Plan returns what Migrate would do. It changes nothing.
func (db *DB) Plan(ctx context.Context) (Plan, error) {
	list, err := db.migrations()
	if err != nil {
		return Plan{}, fmt.Errorf("store: %w", err)
	}
	applied, err := db.applied(ctx)
	if err != nil {
		return Plan{}, err
	}
	plan, err := planOf(db.engine, list, applied)
	if err != nil {
		return Plan{}, fmt.Errorf("store: %w", err)
	}
	return plan, nil
}

func planOf(e engine, list []migration, applied []int64) (Plan, error) {
	plan := Plan{Database: "SQLite", Migrations: []PlannedMigration{}}
	if e == postgresEngine {
		plan.Database = "PostgreSQL"
	}
	pending, err := missing(list, applied)
	if err != nil {
		return plan, err
	}
	locks := newLockReader()
	for _, m := range list[:len(list)-len(pending)] {
		locks.readAll(m)
	}
	made := map[string]bool{}
	for _, m := range pending {
		p := PlannedMigration{Name: m.name, Transaction: !m.alone || e == sqliteEngine, Statements: []PlannedStatement{}}
		for i, effect := range locks.readAll(m) {
			if effect.made != "" {
				made[effect.made] = true
			}
			s := m.statements[i]
			p.Statements = append(p.Statements, planned(e, s, effect, made))
		}
		plan.Migrations = append(plan.Migrations, p)
	}
	return plan, nil
}

func planned(e engine, s statement, effect effect, made map[string]bool) PlannedStatement {
	p := PlannedStatement{Statement: s.text, Known: effect.known, Locks: []Lock{}, Blocks: BlocksUnknown, Cost: effect.cost, Portions: s.portions}
	if e == sqliteEngine { // one lock on the file until the end of the transaction; readers go on
		p.Known, p.Blocks = true, BlocksWrites
		return p
	}
	if !effect.known {
		return p
	}
	for _, lock := range effect.locks {
		if !made[lock.Table] {
			p.Locks = append(p.Locks, lock)
		}
	}
	switch mode := effect.strongest(made); {
	case mode == AccessExclusive:
		p.Blocks = BlocksAll
	case mode >= Share:
		p.Blocks = BlocksWrites
	case mode == RowExclusive:
		p.Blocks = BlocksRows
	default:
		p.Blocks = BlocksNothing
	}
	return p
}
