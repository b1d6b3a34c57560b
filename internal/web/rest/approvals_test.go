// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
)

// keeper holds the first call with a value and lets the next one run with what was stored.
type keeper struct {
	calls  []ApprovalCall
	stored map[string][]byte
	ended  []error
}

func (k *keeper) Weighs(effect.Set) bool { return true }

func (k *keeper) Hold(_ context.Context, _ audit.Principal, c ApprovalCall) (*Admission, error) {
	k.calls = append(k.calls, c)
	key := c.Operation + c.Route + string(c.Value)
	value, known := k.stored[key]
	if !known {
		k.stored[key] = c.Value
		return nil, fault.New(fault.WrongOperation, "it waits")
	}
	return &Admission{Value: value, End: func(_ context.Context, err error) error { k.ended = append(k.ended, err); return nil }}, nil
}

// office serves routes for operators with approvals.
func office(t *testing.T, a Approvals, routes ...Route) http.Handler {
	t.Helper()
	mux := http.NewServeMux()
	Mount(mux, "", &Gate{
		Audit: noAudit{}, Log: slog.New(slog.DiscardHandler), Approvals: a,
		Identify: func(context.Context, string) (audit.Principal, error) {
			return audit.Principal{UserID: "operator"}, nil
		},
		Permit: func(context.Context, audit.Principal, Right, func(string) string) error { return nil },
	}, routes)
	return mux
}

func send(h http.Handler, method, target, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer x")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const operators Right = "operator"

// TestEffectsDeclared checks that a program does not start with a route of operators that does not
// say what it does, or with one whose requests may wait and cannot be stored.
func TestEffectsDeclared(t *testing.T) {
	type reads[B any] struct{ Body B }
	open := func(context.Context, audit.Principal) (*memorySink, error) { return &memorySink{}, nil }
	documents := func(context.Context, *Documents[*memorySink], reads[Parts]) (None, error) { return None{}, nil }
	parts := HandleDocuments("POST /x", "X", operators, open, documents)
	raw := HandleDocuments("POST /x", "X", operators, open, func(context.Context, *Documents[*memorySink], struct {
		Raw  Raw `header:"X"`
		Body struct{ Content Blob }
	}) (None, error) {
		return None{}, nil
	})
	form := Handle("POST /x", "X", operators, func(context.Context, reads[Form]) (None, error) { return None{}, nil })
	list := Handle("POST /x", "X", operators, func(context.Context, reads[[]string]) (None, error) { return None{}, nil })
	code := Handle("POST /x", "X", operators, func(context.Context, reads[struct {
		Code string `json:"FirstOtp"`
	}]) (None, error) {
		return None{}, nil
	})
	hidden := Handle("POST /x", "X", operators, func(context.Context, reads[oneWay]) (None, error) { return None{}, nil })
	of := func(r Route, right Right, method string) Route {
		r.Right, r.Method = right, method
		return r
	}
	for name, c := range map[string]struct {
		route Route
		says  string // "": it starts
	}{
		"nothing declared": {form, "declares no effects"}, "a method that deletes": {of(list, operators, "DELETE"), "declares no effects"},
		"nothing declared, for a person": {of(form, SignedIn, "POST"), ""}, "nothing declared, and it reads": {of(list, operators, "GET"), ""},
		"none declared": {form.Effects(effect.None), ""}, "a form": {form.Effects(effect.Deletes), ""}, "a value": {list.Effects(effect.Deletes), ""},
		"parts": {parts.Effects(effect.Deletes), "cannot be stored"}, "parts without effects": {parts.Effects(effect.None), ""},
		"a document as the body": {raw.Effects(effect.Deletes), "cannot be stored"}, "a value that is not written": {hidden.Effects(effect.Deletes), "cannot be stored"},
		"a code": {code.Effects(effect.Deletes).Varying("FirstOtp"), ""}, "no such code": {code.Effects(effect.Deletes).Varying("Code"), "cannot be stored"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p := recover(); (p == nil) != (c.says == "") || p != nil && !strings.Contains(p.(string), c.says) {
					t.Errorf("%v", p)
				}
			}()
			office(t, nil, c.route)
		})
	}
}

// oneWay is read and not written again.
type oneWay struct{ text string }

func (o *oneWay) UnmarshalText(text []byte) error { o.text = string(text); return nil }

// switched is a boolean that is written in several ways.
type switched struct{ On bool }

func (s *switched) FromValue(value any) error {
	on, ok := Truth(fmt.Sprint(value))
	s.On = on
	if !ok {
		return fault.New(fault.InvalidParameters, "want true or false")
	}
	return nil
}

type order struct {
	ID   string `path:"id"`
	Kind string `query:"kind"`
	Body struct {
		Lock  switched
		Names []string
		Any   any
		Code  string `json:"FirstOtp"`
	}
}

// TestStoredValueRuns: a request that waited runs with the value that was stored, not with what
// its repetition says. Two requests are the same if they are read as the same value.
func TestStoredValueRuns(t *testing.T) {
	var ran []order
	route := Weigh(Handle("POST /x/{id}", "X", operators, func(_ context.Context, r order) (None, error) {
		if ran = append(ran, r); r.Body.Code == "fails" {
			return None{}, errors.New("broken")
		}
		return None{}, nil
	}), effect.EndsAccess|effect.AddsFactor, func(_ context.Context, r order) (effect.Set, error) {
		if r.Body.Lock.On {
			return effect.EndsAccess, nil
		}
		return effect.AddsFactor, nil
	}).Varying("FirstOtp")
	k := &keeper{stored: map[string][]byte{}}
	h := office(t, k, route)
	for i, c := range []struct {
		target, body string
		status       int
		effects      effect.Set
	}{
		{"/x/7?kind=a&other=1", `{"Lock":true,"Names":["a"],"Any":{"b":[1.50,null]},"FirstOtp":"1"}`, 400, effect.EndsAccess},
		{"/x/7?KIND=a", "\xEF\xBB\xBF" + ` {"firstotp":"2", "any":{"b":[1.50,null]},"lock":"1","NAMES":["a"],"unknown":[]}`, 200, effect.EndsAccess}, // the same
		{"/x/7?kind=a", `{"Lock":false,"Names":["a"],"Any":{"b":[1.50,null]}}`, 400, effect.AddsFactor},
		{"/x/7?kind=b", `{"Lock":false,"Names":["a"],"Any":{"b":[1.50,null]}}`, 400, effect.AddsFactor},
		{"/x/7?kind=b", `{"Lock":0,"Names":["a"],"Any":{"b":[1.50,null]},"FirstOtp":"fails"}`, 500, effect.AddsFactor},
		{"/x/7", `{"Names":[]}`, 400, effect.AddsFactor},
		{"/x/7", `{}`, 400, effect.AddsFactor}, // no list is not an empty one
	} {
		w := send(h, "POST", c.target, c.body)
		last := k.calls[len(k.calls)-1]
		if w.Code != c.status || last.Effects != c.effects || len(k.calls) != i+1 || strings.Contains(string(last.Value), "FirstOtp") {
			t.Errorf("%s %s: %d %s, %s %s", c.target, c.body, w.Code, w.Body, last.Effects, last.Value)
		}
	}
	if k.calls[0].Target != "/x/7?kind=a" || k.calls[0].Object != "7" || k.calls[0].Route != "/x/{id}" {
		t.Errorf("%+v", k.calls[0])
	}
	if got, want := fmt.Sprint(ran), "[{7 a {{true} [a] map[b:[1.50 <nil>]] 2}} {7 b {{false} [a] map[b:[1.50 <nil>]] fails}}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if len(k.ended) != 2 || k.ended[0] != nil || k.ended[1] == nil {
		t.Errorf("%v", k.ended)
	}
	// Another value may have been approved: that one runs.
	for key := range k.stored {
		k.stored[key] = []byte(`{"ID":"7","Kind":"stored","Body":{"Lock":{"On":true}}}`)
	}
	if send(h, "POST", "/x/7", `{"Names":[],"FirstOtp":"3"}`); fmt.Sprint(ran[2]) != "{7 stored {{true} [] <nil> 3}}" {
		t.Errorf("%v ran", ran[2])
	}
	// A value that does not come back as it was read is refused and does not wait.
	calls := len(k.calls)
	if w := send(h, "POST", "/x/7?kind=%ff", `{}`); w.Code != 400 || !strings.Contains(w.Body.String(), "UTF-8") || len(k.calls) != calls {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// FuzzDecision sends bodies through the decision and through the operation, and compares what
// both understood: there is one reader.
func FuzzDecision(f *testing.F) {
	for _, body := range []string{
		`{"Lock":false}`, "\xEF\xBB\xBF" + `{"Lock":false}`, `{"lock":true,"Lock":false}`, `{"Lock":"True","LOCK":0}`, `{"Lock":{}}`, `{"Lock":null}`, `{"Lock":1e0}`,
		"\xEF\xBB\xBF[]", `[]`, ``, `null`, `{"Any":{"a":1,"A":2}}`, `{"Names":["a",null],"FirstOtp":"1"}`, `{"Lock":true}{"Lock":false}`, "{\"Lock\":true}\x00", `{"L\u006fck":true}`,
		strings.Repeat(`{"Any":`, 70) + "1" + strings.Repeat("}", 70), `{"Any":"\ud800"}`, "{\"Names\":[\"\xff\"]}", `{"Lock":"yes"}`, `{"Names":{}}`, `{"\u212aey":1,"key":2}`,
	} {
		f.Add(body, "kind=a")
		f.Add(body, "Kind=b&kind=a&KIND=%ff")
	}
	f.Fuzz(func(t *testing.T, body, query string) {
		var judged, ran []order
		note := func(to *[]order) func(context.Context, order) (effect.Set, error) {
			return func(_ context.Context, r order) (effect.Set, error) {
				*to = append(*to, r)
				return effect.AddsFactor, nil
			}
		}
		route := Weigh(Handle("POST /x/{id}", "X", operators, func(ctx context.Context, r order) (None, error) {
			_, err := note(&ran)(ctx, r)
			return None{}, err
		}), effect.AddsFactor, note(&judged)).Varying("FirstOtp")
		k := &keeper{stored: map[string][]byte{}}
		h := office(t, k, route)
		ask := func() *httptest.ResponseRecorder {
			r := httptest.NewRequest("POST", "/x/7", strings.NewReader(body))
			r.URL.RawQuery = query
			r.Header.Set("Authorization", "Bearer x")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		w := ask()
		if len(ran) != 0 || w.Code != 400 {
			t.Fatalf("%q ran without a decision: %d %s", body, w.Code, w.Body)
		}
		if len(k.calls) == 0 { // refused: then it is refused each time
			return
		}
		w = ask()
		if len(ran) != 1 || w.Code != 200 {
			t.Fatalf("%q does not run after its approval: %d %s", body, w.Code, w.Body)
		}
		one, err1 := json.Marshal(judged[0])
		two, err2 := json.Marshal(ran[0])
		if string(one) != string(two) || err1 != nil || err2 != nil {
			t.Fatalf("%q was judged as %s, and ran as %s", body, one, two)
		}
	})
}
