// SPDX-License-Identifier: Apache-2.0

// Package passkey owns passkeys: keys of WebAuthn, which people keep in a security key, a
// phone or a computer and use in a browser.
//
// People register, rename and remove their own, operators see and remove those of the
// users they reach. Begin with [New], [Service.Begin] and [Service.Finish]; Check decides
// whether an answer of a browser belongs to a challenge. Package confirm makes the
// challenges: a passkey only ever answers for one confirmation.
//
// The package does not read the formats of WebAuthn; see [Ceremonies].
package passkey

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/reach"
	"tamga/internal/domain/vault"
)

// Method is the name of the sign-in method, a second step, that works with passkeys, and of
// the method to confirm with.
const Method = "passkey"

// MaxAnswer is the size of the largest answer of a browser, in bytes.
const MaxAnswer = 16 << 10

// Settings are the rules of passkeys.
type Settings struct {
	Most int // passkeys of one user
}

// registrationLife is the time to create a passkey.
const registrationLife = 5 * time.Minute

// challengeSize is the size of the challenge of a registration, in bytes.
const challengeSize = 32

const maxName = 60 // characters

// Passkey is a passkey as people see it.
type Passkey struct {
	ID        string // identifier of the credential, Base64url
	Name      string
	CreatedAt time.Time
	UsedAt    time.Time // zero: never
}

// Credential is what WebAuthn needs to know about a passkey.
type Credential struct {
	ID        []byte
	PublicKey []byte // COSE
	// BackedUp means that the passkey may be copied between devices. It never changes.
	BackedUp bool
	Counter  uint32 // of signatures, after the last one
	// Cloned is set by Asserted if the counter went back: another copy of the key is in use.
	Cloned bool
}

// Person is a user as an authenticator knows them.
type Person struct {
	ID    string
	Login string
}

// Ceremonies makes what a browser is asked and checks what it answers, by the rules of
// WebAuthn: the challenge, the origin, the domain of the service, the presence and the
// verification of the person, the signature.
type Ceremonies interface {
	// Creation returns the options of navigator.credentials.create, as JSON. Authenticators
	// that have one of the excluded passkeys refuse.
	Creation(p Person, challenge []byte, exclude []Credential) ([]byte, error)
	// Created checks the answer. An error means that it is refused.
	Created(p Person, challenge, answer []byte) (Credential, error)
	// Assertion returns the options of navigator.credentials.get, as JSON.
	Assertion(p Person, challenge []byte, allow []Credential) ([]byte, error)
	// Asserted checks the answer and returns the passkey that signed it, with its new
	// counter. An error means that it is refused.
	Asserted(p Person, challenge, answer []byte, of []Credential) (Credential, error)
	// PublicKey returns a public key, a SubjectPublicKeyInfo, of Credential.PublicKey.
	PublicKey(c Credential) ([]byte, error)
}

// Evidence is a right answer as others can verify it: Signature is over AuthenticatorData and the SHA-256 of ClientData,
// which has the challenge.
type Evidence struct {
	Credential        string `json:"credential"` // as Passkey.ID
	AuthenticatorData []byte `json:"authenticator_data"`
	ClientData        []byte `json:"client_data"`
	Signature         []byte `json:"signature"`
	Key               []byte `json:"key"` // SubjectPublicKeyInfo
}

// Record is a stored passkey.
type Record struct {
	ID                string // as Passkey.ID
	UserID            string
	Name              string
	Counter           int64
	Sealed            []byte // sealedPasskey, sealed by the vault
	CreatedAt, UsedAt time.Time
}

// Registration is a passkey that a person is creating. A user has one at most.
type Registration struct {
	UserID    string
	Session   string // identifier of the token of the session that began it
	Name      string // of the passkey to be
	Challenge []byte
	EndsAt    time.Time
}

// Store keeps passkeys. Calls join the transaction of ctx.
type Store interface {
	// Atomic locks the set, then runs fn in one transaction.
	Atomic(ctx context.Context, locked lock.Set, fn func(ctx context.Context) error) error
	// AddPasskey reports false if there is a passkey with the identifier, of any user.
	AddPasskey(ctx context.Context, r Record) (bool, error)
	// Passkeys returns those of a user, the oldest first.
	Passkeys(ctx context.Context, userID string) ([]Record, error)
	RenamePasskey(ctx context.Context, userID, id, name string) (bool, error)
	DeletePasskey(ctx context.Context, userID, id string) (bool, error)
	// UsePasskey notes a use. It reports false if the counter is not the one that was read.
	UsePasskey(ctx context.Context, userID, id string, before, after int64, at time.Time) (bool, error)
	// SetRegistration replaces the registration of a user.
	SetRegistration(ctx context.Context, r Registration) error
	// SpendRegistration deletes and returns the registration of a user and a session that
	// has not ended.
	SpendRegistration(ctx context.Context, userID, session string, now time.Time) (Registration, bool, error)
	// SweepRegistrations deletes those that have ended.
	SweepRegistrations(ctx context.Context, now time.Time) error
}

// Sessions ends sign-ins; [session.Service] satisfies it.
type Sessions interface {
	MethodChanged(ctx context.Context, userID, method string) error
}

// Confirmations ends what a user has not confirmed yet; [confirm.Canceller] satisfies it.
type Confirmations interface {
	CancelAll(ctx context.Context, who audit.Principal, userID, reason string) error
}

// Sealer seals records; [vault.Ring] satisfies it.
type Sealer interface {
	Seal(p vault.Place, plaintext []byte) ([]byte, error)
	Open(p vault.Place, sealed []byte) ([]byte, error)
}

// Deps are what a Service works with.
type Deps struct {
	Store         Store
	Ceremonies    Ceremonies
	Sessions      Sessions
	Confirmations Confirmations
	Reach         reach.Checker // whom callers of List, Rename, Remove, Begin and Finish reach
	Events        reach.Events
	Vault         Sealer
	Now           func() time.Time
	Rand          io.Reader
}

// Service manages passkeys. It is safe for concurrent use.
type Service struct {
	settings Settings
	deps     Deps
	changes  reach.Changes
}

// New returns a Service.
func New(s Settings, d Deps) *Service {
	return &Service{s, d, reach.Changes{Store: d.Store, Reach: d.Reach, Events: d.Events}}
}

func (s *Service) now() time.Time { return s.deps.Now().UTC().Truncate(time.Millisecond) }

// sealedPasskey is what a change of the database must not replace.
type sealedPasskey struct {
	UserID    string `json:"user"`
	PublicKey []byte `json:"key"`
	BackedUp  bool   `json:"backed_up,omitempty"`
}

func place(id string) vault.Place {
	return vault.Place{Purpose: "passkey", Table: "passkeys", Row: id, Column: "sealed"}
}

func (s *Service) seal(id string, p sealedPasskey) ([]byte, error) {
	plain, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return s.deps.Vault.Seal(place(id), plain)
}

// credentials reads the passkeys of a user. One that was changed outside of the program is
// an error for all.
func (s *Service) credentials(ctx context.Context, userID string) (records []Record, list []Credential, err error) {
	if records, err = s.deps.Store.Passkeys(ctx, userID); err != nil {
		return nil, nil, err
	}
	for _, r := range records {
		plain, err := s.deps.Vault.Open(place(r.ID), r.Sealed)
		if err != nil {
			return nil, nil, fmt.Errorf("passkey: %s: %w", r.ID, err)
		}
		var p sealedPasskey
		if err := json.Unmarshal(plain, &p); err != nil {
			return nil, nil, fmt.Errorf("passkey: %s: %w", r.ID, err)
		}
		id, err := base64.RawURLEncoding.DecodeString(r.ID)
		if err != nil || p.UserID != r.UserID {
			return nil, nil, fmt.Errorf("passkey: %s: another program changed the database", r.ID)
		}
		list = append(list, Credential{ID: id, PublicKey: p.PublicKey, BackedUp: p.BackedUp, Counter: uint32(r.Counter)})
	}
	return records, list, nil
}

// List returns the passkeys of a user, the oldest first. The fault is user_not_found.
func (s *Service) List(ctx context.Context, who audit.Principal, userID string) ([]Passkey, error) {
	if err := s.deps.Reach.Reach(ctx, who, userID); err != nil {
		return nil, err
	}
	records, _, err := s.credentials(ctx, userID)
	list := make([]Passkey, len(records))
	for i, r := range records {
		list[i] = Passkey{ID: r.ID, Name: r.Name, CreatedAt: r.CreatedAt, UsedAt: r.UsedAt}
	}
	return list, err
}

// Has reports whether a user has a passkey.
func (s *Service) Has(ctx context.Context, userID string) (bool, error) {
	list, err := s.deps.Store.Passkeys(ctx, userID)
	return len(list) > 0, err
}

// Begin begins the registration of a passkey and returns the options for the browser. It
// replaces a registration that was begun before. Faults: user_not_found;
// invalid_parameters for a name; wrong_operation for a user who has too many.
func (s *Service) Begin(ctx context.Context, who audit.Principal, name string) ([]byte, error) {
	name, err := goodName(name)
	if err != nil {
		return nil, err
	}
	if err := s.deps.Reach.Reach(ctx, who, who.UserID); err != nil {
		return nil, err
	}
	_, have, err := s.credentials(ctx, who.UserID)
	if err != nil {
		return nil, err
	}
	if len(have) >= s.settings.Most {
		return nil, s.tooMany()
	}
	r := Registration{UserID: who.UserID, Session: who.TokenID, Name: name, Challenge: make([]byte, challengeSize), EndsAt: s.now().Add(registrationLife)}
	if _, err := io.ReadFull(s.deps.Rand, r.Challenge); err != nil {
		return nil, fmt.Errorf("passkey: drawing a challenge: %w", err)
	}
	if err := s.deps.Store.SetRegistration(ctx, r); err != nil {
		return nil, err
	}
	return s.deps.Ceremonies.Creation(Person{who.UserID, who.Login}, r.Challenge, have)
}

func (s *Service) tooMany() error {
	return fault.Newf(fault.WrongOperation, "you have %d passkeys, and no more are allowed: remove one first", s.settings.Most)
}

// Finish stores the passkey that the browser made for the last Begin of the same session.
// The older contacts of the user are told, and what the user has not confirmed yet is
// cancelled. Faults: user_not_found; invalid_transaction for a registration that has ended
// or was begun elsewhere; invalid_parameters for an answer that is refused;
// wrong_operation for a user who has too many.
func (s *Service) Finish(ctx context.Context, who audit.Principal, answer []byte) error {
	if len(answer) > MaxAnswer {
		return refusedCreation(errors.New("the answer is too long"))
	}
	return s.changes.Run(ctx, who, who.UserID, func(ctx context.Context) error {
		now := s.now()
		r, found, err := s.deps.Store.SpendRegistration(ctx, who.UserID, who.TokenID, now)
		if err != nil {
			return err
		}
		if !found {
			return fault.New(fault.InvalidTransaction, "the time to create the passkey is over, or it was begun elsewhere: begin again")
		}
		have, err := s.deps.Store.Passkeys(ctx, who.UserID)
		if err != nil {
			return err
		}
		if len(have) >= s.settings.Most {
			return s.tooMany()
		}
		c, err := s.deps.Ceremonies.Created(Person{who.UserID, who.Login}, r.Challenge, answer)
		if err != nil {
			return refusedCreation(err)
		}
		stored := Record{ID: base64.RawURLEncoding.EncodeToString(c.ID), UserID: who.UserID, Name: r.Name, Counter: int64(c.Counter), CreatedAt: now}
		if stored.Sealed, err = s.seal(stored.ID, sealedPasskey{who.UserID, c.PublicKey, c.BackedUp}); err != nil {
			return err
		}
		added, err := s.deps.Store.AddPasskey(ctx, stored)
		if err == nil && !added {
			err = refusedCreation(errors.New("the credential is registered already"))
		}
		if err != nil {
			return err
		}
		if err := s.deps.Confirmations.CancelAll(ctx, who, who.UserID, changed); err != nil {
			return err
		}
		return s.deps.Events.Emit(ctx, notify.Event{Type: notify.UserFactorChanged, UserID: who.UserID, Actor: who.UserID, Factor: notify.FactorPasskey})
	})
}

// changed is the reason of cancelled confirmations.
const changed = "the passkeys were changed"

func refusedCreation(err error) error {
	return fault.New(fault.InvalidParameters, "the passkey was refused: create it again").With(fmt.Errorf("passkey: %w", err))
}

// Rename gives a passkey another name. Faults: user_not_found, invalid_parameters,
// key_not_found.
func (s *Service) Rename(ctx context.Context, who audit.Principal, userID, id, name string) error {
	name, err := goodName(name)
	if err != nil {
		return err
	}
	return s.changes.Run(ctx, who, userID, func(ctx context.Context) error {
		return missing(s.deps.Store.RenamePasskey(ctx, userID, id, name))
	})
}

// Remove removes a passkey. What the user has not confirmed yet is cancelled, and with the
// last passkey the sign-ins end. The user keeps the method, so a lost passkey does not
// remove the second step. Faults: user_not_found, key_not_found.
func (s *Service) Remove(ctx context.Context, who audit.Principal, userID, id string) error {
	return s.changes.Run(ctx, who, userID, func(ctx context.Context) error {
		if err := missing(s.deps.Store.DeletePasskey(ctx, userID, id)); err != nil {
			return err
		}
		left, err := s.deps.Store.Passkeys(ctx, userID)
		if err == nil && len(left) == 0 {
			err = s.deps.Sessions.MethodChanged(ctx, userID, Method)
		}
		if err != nil {
			return err
		}
		return s.deps.Confirmations.CancelAll(ctx, who, userID, changed)
	})
}

func missing(found bool, err error) error {
	if err == nil && !found {
		err = fault.New(fault.KeyNotFound, "the user has no such passkey")
	}
	return err
}

// Request returns the options with which the browser of a user answers a challenge.
func (s *Service) Request(ctx context.Context, userID string, challenge []byte) ([]byte, error) {
	_, have, err := s.credentials(ctx, userID)
	if err != nil {
		return nil, err
	}
	return s.deps.Ceremonies.Assertion(Person{ID: userID}, challenge, have)
}

// Check returns nil if a passkey of a user signed a challenge. It is the last word only in
// the transaction of ctx, which must have locked the user: there a challenge is spent. The
// fault is invalid_confirmation_code, whatever is wrong with the answer.
func (s *Service) Check(ctx context.Context, userID string, challenge, answer []byte) error {
	if len(answer) > MaxAnswer {
		return refused(errors.New("the answer is too long"))
	}
	records, have, err := s.credentials(ctx, userID)
	if err != nil {
		return err
	}
	c, err := s.deps.Ceremonies.Asserted(Person{ID: userID}, challenge, answer, have)
	switch {
	case err != nil:
		return refused(err)
	case c.Cloned:
		return refused(errors.New("the counter of signatures went back: there may be a copy of the passkey"))
	}
	for i, r := range records {
		if !bytes.Equal(have[i].ID, c.ID) {
			continue
		}
		used, err := s.deps.Store.UsePasskey(ctx, userID, r.ID, r.Counter, int64(c.Counter), s.now())
		if err == nil && !used {
			err = refused(errors.New("another answer was accepted meanwhile"))
		}
		return err
	}
	return refused(errors.New("the passkey is another user's"))
}

// Evidence returns an answer for which Check has returned nil, in the same transaction.
func (s *Service) Evidence(ctx context.Context, userID string, answer []byte) (e Evidence, err error) {
	var a struct {
		ID       string `json:"rawId"`
		Response struct {
			AuthenticatorData string `json:"authenticatorData"`
			ClientData        string `json:"clientDataJSON"`
			Signature         string `json:"signature"`
		} `json:"response"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return e, fmt.Errorf("passkey: the answer: %w", err)
	}
	var id []byte
	for _, part := range []struct {
		text string
		to   *[]byte
	}{{a.ID, &id}, {a.Response.AuthenticatorData, &e.AuthenticatorData}, {a.Response.ClientData, &e.ClientData}, {a.Response.Signature, &e.Signature}} {
		if *part.to, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(part.text, "=")); err != nil {
			return e, fmt.Errorf("passkey: the answer: %w", err)
		}
	}
	_, have, err := s.credentials(ctx, userID)
	if err != nil {
		return e, err
	}
	for _, c := range have {
		if bytes.Equal(c.ID, id) {
			e.Credential = base64.RawURLEncoding.EncodeToString(id)
			e.Key, err = s.deps.Ceremonies.PublicKey(c)
			return e, err
		}
	}
	return e, errors.New("passkey: the answer is of no passkey of the user")
}

func refused(err error) error {
	return fault.New(fault.InvalidCode, "the passkey was not accepted").With(fmt.Errorf("passkey: %w", err))
}

// Sweep deletes registrations that have ended. The server calls it from time to time.
func (s *Service) Sweep(ctx context.Context) error {
	return s.deps.Store.SweepRegistrations(ctx, s.now())
}

// goodName returns the name of a passkey without white space around it.
func goodName(name string) (string, error) {
	name = strings.TrimSpace(name)
	control := func(r rune) bool { return !unicode.IsPrint(r) }
	if name == "" || !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxName || strings.ContainsFunc(name, control) {
		return "", fault.Newf(fault.InvalidParameters, "name: want 1 to %d characters that can be printed", maxName)
	}
	return name, nil
}
