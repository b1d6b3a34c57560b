// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/approval"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/password"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/token"
	"tamga/internal/domain/user"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// Own changes how the caller signs in; see [signin.Service].
type Own interface {
	SchemeOf(ctx context.Context, userID string) ([]signin.AuthenticationInfo, error)
	ChangePassword(ctx context.Context, who audit.Principal, present, text string) error
	EndSignIns(ctx context.Context, who audit.Principal) error
	MayChangeFactors(ctx context.Context, who audit.Principal, proved time.Time) (prove bool, err error)
}

// People has the names of users; see [user.Service].
type People interface {
	Get(ctx context.Context, id string) (user.User, error)
	Rename(ctx context.Context, id, displayName string) error
	TimeZone(ctx context.Context, id string) (string, error)
	SetTimeZone(ctx context.Context, id, name string) error
}

// Wishes are the notifications that a user wants; see [policy.Editor].
type Wishes interface {
	Effective(ctx context.Context, userID string, k policy.Kind) (policy.Setting, error)
	SetNotifiers(ctx context.Context, who audit.Principal, userID string, notifiers map[string][]string) error
}

// Waiting are changes of an account that a delay holds; see [approval.Service].
type Waiting interface {
	OfUser(ctx context.Context, userID string) ([]approval.Request, error)
	Cancel(ctx context.Context, who audit.Principal, id string) (approval.Request, error)
}

func (a *API) accountRoutes() []rest.Route {
	post := func(path, name string, f func(context.Context, formed) (rest.Redirect, error)) rest.Route {
		return rest.Handle("POST /account/do/"+path, name, rest.SignedIn, f).Answering(rest.Redirect{})
	}
	return []rest.Route{
		view.Handle("GET /account", "AccountPage", rest.SignedIn, a.account),
		view.Handle("GET /account/history", "HistoryPage", rest.SignedIn, a.history),
		post("name", "SetNameByPage", a.setName),
		post("zone", "SetTimeZoneByPage", a.setZone),
		post("password", "ChangePasswordByPage", a.changePassword),
		post("sessions", "EndSessionsByPage", a.endSessions),
		post("notifications", "SetNotificationsByPage", a.setNotifications),
		post("change", "CancelChangeByPage", a.cancelChange),
	}
}

// accountView is the account of the caller.
type accountView struct {
	Login, Name, Group string
	Fixed              bool // the name cannot be changed
	Zones              []view.Option
	Methods            []string
	Password           bool // the user signs in by a password
	PasswordRule       string
	Grants             []grantRow
	Changes            []approval.Request
	Channels           []string
	Events             []eventRow
	FixedEvents        bool // only an administrator changes the notifications
	Done               string
}

// grantRow is an application that may sign the user in again.
type grantRow struct {
	token.Grant
	Client view.Named
}

type eventRow struct {
	Type, Text string
	Chosen     []eventChoice
}

type eventChoice struct {
	Channel string
	Wanted  bool
}

// account shows what the user may know and change of the own account.
func (a *API) account(ctx context.Context, r justDone) (view.View, error) {
	who, w := rest.Caller(ctx), view.VisitorOf(ctx).Words
	u, err := a.People.Get(ctx, who.UserID)
	if err != nil {
		return view.View{}, err
	}
	v := accountView{Login: u.Login, Name: u.DisplayName, Group: u.Group, Fixed: a.Enrolment.Proves(), Done: w.Done("account", r.Done), PasswordRule: w.Count("account.password_rule", password.MinLength)}
	if v.Zones, err = a.zones(ctx, w); err != nil {
		return view.View{}, err
	}
	scheme, err := a.Own.SchemeOf(ctx, who.UserID)
	if err != nil {
		return view.View{}, err
	}
	for _, m := range scheme {
		name := m.MethodURI[strings.LastIndexByte(m.MethodURI, '/')+1:]
		v.Password = v.Password || name == "password"
		if method, _ := signin.MethodNamed(m.MethodURI); method.Route != "" {
			name = w.Text("method." + method.Route)
		}
		v.Methods = append(v.Methods, name)
	}
	grants, err := a.Grants(ctx, who.UserID)
	if err != nil {
		return view.View{}, err
	}
	for _, g := range grants {
		v.Grants = append(v.Grants, grantRow{g, a.Clients.Named(w, g.ClientID)})
	}
	if v.Changes, err = a.Waiting.OfUser(ctx, who.UserID); err != nil {
		return view.View{}, err
	}
	wishes, err := a.Wishes.Effective(ctx, who.UserID, policy.Notification)
	if err != nil {
		return view.View{}, err
	}
	v.FixedEvents = wishes.Fixed
	for _, c := range notify.ForUsers() {
		v.Channels = append(v.Channels, string(c.Channel))
	}
	for _, e := range notify.Events() {
		if !e.ToldUsers() {
			continue
		}
		row := eventRow{Type: string(e.Type), Text: e.Description[w.Language]}
		for _, c := range v.Channels {
			row.Chosen = append(row.Chosen, eventChoice{c, slices.Contains(wishes.Notifiers[row.Type], c)})
		}
		v.Events = append(v.Events, row)
	}
	return view.View{Template: "account/account", Title: "account.title", Content: v}, nil
}

// justDone names in the address of a page the form that led there.
type justDone struct {
	Done string `query:"done"`
}

func toAccount(form string) rest.Redirect { return view.SeeOther("/account?done=" + form) }

// setName changes the display name. Operators take it for the name of the user, and it may become
// a part of certificates, so it cannot be changed where certificates prove names.
func (a *API) setName(ctx context.Context, r formed) (rest.Redirect, error) {
	if a.Enrolment.Proves() {
		return rest.Redirect{}, fault.New(fault.WrongOperation, "names are those of the registration here: ask the operator")
	}
	return toAccount("name"), a.People.Rename(ctx, rest.Caller(ctx).UserID, strings.TrimSpace(r.Body.Get("name")))
}

// zoneNames are the time zones that the page offers: those of Russia, from the west to the east, and of some neighbours. A
// person with another one finds it there, since the browser says it.
var zoneNames = []string{
	"Europe/Kaliningrad", "Europe/Moscow", "Europe/Samara", "Asia/Yekaterinburg", "Asia/Omsk", "Asia/Krasnoyarsk", "Asia/Irkutsk", "Asia/Yakutsk",
	"Asia/Vladivostok", "Asia/Magadan", "Asia/Kamchatka", "Europe/Minsk", "Asia/Almaty", "Asia/Tashkent", "Asia/Yerevan", "UTC",
}

// zones returns the time zones to choose from.
func (a *API) zones(ctx context.Context, w *view.Words) ([]view.Option, error) {
	chosen, err := a.People.TimeZone(ctx, rest.Caller(ctx).UserID)
	if err != nil {
		return nil, err
	}
	names := slices.Clone(zoneNames)
	for _, name := range []string{chosen, w.Location().String()} {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	list := []view.Option{{Text: w.Text("account.zone_installation"), Chosen: chosen == ""}}
	for _, name := range names {
		there := a.Now().In(notify.Zone(name, time.UTC))
		text := w.TextOr("zone."+strings.ReplaceAll(strings.ToLower(name), "/", "."), name)
		list = append(list, view.Option{Value: name, Text: text + ", " + there.Format("15:04"), Chosen: name == chosen})
	}
	return list, nil
}

// setZone chooses the time zone of letters, and of pages in a browser that does not say its own.
func (a *API) setZone(ctx context.Context, r formed) (rest.Redirect, error) {
	name := r.Body.Get("zone")
	if err := a.People.SetTimeZone(ctx, rest.Caller(ctx).UserID, name); err != nil {
		return rest.Redirect{}, err
	}
	session := view.VisitorOf(ctx).Session
	session.Zone = name
	to := toAccount("zone")
	var err error
	to.Cookie, err = a.Renew(session)
	return to, err
}

// changePassword ends all sessions, this one too.
func (a *API) changePassword(ctx context.Context, r formed) (rest.Redirect, error) {
	if r.Body.Get("new") != r.Body.Get("again") {
		return rest.Redirect{}, fault.New(fault.InvalidParameters, "the two new passwords differ: type the same one twice")
	}
	return a.SignedOut("password"), a.Own.ChangePassword(ctx, rest.Caller(ctx), r.Body.Get("present"), r.Body.Get("new"))
}

func (a *API) endSessions(ctx context.Context, _ formed) (rest.Redirect, error) {
	return a.SignedOut("sessions"), a.Own.EndSignIns(ctx, rest.Caller(ctx))
}

// setNotifications replaces the whole policy. Events that the page does not show stay.
func (a *API) setNotifications(ctx context.Context, r formed) (rest.Redirect, error) {
	who := rest.Caller(ctx)
	wishes, err := a.Wishes.Effective(ctx, who.UserID, policy.Notification)
	if err != nil {
		return rest.Redirect{}, err
	}
	wanted := map[string][]string{}
	for name, channels := range wishes.Notifiers {
		wanted[name] = channels
	}
	for _, e := range notify.Events() {
		if e.ToldUsers() {
			delete(wanted, string(e.Type))
		}
	}
	for _, text := range r.Body["event"] {
		name, channel, _ := strings.Cut(text, ":")
		known := slices.ContainsFunc(notify.Events(), func(e notify.EventInfo) bool { return string(e.Type) == name && e.ToldUsers() })
		if !known {
			return rest.Redirect{}, fault.New(fault.InvalidParameters, "event: want events of the list")
		}
		wanted[name] = append(wanted[name], channel)
	}
	return toAccount("notifications"), a.Wishes.SetNotifiers(ctx, who, who.UserID, wanted)
}

// cancelChange cancels a change of an operator that a delay holds.
func (a *API) cancelChange(ctx context.Context, r formed) (rest.Redirect, error) {
	who := rest.Caller(ctx)
	if who.Actor != "" {
		return rest.Redirect{}, fault.New(fault.AccessDenied, "only the user may cancel a change of the account")
	}
	_, err := a.Waiting.Cancel(ctx, who, r.Body.Get("change"))
	return toAccount("change"), err
}

// Limits of a page of the history.
const (
	historyPage  = 50 // entries that are read at once
	historyFew   = 25 // a page with fewer entries reads on
	historyReads = 10 // times that a page reads, at most
)

type historyView struct {
	Entries []historyEntry // the newest first
	All     bool           // with what was only looked at
	Next    string         // address of the next page; "" for none
}

type historyEntry struct {
	At                 time.Time
	Operation, Outcome string
	OK                 bool
	Refused            string // what the outcome means
	Object, Remote, By string
	Client             view.Named
}

// history shows the audit entries about the user, paged by their position. Most entries of a person
// who uses the pages say that a page was looked at: they are shown on demand.
func (a *API) history(ctx context.Context, r struct {
	Before string `query:"before"`
	All    string `query:"all"`
}) (view.View, error) {
	before := int64(0)
	if r.Before != "" {
		var err error
		if before, err = strconv.ParseInt(r.Before, 10, 64); err != nil || before < 1 {
			return view.View{}, fault.New(fault.InvalidParameters, "before: want the position of an entry")
		}
	}
	who, w := rest.Caller(ctx), view.VisitorOf(ctx).Words
	v := historyView{All: r.All != ""}
	for range historyReads {
		list, next, err := a.History(ctx, who.UserID, before, historyPage)
		if err != nil {
			return view.View{}, err
		}
		for i := range slices.Backward(list) {
			if v.All || !view.Looks(list[i].Operation) {
				v.Entries = append(v.Entries, a.historyEntry(w, who.UserID, &list[i]))
			}
		}
		if before = next; next <= 0 || len(v.Entries) >= historyFew {
			break
		}
	}
	if before > 0 {
		v.Next = "/account/history?before=" + strconv.FormatInt(before, 10)
		if v.All {
			v.Next += "&all=yes"
		}
	}
	return view.View{Template: "account/history", Title: "account.history", Content: v}, nil
}

func (a *API) historyEntry(w *view.Words, userID string, e *audit.Entry) historyEntry {
	if e.Object == userID {
		e.Object = w.Text("account.object.self")
	}
	one := historyEntry{
		At: e.At, Operation: e.Operation, Outcome: e.Outcome, OK: e.Outcome == audit.OK, Object: w.Object(e.Object), Remote: w.Remote(e.Remote),
		Client: a.Clients.Named(w, e.Principal.ClientID),
	}
	if !one.OK {
		one.Refused = w.Outcome(e.Outcome)
	}
	if e.Principal.UserID != userID {
		one.By = e.Principal.Login
	} else if e.Principal.Actor != "" {
		one.By = e.Principal.Actor
	}
	return one
}
