// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"net/url"
	"testing"

	"tamga/internal/tamgatest"
)

// TestEndedSession sends forms after the session has ended. Each says that nothing was done, and
// what to do. The form of an upload keeps its files for that.
func TestEndedSession(t *testing.T) {
	s := tamgatest.Start(t)
	b := newBrowser(t, s)
	b.signIn("/start", s.Dev.User.Login, s.Dev.User.Password)
	s.Command("user", "logout", s.Dev.User.Login)
	b.is(b.post("/certificates/1/do/name", url.Values{"name": {"mine"}}), 401, "Nothing was done or changed", `href="/sign-in?to=%2Fcertificates%2F1"`)
	b.is(b.upload("/sign", map[string]string{"certificate": "1"}, file{"file", "a.txt", "a"}), 401, `<div data-again="">`, "Nothing was done or changed", `href="/sign-in?to=%2Fsign"`)
	if p := b.ok(b.post("/sign-out", nil)); p.at.Path != "/" {
		t.Errorf("signing out after the session has ended leads to %s", p.at)
	}
	b.ok(b.get("/certificates/1"), `name="ticket"`) // a page leads to the sign-in at once
}
