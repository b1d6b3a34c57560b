// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// phases are the columns of the profile table.
var phases = []string{"receive", "parse", "identity", "policy", "read", "hash", "sign", "verify", "encode", "audit", "commit", "send", "memory", "rest"}

// phaseRules assign a sample to a phase. The rules are tried in order, each on all functions of
// the sample from the innermost to the outermost, so that the first rules win: hashing inside
// of a format is "hash". A rule names the beginning of functions without "tamga/".
var phaseRules = []struct{ function, phase string }{
	{"runtime.gcBgMarkWorker", "memory"},
	{"runtime.gcAssistAlloc", "memory"},
	{"runtime.bgsweep", "memory"},
	{"runtime.bgscavenge", "memory"},
	{"runtime.mallocgc", "memory"},
	{"gost/streebog.", "hash"},
	{"crypto/sha", "hash"},
	{"gost/gost3410.(*PublicKey)", "verify"},
	{"gost/gost3410.VerifyMany", "verify"},
	{"pki/chain.", "verify"},
	{"gost/gost3410.", "sign"},
	{"internal/domain/vault.", "sign"},
	{"internal/adapter/store.(*Committer)", "commit"},
	{"internal/adapter/store.(*Audit)", "audit"},
	{"internal/adapter/store.Audit", "audit"},
	{"internal/domain/audit.", "audit"},
	{"internal/adapter/store.", "read"},
	{"modernc.org/", "read"},
	{"pki/tsp.Parse", "parse"},
	{"pki/ocsp.Parse", "parse"},
	{"pki/cms.Parse", "parse"},
	{"pki/cms.(*Message).X509", "parse"},
	{"pki/x509gost.Parse", "parse"},
	{"sig/xmltree.Parse", "parse"},
	{"internal/web/rest.answer.send", "send"},
	{"internal/web/rest.writeJSON", "send"},
	{"net/http.(*response)", "send"},
	{"net/http.(*chunkWriter)", "send"},
	{"internal/web/rest.bindBody", "parse"},
	{"internal/web/rest.compileRe", "parse"},
	{"internal/web/rest.compileRaw", "parse"},
	{"encoding/json.Unmarshal", "parse"},
	{"internal/domain/policy.", "policy"},
	{"internal/domain/keys.", "policy"},
	{"internal/domain/token.", "identity"},
	{"internal/web/rest.(*handler).identify", "identity"},
	{"internal/web/rest.(*handler).recordOutcome", "audit"},
	{"sig.OpenState", "parse"},
	{"sig/", "encode"},
	{"sig.", "encode"},
	{"pki/", "encode"},
	{"internal/domain/signing.", "policy"},
	{"net/http.(*conn).readRequest", "receive"},
	{"net/http.(*connReader)", "receive"},
	{"net/http.(*conn)", "receive"},
	{"net/http.(*persistConn)", "receive"},
	{"net/http.(*Transport)", "receive"},
}

// phaseOf returns the phase of a stack, the innermost function first.
func phaseOf(stack []string) string {
	for _, rule := range phaseRules {
		for _, f := range stack {
			if strings.HasPrefix(strings.TrimPrefix(f, "tamga/"), rule.function) {
				return rule.phase
			}
		}
	}
	return "rest"
}

// profileService runs BenchmarkHTTP with profiles and prints for each row where the processor
// time of the server goes, in microseconds for one signature.
func profileService() error {
	dir, err := os.MkdirTemp("", "tamgabench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Setenv("TAMGA_BENCH_PROFILE", dir); err != nil {
		return err
	}
	pattern := "^BenchmarkHTTP$"
	if *only != "" {
		pattern += "/" + *only
	}
	figures, err := goBench(pattern, "3s")
	if err != nil {
		return err
	}
	fmt.Printf("\n| Request | all | %s |\n|---|---:|%s\n", strings.Join(phases, " | "), strings.Repeat("---:|", len(phases)))
	files, err := filepath.Glob(filepath.Join(dir, "*.cpu"))
	if err != nil {
		return err
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".cpu")
		all := figures["BenchmarkHTTP/"+name]["server-us/op"]
		spent, err := readProfile(file)
		if err != nil {
			return err
		}
		var total time.Duration
		for _, d := range spent {
			total += d
		}
		if total == 0 {
			return fmt.Errorf("%s: the profile has no samples", name)
		}
		fmt.Printf("| %s | %.0f |", name, all)
		for _, p := range phases {
			fmt.Printf(" %.0f |", all*float64(spent[p])/float64(total))
		}
		fmt.Println()
	}
	return nil
}

// readProfile adds up the time of a processor profile by phase. go tool pprof prints each stack
// as a line with the time and the innermost function, then one line for each caller, and a line
// of dashes between stacks.
func readProfile(file string) (map[string]time.Duration, error) {
	text, err := exec.Command("go", "tool", "pprof", "-traces", file).Output()
	if err != nil {
		return nil, fmt.Errorf("go tool pprof -traces %s: %w", file, err)
	}
	spent := map[string]time.Duration{}
	var stack []string
	var took time.Duration
	end := func() {
		if len(stack) > 0 {
			spent[phaseOf(stack)] += took
		}
		stack = nil
	}
	begun := false
	in := bufio.NewScanner(bytes.NewReader(text))
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		line := strings.TrimSpace(in.Text())
		if strings.HasPrefix(line, "---") {
			end()
			begun = true
			continue
		}
		if !begun || line == "" {
			continue
		}
		if len(stack) == 0 {
			value, function, _ := strings.Cut(line, " ")
			if took, err = parseTime(value); err != nil {
				return nil, fmt.Errorf("go tool pprof -traces: unexpected line %q", line)
			}
			line = strings.TrimSpace(function)
		}
		stack = append(stack, line)
	}
	end()
	return spent, in.Err()
}

// parseTime reads a time of pprof, such as 10ms or 1.27s.
func parseTime(text string) (time.Duration, error) {
	if minutes, ok := strings.CutSuffix(text, "mins"); ok {
		n, err := strconv.ParseFloat(minutes, 64)
		return time.Duration(n * float64(time.Minute)), err
	}
	return time.ParseDuration(text)
}
