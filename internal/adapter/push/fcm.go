// SPDX-License-Identifier: Apache-2.0

package push

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"tamga/internal/domain/device"
	"tamga/internal/domain/notify"
)

// FCMConfig configures a project of Firebase Cloud Messaging.
type FCMConfig struct {
	// ServiceAccount is the JSON file of a service account that may send.
	ServiceAccount []byte
	// Endpoint and Roots select another server and its roots, for a relay. Empty and nil:
	// the service itself, and the roots of the system.
	Endpoint string
	Roots    *x509.CertPool
	Now      func() time.Time
}

// FCM sends by the HTTP v1 protocol.
type FCM struct {
	service
	config  FCMConfig
	account account
	signer  jose.Signer

	mu      sync.Mutex
	token   string
	expires time.Time
}

// account holds the fields of a service account file that are used here.
type account struct {
	Type         string `json:"type"`
	ProjectID    string `json:"project_id"`
	PrivateKeyID string `json:"private_key_id"`
	PrivateKey   string `json:"private_key"` // PKCS #8, PEM
	ClientEmail  string `json:"client_email"`
	TokenURI     string `json:"token_uri"`
}

const (
	fcmEndpoint = "https://fcm.googleapis.com"
	fcmScope    = "https://www.googleapis.com/auth/firebase.messaging"
	jwtBearer   = "urn:ietf:params:oauth:grant-type:jwt-bearer" // RFC 7523, 2.1
)

// NewFCM reads the service account.
func NewFCM(c FCMConfig) (*FCM, error) {
	f := &FCM{service: newService("FCM", c.Roots), config: c}
	if err := json.Unmarshal(c.ServiceAccount, &f.account); err != nil || f.account.Type != "service_account" {
		return nil, errors.New("push: FCM: want the JSON file of a service account")
	}
	if f.account.ProjectID == "" || f.account.ClientEmail == "" {
		return nil, errors.New("push: FCM: the service account has no project_id or no client_email")
	}
	if f.config.Endpoint == "" {
		f.config.Endpoint = fcmEndpoint
	}
	for name, address := range map[string]string{"token_uri of the service account": f.account.TokenURI, "endpoint": f.config.Endpoint} {
		if err := checkURL(address); err != nil {
			return nil, fmt.Errorf("push: FCM: %s: %w", name, err)
		}
	}
	block, _ := pem.Decode([]byte(f.account.PrivateKey))
	if block == nil {
		return nil, errors.New("push: FCM: the service account has no private_key")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	private, ok := key.(*rsa.PrivateKey)
	if err != nil || !ok {
		return nil, errors.New("push: FCM: private_key of the service account: want an RSA key as PKCS #8")
	}
	f.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: private, KeyID: f.account.PrivateKeyID}}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return nil, fmt.Errorf("push: FCM: %w", err)
	}
	f.config.Endpoint = strings.TrimRight(f.config.Endpoint, "/")
	return f, nil
}

// fcmRequest is the body of messages:send.
type fcmRequest struct {
	Message struct {
		Token        string `json:"token"`
		Notification struct {
			Title string `json:"title"`
			Body  string `json:"body"`
		} `json:"notification"`
		Data    map[string]string `json:"data"`
		Android struct {
			Priority string `json:"priority"`
			TTL      string `json:"ttl"`
		} `json:"android"`
	} `json:"message"`
}

// fcmError is the body of a refusal.
type fcmError struct {
	Error struct {
		Status  string `json:"status"`
		Details []struct {
			ErrorCode string `json:"errorCode"`
		} `json:"details"`
	} `json:"error"`
}

// reason returns the code of FCM if there is one, otherwise the status of Google's
// services.
func (e fcmError) reason() string {
	for _, d := range e.Error.Details {
		if d.ErrorCode != "" {
			return d.ErrorCode
		}
	}
	return e.Error.Status
}

// Send implements Sender.
func (f *FCM) Send(ctx context.Context, to device.PushTarget, title string, m notify.Message) error {
	token, err := f.accessToken(ctx)
	if err != nil {
		return err
	}
	var r fcmRequest
	r.Message.Token = to.Address
	r.Message.Notification.Title, r.Message.Notification.Body = title, m.Text
	r.Message.Data = map[string]string{"id": m.ID, "kid": to.Kid}
	r.Message.Android.Priority, r.Message.Android.TTL = "high", "86400s"
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	address := f.config.Endpoint + "/v1/projects/" + url.PathEscape(f.account.ProjectID) + "/messages:send"
	response, answer, err := f.post(ctx, address, http.Header{
		"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"},
	}, body)
	if err != nil || response.StatusCode/100 == 2 {
		return err
	}
	var refused fcmError
	_ = json.Unmarshal(answer, &refused) // a body of another form has no reason
	reason := refused.reason()
	switch {
	case response.StatusCode == http.StatusNotFound && reason == "UNREGISTERED":
		return gone(f.name, reason)
	case response.StatusCode == http.StatusUnauthorized:
		f.forget(token) // an administrator can fix the account
		return f.refusal(response.StatusCode, reason)
	case passing(response.StatusCode) || response.StatusCode == http.StatusForbidden && reason != "SENDER_ID_MISMATCH":
		return f.later(response, reason, f.config.Now())
	}
	return notify.Permanent(f.refusal(response.StatusCode, reason))
}

// accessToken requests a token of the service account and keeps it until it expires.
func (f *FCM) accessToken(ctx context.Context) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.config.Now()
	if f.token != "" && now.Before(f.expires) {
		return f.token, nil
	}
	assertion, err := jwt.Signed(f.signer).Claims(map[string]any{
		"iss": f.account.ClientEmail, "scope": fcmScope, "aud": f.account.TokenURI,
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}).Serialize()
	if err != nil {
		return "", fmt.Errorf("push: FCM: %w", err)
	}
	response, answer, err := f.post(ctx, f.account.TokenURI, http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
		[]byte(url.Values{"grant_type": {jwtBearer}, "assertion": {assertion}}.Encode()))
	if err != nil {
		return "", err
	}
	var granted struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
		Error       string `json:"error"`
	}
	_ = json.Unmarshal(answer, &granted)
	if response.StatusCode/100 != 2 || granted.AccessToken == "" {
		return "", fmt.Errorf("push: FCM: the token service answered %d %s", response.StatusCode, word(granted.Error))
	}
	f.token = granted.AccessToken
	f.expires = now.Add(time.Duration(granted.ExpiresIn)*time.Second - time.Minute)
	return f.token, nil
}

// forget drops a refused token.
func (f *FCM) forget(token string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.token == token {
		f.token = ""
	}
}

// Probe connects to the service.
func (f *FCM) Probe(ctx context.Context) error { return f.reach(ctx, f.config.Endpoint) }
