// SPDX-License-Identifier: Apache-2.0

package message

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"unicode/utf8"

	"tamga/gost/gost3410"
	"tamga/gost/streebog"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// TypeChallenge is the type of the QR code that a device confirms without a network.
const TypeChallenge = "Confirm"

// CodeDigits is the length of the code that a device makes from a challenge.
const CodeDigits = 8

// Sizes of a challenge in bytes. ukmSize is the part of the nonce that VKO takes.
const (
	nonceSize        = 16
	ukmSize          = 8
	whatSize         = 32
	maxChallengeText = 1024
	maxChallengeID   = 64
)

// Labels of what is signed and derived. A change of a form needs another label.
const (
	challengeLabel = "tamga offline challenge 1"
	codeLabel      = "tamga offline code 1"
)

// Challenge is the QR code that a device confirms without a network.
type Challenge struct {
	Type    string        `json:"type"`
	Version int           `json:"version"`
	Data    ChallengeData `json:"data"`
}

// ChallengeData says what is confirmed, and has a key of the service for this challenge
// alone. Binary values are Base64URL without padding, unless they are hexadecimal.
type ChallengeData struct {
	Kid        string `json:"kid"`
	ServiceURL string `json:"service_url"`
	ID         string `json:"id"`        // of the operation
	What       string `json:"what"`      // digest, hexadecimal
	Text       string `json:"text"`      // for the user; UTF-8 in Base64URL, so that no reader guesses a character set
	Number     bool   `json:"number"`    // whether a decision that is delivered later needs Decision.Number
	Before     int64  `json:"before"`    // end of the operation, Unix seconds
	Nonce      string `json:"nonce"`     // 16 bytes
	Key        string `json:"key"`       // SubjectPublicKeyInfo of the service for this challenge
	Signature  string `json:"signature"` // by the key of the service that the device got at its registration
}

// NewChallenge makes a challenge for the device with a public key, and the code that the
// device makes from it. d has all fields but Text, What, Nonce, Key and Signature. The private key of
// the challenge does not outlive the call. service signs, with the suite of the device. A
// nil random means crypto/rand.Reader.
func NewChallenge(d ChallengeData, what []byte, text string, device []byte, service crypto.Signer, random io.Reader) (c Challenge, code string, err error) {
	pub, s, err := x509gost.ParsePublicKey(device)
	if err != nil {
		return Challenge{}, "", fmt.Errorf("message: the key of the device: %w", err)
	}
	ephemeral, wipe, err := newEphemeral(pub, s, random)
	if err != nil {
		return Challenge{}, "", err
	}
	defer wipe()
	spki, err := x509gost.MarshalPublicKey(ephemeral.Public(), s)
	if err != nil {
		return Challenge{}, "", fmt.Errorf("message: the key of a challenge: %w", err)
	}
	nonce, err := drawNonce(random)
	if err != nil {
		return Challenge{}, "", err
	}
	d.What, d.Text = hex.EncodeToString(what), base64.RawURLEncoding.EncodeToString([]byte(text))
	d.Nonce, d.Key = base64.RawURLEncoding.EncodeToString(nonce), base64.RawURLEncoding.EncodeToString(spki)
	o, err := d.read()
	if err != nil {
		return Challenge{}, "", err
	}
	value, err := s.Sign(random, service, s.Hash.Digest(o.input()))
	if err == nil {
		value, err = s.XMLValue(value)
	}
	if err != nil {
		return Challenge{}, "", fmt.Errorf("message: signing a challenge: %w", err)
	}
	d.Signature = base64.RawURLEncoding.EncodeToString(value)
	code, err = o.code(ephemeral, pub)
	return Challenge{TypeChallenge, Version, d}, code, err
}

// newEphemeral makes a private key on the curve of a public one. wipe overwrites the key,
// if its type allows it.
func newEphemeral(pub crypto.PublicKey, s *suite.Suite, random io.Reader) (key crypto.Signer, wipe func(), err error) {
	if p, ok := pub.(*gost3410.PublicKey); ok {
		k, err := gost3410.GenerateKey(p.Set(), random)
		if err != nil {
			return nil, nil, fmt.Errorf("message: the key of a challenge: %w", err)
		}
		return k, k.Wipe, nil
	}
	k, err := s.Generate(random)
	if err != nil {
		return nil, nil, fmt.Errorf("message: the key of a challenge: %w", err)
	}
	return k, func() {}, nil
}

// drawNonce returns a nonce whose UKM is not 0, which VKO does not take.
func drawNonce(random io.Reader) ([]byte, error) {
	nonce := make([]byte, nonceSize)
	for bytes.Equal(nonce[:ukmSize], make([]byte, ukmSize)) {
		if _, err := io.ReadFull(cmp.Or(random, rand.Reader), nonce); err != nil {
			return nil, fmt.Errorf("message: drawing a nonce: %w", err)
		}
	}
	return nonce, nil
}

// challenge is a ChallengeData whose values were decoded.
type challenge struct {
	*ChallengeData
	what, nonce, key []byte
	text             string
}

// read decodes the values of a challenge. Errors wrap ErrForm.
func (d *ChallengeData) read() (*challenge, error) {
	o := &challenge{ChallengeData: d}
	what, err := hex.DecodeString(d.What)
	if err != nil || len(what) != whatSize {
		return nil, malformed("the QR code has no digest of %d bytes", whatSize)
	}
	o.what = what
	var text []byte
	for _, f := range []struct {
		name, value string
		to          *[]byte
		most        int
	}{{"nonce", d.Nonce, &o.nonce, nonceSize}, {"key", d.Key, &o.key, maxSignature}, {"text", d.Text, &text, maxChallengeText}} {
		v, err := base64.RawURLEncoding.Strict().DecodeString(f.value)
		if err != nil || len(v) > f.most {
			return nil, malformed("%s of the QR code: want Base64URL without padding, of at most %d bytes", f.name, f.most)
		}
		*f.to = v
	}
	switch {
	case len(o.nonce) != nonceSize || bytes.Equal(o.nonce[:ukmSize], make([]byte, ukmSize)):
		return nil, malformed("the QR code has no nonce of %d bytes", nonceSize)
	case d.Kid == "" || d.ServiceURL == "" || d.ID == "" || len(d.ID) > maxChallengeID || d.Before <= 0:
		return nil, malformed("the QR code of an operation is damaged")
	case len(text) == 0 || !utf8.Valid(text):
		return nil, malformed("the QR code has no text for the user")
	}
	o.text = string(text)
	return o, nil
}

// input returns the bytes that the service signs.
func (o *challenge) input() []byte {
	number := []byte{0}
	if o.Number {
		number[0] = 1
	}
	return prefixed([]byte(challengeLabel), []byte(o.Kid), []byte(o.ServiceURL), []byte(o.ID), o.what, []byte(o.text),
		number, binary.BigEndian.AppendUint64(nil, uint64(o.Before)), o.nonce, o.key)
}

// Verify reports whether the holder of a key of the service, a SubjectPublicKeyInfo, signed
// the challenge.
func (d *ChallengeData) Verify(service []byte) bool {
	o, err := d.read()
	if err != nil {
		return false
	}
	pub, s, err := x509gost.ParsePublicKey(service)
	if err != nil || s.Accepts(pub) != nil {
		return false
	}
	signature, err := base64.RawURLEncoding.Strict().DecodeString(d.Signature)
	if err != nil {
		return false
	}
	value, err := s.FromXMLValue(signature)
	return err == nil && s.Verify(pub, s.Hash.Digest(o.input()), value) == nil
}

// Shown returns the text for the user.
func (d *ChallengeData) Shown() (string, error) {
	o, err := d.read()
	if err != nil {
		return "", err
	}
	return o.text, nil
}

// Code returns the code that a device with a private key makes. The device verifies the
// challenge first. Errors wrap ErrForm if the key of the challenge is not on the curve of
// the device.
func (d *ChallengeData) Code(device crypto.Signer) (string, error) {
	o, err := d.read()
	if err != nil {
		return "", err
	}
	pub, _, err := x509gost.ParsePublicKey(o.key)
	if err != nil {
		return "", malformed("the QR code has no key of a challenge")
	}
	return o.code(device, pub)
}

// code returns the code of a private key of one side and the public key of the other one.
func (o *challenge) code(private crypto.Signer, public crypto.PublicKey) (string, error) {
	key, newHash, err := o.agree(private, public)
	if err != nil {
		return "", err
	}
	defer clear(key)
	mac := hmac.New(newHash, key)
	mac.Write(prefixed([]byte(codeLabel), []byte(o.Kid), []byte(o.ID), o.what, o.nonce))
	n := binary.BigEndian.Uint64(mac.Sum(nil)[:8])
	return fmt.Sprintf("%0*d", CodeDigits, n%100_000_000), nil
}

// agree returns the key of the code and the hash of its MAC.
func (o *challenge) agree(private crypto.Signer, public crypto.PublicKey) ([]byte, func() hash.Hash, error) {
	other := malformed("the QR code is for a device with a key of another kind")
	switch k := private.(type) {
	case *gost3410.PrivateKey:
		peer, ok := public.(*gost3410.PublicKey)
		if !ok || !k.Set().SameCurve(peer.Set()) {
			return nil, nil, other
		}
		shared, err := k.VKO(peer, o.nonce[:ukmSize], streebog.New256)
		if err != nil {
			return nil, nil, err
		}
		defer clear(shared)
		return kdfStreebog(shared, codeLabel, o.nonce), streebog.New256, nil
	case *ecdsa.PrivateKey:
		peer, ok := public.(*ecdsa.PublicKey)
		if !ok || peer.Curve != k.Curve {
			return nil, nil, other
		}
		own, err := k.ECDH()
		if err != nil {
			return nil, nil, err
		}
		point, err := peer.ECDH()
		if err != nil {
			return nil, nil, other
		}
		shared, err := own.ECDH(point)
		if err != nil {
			return nil, nil, err
		}
		defer clear(shared)
		key, err := hkdf.Key(sha256.New, shared, o.nonce, codeLabel, sha256.Size)
		return key, sha256.New, err
	}
	return nil, nil, errors.New("message: a device has no key of this kind")
}

// kdfStreebog is KDF_GOSTR3411_2012_256 (RFC 7836, section 4.5).
func kdfStreebog(key []byte, label string, seed []byte) []byte {
	mac := hmac.New(streebog.New256, key)
	mac.Write([]byte{1})
	mac.Write([]byte(label))
	mac.Write([]byte{0})
	mac.Write(seed)
	mac.Write([]byte{1, 0}) // 256 bits
	return mac.Sum(nil)
}
