// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"context"
	"crypto"
	"errors"
	"strconv"

	"tamga/gost/gost3410"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/vault"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// algorithms are the suites by their numbers (ALG_ID) in the specification.
var algorithms = map[int64]*suite.Suite{
	11811: suite.GOST2001,
	11849: suite.GOST2012x256,
	11837: suite.GOST2012x512,
	41984: suite.RSASHA256, // CALG_RSA_KEYX
	9216:  suite.RSASHA256, // CALG_RSA_SIGN
}

// Generate makes a key of an algorithm with a certificate of the built-in authority under
// the registered name of the user. parameters is the object identifier of a GOST
// parameter set; "" means the default one. Faults: algid_is_not_supported,
// param_set_is_not_supported, enroll_is_missing, invalid_pin, invalid_subject_name,
// pending_requests_exist, invalid_object_state, access_denied, wrong_operation (also
// where an operator approves requests).
func (s *Service) Generate(ctx context.Context, a Act, algorithm int64, parameters, pin string) (*Certificate, error) {
	if err := s.guard(ctx, a, policy.CreateRequest); err != nil {
		return nil, err
	}
	g, err := s.generation(ctx, a.Who.UserID, algorithm, parameters)
	if err != nil {
		return nil, err
	}
	if err := s.checkNewPIN(pin); err != nil {
		return nil, err
	}
	o := IssueOrder{UserID: a.Who.UserID, Suite: g.suite, Subject: g.subject, PIN: pin, first: true, act: a}
	return s.certify(ctx, o, s.generate(g.set))
}

// generation is what Generate makes, after its checks.
type generation struct {
	suite   *suite.Suite
	set     *gost3410.Set // nil: the default one
	subject x509gost.Name
}

// generation checks the arguments of Generate, except for the PIN.
func (s *Service) generation(ctx context.Context, userID string, algorithm int64, parameters string) (*generation, error) {
	su, ok := algorithms[algorithm]
	if !ok {
		return nil, fault.Newf(fault.AlgorithmNotSupported, "AlgId %d: want 11811, 11849, 11837, 41984 or 9216", algorithm)
	}
	set, err := parameterSet(su, parameters)
	if err != nil {
		return nil, err
	}
	target, err := s.Enrolment.authority(BuiltIn)
	if err != nil {
		return nil, fault.New(fault.EnrollMissing, "the built-in authority is not in use here: send a request to another").With(err)
	}
	if target.Operator {
		return nil, fault.New(fault.WrongOperation, "certificates are approved by an operator here: send a request")
	}
	if err := s.mayAsk(ctx, userID); err != nil {
		return nil, err
	}
	subject, err := s.Subject(ctx, userID, nil)
	return &generation{su, set, subject}, err
}

// parameterSet returns a parameter set for keys of a suite; nil means the default one.
func parameterSet(su *suite.Suite, text string) (*gost3410.Set, error) {
	if text == "" {
		return nil, nil
	}
	oid, err := x509gost.ParseOID(text)
	if err == nil && su.IsGOST() {
		p, err := su.ParametersByOID(oid)
		// Test parameter sets are not for certificates.
		if err == nil && p.Set != gost3410.TestSet && p.Set != gost3410.TC26512Test {
			return p.Set, nil
		}
	}
	return nil, fault.Newf(fault.ParameterNotSupported, "ParametersOid: %s has no such parameter set", su.Name)
}

// maker makes a key in a holder; it is not stored yet.
type maker func(ctx context.Context, holder, id string, su *suite.Suite, pin []byte) (vault.Key, crypto.PublicKey, error)

// generate returns the maker of a new key with a parameter set, nil for the default one.
func (s *Service) generate(set *gost3410.Set) maker {
	return func(ctx context.Context, holder, id string, su *suite.Suite, pin []byte) (vault.Key, crypto.PublicKey, error) {
		return s.Holders.Generate(ctx, holder, id, su, set, pin)
	}
}

// certify makes a key and has the built-in authority certify it; both are stored or
// neither.
func (s *Service) certify(ctx context.Context, o IssueOrder, make maker) (*Certificate, error) {
	encryption, err := s.forEncryption(ctx, o.UserID, o.Encryption, nil)
	if err != nil {
		return nil, err
	}
	return s.adopt(ctx, o, make, func(ctx context.Context, public crypto.PublicKey) (NewCertificate, error) {
		cert, err := s.Authority.Issue(ctx, authority.Request{Suite: o.Suite, PublicKey: public, Subject: o.Subject, Life: o.Life, Encryption: encryption})
		if err != nil {
			return NewCertificate{}, err
		}
		return NewCertificate{DER: cert.Raw, Serial: cert.SerialNumber}, nil
	}, notify.CertificateIssued)
}

// adopt makes a key and stores it with the certificate that certificate gives for it,
// inside the same transaction.
func (s *Service) adopt(ctx context.Context, o IssueOrder, make maker, certificate func(context.Context, crypto.PublicKey) (NewCertificate, error), event notify.EventType) (*Certificate, error) {
	secret := []byte(o.PIN)
	defer clear(secret)
	id, key, public, err := s.newKey(ctx, o.UserID, o.Suite, secret, make)
	if err != nil {
		return nil, err
	}
	var adopted *Certificate
	err = s.change(ctx, o.act, o.UserID, func(ctx context.Context) (any, error) {
		now := s.Now()
		c, err := certificate(ctx, public)
		if err != nil {
			return nil, fault.Rollback(err)
		}
		if err := s.Store.AddKey(ctx, keyRecord(id, o.UserID, key, now)); err != nil {
			return nil, fault.Rollback(err)
		}
		c.UserID, c.KeyID, c.FriendlyName, c.CreatedAt = o.UserID, id, o.FriendlyName, now
		made := CertificateRecord{NewCertificate: c, HasPIN: key.HasPIN, Default: o.Default}
		made.ID, err = s.Store.AddCertificate(ctx, c)
		if errors.Is(err, ErrDuplicate) {
			err = OfAnother()
		}
		if err != nil {
			return nil, fault.Rollback(err)
		}
		if o.first && !made.Default {
			_, found, err := s.Store.DefaultCertificate(ctx, o.UserID)
			if err != nil {
				return nil, fault.Rollback(err)
			}
			made.Default = !found
		}
		if made.Default {
			if _, err := s.Store.SetDefault(ctx, o.UserID, made.ID); err != nil {
				return nil, fault.Rollback(err)
			}
		}
		if adopted, err = s.certificate(made); err != nil {
			return nil, fault.Rollback(err)
		}
		return adopted, fault.Rollback(s.emit(ctx, event, o.UserID, "", "certificate "+strconv.FormatInt(made.ID, 10)))
	})
	if err != nil {
		return nil, s.discard(ctx, key, err)
	}
	return adopted, nil
}
