// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// WriteFigures writes figures as a table of Markdown.
func WriteFigures(w io.Writer, figures []Figure, measured []Measured) {
	fmt.Fprint(w, "| Figure | Measured | Wanted | Notes |\n|---|---:|---:|---|\n")
	for i, f := range figures {
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", f.Title, measured[i].Value, f.Reach, measured[i].Note)
	}
}

// WriteResults writes results of scenarios as a table of Markdown.
func WriteResults(w io.Writer, results []Result) {
	fmt.Fprint(w, "| Scenario | Times | Requests | Failed | Lost, twice or wrongly refused | Longest gap | Database away | Lock waits above 50 ms | Deadlocks |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, r := range results {
		away := "–"
		if r.Away > 0 {
			away = r.Away.Round(10 * time.Millisecond).String()
		}
		fmt.Fprintf(w, "| %s | %d | %d | %d | %d | %v | %s | %d | %d |\n",
			r.Scenario, r.Rounds, r.Answered+r.Failed, r.Failed, len(r.Wrong), r.Gap.Round(10*time.Millisecond), away, len(r.Waits.List), r.Waits.Deadlocks)
	}
}

// Details describes what a table has no room for.
func (r *Result) Details() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d rounds, %v, %d answered, %d failed, gap %v (away %v), %d lock waits, %d deadlocks\n", r.Scenario, r.Rounds,
		r.Took.Round(time.Second), r.Answered, r.Failed, r.Gap.Round(time.Millisecond), r.Away.Round(time.Millisecond), len(r.Waits.List), r.Waits.Deadlocks)
	list := func(what string, lines []string, most int) {
		for i, line := range lines {
			if i == most {
				fmt.Fprintf(&b, "  %s: %d more\n", what, len(lines)-most)
				break
			}
			fmt.Fprintf(&b, "  %s: %s\n", what, line)
		}
	}
	list("kind of WRONG", r.WrongKinds, 20)
	list("WRONG", r.Wrong, 20)
	list("BEYOND", r.Beyond, 20)
	list("answer", r.Others, 10)
	for i, w := range r.Waits.List {
		if i == 20 {
			fmt.Fprintf(&b, "  lock: %d more\n", len(r.Waits.List)-i)
			break
		}
		fmt.Fprintf(&b, "  lock: %v\n", w)
	}
	list("deadlock", r.Waits.Circles, 40)
	b.WriteString(r.Log)
	return b.String()
}
