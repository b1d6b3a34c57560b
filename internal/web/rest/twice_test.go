// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
)

// TestNamesGivenTwice checks parameters of queries, of forms and of parts that have two values: they are refused,
// unless the route reads a list.
func TestNamesGivenTwice(t *testing.T) {
	type query struct {
		Lock bool `query:"lock"`
	}
	type form struct {
		Body Form `many:"marks,event-*"`
	}
	type checked struct {
		Body Form `many:"*"`
	}
	type parts struct {
		Body Parts `many:"file"`
	}
	open := func(context.Context, audit.Principal) (*memorySink, error) { return &memorySink{}, nil }
	routes := map[string]Route{
		"query":   Handle("POST /x", "X", Anyone, func(context.Context, query) (None, error) { return None{}, nil }),
		"form":    Handle("POST /x", "X", Anyone, func(context.Context, form) (None, error) { return None{}, nil }),
		"search":  Handle("GET /x", "X", Anyone, func(context.Context, form) (None, error) { return None{}, nil }),
		"checked": Handle("POST /x", "X", Anyone, func(context.Context, checked) (None, error) { return None{}, nil }),
		"parts": HandleDocuments("POST /x", "X", Anyone, open, func(_ context.Context, _ *Documents[*memorySink], r parts) (None, error) {
			for {
				if _, err := r.Body.Next(); err == io.EOF {
					return None{}, nil
				} else if err != nil {
					return None{}, err
				}
			}
		}),
	}
	for _, c := range []struct{ route, query, body, twice string }{
		{"query", "lock=False&lock=True", "", "lock"},
		{"query", "lock=True&lock=True", "", "lock"},
		{"query", "Lock=True&lock=False", "", "lock"},
		{"query", "LOCK=True&Lock=False", "", "lock"},
		{"query", "lock=&lock=True", "", "lock"},
		{"query", "Lock=True&other=1&other=2", "", ""},
		{"form", "", "login=a&login=b", "login"},
		{"form", "", "login=a&login=", "login"},
		{"form", "", "login=a&marks=1&marks=2&event-x=1&event-x=2", ""},
		{"form", "", "event=1&event=2", "event"},
		{"search", "login=a&login=b", "", "login"},
		{"search", "login=a&marks=1&marks=2", "", ""},
		{"checked", "", "login=a&login=b", ""},
		{"parts", "", partOf("file", "1") + partOf("file", "2") + partOf("pin", "") + "--b--", ""},
		{"parts", "", partOf("pin", "1") + partOf("file", "2") + partOf("pin", "") + "--b--", "pin"},
	} {
		route := routes[c.route]
		r := httptest.NewRequest(route.Method, "/x?"+c.query, strings.NewReader(c.body))
		r.Header.Set("Content-Type", formType)
		_, err := route.call(r.Context(), &input{http: r, body: newBody(httptest.NewRecorder(), r, 1<<20), documents: 10})
		f, refused := fault.As(err)
		if refused != (c.twice != "") || refused && (f.Code != fault.InvalidParameters || f.Message != `"`+c.twice+`" is given twice`) || !refused && err != nil {
			t.Errorf("%s %s %s: %v, want %q refused", c.route, c.query, c.body, err, c.twice)
		}
	}
}

// TestAuthorizationGivenTwice checks that no route chooses between two credentials, not even one that needs none.
func TestAuthorizationGivenTwice(t *testing.T) {
	h := open(t, Limits{})
	for _, path := range []string{"/Sign/api/echo/1", "/Sign/api/void"} {
		for _, second := range []string{"Bearer anna", "Bearer bad", "Basic eDp5", ""} {
			r := httptest.NewRequest("POST", path, strings.NewReader("{}"))
			r.Header["Authorization"] = []string{"Bearer anna", second}
			w := httptest.NewRecorder()
			h.Config.Handler.ServeHTTP(w, r)
			if w.Code != 400 || !strings.Contains(w.Body.String(), fault.InvalidParameters) || !strings.Contains(w.Body.String(), "Authorization is given twice") {
				t.Errorf("%s with %q: %d %s", path, second, w.Code, w.Body)
			}
		}
	}
}
