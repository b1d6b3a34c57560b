// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/directory"
	"tamga/internal/domain/fault"
)

// Directory is the sub-command directory.
type Directory struct {
	List   directoryListCommand   `cmd:"" help:"List the directories of the configuration, with their last synchronization."`
	Sync   directorySyncCommand   `cmd:"" help:"Synchronize a directory now, or show what that would change."`
	Unlink directoryUnlinkCommand `cmd:"" help:"Make a user of a directory a local one, who needs a password of this service."`
}

type directoryListCommand struct {
	From cli.Installation `embed:""`
}

// Run prints the directories.
func (d *directoryListCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &d.From, "ListDirectories", "", func(ctx context.Context, s *app.Services) error {
		type line struct {
			Name    string           `json:"name"`
			EndedAt *time.Time       `json:"ended_at"`
			DueAt   *time.Time       `json:"due_at"`
			Result  directory.Result `json:"result"`
			Error   string           `json:"error"`
		}
		lines := []line{}
		var text strings.Builder
		table := c.NewTable(&text, "NAME", "SYNCHRONIZED", "RESULT")
		for _, of := range s.Config.Directories {
			state, err := store.Directories{Users: store.Users{DB: s.DB}}.SyncState(ctx, of.Name)
			if err != nil {
				return err
			}
			l := line{Name: of.Name, Result: state.Result, Error: state.Error}
			ended, result := "-", state.Error
			if !state.EndedAt.IsZero() {
				l.EndedAt, l.DueAt = &state.EndedAt, &state.DueAt
				ended = state.EndedAt.UTC().Format(time.DateTime)
				if result == "" {
					result = state.Result.String()
				}
			}
			lines = append(lines, l)
			fmt.Fprintf(table, "%s\t%s\t%s\n", of.Name, ended, cli.Printable(result))
		}
		table.Flush()
		return d.From.Answer(c, lines, "%s", text.String())
	})
}

type directorySyncCommand struct {
	Name       string           `arg:"" help:"Name of the directory."`
	DryRun     bool             `help:"Show what would change, and change nothing."`
	AnyMissing bool             `help:"Lock people and change their groups however many they are."`
	From       cli.Installation `embed:""`
}

// Help returns the text above the flags.
func (directorySyncCommand) Help() string {
	return `Compares all people of the directory with the users: new people are registered, changed ones are changed, those who are gone are locked after directories.lock_after. The servers do the same every directories.every.`
}

// kinds are the kinds of changes for people.
var kinds = map[directory.Kind]cli.Word{
	directory.Added: "added", directory.Linked: "linked", directory.Changed: "changed", directory.Missing: "missing", directory.Locked: "locked",
	directory.Unlocked: "unlocked", directory.Unknown: "unknown", directory.Refused: "refused",
}

// Run synchronizes and prints each change.
func (d *directorySyncCommand) Run(c *cli.Console) error {
	operation := "SyncDirectory"
	if d.DryRun {
		operation = "CompareDirectory"
	}
	return cli.Administer(c, &d.From, operation, d.Name, func(ctx context.Context, s *app.Services) error {
		list, err := s.Directories()
		if err != nil {
			return err
		}
		for _, of := range list {
			if of.Name == d.Name {
				return d.sync(ctx, c, of)
			}
		}
		return fmt.Errorf("%s: no directory of this name is in directories of the configuration", cli.Printable(d.Name))
	})
}

func (d *directorySyncCommand) sync(ctx context.Context, c *cli.Console, of *directory.Service) error {
	type line struct {
		Kind  directory.Kind `json:"kind"`
		Login string         `json:"login"`
		DN    string         `json:"dn"`
		Error string         `json:"error,omitempty"`
	}
	lines := []line{}
	plan := directory.Plan{Dry: d.DryRun, AnyMissing: d.AnyMissing, Remote: audit.CommandLine, By: c.Administrator(), Tell: func(x directory.Change) {
		l := line{Kind: x.Kind, Login: x.Login, DN: x.DN}
		if x.Err != nil {
			l.Error = x.Err.Error()
		}
		if d.From.JSON {
			lines = append(lines, l)
			return
		}
		fmt.Fprintf(c.Stdout, "%-9s  %s  %s", c.Word(kinds[x.Kind]), cli.Printable(x.Login), cli.Printable(x.DN))
		if l.Error != "" {
			fmt.Fprintf(c.Stdout, ": %s", cli.Printable(l.Error))
		}
		fmt.Fprintln(c.Stdout)
	}}
	var result directory.Result
	var err error
	if d.DryRun {
		result, err = of.Sync(ctx, plan)
	} else {
		var ran bool
		if result, ran, err = of.Turn(ctx, plan, true); err == nil && !ran {
			err = errors.New("another process synchronizes this directory now")
		}
	}
	if err != nil {
		return err
	}
	return d.From.Answer(c, map[string]any{"dry_run": d.DryRun, "result": result, "changes": lines}, "%s\n", result.String())
}

type directoryUnlinkCommand struct {
	onUser `embed:""`
	Forget bool `help:"Forget that the user was in the directory: the next synchronization may join the user with an entry again, as directories.match says."`
}

// Help returns the text above the flags.
func (directoryUnlinkCommand) Help() string {
	return `The user keeps certificates, rights and a lock, and has no password until one is set. No synchronization joins the user with an entry again, or registers the person of the entry as another user, until --forget allows it. That remains so if the user is deleted: --forget takes the login, or the identifier, of that time.`
}

// Run removes the link of a user.
func (d *directoryUnlinkCommand) Run(c *cli.Console) error {
	said := cli.Say("%s follows no directory now; set a password with: tamga user password\n", d.name())
	if d.Forget {
		said = cli.Say("The next synchronization may join %s with an entry again.\n", d.name())
	}
	return cli.Administer(c, &d.From, "UnlinkUser", d.Login, func(ctx context.Context, s *app.Services) error {
		links := store.Directories{Users: store.Users{DB: s.DB}}
		u, err := d.find(ctx, s)
		if err == nil {
			err = directory.Unlink(ctx, links, s.Sessions, u.ID, d.Forget)
		}
		if d.Forget && (fault.Is(err, fault.UserNotFound) || fault.Is(err, fault.WrongOperation)) {
			// The user was deleted, and another one may have the login now.
			if deleted := directory.ForgetDeleted(ctx, links, d.Login); !fault.Is(deleted, fault.UserNotFound) {
				err = deleted
			}
		}
		if err != nil {
			return err
		}
		return d.From.Answer(c, map[string]string{"id": u.ID, "login": cmp.Or(u.Login, d.Login), "done": "UnlinkUser"}, "%s", said)
	})
}
