// SPDX-License-Identifier: Apache-2.0

package signin_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/qr"
	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/password"
	"tamga/internal/domain/session"
	"tamga/internal/domain/signin"
	tokens "tamga/internal/domain/token"
	"tamga/internal/domain/user"
	"tamga/internal/domain/vault"
)

const (
	resource = "urn:cryptopro:dss:signserver:signserver"
	secret   = "correct horse"
)

var client = signin.Client{ID: "tamga-dev", Public: true, PasswordGrant: true}

// Names to embed types by.
type (
	oathService   = oath.Service
	tokenService  = tokens.Service
	tokenSettings = tokens.Settings
)

// services are the two services that sign users in.
type services struct {
	*signin.Service
	*tokenService
}

// config are the settings of services.
type config struct {
	signin.Settings
	tokenSettings
}

// deps are what services have besides the bench.
type deps struct {
	Directories []signin.Directory
	Keys        []tokens.Key
	LoadKeys    func(ctx context.Context) ([]tokens.Key, error)
	Policies    tokens.Policies
	Providers   []signin.Provider
	Steps       *confirm.Service // nil: nothing is confirmed
}

// bench is a service on a real database with a clock to move.
type bench struct {
	services
	*oathService
	users *user.Service
	db    *store.DB
	keys  []tokens.Key
	clock *clock
	demo  user.User

	sessions *session.Service

	book     *contact.Book
	messages *messages
	ring     *vault.Ring
	last     string // refresh token of a test
}

// messages keeps what it was told and prints plainly; it may fail.
type messages struct {
	channels []notify.Channel
	mu       sync.Mutex
	orders   []notify.Direct
	events   []notify.Event
	err      error
}

func (m *messages) Available() []notify.Channel { return m.channels }

// Call implements confirm.Messages: no confirmation of a sign-in has a callback here.
func (m *messages) Call(context.Context, notify.Call) error {
	return errors.New("a sign-in has no callback")
}

func (m *messages) Order(_ context.Context, d notify.Direct) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.orders = append(m.orders, d)
	return m.err
}

func (m *messages) Emit(_ context.Context, e notify.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, e)
	return nil
}

func (m *messages) Print(_ context.Context, format signin.PrintFormat, f signin.PasswordForm) (signin.PrintedForm, error) {
	return signin.PrintedForm{Name: "password." + string(format), ContentType: "text/plain", Content: fmt.Append(nil, f.Login, "|", f.DisplayName, "|", f.Password)}, m.err
}

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newKey(t testing.TB, id string) tokens.Key {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return tokens.Key{ID: id, Signer: k}
}

func settings() config {
	s := config{signin.DefaultSettings(), tokens.DefaultSettings()}
	s.Issuer = "http://127.0.0.1/STS"
	s.Resource = resource
	s.Aliases = []string{"https://host/SignServer/rest/api/certificates"}
	return s
}

func (b *bench) service(t testing.TB, s config, keys ...tokens.Key) services {
	t.Helper()
	return b.serviceWith(t, s, deps{Keys: keys})
}

// serviceWith is a service of what d has and the rest of the bench.
func (b *bench) serviceWith(t testing.TB, s config, d deps) services {
	t.Helper()
	passwords, err := password.New(password.Cost{MemoryKiB: 64, Passes: 1, Lanes: 1}, 1024, password.DefaultLimits(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	db := store.Tokens{DB: b.db}
	made, err := tokens.New(s.tokenSettings, tokens.Deps{
		Store: db, Keys: d.Keys, LoadKeys: d.LoadKeys, Policies: d.Policies, Now: b.clock.Now, Rand: rand.Reader,
	})
	if err != nil {
		t.Fatal(err)
	}
	var steps signin.Confirmations
	var cancels signin.Canceller = storetest.Unconfirmed{}
	if d.Steps != nil {
		steps, cancels = d.Steps, d.Steps
	}
	svc, err := signin.New(s.Settings, signin.Deps{
		Store: db, Methods: db, Codes: db, Visits: db, Sessions: b.sessions, Steps: steps, Cancels: cancels, Tokens: made, Passwords: passwords, Providers: d.Providers, Directories: d.Directories, Reach: b.users, Contacts: b.book,
		Messages: b.messages, Printer: b.messages, Vault: b.ring, Oath: b.oathService, Passkeys: aPasskey{}, Now: b.clock.Now, Rand: rand.Reader,
	})
	if err != nil {
		t.Fatal(err)
	}
	return services{svc, made}
}

// oathWith is a service of one-time password tokens over the bench.
func (b *bench) oathWith(t testing.TB, s oath.Settings) *oath.Service {
	t.Helper()
	svc, err := oath.New(s, oath.Deps{
		Store: store.Tokens{DB: b.db}, Sessions: b.sessions, Confirmations: storetest.Unconfirmed{}, Reach: b.users, Events: b.messages,
		Vault: b.ring, Paint: qr.GIF, Now: b.clock.Now, Rand: rand.Reader,
	})
	if err != nil {
		t.Fatal(err)
	}
	return svc
}

func newBench(t testing.TB) *bench { return newBenchOn(t, storetest.SQLite(t)) }

func newBenchOn(t testing.TB, db *store.DB) *bench {
	t.Helper()
	b := &bench{
		db:       db,
		keys:     []tokens.Key{newKey(t, "second"), newKey(t, "first")},
		clock:    &clock{now: time.Date(2026, 11, 21, 12, 0, 0, 900_000_000, time.UTC)},
		messages: &messages{channels: []notify.Channel{notify.Email, notify.SMS}},
	}
	naming, err := user.NewNaming(user.DefaultComponents(), false)
	if err != nil {
		t.Fatal(err)
	}
	b.ring, err = vault.NewRing("k", map[string][]byte{"k": make([]byte, 32)}, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	users, contacts := store.Users{DB: b.db}, store.Contacts{DB: b.db}
	b.sessions = session.New(store.Tokens{DB: b.db})
	b.users = &user.Service{
		Store: users, GroupStore: users, LoginStore: users, NameStore: users, SearchStore: users,
		Sessions: b.sessions, Confirmations: storetest.Unconfirmed{}, Events: b.messages, Naming: naming, LocalIssuer: "realsts",
		Now: b.clock.Now, Rand: rand.Reader,
	}
	b.oathService = b.oathWith(t, oath.DefaultSettings())
	b.book, err = contact.New(contact.DefaultSettings(), contact.Deps{
		Store: contacts, Codes: contacts, Reach: b.users, Methods: b.sessions, Confirmations: storetest.Unconfirmed{}, Notices: b.messages, Vault: b.ring, Now: b.clock.Now, Rand: rand.Reader,
	})
	if err != nil {
		t.Fatal(err)
	}
	b.users.Contacts = b.book
	b.services = b.service(t, settings(), b.keys...)
	if _, err := b.users.AddGroup(t.Context(), "Default", ""); err != nil {
		t.Fatal(err)
	}
	if b.demo, err = b.users.Add(t.Context(), user.Account{Login: "Demo", Group: "Default"}); err != nil {
		t.Fatal(err)
	}
	if err := b.SetPassword(t.Context(), b.demo.ID, secret); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) grant(ctx context.Context, login, secret string) (tokens.Token, error) {
	return b.PasswordGrant(ctx, client, login, secret, resource, "")
}

func (b *bench) token(t testing.TB) string {
	t.Helper()
	token, err := b.grant(t.Context(), "demo", secret)
	if err != nil {
		t.Fatal(err)
	}
	return token.AccessToken
}

// code is that of a GrantError, "" for success.
func code(t testing.TB, err error) string {
	t.Helper()
	var g *tokens.GrantError
	if err != nil && !errors.As(err, &g) {
		t.Fatalf("error %v, want a GrantError", err)
	}
	if g == nil {
		return ""
	}
	return g.Code
}

func TestPasswordGrant(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		name                             string
		client                           signin.Client
		login, password, resource, scope string
		wantCode, wantScope              string
	}{
		{name: "plain", login: "Demo", password: secret, resource: resource},
		{name: "login in other case", login: "DEMO", password: secret, resource: resource},
		{name: "resource in other case", login: "demo", password: secret, resource: "urn:cryptopro:dss:SIGNSERVER:SignServer"},
		{name: "resource by an alias", login: "demo", password: secret, resource: "https://host/signserver/rest/api/Certificates"},
		{name: "scope", login: "demo", password: secret, resource: resource, scope: "dss", wantScope: "dss"},
		{name: "scope with what is not told", login: "demo", password: secret, resource: resource, scope: "dss email  dss", wantScope: "dss"},
		{name: "unknown scope", login: "demo", password: secret, resource: resource, scope: "dss admin", wantCode: tokens.InvalidScope},
		{name: "no resource", login: "demo", password: secret, wantCode: tokens.InvalidRequest},
		{name: "unknown resource", login: "demo", password: secret, resource: "urn:other", wantCode: tokens.InvalidRequest},
		{name: "no login", password: secret, resource: resource, wantCode: tokens.InvalidRequest},
		{name: "no password", login: "demo", resource: resource, wantCode: tokens.InvalidGrant},
		{name: "wrong password", login: "demo", password: "Correct horse", resource: resource, wantCode: tokens.InvalidGrant},
		{name: "endless password", login: "demo", password: strings.Repeat("x", 1<<20), resource: resource, wantCode: tokens.InvalidGrant},
		{name: "unknown login", login: "unknown", password: secret, resource: resource, wantCode: tokens.InvalidGrant},
		{name: "hostile login", login: "\x00\xff", password: secret, resource: resource, wantCode: tokens.InvalidGrant},
		{name: "endless login", login: strings.Repeat("x", 1<<20), password: secret, resource: resource, wantCode: tokens.InvalidGrant},
		{name: "client without the grant", client: signin.Client{ID: "c", Public: true}, login: "demo", password: secret, resource: resource, wantCode: tokens.UnauthorizedClient},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.client.ID == "" {
				c.client = client
			}
			token, err := b.PasswordGrant(t.Context(), c.client, c.login, c.password, c.resource, c.scope)
			if got := code(t, err); got != c.wantCode {
				t.Fatalf("error %v, want code %q", err, c.wantCode)
			}
			if c.wantCode != "" {
				if token != (tokens.Token{}) {
					t.Errorf("a refusal came with %+v", token)
				}
				return
			}
			if token.Scope != c.wantScope || token.ExpiresIn != 300*time.Second || token.RefreshToken != "" || token.UserID != b.demo.ID {
				t.Errorf("token %+v", token)
			}
			who, err := b.Authenticate(t.Context(), token.AccessToken)
			if err != nil {
				t.Fatal(err)
			}
			want := audit.Principal{UserID: b.demo.ID, Login: "Demo", Group: "Default", TokenID: who.TokenID, ClientID: client.ID, Method: "password"}
			if d := cmp.Diff(want, who); d != "" || who.TokenID == "" {
				t.Error(d)
			}
		})
	}
}

func TestOperatorPrincipal(t *testing.T) {
	b := newBench(t)
	op, err := b.users.Add(t.Context(), user.Account{Login: "operator", Operator: true, Groups: []string{"Default"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.SetPassword(t.Context(), op.ID, secret); err != nil {
		t.Fatal(err)
	}
	token, err := b.grant(t.Context(), "operator", secret)
	if err != nil {
		t.Fatal(err)
	}
	who, err := b.Authenticate(t.Context(), token.AccessToken)
	if err != nil {
		t.Fatal(err)
	}
	if !who.Operator {
		t.Errorf("principal %+v, want an operator", who)
	}
}

// What distinguishes an unknown login, a wrong password, a locked user and a
// locked-out login must not show.
func TestRefusalsLookAlike(t *testing.T) {
	b := newBench(t)
	_, unknown := b.grant(t.Context(), "unknown", secret)
	_, wrong := b.grant(t.Context(), "demo", "wrong")
	if err := b.users.Lock(t.Context(), b.demo.ID); err != nil {
		t.Fatal(err)
	}
	_, locked := b.grant(t.Context(), "demo", secret)
	if err := b.users.Unlock(t.Context(), b.demo.ID); err != nil {
		t.Fatal(err)
	}
	var lockedOut error
	for range 10 {
		_, lockedOut = b.grant(t.Context(), "demo", "wrong")
	}
	_, correctWhileLockedOut := b.grant(t.Context(), "demo", secret)
	for name, err := range map[string]error{"wrong": wrong, "locked": locked, "locked out": lockedOut, "correct while locked out": correctWhileLockedOut} {
		if d := cmp.Diff(unknown, err); d != "" || err == nil {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestLockOut(t *testing.T) {
	b := newBench(t)
	try := func(secret string) string {
		t.Helper()
		_, err := b.grant(t.Context(), "demo", secret)
		return code(t, err)
	}
	for range 9 {
		try("wrong")
	}
	if got := try(secret); got != "" {
		t.Fatalf("the tenth attempt, with the correct password: %s", got)
	}
	if got := try(secret); got != "" {
		t.Fatalf("right after that the correct password again: %s", got)
	}
	for range 10 { // the correct one forgot the nine
		try("wrong")
	}
	if got := try(secret); got != tokens.InvalidGrant {
		t.Errorf("after ten wrong ones the correct password: %q, want %s", got, tokens.InvalidGrant)
	}
	b.clock.add(15*time.Minute - time.Millisecond)
	if got := try(secret); got != tokens.InvalidGrant {
		t.Errorf("at the end of the lock-out: %q, want %s", got, tokens.InvalidGrant)
	}
	b.clock.add(time.Millisecond)
	if got := try(secret); got != "" {
		t.Errorf("after the lock-out: %s", got)
	}
	// A lock-out of one login does not touch another, nor one that is not there.
	for range 11 {
		if _, err := b.grant(t.Context(), "unknown", "wrong"); code(t, err) != tokens.InvalidGrant {
			t.Error(err)
		}
	}
	if got := try(secret); got != "" {
		t.Errorf("after the lock-out of another login: %s", got)
	}
}

// The correct password of a locked user has no effect. It does not even delete the count of
// wrong ones.
func TestLockedUserKeepsTheCount(t *testing.T) {
	b := newBench(t)
	if err := b.users.Lock(t.Context(), b.demo.ID); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		guess := "wrong"
		if i == 5 {
			guess = secret
		}
		if _, err := b.grant(t.Context(), "demo", guess); code(t, err) != tokens.InvalidGrant {
			t.Error(err)
		}
	}
	// Unlocked behind the back of the service: an operator who unlocks also forgives.
	if err := (store.Users{DB: b.db}).SetLock(t.Context(), b.demo.ID, false, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.grant(t.Context(), "demo", secret); code(t, err) != tokens.InvalidGrant {
		t.Errorf("after ten refused attempts: %v, want a lock-out", err)
	}
	if err := b.users.Unlock(t.Context(), b.demo.ID); err != nil {
		t.Fatal(err)
	}
	b.token(t)
}

// Letter case must not give a guesser more attempts.
func TestLockOutSharesOneBudget(t *testing.T) {
	b := newBench(t)
	for i := range 10 {
		login := []string{"demo", "DEMO", "Demo", "ｄｅｍｏ"}[i%4]
		if _, err := b.grant(t.Context(), login, "wrong"); code(t, err) != tokens.InvalidGrant {
			t.Error(err)
		}
	}
	if _, err := b.grant(t.Context(), "demo", secret); code(t, err) != tokens.InvalidGrant {
		t.Errorf("the correct password: %v, want a refusal", err)
	}
}

func TestLockOutUnderParallelGuesses(t *testing.T) {
	b := newBench(t)
	const guesses = 60
	var done sync.WaitGroup
	granted := make(chan int, guesses)
	for i := range guesses {
		done.Go(func() {
			// The correct guess is in the middle: a caller who is not among the first ten
			// must not learn that it is correct.
			guess := fmt.Sprint("wrong", i)
			if i == guesses/2 {
				guess = secret
			}
			if _, err := b.grant(t.Context(), "demo", guess); err == nil {
				granted <- i
			}
		})
	}
	done.Wait()
	close(granted)
	for i := range granted {
		if i != guesses/2 {
			t.Errorf("guess %d was granted", i)
		}
	}
	// However they met, after that many wrong ones the login is locked out,
	// unless the correct one forgot some of them; ten more settle it.
	for range 10 {
		if _, err := b.grant(t.Context(), "demo", "wrong"); err == nil {
			t.Error("a wrong password was granted")
		}
	}
	if _, err := b.grant(t.Context(), "demo", secret); err == nil {
		t.Error("the login is not locked out")
	}
}

func TestSetPassword(t *testing.T) {
	b := newBench(t)
	before := b.token(t)
	for _, bad := range []string{"", "1234567", strings.Repeat("x", 257), "12345678\xff"} {
		if err := b.SetPassword(t.Context(), b.demo.ID, bad); !fault.Is(err, fault.InvalidParameters) {
			t.Errorf("%q: %v, want %s", bad, err, fault.InvalidParameters)
		}
	}
	if _, err := b.Authenticate(t.Context(), before); err != nil {
		t.Errorf("after refused changes: %v", err)
	}
	if err := b.SetPassword(t.Context(), "unknown", "new password"); !fault.Is(err, fault.UserNotFound) {
		t.Errorf("unknown user: %v, want %s", err, fault.UserNotFound)
	}
	if err := b.SetPassword(t.Context(), b.demo.ID, "new password"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Authenticate(t.Context(), before); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("a token of the old password: %v, want %s", err, fault.Unauthorized)
	}
	if _, err := b.grant(t.Context(), "demo", secret); code(t, err) != tokens.InvalidGrant {
		t.Errorf("the old password: %v", err)
	}
	if _, err := b.grant(t.Context(), "demo", "new password"); err != nil {
		t.Errorf("the new password: %v", err)
	}
}

// A stored password that the service cannot have stored is an error of the service,
// not a wrong password, and does no work.
func TestHostileStoredPassword(t *testing.T) {
	b := newBench(t)
	if err := (store.Tokens{DB: b.db}).SetPassword(t.Context(), b.demo.ID, "$argon2id$v=19$m=4294967295,t=1,p=1$c29tZXNhbHQ$c29tZXNhbHRzb21lc2FsdA"); err != nil {
		t.Fatal(err)
	}
	_, err := b.grant(t.Context(), "demo", secret)
	var g *tokens.GrantError
	if err == nil || errors.As(err, &g) || strings.Contains(err.Error(), "4294967295") {
		t.Errorf("error %v, want an internal one that does not quote the row", err)
	}
}

func TestTokensEnd(t *testing.T) {
	b := newBench(t)
	refused := func(name, token string) {
		t.Helper()
		if _, err := b.Authenticate(t.Context(), token); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s: %v, want %s", name, err, fault.Unauthorized)
		}
	}
	accepted := func(name, token string) {
		t.Helper()
		if _, err := b.Authenticate(t.Context(), token); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	token := b.token(t)
	accepted("fresh", token)
	if err := b.sessions.EndAll(t.Context(), "another user"); err != nil {
		t.Fatal(err)
	}
	accepted("after another user's were ended", token)
	if err := b.sessions.EndAll(t.Context(), b.demo.ID); err != nil {
		t.Fatal(err)
	}
	refused("ended", token)

	token = b.token(t)
	if err := b.users.Lock(t.Context(), b.demo.ID); err != nil {
		t.Fatal(err)
	}
	refused("of a locked user", token)
	if err := b.users.Unlock(t.Context(), b.demo.ID); err != nil {
		t.Fatal(err)
	}
	refused("from before the lock", token)

	// The lock alone is enough, should it ever come without the ending.
	token = b.token(t)
	if err := (store.Users{DB: b.db}).SetLock(t.Context(), b.demo.ID, true, time.Time{}); err != nil {
		t.Fatal(err)
	}
	refused("of a user locked in the database", token)
	if err := (store.Users{DB: b.db}).SetLock(t.Context(), b.demo.ID, false, time.Time{}); err != nil {
		t.Fatal(err)
	}
	accepted("of that user unlocked", token)

	// To the second: the token was made at 12:00:00.9 and says 12:05:00.
	b.clock.add(299*time.Second + 99*time.Millisecond)
	accepted("in its last moment", token)
	b.clock.add(time.Millisecond)
	refused("expired", token)
	if err := errors.Join(b.Service.Sweep(t.Context()), b.tokenService.Sweep(t.Context())); err != nil {
		t.Fatal(err)
	}
	b.clock.add(-time.Minute)
	refused("swept, with the clock set back", token)
}

func BenchmarkAuthenticate(b *testing.B) {
	bench := newBench(b)
	token := bench.token(b)
	for name, authenticate := range map[string]func(ctx context.Context, bearer string) (audit.Principal, error){
		"access": bench.Authenticate, "or confirmed": bench.AuthenticateConfirmed,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := authenticate(context.Background(), token); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// aPasskey is a passkey of everybody.
type aPasskey struct{}

func (aPasskey) Has(context.Context, string) (bool, error) { return true, nil }
