// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/internal/domain/vault"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// DelegateTable is the table of the keys of delegates: the first half of their
// vault.Key.ID.
const DelegateTable = "authority_delegates"

// DelegateRecord is a service that an authority certified to act for it: a time-stamping
// service or an OCSP responder. It has its own key, so that the key of the authority is
// used only for issuing.
type DelegateRecord struct {
	Name        string
	Generation  int64  // 1 and up; the highest of a name is the one in service
	Authority   string // who issued Certificate
	Suite       string // name of its key's suite
	Holder      string // vault.Key.Holder of the key
	Sealed      []byte // vault.Key.Sealed of the key "authority_delegates:NAME/GENERATION"
	Certificate []byte // DER
	CreatedAt   time.Time
}

// Lifetimes of delegates' certificates, which are replaced after half of it. The
// certificate of a responder is never checked for revocation, so its lifetime is short
// (RFC 6960, 4.2.2.2.1).
const (
	stamperYears  = 10
	responderLife = 90 * 24 * time.Hour
)

// delegate describes one of the delegates.
type delegate struct {
	name, title string
	issuer      string // name of its authority
	suite       *suite.Suite
	prepare     func(*Service, delegate, *x509gost.Template)
}

// stamper is the time-stamping service of an issuing authority of a hierarchy.
func (h hierarchy) stamper(issuing string) delegate {
	return delegate{issuing + "-tsa", h.title + " Time-Stamping Service", issuing, h.suite, (*Service).prepareStamper}
}

// responder answers for one of the two authorities of a hierarchy: a responder must be
// certified by the authority that issued the certificate in question (RFC 6960, 4.2.2.2).
func (h hierarchy) responder(issuer string) delegate {
	title := h.title + " OCSP Responder"
	if base, _, _ := splitName(issuer); base == h.root {
		title = h.title + " Root OCSP Responder"
	}
	return delegate{issuer + "-ocsp", title, issuer, h.suite, (*Service).prepareResponder}
}

// inService returns those that must be in service: the responders of all generations whose certificate
// is still valid, and the stamper of the newest issuing authority.
func (s *Service) inService(ctx context.Context, h hierarchy) (list []delegate, err error) {
	for _, base := range []string{h.root, h.issuing} {
		generations, err := s.generations(ctx, base)
		if err != nil {
			return nil, err
		}
		for i, a := range generations {
			if i == 0 || s.now().Before(a.certificate.NotAfter) {
				list = append(list, h.responder(a.name))
			}
		}
		if base == h.issuing {
			list = append(list, h.stamper(generations[0].name))
		}
	}
	return list, nil
}

// prepareStamper makes the extended key usage critical and the only one (RFC 3161, 2.3).
func (s *Service) prepareStamper(d delegate, t *x509gost.Template) {
	t.NotAfter = t.NotBefore.AddDate(stamperYears, 0, 0)
	t.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageContentCommitment
	var use cryptobyte.Builder
	use.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) { b.AddASN1ObjectIdentifier(x509gost.UsageTimeStamping) })
	t.ExtraExtensions = []x509gost.Extension{{OID: x509gost.OIDExtKeyUsage, Critical: true, Value: use.BytesOrPanic()}}
	s.nameAddresses(t, d.issuer)
}

func (s *Service) prepareResponder(_ delegate, t *x509gost.Template) {
	t.NotAfter = t.NotBefore.Add(responderLife)
	t.KeyUsage = x509.KeyUsageDigitalSignature
	t.ExtKeyUsage = []x509gost.OID{x509gost.UsageOCSPSigning}
	t.ExtraExtensions = []x509gost.Extension{{OID: x509gost.OIDOCSPNoCheck, Value: []byte{byte(cbasn1.NULL), 0}}}
}

// serving returns a delegate that may act now: valid and not revoked. A cached delegate
// is used until it expires; Maintain replaces it before. Its revocation is checked on
// each call. issuer is the state of its authority, which the caller has just read.
func (s *Service) serving(ctx context.Context, d delegate, issuer State) (*authority, error) {
	s.mu.Lock()
	a := s.delegates[d.name]
	s.mu.Unlock()
	if a != nil && valid(a.certificate, s.now()) {
		issued, found, err := s.issued(ctx, issuer, a.certificate.SerialNumber)
		if err != nil {
			return nil, err
		}
		if found && issued.RevokedAt.IsZero() {
			return a, nil
		}
	}
	a, err := s.ensureDelegate(ctx, d)
	if a != nil {
		return a, nil // Maintain reports that it could not be replaced in time
	}
	return nil, err
}

func valid(c *x509gost.Certificate, at time.Time) bool {
	return !at.Before(c.NotBefore) && at.Before(c.NotAfter)
}

// ensureDelegate reads the current delegate of a name and replaces it when it is absent,
// revoked or past half of its life. If that fails, a delegate that is still valid is
// returned with the error.
func (s *Service) ensureDelegate(ctx context.Context, d delegate) (*authority, error) {
	issuer, err := s.authority(ctx, d.issuer)
	if err != nil {
		return nil, err
	}
	var current, old *authority // old is used on if it is not replaced
	err = s.store.Atomic(ctx, func(ctx context.Context) error {
		current, old = nil, nil
		r, found, err := s.store.Delegate(ctx, d.name)
		if err != nil {
			return err
		}
		if found {
			if current, err = loadDelegate(r); err != nil {
				return err
			}
			issued, known, err := s.store.Issued(ctx, current.certificate.SerialNumber)
			if err != nil {
				return err
			}
			// A certificate of an outside authority may give the issuer another name.
			if known && issued.RevokedAt.IsZero() && valid(current.certificate, s.now()) && certifiedBy(current.certificate, issuer.certificate) {
				old = current
			}
			if old != nil && !s.due(old.certificate, issuer.certificate) {
				return nil
			}
		}
		current, err = s.createDelegate(ctx, d, issuer, r.Generation+1)
		return err
	})
	if err != nil {
		err = fmt.Errorf("authority: making %s: %w", d.name, err)
		if old == nil {
			return nil, err
		}
		current = old
	}
	s.mu.Lock()
	s.delegates[d.name] = current
	s.mu.Unlock()
	return current, err
}

// due reports whether a delegate's certificate must be replaced: half of its life is over
// and the issuer can give a longer one.
func (s *Service) due(c, issuer *x509gost.Certificate) bool {
	half := c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) / 2)
	return !s.now().Before(half) && c.NotAfter.Before(issuer.NotAfter)
}

// createDelegate makes a key, certifies it and stores both, inside a transaction.
func (s *Service) createDelegate(ctx context.Context, d delegate, issuer *authority, generation int64) (*authority, error) {
	id := delegateKeyID(d.name, generation)
	key, public, err := s.holders.Generate(ctx, s.config.Holder, id, d.suite, nil, nil)
	if err != nil {
		return nil, err
	}
	subject, err := x509gost.BuildName([]x509gost.Attribute{
		{OID: x509gost.OIDOrganization, Value: s.config.Organization},
		{OID: x509gost.OIDCommonName, Value: s.config.Name + " " + d.title},
	})
	if err != nil {
		return nil, err
	}
	serial, err := s.newSerial()
	if err != nil {
		return nil, err
	}
	t := &x509gost.Template{
		Subject: subject, SerialNumber: serial,
		NotBefore: laterOf(s.notBefore(), issuer.certificate.NotBefore),
	}
	d.prepare(s, d, t)
	t.NotAfter = earlier(t.NotAfter, issuer.certificate.NotAfter)
	if !s.now().Before(t.NotAfter) {
		return nil, fmt.Errorf("authority: %s has expired and cannot issue", issuer.name)
	}
	der, err := x509gost.CreateCertificate(t, issuer.certificate, public, d.suite, issuer.key.Suite, s.sign(ctx, issuer.key))
	if err != nil {
		return nil, err
	}
	now := s.now()
	record := DelegateRecord{
		Name: d.name, Generation: generation, Authority: issuer.name, Holder: key.Holder, Suite: d.suite.Name,
		Sealed: key.Sealed, Certificate: der, CreatedAt: now,
	}
	added, err := s.store.AddDelegate(ctx, record)
	if err != nil {
		return nil, err
	}
	if !added { // another process was faster
		r, found, err := s.store.Delegate(ctx, d.name)
		if err == nil && !found {
			err = fmt.Errorf("authority: %s exists and cannot be read: the database is inconsistent", d.name)
		}
		if err != nil {
			return nil, err
		}
		return loadDelegate(r)
	}
	if err := s.note(ctx, Issued{Serial: serial, Authority: issuer.name, NotAfter: t.NotAfter, IssuedAt: now}); err != nil {
		return nil, err
	}
	return loadDelegate(record)
}

func delegateKeyID(name string, generation int64) string {
	return fmt.Sprintf("%s:%s/%d", DelegateTable, name, generation)
}

func loadDelegate(r DelegateRecord) (*authority, error) {
	a, err := load(Record{State: State{Name: r.Name}, Holder: r.Holder, Suite: r.Suite, Sealed: r.Sealed, Certificate: r.Certificate})
	if err != nil {
		return nil, err
	}
	a.key = vault.Key{ID: delegateKeyID(r.Name, r.Generation), Holder: r.Holder, Suite: a.key.Suite, Sealed: r.Sealed}
	return a, nil
}

// Maintain renews revocation lists and certificates of delegates that are past half of
// their life, and checks the clock. Call it about once a minute, in any number of
// processes. Its error names all failures. The old lists and certificates stay in use
// while they are valid, so the error is for the log and the administrator.
func (s *Service) Maintain(ctx context.Context) error {
	var errs []error
	states, err := s.store.States(ctx)
	if err != nil {
		return err
	}
	for _, st := range states {
		if list, err := s.stored(ctx, st); err != nil || s.listDue(st, list) {
			if _, err := s.renewOld(ctx, st.Name); err != nil {
				errs = append(errs, fmt.Errorf("authority: renewing the revocation list of %s: %w", st.Name, err))
			}
		}
	}
	errs = append(errs, s.Reread(ctx))
	for _, h := range hierarchies {
		list, err := s.inService(ctx, h)
		errs = append(errs, err)
		for _, d := range list {
			if err := s.maintainDelegate(ctx, d); err != nil {
				errs = append(errs, err)
			}
		}
	}
	errs = append(errs, s.clock.check())
	return errors.Join(errs...)
}

// maintainDelegate replaces a delegate that is due; see due.
func (s *Service) maintainDelegate(ctx context.Context, d delegate) error {
	issuer, err := s.authority(ctx, d.issuer)
	if err != nil {
		return err
	}
	states, err := s.store.States(ctx)
	if err != nil {
		return err
	}
	a, err := s.serving(ctx, d, stateOf(states, d.issuer))
	if err == nil && s.due(a.certificate, issuer.certificate) {
		_, err = s.ensureDelegate(ctx, d)
	}
	return err
}
