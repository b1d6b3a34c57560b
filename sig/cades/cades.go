// SPDX-License-Identifier: Apache-2.0

// Package cades makes, enhances and checks signed messages: the types CMS and CAdES of
// the interface. Both are one format, a CMS SignedData (RFC 5652) with the attributes of
// CAdES (RFC 5126, ETSI EN 319 122-1). It has these levels:
//
//	BES   content-type, message-digest, signing-time, signing-certificate-v2
//	T     a time stamp of the signature value
//	XLT1  X Long Type 1: references to the certificates and the revocation data of
//	      the signer's path, a time stamp of value, time stamp and references, and
//	      the certificates and revocation data themselves
//	A     an archive time stamp (archive-time-stamp-v3) over all of that; renewed by one more
//
// Begin with New. The package does not parse CMS itself (package cms does) and does not
// collect certificates and revocation data (package evidence does).
//
// A message contains its document (attached), or the document is separate (detached). A
// message over a hash value is always detached. A signature is added to a message next to
// the others (cosignature) or on one of them (countersignature). No byte of what others
// signed changes.
//
// The evidence for time-stamp services and OCSP responders is in the same
// certificate-values and revocation-values as that for the signer.
package cades

import "tamga/sig/evidence"

// Format makes, enhances and checks signed messages.
type Format struct {
	// Rules say how old the revocation data in XLT1 may be.
	Rules evidence.Rules
	// NoSigningTime omits the attribute signing-time: PAdES (ETSI EN 319 142-1, 6.3) has
	// the claimed time in the document and forbids a second one.
	NoSigningTime bool
}

// New returns the format, for both CAdES and CMS, with the strictest rules.
func New() *Format { return &Format{} }
