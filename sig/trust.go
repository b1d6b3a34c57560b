// SPDX-License-Identifier: Apache-2.0

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
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
	"tamga/sig/budget"
)

// SuiteOf returns the suite that a certificate's key signs with. It returns an error if the key
// is not supported.
func SuiteOf(c *x509gost.Certificate) (*suite.Suite, error) {
	switch {
	case c == nil:
		return nil, errors.New("certificate: no certificate given")
	case c.Suite == nil:
		return nil, fmt.Errorf("certificate: its key is not supported: %w", c.KeyError)
	}
	return c.Suite, nil
}

// Found is the evidence that a signed document includes for its own check.
type Found struct {
	Certificates []*x509gost.Certificate
	CRLs         []*x509gost.RevocationList
	OCSP         []*ocsp.Basic
}

// codeUnavailable is the code of the finding that evidence was requested and not received.
const codeUnavailable = certificateCode + "evidence-unavailable"

// maxAsked limits the calls of Evidence for the path of one certificate.
const maxAsked = 10

// Trust checks a signer's certificate for a time, with the anchors and the evidence of the check
// and those in the signed document. If c.Evidence is set, Trust requests from it what is missing.
// It returns the path, leaf first, or an empty one if there is none. All formats use it.
func (c *Check) Trust(ctx context.Context, signer *x509gost.Certificate, at time.Time, found Found) ([]*x509gost.Certificate, []Finding) {
	path, findings := c.trust(ctx, signer, at, found, nil)
	// RFC 5280, 4.2.1.3: a key with either bit may sign documents.
	if signer.HasKeyUsage && signer.KeyUsage&(x509.KeyUsageDigitalSignature|x509.KeyUsageContentCommitment) == 0 {
		findings = append(findings, Finding{
			Code: certificateCode + "usage", Indication: IndicationOf(certificateCode + "usage"),
			Text: "the certificate is not for signatures: keyUsage has neither digitalSignature nor nonRepudiation",
		})
	}
	return path, findings
}

// TrustAny is Trust for a certificate with any key usage.
func (c *Check) TrustAny(ctx context.Context, certificate *x509gost.Certificate, at time.Time) ([]*x509gost.Certificate, []Finding) {
	return c.trust(ctx, certificate, at, Found{}, nil)
}

// TrustTimeStamp is Trust for the certificate of a time-stamping authority, for the time in its
// token.
func (c *Check) TrustTimeStamp(ctx context.Context, authority *x509gost.Certificate, at time.Time, found Found) ([]*x509gost.Certificate, []Finding) {
	return c.trust(ctx, authority, at, found, []x509gost.OID{x509gost.UsageTimeStamping})
}

// JudgeStamp judges a time stamp whose own signature holds. Alone it is judged at its own time, but see LivingStamps. chained
// reports that it is an archive time stamp or that a valid one, or one that has lapsed, covers it: then it
// is judged at proven, the time at which it is proved to have existed, or the time of the check (decision
// 0063). lapsed reports that it was good when it was made and that nothing proves it now.
func (c *Check) JudgeStamp(ctx context.Context, kind string, token *tsp.Token, signer *x509gost.Certificate, found Found, proven time.Time, chained bool) (ts TimeStamp, lapsed bool) {
	made := token.Info.Time
	if !chained && !c.LivingStamps {
		return c.stampAt(ctx, kind, token, signer, found, made, c.At), false
	}
	if proven.Before(made) {
		proven = made
	}
	if ts = c.stampAt(ctx, kind, token, signer, found, proven, proven); ts.Passed() {
		return ts, false
	}
	return ts, c.StampWasGood(ctx, token, signer, found)
}

// StampWasGood reports whether a time stamp, whose own signature holds, was valid when it was made. Only such a
// one says anything about the time of another: a service without trust may write any time.
func (c *Check) StampWasGood(ctx context.Context, token *tsp.Token, signer *x509gost.Certificate, found Found) bool {
	made := token.Info.Time
	then := c.stampAt(ctx, "", token, signer, found, made, made)
	return then.Passed()
}

// DigestOfToken returns the Digest of a TimeStamp.
func DigestOfToken(token *tsp.Token) []byte { return suite.SHA256.Digest(token.Raw).Sum }

// stampAt judges the certificate of a time stamp at one time, and its algorithms at another.
func (c *Check) stampAt(ctx context.Context, kind string, token *tsp.Token, signer *x509gost.Certificate, found Found, at, forged time.Time) TimeStamp {
	ts := TimeStamp{Kind: kind, Digest: DigestOfToken(token), Time: token.Info.Time, Signer: signer}
	ts.Chain, ts.Findings = c.TrustTimeStamp(ctx, signer, at, found)
	ts.Findings = append(ts.Findings, StampOtherIssuer(token, signer)...)
	if f, weak := WeakStamp(token.Weakness(signer, forged, c.Ends)); weak {
		ts.Findings = append(ts.Findings, f)
	}
	return ts
}

// spending charges the search for a path to the budget of the document.
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
		Ends:          c.Ends,

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
		path = nil // verdict.Chain is incomplete or invalid
	}
	findings := make([]Finding, 0, len(verdict.Findings)+1)
	for _, f := range verdict.Findings {
		one := Finding{Code: certificateCode + f.Code, Text: f.Text, Certificate: f.Certificate, When: f.When}
		switch {
		case f.Fatal:
			one.Indication = IndicationOf(one.Code)
		case f.Code == chain.CodeRevocationUnknown:
			one.Headline = "revocation not checked"
		}
		findings = append(findings, one)
	}
	return path, append(findings, asked...)
}

// askIssuers fetches the missing issuers of an incomplete path.
func (c *Check) askIssuers(ctx context.Context, v *chain.Result, o *chain.Options) []Finding {
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

// askRevocation fetches the missing revocation data of a path.
func (c *Check) askRevocation(ctx context.Context, v *chain.Result, o *chain.Options) (asked []Finding) {
	for i := range min(len(v.Evidence), len(v.Chain)-1) {
		if !v.Evidence[i].ThisUpdate.IsZero() {
			continue
		}
		// Evidence of a revocation may come together with an error.
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
