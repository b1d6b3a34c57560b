// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tamga/internal/domain/fault"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// maxTried is the most that a page shows of the answer to a trial, in bytes.
const maxTried = 64 << 10

// Trials lets people try operations of the interface on the pages of the reference.
type Trials struct {
	// Send sends a request through all steps of the server, see [rest.Inner].
	Send func(ctx context.Context, method, target string, header http.Header, body string, most int) (rest.InnerReply, error)
	// Devices are the surfaces whose callers are not people but mobile devices.
	Devices []string
}

const jsonType = "application/json"

// tries reports whether an operation can be tried: the session has what it asks for, and its
// request and its answer are nothing but texts. The sign-in itself, forms of programs and what
// needs a file or a certificate are left to the command.
func (a *API) tries(o *referenceOperation) bool {
	if a.Trials.Send == nil || slices.ContainsFunc(o.Tags, func(t string) bool { return slices.Contains(a.Trials.Devices, t) }) {
		return false
	}
	token := false
	for _, s := range o.Security {
		if len(s) == 0 || s["client"] != nil { // a confirmation or the sign-in, which know the caller themselves
			return false
		}
		token = token || s["token"] != nil
	}
	answersJSON := slices.ContainsFunc(slices.Collect(maps.Keys(o.Responses)), func(status string) bool {
		_, is := o.Responses[status].Content[jsonType]
		return is && strings.HasPrefix(status, "2")
	})
	if !token && (len(o.Security) > 0 || !answersJSON) {
		return false
	}
	if o.RequestBody == nil {
		return true
	}
	_, takesJSON := o.RequestBody.Content[jsonType]
	return takesJSON
}

// bodyField is the field of the body of a request. Those of the parameters are p0, p1 and so on.
const bodyField = "body"

// input is a value of the request of a trial.
type input struct {
	Name, Label, Value string
	In                 string // place of a parameter: path, query or header
	Required, Body     bool
}

// inputs returns the fields of a trial, with the values of a form or, without one, those of the
// example.
func (o *referenceOperation) inputs(form rest.Form) (list []input) {
	add := func(f input) {
		if form != nil {
			f.Value = form.Get(f.Name)
		}
		list = append(list, f)
	}
	for i, p := range o.Parameters {
		add(input{Name: "p" + strconv.Itoa(i), Label: p.Name, In: p.In, Value: p.Example, Required: p.Required})
	}
	if o.RequestBody != nil {
		add(input{Name: bodyField, Value: indented(o.RequestBody.Content[jsonType].Example), Body: true})
	}
	return list
}

// triedView is the answer to a trial.
type triedView struct {
	Request string // method and address
	Status  string
	Headers []string
	Body    string
	Length  int64 // of the whole answer
	Cut     bool  // the answer is longer than what is shown
	Hidden  bool  // it is no text
}

// tryOperation sends the request that a person has written, with the session of that person, and
// shows the answer.
func (a *API) tryOperation(ctx context.Context, r struct {
	Operation string `path:"operation"`
	Body      rest.Form
}) (view.View, error) {
	o, err := a.operation(r.Operation)
	if err != nil {
		return view.View{}, err
	}
	rest.Detail(ctx, "operation "+o.ID)
	if !a.tries(o) {
		return view.View{}, fault.New(fault.WrongOperation, "this operation cannot be tried on its page: use the command")
	}
	v := a.describeOperation(ctx, o)
	v.Inputs = o.inputs(r.Body)
	v.Curl = a.curl(o, v.Inputs, true)
	target, header, err := o.request(v.Inputs)
	if err != nil {
		return view.View{}, err
	}
	header.Set("Accept", jsonType)
	header.Set("Authorization", "Bearer "+view.VisitorOf(ctx).Session.Token)
	body := ""
	if o.RequestBody != nil {
		header.Set("Content-Type", jsonType)
		body = r.Body.Get(bodyField)
	}
	reply, err := a.Trials.Send(ctx, o.Method, a.Address+target, header, body, maxTried)
	if err != nil {
		return view.View{}, err
	}
	v.Tried = shownReply(reply)
	v.Tried.Request = o.Method + " " + target
	return v.page(), nil
}

// request returns the address and the headers of a request with these values.
func (o *referenceOperation) request(values []input) (target string, header http.Header, err error) {
	target, header = o.Path, http.Header{}
	query := url.Values{}
	for i, p := range o.Parameters {
		value := strings.TrimSpace(values[i].Value)
		switch {
		case p.In == "path" && value == "":
			return "", nil, fault.Newf(fault.InvalidParameters, "%s: want a value, it is a part of the address", p.Name)
		case p.In == "path":
			target = strings.ReplaceAll(target, "{"+p.Name+"}", url.PathEscape(value))
		case value == "":
		case p.In == "query":
			query.Set(p.Name, value)
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }):
			return "", nil, fault.Newf(fault.InvalidParameters, "%s: want one line", p.Name)
		default:
			header.Set(p.Name, value)
		}
	}
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	return target, header, nil
}

// shownReply returns an answer for people. Cookies are left out.
func shownReply(r rest.InnerReply) *triedView {
	v := &triedView{Status: strconv.Itoa(r.Status) + " " + http.StatusText(r.Status), Length: r.Length, Cut: r.Length > int64(len(r.Body))}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		if name != "Set-Cookie" {
			v.Headers = append(v.Headers, name+": "+strings.Join(r.Header[name], ", "))
		}
	}
	text := r.Body
	if v.Cut { // the last character may be cut, too
		text = []byte(strings.ToValidUTF8(string(text), ""))
	}
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	switch {
	case !utf8.Valid(text) || kind == "application/octet-stream":
		v.Hidden = true
	case indented(text) != "":
		v.Body = indented(text)
	default:
		v.Body = string(text)
	}
	return v
}
