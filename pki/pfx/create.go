// SPDX-License-Identifier: Apache-2.0

package pfx

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"unicode/utf16"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/x509gost"
)

// Default iterations of a new file.
const (
	iterationsStreebog = 20_000
	iterationsSHA256   = 600_000
)

// Create writes a file with the key and the certificates of a bundle. rand must be a secure
// source. An empty password is an error, because it would protect nothing.
func Create(rand io.Reader, b *Bundle, password string, o Options) ([]byte, error) {
	der, err := create(rand, b, password, o)
	if err != nil {
		return nil, fmt.Errorf("pfx: creating a file: %w", err)
	}
	return der, nil
}

func create(rand io.Reader, b *Bundle, password string, o Options) ([]byte, error) {
	if b.Key == nil || b.Suite == nil || b.Certificate == nil {
		return nil, errors.New("a key, its suite and its certificate are required")
	}
	if password == "" {
		return nil, errors.New("the password is empty")
	}
	if o.Cipher < Kuznyechik || o.Cipher > AES256 {
		return nil, errors.New("unknown cipher")
	}
	if b.Certificate.Suite != b.Suite || !sameKey(b.Certificate.PublicKey, b.Key.Public()) {
		return nil, errors.New("the certificate belongs to another key")
	}
	digest := oidStreebog512
	if o.Cipher == AES256 {
		digest = oidSHA256
	}
	if o.Iterations == 0 {
		if o.Iterations = iterationsStreebog; o.Cipher == AES256 {
			o.Iterations = iterationsSHA256
		}
	}
	if o.Iterations < 1 || o.Iterations > MaxIterations/4 { // two ciphers, and an integrity code of two blocks
		return nil, fmt.Errorf("%d iterations; want 1 to %d", o.Iterations, MaxIterations/4)
	}
	if len(b.Others)+1 > maxCertificates {
		return nil, fmt.Errorf("more than %d certificates", maxCertificates)
	}
	id := sha1.Sum(b.Certificate.Raw) // links the two bags, protects nothing
	safe, err := contents(rand, b, password, o, id[:])
	if err != nil {
		return nil, err
	}
	salt := make([]byte, 16)
	if _, err := io.ReadFull(rand, salt); err != nil {
		return nil, fmt.Errorf("drawing a salt: %w", err)
	}
	all := budget(MaxIterations)
	code, err := all.integrity(digest, password, salt, uint64(o.Iterations), safe)
	if err != nil {
		return nil, err
	}
	var out cryptobyte.Builder
	out.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1Uint64(3)
		addData(b, safe)
		b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
				b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
					b.AddASN1ObjectIdentifier(digest)
					if o.Cipher == AES256 { // GOST digests have no parameters
						b.AddASN1NULL()
					}
				})
				b.AddASN1OctetString(code)
			})
			b.AddASN1OctetString(salt)
			b.AddASN1Uint64(uint64(o.Iterations))
		})
	})
	der, err := out.Bytes()
	if err == nil && len(der) > MaxSize {
		err = fmt.Errorf("the file would exceed the limit of %d bytes", MaxSize)
	}
	return der, err
}

// contents writes the authenticated safe: the certificates in one content, the key in
// another, each encrypted.
func contents(rand io.Reader, b *Bundle, password string, o Options, id []byte) ([]byte, error) {
	pkcs8, err := x509gost.MarshalPrivateKey(b.Key, b.Suite)
	if err != nil {
		return nil, err
	}
	defer clear(pkcs8)
	keyAlgorithm, key, err := encipher(rand, o, password, pkcs8)
	if err != nil {
		return nil, err
	}
	var bags cryptobyte.Builder
	bags.AddASN1(asn1.SEQUENCE, func(out *cryptobyte.Builder) {
		addCertificate(out, b.Certificate.Raw, b.Name, id)
		for _, c := range b.Others {
			addCertificate(out, c.Raw, "", nil)
		}
	})
	certificates, err := bags.Bytes()
	if err != nil {
		return nil, err
	}
	certAlgorithm, sealed, err := encipher(rand, o, password, certificates)
	if err != nil {
		return nil, err
	}
	var keys cryptobyte.Builder
	keys.AddASN1(asn1.SEQUENCE, func(out *cryptobyte.Builder) {
		addBag(out, oidShroudedBag, b.Name, id, func(out *cryptobyte.Builder) {
			out.AddASN1(asn1.SEQUENCE, func(out *cryptobyte.Builder) {
				out.AddBytes(keyAlgorithm)
				out.AddASN1OctetString(key)
			})
		})
	})
	keyBags, err := keys.Bytes()
	if err != nil {
		return nil, err
	}
	var out cryptobyte.Builder
	explicit := asn1.Tag(0).Constructed().ContextSpecific()
	out.AddASN1(asn1.SEQUENCE, func(out *cryptobyte.Builder) {
		out.AddASN1(asn1.SEQUENCE, func(out *cryptobyte.Builder) {
			out.AddASN1ObjectIdentifier(oidEncryptedData)
			out.AddASN1(explicit, func(out *cryptobyte.Builder) {
				out.AddASN1(asn1.SEQUENCE, func(out *cryptobyte.Builder) {
					out.AddASN1Uint64(0)
					out.AddASN1(asn1.SEQUENCE, func(out *cryptobyte.Builder) {
						out.AddASN1ObjectIdentifier(oidData)
						out.AddBytes(certAlgorithm)
						out.AddASN1(asn1.Tag(0).ContextSpecific(), func(out *cryptobyte.Builder) { out.AddBytes(sealed) })
					})
				})
			})
		})
		addData(out, keyBags)
	})
	return out.Bytes()
}

// addData writes a ContentInfo with plain data.
func addData(b *cryptobyte.Builder, data []byte) {
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1ObjectIdentifier(oidData)
		b.AddASN1(asn1.Tag(0).Constructed().ContextSpecific(), func(b *cryptobyte.Builder) { b.AddASN1OctetString(data) })
	})
}

func addCertificate(b *cryptobyte.Builder, der []byte, name string, id []byte) {
	addBag(b, oidCertBag, name, id, func(b *cryptobyte.Builder) {
		b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddASN1ObjectIdentifier(oidX509Certificate)
			b.AddASN1(asn1.Tag(0).Constructed().ContextSpecific(), func(b *cryptobyte.Builder) { b.AddASN1OctetString(der) })
		})
	})
}

// addBag writes a SafeBag. DER sorts the attributes by their encodings. The id is first,
// because it is shorter, unless the name is short too.
func addBag(b *cryptobyte.Builder, kind x509gost.OID, name string, id []byte, value func(*cryptobyte.Builder)) {
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1ObjectIdentifier(kind)
		b.AddASN1(asn1.Tag(0).Constructed().ContextSpecific(), value)
		if name == "" && id == nil {
			return
		}
		b.AddASN1(asn1.SET, func(b *cryptobyte.Builder) {
			named := func() {
				if name == "" {
					return
				}
				addAttribute(b, oidFriendlyName, func(b *cryptobyte.Builder) {
					b.AddASN1(asn1.Tag(30), func(b *cryptobyte.Builder) {
						for _, unit := range utf16.Encode([]rune(name)) {
							b.AddUint16(unit)
						}
					})
				})
			}
			short := 2*len(utf16.Encode([]rune(name))) <= len(id)
			if short {
				named()
			}
			if id != nil {
				addAttribute(b, oidLocalKeyID, func(b *cryptobyte.Builder) { b.AddASN1OctetString(id) })
			}
			if !short {
				named()
			}
		})
	})
}

func addAttribute(b *cryptobyte.Builder, kind x509gost.OID, value func(*cryptobyte.Builder)) {
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1ObjectIdentifier(kind)
		b.AddASN1(asn1.SET, value)
	})
}
