// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"tamga/internal/domain/authority"
)

// Authority stores the certificate authorities and their delegates. It implements
// authority.Store.
type Authority struct{ *DB }

var _ authority.Store = Authority{}

// Authority returns the authority with this name.
func (s Authority) Authority(ctx context.Context, name string) (authority.Record, bool, error) {
	return one(ctx, s.DB, func(r row) (a authority.Record, err error) {
		err = r.Scan(&a.Name, &a.Holder, &a.Suite, &a.Sealed, &a.Certificate, &a.CRL, &a.CRLNumber,
			(*timeField)(&a.CRLAt), (*timeField)(&a.CreatedAt))
		return a, err
	}, `SELECT name, holder, suite, sealed, certificate, crl, crl_number, crl_at, created_at
		FROM authorities WHERE name = $1`, name)
}

// AddAuthority adds an authority unless its name is taken.
func (s Authority) AddAuthority(ctx context.Context, a authority.Record) (bool, error) {
	n, err := s.exec(ctx, `INSERT INTO authorities
			(name, holder, suite, sealed, certificate, crl, crl_number, crl_at, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`,
		a.Name, a.Holder, a.Suite, a.Sealed, a.Certificate, a.CRL, a.CRLNumber, millis(a.CRLAt), millis(a.CreatedAt))
	return n == 1, err
}

// States returns the number and the time of the CRL of every authority, by name.
func (s Authority) States(ctx context.Context) ([]authority.State, error) {
	list, _, err := s.authorityStates.read(ctx, "", time.Time{})
	return list, err
}

// statesQuery has a parameter because lookups have a key, which is empty here.
const statesQuery = "SELECT " + statesColumn + " WHERE $1 = ''"

func scanStates(r row, before ...any) (list states, err error) {
	err = r.Scan(append(before, &list)...)
	return list, err
}

// statesColumn is one column with a line for each authority: its name, and the number
// and the time of its CRL. No name contains a space or a line feed, see package
// authority.
const statesColumn = "(SELECT STRING_AGG(a.name || ' ' || a.crl_number || ' ' || a.crl_at, '\n') FROM authorities a)"

// states scans statesColumn.
type states []authority.State

// parsedStates are the states of a text of statesColumn.
type parsedStates struct {
	text string
	list states
}

// latestStates is what was parsed last. Every statement reads the text, which mostly is the same, and
// states depend on nothing but the text.
var latestStates atomic.Pointer[parsedStates]

// Scan implements sql.Scanner.
func (list *states) Scan(v any) error {
	*list = nil
	text, is := v.(string)
	if !is {
		var nullable sql.NullString
		if err := nullable.Scan(v); err != nil {
			return err
		}
		text = nullable.String
	}
	latest := latestStates.Load()
	if latest == nil || latest.text != text {
		parsed, err := parseStates(text)
		if err != nil {
			return err
		}
		latest = &parsedStates{text, parsed}
		latestStates.Store(latest)
	}
	*list = slices.Clone(latest.list) // every caller gets values of its own
	return nil
}

func parseStates(text string) (list states, err error) {
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		number, at, _ := strings.Cut(rest, " ")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, errors.New("store: malformed CRL number")
		}
		ms, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			return nil, errors.New("store: malformed CRL time")
		}
		list = append(list, authority.State{Name: name, CRLNumber: n, CRLAt: fromMillis(ms)})
	}
	// The order does not depend on the collation of the database.
	slices.SortFunc(list, func(a, b authority.State) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// errOldCRL means that another unit has replaced a CRL that this one has read. The unit
// runs again.
var errOldCRL = errors.New("store: another unit has replaced the CRL")

// ReplaceCRL stores the next CRL if the current one still has the number seen. The number
// also protects the list of revoked certificates, which was read after it: every change of
// the list is in one unit with a new CRL.
func (s Authority) ReplaceCRL(ctx context.Context, name string, seen int64, crl []byte, at time.Time) (bool, error) {
	n, err := s.exec(ctx, `UPDATE authorities SET crl = $1, crl_number = crl_number + 1, crl_at = $2
		WHERE name = $3 AND crl_number = $4`, crl, millis(at), name, seen)
	if err == nil && n == 0 && s.transaction(ctx) != nil {
		err = errOldCRL
	}
	return n == 1, err
}

// AddIssued stores an issued certificate unless its serial number is taken.
func (s Authority) AddIssued(ctx context.Context, i authority.Issued) (bool, error) {
	n, err := s.exec(ctx, `INSERT INTO issued_certificates
			(serial, authority, not_after, issued_at, revoked_at, reason)
		VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
		i.Serial, i.Authority, millis(i.NotAfter), millis(i.IssuedAt), millis(i.RevokedAt), i.Reason)
	return n == 1, err
}

const issuedColumns = `serial, authority, not_after, issued_at, revoked_at, reason`

func scanIssued(r row) (i authority.Issued, err error) {
	err = r.Scan(&i.Serial, &i.Authority, (*timeField)(&i.NotAfter), (*timeField)(&i.IssuedAt),
		(*timeField)(&i.RevokedAt), &i.Reason)
	return i, err
}

// Issued returns the record of a serial number.
func (s Authority) Issued(ctx context.Context, serial []byte) (authority.Issued, bool, error) {
	return one(ctx, s.DB, scanIssued, `SELECT `+issuedColumns+` FROM issued_certificates WHERE serial = $1`, serial)
}

// MarkRevoked stores a revocation. A hold (reason 6) may be replaced by another reason.
func (s Authority) MarkRevoked(ctx context.Context, serial []byte, reason int, at time.Time) (bool, error) {
	n, err := s.exec(ctx, `UPDATE issued_certificates SET revoked_at = $1, reason = $2
		WHERE serial = $3 AND (revoked_at = 0 OR (reason = 6 AND $2 <> 6))`, millis(at), reason, serial)
	return n == 1, err
}

// LiftHold removes a hold (reason 6).
func (s Authority) LiftHold(ctx context.Context, serial []byte) (bool, error) {
	n, err := s.exec(ctx, `UPDATE issued_certificates SET revoked_at = 0, reason = 0
		WHERE serial = $1 AND revoked_at <> 0 AND reason = 6`, serial)
	return n == 1, err
}

// Revoked returns all revocations of an authority. There is no limit, because the CRL
// must contain all of them.
func (s Authority) Revoked(ctx context.Context, name string) ([]authority.Issued, error) {
	return all(ctx, s.DB, scanIssued, `SELECT `+issuedColumns+` FROM issued_certificates
		WHERE authority = $1 AND revoked_at <> 0 ORDER BY serial`, name)
}

// Delegate returns the delegate with this name and the highest generation.
func (s Authority) Delegate(ctx context.Context, name string) (authority.DelegateRecord, bool, error) {
	return one(ctx, s.DB, func(r row) (d authority.DelegateRecord, err error) {
		err = r.Scan(&d.Name, &d.Generation, &d.Authority, &d.Holder, &d.Suite, &d.Sealed, &d.Certificate, (*timeField)(&d.CreatedAt))
		return d, err
	}, `SELECT name, generation, authority, holder, suite, sealed, certificate, created_at
		FROM authority_delegates WHERE name = $1 ORDER BY generation DESC LIMIT 1`, name)
}

// AddDelegate adds a delegate unless its name already has this generation.
func (s Authority) AddDelegate(ctx context.Context, d authority.DelegateRecord) (bool, error) {
	n, err := s.exec(ctx, `INSERT INTO authority_delegates
			(name, generation, authority, holder, suite, sealed, certificate, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`,
		d.Name, d.Generation, d.Authority, d.Holder, d.Suite, d.Sealed, d.Certificate, millis(d.CreatedAt))
	return n == 1, err
}

var _ authority.GenerationStore = Authority{}

// ReplaceCertificate implements authority.GenerationStore.
func (s Authority) ReplaceCertificate(ctx context.Context, name string, old, certificate []byte) (bool, error) {
	n, err := s.exec(ctx, "UPDATE authorities SET certificate = $3 WHERE name = $1 AND certificate = $2", name, old, certificate)
	return n == 1, err
}

// AddCross implements authority.GenerationStore.
func (s Authority) AddCross(ctx context.Context, c authority.Cross) error {
	_, err := s.exec(ctx, "INSERT INTO cross_certificates (name, certificate, created_at) VALUES ($1, $2, $3)", c.Name, c.Certificate, millis(c.CreatedAt))
	return err
}

// Crosses implements authority.GenerationStore.
func (s Authority) Crosses(ctx context.Context) ([]authority.Cross, error) {
	return all(ctx, s.DB, func(r row) (c authority.Cross, err error) {
		err = r.Scan(&c.Name, &c.Certificate, (*timeField)(&c.CreatedAt))
		return c, err
	}, "SELECT name, certificate, created_at FROM cross_certificates ORDER BY name")
}

// HasUserCertificates implements authority.GenerationStore.
func (s Authority) HasUserCertificates(ctx context.Context, name string) (bool, error) {
	n, _, err := one(ctx, s.DB, func(r row) (n int64, err error) {
		err = r.Scan(&n)
		return n, err
	}, `SELECT (SELECT COUNT(*) FROM issued_certificates WHERE authority = $1)
		- (SELECT COUNT(*) FROM authority_delegates WHERE authority = $1)`, name)
	return n > 0, err
}
