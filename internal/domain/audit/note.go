// SPDX-License-Identifier: Apache-2.0

package audit

import "context"

// Note collects what the domain packages learn about a call without a token. The web
// package uses it to decide whether the call gets an audit entry. If every such call did,
// unauthenticated clients could fill the audit log.
type Note struct {
	// Attempt writes the entry of the attempt once the caller is known.
	Attempt func(ctx context.Context, who Principal) error
	// Network is the network that the call comes from: an IPv4 address or a prefix of an
	// IPv6 address. "" if it is not known.
	Network string

	known, tried Principal
	changed      bool
	what         string
}

type noteKey struct{}

// WithNote puts a note of one call into a context.
func WithNote(ctx context.Context, n *Note) context.Context {
	return context.WithValue(ctx, noteKey{}, n)
}

func noteOf(ctx context.Context) *Note {
	n, _ := ctx.Value(noteKey{}).(*Note)
	return n
}

// Network returns the network that a call without a token comes from, "" if it is not known.
func Network(ctx context.Context) string {
	if n := noteOf(ctx); n != nil {
		return n.Network
	}
	return ""
}

// Known sets the caller, once proved by other means than a token, and writes the entry of
// the attempt. Call it before the first change, or in the transaction of the change. From
// then on the call gets its entries whether it succeeds or fails.
func Known(ctx context.Context, who Principal) error {
	n := noteOf(ctx)
	if n == nil {
		return nil
	}
	n.known = who
	if n.Attempt == nil {
		return nil
	}
	return n.Attempt(ctx, who)
}

// Tried names the user whom a call claims to be. If the call fails to prove it, the
// failure is counted and gets an audit entry with the login of the user. Only users that
// exist may be named: people type passwords into the field for the login.
func Tried(ctx context.Context, userID, login string) {
	if n := noteOf(ctx); n != nil {
		n.tried = Principal{UserID: userID, Login: login}
	}
}

// Changed records that a call has an effect. The call then gets an audit entry even if
// the caller is unknown and the call is refused. what names the effect in a few words
// without secrets; "" when operation and object say it all.
func Changed(ctx context.Context, what string) {
	if n := noteOf(ctx); n != nil {
		n.changed, n.what = true, what
	}
}

// Known returns the proved caller, or the zero value.
func (n *Note) Known() Principal { return n.known }

// Tried returns the user whom the call claims to be, or the zero value.
func (n *Note) Tried() Principal { return n.tried }

// Changed reports whether the call changed something, and returns what, if that was
// named.
func (n *Note) Changed() (what string, changed bool) { return n.what, n.changed }
