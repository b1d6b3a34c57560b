// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"bytes"
	"encoding/pem"
	"errors"
	"slices"
	"strconv"
	"testing"

	"tamga/internal/judge"
	"tamga/pki/chain"
	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// resigned replaces bytes that occur once in the signed part of a list or an answer and signs
// the result again.
func (w *world) resigned(by *holder, der, signed, signature, from, to []byte) []byte {
	w.t.Helper()
	if len(from) != len(to) || bytes.Count(signed, from) != 1 || bytes.Count(der, signed) != 1 {
		w.t.Fatalf("%x occurs %d times", from, bytes.Count(signed, from))
	}
	changed := bytes.Replace(signed, from, to, 1)
	s := suite.GOST2012x256
	value, err := x509gost.SignWith(nil, by.key, s)(s.Hash.Digest(changed))
	if err != nil {
		w.t.Fatal(err)
	}
	return bytes.Replace(bytes.Replace(der, signed, changed, 1), signature, value, 1)
}

// TestUnknownReason checks that a certificate is revoked when the reason is one that RFC 5280
// does not define. OpenSSL agrees for lists.
func TestUnknownReason(t *testing.T) {
	w := &world{t: t}
	root := w.authority("Root", nil)
	leaf, other, good := w.leaf(root), w.leaf(root), w.leaf(root)
	at := now.AddDate(0, -1, 0)
	list := w.crl(root, now, end, nil,
		x509gost.RevokedEntry{SerialNumber: leaf.cert.SerialNumber, At: at, Reason: 4},
		x509gost.RevokedEntry{SerialNumber: other.cert.SerialNumber, At: at, Reason: 1})
	answer := w.answer(root, leaf, root, ocsp.Single{Status: ocsp.Revoked, RevokedAt: at, Reason: 4, ThisUpdate: now, NextUpdate: end})
	tool := judge.OpenSSL(t)
	pemOf := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	tool.Write("root.pem", pemOf("CERTIFICATE", root.cert.Raw))
	for name, code := range map[string][]byte{"7": {0x0a, 1, 7}, "11": {0x0a, 1, 11}, "-1": {0x0a, 1, 0xff}, "not an ENUMERATED": {4, 1, 4}} {
		changed, err := x509gost.ParseRevocationList(w.resigned(root, list.Raw, list.RawTBS, list.Signature, []byte{0x0a, 1, 4}, code))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := changed.CheckSignatureFrom(root.cert); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(changed.Deviations, "the reason of an entry is not a CRLReason") {
			t.Errorf("%s: deviations %q", name, changed.Deviations)
		}
		for c, reason := range map[*holder]int{leaf: 0, other: 1} {
			if e, ok := changed.Find(c.cert.SerialNumber); !ok || e.Reason != reason || !e.At.Equal(at) {
				t.Errorf("%s: entry %+v, %t", name, e, ok)
			}
		}
		build := func(c *holder, o chain.Options) error {
			o.Roots, o.At, o.RequireRevocation = certs(root), now, true
			_, err := chain.Build(c.cert, o)
			return err
		}
		o := chain.Options{CRLs: []*x509gost.RevocationList{changed}}
		if err := build(good, o); err != nil {
			t.Errorf("%s: the list does not clear: %v", name, err)
		}
		if err := build(leaf, o); !errors.Is(err, chain.ErrRevoked) {
			t.Errorf("%s: the list does not revoke: %v", name, err)
		}
		if code[0] != 0x0a {
			continue // an answer of another structure, which OpenSSL refuses as well as such a list
		}
		raw := w.resigned(root, answer.Raw, answer.RawTBS, answer.Signature, []byte{0x0a, 1, 4}, code)
		b, err := ocsp.ParseBasic(raw)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := build(leaf, chain.Options{OCSP: []*ocsp.Basic{b}}); !errors.Is(err, chain.ErrRevoked) || b.Singles[0].Reason != 0 {
			t.Errorf("%s: the answer does not revoke: %v, reason %d", name, err, b.Singles[0].Reason)
		}
		tool.Write("list.pem", pemOf("X509 CRL", changed.Raw))
		for c, revoked := range map[*holder]bool{leaf: true, good: false} {
			tool.Write("leaf.pem", pemOf("CERTIFICATE", c.cert.Raw))
			_, err := tool.Run("verify", "-crl_check", "-attime", strconv.FormatInt(now.Unix(), 10), "-CAfile", "root.pem", "-CRLfile", "list.pem", "leaf.pem")
			if (err != nil) != revoked {
				t.Errorf("%s: OpenSSL: %v", name, err)
			}
		}
	}
}
