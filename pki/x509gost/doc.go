// Package x509gost owns the X.509 structures of the program: public keys in
// SubjectPublicKeyInfo, private keys in PKCS #8, certificates, certification
// requests and revocation lists, for GOST R 34.10 (RFC 4491, RFC 9215) and in
// the same code for RSA and ECDSA.
//
// # Suite beside key
//
// A GOST key of 256 bits does not know whether it belongs to 34.10-2001 or to
// 34.10-2012. The algorithm identifier it came with does, so every parser here
// returns a *suite.Suite beside a key, every structure keeps it in a field
// Suite, and every constructor wants both. Where the two meet, the suite is
// authoritative.
//
// # Tolerance
//
// Structures must be DER and complete: that keeps the bytes that were signed
// and the fields that were read the same. What sits inside fields is often
// wrong in certificates people really use (letters outside PrintableString,
// e-mail addresses that are not ASCII, negative serial numbers, times without
// seconds, parameters that should be absent); such faults are read as far as
// their meaning is clear and listed in the field Deviations.
//
// # Bounds
//
// MaxCertificate, MaxRequest, MaxPrivateKey, MaxRevocationList and MaxBundle
// limit the octets read; a certificate has at most 128 extensions, a name at
// most 128 attributes, an address list at most 64 entries, a revocation list at
// most MaxRevoked entries, for which the parsed form takes up to 56 octets each.
// Nothing here recurses on input. Parsed structures share the memory of the
// bytes they were read from: the caller must not change those afterwards.
//
// A private key never appears in an error.
package x509gost

// Limits on what is read, in octets except MaxRevoked.
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
