// SPDX-License-Identifier: Apache-2.0

package message

import (
	"encoding/base64"
	"encoding/json"
)

// Types of QR codes.
const (
	TypeKInit        = "Kinit"
	TypeVerification = "Verification"
)

// SecretSize is the length in bytes of the secrets in QR codes: the content of a K-init,
// the nonce of a verification.
const SecretSize = 32

// maxQR limits the text of a QR code: the largest contains 2953 bytes.
const maxQR = 2953

// KInit is the QR code that a new device is registered with.
type KInit struct {
	Type    string    `json:"type"`
	Version int       `json:"version"`
	Data    KInitData `json:"data"`
}

// KInitData is what a new device needs to register.
type KInitData struct {
	Kid                string `json:"kid"`
	UID                string `json:"uid"`
	ServiceURL         string `json:"service_url"`
	KeyContent         string `json:"key_content"` // Base64URL without padding, SecretSize bytes
	ActivationRequired bool   `json:"activation_required"`
	Weakness           bool   `json:"weakness"` // whether the key may be kept without a password
}

// Verification is the QR code that proves that the user has the device.
type Verification struct {
	Type    string           `json:"type"`
	Version int              `json:"version"`
	Data    VerificationData `json:"data"`
}

// VerificationData is the content of a Verification.
type VerificationData struct {
	Kid        string `json:"kid"`
	UID        string `json:"uid"`
	ServiceURL string `json:"service_url"`
	Seed       string `json:"seed"`  // Base64URL without padding
	Nonce      string `json:"nonce"` // likewise, SecretSize bytes
}

// Secret is the text form of a secret inside a QR code.
func Secret(secret []byte) string { return base64.RawURLEncoding.EncodeToString(secret) }

// ReadSecret parses the text form of a secret. Errors wrap ErrForm.
func ReadSecret(text string) ([]byte, error) {
	secret, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(secret) != SecretSize {
		return nil, malformed("the QR code has no secret of %d bytes", SecretSize)
	}
	return secret, nil
}

// ParseQR reads the text of a QR code: the result is a KInit, a Verification or a Challenge.
// Errors wrap ErrForm.
func ParseQR(text string) (any, error) {
	if len(text) > maxQR {
		return nil, malformed("this is more than a QR code holds")
	}
	var head struct {
		Type    string `json:"type"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal([]byte(text), &head); err != nil {
		return nil, malformed("this is no QR code of a device: want JSON with type, version and data")
	}
	if head.Version != Version {
		return nil, malformed("the QR code has version %d, want %d", head.Version, Version)
	}
	switch head.Type {
	case TypeKInit:
		var k KInit
		if err := json.Unmarshal([]byte(text), &k); err != nil || k.Data.Kid == "" || k.Data.ServiceURL == "" {
			return nil, malformed("the QR code of a registration is damaged")
		}
		return k, nil
	case TypeVerification:
		var v Verification
		if err := json.Unmarshal([]byte(text), &v); err != nil || v.Data.Kid == "" || v.Data.ServiceURL == "" {
			return nil, malformed("the QR code of a verification is damaged")
		}
		return v, nil
	case TypeChallenge:
		var c Challenge
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			return nil, malformed("the QR code of an operation is damaged")
		}
		if _, err := c.Data.read(); err != nil {
			return nil, err
		}
		return c, nil
	}
	return nil, malformed("type: want %s, %s or %s", TypeKInit, TypeVerification, TypeChallenge)
}
