// SPDX-License-Identifier: Apache-2.0

// Package docapi serves the document store: it reads uploads and descriptions of documents,
// and writes what the store returns. Begin with [New] and [API.Routes]. It is a package
// separate from signapi because clients know the store by an address of its own. A document
// uploaded here goes into the store, not into the spool of a request. The package keeps
// nothing itself.
package docapi

import (
	"context"
	_ "embed" // for Docs
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/web/rest"
)

// Docs describes the operations of this surface for people; see
// [tamga/internal/web/rest/openapi].
//
//go:embed operations.txt
var Docs string

// Store keeps documents; see [document.Service].
type Store interface {
	NewIntake(ctx context.Context, who audit.Principal) (*document.Intake, error)
	Keep(ctx context.Context, who audit.Principal, documents []document.New) ([]document.Info, error)
	Info(ctx context.Context, who audit.Principal, id string) (document.Info, error)
	Infos(ctx context.Context, who audit.Principal, ids []string) ([]document.Found, error)
	ByHash(ctx context.Context, who audit.Principal, hash []byte) (document.Info, error)
	List(ctx context.Context, who audit.Principal, each func(document.Info) error) error
	Open(ctx context.Context, who audit.Principal, id string) (*document.Stored, error)
	Find(ctx context.Context, who audit.Principal, ids []string) (*document.Selection, error)
	Patch(ctx context.Context, who audit.Principal, id string, c document.Change) error
	Link(ctx context.Context, who audit.Principal, id, to string) error
	Delete(ctx context.Context, who audit.Principal, id string) error
}

// API serves a store.
type API struct {
	store  Store
	keeps  Retentions
	upload int64
	now    func() time.Time
}

// New returns the API. upload bounds the body of an upload, in bytes.
func New(s Store, keeps Retentions, upload int64, now func() time.Time) *API {
	return &API{s, keeps, upload, now}
}

// Routes returns the operations of this surface, below {docstore}/api.
func (a *API) Routes() []rest.Route {
	return append([]rest.Route{
		rest.HandleDocuments("POST /documents", "UploadDocument", rest.SignedIn, a.store.NewIntake, a.put).AtMost(a.upload),
		rest.HandleDocuments("POST /documents/pack", "UploadDocuments", rest.SignedIn, a.store.NewIntake, a.pack).AtMost(a.upload),
		rest.HandleDocuments("POST /documents/multipartpack", "UploadDocumentParts", rest.SignedIn, a.store.NewIntake, a.parts).AtMost(a.upload),
		rest.Handle("GET /documents/{id}/info", "GetDocumentInfo", rest.SignedIn, a.info),
		rest.Handle("POST /documents/info", "GetDocumentInfos", rest.SignedIn, a.infos),
		rest.Handle("GET /documents/hash/{hash}/info", "GetDocumentInfoByHash", rest.SignedIn, a.byHash),
		rest.Handle("GET /documents/user/docinfo/all", "GetOwnDocuments", rest.SignedIn, a.all),
		rest.Handle("GET /documents/{id}/content", "GetDocumentContent", rest.SignedIn, a.content),
		rest.Handle("POST /documents/content/download", "DownloadDocuments", rest.SignedIn, a.download),
		rest.HandleDocuments("PATCH /documents/{id}", "ChangeDocument", rest.SignedIn, a.store.NewIntake, a.change),
		rest.Handle("POST /documents/{id}/link", "LinkDocument", rest.SignedIn, a.link),
		rest.Handle("DELETE /documents/{id}", "DeleteDocument", rest.SignedIn, a.remove),
	}, a.retentionRoutes()...)
}

// uploadInfo is the description of a document from a client. It has two spellings for the
// name of the file.
type uploadInfo struct {
	FileName         rest.Text // also "Filename", since letter case is ignored
	Name             rest.Text
	FileType         rest.Text
	ParentDocumentID rest.Text `json:"ParentDocumentId"`
	IsTemporary      rest.Text `api:"boolean"`
	AdditionalInfo   rest.Blob `api:"object"`
}

func (u *uploadInfo) description() (d document.Description, err error) {
	d.Name, d.Type, d.Parent = u.name(), string(u.FileType), strings.TrimSpace(string(u.ParentDocumentID))
	if d.Extra, err = extra(u.AdditionalInfo); err != nil {
		return d, err
	}
	d.Temporary, err = boolean("IsTemporary", string(u.IsTemporary))
	return d, err
}

func (u *uploadInfo) name() string {
	if u.FileName != "" {
		return string(u.FileName)
	}
	return string(u.Name)
}

// extra returns the text of AdditionalInfo, which must be an object.
func extra(b rest.Blob) (string, error) {
	if b.Empty() {
		return "", nil
	}
	text, ok := b.Object()
	if !ok {
		return "", fault.New(fault.DocumentInfoInvalid, "AdditionalInfo must be an object of at most 4096 bytes")
	}
	return text, nil
}

// boolean reads a boolean as [rest.Truth] does; an empty text is false.
func boolean(key, text string) (bool, error) {
	value, ok := rest.Truth(text)
	if ok || strings.TrimSpace(text) == "" {
		return value, nil
	}
	return false, fault.Newf(fault.DocumentInfoInvalid, "%s must be true or false", key)
}

// item is a document inside JSON: the fields of uploadInfo and the content.
type item struct {
	FileName         rest.Text
	Name             rest.Text
	FileType         rest.Text
	ParentDocumentID rest.Text `json:"ParentDocumentId"`
	IsTemporary      rest.Text `api:"boolean"`
	AdditionalInfo   rest.Blob `api:"object"`
	Content          rest.Document
}

func (it *item) description() (document.Description, error) {
	info := uploadInfo{it.FileName, it.Name, it.FileType, it.ParentDocumentID, it.IsTemporary, it.AdditionalInfo}
	return info.description()
}

// uploads are the documents of one request.
type uploads = rest.Documents[*document.Intake]

type oneID struct {
	DocumentID string `json:"DocumentId"`
}

type manyIDs struct {
	DocumentIDs []string `json:"DocumentIds"`
}

// put keeps one document. The document is the body and the header describes it, or both are
// in the JSON body.
func (a *API) put(ctx context.Context, docs *uploads, r struct {
	Raw  rest.Raw `header:"CPDSS-POSTDOC"`
	Body item
}) (oneID, error) {
	var content rest.Source = r.Raw
	if !r.Raw.Present() {
		if r.Body.Content.Empty() {
			return oneID{}, fault.New(fault.ContentRequired, "the document is missing: send it as the body, with the header CPDSS-POSTDOC, or as Content")
		}
		content = r.Body.Content
	} else if !r.Body.Content.Empty() {
		return oneID{}, fault.New(fault.InvalidParameters, "with the header CPDSS-POSTDOC the body is the document: leave Content out of the header")
	}
	in, err := docs.Open(content)
	if err != nil {
		return oneID{}, err
	}
	d, err := r.Body.description()
	if err != nil {
		return oneID{}, err
	}
	ids, err := a.keep(ctx, []document.New{{Content: in, Description: d}})
	if err != nil {
		return oneID{}, err
	}
	return oneID{ids.DocumentIDs[0]}, nil
}

func (a *API) keep(ctx context.Context, documents []document.New) (manyIDs, error) {
	kept, err := a.store.Keep(ctx, rest.Caller(ctx), documents)
	if err != nil {
		return manyIDs{}, err
	}
	ids := manyIDs{make([]string, len(kept))}
	for i, k := range kept {
		ids.DocumentIDs[i] = k.ID
	}
	concerning(ctx, ids.DocumentIDs)
	return ids, nil
}

// concerning names documents in the audit entry.
func concerning(ctx context.Context, ids []string) {
	if len(ids) == 1 {
		if document.IsIdentifier(ids[0]) {
			rest.Concerning(ctx, "document "+strings.ToLower(ids[0]))
		}
		return
	}
	rest.Concerning(ctx, fmt.Sprintf("%d documents", len(ids)))
}

// pack keeps documents inside JSON.
func (a *API) pack(ctx context.Context, docs *uploads, r struct{ Body struct{ Documents []item } }) (manyIDs, error) {
	documents := make([]document.New, len(r.Body.Documents))
	for i := range r.Body.Documents {
		it := &r.Body.Documents[i]
		if it.Content.Empty() {
			return manyIDs{}, fault.Newf(fault.ContentRequired, "Documents[%d].Content is missing or empty", i)
		}
		in, err := docs.Open(it.Content)
		if err != nil {
			return manyIDs{}, err
		}
		documents[i].Content = in
		if documents[i].Description, err = it.description(); err != nil {
			return manyIDs{}, err
		}
	}
	return a.keep(ctx, documents)
}

// Suffixes of the names of parts.
const (
	infoPart    = "_info"
	contentPart = "_content"
)

// parts keeps documents that come as pairs of parts, <file>_info and <file>_content, in any
// order.
func (a *API) parts(ctx context.Context, docs *uploads, r struct{ Body rest.Parts }) (manyIDs, error) {
	var documents []document.New
	var files []string
	var told []bool
	places := map[string]int{}
	for {
		part, err := r.Body.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return manyIDs{}, err
		}
		file, isInfo := strings.CutSuffix(part.Name, infoPart)
		if !isInfo {
			var ok bool
			if file, ok = strings.CutSuffix(part.Name, contentPart); !ok {
				return manyIDs{}, fault.Newf(fault.InvalidParameters, "the part %.64q is neither <file>_info nor <file>_content", part.Name)
			}
		}
		i, known := places[file]
		if !known {
			i = len(documents)
			places[file] = i
			documents, files, told = append(documents, document.New{}), append(files, file), append(told, false)
			if len(documents) > document.Many {
				return manyIDs{}, fault.Newf(fault.InvalidParameters, "more than %d documents at a time", document.Many)
			}
		}
		if !isInfo {
			if documents[i].Content, err = docs.Open(part); err != nil {
				return manyIDs{}, err
			}
			continue
		}
		var info uploadInfo
		if _, err := part.JSON(&info); err != nil {
			return manyIDs{}, err
		}
		if documents[i].Description, err = info.description(); err != nil {
			return manyIDs{}, err
		}
		told[i] = true
	}
	for i, file := range files {
		switch {
		case documents[i].Content == nil:
			return manyIDs{}, fault.Newf(fault.ContentRequired, "the part %.64q is missing", file+contentPart)
		case !told[i]:
			return manyIDs{}, fault.Newf(fault.DocumentInfoInvalid, "the part %.64q is missing", file+infoPart)
		}
		if documents[i].Description.Name == "" {
			documents[i].Description.Name = file
		}
	}
	return a.keep(ctx, documents)
}

type byID struct {
	ID string `path:"id"`
}

func (a *API) info(ctx context.Context, r byID) (documentInfo, error) {
	concerning(ctx, []string{r.ID})
	i, err := a.store.Info(ctx, rest.Caller(ctx), r.ID)
	if err != nil {
		return documentInfo{}, err
	}
	return infoOf(&i)
}

// found is the answer for one of several documents.
type found struct {
	Found        bool
	DocumentInfo *documentInfo
}

type idsRequest struct {
	Body struct {
		DocumentIDs []string `json:"DocumentIds"`
	}
}

func (a *API) infos(ctx context.Context, r idsRequest) (map[string]found, error) {
	concerning(ctx, r.Body.DocumentIDs)
	list, err := a.store.Infos(ctx, rest.Caller(ctx), r.Body.DocumentIDs)
	if err != nil {
		return nil, err
	}
	answer := make(map[string]found, len(list))
	for _, f := range list {
		if f.Record == nil {
			answer[f.ID] = found{}
			continue
		}
		i, err := infoOf(&f.Record.Info)
		if err != nil {
			return nil, err
		}
		answer[f.ID] = found{true, &i}
	}
	return answer, nil
}

func (a *API) byHash(ctx context.Context, r struct {
	Hash string `path:"hash"`
}) (documentInfo, error) {
	i, err := a.store.ByHash(ctx, rest.Caller(ctx), hashOf(r.Hash))
	if err != nil {
		return documentInfo{}, err
	}
	concerning(ctx, []string{i.ID})
	return infoOf(&i)
}

// hashOf reads a hash value in hexadecimal digits or in Base64 of either alphabet, with
// padding or without. It returns nil for an invalid value.
func hashOf(text string) []byte {
	if value, err := hex.DecodeString(text); err == nil {
		return value
	}
	value, err := rest.DecodeBase64URL(text)
	if err != nil {
		return nil
	}
	return value
}

func (a *API) all(ctx context.Context, _ struct{}) ([]documentInfo, error) {
	list := []documentInfo{}
	err := a.store.List(ctx, rest.Caller(ctx), func(i document.Info) error {
		info, err := infoOf(&i)
		list = append(list, info)
		return err
	})
	return list, err
}

func (a *API) content(ctx context.Context, r byID) (rest.File, error) {
	concerning(ctx, []string{r.ID})
	d, err := a.store.Open(ctx, rest.Caller(ctx), r.ID)
	if err != nil {
		return rest.File{}, err
	}
	rest.Afterwards(ctx, d)
	return rest.File{Content: d}, nil
}

// change changes the keys of the description that the request holds.
func (a *API) change(ctx context.Context, _ *uploads, r struct {
	ID   string `path:"id"`
	Body struct {
		FileName         *string
		Name             *string
		FileType         *string
		ParentDocumentID *string   `json:"ParentDocumentId"`
		IsTemporary      rest.Text `api:"boolean"`
		AdditionalInfo   rest.Blob `api:"object"`
	}
}) (rest.None, error) {
	concerning(ctx, []string{r.ID})
	b := &r.Body
	c := document.Change{Name: b.FileName, Type: b.FileType, Parent: b.ParentDocumentID}
	if c.Name == nil {
		c.Name = b.Name
	}
	if b.IsTemporary != "" {
		temporary, err := boolean("IsTemporary", string(b.IsTemporary))
		if err != nil {
			return rest.None{}, err
		}
		c.Temporary = &temporary
	}
	if !b.AdditionalInfo.Absent() {
		text, err := extra(b.AdditionalInfo)
		if err != nil {
			return rest.None{}, err
		}
		c.Extra = &text
	}
	return rest.None{}, a.store.Patch(ctx, rest.Caller(ctx), r.ID, c)
}

func (a *API) link(ctx context.Context, r struct {
	ID   string `path:"id"`
	Body struct {
		DocumentID rest.Text `json:"DocumentId"`
	}
}) (rest.None, error) {
	concerning(ctx, []string{r.ID})
	return rest.None{}, a.store.Link(ctx, rest.Caller(ctx), r.ID, string(r.Body.DocumentID))
}

func (a *API) remove(ctx context.Context, r byID) (rest.None, error) {
	concerning(ctx, []string{r.ID})
	return rest.None{}, a.store.Delete(ctx, rest.Caller(ctx), r.ID)
}

// documentInfo is DocumentInfo of the interface. Times are seconds since 1970.
type documentInfo struct {
	ID               string `json:"Id"`
	UserID           string `json:"UserId"`
	Name             string
	UploadTime       int64
	LastAccessTime   int64
	Filename         string
	IsTemporary      bool
	Hash             []byte
	HashAlgorithm    string
	AdditionalInfo   json.RawMessage
	ParentDocumentID *string `json:"ParentDocumentId"`
	FileType         string
	FileSize         int64
	Content          *string // always null here
}

func infoOf(i *document.Info) (documentInfo, error) {
	extra, err := additional(i)
	if err != nil {
		return documentInfo{}, err
	}
	info := documentInfo{
		ID: i.ID, UserID: i.UserID, Name: i.Name, Filename: i.Name, UploadTime: i.Uploaded.Unix(), LastAccessTime: i.Accessed.Unix(),
		IsTemporary: i.Temporary(), Hash: i.Hash, HashAlgorithm: i.HashName, AdditionalInfo: extra, FileType: i.Type, FileSize: i.Size,
	}
	if i.Parent != "" {
		info.ParentDocumentID = &i.Parent
	}
	return info, nil
}

// linkedDocument is the key of AdditionalInfo that a link sets.
const linkedDocument = "LinkedDocument"

// additional returns AdditionalInfo as the client sent it, with the identifier of the
// linked document.
func additional(i *document.Info) (json.RawMessage, error) {
	if i.Linked == "" {
		if i.Extra == "" {
			return json.RawMessage("null"), nil
		}
		return json.RawMessage(i.Extra), nil
	}
	object := map[string]json.RawMessage{}
	if i.Extra != "" {
		if err := json.Unmarshal([]byte(i.Extra), &object); err != nil {
			return nil, errors.New("docapi: AdditionalInfo of a stored document is not an object")
		}
	}
	for key := range object {
		if strings.EqualFold(key, linkedDocument) {
			delete(object, key)
		}
	}
	object[linkedDocument] = json.RawMessage(`"` + i.Linked + `"`)
	return json.Marshal(object)
}
