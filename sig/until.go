// SPDX-License-Identifier: Apache-2.0

package sig

import (
	"slices"
	"time"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Ending is what ends first of what a signature depends on.
type Ending string

// The endings.
const (
	EndOfSigner    Ending = "signer"     // a certificate on the path of the signer, without a proof that the signature is older
	EndOfEvidence  Ending = "evidence"   // the same; the signature has a proof of time, but not the evidence that the certificate was not revoked
	EndOfStamp     Ending = "time-stamp" // a certificate on the path of the time stamp that proves most
	EndOfAlgorithm Ending = "algorithm"  // an algorithm of one of these, by a setting
)

// Horizon says until when a signature can be verified with what it holds. After that something is missing: an archive time
// stamp that was made before.
type Horizon struct {
	Until time.Time
	By    Ending
	// Certificate is the one that ends, and Algorithm the algorithm, "" if it is not an algorithm.
	Certificate *x509gost.Certificate
	Algorithm   string
}

// selfContained are the levels with complete evidence about the signer.
var selfContained = []string{"LT", "X-L", "XLT1", "A", "LTA"}

// GoodUntil returns until when the signature can be verified, by the strict rule that a time stamp proves nothing after its
// own certificate has ended. It returns false for a signature that has not passed. c is the check that it is the result of.
func (s *Signature) GoodUntil(c *Check) (h Horizon, ok bool) {
	if s.Own() != Passed || len(s.Chain) == 0 {
		return h, false
	}
	signer := horizonOf(s.Chain, s.Scheme, EndOfSigner, c.Ends)
	for _, ts := range slices.Concat(s.TimeStamps, s.Proofs) {
		if !ts.Proves() {
			continue
		}
		if one := horizonOf(ts.Chain, nil, EndOfStamp, c.Ends); !ok || one.Until.After(h.Until) {
			h, ok = one, true
		}
	}
	switch {
	case !ok || s.IsStamp():
		return signer, true
	case !slices.Contains(selfContained, s.Level) && signer.Until.Before(h.Until) && signer.Until.After(c.At):
		if signer.By == EndOfSigner {
			signer.By = EndOfEvidence
		}
		return signer, true
	}
	return h, true
}

// horizonOf returns what ends first on a path.
func horizonOf(path []*x509gost.Certificate, scheme *suite.Scheme, by Ending, ends suite.Ends) (h Horizon) {
	algorithm := func(of *x509gost.Certificate, w suite.Weakness) {
		if !w.Since.IsZero() && w.Since.Before(h.Until) {
			h = Horizon{w.Since, EndOfAlgorithm, of, w.What}
		}
	}
	for i, c := range path {
		if i == 0 || c.NotAfter.Before(h.Until) {
			h = Horizon{Until: c.NotAfter, By: by, Certificate: c}
		}
	}
	for i, c := range path {
		algorithm(c, ends.Key(c.Key()))
		if i == len(path)-1 {
			break // an anchor is trusted by decision
		}
		if signed, err := c.Scheme(); err == nil {
			algorithm(c, ends.Scheme(signed))
		}
	}
	if scheme != nil {
		algorithm(path[0], ends.Scheme(scheme))
	}
	return h
}
