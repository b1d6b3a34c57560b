// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"

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

// installation shows the state of the installation.
func (a *API) installation(ctx context.Context, _ struct{}) (view.View, error) {
	i, err := a.Installation(ctx)
	if err != nil {
		return view.View{}, err
	}
	w := view.VisitorOf(ctx).Words
	state := table{Title: "installation.state", Facts: true}
	for _, f := range i.Facts {
		c := cell{Text: f.Value, Key: f.Word, Bad: f.Bad}
		if f.Span != 0 {
			c.Text, c.Key = w.Text(f.Word, w.Span(f.Span)), ""
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
		limits.Rows = append(limits.Rows, row{Cells: []cell{{Key: "limit." + l.Setting}, {Text: w.Limit(l.Value)}, {Text: l.Setting, Code: true}}})
	}
	return a.office(ctx, "sections", "installation.title", "", sections{Tables: []table{state, nodes, limits}}), nil
}
