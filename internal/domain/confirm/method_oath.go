// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"context"

	"tamga/internal/domain/confirm/what"
)

// byOath takes codes of the token or app of a user. Nothing is sent.
type byOath struct{ s *Service }

func newByOath(s *Service) Method { return byOath{s} }

// Choices implements Method.
func (m byOath) Choices(ctx context.Context, userID string) ([]Choice, error) {
	t, found, err := m.s.deps.Oath.TokenOf(ctx, userID)
	if err != nil || !found {
		return nil, err
	}
	return []Choice{{Label: t.Serial, to: t.Serial}}, nil
}

// Begin implements Method.
func (m byOath) Begin(context.Context, *Record, *what.Fields) error { return nil }

// Check implements Method. Each step of the token is spent once, over all records and
// sign-ins.
func (m byOath) Check(ctx context.Context, r *Record, answer string) error {
	return m.s.deps.Oath.CheckOneTimePassword(ctx, r.UserID, answer)
}
