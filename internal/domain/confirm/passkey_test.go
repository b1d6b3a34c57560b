// SPDX-License-Identifier: Apache-2.0

package confirm_test

import (
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/adapter/webauthn"
	"tamga/internal/adapter/webauthntest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/passkey"
	"tamga/internal/domain/reach"
	"tamga/internal/domain/session"
)

const (
	ourOrigin, ourDomain = "https://sign.example.org", "sign.example.org"
)

// holder is a world in which Ivan and Anna each have a passkey.
type holder struct {
	*world
	ivans, annas *webauthntest.Passkey
}

func withPasskeys(t *testing.T, db *store.DB) *holder {
	t.Helper()
	w := openOn(t, db, nil)
	w.furnish()
	ceremonies, err := webauthn.New(ourOrigin, "Tamga")
	w.must(err)
	service := passkey.New(passkey.Settings{Most: 2}, passkey.Deps{
		Store: store.Passkeys{DB: db}, Ceremonies: ceremonies, Sessions: session.New(store.Tokens{DB: db}), Confirmations: w.Service, Reach: reach.Self{}, Events: w.messages,
		Vault: w.ring, Now: w.clock, Rand: rand.Reader,
	})
	h := &holder{world: w}
	for _, who := range []struct {
		user audit.Principal
		key  **webauthntest.Passkey
	}{{audit.Principal{UserID: ivanID, Login: "ivan"}, &h.ivans}, {anna, &h.annas}} {
		*who.key = webauthntest.New(t, ourOrigin, ourDomain)
		options, err := service.Begin(t.Context(), who.user, "key")
		w.must(err)
		w.must(service.Finish(t.Context(), who.user, (*who.key).Create(options)))
	}
	settings := confirm.DefaultSettings()
	settings.Methods, settings.Language = confirm.MethodNames(), "en"
	w.deps.Passkeys = service
	w.Service, err = confirm.New(settings, w.deps)
	w.must(err)
	w.assign(passkey.Method)
	return h
}

// TestPasskeyNumber: what was begun on a page of one sign-in is approved in another one only with the number that the first
// page shows: an operation, a text and the end of a delay. Wrong numbers are attempts.
func TestPasskeyNumber(t *testing.T) {
	h, ctx := withPasskeys(t, storetest.SQLite(t)), t.Context()
	desk, phone := ivan, ivan
	desk.TokenID, phone.TokenID = "desk", "phone"
	begin := func(who audit.Principal, d confirm.Draft, titles bool) confirm.Prompt {
		t.Helper()
		r, err := h.Create(ctx, who, d)
		h.must(err)
		return h.challenge(r, confirm.Ask{Method: passkey.Method, Titles: titles})
	}
	answer := func(who audit.Principal, p confirm.Prompt, number string) confirm.Prompt {
		t.Helper()
		p, err := h.AnswerOnPage(ctx, who, p.Record.RefID, confirm.OnPage{Answer: string(h.ivans.Get(p.Request)), Number: number})
		h.must(err)
		return p
	}
	p := begin(desk, order(), true)
	number := p.Record.Number
	if len(number) != 2 || !p.Record.ShowsNumber("desk") || p.Record.AsksNumber("desk") || p.Record.ShowsNumber("phone") || !p.Record.AsksNumber("phone") {
		t.Fatalf("the number is %q", number)
	}
	other := "00"
	if number == other {
		other = "01"
	}
	for i, wrong := range []string{"", other} {
		got := answer(phone, p, wrong)
		if got.Wrong == nil || got.Wrong.Message[:10] != "the number" || got.Record.Attempts != i+1 || got.Record.State != confirm.Challenged || got.Record.Number != number {
			t.Errorf("the number %q: %v, %s, %d attempts", wrong, got.Wrong, got.Record.State, got.Record.Attempts)
		}
	}
	if _, err := h.Answer(ctx, phone, p.Record.RefID, string(h.ivans.Get(p.Request))); err != nil {
		t.Fatal(err)
	}
	if got := h.stored(p.Record.ID); got.State != confirm.Challenged || got.Attempts != 3 {
		t.Errorf("an answer without a page: %s, %d attempts", got.State, got.Attempts)
	}
	if got := answer(phone, p, number); got.Record.State != confirm.Confirmed {
		t.Errorf("the right number: %s, %v", got.Record.State, got.Wrong)
	}
	// Its own page needs none, and neither does what no page has begun.
	if got := answer(desk, begin(desk, order(), true), ""); got.Record.State != confirm.Confirmed {
		t.Errorf("on its own page: %s, %v", got.Record.State, got.Wrong)
	}
	if got := answer(phone, begin(desk, order(), false), ""); got.Record.State != confirm.Confirmed {
		t.Errorf("of an application: %s, %v", got.Record.State, got.Wrong)
	}
	if got := answer(phone, begin(ivan, order(), true), ""); got.Record.State != confirm.Confirmed {
		t.Errorf("of no sign-in: %s, %v", got.Record.State, got.Wrong)
	}
	for _, purpose := range []confirm.Purpose{confirm.ForText, confirm.ForChange} {
		d := order()
		d.Purpose = purpose
		p := begin(desk, d, true)
		if got := answer(phone, p, ""); got.Wrong == nil || got.Record.State != confirm.Challenged {
			t.Errorf("%s without a number: %s, %v", purpose, got.Record.State, got.Wrong)
		}
		if got := answer(phone, p, p.Record.Number); got.Record.State != confirm.Confirmed {
			t.Errorf("%s with the number: %s, %v", purpose, got.Record.State, got.Wrong)
		}
	}
	// The second step of a sign-in is answered on its own page.
	d := order()
	d.Purpose, d.SignIn = confirm.ForSignIn, "desk"
	if p := begin(desk, d, true); p.Record.Number != "" {
		t.Errorf("a second step has the number %q", p.Record.Number)
	}
	// The last wrong number ends the operation.
	p = begin(desk, order(), true)
	var err error
	for range confirm.DefaultSettings().Codes.Attempts {
		_, err = h.AnswerOnPage(ctx, phone, p.Record.RefID, confirm.OnPage{Answer: string(h.ivans.Get(p.Request)), Number: "x"})
	}
	if !fault.Is(err, fault.MaxAttempts) || h.stored(p.Record.ID).State != confirm.Error {
		t.Errorf("after the last attempt: %v, %s", err, h.stored(p.Record.ID).State)
	}
}

// TestPasskey confirms one record by one answer of the user's passkey, and by no other.
func TestPasskey(t *testing.T) {
	for name, db := range map[string]func(t *testing.T) *store.DB{
		"SQLite":     func(t *testing.T) *store.DB { return storetest.SQLite(t) },
		"PostgreSQL": func(t *testing.T) *store.DB { return storetest.Open(t, storetest.PostgreSQL(t).Migrated(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			h, ctx := withPasskeys(t, db(t)), t.Context()
			ask := confirm.Ask{Methods: []string{passkey.Method}}
			a, b := h.challenge(h.create(), ask), h.challenge(h.create(), ask)
			if len(a.Request) == 0 || a.Record.Method != passkey.Method {
				t.Fatalf("challenge: %+v", a)
			}
			if slices.Equal(a.Request, b.Request) {
				t.Fatal("two records of the same operation have one challenge")
			}
			wrong := func(name string, r confirm.Record, answer []byte) {
				t.Helper()
				p, err := h.Answer(ctx, ivan, r.RefID, string(answer))
				h.must(err)
				if p.Wrong == nil || p.Wrong.Code != fault.AuthenticationFailed || p.Record.State != confirm.Challenged || len(p.Request) == 0 {
					t.Errorf("%s: %+v, %v", name, p.Record.State, p.Wrong)
				}
			}
			wrong("of another record", a.Record, h.ivans.Get(b.Request))
			wrong("of another user", a.Record, h.annas.Get(a.Request))
			wrong("no answer", a.Record, []byte("123456"))
			again, err := h.Present(ctx, ivan, a.Record.ID)
			h.must(err)
			if !slices.Equal(again.Request, a.Request) {
				t.Error("the page that is loaded again has another challenge")
			}

			// Another method, and then the passkey again: the first challenge is over.
			h.assign(passkey.Method, "otpviasms")
			first := h.ivans.Get(a.Request)
			h.challenge(a.Record, confirm.Ask{Method: "otpviasms"})
			a = h.challenge(a.Record, confirm.Ask{Method: passkey.Method})
			wrong("of the challenge before", a.Record, first)

			// A repetition has the same challenge, for as long again.
			h.wait(5 * time.Minute)
			_, err = h.Answer(ctx, ivan, a.Record.RefID, string(h.ivans.Get(a.Request)))
			h.is("late", err, fault.TransactionExpired)
			repeated := h.challenge(a.Record, confirm.Ask{Method: passkey.Method})
			if !slices.Equal(repeated.Request, a.Request) {
				t.Error("a repetition has another challenge")
			}

			// Of all that answer at once, one confirms; and none of them a second time.
			answer := string(h.ivans.Get(a.Request))
			var confirmed atomic.Int64
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					if p, err := h.Answer(ctx, ivan, a.Record.RefID, answer); err == nil && p.Wrong == nil && p.Record.State == confirm.Confirmed {
						confirmed.Add(1)
					}
				})
			}
			all.Wait()
			if n := confirmed.Load(); n != 1 {
				t.Errorf("confirmed %d times", n)
			}
			_, err = h.Answer(ctx, ivan, a.Record.RefID, answer)
			h.is("a replay", err, fault.InvalidTransaction)
			b = h.challenge(b.Record, confirm.Ask{Method: passkey.Method})
			wrong("a replay for another record", b.Record, []byte(answer))
			_, err = h.Answer(ctx, anna, b.Record.RefID, string(h.annas.Get(b.Request)))
			h.is("the record of another user", err, fault.InvalidTransaction)
		})
	}
}

// TestPasskeyRemoved is about a challenge under way: it ends with the passkeys.
func TestPasskeyRemoved(t *testing.T) {
	h, ctx := withPasskeys(t, storetest.SQLite(t)), t.Context()
	p := h.challenge(h.create(), confirm.Ask{Methods: []string{passkey.Method}})
	service := h.deps.Passkeys.(*passkey.Service)
	who := audit.Principal{UserID: ivanID}
	list, err := service.List(ctx, who, ivanID)
	h.must(err)
	h.must(service.Remove(ctx, who, ivanID, list[0].ID))
	_, err = h.Answer(ctx, ivan, p.Record.RefID, string(h.ivans.Get(p.Request)))
	h.is("of a passkey that was removed", err, fault.InvalidTransaction)
	h.is("without a passkey", h.CanConfirm(ctx, ivanID), fault.MethodNotConfirmed)
}

// TestPasskeysOff refuses passkeys in an installation that has none.
func TestPasskeysOff(t *testing.T) {
	h := withPasskeys(t, storetest.SQLite(t))
	begun := h.challenge(h.create(), confirm.Ask{Methods: []string{passkey.Method}})
	for name, off := range map[string]func(d confirm.Deps, s *confirm.Settings) confirm.Deps{
		"no row in the settings": func(d confirm.Deps, s *confirm.Settings) confirm.Deps { return d },
		"no passkeys": func(d confirm.Deps, s *confirm.Settings) confirm.Deps {
			d.Passkeys, s.Methods = nil, confirm.MethodNames()
			return d
		},
	} {
		settings := confirm.DefaultSettings()
		var err error
		h.Service, err = confirm.New(settings, off(h.deps, &settings))
		h.must(err)
		h.is(name, h.CanConfirm(t.Context(), ivanID), fault.MethodNotConfirmed)
		_, err = h.Answer(t.Context(), ivan, begun.Record.RefID, string(h.ivans.Get(begun.Request)))
		h.is(name+": a challenge from before", err, fault.MethodNotConfirmed)
		p, err := h.Present(t.Context(), ivan, begun.Record.ID)
		if err != nil || p.Record.State != confirm.Challenged {
			t.Errorf("%s: %+v, %v", name, p.Record.State, err)
		}
	}
	if names := fmt.Sprint(confirm.ClientMethodNames(), confirm.DefaultSettings().Methods); names != "[mydss mobile otpviasms otpviaemail oath] [mydss mobile otpviasms otpviaemail oath]" {
		t.Errorf("by default: %s", names)
	}
}
