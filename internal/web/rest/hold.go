// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"

	"tamga/internal/domain/audit"
)

// HeldCall is a request that may wait before it is carried out.
type HeldCall struct {
	Operation string // name of the route
	Method    string
	Target    string // path and query
	Object    string // the part {id} of the path, in lower case; "" if there is none
	Body      []byte // without the members that Route.Varying names
}

// Holder decides which requests of a surface wait for something before they are carried out,
// such as a second operator.
type Holder interface {
	// Holds reports whether requests of an operation may wait.
	Holds(operation string) bool
	// Hold returns the fault of a request that waits. Otherwise the request is carried out
	// now, and end is called with its error; end may be nil.
	Hold(ctx context.Context, who audit.Principal, c HeldCall) (end func(ctx context.Context, err error) error, err error)
}

// Varying names members of a body that differ when the same request is sent again, such as
// one-time codes. A [Holder] does not see them. Letter case is ignored.
func (r Route) Varying(members ...string) Route {
	r.varying = members
	return r
}

// HeldAs gives a route whose body is a [Form] the JSON value that a [Holder] sees in place of
// the form, such as the body of the same operation of the interface. The operation must read
// the form in the same way: what the value does not show has no effect.
func (r Route) HeldAs(value func(Form) any) Route {
	r.heldAs = value
	return r
}

// holdable reports whether a holder can read the requests of the route. Documents are too large to
// keep, and the operation reads those in parts itself, after the holder. A value in place of a
// form needs a form.
func (r *Route) holdable() bool {
	body, _ := r.Request.FieldByName("Body")
	return !holdsDocuments(r.Request, map[reflect.Type]bool{}) && (r.heldAs == nil || body.Type == reflect.TypeFor[Form]())
}

// hold has the holder of the gate decide about a request once it was read, before the
// operation is called. No route of the surface can forget that.
func (h *handler) hold(ctx context.Context, call *call, r *http.Request, in *input) {
	holder := h.gate.Holder
	if holder == nil || h.Right == Anyone || !holder.Holds(h.Name) {
		return
	}
	var text bytes.Buffer
	in.body = io.TeeReader(in.body, &text)
	bound := in.bound
	in.bound = func() error {
		if err := bound(); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, in.body); err != nil {
			return err
		}
		body := text.Bytes()
		if h.heldAs != nil {
			var err error
			if body, err = json.Marshal(h.heldAs(parseForm(text.String()))); err != nil {
				return err
			}
		}
		end, err := holder.Hold(ctx, call.who, HeldCall{
			h.Name, r.Method, r.URL.RequestURI(), strings.ToLower(r.PathValue("id")), sameBody(body, h.varying),
		})
		call.waits, call.held = err != nil, end
		return err
	}
}

// release ends the turn of a request that a holder let through.
func (h *handler) release(ctx context.Context, call *call, err error) {
	if call.held == nil {
		return
	}
	if e := call.held(context.WithoutCancel(ctx), err); e != nil {
		h.gate.Log.ErrorContext(ctx, "ending a request that had waited", "request_id", call.id, "error", e)
	}
}

// sameBody returns a body in a form that is the same for the same request: the members of an
// object in the order of their names, without those that vary.
func sameBody(body []byte, varying []string) []byte {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return bytes.TrimSpace(body) // not JSON, or empty
	}
	if object, is := value.(map[string]any); is {
		for name := range object {
			for _, v := range varying {
				if strings.EqualFold(name, v) {
					delete(object, name)
				}
			}
		}
	}
	text, err := json.Marshal(value)
	if err != nil {
		return bytes.TrimSpace(body)
	}
	return text
}
