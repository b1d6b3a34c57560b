// SPDX-License-Identifier: Apache-2.0

package contact

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"tamga/internal/domain/fault"
)

func TestNormalPhone(t *testing.T) {
	for _, c := range []struct{ value, want string }{
		{"79261234567", "79261234567"},
		{"+7 (926) 123-45-67", "79261234567"},
		{"8 926 123 45 67", "79261234567"},
		{"8(495)123.45.67", "74951234567"},
		{"8 701 123 45 67", "77011234567"}, // Kazakhstan
		{" +7\u00a0926\u00a01234567 ", "79261234567"},
		{"007 926 1234567", "79261234567"},
		{"+375 29 123 45 67", "375291234567"},
		{"+49 30 123456", "4930123456"},
		{"+81 80 1234 567", "81801234567"},
		{"+83 3 1234 5678", ""}, // reads as a number of Russia
		{"+84 912 345 678", ""}, // likewise
		{"+82 2 123 4567", "8221234567"},
		{"+86 10 1234 5678", "861012345678"},
		{"123456", ""},
		{"+0123456789", ""},
		{"1234567890123456", ""},
		{strings.Repeat("1", 600), ""},
		{"7926123456a", ""},
		{"7+9261234567", ""},
		{"++79261234567", ""},
		{"٧٩٢٦١٢٣٤٥٦٧", ""}, // digits of another script
		{"7926;DROP TABLE", ""},
		{"", ""},
		{"+", ""},
	} {
		got, err := Phone.Normal(c.value)
		if got != c.want || (err == nil) != (c.want != "") || err != nil && !fault.Is(err, fault.InvalidPhone) {
			t.Errorf("%q: %q, %v, want %q", c.value, got, err, c.want)
		}
	}
}

// TestNationalPhone checks that numbers without a country code are those of the region, and that what may
// be a number of two countries is refused where it would be stored.
func TestNationalPhone(t *testing.T) {
	for _, c := range []struct{ value, want string }{
		{"9161234567", "79161234567"},
		{"(916) 123-45-67", "79161234567"},
		{"(495) 123-45-67", "74951234567"}, // brackets: no country code
		{"8 10 7 916 123-45-67", "79161234567"},
		{"81079161234567", "79161234567"},
		{"77011234567", "77011234567"},
		{"12025550123", "12025550123"},
		{"375291234567", "375291234567"},
		{"70000000001", "70000000001"}, // of no plan: as it is given
		{"4951234567", ""},             // Moscow or Germany
		{"495 123-45-67", ""},
		{"+4951234567", "4951234567"},
		{"+7 495 123-45-67", "74951234567"},
		{"0123456789", ""},
	} {
		got, err := Phone.New(c.value)
		if got != c.want || (err == nil) != (c.want != "") || err != nil && !fault.Is(err, fault.InvalidPhone) {
			t.Errorf("%q: %q, %v, want %q", c.value, got, err, c.want)
		}
	}
	for value, want := range map[string]string{"9161234567": "[79161234567 9161234567]", "+9161234567": "[9161234567]", "79161234567": "[79161234567]"} {
		if forms, err := Phone.Forms(value); err != nil || fmt.Sprint(forms) != want {
			t.Errorf("%s: forms %v, %v, want %s", value, forms, err, want)
		}
	}
	for code, want := range map[string]bool{"ru": true, "KZ": true, "de": true, "": false, "xx": false, "russia": false, "001": false} {
		if err := CheckPhoneRegion(code); (err == nil) != want {
			t.Errorf("region %q: %v", code, err)
		}
	}
	for _, c := range []struct{ region, digits, want string }{
		{"DE", "030123456", "4930123456"}, {"UA", "0501234567", "380501234567"}, {"BY", "80291234567", "375291234567"}, {"RU", "89161234567", "79161234567"}, {"RU", "1234567", ""},
	} {
		if got := dialled(c.digits, c.region); got != c.want {
			t.Errorf("%s in %s: %q, want %q", c.digits, c.region, got, c.want)
		}
	}
}

func TestNormalEmail(t *testing.T) {
	for _, c := range []struct{ value, shown, want string }{
		{"Ivan.Petrov@Example.RU", "Ivan.Petrov@example.ru", "ivan.petrov@example.ru"},
		{" a@b.ru ", "a@b.ru", "a@b.ru"},
		{"ivan+tag@example.co.uk", "ivan+tag@example.co.uk", "ivan+tag@example.co.uk"},
		{"Иван@Почта.РФ", "Иван@почта.рф", "иван@xn--80a1acny.xn--p1ai"},
		{"a@xn--80a1acny.xn--p1ai", "a@почта.рф", "a@xn--80a1acny.xn--p1ai"},
		{"a@почта。рф", "a@почта.рф", "a@xn--80a1acny.xn--p1ai"}, // an ideographic full stop
		{"o'neil@example.ru", "o'neil@example.ru", "o'neil@example.ru"},
		{"a@ｂ.ru", "a@b.ru", "a@b.ru"}, // full width
		{"a@b", "", ""},
		{"a@1.2.3.4", "", ""},
		{"a@[1.2.3.4]", "", ""},
		{"a@-b.ru", "", ""},
		{"a@b..ru", "", ""},
		{"a@b.ru.", "", ""},
		{"@b.ru", "", ""},
		{"a@", "", ""},
		{"a", "", ""},
		{"a b@c.ru", "", ""},
		{`"a b"@c.ru`, "", ""},
		{".a@b.ru", "", ""},
		{"a..b@c.ru", "", ""},
		{"a\r\nBcc: x@b.ru", "", ""},
		{"a@b.ru\r\nBcc: x@b.ru", "", ""},
		{"a@b_c.ru", "", ""},
		{"a,b@c.ru", "", ""},
		{"a/b@c.ru", "", ""},
		{"../a@c.ru", "", ""},
		{"<a@b.ru>", "", ""},
		{"a\x00@b.ru", "", ""},
		{"a\xff@b.ru", "", ""},
		{"a＠b@c.ru", "", ""},
		{"\ufdfa@b.ru", "", ""}, // a ligature of eighteen letters and spaces
		{strings.Repeat("a", 65) + "@b.ru", "", ""},
		{"a@" + strings.Repeat("b.", 130) + "ru", "", ""},
		{strings.Repeat("x", 100_000) + "@b.ru", "", ""},
	} {
		shown, got, err := Email.normal(c.value)
		if got != c.want || shown != c.shown || (err == nil) != (c.want != "") || err != nil && !fault.Is(err, fault.InvalidEmail) {
			t.Errorf("%q: %q, %q, %v, want %q, %q", c.value, shown, got, err, c.shown, c.want)
		}
	}
}

func TestKindOf(t *testing.T) {
	for value, want := range map[string]Type{"79261234567": PhoneNumber, "a@b.ru": EmailAddress, "": PhoneNumber} {
		if got := KindOf(value).Type; got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}

// The normal form is its own normal form, with a plus before a phone number, and so is the
// shown one; a stored one stays what it is; nothing in them ends a line or a command.
func FuzzNormal(f *testing.F) {
	for _, s := range []string{"+7 (926) 123-45-67", "8 926 1234567", "Иван@Почта.РФ", "a@xn--80a1acny.xn--p1ai", "ǅ@b.ru", "İ@b.ru", "a@faß.de", "ſ@b.ru", "a@١.ru", "+924) 123-45-67"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, k := range []Kind{Phone, Email} {
			shown, normal, err := k.normal(value)
			if err != nil {
				if !fault.Is(err, k.Invalid) {
					t.Fatalf("%q: %v, want %s", value, err, k.Invalid)
				}
				continue
			}
			if len(shown) > maxEmail || len(normal) > maxEmail || !utf8.ValidString(shown) || strings.ContainsAny(shown+normal, " \t\r\n\x00<>\"\\,;:()[]/") {
				t.Fatalf("%q: %q, %q", value, shown, normal)
			}
			if kept, err := k.Stored(normal); kept != normal || err != nil {
				t.Fatalf("%q: %q is stored as %q, %v", value, normal, kept, err)
			}
			forms := []string{shown, normal}
			if k.Type == PhoneNumber { // digits without a plus may be a number of the region
				forms = []string{"+" + normal}
			}
			for _, form := range forms {
				shownAgain, again, err := k.normal(form)
				if err != nil || again != normal || form == shown && shownAgain != shown {
					t.Fatalf("%q: %q becomes %q, %q, %v", value, form, shownAgain, again, err)
				}
			}
		}
	})
}
