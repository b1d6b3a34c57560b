// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"strings"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/user"
)

type methodCommand struct {
	List   methodListCommand   `cmd:"" help:"List the authentication methods of a user."`
	Add    methodAddCommand    `cmd:"" help:"Add an authentication method to a user."`
	Remove methodRemoveCommand `cmd:"" help:"Remove an authentication method of a user. Revokes all tokens of the user."`
}

type methodListCommand struct {
	onUser `embed:""`
}

func (m *methodListCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &m.From, "ListMethods", m.Login, func(ctx context.Context, s *app.Services) error {
		x, err := m.find(ctx, s)
		if err != nil {
			return err
		}
		list, err := s.Identity.SchemeOf(ctx, x.ID)
		if err != nil {
			return err
		}
		type line struct {
			Method string `json:"method"`
			URI    string `json:"uri"`
			Level  int    `json:"level"`
		}
		lines := []line{}
		var text strings.Builder
		for _, i := range list {
			method, _ := signin.MethodNamed(i.MethodURI)
			lines = append(lines, line{method.Route, i.MethodURI, i.Level})
			text.WriteString(c.Text("%s (level %d)\n", method.Route, i.Level))
		}
		return m.From.Answer(c, lines, "%s", text.String())
	})
}

type methodAddCommand struct {
	onUser `embed:""`
	Method string `arg:"" help:"Name of the method: idonly, password, cert, external, otpviasms, otpviaemail, oath, mydss or passkey."`
}

func (m *methodAddCommand) Run(c *cli.Console) error {
	return m.do(c, "SetMethod", cli.Say("%s signs in with %s.\n", m.name(), cli.Printable(m.Method)), func(ctx context.Context, s *app.Services, x user.User) error {
		return s.Identity.GrantMethod(ctx, x.ID, m.Method)
	})
}

type methodRemoveCommand struct {
	onUser `embed:""`
	Method string `arg:"" help:"Name of the method."`
}

func (m *methodRemoveCommand) Run(c *cli.Console) error {
	return m.do(c, "DeleteMethod", cli.Say("%s signs in without %s.\n", m.name(), cli.Printable(m.Method)), func(ctx context.Context, s *app.Services, x user.User) error {
		return s.Identity.WithdrawMethod(ctx, x.ID, m.Method)
	})
}
