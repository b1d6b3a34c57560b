// SPDX-License-Identifier: Apache-2.0

package message_test

import (
	"crypto"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"tamga/internal/domain/device/message"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// TestOfflineVectors reads the challenges of testdata. OpenSSL with gost-engine verifies their
// signatures and makes the same codes (offline.py).
func TestOfflineVectors(t *testing.T) {
	text, err := os.ReadFile("testdata/offline.json")
	must(t, err)
	var rows []struct {
		Algorithm string          `json:"alg"`
		Device    []byte          `json:"device_key"`
		Service   []byte          `json:"service_key"`
		QR        json.RawMessage `json:"qr"`
		Code      string          `json:"code"`
	}
	must(t, json.Unmarshal(text, &rows))
	if len(rows) != 2 || rows[0].Algorithm == rows[1].Algorithm {
		t.Fatalf("there are %d vectors, want one of each algorithm", len(rows))
	}
	for _, r := range rows {
		q, err := message.ParseQR(string(r.QR))
		must(t, err)
		c := q.(message.Challenge)
		key, _, err := x509gost.ParsePrivateKey(r.Device)
		must(t, err)
		if !c.Data.Verify(r.Service) {
			t.Errorf("%s: the signature of the service does not verify", r.Algorithm)
		}
		if code, err := c.Data.Code(key); err != nil || code != r.Code {
			t.Errorf("%s: the code is %s, %v, want %s", r.Algorithm, code, err, r.Code)
		}
		if text, err := c.Data.Shown(); err != nil || !strings.Contains(text, "договор.pdf") {
			t.Errorf("%s: the text is %q, %v", r.Algorithm, text, err)
		}
	}
}

// sides are the keys of a device and of the service.
func sides(t testing.TB, s *suite.Suite) (device, service crypto.Signer, deviceSPKI, serviceSPKI []byte) {
	t.Helper()
	device, err := s.Generate(nil)
	must(t, err)
	service, err = s.Generate(nil)
	must(t, err)
	return device, service, public(t, device.Public(), s), public(t, service.Public(), s)
}

func challengeOf(t testing.TB, device []byte, service crypto.Signer) (message.ChallengeData, string) {
	t.Helper()
	d := message.ChallengeData{Kid: "1", ServiceURL: "https://host/x", ID: "5f7c", Before: 1795001200}
	c, code, err := message.NewChallenge(d, make([]byte, 32), "text", device, service, nil)
	must(t, err)
	return c.Data, code
}

// TestOffline: both sides make the same code, and each change of a challenge shows.
func TestOffline(t *testing.T) {
	for _, s := range []*suite.Suite{suite.GOST2012x256, suite.ECDSAP256} {
		device, service, deviceSPKI, serviceSPKI := sides(t, s)
		other, _, otherSPKI, _ := sides(t, s)
		d, code := challengeOf(t, deviceSPKI, service)
		again, second := challengeOf(t, deviceSPKI, service)
		if again.Key == d.Key || again.Nonce == d.Nonce {
			t.Errorf("%s: two challenges share a key or a nonce", s.Name)
		}
		if got, err := d.Code(device); err != nil || got != code || len(code) != message.CodeDigits || !d.Verify(serviceSPKI) {
			t.Errorf("%s: the device makes %s, %v, the service %s", s.Name, got, err, code)
		}
		if got, err := again.Code(device); err != nil || got != second {
			t.Errorf("%s: the device makes %s, %v, the service %s", s.Name, got, err, second)
		}
		if got, err := d.Code(other); err != nil || got == code {
			t.Errorf("%s: another device makes %s, %v", s.Name, got, err)
		}
		if d.Verify(otherSPKI) || d.Verify(nil) {
			t.Errorf("%s: the signature verifies with another key", s.Name)
		}
		for name, change := range map[string]func(c *message.ChallengeData){
			"kid":         func(c *message.ChallengeData) { c.Kid = "2" },
			"service_url": func(c *message.ChallengeData) { c.ServiceURL += "/" },
			"id":          func(c *message.ChallengeData) { c.ID += "a" },
			"what":        func(c *message.ChallengeData) { c.What = "01" + c.What[2:] },
			"text":        func(c *message.ChallengeData) { c.Text += "AA" },
			"number":      func(c *message.ChallengeData) { c.Number = true },
			"before":      func(c *message.ChallengeData) { c.Before++ },
			"nonce":       func(c *message.ChallengeData) { c.Nonce = again.Nonce },
			"key":         func(c *message.ChallengeData) { c.Key = again.Key },
			"signature":   func(c *message.ChallengeData) { c.Signature = again.Signature },
		} {
			changed := d
			if change(&changed); changed.Verify(serviceSPKI) {
				t.Errorf("%s: the signature verifies with another %s", s.Name, name)
			}
		}
		for name, change := range map[string]func(c *message.ChallengeData){
			"kid":   func(c *message.ChallengeData) { c.Kid = "2" },
			"id":    func(c *message.ChallengeData) { c.ID += "a" },
			"what":  func(c *message.ChallengeData) { c.What = "01" + c.What[2:] },
			"nonce": func(c *message.ChallengeData) { c.Nonce = again.Nonce },
			"key":   func(c *message.ChallengeData) { c.Key = again.Key },
		} {
			changed := d
			change(&changed)
			if got, err := changed.Code(device); err != nil || got == code {
				t.Errorf("%s: the code with another %s: %s, %v", s.Name, name, got, err)
			}
		}
	}
	// A key of another kind.
	device, service, deviceSPKI, _ := sides(t, suite.GOST2012x256)
	ours, _ := challengeOf(t, deviceSPKI, service)
	_, service, deviceSPKI, _ = sides(t, suite.ECDSAP256)
	theirs, _ := challengeOf(t, deviceSPKI, service)
	ours.Key = theirs.Key
	if _, err := ours.Code(device); !errors.Is(err, message.ErrForm) {
		t.Errorf("a key of another kind: %v", err)
	}
	if _, _, err := message.NewChallenge(message.ChallengeData{Kid: "1", ServiceURL: "s", ID: "1", Before: 1}, make([]byte, 32), "text", []byte("x"), service, nil); err == nil {
		t.Error("a challenge for no key was made")
	}
}

// TestChallengeForm: malformed codes are refused.
func TestChallengeForm(t *testing.T) {
	device, service, spki, serviceSPKI := sides(t, suite.ECDSAP256)
	d, _ := challengeOf(t, spki, service)
	long := base64.RawURLEncoding.EncodeToString([]byte(strings.Repeat("x", 1025)))
	for name, change := range map[string]func(c *message.ChallengeData){
		"no kid":         func(c *message.ChallengeData) { c.Kid = "" },
		"no service":     func(c *message.ChallengeData) { c.ServiceURL = "" },
		"no id":          func(c *message.ChallengeData) { c.ID = "" },
		"a long id":      func(c *message.ChallengeData) { c.ID = strings.Repeat("x", 65) },
		"a short digest": func(c *message.ChallengeData) { c.What = c.What[2:] },
		"no digest":      func(c *message.ChallengeData) { c.What = strings.Repeat("x", 64) },
		"no text":        func(c *message.ChallengeData) { c.Text = "" },
		"a long text":    func(c *message.ChallengeData) { c.Text = long },
		"broken UTF-8":   func(c *message.ChallengeData) { c.Text = "_w" },
		"no end":         func(c *message.ChallengeData) { c.Before = 0 },
		"a short nonce":  func(c *message.ChallengeData) { c.Nonce = "AQ" },
		"a zero UKM":     func(c *message.ChallengeData) { c.Nonce = "AAAAAAAAAAAAAAAAAAAAAQ" },
		"padding":        func(c *message.ChallengeData) { c.Nonce += "==" },
		"a long key":     func(c *message.ChallengeData) { c.Key = long },
	} {
		c := message.Challenge{Type: message.TypeChallenge, Version: 1, Data: d}
		change(&c.Data)
		text, err := json.Marshal(c)
		must(t, err)
		if _, err := message.ParseQR(string(text)); !errors.Is(err, message.ErrForm) {
			t.Errorf("%s: %v", name, err)
		}
		if c.Data.Verify(serviceSPKI) {
			t.Errorf("%s: the signature verifies", name)
		}
		if _, err := c.Data.Code(device); !errors.Is(err, message.ErrForm) {
			t.Errorf("%s: a code: %v", name, err)
		}
	}
	d.Key = "AQ"
	if _, err := d.Code(device); !errors.Is(err, message.ErrForm) {
		t.Errorf("no key: %v", err)
	}
}

// FuzzChallenge: no QR code does harm, and none but those of the service verifies.
func FuzzChallenge(f *testing.F) {
	device, service, spki, serviceSPKI := sides(f, suite.ECDSAP256)
	d, _ := challengeOf(f, spki, service)
	text, err := json.Marshal(message.Challenge{Type: message.TypeChallenge, Version: 1, Data: d})
	must(f, err)
	f.Add(string(text))
	f.Add(`{"type":"Confirm","version":1,"data":{}}`)
	f.Fuzz(func(t *testing.T, text string) {
		q, err := message.ParseQR(text)
		c, ok := q.(message.Challenge)
		if err != nil || !ok {
			if err != nil && !errors.Is(err, message.ErrForm) {
				t.Error(err)
			}
			return
		}
		if c.Data.Verify(serviceSPKI) && c.Data != d {
			t.Errorf("%+v verifies", c.Data)
		}
		if code, err := c.Data.Code(device); err == nil && len(code) != message.CodeDigits {
			t.Errorf("the code %q", code)
		}
		if _, err := c.Data.Shown(); err != nil {
			t.Error(err)
		}
	})
}

// BenchmarkNewChallenge is what the QR code of a challenge costs the service.
func BenchmarkNewChallenge(b *testing.B) {
	for _, s := range []*suite.Suite{suite.GOST2012x256, suite.ECDSAP256} {
		b.Run(s.Name, func(b *testing.B) {
			_, service, device, _ := sides(b, s)
			for b.Loop() {
				challengeOf(b, device, service)
			}
		})
	}
}
