// SPDX-License-Identifier: Apache-2.0

package cades_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/cades"
)

// by returns a message with one signature of each party, and these certificates and
// lists.
func by(t *testing.T, parties []*sigtest.Party, certs, lists [][]byte) []byte {
	t.Helper()
	var signers []cms.Signer
	for _, p := range parties {
		attrs := cms.BuildSignedAttributes(cms.ContentType(cms.OIDData), cms.MessageDigest(p.Suite.Hash.Digest(text)), cms.SigningCertificateV2(p.Certificate, p.Suite.Hash))
		signers = append(signers, cms.Signer{Certificate: p.Certificate, Suite: p.Suite, SignedAttrs: attrs, Signature: p.Sign(t, p.Suite.Hash.Digest(attrs))})
	}
	head, tail, err := cms.Encode(cms.OIDData, int64(len(text)), certs, lists, signers)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(head, text, tail)
}

// Messages that need much work: very many signers, each with a certificate that hundreds
// of issuers could have issued; time stamps on everything; large lists. Typical messages
// pass.
func TestCosts(t *testing.T) {
	if testsize.Of() == testsize.Quick {
		t.Skip("large documents")
	}
	s := suite.ECDSAP256
	root := sigtest.Root(t, s)
	var crowd []*sigtest.Party
	var certs [][]byte
	sub, elsewhere := root.Authority(t, "Sub"), sigtest.Root(t, suite.RSASHA256)
	number := func(i int) func(*x509gost.Template) {
		return func(c *x509gost.Template) { c.SerialNumber = []byte{0x11, byte(i >> 8), byte(i)} }
	}
	for i := range 300 {
		p := sub.Issue(t, s, "Signer", number(i))
		crowd, certs = append(crowd, p), append(certs, p.Certificate.Raw)
	}
	var impostors [][]byte // with the name of their issuer, but not issued by a trusted one
	for i := range 200 {
		p := elsewhere.Issue(t, s, "Sub", func(c *x509gost.Template) {
			number(i)(c)
			c.IsCA, c.MaxPathLen, c.KeyUsage = true, -1, x509.KeyUsageCertSign
		})
		impostors = append(impostors, p.Certificate.Raw)
	}
	certs = append([][]byte{sub.Certificate.Raw}, certs...)
	var revoked []x509gost.RevokedEntry
	for i := range 60_000 {
		revoked = append(revoked, x509gost.RevokedEntry{SerialNumber: fmt.Appendf(nil, "\x01%06d", i), At: sigtest.Time})
	}
	list, err := x509gost.CreateRevocationList(&x509gost.CRLTemplate{
		ThisUpdate: sigtest.Time.AddDate(0, 0, -1), NextUpdate: sigtest.Time.AddDate(0, 0, 1), Number: []byte{1}, Revoked: revoked,
	}, sub.Certificate, s, x509gost.SignWith(sigtest.Random(9), sub.Key, s))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, s)
	// Archive time stamps: a hundred renewals, and a thousand copies of one.
	stamped := w.make(t, w.signer, "XLT1", &sig.Job{Document: sigtest.Document(text)})
	before := stamped
	for i := range 100 {
		h := handmade{index: cms.OIDHashIndexV3, by: w.services.TSA, at: sigtest.Time.Add(time.Duration(i) * time.Hour)}
		stamped = h.add(t, stamped, text)
	}
	first := mustParse(t, stamped).Signers[0].UnsignedAttrs[6]
	copies := withUnsigned(t, before, cms.NewAttribute(first.OID, slices.Repeat(first.Values[:1], 1000)...))
	for name, test := range map[string]struct {
		message []byte
		root    *sigtest.Party
		want    error
	}{
		"one signer":                   {by(t, crowd[:1], certs[:2], nil), root, nil},
		"100 signers":                  {by(t, crowd[:100], certs[:101], nil), root, nil},
		"1000 signatures of one":       {manySigners(t, w, 1000), w.root, nil},
		"100 archive time stamps":      {stamped, w.root, nil},
		"1000 copies of one":           {copies, w.root, budget.ErrSteps},
		"a list of 60,000":             {by(t, crowd[:3], certs[:4], [][]byte{list}), root, nil},
		"signers with 200 issuers":     {by(t, crowd, slices.Concat(certs[1:], impostors), nil), root, budget.ErrSteps},
		"300 signers and a large list": {by(t, crowd, certs, [][]byte{list}), root, budget.ErrSteps},
		"lists that do not fit":        {by(t, crowd[:1], certs[:2], [][]byte{list, list, list, list}), root, budget.ErrMemory},
	} {
		t.Run(name, func(t *testing.T) {
			limits := budget.Anonymous()
			ctx := budget.With(context.Background(), limits)
			r, err := cades.New().Verify(ctx, &sig.Check{Document: sigtest.Document(test.message), Roots: []*x509gost.Certificate{test.root.Certificate}, At: sigtest.Time})
			_, b := budget.Of(ctx, 0)
			if !errors.Is(err, test.want) {
				t.Fatalf("%v, want %v", err, test.want)
			}
			if err == nil && !r.Passed() {
				t.Errorf("%v", sigtest.Codes(r))
			}
			if b.Spent() > limits.Steps+limits.Steps/4 {
				t.Errorf("%d steps, at most %d allowed", b.Spent(), limits.Steps)
			}
			var document *sig.ErrDocument
			if test.want != nil && !errors.As(err, &document) {
				t.Errorf("%v is no fault of the document", err)
			}
		})
	}
}
