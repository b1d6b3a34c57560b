// SPDX-License-Identifier: Apache-2.0

package gosttest

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestAssembly checks that Assembly finds code whose time depends on secrets and
// accepts code whose time does not.
func TestAssembly(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"a loop over a count":       {"MOVQ n+8(FP), CX\nloop:\nVPADDQ (SI), Z0, Z0\nADDQ $64, SI\nDECQ CX\nJNZ loop", ""},
		"a jump on a secret":        {"MOVQ (SI), AX\nTESTQ AX, AX\nJZ done", "condition may depend"},
		"a jump on argument k":      {"MOVQ k+16(FP), AX\nCMPQ AX, $3\nJE done", "condition may depend"},
		"a jump on a secret carry":  {"MOVQ (SI), AX\nADDQ AX, R8\nJCS done", "condition may depend"},
		"a jump on a carry of ADCQ": {"MOVQ n+8(FP), CX\nMOVQ (SI), AX\nADCQ AX, AX\nJCS done", "condition may depend"},
		"an index":                  {"MOVQ (SI), AX\nMOVQ (SI)(AX*8), CX", "address in AX"},
		"an index by value":         {"MOVQ k+16(FP), AX\nVMOVDQU64 (AX), Z0", "address in AX"},
		"an index by a product":     {"MOVL $3, DX\nMULXQ (SI), AX, CX\nMOVQ (CX), R8", "address in CX"},
		"an index by a vector":      {"VMOVQ X0, R8\nMOVQ (R8), R9", "address in R8"},
		"an address moved on":       {"ADDQ (SI), SI\nMOVQ (SI), R9", "address in SI"},
		"a secret left by a loop":   {"MOVQ n+8(FP), CX\nMOVQ n+8(FP), R9\nloop:\nMOVQ (R9), R8\nMOVQ (SI), R9\nDECQ CX\nJNZ loop", "address in R9"},
		"a division":                {"DIVQ CX", "variable time"},
		"a macro":                   {"LOOK(AX)", "address in AX"},
	} {
		_, problems := readAssembly(fstest.MapFS{"x_amd64.s": {Data: []byte(
			"#define LOOK(r) MOVQ (SI), r \\\n\tMOVQ (r), r\n// func f(p *byte, n int, k uint64)\nTEXT ·f(SB), NOSPLIT, $0-24\nMOVQ p+0(FP), SI\n" + c.body + "\ndone:\nRET\n")}}, "x_amd64.s")
		got := strings.Join(problems, "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: problems %q, want %q", name, got, c.want)
		}
	}
}
