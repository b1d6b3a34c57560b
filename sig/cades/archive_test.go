// SPDX-License-Identifier: Apache-2.0

package cades_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/asn1"
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
)

// handmade makes an archive time stamp as the standard says and not with the code of the package: the
// package makes one form only, and reads more.
type handmade struct {
	index  x509gost.OID // of a v3; nil: a v2
	bare   bool         // a v2 without tag and length of the unsigned attributes
	by     *sigtest.Party
	at     time.Time
	hash   *suite.Hash // of the imprint; nil: of the service's suite
	inside *suite.Hash // of the index; nil: the same
	skip   []int       // places of unsigned attributes that the index omits
	more   []byte      // one more digest of a certificate
	crl    []byte      // one more digest of a revocation list
}

// sequence joins elements.
func sequence(elements ...[]byte) []byte { return element(0x30, elements...) }

func (h *handmade) token(t testing.TB, imprint suite.Digest) []byte {
	t.Helper()
	der, err := tsp.CreateToken(&tsp.Info{Policy: x509gost.OID{1, 2, 3}, Digest: imprint, Serial: []byte{7}, Time: h.at},
		h.by.Certificate, append([]*x509gost.Certificate{h.by.Certificate}, h.by.Chain...), h.by.Suite, x509gost.SignWith(sigtest.Random(3), h.by.Key, h.by.Suite))
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// fieldsOf returns the fields of a SignerInfo in DER up to the signature.
func fieldsOf(info *cms.SignerInfo) []byte {
	body := info.Raw[headerOf(info.Raw):]
	var out []byte
	for len(body) > 0 {
		n := headerOf(body)
		size := int(body[1])
		if n > 2 {
			size = 0
			for _, b := range body[2:n] {
				size = size<<8 | int(b)
			}
		}
		if body[0] == 0xa1 {
			break
		}
		out, body = append(out, body[:n+size]...), body[n+size:]
	}
	return out
}

// add stamps the first signature of a message.
func (h *handmade) add(t testing.TB, message, content []byte) []byte {
	t.Helper()
	m := mustParse(t, message)
	s := m.Signers[0]
	hash := h.hash
	if hash == nil {
		hash = h.by.Suite.Hash
	}
	if h.index == nil {
		var attrs []byte
		for _, a := range s.UnsignedAttrs {
			if a.OID.Equal(cms.OIDArchiveTimeStampV3) || a.OID.Equal(cms.OIDArchiveTimeStampV2) {
				if token, err := tsp.ParseToken(a.Values[0]); err != nil || !token.Info.Time.Before(h.at) {
					continue
				}
			}
			attrs = append(attrs, a.Raw...)
		}
		if !h.bare {
			attrs = element(0xa1, attrs)
		}
		encap := section(message, m.EncapContentInfo)
		if !m.Detached {
			content = nil
		}
		certs := element(0xa0, m.Certificates...)
		var lists []byte
		if len(m.CRLs) > 0 {
			lists = element(0xa1, m.CRLs...)
		}
		token := h.token(t, hash.Digest(slices.Concat(encap, content, certs, lists, fieldsOf(s), attrs)))
		return withUnsigned(t, message, cms.NewAttribute(cms.OIDArchiveTimeStampV2, token))
	}
	inside := h.inside
	if inside == nil {
		inside = hash
	}
	digests := func(list [][]byte) []byte {
		var out [][]byte
		for _, raw := range list {
			out = append(out, element(4, inside.Digest(raw).Sum))
		}
		return sequence(out...)
	}
	var attrs [][]byte
	for i, a := range s.UnsignedAttrs {
		if slices.Contains(h.skip, i) {
			continue
		}
		oid, _ := asn1.Marshal(a.OID)
		if !h.index.Equal(cms.OIDHashIndexV3) {
			attrs = append(attrs, a.Raw)
			continue
		}
		for _, v := range a.Values {
			attrs = append(attrs, slices.Concat(oid, v))
		}
	}
	algorithm, _ := asn1.Marshal(inside.OID)
	if algorithm = sequence(algorithm); h.index.Equal(cms.OIDHashIndex) && inside == suite.SHA256 {
		algorithm = nil
	}
	certs, lists := digests(m.Certificates), digests(m.CRLs)
	if h.more != nil {
		certs = sequence(certs[headerOf(certs):], element(4, h.more))
	}
	if h.crl != nil {
		lists = sequence(lists[headerOf(lists):], element(4, h.crl))
	}
	index := sequence(algorithm, certs, lists, digests(attrs))
	oid, _ := asn1.Marshal(m.ContentType)
	token := h.token(t, hash.Digest(slices.Concat(oid, hash.Digest(content).Sum, fieldsOf(s), index)))
	return withUnsigned(t, message, cms.NewAttribute(cms.OIDArchiveTimeStampV3, withUnsigned(t, token, cms.NewAttribute(h.index, index))))
}

// withUnsigned appends an unsigned attribute to the first signature of a message.
func withUnsigned(t testing.TB, message []byte, a cms.Attribute) []byte {
	t.Helper()
	m := mustParse(t, message)
	raw, err := m.Signers[0].AppendUnsigned(a)
	if err != nil {
		t.Fatal(err)
	}
	head, tail, err := m.Rewrite(cms.Changes{Replaced: map[int][]byte{0: raw}})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(head, section(message, m.EncapContentInfo), tail)
}

// checked verifies a message at a time.
func checked(t testing.TB, message, original []byte, at time.Time, roots ...*sigtest.Party) *sig.Report {
	t.Helper()
	c := &sig.Check{Document: sigtest.Document(message), At: at}
	for _, r := range roots {
		c.Roots = append(c.Roots, r.Certificate)
	}
	if original != nil {
		c.Original = sigtest.Document(original)
	}
	r, err := cades.New().Verify(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// has reports whether a signature has a finding whose text contains a part.
func has(s *sig.Signature, code, part string) bool {
	return slices.ContainsFunc(s.Findings, func(f sig.Finding) bool { return f.Code == code && strings.Contains(f.Text, part) })
}

// Every form of an archive time stamp over every suite holds, alone and over one of each other form.
func TestArchiveForms(t *testing.T) {
	forms := map[string]handmade{
		"v3":                 {index: cms.OIDHashIndexV3},
		"v3, second index":   {index: cms.OIDHashIndexV2},
		"v3, first index":    {index: cms.OIDHashIndex},
		"v3, default digest": {index: cms.OIDHashIndex, inside: suite.SHA256},
		"v2":                 {},
		"v2, bare":           {bare: true},
	}
	for _, s := range suite.All() {
		w := newWorld(t, s)
		for _, detached := range []bool{false, true} {
			params, original := sig.Params{}, []byte(nil)
			if detached {
				params, original = sig.Params{"IsDetached": "True"}, text
			}
			message := w.make(t, w.signer, "XLT1", &sig.Job{Document: sigtest.Document(text), Params: params})
			inside, err := tsp.ParseToken(mustParse(t, message).Signers[0].UnsignedAttrs[0].Values[0])
			if err != nil {
				t.Fatal(err)
			}
			for name, form := range forms {
				form.by, form.at = w.services.TSA, sigtest.Time.Add(time.Hour)
				one := form.add(t, message, text)
				r := checked(t, one, original, sigtest.Time.Add(time.Hour), w.root)
				if got := levels(t, r); !slices.Equal(got, []string{"A"}) || len(r.Signatures[0].TimeStamps) != 3 {
					t.Errorf("%s, %s, detached %v: %v %+v", s.Name, name, detached, got, r.Signatures[0])
				}
				if r := checked(t, change(t, one, inside.Message.Signers[0].Signature), original, sigtest.Time, w.root); r.Signatures[0].Level == "A" {
					t.Errorf("%s, %s: a changed time stamp is covered", s.Name, name)
				}
				if s != suite.GOST2012x256 {
					continue
				}
				for second, over := range forms {
					over.by, over.at = w.services.TSA, sigtest.Time.Add(2*time.Hour)
					two := over.add(t, one, text)
					if r := checked(t, two, original, sigtest.Time.Add(2*time.Hour), w.root); r.Signatures[0].Level != "A" || !r.Signatures[0].TimeStamps[3].Passed() || !r.Signatures[0].TimeStamps[2].Passed() {
						t.Errorf("%s under %s: %+v", name, second, r.Signatures[0])
					}
				}
			}
		}
	}
}

// A broken archive time stamp is left out and named. The signature is judged without it.
func TestArchiveRules(t *testing.T) {
	w := newWorld(t, suite.GOST2012x256)
	message := w.make(t, w.signer, "XLT1", &sig.Job{Document: sigtest.Document(text)})
	other := w.make(t, w.signer, "XLT1", &sig.Job{Document: sigtest.Document([]byte("another document"))})
	at := sigtest.Time.Add(time.Hour)
	v3 := func(edit func(*handmade)) handmade {
		h := handmade{index: cms.OIDHashIndexV3, by: w.services.TSA, at: at}
		if edit != nil {
			edit(&h)
		}
		return h
	}
	good := v3(nil)
	stamped := good.add(t, message, text)
	stamp := mustParse(t, stamped).Signers[0].UnsignedAttrs[6]
	foreign := sigtest.Root(t, suite.GOST2001).TimeStamper(t, "Foreign")
	late := w.root.Issue(t, w.root.Suite, "Late Stamper", func(c *x509gost.Template) {
		c.NotBefore = at.Add(time.Minute)
		c.ExtraExtensions = []x509gost.Extension{{OID: x509gost.OIDExtKeyUsage, Critical: true, Value: []byte{0x30, 10, 6, 8, 0x2b, 6, 1, 5, 5, 7, 3, 8}}}
	})
	made := func(h handmade) []byte { return h.add(t, message, text) }
	older := v3(func(h *handmade) { h.at = at.Add(-2 * time.Minute) })
	sum := sha256.Sum256([]byte("nothing"))
	outside := w.services.TSA.Certificate // in the values and in the token alone
	for name, c := range map[string]struct {
		message []byte
		level   string
		code    string
		part    string
	}{
		"good":             {stamped, "A", "", ""},
		"no index":         {withUnsigned(t, message, cms.NewAttribute(cms.OIDArchiveTimeStampV3, good.token(t, suite.GOST2012x256.Hash.Digest(text)))), "XLT1", "time-stamp-invalid", "no index"},
		"no token":         {withUnsigned(t, message, cms.NewAttribute(cms.OIDArchiveTimeStampV3, []byte{5, 0})), "XLT1", "time-stamp-invalid", "place 6"},
		"another document": {withUnsigned(t, other, stamp), "XLT1", "time-stamp-invalid", "2025-03-14T10:26:53Z is invalid: tsp: the token does not answer"},
		"of another text":  {good.add(t, message, []byte("another text")), "XLT1", "time-stamp-invalid", "another digest"},
		"duplicated":       {withUnsigned(t, stamped, stamp), "A", "", ""},
		"index by another algorithm": {made(v3(func(h *handmade) { h.inside = suite.SHA256 })), "XLT1", "time-stamp-invalid",
			"its index has digests by"},
		"imprint by another algorithm":     {made(v3(func(h *handmade) { h.hash = suite.SHA256 })), "A", "", ""},
		"imprint by a weak algorithm":      {made(v3(func(h *handmade) { h.hash = suite.SHA1 })), "XLT1", "time-stamp-invalid", "could be forged"},
		"index of a certificate elsewhere": {made(v3(func(h *handmade) { h.more = suite.GOST2012x256.Hash.Digest(outside.Raw).Sum })), "XLT1", "time-stamp-invalid", "its index names"},
		"index of nothing":                 {made(v3(func(h *handmade) { h.more = sum[:] })), "XLT1", "time-stamp-invalid", "its index names"},
		"index of no list":                 {made(v3(func(h *handmade) { h.crl = sum[:] })), "XLT1", "time-stamp-invalid", "its index names"},
		"digest of another length":         {made(v3(func(h *handmade) { h.more = sum[:31] })), "XLT1", "time-stamp-invalid", "not an OCTET STRING of 32 bytes"},
		"before the certificate":           {made(v3(func(h *handmade) { h.by = late })), "XLT1", "time-stamp-invalid", "valid from"},
		"by the signer":                    {made(v3(func(h *handmade) { h.by = w.signer })), "XLT1", "time-stamp-invalid", "not for time stamping"},
		"by another service":               {made(v3(func(h *handmade) { h.by = foreign })), "XLT1", "time-stamp-untrusted", "not by a trusted service"},
		"order":                            {older.add(t, stamped, text), "A", "time-stamp-invalid", "10:24:53Z is invalid: it covers the archive time stamp of 2025-03-14T10:26:53Z, which is later"},
		"two, one of another document": {withUnsigned(t, stamped, func() cms.Attribute {
			a := mustParse(t, good.add(t, other, []byte("another document"))).Signers[0].UnsignedAttrs
			return a[len(a)-1]
		}()), "A", "time-stamp-invalid", "another digest"},
	} {
		r := checked(t, c.message, nil, at, w.root)
		s := &r.Signatures[0]
		if c.code == "time-stamp-invalid" && !slices.Contains(r.Headlines(), "an invalid time stamp was left out") {
			t.Errorf("%s: headlines %q", name, r.Headlines())
		}
		if !r.Passed() || s.Level != c.level || c.code != "" && !has(s, c.code, c.part) {
			t.Errorf("%s: %v, level %s, want %s: %+v", name, r.Verdict(), s.Level, c.level, s.Findings)
		}
	}
	// The time of a service without trust says nothing about the stamp over it.
	future := v3(func(h *handmade) { h.by, h.at = foreign, at.Add(time.Hour) })
	if r := checked(t, good.add(t, future.add(t, message, text), text), nil, at, w.root); !r.Passed() || r.Signatures[0].Level != "A" {
		t.Errorf("over a later one without trust: %s %+v", r.Signatures[0].Level, r.Signatures[0].Findings)
	}
	if imprint := suite.GOST2001.Hash.Digest(mustParse(t, message).Signers[0].Signature); true {
		untrusted := withUnsigned(t, message, cms.NewAttribute(cms.OIDSignatureTimeStamp, future.token(t, imprint)))
		if r := checked(t, good.add(t, untrusted, text), nil, at, w.root); !r.Passed() || r.Signatures[0].Level != "A" {
			t.Errorf("over a later one of the signature, without trust: %s %+v", r.Signatures[0].Level, r.Signatures[0].Findings)
		}
	}
	// A stamp that covers a later one of the signature says a wrong time.
	early := v3(func(h *handmade) { h.at = sigtest.Time.Add(-time.Minute) })
	if r := checked(t, early.add(t, message, text), nil, at, w.root); r.Signatures[0].Level == "A" || !has(&r.Signatures[0], "time-stamps-out-of-order", "which is later") {
		t.Errorf("earlier than what it covers: %s %+v", r.Signatures[0].Level, r.Signatures[0].Findings)
	}
}

// Every field that a stamp covers is protected by it: a copy with one changed byte has no valid stamp or
// no valid signature.
func TestArchiveCovers(t *testing.T) {
	w := newWorld(t, suite.GOST2012x256)
	message := w.make(t, w.signer, "XLT1", &sig.Job{Document: sigtest.Document(text)})
	for name, h := range map[string]handmade{
		"v3": {index: cms.OIDHashIndexV3}, "v2": {}, "v2, bare": {bare: true},
	} {
		h.by, h.at = w.services.TSA, sigtest.Time.Add(time.Hour)
		stamped := h.add(t, message, text)
		m := mustParse(t, stamped)
		s := m.Signers[0]
		parts := map[string][]byte{
			"document": section(stamped, m.Content[0]), "issuer": s.Issuer, "signed attributes": s.RawSignedAttrs[2:],
			"signature": s.Signature, "signer's certificate": m.Certificates[0], "issuer's certificate": m.Certificates[1],
		}
		for _, a := range s.UnsignedAttrs[:6] {
			parts[a.OID.String()] = a.Values[0]
		}
		for part, raw := range parts {
			broken := change(t, stamped, raw)
			r, err := cades.New().Verify(context.Background(), &sig.Check{Document: sigtest.Document(broken), Roots: []*x509gost.Certificate{w.root.Certificate}, At: sigtest.Time})
			if err != nil {
				continue // not a message any more
			}
			for _, one := range r.Signatures {
				for _, ts := range one.TimeStamps {
					if ts.Kind == "archive" && ts.Holds() {
						t.Errorf("%s: the stamp holds with another %s", name, part)
					}
				}
				if one.Level == "A" {
					t.Errorf("%s: level A with another %s", name, part)
				}
			}
		}
	}
}

// A detached message of which only the digest is known: v3 needs it by the algorithm of the stamp, and v2
// needs the document.
func TestArchiveOfHash(t *testing.T) {
	w := newWorld(t, suite.GOST2012x256)
	message := w.make(t, w.signer, "XLT1", &sig.Job{Document: sigtest.Document(text), Params: sig.Params{"IsDetached": "True"}})
	for name, c := range map[string]struct {
		form  handmade
		level string
	}{
		"v3":                   {handmade{index: cms.OIDHashIndexV3}, "A"},
		"v3, other algorithm":  {handmade{index: cms.OIDHashIndexV3, hash: suite.SHA256}, "XLT1"},
		"v2":                   {handmade{}, "XLT1"},
		"v2, without the list": {handmade{bare: true}, "XLT1"},
	} {
		c.form.by, c.form.at = w.services.TSA, sigtest.Time.Add(time.Hour)
		d := w.signer.Suite.Hash.Digest(text)
		r, err := cades.New().Verify(context.Background(), &sig.Check{Document: sigtest.Document(c.form.add(t, message, text)), Hash: &d,
			Roots: []*x509gost.Certificate{w.root.Certificate}, At: sigtest.Time.Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		s := &r.Signatures[0]
		if s.Level != c.level || !r.Passed() || (c.level != "A") != has(s, "time-stamp-not-checked", "was not checked: the document was given by") {
			t.Errorf("%s: %v level %s: %+v", name, r.Verdict(), s.Level, s.Findings)
		}
	}
}

// With BER around it, a v2 covers the bytes of the certificates as they are.
func TestArchiveAsReceived(t *testing.T) {
	w := newWorld(t, suite.GOST2012x256)
	message := w.make(t, w.signer, "XLT1", &sig.Job{Document: sigtest.Document(text)})
	h := handmade{by: w.services.TSA, at: sigtest.Time.Add(time.Hour)}
	stamped := h.add(t, message, text)
	m := mustParse(t, stamped)
	field := section(stamped, m.CertificateSet)
	longer := slices.Concat([]byte{0xa0, 0x80}, field[headerOf(field):], []byte{0, 0})
	der := stamped[m.EncapContentInfo.Offset:]
	before := der[:bytes.Index(der, field)]
	after := der[len(before)+len(field):]
	head := stamped[:m.EncapContentInfo.Offset]
	version := head[bytes.LastIndex(head, []byte{2, 1, 1}):]
	oid, _ := asn1.Marshal(cms.OIDSignedData)
	again := sequence(oid, element(0xa0, sequence(version, before, longer, after)))
	r := checked(t, again, nil, sigtest.Time.Add(time.Hour), w.root)
	if s := &r.Signatures[0]; s.Level != "XLT1" || !has(s, "time-stamp-invalid", "another digest") {
		t.Errorf("other bytes around the certificates: %s %+v", s.Level, s.Findings)
	}
	m = mustParse(t, again)
	if got := section(again, m.CertificateSet); !bytes.Equal(got, longer) {
		t.Errorf("the field is %x", got)
	}
}

// FuzzArchive verifies changed messages with archive time stamps. Nothing is at level A without a valid
// one, and no changed document or signature is.
func FuzzArchive(f *testing.F) {
	w := newWorld(f, suite.ECDSAP256)
	message := w.make(f, w.signer, "T", &sig.Job{Document: sigtest.Document(text)})
	value := mustParse(f, message).Signers[0].Signature
	for _, form := range []handmade{{index: cms.OIDHashIndexV3}, {index: cms.OIDHashIndex}, {}, {bare: true}} {
		form.by, form.at = w.services.TSA, sigtest.Time.Add(time.Hour)
		f.Add(form.add(f, message, text), 0, byte(0))
		f.Add(form.add(f, message, text), 700, byte(1))
	}
	f.Fuzz(func(t *testing.T, message []byte, place int, bits byte) {
		if len(message) > 64<<10 {
			return
		}
		message = bytes.Clone(message)
		if place >= 0 && place < len(message) {
			message[place] ^= bits
		}
		r, err := cades.New().Verify(context.Background(), &sig.Check{Document: sigtest.Document(message), Original: sigtest.Document(text),
			Roots: []*x509gost.Certificate{w.root.Certificate}, At: sigtest.Time.Add(2 * time.Hour)})
		if err != nil {
			return
		}
		for i, s := range r.Signatures {
			if s.Level == "A" && r.Passed() && !bytes.Equal(mustParse(t, message).Signers[i].Signature, value) {
				t.Errorf("a changed signature passes: %+v", s)
			}
			stamped := slices.ContainsFunc(s.TimeStamps, func(ts sig.TimeStamp) bool { return ts.Kind == "archive" && ts.Passed() })
			if s.Level == "A" && !stamped {
				t.Errorf("level A: %+v", s)
			}
		}
	})
}

// Evidence beside a message is not under an archive time stamp inside of it: then the level is not A.
func TestArchiveBesideStore(t *testing.T) {
	w := newWorld(t, suite.GOST2012x256)
	h := handmade{index: cms.OIDHashIndexV3, by: w.services.TSA, at: sigtest.Time.Add(time.Hour)}
	message := h.add(t, w.make(t, w.signer, "T", &sig.Job{Document: sigtest.Document(text)}), text)
	store := sig.Found{Certificates: []*x509gost.Certificate{w.root.Certificate}}
	w.services.Now = sigtest.Time.Add(time.Hour)
	path := append([]*x509gost.Certificate{w.signer.Certificate}, w.signer.Chain...)
	for i, c := range path {
		if c.Equal(w.root.Certificate) {
			break
		}
		store.Certificates = append(store.Certificates, c)
		w.services.By[c] = sigtest.ByList
		issuer := w.root.Certificate
		if i+1 < len(path) {
			issuer = path[i+1]
		}
		proof, err := w.services.Revocation(t.Context(), c, issuer, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		list, err := x509gost.ParseRevocationList(proof.CRL)
		if err != nil {
			t.Fatal(err)
		}
		store.CRLs = append(store.CRLs, list)
	}
	for want, around := range map[string]*sig.Container{"LT": {Found: store}, "A": {Found: store, Archived: &store}} {
		r, err := cades.New().Verify(t.Context(), &sig.Check{Document: sigtest.Document(message), At: w.services.Now, Roots: []*x509gost.Certificate{w.root.Certificate}, Container: around})
		if err != nil || r.Signatures[0].Level != want || !r.Signatures[0].TimeStamps[1].Passed() {
			t.Errorf("want %s: %v %s %+v", want, err, r.Signatures[0].Level, r.Signatures[0].Findings)
		}
	}
}
