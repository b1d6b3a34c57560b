// SPDX-License-Identifier: Apache-2.0

package cades

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"tamga/pki/cms"
	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/evidence"
)

// Codes of findings about the attributes of the levels above BES.
const (
	codeTimeStamp          = "time-stamp-not-checked"       // it is present but was not checked
	codeTimeStampInvalid   = "time-stamp-invalid"           // it covers something else, or its signature is invalid
	codeTimeStampUntrusted = "time-stamp-untrusted"         // it is not by a trusted service and proves no time
	codeTimeStampLater     = "time-stamp-added-later"       // a CAdES-C time stamp does not cover it
	codeTimeStampOrder     = "time-stamps-out-of-order"     // the one over the references is before the one over the signature
	codeAttribute          = "unsigned-attribute-malformed" // it is malformed or occurs more than once
	codeReference          = "reference-without-value"      // no value in the message has the digest
	codeReferenceCount     = "references-out-of-step"       // the number of revocation references does not match the certificates
	codeReferenceUnknown   = "reference-not-checked"        // by an unknown digest algorithm
	codeReferenceMissing   = "reference-missing"            // a certificate of the path has no reference
	codeArchiveLapsed      = "archive-time-stamp-lapsed"    // it was not renewed in time

	maxStamps = 4096 // checked of one message
)

// stampKinds are the kinds of time stamps in a report.
var stampKinds = []struct {
	oid  x509gost.OID
	kind string
}{
	{cms.OIDSignatureTimeStamp, "signature"},
	{cms.OIDEscTimeStamp, "CAdES-C"},
	{cms.OIDRefsTimeStamp, "references"},
	{cms.OIDArchiveTimeStamp, "archive"},
	{cms.OIDArchiveTimeStampV2, "archive"},
	{cms.OIDArchiveTimeStampV3, "archive"},
}

// longTerm is the data of one signature beyond BES.
type longTerm struct {
	certRefs []reference
	revRefs  []revocationRef
	// whether the attributes are present
	hasRefs, hasValues bool
	// values are the values in the message for this signature.
	values       sig.Found
	borrowed     []*x509gost.Certificate // values of the signatures that this one countersigns
	findings     []sig.Finding
	broken       bool // a finding is fatal
	unresolved   bool // a reference cannot be compared
	valuesBroken bool // a value is invalid or unreadable
	signatureTS  bool // a time stamp of the signature is valid and trusted
	referencesTS bool // a CAdES-C time stamp is valid and trusted
	archiveTS    bool // an archive time stamp is valid and trusted
	disorder     bool // an archive time stamp is earlier than another that it covers

	archives *archives // nil if there are none
	held     sig.Found // what their tokens contain

	over []sig.Signature // countersignatures, which were judged before
	// proven is the time at which archive time stamps of the signature below prove that this countersignature existed; zero
	// for none. covered reports that such a time stamp is valid, or was when it was made.
	proven  time.Time
	covered bool
	proofs  []sig.TimeStamp // those time stamps
}

// under sets what the archive time stamps of a signature prove for its countersignatures.
func (l *longTerm) under(v *verifier, of *longTerm, target *cms.SignerInfo) {
	l.proven, l.covered, l.proofs = of.proven, of.covered, slices.Clone(of.proofs)
	if of.archives == nil {
		return
	}
	var latest time.Time // a time stamp may cover some of the attributes with countersignatures
	for place, a := range target.UnsignedAttrs {
		if a.OID.Equal(cms.OIDCountersignature) {
			if at := v.provenBy(of, place, time.Time{}); at.After(latest) {
				latest = at
			}
		}
	}
	l.covered = of.chained()
	if !latest.IsZero() && latest.Before(v.check.At) {
		l.proven, l.held = latest, of.held
		for _, a := range of.archives.stamps {
			if a.result.Passed() && !a.result.Time.Before(latest) {
				l.proofs = append(l.proofs, a.result)
			}
		}
	}
}

// at is the time for which a signature is judged whose own time stamps prove none.
func (v *verifier) at(l *longTerm) time.Time {
	if !l.proven.IsZero() && l.proven.Before(v.check.At) {
		return l.proven
	}
	return v.check.At
}

func (l *longTerm) note(code, format string, args ...any) {
	l.findings = append(l.findings, sig.Finding{Code: code, Text: fmt.Sprintf(format, args...)})
}

func (l *longTerm) fatal(code, format string, args ...any) {
	l.findings = append(l.findings, sig.Finding{Code: code, Text: fmt.Sprintf(format, args...), Indication: sig.IndicationOf(code)})
	l.broken = true
}

// single returns the value of an unsigned attribute that may occur once with one value.
func (l *longTerm) single(s *cms.SignerInfo, oid x509gost.OID) (value []byte, ok bool) {
	for _, a := range s.UnsignedAttrs {
		if !a.OID.Equal(oid) {
			continue
		}
		if ok || len(a.Values) != 1 {
			l.fatal(codeAttribute, "the unsigned attribute %v must occur once and have one value", oid)
			return nil, false
		}
		value, ok = a.Values[0], true
	}
	return value, ok
}

// readLongTerm reads references and values.
func readLongTerm(s *cms.SignerInfo) *longTerm {
	l := &longTerm{}
	var err error
	malformed := func(what string) {
		if err != nil {
			l.fatal(codeAttribute, "%s %v", what, err)
		}
	}
	certRefs, has1 := l.single(s, cms.OIDCertificateRefs)
	revRefs, has2 := l.single(s, cms.OIDRevocationRefs)
	certVals, has3 := l.single(s, cms.OIDCertificateValues)
	revVals, has4 := l.single(s, cms.OIDRevocationValues)
	l.hasRefs, l.hasValues = has1 && has2, has3 && has4
	if has1 {
		l.certRefs, err = readCertificateRefs(certRefs)
		malformed("complete-certificate-references")
	}
	if has2 {
		l.revRefs, err = readRevocationRefs(revRefs)
		malformed("complete-revocation-references")
	}
	var certs, crls, answers [][]byte
	if has3 {
		certs, err = readElements(certVals)
		malformed("certificate-values")
	}
	if has4 {
		crls, answers, err = readRevocationValues(revVals)
		malformed("revocation-values")
	}
	l.values.Certificates = parsed(l, "certificate-values", certs, x509gost.ParseCertificate)
	l.values.CRLs = parsed(l, "revocation-values", crls, x509gost.ParseRevocationList)
	l.values.OCSP = parsed(l, "revocation-values", answers, ocsp.ParseBasic)
	return l
}

// Values returns the certificates, revocation lists and OCSP answers (BasicOCSPResponse)
// in the unsigned attributes of a signature, as DER, in their order. They make the
// signature X Long. It is for formats that also store them outside of the message.
// Malformed attributes give none.
func Values(s *cms.SignerInfo) (certs, crls, answers [][]byte) {
	l := &longTerm{}
	if value, ok := l.single(s, cms.OIDCertificateValues); ok {
		certs, _ = readElements(value)
	}
	if value, ok := l.single(s, cms.OIDRevocationValues); ok {
		crls, answers, _ = readRevocationValues(value)
	}
	return certs, crls, answers
}

// Carried returns the certificates and revocation data of a message and of the unsigned attributes of its
// signatures. Unreadable ones are left out.
func Carried(m *cms.Message) sig.Found {
	certs, _ := m.X509()
	lists, _ := m.RevocationLists()
	answers, _ := m.OCSPAnswers()
	found := sig.Found{Certificates: certs, CRLs: lists, OCSP: answers}
	for _, s := range m.Signers {
		found = joined(found, readLongTerm(s).values)
	}
	return found
}

// parsed returns the elements that can be parsed and notes the others.
func parsed[T any](l *longTerm, what string, raws [][]byte, parse func([]byte) (T, error)) (list []T) {
	for _, raw := range raws {
		if v, err := parse(raw); err != nil {
			l.note(codeUnreadable, "%s: %v", what, err)
			l.valuesBroken = true
		} else {
			list = append(list, v)
		}
	}
	return list
}

// resolve searches for the target of each reference, among the values and the other data
// of the message.
func (l *longTerm) resolve(more sig.Found) {
	if !l.hasRefs {
		return
	}
	if len(l.revRefs) != len(l.certRefs)+1 {
		l.note(codeReferenceCount, "there are %d revocation references for the signer and %d certificates; one each expected", len(l.revRefs), len(l.certRefs))
	}
	if !l.hasValues {
		return // level C: the targets are stored elsewhere
	}
	certs := index(slices.Concat(l.values.Certificates, more.Certificates), func(c *x509gost.Certificate) []byte { return c.Raw })
	lists := index(slices.Concat(l.values.CRLs, more.CRLs), func(c *x509gost.RevocationList) []byte { return c.Raw })
	answers := index(l.values.OCSP, func(b *ocsp.Basic) []byte { return b.Raw })
	for _, r := range l.certRefs {
		if l.unknown(&r) {
			continue
		}
		if c := certs.find(&r); c == nil {
			l.fatal(codeReference, "no certificate matches the digest of %s", &r)
		} else if r.serial != nil && !(x509gost.SameInteger((*c).SerialNumber, r.serial) && x509gost.SameName((*c).RawIssuer, r.issuer)) {
			l.fatal(codeReference, "%s names another issuer and serial number than the certificate with that digest", &r)
		}
	}
	for _, entry := range l.revRefs {
		for _, r := range entry.crls {
			if l.unknown(&r) {
				continue
			}
			if c := lists.find(&r); c == nil {
				l.fatal(codeReference, "no revocation list matches the digest of %s", &r)
			} else if r.issuer != nil && !((*c).ThisUpdate.Equal(r.at) && x509gost.SameName((*c).RawIssuer, r.issuer)) {
				l.fatal(codeReference, "%s names another issuer or time than the list with that digest", &r)
			}
		}
		for _, r := range entry.answers {
			if !l.unknown(&r) && !hasAnswer(answers, &r) {
				l.fatal(codeReference, "no OCSP answer matches the responder, the time and the digest of %s", &r)
			}
		}
	}
}

// unknown reports whether the digest algorithm of a reference is unknown. Such a
// reference proves nothing, for or against the signature.
func (l *longTerm) unknown(r *reference) bool {
	if r.sum == nil || r.hash != nil {
		return false
	}
	l.unresolved = true
	l.note(codeReferenceUnknown, "a reference has an unknown digest algorithm")
	return true
}

// hasAnswer searches for an answer by digest, or by responder and time if the reference
// has no digest.
func hasAnswer(answers *digestIndex[*ocsp.Basic], r *reference) bool {
	same := func(b *ocsp.Basic) bool {
		return bytes.Equal(b.RawResponderID, r.responder) && bytes.Equal(b.RawProducedAt, r.produced)
	}
	if r.sum == nil {
		return slices.ContainsFunc(answers.list, same)
	}
	b := answers.find(r)
	return b != nil && same(*b)
}

// digestIndex finds values by digest. Each value is digested once by each algorithm.
type digestIndex[T any] struct {
	list   []T
	raw    func(T) []byte
	tables map[*suite.Hash]map[string]int
}

func index[T any](list []T, raw func(T) []byte) *digestIndex[T] {
	return &digestIndex[T]{list, raw, map[*suite.Hash]map[string]int{}}
}

// find returns the target of a reference by a known algorithm, or nil.
func (x *digestIndex[T]) find(r *reference) *T {
	table, ok := x.tables[r.hash]
	if !ok {
		table = make(map[string]int, len(x.list))
		for i, v := range x.list {
			table[string(r.hash.Digest(x.raw(v)).Sum)] = i
		}
		x.tables[r.hash] = table
	}
	i, ok := table[string(r.sum)]
	if !ok {
		return nil
	}
	return &x.list[i]
}

// stamps checks the time stamps of a signature and sets its best time. A time stamp that is
// invalid is left out.
func (v *verifier) stamps(ctx context.Context, out *sig.Signature, s *cms.SignerInfo, l *longTerm) {
	var first time.Time
	imprints := &imprints{signer: s}
	earliest := func(t time.Time) {
		if out.BestTime.IsZero() || t.Before(out.BestTime) {
			out.BestTime = t
		}
	}
	archived := 0
	for place, a := range s.UnsignedAttrs {
		kind := stampKind(a.OID)
		switch kind {
		case "":
			continue
		case "archive":
			if _, checked := isArchive(a.OID); !checked || l.archives == nil {
				l.note(codeTimeStamp, "the signature has an archive time stamp, which was not checked")
				continue
			}
		}
		if len(a.Values) == 0 {
			l.fatal(codeAttribute, "a time stamp attribute has no value")
		}
		for _, value := range a.Values {
			if v.stampsLeft == 0 {
				l.fatal(codeMany, "the message has more than %d time stamps", maxStamps)
				return
			}
			if v.stampsLeft--; ctx.Err() != nil {
				return // Verify returns this error
			}
			if kind == "archive" {
				if archived == len(l.archives.stamps) {
					l.fatal(codeMany, "the message has more than %d archive time stamps", maxStamps)
					return
				}
				ts := l.archives.stamps[archived].result
				archived++
				if out.TimeStamps = append(out.TimeStamps, ts); ts.Passed() {
					earliest(ts.Time)
				}
				continue
			}
			ts := v.stamp(ctx, kind, place, value, imprints, l)
			out.TimeStamps = append(out.TimeStamps, ts)
			switch {
			case !ts.Passed():
			case kind == "signature":
				l.signatureTS = true
				earliest(ts.Time)
			default:
				l.referencesTS = l.referencesTS || kind == "CAdES-C"
				if first.IsZero() || ts.Time.Before(first) {
					first = ts.Time
				}
			}
		}
	}
	if !first.IsZero() && first.Before(out.BestTime) {
		l.note(codeTimeStampOrder, "the time stamp over the references is of %s, before that of the signature (%s)", at(first), at(out.BestTime))
	}
	if out.BestTime.IsZero() {
		out.BestTime = v.at(l)
	}
}

// IsTimeStamp reports whether an unsigned attribute has time stamps.
func IsTimeStamp(oid x509gost.OID) bool { return stampKind(oid) != "" }

// stampKind returns the kind of time stamp in an attribute, "" for other attributes.
func stampKind(oid x509gost.OID) string {
	for _, k := range stampKinds {
		if k.oid.Equal(oid) {
			return k.kind
		}
	}
	return ""
}

// imprints are the digests that the time stamps of one signature may cover, each computed
// once: the covered data may be large and the stamps many.
type imprints struct {
	signer *cms.SignerInfo
	sums   map[imprintKey]suite.Digest
}

type imprintKey struct {
	kind         string
	hash         *suite.Hash
	place, which int // of the attribute, and of the choice; 0 and 0 for all attributes
}

// maxChoices limits the choices of signature time stamps that a CAdES-C time stamp is compared
// with. Programs add one or two.
const maxChoices = 16

// answers reports whether the time stamp in the attribute at a place covers all unsigned
// attributes that it must cover. If it covers only a choice of the signature time stamps, later is
// true. The error is that of the comparison with all of them.
func (m *imprints) answers(kind string, place int, token *tsp.Token, spend func(int64) error) (later bool, err error) {
	attrs := m.signer.UnsignedAttrs
	hash := token.Info.Digest.Hash
	if err = m.answer(imprintKey{kind, hash, 0, 0}, attrs, token, spend); err == nil || kind != "CAdES-C" {
		return false, err
	}
	for i, chosen := range choices(place, attrs) {
		if m.answer(imprintKey{kind, hash, place, i + 1}, chosen, token, spend) == nil {
			return true, nil
		}
	}
	return false, err
}

func (m *imprints) answer(key imprintKey, attrs []cms.Attribute, token *tsp.Token, spend func(int64) error) error {
	d, known := m.sums[key]
	if !known {
		data := covered(key.kind, m.signer.Signature, attrs)
		if err := spend(int64(len(data))); err != nil {
			return err
		}
		if m.sums == nil {
			m.sums = map[imprintKey]suite.Digest{}
		}
		d = key.hash.Digest(data)
		m.sums[key] = d
	}
	return token.Answers(&tsp.Request{Digest: d})
}

// choices returns which unsigned attributes a CAdES-C time stamp at a place may cover besides all.
// It covers the time stamps of the signature that existed when it was made (RFC 5126, 6.3.5).
// Others may have been added later, as attributes or as values of one, and a program that sorts
// them may have moved them: first come those before the place, then each by itself.
func choices(place int, attrs []cms.Attribute) (list [][]cms.Attribute) {
	var stamps []int
	var others, before []cms.Attribute
	for i, a := range attrs {
		switch {
		case !a.OID.Equal(cms.OIDSignatureTimeStamp):
			others = append(others, a)
		default:
			stamps = append(stamps, i)
			if i < place {
				before = append(before, a)
			}
		}
	}
	full := func() bool { return len(list) >= maxChoices }
	with := func(chosen ...cms.Attribute) { list = append(list, slices.Concat(chosen, others)) }
	if len(before) < len(stamps) {
		with(before...)
	}
	if len(stamps) > 1 {
		for _, i := range stamps {
			if full() {
				return list
			}
			with(attrs[i])
		}
	}
	for n, i := range stamps {
		values := attrs[i].Values
		for k := 1; k < len(values) && !full(); k++ {
			earlier := make([]cms.Attribute, 0, n+1)
			for _, j := range stamps[:n] {
				earlier = append(earlier, attrs[j])
			}
			with(append(earlier, cms.NewAttribute(attrs[i].OID, values[:k]...))...)
		}
		for k := 1; k < len(values) && !full(); k++ {
			with(cms.NewAttribute(attrs[i].OID, values[k]))
		}
	}
	return list
}

// covered returns the bytes that a time stamp of a kind covers.
func covered(kind string, value []byte, attrs []cms.Attribute) []byte {
	switch kind {
	case "signature":
		return value
	case "CAdES-C":
		return escCovers(value, attrs)
	}
	// Only over the references (RFC 5126, 6.3.6).
	return escCovers(nil, slices.DeleteFunc(slices.Clone(attrs), func(a cms.Attribute) bool {
		return a.OID.Equal(cms.OIDSignatureTimeStamp)
	}))
}

// stamp checks one time stamp, in the unsigned attribute at a place. If it is invalid or does not belong to
// the signature, it is left out. If it is not by a trusted service, it proves nothing.
func (v *verifier) stamp(ctx context.Context, kind string, place int, value []byte, imprints *imprints, l *longTerm) (ts sig.TimeStamp) {
	ts.Kind = kind
	invalid := func(err error) sig.TimeStamp {
		text := fmt.Sprintf("the time stamp (%s) is invalid: %v", kind, err)
		ts.Findings = append(ts.Findings, sig.Finding{Code: codeTimeStampInvalid, Text: text, Indication: sig.IndicationOf(codeTimeStampInvalid)})
		l.findings = append(l.findings, sig.StampLeftOut(codeTimeStampInvalid, text))
		return ts
	}
	if err := v.budget.Spend(budget.Signature + stepsOfValue*int64(len(value))); err != nil {
		return invalid(err)
	}
	var held int64 // until the stamp is judged
	defer func() { v.budget.Release(held) }()
	token, err := tsp.ParseTokenWithin(tsp.Unwrap(value), func(n int64) error {
		held += n
		return v.budget.Hold(n)
	})
	if err != nil {
		return invalid(err)
	}
	ts.Time, ts.Digest = token.Info.Time, sig.DigestOfToken(token)
	later, err := imprints.answers(kind, place, token, v.budget.Spend)
	if err != nil {
		return invalid(err)
	}
	if later {
		l.note(codeTimeStampLater, "a time stamp of the signature was added after the time stamp (%s) of %s, which does not cover it", kind, at(token.Info.Time))
	}
	found := v.tokenFound(contentsOf(token), l)
	if ts.Signer, err = token.CheckSignature(slices.Concat(found.Certificates, v.check.Intermediates, v.check.Roots)); err != nil {
		return invalid(err)
	}
	var findings []sig.Finding
	// Alone, a time stamp is judged at its own time. Under archive time stamps it is judged at the time
	// that they prove: they exist because its certificate ends.
	judged, forged := ts.Time, v.check.At
	switch {
	case l.chained():
		judged = v.provenBy(l, place, ts.Time)
		forged = judged
		l.inOrder(place, kind, ts.Time, sync.OnceValue(func() bool { return v.check.StampWasGood(ctx, token, ts.Signer, found) }))
	case v.around.Chained, l.covered, v.check.LivingStamps: // the container has them, or the signature below
		if judged = v.at(l); judged.Before(ts.Time) {
			judged = ts.Time
		}
		forged = judged
	}
	ts.Chain, findings = v.check.TrustTimeStamp(ctx, ts.Signer, judged, found)
	ts.Findings = append(ts.Findings, findings...)
	other := sig.StampOtherIssuer(token, ts.Signer)
	ts.Findings, l.findings = append(ts.Findings, other...), append(l.findings, other...)
	if f, weak := sig.WeakStamp(token.Weakness(ts.Signer, forged, v.check.Ends)); weak {
		ts.Findings = append(ts.Findings, f)
		l.note(f.Code, "%s", f.Text)
	} else if !ts.Passed() {
		l.note(codeTimeStampUntrusted, "the time stamp (%s) of %s proves no time: it is not by a trusted service", kind, at(ts.Time))
	}
	return ts
}

// tokenFound returns all data that may help to check a token: its own, including its
// unsigned attributes, and that of the signature.
func (v *verifier) tokenFound(own sig.Found, l *longTerm) sig.Found {
	return sig.Found{
		Certificates: slices.Concat(own.Certificates, l.values.Certificates, v.certs, l.held.Certificates),
		CRLs:         slices.Concat(own.CRLs, l.values.CRLs, v.crls, l.held.CRLs),
		OCSP:         slices.Concat(own.OCSP, l.values.OCSP, v.answers, l.held.OCSP),
	}
}

// level returns the highest level whose attributes are present and valid.
func (v *verifier) level(out *sig.Signature, l *longTerm) string {
	below := v.levelBelow(out, l)
	var beside sig.Found
	switch {
	case l.broken || l.disorder:
		return below
	case v.around.Archived != nil && (l.archiveTS || below != "BES" && below != "T"):
		beside = *v.around.Archived
	case !l.archiveTS:
		return below
	}
	// What is beside the message counts only as far as a stamp covers it: one in the message covers nothing of it.
	switch {
	case l.unresolved || l.valuesBroken || !v.selfContained(out, l, beside):
		return below
	}
	return "A"
}

// levelBelow returns the level without archive time stamps.
func (v *verifier) levelBelow(out *sig.Signature, l *longTerm) string {
	switch {
	case l.broken || !l.signatureTS && !v.around.Stamped:
		return "BES"
	case !l.hasRefs && len(v.crls)+len(v.answers)+len(v.around.CRLs)+len(v.around.OCSP) > 0 && !l.valuesBroken && v.selfContained(out, l, v.around.Found):
		return "LT" // the values are in the fields of the message, or beside it
	case !l.hasRefs:
		return "T"
	}
	path := out.Chain
	for i := 1; i < len(path); i++ {
		if !slices.ContainsFunc(l.certRefs, func(r reference) bool { return r.matches(path[i].Raw) }) {
			l.note(codeReferenceMissing, "%s is on the path of the signer but has no reference", evidence.Name(path[i]))
		}
	}
	v.values(out, l)
	complete := l.hasValues && !l.unresolved && !l.valuesBroken && v.selfContained(out, l, v.around.Found)
	switch {
	case complete && l.referencesTS:
		return "XLT1"
	case complete:
		return "X-L"
	case l.referencesTS:
		return "X1"
	}
	return "C"
}

// selfContained reports whether the message, with the evidence beside it, proves that no certificate on the
// signer's path was revoked at the best time.
func (v *verifier) selfContained(out *sig.Signature, l *longTerm, beside sig.Found) bool {
	found := joined(joined(l.values, sig.Found{Certificates: v.certs, CRLs: v.crls, OCSP: v.answers}), joined(l.held, beside))
	notes, complete := evidence.Complete(out.Signer, v.check.Roots, found, out.BestTime)
	for _, n := range notes { // it is asked once for each level
		if !slices.ContainsFunc(l.findings, func(f sig.Finding) bool { return f.Code == n.Code && f.Text == n.Text }) {
			l.findings = append(l.findings, n)
		}
	}
	return complete
}

// at returns a time as findings have it.
func at(t time.Time) string { return t.UTC().Format(time.RFC3339) }
