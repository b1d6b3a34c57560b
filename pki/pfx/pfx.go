// SPDX-License-Identifier: Apache-2.0

// Package pfx reads and writes PKCS #12 files (RFC 7292): a private key with its certificates
// in one file under a password. People use such files to move keys between programs. For GOST
// keys it is the container of RFC 9548 with the password-based encryption of RFC 9337, and
// the form that OpenSSL writes with gost-engine. For RSA and ECDSA it is PBES2 with AES.
//
// Begin with Parse or Create.
//
// Parse supports PBES2 with PBKDF2 over HMAC of Streebog, GOST R 34.11-94, SHA-1 and SHA-2.
// It supports the ciphers Kuznyechik and Magma in CTR-ACPKM with and without OMAC, GOST
// 28147-89 in CFB, and AES in CBC, and keys in the encryption of CryptoPro CSP. Lengths may be BER.
// It refuses a file without an integrity code, and the older ciphers of RFC 7292 (RC2,
// Triple-DES).
//
// Parse limits the size of a file, its elements, and the iterations of all derivations
// together, so a hostile file cannot occupy the machine.
package pfx

import (
	"crypto"
	"errors"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Limits of a file.
const (
	MaxSize = 1 << 20 // bytes

	// MaxIterations limits the iterations of all derivations of a file together. They
	// take a few seconds.
	MaxIterations = 2_500_000

	maxContents     = 16  // SafeContents in a file
	maxBags         = 128 // in all SafeContents together
	maxCertificates = 64
	maxNesting      = 4
	maxSalt         = 1024 // bytes
)

// ErrPassword reports a wrong password or a changed file. The integrity code cannot
// distinguish the two.
var ErrPassword = errors.New("pfx: the password is wrong, or the file is damaged")

// Bundle is the content of a file.
type Bundle struct {
	Key         crypto.Signer
	Suite       *suite.Suite // of the key
	Certificate *x509gost.Certificate
	// Others are further certificates, for instance of authorities, in the order of the
	// file.
	Others []*x509gost.Certificate
	// Name is the friendly name of the key or its certificate, "" if it has no name.
	Name string
}

// Cipher is the encryption of a new file.
type Cipher int

// The ciphers of new files.
const (
	// Kuznyechik is id-gostr3412-2015-kuznyechik-ctracpkm of RFC 9337.
	Kuznyechik Cipher = iota
	// Magma is id-gostr3412-2015-magma-ctracpkm of RFC 9337.
	Magma
	// GOST28147 is GOST 28147-89 in CFB with id-tc26-gost-28147-param-Z, for programs
	// that support no newer cipher.
	GOST28147
	// AES256 is AES of 256 bits in CBC.
	AES256
)

// Options are the options of a new file. The zero value is RFC 9548 with Kuznyechik.
type Options struct {
	Cipher Cipher
	// Iterations is the number for each derivation. 0 means 20000 over Streebog and 600000
	// over SHA-256. An attacker who guesses passwords needs either the derivation of the key
	// or that of the integrity code.
	Iterations int
}

var (
	oidData          = x509gost.OID{1, 2, 840, 113549, 1, 7, 1}
	oidEncryptedData = x509gost.OID{1, 2, 840, 113549, 1, 7, 6}

	oidKeyBag      = x509gost.OID{1, 2, 840, 113549, 1, 12, 10, 1, 1}
	oidShroudedBag = x509gost.OID{1, 2, 840, 113549, 1, 12, 10, 1, 2}
	oidCertBag     = x509gost.OID{1, 2, 840, 113549, 1, 12, 10, 1, 3}
	oidSafeBag     = x509gost.OID{1, 2, 840, 113549, 1, 12, 10, 1, 6}

	oidX509Certificate = x509gost.OID{1, 2, 840, 113549, 1, 9, 22, 1}
	oidFriendlyName    = x509gost.OID{1, 2, 840, 113549, 1, 9, 20}
	oidLocalKeyID      = x509gost.OID{1, 2, 840, 113549, 1, 9, 21}
)
