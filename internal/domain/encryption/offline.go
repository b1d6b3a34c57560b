// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"errors"
	"io"

	"tamga/internal/domain/fault"
	"tamga/pki/cms"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// The functions of this file are for programs that have the certificates and the keys themselves. They use the
// table of formats and no service.

// Encrypter encrypts documents by the parameters of a format.
type Encrypter struct {
	kind Type
	options
}

// Encrypter reads the parameters of encryption except ParamAllowInvalid. The fault is invalid_parameters.
func (t Type) Encrypter(random io.Reader, params map[string]string) (*Encrypter, error) {
	form, err := t.row().options(random, params)
	return &Encrypter{t, form}, err
}

// Encrypt writes the message of a document of size bytes to dst. CMS takes -1 for a size that is not known. An error
// about a recipient is a *cms.RecipientError, before anything is written. The fault is invalid_content.
func (e *Encrypter) Encrypt(ctx context.Context, dst io.Writer, document io.Reader, size int64, recipients []*x509gost.Certificate) error {
	from := &failing{Reader: document}
	err := e.encrypt(ctx, dst, from, size, recipients)
	_, recipient := errors.AsType[*cms.RecipientError](err)
	switch {
	case err == nil || recipient || ctx.Err() != nil || e.kind == CMS:
		return err
	case from.err != nil:
		return from.err
	}
	return invalidDocument(e.kind, err)
}

// failing keeps the error of a reader, which is no fault of the document.
type failing struct {
	io.Reader
	err error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}

// Message is an encrypted message.
type Message struct {
	message
	from *source
}

// Read reads an encrypted message, which is no text any more; see [cms.TextFormOf]. The caller closes it. The fault is
// invalid_content.
func (t Type) Read(ctx context.Context, document sig.Document) (*Message, error) {
	from := &source{Document: document}
	m, err := t.parse(ctx, from, nil)
	if err != nil {
		return nil, err
	}
	return &Message{m, from}, nil
}

// Opens returns why a certificate does not open the message, nil if it does as far as can be seen without its key.
// cms.ErrNotRecipient: the message names other certificates only.
func (m *Message) Opens(c *x509gost.Certificate) error {
	err := m.recipient(c)
	if err == nil || errors.Is(err, cms.ErrNotRecipient) {
		return err
	}
	return invalidMessage(err)
}

// Decrypt decrypts the message for one recipient; see [cms.Enveloped.Decrypt]. An error that says what the message
// or its sender did is a fault: invalid_content, parameters_required.
func (m *Message) Decrypt(ctx context.Context, o cms.Opening, sink cms.Sink) (cms.Integrity, error) {
	to := &keptSink{Sink: sink}
	integrity, err := m.message.Decrypt(ctx, o, to)
	switch {
	case err == nil || ctx.Err() != nil:
		return integrity, err
	case to.err != nil:
		return 0, to.err
	case m.from.err != nil:
		return 0, m.from.err
	}
	return 0, undecrypted(err)
}

// keptSink keeps the error of a sink, which is no fault of the message.
type keptSink struct {
	cms.Sink
	err error
}

// Write implements cms.Sink.
func (k *keptSink) Write(p []byte) (int, error) {
	n, err := k.Sink.Write(p)
	k.err = err
	return n, err
}

// Commit implements cms.Sink.
func (k *keptSink) Commit() error {
	k.err = k.Sink.Commit()
	return k.err
}

// undecrypted returns the fault of a message that does not decrypt.
func undecrypted(err error) error {
	switch {
	case errors.Is(err, cms.ErrDecrypt):
		return fault.New(fault.InvalidContent, "the message does not decrypt: it was encrypted for another key, or it was changed").With(err)
	case errors.Is(err, cms.ErrOriginator):
		return fault.Newf(fault.ParametersRequired, "the message only names the certificate of its sender: send it as Decryption.Parameters.%s", ParamOriginator).With(err)
	}
	return invalidMessage(err)
}

// Close releases what the message holds.
func (m *Message) Close() { m.close() }
