// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"errors"
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
	// Differences are the parts of the name that differ from the record of the user.
	Differences []differenceJSON `json:"differences"`
}

// differenceJSON is a part of a name that is not what the user is registered with.
type differenceJSON struct {
	Name       string `json:"name"`
	Asked      string `json:"asked"`      // "": none
	Registered string `json:"registered"` // "": none
}

func differenceLines(list []keys.Difference) []differenceJSON {
	lines := []differenceJSON{}
	for _, d := range list {
		lines = append(lines, differenceJSON(d))
	}
	return lines
}

// differenceText returns the differences for people, one on a line, "" for none.
func differenceText(c *cli.Console, list []keys.Difference) string {
	if len(list) == 0 {
		return ""
	}
	var text strings.Builder
	text.WriteString(c.Text("The name differs from the record of the user:\n"))
	value := func(v string) string {
		if v == "" {
			return c.Text("nothing")
		}
		return cli.Printable(v)
	}
	for _, d := range list {
		text.WriteString(c.Text("  %s: asked for %s, registered %s\n", cli.Printable(d.Name), value(d.Asked), value(d.Registered)))
	}
	return text.String()
}

func requestLine(q *keys.Request, differs []keys.Difference) requestJSON {
	return requestJSON{q.ID, q.UserID, q.Type.String(), q.Status.String(), q.AuthorityName, q.Subject, q.CreatedAt, q.DER, q.CertificateID, differenceLines(differs)}
}

func (l *requestListCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &l.From, "ListRequests", "", func(ctx context.Context, s *app.Services) error {
		list, err := s.Keys.Waiting(ctx)
		if err != nil {
			return err
		}
		lines := []requestJSON{}
		var text strings.Builder
		table := c.NewTable(&text, "ID", "TYPE", "AUTHORITY", "DATE", "USER", "SUBJECT", "DIFFERS")
		for _, q := range list {
			differs, err := s.Keys.DiffersOf(ctx, q)
			if err != nil {
				return err
			}
			lines = append(lines, requestLine(q, differs))
			var parts []string
			for _, d := range differs {
				parts = append(parts, d.Name)
			}
			fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", q.ID, q.Type, cli.Printable(q.AuthorityName), q.CreatedAt.Format(time.DateOnly), q.UserID, cli.Printable(q.Subject), strings.Join(parts, ","))
		}
		table.Flush()
		return l.From.Answer(c, lines, "%s", text.String())
	})
}

type requestApproveCommand struct {
	ID   int64            `arg:"" help:"Number of the request."`
	Yes  bool             `short:"y" help:"Certify a name that differs from the record of the user. Default: ask at the terminal; without one, or with --json, refuse such a name."`
	From cli.Installation `embed:""`
}

func (a *requestApproveCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &a.From, "ApproveRequest", fmt.Sprint("request ", a.ID), func(ctx context.Context, s *app.Services) error {
		if err := s.Authority.Bootstrap(ctx); err != nil {
			return err
		}
		differs, err := a.agree(ctx, c, s)
		if err != nil {
			return err
		}
		q, err := s.Keys.Approve(ctx, a.ID)
		if err != nil {
			return err
		}
		return a.From.Answer(c, requestLine(q, differs), "Request %d is approved: certificate %d.\n", q.ID, q.CertificateID)
	})
}

// agree shows what differs from the record of the user. Nothing of it is certified without a yes: the flag --yes, or
// the answer at the terminal. A program, which has no terminal or wants JSON, must give the flag.
func (a *requestApproveCommand) agree(ctx context.Context, c *cli.Console, s *app.Services) ([]keys.Difference, error) {
	q, err := s.Keys.Undecided(ctx, a.ID)
	if err != nil {
		return nil, err
	}
	differs, err := s.Keys.DiffersOf(ctx, q)
	if err != nil || len(differs) == 0 {
		return nil, err
	}
	fmt.Fprint(c.Stderr, differenceText(c, differs))
	if a.Yes {
		return differs, nil
	}
	refused := errors.New("the name differs from the record of the user: give --yes to certify it")
	if a.From.JSON {
		return nil, refused
	}
	t, err := c.OpenDialog()
	if err != nil {
		return nil, refused
	}
	defer t.Close()
	yes, err := t.Confirm(c.Text("Certify this name?"), false)
	if err == nil && !yes {
		err = errors.New("nothing was certified")
	}
	return differs, err
}

type requestRejectCommand struct {
	ID     int64            `arg:"" help:"Number of the request."`
	Reason string           `help:"Why, for the user: the pages and the letter show it." placeholder:"TEXT"`
	From   cli.Installation `embed:""`
}

func (r *requestRejectCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &r.From, "RejectRequest", fmt.Sprint("request ", r.ID), func(ctx context.Context, s *app.Services) error {
		q, err := s.Keys.Reject(ctx, r.ID, r.Reason)
		if err != nil {
			return err
		}
		differs, err := s.Keys.DiffersOf(ctx, q)
		if err != nil {
			return err
		}
		return r.From.Answer(c, requestLine(q, differs), "Request %d is rejected.\n", q.ID)
	})
}
