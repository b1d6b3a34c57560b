// SPDX-License-Identifier: Apache-2.0

package cades_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/cades"
)

// add returns a job that adds a signature to a message.
func add(kind string, message, original []byte, more sig.Params) *sig.Job {
	job := &sig.Job{Document: sigtest.Document(message), Params: sig.Params{"CmsSignatureType": kind}}
	maps.Copy(job.Params, more)
	if original != nil {
		job.Original = sigtest.Document(original)
	}
	return job
}

func mustParse(t testing.TB, message []byte) *cms.Message {
	t.Helper()
	m, err := cms.Parse(bytes.NewReader(message), int64(len(message)))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// sameEarlier checks that the later message contains all of the earlier one, byte by byte
// and in its order: content, certificates and signers except the named ones.
func sameEarlier(t testing.TB, earlier, later []byte, changed ...int) {
	t.Helper()
	a, b := mustParse(t, earlier), mustParse(t, later)
	if x, y := section(earlier, a.EncapContentInfo), section(later, b.EncapContentInfo); !bytes.Equal(x, y) {
		t.Error("encapContentInfo changed")
	}
	if len(b.Certificates) < len(a.Certificates) || !slices.EqualFunc(a.Certificates, b.Certificates[:len(a.Certificates)], bytes.Equal) {
		t.Error("certificates changed")
	}
	if !slices.EqualFunc(a.CRLs, b.CRLs, bytes.Equal) {
		t.Error("revocation lists changed")
	}
	seen := map[string]bool{}
	for _, c := range b.Certificates {
		if seen[string(c)] {
			t.Error("a certificate is there twice")
		}
		seen[string(c)] = true
	}
	for i, s := range a.Signers {
		if !slices.Contains(changed, i) && !bytes.Equal(s.Raw, b.Signers[i].Raw) {
			t.Errorf("signer %d changed", i)
		}
	}
}

func section(b []byte, r cms.Range) []byte { return b[r.Offset : r.Offset+r.Length] }

// Every suite cosigns after every other one, attached and detached, by document and by
// hash. The earlier bytes stay; version and digestAlgorithms are right.
func TestCosign(t *testing.T) {
	root := sigtest.Root(t, suite.GOST2012x256)
	var signers []*sigtest.Party
	for _, s := range suite.All() {
		signers = append(signers, root.Signer(t, s, "Signer "+s.Name))
	}
	for mode, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			message := sign(t, signers[0], mode)
			var original []byte
			if m.detached {
				original = text
			}
			for i, p := range append(signers[1:], signers[0], signers[1]) {
				beside, params := original, sig.Params{}
				if m.hash {
					params["Hash"] = "True"
					if i%2 == 0 { // the key has the type too
						params["HashAlgorithm"] = p.Suite.Hash.Name
					}
					beside = p.Suite.Hash.Digest(text).Sum
				}
				next := sigtest.Make(t, cades.New(), p, add("Cosign", message, beside, params))
				sameEarlier(t, message, next)
				message = next
				got := mustParse(t, message)
				if len(got.Signers) != i+2 || got.Detached != m.detached || got.Version != 1 {
					t.Fatalf("%d signers, detached %v, version %d", len(got.Signers), got.Detached, got.Version)
				}
				if !got.Signers[i+1].Names(p.Certificate) {
					t.Error("the new signer is not the last")
				}
				checkDigests(t, got)
				r := verify(t, message, original, root)
				if !r.Passed() || len(r.Signatures) != i+2 || r.Signatures[i+1].Level != "BES" {
					t.Fatalf("%v: %+v", sigtest.Codes(r), r)
				}
			}
		})
	}
}

// checkDigests checks that digestAlgorithms lists each digest in use once.
func checkDigests(t testing.TB, m *cms.Message) {
	t.Helper()
	var listed []string
	for _, a := range m.DigestAlgorithms {
		if slices.Contains(listed, a.OID.String()) {
			t.Errorf("digestAlgorithms lists %v twice", a.OID)
		}
		listed = append(listed, a.OID.String())
	}
	var look func(s *cms.SignerInfo)
	look = func(s *cms.SignerInfo) {
		if !slices.Contains(listed, s.DigestAlgorithm.OID.String()) {
			t.Errorf("digestAlgorithms lacks %v", s.DigestAlgorithm.OID)
		}
		inner, err := s.Countersignatures()
		if err != nil {
			t.Error(err)
		}
		for _, c := range inner {
			look(c)
		}
	}
	for _, s := range m.Signers {
		look(s)
	}
}

// berIndefinite returns the message with indefinite lengths around its content, which is
// in two pieces, and around everything outside of it.
func berIndefinite(t testing.TB, message []byte) []byte {
	t.Helper()
	m := mustParse(t, message)
	content := section(message, m.Content[0])
	half := len(content) / 2
	octetString := func(b []byte) []byte { return append([]byte{0x04, byte(len(b))}, b...) }
	if half > 127 || len(content)-half > 127 {
		t.Fatal("the content is too long for this test")
	}
	end := []byte{0, 0}
	encap := slices.Concat([]byte{0x30, 0x80, 0x06, 0x09}, []byte{0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x01},
		[]byte{0xa0, 0x80, 0x24, 0x80}, octetString(content[:half]), octetString(content[half:]), end, end, end)
	at := bytes.Index(message, []byte{0x02, 0x01, byte(m.Version), 0x31}) // version and digestAlgorithms
	oid := []byte{0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02}
	return slices.Concat([]byte{0x30, 0x80}, oid, []byte{0xa0, 0x80, 0x30, 0x80},
		message[at:m.EncapContentInfo.Offset], encap, message[m.EncapContentInfo.Offset+m.EncapContentInfo.Length:], end, end, end)
}

func TestCosignBER(t *testing.T) {
	root := sigtest.Root(t, suite.GOST2012x512)
	first, second := root.Signer(t, suite.GOST2012x512, "First"), root.Signer(t, suite.RSASHA256, "Second")
	message := berIndefinite(t, sign(t, first, 0))
	next := sigtest.Make(t, cades.New(), second, add("Cosign", message, nil, nil))
	sameEarlier(t, message, next)
	if m := mustParse(t, next); len(m.Content) != 2 {
		t.Errorf("the content is in %d pieces", len(m.Content))
	}
	if r := verify(t, next, nil, root); !r.Passed() {
		t.Error(sigtest.Codes(r))
	}
	third := sigtest.Make(t, cades.New(), first, add("Countersign", next, nil, nil))
	sameEarlier(t, next, third, 0)
	if r := verify(t, third, nil, root); !r.Passed() || !r.Signatures[0].Countersigners[0].Passed() {
		t.Error(sigtest.Codes(r))
	}
}

// The new signature has the content type of the message.
func TestCosignOtherContentType(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	p := root.Signer(t, s, "Signer")
	other := x509gost.OID{1, 2, 840, 113549, 1, 9, 16, 1, 4}
	message := build(t, p, other, [][]byte{p.Certificate.Raw}, cms.ContentType(other), cms.MessageDigest(s.Hash.Digest(text)))
	next := sigtest.Make(t, cades.New(), p, add("Cosign", message, nil, nil))
	if m := mustParse(t, next); m.Version != 3 || !m.ContentType.Equal(other) {
		t.Errorf("version %d, type %v", m.Version, m.ContentType)
	}
	if r := verify(t, next, nil, root); !r.Passed() {
		t.Error(sigtest.Codes(r))
	}
}

func TestExtendRefusals(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer, long := root.Signer(t, s, "Signer"), root.Signer(t, suite.GOST2012x512, "Long")
	attached, detached := sign(t, signer, 0), sign(t, signer, 1)
	hash, wrong := s.Hash.Digest(text).Sum, s.Hash.Digest(text[1:]).Sum
	noAttributes := build(t, signer, cms.OIDData, [][]byte{signer.Certificate.Raw})
	overHash := sig.Params{"Hash": "True", "HashAlgorithm": "GR 34.11-2012 256"}
	pem := []byte("-----BEGIN CMS-----\nMII=\n")
	archived := func() []byte {
		m := mustParse(t, attached)
		raw, err := m.Signers[0].AppendUnsigned(cms.NewAttribute(cms.OIDArchiveTimeStampV2, []byte{0x30, 0}))
		if err != nil {
			t.Fatal(err)
		}
		head, tail, err := m.Rewrite(cms.Changes{Replaced: map[int][]byte{0: raw}})
		if err != nil {
			t.Fatal(err)
		}
		return slices.Concat(head, section(attached, m.EncapContentInfo), tail)
	}()
	tests := []struct {
		name   string
		party  *sigtest.Party
		job    *sig.Job
		faults []string // of *sig.ErrParams
		what   string   // of *sig.ErrDocument
		text   string
	}{
		{"not a message", signer, add("Cosign", text, nil, nil), nil, "Document", "not a message"},
		{"PEM", signer, add("Cosign", pem, nil, nil), nil, "Document", "PEM"},
		{"Base64", signer, add("Countersign", []byte("MIIB"), nil, nil), nil, "Document", "Base64"},
		{"cut short", signer, add("Cosign", attached[:len(attached)-1], nil, nil), nil, "Document", "cut short"},
		{"detached without original", signer, add("Cosign", detached, nil, nil), []string{"OriginalDocument"}, "", "needed"},
		{"detached with an empty original", signer, add("Cosign", detached, []byte{}, nil), []string{"OriginalDocument"}, "", "needed"},
		{"detached with another original", signer, add("Cosign", detached, text[1:], nil), nil, "OriginalDocument", "signature 0"},
		{"detached with another hash", signer, add("Cosign", detached, wrong, overHash), nil, "OriginalDocument", "signature 0"},
		{"hash of another length", signer, add("Cosign", detached, hash[1:], overHash), []string{"Hash"}, "", "32 bytes"},
		{"hash of another key without its algorithm", long, add("Cosign", detached, hash, sig.Params{"Hash": "True"}), []string{"Hash"}, "", "64 bytes"},
		{"hash of another algorithm", long, add("Cosign", detached, hash, overHash), []string{"HashAlgorithm"}, "", "GR 34.11-2012 512"},
		{"attached with another original", signer, add("Cosign", attached, text[1:], nil), nil, "OriginalDocument", "not the document in the message"},
		{"attached with another hash", signer, add("Cosign", attached, wrong, overHash), nil, "OriginalDocument", "not the document in the message"},
		{"attached and changed", signer, add("Cosign", change(t, attached, text), nil, nil), nil, "Document", "does not cover"},
		{"without attributes and changed", signer, add("Cosign", change(t, noAttributes, text), nil, nil), nil, "Document", "does not cover"},
		{"IsDetached for an attached one", signer, add("Cosign", attached, text, sig.Params{"IsDetached": "True"}), []string{"IsDetached"}, "", "leave it out"},
		{"IsDetached=False for a detached one", signer, add("Cosign", detached, text, sig.Params{"IsDetached": "False"}), []string{"IsDetached"}, "", "leave it out"},
		{"index beyond", signer, add("Countersign", attached, nil, sig.Params{"SignatureIndex": "1"}), []string{"SignatureIndex"}, "", "0 to 0 expected"},
		{"index of a countersignature that is not", signer, add("Countersign", attached, nil, sig.Params{"SignatureIndex": "0.0"}), []string{"SignatureIndex"}, "", "no signature"},
		{"index negative", signer, add("Countersign", attached, nil, sig.Params{"SignatureIndex": "-1"}), []string{"SignatureIndex"}, "", "from 0"},
		{"index too deep", signer, add("Countersign", attached, nil, sig.Params{"SignatureIndex": strings.Repeat("0.", 20) + "0"}), []string{"SignatureIndex"}, "", "from 0"},
		{"countersigned with another original", signer, add("Countersign", detached, text[1:], nil), nil, "OriginalDocument", "signature 0"},
		{"countersigned and broken", signer, add("Countersign", change(t, detached, mustParse(t, detached).Signers[0].Signature), nil, nil), nil, "Document", "is not valid"},
		{"countersigned and archived", signer, add("Countersign", archived, nil, nil), nil, "Document", "archive"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := sigtest.Try(t, cades.New(), test.party, test.job)
			if err == nil {
				t.Fatal("not refused")
			}
			var doc *sig.ErrDocument
			errors.As(err, &doc)
			if got := sigtest.Faults(err); !slices.Equal(got, test.faults) || (doc != nil) != (test.what != "") || doc != nil && doc.What != test.what {
				t.Errorf("faults %v, want %v %s: %v", got, test.faults, test.what, err)
			}
			if !strings.Contains(err.Error(), test.text) {
				t.Errorf("%q does not say %q", err, test.text)
			}
		})
	}
	// The same with valid input, so that the refusals above are for the named reason.
	for name, job := range map[string]*sig.Job{
		"archived":     add("Cosign", archived, nil, nil),
		"without":      add("Cosign", noAttributes, text, nil),
		"by hash":      add("Cosign", attached, hash, overHash),
		"not detached": add("Cosign", attached, nil, sig.Params{"IsDetached": "0"}),
	} {
		if _, err := sigtest.Try(t, cades.New(), signer, job); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Countersignatures on chosen signatures, several on one, and on each other.
func TestCountersign(t *testing.T) {
	root := sigtest.Root(t, suite.GOST2012x256)
	first, second := root.Signer(t, suite.GOST2012x256, "First"), root.Signer(t, suite.GOST2012x512, "Second")
	third := root.Signer(t, suite.ECDSAP256, "Third")
	for mode, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			var original []byte
			if m.detached {
				original = text
			}
			message := sign(t, first, mode)
			message = sigtest.Make(t, cades.New(), second, add("Cosign", message, original, nil))
			for _, step := range []struct {
				party  *sigtest.Party
				index  string
				signer int
			}{
				{second, "", 0}, {third, "0", 0}, {first, "1", 1}, {third, "0.0", 0}, {first, "0.0.0", 0}, {second, "0.1", 0}, {first, "0.0", 0},
			} {
				params := sig.Params{}
				if step.index != "" {
					params["SignatureIndex"] = step.index
				}
				next := sigtest.Make(t, cades.New(), step.party, add("Countersign", message, original, params))
				sameEarlier(t, message, next, step.signer)
				sameSignature(t, mustParse(t, message).Signers[step.signer], mustParse(t, next).Signers[step.signer])
				message = next
				checkDigests(t, mustParse(t, message))
			}
			r := verify(t, message, original, root)
			if !r.Passed() || len(r.Signatures) != 2 {
				t.Fatal(sigtest.Codes(r))
			}
			if got, want := shape(t, r.Signatures), "First[Second[Third[First] First] Third[Second]] Second[First]"; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// sameSignature checks that a signer has everything it had, and that only unsigned
// attributes were added, at the end.
func sameSignature(t testing.TB, a, b *cms.SignerInfo) {
	t.Helper()
	if !bytes.Equal(a.RawSignedAttrs, b.RawSignedAttrs) || !bytes.Equal(a.Signature, b.Signature) {
		t.Error("signed attributes or value changed")
	}
	for i, x := range a.UnsignedAttrs {
		if !x.OID.Equal(cms.OIDCountersignature) && !bytes.Equal(x.Encoded, b.UnsignedAttrs[i].Encoded) {
			t.Errorf("unsigned attribute %v changed", x.OID)
		}
	}
}

// shape returns who signed what as "A[B C]": B and C over the value of A.
func shape(t testing.TB, list []sig.Signature) string {
	t.Helper()
	var parts []string
	for _, s := range list {
		if !s.Passed() {
			t.Errorf("%+v", s.Findings)
		}
		name, _ := s.Signer.Subject.Get(x509gost.OIDCommonName)
		if inner := shape(t, s.Countersigners); inner != "" {
			name += "[" + inner + "]"
		}
		parts = append(parts, name)
	}
	return strings.Join(parts, " ")
}

// A countersignature digests only the value of its target, has no content-type, and names
// its certificate (C-14, C-15).
func TestCountersignatureForm(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	p := root.Signer(t, s, "Signer")
	m := mustParse(t, sigtest.Make(t, cades.New(), p, add("Countersign", sign(t, p, 0), nil, nil)))
	list, err := m.Signers[0].Countersignatures()
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	digest, ok, err := list[0].SignedAttribute(cms.OIDMessageDigest)
	if !ok || err != nil || !bytes.Equal(digest[2:], s.Hash.Digest(m.Signers[0].Signature).Sum) {
		t.Errorf("message-digest %x: %v", digest, err)
	}
	if _, ok, _ := list[0].SignedAttribute(cms.OIDContentType); ok {
		t.Error("there is a content-type")
	}
	if _, ok, _ := list[0].SignedAttribute(cms.OIDSigningCertificateV2); !ok {
		t.Error("there is no signing-certificate-v2")
	}
}

// A state for one message cannot be finished on another.
func TestExtendState(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	p := root.Signer(t, s, "Signer")
	message := sign(t, p, 0)
	for _, kind := range []string{"Cosign", "Countersign"} {
		job := add(kind, message, nil, nil)
		job.Certificate, job.Time = p.Certificate, sigtest.Time
		prepared, err := cades.New().Prepare(context.Background(), job)
		if err != nil {
			t.Fatal(err)
		}
		value := p.Sign(t, prepared.Digest)
		other := bytes.Clone(message)
		other[len(other)-1] ^= 1 // the signature value
		job.Document = sigtest.Document(other)
		var e *sig.ErrState
		if _, err := cades.New().Finish(context.Background(), job, prepared.State, value); !errors.As(err, &e) {
			t.Errorf("%s: another message: %v", kind, err)
		}
		job.Document = nil
		if _, err := cades.New().Finish(context.Background(), job, prepared.State, value); !errors.As(err, &e) {
			t.Errorf("%s: no message: %v", kind, err)
		}
		job.Document = sigtest.Document(message)
		if _, err := cades.New().Finish(context.Background(), job, prepared.State, value); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// Cosigning an attached message takes memory that does not depend on its size.
func TestCosignMemory(t *testing.T) {
	s := suite.RSASHA256 // the fastest hash
	root := sigtest.Root(t, s)
	p := root.Signer(t, s, "Signer")
	message := func(size sigtest.Zeros) *signed {
		d, err := sig.DigestAll(context.Background(), zeroReader{}, int64(size), s.Hash)
		if err != nil {
			t.Fatal(err)
		}
		attrs := cms.BuildSignedAttributes(cms.ContentType(cms.OIDData), cms.MessageDigest(d[0]), cms.SigningCertificateV2(p.Certificate, s.Hash))
		head, tail, err := cms.Encode(cms.OIDData, int64(size), [][]byte{p.Certificate.Raw}, nil, []cms.Signer{{
			Certificate: p.Certificate, Suite: s, SignedAttrs: attrs, Signature: p.Sign(t, s.Hash.Digest(attrs)),
		}})
		if err != nil {
			t.Fatal(err)
		}
		return &signed{head, tail, size}
	}
	used := func(size sigtest.Zeros) uint64 {
		doc := message(size)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		job := &sig.Job{Document: doc, Certificate: p.Certificate, Time: sigtest.Time, Params: sig.Params{"CmsSignatureType": "Cosign"}}
		prepared, err := cades.New().Prepare(context.Background(), job)
		if err != nil {
			t.Fatal(err)
		}
		result, err := cades.New().Finish(context.Background(), job, prepared.State, p.Sign(t, prepared.Digest))
		if err != nil {
			t.Fatal(err)
		}
		var out ends
		if n, err := result.WriteTo(&out); err != nil || n != result.Size() {
			t.Fatal(n, err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	size := sigtest.Zeros(1 << 30)
	if testsize.Of() < testsize.Whole {
		size = 1 << 26
	}
	used(1 << 20)
	if small, large := used(1<<20), used(size); large > small+1<<20 {
		t.Errorf("%d bytes allocated for 1 MiB, %d for %d MiB", small, large, size>>20)
	}
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// BenchmarkCosign adds to a message of as many signers.
func BenchmarkCosign(b *testing.B) {
	s := suite.GOST2012x256
	root := sigtest.Root(b, s)
	p := root.Signer(b, s, "Signer")
	for _, n := range []int{1, 10, 100} {
		message := sign(b, p, 0)
		for range n - 1 {
			message = sigtest.Make(b, cades.New(), p, add("Cosign", message, nil, nil))
		}
		b.Run(fmt.Sprintf("signers=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sigtest.Make(b, cades.New(), p, add("Cosign", message, nil, nil))
			}
		})
	}
}
