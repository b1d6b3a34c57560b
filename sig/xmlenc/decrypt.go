// SPDX-License-Identifier: Apache-2.0

package xmlenc

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"strings"

	"tamga/pki/cms"
	"tamga/pki/x509gost"
	"tamga/sig/budget"
	"tamga/sig/xmltree"
)

// Encrypted is a document with encrypted data. It is read only after Parse.
type Encrypted struct {
	// Recipients has the encrypted keys in the order of the document.
	Recipients []*Recipient

	tree   *xmltree.Tree
	data   xmltree.Node // EncryptedData
	alone  bool         // the plaintext is not a part of an XML document
	method *method      // nil if it is not supported
	uri    string       // of the method
	value  xmltree.Node // CipherValue
}

// Recipient is an EncryptedKey. Its recipient is named by the certificate or by the identifier of its key.
type Recipient struct {
	// Certificate is the DER of the recipient's certificate, KeyID the identifier of the key. The
	// document may have one of them, both or none.
	Certificate, KeyID []byte
	// Transport is the identifier of the method. For keys of GOST R 34.10 it says nothing: programs write
	// that of another suite, so the key decides.
	Transport string

	isRSA bool  // by the method
	err   error // why the key cannot be used
	value xmltree.Node
}

// Names reports whether the encrypted key is for a certificate.
func (r *Recipient) Names(c *x509gost.Certificate) bool {
	if r.Certificate != nil {
		return bytes.Equal(r.Certificate, c.Raw)
	}
	return r.KeyID != nil && bytes.Equal(r.KeyID, c.SubjectKeyID)
}

// Parse reads a document with encrypted data. It returns ErrNotEncrypted for another document. Time and
// memory are linear in the size and charged to the budget of ctx, which must be the same for Decrypt.
func Parse(ctx context.Context, document []byte) (*Encrypted, error) {
	_, b := budget.Of(ctx, int64(len(document)))
	t, err := xmltree.Parse(document, xmltree.Options{Budget: b})
	if err != nil {
		return nil, err
	}
	e := &Encrypted{tree: t, data: xmltree.None}
	for n := range t.Find(t.Root(), nsEnc, "EncryptedData") {
		if e.data != xmltree.None {
			return nil, malformed(t, n, "the document has several EncryptedData, of which programs decrypt different ones")
		}
		e.data = n
	}
	if e.data == xmltree.None {
		return nil, ErrNotEncrypted
	}
	switch kind, _ := t.Get(e.data, "Type"); kind {
	case Element.uri(), Content.uri():
	default:
		if e.data != t.Root() {
			return nil, malformed(t, e.data, "the Type %q is not a part of an XML document", shortened(kind))
		}
		e.alone = true
	}
	parts, err := children(t, e.data, "EncryptionMethod", "KeyInfo", "CipherData", "EncryptionProperties")
	if err != nil {
		return nil, err
	}
	if e.value, err = cipherValue(t, e.data, parts["CipherData"]); err != nil {
		return nil, err
	}
	method, given := parts["EncryptionMethod"]
	if !given {
		return nil, malformed(t, e.data, "EncryptedData has no EncryptionMethod")
	}
	e.uri, _ = t.Get(method, "Algorithm")
	e.method = methodNamed(e.uri)
	if e.method != nil {
		for n := range t.Elements(method) {
			return nil, malformed(t, n, "%s is not a parameter of %s", t.Name(n), e.uri)
		}
	}
	info, given := parts["KeyInfo"]
	if !given {
		return nil, malformed(t, e.data, "EncryptedData has no KeyInfo")
	}
	for n := range t.Elements(info) {
		switch {
		case t.Is(n, nsEnc, "EncryptedKey"):
			if len(e.Recipients) == cms.MaxRecipients {
				return nil, malformed(t, n, "the document has more than %d recipients", cms.MaxRecipients)
			}
			r, err := readRecipient(t, n)
			if err != nil {
				return nil, err
			}
			e.Recipients = append(e.Recipients, r)
		case t.Is(n, nsDS, "RetrievalMethod"):
			return nil, malformed(t, n, "an encrypted key at another place (RetrievalMethod) is not supported")
		}
	}
	return e, nil
}

// children returns the child elements with these names by their names. KeyInfo is in the namespace of
// XMLDSig, the others in that of XML Encryption. Other elements and second ones are errors.
func children(t *xmltree.Tree, n xmltree.Node, names ...string) (map[string]xmltree.Node, error) {
	found := make(map[string]xmltree.Node, len(names))
next:
	for c := range t.Elements(n) {
		for _, name := range names {
			space := nsEnc
			if name == "KeyInfo" {
				space = nsDS
			}
			if t.Is(c, space, name) {
				if _, twice := found[name]; twice {
					return nil, malformed(t, c, "%s is there twice", name)
				}
				found[name] = c
				continue next
			}
		}
		return nil, malformed(t, c, "%s is not expected in %s", t.Name(c), t.Name(n))
	}
	return found, nil
}

// cipherValue returns the CipherValue of a CipherData, which may be missing.
func cipherValue(t *xmltree.Tree, of, data xmltree.Node) (xmltree.Node, error) {
	if !t.Is(data, nsEnc, "CipherData") {
		return xmltree.None, malformed(t, of, "%s has no CipherData", t.Name(of))
	}
	for n := range t.Elements(data) {
		if t.Is(n, nsEnc, "CipherReference") {
			return xmltree.None, malformed(t, n, "encrypted bytes at another place (CipherReference) are not read")
		}
	}
	parts, err := children(t, data, "CipherValue")
	if err != nil {
		return xmltree.None, err
	}
	value, given := parts["CipherValue"]
	if !given {
		return xmltree.None, malformed(t, data, "CipherData has no CipherValue")
	}
	for n := range t.Elements(value) {
		return xmltree.None, malformed(t, n, "CipherValue contains %s", t.Name(n))
	}
	return value, nil
}

func readRecipient(t *xmltree.Tree, n xmltree.Node) (*Recipient, error) {
	parts, err := children(t, n, "EncryptionMethod", "KeyInfo", "CipherData", "EncryptionProperties", "ReferenceList", "CarriedKeyName")
	if err != nil {
		return nil, err
	}
	r := &Recipient{}
	if r.value, err = cipherValue(t, n, parts["CipherData"]); err != nil {
		return nil, err
	}
	method, given := parts["EncryptionMethod"]
	if !given {
		return nil, malformed(t, n, "EncryptedKey has no EncryptionMethod")
	}
	r.Transport, _ = t.Get(method, "Algorithm")
	r.isRSA, r.err = readTransport(t, method)
	if _, refers := parts["ReferenceList"]; refers {
		r.err = errors.New("xmlenc: a ReferenceList is not supported")
	}
	info, given := parts["KeyInfo"]
	if !given {
		return r, nil
	}
	for data := range t.Elements(info) {
		if !t.Is(data, nsDS, "X509Data") {
			continue
		}
		for item := range t.Elements(data) {
			var to *[]byte
			switch {
			case t.Is(item, nsDS, "X509Certificate"):
				to = &r.Certificate
			case t.Is(item, nsDS, "X509SKI"):
				to = &r.KeyID
			default:
				continue
			}
			if *to != nil {
				return nil, malformed(t, item, "%s is there twice: the key is for one recipient", t.Name(item).Local)
			}
			if *to, err = base64Text(t, item, 2*x509gost.MaxCertificate); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// readTransport returns why a method of encrypted keys is not supported, and whether it is that of RSA.
// RSA-OAEP has SHA-1, which needs no resistance to collisions there; programs hardly write another hash.
func readTransport(t *xmltree.Tree, method xmltree.Node) (isRSA bool, err error) {
	uri, _ := t.Get(method, "Algorithm")
	for _, known := range transports {
		if uri == known {
			return false, nil
		}
	}
	if uri != transportOAEP {
		return false, fmt.Errorf("xmlenc: the key encryption %q is not supported", shortened(uri))
	}
	for n := range t.Elements(method) {
		if algorithm, _ := t.Get(n, "Algorithm"); !t.Is(n, nsDS, "DigestMethod") || algorithm != nsDS+"sha1" {
			return true, malformed(t, n, "the parameter %s of RSA-OAEP is not supported, except as the digest SHA-1", t.Name(n))
		}
	}
	return true, nil
}

// shortened bounds a text from outside that an error repeats.
func shortened(s string) string {
	const most = 100
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}

// base64Text decodes the text of an element of at most most characters, within the budget of the document.
func base64Text(t *xmltree.Tree, n xmltree.Node, most int) ([]byte, error) {
	b := t.Budget()
	size := int64(t.Content(n).Len())
	if err := errors.Join(b.Hold(3*size), b.Spend(size)); err != nil {
		return nil, err
	}
	return t.Base64(n, most, func(format string, args ...any) error { return malformed(t, n, format, args...) })
}

// Recipient returns the encrypted key that Decrypt uses with a certificate. The error is
// cms.ErrNotRecipient if the document names other certificates only, or says why the key cannot be used.
// It needs no private key, so it finds out which certificates open a document.
func (e *Encrypted) Recipient(c *x509gost.Certificate) (*Recipient, error) {
	r, _, err := e.plan(c)
	return r, err
}

// unwrap returns the key of the content, and the method with what the encrypted key says of it.
type unwrap func(ctx context.Context, own cms.RecipientKey) (key []byte, m *method, err error)

func (e *Encrypted) plan(c *x509gost.Certificate) (*Recipient, unwrap, error) {
	err := cms.ErrNotRecipient
	for _, r := range e.Recipients {
		if !r.Names(c) {
			continue
		}
		u, why := e.unwrapper(r, c)
		if why == nil {
			return r, u, nil
		}
		if err == cms.ErrNotRecipient {
			err = why
		}
	}
	return nil, nil, err
}

func (e *Encrypted) unwrapper(r *Recipient, c *x509gost.Certificate) (unwrap, error) {
	if r.err != nil {
		return nil, r.err
	}
	if e.method == nil {
		return nil, fmt.Errorf("xmlenc: the encryption %q is not supported", shortened(e.uri))
	}
	if c.PublicKey == nil {
		return nil, fmt.Errorf("xmlenc: the key of the certificate: %w", c.KeyError)
	}
	value, err := base64Text(e.tree, r.value, maxKeyText)
	if err != nil {
		return nil, err
	}
	public, isRSA := c.PublicKey.(*rsa.PublicKey)
	if isRSA != r.isRSA || isRSA == e.method.gost {
		return nil, fmt.Errorf("xmlenc: the encryption %s with %s is not for keys of %s", shortened(e.uri), r.Transport, c.Suite.Title)
	}
	if isRSA {
		if len(value) != public.Size() {
			return nil, fmt.Errorf("xmlenc: the encrypted key has %d bytes; the RSA key of the recipient has %d", len(value), public.Size())
		}
		return func(ctx context.Context, own cms.RecipientKey) ([]byte, *method, error) {
			key, err := own.Decrypt(ctx, cms.KeyTransport{Ciphertext: value, Size: e.method.keySize, OAEP: &rsa.OAEPOptions{Hash: crypto.SHA1, MGFHash: crypto.SHA1}})
			if err == nil && len(key) != e.method.keySize {
				clear(key)
				err = cms.ErrDecrypt
			}
			return key, e.method, err
		}, nil
	}
	transported, err := cms.ParseTransportedKey(value, c)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, own cms.RecipientKey) ([]byte, *method, error) {
		m := *e.method
		m.box = transported.Set
		key, err := transported.Open(ctx, own)
		return key, &m, err
	}, nil
}

// maxKeyText is the limit for the text of an encrypted key, in characters.
const maxKeyText = 16 << 10

// Decrypt decrypts the data for one recipient and writes the document with the plaintext in its place to
// sink. If the plaintext is not a part of an XML document, it is written alone. Decrypt calls exactly one of
// Commit and Discard.
//
// The error is cms.ErrDecrypt for a wrong key, a changed encrypted key and a wrong code, in the same time. The
// result is cms.NotVerified for GOST 28147-89, which has no code: a changed content decrypts to other bytes. It is
// cms.NotVerified, too, if the document has more than the data, since no code covers what is around it. The plaintext
// is not parsed.
func (e *Encrypted) Decrypt(ctx context.Context, o cms.Opening, sink cms.Sink) (cms.Integrity, error) {
	integrity, err := e.decrypt(ctx, o, sink)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		sink.Discard()
		return cms.NotVerified, err
	}
	if err := sink.Commit(); err != nil {
		return cms.NotVerified, err
	}
	return integrity, nil
}

func (e *Encrypted) decrypt(ctx context.Context, o cms.Opening, sink io.Writer) (cms.Integrity, error) {
	_, unwrap, err := e.plan(o.Certificate)
	if err != nil {
		return cms.NotVerified, err
	}
	sealed, err := base64Text(e.tree, e.value, len(e.tree.Text()))
	if err != nil {
		return cms.NotVerified, err
	}
	b := e.tree.Budget()
	if err := b.Spend(budget.Signature + int64(len(sealed))); err != nil {
		return cms.NotVerified, err
	}
	key, m, err := unwrap(ctx, o.Key)
	wrong := errors.Is(err, cms.ErrDecrypt)
	if wrong {
		key = make([]byte, e.method.keySize)
		_, err = io.ReadFull(rand.Reader, key)
	}
	if err != nil {
		return cms.NotVerified, err
	}
	defer clear(key)
	text, err := m.decrypt(key, sealed, wrong)
	if err != nil {
		return cms.NotVerified, err
	}
	defer clear(text)
	integrity := cms.Verified
	if m.gost {
		integrity = cms.NotVerified
	}
	if e.alone {
		_, err = sink.Write(text)
		return integrity, err
	}
	if !e.whole() {
		integrity = cms.NotVerified
	}
	if err := b.Hold(2 * int64(len(text))); err != nil {
		return cms.NotVerified, err
	}
	result, err := e.tree.Splice(xmltree.Edit{Span: e.tree.Span(e.data), Text: string(text)})
	if err != nil {
		return cms.NotVerified, err
	}
	_, err = result.WriteTo(sink)
	return integrity, err
}

// whole reports whether the document is the encrypted data, but for an XML declaration and white space.
func (e *Encrypted) whole() bool {
	text, at := e.tree.Text(), e.tree.Span(e.data)
	before := text[:at.Start]
	if bytes.HasPrefix(before, []byte("<?xml ")) {
		_, before, _ = bytes.Cut(before, []byte("?>"))
	}
	return len(bytes.TrimSpace(before))+len(bytes.TrimSpace(text[at.End:])) == 0
}
