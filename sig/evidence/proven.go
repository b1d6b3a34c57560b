// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"time"

	"tamga/pki/chain"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// Proven reports whether evidence is complete: it has a path from a certificate to a self-issued one and
// shows for each certificate of it but the last that it was not revoked at a time. What is about the
// certificate itself is not older than the rules allow. usage is what the certificate must be for, empty
// for any use.
func Proven(leaf *x509gost.Certificate, at time.Time, found sig.Found, rules Rules, usage ...x509gost.OID) bool {
	var roots []*x509gost.Certificate
	for _, c := range found.Certificates {
		if c.IsSelfIssued() {
			roots = append(roots, c)
		}
	}
	verdict, err := chain.Build(leaf, chain.Options{Roots: roots, Intermediates: found.Certificates, CRLs: found.CRLs, OCSP: found.OCSP, At: at, Usage: usage, RequireRevocation: true})
	if err != nil {
		return false
	}
	return len(verdict.Evidence) == 0 || len(verdict.Chain) == 1 || !verdict.Evidence[0].ThisUpdate.Before(at.Add(-rules.Allowance).Truncate(time.Second))
}
