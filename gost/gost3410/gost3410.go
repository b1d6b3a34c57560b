// SPDX-License-Identifier: Apache-2.0

// Package gost3410 implements the digital signature of GOST R 34.10-2001 and
// GOST R 34.10-2012 (RFC 5832, RFC 7091) and the VKO key agreement of RFC 4357
// and RFC 7836, over every published parameter set.
//
// Begin with GenerateKey or NewPrivateKey and PrivateKey.Sign to sign, and with
// NewPublicKey and PublicKey.Verify to verify. SignMany and VerifyMany process
// several items at once. The package signs digests, not messages: packages streebog
// and gost341194 compute them. It does not read or write ASN.1.
//
// Each value has the byte order of the format that carries it:
//
//   - a signature is s followed by r, both big-endian (RFC 4491, section 2.2.2);
//   - a public key is x followed by y, both little-endian (RFC 4491, section 2.3.2);
//   - a private key is the little-endian scalar (RFC 9548, as PKCS #8 carries it);
//   - a digest is the byte string the hash function returns; the signature equation
//     reads it as a little-endian number.
//
// Every operation on a private key runs in constant time.
package gost3410
