// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"tamga/pki/cms"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/cades"
)

// subFilterStamp is the format of a document time stamp (ISO 32000-2, 12.8.5).
const subFilterStamp name = "ETSI.RFC3161"

// docStamp is a document time stamp.
type docStamp struct {
	token  *tsp.Token
	signer *x509gost.Certificate // nil if it is invalid
	// archive reports that it covers a document security store: then it is an archive time stamp, which
	// proves nothing after its certificate has ended, unless another one covers it.
	archive bool
	good    *bool // whether it was valid when it was made; nil: not asked yet
}

// at returns a time as findings have it.
func at(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// stamps reads the time stamps of the document and checks each by itself: its imprint, its signature and
// its order. Whether their services are trusted is decided later.
func (v *verifier) stamps() {
	for _, s := range v.signatures {
		if v.subFilter(s) == subFilterStamp && v.file.failed() == nil {
			s.stamp = &docStamp{}
			if !s.broken {
				v.readStamp(s)
			}
		}
	}
	// All have their places in the order of what they cover.
	var before []*signature
	for _, s := range v.signatures {
		if s.stamp == nil || s.stamp.signer == nil {
			continue
		}
		made := s.stamp.token.Info.Time
		wrong := slices.IndexFunc(before, func(b *signature) bool { return made.Before(b.stamp.token.Info.Time) && v.stampWasGood(b) })
		if wrong >= 0 {
			s.stamp.signer = nil
			s.fatal(codeStampOrder, "the time stamp of the document of %s covers one of %s, which is later", at(made), at(before[wrong].stamp.token.Info.Time))
			continue
		}
		before = append(before, s)
	}
}

// stampWasGood reports whether a time stamp was valid when it was made: the time of any other one counts for
// nothing. It is asked for few, those that are later than one that covers them.
func (v *verifier) stampWasGood(s *signature) bool {
	if s.stamp.good == nil {
		check := v.checkOf(s)
		// Without anchors, as when signatures are raised, every one counts.
		good := len(check.Roots) == 0 || check.StampWasGood(v.ctx, s.stamp.token, s.stamp.signer, cades.Carried(s.stamp.token.Message))
		s.stamp.good = &good
	}
	return *s.stamp.good
}

func (v *verifier) readStamp(s *signature) {
	v.file.charge(budget.Signature + 2*int64(len(s.message)))
	token, err := tsp.ParseTokenWithin(s.message, v.file.spending.Hold)
	if err != nil {
		s.fatal(codeMessage, "Contents: %v", err)
		return
	}
	s.stamp.token = token
	original := covered{v.check.Document, s.from, s.to, s.end, v.prefixes}
	d, err := sig.DigestOf(v.ctx, sig.File{Document: original}, token.Info.Digest.Hash)
	if err != nil {
		v.file.broken = errors.Join(v.file.broken, err)
		return
	}
	if err := token.Answers(&tsp.Request{Digest: d}); err != nil {
		s.fatal(codeDigest, "the document is not what was stamped: its %s digest differs", d.Hash.Name)
		return
	}
	known := slices.Concat(token.Certificates(), v.beside.Certificates, v.check.Intermediates, v.check.Roots)
	signer, err := token.CheckSignature(known)
	if err != nil {
		s.fatal(stampFault(token, err, known), "the time stamp of the document is invalid: %v", err)
		return
	}
	s.stamp.signer = signer
	v.revision(s, func(f *file) { s.stamp.archive = f.hasStore() })
}

// revision opens the revision that a time stamp covers and calls use with it.
func (v *verifier) revision(s *signature, use func(*file)) {
	if v.blank(s.end) {
		use(v.file)
		return
	}
	held := v.file.spending.Held()
	if older, err := open(v.ctx, v.check.Document, s.end, v.check.Password); err == nil { // else covers reports it
		use(older)
		older.close()
	}
	v.file.spending.Release(v.file.spending.Held() - held)
}

// hasStore reports whether a revision has a document security store.
func (f *file) hasStore() bool {
	_, root := f.catalog()
	dss := f.resolveDict(root.get("DSS"))
	return slices.ContainsFunc([]name{"Certs", "CRLs", "OCSPs"}, func(key name) bool { return len(f.resolveArray(dss.get(key))) > 0 })
}

// judgeStamp decides whether the service of a document time stamp is trusted (ISO 32000-2, 12.8.5). An
// archive time stamp is judged at the time that later ones prove, and so is each that is below one. The
// first time stamp of a signature is judged at its own time, as one in a message is (decision 0063).
func (v *verifier) judgeStamp(s *signature, check *sig.Check) sig.Signature {
	out := sig.Signature{Level: sig.LevelDocumentStamp, BestTime: check.At}
	t := s.stamp
	if t.signer == nil {
		return out
	}
	made := t.token.Info.Time
	out.Signer, out.BestTime = t.signer, made
	out.Scheme, _ = t.token.Message.Signers[0].Scheme() // CheckSignature found one signer and used its scheme
	found := cades.Carried(t.token.Message)
	ts, lapsed := check.JudgeStamp(v.ctx, "document", t.token, t.signer, found, check.At, t.archive || v.around.Chained)
	out.Chain, out.Findings = ts.Chain, slices.Clone(ts.Findings)
	out.TimeStamps = []sig.TimeStamp{ts}
	if lapsed {
		s.findings = append(s.findings, sig.Finding{Code: codeLapsed, Text: fmt.Sprintf(
			"the time stamp of the document of %s proves nothing at %s: its certificate or its algorithm had ended, and no later one was made before", at(made), at(check.At))})
		v.around.Chained = true
	}
	return out
}

// stamped notes what a time stamp, which was judged, proves for what it covers.
func (v *verifier) stamped(s *signature, out *sig.Signature) {
	t := s.stamp
	if t == nil {
		return
	}
	switch out.Own() {
	case sig.Passed:
		v.proven, v.around.Stamped = out.BestTime, true
		v.proofs = append(v.proofs, out.TimeStamps...)
		if t.archive {
			v.around.Chained = true
			if v.around.Archived == nil { // an earlier one covers less
				v.around.Archived = new(sig.Found)
				v.revision(s, func(f *file) { *v.around.Archived = v.store(f) })
			}
		}
	default:
		name := fmt.Sprintf("the time stamp of the document in the field %s", quoted(s.field.name))
		i := slices.IndexFunc(out.Findings, func(f sig.Finding) bool { return f.Code == codeLapsed })
		switch {
		case i >= 0:
			v.left = append(v.left, out.Findings[i])
		case out.Own() == sig.Failed || t.signer == nil:
			why := ""
			for _, f := range out.Findings {
				if f.Indication != "" {
					why = ": " + f.Text
					break
				}
			}
			v.left = append(v.left, sig.StampLeftOut(codeTimeStamp, name+" is invalid"+why))
		default:
			v.left = append(v.left, sig.Finding{Code: codeUntrusted, Text: name + " proves no time: it is not by a trusted service, or its hash function is weak"})
		}
	}
}

// stampFault returns the code for an error of tsp.Token.CheckSignature with these
// certificates.
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
