// Package cades owns signed messages: the types CMS and CAdES of the interface,
// which are one format, a CMS SignedData (RFC 5652) with the attributes of
// CAdES-BES (ETSI EN 319 122-1): content-type, message-digest, signing-time and
// signing-certificate-v2.
//
// A message carries its document (attached), or stands beside it (detached), or
// is made over a hash value, which is always detached.
package cades

// Format makes and checks signed messages; it has no state of its own.
type Format struct{}

// New returns the format, for both CAdES and CMS.
func New() *Format { return &Format{} }
