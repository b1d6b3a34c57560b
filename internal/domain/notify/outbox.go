// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"errors"
	"time"
)

// State is the state of a message in the outbox.
type State string

// The states of a message. A message whose attempt is running is Pending with a lease.
const (
	Pending State = "pending" // waits for its first or next attempt
	Sent    State = "sent"    // handed over; its text is gone
	Dead    State = "dead"    // given up; its text is kept for Resend until it expires
)

// Record is a message in the outbox.
type Record struct {
	ID        string // GUID
	Channel   Channel
	To        string
	Separate  bool   // it waits for no other message to To; stores do not return it
	Subject   string // what it is about: the name of the template or of the event
	UserID    string
	Actor     string
	Sealed    []byte // sealed subject and text; empty after delivery or expiry
	State     State
	Attempts  int       // begun
	Error     string    // of the last attempt; empty after a success
	CreatedAt time.Time // when it was ordered
	DueAt     time.Time // when it is or was to be tried next
	ExpiresAt time.Time // when it becomes useless
	DoneAt    time.Time // when it became Sent or Dead; zero while Pending
}

// ErrNotFound is the error of a Store for a missing message.
var ErrNotFound = errors.New("notify: no such message")

// MessageQuery selects messages.
type MessageQuery struct {
	State  State // "" means all
	UserID string
	// Webhook selects the messages to the Subscription with this identifier.
	Webhook string
	Before  string // only those older than the message with this identifier; "" means all
	Oldest  bool   // the oldest come first; false: the newest
	Limit   int    // 1 to MaxMessages
}

// MaxMessages is the most a list returns at once.
const MaxMessages = 1000

// Ending is how an attempt ended.
type Ending struct {
	State State     // Pending: try again at DueAt
	DueAt time.Time // of Pending
	Error string
	At    time.Time
	Wipe  bool // delete the text
}

// Store keeps the outbox and the budgets.
type Store interface {
	Atomic(ctx context.Context, fn func(ctx context.Context) error) error

	AddMessage(ctx context.Context, r Record) error
	// ClaimMessages leases up to limit messages that are due, the oldest first: only the
	// oldest unfinished message of each recipient except for separate ones, and none whose
	// lease ends after now. It counts an attempt.
	ClaimMessages(ctx context.Context, channel Channel, lease string, now, until time.Time, limit int) ([]Record, error)
	// ExtendMessage extends a lease. It reports false when the lease was lost.
	ExtendMessage(ctx context.Context, id, lease string, until time.Time) (bool, error)
	// FinishMessage ends the attempt that holds the lease. It reports false when the
	// lease was lost, and then changes nothing.
	FinishMessage(ctx context.Context, id, lease string, e Ending) (bool, error)
	// Undelivered reports whether a message of the channel is due or leased.
	Undelivered(ctx context.Context, channel Channel, now time.Time) (bool, error)

	Message(ctx context.Context, id string) (Record, error) // or ErrNotFound
	Messages(ctx context.Context, q MessageQuery) ([]Record, error)
	// ReviveMessage makes a Dead message with a text Pending and due, with no attempts
	// counted. It reports false for other messages.
	ReviveMessage(ctx context.Context, id string, now time.Time) (bool, error)
	// SweepMessages gives up Pending messages that expired at now and are not leased,
	// deletes the texts of expired messages, and deletes messages done before doneBefore.
	SweepMessages(ctx context.Context, now, doneBefore time.Time) error

	// SpendBudgets counts one message under several keys and reports true, unless a limit
	// was reached in the window that began with the first message counted under its key.
	// Then it counts under none. It is one atomic statement. If others count at the same
	// moment, it may count under some and report false.
	SpendBudgets(ctx context.Context, budgets []BudgetLimit, now time.Time, window time.Duration) (bool, error)
	SweepBudgets(ctx context.Context, windowFromBefore time.Time) error
}

// BudgetLimit is a key that messages are counted under, with its limit.
type BudgetLimit struct {
	Key   string
	Limit int
	// Loose allows that the limit is exceeded by messages that are counted in one moment.
	// Units that count under a loose key never wait for each other.
	Loose bool
}
