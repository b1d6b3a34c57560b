// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"

	"tamga/pki/x509gost"
	"tamga/sig/budget"
	"tamga/sig/xmltree"
)

// VerifyRegister checks a document that is a long list with one enveloped signature, and holds only some of its
// children in memory. It reads the document twice: it finds the signature and checks the value over SignedInfo, then it
// computes the digest and calls each for each child element of the root but the signature, in document order. The
// trees that each gets are valid during the call. What it was called with is signed only if VerifyRegister returns nil.
//
// It returns nil only if all of this is true:
//
//   - The document has one Signature element, a child of the root, with one reference, URI="".
//   - The transforms are enveloped-signature and then at most one canonical form without comments.
//   - The algorithms are those that [VerifyElement] accepts.
//   - The value was made with the key of one of certs. KeyInfo is ignored, and so are the validity periods of the
//     certificates: the caller trusts their keys.
//   - Outside of the root there are only the XML declaration, white space and comments, no child of the root is larger
//     than most bytes, and its tag not larger than 64 KiB.
//
// The encoding must be one in which markup is written as in ASCII: UTF-8 or one with a byte for each character.
func VerifyRegister(ctx context.Context, document io.ReadSeeker, certs []*x509gost.Certificate, most int, each func(t *xmltree.Tree, n xmltree.Node) error) error {
	var s *signature
	err := pieces(ctx, document, most, func(t *xmltree.Tree, _ []byte) error {
		for _, n := range signatures(t) {
			if s != nil {
				return flawAt(t, n, codeMany, "the document has several Signature elements, one expected")
			}
			if t.Parent(n) != t.Root() {
				return flawAt(t, n, codeMisplaced, "the Signature element is not a child of the root")
			}
			var err error
			if s, err = readSignature(t, n, 0); err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case s == nil:
		return unfit("has no signature: it has no element Signature of the namespace "+nsDS, nil)
	}
	method, err := s.ofRegister()
	if err != nil {
		return err
	}
	if err := s.madeBy(certs); err != nil {
		return err
	}
	want, err := base64Text(s.tree, s.refs[0].digest, maxValue)
	if err != nil {
		return err
	}
	if _, err := document.Seek(0, io.SeekStart); err != nil {
		return readError(err)
	}
	sum := s.refs[0].hash.New()
	var form bytes.Buffer
	frame, begun := rootFrame{}, false
	err = pieces(ctx, document, most, func(t *xmltree.Tree, root []byte) error {
		if !begun {
			if frame, err = frameOf(ctx, root, method); err != nil {
				return err
			}
			begun = true
			sum.Write(frame.begin)
		}
		set := t.All()
		for n := range t.Elements(t.Root()) {
			if t.Is(n, nsDS, "Signature") {
				set.Remove(n)
			} else if err := each(t, n); err != nil {
				return err
			}
		}
		form.Reset()
		if err := set.Canonicalize(&form, method); err != nil {
			return err
		}
		return frame.content(sum, form.Bytes())
	})
	if err != nil {
		return err
	}
	sum.Write(frame.end)
	if !bytes.Equal(sum.Sum(nil), want) {
		return flawAt(s.tree, s.refs[0].node, codeDigest, "the document has changed since it was signed")
	}
	return nil
}

// ofRegister returns the canonical form of the only reference, which must have the form that VerifyRegister requires.
func (s *signature) ofRegister() (xmltree.Method, error) {
	t := s.tree
	form := xmltree.Method{Form: xmltree.C14N10} // XMLDSig, 4.4.3.2
	switch {
	case len(s.objects) > 0:
		return form, flawAt(t, s.objects[0], codeMalformed, "an Object is not allowed in this signature")
	case s.method.Comments:
		return form, flawAt(t, s.info, codeAlgorithm, "CanonicalizationMethod: a canonical form without comments expected")
	case len(s.refs) != 1:
		return form, flawAt(t, s.info, codeMalformed, "SignedInfo has %d references, one to the document expected", len(s.refs))
	}
	r := s.refs[0]
	if r.uri != "" {
		return form, flawAt(t, r.node, codeRemote, `the reference URI=%s is not to the document; URI="" expected`, quote(r.uri))
	}
	if !slices.Contains(elementHashes, r.hash) {
		return form, flawAt(t, r.node, codeAlgorithm, "DigestMethod %s is not accepted; SHA-256, SHA-384, SHA-512 or Streebog expected", quote(r.algorithm))
	}
	if n := len(r.transforms); n == 0 || n > 2 || r.transforms[0].algorithm != algEnveloped {
		return form, flawAt(t, r.node, codeTransform, "transforms: enveloped-signature and then at most one canonical form expected")
	}
	if len(r.transforms) == 2 {
		written, ok := canonicalForms[r.transforms[1].algorithm]
		if !ok || written.Comments {
			return form, flawAt(t, r.transforms[1].node, codeTransform, "the second transform %s is no canonical form without comments", quote(r.transforms[1].algorithm))
		}
		return withPrefixes(t, r.transforms[1].node, written)
	}
	return form, nil
}

// rootFrame is the canonical form of an element around its content.
type rootFrame struct{ begin, end []byte }

// frameOf returns the frame of the root element of an empty document.
func frameOf(ctx context.Context, empty []byte, m xmltree.Method) (rootFrame, error) {
	t, err := xmltree.Parse(empty, pieceOptions(ctx, empty))
	if err != nil {
		return rootFrame{}, unfit("an XML document expected", err)
	}
	var form bytes.Buffer
	if err := t.All().Canonicalize(&form, m); err != nil {
		return rootFrame{}, err
	}
	at := bytes.LastIndexByte(form.Bytes(), '<') // the end tag: in a canonical form no value has this character
	return rootFrame{form.Bytes()[:at], form.Bytes()[at:]}, nil
}

// content writes what is between the frame.
func (f rootFrame) content(sum hash.Hash, form []byte) error {
	inside, begins := bytes.CutPrefix(form, f.begin)
	inside, ends := bytes.CutSuffix(inside, f.end)
	if !begins || !ends {
		return unfit("its root element is written in a way that some programs read differently", nil)
	}
	sum.Write(inside)
	return nil
}

// pieceOptions returns the limits of a piece: the tree of the largest takes as much memory as eight times its bytes.
func pieceOptions(ctx context.Context, piece []byte) xmltree.Options {
	limits := budget.Ordinary(int64(len(piece)))
	limits.Memory = min(limits.Memory, pieceMemory)
	return xmltree.Options{Budget: budget.New(ctx, limits)}
}

// pieceMemory limits the memory of one piece.
const pieceMemory = 40 << 20

// Sizes of pieces. A piece is at least as large as the tag of the root, which each piece repeats, so the work grows with
// the document alone. Tests have smaller ones.
var (
	pieceSize = 64 << 10
	rootSize  = 64 << 10
)

// pieces splits a document between the children of its root, and calls do with each piece as a document of its own: the
// XML declaration, the tag of the root, some children with what is around them, the end tag. empty is the document
// without children.
func pieces(ctx context.Context, document io.Reader, most int, do func(t *xmltree.Tree, empty []byte) error) error {
	s := splitter{r: bufio.NewReaderSize(document, 64<<10), most: rootSize}
	head, name, closed, err := s.head()
	if err != nil {
		return err
	}
	end := slices.Concat([]byte("</"), name, []byte(">"))
	empty := slices.Concat(head, end)
	if closed {
		return unfit("its root element is empty", nil)
	}
	s.most = len(head) + most
	piece := slices.Clone(head)
	for depth := 1; depth > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var kind tokenKind
		if piece, kind, err = s.token(piece); err != nil {
			return err
		}
		switch kind {
		case tokenStart:
			depth++
		case tokenEnd:
			depth--
		}
		if depth > 0 { // at 0 the piece has the end tag of the document
			if depth > 1 || len(piece) < len(head)+pieceSize {
				continue
			}
			piece = append(piece, end...)
		}
		t, err := xmltree.Parse(piece, pieceOptions(ctx, piece))
		if err != nil {
			return unfit("an XML document with a signature expected", err)
		}
		if err := do(t, empty); err != nil {
			return err
		}
		// The caller may keep a tree, so the next piece has memory of its own.
		piece = append(make([]byte, 0, len(head)+2*pieceSize), head...)
	}
	return s.tail()
}

// splitter finds the limits of markup. It does not check more than it needs for that: each piece is parsed afterwards.
type splitter struct {
	r           *bufio.Reader
	most        int    // bytes that a piece may have
	declaration []byte // byte order mark and XML declaration
}

type tokenKind uint8

const (
	tokenText tokenKind = iota
	tokenStart
	tokenEmpty // an element without content
	tokenEnd
	tokenComment
	tokenCData
	tokenInstruction
)

// token appends the next token to piece.
func (s *splitter) token(piece []byte) ([]byte, tokenKind, error) {
	next, err := s.r.Peek(1)
	if err != nil {
		return piece, 0, s.failed(err)
	}
	if next[0] != '<' {
		piece, err = s.text(piece)
		return piece, tokenText, err
	}
	next, _ = s.r.Peek(len("<![CDATA["))
	var kind tokenKind
	var begin, end string
	switch {
	case bytes.HasPrefix(next, []byte("<!--")):
		kind, begin, end = tokenComment, "<!--", "-->"
	case bytes.HasPrefix(next, []byte("<![CDATA[")):
		kind, begin, end = tokenCData, "<![CDATA[", "]]>"
	case bytes.HasPrefix(next, []byte("<!")):
		return piece, 0, unfit("has a document type declaration, which is refused", xmltree.ErrDoctype)
	case bytes.HasPrefix(next, []byte("<?")):
		kind, begin, end = tokenInstruction, "<?", "?>"
	case bytes.HasPrefix(next, []byte("</")):
		kind, begin, end = tokenEnd, "</", ">"
	default:
		return s.tag(piece)
	}
	least := len(piece) + len(begin) + len(end) // "<!-->" is no comment: its end begins after its beginning
	for {
		if piece, err = s.until(piece, '>'); err != nil {
			return piece, 0, err
		}
		if len(piece) >= least && bytes.HasSuffix(piece, []byte(end)) {
			return piece, kind, nil
		}
	}
}

// tag appends the tag of an element. A value may have the character '>'.
func (s *splitter) tag(piece []byte) ([]byte, tokenKind, error) {
	var quoted byte
	for {
		c, err := s.r.ReadByte()
		if err != nil {
			return piece, 0, s.failed(err)
		}
		if piece = append(piece, c); len(piece) > s.most {
			return piece, 0, s.tooLarge()
		}
		switch {
		case quoted != 0:
			if c == quoted {
				quoted = 0
			}
		case c == '"' || c == '\'':
			quoted = c
		case c == '>':
			if piece[len(piece)-2] == '/' {
				return piece, tokenEmpty, nil
			}
			return piece, tokenStart, nil
		}
	}
}

// text appends the text before the next markup.
func (s *splitter) text(piece []byte) ([]byte, error) {
	for {
		part, err := s.r.ReadSlice('<')
		if err == nil {
			part = part[:len(part)-1]
			_ = s.r.UnreadByte() // a byte was read
		}
		if len(piece)+len(part) > s.most {
			return piece, s.tooLarge()
		}
		piece = append(piece, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return piece, s.failed(err)
		}
	}
}

// until appends what is before the next byte c, and c.
func (s *splitter) until(piece []byte, c byte) ([]byte, error) {
	for {
		part, err := s.r.ReadSlice(c)
		if len(piece)+len(part) > s.most {
			return piece, s.tooLarge()
		}
		piece = append(piece, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return piece, s.failed(err)
		}
	}
}

func (s *splitter) tooLarge() error {
	return unfit(fmt.Sprintf("has an element of more than %d bytes", s.most), nil)
}

func (s *splitter) failed(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF):
		return unfit("ends in the middle", io.ErrUnexpectedEOF)
	}
	return readError(err)
}

// head reads until the tag of the root. What is before it is parsed as well. The head that is returned has the byte order
// mark, the XML declaration and the tag.
func (s *splitter) head() (head, name []byte, closed bool, err error) {
	if mark, _ := s.r.Peek(3); bytes.Equal(mark, []byte("\xEF\xBB\xBF")) {
		s.declaration = append(s.declaration, mark...)
		_, _ = s.r.Discard(len(mark)) // they were peeked
	}
	whole := slices.Clone(s.declaration) // with what is left out
	for {
		before := len(whole)
		var kind tokenKind
		if whole, kind, err = s.token(whole); err != nil {
			return nil, nil, false, err
		}
		token := whole[before:]
		switch {
		case kind == tokenStart || kind == tokenEmpty:
			stop := bytes.IndexAny(token[1:], " \t\r\n/>")
			name = slices.Clone(token[1 : 1+stop])
			if _, err := xmltree.Parse(slices.Concat(whole[:before], []byte("<root/>")), xmltree.Options{}); err != nil {
				return nil, nil, false, unfit("an XML document expected", err)
			}
			return slices.Concat(s.declaration, token), name, kind == tokenEmpty, nil
		case kind == tokenInstruction && before == len(s.declaration) && bytes.HasPrefix(token, []byte("<?xml ")):
			s.declaration = slices.Clone(whole)
		case kind == tokenComment, kind == tokenText && blank(token):
		default:
			return nil, nil, false, unfit("before its root element only the XML declaration, white space and comments are accepted", nil)
		}
	}
}

// tail reads what is after the root element.
func (s *splitter) tail() error {
	rest, err := io.ReadAll(io.LimitReader(s.r, int64(rootSize)+1))
	if err != nil {
		return readError(err)
	}
	if len(rest) > rootSize {
		return unfit(fmt.Sprintf("has more than %d bytes after its root element", rootSize), nil)
	}
	t, err := xmltree.Parse(slices.Concat(s.declaration, []byte("<root/>"), rest), xmltree.Options{})
	if err != nil {
		return unfit("only white space and comments are accepted after its root element", err)
	}
	for n := range t.Children(xmltree.Document) {
		if n != t.Root() && t.Kind(n) != xmltree.KindComment {
			return unfit("after its root element only white space and comments are accepted", nil)
		}
	}
	return nil
}

func blank(b []byte) bool { return len(bytes.Trim(b, " \t\r\n")) == 0 }
