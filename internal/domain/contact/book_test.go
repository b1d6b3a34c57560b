// SPDX-License-Identifier: Apache-2.0

package contact_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/user"
	"tamga/internal/domain/vault"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Users of the tests. The operator reaches the first two.
const (
	ivan, anna, other = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002", "00000000-0000-4000-8000-000000000003"
)

var operator = audit.Principal{UserID: "operator", Operator: true}

// shelf is a book with its surroundings.
type shelf struct {
	*contact.Book
	db        *store.DB
	ring      *vault.Ring
	file      string
	now       time.Time
	orders    []notify.Direct
	events    []notify.Event
	refuse    error           // the result of Order
	methods   map[string]bool // "USER METHOD"
	gone      []string        // the arguments of ContactGone
	cancelled []string        // the users of CancelAll
	reached   int             // calls of Reach
	mu        sync.Mutex
}

func (s *shelf) Reach(_ context.Context, _ audit.Principal, userID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reached++
	if userID != ivan && userID != anna {
		return fault.New(fault.UserNotFound, "User not found")
	}
	return nil
}

func (s *shelf) Order(_ context.Context, d notify.Direct) error {
	if s.refuse == nil {
		s.orders = append(s.orders, d)
	}
	return s.refuse
}

func (s *shelf) Emit(_ context.Context, e notify.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
	return nil
}

func (s *shelf) MethodUsesContact(_ context.Context, userID, method string) (bool, error) {
	return s.methods[userID+" "+method], nil
}

func (s *shelf) ContactGone(_ context.Context, userID, method string) error {
	s.gone = append(s.gone, userID+" "+method)
	return nil
}

func (s *shelf) CancelAll(_ context.Context, _ audit.Principal, userID, _ string) error {
	s.cancelled = append(s.cancelled, userID)
	return nil
}

func open(t *testing.T, change func(*contact.Settings)) *shelf {
	t.Helper()
	s := &shelf{file: filepath.Join(t.TempDir(), "tamga.db"), now: start, methods: map[string]bool{}}
	s.db = storetest.Open(t, storetest.SQLiteFile(t, s.file))
	users := store.Users{DB: s.db}
	if err := users.AddGroup(t.Context(), user.Group{Name: "Default"}); err != nil {
		t.Fatal(err)
	}
	for i, id := range []string{ivan, anna, other} {
		login := fmt.Sprint("user", i)
		if err := users.AddUser(t.Context(), user.User{ID: id, Login: login, Group: "Default"}, login); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	s.ring, err = vault.NewRing("k", map[string][]byte{"k": bytes.Repeat([]byte{7}, vault.MasterKeySize)}, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	settings := contact.DefaultSettings()
	if change != nil {
		change(&settings)
	}
	contacts := store.Contacts{DB: s.db}
	s.Book, err = contact.New(settings, contact.Deps{
		Store: contacts, Codes: contacts, Reach: s, Methods: s, Confirmations: s, Notices: s, Vault: s.ring,
		Now: func() time.Time { return s.now }, Rand: rand.Reader,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// list shows the contacts of a user as "value marks".
func (s *shelf) list(t *testing.T, userID string, kind contact.Kind, want ...string) {
	t.Helper()
	list, err := s.List(t.Context(), operator, userID, kind)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range list {
		got = append(got, show(c))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func show(c contact.Contact) string {
	text := c.Value
	for _, mark := range []struct {
		name string
		set  bool
	}{{"confirmed", c.Confirmed}, {"primary", c.Primary}, {"notification", c.Notification}, {"secondary", c.SecondaryAuth}} {
		if mark.set {
			text += " " + mark.name
		}
	}
	return text
}

func (s *shelf) add(t *testing.T, userID string, kind contact.Kind, value string) {
	t.Helper()
	if _, err := s.Add(t.Context(), operator, userID, kind, value); err != nil {
		t.Fatal(err)
	}
}

func (s *shelf) confirm(t *testing.T, userID string, kind contact.Kind, value string) {
	t.Helper()
	if c, err := s.Confirm(t.Context(), operator, userID, kind, value); err != nil || !c.Confirmed {
		t.Fatal(c, err)
	}
}

func wants(t *testing.T, err error, code string) {
	t.Helper()
	if code == "" && err != nil || code != "" && !fault.Is(err, code) {
		t.Errorf("%v, want %q", err, code)
	}
}

const phone, mail = "79261234567", "ivan@example.ru"

func TestAdd(t *testing.T) {
	s := open(t, nil)
	c, err := s.Add(t.Context(), operator, ivan, contact.Phone, "8 (926) 123-45-67")
	want := contact.Contact{UserID: ivan, Type: contact.PhoneNumber, Value: phone, CreatedAt: start}
	if d := cmp.Diff(want, c); d != "" || err != nil {
		t.Error(err, d)
	}
	_, err = s.Add(t.Context(), operator, ivan, contact.Phone, "+7 926 123 45 67")
	wants(t, err, fault.DuplicatePhone)
	_, err = s.Add(t.Context(), operator, ivan, contact.Phone, "unknown")
	wants(t, err, fault.InvalidPhone)
	_, err = s.Add(t.Context(), operator, ivan, contact.Email, "unknown")
	wants(t, err, fault.InvalidEmail)
	s.add(t, ivan, contact.Email, "Ivan@Example.ru")
	s.add(t, anna, contact.Phone, phone) // two people may share a telephone
	s.list(t, ivan, contact.Phone, phone)
	s.list(t, ivan, contact.Email, "Ivan@example.ru")
	if len(s.events) != 3 || s.events[0].Type != notify.UserAccountChanged || s.events[0].UserID != ivan || s.events[0].Actor != "operator" {
		t.Errorf("%v", s.events)
	}
}

func TestBound(t *testing.T) {
	s := open(t, nil)
	for n := range contact.MaxContacts {
		s.add(t, ivan, contact.Phone, fmt.Sprintf("7926%07d", n))
	}
	_, err := s.Add(t.Context(), operator, ivan, contact.Phone, "79269999999")
	wants(t, err, fault.WrongOperation)
}

func TestUniqueContacts(t *testing.T) {
	s := open(t, func(s *contact.Settings) { s.Unique = true })
	s.add(t, ivan, contact.Phone, phone)
	_, err := s.Add(t.Context(), operator, anna, contact.Phone, phone)
	wants(t, err, fault.DuplicatePhone)
	u, err := s.IsUnique(t.Context(), "8"+phone[1:])
	if want := (contact.Unique{Data: "8" + phone[1:], Required: true}); err != nil || u != want {
		t.Errorf("%v, %v", u, err)
	}
}

// IsUnique predicts the result of a registration.
func TestIsUniquePredicts(t *testing.T) {
	s := open(t, nil)
	s.add(t, ivan, contact.Phone, phone)
	s.add(t, ivan, contact.Email, mail)
	wants(t, s.Register(t.Context(), other, contact.Email, "Third@Example.ru"), "")
	for _, c := range []struct {
		value  string
		unique bool
	}{
		{phone, true}, // a user has it, no user signs in with it
		{mail, true},  // likewise
		{"THIRD@example.RU", false},
		{"other@example.ru", true},
	} {
		u, err := s.IsUnique(t.Context(), c.value)
		if err != nil || u.IsUnique != c.unique || u.Data != c.value || !u.Required {
			t.Errorf("%s: %+v, %v", c.value, u, err)
		}
		wants(t, s.DeleteAll(t.Context(), anna), "") // as a user who is being registered
		err = s.Register(t.Context(), anna, contact.KindOf(c.value), c.value)
		if (err == nil) != c.unique {
			t.Errorf("%s: registration says %v", c.value, err)
		}
	}
	_, err := s.IsUnique(t.Context(), "x@")
	wants(t, err, fault.InvalidEmail)
	_, err = s.IsUnique(t.Context(), "x")
	wants(t, err, fault.InvalidPhone)
}

// roles are all operations that give a role.
var roles = map[string]func(s *shelf, t *testing.T, userID, value string) error{
	"primary": func(s *shelf, t *testing.T, userID, value string) error {
		_, err := s.SetPrimary(t.Context(), operator, userID, contact.Phone, value, true)
		return err
	},
	"notification": func(s *shelf, t *testing.T, userID, value string) error {
		_, err := s.SetNotification(t.Context(), operator, userID, contact.Phone, value, true)
		return err
	},
	"secondary": func(s *shelf, t *testing.T, userID, value string) error {
		return s.SetSecondaryAuth(t.Context(), operator, userID, contact.Phone, value)
	},
}

func TestRolesNeedConfirmation(t *testing.T) {
	for name, give := range roles {
		t.Run(name, func(t *testing.T) {
			s := open(t, nil)
			s.add(t, ivan, contact.Phone, phone)
			wants(t, give(s, t, ivan, phone), fault.ContactUnconfirmed)
			s.list(t, ivan, contact.Phone, phone)
			s.confirm(t, ivan, contact.Phone, phone)
			wants(t, give(s, t, ivan, phone), "")
			s.list(t, ivan, contact.Phone, phone+" confirmed "+name)
			// Two of a kind: the role moves, except that any number may be notified.
			second := "79261111111"
			s.now = s.now.Add(time.Second)
			s.add(t, ivan, contact.Phone, second)
			s.confirm(t, ivan, contact.Phone, second)
			wants(t, give(s, t, ivan, second), "")
			first := phone + " confirmed"
			if name == "notification" {
				first += " notification"
			}
			s.list(t, ivan, contact.Phone, first, second+" confirmed "+name)
			wants(t, give(s, t, ivan, "79262222222"), fault.InvalidPhone) // not a contact of the user
		})
	}
}

func TestTakeRoles(t *testing.T) {
	s := open(t, nil)
	s.add(t, ivan, contact.Phone, phone)
	// Removing a role that a contact does not have is no error, confirmed or not.
	_, err := s.SetPrimary(t.Context(), operator, ivan, contact.Phone, phone, false)
	wants(t, err, "")
	s.confirm(t, ivan, contact.Phone, phone)
	for _, give := range roles {
		wants(t, give(s, t, ivan, phone), "")
	}
	s.list(t, ivan, contact.Phone, phone+" confirmed primary notification secondary")
	c, err := s.SetPrimary(t.Context(), operator, ivan, contact.Phone, phone, false)
	if err != nil || show(c) != phone+" confirmed notification secondary" {
		t.Error(show(c), err)
	}
	c, err = s.SetNotification(t.Context(), operator, ivan, contact.Phone, phone, false)
	if err != nil || show(c) != phone+" confirmed secondary" {
		t.Error(show(c), err)
	}
}

func TestPrimaryIsOneUsersAlone(t *testing.T) {
	s := open(t, nil)
	for _, u := range []string{ivan, anna} {
		s.add(t, u, contact.Phone, phone)
		s.confirm(t, u, contact.Phone, phone)
	}
	_, err := s.SetPrimary(t.Context(), operator, ivan, contact.Phone, phone, true)
	wants(t, err, "")
	_, err = s.SetPrimary(t.Context(), operator, anna, contact.Phone, phone, true)
	wants(t, err, fault.DuplicatePhone)
	s.list(t, anna, contact.Phone, phone+" confirmed")
	id, err := s.PrimaryOf(t.Context(), contact.Phone, phone)
	if id != ivan || err != nil {
		t.Error(id, err)
	}
	if id, err := s.PrimaryOf(t.Context(), contact.Phone, "7000"); id != "" || err != nil {
		t.Error(id, err)
	}
}

// A refusal takes nothing from the contact that had the role.
func TestRefusedPrimaryKeepsTheFormerOne(t *testing.T) {
	s := open(t, nil)
	wants(t, s.Register(t.Context(), anna, contact.Phone, phone), "")
	wants(t, s.Register(t.Context(), ivan, contact.Phone, "79261111111"), "")
	s.now = s.now.Add(time.Second)
	s.add(t, ivan, contact.Phone, phone)
	s.confirm(t, ivan, contact.Phone, phone)
	_, err := s.SetPrimary(t.Context(), operator, ivan, contact.Phone, phone, true)
	wants(t, err, fault.DuplicatePhone)
	wants(t, s.SetMain(t.Context(), operator, ivan, contact.Phone, phone), fault.DuplicatePhone)
	s.list(t, ivan, contact.Phone, "79261111111 primary", phone+" confirmed")
	// Likewise for one the user does not have yet.
	wants(t, s.Delete(t.Context(), operator, ivan, contact.Phone, phone), "")
	wants(t, s.SetMain(t.Context(), operator, ivan, contact.Phone, phone), fault.DuplicatePhone)
	s.list(t, ivan, contact.Phone, "79261111111 primary")
}

func TestDelete(t *testing.T) {
	s := open(t, nil)
	for _, v := range []string{phone, "79261111111"} {
		s.add(t, ivan, contact.Phone, v)
		s.confirm(t, ivan, contact.Phone, v)
	}
	wants(t, s.SetSecondaryAuth(t.Context(), operator, ivan, contact.Phone, phone), "")
	s.methods[ivan+" otpviasms"] = true
	wants(t, s.Delete(t.Context(), operator, ivan, contact.Phone, "79261111111"), "")
	if len(s.gone) != 0 {
		t.Errorf("a contact without a role: the method was told %v", s.gone)
	}
	wants(t, s.Delete(t.Context(), operator, ivan, contact.Phone, phone), "")
	if d := cmp.Diff([]string{ivan + " otpviasms"}, s.gone); d != "" {
		t.Error(d)
	}
	wants(t, s.Delete(t.Context(), operator, ivan, contact.Phone, phone), fault.InvalidPhone)
	s.list(t, ivan, contact.Phone)
	// A contact that comes back has no roles and is not confirmed.
	s.add(t, ivan, contact.Phone, phone)
	s.list(t, ivan, contact.Phone, phone)
}

// A code that was sent before a contact was deleted does not confirm it after.
func TestDeletedContactHasNoCode(t *testing.T) {
	s := open(t, nil)
	s.add(t, ivan, contact.Phone, phone)
	wants(t, s.RequireConfirmation(t.Context(), operator, ivan, contact.Phone, phone), "")
	code := s.code(t)
	wants(t, s.Delete(t.Context(), operator, ivan, contact.Phone, phone), "")
	s.add(t, ivan, contact.Phone, phone)
	_, err := s.SubmitConfirmation(t.Context(), operator, ivan, contact.Phone, phone, code)
	wants(t, err, fault.InvalidCode)
}

func TestLegacyView(t *testing.T) {
	s := open(t, nil)
	main := func(want string) {
		t.Helper()
		c, found, err := s.Main(t.Context(), operator, ivan, contact.Email)
		if err != nil || found != (want != "") || found && show(c) != want {
			t.Errorf("%q, %v, want %q", show(c), err, want)
		}
	}
	main("")
	wants(t, s.DeleteMain(t.Context(), operator, ivan, contact.Email), "")
	s.add(t, ivan, contact.Email, "first@example.ru")
	s.now = s.now.Add(time.Second)
	s.add(t, ivan, contact.Email, "second@example.ru")
	main("first@example.ru")
	s.confirm(t, ivan, contact.Email, "second@example.ru")
	wants(t, s.SetSecondaryAuth(t.Context(), operator, ivan, contact.Email, "second@example.ru"), "")
	main("second@example.ru confirmed secondary")
	s.now = s.now.Add(time.Second)
	wants(t, s.SetMain(t.Context(), operator, ivan, contact.Email, "Third@example.ru"), "")
	main("Third@example.ru primary")
	wants(t, s.SetMain(t.Context(), operator, ivan, contact.Email, "second@example.ru"), "")
	main("second@example.ru confirmed primary secondary")
	s.list(t, ivan, contact.Email, "first@example.ru", "second@example.ru confirmed primary secondary", "Third@example.ru")
	wants(t, s.SetMain(t.Context(), operator, ivan, contact.Email, "x"), fault.InvalidEmail)
	// Deleting waits for the method.
	s.methods[ivan+" otpviaemail"] = true
	wants(t, s.DeleteMain(t.Context(), operator, ivan, contact.Email), fault.WrongOperation)
	main("second@example.ru confirmed primary secondary")
	s.methods = nil
	wants(t, s.DeleteMain(t.Context(), operator, ivan, contact.Email), "")
	main("first@example.ru")
}

// TestPhonesOfEarlierRules checks that a stored number, which the rules of today read in another way or
// refuse, is found by its digits, keeps them, and can be given roles and deleted.
func TestPhonesOfEarlierRules(t *testing.T) {
	for _, kept := range []string{"9161234567", "4951234567", "81079161234567"} {
		s := open(t, nil)
		old := contact.Contact{UserID: ivan, Type: contact.PhoneNumber, Value: kept, Confirmed: true}
		if added, err := (store.Contacts{DB: s.db}).AddContact(t.Context(), old, kept, false); !added || err != nil {
			t.Fatal(added, err)
		}
		normal, ok, err := s.Confirmed(t.Context(), ivan, contact.Phone, kept)
		if normal != kept || !ok || err != nil {
			t.Errorf("%s: %s, %t, %v", kept, normal, ok, err)
		}
		_, err = s.SetPrimary(t.Context(), operator, ivan, contact.Phone, kept, true)
		wants(t, err, "")
		s.list(t, ivan, contact.Phone, kept+" confirmed primary")
		wants(t, s.SetSecondaryAuth(t.Context(), operator, ivan, contact.Phone, kept), "")
		s.add(t, ivan, contact.Phone, phone)
		s.confirm(t, ivan, contact.Phone, phone)
		_, err = s.SetPrimary(t.Context(), operator, ivan, contact.Phone, phone, true)
		wants(t, err, "")
		wants(t, s.Delete(t.Context(), operator, ivan, contact.Phone, kept), "")
	}
}

func TestInside(t *testing.T) {
	s := open(t, nil)
	wants(t, s.Register(t.Context(), ivan, contact.Phone, phone), "")
	s.list(t, ivan, contact.Phone, phone+" primary")
	if _, found, err := s.ForOneTime(t.Context(), ivan, contact.Phone); found || err != nil {
		t.Error(found, err)
	}
	for _, confirmed := range []bool{false, true} {
		normal, ok, err := s.Confirmed(t.Context(), ivan, contact.Phone, "8"+phone[1:])
		if ok != confirmed || err != nil || normal != phone {
			t.Errorf("confirmed: %s, %t, %v, want %t", normal, ok, err, confirmed)
		}
		s.confirm(t, ivan, contact.Phone, phone)
	}
	wants(t, s.SetSecondaryAuth(t.Context(), operator, ivan, contact.Phone, phone), "")
	if c, found, err := s.ForOneTime(t.Context(), ivan, contact.Phone); !found || c.Value != phone || err != nil {
		t.Error(c, found, err)
	}
	_, err := s.SetNotification(t.Context(), operator, ivan, contact.Phone, phone, true)
	wants(t, err, "")
	addresses := contact.Addresses{Store: store.Contacts{DB: s.db}}
	for channel, want := range map[notify.Channel][]string{notify.SMS: {phone}, notify.Email: {}, notify.Push: nil} {
		got, err := addresses.NotificationAddresses(t.Context(), ivan, channel)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Error(channel, d, err)
		}
	}
	s.add(t, ivan, contact.Phone, "79265550000")
	s.add(t, ivan, contact.Email, mail)
	for channel, want := range map[notify.Channel][]string{notify.SMS: {phone}, notify.Email: {}, notify.Push: nil} {
		got, err := addresses.ConfirmedAddresses(t.Context(), ivan, channel)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Error(channel, d, err)
		}
	}
	wants(t, s.DeleteAll(t.Context(), ivan), "")
	s.list(t, ivan, contact.Phone)
	if _, ok, err := s.Confirmed(t.Context(), ivan, contact.Phone, phone); ok || err != nil {
		t.Error(ok, err)
	}
}

// Every operation for an operator asks first whether the user may be reached; a user of
// another operator and a missing user get the same answer, and nothing changes.
func TestReach(t *testing.T) {
	for name, call := range map[string]func(s *shelf, t *testing.T, userID string) error{
		"List": func(s *shelf, t *testing.T, u string) error {
			_, err := s.List(t.Context(), operator, u, contact.Phone)
			return err
		},
		"Add": func(s *shelf, t *testing.T, u string) error {
			_, err := s.Add(t.Context(), operator, u, contact.Phone, "x")
			return err
		},
		"Confirm": func(s *shelf, t *testing.T, u string) error {
			_, err := s.Confirm(t.Context(), operator, u, contact.Phone, phone)
			return err
		},
		"RequireConfirmation": func(s *shelf, t *testing.T, u string) error {
			return s.RequireConfirmation(t.Context(), operator, u, contact.Phone, phone)
		},
		"SubmitConfirmation": func(s *shelf, t *testing.T, u string) error {
			_, err := s.SubmitConfirmation(t.Context(), operator, u, contact.Phone, phone, "123456")
			return err
		},
		"SetPrimary":       func(s *shelf, t *testing.T, u string) error { return roles["primary"](s, t, u, phone) },
		"SetNotification":  func(s *shelf, t *testing.T, u string) error { return roles["notification"](s, t, u, phone) },
		"SetSecondaryAuth": func(s *shelf, t *testing.T, u string) error { return roles["secondary"](s, t, u, phone) },
		"Delete": func(s *shelf, t *testing.T, u string) error {
			return s.Delete(t.Context(), operator, u, contact.Phone, phone)
		},
		"Main": func(s *shelf, t *testing.T, u string) error {
			_, _, err := s.Main(t.Context(), operator, u, contact.Phone)
			return err
		},
		"SetMain": func(s *shelf, t *testing.T, u string) error {
			return s.SetMain(t.Context(), operator, u, contact.Phone, phone)
		},
		"DeleteMain": func(s *shelf, t *testing.T, u string) error {
			return s.DeleteMain(t.Context(), operator, u, contact.Phone)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, nil)
			wants(t, s.Register(t.Context(), other, contact.Phone, phone), "")
			var texts []string
			for _, u := range []string{other, "99999999-0000-4000-8000-000000000000"} {
				err := call(s, t, u)
				wants(t, err, fault.UserNotFound)
				texts = append(texts, fmt.Sprint(err))
			}
			if texts[0] != texts[1] || s.reached != 2 {
				t.Errorf("%q, asked %d times", texts, s.reached)
			}
			c, found, err := store.Contacts{DB: s.db}.Contact(t.Context(), other, contact.PhoneNumber, phone)
			if show(c) != phone+" primary" || !found || err != nil || len(s.orders)+len(s.events) != 0 {
				t.Errorf("%s, %v, %v, %v", show(c), err, s.orders, s.events)
			}
		})
	}
}

func TestSettings(t *testing.T) {
	for name, change := range map[string]func(*contact.Settings){
		"digits":   func(s *contact.Settings) { s.Codes.Digits = 4 },
		"life":     func(s *contact.Settings) { s.Codes.Life = 0 },
		"attempts": func(s *contact.Settings) { s.Codes.Attempts = 1000 },
		"resend":   func(s *contact.Settings) { s.Codes.Resend = -1 },
	} {
		s := contact.DefaultSettings()
		change(&s)
		if _, err := contact.New(s, contact.Deps{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
