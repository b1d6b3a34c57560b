// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"cmp"
	"context"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/retention"
	"tamga/internal/web/pages/view"
	"tamga/internal/web/rest"
)

// Retentions keep documents for a time, with valid signatures; see [retention.Service].
type Retentions interface {
	Set(ctx context.Context, who audit.Principal, id string, until time.Time) (retention.Retained, error)
	End(ctx context.Context, who audit.Principal, id string) error
	Of(ctx context.Context, who audit.Principal, id string) (retention.Retained, error)
	List(ctx context.Context, f retention.Filter) ([]retention.Retained, error)
}

func (a *API) retentionRoutes() []rest.Route {
	return []rest.Route{
		view.Handle("GET /documents/kept", "KeptDocumentsPage", rest.SignedIn, a.keptPage),
		rest.Handle("POST /documents/{id}/do/retain", "SetRetentionByPage", rest.SignedIn, a.retain).Answering(rest.Redirect{}),
		rest.Handle("POST /documents/{id}/do/release", "EndRetentionByPage", rest.SignedIn, a.release).Answering(rest.Redirect{}),
	}
}

// keptDocument is a retention as pages show it.
type keptDocument struct {
	retention.Retained
	State  string    // key of a text
	Reason string    // of the last failure, in the language of the visitor
	Mine   bool      // the owner may end it
	Last   time.Time // the last moment
	Day    string    // its day, as a form has it
}

func (a *API) keptOf(ctx context.Context, r retention.Retained) keptDocument {
	k := keptDocument{Retained: r, State: "documents.renewed", Mine: r.Origin == retention.ByOwner, Last: r.KeepUntil.Add(-time.Millisecond)}
	k.Day = k.Last.In(view.VisitorOf(ctx).Words.Location()).Format(time.DateOnly)
	switch {
	case r.Refused:
		k.State = "documents.refused"
	case r.Failure != "":
		k.State = "documents.delayed"
	case r.Due(a.Now()):
		k.State = "documents.due"
	}
	if r.Failure != "" {
		k.Reason = cmp.Or(view.VisitorOf(ctx).Words.Own(r.Failure), r.Failure)
	}
	return k
}

// keptPage lists the documents that are kept, the next renewal first.
func (a *API) keptPage(ctx context.Context, r struct {
	After string `query:"after"`
}) (v view.View, err error) {
	who := rest.Caller(ctx)
	f := retention.Filter{UserID: who.UserID, Limit: documentsOfPage}
	if r.After != "" {
		if f.After, err = a.Retentions.Of(ctx, who, r.After); err != nil {
			return v, err
		}
	}
	list, err := a.Retentions.List(ctx, f)
	if err != nil {
		return v, err
	}
	var content struct {
		List []keptDocument
		Next string
	}
	for _, one := range list {
		content.List = append(content.List, a.keptOf(ctx, one))
	}
	if n := len(list); n == documentsOfPage {
		content.Next = "/documents/kept?after=" + list[n-1].Document
	}
	return view.View{Template: "sign/kept", Title: "documents.kept_title", Content: content}, nil
}

// retain keeps a document until the end of a day, which is that of the visitor.
func (a *API) retain(ctx context.Context, r onDocument) (rest.Redirect, error) {
	who := rest.Caller(ctx)
	info, err := a.Documents.Info(ctx, who, r.ID)
	if err != nil {
		return rest.Redirect{}, err
	}
	rest.Concerning(ctx, "document "+info.ID)
	until, err := time.ParseInLocation(time.DateOnly, r.Body.Get("until"), view.VisitorOf(ctx).Words.Location())
	if err != nil {
		return rest.Redirect{}, fault.New(fault.InvalidParameters, "choose the day until which the document is kept")
	}
	_, err = a.Retentions.Set(ctx, who, info.ID, until.AddDate(0, 0, 1))
	return rest.Redirect{Location: "/documents/" + info.ID, See: true}, err
}

// release ends the retention of a document.
func (a *API) release(ctx context.Context, r onDocument) (rest.Redirect, error) {
	who := rest.Caller(ctx)
	info, err := a.Documents.Info(ctx, who, r.ID)
	if err != nil {
		return rest.Redirect{}, err
	}
	rest.Concerning(ctx, "document "+info.ID)
	return rest.Redirect{Location: "/documents/" + info.ID, See: true}, a.Retentions.End(ctx, who, info.ID)
}
