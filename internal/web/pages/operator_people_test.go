// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"regexp"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
)

// TestOperatorOwnAccount checks that operators see their own account and those of other operators
// marked, and read what a deed on the own account means before they do it.
func TestOperatorOwnAccount(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	_, login, _, _ := w.Register()
	line := regexp.MustCompile(`<th scope="row"><a href="(/operator/people/[^"]+)">([^<]+)</a>([^\n]*?)</th>`)
	const you, operates = ` <span class="badge">you</span>`, ` <span class="badge">operator</span>`
	b, other := operator(w, w.Dev.Operator.Login), operator(w, tamgatest.TwoGroup)
	at := ""
	for who, marks := range map[*browser]string{b: you + operates, other: operates} {
		got := map[string]string{}
		for _, m := range line.FindAllStringSubmatch(who.ok(who.get("/operator/people")).text, -1) {
			if got[m[2]] = m[3]; m[2] == w.Dev.Operator.Login {
				at = m[1]
			}
		}
		if mark, there := got[login]; !there || mark != "" {
			t.Errorf("a person who is no operator has the marks %q, in the list: %t", mark, there)
		}
		if got[w.Dev.Operator.Login] != marks {
			t.Errorf("the operator has the marks %q, want %q", got[w.Dev.Operator.Login], marks)
		}
		who.ok(who.get(at), `<p class="lead">`+w.Dev.Operator.Login+marks+`</p>`)
	}
	for _, deed := range []string{"lock", "delete", "disapprove", "sign-out", "login-delete", "password-show", "password-print", "method-delete-password"} {
		b.ok(b.get(at+"/"+deed), `<p class="problem">This is your own account. You are signed out`)
		if p := other.ok(other.get(at + "/" + deed)); strings.Contains(p.text, "own account") {
			t.Errorf("%s calls the account of another operator the reader's own", deed)
		}
	}
	if p := b.ok(b.get(at+"/name"), `<p class="problem">This is your own account.</p>`); strings.Contains(p.text, "signed out") {
		t.Error("a deed that ends no session says that it does")
	}
	b.header.Set("Accept-Language", "ru")
	b.ok(b.get(at+"/lock"), "Это ваша учётная запись. Ваш сеанс закончится")
	b.header.Set("Accept-Language", "en")
	b.ok(b.deed(at+"/sign-out", nil), `name="ticket"`) // the sign-in: the deed has ended the session of its operator
}
