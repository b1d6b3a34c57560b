// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"

	"tamga/internal/adapter/mail"
	"tamga/internal/adapter/push"
	"tamga/internal/adapter/sms"
	"tamga/internal/config"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/vault"
	"tamga/sig"
	"tamga/sig/asic"
	"tamga/sig/cades"
	"tamga/sig/evidence"
	"tamga/sig/ooxml"
	"tamga/sig/pdf"
	"tamga/sig/raw"
	"tamga/sig/xmldsig"
)

// Parts returns the parts of the program that have settings of their own: notifiers, and holders of
// keys. A new part is one line here.
func Parts() config.Parts {
	return config.Parts{
		Notifiers: []notify.Plugin{
			&mail.Settings{},
			&sms.SMPPSettings{},
			&sms.GatewaySettings{},
			&push.Settings{},
		},
		Holders: []vault.Plugin{
			vault.Software{},
		},
	}
}

// Validate checks a configuration against the signature formats of this program.
func Validate(c *config.Config) error {
	return errors.Join(c.Locate(config.Each(c.Validate(Formats(c).Names())))...)
}

// Formats returns the signature formats of the service and of the commands sign and verify. A new
// format is one line here. The zero Config gives the strictest rules.
func Formats(c *config.Config) sig.Formats {
	rules := evidence.Rules{
		Allowance:              c.LongTerm.RevocationAllowance,
		OldListsForAuthorities: c.LongTerm.OldListsForAuthorities,
	}
	cms := &cades.Format{Rules: rules}
	xml := &xmldsig.Format{MaxSize: int64(c.XML.Document), AllowDoctype: c.XML.AllowDoctype, Rules: rules}
	return sig.Formats{
		cms,
		xml,
		&pdf.Format{CMS: cms},
		&asic.Format{CMS: cms, XML: xml},
		ooxml.New(),
		raw.New(),
	}
}
