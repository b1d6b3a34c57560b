// SPDX-License-Identifier: Apache-2.0

package power_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/cades"
	"tamga/sig/power"
	"tamga/sig/xmldsig"
)

// formats are those that powers are signed in.
var formats = sig.Formats{cades.New(), xmldsig.New()}

// world has the certificates of the people in the tests.
type world struct {
	root, head, employee, second, notary, outsider *sigtest.Party
	check                                          sig.Check
}

func newWorld(t testing.TB) *world {
	t.Helper()
	s := suite.GOST2012x256
	w := &world{root: sigtest.Root(t, s)}
	w.head, w.employee, w.second = w.root.Identity(t, s, sigtest.Head), w.root.Identity(t, s, sigtest.Employee), w.root.Identity(t, s, sigtest.Second)
	w.notary = w.root.Identity(t, s, notary)
	w.outsider = w.root.Identity(t, s, sigtest.Identifiers{Surname: "Орлов", Given: "Олег", INN: "111111111111", SNILS: "11111111111"})
	w.check = sig.Check{Roots: []*x509gost.Certificate{w.root.Certificate}, At: sigtest.Time}
	return w
}

var notary = sigtest.Identifiers{Surname: "Семёнова", Given: "Нина Ивановна", INN: "222222222222"}

// signed returns detached signatures of a document, each in a file.
func signed(t testing.TB, document []byte, by ...*sigtest.Party) (list [][]byte) {
	t.Helper()
	for _, p := range by {
		list = append(list, sigtest.Make(t, cades.New(), p, &sig.Job{Document: sigtest.Document(document), Params: sig.Params{"CADESType": "BES", "IsDetached": "True"}}))
	}
	return list
}

// with returns a power and its signatures.
func with(t testing.TB, p sigtest.Power, by ...*sigtest.Party) [][]byte {
	t.Helper()
	document := p.XML()
	return append([][]byte{document}, signed(t, document, by...)...)
}

func (w *world) load(t testing.TB, documents ...[]byte) (*power.Set, error) {
	t.Helper()
	var list []sig.File
	for i, d := range documents {
		list = append(list, sig.File{Name: fmt.Sprint("file", i), Document: sigtest.Document(d)})
	}
	return power.Load(t.Context(), formats, w.check, list)
}

// packed returns an archive with files.
func packed(t testing.TB, files ...[]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for i, f := range files {
		w, err := z.Create(fmt.Sprint(i))
		if err == nil {
			_, err = w.Write(f)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// changed returns a power with changes.
func changed(change func(p *sigtest.Power)) sigtest.Power {
	p := sigtest.NewPower()
	change(&p)
	return p
}

// TestJudge judges one signature by powers, one rule each.
func TestJudge(t *testing.T) {
	w := newWorld(t)
	good := with(t, sigtest.NewPower(), w.head)
	withNumber := func(number string, change func(p *sigtest.Power)) sigtest.Power {
		return changed(func(p *sigtest.Power) {
			if p.Number = number; change != nil {
				change(p)
			}
		})
	}
	// A first power for the employee, one that the employee passed on to the second, and one from there.
	chain := func(delegation, next string) [][]byte {
		first := with(t, withNumber("p1", func(p *sigtest.Power) { p.Delegation, p.Codes = delegation, []string{"BBR_1", "BBR_2"} }), w.head)
		passed := with(t, withNumber("p2", func(p *sigtest.Power) {
			p.Delegation, p.First, p.Principals, p.Representatives = next, "P1", []sigtest.Identifiers{sigtest.Employee}, []sigtest.Identifiers{sigtest.Second}
		}), w.employee)
		return slices.Concat(passed, first)
	}
	outsider := sigtest.Identifiers{Surname: "Орлов", Given: "Олег", INN: "111111111111", SNILS: "11111111111"}
	again := with(t, withNumber("p3", func(p *sigtest.Power) {
		p.First, p.Parent, p.Principals, p.Representatives = "P1", "P2", []sigtest.Identifiers{sigtest.Second}, []sigtest.Identifiers{outsider}
	}), w.second)
	both := changed(func(p *sigtest.Power) {
		p.Joint, p.Representatives = "2", []sigtest.Identifiers{sigtest.Employee, sigtest.Second}
	})
	partner := sigtest.Identifiers{Surname: "Кузнецов", Given: "Пётр", INN: "333333333333", Organization: "Партнёр", INNLE: "7700000016", OGRN: "1027700000016"}
	partnerHead := w.root.Identity(t, suite.GOST2012x256, partner)
	second := sigtest.Head
	second.Surname, second.INN, second.SNILS = "Фёдорова", "444444444444", "44444444444"
	secondHead := w.root.Identity(t, suite.GOST2012x256, second)
	elsewhere := sigtest.Head
	elsewhere.INNLE, elsewhere.OGRN = "7700000023", "1027700000023"
	foreign := sigtest.Root(t, suite.GOST2012x512).Identity(t, suite.GOST2012x256, sigtest.Head)
	old := sigtest.Employee
	old.INN = ""
	nameless := w.root.Signer(t, suite.GOST2012x256, "Nameless")
	damaged := slices.Clone(good)
	damaged[1] = signed(t, []byte("another document"), w.head)[0]
	inside := sigtest.NewPower()
	inside.Inside = w.head.ListTemplate()
	enveloped := sigtest.Make(t, xmldsig.New(), w.head, &sig.Job{Document: sigtest.Document(inside.XML()), Params: sig.Params{"XMLDsigType": "XMLTemplate"}})
	attached := sigtest.Make(t, cades.New(), w.head, &sig.Job{Document: sigtest.Document(good[0]), Params: sig.Params{"CADESType": "BES", "IsDetached": "False"}})

	// The end of the last day in Moscow: 2025-12-31T21:00:00Z.
	end := time.Date(2025, 12, 31, 21, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name    string
		files   [][]byte
		signer  *sigtest.Party
		made    time.Time // by a time stamp; zero: the signer claims sigtest.Time
		checked time.Time // zero: sigtest.Time
		rules   power.Rules
		codes   string // of what decides
		verdict sig.Verdict
		parts   [3]sig.Verdict // power, signer, rights
		text    string
	}{
		{"all is well", good, w.employee, time.Time{}, time.Time{}, power.Rules{Codes: []string{"bbr_1"}}, "", sig.Passed, [3]sig.Verdict{}, ""},
		{"an XML signature inside", [][]byte{enveloped}, w.employee, time.Time{}, time.Time{}, power.Rules{}, "", sig.Passed, [3]sig.Verdict{}, ""},
		{"a message with the power inside", [][]byte{good[0], attached}, w.employee, time.Time{}, time.Time{}, power.Rules{}, "", sig.Passed, [3]sig.Verdict{}, ""},
		{"in an archive", [][]byte{packed(t, good...)}, w.employee, time.Time{}, time.Time{}, power.Rules{}, "", sig.Passed, [3]sig.Verdict{}, ""},
		{"given twice", slices.Concat(good, good), w.employee, time.Time{}, time.Time{}, power.Rules{}, "", sig.Passed, [3]sig.Verdict{}, ""},
		{"a wrong SNILS", with(t, changed(func(p *sigtest.Power) { p.Representatives[0].SNILS = "99999999999" }), w.head), w.employee, time.Time{}, time.Time{}, power.Rules{},
			"power-differs", sig.Failed, [3]sig.Verdict{1: sig.Failed}, "its SNILS is 99999999999, the certificate has 12345678901"},
		{"a wrong SNILS alone", with(t, changed(func(p *sigtest.Power) {
			p.Representatives = []sigtest.Identifiers{{Surname: "Иванов", Given: "Иван", SNILS: "99999999999"}}
		}), w.head), w.employee, time.Time{}, time.Time{}, power.Rules{}, "power-other", sig.Failed, [3]sig.Verdict{}, "Иванов Иван (SNILS 99999999999)"},
		{"of another person", good, w.outsider, time.Time{}, time.Time{}, power.Rules{}, "power-other", sig.Failed, [3]sig.Verdict{}, "Иванов Иван Иванович"},
		{"the certificate has no numbers", good, nameless, time.Time{}, time.Time{}, power.Rules{}, "power-unknown", sig.Indeterminate, [3]sig.Verdict{}, "no INN or SNILS"},
		{"the head signs", good, w.head, time.Time{}, time.Time{}, power.Rules{}, "", sig.Passed, [3]sig.Verdict{}, ""},
		{"for an organization, by its head", with(t, changed(func(p *sigtest.Power) { p.Representatives = []sigtest.Identifiers{partner} }), w.head), partnerHead, time.Time{}, time.Time{}, power.Rules{}, "", sig.Passed, [3]sig.Verdict{}, ""},

		{"in its last second", good, w.employee, end.Add(-time.Second), end.AddDate(0, 1, 0), power.Rules{}, "", sig.Passed, [3]sig.Verdict{}, ""},
		{"after the end of its last day", good, w.employee, end, end.AddDate(0, 1, 0), power.Rules{}, "power-expired", sig.Failed, [3]sig.Verdict{sig.Failed}, "until the end of 2025-12-31 in Moscow, and the document was signed on 2026-01-01 00:00:00 +03:00"},
		{"in force by the claim alone", good, w.employee, time.Time{}, end, power.Rules{}, "power-no-proof", sig.Indeterminate, [3]sig.Verdict{sig.Indeterminate}, "a time stamp would prove it"},
		{"before its first day", with(t, changed(func(p *sigtest.Power) { p.From = "2025-03-15" }), w.head), w.employee, time.Time{}, time.Time{}, power.Rules{}, "power-not-yet", sig.Failed, [3]sig.Verdict{sig.Failed}, "2025-03-15"},
		{"claims a time in the future", with(t, changed(func(p *sigtest.Power) { p.From = "2025-03-10" }), w.head), w.employee, time.Time{}, sigtest.Time.AddDate(0, 0, -10), power.Rules{}, "power-not-yet", sig.Failed, [3]sig.Verdict{sig.Failed}, "after the time of the check"},

		{"not signed", good[:1], w.employee, time.Time{}, time.Time{}, power.Rules{}, "power-unsigned", sig.Failed, [3]sig.Verdict{sig.Failed}, "it has no signature"},
		{"signed by another", with(t, sigtest.NewPower(), w.outsider), w.employee, time.Time{}, time.Time{}, power.Rules{}, "power-unsigned", sig.Failed, [3]sig.Verdict{sig.Failed}, "it is signed by"},
		{"signed by the representative", with(t, sigtest.NewPower(), w.employee), w.employee, time.Time{}, time.Time{}, power.Rules{}, "power-unsigned", sig.Failed, [3]sig.Verdict{sig.Failed}, ""},
		{"the signature of another document", damaged, w.employee, time.Time{}, time.Time{}, power.Rules{}, "power-unsigned", sig.Failed, [3]sig.Verdict{sig.Failed}, ""},
		{"signed by an untrusted head", with(t, sigtest.NewPower(), foreign), w.employee, time.Time{}, time.Time{}, power.Rules{}, "power-signature", sig.Indeterminate, [3]sig.Verdict{sig.Indeterminate}, "did not pass"},
		{"signed by another head", with(t, sigtest.NewPower(), secondHead), w.employee, time.Time{}, time.Time{}, power.Rules{}, "power-unsigned", sig.Failed, [3]sig.Verdict{sig.Failed}, ""},
		{"signed for another organization", with(t, sigtest.NewPower(), w.root.Identity(t, suite.GOST2012x256, elsewhere)), w.employee, time.Time{}, time.Time{}, power.Rules{}, "power-unsigned", sig.Failed, [3]sig.Verdict{sig.Failed}, ""},
		{"by a notary", with(t, changed(func(p *sigtest.Power) { p.Notary = &notary }), w.notary), w.employee, time.Time{}, time.Time{}, power.Rules{}, "power-notary", sig.Indeterminate, [3]sig.Verdict{sig.Indeterminate}, "signed by Семёнова Нина Ивановна instead of its principals; a person must check"},
		{"by its principal, beside a notary", with(t, changed(func(p *sigtest.Power) { p.Notary = &notary }), w.head), w.employee, time.Time{}, time.Time{}, power.Rules{}, "", sig.Passed, [3]sig.Verdict{}, ""},
		{"by a person of another name", with(t, changed(func(p *sigtest.Power) { p.Notary = &notary }), w.outsider), w.employee, time.Time{}, time.Time{}, power.Rules{}, "power-unsigned", sig.Failed, [3]sig.Verdict{sig.Failed}, ""},
		{"two principals, one signature", with(t, changed(func(p *sigtest.Power) { p.Principals = append(p.Principals, partner) }), w.head), w.employee, time.Time{}, time.Time{}, power.Rules{}, "power-unsigned", sig.Failed, [3]sig.Verdict{sig.Failed}, "Партнёр (INN 7700000016)"},
		{"two principals, both signatures", with(t, changed(func(p *sigtest.Power) { p.Principals = append(p.Principals, partner) }), partnerHead, w.head), w.employee, time.Time{}, time.Time{}, power.Rules{}, "", sig.Passed, [3]sig.Verdict{}, ""},

		{"withdrawn", good, w.employee, time.Time{}, time.Time{}, power.Rules{Statuses: []power.Statuses{power.Withdrawn{sigtest.NewPower().Number: {}}}}, "power-withdrawn", sig.Failed, [3]sig.Verdict{sig.Failed}, "was withdrawn, by the list of withdrawn powers"},
		{"withdrawn before", good, w.employee, sigtest.Time, end.Add(-time.Hour), power.Rules{Statuses: []power.Statuses{power.Withdrawn{sigtest.NewPower().Number: sigtest.Time}}}, "power-withdrawn", sig.Failed, [3]sig.Verdict{sig.Failed}, "was withdrawn on 2025-03-14"},
		{"withdrawn after it was signed", good, w.employee, sigtest.Time, end.Add(-time.Hour), power.Rules{Statuses: []power.Statuses{power.Withdrawn{sigtest.NewPower().Number: sigtest.Time.Add(1)}}}, "", sig.Passed, [3]sig.Verdict{}, ""},
		{"withdrawn after the claimed time", good, w.employee, time.Time{}, end.Add(-time.Hour), power.Rules{Statuses: []power.Statuses{power.Withdrawn{sigtest.NewPower().Number: sigtest.Time.Add(1)}}}, "power-no-proof", sig.Indeterminate, [3]sig.Verdict{sig.Indeterminate}, "was withdrawn"},
		{"in a register", good, w.employee, time.Time{}, time.Time{}, power.Rules{Statuses: []power.Statuses{register{power.Status{State: power.StateInForce}, nil}}}, "", sig.Passed, [3]sig.Verdict{}, ""},
		{"in force in a register, withdrawn by the list", good, w.employee, time.Time{}, time.Time{}, power.Rules{Statuses: []power.Statuses{power.Withdrawn{sigtest.NewPower().Number: {}}, register{power.Status{State: power.StateInForce}, nil}}}, "power-withdrawn", sig.Failed, [3]sig.Verdict{sig.Failed}, ""},
		{"withdrawn after it was signed by the list, before by a register", good, w.employee, sigtest.Time, end.Add(-time.Hour), power.Rules{Statuses: []power.Statuses{power.Withdrawn{sigtest.NewPower().Number: sigtest.Time.Add(1)}, register{power.Status{State: power.StateWithdrawn, At: sigtest.Time, Source: "a register"}, nil}}}, "power-withdrawn", sig.Failed, [3]sig.Verdict{sig.Failed}, "by a register"},
		{"withdrawn after it was signed by the list, at all times by a register", good, w.employee, sigtest.Time, end.Add(-time.Hour), power.Rules{Statuses: []power.Statuses{power.Withdrawn{sigtest.NewPower().Number: sigtest.Time.Add(1)}, register{power.Status{State: power.StateWithdrawn, Source: "a register"}, nil}}}, "power-withdrawn", sig.Failed, [3]sig.Verdict{sig.Failed}, "by a register"},
		{"withdrawn by the list, later by a register", good, w.employee, sigtest.Time, end.Add(-time.Hour), power.Rules{Statuses: []power.Statuses{power.Withdrawn{sigtest.NewPower().Number: {}}, register{power.Status{State: power.StateWithdrawn, At: sigtest.Time.Add(1)}, nil}}}, "power-withdrawn", sig.Failed, [3]sig.Verdict{sig.Failed}, "by the list"},
		{"the register does not answer", good, w.employee, time.Time{}, time.Time{}, power.Rules{Statuses: []power.Statuses{register{power.Status{}, errors.New("no route")}}}, "power-status-later", sig.Indeterminate, [3]sig.Verdict{sig.Indeterminate}, "no route"},

		{"another power is asked for", good, w.employee, time.Time{}, time.Time{}, power.Rules{Codes: []string{"BBR_1", "BBR_9"}}, "power-rights", sig.Failed, [3]sig.Verdict{2: sig.Failed}, "does not grant BBR_9; it grants BBR_1"},
		{"granted in words", with(t, changed(func(p *sigtest.Power) { p.Words, p.Codes = "Подписывать всё", nil }), w.head), w.employee, time.Time{}, time.Time{}, power.Rules{Codes: []string{"BBR_1"}}, "power-words", sig.Indeterminate, [3]sig.Verdict{2: sig.Indeterminate}, "a person must read"},
		{"with restrictions", with(t, changed(func(p *sigtest.Power) { p.Limits = 2 }), w.head), w.employee, time.Time{}, time.Time{}, power.Rules{Codes: []string{"BBR_1"}}, "", sig.Passed, [3]sig.Verdict{}, ""},

		{"joint powers, one is there", with(t, both, w.head), w.employee, time.Time{}, time.Time{}, power.Rules{}, "power-joint", sig.Failed, [3]sig.Verdict{1: sig.Failed}, "Сидоров Пётр Ильич (INN 210987654321) has not signed"},
		{"two with powers of their own", with(t, changed(func(p *sigtest.Power) {
			p.Representatives = []sigtest.Identifiers{sigtest.Employee, sigtest.Second}
		}), w.head), w.second, time.Time{}, time.Time{}, power.Rules{}, "", sig.Passed, [3]sig.Verdict{}, ""},

		{"passed on once", chain("2", "1"), w.second, time.Time{}, time.Time{}, power.Rules{Codes: []string{"BBR_1"}}, "", sig.Passed, [3]sig.Verdict{}, ""},
		{"passed on where it may not be", chain("1", "1"), w.second, time.Time{}, time.Time{}, power.Rules{}, "power-delegation", sig.Failed, [3]sig.Verdict{sig.Failed}, "the power p1 may not be passed on"},
		{"passed on, the first one missing", chain("2", "1")[:2], w.second, time.Time{}, time.Time{}, power.Rules{}, "power-parent", sig.Indeterminate, [3]sig.Verdict{sig.Indeterminate}, "passed on from p1, which was not given"},
		{"passed on twice where once is allowed", slices.Concat(again, chain("2", "3")), w.outsider, time.Time{}, time.Time{}, power.Rules{}, "power-delegation", sig.Failed, [3]sig.Verdict{sig.Failed}, "the power p1 may be passed on once, and it was passed on 2 times"},
		{"passed on twice, the second time forbidden", slices.Concat(again, chain("3", "1")), w.outsider, time.Time{}, time.Time{}, power.Rules{}, "power-delegation", sig.Failed, [3]sig.Verdict{sig.Failed}, "the power p2 may not be passed on"},
		{"passed on twice", slices.Concat(again, chain("3", "2")), w.outsider, time.Time{}, time.Time{}, power.Rules{}, "", sig.Passed, [3]sig.Verdict{}, ""},
		{"passed on by another", slices.Concat(with(t, withNumber("p2", func(p *sigtest.Power) {
			p.First, p.Principals, p.Representatives = "P1", []sigtest.Identifiers{outsider}, []sigtest.Identifiers{sigtest.Second}
		}), w.outsider), chain("2", "1")[2:]), w.second, time.Time{}, time.Time{}, power.Rules{}, "power-principal", sig.Failed, [3]sig.Verdict{sig.Failed}, "Орлов Олег (INN 111111111111) passed on the power p1"},
		{"more was passed on", slices.Concat(with(t, withNumber("p2", func(p *sigtest.Power) {
			p.First, p.Codes, p.Principals, p.Representatives = "P1", []string{"BBR_3"}, []sigtest.Identifiers{sigtest.Employee}, []sigtest.Identifiers{sigtest.Second}
		}), w.employee), chain("2", "1")[2:]), w.second, time.Time{}, time.Time{}, power.Rules{}, "power-wider", sig.Failed, [3]sig.Verdict{2: sig.Failed}, "passes on BBR_3, which p1 does not grant"},
		{"words were passed on, the first one has codes", slices.Concat(with(t, withNumber("p2", func(p *sigtest.Power) {
			p.First, p.Codes, p.Words, p.Principals, p.Representatives = "P1", nil, "Всё", []sigtest.Identifiers{sigtest.Employee}, []sigtest.Identifiers{sigtest.Second}
		}), w.employee), chain("2", "1")[2:]), w.second, time.Time{}, time.Time{}, power.Rules{}, "power-words", sig.Indeterminate, [3]sig.Verdict{2: sig.Indeterminate}, "passes on powers in words; a person must compare them with those of p1"},
		{"the first one has restrictions", slices.Concat(chain("2", "1")[:2], with(t, withNumber("p1", func(p *sigtest.Power) { p.Delegation, p.Limits = "2", 2 }), w.head)), w.second, time.Time{}, time.Time{}, power.Rules{Codes: []string{"BBR_1"}}, "", sig.Passed, [3]sig.Verdict{}, "the power p1 has 2 restrictions"},
		{"passed on in a circle", with(t, withNumber("p2", func(p *sigtest.Power) {
			p.Delegation, p.First, p.Principals = "3", "P2", []sigtest.Identifiers{sigtest.Employee}
		}), w.employee), w.employee, time.Time{}, time.Time{}, power.Rules{}, "power-chain", sig.Failed, [3]sig.Verdict{sig.Failed}, "passed on from itself"},
		{"another first one", slices.Concat(with(t, withNumber("p2", func(p *sigtest.Power) {
			p.First, p.Parent, p.Principals, p.Representatives = "P9", "P1", []sigtest.Identifiers{sigtest.Employee}, []sigtest.Identifiers{sigtest.Second}
		}), w.employee), chain("2", "1")[2:]), w.second, time.Time{}, time.Time{}, power.Rules{}, "power-chain", sig.Failed, [3]sig.Verdict{sig.Failed}, "names p9 as the first one"},
		{"the first one is withdrawn", chain("2", "1"), w.second, time.Time{}, time.Time{}, power.Rules{Statuses: []power.Statuses{power.Withdrawn{"p1": {}}}}, "power-withdrawn", sig.Failed, [3]sig.Verdict{sig.Failed}, "the power p1 was withdrawn"},
	} {
		set, err := w.load(t, c.files...)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		checked := c.checked
		if checked.IsZero() {
			checked = sigtest.Time
		}
		one := sig.Signature{Signer: c.signer.Certificate, Chain: append([]*x509gost.Certificate{c.signer.Certificate}, c.signer.Chain...), SigningTime: sigtest.Time, BestTime: checked}
		if !c.made.IsZero() {
			one.BestTime, one.TimeStamps = c.made, []sig.TimeStamp{{Time: c.made}}
		}
		r := &sig.Report{Signatures: []sig.Signature{one}}
		if err := set.Judge(t.Context(), r, checked, c.rules); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := &r.Signatures[0]
		if codes := strings.Join(sigtest.Codes(r), " "); codes != c.codes || r.Verdict() != c.verdict || !got.Holds() || !got.Trusted() {
			t.Errorf("%s: %s, %q, want %s, %q; %+v", c.name, r.Verdict(), codes, c.verdict, c.codes, got.Findings)
		}
		if c.text != "" && !slices.ContainsFunc(got.Findings, func(f sig.Finding) bool { return strings.Contains(f.Text, c.text) }) {
			t.Errorf("%s: no text %q in %+v", c.name, c.text, got.Findings)
		}
		if m := got.Mandate; m != nil && ([3]sig.Verdict{m.Power, m.Signer, m.Rights} != c.parts || m.Document != sig.Passed) {
			t.Errorf("%s: %s, %s, %s, %s, want %v", c.name, m.Power, m.Signer, m.Rights, m.Document, c.parts)
		}
	}
}

// register is a register with one answer.
type register struct {
	status power.Status
	err    error
}

func (r register) Status(context.Context, *power.Power) (power.Status, error) { return r.status, r.err }

// TestJudgeDocument judges the signatures of a document of two representatives with joint powers, of a damaged one, and of
// joint heads of a principal.
func TestJudgeDocument(t *testing.T) {
	w := newWorld(t)
	both := changed(func(p *sigtest.Power) {
		p.Joint, p.Representatives = "2", []sigtest.Identifiers{sigtest.Employee, sigtest.Second}
	})
	set, err := w.load(t, with(t, both, w.head)...)
	if err != nil {
		t.Fatal(err)
	}
	document := []byte("Договор\n")
	message := signed(t, document, w.employee)[0]
	twice := sigtest.Make(t, cades.New(), w.second, &sig.Job{Document: sigtest.Document(message), Original: sigtest.Document(document), Params: sig.Params{"CmsSignatureType": "Cosign", "CADESType": "BES"}})
	judged := func(message []byte, document string) *sig.Report {
		t.Helper()
		check := w.check
		check.Document, check.Original = bytes.NewReader(message), sigtest.Document([]byte(document))
		r, err := cades.New().Verify(t.Context(), &check)
		if err != nil {
			t.Fatal(err)
		}
		if err := set.Judge(t.Context(), r, check.At, power.Rules{}); err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := judged(twice, string(document))
	if r.Verdict() != sig.Passed || len(r.Signatures) != 2 || r.Signatures[0].Mandate == nil || r.Signatures[1].Mandate == nil {
		t.Errorf("both have signed: %s, %+v", r.Verdict(), r.Signatures)
	}
	if got := r.Headlines(); !slices.Contains(got, "withdrawal of the power not checked") || !slices.Contains(got, "revocation not checked") {
		t.Errorf("headlines %q", got)
	}
	m := r.Signatures[0].Mandate
	if m.Number != both.Number || !m.Joint || !slices.Equal(m.Codes, both.Codes) || !slices.Equal(m.Principals, []string{"Общество (INN 7707083893)"}) || m.Representative != "Иванов Иван Иванович (INN 123456789012)" || !m.Until.Equal(day(2026, 1, 1)) {
		t.Errorf("%+v", m)
	}
	if r := judged(message, string(document)); r.Verdict() != sig.Failed || strings.Join(sigtest.Codes(r), " ") != "power-joint" {
		t.Errorf("one has signed: %s, %q", r.Verdict(), sigtest.Codes(r))
	}
	if r := judged(twice, "Договор!\n"); r.Verdict() != sig.Failed || r.Signatures[0].Mandate.Document != sig.Failed || r.Signatures[0].Mandate.Power != sig.Passed {
		t.Errorf("another document: %+v", r.Signatures[0].Mandate)
	}
	// The other heads of a principal whose heads act together.
	second := sigtest.Head
	second.Surname, second.INN, second.SNILS = "Фёдорова", "444444444444", "44444444444"
	heads := sigtest.NewPower()
	heads.JointHeads = "2"
	text := strings.Replace(string(heads.XML()), "</РосОргДовер>", `<ЛицоБезДов ПолнЮЛ="2"><СвФЛ ИННФЛ="444444444444" СНИЛС="44444444444"><СведФЛ><ФИО Фамилия="Фёдорова" Имя="Анна"/></СведФЛ></СвФЛ></ЛицоБезДов></РосОргДовер>`, 1)
	for _, c := range []struct {
		by   []*sigtest.Party
		want string
	}{
		{[]*sigtest.Party{w.head, w.root.Identity(t, suite.GOST2012x256, second)}, ""},
		{[]*sigtest.Party{w.head}, "power-unsigned"},
	} {
		if set, err = w.load(t, append(signed(t, []byte(text), c.by...), []byte(text))...); err != nil {
			t.Fatal(err)
		}
		_, findings, err := set.Covers(t.Context(), w.employee.Certificate, sigtest.Time, power.Rules{})
		if err != nil || (power.Worst(findings) == sig.Passed) != (c.want == "") || c.want != "" && !slices.ContainsFunc(findings, func(f sig.Finding) bool { return f.Code == c.want }) {
			t.Errorf("%d heads have signed: %+v, %v", len(c.by), findings, err)
		}
	}
	// Joint heads of one principal do not sign for another.
	two := changed(func(p *sigtest.Power) {
		p.JointHeads, p.Principals = "2", []sigtest.Identifiers{sigtest.Head, sigtest.Second}
	})
	for _, c := range []struct {
		by   []*sigtest.Party
		want sig.Verdict
	}{{[]*sigtest.Party{w.head}, sig.Failed}, {[]*sigtest.Party{w.head, w.second}, sig.Passed}} {
		if set, err = w.load(t, with(t, two, c.by...)...); err != nil {
			t.Fatal(err)
		}
		if _, findings, err := set.Covers(t.Context(), w.employee.Certificate, sigtest.Time, power.Rules{}); err != nil || power.Worst(findings) != c.want {
			t.Errorf("%d of two principals have signed: %+v, %v", len(c.by), findings, err)
		}
	}
	// Before the first of two signs, the other is noted.
	if set, err = w.load(t, with(t, both, w.head)...); err != nil {
		t.Fatal(err)
	}
	if m, findings, err := set.Covers(t.Context(), w.employee.Certificate, sigtest.Time, power.Rules{Codes: both.Codes}); err != nil || m == nil || power.Worst(findings) != sig.Passed || !slices.ContainsFunc(findings, func(f sig.Finding) bool { return f.Code == "power-joint" }) {
		t.Errorf("before signing: %+v, %v", findings, err)
	}
}

// TestLoad loads files that are no powers, or too many.
func TestLoad(t *testing.T) {
	w := newWorld(t)
	good := with(t, sigtest.NewPower(), w.head)
	other := changed(func(p *sigtest.Power) { p.Until = "2026-12-31" }).XML()
	var many, stamped [][]byte
	for i := range 11 {
		many = append(many, changed(func(p *sigtest.Power) { p.Number = fmt.Sprint("n", i) }).XML())
	}
	for range 31 {
		stamped = append(stamped, good[1])
	}
	for _, c := range []struct {
		name  string
		files [][]byte
		want  string
	}{
		{"none", nil, "none of the files is one"},
		{"a signature alone", good[1:], "none of the files is one"},
		{"another file", [][]byte{good[0], []byte("text")}, "file1: neither a power nor a signature"},
		{"a broken power", [][]byte{[]byte("<Доверенность>")}, "file0: an XML document expected"},
		{"one number, two powers", [][]byte{good[0], other}, "two different ones have the number"},
		{"a broken archive", [][]byte{[]byte("PK\x03\x04")}, "file0: zip: "},
		{"a large file in an archive", [][]byte{packed(t, make([]byte, power.MaxSize+1))}, "file0: zip: "},
		{"another file in an archive", [][]byte{packed(t, good[0], []byte("text"))}, "1: neither a power nor a signature"},
		{"many files in an archive", [][]byte{packed(t, make([][]byte, 41)...)}, "more than 40 files"},
		{"many files in two archives", [][]byte{packed(t, slices.Repeat(good[1:], 21)...), packed(t, slices.Concat(good[:1], slices.Repeat(good[1:], 20))...)}, "file1: there are more than 40 files"},
		{"many", many, "more than 10"},
		{"many signatures", append(stamped, good[0]), "more than 30"},
		{"a cut signature", [][]byte{good[0], good[1][:len(good[1])/2]}, "file1: "},
	} {
		_, err := w.load(t, c.files...)
		var wrong *power.Error
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	// A budget pays for all of it.
	var document *sig.ErrDocument
	for _, limits := range []budget.Limits{{Steps: 1000, Memory: 1 << 20}, {Steps: 1 << 30, Memory: 2000}} {
		for _, files := range [][][]byte{good, {packed(t, good...)}} {
			ctx := budget.With(t.Context(), limits)
			if _, err := power.Load(ctx, formats, w.check, []sig.File{{Document: sigtest.Document(files[0])}}); !errors.As(err, &document) {
				t.Errorf("%+v: %v", limits, err)
			}
		}
	}
	// A signature of another document is named.
	set, err := w.load(t, append(good, signed(t, []byte("x"), w.head)...)...)
	if err != nil {
		t.Fatal(err)
	}
	r := &sig.Report{}
	if err := set.Judge(t.Context(), r, sigtest.Time, power.Rules{}); err != nil || len(r.Findings) != 1 || r.Findings[0].Code != "power-stray" || !strings.Contains(r.Findings[0].Text, "file2") {
		t.Errorf("%+v, %v", r.Findings, err)
	}
}

// watched is a format that tells when it is asked what it recognises.
type watched struct {
	sig.Described
	asked func()
}

func (w watched) Describe() sig.Description {
	w.asked()
	return w.Described.Describe()
}

// TestLoadHolds checks that the contents of archives are in the pool for as long as they are used.
func TestLoadHolds(t *testing.T) {
	w := newWorld(t)
	large := sigtest.NewPower()
	large.Inside = "<!--" + strings.Repeat("x", 3<<20) + "-->"
	archive := packed(t, with(t, large, w.head)...)
	pool := budget.NewPool(64<<20, time.Second)
	least := int64(64 << 20)
	known := sig.Formats{watched{cades.New(), func() { least = min(least, pool.Used()) }}}
	if _, err := power.Load(budget.Within(t.Context(), pool), known, w.check, []sig.File{{Document: sigtest.Document(archive)}}); err != nil {
		t.Fatal(err)
	}
	if least < 2<<20 || pool.Used() != 0 {
		t.Errorf("%d bytes of the pool were in use at least, %d are afterwards", least, pool.Used())
	}
}

// TestReadWithdrawn reads lists of withdrawn powers.
func TestReadWithdrawn(t *testing.T) {
	list, err := power.ReadWithdrawn(strings.NewReader("\ufeff# comment\nABC\n\n d 2025-03-01\r\ne 2025-03-01T12:00:00+03:00\ne 2025-02-01\nabc 2025-01-01\n"))
	want := power.Withdrawn{"abc": {}, "d": day(2025, 3, 1), "e": day(2025, 2, 1)}
	if err != nil || len(list) != len(want) {
		t.Fatalf("%v, %v", list, err)
	}
	for number, at := range want {
		if !list[number].Equal(at) {
			t.Errorf("%s: %s", number, list[number])
		}
	}
	for _, text := range []string{"a b c", "a yesterday", strings.Repeat("1", 65), "a 2025-13-01"} {
		if _, err := power.ReadWithdrawn(strings.NewReader("x\n" + text)); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// counting is a register that counts how often it is asked.
type counting struct{ asked int }

func (c *counting) Status(context.Context, *power.Power) (power.Status, error) {
	c.asked++
	return power.Status{State: power.StateInForce}, nil
}

// TestRegisterAsked checks that registers are asked only for powers whose signatures did not fail.
func TestRegisterAsked(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		by   []*sigtest.Party
		want int
	}{{nil, 0}, {[]*sigtest.Party{w.outsider}, 0}, {[]*sigtest.Party{w.head}, 1}} {
		set, err := w.load(t, with(t, sigtest.NewPower(), c.by...)...)
		if err != nil {
			t.Fatal(err)
		}
		register := &counting{}
		if _, _, err := set.Covers(t.Context(), w.employee.Certificate, sigtest.Time, power.Rules{Statuses: []power.Statuses{register}}); err != nil || register.asked != c.want {
			t.Errorf("%d signatures: asked %d times, %v", len(c.by), register.asked, err)
		}
	}
}

// TestJudgeCost judges within a budget.
func TestJudgeCost(t *testing.T) {
	w := newWorld(t)
	many := sigtest.NewPower()
	many.Principals, many.Representatives = nil, nil
	for range 100 {
		many.Principals, many.Representatives = append(many.Principals, sigtest.Second), append(many.Representatives, sigtest.Employee)
	}
	set, err := w.load(t, with(t, many, w.head)...)
	if err != nil {
		t.Fatal(err)
	}
	r := func() *sig.Report {
		return &sig.Report{Signatures: []sig.Signature{{Signer: w.employee.Certificate, SigningTime: sigtest.Time, BestTime: sigtest.Time}}}
	}
	for _, c := range []struct {
		limits budget.Limits
		fits   bool
	}{
		{budget.Limits{Steps: 700, Memory: 1 << 30}, false},    // to find the signer among the representatives
		{budget.Limits{Steps: 3_000, Memory: 1 << 30}, false},  // to find who has signed the power
		{budget.Limits{Steps: 1 << 30, Memory: 10_000}, false}, // the texts of a hundred findings
		{budget.Limits{Steps: 20_000, Memory: 10 << 20}, true}, // they are made once for all representatives
	} {
		_, findings, err := set.Covers(budget.With(t.Context(), c.limits), w.employee.Certificate, sigtest.Time, power.Rules{})
		var document *sig.ErrDocument
		if c.fits && (err != nil || len(findings) < 100) || !c.fits && !errors.As(err, &document) {
			t.Errorf("%+v: %d findings, %v", c.limits, len(findings), err)
		}
		if err := set.Judge(budget.With(t.Context(), c.limits), r(), sigtest.Time, power.Rules{}); c.fits != (err == nil) {
			t.Errorf("judging with %+v: %v", c.limits, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := set.Judge(ended, r(), sigtest.Time, power.Rules{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}
