// Package pfx owns PKCS #12 (RFC 7292): a private key with its certificates in one
// file under a password, as people carry keys between programs. With GOST algorithms
// it is the container of RFC 9548 over the password-based encryption of RFC 9337, and
// the form that OpenSSL writes with gost-engine; for RSA and ECDSA it is PBES2 with AES.
//
// Read are PBES2 with PBKDF2 over HMAC of Streebog, GOST R 34.11-94, SHA-1 and SHA-2,
// and Kuznyechik and Magma in CTR-ACPKM with and without OMAC, GOST 28147-89 in CFB,
// and AES in CBC. A file without a code of integrity is refused, and so are those of
// the older ciphers of RFC 7292 (RC2, Triple-DES). Lengths in BER are understood.
//
// What a file may cost is bounded: its size, its elements, and the iterations of all
// derivations together, so that nobody's file takes the machine.
package pfx

import (
	"crypto"
	"errors"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Bounds of a file.
const (
	MaxSize = 1 << 20 // octets

	// MaxIterations is how many iterations all derivations of a file may ask for
	// together: a few seconds.
	MaxIterations = 2_500_000

	maxContents     = 16  // SafeContents in a file
	maxBags         = 128 // in all of them
	maxCertificates = 64
	maxNesting      = 4
	maxSalt         = 1024 // octets
)

// ErrPassword says that the password is not the one of the file, or that the file was
// changed: the code of integrity tells no difference.
var ErrPassword = errors.New("pfx: the password is wrong, or the file is damaged")

// Bundle is what a file holds.
type Bundle struct {
	Key         crypto.Signer
	Suite       *suite.Suite // of the key
	Certificate *x509gost.Certificate
	// Others are further certificates, such as those of its authorities, in the order of
	// the file.
	Others []*x509gost.Certificate
	// Name is the friendly name of the key or its certificate; "" for none.
	Name string
}

// Cipher is how a new file is enciphered.
type Cipher int

// The ciphers of new files.
const (
	// Kuznyechik is id-gostr3412-2015-kuznyechik-ctracpkm of RFC 9337.
	Kuznyechik Cipher = iota
	// Magma is id-gostr3412-2015-magma-ctracpkm of RFC 9337.
	Magma
	// GOST28147 is GOST 28147-89 in CFB with id-tc26-gost-28147-param-Z, for programs
	// that know no newer one.
	GOST28147
	// AES256 is AES of 256 bits in CBC.
	AES256
)

// Options of a new file. The zero value is RFC 9548 with Kuznyechik.
type Options struct {
	Cipher Cipher
	// Iterations of each derivation; 0: 20000 over Streebog, 600000 over SHA-256. A file
	// has two that matter to whoever guesses, one each for the key and the integrity.
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
