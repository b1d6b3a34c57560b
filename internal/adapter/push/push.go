// Package push hands notifications to mobile devices: through Firebase Cloud
// Messaging, through the Apple Push Notification service, or to an address of one's
// own that knows other ways. It is the notifier of the channel Push.
//
// A push is a bell and not a letter: it passes through other people's services, and
// what matters a device fetches itself.
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

// Sender hands a message to a push service. Errors are those of
// [notify.Notifier.Send]; one that wraps ErrGone says that the address is no more.
type Sender interface {
	Send(ctx context.Context, to device.PushTarget, title string, m notify.Message) error
}

// ErrGone says that nothing will ever arrive at an address again.
var ErrGone = errors.New("the address is no more")

func gone(service, reason string) error {
	return notify.Permanent(fmt.Errorf("push: %s: %s: %w", service, reason, ErrGone))
}

// Route says which devices a sender is for.
type Route struct {
	OSTypes  []int  // empty: all
	SystemID string // empty: all
	Sender   Sender
}

func (r Route) leadsTo(to device.PushTarget) bool {
	return (len(r.OSTypes) == 0 || slices.Contains(r.OSTypes, to.OSType)) && (r.SystemID == "" || r.SystemID == to.SystemID)
}

// Config is what a Notifier works with.
type Config struct {
	Title  string  // of every notification
	Routes []Route // the first that leads to a device is taken
	// Gone is told of recipients whose address is no more.
	Gone func(ctx context.Context, to string) error
}

// Notifier implements notify.Notifier.
type Notifier struct{ config Config }

// New returns a notifier. It has at least one route.
func New(c Config) (*Notifier, error) {
	if len(c.Routes) == 0 || c.Gone == nil {
		return nil, errors.New("push: want at least one service, and somebody to tell of addresses that are no more")
	}
	return &Notifier{c}, nil
}

// Channel implements notify.Notifier.
func (n *Notifier) Channel() notify.Channel { return notify.Push }

// Send implements notify.Notifier. The address is what device.Service gives as one.
func (n *Notifier) Send(ctx context.Context, m notify.Message) error {
	to, ok := device.ParsePushTarget(m.To)
	if !ok {
		return notify.Permanent(errors.New("push: the recipient is no address of a device"))
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

// maxAnswer bounds what is read of an answer, in octets.
const maxAnswer = 64 << 10

// service is a push service spoken to by HTTP.
type service struct {
	name   string
	client *http.Client
}

// newService returns a client that trusts roots (nil: those of the system) and
// follows no redirections: what is sent is for the one address.
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

// post sends a body and returns the answer with what there is of its body. Errors
// name neither the address, which may be a secret, nor the body.
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

// refusal is an error about an answer.
func (s service) refusal(status int, reason string) error {
	return fmt.Errorf("push: %s answered %d %s", s.name, status, word(reason))
}

// word keeps of a reason what looks like the name of one: the services quote
// addresses in longer texts.
func word(reason string) string {
	for i, c := range reason {
		if !('A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_') || i == 64 {
			return ""
		}
	}
	return reason
}

// passing reports whether a repetition may help after an answer with this status.
func passing(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500
}

// checkURL wants https, or http for a service on this machine.
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
