// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"strings"

	"tamga/internal/domain/passkey"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/user"
	"tamga/internal/web/pages/account"
	"tamga/internal/web/pages/operator"
	"tamga/internal/web/pages/sign"
	"tamga/internal/web/rest"
)

// Rights of operators.
const (
	Operator      = operator.Operator
	Administrator = operator.Administrator
)

// Bare returns what pages need to have routes, but not to answer.
func Bare() Deps {
	return Deps{
		Sign:     sign.Deps{Documents: struct{ sign.Documents }{}, Verifier: struct{ sign.Verifier }{}},
		Account:  account.Deps{Contacts: struct{ account.Contacts }{}},
		Operator: operator.Deps{People: &user.Service{}, Policies: &policy.Editor{}},
	}
}

// Commands returns the address of every command by its right. id is the user of those about one.
func Commands(id string) map[rest.Right][]string {
	all := map[rest.Right][]string{}
	for _, c := range operator.New(Bare().Operator).Commands() {
		all[c.Right] = append(all[c.Right], strings.Replace(c.Path, "{id}", id, 1))
	}
	return all
}

// AllCommands returns every command, those on passkeys too. id is the user of those about one, in their paths.
func AllCommands(id string) []operator.Command {
	deps := Bare().Operator
	deps.Passkeys = &passkey.Service{}
	all := operator.New(deps).Commands()
	for i := range all {
		all[i].Path = strings.Replace(all[i].Path, "{id}", id, 1)
	}
	return all
}
