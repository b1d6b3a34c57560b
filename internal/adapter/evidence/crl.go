// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"tamga/pki/ocsp"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// relistPause is the minimum time between two downloads of a list that is too old for a
// caller: lists are large and appear rarely.
const relistPause = 30 * time.Second

// revokedEntrySize is the memory of one parsed entry of a list in bytes, with its place
// in the index and without its raw bytes.
const revokedEntrySize = 64

// heldList is a checked list with the time of its download.
type heldList struct {
	list    *x509gost.RevocationList
	fetched time.Time
}

// askList looks a certificate up in the CRL at an address. One download serves all
// requests about certificates of the issuer.
func (s *Source) askList(ctx context.Context, address string, cert, issuer *x509gost.Certificate, notBefore time.Time) (*certStatus, error) {
	key := "crl" + fingerprint(issuer.Raw) + address
	now := s.Now()
	held, _ := s.lists.get(key).(*heldList)
	tooOld := held != nil && held.list.ThisUpdate.Before(notBefore) && now.Sub(held.fetched) >= relistPause
	if held != nil && now.Before(held.list.NextUpdate) && !tooOld {
		s.observe(Event{Kind: listKind.name, Outcome: "cached"})
	} else {
		v, err := s.once(ctx, key, 2*s.ListTimeout+s.Pause, func(ctx context.Context) (any, error) {
			var list *x509gost.RevocationList
			err := s.twice(ctx, address, func() (err error) {
				list, err = s.downloadList(ctx, address, issuer)
				return err
			})
			if err != nil {
				return nil, err
			}
			h := &heldList{list, s.Now()}
			s.lists.put(key, h, int64(len(list.Raw)+len(list.Revoked)*revokedEntrySize))
			return h, nil
		})
		if err != nil {
			return nil, err
		}
		held = v.(*heldList)
	}
	list := held.list
	if list.ThisUpdate.Before(notBefore) {
		return nil, older("the revocation list", list.ThisUpdate, list.NextUpdate, notBefore)
	}
	if !list.Scope.Covers(cert) {
		return nil, errors.New("the revocation list does not speak of this certificate")
	}
	a := &certStatus{proof: sig.Proof{CRL: list.Raw}, thisUpdate: list.ThisUpdate, nextUpdate: list.NextUpdate}
	if entry, listed := list.Find(cert.SerialNumber); listed {
		a.status, a.revokedAt, a.reason = ocsp.Revoked, entry.At, entry.Reason
	}
	return a, nil
}

// downloadList fetches a list and checks everything that does not depend on the
// certificate of the request.
func (s *Source) downloadList(ctx context.Context, address string, issuer *x509gost.Certificate) (*x509gost.RevocationList, error) {
	u, err := s.guard.Parse(address)
	if err != nil {
		return nil, err
	}
	der, err := s.fetch(ctx, order{kind: listKind, url: u, timeout: s.ListTimeout})
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(der, []byte("-----BEGIN ")) { // not allowed by RFC 5280, 4.2.1.13, but such lists exist
		if block, _ := pem.Decode(der); block != nil && block.Type == "X509 CRL" {
			der = block.Bytes
		}
	}
	list, err := x509gost.ParseRevocationList(der)
	if err != nil {
		return nil, err
	}
	now := s.Now()
	switch {
	case !list.Issuer.Equal(issuer.Subject):
		return nil, fmt.Errorf("the revocation list is of %.200q, not of the issuer", list.Issuer)
	case len(list.UnknownCritical) > 0:
		return nil, fmt.Errorf("the revocation list has critical extensions that are not understood here: %v", list.UnknownCritical)
	case !list.Scope.Understood():
		return nil, errors.New("the revocation list is indirect, partial or of a form that is not understood here")
	case list.ThisUpdate.After(now.Add(s.ClockTolerance)):
		return nil, fmt.Errorf("the revocation list is of %s, which is in the future", instant(list.ThisUpdate))
	case list.NextUpdate.IsZero():
		return nil, errors.New("the revocation list does not say when the next one is due")
	case !now.Before(list.NextUpdate):
		return nil, fmt.Errorf("the revocation list is out of date: the next one was due at %s", instant(list.NextUpdate))
	case issuer.HasKeyUsage && issuer.KeyUsage&x509.KeyUsageCRLSign == 0:
		return nil, errors.New("the issuer's key is not for signing revocation lists (cRLSign)")
	}
	if err := list.CheckSignatureFrom(issuer); err != nil {
		return nil, err
	}
	return list, nil
}
