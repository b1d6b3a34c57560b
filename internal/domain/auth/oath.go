package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"tamga/internal/domain/auth/otp"
	"tamga/internal/domain/auth/stock"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/vault"
)

// methodOATH is the second step by a token's one-time password.
const methodOATH = "oath"

// OathType says what a token's steps are, by the name the interface has for it.
type OathType string

// The types.
const (
	HOTP OathType = "HOTP" // counted (RFC 4226)
	TOTP OathType = "TOtp" // time (RFC 6238)
)

// OathSettings say how codes of tokens are accepted.
type OathSettings struct {
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

// DefaultOathSettings are our own choice: of a million codes a guess hits three, and a
// hundred guesses in a row are all there are.
func DefaultOathSettings() OathSettings {
	return OathSettings{
		Window: 1, LookAhead: 10, SyncWindow: 240, SyncLookAhead: 1000,
		Attempts: 5, LockOut: 15 * time.Minute, MaxAttempts: 100,
		Issuer: "Tamga", AppAlgorithm: otp.SHA1, AppDigits: 6, AppPeriod: stock.DefaultPeriod,
	}
}

// Check reports every fault at once.
func (s OathSettings) Check() []error {
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

// StoredToken is a token as it is stored.
type StoredToken struct {
	Key         string // serial number in the form of stock.Key
	Serial      string // as printed
	UserID      string // "" in stock
	Type        OathType
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

// OathQuery says which tokens are listed, by serial number.
type OathQuery struct {
	After  string // key of the last one of the page before
	UserID string // only that of this user
	Free   bool   // only those in stock
	Limit  int
}

// OathStore keeps tokens. A changing statement says false where the token is not, or no
// longer, as its parameters have it; the caller has lost to somebody else.
type OathStore interface {
	AddOathToken(ctx context.Context, t StoredToken) (bool, error) // false: the serial number is taken
	OathToken(ctx context.Context, key string) (t StoredToken, found bool, err error)
	OathTokenOf(ctx context.Context, userID string) (t StoredToken, found bool, err error)
	OathTokens(ctx context.Context, q OathQuery) ([]StoredToken, error)
	DeleteOathToken(ctx context.Context, key string, sealed []byte) (bool, error)
	// ReleaseOathToken takes a token from its user.
	ReleaseOathToken(ctx context.Context, key string, before, after []byte) (bool, error)

	// BeginOathAttempt counts a code as wrong before it is judged, and returns the token
	// as it is then. It is durable when it returns; false means that the token is locked,
	// and then nothing was counted. One statement decides, so codes tried at once and in
	// every way share a budget.
	BeginOathAttempt(ctx context.Context, key string, now time.Time, rule OathLock) (StoredToken, bool, error)
	// AcceptOathStep moves the watermark up to a step and forgets the wrong codes. One
	// statement decides: of all who come with the same step, or an earlier one, one is
	// told true. The token becomes, or stays, that of a user.
	AcceptOathStep(ctx context.Context, a OathAcceptance) (bool, error)
	// ForgiveOathToken forgets wrong codes and lifts the lock.
	ForgiveOathToken(ctx context.Context, key string) (bool, error)
}

// OathLock is the rule that BeginOathAttempt applies.
type OathLock struct {
	Attempts    int
	LockOut     time.Duration
	MaxAttempts int
}

// OathAcceptance is a code that was found right.
type OathAcceptance struct {
	Key           string
	UserID        string
	Step          int64
	Before, After []byte // sealed record
	AssignedAt    time.Time
}

// sealedToken is what the sealed record of a token holds.
type sealedToken struct {
	UserID    string        `json:"user_id"`
	Type      OathType      `json:"type"`
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
func (s *Service) openToken(r StoredToken) (*sealedToken, error) {
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

// OathToken is a token as people are told of it. Nobody is told its secret.
type OathToken struct {
	Serial      string
	Type        OathType
	App         bool
	UserID      string // "" in stock
	LockedUntil time.Time
	CreatedAt   time.Time
	AssignedAt  time.Time
}

func (r StoredToken) describe() OathToken {
	return OathToken{r.Serial, r.Type, r.App, r.UserID, r.LockedUntil, r.CreatedAt, r.AssignedAt}
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
	r := StoredToken{
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

// OathTokens lists tokens for administrators, by serial number.
func (s *Service) OathTokens(ctx context.Context, q OathQuery) ([]OathToken, error) {
	q.After = stock.Key(q.After)
	q.Limit = min(max(q.Limit, 1), MaxTokenPage)
	rows, err := s.store.OathTokens(ctx, q)
	list := make([]OathToken, len(rows))
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

// Sealer seals secrets; *vault.Ring satisfies it.
type Sealer = notify.Sealer
