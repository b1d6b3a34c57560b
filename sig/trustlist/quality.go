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
	codeNoPath    = "advanced-no-issuer" // the signer's certificate is itself an anchor
	codeUnlisted  = "advanced-unlisted"  // the list does not have its issuer
	codeAtIssue   = "advanced-at-issue"  // not accredited when the certificate was issued
	codeAtSigning = "advanced-at-signed" // not accredited when the signature was made
)

// Old is the age from which on a list is called old.
const Old = 30 * 24 * time.Hour

// Qualify sets Quality of each signature of a report that passed, of countersignatures too. Of others and of time stamps of
// the document nothing is said. checked is the time for which the signatures were checked.
func (l *List) Qualify(r *sig.Report, checked time.Time) { l.qualify(r.Signatures, checked) }

func (l *List) qualify(list []sig.Signature, checked time.Time) {
	for i := range list {
		s := &list[i]
		l.qualify(s.Countersigners, checked)
		if s.IsStamp() || s.Verdict() != sig.Passed {
			continue
		}
		at, basis := s.MadeAt(checked)
		q := l.quality(s.Chain, at)
		q.At, q.Basis, q.ListDate = at, basis, l.Date
		needed := checked
		if basis == sig.TimeProven {
			needed = at
		}
		q.Old = needed.Sub(l.Date) > Old
		s.Quality = &q
	}
}

// quality judges a path, signer first, for a signature of a time.
func (l *List) quality(path []*x509gost.Certificate, signed time.Time) (q sig.Quality) {
	if len(path) < 2 {
		q.Code, q.Text = codeNoPath, "advanced, not qualified: the signer's certificate is itself trusted, and no authority issued it"
		return q
	}
	holders := l.issuers[IssuerOf(path[1])]
	if len(holders) == 0 {
		q.Code, q.Text = codeUnlisted, fmt.Sprintf("advanced, not qualified: %s is not in the list of accredited authorities of %s", path[1].Subject.String(), Day(l.Date))
		return q
	}
	// A key may be in the list several times: the powers of an authority may have been transferred, together with its keys.
	for n, p := range holders {
		a := &l.Authorities[p]
		issuer, code, text := l.judge(a, holders, path[0].NotBefore, signed)
		if n == 0 || code == codeQualified {
			q.Authority, q.INN, q.Number, q.Code, q.Text = issuer.Name, issuer.INN, issuer.Number, code, text
		}
		if code == codeQualified {
			q.Qualified = true
			return q
		}
	}
	return q
}

// judge judges a key that authority a held first, for a certificate and a signature of two moments.
func (l *List) judge(a *Authority, holders []int, issued, signed time.Time) (issuer *Authority, code, text string) {
	issuer = l.holder(a, holders, issued)
	if s, known := issuer.StatusAt(issued); !s.Accredited() {
		return issuer, codeAtIssue, fmt.Sprintf("advanced, not qualified: %s was not accredited when it issued the certificate (%s): %s", issuer.Name, Day(issued), described(s, known))
	}
	keeper := l.holder(a, holders, signed)
	if s, known := keeper.StatusAt(signed); !s.Accredited() {
		return issuer, codeAtSigning, fmt.Sprintf("advanced, not qualified: %s was not accredited when the signature was made (%s): %s", keeper.Name, Day(signed), described(s, known))
	}
	return issuer, codeQualified, fmt.Sprintf("qualified: %s was accredited when it issued the certificate and when the signature was made", issuer.Name)
}

// holder returns who held a key of authority a at a time: a itself or, once the accreditation of a had ended for good and
// if its powers were transferred, the authority that has them and the key. Who received a key did not hold it before.
func (l *List) holder(a *Authority, holders []int, at time.Time) *Authority {
	for _, p := range holders { // a received it
		from := &l.Authorities[p]
		if from != a && from.Transferred != "" && from.Transferred == a.OGRN && !from.endedBy(at) {
			return from
		}
	}
	if a.Transferred != "" && a.endedBy(at) {
		for _, p := range holders {
			if heir := &l.Authorities[p]; heir != a && heir.OGRN == a.Transferred {
				return heir
			}
		}
	}
	return a
}

// endedBy reports whether the accreditation had ended for good at a time.
func (a *Authority) endedBy(at time.Time) bool {
	s, _ := a.StatusAt(at)
	return s.Word == "Прекращена" || s.Word == "Аннулирована"
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
