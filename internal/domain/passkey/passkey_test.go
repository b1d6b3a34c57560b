// SPDX-License-Identifier: Apache-2.0

package passkey_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/adapter/webauthn"
	"tamga/internal/adapter/webauthntest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/passkey"
	"tamga/internal/domain/reach"
	"tamga/internal/domain/user"
	"tamga/internal/domain/vault"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const (
	ivanID, annaID = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"
	origin, domain = "https://sign.example.org", "sign.example.org"
)

var (
	ivan = audit.Principal{UserID: ivanID, Login: "ivan", TokenID: "session of ivan"}
	anna = audit.Principal{UserID: annaID, Login: "anna", TokenID: "session of anna"}
)

// world is the service of people over a database.
type world struct {
	*passkey.Service
	t       *testing.T
	db      *store.DB
	deps    passkey.Deps
	now     atomic.Pointer[time.Time]
	factors []notify.Factor
	ended   []string // "sessions" and reasons of cancelled confirmations
}

func (w *world) clock() time.Time { return *w.now.Load() }

func (w *world) wait(d time.Duration) {
	later := w.clock().Add(d)
	w.now.Store(&later)
}

// Emit implements reach.Events.
func (w *world) Emit(_ context.Context, e notify.Event) error {
	if e.Factor != "" {
		w.factors = append(w.factors, e.Factor)
	}
	return nil
}

// MethodChanged implements passkey.Sessions.
func (w *world) MethodChanged(_ context.Context, userID, method string) error {
	w.ended = append(w.ended, "sessions")
	return nil
}

// CancelAll implements passkey.Confirmations.
func (w *world) CancelAll(_ context.Context, _ audit.Principal, _, reason string) error {
	w.ended = append(w.ended, reason)
	return nil
}

// each runs a test on both databases.
func each(t *testing.T, test func(w *world)) {
	for name, url := range map[string]func(t *testing.T) string{
		"SQLite":     func(t *testing.T) string { return storetest.SQLiteFile(t, filepath.Join(t.TempDir(), "tamga.db")) },
		"PostgreSQL": func(t *testing.T) string { return storetest.PostgreSQL(t).Database(t) },
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{t: t, db: storetest.Open(t, url(t))}
			begin := start
			w.now.Store(&begin)
			users := store.Users{DB: w.db}
			w.must(users.AddGroup(t.Context(), user.Group{Name: "Default"}))
			for id, login := range map[string]string{ivanID: "ivan", annaID: "anna"} {
				w.must(users.AddUser(t.Context(), user.User{ID: id, Login: login, Group: "Default", CreatedAt: start}, login))
			}
			ring, err := vault.NewRing("k", map[string][]byte{"k": bytes.Repeat([]byte{7}, vault.MasterKeySize)}, rand.Reader)
			w.must(err)
			ceremonies, err := webauthn.New(origin+"/SignServer", "Tamga")
			w.must(err)
			w.deps = passkey.Deps{
				Store: store.Passkeys{DB: w.db}, Ceremonies: ceremonies, Sessions: w, Confirmations: w, Reach: reach.Self{}, Events: w,
				Vault: ring, Now: w.clock, Rand: rand.Reader,
			}
			w.Service = passkey.New(passkey.Settings{Most: 3}, w.deps)
			test(w)
		})
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) refused(code string, err error) {
	w.t.Helper()
	if !fault.Is(err, code) {
		w.t.Errorf("%v, want %s", err, code)
	}
}

// register creates a passkey of a person.
func (w *world) register(who audit.Principal, name string) *webauthntest.Passkey {
	w.t.Helper()
	key := webauthntest.New(w.t, origin, domain)
	options, err := w.Begin(w.t.Context(), who, name)
	w.must(err)
	w.must(w.Finish(w.t.Context(), who, key.Create(options)))
	return key
}

func (w *world) names(who audit.Principal) string {
	w.t.Helper()
	list, err := w.List(w.t.Context(), who, who.UserID)
	w.must(err)
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = p.Name
	}
	return strings.Join(names, ", ")
}

func TestPasskeys(t *testing.T) {
	each(t, func(w *world) {
		ctx := w.t.Context()
		key := w.register(ivan, " Ключ на столе ")
		w.wait(time.Second)
		w.register(ivan, "phone")
		if names := w.names(ivan); names != "Ключ на столе, phone" {
			w.t.Error(names)
		}
		if len(w.factors) != 2 || w.factors[0] != notify.FactorPasskey || strings.Join(w.ended, ";") != "the passkeys were changed;the passkeys were changed" {
			w.t.Errorf("told %q, ended %q", w.factors, w.ended)
		}
		list, err := w.List(ctx, ivan, ivanID)
		w.must(err)
		id := list[0].ID
		w.must(w.Rename(ctx, ivan, ivanID, id, "table"))

		challenge := []byte("a challenge of thirty-two bytes.")
		options, err := w.Request(ctx, ivanID, challenge)
		w.must(err)
		answer := key.Get(options)
		w.must(w.Check(ctx, ivanID, challenge, answer))
		if list, err = w.List(ctx, ivan, ivanID); err != nil || list[0].Name != "table" || !list[0].UsedAt.Equal(w.clock()) || !list[1].UsedAt.IsZero() {
			w.t.Errorf("%+v, %v", list, err)
		}
		w.refused(fault.InvalidCode, w.Check(ctx, ivanID, challenge, answer)) // the counter did not move on

		// Other users, and operators who act as the user.
		w.refused(fault.KeyNotFound, w.Remove(ctx, anna, annaID, id))
		w.refused(fault.UserNotFound, w.Remove(ctx, anna, ivanID, id))
		w.refused(fault.KeyNotFound, w.Rename(ctx, anna, annaID, id, "mine"))
		acting := ivan
		acting.Actor = "operator"
		_, err = w.Begin(ctx, acting, "mine")
		w.refused(fault.UserNotFound, err)
		_, err = w.List(ctx, acting, ivanID)
		w.refused(fault.UserNotFound, err)

		w.ended = nil
		w.must(w.Remove(ctx, ivan, ivanID, id))
		w.refused(fault.InvalidCode, w.Check(ctx, ivanID, challenge, key.Get(options)))
		w.must(w.Remove(ctx, ivan, ivanID, list[1].ID))
		if has, err := w.Has(ctx, ivanID); has || err != nil {
			w.t.Errorf("has %t, %v", has, err)
		}
		if got := strings.Join(w.ended, ";"); got != "the passkeys were changed;sessions;the passkeys were changed" {
			w.t.Error(got)
		}
	})
}

// TestRegistrations refuses what is not the answer to the last Begin of the session.
func TestRegistrations(t *testing.T) {
	each(t, func(w *world) {
		ctx := w.t.Context()
		for _, name := range []string{"", "  ", strings.Repeat("я", 61), "a\nb", "a\xff"} {
			_, err := w.Begin(ctx, ivan, name)
			w.refused(fault.InvalidParameters, err)
		}
		begin := func(who audit.Principal) []byte {
			w.t.Helper()
			options, err := w.Begin(ctx, who, "key")
			w.must(err)
			return options
		}
		fresh := func() *webauthntest.Passkey { return webauthntest.New(w.t, origin, domain) }
		w.refused(fault.InvalidTransaction, w.Finish(ctx, ivan, []byte("{}"))) // never begun
		old := begin(ivan)
		options := begin(ivan)
		for name, answer := range map[string][]byte{
			"empty": nil, "no JSON": []byte("x"), "nothing": []byte("{}"), "deep": []byte(strings.Repeat(`{"response":`, 5000)), "too long": make([]byte, passkey.MaxAnswer+1),
			"of the one before":    fresh().Create(old),
			"of another page":      webauthntest.New(w.t, "https://evil.example.org", domain).Create(options),
			"of another domain":    webauthntest.New(w.t, origin, "example.org").Create(options),
			"without verification": func() []byte { k := fresh(); k.Flags = webauthntest.Present; return k.Create(options) }(),
			"without presence":     func() []byte { k := fresh(); k.Flags = webauthntest.Verified; return k.Create(options) }(),
			"an assertion":         fresh().Get(options),
		} {
			if err := w.Finish(ctx, ivan, answer); !fault.Is(err, fault.InvalidParameters) {
				w.t.Errorf("%s: %v", name, err)
			}
		}
		other := ivan
		other.TokenID = "another session"
		w.refused(fault.InvalidTransaction, w.Finish(ctx, other, fresh().Create(options)))
		w.refused(fault.InvalidTransaction, w.Finish(ctx, anna, fresh().Create(options)))
		key := fresh()
		answer := key.Create(options)
		w.must(w.Finish(ctx, ivan, answer))
		w.refused(fault.InvalidTransaction, w.Finish(ctx, ivan, answer))
		w.refused(fault.InvalidParameters, w.Finish(ctx, anna, key.Create(begin(anna)))) // registered already
		late := fresh().Create(begin(anna))
		w.wait(5 * time.Minute)
		w.refused(fault.InvalidTransaction, w.Finish(ctx, anna, late))
		w.must(w.Sweep(ctx))
		w.register(ivan, "2")
		last := begin(ivan)
		w.register(ivan, "3")
		_, err := w.Begin(ctx, ivan, "4")
		w.refused(fault.WrongOperation, err)
		w.refused(fault.InvalidTransaction, w.Finish(ctx, ivan, fresh().Create(last)))
	})
}

// TestAnswers refuses what another one than the user's passkey answered to the challenge.
func TestAnswers(t *testing.T) {
	each(t, func(w *world) {
		ctx := w.t.Context()
		key, hers := w.register(ivan, "key"), w.register(anna, "hers")
		challenge := []byte("a challenge of thirty-two bytes.")
		options, err := w.Request(ctx, ivanID, challenge)
		w.must(err)
		if !strings.Contains(string(options), `"userVerification":"required"`) || !strings.Contains(string(options), `"rpId":"`+domain+`"`) {
			w.t.Errorf("options %s", options)
		}
		other, err := w.Request(ctx, ivanID, []byte("another one of thirty-two bytes."))
		w.must(err)
		with := func(change func(k *webauthntest.Passkey)) []byte {
			changed := *key
			change(&changed)
			key.Counter = changed.Counter
			return changed.Get(options)
		}
		hers.Counter = 100
		pretended := *hers
		pretended.ID, pretended.Handle = key.ID, key.Handle
		for name, answer := range map[string][]byte{
			"empty": nil, "no JSON": []byte("x"), "nothing": []byte("{}"), "too long": make([]byte, passkey.MaxAnswer+1),
			"of another challenge": key.Get(other),
			"of another user":      hers.Get(options),
			"by another key":       pretended.Get(options),
			"of another page":      with(func(k *webauthntest.Passkey) { k.Origin = "https://evil.example.org" }),
			"of a longer host":     with(func(k *webauthntest.Passkey) { k.Origin = origin + ".evil.example.org" }),
			"of another port":      with(func(k *webauthntest.Passkey) { k.Origin = origin + ":8443" }),
			"without TLS":          with(func(k *webauthntest.Passkey) { k.Origin = "http://" + domain }),
			"of another domain":    with(func(k *webauthntest.Passkey) { k.RPID = "example.org" }),
			"without verification": with(func(k *webauthntest.Passkey) { k.Flags = webauthntest.Present }),
			"without presence":     with(func(k *webauthntest.Passkey) { k.Flags = webauthntest.Verified }),
			"of another handle":    with(func(k *webauthntest.Passkey) { k.Handle = []byte(annaID) }),
			"a registration":       webauthntest.New(w.t, origin, domain).Create(options),
			"with a counter of 0":  with(func(k *webauthntest.Passkey) { k.Counter, k.Stuck = 0, true }),
		} {
			if err := w.Check(ctx, ivanID, challenge, answer); !fault.Is(err, fault.InvalidCode) {
				w.t.Errorf("%s: %v", name, err)
			}
		}
		key.Counter = 50
		w.must(w.Check(ctx, ivanID, challenge, key.Get(options)))
		key.Counter = 40
		w.refused(fault.InvalidCode, w.Check(ctx, ivanID, challenge, key.Get(options)))

		// Of all that answer at once, one is accepted.
		key.Counter = 60
		answer := key.Get(options)
		var accepted atomic.Int64
		done := make(chan error)
		for range 8 {
			go func() {
				done <- w.deps.Store.Atomic(ctx, lock.User(ivanID), func(ctx context.Context) error {
					err := w.Check(ctx, ivanID, challenge, answer)
					if err == nil {
						accepted.Add(1)
					}
					return fault.Rollback(err)
				})
			}()
		}
		for range 8 {
			if err := <-done; err != nil && !fault.Is(err, fault.InvalidCode) {
				w.t.Error(err)
			}
		}
		if n := accepted.Load(); n != 1 {
			w.t.Errorf("%d answers were accepted", n)
		}
	})
}

// TestMovedPasskey is about a row that another program changed: it opens nothing.
func TestMovedPasskey(t *testing.T) {
	each(t, func(w *world) {
		ctx := w.t.Context()
		w.register(anna, "hers")
		records, err := w.deps.Store.Passkeys(ctx, annaID)
		w.must(err)
		moved := records[0]
		if _, err := w.deps.Store.DeletePasskey(ctx, annaID, moved.ID); err != nil {
			w.t.Fatal(err)
		}
		moved.UserID = ivanID
		if _, err := w.deps.Store.AddPasskey(ctx, moved); err != nil {
			w.t.Fatal(err)
		}
		if _, err := w.Request(ctx, ivanID, []byte("challenge")); err == nil {
			w.t.Error("a passkey that was moved in the database counts")
		}
		if _, is := fault.As(w.Check(ctx, ivanID, []byte("challenge"), []byte("{}"))); is {
			w.t.Error("the reason is told to the caller")
		}
	})
}
