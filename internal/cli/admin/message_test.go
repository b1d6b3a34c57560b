// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"tamga/internal/cli/admin"

	"tamga/internal/tamgatest"
	"tamga/internal/testsize"
)

// mailServer is a mail server on loopback. A test sets its answers.
type mailServer struct {
	address string
	mail    chan string // what was taken
	refused chan string // recipients that were not

	mu     sync.Mutex
	refuse error
}

func (m *mailServer) setRefuse(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refuse = err
}

func startMailServer(t *testing.T) *mailServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &mailServer{address: listener.Addr().String(), mail: make(chan string, 100), refused: make(chan string, 100)}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &mailSession{m}, nil }))
	server.Domain, server.ErrorLog = "mx.example", log.New(io.Discard, "", 0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	return m
}

type mailSession struct{ server *mailServer }

func (s *mailSession) Mail(string, *smtp.MailOptions) error { return nil }

func (s *mailSession) Reset() {}

func (s *mailSession) Logout() error { return nil }

func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if s.server.refuse != nil {
		s.server.refused <- to
	}
	return s.server.refuse
}

func (s *mailSession) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err == nil {
		s.server.mail <- string(text)
	}
	return err
}

// next waits for the next value.
func next(t *testing.T, values <-chan string, what string) string {
	t.Helper()
	select {
	case v := <-values:
		return v
	case <-time.After(5 * time.Minute):
		t.Fatalf("%s did not come in a minute", what)
		return ""
	}
}

// A message that the mail server refuses is given up and listed with the reason; an
// administrator has it sent again, and the code in it works.
func TestMessageCommands(t *testing.T) {
	server := startMailServer(t)
	server.setRefuse(&smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"})
	w := tamgatest.StartUMS(t, "--set", "messages.capture=false", "--set", "messages.mail.address="+server.address,
		"--set", "messages.mail.security=none", "--set", "messages.mail.from=tamga@example.ru", "--set", "messages.language=en")
	id, _, _, email := w.Register()
	path := "/ums/user/" + id + "/emails/" + email
	w.OK(tamgatest.Ours, "POST", path+"/requireconfirm", "{}")
	next(t, server.refused, "the attempt")
	list := func(more ...string) (list []admin.MessageJSON) {
		t.Helper()
		text := w.MustRun(append([]string{"message", "list", "--json", "--data", w.Dir}, more...)...)
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return list
	}
	var m admin.MessageJSON
	for begun := time.Now(); m.State != "dead"; { // the outcome is written after the answer of the server
		if got := list(); len(got) == 1 {
			m = got[0]
		}
		if time.Since(begun) > time.Minute {
			t.Fatalf("the message is not given up: %+v", m)
		}
	}
	if m.Channel != "Email" || m.To != email || m.Subject != "contact-code" || m.UserID != id || m.Attempts != 1 || !strings.Contains(m.Error, "550 5.1.1") || m.DoneAt == nil {
		t.Errorf("%+v", m)
	}
	if got := list("--state", "sent"); len(got) != 0 {
		t.Errorf("sent: %+v", got)
	}
	if text := w.MustRun("message", "list", "--data", w.Dir); !strings.Contains(text, m.ID) || !strings.Contains(text, "dead") {
		t.Errorf("for people:\n%s", text)
	}
	server.setRefuse(nil)
	w.MustRun("message", "resend", m.ID, "--data", w.Dir)
	mail := next(t, server.mail, "the mail")
	code := regexp.MustCompile(`confirmation code: (\d{6})`).FindStringSubmatch(mail)
	if code == nil {
		t.Fatalf("no code in\n%s", mail)
	}
	var c struct{ Confirmed bool }
	w.OK(tamgatest.Ours, "POST", path+"/submitconfirm", fmt.Sprintf("%q", code[1])).Into(t, &c)
	if !c.Confirmed {
		t.Errorf("%+v", c)
	}
	again := tamgatest.Run(t.Context(), "", "message", "resend", m.ID, "--data", w.Dir)
	if again.Failure == nil || !strings.Contains(again.Failure.Error(), "delivered") {
		t.Errorf("resent what was delivered: %v", again.Failure)
	}
}

// TestTryMessages sends test messages by mail and by SMS, which are taken and refused, and checks that the command says what the
// other side answered.
func TestTryMessages(t *testing.T) {
	t.Parallel()
	mail := startMailServer(t)
	answer := http.StatusOK
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(answer)
		io.WriteString(w, `{"id": 17}`)
	}))
	defer gateway.Close()
	settings := []string{"--set", "messages.capture=false", "--set", "messages.mail={address: '" + mail.address + "', security: none, from: tamga@example.ru}",
		"--set", "messages.sms.http={url: '" + gateway.URL + "', method: GET, query: {to: '{{.To}}', text: '{{.Text}}'}}"}
	w := tamgatest.StartUMS(t, settings...)
	_, login, _, _ := w.Register()
	try := func(channel, to string, code int, want ...string) {
		t.Helper()
		r := tamgatest.Run(t.Context(), "", slices.Concat([]string{"message", "test", channel, to, "--data", w.Dir}, settings)...)
		said := r.Out
		if r.Failure != nil {
			said += r.Failure.Error()
		}
		for _, text := range want {
			if r.Code != code || !strings.Contains(said, text) {
				t.Errorf("%s to %s: exit code %d, want %d and %q in\n%s", channel, to, r.Code, code, text, said)
			}
		}
	}
	try("email", "anna@example.ru", 0, "email to anna@example.ru: taken within", "queued")
	if text := next(t, mail.mail, "the mail"); !strings.Contains(text, "Subject:") {
		t.Errorf("the mail is\n%s", text)
	}
	if r := tamgatest.Run(t.Context(), "", "message", "test", "email", "anna@example.ru", "--data", w.Dir); r.Code != 1 || !strings.Contains(r.Failure.Error(), "messages.capture is on") {
		t.Errorf("captured messages: %d, %v", r.Code, r.Failure)
	}
	mail.setRefuse(&smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user here"})
	try("email", "boris@example.ru", 1, "email to boris@example.ru: not taken", "no such user here")
	try("email", "boris", 1, "e-mail: want an address")
	try("sms", "+7 926 123-45-67", 0, "sms to 79261234567: taken", `HTTP 200 OK: {"id": 17}`)
	answer = http.StatusForbidden
	try("sms", "+7 926 123-45-67", 1, "not taken: sms: the gateway answers 403", `HTTP 403 Forbidden`)
	try("push", login, 1, "the user has no device and no browser")
	if log := w.MustRun("audit", "--operation", "TestMessage", "--data", w.Dir); strings.Count(log, "TestMessage") < 6 {
		t.Errorf("the audit log has\n%s", log)
	}
}

// Messages outlive the process that ordered them, and the Host a client names is in
// none of them.
func TestMessagesSurviveKill(t *testing.T) {
	if testsize.Of() == testsize.Quick {
		t.Skip("waits for the end of a lease")
	}
	t.Parallel() // it waits most of the time
	server := startMailServer(t)
	server.setRefuse(&smtp.SMTPError{Code: 451, Message: "later"})
	settings := []string{"--set", "messages.capture=false", "--set", "messages.mail.address=" + server.address,
		"--set", "messages.mail.security=none", "--set", "messages.mail.from=tamga@example.ru"}
	w := tamgatest.StartUMSProcess(t, t.TempDir(), settings...)
	const messages = 5
	for range messages {
		id, _, _, email := w.Register()
		a := w.Ask(tamgatest.Ours, "POST", "/ums/user/"+id+"/emails/"+email+"/requireconfirm", "{}",
			"Host", "evil.localhost", "X-Forwarded-Host", "evil.example", "Forwarded", "host=evil.example")
		if a.Status != 200 {
			t.Fatal(a)
		}
	}
	next(t, server.refused, "an attempt")
	w.Kill()
	server.setRefuse(nil)
	tamgatest.StartProcess(t, w.Dir, settings...)
	seen := map[string]bool{}
	for len(seen) < messages {
		mail := next(t, server.mail, "a mail")
		if strings.Contains(mail, "evil") {
			t.Errorf("a client names the host in\n%s", mail)
		}
		seen[regexp.MustCompile(`(?m)^To: .*$`).FindString(mail)] = true
	}
}
