// SPDX-License-Identifier: Apache-2.0

package signin_test

import (
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	tokens "tamga/internal/domain/token"
)

var b64 = base64.RawURLEncoding

// parts reads the header and claims of a token.
func parts(t testing.TB, token string) (header, claims map[string]any) {
	t.Helper()
	for i, into := range []*map[string]any{&header, &claims} {
		raw, err := b64.DecodeString(strings.Split(token, ".")[i])
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, into); err != nil {
			t.Fatal(err)
		}
	}
	return header, claims
}

// encode is the part of a token that is signed.
func encode(t testing.TB, header, claims map[string]any) string {
	t.Helper()
	h, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	c, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return b64.EncodeToString(h) + "." + b64.EncodeToString(c)
}

// es256 signs header and claims by hand, whatever they say.
func es256(t testing.TB, key tokens.Key, header, claims map[string]any) string {
	t.Helper()
	input := encode(t, header, claims)
	digest := sha256.Sum256([]byte(input))
	r, s, err := ecdsa.Sign(rand.Reader, key.Signer.(*ecdsa.PrivateKey), digest[:])
	if err != nil {
		t.Fatal(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return input + "." + b64.EncodeToString(signature)
}

func with(m map[string]any, key string, value any) map[string]any {
	m = maps.Clone(m)
	m[key] = value
	if value == nil {
		delete(m, key)
	}
	return m
}

func TestTokenContent(t *testing.T) {
	b := newBench(t)
	header, claims := parts(t, b.token(t))
	if d := cmp.Diff(map[string]any{"alg": "ES256", "kid": "second", "typ": "at+jwt"}, header); d != "" {
		t.Error(d)
	}
	iat := float64(b.clock.Now().Unix())
	want := map[string]any{
		"iss": "http://127.0.0.1/STS", "aud": resource, "iat": iat, "exp": iat + 300, "jti": claims["jti"],
		"unique_name": "Demo", "nameid": b.demo.ID, "dss_iss": "realsts",
	}
	if d := cmp.Diff(want, claims); d != "" {
		t.Error(d)
	}

	// Existing clients read the primary contacts, and no others.
	contacts := store.Contacts{DB: b.db}
	for _, c := range []contact.Contact{
		{Type: contact.PhoneNumber, Value: "79990000001", Primary: true}, {Type: contact.PhoneNumber, Value: "79990000002"},
		{Type: contact.EmailAddress, Value: "demo@example.org", Primary: true}, {Type: contact.EmailAddress, Value: "other@example.org"},
	} {
		c.UserID = b.demo.ID
		if added, err := contacts.AddContact(t.Context(), c, c.Value, false); err != nil || !added {
			t.Fatal(added, err)
		}
	}
	_, claims = parts(t, b.token(t))
	want["jti"] = claims["jti"]
	want["http://schemas.xmlsoap.org/ws/2005/05/identity/claims/mobilephone"], want["email"] = "79990000001", "demo@example.org"
	if d := cmp.Diff(want, claims); d != "" {
		t.Error(d)
	}
}

func TestForgedTokens(t *testing.T) {
	b := newBench(t)
	good := b.token(t)
	b.clock.add(100 * time.Millisecond) // to a whole second, which a token can name
	header, claims := parts(t, good)
	key := b.keys[0]
	foreign := newKey(t, "foreign")
	if _, err := b.Authenticate(t.Context(), es256(t, key, header, claims)); err != nil {
		t.Fatalf("a token signed by hand with our key: %v; the cases below would show nothing", err)
	}
	other := with(header, "kid", "first")
	if _, err := b.Authenticate(t.Context(), es256(t, b.keys[1], other, claims)); err != nil {
		t.Fatalf("a token of the older key: %v", err)
	}

	mac := func(key []byte) string {
		input := encode(t, with(header, "alg", "HS256"), claims)
		h := hmac.New(sha256.New, key)
		h.Write([]byte(input))
		return input + "." + b64.EncodeToString(h.Sum(nil))
	}
	public := key.Signer.Public().(*ecdsa.PublicKey)
	spki, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	point, err := public.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	rs256, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: rsaKey}, (&jose.SignerOptions{}).WithType("at+jwt").WithHeader("kid", "second"))
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	rsaSigned, err := rs256.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	rsaToken, err := rsaSigned.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	jwk := map[string]any{}
	raw, err := json.Marshal(jose.JSONWebKey{Key: foreign.Signer.Public(), KeyID: "second"})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &jwk); err != nil {
		t.Fatal(err)
	}
	piece := strings.Split(good, ".")
	_, unrecorded := parts(t, good)
	unrecorded["jti"] = "11111111-1111-4111-8111-111111111111"

	for name, token := range map[string]string{
		"empty":                       "",
		"garbage":                     "garbage",
		"dots":                        "..",
		"endless":                     strings.Repeat("A", 1<<20),
		"changed claims":              piece[0] + "." + b64.EncodeToString(payload[:len(payload)-1]) + "." + piece[2],
		"claims of another token":     piece[0] + "." + strings.Split(encode(t, header, with(claims, "nameid", "x")), ".")[1] + "." + piece[2],
		"no signature":                piece[0] + "." + piece[1] + ".",
		"signature of zeros":          piece[0] + "." + piece[1] + "." + b64.EncodeToString(make([]byte, 64)),
		"signature cut":               good[:len(good)-8],
		"alg none":                    encode(t, with(header, "alg", "none"), claims) + ".",
		"alg None":                    encode(t, with(header, "alg", "None"), claims) + ".",
		"alg none with our signature": encode(t, with(header, "alg", "none"), claims) + "." + piece[2],
		"HS256 keyed by our SPKI":     mac(spki),
		"HS256 keyed by our point":    mac(point),
		"HS256 keyed by nothing":      mac(nil),
		"RS256":                       rsaToken,
		"ES384 in name":               es256(t, key, with(header, "alg", "ES384"), claims),
		"key of another party":        es256(t, foreign, header, claims),
		"unknown kid":                 es256(t, foreign, with(header, "kid", "foreign"), claims),
		"no kid":                      es256(t, key, with(header, "kid", nil), claims),
		"kid of our other key":        es256(t, key, with(header, "kid", "first"), claims),
		"key in the header":           es256(t, foreign, with(header, "jwk", jwk), claims),
		"key behind an address":       es256(t, foreign, with(header, "jku", "http://127.0.0.1/keys"), claims),
		"critical header":             es256(t, key, with(with(header, "crit", []string{"x"}), "x", 1), claims),
		"typ JWT":                     es256(t, key, with(header, "typ", "JWT"), claims),
		"no typ":                      es256(t, key, with(header, "typ", nil), claims),
		"another issuer":              es256(t, key, header, with(claims, "iss", "http://other/STS")),
		"no issuer":                   es256(t, key, header, with(claims, "iss", nil)),
		"another audience":            es256(t, key, header, with(claims, "aud", "urn:other")),
		"alias as audience":           es256(t, key, header, with(claims, "aud", settings().Aliases[0])),
		"two audiences":               es256(t, key, header, with(claims, "aud", []string{resource, "urn:other"})),
		"no audience":                 es256(t, key, header, with(claims, "aud", nil)),
		"expired":                     es256(t, key, header, with(claims, "exp", b.clock.Now().Unix())),
		"no expiry":                   es256(t, key, header, with(claims, "exp", nil)),
		"expiry that is no number":    es256(t, key, header, with(claims, "exp", "never")),
		"expiry beyond numbers":       es256(t, key, header, with(claims, "exp", 1e300)),
		"no jti":                      es256(t, key, header, with(claims, "jti", nil)),
		"jti of no token":             es256(t, key, header, unrecorded),
		"another user":                es256(t, key, header, with(claims, "nameid", "11111111-1111-4111-8111-111111111111")),
		"claims that are no object":   piece[0] + "." + b64.EncodeToString([]byte("[]")) + "." + piece[2],
		"JSON serialization":          `{"payload":"` + piece[1] + `","protected":"` + piece[0] + `","signature":"` + piece[2] + `"}`,
		"five parts, as if encrypted": good + "." + piece[1] + "." + piece[2],
		"space":                       good + " x",
	} {
		who, err := b.Authenticate(t.Context(), token)
		f, ok := fault.As(err)
		if !ok || f.Code != fault.Unauthorized || who.UserID != "" {
			t.Errorf("%s: %+v, %v; want %s", name, who, err, fault.Unauthorized)
			continue
		}
		if f.Message != "the access token is missing, expired or not valid; obtain a new one" {
			t.Errorf("%s: the message tells more than another: %q", name, f.Message)
		}
		if len(token) > 20 && len(token) < 4000 && strings.Contains(err.Error(), token) {
			t.Errorf("%s: the token is in the text for the log", name)
		}
	}
}

// Expiry counts by the record too, should a key ever sign more than it should.
func TestTokenThatOutlivesItsRecord(t *testing.T) {
	b := newBench(t)
	header, claims := parts(t, b.token(t))
	long := es256(t, b.keys[0], header, with(claims, "exp", b.clock.Now().Add(time.Hour).Unix()))
	if _, err := b.Authenticate(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	b.clock.add(5 * time.Minute)
	if _, err := b.Authenticate(t.Context(), long); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("error %v, want %s", err, fault.Unauthorized)
	}
}

// A token of one service is nothing to another with other keys, issuer or
// resource.
func TestTokensOfOtherServices(t *testing.T) {
	b := newBench(t)
	token := b.token(t)
	issuer, audience := settings(), settings()
	issuer.Issuer += "2"
	audience.Resource, audience.Aliases = "urn:other", []string{resource}
	for name, other := range map[string]services{
		"other key":      b.service(t, settings(), newKey(t, "second")),
		"other issuer":   b.service(t, issuer, b.keys...),
		"other resource": b.service(t, audience, b.keys...),
	} {
		if _, err := other.Authenticate(t.Context(), token); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s: %v, want %s", name, err, fault.Unauthorized)
		}
	}
	if _, err := b.service(t, settings(), newKey(t, "third"), b.keys[0]).Authenticate(t.Context(), token); err != nil {
		t.Errorf("after a new key was put in front: %v", err)
	}
}

func FuzzAuthenticate(f *testing.F) {
	b := newBench(f)
	good := b.token(f)
	f.Add(good)
	f.Add("..")
	f.Add(strings.Replace(good, ".", "..", 1))
	f.Fuzz(func(t *testing.T, token string) {
		who, err := b.Authenticate(t.Context(), token)
		switch {
		case err == nil && who.UserID != b.demo.ID:
			t.Errorf("%q is a user: %+v", token, who)
		case err != nil && !fault.Is(err, fault.Unauthorized):
			t.Errorf("%q: %v, want %s", token, err, fault.Unauthorized)
		}
	})
}
