// SPDX-License-Identifier: Apache-2.0

package trustlist

import (
	"fmt"
	"time"

	"tamga/pki/x509gost"
	"tamga/sig"
)

// Codes of sig.Quality.
const (
	codeQualified = "qualified"
	codeNoPath    = "advanced-no-path"   // the signer's certificate has no path to an anchor
	codeUnlisted  = "advanced-unlisted"  // the list does not have its issuer
	codeAtIssue   = "advanced-at-issue"  // not accredited when the certificate was issued
	codeAtSigning = "advanced-at-signed" // not accredited when the signature was made
)

// Qualify sets Quality of each signature of a report that passed, of countersignatures too. Of others and of time stamps of
// the document nothing is said.
func (l *List) Qualify(r *sig.Report) { l.qualify(r.Signatures) }

func (l *List) qualify(list []sig.Signature) {
	for i := range list {
		s := &list[i]
		l.qualify(s.Countersigners)
		if s.IsStamp() || s.Verdict() != sig.Passed {
			continue
		}
		signed, proven := s.MadeAt()
		s.Quality = l.quality(s.Chain, signed)
		s.Quality.Proven = proven
	}
}

// quality judges a path, signer first, for a signature of a time.
func (l *List) quality(path []*x509gost.Certificate, signed time.Time) *sig.Quality {
	q := &sig.Quality{At: signed, ListDate: l.Date}
	if len(path) < 2 {
		q.Code, q.Text = codeNoPath, "advanced, not qualified: the signer's certificate has no path to a trust anchor"
		return q
	}
	places := l.issuers[IssuerOf(path[1])]
	if len(places) == 0 {
		q.Code, q.Text = codeUnlisted, fmt.Sprintf("advanced, not qualified: %s is not in the list of accredited authorities of %s", path[1].Subject.String(), Day(l.Date))
		return q
	}
	// One key may be in the list twice, for example after the powers of an authority were transferred.
	issued := path[0].NotBefore
	for n, p := range places {
		a := &l.Authorities[p.authority]
		if n == 0 {
			q.Authority, q.INN, q.Number = a.Name, a.INN, a.Number
		}
		code, text := codeQualified, fmt.Sprintf("qualified: %s was accredited when it issued the certificate and when the signature was made", a.Name)
		for _, moment := range []struct {
			at         time.Time
			code, when string
		}{{issued, codeAtIssue, "when it issued the certificate"}, {signed, codeAtSigning, "when the signature was made"}} {
			if s, known := a.StatusAt(moment.at); !s.Accredited() {
				code, text = moment.code, fmt.Sprintf("advanced, not qualified: %s was not accredited %s (%s): %s", a.Name, moment.when, Day(moment.at), described(s, known))
				break
			}
		}
		if code == codeQualified {
			q.Authority, q.INN, q.Number = a.Name, a.INN, a.Number
			q.Qualified = true
		}
		if q.Code == "" || q.Qualified {
			q.Code, q.Text = code, text
		}
		if q.Qualified {
			break
		}
	}
	return q
}

func described(s Status, known bool) string {
	switch {
	case !known:
		return "the list has no status of that time"
	case !s.Known():
		return fmt.Sprintf("the list has the unknown status %q since %s", s.Word, Day(s.From))
	}
	return fmt.Sprintf("its status was %q since %s", s.Word, Day(s.From))
}

// Day returns the day of a time in Moscow, as the list has it.
func Day(at time.Time) string { return at.In(moscow).Format(time.DateOnly) }
