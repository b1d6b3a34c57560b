package storetest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/auth"
	"tamga/internal/domain/user"
)

func testTokens(t *testing.T, open func(t *testing.T) *store.DB) {
	rule := auth.LockOut{Failures: 3, Window: 15 * time.Minute, LockOut: 20 * time.Minute}
	login := auth.LoginKey(sha256.Sum256([]byte("login")))
	other := auth.LoginKey(sha256.Sum256([]byte("other")))
	cases{
		{"Passwords", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			group(t, db, "Default")
			u := person(t, db, 1)
			if _, err := s.CredentialByLogin(t.Context(), "user1"); !errors.Is(err, auth.ErrNotFound) {
				t.Errorf("without a password: %v, want %v", err, auth.ErrNotFound)
			}
			for _, encoded := range []string{"first", "second"} {
				must(t, s.SetPassword(t.Context(), u.ID, encoded, start))
				got, err := s.CredentialByLogin(t.Context(), "user1")
				must(t, err)
				if d := cmp.Diff(auth.Credential{User: u, Encoded: encoded}, got); d != "" {
					t.Error(d)
				}
			}
			if err := s.SetPassword(t.Context(), "nobody", "x", start); !errors.Is(err, auth.ErrNotFound) {
				t.Errorf("unknown user: %v, want %v", err, auth.ErrNotFound)
			}
			if _, err := s.CredentialByLogin(t.Context(), "a\x00\xff"); !errors.Is(err, auth.ErrNotFound) {
				t.Errorf("hostile login: %v, want %v", err, auth.ErrNotFound)
			}
		}},
		{"Attempts", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			for i, c := range []struct {
				login   auth.LoginKey
				minute  int
				correct bool
				want    bool
			}{
				{login, 0, false, true},
				{login, 1, false, true},
				{other, 1, false, true},
				{login, 2, false, true},   // the third locks out until minute 22
				{login, 2, true, false},   // correct or not
				{login, 21, false, false}, // nothing is counted meanwhile
				{other, 21, false, true},  // another login has its own count
				{login, 22, false, true},  // the end itself is free, and a new window begins
				{login, 36, false, true},
				{login, 37, false, true}, // minute 22 is out of the window: this is the first
				{login, 38, true, true},  // a correct one forgets
				{login, 38, false, true},
				{login, 38, false, true},
				{login, 38, false, true},
				{login, 38, false, false},
			} {
				at := start.Add(time.Duration(c.minute) * time.Minute)
				got, err := s.BeginAttempt(t.Context(), c.login, at, rule)
				must(t, err)
				if got != c.want {
					t.Errorf("row %d, minute %d: %v, want %v", i, c.minute, got, c.want)
				}
				if got && c.correct {
					must(t, s.EndAttempt(t.Context(), c.login))
				}
			}
		}},
		{"AttemptsKeepTheirCountAfterAShortLockOut", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			short := auth.LockOut{Failures: 3, Window: time.Hour, LockOut: time.Minute}
			for i, c := range []struct {
				minute int
				want   bool
			}{
				{0, true}, {0, true}, {0, true}, {0, false},
				{1, true}, {1, false}, // one more, not three
				{2, true}, {2, false},
				{60, true}, {60, true}, {60, true}, {60, false}, // a new window
			} {
				got, err := s.BeginAttempt(t.Context(), login, start.Add(time.Duration(c.minute)*time.Minute), short)
				must(t, err)
				if got != c.want {
					t.Errorf("row %d, minute %d: %v, want %v", i, c.minute, got, c.want)
				}
			}
		}},
		{"ALimitOfOne", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			one := auth.LockOut{Failures: 1, Window: time.Minute, LockOut: time.Minute}
			for i, want := range []bool{true, false} {
				if got, err := s.BeginAttempt(t.Context(), login, start, one); err != nil || got != want {
					t.Errorf("attempt %d: %v, %v; want %v", i, got, err, want)
				}
			}
		}},
		{"AttemptsAtOnceShareTheBudget", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			ten := auth.LockOut{Failures: 10, Window: time.Minute, LockOut: time.Minute}
			admitted := make([]bool, 64)
			for _, err := range together(len(admitted), func(i int) (err error) {
				admitted[i], err = s.BeginAttempt(t.Context(), login, start, ten)
				return err
			}) {
				must(t, err)
			}
			n := 0
			for _, ok := range admitted {
				if ok {
					n++
				}
			}
			if n != 10 {
				t.Errorf("%d of 64 attempts were admitted, want 10", n)
			}
		}},
		{"Records", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			group(t, db, "Default")
			u := person(t, db, 1)
			must(t, s.SetPassword(t.Context(), u.ID, "encoded", start))
			record := auth.TokenRecord{ID: "jti", UserID: u.ID, ClientID: "client", Method: "password", CreatedAt: start, ExpiresAt: start.Add(time.Minute)}
			if ok, err := s.AddToken(t.Context(), record, "encoded"); err != nil || !ok {
				t.Fatalf("adding: %v, %v", ok, err)
			}
			got, err := s.BearerByToken(t.Context(), "jti")
			must(t, err)
			if d := cmp.Diff(auth.Bearer{Token: record, User: u}, got); d != "" {
				t.Error(d)
			}
			must(t, s.RevokeTokens(t.Context(), "nobody"))
			if got, err := s.BearerByToken(t.Context(), "jti"); err != nil || got.Token.Revoked {
				t.Errorf("revoked with somebody else's: %v, %v", got.Token.Revoked, err)
			}
			must(t, s.RevokeTokens(t.Context(), u.ID))
			if got, err := s.BearerByToken(t.Context(), "jti"); err != nil || !got.Token.Revoked {
				t.Errorf("not revoked: %v", err)
			}
			if _, err := s.BearerByToken(t.Context(), "unknown"); !errors.Is(err, auth.ErrNotFound) {
				t.Errorf("unknown token: %v, want %v", err, auth.ErrNotFound)
			}

			record.ID = "jti-2"
			if ok, err := s.AddToken(t.Context(), record, "an older password"); err != nil || ok {
				t.Errorf("after a change of password: %v, %v; want no token", ok, err)
			}
			must(t, store.Users{DB: db}.SetLocked(t.Context(), u.ID, true))
			if ok, err := s.AddToken(t.Context(), record, "encoded"); err != nil || ok {
				t.Errorf("of a locked user: %v, %v; want no token", ok, err)
			}
		}},
		{"OperatorsBringTheirGroups", func(t *testing.T, db *store.DB) {
			s, users := store.Tokens{DB: db}, store.Users{DB: db}
			group(t, db, "A")
			group(t, db, "B")
			u := user.User{ID: "op", Login: "op", Group: "A", Operator: true}
			must(t, users.AddUser(t.Context(), u, "op"))
			must(t, users.SetOperatorGroups(t.Context(), "op", []string{"B", "A"}))
			must(t, s.SetPassword(t.Context(), "op", "encoded", start))
			if ok, err := s.AddToken(t.Context(), auth.TokenRecord{ID: "jti", UserID: "op", ExpiresAt: start}, "encoded"); err != nil || !ok {
				t.Fatal(ok, err)
			}
			b, err := s.BearerByToken(t.Context(), "jti")
			must(t, err)
			if d := cmp.Diff([]string{"A", "B"}, b.Groups); d != "" || !b.User.Operator {
				t.Errorf("operator %v, groups %s", b.User.Operator, d)
			}
		}},
		{"Sweep", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			group(t, db, "Default")
			u := person(t, db, 1)
			must(t, s.SetPassword(t.Context(), u.ID, "encoded", start))
			for id, life := range map[string]time.Duration{"past": -1, "now": 0, "next": 1} {
				if ok, err := s.AddToken(t.Context(), auth.TokenRecord{ID: id, UserID: u.ID, ExpiresAt: start.Add(life * time.Minute)}, "encoded"); err != nil || !ok {
					t.Fatal(ok, err)
				}
			}
			for range rule.Failures { // login is locked out until minute 20 with a window until 15
				_, err := s.BeginAttempt(t.Context(), login, start, rule)
				must(t, err)
			}
			must(t, s.Sweep(t.Context(), start, rule.Window))
			for id, want := range map[string]bool{"past": false, "now": false, "next": true} {
				_, err := s.BearerByToken(t.Context(), id)
				if (err == nil) != want {
					t.Errorf("token %s: %v, want found %v", id, err, want)
				}
			}
			must(t, s.Sweep(t.Context(), start.Add(16*time.Minute), rule.Window))
			if ok, err := s.BeginAttempt(t.Context(), login, start.Add(16*time.Minute), rule); err != nil || ok {
				t.Errorf("a sweep lifted the lock-out: %v, %v", ok, err)
			}
			// Swept or not, an ended count counts for nothing; what shows the
			// sweep is a window that would still hold it.
			must(t, s.Sweep(t.Context(), start.Add(20*time.Minute), rule.Window))
			long := auth.LockOut{Failures: 3, Window: time.Hour, LockOut: time.Hour}
			for i := range 3 {
				if ok, err := s.BeginAttempt(t.Context(), login, start.Add(20*time.Minute), long); err != nil || !ok {
					t.Errorf("attempt %d after the sweep: %v, %v", i, ok, err)
				}
			}
		}},
		{"SweepInPortions", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			const n = 2100
			for _, err := range together(n, func(i int) error {
				_, err := s.BeginAttempt(t.Context(), auth.LoginKey(sha256.Sum256(fmt.Append(nil, i))), start, rule)
				return err
			}) {
				must(t, err)
			}
			later := start.Add(time.Hour)
			must(t, s.Sweep(t.Context(), later, rule.Window))
			long := auth.LockOut{Failures: 2, Window: 2 * time.Hour, LockOut: time.Hour}
			for i := range n {
				key := auth.LoginKey(sha256.Sum256(fmt.Append(nil, i)))
				if i%500 != 0 {
					continue
				}
				for range 2 { // the second would be refused if the old count were there
					if ok, err := s.BeginAttempt(t.Context(), key, later, long); err != nil || !ok {
						t.Errorf("login %d after the sweep: %v, %v", i, ok, err)
					}
				}
			}
		}},
		{"SigningKeys", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			first, err := s.SigningKeys(t.Context())
			if err != nil || len(first) != 0 {
				t.Fatalf("%d keys at first, %v", len(first), err)
			}
			// Processes that start together agree on one key.
			got := make([][]auth.SealedKey, 8)
			for _, err := range together(len(got), func(i int) (err error) {
				got[i], err = auth.EnsureSigningKey(t.Context(), s, func() (auth.SealedKey, error) {
					return auth.SealedKey{ID: fmt.Sprint("key", i), Sealed: []byte{0, 0xff, byte(i)}, CreatedAt: start}, nil
				})
				return err
			}) {
				must(t, err)
			}
			for _, keys := range got {
				if d := cmp.Diff(got[0], keys); d != "" || len(keys) != 1 {
					t.Errorf("%d keys: %s", len(keys), d)
				}
			}
			newer := auth.SealedKey{ID: "newer", Sealed: []byte{1}, CreatedAt: start.Add(time.Second)}
			must(t, s.AddSigningKey(t.Context(), newer))
			keys, err := s.SigningKeys(t.Context())
			must(t, err)
			if d := cmp.Diff([]auth.SealedKey{newer, got[0][0]}, keys); d != "" {
				t.Error(d)
			}
			if err := s.AddSigningKey(t.Context(), newer); err == nil {
				t.Error("one identifier was taken twice")
			}
		}},
	}.run(t, open)
}

func testAudit(t *testing.T, open func(t *testing.T) *store.DB) {
	cases{
		{"KeepsEveryField", func(t *testing.T, db *store.DB) {
			want := audit.Entry{
				At: start, RequestID: "r", Operation: "Sign", Phase: audit.Done, Outcome: audit.OK, Object: "1", Remote: "127.0.0.1:1", Detail: "d",
				Principal: audit.Principal{UserID: "u", Login: "l", Group: "g", Operator: true, TokenID: "t", ClientID: "c", Method: "m"},
				Duration:  1500 * time.Microsecond,
			}
			s := store.Audit{DB: db}
			must(t, s.Record(t.Context(), want))
			empty := audit.Entry{At: start}
			must(t, s.Record(t.Context(), audit.Entry{})) // gets the time of the clock
			got, err := s.Last(t.Context(), 10)
			must(t, err)
			if d := cmp.Diff([]audit.Entry{want, empty}, got); d != "" {
				t.Error(d)
			}
		}},
		{"HostileText", func(t *testing.T, db *store.DB) {
			s := store.Audit{DB: db}
			for _, text := range []string{"a\x00b", "\xff\xfe", "');DROP TABLE audit;--", strings.Repeat("я", 100_000)} {
				must(t, s.Record(t.Context(), audit.Entry{Object: text, Principal: audit.Principal{Login: text}}))
			}
			got, err := s.Last(t.Context(), 10)
			must(t, err)
			var objects []string
			for _, e := range got {
				objects = append(objects, e.Object)
			}
			want := []string{"a\ufffdb", "\ufffd", "');DROP TABLE audit;--", strings.Repeat("я", 512)}
			if d := cmp.Diff(want, objects); d != "" {
				t.Error(d)
			}
		}},
		{"ManyAtOnce", func(t *testing.T, db *store.DB) {
			s := store.Audit{DB: db}
			const n = 200
			for _, err := range together(n, func(i int) error {
				return s.Record(t.Context(), audit.Entry{At: start, RequestID: fmt.Sprint(i)})
			}) {
				must(t, err)
			}
			got, err := s.Last(t.Context(), 2*n)
			must(t, err)
			seen := map[string]bool{}
			for _, e := range got {
				seen[e.RequestID] = true
			}
			if len(got) != n || len(seen) != n {
				t.Errorf("%d entries of %d requests, want %d", len(got), len(seen), n)
			}
		}},
	}.run(t, open)
}
