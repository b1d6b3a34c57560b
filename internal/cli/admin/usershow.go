// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/signin"
)

type userShowCommand struct {
	onUser `embed:""`
}

// userJSON is a user as user show --json prints it.
type userJSON struct {
	ID           string            `json:"id"`
	Login        string            `json:"login"`
	Name         string            `json:"name"`
	Group        string            `json:"group"`
	Operator     bool              `json:"operator"`
	Groups       []string          `json:"groups,omitempty"` // of an operator
	Locked       bool              `json:"locked"`
	LockAt       time.Time         `json:"lock_at,omitzero"`
	Unapproved   bool              `json:"unapproved"`
	CreatedAt    time.Time         `json:"created_at"`
	Contacts     []contactJSON     `json:"contacts"`
	Methods      []string          `json:"methods"`
	Certificates []CertificateJSON `json:"certificates"`
	Sessions     int               `json:"sessions"`
}

type contactJSON struct {
	Type          string `json:"type"`
	Value         string `json:"value"`
	Confirmed     bool   `json:"confirmed"`
	Primary       bool   `json:"primary"`
	Notification  bool   `json:"notification"`
	SecondaryAuth bool   `json:"secondary_auth"`
}

func (u *userShowCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &u.From, "ShowUser", u.Login, func(ctx context.Context, s *app.Services) error {
		x, err := u.find(ctx, s)
		if err != nil {
			return err
		}
		shown := userJSON{
			ID: x.ID, Login: x.Login, Name: x.DisplayName, Group: x.Group, Operator: x.Operator, Locked: x.Barred(s.DB.Now()), LockAt: x.LockAt,
			Unapproved: x.Unapproved, CreatedAt: x.CreatedAt, Contacts: []contactJSON{}, Methods: []string{}, Certificates: []CertificateJSON{},
		}
		if x.Operator {
			if shown.Groups, err = s.Users.OperatorGroups(ctx, x.ID); err != nil {
				return err
			}
		}
		for _, kind := range []contact.Kind{contact.Phone, contact.Email} {
			list, err := s.Contacts.Of(ctx, x.ID, kind)
			if err != nil {
				return err
			}
			for _, k := range list {
				shown.Contacts = append(shown.Contacts, contactJSON{string(k.Type), k.Value, k.Confirmed, k.Primary, k.Notification, k.SecondaryAuth})
			}
		}
		methods, err := s.Identity.SchemeOf(ctx, x.ID)
		if err != nil {
			return err
		}
		for _, m := range methods {
			method, _ := signin.MethodNamed(m.MethodURI)
			shown.Methods = append(shown.Methods, method.Route)
		}
		certificates, err := s.Keys.List(ctx, x.ID)
		if err != nil {
			return err
		}
		for _, k := range certificates {
			shown.Certificates = append(shown.Certificates, certificateLine(k))
		}
		grants, err := s.Tokens.Grants(ctx, x.ID)
		if err != nil {
			return err
		}
		shown.Sessions = len(grants)
		return u.From.Answer(c, shown, "%s", shown.text(c))
	})
}

// text returns the user as a table for people.
func (u *userJSON) text(c *cli.Console) string {
	var text strings.Builder
	table := c.NewTable(&text, "PROPERTY", "VALUE")
	row := func(name cli.Word, value string) {
		if value != "" {
			fmt.Fprintf(table, "%s\t%s\n", c.Word(name), cli.Printable(value))
		}
	}
	row(cli.Word("identifier"), u.ID)
	row(cli.Word("login"), cmp.Or(u.Login, "-"))
	row(cli.Word("name"), u.Name)
	row(cli.Word("group"), u.Group)
	if u.Operator {
		row(cli.Word("operates"), strings.Join(u.Groups, ", "))
	}
	state := c.Text("active")
	switch {
	case u.Unapproved:
		state = c.Text("not approved")
	case u.Locked:
		state = c.Text("locked")
	case !u.LockAt.IsZero():
		state = c.Text("locked from %s", u.LockAt.UTC().Format(time.DateTime))
	}
	row(cli.Word("state"), state)
	row(cli.Word("registered"), u.CreatedAt.UTC().Format(time.DateTime))
	for _, k := range u.Contacts {
		var roles []string
		for _, r := range []struct {
			has  bool
			name string
		}{{k.Primary, c.Text("main")}, {!k.Confirmed, c.Text("not confirmed")}, {k.Notification, c.Text("for messages")}, {k.SecondaryAuth, c.Text("for codes")}} {
			if r.has {
				roles = append(roles, r.name)
			}
		}
		value := k.Value
		if len(roles) > 0 {
			value += " (" + strings.Join(roles, ", ") + ")"
		}
		row(cli.Word("contact"), value)
	}
	row(cli.Word("methods"), cmp.Or(strings.Join(u.Methods, ", "), "-"))
	for _, k := range u.Certificates {
		row(cli.Word("certificate"), fmt.Sprintf("%d, %s, %s, %s", k.ID, k.Suite, k.Status, c.Text("until %s", k.NotAfter.Format(time.DateOnly))))
	}
	row(cli.Word("sessions"), fmt.Sprint(u.Sessions))
	table.Flush()
	return text.String()
}
