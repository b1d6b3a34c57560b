// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/user"
	"tamga/internal/domain/user/records"
	"tamga/internal/files"
	"tamga/internal/web/pages/view"
	"tamga/pki/pfx"
)

// Import is the sub-command import.
type Import struct {
	File   string           `arg:"" help:"File of users, CSV or JSON; - for standard input."`
	Format string           `enum:"auto,csv,json" default:"auto" help:"Format of the file: csv, json, or auto, which takes a file that begins with a bracket as JSON."`
	Group  string           `help:"Group of the users whose record names none."`
	DryRun bool             `help:"Check everything and change nothing. The report is the one that a real run would print."`
	Any    bool             `name:"any-numbers" help:"Take numbers such as INN, SNILS and OGRN whose length or check digits are wrong."`
	From   cli.Installation `embed:""`
}

// Help returns the text above the flags.
func (Import) Help() string {
	return `Registers users with their names, contacts and certificates. Each record is imported whole or refused whole, and the report has the line, the field and the reason. The command may be repeated: a user who exists as the file describes is left alone, and one who differs is refused.

Certificates are those that users sign in with. Their private keys are elsewhere, so the service does not sign with them. A key that the service shall sign with comes with its certificate in a PKCS #12 file, which the record names. Passwords are not imported.

The exit code is 1 if a record was refused.`
}

// importing is a run of the command.
type importing struct {
	*Import
	console  *cli.Console
	dir      string // paths of the file begin there
	report   importReport
	progress *cli.Progress
}

// importReport is the end of the report.
type importReport struct {
	Records      int `json:"records"`
	Added        int `json:"added"`
	Unchanged    int `json:"unchanged"`
	Refused      int `json:"refused_records"`
	Contacts     int `json:"contacts"`
	Certificates int `json:"certificates"`
	Keys         int `json:"keys"`
	// Stopped is why the rest of the file was not read.
	Stopped string `json:"stopped,omitempty"`
}

// importRefusal is a record that was refused, as --json prints it.
type importRefusal struct {
	Line   int    `json:"line"`
	Login  string `json:"login,omitempty"`
	Field  string `json:"field,omitempty"`
	Code   string `json:"code,omitempty"`
	Reason string `json:"reason"`
}

// Run imports the file.
func (i *Import) Run(c *cli.Console) error {
	run := &importing{Import: i, console: c, dir: "."}
	src := c.Stdin
	if i.File != "-" {
		f, err := os.Open(i.File)
		if err != nil {
			return err
		}
		defer f.Close()
		src, run.dir = f, filepath.Dir(i.File)
	}
	list, err := records.NewReader(src, i.Format)
	if err != nil {
		return err
	}
	operation := "ImportUsers"
	if i.DryRun {
		operation = "CheckImport"
	}
	return cli.Administer(c, &i.From, operation, filepath.Base(i.File), func(ctx context.Context, s *app.Services) error {
		if err := i.knownGroup(ctx, c, s); err != nil {
			return err
		}
		order := app.Import{Services: s, Group: i.Group, By: c.Administrator(), Remote: audit.CommandLine, Key: run.keyFile, AnyNumbers: i.Any}
		if i.DryRun {
			dir, err := os.MkdirTemp("", "tamga-import-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			order.Notes = dir
			if order.Scratch, err = s.Scratch(ctx, dir); err != nil {
				return err
			}
			defer order.Scratch.Close()
		}
		return run.all(ctx, &order, list)
	})
}

// knownGroup returns an error for a group of --group that is unknown, before a file of a million lines is read.
func (i *Import) knownGroup(ctx context.Context, c *cli.Console, s *app.Services) error {
	if i.Group == "" {
		return nil
	}
	groups, err := s.Users.Groups(ctx)
	if err != nil || slices.ContainsFunc(groups, func(g user.Group) bool { return g.Name == i.Group }) {
		return err
	}
	said := c.Text("--group %s: there is no such group; tamga group list prints the groups, tamga group add makes one", i.Group)
	return fault.New(fault.InvalidParameters, said)
}

// all imports the records and prints the report while it does, so that memory does not grow.
func (r *importing) all(ctx context.Context, order *app.Import, list records.Reader) error {
	if r.From.JSON {
		fmt.Fprintf(r.console.Stdout, "{\n  \"dry_run\": %t,\n  \"refused\": [", r.DryRun)
	}
	r.progress = cli.NewProgress(r.console)
	stopped, broken := order.Run(ctx, list, r.tell)
	r.progress.Clear()
	audit.Remark(ctx, r.report.detail())
	if broken != nil {
		return broken
	}
	if stopped != nil {
		r.report.Stopped = message(stopped)
	}
	if err := r.end(); err != nil {
		return err
	}
	switch {
	case stopped != nil:
		return fmt.Errorf("stopped; what was imported stays, and the command may be repeated: %w", stopped)
	case r.report.Refused > 0:
		return cli.Incomplete
	}
	return nil
}

// detail returns the counts for the audit log.
func (x *importReport) detail() string {
	return fmt.Sprintf("%d records: %d added, %d unchanged, %d refused", x.Records, x.Added, x.Unchanged, x.Refused)
}

// tell reports records in the order of the file.
func (r *importing) tell(batch []*app.ImportItem) error {
	r.progress.Clear()
	for _, i := range batch {
		r.report.Records++
		switch {
		case i.Err != nil:
			if err := r.refuse(i.Line, i.Record, i.Err); err != nil {
				return err
			}
		case i.Unchanged:
			r.report.Unchanged++
		default:
			r.report.Added++
			r.report.Contacts += len(i.Account.Contacts)
			r.report.Certificates += len(i.Certificates)
			r.report.Keys += len(i.Record.Keys)
		}
	}
	r.progress.Count(r.console.Text("line %d: %d added, %d refused", batch[len(batch)-1].Line, r.report.Added, r.report.Refused))
	return nil
}

// message returns an error for people.
func message(err error) string {
	if f, ok := fault.As(err); ok {
		return f.Message
	}
	return err.Error()
}

// reasonFor returns an error in the language of the process.
func (r *importing) reasonFor(err error) string {
	if f, ok := fault.As(err); ok && r.console.Language != "" {
		return view.Reason(r.console.Language, f)
	}
	return message(err)
}

// refuse reports a record that was refused.
func (r *importing) refuse(line int, record *records.Record, err error) error {
	r.report.Refused++
	x := importRefusal{Line: line, Reason: cli.Printable(message(err))}
	var field *user.FieldError
	if errors.As(err, &field) {
		x.Field = field.Field
	}
	if f, ok := fault.As(err); ok {
		x.Code = f.Code
	}
	if record != nil {
		x.Login = cli.Printable(record.Login)
	}
	if !r.From.JSON {
		x.Reason = cli.Printable(r.reasonFor(err))
		where := r.console.Text("line %d", x.Line)
		if x.Login != "" {
			where += " (" + x.Login + ")"
		}
		if x.Field != "" && !strings.HasPrefix(x.Reason, x.Field+": ") {
			where += ": " + x.Field
		}
		_, err := fmt.Fprintf(r.console.Stdout, "%s: %s\n", where, x.Reason)
		return err
	}
	text, err := json.Marshal(x)
	if err != nil {
		return err
	}
	separator := ","
	if r.report.Refused == 1 {
		separator = ""
	}
	_, err = fmt.Fprintf(r.console.Stdout, "%s\n    %s", separator, text)
	return err
}

// end prints the end of the report.
func (r *importing) end() error {
	if r.From.JSON {
		text, err := json.MarshalIndent(r.report, "  ", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(r.console.Stdout, "\n  ],\n  \"report\": %s\n}\n", text)
		return err
	}
	x := r.report
	text := r.console.Text("%d records: %d users added with %d contacts, %d certificates to sign in with and %d keys; %d unchanged, %d refused.\n",
		x.Records, x.Added, x.Contacts, x.Certificates, x.Keys, x.Unchanged, x.Refused)
	if r.DryRun {
		text += r.console.Text("This was a dry run: nothing was changed.\n")
	}
	return r.console.Print("%s", text)
}

func (r *importing) keyFile(k records.Key) (o keys.ImportOrder, err error) {
	if k.File == "" || k.PasswordFile == "" {
		return o, fault.New(fault.InvalidParameters, "want the PKCS #12 file and the file with its password")
	}
	if o.Password, err = files.OwnSecret(r.path(k.PasswordFile), "the password file"); err != nil {
		return o, err
	}
	if k.PINFile != "" {
		if o.PIN, err = files.OwnSecret(r.path(k.PINFile), "the PIN file"); err != nil {
			return o, err
		}
	}
	f, err := os.Open(r.path(k.File))
	if err != nil {
		return o, err
	}
	defer f.Close()
	o.File, err = io.ReadAll(io.LimitReader(f, pfx.MaxSize+1))
	return o, err
}

// path returns the path of a file that a record names.
func (r *importing) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(r.dir, name)
}
