// SPDX-License-Identifier: Apache-2.0

package user

import (
	"fmt"
	"maps"
	"strings"
	"unicode"
	"unicode/utf8"

	"tamga/internal/domain/fault"
)

// number is a component whose value has check digits.
type number struct {
	length int
	fits   func(digits []int) bool // of digits of this length
}

// numbers are the components with check digits by object identifier. The rules are those of the tax
// service for taxpayer numbers (INN) and registration numbers (OGRN, OGRNIP), and of the pension fund
// for insurance numbers (SNILS).
var numbers = map[string]number{
	oidINN:          {12, fitsINN},
	"1.2.643.100.4": {10, fitsINNLE},
	"1.2.643.100.3": {11, fitsSNILS},
	"1.2.643.100.1": {13, func(d []int) bool { return numberOf(d[:12])%11%10 == d[12] }},
	"1.2.643.100.5": {15, func(d []int) bool { return numberOf(d[:14])%13%10 == d[14] }},
}

const oidINN = "1.2.643.3.131.1.1"

// BareNumber returns a value of a name without what people write between the digits of a taxpayer, insurance or
// registration number: blanks, hyphens and brackets. A value of another component, or with anything else in
// it, is returned itself.
func BareNumber(oid, value string) string {
	if _, has := numbers[oid]; !has {
		return value
	}
	bare := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.Is(unicode.Pd, r) || strings.ContainsRune("()[]\u2212", r) {
			return -1
		}
		return r
	}, value)
	if !isDigits(bare) {
		return value
	}
	return bare
}

// x520Bounds are upper bounds of X.520 by object identifier. Names, given names and initials have none that a
// name of a person reaches (RFC 5280, appendix A.1: ub-name).
var x520Bounds = map[string]int{
	"2.5.4.3": 64, "2.5.4.10": 64, "2.5.4.11": 64, "2.5.4.12": 64, "2.5.4.7": 128, "2.5.4.8": 128, "2.5.4.9": 128,
}

// LongComponents returns the components whose values are longer than the upper bound of X.520. Certificates may
// have them, and most programs take them.
func LongComponents(components []Component, values map[string]string) (long []Component) {
	for _, c := range components {
		if most, has := x520Bounds[c.OID]; has && utf8.RuneCountInString(values[c.OID]) > most {
			long = append(long, c)
		}
	}
	return long
}

// CheckNumbers is [CheckNumbers] with the keys of [Service.SetDN]. SetDN itself takes any digits, since
// the interface has no rule for them.
func (n *Naming) CheckNumbers(components map[string]string) error {
	values, err := n.resolve(components)
	if err != nil {
		return err
	}
	return CheckNumbers(n.components, values)
}

// CheckNumbers returns what is doubtful in a name, so that people notice it before a certificate has it: check
// digits that do not fit, and values above the bounds of X.520. Keys of values are object identifiers. The fault is
// invalid_parameters and names all such components.
func CheckNumbers(components []Component, values map[string]string) error {
	doubts := Doubts(components, values)
	var wrong []string
	for _, c := range components {
		if message, has := doubts[c.OID]; has {
			wrong = append(wrong, message)
		}
	}
	if wrong != nil {
		return fault.New(fault.InvalidParameters, strings.Join(wrong, "; "))
	}
	return nil
}

// Doubts is CheckNumbers with a message for each component, by object identifier.
func Doubts(components []Component, values map[string]string) map[string]string {
	doubts := map[string]string{}
	for _, c := range LongComponents(components, values) {
		doubts[c.OID] = fmt.Sprintf("%s (%d): longer than %d characters, the bound of X.520: a few programs may refuse such a certificate", c.Name, c.ID, x520Bounds[c.OID])
	}
	maps.Copy(doubts, wrongNumbers(components, values))
	return doubts
}

// WrongNumbers returns the fault of numbers whose length or check digits are wrong, with the keys of [Service.SetDN],
// for what takes many records and asks no person.
func (n *Naming) WrongNumbers(components map[string]string) error {
	values, err := n.resolve(components)
	if err != nil {
		return err
	}
	wrong := wrongNumbers(n.components, values)
	if len(wrong) == 0 {
		return nil
	}
	var texts []string
	for _, c := range n.components {
		if text, has := wrong[c.OID]; has {
			texts = append(texts, text)
		}
	}
	return fault.New(fault.InvalidParameters, strings.Join(texts, "; "))
}

// wrongNumbers are the messages about numbers, by object identifier.
func wrongNumbers(components []Component, values map[string]string) map[string]string {
	doubts := map[string]string{}
	for _, c := range components {
		rule, has := numbers[c.OID]
		value := BareNumber(c.OID, values[c.OID])
		if !has || value == "" {
			continue
		}
		digits := digitsOf(value)
		switch {
		case c.OID == oidINN && len(digits) == 10:
			doubts[c.OID] = fmt.Sprintf("%s (%d): want 12 digits, the number of an organisation with 00 before its own 10", c.Name, c.ID)
		case len(digits) != rule.length:
			doubts[c.OID] = fmt.Sprintf("%s (%d): want %d digits", c.Name, c.ID, rule.length)
		case strings.Trim(value, "0") == "" || !rule.fits(digits):
			doubts[c.OID] = fmt.Sprintf("%s (%d): the check digits do not fit, so at least one digit is wrong", c.Name, c.ID)
		}
	}
	return doubts
}

// digitsOf returns the digits of a number, nil for a text with anything else.
func digitsOf(text string) []int {
	digits := make([]int, len(text))
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return nil
		}
		digits[i] = int(text[i] - '0')
	}
	return digits
}

// fitsINN checks the number of a person, with two check digits. A number that begins with 00 is that of
// an organisation: no region has this code.
func fitsINN(d []int) bool {
	if d[0] == 0 && d[1] == 0 {
		return fitsINNLE(d[2:])
	}
	weights := []int{3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8}
	return weighted(d, weights[1:])%11%10 == d[10] && weighted(d, weights)%11%10 == d[11]
}

// fitsINNLE checks the number of an organisation.
func fitsINNLE(d []int) bool {
	return weighted(d, []int{2, 4, 10, 3, 5, 9, 4, 6, 8})%11%10 == d[9]
}

// fitsSNILS checks the number of a person. Numbers up to 001-001-998 were given without check digits.
func fitsSNILS(d []int) bool {
	return numberOf(d[:9]) <= 1_001_998 || weighted(d, []int{9, 8, 7, 6, 5, 4, 3, 2, 1})%101%100 == d[9]*10+d[10]
}

// weighted returns the sum of the first digits, each by its weight.
func weighted(d, weights []int) (sum int) {
	for i, w := range weights {
		sum += w * d[i]
	}
	return sum
}

// numberOf returns the number with these digits, at most 18.
func numberOf(d []int) (number int) {
	for _, digit := range d {
		number = number*10 + digit
	}
	return number
}
