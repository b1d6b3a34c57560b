// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Powers configures machine-readable powers of attorney: which users must have one to sign, and how withdrawals are known.
type Powers struct {
	// Which users must have a power of attorney for each signature. All rules for the group of a user count.
	Rules []PowerRule `yaml:"rules"`
	// Powers that every signer may use, and signatures of their principals: XML, CMS, or ZIP archives of both. They are read
	// when the service starts. Further ones come with a signature, in the parameter `Power`.
	Files []string `yaml:"files"`
	// List of withdrawn powers: a number in each line, and behind it the time of the withdrawal as `2025-12-31` or in RFC 3339.
	// A change counts at once.
	WithdrawnFile string `yaml:"withdrawn_file"`
	// Address of a register that is asked whether a power is withdrawn, with `{number}` and, if it needs this,
	// `{inn}` of the principal in their places. Empty: no register is asked. Internal addresses need an exception in
	// `evidence.allow_networks`.
	RegistryURL string `yaml:"registry_url"`
	// Time for an answer of the register.
	RegistryTimeout time.Duration `yaml:"registry_timeout" default:"5s" above:"0s"`
	// How long an answer of the register is used before it is asked again.
	RegistryFresh time.Duration `yaml:"registry_fresh" default:"5m" min:"0s"`
}

// PowerRule asks the users of groups for a power of attorney.
type PowerRule struct {
	// Groups of the users. Default: all.
	Groups []string `yaml:"groups"`
	// Codes of the powers that a signer must have. Default: any power of attorney is enough.
	Codes []string `yaml:"codes"`
}

// check returns the faults of the settings.
func (p *Powers) check() error {
	var faults []error
	for i, r := range p.Rules {
		for j, code := range r.Codes {
			if strings.TrimSpace(code) == "" || strings.Contains(code, ",") {
				faults = append(faults, fmt.Errorf("powers.rules[%d].codes[%d]: want one code without a comma", i, j))
			}
		}
	}
	if p.RegistryURL != "" {
		filled := func(with string) *url.URL {
			u, err := url.Parse(strings.NewReplacer("{number}", with, "{inn}", with).Replace(p.RegistryURL))
			if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
				return nil
			}
			return u
		}
		if a, b := filled("1"), filled("2"); a == nil || b == nil || a.Host != b.Host || !strings.Contains(p.RegistryURL, "{number}") {
			faults = append(faults, errors.New("powers.registry_url: want an address such as https://registry.example.org/powers/{number}?inn={inn}"))
		}
	}
	return errors.Join(faults...)
}
