// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"time"
)

// TrustList configures the list of accredited certification authorities of the ministry of digital
// development. `tamga trust-list import` reads it from a file.
type TrustList struct {
	// Certificates (PEM, DER or PKCS #7) of which one has signed each list. Without them no list is
	// accepted.
	SignerFiles []string `yaml:"signer_files"`
	// Address that the list is fetched from. Empty: it is imported by command only. Internal addresses
	// need an exception in `evidence.allow_networks`.
	URL string `yaml:"url" rule:"url"`
	// How often the list is fetched.
	Every time.Duration `yaml:"every" default:"24h" min:"10m"`
	// Time for fetching it.
	Timeout time.Duration `yaml:"timeout" default:"10m" above:"0s"`
}

// check returns the faults of the settings.
func (t *TrustList) check() error {
	if t.URL != "" && len(t.SignerFiles) == 0 {
		return errors.New("trust_list.signer_files: want the certificate that the list at trust_list.url is signed with")
	}
	return nil
}
