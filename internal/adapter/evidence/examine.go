// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"fmt"
	"time"

	"tamga/internal/domain/policy"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
)

// Examination is the result of testing a service with one stamp.
type Examination struct {
	Took   time.Duration
	Size   int                     // bytes of the token; 0 if there is none
	Info   *tsp.Info               // nil if there is no token
	Off    time.Duration           // difference of the token's time from our clock
	Path   []*x509gost.Certificate // of the authority, the anchor last; as far as it could be built
	Checks []Check                 // in the order of the checks
}

// Check is one check of an Examination.
type Check struct {
	Name string // connection, answer, signature, clock, trust, revocation
	Err  error  // nil: passed
}

// Good reports whether such a stamp would be accepted.
func (e *Examination) Good() bool {
	for _, c := range e.Checks {
		if c.Err != nil {
			return false
		}
	}
	return true
}

// Examine requests one stamp over a digest from a service, registered or not. It makes
// all checks, while TimeStamp stops at the first failure. An unknown revocation status of
// the authority is a failure here.
func (s *Source) Examine(ctx context.Context, t policy.TSPService, d suite.Digest) (*Examination, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	trusted, err := s.trust(ctx)
	if err != nil {
		return nil, err
	}
	e := &Examination{}
	check := func(name string, err error) bool {
		e.Checks = append(e.Checks, Check{name, err})
		return err == nil
	}
	start := s.Now()
	token, request, err := s.ask(ctx, service{TSPService: t, registered: true}, d, false)
	e.Took = s.Now().Sub(start)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		if detail := detailOf(err); detail != "" {
			err = fmt.Errorf("%w: %s", err, detail)
		}
		check("connection", err)
		return e, nil
	}
	check("connection", nil)
	e.Size, e.Info, e.Off = len(token.Raw), &token.Info, token.Info.Time.Sub(s.Now())
	check("answer", token.Answers(request))
	signer, err := token.CheckSignature(nil)
	signed := check("signature", err)
	check("clock", s.checkClock(token))
	if !signed {
		return e, nil
	}
	e.Path = []*x509gost.Certificate{signer}
	path, err := s.path(trusted, token, signer)
	if !check("trust", err) {
		return e, nil
	}
	e.Path = path
	for i, c := range path[:len(path)-1] {
		if _, err = s.Revocation(ctx, c, path[i+1], time.Time{}); err != nil {
			break
		}
	}
	check("revocation", err)
	return e, ctx.Err()
}
