// SPDX-License-Identifier: Apache-2.0

package signin_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/signin"
	tokens "tamga/internal/domain/token"
	"tamga/internal/domain/user"
)

// stay signs demo in with a refresh token.
func (b *bench) stay(t testing.TB) tokens.Token {
	t.Helper()
	token, err := b.PasswordGrant(t.Context(), client, "demo", secret, resource, "dss offline_access")
	if err != nil || len(token.RefreshToken) != 96 || token.Scope != "dss offline_access" {
		t.Fatalf("%+v, %v", token, err)
	}
	return token
}

func (b *bench) refresh(t testing.TB, token string) (tokens.Token, error) {
	t.Helper()
	return b.RefreshGrant(t.Context(), client.ID, token, "", "")
}

func (b *bench) holds(t testing.TB, token string) bool {
	t.Helper()
	_, err := b.Authenticate(t.Context(), token)
	return err == nil
}

func TestRefreshGrant(t *testing.T) {
	b := newBench(t)
	first := b.stay(t)
	b.clock.add(10 * time.Minute)
	second, err := b.refresh(t, first.RefreshToken)
	if err != nil || second.RefreshToken == first.RefreshToken || !b.holds(t, second.AccessToken) || second.Scope != first.Scope || second.UserID != b.demo.ID {
		t.Fatalf("%+v, %v", second, err)
	}
	list, err := b.Grants(t.Context(), b.demo.ID)
	if err != nil || len(list) != 1 || list[0].ClientID != client.ID || !list[0].UsedAt.After(list[0].SignedInAt) {
		t.Errorf("grants %+v, %v", list, err)
	}
	// What is refused for its form leaves the token as it was.
	for name, c := range map[string]struct{ resource, scope, want string }{
		"another resource": {"urn:x", "", tokens.InvalidRequest},
		"unknown scope":    {"", "admin", tokens.InvalidScope},
		"more scope":       {"", "dss openid", tokens.InvalidScope},
	} {
		if _, err := b.RefreshGrant(t.Context(), client.ID, second.RefreshToken, c.resource, c.scope); code(t, err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	third, err := b.RefreshGrant(t.Context(), client.ID, second.RefreshToken, strings.ToUpper(resource), "dss")
	if err != nil || third.Scope != "dss" || third.RefreshToken == "" {
		t.Fatalf("less scope: %+v, %v", third, err)
	}
	for name, token := range map[string]string{
		"nothing": "", "short": third.RefreshToken[:94], "no hexadecimal": strings.Repeat("g", 96), "unknown": strings.Repeat("0", 96),
		"endless": strings.Repeat("0", 1<<20), "an access token": third.AccessToken,
	} {
		want := tokens.InvalidGrant
		if token == "" {
			want = tokens.InvalidRequest
		}
		if _, err := b.refresh(t, token); code(t, err) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Thirty days from the sign-in, refreshed or not: the last access token ends with them.
	b.clock.add(30*24*time.Hour - 10*time.Minute - 2*time.Second)
	last, err := b.refresh(t, third.RefreshToken)
	if err != nil || last.Scope != "dss offline_access" || last.ExpiresIn != 2*time.Second {
		t.Fatalf("%+v, %v", last, err)
	}
	b.clock.add(2 * time.Second)
	if _, err := b.refresh(t, last.RefreshToken); code(t, err) != tokens.InvalidGrant {
		t.Errorf("after thirty days: %v", err)
	}
}

func TestReplayedRefreshTokenEndsItsGrantAlone(t *testing.T) {
	b := newBench(t)
	first, other := b.stay(t), b.stay(t)
	second, err := b.refresh(t, first.RefreshToken)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.refresh(t, first.RefreshToken); code(t, err) != tokens.InvalidGrant {
		t.Errorf("a spent one: %v", err)
	}
	if b.holds(t, first.AccessToken) || b.holds(t, second.AccessToken) {
		t.Error("a token outlives the replay")
	}
	if _, err := b.refresh(t, second.RefreshToken); code(t, err) != tokens.InvalidGrant {
		t.Errorf("the next one: %v", err)
	}
	if !b.holds(t, other.AccessToken) {
		t.Error("another sign-in ended")
	}
	if _, err := b.refresh(t, other.RefreshToken); err != nil {
		t.Errorf("another sign-in: %v", err)
	}
}

func TestRefreshTokensEnd(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, b *bench) error{
		"password": func(t *testing.T, b *bench) error { return b.SetPassword(t.Context(), b.demo.ID, "another password") },
		"lock": func(t *testing.T, b *bench) error {
			op, _ := b.operatorOf(t, "op", "Default")
			who := audit.Principal{UserID: op.ID}
			if err := b.users.SetLocked(t.Context(), who, b.demo.ID, true); err != nil {
				return err
			}
			return b.users.SetLocked(t.Context(), who, b.demo.ID, false)
		},
		"a lock that came due unseen": func(t *testing.T, b *bench) error {
			users := store.Users{DB: b.db}
			if err := users.SetLock(t.Context(), b.demo.ID, false, b.clock.Now()); err != nil {
				return err
			}
			if _, err := b.refresh(t, b.last); code(t, err) != tokens.InvalidGrant {
				t.Errorf("while locked: %v", err)
			}
			return users.SetLock(t.Context(), b.demo.ID, false, time.Time{})
		},
		"the end of all": func(t *testing.T, b *bench) error { return b.sessions.EndAll(t.Context(), b.demo.ID) },
		"a second step": func(t *testing.T, b *bench) error {
			if err := b.GrantMethod(t.Context(), b.demo.ID, "oath"); err != nil {
				return err
			}
			return b.WithdrawMethod(t.Context(), b.demo.ID, "oath")
		},
		"the method":   func(t *testing.T, b *bench) error { return b.WithdrawMethod(t.Context(), b.demo.ID, "password") },
		"the deletion": func(t *testing.T, b *bench) error { return store.Users{DB: b.db}.DeleteUser(t.Context(), b.demo.ID) },
	} {
		b := newBench(t)
		token := b.stay(t)
		b.last = token.RefreshToken
		if err := end(t, b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := b.refresh(t, token.RefreshToken); code(t, err) != tokens.InvalidGrant {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRefreshTokensTogether(t *testing.T) {
	b := newBench(t)
	for range 20 {
		token := b.stay(t)
		var wg sync.WaitGroup
		var mu sync.Mutex
		won := 0
		for range 16 {
			wg.Go(func() {
				if _, err := b.refresh(t, token.RefreshToken); err == nil {
					mu.Lock()
					won++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if won != 1 {
			t.Fatalf("%d of 16 got a token for one", won)
		}
	}
}

func FuzzRefreshGrant(f *testing.F) {
	b := newBench(f)
	first := b.stay(f)
	f.Add(first.RefreshToken[:95]+"0", "", "dss")
	f.Add("", resource, "openid")
	f.Fuzz(func(t *testing.T, token, resource, scope string) {
		if token == first.RefreshToken {
			return
		}
		if got, err := b.RefreshGrant(t.Context(), client.ID, token, resource, scope); err == nil {
			t.Errorf("%q gave %+v", token, got)
		}
	})
}

// exchanger may exchange tokens.
var exchanger = signin.Client{ID: "exchanger", Public: true, Exchange: true}

func unsigned(header, payload string) string {
	b64 := base64.RawURLEncoding.EncodeToString
	return b64([]byte(header)) + "." + b64([]byte(payload)) + "."
}

func (b *bench) subject(name string, life time.Duration) string {
	now := b.clock.Now().Unix()
	return unsigned(`{"alg":"none","typ":"JWT"}`, fmt.Sprintf(`{"unique_name":%q,"nbf":%d,"exp":%d,"iat":%d}`, name, now, now+int64(life.Seconds()), now))
}

// operator registers an operator of groups and signs them in.
func (b *bench) operatorOf(t testing.TB, login string, groups ...string) (user.User, string) {
	t.Helper()
	u, err := b.users.Add(t.Context(), user.Account{Login: login, Group: groups[0], Operator: true, Groups: groups})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.SetPassword(t.Context(), u.ID, secret); err != nil {
		t.Fatal(err)
	}
	token, err := b.grant(t.Context(), login, secret)
	if err != nil {
		t.Fatal(err)
	}
	return u, token.AccessToken
}

func (b *bench) exchange(ctx context.Context, actor, subject string) (tokens.Token, error) {
	t, _, err := b.ExchangeGrant(ctx, exchanger, signin.Exchange{Actor: actor, Subject: subject, SubjectType: signin.TypeJWT, Resource: resource})
	return t, err
}

func TestExchangeGrant(t *testing.T) {
	b := newBench(t)
	if _, err := b.users.AddGroup(t.Context(), "Other", ""); err != nil {
		t.Fatal(err)
	}
	op, actor := b.operatorOf(t, "op", "Default")
	foreign, foreignActor := b.operatorOf(t, "foreign", "Other")
	t.Run("Life", func(t *testing.T) {
		got, err := b.exchange(t.Context(), actor, b.subject("Demo", time.Hour))
		if err != nil || got.ExpiresIn > 300*time.Second || got.UserID != b.demo.ID || got.RefreshToken != "" {
			t.Fatalf("%+v, %v", got, err)
		}
		who, err := b.Authenticate(t.Context(), got.AccessToken)
		if err != nil || who.UserID != b.demo.ID || who.Actor != "op" || who.Method != "delegated" || who.Operator {
			t.Errorf("%+v, %v", who, err)
		}
		short, err := b.exchange(t.Context(), actor, b.subject("demo", 100*time.Second))
		if err != nil || short.ExpiresIn > 100*time.Second {
			t.Errorf("of a subject of 100 s: %+v, %v", short, err)
		}
		b.clock.add(200 * time.Second)
		short, err = b.exchange(t.Context(), actor, b.subject("demo", time.Hour))
		if err != nil || short.ExpiresIn > 100*time.Second {
			t.Errorf("of an actor with 100 s left: %+v, %v", short, err)
		}
		b.clock.add(100 * time.Second)
		if _, err := b.exchange(t.Context(), actor, b.subject("demo", time.Hour)); code(t, err) != tokens.InvalidRequest {
			t.Errorf("of an expired actor: %v", err)
		}
	})
	_, actor = b.operatorOf(t, "op2", "Default")
	t.Run("Rights", func(t *testing.T) {
		for name, c := range map[string]struct {
			client         signin.Client
			actor, subject string
			want           string
		}{
			"another client":      {client, actor, b.subject("demo", time.Hour), tokens.UnauthorizedClient},
			"another group":       {exchanger, foreignActor, b.subject("demo", time.Hour), tokens.InvalidRequest},
			"an operator of more": {exchanger, actor, b.subject("foreign", time.Hour), tokens.InvalidRequest},
			"no operator":         {exchanger, b.token(t), b.subject("op", time.Hour), tokens.InvalidRequest},
			"unknown":             {exchanger, actor, b.subject("unknown", time.Hour), tokens.InvalidRequest},
		} {
			got, _, err := b.ExchangeGrant(t.Context(), c.client, signin.Exchange{Actor: c.actor, Subject: c.subject, SubjectType: signin.TypeJWT, Resource: resource})
			if code(t, err) != c.want || got != (tokens.Token{}) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("Ends", func(t *testing.T) {
		for name, end := range map[string]func(u user.User) error{
			"the operator's tokens": func(u user.User) error { return b.sessions.EndAll(t.Context(), u.ID) },
			"a lock that came due":  func(u user.User) error { return store.Users{DB: b.db}.SetLock(t.Context(), u.ID, false, b.clock.Now()) },
			"other groups": func(u user.User) error {
				return store.Users{DB: b.db}.SetOperatorGroups(t.Context(), u.ID, []string{"Other"})
			},
			"the operator":      func(u user.User) error { return store.Users{DB: b.db}.DeleteUser(t.Context(), u.ID) },
			"the user's tokens": func(user.User) error { return b.sessions.EndAll(t.Context(), b.demo.ID) },
		} {
			u, actor := b.operatorOf(t, "op-"+strings.ReplaceAll(name, " ", "-"), "Default")
			got, err := b.exchange(t.Context(), actor, b.subject("demo", time.Hour))
			if err != nil || !b.holds(t, got.AccessToken) {
				t.Fatalf("%s: %v", name, err)
			}
			if err := end(u); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if b.holds(t, got.AccessToken) {
				t.Errorf("%s: the token outlives it", name)
			}
		}
	})
	if op.ID == foreign.ID {
		t.Error("one identifier for two")
	}
}

func FuzzExchangeGrant(f *testing.F) {
	b := newBench(f)
	_, actor := b.operatorOf(f, "op", "Default")
	f.Add(`{"alg":"none","typ":"JWT"}`, `{"unique_name":"demo","nbf":1,"exp":2,"iat":1}`, "")
	f.Add(`{"alg":"HS256"}`, `{"nameidentifier":"x"}`, "AA")
	f.Fuzz(func(t *testing.T, header, payload, signature string) {
		got, err := b.exchange(t.Context(), actor, unsigned(header, payload)+signature)
		if err != nil {
			return
		}
		var h struct {
			Alg string `json:"alg"`
		}
		if signature != "" || json.NewDecoder(strings.NewReader(header)).Decode(&h) != nil || h.Alg != "none" || got.UserID == "" {
			t.Errorf("%q %q %q gave a token", header, payload, signature)
		}
	})
}

func TestTickets(t *testing.T) {
	b := newBench(t)
	browser, err := b.NewBrowser()
	if err != nil {
		t.Fatal(err)
	}
	other, err := b.NewBrowser()
	if err != nil || other == browser {
		t.Fatal(other, err)
	}
	p := signin.Pending{ClientID: "c", RedirectURI: "https://r", State: "s", Provider: "p"}
	ticket, err := b.SealTicket(p, browser, signin.StepLogin)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := b.OpenTicket(ticket, browser, signin.StepLogin); err != nil || got != p {
		t.Errorf("%+v, %v", got, err)
	}
	for name, c := range map[string]struct {
		ticket, browser string
		step            signin.Step
	}{
		"another browser": {ticket, other, signin.StepLogin},
		"no browser":      {ticket, "", signin.StepLogin},
		"another step":    {ticket, browser, signin.StepExternal},
		"changed":         {ticket[:40] + strings.Map(func(r rune) rune { return map[bool]rune{true: 'B', false: 'A'}[r == 'A'] }, ticket[40:41]) + ticket[41:], browser, signin.StepLogin},
		"none":            {"", browser, signin.StepLogin},
		"endless":         {strings.Repeat("A", 1<<20), browser, signin.StepLogin},
	} {
		if _, err := b.OpenTicket(c.ticket, c.browser, c.step); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	b.clock.add(10 * time.Minute)
	if _, err := b.OpenTicket(ticket, browser, signin.StepLogin); err == nil {
		t.Error("it was taken after ten minutes")
	}
}

func TestSigningKeysFollowEachOther(t *testing.T) {
	b := newBench(t)
	s := store.TokenKeys{DB: b.db}
	n := 0
	make := func() (tokens.SealedKey, error) {
		n++
		return tokens.SealedKey{ID: fmt.Sprint("k", n), Sealed: []byte{byte(n)}, CreatedAt: b.clock.Now()}, nil
	}
	o := tokens.Overlap{Overlap: time.Hour, TokenLife: 5 * time.Minute}
	if _, err := tokens.EnsureSigningKey(t.Context(), s, make); err != nil {
		t.Fatal(err)
	}
	signers := map[string]tokens.Key{"k1": newKey(t, "k1"), "k2": newKey(t, "k2"), "k3": newKey(t, "k3")}
	load := func(ctx context.Context) (list []tokens.Key, err error) {
		stored, err := s.SigningKeys(ctx)
		for _, k := range stored {
			key := signers[k.ID]
			key.From = o.From(k)
			list = append(list, key)
		}
		return list, err
	}
	keys, err := load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	service := b.serviceWith(t, settings(), deps{Keys: keys, LoadKeys: load})
	kid := func() string {
		t.Helper()
		token, err := service.PasswordGrant(t.Context(), client, "demo", secret, resource, "")
		if err != nil {
			t.Fatal(err)
		}
		head, err := base64.RawURLEncoding.DecodeString(strings.Split(token.AccessToken, ".")[0])
		var h struct{ KID string }
		if err != nil || json.Unmarshal(head, &h) != nil {
			t.Fatal(err)
		}
		return h.KID
	}
	published := func() (list []string) {
		for _, k := range service.PublicKeys() {
			list = append(list, k.ID)
		}
		return list
	}
	expect := func(moment, signs string, all ...string) {
		t.Helper()
		if err := tokens.RetireSigningKeys(t.Context(), s, o, b.clock.Now()); err != nil {
			t.Fatal(err)
		}
		if err := service.ReloadKeys(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := kid(); got != signs || fmt.Sprint(published()) != fmt.Sprint(all) {
			t.Errorf("%s: %s signs of %v, want %s of %v", moment, got, published(), signs, all)
		}
	}
	expect("at first", "k1", "k1")
	b.clock.add(time.Minute)
	if _, err := tokens.RotateSigningKey(t.Context(), s, false, make); err != nil {
		t.Fatal(err)
	}
	expect("a key more", "k1", "k2", "k1")
	b.clock.add(time.Hour - time.Millisecond)
	expect("before its hour", "k1", "k2", "k1")
	old := b.clock.Now()
	b.clock.add(time.Millisecond)
	expect("its hour", "k2", "k2", "k1")
	b.clock.add(o.Overlap + o.TokenLife - time.Millisecond)
	expect("while an old token may live", "k2", "k2", "k1")
	b.clock.add(time.Millisecond)
	expect("when none is valid", "k2", "k2")
	token, err := service.PasswordGrant(t.Context(), client, "demo", secret, resource, "")
	if err != nil || !old.Before(b.clock.Now()) {
		t.Fatal(err)
	}
	if _, err := service.Authenticate(t.Context(), token.AccessToken); err != nil { // remembered as verified from now on
		t.Fatal(err)
	}
	if _, err := tokens.RotateSigningKey(t.Context(), s, true, make); err != nil {
		t.Fatal(err)
	}
	expect("at once", "k3", "k3")
	if _, err := service.Authenticate(t.Context(), token.AccessToken); err == nil {
		t.Error("what a key that was taken away has signed is still taken")
	}
}
