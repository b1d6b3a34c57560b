// SPDX-License-Identifier: Apache-2.0

// Package webhook sends requests to addresses that clients of the service choose (Sender,
// and its notifier) and events to systems that receive them (Notifier). Requests are signed as
// https://www.standardwebhooks.com defines it.
//
// Begin with New and Sender.Post, or with NewNotifier. The package does not retry: its
// callers do.
//
// An attacker may choose such an address. The guard decides about each connection when it
// is made, so a name that resolves to another address later gains nothing. Redirects are
// not followed, proxy settings of the environment are ignored, and of an answer only the
// status matters.
package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tamga/internal/adapter/guard"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
)

// Config is the configuration of a Sender.
type Config struct {
	Secret string // whsec_ and Base64 of 24 to 64 bytes
	Guard  *guard.Guard
	Plain  bool           // whether http:// is allowed in addition to https://
	Roots  *x509.CertPool // nil: the roots of the system
	Now    func() time.Time
}

// Sender sends requests. It is safe for concurrent use.
type Sender struct {
	config Config
	key    []byte
	client *http.Client
	drain  time.Duration // how long the body of an answer is read
}

// content is the body of a request. It is written twice.
type content interface {
	io.WriterTo
	Size() int64
}

const (
	prefix = "whsec_"
	// wait is how long a receiver may take to begin its answer after it has received the
	// whole request.
	wait = 30 * time.Second
	// stalled is how long it may accept no data of a body.
	stalled = 60 * time.Second
	// maxAnswer is how much of an answer is read so that its connection can be reused, in
	// bytes.
	maxAnswer = 16 << 10
)

// New returns a Sender with the secret in c.
func New(c Config) (*Sender, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(c.Secret), prefix))
	if err != nil || !strings.HasPrefix(strings.TrimSpace(c.Secret), prefix) || len(key) < 24 || len(key) > 64 {
		return nil, errors.New("webhook: secret: want whsec_ and Base64 of 24 to 64 bytes")
	}
	s := newSender(c)
	s.key = key
	return s, nil
}

func newSender(c Config) *Sender {
	return &Sender{config: c, drain: wait, client: &http.Client{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := c.Guard.Dial(ctx, network, address)
				if err != nil {
					return nil, err
				}
				return &moving{Conn: conn}, nil
			},
			TLSClientConfig:     &tls.Config{RootCAs: c.Roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: wait,
			IdleConnTimeout: 30 * time.Second, MaxIdleConnsPerHost: 2, MaxConnsPerHost: 16,
			MaxResponseHeaderBytes: 32 << 10, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Check refuses an address that can be refused without resolving it. The fault is
// invalid_parameters.
func (s *Sender) Check(address string) error { return s.config.Check(address) }

// Check refuses an address that is refused by its text alone. The fault is
// invalid_parameters.
func (c Config) Check(address string) error {
	u, err := c.Guard.Parse(address)
	if err == nil && u.Scheme != "https" && !c.Plain {
		err = errors.New("want https")
	}
	if err != nil {
		return fault.New(fault.InvalidParameters, "address: "+err.Error()).With(err)
	}
	return nil
}

// Post sends a body. It writes it twice: to compute the signature, which is in the header, and to
// the receiver. id is the same for every attempt, so that a receiver can detect a repetition. An
// error made by [notify.Permanent] means that no retry will help. No error quotes the address or
// the body.
func (s *Sender) Post(ctx context.Context, address, id string, body content) error {
	return s.post(ctx, s.key, address, id, body)
}

func (s *Sender) post(ctx context.Context, key []byte, address, id string, body content) error {
	if err := s.Check(address); err != nil {
		return notify.Permanent(errors.New("webhook: the address is not allowed any more"))
	}
	at := strconv.FormatInt(s.config.Now().Unix(), 10)
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.", id, at)
	if err := exactly(mac, body); err != nil {
		return err
	}
	// A closed reader ends the writer, so a receiver that closes the connection leaves no
	// goroutine behind.
	reader, writer := io.Pipe()
	defer reader.Close()
	go func() { writer.CloseWithError(exactly(writer, body)) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, reader)
	if err != nil {
		return notify.Permanent(errors.New("webhook: the address cannot be part of a request"))
	}
	request.ContentLength = body.Size()
	request.Header = http.Header{
		"Content-Type": {"application/json; charset=utf-8"}, "User-Agent": {"tamga"},
		"Webhook-Id": {id}, "Webhook-Timestamp": {at},
		"Webhook-Signature": {"v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))},
	}
	response, err := s.client.Do(request)
	if err != nil {
		return fmt.Errorf("webhook: %w", guard.WithoutURL(err))
	}
	defer response.Body.Close()
	// The status decides. An answer that does not end costs its connection and no more time.
	defer time.AfterFunc(s.drain, cancel).Stop()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer))
	switch status := response.StatusCode; {
	case status/100 == 2:
		return nil
	case status == http.StatusGone:
		return notify.Permanent(errors.New("webhook: answered 410: the receiver is gone"))
	default:
		return fmt.Errorf("webhook: answered %d, want 2xx", status)
	}
}

// exactly writes body and checks that it has the announced number of bytes.
func exactly(w io.Writer, body content) error {
	c := &counted{w: w}
	if _, err := body.WriteTo(c); err != nil {
		return err
	}
	if c.n != body.Size() {
		return fmt.Errorf("webhook: a body has %d bytes instead of %d", c.n, body.Size())
	}
	return nil
}

// counted counts the bytes that it writes. The responses of the server have the same
// type, but an adapter and the surfaces of the server share no package.
type counted struct {
	w io.Writer
	n int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// moving is a connection whose peer must accept data from time to time. There is no limit
// on the total time, because a large body takes long.
type moving struct{ net.Conn }

func (c *moving) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(stalled)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
