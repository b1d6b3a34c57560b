package store

import (
	"context"
	"time"
)

// Limits bound how long a caller waits for a PostgreSQL server, and how long others wait
// for what a caller holds there. A field of 0 is no bound. SQLite has no server that
// could stop answering, so it ignores them. A value in the address of the database
// (statement_timeout=60s) counts instead of Idle, Lock and Statement.
type Limits struct {
	// Idle ends a session that holds a transaction open and sends nothing
	// (idle_in_transaction_session_timeout). It is how long a frozen or partitioned
	// process can hold up the others.
	Idle time.Duration
	// Lock bounds the waiting for one lock (lock_timeout).
	Lock time.Duration
	// Statement bounds one statement on the server (statement_timeout).
	Statement time.Duration
	// Call bounds a read, and a transaction from its beginning to its commit, waiting for
	// a connection included. It is measured here, so it holds when the server is silent.
	Call time.Duration
}

// ServingLimits are for a process that answers requests.
//
//   - Idle: units of a transaction run statements and nothing slow, so a healthy process
//     is idle for milliseconds. If a starved machine needs longer, the transaction runs
//     again. The value stays below the 3 s that the other processes may lose.
//   - Lock: longer than Idle, so that those who wait outlive a frozen holder, and longer
//     than the turns that several busy processes take before one (see peopleBatch).
//   - Statement: the slowest healthy statement is a search through millions of users; a
//     stalled disk holds up commits, which this does not bound.
//   - Call: longer than Statement, so that a server that works answers first.
var ServingLimits = Limits{Idle: 2 * time.Second, Lock: 5 * time.Second, Statement: 10 * time.Second, Call: 12 * time.Second}

// CommandLimits are for the administrating commands. They may search for long and wait for
// locks, but a command that is stopped on a terminal must not hold up the service.
var CommandLimits = Limits{Idle: ServingLimits.Idle}

// parameters are the settings of a session. Each is sent, 0 too, so that a setting of the
// role or of the database does not count instead.
func (l Limits) parameters() map[string]time.Duration {
	return map[string]time.Duration{
		"idle_in_transaction_session_timeout": l.Idle,
		"lock_timeout":                        l.Lock,
		"statement_timeout":                   l.Statement,
	}
}

// within bounds ctx by Call.
func (l Limits) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.Call <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, l.Call)
}
