// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"errors"
	"io"
	"reflect"

	"tamga/internal/domain/fault"
)

// Sink is the type S of a surface that takes the bytes of one document. The request writes
// and finishes it, the handler reads it, and the request closes it once the answer is out.
// Close may be called at any time.
type Sink[S any] interface {
	sink
	// Sibling opens a sink for another document of the same request. Siblings may share
	// what a request has once, such as a file.
	Sibling() (S, error)
}

// sink is a Sink of any type, as the reader of a request needs it.
type sink interface {
	io.Writer
	Finish() error
	Close() error
}

// Source is a value of a request that may be a document: [Blob], [Document], [Raw] or
// *[Part].
type Source interface {
	// document finishes the document and returns the index of its sink.
	document() (at int, err error)
}

// Documents are the documents of one request. A handler gets it from [HandleDocuments].
type Documents[S Sink[S]] struct {
	open  func() (S, error) // the first sink
	most  int               // how many
	sinks []S
}

// Open returns the document of a value of the request, finished. Its fault is
// invalid_content when the value is no document. A [Part] is read here, so it is opened
// once; the others may be opened again.
func (d *Documents[S]) Open(from Source) (S, error) {
	at, err := from.document()
	if err != nil {
		var none S
		return none, err
	}
	return d.sinks[at], nil
}

// New returns a document that the handler writes and finishes itself, one of those that the request may hold.
func (d *Documents[S]) New() (S, error) {
	_, at, err := d.create()
	if err != nil {
		var none S
		return none, err
	}
	return d.sinks[at], nil
}

// errFull reports a request with more documents than it may hold.
var errFull = errors.New("rest: too many documents")

// Full reports whether a request was refused because it holds too many documents. What follows in it can still be read.
func Full(err error) bool { return errors.Is(err, errFull) }

// documents is Documents of any type, as the reader of a request needs it.
type documents interface {
	create() (s sink, at int, err error)
	close() error
}

// create opens a sink and returns it with its index.
func (d *Documents[S]) create() (sink, int, error) {
	at := len(d.sinks)
	if at >= d.most {
		return nil, 0, fault.Newf(fault.InvalidParameters, "the request holds more than %d documents", d.most).With(errFull)
	}
	var s S
	var err error
	if at == 0 {
		s, err = d.open()
	} else {
		s, err = d.sinks[0].Sibling()
	}
	if err != nil {
		return nil, 0, err
	}
	d.sinks = append(d.sinks, s)
	return s, at, nil
}

// close frees every sink. The error is for the log.
func (d *Documents[S]) close() error {
	var errs []error
	for _, s := range d.sinks {
		if err := s.Close(); err != nil {
			errs = append(errs, err)
		}
	}
	d.sinks = nil
	return errors.Join(errs...)
}

// holdsDocuments reports whether a value of type t may hold a document. seen ends the
// search in a type that contains itself.
func holdsDocuments(t reflect.Type, seen map[reflect.Type]bool) bool {
	switch t {
	case blobType, docType, rawType, partsType:
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return holdsDocuments(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if holdsDocuments(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}
