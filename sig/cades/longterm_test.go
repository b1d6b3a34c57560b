// SPDX-License-Identifier: Apache-2.0

package cades_test

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"tamga/internal/sigtest"
	"tamga/pki/chain"
	"tamga/pki/cms"
	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/cades"
	"tamga/sig/evidence"
)

// Verification: one broken rule at a time.
func TestLongTermRules(t *testing.T) {
	w := newWorld(t, suite.GOST2012x256)
	message := w.make(t, w.signer, "XLT1", &sig.Job{Document: sigtest.Document(text)})
	stamp := func(p *sigtest.Party, d suite.Digest) []byte {
		der, err := tsp.CreateToken(&tsp.Info{Policy: x509gost.OID{1, 2, 3}, Digest: d, Serial: []byte{9}, Time: sigtest.Time},
			p.Certificate, []*x509gost.Certificate{p.Certificate}, p.Suite, x509gost.SignWith(sigtest.Random(3), p.Key, p.Suite))
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	value := mustParse(t, message).Signers[0].Signature
	imprint := w.signer.Suite.Hash.Digest(value)
	foreign := sigtest.Root(t, suite.GOST2001).TimeStamper(t, "Foreign")
	set := func(oid x509gost.OID, values ...[]byte) func([]cms.Attribute) []cms.Attribute {
		return func(attrs []cms.Attribute) (out []cms.Attribute) {
			for _, a := range attrs {
				if a.OID.Equal(oid) {
					if values == nil {
						continue
					}
					a = cms.NewAttribute(oid, values...)
				}
				out = append(out, a)
			}
			return out
		}
	}
	edit := func(oid x509gost.OID, change func([]byte) []byte) func([]cms.Attribute) []cms.Attribute {
		return func(attrs []cms.Attribute) []cms.Attribute {
			out := slices.Clone(attrs)
			for i, a := range out {
				if a.OID.Equal(oid) {
					out[i] = cms.NewAttribute(oid, change(bytes.Clone(a.Values[0])))
				}
			}
			return out
		}
	}
	flipLast := func(b []byte) []byte { b[len(b)-1] ^= 1; return b }
	without := func(part []byte) func([]byte) []byte {
		return func(b []byte) []byte { // removes an element of the innermost SEQUENCE OF
			i := bytes.Index(b, part)
			if i < 0 {
				t.Fatal("the element is not there")
			}
			return element(0x30, b[headerOf(b):i], b[i+len(part):])
		}
	}
	// The values of the message, another list, and an answer with an invalid signature.
	_, _, answers := cades.Values(mustParse(t, message).Signers[0])
	list, err := x509gost.CreateRevocationList(&x509gost.CRLTemplate{ThisUpdate: sigtest.Time, NextUpdate: sigtest.Time.AddDate(0, 1, 0), Number: []byte{7}},
		w.root.Certificate, w.root.Suite, x509gost.SignWith(sigtest.Random(5), w.root.Key, w.root.Suite))
	if err != nil {
		t.Fatal(err)
	}
	basic, err := ocsp.ParseBasic(answers[0])
	if err != nil {
		t.Fatal(err)
	}
	brokenAnswer := bytes.Clone(basic.Raw)
	brokenAnswer[bytes.Index(brokenAnswer, basic.Signature)] ^= 1
	none := []string(nil)
	tests := []struct {
		name   string
		edit   func([]cms.Attribute) []cms.Attribute
		fatal  []string
		level  string
		note   string // an additional finding
		intact bool   // the stamp of the signature is still valid
	}{
		{"nothing", func(a []cms.Attribute) []cms.Attribute { return a }, none, "XLT1", "", true},
		{"no time stamp", set(cms.OIDSignatureTimeStamp), none, "BES", "time-stamp-invalid", false},
		{"time stamp of something else", set(cms.OIDSignatureTimeStamp, stamp(w.services.TSA, w.signer.Suite.Hash.Digest(text))), none, "BES", "time-stamp-invalid", false},
		{"time stamp by an untrusted service", func(a []cms.Attribute) []cms.Attribute {
			return []cms.Attribute{cms.NewAttribute(cms.OIDSignatureTimeStamp, stamp(foreign, imprint))}
		}, none, "BES", "time-stamp-untrusted", false},
		{"time stamp over SHA-1", set(cms.OIDSignatureTimeStamp, stamp(w.services.TSA, suite.SHA1.Digest(value))), none, "BES", sig.CodeWeak, false},
		{"time stamp by one who is no service", func(a []cms.Attribute) []cms.Attribute {
			return []cms.Attribute{cms.NewAttribute(cms.OIDSignatureTimeStamp, forgedToken(t, w, imprint))}
		}, none, "BES", "time-stamp-invalid", false},
		{"time stamp that is no token", set(cms.OIDSignatureTimeStamp, []byte{5, 0}), none, "BES", "time-stamp-invalid", false},
		{"CAdES-C time stamp in an OCTET STRING", func(a []cms.Attribute) []cms.Attribute {
			out := slices.Clone(a)
			i := slices.IndexFunc(out, func(a cms.Attribute) bool { return a.OID.Equal(cms.OIDEscTimeStamp) })
			out[i] = cms.NewAttribute(cms.OIDEscTimeStamp, element(4, out[i].Values[0]))
			return out
		}, none, "XLT1", "", true},
		{"time stamp in an OCTET STRING", func(a []cms.Attribute) []cms.Attribute {
			return []cms.Attribute{cms.NewAttribute(cms.OIDSignatureTimeStamp, element(4, a[0].Values[0]))}
		}, none, "T", "", true},
		{"time stamp of something else in an OCTET STRING", func(a []cms.Attribute) []cms.Attribute {
			return []cms.Attribute{cms.NewAttribute(cms.OIDSignatureTimeStamp, element(4, stamp(w.services.TSA, w.signer.Suite.Hash.Digest(text))))}
		}, none, "BES", "time-stamp-invalid", false},
		{"time stamp in two OCTET STRINGs", func(a []cms.Attribute) []cms.Attribute {
			return []cms.Attribute{cms.NewAttribute(cms.OIDSignatureTimeStamp, element(4, element(4, stamp(w.services.TSA, imprint))))}
		}, none, "BES", "time-stamp-invalid", false},
		{"time stamp without a value", func(a []cms.Attribute) []cms.Attribute {
			return []cms.Attribute{cms.NewAttribute(cms.OIDSignatureTimeStamp)}
		}, []string{"unsigned-attribute-malformed"}, "BES", "", false},
		{"no CAdES-C time stamp", set(cms.OIDEscTimeStamp), none, "X-L", "", true},
		{"CAdES-C time stamp of the value alone", set(cms.OIDEscTimeStamp, stamp(w.services.TSA, imprint)), none, "X-L", "time-stamp-invalid", true},
		{"no values", func(a []cms.Attribute) []cms.Attribute {
			return set(cms.OIDRevocationValues)(set(cms.OIDCertificateValues)(a))
		}, none, "X1", "", true},
		{"neither values nor CAdES-C time stamp", func(a []cms.Attribute) []cms.Attribute { return a[:3] }, none, "C", "", true},
		{"certificate references changed", edit(cms.OIDCertificateRefs, flipLast), []string{"reference-without-value"}, "BES", "time-stamp-invalid", true},
		{"revocation references changed", edit(cms.OIDRevocationRefs, func(b []byte) []byte { b[bytes.Index(b, []byte{4, 32})+2] ^= 1; return b }), []string{"reference-without-value"}, "BES", "time-stamp-invalid", true},
		{"references twice", func(a []cms.Attribute) []cms.Attribute { return append(slices.Clone(a), a[1]) }, []string{"unsigned-attribute-malformed"}, "BES", "time-stamp-invalid", true},
		{"reference by an unknown digest", set(cms.OIDCertificateRefs, element(0x30, element(0x30, element(0x30, []byte{0x30, 4, 6, 2, 0x2a, 3, 4, 1, 0})))), none, "C", "reference-not-checked", true},
		{"references malformed", set(cms.OIDCertificateRefs, []byte{4, 0}), []string{"unsigned-attribute-malformed"}, "BES", "time-stamp-invalid", true},
		// The last one belongs to the service and has no reference.
		{"certificate value changed", edit(cms.OIDCertificateValues, flipLast), nil, "X1", "long-term-value-broken", true},
		{"certificate value unreadable", edit(cms.OIDCertificateValues, func(b []byte) []byte { return element(0x30, b[headerOf(b):], []byte{0x30, 0}) }), nil, "X1", "certificate-unreadable", true},
		{"certificate value of another root", edit(cms.OIDCertificateValues, func(b []byte) []byte {
			return element(0x30, b[headerOf(b):], foreign.Certificate.Raw)
		}), nil, "XLT1", "long-term-value-unused", true},
		{"certificate value beside the path", edit(cms.OIDCertificateValues, func(b []byte) []byte {
			return element(0x30, b[headerOf(b):], w.sub.Signer(t, suite.GOST2012x256, "Beside").Certificate.Raw)
		}), nil, "XLT1", "long-term-value-unused", true},
		{"list with a wrong signature", set(cms.OIDRevocationValues, revocations([][]byte{flipLast(bytes.Clone(list))}, answers)), nil, "X1", "long-term-value-broken", true},
		{"list beside", set(cms.OIDRevocationValues, revocations([][]byte{list}, answers)), nil, "XLT1", "", true},
		{"answer with a wrong signature", set(cms.OIDRevocationValues, revocations(nil, append(slices.Clone(answers), brokenAnswer))), nil, "X1", "long-term-value-broken", true},
		{"answer unreadable", set(cms.OIDRevocationValues, revocations(nil, append(slices.Clone(answers), []byte{0x30, 0}))), nil, "X1", "certificate-unreadable", true},
		{"referenced certificate missing", edit(cms.OIDCertificateValues, without(w.root.Certificate.Raw)), []string{"reference-without-value"}, "BES", "", true},
		{"revocation values malformed", set(cms.OIDRevocationValues, []byte{4, 0}), []string{"unsigned-attribute-malformed", "reference-without-value", "reference-without-value"}, "BES", "", true},
		{"revocation values empty", set(cms.OIDRevocationValues, []byte{0x30, 0}), []string{"reference-without-value", "reference-without-value"}, "BES", "", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := verify(t, unsigned(t, message, 0, test.edit), nil, w.root)
			got := r.Signatures[0]
			if codes := sigtest.Codes(r); !slices.Equal(codes, test.fatal) {
				t.Errorf("%v, want %v: %+v", codes, test.fatal, got.Findings)
			}
			if got.Level != test.level {
				t.Errorf("level %s, want %s: %+v", got.Level, test.level, got.Findings)
			}
			if test.note != "" && !slices.ContainsFunc(got.Findings, func(f sig.Finding) bool { return f.Code == test.note }) {
				t.Errorf("no finding %s: %+v", test.note, got.Findings)
			}
			leftOut := slices.ContainsFunc(got.TimeStamps, func(ts sig.TimeStamp) bool { return !ts.Holds() })
			if said := slices.Contains(r.Headlines(), "an invalid time stamp was left out"); said != leftOut {
				t.Errorf("headlines %q, time stamps %+v", r.Headlines(), got.TimeStamps)
			}
			if intact := len(got.TimeStamps) > 0 && got.TimeStamps[0].Kind == "signature" && got.TimeStamps[0].Passed(); intact != test.intact {
				t.Errorf("time stamp of the signature: %+v", got.TimeStamps)
			}
		})
	}
}

// TestStampAddedLater: programs add a time stamp of the signature to a complete message, as an
// attribute or as a value, in any place. The CAdES-C time stamp covers those before it alone. One
// that is not over the signature is left out.
func TestStampAddedLater(t *testing.T) {
	w := newWorld(t, suite.GOST2012x256)
	message := w.make(t, w.signer, "XLT1", &sig.Job{Document: sigtest.Document(text)})
	info := mustParse(t, message).Signers[0]
	h := w.signer.Suite.Hash
	stamp := func(d suite.Digest) []byte {
		der, err := tsp.CreateToken(&tsp.Info{Policy: x509gost.OID{1, 2, 3}, Digest: d, Serial: []byte{9}, Time: sigtest.Time.Add(time.Minute)},
			w.services.TSA.Certificate, []*x509gost.Certificate{w.services.TSA.Certificate}, w.services.TSA.Suite, x509gost.SignWith(sigtest.Random(3), w.services.TSA.Key, w.services.TSA.Suite))
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	good, bad := stamp(h.Digest(info.Signature)), stamp(h.Digest(text))
	more := func(token []byte) cms.Attribute { return cms.NewAttribute(cms.OIDSignatureTimeStamp, token) }
	const later, leftOut = "time-stamp-added-later", "time-stamp-invalid"
	for name, c := range map[string]struct {
		edit    func([]cms.Attribute) []cms.Attribute
		level   string
		finding string
	}{
		"at the end":       {func(a []cms.Attribute) []cms.Attribute { return append(a, more(good)) }, "XLT1", later},
		"two at the end":   {func(a []cms.Attribute) []cms.Attribute { return append(a, more(good), more(good)) }, "XLT1", later},
		"at the beginning": {func(a []cms.Attribute) []cms.Attribute { return slices.Insert(a, 0, more(good)) }, "XLT1", later},
		"after the first":  {func(a []cms.Attribute) []cms.Attribute { return slices.Insert(a, 1, more(good)) }, "XLT1", later},
		"as a value": {func(a []cms.Attribute) []cms.Attribute {
			a[0] = cms.NewAttribute(cms.OIDSignatureTimeStamp, a[0].Values[0], good)
			return a
		}, "XLT1", later},
		"as the first value": {func(a []cms.Attribute) []cms.Attribute {
			a[0] = cms.NewAttribute(cms.OIDSignatureTimeStamp, good, a[0].Values[0])
			return a
		}, "XLT1", later},
		"of something else": {func(a []cms.Attribute) []cms.Attribute { return append(a, more(bad)) }, "XLT1", leftOut},
		"of something else, as a value": {func(a []cms.Attribute) []cms.Attribute {
			a[0] = cms.NewAttribute(cms.OIDSignatureTimeStamp, a[0].Values[0], bad)
			return a
		}, "XLT1", leftOut},
		"in place of the first":          {func(a []cms.Attribute) []cms.Attribute { a[0] = more(good); return a }, "C", leftOut},
		"no stamp that the other covers": {func(a []cms.Attribute) []cms.Attribute { return append(a[1:], more(good)) }, "C", leftOut},
	} {
		r := verify(t, unsigned(t, message, 0, func(a []cms.Attribute) []cms.Attribute { return c.edit(slices.Clone(a)) }), nil, w.root)
		one := r.Signatures[0]
		i := slices.IndexFunc(one.Findings, func(f sig.Finding) bool { return f.Code == c.finding })
		if !r.Passed() || one.Level != c.level || i < 0 || (one.Findings[i].Headline != "") != (c.finding == leftOut) {
			t.Errorf("%s: %v, level %s: %+v", name, r.Verdict(), one.Level, one.Findings)
		}
		if !one.BestTime.Equal(sigtest.Time) && c.level == "XLT1" {
			t.Errorf("%s: checked for %v", name, one.BestTime)
		}
	}
	// A changed value fails with every time stamp.
	changed := change(t, unsigned(t, message, 0, func(a []cms.Attribute) []cms.Attribute { return append(slices.Clone(a), more(good)) }), info.Signature)
	if r := verify(t, changed, nil, w.root); r.Verdict() != sig.Failed {
		t.Errorf("changed: %v", r.Verdict())
	}
}

// revocations returns revocation-values.
func revocations(lists, answers [][]byte) []byte {
	var first []byte
	if lists != nil {
		first = element(0xa0, element(0x30, lists...))
	}
	return element(0x30, first, element(0xa1, element(0x30, answers...)))
}

// forgedToken returns a token by the signer, whose certificate is not for time stamps.
func forgedToken(t testing.TB, w *world, d suite.Digest) []byte {
	t.Helper()
	der, err := tsp.CreateToken(&tsp.Info{Policy: x509gost.OID{1, 2, 3}, Digest: d, Serial: []byte{9}, Time: sigtest.Time},
		w.signer.Certificate, []*x509gost.Certificate{w.signer.Certificate}, w.signer.Suite, x509gost.SignWith(sigtest.Random(3), w.signer.Key, w.signer.Suite))
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// Data older than the time stamp proves nothing about that time, and a later revocation
// does not affect an earlier time.
func TestJudgedAtBestTime(t *testing.T) {
	w := newWorld(t, suite.GOST2012x256)
	message := w.make(t, w.signer, "XLT1", &sig.Job{Document: sigtest.Document(text)})
	old := &cades.Format{Rules: evidence.Rules{Allowance: time.Hour}}
	w.services.AnswerAge = time.Minute
	aged, err := sigtest.Try(t, old, w.signer, &sig.Job{Document: sigtest.Document(text), Evidence: w.services,
		Params: sig.Params{"CADESType": "XLT1", "TSPAddress": ""}})
	if err != nil {
		t.Fatal(err)
	}
	r := verify(t, aged, nil, w.root)
	if s := r.Signatures[0]; s.Level != "X1" || !slices.ContainsFunc(s.Findings, func(f sig.Finding) bool { return f.Code == "evidence-older-than-time-stamp" }) {
		t.Errorf("level %s: %+v", s.Level, s.Findings)
	}
	check := func(revoked time.Time) *sig.Report {
		w.services.Revoked[w.signer.Certificate] = revoked
		w.services.By[w.signer.Certificate], w.services.Obedient = sigtest.ByList, false
		w.services.Now = sigtest.Time.AddDate(1, 0, 0)
		p, err := w.services.Revocation(context.Background(), w.signer.Certificate, w.sub.Certificate, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		l, err := x509gost.ParseRevocationList(p.CRL)
		if err != nil {
			t.Fatal(err)
		}
		r, err := cades.New().Verify(context.Background(), &sig.Check{Document: sigtest.Document(message),
			Roots: []*x509gost.Certificate{w.root.Certificate}, CRLs: []*x509gost.RevocationList{l}, At: sigtest.Time.AddDate(1, 0, 0)})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := check(sigtest.Time.AddDate(0, 1, 0)); !r.Passed() || r.Signatures[0].Level != "XLT1" {
		t.Errorf("revoked later: %v", sigtest.Codes(r))
	}
	if r := check(sigtest.Time.AddDate(0, -1, 0)); r.Passed() {
		t.Error("revoked before the time stamp, and valid")
	}
}

// With a source of evidence, a check fetches what the message lacks.
func TestVerifyOnline(t *testing.T) {
	w := newWorld(t, suite.GOST2012x256)
	message := sigtest.Make(t, cades.New(), w.signer, &sig.Job{Document: sigtest.Document(text), Params: sig.Params{"IncludeCertChain": "False"}})
	ask := func(e sig.Evidence) *sig.Report {
		r, err := cades.New().Verify(context.Background(), &sig.Check{Document: sigtest.Document(message), Evidence: e,
			Roots: []*x509gost.Certificate{w.root.Certificate}, At: sigtest.Time})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := ask(nil); r.Passed() {
		t.Error("valid without the authority's certificate")
	}
	if r := ask(w.services); !r.Passed() || len(r.Signatures[0].Findings) != 0 {
		t.Errorf("%+v", r.Signatures[0].Findings)
	}
	w.services.Err["revocation"] = &sig.ErrEvidence{What: "revocation", Text: "down"}
	if r := ask(w.services); !r.Passed() || !slices.ContainsFunc(r.Signatures[0].Findings, func(f sig.Finding) bool { return f.Code == "certificate-evidence-unavailable" }) {
		t.Errorf("%+v", r.Signatures[0].Findings)
	}
	delete(w.services.Err, "revocation")
	w.services.Revoked[w.signer.Certificate] = sigtest.Time.AddDate(0, 0, -1)
	if r := ask(w.services); r.Passed() || !slices.Contains(sigtest.Codes(r), "certificate-"+chain.CodeRevoked) {
		t.Errorf("%v", sigtest.Codes(r))
	}
}
