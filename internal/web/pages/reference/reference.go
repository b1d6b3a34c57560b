// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // for the script
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"tamga/internal/domain/fault"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// openAPI is the part of the OpenAPI document that the pages of the reference print. The
// document is made from the route tables.
type openAPI struct {
	Tags  []struct{ Name, Description string }
	Paths map[string]map[string]*referenceOperation
	Info  struct{ Description string }

	Components struct{ Schemas map[string]json.RawMessage }

	byID map[string]*referenceOperation
}

// referenceOperation is an operation of the interface.
type referenceOperation struct {
	ID          string `json:"operationId"`
	Tags        []string
	Summary     string
	Description string
	Security    []map[string]any
	Parameters  []referenceParameter
	RequestBody *struct {
		Content map[string]referenceContent
	}
	Responses map[string]struct {
		Description string
		Ref         string `json:"$ref"`
		Content     map[string]struct{}
	}

	Method, Path string
}

// referenceContent is a body of one media type.
type referenceContent struct {
	Schema  json.RawMessage
	Example json.RawMessage
	// File is the example of a body that is no text: a file, and the command that makes it.
	File struct{ Name, Command string } `json:"x-file"`
}

type referenceParameter struct {
	Name, In    string
	Required    bool
	Description string
	Example     string
	Schema      struct {
		Type        any
		Description string
	}
}

// readOpenAPI reads the document that the program itself made.
func readOpenAPI(document []byte) (*openAPI, error) {
	d := &openAPI{byID: map[string]*referenceOperation{}}
	if len(document) == 0 {
		return d, nil
	}
	if err := json.Unmarshal(document, d); err != nil {
		return nil, fmt.Errorf("pages: the description of the interface: %w", err)
	}
	for path, methods := range d.Paths {
		for method, o := range methods {
			o.Path, o.Method = path, strings.ToUpper(method)
			d.byID[o.ID] = o
		}
	}
	return d, nil
}

// Routes returns the pages of the reference.
func (a *API) Routes() []rest.Route {
	return []rest.Route{
		view.Handle("GET /reference", "ReferencePage", rest.Anyone, a.referenceIndex).Unaudited(),
		view.Handle("GET /reference/{operation}", "ReferenceOperationPage", rest.Anyone, a.referenceOperation).Unaudited(),
		view.Handle("POST /reference/{operation}/do/try", "TryOperation", rest.SignedIn, a.tryOperation),
	}
}

//go:embed reference.js
var referenceScript string

// indexView is the list of operations. All of them are on the page: the script searches while
// a person types.
type indexView struct {
	Query    string
	Surfaces []surfaceView
	Found    bool
}

// surfaceView is the operations of one surface of the interface.
type surfaceView struct {
	Key        string // of the name
	Operations []listedOperation
	Hidden     bool // the search finds none of them
}

type listedOperation struct {
	*referenceOperation
	Name   string // in the language of the reader; see [operationName]
	Hidden bool   // the search does not find it
}

// matches reports whether what the list says of an operation has all words of a search.
func matches(w *view.Words, o *referenceOperation, query string) bool {
	text := strings.ToLower(strings.Join([]string{o.ID, o.Method, o.Path, cmp.Or(operationName(w, o), o.Summary)}, " "))
	return !slices.ContainsFunc(strings.Fields(strings.ToLower(query)), func(word string) bool { return !strings.Contains(text, word) })
}

func (a *API) referenceIndex(ctx context.Context, r struct {
	Query string `query:"q"`
}) (view.View, error) {
	v, w := indexView{Query: strings.TrimSpace(r.Query)}, view.VisitorOf(ctx).Words
	all := slices.SortedFunc(maps.Values(a.reference.byID), func(x, y *referenceOperation) int {
		return cmp.Or(strings.Compare(x.Path, y.Path), strings.Compare(x.Method, y.Method))
	})
	for _, t := range a.reference.Tags {
		s := surfaceView{Key: "reference.tag." + strings.ReplaceAll(strings.ToLower(t.Name), " ", "_"), Hidden: true}
		for _, o := range all {
			if slices.Contains(o.Tags, t.Name) {
				found := matches(w, o, v.Query)
				s.Operations = append(s.Operations, listedOperation{o, operationName(w, o), !found})
				s.Hidden = s.Hidden && !found
			}
		}
		v.Found = v.Found || !s.Hidden
		v.Surfaces = append(v.Surfaces, s)
	}
	return view.View{Template: "reference/index", Title: "reference.title", Script: referenceScript, Content: v}, nil
}

// operationView is the page of an operation.
type operationView struct {
	*referenceOperation
	Name     string   // in the language of the reader; see [operationName]
	Rights   []string // keys
	Bodies   []referenceBody
	Answers  []referenceAnswer
	Curl     string
	Token    bool    // the command has an access token
	Address  string  // public address of the service
	Tries    bool    // the operation can be tried on the page
	SignedIn bool    // the visitor may do so
	Inputs   []input // of the trial
	Tried    *triedView
}

type referenceBody struct{ Media, Schema, Example, File, Command string }

// referenceAnswer is an answer of an operation. Key is that of the text, if the pages have one.
type referenceAnswer struct{ Status, Text, Key string }

// answers are the keys of what the description says of answers without a fault.
var answers = map[string]string{
	"Done.": "reference.answer.done", "Done; no body.": "reference.answer.no_body", "A file.": "reference.answer.file", "Go on at the address.": "reference.answer.address",
}

// operationName returns the name of an operation in the language of the reader. It is "" for most in
// English, where the summary in the description of the interface says more.
func operationName(w *view.Words, o *referenceOperation) string {
	id := strings.TrimSuffix(o.ID, o.Method) // a second method of the same operation
	if text, ok := w.Lookup("reference.operation." + o.ID); ok || w.Language == "en" {
		return text
	}
	return cmp.Or(w.TextOr("audited."+o.ID, ""), w.TextOr("audited."+id, ""))
}

func (a *API) referenceOperation(ctx context.Context, r struct {
	Operation string `path:"operation"`
}) (view.View, error) {
	o, err := a.operation(r.Operation)
	if err != nil {
		return view.View{}, err
	}
	return a.describeOperation(ctx, o).page(), nil
}

func (v operationView) page() view.View {
	return view.View{Template: "reference/operation", Title: "reference.title", About: v.ID, Script: referenceScript, Content: v}
}

// operation finds an operation of the interface.
func (a *API) operation(id string) (*referenceOperation, error) {
	o := a.reference.byID[id]
	if o == nil {
		return nil, fault.New(fault.NotFound, "the interface has no such operation")
	}
	return o, nil
}

// describeOperation returns the page of an operation.
func (a *API) describeOperation(ctx context.Context, o *referenceOperation) operationView {
	v := operationView{
		referenceOperation: o, Name: operationName(view.VisitorOf(ctx).Words, o), Inputs: o.inputs(nil), Token: o.takesToken(), Address: a.Address,
		Tries: a.tries(o), SignedIn: view.VisitorOf(ctx).Session.Token != "",
	}
	v.Curl = a.curl(o, v.Inputs, false)
	if len(o.Security) == 0 {
		v.Rights = []string{"reference.anyone"}
	}
	for _, s := range o.Security {
		for name := range s {
			v.Rights = append(v.Rights, "reference.security."+name)
		}
		if len(s) == 0 {
			v.Rights = append(v.Rights, "reference.anyone")
		}
	}
	if o.RequestBody != nil {
		for _, media := range slices.Sorted(maps.Keys(o.RequestBody.Content)) {
			c := o.RequestBody.Content[media]
			v.Bodies = append(v.Bodies, referenceBody{media, a.reference.schema(c.Schema), indented(c.Example), c.File.Name, c.File.Command})
		}
	}
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		answer := o.Responses[status]
		key := answers[answer.Description]
		if answer.Ref != "" {
			key = "reference.status." + status
		}
		v.Answers = append(v.Answers, referenceAnswer{status, answer.Description, key})
	}
	return v
}

// schema returns a schema for people, with the ones that it refers to in their places. One that
// contains itself stays a reference there.
func (d *openAPI) schema(raw json.RawMessage) string {
	var within []string
	var whole func(value any) any
	whole = func(value any) any {
		switch x := value.(type) {
		case []any:
			for i := range x {
				x[i] = whole(x[i])
			}
		case map[string]any:
			to, _ := x["$ref"].(string)
			name, ok := strings.CutPrefix(to, "#/components/schemas/")
			var meant any
			if ok && !slices.Contains(within, name) && json.Unmarshal(d.Components.Schemas[name], &meant) == nil {
				within = append(within, name)
				meant = whole(meant)
				within = within[:len(within)-1]
				return meant
			}
			for key := range x {
				x[key] = whole(x[key])
			}
		}
		return value
	}
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return ""
	}
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false) // the template does
	if out.Encode(whole(value)) != nil {
		return ""
	}
	return text.String()
}

// indented returns JSON for people.
func indented(raw json.RawMessage) string {
	var text bytes.Buffer
	if len(raw) == 0 || json.Indent(&text, raw, "", "  ") != nil {
		return ""
	}
	return text.String()
}

// curl returns a command that calls an operation with these values: those of a trial or, as inputs
// returns them without a form, of the example.
func (a *API) curl(o *referenceOperation, values []input, tried bool) string {
	address, query := o.Path, url.Values{}
	var parts []string
	for i, p := range o.Parameters {
		value := strings.TrimSpace(values[i].Value)
		switch {
		case p.In == "path":
			address = strings.ReplaceAll(address, "{"+p.Name+"}", url.PathEscape(cmp.Or(value, strings.ToUpper(p.Name))))
		case value == "":
		case p.In == "query":
			query.Set(p.Name, value)
		case p.In == "header":
			parts = append(parts, "-H "+quoted(p.Name+": "+value))
		}
	}
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	command := []string{"curl -X " + o.Method + " " + quoted(a.Address+address)}
	if o.takesToken() {
		command = append(command, `-H "Authorization: Bearer $TOKEN"`)
	}
	command = append(command, parts...)
	switch {
	case o.RequestBody == nil:
	case tried:
		command = append(command, "-H "+quoted("Content-Type: "+jsonType), "--data-raw "+quoted(compact(values[len(values)-1].Value)))
	default:
		for _, media := range slices.Sorted(maps.Keys(o.RequestBody.Content)) {
			if body := o.RequestBody.Content[media].curl(media); body != nil {
				command = append(command, body...)
				break
			}
		}
	}
	return strings.Join(command, " \\\n  ")
}

// takesToken reports whether an operation may be called with an access token.
func (o *referenceOperation) takesToken() bool {
	return slices.ContainsFunc(o.Security, func(s map[string]any) bool { return s["token"] != nil })
}

// curl returns the words of a command that send the example, nil without an example.
func (c referenceContent) curl(media string) []string {
	kind := "-H " + quoted("Content-Type: "+media)
	if c.File.Name != "" {
		return []string{kind, "--data-binary " + quoted("@"+c.File.Name)}
	}
	if len(c.Example) == 0 {
		return nil
	}
	var fields map[string]string
	var plain string
	switch {
	case strings.HasPrefix(media, "multipart/") && json.Unmarshal(c.Example, &fields) == nil:
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			parts = append(parts, "--form-string "+quoted(name+"="+fields[name]))
		}
		return parts
	case strings.Contains(media, "form-urlencoded") && json.Unmarshal(c.Example, &fields) == nil:
		values := url.Values{}
		for name, value := range fields {
			values.Set(name, value)
		}
		return []string{kind, "--data-raw " + quoted(values.Encode())}
	case !strings.Contains(media, "json") && json.Unmarshal(c.Example, &plain) == nil:
		return []string{kind, "--data-raw " + quoted(plain)}
	}
	return []string{kind, "--data-raw " + quoted(compact(string(c.Example)))}
}

// compact returns JSON on one line. A text that is not JSON stays as it is.
func compact(text string) string {
	var line bytes.Buffer
	if json.Compact(&line, []byte(text)) != nil {
		return text
	}
	return line.String()
}

// quoted writes a text for a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
