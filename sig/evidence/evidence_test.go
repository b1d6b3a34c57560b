// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/sigtest"
	"tamga/pki/chain"
	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/evidence"
)

// world is a root, an authority under it with a signer, and their services.
type world struct {
	root, sub, signer *sigtest.Party
	services          *sigtest.Services
	rules             evidence.Rules
}

func newWorld(t testing.TB) *world {
	t.Helper()
	root := sigtest.Root(t, suite.ECDSAP256)
	sub := root.Authority(t, "Test Sub")
	return &world{root: root, sub: sub, signer: sub.Signer(t, suite.ECDSAP256, "Signer"), services: sigtest.NewServices(t, root, sub)}
}

// subject is the signer with a time stamp of sigtest.Time.
func (w *world) subject() evidence.Subject {
	return evidence.Subject{Certificate: w.signer.Certificate, Others: w.signer.Chain, At: sigtest.Time}
}

func (w *world) collect(s evidence.Subject) (*evidence.Values, *evidence.Chain, error) {
	var values evidence.Values
	c, err := evidence.New(w.services, nil, w.rules).Collect(context.Background(), &values, s)
	return &values, c, err
}

// Each way to show the status of a certificate gives values with which a verifier needs nothing
// but the root.
func TestCollect(t *testing.T) {
	byIssuer := func(w *world) {
		w.services.By[w.signer.Certificate], w.services.By[w.sub.Certificate] = sigtest.ByIssuer, sigtest.ByIssuer
	}
	lists := func(w *world) {
		w.services.By[w.signer.Certificate], w.services.By[w.sub.Certificate] = sigtest.ByList, sigtest.ByList
	}
	for name, c := range map[string]struct {
		change               func(*world)
		certs, crls, answers int
	}{
		"responders":          {func(*world) {}, 4, 0, 2},
		"responders to check": {func(w *world) { w.services.ResponderChecked = true }, 4, 2, 2},
		"issuers answer":      {byIssuer, 2, 0, 2},
		"lists":               {lists, 2, 2, 0},
		"issuers fetched":     {func(w *world) { w.signer.Chain = nil }, 4, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.change(w)
			values, got, err := w.collect(w.subject())
			if err != nil {
				t.Fatal(err)
			}
			if len(values.Certificates) != c.certs || len(values.CRLs) != c.crls || len(values.OCSP) != c.answers {
				t.Errorf("%d certificates, %d lists, %d answers", len(values.Certificates), len(values.CRLs), len(values.OCSP))
			}
			want := []*x509gost.Certificate{w.signer.Certificate, w.sub.Certificate, w.root.Certificate}
			if !slices.EqualFunc(got.Path, want, (*x509gost.Certificate).Equal) {
				t.Errorf("path %v", got.Path)
			}
			if len(got.Statuses) != 3 || got.Statuses[2] != nil {
				t.Fatalf("statuses %v", got.Statuses)
			}
			for i, s := range got.Statuses[:2] {
				if (s.OCSP == nil) == (s.CRL == nil) || s.ThisUpdate.Before(sigtest.Time) {
					t.Errorf("status %d: %+v", i, s)
				}
			}
			options := chain.Options{Roots: []*x509gost.Certificate{w.root.Certificate}, At: sigtest.Time, RequireRevocation: true}
			for _, v := range values.Certificates {
				options.Intermediates = append(options.Intermediates, must(x509gost.ParseCertificate(v.DER)))
			}
			for _, v := range values.CRLs {
				options.CRLs = append(options.CRLs, must(x509gost.ParseRevocationList(v.DER)))
			}
			for _, v := range values.OCSP {
				options.OCSP = append(options.OCSP, must(ocsp.ParseBasic(v.DER)))
			}
			if _, err := chain.Build(w.signer.Certificate, options); err != nil {
				t.Errorf("the values alone do not prove the path: %v", err)
			}
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// The order is that of the path. Each value is there once and keeps its first purpose, for any
// number of subjects, and is fetched once.
func TestOnce(t *testing.T) {
	w := newWorld(t)
	c := evidence.New(w.services, nil, evidence.Rules{})
	var values evidence.Values
	stamper := evidence.Subject{Certificate: w.services.TSA.Certificate, Others: w.services.TSA.Chain, Purpose: evidence.ForTimeStamp, At: sigtest.Time}
	second := w.sub.Signer(t, suite.ECDSAP256, "Second")
	for _, s := range []evidence.Subject{w.subject(), {Certificate: second.Certificate, At: sigtest.Time}, stamper, stamper} {
		values.AddCertificate(s.Certificate, s.Purpose)
		if _, err := c.Collect(t.Context(), &values, s); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, v := range values.Certificates {
		name, _ := must(x509gost.ParseCertificate(v.DER)).Subject.Get(x509gost.OIDCommonName)
		got = append(got, fmt.Sprint(name, " ", v.Purpose))
	}
	want := []string{
		"Signer 0", "Test Sub 0", "Responder 0 0", "Test Root ECDSA-P256 0", "Responder 1 0",
		"Second 0", "Time Stamper 1", "Time Authority 1", "Responder 2 1",
	}
	want[3] = strings.Replace(want[3], "ECDSA-P256", suite.ECDSAP256.Name, 1)
	if !slices.Equal(got, want) {
		t.Errorf("certificates\n%q, want\n%q", got, want)
	}
	// Signer, authority, second signer, time stamper and its authority. The issuers came along.
	if n, issuers := w.services.Calls("revocation"), w.services.Calls("issuer"); n != 5 || issuers != 1 || len(values.OCSP) != 5 {
		t.Errorf("%d times revocation data and %d issuers for %d answers", n, issuers, len(values.OCSP))
	}
	// Data that is too old for a later subject is fetched again.
	later := w.subject()
	w.services.Now = w.services.Now.Add(time.Minute)
	later.At = w.services.Now
	if _, err := c.Collect(t.Context(), &values, later); err != nil || w.services.Calls("revocation") != 7 {
		t.Errorf("%d times revocation data: %v", w.services.Calls("revocation"), err)
	}
}

// A source may have another failure at any place. None of them gives evidence.
func TestRefused(t *testing.T) {
	outage := &sig.ErrEvidence{What: "revocation", Text: "the service does not answer"}
	spoil := func(w *world, kind string) {
		w.services.Spoil = func(k string, der []byte) []byte {
			if k == kind {
				der = bytes.Clone(der)
				der[len(der)-1] ^= 1
			}
			return der
		}
	}
	byList := func(w *world) { w.services.By[w.signer.Certificate] = sigtest.ByList }
	yesterday := sigtest.Time.AddDate(0, 0, -1)
	for name, c := range map[string]struct {
		change func(*world)
		says   string
	}{
		"no issuer":            {func(w *world) { w.signer.Chain, w.services.Err["issuer"] = nil, outage }, "does not answer"},
		"no data":              {func(w *world) { w.services.Err["revocation"] = outage }, "does not answer"},
		"nothing":              {func(w *world) { byList(w); w.services.Spoil = func(string, []byte) []byte { return nil } }, "neither an OCSP answer nor a revocation list"},
		"answer spoiled":       {func(w *world) { spoil(w, "ocsp") }, `no usable data about the certificate of "Signer"`},
		"list spoiled":         {func(w *world) { byList(w); spoil(w, "crl") }, "no usable data"},
		"answer is no answer":  {func(w *world) { w.services.Spoil = func(string, []byte) []byte { return []byte("x") } }, "no usable data"},
		"list is no list":      {func(w *world) { byList(w); w.services.Spoil = func(string, []byte) []byte { return []byte("x") } }, "no usable data"},
		"revoked by answer":    {func(w *world) { w.services.Revoked[w.signer.Certificate] = yesterday }, "revoked at 2025-03-13"},
		"revoked by list":      {func(w *world) { byList(w); w.services.Revoked[w.signer.Certificate] = yesterday }, "revoked at 2025-03-13"},
		"authority revoked":    {func(w *world) { w.services.Revoked[w.sub.Certificate] = yesterday }, "revoked at 2025-03-13"},
		"old answer":           {func(w *world) { w.services.AnswerAge, w.services.Obedient = time.Minute, false }, "before the time stamp"},
		"old list":             {func(w *world) { byList(w); w.services.ListAge, w.services.Obedient = time.Hour, false }, "the next one is due at 2025-03-15T08:26:53Z"},
		"responder of another": {func(w *world) { w.services.Responders[w.sub] = w.root.Responder(t, "Other", false) }, "no usable data"},
		"responder revoked": {func(w *world) {
			r := w.sub.Responder(t, "Revoked Responder", true)
			w.services.Responders[w.sub], w.services.Revoked[r.Certificate] = r, yesterday
		}, "revoked at 2025-03-13"},
		"responder expired": {func(w *world) { // its nocheck does not help
			w.services.Responders[w.sub] = w.sub.Issue(t, w.sub.Suite, "Expired Responder", func(c *x509gost.Template) {
				c.NotAfter = yesterday
				c.ExtKeyUsage = []x509gost.OID{x509gost.UsageOCSPSigning}
				c.ExtraExtensions = []x509gost.Extension{{OID: x509gost.OIDOCSPNoCheck, Value: []byte{5, 0}}}
			})
		}, "not valid when it answered"},
		"path without an end": {func(w *world) {
			p := w.sub
			for i := range 10 {
				p = p.Authority(t, fmt.Sprint("Authority ", i))
			}
			w.signer = p.Signer(t, suite.ECDSAP256, "Deep")
		}, `the path from the certificate of "Deep" does not end within 10 certificates`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.change(w)
			_, _, err := w.collect(w.subject())
			var e *sig.ErrEvidence
			if !errors.As(err, &e) || !strings.Contains(e.Text, c.says) {
				t.Errorf("%v; want %q", err, c.says)
			}
		})
	}
}

// misled is a source that answers about another certificate than the one asked about.
type misled struct {
	sig.Evidence
	issuer *x509gost.Certificate    // what Issuer returns, if set
	about  *sigtest.Party           // whose status Revocation returns, if set
	list   *x509gost.RevocationList // what Revocation returns, if set
}

func (m *misled) Issuer(ctx context.Context, c *x509gost.Certificate) (*x509gost.Certificate, error) {
	if m.issuer != nil {
		return m.issuer, nil
	}
	return m.Evidence.Issuer(ctx, c)
}

func (m *misled) Revocation(ctx context.Context, c, issuer *x509gost.Certificate, at time.Time) (sig.Proof, error) {
	switch {
	case m.about != nil:
		return m.Evidence.Revocation(ctx, m.about.Certificate, m.about.Chain[0], at)
	case m.list != nil:
		return sig.Proof{CRL: m.list.Raw}, nil
	}
	return m.Evidence.Revocation(ctx, c, issuer, at)
}

// What a source says about another certificate is not taken for this one.
func TestAboutAnother(t *testing.T) {
	w := newWorld(t)
	w.services.By[w.sub.Certificate] = sigtest.ByList
	proof, err := w.services.Revocation(t.Context(), w.sub.Certificate, w.root.Certificate, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		source *misled
		says   string
	}{
		"issuer": {&misled{issuer: w.root.Certificate}, "did not issue"},
		"answer": {&misled{about: w.sub.Signer(t, suite.ECDSAP256, "Second")}, "does not cover it"},
		"list":   {&misled{list: must(x509gost.ParseRevocationList(proof.CRL))}, "of another issuer"},
	} {
		c.source.Evidence = w.services
		_, err := evidence.New(c.source, nil, evidence.Rules{}).Collect(t.Context(), new(evidence.Values), evidence.Subject{Certificate: w.signer.Certificate, At: sigtest.Time})
		var e *sig.ErrEvidence
		if !errors.As(err, &e) || !strings.Contains(e.Text, c.says) {
			t.Errorf("%s: %v; want %q", name, err, c.says)
		}
	}
}

// The rules: the allowed age of data, and old lists for authorities alone.
func TestRules(t *testing.T) {
	oldAnswers := func(w *world) { w.services.AnswerAge = time.Minute }
	oldLists := func(w *world) {
		w.services.ListAge, w.services.By[w.sub.Certificate] = 30*24*time.Hour, sigtest.ByList
	}
	oldOfSigner := func(w *world) { oldLists(w); w.services.By[w.signer.Certificate] = sigtest.ByList }
	for name, c := range map[string]struct {
		rules  evidence.Rules
		change func(*world)
		passes bool
	}{
		"within the allowance":      {evidence.Rules{Allowance: 2 * time.Minute}, oldAnswers, true},
		"at the allowance":          {evidence.Rules{Allowance: time.Minute}, oldAnswers, true},
		"beyond the allowance":      {evidence.Rules{Allowance: 30 * time.Second}, oldAnswers, false},
		"old list of an authority":  {evidence.Rules{}, oldLists, false},
		"the same, accepted":        {evidence.Rules{OldListsForAuthorities: true}, oldLists, true},
		"old list about the signer": {evidence.Rules{OldListsForAuthorities: true}, oldOfSigner, false},
	} {
		w := newWorld(t)
		w.rules = c.rules
		c.change(w)
		if _, _, err := w.collect(w.subject()); (err == nil) != c.passes {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A stamp with fractions of a second is not later than data of the same second.
	w := newWorld(t)
	s := w.subject()
	s.At = s.At.Add(700 * time.Millisecond)
	if _, _, err := w.collect(s); err != nil {
		t.Errorf("the same second: %v", err)
	}
}

// Revocation data from after the end of a certificate proves nothing: it may have been revoked and dropped.
func TestAfterTheEnd(t *testing.T) {
	for _, by := range []sigtest.Authority{sigtest.ByList, sigtest.ByResponder, sigtest.ByIssuer} {
		w := newWorld(t)
		w.signer = w.sub.Issue(t, suite.ECDSAP256, "Short", func(c *x509gost.Template) { c.NotAfter = sigtest.Time.Add(time.Hour) })
		w.services.By[w.signer.Certificate] = by
		w.services.Now = sigtest.Time.Add(time.Hour)
		if _, _, err := w.collect(w.subject()); err != nil {
			t.Errorf("%v, at the end: %v", by, err)
		}
		w.services.Now = sigtest.Time.Add(time.Hour + time.Second)
		var outage *sig.ErrEvidence
		if _, _, err := w.collect(w.subject()); !errors.As(err, &outage) || !strings.Contains(err.Error(), "after the certificate has ended") {
			t.Errorf("%v, after the end: %v", by, err)
		}
	}
}
