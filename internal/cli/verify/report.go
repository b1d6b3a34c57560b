// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"tamga/internal/cli"
	"tamga/internal/web/pages/sign"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// Report is what tamga verify --json prints for each file, in one line. Released names do not change; new ones may be added. Times
// are RFC 3339 in UTC. Unknown values are absent.
type Report struct {
	noun   cli.Word // name of the format for people
	raises bool     // tamga enhance raises its signatures

	File     string `json:"file"`
	Format   string `json:"format"`             // sig.Description.Kind: cms, xml, ...
	Original string `json:"original,omitempty"` // file of the document of a detached signature
	// Verdict is passed, failed or indeterminate: the worst of the file, its
	// signatures and countersignatures. The exit code says the same with 0, 1 and 3.
	Verdict    string            `json:"verdict"`
	Status     string            `json:"status"`                   // the verdict in the words of EN 319 102-1: TOTAL-PASSED, INDETERMINATE or TOTAL-FAILED
	Sub        string            `json:"sub_indication,omitempty"` // and its sub-indication, such as HASH_FAILURE, if it did not pass
	Headlines  []string          `json:"headlines,omitempty"`      // remarks on the verdict
	JudgedAt   time.Time         `json:"judged_at"`                // the time for which certificates were verified
	Notes      []cli.Sentence    `json:"notes,omitempty"`
	Findings   []findingReport   `json:"findings,omitempty"` // about the whole file
	Files      []fileReport      `json:"files,omitempty"`    // of a container
	Signatures []signatureReport `json:"signatures"`

	verdict sig.Verdict
}

// fileReport is one file of a container.
type fileReport struct {
	Name       string `json:"name"`
	Size       int64  `json:"size"`       // in bytes
	Signatures []int  `json:"signatures"` // indexes of those that hold and cover the file unchanged
}

// signatureReport is one signature.
type signatureReport struct {
	Index int `json:"index"` // in the order of the file, from 0
	// Verdict is passed, failed or indeterminate, countersignatures included.
	Verdict string `json:"verdict"`
	// Status and Sub are the verdict in the words of EN 319 102-1, as those of the file.
	Status    string   `json:"status"`
	Sub       string   `json:"sub_indication,omitempty"`
	Headlines []string `json:"headlines,omitempty"`
	// SignatureHolds reports whether the signature value is valid for the document and for the
	// certificate of the signer, by all rules of the format.
	SignatureHolds bool `json:"signature_holds"`
	// Trusted reports whether this certificate leads to a trusted root and no certificate on the
	// path is rejected.
	Trusted        bool                `json:"trusted"`
	Level          string              `json:"level"`           // raw, CMS, BES, T, LT, XLT1, A, LTA or XMLDSig; DocTimeStamp for a time stamp of the document
	Suite          string              `json:"suite,omitempty"` // gost2012-256 and so on
	Hash           string              `json:"hash,omitempty"`
	Covers         string              `json:"covers,omitempty"`       // in words, such as "the attached document, 15 bytes"
	SigningTime    *time.Time          `json:"signing_time,omitempty"` // claimed by the signer
	BestTime       *time.Time          `json:"best_time,omitempty"`    // of the earliest valid time stamp: the signature existed at this time
	GoodUntil      *untilReport        `json:"good_until,omitempty"`   // of a signature that passed: until when it can be verified with what it holds
	TimeStamps     []timeStampReport   `json:"time_stamps,omitempty"`
	Signer         *certificateReport  `json:"signer,omitempty"`
	Chain          []certificateReport `json:"chain,omitempty"`   // signer first, trusted root last
	Quality        *sign.QualityJSON   `json:"quality,omitempty"` // with --trust-list
	Power          *sign.MandateJSON   `json:"power,omitempty"`   // with --power
	Findings       []findingReport     `json:"findings,omitempty"`
	Countersigners []signatureReport   `json:"countersignatures,omitempty"` // count in the verdict
}

// timeStampReport is one time stamp of a signature.
type timeStampReport struct {
	// Kind is signature (over its value), CAdES-C (over value, stamps and
	// references), references or archive.
	Kind     string             `json:"kind"`
	Time     time.Time          `json:"time"`
	Verdict  string             `json:"verdict"`
	Holds    bool               `json:"holds"`   // the token is valid and is for the data that it stamps
	Trusted  bool               `json:"trusted"` // the certificate of its service leads to a trusted root
	Signer   *certificateReport `json:"signer,omitempty"`
	Findings []findingReport    `json:"findings,omitempty"`
}

// certificateReport is one certificate.
type certificateReport struct {
	Subject    string            `json:"subject"`
	IDs        map[string]string `json:"identifiers,omitempty"` // INN, SNILS, OGRN, OGRNIP, INNLE of the subject
	Issuer     string            `json:"issuer"`
	Serial     string            `json:"serial"` // lower-case hexadecimal
	NotBefore  time.Time         `json:"not_before"`
	NotAfter   time.Time         `json:"not_after"`
	Thumbprint string            `json:"thumbprint"` // SHA-1 of the certificate, upper-case hexadecimal
}

// findingReport is one finding of the verification.
type findingReport struct {
	Code string `json:"code"`
	Text string `json:"text"`
	// Verdict and Indication (EN 319 102-1) are the effect of the finding. Both are absent if it does
	// not affect the verdict.
	Verdict    string `json:"verdict,omitempty"`
	Indication string `json:"indication,omitempty"`
	// Remedy is the missing object and the command for it, absent for a finding that needs none.
	Remedy *remedyReport `json:"remedy,omitempty"`
}

// UnknownVerdict is printed in place of a Report if the file could not be verified (exit code 2).
type UnknownVerdict struct {
	File    string `json:"file"`
	Verdict string `json:"verdict"` // unreadable
	Error   string `json:"error"`
}

// note adds a note.
func (r *Report) note(format string, args ...any) {
	r.Notes = append(r.Notes, cli.Say(format, args...))
}

// fill copies the report of the format.
func (r *Report) fill(report *sig.Report, check *sig.Check) {
	r.Findings = r.findingReports(report.Findings)
	for _, f := range report.Files {
		r.Files = append(r.Files, fileReport{f.Name, f.Size, append([]int{}, f.Signatures...)})
	}
	r.Signatures = r.signatureReports(report.Signatures, check)
	status := report.Conclusion()
	r.verdict = status.Verdict
	r.Verdict, r.Status, r.Sub, r.Headlines = r.verdict.String(), status.Main(), string(status.Sub), report.Headlines()
}

func (r *Report) signatureReports(signatures []sig.Signature, check *sig.Check) []signatureReport {
	out := make([]signatureReport, 0, len(signatures)) // [] in JSON, not null
	for i := range signatures {
		s := &signatures[i]
		status := s.Conclusion()
		one := signatureReport{
			Index: s.Index, Verdict: status.Verdict.String(), Status: status.Main(), Sub: string(status.Sub), Headlines: s.Headlines(),
			SignatureHolds: s.Holds(), Trusted: s.Trusted(),
			Level: s.Level, Covers: s.Covers, Quality: sign.QualityOf(s.Quality), Power: sign.MandateOf(s.Mandate), Findings: r.findingReports(s.Findings),
			GoodUntil: r.until(s, check),
		}
		if s.Scheme != nil {
			one.Suite, one.Hash = suiteOf(s), s.Scheme.Hash.Name
		}
		if !s.SigningTime.IsZero() {
			t := s.SigningTime.UTC()
			one.SigningTime = &t
		}
		for i := range s.TimeStamps {
			ts := &s.TimeStamps[i]
			stamp := timeStampReport{
				Kind: ts.Kind, Time: ts.Time.UTC(), Verdict: ts.Verdict().String(), Holds: ts.Holds(), Trusted: ts.Trusted(), Findings: r.findingReports(ts.Findings),
			}
			if ts.Signer != nil {
				c := certificateOf(ts.Signer)
				stamp.Signer = &c
			}
			if t := s.BestTime.UTC(); ts.Passed() && t.Equal(stamp.Time) {
				one.BestTime = &t
			}
			one.TimeStamps = append(one.TimeStamps, stamp)
		}
		if s.Signer != nil {
			c := certificateOf(s.Signer)
			one.Signer = &c
		}
		for _, c := range s.Chain {
			one.Chain = append(one.Chain, certificateOf(c))
		}
		if len(s.Countersigners) > 0 {
			one.Countersigners = r.signatureReports(s.Countersigners, check)
		}
		out = append(out, one)
	}
	return out
}

func (r *Report) findingReports(findings []sig.Finding) (out []findingReport) {
	for _, f := range findings {
		one := findingReport{Code: f.Code, Text: f.Text, Indication: string(f.Indication), Remedy: r.remedyOf(&f)}
		if f.Indication != "" {
			one.Verdict = f.Indication.Verdict().String()
		}
		out = append(out, one)
	}
	return out
}

// identifiers are the numbers of people and organisations in Russian registers.
var identifiers = []struct {
	name string
	oid  x509gost.OID
}{
	{"INN", x509gost.OIDINN}, {"SNILS", x509gost.OIDSNILS}, {"OGRN", x509gost.OIDOGRN},
	{"OGRNIP", x509gost.OIDOGRNIP}, {"INNLE", x509gost.OIDINNLE},
}

func certificateOf(c *x509gost.Certificate) certificateReport {
	out := certificateReport{
		Subject: c.Subject.String(), Issuer: c.Issuer.String(), Serial: c.SerialHex(),
		NotBefore: c.NotBefore, NotAfter: c.NotAfter, Thumbprint: c.Thumbprint(),
	}
	for _, id := range identifiers {
		if value, ok := c.Subject.Get(id.oid); ok {
			if out.IDs == nil {
				out.IDs = map[string]string{}
			}
			out.IDs[id.name] = value
		}
	}
	return out
}

// Print writes the report as text for people. Text from certificates is made safe for a terminal.
func (r *Report) Print(c *cli.Console) error {
	p := &printer{console: c}
	signatures := cli.Say("%d signatures", len(r.Signatures))
	if len(r.Signatures) == 1 {
		signatures = cli.Say("1 signature")
	}
	p.line("", "%s: %s (%s, %s)", r.File, p.headline(r.Verdict, r.Headlines), c.Word(r.noun), signatures)
	for _, n := range r.Notes {
		p.line("", "note: %s", c.Say(n))
	}
	p.findings("", r.Findings)
	for i, f := range r.Files {
		if i == maxFiles {
			p.line("", "%d more files", len(r.Files)-i)
			break
		}
		if len(f.Signatures) == 0 {
			p.line("", "file %s, %d bytes: not covered by any signature", f.Name, f.Size)
			continue
		}
		numbers := make([]string, len(f.Signatures))
		for i, n := range f.Signatures {
			numbers[i] = fmt.Sprint(n + 1)
		}
		p.line("", "file %s, %d bytes: covered by signature %s", f.Name, f.Size, strings.Join(numbers, ", "))
	}
	for _, s := range r.Signatures {
		p.WriteByte('\n')
		p.signature(&s, "", "Signature", len(r.Signatures))
	}
	_, err := io.WriteString(c.Stdout, p.String())
	return err
}

// maxFiles is how many files of a container the text names.
const maxFiles = 50

// printLine writes the verdict in one line, with the reason of each signature that did not pass below it.
func (r *Report) printLine(c *cli.Console) error {
	p := &printer{console: c}
	p.line("", "%s: %s", r.File, p.headline(r.Verdict, r.Headlines))
	wrong := func(findings []findingReport) {
		for _, f := range findings {
			if f.Verdict != "" && f.Verdict != sig.Passed.String() {
				p.findings("  ", []findingReport{f})
			}
		}
	}
	wrong(r.Findings)
	var each func(list []signatureReport)
	each = func(list []signatureReport) {
		for i := range list {
			wrong(list[i].Findings)
			each(list[i].Countersigners)
		}
	}
	each(r.Signatures)
	_, err := io.WriteString(c.Stdout, p.String())
	return err
}

type printer struct {
	strings.Builder
	console *cli.Console
}

// line prints one line in the language of the process. It makes every string argument safe for a terminal.
func (p *printer) line(indent, format string, args ...any) {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = cli.Printable(s)
		}
	}
	p.WriteString(indent + p.console.Text(format, args...) + "\n")
}

func (p *printer) field(indent string, name cli.Word, format string, args ...any) {
	p.line(fmt.Sprintf("%s  %-9s", indent, p.console.Word(name)), format, args...)
}

func (p *printer) signature(s *signatureReport, indent string, what cli.Word, of int) {
	verdict := p.headline(s.Verdict, s.Headlines)
	if s.SignatureHolds && !s.Trusted {
		verdict += "; " + p.console.Text("the signature holds, but its signer is not trusted")
	}
	if of > 1 {
		p.line(indent, "%s %d of %d: %s", what, s.Index+1, of, verdict)
	} else {
		p.line(indent, "%s: %s", what, verdict)
	}
	if c := s.Signer; c != nil {
		p.field(indent, "signer", "%s", c.Subject)
		var ids []string
		for _, id := range identifiers {
			if value, ok := c.IDs[id.name]; ok {
				ids = append(ids, id.name+" "+value)
			}
		}
		if ids != nil {
			p.field(indent, "", "%s", strings.Join(ids, ", "))
		}
		p.field(indent, "serial", "%s", c.Serial)
		p.field(indent, "issuer", "%s", c.Issuer)
	} else {
		p.field(indent, "signer", "unknown")
	}
	if s.SigningTime != nil {
		p.field(indent, "signed", "%s, as the signer says", moment(*s.SigningTime))
	} else {
		p.field(indent, "signed", "the signer does not say when")
	}
	if s.Sub != "" {
		p.field(indent, "status", "%s, %s (EN 319 102-1)", s.Status, s.Sub)
	}
	for _, ts := range s.TimeStamps {
		service, verdict := p.console.Text("an unknown service"), cli.Say("holds")
		if ts.Signer != nil {
			service = ts.Signer.Subject
		}
		switch {
		case !ts.Holds:
			verdict = cli.Say("does NOT hold")
		case !ts.Trusted:
			verdict = cli.Say("holds, but its service is not trusted")
		}
		p.field(indent, "stamped", "%s by %s (%s): %s", moment(ts.Time), service, ts.Kind, verdict)
	}
	if u := s.GoodUntil; u != nil {
		p.field(indent, "good", "until %s: %s", moment(u.Time), p.console.Word(endings[u.By]))
		if u.Command != "" {
			p.field(indent, "", "before that: %s", string(u.Command))
		}
	}
	if s.Suite != "" {
		p.field(indent, "with", "%s, hash %s, level %s", Algorithm(s.Suite), s.Hash, s.Level)
	}
	if s.Covers != "" {
		p.field(indent, "covers", "%s", s.Covers)
	}
	for i, c := range s.Chain {
		name, trusted := cli.Word(""), ""
		if i == 0 {
			name = cli.Word("chain")
		}
		if i == len(s.Chain)-1 && s.Trusted {
			trusted = ", " + p.console.Text("trusted")
		}
		p.field(indent, name, "%d. %s, valid %s to %s%s", i+1, c.Subject, day(c.NotBefore), day(c.NotAfter), trusted)
	}
	if q := s.Quality; q != nil {
		p.field(indent, "quality", "%s", p.quality(q))
	}
	if s.Power != nil {
		p.power(indent, s.Power)
	}
	p.findings(indent+"  ", s.Findings)
	for i := range s.Countersigners {
		p.signature(&s.Countersigners[i], indent+"  ", "Countersignature", len(s.Countersigners))
	}
}

func (p *printer) findings(indent string, findings []findingReport) {
	for _, f := range findings {
		kind := cli.Word("note")
		switch f.Verdict {
		case sig.Failed.String():
			kind = cli.Word("wrong")
		case sig.Indeterminate.String():
			kind = cli.Word("unclear")
		}
		p.line(fmt.Sprintf("%s%-9s", indent, p.console.Word(kind)), "%s", p.text(f))
		if m := f.Remedy; m != nil {
			p.line(fmt.Sprintf("%s%-9s", indent, p.console.Word("needed")), "%s", p.console.Word(m.Missing))
			if m.Command != "" {
				p.line(fmt.Sprintf("%s%-9s", indent, ""), "%s", string(m.Command))
			}
		}
	}
}

// verdicts are the verdicts for people.
var verdicts = map[string]cli.Word{
	sig.Passed.String(): "passed", sig.Failed.String(): "failed", sig.Indeterminate.String(): "indeterminate",
}

// remarks are the headlines without values. The others are shown as the formats say them.
var remarks = []cli.Word{"revocation not checked", "unsigned bytes after the signature", "an invalid time stamp was left out", "withdrawal of the power not checked", "limits of the power not checked"}

// headline returns a verdict with its remarks. A verdict other than passed is in upper case.
func (p *printer) headline(verdict string, beside []string) string {
	all := []string{p.console.Word(verdicts[verdict])}
	if verdict != sig.Passed.String() {
		all[0] = strings.ToUpper(all[0])
	}
	for _, b := range beside {
		if slices.Contains(remarks, cli.Word(b)) {
			b = p.console.Word(cli.Word(b))
		}
		all = append(all, b)
	}
	return strings.Join(all, "; ")
}

// text returns a finding for people. The formats say in English what is wrong in detail. Before that is what its
// code means, or its indication, in the language of the process if that is another.
func (p *printer) text(f findingReport) string {
	if p.console.Words == nil {
		return f.Text
	}
	if text := sign.Finding(p.console.Language, f.Code, f.Indication); text != "" {
		return text + ": " + f.Text
	}
	return f.Text
}

// quality returns what the list of authorities says, for people. It is text for English, see text.
func (p *printer) quality(q *sign.QualityJSON) string {
	text := q.Text
	if p.console.Words != nil {
		text = sign.Quality(p.console.Language, q.Code) + ": " + text
	}
	if q.Basis != sig.TimeProven.String() {
		text += "; " + p.console.Text("when it was made is not proven")
	}
	if q.Old {
		text += "; " + p.console.Text("the list is older than 30 days")
	}
	return text
}

// suiteOf returns the name of the suite of a signature, or of its scheme if it has no suite.
func suiteOf(s *sig.Signature) string {
	for _, su := range suite.All() {
		if su.Scheme() == s.Scheme && (s.Signer == nil || s.Signer.Suite == su) {
			return su.Name
		}
	}
	return s.Scheme.Name
}

// Algorithm returns the title of a suite in its standard, or name if the suite is unknown.
func Algorithm(name string) string {
	if su, ok := suite.ByName(name); ok {
		return su.Title
	}
	return name
}

// moment returns a time in the local time zone and in UTC.
func moment(t time.Time) string {
	return t.Local().Format("2006-01-02 15:04:05 -07:00") + " (" + t.UTC().Format("2006-01-02 15:04:05") + " UTC)"
}

func day(t time.Time) string { return t.Local().Format(time.DateOnly) }
