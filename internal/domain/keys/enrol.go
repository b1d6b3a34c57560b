// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/vault"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// maxKeys limits the certificates of one user, and the requests: lists show no more.
const maxKeys = 1000

// maxUsages limits the extended key usages of one request.
const maxUsages = 32

// CertificateOrder asks for a certificate.
type CertificateOrder struct {
	Authority int64             // 0: the first of the policy
	Suite     string            // name of the suite of the new key; "": that of the renewed certificate, otherwise gost2012-256
	Name      map[string]string // parts of the subject, see Service.Subject
	PIN       string            `json:"-"` // of the new key
	Template  string            // object identifier of the authority's certificate template; "": none
	Usages    []string          // extended key usages as object identifiers; empty: the default
	Life      time.Duration     // 0: the default of the authority
	// Encryption asks for the purposes of encryption, too; see authority.KeyUsage. nil: as the renewed
	// certificate, and as Enrolment.EncryptionGroups says.
	Encryption *bool `json:",omitempty"`

	// Renew names the certificate to renew, and the PIN of its key. The successor has a
	// key of its own and, unless Name says otherwise or names are fixed, its subject.
	Renew    string
	RenewPIN string `json:"-"`
}

// checkedOrder is a CertificateOrder that was checked.
type checkedOrder struct {
	CertificateOrder
	suite    *suite.Suite
	template x509gost.OID
	usages   []x509gost.OID

	encryption bool // see Service.forEncryption
}

// oidTemplate is szOID_CERTIFICATE_TEMPLATE, in which certificates and requests of the
// interface family carry the template's name.
var oidTemplate = x509gost.OID{1, 3, 6, 1, 4, 1, 311, 21, 7}

// usageOfOthers are extended key usages that keys of users never get: those of servers,
// of code signing and of an authority's own services, and anyExtendedKeyUsage.
var usageOfOthers = []x509gost.OID{
	x509gost.UsageAny,
	{1, 3, 6, 1, 5, 5, 7, 3, 1}, {1, 3, 6, 1, 5, 5, 7, 3, 3},
	{1, 3, 6, 1, 5, 5, 7, 3, 8}, {1, 3, 6, 1, 5, 5, 7, 3, 9},
}

// userUsage is the default extended key usage of requests.
var userUsage = []x509gost.OID{{1, 3, 6, 1, 5, 5, 7, 3, 2}, {1, 3, 6, 1, 5, 5, 7, 3, 4}}

// checkOrder checks an order, except for its PINs, before any authority gets it.
func (s *Service) checkOrder(asked CertificateOrder) (*checkedOrder, error) {
	o := &checkedOrder{CertificateOrder: asked}
	if o.Suite != "" {
		var known bool
		if o.suite, known = suite.ByName(o.Suite); !known {
			return nil, fault.New(fault.ProviderNotFound, "GroupId: there is no such provider of keys: the policy lists them")
		}
	}
	if o.Template != "" {
		var err error
		if o.template, err = x509gost.ParseOID(o.Template); err != nil {
			return nil, fault.New(fault.InvalidParameters, "TemplateOid: want an object identifier in dots").With(err)
		}
	}
	if len(o.Usages) > maxUsages {
		return nil, fault.Newf(fault.InvalidParameters, "EkuString: at most %d usages", maxUsages)
	}
	for _, text := range o.Usages {
		u, err := x509gost.ParseOID(text)
		if err != nil {
			return nil, fault.New(fault.InvalidParameters, "EkuString: want object identifiers in dots, with commas between them").With(err)
		}
		if slices.ContainsFunc(usageOfOthers, u.Equal) {
			return nil, fault.Newf(fault.InvalidParameters, "EkuString: users' keys are not for %s", u)
		}
		o.usages = append(o.usages, u)
	}
	if o.Life != 0 && (o.Life < shortestLife || o.Life > s.Enrolment.Life) {
		return nil, fault.Newf(fault.InvalidParameters, "the life of a certificate: want %s to %s", shortestLife, s.Enrolment.Life)
	}
	return o, nil
}

// CreateRequest makes a key and the request for its certificate. The built-in
// authority answers at once unless it has an operator; other requests wait. Faults:
// pending_requests_exist, invalid_enroll, invalid_subject_name, invalid_pin,
// invalid_parameters, certificate_not_found and invalid_certificate of the one that is
// renewed, invalid_object_state when the user has too many, access_denied,
// wrong_operation.
func (s *Service) CreateRequest(ctx context.Context, a Act, asked CertificateOrder) (*Request, error) {
	action := policy.CreateRequest
	if asked.Renew != "" {
		action = policy.RenewCertificate
	}
	if err := s.guard(ctx, a, action); err != nil {
		return nil, err
	}
	return s.ask(ctx, a, a.Who.UserID, asked)
}

// RequestFor is CreateRequest for an operator, who asks for a first or a further certificate of a user. The access policy of
// the user holds. Confirmations are of what users order themselves.
func (s *Service) RequestFor(ctx context.Context, operator audit.Principal, userID string, asked CertificateOrder) (*Request, error) {
	if asked.Renew != "" {
		return nil, fault.New(fault.WrongOperation, "an operator does not renew certificates: their keys may have PINs of the user")
	}
	if err := s.Policy.Permit(ctx, userID, policy.CreateRequest); err != nil {
		return nil, err
	}
	return s.ask(ctx, Act{Who: operator}, userID, asked)
}

// ask makes a key and a request of a user, for whom an act is permitted.
func (s *Service) ask(ctx context.Context, a Act, userID string, asked CertificateOrder) (*Request, error) {
	if err := s.checkNewPIN(asked.PIN); err != nil {
		return nil, err
	}
	o, err := s.checkOrder(asked)
	if err != nil {
		return nil, err
	}
	target, err := s.Enrolment.authority(o.Authority)
	if err != nil {
		return nil, err
	}
	// Checked again in the transaction. This first check avoids making a key in vain.
	if err := s.mayAsk(ctx, userID); err != nil {
		return nil, err
	}
	subject, old, err := s.subjectOf(ctx, userID, o)
	if err != nil {
		return nil, err
	}
	if o.encryption, err = s.forEncryption(ctx, userID, o.Encryption, old); err != nil {
		return nil, err
	}
	renewed := int64(0)
	if old != nil {
		renewed = old.ID
		if err := s.open(ctx, old, o.RenewPIN, s.opens); err != nil {
			return nil, err
		}
	}
	key, keyRecord, der, err := s.newRequest(ctx, userID, o, subject)
	if err != nil {
		return nil, err
	}
	record := RequestRecord{
		UserID: userID, Type: ForCertificate, Status: Pending, Authority: target.ID,
		KeyID: keyRecord.ID, Renews: renewed, DER: der, Life: o.Life, CreatedAt: keyRecord.CreatedAt,
	}
	var q *Request
	err = s.change(ctx, a, userID, func(ctx context.Context) (any, error) {
		q = nil
		err := s.mayAsk(ctx, userID)
		if err != nil {
			return nil, err
		}
		if err := s.Store.AddKey(ctx, keyRecord); err != nil {
			return nil, fault.Rollback(err)
		}
		if q, err = s.addRequest(ctx, record, a, notify.CertificatesRequested); err != nil {
			return nil, fault.Rollback(err)
		}
		if target.Outside || target.Operator {
			return q, nil
		}
		return q, fault.Rollback(s.fulfil(ctx, q, a.Who.UserID))
	})
	if err != nil {
		return nil, s.discard(ctx, key, err)
	}
	return q, nil
}

// addRequest stores a request and emits its event.
func (s *Service) addRequest(ctx context.Context, r RequestRecord, a Act, event notify.EventType) (q *Request, err error) {
	if r.ID, err = s.RequestStore.AddRequest(ctx, r); err != nil {
		return nil, err
	}
	if q, err = s.request(ctx, r); err != nil {
		return nil, err
	}
	return q, s.emit(ctx, event, r.UserID, a.Who.UserID, "request "+strconv.FormatInt(r.ID, 10))
}

// mayAsk refuses a user who has a pending request or too many certificates.
func (s *Service) mayAsk(ctx context.Context, userID string) error {
	requests, err := s.RequestStore.Requests(ctx, userID)
	if err != nil {
		return err
	}
	for _, r := range requests {
		if r.Status == Pending && r.Type == ForCertificate {
			return fault.Newf(fault.PendingRequests, "request %d waits for its certificate: wait for it, or delete it", r.ID)
		}
	}
	certificates, err := s.Store.Certificates(ctx, userID)
	if err != nil {
		return err
	}
	if len(requests) >= maxKeys || len(certificates) >= maxKeys {
		return fault.Newf(fault.InvalidObjectState, "a user has at most %d certificates and as many requests: delete some", maxKeys)
	}
	return nil
}

// subjectOf returns the subject for an ordered certificate, and the certificate that it
// renews, nil for none.
func (s *Service) subjectOf(ctx context.Context, userID string, o *checkedOrder) (subject x509gost.Name, old *Certificate, err error) {
	if o.Renew != "" {
		if old, err = s.Find(ctx, userID, o.Renew); err != nil {
			return x509gost.Name{}, nil, err
		}
		if err := refuse(old, s.Now()); err != nil {
			return x509gost.Name{}, nil, err
		}
		o.suite = cmp.Or(o.suite, old.X509.Suite)
		// The old certificate may be of another time, or of another authority: where names are
		// fixed, its successor has the name that is registered now.
		if len(o.Name) == 0 && !s.Enrolment.FixedNames {
			return old.X509.Subject, old, nil
		}
	}
	subject, err = s.Subject(ctx, userID, o.Name)
	return subject, old, err
}

// forEncryption reports whether a new certificate of a user is for encryption, too. asked is what the order
// says, nil for nothing, and old the certificate that is renewed, nil for none.
func (s *Service) forEncryption(ctx context.Context, userID string, asked *bool, old *Certificate) (bool, error) {
	switch groups := s.Enrolment.EncryptionGroups; {
	case asked != nil:
		return *asked, nil
	case old != nil && old.ForEncryption():
		return true, nil
	case len(groups) == 0:
		return false, nil
	default:
		group, err := s.Placement.Groups.GroupOf(ctx, userID)
		return slices.Contains(groups, group), err
	}
}

// ForEncryption reports whether the certificate names a purpose of encryption. Certificates without one
// decrypt, too, but programs may refuse to encrypt for them.
func (c *Certificate) ForEncryption() bool { return c.X509.KeyUsage&authority.EncryptionUsage != 0 }

// newSuite returns the suite of the new key.
func (o *checkedOrder) newSuite() *suite.Suite { return cmp.Or(o.suite, suite.GOST2012x256) }

// newKeyID returns a random id for a new key.
func (s *Service) newKeyID() (string, error) {
	guid, err := uuid.NewRandomFromReader(s.Rand)
	if err != nil {
		return "", fmt.Errorf("keys: drawing a key id: %w", err)
	}
	return guid.String(), nil
}

// newRequest makes a key, not stored yet, and a request that it signs.
func (s *Service) newRequest(ctx context.Context, userID string, o *checkedOrder, subject x509gost.Name) (vault.Key, KeyRecord, []byte, error) {
	su := o.newSuite()
	extensions, err := o.extensions()
	if err != nil {
		return vault.Key{}, KeyRecord{}, nil, err
	}
	secret := []byte(o.PIN)
	defer clear(secret)
	id, key, public, err := s.newKey(ctx, userID, su, secret, s.generate(nil))
	if err != nil {
		return vault.Key{}, KeyRecord{}, nil, err
	}
	der, err := x509gost.CreateRequest(subject, extensions, public, su, func(d suite.Digest) ([]byte, error) {
		values, err := s.Holders.Sign(ctx, key, secret, []suite.Digest{d})
		if err != nil {
			return nil, err
		}
		return values[0], nil
	})
	if err != nil {
		return vault.Key{}, KeyRecord{}, nil, s.discard(ctx, key, err)
	}
	return key, keyRecord(id, userID, key, s.Now()), der, nil
}

func keyRecord(id, userID string, k vault.Key, at time.Time) KeyRecord {
	return KeyRecord{ID: id, UserID: userID, Holder: k.Holder, Suite: k.Suite.Name, Sealed: k.Sealed, HasPIN: k.HasPIN, CreatedAt: at}
}

// extensions returns the extensions of a request.
func (o *checkedOrder) extensions() ([]x509gost.Extension, error) {
	usages := o.usages
	if len(usages) == 0 {
		usages = userUsage
	}
	var extended cryptobyte.Builder
	extended.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		for _, u := range usages {
			b.AddASN1ObjectIdentifier(u)
		}
	})
	usage, err := x509gost.KeyUsageExtension(authority.KeyUsage(o.newSuite(), o.encryption))
	extendedDER, err2 := extended.Bytes()
	list := []x509gost.Extension{
		usage,
		{OID: x509gost.OIDExtKeyUsage, Value: extendedDER},
	}
	if o.template == nil {
		return list, errors.Join(err, err2)
	}
	var template cryptobyte.Builder
	template.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) { b.AddASN1ObjectIdentifier(o.template) })
	templateDER, err3 := template.Bytes()
	return append(list, x509gost.Extension{OID: oidTemplate, Value: templateDER}), errors.Join(err, err2, err3)
}

// fulfil has the built-in authority carry out a request, inside a transaction. actor is
// the user who caused it, "" for an operator.
func (s *Service) fulfil(ctx context.Context, q *Request, actor string) error {
	if q.Type == ForRevocation {
		r, _, found, err := s.Store.Certificate(ctx, q.CertificateID)
		if err != nil {
			return err
		}
		if !found {
			return fault.Newf(fault.RequestStatus, "the certificate of request %d was deleted", q.ID)
		}
		c, err := s.certificate(r)
		if err != nil {
			return err
		}
		if err := s.setStatus(ctx, c, StatusOrder{Status: Revoked, Reason: q.Reason, Comment: q.Comment}); err != nil {
			return err
		}
		if err := s.decide(ctx, q, Accepted, c.ID); err != nil {
			return err
		}
		return s.emit(ctx, notify.CertificateRevoked, q.UserID, actor, "certificate "+strconv.FormatInt(c.ID, 10))
	}
	request := authority.Request{Suite: q.Parsed.Suite, PublicKey: q.Parsed.PublicKey, Subject: q.Parsed.Subject, Life: q.Life}
	if err := asked(q.Parsed.Extensions, &request); err != nil {
		return err
	}
	if err := q.Parsed.CheckSignature(); err != nil {
		return err
	}
	cert, err := s.Authority.Issue(ctx, request)
	if err != nil {
		return err
	}
	return s.accept(ctx, q, cert, false, actor)
}

// asked parses the extensions of a request that extensions made.
func asked(extensions []x509gost.Extension, into *authority.Request) error {
	for _, e := range extensions {
		switch {
		case e.OID.Equal(oidTemplate):
			into.Extensions = append(into.Extensions, e)
		case e.OID.Equal(x509gost.OIDKeyUsage):
			usage, err := x509gost.ParseKeyUsage(e.Value)
			if err != nil {
				return err
			}
			into.Encryption = usage&authority.EncryptionUsage != 0
		case e.OID.Equal(x509gost.OIDExtKeyUsage):
			in, list := cryptobyte.String(e.Value), cryptobyte.String(nil)
			if !in.ReadASN1(&list, asn1.SEQUENCE) {
				return errors.New("keys: the usages of a request are malformed")
			}
			for !list.Empty() {
				oid, err := x509gost.ReadOID(&list)
				if err != nil {
					return err
				}
				into.Usage = append(into.Usage, oid)
			}
		}
	}
	return nil
}

// accept stores the certificate issued for a request, inside a transaction. A user's
// first certificate becomes the default one.
func (s *Service) accept(ctx context.Context, q *Request, cert *x509gost.Certificate, outside bool, actor string) error {
	id, err := s.Store.AddCertificate(ctx, NewCertificate{
		UserID: q.UserID, KeyID: q.KeyID, DER: cert.Raw, Serial: cert.SerialNumber, CreatedAt: s.Now(), Outside: outside,
	})
	if err != nil {
		return err
	}
	_, found, err := s.Store.DefaultCertificate(ctx, q.UserID)
	if err != nil {
		return err
	}
	if !found {
		if _, err := s.Store.SetDefault(ctx, q.UserID, id); err != nil {
			return err
		}
	}
	if err := s.decide(ctx, q, Accepted, id); err != nil {
		return err
	}
	return s.emit(ctx, notify.CertificateIssued, q.UserID, actor, "certificate "+strconv.FormatInt(id, 10))
}

// RequestRevocation asks the built-in authority to revoke a certificate; without an
// operator it does so at once. Faults are those of SetStatus, and pending_requests_exist
// for a repetition of a pending request.
func (s *Service) RequestRevocation(ctx context.Context, a Act, id string, o StatusOrder) (*Request, error) {
	if err := s.guard(ctx, a, policy.RevokeCertificate); err != nil {
		return nil, err
	}
	c, target, err := s.revocable(ctx, a.Who.UserID, id, o)
	if err != nil {
		return nil, err
	}
	if o.PIN != "" {
		if err := s.open(ctx, c, o.PIN, s.opens); err != nil {
			return nil, err
		}
	}
	var q *Request
	err = s.change(ctx, a, c.UserID, func(ctx context.Context) (any, error) {
		q = nil
		requests, err := s.RequestStore.Requests(ctx, c.UserID)
		if err != nil {
			return nil, err
		}
		for _, r := range requests {
			if r.Status == Pending && r.Type == ForRevocation && r.CertificateID == c.ID {
				return nil, fault.Newf(fault.PendingRequests, "request %d asks for the same and waits", r.ID)
			}
		}
		q, err = s.addRequest(ctx, RequestRecord{
			UserID: c.UserID, Type: ForRevocation, Status: Pending, Authority: target.ID, CertificateID: c.ID,
			Reason: o.Reason, Comment: o.Comment, CreatedAt: s.Now(),
		}, a, notify.RevokeRequestsRequested)
		if err != nil {
			return nil, fault.Rollback(err)
		}
		if target.Operator {
			return q, nil
		}
		return q, fault.Rollback(s.fulfil(ctx, q, a.Who.UserID))
	})
	return q, err
}

// revocable returns the certificate that a request for its revocation names, and the
// authority that gets the request.
func (s *Service) revocable(ctx context.Context, userID, id string, o StatusOrder) (*Certificate, Authority, error) {
	o.Status = Revoked
	c, err := s.Find(ctx, userID, id)
	if err != nil {
		return nil, Authority{}, err
	}
	if err := checkStatus(c, o); err != nil {
		return nil, Authority{}, err
	}
	if c.Status == Revoked {
		return nil, Authority{}, fault.Newf(fault.CertificateStatus, "certificate %d is revoked already", c.ID)
	}
	target, err := s.Enrolment.authority(BuiltIn)
	return c, target, err
}
