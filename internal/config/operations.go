package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tamga/internal/adapter/guard"
	"tamga/internal/domain/signing"
)

// Operations says how requests of v2 are carried out.
type Operations struct {
	// Whether clients may ask for asynchronous operations (IsAsync). Default false.
	Async bool `yaml:"async"`
	// Time in which an operation is to be done. Default 20m.
	Life time.Duration `yaml:"life"`
	// How long one that is over is kept. Default 24h.
	Keep time.Duration `yaml:"keep"`
	// After which time the work of a process that died is taken up by another. Default
	// 1m.
	Lease time.Duration `yaml:"lease"`
	// Operations a process carries out at a time, beside requests; 0: it only accepts
	// them, and another process over the database carries them out. Default 2.
	Workers int `yaml:"workers"`
	// Attempts at an operation or a callback before it is given up. Default 10.
	Attempts int `yaml:"attempts"`
	// What one user may have waiting. Defaults 1000 and 4GiB.
	UserOperations int64     `yaml:"user_operations"`
	UserOctets     Size      `yaml:"user_octets"`
	Callbacks      Callbacks `yaml:"callbacks"`
	// Processing templates, by the identifiers clients name them by.
	Templates []Template `yaml:"templates"`
}

// Callbacks says how operations are reported to addresses that clients name.
type Callbacks struct {
	// File with the secret that callbacks are signed with, as Standard Webhooks have
	// it: whsec_ and Base64 of 24 to 64 octets. Empty: no callbacks are made.
	SecretFile string `yaml:"secret_file"`
	// Networks and hosts that may be called although they are private, loopback or
	// link-local, as of evidence.allow_networks.
	AllowNetworks []string `yaml:"allow_networks"`
	// Whether http:// is taken beside https://. Default false: documents may travel.
	PlainHTTP bool `yaml:"plain_http"`
	// Authorities (PEM) of the receivers' certificates. Empty: the system's.
	AuthoritiesFile string `yaml:"authorities_file"`
}

// Template says how documents are signed by their file names.
type Template struct {
	ID    string         `yaml:"id"`
	Rules []TemplateRule `yaml:"rules"` // the first that fits counts
}

// TemplateRule is for names with certain extensions.
type TemplateRule struct {
	Extensions []string          `yaml:"extensions"` // such as pdf; empty: every name
	Type       string            `yaml:"type"`       // Signature.Type
	Parameters map[string]string `yaml:"parameters"` // Signature.Parameters
}

// Repetitions says what is kept for requests with an Idempotency-Key.
type Repetitions struct {
	// How long an answer is kept. Default 24h.
	Life time.Duration `yaml:"life"`
	// After which time the request of a process that died may be repeated. Default 1m.
	Lease time.Duration `yaml:"lease"`
	// What the answers of one caller may take that are over 32 KiB. Default 4GiB.
	UserOctets Size `yaml:"user_octets"`
}

func defaultOperations() Operations {
	return Operations{
		Life: 20 * time.Minute, Keep: 24 * time.Hour, Lease: time.Minute, Workers: 2, Attempts: 10,
		UserOperations: 1000, UserOctets: 4 << 30,
	}
}

func defaultRepetitions() Repetitions {
	return Repetitions{Life: 24 * time.Hour, Lease: time.Minute, UserOctets: 4 << 30}
}

// Settings returns the bounds of operations.
func (o *Operations) Settings() signing.OperationSettings {
	workers := o.Workers
	if workers == 0 {
		workers = -1 // none
	}
	return signing.OperationSettings{
		Async: o.Async, Life: o.Life, Keep: o.Keep, Lease: o.Lease, Workers: workers, Attempts: o.Attempts,
		Waiting: signing.Quota{Objects: o.UserOperations, Octets: int64(o.UserOctets)},
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

// checkOperations reports the faults of operations and repetitions. types are the values of
// Signature.Type that the program serves.
func (c *Config) checkOperations(types []string) (faults []error) {
	o, r := &c.Operations, &c.Repetitions
	if min(o.Life, o.Keep, o.Lease, r.Life, r.Lease) < time.Second {
		faults = append(faults, errors.New("operations.life, keep and lease, repetitions.life and lease: want at least 1s"))
	}
	if o.Workers < 0 {
		faults = append(faults, errors.New("operations.workers: want 0 or more"))
	}
	if o.Attempts < 1 || o.UserOperations < 1 || o.UserOctets < 1 || r.UserOctets < 1 {
		faults = append(faults, errors.New("operations.attempts, user_operations and user_octets, repetitions.user_octets: want more than 0"))
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
