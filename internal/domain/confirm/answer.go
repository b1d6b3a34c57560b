// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"context"
	"crypto/subtle"
	"slices"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
)

// Answer takes the text that a user typed. After a right one the record is Confirmed. After a
// wrong one, Prompt.Wrong is set as long as another one is allowed. The right one again, from
// the same network and before Record.CompleteBefore, returns the record as it is then,
// Confirmed or Completed.
//
// Faults besides those of Service: transaction_expired when the time of the code is over,
// after which Challenge sends another one; max_attempts_exceeded while the method is
// closed; invalid_parameters for a challenge that a device answers, if the device has no
// code for it; access_denied for a device that was blocked.
func (s *Service) Answer(ctx context.Context, who audit.Principal, refID, answer string) (Prompt, error) {
	return s.answer(ctx, who, refID, OnPage{Answer: answer}, true)
}

// OnPage is an answer that a user gives on a page.
type OnPage struct {
	Answer   string // the code, or the JSON of a passkey
	Number   string // that the user has read on the page of another sign-in; see Record.AsksNumber
	Declined []int  // indexes of the documents that the user declines
}

// AnswerOnPage is Answer by which the user can decline some of the documents. They end as Declined. The fault for an index
// without a document, and if none is left, is invalid_parameters; Decline ends the whole record. Pages show the
// state of the record: a repetition of the right answer is refused. A wrong number is a wrong answer.
func (s *Service) AnswerOnPage(ctx context.Context, who audit.Principal, refID string, o OnPage) (p Prompt, err error) {
	return s.answer(ctx, who, refID, o, false)
}

func (s *Service) answer(ctx context.Context, who audit.Principal, refID string, o OnPage, repeatable bool) (p Prompt, err error) {
	answer := o.Answer
	if who.UserID == "" {
		return Prompt{}, missing()
	}
	// Answers of one user are checked one after the other, so they share the counts of wrong
	// ones, even if they arrive at the same time.
	err = s.deps.Store.Atomic(ctx, lock.User(who.UserID), func(ctx context.Context) error {
		now := s.now()
		r, counted, err := s.deps.Store.CountAttempt(ctx, normalID(refID), who.UserID, who.ClientID, now, s.settings.Codes.Attempts)
		if p = s.prompted(r); err != nil {
			return err
		}
		if !counted && repeatable {
			again, right, err := s.again(ctx, who, refID, answer, now)
			if err != nil || right {
				p.Record = again
				return err
			}
		}
		if !counted {
			return s.late(ctx, who, refID, now)
		}
		declined, err := r.refusedDocuments(o.Declined)
		switch {
		case err != nil:
			return fault.Rollback(err)
		case len(declined) > 0 && len(declined) == r.Documents:
			return fault.Rollback(fault.New(fault.InvalidParameters, "declined: no document is left, decline the operation instead"))
		}
		m, found := s.named(r.Method)
		if !found {
			return fault.Rollback(noMethod())
		}
		if r.AsksNumber(who.TokenID) && subtle.ConstantTimeCompare([]byte(o.Number), []byte(r.Number)) != 1 {
			return s.wrong(ctx, who, &p, wrongNumber, now)
		}
		switch err := m.Check(ctx, &r, answer); {
		case err == nil:
			var evidence []byte
			if of, ok := m.Method.(evident); ok {
				if evidence, err = of.Evidence(ctx, &r, answer); err != nil {
					return fault.Rollback(err)
				}
			}
			if err := s.right(ctx, who, &p.Record, now, declined, evidence); err != nil || !repeatable || ByPage(r.Method) {
				return err
			}
			return s.keepAnswer(ctx, &p.Record, answer)
		case fault.Is(err, fault.InvalidCode):
			if ByPage(r.Method) {
				return s.wrong(ctx, who, &p, wrongPasskey, now)
			}
			return s.wrong(ctx, who, &p, wrongCode, now)
		default:
			return fault.Rollback(err)
		}
	})
	if err == nil {
		s.confirms(&p.Record)
	}
	if err == nil && p.Wrong != nil && ByPage(p.Record.Method) {
		again, err := s.prompt(ctx, p.Record)
		again.Wrong = p.Wrong
		return again, err
	}
	return p, err
}

// answerable returns a record that waits for an answer.
func (s *Service) answerable(ctx context.Context, who audit.Principal, refID string) (Record, error) {
	r, err := s.byRef(ctx, who, refID)
	if err != nil {
		return Record{}, err
	}
	now := s.now()
	if err := r.ended(now); err != nil {
		return Record{}, err
	}
	switch {
	case r.State == Confirmed:
		return Record{}, fault.New(fault.InvalidTransaction, "the operation was confirmed already")
	case r.State == Created:
		return Record{}, fault.New(fault.InvalidTransaction, "no challenge has begun: choose a method first")
	case !now.Before(r.AnswerBefore):
		return Record{}, lateAnswer()
	}
	return r, nil
}

func lateAnswer() error {
	return fault.New(fault.TransactionExpired, "the time of the code is over: have another one sent")
}

// late returns the fault of an answer that was not counted.
func (s *Service) late(ctx context.Context, who audit.Principal, refID string, now time.Time) error {
	r, err := s.answerable(ctx, who, refID)
	if err != nil {
		return err
	}
	if _, found := s.named(r.Method); !found {
		return noMethod()
	}
	closed, err := s.deps.Answers.ClosedUntil(ctx, r.UserID, r.Method)
	switch {
	case err != nil:
		return err
	case now.Before(closed):
		return closedMethod(closed.Sub(now))
	}
	return fault.New(fault.MaxAttempts, "too many answers: have another code sent")
}

// right confirms the record in the transaction of its answer. evidence is the answer if it proves anything, nil for a code.
func (s *Service) right(ctx context.Context, who audit.Principal, r *Record, now time.Time, refused []int, evidence []byte) error {
	how := ""
	if ByDevice(r.Method) {
		how = "by the code of the device"
	} else if r.Purpose.SignIn() {
		if err := s.deps.Answers.OpenMethod(ctx, r.UserID, pushMethod); err != nil {
			return err
		}
	}
	return s.confirm(ctx, who, r, now, refused, evidence, how)
}

// confirm makes the step to Confirmed. r becomes the stored record. how is for the audit
// entry, "" for nothing. A fault rolls back.
func (s *Service) confirm(ctx context.Context, who audit.Principal, r *Record, now time.Time, declined []int, approval []byte, how string) error {
	return s.move(ctx, who, r, StepConfirm, Move{
		At: now, Round: r.Round, Live: true, CompleteBefore: now.Add(s.settings.Complete), Declined: declined, Approval: approval,
	}, how)
}

func wrongCode(left, most int) *fault.Error {
	return fault.Newf(fault.AuthenticationFailed, "the code is wrong: %d of %d attempts are left", left, most)
}

func wrongPasskey(left, most int) *fault.Error {
	return fault.Newf(fault.AuthenticationFailed, "the passkey was not accepted: %d of %d attempts are left", left, most)
}

func wrongNumber(left, most int) *fault.Error {
	return fault.Newf(fault.AuthenticationFailed, "the number is wrong: %d of %d attempts are left", left, most)
}

// wrong counts a wrong answer. It sets Prompt.Wrong, or ends the record after the last
// attempt. say returns what is wrong, with the attempts that are left of how many.
func (s *Service) wrong(ctx context.Context, who audit.Principal, p *Prompt, say func(left, most int) *fault.Error, now time.Time) error {
	counted, err := s.deps.Answers.CountWrong(ctx, p.Record.UserID, p.Record.Method, now, s.settings.Wrong)
	if err != nil {
		return err
	}
	if !counted {
		return fault.Rollback(closedMethod(s.settings.Wrong.Closed))
	}
	most := s.settings.Codes.Attempts
	if p.Record.Attempts < most {
		left := most - p.Record.Attempts
		p.Wrong = say(left, most)
		return nil
	}
	f := fault.New(fault.MaxAttempts, "too many wrong codes: begin the operation again")
	if err := s.move(ctx, who, &p.Record, StepExhaust, Move{At: now, Round: p.Record.Round, Code: f.Code, Message: f.Message}, ""); err != nil {
		return err
	}
	return f // which commits
}

// move makes a step of one record, with its audit entry and event, in the transaction of
// ctx. From and To of m are those of the step. r becomes the stored record. If the record
// allows no such step, the fault says why, and rolls back. how is for the audit entry.
func (s *Service) move(ctx context.Context, who audit.Principal, r *Record, step Step, m Move, how string) error {
	m.From, m.To = leads(step)
	after, moved, err := s.deps.Store.MoveConfirmation(ctx, r.ID, m)
	if err != nil {
		return err
	}
	if !moved {
		return fault.Rollback(s.refused(ctx, r.ID, m.At))
	}
	*r = after
	return s.note(ctx, who, r, how)
}

// refused returns the fault of a step that a record does not allow.
func (s *Service) refused(ctx context.Context, id string, now time.Time) error {
	r, found, err := s.deps.Store.Confirmation(ctx, id)
	switch {
	case err != nil:
		return err
	case !found:
		return missing()
	}
	if err := r.ended(now); err != nil {
		return err
	}
	return fault.Newf(fault.InvalidTransaction, "this is not possible in the state %s of the operation", r.State)
}

// Poll returns the present state by one read. It writes nothing. A record that was carried
// out is returned until Record.CompleteBefore: the client may not know yet that it was
// confirmed.
//
// A sign-in by code must get its token from the call of Answer that confirmed it and not
// from Poll: another program with the same first factor may poll as well.
func (s *Service) Poll(ctx context.Context, who audit.Principal, refID string) (Prompt, error) {
	r, err := s.byRef(ctx, who, refID)
	if err != nil {
		return Prompt{}, err
	}
	now := s.now()
	if err := r.ended(now); err != nil && !r.repeatable(now) {
		return Prompt{}, err
	}
	if r.State == Challenged && !now.Before(r.AnswerBefore) {
		return Prompt{}, lateAnswer()
	}
	if r.State == Challenged && ByPage(r.Method) {
		return s.prompt(ctx, r)
	}
	return s.prompted(r), nil
}

// Approve takes the signed decision of a device: an approval, with the documents that the
// user declined, or a refusal. The record is then Confirmed or Declined. A wrong number
// declines it.
//
// A repetition of the same decision, for a device that did not get the answer, returns the
// record. Faults besides those of Service: those of Devices; invalid_transaction for a
// decision about something else than the record, or of a device that was not asked;
// invalid_parameters for an index without a document; authentication_declined after a
// wrong number.
func (s *Service) Approve(ctx context.Context, signed []byte) (Record, error) {
	if s.deps.Devices == nil {
		return Record{}, missing()
	}
	v, err := s.deps.Devices.OpenDecision(ctx, signed)
	if err != nil {
		return Record{}, err
	}
	who := audit.Principal{UserID: v.UserID}
	r, err := s.Find(ctx, who, v.ID)
	if err != nil {
		return Record{}, err
	}
	who.ClientID, who.Method = r.ClientID, r.Method
	switch m, found := s.named(r.Method); {
	case !found || !m.Device || r.Address != v.Kid:
		return Record{}, fault.New(fault.InvalidTransaction, "this device was not asked to confirm the operation")
	case subtle.ConstantTimeCompare(v.What, r.What[:]) != 1:
		return Record{}, fault.New(fault.InvalidTransaction, "the device has shown something else than the operation: read the operation again")
	}
	declined, err := r.refusedDocuments(v.Declined)
	if err != nil {
		return Record{}, err
	}
	step := StepConfirm
	if !v.Approved || r.Documents > 0 && len(declined) == r.Documents {
		step = StepDecline
	}
	if repeated(&r, step, declined) {
		return r, nil
	}
	now := s.now()
	if err := r.ended(now); err != nil {
		if v.NotMe { // the other party may have ended it meanwhile
			failed := s.deps.Store.Atomic(ctx, lock.User(r.UserID), func(ctx context.Context) error { return s.report(ctx, who, &r, now) })
			if failed != nil {
				return Record{}, failed
			}
		}
		return Record{}, err
	}
	c, err := s.content(ctx, &r) // computes the digest again
	if err == nil {
		err = c.describable(v.Describes)
	}
	if err != nil {
		return Record{}, err
	}
	if signed, err = withKey(signed, v.Key); err != nil {
		return Record{}, err
	}
	wrongNumber := step == StepConfirm && r.Number != "" && v.Number != r.Number
	if wrongNumber {
		step = StepDecline
	}
	how := ""
	if now.Sub(v.SignedAt) > lateDecision {
		how = "signed at " + v.SignedAt.Format(time.RFC3339)
	}
	var after Record
	err = s.deps.Store.Atomic(ctx, lock.User(r.UserID), func(ctx context.Context) error {
		after = r
		if step == StepConfirm {
			return s.confirm(ctx, who, &after, now, declined, signed, how)
		}
		err := s.move(ctx, who, &after, StepDecline, Move{
			At: now, Round: r.Round, Live: true, Approval: signed,
			Code: fault.AuthenticationDeclined, Message: "the user declined the operation",
		}, how)
		if err == nil && v.NotMe {
			err = s.report(ctx, who, &after, now)
		}
		return err
	})
	if err == nil {
		s.confirms(&after)
	}
	if err == nil && wrongNumber {
		err = fault.New(fault.AuthenticationDeclined, "the number is wrong: the operation is declined")
	}
	return after, err
}

// lateDecision is the age from which the audit entry of a decision says when it was signed.
const lateDecision = time.Minute

// repeated reports whether a decision is the one that the record has.
func repeated(r *Record, step Step, declined []int) bool {
	if step == StepDecline {
		return r.State == Declined
	}
	return (r.State == Confirmed || r.State == Completed) && slices.Equal(r.Declined, declined)
}

// refusedDocuments returns the indexes of documents that the user declines, each once and
// in order.
func (r *Record) refusedDocuments(indexes []int) ([]int, error) {
	declined := slices.Clone(indexes)
	slices.Sort(declined)
	declined = slices.Compact(declined)
	if n := len(declined); n > 0 && (declined[0] < 0 || declined[n-1] >= r.Documents) {
		return nil, fault.Newf(fault.InvalidParameters, "declined: want indexes of documents, 0 to %d", r.Documents-1)
	}
	return declined, nil
}
