package config

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"tamga/internal/domain/contact"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/user"
)

// Users says how users are named and reached.
type Users struct {
	// Components of distinguished names: the numbers clients use for them, their rules and their
	// order. Default: the sixteen components of [users.md](users.md).
	Names []Name `yaml:"names"`
	// Whether two users may not have the same distinguished name.
	UniqueNames bool `yaml:"unique_names"`
	// Whether a phone or e-mail belongs to one user alone even when nobody signs in with it.
	UniqueContacts bool `yaml:"unique_contacts"`
	// Unit of `LockoutDelay`.
	LockDelayUnit time.Duration `yaml:"lock_delay_unit" default:"1s" min:"1s"`
	// Other identity providers that users may have logins at.
	Issuers []Issuer `yaml:"issuers"`
	// Codes that confirm a phone or an e-mail.
	Codes struct {
		// Length of a code that confirms a phone or an e-mail.
		Digits int `yaml:"digits" default:"6"`
		// Life of such a code.
		Life time.Duration `yaml:"life" default:"5m"`
		// Attempts at one such code.
		Attempts int `yaml:"attempts" default:"5"`
		// Pause before another such code is sent.
		Resend time.Duration `yaml:"resend" default:"1m"`
	} `yaml:"codes"`
	// Questions whether an identifier, contact or name is taken (`isunique`) that an operator may
	// ask of each process, in a second in the long run. Each identifier of a request counts. The
	// answers tell of users of all groups.
	ChecksPerSecond float64 `yaml:"checks_per_second" default:"100" above:"0"`
	// Such questions of one operator at once.
	ChecksAtOnce int `yaml:"checks_at_once" default:"10000" above:"0"`
	// Ways a new password may go (the interface's `PasswordDisplayFormatList`).
	PasswordDisplay []string `yaml:"password_display" default:"[Screen, Frame, Phone, Email, Print]"`
	// Whether users with "identification only" may sign in through a public client. **Risk:**
	// whoever knows a name is that user. A warning is logged at start.
	IDOnlyPublic bool `yaml:"id_only_public"`
	// How answers write the addresses of two authentication methods: `interface` ends them in
	// `cert` and `external`, as the specification does; `product` in `certificate` and `saml`,
	// for clients of the closed product. Requests may use either.
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
	// Name for people.
	DisplayName string `yaml:"display_name"`
	// Place in the name. The smallest comes first.
	Order int `yaml:"order"`
	// Fewest characters of a value that is there.
	MinLength int `yaml:"min_length"`
	// Most characters of a value, at most 1024. Default: none, required.
	MaxLength int `yaml:"max_length"`
	// Whether a value must be there.
	Required bool `yaml:"required"`
	// Values to choose from. Default: any.
	Values []string `yaml:"values"`
	// Value where none is given.
	Default string `yaml:"default"`
}

// Issuer is an identity provider that is not ours.
type Issuer struct {
	// Name that logins of users have as their issuer. Default: none, required.
	Name string `yaml:"name"`
	// Name for people.
	DisplayName string `yaml:"display_name"`
	// Description for people.
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

// AllIssuers returns the identity providers that clients see beside our own: those of
// users.issuers and those of external.
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
	if _, err := c.Naming(); err != nil {
		faults = append(faults, fmt.Errorf("users.names: %w", err))
	}
	seen := map[string]bool{LocalIssuer: true}
	for i, p := range c.Issuers {
		if p.Name == "" || seen[p.Name] {
			faults = append(faults, fmt.Errorf("users.issuers[%d].name: want a name of its own, another than %s", i, LocalIssuer))
		}
		seen[p.Name] = true
	}
	return faults
}

// LocalIssuer names our own identity provider on the wire.
const LocalIssuer = "realsts"

// Messages says how messages reach people.
type Messages struct {
	// Language of messages, `ru` or `en`.
	Language string `yaml:"language" default:"ru"`
	// What the service calls itself in messages.
	Title string `yaml:"title" default:"Tamga"`
	// Directory with texts that take the place of the program's, by the same file names.
	TemplatesDir string `yaml:"templates_dir"`
	// Keep messages in the database and show them at `/captured-messages` instead of sending
	// them. **Risk:** whoever reaches the page reads codes and passwords. It is shown at loopback
	// names and the host of `public_url` only.
	Capture bool `yaml:"capture"`
	// Attempts at a message before it is given up.
	Attempts int `yaml:"attempts" default:"10"`
	// Longest pause between two attempts.
	LongestPause time.Duration `yaml:"longest_pause" default:"15m"`
	// How long messages that were sent or given up are listed.
	Keep time.Duration `yaml:"keep" default:"720h"`
	// Most messages of an hour.
	Budgets Budgets `yaml:"budgets"`
	Mail    Mail    `yaml:"mail"`
	SMS     SMS     `yaml:"sms"`
	Push    Push    `yaml:"push"`
}

// Budgets bound the messages of an hour, by channel.
type Budgets struct {
	Email Budget `yaml:"email"`
	SMS   Budget `yaml:"sms"`
}

// Budget bounds the messages of an hour.
type Budget struct {
	// Most messages of an hour to one address; 0 is no bound.
	Recipient int `yaml:"recipient"`
	// Most messages of an hour caused by one caller; 0 is no bound.
	Caller int `yaml:"caller"`
	// Most messages of an hour to numbers that agree in their first six digits; 0 is no bound.
	Prefix int `yaml:"prefix"`
	// Most messages of an hour of the installation; 0 is no bound.
	Total int `yaml:"total"`
}

func budgetOf(b notify.Budget) Budget {
	return Budget{Recipient: b.Recipient, Caller: b.Actor, Prefix: b.Prefix, Total: b.Total}
}

func (b Budget) budget() notify.Budget {
	return notify.Budget{Recipient: b.Recipient, Actor: b.Caller, Prefix: b.Prefix, Total: b.Total}
}

// Mail is the SMTP server that takes our mail.
type Mail struct {
	// SMTP server, HOST:PORT. Without it no e-mail is sent.
	Address string `yaml:"address"`
	// `starttls`, `tls`, or `none` for a server on this machine.
	Security string `yaml:"security" default:"starttls" oneof:"starttls tls none"`
	// Authorities (PEM) of the server's certificate. Default: the system's.
	AuthoritiesFile string `yaml:"authorities_file"`
	// Name for the server, if it asks for one.
	User string `yaml:"user"`
	// File with the password for the server.
	PasswordFile string `yaml:"password_file"`
	// Address of the sender. Default: none, required.
	From string `yaml:"from"`
	// Name of the sender.
	FromName string `yaml:"from_name"`
}

// SMS is what takes our SMS: a message centre by SMPP 3.4, or a gateway by HTTP.
type SMS struct {
	SMPP SMPP    `yaml:"smpp"`
	HTTP Gateway `yaml:"http"`
}

// SMPP is a message centre.
type SMPP struct {
	// Message centre by SMPP 3.4, HOST:PORT.
	Address string `yaml:"address"`
	// Whether the connection is TLS.
	TLS bool `yaml:"tls"`
	// Authorities (PEM) of its certificate, with `tls`. Default: the system's.
	AuthoritiesFile string `yaml:"authorities_file"`
	// What the message centre knows us by.
	SystemID string `yaml:"system_id"`
	// File with the password, at most 8 bytes as the protocol says.
	PasswordFile string `yaml:"password_file"`
	// System type of the protocol, if the message centre asks for one.
	SystemType string `yaml:"system_type"`
	// Whether to bind as a transmitter alone.
	Transmitter bool `yaml:"transmitter"`
	// Sender: a name of up to 11 letters, or digits.
	From string `yaml:"from"`
	// Whether to send everything in UCS-2.
	Unicode bool `yaml:"unicode"`
	// Parts of messages in a second; 0 is no bound.
	PerSecond float64 `yaml:"per_second" min:"0"`
}

// Gateway is a gateway that takes a message by one HTTP request. Values of
// query, form and headers and texts in json may name {{.To}}, {{.Text}} (not in
// headers), {{.ID}} and {{.Secret}}; each is encoded for where it stands.
type Gateway struct {
	// Gateway that takes a message by one HTTP request.
	URL string `yaml:"url"`
	// `GET` or `POST`. Default: `POST` with `form` or `json`.
	Method string `yaml:"method"`
	// Parameters in the address. Values may name `{{.To}}`, `{{.Text}}`, `{{.ID}}` and
	// `{{.Secret}}`. Each is encoded for its place.
	Query map[string]string `yaml:"query"`
	// Parameters in the body, as of `query`.
	Form map[string]string `yaml:"form"`
	// Body in JSON, not beside `form`. Its texts may name what values of `query` may.
	JSON string `yaml:"json"`
	// Headers. Values may name what values of `query` may, but not `{{.Text}}`.
	Headers map[string]string `yaml:"headers"`
	// User of HTTP Basic, whose password is the secret.
	User string `yaml:"user"`
	// File with the secret.
	SecretFile string `yaml:"secret_file"`
	// Regular expression that an answer matches when the message was taken. Default: every answer
	// 200 to 299.
	Success string `yaml:"success"`
	// Authorities (PEM) of the gateway's certificate. Default: the system's.
	AuthoritiesFile string `yaml:"authorities_file"`
}

func defaultBudgets() (b Budgets) {
	d := notify.DefaultSettings().Budgets
	b.Email, b.SMS = budgetOf(d[notify.Email]), budgetOf(d[notify.SMS])
	return b
}

// Settings returns the rules of delivery.
func (c Messages) Settings() notify.Settings {
	s := notify.DefaultSettings()
	s.Language, s.Attempts, s.LongestPause, s.Keep = c.Language, c.Attempts, c.LongestPause, c.Keep
	s.Budgets = map[notify.Channel]notify.Budget{notify.Email: c.Budgets.Email.budget(), notify.SMS: c.Budgets.SMS.budget()}
	if c.Capture {
		// Nobody far away is waited for; what a killed process left is taken up soon.
		s.SendTime, s.Lease = time.Second, 2*time.Second
	}
	return s
}

func (c Messages) check() (faults []error) {
	for _, k := range []struct {
		ok   bool
		text string
	}{
		{c.Mail.Address == "" || c.Mail.From != "", "messages.mail.from: want the address of the sender"},
		{(c.Mail.User == "") == (c.Mail.PasswordFile == ""), "messages.mail: user and password_file go together"},
		{c.SMS.SMPP.Address == "" || c.SMS.HTTP.URL == "", "messages.sms: want smpp or http, not both"},
		{!c.Capture || c.Mail.Address == "" && c.SMS.SMPP.Address == "" && c.SMS.HTTP.URL == "" && !c.Push.Configured(), "messages.capture: want no mail, no sms and no push beside it: captured messages are not sent"},
	} {
		if !k.ok {
			faults = append(faults, errors.New(k.text))
		}
	}
	return faults
}
