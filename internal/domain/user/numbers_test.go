// SPDX-License-Identifier: Apache-2.0

package user_test

import (
	"fmt"
	"strings"
	"testing"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/user"
)

// TestCheckNumbers checks numbers of public registers and of the descriptions of their rules, and that
// every single wrong digit of them is noticed.
func TestCheckNumbers(t *testing.T) {
	t.Parallel()
	components := append(user.DefaultComponents(), user.Component{ID: 20, OID: "1.2.643.100.4", Name: "INNLE", MaxLength: 10, Order: 20})
	naming, err := user.NewNaming(components, false)
	if err != nil {
		t.Fatal(err)
	}
	right := map[string][]string{
		"INN":    {"500100732259", "007707083893", "007830002293"}, // two of them of organisations
		"INNLE":  {"7707083893", "7830002293"},
		"SNILS":  {"11223344595", "08765430300", "08765430200", "00100199800", "00100199965"},
		"OGRN":   {"1027700132195", "1037739010891"},
		"OGRNIP": {"304500116000157"},
	}
	for name, values := range right {
		for _, value := range values {
			if err := naming.CheckNumbers(map[string]string{name: value}); err != nil {
				t.Errorf("%s %s: %v", name, value, err)
			}
		}
		value := values[0]
		for i := range len(value) {
			wrong := value[:i] + fmt.Sprint((value[i]-'0'+1)%10) + value[i+1:]
			if err := naming.CheckNumbers(map[string]string{name: wrong}); !fault.Is(err, fault.InvalidParameters) {
				t.Errorf("%s %s passes: %v", name, wrong, err)
			}
		}
	}
	for _, c := range []struct{ name, value, want string }{
		{"INN", "5001 0073-2259", ""}, {"SNILS", "112–233–445 95", ""}, {"SNILS", "(112)233-445[95]", ""}, {"OGRN", "1 027700 132195", ""}, {"SNILS", "112-233-445 96", "SNILS (3): the check digits do not fit, so at least one digit is wrong"},
		{"O", strings.Repeat("ж", 64), ""}, {"O", strings.Repeat("ж", 65), "O (9): longer than 64 characters, the bound of X.520: a few programs may refuse such a certificate"},
		{"G", strings.Repeat("ж", 128), ""}, {"SN", strings.Repeat("ж", 128), ""},
		{"INN", "1", "INN (4): want 12 digits"},
		{"INN", "7707083893", "INN (4): want 12 digits, the number of an organisation with 00 before its own 10"},
		{"INN", "000000000000", "INN (4): the check digits do not fit, so at least one digit is wrong"},
		{"INN", "50010073225x", "INN (4): want 12 digits"},
		{"INN", "٥٠٠١٠٠", "INN (4): want 12 digits"},
		{"snils", "11223344596", "SNILS (3): the check digits do not fit, so at least one digit is wrong"},
		{"1", "1027700132190", "OGRN (1): the check digits do not fit, so at least one digit is wrong"},
		{"2", "", ""}, {"11", "12", ""}, {"nothing", "1", `component "nothing": unknown, want a number from the policy of this service`},
	} {
		got := ""
		if f, is := fault.As(naming.CheckNumbers(map[string]string{c.name: c.value})); is {
			got = f.Message
		}
		if got != c.want {
			t.Errorf("%s %q: %q, want %q", c.name, c.value, got, c.want)
		}
	}
	both := naming.CheckNumbers(map[string]string{"INN": "1", "OGRN": "2"})
	if f, is := fault.As(both); !is || f.Message != "INN (4): want 12 digits; OGRN (1): want 13 digits" {
		t.Errorf("%v", both)
	}
}
