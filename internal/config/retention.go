// SPDX-License-Identifier: Apache-2.0

package config

import (
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
}

// Settings returns the rules of renewals.
func (r *Retention) Settings() retention.Settings {
	return retention.Settings{Margin: r.Margin, Longest: r.Longest}
}
