// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lease"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/user"
)

const (
	// batch is the number of entries that one transaction adds at most: 150 ms on SQLite, which has one writer.
	batch = 500
	// page is the number of links that are read at a time.
	page = 500
	// fewMissing may vanish, be disabled or change their group at once whatever MostMissing is.
	fewMissing = 5
)

// ErrTooMany means that so many users would be locked or change their group that the directory is likely to be wrong.
var ErrTooMany = errors.New("directory: too many users would be locked or change their group")

// Plan are the options of one synchronization.
type Plan struct {
	Dry        bool            // changes nothing
	AnyMissing bool            // does not count who is locked or changes the group; see Rules.MostMissing
	Tell       func(Change)    // takes each change; optional
	By         audit.Principal // who wants it, and from where
	Remote     string
}

// run is a synchronization under way.
type run struct {
	*Service
	Plan
	result Result
	seen   [][16]byte // digests of the identifiers of entries: 16 bytes for each person
	// logins are those that a dry run would have added, as digests.
	logins map[[16]byte]bool
	// linked is the number of links; -1: not counted yet.
	linked int
	// Users whom their entries would have locked or moved to another group, and what is to be done about them after
	// the directory was read to its end. later has no more than mostTaken entries.
	taken int
	later []taking
}

// taking is a change that takes something from a user.
type taking struct {
	entry Entry
	link  Link
}

// Sync compares all entries with the users. Each user is changed in a transaction, so an error leaves what was done.
// Users are locked or moved to another group only after the directory was read to its end, and not if they are too many.
func (s *Service) Sync(ctx context.Context, p Plan) (Result, error) {
	r := &run{Service: s, Plan: p, logins: map[[16]byte]bool{}, linked: -1}
	err := s.Source.Entries(ctx, func(list []Entry) error {
		for part := range slices.Chunk(list, batch) {
			if err := r.take(ctx, part); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	if err == nil {
		err = r.missing(ctx)
	}
	return r.result, err
}

func (r *run) tell(k Kind, login, dn string, err error) {
	r.result.count(k)
	if r.Tell != nil {
		r.Tell(Change{k, login, dn, err})
	}
}

// mark returns what seen has of an entry.
func mark(id string) [16]byte {
	sum := sha256.Sum256([]byte(id))
	return [16]byte(sum[:16])
}

// take compares some entries with their users.
func (r *run) take(ctx context.Context, list []Entry) error {
	var ids, logins []string
	for _, e := range list {
		ids, logins = append(ids, e.ID), append(logins, e.Login)
	}
	links, err := r.Store.Links(ctx, r.Name, ids)
	if err != nil {
		return err
	}
	linked := make(map[string]Link, len(links))
	for _, l := range links {
		linked[l.Entry] = l
	}
	var owners map[string]user.User // by folded login; read when the first entry needs them
	var add []Entry
	for _, e := range list {
		r.result.Entries++
		l, known := linked[e.ID]
		if e.Group == "" || e.Disabled && !known || l.Unlinked {
			r.result.Left++
			continue // a user who had a group is missing
		}
		r.seen = append(r.seen, mark(e.ID))
		if e.Unknown {
			r.tell(Unknown, e.Login, e.DN, errUnknown)
			if !known {
				continue
			}
		}
		if known {
			if err := r.follow(ctx, e, l); err != nil {
				return err
			}
			continue
		}
		if owners == nil {
			if owners, err = r.Users.ByLogins(ctx, logins); err != nil {
				return err
			}
		}
		owner, found, err := r.owner(ctx, e, owners)
		switch {
		case err != nil && !refused(err):
			return err
		case err != nil:
			r.tell(Refused, e.Login, e.DN, err)
		case found:
			if err := r.link(ctx, e, owner); err != nil {
				return err
			}
		default:
			add = append(add, e)
		}
	}
	return r.add(ctx, add)
}

// errUnknown says what to do about an entry with the field Unknown.
var errUnknown = errors.New("the entry does not say whether the person may sign in: let the service read the attribute that directories.attributes.disabled names")

// refused reports whether an error is about one user, and not about the installation.
func refused(err error) bool {
	var outage *fault.Outage
	if errors.As(err, &outage) || fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Closed) {
		return false
	}
	_, is := fault.As(err)
	var field *user.FieldError
	return is || errors.As(err, &field) || errors.Is(err, ErrLinked)
}

// owner finds the user who is to be joined with an entry without a link. The fault says why no user may be added either.
func (r *run) owner(ctx context.Context, e Entry, owners map[string]user.User) (u user.User, found bool, err error) {
	u, found = owners[user.FoldLogin(e.Login)]
	switch r.Match {
	case MatchLogin:
	case MatchEmail:
		if found, err = false, nil; e.Email == "" {
			break
		}
		normal, err := contact.Email.Normal(e.Email)
		if err != nil {
			break // it is refused when the user is added
		}
		id, err := r.Users.Contacts.PrimaryOf(ctx, contact.Email, normal)
		if err != nil || id == "" {
			return u, false, err
		}
		if u, err = r.Users.Get(ctx, id); err != nil {
			return u, false, err
		}
		found = true
	default:
		if found {
			return u, false, fault.Newf(fault.DuplicateLogin, "a user has the login %q, and match joins no user with an entry", e.Login)
		}
	}
	if !found {
		return u, false, nil
	}
	if u.Operator {
		return u, false, fault.Newf(fault.DuplicateLogin, "%q is an operator, whom no directory takes over", u.Login)
	}
	switch other, unlinked, err := r.Store.LinkOf(ctx, u.ID); {
	case err != nil:
		return u, false, err
	case unlinked:
		return u, false, fault.Newf(fault.DuplicateLogin, "an operator has unlinked the user %q; to join the user again run: tamga directory unlink --forget", u.Login)
	case other != "":
		return u, false, fault.Newf(fault.DuplicateLogin, "the user %q follows another entry of the directory %s", u.Login, other)
	}
	return u, true, nil
}

// account is the user that an entry describes.
func (e *Entry) account() user.Account {
	a := user.Account{Login: e.Login, DisplayName: e.Name, Group: e.Group, Components: e.Components}
	if e.Email != "" {
		a.Contacts = append(a.Contacts, contact.Contact{Type: contact.EmailAddress, Value: e.Email, Primary: true, Confirmed: true, Notification: true})
	}
	if e.Phone != "" {
		a.Contacts = append(a.Contacts, contact.Contact{Type: contact.PhoneNumber, Value: e.Phone, Confirmed: true, Notification: true})
	}
	return a
}

// password is the method of linked users.
const password = "password"

// add registers the users of entries: those that touch nothing in common in one transaction.
func (r *run) add(ctx context.Context, list []Entry) error {
	for len(list) > 0 {
		touched := map[string]bool{}
		var now, later []Entry
		var accounts []user.Account
		for _, e := range list {
			a := e.account()
			touches := r.Users.Touches(&a).Values()
			if slices.ContainsFunc(touches, func(v string) bool { return touched[v] }) {
				later = append(later, e)
				continue
			}
			for _, v := range touches {
				touched[v] = true
			}
			if login := mark(user.FoldLogin(e.Login)); r.Dry && r.logins[login] {
				r.tell(Refused, e.Login, e.DN, fault.Newf(fault.DuplicateLogin, "login: another entry before this one has the login %q", e.Login))
				continue
			} else if r.Dry {
				r.logins[login] = true
			}
			a.Also = func(ctx context.Context, u user.User) error {
				return r.join(ctx, e, u, r.Methods.FirstMethod, r.Store.AddLink, audit.Entry{Operation: "AddUser", Object: u.Login})
			}
			now, accounts = append(now, e), append(accounts, a)
		}
		_, faults, err := r.Users.AddAll(ctx, accounts, !r.Dry)
		if err != nil {
			return err
		}
		for i, e := range now {
			if faults[i] != nil {
				r.tell(Refused, e.Login, e.DN, faults[i])
				continue
			}
			r.tell(Added, e.Login, e.DN, nil)
		}
		list = later
	}
	return nil
}

// join links a user with an entry, in the transaction of ctx. grant and put are for new users or for others.
func (r *run) join(ctx context.Context, e Entry, u user.User, grant func(ctx context.Context, userID, method string) error, put func(ctx context.Context, directory string, l Link) error, entry audit.Entry) error {
	if err := grant(ctx, u.ID, password); err != nil {
		return err
	}
	if err := put(ctx, r.Name, Link{UserID: u.ID, Entry: e.ID, DN: e.DN, Digest: e.digest()}); err != nil {
		return err
	}
	return r.record(ctx, entry)
}

// record adds an audit entry about a user. The caller sets the operation and the object.
func (r *run) record(ctx context.Context, e audit.Entry) error {
	e.Phase, e.Outcome, e.Remote, e.Detail, e.Principal = audit.Done, audit.OK, r.Remote, "directory "+r.Name, r.By
	return r.Audit.Record(ctx, e)
}

// link joins a user who was there before with an entry.
func (r *run) link(ctx context.Context, e Entry, u user.User) error {
	err := r.change(ctx, user.Follows(u.ID, e.account()), func(ctx context.Context) error {
		if _, err := r.Users.Follow(ctx, u.ID, e.account()); err != nil {
			return err
		}
		return r.join(ctx, e, u, r.Methods.GrantMethod, r.Store.PutLink, audit.Entry{Operation: "LinkUser", Object: u.ID})
	})
	return r.told(Linked, e, u.Login, err)
}

// told tells of a change of a user, or of the fault that kept it from being made. Other errors are returned.
func (r *run) told(k Kind, e Entry, login string, err error) error {
	switch {
	case err == nil:
		r.tell(k, login, e.DN, nil)
	case refused(err):
		r.tell(Refused, login, e.DN, err)
	default:
		return err
	}
	return nil
}

// errDry rolls a change of a dry run back.
var errDry = errors.New("directory: nothing is kept")

// change runs fn in one transaction with locks. A dry run keeps nothing of it.
func (r *run) change(ctx context.Context, locked lock.Set, fn func(ctx context.Context) error) error {
	return r.attempt(ctx, locked, !r.Dry, fn)
}

// attempt runs fn in one transaction with locks, and keeps what it did if keep is true.
func (r *run) attempt(ctx context.Context, locked lock.Set, keep bool, fn func(ctx context.Context) error) error {
	err := r.Store.Atomic(ctx, locked, func(ctx context.Context) error {
		if err := fn(ctx); err != nil {
			return fault.Rollback(err)
		}
		if !keep {
			return errDry
		}
		return nil
	})
	if errors.Is(err, errDry) {
		return nil
	}
	return err
}

// follow gives a linked user what the entry says. What takes something from the user waits until all such users are counted.
func (r *run) follow(ctx context.Context, e Entry, l Link) error {
	disabled, digest := e.disabled(l), e.digest()
	if digest == l.Digest && e.DN == l.DN && l.MissingSince.IsZero() && disabled == l.Barred {
		r.result.Unchanged++
		return nil
	}
	if (!disabled || l.Barred) && (digest == l.Digest || e.Group == l.Group) || r.AnyMissing {
		return r.apply(ctx, e, l)
	}
	most, err := r.mostTaken(ctx)
	if err != nil {
		return err
	}
	if locks := disabled && !l.Barred; !locks && r.taken <= most {
		// A change that cannot be made is not counted: it is found at each synchronization again, and enough of them
		// would stop all locks for good. Above the bound nothing is tried any more.
		err := r.attempt(ctx, user.Follows(l.UserID, e.account()), false, func(ctx context.Context) error {
			_, err := r.Users.Follow(ctx, l.UserID, e.account())
			return err
		})
		if err != nil {
			return r.told(Changed, e, l.Login, err)
		}
	}
	if r.taken++; r.taken <= most {
		r.later = append(r.later, taking{e, l})
	}
	return nil
}

// disabled reports whether a user with a link may not sign in. An entry that does not say so changes nothing.
func (e *Entry) disabled(l Link) bool {
	if e.Unknown {
		return l.Barred
	}
	return e.Disabled
}

// mostTaken returns how many users may be locked or change their group at once.
func (r *run) mostTaken(ctx context.Context) (int, error) {
	if r.linked < 0 {
		n := 0
		err := r.links(ctx, func(list []Link) error {
			n += len(list)
			return nil
		})
		if err != nil {
			return 0, err
		}
		r.linked = n
	}
	return max(fewMissing, int(r.MostMissing*float64(r.linked))), nil
}

// apply makes the changes of follow. A lock has a transaction of its own: it is kept if the user cannot follow the entry
// otherwise, such as to a login that another user has.
func (r *run) apply(ctx context.Context, e Entry, l Link) error {
	locked := false
	if e.disabled(l) && !l.Barred {
		var err error
		if locked, err = r.lockDisabled(ctx, l); err != nil {
			return r.told(Locked, e, l.Login, err)
		}
		if locked {
			r.tell(Locked, l.Login, e.DN, nil)
		}
	}
	var kind Kind
	err := r.change(ctx, user.Follows(l.UserID, e.account()), func(ctx context.Context) error {
		kind = ""
		l, err := r.again(ctx, l)
		if err != nil || l.UserID == "" {
			return err
		}
		disabled := e.disabled(l)
		// A user whom lockDisabled has not seen is locked by the next synchronization.
		next := Link{UserID: l.UserID, Entry: e.ID, DN: e.DN, Digest: e.digest(), Barred: disabled && l.Barred, Locked: l.Locked}
		changed, err := r.Users.Follow(ctx, l.UserID, e.account())
		if err != nil {
			return err
		}
		if changed {
			kind = Changed
			err = r.record(ctx, audit.Entry{Operation: "FollowDirectory", Object: l.UserID})
		}
		if err == nil && !disabled && l.Locked { // Barred alone: an operator has locked or unlocked the user since
			kind, next.Locked = Unlocked, false
			if err = r.Users.Unlock(ctx, l.UserID); err == nil {
				err = r.record(ctx, audit.Entry{Operation: "UnlockUser", Object: l.UserID})
			}
		}
		if err != nil {
			return err
		}
		return r.Store.PutLink(ctx, r.Name, next)
	})
	switch {
	case err == nil && locked: // which was told
		return nil
	case err == nil && kind == "":
		r.result.Unchanged++
		return nil
	}
	return r.told(kind, e, l.Login, err)
}

// lockDisabled locks a user whose entry is disabled. locks reports whether the user was not locked before.
func (r *run) lockDisabled(ctx context.Context, l Link) (locks bool, err error) {
	err = r.change(ctx, lock.User(l.UserID), func(ctx context.Context) error {
		locks = false
		l, err := r.again(ctx, l)
		if err != nil || l.UserID == "" || l.Barred {
			return err
		}
		l.Barred, l.MissingSince = true, time.Time{}
		if l.Locked, locks, err = r.lock(ctx, l.UserID); err != nil {
			return err
		}
		return r.Store.PutLink(ctx, r.Name, l)
	})
	return locks, err
}

// again reads a link in a transaction that locks its user: an operator may have acted since it was read. The user is "" if
// the entry and the user are linked no more.
func (r *run) again(ctx context.Context, l Link) (Link, error) {
	list, err := r.Store.Links(ctx, r.Name, []string{l.Entry})
	for _, now := range list {
		if now.UserID == l.UserID && !now.Unlinked {
			return now, err
		}
	}
	return Link{}, err
}

// lock locks a user for the directory. A user whom an operator has locked stays as is: then the directory does not lift
// the lock either. Nor does it if an operator has ordered a lock for later. A user without approval is locked, too, because
// an approval does not lift that.
func (r *run) lock(ctx context.Context, id string) (own, locks bool, err error) {
	u, err := r.Users.Get(ctx, id)
	if err != nil || u.Locked || !u.LockAt.IsZero() && !r.Now().Before(u.LockAt) {
		return false, false, err
	}
	if err := r.Users.Lock(ctx, id); err != nil {
		return false, false, err
	}
	return u.LockAt.IsZero(), true, r.record(ctx, audit.Entry{Operation: "LockUser", Object: id})
}

// missing makes the changes that waited, notes the users whose entries are gone, and locks those whose time is over.
func (r *run) missing(ctx context.Context) error {
	slices.SortFunc(r.seen, func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) })
	gone := func(l Link) bool {
		m := mark(l.Entry)
		_, there := slices.BinarySearchFunc(r.seen, m, func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) })
		return !there
	}
	all, vanished := 0, 0
	err := r.links(ctx, func(list []Link) error {
		all += len(list)
		for _, l := range list {
			if l.MissingSince.IsZero() && !l.Barred && gone(l) { // Barred: nothing more is taken from the user
				vanished++
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if r.linked < 0 {
		r.linked = all
	}
	most, err := r.mostTaken(ctx)
	if err != nil {
		return err
	}
	if vanished+r.taken > most && !r.AnyMissing {
		return fmt.Errorf("%w: of %d linked users %d are missing, %d are disabled or in another group; none of them is changed. If that is right, run: tamga directory sync %s --any-missing",
			ErrTooMany, r.linked, vanished, r.taken, r.Name)
	}
	for _, t := range r.later {
		if err := r.apply(ctx, t.entry, t.link); err != nil {
			return err
		}
	}
	now := r.Now()
	return r.links(ctx, func(list []Link) error {
		var ids []string
		for _, l := range list {
			if !gone(l) {
				continue
			}
			if l.MissingSince.IsZero() {
				ids = append(ids, l.UserID)
				r.tell(Missing, l.Login, l.DN, nil)
				l.MissingSince = now
			}
			if l.Barred || now.Sub(l.MissingSince) < r.LockAfter {
				continue
			}
			if err := r.lockMissing(ctx, l); err != nil {
				return err
			}
		}
		if r.Dry || len(ids) == 0 {
			return nil
		}
		return r.Store.MarkMissing(ctx, r.Name, ids, now)
	})
}

// lockMissing locks a user whose entry is gone for long enough.
func (r *run) lockMissing(ctx context.Context, l Link) error {
	locks := false
	err := r.change(ctx, lock.User(l.UserID), func(ctx context.Context) error {
		locks = false
		since := l.MissingSince
		l, err := r.again(ctx, l)
		if err != nil || l.UserID == "" || l.Barred {
			return err
		}
		l.MissingSince, l.Barred = since, true
		if l.Locked, locks, err = r.lock(ctx, l.UserID); err != nil {
			return err
		}
		return r.Store.PutLink(ctx, r.Name, l)
	})
	if err == nil && !locks {
		return nil
	}
	return r.told(Locked, Entry{DN: l.DN}, l.Login, err)
}

// links calls f with all links, some at a time.
func (r *run) links(ctx context.Context, f func(list []Link) error) error {
	for after := ""; ; {
		list, err := r.Store.LinksAfter(ctx, r.Name, after, page)
		if err != nil {
			return err
		}
		if err := f(list); err != nil || len(list) < page {
			return err
		}
		after = list[len(list)-1].Entry
	}
}

// syncLease is how long a synchronization waits for a process that was killed.
const syncLease = time.Minute

// look is the pause after which it is checked again whether a synchronization is due.
const look = 20 * time.Second

// Run synchronizes whenever it is due until ctx ends. Any number of processes may run it on one database.
func (s *Service) Run(ctx context.Context) {
	for ctx.Err() == nil {
		_, ran, err := s.Turn(ctx, Plan{Remote: "directory"}, false)
		if ran && ctx.Err() == nil {
			s.Noted(err)
		} else if err != nil && ctx.Err() == nil {
			s.Failed(err)
		}
		timer := time.NewTimer(look)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Turn synchronizes if that is due, or in any case with force, and if no other process does. ran reports whether it did.
func (s *Service) Turn(ctx context.Context, p Plan, force bool) (result Result, ran bool, err error) {
	rules := lease.Rules{Life: syncLease, Now: s.Now, Rand: s.Rand, Failed: s.Failed}
	l, err := rules.New()
	if err != nil {
		return result, false, err
	}
	claimed, err := s.Store.ClaimSync(ctx, s.Name, l, s.Now(), force)
	if err != nil || !claimed {
		return result, false, err
	}
	err = rules.Hold(ctx, l, func(ctx context.Context, l lease.Lease) (bool, error) { return s.Store.ExtendSync(ctx, s.Name, l) }, func(ctx context.Context) (err error) {
		result, err = s.Sync(ctx, p)
		return err
	})
	state := State{Directory: s.Name, EndedAt: s.Now(), DueAt: s.Now().Add(s.Every), Result: result}
	if err != nil {
		state.Error = err.Error()
		state.DueAt = s.Now().Add(min(s.Every, time.Minute))
	}
	_, ending := s.Store.EndSync(context.WithoutCancel(ctx), l.Token, state)
	return result, true, errors.Join(err, ending)
}
