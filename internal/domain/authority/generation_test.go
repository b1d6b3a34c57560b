// SPDX-License-Identifier: Apache-2.0

package authority_test

import (
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"tamga/internal/domain/authority"
	"tamga/internal/domain/fault"
	"tamga/internal/judge"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
)

// TestRollover has OpenSSL verify certificates from before and after a rollover, by programs that trust
// the old root, the new root or both, with lists and OCSP answers.
func TestRollover(t *testing.T) {
	tool := judge.OpenSSL(t)
	s, _, c := bootstrapped(t)
	ctx := t.Context()
	pemOf := func(kind string, ders ...[]byte) (out []byte) {
		for _, der := range ders {
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})...)
		}
		return out
	}
	cert := func(name string) []byte { return must[[]byte](t)(s.Certificate(ctx, name)) }
	list := func(name string) []byte { return must[[]byte](t)(s.CRL(ctx, name)) }
	for _, h := range []struct {
		name string
		su   *suite.Suite
	}{{"gost", suite.GOST2012x512}, {"ecdsa", suite.RSASHA256}} {
		t.Run(h.name, func(t *testing.T) {
			root, root2, ca, ca2 := h.name+"-root", h.name+"-root-2", h.name, h.name+"-2"
			before := issue(t, s, h.su)
			oldRoot := cert(root)
			made, err := s.Rollover(ctx, h.name, true)
			if want := fmt.Sprint([]string{root2, root2 + "-by-" + root, root + "-by-" + root2, ca2}); err != nil || fmt.Sprint(made) != want {
				t.Fatalf("made %v, %v, want %s", made, err, want)
			}
			if string(cert(root)) != string(oldRoot) {
				t.Error("the old root changed")
			}
			after := issue(t, s, h.su)
			if got := after.Issuer.String(); !strings.Contains(got, "Issuing CA 2") {
				t.Errorf("issued by %s after the rollover", got)
			}
			newByOld, oldByNew := cert(root2+"-by-"+root), cert(root+"-by-"+root2)
			// Lists of old and new authorities are renewed and revoke.
			gone, goneAfter := issue(t, s, h.su), issue(t, s, h.su)
			for _, x := range []*x509gost.Certificate{gone, goneAfter} {
				if err := s.Revoke(ctx, x.SerialNumber, 1, c.now()); err != nil {
					t.Fatal(err)
				}
			}
			for _, v := range []struct {
				what           string
				trusted, extra []byte
				untrusted      [][]byte
				leaf           *x509gost.Certificate
				bad            bool
			}{
				{what: "old certificate, old root", trusted: cert(root), untrusted: [][]byte{cert(ca)}, leaf: before},
				{what: "new certificate, new root", trusted: cert(root2), untrusted: [][]byte{cert(ca2)}, leaf: after},
				{what: "new certificate, old root", trusted: cert(root), untrusted: [][]byte{cert(ca2), newByOld}, leaf: after},
				{what: "old certificate, new root", trusted: cert(root2), untrusted: [][]byte{cert(ca), oldByNew}, leaf: before},
				{what: "new certificate, old root, no cross", trusted: cert(root), untrusted: [][]byte{cert(ca2)}, leaf: after, bad: true},
				{what: "revoked, old root", trusted: cert(root), untrusted: [][]byte{cert(ca2), newByOld}, leaf: gone, bad: true},
				{what: "revoked, new root", trusted: cert(root2), untrusted: [][]byte{cert(ca2)}, leaf: goneAfter, bad: true},
			} {
				tool.Write("trusted.pem", pemOf("CERTIFICATE", v.trusted))
				tool.Write("untrusted.pem", pemOf("CERTIFICATE", v.untrusted...))
				tool.Write("leaf.pem", pemOf("CERTIFICATE", v.leaf.Raw))
				tool.Write("lists.pem", pemOf("X509 CRL", list(root), list(root2), list(ca), list(ca2)))
				_, err := tool.Run("verify", "-x509_strict", "-attime", fmt.Sprint(c.now().Unix()), "-purpose", "smimesign",
					"-CAfile", "trusted.pem", "-untrusted", "untrusted.pem", "-CRLfile", "lists.pem", "-crl_check_all", "leaf.pem")
				if (err != nil) != v.bad {
					t.Errorf("%s: %v", v.what, err)
				}
			}
			// Answers of the old and of the new responder.
			for _, a := range []struct {
				name string
				leaf *x509gost.Certificate
				want string
			}{{ca, before, "good"}, {ca2, after, "good"}, {ca2, gone, "revoked"}} {
				tool.Write("ca.pem", pemOf("CERTIFICATE", cert(a.name)))
				tool.Write("leaf.pem", pemOf("CERTIFICATE", a.leaf.Raw))
				tool.Write("roots.pem", pemOf("CERTIFICATE", cert(root), cert(root2)))
				must[string](t)(tool.Run("ocsp", "-issuer", "ca.pem", "-cert", "leaf.pem", "-reqout", "req.der"))
				tool.Write("resp.der", must[[]byte](t)(s.OCSP(ctx, tool.Read("req.der"))))
				out, err := tool.Run("ocsp", "-no_nonce", "-issuer", "ca.pem", "-cert", "leaf.pem", "-CAfile", "roots.pem", "-verify_other", "ca.pem",
					"-reqin", "req.der", "-respin", "resp.der", "-attime", fmt.Sprint(c.now().Unix()))
				if err != nil || !strings.Contains(out, a.want) {
					t.Errorf("OCSP of %s: %q, %v", a.name, out, err)
				}
			}
			// The new issuing authority certified the stamper.
			digest := map[string]string{"gost": "md_gost12_256", "ecdsa": "sha256"}[h.name]
			tool.Write("document", []byte("document"))
			must[string](t)(tool.Run("ts", "-query", "-data", "document", "-"+digest, "-cert", "-out", "req.tsq"))
			stamp := must[[]byte](t)(s.TimeStamp(ctx, tool.Read("req.tsq")))
			tool.Write("resp.tsr", stamp)
			tool.Write("root2.pem", pemOf("CERTIFICATE", cert(root2)))
			if _, err := tool.Run("ts", "-verify", "-queryfile", "req.tsq", "-in", "resp.tsr", "-CAfile", "root2.pem", "-attime", fmt.Sprint(c.now().Unix())); err != nil {
				t.Error(err)
			}
			must[*tsp.Token](t)(tsp.ParseResponse(stamp))
		})
	}
	// Maintenance goes on for all generations, long after.
	c.advance(40 * 24 * time.Hour)
	if err := s.Maintain(ctx); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"gost", "gost-2", "gost-root", "gost-root-2"} {
		crl := must[*x509gost.RevocationList](t)(x509gost.ParseRevocationList(list(name)))
		if !crl.NextUpdate.After(c.now()) {
			t.Errorf("the list of %s ended", name)
		}
	}
	// A third generation follows the second one, under the present root.
	made, err := s.Rollover(ctx, "gost", false)
	if err != nil || fmt.Sprint(made) != "[gost-3]" {
		t.Errorf("made %v, %v", made, err)
	}
	for _, name := range []string{"gost-4", "gost-02", "gost-1", "gost-x", "gost-root-9", "gost-root-2-by-gost", "a-by-b", "gost-99999999999999999999"} {
		_, certErr := s.Certificate(ctx, name)
		_, crlErr := s.CRL(ctx, name)
		if !fault.Is(certErr, fault.NotFound) || !fault.Is(crlErr, fault.NotFound) {
			t.Errorf("%s: %v, %v", name, certErr, crlErr)
		}
	}
	if _, err := s.Rollover(ctx, "rsa", true); !errors.Is(err, authority.ErrNoAuthority) {
		t.Errorf("an unknown hierarchy: %v", err)
	}
}

// TestRenew has OpenSSL verify an old certificate under renewed ones of both authorities.
func TestRenew(t *testing.T) {
	tool := judge.OpenSSL(t)
	s, _, c := bootstrapped(t)
	ctx := t.Context()
	leaf := issue(t, s, suite.GOST2012x256)
	write := func(file string, der []byte) {
		tool.Write(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	write("leaf.pem", leaf.Raw)
	c.advance(24 * time.Hour)
	for _, name := range []string{"gost", "gost-root"} {
		before := must[*x509gost.Certificate](t)(x509gost.ParseCertificate(must[[]byte](t)(s.Certificate(ctx, name))))
		renewed, err := s.Renew(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		if !renewed.NotAfter.After(before.NotAfter) && name == "gost-root" || string(renewed.SubjectKeyID) != string(before.SubjectKeyID) ||
			string(renewed.RawSubject) != string(before.RawSubject) || string(renewed.SerialNumber) == string(before.SerialNumber) {
			t.Errorf("%s: until %s, before until %s", name, renewed.NotAfter, before.NotAfter)
		}
		if now := must[[]byte](t)(s.Certificate(ctx, name)); string(now) != string(renewed.Raw) {
			t.Errorf("%s is not served renewed", name)
		}
		write("root.pem", must[[]byte](t)(s.Certificate(ctx, "gost-root")))
		write("ca.pem", must[[]byte](t)(s.Certificate(ctx, "gost")))
		if _, err := tool.Run("verify", "-x509_strict", "-attime", fmt.Sprint(c.now().Unix()), "-CAfile", "root.pem", "-untrusted", "ca.pem", "leaf.pem"); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
	}
	if _, err := s.Renew(ctx, "gost-7"); !errors.Is(err, authority.ErrNoAuthority) {
		t.Errorf("a generation that does not exist: %v", err)
	}
	if _, err := s.Renew(ctx, "unknown"); !errors.Is(err, authority.ErrNoAuthority) {
		t.Errorf("an unknown authority: %v", err)
	}
}

// TestAnchorsOfAnotherProcess checks that the authorities of a rollover are anchors of another
// process at once, although it has grouped the ones before.
func TestAnchorsOfAnotherProcess(t *testing.T) {
	s, db, c := bootstrapped(t)
	ctx := t.Context()
	other := newService(t, db, c, 2)
	for range 2 { // the second time from memory
		roots, issuing, err := other.Anchors(ctx)
		if err != nil || len(roots) != 2 || len(issuing) != 2 {
			t.Fatalf("%d roots, %d others, %v", len(roots), len(issuing), err)
		}
	}
	if _, err := s.Rollover(ctx, "gost", true); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		roots, issuing, err := other.Anchors(ctx)
		if err != nil || len(roots) != 3 || len(issuing) != 3 {
			t.Fatalf("after a rollover: %d roots, %d others, %v", len(roots), len(issuing), err)
		}
		newest, err := s.Certificate(ctx, "gost-root-2")
		if err != nil || string(roots[0].Raw) != string(newest) {
			t.Errorf("the first root is %s, %v", roots[0].Subject, err)
		}
	}
}
