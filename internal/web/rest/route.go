// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
)

// Right says who may call a route. A surface may define more rights than these two. Its
// [Gate] checks them.
type Right string

const (
	Anyone   Right = "anyone"    // the caller is not identified
	SignedIn Right = "signed-in" // every caller with a valid bearer token
)

// Route is one operation as a value. The server, the metrics, the audit log and the
// description of the interface are made from it. Make one with [Handle] or
// [HandleDocuments].
type Route struct {
	Name     string // operation, unique on its surface; label of metrics and audit entries
	Method   string
	Path     string // below the prefix it is mounted at, without a trailing slash
	Right    Right
	Request  reflect.Type
	Response reflect.Type
	// What the Go types do not show, for the description of the interface: the body of the
	// request if its type is an interface, and the answers if there are several.
	Takes   reflect.Type // nil: see Request
	Answers []reflect.Type

	size  size
	limit int64 // for size ownLimit, in bytes

	unaudited, exact bool
	counted          bool // see Counted
	answerOnly, once bool
	noted            bool // see Noted
	confirmed        bool
	callerOnly       bool       // see CallerOnly
	identifies       bool       // see Identifying
	varying          []string   // see Varying
	declared         bool       // see Effects
	possible         effect.Set // with any values
	weigh            func(ctx context.Context, req any) (effect.Set, error)
	headers          []string // that fields of the request are read from
	guard            func(remote string) error
	guardWithout     func(remote string) error // see WithoutToken
	limitWithout     int64
	call             func(ctx context.Context, in *input) (any, error)
}

// size selects the limit of a body.
type size int

const (
	ordinary size = iota
	large
	ownLimit
)

// Large gives the route the limit of requests that carry documents.
func (r Route) Large() Route {
	r.size = large
	return r
}

// AtMost gives the route a limit of its own, in bytes of the body.
func (r Route) AtMost(n int64) Route {
	r.size, r.limit = ownLimit, n
	return r
}

// WithoutToken gives a route that is Identifying a guard and a limit in bytes of the body that hold for callers without
// a token.
func (r Route) WithoutToken(guard func(remote string) error, n int64) Route {
	r.guardWithout, r.limitWithout = guard, n
	return r
}

// Guarded gives the route a guard, which may refuse a request by the address of its sender.
// It runs before the body is read and before anything is written. A caller that is refused waits for the
// answer.
func (r Route) Guarded(guard func(remote string) error) Route {
	r.guard = guard
	return r
}

// AnswerOnly marks a route that changes nothing besides its answer. The audit entry of the
// attempt is then written while the call runs instead of before it. Both entries are
// durable before the answer is sent. If a crash loses both, no client has received a
// result. Two things may outlive such a crash: a counted attempt at a PIN, and an answer
// kept under a key, which has its own audit entry when it is delivered.
func (r Route) AnswerOnly() Route {
	r.answerOnly = true
	return r
}

// Noted marks a route that writes its audit entries in the step that makes its change, by [KeepEntry]. If
// the call fails, they are written after it: a crash may lose those of a call that failed. A change always
// has both.
func (r Route) Noted() Route {
	r.noted = true
	return r
}

// Confirmed makes a route accept confirmed tokens beside access tokens. Every other route
// refuses them. The operation finds the confirmation in Principal.Confirmation of its
// [Caller]. If it is set, the operation must do what was confirmed and nothing else.
func (r Route) Confirmed() Route {
	r.confirmed = true
	return r
}

// Identifying makes a route for Anyone identify a caller who sends a bearer token. Without one
// the caller is not identified. An invalid token is refused: otherwise what a user begins with a
// token that has just expired would belong to no user.
func (r Route) Identifying() Route {
	r.identifies = true
	return r
}

// CallerOnly makes a route read nothing but the caller where Gate.IdentifyWith would read more in the
// same step.
func (r Route) CallerOnly() Route {
	r.callerOnly = true
	return r
}

// MayIdentify reports whether the route is for Anyone and also takes a bearer token.
func (r Route) MayIdentify() bool { return r.identifies && r.Right == Anyone }

// TakesConfirmed reports whether the route accepts confirmed tokens.
func (r Route) TakesConfirmed() bool { return r.confirmed }

// Unaudited keeps a route out of the audit log. It is for public data that every client
// may read without limit (certificates, revocation lists, OCSP answers). An entry for each
// read would let anonymous callers fill the audit log and says nothing about a user. The log and
// the metrics still count such requests. Only a route for Anyone that changes nothing may
// be Unaudited.
func (r Route) Unaudited() Route {
	r.unaudited = true
	return r
}

// Counted makes the audit log count what callers without a token get of a route, instead of an
// entry for each: see [Gatherer]. It is for a route for Anyone whose results say nothing about a
// user and change nothing that is stored, but which anonymous callers can ask for as fast as they like.
func (r Route) Counted() Route {
	r.counted = true
	return r
}

// Audited reports whether calls of the route may have entries in the audit log.
func (r Route) Audited() bool { return !r.unaudited }

// Exact serves the path as it is, without the variant with a trailing slash. It is for
// files, whose addresses people do not type.
func (r Route) Exact() Route {
	r.exact = true
	return r
}

// Taking describes the body of the request by the type of a value.
func (r Route) Taking(body any) Route {
	r.Takes = reflect.TypeOf(body)
	return r
}

// Answering describes the answers by the types of values.
func (r Route) Answering(values ...any) Route {
	r.Answers = nil
	for _, v := range values {
		r.Answers = append(r.Answers, reflect.TypeOf(v))
	}
	return r
}

// Repeatable reports whether the route takes an Idempotency-Key; see [Route.Once].
func (r Route) Repeatable() bool { return r.once }

// Also returns the same operation under another method, for a table with one row for POST
// and one for PATCH.
func (r Route) Also(method string) Route {
	r.Method = method
	return r
}

// input is the data of one request.
type input struct {
	http      *http.Request
	body      io.Reader
	documents int       // how many the request may hold
	docs      documents // nil: the route takes none
	// bound is called with the pointer to the request that was read, before the call. nil: not called.
	bound   func(req any) error
	remains func() error // refuses a caller whose sign-in ended while the body was read; nil: not called
}

// close frees the documents of the request.
func (in *input) close() error {
	if in.docs == nil {
		return nil
	}
	return in.docs.close()
}

// Handle makes a route of a function. The pattern is a method and a path of
// [http.ServeMux], such as "GET /certificates/{id}".
//
// Req is a struct. The tags of its fields name their sources: `path:"id"`, `query:"x"` or
// `header:"X"`. The field Body is the JSON value of the body, of any type, or a [Form] or
// [Bytes]. [Text] and [Unread] are understood anywhere inside of Body. Resp is a JSON
// value, [None], [File], [Stream], [JSON], [Page] or [Redirect], or an interface if an
// operation has several kinds of answer. Handle panics when Req cannot be bound, because
// that is an error in the program. A Req that may hold documents needs [HandleDocuments].
func Handle[Req, Resp any](pattern, name string, right Right, f func(context.Context, Req) (Resp, error)) Route {
	r, read := newRoute[Req, Resp](pattern, name, right)
	if holdsDocuments(r.Request, map[reflect.Type]bool{}) {
		panic(fmt.Sprintf("rest: route %s: its request may hold documents: use HandleDocuments", name))
	}
	r.call = func(ctx context.Context, in *input) (any, error) {
		req, err := read(in)
		if err != nil {
			return nil, err
		}
		return f(ctx, req)
	}
	return r
}

// HandleDocuments is [Handle] for requests that may hold documents: a [Blob], [Document] or
// [Raw], or [Parts]. open opens the sink of the first document of a request, for its
// caller. The sinks of the other documents are siblings of that one. f gets a document with
// [Documents.Open], as the type that open returns.
func HandleDocuments[S Sink[S], Req, Resp any](pattern, name string, right Right, open func(context.Context, audit.Principal) (S, error), f func(context.Context, *Documents[S], Req) (Resp, error)) Route {
	r, read := newRoute[Req, Resp](pattern, name, right)
	r.call = func(ctx context.Context, in *input) (any, error) {
		docs := &Documents[S]{most: in.documents, open: func() (S, error) { return open(ctx, Caller(ctx)) }}
		in.docs = docs
		req, err := read(in)
		if err != nil {
			return nil, err
		}
		return f(ctx, docs, req)
	}
	return r
}

// newRoute returns a route without its function, and the function that reads its requests.
func newRoute[Req, Resp any](pattern, name string, right Right) (Route, func(*input) (Req, error)) {
	method, path, ok := strings.Cut(pattern, " ")
	if !ok || method == "" || !strings.HasPrefix(path, "/") || len(path) > 1 && strings.HasSuffix(path, "/") {
		panic(fmt.Sprintf("rest: route %s: pattern %q is not METHOD /path without a trailing slash", name, pattern))
	}
	bind := compileRequest(reflect.TypeFor[Req](), name, path)
	r := Route{
		Name: name, Method: method, Path: path, Right: right,
		Request: reflect.TypeFor[Req](), Response: reflect.TypeFor[Resp](),
		headers: headersOf(reflect.TypeFor[Req]()),
	}
	return r, func(in *input) (req Req, err error) {
		if err := bind(in, reflect.ValueOf(&req).Elem()); err != nil {
			return req, err
		}
		if in.bound != nil {
			err = in.bound(&req)
		}
		return req, err
	}
}

// headersOf lists the headers that fields of a request are read from.
func headersOf(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		if name, ok := t.Field(i).Tag.Lookup("header"); ok {
			names = append(names, name)
		}
	}
	return names
}

// part fills one field of a request.
type part func(in *input, v reflect.Value) error

func compileRequest(t reflect.Type, route, path string) part {
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("rest: route %s: the request type is %s, want a struct", route, t))
	}
	var parts []part
	body := part(nil)
	var raw, place reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Type == rawType {
			raw = f
			continue
		}
		if f.Name == "Body" {
			place = f
		}
		p := compilePart(f, route, path)
		indexed := func(in *input, v reflect.Value) error { return p(in, v.Field(i)) }
		if f.Name == "Body" {
			body = indexed
		} else {
			parts = append(parts, indexed)
		}
	}
	if raw.Type != nil {
		body = compileRaw(raw, place, route, body)
	}
	if body != nil {
		parts = append(parts, body) // last, so that cheap checks come first
	}
	return func(in *input, v reflect.Value) error {
		for _, p := range parts {
			if err := p(in, v); err != nil {
				return err
			}
		}
		return nil
	}
}

func compilePart(f reflect.StructField, route, path string) part {
	if !f.IsExported() {
		panic(fmt.Sprintf("rest: route %s: field %s is not exported", route, f.Name))
	}
	if f.Name == "Body" {
		if f.Type == reflect.TypeFor[Form]() {
			many := listsOf(f.Tag.Get("many"))
			return func(in *input, v reflect.Value) error { return bindForm(in, v, many) }
		}
		if f.Type == reflect.TypeFor[Bytes]() {
			return bindWhole
		}
		if f.Type == partsType {
			many := listsOf(f.Tag.Get("many"))
			return func(in *input, v reflect.Value) error { return bindParts(in, v, many) }
		}
		binderOf(f.Type) // panics now instead of at the first request
		return bindBody
	}
	for _, source := range []struct {
		tag  string
		read func(r *http.Request, name string) (string, error)
	}{
		{"path", func(r *http.Request, name string) (string, error) { return r.PathValue(name), nil }},
		{"query", func(r *http.Request, name string) (string, error) { return parseForm(r.URL.RawQuery).fold(name) }},
		{"header", func(r *http.Request, name string) (string, error) { return r.Header.Get(name), nil }},
	} {
		name, ok := f.Tag.Lookup(source.tag)
		if !ok {
			continue
		}
		if segments := strings.Split(path, "/"); source.tag == "path" &&
			!slices.Contains(segments, "{"+name+"}") && segments[len(segments)-1] != "{"+name+"...}" {
			panic(fmt.Sprintf("rest: route %s: its path has no {%s}", route, name))
		}
		set := setter(f.Type, route, f.Name)
		return func(in *input, v reflect.Value) error {
			text, err := source.read(in.http, name)
			if err != nil || text == "" {
				return err
			}
			if err := set(v, text); err != nil {
				return fault.Newf(fault.InvalidParameters, "%s in the %s is not valid", name, source.tag).With(err)
			}
			return nil
		}
	}
	panic(fmt.Sprintf("rest: route %s: field %s has no source: tag it with path, query or header, or name it Body", route, f.Name))
}

// setter sets a field from text.
func setter(t reflect.Type, route, field string) func(v reflect.Value, s string) error {
	if reflect.PointerTo(t).Implements(textual) {
		return func(v reflect.Value, s string) error {
			return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s))
		}
	}
	switch t.Kind() {
	case reflect.String:
		return func(v reflect.Value, s string) error { v.SetString(s); return nil }
	case reflect.Bool:
		return func(v reflect.Value, s string) error {
			b, err := strconv.ParseBool(strings.ToLower(s))
			v.SetBool(b)
			return err
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return func(v reflect.Value, s string) error {
			n, err := strconv.ParseInt(s, 10, t.Bits())
			v.SetInt(n)
			return err
		}
	}
	panic(fmt.Sprintf("rest: route %s: field %s cannot be a %s", route, field, t))
}

// bindBody reads the body as JSON. An empty body counts as an empty object if Body is a
// struct, map, pointer or interface. For other types it is a fault.
func bindBody(in *input, v reflect.Value) error {
	present, err := readJSON(in.body, v.Addr().Interface(), in.docs)
	if err != nil || present {
		return err
	}
	switch v.Kind() {
	case reflect.Struct, reflect.Map, reflect.Pointer, reflect.Interface:
		return nil
	}
	return fault.New(fault.InvalidParameters, "the request body is missing: send a JSON value")
}

func bindForm(in *input, v reflect.Value, many lists) error {
	text := in.http.URL.RawQuery
	if in.http.Method != http.MethodGet && in.http.Method != http.MethodHead {
		body, err := io.ReadAll(in.body)
		if err != nil {
			return err
		}
		text = string(body)
	}
	if strings.Count(text, "&") >= maxParameters {
		return fault.Newf(fault.TooLarge, "the form has more than %d parameters", maxParameters)
	}
	form := parseForm(text)
	v.Set(reflect.ValueOf(form))
	return many.check(form)
}

// maxParameters bounds the parameters of a form. Each takes some 100 bytes of memory, and 2 bytes of
// the body are enough for one.
const maxParameters = 10_000
