// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/oath/stock"
	"tamga/internal/domain/policy"
	"tamga/internal/web/rest"
)

// installationDeeds are those that are about no user.
func (a *API) installationDeeds() []deedGroup {
	return []deedGroup{
		{at: "/operator/held", right: Operator, reads: "GetApproval", list: a.heldDeeds(), object: a.heldObject},
		{at: "/operator/groups", right: Administrator, reads: "ListGroups", list: a.groupDeeds(), object: a.groupObject},
		{at: "/operator/messages", right: Administrator, reads: "ListMessages", list: a.messageDeeds(), object: a.messageObject},
		{at: "/operator/tokens", right: Administrator, reads: "ListTokens", list: a.tokenDeeds(), object: thing("/operator/tokens")},
		{at: "/operator/webhooks", right: Administrator, reads: "GetWebhook", list: a.webhookDeeds(), object: a.webhookObject},
		{at: "/operator/services", right: Administrator, reads: "ListTSPServices", list: a.serviceDeeds(), object: thing("/operator/services")},
	}
}

// groups lists the groups with their policies, page by page.
func (a *API) groups(ctx context.Context, r struct {
	Done  string `query:"done"`
	After string `query:"after"`
}) (view, error) {
	list, err := a.Operators.People.GroupsAfter(ctx, r.After, pageRows+1)
	if err != nil {
		return view{}, err
	}
	shown := list[:min(len(list), pageRows)]
	names := make([]string, len(shown))
	for i, g := range shown {
		names[i] = g.Name
	}
	kinds, err := a.Operators.Policies.Store.GroupKinds(ctx, names)
	if err != nil {
		return view{}, err
	}
	t := table{Title: "groups.title", Head: []string{"column.Group", "groups.about", "groups.own", "groups.created"}, Empty: "groups.none"}
	for _, g := range shown {
		own, names := cell{Key: "groups.no_own"}, []string{"group-access", "group-operation"}
		if len(kinds[g.Name]) > 0 {
			own, names = cell{}, append(names, "group-clear")
			for _, k := range kinds[g.Name] {
				own.Badges = append(own.Badges, "policy.kind."+string(k))
			}
		}
		names = append(names, "group-rename", "group-delete")
		line := row{Cells: []cell{{Text: g.Name}, {Text: g.Title}, own, {At: g.CreatedAt}}}
		for _, n := range names {
			line.Deeds = append(line.Deeds, a.deedLink("/operator/groups", "", n, g.Name))
		}
		t.Rows = append(t.Rows, line)
	}
	if len(list) > pageRows {
		t.Next = "/operator/groups?after=" + url.QueryEscape(shown[pageRows-1].Name)
	}
	t.Deeds = []link{a.deedLink("/operator/groups", "", "group-add", "")}
	return a.office(ctx, "sections", "groups.title", r.Done, sections{Tables: []table{t}}), nil
}

// thing is an object that deed.about finds.
func thing(back string) func(context.Context, string, string) (*object, error) {
	return func(_ context.Context, _, of string) (*object, error) {
		return &object{Of: of, Name: of, back: back}, nil
	}
}

// groupObject finds a group.
func (a *API) groupObject(ctx context.Context, _, of string) (*object, error) {
	if _, err := a.Operators.People.Group(ctx, of); err != nil {
		return nil, err
	}
	return &object{Of: of, Name: of, back: "/operator/groups"}, nil
}

func (a *API) groupDeeds() []deed {
	policies := a.Operators.Policies
	actions := func(name string, kind policy.Kind) deed {
		return deed{name: name, operation: "SetPolicy", more: func(ctx context.Context, o *object) ([]field, error) {
			have, err := policies.Store.GroupSetting(ctx, o.Of, kind)
			if err != nil {
				return nil, err
			}
			set := policies.Defaults[kind]
			if have != nil {
				set = *have
			}
			fixed := field{name: "fixed", kind: kindChoice, value: strconv.FormatBool(set.Fixed), choices: []pick{{Value: "false", Key: "choice.no"}, {Value: "true", Key: "choice.yes"}}}
			return []field{fixed, actionField(set.Actions)}, nil
		}, do: func(ctx context.Context, o *object, f rest.Form) (*made, error) {
			set, err := policy.ParseActions(f["actions"])
			if err != nil {
				return nil, err
			}
			rest.Concerning(ctx, o.Of)
			return nil, policies.SetGroup(ctx, o.Of, kind, &policy.Setting{Actions: set, Fixed: f.Get("fixed") == "true"})
		}}
	}
	own := func(ctx context.Context, o *object) ([]field, error) {
		kinds, err := policies.Store.GroupKinds(ctx, []string{o.Of})
		f := field{name: "kind", kind: kindChoice}
		for _, k := range kinds[o.Of] {
			f.choices = append(f.choices, pick{Value: string(k), Key: "policy.kind." + string(k)})
		}
		return []field{f}, err
	}
	return []deed{
		{name: "group-add", adds: true, operation: "AddGroup", fields: []field{{name: "group", required: true}, {name: "about"}}, do: func(ctx context.Context, _ *object, f rest.Form) (*made, error) {
			rest.Concerning(ctx, f.Get("group"))
			_, err := a.Operators.People.AddGroup(ctx, f.Get("group"), f.Get("about"))
			return nil, err
		}},
		{name: "group-rename", operation: "RenameGroup", more: func(_ context.Context, o *object) ([]field, error) {
			return []field{{name: "group", required: true, value: o.Of}}, nil
		}, do: func(ctx context.Context, o *object, f rest.Form) (*made, error) {
			rest.Concerning(ctx, o.Of)
			rest.Detail(ctx, f.Get("group"))
			return nil, a.Operators.People.RenameGroup(ctx, o.Of, f.Get("group"))
		}},
		{name: "group-delete", operation: "DeleteGroup", named: true, do: func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
			rest.Concerning(ctx, o.Of)
			return nil, a.Operators.People.DeleteGroup(ctx, o.Of)
		}},
		actions("group-access", policy.Access), actions("group-operation", policy.Operation),
		{name: "group-clear", operation: "ClearPolicy", named: true, more: own, possible: func(ctx context.Context, o *object) error {
			kinds, err := policies.Store.GroupKinds(ctx, []string{o.Of})
			if err == nil && len(kinds[o.Of]) == 0 {
				err = fault.New(fault.NotFound, "the group has no policy of its own: it was removed already")
			}
			return err
		}, do: func(ctx context.Context, o *object, f rest.Form) (*made, error) {
			kind := policy.Kind(f.Get("kind"))
			if !slices.Contains(policy.Kinds(), kind) {
				return nil, fault.New(fault.InvalidParameters, "kind: want one of the list")
			}
			rest.Concerning(ctx, o.Of)
			return nil, policies.SetGroup(ctx, o.Of, kind, nil)
		}},
	}
}

// messageStates are the states of messages in the form.
var messageStates = []string{"", string(notify.Dead), string(notify.Pending), string(notify.Sent)}

// messages lists the outbox, the newest first. The text of a message is not shown: it may have
// secrets.
func (a *API) messages(ctx context.Context, r struct {
	Done   string `query:"done"`
	State  string `query:"state"`
	Before string `query:"before"`
}) (view, error) {
	if !slices.Contains(messageStates, r.State) {
		return view{}, fault.New(fault.InvalidParameters, "state: want pending, sent or dead")
	}
	list, err := a.Operators.Messages.List(ctx, notify.MessageQuery{State: notify.State(r.State), Before: r.Before, Limit: pageRows})
	if err != nil {
		return view{}, err
	}
	t := table{Title: "messages.title", Head: []string{"requests.at", "messages.to", "messages.subject", "certificate.state", "messages.attempts", "messages.error"}, Empty: "messages.none"}
	w := visitorOf(ctx).words
	for _, m := range list {
		line := row{Cells: []cell{
			{At: m.CreatedAt}, {Text: w.recipient(&m), Address: objectAt(m.UserID)}, {Text: w.messageName(m.Subject)}, {Key: "messages.state." + string(m.State), Bad: m.State == notify.Dead},
			{Text: strconv.Itoa(m.Attempts)}, {Detail: m.Error},
		}}
		if m.State == notify.Dead {
			line.Deeds = []link{a.deedLink("/operator/messages", "", "message-again", m.ID)}
		}
		t.Rows = append(t.Rows, line)
	}
	if len(list) == pageRows {
		t.Next = "/operator/messages?" + url.Values{"state": {r.State}, "before": {list[len(list)-1].ID}}.Encode()
	}
	t.Deeds = []link{{"/operator/messages/preview", "messages.preview"}}
	for _, s := range messageStates {
		t.Filters = append(t.Filters, tab{Address: "/operator/messages?state=" + s, Key: "messages.only." + cmp.Or(s, "all"), Here: s == r.State})
	}
	return a.office(ctx, "sections", "messages.title", r.Done, sections{Tables: []table{t}}), nil
}

// messageName returns what a message is about: the name of its template or of its event.
func (w *words) messageName(about string) string {
	if text, ok := w.texts["messages.template."+about]; ok {
		return text
	}
	if e, ok := notify.EventByName(about); ok {
		return e.Description[w.language]
	}
	return about
}

// recipient returns the channel and the address of a message.
func (w *words) recipient(m *notify.Record) string {
	return w.known("channel."+string(m.Channel), string(m.Channel)) + " " + m.To
}

// messageObject finds a message of the outbox. People know it by its recipient and what it is about.
func (a *API) messageObject(ctx context.Context, _, of string) (*object, error) {
	m, err := a.Operators.Messages.Message(ctx, of)
	if err != nil {
		return nil, err
	}
	w := visitorOf(ctx).words
	return &object{Of: of, Note: w.recipient(&m) + " – " + w.messageName(m.Subject), back: "/operator/messages", unnamed: true}, nil
}

// previewView shows the texts of a message.
type previewView struct {
	Messages []option
	Texts    []notify.Preview
}

// previewMessage shows the texts of a message with sample values, as they would be sent.
func (a *API) previewMessage(ctx context.Context, r struct {
	Message string `query:"message"`
}) (view, error) {
	w := visitorOf(ctx).words
	about := cmp.Or(r.Message, notify.TemplateConfirmationCode)
	texts, err := a.Operators.Messages.Preview(about)
	if err != nil {
		return view{}, err
	}
	rest.Detail(ctx, "message "+about)
	templates, events := notify.Previewed()
	v := previewView{Texts: texts}
	for _, name := range templates {
		v.Messages = append(v.Messages, option{name, w.text("messages.template." + name), name == about})
	}
	for _, e := range events {
		v.Messages = append(v.Messages, option{string(e.Type), e.Description[w.language], string(e.Type) == about})
	}
	return a.office(ctx, "preview", "messages.preview", "", v), nil
}

func (a *API) messageDeeds() []deed {
	return []deed{{name: "message-again", operation: "ResendMessage", do: func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
		rest.Concerning(ctx, o.Of)
		return nil, a.Operators.Messages.Resend(ctx, o.Of)
	}}}
}

// tokens lists the tokens in stock and those of users.
func (a *API) tokens(ctx context.Context, r struct {
	Done  string `query:"done"`
	Free  string `query:"free"`
	After string `query:"after"`
}) (view, error) {
	list, err := a.Operators.OneTime.Tokens(ctx, oath.Query{After: r.After, Free: r.Free != "", Limit: pageRows})
	if err != nil {
		return view{}, err
	}
	t := table{Title: "tokens.title", Head: []string{"field.serial", "requests.kind", "person.title", "certificate.state", "requests.at"}, Empty: "tokens.none"}
	users := make([]string, len(list))
	for i := range list {
		users[i] = list[i].UserID
	}
	owners, err := a.aboutAll(ctx, users)
	if err != nil {
		return view{}, err
	}
	for i, x := range list {
		state, names, owner := cell{Key: "tokens.usable"}, []string(nil), owners[i]
		if x.UserID == "" {
			owner, names = cell{Key: "tokens.free"}, []string{"token-discard"}
		}
		if a.Now().Before(x.LockedUntil) {
			state, names = cell{Key: "people.locked", Bad: true}, append(names, "token-unlock")
		}
		line := row{Cells: []cell{{Text: x.Serial}, {Key: "token.kind." + strings.ToLower(string(x.Type))}, owner, state, {At: x.CreatedAt}}}
		if x.UserID != "" && owner.Text != x.UserID { // a person whom the operator reaches
			line.Deeds = a.linksFrom("tokens", x.UserID, x.Serial, "token-sync")
		}
		for _, n := range names {
			line.Deeds = append(line.Deeds, a.deedLink("/operator/tokens", "", n, x.Serial))
		}
		t.Rows = append(t.Rows, line)
	}
	if len(list) == pageRows {
		t.Next = "/operator/tokens?" + url.Values{"free": {r.Free}, "after": {list[len(list)-1].Serial}}.Encode()
	}
	t.Filters = []tab{{Address: "/operator/tokens", Key: "tokens.all", Here: r.Free == ""}, {Address: "/operator/tokens?free=yes", Key: "tokens.only_free", Here: r.Free != ""}}
	t.Deeds = []link{a.deedLink("/operator/tokens", "", "token-import", "")}
	return a.office(ctx, "sections", "tokens.title", r.Done, sections{Tables: []table{t}}), nil
}

func (a *API) tokenDeeds() []deed {
	service := a.Operators.OneTime
	about := func(ctx context.Context, o *object) (row, error) {
		token, found, err := service.TokenNumbered(ctx, o.Of)
		if err == nil && !found {
			err = fault.Newf(fault.NotFound, "there is no token %.64q: it was deleted, or the link is wrong", o.Of)
		}
		return row{Cells: []cell{visitorOf(ctx).words.tokenCell(token)}}, err
	}
	return []deed{
		{name: "token-import", adds: true, operation: "ImportTokens", fields: []field{
			{name: "file", kind: kindFile, hint: "field.hint.tokens"}, {name: "tokens", kind: kindArea}, {name: "password", kind: kindSecret}, {name: "key", kind: kindSecret, hint: "field.hint.key"},
		}, do: func(ctx context.Context, _ *object, f rest.Form) (*made, error) {
			list, err := readStock(f)
			if err != nil {
				return nil, err
			}
			defer stock.Wipe(list)
			known, err := service.ImportTokens(ctx, list)
			if err != nil {
				return nil, err
			}
			rest.Detail(ctx, strconv.Itoa(len(list)-len(known))+" tokens")
			return &made{Text: strconv.Itoa(len(list) - len(known)), Note: "tokens.imported"}, nil
		}},
		{name: "token-unlock", operation: "UnlockToken", about: about, do: func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
			rest.Concerning(ctx, o.Of)
			return nil, service.UnlockToken(ctx, o.Of)
		}},
		{name: "token-discard", operation: "DiscardToken", named: true, about: about, do: func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
			rest.Concerning(ctx, o.Of)
			return nil, service.DiscardToken(ctx, o.Of)
		}},
	}
}

// readStock reads the file of a vendor, or its text, from a form.
func readStock(f rest.Form) (list []stock.Token, err error) {
	_, chosen := f["file"]
	text := strings.TrimRight(cmp.Or(f.Get("file"), f.Get("tokens")), " \t\r\n")
	switch {
	case chosen && f.Get("tokens") != "":
		return nil, fault.New(fault.InvalidParameters, "choose a file or paste its text, not both")
	case !chosen && text == "":
		return nil, fault.New(fault.ContentRequired, "choose the file of the vendor, or paste its text")
	case !utf8.ValidString(text):
		return nil, fault.New(fault.InvalidContent, "the tokens cannot be read: the file is not text in UTF-8")
	}
	if strings.HasPrefix(strings.TrimLeft(strings.TrimPrefix(text, "\ufeff"), " \t\r\n"), "<") {
		with := stock.Opening{Password: f.Get("password")}
		if with.Key, err = hex.DecodeString(strings.TrimSpace(f.Get("key"))); err != nil {
			return nil, fault.New(fault.InvalidParameters, "key: want hexadecimal digits")
		}
		if len(with.Key) == 0 {
			with.Key = nil
		}
		list, err = stock.ReadPSKC(strings.NewReader(text), with)
	} else {
		list, err = stock.ReadCSV(strings.NewReader(text))
	}
	if _, is := fault.As(err); err != nil && !is {
		why := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "stock: "), "\n", "; ") // has no secret
		err = fault.Newf(fault.InvalidContent, "the tokens cannot be read: %s", why).With(err)
	}
	return list, err
}

// webhooks lists the systems that receive events.
func (a *API) webhooks(ctx context.Context, r struct {
	Done string `query:"done"`
}) (view, error) {
	list, err := a.Operators.Webhooks.List(ctx)
	if err != nil {
		return view{}, err
	}
	t := table{Title: "webhooks.title", Head: []string{"webhooks.address", "webhooks.events", "certificate.state", "requests.at"}, Empty: "webhooks.none"}
	w := visitorOf(ctx).words
	for _, s := range list {
		t.Rows = append(t.Rows, row{
			Cells: []cell{{Text: s.URL, Address: webhookAt(s.ID)}, w.eventsCell(s.Events), webhookState(&s), {At: s.CreatedAt}},
			Deeds: a.webhookLinks(&s),
		})
	}
	t.Deeds = []link{a.deedLink("/operator/webhooks", "", "webhook-add", "")}
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
		links = append(links, a.deedLink("/operator/webhooks", "", n, s.ID))
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
func (w *words) eventsCell(events []notify.EventType) cell {
	if len(events) == 0 {
		return cell{Key: "webhooks.all"}
	}
	names := make([]string, len(events))
	for i, e := range events {
		names[i] = w.messageName(string(e))
	}
	return cell{Text: strings.Join(names, ", ")}
}

// webhook shows a webhook and the state of what is sent to it.
func (a *API) webhook(ctx context.Context, r struct {
	Webhook string `path:"webhook"`
	Done    string `query:"done"`
	Before  string `query:"before"`
}) (view, error) {
	s, err := a.subscription(ctx, r.Webhook)
	if err != nil {
		return view{}, err
	}
	rest.Concerning(ctx, s.ID)
	waiting, err := a.Operators.Messages.List(ctx, notify.MessageQuery{Webhook: s.ID, State: notify.Pending, Oldest: true, Limit: pageRows})
	if err != nil {
		return view{}, err
	}
	sent, err := a.Operators.Messages.List(ctx, notify.MessageQuery{Webhook: s.ID, Before: r.Before, Limit: pageRows})
	if err != nil {
		return view{}, err
	}
	w := visitorOf(ctx).words
	facts := table{Title: "webhooks.settings", Facts: true, Deeds: a.webhookLinks(&s), Rows: []row{
		fact("webhooks.address", cell{Text: s.URL}), fact("webhooks.events", w.eventsCell(s.Events)), fact("certificate.state", webhookState(&s)),
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
			{At: m.CreatedAt, Exact: true}, {Text: w.messageName(m.Subject)}, {Key: "messages.state." + string(m.State), Bad: m.State == notify.Dead}, {Text: strconv.Itoa(m.Attempts)}, {Detail: m.Error},
		}}
		if m.State == notify.Dead {
			line.Deeds = []link{a.deedLink("/operator/messages", "", "message-again", m.ID)}
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
	s, err := a.Operators.Webhooks.Subscription(ctx, id)
	if fault.Is(err, fault.NotFound) {
		err = fault.New(fault.NotFound, "there is no such subscription")
	}
	return s, err
}

// webhookField lists the events by what has happened; a program that receives them knows the
// type beside it.
func webhookField(ctx context.Context, _ *object) ([]field, error) {
	f, w := field{name: "events", kind: kindMany}, visitorOf(ctx).words
	for _, e := range notify.Events() {
		f.choices = append(f.choices, pick{Value: string(e.Type), Text: e.Description[w.language] + " – " + string(e.Type)})
	}
	return []field{f}, nil
}

func (a *API) webhookDeeds() []deed {
	webhooks := a.Operators.Webhooks
	return []deed{
		{name: "webhook-add", adds: true, operation: "AddWebhook", fields: []field{{name: "address", required: true}}, more: webhookField, do: func(ctx context.Context, _ *object, f rest.Form) (*made, error) {
			s, secret, err := a.Operators.Webhooks.Add(ctx, f.Get("address"), f["events"])
			if err != nil {
				return nil, err
			}
			defer clear(secret)
			rest.Concerning(ctx, s.ID)
			return &made{Secret: "whsec_" + base64.StdEncoding.EncodeToString(secret), Note: "webhooks.secret"}, nil
		}},
		{name: "webhook-change", operation: "ChangeWebhook", more: func(ctx context.Context, o *object) ([]field, error) {
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
		{name: "webhook-pause", operation: "PauseWebhook", do: func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
			rest.Concerning(ctx, o.Of)
			o.back = webhookAt(o.Of)
			return nil, webhooks.Pause(ctx, o.Of)
		}},
		{name: "webhook-resume", operation: "ResumeWebhook", do: func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
			rest.Concerning(ctx, o.Of)
			o.back = webhookAt(o.Of)
			return nil, webhooks.Resume(ctx, o.Of)
		}},
		{name: "webhook-test", operation: "TestWebhook", do: func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
			rest.Concerning(ctx, o.Of)
			failed, err := a.Operators.Messages.TestWebhook(ctx, o.Of, rest.Caller(ctx).UserID)
			if err != nil {
				return nil, err
			}
			f := Fact{Key: "check.webhook", Value: visitorOf(ctx).words.text("webhooks.taken")}
			if failed != nil {
				f.Failed, f.Bad = notify.OneLine(failed.Error()), true
			}
			o.back = webhookAt(o.Of)
			return &made{Facts: []Fact{f}, Note: "webhooks.tested"}, nil
		}},
		{name: "webhook-remove", operation: "RemoveWebhook", named: true, do: func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
			rest.Concerning(ctx, o.Of)
			return nil, a.Operators.Webhooks.Remove(ctx, o.Of)
		}},
	}
}

// services shows the time-stamp services and the built-in authorities.
func (a *API) services(ctx context.Context, r struct {
	Done string `query:"done"`
}) (view, error) {
	may := a.may(rest.Caller(ctx), Administrator)
	services, err := a.Operators.Policies.TSPServices(ctx)
	if err != nil {
		return view{}, err
	}
	t := table{Title: "services.stamps", Head: []string{"services.name", "webhooks.address", "services.from"}, Empty: "services.none"}
	for i, s := range services {
		from := cell{Key: "services.database"}
		line := row{Cells: []cell{{Text: strings.TrimSpace(s.Name + " " + s.Title)}, {Text: s.URL}, from}}
		if i < len(a.Operators.Policies.Rules.TSPServices) {
			line.Cells[2].Key = "services.configuration"
		} else if may {
			line.Deeds = append(line.Deeds, a.deedLink("/operator/services", "", "tsp-remove", s.Name))
		}
		if may {
			line.Deeds = append(line.Deeds, a.deedLink("/operator/services", "", "tsp-check", s.Name))
		}
		t.Rows = append(t.Rows, line)
	}
	if may {
		t.Deeds = []link{a.deedLink("/operator/services", "", "tsp-add", "")}
	}
	own := table{Title: "services.authorities", Head: []string{"certificate.name", "certificate.suite", "certificate.until"}}
	issuing, err := a.Operators.Authority.Issuing(ctx)
	if err != nil {
		return view{}, err
	}
	roots, err := a.Operators.Authority.Roots(ctx)
	if err != nil {
		return view{}, err
	}
	w := visitorOf(ctx).words
	for _, c := range slices.Concat(roots, issuing) {
		own.Rows = append(own.Rows, row{Cells: []cell{{Text: personIn(c.Subject.String())}, {Text: w.suite(c.Suite.Name)}, {At: c.NotAfter}}})
	}
	lists := table{Title: "services.lists", Head: []string{"verify.issuer", "services.list_from", "services.list_next"}}
	crls, err := a.Operators.Authority.CRLs(ctx)
	if err != nil {
		return view{}, err
	}
	for _, l := range crls {
		lists.Rows = append(lists.Rows, row{Cells: []cell{{Text: personIn(l.Issuer.String())}, {At: l.ThisUpdate}, {At: l.NextUpdate, Bad: a.Now().After(l.NextUpdate)}}})
	}
	return a.office(ctx, "sections", "services.title", r.Done, sections{Tables: []table{t, a.sources(w), own, lists}}), nil
}

// sources shows how the outside services answered to this process.
func (a *API) sources(w *words) table {
	t := table{Title: "services.sources", Head: []string{"services.source", "webhooks.address", "certificate.state", "services.asked", "services.answered", "services.took"}, Empty: "services.no_sources"}
	for _, s := range a.Operators.Sources() {
		state := cell{Key: "services.works"}
		if s.Failures > 0 {
			state = cell{Text: w.count("services.failed", s.Failures), Detail: s.Error, Bad: true}
		}
		t.Rows = append(t.Rows, row{Cells: []cell{
			{Key: "services.source." + s.Kind}, {Text: s.Host}, state, {At: s.Asked}, {At: s.Answered}, {Text: w.span(s.Took)},
		}})
	}
	return t
}

// tspService finds a registered time-stamp service.
func (a *API) tspService(ctx context.Context, name string) (policy.TSPService, error) {
	services, err := a.Operators.Policies.TSPServices(ctx)
	if err != nil {
		return policy.TSPService{}, err
	}
	i := slices.IndexFunc(services, func(s policy.TSPService) bool { return s.Name == name })
	if i < 0 {
		return policy.TSPService{}, fault.New(fault.NotFound, "there is no registered service of this name")
	}
	return services[i], nil
}

func (a *API) serviceDeeds() []deed {
	policies := a.Operators.Policies
	about := func(ctx context.Context, o *object) (row, error) {
		s, err := a.tspService(ctx, o.Of)
		return row{Cells: []cell{{Text: strings.TrimSpace(s.Name + " " + s.Title)}, {Text: s.URL}}}, err
	}
	return []deed{
		{name: "tsp-add", adds: true, operation: "AddTSPService", fields: []field{
			{name: "service", required: true, hint: "field.hint.service"}, {name: "address", required: true}, {name: "about"}, {name: "class", hint: "field.hint.class"}, {name: "tsa_policy"}, {name: "per_minute", kind: kindNumber},
		}, do: func(ctx context.Context, _ *object, f rest.Form) (*made, error) {
			most, err := strconv.Atoi(cmp.Or(f.Get("per_minute"), "0"))
			if err != nil {
				return nil, fault.New(fault.InvalidParameters, "requests per minute: want a number")
			}
			rest.Concerning(ctx, f.Get("service"))
			return nil, policies.AddTSPService(ctx, policy.TSPService{
				Name: f.Get("service"), Title: f.Get("about"), URL: f.Get("address"), Class: f.Get("class"), Policy: f.Get("tsa_policy"), PerMinute: most,
			})
		}},
		{name: "tsp-remove", operation: "RemoveTSPService", named: true, about: about, do: func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
			rest.Concerning(ctx, o.Of)
			return nil, policies.RemoveTSPService(ctx, o.Of)
		}},
		{name: "tsp-check", operation: "CheckTSPService", about: about, do: func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
			service, err := a.tspService(ctx, o.Of)
			if err != nil {
				return nil, err
			}
			rest.Concerning(ctx, o.Of)
			facts, err := a.Operators.CheckTSP(ctx, service)
			return &made{Facts: facts, Note: "services.checked"}, err
		}},
	}
}

// installation shows the state of the installation.
func (a *API) installation(ctx context.Context, _ struct{}) (view, error) {
	i, err := a.Operators.Installation(ctx)
	if err != nil {
		return view{}, err
	}
	w := visitorOf(ctx).words
	state := table{Title: "installation.state", Facts: true}
	for _, f := range i.Facts {
		c := cell{Text: f.Value, Key: f.Word, Bad: f.Bad}
		if f.Span != 0 {
			c.Text, c.Key = w.text(f.Word, w.span(f.Span)), ""
		}
		state.Rows = append(state.Rows, fact(f.Key, c))
	}
	nodes := table{Title: "installation.nodes", Head: []string{"installation.host", "installation.process", "installation.version", "installation.seals", "installation.seen"}}
	for _, n := range i.Nodes {
		host := cell{Text: n.Host}
		if n.This {
			host.Badges = []string{"installation.this"}
		}
		nodes.Rows = append(nodes.Rows, row{Cells: []cell{host, {Text: n.ID, Code: true}, {Text: n.Version}, {Text: n.SealsWith}, {At: n.SeenAt, Bad: n.Silent}}})
	}
	limits := table{Title: "installation.limits", Head: []string{"installation.limit", "installation.value", "installation.setting"}}
	for _, l := range i.Limits {
		limits.Rows = append(limits.Rows, row{Cells: []cell{{Key: "limit." + l.Setting}, {Text: w.limit(l.Value)}, {Text: l.Setting, Code: true}}})
	}
	return a.office(ctx, "sections", "installation.title", "", sections{Tables: []table{state, nodes, limits}}), nil
}
