// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"

	"tamga/internal/domain/effect"
	"tamga/internal/domain/retention"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// Retentions keep documents of users for a time, with valid signatures; see [retention.Service].
type Retentions interface {
	List(ctx context.Context, f retention.Filter) ([]retention.Retained, error)
	Find(ctx context.Context, id string) (retention.Retained, error)
	EndFor(ctx context.Context, id string) error
}

// mostRenewals is how many renewals the page shows: those that have been due for the longest time.
const mostRenewals = 50

// renewals shows the archive time stamps that are due for renewal.
func (a *API) renewals(ctx context.Context, may bool) (table, error) {
	t := table{Title: "services.renewals", Head: []string{"services.document", "services.owner", "services.due", "services.good", "certificate.state"}, Empty: "services.no_renewals"}
	list, err := a.Retentions.List(ctx, retention.Filter{Until: a.Now(), Limit: mostRenewals})
	w := view.VisitorOf(ctx).Words
	for i := range list {
		r := &list[i]
		state := cell{Key: "services.renewing"}
		if r.Failure != "" {
			state = cell{Key: "services.delayed", Detail: cmp.Or(w.Own(r.Failure), r.Failure), Bad: r.Refused || r.Overdue(a.Now())}
			if r.Refused {
				state.Key = "services.refused"
			}
		}
		line := row{Cells: []cell{{Text: r.Name, Detail: r.Document}, {Text: r.Login}, {At: r.RenewAt}, {At: r.GoodUntil}, state}}
		if may {
			line.Commands = append(line.Commands, a.commandLink("/operator/services", "", "retention-end", r.Document))
		}
		t.Rows = append(t.Rows, line)
	}
	return t, err
}

// endRetention is the command that ends the retention of a document of any user.
func (a *API) endRetention() command {
	return command{name: "retention-end", operation: "EndRetentionByOperator", effects: does(effect.None), named: true,
		about: func(ctx context.Context, o *object) (row, error) {
			r, err := a.Retentions.Find(ctx, o.Of)
			return row{Cells: []cell{{Text: r.Name, Detail: r.Document}, {Text: r.Login}}}, err
		},
		do: func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
			rest.Concerning(ctx, "document "+o.Of)
			return nil, a.Retentions.EndFor(ctx, o.Of)
		}}
}
