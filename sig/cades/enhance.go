// SPDX-License-Identifier: Apache-2.0

package cades

import (
	"context"
	"fmt"
	"slices"

	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
)

// Enhance implements sig.Enhancer. It reads the parameters CADESType, TSPAddress,
// SignatureIndex and Hash (the original is a hash value). A signature is verified before
// it is enhanced. If a detached message comes without its original, everything but the
// document is verified. Signatures above the requested level stay as they are if others
// are enhanced. If all chosen signatures are above it, the job is refused.
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
	position := readPosition(r)
	q.Level = readLevel(r)
	address := stampAddress(q, job, r)
	if q.Level == sig.LevelBasic {
		r.Fault("CADESType", "is BES or absent; T, XLT1 or A expected, because Enhance never lowers a level")
	}
	m, err := parse(ctx, job.Document)
	if err != nil {
		if faults := r.Err(); faults != nil {
			return nil, faults
		}
		return nil, err
	}
	e := &enhancement{job: job, message: m, budget: spending(ctx), level: q.Level, overHash: q.OverHash, into: containerOf(m)}
	if len(position) > 1 && q.Level == sig.LevelArchive {
		r.Fault("SignatureIndex", "names a countersignature, which gets no archive time stamp of its own: the one of the signature covers it")
	}
	if err := e.choose(position, r); err != nil {
		return nil, err
	}
	if err := e.digests(ctx, r, q.OverHash); err != nil {
		return nil, err
	}
	goal.Level, goal.OverHash, goal.Nested = q.Level, q.OverHash, len(position) > 1
	if len(position) == 1 {
		goal.Index = position[0]
	}
	e.into.content = e.content
	targets, err := e.targets(ctx, q.Level)
	if err != nil {
		return nil, err
	}
	if len(targets) == 0 {
		return sig.Parts(sig.Section(job.Document, 0, job.Document.Size())), nil
	}
	work := &raising{by: stamper{job.Evidence, address}, known: e.known, rules: f.Rules, into: e.into}
	if err := work.raise(ctx, targets, q.Level); err != nil {
		return nil, err
	}
	replaced := make(map[int][]byte, len(targets))
	for _, t := range targets {
		line := e.lines[t.info]
		raw, err := t.info.ChangeUnsigned(t.replaced, t.attrs...)
		if err == nil {
			raw, err = line.position.replace(line.infos, raw)
		}
		if err != nil {
			return nil, &sig.ErrDocument{What: "Document", Text: "cannot be enhanced", Err: err}
		}
		replaced[line.position[0]] = raw
	}
	changes := e.into.changes()
	changes.Replaced = replaced
	return rewritten(job.Document, m, changes)
}

// enhancement is the work on one message whose signatures are enhanced.
type enhancement struct {
	budget   *budget.Budget
	job      *sig.Job
	message  *cms.Message
	known    []*x509gost.Certificate
	content  []suite.Digest // empty if there is no document
	chosen   []*cms.SignerInfo
	lines    map[*cms.SignerInfo]line
	level    sig.Level // requested
	overHash bool      // the original is a hash value
	into     *container
	earlier  map[*cms.SignerInfo]*archives // archive time stamps of the chosen signatures, if the level is theirs
	source   *source                       // what they cover
}

// line is the path from a signature of the message to the one at the position.
type line struct {
	position position
	infos    []*cms.SignerInfo
}

// choose finds the requested signatures: the one at the position, or all of the message.
func (e *enhancement) choose(p position, r *sig.ParamReader) error {
	e.lines = map[*cms.SignerInfo]line{}
	if p != nil {
		if infos := p.find(e.message, r); infos != nil {
			last := infos[len(infos)-1]
			e.chosen, e.lines[last] = []*cms.SignerInfo{last}, line{p, infos}
		}
		return r.Err()
	}
	for i, s := range e.message.Signers {
		e.chosen = append(e.chosen, s)
		e.lines[s] = line{position{i}, []*cms.SignerInfo{s}}
	}
	if err := r.Err(); err != nil {
		return err
	}
	if len(e.chosen) == 0 {
		return sig.Unsigned()
	}
	return nil
}

// digests reads the document, if there is one, and the certificates.
func (e *enhancement) digests(ctx context.Context, r *sig.ParamReader, isHash bool) (err error) {
	e.known, _ = e.message.X509() // an unreadable one is reported as missing if it is needed
	if e.job.Certificate != nil {
		e.known = append(e.known, e.job.Certificate)
	}
	e.known = append(e.known, e.job.Chain...)
	// If a hash value is given, the hash of the first signature determines the suite.
	s := suite.GOST2012x256
	if h, err := e.chosen[0].Hash(); err == nil {
		for _, su := range suite.All() {
			if su.Hash == h {
				s = su
			}
		}
	}
	var more []*suite.Hash // of earlier archive time stamps, whose imprints cover the document
	if e.level >= sig.LevelArchive {
		e.earlier = map[*cms.SignerInfo]*archives{}
		for _, si := range e.chosen {
			left := maxStamps
			if e.earlier[si], err = readArchives(si, e.budget, &left); err != nil {
				return err
			}
			more = e.earlier[si].hashes(more)
		}
	}
	if e.content, err = originals(ctx, e.job, r, e.message, isHash, s, more...); err != nil {
		return err
	}
	return sameOriginal(e.message, e.content, given(e.job.Original))
}

// targets verifies the chosen signatures and returns those below the level, or at a level that is
// renewed.
func (e *enhancement) targets(ctx context.Context, level sig.Level) ([]*target, error) {
	renews := renewed(level)
	var targets []*target
	above, highest := 0, level
	for _, s := range e.chosen {
		if err := chargeSigner(e.budget, s, len(e.known)); err != nil {
			return nil, err
		}
		line := e.lines[s]
		t, err := e.target(line)
		if err != nil {
			return nil, err
		}
		if t.level, err = e.has(ctx, line, t); err != nil {
			return nil, err
		}
		switch {
		case t.level == level && renews: // what it has stays as it is
			targets = append(targets, t)
		case t.level == level:
		case t.level > level:
			above, highest = above+1, max(highest, t.level)
		default:
			if err := checkFrozen(line.position, line.infos); err != nil {
				return nil, err
			}
			targets = append(targets, t)
		}
	}
	if above == len(e.chosen) {
		return nil, &sig.ErrParams{Faults: []sig.Fault{{
			Key: "CADESType", Text: fmt.Sprintf("is %s, but the chosen signatures are already %s, and Enhance never lowers a level", TypeOf(level), TypeOf(highest)),
		}}}
	}
	return targets, nil
}

// target verifies one signature with the known certificates and document.
func (e *enhancement) target(l line) (*target, error) {
	s := l.infos[len(l.infos)-1]
	refuse := func(format string, args ...any) (*target, error) {
		return nil, &sig.ErrDocument{What: "Document", Text: fmt.Sprintf("signature %s ", l.position) + fmt.Sprintf(format, args...)}
	}
	c := s.FindCertificate(e.known)
	if c == nil {
		return refuse("cannot be enhanced: its certificate is not in the message, and none was given")
	}
	if err := e.budget.Spend(sig.Price(c)); err != nil {
		return nil, err
	}
	h, err := s.Hash()
	if err != nil || c.Suite == nil {
		return refuse("cannot be enhanced: this service does not sign with its algorithms")
	}
	var found cms.Findings
	if len(l.infos) > 1 {
		found = s.CheckCountersignature(c, l.infos[len(l.infos)-2])
	} else {
		content, ok := find(e.content, h)
		if !ok {
			if s.RawSignedAttrs == nil {
				return nil, &sig.ErrParams{Faults: []sig.Fault{{
					Key: "OriginalDocument", Text: fmt.Sprintf("is missing; signature %s has no signed attributes and covers the document itself", l.position),
				}}}
			}
			// There is no document: its signed digest is used as it is.
			value, _, _ := s.SignedAttribute(cms.OIDMessageDigest)
			content = suite.Digest{Hash: h, Sum: value[min(2, len(value)):]}
		}
		found = s.Check(c, e.message.ContentType, content)
	}
	if err := found.Err(); err != nil {
		return nil, &sig.ErrDocument{What: "Document", Text: fmt.Sprintf("signature %s is not valid and is not enhanced", l.position), Err: err}
	}
	if slices.ContainsFunc(found, func(f cms.Finding) bool { return f.Code == cms.CodeNoSigningCert }) {
		return refuse("is not CAdES-BES: it does not name the signer's certificate (signing-certificate-v2), and is not enhanced")
	}
	return &target{value: s.Signature, has: s.UnsignedAttrs, info: s, signer: c, hash: c.Suite.Hash, carried: e.message.Certificates}, nil
}

// has returns the level of a signature and reads its time stamps. A signature between two
// levels is an error: it is neither enhanced nor skipped.
func (e *enhancement) has(ctx context.Context, l line, t *target) (sig.Level, error) {
	present := map[string]int{}
	for _, a := range t.info.UnsignedAttrs {
		present[a.OID.String()]++
		if !a.OID.Equal(cms.OIDSignatureTimeStamp) {
			continue
		}
		for _, v := range a.Values {
			if err := e.budget.Spend(budget.Signature + stepsOfValue*int64(len(v))); err != nil {
				return 0, err
			}
			s, err := tsp.Verify(tsp.Unwrap(v), func(h *suite.Hash) suite.Digest { return h.Digest(t.info.Signature) }, e.known)
			if err != nil {
				return 0, &sig.ErrDocument{What: "Document", Text: fmt.Sprintf("the time stamp of signature %s is invalid", l.position), Err: err}
			}
			if len(t.stamps) == 0 || s.Token().Info.Time.Before(t.stamped) {
				t.stamped = s.Token().Info.Time
			}
			t.stamps = append(t.stamps, s)
		}
	}
	parts := 0
	for _, oid := range []x509gost.OID{cms.OIDCertificateRefs, cms.OIDRevocationRefs, cms.OIDEscTimeStamp, cms.OIDCertificateValues, cms.OIDRevocationValues} {
		if present[oid.String()] > 0 {
			parts++
		}
	}
	has := sig.LevelBasic
	for _, l := range levels {
		if l.has != nil && l.has(t.info) {
			has = l.Level
		}
	}
	switch {
	case has > sig.LevelBasic:
		return has, e.archived(ctx, l, t)
	case len(t.stamps) > 0 && e.level >= sig.LevelArchive && (parts > 0 || len(e.message.CRLs) > 0):
		// Under an archive time stamp the evidence need not have the form of XLT1.
		return sig.LevelLongTerm, e.archived(ctx, l, t)
	case parts == 5 && len(t.stamps) > 0:
		return sig.LevelLongTerm, nil
	case parts > 0:
		return 0, &sig.ErrDocument{What: "Document", Text: fmt.Sprintf(
			"signature %s has some but not all of the attributes of XLT1; only BES and T are raised to XLT1", l.position)}
	case len(t.stamps) > 0:
		return sig.LevelTime, nil
	}
	return sig.LevelBasic, nil
}
