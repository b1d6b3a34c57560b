// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/document"
	"tamga/internal/domain/encryption"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// decryptView is the form.
type decryptView struct {
	Tabs     []view.Tab
	Problems problems
	Stored   []storedFile
	Gone     bool // files of the address are not stored any more
	MaxFiles int
	MaxBytes view.Bytes
	Kept     time.Duration

	Certificates []view.Option      // besides the choice by the message; nil: the reader has one at most
	None         bool               // the reader has no certificate
	Own          []view.Certificate // that decrypt
	PIN          bool               // one of the keys that may be used has one
	Sender       string             // name of the certificate of the sender, "" for none
	SenderDER    string
	Changed      bool // the folded part has a choice, so it is shown
}

// decryptState is what the form has sent.
type decryptState struct {
	*API
	upload
	certificate string // number; "": the message decides
	sender      *encryption.Recipient
}

func (a *API) decryptForm(ctx context.Context, r struct {
	Stored string `query:"stored"`
}) (view.View, error) {
	list, err := a.storedOf(ctx, r.Stored)
	if err != nil {
		return view.View{}, err
	}
	v, err := a.decryptViewOf(ctx, &decryptState{API: a, upload: upload{stored: list}})
	v.Gone = r.Stored != "" && len(list) < strings.Count(r.Stored, ",")+1
	return decryptFormView(v), err
}

func decryptFormView(v decryptView) view.View {
	return view.View{Template: "encryption/decrypt", Title: "decrypt.title", Script: view.UploadScript, Content: v}
}

// decryptViewOf returns the form with its state. It says which certificates open the files that are here.
func (a *API) decryptViewOf(ctx context.Context, s *decryptState) (v decryptView, err error) {
	w := view.VisitorOf(ctx).Words
	v = decryptView{Tabs: tabs("/decrypt"), Problems: s.problemsOf(w, decryptFields), MaxFiles: view.MaxFiles, MaxBytes: view.Bytes(a.Most), Kept: a.Kept}
	list, err := view.CertificatesOf(ctx, a.Certificates, a.Now())
	if err != nil {
		return v, err
	}
	v.None = len(list) == 0
	byID := map[int64]view.Certificate{}
	for _, c := range list {
		byID[c.ID] = c
		if c.Usable || a.Ended {
			v.Own = append(v.Own, c)
		}
		id := strconv.FormatInt(c.ID, 10)
		if len(list) > 1 {
			v.Certificates = append(v.Certificates, view.Option{Value: id, Text: c.Name + " · " + w.Text("certificate.to", w.Day(c.NotAfter)) + " · " + c.Serial, Chosen: id == s.certificate})
		}
		v.PIN = v.PIN || c.PIN && (s.certificate == "" || s.certificate == id)
	}
	if s.sender != nil {
		v.Sender, v.SenderDER = certificateEntry(s.sender).Name, base64.StdEncoding.EncodeToString(s.sender.Certificate.Raw)
	}
	v.Changed = s.certificate != "" || s.sender != nil || v.Problems["sender"] != "" || v.Problems["certificate"] != ""
	if len(s.stored) == 0 {
		v.PIN = v.PIN || v.Problems["pin"] != ""
		return v, nil
	}
	parsed, err := a.Messages.Parse(ctx, rest.Caller(ctx), nil, encryption.Any, s.inputs())
	if err != nil {
		return v, err
	}
	pin := false
	for i := range s.stored {
		f := describeFile(&s.stored[i])
		for _, id := range parsed[i].Certificates {
			if c, ok := byID[id]; ok {
				f.Opens = append(f.Opens, c)
			}
		}
		switch {
		case parsed[i].Fault != nil:
			f.Problem = w.Say(parsed[i].Fault)
		case len(f.Opens) == 0:
			f.Problem = w.Text("decrypt.not_yours")
		default:
			pin = pin || s.certificate == "" && f.Opens[0].PIN
		}
		v.Stored = append(v.Stored, f)
	}
	if s.certificate == "" {
		v.PIN = pin
	}
	v.PIN = v.PIN || v.Problems["pin"] != ""
	return v, nil
}

// decrypt decrypts the files of the form, or only says which certificates open them.
func (a *API) decrypt(ctx context.Context, docs *rest.Documents[*document.Intake], r struct {
	Body rest.Parts `many:"file,folder,stored,sender"`
}) (any, error) {
	return a.submit(ctx, docs, r.Body, "sender", &decryptState{API: a})
}

// sent implements sentForm.
func (s *decryptState) sent() *upload { return &s.upload }

// looks implements sentForm: the page says which certificates open the files.
func (s *decryptState) looks() bool { return s.fields.Get("do") == "look" }

// page implements sentForm.
func (s *decryptState) page(ctx context.Context) (view.View, error) {
	v, err := s.decryptViewOf(ctx, s)
	return decryptFormView(v), err
}

// decryptFields are the fields that faults are about, by their codes.
var decryptFields = map[string]string{
	fault.ContentRequired: "file", fault.DocumentInfoInvalid: "file", fault.InvalidContent: "file", fault.InvalidObjectState: "file",
	fault.InvalidCertificate: "certificate", fault.InvalidPIN: "pin", fault.ParametersRequired: "sender",
}

// read implements sentForm.
func (s *decryptState) read(context.Context) error {
	if s.certificate = s.fields.Get("certificate"); s.certificate == "0" {
		s.certificate = ""
	}
	der, err := base64.StdEncoding.DecodeString(s.fields.Get("sender_der"))
	if err == nil && len(der) > 0 {
		s.small = append([]smallFile{{"", der}}, s.small...)
	}
	for _, f := range s.small { // the last one is the newest
		list, err := encryption.ReadRecipients(f.content)
		if err == nil && len(list) > 1 {
			err = fault.New(fault.InvalidRecipients, "the sender has one certificate: choose a file with one")
		}
		if err == nil {
			s.sender = &list[0]
		} else if err := s.refuse(ofField{err, "sender", view.Visible(f.name) + ": "}); err != nil {
			return err
		}
	}
	return s.refuse(s.check())
}

// order implements sentForm: the files are decrypted, or their decryption waits to be confirmed.
func (s *decryptState) order(ctx context.Context) (*operation.Operation, string, error) {
	o := &encryption.DecryptOrder{
		Type: encryption.Any, Certificate: s.certificate, PIN: s.fields.Get("pin"), Messages: s.inputs(), Form: operation.FormPage,
		Noted: func(text string) { rest.Concerning(ctx, text) },
	}
	if s.sender != nil {
		o.Params = map[string]string{encryption.ParamOriginator: base64.StdEncoding.EncodeToString(s.sender.Certificate.Raw)}
	}
	rest.Concerning(ctx, fmt.Sprintf("%d documents", len(s.stored)))
	op, err := s.Messages.Decrypt(ctx, rest.Caller(ctx), o)
	if f, refused := fault.As(err); refused && s.certificate == "" && f.Code == fault.InvalidCertificate { // it is about a file
		return nil, "", ofField{fault.New(fault.InvalidContent, f.Message).With(err), "file", ""}
	}
	switch {
	case err != nil:
		return nil, "", err
	case op.State == operation.Created || op.State == operation.Challenged:
		return op, "/confirm/" + op.ID, nil
	}
	return op, view.DecryptedAt(op.ID), nil
}

// resultView is the page of what was encrypted or decrypted.
type resultView struct {
	ID            string
	Documents     []resultDocument
	Done, Failed  int
	All           string // address of the archive, "" for fewer than two
	Retry         string // address of the form with the files that have no result
	Problem       string // of the whole operation
	Waits         bool   // for the confirmation
	AwaitsPIN     bool
	Running       bool
	Unchecked     int // files whose content may have been changed, as nothing protects it
	Checked       int
	Decrypts      bool
	Kept          time.Duration
	Address, Form string // of downloads and of the form
}

// resultDocument is a file with its result.
type resultDocument struct {
	Name, Result, Ref string
	Kind              string
	Integrity         string // key of the word, "" for none
	Checked           bool
	Problem           string
	Declined          bool
}

// result returns the page of an operation of a kind.
func (a *API) result(ctx context.Context, id, kind string) (view.View, *operation.Operation, error) {
	o, err := a.Messages.Find(ctx, rest.Caller(ctx), id)
	if err != nil {
		return view.View{}, nil, err
	}
	rest.Afterwards(ctx, o)
	if o.Kind != kind && !(o.Kind == "" && kind == encryption.KindDecrypt && o.Action == decryptAction) {
		return view.View{}, nil, fault.New(fault.NotFound, "you have no operation with this identifier")
	}
	w := view.VisitorOf(ctx).Words
	v := resultView{ID: o.ID, Decrypts: kind == encryption.KindDecrypt, Address: "/encrypted", Form: "/encrypt", Kept: a.Kept}
	shown := view.View{Template: "encryption/result", Title: "encrypted.title"}
	if v.Decrypts {
		v.Address, v.Form, shown.Title = "/decrypted", "/decrypt", "decrypted.title"
	}
	if o.Fault != nil {
		v.Problem = w.Say(o.Fault)
	}
	own := o.Owner.ClientID == a.ClientID
	v.Waits = o.State == operation.Created || o.State == operation.Challenged
	v.AwaitsPIN = own && o.AwaitsPIN != nil
	v.Running = o.State == operation.Confirmed && o.StartsAlone() && o.AwaitsPIN == nil
	for i := range o.Documents {
		d := &o.Documents[i]
		file := describeFile(&document.Info{Name: d.Name})
		one := resultDocument{Name: view.Visible(d.OriginalName), Result: file.Name, Kind: file.Kind, Ref: d.RefID}
		switch {
		case d.Declined:
			one.Declined = true
		case d.Fault != nil:
			one.Problem = w.Say(d.Fault)
			v.Failed++
		case d.RefID != "":
			v.Done++
			if v.Decrypts {
				one.Checked = d.Integrity == "Verified"
				one.Integrity = "integrity." + d.Integrity
				if one.Checked {
					v.Checked++
				} else {
					v.Unchecked++
				}
			}
		}
		v.Documents = append(v.Documents, one)
	}
	if v.Done > 1 {
		v.All = v.Address + "/all.zip?operation=" + o.ID
	}
	v.Retry = leftOf(v.Form, o)
	if v.Running {
		shown.Script = view.WaitScript
	}
	shown.Content = v
	return shown, o, nil
}

// decryptAction is the action of operations that are known by the record of their confirmation alone.
const decryptAction = "DecryptDocument"

// ofOperation names an operation.
type ofOperation struct {
	Operation string `query:"operation"`
}

func (a *API) encrypted(ctx context.Context, r ofOperation) (view.View, error) {
	return a.resultPage(ctx, r.Operation, encryption.KindEncrypt)
}

func (a *API) decrypted(ctx context.Context, r ofOperation) (view.View, error) {
	return a.resultPage(ctx, r.Operation, encryption.KindDecrypt)
}

func (a *API) resultPage(ctx context.Context, id, kind string) (view.View, error) {
	shown, _, err := a.result(ctx, id, kind)
	return shown, err
}

// download answers one result.
func (a *API) download(ctx context.Context, r struct {
	Ref string `path:"ref"`
}) (rest.File, error) {
	return view.Download(ctx, a.Documents, r.Ref, nil)
}

// downloadAll makes the function that answers every result of an operation of a kind as one archive.
func (a *API) downloadAll(kind, name string) func(context.Context, ofOperation) (rest.File, error) {
	return func(ctx context.Context, r ofOperation) (rest.File, error) {
		_, o, err := a.result(ctx, r.Operation, kind)
		if err != nil {
			return rest.File{}, err
		}
		return view.DownloadAll(ctx, a.Documents, o, name)
	}
}
