// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"fmt"
	"strings"

	"tamga/internal/adapter/store"
	"tamga/internal/cli"
)

// Migrate is the sub-command migrate.
type Migrate struct {
	From cli.Installation `embed:""`
	Plan bool             `help:"Only print the statements that would run, and the locks that they take."`
}

// Run brings the database to the schema of this release.
func (m *Migrate) Run(c *cli.Console) error {
	h, err := m.From.Open(c)
	if err != nil {
		return err
	}
	defer h.Close()
	if m.Plan {
		plan, err := h.DB.Plan(c.Context)
		if err != nil {
			return err
		}
		return m.From.Answer(c, plan, "%s", planText(plan))
	}
	if err := h.Migrate(c.Context); err != nil {
		return err
	}
	return m.From.Answer(c, map[string]bool{"migrated": true}, "The database has the schema of this release.\n")
}

var costTexts = map[store.Cost]string{
	store.Instant: "for an instant",
	store.Rows:    "while it reads or changes its rows",
	store.Scan:    "while it reads all rows",
	store.Rewrite: "while it writes all rows anew",
}

// planText returns a plan for people.
func planText(plan store.Plan) string {
	var text strings.Builder
	if len(plan.Migrations) == 0 {
		return "The database has the schema of this release: nothing to do.\n"
	}
	for _, m := range plan.Migrations {
		held := "each statement on its own"
		if m.Transaction {
			held = "one transaction, which keeps its locks until its end"
		}
		fmt.Fprintf(&text, "%s: %s\n", m.Name, held)
		for _, s := range m.Statements {
			fmt.Fprintf(&text, "  %s\n    %s\n", strings.Join(strings.Fields(s.Statement), " "), statementText(plan, s))
		}
	}
	return text.String()
}

func statementText(plan store.Plan, s store.PlannedStatement) string {
	text := fmt.Sprintf("blocks %s %s", s.Blocks, costTexts[s.Cost])
	switch {
	case !s.Known:
		return "locks unknown: read the statement"
	case s.Blocks == store.BlocksNothing:
		text = "blocks nothing, works " + costTexts[s.Cost]
	}
	var locks []string
	for _, l := range s.Locks {
		locks = append(locks, fmt.Sprintf("%s on %s", l.Mode, l.Table))
	}
	if plan.Database == "SQLite" {
		locks = []string{"the write lock of the file, until the end of the transaction"}
	}
	if len(locks) == 0 {
		locks = []string{"no lock on a table in use"}
	}
	if s.Portions {
		text += ", in portions"
	}
	return strings.Join(locks, ", ") + "; " + text
}
