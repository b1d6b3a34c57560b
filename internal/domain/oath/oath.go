// Package oath owns tokens that make one-time passwords: devices from a stock and apps
// (HOTP and TOTP of the OATH initiative).
//
// It imports tokens, assigns them to users, synchronizes their clocks and counters, and
// checks codes. Begin with [New], [Service.SetToken] and [Service.CheckOneTimePassword].
// Package otp computes codes and package stock reads the files of token vendors.
//
// The package does not sign anybody in. The package signin decides whether a user needs
// a code.
package oath

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"tamga/internal/domain/user"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/oath/otp"
	"tamga/internal/domain/oath/stock"
	"tamga/internal/domain/session"
	"tamga/internal/domain/vault"
)

// Method is the name of the sign-in method, a second step, that works with tokens.
const Method = "oath"

// Type says what a token's steps are, by the name the interface has for it.
type Type string

// The types.
const (
	HOTP Type = "HOTP" // counted (RFC 4226)
	TOTP Type = "TOtp" // time (RFC 6238)
)

// Settings say how codes of tokens are accepted.
type Settings struct {
	// Window is how many steps of TOTP beside the expected one count, either way, and
	// LookAhead how many steps of HOTP. A guess is the better the larger they are.
	Window, LookAhead int64
	// SyncWindow and SyncLookAhead take their place where two codes in a row are given.
	SyncWindow, SyncLookAhead int64

	// Wrong codes in a row: after each Attempts of them the token is locked for LockOut,
	// after MaxAttempts until an operator or administrator unlocks it. Only a correct
	// code begins anew; time alone does not, or guessing would never end.
	Attempts    int
	LockOut     time.Duration
	MaxAttempts int

	// Issuer is what apps show beside a user's name; what they are given besides. Many
	// apps know SHA1, six digits and 30 s alone, whatever they are told.
	Issuer       string
	AppAlgorithm otp.Algorithm // SHA1, SHA256 or SHA512
	AppDigits    int
	AppPeriod    time.Duration
}

// DefaultSettings are our own choice: of a million codes a guess hits three, and a
// hundred guesses in a row are all there are.
func DefaultSettings() Settings {
	return Settings{
		Window: 1, LookAhead: 10, SyncWindow: 240, SyncLookAhead: 1000,
		Attempts: 5, LockOut: 15 * time.Minute, MaxAttempts: 100,
		Issuer: "Tamga", AppAlgorithm: otp.SHA1, AppDigits: 6, AppPeriod: stock.DefaultPeriod,
	}
}

// Check reports every fault at once.
func (s Settings) Check() []error {
	var faults []error
	must := func(ok bool, text string) {
		if !ok {
			faults = append(faults, errors.New("auth: settings: oath: "+text))
		}
	}
	must(s.Window >= 0 && s.Window <= 10, "window: want 0 to 10")
	must(s.LookAhead >= 1 && s.LookAhead <= 100, "look-ahead: want 1 to 100")
	must(s.SyncWindow >= s.Window && s.SyncWindow <= 5000, "sync window: want the window to 5000")
	must(s.SyncLookAhead >= s.LookAhead && s.SyncLookAhead <= 10_000, "sync look-ahead: want the look-ahead to 10000")
	must(s.Attempts >= 1, "attempts: want at least 1")
	must(s.LockOut >= time.Second, "lock-out: want at least 1 s")
	must(s.MaxAttempts >= s.Attempts && s.MaxAttempts <= 1000, "max attempts: want the attempts to 1000")
	must(s.Issuer != "", "issuer: want a name")
	must(s.AppAlgorithm == otp.SHA1 || s.AppAlgorithm == otp.SHA256 || s.AppAlgorithm == otp.SHA512, "app algorithm: want SHA1, SHA256 or SHA512")
	must(s.AppDigits >= otp.MinDigits && s.AppDigits <= otp.MaxDigits, "app digits: want 6 to 8")
	must(s.AppPeriod >= 10*time.Second && s.AppPeriod <= 10*time.Minute && s.AppPeriod%time.Second == 0, "app period: want whole seconds, 10 to 600")
	return faults
}

// Record is a token as it is stored.
type Record struct {
	Key         string // serial number in the form of stock.Key
	Serial      string // as printed
	UserID      string // "" in stock
	Type        Type
	App         bool  // made here for an app; it is never in stock
	Watermark   int64 // last step a code was accepted of; -1 for none
	Sealed      []byte
	Failures    int64 // wrong codes in a row
	LockedUntil time.Time
	CreatedAt   time.Time
	AssignedAt  time.Time // zero: never
}

// Blocked is the end of a lock that only an operator or administrator ends.
var Blocked = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// Query says which tokens are listed, by serial number.
type Query struct {
	After  string // key of the last one of the page before
	UserID string // only that of this user
	Free   bool   // only those in stock
	Limit  int
}

// Store keeps tokens. A changing statement says false where the token is not, or no
// longer, as its parameters have it; the caller has lost to somebody else.
type Store interface {
	Atomic(ctx context.Context, fn func(ctx context.Context) error) error
	// SignInName is what a user signs in with, "" for nothing.
	// session.ErrNotFound for no user.
	SignInName(ctx context.Context, userID string) (name string, u user.User, err error)

	AddOathToken(ctx context.Context, t Record) (bool, error) // false: the serial number is taken
	OathToken(ctx context.Context, key string) (t Record, found bool, err error)
	OathTokenOf(ctx context.Context, userID string) (t Record, found bool, err error)
	OathTokens(ctx context.Context, q Query) ([]Record, error)
	DeleteOathToken(ctx context.Context, key string, sealed []byte) (bool, error)
	// ReleaseOathToken takes a token from its user.
	ReleaseOathToken(ctx context.Context, key string, before, after []byte) (bool, error)

	// BeginOathAttempt counts a code as wrong before it is judged, and returns the token
	// as it is then. It is durable when it returns; false means that the token is locked,
	// and then nothing was counted. One statement decides, so codes tried at once and in
	// every way share a budget.
	BeginOathAttempt(ctx context.Context, key string, now time.Time, rule Lock) (Record, bool, error)
	// AcceptOathStep moves the watermark up to a step and forgets the wrong codes. One
	// statement decides: of all who come with the same step, or an earlier one, one is
	// told true. The token becomes, or stays, that of a user.
	AcceptOathStep(ctx context.Context, a Acceptance) (bool, error)
	// ForgiveOathToken forgets wrong codes and lifts the lock.
	ForgiveOathToken(ctx context.Context, key string) (bool, error)
	// SweepOathTokens deletes app tokens whose user is deleted.
	SweepOathTokens(ctx context.Context) error
}

// Lock is the rule that BeginOathAttempt applies.
type Lock struct {
	Attempts    int
	LockOut     time.Duration
	MaxAttempts int
}

// Acceptance is a code that was found right.
type Acceptance struct {
	Key           string
	UserID        string
	Step          int64
	Before, After []byte // sealed record
	AssignedAt    time.Time
}

// sealedToken is what the sealed record of a token holds.
type sealedToken struct {
	UserID    string        `json:"user_id"`
	Type      Type          `json:"type"`
	App       bool          `json:"app"`
	Algorithm otp.Algorithm `json:"algorithm"`
	Digits    int           `json:"digits"`
	Period    int64         `json:"period,omitempty"` // seconds
	Secret    []byte        `json:"secret"`
	Watermark int64         `json:"watermark"`
	Drift     int64         `json:"drift,omitempty"`      // steps that the token's clock is ahead
	NotBefore int64         `json:"not_before,omitempty"` // milliseconds since 1970; 0 for no such bound
	NotAfter  int64         `json:"not_after,omitempty"`
}

// period is that of TOTP.
func (t *sealedToken) period() time.Duration { return time.Duration(t.Period) * time.Second }

// valid reports whether the token may be used at a time.
func (t *sealedToken) valid(now time.Time) bool {
	return now.UnixMilli() >= t.NotBefore && (t.NotAfter == 0 || now.UnixMilli() < t.NotAfter)
}

// wipe overwrites the secret.
func (t *sealedToken) wipe() { clear(t.Secret) }

func oathPlace(key string) vault.Place {
	return vault.Place{Purpose: "one-time password token", Table: "oath_tokens", Row: key, Column: "sealed"}
}

// sealToken seals a record for the row of a token.
func (s *Service) sealToken(key string, t *sealedToken) ([]byte, error) {
	plain, err := json.Marshal(t)
	if err != nil {
		return nil, errors.New("auth: token: its record has no JSON form") // the cause could quote it
	}
	defer clear(plain)
	return s.vault.Seal(oathPlace(key), plain)
}

// errMoved is a record whose seal belongs to other cells of its row than stand there.
var errMoved = errors.New("auth: token: the record does not agree with its row: the database was changed by somebody else")

// openToken opens the record of a token; the caller wipes it. A token in stock may have
// the seal of its former user, who was deleted.
func (s *Service) openToken(r Record) (*sealedToken, error) {
	plain, err := s.vault.Open(oathPlace(r.Key), r.Sealed)
	if err != nil {
		return nil, fmt.Errorf("auth: token %s: %w", r.Key, err)
	}
	defer clear(plain)
	t := new(sealedToken)
	if err := json.Unmarshal(plain, t); err != nil {
		return nil, fmt.Errorf("auth: token %s: the record is in no form that this program knows", r.Key)
	}
	if r.UserID != "" && t.UserID != r.UserID || t.Type != r.Type || t.App != r.App || t.Watermark != r.Watermark {
		t.wipe()
		return nil, fmt.Errorf("%w: %s", errMoved, r.Key)
	}
	return t, nil
}

// Token is a token as people are told of it. Nobody is told its secret.
type Token struct {
	Serial      string
	Type        Type
	App         bool
	UserID      string // "" in stock
	LockedUntil time.Time
	CreatedAt   time.Time
	AssignedAt  time.Time
}

func (r Record) describe() Token {
	return Token{r.Serial, r.Type, r.App, r.UserID, r.LockedUntil, r.CreatedAt, r.AssignedAt}
}

// importPortion keeps an import from holding up other writers.
const importPortion = 1000

// ImportTokens puts tokens into the stock and returns the serial numbers that were known
// before, whose tokens stay as they are. After a failure a part may be there; the same
// import again adds the rest.
func (s *Service) ImportTokens(ctx context.Context, list []stock.Token) (known []string, err error) {
	for portion := range slices.Chunk(list, importPortion) {
		var knownHere []string
		err := s.store.Atomic(ctx, func(ctx context.Context) error {
			knownHere = nil
			for _, t := range portion {
				added, err := s.importToken(ctx, t)
				if err != nil {
					return err
				}
				if !added {
					knownHere = append(knownHere, t.Serial)
				}
			}
			return nil
		})
		if err != nil {
			return known, err
		}
		known = append(known, knownHere...)
	}
	return known, nil
}

func (s *Service) importToken(ctx context.Context, t stock.Token) (added bool, err error) {
	record := &sealedToken{
		Type: HOTP, Algorithm: t.Algorithm, Digits: t.Digits, Secret: t.Secret, Watermark: t.Counter - 1,
		NotBefore: unixMilli(t.NotBefore), NotAfter: unixMilli(t.NotAfter),
	}
	if t.Time {
		record.Type, record.Period, record.Drift, record.Watermark = TOTP, int64(t.Period/time.Second), t.Drift, -1
	}
	r := Record{
		Key: stock.Key(t.Serial), Serial: t.Serial, Type: record.Type, Watermark: record.Watermark,
		CreatedAt: s.now().UTC().Truncate(time.Millisecond),
	}
	if r.Sealed, err = s.sealToken(r.Key, record); err != nil {
		return false, err
	}
	return s.store.AddOathToken(ctx, r)
}

func unixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// MaxTokenPage is how many tokens one page of a list may have.
const MaxTokenPage = 1000

// Tokens lists tokens for administrators, by serial number.
func (s *Service) Tokens(ctx context.Context, q Query) ([]Token, error) {
	q.After = stock.Key(q.After)
	q.Limit = min(max(q.Limit, 1), MaxTokenPage)
	rows, err := s.store.OathTokens(ctx, q)
	list := make([]Token, len(rows))
	for i, r := range rows {
		list[i] = r.describe()
	}
	return list, err
}

// errNoToken is the answer to a serial number that the caller may not use, whether it is
// nobody's or somebody else's.
func errNoToken() error {
	return fault.New(fault.KeyNotFound, "Serial: there is no such token in stock")
}

// UnlockToken forgets the wrong codes of a token for an administrator. The fault is
// key_not_found.
func (s *Service) UnlockToken(ctx context.Context, serial string) error {
	found, err := s.store.ForgiveOathToken(ctx, stock.Key(serial))
	if err == nil && !found {
		err = errNoToken()
	}
	return err
}

// DiscardToken deletes a token in stock for an administrator, such as a lost one. Faults:
// key_not_found, wrong_operation for a token of a user.
func (s *Service) DiscardToken(ctx context.Context, serial string) error {
	return s.store.Atomic(ctx, func(ctx context.Context) error {
		r, found, err := s.store.OathToken(ctx, stock.Key(serial))
		switch {
		case err != nil:
			return err
		case !found:
			return errNoToken()
		case r.UserID != "":
			return fault.New(fault.WrongOperation, "the token is a user's: take it from the user first")
		}
		return deleted(s.store.DeleteOathToken(ctx, r.Key, r.Sealed))
	})
}

// deleted makes a lost race of a statement's answer a fault.
func deleted(done bool, err error) error {
	if err == nil && !done {
		err = fault.New(fault.Unavailable, "the token is being used by somebody else: try again")
	}
	return err
}

// Painter makes a picture of a text as a QR code, GIF.
type Painter func(text string) ([]byte, error)

// Reach decides whether an operator may act on a user; [user.Service] satisfies it.
type Reach interface {
	Reach(ctx context.Context, who audit.Principal, userID string) error
}

// Events tells of events; [notify.Service] satisfies it.
type Events interface {
	Emit(ctx context.Context, e notify.Event) error
}

// Deps are what a Service works with.
type Deps struct {
	Store    Store
	Sessions *session.Service
	Reach    Reach
	Events   Events
	Vault    notify.Sealer // of the secrets of tokens
	Paint    Painter       // of what apps are set up with
	Now      func() time.Time
	Rand     io.Reader
}

// Service owns the tokens. Its methods are safe for concurrent use.
type Service struct {
	settings Settings
	store    Store
	sessions *session.Service
	reach    Reach
	events   Events
	vault    notify.Sealer
	paint    Painter
	now      func() time.Time
	rand     io.Reader
}

// New checks the settings.
func New(s Settings, d Deps) (*Service, error) {
	if err := errors.Join(s.Check()...); err != nil {
		return nil, err
	}
	return &Service{s, d.Store, d.Sessions, d.Reach, d.Events, d.Vault, d.Paint, d.Now, d.Rand}, nil
}

// change runs fn on a user within reach and tells of the change, all in one
// transaction. If fn fails, nothing of it stays.
func (s *Service) change(ctx context.Context, who audit.Principal, userID string, fn func(ctx context.Context) error) error {
	return s.store.Atomic(ctx, func(ctx context.Context) error {
		if err := s.reach.Reach(ctx, who, userID); err != nil {
			return err
		}
		if err := fn(ctx); err != nil {
			return fault.Rollback(err)
		}
		return fault.Rollback(s.events.Emit(ctx, notify.Event{Type: notify.UserAccountChanged, UserID: userID, Actor: who.UserID}))
	})
}

// TokenOf returns the token of a user and reports whether there is one. It does not
// open the record of the token.
func (s *Service) TokenOf(ctx context.Context, userID string) (t Token, found bool, err error) {
	r, found, err := s.store.OathTokenOf(ctx, userID)
	return r.describe(), found, err
}

// Sweep deletes app tokens whose user is deleted.
func (s *Service) Sweep(ctx context.Context) error { return s.store.SweepOathTokens(ctx) }
