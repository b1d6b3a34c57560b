// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/domain/audit"
)

// auditPage is the number of entries that are read at a time.
const auditPage = 1000

// Audit is the sub-command audit, which prints the audit log.
type Audit struct {
	User      string           `placeholder:"ID" help:"Only entries of this user: acts by the user or on the user (GUID)."`
	Login     string           `help:"Only acts of the caller with this login."`
	Operation string           `help:"Only entries of this operation, for instance RegisterUser."`
	Outcome   string           `help:"Only entries with this outcome: ok, canceled or an error code."`
	Since     time.Duration    `placeholder:"TIME" help:"Only entries of the last TIME, for instance 24h."`
	Attempts  bool             `help:"Print attempts too. An attempt without an outcome was interrupted by the end of the process."`
	Limit     int              `default:"100" help:"Print at most this many of the newest entries; 0 for all."`
	From      cli.Installation `embed:""`
}

// Run prints the audit log. The reading itself gets an audit entry.
func (a *Audit) Run(c *cli.Console) error {
	if a.Limit < 0 {
		return fmt.Errorf("--limit %d: want 0 or more", a.Limit)
	}
	return cli.Administer(c, &a.From, "ReadAudit", a.User, func(ctx context.Context, s *app.Services) error {
		filter := store.AuditFilter{UserID: a.User, Login: a.Login, Operation: a.Operation, Outcome: a.Outcome, OutcomesOnly: !a.Attempts}
		if a.Since > 0 {
			filter.Since = s.DB.Now().Add(-a.Since)
		}
		entries, err := readAudit(ctx, store.Audit{DB: s.DB}, filter, a.Limit)
		if err != nil {
			return err
		}
		if a.From.JSON {
			out := json.NewEncoder(c.Stdout)
			for _, e := range entries {
				if err := out.Encode(audit.LineOf(&e)); err != nil {
					return err
				}
			}
			return nil
		}
		var text strings.Builder
		table := c.NewTable(&text, "TIME", "LOGIN", "OPERATION", "OBJECT", "OUTCOME", "ADDRESS", "DETAIL")
		for _, e := range entries {
			outcome := e.Outcome
			if e.Phase == audit.Attempt {
				outcome = "(" + c.Text("attempt") + ")"
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.At.UTC().Format("2006-01-02 15:04:05.000Z"), cli.Printable(e.Principal.Login),
				e.Operation, cli.Printable(e.Object), cli.Printable(outcome), cli.Printable(e.Remote), cli.Printable(e.Detail))
		}
		table.Flush()
		_, err = fmt.Fprint(c.Stdout, text.String())
		return err
	})
}

// readAudit returns the newest limit entries that match, the oldest first. Limit 0 means all.
func readAudit(ctx context.Context, log store.Audit, filter store.AuditFilter, limit int) ([]audit.Entry, error) {
	var pages [][]audit.Entry
	for have := 0; limit == 0 || have < limit; {
		want := auditPage
		if limit > 0 {
			want = min(want, limit-have)
		}
		page, before, err := log.Read(ctx, filter, want)
		if err != nil {
			return nil, err
		}
		pages = append(pages, page)
		have += len(page)
		if before == 0 {
			break
		}
		filter.Before = before
	}
	var entries []audit.Entry
	for i := len(pages) - 1; i >= 0; i-- {
		entries = append(entries, pages[i]...)
	}
	return entries, nil
}
