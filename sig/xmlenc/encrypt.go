// SPDX-License-Identifier: Apache-2.0

package xmlenc

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" // of rsa-oaep-mgf1p, which needs no resistance to collisions
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"tamga/gost/gost28147"
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig/budget"
	"tamga/sig/xmltree"
)

// Encryption has the choices of the sender.
type Encryption struct {
	// Part is what is encrypted.
	Part Part
	// Transport is the suite whose identifier names the encrypted keys: suite.GOST2001,
	// suite.GOST2012x256 or suite.GOST2012x512. nil: that of each key. Some receivers want the identifier of
	// 2001 with every key. Keys of RSA are not affected.
	Transport *suite.Suite
	// Rand is the source of keys and vectors; nil means crypto/rand.
	Rand io.Reader
}

// Encrypt encrypts a document for the recipients and writes the result, XML in the encoding of the document,
// to dst. The document must be well-formed. Everything outside the encrypted part stays as it is.
//
// The content is encrypted with GOST 28147-89 in CFB with key meshing for keys of GOST R 34.10, and with
// AES-256-GCM for keys of RSA. One document has one cipher, so recipients of both kinds are refused. A
// recipient that cannot receive is a *cms.RecipientError, before anything is written. Dates, key usage and
// trust of the certificates are not checked.
func Encrypt(ctx context.Context, dst io.Writer, document []byte, recipients []*x509gost.Certificate, o Encryption) error {
	if len(recipients) == 0 || len(recipients) > cms.MaxRecipients {
		return fmt.Errorf("xmlenc: %d recipients; there must be 1 to %d", len(recipients), cms.MaxRecipients)
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	method, err := methodFor(recipients)
	if err != nil {
		return err
	}
	ctx, b := budget.Of(ctx, int64(len(document)))
	b.Begin()
	defer b.End()
	t, err := xmltree.Parse(document, xmltree.Options{Budget: b})
	if err != nil {
		return err
	}
	for n := range t.Find(t.Root(), nsEnc, "EncryptedData") {
		return malformed(t, n, "the document contains encrypted data already: a receiver could not tell what to decrypt")
	}
	part := t.Span(t.Root())
	if o.Part == Content {
		part = t.Content(t.Root())
	}
	// The copy of the part, its text in Base64, and the result.
	if err := errors.Join(b.Hold(5*int64(part.Len())), b.Spend(int64(part.Len()))); err != nil {
		return err
	}
	key := make([]byte, method.keySize)
	defer clear(key)
	if _, err := io.ReadFull(o.Rand, key); err != nil {
		return fmt.Errorf("xmlenc: drawing a key: %w", err)
	}
	var out strings.Builder
	out.WriteString(`<xenc:EncryptedData xmlns:xenc="` + nsEnc + `" Type="` + o.Part.uri() + `"><xenc:EncryptionMethod Algorithm="` + method.uri + `"/>` +
		`<ds:KeyInfo xmlns:ds="` + nsDS + `">`)
	for i, c := range recipients {
		if err := b.Spend(budget.Signature); err != nil {
			return err
		}
		value, transport, err := encryptKey(c, key, method, o)
		if err != nil {
			return fmt.Errorf("xmlenc: encrypting the key for recipient %d: %w", i, err)
		}
		if err := b.Hold(2 * int64(len(c.Raw)+len(value)+1000)); err != nil {
			return err
		}
		out.WriteString(`<xenc:EncryptedKey><xenc:EncryptionMethod Algorithm="` + transport + `"/><ds:KeyInfo><ds:X509Data><ds:X509Certificate>` +
			base64.StdEncoding.EncodeToString(c.Raw) + `</ds:X509Certificate></ds:X509Data></ds:KeyInfo><xenc:CipherData><xenc:CipherValue>` +
			base64.StdEncoding.EncodeToString(value) + `</xenc:CipherValue></xenc:CipherData></xenc:EncryptedKey>`)
	}
	sealed, err := method.encrypt(o.Rand, key, t.Slice(part))
	if err != nil {
		return err
	}
	out.WriteString(`</ds:KeyInfo><xenc:CipherData><xenc:CipherValue>`)
	out.WriteString(base64.StdEncoding.EncodeToString(sealed))
	out.WriteString(`</xenc:CipherValue></xenc:CipherData></xenc:EncryptedData>`)
	edit := xmltree.Edit{Span: part, Text: out.String()}
	if o.Part == Content {
		edit = t.SetContent(t.Root(), out.String())
	}
	result, err := t.Splice(edit)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err = result.WriteTo(dst)
	return err
}

// methodFor returns the cipher that serves all recipients.
func methodFor(recipients []*x509gost.Certificate) (*method, error) {
	var gost bool
	for i, c := range recipients {
		switch {
		case c.Suite == nil:
			return nil, &cms.RecipientError{Index: i, Err: fmt.Errorf("its key cannot receive documents: %w", c.KeyError)}
		case !c.Suite.IsGOST() && c.Suite != suite.RSASHA256:
			return nil, &cms.RecipientError{Index: i, Err: fmt.Errorf("keys of %s cannot receive encrypted XML", c.Suite.Title)}
		case i > 0 && c.Suite.IsGOST() != gost:
			return nil, &cms.RecipientError{Index: i, Err: errors.New("no cipher serves keys of GOST R 34.10 and of RSA in one document: encrypt two")}
		}
		gost = c.Suite.IsGOST()
	}
	if !gost {
		return methodNamed(nsEnc11 + "aes256-gcm"), nil
	}
	// The content has the parameter set of the encrypted keys. Programs of the time of 34.10-2001 do not
	// know SBoxZ.
	box := gost28147.SBoxZ
	for _, c := range recipients {
		if c.Suite == suite.GOST2001 {
			box = gost28147.SBoxA
		}
	}
	m := *methodNamed(nsPro + "gost28147")
	m.box = box
	return &m, nil
}

// transports has the identifiers of encrypted keys of GOST.
var transports = map[*suite.Suite]string{
	suite.GOST2001:     nsPro + "transport-gost2001",
	suite.GOST2012x256: nsPro + "transport-gost2012-256",
	suite.GOST2012x512: nsPro + "transport-gost2012-512",
}

const transportOAEP = nsEnc + "rsa-oaep-mgf1p"

// encryptKey returns the value of an EncryptedKey and the identifier of its method.
func encryptKey(c *x509gost.Certificate, key []byte, m *method, o Encryption) (value []byte, transport string, err error) {
	if public, ok := c.PublicKey.(*rsa.PublicKey); ok {
		value, err = rsa.EncryptOAEP(sha1.New(), o.Rand, public, key, nil)
		return value, transportOAEP, err
	}
	by := c.Suite
	if o.Transport != nil {
		by = o.Transport
	}
	transport, ok := transports[by]
	if !ok {
		return nil, "", fmt.Errorf("%s does not name encrypted keys", by.Title)
	}
	value, err = cms.TransportKey(o.Rand, c, m.box, key)
	return value, transport, err
}
