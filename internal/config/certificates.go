package config

import (
	"errors"
	"fmt"
	"time"

	"tamga/internal/domain/keys"
)

// Certificates says who certifies users' keys, and under which names.
type Certificates struct {
	// Whether the built-in authority certifies users' keys, and what clients call it.
	// Default true, Tamga.
	BuiltIn bool   `yaml:"built_in"`
	Name    string `yaml:"name"`
	// What the built-in authority does with requests: automatic answers at once,
	// operator waits for "tamga request approve". Default automatic.
	Approval string `yaml:"approval"`
	// Other authorities: users fetch their requests and install the certificates.
	Authorities []Authority `yaml:"authorities"`
	// How old what is shown about the revocation of certificates of other authorities may
	// be; they are asked in the background. Default 15m.
	StatusAge time.Duration `yaml:"status_age"`
	// Whether users get the name they are registered with and may not send another.
	// Default false: their requests decide, as clients of this interface expect. Set it
	// where the built-in authority's certificates are to prove a name.
	FixedNames bool `yaml:"fixed_names"`
	// Longest life of a certificate a user may ask for. Default 175200h, 20 years.
	LongestLife time.Duration `yaml:"longest_life"`
	// Whether "tamga key export" may take keys out. Default false.
	Exportable bool `yaml:"exportable"`
}

// Authority is an authority that is not ours.
type Authority struct {
	ID   int64  `yaml:"id"`   // number on the wire, from 2 on
	Name string `yaml:"name"` // for people
	// Its certificates (PEM): self-issued ones are trusted, the others help to build
	// paths. Where they tell about revocation, they are asked at each signature.
	CertificatesFile string `yaml:"certificates_file"`
}

func defaultCertificates() Certificates {
	return Certificates{BuiltIn: true, Name: "Tamga", Approval: "automatic", LongestLife: 20 * 365 * 24 * time.Hour, StatusAge: keys.DefaultStandingAge}
}

// check reports every fault.
func (c Certificates) check() (faults []error) {
	must := func(ok bool, text string) {
		if !ok {
			faults = append(faults, errors.New("certificates."+text))
		}
	}
	must(c.Approval == "automatic" || c.Approval == "operator", "approval: want automatic or operator")
	must(c.Name != "", "name: want what clients call the built-in authority")
	must(c.BuiltIn || len(c.Authorities) > 0, "built_in: want it, or another authority in authorities")
	must(c.StatusAge >= time.Minute, "status_age: want at least 1m")
	must(c.LongestLife >= time.Minute, "longest_life: want at least 1m")
	seen := map[int64]bool{}
	for _, a := range c.Authorities {
		must(a.ID > keys.BuiltIn && !seen[a.ID], fmt.Sprintf("authorities: number %d: want different ones from %d on", a.ID, keys.BuiltIn+1))
		must(a.Name != "" && a.CertificatesFile != "", fmt.Sprintf("authorities: number %d: want a name and a certificates_file", a.ID))
		seen[a.ID] = true
	}
	return faults
}
