// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"strings"

	"tamga/internal/domain/fault"
)

// Raw is a body taken as it is into a [Sink], in a request whose JSON value comes in a
// header as Base64URL. The tag of the field names the header:
//
//	Raw rest.Raw `header:"CPDSS-OPERATION-PARAMS"`
//
// A request without the header has its JSON value in the body as usual, and no Raw.
type Raw struct {
	present bool
	at      int // index of its sink in the documents of the request
}

// Present reports whether the request has the header.
func (r Raw) Present() bool { return r.present }

// document implements Source.
func (r Raw) document() (int, error) {
	if !r.present {
		return 0, fault.New(fault.InvalidContent, "the document is missing: send it as the body")
	}
	return r.at, nil
}

var rawType = reflect.TypeFor[Raw]()

// compileRaw returns the part that binds a request with the header of the Raw field f.
// Without the header it calls body. place is the Body field, invalid if the request has
// none.
func compileRaw(f, place reflect.StructField, route string, body part) part {
	header, ok := f.Tag.Lookup("header")
	if !ok || body == nil {
		panic(fmt.Sprintf("rest: route %s: field %s is a Raw: its tag must name the header with the value of Body", route, f.Name))
	}
	return func(in *input, v reflect.Value) error {
		values := in.http.Header.Values(header)
		switch len(values) {
		case 0:
			err := body(in, v)
			if err == nil {
				return nil
			}
			if f, ok := fault.As(err); ok && f.Code == fault.InvalidParameters && strings.HasPrefix(f.Message, aboutBody) {
				// Most likely it is the document, and the client forgot the header.
				return fault.Newf(f.Code, "%s; when it is the document, the request comes in the header %s", f.Message, header).With(err)
			}
			return err
		case 1:
		default:
			return fault.Newf(fault.InvalidParameters, "the header %s is there %d times: send it once", header, len(values))
		}
		if err := bindHeader(in, header, values[0], v.FieldByIndex(place.Index)); err != nil {
			return err
		}
		sink, at, err := in.docs.create()
		if err != nil {
			return err
		}
		v.FieldByIndex(f.Index).Set(reflect.ValueOf(Raw{true, at}))
		buf := buffers.Get().(*[]byte)
		defer buffers.Put(buf)
		if _, err := io.CopyBuffer(sink, in.body, *buf); err != nil {
			return err
		}
		return sink.Finish()
	}
}

// aboutBody is the beginning of faults about JSON that is invalid as a whole.
const aboutBody = "the request body"

// bindHeader reads the JSON value of a header into v. Both alphabets of Base64 are
// accepted, with padding and without.
func bindHeader(in *input, name, text string, v reflect.Value) error {
	value, err := DecodeBase64URL(strings.TrimSpace(text))
	if err != nil {
		return fault.Newf(fault.InvalidParameters, "the header %s is not Base64URL", name).With(err)
	}
	present, err := readJSON(bytes.NewReader(value), v.Addr().Interface(), in.docs)
	if err != nil {
		if f, ok := fault.As(err); ok {
			return fault.Newf(f.Code, "the header %s: %s", name, strings.Replace(f.Message, aboutBody, "its value", 1)).With(err)
		}
		return err
	}
	if !present {
		return fault.Newf(fault.InvalidParameters, "the header %s is empty: it holds the request as JSON", name)
	}
	return nil
}
