// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"encoding/hex"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
)

// ToEndDelay is the kind of operations that end the delay of a change, by a factor that the user has: a
// factor that the present one approves needs no delay.
const ToEndDelay = "end delay"

// delay is the plan of ToEndDelay.
type delay struct {
	Request string `json:"request"`
}

// Delays lets users end the delays of changes of their accounts.
type Delays struct {
	Requests   *Service
	Operations *operation.Service // with the kind of Requests
}

// Propose creates the operation that ends the delay of a request about the caller. It tells the user the
// operation, its requester and the digest of the call. Faults: access_denied for an operator who acts for
// the user; object_not_found; wrong_operation for a request that no delay holds now; those of
// operation.Service.Start.
func (d *Delays) Propose(ctx context.Context, who audit.Principal, id string) (r Request, waiting *operation.Operation, err error) {
	if r, err = d.Requests.delayed(ctx, who, id); err != nil {
		return r, nil, err
	}
	waiting, _, err = d.Operations.Start(ctx, &operation.Order{
		Kind: ToEndDelay, Form: operation.FormChange, Owner: who, Confirming: operation.Always, Plan: delay{r.ID},
	})
	return r, waiting, err
}

// End carries out an operation of Propose: the delay of its request is over. What else the request waits
// for stays. Faults: those of Propose and of operation.Service.CarryOut; invalid_operation for an operation
// about another request.
func (d *Delays) End(ctx context.Context, who audit.Principal, id, operationID string) (after Request, err error) {
	_, result, err := d.Operations.CarryOut(ctx, who, &operation.Claim{ID: operationID, Form: operation.FormChange, Kinds: []string{ToEndDelay}, About: id})
	if err != nil {
		return after, err
	}
	if after, ok := result.(Request); ok {
		return after, nil
	}
	return d.Requests.ofCaller(ctx, who, id) // it was carried out before
}

// Kind returns the row of the table for package operation.
func (s *Service) Kind() operation.Kind {
	return operation.Kind{
		Name: ToEndDelay, Version: 1, Purpose: confirm.ForChange,
		Check: func(context.Context, *operation.Order) (bool, error) { return true, nil }, // Describe refuses what no delay holds
		Describe: func(ctx context.Context, o *operation.Order) (what.Fields, error) {
			var p delay
			if err := o.ReadPlan(&p); err != nil {
				return what.Fields{}, err
			}
			r, err := s.delayed(ctx, o.Owner, p.Request)
			if err != nil {
				return what.Fields{}, err
			}
			return r.fields()
		},
		Fits: func(o *operation.Operation, _ *operation.Plan, c *operation.Claim) error {
			if o.Argument("request") != strings.ToLower(c.About) {
				return confirm.OtherOperation()
			}
			return nil
		},
		Do: s.endDelay,
	}
}

// endDelay implements operation.Kind.Do.
func (s *Service) endDelay(ctx context.Context, r *operation.Run) error {
	var p delay
	if err := r.Plan(&p); err != nil {
		return err
	}
	return r.Spend(ctx, func(ctx context.Context) (any, error) {
		now := s.now()
		after, moved, err := s.Store.EndDelay(ctx, p.Request, now)
		if err != nil {
			return nil, err
		}
		if !moved {
			return nil, notDelayed()
		}
		return after, s.Audit.Record(ctx, audit.Entry{
			At: now, Operation: AuditOperation, Phase: audit.Done, Outcome: audit.OK, Object: after.ID,
			Detail: "Confirmed " + after.Operation + " on " + after.Object, Principal: r.Owner,
		})
	})
}

// ofCaller returns a request about the caller that a delay held or holds.
func (s *Service) ofCaller(ctx context.Context, who audit.Principal, id string) (Request, error) {
	if who.Actor != "" {
		return Request{}, fault.New(fault.AccessDenied, "only the user may confirm a change of the account")
	}
	r, found, err := s.Store.Approval(ctx, strings.ToLower(id))
	if err == nil && (!found || who.UserID == "" || r.Object != who.UserID || !r.delayed()) {
		err = missing()
	}
	return r, err
}

// delayed returns a request about the caller that a delay holds now.
func (s *Service) delayed(ctx context.Context, who audit.Principal, id string) (Request, error) {
	r, err := s.ofCaller(ctx, who, id)
	if err == nil && (r.State != Waiting && r.State != Approved || !s.now().Before(r.NotBefore)) {
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
