// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"tamga/internal/domain/keys"
)

// Certificates configures who certifies users' keys, and under which names.
type Certificates struct {
	// Whether the built-in authority certifies users' keys.
	BuiltIn bool `yaml:"built_in" default:"true"`
	// Name of the built-in authority for clients (number 1 on the wire).
	Name string `yaml:"name" default:"Tamga" rule:"required" want:"what clients call the built-in authority"`
	// Organisation in the names of the built-in authority, its time-stamping services and its OCSP responders. Authorities
	// have the name with which they were made: `tamga ca rollover` makes the next issuing authority under the new
	// name, and a root keeps its name.
	Organization string `yaml:"organization" default:"Tamga"`
	// Beginning of the common names of the built-in authority: `NAME GOST Root CA`, `NAME GOST Issuing CA`. It is used
	// as `organization` is.
	CommonName string `yaml:"common_name" default:"Tamga"`
	// Life of the certificates that roots of the built-in authority get from now on, in years.
	RootYears int `yaml:"root_years" default:"20" min:"1" max:"50"`
	// Life of the certificates that its issuing authorities get from now on, in years. They never outlive their root.
	IssuingYears int `yaml:"issuing_years" default:"15" min:"1" max:"50"`
	// Validity of certificates for which no request wants another one (the default is 15 months), at most `longest_life`.
	Life time.Duration `yaml:"life" default:"10944h" min:"1h"`
	// Time from one revocation list of the built-in authority to its next update. A list is renewed at half of it.
	CRLLife time.Duration `yaml:"crl_life" default:"168h" min:"10m"`
	// How the built-in authority handles requests: `automatic` answers at once, `operator`
	// waits for an operator (`tamga request approve`, or the pages), who sees what differs from the
	// record of the user. `tamga init` writes `operator`: with `automatic` and without
	// `fixed_names` users get certificates in any name at once.
	Approval string `yaml:"approval" default:"automatic" oneof:"automatic operator"`
	// Other authorities. Users fetch their requests and install the certificates.
	Authorities []Authority `yaml:"authorities"`
	// Largest age of the revocation status that clients see for certificates of other authorities.
	// The status is requested in the background, at least a minute apart.
	StatusAge time.Duration `yaml:"status_age" default:"15m" min:"1m"`
	// Whether users get the name they are registered with and may not send another, also at renewals.
	// Otherwise their requests decide, as clients of this interface expect. Set it, or `approval`, if
	// certificates of the built-in authority must prove a name. With either of them users do not
	// change their display names.
	FixedNames bool `yaml:"fixed_names"`
	// Longest validity of a certificate that a user may request (the default is 20 years).
	LongestLife time.Duration `yaml:"longest_life" default:"175200h" min:"1m"`
	// Groups whose users get certificates that are also for encryption (key usages `keyEncipherment`,
	// `dataEncipherment` and `keyAgreement`, as far as the kind of key has them), unless their request
	// says otherwise. The key of such a certificate must be kept as long as anything that was encrypted
	// for it.
	EncryptionGroups []string `yaml:"encryption_groups"`
	// Whether `tamga key export` may export keys.
	Exportable bool `yaml:"exportable"`
	// Whether users may export their own keys on the pages. Each export needs a confirmation, and an
	// access policy that allows `PrivateKeyAccess`.
	ExportableByUsers bool `yaml:"exportable_by_users"`
	// Time stamps of the built-in authority per second, per address (IPv6: per /64) and process, in the
	// long run. They need no token. Those of signatures of this service do not count.
	StampsPerSecond float64 `yaml:"stamps_per_second" default:"20" above:"0"`
	// Time stamps per address and process at once.
	StampsAtOnce int `yaml:"stamps_at_once" default:"200" above:"0"`
}

// Authority is an authority outside of this service.
type Authority struct {
	// Number on the wire, from 2 on. Default: none, required.
	ID int64 `yaml:"id"`
	// Name that people see. Default: none, required.
	Name string `yaml:"name"`
	// Certificates (PEM) of that authority. Self-issued ones are trusted, the others help to build
	// paths. At each signature the revocation status is requested from the addresses in its
	// certificates, within the rules of `evidence`. Default: none, required.
	CertificatesFile string `yaml:"certificates_file"`
}

// Bounds of parts of the authority's name, in characters: those of X.520 (RFC 5280, appendix A.1), less the longest title that
// follows a common name (" ECDSA Time-Stamping Service").
const (
	mostOrganization = 64
	mostCommonName   = 64 - 28
)

// isPartOfName reports whether a text can be a part of the name in a certificate.
func isPartOfName(text string, most int) bool {
	return text != "" && strings.TrimSpace(text) == text && utf8.RuneCountInString(text) <= most && utf8.ValidString(text) &&
		!strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// check returns all faults.
func (c Certificates) check() (faults []error) {
	must := func(ok bool, text string) {
		if !ok {
			faults = append(faults, errors.New("certificates."+text))
		}
	}
	must(isPartOfName(c.Organization, mostOrganization), fmt.Sprintf("organization: want 1 to %d characters without spaces around them", mostOrganization))
	must(isPartOfName(c.CommonName, mostCommonName), fmt.Sprintf("common_name: want 1 to %d characters without spaces around them", mostCommonName))
	must(c.BuiltIn || len(c.Authorities) > 0, "built_in: want it, or another authority in authorities")
	seen := map[int64]bool{}
	for _, a := range c.Authorities {
		must(a.ID > keys.BuiltIn && !seen[a.ID], fmt.Sprintf("authorities: number %d: want different ones from %d on", a.ID, keys.BuiltIn+1))
		must(a.Name != "" && a.CertificatesFile != "", fmt.Sprintf("authorities: number %d: want a name and a certificates_file", a.ID))
		seen[a.ID] = true
	}
	return faults
}
