// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/chain"
	"tamga/pki/x509gost"
)

// An issuing authority may be subordinate to an outside authority: RequestFor makes a request for its key,
// and Install replaces the certificate by our root with the one of the outside authority. What was issued
// before stays valid, because the key and the name are the same.
//
// This service trusts the subordinate authority itself, so that a signature does not depend on the network
// of the outside authority. Others trust the root of the outside authority.

// Errors that callers distinguish.
var (
	// ErrOutside reports that the certificate is of an outside authority, so our root must not renew it.
	ErrOutside = errors.New("authority: the certificate is of an outside authority")
	// ErrRunning reports that servers run, which hold the former name of the authority.
	ErrRunning = errors.New("authority: the certificate has another name or key identifier, so all servers must be stopped")
)

// certifiedBy reports whether a certificate names the issuer by its subject and by its key identifier, as
// all certificates of this package do.
func certifiedBy(c, issuer *x509gost.Certificate) bool {
	return c.Issuer.Equal(issuer.Subject) && bytes.Equal(c.AuthorityKeyID, issuer.SubjectKeyID)
}

// isOutside reports whether the certificate of an issuing authority is not of one of our roots.
func isOutside(c *x509gost.Certificate, roots []*x509gost.Certificate) bool {
	return !slices.ContainsFunc(roots, func(root *x509gost.Certificate) bool { return certifiedBy(c, root) })
}

// Trusted returns what this service trusts for certificates of its own authorities, and its issuing
// authorities: the roots, and the issuing authorities that an outside authority certified.
func (s *Service) Trusted(ctx context.Context) (anchors, issuing []*x509gost.Certificate, err error) {
	roots, issuing, err := s.Anchors(ctx)
	if err != nil {
		return nil, nil, err
	}
	anchors = roots
	for _, c := range issuing {
		if isOutside(c, roots) {
			anchors = append(anchors, c)
		}
	}
	return anchors, issuing, nil
}

// issuingAuthority reads the record of an issuing authority.
func (s *Service) issuingAuthority(ctx context.Context, name string) (r Record, a *authority, err error) {
	base, _, ok := splitName(name)
	if !ok {
		return r, nil, ErrNoAuthority
	}
	if !slices.ContainsFunc(hierarchies, func(h hierarchy) bool { return h.issuing == base }) {
		return r, nil, fmt.Errorf("authority: %s is a root: an outside authority certifies an issuing authority, such as gost", name)
	}
	r, found, err := s.store.Authority(ctx, name)
	if err == nil && !found {
		err = ErrNoAuthority
	}
	if err != nil {
		return r, nil, err
	}
	a, err = load(r)
	return r, a, err
}

// RequestFor returns a PKCS #10 request (DER) for the key of an issuing authority. It asks for an
// authority that certifies no others. Without a subject it has the present name.
func (s *Service) RequestFor(ctx context.Context, name string, subject x509gost.Name) ([]byte, error) {
	_, a, err := s.issuingAuthority(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(subject.Raw) == 0 {
		subject = a.certificate.Subject
	}
	extension := func(oid x509gost.OID, critical bool, write func(*cryptobyte.Builder)) x509gost.Extension {
		var b cryptobyte.Builder
		write(&b)
		return x509gost.Extension{OID: oid, Critical: critical, Value: b.BytesOrPanic()}
	}
	return x509gost.CreateRequest(subject, []x509gost.Extension{
		extension(x509gost.OIDBasicConstraints, true, func(b *cryptobyte.Builder) {
			b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
				b.AddASN1Boolean(true)
				b.AddASN1Int64(0)
			})
		}),
		extension(x509gost.OIDKeyUsage, true, func(b *cryptobyte.Builder) {
			// keyCertSign (5) and cRLSign (6); the last bit is unused.
			b.AddASN1(cbasn1.BIT_STRING, func(b *cryptobyte.Builder) { b.AddBytes([]byte{1, 1<<(7-5) | 1<<(7-6)}) })
		}),
		extension(x509gost.OIDSubjectKeyID, false, func(b *cryptobyte.Builder) { b.AddASN1OctetString(a.certificate.SubjectKeyID) }),
	}, a.certificate.PublicKey, a.key.Suite, s.sign(ctx, a.key))
}

// Installation is a certificate of an outside authority for one of our issuing authorities.
type Installation struct {
	Name string // of the issuing authority
	// Certificates are those of the file: the new certificate, and perhaps its path.
	Certificates []*x509gost.Certificate
	// Roots are trusted, and Others help to build the path to them.
	Roots, Others []*x509gost.Certificate
	// Stopped reports that no server is running.
	Stopped bool
}

// Install gives an issuing authority a certificate of an outside authority. It may have another name or
// key identifier than before only if no certificate of a user was issued and no server is running: what
// was issued names the former ones.
func (s *Service) Install(ctx context.Context, in Installation) (*x509gost.Certificate, error) {
	var cert *x509gost.Certificate
	err := s.store.Atomic(ctx, func(ctx context.Context) error {
		r, a, err := s.issuingAuthority(ctx, in.Name)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(in.Certificates, func(c *x509gost.Certificate) bool { return bytes.Equal(c.RawSPKI, a.certificate.RawSPKI) })
		if i < 0 {
			return fmt.Errorf("authority: none of the certificates is for the key of %s", in.Name)
		}
		cert = in.Certificates[i]
		if err := s.checkInstallation(cert, in); err != nil {
			return err
		}
		if !cert.Subject.Equal(a.certificate.Subject) || !bytes.Equal(cert.SubjectKeyID, a.certificate.SubjectKeyID) {
			used, err := s.config.Generations.HasUserCertificates(ctx, in.Name)
			if err != nil {
				return err
			}
			if used {
				return fmt.Errorf("authority: %s has issued certificates as %s, key identifier %x, so it needs a certificate with the same; for another name make a new authority by a rollover",
					in.Name, a.certificate.Subject, a.certificate.SubjectKeyID)
			}
			if !in.Stopped {
				return ErrRunning
			}
		}
		if bytes.Equal(cert.Raw, r.Certificate) {
			return nil
		}
		replaced, err := s.config.Generations.ReplaceCertificate(ctx, in.Name, r.Certificate, cert.Raw)
		if err == nil && !replaced {
			err = fmt.Errorf("authority: another command replaced the certificate of %s at the same time", in.Name)
		}
		if err != nil {
			return err
		}
		// The list names its issuer.
		_, err = s.renew(ctx, in.Name)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.Forget()
	// Responders and the stamper get certificates under another name.
	return cert, s.Bootstrap(ctx)
}

// checkInstallation checks that a certificate is one of an authority, under a root.
func (s *Service) checkInstallation(c *x509gost.Certificate, in Installation) error {
	const usage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	switch {
	case !c.IsCA:
		return errors.New("authority: the certificate is not that of an authority: want basicConstraints with CA:TRUE")
	case c.HasKeyUsage && c.KeyUsage&usage != usage:
		return errors.New("authority: the certificate does not allow to sign certificates and revocation lists: want keyCertSign and cRLSign in keyUsage")
	case len(c.SubjectKeyID) == 0:
		return errors.New("authority: the certificate has no subjectKeyIdentifier, by which programs find the issuer")
	case c.Issuer.Equal(c.Subject):
		return errors.New("authority: the certificate is self-issued: want one of an outside authority")
	}
	others := slices.Concat(in.Others, in.Certificates)
	if _, err := chain.Build(c, chain.Options{Roots: in.Roots, Intermediates: others, At: s.now()}); err != nil {
		return fmt.Errorf("authority: the certificate leads to no root of evidence.root_files: %w", err)
	}
	return nil
}
