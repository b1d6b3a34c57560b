// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/policy"
)

// Policy is the sub-command policy.
type Policy struct {
	Show  policyShowCommand  `cmd:"" help:"Show the policies of a user or of a group. Without --user and --group: those of the installation."`
	Set   policySetCommand   `cmd:"" help:"Set a policy of a user or of a group. Takes effect at once in all processes."`
	Clear policyClearCommand `cmd:"" help:"Remove a policy of a user or of a group, so that the policy of the group or of the installation applies again."`
}

// onPolicy has the flags that name a user or a group.
type onPolicy struct {
	User  string           `placeholder:"LOGIN" xor:"whose" help:"Login of the user."`
	Group string           `placeholder:"NAME" xor:"whose" help:"Name of the group. Its policy applies to its users without one of their own."`
	From  cli.Installation `embed:""`
}

// object returns the user or group for the audit entry.
func (o *onPolicy) object() string { return o.User + o.Group }

// userID returns the identifier of the user.
func (o *onPolicy) userID(ctx context.Context, s *app.Services) (string, error) {
	u, err := s.Users.ByLogin(ctx, o.User)
	return u.ID, err
}

// change sets a policy. A nil setting removes it.
func (o *onPolicy) change(c *cli.Console, operation string, k policy.Kind, s *policy.Setting, done cli.Sentence) error {
	if o.User == "" && o.Group == "" {
		return cli.UsageError{Err: errors.New("give --user LOGIN or --group NAME; the policies of the installation are in its configuration (user_policies)")}
	}
	return cli.Administer(c, &o.From, operation, o.object(), func(ctx context.Context, services *app.Services) error {
		if o.Group != "" {
			if err := services.PolicyEditor.SetGroup(ctx, o.Group, k, s); err != nil {
				return err
			}
		} else {
			id, err := o.userID(ctx, services)
			if err != nil {
				return err
			}
			if err := services.PolicyEditor.SetUser(ctx, id, k, s); err != nil {
				return err
			}
		}
		return o.From.Answer(c, map[string]string{"policy": string(k), "of": o.object()}, "%s", done)
	})
}

type policySetCommand struct {
	Kind   string   `arg:"" enum:"access,operation,notification" help:"access (denied actions), operation (actions that need a confirmation) or notification (events that users are notified of)."`
	Action []string `placeholder:"NAME" help:"Action that is denied (access) or needs a confirmation (operation). May be repeated. Default: none."`
	Event  []string `placeholder:"TYPE=NOTIFIER,..." sep:"none" help:"Event and its notifiers: ${notifiers}. May be repeated. Default: none."`
	Fixed  bool     `help:"With --group: operators must not change the policies of its users."`
	On     onPolicy `embed:""`
}

func (s *policySetCommand) Run(c *cli.Console) error {
	k := policy.Kind(s.Kind)
	switch {
	case k == policy.Notification && len(s.Action) > 0, k != policy.Notification && len(s.Event) > 0:
		return cli.UsageError{Err: errors.New("--action is for the policies access and operation, --event for notification")}
	case s.Fixed && s.On.User != "":
		return cli.UsageError{Err: errors.New("--fixed needs --group")}
	}
	actions, err := policy.ParseActions(s.Action)
	if err != nil {
		return withoutCode(err)
	}
	setting := &policy.Setting{Actions: actions, Fixed: s.Fixed}
	if k == policy.Notification {
		setting.Notifiers = map[string][]string{}
	}
	for _, text := range s.Event {
		name, notifiers, ok := strings.Cut(text, "=")
		e, known := notify.EventByName(name)
		if !ok || !known {
			return cli.UsageError{Err: fmt.Errorf("--event %s: want an event of docs/events.md and notifiers, for instance UserPasswordChanged=Email,SMS", text)}
		}
		setting.Notifiers[string(e.Type)] = strings.Split(notifiers, ",")
	}
	return s.On.change(c, "SetPolicy", k, setting, cli.Say("The %s policy of %s is set.\n", k, cli.Printable(s.On.object())))
}

// withoutCode removes the code from a fault. The code is for programs.
func withoutCode(err error) error {
	if f, ok := fault.As(err); ok {
		return errors.New(f.Message)
	}
	return err
}

type policyClearCommand struct {
	Kind string   `arg:"" enum:"access,operation,notification" help:"Kind of the policy: access, operation or notification."`
	On   onPolicy `embed:""`
}

func (l *policyClearCommand) Run(c *cli.Console) error {
	return l.On.change(c, "ClearPolicy", policy.Kind(l.Kind), nil, cli.Say("The %s policy of %s is removed.\n", l.Kind, cli.Printable(l.On.object())))
}

type policyShowCommand struct {
	On onPolicy `embed:""`
}

// PolicyJSON is a policy as --json prints it.
type PolicyJSON struct {
	Kind           policy.Kind         `json:"kind"`
	Set            bool                `json:"set"` // for this user or group; otherwise it is inherited
	Actions        []string            `json:"actions,omitempty"`
	Events         map[string][]string `json:"events,omitempty"`
	ChangesAllowed bool                `json:"changes_allowed"`
}

func (p *policyShowCommand) Run(c *cli.Console) error {
	o := &p.On
	return cli.Administer(c, &o.From, "ShowPolicies", o.object(), func(ctx context.Context, s *app.Services) error {
		var lines []PolicyJSON
		for _, k := range policy.Kinds() {
			counts, set := s.Policies.Defaults[k], o.User == "" && o.Group == ""
			switch {
			case o.User != "":
				id, err := o.userID(ctx, s)
				if err != nil {
					return err
				}
				own, _, err := s.Policies.Store.Settings(ctx, id, k)
				if err != nil {
					return err
				}
				set = own != nil
				if counts, err = s.Policies.Effective(ctx, id, k); err != nil {
					return err
				}
			case o.Group != "":
				own, err := s.Policies.Store.GroupSetting(ctx, o.Group, k)
				if err != nil {
					return err
				}
				if set = own != nil; set {
					counts = *own
				}
			}
			line := PolicyJSON{Kind: k, Set: set, Events: counts.Notifiers, ChangesAllowed: !counts.Fixed}
			for _, a := range policy.Actions() {
				if counts.Actions&a != 0 {
					line.Actions = append(line.Actions, a.String())
				}
			}
			lines = append(lines, line)
		}
		return o.From.Answer(c, lines, "%s", policyTable(c, lines))
	})
}

// policyTable returns policies as text for people.
func policyTable(c *cli.Console, lines []PolicyJSON) string {
	var text strings.Builder
	table := c.NewTable(&text, "KIND", "RULES")
	for _, l := range lines {
		what := strings.Join(l.Actions, ", ")
		if l.Kind == policy.Notification {
			var parts []string
			for _, event := range slices.Sorted(maps.Keys(l.Events)) {
				parts = append(parts, c.Text("%s by %s", cli.Printable(event), strings.Join(l.Events[event], ", ")))
			}
			what = strings.Join(parts, "; ")
		}
		if what == "" {
			what = c.Text("nothing")
		}
		notes := ""
		if !l.Set {
			notes += " (" + c.Text("inherited") + ")"
		}
		if !l.ChangesAllowed {
			notes += " (" + c.Text("fixed") + ")"
		}
		verb := map[policy.Kind]cli.Word{policy.Access: "denied", policy.Operation: "need a confirmation", policy.Notification: "notified"}[l.Kind]
		fmt.Fprintf(table, "%s\t%s: %s%s\n", l.Kind, c.Word(verb), what, notes)
	}
	table.Flush()
	return text.String()
}
