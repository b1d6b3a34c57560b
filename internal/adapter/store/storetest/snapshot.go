// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/session"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/signing"
	"tamga/internal/domain/token"
)

// pieces is the content of a snapshot.
type pieces struct {
	Bearer            token.Bearer
	Known             bool
	Access, Operation policy.Set
	Default           keys.CertificateRecord
	HasDefault        bool
	Key               keys.KeyRecord // the key of Default
	Authorities       []authority.State
}

func piecesOf(b token.Bearer, snap *signing.Snapshot) pieces {
	p := pieces{Bearer: b, Known: b.User.ID != "", Access: snap.Access, Operation: snap.Operation, Key: snap.Keys.Key, Authorities: snap.Keys.Authorities}
	if snap.Keys.Default != nil {
		p.Default, p.HasDefault = *snap.Keys.Default, true
	}
	return p
}

// Snapshot checks that a snapshot equals what the stores read piece by piece, and that
// every change made by another process (other) is in the next snapshot.
func Snapshot(t *testing.T, db, other *store.DB) {
	group(t, db, "Default")
	u := person(t, db, 1)
	tokens, certificates := store.Tokens{DB: other}, store.Keys{DB: other}
	must(t, tokens.SetPassword(t.Context(), u.ID, "encoded"))
	must(t, tokens.SetMethod(t.Context(), u.ID, signin.StoredMethod{Name: "password", Level: 1}))
	record := token.Record{ID: "jti", UserID: u.ID, ClientID: "client", Method: "password", CreatedAt: start, ExpiresAt: start.Add(time.Hour)}
	if ok, err := tokens.AddToken(t.Context(), record, token.Proof{Method: "password", Encoded: "encoded", Now: start}); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if snap, err := (store.Snapshots{DB: db}).Snapshot(t.Context(), u.ID, start); err != nil || snap.Keys.Default != nil || len(snap.Keys.Authorities) != 0 {
		t.Errorf("without certificates and authorities: %+v, %v", snap, err)
	}
	_, err := store.Authority{DB: db}.AddAuthority(t.Context(), authorityRecord("root"))
	must(t, err)
	key := keyOf(t, db, u, 1)
	c := certificateOf(t, db, key, 1)
	outside, err := certificates.AddCertificate(t.Context(), keys.NewCertificate{UserID: u.ID, KeyID: key.ID, DER: []byte("outside"), Serial: []byte{9}, CreatedAt: start, Outside: true})
	must(t, err)

	ctx := t.Context()
	read := func() (p pieces) {
		t.Helper()
		var err error
		p.Bearer, err = store.Tokens{DB: db}.BearerByToken(ctx, "jti", start)
		if p.Known = err == nil; err != nil && !errors.Is(err, session.ErrNotFound) {
			t.Fatal(err)
		}
		policies, kept := store.Policies{DB: db}, store.Keys{DB: db}
		p.Access.Own, p.Access.Group, err = policies.Settings(ctx, u.ID, policy.Access)
		must(t, err)
		p.Operation.Own, p.Operation.Group, err = policies.Settings(ctx, u.ID, policy.Operation)
		must(t, err)
		p.Default, p.HasDefault, err = kept.DefaultCertificate(ctx, u.ID)
		must(t, err)
		if p.HasDefault {
			p.Key, _, err = kept.Key(ctx, p.Default.KeyID)
			must(t, err)
		}
		p.Authorities, err = store.Authority{DB: db}.States(ctx)
		must(t, err)
		return p
	}
	last := read()
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
			return certificates.NoteStatus(ctx, outside, keys.OutsideStatus{RevokedAt: start, Reason: 6, DueAt: start.Add(time.Hour)})
		}},
		{"no default any more", func(ctx context.Context) error { return certificates.DeleteCertificate(ctx, outside) }},
		{"a lock", func(ctx context.Context) error { return store.Users{DB: other}.SetLock(ctx, u.ID, true, start) }},
		{"the end of tokens", func(ctx context.Context) error { return tokens.RevokeTokens(ctx, u.ID) }},
		{"a sweep", func(ctx context.Context) error {
			return errors.Join(tokens.SweepTokens(ctx, start.Add(2*time.Hour), start.Add(2*time.Hour)), tokens.SweepSignIns(ctx, start.Add(2*time.Hour), time.Minute))
		}},
	} {
		must(t, change.do(t.Context()))
		plain := read()
		b, snap, err := store.Snapshots{DB: db}.BearerByToken(ctx, "jti", start)
		switch {
		case errors.Is(err, session.ErrNotFound):
			if plain.Known {
				t.Errorf("after %s: the token is not found", change.name)
			}
			continue
		case err != nil:
			t.Fatal(err)
		case snap.UserID != u.ID || !snap.At.Equal(start):
			t.Errorf("after %s: a snapshot of %q at %v", change.name, snap.UserID, snap.At)
		}
		if d := cmp.Diff(plain, piecesOf(b, snap)); d != "" {
			t.Errorf("after %s: a snapshot differs from what is read piece by piece:\n%s", change.name, d)
		}
		again, err := store.Snapshots{DB: db}.Snapshot(ctx, u.ID, start)
		must(t, err)
		if d := cmp.Diff(snap, again); d != "" {
			t.Errorf("after %s: the snapshot of the user differs from that of the token:\n%s", change.name, d)
		}
		if cmp.Equal(last, plain) {
			t.Errorf("after %s by another process: the next snapshot does not have it", change.name)
		}
		last = plain
	}
	if read().Known {
		t.Error("the token is there after the sweep")
	}
	none, err := store.Snapshots{DB: db}.Snapshot(ctx, "unknown", start)
	must(t, err)
	if d := cmp.Diff(&signing.Snapshot{UserID: "unknown", At: start}, none); d != "" {
		t.Errorf("the snapshot of a user who does not exist:\n%s", d)
	}
}
