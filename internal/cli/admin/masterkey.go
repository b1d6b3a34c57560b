// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/config"
	"tamga/internal/domain/vault"
	"tamga/internal/files"
)

type keyStatusCommand struct {
	From cli.Installation `embed:""`
}

// Help returns the text above the flags.
func (keyStatusCommand) Help() string {
	return `A master key may be removed from master_keys.files when it is not the active one, the column RECORDS is 0, DOCUMENTS is 0 and the date in NEEDED UNTIL is over.`
}

// keyLineJSON is a master key as --json prints it.
type keyLineJSON struct {
	ID          string           `json:"id"`
	Active      bool             `json:"active"`
	Configured  bool             `json:"configured"`
	Records     int64            `json:"records"`
	Columns     map[string]int64 `json:"columns,omitempty"`
	Documents   int64            `json:"documents"`
	SealedAt    *time.Time       `json:"sealed_at,omitempty"`
	NeededUntil *time.Time       `json:"needed_until,omitempty"`
}

// processJSON is a running process as --json prints it.
type processJSON struct {
	ID      string    `json:"id"`
	Host    string    `json:"host"`
	Version string    `json:"version"`
	Active  string    `json:"active"`
	Keys    []string  `json:"keys"`
	SeenAt  time.Time `json:"seen_at"`
}

func (s *keyStatusCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &s.From, "MasterKeyStatus", "", func(ctx context.Context, services *app.Services) error {
		report, err := services.KeyReport(ctx)
		if err != nil {
			return err
		}
		value, text := keyReport(c, report)
		return s.From.Answer(c, value, "%s", text)
	})
}

// keyReport returns a report for programs and for people.
func keyReport(c *cli.Console, report *app.KeyReport) (map[string]any, string) {
	lines, processes := []keyLineJSON{}, []processJSON{}
	var text strings.Builder
	table := c.NewTable(&text, "MASTER KEY", "RECORDS", "DOCUMENTS", "NEEDED UNTIL", "NOTE")
	for _, k := range report.Keys {
		line := keyLineJSON{ID: k.ID, Active: k.ID == report.Active, Configured: k.InRing, Records: k.Total, Columns: k.Records, Documents: k.Documents}
		needed, note := "", ""
		switch {
		case line.Active:
			note = c.Text("active")
		case !k.InRing:
			note = c.Text("not in master_keys.files")
		case k.Total == 0 && k.Documents == 0 && k.SealedAt.IsZero():
			note = c.Text("may be removed")
		case k.Total == 0 && k.Documents == 0:
			note = c.Text("may be removed after that time")
		}
		if !k.SealedAt.IsZero() {
			line.SealedAt = &k.SealedAt
			if !line.Active {
				line.NeededUntil, needed = &k.Needed, k.Needed.UTC().Format("2006-01-02 15:04 MST")
			}
		}
		lines = append(lines, line)
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\t%s\n", k.ID, k.Total, k.Documents, needed, note)
	}
	table.Flush()
	for _, k := range report.Keys {
		for _, column := range slices.Sorted(maps.Keys(k.Records)) {
			text.WriteString(c.Text("  %s: %d in %s\n", k.ID, k.Records[column], column))
		}
	}
	for _, p := range report.Processes {
		processes = append(processes, processJSON{p.ID, p.Host, p.Version, p.Active, p.IDs, p.SeenAt})
		text.WriteString(c.Text("Process %s on %s seals with %s and has %s.\n", p.ID, p.Host, p.Active, strings.Join(p.IDs, ", ")))
	}
	if len(processes) == 0 {
		text.WriteString(c.Text("No server is running.\n"))
	}
	return map[string]any{"active": report.Active, "keys": lines, "processes": processes}, text.String()
}

type keyResealCommand struct {
	From cli.Installation `embed:""`
}

// Help returns the text above the flags.
func (keyResealCommand) Help() string {
	return `Servers go on meanwhile. The command refuses to work while a running server does not seal with the active key of the configuration.`
}

func (r *keyResealCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &r.From, "ResealMasterKey", "", func(ctx context.Context, s *app.Services) error {
		return reseal(ctx, c, &r.From, s)
	})
}

// reseal moves all records to the active master key and prints the result.
func reseal(ctx context.Context, c *cli.Console, from *cli.Installation, s *app.Services) error {
	progress := cli.NewProgress(c)
	var moved int64
	done, err := s.Reseal(ctx, func(column string, n int64) {
		moved += n
		progress.Count(c.Text("%d records are under the new master key; now %s", moved, column))
	})
	progress.Clear()
	if err != nil {
		if done.Moved > 0 {
			return fmt.Errorf("%w (%d records were moved before; repeat the command to go on)", err, done.Moved)
		}
		return err
	}
	failed := []string{}
	for _, err := range done.Failed {
		failed = append(failed, err.Error())
	}
	report, err := s.KeyReport(ctx)
	if err != nil {
		return err
	}
	value, text := keyReport(c, report)
	value["moved"], value["failed"], value["failed_count"] = done.Moved, failed, done.FailedCount
	var said strings.Builder
	said.WriteString(c.Text("%d records were moved to master key %s.\n", done.Moved, report.Active))
	if done.FailedCount > 0 {
		said.WriteString(c.Text("%d records do not open and stay as they are:\n  %s\n", done.FailedCount, strings.Join(failed, "\n  ")))
	}
	if err := from.Answer(c, value, "%s%s", said.String(), text); err != nil {
		return err
	}
	if done.FailedCount > 0 {
		return cli.ExitCode(1)
	}
	return nil
}

type masterKeyRotateCommand struct {
	ID   string           `placeholder:"NAME" help:"Name of the new master key. Default: the next number, or the date."`
	Wait time.Duration    `default:"1m" help:"How long to wait until all running servers seal with the new key."`
	From cli.Installation `embed:""`
}

// Help returns the text above the flags.
func (masterKeyRotateCommand) Help() string {
	return `Works in steps, and a repeated command goes on where the one before ended:

1. Makes a file with a new key beside the file of the active one, and names it in master_keys as the active key. If the configuration may not be changed here, prints what to change.
2. Waits until each running server seals with the new key. Servers read master_keys again within seconds. A server on another machine needs the same file and the same lines there; until all have it, all go on with the old key. A service whose secrets are credentials (systemd, containers) must be restarted.
3. Seals everything under the new key (tamga key reseal).

The old key stays in master_keys.files. "tamga key status" says when it may be removed.`
}

func (k *masterKeyRotateCommand) Run(c *cli.Console) error {
	if k.From.Config == "" {
		return errors.New("give --config FILE: the key of serve --dev is not changed")
	}
	conf, err := config.Load(k.From.Config, k.From.Set, app.Parts())
	if err != nil {
		return err
	}
	if err := app.Validate(conf); err != nil {
		return fmt.Errorf("the configuration is invalid:\n%w", err)
	}
	begun, err := k.begun(c)
	if err != nil {
		return err
	}
	if !begun {
		if err := k.begin(c, conf); err != nil {
			return err
		}
	}
	return cli.Administer(c, &k.From, "RotateMasterKey", "", func(ctx context.Context, s *app.Services) error {
		if err := waitForServers(ctx, s, k.Wait); err != nil {
			return err
		}
		return reseal(ctx, c, &k.From, s)
	})
}

// begun reports whether a rotation is not complete: a server, a record or a document is not under the
// active key.
func (k *masterKeyRotateCommand) begun(c *cli.Console) (begun bool, err error) {
	base, err := k.From.Open(c)
	if err != nil {
		return false, err
	}
	defer base.Close()
	h, err := base.Services(c.Context)
	if err != nil {
		return false, err
	}
	report, err := h.KeyReport(c.Context)
	if err != nil {
		return false, err
	}
	active := h.Config.MasterKeys.Active
	begun = report.Active != active
	for _, p := range report.Processes {
		begun = begun || p.Active != active
	}
	for _, l := range report.Keys {
		begun = begun || l.ID != active && l.Total+l.Unfinished > 0
		if l.ID == k.ID && l.ID != active {
			return false, fmt.Errorf("--id %s: there was a master key of this name before; choose another name", k.ID)
		}
	}
	return begun, nil
}

// begin makes the new key and names it in the configuration.
func (k *masterKeyRotateCommand) begin(c *cli.Console, conf *config.Config) error {
	id := k.ID
	if id == "" {
		id = nextKeyID(slices.Collect(maps.Keys(conf.MasterKeys.Files)), time.Now())
	}
	beside := conf.MasterKeys.Files[conf.MasterKeys.Active]
	named := filepath.Join(filepath.Dir(beside), "master-"+id+".key")
	file := conf.Path(named)
	made, err := makeMasterKey(file)
	if err != nil {
		return err
	}
	if made {
		fmt.Fprint(c.Stderr, c.Text("Master key %s is in %s. Keep a copy of it separate from the database.\n", id, file))
	}
	text, err := os.ReadFile(k.From.Config)
	if err == nil {
		text, err = config.AddMasterKey(text, id, named)
	}
	if err == nil {
		err = files.Rewrite(k.From.Config, text)
	}
	if err != nil {
		return fmt.Errorf("%s: %w. Write there, and on all other machines, under master_keys:\n  active: %q\n  files: %q: %q (and the keys that are there)\nThen run the command again", k.From.Config, err, id, id, named)
	}
	fmt.Fprint(c.Stderr, c.Text("%s names it as the active master key.\n", k.From.Config))
	return nil
}

// nextKeyID returns the number after the greatest if all names are numbers, otherwise a date.
func nextKeyID(have []string, now time.Time) string {
	greatest := 0
	for _, id := range have {
		n, err := strconv.Atoi(id)
		if err != nil {
			day := now.UTC().Format("2006-01-02")
			for i := 2; slices.Contains(have, day); i++ {
				day = now.UTC().Format("2006-01-02") + "." + strconv.Itoa(i)
			}
			return day
		}
		greatest = max(greatest, n)
	}
	return strconv.Itoa(greatest + 1)
}

// makeMasterKey makes a file with a new master key. A file that exists stays as it is.
func makeMasterKey(file string) (made bool, err error) {
	if err := files.KeepMemoryPrivate(); err != nil {
		return false, err
	}
	key := make([]byte, vault.MasterKeySize)
	defer clear(key)
	rand.Read(key)
	text := append(hex.AppendEncode(nil, key), '\n')
	defer clear(text)
	return files.Create(file, text, 0o600)
}

// waitForServers waits until all running servers seal with the active key of the configuration.
func waitForServers(ctx context.Context, s *app.Services, most time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		behind, err := s.Behind(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil && len(behind) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				return fmt.Errorf("these servers do not seal with master key %q yet: %v; give them its file and the same master_keys, or restart them if their secrets are credentials; then run the command again. Nothing was resealed", s.Config.MasterKeys.Active, behind)
			}
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
