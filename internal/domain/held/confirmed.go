// SPDX-License-Identifier: Apache-2.0

package held

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
)

// Confirmations keeps the records of what users confirm; *confirm.Service satisfies it.
type Confirmations interface {
	Create(ctx context.Context, who audit.Principal, o confirm.Order) (confirm.Record, error)
	CarryOut(ctx context.Context, who audit.Principal, id string, w confirm.Work) error
}

// Confirming lets users end the delay of a change with a factor that they have: a factor
// that the present one approves needs no delay.
type Confirming struct {
	Requests *Service
	Records  Confirmations // in the same database as the store of Requests
}

// delayPlan is the plan of a confirmation that ends a delay.
type delayPlan struct {
	Request string `json:"request"`
}

// Propose creates the confirmation that ends the delay of a request about the caller. It
// tells the user the operation, its requester and the digest of the call. Faults:
// access_denied for an operator who acts for the user; object_not_found; wrong_operation for
// a request that no delay holds now; those of confirm.Service.Create.
func (c *Confirming) Propose(ctx context.Context, who audit.Principal, id string) (r Request, record confirm.Record, err error) {
	if r, err = c.waiting(ctx, who, id); err != nil {
		return r, record, err
	}
	fields, err := r.fields()
	if err != nil {
		return r, record, err
	}
	plan, err := json.Marshal(delayPlan{r.ID})
	if err != nil {
		return r, record, err
	}
	record, err = c.Records.Create(ctx, who, confirm.Order{Purpose: confirm.ForChange, Fields: fields, Plan: plan})
	return r, record, err
}

// EndDelay carries out a confirmation of Propose: the delay of its request is over. What
// else the request waits for stays. Faults: those of Propose and of confirm.Service.CarryOut;
// invalid_operation for a confirmation about another request.
func (c *Confirming) EndDelay(ctx context.Context, who audit.Principal, id, confirmation string) (after Request, err error) {
	ended := func(ctx context.Context) (err error) {
		after, err = c.own(ctx, who, id)
		return err
	}
	err = c.Records.CarryOut(ctx, who, confirmation, confirm.Work{
		Mine: func(action string) bool { return action == what.ChangeAccount },
		Describe: func(ctx context.Context, _ *confirm.Record, text []byte) (what.Fields, error) {
			var p delayPlan
			if err := json.Unmarshal(text, &p); err != nil {
				return what.Fields{}, errors.New("held: the plan of a confirmation cannot be read")
			}
			if p.Request != strings.ToLower(id) {
				return what.Fields{}, confirm.OtherOperation()
			}
			r, err := c.waiting(ctx, who, id)
			if err != nil {
				return what.Fields{}, err
			}
			return r.fields()
		},
		Do: func(ctx context.Context, e *confirm.Execution) error {
			atomic := func(ctx context.Context, fn func(context.Context) error) error {
				return c.Requests.Store.Atomic(ctx, lock.User(who.UserID), fn)
			}
			return e.SpendWith(ctx, atomic, func(ctx context.Context) ([]byte, error) {
				now := c.Requests.now()
				moved := false
				if after, moved, err = c.Requests.Store.EndDelay(ctx, strings.ToLower(id), now); err != nil {
					return nil, err
				}
				if !moved {
					return nil, fault.Rollback(notDelayed())
				}
				return []byte("{}"), fault.Rollback(c.Requests.Audit.Record(ctx, audit.Entry{
					At: now, Operation: AuditOperation, Phase: audit.Done, Outcome: audit.OK, Object: after.ID,
					Detail: "Confirmed " + after.Operation + " on " + after.Object, Principal: who,
				}))
			})
		},
		Again: func(ctx context.Context, _ *confirm.Execution) error { return ended(ctx) },
	})
	return after, err
}

// own returns a request about the caller that a delay held or holds.
func (c *Confirming) own(ctx context.Context, who audit.Principal, id string) (Request, error) {
	if who.Actor != "" {
		return Request{}, fault.New(fault.AccessDenied, "only the user may confirm a change of the account")
	}
	r, found, err := c.Requests.Store.Held(ctx, strings.ToLower(id))
	if err == nil && (!found || who.UserID == "" || r.Object != who.UserID || !r.delayed()) {
		err = missing()
	}
	return r, err
}

// waiting returns a request about the caller that a delay holds now.
func (c *Confirming) waiting(ctx context.Context, who audit.Principal, id string) (Request, error) {
	r, err := c.own(ctx, who, id)
	if err == nil && (r.State != Waiting && r.State != Approved || !c.Requests.now().Before(r.NotBefore)) {
		err = notDelayed()
	}
	return r, err
}

func notDelayed() error {
	return fault.New(fault.WrongOperation, "no delay holds the request any more")
}

// fields is what the user confirms about a request.
func (r *Request) fields() (what.Fields, error) {
	arguments, err := what.Arguments(map[string]string{
		"operation": r.Operation, "request": r.ID, "requester": r.Login, "created": r.CreatedAt.UTC().Format(time.RFC3339), "digest": hex.EncodeToString(r.Digest),
	})
	return what.Fields{Action: what.ChangeAccount, Arguments: arguments}, err
}
