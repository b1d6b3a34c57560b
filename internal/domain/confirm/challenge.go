// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"math/big"
	"slices"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
)

// Challenge begins the challenge of a record, or repeats the one under way. A repetition
// within Settings.Codes.Resend of the last message sends nothing. Another method than the
// one under way begins another challenge. A record that is confirmed is returned as it is.
//
// Faults besides those of Service: authn_method_not_confirmed; invalid_parameters for a
// choice that the user does not have, and for a callback that is refused; max_attempts_exceeded while the method is closed,
// after too many sign-ins that devices of the user were asked about, and after the user said that
// another person asks;
// too_many_requests when a budget of messages is used up; transaction_pending while the user has
// another operation open that must end first.
func (s *Service) Challenge(ctx context.Context, who audit.Principal, a Ask) (Prompt, error) {
	r, err := s.asked(ctx, who, &a)
	if err != nil {
		return Prompt{}, err
	}
	now := s.now()
	if err := r.ended(now); err != nil || r.State == Confirmed {
		return Prompt{Record: r}, err
	}
	if err := s.alone(ctx, &r); err != nil {
		return Prompt{}, err
	}
	if err := s.setCallback(ctx, &r, a.Callback); err != nil {
		return Prompt{}, err
	}
	list, err := s.usable(ctx, &r, &a)
	if err != nil {
		return Prompt{}, err
	}
	c, chosen, err := choose(list, &a, &r)
	switch {
	case err != nil:
		return Prompt{}, err
	case !chosen:
		return Prompt{Record: r, Choices: list}, nil
	}
	repeat := r.State == Challenged && r.Method == c.Method && r.Address == c.to
	if m, found := s.named(c.Method); a.Titles && r.Number == "" && found && r.matches(&m.Row) {
		repeat = false // began by a client that shows no number
	}
	if repeat && now.Before(r.SentAt.Add(s.settings.Codes.Resend)) {
		return s.prompt(ctx, r)
	}
	if err := s.begin(ctx, who, &r, c, repeat, a.Titles, now); err != nil {
		return Prompt{}, err
	}
	return s.prompt(ctx, r)
}

// alone refuses the confirmation of an operation or a text beside an older operation that is
// open, if the installation allows a user one at a time. The older one may be from the time
// before that setting. A text is no operation, so it keeps none from being created.
func (s *Service) alone(ctx context.Context, r *Record) error {
	if !s.settings.One || r.Purpose != ForOperation && r.Purpose != ForText {
		return nil
	}
	for after, more := "", true; more; {
		list, err := s.Open(ctx, r.UserID, after, MaxPage)
		if err != nil {
			return err
		}
		for i := range list {
			if after = list[i].ID; list[i].Purpose == ForOperation {
				if after == r.ID {
					return nil
				}
				return anotherOpen()
			}
		}
		more = len(list) == MaxPage
	}
	return nil
}

func anotherOpen() error {
	return fault.New(fault.TransactionPending, "the user has an open operation: confirm or cancel it first")
}

// Present returns an open or ended record with what a client shows of the challenge under
// way. It begins nothing and sends nothing.
func (s *Service) Present(ctx context.Context, who audit.Principal, id string) (Prompt, error) {
	r, err := s.Find(ctx, who, id)
	if err != nil || r.State != Challenged || r.overdue(s.now()) {
		return Prompt{Record: r}, err
	}
	return s.prompt(ctx, r)
}

// prompted returns the prompt of a record, with what a person must know of its challenge.
func (s *Service) prompted(r Record) Prompt {
	p, now := Prompt{Record: r}, s.now()
	if r.State == Challenged {
		p.Most = s.settings.Codes.Attempts
		p.Left = max(0, p.Most-r.Attempts)
		p.Lives = max(0, r.AnswerBefore.Sub(now))
		p.RepeatsIn = max(0, r.SentAt.Add(s.settings.Codes.Resend).Sub(now))
		if r.Method == contact.Phone.Method || r.Method == contact.Email.Method {
			p.Digits = s.settings.Codes.Digits
		}
	}
	return p
}

// prompt returns what a client shows of a challenge under way.
func (s *Service) prompt(ctx context.Context, r Record) (Prompt, error) {
	p := s.prompted(r)
	switch {
	case ByPage(r.Method) && s.deps.Passkeys != nil:
		challenge, err := s.passkeyChallenge(ctx, &r)
		if err == nil {
			p.Request, err = s.deps.Passkeys.Request(ctx, r.UserID, challenge)
		}
		return p, err
	case ByDevice(r.Method):
		o, err := s.offline(ctx, &r)
		p.QR = o.QR
		return p, err
	}
	return p, nil
}

// Choices returns the ways in which a user may confirm an open record, also while a
// challenge is under way. Faults are those of Challenge.
func (s *Service) Choices(ctx context.Context, who audit.Principal, a Ask) ([]Choice, error) {
	r, err := s.asked(ctx, who, &a)
	if err != nil {
		return nil, err
	}
	if err := r.ended(s.now()); err != nil {
		return nil, err
	}
	return s.usable(ctx, &r, &a)
}

// asked returns the record of a call.
func (s *Service) asked(ctx context.Context, who audit.Principal, a *Ask) (Record, error) {
	if a.ID != "" {
		return s.Find(ctx, who, a.ID)
	}
	return s.byRef(ctx, who, a.RefID)
}

// byRef finds a record by the identifier of its challenges.
func (s *Service) byRef(ctx context.Context, who audit.Principal, refID string) (Record, error) {
	r, found, err := s.deps.Store.ConfirmationByRef(ctx, normalID(refID))
	return s.own(who, r, found, err)
}

// choose returns the choice of the user, or the only one, or the one under way.
func choose(list []Choice, a *Ask, r *Record) (c Choice, chosen bool, err error) {
	of := func(method, address string) (Choice, bool) {
		i := slices.IndexFunc(list, func(c Choice) bool {
			return c.Method == method && (c.Address == address || address == "")
		})
		if i < 0 {
			return Choice{}, false
		}
		return list[i], true
	}
	if a.Method != "" {
		if c, chosen = of(a.Method, a.Address); !chosen {
			err = fault.New(fault.InvalidParameters, "ChoiceSelected: the user cannot confirm in this way, choose one that was offered")
		}
		return c, chosen, err
	}
	if i := slices.IndexFunc(list, func(c Choice) bool { return c.Method == r.Method && c.to == r.Address }); i >= 0 {
		return list[i], true, nil
	}
	if len(list) == 1 {
		return list[0], true, nil
	}
	return Choice{}, false, nil
}

// begin begins or repeats a challenge, in one transaction with what is sent. r becomes the
// stored record.
func (s *Service) begin(ctx context.Context, who audit.Principal, r *Record, c Choice, repeat, titles bool, now time.Time) error {
	m, found := s.named(c.Method)
	if !found {
		return noMethod()
	}
	next := *r
	next.State, next.Method, next.Address, next.Label = Challenged, c.Method, c.to, c.Label
	next.SentAt, next.UpdatedAt = now, now
	if next.AnswerBefore = now.Add(s.settings.Codes.Life); m.Device || next.AnswerBefore.After(r.ConfirmBefore) {
		next.AnswerBefore = r.ConfirmBefore
	}
	if repeat {
		next.Resends++
	} else {
		next.Round, next.Attempts, next.Resends, next.Number = r.Round+1, 0, 0, ""
		if titles && r.matches(&m.Row) {
			var err error
			if next.Number, err = drawNumber(s.deps.Rand); err != nil {
				return err
			}
		}
	}
	err := s.deps.Store.Atomic(ctx, lock.User(r.UserID), func(ctx context.Context) error {
		stored, begun, err := s.deps.Store.BeginChallenge(ctx, r.ID, Challenge{
			Method: next.Method, Address: next.Address, Label: next.Label, Number: next.Number,
			Before: r.Round, Repeat: repeat, At: now, AnswerBefore: next.AnswerBefore, SentBefore: now.Add(-s.settings.Codes.Resend),
		})
		if err != nil {
			return err
		}
		if !begun {
			return s.notBegun(ctx, r.UserID, c.Method, now)
		}
		fields, err := r.fields(stored)
		if err != nil {
			return err
		}
		if m.Device {
			if err := s.pushing(ctx, &next, now); err != nil {
				return fault.Rollback(err)
			}
		}
		if err := m.Begin(ctx, &next, &fields); err != nil {
			return fault.Rollback(err)
		}
		return s.note(ctx, who, &next, "")
	})
	if err == nil {
		*r = next
	}
	return err
}

// notBegun returns the fault of a challenge that could not begin.
func (s *Service) notBegun(ctx context.Context, userID, method string, now time.Time) error {
	closed, err := s.deps.Answers.ClosedUntil(ctx, userID, method)
	switch {
	case err != nil:
		return err
	case now.Before(closed):
		return closedMethod(closed.Sub(now))
	}
	return fault.New(fault.Unavailable, "another request began or ended the challenge at the same time: repeat the request").Until(time.Second)
}

func closedMethod(after time.Duration) error {
	return fault.New(fault.MaxAttempts, "too many wrong answers: the method is closed for a time, wait or choose another one").Until(after)
}

// drawNumber returns two digits.
func drawNumber(random io.Reader) (string, error) {
	n, err := rand.Int(random, big.NewInt(100))
	if err != nil {
		return "", fmt.Errorf("confirm: drawing a number: %w", err)
	}
	return fmt.Sprintf("%02d", n.Int64()), nil
}
