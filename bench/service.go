// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// A serviceFloor is a bound for one figure of a benchmark of the whole service. These
// benchmarks are in the module of the service. The program serves, and the clients run
// in another process.
type serviceFloor struct {
	benchmark, unit string
	least, most     float64 // 0 means no bound
}

// multiple is the unit of processor time of the server as a multiple of one bare signature.
const multiple = "bare-signatures/op"

// serviceRuns are the benchmarks of the service with their bounds. A bound of processor time is
// the time allowed on the machine of docs/performance.md, divided by the 9 µs that a bare
// signature takes there, so it holds on other machines too.
var serviceRuns = []struct {
	pattern, time string
	floors        []serviceFloor
}{
	{"^BenchmarkHTTP$", "2s", []serviceFloor{
		{benchmark: "BenchmarkHTTP/BES-1KiB", unit: "signatures/s", least: 5000},
		{benchmark: "BenchmarkHTTP/BES-1KiB", unit: "half-load-p99-ms", most: 10},
		{benchmark: "BenchmarkHTTP/BES-1KiB", unit: multiple, most: 19},
		{benchmark: "BenchmarkHTTP/BES-1KiB-PIN", unit: multiple, most: 44},
		{benchmark: "BenchmarkHTTP/T-1KiB", unit: multiple, most: 67},
		{benchmark: "BenchmarkHTTP/XLT1-1KiB", unit: multiple, most: 133},
		{benchmark: "BenchmarkHTTP/XMLEnveloped-4KiB", unit: multiple, most: 36},
		{benchmark: "BenchmarkHTTP/PDF-100KB", unit: multiple, most: 67},
		{benchmark: "BenchmarkHTTP/DOCX-50KB", unit: multiple, most: 89},
		{benchmark: "BenchmarkHTTP/v2-1000", unit: multiple, most: 3.2}, // each document is in the register
		{benchmark: "BenchmarkHTTP/cosign-10000", unit: multiple, most: 10},
		{benchmark: "BenchmarkHTTP/verify-BES-1KiB", unit: multiple, most: 17},
		{benchmark: "BenchmarkHTTP/stamp", unit: multiple, most: 13},
		{benchmark: "BenchmarkHTTP/OCSP", unit: multiple, most: 13},
		{benchmark: "BenchmarkHTTP/two-steps-1KiB", unit: multiple, most: 62},
		{benchmark: "BenchmarkHTTP/v2-100-stored", unit: multiple, most: 14},
		{benchmark: "BenchmarkHTTP/decrypt-1KiB-28147-89", unit: multiple, most: 40},
		{benchmark: "BenchmarkHTTP/decrypt-1KiB-Kuznyechik", unit: multiple, most: 40},
	}},
	{"^BenchmarkMemory$", "5x", []serviceFloor{
		{benchmark: "BenchmarkMemory/detached-1GiB", unit: "of-hash", least: 0.75},
	}},
	{"^BenchmarkBesideHostile$", "5x", []serviceFloor{
		{benchmark: "BenchmarkBesideHostile", unit: "MiB-above-idle", most: 512},
		{benchmark: "BenchmarkBesideHostile", unit: "ratio", most: 2},
	}},
	{"^BenchmarkBesideResets$", "5x", []serviceFloor{
		{benchmark: "BenchmarkBesideResets", unit: "ratio", most: 2},
	}},
}

// timeService runs the benchmarks of the service and prints their output. It runs the rows that
// are out of bounds again, up to twice: other programs disturb one run of a row, seldom three. If
// that does not help and -check is set, it returns an error.
func timeService() error {
	var beyond []string
	for _, run := range serviceRuns {
		pattern, left := run.pattern, run.floors
		for attempt := 1; len(left) > 0; attempt++ {
			figures, err := goBench(pattern, run.time)
			if err != nil {
				return err
			}
			var wrong []serviceFloor
			for _, f := range left {
				value, ok := figures[f.benchmark][f.unit]
				if !ok {
					return fmt.Errorf("%s did not report %s", f.benchmark, f.unit)
				}
				if bound := f.bound(value); bound != "" {
					text := fmt.Sprintf("%s: %.3g %s, want %s", f.benchmark, value, f.unit, bound)
					fmt.Println("OUT OF BOUNDS", text)
					wrong = append(wrong, f)
					if attempt == 3 {
						beyond = append(beyond, text)
					}
				}
			}
			if attempt == 3 {
				break
			}
			pattern, left = rowsOf(wrong), wrong
		}
	}
	if *check && len(beyond) > 0 {
		return errors.New("out of bounds: " + strings.Join(beyond, "; "))
	}
	return nil
}

// bound returns the bound that a value exceeds, or "".
func (f serviceFloor) bound(value float64) string {
	switch {
	case f.least > 0 && value < f.least:
		return fmt.Sprintf("at least %g", f.least)
	case f.most > 0 && value > f.most:
		return fmt.Sprintf("at most %g", f.most)
	}
	return ""
}

// rowsOf returns the pattern of the benchmarks of floors, which are rows of one benchmark.
func rowsOf(floors []serviceFloor) string {
	var rows []string
	var of string
	for _, f := range floors {
		benchmark, row, _ := strings.Cut(f.benchmark, "/")
		if of = benchmark; row != "" && !slices.Contains(rows, row) {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return "^" + of + "$"
	}
	return "^" + of + "$/^(" + strings.Join(rows, "|") + ")$"
}

// goBench runs benchmarks of cmd/tamga, prints their output and returns their figures by
// name and unit.
func goBench(pattern, time string) (map[string]map[string]float64, error) {
	run := exec.Command("go", "test", "-run", "^$", "-bench", pattern, "-benchtime", time, "./cmd/tamga")
	run.Dir = ".."
	run.Stderr = os.Stderr
	text, err := run.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := run.Start(); err != nil {
		return nil, err
	}
	figures := map[string]map[string]float64{}
	in := bufio.NewScanner(text)
	for in.Scan() {
		fmt.Println(in.Text())
		if name, of := parseBench(in.Text()); name != "" {
			figures[name] = of
		}
	}
	if err := errors.Join(in.Err(), run.Wait()); err != nil {
		return nil, fmt.Errorf("go test -bench %s (run this in the folder bench): %w", pattern, err)
	}
	return figures, nil
}

// parseBench reads a line of benchmark output: the name, the number of rounds, then
// values with their units. It removes the number of processors from the name. For other
// lines it returns an empty name.
func parseBench(line string) (name string, figures map[string]float64) {
	fields := strings.Fields(line)
	if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
		return "", nil
	}
	name = fields[0]
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		if _, err := strconv.Atoi(name[i+1:]); err == nil {
			name = name[:i]
		}
	}
	figures = map[string]float64{}
	for i := 2; i+1 < len(fields); i += 2 {
		if v, err := strconv.ParseFloat(fields[i], 64); err == nil {
			figures[fields[i+1]] = v
		}
	}
	return name, figures
}
