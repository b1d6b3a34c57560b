// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/config"
)

// Doctor is the sub-command doctor.
type Doctor struct {
	Config  string   `default:"tamga.yaml" placeholder:"FILE" env:"TAMGA_CONFIG" help:"Configuration file of the installation (YAML)."`
	Set     []string `placeholder:"NAME=VALUE" sep:"none" help:"Setting that overrides the configuration file. May be repeated."`
	Offline bool     `help:"Do not reach time-stamp services, responders and revocation lists in the network."`
	Try     []string `placeholder:"CHANNEL=RECIPIENT" sep:"none" help:"Send a test message too, as \"tamga message test\" does: email=ADDRESS, sms=NUMBER or push=LOGIN. May be repeated."`
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

// examination is what the checks of one line share; see run.
type examination struct {
	conf     *config.Config
	file     string
	offline  bool
	services *app.Services  // nil until the database is open
	keys     *app.KeyReport // nil until keyReport was called
	said     []cli.Finding  // of the check of files
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

// check is one check of a configuration that can be read.
type check = struct {
	name     cli.Word
	database bool // it needs an open database
	run      func(e *examination, ctx context.Context, name cli.Word)
}

// checks are all checks, in the order of their findings. See lineOf for what runs at once.
var checks = []struct {
	name     cli.Word
	database bool
	run      func(e *examination, ctx context.Context, name cli.Word)
}{
	{"files", false, (*examination).files},
	{port, false, (*examination).port},
	{"disk", false, (*examination).disk},
	{"proxies", false, (*examination).proxies},
	{"production", false, (*examination).production},
	{"tls", false, (*examination).tls},
	{"browsers", false, (*examination).browsers},
	{"front end", false, (*examination).front},
	{"operators", false, (*examination).peers},
	{database, false, (*examination).database},
	{"clock", true, (*examination).clock},
	{masterKeys, true, (*examination).masterKeys},
	{"processes", true, (*examination).processes},
	{"documents", true, (*examination).documents},
	{"authorities", true, (*examination).authorities},
	{"messages", true, (*examination).messages},
	{"trust list", true, (*examination).trustList},
	{"retention", true, (*examination).retention},
	{"audit export", true, (*examination).auditExport},
	{"operators", true, (*examination).operators},
	{network, false, (*examination).network},
	{network, true, (*examination).public},
}

// Names of checks that run beside the others.
const (
	port     cli.Word = "port"
	database cli.Word = "database"
	network  cli.Word = "network"
)

// lineOf returns the line of a check. Checks of one line run one after the other, and the lines at once: each of them may wait for
// something that does not answer.
func lineOf(c check) cli.Word {
	switch {
	case c.database || c.name == database:
		return database
	case c.name == port || c.name == network:
		return c.name
	}
	return ""
}

// Bounds of all checks together.
const (
	checksTime = 4 * time.Second                   // the deadline that checks have
	doctorTime = checksTime + 600*time.Millisecond // after it, a check that does not look at its deadline is a fault
)

// Run prints the findings.
func (d *Doctor) Run(c *cli.Console) error {
	conf, err := config.Load(d.Config, d.Set, app.Parts())
	faults := config.Each(err)
	if conf != nil {
		faults = append(faults, config.Each(app.Validate(conf))...)
	}
	findings := Examine(c, d.Config, conf, faults, d.Offline)
	if len(faults) == 0 {
		findings = append(findings, d.try(c)...)
	}
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

// try sends the test messages that flags name.
func (d *Doctor) try(c *cli.Console) []cli.Finding {
	const name cli.Word = "test message"
	e := &examination{}
	for _, given := range d.Try {
		channel, to, ok := strings.Cut(given, "=")
		if !ok || to == "" {
			e.fault(name, cli.Say("write the flag as --try email=ADDRESS, --try sms=NUMBER or --try push=LOGIN"), "--try %s: want CHANNEL=RECIPIENT", given)
			continue
		}
		trials, err := cli.TryMessage(c, &cli.Installation{Config: d.Config, Set: d.Set}, channel, to)
		if err != nil {
			e.fault(name, cli.Say("correct the cause that the message names"), "%s: %v", given, err)
		}
		for _, t := range trials {
			switch answers := strings.Join(t.Answers, "; "); {
			case t.Error != "":
				e.fault(name, cli.Say("correct the settings of the sender, or ask its provider about this answer: %s", answers), "%s", t.Sentence())
			default:
				e.ok(name, "%s: %s", t.Sentence(), answers)
			}
		}
	}
	return e.findings
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
		e.run(c.Context, checks)
	}
	return e.findings
}

// result is what a check found.
type result struct {
	number   int
	findings []cli.Finding
}

// run does the checks of a valid configuration within doctorTime. The first one, of files, ends before the others begin, since
// they do not repeat its faults.
func (e *examination) run(ctx context.Context, list []check) {
	within, cancel := context.WithTimeout(ctx, checksTime)
	defer cancel()
	late := time.NewTimer(doctorTime)
	defer late.Stop()
	hangs := func(name cli.Word) {
		e.fault(name, cli.Say("see what does not answer: a disk, or a file system of the network"), "the check did not end within %s", checksTime)
	}
	first := make(chan []cli.Finding, 1)
	go func() {
		own := &examination{conf: e.conf, file: e.file, offline: e.offline}
		list[0].run(own, within, list[0].name)
		first <- own.findings
	}()
	select {
	case findings := <-first:
		e.findings = append(e.findings, findings...)
	case <-late.C:
		hangs(list[0].name)
		return
	case <-ctx.Done():
		return
	}
	e.said = e.findings

	lines := map[cli.Word][]int{}
	for i, c := range list[1:] {
		lines[lineOf(c)] = append(lines[lineOf(c)], i+1)
	}
	found, ended := make(chan result, len(list)), make(chan struct{}, len(lines))
	for _, numbers := range lines {
		go func() {
			e.line(within, list, numbers, found)
			ended <- struct{}{}
		}()
	}
	results := make([]*result, len(list))
	for open := len(lines); open > 0 || len(found) > 0; {
		select {
		case r := <-found:
			results[r.number] = &r
		case <-ended:
			open--
		case <-late.C:
			open = 0
		case <-ctx.Done():
			open = 0
		}
	}
	hanging := map[cli.Word]bool{} // lines; checks after the one that hangs did not begin
	for i, c := range list[1:] {
		switch r := results[i+1]; {
		case r != nil:
			e.findings = append(e.findings, r.findings...)
		case ctx.Err() == nil && !hanging[lineOf(c)]:
			hanging[lineOf(c)] = true
			hangs(c.name)
		}
	}
}

// line does checks one after the other.
func (e *examination) line(ctx context.Context, list []check, numbers []int, found chan<- result) {
	own := &examination{conf: e.conf, file: e.file, offline: e.offline, said: e.said}
	skipped := false
	for _, n := range numbers {
		own.findings = nil
		switch c := list[n]; {
		case errors.Is(ctx.Err(), context.Canceled) || c.database && own.services == nil:
		case ctx.Err() == nil:
			c.run(own, ctx, c.name)
		case !skipped:
			skipped = true
			own.warn(c.name, cli.Say("mend what does not answer, then ask again"), "not checked, and what follows neither: the checks before took the time")
		}
		found <- result{n, own.findings}
	}
	if own.services != nil {
		own.services.Base.Close()
	}
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
		fmt.Fprintf(&text, "%-8s  %-13s  %s\n", c.Word(f.State), c.Word(f.Check), cli.Printable(c.Place(f)+c.Say(f.Text)))
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
