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
	// batch is the number of entries that one transaction adds at most, as of an import.
	batch = 100
	// page is the number of links that are read at a time.
	page = 500
	// fewMissing may vanish at once whatever MostMissing is.
	fewMissing = 5
)

// ErrTooManyMissing means that so many entries have vanished that the directory is likely to be wrong.
var ErrTooManyMissing = errors.New("directory: too many entries are missing")

// Plan are the options of one synchronization.
type Plan struct {
	Dry        bool            // changes nothing
	AnyMissing bool            // whatever MostMissing says
	Tell       func(Change)    // takes each change; nil: no one asks
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
}

// Sync compares all entries with the users. Each user is changed in a transaction, so an error leaves what was done.
// Nothing is missing unless the directory was read to its end.
func (s *Service) Sync(ctx context.Context, p Plan) (Result, error) {
	r := &run{Service: s, Plan: p, logins: map[[16]byte]bool{}}
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
		if e.Group == "" || e.Disabled && !known {
			r.result.Left++
			continue // a user who had a group is missing
		}
		r.seen = append(r.seen, mark(e.ID))
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
	if other, has, err := r.Store.LinkOf(ctx, u.ID); err != nil || has {
		if err == nil {
			err = fault.Newf(fault.DuplicateLogin, "the user %q follows another entry of the directory %s", u.Login, other)
		}
		return u, false, err
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
				return r.join(ctx, e, u, audit.Entry{Operation: "AddUser", Object: u.Login})
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

// join links a user with an entry, in the transaction of ctx.
func (r *run) join(ctx context.Context, e Entry, u user.User, entry audit.Entry) error {
	if err := r.Methods.GrantMethod(ctx, u.ID, password); err != nil {
		return err
	}
	if err := r.Store.PutLink(ctx, r.Name, Link{UserID: u.ID, Entry: e.ID, DN: e.DN, Digest: e.digest()}); err != nil {
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
		return r.join(ctx, e, u, audit.Entry{Operation: "LinkUser", Object: u.ID})
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
	err := r.Store.Atomic(ctx, locked, func(ctx context.Context) error {
		if err := fn(ctx); err != nil {
			return fault.Rollback(err)
		}
		if r.Dry {
			return errDry
		}
		return nil
	})
	if errors.Is(err, errDry) {
		return nil
	}
	return err
}

// follow gives a linked user what the entry says.
func (r *run) follow(ctx context.Context, e Entry, l Link) error {
	digest := e.digest()
	lockNow, unlock := e.Disabled && !l.Locked, !e.Disabled && l.Locked
	if digest == l.Digest && e.DN == l.DN && l.MissingSince.IsZero() && !lockNow && !unlock {
		r.result.Unchanged++
		return nil
	}
	kind, changed, byOperator := Changed, false, false
	err := r.change(ctx, user.Follows(l.UserID, e.account()), func(ctx context.Context) (err error) {
		next := Link{UserID: l.UserID, Entry: e.ID, DN: e.DN, Digest: digest, Locked: l.Locked}
		if changed, err = r.Users.Follow(ctx, l.UserID, e.account()); err != nil {
			return err
		}
		entry := audit.Entry{Operation: "FollowDirectory"}
		switch {
		case lockNow:
			if byOperator, err = r.lock(ctx, l.UserID); err != nil {
				return err
			}
			entry, kind, next.Locked = audit.Entry{Operation: "LockUser"}, Locked, !byOperator
		case unlock:
			if err = r.Users.Unlock(ctx, l.UserID); err != nil {
				return err
			}
			entry, kind, next.Locked = audit.Entry{Operation: "UnlockUser"}, Unlocked, false
		}
		if err := r.Store.PutLink(ctx, r.Name, next); err != nil {
			return err
		}
		if !changed && kind == Changed || byOperator {
			return nil // nothing about the user
		}
		entry.Object = l.UserID
		return r.record(ctx, entry)
	})
	if err == nil && (!changed && kind == Changed || byOperator && !changed) {
		r.result.Unchanged++
		return nil
	}
	return r.told(kind, e, l.Login, err)
}

// lock locks a user unless an operator has done so: then the directory does not lift the lock either.
func (r *run) lock(ctx context.Context, id string) (byOperator bool, err error) {
	u, err := r.Users.Get(ctx, id)
	if err != nil || u.Locked {
		return u.Locked, err
	}
	return false, r.Users.Lock(ctx, id)
}

// missing notes the users whose entries are gone, and locks those whose time is over.
func (r *run) missing(ctx context.Context) error {
	slices.SortFunc(r.seen, func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) })
	gone := func(l Link) bool {
		m := mark(l.Entry)
		_, there := slices.BinarySearchFunc(r.seen, m, func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) })
		return !there
	}
	all, vanished := 0, 0
	err := r.links(ctx, func(list []Link) error {
		for _, l := range list {
			all++
			if l.MissingSince.IsZero() && gone(l) {
				vanished++
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if vanished > max(fewMissing, int(r.MostMissing*float64(all))) && !r.AnyMissing {
		return fmt.Errorf("%w: %d of %d linked users; none of them is marked. If that is right, run: tamga directory sync %s --any-missing", ErrTooManyMissing, vanished, all, r.Name)
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
			if l.Locked || now.Sub(l.MissingSince) < r.LockAfter {
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
	byOperator := false
	err := r.change(ctx, lock.User(l.UserID), func(ctx context.Context) (err error) {
		if byOperator, err = r.lock(ctx, l.UserID); err != nil || byOperator {
			return err
		}
		l.Locked = true
		if err := r.Store.PutLink(ctx, r.Name, l); err != nil {
			return err
		}
		return r.record(ctx, audit.Entry{Operation: "LockUser", Object: l.UserID})
	})
	if byOperator {
		return err
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

// look is the pause between two looks whether a synchronization is due.
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
