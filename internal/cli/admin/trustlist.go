// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"os"
	"time"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/sig/trustlist"
)

// TrustList is the sub-command trust-list.
type TrustList struct {
	Import trustListImport `cmd:"" help:"Verify a list of accredited authorities and store it in place of the one before. Takes effect in all processes within a minute."`
	Show   trustListShow   `cmd:"" help:"Show version, date and age of the stored list."`
}

type trustListImport struct {
	File  string           `arg:"" help:"The list as the ministry of digital development publishes it (XML)."`
	Older bool             `help:"Accept a list although its version or date is earlier than in the stored one."`
	From  cli.Installation `embed:""`
}

// Help returns the text above the flags.
func (trustListImport) Help() string {
	return `The list must be signed with a certificate of trust_list.signer_files. If it is not, or is damaged, the stored list stays. Reports of verifications then say which signatures are qualified. The list makes no certificate trusted: evidence.root_files do.`
}

// trustListJSON is a list as --json prints it.
type trustListJSON struct {
	Version      int64      `json:"version"`
	Date         time.Time  `json:"date"`
	ImportedAt   *time.Time `json:"imported_at,omitempty"`
	CheckedAt    *time.Time `json:"checked_at,omitempty"` // when its source last had no newer one
	Authorities  int        `json:"authorities,omitempty"`
	Accredited   int        `json:"accredited,omitempty"` // now
	Certificates int        `json:"certificates,omitempty"`
	Unread       int        `json:"unread_certificates,omitempty"`
	Changed      *bool      `json:"changed,omitempty"` // false: this list was stored before
}

func (i *trustListImport) Run(c *cli.Console) error {
	in, err := os.Open(i.File)
	if err != nil {
		return err
	}
	defer in.Close()
	return cli.Administer(c, &i.From, "ImportTrustList", i.File, func(ctx context.Context, s *app.Services) error {
		bar := cli.NewProgress(c)
		bar.Stage(c.Text("reading the list of authorities"), -1)
		r, err := s.TrustList.Import(ctx, in, i.Older)
		bar.Clear()
		if err != nil {
			return err
		}
		text := c.Text("Version %d of %s: %d authorities, %d of them accredited now, %d keys.\n", r.Version, trustlist.Day(r.Date), r.Authorities, r.Accredited, r.Certificates)
		if r.Unread > 0 {
			text += c.Text("%d certificates in the list cannot be read; they match no signature.\n", r.Unread)
		}
		if !r.Changed {
			text += c.Text("This list was stored before.\n")
		}
		return i.From.Answer(c, trustListJSON{Version: r.Version, Date: r.Date, Authorities: r.Authorities, Accredited: r.Accredited, Certificates: r.Certificates, Unread: r.Unread, Changed: &r.Changed}, "%s", text)
	})
}

type trustListShow struct {
	From cli.Installation `embed:""`
}

func (l *trustListShow) Run(c *cli.Console) error {
	return cli.Administer(c, &l.From, "ShowTrustList", "", func(ctx context.Context, s *app.Services) error {
		info, found, err := s.TrustList.Info(ctx)
		if err != nil {
			return err
		}
		if !found {
			return l.From.Answer(c, struct{}{}, "%s", c.Text("There is no list: import it with tamga trust-list import FILE.\n"))
		}
		text := c.Text("Version %d of %s, imported on %s.\n", info.Version, trustlist.Day(info.Date), trustlist.Day(info.ImportedAt))
		if age := s.DB.Now().Sub(info.Date); age > trustlist.Old {
			text += c.Text("It is %d days old: import a new one.\n", int(age.Hours()/24))
		}
		return l.From.Answer(c, trustListJSON{Version: info.Version, Date: info.Date, ImportedAt: &info.ImportedAt, CheckedAt: &info.CheckedAt}, "%s", text)
	})
}
