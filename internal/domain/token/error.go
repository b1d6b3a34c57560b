// SPDX-License-Identifier: Apache-2.0

package token

// Codes of OAuth errors (RFC 6749, 5.2).
const (
	InvalidRequest     = "invalid_request"
	InvalidClient      = "invalid_client"
	InvalidGrant       = "invalid_grant"
	InvalidScope       = "invalid_scope"
	UnauthorizedClient = "unauthorized_client"
	AccessDenied       = "access_denied" // of an authorization (RFC 6749, 4.1.2.1)

	// SecondStepNeeded is the code of the interface for a user who has passed the first
	// step and must pass a second one.
	SecondStepNeeded = "authn_method_not_confirmed"
)

// GrantError is a refusal of the token endpoint.
type GrantError struct {
	Code        string // one of the codes above
	Description string // for the developer of the client, in English
}

func (e *GrantError) Error() string { return e.Code + ": " + e.Description }

// Refuse returns a refusal of the token endpoint.
func Refuse(code, description string) *GrantError { return &GrantError{code, description} }
