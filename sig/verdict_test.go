// SPDX-License-Identifier: Apache-2.0

package sig_test

import (
	"slices"
	"testing"
	"time"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// TestVerdictIsTheWorst checks that findings of the file, of every signature and of every
// countersignature count.
func TestVerdictIsTheWorst(t *testing.T) {
	c := &x509gost.Certificate{}
	with := func(findings ...sig.Finding) sig.Signature {
		return sig.Signature{Signer: c, Chain: []*x509gost.Certificate{c}, Findings: findings}
	}
	means := func(i sig.Indication) sig.Finding { return sig.Finding{Code: "x", Indication: i} }
	under := func(s sig.Signature, counter ...sig.Signature) sig.Signature {
		s.Countersigners = counter
		return s
	}
	unknown := sig.Signature{}
	untrusted := sig.Signature{Signer: c}
	for name, test := range map[string]struct {
		report sig.Report
		want   sig.Verdict
	}{
		"no signature":                {sig.Report{}, sig.Failed},
		"nothing found":               {sig.Report{Signatures: []sig.Signature{with()}}, sig.Passed},
		"a note":                      {sig.Report{Signatures: []sig.Signature{with(means(""))}}, sig.Passed},
		"a note on the file":          {sig.Report{Findings: []sig.Finding{means("")}, Signatures: []sig.Signature{with()}}, sig.Passed},
		"broken file":                 {sig.Report{Findings: []sig.Finding{means(sig.FormatFailure)}, Signatures: []sig.Signature{with()}}, sig.Failed},
		"no signer":                   {sig.Report{Signatures: []sig.Signature{unknown}}, sig.Indeterminate},
		"no anchor":                   {sig.Report{Signatures: []sig.Signature{untrusted}}, sig.Indeterminate},
		"unknown status":              {sig.Report{Signatures: []sig.Signature{with(means(sig.TryLater))}}, sig.Indeterminate},
		"failed beats indeterminate":  {sig.Report{Signatures: []sig.Signature{untrusted, with(means(sig.HashFailure)), with()}}, sig.Failed},
		"one of two":                  {sig.Report{Signatures: []sig.Signature{with(), with(means(sig.Revoked))}}, sig.Failed},
		"countersignature":            {sig.Report{Signatures: []sig.Signature{under(with(), with(), with(means(sig.SigCryptoFailure)))}}, sig.Failed},
		"untrusted countersignature":  {sig.Report{Signatures: []sig.Signature{under(with(), untrusted)}}, sig.Indeterminate},
		"countersignature of another": {sig.Report{Signatures: []sig.Signature{under(with(), under(with(), with(means(sig.FormatFailure))))}}, sig.Failed},
	} {
		if got := test.report.Verdict(); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
		if test.report.Passed() != (test.want == sig.Passed) {
			t.Errorf("%s: Passed disagrees with the verdict", name)
		}
	}
}

// TestTrustNeedsAnAnchor checks that a certificate without a path is not trusted, and that a
// wrong signature value does not make its certificate less trusted.
func TestTrustNeedsAnAnchor(t *testing.T) {
	c := &x509gost.Certificate{}
	path := []*x509gost.Certificate{c}
	bad := []sig.Finding{{Code: "signature-mismatch", Indication: sig.SigCryptoFailure}}
	revoked := []sig.Finding{{Code: "certificate-revoked", Indication: sig.Revoked}}
	for _, test := range []struct {
		signature      sig.Signature
		holds, trusted bool
	}{
		{sig.Signature{}, false, false},
		{sig.Signature{Signer: c}, true, false},
		{sig.Signature{Signer: c, Chain: path}, true, true},
		{sig.Signature{Signer: c, Chain: path, Findings: bad}, false, true},
		{sig.Signature{Signer: c, Chain: path, Findings: revoked}, true, false},
	} {
		if s := test.signature; s.Holds() != test.holds || s.Trusted() != test.trusted {
			t.Errorf("%+v: holds %v, trusted %v", s, s.Holds(), s.Trusted())
		}
	}
	if ts := (&sig.TimeStamp{Signer: c}); ts.Trusted() || ts.Passed() {
		t.Error("a time stamp is trusted without an anchor")
	}
}

// TestCoversPart checks that a signature over a part passes with a headline, unless the caller
// requires the whole document or another part.
func TestCoversPart(t *testing.T) {
	for _, test := range []struct {
		check sig.Check
		want  sig.Verdict
	}{
		{sig.Check{}, sig.Passed},
		{sig.Check{Strict: true}, sig.Failed},
		{sig.Check{Expect: "/a/b"}, sig.Passed},
		{sig.Check{Expect: "/a/b", Strict: true}, sig.Passed},
		{sig.Check{Expect: "/a"}, sig.Failed},
		{sig.Check{Expect: "/a", Strict: true}, sig.Failed},
	} {
		f := test.check.CoversPart("/a/b", "/a/c")
		if f.Indication.Verdict() != test.want || f.Headline != "covers only /a/b, /a/c" {
			t.Errorf("strict %v, expected %q: %+v", test.check.Strict, test.check.Expect, f)
		}
	}
	r := sig.Report{Signatures: []sig.Signature{
		{Findings: []sig.Finding{{Headline: "one"}}, Countersigners: []sig.Signature{{Findings: []sig.Finding{{Headline: "two"}}}}},
		{Findings: []sig.Finding{{Headline: "one"}}},
	}}
	if got := r.Headlines(); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("headlines %q", got)
	}
}

// TestWeakHash checks that SHA-1 counts only with a proof that the signature existed while SHA-1
// was strong.
func TestWeakHash(t *testing.T) {
	end := time.Date(2014, 1, 1, 0, 0, 0, 0, time.UTC)
	if f, weak := new(sig.Check).WeakHash(suite.SHA1, end); !weak || f.Indication.Verdict() != sig.Indeterminate {
		t.Errorf("at the date from which it is weak: %+v", f)
	}
	if _, weak := new(sig.Check).WeakHash(suite.SHA1, end.Add(-time.Second)); weak {
		t.Error("weak before that date")
	}
	if _, weak := new(sig.Check).WeakHash(suite.SHA256, end); weak {
		t.Error("SHA-256 is weak")
	}
}

// A time stamp of the document that does not hold fails a file only if the file has nothing else: the signatures that it
// covers were judged without it.
func TestVerdictOfDocumentStamps(t *testing.T) {
	good := sig.Signature{Level: "LT", Signer: &x509gost.Certificate{}, Chain: []*x509gost.Certificate{{}}}
	bad := sig.Signature{Level: sig.LevelDocumentStamp, Findings: []sig.Finding{{Code: "message-digest-mismatch", Indication: sig.HashFailure}}}
	for name, c := range map[string]struct {
		signatures []sig.Signature
		want       sig.Verdict
	}{
		"beside a signature": {[]sig.Signature{good, bad}, sig.Passed},
		"alone":              {[]sig.Signature{bad}, sig.Failed},
		"without a path":     {[]sig.Signature{{Level: sig.LevelDocumentStamp}}, sig.Indeterminate},
		"a bad signature":    {[]sig.Signature{{Level: "BES", Findings: bad.Findings}, {Level: sig.LevelDocumentStamp}}, sig.Failed},
	} {
		if got := (&sig.Report{Signatures: c.signatures}).Verdict(); got != c.want {
			t.Errorf("%s: %v; want %v", name, got, c.want)
		}
	}
}

// TestProves: a time stamp over references is older than the value of its signature may be.
func TestProves(t *testing.T) {
	c := &x509gost.Certificate{}
	for kind, want := range map[string]bool{"signature": true, "CAdES-C": true, "references": false, "archive": true, "document": true} {
		ts := sig.TimeStamp{Kind: kind, Signer: c, Chain: []*x509gost.Certificate{c}}
		if !ts.Passed() || ts.Proves() != want {
			t.Errorf("%s: passed %v, proves %v", kind, ts.Passed(), ts.Proves())
		}
	}
}
