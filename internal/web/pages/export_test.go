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
		Operators: OperatorRooms{People: &user.Service{}, Policies: &policy.Editor{}},
	}
}

// Deeds returns the address of every deed by its right. id is the user of those about one.
func Deeds(id string) map[rest.Right][]string {
	all := map[rest.Right][]string{}
	for _, g := range New(Settings{}, Bare()).deedGroups {
		for i := range g.list {
			all[g.right] = append(all[g.right], strings.Replace(g.at, "{id}", id, 1)+"/"+g.list[i].name)
		}
	}
	return all
}

// Deed is a deed as tests of all of them need it.
type Deed struct {
	At, Operation string
	// Thing means that the deed is done to something of a user or of the installation, which its
	// address names.
	Thing bool
	Adds  bool // it adds something new to the installation
}

// AllDeeds returns every deed, those on passkeys too. id is the user of those about one.
func AllDeeds(id string) (all []Deed) {
	deps := Bare()
	deps.Operators.Passkeys = &passkey.Service{}
	for _, g := range New(Settings{}, deps).deedGroups {
		for i := range g.list {
			d := &g.list[i]
			all = append(all, Deed{strings.Replace(g.at, "{id}", id, 1) + "/" + d.name, d.operation, !d.adds && (d.about != nil || !g.ofUsers()), d.adds})
		}
	}
	return all
}
