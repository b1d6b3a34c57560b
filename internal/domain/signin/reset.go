// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/password"
	"tamga/internal/domain/reach"
	"tamga/internal/domain/session"
)

// Destination is where a new password is sent. The default is the contact that is assigned
// for one-time passwords.
type Destination struct {
	Type  string // "PhoneNumber" or "EmailAddress"
	Value string // a confirmed contact of the user; "" for the assigned one
}

// Delivery says how a new password is delivered.
type Delivery struct {
	Destinations []Destination
	Show         bool        // return it if the settings allow that (ResetPassword)
	Raw          bool        // return it, or refuse the whole order (ReturnRawPassword)
	Print        PrintFormat // "" for no print form
}

// Outcome is the result of a reset, as far as the delivery asks for it.
type Outcome struct {
	Password string
	Form     *PrintedForm // nil unless ordered
}

// PrintFormat is a kind of print form, by its name in the interface.
type PrintFormat string

// The formats of print forms.
const (
	HTML PrintFormat = "Html"
	XML  PrintFormat = "Xml"
	PDF  PrintFormat = "Pdf"
	Word PrintFormat = "Word"
)

// PasswordForm is the content of a print form. People write the texts, so a text may
// contain any printable character.
type PasswordForm struct {
	Login       string // what the user signs in with: the login, otherwise a phone or e-mail
	DisplayName string
	Password    string
	At          time.Time
}

// PrintedForm is a print form as a file.
type PrintedForm struct {
	Name        string // of the file
	ContentType string
	Content     []byte
}

// Printer makes print forms. It uses only its arguments and may be called again with the
// same ones.
type Printer interface {
	Print(ctx context.Context, format PrintFormat, form PasswordForm) (PrintedForm, error)
}

// Contacts knows the contacts of users; [contact.Book] satisfies it.
type Contacts interface {
	// ForOneTime returns the confirmed contact that is assigned for one-time passwords,
	// false if there is none.
	ForOneTime(ctx context.Context, userID string, kind contact.Kind) (contact.Contact, bool, error)
	// Confirmed returns the normal form of a confirmed contact of the user, false for other values.
	Confirmed(ctx context.Context, userID string, kind contact.Kind, value string) (normal string, confirmed bool, err error)
}

// Messages sends passwords and events; [notify.Service] satisfies it.
type Messages interface {
	Available() []notify.Channel
	Order(ctx context.Context, d notify.Direct) error
	Emit(ctx context.Context, e notify.Event) error
}

// Values of Settings.PasswordDisplay, the interface's PasswordDisplayFormatList.
const (
	DisplayScreen = "Screen" // return it
	DisplayFrame  = "Frame"  // return it
	DisplayPhone  = "Phone"  // send it by SMS
	DisplayEmail  = "Email"  // send it by e-mail
	DisplayPrint  = "Print"  // print it
)

// displays lists the known values, in lower case.
var displays = map[string]bool{"screen": true, "frame": true, "phone": true, "email": true, "print": true}

// ResetPassword gives a user a new random password and delivers it. If the delivery is
// impossible, the old password stays valid. All tokens and codes of the user end, and the
// count of wrong passwords is deleted. The password grants no method: a user without the
// method password still may not sign in with it.
//
// Faults:
//
//   - user_not_found
//   - invalid_login: the user has no name to sign in with
//   - wrong_operation: the settings do not allow the delivery, or there is no notifier for
//     it
//   - invalid_phone, invalid_email: the contact is not a confirmed one of the user, or none
//     is assigned
//   - invalid_parameters, too_many_requests
func (s *Service) ResetPassword(ctx context.Context, who audit.Principal, userID string, d Delivery) (out Outcome, err error) {
	for _, f := range []PrintFormat{HTML, XML, PDF, Word} {
		if strings.EqualFold(string(d.Print), string(f)) {
			d.Print = f
		}
	}
	if err := s.Deliverable(d); err != nil {
		return Outcome{}, err
	}
	drawn, err := password.Generate(s.rand)
	if err != nil {
		return Outcome{}, err
	}
	// Before the user is looked up: a derivation is too slow for a transaction, and now it
	// takes the same time for known and unknown users.
	encoded, err := s.passwords.Encode(ctx, drawn)
	if err != nil {
		return Outcome{}, err
	}
	var printed struct {
		form PrintedForm
		on   PasswordForm
	}
	if d.Print != "" {
		// Before the transaction, because other transactions wait for it.
		if printed.on, err = s.passwordForm(ctx, who, userID, drawn); err != nil {
			return Outcome{}, err
		}
		if printed.form, err = s.printer.Print(ctx, d.Print, printed.on); err != nil {
			return Outcome{}, err
		}
		out.Form = &printed.form
	}
	err = s.store.Atomic(ctx, lock.User(userID), func(ctx context.Context) error {
		form, err := s.passwordForm(ctx, who, userID, drawn)
		if err != nil {
			return err
		}
		if form.At = printed.on.At; d.Print != "" && form != printed.on {
			return fault.New(fault.Unavailable, "the user was renamed while the form was printed, try again")
		}
		return fault.Rollback(s.replacePassword(ctx, who, userID, form.Login, drawn, encoded, d))
	})
	if err != nil {
		return Outcome{}, err
	}
	if d.Raw || d.Show && s.displays(DisplayScreen, DisplayFrame) {
		out.Password = drawn
	}
	return out, nil
}

// passwordForm reads the content of the print form of a user within reach. Faults:
// user_not_found, invalid_login.
func (s *Service) passwordForm(ctx context.Context, who audit.Principal, userID, password string) (PasswordForm, error) {
	if err := s.reach.Reach(ctx, who, userID); err != nil {
		return PasswordForm{}, err
	}
	name, u, err := s.store.SignInName(ctx, userID)
	if errors.Is(err, session.ErrNotFound) {
		return PasswordForm{}, fault.New(fault.UserNotFound, reach.NotFound).With(err)
	}
	if err == nil && name == "" {
		err = fault.New(fault.InvalidLogin, "the user has no login, primary phone or primary e-mail to sign in with")
	}
	return PasswordForm{Login: name, DisplayName: u.DisplayName, Password: password, At: s.now()}, err
}

// replacePassword makes the changes that belong to one transaction.
func (s *Service) replacePassword(ctx context.Context, who audit.Principal, userID, name, password, encoded string, d Delivery) error {
	if err := s.store.SetPassword(ctx, userID, encoded); err != nil {
		return err
	}
	if err := s.end(ctx, who, userID, "the password was changed"); err != nil {
		return err
	}
	if err := s.store.EndUserAttempt(ctx, userID); err != nil {
		return err
	}
	for _, destination := range d.Destinations {
		if err := s.send(ctx, who, userID, name, password, destination); err != nil {
			return err
		}
	}
	for _, event := range []notify.EventType{notify.UserPasswordReset, notify.UserPasswordChanged} {
		if err := s.messages.Emit(ctx, notify.Event{Type: event, UserID: userID, Actor: who.UserID}); err != nil {
			return err
		}
	}
	return s.tellFactor(ctx, who, userID, notify.FactorPassword)
}

// recipient returns the kind of contact of a destination, and the display that the settings
// must allow for it.
func recipient(d Destination) (kind contact.Kind, way string, ok bool) {
	switch {
	case strings.EqualFold(d.Type, string(contact.PhoneNumber)):
		return contact.Phone, DisplayPhone, true
	case strings.EqualFold(d.Type, string(contact.EmailAddress)):
		return contact.Email, DisplayEmail, true
	}
	return contact.Kind{}, "", false
}

// Deliverable refuses deliveries that the installation does not support, whatever the user has. Faults:
// wrong_operation, invalid_parameters.
func (s *Service) Deliverable(d Delivery) error {
	disallowed := func(way string) error {
		return fault.Newf(fault.WrongOperation, "PasswordDisplayList does not contain %s: this delivery of passwords is not enabled", way)
	}
	if d.Raw && !s.displays(DisplayScreen, DisplayFrame) {
		return disallowed(DisplayScreen + " or " + DisplayFrame)
	}
	if len(d.Destinations) > maxDestinations {
		return fault.Newf(fault.InvalidParameters, "NotificationDestinations: want at most %d", maxDestinations)
	}
	for _, destination := range d.Destinations {
		kind, way, ok := recipient(destination)
		switch {
		case !ok:
			return fault.New(fault.InvalidParameters, "NotificationDestinations: unknown Type, want PhoneNumber or EmailAddress")
		case !s.displays(way):
			return disallowed(way)
		case !slices.Contains(s.messages.Available(), kind.Channel):
			return fault.Newf(fault.WrongOperation, "notifications by %s are not configured: ask the administrator", kind.Channel)
		}
	}
	switch d.Print {
	case "":
	case HTML, XML, PDF, Word:
		if !s.displays(DisplayPrint) {
			return disallowed(DisplayPrint)
		}
		if s.printer == nil {
			return fault.New(fault.WrongOperation, "print forms are not configured: ask the administrator")
		}
	default:
		return fault.New(fault.InvalidParameters, "print form: unknown format, want Html, Xml, Pdf or Word")
	}
	return nil
}

// maxDestinations is the largest number of messages of one order.
const maxDestinations = 10

// displays reports whether the settings allow one of these displays.
func (s *Service) displays(ways ...string) bool {
	return slices.ContainsFunc(s.settings.PasswordDisplay, func(allowed string) bool {
		return slices.ContainsFunc(ways, func(way string) bool { return strings.EqualFold(allowed, way) })
	})
}

// send orders the message with the password.
func (s *Service) send(ctx context.Context, who audit.Principal, userID, name, password string, d Destination) error {
	kind, _, _ := recipient(d) // checked before
	to := d.Value
	if to == "" {
		c, found, err := s.contacts.ForOneTime(ctx, userID, kind)
		if err != nil {
			return err
		}
		if !found {
			return fault.Newf(kind.Invalid, "the user has no confirmed %s assigned for one-time passwords", kind.Type)
		}
		to = c.Value
	} else {
		normal, confirmed, err := s.contacts.Confirmed(ctx, userID, kind, to)
		if err != nil {
			return err
		}
		if !confirmed {
			return fault.Newf(kind.Invalid, "the destination is not a confirmed %s of the user", kind.Type)
		}
		to = normal
	}
	return s.messages.Order(ctx, notify.Direct{
		Channel: kind.Channel, To: to, Template: notify.TemplatePassword, UserID: userID, Actor: who.UserID,
		Data: map[string]string{"Login": name, "Password": password},
	})
}
