// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
)

// TestSignExamples runs the examples of sign and verify, as their help has them, against a server. The examples
// of other commands are parsed by a test of internal/cli/program.
func TestSignExamples(t *testing.T) {
	t.Parallel()
	p := tamgatest.Start(t)
	dir := t.TempDir()
	letter := string(tamgatest.WriteFile(t, filepath.Join(dir, "letter.txt"), "Hello\n"))
	tamgatest.WriteFile(t, filepath.Join(dir, "contract.pdf"), string(tamgatest.ReadFile(t, "../../sig/testdata/one-page.pdf")))
	tamgatest.WriteFile(t, filepath.Join(dir, "ca.pem"), string(tamgatest.ReadFile(t, filepath.Join(p.Dir, "ca.pem"))))
	// run runs an example with the files of dir.
	run := func(stdin, example string, more ...string) tamgatest.Result {
		t.Helper()
		args := strings.Fields(example)[1:]
		for i, a := range args {
			if strings.Contains(a, ".") {
				args[i] = filepath.Join(dir, a)
			}
		}
		r := tamgatest.Run(t.Context(), stdin, append(args, more...)...)
		if r.Failure != nil {
			t.Errorf("%s: %v\n%s%s", example, r.Failure, r.Out, r.Err)
		}
		return r
	}
	examples := func(command string) (list []string) {
		t.Helper()
		for _, line := range strings.Split(tamgatest.Run(t.Context(), "", "help", command).Out, "\n") {
			if at := strings.Index(line, "tamga "+command+" "); strings.HasPrefix(line, "    ") && at > 0 {
				list = append(list, line[at:])
			}
		}
		if len(list) < 3 {
			t.Fatalf("the help of %s has the examples %q", command, list)
		}
		return list
	}
	for _, e := range examples("sign") {
		run("Hello\n", e, "--data", p.Dir)
	}
	run("", "tamga verify letter.p7m --ca ca.pem")
	// Example files of verify: a signed PDF, and the list of revoked certificates.
	run("", "tamga verify contract.signed.pdf --ca ca.pem")
	status, crl := get(t, p.URL+"/pki/gost.crl")
	if status != 200 {
		t.Fatalf("the list of revoked certificates: %d", status)
	}
	tamgatest.WriteFile(t, filepath.Join(dir, "ca.crl"), string(crl))
	signed := tamgatest.ReadFile(t, filepath.Join(dir, "contract.signed.pdf"))
	tamgatest.WriteFile(t, filepath.Join(dir, "contract.pdf"), string(signed))
	message := string(tamgatest.ReadFile(t, letter+".sig"))
	for _, e := range examples("verify") {
		if strings.Contains(e, "--power") {
			continue // it needs certificates with the identifiers of a power, as the tests of cli/verify have
		}
		more := []string{}
		if strings.Contains(e, " - ") {
			more = []string{"--ca", filepath.Join(dir, "ca.pem")} // the example trusts the server whose tamga-data is in the directory
		}
		if r := run(message, e, more...); !strings.Contains(r.Out, "passed") {
			t.Errorf("%s prints\n%s", e, r.Out)
		}
	}
}
