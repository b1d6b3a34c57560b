// SPDX-License-Identifier: Apache-2.0

package ldap

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-ldap/ldap/v3"

	"tamga/internal/domain/directory"
)

const (
	pageSize = 500
	// mostValue bounds an attribute of a person, in bytes. A longer one is no name.
	mostValue = 4096
	// Bounds of groups inside of a group that is mapped.
	mostDepth  = 32
	mostGroups = 10_000
	// mostMembers bounds the people of all mapped groups, if groups have the attribute member: 16 bytes are kept for each.
	mostMembers = 5_000_000
	// accountDisabled is the bit of userAccountControl in Active Directory.
	accountDisabled = 0x2
)

// place is a digest of a distinguished name, without regard to letter case and spaces.
type place [16]byte

func placeOf(dn string) (p place, ok bool) {
	parsed, err := ldap.ParseDN(dn)
	if err != nil {
		return p, false
	}
	var b strings.Builder
	for _, r := range parsed.RDNs {
		parts := make([]string, 0, len(r.Attributes))
		for _, a := range r.Attributes {
			parts = append(parts, strings.ToLower(a.Type)+"\x01"+strings.ToLower(a.Value))
		}
		slices.Sort(parts)
		b.WriteString(strings.Join(parts, "\x02") + "\x03")
	}
	sum := sha256.Sum256([]byte(b.String()))
	return place(sum[:16]), true
}

// mapped is a group of the configuration with what belongs to it.
type mapped struct {
	group  string
	places map[place]bool // groups (MemberOf) or people and groups (Member)
}

// Entries implements directory.Source. Memory does not grow with the number of people, except for mostMembers.
func (d *Directory) Entries(ctx context.Context, take func(list []directory.Entry) error) error {
	conn, err := d.bound(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	groups, err := d.groups(ctx, conn)
	if err != nil {
		return err
	}
	c := &d.config
	attributes := []string{c.ID, c.Login, c.Title, c.Email, c.Phone, c.Disabled}
	if c.Membership == MemberOf {
		attributes = append(attributes, "memberOf")
	}
	attributes = append(attributes, slices.Sorted(maps.Values(c.Component))...)
	attributes = slices.DeleteFunc(attributes, func(a string) bool { return a == "" })
	var list []directory.Entry
	err = d.search(ctx, conn, c.Base, ldap.ScopeWholeSubtree, c.Filter, attributes, func(e *ldap.Entry) error {
		entry, err := d.entry(e, groups)
		if err != nil {
			return err
		}
		if list = append(list, entry); len(list) < pageSize {
			return nil
		}
		err = take(list)
		list = list[:0]
		return err
	})
	if err != nil || len(list) == 0 {
		return err
	}
	return take(list)
}

// search calls f with each entry, page by page. A server that knows no pages sends all entries, which are read one by one, too.
func (d *Directory) search(ctx context.Context, conn *connection, base string, scope int, filter string, attributes []string, f func(e *ldap.Entry) error) error {
	paging := ldap.NewControlPaging(pageSize)
	for {
		request := ldap.NewSearchRequest(base, scope, ldap.NeverDerefAliases, 0, int(d.config.Timeout.Seconds()), false, filter, attributes, []ldap.Control{paging})
		within, cancel := context.WithCancel(ctx)
		silent := time.AfterFunc(d.config.Timeout, cancel) // a server that sends nothing
		response := conn.SearchAsync(within, request, 64)
		var failed error
		for response.Next() {
			silent.Stop()
			if e := response.Entry(); e != nil && failed == nil { // nil: a referral, which is not followed
				if failed = f(e); failed != nil {
					cancel()
				}
			}
			silent.Reset(d.config.Timeout)
		}
		silent.Stop()
		err := response.Err()
		controls := response.Controls()
		// Both end the answers without an error.
		if err == nil && (within.Err() != nil || conn.IsClosing()) {
			err = errors.New("the server broke the answer off")
		}
		cancel()
		switch {
		case failed != nil:
			return failed
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return d.outage(fmt.Errorf("searching below %s: %w", base, err))
		}
		next, _ := ldap.FindControl(controls, ldap.ControlTypePaging).(*ldap.ControlPaging)
		if next == nil || len(next.Cookie) == 0 {
			return nil
		}
		paging.SetCookie(next.Cookie)
	}
}

// groups reads the groups of the configuration with the groups inside of them.
func (d *Directory) groups(ctx context.Context, conn *connection) (list []mapped, err error) {
	for _, g := range d.config.Groups {
		m := mapped{g.Group, map[place]bool{}}
		walk := d.walkUp
		if d.config.Membership == Member {
			walk = d.walkDown
		}
		if err := walk(ctx, conn, g.DN, m.places); err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

// levels calls read with a group, and then with the groups that read returns, each once. Cycles end where they meet a group again.
func (d *Directory) levels(dn string, read func(group string, p place) (next []string, err error)) error {
	met := map[place]bool{}
	level := []string{dn}
	for depth := 0; len(level) > 0; depth++ {
		if depth > mostDepth {
			return fmt.Errorf("ldap: directory %s: the group %s has more than %d levels of groups", d.config.Name, dn, mostDepth)
		}
		var below []string
		for _, group := range level {
			p, ok := placeOf(group)
			if !ok || met[p] {
				continue
			}
			if met[p] = true; len(met) > mostGroups {
				return fmt.Errorf("ldap: directory %s: the group %s has more than %d groups", d.config.Name, dn, mostGroups)
			}
			next, err := read(group, p)
			if err != nil {
				return err
			}
			below = append(below, next...)
		}
		level = below
	}
	return nil
}

// isGroup is the filter of groups.
const isGroup = "(|(objectClass=group)(objectClass=groupOfNames)(objectClass=groupOfUniqueNames))"

// walkUp finds the groups inside of a group by their attribute memberOf.
func (d *Directory) walkUp(ctx context.Context, conn *connection, dn string, places map[place]bool) error {
	return d.levels(dn, func(group string, p place) (next []string, err error) {
		places[p] = true
		filter := "(&" + isGroup + "(memberOf=" + ldap.EscapeFilter(group) + "))"
		err = d.search(ctx, conn, d.groupBase(), ldap.ScopeWholeSubtree, filter, []string{"1.1"}, func(e *ldap.Entry) error {
			next = append(next, e.DN)
			return nil
		})
		return next, err
	})
}

func (d *Directory) groupBase() string {
	if d.config.GroupBase != "" {
		return d.config.GroupBase
	}
	return d.config.Base
}

// walkDown reads the members of a group and of the groups among them.
func (d *Directory) walkDown(ctx context.Context, conn *connection, dn string, places map[place]bool) error {
	// Which members are groups: asking for each member would be a question for each person.
	inner := map[place]string{}
	err := d.search(ctx, conn, d.groupBase(), ldap.ScopeWholeSubtree, isGroup, []string{"1.1"}, func(e *ldap.Entry) error {
		if p, ok := placeOf(e.DN); ok {
			inner[p] = e.DN
		}
		if len(inner) > mostGroups {
			return fmt.Errorf("ldap: directory %s: more than %d groups below %s", d.config.Name, mostGroups, d.groupBase())
		}
		return nil
	})
	if err != nil {
		return err
	}
	return d.levels(dn, func(group string, _ place) (next []string, err error) {
		err = d.search(ctx, conn, group, ldap.ScopeBaseObject, "(objectClass=*)", []string{"member", "uniqueMember"}, func(e *ldap.Entry) error {
			// Active Directory returns 1,500 members at most, under another name.
			for _, a := range e.Attributes {
				if name, options, cut := strings.Cut(a.Name, ";"); cut && strings.EqualFold(name, "member") && strings.HasPrefix(strings.ToLower(options), "range=") {
					return fmt.Errorf("ldap: directory %s: the server does not return all members of the group %s: set membership to memberOf", d.config.Name, dn)
				}
			}
			for _, member := range slices.Concat(e.GetEqualFoldAttributeValues("member"), e.GetEqualFoldAttributeValues("uniqueMember")) {
				m, ok := placeOf(member)
				if !ok {
					continue
				}
				if group, is := inner[m]; is {
					next = append(next, group)
					continue
				}
				if places[m] = true; len(places) > mostMembers {
					return fmt.Errorf("ldap: directory %s: the group %s has more than %d members", d.config.Name, dn, mostMembers)
				}
			}
			return nil
		})
		return next, err
	})
}

// identifier returns what an entry is known by after a change of its name, "" for an entry without it.
func (d *Directory) identifier(e *ldap.Entry) string {
	id := e.GetEqualFoldRawAttributeValue(d.config.ID)
	if !utf8.Valid(id) || strings.EqualFold(d.config.ID, "objectGUID") {
		return hex.EncodeToString(id)
	}
	return string(id)
}

// entry reads a person. A directory in which people have no identifier cannot be followed, so that is an error.
func (d *Directory) entry(e *ldap.Entry, groups []mapped) (out directory.Entry, err error) {
	c := &d.config
	id := d.identifier(e)
	if id == "" {
		return out, fmt.Errorf("ldap: directory %s: %s has no attribute %s, by which it would be known after a change of its name", c.Name, e.DN, c.ID)
	}
	out = directory.Entry{
		ID: id, DN: e.DN, Login: value(e, c.Login), Name: value(e, c.Title), Email: value(e, c.Email), Phone: value(e, c.Phone),
		Group: c.DefaultGroup,
	}
	out.Disabled, out.Unknown = disabled(e, c.Disabled)
	for component, attribute := range c.Component {
		if v := value(e, attribute); v != "" {
			if out.Components == nil {
				out.Components = map[string]string{}
			}
			out.Components[component] = v
		}
	}
	own, _ := placeOf(e.DN)
	of := []place{own}
	if c.Membership == MemberOf {
		of = of[:0]
		for _, group := range e.GetEqualFoldAttributeValues("memberOf") {
			if p, ok := placeOf(group); ok {
				of = append(of, p)
			}
		}
	}
	for _, g := range groups {
		if slices.ContainsFunc(of, func(p place) bool { return g.places[p] }) {
			out.Group = g.group
			break
		}
	}
	return out, nil
}

// value returns the first value of an attribute, "" if it is missing or too long for a name.
func value(e *ldap.Entry, attribute string) string {
	if attribute == "" {
		return ""
	}
	v := strings.TrimSpace(e.GetEqualFoldAttributeValue(attribute))
	if len(v) > mostValue {
		return ""
	}
	return v
}

// disabled reports whether an attribute says that the person may not sign in: the bit of Active Directory, or TRUE. Each person
// of Active Directory has the attribute userAccountControl. Without it the service may not read it, and the answer is unknown.
func disabled(e *ldap.Entry, attribute string) (is, unknown bool) {
	v := value(e, attribute)
	if strings.EqualFold(attribute, "userAccountControl") {
		n, err := strconv.ParseInt(v, 10, 64)
		return err == nil && n&accountDisabled != 0, err != nil
	}
	return strings.EqualFold(v, "TRUE"), false
}
