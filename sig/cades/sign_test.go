// SPDX-License-Identifier: Apache-2.0

package cades_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
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

var text = []byte("Договор поставки.\r\nOne line more, and a zero: \x00\n")

// modes are the three ways a message relates to its document.
var modes = []struct {
	name     string
	params   sig.Params
	hash     bool // the job's document is a hash value
	detached bool
}{
	{"attached", nil, false, false},
	{"detached", sig.Params{"IsDetached": "True"}, false, true},
	{"hash", sig.Params{"Hash": "True", "CADESType": "BES"}, true, true},
}

// leftOut reports whether the short form leaves out the combination of the i-th suite with the
// j-th mode. Each suite and each mode is still tried.
func leftOut(i, j int) bool { return testsize.Of() < testsize.Whole && (i+j)%len(modes) != 0 }

// sign makes a message over text in a mode.
func sign(t testing.TB, p *sigtest.Party, mode int) []byte {
	t.Helper()
	m := modes[mode]
	doc := text
	if m.hash {
		doc = p.Suite.Hash.Digest(text).Sum
	}
	return sigtest.Make(t, cades.New(), p, &sig.Job{Document: sigtest.Document(doc), Params: m.params})
}

// verify checks a message with our own verifier.
func verify(t testing.TB, message []byte, original []byte, root *sigtest.Party) *sig.Report {
	t.Helper()
	check := &sig.Check{
		Document: sigtest.Document(message),
		Roots:    []*x509gost.Certificate{root.Certificate},
		At:       sigtest.Time,
	}
	if original != nil {
		check.Original = sigtest.Document(original)
	}
	r, err := cades.New().Verify(context.Background(), check)
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	return r
}

func TestEverySuiteAndMode(t *testing.T) {
	for _, s := range suite.All() {
		root := sigtest.Root(t, s)
		sub := root.Authority(t, "Test Sub")
		signer := sub.Signer(t, s, "Иван Петров")
		for i, mode := range modes {
			t.Run(s.Name+"/"+mode.name, func(t *testing.T) {
				message := sign(t, signer, i)
				m, err := cms.Parse(bytes.NewReader(message), int64(len(message)))
				if err != nil {
					t.Fatal(err)
				}
				if m.Version != 1 || m.Detached != mode.detached {
					t.Errorf("version %d, detached %v", m.Version, m.Detached)
				}
				if len(m.Certificates) != 2 {
					t.Errorf("%d certificates; the signer's and its issuer's without the root expected", len(m.Certificates))
				}
				var original []byte
				if mode.detached {
					original = text
				}
				r := verify(t, message, original, root)
				if !r.Passed() {
					t.Fatalf("not valid: %+v %+v", r.Findings, r.Signatures[0].Findings)
				}
				got := r.Signatures[0]
				if got.Level != "BES" || got.Scheme != s.Scheme() || !got.Signer.Equal(signer.Certificate) || !got.SigningTime.Equal(sigtest.Time) {
					t.Errorf("level %s, suite %v, time %v", got.Level, got.Scheme.Name, got.SigningTime)
				}
				if len(got.Chain) != 3 {
					t.Errorf("chain of %d certificates", len(got.Chain))
				}
			})
		}
	}
}

// The signed digest and the attributes, checked by their bytes.
func TestSignedAttributes(t *testing.T) {
	for _, s := range suite.All() {
		t.Run(s.Name, func(t *testing.T) {
			root := sigtest.Root(t, s)
			signer := root.Signer(t, s, "Signer")
			message := sign(t, signer, 1)
			m, err := cms.Parse(bytes.NewReader(message), int64(len(message)))
			if err != nil {
				t.Fatal(err)
			}
			si := m.Signers[0]
			var raws [][]byte
			for _, a := range si.SignedAttrs {
				raws = append(raws, a.Raw)
			}
			if !slices.IsSortedFunc(raws, bytes.Compare) || len(raws) != 4 {
				t.Errorf("%d signed attributes, not sorted by their encodings", len(raws))
			}
			digest, _, _ := si.SignedAttribute(cms.OIDMessageDigest)
			if !bytes.Equal(digest[2:], s.Hash.Digest(text).Sum) {
				t.Error("message-digest is not the digest of the document")
			}
			if s.IsGOST() {
				if !si.SignatureAlgorithm.OID.Equal(s.KeyOID) || si.SignatureAlgorithm.Params != nil {
					t.Errorf("signatureAlgorithm %v with parameters %x", si.SignatureAlgorithm.OID, si.SignatureAlgorithm.Params)
				}
			}
			if null := bytes.Equal(si.DigestAlgorithm.Params, []byte{5, 0}); null != (s == suite.GOST2001) {
				t.Errorf("parameters of the digest algorithm: %x", si.DigestAlgorithm.Params)
			}
			value, ok, err := si.SignedAttribute(cms.OIDSigningCertificateV2)
			if !ok || err != nil {
				t.Fatal("no signing-certificate-v2", err)
			}
			// DER omits the default, SHA-256, and names the Streebog OID.
			named := bytes.Contains(value, []byte{0x06, 0x08, 0x2a, 0x85, 0x03, 0x07, 0x01, 0x01, 0x02}) || bytes.Contains(value, []byte{0x2a, 0x85, 0x03, 0x02, 0x02, 0x09})
			if named != s.IsGOST() || bytes.Contains(value, []byte{0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01}) {
				t.Errorf("hash algorithm in signing-certificate-v2: %x", value)
			}
			if !bytes.Contains(value, signer.Certificate.Digest(s.Hash)) || !bytes.Contains(value, signer.Certificate.RawIssuer) {
				t.Error("signing-certificate-v2 without the certificate's digest or issuer")
			}
		})
	}
}

func TestIncludeCertChain(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer := root.Authority(t, "Sub").Authority(t, "Sub of sub").Signer(t, s, "Signer")
	for value, want := range map[string]int{"": 3, "True": 3, "false": 1} {
		message := sigtest.Make(t, cades.New(), signer, &sig.Job{
			Document: sigtest.Document(text), Params: sig.Params{"includecertchain ": value},
		})
		m, err := cms.Parse(bytes.NewReader(message), int64(len(message)))
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Certificates) != want {
			t.Errorf("IncludeCertChain=%q: %d certificates, want %d", value, len(m.Certificates), want)
		}
	}
}

func TestParameters(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	hash := s.Hash.Digest(text).Sum
	detached := sign(t, signer, 1)
	tests := []struct {
		name     string
		params   sig.Params
		document []byte
		original []byte
		faults   []string
		text     string // part of the error
	}{
		{"none", nil, text, nil, nil, ""},
		{"numbers", sig.Params{"Hash": "0", "IsDetached": "1", "CADESType": "0"}, text, nil, nil, ""},
		{"letter case", sig.Params{"ISDETACHED": "tRuE", "cadestype": "bes", "CmsSignatureType": "sign"}, text, nil, nil, ""},
		{"unknown keys", sig.Params{"Whatever": "x", "TSPAddress": ""}, text, nil, nil, ""},
		{"empty original", sig.Params{"CmsSignatureType": "Sign"}, text, []byte{}, nil, ""},
		{"matching algorithm", sig.Params{"Hash": "True", "HashAlgorithm": "gr  34.11-2012 256"}, hash, nil, nil, ""},
		{"hash attached", sig.Params{"Hash": "True", "IsDetached": "False"}, hash, nil, []string{"IsDetached"}, "always detached"},
		{"hash of wrong length", sig.Params{"Hash": "True"}, text, nil, []string{"Hash"}, "32 bytes"},
		{"other algorithm", sig.Params{"Hash": "True", "HashAlgorithm": "GR 34.11-2012 512"}, hash, nil, []string{"HashAlgorithm"}, "GR 34.11-2012 256"},
		{"unknown algorithm", sig.Params{"Hash": "True", "HashAlgorithm": "MD2"}, hash, nil, []string{"HashAlgorithm"}, "not known"},
		{"several", sig.Params{"Hash": "maybe", "IsDetached": "2", "CADESType": "B"}, text, nil, []string{"Hash", "CADESType", "IsDetached"}, "BES, XLT1, T"},
		{"contradiction", sig.Params{"Hash": "True", "hash ": "False"}, hash, nil, []string{"hash"}, "twice"},
		{"T without address", sig.Params{"CADESType": "T"}, text, nil, []string{"TSPAddress"}, "time-stamp"},
		{"XLT1 without address", sig.Params{"CADESType": "1"}, text, nil, []string{"TSPAddress"}, "XLT1"},
		{"T", sig.Params{"CADESType": "2", "TSPAddress": ""}, text, nil, []string{"CADESType"}, "T needs time stamps"},
		{"cosign of a hash", sig.Params{"CmsSignatureType": "Cosign", "Hash": "True"}, detached, hash, nil, ""},
		{"cosign detached by parameter", sig.Params{"CmsSignatureType": "Cosign", "IsDetached": "True"}, detached, nil, []string{"OriginalDocument"}, "detached"},
		{"cosign detached by message", sig.Params{"CmsSignatureType": "Cosign"}, detached, nil, []string{"OriginalDocument"}, "detached"},
		{"unknown kind", sig.Params{"CmsSignatureType": "resign"}, text, nil, []string{"CmsSignatureType"}, "Sign, Cosign, Countersign"},
		{"original with sign", nil, text, text, []string{"OriginalDocument"}, "Cosign"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			job := &sig.Job{Document: sigtest.Document(test.document), Params: test.params}
			if test.original != nil {
				job.Original = sigtest.Document(test.original)
			}
			_, err := sigtest.Try(t, cades.New(), signer, job)
			if got := sigtest.Faults(err); !slices.Equal(got, test.faults) || (err != nil) != (test.faults != nil) {
				t.Fatalf("faults %v, want %v (%v)", got, test.faults, err)
			}
			if err != nil && !strings.Contains(err.Error(), test.text) {
				t.Errorf("error %q does not say %q", err, test.text)
			}
		})
	}
}

// The two steps in two processes share only the job and the state. A state that does not
// match is refused.
func TestState(t *testing.T) {
	s := suite.GOST2012x512
	root := sigtest.Root(t, s)
	signer, other := root.Signer(t, s, "Signer"), root.Signer(t, s, "Other")
	job := func() *sig.Job {
		return &sig.Job{
			Document: sigtest.Document(text), Time: sigtest.Time,
			Certificate: signer.Certificate, Chain: signer.Chain,
		}
	}
	prepared, err := cades.New().Prepare(context.Background(), job())
	if err != nil {
		t.Fatal(err)
	}
	value := signer.Sign(t, prepared.Digest)
	if _, err := cades.New().Finish(context.Background(), job(), prepared.State, value); err != nil {
		t.Fatalf("finish: %v", err)
	}
	// The states of earlier releases were JSON.
	thumbprint := sha256.Sum256(signer.Certificate.Raw)
	attributes := binary.BigEndian.Uint32(prepared.State[10:])
	fields := map[string]any{
		"v": 2, "attributes": prepared.State[14 : 14+attributes], "digest": s.Hash.Digest(text).Sum,
		"size": len(text), "chain": true, "certificate": thumbprint[:], "kind": "Sign", "level": "BES",
	}
	change := func(key string, to any) []byte {
		m := maps.Clone(fields)
		m[key] = to
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, version := range []int{1, 2} {
		if _, err := cades.New().Finish(context.Background(), job(), change("v", version), value); err != nil {
			t.Fatalf("finish a state of version %d: %v", version, err)
		}
	}
	flags := bytes.Clone(prepared.State)
	flags[1] |= 8
	unknown := bytes.Clone(prepared.State)
	unknown[0] = 4
	length := bytes.Clone(prepared.State)
	length[10] = 0xff
	otherJob, shorter, wrong := job(), job(), job()
	otherJob.Certificate = other.Certificate
	shorter.Document = sigtest.Document(text[1:])
	wrong.Digests = []suite.Digest{s.Hash.Digest(text[1:])}
	hashJob := job()
	hashJob.Document, hashJob.Params = sigtest.Document(s.Hash.Digest(text).Sum), sig.Params{"Hash": "True"}
	ofHash, err := cades.New().Prepare(context.Background(), hashJob)
	if err != nil {
		t.Fatal(err)
	}
	otherHash := job()
	otherHash.Document = sigtest.Document(s.Hash.Digest(text[1:]).Sum)
	missing := job()
	missing.Document = nil
	tests := []struct {
		name  string
		job   *sig.Job
		state []byte
	}{
		{"empty", job(), nil},
		{"no JSON", job(), []byte("{")},
		{"JSON of version 3", job(), change("v", 3)},
		{"version 4", job(), unknown},
		{"an unknown level", job(), change("level", "LTA")},
		{"an unknown flag", job(), flags},
		{"a length beyond the end", job(), length},
		{"one byte less", job(), prepared.State[:len(prepared.State)-1]},
		{"one byte more", job(), append(bytes.Clone(prepared.State), 0)},
		{"no attributes", job(), change("attributes", nil)},
		{"negative size", job(), change("size", -1)},
		{"hash attached", job(), change("hash", true)},
		{"another certificate", otherJob, prepared.State},
		{"another size", shorter, prepared.State},
		{"another digest", wrong, prepared.State},
		{"another hash value", otherHash, ofHash.State},
		{"no document to attach", missing, prepared.State},
	}
	for _, test := range tests {
		var e *sig.ErrState
		if _, err := cades.New().Finish(context.Background(), test.job, test.state, value); !errors.As(err, &e) {
			t.Errorf("%s: %v, want an ErrState", test.name, err)
		}
	}
	if _, err := cades.New().Finish(context.Background(), job(), prepared.State, value[1:]); err == nil {
		t.Error("a value of 127 bytes is accepted")
	}
}

// A digest that was computed on receipt is used, and the document is not read again.
func TestDigestOnTheWayIn(t *testing.T) {
	s := suite.ECDSAP256
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	sum := sha256.Sum256(text)
	message := sigtest.Make(t, cades.New(), signer, &sig.Job{
		Document: unreadable(len(text)),
		Digests:  []suite.Digest{suite.Streebog256.Digest(text), {Hash: suite.SHA256, Sum: sum[:]}},
		Params:   sig.Params{"IsDetached": "True"},
	})
	if r := verify(t, message, text, root); !r.Passed() {
		t.Error(sigtest.Codes(r))
	}
}

type unreadable int64

func (u unreadable) Size() int64 { return int64(u) }
func (unreadable) ReadAt([]byte, int64) (int, error) {
	return 0, errors.New("the document is read")
}
