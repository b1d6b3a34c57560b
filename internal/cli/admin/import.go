// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/domain/approval"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/user"
	"tamga/internal/domain/vault"
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
	console *cli.Console
	dir     string        // paths of the file begin there
	real    *app.Services // the installation
	scratch *app.Services // of a dry run: what its records would have added; otherwise nil
	notes   string        // directory of the scratch
	report  importReport
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
	records, err := newRecordReader(src, i.Format)
	if err != nil {
		return err
	}
	operation := "ImportUsers"
	if i.DryRun {
		operation = "CheckImport"
	}
	return cli.Administer(c, &i.From, operation, filepath.Base(i.File), func(ctx context.Context, s *app.Services) error {
		run.real = s
		if i.DryRun {
			dir, err := os.MkdirTemp("", "tamga-import-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			run.notes = dir
			if run.scratch, err = s.Scratch(ctx, dir); err != nil {
				return err
			}
			defer run.scratch.Close()
		}
		return run.all(ctx, records)
	})
}

// batchRecords is the number of records that one transaction adds at most. Its locks are held for
// a fraction of a second: on SQLite no other change runs meanwhile.
const batchRecords = 100

// importItem is a record on its way.
type importItem struct {
	line         int
	record       *importRecord // nil for a line that is no record
	account      user.Account
	certificates [][]byte
	pairs        []keys.ImportOrder
	imported     []*keys.Certificate
	unchanged    bool
	err          error // why it was refused
}

// all imports the records and prints the report while it does, so that memory does not grow.
func (r *importing) all(ctx context.Context, records recordReader) error {
	out := r.console.Stdout
	if r.From.JSON {
		fmt.Fprintf(out, "{\n  \"dry_run\": %t,\n  \"refused\": [", r.DryRun)
	}
	progress := cli.NewProgress(r.console)
	stopped, broken := error(nil), error(nil) // by the installation or the file; by the report
	var batch []*importItem
	touched := map[string]bool{} // by the records of the batch
	add := func() bool {
		if err := r.together(ctx, batch); err != nil {
			stopped = fmt.Errorf("line %d: %w", batch[0].line, err)
		} else {
			progress.Clear()
			broken = r.tell(batch)
		}
		batch = batch[:0]
		clear(touched)
		return stopped == nil && broken == nil
	}
	for {
		if err := ctx.Err(); err != nil {
			stopped = context.Cause(ctx)
			break
		}
		line, record, err := records.next()
		var refused *user.FieldError
		if err != nil && !errors.As(err, &refused) {
			if len(batch) > 0 && !add() {
				break
			}
			if !errors.Is(err, io.EOF) {
				stopped = err
			}
			break
		}
		item := &importItem{line: line, record: record, err: err}
		if err == nil {
			item.err = r.prepare(item)
		}
		touches, alone := r.touches(item).Values(), record != nil && len(record.Keys) > 0
		shares := slices.ContainsFunc(touches, func(v string) bool { return touched[v] })
		if len(batch) > 0 && (alone || shares) && !add() {
			break
		}
		batch = append(batch, item)
		for _, v := range touches {
			touched[v] = true
		}
		if (alone || len(batch) == batchRecords) && !add() {
			break
		}
		progress.Count(r.console.Text("line %d: %d added, %d refused", line, r.report.Added, r.report.Refused))
	}
	progress.Clear()
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
		return cli.ExitCode(1)
	}
	return nil
}

// prepare fills in an item and returns why its record is refused without looking at the
// installation.
func (r *importing) prepare(i *importItem) (err error) {
	record := i.record
	contacts, err := record.contacts()
	if err != nil {
		return err
	}
	if i.certificates, err = record.certificates(); err != nil {
		return err
	}
	if record.Login == "" {
		return recordFault("login", reason{cli.Say("missing; a repeated import finds users by it")})
	}
	if record.Group == "" {
		if record.Group = r.Group; record.Group == "" {
			return recordFault("group", reason{cli.Say("missing; name it in the record or with --group")})
		}
	}
	i.account = user.Account{
		Login: record.Login, DisplayName: record.Name, Group: record.Group, Components: record.DN, Contacts: contacts, Locked: record.Locked,
	}
	return nil
}

// touches returns what must be free for a record. Records that touch the same are never in one
// transaction, so each is judged by what the records before it have left.
func (r *importing) touches(i *importItem) lock.Set {
	if i.err != nil {
		return lock.Set{}
	}
	set := r.real.Users.Touches(&i.account)
	for _, der := range i.certificates {
		set = set.And(lock.Named(fmt.Sprintf("certificate %x", sha256.Sum256(der))))
	}
	return set
}

// together imports records that touch nothing in common: one transaction for all of them. An
// error is not about a record, and then none of them was imported.
func (r *importing) together(ctx context.Context, batch []*importItem) error {
	defer func() {
		for _, i := range batch {
			for _, p := range i.pairs {
				clear(p.File)
			}
		}
	}()
	found, err := r.find(ctx, batch)
	if err != nil {
		return err
	}
	var add []*importItem
	for _, i := range batch {
		if i.err != nil {
			continue
		}
		if i.err = r.look(ctx, i, found); i.err != nil && !refusal(i.err) {
			return i.err
		}
		if i.err == nil && !i.unchanged {
			add = append(add, i)
		}
	}
	if err := r.addAll(ctx, r.real, add, !r.DryRun); err != nil || !r.DryRun {
		return err
	}
	add = slices.DeleteFunc(add, func(i *importItem) bool { return i.err != nil })
	return r.addAll(ctx, r.scratch, add, true) // also against what the records before would have added
}

// importUser is a user who exists, and where.
type importUser struct {
	user.User
	in *app.Services
}

// find returns the users who have the logins of records, by folded login.
func (r *importing) find(ctx context.Context, batch []*importItem) (map[string]importUser, error) {
	var logins []string
	for _, i := range batch {
		if i.err == nil {
			logins = append(logins, i.account.Login)
		}
	}
	all := map[string]importUser{}
	for _, s := range []*app.Services{r.scratch, r.real} { // a user of both is compared as in the installation
		if s == nil {
			continue
		}
		found, err := s.Users.ByLogins(ctx, logins)
		if err != nil {
			return nil, err
		}
		for login, u := range found {
			all[login] = importUser{u, s}
		}
	}
	return all, nil
}

// look compares a record with the user who has its login, if there is one. It reads the files of
// the record if it is to be added.
func (r *importing) look(ctx context.Context, i *importItem, found map[string]importUser) (err error) {
	if u, has := found[user.FoldLogin(i.account.Login)]; has {
		i.unchanged = true
		return r.compare(ctx, u, i.record, i.account, i.certificates)
	}
	i.pairs, err = r.keyFiles(i.record)
	return err
}

// addAll adds the users of records to an installation. With keep false nothing stays.
func (r *importing) addAll(ctx context.Context, s *app.Services, items []*importItem, keep bool) error {
	var accounts []user.Account
	for _, i := range items {
		a := i.account
		a.Also = func(ctx context.Context, u user.User) error { return r.also(ctx, s, i, u) }
		accounts = append(accounts, a)
	}
	made, faults, err := s.Users.AddAll(ctx, accounts, keep)
	if err != nil {
		return err
	}
	for n, i := range items {
		if i.err = faults[n]; i.err == nil && s == r.scratch {
			if err := r.noteKeys(made[n].ID, i.imported); err != nil {
				return err
			}
		}
	}
	return nil
}

// also adds what a user has beside the account, in the same transaction.
func (r *importing) also(ctx context.Context, s *app.Services, i *importItem, u user.User) error {
	for n, der := range i.certificates {
		if _, err := s.Identity.AddCertificate(ctx, u.ID, der); err != nil {
			return faultIn("certificate", n, err)
		}
	}
	if s == r.scratch {
		return r.checkKeys(i.imported)
	}
	i.imported = nil
	for n, pair := range i.pairs {
		pair.UserID = u.ID
		c, err := s.Keys.Import(ctx, pair)
		if err != nil {
			return faultIn("key", n, err)
		}
		i.imported = append(i.imported, c)
	}
	return s.Audit.Record(ctx, audit.Entry{
		Operation: "AddUser", Phase: audit.Done, Object: u.Login, Outcome: audit.OK, Remote: audit.CommandLine, Detail: "import",
		Principal: approval.Administrator,
	})
}

// tell reports records in the order of the file.
func (r *importing) tell(batch []*importItem) error {
	for _, i := range batch {
		r.report.Records++
		switch {
		case i.err != nil:
			if err := r.refuse(i.line, i.record, i.err); err != nil {
				return err
			}
		case i.unchanged:
			r.report.Unchanged++
		default:
			r.report.Added++
			r.report.Contacts += len(i.account.Contacts)
			r.report.Certificates += len(i.certificates)
			r.report.Keys += len(i.record.Keys)
		}
	}
	return nil
}

// refusal reports whether an error is about the record, and not about the installation.
func refusal(err error) bool {
	var outage *fault.Outage
	if errors.As(err, &outage) {
		return false
	}
	if f, ok := fault.As(err); ok {
		return f.Code != fault.Unavailable && f.Code != fault.Closed
	}
	var field *user.FieldError
	return errors.As(err, &field)
}

// message returns an error for people.
func message(err error) string {
	if f, ok := fault.As(err); ok {
		return f.Message
	}
	return err.Error()
}

// reason is an error about a record that people read in their language.
type reason struct{ cli.Sentence }

// Error returns the reason in English.
func (r reason) Error() string { return r.String() }

// reasonFor returns an error in the language of the process.
func (r *importing) reasonFor(err error) string {
	if why, ok := errors.AsType[reason](err); ok {
		return r.console.Say(why.Sentence)
	}
	if f, ok := fault.As(err); ok && r.console.Language != "" {
		return view.Reason(r.console.Language, f)
	}
	return message(err)
}

// refuse reports a record that was refused.
func (r *importing) refuse(line int, record *importRecord, err error) error {
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

// inField returns an error about an element of a list of a record, from 0.
func inField(field string, n int, err error) error { return recordFault(user.FieldOf(field, n+1), err) }

// faultIn is inField for a fault. Other errors are not about the record.
func faultIn(field string, n int, err error) error {
	if _, ok := fault.As(err); !ok {
		return err
	}
	return inField(field, n, err)
}

// certificates returns the certificates of a record in DER.
func (r *importRecord) certificates() (list [][]byte, err error) {
	for n, text := range r.Certificates {
		der := []byte(text)
		if block, rest := pem.Decode(der); block != nil {
			if block.Type != "CERTIFICATE" || len(bytes.TrimSpace(rest)) > 0 {
				return nil, inField("certificate", n, reason{cli.Say("want one certificate; a private key does not belong here")})
			}
			der = block.Bytes
		} else if der, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), "")); err != nil {
			return nil, inField("certificate", n, reason{cli.Say("want a certificate as Base64 of DER, or PEM")})
		}
		list = append(list, der)
	}
	return list, nil
}

// keyFiles reads the PKCS #12 files of a record.
func (r *importing) keyFiles(record *importRecord) (list []keys.ImportOrder, err error) {
	for n, k := range record.Keys {
		o, err := r.keyFile(k)
		if err != nil {
			return list, inField("key", n, err)
		}
		list = append(list, o)
	}
	return list, nil
}

func (r *importing) keyFile(k importKey) (o keys.ImportOrder, err error) {
	if k.File == "" || k.PasswordFile == "" {
		return o, reason{cli.Say("want the PKCS #12 file and the file with its password")}
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

// compare compares a record with the user who has its login. The error says in what they differ.
func (r *importing) compare(ctx context.Context, u importUser, record *importRecord, account user.Account, certificates [][]byte) error {
	h := u.in
	fields, err := h.Users.Differences(ctx, u.User, account)
	if err != nil {
		return err
	}
	have, err := h.Identity.Certificates(ctx, u.ID)
	if err != nil {
		return err
	}
	for n, der := range certificates {
		if !slices.ContainsFunc(have, func(c signin.SignInCertificate) bool { return c.Thumbprint == sha256.Sum256(der) }) {
			fields = append(fields, user.FieldOf("certificate", n+1))
		}
	}
	missing, err := r.missingKeys(ctx, h, u.ID, record)
	if err != nil {
		return err
	}
	if fields = append(fields, missing...); len(fields) > 0 {
		return recordFault(fields[0], user.Unlike(fields))
	}
	return nil
}

// missingKeys returns the fields of the keys of a record that a user lacks.
func (r *importing) missingKeys(ctx context.Context, s *app.Services, userID string, record *importRecord) (fields []string, err error) {
	if len(record.Keys) == 0 {
		return nil, nil
	}
	have := map[[sha256.Size]byte]bool{}
	if s == r.scratch {
		have, err = r.notedKeys(userID)
	} else {
		var list []*keys.Certificate
		list, err = s.Keys.List(ctx, userID)
		for _, c := range list {
			have[sha256.Sum256(c.X509.Raw)] = true
		}
	}
	if err != nil {
		return nil, err
	}
	for n, k := range record.Keys {
		o, err := r.keyFile(k)
		if err != nil {
			return nil, inField("key", n, err)
		}
		thumbprint, err := certified(o)
		clear(o.File)
		if err != nil {
			return nil, inField("key", n, err)
		}
		if !have[thumbprint] {
			fields = append(fields, user.FieldOf("key", n+1))
		}
	}
	return fields, nil
}

// certified returns the SHA-256 of the certificate in a PKCS #12 file.
func certified(o keys.ImportOrder) (thumbprint [sha256.Size]byte, err error) {
	bundle, err := pfx.Parse(o.File, o.Password)
	if err != nil {
		return thumbprint, reason{cli.Say("the PKCS #12 file cannot be opened with this password")}
	}
	vault.Wipe(bundle.Key)
	if bundle.Certificate == nil {
		return thumbprint, reason{cli.Say("the PKCS #12 file has no certificate for its key")}
	}
	return sha256.Sum256(bundle.Certificate.Raw), nil
}

// checkKeys returns a fault for a key that a record before would have imported. Certificates of the
// built-in authority belong to one user.
func (r *importing) checkKeys(list []*keys.Certificate) error {
	for n, c := range list {
		_, err := os.Stat(r.note(c))
		switch {
		case c.Outside, errors.Is(err, fs.ErrNotExist):
		case err == nil:
			return inField("key", n, keys.OfAnother())
		default:
			return err
		}
	}
	return nil
}

// note returns the path of the file for a certificate.
func (r *importing) note(c *keys.Certificate) string {
	return filepath.Join(r.notes, fmt.Sprintf("%x", sha256.Sum256(c.X509.Raw)))
}

// noteKeys remembers the keys of a user of the scratch, which has none: its authority is another.
func (r *importing) noteKeys(userID string, list []*keys.Certificate) error {
	var all []byte
	for _, c := range list {
		thumbprint := sha256.Sum256(c.X509.Raw)
		all = append(all, thumbprint[:]...)
		if err := os.WriteFile(r.note(c), nil, 0o600); err != nil {
			return err
		}
	}
	if all == nil {
		return nil
	}
	return os.WriteFile(filepath.Join(r.notes, userID), all, 0o600)
}

// notedKeys returns what noteKeys remembered.
func (r *importing) notedKeys(userID string) (map[[sha256.Size]byte]bool, error) {
	all, err := os.ReadFile(filepath.Join(r.notes, userID))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	have := map[[sha256.Size]byte]bool{}
	for one := range slices.Chunk(all, sha256.Size) {
		have[[sha256.Size]byte(one)] = true
	}
	return have, err
}
