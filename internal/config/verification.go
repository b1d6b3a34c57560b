// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"time"

	"tamga/internal/setting"
	"tamga/pki/suite"
)

// Verification limits the verification service, which needs no token.
type Verification struct {
	// Whether anyone may have signatures verified, without a token.
	Enabled bool `yaml:"enabled" default:"true"`
	// Calls per second, per address (IPv6: per /64) and process, in the long run.
	CallsPerSecond float64 `yaml:"calls_per_second" default:"20" above:"0"`
	// Calls per address and process at once.
	CallsAtOnce int `yaml:"calls_at_once" default:"100" above:"0"`
	// Largest body of a call.
	Request setting.Size `yaml:"request" default:"64MiB" above:"0"`
	// Whether revocation data and issuers that a document does not contain are fetched from the
	// addresses in its certificates, which unknown senders choose. Otherwise a document is verified
	// by its own contents, the built-in authority, `evidence.root_files` and
	// `evidence.authority_files`.
	Fetch bool `yaml:"fetch"`
	// How long a call waits for its turn; afterwards 503 with Retry-After. A quarter of the
	// processors, at least one and at most four, verify at once. 64 calls wait, 8 of one address,
	// and addresses take turns.
	Wait time.Duration `yaml:"wait" default:"10s" above:"0s"`
	// How long the verification of a call may take; afterwards 503 with Retry-After.
	Deadline time.Duration `yaml:"deadline" default:"30s" above:"0s"`
	// Ends of algorithms, each `NAME=YYYY-MM-DD`: from this day (UTC) on a signature by the algorithm
	// passes only if a time stamp proves that it is older. Names: `GOST R 34.10-2001`, `SHA-224`,
	// `RSA-2048` (RSA keys below 3072 bits), `ECDSA-224`. MD5, SHA-1 and RSA keys below 2048 bits have
	// ended already. Default: none.
	AlgorithmEnds []string `yaml:"algorithm_ends"`
	// Whether a time stamp proves its time after its certificate has ended, without an archive time stamp
	// over it. If false, it then proves nothing, as EN 319 102-1 says, and a signature needs archive time
	// stamps to outlive the certificates of its signer and its time stamps.
	EndedTimeStamps bool `yaml:"ended_time_stamps" default:"true"`
}

// check returns the fault of the settings.
func (v *Verification) check() error {
	if _, err := suite.ParseEnds(v.AlgorithmEnds); err != nil {
		return fmt.Errorf("verification.algorithm_ends: %w", err)
	}
	return nil
}
