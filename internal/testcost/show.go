// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
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
			} else if c, ok := take(w, packages, e); ok {
				times = append(times, c)
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

// take takes one event. It returns the time of a whole test that has ended.
func take(w io.Writer, packages map[string]*tested, e event) (c cost, ended bool) {
	if e.Action == "build-output" {
		io.WriteString(w, e.Output)
		return c, false
	}
	p := packages[e.Package]
	if p == nil {
		p = &tested{output: map[string]*strings.Builder{}}
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
			return c, false
		}
		if e.Action != "fail" {
			p.output[e.Test] = &strings.Builder{}
		}
		if !strings.Contains(e.Test, "/") {
			return cost{strings.TrimPrefix(e.Package, "tamga/") + " " + e.Test, time.Duration(e.Elapsed * float64(time.Second))}, true
		}
	}
	return c, false
}

// write writes the output of a package. Its own output is last: it ends with the line of the result.
func (p *tested) write(w io.Writer, failed bool) {
	own := ""
	if b := p.output[""]; b != nil {
		own = b.String()
	}
	if !failed {
		// What a passed package prints besides its result is of no interest.
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
