// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"context"
	"time"

	"tamga/internal/domain/lock"
)

// Quota bounds the open records of one user and one purpose. A record is open until its
// state is final.
type Quota struct {
	Records int64
	Bytes   int64 // of Record.Bytes together
}

// DocumentQuotas are those of stored documents. An open operation counts there as one
// document with the bytes that are stored for it.
type DocumentQuotas struct {
	User, All Quota
}

// Room says whether a record fitted into the quotas.
type Room int

// The answers of Store.AddConfirmation.
const (
	Added       Room = iota
	NoRoom           // the user has too many open records of the purpose
	NoDocuments      // a quota of stored documents has no room
)

// StoredContent is Content as it is stored: JSON, sealed secrets, opaque bytes.
type StoredContent struct{ Fields, Shown, Outline, Offline, Result, Approval []byte }

// Challenge is a challenge that begins or is repeated.
type Challenge struct {
	Method, Address, Label, Number string
	Before                         int  // the round that was read
	Repeat                         bool // the round stays, and the attempts
	At, AnswerBefore               time.Time
	SentBefore                     time.Time // of a repetition: the latest SentAt of the message before it
}

// Move changes the state of one record or of several.
type Move struct {
	From []State // any of them; at most three
	To   State
	At   time.Time
	// Round is the challenge that it belongs to; 0: any.
	Round int
	// Live refuses the move if the record has expired.
	Live           bool
	CompleteBefore time.Time // of a record that is confirmed
	Declined       []int     // of a record that is confirmed or declined
	Code, Message  string
	Approval       []byte // signed message of a device, or answer of a passkey; nil: none
	Proof          []byte // evidence of what was done, of a record that is completed; nil: none
}

// Store keeps records. Each method is one atomic step, whatever other processes do at the
// same time. A record whose new state is final leaves the quota, and its offline
// challenge is deleted, in the same step.
type Store interface {
	// Atomic locks the set, then runs fn in one transaction. fn decides by what its changing
	// statements report, or by what it read about a user in the set. A nested Atomic joins
	// the transaction and may name only what is locked already.
	Atomic(ctx context.Context, locked lock.Set, fn func(ctx context.Context) error) error
	// AddConfirmation stores a record if it fits into the quota of its user and purpose, and
	// an operation if it also fits into those of documents. Otherwise it stores nothing.
	AddConfirmation(ctx context.Context, r *Record, c *StoredContent, q Quota, documents DocumentQuotas) (Room, error)
	Confirmation(ctx context.Context, id string) (r Record, found bool, err error)
	ConfirmationByRef(ctx context.Context, refID string) (r Record, found bool, err error)
	// SetOffline stores what a device answers to the challenge of a record without a network,
	// sealed, in place of what was there; nil: nothing.
	SetOffline(ctx context.Context, id string, sealed []byte) error
	ConfirmationContent(ctx context.Context, id string) (c StoredContent, found bool, err error)
	// OpenConfirmations returns open records of a user that have not expired, the oldest
	// first, after the record with the identifier after.
	OpenConfirmations(ctx context.Context, userID, after string, now time.Time, limit int) ([]Record, error)
	// BeginChallenge begins or repeats the challenge of a record that has not expired, and
	// returns StoredContent.Fields of the record. It reports false if another call was
	// faster, the state is another, or the method is closed for the user (see AttemptStore).
	BeginChallenge(ctx context.Context, id string, c Challenge) (fields []byte, begun bool, err error)
	// CountAttempt counts an answer to the challenge that a client names by RefID, before it
	// is checked, and returns the record after that. It reports false if no challenge of the
	// user and the client waits for an answer, its time or its limit is over, or the method
	// is closed. With an empty clientID every client may answer.
	CountAttempt(ctx context.Context, refID, userID, clientID string, now time.Time, limit int) (r Record, counted bool, err error)
	// MoveConfirmation returns the record after the move. It reports false if the record
	// does not meet the conditions.
	MoveConfirmation(ctx context.Context, id string, m Move) (r Record, moved bool, err error)
	// MoveConfirmations moves the records of a user and returns them. With dueBefore set,
	// it moves only those that expired by then and whose operation is not leased, of all users
	// if userID is "".
	MoveConfirmations(ctx context.Context, userID string, dueBefore time.Time, m Move, limit int) ([]Record, error)
	// SweepConfirmations deletes records that ended before a time.
	SweepConfirmations(ctx context.Context, endedBefore time.Time) error
}

// Limit is the rule for wrong answers of one user to one method, over all records.
type Limit struct {
	Wrong  int           // within Window
	Window time.Duration // begins with the first of them
	Closed time.Duration // how long the method is closed after that
}

// WaitingSignIn is a sign-in that waits for its second step.
type WaitingSignIn struct {
	ID, Origin string
}

// AttemptStore bounds what attackers do to a user: it counts wrong answers by method, keeps the
// right ones for their repetition, and lists the sign-ins of which one gives way to another
// one. It uses the same database as Store.
type AttemptStore interface {
	// WaitingSignIns returns the sign-ins of a user and a purpose that wait for their second
	// step and were created until a time, the oldest first.
	WaitingSignIns(ctx context.Context, userID string, p Purpose, until time.Time) ([]WaitingSignIn, error)
	// CountWrong counts a wrong answer. It reports false and counts nothing while the method
	// is closed. One statement decides, so that parallel answers of all callers share a
	// budget.
	CountWrong(ctx context.Context, userID, method string, now time.Time, rule Limit) (counted bool, err error)
	// ClosedUntil returns when the method opens again; a time in the past means that it is
	// open.
	ClosedUntil(ctx context.Context, userID, method string) (time.Time, error)
	// KeepAnswer stores the right answer to a record, sealed, until a time, in place of what was
	// there. The caller has locked the user.
	KeepAnswer(ctx context.Context, id string, sealed []byte, expires time.Time) error
	// KeptAnswer returns what KeepAnswer stored, if it has not expired.
	KeptAnswer(ctx context.Context, id string, now time.Time) (sealed []byte, found bool, err error)
	// DropAnswer deletes what KeepAnswer stored.
	DropAnswer(ctx context.Context, id string) error
	// CountPush counts that a device of a user was asked about a challenge, until a time. If most
	// of them count already, it counts nothing and returns when the first of these ends,
	// otherwise the zero time. The caller has locked the user.
	CountPush(ctx context.Context, userID, challenge string, now, until time.Time, most int) (free time.Time, err error)
	// CloseMethod closes a method of a user until a time; its name need not be that of a row.
	CloseMethod(ctx context.Context, userID, method string, now, until time.Time) error
	// OpenMethod deletes the count of a user and a method, and opens it.
	OpenMethod(ctx context.Context, userID, method string) error
	// ForgiveAnswers deletes the counts of a user, also those of CountPush.
	ForgiveAnswers(ctx context.Context, userID string) error
	// SweepAnswers deletes counts whose window began before a time and which close nothing
	// at now, and kept answers and counts of CountPush that have expired by now.
	SweepAnswers(ctx context.Context, windowFromBefore, now time.Time) error
}
