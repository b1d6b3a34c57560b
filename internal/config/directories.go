// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Directory is a directory of an organization (LDAP, Active Directory) whose people are users. They sign in with their
// password of the directory.
type Directory struct {
	// Short, unique name in lower case. Default: none, required.
	Name string `yaml:"name"`
	// Kind of the directory, `ldap` (RFC 4519, such as OpenLDAP) or `active_directory`: it says what the settings below are
	// when they are empty. Default: `ldap`.
	Kind string `yaml:"kind"`
	// Servers, `ldaps://HOST` or `ldap://HOST`, with a port or without. They are tried in this order, beginning with the one
	// that answered last. `ldap://` begins TLS by StartTLS. Default: none, required.
	Servers []string `yaml:"servers"`
	// Whether `ldap://` is used without StartTLS. **Risk:** passwords of people pass the network in the clear.
	Plain bool `yaml:"plain"`
	// Roots (PEM) that the certificates of the servers must lead to. Default: those of the system.
	AuthoritiesFile string `yaml:"authorities_file"`
	// Distinguished name by which this service reads the directory. Default: none, it reads anonymously.
	BindDN string `yaml:"bind_dn"`
	// File with the password of `bind_dn`.
	BindPasswordFile string `yaml:"bind_password_file"`
	// Distinguished name below which the people are. Default: none, required.
	Base string `yaml:"base"`
	// Filter of people (RFC 4515). Default: `(objectClass=inetOrgPerson)`, in Active Directory
	// `(&(objectCategory=person)(objectClass=user))`.
	Filter string `yaml:"filter"`
	// Attributes of people.
	Attributes DirectoryAttributes `yaml:"attributes"`
	// Groups of the directory, each with the group of users of its people. Of several the first one counts. Groups inside of
	// groups count, too.
	Groups []DirectoryGroup `yaml:"groups"`
	// Group of users for people of none of these groups. Default: none, they are no users.
	DefaultGroup string `yaml:"default_group"`
	// Distinguished name below which groups inside of groups are. Default: `base`.
	GroupBase string `yaml:"group_base"`
	// Where it is written who belongs to a group: `member_of` (attribute memberOf of people) or `member` (attribute member of
	// groups). Default: `member`, in Active Directory `member_of`.
	Membership string `yaml:"membership"`
	// Which users who are there already are joined with people of the directory: `login` (with the same login), `email` (with the
	// same primary e-mail address) or `none`. Operators never are. Default: `none`.
	Match string `yaml:"match"`
	// Time between two synchronizations. Default: `15m`.
	Every time.Duration `yaml:"every"`
	// Time after which a user is locked whose entry is gone. Default: `72h`.
	LockAfter time.Duration `yaml:"lock_after"`
	// Part of the users of the directory that may vanish, be disabled or change their group at once, all together. If more do,
	// none of them is locked or moved, and the synchronization fails. Default: `0.1`.
	MostMissing float64 `yaml:"most_missing"`
}

// DirectoryAttributes name attributes of people.
type DirectoryAttributes struct {
	// Identifier that stays when a person is renamed. Default: `entryUUID`, in Active Directory `objectGUID`.
	ID string `yaml:"id"`
	// Login. Default: `uid`, in Active Directory `sAMAccountName`.
	Login string `yaml:"login"`
	// Name in lists. Default: `displayName`.
	Name string `yaml:"name"`
	// E-mail address of a new user; `-`: none. Default: `mail`.
	Email string `yaml:"email"`
	// Phone number of a new user. Default: none.
	Phone string `yaml:"phone"`
	// Attribute that says that a person may not sign in: `TRUE`, or the bit 2 of `userAccountControl`. The lock of a person
	// without `userAccountControl` stays as it is, and no user is added. Default: none, in Active Directory
	// `userAccountControl`.
	Disabled string `yaml:"disabled"`
	// Components of the distinguished name ([users.md](users.md)) with their attributes: `{CN: cn, SN: sn, G: givenName}`.
	// Default: none, the name is made as for other new users and stays.
	DN map[string]string `yaml:"dn"`
}

// DirectoryGroup maps a group.
type DirectoryGroup struct {
	// Distinguished name of the group in the directory.
	DN string `yaml:"dn"`
	// Name of the group of users.
	Group string `yaml:"group"`
}

// checkDirectories returns the faults of the list, and sets defaults.
func (c *Config) checkDirectories() (faults []error) {
	seen := map[string]bool{}
	for i := range c.Directories {
		d := &c.Directories[i]
		fault := func(ok bool, text string) {
			if !ok {
				faults = append(faults, fmt.Errorf("directories[%d].%s", i, text))
			}
		}
		fault(d.Name != "" && !seen[d.Name] && strings.Trim(d.Name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == "", "name: want a unique name of a-z, 0-9, - _ .")
		seen[d.Name] = true
		d.Kind = cmp.Or(d.Kind, "ldap")
		fault(isOneOf(d.Kind, "ldap", "active_directory"), "kind: want ldap or active_directory")
		preset := func(of *string, ldap, active string) {
			if *of == "" {
				if *of = ldap; d.Kind == "active_directory" {
					*of = active
				}
			}
		}
		preset(&d.Filter, "(objectClass=inetOrgPerson)", "(&(objectCategory=person)(objectClass=user))")
		preset(&d.Attributes.ID, "entryUUID", "objectGUID")
		preset(&d.Attributes.Login, "uid", "sAMAccountName")
		preset(&d.Attributes.Name, "displayName", "displayName")
		preset(&d.Attributes.Email, "mail", "mail")
		preset(&d.Attributes.Disabled, "", "userAccountControl")
		preset(&d.Membership, "member", "member_of")
		preset(&d.Match, "none", "none")
		d.Every, d.LockAfter, d.MostMissing = cmp.Or(d.Every, 15*time.Minute), cmp.Or(d.LockAfter, 72*time.Hour), cmp.Or(d.MostMissing, 0.1)
		fault(len(d.Servers) > 0, "servers: want at least one, such as ldaps://dc1.example.org")
		fault(!d.Plain || !slices.ContainsFunc(d.Servers, func(s string) bool { return strings.HasPrefix(s, "ldaps:") }), "plain: is about ldap://, want no ldaps:// beside it")
		fault(d.Base != "", "base: want the distinguished name below which the people are")
		fault((d.BindDN == "") == (d.BindPasswordFile == ""), "bind_dn: goes together with bind_password_file")
		fault(isOneOf(d.Membership, "member", "member_of"), "membership: want member or member_of")
		fault(isOneOf(d.Match, "none", "login", "email"), "match: want none, login or email")
		fault(d.Every >= time.Minute, "every: want at least 1m")
		fault(d.LockAfter >= 0, "lock_after: want 0 or more")
		fault(d.MostMissing > 0 && d.MostMissing <= 1, "most_missing: want above 0, at most 1")
		fault(len(d.Groups) > 0 || d.DefaultGroup != "", "groups: want groups or default_group, otherwise no person is a user")
		for _, g := range d.Groups {
			fault(g.DN != "" && g.Group != "", "groups: want dn and group of each")
		}
	}
	return faults
}
