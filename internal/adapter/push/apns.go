// SPDX-License-Identifier: Apache-2.0

package push

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"tamga/internal/domain/device"
	"tamga/internal/domain/notify"
)

// APNsConfig configures an application at the Apple Push Notification service.
type APNsConfig struct {
	Key    []byte // the .p8 file of the signing key: PKCS #8, PEM
	KeyID  string // ten characters
	TeamID string // ten characters
	Topic  string // bundle identifier of the application
	// Endpoint and Roots select another server and its roots: the sandbox, or a relay.
	// Empty and nil: the service itself, and the roots of the system.
	Endpoint string
	Roots    *x509.CertPool
	Now      func() time.Time
}

// APNs sends by HTTP/2 with provider tokens.
type APNs struct {
	service
	config APNsConfig
	signer jose.Signer

	mu     sync.Mutex
	token  string
	issued time.Time
}

const (
	apnsEndpoint = "https://api.push.apple.com"
	// Tokens are valid for an hour and may be renewed at most every 20 minutes.
	apnsTokenLife = 40 * time.Minute
	apnsLife      = 24 * time.Hour // of a notification
	maxAPNsToken  = 100            // bytes of the address of a device
)

// NewAPNs reads the key.
func NewAPNs(c APNsConfig) (*APNs, error) {
	a := &APNs{service: newService("APNs", c.Roots), config: c}
	if len(c.KeyID) != 10 || len(c.TeamID) != 10 || c.Topic == "" {
		return nil, errors.New("push: APNs: want the key id and the team id, of ten characters each, and the topic")
	}
	if a.config.Endpoint == "" {
		a.config.Endpoint = apnsEndpoint
	}
	if err := checkURL(a.config.Endpoint); err != nil {
		return nil, fmt.Errorf("push: APNs: endpoint: %w", err)
	}
	a.config.Endpoint = strings.TrimRight(a.config.Endpoint, "/")
	var key any
	block, _ := pem.Decode(c.Key)
	if block != nil {
		key, _ = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	private, ok := key.(*ecdsa.PrivateKey)
	if !ok || private.Curve != elliptic.P256() {
		return nil, errors.New("push: APNs: key: want the .p8 file, a P-256 key as PKCS #8")
	}
	var err error
	a.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: private, KeyID: c.KeyID}}, nil)
	if err != nil {
		return nil, fmt.Errorf("push: APNs: %w", err)
	}
	return a, nil
}

// Send implements Sender.
func (a *APNs) Send(ctx context.Context, to device.PushTarget, title string, m notify.Message) error {
	if _, err := hex.DecodeString(to.Address); err != nil || len(to.Address) > maxAPNsToken {
		return gone(a.name, "the address is not hexadecimal")
	}
	token, err := a.providerToken()
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{
		"aps": map[string]any{"alert": map[string]string{"title": title, "body": m.Text}, "sound": "default"},
		"id":  m.ID, "kid": to.Kid,
	})
	if err != nil {
		return err
	}
	response, answer, err := a.post(ctx, a.config.Endpoint+"/3/device/"+to.Address, http.Header{
		"Authorization": {"bearer " + token}, "Content-Type": {"application/json"},
		"Apns-Topic": {a.config.Topic}, "Apns-Push-Type": {"alert"}, "Apns-Priority": {"10"},
		"Apns-Id":         {m.ID}, // the same for every attempt
		"Apns-Expiration": {strconv.FormatInt(a.config.Now().Add(apnsLife).Unix(), 10)},
	}, body)
	if err != nil || response.StatusCode/100 == 2 {
		return err
	}
	var refused struct {
		Reason string `json:"reason"`
	}
	_ = json.Unmarshal(answer, &refused) // a body of another form has no reason
	status, reason := response.StatusCode, refused.Reason
	switch {
	case status == http.StatusGone, status == http.StatusBadRequest && (reason == "BadDeviceToken" || reason == "DeviceTokenNotForTopic"):
		return gone(a.name, word(reason))
	case status == http.StatusForbidden:
		a.forget(token) // an expired token, or a key that an administrator can fix
		return a.refusal(status, reason)
	case passing(status):
		return a.later(response, reason, a.config.Now())
	}
	return notify.Permanent(a.refusal(status, reason))
}

// providerToken returns the token that authenticates us.
func (a *APNs) providerToken() (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.config.Now()
	if age := now.Sub(a.issued); a.token != "" && age >= 0 && age < apnsTokenLife {
		return a.token, nil
	}
	token, err := jwt.Signed(a.signer).Claims(map[string]any{"iss": a.config.TeamID, "iat": now.Unix()}).Serialize()
	if err != nil {
		return "", fmt.Errorf("push: APNs: %w", err)
	}
	a.token, a.issued = token, now
	return token, nil
}

// forget drops a refused token.
func (a *APNs) forget(token string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.token == token {
		a.token = ""
	}
}

// Probe connects to the service.
func (a *APNs) Probe(ctx context.Context) error { return a.reach(ctx, a.config.Endpoint) }
