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
	"regexp"
	"slices"
	"strings"
	"unicode"

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

// indexView is the list of operations.
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

// wordsAbout returns the words by which a search finds an operation: those of its name, its address, its parameters and
// bodies, and the words of people for what they have.
func (a *API) wordsAbout(w *view.Words, o *referenceOperation) []string {
	texts := []string{o.ID, o.Method, o.Path, operationName(w, o), o.Summary, o.Description}
	for _, tag := range o.Tags {
		texts = append(texts, w.TextOr("reference.tag."+strings.ReplaceAll(tag, " ", "_"), ""))
	}
	for _, p := range o.Parameters {
		texts = append(texts, p.Name, p.Description, p.Schema.Description)
	}
	if o.RequestBody != nil {
		for _, media := range slices.Sorted(maps.Keys(o.RequestBody.Content)) {
			texts = append(texts, fieldName.FindAllString(a.reference().schema(o.RequestBody.Content[media].Schema), -1)...)
		}
	}
	for i, text := range texts {
		texts[i] += " " + inWords.ReplaceAllString(text, "$1 $2") // SignDocument is also "sign document"
	}
	all := strings.ToLower(strings.Join(texts, " "))
	for _, about := range w.Family("reference.about.") {
		if strings.Contains(all, strings.ReplaceAll(about.Value, "_", " ")) {
			texts = append(texts, about.Text)
		}
	}
	return folded(strings.Join(texts, " "))
}

// folded returns the words of a text without letter case, with е for ё.
func folded(text string) []string {
	text = strings.ReplaceAll(strings.ToLower(text), "ё", "е")
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

var (
	fieldName = regexp.MustCompile(`"[A-Za-z_]\w*":`)
	inWords   = regexp.MustCompile(`(\p{Ll})(\p{Lu})`)
)

// Words of a search are cut to what their forms have in common: "подписать" finds "подписание".
const (
	shortestStem = 4
	longestTail  = 3
)

func stem(word string) string {
	letters := []rune(word)
	if len(letters) <= shortestStem || !unicode.Is(unicode.Cyrillic, letters[0]) {
		return word
	}
	return string(letters[:max(shortestStem, len(letters)-longestTail)])
}

// matches reports whether an operation has all words of a search, or its identifier or its address their text.
func (a *API) matches(w *view.Words, o *referenceOperation, query string) bool {
	plain := strings.ToLower(o.ID + " " + o.Method + " " + o.Path)
	var about []string
	for _, word := range strings.Fields(strings.ToLower(query)) {
		if strings.Contains(plain, word) {
			continue
		}
		if about == nil {
			if known, has := a.words.Load(w.Language + o.ID); has {
				about = known.([]string)
			} else {
				about = a.wordsAbout(w, o)
				a.words.Store(w.Language+o.ID, about)
			}
		}
		parts := folded(word)
		if len(parts) == 0 || slices.ContainsFunc(parts, func(part string) bool {
			return !slices.ContainsFunc(about, func(has string) bool { return strings.HasPrefix(has, stem(part)) })
		}) {
			return false
		}
	}
	return true
}

func (a *API) referenceIndex(ctx context.Context, r struct {
	Query string `query:"q"`
}) (view.View, error) {
	v, w := indexView{Query: strings.TrimSpace(r.Query)}, view.VisitorOf(ctx).Words
	all := slices.SortedFunc(maps.Values(a.reference().byID), func(x, y *referenceOperation) int {
		return cmp.Or(strings.Compare(x.Path, y.Path), strings.Compare(x.Method, y.Method))
	})
	for _, t := range a.reference().Tags {
		s := surfaceView{Key: "reference.tag." + strings.ReplaceAll(strings.ToLower(t.Name), " ", "_"), Hidden: true}
		for _, o := range all {
			if slices.Contains(o.Tags, t.Name) {
				found := a.matches(w, o, v.Query)
				s.Operations = append(s.Operations, listedOperation{o, operationName(w, o), !found})
				s.Hidden = s.Hidden && !found
			}
		}
		v.Found = v.Found || !s.Hidden
		v.Surfaces = append(v.Surfaces, s)
	}
	return view.View{Template: "reference/index", Title: "reference.title", Content: v}, nil
}

// outside are the ways to check a result without this service, by the words in the identifiers of the operations that
// make one.
var outside = []struct{ word, key, command string }{
	{"sign", "reference.outside.cms", "openssl cms -verify -engine gost -inform DER -in document.p7s -content document -binary -CAfile authorities.pem -out /dev/null"},
	{"sign", "reference.outside.pdf", "pdfsig document.pdf"},
	{"sign", "reference.outside.xml", "xmlsec1 --verify --trusted-pem authorities.pem document.xml"},
	{"timestamp", "reference.outside.stamp", "openssl ts -verify -in response.tsr -data document -CAfile authorities.pem"},
	{"certificate", "reference.outside.certificate", "openssl verify -engine gost -CAfile authorities.pem -crl_check -CRLfile list.pem certificate.pem"},
	{"decrypt", "reference.outside.decrypt", "openssl cms -decrypt -engine gost -inform DER -in message.p7m -inkey key.pem -out document"},
}

// check is a way to check a result outside.
type check struct{ Key, Command string }

// checks returns the ways to check what an operation makes. One that only reads makes nothing.
func (o *referenceOperation) checks() (list []check) {
	id := strings.ToLower(o.ID)
	for _, c := range outside {
		if strings.Contains(id, c.word) && !strings.Contains(id, "signed") && !strings.Contains(id, "signature") && (o.Method != "GET" || c.word == "certificate") {
			list = append(list, check{c.key, c.command})
		}
	}
	return list
}

// operationView is the page of an operation.
type operationView struct {
	*referenceOperation
	Checks   []check
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
	o := a.reference().byID[id]
	if o == nil {
		return nil, fault.New(fault.NotFound, "the interface has no such operation")
	}
	return o, nil
}

// describeOperation returns the page of an operation.
func (a *API) describeOperation(ctx context.Context, o *referenceOperation) operationView {
	v := operationView{
		referenceOperation: o, Checks: o.checks(), Name: operationName(view.VisitorOf(ctx).Words, o), Inputs: o.inputs(nil), Token: o.takesToken(), Address: a.Address,
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
			v.Bodies = append(v.Bodies, referenceBody{media, a.reference().schema(c.Schema), indented(c.Example), c.File.Name, c.File.Command})
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
