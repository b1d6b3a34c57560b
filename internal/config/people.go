package config

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"tamga/internal/domain/auth"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/user"
)

// Users says how users are named and reached.
type Users struct {
	// Components of distinguished names: the numbers clients use for them, their
	// rules and their order. Empty: the sixteen of docs/users.md.
	Names []Name `yaml:"names"`
	// Whether two users may not have the same distinguished name. Default false.
	UniqueNames bool `yaml:"unique_names"`
	// Whether a phone or e-mail belongs to one user alone even when nobody signs in
	// with it. Default false.
	UniqueContacts bool `yaml:"unique_contacts"`
	// Unit of LockoutDelay. Default 1s.
	LockDelayUnit time.Duration `yaml:"lock_delay_unit"`
	// Other identity providers that users may have logins at.
	Issuers []Issuer `yaml:"issuers"`
	// Codes that confirm a phone or an e-mail.
	Codes struct {
		Digits   int           `yaml:"digits"`   // default 6
		Life     time.Duration `yaml:"life"`     // default 300s
		Attempts int           `yaml:"attempts"` // at one code, default 5
		Resend   time.Duration `yaml:"resend"`   // before another may be sent, default 60s
	} `yaml:"codes"`
	// Questions whether a value is taken (isunique) that an operator may ask: a second
	// in the long run, and at once; each identifier of a request counts. The answers
	// tell of users out of the operator's reach as well. Defaults 100, 10000.
	ChecksPerSecond float64 `yaml:"checks_per_second"`
	ChecksAtOnce    int     `yaml:"checks_at_once"`
	// Ways a new password may go (the interface's PasswordDisplayFormatList): Screen,
	// Frame, Phone, Email, Print. Default: all of them.
	PasswordDisplay []string `yaml:"password_display"`
	// Whether users with the method "identification only" may sign in through a
	// public client by their name alone. Default false: whoever knows a name would be
	// that user.
	IDOnlyPublic bool `yaml:"id_only_public"`
	// How the addresses of the methods cert and external end in answers: "interface" as in
	// the specification, or "product" (certificate, saml) for clients of the closed
	// product. Both are taken in requests. Default interface.
	MethodURIs string `yaml:"method_uris"`
}

// Name is one component of distinguished names.
type Name struct {
	ID          int      `yaml:"id"`           // number on the wire
	OID         string   `yaml:"oid"`          // dotted
	Name        string   `yaml:"name"`         // short, such as CN
	DisplayName string   `yaml:"display_name"` // for people
	Order       int      `yaml:"order"`        // the smallest comes first
	MinLength   int      `yaml:"min_length"`   // characters of a value that is there
	MaxLength   int      `yaml:"max_length"`
	Required    bool     `yaml:"required"`
	Values      []string `yaml:"values"`  // to choose from; empty: any
	Default     string   `yaml:"default"` // where none is given
}

// Issuer is an identity provider that is not ours.
type Issuer struct {
	Name        string `yaml:"name"`
	DisplayName string `yaml:"display_name"`
	Description string `yaml:"description"`
}

func defaultUsers() Users {
	codes := contact.DefaultSettings().Codes
	c := Users{LockDelayUnit: time.Second, ChecksPerSecond: 100, ChecksAtOnce: 10_000, PasswordDisplay: []string{"Screen", "Frame", "Phone", "Email", "Print"}, MethodURIs: string(auth.SpellingInterface)}
	c.Codes.Digits, c.Codes.Life, c.Codes.Attempts, c.Codes.Resend = codes.Digits, codes.Life, codes.Attempts, codes.Resend
	return c
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
	if c.LockDelayUnit < time.Second {
		faults = append(faults, errors.New("users.lock_delay_unit: want at least 1s"))
	}
	if !isOneOf(c.MethodURIs, string(auth.SpellingInterface), string(auth.SpellingProduct)) {
		faults = append(faults, errors.New("users.method_uris: want interface or product"))
	}
	if c.ChecksPerSecond <= 0 || c.ChecksAtOnce < 1 {
		faults = append(faults, errors.New("users: checks_per_second and checks_at_once: want more than 0"))
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
	// Language of messages: ru or en. Default ru.
	Language string `yaml:"language"`
	// What the service calls itself in messages. Default Tamga.
	Title string `yaml:"title"`
	// Directory with texts that take the place of the program's. Empty: none.
	TemplatesDir string `yaml:"templates_dir"`
	// Keep messages in the database and show them on a page instead of sending them.
	// Default false; --dev sets it.
	Capture bool `yaml:"capture"`
	// Attempts at a message before it is given up, and the longest pause between two.
	// Defaults 10, 15m.
	Attempts     int           `yaml:"attempts"`
	LongestPause time.Duration `yaml:"longest_pause"`
	// How long messages that were sent or given up are listed. Default 720h.
	Keep time.Duration `yaml:"keep"`
	// Most messages of an hour: to one address, caused by one caller, to numbers that
	// agree in their first six digits, and of the installation; 0 is no bound.
	Budgets struct {
		Email Budget `yaml:"email"` // default 20, 10000, -, 0
		SMS   Budget `yaml:"sms"`   // default 10, 10000, 1000, 0
	} `yaml:"budgets"`
	Mail Mail `yaml:"mail"`
	SMS  SMS  `yaml:"sms"`
	Push Push `yaml:"push"`
}

// Budget bounds the messages of an hour.
type Budget struct {
	Recipient int `yaml:"recipient"`
	Caller    int `yaml:"caller"`
	Prefix    int `yaml:"prefix"`
	Total     int `yaml:"total"`
}

func budgetOf(b notify.Budget) Budget {
	return Budget{Recipient: b.Recipient, Caller: b.Actor, Prefix: b.Prefix, Total: b.Total}
}

func (b Budget) budget() notify.Budget {
	return notify.Budget{Recipient: b.Recipient, Actor: b.Caller, Prefix: b.Prefix, Total: b.Total}
}

// Mail is the SMTP server that takes our mail.
type Mail struct {
	// HOST:PORT. Empty: no e-mail is sent.
	Address string `yaml:"address"`
	// starttls (default), tls, or none for a server on this machine.
	Security string `yaml:"security"`
	// Authorities (PEM) the server's certificate leads to. Empty: those of the system.
	AuthoritiesFile string `yaml:"authorities_file"`
	// Name and password for the server. Empty: it takes our mail without.
	User         string `yaml:"user"`
	PasswordFile string `yaml:"password_file"`
	// Address and name of the sender.
	From     string `yaml:"from"`
	FromName string `yaml:"from_name"`
}

// SMS is what takes our SMS: a message centre by SMPP 3.4, or a gateway by HTTP.
type SMS struct {
	SMPP SMPP    `yaml:"smpp"`
	HTTP Gateway `yaml:"http"`
}

// SMPP is a message centre.
type SMPP struct {
	// HOST:PORT. Empty: none.
	Address         string `yaml:"address"`
	TLS             bool   `yaml:"tls"`              // default false
	AuthoritiesFile string `yaml:"authorities_file"` // with tls; empty: those of the system
	SystemID        string `yaml:"system_id"`
	PasswordFile    string `yaml:"password_file"` // at most 8 octets, says the protocol
	SystemType      string `yaml:"system_type"`
	Transmitter     bool   `yaml:"transmitter"` // bind as a transmitter alone; default false
	From            string `yaml:"from"`        // a name of up to 11 letters, or digits
	Unicode         bool   `yaml:"unicode"`     // send everything in UCS-2; default false
	// Parts of messages a second. Default 0: no bound.
	PerSecond float64 `yaml:"per_second"`
}

// Gateway is a gateway that takes a message by one HTTP request. Values of
// query, form and headers and texts in json may name {{.To}}, {{.Text}} (not in
// headers), {{.ID}} and {{.Secret}}; each is encoded for where it stands.
type Gateway struct {
	URL     string            `yaml:"url"`    // empty: none
	Method  string            `yaml:"method"` // GET or POST; empty: POST with form or json
	Query   map[string]string `yaml:"query"`
	Form    map[string]string `yaml:"form"`
	JSON    string            `yaml:"json"` // not beside form
	Headers map[string]string `yaml:"headers"`
	// User of HTTP Basic, whose password is the secret. Empty: none.
	User       string `yaml:"user"`
	SecretFile string `yaml:"secret_file"`
	// Regular expression that an answer matches when the message was taken. Empty:
	// every answer 200 to 299.
	Success         string `yaml:"success"`
	AuthoritiesFile string `yaml:"authorities_file"` // empty: those of the system
}

func defaultMessages() Messages {
	d := notify.DefaultSettings()
	c := Messages{Language: d.Language, Title: "Tamga", Attempts: d.Attempts, LongestPause: d.LongestPause, Keep: d.Keep}
	c.Budgets.Email, c.Budgets.SMS = budgetOf(d.Budgets[notify.Email]), budgetOf(d.Budgets[notify.SMS])
	c.Mail.Security = "starttls"
	c.Push = defaultPush()
	return c
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
		{isOneOf(c.Mail.Security, "starttls", "tls", "none"), "messages.mail.security: want starttls, tls or none"},
		{(c.Mail.User == "") == (c.Mail.PasswordFile == ""), "messages.mail: user and password_file go together"},
		{c.SMS.SMPP.Address == "" || c.SMS.HTTP.URL == "", "messages.sms: want smpp or http, not both"},
		{c.SMS.SMPP.PerSecond >= 0, "messages.sms.smpp.per_second: want 0 or more"},
		{!c.Capture || c.Mail.Address == "" && c.SMS.SMPP.Address == "" && c.SMS.HTTP.URL == "" && !c.Push.Configured(), "messages.capture: want no mail, no sms and no push beside it: captured messages are not sent"},
	} {
		if !k.ok {
			faults = append(faults, errors.New(k.text))
		}
	}
	return faults
}
