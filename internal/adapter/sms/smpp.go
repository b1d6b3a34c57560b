// SPDX-License-Identifier: Apache-2.0

package sms

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"tamga/internal/domain/notify"
)

// SMPPConfig configures a message centre.
type SMPPConfig struct {
	Address    string // HOST:PORT
	TLS        bool
	Roots      *x509.CertPool // roots for the certificate; nil: the roots of the system
	SystemID   string         // up to 15 bytes
	Password   string         // up to 8 bytes
	SystemType string         // up to 12 bytes; usually empty
	// Transmitter binds as a transmitter only, for centres that do not accept
	// transceivers.
	Transmitter bool
	// From is the sender: a name of up to 11 letters, or digits.
	From string
	// FromTON and FromNPI are the type of number and the numbering plan of From. If nil:
	// 5 and 0 for a name, 1 and 1 for a number of 7 digits or more, 0 and 1 for a shorter
	// number.
	FromTON, FromNPI *byte
	// Unicode sends everything in UCS-2, for centres whose default alphabet is not the
	// GSM alphabet.
	Unicode   bool
	PerSecond float64       // parts of messages per second; 0: no limit
	Window    int           // parts sent and not yet answered; 0 is 10
	Timeout   time.Duration // of a response; 0 is 10 s
	KeepAlive time.Duration // interval of enquire_link; 0 is 30 s
	Rebind    time.Duration // pause after the centre refused to bind; 0 is 5 s
}

// SMPP sends messages by SMPP 3.4 over one session. It opens the session with the first
// message, and again after the session broke.
type SMPP struct {
	config    SMPPConfig
	host      string
	from      address
	limit     *rate.Limiter
	reference atomic.Uint32 // number of messages in several parts

	opening chan struct{} // held by the goroutine that opens a session
	mu      sync.Mutex
	session *session
	refused error // why the last attempt to open failed
	until   time.Time
	closed  bool
}

// NewSMPP checks the configuration. It opens no connection.
func NewSMPP(c SMPPConfig) (*SMPP, error) {
	host, _, err := net.SplitHostPort(c.Address)
	if err != nil || host == "" {
		return nil, errors.New("sms: address: want HOST:PORT of the message centre")
	}
	if _, err := bindBody(c.SystemID, c.Password, c.SystemType); err != nil {
		return nil, err
	}
	from, err := sender(c)
	if err != nil {
		return nil, err
	}
	if c.Window == 0 {
		c.Window = 10
	}
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
	}{{&c.Timeout, 10 * time.Second}, {&c.KeepAlive, 30 * time.Second}, {&c.Rebind, 5 * time.Second}} {
		if *d.value == 0 {
			*d.value = d.standard
		}
	}
	if c.Window < 0 || c.PerSecond < 0 || c.Timeout < 0 || c.KeepAlive < 0 || c.Rebind < 0 {
		return nil, errors.New("sms: window, per_second, timeout, keep_alive and rebind: want 0 or more")
	}
	limit := rate.NewLimiter(rate.Inf, 0)
	if c.PerSecond > 0 {
		limit = rate.NewLimiter(rate.Limit(c.PerSecond), max(1, int(c.PerSecond)))
	}
	return &SMPP{config: c, host: host, from: from, limit: limit, opening: make(chan struct{}, 1)}, nil
}

// sender returns the address of the sender.
func sender(c SMPPConfig) (address, error) {
	a := address{tonAlphanumeric, npiUnknown, c.From}
	digits := strings.Trim(c.From, "0123456789") == ""
	switch {
	case c.From == "":
		a = address{tonUnknown, npiUnknown, ""} // the centre sets its own
	case digits && len(c.From) >= 7:
		a.ton, a.npi = tonInternational, npiISDN
	case digits:
		a.ton, a.npi = tonUnknown, npiISDN
	case len(c.From) > 11:
		return a, errors.New("sms: from: a name has at most 11 letters")
	}
	if c.FromTON != nil {
		a.ton = *c.FromTON
	}
	if c.FromNPI != nil {
		a.npi = *c.FromNPI
	}
	_, err := submitBody("", a, address{}, false, 0, nil)
	return a, err
}

// Channel implements notify.Notifier.
func (s *SMPP) Channel() notify.Channel { return notify.SMS }

// Send implements notify.Notifier. A message in several parts is sent part by part. If a
// part fails, the next attempt sends all parts again.
func (s *SMPP) Send(ctx context.Context, m notify.Message) error {
	if !isNumber(m.To) {
		return errNoNumber
	}
	coding, parts, err := encode(m.Text, s.config.Unicode, byte(s.reference.Add(1)))
	if err != nil {
		return err
	}
	for _, part := range parts {
		text, err := submitBody("", s.from, address{tonInternational, npiISDN, m.To}, len(parts) > 1, coding, part)
		if err != nil {
			return notify.Permanent(err)
		}
		if err := s.limit.Wait(ctx); err != nil {
			return fmt.Errorf("sms: waiting for the rate limit: %w", err)
		}
		session, err := s.open(ctx)
		if err != nil {
			return err
		}
		answer, err := session.ask(ctx, submitSM, text)
		if err != nil {
			return err
		}
		id, _, _ := bytes.Cut(answer.body, []byte{0}) // message_id of submit_sm_resp
		notify.Answered(ctx, "submit_sm_resp: command_status 0x%08x, message_id %q", answer.status, id)
		if answer.status != statusOK {
			return verdict(answer.status)
		}
	}
	return nil
}

// permanent lists the status values that neither a retry nor an administrator can change.
var permanent = map[uint32]string{
	statusMsgLen:  "the length of the text",
	statusInvDest: "the number",
}

// Probe implements notify.Prober: it binds, unless a session is open.
func (s *SMPP) Probe(ctx context.Context) error {
	_, err := s.open(ctx)
	return err
}

// verdict returns the error for a refusal.
func verdict(status uint32) error {
	if what := permanent[status]; what != "" {
		return notify.Permanent(fmt.Errorf("sms: the message centre refuses %s: status 0x%08x", what, status))
	}
	if status == statusThrottled {
		return fmt.Errorf("sms: the message centre is throttling: status 0x%08x", status)
	}
	return fmt.Errorf("sms: the message centre refuses the message: status 0x%08x", status)
}

// open returns the session and opens one if there is none. Callers that come while a
// session is being opened wait.
func (s *SMPP) open(ctx context.Context) (*session, error) {
	select {
	case s.opening <- struct{}{}:
		defer func() { <-s.opening }()
	case <-ctx.Done():
		return nil, fmt.Errorf("sms: %w", ctx.Err())
	}
	s.mu.Lock()
	held, refused, until, closed := s.session, s.refused, s.until, s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return nil, errors.New("sms: closed")
	case held != nil && held.alive():
		return held, nil
	case refused != nil && time.Now().Before(until):
		return nil, refused // a centre that locks accounts must not get a bind for every message
	}
	opened, err := s.bind(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed && opened != nil {
		opened.end(errors.New("sms: closed"))
		return nil, errors.New("sms: closed")
	}
	s.session, s.refused, s.until = opened, err, time.Now().Add(s.config.Rebind)
	return opened, err
}

// bind connects and authenticates.
func (s *SMPP) bind(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	var conn net.Conn
	var err error
	if s.config.TLS {
		conn, err = (&tls.Dialer{Config: &tls.Config{ServerName: s.host, RootCAs: s.config.Roots, MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", s.config.Address)
	} else {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", s.config.Address)
	}
	if err != nil {
		return nil, fmt.Errorf("sms: connecting: %w", err)
	}
	opened := newSession(conn, s.config.Window, s.config.Timeout)
	command := uint32(bindTransceiver)
	if s.config.Transmitter {
		command = bindTransmitter
	}
	text, err := bindBody(s.config.SystemID, s.config.Password, s.config.SystemType)
	if err != nil {
		opened.end(err)
		return nil, err
	}
	answer, err := opened.ask(ctx, command, text)
	if err == nil && answer.status != statusOK {
		err = fmt.Errorf("sms: the message centre refuses to bind: status 0x%08x, check system_id and password", answer.status)
	}
	if err != nil {
		opened.end(err)
		return nil, err
	}
	opened.keepAlive(s.config.KeepAlive)
	return opened, nil
}

// Close unbinds from the centre and ends the session.
func (s *SMPP) Close() error {
	s.mu.Lock()
	held := s.session
	s.session, s.closed = nil, true
	s.mu.Unlock()
	if held == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.config.Timeout)
	defer cancel()
	held.ask(ctx, unbind, nil) // the session ends whatever the response is
	held.end(errors.New("sms: closed"))
	held.wait()
	return nil
}
