// SPDX-License-Identifier: Apache-2.0

package asic

import (
	"fmt"
	"slices"
	"strings"

	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/cades"
	"tamga/sig/xmltree"
)

// maxRecord is the size of the largest evidence record that is checked, in bytes.
const maxRecord = 1 << 20

// isXMLRecord reports whether an evidence record is in XML (RFC 6283).
func isXMLRecord(f *file) bool { return strings.HasSuffix(strings.ToLower(f.Name), ".xml") }

// records checks the evidence records of the container. What a record proves for signatures belongs to these. The records
// of other files alone are returned.
func (v *verifier) records() (alone []stamped, err error) {
	for _, f := range v.of.records {
		if !v.take(f) {
			break
		}
		data, err := f.content(v.ctx, maxRecord)
		var record *tsp.Record
		var forms []xmltree.Method
		if err == nil {
			if err := v.of.budget.Spend(budget.Signature + 2*int64(len(data))); err != nil {
				return nil, err
			}
			if isXMLRecord(f) {
				record, forms, err = v.xmlRecord(data)
			} else {
				record, err = tsp.ParseRecord(data, v.of.budget.Hold)
			}
			if err != nil {
				err = unfit(err, "an evidence record expected")
			}
		}
		if err != nil {
			if failed := v.of.budget.Err(); failed != nil {
				return nil, failed
			}
			if !isDocument(err) {
				return nil, err
			}
			v.leaveOut(f, err.Error())
			continue
		}
		s, err := v.record(f, record, forms)
		if err != nil {
			return nil, err
		}
		if s != nil {
			alone = append(alone, *s)
		}
	}
	return alone, nil
}

// leaveOut notes an evidence record that proves nothing. The files are judged without it.
func (v *verifier) leaveOut(f *file, why string) {
	v.note(sig.StampLeftOut(codeEvidence, fmt.Sprintf("the evidence record %s proves nothing: %s", quote(f.Name), why)))
}

// record checks one evidence record. It returns nil for one that proves nothing, or that belongs to signatures. forms are the
// canonical forms of documents in XML by the index of the time stamp, nil for a record that digests all as they are.
func (v *verifier) record(f *file, r *tsp.Record, forms []xmltree.Method) (*stamped, error) {
	var group []*file
	switch lists := v.by[f]; {
	case len(lists) == 1:
		intact, findings, err := lists[0].check(v.ctx)
		if err != nil {
			return nil, err
		}
		if len(findings) > 0 { // a record covers all of its files together
			v.leaveOut(f, findings[0].Text)
			return nil, nil
		}
		group = intact
	case len(lists) == 0 && len(v.of.files) == 1:
		group = v.of.files
	default:
		v.leaveOut(f, "not one list names it as its own")
		return nil, nil
	}
	var unread error
	err := r.Check(func(index int, h *suite.Hash) (sums [][]byte, err error) {
		for _, one := range group {
			var d suite.Digest
			if forms != nil {
				d, err = v.canonicalDigest(one, h, forms[index])
			} else {
				d, err = one.digest(v.ctx, h)
			}
			if err != nil {
				unread = err
				return nil, err
			}
			sums = append(sums, d.Sum)
		}
		return sums, nil
	})
	switch {
	case unread != nil && !isDocument(unread):
		return nil, unread
	case err != nil:
		v.leaveOut(f, err.Error())
		return nil, nil
	}
	stamps, broken, lapsed, err := v.recordStamps(r)
	if err != nil {
		return nil, err
	}
	if broken != nil && !lapsed {
		v.leaveOut(f, fmt.Sprintf("its time stamp of %s is not valid, or not by a trusted service%s", broken.Time.UTC().Format("2006-01-02T15:04:05Z"), after(brokenBy(broken.Findings))))
		return nil, nil
	}
	if lapsed {
		v.note(finding(codeLapsed, false, "the evidence record %s proves nothing at %s: the certificate or the algorithm of its last time stamp had ended", quote(f.Name), v.check.At.UTC().Format("2006-01-02T15:04:05Z")))
	}
	signs := false
	for _, one := range group {
		v.chained[one] = true
		if lapsed {
			continue
		}
		if at, known := v.proved[one]; !known || stamps[0].Time.Before(at) {
			v.proved[one] = stamps[0].Time
		}
		if one.signs {
			signs = true
			for _, ts := range stamps {
				v.archived[one] = append(v.archived[one], overStamp{ts, false, v.check.At})
			}
		}
	}
	if signs || lapsed {
		return nil, nil
	}
	s := &stamped{out: sig.Signature{Level: sig.LevelDocumentStamp, BestTime: stamps[0].Time, Index: slices.Index(v.of.records, f)}, covers: group}
	s.out.Signer, s.out.Chain, s.out.TimeStamps = stamps[0].Signer, stamps[0].Chain, stamps
	s.out.Scheme, _ = r.Stamps[0].Token.Message.Signers[0].Scheme() // CheckSignature found one signer and used its scheme
	s.out.Covers = "by an evidence record the files " + list(namesOf(group))
	return s, nil
}

func after(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// recordStamps judges the time stamps of a record: the last one at the time of the check, each other at the time of the next, which
// must have passed. broken is the first in this order that does not pass, nil without one, and lapsed reports that it was good when
// it was made, and that nothing proves it now.
func (v *verifier) recordStamps(r *tsp.Record) (stamps []sig.TimeStamp, broken *sig.TimeStamp, lapsed bool, err error) {
	var found sig.Found
	for _, one := range r.Stamps {
		own := cades.Carried(one.Token.Message)
		found.Certificates = append(found.Certificates, own.Certificates...)
		found.CRLs, found.OCSP = append(found.CRLs, own.CRLs...), append(found.OCSP, own.OCSP...)
	}
	known := slices.Concat(found.Certificates, v.check.Intermediates, v.check.Roots)
	stamps = make([]sig.TimeStamp, len(r.Stamps))
	proven := v.check.At
	for i, one := range slices.Backward(r.Stamps) {
		if err := v.of.budget.Spend(budget.Signature); err != nil {
			return nil, nil, false, err
		}
		ts := &stamps[i]
		signer, err := one.Token.CheckSignature(known)
		if err != nil {
			*ts = sig.TimeStamp{Kind: "archive", Digest: sig.DigestOfToken(one.Token), Time: one.Token.Info.Time}
			ts.Findings = append(ts.Findings, finding(codeTimeStamp, true, "%v", err))
			return stamps, ts, false, v.of.budget.Err()
		}
		if *ts, lapsed = v.check.JudgeStamp(v.ctx, "archive", one.Token, signer, found, proven, true); !ts.Passed() {
			return stamps, ts, lapsed, v.of.budget.Err()
		}
		proven = one.Token.Info.Time
	}
	return stamps, nil, false, v.of.budget.Err()
}
