// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
)

// TestApprovalForms checks that an approver reads the choices of a form, also those that it takes
// away, and that the form opens as it was sent for its requester alone.
func TestApprovalForms(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t, "--set", "users.second_operator=[weakens_policy]")
	id, _, _, _ := w.Register()
	ours, second := operator(w, w.Dev.Operator.Login), operator(w, tamgatest.TwoGroup)
	at, request := personAt(id), regexp.MustCompile(`href="(/operator/approvals/[0-9a-f-]{36})"`)
	form := regexp.MustCompile(`href="(` + at + `/policy-operation\?approval=[0-9a-f-]{36})"`)

	ours.ok(ours.command(at+"/policy-operation", url.Values{"actions": {"SignDocument", "SignDocuments"}})) // asks for more
	p := ours.command(at+"/policy-operation", url.Values{"actions": {"SignDocument", "ChangePin"}})
	change := ours.find(p, request)[1]
	second.ok(second.get(change), "<dt>Actions</dt><dd>Sign a document, Change a PIN</dd>", "waits for an approval")
	again := html.UnescapeString(ours.find(ours.get(change), form)[1])
	p = ours.ok(ours.get(again), `value="SignDocument" checked`, `value="ChangePin" checked`, `action="`+at+`/policy-operation"`)
	if strings.Count(p.text, " checked") != 2 {
		t.Errorf("the form is not as it was sent:\n%s", p.text)
	}
	if p := second.ok(second.get(again), `value="SignDocuments" checked`); strings.Contains(p.text, `value="ChangePin" checked`) {
		t.Error("another operator has the form of the requester")
	}
	ours.is(ours.get(at+"/policy-operation?approval="+tamgatest.Missing), 404)
	p = ours.command(at+"/policy-notification", nil)
	second.ok(second.get(second.find(p, request)[1]), "<dd>(empty)</dd>")
}

// TestOperatorWords checks what operators read where a form has more than one outcome.
func TestOperatorWords(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	id, _, _, email := w.Register()
	b, at := operator(w, w.Dev.Operator.Login), personAt(id)
	of := "?of=" + url.QueryEscape(email)
	b.ok(b.command(at+"/email-confirm"+of, nil))
	b.ok(b.command(at+"/email-notification"+of, url.Values{"has": {"true"}}), "The role is set")
	b.ok(b.command(at+"/email-notification"+of, url.Values{"has": {"false"}}), "The role is taken away")
	b.is(b.command(at+"/dn", url.Values{"dn-11": {""}, "dn-6": {"Russia"}}), 400, "Common name: required; Country: want 1 to 2 characters")
	b.header.Set("Accept-Language", "ru")
	b.is(b.command(at+"/dn", url.Values{"dn-11": {""}, "dn-6": {"Россия"}}), 400, "Общее имя: заполните это поле. Страна: от 1 до 2 символов.")
	b.is(b.command(at+"/login", url.Values{"login": {"demo"}}), 400, "Логин «demo» занят")
	b.is(b.command("/operator/webhooks/webhook-add", url.Values{"address": {"http://example.org/"}}), 400, "Адрес должен начинаться с https://")
	b.header.Set("Accept-Language", "en")

	b.ok(b.command("/operator/groups/group-operation?of=Default", url.Values{"fixed": {"false"}, "actions": {"SignDocument"}}))
	if p := b.ok(b.get("/operator/groups/group-clear?of=Default"), `value="operation"`); strings.Contains(p.text, `value="access"`) {
		t.Error("a policy can be removed that the group does not have")
	}
	b.ok(b.get("/operator/tokens?free=yes"), `href="/operator/tokens">All tokens`)
	p := b.ok(b.get("/reference/SetUserLockoutStateEx"), "<title>SetUserLockoutStateEx – ", "&#34;LockoutDelay&#34;: {")
	if strings.Contains(p.text, "$ref") {
		t.Error("a schema refers to another one")
	}
}
