package config

import "time"

// Verification bounds the verification service, which answers everybody.
type Verification struct {
	// Whether signatures are judged for whoever asks. Default true.
	Enabled bool `yaml:"enabled"`
	// Calls an address may make: a second in the long run, and at once; and the
	// largest body of one. Defaults 20, 100, 64MiB.
	CallsPerSecond float64 `yaml:"calls_per_second"`
	CallsAtOnce    int     `yaml:"calls_at_once"`
	Request        Size    `yaml:"request"`
	// Whether revocation data and issuers that a document does not bring along are
	// fetched from the addresses in its certificates. Strangers choose these, so
	// the default is false: a document is judged by what it holds, by the built-in
	// authority and by evidence.root_files and authority_files.
	Fetch bool `yaml:"fetch"`
	// How long a call waits for its turn, and how long its judgement may take then.
	// Defaults 10s and 30s.
	Wait     time.Duration `yaml:"wait"`
	Deadline time.Duration `yaml:"deadline"`
}

func defaultVerification() Verification {
	return Verification{Enabled: true, CallsPerSecond: 20, CallsAtOnce: 100, Request: 64 << 20, Wait: 10 * time.Second, Deadline: 30 * time.Second}
}
