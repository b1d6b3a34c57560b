// SPDX-License-Identifier: Apache-2.0

package signin_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/signin"
	tokens "tamga/internal/domain/token"
)

// newCertificate makes a certificate of its own key; who signed it is the interface's
// concern.
func newCertificate(t testing.TB, name string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(4711), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Unix(1_700_000_000, 0), NotAfter: time.Unix(1_900_000_000, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

var portal = signin.Client{ID: "portal", Public: true, RedirectURIs: []string{signin.RedirectOutOfBand, "https://portal/back"}}

func authorization() signin.Authorization {
	return signin.Authorization{Client: portal, RedirectURI: signin.RedirectOutOfBand, Scope: "dss offline_access", Resource: resource}
}

// TestCertificateConfirmsIssue: a request with a certificate is a sign-in without a confirmation, so
// policies about Issue refuse it as they refuse a token. With the certificate the operator gets a
// token by a confirmation.
func TestCertificateConfirmsIssue(t *testing.T) {
	f := newFamily(t)
	policies := store.Policies{DB: f.db}
	f.services = f.serviceWith(t, settings(), deps{Keys: f.keys, Policies: &policy.Service{Store: policies}})
	for kind, want := range map[policy.Kind]string{policy.Access: tokens.AccessDenied, policy.Operation: tokens.SecondStepNeeded} {
		for _, actions := range []policy.Action{0, policy.Issue, policy.SignDocument} {
			if err := policies.SetOwn(t.Context(), f.op.ID, kind, &policy.Setting{Actions: actions}); err != nil {
				t.Fatal(err)
			}
			_, err := f.AuthenticateCertificate(t.Context(), f.der)
			if refused := actions == policy.Issue; refused != fault.Is(err, fault.Unauthorized) || !refused && err != nil {
				t.Errorf("%s of %s: %v", kind, actions, err)
			}
			if _, _, err := f.AuthorizeCertificate(t.Context(), f.der, authorization()); actions == policy.Issue && code(t, err) != want {
				t.Errorf("a code with %s of %s: %v, want %s", kind, actions, err, want)
			}
		}
	}
}

func TestCertificateSignIn(t *testing.T) {
	b := newBench(t)
	op := b.operator(t, "op", "Default")
	der := newCertificate(t, "op")
	if _, err := b.AuthenticateCertificate(t.Context(), der); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("before a user has it: %v", err)
	}
	added, err := b.AddCertificate(t.Context(), op.UserID, der)
	if err != nil {
		t.Fatal(err)
	}
	if added.Subject != "CN=op" || added.Serial != "1267" || added.Thumbprint != sha256.Sum256(der) || added.NotAfter.Unix() != 1_900_000_000 {
		t.Errorf("added %+v", added)
	}
	who, err := b.AuthenticateCertificate(t.Context(), der)
	if err != nil {
		t.Fatal(err)
	}
	want := op
	want.Group, want.Method = "Default", "certificate"
	if d := cmp.Diff(want, who); d != "" {
		t.Error(d)
	}
	// The same name, another certificate.
	if _, err := b.AuthenticateCertificate(t.Context(), newCertificate(t, "op")); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("a certificate of the same name: %v", err)
	}
	for name, c := range map[string]struct {
		id    string
		der   []byte
		fault string
	}{
		"again":          {op.UserID, der, fault.InvalidObjectState},
		"another user's": {b.demo.ID, der, fault.InvalidObjectState},
		"to no user":     {"unknown", newCertificate(t, "x"), fault.UserNotFound},
		"no certificate": {b.demo.ID, []byte("x"), fault.InvalidCertificate},
		"nothing":        {b.demo.ID, nil, fault.InvalidCertificate},
		"two of them":    {b.demo.ID, append(newCertificate(t, "x"), newCertificate(t, "y")...), fault.InvalidCertificate},
		"endless":        {b.demo.ID, make([]byte, 1<<20), fault.InvalidCertificate},
	} {
		if _, err := b.AddCertificate(t.Context(), c.id, c.der); faultOf(err) != c.fault {
			t.Errorf("%s: %v, want %s", name, err, c.fault)
		}
	}
	for _, c := range []struct {
		name     string
		do, undo func() error
	}{
		{"locked", func() error { return b.users.Lock(t.Context(), op.UserID) }, func() error { return b.users.Unlock(t.Context(), op.UserID) }},
		{"not approved", func() error { return b.users.Approve(t.Context(), op, op.UserID, false) }, func() error { return store.Users{DB: b.db}.SetUnapproved(t.Context(), op.UserID, false) }},
		{"without the method", func() error { return b.WithdrawMethod(t.Context(), op.UserID, "cert") }, func() error { return b.GrantMethod(t.Context(), op.UserID, "cert") }},
		{"with a second step", func() error { return b.GrantMethod(t.Context(), op.UserID, "mydss") }, func() error { return b.WithdrawMethod(t.Context(), op.UserID, "mydss") }},
	} {
		if err := c.do(); err != nil {
			t.Fatal(err)
		}
		if _, err := b.AuthenticateCertificate(t.Context(), der); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, _, err := b.AuthorizeCertificate(t.Context(), der, authorization()); code(t, err) != map[bool]string{false: tokens.AccessDenied, true: tokens.SecondStepNeeded}[c.name == "with a second step"] {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := c.undo(); err != nil {
			t.Fatal(err)
		}
		if _, err := b.AuthenticateCertificate(t.Context(), der); err != nil {
			t.Errorf("after %s: %v", c.name, err)
		}
	}
	issued, _, err := b.AuthorizeCertificate(t.Context(), der, authorization())
	if err != nil {
		t.Fatal(err)
	}
	token, err := b.CodeGrant(t.Context(), portal, signin.CodeRequest{Code: issued, RedirectURI: signin.RedirectOutOfBand})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.RemoveCertificate(t.Context(), b.demo.ID, added.Thumbprint); !fault.Is(err, fault.NotFound) {
		t.Errorf("from another user: %v", err)
	}
	if err := b.RemoveCertificate(t.Context(), op.UserID, added.Thumbprint); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Authenticate(t.Context(), token.AccessToken); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("a token of a certificate that was taken away: %v", err)
	}
	if list, err := b.Certificates(t.Context(), op.UserID); err != nil || len(list) != 0 {
		t.Errorf("left: %v, %v", list, err)
	}
}

func TestCodeFlow(t *testing.T) {
	b := newBench(t)
	op := b.operator(t, "op", "Default")
	der := newCertificate(t, "op")
	if _, err := b.AddCertificate(t.Context(), op.UserID, der); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(a *signin.Authorization)
		want   string
	}{
		"client without codes": {func(a *signin.Authorization) { a.Client = client }, tokens.UnauthorizedClient},
		"no address":           {func(a *signin.Authorization) { a.RedirectURI = "" }, tokens.InvalidRequest},
		"another address":      {func(a *signin.Authorization) { a.RedirectURI = "https://portal/back/" }, tokens.InvalidRequest},
		"no resource":          {func(a *signin.Authorization) { a.Resource = "" }, tokens.InvalidRequest},
		"unknown resource":     {func(a *signin.Authorization) { a.Resource = "urn:x" }, tokens.InvalidRequest},
		"unknown scope":        {func(a *signin.Authorization) { a.Scope = "admin" }, tokens.InvalidScope},
	} {
		a := authorization()
		c.change(&a)
		if made, _, err := b.AuthorizeCertificate(t.Context(), der, a); code(t, err) != c.want || made != "" {
			t.Errorf("%s: %q, %v", name, made, err)
		}
	}
	make := func() string {
		t.Helper()
		made, who, err := b.AuthorizeCertificate(t.Context(), der, authorization())
		if err != nil || who.UserID != op.UserID || who.ClientID != "portal" {
			t.Fatal(who, err)
		}
		if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(made) {
			t.Fatalf("code %q: clients lower-case it and cut it at =", made)
		}
		return made
	}
	for name, c := range map[string]struct {
		client             signin.Client
		code, to, resource string
		want               string
	}{
		"client without codes": {client, make(), signin.RedirectOutOfBand, "", tokens.UnauthorizedClient},
		"another client":       {signin.Client{ID: "other", RedirectURIs: portal.RedirectURIs}, make(), signin.RedirectOutOfBand, "", tokens.InvalidGrant},
		"another address":      {portal, make(), "https://portal/back", "", tokens.InvalidGrant},
		"no address":           {portal, make(), "", "", tokens.InvalidGrant},
		"unknown resource":     {portal, make(), signin.RedirectOutOfBand, "urn:x", tokens.InvalidRequest},
		"no code":              {portal, "", signin.RedirectOutOfBand, "", tokens.InvalidRequest},
		"unknown code":         {portal, strings.Repeat("0", 64), signin.RedirectOutOfBand, "", tokens.InvalidGrant},
		"endless code":         {portal, strings.Repeat("0", 1<<20), signin.RedirectOutOfBand, "", tokens.InvalidGrant},
		"hostile code":         {portal, "\x00\xff' OR 1=1", signin.RedirectOutOfBand, "", tokens.InvalidGrant},
	} {
		if token, err := b.CodeGrant(t.Context(), c.client, signin.CodeRequest{Code: c.code, RedirectURI: c.to, Resource: c.resource}); code(t, err) != c.want || token != (tokens.Token{}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	made := make()
	token, err := b.CodeGrant(t.Context(), portal, signin.CodeRequest{Code: made, RedirectURI: signin.RedirectOutOfBand, Resource: strings.ToUpper(resource)})
	if err != nil || token.Scope != "dss offline_access" || len(token.RefreshToken) != 96 || token.IDToken != "" || token.UserID != op.UserID {
		t.Fatalf("%+v, %v", token, err)
	}
	who, err := b.Authenticate(t.Context(), token.AccessToken)
	if err != nil || who.Method != "certificate" || who.ClientID != "portal" || !who.Operator {
		t.Errorf("%+v, %v", who, err)
	}
	// A second use is refused, and ends what the first one brought.
	if _, err := b.CodeGrant(t.Context(), portal, signin.CodeRequest{Code: made, RedirectURI: signin.RedirectOutOfBand}); code(t, err) != tokens.InvalidGrant {
		t.Errorf("twice: %v", err)
	}
	if _, err := b.Authenticate(t.Context(), token.AccessToken); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("the token of a code that came twice: %v", err)
	}
	// To the millisecond.
	made, other := make(), make()
	b.clock.add(time.Minute - time.Millisecond)
	if _, err := b.CodeGrant(t.Context(), portal, signin.CodeRequest{Code: made, RedirectURI: signin.RedirectOutOfBand}); err != nil {
		t.Errorf("in its last moment: %v", err)
	}
	b.clock.add(time.Millisecond)
	if _, err := b.CodeGrant(t.Context(), portal, signin.CodeRequest{Code: other, RedirectURI: signin.RedirectOutOfBand}); code(t, err) != tokens.InvalidGrant {
		t.Errorf("at its end: %v", err)
	}
	// A lock, or the end of all grants, between the two steps.
	made = make()
	if err := b.RevokeGrants(t.Context(), op, op.UserID); err != nil {
		t.Fatal(err)
	}
	if _, err := b.CodeGrant(t.Context(), portal, signin.CodeRequest{Code: made, RedirectURI: signin.RedirectOutOfBand}); code(t, err) != tokens.InvalidGrant {
		t.Errorf("after grants were revoked: %v", err)
	}
	made = make()
	if err := (store.Users{DB: b.db}).SetLock(t.Context(), op.UserID, false, b.clock.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.CodeGrant(t.Context(), portal, signin.CodeRequest{Code: made, RedirectURI: signin.RedirectOutOfBand}); code(t, err) != tokens.InvalidGrant {
		t.Errorf("of a user whose lock came due: %v", err)
	}
}

// One code accepted twice: of many who present it at once one gets a token, on both
// engines.
func TestRaceForOneCode(t *testing.T) {
	for _, engine := range []struct {
		name string
		open func(t *testing.T) *store.DB
	}{
		{"SQLite", func(t *testing.T) *store.DB { return storetest.SQLite(t) }},
		{"PostgreSQL", func(t *testing.T) *store.DB { return storetest.Open(t, storetest.PostgreSQL(t).Migrated(t)) }},
	} {
		t.Run(engine.name, func(t *testing.T) {
			b := newBenchOn(t, engine.open(t))
			der := newCertificate(t, "demo")
			if _, err := b.AddCertificate(t.Context(), b.demo.ID, der); err != nil {
				t.Fatal(err)
			}
			for range 5 {
				made, _, err := b.AuthorizeCertificate(t.Context(), der, authorization())
				if err != nil {
					t.Fatal(err)
				}
				var done sync.WaitGroup
				var mu sync.Mutex
				won := 0
				for range 16 {
					done.Go(func() {
						_, err := b.CodeGrant(t.Context(), portal, signin.CodeRequest{Code: made, RedirectURI: signin.RedirectOutOfBand})
						mu.Lock()
						defer mu.Unlock()
						if err == nil {
							won++
						} else if code(t, err) != tokens.InvalidGrant {
							t.Error(err)
						}
					})
				}
				done.Wait()
				if won != 1 {
					t.Errorf("%d of 16 got a token for one code", won)
				}
			}
		})
	}
}

func TestRevokeGrants(t *testing.T) {
	b := newBench(t)
	op, outsider := b.operator(t, "op", "Default"), b.operator(t, "outsider", "Other")
	token := b.token(t)
	if err := b.RevokeGrants(t.Context(), outsider, b.demo.ID); !fault.Is(err, fault.UserNotFound) {
		t.Errorf("by an outsider: %v", err)
	}
	if _, err := b.Authenticate(t.Context(), token); err != nil {
		t.Errorf("after that: %v", err)
	}
	if err := b.RevokeGrants(t.Context(), op, b.demo.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Authenticate(t.Context(), token); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("a token from before: %v", err)
	}
	b.token(t) // the user may sign in again
}
