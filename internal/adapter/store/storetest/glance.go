package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/auth"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/session"
)

// sights is what the rooms read for a signature, piece by piece.
type sights struct {
	Bearer                 auth.Bearer
	Known                  bool
	Access, Operation      [2]*policy.Setting // of the user, of the group
	Default, Named         keys.CertificateRecord
	HasDefault, HasNamed   bool
	Key                    keys.KeyRecord
	HasKey                 bool
	Authorities            []authority.Standing
	Others                 keys.CertificateRecord // of somebody else
	HasOthers, OthersFound bool
}

// Glance checks what a request sees that reads everything in one statement: the same as
// piece by piece, and what another process (other) has changed counts from the next
// request on, whatever it is.
func Glance(t *testing.T, db, other *store.DB) {
	group(t, db, "Default")
	u, stranger := person(t, db, 1), person(t, db, 2)
	tokens, certificates := store.Tokens{DB: other}, store.Keys{DB: other}
	must(t, tokens.SetPassword(t.Context(), u.ID, "encoded", start))
	must(t, tokens.SetMethod(t.Context(), u.ID, auth.StoredMethod{Name: "password", Level: 1}, start))
	record := auth.TokenRecord{ID: "jti", UserID: u.ID, ClientID: "client", Method: "password", CreatedAt: start, ExpiresAt: start.Add(time.Hour)}
	if ok, err := tokens.AddToken(t.Context(), record, auth.Proof{Method: "password", Encoded: "encoded", Now: start}); err != nil || !ok {
		t.Fatal(ok, err)
	}
	_, err := store.Authority{DB: db}.AddAuthority(t.Context(), authorityRecord("root"))
	must(t, err)
	key := keyOf(t, db, u, 1)
	c := certificateOf(t, db, key, 1)
	outside, err := certificates.AddCertificate(t.Context(), keys.NewCertificate{UserID: u.ID, KeyID: key.ID, DER: []byte("outside"), Serial: []byte{9}, CreatedAt: start, Outside: true})
	must(t, err)
	foreign := certificateOf(t, db, keyOf(t, db, stranger, 2), 2)

	read := func(ctx context.Context) (s sights) {
		t.Helper()
		var err error
		s.Bearer, err = store.Tokens{DB: db}.BearerByToken(ctx, "jti", start)
		if s.Known = err == nil; err != nil && !errors.Is(err, session.ErrNotFound) {
			t.Fatal(err)
		}
		policies, kept := store.Policies{DB: db}, store.Keys{DB: db}
		s.Access[0], s.Access[1], err = policies.Settings(ctx, u.ID, policy.Access)
		must(t, err)
		s.Operation[0], s.Operation[1], err = policies.Settings(ctx, u.ID, policy.Operation)
		must(t, err)
		s.Default, s.HasDefault, err = kept.DefaultCertificate(ctx, u.ID)
		must(t, err)
		s.Named, s.HasNamed, err = kept.Certificate(ctx, c.ID)
		must(t, err)
		s.Key, s.HasKey, err = kept.Key(ctx, key.ID)
		must(t, err)
		s.Others, s.OthersFound, err = kept.Certificate(ctx, foreign.ID)
		must(t, err)
		_, s.HasOthers, err = kept.DefaultCertificate(ctx, stranger.ID)
		must(t, err)
		s.Authorities, err = store.Authority{DB: db}.Standings(ctx)
		must(t, err)
		return s
	}
	last := read(t.Context())
	for _, change := range []struct {
		name string
		do   func(ctx context.Context) error
	}{
		{"a default certificate", func(ctx context.Context) error { _, err := certificates.SetDefault(ctx, u.ID, c.ID); return err }},
		{"an access policy of the user", func(ctx context.Context) error {
			return store.Policies{DB: other}.SetOwn(ctx, u.ID, policy.Access, &policy.Setting{Actions: policy.SignDocument})
		}},
		{"an access policy of the group", func(ctx context.Context) error {
			return store.Policies{DB: other}.SetGroup(ctx, u.Group, policy.Access, &policy.Setting{Actions: policy.ChangePin, Fixed: true})
		}},
		{"an operation policy of the user", func(ctx context.Context) error {
			return store.Policies{DB: other}.SetOwn(ctx, u.ID, policy.Operation, &policy.Setting{Actions: policy.SignDocuments})
		}},
		{"an operation policy of the group", func(ctx context.Context) error {
			return store.Policies{DB: other}.SetGroup(ctx, u.Group, policy.Operation, &policy.Setting{Actions: policy.SignDocument})
		}},
		{"no access policy any more", func(ctx context.Context) error {
			return store.Policies{DB: other}.SetOwn(ctx, u.ID, policy.Access, nil)
		}},
		{"a revocation", func(ctx context.Context) error {
			_, err := store.Authority{DB: other}.MarkRevoked(ctx, c.Serial, 6, start)
			return err
		}},
		{"a word on the revocation", func(ctx context.Context) error { return certificates.NoteComment(ctx, c.ID, "lost") }},
		{"a revocation list", func(ctx context.Context) error {
			_, err := store.Authority{DB: other}.ReplaceCRL(ctx, "gost", 1, []byte("second"), start.Add(time.Hour))
			return err
		}},
		{"another seal of the key", func(ctx context.Context) error {
			_, err := certificates.ReplaceSealed(ctx, key.ID, key.Sealed, []byte("other"), false)
			return err
		}},
		{"a certificate of another authority as the default", func(ctx context.Context) error {
			_, err := certificates.SetDefault(ctx, u.ID, outside)
			return err
		}},
		{"what the other authority says of it", func(ctx context.Context) error {
			return certificates.NoteStanding(ctx, outside, keys.Standing{RevokedAt: start, Reason: 6, DueAt: start.Add(time.Hour)})
		}},
		{"no default any more", func(ctx context.Context) error { return certificates.DeleteCertificate(ctx, outside) }},
		{"a lock", func(ctx context.Context) error { return store.Users{DB: other}.SetLock(ctx, u.ID, true, start) }},
		{"the end of tokens", func(ctx context.Context) error { return tokens.RevokeTokens(ctx, u.ID) }},
		{"a sweep", func(ctx context.Context) error {
			return tokens.Sweep(ctx, start.Add(2*time.Hour), start.Add(2*time.Hour), time.Minute)
		}},
	} {
		must(t, change.do(t.Context()))
		glanced, plain := read(db.Glancing(t.Context())), read(t.Context())
		if d := cmp.Diff(plain, glanced); d != "" {
			t.Errorf("after %s: a glance differs from what is read piece by piece:\n%s", change.name, d)
		}
		if cmp.Equal(last, glanced) {
			t.Errorf("after %s by another process: a request that came in later did not see it", change.name)
		}
		last = glanced
	}
}
