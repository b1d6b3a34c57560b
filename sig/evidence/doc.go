// SPDX-License-Identifier: Apache-2.0

// Package evidence collects what a long-term signature carries with it: the certificates from a
// signer or a time-stamp service to its root, and for each of them but the root the revocation list
// or OCSP answer that shows that it was not revoked. A verifier that has only the signature and the
// root can then check it after all services have gone.
//
// Begin with New. A format makes one Collector for each document and one Values for each place
// that holds evidence: a signature in CMS or XML, the document security store in PDF. It calls
// Collect for the signer and for each time stamp, with the time of the latest stamp, and writes
// the elements of Values in the syntax of its standard. The package has the DER of each
// element, but not the attributes, elements or streams that hold it.
//
// It does not fetch anything itself: sig.Evidence does. It trusts nothing that it gets from there.
// Nor does it decide whether a root is trusted: the path ends at a certificate that names itself
// as issuer, and the verifier compares that one with its own roots.
//
// # What is collected
//
// For each certificate from the subject to the root, except the root:
//
//   - the certificate of its issuer, whose key must verify it;
//   - an OCSP answer or a revocation list, signed by the issuer or, for an answer, by a responder
//     that the issuer certified, which says that the certificate is good;
//   - the certificate of that responder, and the same for it, unless it has id-pkix-ocsp-nocheck
//     (RFC 6960, 4.2.2.2.1).
//
// This is what RFC 5126, 6.2.1, 6.2.2, 6.3.3 and 6.3.4 (complete-certificate-references,
// complete-revocation-references, certificate-values, revocation-values) and ETSI EN 319 122-1,
// annex A.1 want in a CAdES signature, ETSI EN 319 132-1 in CertificateValues, RevocationValues and
// TimeStampValidationData of XAdES, and ETSI EN 319 142-1, 5.4 in the document security store of PAdES.
// A root has no revocation data, because it is trusted by other means.
//
// # Age
//
// Revocation data shows the status at its thisUpdate, and a time stamp shows that the signature
// existed when it was made. So data from before the stamp does not show that the certificate was
// good when it was used. Rules say how strictly a Collector takes that.
//
// # Errors
//
// What a service failed to deliver, or delivered in an unusable form, is a *sig.ErrEvidence, whose
// Text is a reason for the caller: a service that does not answer, a certificate that is revoked or
// that another key signed, data that is too old, with the time of the next list if there is one.
// Errors of ctx are returned as they are.
package evidence
