// SPDX-License-Identifier: Apache-2.0

// Package admin has the sub-commands that administer an installation beside its running server:
// users, groups, operators, certificates, keys, policies, messages. Each exported type with a command
// name is a sub-command, and most have a file of their own. To add one, begin with a short one such
// as Group.
//
// A command does its work inside cli.Administer, so that it gets an audit entry. It has no rules of
// its own: the services of internal/domain do.
package admin

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/user"
	"tamga/internal/files"
)

// User is the sub-command user.
type User struct {
	Add      userAddCommand      `cmd:"" help:"Register a user."`
	List     userListCommand     `cmd:"" help:"List users."`
	Show     userShowCommand     `cmd:"" help:"Show a user or an operator: state, contacts, methods of sign-in, certificates, sessions."`
	Lock     userLockCommand     `cmd:"" help:"Lock a user and revoke all tokens of the user."`
	Unlock   userUnlockCommand   `cmd:"" help:"Unlock a user."`
	Logout   userLogoutCommand   `cmd:"" help:"Revoke all tokens of a user."`
	Sessions userSessionsCommand `cmd:"" help:"List the sessions of a user: the applications that have refresh tokens."`
	Password userPasswordCommand `cmd:"" help:"Set the password of a user. Revokes all tokens of the user."`
	Deny     userDenyCommand     `cmd:"" help:"Forbid a user an action, for instance SignDocument."`
	Allow    userAllowCommand    `cmd:"" help:"Allow a user an action again."`

	Method      methodCommand      `cmd:"" help:"List, add and remove authentication methods of a user."`
	Certificate certificateCommand `cmd:"" help:"Add, list and remove certificates that a user signs in with."`
	Delete      userDeleteCommand  `cmd:"" help:"Delete a user with keys, contacts and tokens."`
}

type userAddCommand struct {
	Login        string           `arg:"" help:"Login of the user."`
	Group        string           `required:"" help:"Group of the user."`
	Name         string           `help:"Display name. Default: the login."`
	PasswordFile string           `placeholder:"FILE" help:"File with the password. Default: ask at the terminal."`
	From         cli.Installation `embed:""`
}

func (u *userAddCommand) Run(c *cli.Console) error {
	return register(c, &u.From, "AddUser", user.Account{Login: u.Login, DisplayName: u.Name, Group: u.Group}, u.PasswordFile)
}

// register registers a user or operator with a password.
func register(c *cli.Console, from *cli.Installation, operation string, r user.Account, passwordFile string) error {
	password, err := newPassword(c, r.Login, passwordFile)
	if err != nil {
		return err
	}
	return cli.Administer(c, from, operation, r.Login, func(ctx context.Context, s *app.Services) error {
		setPassword, err := s.Identity.PreparePassword(ctx, password)
		if err != nil {
			return err
		}
		r.Also = func(ctx context.Context, u user.User) error { return setPassword(ctx, u.ID) }
		made, err := s.Users.Add(ctx, r)
		if err != nil {
			return err
		}
		return from.Answer(c, map[string]string{"id": made.ID, "login": made.Login, "group": made.Group}, "%s is registered as %s.\n", made.Login, made.ID)
	})
}

// newPassword reads a password from a file or asks for it at the terminal.
func newPassword(c *cli.Console, login, file string) (string, error) {
	if file != "" {
		return files.OwnSecret(file, "--password-file")
	}
	return c.AskSecret(c.Text("Password of %s: ", cli.Printable(login)), "--password-file")
}

type userListCommand struct {
	From cli.Installation `embed:""`
}

func (u *userListCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &u.From, "ListUsers", "", func(ctx context.Context, s *app.Services) error {
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
			page, err := s.Users.Page(ctx, user.Query{After: after, Limit: user.MaxPage})
			if err != nil {
				return err
			}
			for _, x := range page {
				lines = append(lines, line{x.ID, x.Login, x.DisplayName, x.Group, x.Operator, x.Barred(s.DB.Now())})
			}
			if len(page) < user.MaxPage {
				break
			}
			after = page[len(page)-1].Key()
		}
		var text strings.Builder
		table := c.NewTable(&text, "LOGIN", "GROUP", "ID", "NAME", "NOTE")
		for _, l := range lines {
			var marks []string
			if l.Operator {
				marks = append(marks, c.Text("operator"))
			}
			if l.Locked {
				marks = append(marks, c.Text("locked"))
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", cmp.Or(l.Login, "-"), l.Group, l.ID, cli.Printable(l.Name), strings.Join(marks, ", "))
		}
		table.Flush()
		return u.From.Answer(c, lines, "%s", text.String())
	})
}

// onUser has the arguments of a command on one user.
type onUser struct {
	Login string           `arg:"" help:"Login or identifier of the user."`
	From  cli.Installation `embed:""`
}

// find returns the user by login, otherwise by identifier.
func (o *onUser) find(ctx context.Context, s *app.Services) (user.User, error) {
	u, err := s.Users.ByLogin(ctx, o.Login)
	if fault.Is(err, fault.UserNotFound) {
		u, err = s.Users.Get(ctx, strings.ToLower(o.Login))
	}
	return u, err
}

// name returns the user as the command line names it.
func (o *onUser) name() string { return cli.Printable(o.Login) }

// do calls act for the user inside cli.Administer. done is the answer.
func (o *onUser) do(c *cli.Console, operation string, done cli.Sentence, act func(ctx context.Context, s *app.Services, u user.User) error) error {
	return cli.Administer(c, &o.From, operation, o.Login, func(ctx context.Context, s *app.Services) error {
		u, err := o.find(ctx, s)
		if err != nil {
			return err
		}
		if err := act(ctx, s, u); err != nil {
			return err
		}
		return o.From.Answer(c, map[string]string{"id": u.ID, "login": u.Login, "done": operation}, "%s", done)
	})
}

type userLockCommand struct {
	onUser `embed:""`
}

func (u *userLockCommand) Run(c *cli.Console) error {
	return u.do(c, "LockUser", cli.Say("%s is locked.\n", u.name()), func(ctx context.Context, s *app.Services, x user.User) error { return s.Users.Lock(ctx, x.ID) })
}

type userUnlockCommand struct {
	onUser `embed:""`
}

func (u *userUnlockCommand) Run(c *cli.Console) error {
	return u.do(c, "UnlockUser", cli.Say("%s is unlocked.\n", u.name()), func(ctx context.Context, s *app.Services, x user.User) error { return s.Users.Unlock(ctx, x.ID) })
}

type userLogoutCommand struct {
	onUser `embed:""`
}

func (u *userLogoutCommand) Run(c *cli.Console) error {
	return u.do(c, "EndTokens", cli.Say("%s has no tokens now.\n", u.name()), func(ctx context.Context, s *app.Services, x user.User) error {
		return s.Sessions.EndAll(ctx, x.ID)
	})
}

type userPasswordCommand struct {
	onUser       `embed:""`
	PasswordFile string `placeholder:"FILE" help:"File with the password. Default: ask at the terminal."`
}

func (u *userPasswordCommand) Run(c *cli.Console) error {
	password, err := newPassword(c, u.Login, u.PasswordFile)
	if err != nil {
		return err
	}
	return u.do(c, "SetPassword", cli.Say("%s has a new password.\n", u.name()), func(ctx context.Context, s *app.Services, x user.User) error {
		return s.Identity.SetPassword(ctx, x.ID, password)
	})
}

type userDenyCommand struct {
	onUser `embed:""`
	Action string `arg:"" help:"Name or number of the action."`
}

func (u *userDenyCommand) Run(c *cli.Console) error {
	return changeAccess(c, &u.onUser, u.Action, "DenyAction", func(a policy.Action) cli.Sentence { return cli.Say("%s may not perform %s.\n", u.name(), a) }, func(denied, a policy.Action) policy.Action { return denied | a })
}

type userAllowCommand struct {
	onUser `embed:""`
	Action string `arg:"" help:"Name or number of the action."`
}

func (u *userAllowCommand) Run(c *cli.Console) error {
	return changeAccess(c, &u.onUser, u.Action, "AllowAction", func(a policy.Action) cli.Sentence { return cli.Say("%s may perform %s.\n", u.name(), a) }, func(denied, a policy.Action) policy.Action { return denied &^ a })
}

// changeAccess changes the denied actions of a user. change returns the new set.
func changeAccess(c *cli.Console, o *onUser, action, operation string, done func(a policy.Action) cli.Sentence, change func(denied, a policy.Action) policy.Action) error {
	a, err := policy.ParseAction(action)
	if err != nil {
		return err
	}
	return o.do(c, operation, done(a), func(ctx context.Context, s *app.Services, x user.User) error {
		return s.Policies.Store.Atomic(ctx, lock.User(x.ID), func(ctx context.Context) error {
			have, err := s.Policies.Effective(ctx, x.ID, policy.Access)
			if err != nil {
				return err
			}
			have.Actions = change(have.Actions, a)
			return s.PolicyEditor.SetUser(ctx, x.ID, policy.Access, &have)
		})
	})
}

type userDeleteCommand struct {
	onUser      `embed:""`
	Yes         bool `required:"" help:"Confirm the deletion, which cannot be undone."`
	DestroyKeys bool `help:"Delete the user even if something was encrypted for certificates of the user: it becomes unreadable."`
}

func (u *userDeleteCommand) Run(c *cli.Console) error {
	return u.do(c, "DeleteUser", cli.Say("%s is deleted.\n", u.name()), func(ctx context.Context, s *app.Services, x user.User) error {
		return s.Users.Remove(ctx, x.ID, u.DestroyKeys)
	})
}

type userSessionsCommand struct {
	onUser `embed:""`
}

// Run lists the grants of a user. The command user logout ends all of them.
func (u *userSessionsCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &u.From, "ListSessions", "", func(ctx context.Context, s *app.Services) error {
		x, err := u.find(ctx, s)
		if err != nil {
			return err
		}
		grants, err := s.Tokens.Grants(ctx, x.ID)
		if err != nil {
			return err
		}
		type line struct {
			ID         string    `json:"id"`
			Client     string    `json:"client_id"`
			Scope      string    `json:"scope"`
			Method     string    `json:"method"`
			SignedInAt time.Time `json:"signed_in_at"`
			UsedAt     time.Time `json:"used_at"`
			ExpiresAt  time.Time `json:"expires_at"`
		}
		lines := []line{}
		var text strings.Builder
		table := c.NewTable(&text, "CLIENT", "SCOPE", "METHOD", "SIGNED IN", "USED", "UNTIL")
		date := func(at time.Time) string { return at.UTC().Format(time.DateTime) }
		for _, g := range grants {
			lines = append(lines, line{g.ID, g.ClientID, g.Scope, g.Method, g.SignedInAt, g.UsedAt, g.ExpiresAt})
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", cli.Printable(g.ClientID), cli.Printable(g.Scope), g.Method, date(g.SignedInAt), date(g.UsedAt), date(g.ExpiresAt))
		}
		table.Flush()
		return u.From.Answer(c, lines, "%s", text.String())
	})
}
