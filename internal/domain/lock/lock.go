// SPDX-License-Identifier: Apache-2.0

// Package lock names what a change of people locks before it reads: users, and values
// that must be unique among users.
//
// Begin with [User]. A store locks the set when the change begins, so two changes with a
// common member run one after the other, on all processes. Changes without a common
// member run side by side. Signatures and other reads wait for none of them.
//
// The package only names. The order in which a store locks is described there.
package lock

import (
	"slices"
)

// Set is what one change locks. The zero value locks nothing.
type Set struct {
	users, values []string
}

// User returns the set of users. An empty identifier names no user. A user who does not
// exist may be named: nothing of such a user can change.
func User(ids ...string) Set {
	var s Set
	for _, id := range ids {
		if id != "" {
			s.users = append(s.users, id)
		}
	}
	return s.sorted()
}

// Named returns the set of one thing that belongs to no user, such as a limit of the
// installation.
func Named(name string) Set { return Set{values: []string{"name " + name}} }

// Logins adds folded logins: the one that becomes a user's, and those that look like it.
func (s Set) Logins(folded ...string) Set {
	for _, login := range folded {
		if login != "" {
			s.values = append(slices.Clip(s.values), "login "+login)
		}
	}
	return s.sorted()
}

// Contact adds a contact in normal form, of a type such as "PhoneNumber".
func (s Set) Contact(typ, normal string) Set {
	s.values = append(slices.Clip(s.values), "contact "+typ+" "+normal)
	return s.sorted()
}

// And adds the members of other sets.
func (s Set) And(others ...Set) Set {
	for _, o := range others {
		s.users = append(slices.Clip(s.users), o.users...)
		s.values = append(slices.Clip(s.values), o.values...)
	}
	return s.sorted()
}

func (s Set) sorted() Set {
	return Set{unique(s.users), unique(s.values)}
}

func unique(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }

// Users returns the identifiers of the users, sorted.
func (s Set) Users() []string { return s.users }

// Values returns the other members as texts, sorted.
func (s Set) Values() []string { return s.values }

// Lacks returns a member of other that s does not have, or "".
func (s Set) Lacks(other Set) string {
	for _, id := range other.users {
		if _, has := slices.BinarySearch(s.users, id); !has {
			return "user " + id
		}
	}
	for _, v := range other.values {
		if _, has := slices.BinarySearch(s.values, v); !has {
			return v
		}
	}
	return ""
}
