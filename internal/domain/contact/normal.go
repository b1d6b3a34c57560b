// SPDX-License-Identifier: Apache-2.0

package contact

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"tamga/internal/domain/fault"
)

// Limits of values.
const (
	maxGiven  = 512 // bytes of a value as given
	minPhone  = 7   // digits with the country code
	maxPhone  = 15  // digits (ITU-T E.164, 6.2.1)
	maxLocal  = 64  // bytes before the @ (RFC 5321, 4.5.3.1.1)
	maxEmail  = 254 // bytes of an address (RFC 5321, 4.5.3.1.3, erratum 1690)
	maxDomain = 253 // bytes after the @ in its ASCII form
)

// domains checks and converts the part after the @: IDNA 2008 with the usual mapping of
// letter case and width, and only names that may be registered.
var domains = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.BidiRule(), idna.StrictDomainName(true), idna.VerifyDNSLength(true))

// normalEmail reads an address. shown has the part before the @ as given and the domain
// in lower-case letters of its script. The normal form has the domain in ASCII and is all
// in lower case: hosts may distinguish letter case before the @ (RFC 5321, 2.4), people
// do not.
func normalEmail(value string) (shown, normal string, err error) {
	refused := func(text string) (string, string, error) {
		return "", "", fault.New(fault.InvalidEmail, "e-mail: "+text)
	}
	const form = "want an address such as name@example.ru"
	if len(value) > maxGiven || !utf8.ValidString(value) {
		return refused(form)
	}
	value = norm.NFC.String(strings.TrimSpace(value))
	at := strings.LastIndexByte(value, '@')
	if at < 1 || at == len(value)-1 {
		return refused(form)
	}
	local, domain := value[:at], value[at+1:]
	if len(local) > maxLocal || !isDotAtom(local) {
		return refused("the part before the @ holds letters, digits and .!#$%&'*+=?^_`{|}~- and no two dots side by side")
	}
	ascii, err := domains.ToASCII(domain)
	if err != nil || len(ascii) > maxDomain || strings.HasSuffix(ascii, ".") || !strings.Contains(ascii, ".") || allDigits(ascii[strings.LastIndexByte(ascii, '.')+1:]) {
		return refused("the part after the @ is no domain name, want one such as example.ru")
	}
	unicodeDomain, err := domains.ToUnicode(ascii)
	if err != nil {
		return refused("the part after the @ is no domain name, want one such as example.ru")
	}
	folded := fold(local)
	if len(folded) > maxLocal || !isDotAtom(folded) { // such as a ligature of eighteen letters
		return refused("the part before the @ has characters that normalization replaces, such as ligatures")
	}
	shown, normal = local+"@"+unicodeDomain, folded+"@"+ascii
	if len(local)+1+len(ascii) > maxEmail || len(normal) > maxEmail || len(shown) > maxEmail {
		return refused("too long, want at most 254 bytes")
	}
	return shown, normal, nil
}

// ASCIIAddress converts the shown form of an address to the form of mail transport, with
// the domain in ASCII (RFC 5891). The mail adapter uses it.
func ASCIIAddress(shown string) (string, error) {
	at := strings.LastIndexByte(shown, '@')
	ascii, err := domains.ToASCII(shown[at+1:])
	if err != nil || at < 1 {
		return "", fault.New(fault.InvalidEmail, "e-mail: want an address such as name@example.ru")
	}
	return shown[:at+1] + ascii, nil
}

// isDotAtom reports whether s is a dot-atom (RFC 5322, 3.2.3), with letters and digits of
// every script (RFC 6531, 3.3). Quoted strings are refused: an address that needs one is
// a typing error or an attack. The slash is refused too, since addresses appear in paths
// and some front ends decode paths too early.
func isDotAtom(s string) bool {
	if s[0] == '.' || s[len(s)-1] == '.' || strings.Contains(s, "..") {
		return false
	}
	for _, c := range s {
		ok := c == '.' || c < utf8.RuneSelf && strings.ContainsRune("!#$%&'*+-=?^_`{|}~", c) || unicode.IsLetter(c) || unicode.IsDigit(c) || c >= utf8.RuneSelf && unicode.IsMark(c)
		if !ok {
			return false
		}
	}
	return true
}

func allDigits(s string) bool {
	return strings.Trim(s, "0123456789") == ""
}

// fold maps letters that differ only in case to one of them. It repeats until nothing
// changes, since the composed form of a lower-case letter may contain another one to
// fold.
func fold(s string) string {
	for range 4 {
		next := norm.NFKC.String(strings.ToLower(norm.NFKC.String(s)))
		if next == s {
			break
		}
		s = next
	}
	return s
}
