// SPDX-License-Identifier: Apache-2.0

package signin_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/signin"
	tokens "tamga/internal/domain/token"
	"tamga/internal/domain/user"
)

// everything is the widest scope a client may ask for.
const everything = "dss openid profile offline_access"

// able may use every grant, so that what stops a derived token is never the client.
var able = signin.Client{ID: "able", Public: true, PasswordGrant: true, Exchange: true, Implicit: true, RedirectURIs: []string{"https://able/back"}}

// elsewhere is another identity provider, where everybody is "op".
type elsewhere struct{}

func (elsewhere) Name() string  { return "idp" }
func (elsewhere) Title() string { return "idp" }
func (elsewhere) Begin(context.Context, string, string, string) (string, error) {
	return "https://idp", nil
}
func (elsewhere) Finish(context.Context, string, string, string) (string, error) { return "op", nil }

// family is a sign-in in the making: what a thief or a client derived from its root.
type family struct {
	*bench
	op       user.User
	der      []byte
	signedIn time.Time
	bound    time.Time // end of the root: of its token, or of its refresh tokens
	scope    string    // of the root

	tokens, codes, refreshes []string
	// Tokens to derive from, with what bounds their descendants.
	access []held
	// What was spent, to be replayed.
	spentCode, spentRefresh string
}

type held struct {
	text, scope string
	ends        time.Time
}

func newFamily(t *testing.T) *family {
	f := &family{bench: newBench(t)}
	f.services = f.serviceWith(t, settings(), deps{Keys: f.keys, Providers: []signin.Provider{elsewhere{}}})
	who := f.operator(t, "op", "Default")
	f.op.ID = who.UserID
	f.der = newCertificate(t, "op")
	if err := f.SetPassword(t.Context(), who.UserID, secret); err != nil {
		t.Fatal(err)
	}
	if _, err := f.AddCertificate(t.Context(), who.UserID, f.der); err != nil {
		t.Fatal(err)
	}
	if err := (store.Users{DB: f.db}).SetExternalLogin(t.Context(), who.UserID, user.ExternalLogin{Login: "op", Issuer: "idp"}, "idp", "op"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"idonly", "external"} {
		if err := f.GrantMethod(t.Context(), who.UserID, name); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func (f *family) ask(scope string, direct bool) signin.Authorization {
	return signin.Authorization{Client: able, RedirectURI: able.RedirectURIs[0], Scope: scope, Resource: resource, Direct: direct}
}

// payload reads the claims of a token.
func payload(t *testing.T, token string) (c struct {
	ID       string `json:"jti"`
	Expiry   int64  `json:"exp"`
	AuthTime int64  `json:"auth_time"`
}) {
	t.Helper()
	data, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil || json.Unmarshal(data, &c) != nil {
		t.Fatalf("%q: %v", token, err)
	}
	return c
}

// take judges a token against what it was derived from and keeps it. A refresh token
// counts only where offline was granted to the root.
func (f *family) take(t *testing.T, way string, token tokens.Token, from held) {
	t.Helper()
	c := payload(t, token.AccessToken)
	ends := time.Unix(c.Expiry, 0)
	if ends.After(from.ends) || ends.After(f.bound) {
		t.Errorf("%s: it ends at %v, what it was derived from at %v, its root at %v", way, ends, from.ends, f.bound)
	}
	for _, s := range strings.Fields(token.Scope) {
		if !slices.Contains(strings.Fields(from.scope), s) {
			t.Errorf("%s: scope %q, derived from %q", way, token.Scope, from.scope)
		}
	}
	if token.IDToken != "" {
		if got := payload(t, token.IDToken).AuthTime; got != f.signedIn.Unix() {
			t.Errorf("%s: auth_time %d, signed in at %d", way, got, f.signedIn.Unix())
		}
	}
	record, err := (store.Tokens{DB: f.db}).BearerByToken(t.Context(), c.ID, f.clock.Now())
	if err != nil || !record.Token.SignedInAt.Equal(f.signedIn.Truncate(time.Millisecond)) {
		t.Errorf("%s: the record says it was signed in at %v, want %v; %v", way, record.Token.SignedInAt, f.signedIn, err)
	}
	f.tokens = append(f.tokens, token.AccessToken)
	f.access = append(f.access, held{token.AccessToken, token.Scope, ends})
	if token.RefreshToken != "" {
		f.refreshes = append(f.refreshes, token.RefreshToken)
	}
}

func (f *family) exchangeCode(t *testing.T, code string) (tokens.Token, error) {
	t.Helper()
	return f.CodeGrant(t.Context(), able, signin.CodeRequest{Code: code, RedirectURI: able.RedirectURIs[0]})
}

// A way is a method of the service that gives a token or a code. A root begins a
// sign-in; a derivation makes more of what the family holds, at most once from each, and
// asks for everything. spent says that what it was given is good once.
var ways = map[string]struct {
	root   func(t *testing.T, f *family, scope string) (tokens.Token, string, error)
	derive func(t *testing.T, f *family, from held)
}{
	"PasswordGrant": {root: func(t *testing.T, f *family, scope string) (tokens.Token, string, error) {
		token, err := f.PasswordGrant(t.Context(), able, "op", secret, resource, scope)
		return token, "", err
	}},
	"PasswordGrant without a password": {root: func(t *testing.T, f *family, scope string) (tokens.Token, string, error) {
		proven := able
		proven.Public = false
		token, err := f.PasswordGrant(t.Context(), proven, "op", "", resource, scope)
		return token, "", err
	}},
	"SignIn": {root: func(t *testing.T, f *family, scope string) (tokens.Token, string, error) {
		first, err := f.FirstByPassword(t.Context(), able, "op", secret)
		if err != nil {
			return tokens.Token{}, "", err
		}
		token, err := f.Service.SignIn(t.Context(), first, nil) // grants no scope
		return token, "", err
	}},
	"AuthorizePassword": {root: func(t *testing.T, f *family, scope string) (tokens.Token, string, error) {
		issued, _, err := f.AuthorizePassword(t.Context(), "op", secret, f.ask(scope, false))
		return tokens.Token{}, issued.Code, err
	}},
	"AuthorizePassword direct": {root: func(t *testing.T, f *family, scope string) (tokens.Token, string, error) {
		issued, _, err := f.AuthorizePassword(t.Context(), "op", secret, f.ask(scope, true))
		return issued.Token, "", err
	}},
	"AuthorizeCertificate": {root: func(t *testing.T, f *family, scope string) (tokens.Token, string, error) {
		code, _, err := f.AuthorizeCertificate(t.Context(), f.der, f.ask(scope, false))
		return tokens.Token{}, code, err
	}},
	"AuthorizeExternal": {root: func(t *testing.T, f *family, scope string) (tokens.Token, string, error) {
		issued, _, err := f.AuthorizeExternal(t.Context(), signin.Pending{Provider: "idp"}, "answer", f.ask(scope, false))
		return tokens.Token{}, issued.Code, err
	}},
	"Redeem": {root: func(t *testing.T, f *family, scope string) (tokens.Token, string, error) {
		s := f.stepped(t)
		_, refused := s.PasswordGrant(t.Context(), able, "op", secret, resource, scope)
		token, err := s.redeem(t, refused)
		return token, "", err
	}},
	"CompleteStep": {root: func(t *testing.T, f *family, scope string) (tokens.Token, string, error) {
		s := f.stepped(t)
		issued, _, err := s.AuthorizePassword(t.Context(), "op", secret, f.ask(scope, false))
		if err != nil || issued.Step == nil || issued.Code != "" {
			t.Fatalf("%+v, %v", issued, err)
		}
		_, record := s.confirm(t, *issued.Step)
		issued, err = s.CompleteStep(t.Context(), *issued.Step, record, true, f.ask(scope, false))
		return tokens.Token{}, issued.Code, err
	}},
	"AuthorizeBearer": {derive: func(t *testing.T, f *family, from held) {
		issued, _, err := f.AuthorizeBearer(t.Context(), from.text, f.ask(everything, false))
		if err != nil {
			t.Fatal(err)
		}
		f.codes = append(f.codes, issued.Code) // stays unspent
		issued, _, err = f.AuthorizeBearer(t.Context(), from.text, f.ask(everything, false))
		if err != nil {
			t.Fatal(err)
		}
		f.clock.add(10 * time.Second)
		token, err := f.exchangeCode(t, issued.Code)
		if err != nil {
			t.Fatal(err)
		}
		f.take(t, "AuthorizeBearer", token, from)
		if token.RefreshToken != "" {
			t.Error("AuthorizeBearer: a refresh token")
		}
	}},
	"AuthorizeBearer direct": {derive: func(t *testing.T, f *family, from held) {
		issued, _, err := f.AuthorizeBearer(t.Context(), from.text, f.ask(everything, true))
		if err != nil {
			t.Fatal(err)
		}
		f.take(t, "AuthorizeBearer direct", issued.Token, from)
	}},
	// Every family has a code of its own spent, by its root or by AuthorizeBearer.
	"CodeGrant": {derive: func(t *testing.T, f *family, from held) {
		issued, _, err := f.AuthorizeBearer(t.Context(), from.text, f.ask("openid dss", false))
		if err != nil {
			t.Fatal(err)
		}
		token, err := f.exchangeCode(t, issued.Code)
		if err != nil {
			t.Fatal(err)
		}
		f.take(t, "CodeGrant", token, from)
		if f.spentCode == "" {
			f.spentCode = issued.Code
		}
	}},
	"RefreshGrant": {derive: func(t *testing.T, f *family, from held) {
		if len(f.refreshes) == 0 {
			return
		}
		last := f.refreshes[len(f.refreshes)-1]
		token, err := f.RefreshGrant(t.Context(), able.ID, last, "", "")
		if err != nil {
			t.Fatal(err)
		}
		f.spentRefresh, f.refreshes = last, nil
		f.take(t, "RefreshGrant", token, held{scope: f.scope, ends: f.bound})
	}},
	"ExchangeGrant": {derive: func(t *testing.T, f *family, from held) {
		token, _, err := f.ExchangeGrant(t.Context(), able, signin.Exchange{
			Actor: from.text, Subject: f.subject("demo", time.Hour), SubjectType: signin.TypeJWT, Resource: resource, Scope: everything,
		})
		if err != nil {
			t.Fatal(err)
		}
		f.take(t, "ExchangeGrant", token, from)
		f.access = f.access[:len(f.access)-1] // nothing may be derived from it
		if _, _, err := f.AuthorizeBearer(t.Context(), token.AccessToken, f.ask("dss", false)); code(t, err) != tokens.AccessDenied {
			t.Errorf("a code for a delegated token: %v", err)
		}
	}},
}

// generations of derivations from derived tokens.
const generations = 2

// grow signs in by a root and derives by every way, from the newest token each time.
func (f *family) grow(t *testing.T, root, scope string) {
	t.Helper()
	f.signedIn = f.clock.Now()
	token, made, err := ways[root].root(t, f, scope)
	if err != nil {
		t.Fatal(err)
	}
	if made != "" {
		f.clock.add(20 * time.Second)
		if token, err = f.exchangeCode(t, made); err != nil {
			t.Fatal(err)
		}
		f.spentCode = made
	}
	f.scope = token.Scope
	own := time.Unix(payload(t, token.AccessToken).Expiry, 0)
	f.bound = own
	if token.RefreshToken != "" {
		f.bound = f.signedIn.Add(settings().RefreshLife)
	}
	f.take(t, root, token, held{scope: scope, ends: f.bound})
	for range generations {
		from := f.access[len(f.access)-1]
		for name, way := range ways {
			if way.derive != nil {
				f.clock.add(3 * time.Second)
				t.Run(name, func(t *testing.T) { way.derive(t, f, from) })
			}
		}
	}
}

// open lists what still opens anything.
func (f *family) open(t *testing.T) (list []string) {
	t.Helper()
	for i, token := range f.tokens {
		if f.holds(t, token) {
			list = append(list, fmt.Sprint("access token ", i))
		}
		who := audit.Principal{TokenID: payload(t, token).ID}
		if err := f.MayContinue(t.Context(), who); err == nil {
			list = append(list, fmt.Sprint("what was begun with access token ", i))
		}
	}
	for i, made := range f.codes {
		if _, err := f.exchangeCode(t, made); err == nil {
			list = append(list, fmt.Sprint("code ", i))
		}
	}
	for i, token := range f.refreshes {
		if _, err := f.RefreshGrant(t.Context(), able.ID, token, "", ""); err == nil {
			list = append(list, fmt.Sprint("refresh token ", i))
		}
	}
	return list
}

// endings of a sign-in; false where a family cannot end so.
var endings = map[string]func(t *testing.T, f *family) (bool, error){
	"a refresh token comes twice": func(t *testing.T, f *family) (bool, error) {
		if f.spentRefresh == "" {
			return false, nil
		}
		_, err := f.RefreshGrant(t.Context(), able.ID, f.spentRefresh, "", "")
		return true, expected(t, err)
	},
	"a code comes twice": func(t *testing.T, f *family) (bool, error) {
		_, err := f.exchangeCode(t, f.spentCode)
		return true, expected(t, err)
	},
	"a password": func(t *testing.T, f *family) (bool, error) {
		return true, f.SetPassword(t.Context(), f.op.ID, "another password")
	},
	"a lock": func(t *testing.T, f *family) (bool, error) {
		if err := f.users.Lock(t.Context(), f.op.ID); err != nil {
			return true, err
		}
		return true, f.users.Unlock(t.Context(), f.op.ID)
	},
	"the end of all": func(t *testing.T, f *family) (bool, error) { return true, f.sessions.EndAll(t.Context(), f.op.ID) },
	"a second step": func(t *testing.T, f *family) (bool, error) {
		return true, f.GrantMethod(t.Context(), f.op.ID, "oath")
	},
}

// expected is nil for a refused grant.
func expected(t *testing.T, err error) error {
	t.Helper()
	if code(t, err) != tokens.InvalidGrant {
		return fmt.Errorf("a replay: %w", err)
	}
	return nil
}

// No token or code that was derived from a sign-in is valid longer or may do more than the
// sign-in. All of them end with the sign-in, for every way and every length of the chain.
func TestDescent(t *testing.T) {
	// Every method that gives a token or a code is a way of this walk.
	var methods []reflect.Method
	for _, service := range []reflect.Type{reflect.TypeFor[*signin.Service](), reflect.TypeFor[*tokens.Service]()} {
		for i := range service.NumMethod() {
			methods = append(methods, service.Method(i))
		}
	}
	for _, m := range methods {
		switch m.Name {
		case "Issue": // what all others end in
			continue
		case "IssueScope": // no route accepts its type: TestConfirmedToken
			continue
		case "IssueConfirmed": // nothing can be derived from it, and it ends with the sign-in: TestConfirmedToken, TestConfirmedTokenEnds
			continue
		}
		gives := strings.HasPrefix(m.Name, "Authorize")
		for j := range m.Type.NumOut() {
			gives = gives || m.Type.Out(j) == reflect.TypeFor[tokens.Token]() || m.Type.Out(j) == reflect.TypeFor[signin.Authorized]()
		}
		if _, walked := ways[m.Name]; gives != walked {
			t.Errorf("%s gives tokens or codes: %v; walked: %v", m.Name, gives, walked)
		}
	}
	for root, way := range ways {
		if way.root == nil {
			continue
		}
		for _, scope := range []string{"dss", everything} {
			if scope == "dss" && root != "PasswordGrant" {
				continue // without refresh tokens the roots do not differ
			}
			for name, end := range endings {
				t.Run(root+"/"+scope+"/"+name, func(t *testing.T) {
					f := newFamily(t)
					f.grow(t, root, scope)
					if t.Failed() {
						return
					}
					if may, err := end(t, f); err != nil {
						t.Fatal(err)
					} else if !may {
						return
					}
					if left := f.open(t); len(left) > 0 {
						t.Errorf("%d are left of %d tokens and %d codes: %v", len(left), len(f.tokens), len(f.codes), left)
					}
				})
			}
		}
	}
}

// A code of a token is good for no longer than the token, and one that is exchanged in
// its last second gives nothing.
func TestCodesEndWithTheirToken(t *testing.T) {
	f := newFamily(t)
	token, err := f.PasswordGrant(t.Context(), able, "op", secret, resource, "dss")
	if err != nil {
		t.Fatal(err)
	}
	f.clock.add(270 * time.Second)
	early, _, err := f.AuthorizeBearer(t.Context(), token.AccessToken, f.ask("dss", false))
	if err != nil {
		t.Fatal(err)
	}
	late, _, err := f.AuthorizeBearer(t.Context(), token.AccessToken, f.ask("dss", false))
	if err != nil {
		t.Fatal(err)
	}
	f.clock.add(10 * time.Second)
	got, err := f.exchangeCode(t, early.Code)
	if err != nil || got.ExpiresIn != 20*time.Second {
		t.Errorf("20 s before the end: %+v, %v", got, err)
	}
	f.clock.add(20 * time.Second)
	if got, err := f.exchangeCode(t, late.Code); code(t, err) != tokens.InvalidGrant {
		t.Errorf("at the end: %+v, %v", got, err)
	}
	if _, _, err := f.AuthorizeBearer(t.Context(), token.AccessToken, f.ask("dss", false)); code(t, err) != tokens.AccessDenied {
		t.Errorf("after the end: %v", err)
	}
}

// Who was granted no openid cannot get it by asking for nothing else.
func TestNoLoginOnlyCodeWithoutOpenID(t *testing.T) {
	f := newFamily(t)
	token, err := f.PasswordGrant(t.Context(), able, "op", secret, resource, "dss")
	if err != nil {
		t.Fatal(err)
	}
	a := f.ask("openid profile", false)
	a.Resource = ""
	if issued, _, err := f.AuthorizeBearer(t.Context(), token.AccessToken, a); code(t, err) != tokens.InvalidScope {
		t.Errorf("%+v, %v", issued, err)
	}
}
