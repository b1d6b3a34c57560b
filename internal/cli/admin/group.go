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
	Add  groupAddCommand  `cmd:"" help:"Add a group."`
	List groupListCommand `cmd:"" help:"List the groups."`
}

type groupAddCommand struct {
	Name  string           `arg:"" help:"Name of the group."`
	Title string           `help:"Title of the group for people."`
	From  cli.Installation `embed:""`
}

func (g *groupAddCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &g.From, "AddGroup", g.Name, func(ctx context.Context, h *app.Rooms) error {
		if _, err := h.Users.AddGroup(ctx, g.Name, g.Title); err != nil {
			return err
		}
		return g.From.Answer(c, map[string]string{"name": g.Name}, "Group %s is added.\n", g.Name)
	})
}

type groupListCommand struct {
	From cli.Installation `embed:""`
}

func (g *groupListCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &g.From, "ListGroups", "", func(ctx context.Context, h *app.Rooms) error {
		groups, err := h.Users.Groups(ctx)
		if err != nil {
			return err
		}
		list := []map[string]string{}
		var text strings.Builder
		for _, g := range groups {
			list = append(list, map[string]string{"name": g.Name, "title": g.Title})
			fmt.Fprintln(&text, g.Name)
		}
		return g.From.Answer(c, list, "%s", text.String())
	})
}
