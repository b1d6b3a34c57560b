// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"bytes"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Limits of a search. The sender of a message chooses its certificates. Many with one name, or
// cross-certificates, must not cost more than this.
const (
	maxDepth      = 10   // certificates of a path
	maxSignatures = 100  // checked signatures of certificates, lists and answers
	maxSteps      = 1000 // certificates added to a path
)

// search walks from the leaf upwards, depth first, and keeps the best path.
type search struct {
	Options
	checked    map[link]error                 // signatures checked so far
	responders map[link]*x509gost.Certificate // signers of OCSP answers
	steps      int
	exhausted  bool
	best       *Result // complete path with the fewest fatal findings
	bestFatal  int
	furthest   []*x509gost.Certificate // longest path without an anchor
	mismatches []Finding               // signatures that did not match
}

// link is a certificate, a list or an OCSP answer, and the certificate whose key should have
// signed it. For an answer that is the issuer, which may have certified a responder.
type link struct {
	signed signedBy
	issuer *x509gost.Certificate
}

// signedBy is the common interface of certificates, revocation lists and OCSP answers.
type signedBy interface {
	CheckSignatureFrom(*x509gost.Certificate) error
}

func newSearch(o Options) *search {
	return &search{Options: o, checked: make(map[link]error), responders: make(map[link]*x509gost.Certificate)}
}

// Work returns the cost of checking a signature by the key of a certificate, as a number of ordinary
// signatures. For RSA the time grows with the square of the modulus. Work is 1 for all other keys and
// for RSA of up to 2048 bits.
func Work(c *x509gost.Certificate) int {
	if c == nil {
		return 1
	}
	if key, ok := c.PublicKey.(*rsa.PublicKey); ok && key.N != nil {
		times := (key.N.BitLen() + 2047) / 2048
		return max(1, times*times)
	}
	return 1
}

// digested returns the number of signed bytes. For an OCSP answer it is the length of the
// whole answer.
func digested(signed signedBy) int {
	switch x := signed.(type) {
	case *x509gost.Certificate:
		return len(x.RawTBS)
	case *x509gost.RevocationList:
		return len(x.RawTBS)
	case signedAnswer:
		return len(x.Raw)
	}
	return 0
}

// spend returns an error if the search must stop.
func (s *search) spend(signatures, comparisons int) error {
	if s.Spend == nil {
		return nil
	}
	return s.Spend(signatures, comparisons)
}

// errBudget is the result for a signature that was not checked.
var errBudget = fmt.Errorf("not checked: the limit of %d signatures is reached", maxSignatures)

func (s *search) checkSignature(signed signedBy, issuer *x509gost.Certificate) error {
	l := link{signed, issuer}
	err, known := s.checked[l]
	if known {
		return err
	}
	if len(s.checked) == maxSignatures || s.spend(Work(issuer), digested(signed)/16) != nil {
		s.exhausted = true
		return errBudget
	}
	if a, ok := signed.(signedAnswer); ok {
		s.responders[l], err = a.Responder(issuer)
	} else {
		err = signed.CheckSignatureFrom(issuer)
	}
	s.checked[l] = err
	return err
}

// extend tries every way to extend path and reports whether the search is over.
func (s *search) extend(path []*x509gost.Certificate) (done bool) {
	last := path[len(path)-1]
	if s.steps++; s.steps > maxSteps || s.spend(0, len(s.Roots)+len(s.Intermediates)) != nil {
		s.exhausted = true
		return true
	}
	if slices.ContainsFunc(s.Roots, last.Equal) {
		return s.complete(path)
	}
	if len(path) > len(s.furthest) {
		s.furthest = slices.Clone(path)
	}
	if len(path) == maxDepth {
		return false
	}
	for _, issuer := range s.candidates(path) {
		if err := s.checkSignature(last, issuer); err != nil {
			s.mismatch(last, issuer, err)
			continue
		}
		if s.extend(append(path[:len(path):len(path)], issuer)) {
			return true
		}
	}
	return false
}

// complete checks a path that ends at an anchor. The first path without fatal findings ends
// the search.
func (s *search) complete(path []*x509gost.Certificate) (done bool) {
	v := &Result{Chain: slices.Clone(path)}
	v.Findings, v.Evidence = s.judge(path)
	fatal := 0
	for _, f := range v.Findings {
		if f.Fatal {
			fatal++
		}
	}
	if s.best == nil || fatal < s.bestFatal {
		s.best, s.bestFatal = v, fatal
	}
	return fatal == 0
}

// candidates returns the certificates whose subject is the issuer of the last certificate of
// the path. Those with a fitting key identifier come first, then anchors before others. Key
// identifiers are hints only and never exclude a certificate.
func (s *search) candidates(path []*x509gost.Certificate) []*x509gost.Certificate {
	last := path[len(path)-1]
	var likely, others []*x509gost.Certificate
	for _, list := range [][]*x509gost.Certificate{s.Roots, s.Intermediates} {
		for _, c := range list {
			if !c.Subject.Equal(last.Issuer) || slices.ContainsFunc(path, func(p *x509gost.Certificate) bool { return sameHolder(p, c) }) {
				continue
			}
			if len(last.AuthorityKeyID) > 0 && bytes.Equal(last.AuthorityKeyID, c.SubjectKeyID) {
				likely = append(likely, c)
			} else {
				others = append(others, c)
			}
		}
	}
	return append(likely, others...)
}

// sameHolder reports whether two certificates have the same name and key. A path with two such
// certificates is a circle.
func sameHolder(a, b *x509gost.Certificate) bool {
	return bytes.Equal(a.RawSPKI, b.RawSPKI) && a.Subject.Equal(b.Subject)
}

func (s *search) mismatch(c, issuer *x509gost.Certificate, err error) {
	if len(s.mismatches) == maxSignatures {
		return
	}
	f := Finding{
		Code: CodeSignature, Certificate: c,
		Text: fmt.Sprintf("%s is not signed by the key of %s: %v", describe(c), describe(issuer), err),
	}
	if errors.Is(err, suite.ErrUnsupported) {
		f.Code = CodeUnsupported
		f.Text = fmt.Sprintf("whether %s is signed by the key of %s cannot be checked: %v", describe(c), describe(issuer), err)
	}
	s.mismatches = append(s.mismatches, f)
}

// noPath returns the result of a search that reached no anchor.
func (s *search) noPath(leaf *x509gost.Certificate) *Result {
	v := &Result{Chain: s.furthest}
	end := leaf
	if len(v.Chain) > 0 {
		end = v.Chain[len(v.Chain)-1]
	}
	reason := Finding{Code: CodeNoPath, Certificate: end, Fatal: true}
	// If there were issuers by name where the path ends and none of them signed the
	// certificate, the reason is the wrong signature.
	for _, m := range s.mismatches {
		if m.Certificate == end {
			m.Fatal = true
			v.Findings = append(v.Findings, m)
		}
	}
	switch {
	case s.exhausted:
		reason.Text = fmt.Sprintf("the search for a path ended after %d steps and %d signatures", s.steps, len(s.checked))
	case len(v.Chain) == maxDepth:
		reason.Text = fmt.Sprintf("no trust anchor within %d certificates", maxDepth)
	case len(v.Findings) > 0:
	case end.IsSelfIssued():
		reason.Text = fmt.Sprintf("%s issued itself and is not a trust anchor", describe(end))
	default:
		reason.Text = fmt.Sprintf("the issuer of %s, %q, is not among the available certificates", describe(end), end.Issuer)
	}
	if reason.Text != "" {
		v.Findings = append(v.Findings, reason)
	}
	// A key that can be forged is the more important reason, wherever the path ends.
	var weak findings
	for i, c := range v.Chain {
		weak.strength(c, i == len(v.Chain)-1, s.Options)
	}
	v.Findings = append(v.Findings, weak...)
	return v
}

// describe names a certificate in texts for people.
func describe(c *x509gost.Certificate) string {
	name, ok := c.Subject.Get(x509gost.OIDCommonName)
	if !ok {
		name = c.Subject.String()
	}
	return fmt.Sprintf("certificate %q (serial %s)", name, c.SerialHex())
}
