// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"

	"tamga/internal/adapter/guard"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/policy"
)

// Policies are the policies of users without their own policy and without one of their group.
type Policies struct {
	// Actions users may not perform.
	Access struct {
		// Actions, by name or number, that users may not perform if neither they nor their group
		// have [their own policy](users.md#policies).
		Denied []string `yaml:"denied"`
		// Whether operators may change this policy of a user.
		ChangesAllowed bool `yaml:"changes_allowed" default:"true"`
	} `yaml:"access"`
	// Actions that need a confirmation.
	Operation struct {
		// Actions, by name or number, that need a confirmation by users if neither they nor their
		// group have their own policy.
		Confirm []string `yaml:"confirm"`
		// Whether operators may change this policy of a user.
		ChangesAllowed bool `yaml:"changes_allowed" default:"true"`
	} `yaml:"operation"`
	// Events that users are notified of, and how.
	Notification struct {
		// Events that users are notified of, and how: lists of notifiers such as `Email` by [type
		// of event](events.md); `{}` for none. Default: `UserPasswordChanged`, `UserPasswordReset`
		// and `UserDeleted` by `[Email, SMS]`.
		Events map[string][]string `yaml:"events"`
		// Whether operators may change this policy of a user.
		ChangesAllowed bool `yaml:"changes_allowed" default:"true"`
	} `yaml:"notification"`
}

// Webhooks configures requests to systems that receive events. "tamga webhook add" registers the
// systems.
type Webhooks struct {
	// Networks and hosts outside of the public internet that may have [systems that receive
	// events](events.md#webhooks), such as `10.1.0.0/16`, `127.0.0.1:8080` or
	// `hooks.example.org:8443`, as in `evidence.allow_networks`.
	AllowNetworks []string `yaml:"allow_networks"`
	// Whether `http://` is allowed in addition to `https://`. Events are then sent in the clear.
	PlainHTTP bool `yaml:"plain_http"`
	// Authorities (PEM) of the receivers' certificates. Default: the system's.
	AuthoritiesFile string `yaml:"authorities_file"`
}

// Settings returns the policies by their kind.
func (c Policies) Settings() (map[policy.Kind]policy.Setting, error) {
	denied, err := policy.ParseActions(c.Access.Denied)
	if err != nil {
		return nil, fmt.Errorf("user_policies.access.denied: %w", err)
	}
	confirm, err := policy.ParseActions(c.Operation.Confirm)
	if err != nil {
		return nil, fmt.Errorf("user_policies.operation.confirm: %w", err)
	}
	events := c.Notification.Events
	if events == nil {
		events = notify.StandardDefaults()
	}
	told, err := policy.Setting{Notifiers: events, Fixed: !c.Notification.ChangesAllowed}.Normal()
	if err != nil {
		return nil, fmt.Errorf("user_policies.notification.events: %w", err)
	}
	return map[policy.Kind]policy.Setting{
		policy.Access:       {Actions: denied, Fixed: !c.Access.ChangesAllowed},
		policy.Operation:    {Actions: confirm, Fixed: !c.Operation.ChangesAllowed},
		policy.Notification: told,
	}, nil
}

func (c Policies) check() (faults []error) {
	if _, err := c.Settings(); err != nil {
		faults = append(faults, err)
	}
	for event := range c.Notification.Events {
		if known, ok := notify.EventByName(event); !ok || string(known.Type) != event {
			faults = append(faults, fmt.Errorf("user_policies.notification.events: unknown event %q: want one of docs/events.md", event))
		}
	}
	return faults
}

func (c Webhooks) check() (faults []error) {
	if _, err := c.Exceptions(); err != nil {
		faults = append(faults, errors.New("webhooks.allow_networks: "+err.Error()))
	}
	return faults
}

// Exceptions returns the addresses outside of the public internet that may be reached.
func (c Webhooks) Exceptions() ([]guard.Exception, error) {
	return guard.ParseExceptions(c.AllowNetworks)
}
