// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"slices"

	"tamga/internal/domain/keys"
	"tamga/internal/domain/vault"
	"tamga/internal/setting"
	"tamga/pki/suite"
)

// KeyRule sends new keys of users to a holder.
type KeyRule struct {
	// Holder of the keys. Default: none, required.
	Holder string `yaml:"holder"`
	// Suites of the keys, such as `gost2012-256`. Default: all.
	Suites []string `yaml:"suites"`
	// Groups of the users. Default: all.
	Groups []string `yaml:"groups"`
}

// holderPath returns the name of a holder's settings in the file.
func holderPath(h vault.Plugin) string { return "keys." + h.Name() }

// namedHolder is the name of a holder and the setting that has it.
type namedHolder struct{ setting, name string }

// namedHolders returns the holders that settings name.
func (c *Config) namedHolders() []namedHolder {
	list := []namedHolder{{"keys.holder", c.Keys.Holder}}
	if c.Keys.AuthorityHolder != "" {
		list = append(list, namedHolder{"keys.authority_holder", c.Keys.AuthorityHolder})
	}
	for i, r := range c.Keys.Rules {
		list = append(list, namedHolder{fmt.Sprintf("keys.rules[%d].holder", i), r.Holder})
	}
	for i, name := range c.Keys.OtherHolders {
		list = append(list, namedHolder{fmt.Sprintf("keys.other_holders[%d]", i), name})
	}
	return list
}

// AuthorityHolder returns the name of the holder of new keys of the built-in authority.
func (c *Config) AuthorityHolder() string { return cmp.Or(c.Keys.AuthorityHolder, c.Keys.Holder) }

// Holders returns the holders that the installation opens: the software holder and those that settings
// name, in the order of the program's list.
func (c *Config) Holders() (list []vault.Plugin) {
	named := c.namedHolders()
	for _, h := range c.parts.Holders {
		if h.Name() == vault.SoftwareName || slices.ContainsFunc(named, func(n namedHolder) bool { return n.name == h.Name() }) {
			list = append(list, h)
		}
	}
	return list
}

// Placement returns the rules about the holders of new keys of users. The caller adds the groups.
func (c *Config) Placement() keys.Placement {
	p := keys.Placement{Otherwise: c.Keys.Holder}
	for _, r := range c.Keys.Rules {
		p.Rules = append(p.Rules, keys.PlacementRule(r))
	}
	return p
}

// checkHolders returns the faults in names of holders and suites, and in the settings of the holders that
// are opened.
func (c *Config) checkHolders() (faults []error) {
	var names []string
	for _, h := range c.parts.Holders {
		names = append(names, h.Name())
	}
	for _, n := range c.namedHolders() {
		if !slices.Contains(names, n.name) {
			faults = append(faults, fmt.Errorf("%s: want %s", n.setting, setting.OneOf(names)))
		}
	}
	for i, r := range c.Keys.Rules {
		for j, name := range r.Suites {
			if _, ok := suite.ByName(name); !ok {
				faults = append(faults, fmt.Errorf("keys.rules[%d].suites[%d]: want %s", i, j, setting.OneOf(suiteNames())))
			}
		}
	}
	for _, h := range c.Holders() {
		for _, err := range h.Check() {
			faults = append(faults, fmt.Errorf("%s.%w", holderPath(h), err))
		}
	}
	return faults
}

func suiteNames() (names []string) {
	for _, s := range suite.All() {
		names = append(names, s.Name)
	}
	return names
}
