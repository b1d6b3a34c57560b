// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/internal/tamgatest"
	"tamga/sig"
	"tamga/sig/cades"
)

// TestVerifyPower verifies signatures together with powers of attorney.
func TestVerifyPower(t *testing.T) {
	f := newSignedFiles(t)
	head := f.root.Identity(t, f.root.Suite, sigtest.Head)
	write := func(name string, p sigtest.Power) {
		t.Helper()
		document := p.XML()
		signature := sigtest.Make(t, cades.New(), head, &sig.Job{Document: sigtest.Document(document), Params: sig.Params{"CADESType": "BES", "IsDetached": "True"}})
		tamgatest.WriteFile(t, name, string(document))
		tamgatest.WriteFile(t, name+".sig", string(signature))
	}
	good := sigtest.NewPower()
	write("power.xml", good)
	other := good
	other.Representatives = []sigtest.Identifiers{{Surname: "Иванов", Given: "Иван", INN: sigtest.Employee.INN, SNILS: "99999999999"}}
	write("wrong.xml", other)
	joint := good
	joint.Joint, joint.Representatives = "2", []sigtest.Identifiers{sigtest.Employee, sigtest.Second}
	write("joint.xml", joint)
	ended := good
	ended.Until = "2025-03-13"
	write("ended.xml", ended)
	tamgatest.WriteFile(t, "unsigned.xml", string(good.XML()))
	tamgatest.WriteFile(t, "withdrawn", "# of March\n"+good.Number+" 2025-03-01\n")
	tamgatest.WriteFile(t, "wrong.list", "a b c\n")
	if err := os.MkdirAll("folder", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"doc", "doc.sig"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		tamgatest.WriteFile(t, "folder/"+name, string(data))
	}
	const trusted = " --ca root.pem --intermediate issuing.pem" + at
	for _, c := range []struct {
		args string
		code int
		want []string
	}{
		{"attached --power power.xml", 0, []string{
			"attached: passed; revocation not checked; withdrawal of the power not checked", "note: the signature of the power is taken from power.xml.sig",
			"  power    " + good.Number + ", valid 2025-01-01 to 2025-12-31", "           of Общество (INN 7707083893)", "           for Иванов Иван Иванович (INN 123456789012)", "           grants BBR_1",
			"power: passed; signer: passed; powers granted: passed; document: passed",
		}},
		{"attached --power power.xml,power.xml.sig --power-code BBR_1", 0, []string{"attached: passed"}},
		{"attached --power unsigned.xml,power.xml.sig", 0, []string{"attached: passed"}},
		{"attached --power unsigned.xml", 1, []string{"attached: FAILED", "wrong    Общество (INN 7707083893) has not signed the power"}},
		{"attached --power wrong.xml", 1, []string{"attached: FAILED", "its SNILS is 99999999999, the certificate has 12345678901"}},
		{"attached --power joint.xml", 1, []string{"act only together, and Сидоров Пётр Ильич (INN 210987654321) has not signed"}},
		{"attached --power ended.xml", 1, []string{"was in force until the end of 2025-03-13 in Moscow"}},
		{"attached --power power.xml --power-withdrawn withdrawn", 1, []string{"was withdrawn on 2025-03-01"}},
		{"attached --power power.xml --power-code BBR_1 --power-code BBR_7", 1, []string{"does not grant BBR_7; it grants BBR_1", "powers granted: failed; document: passed"}},
		{"attached --power doc", 2, []string{"--power: power of attorney: none of the files is one"}},
		{"attached --power missing.xml", 2, []string{"--power: stat missing.xml"}},
		{"attached --power power.xml --power-withdrawn wrong.list", 2, []string{"--power-withdrawn: list of withdrawn powers: line 1"}},
		{"attached --power-code BBR_1", 2, []string{"--power-code needs --power"}},
		{"attached --power-withdrawn withdrawn", 2, []string{"--power-withdrawn needs --power"}},
		{"folder --power power.xml", 0, []string{"folder/doc.sig: passed; revocation not checked; withdrawal of the power not checked", "1 passed"}},
		{"folder --power wrong.xml", 1, []string{"folder/doc.sig: FAILED", "its SNILS is 99999999999", "1 failed"}},
	} {
		r := tamgatest.Run(t.Context(), "", strings.Fields("verify "+c.args+trusted)...)
		text := r.Out + r.Err
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %s, want %q", c.args, text, want)
			}
		}
		if int(r.Code) != c.code {
			t.Errorf("%s exited %d, want %d: %s", c.args, r.Code, c.code, text)
		}
	}
	for file, want := range map[string][4]string{"power.xml": {"passed", "passed", "passed", "passed"}, "ended.xml": {"failed", "passed", "passed", "passed"}} {
		r := tamgatest.Run(t.Context(), "", strings.Fields("verify attached --json --power "+file+trusted)...)
		var report struct {
			Signatures []struct {
				SignatureHolds bool `json:"signature_holds"`
				Power          struct {
					Number     string
					Principals []string
					ValidUntil string `json:"valid_until"`
					Parts      struct{ Power, Signer, Rights, Document string }
				}
			}
		}
		if err := json.Unmarshal([]byte(r.Out), &report); err != nil || len(report.Signatures) != 1 {
			t.Fatalf("%s: %v: %s", file, err, r.Out)
		}
		p := report.Signatures[0].Power
		if got := [4]string{p.Parts.Power, p.Parts.Signer, p.Parts.Rights, p.Parts.Document}; got != want || p.Number != good.Number || len(p.Principals) != 1 || !strings.HasPrefix(p.ValidUntil, "2025-") || !report.Signatures[0].SignatureHolds {
			t.Errorf("%s: %s", file, r.Out)
		}
	}
}
