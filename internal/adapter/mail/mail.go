// SPDX-License-Identifier: Apache-2.0

// Package mail sends messages by SMTP. It implements the notifier of the channel Email.
//
// Begin with New and Notifier.Send, or with Settings, which reads the configuration. The
// package does not retry and keeps no queue: package notify does.
package mail

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"tamga/internal/domain/contact"
	"tamga/internal/domain/notify"
)

// Security is how the connection to the server is protected.
type Security string

// The ways to protect a connection.
const (
	StartTLS Security = "starttls" // a server that does not offer it is refused
	TLS      Security = "tls"      // from the first byte on
	None     Security = "none"     // for a server on this machine
)

// Config configures the SMTP server for outgoing mail.
type Config struct {
	Address  string         // HOST:PORT
	Security Security       // "" is StartTLS
	Roots    *x509.CertPool // roots for the server's certificate; nil: the roots of the system
	User     string         // empty: no authentication
	Password string
	From     string        // address of the sender
	FromName string        // name of the sender; may be empty
	Hello    string        // our name in the greeting; empty: the domain of From
	Timeout  time.Duration // of one message, including dialling; 0 is 30 s
}

// Notifier sends mail. Each message has its own connection.
type Notifier struct {
	config       Config
	host, domain string
	port         int
}

// New checks the configuration. It opens no connection.
func New(c Config) (*Notifier, error) {
	host, port, err := net.SplitHostPort(c.Address)
	if err != nil || host == "" {
		return nil, errors.New("mail: address: want HOST:PORT of the server")
	}
	number, err := strconv.Atoi(port)
	if err != nil || number < 1 || number > 65535 {
		return nil, errors.New("mail: address: want a port from 1 to 65535")
	}
	from, err := contact.ASCIIAddress(c.From)
	if err != nil {
		return nil, errors.New("mail: from: want an address such as tamga@example.ru")
	}
	c.From = from
	_, domain, _ := strings.Cut(c.From, "@")
	if strings.ContainsAny(c.FromName, "\r\n") {
		return nil, errors.New("mail: from_name: want one line")
	}
	if c.Security == "" {
		c.Security = StartTLS
	}
	switch c.Security {
	case StartTLS, TLS, None:
	default:
		return nil, errors.New("mail: security: want starttls, tls or none")
	}
	if c.User != "" && c.Security == None && !isLoopback(host) {
		return nil, errors.New("mail: security: a password is not sent over an open connection to another machine, want starttls or tls")
	}
	if c.Hello == "" {
		c.Hello = domain
	}
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}
	return &Notifier{config: c, host: host, domain: domain, port: number}, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Channel implements notify.Notifier.
func (n *Notifier) Channel() notify.Channel { return notify.Email }

// Send implements notify.Notifier. A code of 500 or above about the recipient or the text
// is permanent. An error about the connection, the sender or our password is temporary,
// because an administrator can fix it.
func (n *Notifier) Send(ctx context.Context, m notify.Message) error {
	message, err := n.compose(m)
	if err != nil {
		return err
	}
	return n.connected(ctx, func(client *gomail.Client, session *smtp.Client) error {
		err := client.SendWithSMTPClient(session, message)
		if message.IsDelivered() {
			notify.Answered(ctx, "%s", message.ServerResponse())
			return nil // an error afterwards changes nothing
		}
		if err != nil {
			notify.Answered(ctx, "%v", err)
		}
		return judge(err)
	})
}

// Probe implements notify.Prober: it connects, starts TLS and signs in.
func (n *Notifier) Probe(ctx context.Context) error {
	return n.connected(ctx, func(*gomail.Client, *smtp.Client) error { return nil })
}

// connected calls f with a session that is ready for a message.
func (n *Notifier) connected(ctx context.Context, f func(client *gomail.Client, session *smtp.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, n.config.Timeout)
	defer cancel()
	dial := &dialer{config: n.tlsConfig(), implicit: n.config.Security == TLS}
	// The library does not close a connection that fails during the greeting, and it
	// observes the context only while dialling.
	stop := context.AfterFunc(ctx, dial.close)
	defer stop()
	defer dial.close()
	client, err := gomail.NewClient(n.host, n.options(dial)...)
	if err != nil {
		return fmt.Errorf("mail: %w", err)
	}
	session, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		notify.Answered(ctx, "%v", err)
		return describe("connecting to "+n.config.Address, err)
	}
	err = f(client, session)
	if err == nil {
		client.CloseWithSMTPClient(session) // an error while closing changes nothing
	}
	return err
}

func (n *Notifier) options(dial *dialer) []gomail.Option {
	policy := gomail.NoTLS
	if n.config.Security == StartTLS {
		policy = gomail.TLSMandatory
	}
	options := []gomail.Option{
		gomail.WithPort(n.port),
		gomail.WithHELO(n.config.Hello),
		gomail.WithTimeout(n.config.Timeout),
		gomail.WithDialContextFunc(dial.dial),
		gomail.WithTLSConfig(n.tlsConfig()),
		gomail.WithTLSPolicy(policy),
		gomail.WithoutNoop(),
	}
	if n.config.User != "" {
		options = append(options,
			// Mechanisms that do not reveal the password come first. The library refuses
			// to send the password in clear to another machine.
			gomail.WithOpportunisticSMTPAuth(gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthSCRAMSHA1,
				gomail.SMTPAuthPlain, gomail.SMTPAuthLogin, gomail.SMTPAuthCramMD5),
			gomail.WithUsername(n.config.User), gomail.WithPassword(n.config.Password))
	}
	return options
}

func (n *Notifier) tlsConfig() *tls.Config {
	return &tls.Config{ServerName: n.host, RootCAs: n.config.Roots, MinVersion: tls.VersionTLS12}
}

// compose returns the mail for m.
func (n *Notifier) compose(m notify.Message) (*gomail.Msg, error) {
	to, err := contact.ASCIIAddress(m.To)
	if err != nil {
		return nil, notify.Permanent(errors.New("mail: the recipient is not an e-mail address"))
	}
	message := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	message.FromMailAddress(&netmail.Address{Name: n.config.FromName, Address: n.config.From})
	if err := message.To(to); err != nil {
		return nil, notify.Permanent(errors.New("mail: the recipient is not an e-mail address"))
	}
	message.Subject(notify.OneLine(m.Subject))           // checked again: a subject with line breaks would add headers
	message.SetMessageIDWithValue(m.ID + "@" + n.domain) // the same for every attempt
	message.SetDateWithValue(m.Created)
	message.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no automatic replies
	message.SetBodyString(gomail.TypeTextPlain, m.Text)
	if m.Picture != nil {
		err = message.AttachReader("qr.gif", bytes.NewReader(m.Picture), gomail.WithFileContentType("image/gif"))
	}
	return message, err
}

// judge classifies an error of the server as permanent or temporary.
func judge(err error) error {
	var refused *gomail.SendError
	if !errors.As(err, &refused) {
		return describe("sending", err)
	}
	text := "mail: " + refused.Reason.String()
	if code := refused.ErrorCode(); code != 0 {
		text += fmt.Sprintf(": the server answered %d %s", code, refused.EnhancedStatusCode())
	}
	// The text of the server may quote the mail, so only the code is kept.
	short := errors.New(strings.TrimSpace(text))
	switch refused.Reason {
	case gomail.ErrSMTPRcptTo, gomail.ErrSMTPData, gomail.ErrSMTPDataClose:
		if refused.ErrorCode() >= 500 {
			return notify.Permanent(short)
		}
	}
	return short
}

// describe returns an error that keeps only the code of a server's answer.
func describe(step string, err error) error {
	var answer *textproto.Error
	if errors.As(err, &answer) {
		return fmt.Errorf("mail: %s: the server answered %d", step, answer.Code)
	}
	return fmt.Errorf("mail: %s: %w", step, err)
}
