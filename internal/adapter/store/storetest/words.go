// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/user"
)

// waysToFind are searches that find one person, and no other of the people of Words.
var waysToFind = []string{
	// Names, in any order and letter case.
	"Ёлкина-Соловьёва Фёкла Артёмовна", "Фёкла Артёмовна Ёлкина-Соловьёва", "елкина соловьева", "ЕЛКИНА", "ёлк", "ел фе", "фе ел", "фёк", "соловьёва фекла",
	"Соловьева Ф.А.", "Елкина Ф. А.", "ф а соловьёва", "елкина‐соловьева", "«Ёлкина»", "Елкина, Фекла", "Е\u0308лкина", "главный бухг артемовна",
	// Login and addresses.
	"f.yolkina", "F.YOLKINA", "yolkina", "Fekla.Yolkina@Sever-Les.example", "fekla.yolkina@", "yolkina@sever", "sever-les", "les.example фекла",
	// The phone in any form.
	"+7 926 123-45-67", "8 (926) 123-45-67", "89261234567", "9261234567", "926-123", "123-45-67", "123 45", "45-67 фекла", "+7(926)1234567", "8926123", "фекла 4567",
	// Numbers of the name and of the token.
	"112-233-445 95", "11223344595", "112 233 445 95", "112-233", "5001 0073 2259", "500100732259", "5001007", "ga00123456", "GA0012",
	// The login at another provider, and a mix of everything.
	"feklusha", "елкина 926 5001007", "фекла yolkina север",
}

// Words searches for people by parts of what is known of them.
func Words(t *testing.T, open func(t *testing.T) *store.DB) {
	db := open(t)
	users, tokens, contacts := store.Users{DB: db}, store.Tokens{DB: db}, store.Contacts{DB: db}
	for _, g := range []string{"Default", "Alpha", "Beta"} {
		group(t, db, g)
	}
	operator := func(id string, groups ...string) audit.Principal {
		must(t, users.AddUser(t.Context(), user.User{ID: id, Login: id, Group: "Default", Operator: true, CreatedAt: start}, id))
		must(t, users.SetOperatorGroups(t.Context(), id, groups))
		return audit.Principal{UserID: id}
	}
	both, alpha := operator("both", "Alpha", "Beta"), operator("alpha", "Alpha")
	add := func(n int, group, login, shown, phone, mail string, name map[string]string) string {
		t.Helper()
		id := fmt.Sprintf("00000000-0000-4000-8000-%012d", n)
		must(t, users.AddUser(t.Context(), user.User{ID: id, Login: login, DisplayName: shown, Group: group, CreatedAt: start}, user.FoldLogin(login)))
		text := fmt.Sprint("CN=", name["2.5.4.3"])
		must(t, users.SetName(t.Context(), id, user.Name{Text: text, Folded: strings.ToLower(text), Key: [32]byte{byte(n), byte(n >> 8)}, Values: name}))
		for typ, value := range map[contact.Type]string{contact.PhoneNumber: phone, contact.EmailAddress: mail} {
			_, err := contacts.AddContact(t.Context(), contact.Contact{UserID: id, Type: typ, Value: value, Confirmed: true, CreatedAt: start}, strings.ToLower(value), false)
			must(t, err)
		}
		return id
	}
	fekla := add(1, "Beta", "f.yolkina", "Ёлкина-Соловьёва Фёкла Артёмовна", "79261234567", "Fekla.Yolkina@Sever-Les.example", map[string]string{
		"2.5.4.3": "Ёлкина-Соловьёва Фёкла Артёмовна", "2.5.4.4": "Ёлкина-Соловьёва", "2.5.4.42": "Фёкла Артёмовна", "2.5.4.10": "ООО «Север»", "2.5.4.12": "Главный бухгалтер",
		"1.2.643.100.3": "11223344595", "1.2.643.3.131.1.1": "500100732259", "2.5.4.6": "RU",
	})
	must(t, users.SetExternalLogin(t.Context(), fekla, user.ExternalLogin{Login: "feklusha", Issuer: "https://idp"}, "https://idp", "feklusha"))
	said(t, true)(tokens.AddOathToken(t.Context(), oath.Record{Key: "ga00123456", Serial: "GA00123456", UserID: fekla, Type: oath.HOTP, Sealed: []byte("sealed")}))
	add(2, "Alpha", "a.petrov", "Петров Артём Фёдорович", "79271230000", "petrov@sever.example", map[string]string{"2.5.4.3": "Петров Артём Фёдорович", "2.5.4.10": "ООО «Север»", "2.5.4.12": "Главный инженер"})
	add(3, "Alpha", "o'connor", "О'Коннор Шон", "79990004567", "sean@sever.example", map[string]string{"2.5.4.3": "О’Коннор Шон", "2.5.4.6": "RU"})
	add(4, "Alpha", "", "Ким О Сен", "79990000001", "kim@sever.example", map[string]string{"2.5.4.3": "Ким О Сен"})
	add(5, "Beta", "100%_x", "Соловьёв Фёдор", "78005550100", "x@les.example", map[string]string{"2.5.4.3": "Соловьёв Фёдор Ильич"})

	service := &user.Service{Store: users, SearchStore: users, Now: func() time.Time { return start.Add(time.Minute) }}
	find := func(who audit.Principal, text string) string {
		t.Helper()
		m, err := service.FindByWords(t.Context(), who, text, "", 50)
		if err != nil || m.More || m.Next != "" || len(m.IDs) != len(m.Users) {
			t.Fatalf("%q: %+v, %v", text, m, err)
		}
		var found []string
		for _, u := range m.Users {
			found = append(found, strings.TrimLeft(u.ID[24:], "0"))
		}
		slices.Sort(found)
		return strings.Join(found, ",")
	}
	check := func(who audit.Principal, text, want string) {
		t.Helper()
		if got := find(who, text); got != want {
			t.Errorf("%q finds %q, want %q", text, got, want)
		}
	}
	table := func() {
		t.Helper()
		if len(waysToFind) < 40 {
			t.Errorf("there are only %d ways to find a person", len(waysToFind))
		}
		for _, text := range waysToFind {
			check(both, text, "1")
		}
		for text, want := range map[string]string{
			"север": "1,2", "главный": "1,2", "со": "1,5", "артем": "1,2", "оконнор": "3", "О`Коннор": "3", "о'конн шон": "3", "шон о": "3", "ким о сен": "4", "4567": "1,3", "79": "1,2,3,4",
			"8 800 555 01 00": "5", "100%_x": "5", "елкина петров": "", "лкина": "", "екла": "", "ru": "", "_xx": "", "%%ки": "4", "артем\\": "1,2", "kim@sever.example": "4", "example": "",
		} {
			check(both, text, want)
		}
		check(alpha, "артём", "2")
		check(alpha, "ёлкина", "")
		if _, err := service.FindByWords(t.Context(), audit.Principal{UserID: fekla}, "ёлкина", "", 50); code(err) != fault.AccessDenied {
			t.Errorf("a person who is no operator searches: %v", err)
		}
	}
	table()
	// Those who look for a recipient compare display names and logins alone, in the groups that they may see.
	named := func(groups []string, text string, limit int) (string, bool) {
		t.Helper()
		list, more, err := service.Named(t.Context(), groups, text, limit)
		must(t, err)
		var found []string
		for _, u := range list {
			found = append(found, u.Login)
		}
		return strings.Join(found, ","), more
	}
	for _, c := range []struct {
		groups     []string
		text, want string
	}{
		{nil, "фекла елкина", "f.yolkina"}, {nil, "f.yo", "f.yolkina"}, {nil, "ёлкина f.yol", "f.yolkina"}, {nil, "со", "100%_x,f.yolkina"},
		{[]string{"Beta"}, "артем", "f.yolkina"}, {[]string{"Alpha"}, "артем", "a.petrov"}, {[]string{"Alpha", "Beta"}, "артем", "a.petrov,f.yolkina"}, {[]string{}, "артем", ""}, {[]string{"Gamma"}, "артем", ""},
		// Nothing else of a person is compared, alone or beside the name.
		{nil, "9261234567", ""}, {nil, "4567", ""}, {nil, "sever-les", ""}, {nil, "11223344595", ""}, {nil, "500100732259", ""}, {nil, "главный", ""}, {nil, "feklusha", ""}, {nil, "ga00123456", ""},
		{nil, "фекла 4567", ""}, {nil, "елкина главный", ""}, {nil, "ильич", ""},
	} {
		if got, more := named(c.groups, c.text, 50); got != c.want || more {
			t.Errorf("%q in %q is named by %q, %v, want %q", c.text, c.groups, got, more, c.want)
		}
	}
	if _, more := named(nil, "со", 1); !more {
		t.Error("there are more people of a name, and the search does not say so")
	}
	if _, _, err := service.Named(t.Context(), nil, "с", 50); code(err) != fault.InvalidFilterValue {
		t.Errorf("one letter: %v", err)
	}
	// An operator of many people: the search begins with the words.
	var many lock.Set
	var changes []func(ctx context.Context) (bool, error)
	for i := range 2100 {
		id, login := fmt.Sprintf("90000000-0000-4000-8000-%012d", i), fmt.Sprintf("many%04d", i)
		many = many.And(lock.User(id).Logins(login))
		changes = append(changes, func(ctx context.Context) (bool, error) {
			return true, users.AddUser(ctx, user.User{ID: id, Login: login, DisplayName: "Много", Group: "Beta", CreatedAt: start}, login)
		})
	}
	must(t, users.Together(t.Context(), many, true, changes))
	table()
	if got, more := named([]string{"Beta"}, "много", 3); got != "many0000,many0001,many0002" && strings.Count(got, ",") != 2 || !more {
		t.Errorf("many are named: %q, %v", got, more)
	}
	m, err := service.FindByWords(t.Context(), both, "много", "", 50)
	if err != nil || !m.More || len(m.IDs) != user.MostFound || len(m.Users) != 50 || m.Next == "" {
		t.Errorf("many: %d, %v, %d, %q, %v", len(m.IDs), m.More, len(m.Users), m.Next, err)
	}
	seen := map[string]bool{}
	for after, more := "", true; more; more = after != "" {
		m, err := service.FindByWords(t.Context(), both, "many00", after, 30)
		must(t, err)
		if m.More || len(m.IDs) != 100 {
			t.Fatalf("a page: %d, %v", len(m.IDs), m.More)
		}
		for _, u := range m.Users {
			seen[u.ID] = true
		}
		after = m.Next
	}
	if len(seen) != 100 {
		t.Errorf("the pages have %d people", len(seen))
	}

	// What changes is found anew, and what is gone no more.
	must(t, users.SetLogin(t.Context(), fekla, "fe.new", "fe.new"))
	must(t, users.SetDisplayName(t.Context(), fekla, "Берёзкина Фёкла"))
	check(both, "fe.new", "1")
	check(both, "берез", "1")
	check(both, "f.yolkina", "")
	check(both, "yolkina", "1") // of the address
	check(both, "елкина", "1")  // of the distinguished name
	must(t, users.SetName(t.Context(), fekla, user.Name{Text: "CN=Ива", Folded: "cn=ива", Key: [32]byte{9}, Values: map[string]string{"2.5.4.3": "Ива"}}))
	check(both, "елкина", "")
	check(both, "ива", "1")
	check(both, "фекла", "1") // of the name that is shown
	must(t, contacts.DeleteContact(t.Context(), fekla, contact.EmailAddress, "fekla.yolkina@sever-les.example"))
	check(both, "yolkina", "")
	check(both, "9261234567", "1")
	must(t, contacts.DeleteContacts(t.Context(), fekla))
	check(both, "9261234567", "")
	must(t, users.DeleteExternalLogin(t.Context(), fekla, "https://idp"))
	check(both, "feklusha", "")
	must(t, users.DeleteUser(t.Context(), fekla))
	check(both, "ива", "")

	for _, text := range []string{"", " ", "я", "и и", "..", "\xff", strings.Repeat("x", 1025), "aa bb cc dd ee ff gg hh ii"} {
		if _, err := service.FindByWords(t.Context(), both, text, "", 50); code(err) != fault.InvalidFilterValue {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := service.FindByWords(t.Context(), both, "много", "", 0); code(err) != fault.BadBounds {
		t.Errorf("a page of nothing: %v", err)
	}
}

// code returns the code of a fault, "" for other errors.
func code(err error) string {
	if f, ok := fault.As(err); ok {
		return f.Code
	}
	return ""
}
