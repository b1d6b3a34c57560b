// SPDX-License-Identifier: Apache-2.0

package mail

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"math/big"
	"mime"
	"mime/quotedprintable"
	"net"
	netmail "net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/google/go-cmp/cmp"

	"tamga/internal/domain/notify"
)

// server is a mail server on loopback.
type server struct {
	address string
	roots   *x509.CertPool

	refuseRcpt, refuseData error
	needAuth               bool

	mu   sync.Mutex
	mail []received
}

type received struct {
	from, to, user string
	encrypted      bool
	data           []byte
}

func (s *server) received() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mail
}

const password = "correct horse \" battery"

// start runs a server. implicit: it speaks TLS from the first byte. plain: it offers no
// TLS.
func start(t *testing.T, s *server, implicit, plain bool) *server {
	t.Helper()
	certificate, roots := certificateOf(t)
	s.roots = roots
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	config := &tls.Config{Certificates: []tls.Certificate{certificate}}
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		_, encrypted := c.TLSConnectionState()
		return &session{server: s, mail: received{encrypted: encrypted}}, nil
	}))
	server.Domain = "mx.example"
	server.EnableSMTPUTF8 = true
	server.ErrorLog = log.New(io.Discard, "", 0)
	server.AllowInsecureAuth = true // so that a password sent in clear would be noticed
	if implicit {
		listener = tls.NewListener(listener, config)
	} else if !plain {
		server.TLSConfig = config
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	return s
}

type session struct {
	server *server
	mail   received
}

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, given string) error {
		if given != password {
			return smtp.ErrAuthFailed
		}
		s.mail.user = user
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if s.server.needAuth && s.mail.user == "" {
		return smtp.ErrAuthRequired
	}
	s.mail.from = from
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.mail.to += to
	return s.server.refuseRcpt
}

func (s *session) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if s.server.refuseData != nil {
		return s.server.refuseData
	}
	s.mail.data = data
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.mail = append(s.server.mail, s.mail)
	return nil
}

func (s *session) Reset()        {}
func (s *session) Logout() error { return nil }

func certificateOf(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

func (s *server) notifier(t *testing.T, change func(*Config)) *Notifier {
	t.Helper()
	c := Config{Address: s.address, Roots: s.roots, From: "tamga@example.ru", FromName: "Тамга, \"служба\"", Timeout: 10 * time.Second}
	if change != nil {
		change(&c)
	}
	n, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

var message = notify.Message{
	ID: "11111111-2222-4333-8444-555555555555", Channel: notify.Email, To: "Ivan@почта.рф",
	Subject: "Тамга: код подтверждения", Text: "Код: 123456\n\n.точка в начале строки\n" + strings.Repeat("длинная строка ", 100),
	Created: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
}

func TestSend(t *testing.T) {
	for _, c := range []struct {
		name            string
		implicit, plain bool
		change          func(*Config)
		want            received
	}{
		{"StartTLS", false, false, nil, received{encrypted: true}},
		{"StartTLSAuth", false, false, func(c *Config) { c.User, c.Password = "tamga", password }, received{encrypted: true, user: "tamga"}},
		{"TLSAuth", true, false, func(c *Config) { c.Security, c.User, c.Password = TLS, "tamga", password }, received{encrypted: true, user: "tamga"}},
		{"None", false, true, func(c *Config) { c.Security = None }, received{}},
		{"NoneAuthOnLoopback", false, true, func(c *Config) { c.Security, c.User, c.Password = None, "tamga", password }, received{user: "tamga"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, &server{needAuth: c.want.user != ""}, c.implicit, c.plain)
			if err := s.notifier(t, c.change).Send(t.Context(), message); err != nil {
				t.Fatal(err)
			}
			got := s.received()
			if len(got) != 1 {
				t.Fatalf("%d mails arrived, want 1", len(got))
			}
			c.want.from, c.want.to, c.want.data = "tamga@example.ru", "Ivan@xn--80a1acny.xn--p1ai", got[0].data
			if d := cmp.Diff(c.want, got[0], cmp.AllowUnexported(received{})); d != "" {
				t.Error(d)
			}
			m, err := netmail.ReadMessage(bytes.NewReader(got[0].data))
			if err != nil {
				t.Fatal(err)
			}
			subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
			if err != nil || subject != message.Subject {
				t.Errorf("subject %q, %v", subject, err)
			}
			from, err := netmail.ParseAddress(m.Header.Get("From"))
			if err != nil || from.Name != "Тамга, \"служба\"" || from.Address != "tamga@example.ru" {
				t.Errorf("from %v, %v", from, err)
			}
			for name, want := range map[string]string{
				"Message-Id":     "<" + message.ID + "@example.ru>",
				"Auto-Submitted": "auto-generated",
				"Date":           "Sat, 21 Nov 2026 12:00:00 +0000",
			} {
				if v := m.Header.Get(name); v != want {
					t.Errorf("%s: %q, want %q", name, v, want)
				}
			}
			body, err := io.ReadAll(quotedprintable.NewReader(m.Body))
			if err != nil {
				t.Fatal(err)
			}
			if text := strings.TrimRight(strings.ReplaceAll(string(body), "\r\n", "\n"), "\n"); text != message.Text {
				t.Errorf("text %q, want %q", text, message.Text)
			}
		})
	}
}

// TestHeaderInjection checks that no name, subject, address or text starts a new header.
func TestHeaderInjection(t *testing.T) {
	s := start(t, &server{}, false, false)
	n := s.notifier(t, nil)
	hostile := "x\r\nBcc: victim@example.ru\r\n\r\nbody"
	m := message
	m.Subject, m.Text = hostile, hostile
	if err := n.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	read, err := netmail.ReadMessage(bytes.NewReader(s.received()[0].data))
	if err != nil {
		t.Fatal(err)
	}
	if read.Header.Get("Bcc") != "" {
		t.Error("the subject became a header")
	}
	for _, to := range []string{"a@b.ru\r\nRCPT TO:<victim@example.ru>", "a@b.ru, victim@example.ru", "<a@b.ru>", "victim", "a@b.ru>\r\nDATA", ""} {
		m := message
		m.To = to
		if err := n.Send(t.Context(), m); !notify.IsPermanent(err) {
			t.Errorf("to %q: %v, want a permanent error", to, err)
		}
	}
	if got := s.received(); len(got) != 1 {
		t.Errorf("%d mails arrived, want 1", len(got))
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name      string
		server    *server
		change    func(*Config)
		permanent bool
		want      string
	}{
		{"UnknownRecipient", &server{refuseRcpt: &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user: Код: 123456"}}, nil, true, "550 5.1.1"},
		{"Greylisted", &server{refuseRcpt: &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 7, 1}, Message: "later"}}, nil, false, "451 4.7.1"},
		{"TextRefused", &server{refuseData: &smtp.SMTPError{Code: 554, EnhancedCode: smtp.EnhancedCode{5, 6, 0}, Message: "spam: Код: 123456"}}, nil, true, "554 5.6.0"},
		{"WrongPassword", &server{}, func(c *Config) { c.User, c.Password = "tamga", "wrong secret" }, false, "535"},
		{"PasswordNeeded", &server{needAuth: true}, nil, false, "502 5.7.0"},
		{"UnknownRoot", &server{}, func(c *Config) { c.Roots = x509.NewCertPool() }, false, "certificate"},
		{"OtherName", &server{}, func(c *Config) { c.Address = strings.Replace(c.Address, "127.0.0.1", "localhost", 1) }, false, "certificate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, c.server, false, false)
			err := s.notifier(t, c.change).Send(t.Context(), message)
			if err == nil || notify.IsPermanent(err) != c.permanent || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want one with %q, permanent %t", err, c.want, c.permanent)
			}
			for _, secret := range []string{"123456", "wrong secret", password} {
				if err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("the error holds a secret: %v", err)
				}
			}
			if len(s.received()) != 0 {
				t.Error("a mail arrived")
			}
		})
	}
}

// TestStartTLSIsNotOptional checks that a server without STARTTLS gets neither the mail
// nor the password.
func TestStartTLSIsNotOptional(t *testing.T) {
	s := start(t, &server{}, false, true)
	n := s.notifier(t, func(c *Config) { c.User, c.Password = "tamga", password })
	if err := n.Send(t.Context(), message); err == nil || notify.IsPermanent(err) {
		t.Errorf("%v, want a temporary error", err)
	}
	if len(s.received()) != 0 {
		t.Error("a mail arrived")
	}
}

// TestSilentServer checks that a server that does not answer costs only the timeout of
// one message and no leaked connection.
func TestSilentServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	closed := make(chan struct{})
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			io.Copy(io.Discard, conn) // returns when the other side has closed
			conn.Close()
		}
		close(closed)
	}()
	n := (&server{address: listener.Addr().String()}).notifier(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := n.Send(ctx, message); err == nil || notify.IsPermanent(err) {
		t.Errorf("%v, want a temporary error", err)
	}
	<-closed
}

func TestNew(t *testing.T) {
	for _, c := range []struct {
		name string
		c    Config
		want string
	}{
		{"NoPort", Config{Address: "mx.example", From: "a@example.ru"}, "address"},
		{"NoHost", Config{Address: ":25", From: "a@example.ru"}, "address"},
		{"PortBeyond", Config{Address: "mx.example:70000", From: "a@example.ru"}, "address"},
		{"From", Config{Address: "mx.example:25", From: "unknown"}, "from"},
		{"FromName", Config{Address: "mx.example:25", From: "a@example.ru", FromName: "a\r\nBcc: b"}, "from_name"},
		{"Security", Config{Address: "mx.example:25", From: "a@example.ru", Security: "ssl"}, "security"},
		{"OpenPassword", Config{Address: "mx.example:25", From: "a@example.ru", Security: None, User: "u", Password: "p"}, "security"},
	} {
		if _, err := New(c.c); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want one about %s", c.name, err, c.want)
		}
	}
}
