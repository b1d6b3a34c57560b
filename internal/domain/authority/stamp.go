// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tamga/internal/domain/audit"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
)

// TSPPath is the path of the time-stamp service under BaseURL.
func TSPPath() string { return "/pki/tsp" }

// defaultTSAPolicy is in the arc that needs no registration (ITU-T X.667) and promises
// nothing beyond the content of the token. An installation with a written policy sets it
// in Config.
var defaultTSAPolicy = x509gost.OID{2, 25, 1846093372}

// accuracy is the largest error of the time in a token: it is truncated to the second, so
// that revocation data made within the same second never looks older.
const accuracy = time.Second

// TimeStamp answers a TimeStampReq with a TimeStampResp (RFC 3161). A request that cannot
// be granted gets a rejection. The error is for internal failures.
//
// Digests by a GOST algorithm are stamped by the GOST hierarchy, those of the SHA-2
// family by the other. Serial numbers have 134 random bits, so they are unique in an
// installation.
func (s *Service) TimeStamp(ctx context.Context, request []byte) ([]byte, error) {
	refuse := func(fail tsp.FailInfo, text string) ([]byte, error) {
		return tsp.CreateRejection(tsp.Rejection, fail, text), nil
	}
	r, err := tsp.ParseRequest(request)
	if err != nil {
		return refuse(tsp.BadDataFormat, err.Error())
	}
	i := slices.IndexFunc(hierarchies, func(h hierarchy) bool { return slices.Contains(h.stamps, r.Digest.Hash) })
	switch {
	case i < 0:
		return refuse(tsp.BadAlg, "want a digest by GOST R 34.11 or of the SHA-2 family")
	case r.Policy != nil && !r.Policy.Equal(s.config.TSAPolicy):
		return refuse(tsp.UnacceptedPolicy, "time stamps are given under policy "+s.config.TSAPolicy.String())
	case len(r.Extensions) > 0:
		return refuse(tsp.UnacceptedExtension, "no extensions are known")
	}
	if err := s.clock.check(); err != nil {
		return refuse(tsp.TimeNotAvailable, "the clock of the service jumped and awaits its operator")
	}
	states, err := s.store.States(ctx)
	if err != nil {
		return nil, err
	}
	issuers, err := s.generationsIn(ctx, states, hierarchies[i].issuing)
	if err != nil {
		return nil, err
	}
	issuer := issuers[0]
	stamper, err := s.serving(ctx, hierarchies[i].stamper(issuer.name), stateOf(states, issuer.name))
	if err != nil {
		return nil, err
	}
	var embed []*x509gost.Certificate
	if r.CertReq {
		embed = []*x509gost.Certificate{stamper.certificate, issuer.certificate}
	}
	serial, err := s.newSerial()
	if err != nil {
		return nil, err
	}
	token, err := tsp.CreateToken(&tsp.Info{
		Policy: s.config.TSAPolicy, Digest: r.Digest, Serial: serial,
		Time: s.now().UTC().Truncate(time.Second), Accuracy: accuracy,
		Nonce: r.Nonce, Authority: stamper.certificate.RawSubject,
	}, stamper.certificate, embed, stamper.key.Suite, s.sign(ctx, stamper.key))
	if err != nil {
		return nil, err
	}
	audit.Changed(ctx, fmt.Sprintf("serial number %x", serial))
	return tsp.CreateResponse(token), nil
}

// Digests that are stamped, by hierarchy. SHA-1 is not among them: a stamp over a digest
// that can be forged proves nothing.
var (
	stampsGOST = []*suite.Hash{suite.GOST94, suite.Streebog256, suite.Streebog512}
	stampsSHA2 = []*suite.Hash{suite.SHA256, suite.SHA384, suite.SHA512}
)
