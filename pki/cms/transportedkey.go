// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/gost/gost28147"
	"tamga/gost/gost3410"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// TransportedKey is the key of a content in GostR3410-KeyTransport (RFC 4490, section 4.2), encrypted for
// one certificate with a key of GOST R 34.10. A KeyTransRecipientInfo has it as encryptedKey, and XML
// Encryption as CipherValue of an EncryptedKey.
type TransportedKey struct {
	// Set is the parameter set of the wrap. XML Encryption uses it for the content, too.
	Set *gost28147.SBox

	suite *suite.Suite
	peer  *gost3410.PublicKey // nil: not on the curve of the recipient's key
	ukm   []byte
	key   key28147
}

// ParseTransportedKey reads a key for a certificate. The error says that the element is malformed or not
// supported, or that the certificate has no key of GOST R 34.10.
func ParseTransportedKey(der []byte, c *x509gost.Certificate) (*TransportedKey, error) {
	public, ok := c.PublicKey.(*gost3410.PublicKey)
	if !ok {
		return nil, errors.New("cms: GostR3410-KeyTransport is for keys of GOST R 34.10")
	}
	in := cryptobyte.String(der)
	var seq, params, spki, ukm cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !in.Empty() {
		return nil, errEncryptedKey
	}
	key, err := readKey28147(&seq)
	if err != nil {
		return nil, err
	}
	if !seq.ReadASN1(&params, tagAttrs0) || !seq.Empty() { // [0] IMPLICIT
		return nil, errEncryptedKey
	}
	set, ok := readOID(&params)
	if !ok || !params.ReadASN1(&spki, tagAttrs0) || // [0] IMPLICIT
		!params.ReadASN1(&ukm, cbasn1.OCTET_STRING) || !params.Empty() || len(ukm) != gost28147.UKMSize {
		return nil, errEncryptedKey
	}
	box, known := suite.SBoxByOID(set)
	if !known {
		return nil, fmt.Errorf("cms: %w", suite.Unsupported("parameter set of GOST 28147-89", set))
	}
	return &TransportedKey{box, c.Suite, peerOf(wrap(tagSequence, spki), public, c.Suite), ukm, key}, nil
}

// Open returns the key of the content, 32 bytes. The error is ErrDecrypt for a wrong private key and for a
// changed element.
func (k *TransportedKey) Open(ctx context.Context, own RecipientKey) ([]byte, error) {
	return unwrap28147(ctx, own, k.peer, k.suite, k.ukm, k.key.join(k.ukm), k.Set, true)
}

// TransportKey encrypts the key of a content, 32 bytes, for a certificate with a key of GOST R 34.10. box
// is the parameter set of the wrap. The result is DER. random nil means crypto/rand.
func TransportKey(random io.Reader, c *x509gost.Certificate, box *gost28147.SBox, key []byte) ([]byte, error) {
	public, ok := c.PublicKey.(*gost3410.PublicKey)
	if !ok {
		return nil, errors.New("cms: GostR3410-KeyTransport is for keys of GOST R 34.10")
	}
	if random == nil {
		random = rand.Reader
	}
	wrapped, spki, ukm, err := wrapKey28147(random, c, public, box, key)
	if err != nil {
		return nil, err
	}
	w := newWriter(2*headersRoom + len(spki))
	w.wrap(tagOctetString, ukm)
	w.add(spki)
	w.buf[w.at] = tagContext0 // [0] IMPLICIT replaces the tag of a SEQUENCE
	w.oid(suite.SBoxOID(box))
	w.close(tagContext0, 0)
	w.add(wrapped)
	w.close(tagSequence, 0)
	return w.der(), nil
}

// wrapKey28147 returns Gost28147-89-EncryptedKey, with the key of the sender and the user keying material.
func wrapKey28147(random io.Reader, c *x509gost.Certificate, public *gost3410.PublicKey, box *gost28147.SBox, key []byte) (wrapped, spki, ukm []byte, err error) {
	ephemeral, err := gost3410.GenerateKey(public.Set(), random)
	if err != nil {
		return nil, nil, nil, err
	}
	defer ephemeral.Wipe()
	if spki, err = x509gost.MarshalPublicKey(ephemeral.PublicKey(), c.Suite); err != nil {
		return nil, nil, nil, err
	}
	if ukm, err = draw(random, gost28147.UKMSize); err != nil {
		return nil, nil, nil, err
	}
	if isZero(ukm) {
		ukm[0] = 1
	}
	kek, err := ephemeral.VKO(public, ukm, hash28147(c.Suite).New)
	if err != nil {
		return nil, nil, nil, err
	}
	defer clear(kek)
	joined, err := gost28147.WrapCryptoPro(kek, ukm, key, box)
	if err != nil {
		return nil, nil, nil, err
	}
	w := newWriter(headersRoom)
	w.wrap(tagOctetString, joined[len(joined)-4:])
	w.wrap(tagOctetString, joined[len(ukm):len(joined)-4])
	w.close(tagSequence, 0)
	return w.der(), spki, ukm, nil
}
