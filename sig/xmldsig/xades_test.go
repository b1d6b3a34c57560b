// SPDX-License-Identifier: Apache-2.0

package xmldsig_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/xmldsig"
)

// The levels of XAdES state the time and the certificate, and T proves the time.
func TestXAdES(t *testing.T) {
	for _, s := range suite.All() {
		root := sigtest.Root(t, s)
		authority := root.Authority(t, "Authority")
		signer := authority.Signer(t, s, "Signer")
		services := sigtest.NewServices(t, root, authority)
		for _, kind := range []string{"XMLEnveloped", "XMLEnveloping"} {
			for _, level := range []string{"BES", "T"} {
				t.Run(s.Name+"/"+kind+"/"+level, func(t *testing.T) {
					j := jobOf(kind, s, "XAdESType", level, "TSPAddress", "http://tsp.test/", "IncludeCertChain", "true")
					j.Evidence = services
					signed := sigtest.Make(t, xmldsig.New(), signer, j)
					check := func(signed []byte, at time.Time) sig.Signature {
						t.Helper()
						r, err := xmldsig.New().Verify(context.Background(), &sig.Check{Document: sigtest.Document(signed), Roots: []*x509gost.Certificate{root.Certificate}, At: at})
						if err != nil {
							t.Fatal(err)
						}
						return r.Signatures[0]
					}
					// Long after the certificates have expired a time stamp still proves
					// the time.
					later := sigtest.Time.AddDate(30, 0, 0)
					got, late := check(signed, sigtest.Time.Add(time.Hour)), check(signed, later)
					if !got.Passed() || got.Level != level || !got.SigningTime.Equal(sigtest.Time) || !got.Signer.Equal(signer.Certificate) || hasCode(got.Findings, "covers-part") {
						t.Errorf("level %s, time %s, %+v\n%s", got.Level, got.SigningTime, got.Findings, signed)
					}
					if late.Passed() != (level == "T") {
						t.Errorf("after 30 years: %+v", late.Findings)
					}
					if level == "BES" {
						return
					}
					if len(got.TimeStamps) != 1 || !got.TimeStamps[0].Passed() || !got.BestTime.Equal(got.TimeStamps[0].Time) {
						t.Errorf("time stamps %+v, best time %s", got.TimeStamps, got.BestTime)
					}
					bad := check(flip(t, signed, "<ds:SignatureValue>"), sigtest.Time)
					if bad.Passed() || !hasCode(bad.Findings, "time-stamp") {
						t.Errorf("a time stamp of another value: %+v", bad.Findings)
					}
					// Some programs store the token in an OCTET STRING.
					open := strings.Index(string(signed), "EncapsulatedTimeStamp")
					open += strings.IndexByte(string(signed[open:]), '>') + 1
					end := open + bytes.IndexByte(signed[open:], '<')
					token, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(signed[open:end])), ""))
					if err != nil {
						t.Fatal(err)
					}
					wrapped := base64.StdEncoding.EncodeToString(slices.Concat([]byte{4, 0x82, byte(len(token) >> 8), byte(len(token))}, token))
					if r := check(slices.Concat(signed[:open], []byte(wrapped), signed[end:]), later); !r.Passed() || r.Level != "T" {
						t.Errorf("a token in an OCTET STRING: level %s, %+v", r.Level, r.Findings)
					}
					// The time stamp is not signed. Without it the signature is one of level BES.
					spoiled, place := bytes.Clone(signed), open+100
					spoiled[place] = 'A' + (spoiled[place]-'A'+1)%26
					if bad := check(spoiled, sigtest.Time); !bad.Passed() || bad.Level != "BES" || !slices.Contains(bad.Headlines(), "an invalid time stamp was left out") {
						t.Errorf("an invalid time stamp: level %s, %+v", bad.Level, bad.Findings)
					}
				})
			}
		}
	}
}

// A service that does not answer, or answers something else, causes an error.
func TestNoTimeStamp(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	services := sigtest.NewServices(t, root)
	make := func() error {
		j := jobOf("XMLEnveloped", s, "XAdESType", "T", "TSPAddress", "http://tsp.test/")
		j.Evidence = services
		_, err := sigtest.Try(t, xmldsig.New(), signer, j)
		return err
	}
	var outage *sig.ErrEvidence
	services.Err["stamp"] = &sig.ErrEvidence{What: "time stamp", Text: "does not answer"}
	if err := make(); !errors.As(err, &outage) {
		t.Errorf("an outage: %v", err)
	}
	services.Err["stamp"] = nil
	services.Mixed = true
	if err := make(); !errors.As(err, &outage) || !strings.Contains(err.Error(), "not a usable token: it is missing") {
		t.Errorf("no stamp: %v", err)
	}
	if _, err := services.TimeStamp(t.Context(), "", s.Hash.Digest([]byte("another request"))); err != nil {
		t.Fatal(err)
	}
	if err := make(); !errors.As(err, &outage) || !strings.Contains(err.Error(), "it is for another digest") {
		t.Errorf("the stamp of another request: %v", err)
	}
	services.Mixed = false
	// No time stamp is requested before the value is verified.
	j := jobOf("XMLEnveloped", s, "XAdESType", "T", "TSPAddress", "http://tsp.test/")
	j.Evidence, j.Certificate, j.Time = services, signer.Certificate, sigtest.Time
	prepared, err := xmldsig.New().Prepare(context.Background(), j)
	if err != nil {
		t.Fatal(err)
	}
	before := services.Calls("stamp")
	if _, err := xmldsig.New().Finish(context.Background(), j, prepared.State, signer.Sign(t, s.Hash.Digest(nil))); !errors.Is(err, suite.ErrSignature) || services.Calls("stamp") != before {
		t.Errorf("a wrong value: %v", err)
	}
}

func TestParameters(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer := root.Authority(t, "Authority").Signer(t, s, "Signer")
	for _, test := range []struct {
		name   string
		params sig.Params
		faults string
	}{
		{"by number", sig.Params{"xmldsigtype": "0", "xadestype": "1"}, ""},
		{"none", nil, "XMLDsigType"},
		{"unknown", sig.Params{"XMLDsigType": "XMLDetached"}, "XMLDsigType"},
		{"T by template without an address", sig.Params{"XMLDsigType": "2", "XAdESType": "T"}, "TSPAddress"},
		{"T without an address", sig.Params{"XMLDsigType": "1", "XAdESType": "T"}, "TSPAddress"},
		{"T without a service to ask", sig.Params{"XMLDsigType": "1", "XAdESType": "T", "TSPAddress": ""}, "XAdESType"},
		{"an unknown level", sig.Params{"XMLDsigType": "1", "XAdESType": "X-L"}, "XAdESType"},
		{"a hash", sig.Params{"XMLDsigType": "1", "Hash": "True", "HashAlgorithm": "GR 34.11-2012 512"}, "Hash HashAlgorithm"},
		{"an index", sig.Params{"XMLDsigType": "1", "SignatureIndex": "0"}, "SignatureIndex"},
		{"parts", sig.Params{"XMLDsigType": "1", "XPath": "//x", "ObjectId": "x"}, "XPath ObjectId"},
	} {
		_, err := sigtest.Try(t, xmldsig.New(), signer, &sig.Job{Document: sigtest.Document([]byte(document)), Params: test.params})
		if got := strings.Join(sigtest.Faults(err), " "); got != test.faults || (err != nil) != (test.faults != "") {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	for chain, want := range map[string]int{"": 1, "False": 1, "True": 2} {
		signed := sigtest.Make(t, xmldsig.New(), signer, jobOf("XMLEnveloped", s, "IncludeCertChain", chain))
		if got := bytes.Count(signed, []byte("<ds:X509Certificate>")); got != want {
			t.Errorf("IncludeCertChain=%s: %d certificates", chain, got)
		}
	}
}

// Documents that cannot be signed or checked give *ErrDocument, with the line if there is
// one.
func TestBadDocuments(t *testing.T) {
	s := suite.GOST2012x256
	signer := sigtest.Root(t, s).Signer(t, s, "Signer")
	bomb := `<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb"><!ENTITY c "&b;&b;&b;">]><a>&c;</a>`
	for _, test := range []struct {
		name, text string
		enveloping bool // an enveloping signature is possible
		want       string
	}{
		{"a text", "a plain text", true, "line 1"},
		{"a PDF", "%PDF-1.7\n\x00\xff", true, "line 2"},
		{"nothing", "", false, ""},
		{"white space", " \n", true, ""},
		{"cut short", "<a>\n <b></a>", false, "line 2, column 5"},
		{"two roots", "<a/>\n<b/>", false, "line 2"},
		{"a wrong declaration", `<?xml version="1.0" encoding="UTF-8"?><a>` + "\xcf\xf0</a>", false, "UTF-8"},
		{"an unknown encoding", `<?xml version="1.0" encoding="x-mac"?><a/>`, false, "x-mac"},
		{"entities", bomb, false, "document type declaration"},
		{"an undeclared entity", "<a>&b;</a>", false, "line 1"},
		{"a prefix", "<a:b/>", false, "not declared"},
		{"depth", strings.Repeat("<a>", 300) + strings.Repeat("</a>", 300), false, "256"},
		{"attributes", "<a" + strings.Repeat(" x", 2000) + "/>", false, "line 1"},
	} {
		for _, kind := range kinds {
			_, err := sigtest.Try(t, xmldsig.New(), signer, job(kind, test.text))
			if kind == "XMLEnveloping" && test.enveloping {
				if err != nil {
					t.Errorf("%s, enveloping: %v", test.name, err)
				}
				continue
			}
			var bad *sig.ErrDocument
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), test.want) && kind != "XMLEnveloping" {
				t.Errorf("%s, %s: %v", test.name, kind, err)
			}
		}
		var bad *sig.ErrDocument
		if _, err := xmldsig.New().Verify(context.Background(), &sig.Check{Document: sigtest.Document([]byte(test.text))}); !errors.As(err, &bad) {
			t.Errorf("%s, checked: %v", test.name, err)
		}
	}
	small := &xmldsig.Format{MaxSize: 100}
	var bad *sig.ErrDocument
	if _, err := sigtest.Try(t, small, signer, jobOf("XMLEnveloped", s)); !errors.As(err, &bad) || !strings.Contains(err.Error(), "at most 100") {
		t.Errorf("too large: %v", err)
	}
	// A document that was signed within the limit is verified within the limit, as Base64
	// too.
	root := sigtest.Root(t, s)
	for _, kind := range []string{"XMLEnveloped", "XMLEnveloping"} {
		for _, text := range []string{"<a>" + strings.Repeat("я", 46) + "</a>", strings.Repeat("я", 50)} {
			signed, err := sigtest.Try(t, small, root.Signer(t, s, "Signer"), job(kind, text))
			if kind == "XMLEnveloped" && text[0] != '<' {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if r, err := small.Verify(context.Background(), &sig.Check{Document: sigtest.Document(signed), Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time}); err != nil || !r.Passed() {
				t.Errorf("%s of %d bytes: %v", kind, len(signed), err)
			}
		}
	}
	large := &xmldsig.Format{MaxSize: 13 << 20} // a third of this is more than signatureRoom
	signed, err := sigtest.Try(t, large, root.Signer(t, s, "Signer"), job("XMLEnveloping", strings.Repeat("a", 13<<20)))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := large.Verify(context.Background(), &sig.Check{Document: sigtest.Document(signed), Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time}); err != nil || !r.Passed() {
		t.Errorf("Base64 of %d bytes: %v", len(signed), err)
	}
	huge := "<a>" + strings.Repeat("a", 4<<20+200) + "</a>"
	if _, err := small.Verify(context.Background(), &sig.Check{Document: sigtest.Document([]byte(huge))}); !errors.As(err, &bad) || !strings.Contains(err.Error(), "at most") {
		t.Errorf("too large: %v", err)
	}
	html := "<!DOCTYPE html>\n<html/>"
	if _, err := sigtest.Try(t, xmldsig.New(), signer, job("XMLEnveloped", html)); !errors.As(err, &bad) {
		t.Errorf("a document type: %v", err)
	}
	lenient := &xmldsig.Format{AllowDoctype: true}
	if _, err := sigtest.Try(t, lenient, signer, job("XMLEnveloped", html)); err != nil {
		t.Errorf("a document type that is allowed: %v", err)
	}
	if _, err := sigtest.Try(t, lenient, signer, job("XMLEnveloping", html)); !errors.As(err, &bad) {
		t.Errorf("a document type in the middle: %v", err)
	}
}

func TestState(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer, other := root.Signer(t, s, "Signer"), root.Signer(t, s, "Other")
	big := "<a>" + strings.Repeat("<b>text</b>", 20000) + "</a>"
	for _, kind := range []string{"XMLEnveloped", "XMLEnveloping"} {
		j := job(kind, big)
		j.Certificate, j.Time = signer.Certificate, sigtest.Time
		prepared, err := xmldsig.New().Prepare(context.Background(), j)
		if err != nil {
			t.Fatal(err)
		}
		if len(prepared.State) > 8<<10 {
			t.Errorf("%s: the state has %d bytes", kind, len(prepared.State))
		}
		value := signer.Sign(t, prepared.Digest)
		finish := func(j sig.Job, state string, value []byte) error {
			_, err := xmldsig.New().Finish(context.Background(), &j, []byte(state), value)
			return err
		}
		good := string(prepared.State)
		old, err := xmldsig.JSONState(prepared.State)
		if err != nil {
			t.Fatal(err)
		}
		for _, state := range []string{good, string(old)} {
			if err := finish(*j, state, value); err != nil {
				t.Error(err)
			}
		}
		outside, err := xmldsig.OutsideState(prepared.State)
		if err != nil {
			t.Fatal(err)
		}
		var bad *sig.ErrState
		for name, state := range map[string]string{
			"empty": "", "a list": "[]", "another version": `{"v":9}`, "nothing in it": `{"v":1}`,
			"a piece outside": string(outside), "an unknown slot": strings.Replace(good, "\x05value", "\x05valve", 1),
		} {
			if err := finish(*j, state, value); !errors.As(err, &bad) {
				t.Errorf("%s: %v", name, err)
			}
		}
		k := *j
		k.Certificate = other.Certificate
		if err := finish(k, good, value); !errors.As(err, &bad) {
			t.Errorf("another certificate: %v", err)
		}
		for _, text := range []string{big[1:], strings.Replace(big, "text", "test", 1)} {
			k = *j
			k.Document = sigtest.Document([]byte(text))
			if err := finish(k, good, value); !errors.As(err, &bad) {
				t.Errorf("another document: %v", err)
			}
		}
		k.Document = nil
		if err := finish(k, good, value); !errors.As(err, &bad) {
			t.Errorf("no document: %v", err)
		}
		if err := finish(*j, good, value[1:]); err == nil {
			t.Error("a value of 63 bytes is accepted")
		}
		again, err := xmldsig.New().Prepare(context.Background(), j)
		if err != nil || string(again.State) != good {
			t.Errorf("the same job has another state: %v", err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, kind := range kinds {
		j := jobOf(kind, s)
		j.Certificate = signer.Certificate
		if _, err := xmldsig.New().Prepare(ctx, j); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled: %v", kind, err)
		}
	}
	if _, err := xmldsig.New().Verify(ctx, &sig.Check{Document: sigtest.Document([]byte(document))}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
