// SPDX-License-Identifier: Apache-2.0

// Command bench compares the speed of the algorithms of Tamga with that of OpenSSL's
// gost-engine and of GNU Nettle. All do the same work in one process, on one core, in
// turns. It prints medians, the ratio to the peer, the same ratio for the portable
// build, and the minimum ratios of floors.go.
//
//	cd bench && go run . [-check] [-rounds 9] [-only TEXT] [-portable=false]
//	cd bench && go run . -service [-check]
//	cd bench && go run . -profile [-only REGEXP]
//	cd bench && go run . -leak 10000000 [-only TEXT]
//	cd bench && go run . -memcheck
//
// With -check it fails if a ratio is below its minimum. -service times the whole service
// over HTTP, and -profile prints where its processor time goes. -leak looks for execution time that depends on secrets, see leak.go.
// -memcheck looks for branches and addresses that depend on secrets, see memcheck.go.
//
// It needs Debian's libssl-dev, libengine-gost-openssl and nettle-dev, and valgrind for
// -memcheck. It is not part of the product.
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tamga/bench/engine"
)

// work is an operation that both sides can do. ours and theirs run n rounds and return
// an error if one fails.
type work struct {
	name         string
	bytes        int // processed in a round; 0 if the table shows rounds per second
	ours, theirs func(n int) error
}

// result is the measured speed of a work.
type result struct {
	name         string
	ours, theirs float64 // rounds per second, medians
	ratio        float64 // the median of the ratios of all turns
	bytes        int
}

var (
	rounds   = flag.Int("rounds", 9, "number of timings of each side, of which the median is taken")
	only     = flag.String("only", "", "run only the works whose name contains this")
	check    = flag.Bool("check", false, "fail if a ratio is below its minimum (column floor)")
	portable = flag.Bool("portable", true, "also build and time the portable implementations (tag purego)")
	lines    = flag.Bool("lines", false, "print lines for a program to read: name, both rates, ratio, bytes per round, separated by tabs")
	service  = flag.Bool("service", false, "time the service over HTTP instead of the algorithms, with clients on the same machine")
	profile  = flag.Bool("profile", false, "print where the processor time of the service goes, for each row of the benchmark over HTTP")
	leak     = flag.Int("leak", 0, "look for execution time that depends on secrets, with this `number` of calls of each kind")
	memcheck = flag.Bool("memcheck", false, "look for branches and addresses that depend on secrets: run the portable build under valgrind")
)

func main() {
	flag.Parse()
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	switch {
	case *service:
		return timeService()
	case *profile:
		return profileService()
	case *leak > 0:
		return findLeaks(*leak)
	case *memcheck:
		return runMemcheck()
	}
	runtime.LockOSThread()
	runtime.GOMAXPROCS(1)
	if err := engine.Start(); err != nil {
		return err
	}
	all, err := works()
	if err != nil {
		return err
	}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(floors)), slices.Collect(maps.Keys(narrow))) {
		if !slices.ContainsFunc(all, func(w work) bool { return w.name == name }) {
			return fmt.Errorf("floors.go: unknown work %q", name)
		}
	}
	all = slices.DeleteFunc(all, func(w work) bool { return !strings.Contains(w.name, *only) })
	if *lines {
		for _, w := range all {
			r, err := compare(w, func(r result) bool { return r.ratio >= floors[w.name].portable })
			if err != nil {
				return err
			}
			fmt.Printf("%s\t%g\t%g\t%g\t%d\n", r.name, r.ours, r.theirs, r.ratio, r.bytes)
		}
		return nil
	}
	return table(all)
}

// table times all works and prints the table.
func table(all []work) error {
	var others []result
	if *portable {
		var err error
		if others, err = purego(); err != nil {
			return err
		}
	}
	const form = "%-78s %8s %8s  %-4s %9s %5s %9s %5s\n" // fixed widths, so that each line can be printed when it is measured
	fmt.Printf(form, "work", "tamga", "peer", "unit", "ratio", "floor", "portable", "floor")
	var low []string
	for _, w := range all {
		f := floors[w.name]
		measured := f.needs.present()
		if !measured && scalar.has {
			f.ratio, measured = narrow[w.name], true
		}
		cells := []any{w.name, "not", "measured", "", "", ""}
		if measured {
			r, err := compare(w, func(r result) bool { return r.ratio >= f.ratio })
			if err != nil {
				return err
			}
			ours, theirs, unit, ratio := r.cells()
			if r.ratio < f.ratio {
				ratio = "LOW " + ratio
				low = append(low, w.name)
			}
			cells = []any{w.name, ours, theirs, unit, ratio, least(f.ratio)}
		}
		i := slices.IndexFunc(others, func(r result) bool { return r.name == w.name })
		if i < 0 {
			cells = append(cells, "", "")
		} else {
			ratio := fmt.Sprintf("%.2f", others[i].ratio)
			if others[i].ratio < f.portable {
				ratio = "LOW " + ratio
				low = append(low, w.name+" (portable)")
			}
			cells = append(cells, ratio, least(f.portable))
		}
		fmt.Printf(form, cells...)
	}
	fmt.Println()
	fmt.Println(notes)
	if *check && len(low) > 0 {
		return fmt.Errorf("below the floor: %s", strings.Join(low, "; "))
	}
	return nil
}

// cells returns the cells of the table for a result.
func (r result) cells() (ours, theirs, unit, ratio string) {
	unit, scale := "1/s", 1.0
	if r.bytes > 0 {
		unit, scale = "MB/s", float64(r.bytes)/1e6
	}
	return fmt.Sprintf("%.0f", r.ours*scale), fmt.Sprintf("%.0f", r.theirs*scale), unit, fmt.Sprintf("%.2f", r.ratio)
}

func least(floor float64) string {
	if floor == 0 {
		return ""
	}
	return fmt.Sprintf("%g", floor)
}

// purego builds this program without assembly and returns its results.
func purego() ([]result, error) {
	dir, err := os.MkdirTemp("", "tamgabench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "bench")
	build := exec.Command("go", "build", "-tags", "purego", "-o", program, ".")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("building the portable implementations (run this in the folder bench): %w", err)
	}
	child := exec.Command(program, "-lines", "-rounds", strconv.Itoa(*rounds), "-only", *only)
	child.Stderr = os.Stderr
	out, err := child.Output()
	if err != nil {
		return nil, fmt.Errorf("timing the portable implementations: %w", err)
	}
	var all []result
	for in := bufio.NewScanner(bytes.NewReader(out)); in.Scan(); {
		var r result
		fields := strings.Split(in.Text(), "\t")
		if len(fields) != 5 {
			return nil, fmt.Errorf("timing the portable implementations: unexpected line %q", in.Text())
		}
		r.name = fields[0]
		if _, err := fmt.Sscan(strings.Join(fields[1:], " "), &r.ours, &r.theirs, &r.ratio, &r.bytes); err != nil {
			return nil, fmt.Errorf("timing the portable implementations: line %q: %w", in.Text(), err)
		}
		all = append(all, r)
	}
	return all, nil
}

// attempts is how many times a work is timed before its ratio is reported as too low.
// On a busy machine a ratio is sometimes low by chance.
const attempts = 3

// compare times a work until good reports true, at most attempts times, and returns
// the best result.
func compare(w work, good func(result) bool) (best result, err error) {
	for range attempts {
		r, err := timed(w, *rounds)
		if err != nil {
			return r, fmt.Errorf("%s: %w", w.name, err)
		}
		if r.ratio >= best.ratio {
			best = r
		}
		if good(best) {
			break
		}
	}
	return best, nil
}

// timed times both sides in turns.
func timed(w work, rounds int) (r result, err error) {
	r.name, r.bytes = w.name, w.bytes
	sides := [2]func(int) error{w.ours, w.theirs}
	var n [2]int
	for i, side := range sides { // find how many rounds take about 30 ms
		for n[i] = 1; ; n[i] *= 2 {
			start := processTime()
			if err := side(n[i]); err != nil {
				return r, err
			}
			if took := processTime() - start; took > 30*time.Millisecond || n[i] > 1<<24 {
				break
			}
		}
	}
	var rates [2][]float64
	var ratios []float64
	for range rounds {
		for i, side := range sides {
			start := processTime()
			if err := side(n[i]); err != nil {
				return r, err
			}
			rates[i] = append(rates[i], float64(n[i])/(processTime()-start).Seconds())
		}
		last := len(rates[0]) - 1
		ratios = append(ratios, rates[0][last]/rates[1][last])
	}
	r.ours, r.theirs, r.ratio = median(rates[0]), median(rates[1]), median(ratios)
	return r, nil
}

// processTime returns the processor time of this process, including garbage
// collection. The time of other programs does not count.
func processTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// works returns all works, in the order of the table.
func works() ([]work, error) {
	all := hashWorks()
	for _, more := range []func() ([]work, error){signatureWorks, messageWorks, encryptionWorks, cipherWorks} {
		w, err := more()
		if err != nil {
			return nil, err
		}
		all = append(all, w...)
	}
	return all, nil
}
