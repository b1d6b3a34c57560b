// SPDX-License-Identifier: Apache-2.0

package docapi

import (
	"context"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/retention"
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
		rest.Handle("GET /documents/retentions", "GetOwnRetentions", rest.SignedIn, a.retentions),
		rest.Handle("GET /documents/{id}/retention", "GetRetention", rest.SignedIn, a.retention),
		rest.Handle("PUT /documents/{id}/retention", "SetRetention", rest.SignedIn, a.setRetention),
		rest.Handle("DELETE /documents/{id}/retention", "EndRetention", rest.SignedIn, a.endRetention),
	}
}

// retained is a retention in our own part of the interface. Times are seconds since 1970, 0 for none.
type retained struct {
	DocumentID string `json:"DocumentId"`
	Name       string
	SetBy      string // owner or policy
	Until      int64
	GoodUntil  int64 // the end of the last archive time stamp
	RenewedAt  int64
	RenewAt    int64 // when the next one is due
	TryAt      int64 // when it is tried: later after a failure
	Due        bool
	Attempts   int    // since the last success
	Refused    bool   // the failure cannot pass by itself
	Failure    string // of the last attempt
}

func retainedOf(r *retention.Retained, now time.Time) retained {
	seconds := func(t time.Time) int64 {
		if t.IsZero() {
			return 0
		}
		return t.Unix()
	}
	return retained{
		DocumentID: r.Document, Name: r.Name, SetBy: string(r.Origin), Until: seconds(r.KeepUntil), GoodUntil: seconds(r.GoodUntil), RenewedAt: seconds(r.RenewedAt),
		RenewAt: seconds(r.RenewAt), TryAt: seconds(r.DueAt), Due: r.Due(now), Attempts: r.Attempts, Refused: r.Refused, Failure: r.Failure,
	}
}

// page is how many retentions a call lists.
const page = 200

// retentions lists the retentions of the caller in the order in which their renewals are due.
func (a *API) retentions(ctx context.Context, r struct {
	Due   string `query:"Due"`
	After string `query:"After"`
}) ([]retained, error) {
	due, err := boolean("Due", r.Due)
	if err != nil {
		return nil, err
	}
	who, now := rest.Caller(ctx), a.now()
	f := retention.Filter{UserID: who.UserID, Limit: page}
	if due {
		f.Until = now
	}
	if r.After != "" {
		if f.After, err = a.keeps.Of(ctx, who, r.After); err != nil {
			return nil, err
		}
	}
	found, err := a.keeps.List(ctx, f)
	list := make([]retained, len(found))
	for i := range found {
		list[i] = retainedOf(&found[i], now)
	}
	return list, err
}

func (a *API) retention(ctx context.Context, r byID) (retained, error) {
	concerning(ctx, []string{r.ID})
	of, err := a.keeps.Of(ctx, rest.Caller(ctx), r.ID)
	return retainedOf(&of, a.now()), err
}

// setRetention keeps a document until a day, whose end is that of UTC, or until a time in RFC 3339.
func (a *API) setRetention(ctx context.Context, r struct {
	ID   string `path:"id"`
	Body struct{ Until rest.Text }
}) (retained, error) {
	concerning(ctx, []string{r.ID})
	until, err := time.Parse(time.RFC3339, string(r.Body.Until))
	if err != nil {
		if until, err = time.Parse(time.DateOnly, string(r.Body.Until)); err != nil {
			return retained{}, fault.New(fault.InvalidParameters, "Until must be a day, such as 2056-01-31, or a time, such as 2056-01-31T12:00:00Z")
		}
		until = until.AddDate(0, 0, 1)
	}
	set, err := a.keeps.Set(ctx, rest.Caller(ctx), r.ID, until)
	return retainedOf(&set, a.now()), err
}

func (a *API) endRetention(ctx context.Context, r byID) (rest.None, error) {
	concerning(ctx, []string{r.ID})
	return rest.None{}, a.keeps.End(ctx, rest.Caller(ctx), r.ID)
}
