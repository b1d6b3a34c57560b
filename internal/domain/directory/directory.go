// SPDX-License-Identifier: Apache-2.0

// Package directory keeps users as the directory of an organization has them (LDAP, Active Directory). Begin with
// Service.Sync, which compares all entries of a directory with the users, and Service.Run, which does so regularly.
//
// An entry and its user are linked by an identifier that stays when the entry is renamed. The password of a linked
// user is the one of the directory: package signin asks it. Users whose entries vanish are locked after a delay,
// never deleted. What operators decide has priority: a lock that an operator has set or lifted stays so, and a user whom
// an operator has unlinked is not joined again. Users without a link are left alone: they sign in when the directory is away.
package directory

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/lease"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/user"
)

// Entry is a person in a directory.
type Entry struct {
	ID         string // stays when the entry is renamed or moved
	DN         string // what the person signs in with at the directory
	Login      string
	Name       string            // display name
	Group      string            // group of users; "" for a person who is to be no user
	Disabled   bool              // may not sign in at the directory
	Unknown    bool              // the directory does not say whether the person may sign in
	Components map[string]string // of the distinguished name; see user.Account
	Email      string
	Phone      string
}

// digest identifies what the user of an entry gets from it.
func (e *Entry) digest() string {
	text, _ := json.Marshal([]any{e.Login, e.Name, e.Group, e.Components}) // the keys of maps are sorted
	sum := sha256.Sum256(text)
	return fmt.Sprintf("%x", sum[:16])
}

// Source reads a directory.
type Source interface {
	// Entries calls take with the entries of all people, some at a time. Without an error there are no others.
	Entries(ctx context.Context, take func(list []Entry) error) error
}

// Link joins an entry and its user.
type Link struct {
	UserID       string
	Login        string // of the user
	Group        string // of the user
	Entry        string // Entry.ID
	DN           string
	Digest       string    // of the entry that the user has followed
	MissingSince time.Time // zero: the entry is there
	// Barred means that the last synchronization found the entry disabled, or gone for long enough, and has acted on that.
	// It does so once: an operator may unlock the user meanwhile.
	Barred   bool
	Locked   bool // the present lock of the user was set by a synchronization, and by no operator since
	Unlinked bool // an operator has unlinked the user for good
}

// State is what is known about the synchronization of a directory.
type State struct {
	Directory string
	EndedAt   time.Time // of the last one; zero: there was none
	DueAt     time.Time
	Result    Result
	Error     string // why it failed; "" if it did not
}

// Store keeps links and the state of synchronizations.
type Store interface {
	Atomic(ctx context.Context, locked lock.Set, fn func(ctx context.Context) error) error
	// Links returns the links of entries of a directory.
	Links(ctx context.Context, directory string, entries []string) ([]Link, error)
	// LinksAfter returns at most limit links of a directory after an entry, in the order of entries.
	LinksAfter(ctx context.Context, directory, after string, limit int) ([]Link, error)
	// PutLink adds or replaces the link of a user. It returns ErrLinked if the entry has another user, the user another
	// entry, or one of them was unlinked.
	PutLink(ctx context.Context, directory string, l Link) error
	// AddLink is PutLink for a user who is added in the same transaction.
	AddLink(ctx context.Context, directory string, l Link) error
	// MarkMissing notes since when the entries of users are missing, where nothing was noted before.
	MarkMissing(ctx context.Context, directory string, userIDs []string, since time.Time) error
	// Unlink removes the link of a user, and the stored password from before it. With forget nothing is left of the link.
	// Otherwise it is remembered, so that PutLink refuses the user and the entry. had reports whether there was a link, or
	// one to forget.
	Unlink(ctx context.Context, userID string, forget bool) (had bool, err error)
	// LinkOf returns the directory that a user follows, or was unlinked from; "" for other users.
	LinkOf(ctx context.Context, userID string) (directory string, unlinked bool, err error)

	// ClaimSync leases the synchronization of a directory if it is due and no other process has it. now is
	// ignored for what is due if force is true.
	ClaimSync(ctx context.Context, directory string, l lease.Lease, now time.Time, force bool) (claimed bool, err error)
	ExtendSync(ctx context.Context, directory string, l lease.Lease) (held bool, err error)
	// EndSync stores the state and ends the lease.
	EndSync(ctx context.Context, token string, s State) (held bool, err error)
	SyncState(ctx context.Context, directory string) (State, error)
}

// ErrLinked is the error for an entry or a user that is linked otherwise.
var ErrLinked = errors.New("directory: the entry has another user, the user another entry, or one of them was unlinked")

// Methods gives users the method password; [signin.Service] satisfies it.
type Methods interface {
	GrantMethod(ctx context.Context, userID, name string) error
	FirstMethod(ctx context.Context, userID, name string) error // for a user who is added in the same transaction
}

// Match says which users are joined with entries that have no link yet.
type Match string

// The rules. An operator is never matched: a directory cannot take over such an account.
const (
	MatchNone  Match = "none"  // an entry with the login of a user is refused
	MatchLogin Match = "login" // the user with the login of the entry
	MatchEmail Match = "email" // the user whose primary e-mail address the entry has
)

// Rules are the settings of a directory.
type Rules struct {
	Name        string
	Match       Match
	LockAfter   time.Duration // since an entry vanished
	Every       time.Duration // between two synchronizations
	MostMissing float64       // part of the users who may vanish, be disabled or change their group at once; above it none of them is changed
}

// Service synchronizes one directory.
type Service struct {
	Rules
	Source  Source
	Store   Store
	Users   *user.Service
	Methods Methods
	Audit   Log
	Now     func() time.Time
	Rand    io.Reader
	Noted   func(err error) // takes the result of each synchronization of Run
	Failed  func(err error) // takes errors of the store
}

// Log stores audit entries, in the transaction of ctx.
type Log interface {
	Record(ctx context.Context, e audit.Entry) error
}

// Kind is what a synchronization does about a user.
type Kind string

// The kinds.
const (
	Added    Kind = "added"    // registered
	Linked   Kind = "linked"   // a user who was there follows the entry now
	Changed  Kind = "changed"  // follows a changed entry
	Missing  Kind = "missing"  // the entry is gone; the user will be locked
	Locked   Kind = "locked"   // the entry is disabled, or gone for long enough
	Unlocked Kind = "unlocked" // the entry is there again
	Unknown  Kind = "unknown"  // the directory does not say whether the person may sign in; a lock stays as it is
	Refused  Kind = "refused"  // see Change.Err
)

// Change is what a synchronization has done, or would do, about one user.
type Change struct {
	Kind  Kind
	Login string
	DN    string
	Err   error
}

// Result counts what a synchronization did.
type Result struct {
	Entries   int `json:"entries"`
	Unchanged int `json:"unchanged"`
	Added     int `json:"added"`
	Linked    int `json:"linked"`
	Changed   int `json:"changed"`
	Missing   int `json:"missing"`
	Locked    int `json:"locked"`
	Unlocked  int `json:"unlocked"`
	Unknown   int `json:"unknown"`
	Refused   int `json:"refused"`
	Left      int `json:"left"` // entries that are no users: without a group, disabled and unknown, or unlinked by an operator
}

func (r *Result) count(k Kind) {
	switch k {
	case Added:
		r.Added++
	case Linked:
		r.Linked++
	case Changed:
		r.Changed++
	case Missing:
		r.Missing++
	case Locked:
		r.Locked++
	case Unlocked:
		r.Unlocked++
	case Unknown:
		r.Unknown++
	case Refused:
		r.Refused++
	}
}

// String returns the counts that are not 0.
func (r Result) String() string {
	text := fmt.Sprintf("%d entries", r.Entries)
	for _, c := range []struct {
		n    int
		what string
	}{
		{r.Added, "added"}, {r.Linked, "linked"}, {r.Changed, "changed"}, {r.Missing, "missing"}, {r.Locked, "locked"}, {r.Unlocked, "unlocked"}, {r.Unknown, "unknown"}, {r.Refused, "refused"},
	} {
		if c.n > 0 {
			text += fmt.Sprintf(", %d %s", c.n, c.what)
		}
	}
	return text
}
