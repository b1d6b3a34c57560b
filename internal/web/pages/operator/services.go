// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/policy"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// services shows the time-stamp services and the built-in authorities.
func (a *API) services(ctx context.Context, r struct {
	Done string `query:"done"`
}) (view.View, error) {
	may := a.may(rest.Caller(ctx), Administrator)
	services, err := a.Policies.TSPServices(ctx)
	if err != nil {
		return view.View{}, err
	}
	t := table{Title: "services.stamps", Head: []string{"services.name", "webhooks.address", "services.from"}, Empty: "services.none"}
	for i, s := range services {
		from := cell{Key: "services.database"}
		line := row{Cells: []cell{{Text: strings.TrimSpace(s.Name + " " + s.Title)}, {Text: s.URL}, from}}
		if i < len(a.Policies.Rules.TSPServices) {
			line.Cells[2].Key = "services.configuration"
		} else if may {
			line.Commands = append(line.Commands, a.commandLink("/operator/services", "", "tsp-remove", s.Name))
		}
		if may {
			line.Commands = append(line.Commands, a.commandLink("/operator/services", "", "tsp-check", s.Name))
		}
		t.Rows = append(t.Rows, line)
	}
	if may {
		t.Commands = []link{a.commandLink("/operator/services", "", "tsp-add", ""), a.commandLink("/operator/services", "", "providers-check", "")}
	}
	own := table{Title: "services.authorities", Head: []string{"certificate.name", "certificate.suite", "certificate.until"}}
	issuing, err := a.Authority.Issuing(ctx)
	if err != nil {
		return view.View{}, err
	}
	roots, err := a.Authority.Roots(ctx)
	if err != nil {
		return view.View{}, err
	}
	w := view.VisitorOf(ctx).Words
	for _, c := range slices.Concat(roots, issuing) {
		own.Rows = append(own.Rows, row{Cells: []cell{{Text: view.PersonIn(c.Subject.String())}, {Text: w.Suite(c.Suite.Name)}, {At: c.NotAfter}}})
	}
	lists, err := a.revocationLists(ctx)
	if err != nil {
		return view.View{}, err
	}
	renewals, err := a.renewals(ctx, may)
	if err != nil {
		return view.View{}, err
	}
	return a.office(ctx, "sections", "services.title", r.Done, sections{Tables: []table{t, a.sources(w), renewals, own, lists}}), nil
}

// revocationLists shows the newest lists of the built-in authorities.
func (a *API) revocationLists(ctx context.Context) (table, error) {
	t := table{Title: "services.lists", Head: []string{"verify.issuer", "services.list_from", "services.list_next"}}
	crls, err := a.Authority.CRLs(ctx)
	for _, l := range crls {
		t.Rows = append(t.Rows, row{Cells: []cell{{Text: view.PersonIn(l.Issuer.String())}, {At: l.ThisUpdate}, {At: l.NextUpdate, Bad: a.Now().After(l.NextUpdate)}}})
	}
	return t, err
}

// sources shows how the outside services answered to this process.
func (a *API) sources(w *view.Words) table {
	t := table{Title: "services.sources", Head: []string{"services.source", "webhooks.address", "certificate.state", "services.asked", "services.answered", "services.took"}, Empty: "services.no_sources"}
	for _, s := range a.Sources() {
		state := cell{Key: "services.works"}
		if s.Failures > 0 {
			state = cell{Text: w.Count("services.failed", s.Failures), Detail: s.Error, Bad: true}
		}
		t.Rows = append(t.Rows, row{Cells: []cell{
			{Key: "services.source." + s.Kind}, {Text: s.Host}, state, {At: s.Asked}, {At: s.Answered}, {Text: w.Span(s.Took)},
		}})
	}
	return t
}

// tspService finds a registered time-stamp service.
func (a *API) tspService(ctx context.Context, name string) (policy.TSPService, error) {
	services, err := a.Policies.TSPServices(ctx)
	if err != nil {
		return policy.TSPService{}, err
	}
	i := slices.IndexFunc(services, func(s policy.TSPService) bool { return s.Name == name })
	if i < 0 {
		return policy.TSPService{}, fault.New(fault.NotFound, "there is no registered service of this name")
	}
	return services[i], nil
}

func (a *API) serviceCommands() []command {
	policies := a.Policies
	about := func(ctx context.Context, o *object) (row, error) {
		s, err := a.tspService(ctx, o.Of)
		return row{Cells: []cell{{Text: strings.TrimSpace(s.Name + " " + s.Title)}, {Text: s.URL}}}, err
	}
	return []command{
		{name: "tsp-add", adds: true, operation: "AddTSPService", effects: does(effect.None), fields: []field{
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
		{name: "tsp-remove", operation: "RemoveTSPService", effects: does(effect.None), named: true, about: about, do: func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
			rest.Concerning(ctx, o.Of)
			return nil, policies.RemoveTSPService(ctx, o.Of)
		}},
		a.endRetention(),
		{name: "providers-check", adds: true, operation: "CheckProviders", effects: does(effect.None), do: func(ctx context.Context, _ *object, _ rest.Form) (*made, error) {
			facts, err := a.CheckProviders(ctx)
			return &made{Facts: facts, Note: "services.reached"}, err
		}},
		{name: "tsp-check", operation: "CheckTSPService", effects: does(effect.None), about: about, do: func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
			service, err := a.tspService(ctx, o.Of)
			if err != nil {
				return nil, err
			}
			rest.Concerning(ctx, o.Of)
			facts, err := a.CheckTSP(ctx, service)
			return &made{Facts: facts, Note: "services.checked"}, err
		}},
	}
}
