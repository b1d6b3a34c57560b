// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"net/url"
	"slices"
	"strconv"

	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/policy"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// groups lists the groups with their policies, page by page.
func (a *API) groups(ctx context.Context, r struct {
	Done  string `query:"done"`
	After string `query:"after"`
}) (view.View, error) {
	list, err := a.People.GroupsAfter(ctx, r.After, pageRows+1)
	if err != nil {
		return view.View{}, err
	}
	shown := list[:min(len(list), pageRows)]
	names := make([]string, len(shown))
	for i, g := range shown {
		names[i] = g.Name
	}
	kinds, err := a.Policies.Store.GroupKinds(ctx, names)
	if err != nil {
		return view.View{}, err
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
			line.Commands = append(line.Commands, a.commandLink("/operator/groups", "", n, g.Name))
		}
		t.Rows = append(t.Rows, line)
	}
	if len(list) > pageRows {
		t.Next = "/operator/groups?after=" + url.QueryEscape(shown[pageRows-1].Name)
	}
	t.Commands = []link{a.commandLink("/operator/groups", "", "group-add", "")}
	return a.office(ctx, "sections", "groups.title", r.Done, sections{Tables: []table{t}}), nil
}

// groupObject finds a group.
func (a *API) groupObject(ctx context.Context, _, of string) (*object, error) {
	if _, err := a.People.Group(ctx, of); err != nil {
		return nil, err
	}
	return &object{Of: of, Name: of, back: "/operator/groups"}, nil
}

func (a *API) groupCommands() []command {
	policies := a.Policies
	actions := func(name string, kind policy.Kind) command {
		ofGroup := func(ctx context.Context, group string) (policy.Setting, error) {
			have, err := policies.Store.GroupSetting(ctx, group, kind)
			if err != nil || have == nil {
				return policies.Defaults[kind], err
			}
			return *have, nil
		}
		return command{name: name, operation: "SetPolicy", effects: &effects{effect.WeakensPolicy, func(ctx context.Context, _, of string, f rest.Form) (effect.Set, error) {
			wanted, err := readActions(f)
			if err != nil {
				return effect.None, err
			}
			have, err := ofGroup(ctx, of)
			return weakening(err == nil && wanted.Weaker(have)), err
		}}, more: func(ctx context.Context, o *object) ([]field, error) {
			set, err := ofGroup(ctx, o.Of)
			if err != nil {
				return nil, err
			}
			fixed := field{name: "fixed", kind: kindChoice, value: strconv.FormatBool(set.Fixed), choices: []pick{{Value: "false", Key: "choice.no"}, {Value: "true", Key: "choice.yes"}}}
			return []field{fixed, actionField(set.Actions)}, nil
		}, do: func(ctx context.Context, o *object, f rest.Form) (*made, error) {
			wanted, err := readActions(f)
			if err != nil {
				return nil, err
			}
			rest.Concerning(ctx, o.Of)
			return nil, policies.SetGroup(ctx, o.Of, kind, &wanted)
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
	return []command{
		{name: "group-add", adds: true, operation: "AddGroup", effects: does(effect.None), fields: []field{{name: "group", required: true}, {name: "about"}}, do: func(ctx context.Context, _ *object, f rest.Form) (*made, error) {
			rest.Concerning(ctx, f.Get("group"))
			_, err := a.People.AddGroup(ctx, f.Get("group"), f.Get("about"))
			return nil, err
		}},
		{name: "group-rename", operation: "RenameGroup", effects: does(effect.None), more: func(_ context.Context, o *object) ([]field, error) {
			return []field{{name: "group", required: true, value: o.Of}}, nil
		}, do: func(ctx context.Context, o *object, f rest.Form) (*made, error) {
			rest.Concerning(ctx, o.Of)
			rest.Detail(ctx, f.Get("group"))
			return nil, a.People.RenameGroup(ctx, o.Of, f.Get("group"))
		}},
		{name: "group-delete", operation: "DeleteGroup", effects: does(effect.Deletes), named: true, do: func(ctx context.Context, o *object, _ rest.Form) (*made, error) {
			rest.Concerning(ctx, o.Of)
			return nil, a.People.DeleteGroup(ctx, o.Of)
		}},
		actions("group-access", policy.Access), actions("group-operation", policy.Operation),
		{name: "group-clear", operation: "ClearPolicy", effects: does(effect.WeakensPolicy), named: true, more: own, possible: func(ctx context.Context, o *object) error {
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
