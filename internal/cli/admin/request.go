// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/domain/keys"
)

// Request is the sub-command request.
type Request struct {
	List    requestListCommand    `cmd:"" help:"List the requests of users that wait for an approval or for a certificate."`
	Approve requestApproveCommand `cmd:"" help:"Approve a request: the built-in authority issues or revokes the certificate."`
	Reject  requestRejectCommand  `cmd:"" help:"Reject a request."`
}

type requestListCommand struct {
	From cli.Installation `embed:""`
}

// requestJSON is a waiting request as --json prints it.
type requestJSON struct {
	ID        int64     `json:"id"`
	UserID    string    `json:"user_id"`
	Type      string    `json:"type"`
	Status    string    `json:"status"`
	Authority string    `json:"authority"`
	Subject   string    `json:"subject"`
	CreatedAt time.Time `json:"created_at"`
	Request   []byte    `json:"request"` // PKCS #10
	// Certificate is the number of the certificate that was issued or that must be revoked.
	Certificate int64 `json:"certificate"`
}

func requestLine(q *keys.Request) requestJSON {
	return requestJSON{q.ID, q.UserID, q.Type.String(), q.Status.String(), q.AuthorityName, q.Subject, q.CreatedAt, q.DER, q.CertificateID}
}

func (l *requestListCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &l.From, "ListRequests", "", func(ctx context.Context, h *app.Rooms) error {
		list, err := h.Keys.Waiting(ctx)
		if err != nil {
			return err
		}
		lines := []requestJSON{}
		var text strings.Builder
		table := c.NewTable(&text, "ID", "TYPE", "AUTHORITY", "DATE", "USER", "SUBJECT")
		for _, q := range list {
			lines = append(lines, requestLine(q))
			fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\n", q.ID, q.Type, cli.Printable(q.AuthorityName), q.CreatedAt.Format(time.DateOnly), q.UserID, cli.Printable(q.Subject))
		}
		table.Flush()
		return l.From.Answer(c, lines, "%s", text.String())
	})
}

type requestApproveCommand struct {
	ID   int64            `arg:"" help:"Number of the request."`
	From cli.Installation `embed:""`
}

func (a *requestApproveCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &a.From, "ApproveRequest", fmt.Sprint("request ", a.ID), func(ctx context.Context, h *app.Rooms) error {
		if err := h.Authority.Bootstrap(ctx); err != nil {
			return err
		}
		q, err := h.Keys.Approve(ctx, a.ID)
		if err != nil {
			return err
		}
		return a.From.Answer(c, requestLine(q), "Request %d is approved: certificate %d.\n", q.ID, q.CertificateID)
	})
}

type requestRejectCommand struct {
	ID   int64            `arg:"" help:"Number of the request."`
	From cli.Installation `embed:""`
}

func (r *requestRejectCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &r.From, "RejectRequest", fmt.Sprint("request ", r.ID), func(ctx context.Context, h *app.Rooms) error {
		q, err := h.Keys.Reject(ctx, r.ID)
		if err != nil {
			return err
		}
		return r.From.Answer(c, requestLine(q), "Request %d is rejected.\n", q.ID)
	})
}
