// SPDX-License-Identifier: Apache-2.0

package cades_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/cades"
)

var reference = regexp.MustCompile(`VOReference="([^"]*)"`)

// TestETSIReport writes the report of ETSI for signatures of every level and outcome. xmllint validates each against the part of the
// schema that is written, and refuses changed ones. TAMGA_ETSI_SCHEMA may name a directory with the schema of the standard in
// TS119102-2-v141.xsd, which is then used as well: it is not ours to publish.
func TestETSIReport(t *testing.T) {
	w := newWorld(t, suite.GOST2012x256)
	signed := func(level string) []byte {
		return w.make(t, w.signer, level, &sig.Job{Document: sigtest.Document(text)})
	}
	archive := signed("A")
	var reports [][]byte
	write := func(message []byte, change func(*sig.Check)) string {
		t.Helper()
		c := &sig.Check{Document: sigtest.Document(message), At: w.services.Now, Roots: []*x509gost.Certificate{w.root.Certificate}}
		if change != nil {
			change(c)
		}
		r, err := cades.New().Verify(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := r.WriteETSI(&out, c); err != nil {
			t.Fatal(err)
		}
		reports = append(reports, out.Bytes())
		return out.String()
	}
	attrs := mustParse(t, archive).Signers[0].UnsignedAttrs
	last, err := tsp.ParseToken(tsp.Unwrap(attrs[len(attrs)-1].Values[0]))
	if err != nil {
		t.Fatal(err)
	}
	hostile := w.sub.Issue(t, suite.GOST2012x256, "A \x01<b>&\"]]>\u202e", nil)
	for name, test := range map[string]struct {
		message []byte
		change  func(*sig.Check)
		want    []string
	}{
		"plain":            {signed("BES"), nil, []string{"mainindication:total-passed", "<SigningTime Signed=\"true\">", "<DAIdentifier>1<"}},
		"archive":          {archive, nil, []string{"<ArchiveTimeStamp>", "<SigAndRefsTimeStamp>", "<POEObject VOReference=\"T1\">", "poetype:validation"}},
		"countersigned":    {w.make(t, w.signer, "T", add("Countersign", signed("XLT1"), nil, nil)), nil, []string{"<DAIdentifier>1.1<"}},
		"no anchor":        {signed("T"), func(c *sig.Check) { c.Roots = nil }, []string{"mainindication:indeterminate", "subindication:NO_CERTIFICATE_CHAIN_FOUND"}},
		"expired":          {signed("BES"), func(c *sig.Check) { c.At = c.At.AddDate(60, 0, 0) }, []string{"subindication:OUT_OF_BOUNDS_NO_POE", "urn:tamga:finding:certificate-expired"}},
		"changed":          {change(t, archive, text), nil, []string{"mainindication:total-failed", "subindication:HASH_FAILURE"}},
		"a broken stamp":   {change(t, archive, last.Message.Signers[0].Signature), nil, []string{"<ValidationReport>"}},
		"hostile names":    {w.make(t, hostile, "BES", &sig.Job{Document: sigtest.Document(text)}), nil, []string{"&lt;b&gt;&amp;"}},
		"without a signer": {signed("BES"), func(c *sig.Check) { c.Hash = &suite.Digest{Hash: suite.Streebog256, Sum: make([]byte, 32)} }, []string{"HASH_FAILURE", "<DocHashOnly>true<"}},
	} {
		got := write(test.message, test.change)
		for _, want := range test.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: without %s:\n%s", name, want, got)
			}
		}
	}
	var empty bytes.Buffer
	if err := new(sig.Report).WriteETSI(&empty, &sig.Check{}); err != nil {
		t.Fatal(err)
	}
	reports = append(reports, empty.Bytes())
	schema, err := os.ReadFile(filepath.Join("..", "testdata", "etsi-report.xsd"))
	if err != nil {
		t.Fatal(err)
	}
	lint := judge.XMLLint(t)
	for i, errs := range lint.Schema(schema, reports...) {
		if errs != "" {
			t.Errorf("%s\n%s", errs, reports[i])
		}
		for _, to := range reference.FindAllSubmatch(reports[i], -1) { // xmllint does not look for the target of an IDREF
			if bytes.Count(reports[i], fmt.Appendf(nil, " id=%q", to[1])) != 1 {
				t.Errorf("%s refers to nothing, or to several:\n%s", to[1], reports[i])
			}
		}
	}
	for _, change := range [][2]string{{"<POETime>2", "<POETime>x"}, {"total-passed", "passed"}, {"<HashOnly>false</HashOnly>", ""}} {
		one := strings.Replace(write(archive, nil), change[0], change[1], 1)
		if errs := lint.Schema(schema, []byte(one)); errs[0] == "" {
			t.Errorf("valid with %s in place of %s", change[1], change[0])
		}
	}
	if dir := os.Getenv("TAMGA_ETSI_SCHEMA"); dir != "" {
		for i, errs := range lint.SchemaFile(filepath.Join(dir, "TS119102-2-v141.xsd"), reports...) {
			if errs != "" {
				t.Errorf("by the schema of the standard: %s\n%s", errs, reports[i])
			}
		}
	}
}
