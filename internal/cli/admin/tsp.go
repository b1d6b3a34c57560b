// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"tamga/internal/adapter/evidence"
	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/domain/policy"
	"tamga/pki/suite"
)

// TSP is the sub-command tsp.
type TSP struct {
	List   tspListCommand   `cmd:"" help:"List the registered time-stamp services, the default one first."`
	Add    tspAddCommand    `cmd:"" help:"Register a time-stamp service. Takes effect at once in all processes."`
	Remove tspRemoveCommand `cmd:"" help:"Remove a registered time-stamp service."`
	Check  tspCheckCommand  `cmd:"" help:"Request a time stamp from a service and check it."`
}

// tspJSON is a registered service as --json prints it.
type tspJSON struct {
	Name      string   `json:"name"`
	Title     string   `json:"title"`
	URL       string   `json:"url"`
	Class     string   `json:"class"`
	Policy    string   `json:"policy"`
	PerMinute int      `json:"per_minute"`
	From      cli.Word `json:"from"` // configuration or database
}

type tspListCommand struct {
	From cli.Installation `embed:""`
}

func (l *tspListCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &l.From, "ListTSPServices", "", func(ctx context.Context, s *app.Services) error {
		services, err := s.Policies.TSPServices(ctx)
		if err != nil {
			return err
		}
		lines := []tspJSON{}
		var text strings.Builder
		table := c.NewTable(&text, "NAME", "ADDRESS", "FROM", "NOTE")
		for i, t := range services {
			line := tspJSON{t.Name, t.Title, t.URL, t.Class, t.Policy, t.PerMinute, "database"}
			if i < len(s.Policies.Rules.TSPServices) {
				line.From = "configuration"
			}
			lines = append(lines, line)
			var notes []string
			for _, n := range []struct {
				name  cli.Word
				value string
			}{{"class", t.Class}, {"policy", t.Policy}, {"title", cli.Printable(t.Title)}} {
				if n.value != "" {
					notes = append(notes, c.Word(n.name)+" "+n.value)
				}
			}
			if t.PerMinute > 0 {
				notes = append(notes, c.Text("%d a minute", t.PerMinute))
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", t.Name, cli.Printable(t.URL), c.Word(line.From), strings.Join(notes, ", "))
		}
		table.Flush()
		return l.From.Answer(c, lines, "%s", text.String())
	})
}

type tspAddCommand struct {
	Name      string           `arg:"" help:"Unique short name: lower-case letters, digits, dots, hyphens, underscores."`
	URL       string           `arg:"" help:"Address of the service, http or https."`
	Title     string           `help:"Title of the service for people."`
	Class     string           `help:"Class of the service. Services of the same class replace each other when one is down. Default: no other service replaces this one."`
	Policy    string           `placeholder:"OID" help:"TSA policy to request and require. Default: the one of the service."`
	PerMinute int              `help:"Rate limit of each process in requests per minute; 0 for none."`
	From      cli.Installation `embed:""`
}

func (a *tspAddCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &a.From, "AddTSPService", a.Name, func(ctx context.Context, s *app.Services) error {
		t := policy.TSPService{Name: a.Name, Title: a.Title, URL: a.URL, Class: a.Class, Policy: a.Policy, PerMinute: a.PerMinute}
		if err := s.Policies.AddTSPService(ctx, t); err != nil {
			return err
		}
		line := tspJSON{t.Name, t.Title, t.URL, t.Class, t.Policy, t.PerMinute, "database"}
		return a.From.Answer(c, line, "Time-stamp service %s is registered. Try it with: tamga tsp check %s\n", t.Name, t.Name)
	})
}

type tspRemoveCommand struct {
	Name string           `arg:"" help:"Name of the service."`
	From cli.Installation `embed:""`
}

func (r *tspRemoveCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &r.From, "RemoveTSPService", r.Name, func(ctx context.Context, s *app.Services) error {
		if err := s.Policies.RemoveTSPService(ctx, r.Name); err != nil {
			return err
		}
		return r.From.Answer(c, map[string]string{"removed": r.Name}, "Time-stamp service %s is removed.\n", r.Name)
	})
}

type tspCheckCommand struct {
	Service string           `arg:"" name:"service" help:"Name of a registered service, or the address of any service."`
	Policy  string           `placeholder:"OID" help:"TSA policy to request. Default: the registered one."`
	Hash    string           `default:"GR 34.11-2012 256" help:"Digest algorithm of the request."`
	From    cli.Installation `embed:""`
}

// checkJSON is an examination as --json prints it.
type checkJSON struct {
	URL      string        `json:"url"`
	Good     bool          `json:"good"`
	Checks   []checkedJSON `json:"checks"`
	TookMS   int64         `json:"took_ms"`
	Size     int           `json:"size"` // of the stamp, in bytes
	Time     *time.Time    `json:"time,omitempty"`
	OffMS    int64         `json:"off_ms"` // from our clock
	Policy   string        `json:"policy"`
	Accuracy string        `json:"accuracy"`
	Path     []string      `json:"path"`
}

// checkedJSON is one check of an examination.
type checkedJSON struct {
	Name  string `json:"name"`
	Good  bool   `json:"good"`
	Error string `json:"error,omitempty"`
}

// checkTitles has the text of each successful check.
var checkTitles = map[string]cli.Word{
	"connection": "the service answers with a time stamp",
	"answer":     "the stamp matches the request: digest, nonce, policy",
	"signature":  "the stamp has one signer, whose certificate is for time stamping only, and its signature is valid",
	"clock":      "the time of the stamp is close to our clock",
	"trust":      "the certificate of the signer leads to a trusted root",
	"revocation": "no certificate on the path is revoked",
}

func (k *tspCheckCommand) Run(c *cli.Console) error {
	hash, ok := suite.HashByName(k.Hash)
	if !ok {
		return fmt.Errorf("--hash %s: unknown digest algorithm; want a name such as %q", cli.Printable(k.Hash), suite.Streebog256.Name)
	}
	var bad error // a rejected service is not an error of the command: exit code 1
	err := cli.Administer(c, &k.From, "CheckTSPService", k.Service, func(ctx context.Context, s *app.Services) error {
		service, err := k.find(ctx, s)
		if err != nil {
			return err
		}
		source, err := s.OpenEvidence(s.Config.Evidence)
		if err != nil {
			return err
		}
		defer source.Close()
		sample := make([]byte, 32)
		rand.Read(sample)
		e, err := source.Examine(ctx, service, hash.Digest(sample))
		if err != nil {
			return err
		}
		if !e.Good() {
			bad = cli.ExitCode(1)
		}
		return k.From.Answer(c, examinationFor(service.URL, e), "%s", explainExamination(c, service.URL, e))
	})
	if err != nil {
		return err
	}
	return bad
}

// examinationFor returns an examination for --json.
func examinationFor(address string, e *evidence.Examination) checkJSON {
	out := checkJSON{URL: address, Good: e.Good(), TookMS: e.Took.Milliseconds(), Size: e.Size, OffMS: e.Off.Milliseconds(), Checks: []checkedJSON{}, Path: []string{}}
	for _, check := range e.Checks {
		line := checkedJSON{Name: check.Name, Good: check.Err == nil}
		if check.Err != nil {
			line.Error = check.Err.Error()
		}
		out.Checks = append(out.Checks, line)
	}
	if e.Info != nil {
		at := e.Info.Time.UTC()
		out.Time, out.Policy = &at, e.Info.Policy.String()
		if e.Info.Accuracy > 0 {
			out.Accuracy = e.Info.Accuracy.String()
		}
	}
	for _, x := range e.Path {
		out.Path = append(out.Path, x.Subject.String())
	}
	return out
}

// explainExamination returns an examination as text for people.
func explainExamination(c *cli.Console, address string, e *evidence.Examination) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n\n", cli.Printable(address))
	for _, check := range e.Checks {
		if check.Err == nil {
			fmt.Fprintf(&text, "  %-6s %s\n", c.Text("ok"), c.Word(checkTitles[check.Name]))
		} else {
			fmt.Fprintf(&text, "  %-6s %s: %s\n", c.Text("WRONG"), check.Name, cli.Printable(check.Err.Error()))
		}
	}
	if e.Info != nil {
		text.WriteString(c.Text("\n  time %s (%s from our clock), policy %s, %d bytes, %s\n",
			e.Info.Time.UTC().Format(time.RFC3339), e.Off.Round(time.Millisecond), e.Info.Policy, e.Size, e.Took.Round(time.Millisecond)))
	}
	for i, x := range e.Path {
		fmt.Fprintf(&text, "  %s%s\n", strings.Repeat("  ", i), cli.Printable(x.Subject.String()))
	}
	verdict := c.Text("Stamps of this service are accepted.")
	if !e.Good() {
		verdict = c.Text("Stamps of this service are rejected.")
	}
	fmt.Fprintf(&text, "\n%s\n", verdict)
	return text.String()
}

// find returns a registered service by name or address, or an unregistered one by address.
func (k *tspCheckCommand) find(ctx context.Context, s *app.Services) (policy.TSPService, error) {
	services, err := s.Policies.TSPServices(ctx)
	if err != nil {
		return policy.TSPService{}, err
	}
	found := policy.TSPService{Name: "unregistered", URL: k.Service}
	asked, _ := policy.NormalAddress(k.Service)
	for _, t := range services {
		if normal, _ := policy.NormalAddress(t.URL); t.Name == k.Service || normal == asked {
			found = t
			break
		}
	}
	if k.Policy != "" {
		found.Policy = k.Policy
	}
	return found, nil
}
