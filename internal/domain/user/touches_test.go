// SPDX-License-Identifier: Apache-2.0

package user

import (
	"crypto/rand"
	"maps"
	"strings"
	"testing"
	"time"
)

// TestTouchesKeepsTheName checks that a service does not make the name of an account again that Touches made, and that
// the result is the same.
func TestTouchesKeepsTheName(t *testing.T) {
	naming, err := NewNaming(DefaultComponents(), true)
	if err != nil {
		t.Fatal(err)
	}
	s := &Service{Naming: naming, Now: time.Now, Rand: rand.Reader}
	account := Account{Login: "petrov", Group: "Default", Components: map[string]string{"CN": "Petrov Petr", "C": "RU", "O": "Example"}}
	touched := account
	if len(s.Touches(&touched).Values()) < 2 {
		t.Fatalf("an account with a name touches %q", s.Touches(&touched).Values())
	}
	makes := func(a Account) (e entry, allocations float64) {
		allocations = testing.AllocsPerRun(100, func() {
			if e, err = s.entry(a); err != nil {
				t.Fatal(err)
			}
		})
		return e, allocations
	}
	anew, many := makes(account)
	kept, few := makes(touched)
	if anew.name.Key != kept.name.Key || anew.name.Text != kept.name.Text || !maps.Equal(anew.name.Values, kept.name.Values) {
		t.Errorf("the name is %+v, and %+v after Touches", anew.name, kept.name)
	}
	if few >= many-5 {
		t.Errorf("%v allocations after Touches, %v without", few, many)
	}
	// A name that is refused is refused by Add, with its field.
	wrong := Account{Login: "petrov", Group: "Default", Components: map[string]string{"CN": ""}}
	s.Touches(&wrong)
	if _, err := s.entry(wrong); err == nil || !strings.Contains(err.Error(), "CN") {
		t.Errorf("a wrong name: %v", err)
	}
}
