// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"context"
	"crypto"
	"errors"
	"strconv"
	"unicode/utf8"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/vault"
	"tamga/pki/chain"
	"tamga/pki/pfx"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// ImportOrder is a key with its certificate in a PKCS #12 file.
type ImportOrder struct {
	UserID       string
	File         []byte
	Password     string // of the file
	PIN          string // of the key here
	Default      bool   // make it the default certificate; a user's first one always is
	FriendlyName string // "": that of the file
}

// Import imports a key with its certificate, for an administrator. The certificate must
// be of the built-in authority or a configured outside authority. Faults:
// invalid_parameters for a file that cannot be opened, invalid_certificate, invalid_pin,
// invalid_frinendly_name_length, invalid_object_state for a certificate that the user
// has, and for one of the built-in authority that another user has.
func (s *Service) Import(ctx context.Context, o ImportOrder) (*Certificate, error) {
	if err := s.checkNewPIN(o.PIN); err != nil {
		return nil, err
	}
	bundle, err := pfx.Parse(o.File, o.Password)
	if errors.Is(err, pfx.ErrPassword) {
		return nil, fault.New(fault.InvalidParameters, "the password is wrong, or the file is damaged").With(err)
	}
	if err != nil {
		return nil, fault.New(fault.InvalidParameters, "the file cannot be read: want PKCS #12 with one key, PBES2 and a MAC").With(err)
	}
	defer vault.Wipe(bundle.Key)
	cert := bundle.Certificate
	if cert == nil {
		return nil, fault.New(fault.InvalidCertificate, "the file has no certificate for its key")
	}
	if err := bundle.Suite.Accepts(bundle.Key.Public()); err != nil {
		return nil, fault.Newf(fault.InvalidParameters, "this service does not sign with keys of this kind").With(err)
	}
	outside, err := s.origin(ctx, cert)
	if err != nil {
		return nil, err
	}
	if err := s.absent(ctx, o.UserID, cert); err != nil {
		return nil, err
	}
	if o.FriendlyName == "" {
		o.FriendlyName = bundle.Name
	}
	if n := utf8.RuneCountInString(o.FriendlyName); n > maxFriendlyName {
		return nil, fault.Newf(fault.FriendlyNameLength, "the friendly name has %d characters: at most %d", n, maxFriendlyName)
	}
	order := IssueOrder{UserID: o.UserID, Suite: bundle.Suite, PIN: o.PIN, Default: o.Default, FriendlyName: o.FriendlyName, first: true}
	return s.adopt(ctx, order,
		func(ctx context.Context, holder, id string, su *suite.Suite, pin []byte) (vault.Key, crypto.PublicKey, error) {
			return s.Holders.Import(ctx, holder, id, su, bundle.Key, pin)
		},
		func(context.Context, crypto.PublicKey) (NewCertificate, error) {
			return NewCertificate{DER: cert.Raw, Serial: cert.SerialNumber, Outside: outside}, nil
		}, notify.CertificateKeyImported)
}

// origin reports whether a certificate is of an outside authority. It refuses a
// certificate of an unknown authority.
func (s *Service) origin(ctx context.Context, cert *x509gost.Certificate) (outside bool, err error) {
	anchors, issuing, err := s.Authority.Trusted(ctx)
	if err != nil {
		return false, err
	}
	if _, err := chain.Build(cert, chain.Options{Roots: anchors, Intermediates: issuing, At: s.Now()}); err == nil {
		return false, nil
	}
	for _, a := range s.Enrolment.Authorities {
		if a.Outside && s.trusted(cert, a.ID) == nil {
			return true, nil
		}
	}
	return false, fault.New(fault.InvalidCertificate, "the certificate is not valid now, or its authority is unknown to this service")
}

// absent returns a fault for a certificate that the user has already.
func (s *Service) absent(ctx context.Context, userID string, cert *x509gost.Certificate) error {
	records, err := s.Store.Certificates(ctx, userID)
	if err != nil {
		return err
	}
	for _, r := range records {
		if string(r.DER) == string(cert.Raw) {
			return fault.Newf(fault.InvalidObjectState, "the user has this certificate already: it is number %d", r.ID)
		}
	}
	return nil
}

// OfAnother returns the fault for a certificate of the built-in authority that another user has.
func OfAnother() error {
	return fault.New(fault.InvalidObjectState, "the certificate belongs to another user: delete it there first")
}

// ExportOrder asks for the export of a key with its certificate.
type ExportOrder struct {
	ID       int64
	PIN      string // of the key
	Password string // of the file
	Options  pfx.Options
	Auto     bool // Kuznyechik for GOST keys and AES for others; overrides Options
}

// Export returns a key with its certificate as a PKCS #12 file, for an administrator. The
// access policy of the key's owner must allow PrivateKeyAccess. Faults:
// certificate_not_found, invalid_pin, access_denied, wrong_operation where keys cannot
// leave, invalid_parameters.
func (s *Service) Export(ctx context.Context, o ExportOrder) ([]byte, error) {
	if err := leaves(s.Exportable); err != nil {
		return nil, err
	}
	r, _, found, err := s.Store.Certificate(ctx, o.ID)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fault.Newf(fault.CertificateNotFound, "there is no certificate %d", o.ID)
	}
	if s.Policy != nil {
		if err := s.Policy.Permit(ctx, r.UserID, policy.PrivateKeyAccess); err != nil {
			return nil, err
		}
	}
	if o.Password == "" {
		return nil, fault.New(fault.InvalidParameters, "the password is missing: the file must have one")
	}
	c, err := s.certificate(r)
	if err != nil {
		return nil, err
	}
	if err := s.exports(ctx, c); err != nil {
		return nil, err
	}
	return s.export(ctx, c, o)
}

// leaves refuses an export where the configuration forbids it.
func leaves(allowed bool) error {
	if !allowed {
		return fault.New(fault.WrongOperation, "the configuration of this installation forbids the export of keys")
	}
	return nil
}

// exports refuses the export of a key that cannot leave its holder.
func (s *Service) exports(ctx context.Context, c *Certificate) error {
	key, _, err := s.key(ctx, nil, c)
	if err == nil && !s.Holders.Exports(key) {
		err = fault.New(fault.WrongOperation, "this key cannot be exported: it never leaves the device that keeps it")
	}
	return err
}

// minFilePassword is the least number of characters in the password of a file that a user
// exports: a finder of the file may try as many as they like.
const minFilePassword = 8

func checkFilePassword(password string) error {
	if utf8.RuneCountInString(password) < minFilePassword {
		return fault.Newf(fault.InvalidParameters, "the password of the file is too short: want at least %d characters", minFilePassword)
	}
	return nil
}

// Exported is a key with its certificate in a PKCS #12 file.
type Exported struct {
	Certificate int64
	File        []byte
}

// exportOwn returns a key of the caller as a PKCS #12 file, after a confirmation. The faults are
// those of Export.
func (s *Service) exportOwn(ctx context.Context, a Act, id string, secrets Secrets) (*Exported, error) {
	if a.run == nil || !a.run.Confirmed() {
		return nil, operation.Unconfirmed(policy.PrivateKeyAccess)
	}
	if err := s.guard(ctx, a, policy.PrivateKeyAccess); err != nil {
		return nil, err
	}
	c, err := s.ownExportable(ctx, a.Who.UserID, id)
	if err != nil {
		return nil, err
	}
	if err := checkFilePassword(secrets.Password); err != nil {
		return nil, err
	}
	made := &Exported{Certificate: c.ID}
	if made.File, err = s.export(ctx, c, ExportOrder{PIN: secrets.PIN, Password: secrets.Password, Auto: true}); err != nil {
		return nil, err
	}
	err = s.change(ctx, a, a.Who.UserID, func(ctx context.Context) (any, error) {
		return made, fault.Rollback(s.emit(ctx, notify.CertificateKeyExported, c.UserID, a.Who.UserID, "certificate "+strconv.FormatInt(c.ID, 10)))
	})
	return made, err
}

// ownExportable finds a certificate whose key its user may export.
func (s *Service) ownExportable(ctx context.Context, userID, id string) (*Certificate, error) {
	if err := leaves(s.ExportableByUsers); err != nil {
		return nil, err
	}
	c, err := s.Find(ctx, userID, id)
	if err != nil {
		return nil, err
	}
	return c, s.exports(ctx, c)
}

// MayExport reports whether a user may export own keys, after a confirmation.
func (s *Service) MayExport(ctx context.Context, userID string) (bool, error) {
	if leaves(s.ExportableByUsers) != nil {
		return false, nil
	}
	return s.permits(ctx, userID, policy.PrivateKeyAccess)
}

// MayRequest reports whether the access policy lets a user request certificates.
func (s *Service) MayRequest(ctx context.Context, userID string) (bool, error) {
	return s.permits(ctx, userID, policy.CreateRequest)
}

func (s *Service) permits(ctx context.Context, userID string, action policy.Action) (bool, error) {
	err := s.Policy.Permit(ctx, userID, action)
	if fault.Is(err, fault.AccessDenied) {
		return false, nil
	}
	return err == nil, err
}

// export writes the file.
func (s *Service) export(ctx context.Context, c *Certificate, o ExportOrder) ([]byte, error) {
	bundle := &pfx.Bundle{Suite: c.X509.Suite, Certificate: c.X509, Name: c.FriendlyName}
	if path, err := s.Judge(ctx, c, s.Now()); err == nil {
		bundle.Others = path.Chain[1:]
	}
	if o.Auto {
		if o.Options.Cipher = pfx.Kuznyechik; !c.X509.Suite.IsGOST() {
			o.Options.Cipher = pfx.AES256
		}
	}
	var file []byte
	err := s.open(ctx, c, o.PIN, func(ctx context.Context, key vault.Key, pin []byte) (err error) {
		if bundle.Key, err = s.Holders.Export(ctx, key, pin); err != nil {
			return err
		}
		defer vault.Wipe(bundle.Key)
		file, err = pfx.Create(s.Rand, bundle, o.Password, o.Options)
		return err
	})
	return file, err
}
