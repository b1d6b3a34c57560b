// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"bytes"
	"encoding/asn1"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/suite"
)

// Errors of Parse for messages that are still text. With errors.Is a caller can tell which
// decoding step is missing.
var (
	ErrPEM    = errors.New("cms: the message is PEM text; decode it to DER or BER first")
	ErrBase64 = errors.New("cms: the message is Base64 text; decode it to DER or BER first")
	ErrUTF16  = errors.New("cms: the message is text in UTF-16; save it as ASCII or UTF-8 and decode it to DER or BER first")
	ErrSMIME  = errors.New("cms: the message is a part of S/MIME; decode the Base64 below its header to DER or BER first")
)

// IsText reports whether err is one of those of Parse for messages that are still text.
func IsText(err error) bool {
	return errors.Is(err, ErrPEM) || errors.Is(err, ErrBase64) || errors.Is(err, ErrUTF16) || errors.Is(err, ErrSMIME)
}

// Parse reads a ContentInfo with SignedData of size bytes, in DER or BER (indefinite
// lengths, strings in pieces). It keeps everything except the content in memory, up to 16
// MiB. Larger messages are an error, and so are more than 1024 certificates, CRLs or signers,
// a content in more than 1048576 pieces, and nesting deeper than 64. At most 1 MiB of zero
// bytes may follow the message. The result keeps r for ContentReader.
func Parse(r io.ReaderAt, size int64) (*Message, error) { return ParseWithin(r, size, nil) }

// ParseWithin is Parse for a caller that limits memory. hold is called with a number of bytes
// before they are allocated, and its error ends the reading. nil: no limit but that of Parse.
func ParseWithin(r io.ReaderAt, size int64, hold func(bytes int64) error) (*Message, error) {
	m := &Message{source: r}
	padding, err := parseMessage(r, size, hold, "SignedData", []asn1.ObjectIdentifier{OIDSignedData}, func(p *parser, _ asn1.ObjectIdentifier, f *fields) error {
		return p.signedData(m, f)
	})
	if err != nil {
		return nil, err
	}
	m.Padding = padding
	return m, nil
}

// parseMessage reads a ContentInfo of one of the types. read gets the fields of the content, which must
// be a SEQUENCE, and leaves them done. what names the content in errors. parseMessage returns the number
// of zero bytes after the message.
func parseMessage(r io.ReaderAt, size int64, hold func(bytes int64) error, what string, types []asn1.ObjectIdentifier,
	read func(p *parser, oid asn1.ObjectIdentifier, f *fields) error) (padding int64, err error) {
	p := &parser{scanner: scanner{source: r, size: size}, left: maxHeld, charge: hold}
	if err := p.open(); err != nil {
		return 0, err
	}
	if err := p.notText(); err != nil {
		return 0, err
	}
	return p.contentInfo(what, types, read)
}

type parser struct {
	scanner
	left   int64 // bytes that hold may still read into memory
	charge func(bytes int64) error
	pieces int // pieces of the content visited so far
}

// textSize is the number of bytes in which Parse looks for PEM or a header of S/MIME.
const textSize = 4 << 10

// notText refuses input that is not a message by its first bytes. It reports text forms
// separately, because callers forget to decode them.
func (p *parser) notText() error {
	b, err := p.peek(0, 1)
	if err != nil {
		return err
	}
	if len(b) == 0 {
		return errors.New("cms: the message is empty")
	}
	if b[0] == tagSequence {
		return nil
	}
	if b, err = p.peek(0, int(min(p.size, textSize))); err != nil {
		return err
	}
	if err := textError(b); err != nil {
		return err
	}
	return errors.New("cms: not a message: a SEQUENCE (ContentInfo) expected at its beginning")
}

// textError returns the error for a message in a text form, or nil. head begins the input. It also knows texts that
// TextForm.Decode does not: a signature beside its document, and Base64 that is damaged or has another alphabet.
func textError(head []byte) error {
	switch TextFormOf(head) {
	case UTF16:
		return ErrUTF16
	case PEM:
		return ErrPEM
	case Base64, QuotedBase64:
		return ErrBase64
	case SMIME:
		return ErrSMIME
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(head, byteOrderMark), " \t\r\n")
	if len(text) < 4 || bytes.IndexByte(text, 0) >= 0 {
		return nil
	}
	lower := bytes.ToLower(text)
	if bytes.Contains(lower, []byte("content-type:")) && (bytes.Contains(lower, []byte("pkcs7-")) || bytes.Contains(lower, []byte("multipart/signed"))) {
		return ErrSMIME
	}
	const base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_\r\n\t "
	if text[0] == 'M' && len(bytes.Trim(text[:min(len(text), 64)], base64)) == 0 { // 0x30 in Base64
		return ErrBase64
	}
	return nil
}

// fields reads the elements inside e one after another.
type fields struct {
	p     *parser
	outer element
	off   int64
	depth int
	next  element
	done  bool
	after int64 // offset after outer, once done
}

func (p *parser) fields(e element, depth int) (fields, error) {
	f := fields{p: p, outer: e, off: e.body, depth: depth}
	err := f.load()
	return f, err
}

// load reads the header at off into next, or sets done at the end of outer.
func (f *fields) load() error {
	if !f.outer.indefinite && f.off == f.outer.bodyLimit {
		f.done, f.after = true, f.off
		return nil
	}
	e, err := f.p.header(f.off, f.outer.bodyLimit)
	if err != nil {
		return err
	}
	if e.tag == 0 {
		if !f.outer.indefinite || e.length != 0 {
			return fmt.Errorf("cms: at offset %d: an end mark in place of an element", f.off)
		}
		f.done, f.after = true, e.body
		return nil
	}
	f.next = e
	return nil
}

// is reports whether the next element has the tag.
func (f *fields) is(tag byte) bool { return !f.done && f.next.tag == tag }

// take returns the next element, which must have the tag, and moves to the offset after it.
func (f *fields) take(tag byte, what string) (element, error) {
	if !f.is(tag) {
		return element{}, fmt.Errorf("cms: at offset %d: %s expected", f.off, what)
	}
	e := f.next
	end, err := f.p.end(e, f.depth+1)
	if err != nil {
		return element{}, err
	}
	f.off = end
	return e, f.load()
}

// hold returns the bytes [from,to) in memory.
func (p *parser) hold(from, to int64) ([]byte, error) {
	n := to - from
	if n > p.left {
		return nil, fmt.Errorf("cms: certificates, CRLs and signers have more than %d bytes", maxHeld)
	}
	p.left -= n
	if p.whole() {
		return p.window[from:to:to], nil // nothing reads into the window again
	}
	if p.charge != nil {
		if err := p.charge(n); err != nil {
			return nil, err
		}
	}
	b := make([]byte, n)
	if got, err := p.source.ReadAt(b, from); int64(got) < n {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("cms: reading %d bytes at offset %d: %w", n, from, err)
	}
	return b, nil
}

// Bytes of memory for what a message may have many of. An attribute takes 9 bytes of a message or
// more, a value and a piece of the content 2 or more.
const (
	sizeOfAttribute = 112 // with its OID
	sizeOfValue     = 24
	sizeOfRange     = 16
)

// withRoom returns a list with room for one more element of size bytes. hold, if not nil, is
// called before the list grows.
func withRoom[T any](list []T, size int64, hold func(bytes int64) error) ([]T, error) {
	if len(list) < cap(list) {
		return list, nil
	}
	room := max(1, 2*len(list))
	if hold != nil {
		if err := hold(size * int64(room)); err != nil {
			return nil, err
		}
	}
	return append(make([]T, 0, room), list...), nil
}

// takeDER is take for small elements. It returns the whole element as DER.
func (f *fields) takeDER(tag byte, what string) (cryptobyte.String, error) {
	e, err := f.take(tag, what)
	if err != nil {
		return nil, err
	}
	raw, err := f.p.hold(e.start, f.off)
	if err != nil {
		return nil, err
	}
	der, err := toDER(raw)
	if err != nil {
		return nil, fmt.Errorf("%w in %s at offset %d", err, what, e.start)
	}
	return der, nil
}

func (p *parser) contentInfo(what string, types []asn1.ObjectIdentifier, read func(p *parser, oid asn1.ObjectIdentifier, f *fields) error) (padding int64, err error) {
	root, err := p.header(0, p.size)
	if err != nil {
		return 0, err
	}
	f, err := p.fields(root, 0)
	if err != nil {
		return 0, err
	}
	der, err := f.takeDER(tagOID, "contentType of ContentInfo")
	if err != nil {
		return 0, err
	}
	oid, ok := readOID(&der)
	if !ok {
		return 0, errors.New("cms: contentType of ContentInfo is malformed")
	}
	if !slices.ContainsFunc(types, oid.Equal) {
		return 0, fmt.Errorf("cms: the message is of type %v, not %s (%v)", oid, what, types[0])
	}
	if !f.is(tagContext0) {
		return 0, errors.New("cms: ContentInfo has no content")
	}
	explicit, err := p.fields(f.next, 1)
	if err != nil {
		return 0, err
	}
	if !explicit.is(tagSequence) {
		return 0, fmt.Errorf("cms: %s expected in ContentInfo", what)
	}
	data, err := p.fields(explicit.next, 2)
	if err != nil {
		return 0, err
	}
	if err := read(p, oid, &data); err != nil {
		return 0, err
	}
	// Each level must end where the level inside it ends.
	explicit.off = data.after
	if err := explicit.load(); err != nil {
		return 0, err
	}
	if !explicit.done {
		return 0, fmt.Errorf("cms: at offset %d: bytes follow %s", explicit.off, what)
	}
	f.off = explicit.after
	if err := f.load(); err != nil {
		return 0, err
	}
	if !f.done {
		return 0, fmt.Errorf("cms: at offset %d: bytes follow the content of ContentInfo", f.off)
	}
	return p.size - f.after, p.zeros(f.after)
}

// zeros refuses anything except zero bytes from an offset to the end of the input. Formats
// that reserve space for a message fill up the rest with zeros.
func (p *parser) zeros(from int64) error {
	if n := p.size - from; n > maxPadding {
		return fmt.Errorf("cms: %d bytes follow the message; at most %d zero bytes may follow", n, maxPadding)
	}
	for off := from; off < p.size; {
		b, err := p.peek(off, windowSize)
		if err != nil {
			return err
		}
		for i, c := range b {
			if c != 0 {
				return fmt.Errorf("cms: at offset %d: byte %#02x follows the message; only zero bytes may follow", off+int64(i), c)
			}
		}
		off += int64(len(b))
	}
	return nil
}

func (p *parser) signedData(m *Message, f *fields) error {
	der, err := f.takeDER(tagInteger, "version of SignedData")
	if err != nil {
		return err
	}
	if !der.ReadASN1Integer(&m.Version) || m.Version < 0 || m.Version > 5 {
		return errors.New("cms: version of SignedData must be 0 to 5")
	}
	if der, err = f.takeDER(tagSet, "digestAlgorithms"); err != nil {
		return err
	}
	var set cryptobyte.String
	if !der.ReadASN1(&set, cbasn1.SET) {
		return errors.New("cms: digestAlgorithms is malformed")
	}
	for !set.Empty() {
		a, ok := readAlgorithm(&set)
		if !ok || len(m.DigestAlgorithms) == maxElements {
			return errors.New("cms: digestAlgorithms is malformed")
		}
		m.DigestAlgorithms = append(m.DigestAlgorithms, a)
	}
	if !f.is(tagSequence) {
		return fmt.Errorf("cms: at offset %d: encapContentInfo expected", f.off)
	}
	start := f.off
	after, err := p.encapContentInfo(m, f.next)
	if err != nil {
		return err
	}
	m.EncapContentInfo = Range{start, after - start}
	f.off = after
	if err := f.load(); err != nil {
		return err
	}
	if f.is(tagContext0) {
		start := f.off
		if m.Certificates, err = p.elements(f, "certificates", maxElements); err != nil {
			return err
		}
		m.CertificateSet = Range{start, f.off - start}
	}
	if f.is(tagContext1) {
		start := f.off
		if m.CRLs, err = p.elements(f, "crls", maxElements); err != nil {
			return err
		}
		m.RevocationInfo = Range{start, f.off - start}
	}
	if !f.is(tagSet) {
		return fmt.Errorf("cms: at offset %d: signerInfos expected", f.off)
	}
	raws, err := p.elements(f, "signerInfos", maxElements)
	if err != nil {
		return err
	}
	m.Signers = make([]*SignerInfo, 0, len(raws))
	for i, raw := range raws {
		s, err := parseSignerInfo(raw, p.charge)
		if err != nil {
			return fmt.Errorf("cms: signer %d: %w", i, err)
		}
		m.Signers = append(m.Signers, s)
	}
	if !f.done {
		return fmt.Errorf("cms: at offset %d: bytes follow signerInfos", f.off)
	}
	return nil
}

// encapContentInfo describes the content without reading it. It returns the offset after
// the element.
func (p *parser) encapContentInfo(m *Message, e element) (int64, error) {
	f, err := p.fields(e, 3)
	if err != nil {
		return 0, err
	}
	der, err := f.takeDER(tagOID, "eContentType")
	if err != nil {
		return 0, err
	}
	var ok bool
	if m.ContentType, ok = readOID(&der); !ok {
		return 0, errors.New("cms: eContentType is malformed")
	}
	if f.done {
		m.Detached = true
		return f.after, nil
	}
	if !f.is(tagContext0) {
		return 0, fmt.Errorf("cms: at offset %d: eContent expected", f.off)
	}
	g, err := p.fields(f.next, 4)
	if err != nil {
		return 0, err
	}
	if g.done {
		return 0, errors.New("cms: eContent has nothing inside; a detached message must omit it")
	}
	if g.off, err = p.octetString(&m.Content, g.next, 5, "eContent"); err != nil {
		return 0, err
	}
	if err := g.load(); err != nil {
		return 0, err
	}
	if !g.done {
		return 0, fmt.Errorf("cms: at offset %d: bytes follow eContent", g.off)
	}
	f.off = g.after
	if err := f.load(); err != nil {
		return 0, err
	}
	if !f.done {
		return 0, fmt.Errorf("cms: at offset %d: bytes follow eContent", f.off)
	}
	return f.after, nil
}

// octetString adds the ranges of an OCTET STRING, in one or many pieces, to the ranges of a content.
// It returns the offset after the element. It visits every piece once. what names the content in
// errors.
func (p *parser) octetString(content *[]Range, e element, depth int, what string) (int64, error) {
	if p.pieces++; p.pieces > 4*maxRanges { // empty pieces add no range but cost time
		return 0, fmt.Errorf("cms: the content is in more than %d pieces", maxRanges)
	}
	switch {
	case e.tag == tagOctetString:
		if e.length > 0 {
			if len(*content) == maxRanges {
				return 0, fmt.Errorf("cms: the content is in more than %d pieces", maxRanges)
			}
			longer, err := withRoom(*content, sizeOfRange, p.charge)
			if err != nil {
				return 0, err
			}
			*content = append(longer, Range{e.body, e.length})
		}
		return e.body + e.length, nil
	case e.tag != tagOctetString|bitConstructed:
		return 0, fmt.Errorf("cms: at offset %d: %s is not an OCTET STRING (is it a PKCS #7 message of another kind?)", e.start, what)
	case depth > maxDepth:
		return 0, fmt.Errorf("cms: at offset %d: elements are nested deeper than %d", e.start, maxDepth)
	}
	f, err := p.fields(e, depth)
	for err == nil && !f.done {
		if f.off, err = p.octetString(content, f.next, depth+1, what); err == nil {
			err = f.load()
		}
	}
	return f.after, err
}

// elements returns the elements of a set, each with its bytes unchanged. It refuses more than limit.
func (p *parser) elements(f *fields, what string, limit int) ([][]byte, error) {
	set, err := p.fields(f.next, f.depth+1)
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for !set.done {
		if len(out) == limit {
			return nil, fmt.Errorf("cms: more than %d elements in %s", limit, what)
		}
		start := set.off
		if _, err := set.take(set.next.tag, what); err != nil {
			return nil, err
		}
		raw, err := p.hold(start, set.off)
		if err != nil {
			return nil, err
		}
		out = append(out, raw)
	}
	f.off = set.after
	return out, f.load()
}

// readOID reads an OBJECT IDENTIFIER. The result is nil when its arcs do not fit an int.
func readOID(s *cryptobyte.String) (asn1.ObjectIdentifier, bool) {
	var whole cryptobyte.String
	if !s.ReadASN1Element(&whole, cbasn1.OBJECT_IDENTIFIER) || len(whole) < 3 {
		return nil, false
	}
	if oid, known := knownOIDs[string(whole)]; known {
		return oid, true
	}
	var oid asn1.ObjectIdentifier
	if !whole.ReadASN1ObjectIdentifier(&oid) {
		return nil, true
	}
	return oid, true
}

// knownOIDs has the identifiers that most messages consist of, by their DER, so that they are
// not decoded for each message.
var knownOIDs = func() map[string]asn1.ObjectIdentifier {
	known := map[string]asn1.ObjectIdentifier{}
	for _, oid := range []asn1.ObjectIdentifier{
		OIDData, OIDSignedData, OIDContentType, OIDMessageDigest, OIDSigningTime, OIDCountersignature,
		OIDSigningCertificate, OIDSigningCertificateV2, OIDSignatureTimeStamp, OIDCertificateRefs,
		OIDRevocationRefs, OIDCertificateValues, OIDRevocationValues, OIDEscTimeStamp,
	} {
		known[string(marshalOID(oid))] = oid
	}
	for _, s := range suite.All() {
		known[string(marshalOID(s.Hash.OID))] = s.Hash.OID
		known[string(marshalOID(s.CMSSignatureOID))] = s.CMSSignatureOID
	}
	return known
}()

// readAlgorithm reads an AlgorithmIdentifier.
func readAlgorithm(s *cryptobyte.String) (a Algorithm, ok bool) {
	var raw, seq cryptobyte.String
	if !s.ReadASN1Element(&raw, cbasn1.SEQUENCE) {
		return a, false
	}
	a.Raw = raw
	if !raw.ReadASN1(&seq, cbasn1.SEQUENCE) {
		return a, false
	}
	if a.OID, ok = readOID(&seq); !ok {
		return a, false
	}
	if !seq.Empty() {
		var params cryptobyte.String
		var tag cbasn1.Tag
		if !seq.ReadAnyASN1Element(&params, &tag) || !seq.Empty() {
			return a, false
		}
		a.Params = params
	}
	return a, true
}
