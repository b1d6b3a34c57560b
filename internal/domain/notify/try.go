// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"tamga/internal/domain/fault"
)

// Trial is what became of a message by which an administrator tries a channel.
type Trial struct {
	To      string        // recipient
	Answers []string      // what the other side said, a line each
	Took    time.Duration // from the order to the answer
	Err     error         // why it has not taken the message; nil: it has
}

// mostTrials is how many test messages an operator may send within budgetWindow, in all channels.
const mostTrials = 20

// Try sends a test message to each recipient at once, past the outbox, its budgets and its repetitions. For a channel to devices the
// recipients are those that userID has. actor is the operator who wants it, and has a budget of mostTrials; "" is an administrator at
// the command line, who has none. The fault is wrong_operation when there is no notifier, object_not_found for a user without a
// device, and too_many_requests when the budget is used up.
func (s *Service) Try(ctx context.Context, channel Channel, to, userID, actor string) (list []Trial, err error) {
	notifier := s.notifiers[channel]
	info := channel.Info()
	if notifier == nil || info.To == ToSystems || info.To == 0 {
		return nil, fault.New(fault.WrongOperation, "no sender of this channel is configured")
	}
	recipients := []string{to}
	if info.To == ToDevices {
		if recipients, err = s.deps.Recipients.NotificationAddresses(ctx, userID, channel); err != nil {
			return nil, err
		}
		if len(recipients) == 0 {
			return nil, fault.New(fault.NotFound, "the user has no device and no browser that takes notifications")
		}
	}
	if actor != "" {
		ok, err := s.deps.Store.SpendBudgets(ctx, []BudgetLimit{{"test " + actor, mostTrials, false}}, s.now(), budgetWindow)
		if err == nil && !ok {
			err = fault.Newf(fault.TooManyRequests, "too many test messages of this operator within an hour, the limit is %d: try again later", mostTrials)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, recipient := range recipients {
		id, err := uuid.NewRandomFromReader(s.deps.Rand)
		if err != nil {
			return nil, fmt.Errorf("notify: making an identifier: %w", err)
		}
		text := testTexts[s.settings.Language]
		m := Message{ID: id.String(), Channel: channel, To: recipient, Text: text.body, Created: s.now(), Expires: s.now().Add(time.Hour)}
		if info.Subject {
			m.Subject = text.subject
		}
		list = append(list, s.sendTest(ctx, notifier, m))
	}
	return list, nil
}

func (s *Service) sendTest(ctx context.Context, notifier Notifier, m Message) Trial {
	ctx, cancel := context.WithTimeout(ctx, s.settings.SendTime)
	defer cancel()
	ctx, heard := Hear(ctx)
	began := s.deps.Now()
	err := notifier.Send(ctx, m)
	return Trial{To: m.To, Answers: heard(), Took: s.deps.Now().Sub(began), Err: err}
}

// testTexts are the texts of test messages by language.
var testTexts = map[string]struct{ subject, body string }{
	"en": {"Test message", "This is a test message of the signing service. Nothing is to be done.\n"},
	"ru": {"Проверочное сообщение", "Это проверочное сообщение сервиса электронной подписи. Ничего делать не нужно.\n"},
}

type answersKey struct{}

// answers collects what the next system said to one message.
type answers struct {
	mu   sync.Mutex
	list []string
}

// Bounds of what is kept of answers.
const (
	mostAnswers = 8
	maxAnswer   = 300 // characters
)

// Hear returns a context for one message, and a function that returns what notifiers noted with [Answered].
func Hear(ctx context.Context) (context.Context, func() []string) {
	a := &answers{}
	return context.WithValue(ctx, answersKey{}, a), func() []string {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.list
	}
}

// Answered notes what the next system said to a message, for [Hear]. It does nothing in any other message, since an
// answer may quote the message. A notifier calls it with no secret of ours.
func Answered(ctx context.Context, format string, values ...any) {
	a, tried := ctx.Value(answersKey{}).(*answers)
	if !tried {
		return
	}
	text := []rune(OneLine(strings.ToValidUTF8(fmt.Sprintf(format, values...), "\uFFFD")))
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.list) < mostAnswers {
		a.list = append(a.list, string(text[:min(len(text), maxAnswer)]))
	}
}
