package rest

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"reflect"
	"strings"

	"tamga/internal/domain/fault"
)

// Parts is a body of type multipart/form-data, read part by part as it comes.
type Parts struct {
	reader *multipart.Reader
	head   *headReader
	in     *input
	left   int // parts that may still come
}

var partsType = reflect.TypeFor[Parts]()

// Part is one part of Parts. It is valid until the next one is asked for.
type Part struct {
	Name     string // of the form's field
	FileName string // "" is none
	body     *multipart.Part
	in       *input
}

const (
	// maxPartHead bounds what lies between two parts, headers included, beside the
	// buffer it is read through.
	maxPartHead = 16 << 10
	// maxBoundary is the most RFC 2046 allows, in octets.
	maxBoundary = 70
)

// headReader bounds what is read while no part is: the reader of parts would take
// megabytes of headers into memory.
type headReader struct {
	io.Reader
	in   bool  // between parts
	left int64 // octets that may be read there
}

func (h *headReader) Read(p []byte) (int, error) {
	if h.in && h.left <= 0 {
		return 0, fault.Newf(fault.TooLarge, "the headers of a part are larger than %d octets", maxPartHead)
	}
	n, err := h.Reader.Read(p)
	if h.in {
		h.left -= int64(n)
	}
	if err == io.EOF {
		// The reader of parts takes a body that stops in the headers of a part for one
		// that came to its end. So the body has no end for it: it ends with its last
		// boundary, which may want a line break yet, or not at all.
		h.Reader, err = io.MultiReader(strings.NewReader("\r\n"), noEnd{}), nil
	}
	return n, err
}

// noEnd stands behind the end of a body.
type noEnd struct{}

func (noEnd) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// bindParts needs the boundary, so here the Content-Type counts.
func bindParts(in *input, v reflect.Value) error {
	kind, parameters, err := mime.ParseMediaType(in.http.Header.Get("Content-Type"))
	boundary := parameters["boundary"]
	if err != nil || !strings.HasPrefix(kind, "multipart/") || boundary == "" || len(boundary) > maxBoundary {
		return fault.New(fault.InvalidParameters, "the body has no parts: send multipart/form-data and name its boundary in the Content-Type")
	}
	head := &headReader{Reader: in.body}
	v.Set(reflect.ValueOf(Parts{multipart.NewReader(head, boundary), head, in, 2 * in.documents}))
	return nil
}

// Next returns the next part, and io.EOF behind the last one. What was not read of the
// part before is passed over.
func (p *Parts) Next() (*Part, error) {
	if p.left--; p.left < 0 {
		return nil, fault.Newf(fault.InvalidParameters, "the request has more than %d parts", 2*p.in.documents)
	}
	p.head.in, p.head.left = true, maxPartHead
	body, err := p.reader.NextPart()
	p.head.in = false
	if err == io.EOF { // behind the last boundary
		return nil, err
	}
	if err != nil {
		return nil, brokenParts(err)
	}
	return &Part{Name: body.FormName(), FileName: body.FileName(), body: body, in: p.in}, nil
}

// brokenParts keeps the errors of the body and tells what else is wrong.
func brokenParts(err error) error {
	var lost *errLost
	_, refused := fault.As(err)
	if _, away := fault.AsOutage(err); refused || away || errors.As(err, &lost) {
		return err
	}
	return fault.New(fault.InvalidParameters, "the parts of the body are not as multipart/form-data has them, or the last boundary is missing").With(err)
}

// document implements Source: it reads the part to its end, so a part can be opened once.
func (p *Part) document() (int, error) {
	sink, at, err := p.in.docs.create()
	if err != nil {
		return 0, err
	}
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	if _, err := io.CopyBuffer(sink, &partReader{p.body}, *buf); err != nil {
		return 0, err
	}
	return at, sink.Finish()
}

// JSON reads the part as a JSON value into what v points to. It reports false for an
// empty part.
func (p *Part) JSON(v any) (bool, error) {
	return readJSON(&partReader{p.body}, v, p.in.docs)
}

// partReader tells faults of the framing from those of a part's content.
type partReader struct{ r io.Reader }

func (r *partReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil && err != io.EOF {
		err = brokenParts(err)
	}
	return n, err
}
