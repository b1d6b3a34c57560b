// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"testing"
)

// TestReferenceScripts has the command of an operation follow its form. The command is the one that the page prints after the
// same request was sent without scripts.
func TestReferenceScripts(t *testing.T) {
	s := start(t)
	b := s.tab(t, looks[0])
	b.statuses = false // a user may not register others
	b.signIn("/start", s.Dev.User.Login, s.Dev.User.Password)
	b.open("/reference?q=no+such+operation")
	b.until(`document.querySelector("[data-none]").offsetHeight > 0`)
	b.check("reference-search-none")

	command := func(b *tab) string { return value[string](b, `document.querySelector("[data-curl]").textContent`) }
	edit := func(b *tab) {
		b.open("/reference/RegisterUser")
		b.fill(`input[name=p0]`, "Default & more")
		b.fill(`textarea[name=body]`, `{"Login":"o'brien"}`)
	}
	edit(b)
	b.until(`document.querySelector("[data-curl]").textContent.includes("brien")`)
	typed := command(b)
	plain := s.tab(t, look{name: "no-script", language: "en", width: 1280, noScript: true})
	plain.statuses = false
	plain.signIn("/start", s.Dev.User.Login, s.Dev.User.Password)
	edit(plain)
	plain.press(`#try form button`)
	plain.wait(`#answer`)
	if sent := command(plain); sent != typed {
		t.Errorf("the command of the form is\n%s\nand that of what was sent\n%s", typed, sent)
	}
}
