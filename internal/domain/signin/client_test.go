// SPDX-License-Identifier: Apache-2.0

package signin_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"tamga/internal/domain/signin"
	tokens "tamga/internal/domain/token"
)

func TestSettingsAreChecked(t *testing.T) {
	b := newBench(t)
	_, err := signin.New(signin.Settings{}, signin.Deps{})
	_, ofTokens := tokens.New(tokens.Settings{}, tokens.Deps{Keys: b.keys})
	err = errors.Join(err, ofTokens)
	for _, want := range []string{"issuer", "resource", "token life", "failures", "window", "lock-out"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("empty settings: %v, want a word about %s", err, want)
		}
	}
	p384, kerr := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if kerr != nil {
		t.Fatal(kerr)
	}
	for name, keys := range map[string][]tokens.Key{
		"no key":     nil,
		"P-384":      {{ID: "a", Signer: p384}},
		"without id": {{Signer: b.keys[0].Signer}},
		"twice":      {b.keys[0], b.keys[0]},
	} {
		if _, err := tokens.New(settings().tokenSettings, tokens.Deps{Keys: keys}); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestClients(t *testing.T) {
	confidential := signin.Client{ID: "portal", Secret: signin.HashSecret("s3cret"), PasswordGrant: true}
	clients, err := signin.NewClients([]signin.Client{client, confidential}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id, secret string
		ok         bool
	}{
		{"tamga-dev", "", true},
		{"tamga-dev", "anything", false},
		{"portal", "s3cret", true},
		{"portal", "S3cret", false},
		{"portal", "", false},
		{"Portal", "s3cret", false},
		{"", "", false},
		{"unknown", "", false},
	} {
		got, err := clients.Authenticate(c.id, c.secret)
		if c.ok && (err != nil || got.ID != c.id) || !c.ok && (code(t, err) != tokens.InvalidClient || got.ID != "") {
			t.Errorf("%q with %q: %v, %v; want ok %v", c.id, c.secret, got.ID, err, c.ok)
		}
	}
	for name, list := range map[string][]signin.Client{
		"no id":                {{Public: true}},
		"twice":                {client, client},
		"public with a secret": {{ID: "x", Public: true, Secret: signin.HashSecret("x")}},
		"without a secret":     {{ID: "x"}},
		"secret not hashed":    {{ID: "x", Secret: []byte("s3cret")}},
	} {
		if _, err := signin.NewClients(list, ""); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
