// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/xmltree"
)

// levelPlain is the level of a signature without XAdES.
const levelPlain = "XMLDSig"

// Verify implements sig.Verifier. It checks every Signature element of the document.
// Covers of a result has every covered element with its path, so that a moved element is
// visible.
func (f *Format) Verify(ctx context.Context, c *sig.Check) (*sig.Report, error) {
	return sig.Within(ctx, c.Document, func(ctx context.Context) (*sig.Report, error) { return f.verify(ctx, c) })
}

func (f *Format) verify(ctx context.Context, c *sig.Check) (*sig.Report, error) {
	_, b := budget.Of(ctx, 0)
	data, err := read(b, c.Document, f.maxSigned())
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t, err := xmltree.Parse(data, f.options(b))
	if err != nil {
		return nil, unfit("an XML document with signatures expected", err)
	}
	v := &verifier{ctx: ctx, check: c, tree: t, options: f.options(b), report: &sig.Report{}, places: maxPlaces}
	if c.Original != nil || c.Hash != nil {
		v.report.Findings = append(v.report.Findings, sig.Finding{Code: codeNotLookedAt, Text: "the given original document or hash value was ignored: a signature in XML contains or refers to what it signs"})
	}
	if err := v.all(); err != nil {
		return nil, err
	}
	return v.report, nil
}

type verifier struct {
	ctx     context.Context
	check   *sig.Check
	tree    *xmltree.Tree
	options xmltree.Options
	report  *sig.Report
	resolve *resolver
	places  int // how many more line numbers may be computed
	// expect is the element that the caller expects to be covered. It is valid if located
	// is set.
	expect  xmltree.Node
	located bool
}

// all checks every signature.
func (v *verifier) all() error {
	nodes := signatures(v.tree)
	if len(nodes) == 0 {
		v.report.Findings = append(v.report.Findings, sig.Finding{Code: codeNoSignature, Text: "the document has no signature: it has no element Signature of the namespace " + nsDS, Indication: indications.Of(codeNoSignature)})
		return nil
	}
	if len(nodes) > maxSignatures {
		v.report.Findings = append(v.report.Findings, sig.Finding{Code: codeMany, Text: fmt.Sprintf("the document has %d signatures; only the first %d were checked", len(nodes), maxSignatures), Indication: indications.Of(codeMany)})
		nodes = nodes[:maxSignatures]
	}
	read := make([]*signature, len(nodes))
	flaws := make([]error, len(nodes))
	var sound []*signature
	for i, n := range nodes {
		if read[i], flaws[i] = readSignature(v.tree, n, i); flaws[i] == nil {
			sound = append(sound, read[i])
		}
	}
	v.resolve = newResolver(v.tree, sound)
	judged := make([]*judgement, len(nodes))
	over := countersigned(v.tree, nodes)
	for i := range nodes {
		if err := v.budget().Err(); err != nil {
			return err
		}
		j := &judgement{verifier: v, sig: read[i], out: sig.Signature{Level: levelPlain, Covers: "nothing that could be checked", BestTime: v.check.At}}
		if over[i] >= 0 {
			j.nested, j.over = true, read[over[i]]
		}
		if flaws[i] != nil {
			j.flaw(flaws[i])
		} else if err := j.judge(); err != nil {
			return err
		}
		judged[i] = j
	}
	v.report.Signatures = nested(judged, over)
	return nil
}

func (v *verifier) budget() *budget.Budget { return v.tree.Budget() }

// judgement is the check of one signature.
type judgement struct {
	*verifier
	sig *signature
	// nested reports whether this is a countersignature. over is the signature that
	// contains it, nil if that one cannot be read.
	nested  bool
	over    *signature
	out     sig.Signature
	carried carried
	// intact are the references whose digest matches, with their targets.
	intact map[*reference]xmltree.Node
}

func (j *judgement) add(code, text string, fatal bool) {
	f := sig.Finding{Code: code, Text: text}
	if fatal {
		f.Indication = indications.Of(code)
	}
	j.out.Findings = append(j.out.Findings, f)
}

// flaw adds an error as a fatal finding.
func (j *judgement) flaw(err error) { j.tell(err, true) }

// tell adds an error as a finding. The first findings of a document have the line: to
// count lines takes a pass over the document.
func (j *judgement) tell(err error, fatal bool) {
	var f *flaw
	if !errors.As(err, &f) {
		j.add(codeFailed, err.Error(), fatal)
		return
	}
	text := f.text
	if j.places > 0 {
		j.places--
		text = err.Error()
	}
	j.add(f.code, text, fatal)
}

func (j *judgement) judge() error {
	if err := j.judgeItself(); err != nil {
		return err
	}
	j.trust()
	return nil
}

// judgeItself checks everything except the trust in the signer's certificate.
func (j *judgement) judgeItself() error {
	s := j.sig
	j.out.Scheme = s.scheme
	if isBlank(s.tree, s.value) {
		j.add(codeEmpty, "the signature is a template that was not filled", true)
	}
	j.intact = map[*reference]xmltree.Node{}
	if err := j.references(); err != nil {
		return err
	}
	j.value()
	if j.out.Signer != nil {
		j.properties()
	}
	j.judgeHashes()
	return nil
}

// references checks the signed data and describes it.
func (j *judgement) references() error {
	var covers coverage
	for _, r := range j.sig.refs {
		if err := j.budget().Err(); err != nil {
			return err
		}
		if err := j.reference(r, &covers); err != nil {
			return err
		}
	}
	j.out.Covers = strings.Join(covers.words, "; ")
	switch {
	case j.nested:
		j.countersigns()
	case !covers.whole:
		j.out.Findings = append(j.out.Findings, j.part(&covers))
	}
	return nil
}

// reference checks one reference. It returns only errors of the budget.
func (j *judgement) reference(r *reference, covers *coverage) error {
	t := j.tree
	to, err := j.resolve.resolve(r)
	if err != nil {
		j.flaw(err)
		covers.words = append(covers.words, "nothing by URI="+quote(r.uri))
		return nil
	}
	if j.unusualOrder(r) {
		j.add(codeOrder, fmt.Sprintf("reference %s: enveloped-signature comes after a canonical form; the Signature with the same index in the result was removed, as programs that write this order do", quote(r.uri)), false)
	}
	if r.hash == nil {
		j.flaw(r.unknownHash(t))
		j.cover(covers, r, to, j.extentOf(r, to, nil))
		return nil
	}
	d := digester{ctx: j.ctx, sig: j.sig, ref: r, options: j.options}
	got, size, err := d.digest(to)
	if err := j.budget().Err(); err != nil {
		return err
	}
	extent := j.extentOf(r, to, d.selected)
	j.cover(covers, r, to, extent)
	if err != nil {
		j.flaw(err)
		return nil
	}
	if size == 0 {
		j.flaw(flawAt(t, r.node, codeNothing, "the result of the reference's transforms is empty, so nothing is signed"))
		return nil
	}
	want, err := base64Text(t, r.digest, maxValue)
	switch {
	case err != nil:
		j.flaw(err)
		return nil
	case !bytes.Equal(got.Sum, want):
		j.flaw(flawAt(t, r.node, codeDigest, "the target of the reference URI=%s has changed since it was signed: %s", quote(r.uri), covers.words[len(covers.words)-1]))
		return nil
	}
	j.intact[r] = to.node
	for _, p := range extent.tops {
		if f := j.misplaced(r, p.node); f != nil {
			j.flaw(f)
			break
		}
	}
	return nil
}

// judgeHashes checks the hash functions of the signature for the time at which it is
// proved to have existed.
func (j *judgement) judgeHashes() {
	var used []*suite.Hash
	if j.sig.scheme != nil {
		used = append(used, j.sig.scheme.Hash)
	}
	for _, r := range j.sig.refs {
		if r.hash != nil {
			used = append(used, r.hash)
		}
	}
	for i, h := range used {
		if f, weak := sig.WeakHash(h, j.out.BestTime); weak && !slices.Contains(used[:i], h) {
			j.out.Findings = append(j.out.Findings, f)
		}
	}
}

// unusualOrder reports whether enveloped-signature comes after a transform into bytes.
func (j *judgement) unusualOrder(r *reference) bool {
	binary := false
	for _, tr := range r.transforms {
		if binary && tr.algorithm == algEnveloped {
			return true
		}
		_, isForm := canonicalForms[tr.algorithm]
		binary = binary || isForm || tr.algorithm == algSMEV
	}
	return false
}

// value checks the signature value over SignedInfo and finds the signer.
func (j *judgement) value() {
	s, t := j.sig, j.tree
	var unreadable []*flaw
	j.carried, unreadable = readKeyInfo(s)
	for _, f := range unreadable {
		j.tell(f, false)
	}
	if s.scheme == nil {
		j.flaw(flawAt(t, t.Child(s.info, nsDS, "SignatureMethod"), codeAlgorithm, "algorithm not supported: SignatureMethod %s", quote(s.algorithm)))
		if len(j.carried.certs) == 1 {
			j.out.Signer = j.carried.certs[0]
		}
		return
	}
	d, err := canonicalDigest(t.Subtree(s.info), s.method, s.scheme.Input())
	if err != nil {
		j.flaw(flawAt(t, s.info, codeMalformed, "SignedInfo: %s", err))
		return
	}
	raw, err := base64Text(t, s.value, maxValue)
	if err != nil {
		j.flaw(err)
		return
	}
	j.find(d, raw)
}

// find searches for the certificate whose key made the value: among those in the
// signature and the one that the caller names or, if the signature has none, among all
// that the caller has. If none matches, the finding names one of the certificates that
// were named.
func (j *judgement) find(d suite.Digest, raw []byte) {
	s := j.sig
	named := slices.Clone(j.carried.certs)
	if j.check.Certificate != nil {
		named = append(named, j.check.Certificate)
	}
	candidates := named
	if len(j.carried.certs) == 0 {
		candidates = slices.Concat(named, j.check.Intermediates)
	}
	var of *x509gost.Certificate // the first named certificate whose key matches the algorithm
	var why error
	for i, c := range candidates {
		if c.PublicKey == nil || s.scheme.Accepts(c.Key()) != nil {
			continue
		}
		if j.budget().Spend(sig.Price(c)) != nil {
			return // the caller sees the error of the budget
		}
		err := verifyXML(s.scheme, c, d, raw)
		if err == nil {
			j.out.Signer = c
			return
		}
		if of == nil && i < len(named) {
			of, why = c, err
		}
	}
	switch {
	case len(named) == 0:
		j.add(codeNoCert, "the signer's certificate is missing: it is neither in KeyInfo nor in CertificateValues, and none was given", true)
		return
	case of != nil:
		text := "it was made by another key, or SignedInfo has changed"
		if !errors.Is(why, suite.ErrSignature) {
			text = why.Error()
		}
		j.flaw(flawAt(j.tree, s.value, codeValue, "the signature value does not match SignedInfo and the certificate %s: %s", quote(of.Subject.String()), text))
	case named[0].PublicKey == nil:
		of = named[0]
		j.flaw(flawAt(j.tree, s.info, codeAlgorithm, "the signature is by %s; the certificate's key: %s", s.scheme.Name, of.KeyError))
	default:
		of = named[0]
		key := of.Key()
		j.flaw(flawAt(j.tree, s.info, codeKeyMismatch, "the signature is by %s, the certificate's key is %s", s.scheme.Name, key.Name()))
	}
	j.out.Signer = of
}

// verifyXML verifies a value in the form of SignatureValue.
func verifyXML(s *suite.Scheme, c *x509gost.Certificate, d suite.Digest, raw []byte) error {
	value, err := s.FromXML(c.Key(), raw)
	if err != nil {
		return err
	}
	return c.VerifyBy(s, d, value)
}

// trust checks the signer's certificate.
func (j *judgement) trust() {
	if j.out.Signer == nil {
		return
	}
	path, found := j.check.Trust(j.ctx, j.out.Signer, j.out.BestTime, sig.Found{Certificates: j.carried.certs, CRLs: j.carried.crls})
	j.out.Chain, j.out.Findings = path, append(j.out.Findings, found...)
}

// claimed parses an XML Schema time. A time without a zone is taken as UTC.
func claimed(text string) (time.Time, bool) {
	text = strings.TrimSpace(text)
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}
