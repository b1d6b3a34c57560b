// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
)

// Another party that knows the first factor of a user can ask the user's devices again and again,
// from any address, until the user gives in. So the sign-ins that devices are asked about are
// bounded for each user. Operations do not count: they need a sign-in, and users confirm many
// of them in a row.
const (
	pushMost   = 5
	pushWindow = 15 * time.Minute
)

// To a user who says "not me", another party got further than a guess. Then no device is
// asked any more, about operations neither, until the user signs in by another method: that
// takes more than that party has. An operator opens it by unlocking the user.
const (
	pushClosed = 24 * time.Hour // at most
	pushMethod = "push"         // in place of a method in the counts of wrong answers; none of the rows
)

// pushing counts that a device is asked to confirm a challenge, and refuses it with
// max_attempts_exceeded if there were too many, or if the user said "not me". It joins the
// transaction of ctx, which has locked the user.
func (s *Service) pushing(ctx context.Context, r *Record, now time.Time) error {
	closed, err := s.deps.Answers.ClosedUntil(ctx, r.UserID, pushMethod)
	switch {
	case err != nil:
		return err
	case now.Before(closed):
		return fault.New(fault.MaxAttempts, "the user has said on a device that another person asks: the devices are closed until the user signs in by another method").Until(closed.Sub(now))
	case !r.Purpose.SignIn():
		return nil
	}
	challenge := fmt.Sprintf("%s %d %d", r.ID, r.Round, r.Resends)
	free, err := s.deps.Answers.CountPush(ctx, r.UserID, challenge, now, now.Add(pushWindow), pushMost)
	if err != nil || free.IsZero() {
		return err
	}
	return fault.New(fault.MaxAttempts, "the devices of the user were asked too often to confirm a sign-in: confirm it in another way, or wait").Until(free.Sub(now))
}

// report closes the devices of a user who said "not me" about a record, and tells operators:
// by an audit entry and an event. What else waits on devices, and may be of the same party, is
// declined. It joins the transaction of ctx, which has locked the user.
func (s *Service) report(ctx context.Context, who audit.Principal, r *Record, now time.Time) error {
	until := now.Add(pushClosed)
	if err := s.deps.Answers.CloseMethod(ctx, r.UserID, pushMethod, now, until); err != nil {
		return err
	}
	detail := []string{"not me:", r.Action, "of", notify.OneLine(r.ClientID)}
	if r.Origin != "" {
		detail = append(detail, "from", r.Origin)
	}
	detail = append(detail, "devices closed until", until.Format(time.RFC3339))
	err := s.deps.Audit.Record(ctx, audit.Entry{
		At: now, Operation: AuditReport, Phase: audit.Done, Outcome: audit.OK, Object: r.ID, Detail: strings.Join(detail, " "), Principal: who,
	})
	if err != nil {
		return fault.Rollback(err)
	}
	err = s.deps.Messages.Emit(ctx, notify.Event{Type: notify.ConfirmationReported, UserID: r.UserID, Actor: who.UserID, Detail: strings.Join(detail[1:], " ")})
	if err != nil {
		return fault.Rollback(err)
	}
	for after, more := "", true; more; {
		list, err := s.Open(ctx, r.UserID, after, MaxPage)
		if err != nil {
			return err
		}
		for i := range list {
			other := &list[i]
			if after = other.ID; other.State != Challenged || !other.Purpose.SignIn() || !ByDevice(other.Method) {
				continue
			}
			err := s.move(ctx, who, other, StepDecline, Move{
				At: now, Code: fault.AuthenticationDeclined, Message: "the user declined the operation",
			}, "not me")
			if err != nil {
				return err
			}
		}
		more = len(list) == MaxPage
	}
	return nil
}

// AuditReport is the operation of the audit entries of users who say "not me". Their object is
// the identifier of the record.
const AuditReport = "ConfirmationReported"
