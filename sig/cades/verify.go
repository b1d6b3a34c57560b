package cades

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
)

// Codes of findings beside those of package cms and of the chain.
const (
	codeNoSignature     = "no-signature"                // nobody signed the message
	codeNoCertificate   = "certificate-missing"         // the signer's certificate is nowhere to be found
	codeOriginal        = "original-mismatch"           // the given document is not the one attached
	codeDigestUnlisted  = "digest-algorithm-not-listed" // digestAlgorithms lacks the signer's
	codeUnreadable      = "certificate-unreadable"      // a certificate or CRL of the message cannot be read
	codeCountersigner   = "countersignature-malformed"  // a countersignature cannot be read
	codeHashUnavailable = "hash-algorithm-mismatch"     // only a hash by another algorithm is given
	codeMany            = "too-many-signatures"         // more than are judged
	codePadding         = "message-padding"             // zero bytes follow the message

	// Judged of one message. Signatures that share certificates, as in a message
	// with hundreds of them, cost a few verifications each; made to be slow, each may
	// cost a hundred, which is what the caller's context is for.
	maxSigners        = 1024
	maxCountersigners = 256 // all levels together
)

// indications say what fatal findings mean. Those that are not listed break the
// rules of the format.
var indications = sig.Indications{
	codeNoCertificate:          sig.NoSigningCertificateFound,
	codeOriginal:               sig.HashFailure,
	codeHashUnavailable:        sig.SignedDataNotFound,
	codeMany:                   sig.Generic,
	codeTimeStampInvalid:       sig.NoPOE,
	cms.CodeAlgorithm:          sig.CryptoConstraintsFailure,
	cms.CodeMessageDigest:      sig.HashFailure,
	cms.CodeSignature:          sig.SigCryptoFailure,
	cms.CodeSigningCertificate: sig.NoSigningCertificateFound,
}

// Verify implements sig.Verifier. A detached message needs the Original or its
// Hash. Given with an attached one, they must agree with what is attached.
func (f *Format) Verify(ctx context.Context, c *sig.Check) (*sig.Report, error) {
	return sig.Within(ctx, c.Document, func(ctx context.Context) (*sig.Report, error) { return f.verify(ctx, c) })
}

func (*Format) verify(ctx context.Context, c *sig.Check) (*sig.Report, error) {
	m, err := cms.Parse(c.Document, c.Document.Size())
	if err != nil {
		return nil, &sig.ErrDocument{What: "Document", Text: "a signed message (CMS SignedData) expected", Err: err}
	}
	if m.Detached && c.Original == nil && c.Hash == nil && len(m.Signers) > 0 {
		return nil, &sig.ErrParams{Faults: []sig.Fault{{
			Key: "OriginalDocument", Text: "is needed, or its hash value: the message is detached",
		}}}
	}
	if c.Hash != nil && (c.Hash.Hash == nil || len(c.Hash.Sum) != c.Hash.Hash.Size) {
		return nil, &sig.ErrParams{Faults: []sig.Fault{{
			Key: "Hash", Text: "the hash value given has not the length of its algorithm",
		}}}
	}
	b := spending(ctx)
	if err := charge(b, m); err != nil {
		return nil, err
	}
	v := &verifier{
		budget: b,
		check:  c, message: m, report: &sig.Report{},
		counters: maxCountersigners, stampsLeft: maxStamps, trusted: map[*x509gost.Certificate]trust{},
		checksLeft: maxValueChecks, sound: map[string]bool{},
	}
	if err := v.digests(ctx); err != nil {
		return nil, err
	}
	v.evidence()
	if m.Padding != 0 {
		v.report.Findings = append(v.report.Findings, sig.Finding{Code: codePadding, Text: fmt.Sprintf("%d zero bytes follow the message and belong to nothing", m.Padding)})
	}
	if len(m.Signers) == 0 {
		v.report.Findings = append(v.report.Findings, sig.Finding{Code: codeNoSignature, Text: "the message has no signature", Indication: sig.FormatFailure})
	}
	for i, s := range m.Signers {
		if i == maxSigners {
			v.report.Findings = append(v.report.Findings, sig.Finding{
				Code: codeMany, Text: fmt.Sprintf("the message has %d signatures, %d were judged", len(m.Signers), i), Indication: indications.Of(codeMany),
			})
			break
		}
		if err := v.budget.Err(); err != nil {
			return nil, err
		}
		v.report.Signatures = append(v.report.Signatures, v.signature(ctx, i, s))
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return v.report, nil
}

type verifier struct {
	budget  *budget.Budget
	check   *sig.Check
	message *cms.Message
	report  *sig.Report
	content []suite.Digest // of what is signed, by each algorithm in use
	certs   []*x509gost.Certificate
	crls    []*x509gost.RevocationList
	covers  string
	carried int64 // bytes of certs and crls

	candidates []*x509gost.Certificate // where signers are looked for, the message's own first
	counters   int                     // countersignatures still to be judged
	stampsLeft int                     // time stamps still to be judged
	trusted    map[*x509gost.Certificate]trust
	checksLeft int             // signatures on values still to be checked
	sound      map[string]bool // values whose signature holds, as DER
}

// trust is the judgement of one certificate at the moment of the check by what the
// message has for all, the same for all signatures without evidence of their own.
type trust struct {
	path  []*x509gost.Certificate
	found []sig.Finding
}

// digests reads what is signed once, for all signers. Whatever else the caller
// gave about the document must agree with it.
func (v *verifier) digests(ctx context.Context) (err error) {
	c, m := v.check, v.message
	if m.Detached && c.Original == nil {
		if c.Hash != nil {
			v.content = []suite.Digest{*c.Hash}
		}
		v.covers = "the detached document with the given hash value"
		return nil
	}
	var hashes []*suite.Hash
	for _, s := range m.Signers {
		if h, err := s.Hash(); err == nil && !slices.Contains(hashes, h) {
			hashes = append(hashes, h)
		}
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
		v.covers = fmt.Sprintf("the detached document, %d octets", c.Original.Size())
		v.content = original
	} else {
		v.covers = fmt.Sprintf("the attached document, %d octets", m.ContentSize())
		if v.content, err = sig.DigestAll(ctx, m.ContentReader(), m.ContentSize(), hashes...); err != nil {
			return err
		}
		given = append(given, original...)
	}
	for _, g := range given {
		if d, ok := find(v.content, g.Hash); ok && !bytes.Equal(d.Sum, g.Sum) {
			v.report.Findings = append(v.report.Findings, sig.Finding{
				Code: codeOriginal, Text: "the document or hash value given is not what the message was made over", Indication: indications.Of(codeOriginal),
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

// evidence parses what the message brings along. What cannot be read is told,
// not fatal: it matters only if the signer's is among it.
func (v *verifier) evidence() {
	var err1, err2 error
	v.certs, err1 = v.message.X509()
	v.crls, err2 = v.message.RevocationLists()
	for _, err := range []error{err1, err2} {
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
	v.candidates = slices.Clone(v.certs)
	if v.check.Certificate != nil {
		v.candidates = append(v.candidates, v.check.Certificate)
	}
	v.candidates = append(append(v.candidates, v.check.Intermediates...), v.check.Roots...)
}

// signature judges one signer of the message.
func (v *verifier) signature(ctx context.Context, index int, s *cms.SignerInfo) sig.Signature {
	out, l := v.describe(index, s)
	out.Covers = v.covers
	if !slices.ContainsFunc(v.message.DigestAlgorithms, func(a cms.Algorithm) bool { return a.OID.Equal(s.DigestAlgorithm.OID) }) {
		out.Findings = append(out.Findings, sig.Finding{Code: codeDigestUnlisted, Text: "digestAlgorithms of the message does not list the algorithm of this signature"})
	}
	out.Countersigners = v.countersigners(ctx, s, l, &out, 0)
	h, err := s.Hash()
	if err != nil {
		return fatal(out, cms.CodeAlgorithm, err.Error())
	}
	content, ok := find(v.content, h)
	if !ok {
		return fatal(out, codeHashUnavailable, fmt.Sprintf("the signature is over a %s hash value, but one by %s is given", h.Name, v.check.Hash.Hash.Name))
	}
	if out.Signer == nil {
		return fatal(out, codeNoCertificate, "the signer's certificate is neither in the message nor given")
	}
	return v.judge(ctx, out, s, l, s.Check(out.Signer, v.message.ContentType, content))
}

// describe says what a signer info claims, before anything is judged.
func (v *verifier) describe(index int, s *cms.SignerInfo) (sig.Signature, *longTerm) {
	out := sig.Signature{Index: index, Level: "CMS", BestTime: v.check.At}
	if chargeSigner(v.budget, s, len(v.candidates)) != nil {
		return out, &longTerm{} // Verify says so
	}
	out.Scheme, _ = s.Scheme() // an unknown one becomes a finding of Check
	out.SigningTime, _ = s.SigningTime()
	l := readLongTerm(s)
	if out.Signer = s.FindCertificate(v.candidates); out.Signer == nil {
		out.Signer = s.FindCertificate(l.values.Certificates)
	}
	if v.budget.Spend(sig.Price(out.Signer)) != nil {
		out.Signer = nil // Verify says so
	}
	return out, l
}

// judge adds what Check found, what the time stamps and the evidence say, and what
// the chain says at the best time, and sets the level.
func (v *verifier) judge(ctx context.Context, out sig.Signature, s *cms.SignerInfo, l *longTerm, found cms.Findings) sig.Signature {
	protected := true
	for _, f := range found {
		one := sig.Finding{Code: f.Code, Text: f.Text}
		if f.Fatal {
			one.Indication = indications.Of(f.Code)
		}
		if f.Code == cms.CodeOrder {
			one.Headline = "signed attributes not in DER order"
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
	if out.Scheme != nil {
		if f, weak := sig.WeakHash(out.Scheme.Hash, out.BestTime); weak {
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

// trust judges the certificate of a signature at its best time.
func (v *verifier) trust(ctx context.Context, out *sig.Signature, l *longTerm) ([]*x509gost.Certificate, []sig.Finding) {
	found := sig.Found{
		Certificates: slices.Concat(v.certs, l.values.Certificates, l.borrowed),
		CRLs:         slices.Concat(v.crls, l.values.CRLs),
		OCSP:         l.values.OCSP,
	}
	if l.hasValues || len(l.values.Certificates)+len(l.borrowed) > 0 || !out.BestTime.Equal(v.check.At) {
		return v.check.Trust(ctx, out.Signer, out.BestTime, found)
	}
	t, ok := v.trusted[out.Signer]
	if !ok {
		t.path, t.found = v.check.Trust(ctx, out.Signer, out.BestTime, found)
		v.trusted[out.Signer] = t
	}
	return t.path, t.found
}

// countersigners judges the signatures over the value of target, and those over
// theirs.
func (v *verifier) countersigners(ctx context.Context, target *cms.SignerInfo, of *longTerm, owner *sig.Signature, depth int) (out []sig.Signature) {
	infos, err := target.Countersignatures()
	if err != nil {
		owner.Findings = append(owner.Findings, sig.Finding{Code: codeCountersigner, Text: err.Error(), Indication: sig.FormatFailure})
	}
	for i, s := range infos {
		if v.budget.Err() != nil {
			return out // Verify says so
		}
		if v.counters == 0 || depth == cms.MaxCountersignatures {
			owner.Findings = append(owner.Findings, sig.Finding{Code: codeCountersigner, Text: "there are more countersignatures than are looked at", Indication: sig.Generic})
			return out
		}
		v.counters--
		c, l := v.describe(i, s)
		if c.Signer == nil { // one set of values may serve the signature and those on it
			c.Signer = s.FindCertificate(slices.Concat(of.values.Certificates, of.borrowed))
		}
		l.borrowed = slices.Concat(of.borrowed, of.values.Certificates)
		c.Covers = "the value of the signature above"
		if c.Signer == nil {
			c = fatal(c, codeNoCertificate, "the countersigner's certificate is neither in the message nor given")
		} else {
			c = v.judge(ctx, c, s, l, s.CheckCountersignature(c.Signer, target))
		}
		c.Countersigners = v.countersigners(ctx, s, l, &c, depth+1)
		out = append(out, c)
	}
	return out
}

func fatal(s sig.Signature, code, text string) sig.Signature {
	s.Findings = append(s.Findings, sig.Finding{Code: code, Text: text, Indication: indications.Of(code)})
	return s
}
