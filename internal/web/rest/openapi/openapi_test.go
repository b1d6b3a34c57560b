package openapi

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
		rest.Handle("POST /token", "Token", rest.Anyone, func(context.Context, struct{ Body rest.Form }) (map[string]rest.Text, error) { return nil, nil }),
	}
}

func TestDocument(t *testing.T) {
	text, err := Document("Test", "1", "http://host", []Surface{{Title: "Things", Prefix: "/api", Routes: routes()}})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	paths := got["paths"].(map[string]any)
	post := paths["/api/things/{id}"].(map[string]any)["post"]
	want := object{
		"operationId": "SetThing", "summary": "SetThing", "tags": []any{"Things"}, "description": "Right: keeper.",
		"security": []any{object{"token": []any{}}, object{"certificate": []any{}}},
		"parameters": []any{
			object{"name": "id", "in": "path", "required": true, "schema": object{"type": "string"}},
			object{"name": "full", "in": "query", "schema": object{"type": "boolean"}},
			object{"name": "Idempotency-Key", "in": "header", "schema": object{"type": "string"}},
		},
		"requestBody": object{"required": true, "content": object{"application/json": object{"schema": object{"type": "array", "items": object{"$ref": "#/components/schemas/Leaf"}}}}},
		"responses": object{
			"200":     object{"description": "Done; no body."},
			"default": object{"description": "Refused; error holds the code.", "content": object{"application/json": object{"schema": object{"$ref": "#/components/schemas/Failure"}}}},
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
