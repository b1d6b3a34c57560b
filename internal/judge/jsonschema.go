// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
)

//go:embed jsonschema.py
var schemaProgram string

// JSONSchema validates JSON documents against a JSON Schema by python3-jsonschema. It returns the errors of each document,
// none for a valid one. A schema that is itself invalid fails the test.
func JSONSchema(t testing.TB, schema []byte, documents ...[]byte) [][]string {
	t.Helper()
	if _, err := os.Stat("/usr/lib/python3/dist-packages/jsonschema"); err != nil {
		missing(t, "the validator of JSON Schema is not installed (Debian: python3-jsonschema)")
	}
	order := struct {
		Schema    json.RawMessage   `json:"schema"`
		Documents []json.RawMessage `json:"documents"`
	}{Schema: schema}
	for _, d := range documents {
		order.Documents = append(order.Documents, d)
	}
	in, err := json.Marshal(order)
	if err != nil {
		t.Fatalf("judge: JSON Schema: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", "-W", "ignore", "-c", schemaProgram)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stdin = bytes.NewReader(in)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("judge: JSON Schema: %v: %s", err, errs.String())
	}
	var list [][]string
	if err := json.Unmarshal(out.Bytes(), &list); err != nil {
		t.Fatalf("judge: JSON Schema: %v", err)
	}
	return list
}
