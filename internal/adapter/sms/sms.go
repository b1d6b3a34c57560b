// SPDX-License-Identifier: Apache-2.0

// Package sms sends messages by SMS: to a message centre by SMPP 3.4 (SMPP), or to a
// gateway by HTTP (Gateway). Both implement the notifier of the channel SMS. An
// installation uses one of them.
//
// Begin with NewSMPP or NewGateway and their Send, or with SMPPSettings and
// GatewaySettings, which read the configuration. The package does not retry: package
// notify does.
package sms

import (
	"errors"
	"strings"

	"tamga/internal/domain/notify"
)

// errNoNumber is permanent: an invalid number stays invalid.
var errNoNumber = notify.Permanent(errors.New("sms: the recipient is not a number of 7 to 15 digits with the country code"))

// isNumber reports whether to is a phone number in its normal form.
func isNumber(to string) bool {
	return len(to) >= 7 && len(to) <= 15 && strings.Trim(to, "0123456789") == ""
}
