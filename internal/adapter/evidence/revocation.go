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
)

// maxAddressesAsked bounds how many responders and how many lists of one
// certificate are asked: whoever made the certificate chose their number.
const maxAddressesAsked = 4

// Revocation implements sig.Evidence: OCSP responders that the certificate names
// first, then its CRLs. Of what is kept, an answer serves when it is in force
// and, with a notBefore, when its thisUpdate is not before that (the moment of
// the download says nothing). A revoked certificate is an error that wraps
// chain.ErrRevoked and is no *sig.ErrEvidence; the proof comes with it.
//
// The certificate of a delegated OCSP responder is checked to be valid now;
// its own revocation is for whoever relies on the answer.
func (s *Source) Revocation(ctx context.Context, cert, issuer *x509gost.Certificate, notBefore time.Time) (sig.Proof, error) {
	if cert == nil || issuer == nil || !cert.Issuer.Equal(issuer.Subject) {
		return sig.Proof{}, errors.New("evidence: revocation: want a certificate and its issuer")
	}
	limited, cancel := context.WithTimeout(ctx, s.TotalTimeout+s.ListTimeout)
	defer cancel()
	proof, err := s.revocation(limited, cert, issuer, notBefore, true)
	return proof, ended(ctx, err)
}

// standing is what one answer says about one certificate.
type standing struct {
	proof      sig.Proof
	status     ocsp.Status
	revokedAt  time.Time
	reason     int
	thisUpdate time.Time
	nextUpdate time.Time // zero: there may be a newer one at any time
}

// serves tells whether an answer that was kept is still good.
func (a *standing) serves(now, notBefore time.Time) bool {
	if a.nextUpdate.IsZero() {
		return !notBefore.IsZero() && !a.thisUpdate.Before(notBefore)
	}
	return now.Before(a.nextUpdate) && !a.thisUpdate.Before(notBefore)
}

// way is one place that speaks of a certificate's revocation.
type way struct {
	address string
	ask     func(ctx context.Context, address string, cert, issuer *x509gost.Certificate, notBefore time.Time) (*standing, error)
}

// revocation is Revocation; an impatient caller passes over those who are
// known to be down.
func (s *Source) revocation(ctx context.Context, cert, issuer *x509gost.Certificate, notBefore time.Time, patient bool) (sig.Proof, error) {
	if a, ok := s.answers.get(statusKey(cert, issuer)).(*standing); ok && a.serves(s.Now(), notBefore) {
		s.observe(Event{Kind: statusKind.name, Outcome: "cached"})
		return conclude(cert, a)
	}
	var ways, resting []way
	for _, list := range []struct {
		addresses []string
		ask       func(context.Context, string, *x509gost.Certificate, *x509gost.Certificate, time.Time) (*standing, error)
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
	return sig.Proof{}, unavailable(whatRevocation, "nobody could say whether "+describe(cert)+" is revoked", failed)
}

// conclude turns a definite answer into what Revocation returns.
func conclude(cert *x509gost.Certificate, a *standing) (sig.Proof, error) {
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

// fingerprint names octets in a key of the cache.
func fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return string(sum[:])
}

func statusKey(cert, issuer *x509gost.Certificate) string {
	return "ocsp" + fingerprint(cert.Raw) + fingerprint(issuer.Raw)
}

// once runs fn for all who ask for the same thing at the same time. It goes on
// when a caller gives up, since others may wait and the answer is kept; timeout
// bounds it.
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

// twice runs fn, and once more after a pause when there was an outage. It keeps
// the books of the address's health.
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

// older says that an answer is older than asked for.
func older(what string, thisUpdate, nextUpdate, notBefore time.Time) error {
	due := "and it does not say when there will be a newer one"
	if !nextUpdate.IsZero() {
		due = "the next one is due at " + instant(nextUpdate)
	}
	return fmt.Errorf("%s is of %s, older than %s as is needed; %s", what, instant(thisUpdate), instant(notBefore), due)
}
