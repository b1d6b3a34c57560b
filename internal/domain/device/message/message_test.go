// SPDX-License-Identifier: Apache-2.0

package message_test

import (
	"crypto/ecdsa"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"tamga/internal/domain/device/message"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// TestSignature: a signature of either kind of key verifies under that key and no other.
func TestSignature(t *testing.T) {
	for _, s := range []*suite.Suite{suite.GOST2012x256, suite.ECDSAP256} {
		key, err := s.Generate(rand.Reader)
		must(t, err)
		other, err := s.Generate(rand.Reader)
		must(t, err)
		h := message.Header{Type: message.Poll, Service: "https://host/x", Kid: "1", Number: 1, Time: 2}
		signed, err := message.Sign(h, map[string]int{"a": 1}, key, s, rand.Reader)
		must(t, err)
		m, err := message.Parse(signed)
		must(t, err)
		h.Version, h.Algorithm = 1, m.Algorithm
		if d := cmp.Diff(h, m.Header); d != "" || string(m.Payload) != `{"a":1}` {
			t.Errorf("%s: %s", d, m.Payload)
		}
		if spki := public(t, key.Public(), s); !m.Verify(spki) {
			t.Errorf("%s: the signature does not verify", s.Name)
		}
		if m.Verify(public(t, other.Public(), s)) || m.Verify([]byte("x")) || m.Verify(nil) {
			t.Errorf("%s: the signature verifies under another key", s.Name)
		}
		for i, part := range []*string{&signed.Protected, &signed.Payload, &signed.Signature} {
			before := *part
			raw, _ := base64.RawURLEncoding.DecodeString(before)
			for j := range raw {
				raw[j] ^= 1
				*part = base64.RawURLEncoding.EncodeToString(raw)
				raw[j] ^= 1
				if m, err := message.Parse(signed); err == nil && m.Verify(public(t, key.Public(), s)) {
					t.Fatalf("%s: with byte %d of part %d changed it verifies still", s.Name, j, i)
				}
			}
			*part = before
		}
	}
}

// TestJOSE: messages with a P-256 key are JSON Web Signatures that another library reads
// and writes.
func TestJOSE(t *testing.T) {
	s := suite.ECDSAP256
	key, err := s.Generate(rand.Reader)
	must(t, err)
	ours, err := message.Sign(message.Header{Type: message.Poll, Service: "s", Kid: "1", Number: 1}, struct{}{}, key, s, rand.Reader)
	must(t, err)
	text, err := json.Marshal(ours)
	must(t, err)
	parsed, err := jose.ParseSignedJSON(string(text), []jose.SignatureAlgorithm{jose.ES256})
	must(t, err)
	if payload, err := parsed.Verify(key.Public()); err != nil || string(payload) != "{}" {
		t.Errorf("go-jose: %s, %v", payload, err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key.(*ecdsa.PrivateKey)}, (&jose.SignerOptions{}).
		WithHeader("v", 1).WithHeader("typ", "poll").WithHeader("aud", "s").WithHeader("kid", "1").WithHeader("num", 5).WithHeader("iat", 7))
	must(t, err)
	object, err := signer.Sign([]byte(`{}`))
	must(t, err)
	var theirs message.Signed
	must(t, json.Unmarshal([]byte(object.FullSerialize()), &theirs))
	m, err := message.Parse(theirs)
	must(t, err)
	if !m.Verify(public(t, key.Public(), s)) || m.Number != 5 || m.Type != message.Poll {
		t.Errorf("a message of go-jose: %+v", m.Header)
	}
}

// TestProofs: the bytes under the HMAC are those of docs/device-protocol.md.
func TestProofs(t *testing.T) {
	secret, _ := hex.DecodeString(strings.Repeat("0f", 32))
	spki := []byte("key")
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"registration", message.KInitProof(secret, "123456789012345", spki), "bf2e15a35e800b5de12485898521ae90d6833919c1591417a4818497fdef2d5e"},
		{"verification", message.VerificationProof(secret, []byte("seed"), "123456789012345", spki), "abf885257b415e3785a0234429329543b4ba5cf1a1790c46ac9a28eb67a6920a"},
	} {
		if got := hex.EncodeToString(c.got); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestParseQR(t *testing.T) {
	secret := message.Secret(make([]byte, message.SecretSize))
	k := message.KInit{Type: "Kinit", Version: 1, Data: message.KInitData{Kid: "1", UID: "u", ServiceURL: "https://host/x", KeyContent: secret, ActivationRequired: true}}
	v := message.Verification{Type: "Verification", Version: 1, Data: message.VerificationData{Kid: "1", UID: "u", ServiceURL: "https://host/x", Seed: "AA", Nonce: secret}}
	for _, want := range []any{k, v} {
		text, err := json.Marshal(want)
		must(t, err)
		got, err := message.ParseQR(string(text))
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%v: %s", err, d)
		}
	}
	for _, text := range []string{
		"", "x", "[]", "{}", `{"type":"Kinit","version":2}`, `{"type":"Kinit","version":1}`, `{"type":"Kinit","version":1,"data":[]}`,
		`{"type":"Operation","version":1,"data":{}}`, `{"type":"Verification","version":1,"data":{"kid":"1"}}`, strings.Repeat(" ", 3000) + "{}",
	} {
		if got, err := message.ParseQR(text); !errors.Is(err, message.ErrForm) {
			t.Errorf("%.40s is read as %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "AA", secret + "AA", "!" + secret[1:]} {
		if _, err := message.ReadSecret(text); !errors.Is(err, message.ErrForm) {
			t.Errorf("the secret %q: %v", text, err)
		}
	}
}

// FuzzParse: no input does harm, and no unsigned message verifies.
func FuzzParse(f *testing.F) {
	s := suite.ECDSAP256
	generated, err := s.Generate(rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	spki := public(f, generated.Public(), s)
	signed, err := message.Sign(message.Header{Type: message.Register, Service: "s", Key: spki, Number: 1}, struct{}{}, generated, s, rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(signed.Protected, signed.Payload, signed.Signature, "{}")
	f.Add("e30", "e30", "e30", `{"type":"Kinit","version":1,"data":{}}`)
	f.Fuzz(func(t *testing.T, protected, payload, signature, text string) {
		s := message.Signed{Protected: protected, Payload: payload, Signature: signature}
		if m, err := message.Parse(s); err == nil {
			m.CheckKey()
			if m.Verify(spki) && s != signed {
				t.Errorf("%v verifies", s)
			}
		} else if !errors.Is(err, message.ErrForm) {
			t.Error(err)
		}
		message.ParseQR(text)
	})
}

func public(t testing.TB, key any, s *suite.Suite) []byte {
	t.Helper()
	spki, err := x509gost.MarshalPublicKey(key, s)
	must(t, err)
	return spki
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
