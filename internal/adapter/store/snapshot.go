// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"slices"
	"time"

	"tamga/internal/domain/keys"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/session"
	"tamga/internal/domain/signing"
	"tamga/internal/domain/token"
)

// Snapshots reads what a signature depends on. It implements signing.Snapshots. It
// repeats no columns: each file of the store names its own, with their destinations. On
// PostgreSQL the requests that arrive while one statement runs share the next one.
type Snapshots struct{ *DB }

var _ signing.Snapshots = Snapshots{}

// snapshotColumns and snapshotTables select a snapshot of the user u.
var snapshotColumns, snapshotTables = func() (columns, tables string) {
	columns = certificateColumns + ", " + certificateKnown + ", " + keyColumns + ", " + statesColumn
	for _, k := range []policy.Kind{policy.Access, policy.Operation} {
		more, joins := settingsOf(k)
		columns, tables = columns+", "+more, tables+joins
	}
	return columns, tables + `
		LEFT JOIN default_certificates d ON d.user_id = u.id
		LEFT JOIN certificates c ON c.user_id = u.id AND c.id = d.certificate_id
		` + issuedJoin + `
		LEFT JOIN keys k ON k.id = c.key_id`
}()

var (
	snapshotQuery       = "SELECT " + snapshotColumns + " FROM users u" + snapshotTables + " WHERE u.id = $1"
	bearerSnapshotQuery = "SELECT " + bearerColumns + ", " + snapshotColumns + " FROM " + bearerTables + snapshotTables + " WHERE t.id = $1"
)

// Snapshot implements signing.Snapshots.
func (s Snapshots) Snapshot(ctx context.Context, userID string, now time.Time) (*signing.Snapshot, error) {
	snap, found, err := s.snapshots.read(ctx, userID, now)
	if err != nil {
		return nil, err
	}
	if !found {
		snap = &signing.Snapshot{}
	}
	snap.UserID, snap.At = userID, now
	return snap, nil
}

// bearerSnapshot is the bearer of a token with the snapshot of that user.
type bearerSnapshot struct {
	bearer token.Bearer
	snap   *signing.Snapshot
}

func scanBearerSnapshot(r row, before ...any) (b bearerSnapshot, err error) {
	b.snap, err = scanSnapshot(r, slices.Concat(before, bearerFields(&b.bearer))...)
	return b, err
}

// BearerByToken is [Tokens.BearerByToken] together with the snapshot of the bearer, in
// one statement.
func (s Snapshots) BearerByToken(ctx context.Context, tokenID string, now time.Time) (token.Bearer, *signing.Snapshot, error) {
	b, found, err := s.signers.read(ctx, tokenID, now)
	if err == nil && !found {
		err = session.ErrNotFound
	}
	if err != nil {
		return b.bearer, nil, err
	}
	b.snap.UserID, b.snap.At = b.bearer.User.ID, now
	return b.bearer, b.snap, nil
}

// scanSnapshot scans snapshotColumns after columns with other destinations.
func scanSnapshot(r row, before ...any) (*signing.Snapshot, error) {
	var (
		snap              signing.Snapshot
		certificate       keys.CertificateRecord
		known             bool
		access, operation settingsRow
	)
	fields := slices.Concat(before, certificateFields(&certificate), []any{orZero(&known)}, keyFields(&snap.Keys.Key),
		[]any{(*states)(&snap.Keys.Authorities)}, access.fields(), operation.fields())
	if err := r.Scan(fields...); err != nil {
		return nil, err
	}
	if known {
		snap.Keys.Default = &certificate
	} else {
		snap.Keys.Key = keys.KeyRecord{}
	}
	var err error
	if snap.Access, err = access.set(); err != nil {
		return nil, err
	}
	snap.Operation, err = operation.set()
	return &snap, err
}
