// SPDX-License-Identifier: Apache-2.0

package ldap

import (
	"strings"
	"testing"
)

func TestPlaceOf(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"cn=a,dc=b", "CN=A, DC=B", true}, {"cn=a+sn=b,dc=c", "SN=b+CN=a,dc=c", true}, {`cn=a\2cb,dc=c`, `cn=a\,b,dc=c`, true},
		{"cn=a,dc=b", "cn=a,dc=c", false}, {"cn=a,cn=b", "cn=b,cn=a", false}, {`cn=a\,dc=b`, "cn=a,dc=b", false}, {"cn=a", "cn=a,dc=b", false},
	} {
		a, okA := placeOf(c.a)
		b, okB := placeOf(c.b)
		if !okA || !okB || (a == b) != c.same {
			t.Errorf("%s and %s: %t %t, the same: %t", c.a, c.b, okA, okB, a == b)
		}
	}
	if _, ok := placeOf("no name"); ok {
		t.Error("a text that is no name")
	}
}

// FuzzPlaceOf reads names of a hostile server. Letter case never makes two places of one.
func FuzzPlaceOf(f *testing.F) {
	for _, dn := range []string{"cn=a,dc=b", `cn=\2c\,+sn="x",dc=#0401`, "=", "cn=", strings.Repeat("cn=a,", 1000) + "dc=b", "\x00=\xff", `cn=#04`, "cn=a\\"} {
		f.Add(dn)
	}
	f.Fuzz(func(t *testing.T, dn string) {
		p, ok := placeOf(dn)
		again, okAgain := placeOf(dn)
		if ok != okAgain || p != again {
			t.Errorf("%q has two places", dn)
		}
	})
}
