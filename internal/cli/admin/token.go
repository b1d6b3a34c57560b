// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/oath/stock"
	"tamga/internal/files"
)

// Token is the sub-command token.
type Token struct {
	Import  tokenImportCommand  `cmd:"" help:"Import tokens from the file of a manufacturer into the stock."`
	List    tokenListCommand    `cmd:"" help:"List tokens and their users."`
	Unlock  tokenUnlockCommand  `cmd:"" help:"Unlock a token that was locked after wrong codes."`
	Discard tokenDiscardCommand `cmd:"" help:"Delete a token in stock, for instance a lost one."`
}

type tokenImportCommand struct {
	File         string           `arg:"" help:"PSKC container (RFC 6030) or CSV; - for standard input. Columns of CSV: serial, type (HOTP or TOTP), secret_hex or secret_base32. Optional columns: algorithm (default SHA1), digits (6), period (30), counter (0)."`
	Format       string           `enum:"auto,pskc,csv" default:"auto" help:"Format of the file: pskc, csv, or auto, which takes a file that begins with a tag as PSKC."`
	KeyFile      string           `placeholder:"FILE" help:"File with the key of an encrypted PSKC container, in hexadecimal."`
	PasswordFile string           `placeholder:"FILE" help:"File with the password of an encrypted PSKC container."`
	From         cli.Installation `embed:""`
}

func (i *tokenImportCommand) Run(c *cli.Console) error {
	list, err := i.read(c)
	if err != nil {
		return err
	}
	defer stock.Wipe(list)
	return cli.Administer(c, &i.From, "ImportTokens", "", func(ctx context.Context, s *app.Services) error {
		known, err := s.Oath.ImportTokens(ctx, list)
		if err != nil {
			return err
		}
		answer := struct {
			Imported int      `json:"imported"`
			Known    []string `json:"known"` // serial numbers that were in the database before
		}{len(list) - len(known), append([]string{}, known...)}
		text := c.Text("Imported %d tokens into the stock.\n", answer.Imported)
		if len(known) > 0 {
			text += c.Text("%d were known before and are unchanged: %s\n", len(known), shortList(known))
		}
		return i.From.Answer(c, answer, "%s", text)
	})
}

// shortList returns the first ten names.
func shortList(names []string) string {
	const some = 10
	if len(names) > some {
		return strings.Join(names[:some], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

// read reads the tokens of the file. The caller wipes their secrets.
func (i *tokenImportCommand) read(c *cli.Console) ([]stock.Token, error) {
	var with stock.Opening
	if i.KeyFile != "" {
		text, err := files.OwnSecret(i.KeyFile, "--key-file")
		if err != nil {
			return nil, err
		}
		if with.Key, err = hex.DecodeString(strings.TrimSpace(text)); err != nil {
			return nil, errors.New("--key-file: not hexadecimal")
		}
		defer clear(with.Key)
	}
	if i.PasswordFile != "" {
		var err error
		if with.Password, err = files.OwnSecret(i.PasswordFile, "--password-file"); err != nil {
			return nil, err
		}
	}
	in := c.Stdin
	if i.File != "-" {
		f, err := os.Open(i.File)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	begin := make([]byte, 64)
	n, err := io.ReadFull(in, begin)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	begin = begin[:n]
	whole := io.MultiReader(strings.NewReader(string(begin)), in)
	isXML := strings.HasPrefix(strings.TrimLeft(strings.TrimPrefix(string(begin), "\ufeff"), " \t\r\n"), "<")
	if i.Format == "pskc" || i.Format == "auto" && isXML {
		return stock.ReadPSKC(whole, with)
	}
	if with.Key != nil || with.Password != "" {
		return nil, errors.New("the file is CSV, which is not encrypted; omit --key-file and --password-file")
	}
	return stock.ReadCSV(whole)
}

type tokenListCommand struct {
	Free bool             `help:"Only tokens in stock."`
	User string           `placeholder:"LOGIN" help:"Only the token of this user."`
	From cli.Installation `embed:""`
}

// tokenJSON is a token as --json prints it.
type tokenJSON struct {
	Serial      string     `json:"serial"`
	Type        string     `json:"type"`
	App         bool       `json:"app"`
	UserID      string     `json:"user_id"`
	Locked      bool       `json:"locked"`
	LockedUntil *time.Time `json:"locked_until,omitempty"` // absent if the token is locked until an operator unlocks it
	CreatedAt   time.Time  `json:"created_at"`
	AssignedAt  *time.Time `json:"assigned_at,omitempty"`
}

func (l *tokenListCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &l.From, "ListTokens", l.User, func(ctx context.Context, s *app.Services) error {
		q := oath.Query{Free: l.Free, Limit: oath.MaxTokenPage}
		if l.User != "" {
			u, err := s.Users.ByLogin(ctx, l.User)
			if err != nil {
				return err
			}
			q.UserID = u.ID
		}
		lines := []tokenJSON{}
		var text strings.Builder
		table := c.NewTable(&text, "SERIAL", "TYPE", "USER", "NOTE")
		for {
			page, err := s.Oath.Tokens(ctx, q)
			if err != nil {
				return err
			}
			for _, t := range page {
				line := tokenLine(t, s.DB.Now())
				lines = append(lines, line)
				where, mark := c.Text("in stock"), ""
				if t.UserID != "" {
					where = t.UserID
				}
				switch {
				case line.LockedUntil != nil:
					mark = c.Text("locked until %s", line.LockedUntil.Format(time.RFC3339))
				case line.Locked:
					mark = c.Text("locked")
				}
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", t.Serial, t.Type, where, mark)
			}
			if len(page) < oath.MaxTokenPage {
				break
			}
			q.After = page[len(page)-1].Serial
		}
		table.Flush()
		return l.From.Answer(c, lines, "%s", text.String())
	})
}

func tokenLine(t oath.Token, now time.Time) tokenJSON {
	line := tokenJSON{Serial: t.Serial, Type: string(t.Type), App: t.App, UserID: t.UserID, Locked: now.Before(t.LockedUntil), CreatedAt: t.CreatedAt}
	if line.Locked && t.LockedUntil.Before(oath.Blocked) {
		line.LockedUntil = &t.LockedUntil
	}
	if !t.AssignedAt.IsZero() {
		line.AssignedAt = &t.AssignedAt
	}
	return line
}

type tokenUnlockCommand struct {
	Serial string           `arg:"" help:"Serial number of the token."`
	From   cli.Installation `embed:""`
}

func (u *tokenUnlockCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &u.From, "UnlockToken", u.Serial, func(ctx context.Context, s *app.Services) error {
		if err := s.Oath.UnlockToken(ctx, u.Serial); err != nil {
			return err
		}
		return u.From.Answer(c, map[string]string{"unlocked": u.Serial}, "Token %s is unlocked.\n", cli.Printable(u.Serial))
	})
}

type tokenDiscardCommand struct {
	Serial string           `arg:"" help:"Serial number of the token."`
	From   cli.Installation `embed:""`
}

func (d *tokenDiscardCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &d.From, "DiscardToken", d.Serial, func(ctx context.Context, s *app.Services) error {
		if err := s.Oath.DiscardToken(ctx, d.Serial); err != nil {
			return err
		}
		return d.From.Answer(c, map[string]string{"discarded": d.Serial}, "Token %s is deleted.\n", cli.Printable(d.Serial))
	})
}
