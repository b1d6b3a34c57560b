// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const jsonType = "application/json; charset=utf-8"

// jsonTypes is the header of jsonType in all answers. It must not be changed in place.
var jsonTypes = []string{jsonType}

// None is the answer of an operation without a result: 200 and no body.
type None struct{}

// Content is bytes whose number is known before they are written.
type Content interface {
	Size() int64 // bytes
	io.WriterTo
}

// Redirect answers 302 with an address to go on at.
type Redirect struct {
	Location string
	// See makes it 303: the browser follows with GET.
	See    bool
	Cookie *http.Cookie // nil: none
}

// Stream answers Content as one JSON string with its Base64, which is encoded while it is
// written.
type Stream struct {
	Content
	Header map[string]string // fields of the answer beside those of every one; nil: none
}

// JSON answers Content that writes JSON text itself.
type JSON struct{ Content }

// File answers Content as it is.
type File struct {
	Content
	Name string // proposed to the client; may be empty
	Type string // media type; empty: application/octet-stream

	// Encoding is how Content is compressed, "gzip" or "" for not at all. Varies says that it depends on what the client
	// accepts.
	Encoding string
	Varies   bool
	Kept     bool // what is at the address never changes, so browsers and caches may keep it

	Policy string // Content-Security-Policy of a script that runs by itself; "" is that of Secured
}

// Page answers HTML.
type Page struct {
	Content
	Policy string       // Content-Security-Policy; it replaces the one of Secured
	Status int          // 0 is 200
	Cookie *http.Cookie // nil: none
}

// answer is a prepared success. Only the connection can still fail.
type answer struct {
	kind     string      // Content-Type; "" is no body
	name     string      // of the file to save it as; "": none
	location string      // "": no redirect
	policy   string      // Content-Security-Policy; "" is that of Secured
	header   http.Header // more headers; nil: none
	status   int         // 0 is 200, or 302 with a location
	cookie   *http.Cookie
	size     int64
	to       func(w io.Writer) error
	events   *Events // nil: the answer is that of to
}

// prepare turns the result of a handler into an answer.
func prepare(value any) (answer, error) {
	switch v := value.(type) {
	case None:
		return answer{to: func(io.Writer) error { return nil }}, nil
	case Events:
		return answer{events: &v}, nil
	case Redirect:
		a := answer{location: v.Location, cookie: v.Cookie, to: func(io.Writer) error { return nil }}
		if v.See {
			a.status = http.StatusSeeOther
		}
		return a, nil
	case Stream:
		if v.Content == nil {
			return answer{}, fmt.Errorf("rest: an answer without content")
		}
		return answer{kind: jsonType, header: v.header(), size: 2 + encodedLen(v.Size()), to: v.encode}, nil
	case JSON:
		if v.Content == nil {
			return answer{}, fmt.Errorf("rest: an answer without content")
		}
		return answer{kind: jsonType, size: v.Size(), to: func(w io.Writer) error {
			_, err := v.WriteTo(w)
			return err
		}}, nil
	case Page:
		return answer{kind: "text/html; charset=utf-8", policy: v.Policy, status: v.Status, cookie: v.Cookie, size: v.Size(), to: func(w io.Writer) error {
			_, err := v.WriteTo(w)
			return err
		}}, nil
	case File:
		if v.Content == nil {
			return answer{}, fmt.Errorf("rest: an answer without content")
		}
		kind := v.Type
		if kind == "" {
			kind = "application/octet-stream"
		}
		return answer{kind: kind, name: v.Name, policy: v.Policy, header: v.header(), size: v.Size(), to: func(w io.Writer) error {
			_, err := v.WriteTo(w)
			return err
		}}, nil
	}
	b, err := encodeJSON(value)
	if err != nil {
		return answer{}, err
	}
	return answer{kind: jsonType, size: int64(len(b)), to: func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}}, nil
}

// header returns the fields in the form of http.
func (s Stream) header() http.Header {
	if s.Header == nil {
		return nil
	}
	h := make(http.Header, len(s.Header))
	for name, value := range s.Header {
		h.Set(name, value)
	}
	return h
}

// header returns the headers of a file about compression and caches.
func (f File) header() http.Header {
	h := http.Header{}
	if f.Encoding != "" {
		h.Set("Content-Encoding", f.Encoding)
	}
	if f.Kept {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if f.Varies {
		h.Set("Vary", "Accept-Encoding")
	}
	return h
}

// unsaved replaces the characters that are not in names of files on Windows, where one of them fails a download or
// a whole archive.
var unsaved = strings.NewReplacer(`<`, "_", `>`, "_", `:`, "_", `"`, "_", `|`, "_", `?`, "_", `*`, "_")

// FileName returns the name by which a file may be saved: the last element of a name from outside, with characters
// replaced that systems do not save, that control a terminal, or that change the direction of writing. A name of
// which nothing is left is "document".
func FileName(name string) string {
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Cf) || r == utf8.RuneError {
			return '_'
		}
		return r
	}, unsaved.Replace(name))
	if name = strings.TrimRight(strings.TrimSpace(name), ". "); name == "" {
		return "document"
	}
	return name
}

// encodeJSON encodes an answer that is a plain value.
func encodeJSON(value any) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, fmt.Errorf("rest: encoding the answer: %w", err)
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// send writes the answer. An error means that the client did not get all of it.
func (a answer) send(w http.ResponseWriter) error {
	switch a.kind {
	case "":
	case jsonType:
		w.Header()["Content-Type"] = jsonTypes
	default:
		w.Header().Set("Content-Type", a.kind)
	}
	if a.policy != "" {
		w.Header().Set("Content-Security-Policy", a.policy)
	}
	maps.Copy(w.Header(), a.header)
	if a.name != "" {
		w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": FileName(a.name)}))
	}
	w.Header().Set("Content-Length", strconv.FormatInt(a.size, 10))
	status := http.StatusOK
	if a.location != "" {
		w.Header().Set("Location", a.location)
		status = http.StatusFound
	}
	if a.cookie != nil {
		http.SetCookie(w, a.cookie)
	}
	status = cmp.Or(a.status, status)
	w.WriteHeader(status)
	conn := http.NewResponseController(w)
	out := &steady{w: w, conn: conn}
	if err := a.to(out); err != nil {
		return err
	}
	if out.n != a.size {
		return fmt.Errorf("rest: the answer has %d bytes, but %d were announced", out.n, a.size)
	}
	// Flush reports errors of what is still in a buffer of the server.
	if err := conn.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("rest: the answer was not taken: %w", err)
	}
	return nil
}

// encode writes the JSON string of a Stream. Up to 256 KiB it is one write.
func (s Stream) encode(w io.Writer) error {
	e := newEncoder(w, 2+encodedLen(s.Size()))
	defer e.free()
	if err := e.plain('"'); err != nil {
		return err
	}
	if _, err := s.WriteTo(e); err != nil {
		return err
	}
	if err := e.pad(); err != nil {
		return err
	}
	if err := e.plain('"'); err != nil {
		return err
	}
	return e.flush()
}

// encodedLen is base64.StdEncoding.EncodedLen for lengths beyond 32 bits.
func encodedLen(n int64) int64 { return (n + 2) / 3 * 4 }
