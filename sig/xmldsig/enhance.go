// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/cades"
	"tamga/sig/evidence"
	"tamga/sig/xmltree"
)

// Enhance implements sig.Enhancer. It reads the parameters XAdESType, TSPAddress and SignatureIndex:
//
//	T    a time stamp over the value
//	LT   also CertificateValues, RevocationValues and, for time stamps, TimeStampValidationData
//	LTA  also an ArchiveTimeStamp of XAdES 1.4.1 over all of it; each call adds one
//
// Everything is added after the unsigned properties that a signature has, so any program may have made it.
// A signature is verified first, except for the trust in its certificate. Those that have the level stay as
// they are, but for LTA. A plain XMLDSig signature is refused, because it has no properties to put anything
// into. A signature is also refused if another signature of the document covers it, because the change would
// break that one.
func (f *Format) Enhance(ctx context.Context, job *sig.Job) (sig.Result, error) {
	goal := sig.Goal{Index: -1}
	result, err := sig.Within(ctx, job.Document, func(ctx context.Context) (sig.Result, error) { return f.enhance(ctx, job, &goal) })
	if err != nil {
		return nil, err
	}
	return sig.Reached(ctx, f, job, result, &goal)
}

func (f *Format) enhance(ctx context.Context, job *sig.Job, goal *sig.Goal) (sig.Result, error) {
	q := job.Params.Request()
	r := q.ForJob(job)
	address := ""
	to := r.Choice("XAdESType", xadesTypes, xadesNone)
	if to.Level < sig.LevelTime {
		r.Fault("XAdESType", "is "+to.Name+" or absent; T, LT or LTA expected, because Enhance never lowers a level")
	} else {
		q.Level = to.Level
		address = stamper(q, job, r, to.Name)
	}
	index := readIndex(r)
	if err := r.Err(); err != nil {
		return nil, err
	}
	_, b := budget.Of(ctx, 0)
	data, err := read(b, job.Document, f.maxSigned())
	if err != nil {
		return nil, err
	}
	e := &enhancement{format: f, ctx: ctx, job: job, address: address, options: f.options(b)}
	if err := e.read(data); err != nil {
		return nil, err
	}
	goal.Level, goal.Index = to.Level, index
	chosen, err := e.choose(index, to.Level)
	if err != nil {
		return nil, err
	}
	if err := e.raise(chosen, to.Level); err != nil {
		return nil, err
	}
	if bytes.Equal(e.tree.Original(), data) {
		return sig.Parts(sig.Section(job.Document, 0, job.Document.Size())), nil
	}
	return sig.Parts(sig.Bytes(e.tree.Original())), nil
}

// lifted raises the signature with a value in a new document above the level T.
func (f *Format) lifted(ctx context.Context, job *sig.Job, address, value string, result *sig.Assembly, to sig.Level, files Files) (sig.Result, error) {
	_, b := budget.Of(ctx, 0)
	data, err := read(b, result, f.maxSigned())
	if err != nil {
		return nil, err
	}
	e := &enhancement{format: f, ctx: ctx, job: job, address: address, options: f.options(b), files: files}
	if err := e.read(data); err != nil {
		return nil, err
	}
	for i, one := range e.all {
		if one.sig != nil && strings.TrimSpace(e.tree.StringValue(one.sig.value)) == value {
			if err := e.raise([]int{i}, to); err != nil {
				return nil, err
			}
			return sig.Parts(sig.Bytes(e.tree.Original())), nil
		}
	}
	return nil, errors.New("xmldsig: the new signature is not in the result")
}

// enhancement is the work on one document whose signatures are raised.
type enhancement struct {
	format  *Format
	ctx     context.Context
	job     *sig.Job
	address string // of the time-stamp service
	options xmltree.Options
	files   Files // beside the document; nil: there are none

	tree      *xmltree.Tree // of the document as it is now
	all       []*verification
	collector *evidence.Collector
}

// read parses a later version of the document and verifies all its signatures, except for the trust in
// their certificates.
func (e *enhancement) read(data []byte) error {
	t, err := xmltree.Parse(data, e.options)
	if err != nil {
		return &sig.ErrDocument{What: "Document", Text: "an XML document with signatures expected", Err: err, OtherKind: !LooksLikeXML(data)}
	}
	all, err := e.judge(t)
	if err == nil {
		e.tree, e.all = t, all
	}
	return err
}

func (e *enhancement) judge(t *xmltree.Tree) ([]*verification, error) {
	check := &sig.Check{Document: e.job.Document, Certificate: e.job.Certificate, Intermediates: e.job.Chain, Roots: e.job.Roots, At: e.job.Time}
	v := &verifier{ctx: e.ctx, check: check, tree: t, options: e.options, report: &sig.Report{}, places: maxPlaces, files: e.files}
	var out []*verification
	nodes := signatures(t)
	if len(nodes) > maxSignatures {
		return nil, unfit(fmt.Sprintf("has %d signatures, at most %d expected", len(nodes), maxSignatures), nil)
	}
	var sound []*signature
	over, tops := countersigned(t, nodes), 0
	for i, n := range nodes {
		one := &verification{verifier: v, out: sig.Signature{Index: tops, Level: levelPlain, BestTime: check.At}}
		if over[i] >= 0 {
			one.over = out[over[i]].sig
			one.nested = true
		} else {
			tops++
		}
		s, err := readSignature(t, n, i)
		if err != nil {
			one.flaw(err)
		} else {
			one.sig = s
			sound = append(sound, s)
		}
		out = append(out, one)
	}
	v.resolve = newResolver(t, sound)
	for _, one := range out {
		if one.sig == nil {
			continue
		}
		if err := one.judgeItself(); err != nil {
			return nil, err
		}
	}
	return out, v.budget().Err()
}

// choose returns which of the signatures are raised: the one at the index, or all if index is -1.
// Countersignatures are not counted and stay as they are.
func (e *enhancement) choose(index int, to sig.Level) (chosen []int, err error) {
	var tops []int
	for i, one := range e.all {
		if !one.nested {
			tops = append(tops, i)
		}
	}
	switch {
	case len(tops) == 0:
		return nil, sig.Unsigned()
	case index >= len(tops):
		return nil, &sig.ErrParams{Faults: []sig.Fault{{Key: "SignatureIndex", Text: fmt.Sprintf("is %d, but the document has %d signatures, the first with index 0", index, len(tops))}}}
	case index >= 0:
		tops = tops[index : index+1]
	}
	for _, i := range tops {
		one := e.all[i]
		refuse := func(format string, args ...any) ([]int, error) {
			return nil, unfit(fmt.Sprintf("signature %d ", one.out.Index)+fmt.Sprintf(format, args...), nil)
		}
		if i := slices.IndexFunc(one.out.Findings, func(f sig.Finding) bool { return f.Indication.Verdict() == sig.Failed }); i >= 0 || one.out.Signer == nil {
			if i < 0 {
				return refuse("is not valid and is not enhanced: its certificate was not found")
			}
			return refuse("is not valid and is not enhanced: %s", one.out.Findings[i].Text)
		}
		if broken := slices.IndexFunc(one.stamps, func(s *stamped) bool { return s.archive && s.err != nil }); broken >= 0 {
			return refuse("has an archive time stamp that is invalid, and is not enhanced: %s", one.stamps[broken].err)
		}
		switch {
		case one.out.Level == levelPlain:
			return refuse("is not XAdES-BES: it has no signed properties that say by which certificate it was made, and is not enhanced")
		case to > sig.LevelTime || one.made().IsZero():
			chosen = append(chosen, i)
		}
	}
	return chosen, nil
}

// counts reports whether a time stamp is one to build on. With anchors it must lead to one of them, or any caller could
// have made it. One that has lapsed counts, because it is the reason to refuse what comes too late.
func (v *verification) counts(s *stamped) bool {
	return s.err == nil && (len(v.check.Roots) == 0 || s.result.Passed() || s.lapsed)
}

// errUntrustedStamp is the error of a new time stamp that does not count.
var errUntrustedStamp = &sig.ErrEvidence{What: "time stamp", Text: "the new one is not by a service that leads to a trusted root"}

// made returns the time of the earliest time stamp of a signature that counts, zero without one.
func (v *verification) made() (first time.Time) {
	for _, s := range v.stamps {
		if v.counts(s) && (first.IsZero() || s.token.Info.Time.Before(first)) {
			first = s.token.Info.Time
		}
	}
	return first
}

// raise adds to the chosen signatures what a level needs. Each step sees the document with the one before.
func (e *enhancement) raise(chosen []int, to sig.Level) error {
	if len(chosen) == 0 {
		return nil
	}
	if err := e.check(chosen); err != nil {
		return err
	}
	for _, step := range []struct {
		level sig.Level
		add   func(*verification) (string, error)
	}{{sig.LevelTime, e.stamp}, {sig.LevelLongTerm, e.values}, {sig.LevelArchive, e.archive}} {
		if step.level > to {
			break
		}
		var edits []xmltree.Edit
		for _, i := range chosen {
			text, err := step.add(e.all[i])
			if err != nil {
				return err
			}
			if text != "" {
				edits = append(edits, stampEdit(e.tree, propertiesOf(e.all[i].sig)[0], text))
			}
		}
		if len(edits) == 0 {
			continue
		}
		if err := e.apply(edits); err != nil {
			return err
		}
	}
	for _, i := range chosen {
		one := e.all[i]
		n := len(one.stamps)
		if n == 0 || one.stamps[n-1].err != nil {
			return fmt.Errorf("xmldsig: the result cannot be verified again: %v", one.out.Findings)
		}
		if len(e.job.Roots) > 0 && !one.counts(one.stamps[n-1]) {
			return errUntrustedStamp
		}
	}
	return nil
}

// apply reads the document again with edits.
func (e *enhancement) apply(edits []xmltree.Edit) error {
	spliced, err := e.tree.Splice(edits...)
	if err != nil {
		return err
	}
	if err := e.options.Budget.Hold(spliced.Size()); err != nil {
		return err
	}
	return e.read(spliced.Bytes())
}

// stamp returns the time stamp over the value that a signature lacks.
func (e *enhancement) stamp(one *verification) (string, error) {
	if !one.made().IsZero() {
		return "", nil
	}
	d, err := canonicalDigest(e.tree.Subtree(one.sig.value), xmltree.Method{Form: xmltree.Exclusive}, one.hash())
	if err != nil {
		return "", err
	}
	token, err := timeStamp(e.ctx, e.job, e.address, d)
	if err != nil {
		return "", err
	}
	return signatureTimeStamp(token, xadesDeclaration+dsDeclaration), nil
}

// hash returns the algorithm of new time stamps.
func (v *verification) hash() *suite.Hash {
	if s := v.out.Signer.Suite; s != nil && !s.Hash.Weak() {
		return s.Hash
	}
	return suite.Streebog256
}

// below returns the time stamps of a signature as its next archive time stamp sees them.
func (v *verification) below() (list []evidence.Stamp) {
	covered := -1
	for _, s := range v.stamps {
		if s.archive && v.counts(s) {
			covered = s.place
		}
	}
	for _, s := range v.stamps {
		if v.counts(s) {
			list = append(list, evidence.Stamp{Authority: s.signer, Made: s.token.Info.Time, Others: s.token.Certificates(), Covered: s.place < covered})
		}
	}
	return list
}

// values returns the properties with the evidence that a signature and its time stamps lack.
func (e *enhancement) values(one *verification) (string, error) {
	have, first, signer := one.carried.found(-1), one.made(), one.out.Signer
	for _, s := range one.stamps {
		if s.err == nil {
			own := cades.Carried(s.token.Message)
			have.Certificates, have.CRLs, have.OCSP = slices.Concat(have.Certificates, own.Certificates), slices.Concat(have.CRLs, own.CRLs), slices.Concat(have.OCSP, own.OCSP)
		}
	}
	if first.IsZero() {
		return "", errUntrustedStamp
	}
	if e.collector == nil {
		e.collector = evidence.New(e.job.Evidence, slices.Concat(have.Certificates, e.job.Chain), e.format.Rules)
	}
	if first.After(signer.NotAfter) {
		return "", unfit(fmt.Sprintf("signature %d cannot be raised: %s ended at %s, before its first time stamp (%s)", one.out.Index, evidence.Name(signer),
			signer.NotAfter.UTC().Format(time.RFC3339), first.UTC().Format(time.RFC3339)), nil)
	}
	var values evidence.Values
	for _, of := range slices.Concat([]evidence.Stamp{{Authority: signer, Made: first}}, one.below()) {
		subject := of.Subject()
		if of.Authority == signer && of.Others == nil {
			subject.Purpose = evidence.ForSigner
		}
		if of.Covered {
			continue
		}
		if err := one.budget().Spend(sig.Price(of.Authority)); err != nil {
			return "", err
		}
		if err := e.collector.Supply(e.ctx, &values, have, subject); err != nil {
			return "", err
		}
	}
	// The values of the signer have elements of their own, which may be there once.
	own := !slices.ContainsFunc(unsignedProperties(one.sig), func(n xmltree.Node) bool {
		return e.tree.Is(n, nsXAdES, "CertificateValues") || e.tree.Is(n, nsXAdES, "RevocationValues") || e.tree.Is(n, nsLater, "ArchiveTimeStamp") || e.tree.Is(n, nsXAdES, "ArchiveTimeStamp")
	})
	has := map[string]bool{}
	for _, c := range one.carried.certs {
		has[string(c.Raw)] = true
	}
	var signers, stamps valueTexts
	for _, part := range []struct {
		list []evidence.Value
		kind int
	}{{values.Certificates, 0}, {values.CRLs, 1}, {values.OCSP, 2}} {
		for _, v := range part.list {
			if part.kind == 0 && has[string(v.DER)] {
				continue
			}
			to := &stamps
			if own && v.Purpose == evidence.ForSigner {
				to = &signers
			}
			der := v.DER
			if part.kind == 2 {
				der = ocsp.CreateResponse(der)
			}
			to[part.kind] = append(to[part.kind], base64.StdEncoding.EncodeToString(der))
		}
	}
	text := signers.render(xadesDeclaration)
	if inside := stamps.render(""); inside != "" {
		text += "<later:TimeStampValidationData" + laterDeclaration + xadesDeclaration + ">" + inside + "</later:TimeStampValidationData>"
	}
	return text, nil
}

// laterDeclaration declares the prefix of properties of XAdES 1.4.1.
const laterDeclaration = ` xmlns:later="` + nsLater + `"`

// valueTexts are certificates, lists and answers as Base64.
type valueTexts [3][]string

// render returns CertificateValues and RevocationValues with what there is.
func (v *valueTexts) render(declaration string) string {
	wrap := func(name, declaration, content string) string {
		if content == "" {
			return ""
		}
		return "<xades:" + name + declaration + ">" + content + "</xades:" + name + ">"
	}
	each := func(name string, list []string) string {
		var b strings.Builder
		for _, text := range list {
			b.WriteString(wrap(name, "", text))
		}
		return b.String()
	}
	return wrap("CertificateValues", declaration, each("EncapsulatedX509Certificate", v[0])) +
		wrap("RevocationValues", declaration, wrap("CRLValues", "", each("EncapsulatedCRLValue", v[1]))+wrap("OCSPValues", "", each("EncapsulatedOCSPValue", v[2])))
}

// archive returns an archive time stamp over all that a signature has.
func (e *enhancement) archive(one *verification) (string, error) {
	d, err := one.archiveDigest(len(unsignedProperties(one.sig)), true, xmltree.Method{Form: xmltree.Exclusive}, one.hash())
	if err != nil {
		return "", err
	}
	s, err := sig.Stamp(e.ctx, e.job.Evidence, e.address, d)
	if err != nil {
		return "", err
	}
	if err := evidence.InTime(s.Token().Info.Time, one.below()); err != nil {
		return "", err
	}
	return "<later:ArchiveTimeStamp" + laterDeclaration + xadesDeclaration + dsDeclaration + ">" + algorithm("CanonicalizationMethod", algExcC14N) +
		"<xades:EncapsulatedTimeStamp>" + base64.StdEncoding.EncodeToString(s.Token().Raw) + "</xades:EncapsulatedTimeStamp></later:ArchiveTimeStamp>", nil
}

// check tests in advance, with a placeholder instead of the new properties, that each signature that was valid
// before stays valid, and each archive time stamp, too.
func (e *enhancement) check(chosen []int) error {
	var edits []xmltree.Edit
	for _, i := range chosen {
		placeholder := "<xades:Other" + xadesDeclaration + "></xades:Other>"
		edits = append(edits, stampEdit(e.tree, propertiesOf(e.all[i].sig)[0], placeholder))
	}
	spliced, err := e.tree.Splice(edits...)
	if err != nil {
		return err
	}
	t, err := xmltree.Parse(spliced.Bytes(), e.options)
	if err != nil {
		return fmt.Errorf("xmldsig: the document with time stamps cannot be read: %w", err)
	}
	after, err := e.judge(t)
	if err != nil {
		return err
	}
	var which []string
	for _, i := range chosen {
		which = append(which, fmt.Sprint(e.all[i].out.Index))
	}
	for i, one := range e.all {
		// A signature whose properties change may lose its time stamps.
		if one.out.Holds() && !after[i].out.Holds() || len(one.stamps) != len(after[i].stamps) {
			return unfit(fmt.Sprintf("signature %d covers the place of the time stamp of signature %s, which would make it invalid", i, strings.Join(which, ", ")), nil)
		}
		for k, s := range one.stamps {
			if s.err == nil && after[i].stamps[k].err != nil {
				return unfit(fmt.Sprintf("a time stamp of signature %d covers the place of the time stamp of signature %s, which would make it invalid", i, strings.Join(which, ", ")), nil)
			}
		}
	}
	return nil
}
