// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	dearest = 10              // tests in the report
	small   = 2 * time.Second // packages below are one line together
)

// report prints the notes in a directory.
func report(w io.Writer, dir string) error {
	tests, err := noted(dir, "tests")
	if err != nil {
		return err
	}
	packages, err := noted(dir, "packages")
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "the dearest tests, by the clock:")
	for _, c := range tests[:min(dearest, len(tests))] {
		fmt.Fprintf(w, "%8.1fs  %s\n", c.time.Seconds(), c.name)
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "processor time of the tests, user and system:")
	var sum, rest time.Duration
	others := 0
	for _, c := range packages {
		sum += c.time
		if c.time < small {
			rest += c.time
			others++
			continue
		}
		name := c.name
		if relative, err := filepath.Rel(here, name); err == nil {
			name = relative
		}
		fmt.Fprintf(w, "%8.1fs  %s\n", c.time.Seconds(), name)
	}
	fmt.Fprintf(w, "%8.1fs  %d packages of less than %v\n", rest.Seconds(), others, small)
	fmt.Fprintf(w, "%8.1fs  all tests\n", sum.Seconds())
	whole, err := shellTime(dir)
	if err != nil || whole == 0 {
		return err
	}
	fmt.Fprintf(w, "%8.1fs  compilers, checks and installation\n", (whole - sum).Seconds())
	fmt.Fprintf(w, "%8.1fs  the whole run\n", whole.Seconds())
	return nil
}

// shellTime returns the processor time of the shell and its processes: the sum of what its command
// "times" has written into the file "run".
func shellTime(dir string) (sum time.Duration, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "run"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for _, field := range strings.Fields(string(text)) {
		d, err := time.ParseDuration(field)
		if err != nil {
			return 0, fmt.Errorf("run: %w", err)
		}
		sum += d
	}
	return sum, nil
}

// noted returns the costs of a file, the largest first. Costs of the same name are added up.
func noted(dir, file string) (costs []cost, err error) {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // nothing ran
	}
	if err != nil {
		return nil, err
	}
	sums := map[string]time.Duration{}
	for line := range strings.Lines(string(text)) {
		number, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		sums[name] += time.Duration(n)
	}
	for name, sum := range sums {
		costs = append(costs, cost{name, sum})
	}
	slices.SortFunc(costs, func(a, b cost) int {
		return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(a.name, b.name))
	})
	return costs, nil
}
