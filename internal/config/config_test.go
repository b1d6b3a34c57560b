// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"tamga/internal/domain/confirm"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/device"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/password"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/user"
	"tamga/internal/domain/vault"
	"tamga/internal/setting"
	"tamga/sig/xmldsig"
)

func TestSettings(t *testing.T) {
	c, err := Load("", []string{
		"limits.signing_request=10MiB", "limits.other_request=512", "tokens.access_life=1m30s", "policy.allow_hash_signing=false",
		"resource_aliases=[a, b]", "listen=127.0.0.1:1", "pin.attempts=3",
	}, Parts{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Limits.SigningRequest != 10<<20 || c.Limits.OtherRequest != 512 || c.Tokens.AccessLife != 90*time.Second ||
		c.Policy.AllowHashSigning || !slices.Equal(c.ResourceAliases, []string{"a", "b"}) || c.Listen != "127.0.0.1:1" || c.PIN.Attempts != 3 {
		t.Errorf("got %+v", c)
	}
	if c.Argon2.Memory != 19<<20 {
		t.Errorf("a setting changed its neighbour: argon2.memory is %d", c.Argon2.Memory)
	}
	for _, wrong := range []string{"listen", "nothing=1", "limits.signing_request=many", "limits.signing_request=-1", "limits=1", "limits.signing_request=9999999999999GiB"} {
		if _, err := Load("", []string{wrong}, Parts{}); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("--set %s: got %v", wrong, err)
		}
	}
}

// notifier is a notify.Plugin with its own settings.
type notifier struct {
	Host string        `yaml:"host"`
	Life time.Duration `yaml:"life" default:"1m" min:"1s"`

	section string
}

func (n *notifier) Section() string                                  { return n.section }
func (n *notifier) Channel() notify.Channel                          { return notify.SMS }
func (n *notifier) Configured() bool                                 { return n.Host != "" }
func (n *notifier) Open(notify.Environment) (notify.Notifier, error) { return nil, nil }
func (n *notifier) Check() []error {
	if n.Host == "y" {
		return []error{errors.New("host: want another")}
	}
	return nil
}

// TestNotifiers checks that the settings of a notifier are a part of the file: they are set,
// checked and printed.
func TestNotifiers(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a: {host: x, life: 2s}", ""},
		{"a: {life: 0s}", "messages.a.life: want at least 1s"},
		{"a: {host: y}", "messages.a.host: want another"},
		{"a: {hots: y}", "messages.a.hots: unknown setting"},
		{"a: {host: x}, b: {c: {host: x}}", "messages.b.c: set this section or messages.a, not both"},
		{"keep: 23h59m", "messages.keep: 23h59m0s, want at least operations.keep (24h0m0s)"},
		{"a: {host: x}, capture: true", "messages.capture: remove messages.a: captured messages are not sent"},
	} {
		a, b := &notifier{section: "a"}, &notifier{section: "b.c"}
		settings := []string{"master_keys={active: a, files: {a: b}}", "messages={" + c.text + "}"}
		config, err := Load("", settings, Parts{Notifiers: []notify.Plugin{a, b}, Holders: []vault.Plugin{vault.Software{}}})
		if err == nil {
			err = config.Validate(nil)
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
		if c.want == "" {
			var text strings.Builder
			if err := config.Print(&text); err != nil || !strings.Contains(text.String(), "  a:\n    host: x\n    life: 2s\n  b:\n    c:\n      host: \"\"\n      life: 1m0s\n") {
				t.Errorf("printed %s, %v", text.String(), err)
			}
		}
	}
}

// keyDevice is a vault.Plugin with its own settings.
type keyDevice struct {
	Slot int `yaml:"slot" default:"3" min:"0"`
}

func (d *keyDevice) Name() string                                 { return "device" }
func (d *keyDevice) Settings() any                                { return d }
func (d *keyDevice) Open(vault.Environment) (vault.Holder, error) { return nil, nil }
func (d *keyDevice) Check() []error {
	if d.Slot == 4 {
		return []error{errors.New("slot: want another")}
	}
	return nil
}

// TestHolders checks which holders of the program the settings open, and that they name no other.
func TestHolders(t *testing.T) {
	for _, c := range []struct{ text, want, opened string }{
		{"{}", "", "software"},
		{"{holder: software, device: {slot: 4}}", "", "software"},
		{"{holder: device, device: {slot: 5}}", "", "software device"},
		{"{holder: device, device: {slot: 4}}", "keys.device.slot: want another", ""},
		{"{holder: device, device: {slot: -1}}", "keys.device.slot: want 0 or more", ""},
		{"{holder: pkcs11}", "keys.holder: want software or device", ""},
		{"{holder: ''}", "keys.holder: want software or device", ""},
		{"{software: {a: 1}}", "keys.software: unknown setting", ""},
		{"{authority_holder: device}", "", "software device"},
		{"{authority_holder: pkcs11}", "keys.authority_holder: want software or device", ""},
		{"{other_holders: [device]}", "", "software device"},
		{"{other_holders: [device, pkcs11]}", "keys.other_holders[1]: want software or device", ""},
		{"{rules: [{holder: device, suites: [gost2012-512], groups: [bank]}]}", "", "software device"},
		{"{rules: [{holder: device}, {suites: [rsa-sha256]}]}", "keys.rules[1].holder: want software or device", ""},
		{"{rules: [{holder: device, suites: [gost2012-512, gost]}]}", "keys.rules[0].suites[1]: want gost2001", ""},
		{"{rules: [{holder: device, device: {slot: 4}}]}", "keys.rules.device: unknown setting", ""},
		{"{rules: [{holder: device}], device: {slot: 4}}", "keys.device.slot: want another", ""},
	} {
		settings := []string{"master_keys={active: a, files: {a: b}}", "keys=" + c.text}
		config, err := Load("", settings, Parts{Holders: []vault.Plugin{vault.Software{}, &keyDevice{}}})
		if err == nil {
			err = config.Validate(nil)
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
		if err != nil {
			continue
		}
		var opened []string
		for _, h := range config.Holders() {
			opened = append(opened, h.Name())
		}
		if got := strings.Join(opened, " "); got != c.opened {
			t.Errorf("%s: opened %s, want %s", c.text, got, c.opened)
		}
	}
}

// TestDomainDefaults checks that the defaults in the tags are those of the domain packages.
func TestDomainDefaults(t *testing.T) {
	c := Default(Parts{})
	devices := c.Devices.Settings("", "")
	devices.ServiceURL, devices.Systems = device.DefaultSettings().ServiceURL, device.DefaultSettings().Systems
	tokens := c.Oath.Settings("")
	tokens.Issuer = oath.DefaultSettings().Issuer
	attempts := password.DefaultLimits()
	for name, d := range map[string]string{
		"devices":      cmp.Diff(device.DefaultSettings(), devices),
		"oath":         cmp.Diff(oath.DefaultSettings(), tokens),
		"confirmation": cmp.Diff(confirm.DefaultSettings(), c.Confirmation.Settings(&c.Documents, c.Messages.Language)),
		"users.codes":  cmp.Diff(contact.DefaultSettings().Codes, c.Users.Contacts().Codes),
		"messages":     cmp.Diff(notify.DefaultSettings(), c.Messages.Settings()),
		"passwords": cmp.Diff([]any{attempts.Reserved, attempts.Waiting, attempts.OfOne, attempts.Wait},
			[]any{c.Passwords.Reserved, c.Passwords.Waiting, c.Passwords.WaitingAddress, c.Passwords.Wait}),
		"pin":          cmp.Diff([]any{string(keys.PINAllow), keys.DefaultPINLength}, []any{c.PIN.Mode, c.PIN.MinLength}),
		"certificates": cmp.Diff(keys.DefaultStatusAge, c.Certificates.StatusAge),
		"xml":          cmp.Diff(int64(xmldsig.DefaultMaxSize), int64(c.XML.Document)),
		"users":        cmp.Diff(string(signin.SpellingInterface), c.Users.MethodURIs),
	} {
		if d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestIssuers checks that clients see every identity provider that users have logins at: those that
// the configuration lists, and those where users may sign in.
func TestIssuers(t *testing.T) {
	c := Config{
		Users:    Users{Issuers: []Issuer{{Name: "adfs", DisplayName: "AD FS", Description: "of the bank"}, {Name: "Corp", DisplayName: "Corporation"}}},
		External: []External{{Name: "corp", Title: "not told twice"}, {Name: "esia", Title: "ESIA", Issuer: "https://esia.example"}, {Name: "plain", Issuer: "https://plain.example"}},
	}
	want := []user.Issuer{
		{Name: "adfs", DisplayName: "AD FS", Description: "of the bank"}, {Name: "Corp", DisplayName: "Corporation"},
		{Name: "esia", DisplayName: "ESIA", Description: "https://esia.example"}, {Name: "plain", DisplayName: "plain", Description: "https://plain.example"},
	}
	if d := cmp.Diff(want, c.AllIssuers()); d != "" {
		t.Error(d)
	}
}

// TestPrintMeansTheSame checks that a printed configuration is the same one when it is read again. Nothing
// notified, all types allowed, and what is not set are different things.
func TestPrintMeansTheSame(t *testing.T) {
	parts := func() Parts { return Parts{Holders: []vault.Plugin{vault.Software{}}} }
	for _, settings := range [][]string{
		nil,
		{"user_policies.notification.events={}"},
		{"user_policies.notification.events={UserDeleted: [Email]}", "policy.allowed_signature_types=[PDF]"},
		{"clients=[{id: a, secret_file: b}, {id: c, redirect_uris: ['https://c.example/']}]", "master_keys.files={'1': a}", "tokens.access_life=90s", "limits.signing_request=10MiB"},
		{"external=[{name: a, saml: {metadata_file: idp.xml}}]"},
	} {
		c, err := Load("", settings, parts())
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := c.Print(&text); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "tamga.yaml")
		if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := Load(file, nil, parts())
		if err != nil {
			t.Fatalf("%v: %v in\n%s", settings, err, text.String())
		}
		again.base, again.origin = c.base, c.origin
		if !reflect.DeepEqual(c, again) {
			t.Errorf("%v: the printed configuration differs:\n%s", settings, text.String())
		}
	}
}

// TestPublicURL checks that an address that stays in certificates for ever must lead to the
// service.
func TestPublicURL(t *testing.T) {
	base := []string{"master_keys.active=a", "master_keys.files.a=a.key"}
	for _, c := range []struct {
		settings []string
		want     string // the address, or "" for an error that names public_url
	}{
		{[]string{"listen=127.0.0.1:8080"}, "http://127.0.0.1:8080"},
		{[]string{"listen='sign.example.org:8443'", "tls.certificate_file=a", "tls.key_file=b"}, "https://sign.example.org:8443"},
		{[]string{"listen='0.0.0.0:8080'", "public_url=https://sign.example.org/"}, "https://sign.example.org"},
		{[]string{"listen='0.0.0.0:8080'"}, ""},
		{[]string{"listen='0.0.0.0:8443'", "tls.certificate_file=a", "tls.key_file=b"}, ""},
		{[]string{"listen='[::]:8080'"}, ""},
		{[]string{"listen='[::ffff:0.0.0.0]:8080'"}, ""},
		{[]string{"listen=':8080'"}, ""},
		{[]string{"listen='127.0.0.1:8080'", "public_url=http://0.0.0.0:8080"}, ""},
	} {
		config, err := Load("", append(base[:2:2], c.settings...), Parts{Holders: []vault.Plugin{vault.Software{}}})
		if err != nil {
			t.Fatal(err)
		}
		err = config.Validate(nil)
		if c.want == "" && (err == nil || !strings.Contains(err.Error(), "public_url: "+config.BaseURL()) || !strings.Contains(err.Error(), "such as public_url: https://sign.example.org")) {
			t.Errorf("%v: got %v", c.settings, err)
		}
		if c.want != "" && (err != nil || config.BaseURL() != c.want) {
			t.Errorf("%v: got %s, %v", c.settings, config.BaseURL(), err)
		}
	}
}

// TestPasskeysNeedAName checks that passkeys are refused where browsers have none.
func TestPasskeysNeedAName(t *testing.T) {
	base := []string{"master_keys.active=a", "master_keys.files.a=a.key"}
	const on = "confirmation.methods=[otpviasms, passkey]"
	for _, c := range []struct {
		settings []string
		want     string // part of the error; "" for none
	}{
		{[]string{"listen=127.0.0.1:8080"}, ""},
		{[]string{"listen=127.0.0.1:8080", on}, "set public_url, on one machine to http://localhost:8080"},
		{[]string{"listen='[::1]:8080'", on}, "is an IP address"},
		{[]string{"public_url=https://192.0.2.7", on}, "is an IP address"},
		{[]string{"public_url=http://sign.example.org", on}, "begins with https"},
		{[]string{"public_url=http://localhost.example.org", on}, "begins with https"},
		{[]string{"public_url=https://sign.example.org", on}, ""},
		{[]string{"public_url=http://localhost:8080", on}, ""},
		{[]string{"listen=localhost:8080", on}, ""},
		{[]string{"public_url=http://a.localhost:8080", on}, ""},
	} {
		config, err := Load("", append(base[:2:2], c.settings...), Parts{Holders: []vault.Plugin{vault.Software{}}})
		if err != nil {
			t.Fatal(err)
		}
		err = config.Validate(nil)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want %q", c.settings, err, c.want)
		}
	}
}

// TestSecondOperator: the setting names effects. An operation is refused with the effects to write.
func TestSecondOperator(t *testing.T) {
	for name, want := range map[string]string{
		"deletes": "", "gives_secret": "",
		"ResetPassword": `"ResetPassword" is an operation: write what it does, gives_secret, adds_factor, removes_factor`,
		"DeleteUser":    "ends_access, deletes", "SetUserAuthenticationMethodOtpViaSms": "adds_factor", "SetUserMainPhone": "adds_factor, removes_factor",
		"ImportTokens": "want effects of operations: gives_secret, ", "Deletes": "want effects",
	} {
		c := Default(Parts{}).Users
		c.SecondOperator = []string{"ends_access", name}
		faults := c.check()
		if len(faults) > 1 || (len(faults) == 0) != (want == "") || len(faults) == 1 && !strings.Contains(faults[0].Error(), want) {
			t.Errorf("%s: %v, want %q", name, faults, want)
		}
	}
}

func TestEvidence(t *testing.T) {
	check := func(e *Evidence) []error { return append(setting.Check("evidence", e), e.check()...) }
	good := Default(Parts{}).Evidence
	if faults := check(&good); len(faults) > 0 {
		t.Errorf("the defaults: %v", faults)
	}
	for _, c := range []struct {
		change func(*Evidence)
		want   string
	}{
		{func(e *Evidence) { e.TSPServices = []TSPService{{Name: "A", URL: "http://a/"}} }, "evidence.tsp_services[0]"},
		{func(e *Evidence) {
			e.TSPServices = []TSPService{{Name: "a", URL: "http://a/"}, {Name: "b", URL: "http://A:80"}}
		}, "evidence.tsp_services[1]: want a unique name and a unique address"},
		{func(e *Evidence) { e.AllowNetworks = []string{"10.0.0.0/40"} }, "evidence.allow_networks"},
		{func(e *Evidence) { e.Proxy = "proxy:3128" }, "evidence.proxy"},
		{func(e *Evidence) { e.ListTimeout = 0 }, "list_timeout"},
		{func(e *Evidence) { e.HedgeAfter = 0 }, "hedge_after"},
		{func(e *Evidence) { e.CacheLists = 0 }, "cache_lists"},
	} {
		e := Default(Parts{}).Evidence
		c.change(&e)
		if faults := check(&e); len(faults) != 1 || !strings.Contains(faults[0].Error(), c.want) {
			t.Errorf("%v, want %q", faults, c.want)
		}
	}
	good.TSPServices = []TSPService{{Name: "a", Title: "A", URL: "http://a/", Class: "q", Policy: "1.2", PerMinute: 3}}
	if got := good.Services(); len(got) != 1 || got[0] != (policy.TSPService{Name: "a", Title: "A", URL: "http://a/", Class: "q", Policy: "1.2", PerMinute: 3}) {
		t.Errorf("the services are %+v", got)
	}
}

func TestSAML(t *testing.T) {
	const good = `metadata_file: idp.xml`
	for _, c := range []struct{ entry, want string }{
		{`saml: {` + good + `}`, ""},
		{`saml: {` + good + `, entity_id: x, key_file: a, certificate_file: b, attribute: mail, name_id_format: urn:x, own_entity_id: us}`, ""},
		{`saml: {entity_id: x, sso_url: "https://idp.example/", certificates_file: c.pem}`, ""},
		{`saml: {entity_id: x, sso_url: "https://idp.example/"}`, "want metadata_file, or"},
		{`saml: {entity_id: x, sso_url: idp.example, certificates_file: c.pem}`, "want metadata_file, or"},
		{`saml: {` + good + `, certificates_file: c.pem}`, "leave them out"},
		{`saml: {` + good + `, key_file: a}`, "go together"},
		{`saml: {` + good + `}, client_id: x`, "not both"},
		{`saml: {` + good + `}, issuer: "https://idp.example"`, "not both"},
		{`saml: {}`, "external[0].issuer"},
	} {
		config, err := Load("", []string{`external=[{name: corp, ` + c.entry + `}]`}, Parts{})
		if err != nil {
			t.Fatalf("%s: %v", c.entry, err)
		}
		err = errors.Join(config.checkExternal()...)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.entry, err, c.want)
		}
	}
}

// TestPolicies checks that faults of user_policies name the key.
func TestPolicies(t *testing.T) {
	for _, wrong := range []string{"access.denied=[Sign]", "operation.confirm=[4096]", "notification.events={UserCreated: [Pigeon]}", "notification.events={usercreated: [Email]}"} {
		c := Default(Parts{})
		if err := c.Apply([]string{"user_policies." + wrong}); err != nil {
			t.Fatal(err)
		}
		if faults := c.UserPolicies.check(); len(faults) != 1 || !strings.HasPrefix(faults[0].Error(), "user_policies."+strings.Split(wrong, "=")[0]) {
			t.Errorf("%s: %v", wrong, faults)
		}
	}
}

// TestSilentDatabase checks that with the default a client has its answer within 10 s, as
// docs/cluster.md says.
func TestSilentDatabase(t *testing.T) {
	const answering = time.Second
	if wait := Default(Parts{}).DatabaseWait; wait+answering > 10*time.Second {
		t.Errorf("a request waits for %v by default, want at most 9s", wait)
	}
}

// TestPowersSettings refuses settings about powers of attorney that cannot work.
func TestPowersSettings(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"{registry_url: 'https://registry.example.org/{number}?inn={inn}', rules: [{groups: [a], codes: [B]}]}", ""},
		{"{registry_url: 'https://registry.example.org/'}", "powers.registry_url"},
		{"{registry_url: 'https://{number}.example.org/'}", "powers.registry_url"},
		{"{registry_url: 'ftp://registry.example.org/{number}'}", "powers.registry_url"},
		{"{rules: [{codes: ['A,B']}]}", "powers.rules[0].codes[0]"},
		{"{rules: [{codes: ['']}]}", "powers.rules[0].codes[0]"},
	} {
		p := &Powers{}
		if err := yaml.Unmarshal([]byte(c.text), p); err != nil {
			t.Fatal(err)
		}
		if err := p.check(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
}
