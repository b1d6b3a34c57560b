// SPDX-License-Identifier: Apache-2.0

package keys_test

import (
	"testing"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/pki/pfx"
)

// All ways to set a PIN have the same rules: a length, and no simple sequence. Existing
// PINs stay.
func TestNewPINs(t *testing.T) {
	lax := func(o *keys.Options) { o.PINLength, o.SimplePINs, o.Exportable = 1, true, true }
	p, _ := manage(t, lax)
	ctx := t.Context()
	old := p.issue(t, keys.IssueOrder{PIN: "7"})
	o := p.Options
	exporting, err := keys.New(o)
	if err != nil {
		t.Fatal(err)
	}
	moved := p.issue(t, keys.IssueOrder{})
	file, err := exporting.Export(ctx, keys.ExportOrder{ID: moved.ID, Password: "password", Options: pfx.Options{Iterations: 10}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Delete(ctx, as(alice), number(moved), false); err != nil {
		t.Fatal(err)
	}
	ways := map[string]func(s *keys.Service, pin string) error{
		"issue": func(s *keys.Service, pin string) error {
			_, err := s.Issue(ctx, keys.IssueOrder{UserID: alice, Suite: old.X509.Suite, Subject: name(t), PIN: pin})
			return err
		},
		"request": func(s *keys.Service, pin string) error {
			_, err := s.CreateRequest(ctx, as(alice), keys.CertificateOrder{PIN: pin})
			return err
		},
		"generate": func(s *keys.Service, pin string) error {
			_, err := s.Generate(ctx, as(alice), 11849, "", pin)
			return err
		},
		"change": func(s *keys.Service, pin string) error {
			c, err := s.Issue(ctx, keys.IssueOrder{UserID: alice, Suite: old.X509.Suite, Subject: name(t)})
			if err != nil {
				return err
			}
			return s.ChangePIN(ctx, as(alice), number(c), "", pin)
		},
		"import": func(s *keys.Service, pin string) error {
			back, err := s.Import(ctx, keys.ImportOrder{UserID: alice, File: file, Password: "password", PIN: pin})
			if err == nil {
				_, err = s.Delete(ctx, as(alice), number(back), false)
			}
			return err
		},
	}
	for _, c := range []struct {
		length int // 0: the default
		simple bool
		good   []string
		bad    []string
	}{
		{0, false, []string{"", "135791", "123465", "112233", "пароль", "1234567890 "}, []string{"7", "13579", "пять5", "000000", "123456", "654321", "567890", "1098765", "abcdef", "яяяяяя"}},
		{0, true, []string{"000000", "123456"}, []string{"12345"}},
		{4, false, []string{"1357"}, []string{"135", "1234"}},
		{8, false, []string{"13579135"}, []string{"1357913"}},
	} {
		strict := p.Options
		strict.PINLength, strict.SimplePINs = c.length, c.simple
		s, err := keys.New(strict)
		if err != nil {
			t.Fatal(err)
		}
		for way, set := range ways {
			for _, pin := range c.good {
				if err := set(s, pin); err != nil {
					t.Errorf("at least %d characters, simple %v: %s with PIN %q: %v", c.length, c.simple, way, pin, err)
				}
			}
			for _, pin := range c.bad {
				if err := set(s, pin); !fault.Is(err, fault.InvalidPIN) {
					t.Errorf("at least %d characters, simple %v: %s with PIN %q: %v, want invalid_pin", c.length, c.simple, way, pin, err)
				}
			}
		}
		// An existing PIN opens its key and may be changed.
		if ok, why, err := s.CheckPIN(ctx, as(alice).Who, number(old), "7", false); !ok || err != nil {
			t.Errorf("the PIN of before: %v %s %v", ok, why, err)
		}
	}
	for _, length := range []int{-1, keys.MaxPINLength + 1} {
		o := p.Options
		o.PINLength = length
		if _, err := keys.New(o); err == nil {
			t.Errorf("a length of %d was accepted", length)
		}
	}
}
