// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/lease"
)

// Run delivers messages of the outbox until ctx ends, then finishes the running attempts.
// Any number of processes may run on one database.
func (s *Service) Run(ctx context.Context) {
	var channels sync.WaitGroup
	for _, notifier := range s.notifiers {
		channels.Go(func() { s.run(ctx, notifier) })
	}
	channels.Wait()
}

// eager is the pause before the first look at the outbox after an order: the transaction
// with the message must commit first.
const eager = 5 * time.Millisecond

// run delivers the messages of one channel.
func (s *Service) run(ctx context.Context, notifier Notifier) {
	channel := notifier.Channel()
	free := make(chan struct{}, s.settings.Workers) // holds a token for each running attempt
	var attempts sync.WaitGroup
	defer attempts.Wait()
	pause := s.settings.Poll
	for ctx.Err() == nil {
		slots := s.slots(ctx, free)
		claimed, l, err := s.claim(ctx, channel, slots)
		if err != nil && ctx.Err() == nil {
			s.deps.Failed(err)
		}
		for range slots - len(claimed) {
			<-free
		}
		for _, r := range claimed {
			attempts.Go(func() {
				defer func() { <-free }()
				s.attempt(ctx, notifier, r, l)
			})
		}
		if len(claimed) > 0 {
			pause = eager
			continue
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-s.wake[channel]:
			pause = eager
		case <-timer.C:
			pause = min(2*pause, s.settings.Poll)
		}
		timer.Stop()
	}
}

// slots waits for one free slot and takes all other free slots too.
func (s *Service) slots(ctx context.Context, free chan struct{}) int {
	select {
	case free <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	for n := 1; ; n++ {
		select {
		case free <- struct{}{}:
		default:
			return n
		}
	}
}

// Flush delivers all due messages and returns when no attempt is running, here or in
// another process. All messages ordered before the call have then been tried. It is for
// callers that look at the result, such as the page of captured messages and tests.
func (s *Service) Flush(ctx context.Context) error {
	for channel, notifier := range s.notifiers {
		for {
			claimed, l, err := s.claim(ctx, channel, 1) // a lease lasts for one attempt
			if err != nil {
				return err
			}
			for _, r := range claimed {
				s.attempt(ctx, notifier, r, l)
			}
			if len(claimed) > 0 {
				continue
			}
			more, err := s.deps.Store.Undelivered(ctx, channel, s.now())
			if err != nil {
				return err
			}
			if !more {
				break
			}
			timer := time.NewTimer(eager)
			select {
			case <-ctx.Done():
				timer.Stop()
				return ctx.Err()
			case <-timer.C:
			}
		}
	}
	return nil
}

func (s *Service) claim(ctx context.Context, channel Channel, limit int) ([]Record, lease.Lease, error) {
	if limit == 0 {
		return nil, lease.Lease{}, nil
	}
	l, err := s.leases().New()
	if err != nil {
		return nil, l, err
	}
	list, err := s.deps.Store.ClaimMessages(ctx, channel, l.Token, s.now(), l.Until, limit)
	return list, l, err
}

// leases are the leases of messages under way.
func (s *Service) leases() lease.Rules {
	return lease.Rules{Life: s.settings.Lease, Now: s.now, Rand: s.deps.Rand, Failed: s.deps.Failed}
}

// attempt tries one message and records the result, even when the process is asked to
// stop: a sent message must not be sent again.
func (s *Service) attempt(ctx context.Context, notifier Notifier, r Record, l lease.Lease) {
	end, outcome, failed := s.try(ctx, notifier, r, l)
	held, err := s.deps.Store.FinishMessage(context.WithoutCancel(ctx), r.ID, l.Token, end)
	switch {
	case err != nil:
		s.deps.Failed(err)
	case !held:
		s.deps.Failed(fmt.Errorf("notify: message %s lost its lease: another process may have sent it too", r.ID))
	}
	s.deps.Delivered(r.Channel, outcome, failed)
}

// try sends one message, and extends its lease meanwhile. failed is why the system that it is passed to did not take
// it; nil also for a message that no system takes.
func (s *Service) try(ctx context.Context, notifier Notifier, r Record, l lease.Lease) (end Ending, outcome string, failed error) {
	if now := s.now(); !now.Before(r.ExpiresAt) {
		text := "not delivered in its time"
		if r.Error != "" {
			text += ": " + r.Error
		}
		return Ending{State: Dead, Error: text, At: now, Wipe: true}, "expired", nil
	}
	err := s.leases().Hold(ctx, l, func(ctx context.Context, l lease.Lease) (bool, error) {
		return s.deps.Store.ExtendMessage(ctx, r.ID, l.Token, l.Until)
	}, func(ctx context.Context) error { return s.send(ctx, notifier, r) })
	now := s.now()
	if err == nil {
		return Ending{State: Sent, At: now, Wipe: true}, "sent", nil
	}
	text := legible(err)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) { // this process is stopping: another one continues at once
		return Ending{State: Pending, DueAt: now, Error: text, At: now}, "retried", nil
	}
	if !IsPermanent(err) {
		failed = err
	}
	if IsPermanent(err) || r.Attempts >= s.settings.Attempts {
		return Ending{State: Dead, Error: text, At: now}, "dead", failed
	}
	pause, perr := s.pause(r.Attempts)
	if perr != nil {
		s.deps.Failed(perr)
	}
	if wait := WaitOf(err); wait > pause { // a system cannot keep a message from its end
		pause = min(wait, max(s.settings.LongestPause, pause))
	}
	return Ending{State: Pending, DueAt: now.Add(pause), Error: text, At: now}, "retried", failed
}

// send sends one message. It finishes what takes no longer than SendTime even when ctx ends. A body that
// is opened now may take as long as the message is of use: the notifier sees whether it goes on.
func (s *Service) send(ctx context.Context, notifier Notifier, r Record) error {
	plain, err := s.deps.Vault.Open(place(r.ID), r.Sealed)
	if err != nil {
		return fmt.Errorf("the text cannot be opened: %w", err)
	}
	defer clear(plain)
	var c content
	if err := json.Unmarshal(plain, &c); err != nil {
		return Permanent(errors.New("the text has an unknown form"))
	}
	m := Message{ID: r.ID, Channel: r.Channel, To: r.To, Subject: c.Subject, Text: c.Text, Picture: c.Picture, Notice: c.Notice, Created: r.CreatedAt, Expires: r.ExpiresAt, Link: c.Link}
	longest := s.settings.SendTime
	if c.Form == "" {
		ctx = context.WithoutCancel(ctx)
	} else {
		bodies := s.bodies[c.Form]
		if bodies == nil {
			return fmt.Errorf("this process opens no bodies of the form %q", c.Form)
		}
		if m.Body, err = bodies.OpenBody(ctx, r.ID); err != nil {
			return err
		}
		defer m.Body.Close()
		longest = r.ExpiresAt.Sub(s.now())
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	return notifier.Send(ctx, m)
}

// pause returns the back-off after attempt n: twice as long each time, less up to a half
// at random, so that messages that failed together are not retried together.
func (s *Service) pause(n int) (time.Duration, error) {
	whole := s.settings.LongestPause
	if shift := n - 1; shift < 30 && s.settings.FirstPause<<shift < whole {
		whole = s.settings.FirstPause << shift
	}
	var b [8]byte
	if _, err := io.ReadFull(s.deps.Rand, b[:]); err != nil {
		return whole, fmt.Errorf("notify: drawing a pause: %w", err)
	}
	half := uint64(whole / 2)
	return whole - time.Duration(binary.BigEndian.Uint64(b[:])%(half+1)), nil
}

// legible returns the text of an error as it is stored: one short line.
func legible(err error) string { return OneLine(err.Error()) }

// List returns messages without their texts.
func (s *Service) List(ctx context.Context, q MessageQuery) ([]Record, error) {
	if q.Limit < 1 || q.Limit > MaxMessages {
		return nil, fault.Newf(fault.InvalidParameters, "limit: want 1 to %d", MaxMessages)
	}
	return s.deps.Store.Messages(ctx, q)
}

// Message returns a message of the outbox. The fault is object_not_found.
func (s *Service) Message(ctx context.Context, id string) (Record, error) {
	r, err := s.deps.Store.Message(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return Record{}, fault.New(fault.NotFound, "there is no such message").With(err)
	}
	return r, err
}

// Resend makes a message that was given up due again. Faults: object_not_found,
// wrong_operation for a message that is not given up or whose text was deleted.
func (s *Service) Resend(ctx context.Context, id string) error {
	return s.deps.Store.Atomic(ctx, func(ctx context.Context) error {
		r, err := s.Message(ctx, id)
		if err != nil {
			return err
		}
		now := s.now()
		switch {
		case r.State == Sent:
			return fault.New(fault.WrongOperation, "the message was delivered and its text is deleted: repeat the operation that ordered it")
		case r.State == Pending:
			return fault.New(fault.WrongOperation, "the message waits for its next attempt already")
		case len(r.Sealed) == 0 || !now.Before(r.ExpiresAt):
			return fault.New(fault.WrongOperation, "the message has expired and its text is deleted: repeat the operation that ordered it")
		}
		revived, err := s.deps.Store.ReviveMessage(ctx, id, now)
		if err == nil && !revived {
			return fault.New(fault.WrongOperation, "the message is not given up any more")
		}
		return err
	})
}

// Sweep deletes expired messages and budgets. The server calls it from time to time.
func (s *Service) Sweep(ctx context.Context) error {
	now := s.now()
	if err := s.deps.Store.SweepMessages(ctx, now, now.Add(-s.settings.Keep)); err != nil {
		return err
	}
	return s.deps.Store.SweepBudgets(ctx, now.Add(-budgetWindow))
}
