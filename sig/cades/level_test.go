// SPDX-License-Identifier: Apache-2.0

package cades_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
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
	"tamga/sig/cades"
	"tamga/sig/evidence"
)

// world is a root with its services and a signer under a subordinate authority.
type world struct {
	root, sub *sigtest.Party
	services  *sigtest.Services
	signer    *sigtest.Party
}

func newWorld(t testing.TB, s *suite.Suite) *world {
	t.Helper()
	root := sigtest.Root(t, s)
	sub := root.Authority(t, "Test Sub")
	return &world{root, sub, sigtest.NewServices(t, root, sub), sub.Signer(t, s, "Signer")}
}

// make signs at a level.
func (w *world) make(t testing.TB, p *sigtest.Party, level string, job *sig.Job) []byte {
	t.Helper()
	message, err := w.try(t, p, level, job)
	if err != nil {
		t.Fatalf("signing at %s: %v", level, err)
	}
	return message
}

func (w *world) try(t testing.TB, p *sigtest.Party, level string, job *sig.Job) ([]byte, error) {
	t.Helper()
	job.Params = maps.Clone(job.Params)
	if job.Params == nil {
		job.Params = sig.Params{}
	}
	job.Params["CADESType"], job.Params["TSPAddress"] = level, "http://tsp.test/"
	job.Evidence = w.services
	return sigtest.Try(t, cades.New(), p, job)
}

// enhance enhances a message.
func (w *world) enhance(t testing.TB, message []byte, level string, original []byte, more sig.Params) ([]byte, error) {
	t.Helper()
	job := &sig.Job{Document: sigtest.Document(message), Evidence: w.services,
		Params: sig.Params{"CADESType": level, "TSPAddress": ""}}
	maps.Copy(job.Params, more)
	if original != nil {
		job.Original = sigtest.Document(original)
	}
	return enhanceWith(t, cades.New(), job)
}

func enhanceWith(t testing.TB, f *cades.Format, job *sig.Job) ([]byte, error) {
	t.Helper()
	result, err := f.Enhance(context.Background(), job)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if n, err := result.WriteTo(&out); err != nil || n != result.Size() {
		t.Fatalf("%d of %d bytes: %v", n, result.Size(), err)
	}
	return out.Bytes(), nil
}

// levels returns the levels of the signatures of a valid report.
func levels(t testing.TB, r *sig.Report) (list []string) {
	t.Helper()
	if !r.Passed() {
		for _, s := range r.Signatures {
			t.Errorf("%+v %+v", s.Findings, s.TimeStamps)
		}
		t.Fatalf("not valid: %+v", r.Findings)
	}
	for _, s := range r.Signatures {
		list = append(list, s.Level)
	}
	return list
}

// quiet checks that a report has no findings about a signature, not even harmless ones.
func quiet(t testing.TB, s *sig.Signature) {
	t.Helper()
	if len(s.Findings) > 0 {
		t.Errorf("findings: %+v", s.Findings)
	}
	for _, ts := range s.TimeStamps {
		if len(ts.Findings) > 0 || ts.Signer == nil || len(ts.Chain) < 3 {
			t.Errorf("time stamp: %+v", ts)
		}
	}
}

// Our own verifier confirms the level of every suite and mode at both levels, with only
// the evidence of the message. The time of the verdict is that of the stamp.
func TestLevels(t *testing.T) {
	for _, s := range suite.All() {
		w := newWorld(t, s)
		for i, mode := range modes {
			for _, level := range []string{"T", "XLT1"} {
				t.Run(s.Name+"/"+mode.name+"/"+level, func(t *testing.T) {
					doc, original := text, []byte(nil)
					if mode.hash {
						doc = s.Hash.Digest(text).Sum
					}
					if mode.detached {
						original = text
					}
					stampedAt := w.services.Now
					message := w.make(t, w.signer, level, &sig.Job{Document: sigtest.Document(doc), Params: modes[i].params})
					r := verify(t, message, original, w.root)
					if got := levels(t, r); !slices.Equal(got, []string{level}) {
						t.Fatalf("levels %v: %+v", got, r.Signatures[0].Findings)
					}
					got := &r.Signatures[0]
					if !got.BestTime.Equal(stampedAt) || len(got.TimeStamps) != map[string]int{"T": 1, "XLT1": 2}[level] {
						t.Errorf("best time %v, want %v; %d time stamps", got.BestTime, stampedAt, len(got.TimeStamps))
					}
					if level == "XLT1" {
						quiet(t, got)
					}
				})
			}
		}
	}
}

// With a time stamp a signature stays valid after its certificate expires, at both
// levels. Without one it does not.
func TestAfterTheCertificate(t *testing.T) {
	w := newWorld(t, suite.GOST2012x256)
	later := sigtest.Time.AddDate(10, 0, 1) // the certificates have expired
	for level, valid := range map[string]bool{"BES": false, "T": true, "XLT1": true} {
		message := w.make(t, w.signer, level, &sig.Job{Document: sigtest.Document(text)})
		r, err := cades.New().Verify(context.Background(), &sig.Check{
			Document: sigtest.Document(message), Roots: []*x509gost.Certificate{w.root.Certificate}, At: later,
		})
		if err != nil || r.Passed() != valid {
			t.Errorf("%s: valid %v, want %v: %v %+v", level, r.Passed(), valid, err, r.Signatures)
		}
	}
}

// Cosigners and countersigners have their own level, next to others, and the report has
// the level of each.
func TestLevelsSideBySide(t *testing.T) {
	w := newWorld(t, suite.GOST2012x256)
	second := w.sub.Signer(t, suite.GOST2012x512, "Second")
	message := w.make(t, w.signer, "T", &sig.Job{Document: sigtest.Document(text)})
	for i, step := range []struct{ kind, level string }{{"Cosign", "XLT1"}, {"Cosign", "BES"}, {"Countersign", "XLT1"}} {
		next := w.make(t, second, step.level, add(step.kind, message, nil, sig.Params{"SignatureIndex": "1"}))
		if step.kind == "Countersign" {
			sameEarlier(t, message, next, 1)
			sameSignature(t, mustParse(t, message).Signers[1], mustParse(t, next).Signers[1])
		} else {
			sameEarlier(t, message, next)
		}
		if message = next; i == 0 && len(mustParse(t, message).Signers) != 2 {
			t.Error("no cosigner")
		}
	}
	r := verify(t, message, nil, w.root)
	if got := levels(t, r); !slices.Equal(got, []string{"T", "XLT1", "BES"}) {
		t.Fatalf("levels %v", got)
	}
	quiet(t, &r.Signatures[1])
	c := r.Signatures[1].Countersigners
	if len(c) != 1 || !c[0].Passed() || c[0].Level != "XLT1" {
		t.Fatalf("countersigner: %+v", c)
	}
	quiet(t, &c[0])
}

// unsigned rewrites the unsigned attributes of one signer.
func unsigned(t testing.TB, message []byte, index int, edit func([]cms.Attribute) []cms.Attribute) []byte {
	t.Helper()
	m := mustParse(t, message)
	s := m.Signers[index]
	bare := s.Raw
	if len(s.UnsignedAttrs) > 0 {
		// [1] is the last field, and its end is the end of the SignerInfo.
		var raws []byte
		for _, a := range s.UnsignedAttrs {
			raws = append(raws, a.Raw...)
		}
		at := bytes.LastIndex(s.Raw, raws)
		for _, n := range []int{2, 3, 4, 5} {
			if s.Raw[at-n] == 0xa1 && headerOf(s.Raw[at-n:]) == n {
				at -= n
				break
			}
		}
		body := s.Raw[headerOf(s.Raw):at]
		bare = element(0x30, body)
	}
	info, err := cms.ParseSignerInfo(bare)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := info.AppendUnsigned(edit(s.UnsignedAttrs)...)
	if err != nil {
		t.Fatal(err)
	}
	head, tail, err := m.Rewrite(cms.Changes{Replaced: map[int][]byte{index: raw}})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(head, section(message, m.EncapContentInfo), tail)
}

// headerOf returns the number of bytes of tag and length of a DER element.
func headerOf(b []byte) int {
	if b[1] < 0x80 {
		return 2
	}
	return 2 + int(b[1]&0x7f)
}

// element is a DER element.
func element(tag byte, contents ...[]byte) []byte {
	body := bytes.Join(contents, nil)
	switch n := len(body); {
	case n < 0x80:
		return append([]byte{tag, byte(n)}, body...)
	case n < 0x100:
		return append([]byte{tag, 0x81, byte(n)}, body...)
	case n < 0x10000:
		return append([]byte{tag, 0x82, byte(n >> 8), byte(n)}, body...)
	default:
		return append([]byte{tag, 0x83, byte(n >> 16), byte(n >> 8), byte(n)}, body...)
	}
}

// Refused, missing or wrong evidence causes an error and no message.
func TestEvidenceRefused(t *testing.T) {
	outage := &sig.ErrEvidence{What: "time stamp", Text: "the service does not answer"}
	cut := func(kind string) func(*world) {
		return func(w *world) {
			w.services.Spoil = func(k string, der []byte) []byte {
				if k == kind {
					der = bytes.Clone(der)
					der[len(der)-1] ^= 1
				}
				return der
			}
		}
	}
	tests := []struct {
		name, level string
		change      func(*world)
		text        string
	}{
		{"service down", "T", func(w *world) { w.services.Err["stamp"] = outage }, "does not answer"},
		{"no issuer", "XLT1", func(w *world) { w.signer.Chain = nil; w.services.Err["issuer"] = outage }, "does not answer"},
		{"no revocation data", "XLT1", func(w *world) { w.services.Err["revocation"] = outage }, "does not answer"},
		{"no stamp", "T", func(w *world) { w.services.Mixed = true }, "not a usable token: it is missing"},
		{"stamp of another signature", "XLT1", func(w *world) {
			w.services.Mixed = true
			if _, err := w.services.TimeStamp(t.Context(), "", w.signer.Suite.Hash.Digest(text)); err != nil {
				t.Fatal(err)
			}
		}, "not a usable token: tsp: the token does not answer the request: it is for another digest"},
		{"answer spoiled", "XLT1", cut("ocsp"), "no usable data"},
		{"list spoiled", "XLT1", func(w *world) { w.services.By[w.signer.Certificate] = sigtest.ByList; cut("crl")(w) }, "no usable data"},
		{"revoked by answer", "XLT1", func(w *world) { w.services.Revoked[w.signer.Certificate] = sigtest.Time.AddDate(0, 0, -1) }, "revoked"},
		{"revoked by list", "XLT1", func(w *world) {
			w.services.By[w.signer.Certificate] = sigtest.ByList
			w.services.Revoked[w.signer.Certificate] = sigtest.Time.AddDate(0, 0, -1)
		}, "revoked"},
		{"service revoked", "XLT1", func(w *world) { w.services.Revoked[w.services.TSA.Certificate] = sigtest.Time.AddDate(0, 0, -1) }, "revoked"},
		{"old answer", "XLT1", func(w *world) { w.services.AnswerAge = time.Minute; w.services.Obedient = false }, "before the time stamp"},
		{"old list", "XLT1", func(w *world) {
			w.services.By[w.signer.Certificate], w.services.ListAge, w.services.Obedient = sigtest.ByList, time.Hour, false
		}, "the next one is due at 2025-03-15T08:26:5"},
		{"old list, refused by the source", "XLT1", func(w *world) {
			w.services.By[w.sub.Certificate], w.services.ListAge = sigtest.ByList, time.Hour
		}, "next one is due"},
		{"responder revoked", "XLT1", func(w *world) {
			r := w.sub.Responder(t, "Revoked Responder", true)
			w.services.Responders[w.sub], w.services.Revoked[r.Certificate] = r, sigtest.Time.AddDate(0, 0, -1)
		}, "revoked"},
		{"responder expired", "XLT1", func(w *world) { // T-10: its nocheck does not help
			w.services.Responders[w.sub] = w.sub.Issue(t, w.sub.Suite, "Expired Responder", func(c *x509gost.Template) {
				c.NotAfter = sigtest.Time.AddDate(0, 0, -1)
				c.ExtKeyUsage = []x509gost.OID{x509gost.UsageOCSPSigning}
				c.ExtraExtensions = []x509gost.Extension{{OID: x509gost.OIDOCSPNoCheck, Value: []byte{5, 0}}}
			})
		}, "not valid when it answered"},
		{"responder by another authority", "XLT1", func(w *world) {
			w.services.Responders[w.sub] = w.root.Responder(t, "Responder of the root", false)
		}, "no usable data"},
		{"responder to be checked, old list", "XLT1", func(w *world) {
			w.services.ResponderChecked, w.services.ListAge = true, time.Hour
		}, "next one is due"},
	}
	for _, test := range tests {
		w := newWorld(t, suite.ECDSAP256)
		test.change(w)
		_, err := w.try(t, w.signer, test.level, &sig.Job{Document: sigtest.Document(text)})
		var e *sig.ErrEvidence
		if !errors.As(err, &e) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v, want %q", test.name, err, test.text)
		}
	}
	// No evidence is requested for a wrong value.
	w := newWorld(t, suite.ECDSAP256)
	job := &sig.Job{Document: sigtest.Document(text), Certificate: w.signer.Certificate, Time: sigtest.Time, Evidence: w.services,
		Params: sig.Params{"CADESType": "T", "TSPAddress": ""}}
	prepared, err := cades.New().Prepare(context.Background(), job)
	if err != nil {
		t.Fatal(err)
	}
	wrong := w.signer.Sign(t, suite.SHA256.Digest(text))
	if _, err := cades.New().Finish(context.Background(), job, prepared.State, wrong); !errors.Is(err, suite.ErrSignature) || w.services.Calls("stamp") != 0 {
		t.Errorf("%v after %d stamps", err, w.services.Calls("stamp"))
	}
	job.Evidence = nil
	var e *sig.ErrEvidence
	if _, err := cades.New().Finish(context.Background(), job, prepared.State, w.signer.Sign(t, prepared.Digest)); !errors.As(err, &e) {
		t.Errorf("no service configured: %v", err)
	}
}

// The settings: the allowed age of data, and old lists only for authorities.
func TestFreshness(t *testing.T) {
	try := func(f *cades.Format, change func(*world)) error {
		w := newWorld(t, suite.ECDSAP256)
		change(w)
		_, err := sigtest.Try(t, f, w.signer, &sig.Job{Document: sigtest.Document(text), Evidence: w.services,
			Params: sig.Params{"CADESType": "XLT1", "TSPAddress": ""}})
		return err
	}
	oldAnswers := func(w *world) { w.services.AnswerAge = time.Minute }
	oldLists := func(w *world) {
		w.services.ListAge = 24 * time.Hour * 30
		for _, c := range append(w.services.TSA.Chain, w.sub.Certificate) {
			w.services.By[c] = sigtest.ByList
		}
	}
	oldOfSigner := func(w *world) { oldLists(w); w.services.By[w.signer.Certificate] = sigtest.ByList }
	if err := try(&cades.Format{Rules: evidence.Rules{Allowance: 2 * time.Minute}}, oldAnswers); err != nil {
		t.Errorf("within the allowance: %v", err)
	}
	if err := try(&cades.Format{Rules: evidence.Rules{Allowance: 30 * time.Second}}, oldAnswers); err == nil {
		t.Error("beyond the allowance")
	}
	if err := try(cades.New(), oldLists); err == nil {
		t.Error("old lists without the setting")
	}
	if err := try(&cades.Format{Rules: evidence.Rules{OldListsForAuthorities: true}}, oldLists); err != nil {
		t.Errorf("old lists of authorities with the setting: %v", err)
	}
	if err := try(&cades.Format{Rules: evidence.Rules{OldListsForAuthorities: true}}, oldOfSigner); err == nil {
		t.Error("an old list for the signer with the setting for authorities")
	}
}

// Every way to prove the status of a certificate, and a path that must be fetched.
func TestKindsOfEvidence(t *testing.T) {
	for name, change := range map[string]func(*world){
		"responder":         func(*world) {},
		"responder checked": func(w *world) { w.services.ResponderChecked = true },
		"by issuer": func(w *world) {
			w.services.By[w.signer.Certificate] = sigtest.ByIssuer
			w.services.By[w.sub.Certificate] = sigtest.ByIssuer
		},
		"lists": func(w *world) {
			for _, c := range append(w.services.TSA.Chain, w.sub.Certificate, w.signer.Certificate, w.services.TSA.Certificate) {
				w.services.By[c] = sigtest.ByList
			}
		},
		"no chain":     func(w *world) { w.signer.Chain = nil },
		"bare token":   func(w *world) { w.services.Bare = true },
		"stamps in ms": func(w *world) { w.services.Now = w.services.Now.Add(700 * time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, suite.GOST2012x512)
			change(w)
			message := w.make(t, w.signer, "XLT1", &sig.Job{Document: sigtest.Document(text)})
			r := verify(t, message, nil, w.root)
			if got := levels(t, r); !slices.Equal(got, []string{"XLT1"}) {
				t.Fatalf("%v: %+v", got, r.Signatures[0].Findings)
			}
			quiet(t, &r.Signatures[0])
			for _, at := range w.services.Asked() {
				if at.Before(r.Signatures[0].BestTime.Truncate(time.Second)) {
					t.Errorf("data from %v on was asked for, the stamp is of %v", at, r.Signatures[0].BestTime)
				}
			}
		})
	}
}

// The evidence of one message is fetched once, for any number of signers.
func TestOneAnswerForAll(t *testing.T) {
	w := newWorld(t, suite.ECDSAP256)
	message := sign(t, w.signer, 0)
	for range 9 {
		message = sigtest.Make(t, cades.New(), w.signer, add("Cosign", message, nil, nil))
	}
	out, err := w.enhance(t, message, "XLT1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := levels(t, verify(t, out, nil, w.root)); len(got) != 10 || slices.ContainsFunc(got, func(l string) bool { return l != "XLT1" }) {
		t.Errorf("levels %v", got)
	}
	// signer, its authority, the stamper, its authority
	if stamps, data := w.services.Calls("stamp"), w.services.Calls("revocation"); stamps != 20 || data != 4 {
		t.Errorf("%d stamps and %d times revocation data", stamps, data)
	}
}

// A time stamp over attributes covers their present bytes, in BER too (T-8).
func TestCoveredAsItStands(t *testing.T) {
	w := newWorld(t, suite.GOST2012x256)
	message := w.make(t, w.signer, "T", &sig.Job{Document: sigtest.Document(text)})
	m := mustParse(t, message)
	s := m.Signers[0]
	stampDER := s.UnsignedAttrs[0].Raw
	fields := stampDER[headerOf(stampDER):]
	stamp := slices.Concat([]byte{0x30, 0x80}, fields, []byte{0, 0})
	raw := s.Raw[headerOf(s.Raw):]
	raw = raw[:bytes.Index(raw, stampDER)-headerOf(element(0xa1, stampDER))]
	raw = slices.Concat([]byte{0x30, 0x80}, raw, []byte{0xa1, 0x80}, stamp, []byte{0, 0}, []byte{0, 0})
	head, tail, err := m.Rewrite(cms.Changes{Replaced: map[int][]byte{0: raw}})
	if err != nil {
		t.Fatal(err)
	}
	message = slices.Concat(head, section(message, m.EncapContentInfo), tail)
	out, err := w.enhance(t, message, "XLT1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	attrs := mustParse(t, out).Signers[0].UnsignedAttrs
	if !bytes.Equal(attrs[0].Encoded, stamp) {
		t.Error("the time stamp was encoded anew")
	}
	token, err := tsp.ParseToken(attrs[3].Values[0])
	if err != nil {
		t.Fatal(err)
	}
	covered := slices.Concat(s.Signature, fields, attrs[1].Raw[headerOf(attrs[1].Raw):], attrs[2].Raw[headerOf(attrs[2].Raw):])
	if !bytes.Equal(token.Info.Digest.Sum, suite.Streebog256.Digest(covered).Sum) {
		t.Error("the imprint is another")
	}
	if got := levels(t, verify(t, out, nil, w.root)); !slices.Equal(got, []string{"XLT1"}) {
		t.Error(got)
	}
}

// A time stamp that names another serial number beside the digest of its certificate is a warning.
func TestStampOtherIssuer(t *testing.T) {
	w := newWorld(t, suite.GOST2012x256)
	message := w.make(t, w.signer, "T", &sig.Job{Document: sigtest.Document(text)})
	token := tokenOf(t, message)
	r := verify(t, bytes.Replace(message, token, w.services.OtherSerial(token), 1), nil, w.root)
	if one := r.Signatures[0]; !r.Passed() || one.Level != "T" || !slices.Contains(one.Headlines(), "another issuer or serial number is named") ||
		!slices.ContainsFunc(one.TimeStamps[0].Findings, func(f sig.Finding) bool { return f.Code == cms.CodeOtherIssuer }) {
		t.Errorf("level %s, %+v, %+v", one.Level, one.Findings, one.TimeStamps[0].Findings)
	}
}

// tokenOf returns the time stamp of the only signature of a message.
func tokenOf(t *testing.T, message []byte) []byte {
	t.Helper()
	for _, a := range mustParse(t, message).Signers[0].UnsignedAttrs {
		if a.OID.Equal(x509gost.OID{1, 2, 840, 113549, 1, 9, 16, 2, 14}) {
			return a.Values[0]
		}
	}
	t.Fatal("no time stamp")
	return nil
}
