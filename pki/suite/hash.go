// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"crypto"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"encoding/asn1"
	"hash"
	"strings"

	"tamga/gost/gost341194"
	"tamga/gost/streebog"
)

// OID is the type of every object identifier in pki. It is an alias of
// encoding/asn1.ObjectIdentifier, so both names may be used.
type OID = asn1.ObjectIdentifier

// Hash describes a digest algorithm. The variables of this package are the only values,
// so compare pointers.
type Hash struct {
	// Name is the name in requests to the service, for instance "GR 34.11-2012 256".
	Name string
	// OID names the algorithm in an AlgorithmIdentifier.
	OID OID
	// NullParams reports how CMS writes an AlgorithmIdentifier of this digest: with
	// parameters NULL (RFC 4490, 2.1, for GOST R 34.11-94) or without parameters
	// (RFC 5754, 2, for SHA-2 and the TC26 recommendations for 34.11-2012).
	// Readers accept both forms.
	NullParams bool
	// Size is the length of a digest in bytes.
	Size int
	// New starts a computation. Every value it returns also implements
	// encoding.BinaryMarshaler and encoding.BinaryUnmarshaler.
	New func() hash.Hash
	// XML holds the identifiers of DigestMethod. The first is written, all are
	// understood.
	XML []string
	// std is the name of the algorithm in the standard library, 0 for GOST.
	std crypto.Hash
	// sum hashes a whole message and keeps its state off the heap.
	sum func(message []byte) []byte
	// sumMany hashes messages in parallel. It is nil when that is not faster than one by one.
	sumMany func(messages [][]byte) [][]byte
}

// SumMany returns the digests of independent messages, in their order. It is faster
// than Digest in a loop where the processor can hash several messages at once.
func (h *Hash) SumMany(messages [][]byte) []Digest {
	digests := make([]Digest, len(messages))
	if h.sumMany != nil {
		for i, sum := range h.sumMany(messages) {
			digests[i] = Digest{Hash: h, Sum: sum}
		}
		return digests
	}
	for i, m := range messages {
		digests[i] = h.Digest(m)
	}
	return digests
}

// The digest algorithms. Suites sign the three GOST digests and SHA-256. The others are
// for verification only. Thumbprints and key identifiers use SHA-1. GOST94 is GOST R
// 34.11-94 with the CryptoPro S-boxes.
var (
	GOST94 = &Hash{
		Name: "GOST R 34.11-94", OID: OID{1, 2, 643, 2, 2, 9}, NullParams: true,
		Size: gost341194.Size, New: gost341194.NewCryptoPro,
		sum: func(m []byte) []byte { h := gost341194.NewCryptoPro(); h.Write(m); return h.Sum(nil) },
		XML: []string{
			"http://www.w3.org/2001/04/xmldsig-more#gostr3411",
			"urn:ietf:params:xml:ns:cpxmlsec:algorithms:gostr3411",
			// The specification of the service prints this one, with an extra digit.
			"http://www.w3.org/2001/04/xmldsig-more#gostr34116",
		},
	}
	Streebog256 = &Hash{
		Name: "GR 34.11-2012 256", OID: OID{1, 2, 643, 7, 1, 1, 2, 2},
		Size: streebog.Size256, New: streebog.New256,
		sum: func(m []byte) []byte { s := streebog.Sum256(m); return s[:] },
		XML: []string{"urn:ietf:params:xml:ns:cpxmlsec:algorithms:gostr34112012-256"},
		sumMany: func(messages [][]byte) [][]byte {
			sums := streebog.SumMany256(messages)
			out := make([][]byte, len(sums))
			for i := range sums {
				out[i] = sums[i][:]
			}
			return out
		},
	}
	Streebog512 = &Hash{
		Name: "GR 34.11-2012 512", OID: OID{1, 2, 643, 7, 1, 1, 2, 3},
		Size: streebog.Size512, New: streebog.New512,
		sum: func(m []byte) []byte { s := streebog.Sum512(m); return s[:] },
		XML: []string{"urn:ietf:params:xml:ns:cpxmlsec:algorithms:gostr34112012-512"},
		sumMany: func(messages [][]byte) [][]byte {
			sums := streebog.SumMany512(messages)
			out := make([][]byte, len(sums))
			for i := range sums {
				out[i] = sums[i][:]
			}
			return out
		},
	}
	SHA1 = &Hash{
		Name: "SHA-1", OID: OID{1, 3, 14, 3, 2, 26}, NullParams: true,
		Size: sha1.Size, New: sha1.New,
		sum: func(m []byte) []byte { s := sha1.Sum(m); return s[:] },
		XML: []string{"http://www.w3.org/2000/09/xmldsig#sha1"},
		std: crypto.SHA1,
	}
	MD5 = &Hash{
		Name: "MD5", OID: OID{1, 2, 840, 113549, 2, 5}, NullParams: true,
		Size: md5.Size, New: md5.New,
		sum: func(m []byte) []byte { s := md5.Sum(m); return s[:] },
		XML: []string{"http://www.w3.org/2001/04/xmldsig-more#md5"},
		std: crypto.MD5,
	}
	SHA224 = &Hash{
		Name: "SHA-224", OID: OID{2, 16, 840, 1, 101, 3, 4, 2, 4},
		Size: sha256.Size224, New: sha256.New224,
		sum: func(m []byte) []byte { s := sha256.Sum224(m); return s[:] },
		XML: []string{"http://www.w3.org/2001/04/xmldsig-more#sha224"},
		std: crypto.SHA224,
	}
	SHA256 = &Hash{
		Name: "SHA-256", OID: OID{2, 16, 840, 1, 101, 3, 4, 2, 1},
		Size: sha256.Size, New: sha256.New,
		sum: func(m []byte) []byte { s := sha256.Sum256(m); return s[:] },
		XML: []string{"http://www.w3.org/2001/04/xmlenc#sha256"},
		std: crypto.SHA256,
	}
	SHA384 = &Hash{
		Name: "SHA-384", OID: OID{2, 16, 840, 1, 101, 3, 4, 2, 2},
		Size: sha512.Size384, New: sha512.New384,
		sum: func(m []byte) []byte { s := sha512.Sum384(m); return s[:] },
		XML: []string{"http://www.w3.org/2001/04/xmldsig-more#sha384"},
		std: crypto.SHA384,
	}
	SHA512 = &Hash{
		Name: "SHA-512", OID: OID{2, 16, 840, 1, 101, 3, 4, 2, 3},
		Size: sha512.Size, New: sha512.New,
		sum: func(m []byte) []byte { s := sha512.Sum512(m); return s[:] },
		XML: []string{"http://www.w3.org/2001/04/xmlenc#sha512"},
		std: crypto.SHA512,
	}
	SHA3x224 = &Hash{
		Name: "SHA3-224", OID: OID{2, 16, 840, 1, 101, 3, 4, 2, 7},
		Size: 28, New: func() hash.Hash { return sha3.New224() },
		sum: func(m []byte) []byte { s := sha3.Sum224(m); return s[:] },
		XML: []string{"http://www.w3.org/2007/05/xmldsig-more#sha3-224"},
		std: crypto.SHA3_224,
	}
	SHA3x256 = &Hash{
		Name: "SHA3-256", OID: OID{2, 16, 840, 1, 101, 3, 4, 2, 8},
		Size: 32, New: func() hash.Hash { return sha3.New256() },
		sum: func(m []byte) []byte { s := sha3.Sum256(m); return s[:] },
		XML: []string{"http://www.w3.org/2007/05/xmldsig-more#sha3-256"},
		std: crypto.SHA3_256,
	}
	SHA3x384 = &Hash{
		Name: "SHA3-384", OID: OID{2, 16, 840, 1, 101, 3, 4, 2, 9},
		Size: 48, New: func() hash.Hash { return sha3.New384() },
		sum: func(m []byte) []byte { s := sha3.Sum384(m); return s[:] },
		XML: []string{"http://www.w3.org/2007/05/xmldsig-more#sha3-384"},
		std: crypto.SHA3_384,
	}
	SHA3x512 = &Hash{
		Name: "SHA3-512", OID: OID{2, 16, 840, 1, 101, 3, 4, 2, 10},
		Size: 64, New: func() hash.Hash { return sha3.New512() },
		sum: func(m []byte) []byte { s := sha3.Sum512(m); return s[:] },
		XML: []string{"http://www.w3.org/2007/05/xmldsig-more#sha3-512"},
		std: crypto.SHA3_512,
	}
)

var hashes = []*Hash{
	GOST94, Streebog256, Streebog512, SHA256, SHA384, SHA512,
	SHA3x224, SHA3x256, SHA3x384, SHA3x512, SHA224, SHA1, MD5,
}

// HashByOID returns the digest algorithm with an object identifier.
func HashByOID(oid OID) (*Hash, bool) {
	for _, h := range hashes {
		if h.OID.Equal(oid) {
			return h, true
		}
	}
	return nil, false
}

// HashByName returns the digest algorithm with a name, or with an object identifier in
// dotted form. Case and the number of spaces do not matter. It does not return MD5, which
// is known only to name it in signatures of others: callers must not ask for it.
func HashByName(name string) (*Hash, bool) {
	name = strings.Join(strings.Fields(name), " ")
	for _, h := range hashes {
		if h != MD5 && (strings.EqualFold(h.Name, name) || h.OID.String() == name) {
			return h, true
		}
	}
	return nil, false
}

// HashByXML returns the digest algorithm with an identifier of DigestMethod.
func HashByXML(uri string) (*Hash, bool) {
	for _, h := range hashes {
		for _, x := range h.XML {
			if x == uri {
				return h, true
			}
		}
	}
	return nil, false
}

// Digest is a digest value together with the algorithm that made it.
type Digest struct {
	Hash *Hash
	Sum  []byte // Hash.Size bytes, in the order the hash function returns them
}

// Digest returns the digest of data.
func (h *Hash) Digest(data []byte) Digest { return Digest{Hash: h, Sum: h.sum(data)} }
