// SPDX-License-Identifier: Apache-2.0

package raw_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/raw"
)

var text = []byte("A document of one line.\n")

func verify(t testing.TB, value []byte, p, root *sigtest.Party, original []byte, hash *suite.Digest) *sig.Report {
	t.Helper()
	c := &sig.Check{
		Document: sigtest.Document(value), Hash: hash, Certificate: p.Certificate,
		Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time,
	}
	if original != nil {
		c.Original = sigtest.Document(original)
	}
	r, err := raw.New().Verify(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestJury: OpenSSL, Bouncy Castle and this program accept signatures of every suite, over a
// document and over its hash, and all refuse them with a bit changed.
func TestJury(t *testing.T) {
	openssl := judge.OpenSSL(t)
	var castle *judge.Castle
	if testsize.Of() > testsize.Quick {
		castle = judge.BouncyCastle(t)
	}
	for _, s := range suite.All() {
		root := sigtest.Root(t, s)
		signer := root.Signer(t, s, "Signer")
		spki, err := x509gost.MarshalPublicKey(signer.Key.Public(), s)
		if err != nil {
			t.Fatal(err)
		}
		openssl.Write("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: spki}))
		ask := func(value, data []byte) map[string]error {
			openssl.Write("value", value)
			openssl.Write("data", data)
			_, err := openssl.Run("dgst", digestFlags[s], "-verify", "key.pem", "-signature", "value", "data")
			verdicts := map[string]error{"openssl": err}
			if castle != nil {
				verdicts["castle"] = castle.VerifyRaw(signer.Certificate.Raw, data, value)
			}
			if r := verify(t, value, signer, root, data, nil); !r.Passed() {
				verdicts["ours"] = errors.New(strings.Join(sigtest.Codes(r), " "))
			} else {
				verdicts["ours"] = nil
			}
			d := s.Hash.Digest(data)
			if r := verify(t, value, signer, root, nil, &d); !r.Passed() {
				verdicts["ours by hash"] = errors.New(strings.Join(sigtest.Codes(r), " "))
			} else {
				verdicts["ours by hash"] = nil
			}
			return verdicts
		}
		for _, job := range []*sig.Job{
			{Document: sigtest.Document(text), Params: sig.Params{"Hash": "False"}},
			{Document: sigtest.Document(s.Hash.Digest(text).Sum), Params: sig.Params{"Hash": "True", "HashAlgorithm": s.Hash.Name}},
		} {
			t.Run(s.Name+"/"+job.Params["Hash"], func(t *testing.T) {
				value := sigtest.Make(t, raw.New(), signer, job)
				if s.IsGOST() && len(value) != 2*s.Hash.Size {
					t.Errorf("%d bytes", len(value))
				}
				for who, err := range ask(value, text) {
					if err != nil {
						t.Errorf("refused by %s: %v", who, err)
					}
				}
				other, bad := bytes.Clone(text), bytes.Clone(value)
				other[3] ^= 1
				bad[len(bad)-5] ^= 1
				for who, err := range ask(value, other) {
					if err == nil {
						t.Errorf("document changed, accepted by %s", who)
					}
				}
				for who, err := range ask(bad, text) {
					if err == nil {
						t.Errorf("value changed, accepted by %s", who)
					}
				}
			})
		}
	}
}

var digestFlags = map[*suite.Suite]string{
	suite.GOST2001:     "-md_gost94",
	suite.GOST2012x256: "-md_gost12_256",
	suite.GOST2012x512: "-md_gost12_512",
	suite.RSASHA256:    "-sha256",
	suite.ECDSAP256:    "-sha256",
}

func TestParameters(t *testing.T) {
	s := suite.GOST2012x512
	signer := sigtest.Root(t, s).Signer(t, s, "Signer")
	for _, test := range []struct {
		name   string
		params sig.Params
		doc    []byte
		faults []string
		text   string
	}{
		{"none", nil, text, nil, ""},
		{"others mean nothing", sig.Params{"CADESType": "T", "IsDetached": "maybe"}, text, nil, ""},
		{"short hash", sig.Params{"Hash": "True"}, make([]byte, 32), []string{"Hash"}, "64 bytes; it has 32"},
		{"other algorithm", sig.Params{"HashAlgorithm": "GR 34.11-2012 256"}, text, []string{"HashAlgorithm"}, "GR 34.11-2012 512"},
		{"both", sig.Params{"Hash": "yes", "HashAlgorithm": "x"}, text, []string{"Hash", "HashAlgorithm"}, "True or False"},
	} {
		_, err := sigtest.Try(t, raw.New(), signer, &sig.Job{Document: sigtest.Document(test.doc), Params: test.params})
		if got := sigtest.Faults(err); !slices.Equal(got, test.faults) || err != nil && !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestState(t *testing.T) {
	s := suite.GOST2001
	root := sigtest.Root(t, s)
	signer := root.Signer(t, s, "Signer")
	other := root.Signer(t, suite.GOST2012x256, "Other")
	job := &sig.Job{Document: sigtest.Document(text), Certificate: signer.Certificate}
	prepared, err := raw.New().Prepare(context.Background(), job)
	if err != nil {
		t.Fatal(err)
	}
	value := signer.Sign(t, prepared.Digest)
	var bad *sig.ErrState
	for _, state := range []string{"", "[]", `{"v":2}`, `{"v":1,"hash":"GOST R 34.11-94"}`} {
		if _, err := raw.New().Finish(context.Background(), job, []byte(state), value); !errors.As(err, &bad) {
			t.Errorf("state %q: %v", state, err)
		}
	}
	if _, err := raw.New().Finish(context.Background(), &sig.Job{Certificate: other.Certificate}, prepared.State, value); !errors.As(err, &bad) {
		t.Errorf("certificate of another suite: %v", err)
	}
	if _, err := raw.New().Finish(context.Background(), job, prepared.State, value[1:]); err == nil {
		t.Error("a value of 63 bytes is accepted")
	}
	// Finish does not need the document.
	if _, err := raw.New().Finish(context.Background(), &sig.Job{Certificate: signer.Certificate}, prepared.State, value); err != nil {
		t.Error(err)
	}
}

func TestQuestions(t *testing.T) {
	s := suite.GOST2012x256
	root, foreign := sigtest.Root(t, s), sigtest.Root(t, suite.GOST2001)
	signer := root.Signer(t, s, "Signer")
	value := sigtest.Make(t, raw.New(), signer, &sig.Job{Document: sigtest.Document(text)})
	if r := verify(t, value, signer, foreign, text, nil); r.Passed() {
		t.Error("valid without a trust anchor")
	}
	sha := suite.SHA256.Digest(text)
	if r := verify(t, value, signer, root, nil, &sha); r.Passed() {
		t.Error("valid by a hash of another algorithm")
	}
	_, err := raw.New().Verify(context.Background(), &sig.Check{Document: sigtest.Document(value)})
	if got := sigtest.Faults(err); !slices.Equal(got, []string{"Certificate", "OriginalDocument"}) {
		t.Errorf("nothing given: %v", err)
	}
	var bad *sig.ErrDocument
	for _, size := range []int{0, 5000} {
		_, err = raw.New().Verify(context.Background(), &sig.Check{Document: sigtest.Document(make([]byte, size)), Hash: &sha, Certificate: signer.Certificate})
		if !errors.As(err, &bad) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}
