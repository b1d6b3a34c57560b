// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"tamga/internal/config"
	"tamga/internal/domain/user"
	"tamga/internal/domain/vault"
)

// openHolders opens the holders of private keys that the configuration names. remember is how long a right
// PIN is recognized.
func openHolders(c *config.Config, ring *vault.Ring, remember time.Duration, log *slog.Logger) (*vault.Holders, error) {
	var list []vault.NamedHolder
	for _, plugin := range c.Holders() {
		h, err := plugin.Open(vault.Environment{
			Ring: ring, Rand: rand.Reader,
			PIN: vault.SoftOptions{
				MemoryKiB: uint32(c.Argon2.Memory >> 10),
				Passes:    uint32(c.Argon2.Passes),
				Parallel:  c.Argon2.Parallel,
				Remember:  remember,
				Warn: func(err error) {
					log.Warn("right PINs are not remembered: each use of a key with a PIN takes a derivation", "error", err)
				},
			},
			Path: c.Path,
			Secret: func(file, setting string) (string, error) {
				return optionalSecret(c, file, "keys."+plugin.Name()+"."+setting)
			},
		})
		if err != nil {
			opened, _ := vault.NewHolders(list...) // nil without any
			if opened != nil {
				err = errors.Join(err, opened.Close())
			}
			return nil, fmt.Errorf("keys.%s: %w", plugin.Name(), err)
		}
		list = append(list, vault.NamedHolder{Name: plugin.Name(), Holder: h})
	}
	return vault.NewHolders(list...)
}

// groupsOf reads the groups of users for the rules about holders of new keys.
type groupsOf struct{ users *user.Service }

// GroupOf implements keys.Groups.
func (g groupsOf) GroupOf(ctx context.Context, userID string) (string, error) {
	u, err := g.users.Get(ctx, userID)
	if err != nil {
		return "", err
	}
	return u.Group, nil
}
