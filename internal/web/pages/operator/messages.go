// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// messageStates are the states of messages in the form.
var messageStates = []string{"", string(notify.Dead), string(notify.Pending), string(notify.Sent)}

// messages lists the outbox, the newest first. The text of a message is not shown: it may have
// secrets.
func (a *API) messages(ctx context.Context, r struct {
	Done   string `query:"done"`
	State  string `query:"state"`
	Before string `query:"before"`
}) (view.View, error) {
	if !slices.Contains(messageStates, r.State) {
		return view.View{}, fault.New(fault.InvalidParameters, "state: want pending, sent or dead")
	}
	list, err := a.Messages.List(ctx, notify.MessageQuery{State: notify.State(r.State), Before: r.Before, Limit: pageRows})
	if err != nil {
		return view.View{}, err
	}
	t := table{Title: "messages.title", Head: []string{"requests.at", "messages.to", "messages.subject", "certificate.state", "messages.attempts", "messages.error"}, Empty: "messages.none"}
	w := view.VisitorOf(ctx).Words
	for _, m := range list {
		line := row{Cells: []cell{
			{At: m.CreatedAt}, {Text: recipient(w, &m), Address: objectAt(m.UserID)}, {Text: messageName(w, m.Subject)}, {Key: "messages.state." + string(m.State), Bad: m.State == notify.Dead},
			{Text: strconv.Itoa(m.Attempts)}, {Detail: m.Error},
		}}
		if m.State == notify.Dead {
			line.Commands = []link{a.commandLink("/operator/messages", "", "message-again", m.ID)}
		}
		t.Rows = append(t.Rows, line)
	}
	if len(list) == pageRows {
		t.Next = "/operator/messages?" + url.Values{"state": {r.State}, "before": {list[len(list)-1].ID}}.Encode()
	}
	t.Commands = []link{{Address: "/operator/messages/preview", Key: "messages.preview"}}
	if a.may(rest.Caller(ctx), Administrator) && len(a.tried()) > 0 {
		t.Commands = append(t.Commands, a.commandLink("/operator/messages", "", "message-try", ""))
	}
	for _, s := range messageStates {
		t.Filters = append(t.Filters, view.Tab{Address: "/operator/messages?state=" + s, Key: "messages.only." + cmp.Or(s, "all"), Here: s == r.State})
	}
	return a.office(ctx, "sections", "messages.title", r.Done, sections{Tables: []table{t}}), nil
}

// messageName returns what a message is about: the name of its template or of its event.
func messageName(w *view.Words, about string) string {
	if text, ok := w.Lookup("messages.template." + about); ok {
		return text
	}
	if e, ok := notify.EventByName(about); ok {
		return e.Description[w.Language]
	}
	return about
}

// recipient returns the channel and the address of a message.
func recipient(w *view.Words, m *notify.Record) string {
	return w.TextOr("channel."+string(m.Channel), string(m.Channel)) + " " + m.To
}

// messageObject finds a message of the outbox. People know it by its recipient and what it is about.
func (a *API) messageObject(ctx context.Context, _, of string) (*object, error) {
	m, err := a.Messages.Message(ctx, of)
	if err != nil {
		return nil, err
	}
	w := view.VisitorOf(ctx).Words
	return &object{Of: of, Note: recipient(w, &m) + " – " + messageName(w, m.Subject), back: "/operator/messages", unnamed: true}, nil
}

// previewView shows the texts of a message.
type previewView struct {
	Messages []view.Option
	Texts    []notify.Preview
}

// previewMessage shows the texts of a message with sample values, as they would be sent.
func (a *API) previewMessage(ctx context.Context, r struct {
	Message string `query:"message"`
}) (view.View, error) {
	w := view.VisitorOf(ctx).Words
	about := cmp.Or(r.Message, notify.TemplateConfirmationCode)
	texts, err := a.Messages.Preview(about)
	if err != nil {
		return view.View{}, err
	}
	rest.Detail(ctx, "message "+about)
	templates, events := notify.Previewed()
	v := previewView{Texts: texts}
	for _, name := range templates {
		v.Messages = append(v.Messages, view.Option{Value: name, Text: w.Text("messages.template." + name), Chosen: name == about})
	}
	for _, e := range events {
		v.Messages = append(v.Messages, view.Option{Value: string(e.Type), Text: e.Description[w.Language], Chosen: string(e.Type) == about})
	}
	return a.office(ctx, "preview", "messages.preview", "", v), nil
}

// tried returns the channels to people that this installation has.
func (a *API) tried() (list []pick) {
	for _, c := range a.Messages.Available() {
		list = append(list, pick{Value: string(c), Key: "channel." + string(c)})
	}
	return list
}

func (a *API) messageCommands() []command {
	try := command{name: "message-try", adds: true, operation: "TestMessage", effects: does(effect.None), more: func(context.Context, *object) ([]field, error) {
		return []field{{name: "channel", kind: kindChoice, choices: a.tried()}, {name: "recipient", required: true, hint: "field.hint.recipient"}}, nil
	}, do: func(ctx context.Context, _ *object, f rest.Form) (*made, error) {
		rest.Concerning(ctx, f.Get("recipient"))
		facts, err := a.TryMessage(ctx, view.CallerOf(ctx), notify.Channel(f.Get("channel")), strings.TrimSpace(f.Get("recipient")))
		return &made{Facts: facts, Note: "messages.tried"}, err
	}}
	return []command{try, {name: "message-again", operation: "ResendMessage", effects: does(effect.None), do: func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
		rest.Concerning(ctx, o.Of)
		return nil, a.Messages.Resend(ctx, o.Of)
	}}}
}
