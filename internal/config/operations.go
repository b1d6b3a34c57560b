// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tamga/internal/adapter/guard"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
	"tamga/internal/setting"
)

// Operations configures how requests of v2 are carried out.
type Operations struct {
	// Whether clients may request asynchronous operations (`IsAsync`).
	Async bool `yaml:"async"`
	// Time within which an operation must be completed.
	Life time.Duration `yaml:"life" default:"20m" min:"1s"`
	// How long a completed operation is stored.
	Keep time.Duration `yaml:"keep" default:"24h" min:"1s"`
	// Time after which another process continues the work of a process that died.
	Lease time.Duration `yaml:"lease" default:"1m" min:"1s"`
	// Operations that a process carries out at the same time, in addition to requests. 0: it only
	// accepts them, and another process with the same database carries them out.
	Workers int `yaml:"workers" default:"2" min:"0"`
	// Attempts at an operation before it is given up. Callbacks are messages: `messages.attempts`.
	Attempts int `yaml:"attempts" default:"10" above:"0"`
	// Waiting operations of one user; above it 429.
	UserOperations int64 `yaml:"user_operations" default:"1000" above:"0"`
	// Bytes stored with all waiting operations of one user; above it 429.
	UserBytes setting.Size `yaml:"user_bytes" default:"4GiB" above:"0"`
	// Reports to addresses that clients choose.
	Callbacks Callbacks `yaml:"callbacks"`
	// Processing templates, by the identifiers that clients use.
	Templates []Template `yaml:"templates"`
}

// Callbacks configures reports of operations and confirmations to addresses that clients choose.
type Callbacks struct {
	// File with the secret that callbacks are signed with (Standard Webhooks: `whsec_` and Base64
	// of 24 to 64 bytes). Without it `Callback` and `CallbackUri` are refused.
	SecretFile string `yaml:"secret_file"`
	// Private, loopback or link-local addresses that may be called, as in
	// `evidence.allow_networks`. **Risk:** clients choose the addresses.
	AllowNetworks []string `yaml:"allow_networks"`
	// Whether `http://` is allowed in addition to `https://`. Documents may then be sent in the
	// clear.
	PlainHTTP bool `yaml:"plain_http"`
	// Authorities (PEM) of the receivers' certificates. Default: the system's.
	AuthoritiesFile string `yaml:"authorities_file"`
}

// Template chooses how documents are signed by their file names.
type Template struct {
	// Identifier of the template.
	ID string `yaml:"id"`
	// Rules of the template. The first that matches a file name is used.
	Rules []TemplateRule `yaml:"rules"`
}

// TemplateRule is the rule for names with certain extensions.
type TemplateRule struct {
	// Extensions of file names, such as `pdf`. Default: every name.
	Extensions []string `yaml:"extensions"`
	// `Signature.Type` of such documents.
	Type string `yaml:"type"`
	// `Signature.Parameters` of such documents.
	Parameters map[string]string `yaml:"parameters"`
}

// Repetitions configures the stored answers to requests with an Idempotency-Key.
type Repetitions struct {
	// How long the answer to a request with an `Idempotency-Key` is stored (without a token at most
	// 1 h).
	Life time.Duration `yaml:"life" default:"24h" min:"1s"`
	// Time after which the request of a process that died may be repeated.
	Lease time.Duration `yaml:"lease" default:"1m" min:"1s"`
	// Bytes of the stored answers of one caller that are larger than 32 KiB; above it 429.
	UserBytes setting.Size `yaml:"user_bytes" default:"4GiB" above:"0"`
}

// Settings returns the rules of operations, without those of confirmations.
func (o *Operations) Settings() operation.Settings {
	workers := o.Workers
	if workers == 0 {
		workers = -1 // none
	}
	return operation.Settings{
		Async: o.Async, AsyncLife: o.Life, Keep: o.Keep, LoopLease: o.Lease, Workers: workers, Attempts: o.Attempts,
		Waiting: operation.Quota{Objects: o.UserOperations, Bytes: int64(o.UserBytes)},
	}
}

// TemplatesByID returns the processing templates by the identifiers clients use.
func (o *Operations) TemplatesByID() map[string]signing.Template {
	list := map[string]signing.Template{}
	for _, t := range o.Templates {
		var rules []signing.TemplateRule
		for _, r := range t.Rules {
			rules = append(rules, signing.TemplateRule{Extensions: r.Extensions, Type: r.Type, Params: r.Parameters})
		}
		list[t.ID] = signing.Template{Rules: rules}
	}
	return list
}

// Exceptions returns the addresses off the public internet that may be called.
func (c *Callbacks) Exceptions() ([]guard.Exception, error) {
	return guard.ParseExceptions(c.AllowNetworks)
}

// checkOperations reports the faults of operations. types are the values of
// Signature.Type that the program serves.
func (c *Config) checkOperations(types []string) (faults []error) {
	o := &c.Operations
	if c.Messages.Keep < o.Keep { // the message of a callback says whether it was received
		faults = append(faults, fmt.Errorf("messages.keep: %v, want at least operations.keep (%v)", c.Messages.Keep, o.Keep))
	}
	if _, err := o.Callbacks.Exceptions(); err != nil {
		faults = append(faults, fmt.Errorf("operations.callbacks.allow_networks: %w", err))
	}
	seen := map[string]bool{}
	for i, t := range o.Templates {
		if t.ID == "" || seen[t.ID] || len(t.Rules) == 0 {
			faults = append(faults, fmt.Errorf("operations.templates[%d]: want an id of its own, and rules", i))
		}
		seen[t.ID] = true
		for n, rule := range t.Rules {
			if !slices.ContainsFunc(types, func(name string) bool { return strings.EqualFold(name, rule.Type) }) {
				faults = append(faults, fmt.Errorf("operations.templates[%d].rules[%d].type: want a Signature.Type, such as CAdES", i, n))
			}
			if slices.ContainsFunc(rule.Extensions, func(e string) bool { return e == "" || strings.ContainsAny(e, ". ") }) {
				faults = append(faults, fmt.Errorf("operations.templates[%d].rules[%d].extensions: want them without dots, such as pdf", i, n))
			}
		}
	}
	return faults
}
