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
		return m.From.Answer(c, plan, "%s", planText(c, plan))
	}
	if err := h.Migrate(c.Context); err != nil {
		return err
	}
	return m.From.Answer(c, map[string]bool{"migrated": true}, "The database has the schema of this release.\n")
}

var costTexts = map[store.Cost]cli.Word{
	store.Instant: "for an instant",
	store.Rows:    "while it reads or changes its rows",
	store.Scan:    "while it reads all rows",
	store.Rewrite: "while it writes all rows anew",
}

var blockTexts = map[store.Blocks]cli.Word{
	store.BlocksRows:   "writes of the same rows",
	store.BlocksWrites: "writes",
	store.BlocksAll:    "reads and writes",
}

// planText returns a plan for people.
func planText(c *cli.Console, plan store.Plan) string {
	var text strings.Builder
	if len(plan.Migrations) == 0 {
		return c.Text("The database has the schema of this release: nothing to do.\n")
	}
	for _, m := range plan.Migrations {
		held := c.Text("each statement on its own")
		if m.Transaction {
			held = c.Text("one transaction, which keeps its locks until its end")
		}
		fmt.Fprintf(&text, "%s: %s\n", m.Name, held)
		for _, s := range m.Statements {
			fmt.Fprintf(&text, "  %s\n    %s\n", strings.Join(strings.Fields(s.Statement), " "), statementText(c, plan, s))
		}
	}
	return text.String()
}

func statementText(c *cli.Console, plan store.Plan, s store.PlannedStatement) string {
	text := c.Text("blocks %s %s", blockTexts[s.Blocks], costTexts[s.Cost])
	switch {
	case !s.Known:
		return c.Text("locks unknown: read the statement")
	case s.Blocks == store.BlocksNothing:
		text = c.Text("blocks nothing, works %s", costTexts[s.Cost])
	}
	var locks []string
	for _, l := range s.Locks {
		locks = append(locks, c.Text("%s on %s", l.Mode, l.Table))
	}
	if plan.Database == "SQLite" {
		locks = []string{c.Text("the write lock of the file, until the end of the transaction")}
	}
	if len(locks) == 0 {
		locks = []string{c.Text("no lock on a table in use")}
	}
	if s.Portions {
		text += c.Text(", in portions")
	}
	return strings.Join(locks, ", ") + "; " + text
}
