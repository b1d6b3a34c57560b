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
