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

// maxPeerChain is how many certificates of a handshake are looked at.
const maxPeerChain = 10

// Peers judges the certificates that clients prove in a TLS handshake. Whoever
// terminated the handshake vouches for the proof and for nothing else: path,
// validity, usage and revocation are judged here, at each call, by our own code.
type Peers struct {
	// Own makes certificates of the built-in authority count; nil: they do not.
	Own *Service
	// Roots are trusted to certify clients, Intermediates help to get to them.
	Roots, Intermediates []*x509gost.Certificate
	// Lists reads the current revocation lists of these authorities. A certificate
	// that no list covers is refused.
	Lists func(ctx context.Context) ([]*x509gost.RevocationList, error)
	Now   func() time.Time
}

// Judge says whether the first of the certificates (DER) may identify its owner
// now; the others may lie on its path. The error says why not, for the log: a
// stranger does not learn it.
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
		roots, err := p.Own.Roots(ctx)
		if err != nil {
			return err
		}
		issuing, err := p.Own.Issuing(ctx)
		if err != nil {
			return err
		}
		lists, err := p.Own.CRLs(ctx)
		if err != nil {
			return err
		}
		o.Roots, o.Intermediates, o.CRLs = append(o.Roots, roots...), append(o.Intermediates, issuing...), append(o.CRLs, lists...)
	}
	if _, err := chain.Build(leaf, o); err != nil {
		return fmt.Errorf("authority: a client's certificate: %w", err)
	}
	return nil
}
