// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"tamga/pki/chain"
	"tamga/pki/ocsp"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
)

// maxAddressesAsked limits how many responders and how many lists of one certificate are
// asked, because the issuer of the certificate chose their number.
const maxAddressesAsked = 4

// Revocation implements sig.Evidence. It asks the OCSP responders in the certificate
// first, then its CRLs. A cached answer is used if it is in force and, with a notBefore,
// if its thisUpdate is not earlier. The time of the download does not matter. A revoked
// certificate causes an error that wraps chain.ErrRevoked and is not a *sig.ErrEvidence,
// and the proof is returned with it.
//
// The certificate of a delegated OCSP responder must be valid now. The caller must check
// its revocation.
func (s *Source) Revocation(ctx context.Context, cert, issuer *x509gost.Certificate, notBefore time.Time) (sig.Proof, error) {
	budget.Leave(ctx)
	if cert == nil || issuer == nil || !cert.Issuer.Equal(issuer.Subject) {
		return sig.Proof{}, errors.New("evidence: revocation: want a certificate and its issuer")
	}
	limited, cancel := context.WithTimeout(ctx, s.TotalTimeout+s.ListTimeout)
	defer cancel()
	proof, err := s.revocation(limited, cert, issuer, notBefore, true)
	return proof, ended(ctx, err)
}

// certStatus is the status of one certificate in one answer.
type certStatus struct {
	proof      sig.Proof
	status     ocsp.Status
	revokedAt  time.Time
	reason     int
	thisUpdate time.Time
	nextUpdate time.Time // zero: a newer one may exist at any time
}

// serves reports whether a cached answer is still valid.
func (a *certStatus) serves(now, notBefore time.Time) bool {
	if a.nextUpdate.IsZero() {
		return !notBefore.IsZero() && !a.thisUpdate.Before(notBefore)
	}
	return now.Before(a.nextUpdate) && !a.thisUpdate.Before(notBefore)
}

// way is one source for the revocation status of a certificate.
type way struct {
	address string
	ask     func(ctx context.Context, address string, cert, issuer *x509gost.Certificate, notBefore time.Time) (*certStatus, error)
}

// revocation implements Revocation. If patient is false, it skips addresses in back-off.
func (s *Source) revocation(ctx context.Context, cert, issuer *x509gost.Certificate, notBefore time.Time, patient bool) (sig.Proof, error) {
	if a, ok := s.answers.get(statusKey(cert, issuer)).(*certStatus); ok && a.serves(s.Now(), notBefore) {
		s.observe(Event{Kind: statusKind.name, Outcome: "cached"})
		return conclude(cert, a)
	}
	var ways, resting []way
	for _, list := range []struct {
		addresses []string
		ask       func(context.Context, string, *x509gost.Certificate, *x509gost.Certificate, time.Time) (*certStatus, error)
	}{{cert.OCSPServers, s.askResponder}, {cert.CRLDistributionPoints, s.askList}} {
		for _, address := range list.addresses[:min(len(list.addresses), maxAddressesAsked)] {
			w := way{address, list.ask}
			if s.hosts.resting(address, s.Now()) {
				resting = append(resting, w)
			} else {
				ways = append(ways, w)
			}
		}
	}
	if patient {
		ways = slices.Concat(ways, resting)
	}
	var failed []error
	for _, w := range ways {
		a, err := w.ask(ctx, w.address, cert, issuer, notBefore)
		if err == nil && a.status != ocsp.Unknown {
			return conclude(cert, a)
		}
		if err == nil {
			err = errors.New("it does not know the certificate")
		}
		failed = append(failed, fmt.Errorf("%s: %w", w.address, err))
		if ctx.Err() != nil {
			break
		}
	}
	if len(failed) == 0 {
		return sig.Proof{}, unavailable(whatRevocation, describe(cert)+" names neither an OCSP responder nor a revocation list that can be asked now", nil)
	}
	return sig.Proof{}, unavailable(whatRevocation, "no source could say whether "+describe(cert)+" is revoked", failed)
}

// conclude returns the results of Revocation for a definite answer.
func conclude(cert *x509gost.Certificate, a *certStatus) (sig.Proof, error) {
	if a.status == ocsp.Revoked {
		return a.proof, fmt.Errorf("revocation: %s was revoked at %s (reason %d): %w", describe(cert), instant(a.revokedAt), a.reason, chain.ErrRevoked)
	}
	return a.proof, nil
}

func describe(c *x509gost.Certificate) string {
	name := c.Subject.String()
	if cn, ok := c.Subject.Get(x509gost.OIDCommonName); ok {
		name = cn
	}
	return fmt.Sprintf("certificate %.200q (serial %s)", name, c.SerialHex())
}

// fingerprint returns the part of a cache key that identifies data.
func fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return string(sum[:])
}

func statusKey(cert, issuer *x509gost.Certificate) string {
	return "ocsp" + fingerprint(cert.Raw) + fingerprint(issuer.Raw)
}

// once runs fn for all concurrent requests with the same key. It continues when one
// caller cancels, because others may wait and the answer is cached. timeout limits it.
func (s *Source) once(ctx context.Context, key string, timeout time.Duration, fn func(ctx context.Context) (any, error)) (any, error) {
	done := s.flights.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(s.base, timeout)
		defer cancel()
		return fn(ctx)
	})
	select {
	case r := <-done:
		return r.Val, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// twice runs fn, and again after a pause if there was an outage. It records the back-off
// state of the address.
func (s *Source) twice(ctx context.Context, address string, fn func() error) error {
	for again := false; ; again = true {
		err := fn()
		if !isOutage(err) {
			s.hosts.answered(address)
			return err
		}
		s.hosts.failed(address, s.Now(), s.jitter)
		if again || sleep(ctx, s.jitter(s.Pause)) != nil {
			return err
		}
	}
}

// older returns the error for an answer that is older than requested.
func older(what string, thisUpdate, nextUpdate, notBefore time.Time) error {
	due := "and it does not say when there will be a newer one"
	if !nextUpdate.IsZero() {
		due = "the next one is due at " + instant(nextUpdate)
	}
	return fmt.Errorf("%s is of %s, older than %s as is needed; %s", what, instant(thisUpdate), instant(notBefore), due)
}
