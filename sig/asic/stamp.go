// SPDX-License-Identifier: Apache-2.0

package asic

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/cades"
)

// stamped is the result of one entry with a time stamp.
type stamped struct {
	out    sig.Signature
	covers []*file // data
}

// stamps checks the time stamps of the container. Those over a list that names signatures belong to these
// signatures. The others are returned.
func (v *verifier) stamps() (alone []stamped, err error) {
	type read struct {
		file  *file
		token *tsp.Token
	}
	var tokens []read
	for _, f := range v.of.stamps {
		if !v.take(f) {
			break
		}
		data, err := f.content(v.ctx, 2*tsp.MaxResponse)
		if err == nil {
			if err := errors.Join(v.of.budget.Spend(budget.Signature+2*int64(len(data))), v.of.budget.Hold(4*int64(len(data)))); err != nil {
				return nil, err
			}
			var token *tsp.Token
			if token, err = tsp.ParseTokenWithin(tsp.Unwrap(data), v.of.budget.Hold); err == nil {
				tokens = append(tokens, read{f, token})
				continue
			}
			err = unfit(err, "a time-stamp token expected")
		}
		if err := v.unreadable(f, err); err != nil {
			return nil, err
		}
	}
	// A later time stamp may prove when an earlier one existed.
	slices.SortStableFunc(tokens, func(a, b read) int { return b.token.Info.Time.Compare(a.token.Info.Time) })
	for _, t := range tokens {
		s, err := v.stamp(t.file, t.token)
		if err != nil {
			return nil, err
		}
		if s != nil {
			alone = append(alone, *s)
		}
	}
	slices.SortStableFunc(alone, func(a, b stamped) int { return cmp.Compare(a.out.Index, b.out.Index) })
	return alone, nil
}

// stamp checks one time stamp. It returns nil for one that belongs to signatures.
func (v *verifier) stamp(f *file, token *tsp.Token) (*stamped, error) {
	s := &stamped{out: sig.Signature{Level: sig.LevelDocumentStamp, BestTime: v.check.At, Index: slices.Index(v.of.stamps, f)}}
	var all []*file // what the time stamp covers unchanged
	var digest func(h *suite.Hash) (suite.Digest, error)
	archive, ofArchive := false, false // it belongs to signatures; its list is one of an archive time stamp
	switch lists := v.by[f]; {
	case len(lists) > 1:
		s.out.Findings = append(s.out.Findings, finding(codeNoManifest, true, "%d lists name the time stamp %s as theirs; one expected", len(lists), quote(f.Name)))
		return s, nil
	case len(lists) == 1:
		m := lists[0]
		intact, findings, err := m.check(v.ctx)
		if err != nil {
			return nil, err
		}
		intact, weak := v.strong(f, m, intact)
		findings = append(findings, weak...)
		all = append(intact, m.file)
		for i := range m.list {
			archive = archive || m.list[i].file != nil && m.list[i].file.signs
		}
		if m.archive {
			// What else the container has is judged without a time stamp over something else.
			ofArchive = true
			for _, f := range findings {
				f.Indication = ""
				if f.Code != sig.CodeWeak {
					f.Code = codeArchive
				}
				v.note(f)
			}
		} else {
			archive = false
			s.out.Findings = append(s.out.Findings, findings...)
		}
		digest = func(h *suite.Hash) (suite.Digest, error) { return h.Digest(m.data), nil }
		s.out.Covers = "the list " + sig.Printable(m.file.Name, 120, '?') + " with the files " + listOr(namesOf(intact), "of which none is unchanged")
	case len(v.of.files) == 1:
		one := v.of.files[0]
		all = append(all, one)
		digest = func(h *suite.Hash) (suite.Digest, error) { return one.digest(v.ctx, h) }
		s.out.Covers = "the file " + sig.Printable(one.Name, 120, '?')
	default:
		s.out.Findings = append(s.out.Findings, finding(codeNoManifest, true, "no list of files names the time stamp %s as its own", quote(f.Name)))
		return s, nil
	}
	kind := "document"
	if archive {
		kind = "archive"
	}
	ts, lapsed, err := v.token(f, token, kind, archive || ofArchive, digest)
	if err != nil {
		return nil, err
	}
	if lapsed || ts.Passed() && (archive || ofArchive) {
		for _, one := range all {
			v.chained[one] = true
		}
	}
	if ts.Passed() {
		for _, one := range all {
			if at, known := v.proved[one]; !known || ts.Time.Before(at) {
				v.proved[one] = ts.Time
			}
		}
	}
	over := overStamp{ts, lapsed, v.at(f).At}
	if ofArchive && !archive && !ts.Holds() && !lapsed {
		v.note(sig.StampLeftOut(codeArchive, brokenBy(ts.Findings)))
		return nil, nil
	}
	if archive {
		unchanged := make(map[*file]bool, len(all))
		for _, one := range all {
			unchanged[one] = true
		}
		for _, m := range v.by[f] {
			for i := range m.list {
				if one := m.list[i].file; one != nil && one.signs && (unchanged[one] || !ts.Holds()) {
					v.archived[one] = append(v.archived[one], over)
				}
			}
		}
		return nil, nil
	}
	s.out.Findings = append(s.out.Findings, ts.Findings...)
	if lapsed {
		s.out.Findings = append(s.out.Findings, over.flaw())
	}
	s.out.Signer, s.out.Chain = ts.Signer, ts.Chain
	if ts.Signer != nil {
		s.out.BestTime = ts.Time
		s.out.Scheme, _ = token.Message.Signers[0].Scheme() // CheckSignature found one signer and used its scheme
	}
	s.out.TimeStamps = []sig.TimeStamp{ts}
	if s.out.Holds() {
		s.covers = all
	}
	return s, nil
}

// overStamp is a time stamp over a list with signatures.
type overStamp struct {
	sig.TimeStamp
	lapsed bool      // it was good when it was made, and nothing proves it now
	proven time.Time // for which it was judged
}

// flaw says why the time stamp proves no time. It must not have passed.
func (o *overStamp) flaw() sig.Finding {
	made := o.Time.UTC().Format(time.RFC3339)
	switch {
	case o.lapsed:
		return finding(codeLapsed, false, "the archive time stamp of %s proves nothing at %s: its certificate or its algorithm had ended, and no later archive time stamp was made before", made, o.proven.UTC().Format(time.RFC3339))
	case !o.Holds():
		return sig.StampLeftOut(codeTimeStamp, "the archive time stamp over the signature is invalid: "+brokenBy(o.Findings))
	}
	return finding(codeTimeStamp, false, "the archive time stamp of %s proves no time: it is not by a trusted service", made)
}

// strong returns the files without those whose digests in a list could be forged, and findings about these: the time
// stamp over the list proves nothing about them. What counts is the time at which the file, or the time stamp, is
// proved to have existed by another one.
func (v *verifier) strong(stamp *file, m *manifest, intact []*file) (rest []*file, findings []sig.Finding) {
	by := v.at(stamp).At
	unchanged := make(map[*file]bool, len(intact))
	for _, one := range intact {
		unchanged[one] = true
	}
	for i := range m.list {
		l := &m.list[i]
		if l.file == nil || !unchanged[l.file] {
			continue
		}
		known, is := v.proved[l.file]
		if !is || by.Before(known) {
			known = by
		}
		w := v.check.Ends.Hash(l.hash)
		if !w.At(known) {
			rest = append(rest, l.file)
			continue
		}
		if len(findings) < maxFindings {
			findings = append(findings, finding(sig.CodeWeak, true, "the list %s has a digest of the file %s by %s, which proves nothing since %s, so the time stamp over the list proves nothing about the file", quote(m.file.Name), quote(l.file.Name), w.What, w.Since.Format(time.DateOnly)))
		}
	}
	return rest, findings
}

// token checks a token over a digest. chained reports that it is an archive time stamp. lapsed is as in
// sig.Check.JudgeStamp.
func (v *verifier) token(f *file, token *tsp.Token, kind string, chained bool, digest func(*suite.Hash) (suite.Digest, error)) (ts sig.TimeStamp, lapsed bool, err error) {
	ts.Kind, ts.Time, ts.Digest = kind, token.Info.Time, sig.DigestOfToken(token)
	fail := func(code, format string, args ...any) {
		ts.Findings = append(ts.Findings, finding(code, true, "the time stamp %s %s", quote(f.Name), fmt.Sprintf(format, args...)))
	}
	h := token.Info.Digest.Hash
	if h == nil {
		fail(codeTimeStamp, "has an unknown digest algorithm")
		return ts, false, nil
	}
	d, err := digest(h)
	if err != nil {
		if !isDocument(err) {
			return ts, false, err
		}
		fail(codeFailed, "covers a file that cannot be read: %s", err)
		return ts, false, nil
	}
	if err := token.Answers(&tsp.Request{Digest: d}); err != nil {
		fail(codeDigest, "is of something else: its %s digest differs", h.Name)
		return ts, false, nil
	}
	known := slices.Concat(token.Certificates(), v.check.Intermediates, v.check.Roots)
	signer, err := token.CheckSignature(known)
	if err != nil {
		fail(stampFault(token, err, known), "is invalid: %v", err)
		return ts, false, nil
	}
	check := v.at(f)
	ts, lapsed = check.JudgeStamp(v.ctx, kind, token, signer, cades.Carried(token.Message), check.At, chained || v.chained[f])
	return ts, lapsed, v.of.budget.Err()
}

// stampFault returns the code for an error of tsp.Token.CheckSignature with these certificates.
func stampFault(token *tsp.Token, err error, certs []*x509gost.Certificate) string {
	var f cms.Finding
	switch {
	case errors.As(err, &f):
		return f.Code
	case len(token.Message.Signers) == 1 && token.Message.Signers[0].FindCertificate(certs) == nil:
		return codeNoCertificate
	}
	return codeTimeStamp
}
