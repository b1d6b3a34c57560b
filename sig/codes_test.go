// SPDX-License-Identifier: Apache-2.0

package sig

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tamga/pki/x509gost"
)

// declaredCodes returns the values of the constants whose names begin with code, by the packages that verify.
func declaredCodes(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	read := func(path, prefix string) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, is := n.(*ast.ValueSpec)
			if !is {
				return true
			}
			for i, name := range spec.Names {
				if i >= len(spec.Values) || !strings.HasPrefix(strings.ToLower(name.Name), "code") {
					continue
				}
				before := prefix
				value := spec.Values[i]
				if sum, is := value.(*ast.BinaryExpr); is {
					before, value = certificateCode, sum.Y
				}
				if text, is := value.(*ast.BasicLit); is && text.Kind == token.STRING {
					code, _ := strconv.Unquote(text.Value)
					found[before+code] = path
				}
			}
			return true
		})
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "trustlist" { // its codes are of a Quality
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			read(path, "")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	read(filepath.Join("..", "pki", "cms", "check.go"), "")
	read(filepath.Join("..", "pki", "chain", "chain.go"), certificateCode)
	found[certificateCode+"usage"] = "trust.go"
	return found
}

// TestCodes checks that each code of a finding has a row, and that each row has a code.
func TestCodes(t *testing.T) {
	declared := declaredCodes(t)
	if len(declared) < 100 {
		t.Fatalf("only %d codes were found", len(declared))
	}
	for code, path := range declared {
		if _, known := codes[code]; !known {
			t.Errorf("%s: the code %q has no row in the table of codes", path, code)
		}
	}
	for code, i := range codes {
		if declared[code] == "" {
			t.Errorf("the table of codes has a row %q, which no package uses", code)
		}
		if i != "" && (Conclusion{Sub: i}).worse(Conclusion{}).Sub != i {
			t.Errorf("%s is not in the order of the building blocks", i)
		}
	}
}

// TestConclusion checks that the first building block gives the reason, and that the verdict is that of Verdict.
func TestConclusion(t *testing.T) {
	c := &x509gost.Certificate{}
	with := func(list ...Indication) Signature {
		s := Signature{Signer: c, Chain: []*x509gost.Certificate{c}}
		for _, i := range list {
			s.Findings = append(s.Findings, Finding{Code: "x", Indication: i})
		}
		return s
	}
	counter := with()
	counter.Countersigners = []Signature{with(Revoked)}
	stamp := with(NoPOE)
	stamp.Level = LevelDocumentStamp
	for name, test := range map[string]struct {
		report Report
		main   string
		sub    Indication
	}{
		"nothing":             {Report{}, "TOTAL-FAILED", FormatFailure},
		"a good one":          {Report{Signatures: []Signature{with()}}, "TOTAL-PASSED", ""},
		"no signer":           {Report{Signatures: []Signature{{}}}, "INDETERMINATE", NoSigningCertificateFound},
		"no anchor":           {Report{Signatures: []Signature{{Signer: c}}}, "INDETERMINATE", NoCertificateChainFound},
		"worst first":         {Report{Signatures: []Signature{with(TryLater, HashFailure)}}, "TOTAL-FAILED", HashFailure},
		"order of blocks":     {Report{Signatures: []Signature{with(CryptoConstraintsFailureNoPOE, OutOfBoundsNoPOE)}}, "INDETERMINATE", OutOfBoundsNoPOE},
		"of several":          {Report{Signatures: []Signature{with(), with(TryLater), with(NoCertificateChainFound)}}, "INDETERMINATE", NoCertificateChainFound},
		"countersignature":    {Report{Signatures: []Signature{counter}}, "TOTAL-FAILED", Revoked},
		"beside a bad stamp":  {Report{Signatures: []Signature{with(), stamp}}, "TOTAL-PASSED", ""},
		"the file is damaged": {Report{Findings: []Finding{{Indication: FormatFailure}}, Signatures: []Signature{with(HashFailure)}}, "TOTAL-FAILED", FormatFailure},
	} {
		got := test.report.Conclusion()
		if got.Main() != test.main || got.Sub != test.sub {
			t.Errorf("%s: %s %s, want %s %s", name, got.Main(), got.Sub, test.main, test.sub)
		}
		if got.Verdict != test.report.Verdict() {
			t.Errorf("%s: the conclusion is %v, the verdict %v", name, got.Verdict, test.report.Verdict())
		}
	}
}
