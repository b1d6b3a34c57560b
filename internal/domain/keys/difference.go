// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"cmp"
	"context"
	"slices"

	"tamga/internal/domain/user"
	"tamga/pki/x509gost"
)

// Difference is a part of a name in a certificate that is not what its user is registered with.
type Difference struct {
	Name       string // of the part: short as in the policy, such as "CN", or its object identifier
	Asked      string // value in the certificate or in the request for it; "": none
	Registered string // value in the record of the user; "": none
}

// Part is a part of a name in a certificate beside what its user is registered with.
type Part struct {
	Difference
	OID     string
	Differs bool
}

// Compare returns the parts of a subject, in its order, and then registered parts that the subject does not have, each with
// what the record of a user has for it.
func (s *Service) Compare(ctx context.Context, userID string, subject x509gost.Name) ([]Part, error) {
	profile, err := s.profile(ctx, userID)
	if err != nil {
		return nil, err
	}
	var list []Part
	seen := map[string]bool{}
	for _, a := range subject.Attributes {
		oid := a.OID.String()
		registered := s.Enrolment.registered(profile, oid)
		list = append(list, Part{Difference{s.Enrolment.partName(a.OID), a.Value, registered}, oid, registered != a.Value || seen[oid]})
		seen[oid] = true
	}
	for _, c := range s.Enrolment.Naming {
		if value := s.Enrolment.registered(profile, c.OID); value != "" && !seen[c.OID] {
			list = append(list, Part{Difference{Name: c.Name, Registered: value}, c.OID, true})
		}
	}
	return list, nil
}

// Differences returns the parts of a subject that differ from the record of a user; see Compare. An
// operator who approves a request must see them: a part that differs may name another person.
func (s *Service) Differences(ctx context.Context, userID string, subject x509gost.Name) ([]Difference, error) {
	parts, err := s.Compare(ctx, userID, subject)
	var list []Difference
	for _, p := range parts {
		if p.Differs {
			list = append(list, p.Difference)
		}
	}
	return list, err
}

// DiffersOf is Differences of a request. A request for a revocation has none.
func (s *Service) DiffersOf(ctx context.Context, q *Request) ([]Difference, error) {
	if q.Parsed == nil {
		return nil, nil
	}
	return s.Differences(ctx, q.UserID, q.Parsed.Subject)
}

// registered returns what the record of a user has for a part of names.
func (e *Enrolment) registered(profile map[string]string, oid string) string {
	for _, c := range e.Naming {
		if c.OID == oid {
			return cmp.Or(profile[oid], c.Default)
		}
	}
	return profile[oid]
}

// partName returns the short name of a part of names.
func (e *Enrolment) partName(oid x509gost.OID) string {
	if i := slices.IndexFunc(e.Naming, func(c user.Component) bool { return c.OID == oid.String() }); i >= 0 {
		return e.Naming[i].Name
	}
	return x509gost.AttributeName(oid)
}
