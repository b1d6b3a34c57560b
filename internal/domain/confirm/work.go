// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"context"
	"errors"
	"fmt"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lease"
)

// Form is the interface that an operation was created by. It is carried out by the same
// one, because the forms of the results differ.
type Form string

// The forms.
const (
	FormOperation   Form = "operation"   // v2
	FormTransaction Form = "transaction" // v1
)

// Work is how a package carries out its confirmed operations; see Service.CarryOut.
type Work struct {
	// Mine reports whether operations with an action are those of the package.
	Mine func(action string) bool
	// Describe makes the fields of a plan again, from what is stored now.
	Describe func(ctx context.Context, r *Record, plan []byte) (what.Fields, error)
	// Do carries the operation out and spends the record. After an error the record is
	// Confirmed.
	Do func(ctx context.Context, e *Execution) error
	// Again returns the result of an operation that was carried out before.
	Again func(ctx context.Context, e *Execution) error
}

// CarryOut carries out a confirmed operation of who, or returns its result again. It leases
// the record only if the fields that w makes give the digest of the record, and extends the
// lease while the operation is carried out.
//
// Another call may end the record at any time, and what w reads is deleted then. So a
// failure of w counts only if the record has not ended.
//
// Faults: those of Take and of w; invalid_operation for an operation of another package.
func (s *Service) CarryOut(ctx context.Context, who audit.Principal, id string, w Work) (err error) {
	r, err := s.Find(ctx, who, id)
	if err != nil {
		return err
	}
	if r.Purpose != ForOperation && r.Purpose != ForChange || !w.Mine(r.Action) {
		return OtherOperation()
	}
	sum, described := r.What, false
	if r.State == Confirmed { // otherwise Take has the result or the fault
		c, err := s.content(ctx, &r, false)
		if err != nil {
			return err
		}
		if described = len(c.Plan) > 0; described {
			fields, err := w.Describe(ctx, &r, c.Plan)
			if err == nil {
				sum, err = fields.Sum()
			}
			if err != nil || sum != r.What {
				now, e := s.Find(ctx, who, r.ID)
				switch {
				case e == nil && now.State != Confirmed: // Take has the result or the fault
					sum, described = r.What, false
				case err != nil:
					return err
				}
			}
		}
	}
	e, err := s.Take(ctx, who, r.ID, sum)
	if err != nil {
		return err
	}
	if e.Done {
		return w.Again(ctx, e)
	}
	defer func() {
		if err != nil {
			err = errors.Join(s.endedMeanwhile(ctx, r.ID, err), e.Release(ctx))
		}
	}()
	if !described {
		return fmt.Errorf("confirm: record %s is confirmed and has no plan", r.ID)
	}
	// The context of the work goes on when the lease is lost: the record cannot be spent then, and
	// the fault says what became of it.
	_, stop := s.leases().Keep(ctx, e.lease, func(ctx context.Context, l lease.Lease) (bool, error) {
		return s.deps.Executions.ExtendConfirmation(ctx, r.ID, l.Token, l.Until)
	})
	defer stop()
	return w.Do(ctx, e)
}

// endedMeanwhile returns the fault of a record that another call has ended, otherwise the failure of the
// call that carried it out. After an outage that call itself may have completed it.
func (s *Service) endedMeanwhile(ctx context.Context, id string, failure error) error {
	r, found, err := s.deps.Store.Confirmation(ctx, id)
	_, outage := fault.AsOutage(failure)
	if err != nil || !found || !r.State.Final() || r.State == Completed && outage {
		return failure
	}
	return r.ended(s.now())
}

// OtherOperation is the fault of a request that does not carry out the operation of its
// token.
func OtherOperation() error {
	return fault.New(fault.InvalidOperation, "the access token is that of an operation which is carried out by another request")
}
