// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"context"
	"time"

	"tamga/pki/ocsp"
	"tamga/pki/x509gost"
)

// OCSPPath is the path of the OCSP service under BaseURL.
func OCSPPath() string { return "/pki/ocsp" }

// maxAsked limits the certificates of one request: each is looked up in the database.
const maxAsked = 32

// OCSP answers an OCSPRequest with an OCSPResponse (RFC 6960). A request that cannot be
// answered gets an error status of OCSP. The error is for internal failures.
//
// Every answer depends on the numbers of the revocation lists that are in the database now, so
// all processes give the same answer and a revocation is in the next one. Serial numbers that
// this authority did not issue are unknown.
func (s *Service) OCSP(ctx context.Context, request []byte) ([]byte, error) {
	r, err := ocsp.ParseRequest(request)
	if err != nil || len(r.CertIDs) > maxAsked {
		return ocsp.CreateError(ocsp.MalformedRequest), nil
	}
	states, err := s.store.States(ctx)
	if err != nil {
		return nil, err
	}
	issuer, d, err := s.asked(ctx, states, &r.CertIDs[0])
	if err != nil {
		return nil, err
	}
	if issuer == nil {
		return ocsp.CreateError(ocsp.Unauthorized), nil
	}
	state := stateOf(states, issuer.name)
	responder, err := s.serving(ctx, d, state)
	if err != nil {
		return nil, err
	}
	now := s.now().UTC().Truncate(time.Second)
	t := &ocsp.Template{ProducedAt: now, Certificates: []*x509gost.Certificate{responder.certificate}}
	for i := range r.CertIDs {
		one, err := s.status(ctx, &r.CertIDs[i], issuer, state)
		if err != nil {
			return nil, err
		}
		one.ThisUpdate, one.NextUpdate = now, now.Add(s.config.OCSPLife)
		t.Singles = append(t.Singles, one)
	}
	for _, e := range r.Extensions {
		if e.OID.Equal(ocsp.OIDNonce) { // copied without a check of its form
			t.Extensions = []x509gost.Extension{e}
		}
	}
	basic, err := ocsp.CreateBasic(t, responder.certificate, responder.key.Suite, s.sign(ctx, responder.key))
	if err != nil {
		return nil, err
	}
	return ocsp.CreateResponse(basic), nil
}

// asked returns the authority among states that an identifier names as the issuer, and its
// responder. The authority is nil when it is not ours.
func (s *Service) asked(ctx context.Context, states []State, id *ocsp.CertID) (*authority, delegate, error) {
	for _, h := range hierarchies {
		for _, base := range []string{h.issuing, h.root} {
			list, err := s.generationsIn(ctx, states, base)
			if err != nil {
				return nil, delegate{}, err
			}
			for _, a := range list {
				if id.IssuedBy(a.certificate) {
					return a, h.responder(a.name), nil
				}
			}
		}
	}
	return nil, delegate{}, nil
}

// status returns the status of one certificate of issuer, which has this state. A certificate
// of another issuer in the same request is unknown: the responder cannot answer for that issuer.
func (s *Service) status(ctx context.Context, id *ocsp.CertID, issuer *authority, state State) (ocsp.Single, error) {
	one := ocsp.Single{CertID: *id, Status: ocsp.Unknown}
	if !id.IssuedBy(issuer.certificate) {
		return one, nil
	}
	issued, found, err := s.issued(ctx, state, x509gost.TrimInteger(id.Serial))
	switch {
	case err != nil:
		return one, err
	case !found || issued.Authority != issuer.name:
	case issued.RevokedAt.IsZero():
		one.Status = ocsp.Good
	default:
		one.Status, one.RevokedAt, one.Reason = ocsp.Revoked, issued.RevokedAt.UTC().Truncate(time.Second), issued.Reason
	}
	return one, nil
}
