// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"strings"

	"tamga/internal/domain/passkey"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/user"
	"tamga/internal/web/rest"
)

// Bare returns what pages need to have routes, but not to answer.
func Bare() Deps {
	return Deps{
		Documents: struct{ Documents }{}, Verifier: struct{ Verifier }{}, DeviceDeps: DeviceDeps{Contacts: struct{ Contacts }{}},
		Operators: OperatorServices{People: &user.Service{}, Policies: &policy.Editor{}},
	}
}

// Commands returns the address of every command by its right. id is the user of those about one.
func Commands(id string) map[rest.Right][]string {
	all := map[rest.Right][]string{}
	for _, g := range New(Settings{}, Bare()).commandGroups {
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
	deps := Bare()
	deps.Operators.Passkeys = &passkey.Service{}
	for _, g := range New(Settings{}, deps).commandGroups {
		for i := range g.list {
			d := &g.list[i]
			all = append(all, Command{strings.Replace(g.at, "{id}", id, 1) + "/" + d.name, d.operation, !d.adds && (d.about != nil || !g.ofUsers()), d.adds})
		}
	}
	return all
}
