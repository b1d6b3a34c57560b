// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"fmt"
	"strings"

	"tamga/internal/app"
	"tamga/internal/cli"
)

// Group is the sub-command group.
type Group struct {
	Add    groupAddCommand    `cmd:"" help:"Add a group."`
	List   groupListCommand   `cmd:"" help:"List the groups."`
	Rename groupRenameCommand `cmd:"" help:"Give a group another name. Its users, operators and policies stay."`
	Delete groupDeleteCommand `cmd:"" help:"Delete a group that has no users and no operators."`
}

type groupAddCommand struct {
	Name  string           `arg:"" help:"Name of the group."`
	Title string           `help:"Title of the group for people."`
	From  cli.Installation `embed:""`
}

func (g *groupAddCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &g.From, "AddGroup", g.Name, func(ctx context.Context, s *app.Services) error {
		if _, err := s.Users.AddGroup(ctx, g.Name, g.Title); err != nil {
			return err
		}
		return g.From.Answer(c, map[string]string{"name": g.Name}, "Group %s is added.\n", g.Name)
	})
}

type groupListCommand struct {
	From cli.Installation `embed:""`
}

func (g *groupListCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &g.From, "ListGroups", "", func(ctx context.Context, s *app.Services) error {
		groups, err := s.Users.Groups(ctx)
		if err != nil {
			return err
		}
		list := []map[string]string{}
		var text strings.Builder
		table := c.NewTable(&text, "GROUP", "TITLE")
		for _, g := range groups {
			list = append(list, map[string]string{"name": g.Name, "title": g.Title})
			fmt.Fprintf(table, "%s\t%s\n", cli.Printable(g.Name), cli.Printable(g.Title))
		}
		table.Flush()
		return g.From.Answer(c, list, "%s", text.String())
	})
}

type groupRenameCommand struct {
	Name string           `arg:"" help:"Name of the group."`
	To   string           `arg:"" help:"New name of the group."`
	From cli.Installation `embed:""`
}

func (g *groupRenameCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &g.From, "RenameGroup", g.Name, func(ctx context.Context, s *app.Services) error {
		if err := s.Users.RenameGroup(ctx, g.Name, g.To); err != nil {
			return err
		}
		return g.From.Answer(c, map[string]string{"name": g.To, "was": g.Name}, "Group %s has the name %s now.\n", cli.Printable(g.Name), cli.Printable(g.To))
	})
}

type groupDeleteCommand struct {
	Name string           `arg:"" help:"Name of the group."`
	From cli.Installation `embed:""`
}

func (g *groupDeleteCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &g.From, "DeleteGroup", g.Name, func(ctx context.Context, s *app.Services) error {
		if err := s.Users.DeleteGroup(ctx, g.Name); err != nil {
			return err
		}
		return g.From.Answer(c, map[string]string{"name": g.Name}, "Group %s is deleted.\n", cli.Printable(g.Name))
	})
}
