// SPDX-License-Identifier: Apache-2.0

// Package webauthntest is an authenticator and a browser of WebAuthn for tests: it creates
// passkeys and answers challenges, also wrongly.
package webauthntest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/fxamacker/cbor/v2"
)

// Flags of the data of an authenticator.
const (
	Present  = 1 << 0
	Verified = 1 << 2

	attested = 1 << 6
)

// Passkey is one passkey with the browser that uses it. Its fields may be changed between
// answers.
type Passkey struct {
	Origin  string // of the page
	RPID    string // domain that the answer is for
	Flags   byte
	Counter uint32 // of signatures; counts up with each answer unless Stuck
	Stuck   bool
	Handle  []byte // of the user, from the options
	ID      []byte

	t   testing.TB
	key *ecdsa.PrivateKey
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// New returns a passkey that is not registered anywhere.
func New(t testing.TB, origin, rpID string) *Passkey {
	t.Helper()
	p := &Passkey{Origin: origin, RPID: rpID, Flags: Present | Verified, ID: make([]byte, 16), t: t}
	rand.Read(p.ID)
	var err error
	if p.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	return p
}

// client returns what the browser says about itself.
func (p *Passkey) client(kind, challenge string) []byte {
	return p.json(map[string]any{"type": kind, "challenge": challenge, "origin": p.Origin, "crossOrigin": false})
}

func (p *Passkey) json(v any) []byte {
	p.t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		p.t.Fatal(err)
	}
	return text
}

func (p *Passkey) cbor(v any) []byte {
	p.t.Helper()
	bytes, err := cbor.Marshal(v)
	if err != nil {
		p.t.Fatal(err)
	}
	return bytes
}

// data returns the data of the authenticator.
func (p *Passkey) data(flags byte) []byte {
	if !p.Stuck {
		p.Counter++
	}
	domain := sha256.Sum256([]byte(p.RPID))
	return binary.BigEndian.AppendUint32(append(domain[:], flags), p.Counter)
}

// options are what a page was told.
type options struct {
	Challenge string
	User      struct{ ID string }
}

func (p *Passkey) read(from []byte) (o options) {
	p.t.Helper()
	if err := json.Unmarshal(from, &o); err != nil || o.Challenge == "" {
		p.t.Fatalf("%s: %v", from, err)
	}
	return o
}

// Create answers the options of navigator.credentials.create.
func (p *Passkey) Create(from []byte) []byte {
	p.t.Helper()
	o := p.read(from)
	var err error
	if p.Handle, err = base64.RawURLEncoding.DecodeString(o.User.ID); err != nil {
		p.t.Fatal(err)
	}
	point, err := p.key.PublicKey.Bytes() // 4, X, Y
	if err != nil {
		p.t.Fatal(err)
	}
	key := p.cbor(map[int]any{1: 2, 3: -7, -1: 1, -2: point[1:33], -3: point[33:]})
	data := append(p.data(p.Flags|attested), make([]byte, 16)...)
	data = append(binary.BigEndian.AppendUint16(data, uint16(len(p.ID))), p.ID...)
	data = append(data, key...)
	return p.json(map[string]any{"id": b64(p.ID), "rawId": b64(p.ID), "type": "public-key", "response": map[string]string{
		"clientDataJSON":    b64(p.client("webauthn.create", o.Challenge)),
		"attestationObject": b64(p.cbor(map[string]any{"fmt": "none", "attStmt": map[string]any{}, "authData": data})),
	}})
}

// Get answers the options of navigator.credentials.get.
func (p *Passkey) Get(from []byte) []byte {
	p.t.Helper()
	client := p.client("webauthn.get", p.read(from).Challenge)
	data := p.data(p.Flags)
	hash := sha256.Sum256(client)
	digest := sha256.Sum256(append(data[:len(data):len(data)], hash[:]...))
	signature, err := p.key.Sign(rand.Reader, digest[:], crypto.SHA256)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.json(map[string]any{"id": b64(p.ID), "rawId": b64(p.ID), "type": "public-key", "response": map[string]string{
		"clientDataJSON": b64(client), "authenticatorData": b64(data), "signature": b64(signature), "userHandle": b64(p.Handle),
	}})
}
