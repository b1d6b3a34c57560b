// SPDX-License-Identifier: Apache-2.0

// Package audit defines the caller of an operation (Principal), the audit entry about it
// (Entry) and the audit log that stores entries (Log). Begin with Log.Record. Calls
// without a token collect what is known about the caller in a Note. The package does not
// store anything itself.
//
// An entry never contains a secret: no password, PIN, token, key or document, and no
// error text that could quote one.
package audit

import (
	"context"
	"time"
)

// Principal is the caller of an operation, as established by its token.
type Principal struct {
	UserID   string // GUID
	Login    string // as registered, letter case kept
	Group    string // the group the user belongs to
	Operator bool   // may manage users; which ones, the package reach decides
	TokenID  string // jti of the access token
	ClientID string // OAuth client that obtained the token
	Method   string // how the user signed in, such as "password"
	Actor    string // login of the operator who acts as this user; "" when the user acts
	// Confirmation is the identifier of the confirmation that the token was issued for. Such
	// a caller may only carry out what was confirmed. "" for every other token. It is not
	// part of audit entries: those of the confirmation have it.
	Confirmation string
}

// Phases of an operation in the audit log.
const (
	Attempt = "attempt" // before the body is read
	Done    = "done"    // with the outcome
)

// CommandLine is the remote side and the method of who runs a command of this program.
const CommandLine = "command line"

// Outcomes that are not the code of a fault.
const (
	OK       = "ok"
	Canceled = "canceled" // the client hung up
)

// Entry is an audit entry.
type Entry struct {
	At        time.Time
	RequestID string
	// Correlation is the checked id that a known caller gave the request; "" for none.
	Correlation string
	Operation   string // name of the route or of the command
	Phase       string // Attempt or Done
	Outcome     string // "" for an attempt, otherwise OK, Canceled or the code of a fault
	Object      string // what was acted on: a certificate number, a user id
	Remote      string // address of the peer
	Detail      string // short and free of secrets
	Principal   Principal
	Duration    time.Duration // kept in microseconds; of an attempt without a time: how long ago it was
}

// Begun returns the entry of the attempt whose outcome e is. It was Duration before e, or if e has no time yet, before it is
// recorded.
func (e Entry) Begun() Entry {
	if !e.At.IsZero() {
		e.At, e.Duration = e.At.Add(-e.Duration), 0
	}
	e.Phase, e.Outcome, e.Object, e.Detail = Attempt, "", "", ""
	return e
}

// Beside is what is stored in the step that makes a change. Its zero value is nothing. Entries alone
// cost no further round trip.
type Beside struct {
	Entry   *Entry // of the outcome
	Attempt bool   // also the entry of the attempt; see [Entry.Begun]
	// Record runs in the transaction of the step. Its error rolls everything back.
	Record func(ctx context.Context) error
}

// Entries returns the entries, of the attempt first.
func (b Beside) Entries() []Entry {
	switch {
	case b.Entry == nil:
		return nil
	case b.Attempt:
		return []Entry{b.Entry.Begun(), *b.Entry}
	}
	return []Entry{*b.Entry}
}

// Log stores audit entries.
type Log interface {
	// Record returns nil when the entry is durable. Inside a transaction the entry
	// becomes part of that transaction instead.
	Record(ctx context.Context, e Entry) error
	// Begin is Record for a caller with other work to do meanwhile. wait returns what
	// Record would have returned. When the context of wait ends first, the entry may or
	// may not have been stored.
	Begin(ctx context.Context, e Entry) (wait func(ctx context.Context) error)
}
