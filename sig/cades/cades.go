// Package cades owns signed messages: the types CMS and CAdES of the interface,
// which are one format, a CMS SignedData (RFC 5652) with the attributes of CAdES
// (RFC 5126, ETSI EN 319 122-1):
//
//	BES   content-type, message-digest, signing-time, signing-certificate-v2
//	T     a time stamp of the signature value
//	XLT1  X Long Type 1: references to the certificates and the revocation data of
//	      the signer's path, a time stamp of value, time stamp and references, and
//	      the certificates and revocation data themselves
//
// A message carries its document (attached), or stands beside it (detached), or
// is made over a hash value, which is always detached. Signatures are added to a
// message beside the others (cosignature) or on one of them (countersignature);
// what others signed keeps every octet.
//
// The evidence for time-stamp services and OCSP responders stands in the same
// certificate-values and revocation-values as that for the signer.
package cades

import "time"

// Format makes, raises and checks signed messages.
type Format struct {
	// Allowance is how much older than the signature time stamp revocation data may
	// be that goes into XLT1: 0 means not at all.
	Allowance time.Duration
	// OldListsForAuthorities lets data that is older still stand for the
	// certificates of authorities, whose lists are made every few months.
	OldListsForAuthorities bool
	// NoSigningTime leaves the attribute signing-time out: PAdES (ETSI EN 319 142-1,
	// 6.3) has the claimed time in the document and forbids a second one.
	NoSigningTime bool
}

// New returns the format, for both CAdES and CMS, with the strictest rules.
func New() *Format { return &Format{} }
