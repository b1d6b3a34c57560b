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

// enrolment reads who certifies keys.
func enrolment(conf *config.Config, naming *user.Naming) (keys.Enrolment, error) {
	c := conf.Certificates
	e := keys.Enrolment{FixedNames: c.FixedNames, Life: c.LongestLife, Naming: naming.Components()}
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
				return e, fmt.Errorf("certificates.authorities: %s: %s is no authority's certificate", a.Name, cert.Subject)
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

// profiles tell what users are registered as; see keys.Profiles.
type profiles struct{ users *user.Service }

// oidCommonName is what users are called by who have no other name.
const oidCommonName = "2.5.4.3"

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
		for _, name := range []string{u.DisplayName, u.Login, u.ID} {
			if name != "" {
				values[oidCommonName] = name
				break
			}
		}
	}
	return values, nil
}

// revocations asks outside authorities about their certificates; see keys.Evidence.
type revocations struct{ network *evidence.Source }

// Revocation implements keys.Evidence.
func (r revocations) Revocation(ctx context.Context, cert, issuer *x509gost.Certificate) (answer, list []byte, err error) {
	proof, err := r.network.Revocation(ctx, cert, issuer, time.Time{})
	return proof.OCSP, proof.CRL, err
}

// nobodyAsked is keys.Evidence of a command.
type nobodyAsked struct{}

// Revocation implements keys.Evidence.
func (nobodyAsked) Revocation(context.Context, *x509gost.Certificate, *x509gost.Certificate) (answer, list []byte, err error) {
	return nil, nil, errors.New("nobody is asked about certificates here: a running server does")
}
