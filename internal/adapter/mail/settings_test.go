// SPDX-License-Identifier: Apache-2.0

package mail_test

import (
	"crypto/x509"
	"errors"
	"testing"

	"tamga/internal/adapter/mail"
	"tamga/internal/domain/notify"
	"tamga/internal/setting"
)

func TestSettings(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*mail.Settings)
		want   string
	}{
		{"all that is needed", func(s *mail.Settings) {}, ""},
		{"nothing", func(s *mail.Settings) { s.Address, s.From = "", "" }, ""},
		{"no sender", func(s *mail.Settings) { s.From = "" }, "from: want the address of the sender"},
		{"a user without a password", func(s *mail.Settings) { s.User = "a" }, "user: want password_file as well, or neither"},
		{"another protection", func(s *mail.Settings) { s.Security = "ssl" }, "messages.mail.security: want starttls, tls or none"},
	} {
		var s mail.Settings
		setting.Defaults(&s)
		s.Address, s.From = "mail.example.ru:587", "tamga@example.ru"
		c.change(&s)
		err := errors.Join(append(s.Check(), setting.Check("messages.mail", &s)...)...)
		if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// The password comes from its file.
func TestOpen(t *testing.T) {
	s := mail.Settings{Address: "mail.example.ru:587", From: "tamga@example.ru", User: "a", PasswordFile: "p"}
	var asked string
	n, err := s.Open(notify.Environment{
		Secret: func(file, setting string) (string, error) { asked = setting + "=" + file; return "secret", nil },
		Roots:  func(string) (*x509.CertPool, error) { return nil, nil },
	})
	if err != nil || n.Channel() != s.Channel() || asked != "password_file=p" {
		t.Errorf("%v, %v, asked for %s", n, err, asked)
	}
}
