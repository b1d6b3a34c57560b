// SPDX-License-Identifier: Apache-2.0

// Package push sends notifications to mobile devices and browsers: through Firebase Cloud
// Messaging (FCM), through the Apple Push Notification service (APNs), to an operator's own
// address that reaches devices in another way (Webhook), or to the push service of a browser
// (WebPush). It implements the notifier of the channel Push.
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
	"strconv"
	"time"

	"tamga/internal/adapter/guard"
	"tamga/internal/domain/device"
	"tamga/internal/domain/fault"
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
	Browsers bool   // browsers, and nothing else
	OSTypes  []int  // empty: all
	SystemID string // empty: all
	Sender   Sender
}

func (r Route) leadsTo(to device.PushTarget) bool {
	return r.Browsers == (to.Browser != "") && (len(r.OSTypes) == 0 || slices.Contains(r.OSTypes, to.OSType)) && (r.SystemID == "" || r.SystemID == to.SystemID)
}

// Config is the configuration of a Notifier.
type Config struct {
	Title  string  // of every notification
	Routes []Route // the first that matches a device is used
	// Gone is called with recipients whose address no longer exists.
	Gone func(ctx context.Context, to string) error
	// Others gets the messages to devices without a route. nil: they are refused.
	Others notify.Notifier
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

// BrowserKey returns the public key by which browsers know this service, a point of P-256. It is nil if no
// message reaches browsers.
func (n *Notifier) BrowserKey() []byte {
	for _, r := range n.config.Routes {
		if w, ok := r.Sender.(*WebPush); ok {
			return w.public
		}
	}
	return nil
}

// CheckBrowser refuses an address of a browser that no message may go to. The fault is invalid_parameters.
func (n *Notifier) CheckBrowser(address string) error {
	for _, r := range n.config.Routes {
		if w, ok := r.Sender.(*WebPush); ok {
			_, err := w.parse(address)
			return err
		}
	}
	return fault.New(fault.WrongOperation, "this installation sends no notifications to browsers")
}

// Channel implements notify.Notifier.
func (n *Notifier) Channel() notify.Channel { return notify.Push }

// Probe implements notify.Prober: it connects to each service.
func (n *Notifier) Probe(ctx context.Context) error {
	var faults []error
	for _, r := range n.config.Routes {
		if p, is := r.Sender.(interface {
			Probe(ctx context.Context) error
		}); is {
			faults = append(faults, p.Probe(ctx))
		}
	}
	return errors.Join(faults...)
}

// Send implements notify.Notifier. The address of a message comes from device.Service.
func (n *Notifier) Send(ctx context.Context, m notify.Message) error {
	to, ok := device.ParsePushTarget(m.To)
	if !ok {
		return notify.Permanent(errors.New("push: the recipient is not the address of a device"))
	}
	i := slices.IndexFunc(n.config.Routes, func(r Route) bool { return r.leadsTo(to) })
	switch {
	case i < 0 && n.config.Others != nil && to.Browser == "":
		return n.config.Others.Send(ctx, m)
	case i < 0:
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

// reach connects to the host of an address. The address may be a secret, so the error has it not.
func (s service) reach(ctx context.Context, address string) error {
	transport := s.client.Transport.(*http.Transport)
	if err := guard.Reach(ctx, address, transport.TLSClientConfig.RootCAs, transport.Proxy); err != nil {
		return fmt.Errorf("push: %s: %w", s.name, err)
	}
	return nil
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
	// A body may have a token for us or the address of the device.
	notify.Answered(ctx, "%s: %s HTTP %s", s.name, request.URL.Host, response.Status)
	return response, answer, nil
}

// refusal returns the error for an answer.
func (s service) refusal(status int, reason string) error {
	return fmt.Errorf("push: %s answered %d %s", s.name, status, word(reason))
}

// later returns the error for an answer after which a retry may help. Its header may say when (RFC 9110, 10.2.3).
func (s service) later(response *http.Response, reason string, now time.Time) error {
	return notify.After(s.refusal(response.StatusCode, reason), retryAfter(response.Header.Get("Retry-After"), now))
}

// retryAfter reads the value of Retry-After, a number of seconds or a time. Other values are 0.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
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
