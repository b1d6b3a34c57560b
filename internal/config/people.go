// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the machine may have no time zones

	"tamga/internal/domain/contact"
	"tamga/internal/domain/effect"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/user"
)

// Users configures names and contacts of users.
type Users struct {
	// Components of distinguished names: the numbers clients use for them, their rules and their
	// order. Default: the sixteen components of [users.md](users.md).
	Names []Name `yaml:"names"`
	// Whether two users may not have the same distinguished name.
	UniqueNames bool `yaml:"unique_names"`
	// Whether a phone or e-mail may belong to only one user, even if no user signs in with it.
	UniqueContacts bool `yaml:"unique_contacts"`
	// Region by whose rules phone numbers without a country code are read, as an ISO 3166-1 code. What
	// may also be a number of another country is refused. Stored numbers do not change.
	PhoneRegion string `yaml:"phone_region" default:"ru"`
	// Unit of `LockoutDelay`.
	LockDelayUnit time.Duration `yaml:"lock_delay_unit" default:"1s" min:"1s"`
	// Other identity providers where users may have logins.
	Issuers []Issuer `yaml:"issuers"`
	// Codes that confirm a phone or an e-mail.
	Codes struct {
		// Length of a code that confirms a phone or an e-mail.
		Digits int `yaml:"digits" default:"6"`
		// Validity of such a code.
		Life time.Duration `yaml:"life" default:"5m"`
		// Attempts at one such code.
		Attempts int `yaml:"attempts" default:"5"`
		// Pause before another such code is sent.
		Resend time.Duration `yaml:"resend" default:"1m"`
	} `yaml:"codes"`
	// Checks whether an identifier, contact or name is taken (`isunique`) that an operator may make
	// per second at each process, in the long run. Each identifier of a request counts. The answers
	// cover users of all groups.
	ChecksPerSecond float64 `yaml:"checks_per_second" default:"100" above:"0"`
	// Such checks of one operator at once.
	ChecksAtOnce int `yaml:"checks_at_once" default:"10000" above:"0"`
	// Ways to deliver a new password (the interface's `PasswordDisplayFormatList`).
	PasswordDisplay []string `yaml:"password_display" default:"[Screen, Frame, Phone, Email, Print]"`
	// Whether users with "identification only" may sign in through a public client. **Risk:**
	// everyone who knows a name can act as that user. A user with a second step passes it. A
	// method at level 1 confirms operations only where the policy of the user asks for it, and
	// guards no sign-in. A warning is logged at start.
	IDOnlyPublic bool `yaml:"id_only_public"`
	// Effects of operations of operators that need a second operator, such as
	// `[gives_secret, weakens_policy, deletes]`: `gives_secret`, `adds_factor`, `removes_factor`,
	// `weakens_policy`, `ends_access`, `gives_access`, `deletes`. See [users.md](users.md#second-operators-and-delays).
	SecondOperator []string `yaml:"second_operator"`
	// How long an operation of an operator waits that gives out a secret of a user who has something to
	// sign in or confirm with, adds or removes such a thing, or weakens a policy of the user. Production: `24h`.
	FactorDelay time.Duration `yaml:"factor_delay" default:"0s" min:"0s"`
	// Time within which a request that was approved, or whose delay is over, must be repeated.
	RequestLife time.Duration `yaml:"request_life" default:"72h" min:"1m"`
	// How answers write the addresses of two authentication methods: `interface` ends them in
	// `cert` and `external`, as the specification does; `product` in `certificate` and `saml`, for
	// clients of the closed product. Requests may use either.
	MethodURIs string `yaml:"method_uris" default:"interface" oneof:"interface product"`
}

// Name is one component of distinguished names.
type Name struct {
	// Number that clients use for the component.
	ID int `yaml:"id"`
	// Object identifier, dotted. Default: none, required.
	OID string `yaml:"oid"`
	// Short name, such as `CN`. Default: none, required.
	Name string `yaml:"name"`
	// Name that people see.
	DisplayName string `yaml:"display_name"`
	// Position in the name. The smallest comes first.
	Order int `yaml:"order"`
	// Fewest characters of a value if there is one.
	MinLength int `yaml:"min_length"`
	// Most characters of a value, at most 1024. Default: none, required.
	MaxLength int `yaml:"max_length"`
	// Whether a value is required.
	Required bool `yaml:"required"`
	// Values to choose from. Default: any.
	Values []string `yaml:"values"`
	// Value if none is given.
	Default string `yaml:"default"`
}

// Issuer is an identity provider outside of this service.
type Issuer struct {
	// Issuer of the users' logins. Default: none, required.
	Name string `yaml:"name"`
	// Name that people see.
	DisplayName string `yaml:"display_name"`
	// Description that people see.
	Description string `yaml:"description"`
}

// Contacts returns the rules of phones and e-mails.
func (c Users) Contacts() contact.Settings {
	return contact.Settings{
		Unique: c.UniqueContacts,
		Codes:  contact.CodeSettings{Digits: c.Codes.Digits, Life: c.Codes.Life, Attempts: c.Codes.Attempts, Resend: c.Codes.Resend},
	}
}

// Naming returns the rules of distinguished names.
func (c Users) Naming() (*user.Naming, error) {
	components := user.DefaultComponents()
	if len(c.Names) > 0 {
		components = nil
	}
	for _, n := range c.Names {
		components = append(components, user.Component{
			ID: n.ID, OID: n.OID, Name: n.Name, DisplayName: n.DisplayName, Order: n.Order,
			MinLength: n.MinLength, MaxLength: n.MaxLength, Required: n.Required, Values: n.Values, Default: n.Default,
		})
	}
	return user.NewNaming(components, c.UniqueNames)
}

// AllIssuers returns the other identity providers that clients see: those of users.issuers and
// those of external.
func (c *Config) AllIssuers() []user.Issuer {
	var list []user.Issuer
	told := map[string]bool{}
	for _, i := range c.Users.Issuers {
		told[user.FoldIssuer(i.Name)] = true
		list = append(list, user.Issuer{Name: i.Name, DisplayName: i.DisplayName, Description: i.Description})
	}
	for _, e := range c.External {
		if !told[user.FoldIssuer(e.Name)] {
			list = append(list, user.Issuer{Name: e.Name, DisplayName: cmp.Or(e.Title, e.Name), Description: e.Issuer})
		}
	}
	return list
}

func (c Users) check() (faults []error) {
	if err := contact.CheckPhoneRegion(c.PhoneRegion); err != nil {
		faults = append(faults, fmt.Errorf("users.phone_region: %w", err))
	}
	if _, err := c.Naming(); err != nil {
		faults = append(faults, fmt.Errorf("users.names: %w", err))
	}
	seen := map[string]bool{LocalIssuer: true}
	for i, p := range c.Issuers {
		if p.Name == "" || seen[p.Name] {
			faults = append(faults, fmt.Errorf("users.issuers[%d].name: want a unique name other than %s", i, LocalIssuer))
		}
		seen[p.Name] = true
	}
	for _, name := range c.SecondOperator {
		if _, known := effect.Named(name); known {
			continue
		}
		want := strings.Join(effect.Names(), ", ")
		if effects, is := effect.OfOperation(name); is {
			faults = append(faults, fmt.Errorf("users.second_operator: %q is an operation: write what it does, %s", name, effects))
		} else {
			faults = append(faults, fmt.Errorf("users.second_operator: %q: want effects of operations: %s", name, want))
		}
	}
	return faults
}

// Approved returns the effects that a second operator must approve.
func (c Users) Approved() effect.Set { return effect.OfNames(c.SecondOperator) }

// LocalIssuer is the name of our own identity provider on the wire.
const LocalIssuer = "realsts"

// Messages configures messages to people. The settings of each notifier belong to its package and
// follow these in the file.
type Messages struct {
	// Language of messages, `ru` or `en`, and of every other text for people who ask for neither: pages,
	// answers to wrong codes, names of actions, events and parts of names.
	Language string `yaml:"language" default:"ru"`
	// Time zone of marks in PDF, letters, SMS and printed passwords, and of people whose browsers do not say
	// theirs, such as `Asia/Yekaterinburg`. Without it `Europe/Moscow` if the language is `ru`, and `UTC`
	// otherwise. The interfaces have UTC.
	TimeZone string `yaml:"time_zone"`
	// Name of the service in messages.
	Title string `yaml:"title" default:"Tamga"`
	// Directory with texts that replace the program's texts, by the same file names.
	TemplatesDir string `yaml:"templates_dir"`
	// Store messages in the database and show them at `/captured-messages` instead of sending them.
	// **Risk:** everyone with access to the page can read codes and passwords. It is shown only at
	// loopback names and the host of `public_url`.
	Capture bool `yaml:"capture"`
	// Attempts at a message before it is given up.
	Attempts int `yaml:"attempts" default:"10"`
	// Longest pause between two attempts.
	LongestPause time.Duration `yaml:"longest_pause" default:"15m"`
	// How long messages that were sent or given up are listed; not below `operations.keep`.
	Keep time.Duration `yaml:"keep" default:"720h"`

	budgets []channelBudget
}

// channelBudget holds the settings messages.budgets.NAME of a channel.
type channelBudget struct {
	channel notify.Channel
	budget  *Budget
}

// Budget limits the messages per hour in one channel.
type Budget struct {
	// Most messages per hour to one address; 0: no limit.
	Recipient int `yaml:"recipient"`
	// Most messages per hour caused by one caller; 0: no limit.
	Caller int `yaml:"caller"`
	// Most messages per hour to numbers with the same first six digits; 0: no limit.
	Prefix int `yaml:"prefix"`
	// Most messages per hour of the installation; 0: no limit.
	Total int `yaml:"total"`
}

// defaultBudgets returns the settings of every channel that has a budget.
func defaultBudgets() (list []channelBudget) {
	for _, info := range notify.Channels() {
		if b := info.Budget; b != (notify.Budget{}) {
			list = append(list, channelBudget{info.Channel, &Budget{Recipient: b.Recipient, Caller: b.Actor, Prefix: b.Prefix, Total: b.Total}})
		}
	}
	return list
}

// Settings returns the rules of delivery.
func (c Messages) Settings() notify.Settings {
	s := notify.DefaultSettings()
	s.Language, s.Attempts, s.LongestPause, s.Keep = c.Language, c.Attempts, c.LongestPause, c.Keep
	for _, of := range c.budgets {
		b := of.budget
		s.Budgets[of.channel] = notify.Budget{Recipient: b.Recipient, Actor: b.Caller, Prefix: b.Prefix, Total: b.Total}
	}
	if c.Capture {
		// Captured messages need no remote server, and messages of a killed process are retried
		// soon.
		s.SendTime, s.Lease = time.Second, 2*time.Second
	}
	return s
}

// Zone returns the time zone of people whose browsers do not say theirs.
func (c Messages) Zone() (*time.Location, error) {
	name := c.TimeZone
	switch {
	case name == "" && c.Language == "ru":
		name = "Europe/Moscow"
	case name == "Local":
		return nil, fmt.Errorf("messages.time_zone: %q, want a name such as Europe/Moscow", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("messages.time_zone: %q, want a name such as Europe/Moscow", name)
	}
	return zone, nil
}

// checkMessages returns the faults of the time zone and of notifiers: the own faults of each, two notifiers of the same
// channel, and a notifier together with captured messages that it would send.
func (c *Config) checkMessages() (faults []error) {
	if _, err := c.Messages.Zone(); err != nil {
		faults = append(faults, err)
	}
	by := map[notify.Channel]string{}
	for _, n := range c.parts.Notifiers {
		name := notifierPath(n)
		for _, err := range n.Check() {
			faults = append(faults, fmt.Errorf("%s.%w", name, err))
		}
		if !n.Configured() {
			continue
		}
		if other := by[n.Channel()]; other != "" {
			faults = append(faults, fmt.Errorf("%s: set this section or %s, not both", name, other))
		}
		by[n.Channel()] = name
		if u, ok := n.(notify.Uncaptured); c.Messages.Capture && !(ok && u.OnlyUncaptured()) {
			faults = append(faults, fmt.Errorf("messages.capture: remove %s: captured messages are not sent", name))
		}
	}
	return faults
}

// Notifiers returns the notifiers that the program has, with their settings.
func (c *Config) Notifiers() []notify.Plugin { return c.parts.Notifiers }

// notifierPath returns the name of a notifier's settings in the file.
func notifierPath(n notify.Plugin) string { return "messages." + n.Section() }
