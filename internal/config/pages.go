// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"tamga/internal/setting"
)

// PagesClient is the identifier of the pages as an OpenID client of the installation.
const PagesClient = "tamga-pages"

// Pages configures what people see in a browser.
type Pages struct {
	// Whether the server has pages for people, at `/` below the public address.
	Enabled bool `yaml:"enabled" default:"true"`
	// Longest session of a browser. After it the person signs in again.
	Session time.Duration `yaml:"session" default:"12h" min:"1m"`
	// A session ends after so long without a request.
	Idle time.Duration `yaml:"idle" default:"30m" min:"1m"`
	// Largest upload of documents to sign, together.
	Upload setting.Size `yaml:"upload" default:"2GiB" above:"0"`
}
