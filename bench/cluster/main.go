// SPDX-License-Identifier: Apache-2.0

// The command cluster runs several processes of Tamga as one service, breaks parts of it, and
// prints what that costs. Package tamga/internal/cluster does the work.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"tamga/internal/cluster"
)

const usage = `Usage: go run ./cluster [flags] [NAME...]

Runs processes of Tamga over PostgreSQL and a bucket, loads them, breaks parts of the service
and checks every answer. It prints tables of Markdown for docs/performance.md. NAME is a
figure or a scenario, "figures" or "scenarios". Without a name it runs everything, which takes about
an hour. It needs PostgreSQL, HAProxy and versitygw, which ./test.sh installs. The scenario
"disk" needs root.

  go run ./cluster -list               what there is
  go run ./cluster cost people         two figures
  go run ./cluster -rounds 3 freeze    one scenario, its fault three times
  go run ./cluster -turn 2s figures    all figures, roughly

The exit code is 1 if something acknowledged was lost, something was signed twice, or a bound
was exceeded. A scenario that cannot run is an error if it is named; otherwise the output says so.

Flags:
`

func main() {
	list := flag.Bool("list", false, "list figures and scenarios")
	turn := flag.Duration("turn", 10*time.Second, "time of one turn of a figure")
	turns := flag.Int("turns", 3, "turns of each side of a figure; the median counts")
	rounds := flag.Int("rounds", 20, "how often a scenario repeats its fault")
	mixed := flag.Duration("mixed", 5*time.Minute, "time of a scenario without a fault")
	source := flag.String("source", "", "source tree of the program, to compare with; default: this one")
	users := flag.Int("users", 10_000_000, "users of the larger database")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	if *list {
		for _, f := range cluster.Figures {
			fmt.Printf("figure    %-16s %s\n", f.Name, f.Title)
		}
		for _, s := range cluster.Scenarios {
			fmt.Printf("scenario  %-16s %s\n", s.Name, s.Describe())
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	m := cluster.Measuring{Turn: *turn, Turns: *turns, Users: *users, Log: func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, format+"\n", args...)
	}}
	if err := run(ctx, flag.Args(), *source, m, *rounds, *mixed); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, names []string, source string, m cluster.Measuring, rounds int, mixed time.Duration) error {
	figures, scenarios, err := choose(names)
	if err != nil {
		return err
	}
	m.Log("building the programs")
	p, err := cluster.Build(ctx, source)
	if err != nil {
		return err
	}
	defer p.Close()
	var beyond []string
	var measured []cluster.Measured
	for _, f := range figures {
		value, err := f.Measure(ctx, p, m)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		measured = append(measured, value)
		if !value.Within {
			beyond = append(beyond, f.Name)
		}
	}
	var results []cluster.Result
	for _, s := range scenarios {
		if err := s.Prepare(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		r, err := s.Run(ctx, p, mixed, rounds, m.Log)
		if err != nil {
			return err
		}
		m.Log("%s", r.Details())
		results = append(results, r)
		if len(r.Wrong)+len(r.Beyond) > 0 {
			beyond = append(beyond, s.Name)
		}
	}
	if len(measured) > 0 {
		cluster.WriteFigures(os.Stdout, figures, measured)
		fmt.Println()
	}
	if len(results) > 0 {
		cluster.WriteResults(os.Stdout, results)
	}
	if len(beyond) > 0 {
		return errors.New("not as wanted: " + strings.Join(beyond, ", "))
	}
	return nil
}

// choose finds figures and scenarios by their names.
func choose(names []string) (figures []cluster.Figure, scenarios []cluster.Scenario, err error) {
	known := []string{"figures", "scenarios"}
	wanted := func(group, name string) bool {
		known = append(known, name)
		return len(names) == 0 || slices.Contains(names, name) || slices.Contains(names, group)
	}
	for _, f := range cluster.Figures {
		if wanted("figures", f.Name) {
			figures = append(figures, f)
		}
	}
	for _, s := range cluster.Scenarios {
		if wanted("scenarios", s.Name) {
			scenarios = append(scenarios, s)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, nil, fmt.Errorf("%q is neither a figure nor a scenario: -list lists them", name)
		}
	}
	return figures, scenarios, nil
}
