// SPDX-License-Identifier: Apache-2.0

package pagetest

import (
	"html"
	"net/url"
	"regexp"

	"tamga/internal/tamgatest"
)

// Operator returns a browser in which an operator is signed in.
func Operator(w *tamgatest.UMS, login string) *Browser {
	w.T.Helper()
	b := New(w.T, w.Server)
	password := tamgatest.Password
	if login == w.Dev.Operator.Login {
		password = w.Dev.Operator.Password
	}
	b.Shows(b.SignIn("/operator", login, password), "What waits")
	return b
}

var (
	// FormAt finds the address of the form of a command.
	FormAt   = regexp.MustCompile(`<form method="post" action="(/operator[^"]+)"`)
	fromList = regexp.MustCompile(`<input type="hidden" name="from" value="([^"]*)">`)
	typeName = regexp.MustCompile(`To confirm, type <code>([^<]*)</code>`)
)

// PersonAt returns the page of a user for operators.
func PersonAt(id string) string { return "/operator/people/" + id }

// personPages are the ends of the addresses of the pages of a person, but for the history.
var personPages = []string{"", "/sign-in", "/certificates", "/devices", "/operations", "/rules", "/account"}

// Record returns all pages of a person as one.
func (b *Browser) Record(at string) Page {
	b.Helper()
	var all Page
	for i, end := range personPages {
		p := b.Get(at + end)
		if i == 0 {
			all = p
		} else {
			all.Text += p.Text
		}
	}
	return all
}

// SendCommand sends the form of a command, with the name that it asks for.
func (b *Browser) SendCommand(at string, form url.Values) Page {
	b.Helper()
	p := b.Shows(b.Get(at))
	if form == nil {
		form = url.Values{}
	}
	if m := typeName.FindStringSubmatch(p.Text); m != nil {
		form.Set("confirm_name", html.UnescapeString(m[1]))
	}
	if m := fromList.FindStringSubmatch(p.Text); m != nil {
		form.Set("from", m[1])
	}
	return b.Post(b.Find(p, FormAt)[1], form)
}
