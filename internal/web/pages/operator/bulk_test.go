// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// TestSelection does commands to a selection of people. Each is done as the form of one person does it.
func TestSelection(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	one, first, _, email := w.Register()
	two, second, _, _ := w.Register()
	b, foreign := pagetest.Operator(w, w.Dev.Operator.Login), pagetest.Operator(w, tamgatest.Foreign)
	list := b.Shows(b.Get("/operator/people"), `<form class="table" method="get" action="/operator/people/bulk"`, `name="person" value="`+one+`"`, `name="do" value="lock"`)
	if !strings.Contains(list.Text, ">none</span>") {
		t.Error("the list does not say who has no certificate")
	}
	ask := func(b *pagetest.Browser, command string) pagetest.Page {
		return b.Get("/operator/people/bulk?" + url.Values{"do": {command}, "person": {one, two}}.Encode())
	}
	send := func(b *pagetest.Browser, command string, more url.Values) pagetest.Page {
		form := url.Values{"do": {command}, "person": {one, two}}
		for name, values := range more {
			form[name] = values
		}
		return b.Post("/operator/people/bulk", form)
	}
	b.Shows(ask(b, "lock"), "2 people are chosen", first, second, "will be done", `<select id="delay"`, "All sessions and tokens of this person end")
	p := b.Shows(send(b, "lock", url.Values{"delay": {"0"}}), "Done: 2, waiting: 0, refused: 0", "do=unlock&amp;person="+one)
	b.Shows(ask(b, "lock"), "is so already")
	for _, id := range []string{one, two} {
		b.Shows(b.Get(pagetest.PersonAt(id)), "The account is locked")
		if n := strings.Count(w.Command("audit", "--user", id, "--limit", "0", "--json"), `"operation":"SetUserLockoutStateEx","phase":"done","outcome":"ok"`); n != 1 {
			t.Errorf("the audit log has %d locks of %s", n, id)
		}
	}
	undo := b.Find(p, regexp.MustCompile(`href="(/operator/people/bulk\?do=unlock[^"]+)"`))[1]
	b.Shows(b.Get(strings.ReplaceAll(undo, "&amp;", "&")), "will be done")
	b.Shows(send(b, "unlock", nil), "Done: 2")
	b.Shows(b.Get(pagetest.PersonAt(one)), "may sign in")

	// A person to whom nothing can be sent is named before and after.
	b.Shows(b.Post(pagetest.PersonAt(one)+"/email-confirm?of="+url.QueryEscape(email), nil))
	b.Shows(ask(b, "password-email"), "will be done", "cannot be done", "The person has no confirmed e-mail")
	b.Shows(send(b, "password-email", nil), "Done: 1, waiting: 0, refused: 1", "The person has no confirmed e-mail")
	b.Shows(send(b, "group", url.Values{"group": {"Nothing"}}), "Done: 0, waiting: 0, refused: 2", "no such group among yours")
	b.Shows(send(b, "group", url.Values{"group": {"Default"}}), "Done: 2")
	b.Shows(send(b, "sign-out", nil), "Done: 2")

	for _, form := range []url.Values{{}, {"do": {"lock"}}, {"do": {"delete"}, "person": {one}}, {"person": {one}}, {"do": {"lock"}, "person": make([]string, 51)}} {
		b.Is(b.Get("/operator/people/bulk?"+form.Encode()), 400)
		b.Is(b.Post("/operator/people/bulk", form), 400)
	}
	foreign.Is(ask(foreign, "lock"), 404)
	foreign.Is(send(foreign, "lock", nil), 404)
	b.Shows(b.Get(pagetest.PersonAt(one)), "may sign in")
	b.Header.Set("Sec-Fetch-Site", "cross-site")
	b.Is(send(b, "lock", nil), 403)
}

// TestSelectionWaits checks that what needs a second operator waits for each person of a selection.
func TestSelectionWaits(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t, "--set", "users.second_operator=[ends_access]")
	id, _, _, _ := w.Register()
	b := pagetest.Operator(w, w.Dev.Operator.Login)
	form := url.Values{"do": {"lock"}, "person": {id}, "delay": {"0"}}
	p := b.Shows(b.Post("/operator/people/bulk", form), "Done: 0, waiting: 1, refused: 0", ">waits</span>")
	change := b.Find(p, regexp.MustCompile(`href="(/operator/approvals/[0-9a-f-]{36})"`))[1]
	second := pagetest.Operator(w, tamgatest.TwoGroup)
	second.Shows(second.SendCommand("/operator/approvals/approval-approve?of="+strings.TrimPrefix(change, "/operator/approvals/"), nil))
	b.Shows(b.Get(pagetest.PersonAt(id)), "may sign in")
	b.Shows(b.Post("/operator/people/bulk", form), "Done: 1, waiting: 0, refused: 0") // the same form again carries it out
	b.Shows(b.Get(pagetest.PersonAt(id)), "The account is locked")
}
