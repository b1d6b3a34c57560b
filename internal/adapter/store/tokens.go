// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/contact"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/session"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/token"
	"tamga/internal/domain/user"
)

// Tokens implements the stores of the packages session, oath, token and signin.
type Tokens struct{ *DB }

var (
	_ signin.MethodStore   = Tokens{}
	_ signin.CodeStore     = Tokens{}
	_ signin.ExternalStore = Tokens{}
	_ signin.Store         = Tokens{}
	_ token.Store          = Tokens{}
	_ token.KeyStore       = TokenKeys{}
)

// Atomic implements signin.Store; see DB.locked.
func (s Tokens) Atomic(ctx context.Context, set lock.Set, fn func(ctx context.Context) error) error {
	return s.locked(ctx, set, fn)
}

// SetPassword implements signin.Store.
func (s Tokens) SetPassword(ctx context.Context, userID, encoded string) error {
	// Selected from users, so that an unknown user adds no row and breaks no reference.
	n, err := s.exec(ctx, `INSERT INTO passwords (user_id, encoded) SELECT id, CAST($2 AS TEXT) FROM users
		WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM directory_users d WHERE d.user_id = $1)
		ON CONFLICT (user_id) DO UPDATE SET encoded = excluded.encoded`, userID, encoded)
	if err != nil || n > 0 {
		return err
	}
	if _, linked, err := one(ctx, s.DB, scalar[int64], "SELECT 1 FROM directory_users WHERE user_id = $1", userID); err != nil || linked {
		return cmp.Or(err, signin.ErrOfDirectory)
	}
	return session.ErrNotFound
}

// HasPassword implements signin.Store.
func (s Tokens) HasPassword(ctx context.Context, userID string) (bool, error) {
	_, found, err := one(ctx, s.DB, scalar[int64], "SELECT 1 WHERE EXISTS (SELECT 1 FROM passwords WHERE user_id = $1) OR EXISTS (SELECT 1 FROM directory_users WHERE user_id = $1)", userID)
	return found, err
}

// schemeColumns select which kinds of methods the user u has.
var schemeColumns = hasMethod("none") + ", " + hasMethod("password") + ", " + hasMethod("certificate") + ", " + hasMethod("saml") + ", " + secondStep

func schemeFields(s *signin.Scheme) []any {
	return []any{&s.IDOnly, &s.Password, &s.Certificate, &s.External, &s.SecondStep}
}

func hasMethod(name string) string {
	return "EXISTS (SELECT 1 FROM user_methods m WHERE m.user_id = u.id AND m.method = '" + name + "')"
}

// secondStep is the condition that the user u has a method that is a second step: not one of
// the first steps, and at another level than theirs.
var secondStep = func() string {
	var primary []string
	for _, m := range signin.Methods() {
		if m.Primary {
			primary = append(primary, "'"+m.Name+"'")
		}
	}
	return "EXISTS (SELECT 1 FROM user_methods m WHERE m.user_id = u.id AND m.method NOT IN (" + strings.Join(primary, ", ") + ") AND m.level <> " + strconv.Itoa(signin.LevelPrimary) + ")"
}()

// credentials selects the columns that scanCredential scans.
var credentials = "SELECT " + userColumns + `, COALESCE(p.encoded, ''), COALESCE(d.directory, ''), COALESCE(d.dn, ''), COALESCE(d.entry, ''), COALESCE(f.locked_until, 0), COALESCE(tf.locked_until, 0), ` + schemeColumns + `
	FROM users u LEFT JOIN passwords p ON p.user_id = u.id LEFT JOIN directory_users d ON d.user_id = u.id LEFT JOIN user_failures f ON f.user_id = u.id
	LEFT JOIN trusted_user_failures tf ON tf.user_id = u.id`

func scanCredential(r row) (c signin.Credential, err error) {
	fields := append(userFields(&c.User), &c.Encoded, &c.Directory, &c.DN, &c.Entry, (*timeField)(&c.LockedUntil), (*timeField)(&c.TrustedLockedUntil))
	err = r.Scan(append(fields, schemeFields(&c.Scheme)...)...)
	return c, err
}

// CredentialOf implements signin.Store. A login has priority over an equal contact.
func (s Tokens) CredentialOf(ctx context.Context, folded, phone, email string) (signin.Credential, error) {
	c, found, err := one(ctx, s.DB, scanCredential, credentials+` WHERE u.id = COALESCE(
			(SELECT id FROM users WHERE login_folded = $1 AND login <> ''),
			(SELECT user_id FROM contacts WHERE type = '`+string(contact.PhoneNumber)+`' AND normal = $2 AND is_primary),
			(SELECT user_id FROM contacts WHERE type = '`+string(contact.EmailAddress)+`' AND normal = $3 AND is_primary))`, folded, phone, email)
	if err == nil && !found {
		err = session.ErrNotFound
	}
	return c, err
}

// SignInName implements signin.Store.
func (s Tokens) SignInName(ctx context.Context, userID string) (string, user.User, error) {
	type named struct {
		user.User
		contact string
	}
	n, found, err := one(ctx, s.DB, func(r row) (n named, err error) {
		err = r.Scan(append(userFields(&n.User), &n.contact)...)
		return n, err
	}, "SELECT "+userColumns+`, COALESCE((SELECT c.value FROM contacts c WHERE c.user_id = u.id AND c.is_primary ORDER BY c.type LIMIT 1), '')
		FROM users u WHERE u.id = $1`, userID)
	if err == nil && !found {
		err = session.ErrNotFound
	}
	return cmp.Or(n.Login, n.contact), n.User, err
}

// PrimaryContacts implements token.Store.
func (s Tokens) PrimaryContacts(ctx context.Context, userID string) (phone, email string, err error) {
	type primary struct{ kind, value string }
	list, err := all(ctx, s.DB, func(r row) (p primary, err error) {
		err = r.Scan(&p.kind, &p.value)
		return p, err
	}, "SELECT type, value FROM contacts WHERE user_id = $1 AND is_primary", userID)
	for _, p := range list {
		switch p.kind {
		case string(contact.PhoneNumber):
			phone = p.value
		case string(contact.EmailAddress):
			email = p.value
		}
	}
	return phone, email, err
}

// The tables of failures, of untrusted and of trusted callers.
var (
	loginFailures = map[bool]string{false: "login_failures", true: "trusted_login_failures"}
	userFailures  = map[bool]string{false: "user_failures", true: "trusted_user_failures"}
)

// EndAttempt implements signin.Store.
func (s Tokens) EndAttempt(ctx context.Context, userID string, trusted bool) error {
	_, err := s.exec(ctx, "DELETE FROM "+userFailures[trusted]+" WHERE user_id = $1", userID)
	return err
}

// BeginAttempt implements signin.Store.
func (s Tokens) BeginAttempt(ctx context.Context, login signin.LoginKey, now time.Time, rule signin.LockOut) (bool, error) {
	return beginAttempt(ctx, s.DB, loginFailures[rule.Trusted], []string{"login"}, []any{login[:]}, now, rule)
}

// BeginUserAttempt implements signin.Store.
func (s Tokens) BeginUserAttempt(ctx context.Context, userID string, now time.Time, rule signin.LockOut) (bool, error) {
	return beginAttempt(ctx, s.DB, userFailures[rule.Trusted], []string{"user_id"}, []any{userID}, now, rule)
}

// beginAttempt counts an attempt in a table of failures. columns are the primary key of the
// table, and key its value.
func beginAttempt(ctx context.Context, db *DB, table string, columns []string, key []any, now time.Time, rule signin.LockOut) (bool, error) {
	lockEnd := millis(now.Add(rule.LockOut))
	firstLock := int64(0)
	if rule.Failures <= 1 {
		firstLock = lockEnd
	}
	names := strings.Join(columns, ", ")
	args := []any{millis(now), firstLock, millis(now.Add(-rule.Window)), int64(rule.Failures), lockEnd}
	values := ""
	for _, k := range key {
		args = append(args, k)
		values += fmt.Sprintf("$%d, ", len(args))
	}
	// A window that has ended starts again with this attempt. A lock-out that has ended
	// inside a longer window does not start a new one: the count stays, so the next wrong
	// password locks again.
	n, err := db.exec(ctx, `INSERT INTO `+table+` AS f (`+names+`, failures, window_from, locked_until)
		VALUES (`+values+`1, $1, $2)
		ON CONFLICT (`+names+`) DO UPDATE SET
			failures = CASE WHEN f.window_from <= $3 THEN 1 ELSE f.failures + 1 END,
			window_from = CASE WHEN f.window_from <= $3 THEN excluded.window_from ELSE f.window_from END,
			locked_until = CASE
				WHEN f.window_from <= $3 THEN excluded.locked_until
				WHEN f.failures + 1 >= $4 THEN CAST($5 AS BIGINT)
				ELSE 0 END
		WHERE f.locked_until <= excluded.window_from`, args...)
	return n == 1, err
}

// AddToken implements token.Store.
func (s Tokens) AddToken(ctx context.Context, t token.Record, p token.Proof) (added bool, err error) {
	set := lock.User(t.UserID, t.ActorID)
	err = s.locked(ctx, set, func(ctx context.Context) error {
		n, err := s.exec(ctx, `INSERT INTO access_tokens (id, user_id, client_id, method, created_at, expires_at, revoked, actor_id, grant_id, scope, signed_in_at, confirmation, second_step)
			SELECT CAST($1 AS TEXT), u.id, CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS BIGINT), CAST($6 AS BIGINT), FALSE,
				CAST($11 AS TEXT), CAST($12 AS TEXT), CAST($13 AS TEXT), CAST($17 AS BIGINT), CAST($18 AS TEXT), CAST($19 AS BOOLEAN)
			FROM users u
			WHERE u.id = $2 AND NOT `+barred("u", "$7")+`
				AND (CAST($16 AS TEXT) = '' OR EXISTS (SELECT 1 FROM access_tokens x WHERE x.id = $16 AND x.revoked = FALSE AND x.expires_at > $7))
				AND (CAST($15 AS BOOLEAN)
				OR EXISTS (SELECT 1 FROM user_methods m WHERE m.user_id = u.id AND m.method = $8) AND (CAST($19 AS BOOLEAN) OR NOT `+secondStep+`)
				AND CASE WHEN CAST($14 AS BOOLEAN) THEN $8 <> 'certificate'
					OR EXISTS (SELECT 1 FROM sign_in_certificates k WHERE k.user_id = u.id AND k.not_after > $7) ELSE CASE CAST($8 AS TEXT)
					WHEN 'none' THEN TRUE
					WHEN 'password' THEN EXISTS (SELECT 1 FROM passwords w WHERE w.user_id = u.id AND w.encoded = $9)
					WHEN 'certificate' THEN EXISTS (SELECT 1 FROM sign_in_certificates k WHERE k.user_id = u.id AND k.thumbprint = $10)
					ELSE FALSE END END)`,
			t.ID, t.UserID, t.ClientID, t.Method, millis(t.CreatedAt), millis(t.ExpiresAt), millis(p.Now), p.Method, p.Encoded, notNull(p.Thumbprint),
			t.ActorID, t.GrantID, t.Scope, p.Granted, p.Delegated || p.Confirmed, p.Parent, millis(t.SignedInAt), t.Confirmation, p.SecondStep)
		added = n == 1
		if err != nil || !added || p.Delegated || t.Confirmation != "" { // the user has not signed in
			return err
		}
		_, err = s.exec(ctx, "UPDATE users SET last_login_at = $2 WHERE id = $1", t.UserID, millis(t.CreatedAt))
		return err
	})
	return added && err == nil, err
}

// bearerColumns and bearerTables select a token $1 with its user and its actor at the
// time $2.
var bearerColumns = userColumns + `, t.id, t.user_id, t.client_id, t.method, t.created_at, t.expires_at, t.revoked,
	t.actor_id, t.grant_id, t.scope, t.confirmation, t.second_step, CASE WHEN t.signed_in_at = 0 THEN t.created_at ELSE t.signed_in_at END,
	COALESCE((SELECT a.login FROM users a WHERE a.id = t.actor_id), ''),
	CASE WHEN t.actor_id = '' THEN FALSE ELSE NOT (` + reachesBy("t.actor_id") + `) END`

const bearerTables = "access_tokens t JOIN users u ON u.id = t.user_id"

var bearerQuery = "SELECT " + bearerColumns + " FROM " + bearerTables + " WHERE t.id = $1"

// bearerFields returns the destinations of bearerColumns, in their order.
func bearerFields(b *token.Bearer) []any {
	t := &b.Token
	return append(userFields(&b.User), &t.ID, &t.UserID, &t.ClientID, &t.Method,
		(*timeField)(&t.CreatedAt), (*timeField)(&t.ExpiresAt), &t.Revoked,
		&t.ActorID, &t.GrantID, &t.Scope, &t.Confirmation, &t.SecondStep, (*timeField)(&t.SignedInAt), &b.Actor, &b.Severed)
}

func scanBearer(r row, before ...any) (b token.Bearer, err error) {
	err = r.Scan(append(before, bearerFields(&b)...)...)
	return b, err
}

// bearerLasts reports whether a bearer is the same at a later time. Whether an operator who acts
// for the user may do so depends on the time.
func bearerLasts(b token.Bearer) bool { return b.Token.ActorID == "" }

// BearerByToken implements token.Store.
func (s Tokens) BearerByToken(ctx context.Context, tokenID string, now time.Time) (token.Bearer, error) {
	b, found, err := s.bearers.read(ctx, tokenID, now)
	if err == nil && !found {
		err = session.ErrNotFound
	}
	return b, err
}

// codeMemory is how long a code is kept after it expired, so that a second use is
// detected. Access tokens usually expire first.
const codeMemory = time.Hour

// sweepPortion bounds one deletion, so that a sweep does not block other writers.
const sweepPortion = 1000

// SweepTokens implements token.Store.
func (s Tokens) SweepTokens(ctx context.Context, now, tokens time.Time) error {
	return s.sweep(ctx, []sweep{
		{`DELETE FROM access_tokens WHERE id IN
			(SELECT id FROM access_tokens WHERE expires_at <= $1 LIMIT $2` + s.skipLocked() + `)`,
			[]any{millis(tokens), sweepPortion}},
		{`DELETE FROM grants WHERE handle IN
			(SELECT handle FROM grants WHERE expires_at <= $1 LIMIT $2` + s.skipLocked() + `)`,
			[]any{millis(now), sweepPortion}},
	})
}

// SweepSignIns implements signin.Store.
func (s Tokens) SweepSignIns(ctx context.Context, now time.Time, window time.Duration) error {
	counts := func(table, column string) sweep {
		return sweep{`DELETE FROM ` + table + ` WHERE ` + column + ` IN
			(SELECT ` + column + ` FROM ` + table + ` WHERE window_from <= $3 AND locked_until <= $1 LIMIT $2` + s.skipLocked() + `)`,
			[]any{millis(now), sweepPortion, millis(now.Add(-window))}}
	}
	return s.sweep(ctx, []sweep{
		counts(loginFailures[false], "login"), counts(loginFailures[true], "login"),
		counts(userFailures[false], "user_id"), counts(userFailures[true], "user_id"),
		// A spent code stays for some time, so that a second use is detected.
		{`DELETE FROM authorization_codes WHERE hash IN
			(SELECT hash FROM authorization_codes WHERE expires_at <= $1 LIMIT $2` + s.skipLocked() + `)`,
			[]any{millis(now.Add(-codeMemory)), sweepPortion}},
		{`DELETE FROM external_visits WHERE handle IN
			(SELECT handle FROM external_visits WHERE expires_at <= $1 LIMIT $2` + s.skipLocked() + `)`,
			[]any{millis(now), sweepPortion}},
	})
}

// sweep is a statement that deletes at most sweepPortion rows.
type sweep struct {
	query string
	args  []any
}

// sweep runs each statement until it deletes nothing.
func (s Tokens) sweep(ctx context.Context, list []sweep) error {
	for _, sweep := range list {
		for n := int64(sweepPortion); n == sweepPortion; {
			var err error
			if n, err = s.exec(ctx, sweep.query, sweep.args...); err != nil {
				return err
			}
		}
	}
	return nil
}

// TokenKeys implements token.KeyStore. Its Atomic is that of DB.
type TokenKeys struct{ *DB }

// SigningKeys implements token.KeyStore.
func (s TokenKeys) SigningKeys(ctx context.Context) ([]token.SealedKey, error) {
	return all(ctx, s.DB, func(r row) (k token.SealedKey, err error) {
		err = r.Scan(&k.ID, &k.Sealed, (*timeField)(&k.CreatedAt))
		return k, err
	}, "SELECT id, sealed, created_at FROM signing_keys ORDER BY created_at DESC, id")
}

// AddSigningKey implements token.KeyStore.
func (s TokenKeys) AddSigningKey(ctx context.Context, k token.SealedKey) error {
	_, err := s.exec(ctx, "INSERT INTO signing_keys (id, sealed, created_at) VALUES ($1, $2, $3)",
		k.ID, k.Sealed, millis(k.CreatedAt))
	return err
}

// DeleteSigningKey implements token.KeyStore.
func (s TokenKeys) DeleteSigningKey(ctx context.Context, id string) error {
	_, err := s.exec(ctx, "DELETE FROM signing_keys WHERE id = $1", id)
	return err
}
