// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig/budget"
	"tamga/sig/xmlenc"
)

// Type is a format of encrypted messages: the name of a row of types.
type Type string

const (
	// CMS is EnvelopedData and AuthEnvelopedData.
	CMS Type = "CMS"
	// XML is XML Encryption: a document with EncryptedData.
	XML Type = "XML"
	// Any is the format that each message has. It is for decryption alone, and no interface of programs has it.
	Any Type = "Any"
)

// typeRow is a format.
type typeRow struct {
	name   Type
	number string
	// options reads the parameters of encryption except AllowInvalid.
	options func(random io.Reader, params map[string]string) (options, error)
	// read reads an encrypted message. It is closed after use. A text is decoded into a scratch document; scratch
	// nil: it is refused.
	read func(ctx context.Context, from *source, scratch func() *signing.Intake) (message, error)
	// ending is what names of messages end with; "": they are the names of the documents.
	ending string
}

var types = []*typeRow{
	{CMS, "0", readCMSOptions, readCMS, Endings[0]},
	{XML, "1", readXMLOptions, readXML, ""},
}

// options is how documents are encrypted.
type options interface {
	// encrypt writes the message of a document of size bytes. CMS takes -1 for a size that is not known. An error
	// about a recipient is a *cms.RecipientError.
	encrypt(ctx context.Context, dst io.Writer, document io.Reader, size int64, recipients []*x509gost.Certificate) error
}

// message is an encrypted message.
type message interface {
	// recipients yields the identifiers of recipients in the order of the message.
	recipients() iter.Seq[recipientID]
	// recipient returns why a certificate does not open the message, cms.ErrNotRecipient if it names others
	// only.
	recipient(c *x509gost.Certificate) error
	Decrypt(ctx context.Context, o cms.Opening, sink cms.Sink) (cms.Integrity, error)
	format() Type
	close()
}

// recipientID is how a message names a recipient: by one of the fields.
type recipientID struct {
	serial, keyID, certificate []byte // certificate is DER
	names                      func(c *x509gost.Certificate) bool
}

// anyType is the row of Any.
var anyType = &typeRow{name: Any, read: readAny}

// readAny reads an encrypted XML document, which begins with <, or else a CMS message.
func readAny(ctx context.Context, from *source, scratch func() *signing.Intake) (message, error) {
	begin := make([]byte, min(from.Size(), 64))
	if _, err := from.ReadAt(begin, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if begin = bytes.TrimLeft(bytes.TrimPrefix(begin, []byte("\ufeff")), " \t\r\n"); len(begin) > 0 && begin[0] == '<' {
		return readXML(ctx, from, scratch)
	}
	return readCMS(ctx, from, scratch)
}

// row returns the row of a type.
func (t Type) row() *typeRow {
	if t == Any {
		return anyType
	}
	for _, r := range types {
		if r.name == t {
			return r
		}
	}
	return types[0]
}

// ParseType reads a type by its name in any letter case or by its number. The name of the parameter is where. ""
// is CMS.
func ParseType(where, text string) (Type, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return CMS, nil
	}
	for _, r := range types {
		if text == r.number || strings.EqualFold(text, string(r.name)) {
			return r.name, nil
		}
	}
	return "", fault.Newf(fault.InvalidParameters, "%s: %.40q is unknown: want CMS (0) or XML (1)", where, text)
}

// cmsMessage is a message of CMS.
type cmsMessage struct {
	*cms.Enveloped
	decoded *signing.Intake // its bytes, if it came as text; nil: it did not
}

// readCMS reads a CMS message.
func readCMS(ctx context.Context, from *source, scratch func() *signing.Intake) (message, error) {
	m := cmsMessage{}
	err := m.decode(ctx, from, scratch)
	if err == nil {
		_, b := budget.Of(ctx, from.Size())
		m.Enveloped, err = cms.ParseEnvelopedWithin(from, from.Size(), b.Hold)
	}
	if err == nil && m.Detached {
		err = fault.New(fault.InvalidContent, "the encrypted message does not include its content")
	}
	if err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

// decode replaces a message that is text by its bytes, in a scratch document.
func (m *cmsMessage) decode(ctx context.Context, from *source, scratch func() *signing.Intake) error {
	if scratch == nil {
		return nil
	}
	for range 2 { // UTF-16 and the form of its text
		head := make([]byte, min(from.Size(), cms.TextHead))
		if _, err := from.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		form := cms.TextFormOf(head)
		if form == cms.NoText {
			return nil
		}
		text := m.decoded
		m.decoded = scratch()
		_, err := form.Decode(m.decoded, &contextReader{ctx, operation.NewSection(from, 0, from.Size())})
		if text != nil {
			text.Close()
		}
		if err == nil {
			err = m.decoded.Finish()
		}
		if err != nil {
			if !errors.Is(err, cms.ErrText) {
				from.err = err // of the text or of the scratch document
			}
			return err
		}
		from.Document = m.decoded
		if form != cms.UTF16 {
			return nil
		}
	}
	return nil
}

// contextReader is a reader that fails once its context has ended.
type contextReader struct {
	ctx context.Context
	io.Reader
}

// Read implements [io.Reader].
func (r *contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

func (m cmsMessage) recipients() iter.Seq[recipientID] {
	return func(yield func(recipientID) bool) {
		for _, r := range m.Recipients {
			if !yield(recipientID{serial: r.Serial, keyID: r.KeyID, names: r.Names}) {
				return
			}
		}
	}
}

func (m cmsMessage) recipient(c *x509gost.Certificate) error {
	_, err := m.Recipient(c)
	return err
}

func (cmsMessage) format() Type { return CMS }

func (m cmsMessage) close() {
	if m.decoded != nil {
		m.decoded.Close() // all of it was read
	}
}

// cmsOptions is the encryption of a CMS message.
type cmsOptions struct{ cms.Encryption }

func (o cmsOptions) encrypt(ctx context.Context, dst io.Writer, document io.Reader, size int64, recipients []*x509gost.Certificate) error {
	return cms.Encrypt(ctx, dst, document, size, recipients, o.Encryption)
}

// xmlMessage is an encrypted XML document, which is in memory.
type xmlMessage struct {
	*xmlenc.Encrypted
	budget *budget.Budget
}

// readXML reads an encrypted XML document.
func readXML(ctx context.Context, from *source, _ func() *signing.Intake) (message, error) {
	ctx, b := budget.Of(ctx, from.Size())
	b.Begin()
	document, err := whole(operation.NewSection(from, 0, from.Size()), from.Size(), b)
	if err == nil {
		var e *xmlenc.Encrypted
		if e, err = xmlenc.Parse(ctx, document); err == nil {
			return &xmlMessage{e, b}, nil
		}
	}
	b.End()
	return nil, err
}

// whole reads a document of size bytes into memory.
func whole(d io.Reader, size int64, b *budget.Budget) ([]byte, error) {
	if err := b.Hold(size); err != nil {
		return nil, err
	}
	document := make([]byte, size)
	_, err := io.ReadFull(d, document)
	return document, err
}

func (m *xmlMessage) recipients() iter.Seq[recipientID] {
	return func(yield func(recipientID) bool) {
		for _, r := range m.Recipients {
			if !yield(recipientID{keyID: r.KeyID, certificate: r.Certificate, names: r.Names}) {
				return
			}
		}
	}
}

func (m *xmlMessage) recipient(c *x509gost.Certificate) error {
	_, err := m.Recipient(c)
	return err
}

func (*xmlMessage) format() Type { return XML }

func (m *xmlMessage) close() { m.budget.End() }

// xmlOptions is the encryption of an XML document.
type xmlOptions struct{ xmlenc.Encryption }

func (o xmlOptions) encrypt(ctx context.Context, dst io.Writer, document io.Reader, size int64, recipients []*x509gost.Certificate) error {
	// The document is charged to the budget before it is read.
	ctx, b := budget.Of(ctx, size)
	b.Begin()
	defer b.End()
	text, err := whole(document, size, b)
	if err != nil {
		return err
	}
	return xmlenc.Encrypt(ctx, dst, text, recipients, o.Encryption)
}

// Parameters of encryption. Names and values are in any letter case.
const (
	ParamAlgorithm    = "Algorithm"     // CMS: of the content, a name of ciphers
	ParamIntegrity    = "Integrity"     // CMS: OMAC or None
	ParamManagement   = "KeyManagement" // CMS: Transport or Agreement, for GOST keys
	ParamPart         = "Part"          // XML: Element or Content
	ParamTransport    = "KeyTransport"  // XML: gost2001, gost2012-256 or gost2012-512: the identifier of encrypted keys
	ParamAllowInvalid = "AllowInvalid"  // True: recipients may be expired or revoked
)

// ciphers are those of ParamAlgorithm. Without the parameter it is GOST 28147-89 if a recipient has a GOST key, else
// AES256-CBC.
var ciphers = []*cms.ContentCipher{cms.GOST28147, cms.Magma, cms.Kuznyechik, cms.AES256CBC, cms.AES256GCM}

// parameter is one parameter of encryption.
type parameter struct{ name, value string }

func (p parameter) is(value string) bool { return strings.EqualFold(strings.TrimSpace(p.value), value) }

// refused is the fault of a value.
func (p parameter) refused(want string) error {
	return fault.Newf(fault.InvalidParameters, "Encryption.Parameters: %s: %.40q: want %s", p.name, p.value, want)
}

// unknown is the fault of a name.
func (p parameter) unknown(t Type, names ...string) error {
	return fault.Newf(fault.InvalidParameters, "Encryption.Parameters: %.64q is unknown: the parameters of %s are %s", p.name, t, strings.Join(append(names, ParamAllowInvalid), ", "))
}

func readCMSOptions(random io.Reader, params map[string]string) (options, error) {
	form := cms.Encryption{Rand: random}
	integrity := ""
	for name, value := range params {
		p := parameter{name, value}
		switch {
		case strings.EqualFold(name, ParamAlgorithm):
			var known []string
			for _, c := range ciphers {
				if known = append(known, c.Name); p.is(c.Name) {
					form.Cipher = c
				}
			}
			if form.Cipher == nil {
				return nil, p.refused(strings.Join(known, ", "))
			}
		case strings.EqualFold(name, ParamIntegrity):
			if integrity = strings.ToLower(strings.TrimSpace(value)); integrity != "omac" && integrity != "none" {
				return nil, p.refused("OMAC or None")
			}
		case strings.EqualFold(name, ParamManagement):
			if form.Agreement = p.is("Agreement"); !form.Agreement && !p.is("Transport") {
				return nil, p.refused("Transport or Agreement")
			}
		default:
			return nil, p.unknown(CMS, ParamAlgorithm, ParamIntegrity, ParamManagement)
		}
	}
	omac := form.Cipher == cms.Magma || form.Cipher == cms.Kuznyechik
	switch {
	case integrity == "omac" && !omac:
		return nil, fault.New(fault.InvalidParameters, "Encryption.Parameters: Integrity: only Magma and Kuznyechik have OMAC: give one of them as Algorithm")
	case integrity == "none" && form.Cipher == cms.AES256GCM:
		return nil, fault.New(fault.InvalidParameters, "Encryption.Parameters: Integrity: AES256-GCM always has an authentication code")
	}
	form.WithoutIntegrity = integrity == "none"
	return cmsOptions{form}, nil
}

// transports are the values of ParamTransport.
var transports = []struct {
	name string
	by   *suite.Suite
}{{"gost2001", suite.GOST2001}, {"gost2012-256", suite.GOST2012x256}, {"gost2012-512", suite.GOST2012x512}}

func readXMLOptions(random io.Reader, params map[string]string) (options, error) {
	form := xmlenc.Encryption{Rand: random}
	for name, value := range params {
		p := parameter{name, value}
		switch {
		case strings.EqualFold(name, ParamPart):
			if p.is("Content") {
				form.Part = xmlenc.Content
			} else if !p.is("Element") {
				return nil, p.refused("Element or Content")
			}
		case strings.EqualFold(name, ParamTransport):
			var known []string
			for _, t := range transports {
				if known = append(known, t.name); p.is(t.name) {
					form.Transport = t.by
				}
			}
			if form.Transport == nil {
				return nil, p.refused(strings.Join(known, ", "))
			}
		default:
			return nil, p.unknown(XML, ParamPart, ParamTransport)
		}
	}
	return xmlOptions{form}, nil
}

// parse reads an encrypted message. The caller closes it. The fault is invalid_content.
func (t Type) parse(ctx context.Context, from *source, scratch func() *signing.Intake) (message, error) {
	m, err := t.row().read(ctx, from, scratch)
	switch {
	case err == nil:
		return m, nil
	case from.err != nil:
		return nil, from.err
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	if _, is := fault.As(err); is {
		return nil, err
	}
	return nil, invalidMessage(err)
}

// invalidMessage is the fault of a message that is malformed or not supported. Its text says what a reader of the
// message sees without a key.
func invalidMessage(err error) error {
	if errors.Is(err, budget.ErrBusy) {
		return fault.New(fault.Unavailable, err.Error()).With(err)
	}
	return fault.New(fault.InvalidContent, "the document is no encrypted message that is supported: "+plainly(err)).With(err)
}

// plainly returns the text of an error without the name of its package.
func plainly(err error) string {
	text := err.Error()
	for _, name := range []string{"cms: ", "xmlenc: ", "xml: "} {
		text = strings.TrimPrefix(text, name)
	}
	return text
}

// invalidDocument is the fault of a document that cannot be encrypted as a type wants.
func invalidDocument(t Type, err error) error {
	if errors.Is(err, budget.ErrBusy) {
		return fault.New(fault.Unavailable, err.Error()).With(err)
	}
	return fault.New(fault.InvalidContent, fmt.Sprintf("the document cannot be encrypted as %s: %s", t, plainly(err))).With(err)
}
