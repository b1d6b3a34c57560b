// SPDX-License-Identifier: Apache-2.0

// Package fault defines the error type that reaches clients. An Error has a code of the
// specifications, a message for the client and a cause that only the log shows. Begin
// with New, and With for the cause. Code that runs transactions asks Commits, and
// Rollback changes its answer.
//
// Any other error reaches the client as an internal error without its text. The package
// does not know HTTP: web/rest maps codes to statuses.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Codes of the specifications and, where the comment says so, our own. web/rest maps
// codes to HTTP statuses. A code that it does not list is 400.
const (
	ContentRequired        = "content_required"
	InvalidContent         = "invalid_content"
	InvalidParameters      = "invalid_parameters"
	InvalidSignatureParams = "invalid_signature_params"
	InvalidCertificate     = "invalid_certificate"
	InvalidPIN             = "invalid_pin"
	ParametersRequired     = "parameters_required" // of encryption and decryption
	InvalidRecipients      = "invalid_recipients"  // of encryption
	UserNotFound           = "user_not_found"
	InvalidObjectState     = "invalid_object_state"
	WrongOperation         = "wrong_operation"
	InvalidLogin           = "invalid_login"
	InvalidPhone           = "invalid_phone"
	InvalidEmail           = "invalid_email"
	ContactUnconfirmed     = "contact_confirmation_required"
	MaxAttempts            = "max_attempts_exceeded"
	BadBounds              = "error_bad_bounds"              // of a search: the page
	InvalidFilterValue     = "error_invalid_filter_value"    // of a search
	UnsupportedOperation   = "error_operation_not_supported" // of a search: this comparison of this column
	Failed                 = "An error has occurred"         // 500: not caused by the client, such as an outage of another service

	Unauthorized    = "invalid_token"               // 401
	AccessDenied    = "access_denied"               // 403
	NotFound        = "object_not_found"            // 404
	TooLarge        = "max_request_length_exceeded" // 413
	Encoding        = "unsupported_encoding"        // 415, our own: a compressed request body
	TooManyRequests = "too_many_requests"           // 429
	Unavailable     = "temporarily_unavailable"     // 503
	Closed          = "service_closed"              // 503, our own: restored from a backup and not released
	Lost            = "document_lost"               // 500, our own: the storage has no bytes of a record, or other ones

	DuplicateLogin = "duplicate_login"              // our own: the specification names no code for a taken login
	DuplicateName  = "duplicate_distinguished_name" // our own, too: where the installation wants names unique
	DuplicatePhone = "duplicate_phone"              // our own, likewise for a taken phone number
	DuplicateEmail = "duplicate_email"              // and a taken e-mail address
	InvalidCode    = "invalid_confirmation_code"    // our own: a one-time code that is wrong, spent or too late

	KeyNotFound           = "key_not_found"                     // of a mobile device, or of the initialization of one
	KInitExists           = "initialization_key_already_exists" // one at a time
	MaxTokens             = "maximum_tokens_count_exceeded"     // of devices
	InvalidSystem         = "invalid_system_id"                 // of the mobile application
	InvalidContactInfo    = "invalid_contact_info"
	InvalidLicense        = "invalid_license"
	CertificateNotFound   = "certificate_not_found" // 404
	CertificateStatus     = "invalid_certificate_status"
	CertificateFormat     = "invalid_certificate_format"
	DuplicateFriendlyName = "duplicate_friendly_name"
	FriendlyNameLength    = "invalid_frinendly_name_length" // so spelled by the interface family
	RequestNotFound       = "request_not_found"             // 404
	RequestStatus         = "invalid_request_status"
	PendingRequests       = "pending_requests_exist"
	InvalidSubject        = "invalid_subject_name"
	InvalidEnroll         = "invalid_enroll"    // of a certificate authority: none of this number
	EnrollMissing         = "enroll_is_missing" // no authority certifies keys of this kind
	AlgorithmNotSupported = "algid_is_not_supported"
	ParameterNotSupported = "param_set_is_not_supported"
	ProviderNotFound      = "provider_not_found"
	CertNotFound          = "cert_not_found" // of the calls on keys, which have their own form of answer
	ParamIsNull           = "param_is_null"
	ValueIsNull           = "value_is_null"
	DocumentInfoInvalid   = "document_info_invalid"
	InvalidOperation      = "invalid_operation"      // of v2: there is none to carry out
	KeyReused             = "idempotency_key_reused" // 422, our own: an Idempotency-Key that was sent with another request before
	WrongTime             = "wrong_time"             // our own: the clock of a device is too far from ours

	// Of confirmations.
	AuthenticationFailed   = "authentication_failed"
	AuthenticationDeclined = "authentication_declined"
	TransactionPending     = "transaction_pending" // of an installation with one open operation for each user
	TransactionExpired     = "transaction_expired"
	InvalidTransaction     = "invalid_transaction"
	MethodNotConfirmed     = "authn_method_not_confirmed" // the user has no method to confirm with
)

// Error is a refusal whose reason the client may know.
type Error struct {
	Code    string // one of the constants above
	Message string // for the client: what was wrong and what would be right
	Err     error  // the cause, for the log only; may be nil
	// After is how long to wait before a retry can succeed (Retry-After of RFC 9110,
	// section 10.2.3). It is 0 when that is not known.
	After time.Duration
}

// New makes a fault without a cause.
func New(code, message string) *Error {
	return &Error{Code: code, Message: message}
}

// Newf is New with a formatted message. The message reaches the client, so it must not
// contain texts of other errors. Pass those to With.
func Newf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// With returns a copy of e that carries err as its cause.
func (e *Error) With(err error) *Error {
	c := *e
	c.Err = err
	return &c
}

// Until returns a copy of e with After set.
func (e *Error) Until(after time.Duration) *Error {
	c := *e
	c.After = after
	return &c
}

// Error returns the text for the log: code, message and cause.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Code + ": " + e.Message
	}
	return e.Code + ": " + e.Message + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// As finds the outermost fault in the chain of err.
func As(err error) (*Error, bool) {
	if err == nil { // before e takes memory
		return nil, false
	}
	var e *Error
	ok := errors.As(err, &e)
	return e, ok
}

// Is reports whether the outermost fault in the chain of err has this code.
func Is(err error, code string) bool {
	e, ok := As(err)
	return ok && e.Code == code
}

// Rollback marks err so that the transaction that returns it is rolled back even if err
// is a fault. Without the mark a fault commits the writes before it: usually they must
// persist (a counter, a lock). Use Rollback for a refusal in the middle of a change.
// Rollback(nil) is nil.
func Rollback(err error) error {
	if err == nil {
		return nil
	}
	return &rollback{err}
}

type rollback struct{ err error }

func (r *rollback) Error() string { return r.err.Error() }
func (r *rollback) Unwrap() error { return r.err }

// Commits reports whether the transaction that returns err commits: err is nil, or a
// fault that Rollback did not mark.
func Commits(err error) bool {
	if err == nil {
		return true
	}
	var r *rollback
	if errors.As(err, &r) {
		return false
	}
	_, ok := As(err)
	return ok
}
