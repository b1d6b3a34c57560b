// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/config"
)

// Doctor is the sub-command doctor.
type Doctor struct {
	Config  string   `default:"tamga.yaml" placeholder:"FILE" env:"TAMGA_CONFIG" help:"Configuration file of the installation (YAML)."`
	Set     []string `placeholder:"NAME=VALUE" sep:"none" help:"Setting that overrides the configuration file. May be repeated."`
	Offline bool     `help:"Do not reach time-stamp services, responders and revocation lists in the network."`
	JSON    bool     `help:"Print JSON instead of text."`
}

// Help returns the text above the flags.
func (Doctor) Help() string {
	return `Checks the configuration and all that it names, the port, disks, the database, its clock and its schema, the master keys, certificates that end soon, the bucket, messages that wait, services in the network. Run it as the user of the service. It changes nothing that exists; a master key that the database does not know is made known to it.

The exit code is 1 if there is a fault, and 0 if there are warnings only.`
}

// States of a finding.
const (
	good    cli.Word = "ok"
	warning cli.Word = "warning"
	broken           = cli.Broken
)

// examination is what the checks share.
type examination struct {
	conf     *config.Config
	file     string
	offline  bool
	services *app.Services // nil until the database is open
	findings []cli.Finding
}

func (e *examination) ok(check cli.Word, text string, a ...any) {
	e.findings = append(e.findings, cli.Finding{Check: check, State: good, Text: cli.Say(text, a...)})
}

func (e *examination) warn(check cli.Word, remedy cli.Sentence, text string, a ...any) {
	e.findings = append(e.findings, cli.Finding{Check: check, State: warning, Text: cli.Say(text, a...), Remedy: remedy})
}

func (e *examination) fault(check cli.Word, remedy cli.Sentence, text string, a ...any) {
	e.findings = append(e.findings, cli.Finding{Check: check, State: broken, Text: cli.Say(text, a...), Remedy: remedy})
}

// configuration is the check that comes before the others.
const configuration cli.Word = "configuration"

const masterKeys cli.Word = "master keys"

// checks are those of a configuration that can be read, in order. Those with database need an open
// database.
var checks = []struct {
	name     cli.Word
	database bool
	run      func(e *examination, ctx context.Context, name cli.Word)
}{
	{"files", false, (*examination).files},
	{"port", false, (*examination).port},
	{"disk", false, (*examination).disk},
	{"proxies", false, (*examination).proxies},
	{"production", false, (*examination).production},
	{"tls", false, (*examination).tls},
	{"browsers", false, (*examination).browsers},
	{"front end", false, (*examination).front},
	{"operators", false, (*examination).peers},
	{"database", false, (*examination).database},
	{"clock", true, (*examination).clock},
	{masterKeys, true, (*examination).masterKeys},
	{"processes", true, (*examination).processes},
	{"documents", true, (*examination).documents},
	{"authorities", true, (*examination).authorities},
	{"messages", true, (*examination).messages},
	{"audit export", true, (*examination).auditExport},
	{"operators", true, (*examination).operators},
	{"network", true, (*examination).network},
}

// Run prints the findings.
func (d *Doctor) Run(c *cli.Console) error {
	conf, err := config.Load(d.Config, d.Set, app.Parts())
	faults := config.Each(err)
	if conf != nil {
		faults = append(faults, config.Each(app.Validate(conf))...)
	}
	findings := Examine(c, d.Config, conf, faults, d.Offline)
	failed := 0
	for _, f := range findings {
		if f.State == broken {
			failed++
		}
	}
	if err := d.print(c, findings, failed); err != nil {
		return err
	}
	if failed > 0 {
		return cli.ExitCode(1)
	}
	return nil
}

// Examine does the checks of a configuration with its file and its faults. With faults it does
// no others. If offline is true, it reaches no service in the network.
func Examine(c *cli.Console, file string, conf *config.Config, faults []error, offline bool) []cli.Finding {
	e := &examination{file: file, offline: offline}
	for _, f := range faults {
		e.findings = append(e.findings, cli.FaultFinding(configuration, f))
	}
	if len(faults) == 0 {
		e.ok(configuration, "%s is valid", file)
		e.conf = conf
		if base := e.run(c); base != nil {
			base.Close()
		}
	}
	return e.findings
}

// run does the checks of a valid configuration. The caller closes the result if it is not nil.
func (e *examination) run(c *cli.Console) (base *app.Base) {
	for _, check := range checks {
		if c.Context.Err() != nil {
			return base
		}
		if check.database && e.services == nil {
			continue
		}
		check.run(e, c.Context, check.name)
		if check.name == "database" && e.services != nil {
			base = e.services.Base
		}
	}
	return base
}

func (d *Doctor) print(c *cli.Console, findings []cli.Finding, failed int) error {
	if d.JSON {
		out := json.NewEncoder(c.Stdout)
		out.SetIndent("", "  ")
		return out.Encode(map[string]any{"healthy": failed == 0, "findings": findings})
	}
	var text strings.Builder
	warnings := 0
	for _, f := range findings {
		fmt.Fprintf(&text, "%-8s  %-13s  %s\n", c.Word(f.State), c.Word(f.Check), cli.Printable(f.Place()+c.Say(f.Text)))
		if !f.Remedy.IsZero() {
			fmt.Fprintf(&text, "%-25s-> %s\n", "", cli.Printable(c.Say(f.Remedy)))
		}
		if f.State == warning {
			warnings++
		}
	}
	text.WriteString(c.Text("\nFaults: %d, warnings: %d.\n", failed, warnings))
	return c.Print("%s", text.String())
}
