// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	randv2 "math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/session"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/token"
	"tamga/internal/domain/user"
	"tamga/internal/domain/vault"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// process is what one process does to people, over a handle of its own.
type process struct {
	db       *store.DB
	users    *user.Service
	book     *contact.Book
	tokens   store.Tokens
	sessions *session.Service
	keys     *keys.Service
	subject  x509gost.Name // of certificates
}

// inOutbox orders two messages for each event, as the package notify does: it counts them
// in budgets that all users share.
type inOutbox struct {
	silent
	outbox store.Outbox
}

func (o inOutbox) Call(context.Context, notify.Call) error { return nil }

func (o inOutbox) Emit(ctx context.Context, e notify.Event) error {
	for _, channel := range []notify.Channel{notify.Email, notify.SMS} {
		budgets := []notify.BudgetLimit{
			{Key: string(channel) + " address " + e.UserID, Limit: 1e9}, {Key: string(channel) + " caller " + e.Actor, Limit: 1e9, Loose: true},
		}
		if _, err := o.outbox.SpendBudgets(ctx, budgets, time.UnixMilli(1), time.Hour); err != nil {
			return err
		}
		now := time.Now()
		if err := o.outbox.AddMessage(ctx, notify.Record{
			ID: rand.Text(), Channel: channel, To: e.UserID, State: notify.Pending, Sealed: []byte{1}, CreatedAt: now, DueAt: now, ExpiresAt: now.Add(time.Hour),
		}); err != nil {
			return err
		}
	}
	return nil
}

func newProcess(t *testing.T, db *store.DB, unique bool) process {
	t.Helper()
	naming, err := user.NewNaming(user.DefaultComponents(), false)
	if err != nil {
		t.Fatal(err)
	}
	users, contacts, tokens := store.Users{DB: db}, store.Contacts{DB: db}, store.Tokens{DB: db}
	p := process{db: db, tokens: tokens, sessions: session.New(tokens)}
	events := inOutbox{outbox: store.Outbox{DB: db}}
	records := store.Confirmations{DB: db}
	cancels := confirm.NewCanceller(confirm.CancelDeps{
		Store: records, Answers: records, Audit: store.Audit{DB: db}, Events: events, Language: "en", Now: time.Now,
	})
	p.users = &user.Service{
		Store: users, GroupStore: users, LoginStore: users, NameStore: users, SearchStore: users,
		Sessions: p.sessions, Confirmations: cancels, Events: events, Naming: naming, LocalIssuer: "realsts", Now: time.Now, Rand: rand.Reader,
		Issuers: []user.Issuer{{Name: "other"}},
	}
	settings := contact.DefaultSettings()
	settings.Unique = unique
	p.book, err = contact.New(settings, contact.Deps{
		Store: contacts, Codes: contacts, Reach: p.users, Methods: p.sessions, Confirmations: cancels, Notices: events, Now: time.Now, Rand: rand.Reader,
	})
	if err != nil {
		t.Fatal(err)
	}
	p.users.Contacts = p.book
	ring, err := vault.NewRing("a", map[string][]byte{"a": make([]byte, vault.MasterKeySize)}, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	holder, err := vault.NewSoftHolder(ring, rand.Reader, vault.SoftOptions{})
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := authority.New(authority.Config{}, store.Authority{DB: db}, vault.OnlySoftware(holder), rand.Reader, time.Now)
	if err == nil {
		err = issuer.Bootstrap(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	stored := store.Keys{DB: db}
	p.keys, err = keys.New(keys.Options{
		Store: stored, RequestStore: stored, StatusStore: stored, PINStore: stored,
		Holders: vault.OnlySoftware(holder), Authority: issuer, Rand: rand.Reader, Now: time.Now, Policy: allowed{}, Events: ofTheUser{events},
	})
	if err == nil {
		p.subject, err = x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: "x"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// allowed is an access policy that allows everything.
type allowed struct{}

func (allowed) Permit(context.Context, string, policy.Action) error { return nil }

// ofTheUser counts the events of users without an actor as those of the user. In one row
// for all, serializable units would refuse each other.
type ofTheUser struct{ keys.Events }

func (o ofTheUser) Emit(ctx context.Context, e notify.Event) error {
	e.Actor = cmp.Or(e.Actor, e.UserID)
	return o.Events.Emit(ctx, e)
}

// issue adds a certificate of a user.
func (p process) issue(ctx context.Context, userID string, standard bool) error {
	_, err := p.keys.Issue(ctx, keys.IssueOrder{UserID: userID, Suite: suite.GOST2012x256, Subject: p.subject, Default: standard})
	return err
}

// raceLimits are long for a busy machine. A test that needs them fails.
var raceLimits = store.Limits{Idle: 20 * time.Second, Lock: 20 * time.Second, Statement: 30 * time.Second, Call: 40 * time.Second}

func answered(err error) bool {
	var f *fault.Error
	return err == nil || errors.As(err, &f) && !fault.Is(err, fault.Unavailable)
}

// TestPeopleAtOnce changes a few users in all ways on two processes at the same time.
// Units of keys and certificates take part. PostgreSQL finds no deadlock, no unit gives up,
// and every unit locks in order.
func TestPeopleAtOnce(t *testing.T) {
	url := storetest.OwnPostgreSQL(t, "deadlock_timeout=20ms").Database(t)
	storetest.Open(t, url)
	watched := store.Options{Limits: raceLimits, Now: time.Now}
	a, b := openLimited(t, url, watched), openLimited(t, url, watched)
	processes := []process{newProcess(t, a, false), newProcess(t, b, true)}
	watches := []*store.LockWatch{store.WatchLocks(a), store.WatchLocks(b)}
	first := processes[0]
	if _, err := first.users.AddGroup(t.Context(), "Default", ""); err != nil {
		t.Fatal(err)
	}
	var operators []audit.Principal
	for i := range 2 {
		u, err := first.users.Add(t.Context(), user.Account{Login: fmt.Sprint("operator", i), Operator: true, Groups: []string{"Default"}})
		if err != nil {
			t.Fatal(err)
		}
		operators = append(operators, audit.Principal{UserID: u.ID, Operator: true})
	}
	people := []string{operators[0].UserID, operators[1].UserID} // operators are users too
	for i := range 4 {
		u, err := first.users.Add(t.Context(), user.Account{Login: fmt.Sprint("person", i), Group: "Default"})
		if err != nil {
			t.Fatal(err)
		}
		people = append(people, u.ID)
	}
	var number atomic.Int64
	parents := []string{"parent0", "parent1"}
	issue := func(ctx context.Context, p process, id, userID, actor, parent string) error {
		now := time.Now()
		_, err := p.tokens.AddToken(ctx, token.Record{ID: id, UserID: userID, ActorID: actor, GrantID: parent, CreatedAt: now, ExpiresAt: now.Add(time.Hour), SignedInAt: now},
			token.Proof{Granted: true, Delegated: actor != "", Parent: parent, Now: now})
		return err
	}
	ways := []func(ctx context.Context, p process, who audit.Principal, id string, n int) error{
		func(ctx context.Context, p process, who audit.Principal, id string, n int) error {
			login := []string{"oca", "оса", "79001112233", "new"}[n%4]
			made, err := p.users.Register(ctx, who, user.Registration{Identifiers: map[user.IdentifierType]string{
				user.Login: login, user.PhoneNumber: fmt.Sprint(79001112230 + n%5), user.Email: fmt.Sprint("a", n%3, "@example.ru"),
			}})
			if err != nil {
				return err
			}
			if n%2 == 0 {
				if err := p.issue(ctx, made, true); err != nil {
					return err
				}
			}
			return p.users.Delete(ctx, who, made, false)
		},
		func(ctx context.Context, p process, who audit.Principal, id string, n int) error {
			return p.users.SetLocalLogin(ctx, who, id, []string{"acc", "асс", "79001112234"}[n%3])
		},
		func(ctx context.Context, p process, who audit.Principal, id string, n int) error {
			return p.users.SetLogin(ctx, who, id, user.ExternalLogin{Login: fmt.Sprint("x", n%3), Issuer: "other"})
		},
		func(ctx context.Context, p process, who audit.Principal, id string, n int) error {
			return p.book.SetMain(ctx, who, id, contact.Phone, fmt.Sprint(79001112230+n%5))
		},
		func(ctx context.Context, p process, who audit.Principal, id string, n int) error {
			_, err := p.book.Add(ctx, who, id, contact.Email, fmt.Sprint("a", n%3, "@example.ru"))
			return err
		},
		func(ctx context.Context, p process, who audit.Principal, id string, n int) error {
			return p.book.DeleteMain(ctx, who, id, contact.Phone)
		},
		func(ctx context.Context, p process, who audit.Principal, id string, n int) error {
			return p.users.Approve(ctx, who, id, true)
		},
		func(ctx context.Context, p process, who audit.Principal, id string, n int) error {
			return issue(ctx, p, fmt.Sprint("token", n), id, operators[n%2].UserID, parents[n%2])
		},
		func(ctx context.Context, p process, who audit.Principal, id string, n int) error {
			return issue(ctx, p, fmt.Sprint("own", n), id, "", "")
		},
		func(ctx context.Context, p process, who audit.Principal, id string, n int) error {
			return p.sessions.EndAll(ctx, people[n%2])
		},
		func(ctx context.Context, p process, who audit.Principal, id string, n int) error {
			g := token.Grant{ID: fmt.Sprint("g", n), Handle: sha256.Sum256(fmt.Append(nil, n)), UserID: people[n%2], ExpiresAt: time.Now().Add(time.Hour)}
			if err := p.tokens.AddGrant(ctx, g); err != nil {
				return err
			}
			if err := issue(ctx, p, g.ID, g.UserID, "", ""); err != nil {
				return err
			}
			if err := issue(ctx, p, g.ID+"d", id, g.UserID, g.ID); err != nil {
				return err
			}
			_, err := p.tokens.EndGrant(ctx, g.Handle)
			return err
		},
		func(ctx context.Context, p process, who audit.Principal, id string, n int) error {
			return p.users.SetOperatorGroups(ctx, people[n%2], []string{"Default"})
		},
		func(ctx context.Context, p process, who audit.Principal, id string, n int) error {
			return p.tokens.SweepTokens(ctx, time.Now(), time.Now().Add(time.Hour*time.Duration(n%2)))
		},
		func(ctx context.Context, p process, who audit.Principal, id string, n int) error {
			return p.issue(ctx, id, n%2 == 0)
		},
		func(ctx context.Context, p process, who audit.Principal, id string, n int) error {
			list, err := p.keys.List(ctx, id)
			if err != nil || len(list) == 0 {
				return err
			}
			number := list[n%len(list)].ID
			own, text := keys.Act{Who: audit.Principal{UserID: id}}, strconv.FormatInt(number, 10)
			switch n % 6 {
			case 0:
				_, err = p.keys.SetStatus(ctx, own, text, keys.StatusOrder{Status: keys.Hold})
			case 1:
				_, err = p.keys.SetStatus(ctx, own, text, keys.StatusOrder{Status: keys.Active})
			case 2:
				_, err = p.keys.SetStatus(ctx, own, text, keys.StatusOrder{Status: keys.Revoked})
			case 3:
				_, err = p.keys.SetFriendlyName(ctx, own, text, fmt.Sprint("name ", n))
			case 4:
				_, err = p.keys.Delete(ctx, own, text, false)
			case 5: // by an administrator
				err = p.keys.Unhold(ctx, number)
			}
			return err
		},
		func(ctx context.Context, p process, who audit.Principal, id string, n int) error {
			s := store.Outbox{DB: p.db}
			list, err := s.ClaimMessages(ctx, notify.Email, fmt.Sprint("lease", n), time.Now(), time.Now().Add(time.Minute), 10)
			for _, m := range list {
				if _, err := s.FinishMessage(ctx, m.ID, fmt.Sprint("lease", n), notify.Ending{State: notify.Sent, At: time.Now()}); err != nil {
					return err
				}
			}
			return err
		},
	}
	const callers, rounds = 16, 25
	for i, parent := range parents {
		if err := issue(t.Context(), first, parent, people[i], "", ""); err != nil {
			t.Fatal(err)
		}
	}
	done := make([]atomic.Int64, len(ways))
	for _, err := range atOnce(callers, func() error {
		for range rounds {
			n := int(number.Add(1))
			chance := randv2.New(randv2.NewPCG(1, uint64(n)))
			way := chance.IntN(len(ways))
			err := ways[way](t.Context(), processes[n%2], operators[chance.IntN(2)], people[chance.IntN(len(people))], chance.IntN(1<<20)*100+n%100)
			if !answered(err) {
				return fmt.Errorf("way %d: %w", way, err)
			}
			if err == nil {
				done[way].Add(1)
			}
		}
		return nil
	}) {
		if err != nil {
			t.Error(err)
		}
	}
	for way := range done {
		if done[way].Load() == 0 {
			t.Errorf("way %d never succeeded: the test shows nothing about it", way)
		}
	}
	for _, w := range watches {
		w.Check(t)
	}
	for _, pair := range [][2]string{{"users", "lock_stripes"}, {"users", "access_tokens"}, {"access_tokens", "message_budgets"}, {"message_budgets", "outbox"}, {"users", "authorities"}, {"authorities", "outbox"}} {
		if !watches[0].Saw(pair[0], pair[1]) {
			t.Errorf("no unit locked %s and then %s: the watch is blind", pair[0], pair[1])
		}
	}
	a.Close() // sessions report what they counted when they end
	b.Close()
	var deadlocks int
	admin := adminOf(t, url)
	for begun := time.Now(); ; {
		var sessions int
		if err := admin.QueryRowContext(t.Context(), `SELECT deadlocks, (SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = 'tamga')
			FROM pg_stat_database WHERE datname = current_database()`).Scan(&deadlocks, &sessions); err != nil {
			t.Fatal(err)
		}
		if sessions <= 2 || time.Since(begun) > time.Minute { // those of the handle that migrated
			break
		}
	}
	if deadlocks != 0 {
		t.Errorf("PostgreSQL ended %d deadlocks", deadlocks)
	}
}

// TestUniqueAtOnce lets two processes decide at the same moment about values that must be
// unique among users.
func TestUniqueAtOnce(t *testing.T) {
	url := storetest.PostgreSQL(t).Database(t)
	storetest.Open(t, url)
	processes := []process{
		newProcess(t, openLimited(t, url, store.Options{Limits: raceLimits}), true),
		newProcess(t, openLimited(t, url, store.Options{Limits: raceLimits}), true),
	}
	if _, err := processes[0].users.AddGroup(t.Context(), "Default", ""); err != nil {
		t.Fatal(err)
	}
	operator, err := processes[0].users.Add(t.Context(), user.Account{Login: "operator", Operator: true, Groups: []string{"Default"}})
	if err != nil {
		t.Fatal(err)
	}
	who := audit.Principal{UserID: operator.ID, Operator: true}
	register := func(p process, kind user.IdentifierType, value string) (string, error) {
		return p.users.Register(t.Context(), who, user.Registration{Identifiers: map[user.IdentifierType]string{kind: value}})
	}
	var persons []string
	for i := range 2 {
		id, err := register(processes[0], user.Login, fmt.Sprint("person", i))
		if err != nil {
			t.Fatal(err)
		}
		persons = append(persons, id)
	}
	for name, try := range map[string]func(round, i int) error{
		"logins that look alike": func(round, i int) error {
			_, err := register(processes[i], user.Login, fmt.Sprint([]string{"oca", "оса"}[i], round))
			return err
		},
		"a contact for one user": func(round, i int) error {
			_, err := processes[i].book.Add(t.Context(), who, persons[i], contact.Email, fmt.Sprint("x", round, "@example.ru"))
			return err
		},
		"a primary contact": func(round, i int) error {
			return processes[i].book.SetMain(t.Context(), who, persons[i], contact.Phone, fmt.Sprint(79007770000+round))
		},
		"a login": func(round, i int) error {
			return processes[i].users.SetLocalLogin(t.Context(), who, persons[i], fmt.Sprint("same", round))
		},
		"an external login": func(round, i int) error {
			return processes[i].users.SetLogin(t.Context(), who, persons[i], user.ExternalLogin{Login: fmt.Sprint("y", round), Issuer: "other"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			for round := range 15 {
				var number, won atomic.Int64
				for _, err := range atOnce(2, func() error {
					err := try(round, int(number.Add(1)-1))
					if err == nil {
						won.Add(1)
					}
					return err
				}) {
					if !answered(err) {
						t.Error(err)
					}
				}
				if n := won.Load(); n != 1 {
					t.Fatalf("round %d: %d won, want 1", round, n)
				}
			}
		})
	}
}

// TestNoTokenSurvives ends the sign-ins of a user on one process while another one issues
// tokens: by the old password, and as an operator for the user.
func TestNoTokenSurvives(t *testing.T) {
	url := storetest.PostgreSQL(t).Database(t)
	storetest.Open(t, url)
	a, b := openLimited(t, url, store.Options{Limits: raceLimits}), openLimited(t, url, store.Options{Limits: raceLimits})
	admin := adminOf(t, url)
	if err := (store.Users{DB: a}).AddGroup(t.Context(), user.Group{Name: "Default"}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"operator", "person"} {
		addUser(t, a, id)
		if err := (store.Tokens{DB: a}).SetMethod(t.Context(), id, signin.StoredMethod{Name: "password", Level: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 15 {
		old, next := store.Tokens{DB: a}, store.Tokens{DB: b}
		now := time.Now()
		record := func(id, userID string) token.Record {
			return token.Record{ID: fmt.Sprint(id, round), UserID: userID, Method: "password", CreatedAt: now, ExpiresAt: now.Add(time.Hour), SignedInAt: now}
		}
		if err := old.SetPassword(t.Context(), "operator", fmt.Sprint("old", round)); err != nil {
			t.Fatal(err)
		}
		proof := token.Proof{Method: "password", Encoded: fmt.Sprint("old", round), Now: now}
		if ok, err := old.AddToken(t.Context(), record("parent", "operator"), proof); !ok || err != nil {
			t.Fatal(ok, err)
		}
		var number atomic.Int64
		for _, err := range atOnce(9, func() error {
			n := number.Add(1)
			switch {
			case n == 5:
				return next.Atomic(t.Context(), lock.User("operator"), func(ctx context.Context) error {
					if err := next.SetPassword(ctx, "operator", fmt.Sprint("new", round)); err != nil {
						return err
					}
					return next.RevokeTokens(ctx, "operator")
				})
			case n%2 == 0:
				_, err := old.AddToken(t.Context(), record(fmt.Sprint("own", n), "operator"), proof)
				return err
			default:
				r := record(fmt.Sprint("delegated", n), "person")
				r.ActorID, r.GrantID = "operator", fmt.Sprint("parent", round)
				_, err := old.AddToken(t.Context(), r, token.Proof{Delegated: true, Granted: true, Parent: r.GrantID, Now: now})
				return err
			}
		}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		var valid int
		if err := admin.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM access_tokens WHERE NOT revoked").Scan(&valid); err != nil || valid != 0 {
			t.Fatalf("round %d: %d tokens survived, %v", round, valid, err)
		}
	}
}
