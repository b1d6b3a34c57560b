// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"context"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

func (a *API) documentRoutes() []rest.Route {
	return append(a.retentionRoutes(),
		view.Handle("GET /documents", "DocumentsPage", rest.SignedIn, a.documentsPage),
		view.Handle("GET /documents/{id}", "DocumentPage", rest.SignedIn, a.documentPage),
		rest.Handle("POST /documents/{id}/do/keep", "KeepDocumentByPage", rest.SignedIn, a.keepDocument).Answering(rest.Redirect{}),
		rest.Handle("POST /documents/{id}/do/delete", "DeleteDocumentByPage", rest.SignedIn, a.deleteDocument).Answering(rest.Redirect{}),
	)
}

// documentsOfPage is how many documents a page lists.
const documentsOfPage = 50

type documentsView struct {
	List []document.Info
	Next string // address of the next page; "" for none
}

// documentsPage lists the stored documents, the newest first, paged by the place of the
// last one.
func (a *API) documentsPage(ctx context.Context, r struct {
	Before string `query:"before"`
}) (view.View, error) {
	older, err := positionOf(r.Before)
	if err != nil {
		return view.View{}, err
	}
	list, err := a.Documents.Newest(ctx, rest.Caller(ctx), older, documentsOfPage)
	if err != nil {
		return view.View{}, err
	}
	v := documentsView{List: list}
	if n := len(list); n == documentsOfPage {
		v.Next = "/documents?before=" + strconv.FormatInt(list[n-1].Uploaded.UnixMilli(), 10) + "." + list[n-1].ID
	}
	return view.View{Template: "sign/documents", Title: "documents.title", Content: v}, nil
}

// positionOf reads the position that an address names, "" for the beginning.
func positionOf(text string) (document.Position, error) {
	if text == "" {
		return document.Position{}, nil
	}
	at, id, _ := strings.Cut(text, ".")
	ms, err := strconv.ParseInt(at, 10, 64)
	if err != nil || ms <= 0 || !document.IsIdentifier(id) {
		return document.Position{}, fault.New(fault.InvalidParameters, "before: want the position of a document")
	}
	return document.Position{At: time.UnixMilli(ms), ID: strings.ToLower(id)}, nil
}

type documentView struct {
	document.Info
	Digest string
	Kept   *keptDocument  // nil: it has no retention
	Today  string         // the first day of a retention
	From   *document.Info // what it was made from; nil: nothing, or not stored any more
}

func (a *API) documentPage(ctx context.Context, r struct {
	ID string `path:"id"`
}) (view.View, error) {
	who := rest.Caller(ctx)
	info, err := a.Documents.Info(ctx, who, r.ID)
	if err != nil {
		return view.View{}, err
	}
	rest.Concerning(ctx, "document "+info.ID)
	v := documentView{Info: info, Digest: hex.EncodeToString(info.Hash)}
	if info.Parent != "" {
		from, err := a.Documents.Info(ctx, who, info.Parent)
		if err == nil {
			v.From = &from
		} else if !fault.Is(err, fault.NotFound) {
			return view.View{}, err
		}
	}
	v.Today = a.Now().In(view.VisitorOf(ctx).Words.Location()).Format(time.DateOnly)
	kept, err := a.Retentions.Of(ctx, who, info.ID)
	if err == nil {
		k := a.keptOf(ctx, kept)
		v.Kept = &k
	} else if !fault.Is(err, fault.NotFound) {
		return view.View{}, err
	}
	return view.View{Template: "sign/document", Title: "documents.one", Content: &v}, nil
}

// onDocument is a form about a document.
type onDocument struct {
	ID   string `path:"id"`
	Body rest.Form
}

func (a *API) keepDocument(ctx context.Context, r onDocument) (rest.Redirect, error) {
	who, temporary := rest.Caller(ctx), false
	info, err := a.Documents.Info(ctx, who, r.ID)
	if err != nil {
		return rest.Redirect{}, err
	}
	rest.Concerning(ctx, "document "+info.ID)
	err = a.Documents.Patch(ctx, who, info.ID, document.Change{Temporary: &temporary})
	return rest.Redirect{Location: "/documents/" + info.ID, See: true}, err
}

func (a *API) deleteDocument(ctx context.Context, r onDocument) (rest.Redirect, error) {
	who := rest.Caller(ctx)
	info, err := a.Documents.Info(ctx, who, r.ID)
	if err != nil {
		return rest.Redirect{}, err
	}
	rest.Concerning(ctx, "document "+info.ID)
	return rest.Redirect{Location: "/documents", See: true}, a.Documents.Delete(ctx, who, info.ID)
}
