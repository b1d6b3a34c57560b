// Package openapi owns the description of the interface for programs: an OpenAPI 3.1
// document made from the tables of routes themselves, so that the two cannot differ.
package openapi

import (
	"bytes"
	"context"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"tamga/internal/web/rest"
)

// Surface is a table of routes where it is mounted.
type Surface struct {
	Title       string // heading of its operations
	Description string
	Prefix      string
	Routes      []rest.Route
}

// object keeps JSON objects short to write; keys come out sorted.
type object = map[string]any

// describer collects the schemas that operations share.
type describer struct {
	schemas object
	names   map[reflect.Type]string
	ids     map[string]bool
}

// Document describes surfaces. server is the address they are below.
func Document(title, version, server string, surfaces []Surface) ([]byte, error) {
	d := &describer{schemas: object{}, names: map[reflect.Type]string{}, ids: map[string]bool{}}
	d.schema(reflect.TypeFor[rest.Failure]())
	paths := map[string]object{}
	var tags []object
	for _, s := range surfaces {
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
			paths[path][method] = d.operation(s.Title, r)
		}
	}
	return json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info":    object{"title": title, "version": version},
		"servers": []object{{"url": server}},
		"tags":    tags,
		"paths":   paths,
		"components": object{
			"schemas": d.schemas,
			"securitySchemes": object{
				"token":       object{"type": "http", "scheme": "bearer"},
				"certificate": object{"type": "mutualTLS", "description": "For operators, in the place of a token."},
			},
		},
	}, "", " ")
}

// Route serves a document at /openapi.json.
func Route(document []byte) rest.Route {
	return rest.Handle("GET /openapi.json", "Description", rest.Anyone, func(context.Context, struct{}) (rest.JSON, error) {
		return rest.JSON{Content: bytes.NewReader(document)}, nil
	}).Exact().Unjournaled()
}

var pathParameter = regexp.MustCompile(`\{([a-zA-Z]+)(\.\.\.)?\}`)

// operation describes one route.
func (d *describer) operation(tag string, r rest.Route) object {
	o := object{"operationId": d.id(r), "tags": []string{tag}, "summary": r.Name}
	switch r.Right {
	case rest.Anyone:
		o["security"] = []object{}
	case rest.SignedIn:
		o["security"] = []object{{"token": []string{}}}
	default:
		o["security"] = []object{{"token": []string{}}, {"certificate": []string{}}}
		o["description"] = "Right: " + string(r.Right) + "."
	}
	parameters, body := d.request(r)
	if len(parameters) > 0 {
		o["parameters"] = parameters
	}
	if body != nil {
		o["requestBody"] = body
	}
	failure := object{"description": "Refused; error holds the code.", "content": d.content("application/json", reflect.TypeFor[rest.Failure]())}
	o["responses"] = object{d.status(r.Response): d.response(r.Response), "default": failure}
	return o
}

// id makes names of operations unique: some are one operation at several addresses.
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

// request describes the parameters and the body.
func (d *describer) request(r rest.Route) (parameters []object, body object) {
	for i := range r.Request.NumField() {
		f := r.Request.Field(i)
		if f.Name == "Body" {
			body = d.body(f.Type)
			continue
		}
		for _, in := range []string{"path", "query", "header"} {
			name, ok := f.Tag.Lookup(in)
			if !ok || in == "header" && slices.Contains(unmentioned, strings.ToLower(name)) {
				continue
			}
			p := object{"name": name, "in": in, "schema": d.schema(f.Type)}
			if in == "path" {
				p["required"] = true
			}
			parameters = append(parameters, p)
		}
	}
	// A part of the path that the operation does not read is a part of it still.
	for _, m := range pathParameter.FindAllStringSubmatch(r.Path, -1) {
		if !slices.ContainsFunc(parameters, func(p object) bool { return p["in"] == "path" && p["name"] == m[1] }) {
			parameters = append(parameters, object{"name": m[1], "in": "path", "required": true, "schema": object{"type": "string"}})
		}
	}
	if r.Method == "GET" && r.Request.Kind() == reflect.Struct {
		body = nil // a form is the query then
	}
	return parameters, body
}

func (d *describer) body(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[rest.Form]():
		return object{"content": object{"application/x-www-form-urlencoded": object{"schema": object{"type": "object", "additionalProperties": object{"type": "string"}}}}}
	case reflect.TypeFor[rest.Octets]():
		return object{"required": true, "content": object{"application/octet-stream": object{}}}
	case reflect.TypeFor[rest.Parts]():
		return object{"required": true, "content": object{"multipart/form-data": object{}}}
	}
	b := object{"content": d.content("application/json", t)}
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Pointer, reflect.Interface:
	default:
		b["required"] = true
	}
	return b
}

func (d *describer) content(media string, t reflect.Type) object {
	return object{media: object{"schema": d.schema(t)}}
}

func (d *describer) status(t reflect.Type) string {
	if t == reflect.TypeFor[rest.Redirect]() {
		return "302"
	}
	return "200"
}

func (d *describer) response(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[rest.None]():
		return object{"description": "Done; no body."}
	case reflect.TypeFor[rest.Redirect]():
		return object{"description": "Go on at the address.", "headers": object{"Location": object{"schema": object{"type": "string"}}}}
	case reflect.TypeFor[rest.File]():
		return object{"description": "A file.", "content": object{"*/*": object{}}}
	case reflect.TypeFor[rest.Page]():
		return object{"description": "A page.", "content": object{"text/html": object{}}}
	case reflect.TypeFor[rest.Stream]():
		return object{"description": "Done.", "content": object{"application/json": object{"schema": object{"type": "string", "contentEncoding": "base64"}}}}
	case reflect.TypeFor[rest.JSON]():
		return object{"description": "Done.", "content": object{"application/json": object{}}}
	}
	return object{"description": "Done.", "content": d.content("application/json", t)}
}

var textual = reflect.TypeFor[encoding.TextUnmarshaler]()

// schema describes a type of JSON.
func (d *describer) schema(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[rest.Text]():
		return object{"type": []string{"string", "number", "boolean", "null"}}
	case reflect.TypeFor[rest.Blob](), reflect.TypeFor[rest.Document](), reflect.TypeFor[[]byte]():
		return object{"type": "string", "contentEncoding": "base64"}
	case reflect.TypeFor[rest.Unread]():
		return object{}
	case reflect.TypeFor[json.Number]():
		return object{"type": "number"}
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
		return object{"anyOf": []object{d.schema(t.Elem()), {"type": "null"}}}
	case reflect.Slice, reflect.Array:
		return object{"type": "array", "items": d.schema(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": d.schema(t.Elem())}
	case reflect.Struct:
		return d.structure(t)
	}
	return object{} // anything
}

// structure describes a struct, once for each named one.
func (d *describer) structure(t reflect.Type) object {
	if t.Name() == "" {
		return d.properties(t)
	}
	name, known := d.names[t]
	if !known {
		name = unique(d.schemas, pascal(t.Name()))
		d.names[t] = name
		d.schemas[name] = object{} // holds the place while it is described
		d.schemas[name] = d.properties(t)
	}
	return object{"$ref": "#/components/schemas/" + name}
}

// unique finds a name that no schema has.
func unique(schemas object, name string) string {
	for candidate, n := name, 2; ; n++ {
		if _, taken := schemas[candidate]; !taken {
			return candidate
		}
		candidate = fmt.Sprint(name, n)
	}
}

// pascal makes the name of a type of ours one of the interface.
func pascal(name string) string {
	name = strings.NewReplacer("[", "_", "]", "", "*", "", "/", "_", ".", "_", "·", "_").Replace(name)
	return strings.ToUpper(name[:1]) + name[1:]
}

func (d *describer) properties(t reflect.Type) object {
	properties := object{}
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Name
		if tag, ok := f.Tag.Lookup("json"); ok {
			tag, _, _ = strings.Cut(tag, ",")
			if tag == "-" {
				continue
			}
			if tag != "" {
				name = tag
			}
		}
		if f.IsExported() {
			properties[name] = d.schema(f.Type)
		}
	}
	return object{"type": "object", "properties": properties}
}
