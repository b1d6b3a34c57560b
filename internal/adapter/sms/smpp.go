package sms

import (
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

// SMPPConfig says which message centre takes our messages.
type SMPPConfig struct {
	Address    string // HOST:PORT
	TLS        bool
	Roots      *x509.CertPool // that the certificate leads to; nil: those of the system
	SystemID   string         // up to 15 octets
	Password   string         // up to 8 octets
	SystemType string         // up to 12 octets; usually empty
	// Transmitter binds as a transmitter alone, for centres that take no transceiver.
	Transmitter bool
	// From is the sender: a name of up to 11 letters, or digits.
	From string
	// FromTON and FromNPI are the type and the plan of From; nil: 5 and 0 for a name,
	// 1 and 1 for a number of 7 digits or more, 0 and 1 for a shorter one.
	FromTON, FromNPI *byte
	// Unicode sends everything in UCS-2, for centres whose default alphabet is not
	// that of GSM.
	Unicode   bool
	PerSecond float64       // parts of messages a second; 0 for no bound
	Window    int           // parts sent and not yet answered; 0 is 10
	Timeout   time.Duration // of an answer; 0 is 10 s
	KeepAlive time.Duration // pause between two questions whether the line is up; 0 is 30 s
	Rebind    time.Duration // pause after the centre refused us; 0 is 5 s
}

// SMPP sends by SMPP 3.4 over one session, which it opens with the first message
// and again when it broke.
type SMPP struct {
	config    SMPPConfig
	host      string
	from      address
	limit     *rate.Limiter
	reference atomic.Uint32 // of messages in several parts

	opening chan struct{} // held by who opens a session
	mu      sync.Mutex
	session *session
	refused error // why the last opening failed
	until   time.Time
	closed  bool
}

// NewSMPP checks the configuration and connects to nothing.
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

// sender is the address that messages come from.
func sender(c SMPPConfig) (address, error) {
	a := address{tonAlphanumeric, npiUnknown, c.From}
	digits := strings.Trim(c.From, "0123456789") == ""
	switch {
	case c.From == "":
		a = address{tonUnknown, npiUnknown, ""} // the centre puts in its own
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

// Send implements notify.Notifier. A message in several parts is sent part by part;
// when one of them fails all are sent again at the next attempt.
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
			return fmt.Errorf("sms: waiting for our turn: %w", err)
		}
		session, err := s.open(ctx)
		if err != nil {
			return err
		}
		answer, err := session.ask(ctx, submitSM, text)
		if err != nil {
			return err
		}
		if answer.status != statusOK {
			return verdict(answer.status)
		}
	}
	return nil
}

// permanent are the answers that no repetition and no administrator changes.
var permanent = map[uint32]string{
	statusMsgLen:  "the length of the text",
	statusInvDest: "the number",
}

// verdict says what a refusal means.
func verdict(status uint32) error {
	if what := permanent[status]; what != "" {
		return notify.Permanent(fmt.Errorf("sms: the message centre refuses %s: status 0x%08x", what, status))
	}
	if status == statusThrottled {
		return fmt.Errorf("sms: the message centre wants fewer messages at a time: status 0x%08x", status)
	}
	return fmt.Errorf("sms: the message centre refuses the message: status 0x%08x", status)
}

// open returns the session, opening one if there is none. Who comes while it is
// being opened waits.
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
		return nil, refused // a centre that locks accounts is not to be asked at every message
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

// bind connects and signs in.
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
		err = fmt.Errorf("sms: the message centre does not let us in: status 0x%08x, check system_id and password", answer.status)
	}
	if err != nil {
		opened.end(err)
		return nil, err
	}
	opened.keepAlive(s.config.KeepAlive)
	return opened, nil
}

// Close takes leave of the centre and ends the session.
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
	held.ask(ctx, unbind, nil) // whatever the answer, we go
	held.end(errors.New("sms: closed"))
	held.wait()
	return nil
}
