// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"tamga/internal/domain/confirm"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/passkey"
	"tamga/internal/setting"
)

// Confirmation configures confirmations of operations and second steps of sign-ins.
type Confirmation struct {
	// Methods that users may [confirm](confirmation.md) with, in the order they are offered. A user
	// must have the authentication method (`mydss` for `mobile` too) and what it needs: a contact, a
	// token, a device, a passkey. `passkey` is off unless it is named here. Passkeys belong to the host
	// of `public_url`, which must be a name and not an IP address, over TLS or on `localhost`: with
	// another host all of them are lost.
	Methods []string `yaml:"methods" default:"[mydss, mobile, otpviasms, otpviaemail, oath]"`
	// Codes to phones and e-mail addresses.
	Codes struct {
		// Decimal digits of a code, 6 to 12.
		Digits int `yaml:"digits" default:"6" min:"6" max:"12"`
		// How long a code is valid. An authenticator code may be sent as long after the request.
		Life time.Duration `yaml:"life" default:"5m" min:"30s"`
		// Answers to one challenge, 1 to 10. The last wrong one ends the operation.
		Attempts int `yaml:"attempts" default:"5" min:"1" max:"10"`
		// Time before the same challenge is sent again.
		Resend time.Duration `yaml:"resend" default:"60s" min:"0s"`
	} `yaml:"codes"`
	// Time within which an operation must be confirmed.
	Life time.Duration `yaml:"life" default:"20m"`
	// Time within which a confirmed operation must be carried out.
	Complete time.Duration `yaml:"complete" default:"5m"`
	// Time after which a confirmed operation can be carried out by another request, if the process
	// that was carrying it out died.
	Lease time.Duration `yaml:"lease" default:"15s" min:"1s"`
	// Wrong answers of one user to one method, over all operations and sign-ins.
	Wrong struct {
		// Wrong answers within the window that close the method.
		Answers int `yaml:"answers" default:"10" above:"0"`
		// Window in which they are counted. It begins with the first of them.
		Window time.Duration `yaml:"window" default:"15m" min:"1s"`
		// How long the method is closed.
		Closed time.Duration `yaml:"closed" default:"15m" min:"1s"`
	} `yaml:"wrong"`
	// Passkeys of one user, 1 to 50.
	UserPasskeys int `yaml:"user_passkeys" default:"10" min:"1" max:"50"`
	// Open operations of one user; above it `invalid_object_state`. Each counts in the quotas of
	// `documents` too, as one document with the bytes that are stored for it.
	UserOperations int64 `yaml:"user_operations" default:"1000" above:"0"`
	// Sign-ins of one user that wait for their second step. Another one takes the place of the
	// oldest of the network that the most came from, in the neighbourhood that the most came
	// from, so that an attacker who knows the password does not keep the user out.
	UserSignIns int64 `yaml:"user_sign_ins" default:"20" above:"0"`
	// The same for sign-ins by name alone, which every attacker can begin. Another one takes the
	// place of one that has waited as long as a code is valid. If there is none, it is refused.
	UserNamedSignIns int64 `yaml:"user_named_sign_ins" default:"100" above:"0"`
	// Bytes stored with all open operations of one user.
	UserBytes setting.Size `yaml:"user_bytes" default:"4GiB" above:"0"`
	// Whether a user may have one open operation only. The next one is refused with
	// `transaction_pending`, also by `{idp_url}/confirmation` where it confirms a text or an
	// operation beside an older one.
	OneOpen bool `yaml:"one_open"`
	// Whether the signature of a hash without its document is refused where a confirmation is
	// required.
	RefuseHash bool `yaml:"refuse_hash"`
	// How long the record of a confirmation is kept after its end, as evidence. `0s`: for ever.
	Keep time.Duration `yaml:"keep" default:"43800h"`
}

// Settings returns the rules of confirmations. documents are the limits of stored documents,
// and language is that of messages.
func (c Confirmation) Settings(documents *Documents, language string) confirm.Settings {
	return confirm.Settings{
		Methods: c.Methods,
		Codes:   contact.CodeSettings{Digits: c.Codes.Digits, Life: c.Codes.Life, Attempts: c.Codes.Attempts, Resend: c.Codes.Resend},
		Life:    c.Life, Complete: c.Complete,
		Wrong:   confirm.Limit{Wrong: c.Wrong.Answers, Window: c.Wrong.Window, Closed: c.Wrong.Closed},
		Open:    confirm.Quota{Records: c.UserOperations, Bytes: int64(c.UserBytes)},
		SignIns: c.UserSignIns, NamedSignIns: c.UserNamedSignIns,
		Documents: confirm.DocumentQuotas{
			User: confirm.Quota{Records: documents.UserObjects, Bytes: int64(documents.UserBytes)},
			All:  confirm.Quota{Records: documents.Objects, Bytes: int64(documents.Bytes)},
		},
		One: c.OneOpen, RefuseHash: c.RefuseHash, Keep: c.Keep, Language: language,
	}
}

// Passkeys reports whether users may have passkeys.
func (c Confirmation) Passkeys() bool { return slices.Contains(c.Methods, passkey.Method) }

// checkPasskeys returns what is wrong with the public address of a service that has passkeys:
// browsers have none for an IP address, and none without TLS but on their own machine.
func (c Confirmation) checkPasskeys(address string) error {
	if !c.Passkeys() {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil // said of public_url
	}
	host := u.Hostname()
	if _, err := netip.ParseAddr(host); err == nil {
		return fmt.Errorf("confirmation.methods: passkey needs a host name in public_url, and %s is an IP address: set public_url, on one machine to http://localhost:%s", host, u.Port())
	}
	if u.Scheme != "https" && host != "localhost" && !strings.HasSuffix(host, ".localhost") {
		return fmt.Errorf("confirmation.methods: browsers have no passkeys without TLS: want a public_url that begins with https, and it is %s", address)
	}
	return nil
}

func (c Confirmation) check(documents *Documents) (faults []error) {
	// The language is a setting of messages and checked there.
	for _, err := range c.Settings(documents, confirm.DefaultSettings().Language).Check() {
		faults = append(faults, fmt.Errorf("confirmation.%s", strings.TrimPrefix(err.Error(), "confirm: settings: ")))
	}
	return faults
}
