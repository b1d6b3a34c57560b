package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"tamga/internal/domain/keys"
	"tamga/pki/x509gost"
)

// enrolment reads who certifies keys.
func (h *Rooms) enrolment() (keys.Enrolment, error) {
	c := h.Config.Certificates
	e := keys.Enrolment{FixedNames: c.FixedNames, Life: c.LongestLife, Naming: h.Users.Naming.Components()}
	if c.BuiltIn {
		e.Authorities = append(e.Authorities, keys.Authority{ID: keys.BuiltIn, Name: c.Name, Operator: c.Approval == "operator"})
	}
	for _, a := range c.Authorities {
		one := keys.Authority{ID: a.ID, Name: a.Name, Outside: true}
		data, err := os.ReadFile(h.Config.Path(a.CertificatesFile))
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
type profiles struct{ *Rooms }

// oidCommonName is what users are called by who have no other name.
const oidCommonName = "2.5.4.3"

func (p profiles) ProfileOf(ctx context.Context, userID string) (map[string]string, error) {
	values, err := p.Users.NameStore.NameOf(ctx, userID)
	if err != nil {
		return nil, err
	}
	if values == nil {
		values = map[string]string{}
	}
	if values[oidCommonName] == "" {
		u, err := p.Users.Get(ctx, userID)
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

// revocations ask outside authorities about their certificates; see keys.Evidence.
type revocations struct{ *Rooms }

func (r revocations) Revocation(ctx context.Context, cert, issuer *x509gost.Certificate) (answer, list []byte, err error) {
	if r.network == nil {
		return nil, nil, errors.New("nobody is asked about certificates here: a running server does")
	}
	proof, err := r.network.Revocation(ctx, cert, issuer, time.Time{})
	return proof.OCSP, proof.CRL, err
}
