// SPDX-License-Identifier: Apache-2.0

package cades_test

import (
	"bytes"
	"slices"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/cades"
	"tamga/sig/raw"
	"tamga/sig/xmldsig"
)

// TestOrder472 makes signatures of the profile of Order 472: algorithms with parameters, time, certificate and the path. Where the path
// cannot be there, and in other formats, the profile is refused.
func TestOrder472(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	issuing := root.Authority(t, "Issuing")
	signer := issuing.Signer(t, s, "Signer")
	message := sigtest.Make(t, cades.New(), signer, &sig.Job{Document: sigtest.Document([]byte("text")), Params: sig.Params{"Profile": "order472", "IsDetached": "True"}})
	m, err := cms.Parse(bytes.NewReader(message), int64(len(message)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, der := range m.Certificates {
		c, err := x509gost.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, c.Subject.String())
	}
	slices.Sort(names)
	if want := []string{issuing.Certificate.Subject.String(), signer.Certificate.Subject.String()}; !slices.Equal(names, want) {
		t.Errorf("certificates %q, want %q", names, want)
	}
	r, err := cades.New().Verify(t.Context(), &sig.Check{Document: bytes.NewReader(message), Original: sigtest.Document([]byte("text")), Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time})
	if err != nil || len(r.Signatures) != 1 || r.Verdict() != sig.Passed || !r.Signatures[0].SigningTime.Equal(sigtest.Time) {
		t.Errorf("%+v, %v", r, err)
	}
	alone := &sigtest.Party{Certificate: signer.Certificate, Suite: s, Key: signer.Key}
	halfway := &sigtest.Party{Certificate: signer.Certificate, Suite: s, Key: signer.Key, Chain: signer.Chain[:1]}
	for _, c := range []struct {
		name   string
		format sig.Format
		by     *sigtest.Party
		params sig.Params
		key    string
	}{
		{"without issuers", cades.New(), alone, sig.Params{"Profile": "Order472"}, "Profile"},
		{"without the root", cades.New(), halfway, sig.Params{"Profile": "Order472"}, "Profile"},
		{"without certificates", cades.New(), signer, sig.Params{"Profile": "Order472", "IncludeCertChain": "False"}, "IncludeCertChain"},
		{"another profile", cades.New(), signer, sig.Params{"Profile": "Order473"}, "Profile"},
		{"XML", xmldsig.New(), signer, sig.Params{"Profile": "Order472", "XMLDsigType": "XMLEnveloped"}, "Profile"},
		{"a bare signature", raw.New(), signer, sig.Params{"Profile": "Order472"}, "Profile"},
	} {
		_, err := sigtest.Try(t, c.format, c.by, &sig.Job{Document: sigtest.Document([]byte("<a/>")), Params: c.params})
		if faults := sigtest.Faults(err); !slices.Equal(faults, []string{c.key}) {
			t.Errorf("%s: %v, want %s", c.name, err, c.key)
		}
	}
}
