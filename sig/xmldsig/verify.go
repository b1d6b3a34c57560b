// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"
	"time"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/evidence"
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
	return f.verifyBeside(ctx, c, nil, nil)
}

// verifyBeside is verify with files beside the document; nil: there are none.
func (f *Format) verifyBeside(ctx context.Context, c *sig.Check, files Files, beside *Beside) (*sig.Report, error) {
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
	v := &verifier{ctx: ctx, check: c, tree: t, options: f.options(b), report: &sig.Report{}, places: maxPlaces, files: files, beside: beside}
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
	places  int     // how many more line numbers may be computed
	files   Files   // beside the document; nil: there are none
	beside  *Beside // what the signatures cover of files; nil without files
	// expect is the element that the caller expects to be covered. It is valid if located
	// is set.
	expect  xmltree.Node
	located bool
}

// all checks every signature.
func (v *verifier) all() error {
	nodes := signatures(v.tree)
	if len(nodes) == 0 {
		v.report.Findings = append(v.report.Findings, sig.Finding{Code: codeNoSignature, Text: "the document has no signature: it has no element Signature of the namespace " + nsDS, Indication: sig.IndicationOf(codeNoSignature)})
		return nil
	}
	if len(nodes) > maxSignatures {
		v.report.Findings = append(v.report.Findings, sig.Finding{Code: codeMany, Text: fmt.Sprintf("the document has %d signatures; only the first %d were checked", len(nodes), maxSignatures), Indication: sig.IndicationOf(codeMany)})
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
	judged := make([]*verification, len(nodes))
	over := countersigned(v.tree, nodes)
	for i := range nodes {
		if err := v.budget().Err(); err != nil {
			return err
		}
		one := &verification{verifier: v, sig: read[i], out: sig.Signature{Level: levelPlain, Covers: "nothing that could be checked", BestTime: v.check.At}}
		if over[i] >= 0 {
			one.nested, one.over = true, read[over[i]]
		}
		if flaws[i] != nil {
			one.flaw(flaws[i])
		} else if err := one.judge(); err != nil {
			return err
		}
		judged[i] = one
	}
	v.report.Signatures = nested(judged, over)
	if v.beside != nil {
		for i, one := range judged {
			if over[i] < 0 {
				v.beside.Names = append(v.beside.Names, one.names)
			}
		}
	}
	return nil
}

func (v *verifier) budget() *budget.Budget { return v.tree.Budget() }

// verification is the check of one signature.
type verification struct {
	*verifier
	sig *signature
	// nested reports whether this is a countersignature. over is the signature that
	// contains it, nil if that one cannot be read.
	nested  bool
	over    *signature
	out     sig.Signature
	carried carried
	// stamps are the time stamps, and prefixes the states of hashes after what all archive time stamps
	// begin with.
	stamps   []*stamped
	prefixes map[prefixKey]hash.Hash
	// archived is the place of the last valid archive time stamp among the unsigned properties, -1 for none.
	archived int
	// intact are the references whose digest matches, with their targets.
	intact map[*reference]xmltree.Node
	names  []string // of the files that it covers unchanged
}

func (v *verification) add(code, text string, fatal bool) {
	f := sig.Finding{Code: code, Text: text}
	if fatal {
		f.Indication = sig.IndicationOf(code)
	}
	v.out.Findings = append(v.out.Findings, f)
}

// flaw adds an error as a fatal finding.
func (v *verification) flaw(err error) { v.tell(err, true) }

// tell adds an error as a finding. The first findings of a document have the line: to
// count lines takes a pass over the document.
func (v *verification) tell(err error, fatal bool) {
	var f *flaw
	if !errors.As(err, &f) {
		v.add(codeFailed, err.Error(), fatal)
		return
	}
	text := f.text
	if v.places > 0 {
		v.places--
		text = err.Error()
	}
	v.add(f.code, text, fatal)
}

func (v *verification) judge() error {
	if err := v.judgeItself(); err != nil {
		return err
	}
	v.trust()
	return nil
}

// judgeItself checks everything except the trust in the signer's certificate.
func (v *verification) judgeItself() error {
	s := v.sig
	v.out.Scheme = s.scheme
	if isBlank(s.tree, s.value) {
		v.add(codeEmpty, "the signature is a template that was not filled", true)
	}
	v.intact, v.archived = map[*reference]xmltree.Node{}, -1
	if err := v.references(); err != nil {
		return err
	}
	v.value()
	if v.out.Signer != nil {
		v.properties()
	}
	v.judgeHashes()
	return nil
}

// references checks the signed data and describes it.
func (v *verification) references() error {
	if n := len(v.sig.refs); v.files == nil && n > maxReferences { // readSignature does not know whether there are files
		v.flaw(flawAt(v.tree, v.sig.info, codeWork, "SignedInfo has %d references, at most %d expected", n, maxReferences))
		return nil
	}
	var covers coverage
	for _, r := range v.sig.refs {
		if err := v.budget().Err(); err != nil {
			return err
		}
		if err := v.reference(r, &covers); err != nil {
			return err
		}
	}
	v.out.Covers = strings.Join(covers.words, "; ")
	switch {
	case v.nested:
		v.countersigns()
	case !covers.whole && covers.beside == 0:
		v.out.Findings = append(v.out.Findings, v.part(&covers))
	}
	return nil
}

// reference checks one reference. It returns only errors of the budget.
func (v *verification) reference(r *reference, covers *coverage) error {
	if v.files != nil && isBeside(r.uri) {
		return v.besideReference(r, covers)
	}
	t := v.tree
	to, err := v.resolve.resolve(r)
	if err != nil {
		v.flaw(err)
		covers.words = append(covers.words, "nothing by URI="+quote(r.uri))
		return nil
	}
	if v.unusualOrder(r) {
		v.add(codeOrder, fmt.Sprintf("reference %s: enveloped-signature comes after a canonical form; the Signature with the same index in the result was removed, as programs that write this order do", quote(r.uri)), false)
	}
	if r.hash == nil {
		v.flaw(r.unknownHash(t))
		v.cover(covers, r, to, v.extentOf(r, to, nil))
		return nil
	}
	d := digester{ctx: v.ctx, sig: v.sig, ref: r, options: v.options}
	got, size, err := d.digest(to)
	if err := v.budget().Err(); err != nil {
		return err
	}
	extent := v.extentOf(r, to, d.selected)
	v.cover(covers, r, to, extent)
	if err != nil {
		v.flaw(err)
		return nil
	}
	if size == 0 {
		v.flaw(flawAt(t, r.node, codeNothing, "the result of the reference's transforms is empty, so nothing is signed"))
		return nil
	}
	want, err := base64Text(t, r.digest, maxValue)
	switch {
	case err != nil:
		v.flaw(err)
		return nil
	case !bytes.Equal(got.Sum, want):
		v.flaw(flawAt(t, r.node, codeDigest, "the target of the reference URI=%s has changed since it was signed: %s", quote(r.uri), covers.words[len(covers.words)-1]))
		return nil
	}
	v.intact[r] = to.node
	for _, p := range extent.tops {
		if f := v.misplaced(r, p.node); f != nil {
			v.flaw(f)
			break
		}
	}
	return nil
}

// judgeHashes checks the hash functions of the signature for the time at which it is
// proved to have existed.
func (v *verification) judgeHashes() {
	var used []*suite.Hash
	if v.sig.scheme != nil {
		used = append(used, v.sig.scheme.Hash)
		if f, weak := v.check.WeakScheme(v.sig.scheme, v.out.BestTime); weak {
			v.out.Findings = append(v.out.Findings, f)
		}
	}
	for _, r := range v.sig.refs {
		if r.hash != nil {
			used = append(used, r.hash)
		}
	}
	for _, h := range used {
		f, weak := v.check.WeakHash(h, v.out.BestTime)
		if weak && !slices.ContainsFunc(v.out.Findings, func(other sig.Finding) bool { return other.Text == f.Text }) {
			v.out.Findings = append(v.out.Findings, f)
		}
	}
}

// unusualOrder reports whether enveloped-signature comes after a transform into bytes.
func (v *verification) unusualOrder(r *reference) bool {
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
func (v *verification) value() {
	s, t := v.sig, v.tree
	var unreadable []*flaw
	v.carried, unreadable = readKeyInfo(s)
	for _, f := range unreadable {
		v.tell(f, false)
	}
	if s.scheme == nil {
		v.flaw(flawAt(t, t.Child(s.info, nsDS, "SignatureMethod"), codeAlgorithm, "algorithm not supported: SignatureMethod %s", quote(s.algorithm)))
		if len(v.carried.named) == 1 {
			v.out.Signer = v.carried.named[0]
		}
		return
	}
	d, err := canonicalDigest(t.Subtree(s.info), s.method, s.scheme.Input())
	if err != nil {
		v.flaw(flawAt(t, s.info, codeMalformed, "SignedInfo: %s", err))
		return
	}
	raw, err := base64Text(t, s.value, maxValue)
	if err != nil {
		v.flaw(err)
		return
	}
	v.find(d, raw)
}

// find searches for the certificate whose key made the value: among those in the
// signature and the one that the caller names or, if the signature has none, among all
// that the caller has. If none matches, the finding is about the one that claims to be the
// signer's (see claimant).
func (v *verification) find(d suite.Digest, raw []byte) {
	s := v.sig
	named := slices.Clone(v.carried.named)
	if v.check.Certificate != nil {
		named = append(named, v.check.Certificate)
	}
	candidates := named
	if len(v.carried.named) == 0 {
		candidates = slices.Concat(named, v.check.Intermediates)
	}
	faults := map[*x509gost.Certificate]error{}
	for _, c := range candidates {
		if c.PublicKey == nil || s.scheme.Accepts(c.Key()) != nil {
			continue
		}
		if v.budget().Spend(sig.Price(c)) != nil {
			return // the caller sees the error of the budget
		}
		err := verifyXML(s.scheme, c, d, raw)
		if err == nil {
			v.out.Signer = c
			return
		}
		faults[c] = err
	}
	of, missing := v.claimant(named)
	switch {
	case of == nil:
		v.add(codeNoCert, "the signer's certificate is missing: it is neither in KeyInfo nor in CertificateValues, and none was given"+missing, true)
		return
	case faults[of] != nil:
		text := "it was made by another key, or SignedInfo has changed"
		if why := faults[of]; !errors.Is(why, suite.ErrSignature) {
			text = why.Error()
		}
		v.flaw(flawAt(v.tree, s.value, codeValue, "the signature value does not match SignedInfo and the certificate %s: %s", quote(of.Subject.String()), text))
	case of.PublicKey == nil:
		v.flaw(flawAt(v.tree, s.info, codeAlgorithm, "the signature is by %s; the key of the signer's certificate %s (serial %s): %s", s.scheme.Name, quote(of.Subject.String()), of.SerialHex(), of.KeyError))
	default:
		key := of.Key()
		v.flaw(flawAt(v.tree, s.info, codeKeyMismatch, "the signature is by %s, the certificate's key is %s", s.scheme.Name, key.Name()))
	}
	v.out.Signer = of
}

// claimant returns the certificate that claims to be the signer's, when no key matches the value:
// the one that the signed properties name or, if they name none, X509IssuerSerial in KeyInfo, or
// else the first that did not issue another one, since all certificates in KeyInfo are the signer's
// or lead to it (XMLDSig, 4.5.4).
// It returns nil if there is none, with a text that describes the one that is missing.
func (v *verification) claimant(named []*x509gost.Certificate) (of *x509gost.Certificate, missing string) {
	if list := v.signingCertificates(); list != xmltree.None {
		for c := range v.tree.Elements(list) {
			h, sum, ok := v.certDigest(c)
			if !ok {
				continue
			}
			for _, x := range named {
				if v.budget().Spend(2*int64(len(x.Raw))) != nil {
					return nil, "" // the caller sees the error of the budget
				}
				if bytes.Equal(x.Digest(h), sum) {
					return x, ""
				}
			}
			missing = fmt.Sprintf("; the signed properties name the one with the %s digest %x", h.Name, sum)
			if id, _, err := readIssuerSerial(v.tree, c); err == nil && id != nil {
				missing += describeIssuerSerial(id)
			}
			return nil, missing // the first is the signer's, others are of its path
		}
	}
	for id := range issuerSerials(v.sig) {
		if v.budget().Spend(id.Cost()*int64(1+len(named))) != nil {
			return nil, "" // the caller sees the error of the budget
		}
		if i := slices.IndexFunc(named, func(x *x509gost.Certificate) bool { return id.Differs(x) == "" }); i >= 0 {
			return named[i], ""
		}
		missing = "; KeyInfo names the one" + describeIssuerSerial(id)
	}
	if missing != "" {
		return nil, missing
	}
	for _, x := range named {
		if !slices.ContainsFunc(named, func(y *x509gost.Certificate) bool { return !y.Equal(x) && y.Issuer.Equal(x.Subject) }) {
			return x, ""
		}
	}
	if len(named) > 0 {
		return named[0], ""
	}
	return nil, ""
}

func describeIssuerSerial(id *x509gost.IssuerSerial) string {
	issuer, number := id.Texts()
	return " of the issuer " + quote(issuer) + " with the serial number " + quote(number)
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
func (v *verification) trust() {
	if v.out.Signer == nil {
		return
	}
	path, found := v.check.Trust(v.ctx, v.out.Signer, v.out.BestTime, v.carried.found(-1))
	v.out.Chain, v.out.Findings = path, append(v.out.Findings, found...)
	v.level()
}

// level sets the levels above T, whose parts are all in the signature.
func (v *verification) level() {
	if v.out.Level != xadesT || len(v.carried.crls)+len(v.carried.answers) == 0 {
		return
	}
	notes, complete := evidence.Complete(v.out.Signer, v.check.Roots, v.carried.found(-1), v.out.BestTime)
	v.out.Findings = append(v.out.Findings, notes...)
	if !complete {
		return
	}
	v.out.Level = xadesLT
	if v.archived < 0 {
		return
	}
	if _, covered := evidence.Complete(v.out.Signer, v.check.Roots, v.carried.found(v.archived), v.out.BestTime); covered {
		v.out.Level = xadesLTA
	}
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
