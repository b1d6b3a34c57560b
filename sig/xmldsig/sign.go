// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"

	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/xmltree"
)

// maker prepares one signature.
type maker struct {
	ctx      context.Context
	job      *sig.Job
	suite    *suite.Suite
	params   params
	options  xmltree.Options
	document []byte // the bytes to sign
	sum      []byte // their SHA-256
}

// made is the result of making one kind of signature.
type made struct {
	digest   suite.Digest // of the canonical SignedInfo
	encoding string       // of the result
	pieces   []piece
	stamped  []string // see state
}

// SignsParts implements sig.PartSigner: digests are over canonical forms of elements.
func (*Format) SignsParts() {}

// Prepare implements sig.Format. It reads the parameters XMLDsigType, XAdESType,
// TSPAddress, IncludeCertChain, SignatureIndex and HashAlgorithm.
func (f *Format) Prepare(ctx context.Context, job *sig.Job) (*sig.Prepared, error) {
	return sig.Within(ctx, job.Document, func(ctx context.Context) (*sig.Prepared, error) { return f.prepare(ctx, job) })
}

func (f *Format) prepare(ctx context.Context, job *sig.Job) (*sig.Prepared, error) {
	return f.prepareWith(ctx, job, func(m *maker) (*made, error) {
		switch m.params.kind {
		case kindEnveloped:
			return m.enveloped()
		case kindEnveloping:
			return m.enveloping()
		}
		return m.template()
	})
}

// prepareWith prepares the signature that a function makes.
func (f *Format) prepareWith(ctx context.Context, job *sig.Job, sign func(*maker) (*made, error)) (*sig.Prepared, error) {
	s, err := sig.SuiteOf(job.Certificate)
	if err != nil {
		return nil, err
	}
	q, p := sig.ReadFor[params](f, job)
	r := q.ForJob(job)
	p.address = stamper(q, job, r, p.xades)
	r.CheckHashAlgorithm(s)
	if err := r.Err(); err != nil {
		return nil, err
	}
	_, b := budget.Of(ctx, 0)
	document, err := read(b, job.Document, f.maxSize())
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(document)
	m := &maker{ctx: ctx, job: job, suite: s, params: p, options: f.options(b), document: document, sum: sum[:]}
	out, err := sign(m)
	if err != nil {
		return nil, err
	}
	st := sig.MarshalState(&state{
		StateHeader: stateForm.Header(job),
		Document:    sum[:],
		Digest:      out.digest.Sum,
		Encoding:    out.encoding,
		Pieces:      out.pieces,
		Level:       p.xades,
		Address:     p.address,
		Stamped:     out.stamped,
	}, 8<<10)
	return &sig.Prepared{Digest: out.digest, State: st}, nil
}

// options returns tree options bounded by the size limit and the budget.
func (f *Format) options(b *budget.Budget) xmltree.Options {
	// A document in a single-byte encoding may take twice its bytes in UTF-8. That is
	// more than Base64 adds.
	return xmltree.Options{Size: 2*f.maxSize() + signatureRoom, AllowDoctype: f.AllowDoctype, Budget: b}
}

// parse parses the document to sign. what names the kind of signature in the error.
func (m *maker) parse(what string) (*xmltree.Tree, error) {
	if err := m.ctx.Err(); err != nil {
		return nil, err
	}
	t, err := xmltree.Parse(m.document, m.options)
	if err != nil {
		return nil, &sig.ErrDocument{What: "Document", Text: "an XML document expected for " + what, Err: err, OtherKind: !LooksLikeXML(m.document)}
	}
	return t, nil
}

// enveloped puts a Signature after the last child of the root element. Its reference
// covers the whole document without the signature, which is the document before signing.
func (m *maker) enveloped() (*made, error) {
	t, err := m.parse("an enveloped signature")
	if err != nil {
		return nil, err
	}
	d, err := m.canonicalDigest(t.All())
	if err != nil {
		return nil, err
	}
	e := m.element()
	ref := renderedReference{transforms: []string{algEnveloped, algExcC14N}, digest: d}
	text, digest, err := m.complete(e, []renderedReference{ref}, []string{"text/xml"}, t, func(fragment []byte) (*xmltree.Tree, xmltree.Node, error) {
		return t.Graft(t.Root(), fragment, m.options)
	})
	if err != nil {
		return nil, err
	}
	pieces, err := planOf(t, []xmltree.Edit{t.Append(t.Root(), text)})
	return &made{digest: digest, encoding: t.Encoding(), pieces: pieces}, err
}

// enveloping puts the document into an Object of the Signature.
func (m *maker) enveloping() (*made, error) {
	if len(m.document) == 0 {
		return nil, unfit("is empty", nil)
	}
	if !LooksLikeXML(m.document) {
		return m.envelopingBytes()
	}
	t, err := m.parse("an enveloping signature, because it begins like XML")
	if err != nil {
		return nil, err
	}
	for c := range t.Children(xmltree.Document) {
		if t.Kind(c) == xmltree.KindDoctype {
			return nil, unfit("cannot be put inside a signature", flawAt(t, c, codeMalformed, "a document type declaration is allowed only at the beginning of a document"))
		}
	}
	e := m.element()
	ids := newIdentifiers(m.job, m.sum, t)
	open, closing := `<ds:Object Id="`+ids.object+`">`, "</ds:Object>"

	// The XML declaration of the document becomes that of the result. The rest goes into
	// the Object. The canonical form depends on the elements around it, so both are
	// parsed again together.
	begin := t.Span(t.FirstChild(xmltree.Document)).Start
	around := func(head, tail string) []xmltree.Edit {
		end := len(t.Text())
		return []xmltree.Edit{
			{Span: xmltree.Span{Start: begin, End: begin}, Text: head},
			{Span: xmltree.Span{Start: end, End: end}, Text: tail},
		}
	}
	whole, err := t.Splice(around("<ds:Signature"+dsDeclaration+">"+open, closing+"</ds:Signature>")...)
	if err != nil {
		return nil, err
	}
	if err := m.options.Budget.Hold(whole.Size()); err != nil {
		return nil, err
	}
	wrapped, err := xmltree.Parse(whole.Bytes(), m.options)
	if err != nil {
		return nil, unfit("cannot be put inside a signature", err)
	}
	d, err := m.canonicalDigest(wrapped.Subtree(wrapped.FirstChild(wrapped.Root())))
	if err != nil {
		return nil, err
	}
	e.object = open + closing
	ref := renderedReference{uri: "#" + ids.object, kind: typeObject, transforms: []string{algExcC14N}, digest: d}
	text, digest, err := m.complete(e, []renderedReference{ref}, []string{"text/xml"}, t, m.alone)
	if err != nil {
		return nil, err
	}
	head, tail := cut(text, e.object, len(open))
	pieces, err := planOf(t, around(head, tail))
	return &made{digest: digest, encoding: t.Encoding(), pieces: pieces}, err
}

// envelopingBytes puts a document that is not XML into an Object as Base64.
func (m *maker) envelopingBytes() (*made, error) {
	ids := newIdentifiers(m.job, m.sum, nil)
	attributes := attribute("Encoding", encodingBase64) + attribute("Id", ids.object)
	// The Object is written in canonical form directly: a start tag with its declaration
	// and its attributes in order, Base64, an end tag.
	h := m.suite.Hash.New()
	io.WriteString(h, "<ds:Object"+dsDeclaration+attributes+">")
	b := base64.NewEncoder(base64.StdEncoding, h)
	b.Write(m.document)
	b.Close()
	io.WriteString(h, "</ds:Object>")

	e := m.element()
	open, closing := "<ds:Object"+attributes+">", "</ds:Object>"
	e.object = open + closing
	ref := renderedReference{
		uri: "#" + ids.object, kind: typeObject, transforms: []string{algExcC14N},
		digest: suite.Digest{Hash: m.suite.Hash, Sum: h.Sum(nil)},
	}
	text, digest, err := m.complete(e, []renderedReference{ref}, []string{"application/octet-stream"}, nil, m.alone)
	if err != nil {
		return nil, err
	}
	head, tail := cut(text, e.object, len(open))
	const declaration = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"
	t, err := xmltree.Parse([]byte("<a/>"), xmltree.Options{})
	if err != nil {
		return nil, err
	}
	// The result has no section of the document: it replaces this one-element document.
	pieces, err := planOf(t, []xmltree.Edit{{Span: t.Span(t.Root()), Text: declaration + head + slot(slotDocument) + tail}})
	return &made{digest: digest, encoding: t.Encoding(), pieces: pieces}, err
}

// alone parses a Signature that is the root of its document.
func (m *maker) alone(fragment []byte) (*xmltree.Tree, xmltree.Node, error) {
	t, err := xmltree.Parse(fragment, m.options)
	if err != nil {
		return nil, xmltree.None, err
	}
	return t, t.Root(), nil
}

// cut splits a text inside the first occurrence of part, at bytes into it.
func cut(text, part string, at int) (head, tail string) {
	before, after, _ := bytes.Cut([]byte(text), []byte(part))
	return string(before) + part[:at], part[at:] + string(after)
}

// LooksLikeXML reports by the first bytes of a document whether it is XML or was meant to
// be. It is if the first character after white space is "<", with or without a byte order
// mark, in UTF-16 too. If such a document is not well-formed, it is an error and is not
// taken for another kind of data.
func LooksLikeXML(document []byte) bool {
	for _, bom := range []string{"\xEF\xBB\xBF", "\xFF\xFE", "\xFE\xFF"} {
		document = bytes.TrimPrefix(document, []byte(bom))
	}
	for _, c := range document {
		switch c {
		case '<':
			return true
		case ' ', '\t', '\r', '\n', 0:
		default:
			return false
		}
	}
	return false
}

// element returns a Signature that signs nothing yet.
func (m *maker) element() *element {
	return &element{suite: m.suite, certs: certificates(m.job, m.params.chain)}
}

// canonicalDigest returns the digest of the exclusive canonical form of a set.
func (m *maker) canonicalDigest(set *xmltree.NodeSet) (suite.Digest, error) {
	if err := m.ctx.Err(); err != nil {
		return suite.Digest{}, err
	}
	return canonicalDigest(set, xmltree.Method{Form: xmltree.Exclusive}, m.suite.Hash)
}

func canonicalDigest(set *xmltree.NodeSet, method xmltree.Method, h *suite.Hash) (suite.Digest, error) {
	sum := h.New()
	if err := set.Canonicalize(sum, method); err != nil {
		return suite.Digest{}, unfit("has no canonical form", err)
	}
	return suite.Digest{Hash: h, Sum: sum.Sum(nil)}, nil
}

// complete adds the references and, for XAdES, the signed properties to a Signature. mimeTypes are the
// types of what the references name. It
// returns the text of the Signature, with slots, and the digest to sign. place parses a
// fragment in the position of the Signature, for the canonical form of the properties.
func (m *maker) complete(e *element, refs []renderedReference, mimeTypes []string, t *xmltree.Tree, place func([]byte) (*xmltree.Tree, xmltree.Node, error)) (string, suite.Digest, error) {
	e.refs = refs
	if m.params.xades != xadesNone {
		ids := newIdentifiers(m.job, m.sum, t)
		e.id = ids.signature
		for i := range refs {
			refs[i].id = ids.referenceTo(i)
		}
		e.properties = signedProperties(ids, m.job, m.suite.Hash, mimeTypes)
		placed, node, err := place([]byte(withoutSlots(e.render())))
		if err != nil {
			return "", suite.Digest{}, fmt.Errorf("xmldsig: the signature does not fit into the document: %w", err)
		}
		var properties xmltree.Node = xmltree.None
		for n := range placed.Find(node, nsXAdES, "SignedProperties") {
			properties = n
		}
		d, err := canonicalDigest(placed.Subtree(properties), xmltree.Method{Form: xmltree.Exclusive}, m.suite.Hash)
		if err != nil {
			return "", suite.Digest{}, err
		}
		e.refs = append(e.refs, renderedReference{uri: "#" + ids.properties, kind: typeProperties, transforms: []string{algExcC14N}, digest: d})
	}
	return e.render(), e.digest(), nil
}

// Finish implements sig.Format. It does not read the parameters again: they are in the
// state.
func (f *Format) Finish(ctx context.Context, job *sig.Job, prepared, signature []byte) (sig.Result, error) {
	return sig.Within(ctx, job.Document, func(ctx context.Context) (sig.Result, error) { return f.finish(ctx, job, prepared, signature, nil) })
}

func (f *Format) finish(ctx context.Context, job *sig.Job, prepared, signature []byte, files Files) (sig.Result, error) {
	s, err := sig.SuiteOf(job.Certificate)
	if err != nil {
		return nil, err
	}
	st, err := readState(job, s, prepared)
	if err != nil {
		return nil, err
	}
	if d, err := sum(job.Document); err != nil {
		return nil, err
	} else if !bytes.Equal(d, st.Document) {
		return nil, &sig.ErrState{Text: "made for another document"}
	}
	data, err := s.XMLValue(signature)
	if err != nil {
		return nil, err
	}
	value := base64.StdEncoding.EncodeToString(data)
	fill := map[string]string{slotValue: value, slotUnsigned: ""}
	level, _ := levelOf(st.Level)
	if level >= sig.LevelTime {
		// Callers verify a value before Finish. It is verified again here because this is the
		// boundary to the outside: a time stamp cannot be taken back.
		if err := job.Certificate.Verify(suite.Digest{Hash: s.Hash, Sum: st.Digest}, signature); err != nil {
			return nil, err
		}
		stamped := signedValue(value)
		if len(st.Stamped) == 2 {
			stamped = st.Stamped[0] + value + st.Stamped[1]
		}
		token, err := timeStamp(ctx, job, st.Address, s.Hash.Digest([]byte(stamped)))
		if err != nil {
			return nil, err
		}
		fill[slotUnsigned] = unsignedElement(signatureTimeStamp(token, ""))
		fill[slotStamp] = signatureTimeStamp(token, xadesDeclaration+dsDeclaration)
	}
	result, err := st.result(job, fill)
	if err != nil || level <= sig.LevelTime {
		return result, err
	}
	return f.lifted(ctx, job, st.Address, value, result, level, files)
}

// timeStamp requests a time stamp token.
func timeStamp(ctx context.Context, job *sig.Job, address string, d suite.Digest) ([]byte, error) {
	v, err := sig.Stamp(ctx, job.Evidence, address, d)
	if err != nil {
		return nil, err
	}
	return v.Token().Raw, nil
}
