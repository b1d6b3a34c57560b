// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"context"

	"tamga/internal/domain/signing"
)

type snapshotKey struct{}

// WithSnapshot puts the snapshot of the caller into the context of a request. The gate of this interface
// does so when it identifies the caller, since web/rest in between knows no signatures. The interface
// takes it out with snapshotOf and hands it on as an argument.
func WithSnapshot(ctx context.Context, snap *signing.Snapshot) context.Context {
	return context.WithValue(ctx, snapshotKey{}, snap)
}

// snapshotOf returns the snapshot of the caller; nil for a caller without a token.
func snapshotOf(ctx context.Context) *signing.Snapshot {
	snap, _ := ctx.Value(snapshotKey{}).(*signing.Snapshot)
	return snap
}
