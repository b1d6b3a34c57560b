// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/oath"
)

// Assigned are the authentication methods of users.
type Assigned interface {
	// AssignedMethods returns the stored names of the methods that a user has, at any level.
	AssignedMethods(ctx context.Context, userID string) ([]string, error)
}

// Contacts finds the contact that codes go to; *contact.Book satisfies it.
type Contacts interface {
	ForOneTime(ctx context.Context, userID string, kind contact.Kind) (c contact.Contact, found bool, err error)
}

// OneTimePasswords checks codes of tokens; *oath.Service satisfies it.
type OneTimePasswords interface {
	TokenOf(ctx context.Context, userID string) (t oath.Token, found bool, err error)
	CheckOneTimePassword(ctx context.Context, userID, code string) error
}

// Messages sends codes and events; *notify.Service satisfies it.
type Messages interface {
	Available() []notify.Channel
	Order(ctx context.Context, d notify.Direct) error
	Events
}

// Browsers show notifications to their users; *device.Browsers satisfies it.
type Browsers interface {
	// Tell says to the browsers of a user that a record waits, until a time, in the transaction of ctx.
	Tell(ctx context.Context, userID, id string, until time.Time) error
}

// Deps are what a Service works with. The stores keep their tables in one database.
type Deps struct {
	Store     Store
	Answers   AttemptStore
	Codes     contact.CodeStore
	Assigned  Assigned
	Contacts  Contacts
	Oath      OneTimePasswords
	Devices   Devices  // nil: no device can confirm
	Passkeys  Passkeys // nil: no passkey can confirm
	Browsers  Browsers // nil: no browser shows notifications
	Messages  Messages
	Callbacks *Callbacks // nil: the installation makes no callbacks
	Render    Render     // nil: no record has a callback
	Follower  Follower   // nil: nothing moves with a record
	Vault     notify.Sealer
	Audit     audit.Log
	Now       func() time.Time
	Rand      io.Reader // safe for concurrent use
}

// Service manages records. It is safe for concurrent use.
//
// Methods with the argument who act for its user, also if an operator acts as the user. A
// record of another user looks like a missing one. Faults of every method that takes an
// identifier: invalid_transaction for a record that is missing, cancelled or carried out;
// authentication_declined; transaction_expired; max_attempts_exceeded for one that ended
// by too many wrong answers.
type Service struct {
	*Canceller
	settings  Settings
	deps      Deps
	codes     *contact.Codes
	methods   []method // accepted ones, in the order of the settings
	confirmed chan struct{}
}

// New checks the settings.
func New(s Settings, d Deps) (*Service, error) {
	if err := errors.Join(s.Check()...); err != nil {
		return nil, err
	}
	codes, err := contact.NewCodes(s.Codes, d.Codes, d.Vault, d.Now, d.Rand)
	if err != nil {
		return nil, fmt.Errorf("confirm: settings: %w", err)
	}
	service := &Service{
		Canceller: NewCanceller(CancelDeps{Store: d.Store, Answers: d.Answers, Audit: d.Audit, Events: d.Messages, Render: d.Render, Follower: d.Follower, Language: s.Language, Now: d.Now}),
		settings:  s, deps: d, codes: codes, confirmed: make(chan struct{}, 1),
	}
	for _, name := range s.Methods {
		i := slices.IndexFunc(rows, func(r Row) bool { return r.Name == name })
		service.methods = append(service.methods, method{rows[i], rows[i].make(service)})
	}
	return service, nil
}

// Create stores a record in the state Created, in the transaction of ctx if there is one:
// a caller stores what belongs to it in the same transaction. Faults: invalid_parameters for fields that
// are not valid; access_denied for a hash where the installation refuses it;
// authn_method_not_confirmed for a user without a method; transaction_pending;
// invalid_object_state when the user has too many open records, or a quota of documents is
// used up. All of them roll the
// transaction back.
func (s *Service) Create(ctx context.Context, who audit.Principal, d Draft) (Record, error) {
	r, err := s.create(ctx, who, d)
	return r, fault.Rollback(err)
}

func (s *Service) create(ctx context.Context, who audit.Principal, d Draft) (Record, error) {
	sum, err := d.Fields.Sum()
	if err != nil {
		return Record{}, fault.New(fault.InvalidParameters, "the operation cannot be confirmed: a parameter or a name is too long, or too many are given").With(err)
	}
	if s.settings.RefuseHash && slices.ContainsFunc(d.Fields.Documents, func(x what.Document) bool { return x.Hash != "" }) {
		return Record{}, fault.New(fault.AccessDenied, "a hash cannot be confirmed without its document: send the document")
	}
	if err := s.confirmable(ctx, who.UserID, d.Fields.Version()); err != nil {
		return Record{}, err
	}
	now := s.now()
	life := d.Life
	if life == 0 {
		life = s.settings.Life
	}
	r := Record{
		Subject: Subject{UserID: who.UserID, ClientID: who.ClientID, Operator: who.Actor, SignIn: d.SignIn},
		Purpose: d.Purpose, Action: d.Fields.Action, Documents: len(d.Fields.Documents), What: sum, Bytes: d.Bytes,
		State: Created, CreatedAt: now, UpdatedAt: now, ConfirmBefore: now.Add(life),
	}
	if r.SignIn == "" && !d.Purpose.SignIn() {
		r.SignIn = who.TokenID
	}
	if r.RefID, err = s.newID(); err != nil {
		return Record{}, err
	}
	if r.ID = normalID(d.ID); r.ID == "" {
		if r.ID, err = s.newID(); err != nil {
			return Record{}, err
		}
	}
	content, err := d.storedContent()
	if err != nil {
		return Record{}, err
	}
	quota := s.settings.Open
	switch {
	case d.Purpose == ForSignIn:
		quota.Records = s.settings.SignIns
	case d.Purpose == ForNamedSignIn:
		quota.Records = s.settings.NamedSignIns
	case s.settings.One && d.Purpose == ForOperation:
		quota.Records = 1
	}
	if d.Purpose.SignIn() {
		r.Origin = audit.Network(ctx)
	}
	err = s.deps.Store.Atomic(ctx, lock.User(who.UserID), func(ctx context.Context) error {
		room, err := s.deps.Store.AddConfirmation(ctx, &r, content, quota, s.settings.Documents)
		if err == nil && room != Added {
			// Records that have expired and were not swept yet leave the quota.
			if _, err = s.expire(ctx, who.UserID, now, cancelPortion); err == nil {
				room, err = s.deps.Store.AddConfirmation(ctx, &r, content, quota, s.settings.Documents)
			}
		}
		for n := 0; err == nil && room == NoRoom && d.Purpose.SignIn() && n < cancelPortion; n++ {
			var gone bool
			if gone, err = s.makeRoom(ctx, who, d.Purpose, now); err != nil || !gone {
				break
			}
			room, err = s.deps.Store.AddConfirmation(ctx, &r, content, quota, s.settings.Documents)
		}
		switch {
		case err != nil:
			return err
		case room == NoDocuments:
			return fault.New(fault.InvalidObjectState, "the quota of stored documents is used up, in which open operations count: delete some documents, or confirm or cancel operations")
		case room == NoRoom && quota.Records == 1:
			return anotherOpen()
		case room == NoRoom && d.Purpose == ForNamedSignIn:
			return fault.New(fault.InvalidObjectState, "too many sign-ins by name alone wait for this user: try again in a few minutes, or sign in with a password")
		case room == NoRoom:
			return fault.Newf(fault.InvalidObjectState, "the user has too many open operations or their documents are too large, the limits are %d operations and %d bytes: confirm or cancel some first", quota.Records, quota.Bytes)
		}
		// The page of a sign-in asks for its second step by itself, and no other one shows it.
		if s.deps.Browsers != nil && !d.Purpose.SignIn() {
			if err := s.deps.Browsers.Tell(ctx, r.UserID, r.ID, r.ConfirmBefore); err != nil {
				return err
			}
		}
		return s.note(ctx, who, &r, "")
	})
	return r, err
}

// makeRoom cancels a sign-in of the caller, and reports whether there was one. A refusal of
// the new one would let an attacker who knows the first factor lock the user out. Since the
// networks with the most sign-ins lose one, an attacker on one network, or on neighbouring
// ones, ends none of the user's elsewhere. A name alone ends only what has waited as long as a code is valid: every
// attacker knows it, on any number of networks.
func (s *Service) makeRoom(ctx context.Context, who audit.Principal, p Purpose, now time.Time) (bool, error) {
	until := now.Add(s.settings.Life)
	if p == ForNamedSignIn {
		until = now.Add(-s.settings.Codes.Life)
	}
	list, err := s.deps.Answers.WaitingSignIns(ctx, who.UserID, p, until)
	if err != nil || len(list) == 0 {
		return false, err
	}
	r := Record{ID: crowded(list).ID}
	return true, s.move(ctx, who, &r, StepCancel, Move{At: now, Code: fault.InvalidTransaction, Message: "the sign-in gave way to a newer one: too many of this user wait"}, "")
}

// crowded returns the oldest of the network with the most sign-ins, out of the neighbourhood
// with the most.
func crowded(list []WaitingSignIn) WaitingSignIn {
	of := map[string]int{}
	for _, w := range list {
		of[w.Origin]++
		of[neighbourhood(w.Origin)]++
	}
	crowd := func(w WaitingSignIn) [2]int { return [2]int{of[neighbourhood(w.Origin)], of[w.Origin]} }
	return slices.MaxFunc(list, func(a, b WaitingSignIn) int { x, y := crowd(a), crowd(b); return slices.Compare(x[:], y[:]) })
}

// neighbourhood names the networks that often have one owner: the first 24 bits of an IPv4
// address, or the first 48 of an IPv6 address.
func neighbourhood(network string) string {
	address, _, _ := strings.Cut(network, "/")
	a, err := netip.ParseAddr(address)
	if err != nil {
		return "of " + network
	}
	bits := 48
	if a.Is4() {
		bits = 24
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return "of " + network
	}
	return "of " + p.String()
}

// storedContent returns the content of a new record as it is stored.
func (d *Draft) storedContent() (*StoredContent, error) {
	shown, err := d.Fields.Shown()
	if err != nil {
		return nil, err
	}
	c := &StoredContent{Outline: d.Outline}
	if c.Fields, err = json.Marshal(d.Fields); err != nil {
		return nil, err
	}
	c.Shown, err = json.Marshal(shown)
	return c, err
}

// Find returns a record of who.
func (s *Service) Find(ctx context.Context, who audit.Principal, id string) (Record, error) {
	r, found, err := s.deps.Store.Confirmation(ctx, normalID(id))
	return s.own(who, r, found, err)
}

// UserOf returns the user of a record, for administrators.
func (s *Service) UserOf(ctx context.Context, id string) (string, error) {
	r, found, err := s.deps.Store.Confirmation(ctx, normalID(id))
	if err == nil && !found {
		err = missing()
	}
	return r.UserID, err
}

// Content returns the content of a record of who.
func (s *Service) Content(ctx context.Context, who audit.Principal, id string) (Content, error) {
	r, err := s.Find(ctx, who, id)
	if err != nil {
		return Content{}, err
	}
	return s.content(ctx, &r)
}

// content reads the content of a record and checks that its fields give the digest of the
// record: otherwise another program changed the database.
func (s *Service) content(ctx context.Context, r *Record) (Content, error) {
	stored, found, err := s.deps.Store.ConfirmationContent(ctx, r.ID)
	if err != nil {
		return Content{}, err
	}
	if !found {
		return Content{}, fmt.Errorf("confirm: record %s has no content", r.ID)
	}
	c := Content{Outline: stored.Outline, Result: stored.Result, Approval: stored.Approval}
	if c.Fields, err = r.fields(stored.Fields); err != nil {
		return Content{}, err
	}
	if err := json.Unmarshal(stored.Shown, &c.Shown); err != nil {
		return Content{}, fmt.Errorf("confirm: record %s: %w", r.ID, err)
	}
	return c, nil
}

// fields reads stored fields, and checks that they give the digest of the record.
func (r *Record) fields(stored []byte) (f what.Fields, err error) {
	if err := json.Unmarshal(stored, &f); err != nil {
		return what.Fields{}, fmt.Errorf("confirm: record %s: %w", r.ID, err)
	}
	if sum, err := f.Sum(); err != nil || sum != r.What {
		return what.Fields{}, errors.Join(fmt.Errorf("confirm: record %s: the stored fields differ from the digest: another program changed the database", r.ID), err)
	}
	return f, nil
}

// MaxPage is the most records of a list.
const MaxPage = 100

// Open returns open records of a user, the oldest first. after is the identifier of the
// last record of the page before; "": the first page. The limit is between 1 and MaxPage.
func (s *Service) Open(ctx context.Context, userID, after string, limit int) ([]Record, error) {
	return s.deps.Store.OpenConfirmations(ctx, userID, normalID(after), s.now(), min(max(limit, 1), MaxPage))
}

// own returns a record if it is of who.
func (s *Service) own(who audit.Principal, r Record, found bool, err error) (Record, error) {
	if err == nil && (!found || who.UserID == "" || r.UserID != who.UserID || who.ClientID != "" && who.ClientID != r.ClientID) {
		return Record{}, missing()
	}
	return r, err
}

func missing() error {
	return fault.New(fault.InvalidTransaction, "you have no confirmation with this identifier")
}

// ended returns the fault of a record that is not open, or nil.
func (r *Record) ended(now time.Time) error {
	switch {
	case r.overdue(now) || r.State == Expired:
		return fault.New(fault.TransactionExpired, "the confirmation has expired: begin the operation again")
	case r.State == Declined:
		return fault.New(fault.AuthenticationDeclined, "the user declined the operation")
	case r.State == Cancelled:
		return fault.New(fault.InvalidTransaction, "the operation was cancelled")
	case r.State == Completed:
		return fault.New(fault.InvalidTransaction, "the operation was carried out already")
	case r.State == Error && r.Code != "":
		return fault.New(r.Code, r.Message)
	case r.State == Error:
		return fault.New(fault.InvalidTransaction, "the operation failed")
	}
	return nil
}

// normalID returns an identifier as it is stored.
func normalID(id string) string { return strings.ToLower(strings.TrimSpace(id)) }

func (s *Service) newID() (string, error) {
	id, err := uuid.NewRandomFromReader(s.deps.Rand)
	if err != nil {
		return "", fmt.Errorf("confirm: making an identifier: %w", err)
	}
	return id.String(), nil
}
