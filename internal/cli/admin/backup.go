// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tamga/internal/adapter/archive"
	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/files"
	"tamga/pki/x509gost"
)

// Backup is the sub-command backup.
type Backup struct {
	Make   backupMake   `cmd:"" default:"withargs" help:"Write a backup of the database and the stored documents."`
	Verify backupVerify `cmd:"" help:"Read all of a backup and check it, without restoring it."`
}

type backupMake struct {
	Dir        string           `arg:"" help:"Directory of the backup. It must not exist. With --keep: the directory where backups are."`
	Keep       int              `placeholder:"N" help:"Write the backup below the directory, under the time as its name, and remove all but the newest N there."`
	Recipient  []string         `placeholder:"AGE" help:"Public key of age (age1...) that the backup is encrypted to. May be repeated."`
	CopyBucket bool             `help:"Also copy the objects of a bucket. Without it, the backup has a list of them."`
	From       cli.Installation `embed:""`
}

// Help returns the text above the flags.
func (backupMake) Help() string {
	return `Writes the database and the stored documents as they are at one moment, while the service runs. Master keys, the configuration and its secrets are not in it: keep them in another place. PostgreSQL needs pg_dump.`
}

// Run makes a backup.
func (b *backupMake) Run(c *cli.Console) error {
	recipients, err := archive.ParseRecipients(b.Recipient)
	if err != nil {
		return err
	}
	if b.Keep < 0 {
		return fmt.Errorf("--keep %d: want 1 or more", b.Keep)
	}
	dir := b.Dir
	if b.Keep > 0 {
		if err := os.MkdirAll(b.Dir, 0o700); err != nil {
			return err
		}
		dir = filepath.Join(b.Dir, time.Now().UTC().Format(backupName))
	}
	var m app.Manifest
	err = cli.Administer(c, &b.From, "Backup", "installation", func(ctx context.Context, s *app.Services) (err error) {
		m, err = s.Backup(ctx, app.BackupOptions{Dir: dir, Version: c.Program.Version, Recipients: recipients, CopyBucket: b.CopyBucket})
		return err
	})
	if err != nil {
		return err
	}
	text := c.Text("Backup of %s with %d documents (%s): %s\n", m.TakenAt.Format(time.RFC3339), m.Documents, files.Size(m.Bytes), dir)
	if m.Bucket != "" {
		text += c.Text("The documents are in the bucket %s and were not copied: keep its versions.\n", m.Bucket)
	}
	if b.Keep > 0 {
		gone, err := removeBackups(b.Dir, b.Keep)
		if err != nil {
			return err
		}
		for _, name := range gone {
			text += c.Text("Removed: %s\n", filepath.Join(b.Dir, name))
		}
	}
	return b.From.Answer(c, m, "%s", text)
}

// backupName is the form of the names of backups that --keep makes, and the only ones that it removes.
const backupName = "2006-01-02T150405Z"

// removeBackups removes all but the newest backups of a directory. What is not a whole backup stays.
func removeBackups(dir string, keep int) (gone []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if _, err := time.Parse(backupName, e.Name()); err != nil || !e.IsDir() {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, e.Name(), "SHA256SUMS")); err == nil {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	for _, name := range names[:max(0, len(names)-keep)] {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return gone, err
		}
		gone = append(gone, name)
	}
	return gone, nil
}

type backupVerify struct {
	Dir          string `arg:"" help:"Directory of the backup."`
	IdentityFile string `placeholder:"FILE" help:"File of age-keygen with the secret key, for an encrypted backup."`
	JSON         bool   `help:"Print JSON instead of text."`
}

// Help returns the text above the flags.
func (backupVerify) Help() string {
	return `Compares the checksums, decrypts and reads each file: the database of SQLite is checked as a whole, an archive of PostgreSQL is read by pg_restore. It needs no installation. Whether the master keys fit, only a restore shows: try one regularly.`
}

// Run checks a backup.
func (v *backupVerify) Run(c *cli.Console) error {
	identities, err := app.ReadIdentities(v.IdentityFile)
	if err != nil {
		return err
	}
	m, err := app.VerifyBackup(c.Context, v.Dir, identities)
	if err != nil {
		return err
	}
	if v.JSON {
		out := json.NewEncoder(c.Stdout)
		out.SetIndent("", "  ")
		return out.Encode(m)
	}
	return c.Print("The backup of %s with %d documents (%s) by tamga %s is whole.\n", m.TakenAt.Format(time.RFC3339), m.Documents, files.Size(m.Bytes), m.Program)
}

// Restore is the sub-command restore.
type Restore struct {
	From    restoreFrom    `cmd:"" default:"withargs" help:"Restore a backup into an empty database and an empty directory of documents."`
	Adopt   restoreAdopt   `cmd:"" help:"Close a service whose database was put back by its own means: a snapshot of its disk, PITR, pg_restore."`
	Unknown restoreUnknown `cmd:"" help:"List what is unknown since the backup of a restored service."`
	Release restoreRelease `cmd:"" help:"Open a restored service."`
}

type restoreFrom struct {
	Dir              string           `arg:"" help:"Directory of the backup."`
	IdentityFile     string           `placeholder:"FILE" help:"File of age-keygen with the secret key, for an encrypted backup."`
	MissingDocuments bool             `help:"Restore although objects of the backup are missing in the bucket."`
	To               cli.Installation `embed:""`
}

// Help returns the text above the flags.
func (restoreFrom) Help() string {
	return `Restores into the database and the storage of documents that the configuration names. They must be empty, and the database of the same kind. Then the service is closed: it refuses everything with service_closed until "tamga restore release". PostgreSQL needs pg_restore.`
}

// Run restores a backup.
func (r *restoreFrom) Run(c *cli.Console) error {
	conf, err := r.To.Configuration()
	if err != nil {
		return err
	}
	identities, err := app.ReadIdentities(r.IdentityFile)
	if err != nil {
		return err
	}
	report, err := app.Restore(c.Context, conf, app.RestoreOptions{Dir: r.Dir, Identities: identities, Missing: r.MissingDocuments})
	if err != nil {
		return err
	}
	text := c.Text("Restored the state of %s with %d documents.\n", report.TakenAt.Format(time.RFC3339), report.Documents)
	for _, name := range report.Missing {
		text += c.Text("Missing in the bucket: %s\n", cli.Printable(name))
	}
	return r.To.Answer(c, report, "%sThe service is closed. Next: tamga restore unknown, then tamga restore release --yes\n", text)
}

type restoreAdopt struct {
	TakenAt time.Time        `required:"" placeholder:"TIME" help:"Time to which the database was put back, such as 2026-11-23T12:00:00Z."`
	From    cli.Installation `embed:""`
}

// Help returns the text above the flags.
func (restoreAdopt) Help() string {
	return `Does for such a database what a restore does: ends tokens, codes and what was under way, holds messages, moves the numbers of revocation lists, and closes the service until "tamga restore release". Stop all servers first. A server notices a database that is older than what it has seen, and does not start.`
}

// Run closes the service.
func (r *restoreAdopt) Run(c *cli.Console) error {
	return cli.Administer(c, &r.From, "AdoptRestore", "installation", func(ctx context.Context, s *app.Services) error {
		if err := s.Adopt(ctx, r.TakenAt); err != nil {
			return err
		}
		return r.From.Answer(c, map[string]any{"adopted": true, "taken_at": r.TakenAt}, "The service is closed. Next: tamga restore unknown, then tamga restore release --yes\n")
	})
}

type restoreUnknown struct {
	CRL  []string         `name:"crl" placeholder:"FILE" help:"Revocation list that was published before the restore (DER or PEM). May be repeated."`
	From cli.Installation `embed:""`
}

// Run prints what is unknown.
func (r *restoreUnknown) Run(c *cli.Console) error {
	lists, err := readLists(r.CRL)
	if err != nil {
		return err
	}
	return cli.Administer(c, &r.From, "ShowUnknown", "installation", func(ctx context.Context, s *app.Services) error {
		u, err := s.Unknown(ctx, lists)
		if err != nil {
			return err
		}
		return r.From.Answer(c, u, "%s", unknownText(c, u))
	})
}

type restoreRelease struct {
	CRL  []string         `name:"crl" placeholder:"FILE" help:"Revocation list that was published before the restore (DER or PEM). Its revocations are recorded. May be repeated."`
	Yes  bool             `help:"Open the service. Without it, only print what is unknown."`
	From cli.Installation `embed:""`
}

// Run opens the service.
func (r *restoreRelease) Run(c *cli.Console) error {
	lists, err := readLists(r.CRL)
	if err != nil {
		return err
	}
	return cli.Administer(c, &r.From, "ReleaseRestore", "installation", func(ctx context.Context, s *app.Services) error {
		u, err := s.Unknown(ctx, lists)
		if err != nil {
			return err
		}
		if !r.Yes {
			if _, err := fmt.Fprint(c.Stderr, c.Program.AsStarted(unknownText(c, u))); err != nil {
				return err
			}
			return errors.New("the service stays closed: read the list, then repeat with --yes")
		}
		if err := s.Release(ctx, u); err != nil {
			return err
		}
		return r.From.Answer(c, map[string]any{"released": true, "unknown": u}, "%sThe service is open.\n", unknownText(c, u))
	})
}

func readLists(paths []string) (lists []*x509gost.RevocationList, err error) {
	for _, path := range paths {
		more, err := files.RevocationLists(path)
		if err != nil {
			return nil, err
		}
		lists = append(lists, more...)
	}
	return lists, nil
}

// consequences say what a restore means for records that were changed after the snapshot.
var consequences = []cli.Word{
	"A password that was changed is the old one again, and so is a PIN.",
	"A user or operator who was locked is not; one who was deleted exists; one who was added does not.",
	"A device or a one-time password token that was removed works again; one that was added does not exist.",
	"A contact, a policy or the groups of an operator that were changed are the old ones.",
	"A certificate that was revoked is valid again, unless its revocation is in a list that you give.",
	"A document that was deleted exists; one that was stored does not.",
	"Wrong passwords, codes and PINs are not counted. The audit log has no entries.",
}

// unknownText returns what is unknown for people.
func unknownText(c *cli.Console, u app.Unknown) string {
	var b strings.Builder
	b.WriteString(c.Text("Restored at %s to the state of %s. Everything after that is unknown:\n", u.By.Format(time.RFC3339), u.At.Format(time.RFC3339)))
	for _, text := range consequences {
		fmt.Fprintf(&b, "- %s\n", c.Word(text))
	}
	b.WriteString(c.Text("\nIn the database:\n"))
	for _, n := range u.Counts {
		fmt.Fprintf(&b, "%8d  %s\n", n.Count, c.Word(cli.Word(n.Name)))
	}
	b.WriteString(c.Text("\nOperators; lock those who must not be:\n"))
	for _, o := range u.Operators {
		locked := ""
		if o.Locked {
			locked = " (" + c.Text("locked") + ")"
		}
		fmt.Fprintf(&b, "- %s%s: %s\n", cli.Printable(o.Login), locked, cli.Printable(o.Groups))
	}
	b.WriteString(c.Text("\nRevocations:\n"))
	if len(u.Lists) == 0 {
		b.WriteString(c.Text("- unknown after %s: give the last published lists with --crl\n", u.At.Format(time.RFC3339)))
	}
	for _, p := range u.Lists {
		b.WriteString(c.Text("- %s, list number %d: %d revocations are missing in the database\n", p.Authority, p.Number, len(p.Missing)))
		for _, e := range p.Missing {
			b.WriteString(c.Text("    %s, revoked at %s, reason %d\n", hex.EncodeToString(e.SerialNumber), e.At.Format(time.RFC3339), e.Reason))
		}
	}
	b.WriteString(c.Text("\nSign-ins, codes, confirmations and unfinished operations have ended. Messages are held until the release.\n\n"))
	return b.String()
}
