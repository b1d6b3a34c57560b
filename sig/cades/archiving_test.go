// SPDX-License-Identifier: Apache-2.0

package cades_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/sigtest"
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// Our own verifier confirms level A for every suite and mode, made at once and in steps, with the
// evidence of the message alone.
func TestArchiveLevel(t *testing.T) {
	for _, s := range suite.All() {
		w := newWorld(t, s)
		for i, mode := range modes {
			doc, original := text, []byte(nil)
			if mode.hash {
				doc = s.Hash.Digest(text).Sum
			}
			if mode.detached {
				original = text
			}
			for _, from := range []string{"A", "BES", "T", "XLT1"} {
				message := w.make(t, w.signer, from, &sig.Job{Document: sigtest.Document(doc), Params: modes[i].params})
				if from != "A" {
					raised, err := w.enhance(t, message, "A", original, nil)
					if err != nil {
						t.Fatalf("%s %s from %s: %v", s.Name, mode.name, from, err)
					}
					message = raised
				}
				for renewal := range 3 {
					r := checked(t, message, original, w.services.Now, w.root)
					if got := levels(t, r); !slices.Equal(got, []string{"A"}) {
						t.Fatalf("%s %s from %s, renewal %d: levels %v: %+v", s.Name, mode.name, from, renewal, got, r.Signatures[0])
					}
					one := &r.Signatures[0]
					if len(one.Findings) > 0 || len(one.TimeStamps) != 3+renewal {
						t.Errorf("%s %s from %s: %d time stamps, %+v", s.Name, mode.name, from, len(one.TimeStamps), one.Findings)
					}
					// The CAdES-C time stamp of XLT1 stays valid.
					if esc := one.TimeStamps[1]; esc.Kind != "CAdES-C" || !esc.Passed() {
						t.Errorf("%+v", esc)
					}
					var err error
					if message, err = w.enhance(t, message, []string{"A", "3", "221"}[renewal], original, nil); err != nil {
						t.Fatal(err)
					}
				}
				if s != suite.GOST2012x256 && from != "A" {
					break
				}
			}
		}
	}
}

// Levels between those that are made are raised to A in one step, without the attributes that they lack.
func TestArchiveFromBetween(t *testing.T) {
	w := newWorld(t, suite.GOST2012x256)
	message := w.make(t, w.signer, "XLT1", &sig.Job{Document: sigtest.Document(text)})
	for name, keep := range map[string]int{"C": 3, "X1": 4, "XLT1": 6} {
		below := unsigned(t, message, 0, func(a []cms.Attribute) []cms.Attribute { return a[:keep] })
		if _, err := w.enhance(t, below, "XLT1", nil, nil); name != "XLT1" && err == nil {
			t.Errorf("%s: raised to XLT1", name)
		}
		raised, err := w.enhance(t, below, "A", nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r := checked(t, raised, nil, w.services.Now, w.root)
		if got := levels(t, r); got[0] != "A" {
			t.Errorf("%s: %v %+v", name, got, r.Signatures[0])
		}
		sameSignature(t, mustParse(t, below).Signers[0], mustParse(t, raised).Signers[0])
		// Without its archive time stamp it has its evidence in the fields of the message.
		bare := unsigned(t, raised, 0, func(a []cms.Attribute) []cms.Attribute { return a[:1] })
		if got := levels(t, checked(t, bare, nil, w.services.Now, w.root)); name != "XLT1" && got[0] != "LT" {
			t.Errorf("%s: without attributes: %v", name, got)
		} else if name != "XLT1" {
			again, err := w.enhance(t, bare, "A", nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if r := checked(t, again, nil, w.services.Now, w.root); r.Signatures[0].Level != "A" || len(r.Signatures[0].TimeStamps) != 2 {
				t.Errorf("from LT: %+v", r.Signatures[0])
			}
		}
	}
}

// A stamp of another program, whose imprint is by an algorithm that no signature has, is renewed.
func TestArchiveOverOtherHash(t *testing.T) {
	w := newWorld(t, suite.GOST2012x256)
	message := w.make(t, w.signer, "XLT1", &sig.Job{Document: sigtest.Document(text)})
	form := handmade{index: cms.OIDHashIndexV3, by: w.services.TSA, at: w.services.Now, hash: suite.SHA256}
	w.services.Now = w.services.Now.Add(time.Minute)
	renewed, err := w.enhance(t, form.add(t, message, text), "A", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := checked(t, renewed, nil, w.services.Now, w.root)
	if s := &r.Signatures[0]; s.Level != "A" || !r.Passed() || len(mustParse(t, renewed).Signers[0].UnsignedAttrs) != len(mustParse(t, message).Signers[0].UnsignedAttrs)+2 {
		t.Errorf("%s: %+v", s.Level, s.Findings)
	}
}

// A signature with a v2 is raised without a change of the fields that the v2 covers: new evidence goes
// into the token of the last stamp.
func TestArchiveOverV2(t *testing.T) {
	w := newWorld(t, suite.GOST2012x256)
	for _, detached := range []bool{false, true} {
		params, original := sig.Params{}, []byte(nil)
		if detached {
			params, original = sig.Params{"IsDetached": "True"}, text
		}
		message := w.make(t, w.signer, "XLT1", &sig.Job{Document: sigtest.Document(text), Params: params})
		h := handmade{by: w.services.TSA, at: w.services.Now}
		w.services.Now = w.services.Now.Add(time.Minute)
		stamped := h.add(t, message, text)
		raised, err := w.enhance(t, stamped, "A", original, nil)
		if err == nil {
			raised, err = w.enhance(t, raised, "A", original, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		r := checked(t, raised, original, w.services.Now, w.root)
		s := &r.Signatures[0]
		if got := levels(t, r); got[0] != "A" || len(s.TimeStamps) != 5 || len(s.Findings) > 0 {
			t.Fatalf("%v %+v", got, s)
		}
		for _, ts := range s.TimeStamps {
			if !ts.Passed() {
				t.Errorf("%+v", ts)
			}
		}
		before, after := mustParse(t, stamped), mustParse(t, raised)
		if !bytes.Equal(section(stamped, before.CertificateSet), section(raised, after.CertificateSet)) || after.RevocationInfo != before.RevocationInfo {
			t.Error("the fields of the message changed")
		}
		token, err := tsp.ParseToken(after.Signers[0].UnsignedAttrs[6].Values[0])
		if err != nil || len(token.Message.CRLs) == 0 {
			t.Errorf("no evidence in the token of the v2: %v", err)
		}
		// One more signer would bring a certificate.
		second := w.sub.Signer(t, suite.GOST2012x256, "Second")
		var refused *sig.ErrDocument
		if _, err := w.try(t, second, "BES", add("Cosign", stamped, original, nil)); !errors.As(err, &refused) || !strings.Contains(err.Error(), "over its certificates") {
			t.Errorf("cosigned: %v", err)
		}
		if detached {
			var missing *sig.ErrParams
			if _, err := w.enhance(t, stamped, "A", nil, nil); !errors.As(err, &missing) || !strings.Contains(err.Error(), "covers the document itself") {
				t.Errorf("without the document: %v", err)
			}
		}
	}
}

// What cannot be archived is refused with the reason.
func TestArchiveRefused(t *testing.T) {
	w := newWorld(t, suite.GOST2012x256)
	message := w.make(t, w.signer, "A", &sig.Job{Document: sigtest.Document(text)})
	long := w.make(t, w.signer, "XLT1", &sig.Job{Document: sigtest.Document(text)})
	attrs := mustParse(t, message).Signers[0].UnsignedAttrs
	token, err := tsp.ParseToken(attrs[len(attrs)-1].Values[0])
	if err != nil {
		t.Fatal(err)
	}
	countersigned := w.make(t, w.signer, "BES", add("Countersign", long, nil, nil))
	ended := func() ([]byte, error) {
		w := newWorld(t, suite.GOST2012x256)
		after := w.services.TSA
		w.services.TSA = w.sub.Issue(t, w.sub.Suite, "Short Stamper", func(c *x509gost.Template) {
			c.NotAfter = sigtest.Time.AddDate(1, 0, 0)
			c.ExtraExtensions = []x509gost.Extension{{OID: x509gost.OIDExtKeyUsage, Critical: true, Value: []byte{0x30, 10, 6, 8, 0x2b, 6, 1, 5, 5, 7, 3, 8}}}
		})
		message := w.make(t, w.signer, "T", &sig.Job{Document: sigtest.Document(text)})
		w.services.TSA, w.services.Now = after, sigtest.Time.AddDate(2, 0, 0)
		return w.enhance(t, message, "A", nil, nil)
	}
	for name, c := range map[string]struct {
		do   func() ([]byte, error)
		text string
	}{
		"the service of a time stamp has ended": {ended, "after the certificate has ended (2026-03-14T09:26:53Z), and proves nothing"},
		"an archive time stamp is broken": {func() ([]byte, error) {
			return w.enhance(t, change(t, message, token.Message.Signers[0].Signature), "A", nil, nil)
		}, "the archive time stamp of 2025-03-14T09:26:55Z is invalid"},
		"a time stamp is broken": {func() ([]byte, error) {
			esc, _ := tsp.ParseToken(mustParse(t, long).Signers[0].UnsignedAttrs[3].Values[0])
			return w.enhance(t, change(t, long, esc.Message.Signers[0].Signature), "A", nil, nil)
		}, "signature 0"},
		"the signature is broken": {func() ([]byte, error) {
			return w.enhance(t, change(t, message, mustParse(t, message).Signers[0].Signature), "A", nil, nil)
		}, "is not valid and is not enhanced"},
		"lowered": {func() ([]byte, error) { return w.enhance(t, message, "XLT1", nil, nil) }, "are already A"},
		"a countersignature": {func() ([]byte, error) {
			return w.enhance(t, countersigned, "A", nil, sig.Params{"SignatureIndex": "0.0"})
		},
			"gets no archive time stamp of its own"},
		"a new countersignature": {func() ([]byte, error) { return w.try(t, w.signer, "A", add("Countersign", long, nil, nil)) },
			"gets no archive time stamp of its own"},
		"the first kind": {func() ([]byte, error) {
			return w.enhance(t, withUnsigned(t, long, cms.NewAttribute(cms.OIDArchiveTimeStamp, token.Raw)), "A", nil, nil)
		}, "of the first kind"},
	} {
		if _, err := c.do(); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %q", name, err, c.text)
		}
	}
}

// A signature is carried through thirty years: every nine years another authority, which did not exist
// before, renews the archive time stamp, and the authority of the last one ends two years later. With one
// renewal left out nothing proves the earlier stamps, and so not the signature.
func TestThirtyYears(t *testing.T) {
	s := suite.GOST2012x256
	var eras []*world
	var roots []*sigtest.Party
	for n := range 4 {
		from := sigtest.Time.AddDate(9*n, 0, 0)
		root, sub, services := sigtest.Era(t, s, string(rune('A'+n)), from, from.AddDate(11, 0, 0))
		eras, roots = append(eras, &world{root: root, sub: sub, services: services}), append(roots, root)
	}
	first := eras[0]
	signer := first.sub.Issue(t, s, "Signer", func(c *x509gost.Template) { c.NotBefore, c.NotAfter = sigtest.Time, sigtest.Time.AddDate(1, 0, 0) })
	start := first.make(t, signer, "A", &sig.Job{Document: sigtest.Document(text)})
	// renew adds the stamp of an era. The services of the era of the last stamp tell about it.
	renew := func(message []byte, last, next int) ([]byte, error) {
		by := *first // no two eras share a service
		by.services = eras[last].services
		now, tsa := by.services.Now, by.services.TSA
		defer func() { by.services.Now, by.services.TSA = now, tsa }()
		by.services.Now, by.services.TSA = eras[next].services.Now.Add(time.Hour), eras[next].services.TSA
		return by.enhance(t, message, "A", nil, nil)
	}
	end := sigtest.Time.AddDate(30, 0, 0)
	message := start
	for n := 1; n < 4; n++ {
		if r := checked(t, message, nil, sigtest.Time.AddDate(9*n+3, 0, 0), roots...); r.Passed() || !has(&r.Signatures[0], "archive-time-stamp-lapsed", "proves nothing at") {
			t.Errorf("not renewed in era %d: %v %+v", n, r.Verdict(), r.Signatures[0].Findings)
		}
		var err error
		if message, err = renew(message, n-1, n); err != nil {
			t.Fatalf("renewal %d: %v", n, err)
		}
	}
	r := checked(t, message, nil, end, roots...)
	if one := &r.Signatures[0]; levels(t, r)[0] != "A" || len(one.TimeStamps) != 6 || len(one.Findings) > 0 || !one.BestTime.Equal(sigtest.Time) {
		t.Errorf("%+v", one)
	}
	for n, root := range roots { // each authority is needed
		if r := checked(t, message, nil, end, slices.Delete(slices.Clone(roots), n, n+1)...); r.Passed() {
			t.Errorf("valid without %s", root.Certificate.Subject)
		}
	}
	for skip := 1; skip < 3; skip++ {
		message := start
		for n, last := 1, 0; n < 4; n++ {
			if n == skip {
				if _, err := renew(message, last, n+1); err == nil || !strings.Contains(err.Error(), "was not valid when it answered") {
					t.Errorf("renewal %d left out: %v", skip, err)
				}
				continue
			}
			if last == n-1 {
				var err error
				if message, err = renew(message, last, n); err != nil {
					t.Fatal(err)
				}
			} else { // by a program that does not ask whether it is of use
				h := handmade{index: cms.OIDHashIndexV3, by: eras[n].services.TSA, at: eras[n].services.Now.Add(time.Hour)}
				message = h.add(t, message, text)
			}
			last = n
		}
		r := checked(t, message, nil, end, roots...)
		if one := &r.Signatures[0]; r.Verdict() != sig.Indeterminate || one.Level == "A" || !has(one, "archive-time-stamp-lapsed", "proves nothing at") {
			t.Errorf("renewal %d left out: %v, level %s: %+v", skip, r.Verdict(), one.Level, one.Findings)
		}
	}
	// The last one left out.
	if r := checked(t, start, nil, end, roots...); r.Verdict() != sig.Indeterminate {
		t.Errorf("never renewed: %v", r.Verdict())
	}
}
