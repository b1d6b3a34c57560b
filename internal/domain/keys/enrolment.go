// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/user"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Profiles returns the registered names of users; see user.NameStore.NameOf.
type Profiles interface {
	// ProfileOf returns the parts of a user's distinguished name by object identifier,
	// at least a common name.
	ProfileOf(ctx context.Context, userID string) (map[string]string, error)
}

// Authority is a certificate authority that users may choose.
type Authority struct {
	ID   int64 // on the wire
	Name string
	// Operator makes requests to the built-in authority wait for an operator. Requests to
	// another authority always wait, for its certificate.
	Operator bool
	// Outside marks an authority that gets requests outside of this program. Its roots
	// are trusted, and Intermediates are used to build paths.
	Outside              bool
	Roots, Intermediates []*x509gost.Certificate
}

// Suites returns the names of the suites that new keys may have, the usual one first and then the
// other of the same standard.
func Suites() []string {
	names := []string{suite.GOST2012x256.Name, suite.GOST2012x512.Name}
	for _, one := range suite.All() {
		if !slices.Contains(names, one.Name) {
			names = append(names, one.Name)
		}
	}
	return names
}

// BuiltIn is the number of the built-in authority.
const BuiltIn = 1

// Enrolment configures who certifies keys, and under which names. The zero value is the
// built-in authority, which approves at once.
type Enrolment struct {
	Authorities []Authority
	// Naming is the list of components of distinguished names; nil means
	// user.DefaultComponents.
	Naming []user.Component
	// FixedNames gives users their registered names, which requests may not change.
	// Otherwise requests may add to the profile and replace its values.
	FixedNames bool
	// Life is the longest lifetime that a user may ask for; 0: 20 years.
	Life time.Duration
	// EncryptionGroups are the groups of users whose new certificates are also for encryption, if the
	// order does not say. They need Placement.Groups.
	EncryptionGroups []string
}

const (
	longestLife  = 20 * 365 * 24 * time.Hour
	shortestLife = time.Minute
)

// Proves reports whether certificates of the built-in authority prove a name: users get the
// registered one, or an operator approves. Then users must not choose what an operator takes
// for the registered name, such as their display name.
func (e *Enrolment) Proves() bool {
	return e.FixedNames || slices.ContainsFunc(e.Authorities, func(a Authority) bool { return a.Operator })
}

// complete fills in the defaults and checks the whole.
func (e *Enrolment) complete() error {
	if len(e.Authorities) == 0 {
		e.Authorities = []Authority{{ID: BuiltIn, Name: "Tamga"}}
	}
	for i, a := range e.Authorities {
		switch {
		case a.ID <= 0 || a.Name == "":
			return errors.New("keys: an authority needs a positive number and a name")
		case a.Outside == (a.ID == BuiltIn):
			return fmt.Errorf("keys: authority %d: want number %d for the built-in authority and another number for an outside one", a.ID, BuiltIn)
		case a.Outside && (len(a.Roots) == 0 || a.Operator):
			return fmt.Errorf("keys: authority %d: an outside authority needs roots and must not have an operator", a.ID)
		case slices.ContainsFunc(e.Authorities[:i], func(b Authority) bool { return b.ID == a.ID }):
			return fmt.Errorf("keys: authority %d is listed twice", a.ID)
		}
	}
	if e.Naming == nil {
		e.Naming = user.DefaultComponents()
	}
	e.Life = cmp.Or(e.Life, longestLife)
	if e.Life < shortestLife {
		return fmt.Errorf("keys: the longest life of a certificate: want at least %s", shortestLife)
	}
	return nil
}

// authority returns an authority by number; 0 means the first. The fault is
// invalid_enroll.
func (e *Enrolment) authority(id int64) (Authority, error) {
	for _, a := range e.Authorities {
		if id == 0 || a.ID == id {
			return a, nil
		}
	}
	return Authority{}, fault.Newf(fault.InvalidEnroll, "there is no certificate authority %d here: the policy lists them", id)
}

// Subject returns the subject name for a user's certificate: the components that the user
// asks for, by object identifier, number or short name as the policy lists them, and the
// registered name for the others. The fault is invalid_subject_name.
func (s *Service) Subject(ctx context.Context, userID string, asked map[string]string) (x509gost.Name, error) {
	e := &s.Enrolment
	profile, err := s.profile(ctx, userID)
	if err != nil {
		return x509gost.Name{}, err
	}
	given := map[string]string{}
	for key, value := range asked {
		c, ok := e.component(key)
		value = user.BareNumber(c.OID, strings.TrimSpace(value))
		switch _, twice := given[c.OID]; {
		case !ok:
			return x509gost.Name{}, fault.Newf(fault.InvalidSubject, "DistinguishedName: %.64q is no part of names here: the policy lists them", key)
		case twice:
			return x509gost.Name{}, fault.Newf(fault.InvalidSubject, "DistinguishedName: %s is given twice", c.Name)
		case value == "":
			continue
		case e.FixedNames && !strings.EqualFold(value, cmp.Or(user.BareNumber(c.OID, profile[c.OID]), c.Default)):
			return x509gost.Name{}, fault.Newf(fault.InvalidSubject, "DistinguishedName: %s is not what you are registered with, and names may not be changed here", c.Name)
		}
		given[c.OID] = value
	}
	if e.FixedNames { // letter case is the registered one, too
		clear(given)
	}
	var attributes []x509gost.Attribute
	for _, c := range e.Naming {
		value := cmp.Or(given[c.OID], user.BareNumber(c.OID, profile[c.OID]), c.Default)
		if value == "" {
			if c.Required {
				return x509gost.Name{}, fault.Newf(fault.InvalidSubject, "DistinguishedName: %s (%s) is required", c.Name, c.OID)
			}
			continue
		}
		if n := utf8.RuneCountInString(value); n < c.MinLength || n > c.MaxLength {
			return x509gost.Name{}, fault.Newf(fault.InvalidSubject, "DistinguishedName: %s has %d characters, want %d to %d", c.Name, n, c.MinLength, c.MaxLength)
		}
		if r, found := user.Unseen(value); found {
			return x509gost.Name{}, fault.Newf(fault.InvalidSubject, "DistinguishedName: %s has the character U+%04X: want letters, digits, punctuation and plain spaces", c.Name, r)
		}
		if len(c.Values) > 0 && !slices.Contains(c.Values, value) {
			return x509gost.Name{}, fault.Newf(fault.InvalidSubject, "DistinguishedName: %s has only the values that the policy lists", c.Name)
		}
		oid, err := x509gost.ParseOID(c.OID)
		if err != nil {
			return x509gost.Name{}, err
		}
		attributes = append(attributes, x509gost.Attribute{OID: oid, Value: value})
	}
	name, err := x509gost.BuildName(attributes)
	if err == nil && name.IsEmpty() {
		err = errors.New("the name is empty")
	}
	if err != nil {
		return x509gost.Name{}, fault.Newf(fault.InvalidSubject, "DistinguishedName: a value does not have the form it has in certificates (INN has 12 digits, SNILS 11, OGRN 13, OGRNIP 15, C two Latin letters)").With(err)
	}
	return name, nil
}

// profile returns the registered name of a user by object identifier.
func (s *Service) profile(ctx context.Context, userID string) (map[string]string, error) {
	if s.Profiles == nil {
		return map[string]string{}, nil
	}
	return s.Profiles.ProfileOf(ctx, userID)
}

// component returns a component of names by object identifier, number or short name.
func (e *Enrolment) component(key string) (user.Component, bool) {
	key = strings.TrimSpace(key)
	for _, c := range e.Naming {
		if key == c.OID || strings.EqualFold(key, c.Name) || key == fmt.Sprint(c.ID) {
			return c, true
		}
	}
	return user.Component{}, false
}
