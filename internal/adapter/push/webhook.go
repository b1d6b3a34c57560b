// SPDX-License-Identifier: Apache-2.0

package push

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/device"
	"tamga/internal/domain/notify"
)

// WebhookConfig configures an operator's own address that reaches devices.
type WebhookConfig struct {
	URL    string
	Secret string         // as Standard Webhooks write it: whsec_ and Base64 of 24 to 64 bytes
	Roots  *x509.CertPool // nil: the roots of the system
	Now    func() time.Time
}

// Webhook sends a signed request (https://www.standardwebhooks.com).
type Webhook struct {
	service
	config WebhookConfig
	key    []byte
}

// NewWebhook reads the secret.
func NewWebhook(c WebhookConfig) (*Webhook, error) {
	if err := checkURL(c.URL); err != nil {
		return nil, fmt.Errorf("push: webhook: url: %w", err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(c.Secret, "whsec_"))
	if err != nil || !strings.HasPrefix(c.Secret, "whsec_") || len(key) < 24 || len(key) > 64 {
		return nil, errors.New("push: webhook: secret: want whsec_ and Base64 of 24 to 64 bytes; make one with: echo whsec_$(openssl rand -base64 32)")
	}
	return &Webhook{newService("webhook", c.Roots), c, key}, nil
}

// webhookRequest is the body.
type webhookRequest struct {
	Type      string      `json:"type"`
	Timestamp string      `json:"timestamp"` // when the message was created
	Data      webhookData `json:"data"`
}

type webhookData struct {
	Kid      string `json:"kid"`
	Address  string `json:"address"`
	OSType   int    `json:"os_type"`
	SystemID string `json:"system_id"`
	Title    string `json:"title"`
	Text     string `json:"text"`
}

// Send implements Sender. The status 410 means that the address no longer exists.
func (w *Webhook) Send(ctx context.Context, to device.PushTarget, title string, m notify.Message) error {
	body, err := json.Marshal(webhookRequest{
		Type: "device.push", Timestamp: m.Created.UTC().Format(time.RFC3339),
		Data: webhookData{to.Kid, to.Address, to.OSType, to.SystemID, title, m.Text},
	})
	if err != nil {
		return err
	}
	at := strconv.FormatInt(w.config.Now().Unix(), 10)
	mac := hmac.New(sha256.New, w.key)
	fmt.Fprintf(mac, "%s.%s.%s", m.ID, at, body)
	response, _, err := w.post(ctx, w.config.URL, http.Header{
		"Content-Type": {"application/json"}, "Webhook-Id": {m.ID}, "Webhook-Timestamp": {at},
		"Webhook-Signature": {"v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))},
	}, body)
	switch {
	case err != nil || response.StatusCode/100 == 2:
		return err
	case response.StatusCode == http.StatusGone:
		return gone(w.name, "410")
	case passing(response.StatusCode) || response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden:
		return w.later(response, "", w.config.Now())
	}
	return notify.Permanent(w.refusal(response.StatusCode, ""))
}

// Probe connects to the service.
func (w *Webhook) Probe(ctx context.Context) error { return w.reach(ctx, w.config.URL) }
