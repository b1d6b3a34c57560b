// SPDX-License-Identifier: Apache-2.0

package suite

import "fmt"

// names has algorithms, keys and curves that are known but not supported. A report then
// shows a name and not only a number.
var names = map[string]string{
	"1.2.840.113549.1.1.2": "RSA with MD2", "1.2.840.113549.1.1.3": "RSA with MD4",
	"1.2.840.113549.1.1.7": "RSA-OAEP", "1.3.36.3.3.1.2": "RSA with RIPEMD-160",
	"1.2.840.113549.1.1.15": "RSA with SHA-512/224", "1.2.840.113549.1.1.16": "RSA with SHA-512/256",
	"1.2.840.10040.4.1": "DSA", "1.2.840.10040.4.3": "DSA with SHA-1",
	"2.16.840.1.101.3.4.3.1": "DSA with SHA-224", "2.16.840.1.101.3.4.3.2": "DSA with SHA-256",
	"2.16.840.1.101.3.4.3.3": "DSA with SHA-384", "2.16.840.1.101.3.4.3.4": "DSA with SHA-512",
	"1.2.840.113549.2.2": "MD2", "1.2.840.113549.2.4": "MD4", "1.3.36.3.2.1": "RIPEMD-160",
	"2.16.840.1.101.3.4.2.5": "SHA-512/224", "2.16.840.1.101.3.4.2.6": "SHA-512/256",
	"2.16.840.1.101.3.4.2.11": "SHAKE128", "2.16.840.1.101.3.4.2.12": "SHAKE256",
	"1.3.6.1.5.5.7.6.30": "RSA-PSS with SHAKE128", "1.3.6.1.5.5.7.6.31": "RSA-PSS with SHAKE256",
	"1.3.6.1.5.5.7.6.32": "ECDSA with SHAKE128", "1.3.6.1.5.5.7.6.33": "ECDSA with SHAKE256",
	"1.3.101.110": "X25519", "1.3.101.111": "X448", "1.3.101.113": "Ed448",
	"1.2.156.10197.1.301": "SM2", "1.2.156.10197.1.501": "SM2 with SM3", "1.2.156.10197.1.401": "SM3",
	"1.3.36.3.3.2.8.1.1.1": "brainpoolP160r1", "1.3.36.3.3.2.8.1.1.3": "brainpoolP192r1",
	"1.3.36.3.3.2.8.1.1.5": "brainpoolP224r1", "1.3.36.3.3.2.8.1.1.7": "brainpoolP256r1",
	"1.3.36.3.3.2.8.1.1.8": "brainpoolP256t1", "1.3.36.3.3.2.8.1.1.9": "brainpoolP320r1",
	"1.3.36.3.3.2.8.1.1.11": "brainpoolP384r1", "1.3.36.3.3.2.8.1.1.12": "brainpoolP384t1",
	"1.3.36.3.3.2.8.1.1.13": "brainpoolP512r1", "1.3.36.3.3.2.8.1.1.14": "brainpoolP512t1",
	"1.3.132.0.10": "secp256k1", "1.2.840.10045.3.1.1": "P-192",
	"2.16.840.1.101.3.4.3.17": "ML-DSA-44", "2.16.840.1.101.3.4.3.18": "ML-DSA-65", "2.16.840.1.101.3.4.3.19": "ML-DSA-87",
	"1.2.840.113549.1.9.16.3.17": "HSS/LMS",
}

// nameOf returns the name of an algorithm with its identifier, or the identifier alone.
func nameOf(oid OID) string {
	if len(oid) == 0 {
		return "with an object identifier that cannot be read"
	}
	name := names[oid.String()]
	for _, h := range hashes {
		if h.OID.Equal(oid) {
			name = h.Name
		}
	}
	for _, s := range schemes {
		if s.OID.Equal(oid) {
			name = s.Name
		}
	}
	switch {
	case oid.Equal(oidRSA):
		name = "RSA"
	case oid.Equal(oidECDSA):
		name = "ECDSA"
	case oid.Equal(OIDPSS):
		name = "RSA-PSS"
	}
	if name == "" {
		return oid.String()
	}
	return fmt.Sprintf("%s (%s)", name, oid)
}

// unsupported returns an error that names an algorithm and wraps ErrUnsupported.
func unsupported(what string, oid OID) error {
	return fmt.Errorf("suite: %w: %s %s", ErrUnsupported, what, nameOf(oid))
}

// Unsupported returns the error for an algorithm, a key or a curve that is not
// supported. what says which of the three it is. The error wraps ErrUnsupported.
func Unsupported(what string, oid OID) error { return unsupported(what, oid) }
