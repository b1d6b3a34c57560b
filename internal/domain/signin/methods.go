// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/device"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/passkey"
	"tamga/internal/domain/reach"
	"tamga/internal/domain/session"
)

// The name spaces of method addresses.
const (
	claimsNamespace   = "http://schemas.microsoft.com/ws/2012/09/identity/authenticationmethod/"
	identityNamespace = "http://dss.cryptopro.ru/identity/authenticationmethod/"
	// ownNamespace is that of methods that the interface family does not have.
	ownNamespace = "urn:tamga:authenticationmethod:"
)

// Names of methods that the rules of signing in speak of.
const (
	methodIDOnly      = "none"
	methodCertificate = "certificate"
	methodPassword    = "password"
	methodDevice      = device.Method
)

// Method is a way to sign in, or a step of one.
type Method struct {
	Name      string // the stored form, and Principal.Method; last part of the address in SpellingProduct
	Route     string // last part of the path that sets and deletes it, and of the address in SpellingInterface
	Operation string // ending of the names of its operations, such as "OtpViaSms"
	Primary   bool   // a first step
	// ready reports whether the user has what the method needs: a password, a contact, a
	// token. Parameters describe it and contain no secrets. nil means never ready.
	ready readiness
	// exists reports whether the user has it although it may be blocked. nil: as ready says.
	exists func(s *Service, ctx context.Context, userID string) (bool, error)
}

type readiness func(s *Service, ctx context.Context, userID string) (bool, []Parameter, error)

// methods is the table of the methods that users may have. The function in a row reports
// whether the method is ready. The routes are made from the row.
var methods = []Method{
	{Name: methodIDOnly, Route: "idonly", Operation: "IdOnly", Primary: true, ready: alwaysReady},
	{Name: methodPassword, Route: "password", Operation: "Password", Primary: true, ready: passwordReady},
	{Name: methodCertificate, Route: "cert", Operation: "Cert", Primary: true, ready: certificateReady},
	{Name: "saml", Route: "external", Operation: "Saml", Primary: true},
	{Name: "otpviasms", Route: "otpviasms", Operation: "OtpViaSms", ready: contactReady(&contact.Phone)},
	{Name: "otpviaemail", Route: "otpviaemail", Operation: "OtpViaEmail", ready: contactReady(&contact.Email)},
	{Name: oath.Method, Route: "oath", Operation: "OAth", ready: tokenReady}, // by the token that the user is assigned
	{Name: methodDevice, Route: "mydss", Operation: "MyDss", ready: deviceReady, exists: deviceExists},
	{Name: passkey.Method, Route: "passkey", Operation: "Passkey", ready: passkeyReady},
}

// Methods returns the methods in the order of their table.
func Methods() []Method { return append([]Method(nil), methods...) }

// Methods returns those that users of this installation may have, in the order of the table.
func (s *Service) Methods() []Method {
	return slices.DeleteFunc(Methods(), func(m Method) bool { return m.Name == passkey.Method && s.passkeys == nil })
}

// Spelling selects the addresses of methods in answers. They differ for cert and external.
// Requests may use either.
type Spelling string

// The spellings.
const (
	SpellingInterface Spelling = "interface" // of the specification: cert, external; the default
	SpellingProduct   Spelling = "product"   // of the closed product: certificate, saml
)

// URI returns the address of a method.
func (m Method) URI(s Spelling) string {
	switch {
	case m.Name == methodIDOnly:
		return claimsNamespace + m.Name
	case m.Name == passkey.Method:
		return ownNamespace + m.Name
	case s == SpellingProduct:
		return identityNamespace + m.Name
	}
	return identityNamespace + m.Route
}

// ConfirmationURI returns the address of a method of package confirm.
func ConfirmationURI(name string) string {
	if name == passkey.Method {
		return ownNamespace + name
	}
	return identityNamespace + name
}

// MethodNamed finds a method by its name, its route, or its address in either
// spelling and either name space, without regard to letter case.
func MethodNamed(text string) (Method, bool) {
	text = strings.ToLower(text)
	for _, space := range []string{claimsNamespace, identityNamespace, ownNamespace} {
		text = strings.TrimPrefix(text, space)
	}
	for _, m := range methods {
		if text == m.Name || text == m.Route {
			return m, true
		}
	}
	return Method{}, false
}

// Levels of a method. They are stored and returned as given. A method that is not a first
// step is a second step at every level but LevelPrimary: then it only confirms operations.
const (
	LevelPrimary   = 1
	LevelSecondary = 2
	maxLevel       = 3
)

// Weakens reports whether the sign-in of a user who gets the method at a level may ask for less
// than before: for no proof at all, or for no second step. nil is the level of SetMethod.
func (m Method) Weakens(level *int) bool {
	return m.Name == methodIDOnly || !m.Primary && level != nil && *level == LevelPrimary
}

// AuthenticationInfo is a method that a user has.
type AuthenticationInfo struct {
	MethodURI string
	Level     int
}

// SetMethod gives a user a method, named by its route. Setting it again changes the level.
// A nil level is 1 for a primary method and 2 for another. The method has no effect until
// the user has what it needs: a contact, a certificate, a token. Faults: user_not_found;
// invalid_parameters for an unknown method, for a level that is not 0 to 3, and for a level
// other than 1 of a primary method.
func (s *Service) SetMethod(ctx context.Context, who audit.Principal, userID, name string, level *int) error {
	m, err := routed(name)
	if err != nil {
		return err
	}
	stored := StoredMethod{m.Name, LevelSecondary}
	if m.Primary {
		stored.Level = LevelPrimary
	}
	if level != nil {
		switch {
		case m.Primary && *level != LevelPrimary:
			return fault.Newf(fault.InvalidParameters, "level: %s is a first step, which has no level but %d", m.Route, LevelPrimary)
		case *level < 0 || *level > maxLevel:
			return fault.Newf(fault.InvalidParameters, "level: want 0 to %d", maxLevel)
		}
		stored.Level = *level
	}
	return s.changes.Run(ctx, who, userID, func(ctx context.Context) error {
		return s.setMethod(ctx, who, userID, m, stored)
	})
}

// methodsChanged is the reason of cancelled confirmations.
const methodsChanged = "the authentication methods were changed"

// setMethod stores a method of a user, in the transaction of ctx.
func (s *Service) setMethod(ctx context.Context, who audit.Principal, userID string, m Method, stored StoredMethod) error {
	if m.Name == passkey.Method && s.passkeys == nil {
		return fault.New(fault.InvalidParameters, "passkey: this installation has no passkeys: name the method in confirmation.methods")
	}
	had, err := s.had(ctx, userID)
	if err != nil {
		return err
	}
	if err := s.methods.SetMethod(ctx, userID, stored); err != nil {
		return err
	}
	before, existed := had[m.Name]
	if asked, asks := existed && before.Level != LevelPrimary, stored.Level != LevelPrimary; !m.Primary && (asked || asks) && before != stored {
		// The present tokens were issued without the step as it is now, or sign-ins ask for less
		// from now on. A method at level 1 only confirms operations.
		err = s.end(ctx, who, userID, methodsChanged)
	} else {
		err = s.cancels.CancelAll(ctx, who, userID, methodsChanged)
	}
	if err != nil || had[m.Name] == stored {
		return err
	}
	return s.tellFactor(ctx, who, userID, notify.FactorMethod)
}

// tellFactor tells the older contacts of a user that a factor is new or was replaced, in
// the transaction of ctx. Call it after the tokens have ended, because messages are locked
// after tokens.
func (s *Service) tellFactor(ctx context.Context, who audit.Principal, userID string, f notify.Factor) error {
	return s.messages.Emit(ctx, notify.Event{Type: notify.UserFactorChanged, UserID: userID, Actor: who.UserID, Factor: f})
}

// DeleteMethod removes a method from a user. If the user had it, every token of the user
// ends. Faults: user_not_found, invalid_parameters.
func (s *Service) DeleteMethod(ctx context.Context, who audit.Principal, userID, name string) error {
	m, err := routed(name)
	if err != nil {
		return err
	}
	return s.changes.Run(ctx, who, userID, func(ctx context.Context) error {
		had, err := s.methods.DeleteMethod(ctx, userID, m.Name)
		if err != nil || !had {
			return err
		}
		return s.end(ctx, who, userID, methodsChanged)
	})
}

func routed(name string) (Method, error) {
	m, known := MethodNamed(name)
	if !known {
		return Method{}, fault.Newf(fault.InvalidParameters, "authentication method %.64q: unknown, want one such as %s", name, methods[1].Route)
	}
	return m, nil
}

// FirstMethod gives a method for the first step to a user whom the transaction of ctx adds. There are no tokens to end and
// no older contacts to tell.
func (s *Service) FirstMethod(ctx context.Context, userID, name string) error {
	m, err := routed(name)
	if err != nil {
		return err
	}
	return s.methods.AddMethod(ctx, userID, StoredMethod{m.Name, LevelPrimary})
}

// GrantMethod and WithdrawMethod are SetMethod and DeleteMethod for administrators, who may
// act on every user. Faults: user_not_found, invalid_parameters.
func (s *Service) GrantMethod(ctx context.Context, userID, name string) error {
	m, err := routed(name)
	if err != nil {
		return err
	}
	stored := StoredMethod{m.Name, LevelSecondary}
	if m.Primary {
		stored.Level = LevelPrimary
	}
	return s.store.Atomic(ctx, lock.User(userID), func(ctx context.Context) error {
		if err := s.exists(ctx, userID); err != nil {
			return err
		}
		return s.setMethod(ctx, audit.Principal{}, userID, m, stored)
	})
}

// WithdrawMethod removes a method from a user; see GrantMethod.
func (s *Service) WithdrawMethod(ctx context.Context, userID, name string) error {
	m, err := routed(name)
	if err != nil {
		return err
	}
	return s.store.Atomic(ctx, lock.User(userID), func(ctx context.Context) error {
		if err := s.exists(ctx, userID); err != nil {
			return err
		}
		if _, err := s.methods.DeleteMethod(ctx, userID, m.Name); err != nil {
			return err
		}
		return s.end(ctx, audit.Principal{}, userID, methodsChanged)
	})
}

// exists returns nil if the user exists. The fault is user_not_found.
func (s *Service) exists(ctx context.Context, userID string) error {
	_, _, err := s.store.SignInName(ctx, userID)
	if errors.Is(err, session.ErrNotFound) {
		return fault.New(fault.UserNotFound, reach.NotFound).With(err)
	}
	return err
}

// Scheme returns the methods of a user in the order of the table. The fault is
// user_not_found.
func (s *Service) Scheme(ctx context.Context, who audit.Principal, userID string) ([]AuthenticationInfo, error) {
	if err := s.reach.Reach(ctx, who, userID); err != nil {
		return nil, err
	}
	return s.SchemeOf(ctx, userID)
}

// SchemeOf is Scheme for administrators. An unknown user has no methods.
func (s *Service) SchemeOf(ctx context.Context, userID string) ([]AuthenticationInfo, error) {
	had, err := s.had(ctx, userID)
	if err != nil {
		return nil, err
	}
	list := []AuthenticationInfo{}
	for _, m := range methods {
		if stored, has := had[m.Name]; has {
			list = append(list, AuthenticationInfo{m.URI(s.settings.MethodURIs), stored.Level})
		}
	}
	return list, nil
}

// had returns the methods of a user by name.
func (s *Service) had(ctx context.Context, userID string) (map[string]StoredMethod, error) {
	list, err := s.methods.MethodsOf(ctx, userID)
	byName := make(map[string]StoredMethod, len(list))
	for _, m := range list {
		byName[m.Name] = m
	}
	return byName, err
}

// RawData describes what the methods of a user use.
type RawData struct {
	UserID  string
	Methods []RawMethod
}

// RawMethod is one method of RawData. Parameters contain no secrets.
type RawMethod struct {
	MethodURI  string
	Confirmed  bool // ready to be used: a password set, a certificate bound, a contact confirmed, a token assigned
	Parameters []Parameter
}

// Parameter is a name and a value.
type Parameter struct{ Key, Value string }

// RawData reads the data of the named methods that the user has. Without names, it reads
// the data of all methods. Faults: user_not_found; invalid_parameters for an unknown
// method.
func (s *Service) RawData(ctx context.Context, who audit.Principal, userID string, names []string) (RawData, error) {
	wanted := map[string]bool{}
	for _, name := range names {
		m, err := routed(name)
		if err != nil {
			return RawData{}, err
		}
		wanted[m.Name] = true
	}
	if err := s.reach.Reach(ctx, who, userID); err != nil {
		return RawData{}, err
	}
	had, err := s.had(ctx, userID)
	if err != nil {
		return RawData{}, err
	}
	data := RawData{UserID: userID, Methods: []RawMethod{}}
	for _, m := range methods {
		if _, has := had[m.Name]; !has || len(wanted) > 0 && !wanted[m.Name] {
			continue
		}
		raw, err := s.rawMethod(ctx, userID, m)
		if err != nil {
			return RawData{}, err
		}
		data.Methods = append(data.Methods, raw)
	}
	return data, nil
}

func (s *Service) rawMethod(ctx context.Context, userID string, m Method) (raw RawMethod, err error) {
	raw = RawMethod{MethodURI: m.URI(s.settings.MethodURIs), Parameters: []Parameter{}}
	if m.ready == nil {
		return raw, nil
	}
	confirmed, parameters, err := m.ready(s, ctx, userID)
	raw.Confirmed, raw.Parameters = confirmed, append(raw.Parameters, parameters...)
	return raw, err
}

// alwaysReady is for methods that need nothing.
func alwaysReady(*Service, context.Context, string) (bool, []Parameter, error) { return true, nil, nil }

func passwordReady(s *Service, ctx context.Context, userID string) (bool, []Parameter, error) {
	has, err := s.store.HasPassword(ctx, userID)
	return has, nil, err
}

func certificateReady(s *Service, ctx context.Context, userID string) (bool, []Parameter, error) {
	list, err := s.methods.CertificatesOf(ctx, userID)
	var parameters []Parameter
	for _, c := range list {
		parameters = append(parameters, Parameter{"Thumbprint", hex.EncodeToString(c.Thumbprint[:])}, Parameter{"Subject", c.Subject})
	}
	return len(list) > 0, parameters, err
}

func tokenReady(s *Service, ctx context.Context, userID string) (bool, []Parameter, error) {
	t, has, err := s.oath.TokenOf(ctx, userID)
	if err != nil || !has {
		return false, nil, err
	}
	return true, []Parameter{{"Serial", t.Serial}, {"Type", string(t.Type)}}, nil
}

func passkeyReady(s *Service, ctx context.Context, userID string) (bool, []Parameter, error) {
	if s.passkeys == nil {
		return false, nil, nil
	}
	has, err := s.passkeys.Has(ctx, userID)
	return has, nil, err
}

func deviceReady(s *Service, ctx context.Context, userID string) (bool, []Parameter, error) {
	if s.devices == nil {
		return false, nil, nil
	}
	has, err := s.devices.HasActive(ctx, userID)
	return has, nil, err
}

func deviceExists(s *Service, ctx context.Context, userID string) (bool, error) {
	if s.devices == nil {
		return false, nil
	}
	return s.devices.Has(ctx, userID)
}

// contactReady returns the function for a method that sends codes to a contact.
func contactReady(kind *contact.Kind) readiness {
	return func(s *Service, ctx context.Context, userID string) (bool, []Parameter, error) {
		c, has, err := s.contacts.ForOneTime(ctx, userID, *kind)
		if err != nil || !has {
			return false, nil, err
		}
		return true, []Parameter{{string(kind.Type), c.Value}}, nil
	}
}
