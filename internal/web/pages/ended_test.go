// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"net/url"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// TestEndedSession sends forms after the session has ended. Each says that nothing was done, and
// what to do. The form of an upload keeps its files for that.
func TestEndedSession(t *testing.T) {
	s := tamgatest.Start(t)
	b := pagetest.New(t, s)
	b.SignIn("/start", s.Dev.User.Login, s.Dev.User.Password)
	s.Command("user", "logout", s.Dev.User.Login)
	b.Is(b.Post("/certificates/1/do/name", url.Values{"name": {"mine"}}), 401, "Nothing was done or changed", `href="/sign-in?to=%2Fcertificates%2F1"`)
	b.Is(b.Upload("/sign", map[string]string{"certificate": "1"}, pagetest.File{Field: "file", Name: "a.txt", Content: "a"}), 401, `<div data-again="">`, "Nothing was done or changed", `href="/sign-in?to=%2Fsign"`)
	if p := b.Shows(b.Post("/sign-out", nil)); p.At.Path != "/" {
		t.Errorf("signing out after the session has ended leads to %s", p.At)
	}
	b.Shows(b.Get("/certificates/1"), `name="ticket"`) // a page leads to the sign-in at once
}
