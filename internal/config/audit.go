// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"time"
)

// Audit configures copies of the audit log.
type Audit struct {
	// The collector of audit entries ([how it works](operations.md#audit-entries-for-a-collector)).
	Export AuditExport `yaml:"export"`
}

// AuditExport configures the collector of audit entries.
type AuditExport struct {
	// Collector that receives each audit entry, HOST:PORT, such as `logs.example.org:6514`. It must take messages of
	// RFC 5424 with their length in front, over TLS (RFC 5425) or TCP (RFC 6587). Default: none, nothing is exported.
	Address string `yaml:"address"`
	// Protection of the connection: `tls`, or `none` for plain TCP. **Risk** of `none`: the entries pass the network in the clear, and
	// everyone on the way can change them.
	Security string `yaml:"security" default:"tls" oneof:"tls none"`
	// Roots (PEM) that the certificate of the collector must lead to. Default: those of the system.
	AuthoritiesFile string `yaml:"authorities_file"`
	// Certificate (PEM) that this service shows to the collector, if it requests one. Default: none.
	CertificateFile string `yaml:"certificate_file"`
	// Key (PEM) of this certificate.
	KeyFile string `yaml:"key_file"`
	// Form of the entries: `rfc5424` (structured data) or `cef` (Common Event Format).
	Format string `yaml:"format" default:"rfc5424" oneof:"rfc5424 cef"`
	// Facility of the messages, 0 to 23. 13 is "log audit".
	Facility int `yaml:"facility" default:"13" min:"0" max:"23"`
	// Private enterprise number in the name of the structured data, `audit@NUMBER`. 32473 is the number for examples
	// (RFC 5612): use that of your organization.
	Enterprise int `yaml:"enterprise" default:"32473" min:"1" max:"999999999"`
	// HOSTNAME of the messages. Default: the host of `public_url`.
	Host string `yaml:"host"`
	// Where the first export of a database begins: `first`, with the oldest entry, or `new`, with entries that are made from then
	// on. Later the export goes on where it was.
	From string `yaml:"from" default:"first" oneof:"first new"`
	// Whether the collector must end TLS (close_notify) before it ends a connection. Otherwise an attacker on the way who
	// swallows entries can end the connection as if they had arrived. rsyslog ends TLS with the driver `ossl` and not with
	// `gtls`.
	RequireEnd bool `yaml:"require_end"`
	// Time in which the collector must take up to 500 entries.
	Timeout time.Duration `yaml:"timeout" default:"30s" min:"1s"`
}

// check returns all faults.
func (e *AuditExport) check() (faults []error) {
	if e.Address != "" && !isAddress(e.Address) {
		faults = append(faults, errors.New("audit.export.address: want HOST:PORT, such as logs.example.org:6514"))
	}
	if (e.CertificateFile == "") != (e.KeyFile == "") {
		faults = append(faults, errors.New("audit.export: certificate_file and key_file go together"))
	}
	if e.Security == "none" && (e.AuthoritiesFile != "" || e.CertificateFile != "") {
		faults = append(faults, errors.New("audit.export.security: certificates are for tls: leave out authorities_file and certificate_file, or want tls"))
	}
	return faults
}
