// SPDX-License-Identifier: Apache-2.0

package asic

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"tamga/sig"
	"tamga/sig/budget"
)

// Verify implements sig.Verifier. It checks every signature and time stamp of the container. Report.Files
// names its files with the signatures that cover them.
func (f *Format) Verify(ctx context.Context, c *sig.Check) (*sig.Report, error) {
	return sig.Within(ctx, c.Document, func(ctx context.Context) (*sig.Report, error) { return f.verify(ctx, c) })
}

func (f *Format) verify(ctx context.Context, check *sig.Check) (*sig.Report, error) {
	_, b := budget.Of(ctx, 0)
	c, err := openContainer(ctx, b, check.Document)
	if err != nil {
		return nil, err
	}
	if !c.signs() && c.kind != kindS && c.kind != kindE {
		return nil, otherKind("a container with signatures (ASiC) expected; the archive has no signature in META-INF")
	}
	v := &verifier{
		format: f, ctx: ctx, check: check, of: c, shown: c.shown(), report: &sig.Report{},
		by: map[*file][]*manifest{}, proved: map[*file]time.Time{}, chained: map[*file]bool{}, archived: map[*file][]overStamp{}, left: maxSignatures,
	}
	v.report.Findings = append(v.report.Findings, c.notes...)
	v.structure()
	if err := v.lists(); err != nil {
		return nil, err
	}
	records, err := v.records() // they may prove time stamps, too
	if err != nil {
		return nil, err
	}
	stamps, err := v.stamps()
	if err != nil {
		return nil, err
	}
	stamps = append(stamps, records...)
	for _, one := range c.cms {
		if err := v.message(one); err != nil {
			return nil, err
		}
	}
	for _, one := range c.xml {
		if err := v.signatures(one); err != nil {
			return nil, err
		}
	}
	for _, s := range stamps {
		v.add(s.out, s.covers)
	}
	if len(v.report.Signatures) == 0 && len(c.records) > 0 { // or it would count as a file without signatures
		v.tell(codeEvidence, true, "no evidence record of the container proves anything")
	}
	if err := b.Err(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	v.files()
	return v.report, nil
}

// verifier is the check of one container.
type verifier struct {
	format *Format
	ctx    context.Context
	check  *sig.Check
	of     *container
	shown  []*file // of the container
	report *sig.Report
	left   int // entries with signatures that may still be checked

	by map[*file][]*manifest // the lists that name a signature or a time stamp as theirs
	// proved is when an entry is proved to have existed, archived are the archive time stamps that cover it. chained
	// are the entries that such a time stamp covers which is valid, or was when it was made: time stamps of theirs are
	// judged at the proved time, and not at their own (decision 0063).
	proved   map[*file]time.Time
	archived map[*file][]overStamp
	chained  map[*file]bool
}

func (v *verifier) tell(code string, fatal bool, format string, args ...any) {
	v.note(finding(code, fatal, format, args...))
}

// note adds a finding about the container, as long as there is place. Notes leave place for findings that decide.
func (v *verifier) note(f sig.Finding) {
	most := maxFindings
	if f.Indication != "" {
		most *= 2
	}
	if len(v.report.Findings) < most {
		v.report.Findings = append(v.report.Findings, f)
	}
}

// structure checks the rules of containers that do not need content.
func (v *verifier) structure() {
	c := v.of
	var unclaimed int64
	for _, g := range c.zip.Gaps {
		if g.Entry {
			v.tell(codeHidden, true, "at offset %d the archive has an entry that is not in its directory; programs that read the archive from its beginning see it", g.Offset)
		}
		unclaimed += g.Length
	}
	if unclaimed > 0 {
		v.tell(codeHidden, false, "%d bytes of the archive belong to no entry", unclaimed)
	}
	switch {
	case c.kind == kindS && len(c.files) != 1:
		v.tell(codeKind, true, "the container is ASiC-S, which has one file beside META-INF, and has %d", len(c.files))
	case c.kind == kindE && len(c.files) == 0:
		v.tell(codeKind, true, "the container has no file beside META-INF, so nothing in it is signed")
	case c.kind == kindS && len(c.manifests) > 0:
		v.tell(codeKind, false, "the container is ASiC-S, but has a list of files as ASiC-E")
	}
	if c.kind == kindOther {
		v.tell(codeMimetype, false, "the container says that it is %s, not ASiC", quote(c.mimetype))
	}
	if v.check.Original != nil || v.check.Hash != nil {
		v.tell(codeNotLookedAt, false, "the given original document or hash value was ignored: a container holds what it signs")
	}
	if len(c.cms)+len(c.xml)+len(c.stamps)+len(c.records) == 0 {
		v.tell(codeNoSignature, true, "the container has no signature and no time stamp")
	}
}

// lists reads the lists of files.
func (v *verifier) lists() error {
	r := &manifestReader{ctx: v.ctx, of: v.of, left: maxListed}
	read := 0
	for _, group := range []struct {
		from    []*file
		archive bool
	}{{v.of.manifests, false}, {v.of.archives, true}, {v.of.evidence, true}} {
		for _, f := range group.from {
			if read++; read > maxManifests {
				v.tell(codeMany, true, "the container has more than %d lists of files; the others were not read", maxManifests)
				return nil
			}
			m, err := r.read(f)
			if err != nil {
				return err
			}
			m.archive = group.archive
			switch {
			case m.flaw != "":
				// Without an archive time stamp a signature is judged by what else it has.
				v.tell(codeManifest, !group.archive, "the list %s cannot be used: %s", quote(f.Name), m.flaw)
			case m.signs == nil:
				v.tell(codeGone, !group.archive, "the list %s names the signature %s, which is missing", quote(f.Name), quote(m.uri))
			default:
				v.by[m.signs] = append(v.by[m.signs], m)
			}
		}
	}
	return nil
}

// take counts an entry with signatures. It reports false if it is not checked any more.
func (v *verifier) take(f *file) bool {
	if v.left--; v.left == -1 {
		v.tell(codeMany, true, "the container has more than %d entries with signatures; the others were not checked", maxSignatures)
	}
	return v.left >= 0
}

// findingSize is the memory of a finding besides its text, which signatures of an entry share.
const findingSize = 112

// add adds the result of one signature, and the finding that it does not cover all files.
func (v *verifier) add(out sig.Signature, covers []*file) {
	// Memory and time grow with signatures times files.
	if v.of.budget.Spend(20*int64(len(covers)+len(v.shown))) != nil || v.of.budget.Hold(16*int64(len(covers))+findingSize*int64(len(out.Findings))) != nil {
		return // verify returns this error
	}
	out.Index = len(v.report.Signatures)
	names := make([]string, 0, min(len(covers), maxNames+1))
	covered := make(map[*file]bool, len(covers))
	expected := false
	for _, f := range covers {
		if covered[f] {
			continue
		}
		covered[f] = true
		f.signed = append(f.signed, out.Index)
		names = append(names, f.Name)
		expected = expected || f.Name == v.check.Expect
	}
	missing := v.check.Expect != "" && !expected
	var without []string
	for _, f := range v.shown {
		if !covered[f] {
			without = append(without, f.Name)
		}
	}
	if missing || len(without) > 0 {
		part := v.check.CoversPart()
		if expected {
			part = v.check.CoversPart(v.check.Expect)
		}
		part.Headline = fmt.Sprintf("signature %d does not cover %s", out.Index+1, list(without))
		if len(without) == 0 {
			part.Headline = fmt.Sprintf("signature %d does not cover %s", out.Index+1, sig.Printable(v.check.Expect, 120, '?'))
		}
		part.Text = "the signature covers " + listOr(names, "no file of the container")
		if len(without) > 0 {
			part.Text += "; it does not cover " + list(without)
		}
		if missing {
			part.Text += "; " + quote(v.check.Expect) + " was expected"
		}
		out.Findings = append(out.Findings, part)
	}
	v.report.Signatures = append(v.report.Signatures, out)
}

// listOr is list, or another text for no names.
func listOr(names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	return list(names)
}

// at is the check for an entry, at the time at which it is proved to have existed.
func (v *verifier) at(f *file) *sig.Check {
	check := *v.check
	check.Original, check.Hash, check.Password = nil, nil, nil
	check.Strict, check.Expect = false, "" // these refer to files of the container
	check.Describe = true                  // what is missing is a finding
	if at, ok := v.proved[f]; ok && at.Before(check.At) {
		check.At = at
	}
	check.Container = nil
	if v.chained[f] {
		check.Container = &sig.Container{Chained: true}
	}
	return &check
}

// message checks an entry with CMS signatures.
func (v *verifier) message(f *file) error {
	if !v.take(f) {
		return nil
	}
	data, err := f.content(v.ctx, maxMessage)
	if err != nil {
		return v.unreadable(f, err)
	}
	check := v.at(f)
	check.Document = bytes.NewReader(data)
	var intact []*file
	var findings []sig.Finding
	var m *manifest
	what := ""
	named := slices.DeleteFunc(slices.Clone(v.by[f]), func(m *manifest) bool { return m.archive })
	switch {
	case len(named) == 1:
		m = named[0]
		check.Original = bytes.NewReader(m.data)
		if intact, findings, err = m.check(v.ctx); err != nil {
			return err
		}
		what = "the list " + sig.Printable(m.file.Name, 120, '?') + " with the files "
	case len(named) > 1:
		findings = append(findings, finding(codeNoManifest, true, "%d lists name the signature %s as theirs; one expected", len(named), quote(f.Name)))
	case v.of.kind != kindS && len(v.of.files) != 1:
		findings = append(findings, finding(codeNoManifest, true, "no list of files names the signature %s as its own", quote(f.Name)))
	case len(v.of.files) == 1:
		check.Original, intact = v.of.files[0].document(), v.of.files[:1]
		what = "the file "
	case len(v.of.files) > 1:
		one, err := v.signed(check)
		if err != nil {
			return err
		}
		if one != nil {
			check.Original, intact, what = one.document(), []*file{one}, "the file "
		}
	}
	report, err := v.format.CMS.Verify(v.ctx, check)
	if err != nil {
		return v.unreadable(f, err)
	}
	v.inner(f, report)
	if check.Original == nil && findings == nil {
		findings = append(findings, finding(codeNoManifest, true, "none of the %d files is the one that the signature covers", len(v.of.files)))
	}
	for _, s := range report.Signatures {
		if check.Original == nil { // the reader cannot supply the document, so the reason of the container is said instead
			s.Findings = slices.DeleteFunc(s.Findings, func(f sig.Finding) bool { return f.Code == "document-missing" })
		}
		if what != "" {
			s.Covers = what + listOr(namesOf(intact), "of which none is unchanged")
		}
		s.Findings = append(s.Findings, findings...)
		if m != nil {
			s.Findings = append(s.Findings, m.weak(v.check, s.BestTime)...)
		}
		of := intact
		if !s.Holds() {
			of = nil
		}
		v.archive(f, &s)
		v.add(s, of)
	}
	return nil
}

// signed returns the file whose digest a CMS signature of ASiC-S has, nil without one. The container breaks
// a rule, which has a finding; what the signature covers is still of use.
func (v *verifier) signed(check *sig.Check) (*file, error) {
	report, err := v.format.CMS.Verify(v.ctx, check)
	if err != nil {
		if isDocument(err) && v.of.budget.Err() == nil {
			return nil, nil
		}
		return nil, err
	}
	for _, s := range report.Signatures {
		if s.Signed == nil {
			continue
		}
		for _, f := range v.of.files {
			d, err := f.digest(v.ctx, s.Signed.Hash)
			if err != nil && !isDocument(err) {
				return nil, err
			}
			if err == nil && bytes.Equal(d.Sum, s.Signed.Sum) {
				return f, nil
			}
		}
	}
	return nil, nil
}

// weak returns the findings about hash functions of a list that were weak when a signature of it is proved to have
// existed.
func (m *manifest) weak(c *sig.Check, by time.Time) (findings []sig.Finding) {
	for _, h := range m.hashes {
		if f, weak := c.WeakHash(h, by); weak {
			findings = append(findings, f)
		}
	}
	return findings
}

// signatures checks an entry with XML signatures.
func (v *verifier) signatures(f *file) error {
	if !v.take(f) {
		return nil
	}
	data, err := f.content(v.ctx, maxMessage)
	if err != nil {
		return v.unreadable(f, err)
	}
	check := v.at(f)
	check.Document = bytes.NewReader(data)
	report, beside, err := v.format.XML.VerifyBeside(v.ctx, check, besideFiles{v.of})
	if err != nil {
		return v.unreadable(f, err)
	}
	v.inner(f, report)
	for i, s := range report.Signatures {
		var intact []*file
		for _, name := range beside.Names[i] {
			intact = append(intact, v.of.byKey[key(name)])
		}
		if !s.Holds() {
			intact = nil
		}
		v.archive(f, &s)
		v.add(s, intact)
	}
	return nil
}

// unreadable turns an error about an entry into a finding. Other errors it returns.
func (v *verifier) unreadable(f *file, err error) error {
	if failed := v.of.budget.Err(); failed != nil {
		return failed
	}
	if !isDocument(err) {
		return err
	}
	v.tell(codeMalformed, true, "the entry %s cannot be checked: %s", quote(f.Name), err)
	return nil
}

// inner adds the findings of a file with signatures to the findings of the container.
func (v *verifier) inner(f *file, report *sig.Report) {
	for _, one := range report.Findings {
		one.Text = f.Name + ": " + one.Text
		v.note(one)
	}
}

// archive adds the time stamps over the entry of a signature.
func (v *verifier) archive(f *file, s *sig.Signature) {
	for _, ts := range v.archived[f] {
		s.TimeStamps = append(s.TimeStamps, ts.TimeStamp)
		switch {
		case !ts.Passed():
			s.Findings = append(s.Findings, ts.flaw())
		case slices.Contains(longTerm, s.Level):
			s.Level = "A"
		}
	}
}

// brokenBy returns the text of the finding by which a time stamp does not hold.
func brokenBy(findings []sig.Finding) string {
	for _, f := range findings {
		one := sig.TimeStamp{Findings: []sig.Finding{f}}
		if !one.Holds() {
			return f.Text
		}
	}
	return ""
}

// longTerm are the levels that an archive time stamp over the signature makes an archive level.
var longTerm = []string{"LT", "X-L", "XLT1", "LTA"}

func namesOf(files []*file) (names []string) {
	for _, f := range files {
		names = append(names, f.Name)
	}
	return names
}

// files fills Report.Files and names the files that no signature covers.
func (v *verifier) files() {
	var without []string
	for _, f := range v.shown {
		if f.signed == nil {
			without = append(without, f.Name)
		}
		v.report.Files = append(v.report.Files, sig.Contained{Name: f.Name, Size: f.Size, Signatures: f.signed})
	}
	if without != nil && len(v.report.Signatures) > 0 {
		f := finding(codeUncovered, false, "no valid signature of the container covers %s", list(without))
		f.Headline = "not covered by any signature: " + list(without)
		v.report.Findings = append(v.report.Findings, f)
	}
}
