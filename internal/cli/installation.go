// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"time"

	"tamga/internal/app"
	"tamga/internal/app/dev"
	"tamga/internal/config"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
)

// Administer opens the installation, calls fn, and writes the attempt and its outcome to the audit
// log. operation and object are those of the audit entries. If the attempt cannot be written, fn is
// not called.
func Administer(c *Console, from *Installation, operation, object string, fn func(ctx context.Context, s *app.Services) error) error {
	base, err := from.Open(c)
	if err != nil {
		return err
	}
	defer base.Close()
	h, err := base.Services(c.Context)
	if err != nil {
		return err
	}
	entry := audit.Entry{
		Operation: operation, Phase: audit.Attempt, Object: object,
		Remote: audit.CommandLine, Principal: c.Administrator(),
	}
	began := time.Now()
	if err := h.Audit.Record(c.Context, entry); err != nil {
		return fmt.Errorf("nothing was done, because the audit log cannot be written: %w", err)
	}
	ctx, holders := c.Context, &audit.Holders{}
	actErr := fn(audit.WithHolders(ctx, holders), h)
	entry.Detail = holders.Detail("")
	entry.Duration = time.Since(began)
	entry.Phase, entry.Outcome = audit.Done, audit.OK
	if f, ok := fault.As(actErr); ok {
		entry.Outcome = f.Code
		actErr = &Refused{f}
	} else if errors.Is(actErr, Incomplete) {
		entry.Outcome = OutcomeIncomplete
	} else if actErr != nil {
		entry.Outcome = "internal_error"
	}
	return errors.Join(actErr, h.Audit.Record(context.WithoutCancel(c.Context), entry))
}

// OutcomeIncomplete is the outcome of a command that did a part of what was ordered, such as an import with refused
// records. The detail of the audit entry has the counts.
const OutcomeIncomplete = "incomplete"

// Refused is a refusal of the installation, or of a package of the domain that a command calls by itself.
type Refused struct{ Fault *fault.Error }

// Error returns the text for people. The code is for programs.
func (r *Refused) Error() string { return r.Fault.Message }

// Answer prints value as JSON with --json, otherwise the text for people with its arguments, in their language.
func (f *Installation) Answer(c *Console, value any, people string, args ...any) error {
	if f.JSON {
		out := json.NewEncoder(c.Stdout)
		out.SetIndent("", "  ")
		return out.Encode(value)
	}
	return c.Print(people, args...)
}

// Installation has the flags by which administrative commands find their installation.
type Installation struct {
	Config string   `placeholder:"FILE" env:"TAMGA_CONFIG" help:"Configuration file of the installation (YAML)."`
	Data   string   `placeholder:"DIR" help:"Directory of a server started with --dev. Default without --config: tamga-data."`
	Set    []string `placeholder:"NAME=VALUE" sep:"none" help:"Setting that overrides the configuration file. May be repeated."`
	JSON   bool     `help:"Print JSON instead of text."`
}

// devConfig returns the configuration of a directory of serve --dev. Certificates issued now must name
// the address of its server, which may have taken any port.
func (f *Installation) devConfig(dir string) (*config.Config, error) {
	d, err := dev.Read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no installation in %s: give --config FILE, or --data DIR of a server started with --dev", dir)
	}
	if err != nil {
		return nil, err
	}
	settings := f.Set
	if u, err := url.Parse(d.BaseURL); err == nil && u.Host != "" {
		settings = append([]string{"listen=" + u.Host}, settings...)
	}
	return dev.Config(dir, settings, true)
}

// Open opens the installation, which a server may use at the same time. The caller closes the result.
func (f *Installation) Open(c *Console) (*app.Base, error) {
	conf, err := f.Configuration()
	if err != nil {
		return nil, err
	}
	return app.Open(c.Context, conf, app.ForCommand, app.NewLogger(c.Stderr, conf))
}

// Configuration returns the checked configuration of the installation.
func (f *Installation) Configuration() (conf *config.Config, err error) {
	switch {
	case f.Config != "" && f.Data != "":
		return nil, errors.New("--config and --data name two installations; give one of them")
	case f.Config != "":
		conf, err = config.Load(f.Config, f.Set, app.Parts())
	default:
		conf, err = f.devConfig(cmp.Or(f.Data, "tamga-data"))
	}
	if err != nil {
		return nil, err
	}
	if err := app.Validate(conf); err != nil {
		return nil, fmt.Errorf("the configuration is invalid:\n%w", err)
	}
	return conf, nil
}
