// SPDX-License-Identifier: Apache-2.0

package user_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/user"
)

func TestDistinguishedName(t *testing.T) {
	w := newTown(t)
	id := w.person(t, w.a, "ivanov")
	for _, c := range []struct {
		name  string
		set   map[string]string
		fault string
		text  string
		want  map[int]string
	}{
		{"by number", map[string]string{"11": "Иванов", "9": "ООО"}, "", "CN=Иванов,O=ООО", map[int]string{11: "Иванов", 9: "ООО"}},
		{"it replaces the whole", map[string]string{"11": "Иванов", "4": "007700000000"}, "", "CN=Иванов,INN=007700000000", map[int]string{11: "Иванов", 4: "007700000000"}},
		{"by OID and name", map[string]string{"2.5.4.3": "a", "inn": "1", "Street": "s"}, "", "CN=a,Street=s,INN=1", map[int]string{11: "a", 4: "1", 12: "s"}},
		{"empty is none", map[string]string{"11": "a", "4": ""}, "", "CN=a", map[int]string{11: "a"}},
		{"escaped in the text alone", map[string]string{"11": `a,b=c+d"e\f`, "9": "#1"}, "", `CN=a\,b\=c\+d\"e\\f,O=\#1`, map[int]string{11: `a,b=c+d"e\f`, 9: "#1"}},
		{"required", map[string]string{"9": "ООО"}, fault.InvalidParameters, "", nil},
		{"required and empty", map[string]string{"11": ""}, fault.InvalidParameters, "", nil},
		{"nothing", nil, fault.InvalidParameters, "", nil},
		{"too long", map[string]string{"11": "a", "6": "RUS"}, fault.InvalidParameters, "", nil},
		{"longest, in characters", map[string]string{"11": strings.Repeat("я", 256)}, "", "CN=" + strings.Repeat("я", 256), map[int]string{11: strings.Repeat("я", 256)}},
		{"one too long", map[string]string{"11": strings.Repeat("я", 257)}, fault.InvalidParameters, "", nil},
		{"unknown", map[string]string{"11": "a", "99": "x"}, fault.InvalidParameters, "", nil},
		{"twice", map[string]string{"11": "a", "CN": "a"}, fault.InvalidParameters, "", nil},
		{"control", map[string]string{"11": "a\nb"}, fault.InvalidParameters, "", nil},
		{"another encoding", map[string]string{"11": "a\ufffdb"}, fault.InvalidParameters, "", nil},
		{"direction", map[string]string{"11": "a\u202eb"}, fault.InvalidParameters, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := w.info(t, w.a, id).Name
			if got := codeOf(w.SetDN(t.Context(), w.a, id, c.set)); got != c.fault {
				t.Fatalf("%q, want %q", got, c.fault)
			}
			if c.fault != "" {
				if now := w.info(t, w.a, id).Name; now != before {
					t.Errorf("a refusal changed %q to %q", before, now)
				}
				return
			}
			got, err := w.DN(t.Context(), w.a, id)
			if d := cmp.Diff(c.want, got); d != "" || err != nil {
				t.Error(d, err)
			}
			if text := w.info(t, w.a, id).Name; text != c.text {
				t.Errorf("text %q, want %q", text, c.text)
			}
		})
	}
}

func TestUniqueNames(t *testing.T) {
	for _, unique := range []bool{false, true} {
		w := newTownOn(t, storetest.SQLite(t), unique)
		first, second := w.person(t, w.a, "first"), w.person(t, w.b, "second")
		name := map[string]string{"11": "Иванов Иван", "9": "ООО"}
		same := map[string]string{"CN": "иванов ИВАН", "O": "ооо"}
		if err := w.SetDN(t.Context(), w.a, first, name); err != nil {
			t.Fatal(err)
		}
		if err := w.SetDN(t.Context(), w.a, first, same); err != nil {
			t.Errorf("the same user again: %v", err)
		}
		said, err := w.CheckDNUnique(t.Context(), w.b, same)
		if err != nil {
			t.Fatal(err)
		}
		err = w.SetDN(t.Context(), w.b, second, same)
		if unique != fault.Is(err, fault.DuplicateName) {
			t.Errorf("unique %v: %v", unique, err)
		}
		// If names need not be unique, a name in another group does not count.
		if said.IsUnique != !unique || said.Required != unique {
			t.Errorf("unique %v: said %+v", unique, said)
		}
		if said, err := w.CheckDNUnique(t.Context(), w.a, same); err != nil || said.IsUnique || said.Data != "CN=иванов ИВАН,O=ооо" {
			t.Errorf("in one's own group: %+v, %v", said, err)
		}
		if said, err := w.CheckDNUnique(t.Context(), w.a, map[string]string{"11": "Иванов Иван"}); err != nil || !said.IsUnique {
			t.Errorf("a part of it: %+v, %v", said, err)
		}
		moved := w.SetGroup(t.Context(), w.ac, first, "C", map[string]string{"10": "Отдел"})
		if moved != nil {
			t.Fatal(moved)
		}
		if unique {
			if err := w.SetDN(t.Context(), w.b, second, same); err != nil {
				t.Errorf("after the other one changed: %v", err)
			}
			if err := w.SetGroup(t.Context(), w.ac, first, "A", map[string]string{"10": ""}); !fault.Is(err, fault.DuplicateName) {
				t.Errorf("a change of group that makes a duplicate: %v", err)
			}
			if g, err := w.GroupOf(t.Context(), w.ac, first); g != "C" || err != nil {
				t.Errorf("group %q, %v: the refusal was not undone", g, err)
			}
		}
	}
}

func TestSetGroup(t *testing.T) {
	w := newTown(t)
	id := w.person(t, w.a, "ivanov")
	if err := w.SetDN(t.Context(), w.a, id, map[string]string{"11": "Иванов", "9": "ООО"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name       string
		who        audit.Principal
		group      string
		components map[string]string
		fault      string
		want       string
	}{
		{"to a group of another operator", w.a, "B", nil, fault.InvalidParameters, "A CN=Иванов,O=ООО"},
		{"to no group", w.a, "", nil, fault.InvalidParameters, "A CN=Иванов,O=ООО"},
		{"by another operator", w.b, "B", nil, fault.UserNotFound, "A CN=Иванов,O=ООО"},
		{"without the required", w.ac, "C", map[string]string{"11": ""}, fault.InvalidParameters, "A CN=Иванов,O=ООО"},
		{"unknown component", w.ac, "C", map[string]string{"77": "x"}, fault.InvalidParameters, "A CN=Иванов,O=ООО"},
		{"with components", w.ac, "C", map[string]string{"11": "Петров", "10": "Отдел"}, "", "C CN=Петров,OU=Отдел,O=ООО"},
		{"without", w.ac, "A", map[string]string{}, "", "A CN=Петров,OU=Отдел,O=ООО"},
		{"removing one", w.ac, "A", map[string]string{"9": ""}, "", "A CN=Петров,OU=Отдел"},
	} {
		if got := codeOf(w.SetGroup(t.Context(), c.who, id, c.group, c.components)); got != c.fault {
			t.Errorf("%s: %q, want %q", c.name, got, c.fault)
		}
		i := w.info(t, w.ac, id)
		if got := i.Group + " " + i.Name; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestNamingIsChecked(t *testing.T) {
	good := user.Component{ID: 1, OID: "2.5.4.3", Name: "CN", MaxLength: 10}
	change := func(fn func(c *user.Component)) []user.Component {
		c := good
		fn(&c)
		return []user.Component{c}
	}
	for name, list := range map[string][]user.Component{
		"no OID":             change(func(c *user.Component) { c.OID = "CN" }),
		"no name":            change(func(c *user.Component) { c.Name = "" }),
		"name with =":        change(func(c *user.Component) { c.Name = "a=b" }),
		"no length":          change(func(c *user.Component) { c.MaxLength = 0 }),
		"endless":            change(func(c *user.Component) { c.MaxLength = 1 << 20 }),
		"lengths crossed":    change(func(c *user.Component) { c.MinLength = 11 }),
		"default too long":   change(func(c *user.Component) { c.Default = "12345678901" }),
		"default not listed": change(func(c *user.Component) { c.Default, c.Values = "x", []string{"y"} }),
		"twice":              {good, good},
		"OID twice":          {good, {ID: 2, OID: "2.5.4.3", Name: "X", MaxLength: 1}},
	} {
		if _, err := user.NewNaming(list, false); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	n, err := user.NewNaming([]user.Component{
		good, {ID: 2, OID: "2.5.4.6", Name: "C", MaxLength: 2, Required: true, Values: []string{"RU", "BY"}, Default: "RU"},
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	w := newTown(t)
	id := w.person(t, w.a, "ivanov")
	w.Naming = n
	for value, want := range map[string]string{"": "RU", "BY": "BY"} {
		if err := w.SetDN(t.Context(), w.a, id, map[string]string{"1": "x", "2": value}); err != nil {
			t.Fatal(err)
		}
		if got, err := w.DN(t.Context(), w.a, id); err != nil || got[2] != want {
			t.Errorf("%q: %v, %v; want %s", value, got, err, want)
		}
	}
	if err := w.SetDN(t.Context(), w.a, id, map[string]string{"1": "x", "2": "DE"}); !fault.Is(err, fault.InvalidParameters) {
		t.Errorf("a value that is not listed: %v", err)
	}
}
