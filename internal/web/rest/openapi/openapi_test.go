// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"context"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/domain/audit"
	"tamga/internal/web/rest"
)

type leaf struct {
	Name  string `json:"name"`
	Inner *leaf
	Free  any
}

type asked struct {
	ID     string `path:"id"`
	Full   bool   `query:"full"`
	Accept string `header:"Accept"`
	Key    string `header:"Idempotency-Key"`
	Body   []leaf
}

func routes() []rest.Route {
	one := rest.Handle("POST /things/{id}", "SetThing", "keeper", func(context.Context, asked) (rest.None, error) { return rest.None{}, nil })
	return []rest.Route{
		one, one.Also("PATCH"),
		rest.Handle("GET /things/{id}", "GetThing", rest.SignedIn, func(context.Context, struct {
			ID string `path:"id"`
		}) (leaf, error) {
			return leaf{}, nil
		}),
		rest.Handle("GET /files/{name...}", "GetFile", rest.Anyone, func(context.Context, struct{}) (rest.File, error) { return rest.File{}, nil }),
		rest.Handle("GET /union", "GetUnion", rest.SignedIn, func(context.Context, struct{}) (any, error) { return nil, nil }).Answering([]int{}, rest.Stream{}, rest.Page{}),
		rest.HandleDocuments("POST /upload", "UploadThing", rest.SignedIn, open, upload).Once(),
		rest.Handle("POST /token", "Token", rest.Anyone, func(context.Context, struct{ Body rest.Form }) (map[string]rest.Text, error) { return nil, nil }),
	}
}

const texts = `# about things
@param id 7

SetThing: Set a thing.
  All of it.
  @body [{"name":
      "x"}]
Token: Get a token.
  @security client none
  @field grant_type* Kind of grant.
  @field scope Names.
  @body grant_type=password&scope=a+b
GetUnion: Get one of two.
UploadThing: Store a thing.
  @param X-Order eyJ9
  @body bytes
`

func TestDocument(t *testing.T) {
	text, err := Document("Test", "1", "http://host", []Surface{{Title: "Things", Prefix: "/api", Routes: routes(), Docs: texts}})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	paths := got["paths"].(map[string]any)
	post := paths["/api/things/{id}"].(map[string]any)["post"]
	refusal := func(name string) object { return object{"$ref": "#/components/responses/" + name} }
	want := object{
		"operationId": "SetThing", "summary": "Set a thing.", "tags": []any{"Things"}, "description": "All of it. Right: keeper.",
		"security": []any{object{"token": []any{}}, object{"certificate": []any{}}},
		"parameters": []any{
			object{"name": "id", "in": "path", "required": true, "schema": object{"type": "string"}, "example": "7"},
			object{"name": "full", "in": "query", "schema": object{"type": "boolean"}},
			object{"name": "Idempotency-Key", "in": "header", "schema": object{"type": "string"}},
		},
		"requestBody": object{"required": true, "content": object{"application/json": object{"schema": object{"type": "array", "items": object{"$ref": "#/components/schemas/Leaf"}}, "example": []any{object{"name": "x"}}}}},
		"responses": object{
			"200": object{"description": "Done; no body."},
			"400": refusal("BadRequest"), "401": refusal("Unauthorized"), "403": refusal("Forbidden"), "404": refusal("NotFound"),
			"413": refusal("TooLarge"), "429": refusal("TooManyRequests"), "500": refusal("InternalError"), "503": refusal("Unavailable"),
		},
	}
	if d := cmp.Diff(any(want), post); d != "" {
		t.Error(d)
	}
	leafSchema := got["components"].(map[string]any)["schemas"].(map[string]any)["Leaf"]
	if d := cmp.Diff(any(object{"type": "object", "properties": object{
		"name": object{"type": "string"}, "Free": object{},
		"Inner": object{"anyOf": []any{object{"$ref": "#/components/schemas/Leaf"}, object{"type": "null"}}},
	}}), leafSchema); d != "" {
		t.Error(d)
	}
	check(t, text)
}

// lenient holds fields that are described as other types than they have.
type lenient struct {
	Number  rest.Text `api:"integer"`
	Hidden  rest.Text `api:"-"`
	Text    rest.Text
	Values  map[string]rest.Blob
	Content rest.Document
	Maybe   *string
}

// sink is a document that goes nowhere.
type sink struct{ io.Writer }

func (sink) Finish() error            { return nil }
func (sink) Close() error             { return nil }
func (s sink) Sibling() (sink, error) { return s, nil }

func open(context.Context, audit.Principal) (sink, error) { return sink{io.Discard}, nil }

func upload(context.Context, *rest.Documents[sink], struct {
	Raw  rest.Raw `header:"X-Order"`
	Body lenient
}) (rest.None, error) {
	return rest.None{}, nil
}

// TestHonestTypes: fields have one type, parameters are texts, forms have their fields,
// bodies as they are and Idempotency-Key are there, answers of several kinds are a choice.
func TestHonestTypes(t *testing.T) {
	text, err := Document("Test", "1", "http://host", []Surface{{Title: "Things", Routes: routes(), Docs: texts}})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Paths      map[string]map[string]map[string]any
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	str := object{"type": "string"}
	binary := object{"type": "string", "format": "binary"}
	base64 := object{"type": "string", "contentEncoding": "base64"}
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"struct", got.Components.Schemas["Lenient"], object{"type": "object", "properties": object{
			"Number": object{"type": "integer"}, "Text": str, "Values": object{"type": "object", "additionalProperties": str},
			"Content": base64, "Maybe": object{"type": []any{"string", "null"}},
		}}},
		{"body as it is", got.Paths["/upload"]["post"]["requestBody"], object{"content": object{
			"application/json":         object{"schema": object{"$ref": "#/components/schemas/Lenient"}},
			"application/octet-stream": object{"schema": binary, "example": "bytes"},
		}}},
		{"header and key", got.Paths["/upload"]["post"]["parameters"].([]any)[1].(object)["name"], "Idempotency-Key"},
		{"form", got.Paths["/token"]["post"]["requestBody"], object{"required": true, "content": object{formType: object{
			"schema": object{"type": "object", "required": []any{"grant_type"}, "properties": object{
				"grant_type": object{"type": "string", "description": "Kind of grant."}, "scope": object{"type": "string", "description": "Names."}}},
			"example": object{"grant_type": "password", "scope": "a b"},
		}}}},
		{"security", got.Paths["/token"]["post"]["security"], []any{object{"client": []any{}}, object{}}},
		{"choice", got.Paths["/union"]["get"]["responses"].(object)["200"], object{"description": "Done.", "content": object{
			"application/json": object{"schema": object{"oneOf": []any{object{"type": "array", "items": object{"type": "integer"}}, base64}}},
			"text/html":        object{"schema": str},
		}}},
	} {
		if d := cmp.Diff(c.want, c.got); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
	check(t, text)
}

// TestTexts: a text that cannot be read is an error, with its line.
func TestTexts(t *testing.T) {
	for text, says := range map[string]string{
		"Set thing: x":            "want a new name",
		"Set: x\nSet: y":          "line 2",
		"  lost":                  "belongs to no operation",
		"Set: x\n  @example 1":    "@example is not known",
		"SetThing: x\n  @body {":  "SetThing",
		"GetThing: x\nGone: y":    "a text on Gone",
		"Token: x\n  @body a=%zz": "form",
	} {
		_, err := Document("Test", "1", "http://host", []Surface{{Routes: routes(), Docs: text}})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
	all, err := parseDocs("Get: One.\n")
	if err != nil || all.of("Get", "Get").summary != "One." || all.of("GetV2", "GetV2").summary != "One." || all.of("Put", "Put").summary != "Put" {
		t.Errorf("%v, %v", all, err)
	}
}

func TestTwice(t *testing.T) {
	if _, err := Document("Test", "1", "http://host", []Surface{{Routes: routes()}, {Routes: routes()}}); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("got %v", err)
	}
}

// check holds a document against what OpenAPI 3.1 demands beyond JSON: references
// lead somewhere, parts of paths are parameters, operations have names of their own.
func check(t *testing.T, text []byte) {
	t.Helper()
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID string
			Parameters  []struct{ Name, In string }
			Responses   map[string]any
		}
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(text, &doc); err != nil || doc.OpenAPI != "3.1.0" {
		t.Fatalf("%v, version %q", err, doc.OpenAPI)
	}
	for _, m := range regexp.MustCompile(`"\$ref": "#/components/schemas/([^"]*)"`).FindAllStringSubmatch(string(text), -1) {
		if doc.Components.Schemas[m[1]] == nil {
			t.Errorf("a reference to %s leads nowhere", m[1])
		}
	}
	ids := map[string]bool{}
	for path, operations := range doc.Paths {
		for method, o := range operations {
			if ids[o.OperationID] || o.OperationID == "" {
				t.Errorf("%s %s: the name %q is not its own", method, path, o.OperationID)
			}
			ids[o.OperationID] = true
			named := map[string]bool{}
			for _, p := range o.Parameters {
				if named[p.In+p.Name] {
					t.Errorf("%s %s: %s is there twice", method, path, p.Name)
				}
				named[p.In+p.Name] = true
				if p.In == "path" && !strings.Contains(path, "{"+p.Name+"}") {
					t.Errorf("%s %s has no {%s}", method, path, p.Name)
				}
			}
			for _, m := range regexp.MustCompile(`\{([^}]*)\}`).FindAllStringSubmatch(path, -1) {
				if !named["path"+m[1]] {
					t.Errorf("%s %s: {%s} is no parameter", method, path, m[1])
				}
			}
			if len(o.Responses) < 2 {
				t.Errorf("%s %s has %d responses", method, path, len(o.Responses))
			}
		}
	}
}
