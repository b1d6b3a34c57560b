// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"html"
	"io"
	"net"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// TestMessagesAgain has an administrator send again what a mail server has refused.
func TestMessagesAgain(t *testing.T) {
	t.Parallel()
	mail, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mail.Close() })
	asked := make(chan bool, 100)
	go func() {
		for {
			c, err := mail.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "554 no service\r\n")
			c.Close()
			asked <- true
		}
	}()
	w := tamgatest.StartUMS(t, "--set", "messages.capture=false", "--set", "messages.attempts=1", "--set", "messages.mail.address="+mail.Addr().String(),
		"--set", "messages.mail.security=none", "--set", "messages.mail.from=tamga@example.org")
	id, _, _, email := w.Register()
	b, ru := pagetest.Operator(w, w.Dev.Operator.Login), pagetest.Operator(w, w.Dev.Operator.Login)
	ru.Header.Set("Accept-Language", "ru")
	b.Shows(b.SendCommand(pagetest.PersonAt(id)+"/email-code?of="+url.QueryEscape(email), nil), "The code is on its way")
	again := regexp.MustCompile(`href="(/operator/messages/message-again\?of=[0-9a-f-]{36})"`)
	// dead waits until the message is given up. The server refuses it at once.
	dead := func() string {
		t.Helper()
		<-asked
		for {
			p := b.Shows(b.Get("/operator/messages?state=dead"))
			if m := again.FindStringSubmatch(p.Text); m != nil {
				return html.UnescapeString(m[1])
			}
		}
	}
	to := dead()
	b.Shows(b.Get("/operator/messages"), "Email "+email, "given up", "look here", "the server answered 554")
	ru.Shows(ru.Get("/operator/messages"), "Электронная почта "+email, "не доставлено", "отказал в соединении, код ответа 554.")
	if p := b.Shows(b.Get(to), "Email "+email+" – Code that confirms a contact"); strings.Contains(p.Text, "<code>"+strings.TrimPrefix(to, "/operator/messages/message-again?of=")) {
		t.Error("the form shows an identifier in place of the message")
	}
	b.Shows(b.SendCommand(to, nil), "The message is queued")
	if second := dead(); second != to {
		t.Errorf("%s was sent again as %s", to, second)
	}
	b.Shows(b.Get("/operator/messages?state=sent"), "There is no message.")
	// A message that is gone since the form was opened.
	b.Is(b.Post("/operator/messages/message-again?of="+tamgatest.Missing, nil), 404, "There is no such message.<")
	b.Shows(b.SendCommand("/operator/services/providers-check", nil), "Mail server", "the server answered 554")
	// A test message says what the server answers.
	try := url.Values{"channel": {"Email"}, "recipient": {"anna@example.org"}}
	b.Shows(b.Get("/operator/messages"), "/operator/messages/message-try")
	b.Shows(b.SendCommand("/operator/messages/message-try", try), "anna@example.org", "554 &#34;no service&#34;", "The service did not take the message.")
	ru.Shows(ru.SendCommand("/operator/messages/message-try", try), "Ответ сервиса", "Сервис не принял сообщение.")
	b.Is(b.SendCommand("/operator/messages/message-try", url.Values{"channel": {"Email"}, "recipient": {"anna"}}), 400, "name@example.ru")
}
