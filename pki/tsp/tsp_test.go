// SPDX-License-Identifier: Apache-2.0

package tsp_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
)

var hashes = []*suite.Hash{suite.SHA1, suite.SHA256, suite.SHA384, suite.SHA512, suite.GOST94, suite.Streebog256, suite.Streebog512}

var sameHash = cmp.Comparer(func(a, b *suite.Hash) bool { return a == b })

func TestRequest(t *testing.T) {
	for _, h := range hashes {
		for _, want := range []tsp.Request{
			{Digest: h.Digest(nil)},
			{Digest: h.Digest(nil), Policy: policy, Nonce: []byte{0, 0x80}, CertReq: true},
			{Digest: h.Digest(nil), Nonce: []byte{1}},
		} {
			der, err := want.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			got, err := tsp.ParseRequest(der)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, *got, sameHash); d != "" {
				t.Errorf("%s: %s", h.Name, d)
			}
			for i := range der {
				if _, err := tsp.ParseRequest(der[:i]); err == nil {
					t.Errorf("a request truncated at %d is accepted", i)
				}
			}
			if _, err := tsp.ParseRequest(append(der, 0)); err == nil {
				t.Error("bytes after the request are accepted")
			}
		}
	}
	for name, r := range map[string]tsp.Request{
		"no digest":    {},
		"short digest": {Digest: suite.Digest{Hash: suite.SHA256, Sum: make([]byte, 31)}},
		"zero nonce":   {Digest: suite.SHA256.Digest(nil), Nonce: []byte{0}},
		"large nonce":  {Digest: suite.SHA256.Digest(nil), Nonce: bytes.Repeat([]byte{1}, tsp.MaxNonce+1)},
	} {
		if _, err := r.Marshal(); err == nil {
			t.Errorf("%s: a request was made", name)
		}
	}
	if _, err := tsp.ParseRequest(make([]byte, tsp.MaxRequest+1)); err == nil {
		t.Error("a request above the limit is accepted")
	}
	// A nonce with bytes that DER does not have.
	der, err := (&tsp.Request{Digest: suite.SHA256.Digest(nil), Nonce: []byte{1}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	der = append(bytes.TrimSuffix(der, []byte{2, 1, 1}), 2, 3, 0, 0, 1)
	der[1] += 2
	if r, err := tsp.ParseRequest(der); err != nil || !bytes.Equal(r.Nonce, []byte{1}) {
		t.Errorf("a nonce in BER: %+v, %v", r, err)
	}
}

func TestToken(t *testing.T) {
	for _, s := range suite.All() {
		t.Run(s.Name, func(t *testing.T) {
			ca, tsa := newAuthority(t, s)
			want := info(s.Hash)
			want.Authority = tsa.cert.RawSubject
			der := create(t, want, tsa, tsa, ca)
			token, err := tsp.ParseResponse(tsp.CreateResponse(der))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(*want, token.Info, sameHash); d != "" {
				t.Error(d)
			}
			if !bytes.Equal(token.Raw, der) || token.Message.Version != 3 {
				t.Errorf("version %d", token.Message.Version)
			}
			if signer, err := token.CheckSignature(nil); err != nil || !signer.Equal(tsa.cert) {
				t.Errorf("%v", err)
			}
			if err := token.Answers(&tsp.Request{Digest: want.Digest, Nonce: []byte{0x80, 1}, Policy: policy}); err != nil {
				t.Error(err)
			}
			if err := token.Answers(&tsp.Request{Digest: want.Digest}); err != nil {
				t.Error(err)
			}
			for name, r := range map[string]tsp.Request{
				"digest":    {Digest: s.Hash.Digest(nil)},
				"algorithm": {Digest: suite.Digest{Hash: suite.SHA1, Sum: want.Digest.Sum}},
				"nonce":     {Digest: want.Digest, Nonce: []byte{0x81, 1}},
				"no nonce":  {Digest: want.Digest, Nonce: []byte{0}},
				"policy":    {Digest: want.Digest, Policy: x509gost.OID{1, 2, 3}},
			} {
				if err := token.Answers(&r); !errors.Is(err, tsp.ErrAnswer) {
					t.Errorf("another %s: %v", name, err)
				}
			}
			want.Nonce = nil
			bare := parse(t, create(t, want, tsa))
			if err := bare.Answers(&tsp.Request{Digest: want.Digest, Nonce: []byte{1}}); !errors.Is(err, tsp.ErrAnswer) {
				t.Errorf("a nonce that is not repeated: %v", err)
			}
			if _, err := bare.CheckSignature(certs(ca)); !errors.Is(err, tsp.ErrSignature) {
				t.Errorf("without the certificate: %v", err)
			}
			if signer, err := bare.CheckSignature(certs(ca, tsa)); err != nil || !signer.Equal(tsa.cert) {
				t.Errorf("with the certificate: %v", err)
			}
			// A change of any byte outside the certificate of the authority's issuer is
			// detected.
			for i := range der {
				bad := bytes.Clone(der)
				bad[i] ^= 1
				changed, err := tsp.ParseToken(bad)
				if err != nil {
					continue
				}
				if _, err := changed.CheckSignature(nil); err == nil && !cmp.Equal(changed.Info, token.Info, sameHash) {
					t.Fatalf("byte %d was changed, but the token is accepted", i)
				}
			}
		})
	}
}

// TestSignatureRules checks tokens that break one rule each.
func TestSignatureRules(t *testing.T) {
	s := suite.GOST2012x256
	ca, tsa := newAuthority(t, s)
	content := func(i *tsp.Info) []byte {
		t.Helper()
		token := parse(t, create(t, i, tsa))
		b := make([]byte, token.Message.ContentSize())
		if _, err := token.Message.ContentReader().Read(b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	body := content(info(s.Hash))
	d := s.Hash.Digest(body)
	esss := cms.SigningCertificateV2(tsa.cert, s.Hash)
	signer := func(attrs ...cms.Attribute) cms.Signer {
		t.Helper()
		set := cms.BuildSignedAttributes(attrs...)
		value, err := tsa.sign()(s.Hash.Digest(set))
		if err != nil {
			t.Fatal(err)
		}
		return cms.Signer{Certificate: tsa.cert, Suite: s, SignedAttrs: set, Signature: value}
	}
	encode := func(contentType x509gost.OID, signers ...cms.Signer) []byte {
		t.Helper()
		head, tail, err := cms.Encode(contentType, int64(len(body)), [][]byte{tsa.cert.Raw}, nil, signers)
		if err != nil {
			t.Fatal(err)
		}
		return slices.Concat(head, body, tail)
	}
	right := signer(cms.ContentType(tsp.OIDInfo), cms.MessageDigest(d), esss)
	// Another serial number beside the right digest is a warning.
	as := &x509gost.Certificate{Raw: tsa.cert.Raw, RawIssuer: tsa.cert.RawIssuer, SerialNumber: []byte{99}}
	for warnings, id := range []cms.Attribute{esss, cms.SigningCertificateV2(as, s.Hash)} {
		token := parse(t, encode(tsp.OIDInfo, signer(cms.ContentType(tsp.OIDInfo), cms.MessageDigest(d), id)))
		if c, err := token.CheckSignature(nil); err != nil || len(token.Message.Signers[0].OtherIssuer(c)) != warnings {
			t.Errorf("%v, want %d warnings", err, warnings)
		}
		if _, err := token.Verify(&tsp.Request{Digest: token.Info.Digest}, nil); (err == nil) != (warnings == 0) {
			t.Errorf("a new token with %d warnings: %v", warnings, err)
		}
	}
	if _, err := parse(t, encode(tsp.OIDInfo, right)).CheckSignature(nil); err != nil {
		t.Fatalf("the right one: %v", err)
	}
	for name, der := range map[string][]byte{
		"no signer":                encode(tsp.OIDInfo),
		"two signers":              encode(tsp.OIDInfo, right, right),
		"no signing-certificate":   encode(tsp.OIDInfo, signer(cms.ContentType(tsp.OIDInfo), cms.MessageDigest(d))),
		"another certificate":      encode(tsp.OIDInfo, signer(cms.ContentType(tsp.OIDInfo), cms.MessageDigest(d), cms.SigningCertificateV2(ca.cert, s.Hash))),
		"another digest":           encode(tsp.OIDInfo, signer(cms.ContentType(tsp.OIDInfo), cms.MessageDigest(s.Hash.Digest(nil)), esss)),
		"another type in the list": encode(tsp.OIDInfo, signer(cms.ContentType(cms.OIDData), cms.MessageDigest(d), esss)),
	} {
		if _, err := parse(t, der).CheckSignature(nil); !errors.Is(err, tsp.ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := tsp.ParseToken(encode(cms.OIDData, right)); err == nil {
		t.Error("content of another type is accepted as a token")
	}
	for name, c := range map[string]struct {
		extensions []x509gost.Extension
		at         time.Time
	}{
		"no use":          {nil, now},
		"not critical":    {[]x509gost.Extension{uses(false, x509gost.UsageTimeStamping)}, now},
		"two uses":        {[]x509gost.Extension{uses(true, x509gost.UsageTimeStamping, x509gost.UsageEmailProtection)}, now},
		"another use":     {[]x509gost.Extension{uses(true, x509gost.UsageEmailProtection)}, now},
		"before its life": {[]x509gost.Extension{uses(true, x509gost.UsageTimeStamping)}, start.Add(-time.Second)},
		"after its life":  {[]x509gost.Extension{uses(true, x509gost.UsageTimeStamping)}, end.Add(time.Second)},
	} {
		h := issue(t, s, "TSA", ca, c.extensions...)
		i := info(s.Hash)
		i.Time = c.at
		if _, err := parse(t, create(t, i, h, h)).CheckSignature(nil); !errors.Is(err, tsp.ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, at := range []time.Time{start, end} {
		i := info(s.Hash)
		i.Time = at
		if _, err := parse(t, create(t, i, tsa, tsa)).CheckSignature(nil); err != nil {
			t.Errorf("the first and the last second: %v", err)
		}
	}
}

func TestRejections(t *testing.T) {
	for _, want := range []tsp.RejectedError{
		{Status: tsp.Rejection, FailInfo: tsp.BadAlg, Text: "algorithm"},
		{Status: tsp.Rejection, FailInfo: tsp.TimeNotAvailable, Text: "часы"},
		{Status: tsp.Rejection, FailInfo: tsp.SystemFailure},
		{Status: tsp.Waiting, FailInfo: tsp.NoFailInfo},
	} {
		_, err := tsp.ParseResponse(tsp.CreateRejection(want.Status, want.FailInfo, want.Text))
		var got *tsp.RejectedError
		if !errors.As(err, &got) || *got != want {
			t.Errorf("%v, want %v", err, &want)
		}
	}
	_, err := tsp.ParseResponse(tsp.CreateRejection(tsp.Granted, tsp.NoFailInfo, ""))
	if err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("granted, and no token: %v", err)
	}
	long := tsp.CreateRejection(tsp.Rejection, tsp.BadAlg, strings.Repeat("x", 100000))
	var got *tsp.RejectedError
	if _, err := tsp.ParseResponse(long); !errors.As(err, &got) || len(got.Text) > 1024 {
		t.Errorf("a long text: %.100v", err)
	}
	if _, err := tsp.ParseResponse(make([]byte, tsp.MaxResponse+1)); err == nil {
		t.Error("a response above the limit is accepted")
	}
}

func TestCreateRefuses(t *testing.T) {
	_, tsa := newAuthority(t, suite.GOST2012x256)
	for name, change := range map[string]func(*tsp.Info){
		"no policy":       func(i *tsp.Info) { i.Policy = nil },
		"no digest":       func(i *tsp.Info) { i.Digest.Hash = nil },
		"no serial":       func(i *tsp.Info) { i.Serial = nil },
		"negative serial": func(i *tsp.Info) { i.Serial = []byte{0x80} },
		"long serial":     func(i *tsp.Info) { i.Serial = bytes.Repeat([]byte{1}, 21) },
		"no time":         func(i *tsp.Info) { i.Time = time.Time{} },
		"accuracy":        func(i *tsp.Info) { i.Accuracy = time.Nanosecond },
	} {
		i := info(suite.Streebog256)
		change(i)
		if _, err := tsp.CreateToken(i, tsa.cert, nil, tsa.s, tsa.sign()); err == nil {
			t.Errorf("%s: a token was made", name)
		}
	}
	other := issue(t, suite.GOST2012x256, "Other", nil)
	if _, err := tsp.CreateToken(info(suite.Streebog256), tsa.cert, nil, tsa.s, other.sign()); !errors.Is(err, suite.ErrSignature) {
		t.Errorf("by another key: %v", err)
	}
	if _, err := tsp.CreateToken(info(suite.Streebog256), tsa.cert, nil, suite.GOST2012x512, tsa.sign()); err == nil {
		t.Error("a token signed by another suite is created")
	}
}

func BenchmarkCreateToken(b *testing.B) {
	for _, s := range []*suite.Suite{suite.GOST2012x256, suite.ECDSAP256} {
		b.Run(s.Name, func(b *testing.B) {
			ca, tsa := newAuthority(b, s)
			i := info(s.Hash)
			for b.Loop() {
				create(b, i, tsa, tsa, ca)
			}
		})
	}
}

func BenchmarkCheckToken(b *testing.B) {
	for _, s := range []*suite.Suite{suite.GOST2012x256, suite.ECDSAP256} {
		b.Run(s.Name, func(b *testing.B) {
			ca, tsa := newAuthority(b, s)
			der := create(b, info(s.Hash), tsa, tsa, ca)
			for b.Loop() {
				if _, err := parse(b, der).CheckSignature(nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
