// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"fmt"
	"strings"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/user"
)

// Operator is the sub-command operator.
type Operator struct {
	Add         operatorAddCommand    `cmd:"" help:"Register an operator for the users of one or more groups."`
	List        operatorListCommand   `cmd:"" help:"List operators and their groups."`
	Groups      operatorGroupsCommand `cmd:"" help:"Set the groups of an operator. Takes effect with the next request."`
	Certificate certificateCommand    `cmd:"" help:"Add, list and remove certificates that an operator signs in with."`
	Delete      operatorDeleteCommand `cmd:"" help:"Delete an operator with keys, contacts and tokens. The users of the operator stay."`
}

type operatorAddCommand struct {
	Login        string           `arg:"" help:"Login of the operator."`
	Group        []string         `required:"" help:"Group whose users the operator administers. May be repeated."`
	PasswordFile string           `placeholder:"FILE" help:"File with the password. Default: ask at the terminal."`
	From         cli.Installation `embed:""`
}

func (o *operatorAddCommand) Run(c *cli.Console) error {
	return register(c, &o.From, "AddOperator", user.Account{Login: o.Login, Operator: true, Groups: o.Group}, o.PasswordFile)
}

type operatorListCommand struct {
	From cli.Installation `embed:""`
}

func (o *operatorListCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &o.From, "ListOperators", "", func(ctx context.Context, s *app.Services) error {
		type line struct {
			ID     string   `json:"id"`
			Login  string   `json:"login"`
			Groups []string `json:"groups"`
			Locked bool     `json:"locked"`
		}
		lines := []line{}
		list, err := s.Users.Operators(ctx)
		if err != nil {
			return err
		}
		for _, x := range list {
			groups, err := s.Users.OperatorGroups(ctx, x.ID)
			if err != nil {
				return err
			}
			lines = append(lines, line{x.ID, x.Login, groups, x.Barred(s.DB.Now())})
		}
		var text strings.Builder
		table := c.NewTable(&text, "LOGIN", "GROUPS", "ID", "NOTE")
		for _, l := range lines {
			mark := ""
			if l.Locked {
				mark = c.Text("locked")
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", l.Login, strings.Join(l.Groups, ", "), l.ID, mark)
		}
		table.Flush()
		return o.From.Answer(c, lines, "%s", text.String())
	})
}

type operatorGroupsCommand struct {
	onUser `embed:""`
	Group  []string `required:"" help:"Group whose users the operator administers. May be repeated. The groups given replace the present ones."`
}

func (o *operatorGroupsCommand) Run(c *cli.Console) error {
	return o.do(c, "SetOperatorGroups", cli.Say("%s acts on %s.\n", o.name(), strings.Join(o.Group, ", ")), func(ctx context.Context, s *app.Services, x user.User) error {
		return s.Users.SetOperatorGroups(ctx, x.ID, o.Group)
	})
}

type operatorDeleteCommand struct {
	onUser      `embed:""`
	Yes         bool `required:"" help:"Confirm the deletion, which cannot be undone."`
	DestroyKeys bool `help:"Delete the user even if something was encrypted for certificates of the user: it becomes unreadable."`
}

func (o *operatorDeleteCommand) Run(c *cli.Console) error {
	return o.do(c, "DeleteOperator", cli.Say("%s is deleted.\n", o.name()), func(ctx context.Context, s *app.Services, x user.User) error {
		if !x.Operator {
			return fault.New(fault.WrongOperation, "the user is not an operator: delete a user with tamga user delete")
		}
		return s.Users.Remove(ctx, x.ID, o.DestroyKeys)
	})
}
