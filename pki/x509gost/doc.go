// SPDX-License-Identifier: Apache-2.0

// Package x509gost reads and writes X.509 structures: public keys in SubjectPublicKeyInfo,
// private keys in PKCS #8, certificates, certification requests and revocation lists. The
// same code serves GOST R 34.10 (RFC 4491, RFC 9215), RSA and ECDSA.
//
// Begin with ParseCertificate, or with ParseCertificates for files that people send.
// CreateCertificate, CreateRequest and CreateRevocationList write. The package checks single
// signatures, but does not decide whether to trust a certificate. Package chain does.
//
// # Suite beside key
//
// A GOST key of 256 bits alone does not determine whether it belongs to 34.10-2001 or to
// 34.10-2012. Its algorithm identifier does. Every parser here therefore returns a
// *suite.Suite beside a key, every structure has a field Suite, and every constructor
// takes both. The suite is authoritative.
//
// # Tolerance
//
// Structures must be complete DER. This keeps the fields that were read and the bytes that
// were signed the same. Certificates in real use often have faults inside fields: letters
// outside PrintableString, e-mail addresses that are not ASCII, negative serial numbers,
// times without seconds, parameters that should be absent. Such a fault is accepted if the
// meaning is clear, and is listed in the field Deviations.
//
// # Limits
//
// MaxCertificate, MaxRequest, MaxPrivateKey, MaxRevocationList and MaxBundle limit the
// bytes of the input. A certificate has at most 128 extensions, a name at most 128
// attributes, an address list at most 64 entries. A revocation list has at most MaxRevoked
// entries, which take up to 56 bytes each in memory. No function recurses on input.
// Parsed structures share memory with their input, so the caller must not change the
// input afterwards.
//
// Errors never contain a private key.
package x509gost

// Limits on what is read, in bytes except MaxRevoked.
const (
	MaxCertificate    = 64 << 10
	MaxRequest        = 64 << 10
	MaxPrivateKey     = 8 << 10
	MaxRevocationList = 64 << 20
	MaxRevoked        = 2_000_000 // entries of one revocation list
	MaxBundle         = 8 << 20   // PEM, Base64 or PKCS #7 with certificates
	MaxBundleCount    = 4096      // certificates in one bundle
)

const (
	maxExtensions = 128
	maxAttributes = 128
	maxURLs       = 64
	maxOIDs       = 64
)
