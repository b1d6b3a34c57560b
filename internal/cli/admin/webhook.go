// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/domain/notify"
)

// Webhook is the sub-command webhook.
type Webhook struct {
	Add    webhookAddCommand    `cmd:"" help:"Register a webhook: a system that receives events. Prints the secret that signs its messages, which is never shown again."`
	List   webhookListCommand   `cmd:"" help:"List the webhooks."`
	Change webhookChangeCommand `cmd:"" help:"Replace the address and the events of a webhook. Its secret stays, and messages that wait go to the new address."`
	Pause  webhookPauseCommand  `cmd:"" help:"Switch a webhook off. Events are not kept for it, and messages that wait are given up."`
	Resume webhookResumeCommand `cmd:"" help:"Switch a webhook on again, for events from now on."`
	Test   webhookTestCommand   `cmd:"" help:"Send a message of the type WebhookTest and say whether the system has taken it."`
	Remove webhookRemoveCommand `cmd:"" help:"Remove a webhook."`
}

// WebhookJSON is a subscription as --json prints it.
type WebhookJSON struct {
	ID        string    `json:"id"`
	URL       string    `json:"url"`
	Events    []string  `json:"events"` // empty: all events
	CreatedAt time.Time `json:"created_at"`
	Paused    bool      `json:"paused"`
	Secret    string    `json:"secret,omitempty"` // only of a new one
}

func describeWebhook(s notify.Subscription) WebhookJSON {
	w := WebhookJSON{ID: s.ID, URL: s.URL, Events: []string{}, CreatedAt: s.CreatedAt, Paused: !s.PausedAt.IsZero()}
	for _, e := range s.Events {
		w.Events = append(w.Events, string(e))
	}
	return w
}

type webhookAddCommand struct {
	URL   string           `arg:"" help:"https address that receives the messages (https://www.standardwebhooks.com)."`
	Event []string         `placeholder:"TYPE" help:"Type of event to receive; docs/events.md lists them. May be repeated. Default: all types."`
	From  cli.Installation `embed:""`
}

func (a *webhookAddCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &a.From, "AddWebhook", "", func(ctx context.Context, services *app.Services) error {
		s, secret, err := services.Webhooks.Add(ctx, a.URL, a.Event)
		if err != nil {
			return err
		}
		defer clear(secret)
		w := describeWebhook(s)
		w.Secret = "whsec_" + base64.StdEncoding.EncodeToString(secret)
		return a.From.Answer(c, w, "Webhook %s is registered. Its secret, shown only now:\n%s\n", w.ID, w.Secret)
	})
}

type webhookListCommand struct {
	From cli.Installation `embed:""`
}

func (l *webhookListCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &l.From, "ListWebhooks", "", func(ctx context.Context, services *app.Services) error {
		have, err := services.Webhooks.List(ctx)
		if err != nil {
			return err
		}
		lines := make([]WebhookJSON, len(have))
		var text strings.Builder
		table := c.NewTable(&text, "ID", "CREATED", "STATE", "ADDRESS", "EVENTS")
		for i, s := range have {
			lines[i] = describeWebhook(s)
			events := strings.Join(lines[i].Events, ", ")
			if events == "" {
				events = c.Text("all events")
			}
			state := cli.Word("on")
			if lines[i].Paused {
				state = cli.Word("off")
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", s.ID, s.CreatedAt.Format(time.RFC3339), c.Word(state), cli.Printable(s.URL), events)
		}
		table.Flush()
		return l.From.Answer(c, lines, "%s", text.String())
	})
}

// onWebhook names a webhook.
type onWebhook struct {
	ID   string           `arg:"" help:"Identifier of the webhook, as the list prints it."`
	From cli.Installation `embed:""`
}

// do calls act inside cli.Administer. past is the name of the identifier in JSON, and done the answer for people.
func (o *onWebhook) do(c *cli.Console, operation, past string, done cli.Sentence, act func(ctx context.Context, s *app.Services) error) error {
	return cli.Administer(c, &o.From, operation, o.ID, func(ctx context.Context, s *app.Services) error {
		if err := act(ctx, s); err != nil {
			return err
		}
		return o.From.Answer(c, map[string]string{past: o.ID}, "%s", done)
	})
}

type webhookChangeCommand struct {
	onWebhook `embed:""`
	URL       string   `placeholder:"ADDRESS" help:"New https address. Default: as before."`
	Event     []string `placeholder:"TYPE" xor:"events" help:"Type of event to receive, in place of those before; docs/events.md lists them. May be repeated. Default: as before."`
	All       bool     `xor:"events" help:"Receive all types of events."`
}

func (w *webhookChangeCommand) Run(c *cli.Console) error {
	if !w.All && len(w.Event) == 0 && w.URL == "" {
		return cli.UsageError{Err: errors.New("nothing to change: give --url, --event or --all")}
	}
	return w.do(c, "ChangeWebhook", "changed", cli.Say("Webhook %s is changed.\n", w.ID), func(ctx context.Context, services *app.Services) error {
		s, err := services.Webhooks.Subscription(ctx, w.ID)
		if err != nil {
			return err
		}
		events := w.Event
		if len(events) == 0 && !w.All {
			events = describeWebhook(s).Events
		}
		return services.Webhooks.Change(ctx, w.ID, cmp.Or(w.URL, s.URL), events)
	})
}

type webhookPauseCommand struct {
	onWebhook `embed:""`
}

func (w *webhookPauseCommand) Run(c *cli.Console) error {
	return w.do(c, "PauseWebhook", "paused", cli.Say("Webhook %s is off.\n", w.ID), func(ctx context.Context, s *app.Services) error { return s.Webhooks.Pause(ctx, w.ID) })
}

type webhookResumeCommand struct {
	onWebhook `embed:""`
}

func (w *webhookResumeCommand) Run(c *cli.Console) error {
	return w.do(c, "ResumeWebhook", "resumed", cli.Say("Webhook %s is on.\n", w.ID), func(ctx context.Context, s *app.Services) error { return s.Webhooks.Resume(ctx, w.ID) })
}

type webhookTestCommand struct {
	onWebhook `embed:""`
}

func (w *webhookTestCommand) Run(c *cli.Console) error {
	return w.do(c, "TestWebhook", "taken", cli.Say("The system has taken the message.\n"), func(ctx context.Context, s *app.Services) error {
		failed, err := s.Messages.TestWebhook(ctx, w.ID, c.Administrator().UserID)
		if err == nil && failed != nil {
			err = fmt.Errorf("the system has not taken the message: %w", failed)
		}
		return err
	})
}

type webhookRemoveCommand struct {
	onWebhook `embed:""`
}

func (w *webhookRemoveCommand) Run(c *cli.Console) error {
	return w.do(c, "RemoveWebhook", "removed", cli.Say("Webhook %s is removed.\n", w.ID), func(ctx context.Context, s *app.Services) error { return s.Webhooks.Remove(ctx, w.ID) })
}
