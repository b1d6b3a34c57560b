package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/user"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// administer opens the installation, lets fn act on it, and writes the act and
// its outcome into the journal like any request.
func administer(c *console, from *configFrom, operation, object string, fn func(ctx context.Context, h *house) error) error {
	h, err := from.open(c)
	if err != nil {
		return err
	}
	defer h.close()
	if err := h.usable(c.ctx); err != nil {
		return err
	}
	if _, err := h.auth(c.ctx); err != nil {
		return err
	}
	entry := audit.Entry{
		At: time.Now(), Operation: operation, Phase: audit.Attempt, Object: object,
		Remote: "command line", Principal: audit.Principal{Login: "administrator", Method: "command line"},
	}
	if err := h.audit.Record(c.ctx, entry); err != nil {
		return fmt.Errorf("the journal cannot be written, so nothing was done: %w", err)
	}
	actErr := fn(c.ctx, h)
	entry.At, entry.Duration = time.Now(), time.Since(entry.At)
	entry.Phase, entry.Outcome = audit.Done, audit.OK
	if f, ok := fault.As(actErr); ok {
		entry.Outcome = f.Code
		actErr = errors.New(f.Message) // the code is for programs on the wire
	} else if actErr != nil {
		entry.Outcome = "internal_error"
	}
	return errors.Join(actErr, h.audit.Record(context.WithoutCancel(c.ctx), entry))
}

// answer prints a value as JSON, or the lines for people.
func (f *configFrom) answer(c *console, value any, people string, args ...any) error {
	if f.JSON {
		out := json.NewEncoder(c.stdout)
		out.SetIndent("", "  ")
		return out.Encode(value)
	}
	_, err := fmt.Fprint(c.stdout, asStarted(fmt.Sprintf(people, args...)))
	return err
}

type migrateCommand struct {
	From configFrom `embed:""`
}

func (m *migrateCommand) Run(c *console) error {
	h, err := m.From.open(c)
	if err != nil {
		return err
	}
	defer h.close()
	if err := h.db.Migrate(c.ctx); err != nil {
		return err
	}
	return m.From.answer(c, map[string]bool{"migrated": true}, "The database has the schema of this release.\n")
}

type groupCommand struct {
	Add  groupAddCommand  `cmd:"" help:"Add a group."`
	List groupListCommand `cmd:"" help:"List the groups."`
}

type groupAddCommand struct {
	Name  string     `arg:"" help:"Name of the group."`
	Title string     `help:"What people call it."`
	From  configFrom `embed:""`
}

func (g *groupAddCommand) Run(c *console) error {
	return administer(c, &g.From, "AddGroup", g.Name, func(ctx context.Context, h *house) error {
		if _, err := h.users.AddGroup(ctx, g.Name, g.Title); err != nil {
			return err
		}
		return g.From.answer(c, map[string]string{"name": g.Name}, "Group %s is there.\n", g.Name)
	})
}

type groupListCommand struct {
	From configFrom `embed:""`
}

func (g *groupListCommand) Run(c *console) error {
	return administer(c, &g.From, "ListGroups", "", func(ctx context.Context, h *house) error {
		groups, err := h.users.Groups(ctx)
		if err != nil {
			return err
		}
		list := []map[string]string{}
		var text strings.Builder
		for _, g := range groups {
			list = append(list, map[string]string{"name": g.Name, "title": g.Title})
			fmt.Fprintln(&text, g.Name)
		}
		return g.From.answer(c, list, "%s", text.String())
	})
}

type operatorCommand struct {
	Add         operatorAddCommand    `cmd:"" help:"Register an operator, who acts on the users of one or more groups."`
	List        operatorListCommand   `cmd:"" help:"List operators and their groups."`
	Groups      operatorGroupsCommand `cmd:"" help:"Change the groups an operator acts on; it counts from the next request on."`
	Certificate certificateCommand    `cmd:"" help:"Administer the certificates an operator signs in with."`
}

type operatorAddCommand struct {
	Login        string     `arg:"" help:"Login of the operator."`
	Group        []string   `required:"" help:"Group whose users the operator acts on; may be repeated."`
	PasswordFile string     `placeholder:"FILE" help:"File with the password; without it the password is asked for."`
	From         configFrom `embed:""`
}

func (o *operatorAddCommand) Run(c *console) error {
	return register(c, &o.From, "AddOperator", user.Account{Login: o.Login, Operator: true, Groups: o.Group}, o.PasswordFile)
}

type userCommand struct {
	Add      userAddCommand      `cmd:"" help:"Register a user."`
	List     userListCommand     `cmd:"" help:"List users."`
	Lock     userLockCommand     `cmd:"" help:"Lock a user: every token ends at once."`
	Unlock   userUnlockCommand   `cmd:"" help:"Unlock a user."`
	Logout   userLogoutCommand   `cmd:"" help:"End every token of a user."`
	Sessions userSessionsCommand `cmd:"" help:"List what a user stays signed in to: the applications that hold refresh tokens."`
	Password userPasswordCommand `cmd:"" help:"Set the password of a user; every token ends."`
	Deny     userDenyCommand     `cmd:"" help:"Forbid a user an action, such as SignDocument."`
	Allow    userAllowCommand    `cmd:"" help:"Allow a user an action again."`

	Method      methodCommand      `cmd:"" help:"Administer the authentication methods of a user."`
	Certificate certificateCommand `cmd:"" help:"Administer the certificates a user signs in with."`
	Delete      userDeleteCommand  `cmd:"" help:"Delete a user with everything that is theirs: keys, contacts, tokens."`
}

type userAddCommand struct {
	Login        string     `arg:"" help:"Login of the user."`
	Group        string     `required:"" help:"Group the user belongs to."`
	Name         string     `help:"Name for people; the login when absent."`
	PasswordFile string     `placeholder:"FILE" help:"File with the password; without it the password is asked for."`
	From         configFrom `embed:""`
}

func (u *userAddCommand) Run(c *console) error {
	return register(c, &u.From, "AddUser", user.Account{Login: u.Login, DisplayName: u.Name, Group: u.Group}, u.PasswordFile)
}

// register registers a user or operator with a password.
func register(c *console, from *configFrom, operation string, r user.Account, passwordFile string) error {
	password, err := newPassword(c, r.Login, passwordFile)
	if err != nil {
		return err
	}
	return administer(c, from, operation, r.Login, func(ctx context.Context, h *house) error {
		identity, err := h.auth(ctx)
		if err != nil {
			return err
		}
		setPassword, err := identity.PreparePassword(ctx, password)
		if err != nil {
			return err
		}
		var made user.User
		// By turns with the operators who register users at a server meanwhile.
		err = h.users.Store.Atomic(ctx, func(ctx context.Context) error {
			if made, err = h.users.Add(ctx, r); err != nil {
				return fault.Rollback(err)
			}
			return fault.Rollback(setPassword(ctx, made.ID))
		})
		if err != nil {
			return err
		}
		return from.answer(c, map[string]string{"id": made.ID, "login": made.Login, "group": made.Group}, "%s is registered as %s.\n", made.Login, made.ID)
	})
}

// newPassword takes a password from a file or asks for it.
func newPassword(c *console, login, file string) (string, error) {
	if file != "" {
		return ownSecret(file, "--password-file")
	}
	return askSecret(c.ctx, "Password of "+printable(login)+": ", "--password-file")
}

type userListCommand struct {
	From configFrom `embed:""`
}

func (u *userListCommand) Run(c *console) error {
	return administer(c, &u.From, "ListUsers", "", func(ctx context.Context, h *house) error {
		type line struct {
			ID       string `json:"id"`
			Login    string `json:"login"`
			Name     string `json:"name"`
			Group    string `json:"group"`
			Operator bool   `json:"operator"`
			Locked   bool   `json:"locked"`
		}
		lines := []line{}
		for after := ""; ; {
			page, err := h.users.Page(ctx, user.Query{After: after, Limit: user.MaxPage})
			if err != nil {
				return err
			}
			for _, x := range page {
				lines = append(lines, line{x.ID, x.Login, x.DisplayName, x.Group, x.Operator, x.Locked})
			}
			if len(page) < user.MaxPage {
				break
			}
			after = page[len(page)-1].Key()
		}
		var text strings.Builder
		table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		for _, l := range lines {
			var marks []string
			if l.Operator {
				marks = append(marks, "operator")
			}
			if l.Locked {
				marks = append(marks, "locked")
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", cmp.Or(l.Login, "-"), l.Group, l.ID, printable(l.Name), strings.Join(marks, ", "))
		}
		table.Flush()
		return u.From.answer(c, lines, "%s", text.String())
	})
}

// onUser is a command that does one thing to one user.
type onUser struct {
	Login string     `arg:"" help:"Login of the user; of one without a login the identifier."`
	From  configFrom `embed:""`
}

// find finds the user by login, otherwise by identifier.
func (o *onUser) find(ctx context.Context, h *house) (user.User, error) {
	u, err := h.users.ByLogin(ctx, o.Login)
	if fault.Is(err, fault.UserNotFound) {
		u, err = h.users.Get(ctx, strings.ToLower(o.Login))
	}
	return u, err
}

func (o *onUser) do(c *console, operation, done string, act func(ctx context.Context, h *house, u user.User) error) error {
	return administer(c, &o.From, operation, o.Login, func(ctx context.Context, h *house) error {
		u, err := o.find(ctx, h)
		if err != nil {
			return err
		}
		if err := act(ctx, h, u); err != nil {
			return err
		}
		return o.From.answer(c, map[string]string{"id": u.ID, "login": u.Login, "done": operation}, "%s %s.\n", cmp.Or(u.Login, u.ID), done)
	})
}

type userLockCommand struct {
	onUser `embed:""`
}

func (u *userLockCommand) Run(c *console) error {
	return u.do(c, "LockUser", "is locked", func(ctx context.Context, h *house, x user.User) error { return h.users.Lock(ctx, x.ID) })
}

type userUnlockCommand struct {
	onUser `embed:""`
}

func (u *userUnlockCommand) Run(c *console) error {
	return u.do(c, "UnlockUser", "is unlocked", func(ctx context.Context, h *house, x user.User) error { return h.users.Unlock(ctx, x.ID) })
}

type userLogoutCommand struct {
	onUser `embed:""`
}

func (u *userLogoutCommand) Run(c *console) error {
	return u.do(c, "EndTokens", "has no tokens any more", func(ctx context.Context, h *house, x user.User) error {
		return h.sessions.EndAll(ctx, x.ID)
	})
}

type userPasswordCommand struct {
	onUser       `embed:""`
	PasswordFile string `placeholder:"FILE" help:"File with the password; without it the password is asked for."`
}

func (u *userPasswordCommand) Run(c *console) error {
	password, err := newPassword(c, u.Login, u.PasswordFile)
	if err != nil {
		return err
	}
	return u.do(c, "SetPassword", "has a new password", func(ctx context.Context, h *house, x user.User) error {
		identity, err := h.auth(ctx)
		if err != nil {
			return err
		}
		return identity.SetPassword(ctx, x.ID, password)
	})
}

type userDenyCommand struct {
	onUser `embed:""`
	Action string `arg:"" help:"Name or number of the action."`
}

func (u *userDenyCommand) Run(c *console) error {
	return changeAccess(c, &u.onUser, u.Action, "DenyAction", "may not perform", func(denied, a policy.Action) policy.Action { return denied | a })
}

type userAllowCommand struct {
	onUser `embed:""`
	Action string `arg:"" help:"Name or number of the action."`
}

func (u *userAllowCommand) Run(c *console) error {
	return changeAccess(c, &u.onUser, u.Action, "AllowAction", "may perform", func(denied, a policy.Action) policy.Action { return denied &^ a })
}

func changeAccess(c *console, o *onUser, action, operation, done string, change func(denied, a policy.Action) policy.Action) error {
	a, err := policy.ParseAction(action)
	if err != nil {
		return err
	}
	return o.do(c, operation, done+" "+a.String(), func(ctx context.Context, h *house, x user.User) error {
		return h.policies.Store.Atomic(ctx, func(ctx context.Context) error {
			have, err := h.policies.Effective(ctx, x.ID, policy.Access)
			if err != nil {
				return err
			}
			have.Actions = change(have.Actions, a)
			return h.policies.SetUser(ctx, x.ID, policy.Access, &have)
		})
	})
}

type certCommand struct {
	Issue   certIssueCommand   `cmd:"" help:"Make a key for a user and certify it with the built-in authority."`
	List    certListCommand    `cmd:"" help:"List the certificates of a user."`
	Default certDefaultCommand `cmd:"" help:"Make a certificate the default one of its user."`
	Revoke  certRevokeCommand  `cmd:"" help:"Revoke a certificate; the revocation list is renewed at once."`
	Unhold  certUnholdCommand  `cmd:"" help:"Lift the hold of a certificate."`
}

type certIssueCommand struct {
	onUser  `embed:""`
	Suite   string   `default:"gost2012-256" help:"gost2001, gost2012-256, gost2012-512, ecdsa-p256 or rsa-2048."`
	Subject []string `placeholder:"NAME=VALUE" sep:"none" help:"Part of the subject: CN, C, O, OU, L, S, T, SN, G, E, INN, INNLE, SNILS, OGRN, OGRNIP; may be repeated. CN is the user's name when absent."`
	PINFile string   `name:"pin-file" placeholder:"FILE" help:"File with the PIN of the key; without it the key has none."`
	Default bool     `help:"Make it the user's default certificate."`
}

func (i *certIssueCommand) Run(c *console) error {
	su, ok := suite.ByName(i.Suite)
	if !ok {
		return fmt.Errorf("--suite %s: want gost2001, gost2012-256, gost2012-512, ecdsa-p256 or rsa-2048", i.Suite)
	}
	pin := ""
	if i.PINFile != "" {
		var err error
		if pin, err = ownSecret(i.PINFile, "--pin-file"); err != nil {
			return err
		}
	}
	return administer(c, &i.From, "IssueCertificate", i.Login, func(ctx context.Context, h *house) error {
		u, err := h.users.ByLogin(ctx, i.Login)
		if err != nil {
			return err
		}
		subject, err := subjectOf(i.Subject, u.DisplayName)
		if err != nil {
			return err
		}
		if err := h.authority.Bootstrap(ctx); err != nil {
			return err
		}
		cert, err := h.keys.Issue(ctx, keys.IssueOrder{UserID: u.ID, Suite: su, Subject: subject, PIN: pin, Default: i.Default})
		if err != nil {
			return err
		}
		return i.From.answer(c, certificateLine(cert), "Certificate %d of %s, %s, is issued until %s.\n", cert.ID, u.Login, su.Name, cert.X509.NotAfter.Format(time.DateOnly))
	})
}

// subjectOf builds a name from NAME=VALUE parts.
func subjectOf(parts []string, commonName string) (x509gost.Name, error) {
	var attributes []x509gost.Attribute
	named := false
	for _, p := range parts {
		name, value, ok := strings.Cut(p, "=")
		oid, known := x509gost.AttributeByName(name)
		if !ok || !known {
			return x509gost.Name{}, fmt.Errorf("--subject %s: want NAME=VALUE, such as INN=007700000000", p)
		}
		named = named || oid.Equal(x509gost.OIDCommonName)
		attributes = append(attributes, x509gost.Attribute{OID: oid, Value: value})
	}
	if !named {
		attributes = append(attributes, x509gost.Attribute{OID: x509gost.OIDCommonName, Value: commonName})
	}
	return x509gost.BuildName(attributes)
}

type certificateJSON struct {
	ID       int64     `json:"id"`
	Suite    string    `json:"suite"`
	Subject  string    `json:"subject"`
	Status   string    `json:"status"`
	Default  bool      `json:"default"`
	HasPIN   bool      `json:"has_pin"`
	NotAfter time.Time `json:"not_after"`
}

func certificateLine(c *keys.Certificate) certificateJSON {
	return certificateJSON{c.ID, c.X509.Suite.Name, c.X509.Subject.String(), c.Status.String(), c.Default, c.HasPIN, c.X509.NotAfter}
}

type certListCommand struct {
	onUser `embed:""`
}

func (l *certListCommand) Run(c *console) error {
	return administer(c, &l.From, "ListCertificates", l.Login, func(ctx context.Context, h *house) error {
		u, err := h.users.ByLogin(ctx, l.Login)
		if err != nil {
			return err
		}
		list, err := h.keys.List(ctx, u.ID)
		if err != nil {
			return err
		}
		lines := []certificateJSON{}
		var text strings.Builder
		table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		for _, x := range list {
			line := certificateLine(x)
			lines = append(lines, line)
			mark := ""
			if line.Default {
				mark = "default"
			}
			fmt.Fprintf(table, "%d\t%s\t%s\tuntil %s\t%s\t%s\n", line.ID, line.Suite, line.Status, line.NotAfter.Format(time.DateOnly), printable(line.Subject), mark)
		}
		table.Flush()
		return l.From.answer(c, lines, "%s", text.String())
	})
}

type certDefaultCommand struct {
	onUser `embed:""`
	ID     int64 `arg:"" help:"Number of the certificate."`
}

func (d *certDefaultCommand) Run(c *console) error {
	return d.do(c, "SetDefaultCertificate", fmt.Sprintf("signs with certificate %d by default", d.ID), func(ctx context.Context, h *house, u user.User) error {
		return h.keys.SetDefault(ctx, u.ID, d.ID)
	})
}

type certRevokeCommand struct {
	ID     int64      `arg:"" help:"Number of the certificate."`
	Reason int        `help:"Reason as CRLReason of RFC 5280: 0 unspecified, 1 key compromise, 3 affiliation changed, 4 superseded, 5 cessation, 6 hold, 9 privilege withdrawn."`
	From   configFrom `embed:""`
}

func (r *certRevokeCommand) Run(c *console) error {
	return administer(c, &r.From, "RevokeCertificate", fmt.Sprint(r.ID), func(ctx context.Context, h *house) error {
		if err := h.keys.Revoke(ctx, r.ID, r.Reason); err != nil {
			return err
		}
		return r.From.answer(c, map[string]int64{"revoked": r.ID}, "Certificate %d is revoked.\n", r.ID)
	})
}
