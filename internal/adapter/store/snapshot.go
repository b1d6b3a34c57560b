// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"time"

	"tamga/internal/domain/keys"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/signing"
	"tamga/internal/domain/token"
)

// Snapshots reads what a signature depends on. It implements signing.Snapshots. It
// repeats no columns: each file of the store names its own, with their destinations.
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
	snap, found, err := one(ctx, s.DB, func(r row) (*signing.Snapshot, error) { return scanSnapshot(r) }, snapshotQuery, userID)
	if err != nil {
		return nil, err
	}
	if !found {
		snap = &signing.Snapshot{}
	}
	snap.UserID, snap.At = userID, now
	return snap, nil
}

// BearerByToken is [Tokens.BearerByToken] together with the snapshot of the bearer, in
// one statement.
func (s Snapshots) BearerByToken(ctx context.Context, tokenID string, now time.Time) (token.Bearer, *signing.Snapshot, error) {
	var b token.Bearer
	snap, found, err := one(ctx, s.DB, func(r row) (*signing.Snapshot, error) { return scanSnapshot(r, bearerFields(&b)...) },
		bearerSnapshotQuery, tokenID, millis(now))
	if b, err = Tokens(s).known(ctx, b, found, err); err != nil {
		return b, nil, err
	}
	snap.UserID, snap.At = b.User.ID, now
	return b, snap, nil
}

// scanSnapshot scans snapshotColumns after columns with other destinations.
func scanSnapshot(r row, before ...any) (*signing.Snapshot, error) {
	var (
		snap              signing.Snapshot
		certificate       keys.CertificateRecord
		known             bool
		access, operation settingsRow
	)
	fields := append(before, certificateFields(&certificate)...)
	fields = append(fields, orZero(&known))
	fields = append(fields, keyFields(&snap.Keys.Key)...)
	fields = append(fields, (*states)(&snap.Keys.Authorities))
	fields = append(fields, access.fields()...)
	fields = append(fields, operation.fields()...)
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
