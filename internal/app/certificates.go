// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"tamga/internal/adapter/evidence"
	"tamga/internal/config"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/user"
	"tamga/pki/x509gost"
)

// enrolment reads the authorities that certify keys, and the rules for it.
func enrolment(conf *config.Config, naming *user.Naming) (keys.Enrolment, error) {
	c := conf.Certificates
	e := keys.Enrolment{FixedNames: c.FixedNames, Life: c.LongestLife, Naming: naming.Components(), EncryptionGroups: c.EncryptionGroups}
	if c.BuiltIn {
		e.Authorities = append(e.Authorities, keys.Authority{ID: keys.BuiltIn, Name: c.Name, Operator: c.Approval == "operator"})
	}
	for _, a := range c.Authorities {
		one := keys.Authority{ID: a.ID, Name: a.Name, Outside: true}
		data, err := os.ReadFile(conf.Path(a.CertificatesFile))
		if err != nil {
			return e, fmt.Errorf("certificates.authorities: %s: %w", a.Name, err)
		}
		list, err := x509gost.ParseCertificates(data)
		if err != nil {
			return e, fmt.Errorf("certificates.authorities: %s: %w", a.Name, err)
		}
		for _, cert := range list {
			switch {
			case !cert.IsCA:
				return e, fmt.Errorf("certificates.authorities: %s: %s is not the certificate of an authority (basicConstraints CA)", a.Name, cert.Subject)
			case cert.IsSelfIssued():
				one.Roots = append(one.Roots, cert)
			default:
				one.Intermediates = append(one.Intermediates, cert)
			}
		}
		e.Authorities = append(e.Authorities, one)
	}
	return e, nil
}

// profiles implements keys.Profiles: the registered names of users.
type profiles struct {
	users *user.Service
	// proven means that certificates prove names, so a display name does not count: users may
	// have chosen it.
	proven bool
}

// oidCommonName is the component of a name that every user gets.
const oidCommonName = "2.5.4.3"

// ProfileOf returns the registered name of a user by OID. Without a common name it is the
// display name, the login or the identifier, the first that is not empty and was not chosen
// by the user.
func (p profiles) ProfileOf(ctx context.Context, userID string) (map[string]string, error) {
	values, err := p.users.NameStore.NameOf(ctx, userID)
	if err != nil {
		return nil, err
	}
	if values == nil {
		values = map[string]string{}
	}
	if values[oidCommonName] == "" {
		u, err := p.users.Get(ctx, userID)
		if err != nil {
			return nil, err
		}
		for i, name := range []string{u.DisplayName, u.Login, u.ID} {
			if i == 0 && p.proven {
				continue
			}
			if name != "" {
				values[oidCommonName] = name
				break
			}
		}
	}
	return values, nil
}

// revocations implements keys.Evidence: it asks outside authorities about their certificates.
type revocations struct{ network *evidence.Source }

// Revocation implements keys.Evidence.
func (r revocations) Revocation(ctx context.Context, cert, issuer *x509gost.Certificate) (answer, list []byte, err error) {
	proof, err := r.network.Revocation(ctx, cert, issuer, time.Time{})
	return proof.OCSP, proof.CRL, err
}

// noEvidence is keys.Evidence of a command: it asks no authority.
type noEvidence struct{}

// Revocation implements keys.Evidence.
func (noEvidence) Revocation(context.Context, *x509gost.Certificate, *x509gost.Certificate) (answer, list []byte, err error) {
	return nil, nil, errors.New("a command asks no authority about certificates; a running server does")
}
