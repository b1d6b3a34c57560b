// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
)

// Events sends events and callbacks; *notify.Service satisfies it.
type Events interface {
	Emit(ctx context.Context, e notify.Event) error
	Call(ctx context.Context, c notify.Call) error
}

// Follower is what moves with a record: its operation. It joins the transaction of ctx, which has locked
// the record, and is told before events are sent.
type Follower interface {
	Follow(ctx context.Context, r *Record) error
}

// CancelDeps are what a Canceller works with. The stores keep their tables in one database.
type CancelDeps struct {
	Store    Store
	Answers  AttemptStore
	Audit    audit.Log
	Events   Events
	Render   Render
	Follower Follower // nil: nothing moves with a record
	Language string   // of the names of actions in events: "ru" or "en"
	Now      func() time.Time
}

// Canceller ends the records of users whose accounts change. It is the part of a Service
// for packages that a Service needs: each declares it as an interface of its own.
type Canceller struct{ needs CancelDeps }

// NewCanceller returns a Canceller.
func NewCanceller(d CancelDeps) *Canceller { return &Canceller{d} }

// CancelAll ends all open records of a user, in the transaction of ctx if there is one,
// which must have locked the user. It is for changes of the account: a password, a device, a method, a policy, a lock, a
// contact that a method uses. reason is a short sentence without secrets for clients, such
// as "the password was changed".
//
// Call it after the tokens of the user have ended and before the event of the change.
func (c *Canceller) CancelAll(ctx context.Context, who audit.Principal, userID, reason string) error {
	return c.needs.Store.Atomic(ctx, lock.User(userID), func(ctx context.Context) error {
		for {
			from, to := leads(StepCancel)
			list, err := c.needs.Store.MoveConfirmations(ctx, userID, time.Time{}, Move{
				From: from, To: to, At: c.now(), Code: fault.InvalidTransaction, Message: "the operation was cancelled: " + reason,
			}, cancelPortion)
			if err != nil {
				return fault.Rollback(err)
			}
			if err := c.noteAll(ctx, who, list); err != nil {
				return err
			}
			if len(list) < cancelPortion {
				return nil
			}
		}
	})
}

// Forgive deletes the counts of a user's wrong answers: closed methods open. It joins the
// transaction of ctx.
func (c *Canceller) Forgive(ctx context.Context, userID string) error {
	return c.needs.Answers.ForgiveAnswers(ctx, userID)
}

// now returns the time with the precision of stores.
func (c *Canceller) now() time.Time { return c.needs.Now().UTC().Truncate(time.Millisecond) }

// AuditOperation is the operation of the audit entries of this package. Their object is the
// identifier of the record.
const AuditOperation = "Confirmation"

// events maps states to their events.
var events = map[State]notify.EventType{
	Created: notify.ConfirmationCreated, Challenged: notify.ConfirmationRequested, Confirmed: notify.ConfirmationGiven,
	Declined: notify.ConfirmationDeclined, Cancelled: notify.ConfirmationCancelled, Expired: notify.ConfirmationExpired,
	Completed: notify.ConfirmationCompleted, Error: notify.ConfirmationFailed,
}

// note moves what follows a record that has a new state, writes the audit entry and sends the event and the
// callback, in the transaction of ctx. how is for the entry, "" for nothing. Errors roll it back.
func (c *Canceller) note(ctx context.Context, who audit.Principal, r *Record, how string) error {
	if err := c.follow(ctx, r); err != nil {
		return err
	}
	return c.tell(ctx, who, r, how)
}

func (c *Canceller) follow(ctx context.Context, r *Record) error {
	if c.needs.Follower == nil {
		return nil
	}
	return fault.Rollback(c.needs.Follower.Follow(ctx, r))
}

// tell is note without what follows.
func (c *Canceller) tell(ctx context.Context, who audit.Principal, r *Record, how string) error {
	detail := []string{string(r.State), r.Action, r.What.Group()}
	if r.Method != "" {
		detail = append(detail, r.Method, notify.OneLine(r.Label), fmt.Sprintf("challenge %d", r.Round))
	}
	if how != "" {
		detail = append(detail, how)
	}
	outcome := audit.OK
	if r.Code != "" {
		outcome = r.Code
	}
	err := c.needs.Audit.Record(ctx, audit.Entry{
		At: r.UpdatedAt, Operation: AuditOperation, Phase: audit.Done, Outcome: outcome, Object: r.ID,
		Detail: strings.Join(detail, " "), Principal: who,
	})
	if err != nil {
		return fault.Rollback(err)
	}
	if err := c.call(ctx, who, r); err != nil {
		return fault.Rollback(err)
	}
	return fault.Rollback(c.needs.Events.Emit(ctx, notify.Event{
		Type: events[r.State], UserID: r.UserID, Actor: who.UserID,
		Detail: strings.TrimRight(what.ActionName(r.Action, c.needs.Language)+" "+what.CheckNumber(r.Action, r.What), " "),
	}))
}

// noteAll is note for several records. All that follow move first, in the order of locks.
func (c *Canceller) noteAll(ctx context.Context, who audit.Principal, list []Record) error {
	for i := range list {
		if err := c.follow(ctx, &list[i]); err != nil {
			return err
		}
	}
	for i := range list {
		if err := c.tell(ctx, who, &list[i], ""); err != nil {
			return err
		}
	}
	return nil
}
