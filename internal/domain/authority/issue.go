// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/user"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Extended key usages of a user's certificate: those that clients of this interface
// family check, and the one that "openssl cms -verify" needs (smimesign).
var userUsage = []x509gost.OID{
	{1, 3, 6, 1, 5, 5, 7, 3, 2}, // clientAuth
	{1, 3, 6, 1, 5, 5, 7, 3, 4}, // emailProtection
}

// serialSize is the length of a serial number in bytes: one that keeps it positive and 16
// random ones. RFC 5280, section 4.1.2.2, allows 20.
const serialSize = 17

// Request asks for a certificate.
type Request struct {
	Suite     *suite.Suite // of the key
	PublicKey crypto.PublicKey
	Subject   x509gost.Name
	// Life of the certificate; 0 means Config.Life. The certificate never outlives that
	// of the issuer.
	Life time.Duration
	// Usage are the extended key usages of a user's certificate; empty means the default.
	// The caller must refuse those of a server or of an authority's own services.
	Usage []x509gost.OID
	// Encryption asks for the purposes of encryption beside those of signatures; see KeyUsage.
	Encryption bool
	// Extensions are copied into the certificate.
	Extensions []x509gost.Extension
	// ServerNames are the host names and IP addresses of a server. With them the
	// certificate is that of a TLS server, not of a user.
	ServerNames []string
}

// EncryptionUsage are the purposes of keys that open encrypted messages.
const EncryptionUsage = x509.KeyUsageKeyEncipherment | x509.KeyUsageDataEncipherment | x509.KeyUsageKeyAgreement

// KeyUsage returns the key usage of a user's certificate: digitalSignature and nonRepudiation, and with
// encryption those of EncryptionUsage that keys of the suite can have (RFC 9215, section 2; RFC 3279,
// section 2.3.1; RFC 8813, section 3). Encryption is asked for and never the default, because such a key
// must be kept as long as anything encrypted for it.
func KeyUsage(s *suite.Suite, encryption bool) x509.KeyUsage {
	const signature = x509.KeyUsageDigitalSignature | x509.KeyUsageContentCommitment
	switch {
	case !encryption:
		return signature
	case s == suite.RSASHA256:
		return signature | EncryptionUsage&^x509.KeyUsageKeyAgreement
	case s == suite.ECDSAP256:
		return signature | x509.KeyUsageKeyAgreement
	}
	return signature | EncryptionUsage
}

// Bootstrap creates missing authorities and delegates, also after an upgrade from a
// release with fewer of them. It may run at any time and in many processes at once: the
// first process that commits a name decides, and the others use its result.
func (s *Service) Bootstrap(ctx context.Context) error {
	if err := s.bootstrapAuthorities(ctx); err != nil {
		return err
	}
	for _, h := range hierarchies {
		list, err := s.inService(ctx, h)
		if err != nil {
			return err
		}
		for _, d := range list {
			if a, err := s.ensureDelegate(ctx, d); a == nil {
				return err
			}
		}
	}
	return nil
}

func (s *Service) bootstrapAuthorities(ctx context.Context) error {
	for _, h := range hierarchies {
		if _, found, err := s.store.Authority(ctx, h.issuing); err != nil || found {
			if err != nil {
				return err
			}
			continue
		}
		err := s.store.Atomic(ctx, func(ctx context.Context) error {
			root, err := s.ensure(ctx, h.root, s.config.Name+" "+h.title+" Root CA", h.suite, nil)
			if err != nil {
				return err
			}
			_, err = s.ensure(ctx, h.issuing, s.config.Name+" "+h.title+" Issuing CA", h.suite, root)
			return err
		})
		if err != nil {
			return fmt.Errorf("authority: creating the %s authorities: %w", h.title, err)
		}
	}
	return nil
}

// ensure reads an authority or creates it. It is a root when issuer is nil.
func (s *Service) ensure(ctx context.Context, name, commonName string, su *suite.Suite, issuer *authority) (*authority, error) {
	if r, found, err := s.store.Authority(ctx, name); err != nil || found {
		if err != nil {
			return nil, err
		}
		return load(r)
	}
	subject, err := x509gost.BuildName([]x509gost.Attribute{
		{OID: x509gost.OIDOrganization, Value: s.config.Organization},
		{OID: x509gost.OIDCommonName, Value: commonName},
	})
	if err != nil {
		return nil, err
	}
	return s.create(ctx, name, subject, su, issuer)
}

// create makes an authority with a new key. It is a root when issuer is nil.
func (s *Service) create(ctx context.Context, name string, subject x509gost.Name, su *suite.Suite, issuer *authority) (*authority, error) {
	key, public, err := s.holders.Generate(ctx, s.config.Holder, keyID(name), su, nil, nil)
	if err != nil {
		return nil, err
	}
	t, err := s.authorityTemplate(subject, issuer)
	if err != nil {
		return nil, err
	}
	serial := t.SerialNumber
	signer := issuer
	if issuer == nil {
		signer = &authority{name: name, key: key}
	}
	der, err := x509gost.CreateCertificate(t, signer.certificate, public, su, signer.key.Suite, s.sign(ctx, signer.key))
	if err != nil {
		return nil, err
	}
	made, err := load(Record{
		State: State{Name: name}, Holder: key.Holder, Suite: su.Name, Sealed: key.Sealed, Certificate: der,
	})
	if err != nil {
		return nil, err
	}
	now := s.now()
	crl, err := s.makeCRL(ctx, made, 1, now, nil)
	if err != nil {
		return nil, err
	}
	record := Record{
		State:       State{Name: name, CRLNumber: 1, CRLAt: now},
		Holder:      key.Holder,
		Suite:       su.Name,
		Sealed:      key.Sealed,
		Certificate: der,
		CRL:         crl,
		CreatedAt:   now,
	}
	added, err := s.store.AddAuthority(ctx, record)
	if err != nil {
		return nil, err
	}
	if !added { // another process was faster
		r, found, err := s.store.Authority(ctx, name)
		if err == nil && !found {
			err = fmt.Errorf("authority: %s exists and cannot be read: the database is inconsistent", name)
		}
		if err != nil {
			return nil, err
		}
		return load(r)
	}
	if issuer != nil {
		err = s.note(ctx, Issued{Serial: serial, Authority: issuer.name, NotAfter: made.certificate.NotAfter, IssuedAt: now})
	}
	return made, err
}

// authorityTemplate returns the certificate of an authority under an issuer, or of a root.
func (s *Service) authorityTemplate(subject x509gost.Name, issuer *authority) (*x509gost.Template, error) {
	serial, err := s.newSerial()
	if err != nil {
		return nil, err
	}
	notBefore := s.notBefore()
	t := &x509gost.Template{
		Subject: subject, SerialNumber: serial,
		NotBefore: notBefore, NotAfter: notBefore.AddDate(s.config.RootYears, 0, 0),
		IsCA: true, MaxPathLen: 1,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	if issuer != nil {
		t.NotAfter = earlier(notBefore.AddDate(s.config.IssuingYears, 0, 0), issuer.certificate.NotAfter)
		t.MaxPathLen = 0
		s.nameAddresses(t, issuer.name)
	}
	return t, nil
}

// Issue makes a certificate for a public key and records its serial number. The caller
// must have verified that Subject is the owner of the key and, for a key made elsewhere,
// that the owner has the private key. Inside a transaction it becomes part of that
// transaction. The fault is invalid_subject_name for characters in the subject that
// user.CheckCharacters refuses.
func (s *Service) Issue(ctx context.Context, r Request) (*x509gost.Certificate, error) {
	if r.Suite == nil || r.Life < 0 || len(r.Subject.Raw) == 0 || len(r.Subject.Attributes) == 0 {
		return nil, errors.New("authority: a request has a suite, a subject with attributes and no negative life")
	}
	if err := r.Suite.Accepts(r.PublicKey); err != nil {
		return nil, fmt.Errorf("authority: the key to certify: %w", err)
	}
	// Requests also come from files of others.
	for _, a := range r.Subject.Attributes {
		if f, bad := fault.As(user.CheckCharacters(x509gost.AttributeName(a.OID), a.Value)); bad {
			return nil, fault.New(fault.InvalidSubject, "the subject of the certificate: "+f.Message)
		}
	}
	i := slices.IndexFunc(hierarchies, func(h hierarchy) bool { return slices.Contains(h.certifies, r.Suite) })
	if i < 0 {
		return nil, fmt.Errorf("authority: no authority certifies keys of suite %s", r.Suite.Name)
	}
	issuers, err := s.generations(ctx, hierarchies[i].issuing)
	if err != nil {
		return nil, err
	}
	issuer := issuers[0]
	serial, err := s.newSerial()
	if err != nil {
		return nil, err
	}
	life := r.Life
	if life == 0 {
		life = s.config.Life
	}
	now := s.now()
	t := &x509gost.Template{
		Subject: r.Subject, SerialNumber: serial,
		NotBefore:   laterOf(s.notBefore(), issuer.certificate.NotBefore),
		NotAfter:    earlier(now.Add(life).Truncate(time.Second), issuer.certificate.NotAfter),
		KeyUsage:    KeyUsage(r.Suite, r.Encryption),
		ExtKeyUsage: userUsage,
		Policies:    s.config.Policies,
	}
	if len(r.Usage) > 0 {
		t.ExtKeyUsage = r.Usage
	}
	t.ExtraExtensions = append(t.ExtraExtensions, r.Extensions...)
	if len(r.ServerNames) > 0 {
		names, err := alternativeNames(r.ServerNames)
		if err != nil {
			return nil, err
		}
		t.KeyUsage, t.ExtKeyUsage = serverKeyUsage, []x509gost.OID{usageServerAuth}
		t.ExtraExtensions = append(t.ExtraExtensions, names)
	}
	s.nameAddresses(t, issuer.name)
	if !t.NotBefore.Before(t.NotAfter) {
		return nil, fmt.Errorf("authority: %s has expired and cannot issue", issuer.name)
	}
	der, err := x509gost.CreateCertificate(t, issuer.certificate, r.PublicKey, r.Suite, issuer.key.Suite, s.sign(ctx, issuer.key))
	if err != nil {
		return nil, fmt.Errorf("authority: issuing: %w", err)
	}
	cert, err := x509gost.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("authority: reading back what was issued: %w", err)
	}
	err = s.note(ctx, Issued{Serial: serial, Authority: issuer.name, NotAfter: cert.NotAfter, IssuedAt: now})
	if err != nil {
		return nil, err
	}
	return cert, nil
}

// note records a serial number before the certificate is returned.
func (s *Service) note(ctx context.Context, i Issued) error {
	added, err := s.store.AddIssued(ctx, i)
	if err == nil && !added {
		err = errors.New("authority: a serial number of 16 random bytes was drawn twice: the source of randomness is broken")
	}
	return err
}

// nameAddresses adds the addresses of the issuer's revocation list, certificate and OCSP
// answers to a certificate.
func (s *Service) nameAddresses(t *x509gost.Template, issuer string) {
	base := s.config.BaseURL
	if base == "" {
		return
	}
	t.CRLDistributionPoints = []string{base + CRLPath(issuer)}
	t.IssuingURLs = []string{base + CertificatePath(issuer)}
	t.OCSPServers = []string{base + OCSPPath()}
}

// newSerial returns a random serial number. Its first byte, 0x40 to 0x7f, makes the
// number positive and its encoding minimal.
func (s *Service) newSerial() ([]byte, error) {
	serial := make([]byte, serialSize)
	if _, err := io.ReadFull(s.rand, serial); err != nil {
		return nil, fmt.Errorf("authority: drawing a serial number: %w", err)
	}
	serial[0] = serial[0]&0x3f | 0x40
	return serial, nil
}

func (s *Service) notBefore() time.Time {
	return s.now().Add(-skew).UTC().Truncate(time.Second)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
