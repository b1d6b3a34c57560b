// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// processed lists the extensions that this package processes. They may be critical.
// Alternative names need no check because nothing here looks for a name, and policies need
// none because every policy is accepted.
var processed = []x509gost.OID{
	x509gost.OIDBasicConstraints, x509gost.OIDKeyUsage, x509gost.OIDExtKeyUsage,
	x509gost.OIDSubjectKeyID, x509gost.OIDAuthorityKeyID, x509gost.OIDPrivateKeyUsage,
	x509gost.OIDSubjectAltName, x509gost.OIDPolicies, x509gost.OIDCRLPoints, x509gost.OIDInfoAccess,
	x509gost.OIDOCSPNoCheck,
}

// judge checks every certificate of a complete path, leaf first. The proofs say for each what
// decided about its revocation.
func (s *search) judge(path []*x509gost.Certificate) ([]Finding, []Proof) {
	var f findings
	evidence := make([]Proof, len(path))
	below := 0 // authorities below c, without self-issued ones
	for i, c := range path {
		anchor := i == len(path)-1
		f.validity(c, s.At)
		f.extensions(c)
		f.strength(c, anchor, s.Options)
		if i == 0 {
			f.leaf(c, s.Options)
		} else {
			f.authority(c, below, anchor)
			if !anchor {
				f.usage(c, s.Usage)
			}
			if !c.IsSelfIssued() {
				below++
			}
		}
		if anchor {
			continue
		}
		if err := s.spend(0, len(s.CRLs)+4*len(s.OCSP)); err != nil {
			f.add(CodeRevocationUnknown, true, c, "was not searched for in revocation lists and OCSP answers: %v", err)
		} else {
			evidence[i] = s.revocation(&f, c, path[i+1])
		}
	}
	return f, evidence
}

type findings []Finding

func (f *findings) add(code string, fatal bool, c *x509gost.Certificate, format string, args ...any) {
	*f = append(*f, Finding{Code: code, Certificate: c, Fatal: fatal, Text: describe(c) + " " + fmt.Sprintf(format, args...)})
}

// addRevoked is add for a revocation at a time.
func (f *findings) addRevoked(code string, fatal bool, c *x509gost.Certificate, when time.Time, format string, args ...any) {
	f.add(code, fatal, c, format, args...)
	(*f)[len(*f)-1].When = when
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func (f *findings) validity(c *x509gost.Certificate, at time.Time) {
	if at.Before(c.NotBefore) {
		f.add(CodeNotYetValid, true, c, "is valid from %s on, but is checked for %s", stamp(c.NotBefore), stamp(at))
	}
	// notAfter is in whole seconds, and its last second belongs to the period.
	if !at.Before(c.NotAfter.Add(time.Second)) {
		f.add(CodeExpired, true, c, "was valid until %s, but is checked for %s", stamp(c.NotAfter), stamp(at))
	}
}

// strength checks the key and the signature. It skips the signature of an anchor, because
// an anchor is trusted by decision.
func (f *findings) strength(c *x509gost.Certificate, anchor bool, o Options) {
	key, at := c.Key(), o.At
	if errors.Is(c.KeyError, suite.ErrTooShort) {
		f.add(CodeWeak, true, c, "has a key that can be forged: %v", c.KeyError)
	}
	if w := o.Ends.Key(key); w.At(at) {
		f.add(CodeWeak, true, c, "has a key of %s, which proves nothing since %s", w.What, w.Since.Format(time.DateOnly))
	}
	if anchor {
		return
	}
	if w := o.weakness(c); w.At(at) {
		f.add(CodeWeak, true, c, "is signed over %s, which proves nothing since %s", w.What, w.Since.Format(time.DateOnly))
	}
}

// weakness returns the weakness of the signature on a certificate, a list or an answer.
func (o *Options) weakness(signed interface {
	Scheme() (*suite.Scheme, error)
}) suite.Weakness {
	s, err := signed.Scheme()
	if err != nil {
		return suite.Weakness{} // such a signature cannot be verified anyway
	}
	return o.Ends.Scheme(s)
}

func (f *findings) extensions(c *x509gost.Certificate) {
	for _, e := range c.Extensions {
		if e.Critical && !slices.ContainsFunc(processed, e.OID.Equal) {
			f.add(CodeCriticalExtension, true, c, "has the critical extension %s, which is not supported", e.OID)
		}
	}
}

func (f *findings) leaf(c *x509gost.Certificate, o Options) {
	f.usage(c, o.Usage)
	early := !c.PrivateKeyNotBefore.IsZero() && o.At.Before(c.PrivateKeyNotBefore)
	late := !c.PrivateKeyNotAfter.IsZero() && o.At.After(c.PrivateKeyNotAfter)
	if early || late {
		f.add(CodePrivateKeyPeriod, false, c, "has a private key whose usage period does not include %s", stamp(o.At))
	}
}

// usage checks extended key usage. Without the extension every usage is allowed. In an
// authority it limits the certificates that it issues.
func (f *findings) usage(c *x509gost.Certificate, wanted []x509gost.OID) {
	if len(wanted) == 0 || len(c.ExtKeyUsage) == 0 {
		return
	}
	for _, has := range c.ExtKeyUsage {
		if has.Equal(x509gost.UsageAny) || slices.ContainsFunc(wanted, has.Equal) {
			return
		}
	}
	f.add(CodeExtendedUsage, true, c, "allows the uses %v, but one of %v is required", c.ExtKeyUsage, wanted)
}

// authority checks that c may issue certificates with below authorities under it.
func (f *findings) authority(c *x509gost.Certificate, below int, anchor bool) {
	switch {
	case anchor && len(c.Extensions) == 0:
		// Version 1 has no extensions, and an anchor is trusted by decision.
		f.add(CodeNotAuthority, false, c, "is an anchor without extensions")
	case !c.IsCA:
		f.add(CodeNotAuthority, true, c, "has no right to issue certificates (basicConstraints)")
	}
	if c.HasKeyUsage && c.KeyUsage&x509.KeyUsageCertSign == 0 {
		f.add(CodeKeyUsage, true, c, "has a key that is not for signing certificates (keyCertSign)")
	}
	if c.MaxPathLen >= 0 && below > c.MaxPathLen {
		f.add(CodePathLength, true, c, "allows %d authorities under it, the path has %d", c.MaxPathLen, below)
	}
}
