// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"cmp"
	"context"
	"slices"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/user"
	"tamga/pki/x509gost"
)

// Scope says which people a user finds as recipients.
type Scope string

// The scopes.
const (
	ScopeNone     Scope = "none"     // none but the user
	ScopeGroup    Scope = "group"    // people of the user's group, and for an operator people of the groups that the operator manages
	ScopeEveryone Scope = "everyone" // all of the installation
)

// Limits of a Directory.
const (
	// MostFound is how many people a search returns at most.
	MostFound = 20
	// MostInGroup is how many people a group has at most that is a recipient.
	MostInGroup = 200

	looked    = 100  // people of a search whose certificates are read
	mostShown = 1000 // groups to choose from
	maxFile   = 64   // certificates of a file
)

// People finds users; *user.Service satisfies it.
type People interface {
	Get(ctx context.Context, id string) (user.User, error)
	Named(ctx context.Context, groups []string, text string, limit int) (list []user.User, more bool, err error)
	Page(ctx context.Context, q user.Query) ([]user.User, error)
	GroupsOf(ctx context.Context, who audit.Principal, limit int) ([]string, error)
	GroupsAfter(ctx context.Context, after string, limit int) ([]user.Group, error)
}

// Directory finds the recipients of messages among the users of the installation. Only those are found who have a valid
// certificate for encryption: who publishes one wants to get messages. A user sees of others the display name,
// the login and that certificate. All fields must be set.
type Directory struct {
	People People
	Keys   interface {
		List(ctx context.Context, userID string) ([]*keys.Certificate, error)
	}
	Scope Scope
	Now   func() time.Time
}

// Recipient is a person or a certificate that documents are encrypted for.
type Recipient struct {
	UserID, Login, Name string // of a user
	Certificate         *x509gost.Certificate
}

// Own returns the caller as a recipient, nil without a certificate for encryption.
func (d *Directory) Own(ctx context.Context, who audit.Principal) (*Recipient, error) {
	u, err := d.People.Get(ctx, who.UserID)
	if err != nil {
		return nil, err
	}
	return d.recipient(ctx, &u)
}

// Find returns recipients whose name or login has all words of a text, at most MostFound, in the order of logins. more
// reports whether there may be others. Fault: error_invalid_filter_value.
func (d *Directory) Find(ctx context.Context, who audit.Principal, text string) (found []Recipient, more bool, err error) {
	groups, all, err := d.groups(ctx, who)
	if err != nil {
		return nil, false, err
	}
	if !all && groups == nil {
		groups = []string{}
	}
	list, more, err := d.People.Named(ctx, groups, text, looked)
	if err != nil {
		return nil, false, err
	}
	for i := range list {
		r, err := d.recipient(ctx, &list[i])
		switch {
		case err != nil:
			return nil, false, err
		case r == nil:
		case len(found) == MostFound:
			return found, true, nil
		default:
			found = append(found, *r)
		}
	}
	return found, more, nil
}

// Chosen returns users as recipients, those whom the caller may find. With the fault it returns the others.
// Fault: invalid_recipients.
func (d *Directory) Chosen(ctx context.Context, who audit.Principal, ids []string) (list []Recipient, err error) {
	groups, all, err := d.groups(ctx, who)
	if err != nil {
		return nil, err
	}
	missing := false
	for _, id := range ids {
		u, err := d.People.Get(ctx, id)
		if _, refused := fault.As(err); err != nil && !refused {
			return nil, err
		}
		var r *Recipient
		if err == nil && (all || id == who.UserID || slices.Contains(groups, u.Group)) {
			if r, err = d.recipient(ctx, &u); err != nil {
				return nil, err
			}
		}
		if r == nil {
			missing = true
			continue
		}
		list = append(list, *r)
	}
	if missing {
		return list, fault.New(fault.InvalidRecipients, "a person who was chosen has no certificate for encryption any more: choose the people again")
	}
	return list, nil
}

// Groups returns the names of the groups whose people the caller finds.
func (d *Directory) Groups(ctx context.Context, who audit.Principal) (names []string, err error) {
	names, all, err := d.groups(ctx, who)
	if err != nil || !all {
		return names, err
	}
	list, err := d.People.GroupsAfter(ctx, "", mostShown)
	for i := range list {
		names = append(names, list[i].Name)
	}
	return names, err
}

// InGroup returns the people of a group as recipients. Fault: invalid_recipients.
func (d *Directory) InGroup(ctx context.Context, who audit.Principal, group string) (list []Recipient, err error) {
	names, all, err := d.groups(ctx, who)
	if err != nil {
		return nil, err
	}
	if !all && !slices.Contains(names, group) {
		return nil, fault.New(fault.InvalidRecipients, "there is no such group")
	}
	users, err := d.People.Page(ctx, user.Query{Groups: []string{group}, Limit: MostInGroup + 1})
	if err != nil {
		return nil, err
	}
	if len(users) > MostInGroup {
		return nil, fault.Newf(fault.InvalidRecipients, "the group has more than %d people: choose people by their names", MostInGroup)
	}
	for i := range users {
		r, err := d.recipient(ctx, &users[i])
		if err != nil {
			return nil, err
		}
		if r != nil {
			list = append(list, *r)
		}
	}
	if len(list) == 0 {
		return nil, fault.New(fault.InvalidRecipients, "no person of the group has a certificate for encryption")
	}
	return list, nil
}

// groups returns the groups whose people the caller finds. all: those of every group.
func (d *Directory) groups(ctx context.Context, who audit.Principal) (names []string, all bool, err error) {
	switch d.Scope {
	case ScopeNone:
		return nil, false, nil
	case ScopeEveryone:
		return nil, true, nil
	}
	u, err := d.People.Get(ctx, who.UserID)
	if err != nil {
		return nil, false, err
	}
	if u.Operator {
		names, err = d.People.GroupsOf(ctx, who, 0)
		if _, refused := fault.As(err); err != nil && !refused {
			return nil, false, err
		}
	}
	if !slices.Contains(names, u.Group) {
		names = append(slices.Clone(names), u.Group)
	}
	return names, false, nil
}

// recipient returns a user with the certificate for encryption that is taken: the default one, else the newest. nil
// means that the user has none, or is locked.
func (d *Directory) recipient(ctx context.Context, u *user.User) (*Recipient, error) {
	if u.Barred(d.Now()) {
		return nil, nil
	}
	list, err := d.Keys.List(ctx, u.ID)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(slices.Clone(list), func(c *keys.Certificate) bool { return c.Status != keys.Active || !c.ForEncryption() })
	if len(list) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(list, func(a, b *keys.Certificate) int {
		switch {
		case a.Default:
			return -1
		case b.Default:
			return 1
		}
		return b.X509.NotBefore.Compare(a.X509.NotBefore)
	})
	return &Recipient{UserID: u.ID, Login: u.Login, Name: cmp.Or(u.DisplayName, u.Login), Certificate: list[0].X509}, nil
}

// ReadRecipients reads the certificates of a file: DER, PEM, Base64 or PKCS #7. Fault: invalid_recipients.
func ReadRecipients(file []byte) ([]Recipient, error) {
	found, err := x509gost.ParseCertificates(file)
	if err != nil {
		return nil, fault.New(fault.InvalidRecipients, "the file has no certificate: choose a file .cer, .crt, .pem or .p7b").With(err)
	}
	if len(found) > maxFile {
		return nil, fault.Newf(fault.InvalidRecipients, "a file has at most %d certificates", maxFile)
	}
	list := make([]Recipient, len(found))
	for i, cert := range found {
		if cert.Suite == nil {
			return nil, fault.New(fault.InvalidRecipients, "the key of a certificate in the file cannot receive messages").With(cert.KeyError)
		}
		list[i] = Recipient{Certificate: cert}
	}
	return list, nil
}
