// SPDX-License-Identifier: Apache-2.0

package lock_test

import (
	"slices"
	"testing"

	"tamga/internal/domain/lock"
)

func TestSet(t *testing.T) {
	s := lock.User("b", "", "a", "b").Logins("x", "").Contact("PhoneNumber", "79")
	if got, want := s.Users(), []string{"a", "b"}; !slices.Equal(got, want) {
		t.Errorf("users %q, want %q", got, want)
	}
	if got, want := s.Values(), []string{"contact PhoneNumber 79", "login x"}; !slices.Equal(got, want) {
		t.Errorf("values %q, want %q", got, want)
	}
	for _, c := range []struct {
		other lock.Set
		lacks string
	}{
		{lock.Set{}, ""},
		{lock.User("a"), ""},
		{lock.User("a", "c"), "user c"},
		{lock.User("b").Logins("x"), ""},
		{lock.User("b").Logins("y"), "login y"},
		{lock.User().Contact("EmailAddress", "79"), "contact EmailAddress 79"},
		{lock.Named("x"), "name x"},
	} {
		if got := s.Lacks(c.other); got != c.lacks {
			t.Errorf("%v lacks %q of %v, want %q", s, got, c.other, c.lacks)
		}
	}
	if lacks := s.And(lock.User("c"), lock.Named("x")).Lacks(lock.Named("x").And(lock.User("a", "c"))); lacks != "" {
		t.Errorf("a sum lacks %q", lacks)
	}
	base := lock.User("a").Logins("m")
	one, two := base.Logins("n"), base.Logins("o")
	if one.Lacks(lock.Set{}.Logins("n")) != "" || two.Lacks(lock.Set{}.Logins("o")) != "" || base.Lacks(lock.Set{}.Logins("n")) == "" {
		t.Error("a set that was added to has changed")
	}
}
