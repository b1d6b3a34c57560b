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

// newPolicies makes the room that says what is allowed.
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
			// Our own service stands last: it is the default one where no other is named.
			TSPServices: append(c.Evidence.Services(), policy.TSPService{
				Name: "builtin", Title: "Tamga", URL: c.BaseURL() + authority.TSPPath(),
			}),
		},
	}, nil
}

// newPolicyEditor makes what operators change policies with.
func newPolicyEditor(policies *policy.Service, reach policy.Reach, messages *notify.Service) *policy.Editor {
	e := &policy.Editor{Service: policies, Users: reach, Events: policyEvents{messages}, Notifiers: []string{}}
	for _, channel := range messages.Available() {
		e.Notifiers = append(e.Notifiers, string(channel))
	}
	return e
}

// policyEvents tells users that a policy of theirs was changed.
type policyEvents struct{ messages *notify.Service }

func (e policyEvents) PolicyChanged(ctx context.Context, who audit.Principal, userID string) error {
	return e.messages.Emit(ctx, notify.Event{Type: notify.UserAccountChanged, UserID: userID, Actor: who.UserID})
}
