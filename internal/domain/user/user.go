// SPDX-License-Identifier: Apache-2.0

// Package user manages users: their registration, logins and names, groups, operators,
// locking, and search. Begin with Service.Register for operators, Service.Add for
// administrators, and Service.List to search. The package does not authenticate users:
// package signin does.
package user

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/reach"
)

// User is a registered person.
type User struct {
	ID          string // GUID, lower case
	Login       string // as registered, compared by FoldLogin; "" for none
	DisplayName string
	Group       string
	Operator    bool      // manages the users of the groups that OperatorGroups names
	Locked      bool      // by an operator; Barred has all reasons
	LockAt      time.Time // time of the lock; a delayed lock has it in the future and Locked unset
	Unapproved  bool      // waits for approval
	CreatedAt   time.Time
}

// Key returns the sort key of lists of users: the folded login. Users without a login
// come first, with a key that no login folds to.
func (u User) Key() string { return LoginKey(u.ID, FoldLogin(u.Login)) }

// LoginKey returns the Key of a user with a folded login. Stores use it where folded
// logins must be unique, since many users have the login "".
func LoginKey(id, folded string) string {
	if folded == "" {
		return "\x01" + id // logins have no control characters
	}
	return folded
}

// Barred reports whether the user may not be signed in now: locked, also by a delayed
// lock that has come due, or not approved. Every check of a token calls it.
func (u User) Barred(now time.Time) bool {
	return u.Locked || u.Unapproved || !u.LockAt.IsZero() && !now.Before(u.LockAt)
}

// Errors of the stores besides failures.
var (
	ErrNotFound  = errors.New("user: not found")
	ErrDuplicate = errors.New("user: already exists")
	ErrNoGroup   = errors.New("user: no such group")
	ErrGroupUsed = errors.New("user: the group has users or operators")
)

// Query selects a page of users in the order of their Keys.
type Query struct {
	Groups []string // only users of these groups; nil means all groups, empty means none
	After  string   // only users after the one with this Key; "" for the first page
	Limit  int      // 1 to MaxPage
}

// MaxPage is the largest Limit.
const MaxPage = 1000

// Store keeps users and reads the rights of operators. A user who is barred or is not an
// operator has no rights. The transactions of Atomic include the calls that fn makes to
// the other stores of Service.
type Store interface {
	reach.Store
	// Atomic locks the set, then runs fn in one transaction. A nested Atomic joins the
	// transaction and may name only what is locked already.
	Atomic(ctx context.Context, locked lock.Set, fn func(ctx context.Context) error) error

	// AddUser returns ErrDuplicate for a login (compared by folded) or id that
	// is taken and ErrNoGroup for an unknown group. A user without a login has
	// an empty folded one.
	AddUser(ctx context.Context, u User, folded string) error
	UserByID(ctx context.Context, id string) (User, error)                   // or ErrNotFound
	UserByLogin(ctx context.Context, folded string) (User, error)            // or ErrNotFound
	ListUsers(ctx context.Context, q Query) ([]User, error)                  // in the order of their Keys
	SetDisplayName(ctx context.Context, id, name string) error               // or ErrNotFound
	SetGroup(ctx context.Context, id, group string) error                    // ErrNotFound, ErrNoGroup
	SetLock(ctx context.Context, id string, locked bool, at time.Time) error // or ErrNotFound
	SetUnapproved(ctx context.Context, id string, unapproved bool) error     // or ErrNotFound
	DeleteUser(ctx context.Context, id string) error                         // with all records that refer to the user; or ErrNotFound

	// ActingGroups returns the first groups of an operator, sorted, at most limit, or all with
	// the limit 0; none for other users.
	ActingGroups(ctx context.Context, operatorID string, limit int, now time.Time) ([]string, error)
}

// BatchStore reads and changes many users at once.
type BatchStore interface {
	// Together locks the set, then runs changes in one transaction, one after the other. Each
	// says whether it is kept, and has no effects beside the database, since it may run again.
	// No two changes may add the same. An error of a change rolls all back, and so does the end
	// without keep.
	Together(ctx context.Context, locked lock.Set, keep bool, changes []func(ctx context.Context) (kept bool, err error)) error
	UsersByLogins(ctx context.Context, folded []string) ([]User, error) // those that exist
}

// LoginStore keeps the logins of users, here and at other identity providers.
type LoginStore interface {
	SetLogin(ctx context.Context, id, login, folded string) error               // ErrDuplicate, ErrNotFound; "" and "" remove it
	OwnerOfLogin(ctx context.Context, folded string) (string, error)            // or ErrNotFound
	OwnerOfExternal(ctx context.Context, issuer, folded string) (string, error) // or ErrNotFound; issuer is folded
	ExternalLogins(ctx context.Context, id string) ([]ExternalLogin, error)     // by issuer
	// SetExternalLogin returns ErrDuplicate when another user has it.
	SetExternalLogin(ctx context.Context, id string, l ExternalLogin, issuer, folded string) error
	DeleteExternalLogin(ctx context.Context, id, issuer string) error // nothing to delete is no error
}

// NameStore keeps the distinguished names of users.
type NameStore interface {
	NameOf(ctx context.Context, id string) (map[string]string, error) // by object identifier
	// AddName is SetName for a user without a name.
	AddName(ctx context.Context, id string, n Name) error
	// SetName returns ErrDuplicate when the name must be unique and is not.
	SetName(ctx context.Context, id string, n Name) error
	// NameTaken reports whether a user has the name: any user when operatorID is "",
	// otherwise only the users whom the operator reaches.
	NameTaken(ctx context.Context, key [sha256.Size]byte, operatorID string, now time.Time) (bool, error)
}

// Sessions ends what a user has signed in to. [session.Service] satisfies it.
type Sessions interface {
	// EndAll ends all tokens of the user, in the transaction of ctx.
	EndAll(ctx context.Context, userID string) error
	// Forgive resets the count of wrong passwords and so lifts the automatic lock, in the
	// transaction of ctx.
	Forgive(ctx context.Context, userID string) error
}

// Confirmations are what users have begun to confirm. [confirm.Canceller] satisfies it.
type Confirmations interface {
	// CancelAll cancels the open confirmations of a user, in the transaction of ctx. reason
	// is a short sentence for clients.
	CancelAll(ctx context.Context, who audit.Principal, userID, reason string) error
	// Forgive deletes the counts of wrong codes of the user, in the transaction of ctx.
	Forgive(ctx context.Context, userID string) error
}

// Contacts are the phones and e-mails of users; [contact.Book] satisfies it.
type Contacts interface {
	// Register makes a value an identifier of a new user.
	Register(ctx context.Context, userID string, kind contact.Kind, value string) error
	// PrimaryOf returns the user whom a normal value identifies, or "".
	PrimaryOf(ctx context.Context, kind contact.Kind, normal string) (string, error)
	// IsUnique predicts whether a value may become an identifier.
	IsUnique(ctx context.Context, value string) (contact.Unique, error)
	// Place gives a new user with some contacts another one with its roles.
	Place(ctx context.Context, userID string, before []contact.Contact, c contact.Contact) error
	// Of returns the contacts of one kind of a user.
	Of(ctx context.Context, userID string, kind contact.Kind) ([]contact.Contact, error)
	// DeleteAll deletes all contacts of a user.
	DeleteAll(ctx context.Context, userID string) error
}

// Messages are what was encrypted for users; [keys.Service] satisfies it.
type Messages interface {
	// Readers names the certificates of a user whose keys are needed to read messages.
	Readers(ctx context.Context, userID string) ([]string, error)
}

// Events sends notices; [notify.Service] satisfies it.
type Events interface {
	Emit(ctx context.Context, e notify.Event) error
}

// Service registers and changes users. The optional fields have useful zero values.
type Service struct {
	// The stores keep their tables in one database.
	Store       Store
	GroupStore  GroupStore
	LoginStore  LoginStore
	NameStore   NameStore
	SearchStore SearchStore
	Zones       ZoneStore

	Batches       BatchStore // of AddAll
	Sessions      Sessions
	Confirmations Confirmations
	Contacts      Contacts
	Events        Events
	Messages      Messages // nil: nothing is encrypted for users
	Turns         Turns    // of long searches; optional
	Naming        *Naming
	Now           func() time.Time
	Rand          io.Reader // of identifiers

	LocalIssuer   string        // usually "realsts"
	Issuers       []Issuer      // other identity providers, for Policy; optional
	LockDelayUnit time.Duration // of LockOrder.Delay; optional, a second
}

// Account describes a new user as an administrator adds one.
type Account struct {
	ID          string // a UUID in lower case that no user ever had; "" means a new one
	Login       string // 1 to MaxLogin characters
	DisplayName string // up to MaxDisplayName characters; "" means the login
	Group       string
	Operator    bool
	Groups      []string // of an operator: groups to be responsible for, at least one
	Locked      bool     // locked from the beginning
	// Components are those of the distinguished name, with keys as of SetDN. Optional: without
	// them the name is CN with the login.
	Components map[string]string
	// Contacts are those of the user, with their roles. They are added last, so that no notice
	// of the new account goes to them.
	Contacts []contact.Contact
	// Also makes more changes in the transaction that adds the user; optional. Its errors
	// roll back.
	Also func(ctx context.Context, u User) error

	name *Name // of the components, if Touches made it
}

// FieldError is an error of Add with the part of the account that is wrong.
type FieldError struct {
	Field string // login, name, group, dn, or the kind of a contact with its place: phone 2
	Err   error
}

// Error returns the text of Err.
func (e *FieldError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *FieldError) Unwrap() error { return e.Err }

// inField names the part of an account that a fault is about. Other errors are about none.
func inField(field string, err error) error {
	if _, ok := fault.As(err); !ok {
		return err
	}
	return &FieldError{field, err}
}

// Add adds a user for an administrator; operators call Register. Faults:
// invalid_parameters for names and groups, duplicate_login,
// duplicate_distinguished_name, and the faults of contacts. An error is a *FieldError where
// it is about a part of the account.
func (s *Service) Add(ctx context.Context, a Account) (User, error) {
	e, err := s.entry(a)
	if err != nil {
		return User{}, err
	}
	err = s.Store.Atomic(ctx, e.locks(), func(ctx context.Context) error { return fault.Rollback(s.enter(ctx, e)) })
	if err != nil {
		return User{}, err
	}
	return e.user, nil
}

// AddAll is Add for many accounts, each of which is added whole or not at all. It returns the
// user or the error of each. Without keep it checks everything and keeps nothing. No two of
// the accounts may touch the same; see [Service.Touches]. The error is not about an account:
// then none was added.
func (s *Service) AddAll(ctx context.Context, list []Account, keep bool) (users []User, faults []error, err error) {
	users, faults = make([]User, len(list)), make([]error, len(list))
	var sets []lock.Set
	var changes []func(ctx context.Context) (bool, error)
	// The owners of all logins that matter are read at once, by the first change: it runs again if the transaction does. A
	// statement for each account would make rows that wait to be added together be added one by one.
	owners := &loginOwners{}
	for i, a := range list {
		e, err := s.entry(a)
		if faults[i] = err; err != nil {
			continue
		}
		e.owner = owners.owner
		owners.logins = append(owners.logins, lookAlikes(a.Login)...)
		sets = append(sets, e.locks())
		first := len(changes) == 0
		changes = append(changes, func(ctx context.Context) (bool, error) {
			users[i], faults[i] = User{}, nil
			if first {
				if err := owners.read(ctx, s.Batches); err != nil {
					return false, err
				}
			}
			err := s.enter(ctx, e)
			_, refused := fault.As(err)
			var field *FieldError
			switch {
			case err == nil:
				users[i] = e.user
			case fault.Is(err, fault.Unavailable), fault.Is(err, fault.Closed):
				return false, fault.Rollback(err)
			case refused, errors.As(err, &field):
				faults[i] = err
			default:
				return false, err
			}
			return err == nil, nil
		})
	}
	if len(changes) == 0 {
		return users, faults, nil
	}
	return users, faults, s.Batches.Together(ctx, lock.Set{}.And(sets...), keep, changes)
}

// loginOwners are users by their folded logins.
type loginOwners struct {
	logins []string // that may have an owner
	ids    map[string]string
}

// read finds the owners, in the transaction of ctx.
func (o *loginOwners) read(ctx context.Context, store BatchStore) error {
	o.ids = map[string]string{}
	list, err := store.UsersByLogins(ctx, o.logins)
	for _, u := range list {
		o.ids[FoldLogin(u.Login)] = u.ID
	}
	return err
}

// owner is LoginStore.OwnerOfLogin.
func (o *loginOwners) owner(_ context.Context, folded string) (string, error) {
	if id, found := o.ids[folded]; found {
		return id, nil
	}
	return "", ErrNotFound
}

// Touches returns what must be free for an account, and becomes taken by it. Certificates that
// Also adds are not in it. It keeps the distinguished name in the account for services with the same
// naming, so the components must not change after it.
func (s *Service) Touches(a *Account) lock.Set {
	set := loginLocks(a.Login)
	for _, c := range a.Contacts {
		set = set.And(c.Type.Kind().Lock("", c.Value))
	}
	if s.Naming.Unique() {
		if name, named := s.accountName(a); named {
			set = set.And(lock.Named("distinguished name " + string(name.Key[:])))
		}
	}
	return set
}

// entry is an account whose parts are checked.
type entry struct {
	Account
	user  User
	name  Name      // no values: the first name
	owner ownerFunc // of logins; nil: as stored
}

func (s *Service) entry(a Account) (e entry, err error) {
	if err := checkLogin(a.Login); err != nil {
		return e, inField("login", err)
	}
	if err := checkName("display name", a.DisplayName, 0, MaxDisplayName); err != nil {
		return e, inField("name", err)
	}
	switch {
	case a.Operator && len(a.Groups) == 0:
		return e, fault.New(fault.InvalidParameters, "groups: an operator is responsible for at least one group")
	case !a.Operator && len(a.Groups) != 0:
		return e, fault.New(fault.InvalidParameters, "groups: only an operator is responsible for groups")
	case a.Operator && a.Group == "":
		a.Group = a.Groups[0]
	}
	a.Groups = slices.Compact(slices.Sorted(slices.Values(a.Groups)))
	id := a.ID
	if id == "" {
		var err error
		if id, err = s.newID(); err != nil {
			return e, err
		}
	}
	e.Account = a
	e.user = User{
		ID: id, Login: a.Login, DisplayName: cmp.Or(a.DisplayName, a.Login), Group: a.Group,
		Operator: a.Operator, CreatedAt: s.now(),
	}
	if a.Locked {
		e.user.Locked, e.user.LockAt = true, e.user.CreatedAt
	}
	if len(a.Components) > 0 {
		var err error
		if e.name, err = s.nameOf(a); err != nil {
			return e, inField("dn", err)
		}
	}
	return e, nil
}

// accountName returns the distinguished name of an account that is in order, and keeps it.
func (s *Service) accountName(a *Account) (Name, bool) {
	if len(a.Components) == 0 {
		return s.Naming.firstName(a.Login)
	}
	name, err := s.nameOf(*a)
	if err != nil {
		return Name{}, false
	}
	a.name = &name
	return name, true
}

// nameOf returns the distinguished name of the components of an account.
func (s *Service) nameOf(a Account) (Name, error) {
	if a.name != nil {
		return *a.name, nil
	}
	return s.wholeName(a.Components)
}

// locks returns what is locked while the account is added.
func (e entry) locks() lock.Set {
	set := lock.User(e.user.ID).And(loginLocks(e.Login))
	for _, c := range e.Contacts {
		set = set.And(c.Type.Kind().Lock(e.user.ID, c.Value))
	}
	return set
}

// enter adds the account, in the transaction of ctx. All its errors must roll back.
func (s *Service) enter(ctx context.Context, e entry) error {
	id := e.user.ID
	err := s.add(ctx, e.user, e.name, e.owner)
	if err == nil && e.Operator {
		err = noGroup(s.GroupStore.SetOperatorGroups(ctx, id, e.Groups))
	}
	if err == nil && e.Also != nil {
		err = e.Also(ctx, e.user)
	}
	if err == nil {
		err = s.Events.Emit(ctx, notify.Event{Type: notify.UserCreatedByAdmin, UserID: id, New: true})
	}
	count := map[contact.Type]int{}
	for n, c := range e.Contacts {
		if err != nil {
			break
		}
		count[c.Type]++
		err = inField(ContactField(c.Type, count[c.Type]), s.Contacts.Place(ctx, id, e.Contacts[:n], c))
	}
	return err
}

// ContactField returns the Field of the contact with number n of its type, from 1.
func ContactField(t contact.Type, n int) string {
	field := "phone"
	if t == contact.EmailAddress {
		field = "email"
	}
	return FieldOf(field, n)
}

// FieldOf returns the Field of the element with number n of a list, from 1: key, key 2.
func FieldOf(field string, n int) string {
	if n > 1 {
		field += " " + strconv.Itoa(n)
	}
	return field
}

// add stores a new user with a name, or with a first name for a name without values. Its
// faults roll back.
func (s *Service) add(ctx context.Context, u User, name Name, owner ownerFunc) error {
	if owner == nil {
		owner = s.LoginStore.OwnerOfLogin
	}
	err := inField("login", s.freeLoginAmong(ctx, u.ID, u.Login, owner))
	if err == nil {
		err = s.Store.AddUser(ctx, u, FoldLogin(u.Login))
	}
	switch {
	case errors.Is(err, ErrDuplicate):
		return fault.Rollback(inField("login", loginTaken(u.Login).With(err)))
	case errors.Is(err, ErrNoGroup):
		return inField("group", noGroup(err))
	case err != nil:
		return fault.Rollback(err)
	}
	if name.Values != nil {
		return fault.Rollback(inField("dn", nameTaken(s.NameStore.AddName(ctx, u.ID, name))))
	}
	name, ok := s.Naming.firstName(cmp.Or(u.Login, u.DisplayName))
	if !ok {
		return nil
	}
	if err = s.NameStore.AddName(ctx, u.ID, name); errors.Is(err, ErrDuplicate) {
		return nil // a free name must be set later
	}
	return err
}

func (s *Service) newID() (string, error) {
	id, err := uuid.NewRandomFromReader(s.Rand)
	if err != nil {
		return "", fmt.Errorf("user: making an identifier: %w", err)
	}
	return id.String(), nil
}

// freeLogin returns ErrDuplicate for a login that is also a phone or an e-mail that
// another user signs in with: logins are looked up first, so it would keep that user out.
// It does so too for a login that looks like a login of another user in another script.
// The fault is invalid_parameters for a login of mixed scripts. LoginStore finds equal
// logins.
func (s *Service) freeLogin(ctx context.Context, userID, login string) error {
	return s.freeLoginAmong(ctx, userID, login, s.LoginStore.OwnerOfLogin)
}

// ownerFunc is LoginStore.OwnerOfLogin, or the same of a part of the logins.
type ownerFunc = func(ctx context.Context, folded string) (userID string, err error)

func (s *Service) freeLoginAmong(ctx context.Context, userID, login string, ownerOf ownerFunc) error {
	if err := checkScript(login); err != nil {
		return err
	}
	for _, other := range lookAlikes(login) {
		owner, err := ownerOf(ctx, other)
		if err == nil && owner != userID {
			return ErrDuplicate
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	for _, kind := range []contact.Kind{contact.Phone, contact.Email} {
		forms, err := kind.Forms(login)
		if err != nil {
			continue // not a value of this kind
		}
		for _, normal := range forms {
			owner, err := s.Contacts.PrimaryOf(ctx, kind, normal)
			if err != nil {
				return err
			}
			if owner != "" && owner != userID {
				return ErrDuplicate
			}
		}
	}
	return nil
}

// loginLocks locks what freeLogin reads, so that two users never get logins that collide.
func loginLocks(login string) lock.Set {
	if login == "" {
		return lock.Set{}
	}
	set := lock.User().Logins(FoldLogin(login)).Logins(lookAlikes(login)...)
	for _, kind := range []contact.Kind{contact.Phone, contact.Email} {
		forms, err := kind.Forms(login)
		if err != nil {
			continue
		}
		for _, normal := range forms {
			set = set.Contact(string(kind.Type), normal)
		}
	}
	return set
}

func loginTaken(login string) *fault.Error {
	return fault.Newf(fault.DuplicateLogin, "login: %q is taken, or looks the same as one that is", login)
}

// Get finds a user for an administrator. The fault is user_not_found.
func (s *Service) Get(ctx context.Context, id string) (User, error) {
	u, err := s.Store.UserByID(ctx, id)
	return u, notFound(err)
}

// ByLogin finds a user without regard to letter case. The fault is user_not_found.
func (s *Service) ByLogin(ctx context.Context, login string) (User, error) {
	u, err := s.Store.UserByLogin(ctx, FoldLogin(login))
	return u, notFound(err)
}

// ByLogins is ByLogin for at most MaxPage logins. Unknown logins are not in the answer,
// whose keys are folded logins.
func (s *Service) ByLogins(ctx context.Context, logins []string) (map[string]User, error) {
	folded := make([]string, len(logins))
	for i, login := range logins {
		folded[i] = FoldLogin(login)
	}
	list, err := s.Batches.UsersByLogins(ctx, folded)
	if err != nil {
		return nil, err
	}
	found := make(map[string]User, len(list))
	for _, u := range list {
		found[FoldLogin(u.Login)] = u
	}
	return found, nil
}

// Page returns a page of users to an administrator; pass the Key of its last one as
// the next After.
func (s *Service) Page(ctx context.Context, q Query) ([]User, error) {
	if q.Limit < 1 || q.Limit > MaxPage {
		return nil, fault.Newf(fault.InvalidParameters, "limit: want 1 to %d", MaxPage)
	}
	return s.Store.ListUsers(ctx, q)
}

// Rename changes the display name. Faults: invalid_parameters, user_not_found.
func (s *Service) Rename(ctx context.Context, id, displayName string) error {
	if err := checkName("display name", displayName, 1, MaxDisplayName); err != nil {
		return err
	}
	return notFound(s.Store.SetDisplayName(ctx, id, displayName))
}

// Lock locks a user for an administrator: when it returns, no token of the user is
// accepted and none is issued. The fault is user_not_found.
func (s *Service) Lock(ctx context.Context, id string) error {
	return s.Store.Atomic(ctx, lock.User(id), func(ctx context.Context) error { return s.lock(ctx, audit.Principal{}, id, 0) })
}

// Unlock lifts the lock of a user. Tokens from before the lock stay ended. The fault is
// user_not_found.
func (s *Service) Unlock(ctx context.Context, id string) error {
	return s.Store.Atomic(ctx, lock.User(id), func(ctx context.Context) error { return s.unlock(ctx, audit.Principal{}, id) })
}

// Remove deletes a user for an administrator, with all data of the user. destroyKeys is as in Delete. Faults:
// user_not_found, invalid_parameters without destroyKeys.
func (s *Service) Remove(ctx context.Context, id string, destroyKeys bool) error {
	return s.Store.Atomic(ctx, lock.User(id), func(ctx context.Context) error {
		if _, err := s.Store.UserByID(ctx, id); err != nil {
			return notFound(err)
		}
		return s.remove(ctx, id, audit.Principal{}, destroyKeys)
	})
}

// now returns the time with the precision of stores, so that a record equals its stored
// form.
func (s *Service) now() time.Time { return s.Now().UTC().Truncate(time.Millisecond) }

func notFound(err error) error {
	if errors.Is(err, ErrNotFound) {
		return fault.New(fault.UserNotFound, reach.NotFound).With(err)
	}
	return err
}
