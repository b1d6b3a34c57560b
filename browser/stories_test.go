// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"testing"

	"tamga/internal/tamgatest"
)

// TestWithoutScripts signs and verifies in a browser that runs no scripts.
func TestWithoutScripts(t *testing.T) {
	s := start(t)
	b := s.tab(t, look{name: "no-script", language: "en", width: 1280, noScript: true})
	b.signIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
	b.attach(`input[name=file]`, "contract.pdf", string(tamgatest.PDFOf(2000)), "a.txt", "text")
	b.press(`main form button:not([name])`)
	b.see("2 documents are signed")
	b.check("signed-without-scripts")
	b.press(`main a[href="/sign"]`)
	b.see("By the kind of each file")
	b.press(`header nav a[href="/verify"]`)
	b.see("Nothing is stored")
	if value[int](b, `document.scripts.length`) == 0 {
		t.Error("the page has no script, so this test shows nothing")
	}
	b.check("verify-without-scripts")
}
