// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/x509gost"
)

// Integrity reports whether an authentication code covered a content.
type Integrity int

const (
	// NotVerified: the form of the message has no code over the content. If bytes were changed on
	// the way, only the plaintext shows it.
	NotVerified Integrity = iota
	// Verified: the content has the code that the sender computed with the key of the content.
	Verified
)

// String returns the word of the interfaces: "None" or "Verified".
func (i Integrity) String() string {
	if i == Verified {
		return "Verified"
	}
	return "None"
}

// Sink takes plaintext that is not checked yet. Nothing of it may leave the sink before Commit.
type Sink interface {
	// Write takes the next part of the plaintext.
	io.Writer
	// Commit is called once, after the last part, if the message is right. Its error is
	// the error of Decrypt. A sink that cannot commit destroys all parts.
	Commit() error
	// Discard is called once, instead of Commit, if the message is not right or Decrypt
	// fails. The sink destroys all parts.
	Discard()
}

// Buffer is a Sink in memory. The zero value takes nothing: set Limit.
type Buffer struct {
	// Limit is the largest number of bytes of plaintext.
	Limit int

	text      []byte
	committed bool
}

// Write takes a part. It refuses one that exceeds the limit.
func (b *Buffer) Write(p []byte) (int, error) {
	if len(p) > b.Limit-len(b.text) {
		return 0, fmt.Errorf("cms: the plaintext has more than %d bytes", b.Limit)
	}
	b.text = append(b.text, p...)
	return len(p), nil
}

// Commit makes Bytes return the plaintext.
func (b *Buffer) Commit() error {
	b.committed = true
	return nil
}

// Discard wipes the plaintext.
func (b *Buffer) Discard() {
	clear(b.text)
	b.text = nil
}

// Bytes returns the plaintext. It returns nil before Commit.
func (b *Buffer) Bytes() []byte {
	if !b.committed {
		return nil
	}
	return b.text
}

// Opening has the certificate and the key that Decrypt needs.
type Opening struct {
	// Certificate is the certificate of the recipient, and Key its private key.
	Certificate *x509gost.Certificate
	Key         RecipientKey
	// Originator is the certificate of the sender, for a message that only names it. nil: only
	// the certificates in the message are looked at.
	Originator *x509gost.Certificate
}

// Recipient returns the encrypted key that Decrypt uses with a certificate: the first one for it
// whose algorithms are supported. The error is ErrNotRecipient if the message names other certificates
// only, or says why the encrypted key cannot be used. Recipient needs no private key, so it finds out which
// certificates open a message.
func (e *Enveloped) Recipient(c *x509gost.Certificate) (*Recipient, error) {
	p, err := e.plan(c)
	return p.recipient, err
}

// plan is how a message is decrypted for a certificate.
type plan struct {
	recipient     *Recipient
	unwrap        unwrapper
	content       *ContentCipher
	state         contentState
	authenticated bool
}

func (e *Enveloped) plan(c *x509gost.Certificate) (plan, error) {
	err := ErrNotRecipient
	for _, r := range e.Recipients {
		if !r.Names(c) {
			continue
		}
		q, why := e.planFor(r, c)
		if why == nil {
			return q, nil
		}
		if err == ErrNotRecipient {
			err = why
		}
	}
	return plan{}, err
}

func (e *Enveloped) planFor(r *Recipient, c *x509gost.Certificate) (p plan, err error) {
	p.recipient = r
	if p.content, p.authenticated, err = e.ContentCipher(); err != nil {
		return plan{}, fmt.Errorf("cms: %w", err)
	}
	if p.state, err = p.content.read(e.Cipher.Params); err != nil {
		return plan{}, err
	}
	if p.unwrap, err = r.unwrapper(c, p.content.keySize); err != nil {
		return plan{}, err
	}
	return p, nil
}

// partSize is the number of bytes that are decrypted or encrypted at a time. It is a multiple of the
// blocks of all ciphers.
const partSize = 64 << 10

// Decrypt decrypts the message for one recipient and writes the plaintext to sink. It calls exactly
// one of Commit and Discard, the former only after the last check, and it takes constant memory.
//
// After a wrong key or a changed encrypted key, Decrypt continues with a random key and
// returns ErrDecrypt at the end, as for a wrong padding or code, so that the time does not tell them
// apart. A message without a code over its content, for which Integrity is NotVerified, may decrypt
// to other bytes than the sender encrypted. This includes messages for an RSA key with
// PKCS #1 v1.5 padding: a wrong key shows only in the plaintext, which is random then.
func (e *Enveloped) Decrypt(ctx context.Context, o Opening, sink Sink) (Integrity, error) {
	integrity, err := e.decrypt(ctx, o, sink)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		sink.Discard()
		return NotVerified, err
	}
	if err := sink.Commit(); err != nil {
		return NotVerified, err
	}
	return integrity, nil
}

func (e *Enveloped) decrypt(ctx context.Context, o Opening, sink Sink) (Integrity, error) {
	p, err := e.plan(o.Certificate)
	if err != nil {
		return NotVerified, err
	}
	if e.Detached {
		return NotVerified, errors.New("cms: the message does not include its content")
	}
	size := e.ContentSize()
	switch padded := p.state.padded(0); {
	case padded > 0 && (size%padded != 0 || size == 0):
		return NotVerified, errors.New("cms: the encrypted content is not a whole number of blocks")
	case p.content.isGCM() && size > gcmMost:
		return NotVerified, fmt.Errorf("cms: the content has more than the %d bytes that AES-GCM encrypts", int64(gcmMost))
	}
	code, err := e.code(p.state.macSize(p.authenticated))
	if err != nil {
		return NotVerified, err
	}

	failed := false
	key, err := p.unwrap(ctx, o, e)
	switch {
	case errors.Is(err, ErrDecrypt):
		failed = true
		if key, err = draw(rand.Reader, p.content.keySize); err != nil {
			return NotVerified, err
		}
	case err != nil:
		return NotVerified, err
	}
	defer clear(key)
	d, err := p.state.decrypter(key, e.authAttrs, code, p.authenticated)
	if err != nil {
		return NotVerified, err
	}
	if err := pour(ctx, sink, &contentReader{source: e.source, left: e.Content}, size, d.decrypt); err != nil {
		return NotVerified, err
	}
	if right := d.right(); !right || failed {
		return NotVerified, ErrDecrypt
	}
	if p.authenticated {
		return Verified, nil
	}
	return NotVerified, nil
}

// pour copies size bytes in parts through change, which gets whether a part is the last one. The
// last part may be empty.
func pour(ctx context.Context, dst io.Writer, src io.Reader, size int64, change func(part []byte, last bool) []byte) error {
	buffer := make([]byte, min(size, partSize), min(size, partSize)+16) // room for padding
	defer clear(buffer[:cap(buffer)])
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := buffer[:min(size, partSize)]
		if _, err := io.ReadFull(src, part); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("cms: reading the content: %w", err)
		}
		size -= int64(len(part))
		out := change(part, size == 0)
		if len(out) > 0 {
			if _, err := dst.Write(out); err != nil {
				return err
			}
		}
		if size == 0 {
			return nil
		}
	}
}

// code returns the authentication code of the content, of size bytes. size is 0 for none.
func (e *Enveloped) code(size int) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	if e.Authenticated {
		if len(e.mac) != size {
			return nil, fmt.Errorf("cms: mac has %d bytes; the parameters of the cipher say %d", len(e.mac), size)
		}
		return e.mac, nil
	}
	var found []byte
	for _, a := range e.Attributes {
		if !a.OID.Equal(OIDContentMAC) {
			continue
		}
		if found != nil || len(a.Values) != 1 {
			return nil, errors.New("cms: the authentication code of the content is there more than once")
		}
		in := cryptobyte.String(a.Values[0])
		var value cryptobyte.String
		if !in.ReadASN1(&value, cbasn1.OCTET_STRING) || len(value) != size {
			return nil, fmt.Errorf("cms: the authentication code of the content must be an OCTET STRING of %d bytes", size)
		}
		found = bytes.Clone(value)
	}
	if found == nil {
		return nil, errors.New("cms: the message has no authentication code of its content, which its cipher requires")
	}
	return found, nil
}
