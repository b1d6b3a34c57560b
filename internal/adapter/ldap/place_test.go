// SPDX-License-Identifier: Apache-2.0

package ldap

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-ldap/ldap/v3"
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

// TestUserAccountControl reads the attribute of Active Directory.
func TestUserAccountControl(t *testing.T) {
	for v, want := range map[string][2]bool{ // disabled, unknown
		"512": {false, false}, "514": {true, false}, "66050": {true, false}, "-2147483646": {true, false}, "0": {false, false},
		"": {false, true}, "TRUE": {false, true}, "9223372036854775808": {false, true}, "0x2": {false, true},
	} {
		e := ldap.NewEntry("cn=a", map[string][]string{"useraccountcontrol": {v}})
		if is, unknown := disabled(e, "userAccountControl"); [2]bool{is, unknown} != want {
			t.Errorf("%q: disabled %t, unknown %t, want %t", v, is, unknown, want)
		}
	}
}

// FuzzPlaceOf reads names of a hostile server. The place of a name does not depend on letter case, on spaces between its
// parts, or on which characters are escaped. It does depend on what is above.
func FuzzPlaceOf(f *testing.F) {
	for _, dn := range []string{"cn=a,dc=b", `cn=\2c\,+sn="x",dc=#0401`, "=", "cn=", strings.Repeat("cn=a,", 1000) + "dc=b", "\x00=\xff", `cn=#04`, "cn=a\\", "cn=\u0130", "CN=A+SN=B , DC=C", "cn=a\\ ,dc=b"} {
		f.Add(dn)
	}
	f.Fuzz(func(t *testing.T, dn string) {
		p, ok := placeOf(dn)
		if !ok {
			return
		}
		parsed, err := ldap.ParseDN(dn)
		if err != nil {
			t.Fatal(err)
		}
		same := map[string]string{}
		if ascii(dn) && !strings.Contains(dn, "#") { // a value in hexadecimal has no letter case
			same["in upper case"], same["in lower case"] = strings.ToUpper(dn), strings.ToLower(dn)
		}
		if rewritten, fine := written(parsed); fine {
			same["written anew"] = rewritten
		}
		for how, other := range same {
			if q, ok := placeOf(other); !ok || p != q {
				t.Errorf("%q and, %s, %q have two places", dn, how, other)
			}
		}
		if q, ok := placeOf("cn=another" + strings.Repeat(",", min(1, len(parsed.RDNs))) + dn); ok && p == q {
			t.Errorf("%q has the place of what is below it", dn)
		}
	})
}

func ascii(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// written writes a name with all characters of its values escaped, each part in reverse, and spaces after commas.
func written(dn *ldap.DN) (text string, fine bool) {
	const hex = "0123456789abcdef"
	var parts []string
	for _, r := range dn.RDNs {
		var of []string
		for _, a := range r.Attributes {
			if a.Type == "" || strings.ContainsFunc(a.Type, func(c rune) bool {
				return c >= utf8.RuneSelf || !('a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '-')
			}) {
				return "", false
			}
			var b strings.Builder
			for _, c := range []byte(a.Value) {
				b.WriteString("\\" + string(hex[c>>4]) + string(hex[c&15]))
			}
			of = append([]string{a.Type + "=" + b.String()}, of...)
		}
		parts = append(parts, strings.Join(of, "+"))
	}
	return strings.Join(parts, ", "), true
}
