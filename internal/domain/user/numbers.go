// SPDX-License-Identifier: Apache-2.0

package user

import (
	"fmt"
	"strings"

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

// CheckNumbers is [CheckNumbers] with the keys of [Service.SetDN]. SetDN itself takes any digits, since
// the interface has no rule for them.
func (n *Naming) CheckNumbers(components map[string]string) error {
	values, err := n.resolve(components)
	if err != nil {
		return err
	}
	return CheckNumbers(n.components, values)
}

// CheckNumbers checks the check digits of a name, so that people notice a typing error before a
// certificate has it. Keys of values are object identifiers. The fault is invalid_parameters and names
// all wrong components.
func CheckNumbers(components []Component, values map[string]string) error {
	var wrong []string
	for _, c := range components {
		rule, has := numbers[c.OID]
		value := values[c.OID]
		if !has || value == "" {
			continue
		}
		digits := digitsOf(value)
		switch {
		case c.OID == oidINN && len(digits) == 10:
			wrong = append(wrong, fmt.Sprintf("%s (%d): want 12 digits, the number of an organisation with 00 before its own 10", c.Name, c.ID))
		case len(digits) != rule.length:
			wrong = append(wrong, fmt.Sprintf("%s (%d): want %d digits", c.Name, c.ID, rule.length))
		case strings.Trim(value, "0") == "" || !rule.fits(digits):
			wrong = append(wrong, fmt.Sprintf("%s (%d): the check digits do not fit, so at least one digit is wrong", c.Name, c.ID))
		}
	}
	if wrong != nil {
		return fault.New(fault.InvalidParameters, strings.Join(wrong, "; "))
	}
	return nil
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
