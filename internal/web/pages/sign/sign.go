// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"cmp"
	"context"
	_ "embed" // for the script
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
	"tamga/internal/web/pages/pdfjs"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// previewScript shows the first page of each PDF of an upload, and its pictures.
//
//go:embed preview.js
var previewScript string

// MaxFiles are the files that one upload signs, at most.
const MaxFiles = view.MaxFiles

const (
	maxField   = 4 << 10 // bytes of a field beside the files
	maxRetried = 50      // stored documents that an address of the form names
)

// levels are the levels of a signature, as the form sends them and as their words are named.
var levels = []level{{"plain", signing.LevelBasic}, {"stamped", signing.LevelTime}, {"long", signing.LevelLongTerm}, {"archive", signing.LevelArchive}}

type level struct {
	Name string
	of   signing.Level
}

// automatic is the choice of a format for each file by its name.
const automatic = "automatic"

// kept are the choices of the form that an address can hold, so that a person can sign in the
// same way again. The PIN is not among them.
type kept struct {
	Certificate string `query:"certificate"`
	Format      string `query:"format"`
	Level       string `query:"level"`
	Service     string `query:"service"`
	Attached    string `query:"attached"`
	Stamp       string `query:"stamp"`
	Page        string `query:"stamp_page"`
	Left        string `query:"stamp_left"`
	Bottom      string `query:"stamp_bottom"`
	Width       string `query:"stamp_width"`
	Where       string `query:"stamp_where"`
	Word        string `query:"stamp_word"`
	Mark        string `query:"stamp_form"`

	Stored string `query:"stored"` // identifiers of stored documents to sign, once
	Cookie string `header:"Cookie"`
}

// keptNames are the names of these choices in the form and in addresses.
var keptNames = []string{
	"certificate", "format", "level", "service", "attached", "stamp", "stamp_page", "stamp_left", "stamp_bottom", "stamp_width",
	"stamp_where", "stamp_word", "stamp_form",
}

// maxKept is the longest query with choices, in bytes.
const maxKept = 2 << 10

// keep returns the query with the choices of a form, "" if they are too long for one.
func keep(fields func(name string) string) string {
	query := url.Values{}
	for _, name := range keptNames {
		if value := fields(name); value != "" && (fields("stamp") == "yes" || !strings.HasPrefix(name, "stamp")) {
			query.Set(name, value)
		}
	}
	if text := query.Encode(); len(text) <= maxKept {
		return text
	}
	return ""
}

// place returns the fields of the stamp with the numbers that were kept.
func (k *kept) place() []stampField {
	list := slices.Clone(stampFields)
	for i, text := range []string{k.Page, k.Left, k.Bottom, k.Width} {
		if n, err := strconv.Atoi(text); err == nil && n >= list[i].Low && n <= list[i].High {
			list[i].Value = n
		}
	}
	return list
}

// chosen is what the form shows at first.
type chosen struct {
	Certificate                             int64
	Format, Level, Service, Attached, Stamp string
	Where, Word, Mark                       string // of the stamp
}

// formChoice is a way to sign in the list of the form.
type formChoice struct{ Name, Label string }

// formChoices returns the ways to sign in the language of the person.
func (a *API) formChoices(ctx context.Context) []formChoice {
	w := view.VisitorOf(ctx).Words
	list := make([]formChoice, len(a.Forms))
	for i, f := range a.Forms {
		list[i] = formChoice{f.Name, wayToSign(w, f)}
	}
	return list
}

// signView is the form.
type signView struct {
	Chosen       chosen
	Stamp        []stampField
	Places       []string
	MarkForms    []signing.MarkForm
	PDFScript    string
	PDFWorker    string
	Certificates []view.Certificate // usable ones, the last used first
	PINs         bool               // a certificate has a PIN
	PINHint      string
	Folded       bool       // no option is chosen but the usual ones
	Kinds        string     // JSON: how files are signed in words, by the endings of their names; "*" for all others
	Lacks        *view.Lack // nil: there is one
	Formats      []formChoice
	Levels       []level
	Services     []string      // addresses of time-stamp services
	Life         time.Duration // of what is stored
	MaxFiles     int
	MaxBytes     view.Bytes
	Stored       []document.Info // documents to sign that need not be sent again
	Gone         int             // documents to sign that are not stored any more
}

// storedFiles returns the documents of the caller with these identifiers, without those that are not
// stored any more, and the number of these.
func (a *API) storedFiles(ctx context.Context, ids []string) (list []document.Info, gone int, err error) {
	for _, id := range ids {
		info, err := a.Documents.Info(ctx, rest.Caller(ctx), id)
		switch {
		case fault.Is(err, fault.NotFound):
			gone++
		case err != nil:
			return nil, 0, err
		default:
			list = append(list, info)
		}
	}
	return list, gone, nil
}

func (a *API) signForm(ctx context.Context, r kept) (view.View, error) {
	list, err := view.CertificatesOf(ctx, a.Certificates, a.Now())
	if err != nil {
		return view.View{}, err
	}
	v := signView{
		Certificates: slices.DeleteFunc(list, func(c view.Certificate) bool { return !c.Usable }), Formats: a.formChoices(ctx), Levels: levels[:1],
		Life: a.Life, MaxFiles: MaxFiles, MaxBytes: view.Bytes(a.MostSigned), Stamp: r.place(), PDFScript: pdfjs.Main, PDFWorker: pdfjs.Worker,
		Chosen: chosen{Format: r.Format, Level: r.Level, Service: r.Service, Attached: r.Attached, Stamp: r.Stamp, Where: stampPlaces[0], Word: r.Word},
		Places: stampPlaces, MarkForms: a.markForms(),
	}
	if slices.Contains(stampPlaces, r.Where) {
		v.Chosen.Where = r.Where
	} else if r.Left != "" {
		v.Chosen.Where = "hand"
	}
	if f := formOfMark(v.MarkForms, r.Mark); f != nil {
		v.Chosen.Mark = f.Name
	}
	if v.Lacks, err = view.LackOf(ctx, a.Requests, v.Certificates); err != nil {
		return view.View{}, err
	}
	if len(v.Certificates) > 0 {
		v.Chosen.Certificate = v.Certificates[0].ID // the default one is the first
		for _, wanted := range []string{rest.CookieOf(r.Cookie, a.usedCookie()), r.Certificate} {
			if at := slices.IndexFunc(v.Certificates, func(c view.Certificate) bool { return strconv.FormatInt(c.ID, 10) == wanted }); at >= 0 {
				chosen := v.Certificates[at]
				v.Certificates = slices.Insert(slices.Delete(v.Certificates, at, at+1), 0, chosen)
				v.Chosen.Certificate = chosen.ID
			}
		}
	}
	if err := a.describePINs(ctx, &v); err != nil {
		return view.View{}, err
	}
	if v.Kinds, err = a.kindsInWords(view.VisitorOf(ctx).Words); err != nil {
		return view.View{}, err
	}
	v.Folded = (r.Format == "" || r.Format == automatic) && (r.Level == "" || r.Level == levels[0].Name) && r.Attached == ""
	ids := strings.FieldsFunc(r.Stored, func(r rune) bool { return r == ',' })
	if v.Stored, v.Gone, err = a.storedFiles(ctx, ids[:min(len(ids), maxRetried)]); err != nil {
		return view.View{}, err
	}
	services, err := a.TSPServices(ctx)
	if err != nil {
		return view.View{}, err
	}
	for _, s := range services {
		v.Services = append(v.Services, s.URL)
	}
	if len(v.Services) > 0 {
		v.Levels = levels
	}
	return view.View{Template: "sign/form", Title: "sign.title", Script: view.DropScript + view.UploadScript + previewScript + stampScript, Modules: pdfjs.Modules(a.Address), Pictures: []string{a.Address + marksAt}, Content: v}, nil
}

// usedCookie is the name of the cookie with the certificate that the person used last.
func (a *API) usedCookie() string {
	if strings.HasPrefix(a.Address, "https:") {
		return "__Host-tamga-certificate"
	}
	return "tamga-certificate"
}

// used returns the cookie that remembers the certificate for the next time.
func (a *API) used(certificate string) *http.Cookie {
	return &http.Cookie{
		Name: a.usedCookie(), Value: certificate, Path: "/", MaxAge: 365 * 24 * 60 * 60, Secure: strings.HasPrefix(a.Address, "https:"), HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
}

// describePINs says how many attempts the PINs have left.
func (a *API) describePINs(ctx context.Context, v *signView) error {
	w := view.VisitorOf(ctx).Words
	var left []string
	for _, c := range v.Certificates {
		if !c.PIN {
			continue
		}
		n, err := a.PINs.AttemptsLeft(ctx, rest.Caller(ctx).UserID, strconv.FormatInt(c.ID, 10))
		if err != nil {
			return err
		}
		left = append(left, c.Name+" – "+w.Count("pin.left", n))
	}
	v.PINs = len(left) > 0
	v.PINHint = w.Text("sign.pin_hint")
	if len(left) > 0 {
		v.PINHint += " " + strings.Join(left, "; ") + "."
	}
	return nil
}

// kindsInWords returns how files are signed unless the person says otherwise, by the endings of their names.
func (a *API) kindsInWords(w *view.Words) (string, error) {
	kinds := map[string]string{}
	for _, f := range a.Forms {
		for _, ending := range f.Extensions {
			kinds[ending] = wayToSign(w, f)
		}
		if f.Any {
			kinds["*"] = wayToSign(w, f)
		}
	}
	text, err := json.Marshal(kinds)
	return string(text), err
}

// group is the files of an upload that are signed in one format, by their place in the upload.
type group struct {
	format *signing.Form
	params map[string]string
	files  []int
}

// upload is a file to sign, or the document of a detached signature.
type upload struct {
	document.New        // Content is nil if it was stored before
	id           string // of the stored document
	original     bool   // from the field for documents of detached signatures
}

func (u *upload) name() string { return u.Description.Name }

// besides finds the documents of the messages that get one more signature: by the place of a
// message the place of its document. The document of a.pdf.sig is a.pdf, wherever it was
// dropped. In the field for documents it may have another name, if there is one message only.
func (c *choices) besides(files []upload) (map[int]int, error) {
	beside := map[int]int{}
	var messages []int
	for i := range files {
		f := &files[i]
		if form := c.formatOf(f.name()); !f.original && form != nil && form.Extends {
			messages = append(messages, i)
		}
	}
	// A message has one document, and a document may have messages of several people.
	used := map[int]bool{}
	for _, m := range messages {
		stem := strings.TrimSuffix(files[m].name(), path.Ext(files[m].name()))
		for i := range files {
			if i != m && (files[i].name() == stem || files[i].original && len(messages) == 1) {
				if _, twice := beside[m]; twice {
					return nil, fault.Newf(fault.InvalidParameters, "%s: several documents fit this signature: choose one document", files[m].name())
				}
				beside[m], used[i] = i, true
			}
		}
	}
	for i := range files {
		if files[i].original && !used[i] {
			return nil, fault.Newf(fault.InvalidParameters, "%s: choose the signature of this document too: its name is that of the document and .sig or .p7s, such as a.pdf.sig", files[i].name())
		}
	}
	return beside, nil
}

// sign signs the files of the form. If it refuses, its page says that the form may be sent again, and a script
// keeps the files for that.
func (a *API) sign(ctx context.Context, docs *rest.Documents[*document.Intake], r struct {
	Body rest.Parts `many:"file,original,stored"`
}) (rest.Redirect, error) {
	to, fields, err := a.signFiles(ctx, docs, r.Body)
	_, refused := fault.As(err)
	if _, away := fault.AsOutage(err); !refused || away { // signed, or it is unknown
		return to, err
	}
	left, _ := errors.AsType[unsigned](err)
	left.error = err
	query := []string{keep(fields.Get)}
	if left.kept = len(left.stored) > 0 && len(left.stored) <= maxRetried; left.kept {
		query = append(query, storedQuery(left.stored))
	}
	left.back = formAt(query)
	if fault.Is(err, fault.InvalidPIN) {
		n, err := a.PINs.AttemptsLeft(ctx, rest.Caller(ctx).UserID, fields.Get("certificate"))
		if err != nil {
			return to, err
		}
		left.pin = view.VisitorOf(ctx).Words.Count("pin.left_after", n)
	}
	return to, left
}

// signFiles stores the files, signs them in one operation, and leads to its page. The fields of the form are
// returned with a refusal, too.
func (a *API) signFiles(ctx context.Context, docs *rest.Documents[*document.Intake], parts rest.Parts) (to rest.Redirect, fields rest.Form, err error) {
	tooMany := fault.Newf(fault.InvalidParameters, "at most %d files are signed at once", MaxFiles)
	var files []upload
	fields, err = view.ReadUpload(parts, docs, maxField, func(field, name string, content *document.Intake) error {
		if content.Size() == 0 && name == "" {
			return nil // the browser sends an empty part for no file
		}
		if len(files) == MaxFiles {
			return tooMany
		}
		files = append(files, upload{New: document.New{Content: content, Description: document.Description{Name: name, Temporary: true}}, original: field == "original"})
		return nil
	})
	if err != nil {
		return to, fields, err
	}
	sent := len(files)
	if sent+len(fields["stored"]) > MaxFiles {
		return to, fields, tooMany
	}
	who := rest.Caller(ctx)
	for _, id := range fields["stored"] {
		info, err := a.Documents.Info(ctx, who, id)
		if err != nil {
			return to, fields, err
		}
		files = append(files, upload{New: document.New{Description: document.Description{Name: info.Name}}, id: info.ID})
	}
	if !slices.ContainsFunc(files, func(u upload) bool { return !u.original }) {
		return to, fields, fault.New(fault.ContentRequired, "choose at least one file to sign")
	}
	if empty := namesOf(files, func(u *upload) bool { return u.Content != nil && u.Content.Size() == 0 }); len(empty) > 0 {
		return to, fields, unsigned{error: fault.New(fault.ContentRequired, "a file is empty: leave it out"), files: empty}
	}
	chosen, err := a.choices(ctx, fields)
	if err != nil {
		return to, fields, err
	}
	beside, err := chosen.besides(files)
	if err != nil {
		return to, fields, err
	}
	groups, err := chosen.groups(files, beside)
	if err != nil {
		return to, fields, err
	}
	kept := make([]document.New, sent)
	for i := range kept {
		kept[i] = files[i].New
	}
	var stored []document.Info
	if sent > 0 {
		stored, err = a.Documents.Keep(ctx, who, kept)
	}
	if fault.Is(err, fault.DocumentInfoInvalid) { // a name
		err = unsigned{error: err, files: namesOf(files, func(u *upload) bool {
			return utf8.RuneCountInString(u.name()) > maxFileName || notify.OneLine(u.name()) != strings.TrimSpace(u.name())
		})}
	}
	if err != nil {
		return to, fields, err
	}
	for i := range stored {
		files[i].id = stored[i].ID
	}
	order := &signing.OperationOrder{Form: operation.FormPage, Certificate: chosen.certificate, PIN: chosen.pin, Received: kept}
	var places []int // of the documents of the order
	for way, g := range groups {
		order.Ways = append(order.Ways, signing.Way{Type: g.format.Type, Params: g.params})
		for _, i := range g.files {
			input := signing.Input{RefID: files[i].id, Name: files[i].name(), Way: way}
			if at, ok := beside[i]; ok {
				input.RelatedRefID = files[at].id
			}
			order.Inputs, places = append(order.Inputs, input), append(places, i)
		}
	}
	o, err := a.Operations.Start(ctx, who, order)
	if err != nil {
		return to, fields, notSigned(err, files, groups, places)
	}
	rest.Afterwards(ctx, o)
	rest.Concerning(ctx, "certificate "+chosen.certificate+", "+strconv.Itoa(len(files))+" documents")
	to = rest.Redirect{Location: view.SignedAt(o.ID), See: true}
	if _, err := strconv.ParseInt(chosen.certificate, 10, 64); err == nil {
		to.Cookie = a.used(chosen.certificate)
	}
	if again := keep(fields.Get); again != "" {
		to.Location += "&again=" + url.QueryEscape(again)
	}
	return to, fields, nil
}

// notSigned adds to a refusal of an order the files that it is about. places are those of the documents of the order.
func notSigned(err error, files []upload, groups []*group, places []int) error {
	left := unsigned{error: err}
	for i := range files {
		left.stored = append(left.stored, files[i].id)
	}
	one, ofOne := errors.AsType[operation.OfDocument](err)
	way, ofWay := errors.AsType[signing.OfWay](err)
	switch {
	case ofOne:
		left.files = namesAt(files, places[one.Index:one.Index+1])
	case ofWay:
		for _, g := range groups {
			if slices.Contains(g.files, places[way.Document]) {
				left.files = namesAt(files, g.files)
			}
		}
	case fault.Is(err, fault.InvalidSignatureParams): // it is about the way in which all are signed
		left.files = namesAt(files, places)
	}
	return left
}

// maxFileName is the longest name of a stored document, in characters.
const maxFileName = 255

// unsigned is a refusal of an upload: nothing is signed, and the same form may be sent again.
type unsigned struct {
	error
	files []string // names of those it is about, for people; nil: all
	pin   string   // attempts that are left, in words; "": it is not about a PIN
	back  string   // address of the form with the same choices, "" for the form as it begins

	stored []string // identifiers of the documents that are left, if they are stored
	kept   bool     // back has these documents
}

func (u unsigned) Unwrap() error { return u.error }

// Again implements Refused. The page leads to the form with the same choices.
func (u unsigned) Again(r view.Refusal) view.View {
	v := view.RefusalPage{Sentence: r.Sentence, Detail: r.Detail, Back: cmp.Or(u.back, r.Back), BackKey: "refused.back", Files: u.files, Again: true, Kept: u.kept}
	if u.kept {
		v.BackKey = "refused.retry"
	}
	if r.Code == fault.InvalidPIN {
		v.Field = "pin"
		v.Sentence += " " + u.pin
	}
	return v.View()
}

// namesOf returns the names of some files, for people.
func namesOf(files []upload, of func(u *upload) bool) (names []string) {
	for i := range files {
		if of(&files[i]) {
			names = append(names, notify.OneLine(files[i].name()))
		}
	}
	return names
}

// namesAt returns the names of the files at these places, for people.
func namesAt(files []upload, places []int) (names []string) {
	for _, i := range places {
		names = append(names, notify.OneLine(files[i].name()))
	}
	return names
}

// choices are what a person chose in the form.
type choices struct {
	forms       []signing.Form
	format      *signing.Form // nil: by the name of each file
	level       signing.Level
	attached    bool
	service     string
	certificate string
	pin         string
	stamp       map[string]string // parameters of the visible stamp of a PDF; nil: none
}

func (a *API) choices(ctx context.Context, fields rest.Form) (c choices, err error) {
	c = choices{forms: a.Forms, attached: fields.Get("attached") == "yes", certificate: fields.Get("certificate"), pin: fields.Get("pin")}
	if c.stamp, err = a.stampOf(fields); err != nil {
		return c, err
	}
	if name := fields.Get("level"); name != "" {
		at := slices.IndexFunc(levels, func(l level) bool { return l.Name == name })
		if at < 0 {
			return c, fault.New(fault.InvalidParameters, "this level of a signature is not known")
		}
		c.level = levels[at].of
	}
	if name := fields.Get("format"); name != "" && name != automatic {
		at := slices.IndexFunc(c.forms, func(f signing.Form) bool { return f.Name == name })
		if at < 0 {
			return c, fault.New(fault.InvalidParameters, "this format of a signature is not known")
		}
		c.format = &c.forms[at]
	}
	if c.level == signing.LevelBasic {
		return c, nil
	}
	if c.service = fields.Get("service"); c.service != "" {
		return c, nil
	}
	services, err := a.TSPServices(ctx)
	if err == nil && len(services) == 0 {
		err = fault.New(fault.InvalidParameters, "no time-stamp service is registered, so only signatures without a time stamp can be made")
	}
	if err == nil {
		c.service = services[0].URL
	}
	return c, err
}

// formatOf returns the way to sign a file, nil if there is none.
func (c *choices) formatOf(name string) *signing.Form {
	if c.format != nil {
		return c.format
	}
	return signing.FormOf(c.forms, name)
}

// groups returns the files by their formats. A document beside its message is not signed itself.
func (c *choices) groups(files []upload, beside map[int]int) (list []*group, err error) {
	document := map[int]bool{}
	for _, i := range beside {
		document[i] = true
	}
	for i := range files {
		if document[i] {
			continue
		}
		f := c.formatOf(files[i].name())
		if f == nil {
			return nil, fault.Newf(fault.InvalidSignatureParams, "%s: files of this kind are not signed here", files[i].name())
		}
		at := slices.IndexFunc(list, func(g *group) bool { return g.format == f })
		if at < 0 {
			at, list = len(list), append(list, &group{format: f})
		}
		list[at].files = append(list[at].files, i)
	}
	for _, g := range list {
		if g.params, err = c.params(g.format); err != nil {
			return nil, unsigned{error: err, files: namesAt(files, g.files)}
		}
	}
	if c.stamp != nil && !slices.ContainsFunc(list, func(g *group) bool { return len(g.format.Marks) > 0 }) {
		return nil, fault.New(fault.InvalidSignatureParams, "only PDF signatures have a visible stamp: choose a PDF, or no stamp")
	}
	return list, nil
}

// params returns the parameters of signatures in a format.
func (c *choices) params(f *signing.Form) (map[string]string, error) {
	level, ok := f.Params[c.level]
	if !ok {
		return nil, fault.Newf(fault.InvalidSignatureParams, "signatures of the type %s have no such level: sign these files without a time stamp, or as CAdES", f.Type)
	}
	params := maps.Clone(level)
	if f.Attachable {
		params["IsDetached"] = "True"
		if c.attached {
			params["IsDetached"] = "False"
		}
	}
	if c.level != signing.LevelBasic {
		params["TSPAddress"] = c.service
	}
	if len(f.Marks) > 0 {
		maps.Copy(params, c.stamp)
	}
	return params, nil
}

func storedQuery(ids []string) string { return "stored=" + strings.Join(ids, ",") }

// formAt returns the address of the form with the parts of a query.
func formAt(query []string) string {
	text := strings.Join(slices.DeleteFunc(query, func(part string) bool { return part == "" }), "&")
	return strings.TrimSuffix("/sign?"+text, "?")
}
