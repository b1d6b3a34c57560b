// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// raise enhances a document.
func raise(data []byte, format string, services *sigtest.Services, more ...string) ([]byte, error) {
	params := sig.Params{"PDFFormat": format, "TSPAddress": ""}
	for i := 0; i+1 < len(more); i += 2 {
		params[more[i]] = more[i+1]
	}
	result, err := New().Enhance(context.Background(), &sig.Job{Document: bytes.NewReader(data), Evidence: services, Params: params, Time: services.Now})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if n, err := result.WriteTo(&b); err != nil || n != result.Size() {
		return nil, errors.Join(err, fmt.Errorf("%d of %d bytes", n, result.Size()))
	}
	return b.Bytes(), nil
}

// mustRaise is raise for a document that may not be refused.
func mustRaise(t testing.TB, data []byte, format string, services *sigtest.Services, more ...string) []byte {
	t.Helper()
	out, err := raise(data, format, services, more...)
	if err != nil {
		t.Fatalf("raising to %s: %v", format, err)
	}
	if !bytes.HasPrefix(out, data) {
		t.Fatalf("raising to %s changed the document", format)
	}
	return out
}

// verifiedAt checks a document at a time.
func verifiedAt(t testing.TB, data []byte, at time.Time, roots ...*sigtest.Party) *sig.Report {
	t.Helper()
	c := &sig.Check{Document: bytes.NewReader(data), At: at}
	for _, r := range roots {
		c.Roots = append(c.Roots, r.Certificate)
	}
	r, err := New().Verify(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// levelsOf returns the levels of the signatures of a report.
func levelsOf(r *sig.Report) string {
	var list []string
	for _, s := range r.Signatures {
		list = append(list, s.Level)
	}
	return strings.Join(list, " ")
}

// TestArchiveLevel raises documents of every suite from every level and renews them. Our own verifier, with
// the evidence of the document alone, and programs of others confirm the result.
func TestArchiveLevel(t *testing.T) {
	for _, su := range suite.All() {
		t.Run(su.Name, func(t *testing.T) {
			root := sigtest.Root(t, su)
			signer := root.Signer(t, su, "Signer")
			for i, from := range []string{"CAdESA", "CMS", "CAdEST", "CAdES"} {
				if i > 1 && su != suite.GOST2012x256 {
					break
				}
				services := sigtest.NewServices(t, root)
				data := sigtest.Make(t, New(), signer, &sig.Job{Document: bytes.NewReader(document{}.build()), Evidence: services,
					Params: sig.Params{"PDFFormat": from, "TSPAddress": ""}})
				want := "LTA DocTimeStamp"
				if from != "CAdESA" {
					data = mustRaise(t, data, "CAdESA", services)
				}
				if from == "CMS" { // it had no time stamp
					want += " DocTimeStamp"
				}
				for renewal := range 3 {
					r := verifiedAt(t, data, services.Now, root)
					if got := levelsOf(r); got != want || !r.Passed() || len(r.Signatures[0].Headlines()) > 0 {
						t.Fatalf("from %s, renewal %d: %s: %s", from, renewal, got, say(r))
					}
					for _, s := range r.Signatures {
						if s.Own() != sig.Passed {
							t.Errorf("from %s: %s: %+v", from, s.Level, s.Findings)
						}
					}
					data = mustRaise(t, data, []string{"CAdESA", "3", "cadesa"}[renewal], services)
					want += " DocTimeStamp"
				}
			}
		})
	}
}

// TestRaisedInSteps raises a document by one level at a time, and does nothing where nothing is missing.
func TestRaisedInSteps(t *testing.T) {
	root := sigtest.Root(t, suite.RSASHA256)
	services := sigtest.NewServices(t, root)
	data := sigtest.Make(t, New(), root.Signer(t, suite.RSASHA256, "Signer"), &sig.Job{
		Document: bytes.NewReader(formDocument()), Params: sig.Params{"PDFFormat": "CMS"}})
	for _, step := range []struct{ format, want string }{
		{"CAdEST", "T DocTimeStamp"}, {"CAdES", "LT DocTimeStamp"}, {"CAdESA", "LTA DocTimeStamp DocTimeStamp"},
	} {
		data = mustRaise(t, data, step.format, services)
		r := verifiedAt(t, data, services.Now, root)
		if got := levelsOf(r); got != step.want || !r.Passed() {
			t.Fatalf("%s: %s: %s", step.format, got, say(r))
		}
		if step.format == "CAdESA" {
			break
		}
		services.Now = services.Now.Add(time.Hour)
		if again := mustRaise(t, data, step.format, services); len(again) != len(data) {
			t.Errorf("%s: %d bytes were added to a document that has the level", step.format, len(again)-len(data))
		}
	}
	if again := mustRaise(t, data, "CAdES", services); len(again)-len(data) < 1000 {
		t.Error("there is no evidence about the archive time stamp")
	}
}

// TestArchiveJudged checks raised documents of every kind with qpdf, MuPDF and Poppler: they are readable,
// and all their signatures are valid.
func TestArchiveJudged(t *testing.T) {
	tools := judge.PDF(t)
	root := sigtest.Root(t, suite.RSASHA256)
	tools.Trust(root.PEM())
	signer := root.Signer(t, suite.RSASHA256, "Signer")
	for name, s := range kinds(t, tools) {
		t.Run(name, func(t *testing.T) {
			services := sigtest.NewServices(t, root)
			data := sigtest.Make(t, New(), signer, &sig.Job{Document: bytes.NewReader(s.data), Evidence: services,
				Params: sig.Params{"PDFFormat": "CAdEST", "TSPAddress": "", "PDFPassword": s.password}})
			data = mustRaise(t, data, "CAdESA", services, "PDFPassword", s.password)
			data = mustRaise(t, data, "CAdESA", services, "PDFPassword", s.password)
			if err := tools.CheckQPDF(data, s.password); err != nil {
				t.Error(err)
			}
			if err := tools.CheckMuPDF(data, s.password); err != nil && !s.notMuPDF {
				t.Error(err)
			}
			list, err := tools.Signatures(data, s.password)
			if err != nil {
				t.Fatal(err)
			}
			if len(list) != 3 && !s.notPoppler {
				t.Errorf("pdfsig sees %d signatures: %+v", len(list), list)
			}
			for i, one := range list {
				// It does not check time stamps of documents and says so.
				// It decrypts the Contents of those, which are not encrypted (ISO 32000-2, 7.6.2).
				encrypted := strings.Contains(name, "AES") || strings.Contains(name, "RC4")
				stamped := i > 0 && (one.Name == "Time Stamper" || encrypted) && strings.Contains(one.Text, "has not yet been verified")
				if !one.Valid && !stamped && !s.notPoppler || one.Whole != (i == 2) {
					t.Errorf("pdfsig says %+v", one)
				}
			}
			r, err := New().Verify(context.Background(), &sig.Check{Document: bytes.NewReader(data), Roots: []*x509gost.Certificate{root.Certificate}, At: services.Now, Password: []byte(s.password)})
			if err != nil || !r.Passed() || levelsOf(r) != "LTA DocTimeStamp DocTimeStamp" {
				t.Errorf("%v %s: %s", err, levelsOf(r), say(r))
			}
		})
	}
}

// TestArchiveTokens gives each token, taken out of the document, to OpenSSL with gost-engine.
func TestArchiveTokens(t *testing.T) {
	openssl := judge.OpenSSL(t)
	for _, su := range []*suite.Suite{suite.GOST2012x256, suite.GOST2012x512, suite.RSASHA256} {
		root := sigtest.Root(t, su)
		services := sigtest.NewServices(t, root)
		data := sigtest.Make(t, New(), root.Signer(t, su, "Signer"), &sig.Job{Document: bytes.NewReader(document{}.build()), Params: sig.Params{"PDFFormat": "CMS"}})
		data = mustRaise(t, data, "CAdESA", services)
		f := opened(t, data)
		for i, one := range f.form().signatures[1:] {
			s := f.signature(one)
			openssl.Write("content", append(bytes.Clone(data[:s.from]), data[s.to:s.end]...))
			openssl.Write("token", s.message)
			openssl.Write("root.pem", root.PEM())
			args := []string{"ts", "-verify", "-in", "token", "-token_in", "-data", "content", "-CAfile", "root.pem"}
			if out, err := openssl.Run(args...); err != nil {
				t.Errorf("%s, time stamp %d: %v %s", su.Name, i, err, out)
			}
			openssl.Write("content", append(bytes.Clone(data[:s.from]), data[s.to:s.end-1]...))
			if _, err := openssl.Run(args...); err == nil {
				t.Errorf("%s: OpenSSL accepts another document", su.Name)
			}
		}
	}
}

// A signature passes after thirty years of renewals, in which all services and authorities end, and not
// with one renewal missing.
func TestThirtyYears(t *testing.T) {
	su := suite.GOST2012x256
	type era struct {
		root, sub *sigtest.Party
		services  *sigtest.Services
	}
	var eras []era
	var roots []*sigtest.Party
	for n := range 4 {
		from := sigtest.Time.AddDate(9*n, 0, 0)
		root, sub, services := sigtest.Era(t, su, string(rune('A'+n)), from, from.AddDate(11, 0, 0))
		eras, roots = append(eras, era{root, sub, services}), append(roots, root)
	}
	signer := eras[0].sub.Issue(t, su, "Signer", func(c *x509gost.Template) { c.NotBefore, c.NotAfter = sigtest.Time, sigtest.Time.AddDate(1, 0, 0) })
	start := sigtest.Make(t, New(), signer, &sig.Job{Document: bytes.NewReader(document{}.build()), Evidence: eras[0].services, Params: sig.Params{"PDFFormat": "CAdESA", "TSPAddress": ""}})
	// renew adds the stamp of an era. The services of the era of the last stamp tell about it.
	renew := func(data []byte, last, next int) ([]byte, error) {
		by := eras[last].services
		now, tsa := by.Now, by.TSA
		defer func() { by.Now, by.TSA = now, tsa }()
		by.Now, by.TSA = eras[next].services.Now.Add(time.Hour), eras[next].services.TSA
		return raise(data, "CAdESA", by)
	}
	lapsed := func(r *sig.Report) bool {
		return slices.ContainsFunc(r.Signatures[0].Findings, func(f sig.Finding) bool { return f.Code == codeLapsed })
	}
	end := sigtest.Time.AddDate(30, 0, 0)
	data := start
	for n := 1; n < 4; n++ {
		if r := verifiedAt(t, data, sigtest.Time.AddDate(9*n+3, 0, 0), roots...); r.Passed() || !lapsed(r) || r.Signatures[0].Level == "LTA" {
			t.Errorf("not renewed in era %d: %s", n, say(r))
		}
		var err error
		if data, err = renew(data, n-1, n); err != nil {
			t.Fatalf("renewal %d: %v", n, err)
		}
	}
	if r := verifiedAt(t, data, end, roots...); !r.Passed() || levelsOf(r) != "LTA DocTimeStamp DocTimeStamp DocTimeStamp DocTimeStamp" || !r.Signatures[0].BestTime.Equal(sigtest.Time) {
		t.Errorf("%s: %s", levelsOf(r), say(r))
	}
	for n, root := range roots { // each authority is needed
		if r := verifiedAt(t, data, end, slices.Delete(slices.Clone(roots), n, n+1)...); r.Passed() {
			t.Errorf("valid without %s", root.Certificate.Subject)
		}
	}
	for skip := 1; skip < 3; skip++ {
		data, last := start, 0
		for n := 1; n < 4; n++ {
			switch {
			case n == skip:
				if _, err := renew(data, last, n+1); err == nil {
					t.Errorf("renewal %d left out: renewed by the next era", skip)
				}
				continue
			case last == n-1:
				var err error
				if data, err = renew(data, last, n); err != nil {
					t.Fatal(err)
				}
			default: // by a program that does not ask whether it is of use
				eras[n].services.Now = eras[n].services.Now.Add(time.Hour)
				data = stampedByHand(t, data, eras[n].services, suite.Streebog256)
			}
			last = n
		}
		if r := verifiedAt(t, data, end, roots...); r.Passed() || !lapsed(r) || r.Signatures[0].Level == "LTA" {
			t.Errorf("renewal %d left out: %s: %s", skip, levelsOf(r), say(r))
		}
	}
}

// A broken, copied, untrusted or early archive time stamp does no harm to a signature whose certificate is
// still valid. The signature is not called LTA, and a finding names the stamp.
func TestBrokenDocumentStamps(t *testing.T) {
	su := suite.RSASHA256
	root := sigtest.Root(t, su)
	services := sigtest.NewServices(t, root)
	long := sigtest.Make(t, New(), root.Signer(t, su, "Signer"), &sig.Job{Document: bytes.NewReader(document{}.build()), Evidence: services,
		Params: sig.Params{"PDFFormat": "CAdES", "TSPAddress": ""}})
	other := sigtest.Root(t, suite.ECDSAP256)
	unknown := sigtest.NewServices(t, other)
	early := sigtest.NewServices(t, root)
	early.Now = services.Now.Add(-time.Hour)
	later := mustRaise(t, long, "CAdESA", services)
	future := sigtest.NewServices(t, other)
	future.Now = services.Now.AddDate(1, 0, 0)
	flipped := func(data []byte) []byte {
		out := bytes.Clone(data)
		f := opened(t, out)
		s := f.signature(f.form().signatures[len(f.form().signatures)-1])
		at := s.from + int64(2*len(s.message)) - 4
		if out[at]++; out[at] == '9'+1 || out[at] > 'f' {
			out[at] = '0'
		}
		return out
	}
	weak := stampedByHand(t, long, services, suite.SHA1)
	copied := stampedByHandWith(t, long, services, suite.SHA256, func([]byte) []byte {
		f := opened(t, later)
		return f.signature(f.form().signatures[1]).message
	})
	for name, c := range map[string]struct {
		data  []byte
		level string // of the signature
		code  string // of a finding of the signature, empty for none
	}{
		"as made":                               {later, "LTA", ""},
		"forged":                                {flipped(later), "XLT1", codeTimeStamp},
		"of another document":                   {copied, "XLT1", codeTimeStamp},
		"not a token":                           {stampedByHandWith(t, long, services, suite.SHA256, func([]byte) []byte { return []byte{0x30, 0} }), "XLT1", codeTimeStamp},
		"of another authority":                  {stampedByHand(t, long, unknown, suite.SHA256), "XLT1", codeUntrusted},
		"with a weak imprint":                   {weak, "XLT1", codeUntrusted},
		"earlier than another":                  {stampedByHand(t, later, early, suite.SHA256), "LTA", codeTimeStamp},
		"over a later one without trust":        {stampedByHand(t, stampedByHand(t, long, future, suite.SHA256), services, suite.SHA256), "LTA", ""},
		"earlier than the one of the signature": {stampedByHand(t, long, early, suite.SHA256), "LT", codeStampOrder},
		"broken over a good one":                {flipped(mustRaise(t, later, "CAdESA", services)), "LTA", codeTimeStamp},
	} {
		r := verifiedAt(t, c.data, services.Now, root)
		s := &r.Signatures[0]
		if !r.Passed() || s.Level != c.level {
			t.Errorf("%s: %s: %s", name, levelsOf(r), say(r))
		}
		if c.code != "" && !slices.ContainsFunc(s.Findings, func(f sig.Finding) bool { return f.Code == c.code }) {
			t.Errorf("%s: no finding %s: %+v", name, c.code, s.Findings)
		}
		if c.code == codeTimeStamp && !slices.Contains(r.Headlines(), "an invalid time stamp was left out") {
			t.Errorf("%s: headlines %q", name, r.Headlines())
		}
	}
	if _, err := raise(flipped(later), "CAdESA", services); err == nil || !strings.Contains(err.Error(), "is not valid") {
		t.Errorf("a broken archive time stamp is renewed: %v", err)
	}
}

// Certified documents may be stamped, even if the certification forbids all changes (ISO 32000-2, 12.8.2.2.2).
func TestCertifiedStamped(t *testing.T) {
	tools := judge.PDF(t)
	root := sigtest.Root(t, suite.RSASHA256)
	tools.Trust(root.PEM())
	services := sigtest.NewServices(t, root)
	data := sigtest.Make(t, New(), root.Signer(t, suite.RSASHA256, "Author"), &sig.Job{Document: bytes.NewReader(formDocument()), Evidence: services,
		Params: sig.Params{"PDFFormat": "CMS", "PDFCertificationLevel": "CERTIFIED_NO_CHANGES_ALLOWED"}})
	data = mustRaise(t, data, "CAdESA", services)
	if r := verifiedAt(t, data, services.Now, root); !r.Passed() || r.Signatures[0].Level != "LTA" {
		t.Errorf("%s: %s", levelsOf(r), say(r))
	}
	list, err := tools.Signatures(data, "")
	if err != nil || len(list) != 3 || !list[0].Valid {
		t.Errorf("%v %+v", err, list)
	}
}

// Several signatures in one document are raised together.
func TestSeveralRaised(t *testing.T) {
	root := sigtest.Root(t, suite.GOST2012x256)
	services := sigtest.NewServices(t, root)
	data := document{}.build()
	for i, format := range []string{"CMS", "CAdEST", "CAdES", "CMS"} {
		data = sigtest.Make(t, New(), root.Signer(t, suite.GOST2012x256, fmt.Sprintf("Signer %d", i)), &sig.Job{
			Document: bytes.NewReader(data), Evidence: services, Params: sig.Params{"PDFFormat": format, "TSPAddress": ""}})
	}
	before := services.Calls("revocation")
	data = mustRaise(t, data, "CAdESA", services)
	r := verifiedAt(t, data, services.Now, root)
	if got := levelsOf(r); got != "LTA LTA LTA LTA DocTimeStamp DocTimeStamp" || !r.Passed() {
		t.Errorf("%s: %s", got, say(r))
	}
	if asked := services.Calls("revocation") - before; asked > 8 {
		t.Errorf("%d requests for revocation data", asked)
	}
	f := opened(t, data)
	seen := map[string]bool{}
	for der := range f.streamsOfStore() {
		seen[der] = true
	}
	dss := f.resolveDict(f.resolveCatalog("DSS"))
	if n := len(f.resolveArray(dss.get("Certs"))) + len(f.resolveArray(dss.get("CRLs"))) + len(f.resolveArray(dss.get("OCSPs"))); n != len(seen) {
		t.Errorf("the store has %d elements, %d of them different", n, len(seen))
	}
	// A signature that is added later needs the archive time stamp of its own.
	data = sigtest.Make(t, New(), root.Signer(t, suite.GOST2012x256, "Late"), &sig.Job{Document: bytes.NewReader(data), Params: sig.Params{"PDFFormat": "CMS"}})
	if r := verifiedAt(t, data, services.Now, root); levelsOf(r) != "LTA LTA LTA LTA DocTimeStamp DocTimeStamp BES" || !r.Passed() {
		t.Errorf("%s: %s", levelsOf(r), say(r))
	}
	data = mustRaise(t, data, "CAdESA", services)
	if r := verifiedAt(t, data, services.Now, root); strings.Count(levelsOf(r), "LTA") != 5 || !r.Passed() {
		t.Errorf("%s: %s", levelsOf(r), say(r))
	}
}

// What cannot be raised is refused with the reason.
func TestRaiseRefused(t *testing.T) {
	root := sigtest.Root(t, suite.GOST2012x256)
	services := sigtest.NewServices(t, root)
	signer := root.Signer(t, suite.GOST2012x256, "Signer")
	signed := sigtest.Make(t, New(), signer, &sig.Job{Document: bytes.NewReader(formDocument()), Params: sig.Params{"PDFFormat": "CMS"}})
	changed := bytes.Clone(signed)
	changed[50] ^= 1
	short := root.Issue(t, suite.GOST2012x256, "Short", func(c *x509gost.Template) { c.NotAfter = sigtest.Time.AddDate(0, 0, 1) })
	ended := sigtest.Make(t, New(), short, &sig.Job{Document: bytes.NewReader(formDocument()), Params: sig.Params{"PDFFormat": "CMS"}})
	future := sigtest.NewServices(t, root)
	future.Now = sigtest.Time.AddDate(1, 0, 0)
	broken := bytes.Replace(signed, []byte("startxref\n"), []byte("startxref\n9"), -1)
	for name, c := range map[string]struct {
		data     []byte
		format   string
		services *sigtest.Services
		more     []string
		text     string
	}{
		"no level":                {signed, "CMS", services, nil, "never lowers"},
		"an index":                {signed, "CAdESA", services, []string{"SignatureIndex", "0"}, "covers all"},
		"not signed":              {formDocument(), "CAdESA", services, nil, "no signature to enhance"},
		"changed":                 {changed, "CAdESA", services, nil, "is not valid"},
		"not a PDF":               {[]byte("text"), "CAdESA", services, nil, "a PDF document expected"},
		"certificate has ended":   {ended, "CAdESA", future, nil, "before the first time stamp"},
		"broken cross-references": {broken, "CAdESA", services, nil, "is broken"},
	} {
		if _, err := raise(c.data, c.format, c.services, c.more...); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// With anchors, time stamps of services without trust neither replace a missing one nor cover another.
func TestRaisedOverUntrusted(t *testing.T) {
	su := suite.RSASHA256
	root := sigtest.Root(t, su)
	services := sigtest.NewServices(t, root)
	unknown := sigtest.NewServices(t, sigtest.Root(t, suite.ECDSAP256), root)
	signer := root.Signer(t, su, "Signer")
	made := func(format string, by *sigtest.Services) []byte {
		return sigtest.Make(t, New(), signer, &sig.Job{Document: bytes.NewReader(document{}.build()), Evidence: by, Params: sig.Params{"PDFFormat": format, "TSPAddress": ""}})
	}
	for name, data := range map[string][]byte{
		"in the message":  made("CAdEST", unknown),
		"of the document": stampedByHand(t, made("CMS", unknown), unknown, suite.SHA256),
		"over a store":    stampedByHand(t, made("CAdES", services), unknown, suite.SHA256),
	} {
		for _, by := range []*sigtest.Services{services, unknown} {
			result, err := New().Enhance(context.Background(), &sig.Job{Document: bytes.NewReader(data), Evidence: by, Time: services.Now,
				Params: sig.Params{"PDFFormat": "CAdESA", "TSPAddress": ""}, Roots: []*x509gost.Certificate{root.Certificate}})
			if by == unknown {
				if name != "over a store" && (err == nil || !strings.Contains(err.Error(), "trusted root")) {
					t.Errorf("%s: raised by a service without trust: %v", name, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(name, err)
			}
			var b bytes.Buffer
			if _, err := result.WriteTo(&b); err != nil {
				t.Fatal(err)
			}
			if r := verifiedAt(t, b.Bytes(), services.Now, root); !r.Passed() || r.Signatures[0].Level != "LTA" {
				t.Errorf("%s: %s: %s", name, levelsOf(r), say(r))
			}
		}
	}
}

// A result that does not have the level for a reader with the same anchors is not returned.
func TestLevelNotReached(t *testing.T) {
	root, other := sigtest.Root(t, suite.ECDSAP256), sigtest.Root(t, suite.RSASHA256)
	services := sigtest.NewServices(t, other, root)
	signed := sigtest.Make(t, New(), root.Signer(t, suite.ECDSAP256, "Signer"), &sig.Job{Document: bytes.NewReader(document{}.build()), Params: sig.Params{"PDFFormat": "CMS"}})
	for _, anchors := range [][]*x509gost.Certificate{{root.Certificate, other.Certificate}, {other.Certificate}} {
		_, err := New().Enhance(t.Context(), &sig.Job{Document: bytes.NewReader(signed), Evidence: services, Time: services.Now,
			Params: sig.Params{"PDFFormat": "CAdESA", "TSPAddress": ""}, Roots: anchors})
		if (len(anchors) == 2) != (err == nil) || err != nil && !strings.Contains(err.Error(), "signature 0 has the level T only") {
			t.Errorf("with %d anchors: %v", len(anchors), err)
		}
	}
}
