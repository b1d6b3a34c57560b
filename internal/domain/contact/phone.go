// SPDX-License-Identifier: Apache-2.0

package contact

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/nyaruka/phonenumbers"

	"tamga/internal/domain/fault"
)

// region is where numbers without a country code are dialled, as an ISO 3166-1 code in capital letters.
var region atomic.Value

func init() { region.Store("RU") }

// CheckPhoneRegion returns an error if a region, an ISO 3166-1 code such as "ru", has no phone numbers.
func CheckPhoneRegion(code string) error {
	if len(code) != 2 || phonenumbers.GetCountryCodeForRegion(strings.ToUpper(code)) == 0 {
		return fmt.Errorf("no region %q has phone numbers, want an ISO 3166-1 code such as ru", code)
	}
	return nil
}

// SetPhoneRegion sets the region by whose rules national forms of phone numbers are read, as an ISO 3166-1
// code such as "ru". The program sets it once, before it serves. The default is "ru".
func SetPhoneRegion(code string) error {
	if err := CheckPhoneRegion(code); err != nil {
		return fmt.Errorf("contact: %w", err)
	}
	region.Store(strings.ToUpper(code))
	return nil
}

// normalPhone reads a phone number and returns its digits with the country code
// and without a plus, twice.
//
// Spaces, hyphens, dots and brackets are dropped; "+" or "00" before the digits means
// that the country code follows. In Russia and Kazakhstan eleven digits that begin with 8
// and one of 3, 4, 7, 8, 9 are a number as dialled inside the country: the 8 becomes 7,
// also where a plus is missing. A foreign number of that form (Vietnam's +84 with nine
// digits) is refused even with its plus: its normal form has no plus and would be another
// telephone. Other digits without a plus are read by the rules of the region, if they are a
// number there, and otherwise begin with the country code.
func normalPhone(value string) (shown, normal string, err error) {
	refused := func(text string) (string, string, error) {
		return "", "", fault.New(fault.InvalidPhone, "phone: "+text)
	}
	number, plus, err := phoneDigits(value)
	if err != nil {
		return "", "", err
	}
	home := region.Load().(string)
	national := (home == "RU" || home == "KZ") && len(number) == 11 && number[0] == '8' && strings.IndexByte("34789", number[1]) >= 0
	switch {
	case len(number) < minPhone || len(number) > maxPhone:
		return refused("want 7 to 15 digits with the country code, such as +7 926 123-45-67")
	case national && plus:
		return refused("a number that begins with +8 and reads as one of Russia without its plus is not supported")
	case national:
		number = "7" + number[1:]
	case !plus:
		if inside := dialled(number, home); inside != "" {
			number = inside
		}
	}
	if number[0] == '0' {
		return refused("no country code begins with 0, want one such as +7 926 123-45-67")
	}
	return number, number, nil
}

// phoneDigits returns the digits of a phone number, and whether they begin with a country code for certain.
func phoneDigits(value string) (number string, plus bool, err error) {
	if len(value) > maxGiven {
		return "", false, fault.New(fault.InvalidPhone, "phone: too long, want at most 15 digits")
	}
	digits := make([]byte, 0, maxPhone+2)
	for i, c := range strings.TrimSpace(value) {
		switch {
		case '0' <= c && c <= '9':
			if len(digits) == cap(digits) {
				return "", false, fault.New(fault.InvalidPhone, "phone: too long, want at most 15 digits")
			}
			digits = append(digits, byte(c))
		case c == '+' && i == 0:
			plus = true
		case c == ' ', c == '-', c == '.', c == '(', c == ')', c == '\u00a0', c == '\u2011', c == '\u2013':
		default:
			return "", false, fault.New(fault.InvalidPhone, "phone: want digits with the country code, such as +7 926 123-45-67")
		}
	}
	number = string(digits)
	if rest, ok := strings.CutPrefix(number, "00"); ok && !plus {
		number, plus = rest, true
	}
	return number, plus, nil
}

// dialled returns the number, with its country code, that digits are when they are dialled in a region; ""
// if they are none there.
func dialled(digits, home string) string {
	n, err := phonenumbers.Parse(digits, home)
	if err != nil || !phonenumbers.IsValidNumber(n) {
		return ""
	}
	return strings.TrimPrefix(phonenumbers.Format(n, phonenumbers.E164), "+")
}

// ambiguous returns the fault for a value without a plus that is a number of the region, and another one
// if it begins with a country code. Brackets around the first digits say that it does not. A message to
// such a number could reach another person.
func ambiguous(value, normal string) error {
	value = strings.TrimSpace(value)
	number, plus, err := phoneDigits(value)
	if err != nil || plus || number == normal || strings.HasPrefix(value, "(") {
		return err
	}
	abroad, err := phonenumbers.Parse("+"+number, "")
	if err != nil || !phonenumbers.IsValidNumber(abroad) {
		return nil
	}
	return fault.Newf(fault.InvalidPhone, "phone: %s may be +%s or +%s: write the number with a plus and the country code", number, normal, number)
}

// stored returns the normal form that a stored phone number has: its digits, by whatever rules they were
// read. It reports false for other forms.
func stored(value string) (string, bool) {
	digits := strings.Trim(value, "0123456789") == "" && len(value) >= minPhone && len(value) <= maxPhone
	return value, digits
}
