// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"tamga/internal/adapter/store"
	"tamga/internal/config"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/policy"
)

// newPolicies makes the service of policies and of registered time-stamp services.
func newPolicies(c *config.Config, db *store.DB) (*policy.Service, error) {
	allowed := c.Policy.AllowedSignatureTypes
	if len(allowed) == 0 {
		allowed = Formats(c).Names()
	}
	defaults, err := c.UserPolicies.Settings()
	if err != nil {
		return nil, err
	}
	return &policy.Service{
		Store: store.Policies{DB: db}, Defaults: defaults,
		Rules: policy.Rules{
			AllowedSignatureTypes: allowed,
			AllowHashSigning:      c.Policy.AllowHashSigning,
			AllowThirdPartyTSP:    c.Policy.AllowThirdPartyTSP,
			// The built-in service is the last one. It is the default if no other is configured.
			TSPServices: append(c.Evidence.Services(), policy.TSPService{
				Name: "builtin", Title: "Tamga", URL: c.BaseURL() + authority.TSPPath(),
			}),
		},
	}, nil
}

// newPolicyEditor makes the service that changes policies for operators.
func newPolicyEditor(policies *policy.Service, reach policy.Reach, cancels policy.Confirmations, messages *notify.Service) *policy.Editor {
	e := &policy.Editor{Service: policies, Users: reach, Events: policyEvents{messages}, Confirmations: cancels, Notifiers: []string{}}
	for _, channel := range messages.Available() {
		e.Notifiers = append(e.Notifiers, string(channel))
	}
	return e
}

// policyEvents implements policy.Events: it notifies users of changes of their policies.
type policyEvents struct{ messages *notify.Service }

// PolicyChanged implements policy.Events.
func (e policyEvents) PolicyChanged(ctx context.Context, who audit.Principal, userID string) error {
	return e.messages.Emit(ctx, notify.Event{Type: notify.UserAccountChanged, UserID: userID, Actor: who.UserID})
}
