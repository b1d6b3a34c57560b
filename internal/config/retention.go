// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"time"

	"tamga/internal/domain/retention"
)

// Retention configures how long stored documents may be kept, and when their signatures get the next archive time stamp.
type Retention struct {
	// How long before its end an archive time stamp is renewed. A third of the life of the time stamp, if
	// that is shorter.
	Margin time.Duration `yaml:"margin" default:"4320h" min:"24h"`
	// The longest time that a document may be kept.
	Longest time.Duration `yaml:"longest" default:"876600h" min:"24h"`
	// Groups whose users' documents are kept from the moment they are stored, if they are permanent and
	// signed. Only an operator can end such a retention.
	Groups []RetainedGroup `yaml:"groups"`
}

// RetainedGroup is how long documents of users of a group are kept.
type RetainedGroup struct {
	// Name of the group. Default: none, required.
	Group string `yaml:"group"`
	// How long a document is kept. Default: none, required.
	Keep time.Duration `yaml:"keep"`
}

// check returns the faults of the settings.
func (r *Retention) check() (faults []error) {
	for i, g := range r.Groups {
		switch {
		case g.Group == "":
			faults = append(faults, fmt.Errorf("retention.groups[%d].group: want the name of a group", i))
		case g.Keep <= 0 || g.Keep > r.Longest:
			faults = append(faults, fmt.Errorf("retention.groups[%d].keep: want more than 0 and at most retention.longest", i))
		case slices.ContainsFunc(r.Groups[:i], func(o RetainedGroup) bool { return o.Group == g.Group }):
			faults = append(faults, fmt.Errorf("retention.groups[%d].group: want each group once", i))
		}
	}
	return faults
}

// KeepFor returns how long documents of the users of a group are kept, 0: they are not.
func (r *Retention) KeepFor(group string) time.Duration {
	for _, g := range r.Groups {
		if g.Group == group {
			return g.Keep
		}
	}
	return 0
}

// Settings returns the rules of renewals.
func (r *Retention) Settings() retention.Settings {
	return retention.Settings{Margin: r.Margin, Longest: r.Longest}
}
