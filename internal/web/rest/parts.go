// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"reflect"
	"strings"

	"tamga/internal/domain/fault"
)

// Parts is a body of type multipart/form-data. It is read part by part as it comes.
type Parts struct {
	reader *multipart.Reader
	head   *headReader
	in     *input
	left   int // parts that may still come
	names  names
	many   lists // names that several parts may have
}

var partsType = reflect.TypeFor[Parts]()

// Part is one part of Parts. It is valid until the next call of [Parts.Next]. Its document
// is opened with [Documents.Open].
type Part struct {
	Name     string // of the form's field
	FileName string // the last element of Path; "": none
	body     *multipart.Part
	in       *input
}

const (
	// maxPartHead bounds the bytes between two parts, headers included, besides the read
	// buffer.
	maxPartHead = 16 << 10
	// maxBoundary is the limit of RFC 2046, in bytes.
	maxBoundary = 70
)

// headReader bounds the bytes read between parts. Without it, multipart.Reader would read
// megabytes of headers into memory.
type headReader struct {
	io.Reader
	in   bool  // the read position is between parts
	left int64 // bytes that may still be read there
}

func (h *headReader) Read(p []byte) (int, error) {
	if h.in && h.left <= 0 {
		return 0, fault.Newf(fault.TooLarge, "the headers of a part are larger than %d bytes", maxPartHead)
	}
	n, err := h.Reader.Read(p)
	if h.in {
		h.left -= int64(n)
	}
	if err == io.EOF {
		// multipart.Reader takes a body that stops in the headers of a part for a complete
		// one. So it gets a body without an end: it must find the last boundary, to which
		// only a line break may be missing.
		h.Reader, err = io.MultiReader(strings.NewReader("\r\n"), noEnd{}), nil
	}
	return n, err
}

// noEnd follows the end of a body.
type noEnd struct{}

func (noEnd) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// bindParts needs the boundary, so it does read the Content-Type.
func bindParts(in *input, v reflect.Value, many lists) error {
	kind, parameters, err := mime.ParseMediaType(in.http.Header.Get("Content-Type"))
	boundary := parameters["boundary"]
	if err != nil || !strings.HasPrefix(kind, "multipart/") || boundary == "" || len(boundary) > maxBoundary {
		return fault.New(fault.InvalidParameters, "the body has no parts: send multipart/form-data and name its boundary in the Content-Type")
	}
	head := &headReader{Reader: in.body}
	v.Set(reflect.ValueOf(Parts{multipart.NewReader(head, boundary), head, in, 2 * in.documents, names{}, many}))
	return nil
}

// Next returns the next part, and io.EOF after the last one. Unread bytes of the previous
// part are dropped. A name that an earlier part has is the fault invalid_parameters, unless
// the tag many of the body has it.
func (p *Parts) Next() (*Part, error) {
	if p.left--; p.left < 0 {
		return nil, fault.Newf(fault.InvalidParameters, "the request has more than %d parts", 2*p.in.documents)
	}
	p.head.in, p.head.left = true, maxPartHead
	body, err := p.reader.NextPart()
	p.head.in = false
	if err == io.EOF { // after the last boundary
		if p.in.remains != nil {
			err = cmp.Or(p.in.remains(), err)
		}
		return nil, err
	}
	if err != nil {
		return nil, brokenParts(err)
	}
	if err := p.names.add(body.FormName(), p.many); err != nil {
		return nil, err
	}
	return &Part{Name: body.FormName(), FileName: body.FileName(), body: body, in: p.in}, nil
}

// brokenParts returns errors of the body as they are, and a fault for any other error of
// the framing.
func brokenParts(err error) error {
	var lost *errLost
	_, refused := fault.As(err)
	if _, away := fault.AsOutage(err); refused || away || errors.As(err, &lost) {
		return err
	}
	return fault.New(fault.InvalidParameters, "the parts of the body are not as multipart/form-data has them, or the last boundary is missing").With(err)
}

// document implements Source. It reads the part to its end, so a part can be opened once.
func (p *Part) document() (int, error) {
	sink, at, err := p.in.docs.create()
	if err != nil {
		return 0, err
	}
	if err := p.CopyTo(sink); err != nil {
		return 0, err
	}
	return at, sink.Finish()
}

// Path returns the name of the file as it was sent. Browsers send the files of a folder with a path.
func (p *Part) Path() string {
	_, parameters, err := mime.ParseMediaType(p.body.Header.Get("Content-Disposition"))
	if err != nil {
		return p.FileName
	}
	return parameters["filename"]
}

// CopyTo reads the part to its end into w, instead of [Documents.Open].
func (p *Part) CopyTo(w io.Writer) error {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	_, err := io.CopyBuffer(w, &partReader{p.body}, *buf)
	return err
}

// Text reads the part as a text of at most so many bytes.
func (p *Part) Text(most int64) (string, error) {
	text, err := io.ReadAll(io.LimitReader(&partReader{p.body}, most+1))
	if err == nil && int64(len(text)) > most {
		err = fault.Newf(fault.TooLarge, "the field %.64q is longer than %d bytes", p.Name, most)
	}
	return string(text), err
}

// JSON reads the part as a JSON value into the value that v points to. It reports false for
// an empty part.
func (p *Part) JSON(v any) (bool, error) {
	return readJSON(&partReader{p.body}, v, p.in.docs)
}

// partReader tells errors of the framing from errors of the content of a part.
type partReader struct{ r io.Reader }

func (r *partReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil && err != io.EOF {
		err = brokenParts(err)
	}
	return n, err
}
