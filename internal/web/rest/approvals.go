// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"context"
	"encoding"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
)

// Approvals decide which requests of a surface wait for something before they are carried out,
// such as a second operator.
type Approvals interface {
	// Weighs reports whether requests with any of these effects may wait.
	Weighs(e effect.Set) bool
	// Hold returns the fault of a request that waits. Otherwise the request is carried out now:
	// with the value of the admission, which is ended with its error, or, without one, as it is.
	Hold(ctx context.Context, who audit.Principal, c ApprovalCall) (*Admission, error)
}

// ApprovalCall is a request that may wait before it is carried out, as it was bound.
type ApprovalCall struct {
	Operation string // name of the route
	Route     string // pattern of its path
	Method    string
	Target    string // path, and the values of the query
	Object    string // the part {id} of the path, in lower case; "" if there is none
	Effects   effect.Set
	Value     []byte // JSON, equal for equal requests, without what Route.Varying names
}

// Admission is the right to carry a request out, with the value that was stored.
type Admission struct {
	Value []byte // as in ApprovalCall
	// End is called with the error of the operation.
	End func(ctx context.Context, err error) error
}

// Effects declares the effects of the route on people, keys and policies, the same for all
// values; effect.None for none of them. Every route of operators that changes something has
// this, or [Weigh].
func (r Route) Effects(e effect.Set) Route {
	r.declared, r.possible = true, e
	r.weigh = func(context.Context, any) (effect.Set, error) { return e, nil }
	return r
}

// Weigh declares the effects that a route may have. effects returns those of one request, by
// its values and by what is stored; Req is the type of the requests of the route. An error
// refuses the request.
func Weigh[Req any](r Route, possible effect.Set, effects func(ctx context.Context, req Req) (effect.Set, error)) Route {
	if t := reflect.TypeFor[Req](); t != r.Request {
		panic(fmt.Sprintf("rest: route %s: its requests are %s, and its effects are those of a %s", r.Name, r.Request, t))
	}
	r.declared, r.possible = true, possible
	r.weigh = func(ctx context.Context, req any) (effect.Set, error) {
		e, err := effects(ctx, *req.(*Req))
		if err == nil && e&^possible != 0 {
			err = fmt.Errorf("rest: route %s has the effects %s, and declares %s", r.Name, e, possible)
		}
		return e, err
	}
	return r
}

// PossibleEffects returns the effects that the route declares. It reports false if it declares
// nothing.
func (r Route) PossibleEffects() (effect.Set, bool) { return r.possible, r.declared }

// Varying names members of a body that differ when the same request is sent again, such as
// one-time codes. They are not stored, and two requests that differ in them are the same.
func (r Route) Varying(members ...string) Route {
	r.varying = members
	return r
}

// mustDeclare reports whether the route must declare its effects: it is for operators, and it is
// not a reading one.
func (r *Route) mustDeclare() bool {
	return r.Right != Anyone && r.Right != SignedIn && r.Method != http.MethodGet && r.Method != http.MethodHead
}

// storable returns what keeps the requests of the route from being stored and made again, "" for
// nothing.
func (r *Route) storable() string {
	if why := unstorable(r.Request, nil); why != "" {
		return why
	}
	body, has := r.Request.FieldByName("Body")
	for _, name := range r.varying {
		if !has || body.Type != reflect.TypeFor[Form]() && !hasMember(body.Type, name) {
			return "no member " + name
		}
	}
	return ""
}

// hasMember reports whether JSON of a struct has a member.
func hasMember(t reflect.Type, name string) bool {
	for i := 0; t.Kind() == reflect.Struct && i < t.NumField(); i++ {
		tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if tag == name || tag == "" && t.Field(i).Name == name {
			return true
		}
	}
	return false
}

var (
	jsonWriter = reflect.TypeFor[json.Marshaler]()
	jsonReader = reflect.TypeFor[json.Unmarshaler]()
	textWriter = reflect.TypeFor[encoding.TextMarshaler]()
)

// unstorable returns a type inside of t whose values JSON does not bring back, "" for none.
func unstorable(t reflect.Type, within []reflect.Type) string {
	pointer := reflect.PointerTo(t)
	writes, reads := t.Implements(jsonWriter), pointer.Implements(jsonReader)
	writesText, readsText := t.Implements(textWriter), pointer.Implements(textual)
	switch {
	case slices.Contains(within, t) || writes && reads || writesText && readsText && !writes && !reads:
		return ""
	case writes || reads || writesText || readsText && t.Kind() != reflect.String:
		return t.String()
	}
	within = append(within, t)
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return ""
	case reflect.Interface:
		if t == anyType {
			return ""
		}
	case reflect.Pointer, reflect.Slice:
		return unstorable(t.Elem(), within)
	case reflect.Map:
		if t.Key().Kind() == reflect.String {
			return unstorable(t.Elem(), within)
		}
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if tag := f.Tag.Get("json"); !f.IsExported() || f.Anonymous || strings.HasPrefix(tag, "-") || strings.Contains(tag, ",") {
				return t.String() + "." + f.Name
			}
			if why := unstorable(f.Type, within); why != "" {
				return why
			}
		}
		return ""
	}
	return t.String()
}

// hold has the Approvals of the gate decide about a request once it was bound, before the operation
// is called. The decision takes the value that the operation gets, and nothing reads the body
// again. What they admit runs with the value that was stored.
func (h *handler) hold(ctx context.Context, call *call, r *http.Request, in *input) {
	approvals := h.gate.Approvals
	if approvals == nil || h.possible == effect.None || !approvals.Weighs(h.possible) {
		return
	}
	bound := in.bound
	in.bound = func(req any) error {
		if err := bound(req); err != nil {
			return err
		}
		effects, err := h.weigh(ctx, req)
		if err != nil {
			return err
		}
		value, err := h.store(req)
		if err != nil {
			return err
		}
		admission, err := approvals.Hold(ctx, call.who, ApprovalCall{
			Operation: h.Name, Route: h.Path, Method: r.Method, Target: shownTarget(r, req),
			Object: strings.ToLower(r.PathValue("id")), Effects: effects, Value: value,
		})
		if call.waits = err != nil; err != nil || admission == nil {
			return err
		}
		call.admitted = admission.End
		return h.restore(admission.Value, req)
	}
}

// release ends the admission of a request.
func (h *handler) release(ctx context.Context, call *call, err error) {
	if call.admitted == nil {
		return
	}
	if e := call.admitted(context.WithoutCancel(ctx), err); e != nil {
		h.gate.Log.ErrorContext(ctx, "ending a request that had waited", "request_id", call.id, "error", e)
	}
}

// shownTarget returns the path of a request and what was read from its query. What has no effect
// is not shown to those who approve.
func shownTarget(r *http.Request, req any) string {
	v, q := reflect.ValueOf(req).Elem(), url.Values{}
	for i := range v.NumField() {
		if name, ok := v.Type().Field(i).Tag.Lookup("query"); ok && !v.Field(i).IsZero() {
			q.Set(name, shownValue(v.Field(i).Interface()))
		}
	}
	if len(q) == 0 {
		return r.URL.EscapedPath()
	}
	return r.URL.EscapedPath() + "?" + q.Encode()
}

func shownValue(v any) string {
	if t, ok := v.(encoding.TextMarshaler); ok {
		text, _ := t.MarshalText()
		return string(text)
	}
	return fmt.Sprint(v)
}

// bodyMember is the member of a stored value that has the body.
const bodyMember = "Body"

// StoredBody returns the body in a value that [Approvals] were given, as JSON; nil for none.
func StoredBody(value []byte) []byte {
	var v struct{ Body json.RawMessage }
	if json.Unmarshal(value, &v) != nil || string(v.Body) == "null" {
		return nil
	}
	return v.Body
}

// members returns a bound value as the object that JSON makes of it.
func members(req any) (map[string]any, error) {
	text, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	return parsed(text)
}

func parsed(text []byte) (value map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return value, d.Decode(&value)
}

// fill is the inverse of members. req points to the request.
func fill(value map[string]any, req any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	v := reflect.ValueOf(req).Elem()
	v.SetZero()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(req)
}

// store returns the form of a bound request that is stored: equal for equal requests, without
// what varies. The fault is invalid_parameters for a request that would not come back as it is.
func (h *handler) store(req any) ([]byte, error) {
	value, err := members(req)
	if err != nil {
		return nil, err
	}
	again := reflect.New(h.Request)
	if err := fill(value, again.Interface()); err != nil || !reflect.DeepEqual(again.Interface(), req) {
		return nil, fault.New(fault.InvalidParameters, "the request has text that is not UTF-8: it cannot be stored until it is approved").With(err)
	}
	if body, is := value[bodyMember].(map[string]any); is {
		for _, name := range h.varying {
			delete(body, name)
		}
	}
	return json.Marshal(value)
}

// restore sets a request to the stored one. What varies comes from the request itself.
func (h *handler) restore(stored []byte, req any) error {
	value, err := parsed(stored)
	if err != nil {
		return fmt.Errorf("rest: a stored request of %s: %w", h.Name, err)
	}
	now, err := members(req)
	if err != nil {
		return err
	}
	if body, is := value[bodyMember].(map[string]any); is {
		for _, name := range h.varying {
			if given, is := now[bodyMember].(map[string]any); is {
				if v, has := given[name]; has {
					body[name] = v
				}
			}
		}
	}
	if err := fill(value, req); err != nil {
		return fmt.Errorf("rest: a stored request of %s: %w", h.Name, err)
	}
	return nil
}
