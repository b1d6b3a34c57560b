// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"tamga/pki/ocsp"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// ocspNonceSize is the length of a nonce in bytes, as RFC 9654, 2.1, requires of
// requests.
const ocspNonceSize = 32

// parsedAnswer is the memory of a parsed answer as a multiple of its bytes.
const parsedAnswer = 6

// maxWaits limits how often a slightly too old answer is requested again.
const maxWaits = 2

// askResponder asks an OCSP responder once for all concurrent requests about the same
// certificate. If the answer is slightly older than notBefore, it waits for a newer one:
// times in answers are whole seconds, so an answer made just after a time stamp may have
// an earlier time.
func (s *Source) askResponder(ctx context.Context, address string, cert, issuer *x509gost.Certificate, notBefore time.Time) (*certStatus, error) {
	key := statusKey(cert, issuer)
	for waits := 0; ; waits++ {
		v, err := s.once(ctx, key+address, 2*s.StatusTimeout+s.Pause, func(ctx context.Context) (any, error) {
			var a *certStatus
			err := s.twice(ctx, address, func() (err error) {
				a, err = s.queryResponder(ctx, address, cert, issuer)
				return err
			})
			if err == nil && a.status != ocsp.Unknown {
				s.answers.put(key, a, int64(parsedAnswer*len(a.proof.OCSP)))
			}
			return a, err
		})
		if err != nil {
			return nil, err
		}
		a := v.(*certStatus)
		if !a.thisUpdate.Before(notBefore) {
			return a, nil
		}
		wait := ceilSecond(notBefore).Sub(a.thisUpdate)
		if waits == maxWaits || wait > s.FreshWait {
			return nil, older("its answer", a.thisUpdate, a.nextUpdate, notBefore)
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
		// Another request that waited may have the answer already.
		if a, ok := s.answers.get(key).(*certStatus); ok && a.serves(s.Now(), notBefore) {
			return a, nil
		}
	}
}

func ceilSecond(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); !whole.Equal(t) {
		return whole.Add(time.Second)
	}
	return t
}

// queryResponder sends one OCSP request and checks the answer.
func (s *Source) queryResponder(ctx context.Context, address string, cert, issuer *x509gost.Certificate) (*certStatus, error) {
	u, err := s.guard.Parse(address)
	if err != nil {
		return nil, err
	}
	nonce, err := s.random(ocspNonceSize)
	if err != nil {
		return nil, err
	}
	body, err := ocsp.CreateRequest(cert, issuer, s.OCSPHash, nonce)
	if err != nil {
		return nil, err
	}
	der, err := s.fetch(ctx, order{kind: statusKind, url: u, body: body, timeout: s.StatusTimeout})
	if err != nil {
		return nil, err
	}
	response, err := ocsp.Parse(der)
	if err != nil {
		return nil, err
	}
	switch response.Status {
	case ocsp.Successful:
		return s.readStatus(response.Basic, cert, issuer, nonce)
	case ocsp.TryLater, ocsp.InternalError:
		return nil, outagef("it is in trouble (OCSP status %d)", response.Status)
	}
	return nil, fmt.Errorf("it refuses to answer (OCSP status %d)", response.Status)
}

// readStatus checks an answer and returns its status of cert.
func (s *Source) readStatus(b *ocsp.Basic, cert, issuer *x509gost.Certificate, nonce []byte) (*certStatus, error) {
	now := s.Now()
	latest := now.Add(s.ClockTolerance)
	single, found := b.Find(cert, issuer)
	switch {
	case b.Nonce != nil && !bytes.Equal(b.Nonce, nonce):
		return nil, errors.New("the answer is to another request: its nonce is not ours")
	case b.Nonce == nil && s.RequireOCSPNonce:
		return nil, errors.New("the answer has no nonce, which this installation asks for")
	case len(b.UnknownCritical) > 0 || len(single.UnknownCritical) > 0:
		return nil, errors.New("the answer has critical extensions that are not understood here")
	case !found:
		return nil, errors.New("the answer does not speak of the certificate")
	case b.ProducedAt.After(latest) || single.ThisUpdate.After(latest):
		return nil, fmt.Errorf("the answer is of %s, which is in the future", instant(single.ThisUpdate))
	case !single.NextUpdate.IsZero() && !now.Before(single.NextUpdate):
		return nil, fmt.Errorf("the answer is out of date: a newer one was due at %s", instant(single.NextUpdate))
	}
	if b.Nonce == nil && single.NextUpdate.IsZero() && now.Sub(single.ThisUpdate) > s.ClockTolerance {
		// Neither bound to this request nor to a period: it may be a replay.
		return nil, fmt.Errorf("the answer is of %s, and neither our nonce nor a nextUpdate shows that it is still good", instant(single.ThisUpdate))
	}
	b, err := ocsp.ParseBasic(bytes.Clone(b.Raw)) // without keeping the request's buffer in memory
	if err != nil {
		return nil, err
	}
	verified, err := b.Verify(issuer)
	if err != nil {
		return nil, err
	}
	responder := verified.Responder()
	if now.Before(responder.NotBefore) || now.After(responder.NotAfter) {
		return nil, fmt.Errorf("the responder's %s is not valid now", describe(responder))
	}
	return &certStatus{
		proof:      sig.Proof{OCSP: b.Raw, Answer: verified},
		status:     single.Status,
		revokedAt:  single.RevokedAt,
		reason:     single.Reason,
		thisUpdate: single.ThisUpdate,
		nextUpdate: single.NextUpdate,
	}, nil
}
