// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	judges "tamga/internal/judge"
	"tamga/internal/tamgatest"
)

// closed returns a schema whose objects have no other properties than those that it names.
func closed(t *testing.T, schema []byte) []byte {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal(schema, &all); err != nil {
		t.Fatal(err)
	}
	for _, of := range all["$defs"].(map[string]any) {
		if of := of.(map[string]any); of["properties"] != nil {
			of["additionalProperties"] = false
		}
	}
	out, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestReportSchema checks that each report in JSON is as the documented schema says, and names nothing else. A changed report
// is not.
func TestReportSchema(t *testing.T) {
	schema, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "verification-report.schema.json")) // before the directory changes
	if err != nil {
		t.Fatal(err)
	}
	schema = closed(t, schema)
	newSignedFiles(t)
	var documents [][]byte
	for _, args := range []string{
		"attached --ca root.pem" + at, "attached" + at, "doc.sig --original other --ca root.pem" + at, "countersigned --ca root.pem" + at,
		"broken --ca root.pem" + at, "doc.sig --crl revoked.crl --ca root.pem" + at, "doc.sig --revocation require --ca root.pem" + at,
		"doc.sig --ca root.pem --at 2030-01-01", "value --original doc --cert signer.pem --ca bundle.pem" + at, "cut", "empty",
	} {
		r := tamgatest.Run(t.Context(), "", append([]string{"verify", "--json"}, strings.Fields(args)...)...)
		for line := range strings.Lines(r.Out) {
			documents = append(documents, []byte(line))
		}
	}
	seen := map[string]bool{}
	for i, errs := range judges.JSONSchema(t, schema, documents...) {
		if len(errs) > 0 {
			t.Errorf("%s: %v", documents[i], errs)
		}
		for _, name := range []string{"good_until", "remedy", "sub_indication", "countersignatures", `"passed"`, `"failed"`, `"indeterminate"`, `"unreadable"`} {
			if bytes.Contains(documents[i], []byte(name)) {
				seen[name] = true
			}
		}
	}
	if len(seen) != 8 {
		t.Errorf("the reports have only %v", seen)
	}
	for what, change := range map[string][2]string{
		"an unknown status": {"TOTAL-PASSED", "PASSED"}, "a wrong time": {`"judged_at":"2`, `"judged_at":"x`}, "another name": {"signature_holds", "holds_signature"},
	} {
		changed := bytes.Replace(documents[0], []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(changed, documents[0]) {
			t.Errorf("%s: %s has no %s", what, documents[0], change[0])
		}
		if errs := judges.JSONSchema(t, schema, changed); len(errs[0]) == 0 {
			t.Errorf("%s is valid", what)
		}
	}
}
