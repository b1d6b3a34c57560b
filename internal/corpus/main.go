// SPDX-License-Identifier: Apache-2.0

// Corpus verifies the public samples of esig/dss (github.com/esig/dss) and compares with what the validation tests of that project
// assert of each, in expected.tsv. The samples are in its repository, below MODULE/src/test/resources, and not here.
//
//	git clone --depth 1 https://github.com/esig/dss
//	go run ./internal/corpus dss     # -v also prints rows that agree
//
// Every sample is judged with the certificates in it as anchors: those tests trust authorities of their own, so trust is not
// compared, but values, references, structure, time stamps and levels are. A row agrees if all that is asserted holds. The rows that
// do not, with the reason, are in explained.tsv; another one, and one there that agrees, is an error, as is a broken signature that
// is called intact.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/asic"
	"tamga/sig/cades"
	"tamga/sig/ooxml"
	"tamga/sig/pdf"
	"tamga/sig/xmldsig"
)

var (
	//go:embed expected.tsv
	expectedText string
	//go:embed explained.tsv
	explainedText string
)

// notBroken is the beginning of the explanation of a row that the tests call broken in one setting and intact in another.
const notBroken = "not broken: "

// sample is a row of expected.tsv. Fields are "unknown" if nothing is asserted.
type sample struct {
	file, format                         string
	detached                             []string // files, hex:BYTES or digest:NAME:HEX of the document
	signatures, signaturesAll            string
	levels                               string // first:LEVEL or all:LEVEL
	valueHolds, scope                    string // of all, of the first or of some signatures
	stamps, stampsHold                   string
	structure, named, changes, indicates string
	refused                              bool
}

// outcome is what became of a sample.
type outcome struct {
	*sample
	differs []string
	// danger means that a broken signature is called intact.
	danger bool
}

func main() {
	verbose := flag.Bool("v", false, "also print samples that agree")
	only := flag.String("only", "", "print all about the samples whose name has this part")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: corpus [-v] [-only PART] FOLDER\nFOLDER is a clone of github.com/esig/dss.")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *only, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "corpus:", err)
		os.Exit(1)
	}
}

func run(folder, only string, verbose bool) error {
	samples, err := table(expectedText)
	if err != nil {
		return err
	}
	reasons := explanations(explainedText)
	cms, xml := cades.New(), xmldsig.New()
	formats := sig.Formats{cms, xml, &pdf.Format{CMS: cms}, &asic.Format{CMS: cms, XML: xml}, ooxml.New()}
	results := make([]chan outcome, len(samples))
	turns := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range samples {
		results[i] = make(chan outcome, 1)
		if !strings.Contains(samples[i].file, only) {
			results[i] <- outcome{}
			continue
		}
		go func() {
			turns <- struct{}{}
			results[i] <- judge(folder, formats, &samples[i])
			<-turns
		}()
	}
	type sum struct{ agree, explained, all int }
	sums := map[string]*sum{}
	var kinds []string
	var wrong []string
	agreed, differs := map[string]bool{}, map[string]bool{} // a file has a row for each of its documents
	for _, r := range results {
		o := <-r
		if o.sample == nil {
			continue
		}
		s := sums[o.format]
		if s == nil {
			s = &sum{}
			sums[o.format], kinds = s, append(kinds, o.format)
		}
		s.all++
		reason := reasons[o.file]
		switch {
		case len(o.differs) == 0:
			s.agree++
			agreed[o.file] = true
			if verbose {
				fmt.Printf("agrees\t%s\n", o.file)
			}
			continue
		case o.danger && !strings.HasPrefix(reason, notBroken):
			wrong = append(wrong, o.file+" is broken, and called intact")
		case reason == "":
			wrong = append(wrong, o.file+" differs without an explanation")
		default:
			s.explained++
		}
		differs[o.file] = true
		fmt.Printf("differs\t%s\t%s\t%s\n", o.file, strings.Join(o.differs, "; "), reason)
	}
	var all sum
	fmt.Println()
	for _, kind := range kinds {
		s := sums[kind]
		fmt.Printf("%-14s %3d of %3d agree\n", kind, s.agree, s.all)
		all.agree, all.all = all.agree+s.agree, all.all+s.all
	}
	fmt.Printf("%-14s %3d of %3d agree, %.1f of 100\n", "all", all.agree, all.all, 100*float64(all.agree)/float64(max(1, all.all)))
	for file := range reasons {
		if agreed[file] && !differs[file] {
			wrong = append(wrong, file+" agrees, and explained.tsv says why not")
		}
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\ncorpus: "))
	}
	return nil
}

// table reads expected.tsv.
func table(text string) (list []sample, err error) {
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") || f[0] == "file" {
			continue
		}
		if len(f) != 16 {
			return nil, fmt.Errorf("expected.tsv: %q has %d columns", line, len(f))
		}
		s := sample{file: f[0], format: f[1], signatures: f[3], signaturesAll: f[4], levels: f[5], valueHolds: f[6], scope: f[7], stamps: f[8],
			stampsHold: f[9], structure: f[10], named: f[11], changes: f[12], indicates: f[13], refused: f[14] == "true"}
		if f[2] != "-" {
			s.detached = strings.Fields(f[2])
		}
		list = append(list, s)
	}
	return list, nil
}

// explanations reads explained.tsv: file and reason.
func explanations(text string) map[string]string {
	reasons := map[string]string{}
	for line := range strings.Lines(text) {
		if file, reason, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok {
			reasons[file] = reason
		}
	}
	return reasons
}

func pathOf(folder, file string) string {
	module, path, _ := strings.Cut(file, "/")
	return filepath.Join(folder, module, "src", "test", "resources", path)
}

// judge verifies a sample and compares.
func judge(folder string, formats sig.Formats, s *sample) (o outcome) {
	o.sample = s
	differ := func(format string, args ...any) { o.differs = append(o.differs, fmt.Sprintf(format, args...)) }
	data, err := os.ReadFile(pathOf(folder, s.file))
	if err != nil {
		differ("not there: %v", err)
		return o
	}
	report, err := verify(folder, formats, s, data)
	broken := s.valueHolds == "false" || strings.HasPrefix(s.indicates, "TOTAL_FAILED")
	if err != nil {
		// A document that is refused has no signature that is called intact.
		if !s.refused && !broken && s.structure != "false" {
			differ("refused: %v", err)
		}
		return o
	}
	var signatures, everything []*sig.Signature
	var stamps []bool // whether each holds
	stamped := false  // the document itself
	var add func(list []sig.Signature)
	add = func(list []sig.Signature) {
		for i := range list {
			one := &list[i]
			everything = append(everything, one)
			for _, s := range one.TimeStamps {
				if s.Kind != "document" {
					stamps = append(stamps, s.Holds() || weak(s.Findings))
				}
			}
			add(one.Countersigners)
		}
	}
	for i := range report.Signatures {
		one := &report.Signatures[i]
		if one.IsStamp() {
			stamps, stamped = append(stamps, breaks(one.Findings) == ""), true
			continue
		}
		signatures = append(signatures, one)
		add(report.Signatures[i : i+1])
	}
	failed := report.Verdict() == sig.Failed
	if s.refused && !failed {
		differ("not refused: %s", report.Verdict())
	}
	count := func(what, want string, n int) {
		if want != "unknown" && want != fmt.Sprint(n) {
			differ("%d %s, want %s", n, what, want)
		}
	}
	count("signatures", s.signatures, len(signatures))
	count("signatures with countersignatures", s.signaturesAll, len(everything))
	count("time stamps", s.stamps, len(stamps))
	o.values(signatures, everything, differ)
	switch bad := slices.Index(stamps, false); {
	case s.stampsHold == "true" && bad >= 0:
		differ("time stamp %d does not hold", bad)
	case s.stampsHold == "false" && bad < 0 && len(stamps) > 0:
		differ("all time stamps hold")
	}
	o.level(signatures, stamped, differ)
	switch {
	case strings.HasPrefix(s.indicates, "TOTAL_FAILED") && len(signatures) > 0 && signatures[0].Own() != sig.Failed && !failed:
		differ("not failed, want %s", s.indicates)
		o.danger = signatures[0].Holds()
	case s.indicates == "TOTAL_PASSED" && failed, strings.HasPrefix(s.indicates, "INDETERMINATE") && failed:
		differ("failed, want %s", s.indicates)
	case s.changes == "none" && later(signatures):
		differ("later changes are reported")
	case s.changes == "found" && !failed && !later(signatures):
		differ("no later change is reported")
	}
	return o
}

// values compares whether values and references hold.
func (o *outcome) values(signatures, everything []*sig.Signature, differ func(string, ...any)) {
	switch o.scope {
	case "first":
		signatures = signatures[:min(1, len(signatures))]
	case "some":
		signatures = everything
	}
	var broken []string
	holding := 0
	for _, one := range signatures {
		if code := breaks(one.Findings); code != "" {
			broken = append(broken, code)
		}
		if one.Holds() {
			holding++
		}
	}
	switch n := len(signatures); {
	case n == 0:
	case o.valueHolds == "true" && (o.scope != "some" && len(broken) > 0 || len(broken) == n):
		differ("does not hold: %s", broken[0])
	case o.valueHolds == "false" && (o.scope != "some" && holding > 0 || holding == n):
		differ("holds")
		o.danger = true
	}
}

// breaks returns the code of the finding that a value or a reference does not hold, "" without one. Rules of formats, such as what
// may follow a signature, and weak algorithms are another matter.
func breaks(findings []sig.Finding) string {
	for _, f := range findings {
		if f.Indication == sig.HashFailure || f.Indication == sig.SigCryptoFailure {
			return f.Code
		}
	}
	return ""
}

// weak reports whether a weak algorithm is what is wrong with a time stamp, which the tests do not ask.
func weak(findings []sig.Finding) bool {
	return slices.ContainsFunc(findings, func(f sig.Finding) bool { return strings.Contains(f.Code, "weak") })
}

// level compares levels. The tests look whether the parts of a level are there, and ours must also be valid: so a lower one of ours
// agrees if the time stamps of the level are there.
func (o *outcome) level(signatures []*sig.Signature, stamped bool, differ func(string, ...any)) {
	scope, want, ok := strings.Cut(o.levels, ":")
	if !ok || len(signatures) == 0 {
		return
	}
	_, name, _ := strings.Cut(want, "_")
	name = strings.TrimPrefix(name, "BASELINE_")
	if scope == "first" {
		signatures = signatures[:1]
	}
	for _, one := range signatures {
		has := func(kinds ...string) bool {
			return slices.ContainsFunc(one.TimeStamps, func(t sig.TimeStamp) bool { return len(kinds) == 0 || slices.Contains(kinds, t.Kind) })
		}
		agrees := true
		switch name {
		case "LTA", "A":
			agrees = one.Level == "A" || one.Level == "LTA" || stamped || has("archive")
		case "T", "C", "X", "XL", "LT", "LTV":
			agrees = has() || stamped
		case "B", "BES", "EPES":
			agrees = one.Level == "BES"
		case "NOT_ETSI":
			agrees = one.Level == "CMS" || one.Level == "XMLDSig"
		}
		if !agrees {
			differ("level %s, want %s", one.Level, want)
			return
		}
	}
}

// later reports whether a signature is failed for what was done to its document later.
func later(signatures []*sig.Signature) bool {
	return slices.ContainsFunc(signatures, func(s *sig.Signature) bool {
		return slices.ContainsFunc(s.Findings, func(f sig.Finding) bool {
			return strings.Contains(f.Code, "later") && f.Indication.Verdict() == sig.Failed
		})
	})
}

// verify verifies a sample with the certificates in it as anchors.
func verify(folder string, formats sig.Formats, s *sample, data []byte) (*sig.Report, error) {
	ctx := context.Background()
	document := bytes.NewReader(data)
	format, err := formats.Recognise(ctx, document)
	if err != nil {
		return nil, err
	}
	if format == nil || format.Describe().Bare {
		return nil, errors.New("of no format")
	}
	check := &sig.Check{Document: document, At: time.Now(), Describe: true, Roots: anchors(data)}
	for _, d := range s.detached {
		kind, value, _ := strings.Cut(d, ":")
		switch kind {
		case "hex":
			content, err := hex.DecodeString(value)
			if err != nil {
				return nil, err
			}
			check.Original = bytes.NewReader(content)
		case "digest":
			name, value, _ := strings.Cut(value, ":")
			sum, err := hex.DecodeString(value)
			h, known := suite.HashByName(map[string]string{"SHA1": "SHA-1", "SHA256": "SHA-256", "SHA384": "SHA-384", "SHA512": "SHA-512"}[name])
			if err != nil || !known {
				return nil, fmt.Errorf("the digest %s is not known", name)
			}
			check.Hash = &suite.Digest{Hash: h, Sum: sum}
		default:
			content, err := os.ReadFile(pathOf(folder, d))
			if err != nil {
				return nil, err
			}
			check.Original = bytes.NewReader(content)
		}
	}
	return format.Verify(ctx, check)
}
