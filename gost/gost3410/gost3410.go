// Package gost3410 owns the digital signature of GOST R 34.10-2001 and
// GOST R 34.10-2012 (RFC 5832, RFC 7091) and the VKO key agreement of RFC 4357
// and RFC 7836, over every published parameter set.
//
// Byte orders follow the formats that carry the values, not one rule:
//
//   - a signature is s followed by r, both big-endian (RFC 4491, section 2.2.2);
//   - a public key is x followed by y, both little-endian (RFC 4491, section 2.3.2);
//   - a private key is the little-endian scalar (RFC 9548, as PKCS #8 carries it);
//   - a digest is the octet string the hash function returns; the equation reads
//     it as a little-endian number.
//
// Everything that touches a private key runs in constant time.
package gost3410
