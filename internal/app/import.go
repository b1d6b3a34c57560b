// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/user"
	"tamga/internal/domain/user/records"
	"tamga/internal/domain/vault"
	"tamga/pki/pfx"
)

// Import registers the users of a list. Each record is imported whole or refused whole.
type Import struct {
	Services *Services
	Scratch  *Services       // of a dry run: what its records would have added; nil: the users are added
	Notes    string          // directory of the scratch
	Group    string          // of a record that names none
	By       audit.Principal // who imports, and from where
	Remote   string
	// Key reads the files of a key. nil: a record with keys is refused.
	Key func(k records.Key) (keys.ImportOrder, error)
	// AnyNumbers takes numbers of people and organisations whose length or check digits are wrong.
	AnyNumbers bool
	// Permits returns the fault of a record that may not be imported; nil: each may.
	Permits func(a *user.Account) error
}

// ImportItem is a record and what became of it.
type ImportItem struct {
	Line         int
	Record       *records.Record // nil for a line that is no record
	Account      user.Account
	Certificates [][]byte // in DER
	Unchanged    bool     // the user is as the record says
	Err          error    // why it was refused

	pairs    []keys.ImportOrder
	imported []*keys.Certificate
}

// batchRecords is the number of records that one transaction adds at most. Its locks are held for
// a fraction of a second: on SQLite no other change runs meanwhile.
const batchRecords = 100

// Run imports the records and tells of them in their order, some at a time. An error of tell ends the import. Stopped is the
// fault of the installation or of the file that ended it otherwise; what was imported stays.
func (r *Import) Run(ctx context.Context, list records.Reader, tell func(batch []*ImportItem) error) (stopped, broken error) {
	var batch []*ImportItem
	touched := map[string]bool{} // by the records of the batch
	add := func() bool {
		if err := r.together(ctx, batch); err != nil {
			stopped = fmt.Errorf("line %d: %w", batch[0].Line, err)
		} else {
			broken = tell(batch)
		}
		batch = batch[:0]
		clear(touched)
		return stopped == nil && broken == nil
	}
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx), broken
		}
		line, record, err := list.Next()
		var refused *user.FieldError
		if err != nil && !errors.As(err, &refused) {
			if len(batch) > 0 && !add() {
				return stopped, broken
			}
			if !errors.Is(err, io.EOF) {
				stopped = err
			}
			return stopped, broken
		}
		item := &ImportItem{Line: line, Record: record, Err: err}
		if err == nil {
			item.Account, item.Certificates, item.Err = record.Account(r.Group)
		}
		if item.Err == nil {
			item.Err = r.permits(item)
		}
		touches, alone := r.touches(item).Values(), record != nil && len(record.Keys) > 0
		shares := slices.ContainsFunc(touches, func(v string) bool { return touched[v] })
		if len(batch) > 0 && (alone || shares) && !add() {
			return stopped, broken
		}
		batch = append(batch, item)
		for _, v := range touches {
			touched[v] = true
		}
		if (alone || len(batch) == batchRecords) && !add() {
			return stopped, broken
		}
	}
}

func (r *Import) permits(i *ImportItem) error {
	if len(i.Record.Keys) > 0 && r.Key == nil {
		return inField("key", 0, fault.New(fault.InvalidParameters, "a key is imported by the command: its file and its password are on the server"))
	}
	if !r.AnyNumbers {
		if err := r.Services.Users.Naming.WrongNumbers(i.Account.Components); fault.Is(err, fault.InvalidParameters) {
			return records.Fault("dn", err)
		}
	}
	if r.Permits == nil {
		return nil
	}
	return r.Permits(&i.Account)
}

// keyFiles reads the PKCS #12 files of a record.
func (r *Import) keyFiles(record *records.Record) (list []keys.ImportOrder, err error) {
	for n, k := range record.Keys {
		o, err := r.Key(k)
		if err != nil {
			return list, inField("key", n, err)
		}
		list = append(list, o)
	}
	return list, nil
}

// touches returns what must be free for a record. Records that touch the same are never in one
// transaction, so each is judged by what the records before it have left.
func (r *Import) touches(i *ImportItem) lock.Set {
	if i.Err != nil {
		return lock.Set{}
	}
	set := r.Services.Users.Touches(&i.Account)
	for _, der := range i.Certificates {
		set = set.And(lock.Named(fmt.Sprintf("certificate %x", sha256.Sum256(der))))
	}
	return set
}

// together imports records that touch nothing in common: one transaction for all of them. An
// error is not about a record, and then none of them was imported.
func (r *Import) together(ctx context.Context, batch []*ImportItem) error {
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
	var add []*ImportItem
	for _, i := range batch {
		if i.Err != nil {
			continue
		}
		if i.Err = r.look(ctx, i, found); i.Err != nil && !Refusal(i.Err) {
			return i.Err
		}
		if i.Err == nil && !i.Unchanged {
			add = append(add, i)
		}
	}
	if err := r.addAll(ctx, r.Services, add, r.Scratch == nil); err != nil || r.Scratch == nil {
		return err
	}
	add = slices.DeleteFunc(add, func(i *ImportItem) bool { return i.Err != nil })
	return r.addAll(ctx, r.Scratch, add, true) // also against what the records before would have added
}

// importUser is a user who exists, and where.
type importUser struct {
	user.User
	in *Services
}

// find returns the users who have the logins of records, by folded login.
func (r *Import) find(ctx context.Context, batch []*ImportItem) (map[string]importUser, error) {
	var logins []string
	for _, i := range batch {
		if i.Err == nil {
			logins = append(logins, i.Account.Login)
		}
	}
	all := map[string]importUser{}
	for _, s := range []*Services{r.Scratch, r.Services} { // a user of both is compared as in the installation
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
func (r *Import) look(ctx context.Context, i *ImportItem, found map[string]importUser) (err error) {
	if u, has := found[user.FoldLogin(i.Account.Login)]; has {
		i.Unchanged = true
		return r.compare(ctx, u, i.Record, i.Account, i.Certificates)
	}
	i.pairs, err = r.keyFiles(i.Record)
	return err
}

// addAll adds the users of records to an installation. With keep false nothing stays.
func (r *Import) addAll(ctx context.Context, s *Services, items []*ImportItem, keep bool) error {
	var accounts []user.Account
	for _, i := range items {
		a := i.Account
		a.Also = func(ctx context.Context, u user.User) error { return r.also(ctx, s, i, u) }
		accounts = append(accounts, a)
	}
	made, faults, err := s.Users.AddAll(ctx, accounts, keep)
	if err != nil {
		return err
	}
	for n, i := range items {
		if i.Err = faults[n]; i.Err == nil && s == r.Scratch {
			if err := r.noteKeys(made[n].ID, i.imported); err != nil {
				return err
			}
		}
	}
	return nil
}

// also adds what a user has beside the account, in the same transaction.
func (r *Import) also(ctx context.Context, s *Services, i *ImportItem, u user.User) error {
	for n, der := range i.Certificates {
		if _, err := s.Identity.AddCertificate(ctx, u.ID, der); err != nil {
			return faultIn("certificate", n, err)
		}
	}
	if s == r.Scratch {
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
		Operation: "AddUser", Phase: audit.Done, Object: u.Login, Outcome: audit.OK, Remote: r.Remote, Detail: "import",
		Principal: r.By,
	})
}

// Refusal reports whether an error is about the record, and not about the installation.
func Refusal(err error) bool {
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

// inField returns an error about an element of a list of a record, from 0.
func inField(field string, n int, err error) error {
	return records.Fault(user.FieldOf(field, n+1), err)
}

// faultIn is inField for a fault. Other errors are not about the record.
func faultIn(field string, n int, err error) error {
	if _, ok := fault.As(err); !ok {
		return err
	}
	return inField(field, n, err)
}

// compare compares a record with the user who has its login. The error says in what they differ.
func (r *Import) compare(ctx context.Context, u importUser, record *records.Record, account user.Account, certificates [][]byte) error {
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
		return records.Fault(fields[0], user.Unlike(fields))
	}
	return nil
}

// missingKeys returns the fields of the keys of a record that a user lacks.
func (r *Import) missingKeys(ctx context.Context, s *Services, userID string, record *records.Record) (fields []string, err error) {
	if len(record.Keys) == 0 {
		return nil, nil
	}
	have := map[[sha256.Size]byte]bool{}
	if s == r.Scratch {
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
		o, err := r.Key(k)
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

// checkKeys returns a fault for a key that a record before would have imported. Certificates of the
// built-in authority belong to one user.
func (r *Import) checkKeys(list []*keys.Certificate) error {
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
func (r *Import) note(c *keys.Certificate) string {
	return filepath.Join(r.Notes, fmt.Sprintf("%x", sha256.Sum256(c.X509.Raw)))
}

// noteKeys remembers the keys of a user of the scratch, which has none: its authority is another.
func (r *Import) noteKeys(userID string, list []*keys.Certificate) error {
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
	return os.WriteFile(filepath.Join(r.Notes, userID), all, 0o600)
}

// notedKeys returns what noteKeys remembered.
func (r *Import) notedKeys(userID string) (map[[sha256.Size]byte]bool, error) {
	all, err := os.ReadFile(filepath.Join(r.Notes, userID))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	have := map[[sha256.Size]byte]bool{}
	for one := range slices.Chunk(all, sha256.Size) {
		have[[sha256.Size]byte(one)] = true
	}
	return have, err
}

// certified returns the SHA-256 of the certificate in a PKCS #12 file.
func certified(o keys.ImportOrder) (thumbprint [sha256.Size]byte, err error) {
	bundle, err := pfx.Parse(o.File, o.Password)
	if err != nil {
		return thumbprint, fault.New(fault.InvalidParameters, "the PKCS #12 file cannot be opened with this password")
	}
	vault.Wipe(bundle.Key)
	if bundle.Certificate == nil {
		return thumbprint, fault.New(fault.InvalidParameters, "the PKCS #12 file has no certificate for its key")
	}
	return sha256.Sum256(bundle.Certificate.Raw), nil
}
