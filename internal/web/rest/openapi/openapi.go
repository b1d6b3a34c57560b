// SPDX-License-Identifier: Apache-2.0

// Package openapi prints the description of the interface for programs: an OpenAPI 3.1
// document, made from the route tables, so that the two cannot differ. Begin with
// [Document] and [Route]. Sentences and examples come from the file operations.txt beside
// each table. The package checks no requests.
package openapi

import (
	"bytes"
	"context"
	"encoding"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tamga/internal/web/rest"
)

// Surface is a table of routes with the prefix it is mounted at.
type Surface struct {
	Title       string // heading of its operations
	Description string
	Prefix      string
	Routes      []rest.Route
	Docs        string // hand-written texts on the operations; see docs
}

// object is a JSON object. Its keys are printed in sorted order.
type object = map[string]any

const (
	formType  = "application/x-www-form-urlencoded"
	partsType = "multipart/form-data"
)

// describer collects the schemas that operations share.
type describer struct {
	schemas object
	names   map[reflect.Type]string
	ids     map[string]bool
	taken   map[reflect.Type]bool // structs in requests: none of their fields is required
}

// Document returns the description of surfaces. server is the address they are below.
func Document(title, version, server string, surfaces []Surface) ([]byte, error) {
	d := &describer{schemas: object{}, names: map[reflect.Type]string{}, ids: map[string]bool{}, taken: map[reflect.Type]bool{}}
	for _, s := range surfaces {
		for _, r := range s.Routes {
			d.take(r.Request)
			d.take(r.Takes)
		}
	}
	d.schema(reflect.TypeFor[rest.Failure]())
	paths := map[string]object{}
	var tags []object
	parsed := map[string]docs{} // surfaces may share a text
	for _, s := range surfaces {
		texts := parsed[s.Docs]
		if texts == nil {
			var err error
			if texts, err = parseDocs(s.Docs); err != nil {
				return nil, fmt.Errorf("%s: %w", s.Title, err)
			}
			parsed[s.Docs] = texts
		}
		tags = append(tags, object{"name": s.Title, "description": s.Description})
		for _, r := range s.Routes {
			path := s.Prefix + strings.TrimSuffix(strings.ReplaceAll(r.Path, "...}", "}"), "/")
			if paths[path] == nil {
				paths[path] = object{}
			}
			method := strings.ToLower(r.Method)
			if paths[path][method] != nil {
				return nil, fmt.Errorf("openapi: %s %s is described twice", r.Method, path)
			}
			o, err := d.operation(s.Title, r, texts)
			if err != nil {
				return nil, fmt.Errorf("openapi: %s: %w", r.Name, err)
			}
			paths[path][method] = o
		}
	}
	for _, texts := range parsed {
		for name, text := range texts {
			if !text.used {
				return nil, fmt.Errorf("openapi: there is a text on %s, but no such operation", name)
			}
		}
	}
	responses := object{}
	for status, name := range refusals {
		code, _ := strconv.Atoi(status)
		responses[name] = object{"description": http.StatusText(code) + "; error holds the code.", "content": d.content("application/json", reflect.TypeFor[rest.Failure]())}
	}
	return json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info":    object{"title": title, "version": version, "description": leniency},
		"servers": []object{{"url": server}},
		"tags":    tags,
		"paths":   paths,
		"components": object{
			"schemas":   d.schemas,
			"responses": responses,
			"securitySchemes": object{
				"token":       object{"type": "http", "scheme": "bearer", "description": "An access token of the operation Token."},
				"client":      object{"type": "http", "scheme": "basic", "description": "Identifier and secret of a client program. They may be in the form instead."},
				"certificate": object{"type": "mutualTLS", "description": "The certificate of an operator, in the place of a token."},
			},
		},
	}, "", " ")
}

const leniency = "The types here are what to send. The service also takes what existing clients send: names of fields in any letter case, " +
	"unknown fields, numbers and truth values as text, text as numbers, names of enumerations in any letter case or as numbers. " +
	"No field of a request is required by its schema: a missing one is refused with the reason, or has a default."

// refusals are the answers of refusals, by status and name.
var refusals = map[string]string{
	"400": "BadRequest", "401": "Unauthorized", "403": "Forbidden", "404": "NotFound", "409": "Conflict", "413": "TooLarge", "415": "Encoded",
	"422": "Unprocessable", "429": "TooManyRequests", "500": "InternalError", "503": "Unavailable",
}

// Route returns the route that serves a document at /openapi.json.
func Route(document []byte) rest.Route {
	return rest.Handle("GET /openapi.json", "Description", rest.Anyone, func(context.Context, struct{}) (rest.JSON, error) {
		return rest.JSON{Content: bytes.NewReader(document)}, nil
	}).Exact().Unaudited()
}

var pathParameter = regexp.MustCompile(`\{([a-zA-Z]+)(\.\.\.)?\}`)

// operation returns the description of one route.
func (d *describer) operation(tag string, r rest.Route, texts docs) (object, error) {
	id := d.id(r)
	text := texts.of(id, r.Name)
	o := object{"operationId": id, "tags": []string{tag}, "summary": text.summary}
	description := text.description
	security := text.security
	switch {
	case security != nil:
	case r.MayIdentify():
		security = []string{"token", "none"}
	case r.Right == rest.Anyone:
		security = []string{}
	case r.Right == rest.SignedIn:
		security = []string{"token"}
	default:
		security = []string{"token", "certificate"}
		description = strings.TrimSpace(description + " Right: " + string(r.Right) + ".")
	}
	list := []object{}
	for _, name := range security {
		if name == "none" {
			list = append(list, object{})
		} else {
			list = append(list, object{name: []string{}})
		}
	}
	o["security"] = list
	if description != "" {
		o["description"] = description
	}
	parameters, body, err := d.request(r, text)
	if err != nil {
		return nil, err
	}
	if len(parameters) > 0 {
		o["parameters"] = parameters
	}
	if body != nil {
		o["requestBody"] = body
	}
	responses := d.responses(r)
	statuses := []string{"400", "413", "429", "500", "503"}
	if slices.Contains(security, "token") || slices.Contains(security, "client") {
		statuses = append(statuses, "401", "403")
	}
	if strings.Contains(r.Path, "{") {
		statuses = append(statuses, "404")
	}
	if r.Repeatable() {
		statuses = append(statuses, "409", "422")
	}
	for _, status := range statuses {
		responses[status] = object{"$ref": "#/components/responses/" + refusals[status]}
	}
	o["responses"] = responses
	return o, nil
}

// id returns a unique identifier: one operation may have several addresses.
func (d *describer) id(r rest.Route) string {
	id := r.Name
	for _, more := range []string{"", r.Method, r.Method + pathParameter.ReplaceAllString(r.Path, "")} {
		id = r.Name + strings.ReplaceAll(more, "/", "_")
		if !d.ids[id] {
			break
		}
	}
	for base, n := id, 2; d.ids[id]; n++ {
		id = fmt.Sprint(base, n)
	}
	d.ids[id] = true
	return id
}

// unmentioned are headers that OpenAPI describes by other means or not at all.
var unmentioned = []string{"authorization", "accept", "content-type"}

// request returns the description of the parameters and the body.
func (d *describer) request(r rest.Route, text *doc) (parameters []object, body object, err error) {
	header := ""
	for i := range r.Request.NumField() {
		f := r.Request.Field(i)
		if f.Name == "Body" {
			continue
		}
		schema := d.field(f)
		if f.Type == reflect.TypeFor[rest.Raw]() {
			header = f.Tag.Get("header")
			schema = object{"type": "string", "description": "The body as JSON, without the document, in Base64URL. With this header the document is the body, as application/octet-stream."}
		}
		for _, in := range []string{"path", "query", "header"} {
			name, ok := f.Tag.Lookup(in)
			if !ok || in == "header" && slices.Contains(unmentioned, strings.ToLower(name)) {
				continue
			}
			p := object{"name": name, "in": in, "schema": schema}
			if in == "path" {
				p["required"] = true
			}
			parameters = append(parameters, p)
		}
	}
	// A part of the path that the operation does not read is a parameter all the same.
	for _, m := range pathParameter.FindAllStringSubmatch(r.Path, -1) {
		if !slices.ContainsFunc(parameters, func(p object) bool { return p["in"] == "path" && p["name"] == m[1] }) {
			parameters = append(parameters, object{"name": m[1], "in": "path", "required": true, "schema": object{"type": "string"}})
		}
	}
	if r.Repeatable() {
		parameters = append(parameters, object{"name": "Idempotency-Key", "in": "header", "schema": object{"type": "string", "maxLength": 255},
			"description": "Makes a repetition safe: the same request under the same key gets the same answer and is carried out once."})
	}
	f, hasBody := r.Request.FieldByName("Body")
	if hasBody && f.Type == reflect.TypeFor[rest.Form]() && r.Method == "GET" {
		for _, field := range text.fields { // the form is the query
			p := object{"name": field.name, "in": "query", "schema": object{"type": "string"}, "description": field.text}
			if field.required {
				p["required"] = true
			}
			parameters = append(parameters, p)
		}
		hasBody = false
	}
	for _, p := range parameters {
		name := p["name"].(string)
		if value, ok := text.params[name]; ok {
			p["example"] = value
		}
	}
	if hasBody && r.Method != "GET" {
		body, err = d.body(r, f, text, header)
	}
	return parameters, body, err
}

// body returns the description of a request body. header is the header with which the body
// is the document as it is, "" if there is none.
func (d *describer) body(r rest.Route, f reflect.StructField, text *doc, header string) (object, error) {
	media, schema, required := "application/json", object(nil), true
	switch f.Type {
	case reflect.TypeFor[rest.Form]():
		media, schema = formType, text.form()
	case reflect.TypeFor[rest.Bytes]():
		media, schema = "application/octet-stream", binary()
	case reflect.TypeFor[rest.Parts]():
		media = partsType
		schema = object{"type": "object", "additionalProperties": object{"type": "string"}, "description": text.description}
	default:
		switch f.Type.Kind() {
		case reflect.Struct, reflect.Map, reflect.Pointer, reflect.Interface:
			required = false
		}
		if schema = d.field(f); r.Takes != nil {
			schema = d.schema(r.Takes)
		}
	}
	contents := object{media: object{"schema": schema}}
	if header != "" {
		contents["application/octet-stream"] = object{"schema": binary()}
		if text.params[header] != "" { // the example belongs to the body as it is
			media = "application/octet-stream"
		}
	}
	if text.body != "" {
		example, err := text.example(media)
		if err != nil {
			return nil, err
		}
		contents[media].(object)["example"] = example
	}
	if text.file != nil {
		contents[media].(object)["x-file"] = text.file
	}
	b := object{"content": contents}
	if required {
		b["required"] = true
	}
	return b, nil
}

// binary returns the schema of bytes as they are.
func binary() object { return object{"type": "string", "format": "binary"} }

func (d *describer) content(media string, t reflect.Type) object {
	return object{media: object{"schema": d.schema(t)}}
}

// responses returns the description of successful answers. An operation with several kinds
// of answers has one of several schemas.
func (d *describer) responses(r rest.Route) object {
	types := r.Answers
	if len(types) == 0 {
		types = []reflect.Type{r.Response}
	}
	responses := object{}
	var schemas []object
	var page object
	for _, t := range types {
		switch t {
		case reflect.TypeFor[rest.None]():
			responses["200"] = object{"description": "Done; no body."}
		case reflect.TypeFor[rest.Redirect]():
			responses["302"] = object{"description": "Go on at the address.", "headers": object{"Location": object{"schema": object{"type": "string"}}}}
		case reflect.TypeFor[rest.File]():
			responses["200"] = object{"description": "A file.", "content": object{"application/octet-stream": object{"schema": binary()}}}
		case reflect.TypeFor[rest.Page]():
			page = object{"schema": object{"type": "string"}}
		case reflect.TypeFor[rest.Stream]():
			schemas = append(schemas, base64Text())
		default:
			schemas = append(schemas, d.schema(t))
		}
	}
	contents := object{}
	if page != nil { // a page for people
		contents["text/html"] = page
	}
	switch len(schemas) {
	case 0:
	case 1:
		contents["application/json"] = object{"schema": schemas[0]}
	default:
		contents["application/json"] = object{"schema": object{"oneOf": schemas}}
	}
	if len(contents) > 0 {
		responses["200"] = object{"description": "Done.", "content": contents}
	}
	return responses
}

func base64Text() object { return object{"type": "string", "contentEncoding": "base64"} }

// take notes the structs in a request.
func (d *describer) take(t reflect.Type) {
	switch {
	case t == nil || d.taken[t]:
	case t.Kind() == reflect.Struct:
		d.taken[t] = true
		for i := range t.NumField() {
			d.take(t.Field(i).Type)
		}
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Slice, t.Kind() == reflect.Map, t.Kind() == reflect.Array:
		d.take(t.Elem())
	}
}

// field returns the description of a field. Its tag `api` names the type that is described
// if a field takes several types, such as `api:"boolean"`. "-" leaves the field out.
func (d *describer) field(f reflect.StructField) object {
	if name, ok := f.Tag.Lookup("api"); ok {
		switch name {
		case "array":
			return object{"type": name, "items": object{}}
		case "parameter":
			return object{"type": "string", "description": "A text, or Base64 for a parameter that is a document."}
		}
		return object{"type": name}
	}
	return d.schema(f.Type)
}

var textual = reflect.TypeFor[encoding.TextUnmarshaler]()

// schema returns the description of a JSON type.
func (d *describer) schema(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[rest.Text]():
		return object{"type": "string"}
	case reflect.TypeFor[rest.Blob](), reflect.TypeFor[rest.Document](), reflect.TypeFor[[]byte]():
		return base64Text()
	case reflect.TypeFor[map[string]rest.Blob](): // parameters: texts, one of them a document
		return object{"type": "object", "additionalProperties": object{"type": "string"}}
	case reflect.TypeFor[rest.Unread]():
		return object{"description": "Ignored."}
	case reflect.TypeFor[rest.None]():
		return object{"type": "null"}
	case reflect.TypeFor[json.RawMessage]():
		return object{}
	case reflect.TypeFor[json.Number]():
		return object{"type": "number"}
	}
	if named, ok := reflect.Zero(t).Interface().(interface{ OpenAPI() string }); ok {
		return object{"type": named.OpenAPI()}
	}
	if reflect.PointerTo(t).Implements(textual) {
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Pointer:
		inner := d.schema(t.Elem())
		if name, plain := inner["type"].(string); plain { // one type or null
			inner["type"] = []string{name, "null"}
			return inner
		}
		return object{"anyOf": []object{inner, {"type": "null"}}}
	case reflect.Slice, reflect.Array:
		return object{"type": "array", "items": d.schema(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": d.schema(t.Elem())}
	case reflect.Struct:
		return d.structure(t)
	}
	return object{} // anything
}

// structure returns the description of a struct, made once for each named one.
func (d *describer) structure(t reflect.Type) object {
	if t.Name() == "" {
		return d.properties(t)
	}
	name, known := d.names[t]
	if !known {
		name = unique(d.schemas, pascal(t.Name()))
		d.names[t] = name
		d.schemas[name] = object{} // reserves the name during the description
		d.schemas[name] = d.properties(t)
	}
	return object{"$ref": "#/components/schemas/" + name}
}

// unique returns a name that no schema has.
func unique(schemas object, name string) string {
	for candidate, n := name, 2; ; n++ {
		if _, taken := schemas[candidate]; !taken {
			return candidate
		}
		candidate = fmt.Sprint(name, n)
	}
}

// pascal turns the name of a Go type into a name of the interface. A generic type gets the
// name of its argument, such as OperationOfCertificate.
func pascal(name string) string {
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return strings.ContainsRune("[]*{} ,", r) }) {
		word = word[strings.LastIndexAny(word, "./")+1:]
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

func (d *describer) properties(t reflect.Type) object {
	properties, required := object{}, []string{}
	d.addFields(t, properties, &required)
	schema := object{"type": "object", "properties": properties}
	if len(required) > 0 && !d.taken[t] {
		schema["required"] = required
	}
	return schema
}

// addFields adds the fields of a struct, including those of embedded structs.
func (d *describer) addFields(t reflect.Type, properties object, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Name
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && tag == "" && f.Type.Kind() == reflect.Struct {
			d.addFields(f.Type, properties, required)
			continue
		}
		if tag == "-" || f.Tag.Get("api") == "-" || !f.IsExported() {
			continue
		}
		if tag != "" {
			name = tag
		}
		properties[name] = d.field(f)
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			*required = append(*required, name)
		}
	}
}
