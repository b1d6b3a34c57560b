// SPDX-License-Identifier: Apache-2.0

package signin_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/signin"
	tokens "tamga/internal/domain/token"
	"tamga/internal/domain/user"
)

// operator adds an operator of a group, which is made if it is not there.
func (b *bench) operator(t testing.TB, login, group string) audit.Principal {
	t.Helper()
	if _, err := b.users.AddGroup(t.Context(), group, ""); err != nil && !fault.Is(err, fault.InvalidObjectState) {
		t.Fatal(err)
	}
	u, err := b.users.Add(t.Context(), user.Account{Login: login, Operator: true, Groups: []string{group}})
	if err != nil {
		t.Fatal(err)
	}
	return audit.Principal{UserID: u.ID, Login: login, Operator: true}
}

// register adds a user as an operator does: without a method.
func (b *bench) register(t testing.TB, who audit.Principal, ids map[user.IdentifierType]string) string {
	t.Helper()
	id, err := b.users.Register(t.Context(), who, user.Registration{Identifiers: ids})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (b *bench) set(t testing.TB, who audit.Principal, id string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := b.SetMethod(t.Context(), who, id, name, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func faultOf(err error) string {
	if f, ok := fault.As(err); ok {
		return f.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func TestMethodTable(t *testing.T) {
	const claims, identity = "http://schemas.microsoft.com/ws/2012/09/identity/authenticationmethod/", "http://dss.cryptopro.ru/identity/authenticationmethod/"
	want := []string{ // and the address in both spellings, where they differ
		"idonly IdOnly true " + claims + "none",
		"password Password true " + identity + "password",
		"cert Cert true " + identity + "cert " + identity + "certificate",
		"external Saml true " + identity + "external " + identity + "saml",
		"otpviasms OtpViaSms false " + identity + "otpviasms",
		"otpviaemail OtpViaEmail false " + identity + "otpviaemail",
		"oath OAth false " + identity + "oath",
		"mydss MyDss false " + identity + "mydss",
		"passkey Passkey false urn:tamga:authenticationmethod:passkey",
	}
	var got []string
	for _, m := range signin.Methods() {
		line := fmt.Sprint(m.Route, " ", m.Operation, " ", m.Primary, " ", m.URI(signin.SpellingInterface))
		if product := m.URI(signin.SpellingProduct); product != m.URI(signin.SpellingInterface) {
			line += " " + product
		}
		got = append(got, line)
		for _, spelling := range []string{m.Name, m.Route, m.URI(signin.SpellingInterface), m.URI(signin.SpellingProduct), identity + m.Name, identity + m.Route, claims + m.Route, strings.ToUpper(m.Route)} {
			if found, ok := signin.MethodNamed(spelling); !ok || found.Name != m.Name {
				t.Errorf("%s is %q", spelling, found.Name)
			}
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, unknown := range []string{"", "x", identity, claims + identity + "x", "none/", "http://other/authenticationmethod/password"} {
		if m, ok := signin.MethodNamed(unknown); ok {
			t.Errorf("%q is %q", unknown, m.Name)
		}
	}
}

func TestScheme(t *testing.T) {
	b := newBench(t)
	op := b.operator(t, "op", "Default")
	id := b.register(t, op, map[user.IdentifierType]string{user.Login: "ivanov"})
	n := func(n int) *int { return &n }
	uri := func(name string) string {
		m, _ := signin.MethodNamed(name)
		return m.URI("")
	}
	type I = signin.AuthenticationInfo
	for _, c := range []struct {
		name, method string
		remove       bool
		level        *int
		fault        string
		want         []I
	}{
		{"nothing to remove", "password", true, nil, "", []I{}},
		{"second step first", "otpviasms", false, n(3), "", []I{{uri("otpviasms"), 3}}},
		{"password", "password", false, nil, "", []I{{uri("password"), 1}, {uri("otpviasms"), 3}}},
		{"again with a level", "otpviasms", false, n(0), "", []I{{uri("password"), 1}, {uri("otpviasms"), 0}}},
		{"again without", "otpviasms", false, nil, "", []I{{uri("password"), 1}, {uri("otpviasms"), 2}}},
		{"level beyond", "mydss", false, n(4), fault.InvalidParameters, []I{{uri("password"), 1}, {uri("otpviasms"), 2}}},
		{"level below", "mydss", false, n(-1), fault.InvalidParameters, []I{{uri("password"), 1}, {uri("otpviasms"), 2}}},
		{"a first step at the second level", "cert", false, n(2), fault.InvalidParameters, []I{{uri("password"), 1}, {uri("otpviasms"), 2}}},
		{"by its address", uri("mydss"), false, n(1), "", []I{{uri("password"), 1}, {uri("otpviasms"), 2}, {uri("mydss"), 1}}},
		{"unknown", "magic", false, nil, fault.InvalidParameters, []I{{uri("password"), 1}, {uri("otpviasms"), 2}, {uri("mydss"), 1}}},
		{"removed", "otpviasms", true, nil, "", []I{{uri("password"), 1}, {uri("mydss"), 1}}},
	} {
		var err error
		if c.remove {
			err = b.DeleteMethod(t.Context(), op, id, c.method)
		} else {
			err = b.SetMethod(t.Context(), op, id, c.method, c.level)
		}
		if got := faultOf(err); got != c.fault {
			t.Errorf("%s: %q, want %q", c.name, got, c.fault)
		}
		got, err := b.Scheme(t.Context(), op, id)
		if d := cmp.Diff(c.want, got); d != "" || err != nil {
			t.Errorf("%s: %s %v", c.name, d, err)
		}
	}
}

// Who gets a token with what: by method, by what is sent, and by client.
func TestMethodsDecide(t *testing.T) {
	b := newBench(t)
	op := b.operator(t, "op", "Default")
	public := client
	confidential := signin.Client{ID: "portal", Secret: signin.HashSecret("s"), PasswordGrant: true}
	for i, c := range []struct {
		methods []string
		secret  bool // one is set
		client  signin.Client
		sent    string // "", "right" or "wrong"
		want    string
	}{
		{nil, false, public, "right", tokens.InvalidGrant},
		{nil, true, public, "right", tokens.InvalidGrant}, // a password is no method
		{nil, true, confidential, "", tokens.InvalidGrant},
		{[]string{"password"}, false, public, "right", tokens.InvalidGrant},
		{[]string{"password"}, true, public, "right", ""},
		{[]string{"password"}, true, public, "wrong", tokens.InvalidGrant},
		{[]string{"password"}, true, confidential, "", tokens.InvalidGrant},
		{[]string{"idonly"}, false, confidential, "", ""},
		{[]string{"idonly"}, false, public, "", tokens.InvalidGrant},
		{[]string{"idonly"}, true, confidential, "right", tokens.InvalidGrant}, // a password was sent, so it must be correct
		{[]string{"idonly", "password"}, true, confidential, "right", ""},
		{[]string{"idonly", "password"}, true, confidential, "wrong", tokens.InvalidGrant},
		{[]string{"idonly", "password"}, true, confidential, "", ""},
		{[]string{"cert"}, true, confidential, "right", tokens.InvalidGrant},
		{[]string{"external"}, true, confidential, "", tokens.InvalidGrant},
		{[]string{"otpviasms"}, true, confidential, "right", tokens.InvalidGrant},
		{[]string{"password", "otpviasms"}, true, public, "right", tokens.SecondStepNeeded},
		{[]string{"password", "otpviasms"}, true, public, "wrong", tokens.InvalidGrant}, // not told before the first step
		{[]string{"idonly", "mydss"}, false, confidential, "", tokens.SecondStepNeeded},
		{[]string{"idonly", "mydss"}, false, public, "", tokens.InvalidGrant},
	} {
		login := fmt.Sprint("user", i)
		id := b.register(t, op, map[user.IdentifierType]string{user.Login: login})
		b.set(t, op, id, c.methods...)
		sent := map[string]string{"wrong": "not this one"}[c.sent]
		if c.secret {
			out, err := b.ResetPassword(t.Context(), op, id, signin.Delivery{Show: true})
			if err != nil {
				t.Fatal(err)
			}
			if c.sent == "right" {
				sent = out.Password
			}
		} else if c.sent == "right" {
			sent = "anything at all"
		}
		token, err := b.PasswordGrant(t.Context(), c.client, login, sent, resource, "")
		if got := code(t, err); got != c.want {
			t.Errorf("row %d, %+v: %q, want %q", i, c, got, c.want)
			continue
		}
		if c.want != "" {
			continue
		}
		who, err := b.Authenticate(t.Context(), token.AccessToken)
		method := "password"
		if sent == "" {
			method = "none"
		}
		if err != nil || who.Method != method || who.UserID != id {
			t.Errorf("row %d: %+v, %v; want the method %s", i, who, err, method)
		}
	}
	open := settings()
	open.IDOnlyPublic = true
	lenient := b.service(t, open, b.keys...)
	if _, err := lenient.PasswordGrant(t.Context(), public, "user7", "", resource, ""); err != nil {
		t.Errorf("identification only through a public client, where that is allowed: %v", err)
	}
}

// The name in a token is the login, or what the user typed in its place.
func TestSignInByAnyIdentifier(t *testing.T) {
	b := newBench(t)
	op := b.operator(t, "op", "Default")
	ids := map[user.IdentifierType]string{user.PhoneNumber: "+79261234567", user.Email: "Ivanov@Почта.рф"}
	id := b.register(t, op, ids)
	b.set(t, op, id, "password")
	out, err := b.ResetPassword(t.Context(), op, id, signin.Delivery{Show: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, typed := range []string{"+7 (926) 123-45-67", "89261234567", "ivanov@почта.рф", "IVANOV@xn--80a1acny.xn--p1ai"} {
		token, err := b.grant(t.Context(), typed, out.Password)
		if err != nil {
			t.Errorf("%q: %v", typed, err)
			continue
		}
		who, err := b.Authenticate(t.Context(), token.AccessToken)
		if err != nil || who.UserID != id || who.Login != typed {
			t.Errorf("%q: %+v, %v", typed, who, err)
		}
	}
	info, err := b.users.ByID(t.Context(), op, id)
	if err != nil || info.LastLoginAt.IsZero() {
		t.Errorf("the last sign-in is %v, %v", info.LastLoginAt, err)
	}
	if _, err := b.book.SetPrimary(t.Context(), op, id, contact.Phone, "79261234567", false); err != nil {
		t.Fatal(err)
	}
	if _, err := b.grant(t.Context(), "79261234567", out.Password); code(t, err) != tokens.InvalidGrant {
		t.Errorf("by a phone that is primary no more: %v", err)
	}
}

func TestRawData(t *testing.T) {
	b := newBench(t)
	op := b.operator(t, "op", "Default")
	id := b.register(t, op, map[user.IdentifierType]string{user.Login: "ivanov"})
	b.set(t, op, id, "idonly", "password", "cert", "otpviasms", "oath")
	state := func(names ...string) (list []string) {
		t.Helper()
		data, err := b.RawData(t.Context(), op, id, names)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range data.Methods {
			list = append(list, fmt.Sprintf("%s%v%v", m.MethodURI[strings.LastIndexByte(m.MethodURI, '/')+1:], m.Confirmed, m.Parameters))
		}
		return list
	}
	if d := cmp.Diff([]string{"nonetrue[]", "passwordfalse[]", "certfalse[]", "otpviasmsfalse[]", "oathfalse[]"}, state()); d != "" {
		t.Error(d)
	}
	if _, err := b.ResetPassword(t.Context(), op, id, signin.Delivery{}); err != nil {
		t.Fatal(err)
	}
	b.phone(t, op, id, "79261234567", true)
	want := []string{"passwordtrue[]", "otpviasmstrue[{PhoneNumber 79261234567}]"}
	m, _ := signin.MethodNamed("otpviasms")
	if d := cmp.Diff(want, state("password", m.URI(""), "mydss")); d != "" {
		t.Error(d)
	}
	if _, err := b.RawData(t.Context(), op, id, []string{"magic"}); !fault.Is(err, fault.InvalidParameters) {
		t.Errorf("unknown method: %v", err)
	}
}

// phone gives a user a confirmed phone, assigned for one-time passwords if wanted.
func (b *bench) phone(t testing.TB, who audit.Principal, id, number string, assigned bool) {
	t.Helper()
	if _, err := b.book.Add(t.Context(), who, id, contact.Phone, number); err != nil {
		t.Fatal(err)
	}
	if _, err := b.book.Confirm(t.Context(), who, id, contact.Phone, number); err != nil {
		t.Fatal(err)
	}
	if assigned {
		if err := b.book.SetSecondaryAuth(t.Context(), who, id, contact.Phone, number); err != nil {
			t.Fatal(err)
		}
	}
}

// A contact that goes takes the way of the second step with it, but not the step.
func TestContactGoneLeavesTheStep(t *testing.T) {
	b := newBench(t)
	op := b.operator(t, "op", "Default")
	id := b.register(t, op, map[user.IdentifierType]string{user.Login: "ivanov"})
	b.set(t, op, id, "password")
	b.phone(t, op, id, "79261234567", true)
	out, err := b.ResetPassword(t.Context(), op, id, signin.Delivery{Show: true})
	if err != nil {
		t.Fatal(err)
	}
	token, err := b.grant(t.Context(), "ivanov", out.Password)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.sessions.ContactGone(t.Context(), id, "otpviasms"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Authenticate(t.Context(), token.AccessToken); err != nil {
		t.Errorf("a contact of no method ended a token: %v", err)
	}
	b.set(t, op, id, "otpviasms")
	if _, err := b.Authenticate(t.Context(), token.AccessToken); err == nil {
		t.Error("a token from before the second step goes on")
	}
	if uses, err := b.sessions.MethodUsesContact(t.Context(), id, "otpviasms"); !uses || err != nil {
		t.Errorf("uses %v, %v", uses, err)
	}
	if err := b.sessions.ContactGone(t.Context(), id, "otpviasms"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.grant(t.Context(), "ivanov", out.Password); code(t, err) != tokens.SecondStepNeeded {
		t.Errorf("without the contact: %v", err)
	}
}

func TestResetPassword(t *testing.T) {
	b := newBench(t)
	op, outsider := b.operator(t, "op", "Default"), b.operator(t, "outsider", "Other")
	id := b.register(t, op, map[user.IdentifierType]string{user.Login: "ivanov", user.Email: "ivanov@example.ru"})
	bare := b.register(t, op, map[user.IdentifierType]string{user.Login: "bare"})
	nameless := b.register(t, op, map[user.IdentifierType]string{user.Login: "nameless"})
	if err := b.users.DeleteLocalLogin(t.Context(), op, nameless); err != nil {
		t.Fatal(err)
	}
	b.phone(t, op, id, "79261234567", true)
	b.phone(t, op, id, "79260000001", false)
	if _, err := b.book.Add(t.Context(), op, id, contact.Phone, "79260000002"); err != nil { // not confirmed
		t.Fatal(err)
	}
	b.phone(t, op, bare, "79260000009", false)
	to := func(typ, value string) signin.Delivery {
		return signin.Delivery{Destinations: []signin.Destination{{Type: typ, Value: value}}}
	}
	everything := []string{signin.DisplayScreen, signin.DisplayFrame, signin.DisplayPhone, signin.DisplayEmail, signin.DisplayPrint}
	without := func(ways ...string) []string {
		return slices.DeleteFunc(slices.Clone(everything), func(w string) bool { return slices.Contains(ways, w) })
	}
	both := []notify.Channel{notify.Email, notify.SMS}
	type want struct {
		fault string
		shown bool
		sent  string // channel and address
		form  bool
	}
	for _, c := range []struct {
		name     string
		display  []string
		channels []notify.Channel
		who      audit.Principal
		id       string
		order    signin.Delivery
		want     want
	}{
		{"shown", everything, both, op, id, signin.Delivery{Show: true}, want{shown: true}},
		{"shown in a frame", []string{"frame"}, nil, op, id, signin.Delivery{Show: true}, want{shown: true}},
		{"reset, not shown", without(signin.DisplayScreen, signin.DisplayFrame), nil, op, id, signin.Delivery{Show: true}, want{}},
		{"nothing at all", nil, nil, op, id, signin.Delivery{}, want{}},
		{"raw", everything, nil, op, id, signin.Delivery{Raw: true}, want{shown: true}},
		{"raw, not allowed", without(signin.DisplayScreen, signin.DisplayFrame), both, op, id, signin.Delivery{Raw: true}, want{fault: fault.WrongOperation}},
		{"to the assigned phone", everything, both, op, id, to("PhoneNumber", ""), want{sent: "SMS 79261234567"}},
		{"to another confirmed one", everything, both, op, id, to("phonenumber", "+7 926 000-00-01"), want{sent: "SMS 79260000001"}},
		{"to one not confirmed", everything, both, op, id, to("PhoneNumber", "79260000002"), want{fault: fault.InvalidPhone}},
		{"to another user's", everything, both, op, id, to("PhoneNumber", "79260000009"), want{fault: fault.InvalidPhone}},
		{"to no phone", everything, both, op, id, to("PhoneNumber", "x"), want{fault: fault.InvalidPhone}},
		{"none assigned", everything, both, op, bare, to("PhoneNumber", ""), want{fault: fault.InvalidPhone}},
		{"no e-mail assigned", everything, both, op, id, to("EmailAddress", ""), want{fault: fault.InvalidEmail}},
		{"e-mail not confirmed", everything, both, op, id, to("EmailAddress", "ivanov@example.ru"), want{fault: fault.InvalidEmail}},
		{"hostile e-mail", everything, both, op, id, to("EmailAddress", "a@b.ru\r\nBcc: c@d.ru"), want{fault: fault.InvalidEmail}},
		{"phone not allowed", without(signin.DisplayPhone), both, op, id, to("PhoneNumber", ""), want{fault: fault.WrongOperation}},
		{"e-mail not allowed", without(signin.DisplayEmail), both, op, id, to("EmailAddress", ""), want{fault: fault.WrongOperation}},
		{"no module", everything, []notify.Channel{notify.Email}, op, id, to("PhoneNumber", ""), want{fault: fault.WrongOperation}},
		{"unknown type", everything, both, op, id, to("Pigeon", ""), want{fault: fault.InvalidParameters}},
		{"too many", everything, both, op, id, signin.Delivery{Destinations: make([]signin.Destination, 11)}, want{fault: fault.InvalidParameters}},
		{"printed", everything, nil, op, id, signin.Delivery{Print: signin.PDF}, want{form: true}},
		{"print not allowed", without(signin.DisplayPrint), nil, op, id, signin.Delivery{Print: signin.PDF}, want{fault: fault.WrongOperation}},
		{"unknown format", everything, nil, op, id, signin.Delivery{Print: "Exe"}, want{fault: fault.InvalidParameters}},
		{"everything at once", everything, both, op, id, signin.Delivery{Raw: true, Print: "wORD", Destinations: []signin.Destination{{Type: "PhoneNumber"}}}, want{shown: true, sent: "SMS 79261234567", form: true}},
		{"all or nothing", everything, both, op, id, signin.Delivery{Raw: true, Destinations: []signin.Destination{{Type: "PhoneNumber"}, {Type: "EmailAddress"}}}, want{fault: fault.InvalidEmail}},
		{"no name to sign in with", everything, both, op, nameless, signin.Delivery{Show: true}, want{fault: fault.InvalidLogin}},
		{"unknown user", everything, both, op, "unknown", signin.Delivery{Show: true}, want{fault: fault.UserNotFound}},
		{"of another group", everything, both, outsider, id, signin.Delivery{Show: true}, want{fault: fault.UserNotFound}},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := settings()
			set.PasswordDisplay = c.display
			b.messages.channels, b.messages.orders, b.messages.events = c.channels, nil, nil
			s := b.service(t, set, b.keys...)
			// The old password, with a token and a lock-out of its own.
			if c.id != "unknown" {
				if err := s.SetPassword(t.Context(), c.id, "the old password"); err != nil {
					t.Fatal(err)
				}
				b.messages.events = nil
			}
			old, oldErr := b.grant(t.Context(), "ivanov", "the old password")
			for range 10 {
				b.grant(t.Context(), "ivanov", "wrong")
			}
			out, err := s.ResetPassword(t.Context(), c.who, c.id, c.order)
			if got := faultOf(err); got != c.want.fault {
				t.Fatalf("%q, want %q", got, c.want.fault)
			}
			if c.want.fault != "" {
				if d := cmp.Diff(signin.Outcome{}, out); d != "" {
					t.Errorf("a refusal came with %s", d)
				}
				if len(b.messages.events) != 0 {
					t.Errorf("a refusal told of %v", b.messages.events)
				}
				b.clock.add(time.Hour)
				if c.id == id {
					if _, err := b.grant(t.Context(), "ivanov", "the old password"); err != nil {
						t.Errorf("after a refusal the old password is %v", err)
					}
				}
				return
			}
			if (out.Password != "") != c.want.shown || (out.Form != nil) != c.want.form {
				t.Errorf("outcome %+v", out)
			}
			sent, secret := "", out.Password
			for _, o := range b.messages.orders {
				sent += fmt.Sprint(o.Channel, " ", o.To)
				secret = o.Data["Password"]
				if o.Template != notify.TemplatePassword || o.Data["Login"] != "ivanov" || o.UserID != id || o.Actor != op.UserID {
					t.Errorf("ordered %+v", o)
				}
			}
			if sent != c.want.sent {
				t.Errorf("sent to %q, want %q", sent, c.want.sent)
			}
			if out.Form != nil {
				parts := strings.Split(string(out.Form.Content), "|")
				if parts[0] != "ivanov" || secret != "" && parts[2] != secret {
					t.Errorf("form %q", out.Form.Content)
				}
				secret = parts[2]
			}
			if oldErr != nil {
				t.Fatal(oldErr)
			}
			if _, err := b.Authenticate(t.Context(), old.AccessToken); !fault.Is(err, fault.Unauthorized) {
				t.Errorf("a token of the old password: %v", err)
			}
			if secret != "" { // and the wrong ones are forgotten
				if _, err := b.grant(t.Context(), "ivanov", secret); err != nil {
					t.Errorf("the new password: %v", err)
				}
			}
			if _, err := b.grant(t.Context(), "ivanov", "the old password"); code(t, err) != tokens.InvalidGrant {
				t.Errorf("the old password: %v", err)
			}
			var told []string
			for _, e := range b.messages.events {
				told = append(told, string(e.Type), string(e.Factor))
			}
			if d := cmp.Diff([]string{"UserPasswordReset", "", "UserPasswordChanged", "", "UserFactorChanged", "password"}, told); d != "" {
				t.Error(d)
			}
			b.clock.add(time.Hour)
		})
	}
	b.messages.channels, b.messages.err = both, fmt.Errorf("the outbox is broken")
	if err := b.SetPassword(t.Context(), id, "the old password"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ResetPassword(t.Context(), op, id, to("PhoneNumber", "")); err == nil {
		t.Error("a password that could not be sent was set")
	}
	if _, err := b.grant(t.Context(), "ivanov", "the old password"); err != nil {
		t.Errorf("after that the old password: %v", err)
	}
}

// Answers spell the addresses of methods as the specification does, or as the closed
// product does.
func TestMethodURISpelling(t *testing.T) {
	b := newBench(t)
	op := b.operator(t, "op", "Default")
	id := b.register(t, op, map[user.IdentifierType]string{user.Login: "ivanov"})
	b.set(t, op, id, "cert", "external", "idonly")
	for spelling, want := range map[signin.Spelling]string{
		"":                       "none cert external",
		signin.SpellingInterface: "none cert external",
		signin.SpellingProduct:   "none certificate saml",
	} {
		set := settings()
		set.MethodURIs = spelling
		s := b.service(t, set, b.keys...)
		ending := func(uri string) string { return uri[strings.LastIndexByte(uri, '/')+1:] }
		var scheme, raw []string
		list, err := s.Scheme(t.Context(), op, id)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list {
			scheme = append(scheme, ending(m.MethodURI))
		}
		// Both spellings are taken, whatever is answered.
		data, err := s.RawData(t.Context(), op, id, []string{"saml", "http://dss.cryptopro.ru/identity/authenticationmethod/cert", "http://dss.cryptopro.ru/identity/authenticationmethod/certificate", "idonly"})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range data.Methods {
			raw = append(raw, ending(m.MethodURI))
		}
		if got := strings.Join(scheme, " "); got != want {
			t.Errorf("%q: the scheme is %s, want %s", spelling, got, want)
		}
		if got := strings.Join(raw, " "); got != want {
			t.Errorf("%q: the raw data are %s, want %s", spelling, got, want)
		}
	}
	set := settings()
	set.MethodURIs = "other"
	if _, err := signin.New(set.Settings, signin.Deps{Now: b.clock.Now}); err == nil || !strings.Contains(err.Error(), "interface or product") {
		t.Errorf("another spelling: %v", err)
	}
}

// A primary contact is a login identifier, confirmed or not: its owner signs in with it,
// and gets a password. A contact that is not primary is none.
func TestLoginIdentifiers(t *testing.T) {
	b := newBench(t)
	op := b.operator(t, "op", "Default")
	for kind, value := range map[user.IdentifierType]string{user.Email: "anna@example.ru", user.PhoneNumber: "79261234567"} {
		id := b.register(t, op, map[user.IdentifierType]string{kind: value})
		b.set(t, op, id, "password")
		out, err := b.ResetPassword(t.Context(), op, id, signin.Delivery{Show: true})
		if err != nil || out.Password == "" {
			t.Fatalf("%s: %+v, %v", kind, out, err)
		}
		if token, err := b.grant(t.Context(), value, out.Password); err != nil || token.UserID != id {
			t.Errorf("%s that is not confirmed: %+v, %v", kind, token, err)
		}
	}
	id := b.register(t, op, map[user.IdentifierType]string{user.Login: "boris"})
	if _, err := b.book.Add(t.Context(), op, id, contact.Email, "boris@example.ru"); err != nil {
		t.Fatal(err)
	}
	if err := b.users.DeleteLocalLogin(t.Context(), op, id); err != nil {
		t.Fatal(err)
	}
	if out, err := b.ResetPassword(t.Context(), op, id, signin.Delivery{Show: true}); faultOf(err) != fault.InvalidLogin {
		t.Errorf("an e-mail that is not primary: %+v, %v", out, err)
	}
}

// A method that the installation does not have is not offered and refused.
func TestPasskeysOff(t *testing.T) {
	b := newBench(t)
	op := b.operator(t, "op", "Default")
	off, err := signin.New(settings().Settings, signin.Deps{Store: store.Tokens{DB: b.db}, Methods: store.Tokens{DB: b.db}, Reach: b.users, Now: b.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := off.SetMethod(t.Context(), op, b.demo.ID, "passkey", nil); !fault.Is(err, fault.InvalidParameters) {
		t.Errorf("by an operator: %v", err)
	}
	if err := off.GrantMethod(t.Context(), b.demo.ID, "passkey"); !fault.Is(err, fault.InvalidParameters) {
		t.Errorf("by an administrator: %v", err)
	}
	has := func(s *signin.Service) bool {
		return slices.ContainsFunc(s.Methods(), func(m signin.Method) bool { return m.Route == "passkey" })
	}
	if on := b.service(t, settings(), b.keys...); has(off) || !has(on.Service) {
		t.Error("the methods of an installation do not depend on its passkeys")
	}
	if uri := signin.ConfirmationURI("passkey"); uri != "urn:tamga:authenticationmethod:passkey" || signin.ConfirmationURI("oath") != "http://dss.cryptopro.ru/identity/authenticationmethod/oath" {
		t.Errorf("addresses: %s", uri)
	}
}

// A new method ends the tokens of its user if sign-ins ask for it from then on. At level 1 it only
// confirms operations: then the tokens go on.
func TestWhichMethodsEndTokens(t *testing.T) {
	b := newBench(t)
	op := b.operator(t, "op", "Default")
	const none = -1
	for _, c := range []struct {
		before, after int
		ends          bool
	}{{none, 1, false}, {1, 1, false}, {none, 0, true}, {none, 2, true}, {1, 2, true}, {1, 3, true}} {
		if err := b.DeleteMethod(t.Context(), op, b.demo.ID, "otpviasms"); err != nil {
			t.Fatal(err)
		}
		if c.before != none {
			if err := b.SetMethod(t.Context(), op, b.demo.ID, "otpviasms", &c.before); err != nil {
				t.Fatal(err)
			}
		}
		token := b.token(t)
		if err := b.SetMethod(t.Context(), op, b.demo.ID, "otpviasms", &c.after); err != nil {
			t.Fatal(err)
		}
		if holds := b.holds(t, token); holds == c.ends {
			t.Errorf("from level %d to %d: the token holds: %t", c.before, c.after, holds)
		}
	}
}
