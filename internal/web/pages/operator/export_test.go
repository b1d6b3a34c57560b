// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"strings"

	"tamga/internal/domain/passkey"
	"tamga/internal/web/rest"
)

// Commands returns the address of every command by its right. id is the user of those about one.
func Commands(id string) map[rest.Right][]string {
	all := map[rest.Right][]string{}
	for _, g := range New(bare()).commandGroups {
		for i := range g.list {
			all[g.right] = append(all[g.right], strings.Replace(g.at, "{id}", id, 1)+"/"+g.list[i].name)
		}
	}
	return all
}

// Command is a command as tests of all of them need it.
type Command struct {
	At, Operation string
	// Thing means that the command is done to something of a user or of the installation, which its
	// address names.
	Thing bool
	Adds  bool // it adds something new to the installation
}

// AllCommands returns every command, those on passkeys too. id is the user of those about one.
func AllCommands(id string) (all []Command) {
	deps := bare()
	deps.Passkeys = &passkey.Service{}
	for _, g := range New(deps).commandGroups {
		for i := range g.list {
			d := &g.list[i]
			all = append(all, Command{strings.Replace(g.at, "{id}", id, 1) + "/" + d.name, d.operation, !d.adds && (d.about != nil || !g.ofUsers()), d.adds})
		}
	}
	return all
}
