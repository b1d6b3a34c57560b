// SPDX-License-Identifier: Apache-2.0

package keys_test

import (
	"bytes"
	"crypto/x509"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/operation"
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// usageOf returns the key usage that a request asks for.
func usageOf(t *testing.T, q *keys.Request) x509.KeyUsage {
	t.Helper()
	for _, e := range q.Parsed.Extensions {
		if e.OID.Equal(x509gost.OIDKeyUsage) {
			u, err := x509gost.ParseKeyUsage(e.Value)
			if err != nil {
				t.Fatal(err)
			}
			return u
		}
	}
	return 0
}

// TestForEncryption checks who gets the purposes of encryption: by the order, by the renewed certificate, by
// the group.
func TestForEncryption(t *testing.T) {
	yes, no := true, false
	g := &groups{of: map[string]string{alice: "bank", bob: "fund"}}
	for _, c := range []struct {
		user  string
		asked *bool
		want  bool
		read  int // times that the group was read
	}{
		{alice, nil, true, 1}, {alice, &no, false, 0}, {alice, &yes, true, 0},
		{bob, nil, false, 1}, {bob, &no, false, 0}, {bob, &yes, true, 0},
	} {
		for _, su := range []*suite.Suite{suite.GOST2012x256, suite.ECDSAP256} {
			p, _ := manage(t, func(o *keys.Options) {
				o.Placement.Groups = g
				o.Enrolment.EncryptionGroups = []string{"bank"}
			})
			ctx := t.Context()
			find := func(id int64) *keys.Certificate {
				t.Helper()
				made, err := p.Find(ctx, c.user, strconv.FormatInt(id, 10))
				if err != nil {
					t.Fatal(err)
				}
				return made
			}
			g.read = 0
			q, err := p.CreateRequest(ctx, as(c.user), keys.CertificateOrder{Suite: su.Name, Encryption: c.asked})
			if err != nil {
				t.Fatal(err)
			}
			made, usage := find(q.CertificateID), authority.KeyUsage(su, c.want)
			if made.ForEncryption() != c.want || made.X509.KeyUsage != usage || usageOf(t, q) != usage || g.read != c.read {
				t.Errorf("%+v, %s: usage %b, in the request %b, want %b; the group was read %d times", c, su.Name, made.X509.KeyUsage, usageOf(t, q), usage, g.read)
			}
			issued := p.issue(t, keys.IssueOrder{UserID: c.user, Suite: su, Encryption: c.asked})
			if issued.X509.KeyUsage != usage {
				t.Errorf("%+v, %s, issued: usage %b, want %b", c, su.Name, issued.X509.KeyUsage, usage)
			}
			// The successor has what the certificate had, unless the order says otherwise.
			renewed, err := p.CreateRequest(ctx, as(c.user), keys.CertificateOrder{Renew: number(made)})
			if err != nil {
				t.Fatal(err)
			}
			if want := c.want || c.user == alice; find(renewed.CertificateID).ForEncryption() != want {
				t.Errorf("%+v, %s, renewed: for encryption %t", c, su.Name, !want)
			}
			renewed, err = p.CreateRequest(ctx, as(c.user), keys.CertificateOrder{Renew: number(made), Encryption: &no})
			if err != nil || find(renewed.CertificateID).ForEncryption() {
				t.Errorf("%+v, %s, renewed without them: %v", c, su.Name, err)
			}
			generated, err := p.Generate(ctx, as(c.user), 11849, "", "")
			if err != nil || generated.ForEncryption() != (c.user == alice) {
				t.Errorf("%+v, generated: %v", c, err)
			}
		}
	}
	p, _ := manage(t)
	o := p.Options
	o.Enrolment.EncryptionGroups = []string{"bank"}
	if _, err := keys.New(o); err == nil {
		t.Error("groups for encryption without the groups of users")
	}
}

// TestDeleteForEncryption checks that a key that opens messages is not destroyed by the way.
func TestDeleteForEncryption(t *testing.T) {
	yes := true
	p, _ := manage(t)
	ctx := t.Context()
	c := p.issue(t, keys.IssueOrder{Encryption: &yes})
	_, err := p.Delete(ctx, as(alice), number(c), false)
	if !fault.Is(err, fault.InvalidParameters) || !strings.Contains(err.Error(), number(c)) || !strings.Contains(err.Error(), "Мария") {
		t.Errorf("without destroyKey: %v", err)
	}
	if _, err := p.decrypt(ctx, nil, c, "", encrypted(t, c, cms.Encryption{})); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if _, err := p.Delete(ctx, as(bob), number(c), true); !fault.Is(err, fault.CertificateNotFound) {
		t.Errorf("by another user: %v", err)
	}
	if _, err := p.Delete(ctx, as(alice), number(c), true); err != nil {
		t.Error(err)
	}
	if _, found, err := p.Store.Key(ctx, c.KeyID); found || err != nil {
		t.Errorf("the key is still there: %v", err)
	}
}

// TestForEncryptionWaits checks that an operator certifies the purposes that were asked for, and that the user
// confirms them by name.
func TestForEncryptionWaits(t *testing.T) {
	yes := true
	p, _ := manage(t, func(o *keys.Options) {
		o.Enrolment.Authorities = []keys.Authority{{ID: keys.BuiltIn, Name: "CA", Operator: true}}
	})
	ctx := t.Context()
	order := keys.CertificateOrder{Usages: []string{"1.3.6.1.5.5.7.3.4"}, Encryption: &yes}
	plan := &keys.Plan{Kind: keys.ToRequest, Order: order}
	ordered := plan.Ordered(audit.Principal{UserID: alice}, operation.FormOperation, operation.Always)
	for _, k := range p.OperationKinds() {
		if k.Name != string(keys.ToRequest) {
			continue
		}
		f, err := k.Describe(ctx, ordered)
		if err != nil {
			t.Fatal(err)
		}
		shown := ""
		for _, v := range f.Arguments.List() {
			if v.Name == "usages" {
				shown = v.Value
			}
		}
		if shown != "keyEncipherment,dataEncipherment,keyAgreement,1.3.6.1.5.5.7.3.4" {
			t.Errorf("the user confirms %q", shown)
		}
	}
	q, err := p.CreateRequest(ctx, as(alice), order)
	if err != nil || q.Status != keys.Pending {
		t.Fatalf("%+v, %v", q, err)
	}
	if q, err = p.Approve(ctx, q.ID); err != nil {
		t.Fatal(err)
	}
	c, err := p.Find(ctx, alice, strconv.FormatInt(q.CertificateID, 10))
	if err != nil || !c.ForEncryption() || len(c.X509.ExtKeyUsage) != 1 {
		t.Errorf("%v, %v", c, err)
	}
}

// TestForgedRecipients checks that nothing is encrypted for a certificate that its authority here has not signed, and
// nothing for an authority.
func TestForgedRecipients(t *testing.T) {
	p, _ := manage(t)
	c := p.issue(t, keys.IssueOrder{})
	check, err := p.Receiving(t.Context(), c.X509.NotBefore.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if err := check(c.X509); err != nil {
		t.Errorf("the certificate itself: %v", err)
	}
	der := bytes.Clone(c.X509.Raw)
	der[len(der)-3] ^= 1
	forged, err := x509gost.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots, _, err := p.Authority.Trusted(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, cert := range append(roots, forged) {
		if err := check(cert); !fault.Is(err, fault.InvalidRecipients) || errors.Is(err, keys.ErrNoRecipient) != cert.IsCA {
			t.Errorf("%s: %v", cert.Subject, err)
		}
	}
}
