// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"fmt"
	"time"

	"tamga/pki/chain"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// Proven reports whether evidence is complete: it has a path from a certificate to a self-issued one and
// shows for each certificate of it but the last that it was not revoked at a time. What is about the
// certificate itself is not older than the rules allow. usage is what the certificate must be for, empty
// for any use.
func Proven(leaf *x509gost.Certificate, at time.Time, found sig.Found, rules Rules, usage ...x509gost.OID) bool {
	var roots []*x509gost.Certificate
	for _, c := range found.Certificates {
		if c.IsSelfIssued() {
			roots = append(roots, c)
		}
	}
	verdict, err := chain.Build(leaf, chain.Options{Roots: roots, Intermediates: found.Certificates, CRLs: found.CRLs, OCSP: found.OCSP, At: at, Usage: usage, RequireRevocation: true})
	if err != nil {
		return false
	}
	return len(verdict.Evidence) == 0 || len(verdict.Chain) == 1 || !verdict.Evidence[0].ThisUpdate.Before(at.Add(-rules.Allowance).Truncate(time.Second))
}

// Supply collects for a subject what the evidence that a document has does not prove. The certificate of
// the subject is added, too.
func (c *Collector) Supply(ctx context.Context, values *Values, have sig.Found, s Subject) error {
	var usage []x509gost.OID
	if s.Purpose == ForTimeStamp {
		usage = append(usage, x509gost.UsageTimeStamping)
	}
	if Proven(s.Certificate, s.At, have, c.rules, usage...) {
		return nil
	}
	values.AddCertificate(s.Certificate, s.Purpose)
	_, err := c.Collect(ctx, values, s)
	return err
}

// Stamp is what an enhancement needs of a time stamp.
type Stamp struct {
	Authority *x509gost.Certificate
	Made      time.Time
	// Others are the certificates in its token.
	Others []*x509gost.Certificate
	// Covered reports that an archive time stamp covers it: then it needs no more evidence.
	Covered bool
}

// Subject returns the subject whose evidence the time stamp needs.
func (s Stamp) Subject() Subject {
	return Subject{Certificate: s.Authority, Purpose: ForTimeStamp, Others: s.Others, At: s.Made}
}

// InTime refuses an archive time stamp that comes too late: those below prove nothing when their
// certificates have ended. The error is a *sig.ErrDocument.
func InTime(now time.Time, below []Stamp) error {
	for _, s := range below {
		if !s.Covered && now.After(s.Authority.NotAfter) {
			return &sig.ErrDocument{What: "Document", Text: fmt.Sprintf("has a time stamp of %s that proves nothing any more: %s ended at %s, and no archive time stamp was added before",
				written(s.Made), Name(s.Authority), written(s.Authority.NotAfter))}
		}
	}
	return nil
}

// Codes of the notes of Complete.
const (
	CodeIncomplete = "long-term-evidence-incomplete"  // the evidence does not prove the path
	CodeOld        = "evidence-older-than-time-stamp" // so it proves nothing about that time
)

// Complete reports whether evidence proves that no certificate on a signer's path to one of the roots was
// revoked at a time, and returns notes for the reader.
func Complete(signer *x509gost.Certificate, roots []*x509gost.Certificate, found sig.Found, at time.Time) (notes []sig.Finding, complete bool) {
	verdict, err := chain.Build(signer, chain.Options{
		Roots: roots, Intermediates: found.Certificates, CRLs: found.CRLs, OCSP: found.OCSP, At: at, RequireRevocation: true,
	})
	if err != nil {
		return []sig.Finding{{Code: CodeIncomplete, Text: fmt.Sprintf("the evidence in the message does not prove the path of the signer: %v", err)}}, false
	}
	complete = true
	for i, p := range verdict.Evidence {
		if p.ThisUpdate.IsZero() || !p.ThisUpdate.Before(at.Truncate(time.Second)) {
			continue
		}
		notes = append(notes, sig.Finding{Code: CodeOld, Text: fmt.Sprintf("the revocation data in the message about %s is of %s, before the time stamp of %s",
			Name(verdict.Chain[i]), written(p.ThisUpdate), written(at))})
		if i == 0 { // lists of authorities are issued every few months
			complete = false
		}
	}
	return notes, complete
}
