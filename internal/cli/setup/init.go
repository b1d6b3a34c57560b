// SPDX-License-Identifier: Apache-2.0

// Package setup has the sub-commands init, which makes an installation, and doctor, which looks for
// faults of one. Begin with Init and Doctor.
package setup

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/config"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/user"
	"tamga/internal/domain/vault"
	"tamga/internal/files"
)

// Init is the sub-command init.
type Init struct {
	Config       string        `default:"tamga.yaml" placeholder:"FILE" help:"Configuration file to make. Secrets are made in the directory \"secrets\" beside it."`
	Data         string        `placeholder:"DIR" help:"Directory for the database, documents and the spool. Default: \"data\" beside the configuration."`
	PublicURL    string        `name:"public-url" placeholder:"URL" help:"Address of the service for people and in certificates, for ever."`
	Listen       string        `placeholder:"HOST:PORT" help:"Address to listen on. Default: 127.0.0.1:8080."`
	Database     string        `placeholder:"URL" help:"postgres://USER@HOST/NAME. Default: SQLite in the directory of --data."`
	DatabasePass string        `name:"database-password-file" placeholder:"FILE" help:"File with the password of the PostgreSQL user."`
	Certificate  string        `name:"tls-certificate" placeholder:"FILE" help:"Certificate chain (PEM) for TLS. Default: plain HTTP, behind a proxy."`
	Key          string        `name:"tls-key" placeholder:"FILE" help:"Key (PEM) of the certificate."`
	Authority    []string      `placeholder:"NAME=FILE" sep:"none" help:"Authority outside of the service that certifies keys of users on request, and its certificates (PEM). May be repeated."`
	BuiltIn      *bool         `negatable:"" help:"Let the built-in authority certify keys of users. Default: yes, unless --authority is given."`
	Parent       string        `placeholder:"FILE" help:"Certificates (PEM) of an outside authority, with its root, that certifies the built-in one. A request for that is made."`
	Subject      []string      `placeholder:"NAME=VALUE" sep:"none" help:"Part of the name in this request, for instance OGRN=1027700132195. May be repeated. Default: the name of the built-in authority."`
	Organization string        `placeholder:"NAME" help:"Organisation in the names of the built-in authority (certificates.organization). Default: Tamga."`
	CommonName   string        `placeholder:"NAME" help:"Beginning of the common names of the built-in authority, such as \"NAME GOST Root CA\" (certificates.common_name). Default: --organization."`
	RootYears    string        `placeholder:"YEARS" help:"Life of roots of the built-in authority (certificates.root_years). Default: 20."`
	IssuingYears string        `placeholder:"YEARS" help:"Life of its issuing authorities (certificates.issuing_years). Default: 15."`
	Life         string        `name:"certificate-life" placeholder:"TIME" help:"Validity of certificates of users, unless a request wants another one (certificates.life). Default: 10944h, 15 months."`
	CRLLife      string        `name:"crl-life" placeholder:"TIME" help:"Time from one revocation list to its next update (certificates.crl_life). Default: 168h."`
	TSP          []string      `name:"tsp" placeholder:"NAME=URL" sep:"none" help:"Time-stamp service outside of the service. May be repeated."`
	AllowNetwork []string      `placeholder:"NETWORK" sep:"none" help:"Private network or host where outside services may be reached, such as 10.1.0.0/16 (evidence.allow_networks). May be repeated."`
	Client       []string      `placeholder:"NAME" help:"Application that signs users in by password. A secret is made for it. May be repeated."`
	Group        string        `help:"Name of the first group of users. Default: Default."`
	Operator     string        `placeholder:"LOGIN" help:"Login of the first operator. Default: operator. A password is made."`
	FactorDelay  time.Duration `default:"24h" help:"How long a change waits that an operator makes to what users sign in with (users.factor_delay)."`
	FourEyes     bool          `default:"true" negatable:"" help:"Require a second operator for what gives out a secret of a user, weakens a policy or deletes."`
	User         string        `placeholder:"NAME" help:"System user of the service, who gets the data, for an init as root. The user gets no secrets: systemd gives them to the service."`
	Yes          bool          `short:"y" help:"Ask nothing: take flags and defaults."`
	JSON         bool          `help:"Print JSON instead of text. Asks nothing."`
}

// Help returns the text above the flags.
func (Init) Help() string {
	return `Makes a configuration, secrets, the database with its tables, the built-in authority, a first group and a first operator. At a terminal it asks for what no flag gives.

It may be repeated. What exists stays as it is, the configuration too; what is missing is made, also after an init that was stopped halfway.`
}

// step is one thing that init made or found.
type step struct {
	What cli.Sentence `json:"what"`
	Name string       `json:"name"`
	Made bool         `json:"made"`
}

// report is the result of init.
type report struct {
	Config string `json:"config"`
	Steps  []step `json:"steps"`
	// Differs has the flags that say something else than the configuration that exists.
	Differs []cli.Sentence `json:"differs,omitempty"`
	Next    []cli.Sentence `json:"next"`
}

func (r *report) add(what cli.Sentence, name string, made bool) {
	r.Steps = append(r.Steps, step{what, name, made})
}

// secretsDir is the directory of secrets beside the configuration.
const secretsDir = "secrets"

// Run makes what is missing.
func (i *Init) Run(c *cli.Console) error {
	result := &report{Config: i.Config}
	err := i.run(c, result)
	// What was made is said even if the rest failed: the command is repeated then.
	if printErr := i.print(c, result, err == nil); err == nil {
		err = printErr
	}
	return err
}

func (i *Init) run(c *cli.Console, result *report) error {
	if err := files.KeepMemoryPrivate(); err != nil {
		return err
	}
	if i.Data == "" {
		i.Data = filepath.Join(filepath.Dir(i.Config), "data")
	}
	if err := i.configuration(c, result); err != nil {
		return err
	}
	conf, err := config.Load(i.Config, nil, app.Parts())
	if err != nil {
		return err
	}
	if err := app.Validate(conf); err != nil {
		return fmt.Errorf("%s is invalid; correct it, or remove it to have it made anew:\n%w", i.Config, err)
	}
	if err := i.secrets(c.Context, conf, result); err != nil {
		return err
	}
	if file, ok := strings.CutPrefix(conf.Database, "sqlite:"); ok {
		if err := directory(filepath.Dir(conf.Path(file)), 0o700, cli.Say("directory of the data"), result); err != nil {
			return err
		}
	}
	have, err := i.database(c, conf, result)
	if err != nil {
		return err
	}
	if err := i.own(conf, result); err != nil {
		return err
	}
	i.next(conf, have, result)
	return nil
}

// configuration makes the configuration file unless it exists.
func (i *Init) configuration(c *cli.Console, result *report) error {
	_, err := os.Stat(i.Config)
	if err == nil {
		result.add(cli.Say("configuration"), i.Config, false)
		return i.compare(result)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !i.Yes && !i.JSON {
		if err := i.ask(c); err != nil {
			return err
		}
	}
	i.defaults()
	if i.PublicURL == "" {
		return errors.New("give --public-url: the address by which people and programs reach the service, such as https://sign.example.org. It is in every issued certificate for ever")
	}
	for _, a := range i.Authority {
		if name, file, ok := strings.Cut(a, "="); !ok || name == "" || file == "" {
			return fmt.Errorf("--authority %s: want NAME=FILE", a)
		}
	}
	if i.Parent == "" && len(i.Subject) > 0 {
		return errors.New("--subject: want --parent, the outside authority that the request is for")
	}
	evidence, err := i.evidence()
	if err != nil {
		return err
	}
	text, err := i.text(evidence)
	if err != nil {
		return err
	}
	// The text is checked before it becomes the configuration.
	conf, err := config.Decode(text, "", filepath.Dir(i.Config), app.Parts())
	if err == nil {
		err = app.Validate(conf)
	}
	if err != nil {
		return fmt.Errorf("these answers make no valid configuration:\n%w", err)
	}
	// A database that is in use has its operators: next says how to name one of them. Nothing is written before
	// the database can be used, so that corrected flags count.
	used, err := app.HasTables(c.Context, conf)
	if err != nil {
		said := c.Text("nothing was written, because the database cannot be used: %v. What to do: %s", err, databaseRemedy(err))
		return errors.New(said)
	}
	if !used {
		text = fmt.Appendf(text, "pages:\n  # Operators who change groups and read the audit log on the pages. This is the first operator.\n  administrators: [%s]\n", strconv.Quote(uuid.NewString()))
	}
	if err := directory(filepath.Dir(i.Config), 0o750, cli.Say("directory of the configuration"), result); err != nil {
		return err
	}
	if err := i.keep(evidence, result); err != nil {
		return err
	}
	made, err := files.Create(i.Config, text, 0o640)
	if err != nil {
		return err
	}
	result.add(cli.Say("configuration"), i.Config, made)
	return nil
}

func (i *Init) defaults() {
	set := func(to *string, value string) {
		if *to == "" {
			*to = value
		}
	}
	set(&i.Listen, "127.0.0.1:8080")
	set(&i.Group, "Default")
	set(&i.Operator, "operator")
	set(&i.CommonName, i.Organization)
	set(&i.Database, "sqlite:"+filepath.Join(i.path(i.Data), "tamga.db"))
	if i.BuiltIn == nil {
		yes := len(i.Authority) == 0
		i.BuiltIn = &yes
	}
}

// ask asks for what no flag gives. Without a terminal it asks nothing.
func (i *Init) ask(c *cli.Console) error {
	t, err := c.OpenDialog()
	if err != nil {
		return nil
	}
	defer t.Close()
	questions := []struct {
		to       *string
		question cli.Word
		answer   string
		check    func(answer string) error
	}{
		{&i.PublicURL, "Address of the service for people and in certificates, for ever", "https://sign.example.org", i.setting("public_url")},
		{&i.Listen, "Address to listen on", "127.0.0.1:8080", i.setting("listen")},
		{&i.Group, "Name of the first group of users", "Default", nil},
		{&i.Operator, "Login of the first operator", "operator", nil},
	}
	for _, q := range questions {
		if *q.to == "" {
			if *q.to, err = t.AskChecked(c.Word(q.question), q.answer, q.check); err != nil {
				return err
			}
		}
	}
	if err := i.askDatabase(c, t); err != nil {
		return err
	}
	if i.BuiltIn == nil && len(i.Authority) == 0 {
		yes, err := t.Confirm(c.Text("Shall the built-in authority certify keys of users?"), true)
		if err != nil {
			return err
		}
		i.BuiltIn = &yes
		if !yes {
			name, err := t.Ask(c.Text("Name of the authority outside"), "Authority")
			if err != nil {
				return err
			}
			file, err := t.AskChecked(c.Text("File with its certificates (PEM)"), "", certificates)
			if err != nil {
				return err
			}
			i.Authority = []string{name + "=" + file}
		} else if i.Parent == "" {
			question := c.Text("File with the certificates (PEM) of an outside authority that certifies the built-in one; empty: the built-in one has its own root")
			if i.Parent, err = t.AskChecked(question, "", func(answer string) error {
				if answer == "" {
					return nil
				}
				return certificates(answer)
			}); err != nil {
				return err
			}
		}
	}
	if err := i.askAuthority(c, t); err != nil {
		return err
	}
	if i.FourEyes {
		if i.FourEyes, err = t.Confirm(c.Text("Require a second operator for deleting users and resetting passwords (recommended for production)?"), true); err != nil {
			return err
		}
	}
	return nil
}

// authoritySetting is what init asks and writes about the built-in authority.
type authoritySetting = struct {
	question cli.Word
	proposed string
	name     string // below certificates
	to       *string
}

// authority returns the settings of the built-in authority, in the order of the questions.
func (i *Init) authority() []authoritySetting {
	return []struct {
		question       cli.Word
		proposed, name string
		to             *string
	}{
		{"Organisation in the names of the built-in authority", "Tamga", "organization", &i.Organization},
		{"Beginning of the common names of the built-in authority", "Tamga", "common_name", &i.CommonName},
		{"Life of roots of the built-in authority, in years", "20", "root_years", &i.RootYears},
		{"Life of its issuing authorities, in years", "15", "issuing_years", &i.IssuingYears},
		{"Validity of certificates of users, unless a request wants another one (10944h is 15 months)", "10944h", "life", &i.Life},
		{"Time from one revocation list to its next update", "168h", "crl_life", &i.CRLLife},
	}
}

// askAuthority asks for names and lifetimes of the built-in authority, which makes its certificates at once.
func (i *Init) askAuthority(c *cli.Console, t *cli.Dialog) (err error) {
	if i.BuiltIn != nil && !*i.BuiltIn {
		return nil
	}
	for _, s := range i.authority() {
		if *s.to != "" {
			continue
		}
		proposed := s.proposed
		if s.to == &i.CommonName && i.Organization != "" {
			proposed = i.Organization
		}
		check := i.setting("certificates." + s.name)
		if *s.to, err = t.AskChecked(c.Word(s.question), proposed, check); err != nil {
			return err
		}
	}
	return nil
}

// certificates checks a file of certificates.
func certificates(file string) error {
	_, err := files.Certificates(file)
	return err
}

// setting returns the check of an answer that becomes a setting.
func (i *Init) setting(name string) func(answer string) error {
	return func(answer string) error {
		line := name + ": " + scalar(answer)
		if section, key, below := strings.Cut(name, "."); below {
			line = section + ": {" + key + ": " + scalar(answer) + "}"
		}
		text := "master_keys: {active: \"1\", files: {\"1\": master.key}}\n" + line + "\n"
		conf, err := config.Decode([]byte(text), "", filepath.Dir(i.Config), app.Parts())
		faults := config.Each(err)
		if conf != nil {
			faults = append(faults, config.Each(app.Validate(conf))...)
		}
		for _, f := range faults {
			// Other settings may be needed too: their questions come later.
			if config.FaultOf(f).Key == name {
				return f
			}
		}
		return nil
	}
}

// scalar returns an answer as a value of YAML: a whole number as it is, a text and a time in quotation marks.
func scalar(answer string) string {
	if answer != "" && strings.Trim(answer, "0123456789") == "" {
		return answer
	}
	return strconv.Quote(answer)
}

// askDatabase asks for the database until one can be used. It is the last thing to be wrong, and the first that
// people get wrong.
func (i *Init) askDatabase(c *cli.Console, t *cli.Dialog) (err error) {
	given := i.Database != ""
	for {
		if !given {
			if i.Database, err = t.AskChecked(c.Text("Database: postgres://USER@HOST/NAME, or"), "sqlite:"+filepath.Join(i.path(i.Data), "tamga.db"), i.setting("database")); err != nil {
				return err
			}
		}
		asked := false
		if strings.HasPrefix(i.Database, "postgres") && i.DatabasePass == "" {
			asked = true
			if i.DatabasePass, err = t.AskChecked(c.Text("File with the password of the PostgreSQL user, if it needs one"), "", func(answer string) error {
				if answer == "" {
					return nil
				}
				_, err := files.OwnSecret(answer, "the password file")
				return err
			}); err != nil {
				return err
			}
		}
		if given && !asked {
			return nil // flags are checked with all others
		}
		conf := &config.Config{Database: i.Database}
		if i.DatabasePass != "" {
			if conf.DatabasePasswordFile, err = filepath.Abs(i.DatabasePass); err != nil {
				return err
			}
		}
		if file, is := strings.CutPrefix(i.Database, "sqlite:"); is && !filepath.IsAbs(file) {
			conf.Database = "sqlite:" + filepath.Join(filepath.Dir(i.Config), file)
		}
		_, err = app.HasTables(c.Context, conf)
		if err == nil {
			return nil
		}
		if c.Context.Err() != nil {
			return c.Context.Err()
		}
		if given && i.DatabasePass == "" {
			return err
		}
		t.Say(c.Text("%v. What to do: %s", err, databaseRemedy(err)))
		i.DatabasePass = ""
	}
}

// compare notes the flags that say something else than the configuration that exists.
func (i *Init) compare(result *report) error {
	conf, err := config.Load(i.Config, nil, app.Parts())
	if err != nil {
		return nil // run says it
	}
	differs := func(flag, given, have string) {
		if given != "" && given != have {
			result.Differs = append(result.Differs, cli.Say("--%s %s is not used: %s exists and says %q. Change it there", flag, given, i.Config, have))
		}
	}
	pathDiffers := func(flag, given, have string) {
		if given == "" {
			return
		}
		given, err := filepath.Abs(given)
		if have != "" {
			have = conf.Path(have)
			if absolute, err := filepath.Abs(have); err == nil {
				have = absolute
			}
		}
		if err == nil {
			differs(flag, given, have)
		}
	}
	differs("public-url", i.PublicURL, conf.PublicURL)
	differs("listen", i.Listen, conf.Listen)
	differs("database", withoutPassword(i.Database), withoutPassword(conf.Database))
	pathDiffers("database-password-file", i.DatabasePass, conf.DatabasePasswordFile)
	pathDiffers("tls-certificate", i.Certificate, conf.TLS.CertificateFile)
	pathDiffers("tls-key", i.Key, conf.TLS.KeyFile)
	names := &conf.Certificates
	differs("organization", i.Organization, names.Organization)
	differs("common-name", i.CommonName, names.CommonName)
	differs("root-years", i.RootYears, strconv.Itoa(names.RootYears))
	differs("issuing-years", i.IssuingYears, strconv.Itoa(names.IssuingYears))
	lifeDiffers := func(flag, given string, have time.Duration) {
		if d, err := time.ParseDuration(given); err == nil && d != have {
			differs(flag, given, have.String())
		}
	}
	lifeDiffers("certificate-life", i.Life, names.Life)
	lifeDiffers("crl-life", i.CRLLife, names.CRLLife)
	return nil
}

// path returns a path as the configuration names it: relative to the directory of the configuration if
// it is below that, or was given as a relative path.
func (i *Init) path(file string) string {
	dir := filepath.Dir(i.Config)
	absolute := filepath.IsAbs(file)
	if absolute != filepath.IsAbs(dir) {
		var err error
		if dir, err = filepath.Abs(dir); err != nil {
			return file
		}
		if !absolute {
			if file, err = filepath.Abs(file); err != nil {
				return file
			}
		}
	}
	relative, err := filepath.Rel(dir, file)
	if err != nil || absolute && !filepath.IsLocal(relative) {
		return file
	}
	return relative
}

// text returns the configuration. Values are written as JSON strings, which YAML reads.
func (i *Init) text(evidence []trusted) ([]byte, error) {
	quote := func(s string) string { return strconv.Quote(s) }
	var b strings.Builder
	fmt.Fprintf(&b, "# Configuration of Tamga, made by tamga init. docs/config.md has all settings; check changes with:\n#   tamga config check --config %s\n", i.Config)
	fmt.Fprintf(&b, "listen: %s\n", quote(i.Listen))
	fmt.Fprintf(&b, "# Issued certificates name this address for ever.\npublic_url: %s\n", quote(i.PublicURL))
	if i.Certificate != "" || i.Key != "" {
		fmt.Fprintf(&b, "tls:\n  certificate_file: %s\n  key_file: %s\n", quote(i.path(i.Certificate)), quote(i.path(i.Key)))
	}
	fmt.Fprintf(&b, "database: %s\n", quote(i.Database))
	if i.DatabasePass != "" {
		fmt.Fprintf(&b, "database_password_file: %s\n", quote(i.path(i.DatabasePass)))
	}
	fmt.Fprintf(&b, "blob_dir: %s\nspool_dir: %s\n", quote(filepath.Join(i.path(i.Data), "blobs")), quote(filepath.Join(i.path(i.Data), "spool")))
	fmt.Fprintf(&b, "# Keep copies of these files separate from the database. \"tamga key rotate\" replaces the key.\nmaster_keys:\n  active: \"1\"\n  files:\n    \"1\": %s\n", quote(filepath.Join(secretsDir, "master-1.key")))
	b.WriteString("certificates:\n")
	if *i.BuiltIn {
		b.WriteString("  # An operator approves on the pages or the command line, and sees what differs from the user's record.\n  approval: operator\n")
	}
	for _, s := range i.authority() {
		if *s.to != "" {
			fmt.Fprintf(&b, "  %s: %s\n", s.name, scalar(*s.to))
		}
	}
	if !*i.BuiltIn || len(i.Authority) > 0 {
		fmt.Fprintf(&b, "  built_in: %t\n", *i.BuiltIn)
		for n, a := range i.Authority {
			if n == 0 {
				b.WriteString("  authorities:\n")
			}
			name, file, _ := strings.Cut(a, "=")
			fmt.Fprintf(&b, "    - id: %d\n      name: %s\n      certificates_file: %s\n", n+2, quote(name), quote(i.path(file)))
		}
	}
	i.evidenceText(&b, evidence)
	fmt.Fprintf(&b, "users:\n  # How long a change waits that an operator makes to what users sign in with.\n  factor_delay: %s\n", delay(i.FactorDelay))
	if i.FourEyes {
		b.WriteString("  # What one operator must not do alone.\n  second_operator: [gives_secret, weakens_policy, deletes]\n")
	}
	fmt.Fprintf(&b, "messages:\n  push:\n    web:\n      # Push services of browsers know the installation by this key.\n      key_file: %s\n", quote(filepath.Join(secretsDir, "webpush.pem")))
	b.WriteString("# Programs that confirm by login and password and send no ClientId are this client, which has\n# no secret_file and has password_grant.\n# signin:\n#   default_client: ID\n")
	if len(i.Client) > 0 {
		b.WriteString("clients:\n")
		for _, id := range i.Client {
			if id == "" || strings.ContainsAny(id, "/\\\x00") || id[0] == '.' {
				return nil, fmt.Errorf("--client %s: want a name without slashes", id)
			}
			fmt.Fprintf(&b, "  - id: %s\n    secret_file: %s\n    password_grant: true\n", quote(id), quote(filepath.Join(secretsDir, "client-"+id+".secret")))
		}
	}
	return []byte(b.String()), nil
}

// delay returns a time without its parts that are zero: 24h, not 24h0m0s.
func delay(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// directory makes a directory unless it exists.
func directory(dir string, mode fs.FileMode, what cli.Sentence, result *report) error {
	info, err := os.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		return err
	}
	result.add(what, dir, true)
	return os.Chmod(dir, mode)
}

// secrets makes the files of the master keys, of clients and of notifications that are missing. It makes no master key
// for a database that has tables already: that would hide that the right one is lost.
func (i *Init) secrets(ctx context.Context, conf *config.Config, result *report) error {
	for id, name := range conf.MasterKeys.Files {
		file := files.Credential(conf.Path(name))
		if err := directory(filepath.Dir(file), 0o700, cli.Say("directory of secrets"), result); err != nil {
			return err
		}
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			used, err := app.HasTables(ctx, conf)
			if err != nil {
				return err
			}
			if used {
				return fmt.Errorf("master key %s: %s is missing, but the database is in use: put the file back from your copy", id, file)
			}
		}
		made, err := random(file, vault.MasterKeySize)
		if err != nil {
			return err
		}
		result.add(cli.Say("master key %s", id), file, made)
	}
	for _, client := range conf.Clients {
		if client.SecretFile == "" {
			continue
		}
		file := files.Credential(conf.Path(client.SecretFile))
		made, err := random(file, 24)
		if err != nil {
			return err
		}
		result.add(cli.Say("secret of client %s", client.ID), file, made)
	}
	file, made, err := app.MakeBrowserKey(conf)
	if err == nil && file != "" {
		result.add(cli.Say("key for notifications of browsers"), file, made)
	}
	return err
}

// random makes a file with random bytes in hexadecimal unless it exists.
func random(file string, size int) (made bool, err error) {
	key := make([]byte, size)
	defer clear(key)
	rand.Read(key)
	text := append(hex.AppendEncode(nil, key), '\n')
	defer clear(text)
	return files.Create(file, text, 0o600)
}

// database makes the tables, the built-in authority, the group and the operator.
func (i *Init) database(c *cli.Console, conf *config.Config, result *report) (have installed, err error) {
	used, err := app.HasTables(c.Context, conf)
	if err != nil {
		return have, err
	}
	base, err := app.Open(c.Context, conf, app.ForCommand, app.NewLogger(c.Stderr, conf))
	if err != nil {
		return have, err
	}
	err = base.Migrate(c.Context)
	base.Close()
	if err != nil {
		return have, fmt.Errorf("making the tables of the database: %w", err)
	}
	result.add(cli.Say("database"), withoutPassword(conf.Database), !used)
	from := &cli.Installation{Config: i.Config}
	err = cli.Administer(c, from, "Initialize", "", func(ctx context.Context, s *app.Services) error {
		_, err := s.Authority.Roots(ctx)
		absent := err != nil
		if err := s.Authority.Bootstrap(ctx); err != nil {
			return err
		}
		result.add(cli.Say("built-in authority"), "GOST and ECDSA", absent)
		if err := i.request(ctx, conf, s, result); err != nil {
			return err
		}
		if have.waiting, have.request, have.outside, err = i.waiting(ctx, s); err != nil {
			return err
		}
		return i.people(ctx, s, &have, result)
	})
	return have, err
}

// people makes the first group and the first operator, unless there is a group or an operator.
func (i *Init) people(ctx context.Context, s *app.Services, have *installed, result *report) error {
	i.defaults()
	groups, err := s.Users.Groups(ctx)
	if err != nil {
		return err
	}
	have.group = i.Group
	if len(groups) > 0 {
		have.group = groups[0].Name
		for _, g := range groups {
			if g.Name == i.Group {
				have.group = i.Group
			}
		}
	} else if _, err := s.Users.AddGroup(ctx, have.group, ""); err != nil {
		return err
	}
	result.add(cli.Say("group"), have.group, len(groups) == 0)
	list, err := s.Users.Operators(ctx)
	if err != nil {
		return err
	}
	have.name(list, s.Config)
	if len(have.operators) > 0 {
		result.add(cli.Say("operator"), strings.Join(have.operators, ", "), false)
		return nil
	}
	// In an empty database the first operator is the one that the configuration names, also if an init
	// before this one made the configuration. No later operator gets the identifier of a deleted one.
	some, err := s.Users.Page(ctx, user.Query{Limit: 1})
	if err != nil {
		return err
	}
	id := ""
	if named := s.Config.Pages.Administrators; len(some) == 0 && len(named) > 0 {
		if parsed, err := uuid.Parse(named[0]); err == nil && parsed.String() == named[0] {
			id = named[0]
		}
	}
	// The password is on disk before the operator is in the database, so that a repeated init finds
	// it.
	file := i.passwordFile()
	if err := directory(filepath.Dir(file), 0o700, cli.Say("directory of secrets"), result); err != nil {
		return err
	}
	if _, err := files.Create(file, []byte(rand.Text()+"\n"), 0o600); err != nil {
		return err
	}
	password, err := files.OwnSecret(file, "password of the operator")
	if err != nil {
		return err
	}
	set, err := s.Identity.PreparePassword(ctx, password)
	if err != nil {
		return err
	}
	first, err := s.Users.Add(ctx, user.Account{
		ID: id, Login: i.Operator, Operator: true, Groups: []string{have.group},
		Also: func(ctx context.Context, u user.User) error { return set(ctx, u.ID) },
	})
	if f, ok := fault.As(err); ok {
		return fmt.Errorf("operator %s: %s", i.Operator, f.Message)
	}
	if err != nil {
		return err
	}
	result.add(cli.Say("operator"), i.Operator, true)
	have.name([]user.User{first}, s.Config)
	return nil
}

// passwordFile is the file with the first password of the operator.
func (i *Init) passwordFile() string {
	return filepath.Join(filepath.Dir(i.Config), secretsDir, "operator.password")
}

// withoutPassword returns the address of a database without a password.
func withoutPassword(address string) string {
	if at := strings.LastIndex(address, "@"); at >= 0 {
		if scheme := strings.Index(address, "://"); scheme >= 0 && scheme < at {
			name, _, _ := strings.Cut(address[scheme+3:at], ":")
			return address[:scheme+3] + name + address[at:]
		}
	}
	return address
}

func (i *Init) print(c *cli.Console, r *report, complete bool) error {
	if i.JSON {
		out := json.NewEncoder(c.Stdout)
		out.SetIndent("", "  ")
		return out.Encode(r)
	}
	var text strings.Builder
	changed := false
	for _, s := range r.Steps {
		state := c.Text("exists")
		if s.Made {
			state, changed = c.Text("made"), true
		}
		fmt.Fprintf(&text, "%-7s %s: %s\n", state, c.Say(s.What), cli.Printable(s.Name))
	}
	for _, s := range r.Differs {
		text.WriteString(cli.Printable(c.Say(s)) + "\n")
	}
	if complete && !changed {
		text.WriteString(c.Text("\nEverything exists; nothing was changed.\n"))
	}
	if complete {
		text.WriteString(c.Text("\nWhat comes next:\n"))
		for n, s := range r.Next {
			fmt.Fprintf(&text, "%2d. %s.\n", n+1, cli.Printable(c.Say(s)))
		}
	}
	return c.Print("%s", text.String())
}
