// SPDX-License-Identifier: Apache-2.0

package ooxml

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/xmldsig"
	"tamga/sig/xmltree"
)

// Verify implements sig.Verifier. It checks the signatures that the origin part of the
// package refers to, in that order. Package xmldsig checks the Signature elements, their
// signers and properties. This method adds the check of the manifest: which parts and
// relationships were signed, whether they have changed, and what was added.
func (f *Format) Verify(ctx context.Context, c *sig.Check) (*sig.Report, error) {
	return sig.Within(ctx, c.Document, func(ctx context.Context) (*sig.Report, error) { return f.verify(ctx, c) })
}

func (f *Format) verify(ctx context.Context, c *sig.Check) (*sig.Report, error) {
	d, err := open(ctx, c.Document)
	if err != nil {
		return nil, err
	}
	v := &verifier{ctx: ctx, check: c, document: d, report: &sig.Report{}, jobs: map[*entry]*digestJob{}, owes: map[*relationships][]obligation{}, work: maxTransformed}
	for _, rels := range d.rels {
		list := make([]obligation, len(rels.list))
		for i := range rels.list {
			list[i] = d.obligationOf(&rels.list[i])
		}
		v.owes[rels] = list
	}
	if c.Original != nil || c.Hash != nil {
		v.add(codeNotLookedAt, "the given original document or hash value was ignored: a signed Office document contains what it signs", false)
	}
	v.leftByDesign()
	v.outside()
	parts := d.signatureParts()
	if len(parts) == 0 {
		v.add(codeNoSignature, "the document has no signature: no relationship of an origin part leads to one", true)
		return v.report, nil
	}
	if len(parts) > maxSignatures {
		v.add(codeMany, fmt.Sprintf("the document has %d signatures; only the first %d were checked", len(parts), maxSignatures), true)
		parts = parts[:maxSignatures]
	}
	judged := make([]*verification, len(parts))
	for i, e := range parts {
		judged[i] = &verification{verifier: v, entry: e, out: sig.Signature{Index: i, Covers: "nothing that could be checked", BestTime: c.At}}
		if err := judged[i].read(); err != nil {
			return nil, err
		}
	}
	// Each part is decompressed once, for any number of signatures.
	jobs := make([]*digestJob, 0, len(v.jobs))
	for i := range d.entries {
		e := &d.entries[i]
		if one := v.jobs[e]; one != nil {
			jobs = append(jobs, one)
		}
	}
	if err := d.digestAll(ctx, jobs, 1); err != nil {
		return nil, err
	}
	for _, one := range judged {
		if err := one.compare(); err != nil {
			return nil, err
		}
		v.report.Signatures = append(v.report.Signatures, one.out)
	}
	return v.report, nil
}

type verifier struct {
	ctx   context.Context
	check *sig.Check
	*document
	report *sig.Report
	jobs   map[*entry]*digestJob
	owes   map[*relationships][]obligation // in the order of the relationships
	left   map[*entry]bool                 // parts that Office leaves unsigned on purpose
	signed int                             // bytes of signature parts so far
	work   int64                           // bytes of parts that may still be transformed
}

func (v *verifier) add(code, text string, fatal bool) {
	f := sig.Finding{Code: code, Text: text}
	if fatal {
		f.Indication = sig.IndicationOf(code)
	}
	v.report.Findings = append(v.report.Findings, f)
}

// leftByDesign finds the parts that Office leaves unsigned: properties, preview pictures
// and custom XML, by the relationships that lead to them.
func (v *verifier) leftByDesign() {
	v.left = map[*entry]bool{}
	for _, rels := range v.rels {
		for i := range rels.list {
			r := &rels.list[i]
			if d := dutyOf(r.kind); d == neverSigned || d == relationshipOnly {
				if e := v.byKey[r.part]; e != nil && !r.external() {
					v.left[e] = true
				}
			}
		}
	}
}

// outside reports data in the archive that a reader of its directory does not see,
// signature parts that the origin does not refer to, and those that it refers to but that
// are missing.
func (v *verifier) outside() {
	var unclaimed int64
	for _, g := range v.zip.Gaps {
		if g.Entry {
			v.add(codeHidden, fmt.Sprintf("at offset %d the archive has an entry that is not in its directory; programs that read the archive from its beginning see it", g.Offset), true)
		}
		unclaimed += g.Length
	}
	for _, text := range v.untyped() {
		v.add(codeNoType, text+". Programs differ in whether they read it", true)
	}
	if unclaimed > 0 {
		v.add(codeHidden, fmt.Sprintf("%d bytes of the archive belong to no entry", unclaimed), false)
	}
	if rels := v.rels[v.originKeys[0]]; v.origin != "" && rels != nil {
		for i := range rels.list {
			r := &rels.list[i]
			if r.kind == relSignature && v.byKey[r.part] == nil && len(v.report.Findings) <= maxFindings {
				v.add(codeGone, fmt.Sprintf("the origin part refers to the signature part %s by the relationship %s, but the part is missing: a signature was removed", quote(r.target), quote(r.id)), true)
			}
		}
	}
	known := map[*entry]bool{}
	for _, e := range v.signatureParts() {
		known[e] = true
	}
	for i := range v.entries {
		e := &v.entries[i]
		if len(v.report.Findings) <= maxFindings && !e.IsDirectory() && !known[e] && v.types.of(e.key) == typeSignature {
			v.add(codeUnreachable, fmt.Sprintf("the origin part does not refer to the signature part %s, so it was not checked", quote("/"+e.Name)), false)
		}
	}
}

// verification is the check of one signature.
type verification struct {
	*verifier
	entry *entry
	out   sig.Signature
	refs  []*claim
}

// claim is one reference of a manifest.
type claim struct {
	entry  *entry
	digest []byte
	hash   *suite.Hash
	// rels are the relationships of a relationship transform. ids and kinds select the
	// signed ones.
	rels       *relationships
	ids, kinds map[string]bool
	// form is the canonical form in which an XML part was signed, nil if its bytes were
	// signed.
	form *xmltree.Method
	// flawed reports that the reference was invalid before its digest was compared.
	flawed bool
}

// keeps reports whether the relationship transform selects a relationship.
func (c *claim) keeps(r *relationship) bool { return c.ids[r.id] || c.kinds[r.kind] }

func (v *verification) add(code string, fatal bool, format string, args ...any) {
	f := sig.Finding{Code: code, Text: fmt.Sprintf(format, args...)}
	if fatal {
		f.Indication = sig.IndicationOf(code)
	}
	v.out.Findings = append(v.out.Findings, f)
}

// read checks the Signature and reads its manifest. It returns only errors of reading the
// document. Errors of the part are findings.
func (v *verification) read() error {
	name := quote("/" + v.entry.Name)
	data, err := v.xml(v.ctx, v.entry)
	if err != nil {
		if !isDocument(err) {
			return err
		}
		v.add(codeMalformed, true, "the signature part %s cannot be read: %s", name, err)
		return nil
	}
	if kind := v.types.of(v.entry.key); kind != typeSignature {
		v.add(codeMalformed, true, "the signature part %s is declared as %s; %s expected", name, quote(kind), typeSignature)
	}
	if v.signed += len(data); v.signed > maxSigned {
		v.add(codeWork, true, "the signature part %s was not checked: the signatures of the document have more than %d bytes", name, maxSigned)
		return nil
	}
	tree, err := parseXML(v.budget, v.entry.Name, data)
	if err != nil || !tree.Is(tree.Root(), nsDS, "Signature") {
		v.add(codeMalformed, true, "the signature part %s must be a Signature and nothing else", name)
		return nil
	}
	if n := count(tree); n > maxReferences {
		v.add(codeWork, true, "the signature has %d references in its SignedInfo; at most %d are followed", n, maxReferences)
		return nil
	}
	check := *v.check
	check.Document, check.Original, check.Hash = bytes.NewReader(data), nil, nil
	check.Strict, check.Expect = false, "" // these refer to parts of the package
	report, err := (&xmldsig.Format{MaxSize: maxXML}).Verify(v.ctx, &check)
	if err != nil {
		var e *sig.ErrDocument
		if !errors.As(err, &e) {
			return err
		}
		v.add(codeMalformed, true, "the signature part %s is not a signature: %s", name, err)
		return nil
	}
	if len(report.Signatures) != 1 {
		v.add(codeMalformed, true, "the signature part %s must be one Signature and nothing else", name)
		return nil
	}
	findings := v.out.Findings
	index, covers := v.out.Index, v.out.Covers
	v.out = report.Signatures[0]
	v.out.Index, v.out.Covers = index, covers
	// A signature part never covers itself as a whole.
	own := slices.DeleteFunc(slices.Concat(report.Findings, v.out.Findings), func(f sig.Finding) bool { return f.Code == sig.CodePart })
	v.out.Findings = append(findings, own...)
	m := &manifestReader{verification: v, tree: tree}
	m.read()
	return nil
}

// count returns the number of references in SignedInfo.
func count(t *xmltree.Tree) (n int) {
	if info := t.Child(t.Root(), nsDS, "SignedInfo"); info != xmltree.None {
		for c := range t.Elements(info) {
			if t.Is(c, nsDS, "Reference") {
				n++
			}
		}
	}
	return n
}

// compare checks the digests of the references and what they leave out.
func (v *verification) compare() error {
	intact := map[*entry]*claim{}
	for _, c := range v.refs {
		if c.flawed {
			continue
		}
		sum, err := v.sum(c)
		if err != nil {
			if !isDocument(err) {
				return err
			}
			code := codeFailed
			if errors.Is(err, errTooMuch) {
				code = codeWork
			}
			v.add(code, true, "%s: %s", quote("/"+c.entry.Name), err)
			continue
		}
		if !bytes.Equal(sum, c.digest) {
			what := "the part " + quote("/"+c.entry.Name) + " has"
			if c.rels != nil {
				what = "relationships in " + quote("/"+c.entry.Name) + " have"
			}
			v.add(codeDigest, true, "%s changed since it was signed", what)
			continue
		}
		intact[c.entry] = c
	}
	if v.refs != nil {
		v.coverage(intact)
	}
	return nil
}

// errTooMuch means that the signatures need more work than the limit for a document.
var errTooMuch = errors.New("too much work")

// sum returns the present digest of a reference's target. Parts that are signed byte by
// byte were digested before, once. Transformed parts are digested for every signature.
func (v *verification) sum(c *claim) ([]byte, error) {
	if c.rels != nil || c.form != nil {
		if err := v.budget.Spend(2 * c.entry.Size); err != nil {
			return nil, err
		}
		if v.work -= c.entry.Size; v.work < 0 {
			return nil, unfit(errTooMuch, "the signatures need more than %d bytes to be transformed", maxTransformed)
		}
	}
	switch {
	case c.rels != nil:
		return c.hash.Digest(c.rels.transformed(c.keeps)).Sum, nil
	case c.form != nil:
		data, err := v.content(v.ctx, c.entry.Entry, maxXML)
		if err != nil {
			return nil, err
		}
		t, err := parseXML(v.budget, c.entry.Name, data)
		if err != nil {
			return nil, err
		}
		sum := c.hash.New()
		if err := t.All().Canonicalize(sum, *c.form); err != nil {
			return nil, unfit(err, "has no canonical form")
		}
		return sum.Sum(nil), nil
	}
	job := v.jobs[c.entry]
	if job.err != nil {
		return nil, job.err
	}
	return job.sums[slices.Index(job.hashes, c.hash)], nil
}

// coverage describes what the signature covers and reports what it should cover but does
// not.
func (v *verification) coverage(intact map[*entry]*claim) {
	if v.budget.Spend(20*int64(len(v.entries)+len(v.refs)+v.relations)) != nil {
		return // Verify returns this error
	}
	var with, changed, relations []string
	for _, c := range v.refs {
		switch {
		case c.entry == nil:
		case intact[c.entry] != c:
			changed = append(changed, "/"+c.entry.Name)
		case c.rels != nil:
			relations = append(relations, "/"+c.entry.Name)
		default:
			with = append(with, "/"+c.entry.Name)
		}
	}
	whole := map[*entry]bool{} // covered parts, changed or not
	by := map[*relationships]*claim{}
	for _, c := range v.refs {
		if c.rels != nil {
			by[c.rels] = c
		} else if c.entry != nil {
			whole[c.entry] = true
		}
	}
	var without, loose, relaxed []string
	for i := range v.entries {
		e := &v.entries[i]
		source, isRels := sourceOf(e.key)
		if isRels && v.rels[source] != nil || e.IsDirectory() || whole[e] || e.key == key(contentTypesName) || v.isOfSignatures(e.key) {
			continue
		}
		without = append(without, "/"+e.Name)
		if !v.left[e] {
			loose = append(loose, "/"+e.Name)
		}
	}
	for _, source := range v.sources {
		rels := v.rels[source]
		if source != "" && v.isOfSignatures(source) {
			continue
		}
		c, all := by[rels], whole[v.byKey[key(rels.name)]]
		for i, o := range v.owes[rels] {
			r := &rels.list[i]
			covered := all || c != nil && c.keeps(r)
			if o.duty == neverSigned || covered && (o.part == nil || whole[o.part]) {
				continue
			}
			where := fmt.Sprintf("%s of %s", quote(r.id), quote("/"+rels.source))
			switch {
			case o.duty == unknownKind:
				v.add(codeUnknown, true, "the relationship %s, to %s, is of the unknown type %s, and it or its part is not signed: it may have been added later", where, quote(r.target), quote(r.kind))
			case o.duty != signedByOffice:
				if len(relaxed) <= maxFindings {
					relaxed = append(relaxed, where)
				}
			case !covered:
				v.add(codeRelationship, true, "the relationship %s, to %s, is not signed: it was added later, or the signature never covered the whole document", where, quote(r.target))
			default:
				v.add(codeUncovered, true, "the part %s is not signed, though the relationship %s to it is", quote("/"+o.part.Name), where)
			}
			if len(v.out.Findings) > maxFindings {
				v.add(codeWork, true, "there are more findings about the signature, which are not listed")
				return
			}
		}
	}
	v.part(with, loose, relaxed)
	v.out.Covers = fmt.Sprintf("%d parts: %s; relationships in %d parts: %s", len(with), list(with), len(relations), list(relations))
	if changed != nil {
		v.out.Covers += "; changed since: " + list(changed)
	}
	if without != nil {
		v.out.Covers += "; not covered: " + list(without)
	}
}

// part adds the finding that the signature covers only a part of the document. The reason
// is loose parts, which it does not cover and which Office does not leave unsigned on
// purpose, or relaxed relationships, which Office does not sign either, or that it does
// not cover the part that the caller expects.
func (v *verification) part(with, loose, relaxed []string) {
	missing := v.check.Expect != "" && !slices.Contains(with, v.check.Expect)
	if loose == nil && relaxed == nil && !missing {
		return
	}
	f := v.check.CoversPart(with...)
	f.Headline = ""
	var says []string
	if loose != nil {
		f.Headline = "does not cover " + sig.Printable(short(loose), maxPrinted, '?')
		says = append(says, "parts that no signed relationship leads to: "+list(loose))
	}
	if relaxed != nil {
		says = append(says, "relationships that Office does not sign either: "+list(relaxed))
	}
	if missing {
		f.Headline = "does not cover " + sig.Printable(v.check.Expect, maxPrinted, '?')
		says = append(says, quote(v.check.Expect)+", which was expected")
	}
	f.Text = "not signed are " + strings.Join(says, "; ")
	v.out.Findings = append(v.out.Findings, f)
}

// short joins the first names of a list for a headline.
func short(names []string) string {
	const most = 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// maxPrinted is how many runes of a text from the document a headline may have.
const maxPrinted = 300

// maxFindings is how many findings one signature may have before the list is cut.
const maxFindings = 200

// list joins names. Of a long list it uses the first ones.
func list(names []string) string {
	const most = 40
	if len(names) == 0 {
		return "none"
	}
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
		names = names[:most]
	}
	return strings.Join(names, ", ") + more
}
