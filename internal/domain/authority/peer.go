// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"tamga/pki/chain"
	"tamga/pki/x509gost"
)

// usageClientAuth is id-kp-clientAuth (RFC 5280, 4.2.1.12).
var usageClientAuth = x509gost.OID{1, 3, 6, 1, 5, 5, 7, 3, 2}

// maxPeerChain is the most certificates of a handshake.
const maxPeerChain = 10

// Peers checks the certificates of clients in TLS handshakes. The TLS server has proved
// that the client has the private key, and nothing else: Peers checks path, validity,
// usage and revocation on each call.
type Peers struct {
	// Own accepts certificates of the built-in authority; nil: they are refused.
	Own *Service
	// Roots are trusted to certify clients. Intermediates help to build paths to Roots.
	Roots, Intermediates []*x509gost.Certificate
	// Lists reads the current revocation lists of these authorities. A certificate that
	// is covered by no list is refused.
	Lists func(ctx context.Context) ([]*x509gost.RevocationList, error)
	Now   func() time.Time
}

// Judge returns nil when the first of the certificates (DER) may identify its owner now.
// The others may be part of its path. The error is for the log: the client must not see
// it.
func (p *Peers) Judge(ctx context.Context, certificates [][]byte) error {
	if len(certificates) == 0 || len(certificates) > maxPeerChain {
		return fmt.Errorf("authority: a client's certificates: want 1 to %d, got %d", maxPeerChain, len(certificates))
	}
	var path []*x509gost.Certificate
	for _, der := range certificates {
		c, err := x509gost.ParseCertificate(der)
		if err != nil {
			return fmt.Errorf("authority: a client's certificate: %w", err)
		}
		path = append(path, c)
	}
	leaf := path[0]
	switch {
	case leaf.PublicKey == nil:
		return fmt.Errorf("authority: a client's certificate: %w", leaf.KeyError)
	case leaf.IsCA:
		return errors.New("authority: a client's certificate: it is an authority's")
	case leaf.HasKeyUsage && leaf.KeyUsage&x509.KeyUsageDigitalSignature == 0:
		return errors.New("authority: a client's certificate: its key is not for digital signatures (keyUsage)")
	}
	o := chain.Options{
		Roots: slices.Clone(p.Roots), Intermediates: slices.Concat(p.Intermediates, path[1:]),
		At: p.Now(), Usage: []x509gost.OID{usageClientAuth}, RequireRevocation: true,
	}
	if p.Lists != nil {
		lists, err := p.Lists(ctx)
		if err != nil {
			return err
		}
		o.CRLs = slices.Clone(lists)
	}
	if p.Own != nil {
		anchors, issuing, err := p.Own.Trusted(ctx)
		if err != nil {
			return err
		}
		lists, err := p.Own.CRLs(ctx)
		if err != nil {
			return err
		}
		o.Roots, o.Intermediates, o.CRLs = append(o.Roots, anchors...), append(o.Intermediates, issuing...), append(o.CRLs, lists...)
	}
	if _, err := chain.Build(leaf, o); err != nil {
		return fmt.Errorf("authority: a client's certificate: %w", err)
	}
	return nil
}
