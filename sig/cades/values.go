// SPDX-License-Identifier: Apache-2.0

package cades

import (
	"errors"
	"slices"

	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/evidence"
)

const (
	codeValueBroken = "long-term-value-broken" // a value with an invalid signature, or one that was not checked
	codeValueUnused = "long-term-value-unused" // a value that the signature does not need

	// maxValueChecks limits how many signatures on values are checked for one message.
	maxValueChecks = 2048
	// maxTried limits how many issuers of one name are tried for a value.
	maxTried = 16
)

// values checks every certificate, list and answer in the values of a signature. An
// invalid one excludes the levels that need values. An unnecessary one is noted.
func (v *verifier) values(out *sig.Signature, l *longTerm) {
	if !l.hasValues {
		return
	}
	j := &valueJudge{verifier: v, long: l, bySubject: map[string][]*x509gost.Certificate{}, byKey: map[*suite.Hash]map[string][]*x509gost.Certificate{}, used: map[*x509gost.Certificate]bool{}}
	j.start = append(j.start, out.Signer)
	lists := [][]*x509gost.Certificate{l.values.Certificates, v.certs, out.Chain, v.check.Intermediates, v.check.Roots}
	for _, ts := range out.TimeStamps {
		lists = append(lists, ts.Chain)
		if ts.Signer != nil {
			lists = append(lists, []*x509gost.Certificate{ts.Signer})
			j.start = append(j.start, ts.Signer)
		}
	}
	for _, list := range lists {
		for _, c := range list {
			if v.budget.Spend(int64(50+len(c.RawSubject)/4+len(j.bySubject[c.Subject.Key()]))) != nil {
				return // Verify returns this error
			}
			if key := c.Subject.Key(); !slices.ContainsFunc(j.bySubject[key], c.Equal) {
				j.bySubject[key] = append(j.bySubject[key], c)
				j.known = append(j.known, c)
			}
		}
	}
	for _, c := range l.values.Certificates {
		j.judge(evidence.Name(c), c.Raw, j.bySubject[c.Issuer.Key()], c.CheckSignatureFrom)
	}
	for _, c := range l.values.CRLs {
		j.judge("the revocation list of "+at(c.ThisUpdate), c.Raw, j.bySubject[c.Issuer.Key()], c.CheckSignatureFrom)
	}
	for _, b := range l.values.OCSP {
		j.judge("the OCSP answer of "+at(b.ProducedAt), b.Raw, j.issuers(b), func(issuer *x509gost.Certificate) error {
			responder, err := b.Responder(issuer)
			if err == nil {
				j.start = append(j.start, responder)
			}
			return err
		})
	}
	j.unused()
}

// valueJudge checks the values of one signature.
type valueJudge struct {
	*verifier
	long      *longTerm
	known     []*x509gost.Certificate
	bySubject map[string][]*x509gost.Certificate
	byKey     map[*suite.Hash]map[string][]*x509gost.Certificate
	start     []*x509gost.Certificate // certificates whose paths the values are for
	used      map[*x509gost.Certificate]bool
}

// judge checks a value and notes it if none of the issuers signed it.
func (j *valueJudge) judge(what string, raw []byte, issuers []*x509gost.Certificate, check func(*x509gost.Certificate) error) {
	if len(issuers) == 0 {
		j.long.note(codeValueUnused, "%s among the values is of an unknown issuer and proves nothing", what)
		return
	}
	if j.sound[string(raw)] {
		return
	}
	err := errors.New("not checked: the message has too many values")
	for i, issuer := range issuers {
		if i == maxTried || j.checksLeft == 0 {
			break
		}
		if j.budget.Spend(sig.Price(issuer)+int64(len(raw))) != nil {
			return // Verify returns this error
		}
		j.checksLeft--
		if err = check(issuer); err == nil {
			j.sound[string(raw)] = true
			return
		}
	}
	j.long.valuesBroken = true
	j.long.note(codeValueBroken, "%s among the values is invalid: %v", what, err)
}

// issuers returns the issuers that an answer is about, by the digest of their key.
func (j *valueJudge) issuers(b *ocsp.Basic) (list []*x509gost.Certificate) {
	for _, s := range b.Singles {
		h := s.CertID.Hash
		if h == nil || len(list) == maxTried {
			continue
		}
		table := j.byKey[h]
		if table == nil {
			table = make(map[string][]*x509gost.Certificate, len(j.known))
			for _, c := range j.known {
				key := string(c.KeyDigest(h))
				table[key] = append(table[key], c)
			}
			j.byKey[h] = table
		}
		for _, c := range table[string(s.CertID.IssuerKey)] {
			if len(list) < maxTried && !slices.Contains(list, c) {
				list = append(list, c)
			}
		}
	}
	return list
}

// unused notes the certificates that have no reference and are not on the path of the
// signer, of a time stamp or of a responder.
func (j *valueJudge) unused() {
	for todo := j.start; len(todo) > 0; {
		var next []*x509gost.Certificate
		for _, c := range todo {
			for _, same := range j.bySubject[c.Subject.Key()] {
				if same.Equal(c) && !j.used[same] {
					j.used[same] = true
					next = append(next, j.bySubject[c.Issuer.Key()]...)
				}
			}
		}
		todo = next
	}
	for _, c := range j.long.values.Certificates {
		if !slices.ContainsFunc(j.bySubject[c.Subject.Key()], func(k *x509gost.Certificate) bool { return j.used[k] && k.Equal(c) }) &&
			!slices.ContainsFunc(j.long.certRefs, func(r reference) bool { return r.matches(c.Raw) }) {
			j.long.note(codeValueUnused, "%s among the values has no reference and is not on any path of the signature", evidence.Name(c))
		}
	}
}
