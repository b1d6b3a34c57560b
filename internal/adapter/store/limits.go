// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"time"
)

// Limits bound how long a caller waits for a PostgreSQL server, and how long other
// callers wait for locks that a caller holds there. 0 means no limit. SQLite ignores
// them, because it has no server that could stop answering. A value in the address of the
// database (statement_timeout=60s) overrides Idle, Lock and Statement.
type Limits struct {
	// Idle ends a session that holds a transaction open and sends nothing
	// (idle_in_transaction_session_timeout). It bounds how long a frozen or partitioned
	// process can block the others.
	Idle time.Duration
	// Lock bounds the wait for one lock (lock_timeout).
	Lock time.Duration
	// Statement bounds one statement on the server (statement_timeout).
	Statement time.Duration
	// Call bounds a read, and a transaction from its beginning to its commit, including
	// the wait for a connection. This process measures it, so it also works when the
	// server is silent.
	Call time.Duration
}

// ServingLimits are for a process that answers requests. A request is told after call that the
// database does not answer; call is at least 5 s.
//
//   - Idle: units of a transaction run statements and nothing slow, so a healthy process
//     is idle for milliseconds. If an overloaded machine needs longer, the transaction runs
//     again. The value is below the 3 s that the other processes may lose.
//   - Lock: longer than Idle, so that waiting callers outlast a frozen holder.
//   - Statement: the slowest healthy statement is a search through millions of users. A
//     stalled disk delays commits, which this does not bound.
//   - Call: longer than Statement, so that a working server answers first.
func ServingLimits(call time.Duration) Limits {
	return Limits{Idle: idleTime, Lock: min(5*time.Second, call-time.Second), Statement: call - time.Second, Call: call}
}

const idleTime = 2 * time.Second

// CommandLimits are for administrative commands. They may search for a long time and wait
// for locks, but a command that is stopped on a terminal must not block the service.
var CommandLimits = Limits{Idle: idleTime}

// parameters returns the settings of a session. Each is sent, even 0, to override the
// setting of the role or of the database.
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
