// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"strconv"
	"strings"
	"testing"

	"tamga/internal/domain/effect"
	"tamga/internal/domain/passkey"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/user"
	"tamga/internal/web/pages/view"
)

// TestGroupChoice: a form offers some groups, and asks for the name of one of very many.
func TestGroupChoice(t *testing.T) {
	groups := make([]string, mostOffered+1)
	for i := range groups {
		groups[i] = strconv.Itoa(i)
	}
	if f := groupChoice(groups[1:]); f.kind != kindChoice || len(f.choices) != mostOffered || !f.required {
		t.Errorf("%d groups: a field of kind %q with %d choices", mostOffered, f.kind, len(f.choices))
	}
	f := groupChoice(groups)
	if f.kind == kindChoice || len(f.choices) != 0 || !f.required {
		t.Errorf("%d groups: a field of kind %q with %d choices", len(groups), f.kind, len(f.choices))
	}
	for _, w := range view.Languages {
		if w.TextOr(f.hint, "") == "" {
			t.Errorf("%s has no text for %s", w.Language, f.hint)
		}
	}
}

// TestIdentifier checks what people may type for an operation or an outcome.
func TestIdentifier(t *testing.T) {
	for _, c := range []struct{ family, text, want string }{
		{"audited.", "signedin", "SignedIn"}, {"audited.", view.Languages[1].TextOr("audited.SignedIn", ""), "SignedIn"}, {"audited.", "Nothing", "Nothing"}, {"audited.", "", ""},
		{"outcome.", "ЗАПРЕЩЕНО", "access_denied"}, {"outcome.", "an error has occurred", "An_error_has_occurred"},
		{"outcome.", "нет такого сертификата", "нет такого сертификата"}, // of two codes
	} {
		if got := identifier(view.Languages[1].Family(c.family), c.text); got != c.want {
			t.Errorf("%s %q is %q, want %q", c.family, c.text, got, c.want)
		}
	}
}

// TestSameName compares what a person typed with the name of what a command ends.
func TestSameName(t *testing.T) {
	for _, c := range []struct {
		typed, name string
		want        bool
	}{
		{"anna", "anna", true}, {" Anna\t", "anna", true}, {"anna", "ANNA", true}, {"иванова", "Иванова", true}, {"ЁЖ", "ёж", true},
		{"a b", " a  b\u00a0", true}, {"cafe\u0301", "CAFÉ", true}, {"https://hooks.example.org/a", "https://hooks.example.org/a", true},
		{"ann", "anna", false}, {"", "anna", false}, {"ab", "a b", false}, {"аnna", "anna", false}, {"", "\u200b", false}, {"\u200b", "\u200b", true},
	} {
		if got := sameName(c.typed, c.name); got != c.want {
			t.Errorf("%q for %q: %t", c.typed, c.name, got)
		}
	}
}

// TestCommandEffects checks that each command has effects, and none that the operation of the interface with
// its name does not have.
func TestCommandEffects(t *testing.T) {
	deps := bare()
	deps.Passkeys = &passkey.Service{}
	shared := 0
	for _, d := range New(deps).commandsByName {
		if d.effects == nil {
			t.Errorf("%s has no effects", d.name)
			continue
		}
		if of, known := effect.OfOperation(d.operation); known {
			if shared++; d.effects.possible&^of != 0 || d.effects.possible == effect.None && d.operation != "SetUserProperty" {
				t.Errorf("%s has the effects %s, and %s has %s", d.name, d.effects.possible, d.operation, of)
			}
		}
	}
	if shared < 40 {
		t.Errorf("only %d commands are operations of the interface with effects", shared)
	}
}

// TestCommandWords checks that each command, with its fields, has words.
func TestCommandWords(t *testing.T) {
	a := New(bare())
	if len(a.commandsByName) < 60 {
		t.Fatalf("only %d commands", len(a.commandsByName))
	}
	names := map[string]int{}
	for _, g := range a.commandGroups {
		// The entry of a form in the audit log has the name of a reading operation.
		if !strings.HasPrefix(g.reads, "Get") && !strings.HasPrefix(g.reads, "List") {
			t.Errorf("the forms at %s have no operation that reads", g.at)
		}
		for i := range g.list {
			d := &g.list[i]
			names[d.name]++
			want := []string{d.titleKey(), "command.does." + d.wording(), "command.done." + d.wording()}
			for _, f := range d.fields {
				want = append(want, f.labelKey())
				for _, o := range f.choices {
					want = append(want, o.Key)
				}
				want = append(want, f.hint)
			}
			for _, w := range view.Languages {
				for _, key := range want {
					if _, ok := w.Lookup(key); key != "" && !ok {
						t.Errorf("%s: %s has no %s", d.name, w.Language, key)
					}
				}
			}
			if d.operation == "" || d.do == nil || g.right == "" {
				t.Errorf("%s is not whole", d.name)
			}
		}
	}
	for name, n := range names {
		if n != 1 {
			t.Errorf("%d commands have the name %s", n, name)
		}
	}
}

// bare returns what the pages need to have commands, but not to carry them out.
func bare() Deps { return Deps{People: &user.Service{}, Policies: &policy.Editor{}} }
