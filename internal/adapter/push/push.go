// SPDX-License-Identifier: Apache-2.0

// Package push sends notifications to mobile devices: through Firebase Cloud Messaging
// (FCM), through the Apple Push Notification service (APNs), or to an operator's own
// address that reaches devices in another way (Webhook). It implements the notifier of
// the channel Push.
//
// Begin with New, which chooses a Sender for each device by its routes, or with Settings,
// which reads the configuration. The package does not retry: package notify does.
//
// A push only wakes the device. It passes through services of others, so the device
// fetches the important data from this service itself.
package push

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"tamga/internal/domain/device"
	"tamga/internal/domain/notify"
)

// Sender passes a message to a push service. Its errors are those of
// [notify.Notifier.Send]. An error that wraps ErrGone means that the address no longer
// exists.
type Sender interface {
	Send(ctx context.Context, to device.PushTarget, title string, m notify.Message) error
}

// ErrGone means that nothing will ever reach an address again.
var ErrGone = errors.New("the address no longer exists")

func gone(service, reason string) error {
	return notify.Permanent(fmt.Errorf("push: %s: %s: %w", service, reason, ErrGone))
}

// Route selects the devices of a sender.
type Route struct {
	OSTypes  []int  // empty: all
	SystemID string // empty: all
	Sender   Sender
}

func (r Route) leadsTo(to device.PushTarget) bool {
	return (len(r.OSTypes) == 0 || slices.Contains(r.OSTypes, to.OSType)) && (r.SystemID == "" || r.SystemID == to.SystemID)
}

// Config is the configuration of a Notifier.
type Config struct {
	Title  string  // of every notification
	Routes []Route // the first that matches a device is used
	// Gone is called with recipients whose address no longer exists.
	Gone func(ctx context.Context, to string) error
}

// Notifier implements notify.Notifier.
type Notifier struct{ config Config }

// New returns a notifier. It needs at least one route.
func New(c Config) (*Notifier, error) {
	if len(c.Routes) == 0 || c.Gone == nil {
		return nil, errors.New("push: want at least one service, and a function Gone")
	}
	return &Notifier{c}, nil
}

// Channel implements notify.Notifier.
func (n *Notifier) Channel() notify.Channel { return notify.Push }

// Send implements notify.Notifier. The address of a message comes from device.Service.
func (n *Notifier) Send(ctx context.Context, m notify.Message) error {
	to, ok := device.ParsePushTarget(m.To)
	if !ok {
		return notify.Permanent(errors.New("push: the recipient is not the address of a device"))
	}
	i := slices.IndexFunc(n.config.Routes, func(r Route) bool { return r.leadsTo(to) })
	if i < 0 {
		return notify.Permanent(fmt.Errorf("push: no service is configured for devices of the type %d", to.OSType))
	}
	err := n.config.Routes[i].Sender.Send(ctx, to, n.config.Title, m)
	if errors.Is(err, ErrGone) {
		err = errors.Join(err, n.config.Gone(ctx, m.To))
	}
	return err
}

// maxAnswer bounds how much of an answer is read, in bytes.
const maxAnswer = 64 << 10

// service is an HTTP client of a push service.
type service struct {
	name   string
	client *http.Client
}

// newService returns a client that trusts roots (nil: the roots of the system). It
// follows no redirects, because the message is for one address only.
func newService(name string, roots *x509.CertPool) service {
	return service{name, &http.Client{
		Timeout: 30 * time.Second,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: 5 * time.Minute, MaxIdleConnsPerHost: 8,
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: 10 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// post sends a body and returns the answer and as much of its body as arrived. Errors
// contain neither the address, which may be a secret, nor the body.
func (s service) post(ctx context.Context, address string, header http.Header, body []byte) (*http.Response, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, nil, notify.Permanent(fmt.Errorf("push: %s: the address of the device cannot be part of a URL", s.name))
	}
	request.Header = header
	response, err := s.client.Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, nil, fmt.Errorf("push: %s: %w", s.name, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, nil, fmt.Errorf("push: %s: the answer broke off: %w", s.name, err)
	}
	return response, answer, nil
}

// refusal returns the error for an answer.
func (s service) refusal(status int, reason string) error {
	return fmt.Errorf("push: %s answered %d %s", s.name, status, word(reason))
}

// word returns reason if it looks like the name of a reason. Longer texts of the services
// quote addresses.
func word(reason string) string {
	for i, c := range reason {
		if !('A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_') || i == 64 {
			return ""
		}
	}
	return reason
}

// passing reports whether a retry may help after an answer with this status.
func passing(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500
}

// checkURL accepts https, and http for a service on this machine.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname())) {
		return nil
	}
	return errors.New("want https:// and a host")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
