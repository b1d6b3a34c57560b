// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// TestApprovalForms checks that an approver reads the choices of a form, also those that it takes
// away, and that the form opens as it was sent for its requester alone.
func TestApprovalForms(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t, "--set", "users.second_operator=[weakens_policy]")
	id, _, _, _ := w.Register()
	ours, second := pagetest.Operator(w, w.Dev.Operator.Login), pagetest.Operator(w, tamgatest.TwoGroup)
	at, request := pagetest.PersonAt(id), regexp.MustCompile(`href="(/operator/approvals/[0-9a-f-]{36})"`)
	form := regexp.MustCompile(`href="(` + at + `/policy-operation\?approval=[0-9a-f-]{36})"`)

	ours.Shows(ours.SendCommand(at+"/policy-operation", url.Values{"actions": {"SignDocument", "SignDocuments"}})) // asks for more
	p := ours.SendCommand(at+"/policy-operation", url.Values{"actions": {"SignDocument", "ChangePin"}})
	change := ours.Find(p, request)[1]
	second.Shows(second.Get(change), "<dt>Actions</dt><dd>Sign a document, Change a PIN</dd>", "waits for an approval")
	again := html.UnescapeString(ours.Find(ours.Get(change), form)[1])
	p = ours.Shows(ours.Get(again), `value="SignDocument" checked`, `value="ChangePin" checked`, `action="`+at+`/policy-operation"`)
	if strings.Count(p.Text, " checked") != 2 {
		t.Errorf("the form is not as it was sent:\n%s", p.Text)
	}
	if p := second.Shows(second.Get(again), `value="SignDocuments" checked`); strings.Contains(p.Text, `value="ChangePin" checked`) {
		t.Error("another operator has the form of the requester")
	}
	ours.Is(ours.Get(at+"/policy-operation?approval="+tamgatest.Missing), 404)
	p = ours.SendCommand(at+"/policy-notification", nil)
	second.Shows(second.Get(second.Find(p, request)[1]), "<dd>(empty)</dd>")
}

// TestOperatorWords checks what operators read where a form has more than one outcome.
func TestOperatorWords(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	id, _, _, email := w.Register()
	b, at := pagetest.Operator(w, w.Dev.Operator.Login), pagetest.PersonAt(id)
	of := "?of=" + url.QueryEscape(email)
	b.Shows(b.SendCommand(at+"/email-confirm"+of, nil))
	b.Shows(b.SendCommand(at+"/email-notification"+of, url.Values{"has": {"true"}}), "Notifications come here too now")
	b.Shows(b.SendCommand(at+"/email-notification"+of, url.Values{"has": {"false"}}), "not used for this any more")
	b.Is(b.SendCommand(at+"/dn", url.Values{"dn-11": {""}, "dn-6": {"Russia"}}), 400, "Common name: required; Country: want 1 to 2 characters")
	b.Header.Set("Accept-Language", "ru")
	b.Is(b.SendCommand(at+"/dn", url.Values{"dn-11": {""}, "dn-6": {"Россия"}}), 400, "Общее имя: заполните это поле. Страна: от 1 до 2 символов.")
	b.Is(b.SendCommand(at+"/login", url.Values{"login": {"demo"}}), 400, "Логин «demo» занят")
	b.Is(b.SendCommand("/operator/webhooks/webhook-add", url.Values{"address": {"http://example.org/"}}), 400, "Адрес должен начинаться с https://")
	b.Header.Set("Accept-Language", "en")

	b.Shows(b.SendCommand("/operator/groups/group-operation?of=Default", url.Values{"fixed": {"false"}, "actions": {"SignDocument"}}))
	if p := b.Shows(b.Get("/operator/groups/group-clear?of=Default"), `value="operation"`); strings.Contains(p.Text, `value="access"`) {
		t.Error("a policy can be removed that the group does not have")
	}
	b.Shows(b.Get("/operator/tokens?free=yes"), `href="/operator/tokens">All tokens`)
	p := b.Shows(b.Get("/reference/SetUserLockoutStateEx"), "<title>SetUserLockoutStateEx – ", "&#34;LockoutDelay&#34;: {")
	if strings.Contains(p.Text, "$ref") {
		t.Error("a schema refers to another one")
	}
}
