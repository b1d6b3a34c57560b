// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/base64"
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
	Remove webhookRemoveCommand `cmd:"" help:"Remove a webhook."`
}

// WebhookJSON is a subscription as --json prints it.
type WebhookJSON struct {
	ID        string    `json:"id"`
	URL       string    `json:"url"`
	Events    []string  `json:"events"` // empty: all events
	CreatedAt time.Time `json:"created_at"`
	Secret    string    `json:"secret,omitempty"` // only of a new one
}

func describeWebhook(s notify.Subscription) WebhookJSON {
	w := WebhookJSON{ID: s.ID, URL: s.URL, Events: []string{}, CreatedAt: s.CreatedAt}
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
	return cli.Administer(c, &a.From, "AddWebhook", "", func(ctx context.Context, h *app.Rooms) error {
		s, secret, err := h.Webhooks.Add(ctx, a.URL, a.Event)
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
	return cli.Administer(c, &l.From, "ListWebhooks", "", func(ctx context.Context, h *app.Rooms) error {
		have, err := h.Webhooks.List(ctx)
		if err != nil {
			return err
		}
		lines := make([]WebhookJSON, len(have))
		var text strings.Builder
		table := c.NewTable(&text, "ID", "CREATED", "ADDRESS", "EVENTS")
		for i, s := range have {
			lines[i] = describeWebhook(s)
			events := strings.Join(lines[i].Events, ", ")
			if events == "" {
				events = c.Text("all events")
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.ID, s.CreatedAt.Format(time.RFC3339), cli.Printable(s.URL), events)
		}
		table.Flush()
		return l.From.Answer(c, lines, "%s", text.String())
	})
}

type webhookRemoveCommand struct {
	ID   string           `arg:"" help:"Identifier of the webhook, as the list prints it."`
	From cli.Installation `embed:""`
}

func (r *webhookRemoveCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &r.From, "RemoveWebhook", r.ID, func(ctx context.Context, h *app.Rooms) error {
		if err := h.Webhooks.Remove(ctx, r.ID); err != nil {
			return err
		}
		return r.From.Answer(c, map[string]string{"removed": r.ID}, "Webhook %s is removed.\n", r.ID)
	})
}
