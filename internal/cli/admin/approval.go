// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/domain/approval"
)

// Approval is the sub-command approval.
type Approval struct {
	List    approvalListCommand    `cmd:"" help:"List the requests of operators that wait for a second operator or for their time."`
	Approve approvalApproveCommand `cmd:"" help:"Approve a request. Its operator repeats it then."`
	Refuse  approvalRefuseCommand  `cmd:"" help:"Refuse a request."`
}

type approvalListCommand struct {
	From cli.Installation `embed:""`
}

// approvalJSON is a request that waits as --json prints it.
type approvalJSON struct {
	ID            string    `json:"id"`
	Operation     string    `json:"operation"`
	UserID        string    `json:"user_id"`
	Requester     string    `json:"requester"`
	State         string    `json:"state"`
	NeedsApproval bool      `json:"needs_approval"`
	DecidedBy     string    `json:"decided_by"`
	CreatedAt     time.Time `json:"created_at"`
	NotBefore     time.Time `json:"not_before"`
	ExpiresAt     time.Time `json:"expires_at"`
}

func approvalLine(r approval.Request) approvalJSON {
	return approvalJSON{r.ID, r.Operation, r.Object, r.Login, string(r.State), r.Approval, r.DecidedBy, r.CreatedAt, r.NotBefore, r.ExpiresAt}
}

func (l *approvalListCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &l.From, "ListApprovals", "", func(ctx context.Context, s *app.Services) error {
		lines := []approvalJSON{}
		var text strings.Builder
		table := c.NewTable(&text, "ID", "STATE", "OPERATION", "USER", "REQUESTER", "UNTIL")
		const most = 100
		for after, more := "", true; more; {
			list, err := s.Approvals.List(ctx, c.Administrator(), after, most)
			if err != nil {
				return err
			}
			for _, r := range list {
				lines = append(lines, approvalLine(r))
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.State, r.Operation, r.Object, cli.Printable(r.Login), r.ExpiresAt.Format(time.RFC3339))
				after = r.ID
			}
			more = len(list) == most
		}
		table.Flush()
		return l.From.Answer(c, lines, "%s", text.String())
	})
}

type approvalApproveCommand struct {
	ID   string           `arg:"" help:"Identifier of the request."`
	From cli.Installation `embed:""`
}

func (a *approvalApproveCommand) Run(c *cli.Console) error {
	return decide(c, &a.From, "GiveApproval", a.ID, true)
}

type approvalRefuseCommand struct {
	ID   string           `arg:"" help:"Identifier of the request."`
	From cli.Installation `embed:""`
}

func (r *approvalRefuseCommand) Run(c *cli.Console) error {
	return decide(c, &r.From, "RefuseApproval", r.ID, false)
}

// decided returns the answer for a request after a decision.
func decided(r approval.Request) cli.Sentence {
	switch r.State {
	case approval.Approved:
		return cli.Say("Request %s is approved.\n", r.ID)
	case approval.Refused:
		return cli.Say("Request %s is refused.\n", r.ID)
	}
	return cli.Say("Request %s has the state %s.\n", r.ID, r.State)
}

func decide(c *cli.Console, from *cli.Installation, operation, id string, approve bool) error {
	return cli.Administer(c, from, operation, id, func(ctx context.Context, s *app.Services) error {
		r, err := s.Approvals.Decide(ctx, c.Administrator(), id, approve)
		if err != nil {
			return err
		}
		return from.Answer(c, approvalLine(r), "%s", decided(r))
	})
}
