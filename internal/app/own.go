// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"tamga/internal/adapter/webauthn"
	"tamga/internal/config"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/device"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/passkey"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/reach"
)

// own has the services with which users change their own accounts: those of operators with
// another rule of whom they reach.
type own struct {
	contacts *contact.Book
	devices  *device.Service
	oath     *oath.Service
	passkeys *passkey.Service // nil: the installation has none
	policies *policy.Editor
}

var self reach.Self

func newOwn(c *config.Config, rules device.Settings, contacts contact.Deps, tokens oath.Deps, devices device.Deps) (o own, err error) {
	contacts.Reach, tokens.Reach, devices.Users = self, self, ownUsers{devices.Users}
	if o.contacts, err = contact.New(c.Users.Contacts(), contacts); err != nil {
		return o, err
	}
	if o.oath, err = oath.New(c.Oath.Settings(c.Messages.Title), tokens); err != nil {
		return o, err
	}
	if o.devices, err = device.New(rules, devices); err != nil {
		err = fmt.Errorf("devices: %w", err)
	}
	return o, err
}

// newPasskeys returns the services of passkeys of operators and of users themselves, nil if
// the configuration has none.
func newPasskeys(c *config.Config, d passkey.Deps) (all, own *passkey.Service, err error) {
	if !c.Confirmation.Passkeys() {
		return nil, nil, nil
	}
	if d.Ceremonies, err = webauthn.New(c.BaseURL(), c.Messages.Title); err != nil {
		return nil, nil, err
	}
	rules := passkey.Settings{Most: c.Confirmation.UserPasskeys}
	all = passkey.New(rules, d)
	d.Reach = self
	return all, passkey.New(rules, d), nil
}

// ownUsers reaches the caller alone.
type ownUsers struct{ device.Users }

// Reach implements device.Users.
func (ownUsers) Reach(ctx context.Context, who audit.Principal, userID string) error {
	return self.Reach(ctx, who, userID)
}
