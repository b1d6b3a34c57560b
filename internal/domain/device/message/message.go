// SPDX-License-Identifier: Apache-2.0

// Package message defines the protocol of mobile devices: the signed messages that they
// send, and the content of the QR codes that they scan. Begin with Parse and
// Message.Verify in the service, and with Sign and ParseQR in a device. The service and
// the command-line device share it. docs/device-protocol.md describes the protocol. The
// package stores nothing and checks no numbers or times.
//
// A message is a JSON object of three Base64URL texts without padding, the flattened
// form of a JSON Web Signature (RFC 7515, 7.2.2): "protected" is the header below,
// "payload" the content, "signature" the value over "protected.payload". A device
// with a P-256 key can use any library for such signatures.
package message

import (
	"crypto"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Version of the messages.
const Version = 1

// Types of messages. A signature is valid for one type, so a message cannot be used for
// another purpose.
const (
	Register = "register" // a new device registers
	Verify   = "verify"   // it has scanned the QR code with the nonce
	Push     = "push"     // it sets its push address
	Poll     = "poll"     // it asks for operations to confirm
	Leave    = "leave"    // it deletes itself

	Operation = "operation" // it reads an operation to confirm
	Read      = "document"  // it reads the bytes of a document of an operation
	Confirm   = "confirm"   // its user approves an operation
	Decline   = "decline"   // its user declines an operation
	Deliver   = "deliver"   // it sends an Approval or a Refusal that was signed before

	ServiceKey = "service-key" // it knows the new key of the service

	// Messages inside of a Deliver. No address takes them, so they may be kept and sent later.
	Approval = "approval" // its user approved an operation
	Refusal  = "refusal"  // its user declined an operation
)

// Limits of a message, in bytes of its Base64URL texts.
const (
	maxProtected = 4 << 10
	maxPayload   = 16 << 10
	maxSignature = 1 << 10
)

// Header is the header of a message. It has either Kid or Key.
type Header struct {
	Version   int    `json:"v"`
	Algorithm string `json:"alg"`
	Type      string `json:"typ"`
	Service   string `json:"aud"`           // service_url the message is for
	Kid       string `json:"kid,omitempty"` // of a registered device
	Key       []byte `json:"key,omitempty"` // SubjectPublicKeyInfo of a new one
	Number    int64  `json:"num"`           // greater in each message than in the one before
	Time      int64  `json:"iat"`           // when it was made, Unix seconds
}

// Signed is a message on the wire.
type Signed struct {
	Protected string `json:"protected"`
	Payload   string `json:"payload"`
	Signature string `json:"signature"`
}

// Message is a parsed message. Its signer is not known before Verify.
type Message struct {
	Header
	Payload []byte // JSON

	suite     *suite.Suite
	input     []byte
	signature []byte
}

// algorithms by their names in headers. The signature value is r||s of 32 bytes each for
// ES256 (RFC 7518, 3.4), and s||r for GOST (RFC 4491, 2.2.2).
var algorithms = map[string]*suite.Suite{
	"ES256":        suite.ECDSAP256,
	"GOST2012-256": suite.GOST2012x256,
}

// ErrForm is wrapped by errors about malformed messages. Their texts may be shown to the
// sender.
var ErrForm = errors.New("message")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrForm}, args...)...)
}

// Parse reads a message of a known version and algorithm. Errors wrap ErrForm.
func Parse(s Signed) (*Message, error) {
	if len(s.Protected) > maxProtected || len(s.Payload) > maxPayload || len(s.Signature) > maxSignature {
		return nil, malformed("too long, want at most %d bytes of protected and %d of payload", maxProtected, maxPayload)
	}
	m := &Message{}
	var protected []byte
	for _, part := range []struct {
		name, text string
		to         *[]byte
	}{{"protected", s.Protected, &protected}, {"payload", s.Payload, &m.Payload}, {"signature", s.Signature, &m.signature}} {
		data, err := base64.RawURLEncoding.Strict().DecodeString(part.text)
		if err != nil || len(data) == 0 {
			return nil, malformed("%s: want Base64URL without padding", part.name)
		}
		*part.to = data
	}
	if err := json.Unmarshal(protected, &m.Header); err != nil {
		return nil, malformed("protected: want the JSON object of the header")
	}
	if m.Version != Version {
		return nil, malformed("v: this service speaks version %d", Version)
	}
	if m.suite = algorithms[m.Algorithm]; m.suite == nil {
		return nil, malformed("alg: want GOST2012-256 or ES256")
	}
	if (m.Kid == "") == (len(m.Key) == 0) {
		return nil, malformed("kid, key: want one of them")
	}
	if m.Number < 1 {
		return nil, malformed("num: want a number above 0")
	}
	if !json.Valid(m.Payload) {
		return nil, malformed("payload: want JSON")
	}
	m.input = []byte(s.Protected + "." + s.Payload)
	return m, nil
}

// ErrKey reports that devices may not have this public key.
var ErrKey = malformed("key: want the SubjectPublicKeyInfo of a GOST R 34.10-2012 key of 256 bits or of a P-256 key, as alg says")

// CheckKey checks that the public key of a new device is of the algorithm of the message.
// The error is ErrKey.
func (m *Message) CheckKey() error {
	_, err := m.publicKey(m.Key)
	return err
}

func (m *Message) publicKey(spki []byte) (crypto.PublicKey, error) {
	pub, s, err := x509gost.ParsePublicKey(spki)
	if err != nil || s != m.suite || s.Accepts(pub) != nil {
		return nil, ErrKey
	}
	return pub, nil
}

// Verify reports whether the holder of the key, a SubjectPublicKeyInfo, signed the
// message.
func (m *Message) Verify(spki []byte) bool {
	pub, err := m.publicKey(spki)
	if err != nil {
		return false
	}
	value, err := m.suite.FromXMLValue(m.signature) // r||s, as in a JSON Web Signature
	return err == nil && m.suite.Verify(pub, m.suite.Hash.Digest(m.input), value) == nil
}

// Sign makes a message. Version and algorithm of the header are filled in. A nil
// rand means crypto/rand.Reader.
func Sign(h Header, payload any, key crypto.Signer, s *suite.Suite, rand io.Reader) (Signed, error) {
	h.Version = Version
	for name, known := range algorithms {
		if known == s {
			h.Algorithm = name
		}
	}
	if h.Algorithm == "" {
		return Signed{}, fmt.Errorf("message: no device has keys of %s: want %s or %s", s.Name, suite.GOST2012x256.Name, suite.ECDSAP256.Name)
	}
	var texts [2]string
	for i, v := range []any{h, payload} {
		text, err := json.Marshal(v)
		if err != nil {
			return Signed{}, fmt.Errorf("message: %w", err)
		}
		texts[i] = base64.RawURLEncoding.EncodeToString(text)
	}
	value, err := s.Sign(rand, key, s.Hash.Digest([]byte(texts[0]+"."+texts[1])))
	if err != nil {
		return Signed{}, fmt.Errorf("message: signing: %w", err)
	}
	if value, err = s.XMLValue(value); err != nil {
		return Signed{}, fmt.Errorf("message: signing: %w", err)
	}
	return Signed{texts[0], texts[1], base64.RawURLEncoding.EncodeToString(value)}, nil
}

// KInitProof proves that the holder of a key has seen the QR code of a K-init:
// HMAC-SHA-256 under the content of the code over the purpose and the key, so that the
// proof is useless for another key.
func KInitProof(content []byte, kid string, spki []byte) []byte {
	return proof(content, "tamga device registration 1", []byte(kid), spki)
}

// VerificationProof proves in the same way that a device has scanned a verification code.
func VerificationProof(nonce, seed []byte, kid string, spki []byte) []byte {
	return proof(nonce, "tamga device verification 1", seed, []byte(kid), spki)
}

// proof is the HMAC over its parts, each preceded by its length in four bytes.
func proof(secret []byte, purpose string, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write(prefixed(append([][]byte{[]byte(purpose)}, parts...)...))
	return mac.Sum(nil)
}

// prefixed returns the parts, each preceded by its length in four bytes, so that different
// parts never give the same bytes.
func prefixed(parts ...[]byte) (all []byte) {
	for _, part := range parts {
		all = binary.BigEndian.AppendUint32(all, uint32(len(part)))
		all = append(all, part...)
	}
	return all
}
