// SPDX-License-Identifier: Apache-2.0

package power

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
)

// Codes of findings about powers. All begin as sig.Finding.AboutMandate expects.
const (
	codeUnsigned    = "power-unsigned"       // a principal has not signed the power
	codeSignature   = "power-signature"      // its signature did not pass
	codeNotary      = "power-notary"         // a notary signed it, which no certificate proves
	codeRemark      = "power-remark"         // a note about this signature
	codeNotYet      = "power-not-yet"        // not in force yet
	codeExpired     = "power-expired"        // not in force any more
	codeWithdrawn   = "power-withdrawn"      // by a register or a list
	codeNoProof     = "power-no-proof"       // in force by the claimed time alone
	codeStatus      = "power-status-unknown" // nothing says whether it is withdrawn
	codeUnreachable = "power-status-later"   // the register does not answer
	codeDelegation  = "power-delegation"     // passed on more often than it allows
	codeParent      = "power-parent"         // the power that it was passed on from was not given
	codePrincipal   = "power-principal"      // passed on by others than its representatives
	codeChain       = "power-chain"          // the powers of a chain do not fit each other
	codeWider       = "power-wider"          // more was passed on than there was

	codeOther     = "power-other"      // no power names the signer
	codeDiffers   = "power-differs"    // an identifier of the signer differs
	codeUnknown   = "power-unknown"    // the certificate has no identifier to compare
	codeJoint     = "power-joint"      // other representatives must sign, too
	codeNotNeeded = "power-not-needed" // the signer is an organization or a trader itself
	codeStray     = "power-stray"      // a signature of no power that was given
	codeRights    = "power-rights"     // a power that is asked for is not granted
	codeWords     = "power-words"      // it may be granted, in words
	codeLimits    = "power-limits"     // restrictions that are not evaluated
)

// ofSigner and ofRights are the codes of two parts of the verdict. The others are about the power.
var (
	ofSigner = []string{codeOther, codeDiffers, codeUnknown, codeJoint, codeNotNeeded}
	ofRights = []string{codeRights, codeWords, codeWider, codeLimits}
)

// Rules are what a caller asks of powers.
type Rules struct {
	// Codes are the powers that the signer must have, as codes.
	Codes []string
	// Statuses are asked for each power whose signatures did not fail. The first that knows a power decides, unless a later one has it as
	// withdrawn, or as withdrawn earlier.
	Statuses []Statuses
}

// Judge sets Mandate of the signatures of a report, countersignatures included, and adds what is wrong to their findings.
// checked is the time for which they were checked. A power must be in force when the signature was made (see
// [sig.Signature.MadeAt]).
//
// Each signer needs a power, unless its certificate is of an organization or a trader that no power names.
func (s *Set) Judge(ctx context.Context, r *sig.Report, checked time.Time, rules Rules) error {
	_, err := sig.Within(ctx, nil, func(ctx context.Context) (none struct{}, err error) {
		return none, s.judge(ctx, r, checked, rules)
	})
	return err
}

func (s *Set) judge(ctx context.Context, r *sig.Report, checked time.Time, rules Rules) error {
	j := s.newJudge(ctx, checked, rules)
	var all []*sig.Signature
	var collect func(list []sig.Signature)
	collect = func(list []sig.Signature) {
		for i := range list {
			if one := &list[i]; !one.IsStamp() && one.Signer != nil {
				all = append(all, one)
			}
			collect(list[i].Countersigners)
		}
	}
	collect(r.Signatures)
	documents := make([]sig.Verdict, len(all))
	for i, one := range all {
		if err := j.budget.Spend(16 * perLike); err != nil { // reading names
			return err
		}
		if documents[i] = one.Own(); documents[i] == sig.Passed {
			j.signed = append(j.signed, identityOf(one.Signer))
		}
	}
	for i, one := range all {
		at, basis := one.MadeAt(checked)
		mandate, findings, err := j.mandate(one.Signer, at, basis == sig.TimeProven)
		if err != nil {
			return err
		}
		if one.Findings = append(one.Findings, findings...); mandate != nil {
			mandate.Document = documents[i]
			one.Mandate = mandate
		}
	}
	for _, name := range s.stray {
		r.Findings = append(r.Findings, sig.Finding{Code: codeStray, Text: fmt.Sprintf("the file %q has a signature of none of the powers that were given", clip(name))})
	}
	return nil
}

// Covers says whether a signer may sign at a time. It returns the findings about it, of which the worst verdict decides (see [Worst]).
// Other representatives that must sign, too, are noted, because they may sign later.
func (s *Set) Covers(ctx context.Context, signer *x509gost.Certificate, at time.Time, rules Rules) (*sig.Mandate, []sig.Finding, error) {
	var findings []sig.Finding
	m, err := sig.Within(ctx, nil, func(ctx context.Context) (m *sig.Mandate, err error) {
		j := s.newJudge(ctx, at, rules)
		j.before = true
		m, findings, err = j.mandate(signer, at, true)
		return m, err
	})
	if err != nil {
		return nil, nil, err
	}
	return m, findings, nil
}

func (s *Set) newJudge(ctx context.Context, checked time.Time, rules Rules) *judge {
	j := &judge{
		set: s, rules: rules, checked: checked, asked: map[string]bool{},
		statuses: map[string]answer{}, signatures: map[*given][]sig.Finding{}, passedOn: map[*given][]sig.Finding{}, present: map[*given][]bool{},
	}
	j.ctx, j.budget = budget.Of(ctx, 0)
	for _, code := range rules.Codes {
		j.asked[strings.ToLower(code)] = true
	}
	return j
}

// Worst returns the worst verdict of findings.
func Worst(findings []sig.Finding) sig.Verdict {
	v := sig.Passed
	for _, f := range findings {
		v = max(v, f.Indication.Verdict())
	}
	return v
}

// judge judges the signers of a document.
type judge struct {
	set      *Set
	ctx      context.Context
	rules    Rules
	checked  time.Time
	budget   *budget.Budget
	statuses map[string]answer
	signed   []identity      // whose signatures of the document passed
	before   bool            // the signature is not made yet
	asked    map[string]bool // rules.Codes, in lower case

	// What is the same for all signers is judged once: the signatures of a power, how it was passed on, and which of its
	// representatives have signed the document.
	signatures, passedOn map[*given][]sig.Finding
	present              map[*given][]bool
}

// perLike is the price of comparing a party with a certificate, and perFinding the memory of a finding beside its text.
const (
	perLike    = 8
	perFinding = 128
)

// size returns how many parties there are to compare with a certificate.
func size(parties []Party) (n int64) {
	for i := range parties {
		n += 1 + int64(len(parties[i].Acting))
	}
	return n
}

type answer struct {
	status Status
	err    error
}

// mandate judges a signer by the power that fits best.
func (j *judge) mandate(signer *x509gost.Certificate, at time.Time, proven bool) (*sig.Mandate, []sig.Finding, error) {
	if err := j.budget.Err(); err != nil {
		return nil, nil, err
	}
	id := identityOf(signer)
	best := unlike
	var of *given
	var by, like *Party // like is by, or one who acts for it
	var mandate *sig.Mandate
	var findings []sig.Finding
	for i := range j.set.powers {
		p := &j.set.powers[i]
		if err := j.budget.Spend(perLike * size(p.Representatives)); err != nil {
			return nil, nil, err
		}
		for n := range p.Representatives {
			l, party := p.Representatives[n].represents(&id)
			if l != same {
				if best != same && (of == nil || l > best) {
					best, of, by, like = l, p, &p.Representatives[n], party
				}
				continue
			}
			w := walk{judge: j, at: at, proven: proven, seen: map[string]bool{}}
			if err := w.run(p, n); err != nil {
				return nil, nil, err
			}
			if best != same || Worst(w.findings) < Worst(findings) {
				best, findings = same, w.findings
				if mandate = w.mandate(p, n); w.err != nil {
					return nil, nil, w.err
				}
			}
		}
	}
	if best == same {
		mandate.Power, mandate.Signer, mandate.Rights = parts(findings)
		return mandate, findings, nil
	}
	one := sig.Finding{Indication: sig.SigConstraintsFailure}
	switch {
	case best == partly:
		one.Code, one.Text = codeDiffers, fmt.Sprintf("the power %s is for %s, but %s; a power for the holder of this certificate is needed", of.Number, by, strings.Join(like.differences(&id), ", and "))
		w := walk{judge: j}
		if mandate = w.mandate(of, slices.IndexFunc(of.Representatives, func(p Party) bool { return by.isParty(&p) })); w.err != nil {
			return nil, nil, w.err
		}
	case id.actsItself():
		return nil, []sig.Finding{{Code: codeNotNeeded, Text: "no power names the signer; its certificate is of an organization or a sole trader, so it acts without a power"}}, nil
	case best == unknown:
		one.Code, one.Indication = codeUnknown, sig.Generic
		one.Text = "the certificate of the signer has no INN or SNILS that a power names, so it is not known whether the signer is the representative"
	default:
		one.Code, one.Text = codeOther, fmt.Sprintf("no power names the signer; they are for %s", j.set.named())
	}
	findings = []sig.Finding{one}
	if mandate != nil {
		mandate.Power, mandate.Signer, mandate.Rights = parts(findings)
	}
	return mandate, findings, nil
}

// parts returns the verdicts of the power, the signer and the rights.
func parts(findings []sig.Finding) (power, signer, rights sig.Verdict) {
	for _, f := range findings {
		v := f.Indication.Verdict()
		switch {
		case slices.Contains(ofSigner, f.Code):
			signer = max(signer, v)
		case slices.Contains(ofRights, f.Code):
			rights = max(rights, v)
		default:
			power = max(power, v)
		}
	}
	return power, signer, rights
}

// mostNamed is how many parties a text names.
const mostNamed = 3

// named names the representatives of all powers.
func (s *Set) named() string {
	var list []string
	all := 0
	for i := range s.powers {
		of := s.powers[i].Representatives
		list, all = append(list, names(of[:min(len(of), mostNamed)])...), all+len(of)
	}
	return joined(list, all)
}

// someOf names the first of parties.
func someOf(parties []Party) string {
	return joined(names(parties[:min(len(parties), mostNamed)]), len(parties))
}

func names(parties []Party) (list []string) {
	for i := range parties {
		list = append(list, parties[i].String())
	}
	return list
}

// joined joins the first of all texts. The list has at least mostNamed of them, if there are as many.
func joined(list []string, all int) string {
	if more := all - mostNamed; more > 0 {
		list = append(slices.Clone(list[:mostNamed]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(list, ", ")
}

// walk judges a power and those that it was passed on from.
type walk struct {
	*judge
	at       time.Time // when the document was signed
	proven   bool
	findings []sig.Finding
	chain    []*given
	seen     map[string]bool
	err      error // of the budget: nothing is added any more
}

func (w *walk) add(code string, indication sig.Indication, format string, args ...any) {
	if w.err == nil {
		w.note(sig.Finding{Code: code, Indication: indication, Text: fmt.Sprintf(format, args...)})
	}
}

func (w *walk) note(f sig.Finding) {
	if w.hold(int64(len(f.Text)) + perFinding) {
		w.findings = append(w.findings, f)
	}
}

// spend and hold charge the budget. They return false when it is used up.
func (w *walk) spend(n int64) bool {
	if w.err == nil {
		w.err = w.budget.Spend(n)
	}
	return w.err == nil
}

func (w *walk) hold(n int64) bool {
	if w.err == nil {
		w.err = w.budget.Hold(n)
	}
	return w.err == nil
}

// once adds what find finds about a power, which is the same for every signer.
func (w *walk) once(of map[*given][]sig.Finding, p *given, find func(*walk)) []sig.Finding {
	list, found := of[p]
	if !found {
		once := walk{judge: w.judge, err: w.err}
		if find(&once); once.err != nil {
			w.err = once.err
			return nil
		}
		list = once.findings
		of[p] = list
	}
	if w.hold(perFinding * int64(len(list))) {
		w.findings = append(w.findings, list...)
	}
	return list
}

// mandate describes the power of the walk for its representative n.
func (w *walk) mandate(p *given, n int) *sig.Mandate {
	m := &sig.Mandate{Number: p.Number, Representative: p.Representatives[n].String(), From: p.From, Until: p.Until, Joint: p.Joint}
	first := p
	for _, one := range w.chain {
		m.Chain = append(m.Chain, one.Number)
		first = one
	}
	m.Principals = names(first.Principals)
	size := int64(32 * len(p.Rights))
	for _, name := range m.Principals {
		size += int64(len(name))
	}
	if !w.hold(size) || !w.spend(int64(len(p.Rights)+len(m.Principals))) {
		return m
	}
	for _, r := range p.Rights {
		if r.Code != "" {
			m.Codes = append(m.Codes, r.Code)
		} else {
			m.Words = append(m.Words, r.Text)
		}
	}
	return m
}

// run judges the power p for its representative n.
func (w *walk) run(p *given, n int) error {
	w.rights(p)
	w.together(p, n)
	for leaf, passed := p, 0; ; passed++ {
		if w.seen[p.Number] {
			w.add(codeChain, sig.SigConstraintsFailure, "the power %s was passed on from itself", p.Number)
			return w.err
		}
		w.seen[p.Number] = true
		w.force(p)
		w.limits(p)
		signed := w.once(w.judge.signatures, p, func(w *walk) { w.signaturesOf(p) })
		if w.err != nil {
			return w.err
		}
		if Worst(signed) != sig.Failed { // a register is not asked for what anyone could have written
			if err := w.withdrawal(p); err != nil {
				return err
			}
		}
		switch {
		case passed == 0 || p.Delegation == DelegationRepeated || p.Delegation == DelegationOnce && passed == 1:
		case p.Delegation == DelegationUnknown:
			w.add(codeDelegation, sig.Generic, "the power %s does not say whether it may be passed on (ПрПередов)", p.Number)
		case p.Delegation == DelegationOnce:
			w.add(codeDelegation, sig.SigConstraintsFailure, "the power %s may be passed on once, and it was passed on %d times", p.Number, passed)
		default:
			w.add(codeDelegation, sig.SigConstraintsFailure, "the power %s may not be passed on, and it was", p.Number)
		}
		if p.Parent == "" {
			if passed > 0 && leaf.First != p.Number {
				w.add(codeChain, sig.SigConstraintsFailure, "the power %s names %s as the first one, but it was passed on from %s", leaf.Number, leaf.First, p.Number)
			}
			return w.err
		}
		at := slices.IndexFunc(w.set.powers, func(one given) bool { return one.Number == p.Parent })
		if at < 0 {
			w.add(codeParent, sig.Generic, "the power %s was passed on from %s, which was not given; give both", p.Number, p.Parent)
			return w.err
		}
		parent := &w.set.powers[at]
		w.once(w.judge.passedOn, p, func(w *walk) { w.fits(p, parent) })
		w.chain = append(w.chain, parent)
		p = parent
	}
}

// force judges whether a power is in force.
func (w *walk) force(p *given) {
	last := p.Until.Add(-time.Second).In(moscow).Format(time.DateOnly)
	switch {
	case w.at.Before(p.From):
		w.add(codeNotYet, sig.SigConstraintsFailure, "the power %s is in force from %s, and the document was signed on %s", p.Number, p.From.In(moscow).Format(time.DateOnly), moment(w.at))
	case w.checked.Before(p.From): // a time that only the signer claims may be in the future
		w.add(codeNotYet, sig.SigConstraintsFailure, "the power %s is in force from %s, which is after the time of the check, %s", p.Number, p.From.In(moscow).Format(time.DateOnly), moment(w.checked))
	case !w.at.Before(p.Until):
		w.add(codeExpired, sig.SigConstraintsFailure, "the power %s was in force until the end of %s in Moscow, and the document was signed on %s", p.Number, last, moment(w.at))
	case !w.proven && !w.checked.Before(p.Until):
		w.add(codeNoProof, sig.OutOfBoundsNoPOE, "the power %s was in force until the end of %s in Moscow, and only the signer says that the document was signed before; a time stamp would prove it", p.Number, last)
	}
}

func moment(at time.Time) string { return at.In(moscow).Format("2006-01-02 15:04:05 -07:00") }

// signaturesOf judges whether all principals have signed a power, or a notary has.
func (w *walk) signaturesOf(p *given) {
	// Names of a certificate are read, and compared with each principal and those who act for it.
	if !w.spend(perLike * int64(len(p.signatures)) * (16 + 2*size(p.Principals))) {
		return
	}
	type made struct {
		*sig.Signature
		identity
	}
	var list []made
	for i := range p.signatures {
		if s := &p.signatures[i]; s.Signer != nil && !s.IsStamp() {
			list = append(list, made{s, identityOf(s.Signer)})
		}
	}
	// accept judges the best of the signatures that fit. It returns false if none fits.
	accept := func(who string, fits func(i int) bool) bool {
		var best *sig.Signature
		for i := range list {
			if fits(i) && (best == nil || list[i].Verdict() < best.Verdict()) {
				best = list[i].Signature
			}
		}
		if best == nil {
			return false
		}
		if v := best.Verdict(); v != sig.Passed {
			indication := sig.SigConstraintsFailure
			if v == sig.Indeterminate {
				indication = sig.Generic
			}
			w.add(codeSignature, indication, "the signature of %s on the power %s did not pass: %s", who, p.Number, reason(best))
		}
		for _, h := range best.Headlines() {
			w.note(sig.Finding{Code: codeRemark, Headline: h, Text: fmt.Sprintf("the signature of %s on the power %s: %s", who, p.Number, h)})
		}
		return true
	}
	if p.Notary != nil && accept("the notary", func(i int) bool { return p.Notary.isNotary(&list[i].identity) }) {
		// The name is that in the power, so anyone of this name could have written it. No attribute of a certificate proves a notary.
		w.add(codeNotary, sig.Generic, "the power %s is signed by %s instead of its principals; a person must check that this is a notary", p.Number, strings.TrimSpace(p.Notary.Surname+" "+p.Notary.Given))
		return
	}
	for i := range p.Principals {
		principal := &p.Principals[i]
		// Which person of a principal each signature is of, -1 for the principal itself, and below for neither.
		const neither = -2
		persons := make([]int, len(list))
		for i := range list {
			ok, person := principal.signs(&list[i].identity)
			if persons[i] = person; !ok {
				persons[i] = neither
			}
		}
		if principal.JointHeads && slices.ContainsFunc(principal.Acting, func(one Party) bool { return !one.Organization }) {
			for n := range principal.Acting {
				if head := &principal.Acting[n]; !head.Organization && !accept(head.String(), func(i int) bool { return persons[i] == n }) {
					w.add(codeUnsigned, sig.SigConstraintsFailure, "%s, who acts for %s only together with others, has not signed the power %s; give this signature, too", head, principal, p.Number)
				}
			}
			continue
		}
		if !accept(principal.String(), func(i int) bool { return persons[i] != neither }) {
			var by []string
			for _, s := range list[:min(len(list), mostNamed)] {
				by = append(by, s.Signer.Subject.String())
			}
			text := "it has no signature; give the file with it, too"
			if len(by) > 0 {
				text = "it is signed by " + joined(by, len(list))
			}
			w.add(codeUnsigned, sig.SigConstraintsFailure, "%s has not signed the power %s: %s", principal, p.Number, text)
		}
	}
}

// reason returns why a signature did not pass.
func reason(s *sig.Signature) string {
	v := s.Verdict()
	for _, f := range s.Findings {
		if f.Indication != "" && f.Indication.Verdict() == v {
			return f.Text
		}
	}
	if !s.Trusted() {
		return "its signer is not trusted"
	}
	return "a countersignature did not pass"
}

// withdrawal asks the sources whether a power is withdrawn.
func (w *walk) withdrawal(p *given) error {
	a, asked := w.statuses[p.Number]
	if !asked {
		for _, source := range w.rules.Statuses {
			status, err := source.Status(w.ctx, p.Power)
			if err := w.ctx.Err(); err != nil {
				return err
			}
			if err != nil {
				a.err = err
			} else if status.State > a.status.State || status.State == StateWithdrawn && earlier(status.At, a.status.At) {
				a.status = status
			}
		}
		w.statuses[p.Number] = a
	}
	switch s := a.status; {
	case s.State == StateWithdrawn && (s.At.IsZero() || !w.at.Before(s.At)):
		when := ""
		if !s.At.IsZero() {
			when = " on " + moment(s.At)
		}
		w.add(codeWithdrawn, sig.SigConstraintsFailure, "the power %s was withdrawn%s, by %s", p.Number, when, s.Source)
	case s.State == StateWithdrawn && !w.proven && !w.checked.Before(s.At):
		w.add(codeNoProof, sig.OutOfBoundsNoPOE, "the power %s was withdrawn on %s, and only the signer says that the document was signed before; a time stamp would prove it", p.Number, moment(s.At))
	case s.State == StateUnknown && a.err != nil:
		w.add(codeUnreachable, sig.TryLater, "whether the power %s is withdrawn is not known now: %v", p.Number, a.err)
	case s.State == StateUnknown:
		w.note(sig.Finding{Code: codeStatus, Headline: "withdrawal of the power not checked", Text: fmt.Sprintf("nothing says whether the power %s was withdrawn: no register was asked, or it does not know the power", p.Number)})
	}
	return nil
}

// earlier compares times of withdrawals. Zero is at all times.
func earlier(a, b time.Time) bool { return !b.IsZero() && (a.IsZero() || a.Before(b)) }

// fits judges whether a power fits the one that it was passed on from.
func (w *walk) fits(p, parent *given) {
	if !w.spend(2*perLike*int64(len(p.Principals))*int64(len(parent.Representatives)) + int64(len(p.Rights)+len(parent.Rights))) {
		return
	}
	for i := range p.Principals {
		if one := &p.Principals[i]; !slices.ContainsFunc(parent.Representatives, func(r Party) bool { return one.isParty(&r) }) {
			w.add(codePrincipal, sig.SigConstraintsFailure, "%s passed on the power %s, which is for %s", one, parent.Number, someOf(parent.Representatives))
		}
	}
	if parent.Joint {
		for i := range parent.Representatives {
			if one := &parent.Representatives[i]; !slices.ContainsFunc(p.Principals, func(r Party) bool { return one.isParty(&r) }) {
				w.add(codePrincipal, sig.SigConstraintsFailure, "the representatives of the power %s act only together, and %s did not pass it on", parent.Number, one)
			}
		}
	}
	words, inWords := slices.ContainsFunc(parent.Rights, func(r Right) bool { return r.Code == "" }), false
	for _, r := range p.Rights {
		switch {
		case r.Code == "":
			inWords = true
		case parent.grants(r.Code):
		case words:
			w.add(codeWords, sig.Generic, "the power %s passes on %s, and %s grants powers in words; a person must compare them", p.Number, r.Code, parent.Number)
		default:
			w.add(codeWider, sig.SigConstraintsFailure, "the power %s passes on %s, which %s does not grant", p.Number, r.Code, parent.Number)
		}
	}
	if inWords {
		w.add(codeWords, sig.Generic, "the power %s passes on powers in words; a person must compare them with those of %s", p.Number, parent.Number)
	}
}

func (p *given) grants(code string) bool { return p.codes[strings.ToLower(code)] }

// rights judges whether a power grants what the caller asks for.
func (w *walk) rights(p *given) {
	if !w.spend(int64(len(p.Rights) + perLike*len(w.rules.Codes))) {
		return
	}
	words := slices.ContainsFunc(p.Rights, func(r Right) bool { return r.Code == "" })
	for _, code := range w.rules.Codes {
		switch {
		case p.grants(code):
		case words:
			w.add(codeWords, sig.Generic, "the power %s grants powers in words; a person must read whether %s is among them", p.Number, code)
		default:
			w.add(codeRights, sig.SigConstraintsFailure, "the power %s does not grant %s; it grants %s", p.Number, code, p.granted())
		}
	}
}

// limits notes the restrictions of a power. Those of a power count for the ones that it was passed on to.
func (w *walk) limits(p *given) {
	if !w.spend(perLike * int64(len(p.Rights))) {
		return
	}
	limits := 0
	for _, r := range p.Rights {
		if len(w.asked) == 0 || w.asked[strings.ToLower(r.Code)] {
			limits += r.Limits
		}
	}
	if limits > 0 {
		w.note(sig.Finding{Code: codeLimits, Headline: "limits of the power not checked", Text: fmt.Sprintf("the power %s has %d restrictions (ОгрСвПолн), which are not checked", p.Number, limits)})
	}
}

func (p *Power) granted() string {
	var list []string
	for _, r := range p.Rights[:min(len(p.Rights), mostNamed)] {
		list = append(list, r.Code)
	}
	if len(list) == 0 {
		return "nothing"
	}
	return joined(list, len(p.Rights))
}

// together judges whether the other representatives have signed, where they act only together.
func (w *walk) together(p *given, n int) {
	if !p.Joint {
		return
	}
	present, known := w.present[p]
	if !known {
		if !w.spend(perLike * int64(len(w.signed)) * size(p.Representatives)) {
			return
		}
		for i := range p.Representatives {
			other := &p.Representatives[i]
			present = append(present, slices.ContainsFunc(w.signed, func(id identity) bool { l, _ := other.represents(&id); return l == same }))
		}
		w.present[p] = present
	}
	if !w.spend(int64(len(present))) {
		return
	}
	for i := range p.Representatives {
		other := &p.Representatives[i]
		if i == n || present[i] {
			continue
		}
		if w.before {
			w.add(codeJoint, "", "the representatives of the power %s act only together: %s must sign, too", p.Number, other)
			continue
		}
		w.add(codeJoint, sig.SigConstraintsFailure, "the representatives of the power %s act only together, and %s has not signed", p.Number, other)
	}
}
