// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/gost/gost3410"
	"tamga/pki/chain"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

var (
	start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now   = start.AddDate(0, 6, 0)
	end   = start.AddDate(1, 0, 0)
)

// holder is a key with its certificate.
type holder struct {
	key  crypto.Signer
	cert *x509gost.Certificate
}

// world makes certificates with new keys and serial numbers.
type world struct {
	t    testing.TB
	next byte
}

func (w *world) key() crypto.Signer {
	w.next++
	d := make([]byte, 32)
	d[0], d[1] = w.next, 7
	key, err := gost3410.NewPrivateKey(gost3410.CryptoProA, d)
	if err != nil {
		w.t.Fatal(err)
	}
	return key
}

func (w *world) template(cn string, ca bool) *x509gost.Template {
	name, err := x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: cn}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.next++
	t := &x509gost.Template{
		Subject: name, SerialNumber: []byte{w.next}, NotBefore: start, NotAfter: end,
		IsCA: ca, MaxPathLen: -1, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if ca {
		t.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	}
	return t
}

// issue certifies key. A nil issuer means self-signed.
func (w *world) issue(t *x509gost.Template, key crypto.Signer, issuer *holder) *holder {
	w.t.Helper()
	signer, cert := key, (*x509gost.Certificate)(nil)
	if issuer != nil {
		signer, cert = issuer.key, issuer.cert
	}
	s := suite.GOST2012x256
	der, err := x509gost.CreateCertificate(t, cert, key.Public(), s, s, x509gost.SignWith(nil, signer, s))
	if err != nil {
		w.t.Fatal(err)
	}
	c, err := x509gost.ParseCertificate(der)
	if err != nil {
		w.t.Fatal(err)
	}
	return &holder{key, c}
}

func (w *world) authority(cn string, issuer *holder) *holder {
	return w.issue(w.template(cn, true), w.key(), issuer)
}

func (w *world) leaf(issuer *holder) *holder {
	return w.issue(w.template("Leaf", false), w.key(), issuer)
}

func (w *world) crl(issuer *holder, from, to time.Time, extra []x509gost.Extension, revoked ...x509gost.RevokedEntry) *x509gost.RevocationList {
	w.t.Helper()
	s := suite.GOST2012x256
	der, err := x509gost.CreateRevocationList(&x509gost.CRLTemplate{
		ThisUpdate: from, NextUpdate: to, Number: []byte{1}, Revoked: revoked, ExtraExtensions: extra,
	}, issuer.cert, s, x509gost.SignWith(nil, issuer.key, s))
	if err != nil {
		w.t.Fatal(err)
	}
	l, err := x509gost.ParseRevocationList(der)
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

func certs(list ...*holder) (out []*x509gost.Certificate) {
	for _, h := range list {
		out = append(out, h.cert)
	}
	return out
}

func codes(v *chain.Result) (out []string) {
	for _, f := range v.Findings {
		out = append(out, fmt.Sprintf("%s:%v", f.Code, f.Fatal))
	}
	return out
}

func TestPath(t *testing.T) {
	w := &world{t: t}
	root := w.authority("Root", nil)
	middle := w.authority("Middle", root)
	issuing := w.authority("Issuing", middle)
	leaf := w.leaf(issuing)
	foreign := w.authority("Root", nil) // another key under the root's name

	v, err := chain.Build(leaf.cert, chain.Options{
		Roots:         certs(foreign, root),
		Intermediates: certs(foreign, middle, leaf, issuing, root),
		At:            now,
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := certs(leaf, issuing, middle, root); !slices.EqualFunc(v.Chain, want, (*x509gost.Certificate).Equal) {
		t.Errorf("a path of %d certificates", len(v.Chain))
	}
	if got := codes(v); !slices.Equal(got, []string{"revocation-unknown:false", "revocation-unknown:false", "revocation-unknown:false"}) {
		t.Errorf("findings %v", got)
	}
	if v, err := chain.Build(root.cert, chain.Options{Roots: certs(root), At: now}); err != nil || len(v.Chain) != 1 {
		t.Errorf("an anchor itself: %v", err)
	}
	// A leaf may be trusted directly.
	if v, err := chain.Build(leaf.cert, chain.Options{Roots: certs(leaf), At: now}); err != nil || len(v.Chain) != 1 {
		t.Errorf("a trusted leaf: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	w := &world{t: t}
	root := w.authority("Root", nil)
	ca := w.authority("Issuing", root)
	leaf := w.leaf(ca)
	with := func(cn string, isCA bool, issuer *holder, change func(*x509gost.Template)) *holder {
		tmpl := w.template(cn, isCA)
		change(tmpl)
		return w.issue(tmpl, w.key(), issuer)
	}
	expiredCA := with("Expired", true, root, func(t *x509gost.Template) { t.NotAfter = now.Add(-time.Hour) })
	noCA := with("NoCA", false, root, func(t *x509gost.Template) { t.KeyUsage = x509.KeyUsageCertSign })
	noSign := with("NoSign", true, root, func(t *x509gost.Template) { t.KeyUsage = x509.KeyUsageCRLSign })
	short := with("Short", true, root, func(t *x509gost.Template) { t.MaxPathLen = 0 })
	under := w.authority("Under", short)
	timeCA := with("TimeCA", true, root, func(t *x509gost.Template) { t.ExtKeyUsage = []x509gost.OID{x509gost.UsageTimeStamping} })
	mail := with("Mail", false, ca, func(t *x509gost.Template) { t.ExtKeyUsage = []x509gost.OID{x509gost.UsageEmailProtection} })
	strange := with("Strange", false, ca, func(t *x509gost.Template) {
		t.ExtraExtensions = []x509gost.Extension{{OID: x509gost.OID{1, 2, 3}, Critical: true, Value: []byte{5, 0}}}
	})
	constrained := with("Constrained", true, root, func(t *x509gost.Template) {
		t.ExtraExtensions = []x509gost.Extension{{OID: x509gost.OID{2, 5, 29, 30}, Critical: true, Value: []byte{0x30, 0}}}
	})
	impostor := w.authority("Issuing", nil)

	for _, c := range []struct {
		name  string
		leaf  *holder
		ca    []*holder
		usage []x509gost.OID
		at    time.Time
		want  error
		code  string
	}{
		{"expired", leaf, []*holder{ca}, nil, end.Add(time.Second), chain.ErrExpired, chain.CodeExpired},
		{"not yet valid", leaf, []*holder{ca}, nil, start.Add(-time.Nanosecond), chain.ErrNotYetValid, chain.CodeNotYetValid},
		{"expired authority", w.leaf(expiredCA), []*holder{expiredCA}, nil, now, chain.ErrExpired, chain.CodeExpired},
		{"issuer is no authority", w.leaf(noCA), []*holder{noCA}, nil, now, chain.ErrUsage, chain.CodeNotAuthority},
		{"issuer without keyCertSign", w.leaf(noSign), []*holder{noSign}, nil, now, chain.ErrUsage, chain.CodeKeyUsage},
		{"path too long", w.leaf(under), []*holder{under, short}, nil, now, chain.ErrUsage, chain.CodePathLength},
		{"unknown critical extension", strange, []*holder{ca}, nil, now, chain.ErrUsage, chain.CodeCriticalExtension},
		{"name constraints", w.leaf(constrained), []*holder{constrained}, nil, now, chain.ErrUsage, chain.CodeCriticalExtension},
		{"leaf for another use", mail, []*holder{ca}, []x509gost.OID{x509gost.UsageTimeStamping}, now, chain.ErrUsage, chain.CodeExtendedUsage},
		{"authority for another use", w.leaf(timeCA), []*holder{timeCA}, []x509gost.OID{x509gost.UsageEmailProtection}, now, chain.ErrUsage, chain.CodeExtendedUsage},
		{"issuer missing", leaf, nil, nil, now, chain.ErrNoPath, chain.CodeNoPath},
		{"untrusted self-issued", impostor, nil, nil, now, chain.ErrNoPath, chain.CodeNoPath},
		{"forged issuer name", leaf, []*holder{impostor}, nil, now, chain.ErrSignature, chain.CodeSignature},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := chain.Build(c.leaf.cert, chain.Options{Roots: certs(root), Intermediates: certs(c.ca...), At: c.at, Usage: c.usage})
			var refusal *chain.Error
			if !errors.Is(err, c.want) || !errors.As(err, &refusal) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			if !slices.Contains(codes(v), c.code+":true") {
				t.Errorf("findings %v, want %s", codes(v), c.code)
			}
			if !strings.Contains(err.Error(), "serial") {
				t.Errorf("the error names no certificate: %v", err)
			}
		})
	}
	if _, err := chain.Build(mail.cert, chain.Options{Roots: certs(root), Intermediates: certs(ca), At: now, Usage: []x509gost.OID{x509gost.UsageClientAuth, x509gost.UsageEmailProtection}}); err != nil {
		t.Errorf("one of two uses: %v", err)
	}
	if _, err := chain.Build(leaf.cert, chain.Options{Roots: certs(root), Intermediates: certs(ca), At: end}); err != nil {
		t.Errorf("the last second: %v", err)
	}
	forged := bytes.Clone(leaf.cert.Raw)
	forged[len(forged)-1] ^= 1
	c, err := x509gost.ParseCertificate(forged)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chain.Build(c, chain.Options{Roots: certs(root), Intermediates: certs(ca), At: now}); !errors.Is(err, chain.ErrSignature) {
		t.Errorf("a changed certificate: %v", err)
	}
}

func TestRevocation(t *testing.T) {
	w := &world{t: t}
	root := w.authority("Root", nil)
	ca := w.authority("Issuing", root)
	leaf := w.leaf(ca)
	impostor := w.authority("Issuing", nil)
	tmpl := w.template("Mute", true)
	tmpl.KeyUsage = x509.KeyUsageCertSign
	mute := w.issue(tmpl, w.key(), root)

	day := 24 * time.Hour
	from, to := now.Add(-day), now.Add(day)
	rootList := w.crl(root, from, to, nil)
	at := func(h *holder, when time.Time, reason int) x509gost.RevokedEntry {
		return x509gost.RevokedEntry{SerialNumber: h.cert.SerialNumber, At: when, Reason: reason}
	}
	critical := []x509gost.Extension{{OID: x509gost.OID{2, 5, 29, 27}, Critical: true, Value: []byte{2, 1, 1}}} // a delta list
	authorities := []x509gost.Extension{{OID: x509gost.OIDIssuingPoint, Critical: true, Value: []byte{0x30, 3, 0x82, 1, 0xff}}}
	type lists []*x509gost.RevocationList
	for _, c := range []struct {
		name  string
		lists lists
		leaf  *holder
		ca    *holder
		want  error // with RequireRevocation
		code  string
	}{
		{"clear", lists{rootList, w.crl(ca, from, to, nil)}, leaf, ca, nil, ""},
		{"another certificate revoked", lists{rootList, w.crl(ca, from, to, nil, at(root, from, 0))}, leaf, ca, nil, ""},
		{"revoked before", lists{rootList, w.crl(ca, from, to, nil, at(leaf, now, 1))}, leaf, ca, chain.ErrRevoked, "revoked:true"},
		{"revoked after", lists{rootList, w.crl(ca, from, to, nil, at(leaf, now.Add(time.Second), 1))}, leaf, ca, nil, "revoked-later:false"},
		{"revoked in one of two", lists{rootList, w.crl(ca, from, to, nil), w.crl(ca, from, to, nil, at(leaf, from, 4))}, leaf, ca, chain.ErrRevoked, "revoked:true"},
		{"revoked in an old list", lists{rootList, w.crl(ca, from.Add(-9*day), from, nil, at(leaf, from.Add(-9*day), 1))}, leaf, ca, chain.ErrRevoked, "revoked:true"},
		{"authority revoked", lists{w.crl(root, from, to, nil, at(ca, from, 2)), w.crl(ca, from, to, nil)}, leaf, ca, chain.ErrRevoked, "revoked:true"},
		{"none", nil, leaf, ca, chain.ErrRevocationUnknown, "revocation-unknown:true"},
		{"no list for the leaf", lists{rootList}, leaf, ca, chain.ErrRevocationUnknown, "revocation-unknown:true"},
		{"stale", lists{rootList, w.crl(ca, from.Add(-9*day), now, nil)}, leaf, ca, chain.ErrRevocationUnknown, "crl-stale:false"},
		{"made later", lists{rootList, w.crl(ca, now.Add(time.Second), to, nil)}, leaf, ca, nil, ""},
		{"made after the certificate expired", lists{rootList, w.crl(ca, end.Add(time.Second), end.Add(day), nil)}, leaf, ca, chain.ErrRevocationUnknown, "crl-stale:false"},
		{"forged", lists{rootList, w.crl(impostor, from, to, nil)}, leaf, ca, chain.ErrRevocationUnknown, "crl-unusable:false"},
		{"delta", lists{rootList, w.crl(ca, from, to, critical)}, leaf, ca, chain.ErrRevocationUnknown, "crl-unusable:false"},
		{"of authorities only", lists{rootList, w.crl(ca, from, to, authorities)}, leaf, ca, chain.ErrRevocationUnknown, "crl-unusable:false"},
		{"issuer may not sign lists", lists{rootList, w.crl(mute, from, to, nil)}, w.leaf(mute), mute, chain.ErrRevocationUnknown, "crl-unusable:false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := chain.Options{Roots: certs(root), Intermediates: certs(c.ca), CRLs: c.lists, At: now, RequireRevocation: true}
			v, err := chain.Build(c.leaf.cert, o)
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			if got := codes(v); c.code == "" && len(got) != 0 || c.code != "" && !slices.Contains(got, c.code) {
				t.Errorf("findings %v, want %q", got, c.code)
			}
			// Unknown revocation is not fatal when RequireRevocation is false.
			o.RequireRevocation = false
			if _, err := chain.Build(c.leaf.cert, o); (err != nil) != (c.want == chain.ErrRevoked) {
				t.Errorf("without RequireRevocation: %v", err)
			}
		})
	}
}

// TestCrossCertificates checks that a path around an expired certificate is found.
func TestCrossCertificates(t *testing.T) {
	w := &world{t: t}
	oldRoot, newRoot := w.authority("Old", nil), w.authority("New", nil)
	key := w.key()
	expired := w.template("Issuing", true)
	expired.NotAfter = now.Add(-time.Hour)
	first := w.issue(expired, key, oldRoot)
	second := w.issue(w.template("Issuing", true), key, newRoot)
	leaf := w.leaf(first)
	v, err := chain.Build(leaf.cert, chain.Options{Roots: certs(oldRoot, newRoot), Intermediates: certs(first, second), At: now})
	if err != nil {
		t.Fatal(err)
	}
	if !v.Chain[1].Equal(second.cert) {
		t.Error("the path goes over the expired certificate")
	}
}

// TestBounds checks that circles and many certificates of one name end soon.
func TestBounds(t *testing.T) {
	w := &world{t: t}
	root := w.authority("Root", nil)
	a, b := w.key(), w.key()
	ha := &holder{a, w.issue(w.template("A", true), a, nil).cert}
	hb := &holder{b, w.issue(w.template("B", true), b, nil).cert}
	ab, ba := w.issue(w.template("A", true), a, hb), w.issue(w.template("B", true), b, ha)
	if _, err := chain.Build(w.leaf(ha).cert, chain.Options{Roots: certs(root), Intermediates: certs(ab, ba), At: now}); !errors.Is(err, chain.ErrNoPath) {
		t.Errorf("a circle: %v", err)
	}
	// One valid certificate among many of the same name is found. If all of them are
	// invalid, the number of signature checks is limited.
	var bomb []*holder
	for range 120 {
		bomb = append(bomb, w.issue(w.template("Issuing", true), a, nil))
	}
	good := w.authority("Issuing", root)
	leaf := w.leaf(good)
	if _, err := chain.Build(leaf.cert, chain.Options{Roots: certs(root), Intermediates: certs(append(bomb, good)...), At: now}); err != nil {
		t.Errorf("the key identifier leads to the right one first: %v", err)
	}
	_, err := chain.Build(leaf.cert, chain.Options{Roots: certs(root), Intermediates: certs(bomb...), At: now})
	if !errors.Is(err, chain.ErrNoPath) || !strings.Contains(err.Error(), "100 signatures") {
		t.Errorf("the search does not stop at its limit: %.200v", err)
	}
	// A path that is too long.
	last := root
	var list []*holder
	for i := range 12 {
		last = w.authority(fmt.Sprint("Level ", i), last)
		list = append(list, last)
	}
	if _, err := chain.Build(w.leaf(last).cert, chain.Options{Roots: certs(root), Intermediates: certs(list...), At: now}); !errors.Is(err, chain.ErrNoPath) {
		t.Errorf("a path of 14: %v", err)
	}
	if _, err := chain.Build(w.leaf(list[7]).cert, chain.Options{Roots: certs(root), Intermediates: certs(list...), At: now}); err != nil {
		t.Errorf("a path of 10: %v", err)
	}
}

func TestPrivateKeyPeriod(t *testing.T) {
	w := &world{t: t}
	root := w.authority("Root", nil)
	tmpl := w.template("Leaf", false)
	tmpl.PrivateKeyNotAfter = now.Add(-time.Hour)
	v, err := chain.Build(w.issue(tmpl, w.key(), root).cert, chain.Options{Roots: certs(root), At: now})
	if err != nil || !slices.Contains(codes(v), "private-key-period:false") {
		t.Errorf("%v, findings %v", err, codes(v))
	}
}

func BenchmarkBuild(b *testing.B) {
	w := &world{t: b}
	root := w.authority("Root", nil)
	ca := w.authority("Issuing", root)
	leaf := w.leaf(ca)
	o := chain.Options{
		Roots: certs(root), Intermediates: certs(ca), At: now, RequireRevocation: true,
		CRLs: []*x509gost.RevocationList{w.crl(root, start, end, nil), w.crl(ca, start, end, nil)},
	}
	for b.Loop() {
		if _, err := chain.Build(leaf.cert, o); err != nil {
			b.Fatal(err)
		}
	}
}
