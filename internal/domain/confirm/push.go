// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"context"
	"fmt"
	"time"

	"tamga/internal/domain/fault"
)

// A stranger who knows the first factor of a user can ask the user's devices again and again,
// from any address, until the user gives in. So the sign-ins that devices are asked about are
// bounded for each user. Operations do not count: they need a sign-in, and users confirm many
// of them in a row.
const (
	pushMost   = 5
	pushWindow = 15 * time.Minute
)

// pushing counts that a device is asked to confirm a challenge, and refuses it with
// max_attempts_exceeded if there were too many. It joins the transaction of ctx, which has
// locked the user.
func (s *Service) pushing(ctx context.Context, r *Record, now time.Time) error {
	if !r.Purpose.SignIn() {
		return nil
	}
	challenge := fmt.Sprintf("%s %d %d", r.ID, r.Round, r.Resends)
	free, err := s.deps.Answers.CountPush(ctx, r.UserID, challenge, now, now.Add(pushWindow), pushMost)
	if err != nil || free.IsZero() {
		return err
	}
	return fault.New(fault.MaxAttempts, "the devices of the user were asked too often to confirm a sign-in: confirm it in another way, or wait").Until(free.Sub(now))
}
