// SPDX-License-Identifier: Apache-2.0

package cades

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"tamga/pki/cms"
	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
)

// Codes of findings, in addition to those of package cms and of the chain.
const (
	codeNoSignature     = "no-signature"                // the message has no signature
	codeNoCertificate   = "certificate-missing"         // the signer's certificate was not found
	codeOriginal        = "original-mismatch"           // the given document is not the attached one
	codeDigestUnlisted  = "digest-algorithm-not-listed" // digestAlgorithms lacks the signer's
	codeUnreadable      = "certificate-unreadable"      // a certificate or CRL of the message is malformed
	codeCountersigner   = "countersignature-malformed"  // a countersignature is malformed
	codeHashUnavailable = "hash-algorithm-mismatch"     // the given hash value is by another algorithm
	codeDocumentMissing = "document-missing"            // the document of a detached message is missing
	codeMany            = "too-many-signatures"         // more than are checked
	codePadding         = "message-padding"             // zero bytes follow the message

	// Limits for the check of one message. In an ordinary message with hundreds of
	// signatures they share certificates and cost a few verifications each. In a message
	// made to be slow each may cost a hundred; the caller's context bounds that.
	maxSigners        = 1024
	maxCountersigners = 256 // all levels together
)

// Verify implements sig.Verifier. A detached message needs the Original or its Hash. If
// they are given with an attached message, they must match the attached document.
func (f *Format) Verify(ctx context.Context, c *sig.Check) (*sig.Report, error) {
	return sig.Within(ctx, c.Document, func(ctx context.Context) (*sig.Report, error) { return f.verify(ctx, c) })
}

func (*Format) verify(ctx context.Context, c *sig.Check) (*sig.Report, error) {
	b := spending(ctx)
	m, err := cms.ParseWithin(c.Document, c.Document.Size(), b.Hold)
	if err != nil {
		return nil, &sig.ErrDocument{What: "Document", Text: "a signed message (CMS SignedData) expected", Err: err}
	}
	alone := m.Detached && c.Original == nil && c.Hash == nil && len(m.Signers) > 0
	if alone && !c.Describe {
		return nil, &sig.ErrParams{Faults: []sig.Fault{{
			Key: "OriginalDocument", Text: "is missing; the message is detached, so the document or its hash value is needed",
		}}}
	}
	if c.Hash != nil && (c.Hash.Hash == nil || len(c.Hash.Sum) != c.Hash.Hash.Size) {
		return nil, &sig.ErrParams{Faults: []sig.Fault{{
			Key: "Hash", Text: "the given hash value does not have the length of its algorithm",
		}}}
	}
	if err := charge(b, m); err != nil {
		return nil, err
	}
	v := &verifier{
		budget: b,
		check:  c, message: m, alone: alone, report: &sig.Report{},
		counters: maxCountersigners, stampsLeft: maxStamps, trusted: map[*x509gost.Certificate]trust{},
		checksLeft: maxValueChecks, sound: map[string]bool{}, archives: map[*cms.SignerInfo]*archives{},
	}
	if c.Container != nil {
		v.around = *c.Container
	}
	left := maxStamps
	for i, s := range m.Signers {
		if i == maxSigners {
			break
		}
		if v.archives[s], err = readArchives(s, b, &left); err != nil {
			return nil, err
		}
	}
	if err := v.digests(ctx); err != nil {
		return nil, err
	}
	v.source = &source{message: m, signed: c.Document, original: c.Original, content: v.content, ends: c.Ends, spend: b.Spend}
	v.evidence()
	if m.Padding != 0 {
		v.report.Findings = append(v.report.Findings, sig.Finding{Code: codePadding, Text: fmt.Sprintf("%d zero bytes follow the message and belong to nothing", m.Padding)})
	}
	if len(m.Signers) == 0 {
		v.report.Findings = append(v.report.Findings, sig.Finding{Code: codeNoSignature, Text: "the message has no signature", Indication: sig.IndicationOf(codeNoSignature)})
	}
	for i, s := range m.Signers {
		if i == maxSigners {
			v.report.Findings = append(v.report.Findings, sig.Finding{
				Code: codeMany, Text: fmt.Sprintf("the message has %d signatures; only the first %d were checked", len(m.Signers), i), Indication: sig.IndicationOf(codeMany),
			})
			break
		}
		if err := v.budget.Err(); err != nil {
			return nil, err
		}
		v.report.Signatures = append(v.report.Signatures, v.signature(ctx, i, s))
	}
	if err := cmp.Or(ctx.Err(), v.source.failed); err != nil {
		return nil, err
	}
	return v.report, nil
}

type verifier struct {
	budget  *budget.Budget
	check   *sig.Check
	around  sig.Container // empty without one
	message *cms.Message
	report  *sig.Report
	content []suite.Digest // of the signed document, by each algorithm in use
	certs   []*x509gost.Certificate
	crls    []*x509gost.RevocationList
	answers []*ocsp.Basic // of the field crls
	covers  string
	alone   bool  // the document of a detached message is missing
	carried int64 // bytes of certs and crls

	candidates []*x509gost.Certificate // where signers are searched for, the message's own certificates first
	counters   int                     // countersignatures that may still be checked
	stampsLeft int                     // time stamps that may still be checked
	trusted    map[*x509gost.Certificate]trust
	checksLeft int             // signatures on values that may still be checked
	sound      map[string]bool // valid values, as DER

	archives map[*cms.SignerInfo]*archives
	source   *source // what archive time stamps cover besides
}

// trust is the result for one certificate at the time of the check, with the evidence of
// the message for all. It is the same for all signatures without their own evidence.
type trust struct {
	path  []*x509gost.Certificate
	found []sig.Finding
}

// digests hashes the signed document once for all signers. Any other data about the
// document that the caller gave must match it.
func (v *verifier) digests(ctx context.Context) (err error) {
	c, m := v.check, v.message
	if m.Detached && c.Original == nil {
		if c.Hash != nil {
			v.content = []suite.Digest{*c.Hash}
		}
		if v.covers = "the detached document with the given hash value"; v.alone {
			v.covers = "a detached document, which is missing"
		}
		return nil
	}
	var hashes []*suite.Hash
	for _, s := range m.Signers {
		if h, err := s.Hash(); err == nil && !slices.Contains(hashes, h) {
			hashes = append(hashes, h)
		}
		hashes = v.archives[s].hashes(hashes)
	}
	var given []suite.Digest
	if c.Hash != nil {
		given = append(given, *c.Hash)
		if !slices.Contains(hashes, c.Hash.Hash) {
			hashes = append(hashes, c.Hash.Hash)
		}
	}
	var original []suite.Digest
	if err := chargeHashes(v.budget, c.Document, len(hashes)); err != nil {
		return err
	}
	if c.Original != nil {
		if err := chargeHashes(v.budget, c.Original, len(hashes)); err != nil {
			return err
		}
		if original, err = digestDocument(ctx, c.Original, hashes); err != nil {
			return err
		}
	}
	if m.Detached {
		v.covers = fmt.Sprintf("the detached document, %d bytes", c.Original.Size())
		v.content = original
	} else {
		v.covers = fmt.Sprintf("the attached document, %d bytes", m.ContentSize())
		if v.content, err = sig.DigestAll(ctx, m.ContentReader(), m.ContentSize(), hashes...); err != nil {
			return err
		}
		given = append(given, original...)
	}
	for _, g := range given {
		if d, ok := find(v.content, g.Hash); ok && !bytes.Equal(d.Sum, g.Sum) {
			v.report.Findings = append(v.report.Findings, sig.Finding{
				Code: codeOriginal, Text: "the given document or hash value is not the one that the message covers", Indication: sig.IndicationOf(codeOriginal),
			})
			break
		}
	}
	return nil
}

func digestDocument(ctx context.Context, d sig.Document, hashes []*suite.Hash) ([]suite.Digest, error) {
	if d, ok := d.(sig.Digester); ok {
		return d.Digests(ctx, hashes...)
	}
	return sig.DigestAll(ctx, io.NewSectionReader(d, 0, d.Size()), d.Size(), hashes...)
}

func find(ds []suite.Digest, h *suite.Hash) (suite.Digest, bool) {
	i := slices.IndexFunc(ds, func(d suite.Digest) bool { return d.Hash == h })
	if i < 0 {
		return suite.Digest{}, false
	}
	return ds[i], true
}

// evidence parses the certificates and CRLs of the message. A malformed one is a finding
// but not fatal: it matters only if it is the signer's.
func (v *verifier) evidence() {
	var err1, err2, err3 error
	v.certs, err1 = v.message.X509()
	v.crls, err2 = v.message.RevocationLists()
	v.answers, err3 = v.message.OCSPAnswers()
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			v.report.Findings = append(v.report.Findings, sig.Finding{Code: codeUnreadable, Text: err.Error()})
		}
	}
	for _, c := range v.certs {
		v.carried += int64(len(c.Raw))
	}
	for _, l := range v.crls {
		v.carried += int64(len(l.Raw))
	}
	for _, b := range v.answers {
		v.carried += int64(len(b.Raw))
	}
	v.candidates = slices.Clone(v.certs)
	if v.check.Certificate != nil {
		v.candidates = append(v.candidates, v.check.Certificate)
	}
	v.candidates = append(append(v.candidates, v.check.Intermediates...), v.check.Roots...)
}

// signature checks one signer of the message.
func (v *verifier) signature(ctx context.Context, index int, s *cms.SignerInfo) sig.Signature {
	out, l := v.describe(index, s)
	out.Covers = v.covers
	if !slices.ContainsFunc(v.message.DigestAlgorithms, func(a cms.Algorithm) bool { return a.OID.Equal(s.DigestAlgorithm.OID) }) {
		out.Findings = append(out.Findings, sig.Finding{Code: codeDigestUnlisted, Text: "digestAlgorithms of the message does not list the algorithm of this signature"})
	}
	if v.archived(ctx, l) != nil {
		return out // Verify returns this error
	}
	out.Countersigners = v.countersigners(ctx, s, l, &out, 0)
	l.over = out.Countersigners
	h, err := s.Hash()
	if err != nil {
		return fatal(out, cms.CodeAlgorithm, err.Error())
	}
	if v.alone {
		if value, found, err := s.SignedAttribute(cms.OIDMessageDigest); err == nil && found {
			if sum, ok := cms.ReadMessageDigest(value); ok {
				out.Signed = &suite.Digest{Hash: h, Sum: sum}
			}
		}
		return fatal(out, codeDocumentMissing, "the document that the signature covers is missing")
	}
	content, ok := find(v.content, h)
	if !ok {
		return fatal(out, codeHashUnavailable, fmt.Sprintf("the signature covers a %s hash value, but one by %s was given", h.Name, v.check.Hash.Hash.Name))
	}
	if out.Signer == nil {
		return fatal(out, codeNoCertificate, "the signer's certificate is missing: it is not in the message, and none was given")
	}
	return v.judge(ctx, out, s, l, s.Check(out.Signer, v.message.ContentType, content))
}

// describe returns the claims of a SignerInfo, before any check.
func (v *verifier) describe(index int, s *cms.SignerInfo) (sig.Signature, *longTerm) {
	out := sig.Signature{Index: index, Level: "CMS", BestTime: v.check.At}
	if chargeSigner(v.budget, s, len(v.candidates)) != nil {
		return out, &longTerm{} // Verify returns this error
	}
	out.Scheme, _ = s.Scheme() // Check reports an unknown one
	out.SigningTime, _ = s.SigningTime()
	l := readLongTerm(s)
	l.archives = v.archives[s]
	if out.Signer = s.FindCertificate(v.candidates); out.Signer == nil {
		out.Signer = s.FindCertificate(l.values.Certificates)
	}
	if v.budget.Spend(sig.Price(out.Signer)) != nil {
		out.Signer = nil // Verify returns this error
	}
	return out, l
}

// judge adds the findings of Check, of the time stamps and the evidence, and of the chain
// at the best time, and sets the level.
func (v *verifier) judge(ctx context.Context, out sig.Signature, s *cms.SignerInfo, l *longTerm, found cms.Findings) sig.Signature {
	protected := true
	for _, f := range found {
		one := sig.Finding{Code: f.Code, Text: f.Text}
		switch {
		case f.Fatal:
			one.Indication = sig.IndicationOf(f.Code)
		case f.Code == cms.CodeOtherIssuer:
			one = sig.OtherIssuer(f)
		}
		out.Findings = append(out.Findings, one)
		switch f.Code {
		case cms.CodeNoSigningCert, cms.CodeSigningCertificate, cms.CodeSigningCertV1, cms.CodeAlgorithm, cms.CodeAlgorithmMismatch:
			protected = false
		}
	}
	if l.hasRefs && l.hasValues {
		v.budget.Spend(v.carried) // every value is digested
	}
	l.resolve(sig.Found{Certificates: v.certs, CRLs: v.crls})
	out.BestTime = time.Time{}
	v.stamps(ctx, &out, s, l)
	out.Proofs = l.proofs
	for i := range l.over {
		for _, ts := range stampsOver(&l.over[i]) {
			out.Proofs = append(out.Proofs, ts)
			if ts.Time.Before(out.BestTime) {
				out.BestTime = ts.Time
			}
		}
	}
	if out.Scheme != nil {
		if f, weak := v.check.WeakScheme(out.Scheme, out.BestTime); weak {
			out.Findings = append(out.Findings, f)
		}
	}
	var chainFound []sig.Finding
	out.Chain, chainFound = v.trust(ctx, &out, l)
	if protected {
		out.Level = v.level(&out, l)
	}
	out.Findings = slices.Concat(out.Findings, l.findings, chainFound)
	return out
}

// trust checks the certificate of a signature at its best time.
func (v *verifier) trust(ctx context.Context, out *sig.Signature, l *longTerm) ([]*x509gost.Certificate, []sig.Finding) {
	found := sig.Found{
		Certificates: slices.Concat(v.certs, l.values.Certificates, l.held.Certificates, l.borrowed),
		CRLs:         slices.Concat(v.crls, l.values.CRLs, l.held.CRLs),
		OCSP:         slices.Concat(v.answers, l.values.OCSP, l.held.OCSP),
	}
	if l.hasValues || l.archives != nil || len(l.values.Certificates)+len(l.borrowed) > 0 || !out.BestTime.Equal(v.check.At) {
		return v.check.Trust(ctx, out.Signer, out.BestTime, found)
	}
	t, ok := v.trusted[out.Signer]
	if !ok {
		t.path, t.found = v.check.Trust(ctx, out.Signer, out.BestTime, found)
		v.trusted[out.Signer] = t
	}
	return t.path, t.found
}

// countersigners checks the signatures over the value of target, and those over theirs.
func (v *verifier) countersigners(ctx context.Context, target *cms.SignerInfo, of *longTerm, owner *sig.Signature, depth int) (out []sig.Signature) {
	infos, err := target.Countersignatures()
	if err != nil {
		owner.Findings = append(owner.Findings, sig.Finding{Code: codeCountersigner, Text: err.Error(), Indication: sig.IndicationOf(codeCountersigner)})
	}
	for i, s := range infos {
		if v.budget.Err() != nil {
			return out // Verify returns this error
		}
		if v.counters == 0 || depth == cms.MaxCountersignatures {
			owner.Findings = append(owner.Findings, sig.Finding{Code: codeMany, Text: "there are more countersignatures than the limit; the others were not checked", Indication: sig.IndicationOf(codeMany)})
			return out
		}
		v.counters--
		c, l := v.describe(i, s)
		if c.Signer == nil { // the values of a signature may serve its countersignatures too
			c.Signer = s.FindCertificate(slices.Concat(of.values.Certificates, of.borrowed))
		}
		l.borrowed = slices.Concat(of.borrowed, of.values.Certificates)
		l.under(v, of, target)
		c.Covers = "the value of the signature that it countersigns"
		l.over = v.countersigners(ctx, s, l, &c, depth+1)
		if c.Signer == nil {
			c = fatal(c, codeNoCertificate, "the countersigner's certificate is missing: it is not in the message, and none was given")
		} else {
			c = v.judge(ctx, c, s, l, s.CheckCountersignature(c.Signer, target))
		}
		c.Countersigners = l.over
		out = append(out, c)
	}
	return out
}

// stampsOver returns the time stamps of a countersignature that prove that the signature under it existed. The
// countersigner must be trusted: the time stamp is over a value, and for an old value and any new digest a key can be
// computed under which the value is a signature of the digest. An authority certifies no such key, because its owner
// cannot sign anything else with it.
func stampsOver(c *sig.Signature) (list []sig.TimeStamp) {
	if c.Own() != sig.Passed {
		return nil
	}
	for _, ts := range c.TimeStamps {
		if ts.Proves() {
			list = append(list, ts)
		}
	}
	for i := range c.Countersigners {
		list = append(list, stampsOver(&c.Countersigners[i])...)
	}
	return list
}

func fatal(s sig.Signature, code, text string) sig.Signature {
	s.Findings = append(s.Findings, sig.Finding{Code: code, Text: text, Indication: sig.IndicationOf(code)})
	return s
}
