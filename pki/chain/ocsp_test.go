// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"crypto/x509"
	"errors"
	"slices"
	"testing"
	"time"

	"tamga/pki/chain"
	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

var noCheck = []x509gost.Extension{{OID: x509gost.OIDOCSPNoCheck, Value: []byte{5, 0}}}

// responder makes an OCSP responder of an authority.
func (w *world) responder(issuer *holder, change func(*x509gost.Template)) *holder {
	t := w.template("Responder", false)
	t.ExtKeyUsage = []x509gost.OID{x509gost.UsageOCSPSigning}
	t.ExtraExtensions = noCheck
	if change != nil {
		change(t)
	}
	return w.issue(t, w.key(), issuer)
}

// answer is a signed answer about c, which issuer issued.
func (w *world) answer(by *holder, c, issuer *holder, s ocsp.Single, extensions ...x509gost.Extension) *ocsp.Basic {
	w.t.Helper()
	id, err := ocsp.NewCertID(c.cert, issuer.cert, suite.SHA1)
	if err != nil {
		w.t.Fatal(err)
	}
	s.CertID = id
	der, err := ocsp.CreateBasic(&ocsp.Template{
		ProducedAt: s.ThisUpdate, Singles: []ocsp.Single{s}, Extensions: extensions,
		Certificates: certs(by),
	}, by.cert, suite.GOST2012x256, x509gost.SignWith(nil, by.key, suite.GOST2012x256))
	if err != nil {
		w.t.Fatal(err)
	}
	b, err := ocsp.ParseBasic(der)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

func TestAnswers(t *testing.T) {
	w := &world{t: t}
	root := w.authority("Root", nil)
	ca := w.authority("Issuing", root)
	leaf := w.leaf(ca)
	impostor := w.authority("Issuing", nil)
	trusted := w.responder(ca, nil)
	checked := w.responder(ca, func(t *x509gost.Template) { t.ExtraExtensions = nil })
	ofRoot := w.responder(root, nil)
	forged := w.responder(impostor, nil)
	otherUse := w.responder(ca, func(t *x509gost.Template) { t.ExtKeyUsage = []x509gost.OID{x509gost.UsageTimeStamping} })
	noUse := w.responder(ca, func(t *x509gost.Template) { t.ExtKeyUsage = nil })
	agreement := w.responder(ca, func(t *x509gost.Template) { t.KeyUsage = x509.KeyUsageKeyAgreement })
	young := w.responder(ca, func(t *x509gost.Template) { t.NotBefore = now.Add(time.Minute) })
	old := w.responder(ca, func(t *x509gost.Template) { t.NotAfter = now.Add(-time.Minute) })
	ends := w.responder(ca, func(t *x509gost.Template) { t.NotAfter = now.Add(-time.Second) })

	hour := time.Hour
	from, to := now.Add(-hour), now.Add(hour)
	rootList := w.crl(root, from, to, nil)
	good := ocsp.Single{Status: ocsp.Good, ThisUpdate: from, NextUpdate: to}
	with := func(change func(*ocsp.Single)) ocsp.Single {
		s := good
		change(&s)
		return s
	}
	revoked := func(at time.Time) ocsp.Single {
		return with(func(s *ocsp.Single) { s.Status, s.RevokedAt, s.Reason = ocsp.Revoked, at, 1 })
	}
	critical := x509gost.Extension{OID: x509gost.OID{1, 2, 3}, Critical: true, Value: []byte{5, 0}}
	named := func(h *holder, at time.Time) x509gost.RevokedEntry {
		return x509gost.RevokedEntry{SerialNumber: h.cert.SerialNumber, At: at, Reason: 1}
	}
	type answers []*ocsp.Basic
	type lists []*x509gost.RevocationList
	for _, c := range []struct {
		name    string
		answers answers
		lists   lists // besides the root's
		want    error
		code    string
		proof   bool // the first answer must decide
	}{
		{"by the issuer", answers{w.answer(ca, leaf, ca, good)}, nil, nil, "", true},
		{"by its responder", answers{w.answer(trusted, leaf, ca, good)}, nil, nil, "", true},
		{"beside a list", answers{w.answer(trusted, leaf, ca, good)}, lists{w.crl(ca, from.Add(time.Minute), to, nil)}, nil, "", true},
		{"revoked", answers{w.answer(trusted, leaf, ca, revoked(now))}, nil, chain.ErrRevoked, "revoked:true", true},
		{"revoked later", answers{w.answer(trusted, leaf, ca, revoked(now.Add(time.Second)))}, nil, nil, "revoked-later:false", true},
		{"revoked and cleared by a list", answers{w.answer(trusted, leaf, ca, revoked(from))}, lists{w.crl(ca, from, to, nil)}, chain.ErrRevoked, "revoked:true", true},
		{"cleared and revoked by a list", answers{w.answer(trusted, leaf, ca, good)}, lists{w.crl(ca, from, to, nil, named(leaf, from))}, chain.ErrRevoked, "revoked:true", false},
		{"unknown", answers{w.answer(trusted, leaf, ca, with(func(s *ocsp.Single) { s.Status = ocsp.Unknown }))}, nil, chain.ErrRevocationUnknown, "ocsp-unknown:false", false},
		{"about another certificate", answers{w.answer(trusted, trusted, ca, good)}, nil, chain.ErrRevocationUnknown, "revocation-unknown:true", false},
		{"stale", answers{w.answer(trusted, leaf, ca, with(func(s *ocsp.Single) { s.NextUpdate = now }))}, nil, chain.ErrRevocationUnknown, "ocsp-stale:false", false},
		{"stale without nextUpdate", answers{w.answer(trusted, leaf, ca, with(func(s *ocsp.Single) { s.NextUpdate = time.Time{} }))}, nil, chain.ErrRevocationUnknown, "ocsp-stale:false", false},
		{"fresh without nextUpdate", answers{w.answer(trusted, leaf, ca, with(func(s *ocsp.Single) { s.ThisUpdate, s.NextUpdate = now.Add(-time.Minute), time.Time{} }))}, nil, nil, "", true},
		{"made later", answers{w.answer(trusted, leaf, ca, with(func(s *ocsp.Single) { s.ThisUpdate = now.Add(time.Minute) }))}, nil, nil, "", true},
		{"made after the certificate expired", answers{w.answer(ca, leaf, ca, with(func(s *ocsp.Single) { s.ThisUpdate, s.NextUpdate = end.Add(time.Second), end.Add(hour) }))}, nil, chain.ErrRevocationUnknown, "ocsp-stale:false", false},
		{"critical extension", answers{w.answer(trusted, leaf, ca, good, critical)}, nil, chain.ErrRevocationUnknown, "ocsp-unusable:false", false},
		{"by another key of the issuer's name", answers{w.answer(impostor, leaf, ca, good)}, nil, chain.ErrRevocationUnknown, "ocsp-unusable:false", false},
		{"by a responder of another key", answers{w.answer(forged, leaf, ca, good)}, nil, chain.ErrRevocationUnknown, "ocsp-unusable:false", false},
		{"by the root's responder", answers{w.answer(ofRoot, leaf, ca, good)}, nil, chain.ErrRevocationUnknown, "ocsp-unusable:false", false},
		{"by a certificate for another use", answers{w.answer(otherUse, leaf, ca, good)}, nil, chain.ErrRevocationUnknown, "ocsp-unusable:false", false},
		{"by a certificate of no stated use", answers{w.answer(noUse, leaf, ca, good)}, nil, chain.ErrRevocationUnknown, "ocsp-unusable:false", false},
		{"by a key that is not for signing", answers{w.answer(agreement, leaf, ca, good)}, nil, chain.ErrRevocationUnknown, "ocsp-unusable:false", false},
		{"by the certificate itself", answers{w.answer(leaf, leaf, ca, good)}, nil, chain.ErrRevocationUnknown, "ocsp-unusable:false", false},
		{"by a responder not yet certified", answers{w.answer(young, leaf, ca, good)}, nil, chain.ErrRevocationUnknown, "ocsp-unusable:false", false},
		{"by a responder that had expired", answers{w.answer(old, leaf, ca, with(func(s *ocsp.Single) { s.ThisUpdate = now }))}, nil, chain.ErrRevocationUnknown, "ocsp-unusable:false", false},
		{"by a responder that has expired since", answers{w.answer(ends, leaf, ca, with(func(s *ocsp.Single) { s.ThisUpdate = now.Add(-time.Minute) }))}, nil, chain.ErrRevocationUnknown, "ocsp-unusable:false", false},
		{"by a responder of unknown status", answers{w.answer(checked, leaf, ca, good)}, nil, chain.ErrRevocationUnknown, "ocsp-unusable:false", false},
		{"by a responder a list clears", answers{w.answer(checked, leaf, ca, good)}, lists{w.crl(ca, from, to, nil)}, nil, "", true},
		{"by a responder that was revoked", answers{w.answer(trusted, leaf, ca, good)}, lists{w.crl(ca, from.Add(-9*hour), from, nil, named(trusted, from.Add(-9*hour)))}, chain.ErrRevocationUnknown, "ocsp-unusable:false", false},
		{"the second is good", answers{w.answer(forged, leaf, ca, good), w.answer(trusted, leaf, ca, good)}, nil, nil, "ocsp-unusable:false", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := chain.Options{Roots: certs(root), Intermediates: certs(ca), CRLs: append(lists{rootList}, c.lists...), OCSP: c.answers, At: now, RequireRevocation: true}
			v, err := chain.Build(leaf.cert, o)
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			if got := codes(v); c.code == "" && len(got) != 0 || c.code != "" && !slices.Contains(got, c.code) {
				t.Errorf("findings %v, want %q", got, c.code)
			}
			if len(v.Evidence) != len(v.Chain) {
				t.Fatalf("evidence for %d of %d certificates", len(v.Evidence), len(v.Chain))
			}
			if got := v.Evidence[0].OCSP == c.answers[0]; got != c.proof {
				t.Errorf("the answer decided: %t, want %t", got, c.proof)
			}
			if c.proof && (v.Evidence[0].Responder == nil || v.Evidence[0].ThisUpdate != c.answers[0].Singles[0].ThisUpdate || v.Evidence[0].CRL != nil) {
				t.Errorf("the proof is %+v", v.Evidence[0])
			}
			if v.Evidence[1].CRL != rootList || v.Evidence[2] != (chain.Proof{}) {
				t.Error("the proofs of the authorities must be the root's list and nothing for the anchor")
			}
		})
	}
}

// TestResponderItself checks the certificate of a responder.
func TestResponderItself(t *testing.T) {
	w := &world{t: t}
	root := w.authority("Root", nil)
	trusted := w.responder(root, nil)
	plain := w.responder(root, func(t *x509gost.Template) { t.ExtraExtensions = nil })
	stray := w.responder(root, func(t *x509gost.Template) { t.ExtKeyUsage = nil }) // nocheck has no effect without the use OCSP signing
	o := chain.Options{Roots: certs(root), At: now, RequireRevocation: true}
	if v, err := chain.Build(trusted.cert, o); err != nil || len(v.Findings) != 0 {
		t.Errorf("nocheck: %v", err)
	}
	for _, h := range []*holder{plain, stray} {
		if _, err := chain.Build(h.cert, o); !errors.Is(err, chain.ErrRevocationUnknown) {
			t.Errorf("revocation was not asked for: %v", err)
		}
	}
	// A revocation counts in spite of nocheck.
	o.CRLs = []*x509gost.RevocationList{w.crl(root, now, end, nil, x509gost.RevokedEntry{SerialNumber: trusted.cert.SerialNumber, At: now})}
	if _, err := chain.Build(trusted.cert, o); !errors.Is(err, chain.ErrRevoked) {
		t.Errorf("a revoked responder: %v", err)
	}
	// Without RequireRevocation, an answer of an unchecked responder counts.
	leaf := w.leaf(root)
	o = chain.Options{Roots: certs(root), At: now, OCSP: []*ocsp.Basic{w.answer(plain, leaf, root, ocsp.Single{Status: ocsp.Good, ThisUpdate: now})}}
	if v, err := chain.Build(leaf.cert, o); err != nil || v.Evidence[0].OCSP == nil {
		t.Errorf("%v", err)
	}
}

// TestAnswerBounds checks that many answers need a limited number of signature checks.
func TestAnswerBounds(t *testing.T) {
	w := &world{t: t}
	root := w.authority("Root", nil)
	leaf := w.leaf(root)
	one := w.answer(root, leaf, root, ocsp.Single{Status: ocsp.Good, ThisUpdate: now})
	var many []*ocsp.Basic
	for range 200 {
		again, err := ocsp.ParseBasic(one.Raw)
		if err != nil {
			t.Fatal(err)
		}
		many = append(many, again)
	}
	v, err := chain.Build(leaf.cert, chain.Options{Roots: certs(root), At: now, OCSP: many, RequireRevocation: true})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(v.Findings); n != 101 { // one signature of the certificate, 99 of answers
		t.Errorf("%d findings, want 101", n)
	}
}
