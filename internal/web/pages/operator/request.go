// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"slices"
	"time"

	"tamga/internal/domain/keys"
	"tamga/internal/domain/user"
	"tamga/internal/web/pages/view"
)

// requestView is a request for a certificate beside the record of its user.
type requestView struct {
	Number    int64
	At        time.Time
	Person    cell
	Authority string
	Differs   bool
	Parts     []comparison
	Suite     string        // name; see [view.Words.Suite]
	Life      time.Duration // 0: that of the authority
	Reject    *commandView
}

// comparison is a part of a name in a request and in the record.
type comparison struct {
	Label, Asked, Registered string
	Differs                  bool
}

// differing returns the names of the parts that differ from the record.
func differing(parts []keys.Part) (names []string) {
	for _, p := range parts {
		if p.Differs {
			names = append(names, p.Name)
		}
	}
	return names
}

// compared are the fields of an approval of a name that is not the registered one.
func (a *API) compared(_ context.Context, o *object) ([]field, error) {
	if o.request != nil && len(differing(o.parts)) == 0 {
		return nil, nil
	}
	return []field{{name: "seen", kind: kindTick, required: true}, {name: "document", hint: "field.hint.document"}}, nil
}

// compare makes the form of an approval the page of its request.
func (a *API) compare(ctx context.Context, d *command, o *object, v *commandView) error {
	w, q := view.VisitorOf(ctx).Words, o.request
	r := &requestView{Number: q.ID, At: q.CreatedAt, Person: cell{Text: o.Note, Address: personAt(o.ID)}, Authority: q.AuthorityName, Life: q.Life, Differs: len(differing(o.parts)) > 0}
	if q.Parsed.Suite != nil {
		r.Suite = q.Parsed.Suite.Name
	}
	naming := a.People.Naming.Components()
	for _, p := range o.parts {
		c := comparison{p.Name, p.Asked, p.Registered, p.Differs}
		if i := slices.IndexFunc(naming, func(c user.Component) bool { return c.OID == p.OID }); i >= 0 {
			c.Label = naming[i].NameIn(w.Language)
		}
		r.Parts = append(r.Parts, c)
	}
	if q.Status == keys.Pending {
		reject := a.commandsByName["request-reject"]
		form, err := a.dialog(ctx, reject, o, a.commandLink(peopleCommands, o.ID, reject.name, o.Of).Address)
		if err != nil {
			return err
		}
		form.From, r.Reject = o.from, form
	}
	v.Request = r
	return nil
}
