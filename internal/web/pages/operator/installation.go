// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"slices"
	"time"

	"tamga/internal/web/pages/view"
)

// installationCommands are those that are about no user.
func (a *API) installationCommands() []commandGroup {
	return []commandGroup{
		{at: "/operator/approvals", right: Operator, reads: "GetApproval", list: a.approvalCommands(), object: a.approvalObject},
		{at: "/operator/groups", right: Administrator, reads: "ListGroups", list: a.groupCommands(), object: a.groupObject},
		{at: "/operator/messages", right: Administrator, reads: "ListMessages", list: a.messageCommands(), object: a.messageObject},
		{at: "/operator/tokens", right: Administrator, reads: "ListTokens", list: a.tokenCommands(), object: thing("/operator/tokens")},
		{at: "/operator/webhooks", right: Administrator, reads: "GetWebhook", list: a.webhookCommands(), object: a.webhookObject},
		{at: "/operator/services", right: Administrator, reads: "ListTSPServices", list: a.serviceCommands(), object: thing("/operator/services")},
	}
}

// thing is an object that command.about finds.
func thing(back string) func(context.Context, string, string) (*object, error) {
	return func(_ context.Context, _, of string) (*object, error) {
		return &object{Of: of, Name: of, back: back}, nil
	}
}

// stateView is the state of the installation.
type stateView struct {
	Verdict, Sentence string // Verdict is passed, indeterminate or failed
	At                time.Time
	Attention         []item
	Tiles             []tile
	Sources           table
	Terms             []term
	Lists             table
	Nodes             []item
	Facts, Limits     table
}

// tile is a number that the page shows large.
type tile struct {
	Key, Value, Address string
	Bad                 bool
}

// term is a certificate of the installation and what is left of its life.
type term struct {
	Name  string
	Until time.Time
	Left  string // in words
	Part  int    // of its life, in percent
	Soon  bool
}

// termSoon is how long before its end a certificate of the installation needs attention.
const termSoon = 30 * 24 * time.Hour

// installation shows the state of the installation: one sentence, what needs attention, and then all of it.
func (a *API) installation(ctx context.Context, _ struct{}) (view.View, error) {
	i, err := a.Installation(ctx)
	if err != nil {
		return view.View{}, err
	}
	w := view.VisitorOf(ctx).Words
	v := stateView{At: a.Now(), Sources: a.sources(w)}
	v.Facts = table{Title: "installation.state", Facts: true}
	for _, f := range i.Facts {
		c := cell{Text: f.Value, Key: f.Word, Bad: f.Bad}
		if f.Span != 0 {
			c.Text, c.Key = w.Text(f.Word, w.Span(f.Span)), ""
		}
		v.Facts.Rows = append(v.Facts.Rows, fact(f.Key, c))
		address, counted := tileAddresses[f.Key]
		if counted {
			v.Tiles = append(v.Tiles, tile{f.Key, f.Value, address, f.Bad})
		}
		if f.Bad {
			one := item{Icon: "warning", Kind: "bad", Title: w.Text(f.Key) + ": " + cmp.Or(c.Text, w.Text(c.Key)), Hint: w.TextOr(f.Key+".bad", "")}
			if counted {
				one.Icon, one.Commands = "send", []link{{Address: address, Key: "requests.look"}}
			}
			v.Attention = append(v.Attention, one)
		}
	}
	for _, s := range a.Sources() {
		if s.Failures > 0 {
			v.Attention = append(v.Attention, item{
				Icon: "server", Kind: "warn", Title: w.Text("installation.source_failed", w.Text("services.source."+s.Kind), view.Visible(s.Host)), Hint: w.Count("services.failed", s.Failures),
				Commands: []link{{Address: "/operator/services", Key: "services.title"}},
			})
		}
	}
	for _, n := range i.Nodes {
		one := item{Icon: "server", Kind: "good", Title: n.Host, Hint: w.Text("installation.node_hint", n.Version, n.ID, w.When(n.SeenAt)), Tag: w.Text("installation.runs")}
		if n.This {
			one.Title += " (" + w.Text("installation.this") + ")"
		}
		if n.Silent {
			one.Kind, one.Tag = "warn", w.Text("installation.silent")
			v.Attention = append(v.Attention, item{Icon: "server", Kind: "warn", Title: w.Text("installation.node_silent", n.Host), Hint: one.Hint})
		}
		v.Nodes = append(v.Nodes, one)
	}
	if err := a.terms(ctx, w, &v); err != nil {
		return view.View{}, err
	}
	v.Limits = table{Title: "installation.limits", Head: []string{"installation.limit", "installation.value", "installation.setting"}}
	for _, l := range i.Limits {
		v.Limits.Rows = append(v.Limits.Rows, row{Cells: []cell{{Key: "limit." + l.Setting}, {Text: w.Limit(l.Value)}, {Text: l.Setting, Code: true}}})
	}
	v.Verdict, v.Sentence = "passed", w.Text("installation.well")
	if n := len(v.Attention); n > 0 {
		v.Verdict, v.Sentence = "indeterminate", w.Count("installation.attention", n)
		if slices.ContainsFunc(v.Attention, func(i item) bool { return i.Kind == "bad" }) {
			v.Verdict = "failed"
		}
	}
	return a.office(ctx, "installation", "installation.title", "", v), nil
}

// tileAddresses are the facts that are numbers of what waits, with the pages that list it.
var tileAddresses = map[string]string{
	"installation.pending": "/operator/messages?state=pending", "installation.dead": "/operator/messages?state=dead",
	"installation.requests": "/operator/requests", "installation.approvals": "/operator/approvals",
}

// terms says how long the certificates and the revocation lists of the built-in authorities hold.
func (a *API) terms(ctx context.Context, w *view.Words, v *stateView) error {
	issuing, err := a.Authority.Issuing(ctx)
	if err != nil {
		return err
	}
	roots, err := a.Authority.Roots(ctx)
	if err != nil {
		return err
	}
	now := a.Now()
	for _, c := range slices.Concat(issuing, roots) {
		left := max(c.NotAfter.Sub(now), 0)
		t := term{Name: view.PersonIn(c.Subject.String()) + ", " + w.Suite(c.Suite.Name), Until: c.NotAfter, Left: w.Count("installation.days", int(left/(24*time.Hour))), Soon: left < termSoon}
		if life := c.NotAfter.Sub(c.NotBefore); life > 0 {
			t.Part = min(100, int(left/(life/100+1)))
		}
		if t.Soon {
			v.Attention = append(v.Attention, item{Icon: "certificate", Kind: "warn", Title: w.Text("installation.ends", t.Name), Hint: w.Text("person.until", w.Day(t.Until))})
		}
		v.Terms = append(v.Terms, t)
	}
	slices.SortStableFunc(v.Terms, func(x, y term) int { return x.Until.Compare(y.Until) })
	v.Lists, err = a.revocationLists(ctx)
	for _, r := range v.Lists.Rows {
		if next := r.Cells[2]; next.Bad {
			v.Attention = append(v.Attention, item{Icon: "authority", Kind: "warn", Title: w.Text("installation.list_late", r.Cells[0].Text), Hint: w.Text("person.until", w.When(next.At))})
		}
	}
	return err
}
