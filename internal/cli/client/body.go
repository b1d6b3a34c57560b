package client

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// source is bytes to send: read once, never held.
type source struct {
	io.Reader
	size int64 // octets, -1 when not known before the end
}

// signRequest is the body of POST /api/documents. The two long texts are
// encoded while they are sent.
type signRequest struct {
	content     source
	original    *source // the parameter OriginalDocument, nil when absent
	kind        string  // Signature.Type
	parameters  map[string]string
	certificate string // a number, or the text of an identifier
	pin         []byte // wiped by wipe
	quoted      []byte // the same as JSON
}

// wipe clears the PIN in memory. What the connection has buffered is out of reach.
func (r *signRequest) wipe() {
	clear(r.pin)
	clear(r.quoted)
}

// quoteSecret writes b as a JSON string without leaving copies of it.
func quoteSecret(b []byte) []byte {
	out := make([]byte, 0, 6*len(b)+2) // never grows
	out = append(out, '"')
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && n == 1:
			out = append(out, `\ufffd`...)
		case r == '"' || r == '\\':
			out = append(out, '\\', byte(r))
		case r < ' ':
			out = append(out, '\\', 'u', '0', '0', "0123456789abcdef"[r>>4], "0123456789abcdef"[r&15])
		default:
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return append(out, '"')
}

// body returns the JSON and its length, -1 when the length of a part is not
// known. Content stands first: a server can hash it while it comes in.
func (r *signRequest) body() (io.Reader, int64, error) {
	head, err := json.Marshal(struct {
		Type          string
		CertificateID json.RawMessage `json:"CertificateId"`
	}{r.kind, certificateID(r.certificate)})
	if err != nil {
		return nil, 0, err
	}
	parameters := []byte("{}")
	if len(r.parameters) > 0 {
		if parameters, err = json.Marshal(r.parameters); err != nil {
			return nil, 0, err
		}
	}
	r.quoted = quoteSecret(r.pin)
	parts := []source{
		literal(`{"Content":"`), encoded(r.content),
		literal(`","Signature":` + strings.TrimSuffix(string(head), "}") + `,"PinCode":`),
		{bytes.NewReader(r.quoted), int64(len(r.quoted))},
	}
	// Parameters are the last field, so that OriginalDocument can be put in behind them.
	text := `,"Parameters":` + string(parameters) + "}"
	if r.original == nil {
		parts = append(parts, literal(text))
	} else {
		open := strings.TrimSuffix(text, "}}")
		if len(r.parameters) > 0 {
			open += ","
		}
		parts = append(parts, literal(open+`"OriginalDocument":"`), encoded(*r.original), literal(`"}}`))
	}
	parts = append(parts, literal("}"))

	var size int64
	readers := make([]io.Reader, len(parts))
	for i, p := range parts {
		readers[i] = p.Reader
		if p.size < 0 {
			size = -1
		}
		if size >= 0 {
			size += p.size
		}
	}
	return io.MultiReader(readers...), size, nil
}

// certificateID writes a number as a number, as the examples of the interface
// do, and any other identifier as text.
func certificateID(id string) json.RawMessage {
	if n, err := strconv.ParseInt(id, 10, 64); err == nil {
		return json.RawMessage(strconv.FormatInt(n, 10))
	}
	text, _ := json.Marshal(id) // a string always has a JSON form
	return text
}

func literal(s string) source { return source{strings.NewReader(s), int64(len(s))} }

// encoded is the Base64 of s.
func encoded(s source) source {
	size := int64(-1)
	if s.size >= 0 {
		size = (s.size + 2) / 3 * 4
	}
	return source{&base64Reader{src: s.Reader}, size}
}

// base64Reader encodes what it reads. (The standard library has this as a
// writer only, which would take a pipe and a goroutine that can be left behind.)
type base64Reader struct {
	src  io.Reader
	raw  [48 << 10]byte // a multiple of three: no padding before the end
	text [64 << 10]byte
	left []byte // of text, not handed out yet
	err  error
}

func (r *base64Reader) Read(b []byte) (int, error) {
	if len(r.left) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		n, err := io.ReadFull(r.src, r.raw[:])
		if err == io.ErrUnexpectedEOF {
			err = io.EOF
		}
		r.err = err
		if err != nil && err != io.EOF {
			return 0, err
		}
		base64.StdEncoding.Encode(r.text[:], r.raw[:n])
		r.left = r.text[:base64.StdEncoding.EncodedLen(n)]
		if n == 0 {
			return 0, r.err
		}
	}
	n := copy(b, r.left)
	r.left = r.left[n:]
	return n, nil
}
