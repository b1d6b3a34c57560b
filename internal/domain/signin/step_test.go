// SPDX-License-Identifier: Apache-2.0

package signin_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/signin"
	tokens "tamga/internal/domain/token"
)

// phones gives every user a phone for codes.
type phones struct{}

func (phones) ForOneTime(_ context.Context, _ string, kind contact.Kind) (contact.Contact, bool, error) {
	return contact.Contact{Value: "79250000001"}, kind.Channel == notify.SMS, nil
}

// confirms returns the service of confirmations over the bench.
func (b *bench) confirms(t testing.TB) *confirm.Service {
	t.Helper()
	return b.confirmsIn(t, store.Confirmations{DB: b.db})
}

// confirmsIn is confirms with a store of the caller.
func (b *bench) confirmsIn(t testing.TB, in confirm.Store) *confirm.Service {
	t.Helper()
	records, contacts := store.Confirmations{DB: b.db}, store.Contacts{DB: b.db}
	s, err := confirm.New(confirm.DefaultSettings(), confirm.Deps{
		Store: in, Answers: records, Codes: contacts, Assigned: records, Contacts: phones{}, Oath: b.oathService,
		Messages: b.messages, Vault: b.ring, Audit: store.Audit{DB: b.db}, Now: b.clock.Now, Rand: rand.Reader,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// stepped is a family whose operator needs a second step by SMS.
type stepped struct {
	*family
	records *confirm.Service
}

func (f *family) stepped(t testing.TB) *stepped {
	t.Helper()
	s := &stepped{f, f.confirms(t)}
	s.services = s.serviceWith(t, settings(), deps{
		Keys: s.keys, Providers: []signin.Provider{elsewhere{}}, Steps: s.records, Policies: &policy.Service{Store: store.Policies{DB: s.db}},
	})
	// In the store: a change of methods would end what the test has.
	s.need(t, s.op.ID, signin.LevelSecondary)
	return s
}

func (s *stepped) need(t testing.TB, userID string, level int) {
	t.Helper()
	if err := (store.Tokens{DB: s.db}).SetMethod(t.Context(), userID, signin.StoredMethod{Name: "otpviasms", Level: level}); err != nil {
		t.Fatal(err)
	}
}

// confirm has the user type the code of the record of a first step.
func (s *stepped) confirm(t testing.TB, first signin.FirstStep) (*signin.Confirmer, *confirm.Record) {
	t.Helper()
	c := &signin.Confirmer{Who: first.Who, Client: able, First: &first}
	record, needed, err := s.SecondStep(t.Context(), first)
	if err != nil || !needed {
		t.Fatal(needed, err)
	}
	p, err := s.Challenge(t.Context(), c, &record, signin.Choice{})
	if err != nil {
		t.Fatal(err)
	}
	order := s.messages.orders[len(s.messages.orders)-1]
	p, err = s.records.Answer(t.Context(), first.Who, p.Record.RefID, order.Data["Code"])
	if err != nil || p.Record.State != confirm.Confirmed {
		t.Fatal(p.Record.State, err)
	}
	return c, &p.Record
}

// stepOf returns the first step in the refusal of a grant.
func (s *stepped) stepOf(t testing.TB, err error) (signin.FirstStep, string) {
	t.Helper()
	var needed *signin.StepNeeded
	if !errors.As(err, &needed) || needed.Code != tokens.SecondStepNeeded {
		t.Fatalf("%v", err)
	}
	first, err := s.OpenFirstStep(able, needed.Token)
	if err != nil {
		t.Fatal(err)
	}
	return first, needed.Token
}

// redeem completes the sign-in of a refused grant.
func (s *stepped) redeem(t testing.TB, refusal error) (tokens.Token, error) {
	t.Helper()
	first, _ := s.stepOf(t, refusal)
	c, record := s.confirm(t, first)
	return s.Redeem(t.Context(), c, record, true)
}

func (s *stepped) policy(t testing.TB, userID string, kind policy.Kind, actions policy.Action) {
	t.Helper()
	if err := (store.Policies{DB: s.db}).SetOwn(t.Context(), userID, kind, &policy.Setting{Actions: actions}); err != nil {
		t.Fatal(err)
	}
}

// exchange asks for a token of demo, as op who signed in with a second step.
func (s *stepped) exchange(t testing.TB) (actor tokens.Token, _ error) {
	t.Helper()
	_, refused := s.PasswordGrant(t.Context(), able, "op", secret, resource, everything)
	actor, err := s.redeem(t, refused)
	if err != nil {
		t.Fatal(err)
	}
	_, who, err := s.ExchangeGrant(t.Context(), able, signin.Exchange{
		Actor: actor.AccessToken, Subject: s.subject("demo", time.Hour), SubjectType: signin.TypeJWT, Resource: resource, Scope: everything,
	})
	if who.UserID != s.op.ID {
		t.Errorf("the exchange is of %+v", who)
	}
	return actor, err
}

// Each grant that needs a step gives the token of a first step, and the step gives what the
// grant would have given.
func TestGrantsWithStep(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(*testing.T, *stepped) error{
		"password": func(t *testing.T, s *stepped) error {
			_, err := s.PasswordGrant(t.Context(), able, "op", secret, resource, everything)
			return err
		},
		"password and Issue": func(t *testing.T, s *stepped) error {
			s.need(t, s.op.ID, signin.LevelPrimary)
			s.policy(t, s.op.ID, policy.Operation, policy.Issue)
			_, err := s.PasswordGrant(t.Context(), able, "op", secret, resource, everything)
			return err
		},
		"name alone to a public client": func(t *testing.T, s *stepped) error {
			open := settings()
			open.IDOnlyPublic = true
			s.services = s.serviceWith(t, open, deps{Keys: s.keys, Steps: s.records})
			_, err := s.PasswordGrant(t.Context(), able, "op", "", resource, everything)
			return err
		},
		"certificate": func(t *testing.T, s *stepped) error {
			_, _, err := s.AuthorizeCertificate(t.Context(), s.der, s.ask(everything, false))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFamily(t).stepped(t)
			refused := ask(t, s)
			first, sealed := s.stepOf(t, refused)
			middle, other := len(sealed)/2, "A"
			if sealed[middle] == 'A' {
				other = "B"
			}
			changed := sealed[:middle] + other + sealed[middle+1:]
			for what, open := range map[string]func() error{
				"another client": func() error { _, err := s.OpenFirstStep(signin.Client{ID: "other"}, sealed); return err },
				"a changed one":  func() error { _, err := s.OpenFirstStep(able, changed); return err },
				"none":           func() error { _, err := s.OpenFirstStep(able, "mfa-"); return err },
				"as an access token": func() error {
					_, err := s.Authenticate(t.Context(), sealed)
					return err
				},
				"as a confirmed token": func() error { _, err := s.AuthenticateConfirmed(t.Context(), sealed); return err },
				"as an actor token": func() error {
					_, _, err := s.ExchangeGrant(t.Context(), able, signin.Exchange{Actor: sealed, Subject: s.subject("demo", time.Hour), SubjectType: signin.TypeJWT, Resource: resource})
					if code(t, err) == tokens.InvalidRequest {
						return fault.New(fault.Unauthorized, "refused")
					}
					return err
				},
			} {
				if err := open(); !fault.Is(err, fault.Unauthorized) {
					t.Errorf("%s: %v", what, err)
				}
			}
			c, record := s.confirm(t, first)
			if _, err := s.Redeem(t.Context(), c, record, false); !fault.Is(err, fault.InvalidTransaction) {
				t.Errorf("the token goes to a call without the code: %v", err)
			}
			got, err := s.Redeem(t.Context(), c, record, true)
			if err != nil {
				t.Fatal(err)
			}
			if !s.holds(t, got.AccessToken) || got.Scope != everything || got.RefreshToken == "" {
				t.Errorf("%+v", got)
			}
			// What a confirmation results in needs no further one, whatever the policy.
			who, err := s.Authenticate(t.Context(), got.AccessToken)
			if err != nil {
				t.Fatal(err)
			}
			s.policy(t, s.op.ID, policy.Operation, policy.Issue)
			if _, err := s.IssueConfirmed(t.Context(), who, tokens.Confirmation{ID: confirmation, EndsAt: s.clock.Now().Add(time.Minute)}); err != nil {
				t.Errorf("a confirmed token: %v", err)
			}
			if _, err := s.IssueScope(t.Context(), who, "text", s.clock.Now().Add(time.Minute)); err != nil {
				t.Errorf("the token of a text: %v", err)
			}
			if _, err := s.RefreshGrant(t.Context(), able.ID, got.RefreshToken, "", ""); err != nil {
				t.Errorf("refreshing does not inherit the step: %v", err)
			}
			if _, err := s.Redeem(t.Context(), c, record, false); !fault.Is(err, fault.InvalidTransaction) {
				t.Errorf("twice, without the code: %v", err)
			}
			s.clock.add(20 * time.Second)
			again, err := s.Redeem(t.Context(), c, record, true)
			if want := got.ExpiresIn - 20*time.Second; err != nil || again.AccessToken != got.AccessToken || again.RefreshToken != got.RefreshToken || again.ExpiresIn != want {
				t.Errorf("the answer again: %v, %+v", err, again)
			}
			s.clock.add(10 * time.Minute)
			if _, err := s.OpenFirstStep(able, sealed); !fault.Is(err, fault.Unauthorized) {
				t.Errorf("after ten minutes: %v", err)
			}
		})
	}
}

// conflicts is a store whose transactions are rolled back as often as it says, and run again
// unless final.
type conflicts struct {
	confirm.Store
	left  int
	final bool
}

var errConflict = errors.New("a conflict of transactions")

func (c *conflicts) Atomic(ctx context.Context, set lock.Set, fn func(ctx context.Context) error) error {
	for ; c.left > 0; c.left-- {
		err := c.Store.Atomic(ctx, set, func(ctx context.Context) error { return errors.Join(fn(ctx), errConflict) })
		if c.final || !errors.Is(err, errConflict) {
			c.left--
			return err
		}
	}
	return c.Store.Atomic(ctx, set, fn)
}

// TestSignInAfterConflict completes sign-ins whose transaction is rolled back. A sign-in that
// stored nothing is not taken for a completed one.
func TestSignInAfterConflict(t *testing.T) {
	t.Parallel()
	for name, final := range map[string]bool{"runs again": false, "fails": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFamily(t).stepped(t)
			c := &conflicts{Store: store.Confirmations{DB: s.db}, final: final}
			s.records = s.confirmsIn(t, c)
			s.services = s.serviceWith(t, settings(), deps{Keys: s.keys, Steps: s.records})
			_, err := s.PasswordGrant(t.Context(), able, "op", secret, resource, everything)
			first, _ := s.stepOf(t, err)
			confirmer, record := s.confirm(t, first)
			c.left = 1
			got, err := s.Redeem(t.Context(), confirmer, record, true)
			if final {
				if !errors.Is(err, errConflict) || got.AccessToken != "" {
					t.Fatalf("%+v, %v", got, err)
				}
				// Nothing was stored, so the same client may complete the sign-in at once.
				got, err = s.Redeem(t.Context(), confirmer, record, true)
			}
			if err != nil || c.left != 0 {
				t.Fatal(c.left, err)
			}
			if !s.holds(t, got.AccessToken) {
				t.Error("the token is not valid")
			}
			if again, err := s.Redeem(t.Context(), confirmer, record, true); err != nil || again.AccessToken != got.AccessToken {
				t.Errorf("a second token: %v, %t", err, again.AccessToken != got.AccessToken)
			}
		})
	}
}

// TestSignInAtOnce completes one sign-in by several calls at the same time. One token is issued, and all of
// them get it.
func TestSignInAtOnce(t *testing.T) {
	t.Parallel()
	s := newFamily(t).stepped(t)
	_, err := s.PasswordGrant(t.Context(), able, "op", secret, resource, everything)
	first, _ := s.stepOf(t, err)
	confirmer, record := s.confirm(t, first)
	got, errs := make([]tokens.Token, 16), make([]error, 16)
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() { got[i], errs[i] = s.Redeem(t.Context(), confirmer, record, true) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if !s.holds(t, got[0].AccessToken) {
		t.Error("the token is not valid")
	}
	for i, other := range got {
		if other.AccessToken != got[0].AccessToken || other.RefreshToken != got[0].RefreshToken {
			t.Errorf("call %d got another token", i)
		}
	}
}

// TestNameAlone signs in by a name. To a client that may do so it is enough, unless the user has a
// second step.
func TestNameAlone(t *testing.T) {
	t.Parallel()
	for name, public := range map[string]bool{"confidential": false, "public": true} {
		s := newFamily(t).stepped(t)
		open := settings()
		open.IDOnlyPublic = true
		s.services = s.serviceWith(t, open, deps{Keys: s.keys, Steps: s.records})
		client := able
		client.Public = public
		ask := func() error {
			_, err := s.PasswordGrant(t.Context(), client, "op", "", resource, "")
			return err
		}
		if err := ask(); code(t, err) != tokens.SecondStepNeeded {
			t.Errorf("%s, with a second step: %v", name, err)
		}
		s.need(t, s.op.ID, signin.LevelPrimary)
		if err := ask(); err != nil {
			t.Errorf("%s, with a method that only confirms operations: %v", name, err)
		}
	}
}

// Attackers who know the name of a user begin sign-ins on many networks. None of these ends the
// sign-in of the user, who proved a password, or the one that the user began by name.
func TestAttackersByName(t *testing.T) {
	t.Parallel()
	s := newFamily(t).stepped(t)
	open := settings()
	open.IDOnlyPublic = true
	s.services = s.serviceWith(t, open, deps{Keys: s.keys, Steps: s.records})
	begin := func(network, password string) error {
		_, err := s.PasswordGrant(audit.WithNote(t.Context(), &audit.Note{Network: network}), able, "op", password, resource, everything)
		return err
	}
	proved, named := begin("192.0.2.1", secret), begin("192.0.2.1", "")
	limit := int(confirm.DefaultSettings().NamedSignIns)
	var refused int
	for i := range limit + 10 {
		var needed *signin.StepNeeded
		if err := begin(fmt.Sprint("203.0.113.", i), ""); code(t, err) != tokens.SecondStepNeeded {
			t.Fatal(err)
		} else if !errors.As(err, &needed) {
			refused++ // without a token: nothing waits
		}
	}
	if refused != 11 {
		t.Errorf("%d of %d attackers were refused, want 11", refused, limit+10)
	}
	for name, mine := range map[string]error{"by password": proved, "by name": named} {
		if got, err := s.redeem(t, mine); err != nil || !s.holds(t, got.AccessToken) {
			t.Errorf("the sign-in of the user %s: %v", name, err)
		}
		s.clock.add(time.Minute) // until another code may be sent
	}
}

// What changes between the first step and the token ends the sign-in.
func TestFirstStepEnds(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testing.T, *stepped) error{
		"a password":   func(t *testing.T, s *stepped) error { return s.SetPassword(t.Context(), s.op.ID, "another password") },
		"a method":     func(t *testing.T, s *stepped) error { return s.GrantMethod(t.Context(), s.op.ID, "oath") },
		"a first step": func(t *testing.T, s *stepped) error { return s.GrantMethod(t.Context(), s.op.ID, "idonly") },
		"a cancelation": func(t *testing.T, s *stepped) error {
			return s.records.CancelAll(t.Context(), audit.Principal{}, s.op.ID, "test")
		},
		"a lock": func(t *testing.T, s *stepped) error { return s.users.Lock(t.Context(), s.op.ID) },
		"an access policy": func(t *testing.T, s *stepped) error {
			s.policy(t, s.op.ID, policy.Access, policy.Issue)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFamily(t).stepped(t)
			_, refused := s.PasswordGrant(t.Context(), able, "op", secret, resource, "")
			first, _ := s.stepOf(t, refused)
			c, record := s.confirm(t, first)
			if err := change(t, s); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Redeem(t.Context(), c, record, true); err == nil || got.AccessToken != "" {
				t.Errorf("after the change: %+v", got)
			}
		})
	}
}

// A first step opens its own record alone, and no other first step opens it.
func TestFirstStepIsOnesOwn(t *testing.T) {
	t.Parallel()
	s := newFamily(t).stepped(t)
	_, refused := s.PasswordGrant(t.Context(), able, "op", secret, resource, "")
	first, _ := s.stepOf(t, refused)
	_, refused = s.PasswordGrant(t.Context(), able, "op", secret, resource, "")
	second, _ := s.stepOf(t, refused)
	_, record := s.confirm(t, first)
	proven, err := s.FirstByPassword(t.Context(), able, "op", secret)
	if err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]signin.FirstStep{"another sign-in": second, "the password": proven} {
		c := &signin.Confirmer{Who: other.Who, Client: able, First: &other}
		if err := c.May(record); !fault.Is(err, fault.InvalidTransaction) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.Redeem(t.Context(), c, record, true); !fault.Is(err, fault.InvalidTransaction) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r, _, err := s.SecondStep(t.Context(), proven); err != nil || r.ID == record.ID {
		t.Errorf("the password gets the record of another sign-in: %v", err)
	}
	if _, err := s.SignIn(t.Context(), proven, nil); code(t, err) != tokens.SecondStepNeeded {
		t.Errorf("without the step: %v", err)
	}
}

// A user whose sign-ins are confirmed also confirms the exchange of an operator. What the
// operator gets is bound to the operator's sign-in as without a confirmation.
func TestExchangeWithStep(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T) (*stepped, tokens.Token, error) {
		s := newFamily(t).stepped(t)
		s.need(t, s.demo.ID, signin.LevelPrimary)
		s.policy(t, s.demo.ID, policy.Operation, policy.Issue)
		actor, refused := s.exchange(t)
		return s, actor, refused
	}
	t.Run("confirmed", func(t *testing.T) {
		t.Parallel()
		s, actor, refused := begin(t)
		first, _ := s.stepOf(t, refused)
		if first.Who.UserID != s.demo.ID || first.Who.Actor != "op" || first.Who.Operator {
			t.Errorf("%+v", first.Who)
		}
		got, err := s.redeem(t, refused)
		if err != nil {
			t.Fatal(err)
		}
		who, err := s.Authenticate(t.Context(), got.AccessToken)
		if err != nil || who.Actor != "op" || who.UserID != s.demo.ID || got.RefreshToken != "" || strings.Contains(got.Scope, "openid") {
			t.Errorf("%+v %+v %v", who, got, err)
		}
		if payload(t, got.AccessToken).Expiry > payload(t, actor.AccessToken).Expiry {
			t.Error("it outlives the operator's token")
		}
		if err := s.sessions.EndAll(t.Context(), s.op.ID); err != nil {
			t.Fatal(err)
		}
		if s.holds(t, got.AccessToken) {
			t.Error("it outlives the operator's sign-in")
		}
	})
	for name, change := range map[string]func(*testing.T, *stepped) error{
		"the operator signs out":          func(t *testing.T, s *stepped) error { return s.sessions.EndAll(t.Context(), s.op.ID) },
		"the operator is locked":          func(t *testing.T, s *stepped) error { return s.users.Lock(t.Context(), s.op.ID) },
		"the operator's token expires":    func(_ *testing.T, s *stepped) error { s.clock.add(301 * time.Second); return nil },
		"the operator may have no tokens": func(t *testing.T, s *stepped) error { s.policy(t, s.op.ID, policy.Access, policy.Issue); return nil },
		"the operator loses the group": func(t *testing.T, s *stepped) error {
			return (store.Users{DB: s.db}).SetOperatorGroups(t.Context(), s.op.ID, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _, refused := begin(t)
			first, _ := s.stepOf(t, refused)
			c, record := s.confirm(t, first)
			if err := change(t, s); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Redeem(t.Context(), c, record, true); err == nil || got.AccessToken != "" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// The level of a method says for every first step whether the method is a second one. An
// operator who acts for a user needs none, unless a policy of the user has it confirmed.
func TestLevels(t *testing.T) {
	t.Parallel()
	s := newFamily(t).stepped(t)
	proven := able
	proven.Public = false
	actor, err := func() (tokens.Token, error) {
		_, refused := s.PasswordGrant(t.Context(), able, "op", secret, resource, "dss")
		return s.redeem(t, refused)
	}()
	if err != nil {
		t.Fatal(err)
	}
	page := func(issued signin.Authorized, _ audit.Principal, err error) error {
		if err == nil && issued.Step != nil && issued.Code == "" {
			return tokens.Refuse(tokens.SecondStepNeeded, "the page asks")
		}
		return err
	}
	grants := map[string]func() error{
		"password":        func() error { _, err := s.PasswordGrant(t.Context(), able, "op", secret, resource, ""); return err },
		"name":            func() error { _, err := s.PasswordGrant(t.Context(), proven, "op", "", resource, ""); return err },
		"certificate":     func() error { _, _, err := s.AuthorizeCertificate(t.Context(), s.der, s.ask("", false)); return err },
		"own certificate": func() error { _, err := s.AuthenticateCertificate(t.Context(), s.der); return err },
		"page":            func() error { return page(s.AuthorizePassword(t.Context(), "op", secret, s.ask("", false))) },
		"provider": func() error {
			return page(s.AuthorizeExternal(t.Context(), signin.Pending{Provider: "idp"}, "answer", s.ask("", false)))
		},
		"password at the confirmation": func() error {
			first, err := s.FirstByPassword(t.Context(), able, "op", secret)
			if err == nil {
				_, err = s.Service.SignIn(t.Context(), first, nil)
			}
			return err
		},
		"certificate at the confirmation": func() error {
			first, err := s.FirstByCertificate(t.Context(), able, s.der)
			if err == nil {
				_, err = s.Service.SignIn(t.Context(), first, nil)
			}
			return err
		},
	}
	for level, second := range []bool{true, false, true, true} {
		s.need(t, s.op.ID, level)
		s.need(t, s.demo.ID, level)
		for name, grant := range grants {
			err := grant()
			needed := fault.Is(err, fault.Unauthorized) // of a certificate without a grant
			if g := (*tokens.GrantError)(nil); errors.As(err, &g) {
				needed = g.Code == tokens.SecondStepNeeded
			} else if err != nil && !needed {
				t.Fatal(err)
			}
			if needed != second {
				t.Errorf("level %d, %s: a second step is needed: %v; %v", level, name, needed, err)
			}
		}
		if _, _, err := s.ExchangeGrant(t.Context(), able, signin.Exchange{Actor: actor.AccessToken, Subject: s.subject("demo", time.Hour), SubjectType: signin.TypeJWT, Resource: resource}); err != nil {
			t.Errorf("level %d: an exchange: %v", level, err)
		}
	}
	if _, err := s.FirstByCertificate(t.Context(), signin.Client{ID: "codeless"}, s.der); code(t, err) != tokens.UnauthorizedClient {
		t.Errorf("a client without codes: %v", err)
	}
	if _, err := s.FirstByCertificate(t.Context(), able, newCertificate(t, "unregistered")); code(t, err) != tokens.AccessDenied {
		t.Errorf("an unregistered certificate: %v", err)
	}
}
