// SPDX-License-Identifier: Apache-2.0

package browser

import "testing"

// TestOperatorLocks has an operator, whose browser runs no scripts, lock a user who is about
// to sign.
func TestOperatorLocks(t *testing.T) {
	s := start(t)
	demo := s.tab(t, looks[0])
	demo.signIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
	demo.attach(`input[name=file]`, "a.txt", "text")

	b := s.tab(t, look{name: "no-script", language: "en", width: 360, noScript: true})
	b.signIn("/operator", s.Dev.Operator.Login, s.Dev.Operator.Password)
	b.press(`main nav a[href="/operator/people"]`)
	b.wait(`input[name=value0]`)
	b.fill(`input[name=value0]`, "demo")
	b.press(`main form button`)
	b.wait(`main table a[href^="/operator/people/"]`)
	firstPerson(b)
	b.press(`a[href$="/lock"]`)
	b.see("All sessions and tokens of this person end")
	b.fill(`input[name=confirm_name]`, "demo")
	b.press(`main form[method=post] button`)
	b.see("The account is locked")
	b.check("operator-locked-without-scripts")

	demo.press(`main form button:not([name]):not([type])`)
	demo.wait(`input[name=password]`) // signing in again, where nothing was signed
}
