// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// TestWebhookPages has an administrator look at a webhook, test it, change it, and switch it off
// and on.
func TestWebhookPages(t *testing.T) {
	t.Parallel()
	answer := make(chan int, 1)
	got := make(chan string, 10)
	system := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- string(body)
		status := <-answer
		answer <- status
		w.WriteHeader(status)
	}))
	t.Cleanup(system.Close)
	w := tamgatest.StartUMS(t, "--set", "messages.attempts=1", "--set", "webhooks.allow_networks=[127.0.0.1]", "--set", "webhooks.plain_http=true")
	b, ru := pagetest.Operator(w, w.Dev.Operator.Login), pagetest.Operator(w, w.Dev.Operator.Login)
	ru.Header.Set("Accept-Language", "ru")
	b.Shows(b.SendCommand("/operator/webhooks/webhook-add", url.Values{"address": {system.URL + "/a"}}), "whsec_")
	at := b.Find(b.Shows(b.Get("/operator/webhooks")), regexp.MustCompile(`href="(/operator/webhooks/[0-9a-f-]{36})"`))[1]
	id := strings.TrimPrefix(at, "/operator/webhooks/")
	act := func(name string) string { return "/operator/webhooks/webhook-" + name + "?of=" + id }
	b.Shows(b.Record(at), system.URL+"/a", "all events", "No message has been sent")

	answer <- 200
	b.Shows(b.SendCommand(act("test"), nil), "The system has taken the message.")
	if body := <-got; !strings.Contains(body, `"type":"WebhookTest"`) {
		t.Errorf("the test sends %s", body)
	}
	<-answer
	answer <- 500
	b.Shows(b.SendCommand(act("test"), nil), "The system has not taken the message.", "answered 500")
	ru.Shows(ru.SendCommand(act("test"), nil), "Система не приняла сообщение.", "Система ответила кодом 500")
	<-got
	<-got

	// A delivery that fails, and what the page says of it.
	w.Register()
	<-got
	for !strings.Contains(b.Shows(b.Record(at)).Text, "answered 500") { // until the outcome is recorded
	}
	ru.Shows(ru.Record(at), "не доставлено", "Система ответила кодом 500, а нужен 2xx.", "message-again")

	b.Shows(b.Get(act("change")), `value="`+system.URL+`/a"`)
	p := b.Shows(b.SendCommand(act("change"), url.Values{"address": {system.URL + "/b"}, "events": {"UserDeleted"}}), "The webhook is changed", system.URL+"/b")
	if p.At.Path != at || strings.Contains(p.Text, "all events") {
		t.Errorf("after the change at %s", p.At)
	}
	if n := strings.Count(b.Shows(b.Get(act("change"))).Text, " checked"); n != 1 {
		t.Errorf("the form has %d events, want 1", n)
	}
	b.Is(b.SendCommand(act("change"), url.Values{"address": {"http://10.0.0.1/"}}), 400, "public internet") // the rules of a new one
	b.Shows(b.SendCommand(act("pause"), nil), "The webhook is off", "Off since", "webhook-resume")
	b.Shows(b.SendCommand(act("test"), nil), "the webhook is switched off")
	if p := b.Shows(b.SendCommand(act("resume"), nil), "The webhook is on", "webhook-pause"); strings.Contains(p.Text, "Off since") {
		t.Error("the webhook is off")
	}
	b.Shows(b.SendCommand(act("remove"), nil), "The system is removed")
	b.Is(b.Get(at), 404, "no such subscription")
	log := w.Command("audit", "--limit", "0", "--json")
	for _, operation := range []string{"TestWebhook", "ChangeWebhook", "PauseWebhook", "ResumeWebhook", "RemoveWebhook", "GetWebhook"} {
		if !strings.Contains(log, `"operation":"`+operation+`","phase":"done","outcome":"ok","object":"`+id+`"`) {
			t.Errorf("the audit log has no %s of %s", operation, id)
		}
	}
}
