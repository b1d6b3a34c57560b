// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"cmp"
	"context"
	_ "embed" // for the script
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/document"
	"tamga/internal/domain/encryption"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

//go:embed recipients.js
var recipientsScript string

// maxRecipients are the people and certificates that a form names, without those of groups.
const maxRecipients = 200

// protection is a way to encrypt: the format and the parameters of the order. The form sends its name, and its words
// are named by it.
type protection struct {
	Name   string
	format encryption.Type
	params map[string]string
}

var protections = []protection{
	{"usual", encryption.CMS, nil},
	{"kuznyechik", encryption.CMS, map[string]string{encryption.ParamAlgorithm: "Kuznyechik"}},
	{"aes", encryption.CMS, map[string]string{encryption.ParamAlgorithm: "AES256-GCM"}},
	{"xml", encryption.XML, nil},
}

// Endings of the names of encrypted files. The first one is chosen at first.
var nameEndings = []string{".p7m", ".enc"}

// recipientView is a recipient in the form.
type recipientView struct {
	Field, Value string // of the form
	Name, Login  string
	Of           string // organisation and position of the certificate
	Until        view.Certificate
	Chosen       bool
}

// encryptView is the form.
type encryptView struct {
	Tabs     []view.Tab
	Problems problems
	Stored   []storedFile
	Gone     bool // files of the address are not stored any more
	MaxFiles int
	MaxBytes view.Bytes
	Kept     time.Duration

	Chosen   []recipientView // people and certificates
	Found    []recipientView // by the search
	Searches bool
	Query    string
	Searched bool // there was a search
	More     bool // there may be others
	Groups   []view.Option
	Self     bool // the reader can be a recipient
	ForSelf  bool

	Protections []view.Option
	Endings     []view.Option
	Changed     bool // the folded part has a choice, so it is shown
}

// person returns a user as an entry of the form.
func person(r *encryption.Recipient, chosen bool) recipientView {
	v := certificateEntry(r)
	v.Field, v.Value, v.Chosen = "to", r.UserID, chosen
	v.Name, v.Login = view.Visible(r.Name), view.Visible(r.Login)
	if v.Login == v.Name {
		v.Login = ""
	}
	return v
}

// certificateEntry returns a certificate as an entry of the form.
func certificateEntry(r *encryption.Recipient) recipientView {
	shown := view.DescribeCertificateInfo(signing.DescribeCertificate(r.Certificate))
	return recipientView{
		Field: "der", Value: base64.StdEncoding.EncodeToString(r.Certificate.Raw), Name: shown.Owner, Of: shown.Of, Until: shown, Chosen: true,
	}
}

// encryptForm shows the form.
func (a *API) encryptForm(ctx context.Context, r struct {
	Stored string `query:"stored"`
}) (view.View, error) {
	list, err := a.storedOf(ctx, r.Stored)
	if err != nil {
		return view.View{}, err
	}
	v, err := a.encryptViewOf(ctx, &encryptState{API: a, self: true, upload: upload{stored: list}})
	v.Gone = r.Stored != "" && len(list) < strings.Count(r.Stored, ",")+1
	return formView(v), err
}

func formView(v encryptView) view.View {
	return view.View{Template: "encryption/encrypt", Title: "encrypt.title", Script: view.UploadScript + recipientsScript, Content: v}
}

// encryptState is what the form has sent.
type encryptState struct {
	*API
	upload
	people       []encryption.Recipient // chosen by name
	certificates []encryption.Recipient // from files
	groups       []string
	self         bool
	query        string
	find         bool // the search button
	protection   string
	ending       string
}

// encryptViewOf returns the form with its state.
func (a *API) encryptViewOf(ctx context.Context, s *encryptState) (v encryptView, err error) {
	who, w := rest.Caller(ctx), view.VisitorOf(ctx).Words
	v = encryptView{
		Tabs: tabs("/encrypt"), Problems: s.problemsOf(w, encryptFields), MaxFiles: view.MaxFiles, MaxBytes: view.Bytes(a.Most), Kept: a.Kept, Searches: a.Searches,
		Query: s.query, Searched: s.find, ForSelf: s.self,
	}
	for i := range s.stored {
		v.Stored = append(v.Stored, describeFile(&s.stored[i]))
	}
	chosen := map[string]bool{}
	for i := range s.people {
		if id := s.people[i].UserID; !chosen[id] {
			chosen[id] = true
			v.Chosen = append(v.Chosen, person(&s.people[i], true))
		}
	}
	for i := range s.certificates {
		v.Chosen = append(v.Chosen, certificateEntry(&s.certificates[i]))
	}
	own, err := a.Directory.Own(ctx, who)
	if err != nil {
		return v, err
	}
	v.Self = own != nil
	if a.Searches {
		names, err := a.Directory.Groups(ctx, who)
		if err != nil {
			return v, err
		}
		for _, name := range names {
			v.Groups = append(v.Groups, view.Option{Value: name, Text: name, Chosen: slices.Contains(s.groups, name)})
		}
	}
	if text := v.Problems["group"]; text != "" && len(v.Groups) == 0 { // the form has no such field
		delete(v.Problems, "group")
		v.Problems["to"] = strings.TrimSpace(v.Problems["to"] + " " + text)
	}
	if s.find && a.Searches {
		found, more, err := a.Directory.Find(ctx, who, s.query)
		if f, refused := fault.As(err); refused && f.Code == fault.InvalidFilterValue {
			v.Problems["q"] = w.Text("encrypt.short")
		} else if err != nil {
			return v, err
		}
		v.More = more
		for i := range found {
			if !chosen[found[i].UserID] {
				v.Found = append(v.Found, person(&found[i], false))
			}
		}
	}
	for i, p := range protections {
		v.Protections = append(v.Protections, view.Option{Value: p.Name, Text: w.Text("protection." + p.Name), Chosen: p.Name == s.protection || s.protection == "" && i == 0})
	}
	for i, ending := range nameEndings {
		v.Endings = append(v.Endings, view.Option{Value: ending, Text: ending, Chosen: ending == s.ending || s.ending == "" && i == 0})
	}
	v.Changed = s.protection != "" && s.protection != protections[0].Name || s.ending != "" && s.ending != nameEndings[0] || v.Problems["protection"] != ""
	return v, nil
}

// findRecipients is the search of the form for its script.
func (a *API) findRecipients(ctx context.Context, r struct {
	Query string `query:"q"`
}) (view.View, error) {
	v, err := a.encryptViewOf(ctx, &encryptState{API: a, query: r.Query, find: true, self: true})
	return formView(v), err
}

// encrypt encrypts the files of the form, or searches for people.
func (a *API) encrypt(ctx context.Context, docs *rest.Documents[*document.Intake], r struct {
	Body rest.Parts `many:"file,folder,stored,to,der,group,certificate"`
}) (any, error) {
	return a.submit(ctx, docs, r.Body, "certificate", &encryptState{API: a})
}

// sent implements sentForm.
func (s *encryptState) sent() *upload { return &s.upload }

// looks implements sentForm: a search.
func (s *encryptState) looks() bool { return s.find }

// page implements sentForm.
func (s *encryptState) page(ctx context.Context) (view.View, error) {
	v, err := s.encryptViewOf(ctx, s)
	return formView(v), err
}

// encryptFields are the fields that faults are about, by their codes.
var encryptFields = map[string]string{
	fault.ContentRequired: "file", fault.DocumentInfoInvalid: "file", fault.InvalidContent: "file", fault.InvalidObjectState: "file",
	fault.InvalidRecipients: "to", fault.InvalidParameters: "protection",
}

// read implements sentForm.
func (s *encryptState) read(ctx context.Context) (err error) {
	s.groups, s.self, s.query, s.find = s.fields["group"], s.fields.Get("self") == "yes", s.fields.Get("q"), s.fields.Get("do") == "find"
	s.groups = slices.DeleteFunc(slices.Clone(s.groups), func(g string) bool { return g == "" })
	s.protection, s.ending = s.fields.Get("protection"), s.fields.Get("ending")
	if !slices.Contains(nameEndings, s.ending) {
		s.ending = ""
	}
	for _, text := range s.fields["der"] {
		der, _ := base64.StdEncoding.DecodeString(text) // of a damaged form nothing or a part, which is no certificate
		list, err := encryption.ReadRecipients(der)
		if err := s.refuse(of("certificate", "", err)); err != nil {
			return err
		}
		s.certificates = append(s.certificates, list...)
	}
	for _, f := range s.small {
		list, err := encryption.ReadRecipients(f.content)
		if err := s.refuse(of("certificate", view.Visible(f.name)+": ", err)); err != nil {
			return err
		}
		for _, r := range list {
			if !slices.ContainsFunc(s.certificates, func(have encryption.Recipient) bool { return slices.Equal(have.Certificate.Raw, r.Certificate.Raw) }) {
				s.certificates = append(s.certificates, r)
			}
		}
	}
	ids := s.fields["to"]
	if len(ids)+len(s.certificates) > maxRecipients {
		ids, s.certificates = ids[:min(len(ids), maxRecipients)], s.certificates[:min(len(s.certificates), maxRecipients)]
		s.refuse(fault.Newf(fault.InvalidRecipients, "at most %d people and certificates are chosen one by one: choose their group", maxRecipients))
	}
	s.people, err = s.Directory.Chosen(ctx, rest.Caller(ctx), ids)
	return s.refuse(err)
}

// of says which field a refusal is about; see ofField.
func of(field, before string, err error) error {
	if err == nil {
		return nil
	}
	return ofField{err, field, before}
}

// order implements sentForm: the files are encrypted for all recipients.
func (s *encryptState) order(ctx context.Context) (*operation.Operation, string, error) {
	o, err := s.encryptFiles(ctx)
	if err != nil {
		return nil, "", err
	}
	return o, "/encrypted?operation=" + o.ID, nil
}

func (s *encryptState) encryptFiles(ctx context.Context) (*operation.Operation, error) {
	who := rest.Caller(ctx)
	if err := s.check(); err != nil {
		return nil, err
	}
	at := slices.IndexFunc(protections, func(p protection) bool { return p.Name == cmp.Or(s.protection, protections[0].Name) })
	if at < 0 {
		return nil, fault.New(fault.InvalidParameters, "this way to encrypt is not known")
	}
	var to []encryption.Recipient
	if s.self {
		own, err := s.Directory.Own(ctx, who)
		if err != nil {
			return nil, err
		}
		if own != nil {
			to = append(to, *own)
		}
	}
	self := len(to) // the reader
	to = append(append(to, s.people...), s.certificates...)
	for _, group := range s.groups {
		list, err := s.Directory.InGroup(ctx, who, group)
		if err != nil {
			return nil, of("group", "", err)
		}
		to = append(to, list...)
	}
	switch {
	case len(to) > self:
	case self > 0:
		return nil, fault.New(fault.InvalidRecipients, "besides yourself, choose at least one person, group or certificate to encrypt for")
	default:
		return nil, fault.New(fault.InvalidRecipients, "choose at least one person, group or certificate to encrypt for")
	}
	p := protections[at]
	o := &encryption.EncryptOrder{
		Type: p.format, Params: p.params, Documents: s.inputs(), Ending: s.ending, Form: operation.FormPage, Recorded: true,
		Noted: func(text string) { rest.Concerning(ctx, text) },
	}
	var names []string
	for i := range to {
		o.Recipients = append(o.Recipients, to[i].Certificate.Raw)
		names = append(names, cmp.Or(view.Visible(to[i].Name), certificateEntry(&to[i]).Name))
	}
	rest.Concerning(ctx, fmt.Sprintf("%d recipients, %d documents", len(to), len(s.stored)))
	op, err := s.Messages.Encrypt(ctx, who, o)
	return op, ofRecipient(err, names)
}

// numbered is the begin of a fault about a recipient.
var numbered = regexp.MustCompile(`(?s)^Encryption\.Certificates\[(\d+)\]: (.*)$`)

// ofRecipient says a fault about a recipient by their name, because a form has no numbers of recipients.
func ofRecipient(err error, names []string) error {
	f, refused := fault.As(err)
	if !refused {
		return err
	}
	m := numbered.FindStringSubmatch(f.Message)
	if m == nil {
		return err
	}
	if i, wrong := strconv.Atoi(m[1]); wrong == nil && i < len(names) {
		said := *f
		said.Message = m[2]
		return ofField{&said, "to", names[i] + ": "}
	}
	return err
}
