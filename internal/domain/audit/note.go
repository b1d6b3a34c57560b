package audit

import "context"

// Note collects what the rooms learn about a call without a token. The door decides by
// it whether the call is written to the audit log: strangers could fill the log if
// every call were.
type Note struct {
	// Attempt writes the entry of the attempt once the caller is known.
	Attempt func(ctx context.Context, who Principal) error

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

// Known says who calls, once they proved it by other means than a token, and writes
// the attempt. Call it before the call changes anything, or in the transaction of the
// change. Its entries are written then, whatever comes of the call.
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
// failure is counted and written with the login of the user. Only users that exist may
// be named: people type passwords into the field for the login.
func Tried(ctx context.Context, userID, login string) {
	if n := noteOf(ctx); n != nil {
		n.tried = Principal{UserID: userID, Login: login}
	}
}

// Changed says that a call has an effect, so that it is written even if nobody knows
// the caller and it is refused. what names the effect in a few words without secrets,
// "" if operation and object say it all.
func Changed(ctx context.Context, what string) {
	if n := noteOf(ctx); n != nil {
		n.changed, n.what = true, what
	}
}

// Known returns who proved to be the caller, the zero value for nobody.
func (n *Note) Known() Principal { return n.known }

// Tried returns the user whom the call claims to be, the zero value for nobody known.
func (n *Note) Tried() Principal { return n.tried }

// Changed reports whether the call changed something, and what if that was named.
func (n *Note) Changed() (what string, changed bool) { return n.what, n.changed }
