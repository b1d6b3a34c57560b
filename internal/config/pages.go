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
	// Name of the installation on its pages and sign-in pages, such as that of the
	// organization.
	Name string `yaml:"name" default:"Tamga"`
	// Longest session of a browser. After it the person signs in again.
	Session time.Duration `yaml:"session" default:"12h" min:"1m"`
	// A session ends after so long without a request.
	Idle time.Duration `yaml:"idle" default:"30m" min:"1m"`
	// Largest upload of documents to sign, to encrypt or to decrypt, together.
	Upload setting.Size `yaml:"upload" default:"2GiB" above:"0"`
	// Identifiers of operators who may change on pages what concerns the whole installation:
	// groups, webhooks, tokens in stock, time-stamp services, messages. They also have the
	// rights of auditors. `tamga operator list` prints identifiers. Every other operator who
	// reaches such a person can act as one, so give administrators a group of their own.
	Administrators []string `yaml:"administrators"`
	// Identifiers of operators who may read on pages the whole audit log and the state of the
	// installation.
	Auditors []string `yaml:"auditors"`
	// Whom people find as recipients of encrypted files by name or login: `group` the people of their own
	// group, and an operator the people of the groups that the operator manages; `everyone` all people and all groups of the
	// installation; `none`. Only people with a valid certificate for encryption are found, with their display name,
	// login and certificate. A certificate that is in a file can always be used.
	Recipients string `yaml:"recipients" default:"group" oneof:"none group everyone"`
	// How long the report of a verification is kept that a person has stored under a number: verdicts, certificates,
	// digests and names of files, never the documents. Visitors who are not signed in store none. `0s`: no report is stored.
	Reports time.Duration `yaml:"reports" default:"43800h" min:"0s"`
	// Whether people who have no second factor may add the first one on the pages, by their
	// sign-in alone. Those who have one confirm each change by it. Without it, the first factor
	// is the task of an operator.
	FirstFactor bool `yaml:"first_factor" default:"true"`
}
