// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"

	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// webhooks lists the systems that receive events.
func (a *API) webhooks(ctx context.Context, r struct {
	Done string `query:"done"`
}) (view.View, error) {
	list, err := a.Webhooks.List(ctx)
	if err != nil {
		return view.View{}, err
	}
	t := table{Title: "webhooks.title", Head: []string{"webhooks.address", "webhooks.events", "certificate.state", "requests.at"}, Empty: "webhooks.none"}
	w := view.VisitorOf(ctx).Words
	for _, s := range list {
		t.Rows = append(t.Rows, row{
			Cells:    []cell{{Text: s.URL, Address: webhookAt(s.ID)}, eventsCell(w, s.Events), webhookState(&s), {At: s.CreatedAt}},
			Commands: a.webhookLinks(&s),
		})
	}
	t.Commands = []link{a.commandLink("/operator/webhooks", "", "webhook-add", "")}
	return a.office(ctx, "sections", "webhooks.title", r.Done, sections{Tables: []table{t}}), nil
}

func webhookAt(id string) string { return "/operator/webhooks/" + url.PathEscape(id) }

// webhookLinks leads to what can be done about a webhook.
func (a *API) webhookLinks(s *notify.Subscription) (links []link) {
	names := []string{"webhook-test", "webhook-change", "webhook-pause", "webhook-remove"}
	if !s.PausedAt.IsZero() {
		names = []string{"webhook-resume", "webhook-change", "webhook-remove"}
	}
	for _, n := range names {
		links = append(links, a.commandLink("/operator/webhooks", "", n, s.ID))
	}
	return links
}

func webhookState(s *notify.Subscription) cell {
	if s.PausedAt.IsZero() {
		return cell{Key: "webhooks.on"}
	}
	return cell{Key: "webhooks.off", Bad: true}
}

// eventsCell names types of events.
func eventsCell(w *view.Words, events []notify.EventType) cell {
	if len(events) == 0 {
		return cell{Key: "webhooks.all"}
	}
	names := make([]string, len(events))
	for i, e := range events {
		names[i] = messageName(w, string(e))
	}
	return cell{Text: strings.Join(names, ", ")}
}

// webhook shows a webhook and the state of what is sent to it.
func (a *API) webhook(ctx context.Context, r struct {
	Webhook string `path:"webhook"`
	Done    string `query:"done"`
	Before  string `query:"before"`
}) (view.View, error) {
	s, err := a.subscription(ctx, r.Webhook)
	if err != nil {
		return view.View{}, err
	}
	rest.Concerning(ctx, s.ID)
	waiting, err := a.Messages.List(ctx, notify.MessageQuery{Webhook: s.ID, State: notify.Pending, Oldest: true, Limit: pageRows})
	if err != nil {
		return view.View{}, err
	}
	sent, err := a.Messages.List(ctx, notify.MessageQuery{Webhook: s.ID, Before: r.Before, Limit: pageRows})
	if err != nil {
		return view.View{}, err
	}
	w := view.VisitorOf(ctx).Words
	facts := table{Title: "webhooks.settings", Facts: true, Commands: a.webhookLinks(&s), Rows: []row{
		fact("webhooks.address", cell{Text: s.URL}), fact("webhooks.events", eventsCell(w, s.Events)), fact("certificate.state", webhookState(&s)),
		fact("webhooks.added", cell{At: s.CreatedAt}), fact("webhooks.waiting", cell{Text: atMost(len(waiting), pageRows)}), fact("webhooks.id", cell{Text: s.ID, Code: true}),
	}}
	if !s.PausedAt.IsZero() {
		facts.Rows = append(facts.Rows, fact("webhooks.paused", cell{At: s.PausedAt}))
	}
	if len(waiting) > 0 && waiting[0].Error != "" { // the oldest is tried first
		facts.Rows = append(facts.Rows, fact("messages.error", cell{Detail: waiting[0].Error, Bad: true}))
	}
	deliveries := table{Title: "webhooks.deliveries", Head: []string{"requests.at", "messages.subject", "certificate.state", "messages.attempts", "messages.error"}, Empty: "webhooks.no_deliveries"}
	for _, m := range sent {
		line := row{Cells: []cell{
			{At: m.CreatedAt, Exact: true}, {Text: messageName(w, m.Subject)}, {Key: "messages.state." + string(m.State), Bad: m.State == notify.Dead}, {Text: strconv.Itoa(m.Attempts)}, {Detail: m.Error},
		}}
		if m.State == notify.Dead {
			line.Commands = []link{a.commandLink("/operator/messages", "", "message-again", m.ID)}
		}
		deliveries.Rows = append(deliveries.Rows, line)
	}
	if len(sent) == pageRows {
		deliveries.Next = webhookAt(s.ID) + "?before=" + url.QueryEscape(sent[len(sent)-1].ID)
	}
	return a.office(ctx, "sections", "webhooks.one", r.Done, sections{Tables: []table{facts, deliveries}}), nil
}

// webhookObject finds a system that receives events, by its identifier. People know it by its
// address.
func (a *API) webhookObject(ctx context.Context, _, of string) (*object, error) {
	o := &object{Of: of, back: "/operator/webhooks", unnamed: true}
	s, err := a.subscription(ctx, of)
	o.Name, o.Note = s.URL, s.URL
	return o, err
}

// subscription finds a webhook.
func (a *API) subscription(ctx context.Context, id string) (notify.Subscription, error) {
	s, err := a.Webhooks.Subscription(ctx, id)
	if fault.Is(err, fault.NotFound) {
		err = fault.New(fault.NotFound, "there is no such subscription")
	}
	return s, err
}

// webhookField lists the events by what has happened; a program that receives them knows the
// type beside it.
func webhookField(ctx context.Context, _ *object) ([]field, error) {
	f, w := field{name: "events", kind: kindMany}, view.VisitorOf(ctx).Words
	for _, e := range notify.Events() {
		f.choices = append(f.choices, pick{Value: string(e.Type), Text: e.Description[w.Language] + " – " + string(e.Type)})
	}
	return []field{f}, nil
}

func (a *API) webhookCommands() []command {
	webhooks := a.Webhooks
	return []command{
		{name: "webhook-add", adds: true, operation: "AddWebhook", effects: does(effect.None), fields: []field{{name: "address", required: true}}, more: webhookField, do: func(ctx context.Context, _ *object, f rest.Form) (*made, error) {
			s, secret, err := a.Webhooks.Add(ctx, f.Get("address"), f["events"])
			if err != nil {
				return nil, err
			}
			defer clear(secret)
			rest.Concerning(ctx, s.ID)
			return &made{Secret: "whsec_" + base64.StdEncoding.EncodeToString(secret), Note: "webhooks.secret"}, nil
		}},
		{name: "webhook-change", operation: "ChangeWebhook", effects: does(effect.None), more: func(ctx context.Context, o *object) ([]field, error) {
			s, err := webhooks.Subscription(ctx, o.Of)
			if err != nil {
				return nil, err
			}
			fields, err := webhookField(ctx, o)
			for _, e := range s.Events {
				fields[0].values = append(fields[0].values, string(e))
			}
			return append([]field{{name: "address", required: true, value: s.URL}}, fields...), err
		}, do: func(ctx context.Context, o *object, f rest.Form) (*made, error) {
			rest.Concerning(ctx, o.Of)
			o.back = webhookAt(o.Of)
			return nil, webhooks.Change(ctx, o.Of, f.Get("address"), f["events"])
		}},
		{name: "webhook-pause", operation: "PauseWebhook", effects: does(effect.None), do: func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
			rest.Concerning(ctx, o.Of)
			o.back = webhookAt(o.Of)
			return nil, webhooks.Pause(ctx, o.Of)
		}},
		{name: "webhook-resume", operation: "ResumeWebhook", effects: does(effect.None), do: func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
			rest.Concerning(ctx, o.Of)
			o.back = webhookAt(o.Of)
			return nil, webhooks.Resume(ctx, o.Of)
		}},
		{name: "webhook-test", operation: "TestWebhook", effects: does(effect.None), do: func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
			rest.Concerning(ctx, o.Of)
			failed, err := a.Messages.TestWebhook(ctx, o.Of, rest.Caller(ctx).UserID)
			if err != nil {
				return nil, err
			}
			f := Fact{Key: "check.webhook", Value: view.VisitorOf(ctx).Words.Text("webhooks.taken")}
			if failed != nil {
				f.Failed, f.Bad = notify.OneLine(failed.Error()), true
			}
			o.back = webhookAt(o.Of)
			return &made{Facts: []Fact{f}, Note: "webhooks.tested"}, nil
		}},
		{name: "webhook-remove", operation: "RemoveWebhook", effects: does(effect.None), named: true, do: func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
			rest.Concerning(ctx, o.Of)
			return nil, a.Webhooks.Remove(ctx, o.Of)
		}},
	}
}
