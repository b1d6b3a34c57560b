// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"crypto/rand"
	"regexp"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/report"
	"tamga/internal/domain/vault"
)

var ann, bob = audit.Principal{UserID: "00000000-0000-4000-8000-00000000000a"}, audit.Principal{UserID: "00000000-0000-4000-8000-00000000000b"}

const digest = "9f2c41d0a7b35e861c40f97d22e8b6a45d017c93e4fa6b1870d2c35f8ab94e61"

func service(t *testing.T) *report.Service {
	ring, err := vault.NewRing("1", map[string][]byte{"1": make([]byte, 32)}, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 28, 11, 31, 0, 0, time.UTC)
	return &report.Service{Store: store.Reports{DB: storetest.SQLite(t)}, Vault: ring, Now: func() time.Time { return now }, Rand: rand.Reader, Life: time.Hour}
}

func TestReport(t *testing.T) {
	s := service(t)
	list, err := s.Keep(t.Context(), ann, []report.New{
		{Name: "Договор.pdf", Verdict: "passed", Digest: digest, Content: []byte("one")},
		{Name: strings.Repeat("я", 300) + "\x00\xff", Verdict: "failed", Digest: strings.ToUpper(digest), Content: []byte("two")},
	})
	if err != nil {
		t.Fatal(err)
	}
	number := list[0].Number
	if !regexp.MustCompile(`^2611-[0-9A-Z]{4}-[0-9A-Z]{4}$`).MatchString(number) || number == list[1].Number {
		t.Errorf("the numbers are %s and %s", number, list[1].Number)
	}
	if n := len([]rune(list[1].Name)); n != 255 {
		t.Errorf("a name of %d characters", n)
	}
	anyone := audit.Principal{}
	for _, c := range []struct {
		who           audit.Principal
		number, check string
		found         bool
	}{
		{anyone, number, digest[:10], true},
		{anyone, number, digest, true},
		{anyone, " № " + strings.ToLower(strings.ReplaceAll(number, "-", " ")), "9F2C 41D0 A7", true},
		{anyone, number, "9f2с41d0а7", true}, // Cyrillic letters
		{ann, number, "", true},
		{bob, number, "", false},
		{anyone, number, "", false},
		{anyone, number, digest[:9], false},
		{anyone, number, "9f2c41d0a8", false},
		{anyone, list[1].Number, strings.ToUpper(digest[:10]), true},
		{anyone, "2611-0000-0000", digest, false},
		{ann, "", "", false},
		{ann, strings.Repeat("9", 5000), digest, false},
		{anyone, number, strings.Repeat("9", 5000), false},
	} {
		got, err := s.Find(t.Context(), c.who, c.number, c.check)
		if (err == nil) != c.found || err != nil && !fault.Is(err, fault.NotFound) {
			t.Errorf("%q with %q: %v", c.number, c.check, err)
		}
		if err == nil && got.Number == number && string(got.Content) != "one" {
			t.Errorf("the content is %q", got.Content)
		}
	}
	if err := s.Delete(t.Context(), bob, number); !fault.Is(err, fault.NotFound) {
		t.Errorf("another user deletes the report: %v", err)
	}
	if err := s.Delete(t.Context(), ann, number); err != nil {
		t.Error(err)
	}
	late := s.Now().Add(time.Hour)
	s.Now = func() time.Time { return late }
	if _, err := s.Find(t.Context(), ann, list[1].Number, ""); !fault.Is(err, fault.NotFound) {
		t.Errorf("a report after its end: %v", err)
	}
	if err := s.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	if left, err := s.Newest(t.Context(), ann, report.Position{}, 9); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestBounds(t *testing.T) {
	s := service(t)
	one := []report.New{{Name: "a", Digest: digest, Content: []byte("x")}}
	if _, err := s.Keep(t.Context(), audit.Principal{}, one); !fault.Is(err, fault.AccessDenied) {
		t.Errorf("a visitor stores a report: %v", err)
	}
	large := []report.New{one[0], {Name: "b", Digest: digest, Content: make([]byte, report.MostBytes)}}
	if _, err := s.Keep(t.Context(), ann, large); !fault.Is(err, fault.InvalidObjectState) {
		t.Errorf("more than the bytes of a user: %v", err)
	}
	if list, err := s.Newest(t.Context(), ann, report.Position{}, 9); err != nil || len(list) > 0 {
		t.Errorf("a part is stored: %v, %v", list, err)
	}
	// A random source that repeats itself finds no free number a second time, and the error says so.
	s.Rand = strings.NewReader(strings.Repeat("x", 8*20))
	if _, err := s.Keep(t.Context(), ann, one); err != nil {
		t.Error(err)
	}
	if _, err := s.Keep(t.Context(), ann, one); err == nil || !strings.Contains(err.Error(), "numbers are taken") {
		t.Errorf("two reports with one number: %v", err)
	}
	s.Life = 0
	if _, err := s.Keep(t.Context(), ann, one); !fault.Is(err, fault.WrongOperation) {
		t.Errorf("an installation without reports stores one: %v", err)
	}
}
