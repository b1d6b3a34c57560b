// SPDX-License-Identifier: Apache-2.0

package xmldsig_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/xmldsig"
)

// raiseXML enhances a document.
func raiseXML(data []byte, level string, services *sigtest.Services, more ...string) ([]byte, error) {
	params := sig.Params{"XAdESType": level, "TSPAddress": ""}
	for i := 0; i+1 < len(more); i += 2 {
		params[more[i]] = more[i+1]
	}
	result, err := xmldsig.New().Enhance(context.Background(), &sig.Job{Document: bytes.NewReader(data), Evidence: services, Params: params, Time: services.Now})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	_, err = result.WriteTo(&b)
	return b.Bytes(), err
}

func mustRaiseXML(t testing.TB, data []byte, level string, services *sigtest.Services, more ...string) []byte {
	t.Helper()
	out, err := raiseXML(data, level, services, more...)
	if err != nil {
		t.Fatalf("raising to %s: %v", level, err)
	}
	return out
}

// checkedXML checks a document at a time.
func checkedXML(t testing.TB, data []byte, at time.Time, roots ...*sigtest.Party) *sig.Report {
	t.Helper()
	c := &sig.Check{Document: bytes.NewReader(data), At: at}
	for _, r := range roots {
		c.Roots = append(c.Roots, r.Certificate)
	}
	r, err := xmldsig.New().Verify(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func makeXML(t testing.TB, kind, level string, signer *sigtest.Party, services *sigtest.Services) []byte {
	t.Helper()
	j := jobOf(kind, signer.Suite, "XAdESType", level, "TSPAddress", "", "IncludeCertChain", "true")
	j.Evidence = services
	return sigtest.Make(t, xmldsig.New(), signer, j)
}

// TestArchiveLevel makes and raises signatures of every suite and renews them. Our own verifier confirms the
// level with the evidence of the document alone.
func TestArchiveLevel(t *testing.T) {
	for _, s := range suite.All() {
		root := sigtest.Root(t, s)
		authority := root.Authority(t, "Authority")
		signer := authority.Signer(t, s, "Signer")
		for _, kind := range []string{"XMLEnveloped", "XMLEnveloping", "XMLTemplate"} {
			for _, from := range []string{"LTA", "BES", "T", "LT"} {
				services := sigtest.NewServices(t, root, authority)
				data := makeXML(t, kind, from, signer, services)
				if from == "LT" {
					if r := checkedXML(t, data, services.Now, root); r.Signatures[0].Level != "LT" || !r.Passed() {
						t.Fatalf("%s: %s %+v", s.Name, r.Signatures[0].Level, r.Signatures[0].Findings)
					}
				}
				if from != "LTA" {
					data = mustRaiseXML(t, data, "LTA", services)
				}
				for renewal := range 3 {
					r := checkedXML(t, data, services.Now, root)
					one := &r.Signatures[0]
					if one.Level != "LTA" || !r.Passed() || len(one.TimeStamps) != 2+renewal {
						t.Fatalf("%s %s from %s, renewal %d: %s, %d time stamps: %+v", s.Name, kind, from, renewal, one.Level, len(one.TimeStamps), one.Findings)
					}
					for _, ts := range one.TimeStamps {
						if !ts.Passed() {
							t.Errorf("%s %s: %s: %+v", s.Name, kind, ts.Kind, ts.Findings)
						}
					}
					services.Now = services.Now.Add(time.Hour)
					data = mustRaiseXML(t, data, []string{"LTA", "4", "lta"}[renewal], services)
				}
				if s != suite.GOST2012x256 {
					break
				}
			}
		}
	}
}

// TestRaisedXMLInSteps raises a signature by one level at a time, and does nothing where nothing is missing.
func TestRaisedXMLInSteps(t *testing.T) {
	s := suite.RSASHA256
	root := sigtest.Root(t, s)
	services := sigtest.NewServices(t, root)
	data := makeXML(t, "XMLEnveloped", "BES", root.Signer(t, s, "Signer"), services)
	for _, level := range []string{"T", "LT", "LTA"} {
		data = mustRaiseXML(t, data, level, services)
		if r := checkedXML(t, data, services.Now, root); r.Signatures[0].Level != level || !r.Passed() {
			t.Fatalf("%s: %s %+v", level, r.Signatures[0].Level, r.Signatures[0].Findings)
		}
		services.Now = services.Now.Add(time.Hour)
		if again := mustRaiseXML(t, data, level, services); (len(again) == len(data)) != (level != "LTA") {
			t.Errorf("%s: %d bytes were added", level, len(again)-len(data))
		}
	}
	if again := mustRaiseXML(t, data, "T", services); !bytes.Equal(again, data) {
		t.Error("a higher level was changed")
	}
}

var encapsulated = regexp.MustCompile(`(?s)<xades:EncapsulatedTimeStamp>([^<]*)</xades:EncapsulatedTimeStamp>`)

// tokensOf returns the time stamps of a document.
func tokensOf(t testing.TB, data []byte) (list [][]byte) {
	t.Helper()
	for _, m := range encapsulated.FindAllSubmatch(data, -1) {
		der, err := base64.StdEncoding.DecodeString(string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, der)
	}
	return list
}

// A reader in Python, written from the standard, computes the imprint of every time stamp, and OpenSSL verifies
// each token by itself for that imprint.
func TestJuryOfArchives(t *testing.T) {
	openssl := judge.OpenSSL(t)
	script, err := filepath.Abs("testdata/archive.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range suite.All() {
		root := sigtest.Root(t, s)
		signer := root.Signer(t, s, "Signer")
		for _, kind := range []string{"XMLEnveloped", "XMLEnveloping"} {
			t.Run(s.Name+"/"+kind, func(t *testing.T) {
				services := sigtest.NewServices(t, root)
				data := mustRaiseXML(t, makeXML(t, kind, "LTA", signer, services), "LTA", services)
				openssl.Write("roots.pem", slices.Concat(root.PEM(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: services.TSA.Chain[0].Raw})))
				read := func(data []byte) ([]string, error) {
					out, err := openssl.RunOther("python3", script, openssl.Write("signed.xml", data))
					return strings.Fields(out), err
				}
				inputs, err := read(data)
				if err != nil || len(inputs) != 3 {
					t.Fatalf("%v: %v", inputs, err)
				}
				for n, token := range tokensOf(t, data) {
					openssl.Write("token", token)
					args := []string{"ts", "-verify", "-token_in", "-in", "token", "-CAfile", "roots.pem", "-attime", fmt.Sprint(services.Now.Unix()), "-data"}
					if out, err := openssl.Run(append(args, inputs[n])...); err != nil || !strings.Contains(out, "Verification: OK") {
						t.Errorf("OpenSSL: stamp %d: %q %v", n, out, err)
					}
					if _, err := openssl.Run(append(args, inputs[(n+1)%3])...); err == nil {
						t.Errorf("OpenSSL: stamp %d is accepted for another imprint", n)
					}
				}
			})
		}
	}
}

// The programs that check the signature itself accept a document with all its new properties.
func TestArchiveJudged(t *testing.T) {
	tools := judge.XMLSec(t)
	s := suite.RSASHA256
	root := sigtest.Root(t, s)
	services := sigtest.NewServices(t, root)
	for _, kind := range []string{"XMLEnveloped", "XMLEnveloping"} {
		data := mustRaiseXML(t, makeXML(t, kind, "LTA", root.Signer(t, s, "Signer"), services), "LTA", services)
		if err := tools.Verify(data, root.PEM(), sigtest.Time); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// A signature passes after thirty years of renewals, and not with one renewal missing.
func TestThirtyYears(t *testing.T) {
	su := suite.GOST2012x256
	var services []*sigtest.Services
	var roots []*sigtest.Party
	var first *sigtest.Party
	for n := range 4 {
		from := sigtest.Time.AddDate(9*n, 0, 0)
		root, sub, s := sigtest.Era(t, su, string(rune('A'+n)), from, from.AddDate(11, 0, 0))
		services, roots = append(services, s), append(roots, root)
		if n == 0 {
			first = sub
		}
	}
	signer := first.Issue(t, su, "Signer", func(c *x509gost.Template) { c.NotBefore, c.NotAfter = sigtest.Time, sigtest.Time.AddDate(1, 0, 0) })
	start := makeXML(t, "XMLEnveloped", "LTA", signer, services[0])
	renew := func(data []byte, last, next int) ([]byte, error) {
		by := services[last]
		now, tsa := by.Now, by.TSA
		defer func() { by.Now, by.TSA = now, tsa }()
		by.Now, by.TSA = services[next].Now.Add(time.Hour), services[next].TSA
		return raiseXML(data, "LTA", by)
	}
	end := sigtest.Time.AddDate(30, 0, 0)
	data := start
	for n := 1; n < 4; n++ {
		r := checkedXML(t, data, sigtest.Time.AddDate(9*n+3, 0, 0), roots...)
		if r.Passed() || !hasCode(r.Signatures[0].Findings, "archive-time-stamp-lapsed") {
			t.Errorf("not renewed in era %d: %+v", n, r.Signatures[0].Findings)
		}
		var err error
		if data, err = renew(data, n-1, n); err != nil {
			t.Fatalf("renewal %d: %v", n, err)
		}
	}
	if r := checkedXML(t, data, end, roots...); !r.Passed() || r.Signatures[0].Level != "LTA" || !r.Signatures[0].BestTime.Equal(sigtest.Time) {
		t.Errorf("%s %+v", r.Signatures[0].Level, r.Signatures[0].Findings)
	}
	for n := range roots { // each authority is needed
		if r := checkedXML(t, data, end, slices.Delete(slices.Clone(roots), n, n+1)...); r.Passed() {
			t.Errorf("valid without the root of era %d", n)
		}
	}
	if _, err := renew(start, 0, 2); err == nil {
		t.Error("a renewal was left out, and the next one is made")
	}
}

// A broken, copied, moved or untrusted archive time stamp does no harm to a signature whose certificate is still
// valid. The signature is not called LTA, and a finding names the stamp.
func TestBrokenArchives(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	services := sigtest.NewServices(t, root)
	signer := root.Signer(t, s, "Signer")
	long := makeXML(t, "XMLEnveloped", "LT", signer, services)
	data := mustRaiseXML(t, long, "LTA", services)
	another := mustRaiseXML(t, makeXML(t, "XMLEnveloped", "LT", root.Signer(t, s, "Second"), services), "LTA", services)
	unknown := sigtest.NewServices(t, sigtest.Root(t, suite.ECDSAP256))
	archive := regexp.MustCompile(`(?s)<later:ArchiveTimeStamp.*?</later:ArchiveTimeStamp>`)
	stamp, foreign := archive.Find(data), archive.Find(another)
	tokens := tokensOf(t, data)
	broken := bytes.Clone(tokens[len(tokens)-1])
	broken[len(broken)-5] ^= 1
	replace := func(old, with []byte) []byte {
		out := bytes.Replace(data, old, with, 1)
		if bytes.Equal(out, data) {
			t.Fatal("nothing was changed")
		}
		return out
	}
	b64 := func(b []byte) []byte { return []byte(base64.StdEncoding.EncodeToString(b)) }
	values := regexp.MustCompile(`(?s)<xades:RevocationValues.*?</xades:RevocationValues>`).Find(data)
	// A service of another root, whose evidence cannot be had: the stamp alone is replaced.
	token, err := tsp.ParseToken(tokens[len(tokens)-1])
	if err != nil {
		t.Fatal(err)
	}
	other, err := unknown.TimeStamp(context.Background(), "", token.Info.Digest)
	if err != nil {
		t.Fatal(err)
	}
	renewed := mustRaiseXML(t, data, "LTA", services)
	all := archive.FindAll(renewed, -1)
	swapped := bytes.Replace(bytes.Replace(bytes.Replace(renewed, all[0], []byte("<FIRST/>"), 1), all[1], all[0], 1), []byte("<FIRST/>"), all[1], 1)
	for name, c := range map[string]struct {
		data   []byte
		level  string
		passed bool
		code   string
	}{
		"as made":              {data, "LTA", true, ""},
		"broken":               {replace(b64(tokens[len(tokens)-1]), b64(broken)), "LT", true, "time-stamp"},
		"of another document":  {replace(stamp, foreign), "LT", true, "time-stamp"},
		"of another authority": {replace(b64(tokens[len(tokens)-1]), b64(other.Token().Raw)), "LT", true, "time-stamp"},
		"twice":                {replace(stamp, slices.Concat(stamp, stamp)), "LTA", true, "time-stamp"},
		"not a token":          {replace(b64(tokens[len(tokens)-1]), []byte("MAA=")), "LT", true, "time-stamp"},
		"in the wrong order":   {swapped, "LT", true, "time-stamp"},
		"evidence is removed":  {replace(values, nil), "T", true, "time-stamp"},
		"evidence behind it":   {replace(slices.Concat(stamp), nil), "LT", true, ""},
	} {
		r := checkedXML(t, c.data, services.Now, root)
		one := &r.Signatures[0]
		if r.Passed() != c.passed || one.Level != c.level || c.code != "" && !hasCode(one.Findings, c.code) {
			t.Errorf("%s: %v %s %+v", name, r.Verdict(), one.Level, one.Findings)
		}
	}
	if _, err := raiseXML(replace(b64(tokens[len(tokens)-1]), b64(broken)), "LTA", services); err == nil || !strings.Contains(err.Error(), "archive time stamp that is invalid") {
		t.Errorf("a broken archive time stamp is renewed: %v", err)
	}
	if _, err := raiseXML(bytes.Replace(data, []byte("<ds:SignatureValue>"), []byte("<ds:SignatureValue>AAAA"), 1), "LTA", services); err == nil {
		t.Error("a changed signature is raised")
	}
}

// FuzzEnhance raises any input to the level with an archive time stamp. What is not refused has a valid one.
func FuzzEnhance(f *testing.F) {
	root := sigtest.Root(f, suite.ECDSAP256)
	services := sigtest.NewServices(f, root)
	signer := root.Signer(f, suite.ECDSAP256, "Signer")
	for _, level := range []string{"BES", "T", "LT", "LTA"} {
		f.Add(makeXML(f, "XMLEnveloped", level, signer, services))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		raised, err := raiseXML(data, "LTA", services)
		var document *sig.ErrDocument
		var params *sig.ErrParams
		var evidence *sig.ErrEvidence // of an unknown authority
		if errors.As(err, &document) || errors.As(err, &params) || errors.As(err, &evidence) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range checkedXML(t, raised, services.Now, root).Signatures {
			if n := len(s.TimeStamps); n == 0 || !s.TimeStamps[n-1].Holds() {
				t.Fatalf("%+v", s)
			}
		}
	})
}

// With anchors, time stamps of services without trust neither replace a missing one nor cover another,
// and their time, which may be any, says nothing about others.
func TestRaisedOverUntrusted(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	services := sigtest.NewServices(t, root)
	unknown := sigtest.NewServices(t, sigtest.Root(t, suite.ECDSAP256), root)
	unknown.Now = services.Now.AddDate(1, 0, 0)
	signer := root.Signer(t, s, "Signer")
	for _, from := range []string{"T", "LT"} {
		data := makeXML(t, "XMLEnveloped", from, signer, unknown)
		for _, by := range []*sigtest.Services{services, unknown} {
			result, err := xmldsig.New().Enhance(context.Background(), &sig.Job{Document: bytes.NewReader(data), Evidence: by, Time: services.Now,
				Params: sig.Params{"XAdESType": "LTA", "TSPAddress": ""}, Roots: []*x509gost.Certificate{root.Certificate}})
			if by == unknown {
				if err == nil || !strings.Contains(err.Error(), "trusted root") {
					t.Errorf("raised from %s by a service without trust: %v", from, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if _, err := result.WriteTo(&b); err != nil {
				t.Fatal(err)
			}
			if r := checkedXML(t, b.Bytes(), services.Now, root); !r.Passed() || r.Signatures[0].Level != "LTA" || !r.Signatures[0].BestTime.Before(services.Now) {
				t.Errorf("from %s: %s %+v", from, r.Signatures[0].Level, r.Signatures[0].Findings)
			}
		}
	}
}

// A signature whose hash has become weak is raised and renewed: for that it was archived.
func TestRaisedWeak(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	services := sigtest.NewServices(t, root)
	// No program of ours makes it: SignedInfo is in canonical form, and is signed again with another digest.
	signer := root.Signer(t, s, "Signer")
	const element = `<d Id="d">1</d>`
	long := regexp.MustCompile(`<(\w+)( [^<>]*)/>`)
	template := long.ReplaceAllString(strings.Replace(bare(s, "#d", ""), "http://www.w3.org/TR/2001/REC-xml-c14n-20010315", excC14N, 1), "<$1$2></$1>")
	signed := string(sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", "<r>"+element+template+"</r>", "XAdESType", "BES")))
	encode := base64.StdEncoding.EncodeToString
	signed = strings.Replace(signed, encode(s.Hash.Digest([]byte(element)).Sum), encode(suite.SHA1.Digest([]byte(element)).Sum), 1)
	signed = strings.Replace(signed, `<DigestMethod Algorithm="`+s.Hash.XML[0]+`">`, `<DigestMethod Algorithm="http://www.w3.org/2000/09/xmldsig#sha1">`, 1)
	info := string(between(t, []byte(signed), "<SignedInfo>", "</SignedInfo>"))
	digest := s.Hash.Digest([]byte(strings.Replace(info, "<SignedInfo>", `<SignedInfo xmlns="http://www.w3.org/2000/09/xmldsig#">`, 1)))
	value := regexp.MustCompile(`<SignatureValue[^>]*>[^<]*</SignatureValue>`)
	data := []byte(value.ReplaceAllString(signed, "<SignatureValue>"+encode(signer.Sign(t, digest))+"</SignatureValue>"))
	if r := checkedXML(t, data, services.Now, root); !hasCode(r.Signatures[0].Findings, sig.CodeWeak) {
		t.Fatal(texts(r))
	}
	for range 2 {
		data = mustRaiseXML(t, data, "LTA", services)
	}
	if r := checkedXML(t, data, services.Now, root); r.Signatures[0].Level != "LTA" || len(r.Signatures[0].TimeStamps) != 3 {
		t.Error(texts(r))
	}
}
