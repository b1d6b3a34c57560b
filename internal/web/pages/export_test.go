// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"tamga/internal/domain/policy"
	"tamga/internal/domain/user"
	"tamga/internal/web/pages/account"
	"tamga/internal/web/pages/encryption"
	"tamga/internal/web/pages/operator"
	"tamga/internal/web/pages/sign"
)

// Bare returns what pages need to have routes, but not to answer.
func Bare() Deps {
	return Deps{
		Sign:       sign.Deps{Documents: struct{ sign.Documents }{}, Verifier: struct{ sign.Verifier }{}},
		Encryption: encryption.Deps{Documents: struct{ encryption.Documents }{}},
		Account:    account.Deps{Contacts: struct{ account.Contacts }{}},
		Operator:   operator.Deps{People: &user.Service{}, Policies: &policy.Editor{}},
	}
}
