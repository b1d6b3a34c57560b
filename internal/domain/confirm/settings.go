// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"errors"
	"slices"
	"strings"
	"time"

	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/contact"
)

// Settings are the rules of confirmations.
type Settings struct {
	Methods []string // accepted ones, in the order they are offered
	// Codes are the rules of codes to contacts. Life is that of the answer to an
	// authenticator code too, and Attempts and Resend are those of every method.
	Codes    contact.CodeSettings
	Life     time.Duration // of a record until it is confirmed
	Complete time.Duration // of a confirmed record until it is carried out
	Wrong    Limit         // wrong answers of one user to one method
	Open     Quota         // open records of one user and one purpose
	// SignIns is the largest number of sign-ins of one user that wait for their second step.
	// Another one takes the place of the oldest of the network, and neighbourhood of networks,
	// that the most came from.
	SignIns int64
	// NamedSignIns is the same for sign-ins by name alone. Another one takes the place of one
	// that has waited for the life of a code. If there is none, it is refused.
	NamedSignIns int64
	// Documents are the quotas of stored documents, in which open operations count.
	Documents DocumentQuotas
	// One allows a user one open operation. The next one is refused with transaction_pending.
	One bool
	// RefuseHash refuses to confirm the signature of a hash without its document.
	RefuseHash bool
	Keep       time.Duration // how long records are kept after their end; 0: for ever
	Language   string        // of messages: "ru" or "en"
}

// DefaultSettings returns the values of the interface family and, where it has none, our
// own.
func DefaultSettings() Settings {
	return Settings{
		Methods: ClientMethodNames(),
		Codes:   contact.CodeSettings{Digits: 6, Life: 300 * time.Second, Attempts: 5, Resend: 60 * time.Second},
		Life:    1200 * time.Second, Complete: 300 * time.Second,
		Wrong:   Limit{Wrong: 10, Window: 15 * time.Minute, Closed: 15 * time.Minute},
		Open:    Quota{Records: 1000, Bytes: 4 << 30},
		SignIns: 20, NamedSignIns: 100,
		Documents: DocumentQuotas{User: Quota{Records: 10_000, Bytes: 16 << 30}, All: Quota{Records: 1_000_000, Bytes: 1 << 40}},
		Keep:      5 * 365 * 24 * time.Hour, Language: what.Russian,
	}
}

// Check returns all errors in the settings at once, except those of Codes.
func (s Settings) Check() []error {
	var faults []error
	must := func(ok bool, text string) {
		if !ok {
			faults = append(faults, errors.New("confirm: settings: "+text))
		}
	}
	names := MethodNames()
	for i, m := range s.Methods {
		must(slices.Contains(names, m) && !slices.Contains(s.Methods[:i], m), "methods: want different ones of "+strings.Join(names, ", "))
	}
	must(s.Life >= 30*time.Second && s.Life <= 24*time.Hour, "life: want 30s to 24h")
	must(s.Complete >= 30*time.Second && s.Complete <= time.Hour, "complete: want 30s to 1h")
	must(s.Wrong.Wrong >= 1 && s.Wrong.Window >= time.Second && s.Wrong.Closed >= time.Second, "wrong: want at least 1 answer, a window and a closing time of at least 1s")
	must(s.Open.Records >= 1 && s.Open.Bytes >= 0, "open: want at least 1 record and 0 bytes")
	must(s.SignIns >= 1 && s.NamedSignIns >= 1, "sign_ins, named_sign_ins: want at least 1")
	must(s.Documents.User.Records >= 1 && s.Documents.All.Records >= 1, "documents: want quotas of at least 1 document")
	must(s.Keep == 0 || s.Keep >= time.Hour, "keep: want at least 1h, or 0s for ever")
	must(s.Language == what.Russian || s.Language == what.English, "language: want ru or en")
	return faults
}
