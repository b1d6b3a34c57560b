package sig

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"tamga/pki/chain"
	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig/budget"
)

// SuiteOf returns the suite a certificate's key signs with, or an error when the
// key is of a kind this program does not have.
func SuiteOf(c *x509gost.Certificate) (*suite.Suite, error) {
	switch {
	case c == nil:
		return nil, errors.New("certificate: none is given")
	case c.Suite == nil:
		return nil, fmt.Errorf("certificate: its key is not supported: %w", c.KeyError)
	}
	return c.Suite, nil
}

// Found is what a signed document brought along for its own judgement.
type Found struct {
	Certificates []*x509gost.Certificate
	CRLs         []*x509gost.RevocationList
	OCSP         []*ocsp.Basic
}

// codeUnavailable is the finding that evidence was asked for and not had.
const codeUnavailable = certificateCode + "evidence-unavailable"

// maxAsked bounds how often Evidence is asked for the path of one certificate.
const maxAsked = 10

// Trust judges a signer's certificate at a moment, by the anchors and the evidence
// of the check together with what the signed document brought along; what lacks is
// asked of c.Evidence when there is one. It returns the path, leaf first, empty
// when there is none. All formats judge by it.
func (c *Check) Trust(ctx context.Context, signer *x509gost.Certificate, at time.Time, found Found) ([]*x509gost.Certificate, []Finding) {
	path, findings := c.trust(ctx, signer, at, found, nil)
	// RFC 5280, 4.2.1.3: a key may sign documents by either bit.
	if signer.HasKeyUsage && signer.KeyUsage&(x509.KeyUsageDigitalSignature|x509.KeyUsageContentCommitment) == 0 {
		findings = append(findings, Finding{
			Code: certificateCode + "usage", Indication: ChainConstraintsFailure,
			Text: "the certificate is not for signatures: keyUsage has neither digitalSignature nor nonRepudiation",
		})
	}
	return path, findings
}

// TrustAny is Trust for a certificate whatever its key is for.
func (c *Check) TrustAny(ctx context.Context, certificate *x509gost.Certificate, at time.Time) ([]*x509gost.Certificate, []Finding) {
	return c.trust(ctx, certificate, at, Found{}, nil)
}

// TrustTimeStamp is Trust for the certificate of a time-stamping authority at the
// time its token says.
func (c *Check) TrustTimeStamp(ctx context.Context, authority *x509gost.Certificate, at time.Time, found Found) ([]*x509gost.Certificate, []Finding) {
	return c.trust(ctx, authority, at, found, []x509gost.OID{x509gost.UsageTimeStamping})
}

// spending charges what the search for a path does to the budget of the document.
func spending(ctx context.Context) func(signatures, comparisons int) error {
	_, b := budget.Of(ctx, 0)
	return func(signatures, comparisons int) error {
		return b.Spend(budget.Signature*int64(signatures) + 10*int64(comparisons))
	}
}

func (c *Check) trust(ctx context.Context, leaf *x509gost.Certificate, at time.Time, found Found, usage []x509gost.OID) ([]*x509gost.Certificate, []Finding) {
	o := chain.Options{
		Roots:         c.Roots,
		Intermediates: slices.Concat(c.Intermediates, found.Certificates),
		CRLs:          slices.Concat(c.CRLs, found.CRLs),
		OCSP:          slices.Concat(c.OCSP, found.OCSP),
		At:            at,
		Usage:         usage,

		RequireRevocation: c.RequireRevocation,
		Spend:             spending(ctx),
	}
	verdict, err := chain.Build(leaf, o)
	var asked []Finding
	if c.Evidence != nil {
		if errors.Is(err, chain.ErrNoPath) {
			asked = append(asked, c.askIssuers(ctx, verdict, &o)...)
			verdict, err = chain.Build(leaf, o)
		}
		if !errors.Is(err, chain.ErrNoPath) && !errors.Is(err, chain.ErrSignature) && !errors.Is(err, chain.ErrUnsupported) && !errors.Is(err, chain.ErrRevoked) {
			asked = append(asked, c.askRevocation(ctx, verdict, &o)...)
			verdict, err = chain.Build(leaf, o)
		}
	}
	path := verdict.Chain
	if errors.Is(err, chain.ErrNoPath) || errors.Is(err, chain.ErrSignature) || errors.Is(err, chain.ErrUnsupported) {
		path = nil // the verdict holds how far the search got
	}
	findings := make([]Finding, 0, len(verdict.Findings)+1)
	for _, f := range verdict.Findings {
		one := Finding{Code: certificateCode + f.Code, Text: f.Text}
		switch {
		case f.Fatal:
			one.Indication = ofChain(f.Code)
		case f.Code == chain.CodeRevocationUnknown:
			one.Headline = "revocation not checked"
		}
		findings = append(findings, one)
	}
	return path, append(findings, asked...)
}

// chainIndications are the sub-indications of fatal findings of package chain
// (EN 319 102-1, 5.2.6).
var chainIndications = map[string]Indication{
	chain.CodeExpired:           OutOfBoundsNoPOE,
	chain.CodeNotYetValid:       NotYetValid,
	chain.CodeRevoked:           Revoked,
	chain.CodeNoPath:            NoCertificateChainFound,
	chain.CodeSignature:         CertificateChainGeneralFailure,
	chain.CodeRevocationUnknown: TryLater,
	chain.CodeUnsupported:       CryptoConstraintsFailure,
	chain.CodeWeak:              CryptoConstraintsFailureNoPOE,
}

// ofChain returns the sub-indication of a fatal finding of package chain. The codes
// that are not listed say that a certificate may not be used this way.
func ofChain(code string) Indication {
	if i, ok := chainIndications[code]; ok {
		return i
	}
	return ChainConstraintsFailure
}

// askIssuers fetches what lacks of a path that has no end.
func (c *Check) askIssuers(ctx context.Context, v *chain.Verdict, o *chain.Options) []Finding {
	if len(v.Chain) == 0 {
		return nil
	}
	last := v.Chain[len(v.Chain)-1]
	for range maxAsked {
		if last.IsSelfIssued() {
			return nil
		}
		issuer, err := c.Evidence.Issuer(ctx, last)
		if err != nil {
			return []Finding{{Code: codeUnavailable, Text: err.Error()}}
		}
		o.Intermediates = append(o.Intermediates, issuer)
		last = issuer
	}
	return nil
}

// askRevocation fetches what lacks about the revocation of a path.
func (c *Check) askRevocation(ctx context.Context, v *chain.Verdict, o *chain.Options) (asked []Finding) {
	for i := range min(len(v.Evidence), len(v.Chain)-1) {
		if !v.Evidence[i].ThisUpdate.IsZero() {
			continue
		}
		// What says that the certificate is revoked may come beside an error.
		p, err := c.Evidence.Revocation(ctx, v.Chain[i], v.Chain[i+1], time.Time{})
		if p.OCSP != nil {
			var b *ocsp.Basic
			if b, err = ocsp.ParseBasic(p.OCSP); err == nil {
				o.OCSP = append(o.OCSP, b)
			}
		} else if p.CRL != nil {
			var l *x509gost.RevocationList
			if l, err = x509gost.ParseRevocationList(p.CRL); err == nil {
				o.CRLs = append(o.CRLs, l)
			}
		}
		if err != nil {
			asked = append(asked, Finding{Code: codeUnavailable, Text: err.Error()})
		}
	}
	return asked
}
