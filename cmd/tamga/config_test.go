package main

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/domain/user"
)

// configKeys lists the last parts of all keys of the configuration.
func configKeys() []string {
	var keys []string
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		for i := range t.NumField() {
			f := t.Field(i)
			if key, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); key != "" {
				keys = append(keys, key)
			}
			inner := f.Type
			if inner.Kind() == reflect.Slice {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct && f.IsExported() {
				walk(inner)
			}
		}
	}
	walk(reflect.TypeFor[Config]())
	slices.Sort(keys)
	return slices.Compact(keys)
}

func TestSettings(t *testing.T) {
	c, err := loadConfig("", []string{
		"limits.signing_request=10MiB", "limits.other_request=512", "tokens.access_life=1m30s", "policy.allow_hash_signing=false",
		"resource_aliases=[a, b]", "listen=127.0.0.1:1", "pin.attempts=3",
	})
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
		if _, err := loadConfig("", []string{wrong}); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("--set %s: got %v", wrong, err)
		}
	}
}

// Clients are told of every identity provider that users have logins at: those the
// configuration lists, and those it lets them sign in at.
func TestIssuers(t *testing.T) {
	c := Config{
		Users:    UsersConfig{Issuers: []IssuerConfig{{Name: "adfs", DisplayName: "AD FS", Description: "of the bank"}, {Name: "Corp", DisplayName: "Corporation"}}},
		External: []ExternalConfig{{Name: "corp", Title: "not told twice"}, {Name: "esia", Title: "ESIA", Issuer: "https://esia.example"}, {Name: "plain", Issuer: "https://plain.example"}},
	}
	want := []user.Issuer{
		{Name: "adfs", DisplayName: "AD FS", Description: "of the bank"}, {Name: "Corp", DisplayName: "Corporation"},
		{Name: "esia", DisplayName: "ESIA", Description: "https://esia.example"}, {Name: "plain", DisplayName: "plain", Description: "https://plain.example"},
	}
	if d := cmp.Diff(want, c.issuers()); d != "" {
		t.Error(d)
	}
}

// What would be in certificates for ever has to lead to the service.
func TestPublicURL(t *testing.T) {
	base := []string{"master_keys.active=a", "master_keys.files.a=a.key"}
	for _, c := range []struct {
		settings []string
		want     string // the address, or "" for a refusal that names public_url
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
		config, err := loadConfig("", append(base[:2:2], c.settings...))
		if err != nil {
			t.Fatal(err)
		}
		err = config.Validate()
		if c.want == "" && (err == nil || !strings.Contains(err.Error(), "public_url: "+config.publicURL()) || !strings.Contains(err.Error(), "such as public_url: https://sign.example.org")) {
			t.Errorf("%v: got %v", c.settings, err)
		}
		if c.want != "" && (err != nil || config.publicURL() != c.want) {
			t.Errorf("%v: got %s, %v", c.settings, config.publicURL(), err)
		}
	}
}
