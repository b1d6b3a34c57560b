// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"context"
	"slices"

	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/passkey"
)

// Method is how a user confirms. Its functions join the transaction of ctx.
type Method interface {
	// Choices returns the ways in which the user can confirm with the method now. None
	// means that the method is not usable.
	Choices(ctx context.Context, userID string) ([]Choice, error)
	// Begin sends what a challenge needs to the address of r, such as a fresh code. It is
	// called again for each repetition. A fault of it undoes the challenge.
	Begin(ctx context.Context, r *Record, f *what.Fields) error
	// Check returns nil if a text answers the challenge of r, once. The fault
	// invalid_confirmation_code means that it does not and that the attempt counts. Other
	// errors mean that it was not checked.
	Check(ctx context.Context, r *Record, answer string) error
}

// evident is a Method whose right answers prove by themselves that the user has confirmed.
type evident interface {
	// Evidence returns a right answer to the challenge of r as the record keeps it.
	Evidence(ctx context.Context, r *Record, answer string) ([]byte, error)
}

// Row describes a method.
type Row struct {
	Name string // last part of the address of the method
	// Assigned is the authentication method that the user must have, by its stored name.
	Assigned string
	// Device means that a device answers, by Service.Approve. Its challenge is valid as long
	// as the record.
	Device bool
	// Page means that only a browser on a page of ours can answer. Other clients are not
	// offered the method. Such a method is off unless the settings name it.
	Page bool

	make func(s *Service) Method
}

// rows is the table of methods. A new method is a file and a row.
var rows = []Row{
	{Name: "mydss", Assigned: "mydss", Device: true, make: newByDevice("mydss")},
	{Name: "mobile", Assigned: "mydss", Device: true, make: newByDevice("mobile")}, // the same devices, for clients of v1
	{Name: "otpviasms", Assigned: "otpviasms", make: newBySMS},
	{Name: "otpviaemail", Assigned: "otpviaemail", make: newByEmail},
	{Name: "oath", Assigned: "oath", make: newByOath},
	{Name: passkey.Method, Assigned: passkey.Method, Page: true, make: newByPasskey},
}

// Rows returns the methods in the order of their table.
func Rows() []Row { return slices.Clone(rows) }

// MethodNames returns the names of all methods in the order of their table.
func MethodNames() []string {
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = r.Name
	}
	return names
}

// ClientMethodNames returns the names of the methods that a client of the interface can
// handle, in the order of the table.
func ClientMethodNames() []string {
	return slices.DeleteFunc(MethodNames(), ByPage)
}

// ByPage reports whether only a page of ours can take the answers of a method.
func ByPage(name string) bool {
	return slices.ContainsFunc(rows, func(r Row) bool { return r.Name == name && r.Page })
}

// ByDevice reports whether a device answers the challenges of a method.
func ByDevice(name string) bool {
	return slices.ContainsFunc(rows, func(r Row) bool { return r.Name == name && r.Device })
}

// method is a row in use.
type method struct {
	Row
	Method
}

// choices returns the choices of a user among the named methods, in the order of the
// settings. With first set, it stops at the first method that is usable.
func (s *Service) choices(ctx context.Context, userID string, names []string, first bool) ([]Choice, error) {
	if len(names) == 0 {
		return nil, nil
	}
	assigned, err := s.deps.Assigned.AssignedMethods(ctx, userID)
	if err != nil {
		return nil, err
	}
	var list []Choice
	for _, m := range s.methods {
		if !slices.Contains(names, m.Name) || !slices.Contains(assigned, m.Assigned) {
			continue
		}
		of, err := m.Choices(ctx, userID)
		if err != nil {
			return nil, err
		}
		for _, c := range of {
			c.Method = m.Name
			list = append(list, c)
		}
		if first && len(list) > 0 {
			break
		}
	}
	return list, nil
}

// usable returns the choices for a record among the methods of Ask, and the fallback if there
// are none.
func (s *Service) usable(ctx context.Context, r *Record, a *Ask) (list []Choice, err error) {
	names := a.Methods
	if len(a.Methods) == 0 && len(a.Fallback) == 0 {
		names = MethodNames()
	}
	missing := noMethod()
	for _, names := range [][]string{names, a.Fallback} {
		all, err := s.choices(ctx, r.UserID, names, false)
		if err == nil {
			list, err = s.describing(ctx, r, all)
		}
		if err != nil || len(list) > 0 {
			return list, err
		}
		if len(all) > 0 {
			missing = oldDevices()
		}
	}
	return nil, missing
}

// describing returns choices without the devices that cannot compute the digest of a record.
func (s *Service) describing(ctx context.Context, r *Record, list []Choice) ([]Choice, error) {
	// One document is signed in one way, so most records need not be read.
	if r.Documents < 2 || len(describing(list, what.Latest)) == len(list) {
		return list, nil
	}
	c, err := s.content(ctx, r)
	return describing(list, c.Fields.Version()), err
}

// describing returns choices without the devices that do not know a version of the digest.
func describing(list []Choice, version int) []Choice {
	return slices.DeleteFunc(slices.Clone(list), func(c Choice) bool { return c.describes > 0 && c.describes < version })
}

// confirmable returns the fault of CanConfirm for a user who has no method for a version of the digest.
func (s *Service) confirmable(ctx context.Context, userID string, version int) error {
	if version == what.OneWay {
		return s.CanConfirm(ctx, userID)
	}
	list, err := s.choices(ctx, userID, MethodNames(), false)
	switch {
	case err != nil:
		return err
	case len(list) == 0:
		return noMethod()
	case len(describing(list, version)) == 0:
		return oldDevices()
	}
	return nil
}

// CanConfirm returns nil if the user has a method to confirm with. The fault is
// authn_method_not_confirmed.
func (s *Service) CanConfirm(ctx context.Context, userID string) error {
	list, err := s.choices(ctx, userID, MethodNames(), true)
	if err == nil && len(list) == 0 {
		err = noMethod()
	}
	return err
}

// oldDevices is the fault of a user whose only methods are devices that cannot describe an operation.
func oldDevices() error {
	return fault.New(fault.MethodNotConfirmed, "the documents are signed in several ways, which the devices of the user cannot show: update the app of a device and open it once, assign another method, or sign the documents of each type separately")
}

func noMethod() error {
	return fault.New(fault.MethodNotConfirmed, "a confirmation is needed and the user has no method to confirm with: assign a method, and the contact, token or device that it needs")
}

// named returns a method that is accepted. found is false for others.
func (s *Service) named(name string) (m method, found bool) {
	i := slices.IndexFunc(s.methods, func(m method) bool { return m.Name == name })
	if i < 0 {
		return method{}, false
	}
	return s.methods[i], true
}
