// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math/bits"
	"strconv"
	"strings"

	"tamga/internal/domain/fault"
)

// Action is a set of operations that a policy is about, one bit each. The bits are those
// of DSSActions in the specification.
type Action uint32

// The single actions.
const (
	Issue Action = 1 << iota
	SignDocument
	SignDocuments
	DecryptDocument
	CreateRequest
	ChangePin
	RenewCertificate
	RevokeCertificate
	HoldCertificate
	UnholdCertificate
	DeleteCertificate
	PrivateKeyAccess

	// All is the set of all actions.
	All = PrivateKeyAccess<<1 - 1
)

// names holds the name of bit i at index i.
var names = [...]string{
	"Issue", "SignDocument", "SignDocuments", "DecryptDocument", "CreateRequest", "ChangePin",
	"RenewCertificate", "RevokeCertificate", "HoldCertificate", "UnholdCertificate", "DeleteCertificate",
	"PrivateKeyAccess",
}

// String returns the names of the actions, joined by commas, or the number when a bit has
// no name.
func (a Action) String() string {
	if a == 0 || a&^All != 0 {
		return strconv.FormatUint(uint64(a), 10)
	}
	var parts []string
	for rest := a; rest != 0; rest &= rest - 1 {
		parts = append(parts, names[bits.TrailingZeros32(uint32(rest))])
	}
	return strings.Join(parts, ",")
}

// Actions lists the single actions in the order of their bits.
func Actions() []Action {
	list := make([]Action, len(names))
	for i := range list {
		list[i] = 1 << i
	}
	return list
}

// ParseAction reads the name of an action, without regard to letter case, or
// the number of one or several. The fault is invalid_parameters.
func ParseAction(text string) (Action, error) {
	for i, name := range names {
		if strings.EqualFold(name, text) {
			return 1 << i, nil
		}
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n == 0 || Action(n)&^All != 0 {
		return 0, fault.Newf(fault.InvalidParameters,
			"action: unknown value, want a name such as %s or a number from 1 to %d", SignDocument, uint32(All))
	}
	return Action(n), nil
}
