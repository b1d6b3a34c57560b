// SPDX-License-Identifier: Apache-2.0

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

// source is a part of a body to send. It is read once and not kept in memory.
type source struct {
	io.Reader
	size int64 // bytes, -1 if not known before the end
}

// signRequest is the body of POST /api/documents, or with several files of POST /api/tamga/operations.
// Documents are encoded while they are sent.
type signRequest struct {
	files       []*inputFile
	content     source
	name        string      // of content in a container, empty for other signatures
	more        []inputFile // other files of a container
	original    *source     // the parameter OriginalDocument, nil if absent
	kind        string      // Signature.Type
	parameters  map[string]string
	certificate string // a number or another identifier
	pin         []byte // cleared by wipe
	quoted      []byte // pin as JSON
}

// wipe clears the PIN in memory. It cannot clear the buffers of the connection.
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

// body returns the JSON and its length in bytes, -1 if the length of a part is not known. Content is
// the first field, so that a server can hash it while it arrives.
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
		literal(`{"Content":"`), encoded(r.content), literal(`",`),
	}
	if r.name != "" {
		name, _ := json.Marshal(r.name) // a string always has a JSON form
		parts = append(parts, literal(`"Name":`+string(name)+`,"Files":[`))
		for i, f := range r.more {
			name, _ := json.Marshal(f.name)
			head := `{"Name":` + string(name) + `,"Content":"`
			if i > 0 {
				head = "," + head
			}
			parts = append(parts, literal(head), encoded(f.content), literal(`"}`))
		}
		parts = append(parts, literal("],"))
	}
	parts = append(parts,
		literal(`"Signature":`+strings.TrimSuffix(string(head), "}")+`,"PinCode":`),
		source{bytes.NewReader(r.quoted), int64(len(r.quoted))},
	)
	// Parameters are the last field, so that OriginalDocument can be appended.
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
	body, size := joined(append(parts, literal("}")))
	return body, size, nil
}

// joined returns the parts of a body and their length in bytes, -1 if the length of a part is not known.
func joined(parts []source) (io.Reader, int64) {
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
	return io.MultiReader(readers...), size
}

// certificateID returns a number as a JSON number, as the examples of the interface have it, and any
// other identifier as a JSON string.
func certificateID(id string) json.RawMessage {
	if n, err := strconv.ParseInt(id, 10, 64); err == nil {
		return json.RawMessage(strconv.FormatInt(n, 10))
	}
	text, _ := json.Marshal(id) // a string always has a JSON form
	return text
}

// literal returns a source with this text.
func literal(s string) source { return source{strings.NewReader(s), int64(len(s))} }

// encoded returns a source with the Base64 of s.
func encoded(s source) source {
	size := int64(-1)
	if s.size >= 0 {
		size = (s.size + 2) / 3 * 4
	}
	return source{&base64Reader{src: s.Reader}, size}
}

// base64Reader encodes src. The standard library has a writer only, which would need a pipe and a
// goroutine.
type base64Reader struct {
	src  io.Reader
	raw  [48 << 10]byte // its size is a multiple of three, so that there is no padding before the end
	text [64 << 10]byte
	left []byte // the part of text not returned yet
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
