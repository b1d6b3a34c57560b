// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"strings"

	"tamga/internal/app"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
)

// Trial is what became of a test message.
type Trial struct {
	Channel string   `json:"channel"`
	To      string   `json:"to"`
	Answers []string `json:"answers"` // of the other side, a line each
	Seconds float64  `json:"seconds"`
	Error   string   `json:"error,omitempty"` // why the other side has not taken it
}

// Sentence says what became of it.
func (t *Trial) Sentence() Sentence {
	if t.Error != "" {
		return Say("%s to %s: not taken: %s", t.Channel, Printable(t.To), Printable(t.Error))
	}
	return Say("%s to %s: taken within %.1f s", t.Channel, Printable(t.To), t.Seconds)
}

// TryMessage sends a test message through a channel: email, sms or push. See app.Base.TryMessage.
func TryMessage(c *Console, from *Installation, channel, to string) (trials []Trial, err error) {
	err = Administer(c, from, "TestMessage", to, func(ctx context.Context, s *app.Services) error {
		for _, info := range notify.Channels() {
			if !strings.EqualFold(string(info.Channel), channel) {
				continue
			}
			list, err := s.TryMessage(ctx, info.Channel, to, "")
			for _, t := range list {
				trial := Trial{Channel: strings.ToLower(channel), To: t.To, Answers: append([]string{}, t.Answers...), Seconds: t.Took.Seconds()}
				if t.Err != nil {
					trial.Error = notify.OneLine(t.Err.Error())
				}
				trials = append(trials, trial)
			}
			return err
		}
		return fault.New(fault.InvalidParameters, "channel: want email, sms or push")
	})
	return trials, err
}
