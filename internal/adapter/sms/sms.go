// Package sms sends messages by SMS: to a message centre by SMPP 3.4, or to a
// gateway by HTTP. Both are notifiers of the channel SMS; an installation has one
// of them.
package sms

import (
	"errors"
	"strings"

	"tamga/internal/domain/notify"
)

// errNoNumber is permanent: what is no number today will be none tomorrow.
var errNoNumber = notify.Permanent(errors.New("sms: the recipient is no number of 7 to 15 digits with the country code"))

// isNumber reports whether to is a phone number in its normal form.
func isNumber(to string) bool {
	return len(to) >= 7 && len(to) <= 15 && strings.Trim(to, "0123456789") == ""
}
