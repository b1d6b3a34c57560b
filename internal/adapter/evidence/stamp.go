// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/policy"
	"tamga/pki/chain"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
)

// Values of sig.ErrEvidence.What.
const (
	whatStamp      = "time stamp"
	whatRevocation = "revocation"
	whatIssuer     = "issuer"
)

// TimeStamp implements sig.Evidence. address must be registered, unless third parties are
// allowed. An empty address means the first registered service. If the service has a
// class, others of the class may stamp instead.
func (s *Source) TimeStamp(ctx context.Context, address string, d suite.Digest) (*tsp.Verified, error) {
	budget.Leave(ctx)
	if d.Hash == nil || len(d.Sum) != d.Hash.Size {
		return nil, errors.New("evidence: time stamp: the digest does not fit its algorithm")
	}
	services, err := s.choose(ctx, address)
	if err != nil {
		return nil, err
	}
	trust, err := s.trust(ctx)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, s.TotalTimeout)
	defer cancel()
	token, err := newRace(s, services, trust, d).run(limited)
	return token, ended(ctx, err)
}

// trust is the certificates for building paths.
type trust struct{ roots, known []*x509gost.Certificate }

func (s *Source) trust(ctx context.Context) (t trust, err error) {
	t.roots, t.known, err = s.Anchors(ctx)
	return t, err
}

// service is a time-stamp service with its key.
type service struct {
	policy.TSPService
	key        string // its address in normal form
	registered bool
}

// choose returns the services that may stamp, the requested one first. Package policy has
// decided about the address when the signature was ordered. It is decided again at this boundary to
// the network, because the second of two steps may come after a service was removed.
func (s *Source) choose(ctx context.Context, address string) ([]service, error) {
	registered, err := s.Services(ctx)
	if err != nil {
		return nil, err
	}
	if address == "" {
		if len(registered) == 0 {
			return nil, &sig.ErrEvidence{What: whatStamp, Text: "no time-stamp service is registered"}
		}
		address = registered[0].URL
	}
	want, ok := policy.NormalAddress(address)
	if !ok {
		return nil, &sig.ErrEvidence{What: whatStamp, Text: fmt.Sprintf("the address %.100q is not one of http or https", address)}
	}
	var list []service
	if r, found := policy.ServiceAt(registered, want); found {
		list = append(list, service{r, want, true})
	}
	switch {
	case len(list) == 0 && !s.AllowThirdPartyTSP:
		return nil, &sig.ErrEvidence{What: whatStamp, Text: fmt.Sprintf("%.100q is not the address of a registered time-stamp service", address)}
	case len(list) == 0:
		return []service{{policy.TSPService{Name: want, URL: address}, want, false}}, nil
	}
	for _, r := range registered {
		key, ok := policy.NormalAddress(r.URL)
		if ok && key != want && r.Class != "" && r.Class == list[0].Class {
			list = append(list, service{r, key, true})
		}
	}
	return list, nil
}

// stamp asks one service once and checks the answer. This is the boundary to the service: another
// one is asked where the answer of the first does not hold. The result remembers what was checked, so
// formats do not check the token again.
func (s *Source) stamp(ctx context.Context, svc service, t trust, d suite.Digest, hedged bool) (*tsp.Verified, error) {
	token, request, err := s.ask(ctx, svc, d, hedged)
	if err != nil {
		return nil, err
	}
	verified, err := token.Verify(request, nil)
	if err != nil {
		return nil, err
	}
	if err := s.checkClock(token); err != nil {
		return nil, err
	}
	path, err := s.path(t, token, verified.Authority())
	if err != nil {
		return nil, err
	}
	if err := s.checkPath(ctx, path); err != nil {
		return nil, err
	}
	return verified, nil
}

// nonceSize is the length of a TSP nonce in bytes.
const nonceSize = 16

// ask sends a request and returns the token of the answer.
func (s *Source) ask(ctx context.Context, svc service, d suite.Digest, hedged bool) (*tsp.Token, *tsp.Request, error) {
	parse := s.guard.Parse
	if svc.registered {
		parse = s.guard.ParseRegistered
	}
	u, err := parse(svc.URL)
	if err != nil {
		return nil, nil, err
	}
	nonce, err := s.random(nonceSize)
	if err != nil {
		return nil, nil, err
	}
	nonce[0] = nonce[0]&0x3f | 0x40 // positive, and of full length
	request := &tsp.Request{Digest: d, Nonce: nonce, CertReq: true}
	if svc.Policy != "" {
		if request.Policy, err = parseOID(svc.Policy); err != nil {
			return nil, nil, err
		}
	}
	body, err := request.Marshal()
	if err != nil {
		return nil, nil, err
	}
	answer, err := s.fetch(ctx, order{kind: stampKind, url: u, body: body, timeout: s.StampTimeout, limit: s.MaxStamp, hedged: hedged})
	if err != nil {
		return nil, nil, err
	}
	token, err := tsp.ParseResponse(answer)
	if err != nil {
		return nil, nil, rejection(err)
	}
	return token, request, nil
}

// rejection distinguishes a service with a temporary problem from one that will never
// stamp this request.
func rejection(err error) error {
	var r *tsp.RejectedError
	if errors.As(err, &r) && (r.FailInfo == tsp.TimeNotAvailable || r.FailInfo == tsp.SystemFailure) {
		return &outage{err}
	}
	return err
}

// checkClock refuses a token whose time differs too much from our clock.
func (s *Source) checkClock(token *tsp.Token) error {
	off := token.Info.Time.Sub(s.Now())
	if off.Abs() > s.ClockTolerance+token.Info.Accuracy.Abs() {
		return fmt.Errorf("the time of the token, %s, is %s off our clock, more than the %s allowed", instant(token.Info.Time), off.Abs().Round(time.Second), s.ClockTolerance)
	}
	return nil
}

// path builds the path of a time-stamping authority to an anchor.
func (s *Source) path(t trust, token *tsp.Token, signer *x509gost.Certificate) ([]*x509gost.Certificate, error) {
	verdict, err := chain.Build(signer, chain.Options{
		Roots:         t.roots,
		Intermediates: slices.Concat(t.known, token.Certificates()),
		At:            token.Info.Time,
		Usage:         []x509gost.OID{x509gost.UsageTimeStamping},
	})
	if err != nil {
		return nil, fmt.Errorf("the certificate of the time-stamping authority is not trusted: %w", err)
	}
	return verdict.Chain, nil
}

// checkPath refuses a path with a revoked certificate. Unless the status is required, it
// is requested only briefly: a responder that is down must not invalidate a stamp that
// was already made.
func (s *Source) checkPath(ctx context.Context, path []*x509gost.Certificate) error {
	limited := ctx
	if !s.RequireStampRevocation {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, s.StatusTimeout)
		defer cancel()
	}
	for i, c := range path[:len(path)-1] {
		_, err := s.revocation(limited, c, path[i+1], time.Time{}, s.RequireStampRevocation)
		if err != nil && (s.RequireStampRevocation || errors.Is(err, chain.ErrRevoked)) {
			return fmt.Errorf("the certificate of the time-stamping authority: %w", err)
		}
	}
	return ctx.Err()
}

// parseOID parses the dotted form, which policy.TSPService.Check has checked.
func parseOID(text string) (oid x509gost.OID, err error) {
	for arc := range strings.SplitSeq(text, ".") {
		n, err := strconv.ParseUint(arc, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("the policy %.60q of the service is no object identifier", text)
		}
		oid = append(oid, int(n))
	}
	return oid, nil
}

// instant formats a time for messages.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999Z") }
