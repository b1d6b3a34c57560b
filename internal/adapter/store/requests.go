// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/keys"
	"tamga/internal/domain/vault"
)

// DeleteCertificate deletes a certificate. If it is the default one, the user has no
// default after that.
func (s Keys) DeleteCertificate(ctx context.Context, id int64) error {
	_, err := s.exec(ctx, `DELETE FROM certificates WHERE id = $1`, id)
	return err
}

// SetFriendlyName sets the friendly name of a certificate.
func (s Keys) SetFriendlyName(ctx context.Context, id int64, name string) error {
	_, err := s.exec(ctx, `UPDATE certificates SET friendly_name = $1 WHERE id = $2`, name, id)
	return err
}

// DeleteUnusedKey deletes a key that has neither a certificate nor a pending request.
func (s Keys) DeleteUnusedKey(ctx context.Context, keyID string) error {
	const unused = `k.id = $1
		AND NOT EXISTS (SELECT 1 FROM certificates WHERE key_id = $1)
		AND NOT EXISTS (SELECT 1 FROM certificate_requests WHERE key_id = $1 AND status = 2)`
	return s.Unit(ctx, func(ctx context.Context) error {
		if err := s.noteDeleted(ctx, unused, keyID); err != nil {
			return err
		}
		_, err := s.exec(ctx, "DELETE FROM keys AS k WHERE "+unused, keyID)
		return err
	})
}

// noteDeleted notes keys k that are about to be deleted in the same transaction for their holders.
func (d *DB) noteDeleted(ctx context.Context, which string, args ...any) error {
	_, err := d.exec(ctx, "INSERT INTO deleted_keys (id, holder, suite, sealed, has_pin) "+
		"SELECT k.id, k.holder, k.suite, k.sealed, k.has_pin FROM keys k WHERE k.holder <> '"+vault.SoftwareName+"' AND "+which, args...)
	return err
}

// DeletedKeys implements keys.DeletionStore.
func (s Keys) DeletedKeys(ctx context.Context, after string, limit int) ([]keys.KeyRecord, error) {
	return all(ctx, s.DB, func(r row) (k keys.KeyRecord, err error) {
		err = r.Scan(&k.ID, &k.Holder, &k.Suite, &k.Sealed, &k.HasPIN)
		return k, err
	}, "SELECT id, holder, suite, sealed, has_pin FROM deleted_keys WHERE id > $1 ORDER BY id LIMIT $2", after, int64(limit))
}

// ForgetKey implements keys.DeletionStore.
func (s Keys) ForgetKey(ctx context.Context, id string) error {
	_, err := s.exec(ctx, "DELETE FROM deleted_keys WHERE id = $1", id)
	return err
}

// ReplaceSealed replaces the sealed key if it is still old.
func (s Keys) ReplaceSealed(ctx context.Context, keyID string, old, sealed []byte, hasPIN bool) (bool, error) {
	n, err := s.exec(ctx, `UPDATE keys SET sealed = $1, has_pin = $2 WHERE id = $3 AND sealed = $4`, sealed, hasPIN, keyID, old)
	return n == 1, err
}

// PINFailures returns the number of attempts that were reserved and not given back.
func (s Keys) PINFailures(ctx context.Context, keyID string) (int, error) {
	n, _, err := one(ctx, s.DB, scalar[int], `SELECT pin_failures FROM keys WHERE id = $1`, keyID)
	return n, err
}

// AddRequest adds a request and returns its number.
func (s Keys) AddRequest(ctx context.Context, r keys.RequestRecord) (int64, error) {
	var key any
	if r.KeyID != "" {
		key = r.KeyID
	}
	if r.DER == nil {
		r.DER = []byte{}
	}
	id, found, err := returning(ctx, s.DB, scalar[int64], `INSERT INTO certificate_requests
			(user_id, type, status, authority, key_id, certificate_id, renews, request, life, reason, comment, created_at, decided_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) RETURNING id`,
		r.UserID, int(r.Type), int(r.Status), r.Authority, key, r.CertificateID, r.Renews, r.DER,
		r.Life.Milliseconds(), r.Reason, r.Comment, millis(r.CreatedAt), millis(r.DecidedAt))
	if err == nil && !found {
		err = errors.New("store: the database gave a new request no number")
	}
	return id, err
}

const requestQuery = `SELECT id, user_id, type, status, authority, COALESCE(key_id, ''), certificate_id, renews,
		request, life, reason, comment, created_at, decided_at, refusal
	FROM certificate_requests q WHERE `

func scanRequest(r row) (q keys.RequestRecord, err error) {
	var life int64
	err = r.Scan(&q.ID, &q.UserID, &q.Type, &q.Status, &q.Authority, &q.KeyID, &q.CertificateID, &q.Renews,
		&q.DER, &life, &q.Reason, &q.Comment, (*timeField)(&q.CreatedAt), (*timeField)(&q.DecidedAt), &q.Refusal)
	q.Life = time.Duration(life) * time.Millisecond
	return q, err
}

// Request returns the request with this number.
func (s Keys) Request(ctx context.Context, id int64) (keys.RequestRecord, bool, error) {
	return one(ctx, s.DB, scanRequest, requestQuery+`id = $1`, id)
}

// Requests returns the last requests of a user by number.
func (s Keys) Requests(ctx context.Context, userID string) ([]keys.RequestRecord, error) {
	return all(ctx, s.DB, scanRequest, requestQuery+`id IN
		(SELECT id FROM certificate_requests WHERE user_id = $1 ORDER BY id DESC LIMIT 1000) ORDER BY id`, userID)
}

// PendingRequests returns the first pending requests.
func (s Keys) PendingRequests(ctx context.Context) ([]keys.RequestRecord, error) {
	return all(ctx, s.DB, scanRequest, requestQuery+`status = 2 ORDER BY id LIMIT 1000`)
}

// PendingRequestsFor returns pending requests of the users that an operator reaches.
func (s Keys) PendingRequestsFor(ctx context.Context, operatorID string, after int64, limit int, now time.Time) ([]keys.RequestRecord, error) {
	few, err := s.reachesFew(ctx, operatorID)
	if err != nil {
		return nil, err
	}
	begin, where := "", requestReached
	if few {
		begin, where = people, requestOfPeople
	}
	return all(ctx, s.DB, scanRequest, begin+requestQuery+"status = 2 AND id > $3 AND "+where+" ORDER BY id LIMIT $4", operatorID, millis(now), after, limit)
}

// The condition that an operator reaches the user of a request q, and the one for operators of few users.
var (
	requestReached = onePerRow("SELECT 1 FROM users u WHERE u.id = q.user_id AND " + reaches)
	// The status is no condition in here: SQLite would look for it first, for each user.
	requestOfPeople = "q.id IN (SELECT p.id FROM people u CROSS JOIN certificate_requests p WHERE p.user_id = u.id)"
)

// mostLooked is how many pending requests a count looks at, for an operator of many users. Each costs a few microseconds.
const mostLooked = 2_000

// CountPendingFor implements keys.RequestStore.
func (s Keys) CountPendingFor(ctx context.Context, operatorID string, most int, now time.Time) (n int, more bool, err error) {
	few, err := s.reachesFew(ctx, operatorID)
	if err != nil {
		return 0, false, err
	}
	if few {
		n, _, err = one(ctx, s.DB, scalar[int], people+"SELECT COUNT(*) FROM (SELECT 1 FROM certificate_requests q WHERE q.status = 2 AND "+requestOfPeople+" LIMIT $3) AS counted",
			operatorID, millis(now), most+1)
		return min(n, most), n > most, err
	}
	// The requests that may be looked at, and those among them that count. The second query ends at the one after the most.
	type counts struct{ looked, found int }
	const pending = "FROM certificate_requests WHERE status = 2 ORDER BY id LIMIT $3"
	c, _, err := one(ctx, s.DB, func(r row) (c counts, err error) { return c, r.Scan(&c.looked, &c.found) },
		"SELECT (SELECT COUNT(*) FROM (SELECT id "+pending+") AS l), (SELECT COUNT(*) FROM (SELECT 1 FROM (SELECT user_id "+pending+") AS q WHERE "+requestReached+" LIMIT $4) AS f)",
		operatorID, millis(now), mostLooked+1, most+1)
	return min(c.found, most), c.found > most || c.looked > mostLooked, err
}

// FindRequests implements keys.RequestStore.
func (s Keys) FindRequests(ctx context.Context, operatorID string, sought keys.Sought, limit int, now time.Time) ([]keys.RequestRecord, error) {
	found, args := seek("SELECT q.id AS id FROM certificate_requests q JOIN users u ON u.id = q.user_id WHERE "+reaches, []any{operatorID, millis(now)}, sought, limit, false)
	return allUnprepared(ctx, s.DB, scanRequest, requestQuery+"id IN ("+found+") ORDER BY id DESC", args...)
}

// FindCertificates implements keys.RequestStore.
func (s Keys) FindCertificates(ctx context.Context, operatorID string, sought keys.Sought, limit int, now time.Time) ([]keys.CertificateRecord, error) {
	found, args := seek("SELECT q.id AS id FROM certificates q JOIN users u ON u.id = q.user_id WHERE "+reaches, []any{operatorID, millis(now)}, sought, limit, true)
	return allUnprepared(ctx, s.DB, scanCertificate, certificateQuery+"c.id IN ("+found+") ORDER BY c.id DESC", args...)
}

// seek returns a query of the numbers of rows q that are sought, at most limit, with its arguments.
// It is the union of queries that each have an index.
func seek(query string, args []any, sought keys.Sought, limit int, serial bool) (string, []any) {
	var parts []string
	add := func(condition string, values ...any) {
		for _, v := range values {
			args = append(args, v)
			condition = strings.Replace(condition, "?", "$"+strconv.Itoa(len(args)), 1)
		}
		parts = append(parts, query+" AND "+condition)
	}
	if sought.Number != 0 {
		add("q.id = ?", sought.Number)
	}
	if serial && sought.SerialFrom != nil {
		add("q.serial >= ? AND q.serial < ? AND NOT q.outside", sought.SerialFrom, sought.SerialUntil)
		add("q.serial >= ? AND q.serial < ? AND q.outside", sought.SerialFrom, sought.SerialUntil)
	}
	if len(sought.Users) > 0 {
		var isOne string
		args, isOne = among(args, sought.Users)
		parts = append(parts, query+" AND q.user_id "+isOne)
	}
	args = append(args, limit)
	return "SELECT id FROM (" + strings.Join(parts, " UNION ") + ") AS found ORDER BY id DESC LIMIT $" + strconv.Itoa(len(args)), args
}

// Decide sets the final status of a pending request.
func (s Keys) Decide(ctx context.Context, id int64, status keys.RequestStatus, certificateID int64, refusal string, at time.Time) (bool, error) {
	n, err := s.exec(ctx, `UPDATE certificate_requests SET status = $1, certificate_id = $2, decided_at = $3, refusal = $4
		WHERE id = $5 AND status = 2`, int(status), certificateID, millis(at), refusal, id)
	return n == 1, err
}

// DeleteRequest deletes a request.
func (s Keys) DeleteRequest(ctx context.Context, id int64) error {
	_, err := s.exec(ctx, `DELETE FROM certificate_requests WHERE id = $1`, id)
	return err
}

// KeyParameter returns a value that a client stored with a key.
func (s Keys) KeyParameter(ctx context.Context, keyID, name string) (string, bool, error) {
	return one(ctx, s.DB, scalar[string], `SELECT value FROM key_parameters WHERE key_id = $1 AND name = $2`, keyID, name)
}

// SetKeyParameter stores a value with a key. If the key already has the maximum number of
// other values, it stores nothing and returns false.
func (s Keys) SetKeyParameter(ctx context.Context, keyID, name, value string, most int) (bool, error) {
	n, err := s.exec(ctx, `INSERT INTO key_parameters (key_id, name, value)
		SELECT id, $2, $3 FROM keys WHERE id = $1
			AND (SELECT COUNT(*) FROM key_parameters WHERE key_id = $1 AND name <> $2) < $4
		ON CONFLICT (key_id, name) DO UPDATE SET value = excluded.value`, keyID, name, value, most)
	return n == 1, err
}
