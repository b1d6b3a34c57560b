// SPDX-License-Identifier: Apache-2.0

// Package effect names what operations do to people, keys and policies. Each route of operators
// declares the effects that it may have. What a request waits for follows from the effects that it
// has with its values, and from what is stored (package approval).
package effect

import "strings"

// Set is a set of effects. The zero value is the set without any.
type Set uint8

// The effects, in the order in which texts name them.
const (
	// GivesSecret: a secret of the user leaves the service, in the answer or in a message: a
	// password, the QR code or the activation code of a new device, the seed of an app. A message
	// counts, because an operator can confirm a contact.
	GivesSecret Set = 1 << iota
	// AddsFactor: the user can sign in or confirm with something more.
	AddsFactor
	// RemovesFactor: something to sign in or confirm with is removed or replaced.
	RemovesFactor
	// WeakensPolicy: a policy asks for less, allows more or tells the user less.
	WeakensPolicy
	// EndsAccess: the user is locked, signed out, or cannot use a device or certificate.
	EndsAccess
	// GivesAccess: a user is registered, approved or unlocked, or may use a certificate.
	GivesAccess
	// Deletes: a user or another record is deleted with all that belongs to it.
	Deletes

	// None is the set without any.
	None Set = 0
)

// Takeover are the effects by which an operator could take over the account of a user.
const Takeover = GivesSecret | AddsFactor | RemovesFactor | WeakensPolicy

// effectNames are the names of effects in settings and texts, in the order of their bits.
var effectNames = []string{"gives_secret", "adds_factor", "removes_factor", "weakens_policy", "ends_access", "gives_access", "deletes"}

// Names returns the names of the effects of a set.
func (e Set) Names() (names []string) {
	for i, name := range effectNames {
		if e&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// String returns the names, separated by commas, and "none" without any.
func (e Set) String() string {
	if e == None {
		return "none"
	}
	return strings.Join(e.Names(), ", ")
}

// Names returns the names of all effects.
func Names() []string { return append([]string(nil), effectNames...) }

// Named returns the effect with a name. It reports false for an unknown one.
func Named(name string) (Set, bool) {
	for i, n := range effectNames {
		if n == name {
			return 1 << i, true
		}
	}
	return None, false
}

// OfNames returns the set of effects with these names. Unknown ones are left out.
func OfNames(names []string) (set Set) {
	for _, name := range names {
		e, _ := Named(name)
		set |= e
	}
	return set
}

// operationEffects are the effects that operations of the interface may have, for a setting
// that names an operation in place of an effect. A test compares them with the routes.
var operationEffects = map[string]Set{
	"RegisterUser": GivesAccess, "RegisterUser2": GivesAccess, "DeleteUser": EndsAccess | Deletes,
	"SetUserProperty": EndsAccess | GivesAccess, "SetUserApprovedStateAsync": EndsAccess | GivesAccess,
	"SetUserLockoutState": EndsAccess | GivesAccess, "SetUserLockoutStateEx": EndsAccess | GivesAccess, "RevokeUserGrants": EndsAccess,
	"SetUserGroup": WeakensPolicy, "SetUserLocalLogin": EndsAccess, "DeleteUserLocalLogin": EndsAccess,
	"SetUserLogin": AddsFactor | RemovesFactor, "DeleteUserLogin": RemovesFactor,
	"ResetPassword": GivesSecret | AddsFactor | RemovesFactor, "ResetPasswordAndSend": GivesSecret | AddsFactor | RemovesFactor,
	"ResetPasswordAndSendSms": GivesSecret | AddsFactor | RemovesFactor, "ResetPasswordAndSendEmail": GivesSecret | AddsFactor | RemovesFactor,
	"ResetPasswordAndPrint": GivesSecret | AddsFactor | RemovesFactor,
	"SetUserOtpToken":       AddsFactor | RemovesFactor, "CreateUserOathAppData": GivesSecret | AddsFactor | RemovesFactor, "RemoveUserOtpToken": RemovesFactor,
	"RemoveUserPasskey": RemovesFactor,
	"AssignMyDssKey":    AddsFactor, "CreateMyDssKInit": GivesSecret | AddsFactor, "GetMyDssKInit": GivesSecret, "SendMyDssKInit": GivesSecret,
	"ResendMyDssKInitOtp": GivesSecret, "GetMyDssVerificationData": GivesSecret | AddsFactor, "LockoutMyDssDevice": AddsFactor | EndsAccess,
	"DeleteMyDssKey": RemovesFactor, "DeleteAllMyDssKeys": RemovesFactor,
	"SetUserOperationPolicy": WeakensPolicy, "SetUserAccessPolicy": WeakensPolicy, "SetNotificationPolicy": WeakensPolicy,
}

// OfOperation returns the effects that an operation of the interface may have. It reports false
// for a name that is no such operation, or one without effects.
func OfOperation(operation string) (Set, bool) {
	for prefix, e := range map[string]Set{"SetUserAuthenticationMethod": AddsFactor | WeakensPolicy, "DeleteUserAuthenticationMethod": RemovesFactor} {
		if strings.HasPrefix(operation, prefix) {
			return e, true
		}
	}
	for _, kind := range []string{"Phone", "Email"} {
		switch operation {
		case "SetUserMain" + kind, "SetUserPrimary" + kind, "SetUserSecondaryAuth" + kind:
			return AddsFactor | RemovesFactor, true
		case "DeleteUser" + kind:
			return RemovesFactor, true
		}
	}
	e, has := operationEffects[operation]
	return e, has
}
