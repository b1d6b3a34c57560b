// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/domain/notify"
)

// Message is the sub-command message.
type Message struct {
	List   messageListCommand   `cmd:"" help:"List messages to users, newest first, with their state and last error."`
	Resend messageResendCommand `cmd:"" help:"Send a message again whose delivery was given up."`
	Test   messageTestCommand   `cmd:"" help:"Send a test message at once and print what the mail server, the SMS service or the push service answers."`
}

type messageListCommand struct {
	State string           `enum:",pending,sent,dead" default:"" placeholder:"STATE" help:"Only messages in this state: pending, sent or dead (given up)."`
	User  string           `placeholder:"LOGIN" help:"Only messages to this user."`
	Limit int              `default:"100" help:"Print at most this many messages, up to 1000."`
	From  cli.Installation `embed:""`
}

// MessageJSON is a message as --json prints it. The text of the message is left out, since it may have
// secrets.
type MessageJSON struct {
	ID        string     `json:"id"`
	Channel   string     `json:"channel"`
	To        string     `json:"to"`
	Subject   string     `json:"subject"`
	UserID    string     `json:"user_id"`
	State     string     `json:"state"`
	Attempts  int        `json:"attempts"`
	Error     string     `json:"error"`
	CreatedAt time.Time  `json:"created_at"`
	DueAt     *time.Time `json:"due_at,omitempty"`  // only if pending
	DoneAt    *time.Time `json:"done_at,omitempty"` // only if not pending
	ExpiresAt time.Time  `json:"expires_at"`
}

func (l *messageListCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &l.From, "ListMessages", l.User, func(ctx context.Context, s *app.Services) error {
		q := notify.MessageQuery{State: notify.State(l.State), Limit: l.Limit}
		if l.User != "" {
			u, err := s.Users.ByLogin(ctx, l.User)
			if err != nil {
				return err
			}
			q.UserID = u.ID
		}
		list, err := s.Messages.List(ctx, q)
		if err != nil {
			return err
		}
		lines := make([]MessageJSON, len(list))
		var text strings.Builder
		table := c.NewTable(&text, "ID", "CREATED", "CHANNEL", "TO", "SUBJECT", "STATE", "ATTEMPTS", "NOTE")
		for i, r := range list {
			lines[i] = MessageJSON{
				ID: r.ID, Channel: string(r.Channel), To: r.To, Subject: r.Subject, UserID: r.UserID,
				State: string(r.State), Attempts: r.Attempts, Error: r.Error, CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt,
			}
			note := ""
			if r.State == notify.Pending {
				lines[i].DueAt = &r.DueAt
				if r.Attempts > 0 {
					note = c.Text("next attempt %s", r.DueAt.Format(time.RFC3339))
				}
			} else {
				lines[i].DoneAt = &r.DoneAt
			}
			if r.Error != "" {
				note = strings.TrimPrefix(note+"; "+cli.Printable(r.Error), "; ")
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", r.ID, r.CreatedAt.Format(time.RFC3339), r.Channel,
				cli.Printable(r.To), cli.Printable(r.Subject), r.State, r.Attempts, note)
		}
		table.Flush()
		return l.From.Answer(c, lines, "%s", text.String())
	})
}

type messageResendCommand struct {
	ID   string           `arg:"" help:"Identifier of the message, as the list shows it."`
	From cli.Installation `embed:""`
}

func (r *messageResendCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &r.From, "ResendMessage", r.ID, func(ctx context.Context, s *app.Services) error {
		if err := s.Messages.Resend(ctx, r.ID); err != nil {
			return err
		}
		return r.From.Answer(c, map[string]string{"resent": r.ID}, "Message %s is queued; a running server sends it.\n", r.ID)
	})
}

type messageTestCommand struct {
	Channel string           `arg:"" enum:"email,sms,push" help:"Channel: email, sms or push."`
	To      string           `arg:"" placeholder:"RECIPIENT" help:"E-mail address or phone number. For push the login of a person: each of the person's devices and browsers gets a message through its push service."`
	From    cli.Installation `embed:""`
}

// Help returns the text above the flags.
func (messageTestCommand) Help() string {
	return `The message passes the outbox and is not repeated. The exit code is 1 if the other side does not take it.`
}

func (m *messageTestCommand) Run(c *cli.Console) error {
	trials, err := cli.TryMessage(c, &m.From, m.Channel, m.To)
	if err != nil {
		return err
	}
	failed := 0
	var text strings.Builder
	for _, t := range trials {
		text.WriteString(c.Say(t.Sentence()) + "\n")
		for _, answer := range t.Answers {
			text.WriteString("  " + cli.Printable(answer) + "\n")
		}
		if t.Error != "" {
			failed++
		}
	}
	if err := m.From.Answer(c, map[string]any{"trials": trials}, "%s", text.String()); err != nil || failed == 0 {
		return err
	}
	return cli.ExitCode(1)
}
