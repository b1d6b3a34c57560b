// SPDX-License-Identifier: Apache-2.0

// Package oath owns tokens that make one-time passwords: devices from a stock and apps
// (HOTP and TOTP of the OATH initiative).
//
// It imports tokens, assigns them to users, synchronizes their clocks and counters, and
// checks codes. Begin with [New], [Service.SetToken] and [Service.CheckOneTimePassword].
// Package otp computes codes and package stock reads the files of token vendors.
//
// The package does not sign users in. The package signin decides whether a user needs
// a code.
package oath

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/user"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/oath/otp"
	"tamga/internal/domain/oath/stock"
	"tamga/internal/domain/reach"
	"tamga/internal/domain/session"
	"tamga/internal/domain/vault"
)

// Method is the name of the sign-in method, a second step, that works with tokens.
const Method = "oath"

// Type is the kind of steps of a token. Values are the names of the interface.
type Type string

// Values of Type.
const (
	HOTP Type = "HOTP" // steps of a counter (RFC 4226)
	TOTP Type = "TOtp" // steps of time (RFC 6238)
)

// Settings of the service: which codes are accepted, and how app tokens are made.
type Settings struct {
	// Window is how many steps of TOTP before and after the expected one are accepted.
	// LookAhead is how many steps of HOTP are. Larger values make guesses easier.
	Window, LookAhead int64
	// SyncWindow and SyncLookAhead replace them if a caller gives two codes in a row.
	SyncWindow, SyncLookAhead int64

	// Lock of a token. After each Attempts wrong codes in a row, the token is locked for
	// LockOut. After MaxAttempts, it is locked until an operator or administrator unlocks
	// it. A correct code resets the count. Time does not, or guessing could go on for ever.
	Attempts    int
	LockOut     time.Duration
	MaxAttempts int

	// Issuer is the name that apps show beside the user's name. The others are parameters
	// of app tokens. Many apps ignore them and use SHA1, six digits and 30 s.
	Issuer       string
	AppAlgorithm otp.Algorithm // SHA1, SHA256 or SHA512
	AppDigits    int
	AppPeriod    time.Duration // whole seconds
}

// DefaultSettings returns the default settings. No standard prescribes them. A guess at a
// TOTP code hits three of a million codes, and at most 100 guesses in a row are possible.
func DefaultSettings() Settings {
	return Settings{
		Window: 1, LookAhead: 10, SyncWindow: 240, SyncLookAhead: 1000,
		Attempts: 5, LockOut: 15 * time.Minute, MaxAttempts: 100,
		Issuer: "Tamga", AppAlgorithm: otp.SHA1, AppDigits: 6, AppPeriod: stock.DefaultPeriod,
	}
}

// Check returns all errors in the settings at once.
func (s Settings) Check() []error {
	var faults []error
	must := func(ok bool, text string) {
		if !ok {
			faults = append(faults, errors.New("oath: settings: "+text))
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

// Record is a stored token.
type Record struct {
	Key         string // serial number, normalized by stock.Key
	Serial      string // serial number as printed
	UserID      string // "" in stock
	Type        Type
	App         bool   // made here for an app; never in stock
	Watermark   int64  // last step whose code was accepted; -1 for none
	Sealed      []byte // sealedToken, sealed by the vault
	Failures    int64  // wrong codes in a row
	LockedUntil time.Time
	CreatedAt   time.Time
	AssignedAt  time.Time // zero: never
	Behind      bool      // a restore moved its counter back: codes above the watermark may be used ones
}

// Blocked is the LockedUntil of a lock that only an operator or administrator ends.
var Blocked = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// Query selects tokens for a list, which is ordered by serial number.
type Query struct {
	After  string // serial number of the last token of the previous page
	UserID string // only the token of this user; "": all
	Free   bool   // only tokens in stock
	Limit  int
}

// Store stores tokens. A method that changes a token returns false if the token differs
// from its parameters: another call was faster.
type Store interface {
	// Atomic locks the set, then runs fn in one transaction. A nested Atomic joins the
	// transaction and may name only what is locked already.
	Atomic(ctx context.Context, locked lock.Set, fn func(ctx context.Context) error) error
	// SignInName returns the name that a user signs in with, "" for none. The error for a
	// missing user is session.ErrNotFound.
	SignInName(ctx context.Context, userID string) (name string, u user.User, err error)

	AddOathToken(ctx context.Context, t Record) (bool, error) // false: the serial number is taken
	OathToken(ctx context.Context, key string) (t Record, found bool, err error)
	OathTokenOf(ctx context.Context, userID string) (t Record, found bool, err error)
	OathTokens(ctx context.Context, q Query) ([]Record, error)
	DeleteOathToken(ctx context.Context, key string, sealed []byte) (bool, error)
	// ReleaseOathToken puts a token of a user back into the stock. before and after are the
	// sealed record.
	ReleaseOathToken(ctx context.Context, key string, before, after []byte) (bool, error)

	// BeginOathAttempt counts a code as wrong before it is checked, and returns the token
	// after that. The count is durable when it returns. It returns false, and counts
	// nothing, if the token is locked. One statement decides, so parallel attempts of all
	// callers share a budget.
	BeginOathAttempt(ctx context.Context, key string, now time.Time, rule Lock) (Record, bool, error)
	// AcceptOathStep moves the watermark up to a step, resets the count of wrong codes and
	// Behind, and assigns the token to the user. One statement decides: of parallel calls with the same
	// step or an earlier one, one returns true.
	AcceptOathStep(ctx context.Context, a Acceptance) (bool, error)
	// ForgiveOathToken resets the count of wrong codes and ends the lock.
	ForgiveOathToken(ctx context.Context, key string) (bool, error)
	// SweepOathTokens deletes the app tokens of deleted users.
	SweepOathTokens(ctx context.Context) error
}

// Lock is the rule of BeginOathAttempt. See Settings.
type Lock struct {
	Attempts    int
	LockOut     time.Duration
	MaxAttempts int
}

// Acceptance is a correct code.
type Acceptance struct {
	Key           string
	UserID        string
	Step          int64
	Before, After []byte // the sealed record before and after
	AssignedAt    time.Time
}

// sealedToken is the content of the sealed record of a token.
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
	NotBefore int64         `json:"not_before,omitempty"` // milliseconds since 1970; 0: no limit
	NotAfter  int64         `json:"not_after,omitempty"`
}

// period returns the length of a step of TOTP.
func (t *sealedToken) period() time.Duration { return time.Duration(t.Period) * time.Second }

// valid reports whether the token may be used at the time now.
func (t *sealedToken) valid(now time.Time) bool {
	return now.UnixMilli() >= t.NotBefore && (t.NotAfter == 0 || now.UnixMilli() < t.NotAfter)
}

// wipe overwrites the secret.
func (t *sealedToken) wipe() { clear(t.Secret) }

func oathPlace(key string) vault.Place {
	return vault.Place{Purpose: "one-time password token", Table: "oath_tokens", Row: key, Column: "sealed"}
}

// sealToken seals the record of a token for its row.
func (s *Service) sealToken(key string, t *sealedToken) ([]byte, error) {
	plain, err := json.Marshal(t)
	if err != nil {
		return nil, errors.New("oath: encoding the record of a token as JSON") // without the cause, which could quote the secret
	}
	defer clear(plain)
	return s.vault.Seal(oathPlace(key), plain)
}

// errMoved is the error for a sealed record that differs from the other cells of its row.
var errMoved = errors.New("oath: the sealed record of the token differs from its row: another program changed the database")

// openToken opens the sealed record of a token. The caller must wipe it. The record of a
// token in stock may name its former user, who was deleted.
func (s *Service) openToken(r Record) (*sealedToken, error) {
	plain, err := s.vault.Open(oathPlace(r.Key), r.Sealed)
	if err != nil {
		return nil, fmt.Errorf("oath: token %s: %w", r.Key, err)
	}
	defer clear(plain)
	t := new(sealedToken)
	if err := json.Unmarshal(plain, t); err != nil {
		return nil, fmt.Errorf("oath: token %s: the sealed record is not the JSON of a token", r.Key)
	}
	if r.UserID != "" && t.UserID != r.UserID || t.Type != r.Type || t.App != r.App || t.Watermark != r.Watermark {
		t.wipe()
		return nil, fmt.Errorf("%w: %s", errMoved, r.Key)
	}
	return t, nil
}

// Token is the public part of a token, without its secret.
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

// importPortion is the number of tokens in one transaction of an import. Large
// transactions block other writers.
const importPortion = 1000

// ImportTokens adds tokens to the stock. It returns the serial numbers that were known
// before and does not change their tokens. After an error, a part of the list may be
// imported. Repeat the import to add the rest.
func (s *Service) ImportTokens(ctx context.Context, list []stock.Token) (known []string, err error) {
	for portion := range slices.Chunk(list, importPortion) {
		var knownHere []string
		err := s.store.Atomic(ctx, lock.Set{}, func(ctx context.Context) error {
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

// MaxTokenPage is the greatest number of tokens in a page of a list.
const MaxTokenPage = 1000

// Tokens lists tokens for administrators, in the order of serial numbers. The limit is
// between 1 and MaxTokenPage.
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

// TokenNumbered finds the token with a serial number, for an administrator. It does not open the
// record of the token.
func (s *Service) TokenNumbered(ctx context.Context, serial string) (t Token, found bool, err error) {
	r, found, err := s.store.OathToken(ctx, stock.Key(serial))
	return r.describe(), found, err
}

// errNoToken returns the fault for a serial number that the caller may not use. It is the
// same for an unknown token and for a token of another user.
func errNoToken() error {
	return fault.New(fault.KeyNotFound, "Serial: there is no such token in stock")
}

// UnlockToken ends the lock of a token and resets its count of wrong codes, for an
// administrator. The fault is key_not_found.
func (s *Service) UnlockToken(ctx context.Context, serial string) error {
	found, err := s.store.ForgiveOathToken(ctx, stock.Key(serial))
	if err == nil && !found {
		err = errNoToken()
	}
	return err
}

// DiscardToken deletes a token in stock, such as a lost one, for an administrator. Faults:
// key_not_found, wrong_operation for a token of a user, temporarily_unavailable.
func (s *Service) DiscardToken(ctx context.Context, serial string) error {
	return s.store.Atomic(ctx, lock.Set{}, func(ctx context.Context) error {
		r, found, err := s.store.OathToken(ctx, stock.Key(serial))
		switch {
		case err != nil:
			return err
		case !found:
			return errNoToken()
		case r.UserID != "":
			return fault.New(fault.WrongOperation, "the token is assigned to a user: remove it from the user first")
		}
		return deleted(s.store.DeleteOathToken(ctx, r.Key, r.Sealed))
	})
}

// deleted turns the false of a store method into the fault temporarily_unavailable: another call
// was faster.
func deleted(done bool, err error) error {
	if err == nil && !done {
		err = fault.New(fault.Unavailable, "another request changed the token: try again")
	}
	return err
}

// Painter returns the QR code of a text as a GIF.
type Painter func(text string) ([]byte, error)

// Confirmations cancels what a user has begun to confirm. [confirm.Canceller] satisfies it.
type Confirmations interface {
	// CancelAll cancels the open confirmations of a user, in the transaction of ctx. reason
	// is a short sentence for clients.
	CancelAll(ctx context.Context, who audit.Principal, userID, reason string) error
}

// Deps are what a Service works with.
type Deps struct {
	Store         Store
	Sessions      *session.Service
	Confirmations Confirmations
	Reach         reach.Checker
	Events        reach.Events
	Vault         notify.Sealer // seals the secrets of tokens
	Paint         Painter       // makes the QR codes of app tokens
	Now           func() time.Time
	Rand          io.Reader
}

// Service manages tokens and checks their codes. Its methods are safe for concurrent use.
type Service struct {
	settings      Settings
	store         Store
	sessions      *session.Service
	confirmations Confirmations
	reach         reach.Checker
	changes       reach.Changes
	vault         notify.Sealer
	paint         Painter
	now           func() time.Time
	rand          io.Reader
}

// New returns a service. It checks the settings.
func New(s Settings, d Deps) (*Service, error) {
	if err := errors.Join(s.Check()...); err != nil {
		return nil, err
	}
	return &Service{s, d.Store, d.Sessions, d.Confirmations, d.Reach, reach.Changes{Store: d.Store, Reach: d.Reach, Events: d.Events}, d.Vault, d.Paint, d.Now, d.Rand}, nil
}

// TokenOf returns the token of a user and reports whether there is one. It does not
// open the record of the token.
func (s *Service) TokenOf(ctx context.Context, userID string) (t Token, found bool, err error) {
	r, found, err := s.store.OathTokenOf(ctx, userID)
	return r.describe(), found, err
}

// Sweep deletes the app tokens of deleted users.
func (s *Service) Sweep(ctx context.Context) error { return s.store.SweepOathTokens(ctx) }
