// SPDX-License-Identifier: Apache-2.0

package cades_test

import (
	"context"
	"testing"
	"time"

	"tamga/internal/sigtest"
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/cades"
)

// brief returns a signer whose certificate ends after a month.
func (w *world) brief(t testing.TB, name string) *sigtest.Party {
	t.Helper()
	return w.sub.Issue(t, w.signer.Suite, name, func(c *x509gost.Template) { c.NotBefore, c.NotAfter = sigtest.Time, sigtest.Time.AddDate(0, 1, 0) })
}

// A time stamp of a countersignature proves that the signature under it existed. Without it the certificate
// that has ended decides, and so it does if the countersignature is changed, or its signer is not trusted: a key for an old value
// that was stamped can be computed.
func TestCountersignatureProves(t *testing.T) {
	w := newWorld(t, suite.GOST2012x256)
	signer, later := w.brief(t, "Signer"), sigtest.Time.AddDate(0, 6, 0)
	message := w.make(t, signer, "BES", &sig.Job{Document: sigtest.Document(text)})
	if r := checked(t, message, nil, later, w.root); r.Verdict() != sig.Indeterminate || r.Conclusion().Sub != sig.OutOfBoundsNoPOE {
		t.Fatalf("without a proof: %+v", r.Conclusion())
	}
	other := *w
	other.signer = sigtest.Root(t, suite.GOST2012x512).Signer(t, suite.GOST2012x256, "Other")
	if r := checked(t, other.make(t, other.signer, "T", add("Countersign", message, nil, nil)), nil, later, w.root); !r.Signatures[0].BestTime.Equal(later) {
		t.Errorf("a countersigner without trust proves %s", r.Signatures[0].BestTime)
	}
	for _, level := range []string{"BES", "T"} {
		over := w.make(t, w.signer, level, add("Countersign", message, nil, nil))
		r := checked(t, over, nil, later, w.root)
		if want := level == "T"; r.Passed() != want {
			t.Errorf("a countersignature of level %s: %+v %+v", level, r.Conclusion(), r.Signatures[0].Findings)
		}
		if s := &r.Signatures[0]; level == "T" && (s.Level != "BES" || !s.BestTime.Equal(s.Countersigners[0].BestTime)) {
			t.Errorf("level %s, best time %s", s.Level, s.BestTime)
		}
		if level == "T" {
			inner, err := mustParse(t, over).Signers[0].Countersignatures()
			if err != nil {
				t.Fatal(err)
			}
			if r := checked(t, change(t, over, inner[0].Signature), nil, later, w.root); r.Verdict() == sig.Passed || !r.Signatures[0].BestTime.Equal(later) {
				t.Errorf("a changed countersignature proves %s: %+v", r.Signatures[0].BestTime, r.Conclusion())
			}
		}
	}
}

// An archive time stamp proves that the countersignatures that it covers existed.
func TestArchiveProvesCountersignature(t *testing.T) {
	w := newWorld(t, suite.GOST2012x256)
	message := w.make(t, w.signer, "XLT1", &sig.Job{Document: sigtest.Document(text)})
	message = w.make(t, w.brief(t, "Countersigner"), "BES", add("Countersign", message, nil, nil))
	later := sigtest.Time.AddDate(0, 6, 0)
	if r := checked(t, message, nil, later, w.root); r.Verdict() != sig.Indeterminate {
		t.Fatalf("without an archive time stamp: %+v", r.Conclusion())
	}
	raised, err := w.enhance(t, message, "A", nil, sig.Params{"SignatureIndex": "0"})
	if err != nil {
		t.Fatal(err)
	}
	r := checked(t, raised, nil, later, w.root)
	if c := &r.Signatures[0].Countersigners[0]; !r.Passed() || !c.BestTime.Before(later) {
		t.Errorf("%+v, the countersignature for %s: %+v", r.Conclusion(), c.BestTime, c.Findings)
	}
	// One that comes after the archive time stamp is not covered.
	message = w.make(t, w.signer, "A", &sig.Job{Document: sigtest.Document(text)})
	info := mustParse(t, message).Signers[0]
	over := mustParse(t, w.make(t, w.brief(t, "Countersigner"), "BES", add("Countersign", w.make(t, w.signer, "BES", &sig.Job{Document: sigtest.Document(text)}), nil, nil))).Signers[0]
	for _, a := range over.UnsignedAttrs {
		if a.OID.Equal(cms.OIDCountersignature) && len(info.UnsignedAttrs) > 0 {
			r := checked(t, withUnsigned(t, message, a), nil, later, w.root)
			if c := &r.Signatures[0].Countersigners[0]; !c.BestTime.Equal(later) {
				t.Errorf("a countersignature added later is judged for %s", c.BestTime)
			}
		}
	}
}

// By the standard a time stamp proves nothing after its certificate has ended, unless a later one covers it. By default one
// without an archive time stamp is judged at its own time.
func TestLivingStamps(t *testing.T) {
	from := sigtest.Time
	root, sub, services := sigtest.Era(t, suite.GOST2012x256, "Short", from, from.AddDate(2, 0, 0))
	w := &world{root: root, sub: sub, services: services, signer: sub.Signer(t, suite.GOST2012x256, "Signer")}
	w.signer = sub.Issue(t, suite.GOST2012x256, "Signer", func(c *x509gost.Template) { c.NotBefore, c.NotAfter = from, from.AddDate(1, 0, 0) })
	message := w.make(t, w.signer, "T", &sig.Job{Document: sigtest.Document(text)})
	verdict := func(living bool, at time.Time) sig.Conclusion {
		t.Helper()
		r, err := cades.New().Verify(context.Background(), &sig.Check{
			Document: sigtest.Document(message), At: at, Roots: []*x509gost.Certificate{root.Certificate}, LivingStamps: living,
		})
		if err != nil {
			t.Fatal(err)
		}
		return r.Conclusion()
	}
	for _, test := range []struct {
		living bool
		years  int
		want   sig.Conclusion
	}{
		{false, 0, sig.Conclusion{}}, {true, 0, sig.Conclusion{}},
		{false, 3, sig.Conclusion{}},
		{true, 3, sig.Conclusion{Verdict: sig.Indeterminate, Sub: sig.OutOfBoundsNoPOE}},
	} {
		if got := verdict(test.living, from.AddDate(test.years, 1, 0)); got != test.want {
			t.Errorf("living %v, after %d years: %+v, want %+v", test.living, test.years, got, test.want)
		}
	}
}

// The end of GOST R 34.10-2001 is a setting. A signature that is proved to have existed before it passes, one without a
// proof is indeterminate. A time stamp by the algorithm itself proves nothing after the end.
func TestEndOfAlgorithm(t *testing.T) {
	old, now := newWorld(t, suite.GOST2001), newWorld(t, suite.GOST2012x256)
	ends, err := suite.ParseEnds([]string{"GOST R 34.10-2001=" + sigtest.Time.AddDate(0, 1, 0).Format(time.DateOnly)})
	if err != nil {
		t.Fatal(err)
	}
	stamped := *old
	stamped.services = now.services
	conclusion := func(message []byte, at time.Time, ends suite.Ends) sig.Conclusion {
		t.Helper()
		r, err := cades.New().Verify(context.Background(), &sig.Check{
			Document: sigtest.Document(message), At: at, Roots: []*x509gost.Certificate{old.root.Certificate, now.root.Certificate}, Ends: ends,
		})
		if err != nil {
			t.Fatal(err)
		}
		return r.Conclusion()
	}
	before, after := sigtest.Time.AddDate(0, 0, 1), sigtest.Time.AddDate(0, 2, 0)
	without := sig.Conclusion{Verdict: sig.Indeterminate, Sub: sig.CryptoConstraintsFailureNoPOE}
	bare := old.make(t, old.signer, "BES", &sig.Job{Document: sigtest.Document(text)})
	proved := stamped.make(t, old.signer, "T", &sig.Job{Document: sigtest.Document(text)})
	byItself := old.make(t, old.signer, "T", &sig.Job{Document: sigtest.Document(text)})
	for name, test := range map[string]struct {
		message []byte
		at      time.Time
		ends    suite.Ends
		want    sig.Conclusion
	}{
		"no setting":           {bare, after, nil, sig.Conclusion{}},
		"before the end":       {bare, before, ends, sig.Conclusion{}},
		"after the end":        {bare, after, ends, without},
		"with a proof":         {proved, after, ends, sig.Conclusion{}},
		"with an ended proof":  {byItself, after, ends, without},
		"an ended proof early": {byItself, before, ends, sig.Conclusion{}},
	} {
		if got := conclusion(test.message, test.at, test.ends); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// GoodUntil is the moment after which the same check by the standard's rules does not pass any more.
func TestGoodUntil(t *testing.T) {
	from := sigtest.Time
	root, sub, services := sigtest.Era(t, suite.GOST2012x256, "First", from, from.AddDate(5, 0, 0))
	stampRoot, _, stamps := sigtest.Era(t, suite.GOST2012x256, "Second", from, from.AddDate(12, 0, 0))
	services.TSA, services.Obedient = stamps.TSA, true
	w := &world{root: root, sub: sub, services: services, signer: sub.Issue(t, suite.GOST2012x256, "Signer", func(c *x509gost.Template) { c.NotBefore, c.NotAfter = from, from.AddDate(1, 0, 0) })}
	ends, err := suite.ParseEnds([]string{"GOST R 34.10-2001=2020-01-01"})
	if err != nil {
		t.Fatal(err)
	}
	check := func(message []byte, at time.Time) (*sig.Check, *sig.Report) {
		t.Helper()
		c := &sig.Check{Document: sigtest.Document(message), At: at, Roots: []*x509gost.Certificate{root.Certificate, stampRoot.Certificate}, LivingStamps: true, Ends: ends}
		r, err := cades.New().Verify(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		return c, r
	}
	for _, test := range []struct {
		level string
		by    sig.Ending
		years int
		exact bool
	}{
		{"BES", sig.EndOfSigner, 1, true},
		{"T", sig.EndOfEvidence, 1, false}, // a later list may still clear the certificate
	} {
		message := w.make(t, w.signer, test.level, &sig.Job{Document: sigtest.Document(text)})
		h, ok := func() (sig.Horizon, bool) {
			c, r := check(message, from.AddDate(0, 1, 0))
			return r.Signatures[0].GoodUntil(c)
		}()
		if !ok || h.By != test.by || !h.Until.Equal(from.AddDate(test.years, 0, 0)) {
			t.Errorf("%s: %+v %v", test.level, h, ok)
		}
		if _, r := check(message, h.Until); !r.Passed() {
			t.Errorf("%s: at its end: %+v", test.level, r.Conclusion())
		}
		if _, r := check(message, h.Until.Add(2*time.Second)); test.exact && r.Passed() {
			t.Errorf("%s: passes after its end", test.level)
		}
	}
	// A signature that has not passed has no end.
	bare := w.make(t, w.signer, "BES", &sig.Job{Document: sigtest.Document(text)})
	c, r := check(bare, from.AddDate(2, 0, 0))
	if h, ok := r.Signatures[0].GoodUntil(c); ok {
		t.Errorf("indeterminate, but good until %+v", h)
	}
	// The other levels, with the services of one era: the time stamp decides.
	one := newWorld(t, suite.GOST2001)
	for _, level := range []string{"XLT1", "A"} {
		message := one.make(t, one.signer, level, &sig.Job{Document: sigtest.Document(text)})
		c := &sig.Check{Document: sigtest.Document(message), At: one.services.Now, Roots: []*x509gost.Certificate{one.root.Certificate}, LivingStamps: true}
		judge := func(at time.Time, ends suite.Ends) (sig.Horizon, bool) {
			c := *c
			c.At, c.Ends = at, ends
			r, err := cades.New().Verify(context.Background(), &c)
			if err != nil {
				t.Fatal(err)
			}
			return r.Signatures[0].GoodUntil(&c)
		}
		h, ok := judge(c.At, nil)
		if !ok || h.By != sig.EndOfStamp {
			t.Errorf("%s: %+v %v", level, h, ok)
		}
		if _, ok := judge(h.Until, nil); !ok {
			t.Errorf("%s: not good at its end %s", level, h.Until)
		}
		if _, ok := judge(h.Until.Add(2*time.Second), nil); ok {
			t.Errorf("%s: good after its end %s", level, h.Until)
		}
		ends, err := suite.ParseEnds([]string{"GOST R 34.10-2001=" + h.Until.AddDate(0, -1, 0).Format(time.DateOnly)})
		if err != nil {
			t.Fatal(err)
		}
		if early, ok := judge(c.At, ends); !ok || early.By != sig.EndOfAlgorithm || !early.Until.Before(h.Until) {
			t.Errorf("%s, by the algorithm: %+v %v", level, early, ok)
		} else if _, ok := judge(early.Until, ends); ok {
			t.Errorf("%s: good after the end of its algorithm", level)
		}
	}
}

// The end of a length of RSA keys counts for the key of a time-stamp service, too.
func TestEndOfStampKey(t *testing.T) {
	w, rsa := newWorld(t, suite.GOST2012x256), newWorld(t, suite.RSASHA256)
	w.services = rsa.services
	ends, err := suite.ParseEnds([]string{"RSA-2048=" + sigtest.Time.AddDate(0, 1, 0).Format(time.DateOnly)})
	if err != nil {
		t.Fatal(err)
	}
	message := w.make(t, w.brief(t, "Signer"), "T", &sig.Job{Document: sigtest.Document(text)})
	for name, test := range map[string]struct {
		months int
		ends   suite.Ends
		want   sig.Verdict
	}{
		"no setting": {2, nil, sig.Passed}, "before the end": {0, ends, sig.Passed}, "after the end": {2, ends, sig.Indeterminate},
	} {
		r, err := cades.New().Verify(context.Background(), &sig.Check{
			Document: sigtest.Document(message), At: sigtest.Time.AddDate(0, test.months, 1), Roots: []*x509gost.Certificate{w.root.Certificate, rsa.root.Certificate}, Ends: test.ends,
		})
		if err != nil || r.Verdict() != test.want {
			t.Errorf("%s: %v %v", name, r.Conclusion(), err)
		}
	}
}
