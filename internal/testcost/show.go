// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// event is a line of "go test -json".
type event struct {
	Action      string
	Package     string
	ImportPath  string // of a build, instead of Package
	Test        string
	Output      string
	Elapsed     float64 // seconds
	FailedBuild string
}

// tested is a package whose tests run.
type tested struct {
	order  []string                    // tests in the order of their first output; "" is the package
	output map[string]*strings.Builder // of tests that have not passed
	times  map[string]time.Duration    // of tests that have ended
}

// show reads what go test -json prints. It writes what go test would print without -v, and returns
// the time of each test that is not a part of another one.
func show(w io.Writer, events io.Reader) (times []cost, err error) {
	packages := map[string]*tested{}
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				w.Write(line) // of go itself
			} else {
				times = append(times, take(w, packages, e)...)
			}
		}
		if err == io.EOF {
			return times, nil
		}
		if err != nil {
			return times, err
		}
	}
}

// take takes one event. It returns the times of the tests of a package that has ended.
func take(w io.Writer, packages map[string]*tested, e event) []cost {
	if e.Action == "build-output" {
		io.WriteString(w, e.Output)
		return nil
	}
	p := packages[e.Package]
	if p == nil {
		p = &tested{output: map[string]*strings.Builder{}, times: map[string]time.Duration{}}
		packages[e.Package] = p
	}
	switch e.Action {
	case "output":
		if p.output[e.Test] == nil {
			p.output[e.Test] = &strings.Builder{}
			p.order = append(p.order, e.Test)
		}
		if !strings.HasPrefix(e.Output, "=== ") {
			p.output[e.Test].WriteString(e.Output)
		}
	case "pass", "skip", "fail":
		if e.Test == "" {
			p.write(w, e.Action == "fail")
			delete(packages, e.Package)
			return p.whole(strings.TrimPrefix(e.Package, "tamga/"))
		}
		p.times[e.Test] += time.Duration(e.Elapsed * float64(time.Second)) // a TestMain may run the tests twice
		if e.Action != "fail" {
			p.output[e.Test] = &strings.Builder{}
		}
	}
	return nil
}

// whole returns the times of the tests that are not a part of another one. The time that go test says
// is without the parts that run in parallel.
func (p *tested) whole(pkg string) (times []cost) {
	parts := map[string]time.Duration{} // sums
	names := slices.Collect(maps.Keys(p.times))
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	for _, name := range names { // parts first: their names are longer
		spent := max(p.times[name], parts[name])
		outer := name
		for i := strings.LastIndexByte(outer, '/'); i >= 0; i = strings.LastIndexByte(outer, '/') {
			outer = outer[:i]
			if _, is := p.times[outer]; is {
				break
			}
		}
		if outer == name {
			times = append(times, cost{pkg + " " + name, spent})
		} else {
			parts[outer] += spent
		}
	}
	return times
}

// write writes the output of a package. Its own output is last: it ends with the line of the result.
func (p *tested) write(w io.Writer, failed bool) {
	own := ""
	if b := p.output[""]; b != nil {
		own = b.String()
	}
	if !failed {
		// Of a passed package only the result is of interest.
		own = strings.TrimSuffix(own, "\n")
		own = own[strings.LastIndexByte(own, '\n')+1:]
		if !strings.Contains(own, "[no test files]") {
			fmt.Fprintln(w, own)
		}
		return
	}
	for _, test := range p.order {
		if test != "" {
			io.WriteString(w, p.output[test].String())
		}
	}
	io.WriteString(w, own)
}
