// SPDX-License-Identifier: Apache-2.0

package contact_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
)

// code is the code of the last order.
func (s *shelf) code(t *testing.T) string {
	t.Helper()
	if len(s.orders) == 0 {
		t.Fatal("no code was sent")
	}
	return s.orders[len(s.orders)-1].Data["Code"]
}

// wrong is a code that is not this one.
func wrong(code string) string {
	if code[0] == '0' {
		return "1" + code[1:]
	}
	return "0" + code[1:]
}

func TestConfirmationByCode(t *testing.T) {
	s := open(t, nil)
	s.add(t, ivan, contact.Email, "Ivan@Example.ru")
	submit := func(code string) error {
		_, err := s.SubmitConfirmation(t.Context(), operator, ivan, contact.Email, mail, code)
		return err
	}
	wants(t, submit("123456"), fault.InvalidCode) // none was sent
	wants(t, s.RequireConfirmation(t.Context(), operator, ivan, contact.Email, mail), "")
	code := s.code(t)
	want := []notify.Direct{{
		Channel: notify.Email, To: "Ivan@example.ru", Template: notify.TemplateContactCode,
		Data: map[string]string{"Code": code, "Minutes": "5"}, UserID: ivan, Actor: "operator", Expires: start.Add(5 * time.Minute),
	}}
	if d := cmp.Diff(want, s.orders, cmpopts.IgnoreUnexported(notify.Direct{})); d != "" || len(code) != 6 || strings.Trim(code, "0123456789") != "" {
		t.Error(code, d)
	}
	for _, bad := range []string{wrong(code), code + "0", code[:5], strings.Repeat("9", 100_000)} {
		wants(t, submit(bad), fault.InvalidCode)
	}
	wants(t, submit(" "+code+"\n"), "")
	s.list(t, ivan, contact.Email, "Ivan@example.ru confirmed")
	wants(t, submit(code), fault.InvalidCode) // spent
}

func TestCodeAttempts(t *testing.T) {
	s := open(t, nil)
	s.add(t, ivan, contact.Phone, phone)
	wants(t, s.RequireConfirmation(t.Context(), operator, ivan, contact.Phone, phone), "")
	code := s.code(t)
	submit := func(code string) error {
		_, err := s.SubmitConfirmation(t.Context(), operator, ivan, contact.Phone, phone, code)
		return err
	}
	for range 5 {
		wants(t, submit(wrong(code)), fault.InvalidCode)
	}
	wants(t, submit(code), fault.MaxAttempts) // the right one comes too late
	wants(t, submit(wrong(code)), fault.MaxAttempts)
	s.list(t, ivan, contact.Phone, phone)
	// Another one may be sent a minute after the first.
	s.now = start.Add(time.Minute - time.Millisecond)
	wants(t, s.RequireConfirmation(t.Context(), operator, ivan, contact.Phone, phone), fault.TooManyRequests)
	s.now = start.Add(time.Minute)
	wants(t, s.RequireConfirmation(t.Context(), operator, ivan, contact.Phone, phone), "")
	wants(t, submit(s.code(t)), "")
	s.list(t, ivan, contact.Phone, phone+" confirmed")
	if len(s.orders) != 2 {
		t.Errorf("%d codes were sent, want 2", len(s.orders))
	}
}

func TestCodeLife(t *testing.T) {
	s := open(t, nil)
	s.add(t, ivan, contact.Phone, phone)
	wants(t, s.RequireConfirmation(t.Context(), operator, ivan, contact.Phone, phone), "")
	first := s.code(t)
	s.now = start.Add(5 * time.Minute)
	_, err := s.SubmitConfirmation(t.Context(), operator, ivan, contact.Phone, phone, first)
	wants(t, err, fault.InvalidCode)
	wants(t, s.RequireConfirmation(t.Context(), operator, ivan, contact.Phone, phone), "")
	s.now = s.now.Add(5*time.Minute - time.Millisecond)
	_, err = s.SubmitConfirmation(t.Context(), operator, ivan, contact.Phone, phone, s.code(t))
	wants(t, err, "")
}

// A code is good for the user, the contact and the purpose it was sent for.
func TestCodeOfAnother(t *testing.T) {
	s := open(t, nil)
	other := "79261111111"
	for _, u := range []string{ivan, anna} {
		s.add(t, u, contact.Phone, phone)
	}
	s.add(t, ivan, contact.Phone, other)
	wants(t, s.RequireConfirmation(t.Context(), operator, ivan, contact.Phone, phone), "")
	code := s.code(t)
	for name, submit := range map[string]func() error{
		"user": func() error {
			_, err := s.SubmitConfirmation(t.Context(), operator, anna, contact.Phone, phone, code)
			return err
		},
		"contact": func() error {
			_, err := s.SubmitConfirmation(t.Context(), operator, ivan, contact.Phone, other, code)
			return err
		},
		"purpose": func() error { return s.Codes().Spend(t.Context(), ivan, "sign-in", contact.Phone, phone, code) },
	} {
		if err := submit(); !fault.Is(err, fault.InvalidCode) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.SubmitConfirmation(t.Context(), operator, ivan, contact.Phone, phone, code); err != nil {
		t.Error(err)
	}
}

// movedCodes is a store in which an attacker copied the codes of one contact over those
// of all others.
type movedCodes struct {
	contact.CodeStore
	from string
}

func (m movedCodes) TryCode(ctx context.Context, userID, purpose string, kind contact.Type, normal string, now time.Time) (contact.Code, int, bool, error) {
	c, attempts, found, err := m.CodeStore.TryCode(ctx, userID, purpose, kind, m.from, now)
	c.Normal = normal
	return c, attempts, found, err
}

// Write access to the database is not enough to make a code valid for another contact:
// its key is sealed for its place.
func TestMovedCode(t *testing.T) {
	s := open(t, nil)
	other := "79261111111"
	for _, v := range []string{phone, other} {
		s.add(t, ivan, contact.Phone, v)
	}
	wants(t, s.RequireConfirmation(t.Context(), operator, ivan, contact.Phone, phone), "")
	wants(t, s.RequireConfirmation(t.Context(), operator, ivan, contact.Phone, other), "")
	codes, err := contact.NewCodes(contact.DefaultSettings().Codes, movedCodes{store.Contacts{DB: s.db}, phone}, s.ring, func() time.Time { return s.now }, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	wants(t, codes.Spend(t.Context(), ivan, "contact", contact.Phone, other, s.orders[0].Data["Code"]), fault.InvalidCode)
	wants(t, codes.Spend(t.Context(), ivan, "contact", contact.Phone, phone, s.orders[0].Data["Code"]), "")
}

// Codes in the database are useless to its readers.
func TestCodesAtRest(t *testing.T) {
	s := open(t, nil)
	for n := range 30 {
		value := fmt.Sprintf("7000000%04d", n)
		s.add(t, ivan, contact.Phone, value)
		wants(t, s.RequireConfirmation(t.Context(), operator, ivan, contact.Phone, value), "")
	}
	for _, name := range []string{s.file, s.file + "-wal"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range s.orders {
			if code := o.Data["Code"]; !strings.Contains("0000000", code) && bytes.Contains(data, []byte(code)) {
				t.Errorf("%s holds the code %s", filepath.Base(name), code)
			}
		}
	}
}

// Of many concurrent submissions of the right code one is accepted. Concurrent guesses
// share the limit of attempts.
func TestCodeRace(t *testing.T) {
	s := open(t, nil)
	s.add(t, ivan, contact.Phone, phone)
	submit := func(codes ...string) (accepted, judged int) {
		var mu sync.Mutex
		var done sync.WaitGroup
		for _, code := range codes {
			done.Go(func() {
				_, err := s.SubmitConfirmation(context.Background(), operator, ivan, contact.Phone, phone, code)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					accepted, judged = accepted+1, judged+1
				case fault.Is(err, fault.InvalidCode):
					judged++
				case !fault.Is(err, fault.MaxAttempts):
					t.Error(err)
				}
			})
		}
		done.Wait()
		return accepted, judged
	}
	for range 10 {
		wants(t, s.RequireConfirmation(t.Context(), operator, ivan, contact.Phone, phone), "")
		code := s.code(t)
		if accepted, _ := submit(code, code, code, code, code, code, code, code); accepted != 1 {
			t.Fatalf("accepted %d times, want once", accepted)
		}
		s.now = s.now.Add(time.Minute)
		wants(t, s.RequireConfirmation(t.Context(), operator, ivan, contact.Phone, phone), "")
		bad := wrong(s.code(t))
		if accepted, judged := submit(bad, bad, bad, bad, bad, bad, bad, bad, bad, bad, bad, bad); accepted != 0 || judged != 5 {
			t.Fatalf("%d accepted, %d judged, want 0 and 5", accepted, judged)
		}
		s.now = s.now.Add(time.Minute)
	}
}

// A code that could not be sent leaves nothing behind, so that another can be requested
// at once.
func TestCodeNotSent(t *testing.T) {
	s := open(t, nil)
	s.add(t, ivan, contact.Phone, phone)
	s.refuse = fault.New(fault.WrongOperation, "no SMS")
	wants(t, s.RequireConfirmation(t.Context(), operator, ivan, contact.Phone, phone), fault.WrongOperation)
	s.refuse = nil
	wants(t, s.RequireConfirmation(t.Context(), operator, ivan, contact.Phone, phone), "")
}

// Every digit is as likely as any other.
func TestCodeDistribution(t *testing.T) {
	s := open(t, func(s *contact.Settings) { s.Codes.Digits, s.Codes.Resend = 12, 0 })
	var count [10]int
	const codes = 400
	for range codes {
		code, _, err := s.Codes().Issue(t.Context(), ivan, "test", contact.Phone, phone)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range code {
			count[c-'0']++
		}
	}
	// Chi-squared with nine degrees of freedom: one run in 100,000 exceeds 40.
	expected, sum := float64(codes*12)/10, 0.0
	for _, n := range count {
		sum += (float64(n) - expected) * (float64(n) - expected) / expected
	}
	if sum > 40 {
		t.Errorf("digits were drawn %v times, chi-squared %f", count, sum)
	}
}
