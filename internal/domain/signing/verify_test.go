// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"tamga/internal/sigtest"
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/cades"
)

// judging returns a verification service with a root, without a network.
func judging(t *testing.T, root *sigtest.Party, lists ...*x509gost.RevocationList) (*Verification, *Service) {
	s, _ := newService(t, root.Suite)
	return &Verification{
		Formats: s.Formats, Now: func() time.Time { return sigtest.Time.Add(time.Hour) },
		Trust: func(context.Context) (Trust, error) {
			return Trust{Roots: []*x509gost.Certificate{root.Certificate}, CRLs: lists}, nil
		},
	}, s
}

// list returns the revocation list of an authority at the time of the tests.
func list(t *testing.T, root *sigtest.Party, revoked ...*x509gost.Certificate) *x509gost.RevocationList {
	t.Helper()
	services := sigtest.NewServices(t, root)
	for _, c := range revoked {
		services.Revoked[c] = sigtest.Time.Add(-time.Minute)
	}
	leaf := root.Signer(t, root.Suite, "whose status the list is asked for")
	services.By[leaf.Certificate] = sigtest.ByList
	proof, err := services.Revocation(t.Context(), leaf.Certificate, root.Certificate, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := x509gost.ParseRevocationList(proof.CRL)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (v *Verification) about(t *testing.T, s *Service, message []byte) []SignatureReport {
	t.Helper()
	in, err := s.NewIntake(t.Context(), &Snapshot{UserID: "u"})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	in.Write(message)
	if err := in.Finish(); err != nil {
		t.Fatal(err)
	}
	verdicts, err := v.Verify(t.Context(), &VerifyOrder{Type: "CAdES", Content: in})
	if err != nil {
		t.Fatal(err)
	}
	return verdicts
}

// TestUnknownStatusIsNotTrue checks that the service returns true only for a certificate
// whose status is known. Otherwise a revoked certificate of an outside authority would
// pass if nothing is fetched.
func TestUnknownStatusIsNotTrue(t *testing.T) {
	root := sigtest.Root(t, suite.GOST2012x256)
	signer := root.Signer(t, suite.GOST2012x256, "Signer")
	message := sigtest.Make(t, cades.New(), signer, &sig.Job{Document: sigtest.Document([]byte("text")), Params: sig.Params{"IsDetached": "False"}})
	for name, test := range map[string]struct {
		lists   []*x509gost.RevocationList
		verdict string
		begins  string
	}{
		"unknown": {nil, "indeterminate", "not determined: "},
		"good":    {[]*x509gost.RevocationList{list(t, root)}, "passed", ""},
		"revoked": {[]*x509gost.RevocationList{list(t, root, signer.Certificate)}, "failed", "certificate"},
	} {
		v, s := judging(t, root, test.lists...)
		got := v.about(t, s, message)
		if len(got) != 1 || got[0].Verdict != test.verdict || got[0].Passed() != (test.verdict == "passed") || !strings.HasPrefix(got[0].Message, test.begins) {
			t.Errorf("%s: %+v", name, got)
		}

		in := content(t, s, string(signer.Certificate.Raw))
		judged, err := v.JudgeCertificate(t.Context(), in)
		if err != nil || judged.Verdict != test.verdict || judged.Passed() != (test.verdict == "passed") || !strings.HasPrefix(judged.Message, test.begins) {
			t.Errorf("%s: the certificate alone: %v %+v", name, err, judged)
		}
	}
}

// TestBrokenCountersignatureCounts checks that a broken countersignature breaks the
// verdict of its signature, with every suite.
func TestBrokenCountersignatureCounts(t *testing.T) {
	for _, su := range suite.All() {
		t.Run(su.Name, func(t *testing.T) {
			root := sigtest.Root(t, su)
			signer, counter := root.Signer(t, su, "Signer"), root.Signer(t, su, "Countersigner")
			message := sigtest.Make(t, cades.New(), signer, &sig.Job{Document: sigtest.Document([]byte("text")), Params: sig.Params{"IsDetached": "False"}})
			message = sigtest.Make(t, cades.New(), counter, &sig.Job{Document: sigtest.Document(message), Params: sig.Params{"CmsSignatureType": "Countersign"}})
			v, s := judging(t, root, list(t, root))
			if got := v.about(t, s, message); len(got) != 2 || !got[0].Passed() || !got[1].Passed() {
				t.Fatalf("unbroken: %+v", got)
			}

			m, err := cms.Parse(bytes.NewReader(message), int64(len(message)))
			if err != nil {
				t.Fatal(err)
			}
			counters, err := m.Signers[0].Countersignatures()
			if err != nil || len(counters) != 1 {
				t.Fatal(err, len(counters))
			}
			value := counters[0].Signature
			broken := bytes.Clone(value)
			broken[len(broken)/2] ^= 1
			got := v.about(t, s, bytes.Replace(message, value, broken, 1))
			if len(got) != 2 || got[0].Verdict != "failed" || got[1].Verdict != "failed" || !strings.Contains(got[0].Message, "countersignature") {
				t.Errorf("broken: %+v", got)
			}
		})
	}
}
